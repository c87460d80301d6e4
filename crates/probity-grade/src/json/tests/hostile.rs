//! Texts that are made to take long, overflow the stack or break an assumption.

use super::*;

/// Many repetitions of each piece, alone and inside a string, must simply be answered.
///
/// A quadratic path would take minutes.
fn survives(pieces: &[&str]) {
    for piece in pieces {
        for prefix in ["", "{\"a\": \""] {
            let text = format!("{prefix}{}", piece.repeat((1 << 18) / piece.len()));
            for level in [JsonLevel::Lenient, JsonLevel::Repair] {
                let found = extract(&text, level, Wanted::Any);
                assert_eq!(found.value.is_some(), found.span.is_some(), "{piece}");
            }
        }
    }
}

#[test]
fn endless_brackets_are_answered() {
    survives(&["[", "{", "{\"a\":", "{\"a\":[", "[1,[1,[1,", "[1,[1,[1,x ", "}", "[}", "{]"]);
}

#[test]
fn endless_quotes_are_answered() {
    survives(&["\"", "'", "[\"", "[\"a, ", "{\"a\": \"b, ", "[\"a\" b ", "{\"a\":\"{\"b", "“"]);
    survives(&["[\"\"\"", "{\"a\":\"b \"c", "[\"a\n\"b", "{\"a", "[\"a\" + ", "[a\""]);
}

#[test]
fn endless_escapes_are_answered() {
    survives(&["\\", "[\"\\", "[\"\\u", "{\\\"a\\\":", "\\u{0}"]);
}

#[test]
fn endless_fences_are_answered() {
    survives(&["```", "```\n", "``` ~~~ ", "```json\n{", "{\"a\":```"]);
}

#[test]
fn endless_comments_are_answered() {
    survives(&["{/*", "[a/*", "\"a\"/*", "[//", "{#", "{<!--", "=}#:", "[#]"]);
}

#[test]
fn endless_words_are_answered() {
    survives(&["{a:", "[a,", "{\"a\":b c, ", "{\"a\":F([", "{\"a\":F(\"", "{\"a\":a (", "[- "]);
}

#[test]
fn a_mebibyte_is_answered() {
    for piece in ["[", "\"", "{\"a\":[", "[1,[1,[1,", "\\", "```\n"] {
        let text = piece.repeat((1 << 20) / piece.len());
        assert_eq!(extract(&text, JsonLevel::Repair, Wanted::Any).value, None);
    }
}

#[test]
fn a_value_that_nests_too_deep_is_given_up() {
    let deep = format!("{}1{}", "[".repeat(2000), "]".repeat(2000));
    assert_eq!(extract(&deep, JsonLevel::Repair, Wanted::Any).value, None);
    let objects = "{a:".repeat(2000);
    assert_eq!(extract(&objects, JsonLevel::Repair, Wanted::Any).value, None);
}
