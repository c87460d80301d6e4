use insta::assert_snapshot;
use serde_json::Value;

use crate::project::Project;

fn lines(project: &Project, words: &[&str], input: &str) -> Vec<Value> {
    let output = project.run_with(words, input);
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn people_see_the_evidence_underlined() {
    let project = Project::new();
    assert_snapshot!(project.shown(&["check", "refusal", "--text", "I'm sorry, but I can't help with that."]), @"
    exit 0
    --- out
    info: a refusal
      |
    1 | I'm sorry, but I can't help with that.
      |     ^^^^^^^^^^^^^^^^^^^^^^^ declines (stock)
    ");
    assert_snapshot!(project.shown(&["check", "refusal", "--text", "Gladly: 42."]), @"
    exit 0
    --- out
    no refusal
    ");
    assert_snapshot!(project.shown_with(&["check", "json", "--level", "repair"], "{'a': True,\n b: [1, 2"), @r#"
    exit 0
    --- out
    info: not strict JSON
      |
    1 | {'a': True,
      |  ^ expected a string key or `}`, found `'`
    read with: other_quotes, unquoted_keys, foreign_literals, closed_tail
    {
      "a": true,
      "b": [
        1,
        2
      ]
    }
    "#);
    assert_snapshot!(project.shown(&["check", "json", "--text", "no JSON here"]), @"
    exit 0
    --- out
    info: not strict JSON
      |
    1 | no JSON here
      | ^ expected a value, found `n`
    no JSON value
    ");
    assert_snapshot!(project.shown(&["check", "error", "--status", "429", "--text", "Rate limit reached, try again in 20s"]), @r#"
    exit 0
    --- out
    rate_limit
    transient: try again in 20 s
    evidence: "rate limit"
    "#);
    assert_snapshot!(project.shown(&["check", "policy", "--policy", "pii", "--text", "write to ada@lovelace.org"]), @"
    exit 0
    --- out
    info: 1 hit
      |
    1 | write to ada@lovelace.org
      |          ^^^^^^^^^^^^^^^^ pii: email
    ");
    assert_snapshot!(project.shown(&["check", "policy", "--policy", "manners", "--text", "x"]), @"
    exit 2
    --- err
    error: unknown policy `manners`
    hint: built-in policies are secrets, pii, dangerous_shell
    ");
}

#[test]
fn streams_answer_in_order_and_copy_the_id() {
    let project = Project::new();
    let input = "{\"id\":\"a\",\"text\":\"I cannot help with that.\"}\n\n{\"id\":{\"n\":1},\"text\":\"yes\"}\n{\"id\":12345678901234567890123,\"text\":\"\"}\n";
    let answers = lines(&project, &["check", "refusal", "--jsonl"], input);
    let shown: Vec<String> = answers.iter().map(Value::to_string).collect();
    assert_snapshot!(shown.join("\n"), @r#"
    {"id":"a","refusal":true,"phrase":"I cannot help with","span":[0,18]}
    {"id":{"n":1},"refusal":false,"phrase":null,"span":null}
    {"id":12345678901234567890123,"refusal":false,"phrase":null,"span":null}
    "#);
}

#[test]
fn a_broken_request_gets_an_answer_of_its_own() {
    let project = Project::new();
    assert_snapshot!(project.shown_with(&["check", "json", "--jsonl"], "{\"id\":1,\"text\":\"[1]\"}\nnonsense\n{\"id\":2}\n{\"id\":3,\"text\":\"{}\"}\n"), @r#"
    exit 2
    --- out
    {"id":1,"value":[1],"steps":[],"error_message":null}
    {"id":null,"error":"line 2: expected a value, found `n` (column 1)"}
    {"id":2,"error":"line 3: missing field `text`"}
    {"id":3,"value":{},"steps":[],"error_message":null}
    --- err
    error: line 2: expected a value, found `n` (column 1)
    error: line 3: missing field `text`
    "#);
}

#[test]
fn json_values_are_kept_to_the_digit() {
    let project = Project::new();
    let answers = project.run_with(
        &["check", "json", "--jsonl"],
        "{\"id\":1,\"text\":\"{\\\"n\\\": 12345678901234567890.123456789, \\\"b\\\": 1, \\\"a\\\": 2}\"}\n",
    );
    let text = String::from_utf8(answers.stdout).unwrap();
    assert!(text.contains(r#""value":{"n":12345678901234567890.123456789,"b":1,"a":2}"#), "{text}");
}

#[test]
fn errors_may_come_with_everything_that_is_known() {
    let project = Project::new();
    let input = concat!(
        r#"{"id":1,"backend":"openai","status":429,"text":"{\"error\":{\"type\":\"insufficient_quota\"}}"}"#,
        "\n",
        r#"{"id":2,"exit_code":127,"stderr":"sh: 1: claude: not found"}"#,
        "\n",
        r#"{"id":3,"exit_code":0,"stdout":"","stderr":""}"#,
        "\n",
        r#"{"id":4,"status":503,"headers":{"Retry-After":"7"}}"#,
        "\n",
        r#"{"id":5}"#,
        "\n",
    );
    let answers = lines(&project, &["check", "error", "--jsonl"], input);
    let shown: Vec<String> = answers.iter().map(Value::to_string).collect();
    assert_snapshot!(shown.join("\n"), @r#"
    {"id":1,"kind":"quota","permanent":true,"retry_after":null,"evidence":"\"insufficient_quota\""}
    {"id":2,"kind":"not_installed","permanent":true,"retry_after":null,"evidence":"exit code 127"}
    {"id":3,"kind":"empty","permanent":false,"retry_after":null,"evidence":"exit code 0 and no output"}
    {"id":4,"kind":"overloaded","permanent":false,"retry_after":7.0,"evidence":"status 503"}
    {"id":5,"kind":"unknown","permanent":false,"retry_after":null,"evidence":"nothing that a rule knows"}
    "#);
}

#[test]
fn a_slow_producer_gets_each_answer_at_once() {
    use std::io::{BufRead as _, BufReader, Write as _};
    let project = Project::new();
    let mut child = project
        .command(&["check", "refusal", "--jsonl"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    for id in 0..3 {
        writeln!(stdin, "{{\"id\":{id},\"text\":\"hello\"}}").unwrap();
        stdin.flush().unwrap();
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert!(line.starts_with(&format!("{{\"id\":{id},")), "{line}");
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn rules_of_a_suite_are_used() {
    let project = Project::new().file(
        "probity.toml",
        "[refusal]\nphrases = [\"computer says no\"]\n[[policies]]\nname = \"animals\"\nwords = [\"yak\"]\n",
    );
    let text = "Computer says no. Ask a yak.";
    assert_snapshot!(project.shown(&["check", "refusal", "--suite", "probity.toml", "--text", text]), @"
    exit 0
    --- out
    info: a refusal
      |
    1 | Computer says no. Ask a yak.
      | ^^^^^^^^^^^^^^^^ declines (phrases)
    ");
    assert_snapshot!(project.shown(&["check", "policy", "--suite", "probity.toml", "--text", text]), @"
    exit 0
    --- out
    info: 1 hit
      |
    1 | Computer says no. Ask a yak.
      |                         ^^^ animals: word:yak
    ");
}

#[test]
fn control_characters_of_a_text_never_reach_the_terminal() {
    let project = Project::new();
    let output = project.run_with(&["check", "json"], "\u{1b}[31m{\"a\": \u{7}\u{202e}}");
    assert!(!output.stdout.contains(&0x1b) && !output.stdout.contains(&0x07));
    assert!(!String::from_utf8(output.stdout).unwrap().contains('\u{202e}'));
}

#[test]
fn text_that_is_not_utf8_is_read_all_the_same() {
    let project = Project::new();
    let output = project.run_with(&["check", "refusal"], b"\xff\xfe I cannot help with that.");
    assert!(output.status.success());
}

#[test]
fn json_of_another_kind_than_wanted_is_no_answer() {
    let project = Project::new();
    let words = ["check", "json", "--want", "object", "--jsonl"];
    let answers = lines(
        &project,
        &words,
        "{\"id\":1,\"text\":\"[1]\"}\n{\"id\":2,\"text\":\"so: {\\\"a\\\":1}\"}\n",
    );
    assert_eq!(answers[0]["value"], Value::Null);
    assert_eq!(answers[1]["value"]["a"], 1);
    let shown = project.shown(&["check", "json", "--want", "object", "--text", "[1]"]);
    assert!(shown.contains("the text is JSON, but not an object"), "{shown}");
}
