use insta::assert_snapshot;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::located::NodeValue;

fn check(text: &str, expected: &Value) {
    let parsed = parse(text, &Limits::default()).expect("the text is JSON");
    assert_eq!(&parsed.value, expected, "{text}");
}

fn message(text: &str) -> String {
    parse(text, &Limits::default()).expect_err("the text is not JSON").to_string()
}

fn rejected(texts: &[&str]) {
    for text in texts {
        assert!(parse(text, &Limits::default()).is_err(), "{text}");
    }
}

#[test]
fn every_kind_of_value_is_parsed() {
    check(" null\n", &json!(null));
    check("true", &json!(true));
    check("false", &json!(false));
    check("\t-0.5\r\n", &json!(-0.5));
    check(r#""é\u00e9""#, &json!("éé"));
    check("[ ]", &json!([]));
    check("{ }", &json!({}));
    check(r#"{"a": [1, {"b": null}], "": "x"}"#, &json!({"a": [1, {"b": null}], "": "x"}));
}

#[test]
fn every_escape_is_resolved() {
    check(r#""\"\\\/\b\f\n\r\t\u0041\uD83E\uDD80""#, &json!("\"\\/\u{8}\u{c}\n\r\tA🦀"));
}

#[test]
fn half_a_surrogate_pair_becomes_the_replacement_character() {
    check(r#""\ud83ex""#, &json!("\u{fffd}x"));
    check(r#""\udd80""#, &json!("\u{fffd}"));
    check(r#""\ud83e\n""#, &json!("\u{fffd}\n"));
    check(r#""\ud83e\ud83e\udd80""#, &json!("\u{fffd}🦀"));
}

#[test]
fn numbers_keep_all_their_digits() {
    for literal in
        ["123456789012345678901234567890", "0.1000000000000000055511151231257827", "-0", "1.50"]
    {
        let parsed = parse(literal, &Limits::default()).expect("the text is a number");
        assert_eq!(parsed.value.to_string(), literal);
    }
}

#[test]
fn numbers_that_json_does_not_know_are_rejected() {
    rejected(&[
        "NaN",
        "Infinity",
        "-Infinity",
        "+1",
        ".5",
        "5.",
        "01",
        "-01",
        "1e",
        "1e+",
        "0x1f",
        "1_000",
        "-",
        "--1",
        "１",
    ]);
}

#[test]
fn what_other_parsers_forgive_is_rejected() {
    rejected(&[
        "",
        " ",
        "\u{feff}1",
        "\u{a0}1",
        "[1,]",
        "[,7]",
        "[1 2]",
        "{\"a\":1,}",
        "{a:1}",
        "{'a':1}",
        "{\"a\" 1}",
        "{\"a\":}",
        "[1]// done",
        "[1]]",
        "nulls",
        "True",
        "\"a\nb\"",
        "\"a\u{0}b\"",
        r#""\x41""#,
        r#""\u00g0""#,
        r#""\é""#,
    ]);
}

#[test]
fn a_repeated_key_is_listed_and_its_last_value_is_kept() {
    let text = r#"{"a/b": [{"k": 1, "k": 2, "k": 3}], "x": 0}"#;
    let parsed = parse(text, &Limits::default()).expect("the text is JSON");
    assert_eq!(parsed.value, json!({"a/b": [{"k": 3}], "x": 0}));
    let places: Vec<_> = parsed
        .duplicate_keys
        .iter()
        .map(|it| (it.key.as_str(), it.pointer.as_str(), it.offset))
        .collect();
    assert_eq!(places, [("k", "/a~1b/0/k", 18), ("k", "/a~1b/0/k", 26)]);
}

#[test]
fn the_list_of_repeated_keys_is_bounded() {
    let text = format!("{{{}\"k\":0}}", "\"k\":0,".repeat(1000));
    let parsed = parse(&text, &Limits::default()).expect("the text is JSON");
    assert_eq!(parsed.duplicate_keys.len(), MAX_DUPLICATE_KEYS);
}

#[test]
fn messages_say_what_was_expected_and_where() {
    let texts = [
        "",
        "hello",
        "{\"a\": 1,\n \"b\": 2\n \"c\": 3}",
        "{\"a\": 1,}",
        "{a: 1}",
        "{\"é\" 1}",
        "[1 2]",
        "[1, 2",
        "[1] and more",
        "\"open",
        "\"\\",
        "\"tab\there\"",
        r#""\x""#,
        r#""\u12x4""#,
        "01",
        "1.e5",
        "\u{feff}{}",
        "[\u{1b}]",
    ];
    let messages: Vec<_> = texts.into_iter().map(message).collect();
    assert_snapshot!(messages.join("\n"), @r#"
    expected a value, found the end of the text at line 1, column 1 (byte 0)
    expected a value, found `h` at line 1, column 1 (byte 0)
    expected `,` or `}`, found `"` at line 3, column 2 (byte 18)
    expected a string key, found `}` at line 1, column 9 (byte 8)
    expected a string key or `}`, found `a` at line 1, column 2 (byte 1)
    expected `:`, found `1` at line 1, column 6 (byte 6)
    expected `,` or `]`, found `2` at line 1, column 4 (byte 3)
    expected `,` or `]`, found the end of the text at line 1, column 6 (byte 5)
    expected the end of the text, found `a` at line 1, column 5 (byte 4)
    expected `"` before the end of the text at line 1, column 6 (byte 5)
    expected `"` before the end of the text at line 1, column 3 (byte 2)
    unescaped control character `\t` in a string at line 1, column 5 (byte 4)
    invalid escape `\x` at line 1, column 2 (byte 1)
    expected four hexadecimal digits after `\u` at line 1, column 6 (byte 5)
    a number must not start with a superfluous `0` at line 1, column 1 (byte 0)
    expected a digit, found `e` at line 1, column 3 (byte 2)
    the text starts with a byte order mark at line 1, column 1 (byte 0)
    expected a value, found `\u{1b}` at line 1, column 2 (byte 1)
    "#);
}

#[test]
fn a_text_that_ends_too_early_is_told_from_one_that_is_wrong() {
    for text in ["", "[1,", "{\"a\"", "\"a", "\"\\", "\"\\u00", "1e", "-"] {
        let error = parse(text, &Limits::default()).expect_err("the text is cut");
        assert!(error.is_truncation(), "{text}");
    }
    let error = parse("[1}", &Limits::default()).expect_err("the text is wrong");
    assert!(!error.is_truncation());
}

#[test]
fn nesting_beyond_the_limit_is_an_error_and_never_a_crash() {
    let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(parse(&nested(512), &Limits::default()).is_ok());
    assert_eq!(
        message(&nested(513)),
        "arrays and objects nest deeper than 512 levels at line 1, column 513 (byte 512)"
    );
    let boundless = Limits { max_depth: usize::MAX, max_bytes: usize::MAX };
    assert!(parse(&nested(HIGHEST_DEPTH), &boundless).is_ok());
    assert!(parse(&"[".repeat(1 << 20), &boundless).is_err());
    assert!(parse(&"{\"a\":".repeat(1 << 18), &boundless).is_err());
}

#[test]
fn a_text_over_the_limit_is_not_read() {
    let limits = Limits { max_bytes: 3, ..Limits::default() };
    assert!(parse("[1]", &limits).is_ok());
    let error = parse("[12]", &limits).expect_err("the text is too long");
    assert_eq!(error.kind, JsonErrorKind::TooLarge { limit: 3 });
}

#[test]
fn every_part_of_a_located_value_knows_its_bytes() {
    let text = r#" {"k": ["é", 1e2], "k": {"x": true}} "#;
    let node = parse_located(text, &Limits::default()).expect("the text is JSON");
    assert_eq!(&text[node.span.clone()], text.trim());
    let entries = node.entries();
    assert_eq!(entries.len(), 2);
    assert_eq!(&text[entries[0].key_span.clone()], "\"k\"");
    assert_eq!(&text[entries[0].node.span.clone()], "[\"é\", 1e2]");
    let NodeValue::Array(items) = &entries[0].node.value else {
        panic!("the first value is an array");
    };
    assert_eq!(&text[items[0].span.clone()], "\"é\"");
    assert_eq!(items[1].value, NodeValue::Number("1e2".to_owned()));
    let last = node.get("k").expect("the key is there");
    assert_eq!(&text[last.span.clone()], "{\"x\": true}");
}

#[test]
fn a_value_is_parsed_out_of_the_middle_of_a_text() {
    let text = "see {\"a\": 1} and [2]";
    let (parsed, end) = parse_prefix(text, 4, &Limits::default()).expect("a value starts here");
    assert_eq!(parsed.value, json!({"a": 1}));
    assert_eq!(&text[end..], " and [2]");
    let error = parse_prefix(text, 0, &Limits::default()).expect_err("no value starts here");
    assert_eq!(error.offset, 0);
}

#[test]
fn an_offset_inside_a_character_or_past_the_end_is_an_error() {
    assert!(parse_prefix("é", 1, &Limits::default()).is_err());
    assert!(parse_prefix("1", 9, &Limits::default()).is_err());
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..8)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(value in any_json()) {
        let text = value.to_string();
        let parsed = parse(&text, &Limits::default());
        prop_assert_eq!(parsed.map(|it| it.value.to_string()), Ok(text));
    }

    #[test]
    fn any_text_is_judged_as_serde_json_judges_it(text in "[\\[\\]{}\",:\\\\ \n0-9a-fu.+é-]{0,24}") {
        let ours = parse(&text, &Limits::default()).is_ok();
        // serde_json rejects halves of surrogate pairs, which the grammar allows.
        if !text.contains("\\ud") {
            prop_assert_eq!(ours, serde_json::from_str::<Value>(&text).is_ok());
        }
    }

    #[test]
    fn any_text_and_any_offset_give_an_answer(text in any::<String>(), start in 0_usize..64) {
        let _ = parse(&text, &Limits::default());
        let _ = parse_prefix(&text, start, &Limits::default());
    }
}
