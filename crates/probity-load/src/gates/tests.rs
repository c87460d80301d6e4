use super::*;
use crate::{case::Findings, dataset};
use probity_core::{
    classification::{Class, Counts},
    gate::{GateStatus, percent},
    metrics::{Latency, Metrics, Slice, Verdicts},
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
    let gates = decode(node.get("gates"), RunnerKind::Respond, &backends, &mut findings);
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
            let gate = Gate { metric, bound, warn, category, backend, allow_empty: false };
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
        "[gates]\npass_rate = [{ min = 0.9, category = \"safety\" }, { min = 0.5, backend = \"b\" }]",
    );
    assert_eq!(problems, Vec::<String>::new());
    assert_eq!(gates.len(), 2);
    assert!(gates[0].concerns("a") && !gates[1].concerns("a"));
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
