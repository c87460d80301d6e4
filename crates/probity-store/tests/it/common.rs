//! Records of one lane, and how they get into a store.

use std::{path::Path, sync::Arc};

use probity_core::{
    case::{Category, TestCase},
    classification::{Class, Classification, Rule, Verdict},
    details::{Details, PolicyHit},
    difference::{Difference, Missing},
    event::{Event, Stamped},
    failure::ErrorKind,
    kind::{Detected, Evidence, Labelled, RunnerKind},
    record::{
        Asked, CallError, CaseRecord, FailedAttempt, InputDigest, Lane, RunInfo, Source, Usage,
    },
    reply::{Logprobs, TokenLogprob},
    request::{Request, ToolCall},
    score::Score,
};
use probity_store::{LaneView, NewRun, Reader, Recorder, record_whole};

pub(crate) fn lane() -> Lane {
    Lane {
        runner: "r".to_owned(),
        variant: None,
        kind: RunnerKind::Command,
        backend: "b".to_owned(),
        backend_kind: "openai".to_owned(),
        model: Some("m".to_owned()),
        dataset_digest: "d".to_owned(),
        dataset: vec!["cases.toml".to_owned()],
        planned: 3,
        repeat: 1,
        replayed: false,
        imported: None,
        judge: None,
        judges: Vec::new(),
        skills: None,
        judging: probity_core::record::Judging::default(),
    }
}

pub(crate) fn record(case_id: &str, verdict: Verdict) -> CaseRecord {
    let error = CallError {
        status: Some(503),
        retry_after: Some(1.5),
        ..CallError::new(ErrorKind::Overloaded, "busy\0\u{202e}")
    };
    let failed = verdict == Verdict::Error;
    CaseRecord {
        case_id: case_id.to_owned(),
        repeat: 0,
        input: InputDigest::of([case_id.as_bytes()]),
        case: Arc::new(TestCase {
            id: case_id.to_owned(),
            category: Some(Category::named("odds, ends")),
            tags: vec!["t".to_owned()],
            ..TestCase::default()
        }),
        request: Request::new(Some("be brief".into()), "do it"),
        reply: (!failed).then(|| "done\0\u{1b}[0m\n".to_owned()),
        error: failed.then(|| error.clone()),
        reasoning: None,
        stop_reason: Some("stop".to_owned()),
        model: Some("m-1".to_owned()),
        source: Source::Cache,
        latency_ms: 12,
        ttft_ms: Some(3),
        tokens_per_second: Some(41.5),
        usage: Usage { input_tokens: Some(3), output_tokens: Some(4), ..Usage::default() },
        cost_usd: Some(0.25),
        calls: 2,
        worker: Some("w-1".to_owned()),
        failures: vec![FailedAttempt {
            attempt: 1,
            error,
            latency_ms: 5,
            retry_in_ms: Some(2000),
            worker: Some("w-2".to_owned()),
        }],
        started_ms: 1_794_736_800_000,
        elapsed_ms: 2017,
        class: if failed { Class::Error } else { Class::Pass },
        verdict,
        classification: classification(failed),
        asked: Vec::new(),
    }
}

/// A record of which nothing is absent.
pub(crate) fn full() -> CaseRecord {
    let asked = Asked {
        role: "judge".to_owned(),
        backend: "j".to_owned(),
        request: Request::new(Some("be fair".into()), "which?"),
        turn: Some(2),
        reply: Some("this".to_owned()),
        tool_calls: vec![ToolCall::new(Some("c".to_owned()), "f".to_owned(), 1.into())],
        reasoning: Some("hm".to_owned()),
        stop_reason: Some("stop".to_owned()),
        logprobs: Some(Logprobs(vec![TokenLogprob { token: "t".to_owned(), logprob: -0.5 }])),
        error: None,
        model: Some("j-1".to_owned()),
        source: Source::Backend,
        latency_ms: 3,
        usage: Usage::default(),
        cost_usd: Some(0.5),
        calls: 1,
    };
    let mut record = record("a", Verdict::Pass);
    record.reasoning = Some("hm".to_owned());
    record.classification.scores[0].reason = Some("so so".to_owned());
    CaseRecord { asked: vec![asked], ..record }
}

/// With a score, evidence and a policy hit, which stand in places of their own.
pub(crate) fn classification(failed: bool) -> Classification {
    let rule = if failed { Rule::Error } else { Rule::Pass };
    let score =
        Score { named: true, value: Some(0.25), span: Some(1..3), ..Score::new("contains", None) };
    let safety = Some(Labelled { expected: true, found: false });
    let details = Details {
        hits: vec![PolicyHit {
            policy: "p".to_owned(),
            rule: "r".to_owned(),
            span: 0..1,
            severity: None,
        }],
        evidence: Some(Box::new(Evidence::Command(Detected { safety, posix: None }))),
        diff: Some(Difference::Missing(Missing {
            missing: ["x".to_owned()].into_iter().collect(),
        })),
        ..Details::default()
    };
    Classification { rule, scores: vec![score], details }
}

pub(crate) fn create(path: &Path) -> Recorder {
    let run = NewRun {
        run_id: "20261115-100000-abcdef".to_owned(),
        suite: "s.toml".to_owned(),
        started_ms: 1_794_736_800_000,
        info: RunInfo { probity_version: "0.2".to_owned(), ..RunInfo::default() },
    };
    Recorder::create(path, &run, []).unwrap()
}

pub(crate) fn write(recorder: &mut Recorder, events: Vec<Event>) {
    let stamped: Vec<Stamped> =
        events.into_iter().map(|event| Stamped { at_ms: 1_794_736_801_000, event }).collect();
    recorder.record(&stamped).unwrap();
}

pub(crate) fn started() -> Event {
    Event::RunStarted {
        version: 1,
        run_id: "20261115-100000-abcdef".to_owned(),
        resumed: false,
        lanes: vec![lane()],
        done_before: vec![0],
    }
}

pub(crate) fn finished(record: CaseRecord) -> Event {
    Event::CaseFinished { lane: 0, record: Box::new(record) }
}

/// A run that is over, with the results of its lanes.
pub(crate) fn whole(
    path: &Path,
    id: &str,
    suite: &str,
    lanes: &[Lane],
    results: Vec<(usize, CaseRecord)>,
) {
    let run = NewRun {
        run_id: format!("20261115-100000-{id}"),
        suite: suite.to_owned(),
        started_ms: 1_794_736_800_000,
        info: RunInfo { suite_path: Some(format!("{suite}/probity.toml")), ..RunInfo::default() },
    };
    let started = Event::RunStarted {
        version: 1,
        run_id: run.run_id.clone(),
        resumed: false,
        lanes: lanes.to_vec(),
        done_before: vec![0; lanes.len()],
    };
    let results = results
        .into_iter()
        .map(|(lane, record)| Event::CaseFinished { lane, record: Box::new(record) });
    let events = [started].into_iter().chain(results);
    let events: Vec<Stamped> =
        events.map(|event| Stamped { at_ms: 1_794_736_801_000, event }).collect();
    record_whole(path, &run, &events).unwrap();
}

/// What a run that `whole` made has.
pub(crate) fn lanes_of(reader: &Reader, id: &str) -> Vec<LaneView> {
    reader.lanes(&reader.find(id).unwrap()).unwrap()
}

/// A lane on a backend.
pub(crate) fn lane_on(backend: &str) -> Lane {
    Lane { backend: backend.to_owned(), ..lane() }
}
