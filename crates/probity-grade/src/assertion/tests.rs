#![expect(clippy::needless_pass_by_value, reason = "`json!` values read best inline")]

use probity_core::json::{Limits, parse_located};
use probity_load::case::Findings;
use serde_json::{Value, json};

use crate::{Compiler, Rules, classify};

/// Whether an assertion holds for a reply, and why not.
fn asserted(assertion: Value, reply: &str) -> Result<(), String> {
    asserted_with(assertion, reply, json!({}))
}

fn asserted_with(assertion: Value, reply: &str, more: Value) -> Result<(), String> {
    let mut line = json!({ "case_id": "c", "raw_response": reply, "assert": [assertion] });
    for (key, value) in more.as_object().unwrap() {
        line[key] = value.clone();
    }
    let text = line.to_string();
    let node = parse_located(&text, &Limits::default()).unwrap();
    let mut findings = Findings::default();
    let record = probity_load::run_result::decode(&node, &mut findings)
        .unwrap_or_else(|| panic!("{findings:?}"));
    let rules = Rules::default();
    let expectation = Compiler::new(&rules)
        .compile(&record.case)
        .map_err(|problems| problems[0].message.clone())?;
    let scores = classify(&expectation, &record.result).scores;
    let score = &scores[0];
    if score.passed { Ok(()) } else { Err(score.reason.clone().unwrap_or_default()) }
}

#[test]
fn each_assertion_holds_and_fails_and_its_negation_does_the_opposite() {
    let schema = json!({ "type": "object", "required": ["a"] });
    for (assertion, holds, fails) in [
        (json!({ "type": "equals", "value": "Paris" }), "Paris", "Paris."),
        (json!({ "type": "equals", "value": { "a": 1 } }), " {\"a\": 1.0} ", "{\"a\": 2}"),
        (json!({ "type": "contains", "value": "aris" }), "Paris", "PARIS"),
        (json!({ "type": "icontains", "value": "aris" }), "PARIS", "Lyon"),
        (json!({ "type": "contains-any", "value": ["x", "ar"] }), "Paris", "Lyon"),
        (json!({ "type": "contains-any", "value": "x, ar" }), "Paris", "Lyon"),
        (json!({ "type": "contains-all", "value": ["P", "ar"] }), "Paris", "Pis"),
        (json!({ "type": "icontains-any", "value": ["X", "AR"] }), "Paris", "Lyon"),
        (json!({ "type": "icontains-all", "value": ["p", "AR"] }), "Paris", "Pis"),
        (json!({ "type": "starts-with", "value": "Par" }), "Paris", "a Paris"),
        (json!({ "type": "regex", "value": "^P.+s$" }), "Paris", "Lyon"),
        (json!({ "type": "is-json" }), "[1]", "[1] or so"),
        (json!({ "type": "is-json", "value": schema }), "{\"a\":1}", "{}"),
        (json!({ "type": "contains-json" }), "so: {\"a\":1}", "so"),
        (json!({ "type": "contains-json", "value": schema }), "so: {\"a\":1}", "so: {\"b\":1}"),
        (json!({ "type": "levenshtein", "value": "Paris", "threshold": 2 }), "Pairs", "London"),
        (json!({ "type": "word-count", "value": 2 }), "two words", "three words here"),
        (json!({ "type": "word-count", "value": { "min": 2 } }), "two words", "one"),
        (json!({ "type": "word-count", "value": { "max": 2 } }), "two words", "three words here"),
        (json!({ "type": "is-refusal" }), "I'm sorry, but I can't help with that.", "Gladly."),
    ] {
        assert_eq!(asserted(assertion.clone(), holds), Ok(()), "{assertion}");
        assert!(asserted(assertion.clone(), fails).is_err(), "{assertion}");
        let mut negated = assertion.clone();
        negated["type"] = json!(format!("not-{}", assertion["type"].as_str().unwrap()));
        assert!(asserted(negated.clone(), holds).is_err(), "{negated}");
        assert_eq!(asserted(negated.clone(), fails), Ok(()), "{negated}");
    }
}

#[test]
fn measurements_are_compared_with_a_threshold() {
    let latency = json!({ "type": "latency", "threshold": 100 });
    assert_eq!(asserted_with(latency.clone(), "x", json!({ "latency_ms": 100 })), Ok(()));
    assert!(asserted_with(latency.clone(), "x", json!({ "latency_ms": 101 })).is_err());
    assert_eq!(asserted(latency, "x"), Err("no latency was recorded".to_owned()));
    let cost = json!({ "type": "cost", "threshold": 0.01 });
    assert_eq!(asserted_with(cost, "x", json!({ "cost_usd": 0.002 })), Ok(()));
}

#[test]
fn the_vendors_words_for_stopping_are_the_same_reason() {
    let stop = json!({ "type": "finish-reason", "value": "stop" });
    for word in ["stop", "end_turn", "STOP"] {
        assert_eq!(asserted_with(stop.clone(), "x", json!({ "stop_reason": word })), Ok(()));
    }
    assert!(asserted_with(stop, "x", json!({ "stop_reason": "length" })).is_err());
}

#[test]
fn a_set_holds_by_weight() {
    let set = |threshold: Value| {
        json!({ "type": "assert-set", "threshold": threshold, "assert": [
            { "type": "contains", "value": "a", "weight": 3 },
            { "type": "contains", "value": "z" },
        ] })
    };
    assert_eq!(asserted(set(json!(0.75)), "a"), Ok(()));
    assert_eq!(asserted(set(json!(0.8)), "a"), Err("`contains`: `z` is missing".to_owned()));
    assert!(asserted(set(json!(null)), "a").is_err());
}

#[test]
fn an_assertion_without_weight_is_only_reported() {
    let line = json!({ "case_id": "c", "raw_response": "x", "assert": [
        { "type": "contains", "value": "y", "weight": 0, "metric": "style" },
        { "type": "contains", "value": "x" },
    ] });
    let text = line.to_string();
    let node = parse_located(&text, &Limits::default()).unwrap();
    let mut findings = Findings::default();
    let record = probity_load::run_result::decode(&node, &mut findings).unwrap();
    let rules = Rules::default();
    let expectation = Compiler::new(&rules).compile(&record.case).unwrap();
    let classification = classify(&expectation, &record.result);
    insta::assert_snapshot!(
        serde_json::to_string(&classification.scores).unwrap(),
        @r#"[{"name":"style","type":"contains","value":0.0,"passed":false,"weight":0.0,"reason":"`y` is missing"},{"name":"contains","type":"contains","value":1.0,"passed":true,"weight":1.0,"span":[0,1]}]"#
    );
}

#[test]
fn what_cannot_be_asserted_is_said_at_load_time() {
    for (assertion, message) in [
        (json!({ "type": "contains" }), "the value of `contains` must be a string"),
        (
            json!({ "type": "contains-all", "value": [] }),
            "the value of `contains-all` must be a list of strings",
        ),
        (
            json!({ "type": "regex", "value": "(" }),
            "the regular expression does not compile: unclosed group",
        ),
        (json!({ "type": "latency" }), "`latency` needs a `threshold` in milliseconds"),
        (
            json!({ "type": "levenshtein", "value": "x", "threshold": 1e9 }),
            "the threshold must be from 0 to 200 edits",
        ),
        (
            json!({ "type": "word-count", "value": "many" }),
            "the value of `word-count` must be a number, or a table with `min` and `max`",
        ),
        (json!({ "type": "is-json", "value": 3 }), "a JSON Schema is a table, or true or false"),
    ] {
        assert_eq!(asserted(assertion.clone(), "x"), Err(message.to_owned()), "{assertion}");
    }
}
