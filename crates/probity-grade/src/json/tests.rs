//! The strict and the lenient level. The repair level has its own tests.

mod hostile;
mod properties;

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::*;

fn lenient(text: &str) -> Extraction {
    extract(text, JsonLevel::Lenient, Wanted::Any)
}

fn check(text: &str, expected: &Value, steps: &[Step]) {
    let found = lenient(text);
    assert_eq!(found.value.as_ref(), Some(expected), "{text}");
    assert_eq!(found.steps, steps, "{text}");
    assert!(found.error.is_some(), "{text}");
}

/// Neither level finds anything.
fn check_nothing(texts: &[&str]) {
    for text in texts {
        for level in [JsonLevel::Lenient, JsonLevel::Repair] {
            let found = extract(text, level, Wanted::Any);
            assert_eq!(found.value, None, "{level:?}: {text}");
            assert_eq!(found.steps, [], "{level:?}: {text}");
            assert_eq!(found.span, None, "{level:?}: {text}");
            assert!(found.error.is_some(), "{level:?}: {text}");
        }
    }
}

#[test]
fn json_is_returned_as_it_is_at_every_level() {
    for text in ["{\"a\": [1, null]}", " [1]\n", "5", "\"[a]\"", "{}"] {
        for level in [JsonLevel::Strict, JsonLevel::Lenient, JsonLevel::Repair] {
            let found = extract(text, level, Wanted::Any);
            assert_eq!(found.value, serde_json::from_str(text).ok(), "{text}");
            assert_eq!(found.steps, []);
            assert_eq!(found.error, None);
            assert_eq!(found.span, Some(0..text.len()));
        }
    }
}

#[test]
fn the_strict_level_forgives_nothing() {
    let found = extract("```json\n{}\n```", JsonLevel::Strict, Wanted::Any);
    assert_eq!(found.value, None);
    assert_snapshot!(
        found.error.expect("it is not JSON"),
        @"expected a value, found ``` at line 1, column 1 (byte 0)"
    );
}

#[test]
fn blanks_that_json_does_not_know_are_stripped() {
    check("\u{feff}{\"a\": 1}", &json!({"a": 1}), &[Step::StrippedBlanks]);
    check("\u{a0}[1]\u{200b}", &json!([1]), &[Step::StrippedBlanks]);
}

#[test]
fn fenced_blocks_are_tried_in_turn() {
    check("Sure:\n```json\n{\"a\": 1}\n```\nBye.", &json!({"a": 1}), &[Step::Fence]);
    check("```sh\nls\n```\n~~~\n[1]\n~~~", &json!([1]), &[Step::Fence]);
    check("```json\n{\"a\": 1}\n", &json!({"a": 1}), &[Step::Fence]);
    check("```{\"a\": 1}```", &json!({"a": 1}), &[Step::Fence]);
    check("```json\n\"yes\"\n```", &json!("yes"), &[Step::Fence]);
}

#[test]
fn a_word_in_a_fence_that_is_not_tagged_is_no_value() {
    check_nothing(&["```sh\ntrue\n```", "```\n42\n```"]);
}

#[test]
fn the_first_complete_value_in_prose_is_found() {
    check("I say {\"a\": 1} and {\"b\": 2}.", &json!({"a": 1}), &[Step::BalancedScan]);
    check("Use {x} as in {\"a\": 1}", &json!({"a": 1}), &[Step::BalancedScan]);
    check("Open with { and see {\"a\": 1}", &json!({"a": 1}), &[Step::BalancedScan]);
    check("Both [\"a\", \"b\"] fit.", &json!(["a", "b"]), &[Step::BalancedScan]);
    check("The answer is: [1, 2]", &json!([1, 2]), &[Step::BalancedScan]);
    check("In [0, 1): {\"p\": 0.5}", &json!({"p": 0.5}), &[Step::BalancedScan]);
    check("It is 5\" wide: {\"a\": \"}\"}", &json!({"a": "}"}), &[Step::BalancedScan]);
}

#[test]
fn the_place_of_a_value_is_known() {
    let text = "So: {\"a\": 1, \"a\": 2}.";
    let found = lenient(text);
    assert_eq!(found.span.map(|it| &text[it]), Some("{\"a\": 1, \"a\": 2}"));
    assert_eq!(found.duplicate_keys[0].offset, 13);
    assert_eq!(found.duplicate_keys[0].pointer, "/a");
}

#[test]
fn the_outermost_brackets_are_the_last_resort() {
    check("A [see 5\" wide: {\"a\": \"b\"}", &json!({"a": "b"}), &[Step::GreedyBrackets]);
}

#[test]
fn trailing_commas_are_removed_outside_strings() {
    check(
        "{\"a\": [1, 2,], \"b\": \",}\",}",
        &json!({"a": [1, 2], "b": ",}"}),
        &[Step::TrailingCommas],
    );
    check("```\n[1,]\n```", &json!([1]), &[Step::Fence, Step::TrailingCommas]);
    check("So {\"a\": 1,} it is", &json!({"a": 1}), &[Step::BalancedScan, Step::TrailingCommas]);
}

