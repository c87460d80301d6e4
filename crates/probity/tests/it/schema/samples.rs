//! Documents with every field that the program's own types have. None of them makes sense.

use std::sync::Arc;

use probity_core::{
    case::{AskSpec, Category, Routing, RubricCriterion, TestCase},
    classification::{Class, Classification, Rule, Verdict},
    consistency::{
        Consistency, Divergence, DivergenceKind, Diverging, Group, Pair, Uncompared, Without,
    },
    conversation::{ConversationSpec, ScriptedResult, SimulatedUser, Turn},
    criteria::{
        Assertion, AssertionKind, AssertionTest, Criteria, ExpectedFormat, FactCategory, JsonLevel,
        JudgeOptions, Matcher, PromptMessage, RubricPrompt,
    },
    details::{
        Also, CommandDetails, Criterion, Details, Equivalence, Extracted, JsonStep, PolicyHit,
        RefusalSource, Risk, Trouble,
    },
    difference::Difference,
    evaluation::{
        CategoryResult, EvaluationResult, FailedCase, FailureReason, GateResult, IntervalResult,
        Meta, RepeatsResult,
    },
    event::{CaseKey, Event, Stamped},
    evidence::{
        Choice, Compared, Condition, CriterionScore, Detection, Duel, JudgedBy, Pair as Answers,
        Round, Routed, Size, Tier, Win,
    },
    failure::ErrorKind,
    gate::{Bound, Decimal, Gate, GateStatus, Metric},
    kind::{
        Detected, Evidence, FailFast, Figures, Fold, Labelled, ProgramReport, RunnerKind, Seen,
    },
    metrics::{Flaky, Latency, ScoreSummary},
    opinion::{Combine, JudgeFigures, Judged, JudgedCheck, Opinion, Said, Statement},
    reading::{
        Extract, ExtractAfter, ExtractCodeBlock, ExtractJsonPointer, ExtractName, ExtractRegex,
        ExtractXmlTag, Group as Captured, Reading, Take, Tolerance, Uncounted, Until,
    },
    record::{
        Aborted, Asked, CallError, CaseRecord, FailedAttempt, InputDigest, Judging, Lane,
        LaneStatus, SkillsInfo, Source, Spent, Usage,
    },
    reply::{Logprobs, TokenLogprob},
    request::{
        Image, Message, Part, Request, ResponseFormat, Role, Sampling, Tool, ToolCall, ToolChoice,
        ToolResult,
    },
    score::Score,
};
use probity_stats::Interval;
use serde_json::{Value, json};

fn text(text: &str) -> String {
    text.to_owned()
}

fn judged_check() -> JudgedCheck {
    let judged = Judged {
        score: 0.5,
        passed: Some(false),
        reason: text("r"),
        statements: vec![Statement { text: text("s"), holds: true, reason: Some(text("r")) }],
    };
    let failed = Said::Failed { error: text("e") };
    JudgedCheck {
        check: "context-recall".into(),
        combine: Combine::Majority,
        opinions: vec![
            Opinion { judge: text("a"), said: Said::Judged(judged) },
            Opinion { judge: text("b"), said: failed },
        ],
        agreement: Some(1.0),
    }
}

fn gates() -> Vec<Gate> {
    let gate = Gate {
        metric: Metric::PassRate,
        bound: Bound::AtLeast(Decimal::parse("94.8%").unwrap()),
        warn: Decimal::parse("0.9"),
        category: Some(Category::POSIX),
        backend: Some(text("b")),
        variant: Some(text("v")),
        allow_empty: true,
    };
    let most = Bound::AtMost(Decimal::whole(3));
    let score = Gate { metric: Metric::Score("is it good?".into()), ..gate.clone() };
    vec![gate.clone(), Gate { bound: most, ..gate }, score]
}

