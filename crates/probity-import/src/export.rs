//! Suites and runs in the forms of other tools.

pub mod inspect;
pub mod langfuse;
pub mod openai_evals;
pub mod promptfoo;

use std::{collections::BTreeSet, io};

use serde_json::Value;

use crate::names::Names;
use probity_core::{
    classification::Verdict,
    details::Criterion,
    record::{CaseRecord, LaneKey},
    score::Score,
    view::{Cases, LaneReport, RunView},
};

/// Files for another tool, and what they cannot say.
#[derive(Debug, Default)]
pub struct Exported {
    /// Names and contents; the names are relative to a folder.
    pub files: Vec<(String, String)>,
    /// What could not be said, each thing once.
    pub lost: Vec<String>,
    told: BTreeSet<String>,
}

impl Exported {
    fn one(name: &str, text: String) -> Self {
        Self { files: vec![(name.to_owned(), text)], ..Self::default() }
    }

    /// Says once that something could not be said, and about how much.
    pub fn lose(&mut self, about: &str, what: &str) {
        let line = format!("{about}: {what}");
        if self.told.insert(line.clone()) {
            self.lost.push(line);
        }
    }
}

/// A name for a file, made of a text: it stays in its folder, and no other file has it.
fn file_name(names: &mut Names, text: &str) -> String {
    let safe = |c: char| if c.is_alphanumeric() || "._-".contains(c) { c } else { '-' };
    names.fresh(&text.chars().map(safe).collect::<String>(), "runner")
}

/// A name for a file of a lane.
fn lane_file(names: &mut Names, key: LaneKey<'_>, suffix: &str) -> String {
    format!("{}{suffix}", file_name(names, &format!("{}_{}", key.task(), key.backend)))
}

/// A time as JSON files have it.
fn time(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms).unwrap_or_default().to_string()
}

fn pretty(value: &impl serde::Serialize) -> io::Result<String> {
    let mut text = serde_json::to_string_pretty(value).map_err(io::Error::other)?;
    text.push('\n');
    Ok(text)
}

/// The results of a lane.
fn records(cases: &dyn Cases, lane: usize) -> io::Result<Vec<CaseRecord>> {
    let mut all = Vec::new();
    cases.each(lane, &mut |case| {
        all.push(case.clone());
        Ok(())
    })?;
    Ok(all)
}

/// The scores of a result. A verdict that no score stands for gets one.
fn scores(record: &CaseRecord) -> Vec<Score> {
    let scores = record.classification.scores.clone();
    let is_judged = matches!(record.verdict, Verdict::Pass | Verdict::Fail);
    let required = || scores.iter().any(Score::is_required);
    if !is_judged || required() {
        return scores;
    }
    let criterion = record.classification.details.criteria.unwrap_or(Criterion::Assert);
    let failed = (record.verdict == Verdict::Fail).then(|| record.why());
    let verdict = Score { name: VERDICT.into(), ..Score::new(criterion.as_str(), failed) };
    std::iter::once(verdict).chain(scores).collect()
}

/// The score that stands for a verdict.
const VERDICT: &str = "verdict";

/// What a result was expected to be, for tools that have a field for it: what the case says, or what
/// another tool called its target.
fn expected(record: &CaseRecord) -> Value {
    let vars = &record.case.prompt_vars;
    let target = || vars.get("target").or_else(|| vars.get("ideal")).cloned();
    record.expected().map(Value::from).or_else(target).unwrap_or_default()
}

/// The model of a lane, or its backend.
fn model(report: &LaneReport) -> &str {
    report.lane.model.as_deref().unwrap_or(&report.lane.backend)
}

/// Something that tells a result from all others, and is the same in each export.
fn result_id(run: &RunView, report: &LaneReport, record: &CaseRecord) -> String {
    let key = report.lane.key().to_string();
    let repeat = record.repeat.to_string();
    let parts = [&run.run_id, &key, &record.case_id, &repeat];
    probity_core::record::InputDigest::of(parts.map(String::as_bytes)).to_string()
}
