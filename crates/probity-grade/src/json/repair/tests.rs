use serde_json::{Value, json};

use probity_core::criteria::JsonLevel;

use crate::json::{Step, Wanted, extract};

/// Checks the value, and that the step was recorded.
fn check(step: Step, cases: &[(&str, Value)]) {
    for (text, expected) in cases {
        let found = extract(text, JsonLevel::Repair, Wanted::Any);
        assert_eq!(found.value.as_ref(), Some(expected), "{text}");
        assert!(found.steps.contains(&step), "{text}: {:?}", found.steps);
    }
}

#[test]
fn blanks_and_commas_do_not_matter() {
    check(
        Step::StrippedBlanks,
        &[("{\u{a0}'n':\u{3000}1}", json!({"n": 1})), ("[\u{feff}a, b]", json!(["a", "b"]))],
    );
    check(
        Step::TrailingCommas,
        &[
            ("{, 'x': 1,, 'y': 2, }", json!({"x": 1, "y": 2})),
            ("[, 7,, 8]", json!([7, 8])),
            ("[7, 8, 'z',]", json!([7, 8, "z"])),
        ],
    );
}

#[test]
fn strings_may_have_any_quotes() {
    check(
        Step::OtherQuotes,
        &[
            ("{'k': 'v'}", json!({"k": "v"})),
            ("{“k”: “v”}", json!({"k": "v"})),
            ("{‘k’: `v`}", json!({"k": "v"})),
            ("{\"\"k\"\": \"\"v\"\", \"n\": 1}", json!({"k": "v", "n": 1})),
            ("{u'k': b'v'}", json!({"k": "v"})),
            ("{'who': 'it's Ann's'}", json!({"who": "it's Ann's"})),
            ("{\"code\": \"\"\"\n  if x:\n    y\n  \"\"\"}", json!({"code": "if x:\n  y"})),
            ("{\"code\": ```sh\nls \"a\"\n```, \"n\": 1}", json!({"code": "ls \"a\"", "n": 1})),
        ],
    );
}

#[test]
fn quotes_inside_strings_are_kept() {
    check(
        Step::InnerQuotes,
        &[
            ("{\"q\": \"she said \"no\" twice\"}", json!({"q": "she said \"no\" twice"})),
            ("{\"q\": \"a \"b\", c\", \"n\": 1}", json!({"q": "a \"b\", c", "n": 1})),
            ("{\"q\": \"6\" wide\", \"n\": 1}", json!({"q": "6\" wide", "n": 1})),
            ("[\"x\"y\"z\", \"w\"]", json!(["x\"y\"z", "w"])),
            ("{\"a\"b\"c\": 1}", json!({"a\"b\"c": 1})),
            ("{\"q\": \"\"top\" tip\", \"n\": 1}", json!({"q": "\"top\" tip", "n": 1})),
            ("{\"q\": \"{\"in\": [\"out\"]}\"}", json!({"q": "{\"in\": [\"out\"]}"})),
            ("{\"q\": \"log(\"x\")\"}", json!({"q": "log(\"x\")"})),
        ],
    );
}

#[test]
fn a_forgotten_quote_is_put_where_the_string_must_end() {
    check(
        Step::MissingQuotes,
        &[
            ("{\"k\": \"v}", json!({"k": "v"})),
            ("{\"k\": [\"v]}", json!({"k": ["v"]})),
            ("{\"k\": \"v, \"m\": \"w\"}", json!({"k": "v", "m": "w"})),
            ("{\"k\": \"v\n\"m\": \"w\"}", json!({"k": "v", "m": "w"})),
            ("[\"x, \"y\", \"z\"]", json!(["x", "y", "z"])),
            ("{\"k: \"v\"}", json!({"k": "v"})),
            ("{k\": \"v\"}", json!({"k": "v"})),
            ("{\"k: [\"v\", 1], \"n\": 2}", json!({"k": ["v", 1], "n": 2})),
            ("{\"k\": [\"v, w], \"n\": 2}", json!({"k": ["v, w"], "n": 2})),
            ("{\"k\": {\"m\": \"v}, \"n\": 2}", json!({"k": {"m": "v"}, "n": 2})),
            ("{\"k\": v\", \"n\": 5\"}", json!({"k": "v", "n": 5})),
        ],
    );
}

#[test]
fn comments_are_removed() {
    check(
        Step::Comments,
        &[
            ("{\"k\": 1, // one\n\"m\": 2 /* two */}", json!({"k": 1, "m": 2})),
            ("# note\n{'k': 1 # one\n}", json!({"k": 1})),
            ("{\"k\": \"v\" # on one line }", json!({"k": "v"})),
            ("{<!-- x -->\"k\": \"http://h/p\",}", json!({"k": "http://h/p"})),
        ],
    );
}