/// The agreement of two backends with every field.
pub(super) fn consistency() -> Consistency {
    let group = Group { command: text("ls"), cut: 0, parsed: true, members: vec![(0, true)] };
    Consistency {
        runner: text("r"),
        variant: Some(text("v")),
        backends: vec![text("a"), text("b")],
        repeats: 1,
        agree: 1,
        diverge: Diverging { mixed: 1, ..Diverging::default() },
        uncompared: Uncompared::default(),
        pairs: vec![Pair { backends: [0, 1], compared: 2, equal: 1, unknown: 0 }],
        divergences: vec![Divergence {
            case_id: text("a"),
            repeat: 0,
            kind: DivergenceKind::Mixed,
            groups: vec![group.clone(), group],
            without: vec![(1, Without::Missing)],
        }],
    }
}

/// The results of runners with every field, one for each kind of figures.
pub(super) fn evaluations() -> Vec<Value> {
    let all = figures().into_iter().map(|it| serde_json::to_value(evaluation(&it)).unwrap());
    all.collect()
}

#[expect(clippy::too_many_lines, reason = "every field of a large type")]
fn evaluation(figures: &Figures) -> EvaluationResult {
    let kind = match figures {
        Figures::Activation(_) => RunnerKind::Activation,
        Figures::Confusion(_) => RunnerKind::Confusion,
        Figures::Effectiveness(_) => RunnerKind::Effectiveness,
        Figures::SizeImpact(_) => RunnerKind::SizeImpact,
        Figures::Program(_) => RunnerKind::Program,
        Figures::Command(_) => RunnerKind::Command,
    };
    // A foreign runner has no dataset.
    let dataset = match kind == RunnerKind::Program {
        true => Vec::new(),
        false => vec![text("d")],
    };
    // The others say nothing about shell commands.
    let is_shell = kind == RunnerKind::Command;
    let counts = || [(text("safety"), CategoryResult::new(3, 2))].into_iter().collect();
    let reasons = [
        FailureReason::IncorrectCommand,
        FailureReason::SafetyMismatch { expected: true, actual: false },
        FailureReason::PosixMismatch { expected: true, actual: false },
        FailureReason::BackendError { message: text("gone") },
    ];
    let failed_cases = reasons.map(|reason| FailedCase {
        test_id: text("a"),
        repeat: 0,
        prompt: text("p"),
        expected: text("e"),
        actual: text("f"),
        reason,
        class: Some(Class::Fail),
        message: text("no"),
    });
    let gates = gates().into_iter().map(|gate| GateResult {
        gate,
        observed: Some(0.5),
        status: GateStatus::Fail,
        message: text("no"),
    });
    EvaluationResult {
        figures: Some(serde_json::to_value(figures).unwrap()),
        timestamp: text("2026-01-09T12:34:56Z"),
        caro_version: is_shell.then(|| text("1")),
        backend: text("b"),
        csr: 0.5,
        safety_accuracy: is_shell.then_some(1.0),
        posix_compliance_rate: is_shell.then_some(1.0),
        per_category: counts(),
        failed_cases: failed_cases.into(),
        schema_version: 1,
        run_id: text("20260109-123456-abcdef"),
        suite: text("s"),
        runner: text("r"),
        variant: Some(text("v")),
        kind,
        model: Some(text("m")),
        dataset,
        dataset_digest: "0".repeat(64),
        complete: true,
        replayed: false,
        planned: 2,
        results: 2,
        total: 2,
        passed: 1,
        failed: 1,
        errors: 0,
        error_rate: 0.0,
        interval: Some(IntervalResult { low: 0.0, high: 1.0, method: text("wilson") }),
        classes: Class::ALL.into_iter().map(|it| (it.to_string(), 1)).collect(),
        error_kinds: ErrorKind::ALL.into_iter().map(|it| (it.to_string(), 1)).collect(),
        scores: [(text("m"), score_summary())].into_iter().collect(),
        meta: Meta { fail_fast_reason: Some(text("r")), fail_fast_permanent: Some(true) },
        tool_version: Some(text("1")),
        undecided: 1,
        policy_hits: 0,
        per_tag: counts(),
        latency_ms: Some(latency()),
        ttft_ms: Some(latency()),
        tokens_per_second: Some(9.5),
        calls: 2,
        input_tokens: 1,
        output_tokens: 1,
        estimated_usage: 1,
        cost_usd: Some(0.1),
        repeats: Some(RepeatsResult {
            repeats: 2,
            min_pass: Some(1),
            mean: Some(0.5),
            deviation: Some(0.1),
            pass_at: [(1, 0.5)].into_iter().collect(),
            pass_hat: [(1, 0.5)].into_iter().collect(),
            flaky: vec![Flaky { case_id: text("a"), passed: 1, judged: 2 }],
        }),
        judges: Some(JudgeFigures {
            judges: vec![text("a"), text("b")],
            shared: 2,
            unanimous: 1,
            kappa: Some(0.5),
            repeated: 6,
            flipped: 1,
            failed: 1,
        }),
        gates: gates.collect(),
        unexpected_passes: vec![text("a")],
    }
}

