//! What is made of results: figures, evaluations, comparisons.

use probity_core::{
    case::Category,
    classification::{Class, Verdict},
    consistency::{
        Consistency, Divergence, DivergenceKind, Diverging, Group, Pair, Uncompared, Without,
    },
    evaluation::{
        CategoryResult, EvaluationResult, FailedCase, FailureReason, GateResult, IntervalResult,
        Meta, RepeatsResult,
    },
    evidence::{
        Choice, Compared, Condition, CriterionScore, Detection, Duel, Pair as Answers, Round,
        Routed, Size, Tier, Win,
    },
    failure::ErrorKind,
    gate::{Bound, Decimal, Gate, GateStatus, Metric},
    kind::{
        AgentEnd, AgentWork, Detected, Evidence, FailFast, Figures, Fold, Labelled, ProgramReport,
        RunnerKind, Seen,
    },
    metrics::{Flaky, Latency, ScoreSummary},
    opinion::{Combine, JudgeFigures, Judged, JudgedCheck, Opinion, Said, Statement},
};
use probity_stats::Interval;
use serde_json::Value;

use super::{judged_by, text};

pub(super) fn judged_check() -> JudgedCheck {
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

pub(super) fn gates() -> Vec<Gate> {
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
    let derived = Gate { metric: Metric::Derived("f1".into()), category: None, ..gate.clone() };
    vec![gate.clone(), Gate { bound: most, ..gate }, score, derived]
}

/// The agreement of two backends with every field.
pub(crate) fn consistency() -> Consistency {
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
pub(crate) fn evaluations() -> Vec<Value> {
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
        Figures::Agent(_) => RunnerKind::Agent,
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
        imported: Some(text("promptfoo")),
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
        derived: [(text("f1"), Some(0.5)), (text("none"), None)].into_iter().collect(),
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

/// Evidence with every field, of every kind. A new one does not compile here until it is in the
/// list.
pub(super) fn evidence() -> Vec<Evidence> {
    let all = vec![
        Evidence::Activation(routed("a", "b x", Detection::Fallback)),
        Evidence::Confusion(routed("a", "b x", Detection::Structured)),
        Evidence::Effectiveness(compared("s", vec![duel(Answers::HELPS, [(5, 1), (5, 2)])])),
        Evidence::SizeImpact(compared("s", vec![without_result()])),
        Evidence::Agent(agent()),
        Evidence::Program(foreign()),
        Evidence::Command(detected()),
    ];
    for evidence in &all {
        match evidence {
            Evidence::Activation(_)
            | Evidence::Confusion(_)
            | Evidence::Effectiveness(_)
            | Evidence::SizeImpact(_)
            | Evidence::Agent(_)
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

fn agent() -> AgentWork {
    AgentWork {
        world: text("empty"),
        ended: AgentEnd::Steps,
        steps: 3,
        calls: 4,
        failed_calls: 1,
        malformed: 1,
        commands_ms: 12,
    }
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
pub(crate) fn figures() -> Vec<Figures> {
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
        fold([(Verdict::Fail, Evidence::Agent(agent()))]),
    ]
}

fn fold(cases: impl IntoIterator<Item = (Verdict, Evidence)>) -> Figures {
    let mut fold = Fold::default();
    for (at, (verdict, evidence)) in cases.into_iter().enumerate() {
        fold.add(Seen { case_id: &format!("case-{at}"), verdict, evidence: &evidence });
    }
    fold.finish().unwrap()
}
