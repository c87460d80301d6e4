//! Runs for the tests.

use std::io;

use probity_core::{
    case::Category,
    classification::{Class, Verdict},
    consistency::{
        Consistency, Divergence, DivergenceKind, Diverging, Group, Pair, Uncompared, Without,
    },
    failure::ErrorKind,
    gate::Gate,
    metrics::{Fold, Outcome},
    record::{
        CallError, CaseRecord, FailedAttempt, InputDigest, Judging, Lane, LaneStatus, Source, Usage,
    },
    runner::RunnerKind,
    view::{Cases, LaneReport, RunView},
};
use serde_json::json;

/// What every format has to show without harm.
pub(crate) const HOSTILE: &[&str] = &[
    "<script>alert(1)</script>",
    "]]>",
    "\x1b[31mred\x1b[0m\x07\u{9b}2J",
    "=cmd|' /C calc'!A0",
    "\u{202e}gnp.exe\u{2066}",
    "\u{fffd}\u{fffe}\u{ffff}",
    "a\0b",
    "``` ```` ` \n`````\n",
    "@someone #1 org/repo#2",
    "![x](http://x) [y](javascript:z) www.example.com a@b.example",
    "</script>",
    "<!-- <script>",
    "</details></summary>\n\n- [ ] task | cell\n| a | b |",
    "::error::x%0A\r\n::set-output name=a::b",
    "\u{2028}\u{2029}&amp;&#0;",
];

/// All of it in one text.
pub(crate) fn hostile() -> String {
    HOSTILE.join("\n")
}

/// A run with all its cases.
pub(crate) struct Sample {
    pub(crate) view: RunView,
    cases: Vec<Vec<CaseRecord>>,
}

impl Cases for Sample {
    fn each(
        &self,
        lane: usize,
        take: &mut dyn FnMut(&CaseRecord) -> io::Result<()>,
    ) -> io::Result<()> {
        self.cases[lane].iter().try_for_each(take)
    }
}

impl Sample {
    /// A run with a lane for each list of cases.
    pub(crate) fn new(lanes: Vec<(Lane, Vec<CaseRecord>)>) -> Self {
        let reports = lanes.iter().map(|(lane, cases)| report(lane, cases)).collect();
        let view = RunView {
            against: None,
            consistency: Vec::new(),
            run_id: "20261115T120000-0123456789abcdef".to_owned(),
            short: "0123456789ab".to_owned(),
            suite: "shell".to_owned(),
            started_ms: 1_794_744_000_000,
            finished_ms: Some(1_794_744_061_500),
            status: "complete".to_owned(),
            probity_version: "0.1.0".to_owned(),
            max_error_rate: 0.5,
            lanes: reports,
        };
        Self { view, cases: lanes.into_iter().map(|(_, cases)| cases).collect() }
    }

    /// One lane of these cases.
    pub(crate) fn of(cases: Vec<CaseRecord>) -> Self {
        Self::new(vec![(lane("small", &cases), cases)])
    }

    /// A run such as people have them: two backends, every verdict, gates that fail.
    pub(crate) fn usual() -> Self {
        let first = vec![passed("copy"), wrong("list"), failed_call("move"), refused("wipe")];
        let second = vec![passed("copy"), passed("list"), passed("move"), wrong("wipe")];
        let mut lanes = vec![(lane("small", &first), first), (lane("large", &second), second)];
        lanes[1].0.judging.known_failures = ["list", "wipe"].map(str::to_owned).into();
        Self::new(lanes)
    }

