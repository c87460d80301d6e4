use super::*;
use crate::{case::Findings, dataset};
use probity_core::{
    classification::{Class, Counts},
    derived::Derivation,
    gate::{GateStatus, percent},
    metrics::{Latency, Mean, Metrics, ScoreFigures, ScoreSlice, Slice, Verdicts},
    record::LaneKey,
};

fn slice(pass: u64, fail: u64, error: u64) -> Slice {
    let mut classes = Counts::default();
    classes.add_many(Class::Pass, pass);
    classes.add_many(Class::Refusal, fail);
    classes.add_many(Class::Error, error);
    Slice { verdicts: Verdicts { pass, fail, error, undecided: 0 }, classes, unjudged: error }
}

fn metrics(pass: u64, fail: u64, error: u64) -> Metrics {
    Metrics { all: slice(pass, fail, error), ..Metrics::default() }
}

fn decoded(toml: &str) -> (Vec<Gate>, Vec<String>) {
    let node = dataset::parse_toml(toml).unwrap();
    let mut findings = Findings::default();
    let backends = ["a".to_owned(), "b".to_owned()];
    let derived = [Derivation { name: "f1".to_owned(), expression: "sum.tp".parse().unwrap() }];
    let names = Names { variants: &["terse"], backends: &backends, derived: &derived };
    let gates = decode(node.get("gates"), RunnerKind::Respond, &names, &mut findings);
    (gates, findings.0.into_iter().map(|it| it.message).collect())
}

#[track_caller]
fn gate(toml: &str) -> Gate {
    let (gates, problems) = decoded(&format!("gates = {{ {toml} }}"));
    assert_eq!(problems, Vec::<String>::new());
    <[Gate; 1]>::try_from(gates).unwrap().into_iter().next().unwrap()
}

#[test]
fn shares_are_compared_as_whole_numbers() {
    let gate = gate("csr = { pass = 0.948, warn = 0.90 }");
    for (pass, status) in [
        (1000, GateStatus::Pass),
        (948, GateStatus::Pass),
        (947, GateStatus::Warn),
        (900, GateStatus::Warn),
        (899, GateStatus::Fail),
        (0, GateStatus::Fail),
    ] {
        assert_eq!(gate.judge(&metrics(pass, 1000 - pass, 0)).status, status, "{pass}");
    }
    // What a float calls 0.1 + 0.2.
    let third = self::gate("pass_rate = \"30%\"");
    assert_eq!(third.judge(&metrics(3, 7, 0)).status, GateStatus::Pass);
    assert_eq!(third.judge(&metrics(299_999, 700_001, 0)).status, GateStatus::Fail);
}

#[test]
fn a_gate_on_nothing_fails_unless_allowed() {
    let nothing = metrics(0, 0, 0);
    assert_eq!(gate("pass_rate = 0.5").judge(&nothing).status, GateStatus::Fail);
    let allowed = gate("pass_rate = { min = 0.5, allow_empty = true }");
    assert_eq!(allowed.judge(&nothing).status, GateStatus::Empty);
    // Errors alone are no reason to let it pass.
    assert_eq!(allowed.judge(&metrics(0, 0, 3)).status, GateStatus::Fail);
    assert_eq!(gate("safety = 1.0").judge(&metrics(5, 0, 0)).status, GateStatus::Fail);
    assert_eq!(gate("latency_p95 = \"1s\"").judge(&metrics(5, 0, 0)).status, GateStatus::Fail);
}

#[test]
fn every_metric_is_seen() {
    let latency = Latency { count: 9, mean: 1.0, p50: 2.0, p95: 3.0, p99: 4.0, max: 5.0 };
    let full = Metrics {
        policy_hits: 2,
        unexpected_failures: 1,
        latency: Some(latency),
        ttft: Some(Latency { count: 9, mean: 6.0, p50: 7.0, p95: 8.0, p99: 9.0, max: 10.0 }),
        cost_usd: 0.5,
        priced: 10,
        input_tokens: 100,
        output_tokens: 20,
        ..metrics(6, 3, 1)
    };
    let seen: Vec<String> = Metric::all()
        .map(|(metric, name)| {
            let bound = Bound::AtLeast(Decimal::whole(0));
            let (warn, category, backend) = (None, None, None);
            let (variant, allow_empty) = (None, false);
            let gate = Gate { metric, bound, warn, category, backend, variant, allow_empty };
            let observed = gate.judge(&full).observed;
            format!("{name}: {}", observed.map_or("nothing".to_owned(), |it| it.to_string()))
        })
        .collect();
    insta::assert_snapshot!(seen.join("\n"));
}

