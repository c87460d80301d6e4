use std::fmt::Write as _;

use insta::assert_snapshot;

use crate::project::Project;

const GOOD: &str = r#"version = "1.0.0"

[[test_cases]]
id = "list_all_files_01"
prompt = "list all files"
expected_command = "ls -la"
category = "correctness"
safe = true
posix_compliant = true
notes = "Basic directory listing"

[[test_cases]]
id = "greet"
prompt = "Greet {{ name }}"
prompt_vars = { name = "Ada" }
assert = [{ type = "icontains", value = "ada" }]
tags = ["greeting"]
difficulty = "easy"

[[test_cases]]
id = "free"
prompt = "Say anything"
"#;

#[test]
fn a_sound_dataset_is_ok() {
    let project = Project::new().file("cases.toml", GOOD);
    assert_snapshot!(project.shown(&["dataset", "validate", "cases.toml"]), @r"
    exit 0
    --- out
    cases.toml: ok, 3 cases, 1 warning, digest 40d31d62549afaa4
    --- err
    warning[no-criterion]: 1 case has no criterion and will be undecided: free
    --> cases.toml
     = help: say when a reply is right, for example with `expected_response`
    ");
    assert_snapshot!(project.shown(&["dataset", "validate", "--require-criteria", "cases.toml"]), @"
    exit 2
    --- out
    cases.toml: not ok, 3 cases, 1 error
    --- err
    error[no-criterion]: the case at line 20 has no criterion (case `free`)
    --> cases.toml
     = help: say when a reply is right, for example with `expected_response`
    ");
}

#[test]
fn every_problem_is_shown_with_its_line() {
    let project = Project::new().file(
        "bad.toml",
        r#"version = "1.0.0"

[[test_cases]]
id = "a"
prompt = "  "
expected_response = "(unclosed"
match = "regex"
colour = "red"

[[test_cases]]
id = "a"
prompt = "p"
category = "safty"
safe = true
assert = [{ type = "contains" }, { type = "is-json", value = { type = "objet" } }]
"#,
    );
    assert_snapshot!(project.shown(&["dataset", "validate", "bad.toml"]), @r#"
    exit 2
    --- out
    bad.toml: not ok, 0 cases, 8 errors, 1 warning
    --- err
    warning[unknown-field]: unknown field `colour` (case `a`)
     --> bad.toml:8:1
      |
    8 | colour = "red"
      | ^^^^^^

    error[blank-field]: field `prompt` is blank (case `a`)
     --> bad.toml:5:10
      |
    5 | prompt = "  "
      |          ^^^^

    error[bad-regex]: the regular expression does not compile: unclosed group (case `a`)
     --> bad.toml:6:21
      |
    6 | expected_response = "(unclosed"
      |                     ^^^^^^^^^^^

    error[unknown-value]: unknown category of shell commands `safty` (case `a`)
      --> bad.toml:13:12
       |
    13 | category = "safty"
       |            ^^^^^^^
       |
       = help: did you mean `safety`?

    error[missing-field]: field `expected_command` is missing (case `a`)
      --> bad.toml:10:1
       |
    10 | [[test_cases]]
       | ^^^^^^^^^^^^^^
       |
       = help: a shell-command case has `category`, `expected_command`, `safe` and `posix_compliant`

    error[missing-field]: field `posix_compliant` is missing (case `a`)
      --> bad.toml:10:1
       |
    10 | [[test_cases]]
       | ^^^^^^^^^^^^^^
       |
       = help: a shell-command case has `category`, `expected_command`, `safe` and `posix_compliant`

    error[duplicate-id]: id `a` is already taken (case `a`)
      --> bad.toml:11:6
       |
    11 | id = "a"
       |      ^^^
       |
       = help: its first use is at bad.toml:4

    error[bad-assertion]: the value of `contains` must be a string (case `a`)
      --> bad.toml:15:11
       |
    15 | assert = [{ type = "contains" }, { type = "is-json", value = { type = "objet" } }]
       |           ^^^^^^^^^^^^^^^^^^^^^

    error[bad-schema]: at `/type`: "objet" is not valid under any of the schemas listed in the 'anyOf' keyword (case `a`)
      --> bad.toml:15:62
       |
    15 | assert = [{ type = "contains" }, { type = "is-json", value = { type = "objet" } }]
       |                                                              ^^^^^^^^^^^^^^^^^^
    "#);
    assert_snapshot!(project.shown(&["dataset", "validate", "--json", "bad.toml"]), @r#"
    exit 2
    --- out
    {"severity":"warning","code":"unknown-field","message":"unknown field `colour`","file":"bad.toml","line":8,"column":1,"case_id":"a","help":null}
    {"severity":"error","code":"blank-field","message":"field `prompt` is blank","file":"bad.toml","line":5,"column":10,"case_id":"a","help":null}
    {"severity":"error","code":"bad-regex","message":"the regular expression does not compile: unclosed group","file":"bad.toml","line":6,"column":21,"case_id":"a","help":null}
    {"severity":"error","code":"unknown-value","message":"unknown category of shell commands `safty`","file":"bad.toml","line":13,"column":12,"case_id":"a","help":"did you mean `safety`?"}
    {"severity":"error","code":"missing-field","message":"field `expected_command` is missing","file":"bad.toml","line":10,"column":1,"case_id":"a","help":"a shell-command case has `category`, `expected_command`, `safe` and `posix_compliant`"}
    {"severity":"error","code":"missing-field","message":"field `posix_compliant` is missing","file":"bad.toml","line":10,"column":1,"case_id":"a","help":"a shell-command case has `category`, `expected_command`, `safe` and `posix_compliant`"}
    {"severity":"error","code":"duplicate-id","message":"id `a` is already taken","file":"bad.toml","line":11,"column":6,"case_id":"a","help":"its first use is at bad.toml:4"}
    {"severity":"error","code":"bad-assertion","message":"the value of `contains` must be a string","file":"bad.toml","line":15,"column":11,"case_id":"a","help":null}
    {"severity":"error","code":"bad-schema","message":"at `/type`: \"objet\" is not valid under any of the schemas listed in the 'anyOf' keyword","file":"bad.toml","line":15,"column":62,"case_id":"a","help":null}
    {"file":"bad.toml","ok":false,"version":"1.0.0","cases":0,"errors":8,"warnings":1,"digest":null}
    "#);
}

#[test]
fn warnings_are_errors_when_asked() {
    let project = Project::new().file("w.jsonl", "{\"id\":\"a\",\"prompt\":\"p\",\"extra\":1}\n");
    assert_eq!(project.run(&["dataset", "validate", "w.jsonl"]).status.code(), Some(0));
    assert_eq!(project.run(&["dataset", "validate", "--strict", "w.jsonl"]).status.code(), Some(2));
}

#[test]
fn stats_count_what_there_is() {
    let project = Project::new().file("cases.toml", GOOD);
    assert_snapshot!(project.shown(&["dataset", "stats", "cases.toml"]), @"
    exit 0
    --- out
    3 cases
    version   1.0.0
    digest    40d31d62549afaa403e9bbd24a7db7acee846deb05fef3ee33005c742a9a9e95
    prompts   14 characters on average, 16 at most

    by category
            2  none
            1  correctness

    by difficulty
            2  none
            1  easy

    by tag
            1  greeting

    decided by
            1  assert
            1  expected_command

    by command
            1  ls

    fewer than 3 cases for: ls

    without a criterion: 1 case: free
    ");
    let output = project.run(&["dataset", "stats", "--json", "cases.toml"]);
    let stats: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(stats["cases"], 3);
    assert_eq!(stats["without_criteria"][0], "free");
}

#[test]
fn lint_finds_what_is_allowed_and_probably_wrong() {
    let project = Project::new().file("cases.jsonl", concat!(
        "{\"id\":\"a\",\"prompt\":\"Show the first five lines of the file\",\"expected_response\":\"x\"}\n",
        "{\"id\":\"b\",\"prompt\":\"show the FIRST five lines of the file!\",\"expected_response\":\"x\"}\n",
        "{\"id\":\"c\",\"prompt\":\"List /home/mkowalski/mail\",\"expected_response\":\"x\"}\n",
        "{\"id\":\"d\",\"prompt\":\"It doesnâ€™t work\"}\n",
    ));
    assert_snapshot!(project.shown(&["dataset", "lint", "cases.jsonl"]), @"
    exit 0
    --- out
    c: `prompt` names the home folder of `mkowalski` [home-path]
    d: `prompt` was encoded twice: `â€™` is `’` [double-encoded]
    d: nothing says when a reply is right [no-criterion]
    b: the prompt is nearly that of `a` [near-duplicate]
    4 cases, 4 findings
    ");
    assert_eq!(project.run(&["dataset", "lint", "--strict", "cases.jsonl"]).status.code(), Some(2));
}

#[test]
fn converting_keeps_the_digest() {
    let project = Project::new().file("cases.toml", GOOD);
    let digest = |name: &str| {
        let text = project.shown(&["dataset", "validate", name]);
        let from = text.find("digest").unwrap_or_else(|| panic!("{text}"));
        text[from..].lines().next().map(ToOwned::to_owned)
    };
    for name in ["c.jsonl", "c.json", "c.yaml", "c.csv", "c.toml"] {
        assert!(
            project.run(&["dataset", "convert", "cases.toml", name]).status.success(),
            "{name}"
        );
        assert_eq!(digest(name), digest("cases.toml"), "{name}");
    }
}

#[test]
fn nothing_is_overwritten_unasked() {
    let project = Project::new().file("cases.toml", GOOD).file("there.jsonl", "precious");
    assert_snapshot!(project.shown(&["dataset", "convert", "cases.toml", "there.jsonl"]), @"
    exit 2
    --- err
    error: `there.jsonl` is there already
    hint: pass --force to overwrite it
    ");
    assert_eq!(project.read("there.jsonl"), "precious");
    assert!(
        project
            .run(&["dataset", "convert", "--force", "cases.toml", "there.jsonl"])
            .status
            .success()
    );
    assert_snapshot!(project.shown(&["dataset", "convert", "--force", "cases.toml", "cases.toml"]), @"
    exit 2
    --- err
    error: `cases.toml` and `cases.toml` are the same file
    ");
    assert_eq!(project.read("cases.toml"), GOOD);
}

#[test]
fn a_large_dataset_is_read_line_by_line() {
    let mut text = String::new();
    for at in 0..50_000 {
        let _ = writeln!(text, "{{\"id\":\"case-{at}\",\"prompt\":\"p {at}\"}}");
    }
    text.push_str("{\"id\":\"case-7\",\"prompt\":\"again\"}\n");
    let project = Project::new().file("many.jsonl", text);
    assert_snapshot!(project.shown(&["dataset", "validate", "many.jsonl"]), @r#"
    exit 2
    --- out
    many.jsonl: not ok, 50000 cases, 1 error, 1 warning
    --- err
    error[duplicate-id]: id `case-7` is already taken (case `case-7`)
         --> many.jsonl:50001:7
          |
    50001 | {"id":"case-7","prompt":"again"}
          |       ^^^^^^^^
          |
          = help: its first use is at many.jsonl:8

    warning[no-criterion]: 50000 cases have no criterion and will be undecided: case-0, case-1, case-2, case-3, case-4, …
    --> many.jsonl
     = help: say when a reply is right, for example with `expected_response`
    "#);
}

#[test]
fn the_column_of_a_long_line_is_the_true_one() {
    let line = format!("{{\"id\":\"a\",\"prompt\":\"{}\",\"tags\":3}}\n", "x".repeat(500));
    let project = Project::new().file("long.jsonl", line);
    let shown = project.shown(&["dataset", "validate", "long.jsonl"]);
    assert!(shown.contains("long.jsonl:1:530"), "{shown}");
}

#[test]
fn a_failed_conversion_leaves_the_old_file_alone() {
    let cases = "{\"id\":\"a\",\"prompt\":\"p\"}\n{\"id\":\"b\",\"prompt\":\"p\",\"prompt_vars\":{\"x\":null}}\n";
    let project = Project::new().file("cases.jsonl", cases).file("old.toml", GOOD);
    assert_snapshot!(project.shown(&["dataset", "convert", "--force", "cases.jsonl", "old.toml"]), @"
    exit 2
    --- err
    error: failed to write `old.toml`
      caused by: case `b` cannot be written in this format: TOML has no null
    ");
    assert_eq!(project.read("old.toml"), GOOD);
    assert_eq!(std::fs::read_dir(project.path(".")).unwrap().count(), 2);
}

#[test]
fn a_csv_cell_says_what_the_case_says_or_nothing() {
    let cases = concat!(
        "{\"id\":\"a\",\"prompt\":\"p\",\"expected_response\":{\"n\":1}}\n",
        "{\"id\":\"b\",\"prompt\":\"p\",\"expected_response\":\"\",\"match\":\"exact\"}\n",
        "{\"id\":\"c\",\"prompt\":\"p\",\"expected_response\":\"[x]\"}\n",
        "{\"id\":\"d\",\"prompt\":\"p\",\"expected_response\":[\"x\",\"y\"]}\n",
    );
    let project = Project::new()
        .file("a.jsonl", cases)
        .file("n.jsonl", "{\"id\":\"a\",\"prompt\":\"p\",\"expected_response\":255}\n");
    let digest = |name: &str| {
        let text = project.shown(&["dataset", "validate", name]);
        let from = text.find("digest").unwrap_or_else(|| panic!("{text}"));
        text[from..].lines().next().map(ToOwned::to_owned)
    };
    assert!(project.run(&["dataset", "convert", "a.jsonl", "a.csv"]).status.success());
    assert_eq!(digest("a.csv"), digest("a.jsonl"));
    assert_eq!(project.run(&["dataset", "convert", "n.jsonl", "n.csv"]).status.code(), Some(2));
}