#[test]
fn words_need_no_quotes() {
    check(
        Step::UnquotedKeys,
        &[("{k: 1, m-n: 2, $o: 3, 4: 5}", json!({"k": 1, "m-n": 2, "$o": 3, "4": 5}))],
    );
    check(
        Step::UnquotedValues,
        &[
            ("{k: two words, m: x}", json!({"k": "two words", "m": "x"})),
            ("{\"k\": one, two, \"m\": x}", json!({"k": "one, two", "m": "x"})),
            ("{k: first\nline, m: x}", json!({"k": "first\nline", "m": "x"})),
            ("{k: v\nm: w}", json!({"k": "v", "m": "w"})),
            ("[x, y\nz]", json!(["x", "y", "z"])),
            ("{k: https://h/p?q=1, n: 1}", json!({"k": "https://h/p?q=1", "n": 1})),
            ("{k: say(\"a, b\"), n: 1}", json!({"k": "say(\"a, b\")", "n": 1})),
            ("{k: as \"they\" say}", json!({"k": "as \"they\" say"})),
            ("[x, y] is what I mean", json!(["x", "y"])),
        ],
    );
}

#[test]
fn literals_of_other_languages_are_translated() {
    check(
        Step::ForeignLiterals,
        &[
            ("{'k': True, 'm': None}", json!({"k": true, "m": null})),
            ("[FALSE, undefined, NaN, -Infinity]", json!([false, null, null, null])),
        ],
    );
}

#[test]
fn odd_numbers_are_read_and_what_is_no_number_is_text() {
    check(
        Step::Numbers,
        &[("[+2, .5, -.5, 3., 4e]", json!([2, 0.5, -0.5, 3.0, 4])), ("[1_000]", json!([1000]))],
    );
    check(
        Step::UnquotedValues,
        &[
            ("[1.2.3, 4/5, 6-7, 0x8, 09]", json!(["1.2.3", "4/5", "6-7", "0x8", "09"])),
            ("{\"k\": 1,500, \"m\": 8am}", json!({"k": "1,500", "m": "8am"})),
            ("{\"day\": 2031-02-03T04:05:06Z}", json!({"day": "2031-02-03T04:05:06Z"})),
        ],
    );
}

#[test]
fn missing_signs_are_supplied() {
    check(
        Step::MissingCommas,
        &[
            ("[1 2 \"x\" \"y\"]", json!([1, 2, "x", "y"])),
            ("{\"k\": 1 \"m\": \"x\"\n\"n\": null}", json!({"k": 1, "m": "x", "n": null})),
            ("[{\"k\": 1} {\"k\": 2}]", json!([{"k": 1}, {"k": 2}])),
            ("{\"k\": \"x\"\"m\": \"y\"}", json!({"k": "x", "m": "y"})),
        ],
    );
    check(
        Step::MissingColons,
        &[
            ("{\"k\" 1, \"m\" \"x\", \"n\" true}", json!({"k": 1, "m": "x", "n": true})),
            ("{'k' => 1, 'm' = 2}", json!({"k": 1, "m": 2})),
        ],
    );
    check(
        Step::MissingValues,
        &[("{\"k\": , \"m\": }", json!({"k": null, "m": null})), ("{\"k\"}", json!({"k": null}))],
    );
}

#[test]
fn what_stands_for_more_is_left_out() {
    check(
        Step::Ellipses,
        &[
            ("[4, 5, ..., 9]", json!([4, 5, 9])),
            ("{\"k\": [1, …], ...}", json!({"k": [1]})),
            ("[ …, ...]", json!([])),
        ],
    );
    check(Step::DroppedWords, &[("{\"k\": 1, OOPS \"m\": \"x\" HUH }", json!({"k": 1, "m": "x"}))]);
}

