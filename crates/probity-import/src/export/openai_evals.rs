//! Suites as samples with a registry, and runs as logs, in the form of OpenAI evals.

use std::{collections::BTreeMap, fmt::Write as _, io};

use probity_core::{
    case::TestCase,
    classification::Verdict,
    criteria::{AssertionTest, Criteria, Matcher},
    record::CaseRecord,
    request::Request,
    view::{Cases, LaneReport, RunView},
};
use serde::Serialize;
use serde_json::{Value, json};

use super::{Exported, expected, file_name, lane_file, model, records, scores, time};
use crate::{
    names::Names,
    wire::{
        chat::{WireMessage, openai},
        openai_evals::Sample,
        text_of,
    },
};

/// The logs of a run, one for each lane.
pub fn run(run: &RunView, cases: &dyn Cases) -> io::Result<Exported> {
    let mut exported = Exported::default();
    let mut names = Names::default();
    for (at, report) in run.lanes.iter().enumerate() {
        let text = log(run, report, &records(cases, at)?)?;
        exported.files.push((lane_file(&mut names, report.lane.key(), ".jsonl"), text));
        if report.lane.repeat > 1 {
            exported.lose(&report.title(), "repeats have ids of their own, such as `case#2`");
        }
    }
    Ok(exported)
}

/// A line of a log.
#[derive(Serialize)]
struct EventLine<'a> {
    run_id: &'a str,
    event_id: usize,
    sample_id: String,
    #[serde(rename = "type")]
    kind: &'a str,
    data: Value,
    created_by: &'a str,
    created_at: String,
}

fn log(run: &RunView, report: &LaneReport, records: &[CaseRecord]) -> io::Result<String> {
    let name = report.lane.key().task();
    let spec = json!({ "spec": {
        "completion_fns": [model(report)],
        "eval_name": name,
        "base_eval": name,
        "split": "probity",
        "run_config": { "completion_fns": [model(report)], "eval_spec": {} },
        "created_by": "probity",
        "run_id": run.run_id,
        "created_at": time(run.started_ms),
    }});
    let mut lines = vec![spec.to_string()];
    for record in records {
        let sample_id = match record.repeat {
            0 => record.case_id.clone(),
            repeat => format!("{}#{}", record.case_id, repeat + 1),
        };
        for (kind, data) in events(record) {
            let line = EventLine {
                run_id: &run.run_id,
                event_id: lines.len() - 1,
                sample_id: sample_id.clone(),
                kind,
                data,
                created_by: "probity",
                created_at: time(record.started_ms),
            };
            lines.push(serde_json::to_string(&line).map_err(io::Error::other)?);
        }
    }
    let verdicts = report.metrics.all.verdicts;
    if report.is_complete() {
        let report = json!({ "accuracy": verdicts.rate(), "counts": {
            "pass": verdicts.pass, "fail": verdicts.fail, "error": verdicts.error,
            "undecided": verdicts.undecided,
        }});
        lines.push(json!({ "final_report": report }).to_string());
    }
    Ok(lines.iter().fold(String::new(), |text, line| text + line + "\n"))
}

/// What happened with a sample, by type.
fn events(record: &CaseRecord) -> Vec<(&'static str, Value)> {
    let mut events = Vec::new();
    let prompt = messages(&record.request);
    if let Some(reply) = &record.reply {
        let usage = record.usage;
        events.push((
            "sampling",
            json!({
                "prompt": prompt, "sampled": [reply], "model": record.model,
                "usage": {
                    "prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens,
                },
            }),
        ));
    } else {
        events.push(("raw_sample", json!({ "input": prompt, "ideal": expected(record) })));
    }
    match record.verdict {
        Verdict::Pass | Verdict::Fail => {
            let correct = record.verdict == Verdict::Pass;
            let (expected, said) = (expected(record), record.reply.as_deref());
            let picked = if correct { said } else { None };
            events.push((
                "match",
                json!({
                    "correct": correct, "expected": expected, "picked": picked, "sampled": said,
                }),
            ));
        }
        Verdict::Error => {
            events.push(("error", json!({ "type": record.class, "message": record.why() })));
        }
        Verdict::Undecided => {}
    }
    let metrics: serde_json::Map<String, Value> = scores(record)
        .iter()
        .filter_map(|it| Some((it.name.to_string(), json!(it.amount()?))))
        .collect();
    if !metrics.is_empty() {
        events.push(("metrics", Value::Object(metrics)));
    }
    events
}

fn messages(request: &Request) -> Vec<WireMessage> {
    request.messages.iter().flat_map(openai).collect()
}

/// How OpenAI evals decides cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Match,
    Includes,
    IgnoringCase,
    Json,
}