#[test]
fn strings_are_escaped_where_they_must_be() {
    check("{\"a\": \"b\nc\"}", &json!({"a": "b\nc"}), &[Step::Escapes]);
    check(r#"{"re": "\d+\.\w"}"#, &json!({"re": "\\d+\\.\\w"}), &[Step::Escapes]);
    check("[\"a\tb\",]", &json!(["a\tb"]), &[Step::TrailingCommas, Step::Escapes]);
}

#[test]
fn a_reply_that_was_cut_off_has_no_lenient_value() {
    for text in [
        "{\"a\": [1, 2], \"b\": ",
        "[{\"a\": 1}, {\"b\": 2",
        "Here: {\"a\": {\"b\": 1}, \"c",
        "```json\n{\"a\": {\"b\": 1},\n```",
        "[1, [2, 3]",
        "[true, {\"a\": 1}",
        "{a: {\"b\": 1}, c: [",
        "{\"a\": 1,, \"b\": {\"c\": 1}, \"d",
    ] {
        for wanted in [Wanted::Any, Wanted::Object, Wanted::Array] {
            let found = extract(text, JsonLevel::Lenient, wanted);
            assert_eq!(found.value, None, "{text}");
        }
    }
}

#[test]
fn nothing_is_taken_out_of_a_broken_value() {
    for text in ["{'a': {\"b\": 1}}", "{\"a\": [\"b\"] \"c\": 1}", "[{\"a\": 1} {\"b\": 2}]"] {
        assert_eq!(lenient(text).value, None, "{text}");
    }
}

#[test]
fn only_the_wanted_kind_is_looked_for_in_prose() {
    let text = "From [\"a\"] to {\"b\": 1} it is.";
    let value = |wanted| extract(text, JsonLevel::Lenient, wanted).value;
    assert_eq!(value(Wanted::Any), Some(json!(["a"])));
    assert_eq!(value(Wanted::Array), Some(json!(["a"])));
    assert_eq!(value(Wanted::Object), Some(json!({"b": 1})));
}

#[test]
fn a_whole_text_of_another_kind_is_not_taken_apart() {
    let found = extract("[{\"a\": 1},]", JsonLevel::Lenient, Wanted::Object);
    assert_eq!(found.value, Some(json!([{"a": 1}])));
}

#[test]
fn brackets_in_prose_are_no_json() {
    check_nothing(&[
        "",
        "   \n",
        "plain words",
        "5 apples and \"a quoted word\"",
        "As shown in [1] and [2, 3].",
        "[1] Someone, 2020",
        "[1]: https://example.org",
        "This is wrong [citation needed].",
        "[citation needed]",
        "Dear [Your Name],",
        "[Your Name]\n[Your Street]\n\nDear Sir,",
        "Hello {name}, hello {{name}}, hello ${name}.",
        "For x in [0, 1] or in {1, 2, 3}.",
        "The set {x : x > 0} is open.",
        "A [link](https://example.org) and a [[wiki link]].",
        "See [[1]](https://example.org).",
        "- [ ] this\n- [x] that",
        "[12:30] <ann> hi\n[INFO] started",
        "text [...] more text",
        "{ } and [ ] are brackets",
        "{% if x %}{# y #}",
        "\\frac{a}{b}",
        "[Note: read this first.",
    ]);
}

#[test]
fn code_is_no_json() {
    check_nothing(&[
        "int main() { return 0; }",
        "function f() {}",
        "fn main()\n{\n}\n",
        "x[0] = d[\"key\"]",
        "body { color: red; }",
        "print(f\"{value:.2f}\")",
        "```python\nfor x in [\"a\", \"b\"]:\n    print({\"x\": x})\n```",
        "```c\nint a[] = {1, 2};\n```",
        "```css\na { color: red }\n```",
        "```\n[your code here]\n```",
        "```\nimport os\nos.run([\"rm\", \"-r\"])\n```",
        "Try `run([\"a\", \"b\"])` or `post(url, json={\"a\": 1})`.",
        "for x in [\"a\", \"b\"]:\n    pass",
        "names = [\"a\", \"b\"]",
        "sed 's/[\",]//g' | awk '{print $2}'",
        "```bash\n[ -f x ] && echo {a,b}\n```",
    ]);
}

#[test]
fn a_call_that_is_all_there_is_may_wrap_a_value() {
    check("show({\"a\": 1});", &json!({"a": 1}), &[Step::BalancedScan]);
    check("/* 1 */ show([1, 2])", &json!([1, 2]), &[Step::BalancedScan]);
}

#[test]
fn steps_have_stable_names() {
    let steps = [
        Step::StrippedBlanks,
        Step::Fence,
        Step::BalancedScan,
        Step::GreedyBrackets,
        Step::TrailingCommas,
        Step::Escapes,
        Step::Unescaped,
        Step::OtherQuotes,
        Step::InnerQuotes,
        Step::MissingQuotes,
        Step::Comments,
        Step::UnquotedKeys,
        Step::UnquotedValues,
        Step::ForeignLiterals,
        Step::Numbers,
        Step::MissingCommas,
        Step::MissingColons,
        Step::MissingValues,
        Step::Ellipses,
        Step::Concatenation,
        Step::FunctionCalls,
        Step::ForeignContainers,
        Step::DroppedWords,
        Step::Brackets,
        Step::ClosedTail,
    ];
    assert_snapshot!(steps.map(Step::as_str).join(" "), @"stripped_blanks fence balanced_scan greedy_brackets trailing_commas escapes unescaped other_quotes inner_quotes missing_quotes comments unquoted_keys unquoted_values foreign_literals numbers missing_commas missing_colons missing_values ellipses concatenation function_calls foreign_containers dropped_words brackets closed_tail");
}
