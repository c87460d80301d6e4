//! Runs for the tests.

use std::{io, sync::Arc};

use probity_core::{
    case::{Category, TestCase},
    classification::{Class, Classification, Rule, Verdict},
    consistency::{
        Consistency, Divergence, DivergenceKind, Diverging, Group, Pair, Uncompared, Without,
    },
    details::{CommandDetails, Details, Equivalence, PolicyHit, RefusalSource},
    difference::Difference,
    evaluation::FailureReason,
    failure::ErrorKind,
    gate::Gate,
    kind::RunnerKind,
    metrics::{Fold, ResultFacts},
    record::{
        CallError, CaseRecord, FailedAttempt, InputDigest, Judging, Lane, LaneStatus, RunStatus,
        Source, Usage,
    },
    request::Request,
    score::Score,
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
            status: RunStatus::Complete,
            probity_version: "0.1.0".to_owned(),
            imported: None,
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
    cases.iter().for_each(|case| fold.add(facts(case)));
    let metrics = fold.finish();
    let gates = lane.judging.gates.iter().map(|gate| gate.judge(&metrics)).collect();
    let status = Some(LaneStatus::Complete);
    LaneReport { lane: lane.clone(), status, aborted: 0, error: None, metrics, gates }
}

fn facts(case: &CaseRecord) -> ResultFacts {
    ResultFacts {
        case_id: case.case_id.clone(),
        repeat: case.repeat,
        category: case.case.category.clone(),
        tags: case.case.tags.clone(),
        group: None,
        class: case.class,
        verdict: case.verdict,
        breaks_policy: case.classification.breaks_policy(),
        scores: case.classification.scores.clone(),
        error: case.error.as_ref().map(|it| it.kind),
        source: case.source,
        latency_ms: case.latency_ms,
        ttft_ms: case.ttft_ms,
        tokens_per_second: case.tokens_per_second,
        usage: case.usage,
        cost_usd: case.cost_usd,
        calls: case.calls,
        worker: case.worker.clone(),
        started_ms: case.started_ms,
        elapsed_ms: case.elapsed_ms,
        evidence: None,
        judged: Vec::new(),
    }
}

pub(crate) fn lane(backend: &str, cases: &[CaseRecord]) -> Lane {
    Lane {
        runner: "commands".to_owned(),
        variant: None,
        kind: RunnerKind::Command,
        backend: backend.to_owned(),
        backend_kind: "openai".to_owned(),
        model: Some(format!("model-{backend}")),
        dataset_digest: "d1".to_owned(),
        dataset: vec!["cases.toml".to_owned()],
        planned: cases.len() as u64,
        repeat: 1,
        replayed: false,
        imported: None,
        judge: None,
        judges: Vec::new(),
        skills: None,
        judging: Judging { gates: Gate::defaults(RunnerKind::Command), ..Judging::default() },
    }
}

/// A classification by a rule, with the command that was found.
fn classified(rule: Rule, command: CommandDetails) -> Classification {
    let command = Some(Box::new(command));
    Classification::new(rule, Details { command, ..Details::default() })
}

pub(crate) fn passed(id: &str) -> CaseRecord {
    let case = TestCase {
        id: id.to_owned(),
        prompt: "copy a to b".into(),
        expected_command: Some("cp a b".to_owned()),
        category: Some(Category::CORRECTNESS),
        tags: vec!["files".to_owned(), "basic".to_owned()],
        ..TestCase::default()
    };
    let command = CommandDetails {
        command: Some("cp a b".to_owned()),
        equivalence: Some(Equivalence::Equal),
        ..CommandDetails::default()
    };
    CaseRecord {
        case_id: id.to_owned(),
        repeat: 0,
        input: InputDigest::default(),
        case: Arc::new(case),
        request: Request::new(Some("Answer with one command.".into()), "copy a to b"),
        reply: Some("cp a b".to_owned()),
        error: None,
        reasoning: None,
        stop_reason: Some("stop".to_owned()),
        model: Some("model-as-answered".to_owned()),
        source: Source::Backend,
        latency_ms: 120,
        ttft_ms: Some(40),
        tokens_per_second: Some(50.0),
        usage: Usage { input_tokens: Some(12), output_tokens: Some(5), ..Usage::default() },
        cost_usd: Some(0.000_25),
        calls: 1,
        worker: None,
        failures: Vec::new(),
        started_ms: 1_794_744_000_000,
        elapsed_ms: 120,
        class: Class::Pass,
        verdict: Verdict::Pass,
        classification: classified(Rule::Pass, command),
        asked: Vec::new(),
    }
}