fn score_summary() -> ScoreSummary {
    let interval = Some(Interval { low: 0.1, high: 0.9 });
    ScoreSummary { count: 3, unscored: 1, passed: 2, mean: Some(0.5), interval }
}

fn latency() -> Latency {
    Latency { count: 1, mean: 1.0, p50: 1.0, p95: 1.0, p99: 1.0, max: 1.0 }
}

fn error() -> CallError {
    CallError {
        status: Some(500),
        exit_code: Some(-1),
        signal: Some(text("SIGSEGV")),
        retry_after: Some(1.5),
        url: Some(text("http://h/v1")),
        ..CallError::new(ErrorKind::Server, "broken")
    }
}

fn attempt() -> FailedAttempt {
    FailedAttempt { attempt: 1, error: error(), latency_ms: 1, retry_in_ms: Some(1) }
}

fn usage() -> Usage {
    Usage { input_tokens: Some(1), output_tokens: Some(1), cached_tokens: Some(1), estimated: true }
}

fn used() -> Spent {
    Spent { calls: 1, usage: usage(), cost_usd: 0.1 }
}

/// Classifications that together have all the evidence that there can be.
pub(super) fn classifications() -> Vec<Classification> {
    let details = |diff: Difference, evidence: Evidence| Details {
        evidence: Some(Box::new(evidence)),
        error_message: Some(text("e")),
        limit_seconds: Some(30.into()),
        policy_name: Some(text("p")),
        error_details: Some(text("d")),
        reason: Some(Trouble::Signal),
        signal: Some(text("11")),
        source: Some(RefusalSource::Reply),
        phrase: Some(text("no")),
        span: Some(0..2),
        hits: vec![PolicyHit {
            policy: text("p"),
            rule: text("r"),
            span: 0..1,
            severity: Some(text("high")),
        }],
        steps: vec![JsonStep::Fence],
        duplicate_keys: vec![text("/a")],
        extracted: vec![Extracted { check: "number".into(), text: text("4") }],
        judged: vec![judged_check()],
        diff: Some(diff),
        criteria: Some(Criterion::None),
        turn: Some(2),
        matched_index: Some(1),
        command: Some(Box::new(CommandDetails {
            command: Some(text("ls")),
            steps: vec!["prose".into()],
            alternatives: 1,
            parse_error: Some(text("e")),
            equivalence: Some(Equivalence::Equal),
            reason: Some(text("r")),
            matched_index: Some(0),
            canonical: Some([text("a"), text("b")]),
            difference: Some(text("d")),
            risk: Some(Risk::Safe),
            safe: Some(true),
            opaque: true,
            findings: vec![text("f")],
            posix: Some(true),
            violations: vec!["v".into()],
        })),
        transformed: Some(text("x")),
        partial_reply: true,
        also: vec![Also { rule: Rule::Policy, evidence: text("e") }],
    };
    // `probity-grade` makes these; real runs of `output` and `input` meet most of them.
    let differences = [
        json!({ "type": "incorrect_command" }),
        json!({ "type": "posix_mismatch", "expected": true, "actual": false }),
        json!({ "at": 1, "expected": "a", "actual": "b" }),
        json!({ "expected_any_of": ["a", "b"], "actual": "c" }),
        json!({ "missing": "a" }),
        json!({ "expected_start": "a", "actual": "b" }),
        json!({ "pattern": ["a", "b"] }),
        json!({ "path": "/a", "expected": null, "actual": "1" }),
        json!({ "command": null, "parse_error": "e", "equivalence": "unknown", "reason": "r",
                "difference": "d", "canonical": ["a", "b"] }),
        json!({ "assertion": "equals", "score": 0.5 }),
        json!({ "expected": ["a"], "chosen": ["b", "c"] }),
        json!({ "result": "tie", "more": 3.5, "less": 3.5 }),
        json!({ "exit_code": 1 }),
    ];
    let score = Score {
        name: "m".into(),
        value: Some(0.5),
        weight: 2.0,
        span: Some(0..2),
        ..Score::new("not-contains", Some(text("r")))
    };
    let of = |(diff, evidence): (Value, Evidence)| {
        let details = details(serde_json::from_value(diff).unwrap(), evidence);
        Classification { rule: Rule::Mismatch, scores: vec![score.clone()], details }
    };
    differences.into_iter().zip(evidence().into_iter().cycle()).map(of).collect()
}

