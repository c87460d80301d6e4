use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::project::Project;

fn answers(project: &Project, words: &[&str], requests: &[Value]) -> Vec<Value> {
    let input: Vec<String> = requests.iter().map(|it| format!("{it}\n")).collect();
    let output =
        project.run_with(&[&["check", "command", "--jsonl"], words].concat(), input.concat());
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn answer(command: &str) -> Value {
    answers(&Project::new(), &[], &[json!({ "id": 1, "command": command })]).remove(0)
}

#[test]
fn people_see_what_a_command_does_and_where() {
    let project = Project::new();
    assert_snapshot!(project.shown(&["check", "command", "sudo rm -rf /etc; sed -i s/a/b/ f"]), @"
    exit 0
    --- out
    info: unsafe at level moderate (risk: critical)
      |
    1 | sudo rm -rf /etc; sed -i s/a/b/ f
      |             ^^^^ A whole system directory or home directory is removed. [rm-root, critical]
      safer: Name the exact directory below it.
    info: not POSIX (edition 2024)
      |
    1 | sudo rm -rf /etc; sed -i s/a/b/ f
      |                       ^^ `sed` of the standard has no option `-i` [option]
      instead: write to another file and rename it: `sed SCRIPT file > file.new && mv file.new file`
      not in the standard: sudo
    ");
    assert_snapshot!(project.shown(&["check", "command", "tar xzf a.tgz", "--against", "tar -x --gunzip -f a.tgz"]), @"
    exit 0
    --- out
    safe at level moderate (risk: safe)
    POSIX (edition 2024)
      not in the standard: tar
    equal: both have the same canonical form
      both: tar -f a.tgz -x -z
    ");
    assert_snapshot!(project.shown(&["check", "command", "head -n 5 f", "--against", "head -6 f"]), @"
    exit 0
    --- out
    safe at level moderate (risk: safe)
    POSIX (edition 2024)
    different: they run the same programs on something else
      this: head -n 5 < f
      that: head -n 6 < f
      option: `5` instead of `6`
    ");
    assert_snapshot!(project.shown(&["check", "command", "eval \"$x\""]), @r#"
    exit 0
    --- out
    info: opaque: part of it cannot be judged; the rest is safe at level moderate (risk: safe)
      |
    1 | eval "$x"
      | ^^^^^^^^^ opaque: it runs a text that is not in the command
    POSIX (edition 2024)
    "#);
    assert_snapshot!(project.shown(&["check", "command", "echo 'a"]), @"
    exit 0
    --- out
    info: unparsable: neither safe nor equal to anything (syntax error: unterminated single quote)
      |
    1 | echo 'a
      |      ^^ syntax error: unterminated single quote
    ");
    assert_snapshot!(project.shown_with(&["check", "command", "--reply"], "Run `ls -la` or `ls -l .`.\n"), @r"
    exit 0
    --- out
    command: ls -la
    extracted from: prose, inline_code
    the first of 2 commands in the reply

    safe at level moderate (risk: safe)
    POSIX (edition 2024)
    ");
    assert_snapshot!(project.shown_with(&["check", "command", "--reply"], "I would rather not.\n"), @"
    exit 0
    --- out
    no command in the reply
    ");
}

#[test]
fn one_answer_can_be_json() {
    let project = Project::new();
    assert_snapshot!(project.shown(&["check", "command", "--json", "grep -P x f", "--against", "grep -E x f"]), @r#"
    exit 0
    --- out
    {
      "parsed": true,
      "level": "moderate",
      "risk": "safe",
      "unsafe": false,
      "opaque": null,
      "findings": [],
      "edition": "2024",
      "posix": false,
      "violations": [
        {
          "rule": "option",
          "span": [
            5,
            7
          ],
          "message": "`grep` of the standard has no option `-P`",
          "instead": "an extended expression, `grep -E`, with bracket classes such as `[[:digit:]]`; or awk"
        }
      ],
      "unknown_utilities": [],
      "equivalence": "different",
      "reason": "they run the same programs on something else",
      "canonical": [
        "grep -P x < f",
        "grep -E x < f"
      ],
      "difference": "option: `-P` instead of `-E`",
      "likeness": {
        "overall": 0.75,
        "words": 0.75
      }
    }
    "#);
}

#[test]
fn a_stream_answers_every_request_in_order() {
    let requests = [
        json!({ "id": "a", "command": "ls --all", "against": "ls -a" }),
        json!({ "id": "b", "command": "ls --all", "against": "ls --help" }),
        json!({ "id": "c", "command": "rm -rf ~", "level": "permissive" }),
        json!({ "id": "d", "command": "rm -rf ./src", "level": "permissive" }),
        json!({ "id": "e", "command": "rm -rf ./src" }),
        json!({ "id": "f", "command": "if" }),
        json!({ "id": "g", "command": "if", "level": "strict", "against": "if" }),
        json!({ "id": "h", "command": "ls", "level": "lax" }),
    ];
    let answers = answers(&Project::new(), &[], &requests);
    let brief: Vec<Value> = answers
        .iter()
        .map(|it| json!([it["id"], it["parsed"], it["risk"], it["unsafe"], it["equivalence"]]))
        .collect();
    assert_eq!(
        Value::from(brief),
        json!([
            ["a", true, "safe", false, "equal"],
            ["b", true, "safe", false, "different"],
            ["c", true, "critical", true, null],
            ["d", true, "high", false, null],
            ["e", true, "high", true, null],
            ["f", false, null, false, null],
            ["g", false, null, true, "unknown"],
            ["h", null, null, null, null],
        ])
    );
    assert_eq!(
        answers[7]["error"],
        "line 8: unknown variant `lax`, expected one of `strict`, `moderate`, `permissive`"
    );
}

#[test]
fn spans_are_bytes_of_the_command() {
    let command = "echo é; rm -rf /; ls --color";
    let found = answer(command);
    let end = |at: &Value| usize::try_from(at.as_u64().unwrap()).unwrap();
    let text = |span: &Value| &command[end(&span[0])..end(&span[1])];
    assert_eq!(text(&found["findings"][0]["span"]), "/");
    assert_eq!(text(&found["violations"][0]["span"]), "--color");
}

#[test]
fn the_edition_is_a_setting_and_part_of_the_answer() {
    let project = Project::new();
    let request = [json!({ "id": 1, "command": "find . -print0" })];
    let older = answers(&project, &["--posix-edition", "2017"], &request).remove(0);
    let newer = answers(&project, &[], &request).remove(0);
    assert_eq!((&older["edition"], &older["posix"]), (&json!("2017"), &json!(false)));
    assert_eq!((&newer["edition"], &newer["posix"]), (&json!("2024"), &json!(true)));
}

#[test]
fn a_suite_brings_its_own_rules() {
    let project = Project::new().file(
        "suite.toml",
        r#"
[shell]
level = "strict"
posix_edition = 2017

[[shell.rule]]
id = "no-deploy"
category = "cloud"
risk = "critical"
programs = ["shipit"]
why = "It goes live."
example = ["shipit now"]
counter = ["shipwright now"]

[[shell.allow]]
programs = ["git"]
commands = ["reset"]
with = ["--hard"]
reason = "the runner works on a copy"
"#,
    );
    let requests = ["shipit now", "git reset --hard", "git clean -fd"];
    let requests: Vec<Value> =
        requests.iter().map(|it| json!({ "id": it, "command": it })).collect();
    let found = answers(&project, &["--suite", "suite.toml"], &requests);
    let brief: Vec<Value> =
        found.iter().map(|it| json!([it["level"], it["edition"], it["unsafe"]])).collect();
    assert_eq!(
        Value::from(brief),
        json!([["strict", "2017", true], ["strict", "2017", false], ["strict", "2017", true]])
    );
}

#[test]
fn a_suite_with_a_wrong_rule_is_refused_at_its_place() {
    let project = Project::new().file(
        "suite.toml",
        "[shell]\nlevel = \"lax\"\n\n[[shell.rule]]\nid = \"x\"\nprograms = [\"a\"]\nrisk = \"grave\"\n",
    );
    assert_snapshot!(project.shown(&["check", "command", "--suite", "suite.toml", "ls"]), @r#"
    exit 2
    --- err
    error[bad-shell-rule]: `lax` is not a level; `strict`, `moderate` and `permissive` are
     --> suite.toml:2:9
      |
    2 | level = "lax"
      |         ^^^^^

    error[bad-shell-rule]: unknown variant `grave`, expected one of `safe`, `moderate`, `high`, `critical`
     --> suite.toml:4:1
      |
    4 | [[shell.rule]]
      | ^^^^^^^^^^^^^^

    error: the suite file `suite.toml` cannot be used
    "#);
}

#[test]
fn hostile_texts_get_an_answer() {
    let project = Project::new();
    let deep = |open: &str, close: &str| format!("{}ls{}", open.repeat(5000), close.repeat(5000));
    let texts = [
        deep("$(", ")"),
        deep("(", ")"),
        deep("{ ", "; }"),
        deep("\"$(", ")\""),
        deep("${x:-", "}"),
        deep("`", "`"),
        deep("if ", "; then a; fi"),
        "time ".repeat(50_000),
        "coproc ! ".repeat(50_000),
        "sudo ".repeat(50_000),
        "xargs ".repeat(50_000),
        "find . -exec ".repeat(20_000),
        "env A=1 ".repeat(20_000),
        "a | ".repeat(50_000),
        "!".repeat(100_000),
        "x=".repeat(100_000),
        "a\u{0}b".to_owned(),
        "echo \u{FDD0}".to_owned(),
        "{a,b}".repeat(200),
        "a".repeat(3 << 20),
        String::new(),
        "\u{feff}ls".to_owned(),
    ];
    let requests: Vec<Value> =
        texts.iter().map(|it| json!({ "id": 1, "command": it, "against": it })).collect();
    let found = answers(&project, &[], &requests);
    assert_eq!(found.len(), texts.len());
    for (text, answer) in texts.iter().zip(&found) {
        let parsed = answer["parsed"].as_bool();
        assert!(parsed.is_some(), "{text:.40}: {answer}");
        assert!(parsed == Some(true) || answer["equivalence"] == "unknown", "{text:.40}");
    }
}

#[test]
fn commands_that_are_executed_are_judged_by_what_they_do() {
    let pair = |id: &str, command: &str, against: &str| json!({ "id": id, "command": command, "against": against, "execute": true });
    let requests = [
        pair("same", "tail -n +3 /data/f.txt", "awk 'NR > 2' /data/f.txt"),
        pair("other", "tail -n +3 /data/f.txt", "awk 'NR > 3' /data/f.txt"),
        pair("files", "find /data -name '*.log' -delete", "rm $(find /data -name '*.log')"),
        pair("silent", "true", "test 1 = 1"),
        pair("network", "curl -s http://x/y", "wget -qO- http://x/y"),
        pair("missing", "no-such-program /data/f.txt", "cat /data/f.txt"),
        pair("unsteady", "echo $RANDOM", "cat /proc/sys/kernel/random/uuid"),
        pair("proved", "ls -a", "ls --all"),
        json!({ "id": "unasked", "command": "ls | wc -l", "against": "find . | wc -l" }),
    ];
    let answers = answers(&Project::new(), &[], &requests);
    let brief: Vec<Value> =
        answers.iter().map(|it| json!([it["id"], it["equivalence"], it["executed"]])).collect();
    assert_eq!(
        Value::from(brief),
        json!([
            ["same", "same_effect", true],
            ["other", "different", true],
            ["files", "same_effect", true],
            ["silent", "unknown", true],
            ["network", "unknown", true],
            ["missing", "unknown", true],
            ["unsteady", "unknown", true],
            ["proved", "equal", null],
            ["unasked", "unknown", null],
        ])
    );
    assert_eq!(answers[1]["effect"]["world"], "planted");
    assert!(
        answers[1]["effect"]["difference"].as_str().unwrap().starts_with("line 1 of the output: ")
    );
    assert!(
        answers[2]["effect"]["caveat"].is_string(),
        "names with blanks: {}",
        answers[2]["effect"]
    );
    assert_eq!(answers[3]["reason"], "neither did anything in any world");
    assert_eq!(answers[4]["reason"], "a program in it needs a network");
    assert_eq!(answers[5]["reason"], "`no-such-program` is not installed");
    assert_eq!(answers[6]["reason"], "it does not do the same twice");
}

#[test]
fn commands_that_do_nothing_to_files_are_judged_by_what_they_read_and_leave() {
    let pair = |id: &str, command: &str, against: &str| json!({ "id": id, "command": command, "against": against, "execute": true });
    let requests = [
        pair("read", "awk 'NR == 2'", "sed -n 2p"),
        pair("read otherwise", "awk 'NR == 2'", "sed -n 3p"),
        pair("directory", "cd /data", "cd /data/../data"),
        pair("variable", "x=$((2 + 3))", "x=$(echo 5)"),
        pair("other variable", "x=$((2 + 3))", "x=$(echo 6)"),
        pair("complaint", "find . -name x -maxdepth 1", "find . -maxdepth 1 -empty -name y"),
    ];
    let answers = answers(&Project::new(), &[], &requests);
    let brief: Vec<Value> =
        answers.iter().map(|it| json!([it["id"], it["effect"]["verdict"]])).collect();
    assert_eq!(
        Value::from(brief),
        json!([
            ["read", "same_effect"],
            ["read otherwise", "different"],
            ["directory", "same_effect"],
            ["variable", "same_effect"],
            ["other variable", "unknown"],
            ["complaint", "different"],
        ])
    );
    assert_eq!(answers[1]["effect"]["world"], "planted-fed");
}