#[test]
fn what_other_languages_write_around_a_value_is_unwrapped() {
    check(Step::Concatenation, &[("{\"k\": \"x\" +\n \"y\"}", json!({"k": "xy"}))]);
    check(
        Step::FunctionCalls,
        &[("{\"id\": ObjectId(\"ab\"), \"n\": Long(3)}", json!({"id": "ab", "n": 3}))],
    );
    check(
        Step::ForeignContainers,
        &[
            ("{'x', 'y', 'z'}", json!(["x", "y", "z"])),
            ("{'k': (1, 'x')}", json!({"k": [1, "x"]})),
            ("[\"k\": 1, \"m\": 2]", json!([{"k": 1, "m": 2}])),
        ],
    );
    check(
        Step::Unescaped,
        &[
            (r#"{\"k\": [\"x\", 1]}"#, json!({"k": ["x", 1]})),
            (r#"{"k": \"x\", "m": 1}"#, json!({"k": "x", "m": 1})),
        ],
    );
    check(Step::BalancedScan, &[("render({k: 1});", json!({"k": 1}))]);
}

#[test]
fn brackets_are_matched_as_well_as_can_be() {
    check(
        Step::Brackets,
        &[
            ("[{\"k\": 1, {\"k\": 2}]", json!([{"k": 1}, {"k": 2}])),
            ("{\"k\": [{\"m\": 1], \"n\": 2}", json!({"k": [{"m": 1}], "n": 2})),
            ("{\"k\": [1, 2, \"m\": 3}", json!({"k": [1, 2], "m": 3})),
            ("{\"k\": [1}", json!({"k": [1]})),
            ("[1, 2}", json!([1, 2])),
            ("{\"k\": [1], [2], \"m\": 3}", json!({"k": [1, 2], "m": 3})),
            ("{\"k\": [1]], \"m\": 2}", json!({"k": [1], "m": 2})),
            ("{{\"k\": 1}}", json!({"k": 1})),
        ],
    );
}

#[test]
fn a_cut_tail_is_closed() {
    check(
        Step::ClosedTail,
        &[
            ("{", json!({})),
            ("[[", json!([[]])),
            ("{\"k\": [1, {\"m\": \"x", json!({"k": [1, {"m": "x"}]})),
            ("{\"k\": 1, \"m", json!({"k": 1})),
            ("{\"k\": 1, \"m\"", json!({"k": 1, "m": null})),
            ("{\"k\": tr", json!({"k": true})),
            ("[1, -", json!([1])),
            ("{\"k\": 2.", json!({"k": 2.0})),
            ("{\"k\": \"x\\", json!({"k": "x"})),
            ("{\"k\": \"x\\u00", json!({"k": "x"})),
            ("{\"k\": \"say \\\"hi", json!({"k": "say \"hi"})),
            ("Well: {\"k\": [1, 2", json!({"k": [1, 2]})),
            ("```json\n{\"k\": 1\n```", json!({"k": 1})),
        ],
    );
}

#[test]
fn of_several_values_the_first_is_taken() {
    for text in ["{'k': 1}\n{'m': 2}", "{'k': 1}, {'m': 2}", "{'k': 1} or {'m': 2}", "{'k': 1}}"] {
        let found = extract(text, JsonLevel::Repair, Wanted::Any);
        assert_eq!(found.value, Some(json!({"k": 1})), "{text}");
    }
}

#[test]
fn steps_are_listed_in_their_order() {
    let found = extract("```json\n{\u{a0}k: 1}\n```", JsonLevel::Repair, Wanted::Any);
    assert_eq!(found.steps, [Step::StrippedBlanks, Step::Fence, Step::UnquotedKeys]);
}

#[test]
fn a_fence_inside_a_string_does_not_end_the_block() {
    let text = "```json\n{'k': 'run\n```\nls\n```\nnow', 'm': 1}\n```";
    let found = extract(text, JsonLevel::Repair, Wanted::Any);
    assert_eq!(found.value, Some(json!({"k": "run\n```\nls\n```\nnow", "m": 1})));
}

#[test]
fn only_the_wanted_kind_is_repaired() {
    let value = |text, wanted| extract(text, JsonLevel::Repair, wanted).value;
    assert_eq!(value("['x'] or {k: 1}", Wanted::Object), Some(json!({"k": 1})));
    assert_eq!(value("{k: 1} or ['x']", Wanted::Array), Some(json!(["x"])));
    assert_eq!(value("[{\"k\": 1}, {\"k\": ", Wanted::Object), None);
}

#[test]
fn a_repeated_key_is_reported_where_it_is() {
    let text = "So: {k: 1, k: 2}";
    let found = extract(text, JsonLevel::Repair, Wanted::Any);
    assert_eq!(found.value, Some(json!({"k": 2})));
    assert_eq!(found.duplicate_keys[0].offset, 11);
    assert_eq!(found.span.map(|it| &text[it]), Some("{k: 1, k: 2}"));
}

#[test]
fn a_quotation_at_the_end_of_bare_text_stays_whole() {
    let value = |text| extract(text, JsonLevel::Repair, Wanted::Any).value;
    assert_eq!(value("{\"a\": say \"no\"}"), Some(json!({ "a": "say \"no\"" })));
    assert_eq!(value("{\"a\": say no\"}"), Some(json!({ "a": "say no" })));
}