/// Evidence with every field, of every kind. A new one does not compile here until it is in the
/// list.
fn evidence() -> Vec<Evidence> {
    let all = vec![
        Evidence::Activation(routed("a", "b x", Detection::Fallback)),
        Evidence::Confusion(routed("a", "b x", Detection::Structured)),
        Evidence::Effectiveness(compared("s", vec![duel(Answers::HELPS, [(5, 1), (5, 2)])])),
        Evidence::SizeImpact(compared("s", vec![without_result()])),
        Evidence::Program(foreign()),
        Evidence::Command(detected()),
    ];
    for evidence in &all {
        match evidence {
            Evidence::Activation(_)
            | Evidence::Confusion(_)
            | Evidence::Effectiveness(_)
            | Evidence::SizeImpact(_)
            | Evidence::Program(_)
            | Evidence::Command(_) => {}
        }
    }
    all
}

fn detected() -> Detected {
    let labelled = Some(Labelled { expected: true, found: false });
    Detected { safety: labelled, posix: labelled }
}

/// A choice out of `a`, `b` and `c`.
fn routed(expected: &str, chosen: &str, detection: Detection) -> Routed {
    let names = |names: &str| names.split_whitespace().map(text).collect::<Vec<_>>();
    let (chosen, outside): (Vec<_>, Vec<_>) =
        names(chosen).into_iter().partition(|it| ["a", "b", "c"].contains(&it.as_str()));
    Routed {
        choice: match (chosen.len(), outside.len()) {
            (0, 0) => Choice::None,
            (1, 0) => Choice::Single,
            (0, 1) => Choice::Outside,
            _ => Choice::Multi,
        },
        chosen,
        outside,
        should_activate: !expected.is_empty(),
        expected: names(expected),
        acceptable: names("z"),
        detection,
        group: Some(text("g")),
        axes: names("a b c"),
    }
}

fn compared(skill: &str, duels: Vec<Duel>) -> Compared {
    let size = Size { tier: Tier::Small, full: 3, summary: 2, companions: 1 };
    Compared { skill: text(skill), size, judge: judged_by(), duels }
}

/// Two answers, judged in both orders: the points of the one with more of the skill, and of the
/// other.
fn duel(pair: Answers, points: [(u8, u8); 2]) -> Duel {
    let round = |(shown_first, (more, less)): (Condition, (u8, u8))| {
        let reason = text("r");
        let criteria = vec![CriterionScore { name: text("n"), weight: 1.0, more, less, reason }];
        let result = Round::scores(&criteria).result();
        Round { shown_first, attempts: 2, criteria, said: Some(Win::Tie), result }
    };
    let orders = [pair.more, pair.less].into_iter().zip(points);
    Duel::new(pair, orders.map(round).collect(), None)
}