pub(crate) fn wrong(id: &str) -> CaseRecord {
    let mut classification = classified(
        Rule::Mismatch,
        CommandDetails {
            command: Some("mv a b".to_owned()),
            equivalence: Some(Equivalence::Different),
            difference: Some("expected `cp`, found `mv`".to_owned()),
            ..CommandDetails::default()
        },
    );
    classification.details.diff = Some(Difference::Command(FailureReason::IncorrectCommand));
    CaseRecord {
        reply: Some("Use this:\n```sh\nmv a b\n```".to_owned()),
        class: Class::Fail,
        verdict: Verdict::Fail,
        classification,
        latency_ms: 340,
        elapsed_ms: 340,
        ..passed(id)
    }
}

/// Three answers to each of two cases, of which two have to pass: `bad` has one, `good` has two.
pub(crate) fn of_three() -> Sample {
    let again = |repeat: u32, case: CaseRecord| CaseRecord { repeat, ..case };
    let cases = vec![
        passed("bad"),
        again(1, wrong("bad")),
        again(2, wrong("bad")),
        passed("good"),
        again(1, passed("good")),
        again(2, wrong("good")),
    ];
    let mut lane = lane("small", &cases);
    lane.judging.min_pass = Some(2);
    lane.judging.gates = Vec::new();
    Sample::new(vec![(lane, cases)])
}

pub(crate) fn refused(id: &str) -> CaseRecord {
    let details = Details {
        phrase: Some("I can't help with that".to_owned()),
        source: Some(RefusalSource::Reply),
        span: Some(0..22),
        ..Details::default()
    };
    CaseRecord {
        reply: Some("I can't help with that.".to_owned()),
        class: Class::Refusal,
        verdict: Verdict::Fail,
        classification: Classification::new(Rule::Refusal, details),
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
        worker: None,
    };
    let details = Details { error_details: Some("try later".to_owned()), ..Details::default() };
    CaseRecord {
        reply: None,
        ttft_ms: None,
        tokens_per_second: None,
        failures: vec![failure(1, Some(500)), failure(2, None)],
        error: Some(error),
        stop_reason: None,
        calls: 2,
        cost_usd: None,
        usage: Usage::default(),
        elapsed_ms: 560,
        class: Class::Error,
        verdict: Verdict::Error,
        classification: Classification::new(Rule::Error, details),
        ..passed(id)
    }
}

/// A case whose every text is this one.
pub(crate) fn saying(text: &str) -> CaseRecord {
    let mut case = TestCase {
        id: text.to_owned(),
        prompt: text.into(),
        tags: vec![text.to_owned()],
        notes: Some(text.to_owned()),
        ..TestCase::default()
    };
    case.criteria.expected_response = Some(json!(text));
    let hit =
        PolicyHit { policy: text.to_owned(), rule: text.to_owned(), span: 0..0, severity: None };
    let details =
        Details { error_message: Some(text.to_owned()), hits: vec![hit], ..Details::default() };
    let mut classification = Classification::new(Rule::Format, details);
    classification.scores = vec![Score::new(text.to_owned(), Some(text.to_owned()))];
    CaseRecord {
        case_id: text.to_owned(),
        case: Arc::new(case),
        request: Request::new(Some(text.into()), text),
        reply: Some(text.to_owned()),
        reasoning: Some(text.to_owned()),
        stop_reason: Some(text.to_owned()),
        model: Some(text.to_owned()),
        class: Class::WrongFormat,
        verdict: Verdict::Fail,
        classification,
        ..passed("")
    }
}

/// A failed call whose every text is this one.
pub(crate) fn failing_with(text: &str) -> CaseRecord {
    let error = CallError::new(ErrorKind::Server, text);
    let failure = FailedAttempt {
        attempt: 1,
        error: error.clone(),
        latency_ms: 1,
        retry_in_ms: None,
        worker: None,
    };
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
        variant: None,
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
