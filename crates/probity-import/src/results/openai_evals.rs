//! OpenAI evals' logs: events of samples, one to a line.

use std::collections::BTreeMap;

use probity_core::{
    case::TestCase,
    record::{LaneStatus, Usage},
    request::Request,
    score::Score,
};
use serde_json::Value;

use super::{
    ImportedLane, ImportedResult, ImportedRun, Outcome, ResultsError, Tool, carried, place::Text,
    time,
};
use crate::names::{Names, usable};
use crate::wire::{
    chat,
    openai_evals::{Line, Match, Sampling, Spec},
};

/// A log.
pub(super) fn log(text: Text<'_>) -> Result<ImportedRun, ResultsError> {
    let mut spec: Option<Spec> = None;
    let mut is_reported = false;
    let mut samples: BTreeMap<String, Events> = BTreeMap::new();
    let (mut first, mut last) = (None, None);
    for text in text.lines() {
        let line: Line = text.decode()?;
        is_reported |= line.final_report.is_some();
        spec = line.spec.or(spec);
        let at = line.created_at.as_deref().and_then(time);
        first = first.into_iter().chain(at).min();
        last = last.into_iter().chain(at).max();
        if let (Some(id), Some(kind)) = (line.sample_id, line.kind) {
            samples.entry(id).or_default().add(&kind, line.data, at, text)?;
        }
    }
    let spec = spec.ok_or_else(|| text.wrong("spec", "no line says what was evaluated"))?;
    let model = spec.completion_fns.join(",");
    let undecided = samples.values().filter(|it| it.correct.is_none()).count();
    let mut names = Names::default();
    let mut results: Vec<ImportedResult> = samples
        .into_iter()
        .map(|(id, events)| events.result(names.fresh(&id, "sample"), &model))
        .collect();
    results.sort_by(|a, b| natural(&a.case.id).cmp(&natural(&b.case.id)));
    // Without the report of its end, a run was cut off.
    let status = if is_reported { LaneStatus::Complete } else { LaneStatus::Interrupted };
    let notes = (undecided > 0).then(|| {
        format!("{undecided} samples have no event that says right or wrong, and are undecided")
    });
    Ok(ImportedRun {
        tool: Tool::OpenaiEvals,
        version: None,
        started_ms: spec.created_at.as_deref().and_then(time).or(first),
        finished_ms: last,
        lanes: vec![ImportedLane {
            runner: usable(&spec.eval_name, carried::RUNNER),
            variant: None,
            backend: usable(&model, "completion-fn"),
            model: Some(model),
            status,
            planned: results.len() as u64,
            repeat: 1,
            results,
            dataset: None,
        }],
        suite: spec.eval_name,
        notes: notes.into_iter().collect(),
    })
}

/// A name with the number at its end taken apart, so that 10 comes after 9.
fn natural(id: &str) -> (&str, u64) {
    let name = id.trim_end_matches(|c: char| c.is_ascii_digit());
    (name, id[name.len()..].parse().unwrap_or(0))
}

/// What is known of a sample.
#[derive(Default)]
struct Events {
    /// What the model was asked first; what comes after it is asked of judges.
    sampling: Option<Sampling>,
    raw: Option<Value>,
    matched: Option<Match>,
    metrics: Vec<(String, f64)>,
    choice: Option<String>,
    correct: Option<bool>,
    error: Option<String>,
    started_ms: Option<i64>,
}

impl Events {
    fn add(
        &mut self,
        kind: &str,
        data: Value,
        at: Option<i64>,
        text: Text<'_>,
    ) -> Result<(), ResultsError> {
        let misfit = |error: serde_json::Error| text.wrong("data", error.to_string());
        self.started_ms = self.started_ms.or(at);
        match kind {
            "sampling" if self.sampling.is_none() => {
                self.sampling = Some(serde_json::from_value(data).map_err(misfit)?);
            }
            "match" => {
                let said: Match = serde_json::from_value(data).map_err(misfit)?;
                self.correct = said.correct.or(self.correct);
                self.matched = Some(said);
            }
            "raw_sample" => self.raw = Some(data),
            "error" => self.error = Some(message(&data)),
            "metrics" => self.measured(&data),
            _ => {}
        }
        Ok(())
    }