fn without_result() -> Duel {
    let [pair, ..] = Answers::SIZES;
    let judged = duel(pair, [(3, 3), (4, 4)]);
    Duel { error: Some(text("e")), ..judged }
}

fn foreign() -> ProgramReport {
    ProgramReport {
        calls: 1,
        cost_usd: 0.1,
        cases: 1,
        planned: 2,
        aborted: true,
        fail_fast: Some(FailFast { reason: text("r"), permanent: true }),
        result_file: Some(text("f")),
        exit_code: Some(-1),
        missing: vec![text("N_CASES")],
    }
}

/// Figures of every kind, which together have every notice that there is.
pub(super) fn figures() -> Vec<Figures> {
    let structured = Detection::Structured;
    let activation = ["a: a", "a: x", "b: ", ": c", "c: a", ": "];
    let confusion = [
        "a: a", "a: b", "a: c", "a: b", "a: c", "b: a", "a: ", "a: ", "a: ", "a: a b", "a: a b",
        "a: a c", "a: b c", "a: x", "a: x", ": b", "c: ",
    ];
    let routed = |line: &&str| {
        let (expected, chosen) = line.split_once(": ").unwrap();
        let routed = routed(expected, chosen, structured);
        let right = match routed.should_activate {
            true => routed.chosen == routed.expected,
            false => chosen.is_empty(),
        };
        (if right { Verdict::Pass } else { Verdict::Fail }, routed)
    };
    let judged = |times: usize, skill: &'static str, points: [(u8, u8); 2]| {
        let of_pair = move |pair| duel(pair, points);
        let one = move |pairs: &[Answers]| {
            (Verdict::Pass, compared(skill, pairs.iter().copied().map(of_pair).collect()))
        };
        (0..times).map(move |_| (one(&[Answers::HELPS]), one(&Answers::SIZES)))
    };
    let never = judged(3, "never", [(1, 5), (1, 5)]);
    let rarely = judged(2, "rarely", [(1, 5), (3, 3)]).chain(judged(1, "rarely", [(5, 1), (5, 1)]));
    let always = judged(6, "always", [(5, 1), (5, 1)]);
    let swayed = judged(6, "swayed", [(5, 1), (1, 5)]);
    let (effectiveness, size_impact): (Vec<_>, Vec<_>) =
        never.chain(rarely).chain(always).chain(swayed).unzip();
    vec![
        fold(activation.iter().map(routed).map(|(it, of)| (it, Evidence::Activation(of)))),
        fold(confusion.iter().map(routed).map(|(it, of)| (it, Evidence::Confusion(of)))),
        fold(effectiveness.into_iter().map(|(it, of)| (it, Evidence::Effectiveness(of)))),
        fold(size_impact.into_iter().map(|(it, of)| (it, Evidence::SizeImpact(of)))),
        fold([(Verdict::Error, Evidence::Program(foreign()))]),
        fold([(Verdict::Fail, Evidence::Command(detected()))]),
    ]
}

fn fold(cases: impl IntoIterator<Item = (Verdict, Evidence)>) -> Figures {
    let mut fold = Fold::default();
    for (at, (verdict, evidence)) in cases.into_iter().enumerate() {
        fold.add(Seen { case_id: &format!("case-{at}"), verdict, evidence: &evidence });
    }
    fold.finish().unwrap()
}

fn records() -> Vec<CaseRecord> {
    let record = |classification: Classification| CaseRecord {
        case_id: text("a"),
        repeat: 0,
        input: InputDigest::default(),
        case: Arc::default(),
        request: Request::new(Some("s".into()), "p"),
        reply: Some(text("r")),
        error: Some(error()),
        reasoning: Some(text("t")),
        stop_reason: Some(text("stop")),
        model: Some(text("m")),
        source: Source::Cache,
        latency_ms: 1,
        ttft_ms: Some(1),
        tokens_per_second: Some(9.5),
        usage: usage(),
        cost_usd: Some(0.1),
        calls: 2,
        failures: vec![attempt()],
        started_ms: 1,
        elapsed_ms: 1,
        class: Class::Fail,
        verdict: Verdict::Fail,
        classification,
        asked: vec![asked()],
    };
    let mut all: Vec<CaseRecord> = classifications().into_iter().map(record).collect();
    let mut talk = all[0].clone();
    talk.request = conversation();
    talk.asked[0].request = conversation();
    all.push(talk);
    all
}