    pub(crate) fn written(&self, format: crate::Format) -> String {
        let mut bytes = Vec::new();
        crate::write(format, &self.view, self, &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }
}

fn report(lane: &Lane, cases: &[CaseRecord]) -> LaneReport {
    let mut fold = Fold::new(&lane.judging);
    cases.iter().for_each(|case| fold.add(outcome(case)));
    let metrics = fold.finish();
    let gates = lane.judging.gates.iter().map(|gate| gate.judge(&metrics)).collect();
    let status = Some(LaneStatus::Complete);
    LaneReport { lane: lane.clone(), status, aborted: 0, metrics, gates }
}

fn outcome(case: &CaseRecord) -> Outcome {
    let definition = case.definition();
    Outcome {
        case_id: case.case_id.clone(),
        repeat: case.repeat,
        category: definition["category"].as_str().and_then(|it| it.parse::<Category>().ok()),
        tags: serde_json::from_value(definition["tags"].clone()).unwrap_or_default(),
        group: None,
        class: case.class,
        verdict: case.verdict,
        breaks_policy: false,
        error: case.error.as_ref().map(|it| it.kind),
        source: case.source,
        latency_ms: case.latency_ms,
        usage: case.usage,
        cost_usd: case.cost_usd,
        calls: case.calls,
        started_ms: case.started_ms,
        elapsed_ms: case.elapsed_ms,
        evidence: None,
    }
}

pub(crate) fn lane(backend: &str, cases: &[CaseRecord]) -> Lane {
    Lane {
        runner: "commands".to_owned(),
        kind: RunnerKind::Command,
        backend: backend.to_owned(),
        backend_kind: "openai".to_owned(),
        model: Some(format!("model-{backend}")),
        dataset_digest: "d1".to_owned(),
        dataset: vec!["cases.toml".to_owned()],
        planned: cases.len() as u64,
        repeat: 1,
        replayed: false,
        judge: None,
        skills: None,
        judging: Judging { gates: Gate::defaults(RunnerKind::Command), ..Judging::default() },
    }
}

pub(crate) fn passed(id: &str) -> CaseRecord {
    let definition = json!({
        "id": id,
        "prompt": "copy a to b",
        "expected_command": "cp a b",
        "category": "correctness",
        "tags": ["files", "basic"],
    });
    let classification = json!({
        "primary": "pass",
        "rule": "pass",
        "details": { "command": { "command": "cp a b", "equivalence": "equal" } },
    });
    CaseRecord {
        case_id: id.to_owned(),
        repeat: 0,
        input: InputDigest::default(),
        definition: definition.to_string(),
        system: Some("Answer with one command.".to_owned()),
        prompt: "copy a to b".to_owned(),
        reply: Some("cp a b".to_owned()),
        error: None,
        stop_reason: Some("stop".to_owned()),
        model: Some("model-as-answered".to_owned()),
        source: Source::Backend,
        latency_ms: 120,
        usage: Usage { input_tokens: Some(12), output_tokens: Some(5), ..Usage::default() },
        cost_usd: Some(0.000_25),
        calls: 1,
        failures: Vec::new(),
        started_ms: 1_794_744_000_000,
        elapsed_ms: 120,
        class: Class::Pass,
        verdict: Verdict::Pass,
        classification: classification.to_string(),
        asked: Vec::new(),
    }
}

pub(crate) fn wrong(id: &str) -> CaseRecord {
    let classification = json!({
        "primary": "fail",
        "rule": "mismatch",
        "details": {
            "diff": { "type": "incorrect_command" },
            "command": {
                "command": "mv a b",
                "equivalence": "different",
                "difference": "expected `cp`, found `mv`",
            },
        },
    });
    CaseRecord {
        reply: Some("Use this:\n```sh\nmv a b\n```".to_owned()),
        class: Class::Fail,
        verdict: Verdict::Fail,
        classification: classification.to_string(),
        asked: Vec::new(),
        latency_ms: 340,
        elapsed_ms: 340,
        ..passed(id)
    }
}

pub(crate) fn refused(id: &str) -> CaseRecord {
    let classification = json!({
        "primary": "refusal",
        "rule": "refusal",
        "details": { "phrase": "I can't help with that", "source": "reply", "span": [0, 22] },
    });
    CaseRecord {
        reply: Some("I can't help with that.".to_owned()),
        class: Class::Refusal,
        verdict: Verdict::Fail,
        classification: classification.to_string(),
        asked: Vec::new(),
        ..passed(id)
    }
}

pub(crate) fn failed_call(id: &str) -> CaseRecord {
    let error =
        CallError { status: Some(503), ..CallError::new(ErrorKind::Overloaded, "try later") };
    let failure = |attempt, retry_in_ms| FailedAttempt {
        attempt,
        error: error.clone(),
        latency_ms: 30,
        retry_in_ms,
    };
    let classification =
        json!({ "primary": "error", "rule": "error", "details": { "error_details": "try later" } });
    CaseRecord {
        reply: None,
        failures: vec![failure(1, Some(500)), failure(2, None)],
        error: Some(error),
        stop_reason: None,
        calls: 2,
        cost_usd: None,
        usage: Usage::default(),
        elapsed_ms: 560,
        class: Class::Error,
        verdict: Verdict::Error,
        classification: classification.to_string(),
        asked: Vec::new(),
        ..passed(id)
    }
}

/// A case whose every text is this one.
pub(crate) fn saying(text: &str) -> CaseRecord {
    let definition = json!({
        "id": text, "prompt": text, "expected_response": text, "tags": [text], "category": text, "notes": text,
    });
    let classification = json!({
        "primary": "fail", "rule": "mismatch", "details": { "error_message": text, "hits": [{ "policy": text }] },
    });
    CaseRecord {
        case_id: text.to_owned(),
        definition: definition.to_string(),
        system: Some(text.to_owned()),
        prompt: text.to_owned(),
        reply: Some(text.to_owned()),
        stop_reason: Some(text.to_owned()),
        model: Some(text.to_owned()),
        class: Class::Fail,
        verdict: Verdict::Fail,
        classification: classification.to_string(),
        asked: Vec::new(),
        ..passed("")
    }
}

/// A failed call whose every text is this one.
pub(crate) fn failing_with(text: &str) -> CaseRecord {
    let error = CallError::new(ErrorKind::Server, text);
    let failure =
        FailedAttempt { attempt: 1, error: error.clone(), latency_ms: 1, retry_in_ms: None };
    CaseRecord {
        reply: None,
        error: Some(error),
        failures: vec![failure],
        class: Class::Error,
        verdict: Verdict::Error,
        ..saying(text)
    }
}

/// A run whose cases, names and models all say what is hostile, with a line of a megabyte.
pub(crate) fn hostile_run() -> Sample {
    let text = hostile();
    let long = format!("{text}{}", "x".repeat(1 << 20));
    let mut cases: Vec<CaseRecord> = HOSTILE.iter().map(|it| saying(it)).collect();
    cases.extend([saying(&text), failing_with(&text), saying(&long), failing_with(&long)]);
    let mut lane = Lane { model: Some(text.clone()), ..lane(&text, &cases) };
    lane.runner.clone_from(&text);
    lane.backend_kind.clone_from(&text);
    lane.dataset = vec![text.clone()];
    let mut sample = Sample::new(vec![(lane, cases)]);
    sample.view.suite.clone_from(&text);
    let mut found = divided(&text);
    found.backends = vec![text.clone(), long.clone(), text.clone()];
    found.runner.clone_from(&text);
    found.divergences = HOSTILE.iter().map(|it| divergence(it, it)).collect();
    found.divergences.extend([divergence(&text, &text), divergence(&long, &long)]);
    sample.view.consistency = vec![found];
    sample.view.lanes[0].metrics.unexpected_passes = vec![text];
    sample
}

/// A run on three backends with more divergences than people read.
pub(crate) fn side_by_side() -> Sample {
    let lanes = ["small", "large", "third"].map(|name| {
        let cases = vec![passed("copy"), wrong("list")];
        (lane(name, &cases), cases)
    });
    let mut sample = Sample::new(lanes.into());
    sample.view.consistency = vec![divided("commands")];
    sample
}

fn divided(runner: &str) -> Consistency {
    let pair = |backends, compared, equal, unknown| Pair { backends, compared, equal, unknown };
    let ids = ["list", "disk", "move", "wipe", "find", "more"];
    let mut divergences: Vec<Divergence> =
        ids.into_iter().map(|id| divergence(id, "ls -l")).collect();
    divergences[1].groups[1].parsed = false;
    divergences[2].without = vec![(1, Without::NoCommand)];
    divergences[2].groups[0].members.pop();
    Consistency {
        runner: runner.to_owned(),
        backends: ["small", "large", "third"].map(str::to_owned).into(),
        repeats: 1,
        agree: 12,
        diverge: Diverging { mixed: 6, failing: 0, passing: 1500 },
        uncompared: Uncompared { error: 2, no_command: 1, unparsable: 0, missing: 0 },
        pairs: vec![pair([0, 1], 10, 8, 0), pair([0, 2], 0, 0, 3), pair([1, 2], 4, 4, 1)],
        divergences,
    }
}

/// The first two backends pass, the third says this.
fn divergence(id: &str, command: &str) -> Divergence {
    let group = |command: &str, members: &[(usize, bool)]| Group {
        command: command.to_owned(),
        cut: 0,
        parsed: true,
        members: members.to_vec(),
    };
    Divergence {
        case_id: id.to_owned(),
        repeat: 0,
        kind: DivergenceKind::Mixed,
        groups: vec![group("ls -a -l", &[(0, true), (1, true)]), group(command, &[(2, false)])],
        without: Vec::new(),
    }
}
