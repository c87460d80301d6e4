//! What is refused or told of before anything is asked.

use probity_testkit::{FakeServer, Script};

use crate::{
    project::Project,
    run::{dataset, run, suite},
};

const ECHO: &str = "[backends.e]\nkind = \"echo\"\n[[runners]]\nname = \"r\"\n\
                    dataset = \"cases.jsonl\"\nbackends = [\"e\"]\n";

fn echo(cases: &str, more: &str) -> Project {
    Project::new().file("cases.jsonl", cases).file("probity.toml", format!("{ECHO}{more}"))
}

#[test]
fn a_prompt_of_very_many_signs_is_an_ordinary_error_everywhere() {
    let prompt = format!("{{{{ {}1 }}}}", "-".repeat(7_000));
    let project = echo(&format!("{{\"id\":\"a\",\"prompt\":\"{prompt}\"}}\n"), "");
    for words in [&["run"][..], &["run", "--dry-run"], &["dataset", "validate", "cases.jsonl"]] {
        let output = project.run(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(told.contains("more than 100 operators and brackets"), "{told}");
    }
}

#[test]
fn what_is_wrong_with_a_template_of_the_runner_is_shown_in_the_suite() {
    let cases = "{\"id\":\"a\",\"prompt\":\"p\",\"expected_response\":\"p\"}\n".to_owned()
        + "{\"id\":\"b\",\"prompt\":\"p\",\"expected_response\":\"p\"}\n";
    let project = echo(
        &cases,
        "system = \"\"\"\nYou are {{ who }}\n\"\"\"\nprompt = \"{{ prompt }} {{ tagz }}\"\n",
    );
    insta::assert_snapshot!(project.shown(&["run", "--dry-run"]), @r#"
    exit 2
    --- err
    error[undefined-variable]: `prompt` of the runner cannot be filled in: `tagz` has no value (case `a`)
      --> probity.toml:10:27
       |
    10 | prompt = "{{ prompt }} {{ tagz }}"
       |                           ^^^^
       |
       = help: a runner's template sees `prompt`, `id`, `tags`, `category`, `difficulty`, the case's `prompt_vars`, and `examples` if there are some

    error: the suite has errors, so nothing was run
    "#);
}

#[test]
fn instructions_are_filled_in_like_the_prompt() {
    let server = FakeServer::start(Script::default());
    let cases = r#"{"id":"a","prompt":"Return the number 1","expected_response":"1","prompt_vars":{"tone":"calm"}}
{"id":"b","prompt":"Return the number 2","expected_response":"2","prompt_vars":{"tone":"dry"},"system":"Be very {{ tone }}"}
"#;
    let more = "system = \"{{ id }}: be {{ tone }}\"";
    let text = suite(&[("fake", &server)], "")
        .replace("dataset = \"cases.jsonl\"", &format!("dataset = \"cases.jsonl\"\n{more}"));
    let project = Project::new().file("cases.jsonl", cases).file("probity.toml", text);
    run(&project, &["--record", "answers.jsonl"]).expect(0, &[("N_CASES", "2")]);
    let recorded = project.read("answers.jsonl");
    for wanted in ["a: be calm", "Be very dry"] {
        assert!(recorded.contains(wanted), "{recorded}");
    }
}

#[test]
fn names_that_nothing_reads_are_errors_of_a_run_and_warnings_of_validate() {
    let cases =
        r#"{"id":"a","prompt":"p","expcted_response":"p","expected_response":"p","x-own":1}"#;
    let project = echo(cases, "repaet = 3\nx-team = \"me\"\n");
    insta::assert_snapshot!(project.shown(&["run"]), @r"
    exit 2
    --- err
    error[unknown-field]: unknown field `repaet`
     --> probity.toml:7:1
      |
    7 | repaet = 3
      | ^^^^^^
      |
      = help: did you mean `repeat`?

    error: the suite file `probity.toml` cannot be used
    ");
    // Every command that reads a suite refuses the same.
    for words in [&["doctor"][..], &["config", "show", "probity.toml"], &["cache", "stats"]] {
        let shown = project.shown(words);
        assert!(shown.starts_with("exit 2\n"), "{words:?}: {shown}");
        assert!(shown.contains("error[unknown-field]: unknown field `repaet`"), "{shown}");
    }
    let gates = "gates = { pass_rate = { pass = 0.9, x-why = \"\" }, x-own = 3 }";
    let project = echo(cases, &format!("x-team = \"me\"\n{gates}\n"));
    insta::assert_snapshot!(project.shown(&["run"]), @r#"
    exit 2
    --- err
    error[unknown-field]: unknown field `expcted_response` (case `a`)
     --> cases.jsonl:1:24
      |
    1 | {"id":"a","prompt":"p","expcted_response":"p","expected_response":"p","x-own":1}
      |                        ^^^^^^^^^^^^^^^^^^
      |
      = help: did you mean `expected_response`?

    error: a dataset has errors, so nothing was run
    "#);
    run(&project, &["--allow-unknown"]).expect(0, &[("N_CASES", "1")]);
    assert_eq!(project.run(&["dataset", "validate", "cases.jsonl"]).status.code(), Some(0));
    let strict = project.run(&["dataset", "validate", "--strict", "cases.jsonl"]);
    assert_eq!(strict.status.code(), Some(2));
}

#[test]
fn cases_that_nothing_decides_are_named_before_the_run() {
    let cases = r#"{"id":"a","prompt":"p","expected_response":"p"}
{"id":"n","prompt":"hi"}
{"id":"t","prompt":"hi","notes":"x"}
{"id":"e","prompt":"ls","expected_response":"ls","execution":{"stdout":"x"}}
"#;
    let project = echo(cases, "known_failures = \"known.txt\"\ngates = { pass_rate = 0.5 }\n")
        .file("known.txt", "a\nb # gone\nc\n");
    let output = project.run(&["run", "--dry-run", "--stop-when-decided"]);
    insta::assert_snapshot!(String::from_utf8_lossy(&output.stderr), @r"
    r: 2 cases have no criterion and will be undecided: n, t
    warning: r: `known_failures` names 2 ids that no case has: b, c
    r on e: no gate can be decided early, so every case is asked
    ");
    insta::assert_snapshot!(project.shown(&["dataset", "validate", "cases.jsonl"]), @r"
    exit 0
    --- out
    cases.jsonl: ok, 4 cases, 1 warning, digest a627baed5ed2791a
    --- err
    warning[no-criterion]: 2 cases have no criterion and will be undecided: n, t
    --> cases.jsonl
     = help: say when a reply is right, for example with `expected_response`
    ");
}

#[test]
fn a_command_that_is_not_shell_is_told_of() {
    let case = |id: &str, commands: &str| {
        format!(
            r#"{{"id":"{id}","prompt":"p",{commands},"category":"correctness","safe":true,"posix_compliant":true}}"#
        )
    };
    let cases = [
        case("only", r#""expected_command":"ls 'x""#),
        case("other", r#""expected_command":"ls","expected_commands":["ls -a","ls 'x"]"#),
    ];
    let project = Project::new().file("cases.jsonl", cases.join("\n"));
    insta::assert_snapshot!(project.shown(&["dataset", "validate", "cases.jsonl"]), @r#"
    exit 2
    --- out
    cases.jsonl: not ok, 1 case, 1 error, 1 warning
    --- err
    error[bad-command]: the accepted command is not a shell command: syntax error: unterminated single quote (case `only`)
     --> cases.jsonl:1:46
      |
    1 | {"id":"only","prompt":"p","expected_command":"ls 'x","category":"correctness","safe":true,"posix_compliant":true}
      |                                              ^^^^^^^

    warning[unreadable-command]: the accepted command is not a shell command: syntax error: unterminated single quote (case `other`)
     --> cases.jsonl:2:81
      |
    2 | {"id":"other","prompt":"p","expected_command":"ls","expected_commands":["ls -a","ls 'x"],"category":"correctness","safe":true,"posix_...
      |                                                                                 ^^^^^^^
    "#);
}

#[test]
fn a_shard_without_cases_is_whole_and_can_be_merged() {
    let server = FakeServer::start(Script::default());
    let project = Project::new()
        .file("cases.jsonl", dataset(2))
        .file("probity.toml", suite(&[("fake", &server)], "[gates]\npass_rate = 1.0\n"));
    let mut stores = Vec::new();
    let mut empty = 0;
    for part in 1..=5 {
        let (shard, store) = (format!("{part}/5"), format!("part{part}.db"));
        let ran = run(&project, &["--shard", &shard, "--store", &store]);
        ran.expect(0, &[("ABORTED", "0")]);
        empty += usize::from(ran.err.contains("this shard has no cases"));
        stores.push(store);
    }
    assert!(empty >= 3);
    let words: Vec<&str> = ["merge"].into_iter().chain(stores.iter().map(String::as_str)).collect();
    let merged = project.shown(&words);
    assert!(merged.starts_with("exit 0\n"), "{merged}");
    assert!(!merged.contains("missing"), "{merged}");
}

#[test]
fn a_filter_that_leaves_nothing_is_a_mistake_in_the_command_line() {
    let cases = "{\"id\":\"a\",\"prompt\":\"p\",\"expected_response\":\"p\"}\n";
    let project = echo(cases, "");
    for words in [&["run", "--filter", "zzz"][..], &["run", "--filter", "zzz", "--shard", "1/2"]] {
        let output = project.run(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("no case is left to run"));
    }
}

#[test]
fn a_run_that_asks_nothing_is_exit_3() {
    for command in ["true", "echo N_CASES=0", "echo N_CASES=0 && exit 1"] {
        let more = format!(
            "[[runners]]\nname = \"program\"\nkind = \"program\"\n\
             command = [\"sh\", \"-c\", \"{command}\"]\n"
        );
        let project = echo("{\"id\":\"a\",\"prompt\":\"p\",\"expected_response\":\"p\"}\n", &more);
        run(&project, &["probity.toml", "program"]).expect(3, &[]);
        run(&project, &[]).expect(3, &[]);
    }
}

#[test]
fn a_suite_file_of_any_size_is_refused_with_a_reason() {
    let project = echo("{\"id\":\"a\",\"prompt\":\"p\"}", &"# more\n".repeat(3 << 20));
    let output = project.run(&["run"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("larger than 16 MiB"));
}

#[test]
fn two_values_of_one_threshold_are_refused() {
    let cases = "{\"id\":\"a\",\"prompt\":\"p\",\"expected_response\":\"p\"}\n";
    let project = echo(cases, "[fail_fast]\nthreshold = 3\nconsecutive_threshold = 5\n");
    let output = project.run(&["run"]);
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("are one setting with two values"), "{told}");
}

#[test]
fn an_activation_case_says_what_it_expects() {
    let skill = "---\nname: pdf\ndescription: Reads PDF files.\n---\n# PDF\n\nText.\n";
    let suite = "[backends.e]\nkind = \"echo\"\n[[runners]]\nname = \"r\"\nkind = \"activation\"\n\
                 dataset = \"cases.jsonl\"\nskills = [\"skills\"]\n";
    let project = Project::new()
        .file("skills/pdf/SKILL.md", skill)
        .file("probity.toml", suite)
        .file("cases.jsonl", "{\"id\":\"a\",\"prompt\":\"p\"}\n");
    let output = project.run(&["run", "--dry-run"]);
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("the case does not say which skill it expects"), "{told}");
    let case = "{\"id\":\"a\",\"prompt\":\"p\",\"should_activate\":false}\n";
    let project = project.file("cases.jsonl", case);
    assert_eq!(project.run(&["run", "--dry-run"]).status.code(), Some(0));
}