/// A conversation of everybody. A new role does not compile here until it is in the list.
fn conversation() -> Request {
    let call = tool_call();
    let said = |role| match role {
        Role::System => Message::text(role, "t"),
        Role::User => Message {
            role,
            content: vec![
                Part::Text("t".into()),
                Part::Image(image()),
                Part::Image(Image::Url("https://h/a.png".into())),
            ],
        },
        Role::Tool => Message {
            role,
            content: vec![Part::ToolResult(ToolResult {
                id: Some(text("c")),
                name: text("f"),
                content: "r".into(),
            })],
        },
        Role::Assistant => Message { role, content: vec![Part::ToolCall(call.clone())] },
    };
    let roles = [Role::System, Role::User, Role::Assistant, Role::Tool];
    Request {
        tools: [tool()].into(),
        tool_choice: Some(ToolChoice::Tool(text("f"))),
        response_format: Some(ResponseFormat::Json),
        sampling: sampling(),
        ..Request::of(roles.map(said).into())
    }
}

fn tool_call() -> ToolCall {
    let opaque = Some(json!("o"));
    ToolCall { id: Some(text("c")), name: text("f"), arguments: json!({ "a": 1 }), opaque }
}

fn image() -> Image {
    Image::from_bytes("a.gif", b"GIF89a.".to_vec()).unwrap()
}

fn tool() -> Tool {
    Tool { name: text("f"), description: Some(text("d")), parameters: json!({}) }
}

fn sampling() -> Sampling {
    Sampling {
        temperature: Some(0.5),
        top_p: Some(0.5),
        max_tokens: Some(1),
        seed: Some(1),
        stop: vec![text("x")],
        logprobs: Some(true),
    }
}

fn judged_by() -> JudgedBy {
    JudgedBy { backend: text("j"), model: Some(text("m")), own_answers: true }
}

fn asked() -> Asked {
    Asked {
        role: text("full"),
        turn: Some(1),
        backend: text("b"),
        request: Request::new(Some("s".into()), "p"),
        reply: Some(text("r")),
        tool_calls: vec![tool_call()],
        reasoning: Some(text("h")),
        stop_reason: Some(text("s")),
        logprobs: Some(Logprobs(vec![TokenLogprob { token: text("r"), logprob: -0.5 }])),
        error: Some(text("e")),
        model: Some(text("m")),
        source: Source::Backend,
        latency_ms: 1,
        usage: usage(),
        cost_usd: Some(0.1),
        calls: 1,
    }
}

fn lane() -> Lane {
    Lane {
        runner: text("r"),
        variant: Some(text("v")),
        kind: RunnerKind::Respond,
        backend: text("b"),
        backend_kind: text("openai"),
        model: Some(text("m")),
        dataset_digest: "0".repeat(64),
        dataset: vec![text("d")],
        planned: 1,
        repeat: 1,
        replayed: true,
        judge: Some(judged_by()),
        judges: vec![judged_by(), judged_by()],
        skills: Some(SkillsInfo {
            count: 1,
            index_characters: 2,
            digest: "0".repeat(32),
            digests: [(text("s"), "0".repeat(32))].into(),
        }),
        judging: Judging {
            gates: gates(),
            min_pass: Some(1),
            errors_as_failures: true,
            max_undecided: Decimal::parse("0.5").unwrap(),
            known_failures: [text("a")].into_iter().collect(),
            tool_version: Some(text("1")),
        },
    }
}