impl Class {
    const fn path(self) -> &'static str {
        match self {
            Self::Match => "evals.elsuite.basic.match:Match",
            Self::Includes | Self::IgnoringCase => "evals.elsuite.basic.includes:Includes",
            Self::Json => "evals.elsuite.basic.json_match:JsonMatch",
        }
    }

    const fn suffix(self) -> &'static str {
        match self {
            Self::Match => "match",
            Self::Includes => "includes",
            Self::IgnoringCase => "includes-ignore-case",
            Self::Json => "json",
        }
    }
}

/// A suite's cases, as they come: samples by how they are decided, and a registry at the end.
#[derive(Debug, Default)]
pub struct SuiteExport {
    /// By runner, variant and how they are decided.
    samples: BTreeMap<(String, Option<String>, &'static str), (Class, String)>,
    exported: Exported,
}

impl SuiteExport {
    /// Takes in a case of a runner, with what it asks.
    pub fn case(
        &mut self,
        runner: &str,
        variant: Option<&str>,
        case: &TestCase,
        request: &Request,
    ) {
        let Some((class, ideal)) = decided(&case.criteria) else {
            let what = "its criteria have no counterpart; only Match, Includes and JsonMatch have";
            self.exported.lose(&format!("case `{}`", case.id), what);
            return;
        };
        if !request.tools.is_empty() {
            self.exported.lose(&format!("case `{}`", case.id), "its tools are not sent");
        }
        if case.execution.is_some() {
            let what = "`execution`: OpenAI evals does not execute what a reply says";
            self.exported.lose(&format!("case `{}`", case.id), what);
        }
        let sample = Sample { input: messages(request), ideal };
        let line = serde_json::to_string(&sample).unwrap_or_default();
        let key = (runner.to_owned(), variant.map(ToOwned::to_owned), class.suffix());
        let (_, text) = self.samples.entry(key).or_insert_with(|| (class, String::new()));
        let _ = writeln!(text, "{line}");
    }

    /// The files.
    pub fn finish(self) -> Exported {
        let Self { samples, mut exported } = self;
        let mut registry = String::from(
            "# Written by `probity export --as openai-evals`: oaieval MODEL NAME --registry_path .\n",
        );
        let mut names = Names::default();
        for ((runner, variant, suffix), (class, text)) in samples {
            let asker = variant.map_or_else(|| runner.clone(), |it| format!("{runner}-{it}"));
            let name = file_name(&mut names, &format!("{asker}-{suffix}"));
            let ignore = if class == Class::IgnoringCase { "\n    ignore_case: true" } else { "" };
            let _ = write!(
                registry,
                "\n{name}:\n  id: {name}.probity.v0\n  metrics: [accuracy]\n{name}.probity.v0:\n  class: \
                 {}\n  args:\n    samples_jsonl: {name}/samples.jsonl{ignore}\n",
                class.path()
            );
            exported.files.push((format!("data/{name}/samples.jsonl"), text));
        }
        if !exported.files.is_empty() {
            exported.files.insert(0, ("evals/probity.yaml".to_owned(), registry));
        }
        exported
    }
}

/// The class that decides a case as its criteria do, and what it is given.
fn decided(criteria: &Criteria) -> Option<(Class, Value)> {
    let plain = Criteria {
        expected_response: None,
        matcher: None,
        assertions: Vec::new(),
        threshold: None,
        ..criteria.clone()
    };
    if plain != Criteria::default() {
        return None;
    }
    match (&criteria.expected_response, criteria.assertions.as_slice()) {
        (Some(ideal), []) => match criteria.matcher {
            Some(Matcher::StartsWith) => Some((Class::Match, ideal.clone())),
            Some(Matcher::Contains) => Some((Class::Includes, ideal.clone())),
            Some(Matcher::Icontains) => Some((Class::IgnoringCase, ideal.clone())),
            // Their class reads texts, and takes a list for several of them.
            Some(Matcher::JsonEqual) => Some((Class::Json, Value::from(text_of(ideal)))),
            Some(
                Matcher::Exact
                | Matcher::Trimmed
                | Matcher::Regex
                | Matcher::JsonSubset
                | Matcher::AnyOf
                | Matcher::Command
                | Matcher::Number
                | Matcher::Choice,
            )
            | None => None,
        },
        (None, [one])
            if !one.kind.negated && one.reading == probity_core::reading::Reading::default() =>
        {
            let value = one.value.clone()?;
            if one.kind.test == AssertionTest::StartsWith {
                Some((Class::Match, value))
            } else if matches!(one.kind.test, AssertionTest::Contains | AssertionTest::ContainsAny)
            {
                Some((Class::Includes, value))
            } else if matches!(
                one.kind.test,
                AssertionTest::Icontains | AssertionTest::IcontainsAny
            ) {
                Some((Class::IgnoringCase, value))
            } else {
                None
            }
        }
        (_, _) => None,
    }
}