#[test]
fn limits_have_the_side_that_makes_sense() {
    assert!(matches!(gate("pass_rate = 0.9").bound, Bound::AtLeast(_)));
    assert!(matches!(gate("refusal_rate = 0.02").bound, Bound::AtMost(_)));
    assert!(matches!(gate("latency_p95 = \"3s\"").bound, Bound::AtMost(_)));
    assert!(matches!(gate("refusal_rate = { min = 1.0 }").bound, Bound::AtLeast(_)));
    assert_eq!(gate("latency_p95 = \"2.5s\"").bound, Bound::AtMost(Decimal::whole(2500)));
}

#[test]
fn several_gates_on_one_metric() {
    let (gates, problems) = decoded(
        "[gates]\npass_rate = [{ min = 0.9, category = \"safety\" }, { min = 0.5, backend = \"b\" },
         { min = 0.6, variant = \"terse\" }]",
    );
    assert_eq!(problems, Vec::<String>::new());
    let concerned = |variant, backend| {
        let lane = LaneKey { runner: "r", variant, backend };
        gates.iter().map(|it| it.concerns(lane)).collect::<Vec<_>>()
    };
    assert_eq!(concerned(None, "a"), [true, false, false]);
    assert_eq!(concerned(Some("terse"), "b"), [true, true, true]);
    assert_eq!(concerned(Some("chatty"), "b"), [true, true, false]);
}

#[test]
fn what_makes_no_gate_is_named() {
    let (gates, problems) = decoded(
        "[gates]\npas_rate = 0.9\npass_rate = 94.8\nfailed = 0.5\nlatency_p95 = \"soon\"\n\
         error_rate = { warn = 0.1 }\ncsr = { pass = 0.9, warn = 0.95 }\n\
         cost_usd = { max = 1, category = \"safety\" }\n\
         passed = { min = 1, backend = \"c\" }\n",
    );
    assert_eq!(gates.len(), 1);
    insta::assert_snapshot!(problems.join("\n"));
    assert_eq!(decoded("gates = false").0, Vec::new());
    assert_eq!(decoded("").0, Gate::defaults(RunnerKind::Respond));
}

#[test]
fn gates_are_kept_as_they_were_written() {
    for text in [
        "csr = { pass = 0.948, warn = 0.90, backend = \"a\" }",
        "latency_p99 = \"1500ms\"",
        "wrong_format_count = 0",
        "posix = { min = \"95%\", allow_empty = true }",
        "\"score.is it good?\" = { min = 0.8, warn = 0.7, category = \"safety\" }",
    ] {
        let gate = gate(text);
        let kept = serde_json::to_string(&gate).unwrap();
        assert_eq!(serde_json::from_str::<Gate>(&kept).unwrap(), gate, "{kept}");
    }
}

#[test]
fn gates_read_as_sentences() {
    let failing = metrics(947, 53, 0);
    let sentences: Vec<String> = [
        "csr = { pass = 0.948, warn = 0.90 }",
        "safety = 1.0",
        "refusal_rate = 0.005",
        "failed = 60",
        "latency_p95 = \"2.5s\"",
        "cost_usd = { max = 0.25, allow_empty = true }",
    ]
    .into_iter()
    .map(|text| gate(text).judge(&failing).sentence())
    .collect();
    insta::assert_snapshot!(sentences.join("\n"));
}

/// Figures with the values of one score: of all results, and of those of a category.
fn scored(values: &[f64], of_safety: &[f64]) -> Metrics {
    let slice = |values: &[f64]| {
        let mut mean = Mean::default();
        values.iter().for_each(|it| mean.push(*it));
        ScoreSlice { mean, undecided: 0 }
    };
    let categories = [(Category::SAFETY, slice(of_safety))].into();
    let figures = ScoreFigures { all: slice(values), categories, ..ScoreFigures::default() };
    Metrics { scores: [("tone".to_owned(), figures)].into(), ..metrics(3, 0, 0) }
}

#[test]
fn means_of_scores_are_held_against_the_digits_of_the_limit() {
    // As floats, the first is 0.7999… and the second is 0.10000000000000002.
    for (values, limit) in [
        (&[0.7, 0.8, 0.9][..], "0.8"),
        (&[0.1, 0.1, 0.1], "0.1"),
        (&[1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0, 1.0], "0.5"),
        (&[1.0, 0.0, 1.0], "0.666666666666"),
    ] {
        let (met, seen) = (gate(&format!("\"score.tone\" = {limit}")), scored(values, &[]));
        assert_eq!(met.judge(&seen).status, GateStatus::Pass, "{values:?} {limit}");
        let most = gate(&format!("\"score.tone\" = {{ max = {limit} }}"));
        let is_above = limit == "0.666666666666";
        assert_eq!(most.judge(&seen).status == GateStatus::Fail, is_above, "{values:?} {limit}");
    }
    let close = gate("\"score.tone\" = { min = 0.9, warn = 0.8 }");
    assert_eq!(close.judge(&scored(&[0.8], &[])).status, GateStatus::Warn);
    assert_eq!(close.judge(&scored(&[0.7999], &[])).status, GateStatus::Fail);
    let of_safety = gate("\"score.tone\" = { min = 0.5, category = \"safety\" }");
    assert_eq!(of_safety.judge(&scored(&[0.1, 0.9], &[0.9])).status, GateStatus::Pass);
    assert_eq!(of_safety.judge(&scored(&[0.9, 0.1], &[0.1])).status, GateStatus::Fail);
}

#[test]
fn a_score_without_values_passes_no_gate() {
    let mut none = scored(&[], &[]);
    let wanted = gate("\"score.tone\" = { min = 0 }");
    let allowed = gate("\"score.tone\" = { min = 0, allow_empty = true }");
    assert_eq!(wanted.judge(&none).sentence(), "score.tone at least 0: no result has a value");
    assert_eq!(wanted.judge(&none).status, GateStatus::Fail);
    assert_eq!(allowed.judge(&none).status, GateStatus::Empty);
    // Nobody knows what those would have come to that are errors.
    assert_eq!(allowed.judge(&metrics(0, 0, 3)).status, GateStatus::Fail);
    none.scores.get_mut("tone").unwrap().summary.unscored = 1;
    assert_eq!(allowed.judge(&none).status, GateStatus::Fail);
    let mut partly = scored(&[1.0, 1.0, 1.0], &[]);
    partly.scores.get_mut("tone").unwrap().all.undecided = 1;
    assert_eq!(
        wanted.judge(&partly).sentence(),
        "score.tone at least 0: 1.0000 (mean of 3); 1 of 4 undecided, which is not allowed"
    );
    partly.max_undecided = Decimal::parse("0.25").unwrap();
    assert_eq!(wanted.judge(&partly).status, GateStatus::Pass);
}

#[test]
fn what_is_not_all_is_not_shown_as_all() {
    assert_eq!(percent(9999, 10_000), "99.9 %");
    assert_eq!(percent(1, 10_000), "0.1 %");
    assert_eq!(percent(10_000, 10_000), "100.0 %");
    assert_eq!(percent(0, 0), "n/a");
}

#[test]
fn decimals_are_what_was_written() {
    for (text, shown) in [
        ("0.948", "0.948"),
        ("94.8%", "0.948"),
        ("1", "1"),
        ("1.0", "1"),
        (".5", "0.5"),
        ("100 %", "1"),
        ("5e-1", "0.5"),
    ] {
        assert_eq!(Decimal::parse(text).map(|it| it.to_string()).as_deref(), Some(shown), "{text}");
    }
    for text in ["", ".", "-1", "-1e3", "1e30", "nan", "99999999999999999999", "0.1234567890123"] {
        assert_eq!(Decimal::parse(text), None, "{text}");
    }
}

#[test]
fn a_gate_can_be_on_a_derived_figure_that_is_there() {
    let gate = gate("\"derived.f1\" = { max = 12.5 }");
    assert_eq!(gate.to_string(), "derived.f1 at most 12.5");
    assert_eq!(gate.judge(&metrics(1, 0, 0)).status, GateStatus::Fail);
    let (_, problems) = decoded("gates = { \"derived.f2\" = 1 }");
    assert_eq!(problems, ["the runner has no derived figure `f2`"]);
}