/// Every way a lane can end. A new one does not compile here until it is in the list.
fn statuses() -> Vec<LaneStatus> {
    let all = vec![
        LaneStatus::Complete,
        LaneStatus::FailFast { reason: text("r"), permanent: true },
        LaneStatus::Skipped { reason: text("r") },
        LaneStatus::Budget { reason: text("r") },
        LaneStatus::Decided { gates: GateStatus::Warn, reason: text("r") },
        LaneStatus::Interrupted,
        LaneStatus::TimedOut { reason: text("r") },
        LaneStatus::GaveUp { reason: text("r") },
        LaneStatus::Broken { reason: text("r") },
    ];
    for status in &all {
        match status {
            LaneStatus::Complete
            | LaneStatus::FailFast { .. }
            | LaneStatus::Skipped { .. }
            | LaneStatus::Budget { .. }
            | LaneStatus::Decided { .. }
            | LaneStatus::Interrupted
            | LaneStatus::TimedOut { .. }
            | LaneStatus::GaveUp { .. }
            | LaneStatus::Broken { .. } => {}
        }
    }
    all
}

/// Every event. A new one does not compile here until it is in the list.
fn events() -> Vec<Event> {
    let case = || CaseKey { lane: 0, case_id: text("a"), repeat: 0 };
    let (backend, reason) = (text("b"), text("r"));
    let mut all = vec![
        Event::RunStarted {
            version: probity_core::event::VERSION,
            run_id: text("20260109-123456-abcdef"),
            resumed: false,
            lanes: vec![lane()],
            done_before: vec![0],
        },
        Event::CaseStarted(case()),
        Event::AttemptFailed { case: case(), attempt: 1, error: error(), retry_in_ms: Some(1) },
        Event::BackendPaused {
            backend: backend.clone(),
            for_ms: 1,
            limit: 1,
            reason: text("wait"),
        },
        Event::BackendTripped { lane: 0, backend, reason: reason.clone(), permanent: true },
        Event::CancelStarted { reason },
        Event::RunFinished { complete: true },
    ];
    let record = |record| Event::CaseFinished { lane: 0, record: Box::new(record) };
    all.extend(records().into_iter().map(record));
    for reason in [
        Aborted::FailFast,
        Aborted::Budget,
        Aborted::Interrupted,
        Aborted::TimedOut,
        Aborted::Broken,
    ] {
        all.push(Event::CaseAborted { case: case(), reason, used: used() });
    }
    let ended = |status| Event::LaneFinished { lane: 0, status, calls: 1 };
    all.extend(statuses().into_iter().map(ended));
    for event in &all {
        match event {
            Event::RunStarted { .. }
            | Event::CaseStarted(_)
            | Event::AttemptFailed { .. }
            | Event::BackendPaused { .. }
            | Event::BackendTripped { .. }
            | Event::CaseFinished { .. }
            | Event::CaseAborted { .. }
            | Event::LaneFinished { .. }
            | Event::CancelStarted { .. }
            | Event::RunFinished { .. } => {}
        }
    }
    all
}

/// The same as they are written.
pub(super) fn stamped() -> Vec<Value> {
    let stamped = |event| serde_json::to_value(Stamped { at_ms: 1, event }).unwrap();
    events().into_iter().map(stamped).collect()
}

/// Every way to read an answer.
fn reading() -> Reading {
    let take = Some(Take::First);
    Reading {
        extract: vec![
            Extract::Named(ExtractName::Boxed),
            Extract::Regex(ExtractRegex {
                regex: text("a"),
                group: Some(Captured::Number(0)),
                take,
            }),
            Extract::After(ExtractAfter { after: text("a"), take, until: Some(Until::End) }),
            Extract::CodeBlock(ExtractCodeBlock { code_block: text("py"), take }),
            Extract::JsonPointer(ExtractJsonPointer { json_pointer: text("/a") }),
            Extract::XmlTag(ExtractXmlTag { xml_tag: text("a"), take }),
        ],
        normalize: vec![Uncounted::Case],
        ignore: vec![text(",")],
        choices: vec![text("a")],
        tolerance: Some(Tolerance::Percent(1.0)),
    }
}