    /// Numbers and truth values with their names; a judge's choice says what they stand for.
    fn measured(&mut self, data: &Value) {
        let Some(fields) = data.as_object() else { return };
        for (name, value) in fields {
            match (name.as_str(), value) {
                ("choice", Value::String(choice)) => self.choice = Some(choice.clone()),
                ("correct" | "is_correct" | "accuracy", Value::Bool(said)) => {
                    self.correct = Some(*said);
                }
                (_, Value::Bool(said)) => {
                    self.metrics.push((name.clone(), f64::from(u8::from(*said))));
                }
                (_, Value::Number(number)) => {
                    self.metrics.extend(number.as_f64().map(|it| (name.clone(), it)));
                }
                (_, _) => {}
            }
        }
    }

    fn result(self, id: String, model: &str) -> ImportedResult {
        let Self { sampling, raw, matched, metrics, choice, correct, error, started_ms } = self;
        let input = raw.as_ref().and_then(|it| it.get("input"));
        let asked = sampling.as_ref().map(|it| &it.prompt).or(input);
        let request = asked.and_then(chat::asked).unwrap_or_else(|| Request::new(None, ""));
        let expected = matched.as_ref().map(|it| it.expected.clone()).filter(|it| !it.is_null());
        let ideal = || raw.as_ref()?.get("ideal").cloned();
        let target = expected.or_else(ideal).map(|it| ("ideal".to_owned(), it));
        // A sample that failed before it was asked is known by its name alone.
        let unasked = || ("sample_id".to_owned(), Value::from(id.as_str()));
        let unasked = request.prompt().is_empty().then(unasked);
        let case = TestCase {
            id,
            prompt_vars: target.into_iter().chain(unasked).collect(),
            ..carried::case_of(&request)
        };
        let said = sampling.as_ref().map(|it| &it.sampled).filter(|it| !it.is_null());
        let said = said.or_else(|| matched.as_ref().map(|it| &it.sampled)).and_then(first_text);
        let outcome = match (error, correct) {
            (Some(message), _) => Outcome::Error(message),
            (None, Some(correct)) => correct.into(),
            (None, None) => Outcome::Undecided,
        };
        let usage = sampling.as_ref().and_then(|it| it.usage);
        let answered = sampling.and_then(|it| it.model).unwrap_or_else(|| model.to_owned());
        ImportedResult {
            reply: said,
            model: Some(answered),
            started_ms,
            usage: usage.map_or_else(Usage::default, |it| Usage {
                input_tokens: it.prompt_tokens,
                output_tokens: it.completion_tokens,
                ..Usage::default()
            }),
            outcome,
            scores: scores(matched.as_ref(), metrics, choice.as_deref()),
            ..ImportedResult::new(case, request)
        }
    }
}

/// The score that stands for what a `match` event says.
const MATCH: &str = "match";

fn scores(
    matched: Option<&Match>,
    metrics: Vec<(String, f64)>,
    choice: Option<&str>,
) -> Vec<Score> {
    let said = matched.and_then(|it| Some((it, it.correct?)));
    let decisive = said.map(|(it, correct)| {
        let failed = (!correct).then(|| format!("expected {}, picked {}", it.expected, it.picked));
        Score { name: MATCH.into(), ..Score::new("imported", failed) }
    });
    let is_other = |it: &(String, f64)| decisive.is_none() || it.0 != MATCH;
    let reported = metrics.into_iter().filter(is_other).map(|(name, value)| Score {
        name: name.into(),
        // Scores are from 0 to 1; what is on another scale is said in words.
        value: Some(value).filter(|it| (0.0..=1.0).contains(it)),
        reason: Some(match choice {
            Some(choice) => format!("{value}: the judge chose {choice}"),
            None => value.to_string(),
        }),
        ..Score::new("imported", None).reported()
    });
    let reported: Vec<Score> = reported.collect();
    decisive.into_iter().chain(reported).collect()
}

/// What an error event says.
fn message(data: &Value) -> String {
    let said = ["message", "error", "type"].into_iter().find_map(|it| data.get(it)?.as_str());
    said.or(data.as_str()).map_or_else(|| data.to_string(), ToOwned::to_owned)
}

/// A text, or the first of a list of them.
fn first_text(value: &Value) -> Option<String> {
    let first = value.as_array().and_then(|it| it.first()).unwrap_or(value);
    first.as_str().map(ToOwned::to_owned)
}
