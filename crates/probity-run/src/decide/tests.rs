use probity_core::{
    kind::RunnerKind,
    metrics::{Fold, ResultFacts},
    record::{Source, Usage},
};
use proptest::prelude::*;

use super::*;

fn gate(metric: Metric, bound: &str, warn: Option<&str>, category: Option<Category>) -> Gate {
    let limit = Decimal::parse(bound).unwrap();
    let bound = if metric.is_good() { Bound::AtLeast(limit) } else { Bound::AtMost(limit) };
    Gate {
        metric,
        bound,
        warn: warn.map(|it| Decimal::parse(it).unwrap()),
        category,
        backend: None,
        variant: None,
        allow_empty: true,
    }
}

fn lane(gates: Vec<Gate>, planned: u64) -> Lane {
    Lane {
        runner: "r".to_owned(),
        variant: None,
        kind: RunnerKind::Respond,
        backend: "b".to_owned(),
        backend_kind: "echo".to_owned(),
        model: None,
        dataset_digest: String::new(),
        dataset: Vec::new(),
        planned,
        repeat: 1,
        replayed: false,
        imported: None,
        judge: None,
        judges: Vec::new(),
        skills: None,
        judging: Judging { gates, ..Judging::default() },
    }
}

fn seen(place: u64, verdict: Verdict) -> Seen {
    let class = match verdict {
        Verdict::Pass | Verdict::Undecided => Class::Pass,
        Verdict::Fail => Class::Refusal,
        Verdict::Error => Class::Timeout,
    };
    let category = if place.is_multiple_of(3) { Category::SAFETY } else { Category::POSIX };
    Seen { place, category: Some(category), class, verdict }
}

fn planned(all: u64) -> Planned {
    let safety = all.div_ceil(3);
    let categories = BTreeMap::from([(Category::SAFETY, safety), (Category::POSIX, all - safety)]);
    Planned { all, categories }
}

/// What the gates come to when everything is in.
fn at_the_end(lane: &Lane, verdicts: &[Verdict]) -> GateStatus {
    let mut fold = Fold::new(&lane.judging);
    for (place, verdict) in (0..).zip(verdicts) {
        let Seen { category, class, verdict, .. } = seen(place, *verdict);
        fold.add(ResultFacts {
            case_id: format!("{place:06}"),
            repeat: 0,
            category,
            tags: Vec::new(),
            group: None,
            class,
            verdict,
            breaks_policy: false,
            scores: Vec::new(),
            error: None,
            source: Source::Backend,
            latency_ms: 1,
            ttft_ms: None,
            tokens_per_second: None,
            usage: Usage::default(),
            cost_usd: None,
            calls: 1,
            worker: None,
            started_ms: 0,
            elapsed_ms: 1,
            evidence: None,
            judged: Vec::new(),
        });
    }
    let metrics = fold.finish();
    lane.judging.gates.iter().map(|gate| gate.judge(&metrics).status).max().unwrap()
}

#[test]
fn a_hopeless_lane_is_decided_early() {
    let lane = lane(vec![gate(Metric::PassRate, "0.9", None, None)], 100);
    let mut decider = Decider::new(&lane, &planned(100), Certainty::Exact).unwrap();
    let found = (0..100).position(|at| decider.observe(seen(at, Verdict::Fail)).is_some());
    // The eleventh failure of a hundred is one too many.
    assert_eq!(found, Some(10));
}

#[test]
fn a_gate_that_is_known_only_at_the_end_keeps_the_others_going() {
    use probity_core::gate::Quantile;
    let slow = gate(Metric::Latency(Quantile::P95), "100", None, None);
    let both = lane(vec![gate(Metric::PassRate, "0.5", None, None), slow.clone()], 10);
    let mut decider = Decider::new(&both, &planned(10), Certainty::Exact).unwrap();
    assert!((0..10).all(|at| decider.observe(seen(at, Verdict::Pass)).is_none()));
    // But one that has failed is enough.
    let mut decider = Decider::new(&both, &planned(10), Certainty::Exact).unwrap();
    let found = (0..10).find_map(|at| decider.observe(seen(at, Verdict::Fail)));
    assert_eq!(found, Some(GateStatus::Fail));
    assert!(Decider::new(&lane(vec![slow], 10), &planned(10), Certainty::Exact).is_none());
}

#[test]
fn with_alpha_results_count_in_their_turn() {
    let given = lane(vec![gate(Metric::PassRate, "0.9", None, None)], 1000);
    let of = || Decider::new(&given, &planned(1000), Certainty::Alpha(0.05)).unwrap();
    let mut in_order = of();
    let found = (0..1000).position(|at| in_order.observe(seen(at, Verdict::Fail)).is_some());
    assert!(found.is_some_and(|at| at < 20), "{found:?}");
    // The first is still out, so nothing is known of the order that was drawn.
    let mut late = of();
    assert!((1..1000).all(|at| late.observe(seen(at, Verdict::Fail)).is_none()));
    assert_eq!(late.observe(seen(0, Verdict::Fail)), Some(GateStatus::Fail));
}

fn verdicts() -> impl Strategy<Value = Vec<Verdict>> {
    let any = prop_oneof![
        6 => Just(Verdict::Pass),
        3 => Just(Verdict::Fail),
        1 => Just(Verdict::Error),
    ];
    proptest::collection::vec(any, 1..60)
}

fn gates() -> impl Strategy<Value = Vec<Gate>> {
    let of_rate = |category: Option<Category>| {
        (0..=10_u32, 0..=10_u32).prop_map(move |(a, b)| {
            let (low, high) = (a.min(b), a.max(b));
            let [low, high] = [low, high].map(|it| format!("{}%", it * 10));
            gate(Metric::PassRate, &high, Some(&low), category.clone())
        })
    };
    let one = prop_oneof![
        of_rate(None),
        of_rate(Some(Category::SAFETY)),
        (0..20_u32).prop_map(|most| gate(Metric::Failed, &most.to_string(), None, None)),
        (0..20_u32).prop_map(|most| gate(Metric::Passed, &most.to_string(), None, None)),
        (0..=10_u32).prop_map(|it| {
            gate(Metric::ClassRate(Class::Refusal), &format!("{}%", it * 10), None, None)
        }),
        (0..=10_u32).prop_map(|it| gate(Metric::ErrorRate, &format!("{}%", it * 10), None, None)),
    ];
    proptest::collection::vec(one, 1..4)
}

proptest! {
    #[test]
    fn what_is_decided_is_what_comes_out(gates in gates(), verdicts in verdicts()) {
        let all = verdicts.len() as u64;
        let lane = lane(gates, all);
        let Some(mut decider) = Decider::new(&lane, &planned(all), Certainty::Exact) else {
            return Ok(());
        };
        let found = (0..).zip(&verdicts).find_map(|(at, it)| decider.observe(seen(at, *it)));
        if let Some(known) = found {
            let end = at_the_end(&lane, &verdicts);
            match known {
                GateStatus::Fail => prop_assert_eq!(end, GateStatus::Fail),
                // A category of errors alone is empty at the end, and that is allowed here.
                status @ (GateStatus::Pass | GateStatus::Empty | GateStatus::Warn) => prop_assert!(end <= status.max(GateStatus::Empty), "{:?} {:?}", end, status),
            }
        }
    }
}