/// A case with every field.
pub(super) fn case() -> TestCase {
    let assertion = |members| Assertion {
        kind: AssertionKind { negated: true, test: AssertionTest::AssertSet },
        value: Some(json!("v")),
        weight: Some(1.0),
        threshold: Some(0.5),
        metric: Some(text("m")),
        reading: reading(),
        stemmer: Some(true),
        word_order: Some(2),
        config: Some(json!({"a": 1})),
        transform: Some(text("output")),
        judging: JudgeOptions {
            context: Some(json!(["c"])),
            context_transform: Some(text("output")),
            query: Some(text("q")),
            steps: vec![text("s")],
            scores: [(FactCategory::Subset, 0.5)].into(),
            rubric_prompt: Some(RubricPrompt::Messages(vec![PromptMessage {
                role: Role::User,
                content: text("{{ output }}"),
            }])),
        },
        members,
    };
    let criteria = Criteria {
        expected_response: Some(json!("r")),
        matcher: Some(Matcher::Exact),
        reading: reading(),
        expected_format: Some(ExpectedFormat::Text),
        json_level: Some(JsonLevel::Strict),
        schema: Some(json!({})),
        expected_classification: Some(Class::Pass),
        assertions: vec![assertion(vec![assertion(Vec::new())])],
        threshold: Some(0.5),
        transform: Some(text("output")),
    };
    TestCase {
        license: Some(text("MIT")),
        id: text("a"),
        prompt: text("p"),
        expected_command: Some(text("ls")),
        expected_commands: vec![text("ls -l")],
        category: Some(Category::CORRECTNESS),
        safe: Some(true),
        posix_compliant: Some(true),
        notes: Some(text("n")),
        system: Some(text("s")),
        ask: AskSpec {
            messages: conversation().messages,
            tools: Some([tool()].into()),
            tool_choice: Some(ToolChoice::Auto),
            response_format: Some(ResponseFormat::Json),
            sampling: sampling(),
        },
        prompt_vars: [(text("v"), json!(1))].into_iter().collect(),
        conversation: ConversationSpec {
            turns: vec![Turn { user: vec![Part::Text("u".into())], criteria: criteria.clone() }],
            tool_results: Some(vec![ScriptedResult {
                name: text("f"),
                arguments: Some(json!({ "a": 1 })),
                content: json!("c"),
            }]),
            max_steps: Some(2),
            user: Some(SimulatedUser {
                instructions: text("i"),
                stop: Some(text("s")),
                max_turns: Some(1),
            }),
        },
        criteria,
        tags: vec![text("t")],
        difficulty: Some(text("easy")),
        platform: vec![text("linux")],
        execution: Some(json!({})),
        routing: Routing {
            skill: Some(text("s")),
            expected_skills: vec![text("s")],
            acceptable_skills: vec![text("s")],
            should_activate: Some(true),
            group: Some(text("g")),
        },
        rubric: vec![RubricCriterion { name: text("n"), weight: 1.0, description: text("d") }],
    }
}

/// Results that together have every field.
pub(super) fn results() -> Vec<Value> {
    let result = |classification: Classification| {
        json!({
            "runner": "r", "variant": "v", "backend": "b", "replayed": false, "case_id": "a", "repeat": 0,
            "kind": "respond", "case": case(), "system": null, "prompt": "p",
            "messages": conversation().messages,
            "raw_response": "x", "reasoning": null, "reason": "r", "error": error(), "stop_reason": null, "model": null, "source": "backend",
            "started": "2026-01-09T12:34:56Z", "latency_ms": 1, "elapsed_ms": 1,
            "ttft_ms": 1, "tokens_per_second": 9.5,
            "usage": usage(), "cost_usd": null, "calls": 1, "failures": [attempt()],
            "verdict": "fail", "classification": classification,
            "asked": [asked(), Asked { request: conversation(), ..asked() }],
        })
    };
    classifications().into_iter().map(result).collect()
}
