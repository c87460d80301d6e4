#![expect(clippy::needless_pass_by_value, reason = "`json!` values read best inline")]

use probity_core::{
    classification::Classification,
    json::{Limits, parse_located},
    opinion::{Assessment, Combine, Opinion, Said},
    run_result::RunResult,
};
use probity_load::case::Findings;
use serde_json::{Value, json};

use crate::{Compiler, Rules, classify};

/// Whether an assertion holds for a reply, and why not.
fn asserted(assertion: Value, reply: &str) -> Result<(), String> {
    asserted_with(assertion, reply, json!({}))
}

fn asserted_with(assertion: Value, reply: &str, more: Value) -> Result<(), String> {
    let scores = classified(assertion, reply, more, &[])?.scores;
    let score = &scores[0];
    if score.passed { Ok(()) } else { Err(score.reason.clone().unwrap_or_default()) }
}

fn classified(
    assertion: Value,
    reply: &str,
    more: Value,
    assessments: &[Assessment],
) -> Result<Classification, String> {
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
    Ok(classify(&expectation, &RunResult { assessments, ..record.result }))
}

#[test]
#[expect(clippy::too_many_lines, reason = "a flat list of all assertions")]
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
        (json!({ "type": "gleu", "value": ["x", "the cat sat"] }), "The cat sat.", "a dog"),
        (json!({ "type": "meteor", "value": "the cats sat" }), "the cat sat", "a dog"),
        (json!({ "type": "is-xml", "value": "a.b, a.c" }), "<a><b/><c/></a>", "<a><b/></a>"),
        (json!({ "type": "contains-xml", "value": ["b"] }), "So <b>1</b>.", "So <a><b/></a>."),
        (
            json!({ "type": "is-sql", "value": { "tables": ["t"] } }),
            "SELECT a FROM t",
            "SELECT a FROM u",
        ),
        (
            json!({ "type": "tool-call-f1", "value": "a, b", "threshold": 0.6 }),
            r#"[{"name":"a"}]"#,
            r#"[{"name":"c"}]"#,
        ),
        (json!({ "type": "regex", "value": "^P.+s$" }), "Paris", "Lyon"),
        (json!({ "type": "is-json" }), "[1]", "[1] or so"),
        (json!({ "type": "is-json", "value": schema }), "{\"a\":1}", "{}"),
        (json!({ "type": "exact-match", "value": ["Paris", "Lyon"] }), " Lyon\n", "lyon"),
        (
            json!({ "type": "exact-match", "value": "Eiffel tower", "normalize": "squad" }),
            "The Eiffel Tower!",
            "Eiffel",
        ),
        (
            json!({ "type": "exact-match", "value": "1200", "ignore": ["[$,]", "\\.$"] }),
            "$1,200.",
            "$1,300.",
        ),
        (
            json!({ "type": "contains", "value": "Café", "normalize": ["unicode", "case"] }),
            "the CAFE\u{301}",
            "cafe",
        ),
        (
            json!({ "type": "icontains", "value": "The Cat", "ignore": ["The "] }),
            "The black CAT, a CAT",
            "the dog",
        ),
        (json!({ "type": "icontains", "value": "ℌ", "normalize": ["nfkc"] }), "H", "G"),
        (json!({ "type": "number", "value": "1,000", "tolerance": "1%" }), "About $995.", "980"),
        (json!({ "type": "number", "value": 0.75 }), "3/4", "3/5"),
        (
            json!({ "type": "number", "value": 7, "extract": "last-number" }),
            "3 + 4 = 7",
            "7 is 3 + 4",
        ),
        (
            json!({ "type": "choice", "value": "B", "choices": ["red", "blue"] }),
            "The answer is (B).",
            "(A) or (B)",
        ),
        (
            json!({ "type": "choice", "value": "blue", "choices": ["red", "blue"] }),
            "It is blue.",
            "red",
        ),
        (
            json!({ "type": "token-f1", "value": ["the quick fox", "x"], "threshold": 0.8 }),
            "a quick fox",
            "a quick dog",
        ),
        (json!({ "type": "rouge-1", "value": "the cat sat" }), "sat the cat", "a dog"),
        (json!({ "type": "rouge-n", "value": "the cat sat" }), "sat the cat", "a dog"),
        (json!({ "type": "rouge-2", "value": "the cat sat" }), "the cat sat", "sat the cat"),
        (
            json!({ "type": "rouge-l", "value": "running dogs", "stemmer": true }),
            "run dog",
            "walk cat",
        ),
        (json!({ "type": "bleu", "value": ["the cat sat", "a cat sat"] }), "a cat sat", "the dog"),
        (json!({ "type": "chrf", "value": "the cat", "word_order": 2 }), "the cats", "a dog"),
        (
            json!({ "type": "edit-similarity", "value": "kitten", "threshold": 0.5 }),
            "sitting",
            "puppy",
        ),
        (json!({ "type": "is-xml" }), "<a><b/></a>", "<a><b></a>"),
        (json!({ "type": "contains-xml" }), "so: <a>b</a>.", "so: <a>b."),
        (json!({ "type": "is-html" }), "<p>Hi<br></p>", "Hi <b>you</b>"),
        (json!({ "type": "contains-html" }), "Hi <b>you</b>", "a < b"),
        (json!({ "type": "is-sql", "value": "postgresql" }), "SELECT 1", "Select one."),
        (json!({ "type": "contains-sql" }), "So:\n```sql\nSELECT 1\n```", "So select one."),
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
fn calls_of_tools_are_looked_for_and_counted() {
    for (assertion, holds, fails) in [
        (
            json!({ "type": "tool-called", "value": ["f", { "name": "g", "arguments": { "a": 1 } }] }),
            r#"[{"name":"g","arguments":{"a":1.0,"b":2}},{"function":{"name":"f","arguments":"{}"}}]"#,
            r#"[{"name":"g","arguments":{"a":2}},{"name":"f"}]"#,
        ),
        (
            json!({ "type": "tool-called", "value": { "name": "f", "schema": { "required": ["a"] } } }),
            r#"{"type":"tool_use","name":"f","input":{"a":1}}"#,
            r#"{"type":"tool_use","name":"f","input":{}}"#,
        ),
        (
            json!({ "type": "tools-in-order", "value": ["f", "g"] }),
            r#"[{"name":"f"},{"name":"h"},{"name":"g"}]"#,
            r#"[{"name":"g"},{"name":"f"}]"#,
        ),
        (
            json!({ "type": "tools-in-order", "value": { "calls": ["f", "g"], "exact": true } }),
            r#"[{"name":"f"},{"name":"g"}]"#,
            r#"[{"name":"f"},{"name":"g"},{"name":"g"}]"#,
        ),
        (json!({ "type": "tool-count", "value": 0 }), "I call nothing.", r#"[{"name":"f"}]"#),
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
    let first = json!({ "type": "time-to-first-token", "threshold": 100 });
    assert_eq!(asserted_with(first.clone(), "x", json!({ "ttft_ms": 100 })), Ok(()));
    assert!(asserted_with(first.clone(), "x", json!({ "ttft_ms": 101 })).is_err());
    let unknown = "no time to first token was recorded".to_owned();
    assert_eq!(asserted(first, "x"), Err(unknown));
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
fn what_is_missing_is_named_as_it_was_written() {
    let icontains = json!({ "type": "icontains", "value": "Canberra" });
    assert_eq!(asserted(icontains.clone(), "CANBERRA!"), Ok(()));
    assert_eq!(asserted(icontains, "sydney"), Err("`Canberra` is missing".to_owned()));
    let all = json!({ "type": "icontains-all", "value": ["a", "ß", "Z"] });
    assert_eq!(asserted(all, "A ß"), Err("`Z` is missing".to_owned()));
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
            "the value of `word-count` must be a number, or a table with `min`, `max` or both",
        ),
        (json!({ "type": "is-json", "value": 3 }), "a JSON Schema is a table, or true or false"),
    ] {
        assert_eq!(asserted(assertion.clone(), "x"), Err(message.to_owned()), "{assertion}");
    }
}

#[test]
fn what_is_extracted_is_compared_and_what_is_not_there_fails() {
    let long = "Let me think. 3 <answer>4</answer>\n```py\nx = 1\n```\nANSWER: 5\n{\"a\": [\"6\"]} \\boxed{7}";
    for (extract, expected) in [
        (json!("first-number"), "3"),
        (json!("boxed"), "7"),
        (json!("code_block"), "x = 1"),
        (json!({ "code_block": "python" }), "x = 1"),
        (json!({ "xml_tag": "answer" }), "4"),
        (json!({ "after": "answer:" }), "5"),
        (json!({ "json_pointer": "/a/0" }), "6"),
        (json!({ "regex": r"(?<=ANSWER: )\d" }), "5"),
        (json!({ "regex": r"(\w+) = (?<n>\d)", "group": "n", "take": "first" }), "1"),
        (json!([{ "code_block": "py" }, "last-number"]), "1"),
    ] {
        let equals = json!({ "type": "equals", "value": expected, "extract": extract });
        assert_eq!(asserted(equals.clone(), long), Ok(()), "{extract}");
        let why = asserted(equals, "nothing of that").unwrap_err();
        assert!(why.starts_with("nothing to extract: no "), "{why}");
    }
}

#[test]
fn a_set_tells_what_its_members_tell() {
    let member = json!({ "type": "equals", "value": "7", "extract": "last-number" });
    let set =
        json!({ "type": "assert-set", "assert": [member, { "type": "closed-qa", "value": "x" }] });
    let failed = |judge: &str| Opinion {
        judge: judge.to_owned(),
        said: Said::Failed { error: "busy".to_owned() },
    };
    let opinions = vec![failed("a"), failed("b")];
    let assessment = Assessment { opinions, combine: Combine::Majority };
    let details = classified(set, "3 + 4 = 7", json!({}), &[assessment]).unwrap().details;
    let told = (details.extracted[0].check.as_ref(), details.extracted[0].text.as_str());
    assert_eq!(told, ("equals", "7"));
    assert_eq!(details.judged[0].check, "closed-qa");
    assert_eq!(details.judged[0].opinions.len(), 2);
}

#[test]
fn what_makes_no_sense_together_is_refused() {
    for (assertion, message) in [
        (json!({ "type": "choice", "value": "A" }), "`choices` must be a list of 2 to 26 texts"),
        (
            json!({ "type": "choice", "value": 0, "choices": ["a", "b"] }),
            "`0` is neither a letter from A to B nor the text of one choice",
        ),
        (json!({ "type": "number", "value": "many" }), "`many` is not a number"),
        (
            json!({ "type": "equals", "value": "a", "tolerance": 1 }),
            "`tolerance` goes with `number`, not with `equals`",
        ),
        (
            json!({ "type": "bleu", "value": "a", "stemmer": true }),
            "`stemmer` goes with `rouge-…`, not with `bleu`",
        ),
        (
            json!({ "type": "contains", "value": "a", "config": { "b": 1 } }),
            "`config` goes with scripts and scorers, not with `contains`",
        ),
        (
            json!({ "type": "bleu", "value": "a", "threshold": -1 }),
            "the threshold must be 0 or more",
        ),
        (
            json!({ "type": "regex", "value": "a", "normalize": "squad" }),
            "only checks that compare texts have `normalize` and `ignore`",
        ),
        (
            json!({ "type": "contains", "value": "the", "normalize": "squad" }),
            "nothing of `the` would count",
        ),
        (
            json!({ "type": "latency", "threshold": 1, "extract": "boxed" }),
            "it does not look at the text of the reply: there is nothing to extract",
        ),
        (
            json!({ "type": "equals", "value": "a", "extract": { "regex": "(a)", "group": 2 } }),
            "there is no group 2: the expression has 1",
        ),
    ] {
        assert_eq!(asserted(assertion.clone(), "x"), Err(message.to_owned()), "{assertion}");
    }
}

#[test]
fn what_a_filter_of_the_service_stopped_fails_guardrails() {
    let stopped = json!({ "stop_reason": "guardrail_intervened" });
    let why = asserted_with(json!({ "type": "guardrails" }), "No.", stopped.clone());
    assert_eq!(why, Err("the service stopped it: `guardrail_intervened`".to_owned()));
    assert_eq!(asserted_with(json!({ "type": "not-guardrails" }), "No.", stopped), Ok(()));
    assert_eq!(asserted(json!({ "type": "guardrails" }), "Yes."), Ok(()));
    assert!(asserted(json!({ "type": "not-guardrails" }), "Yes.").is_err());
}
