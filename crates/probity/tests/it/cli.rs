use std::{fs, path::Path};

use insta::assert_snapshot;

use crate::project::Project;

/// The commands below one, as its help lists them.
fn subcommands(help: &str) -> Vec<String> {
    let listed = help.split_once("\nCommands:\n").map_or("", |(_, rest)| rest);
    let until_next = listed.split("\n\n").next().unwrap_or("");
    let rows = until_next.lines().filter_map(|line| line.strip_prefix("  "));
    // What is indented further goes on with the line before.
    let rows = rows.filter(|it| it.starts_with(|c: char| c.is_ascii_lowercase()));
    let names = rows.filter_map(|it| it.split_whitespace().next());
    names.filter(|it| *it != "help").map(ToOwned::to_owned).collect()
}

/// Every command with its help, those below it after it.
fn each_help(project: &Project, words: &[&str], call: &mut dyn FnMut(&[&str], &str)) {
    let text = project.shown(&[words, &["--help"]].concat());
    call(words, &text);
    for name in subcommands(&text) {
        each_help(project, &[words, &[name.as_str()]].concat(), call);
    }
}

#[test]
fn help_teaches_every_command() {
    let mut seen = 0;
    each_help(&Project::new(), &[], &mut |words, text| {
        assert!(text.contains("Example"), "{words:?} has no example");
        assert_snapshot!(format!("help_{}", words.join("_")), text);
        seen += 1;
    });
    assert!(seen > 30, "{seen}");
}

#[test]
fn the_exit_codes_are_the_same_everywhere() {
    let project = Project::new();
    let help = project.shown(&["--help"]);
    let (_, codes) = help.split_once("Exit codes:\n").unwrap();
    let rows: Vec<String> = codes
        .lines()
        .map(|line| line.trim().split_once(' ').unwrap())
        .map(|(code, meaning)| format!("| {code} | {} |", meaning.trim()))
        .collect();
    let numbers: Vec<&str> = rows.iter().filter_map(|row| row.split(' ').nth(1)).collect();
    assert_eq!(numbers, ["0", "1", "2", "3", "130"]);
    assert!(project.shown(&["run", "--help"]).ends_with(codes));
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for file in ["README.md", "ARCHITECTURE.md", "docs/reference/exit-codes.md"] {
        let text = fs::read_to_string(top.join(file)).unwrap();
        assert!(text.contains(&rows.join("\n")), "{file} says otherwise");
    }
}

#[test]
fn the_wrong_words_are_a_usage_error() {
    let project = Project::new();
    assert_snapshot!(project.shown(&["clasify", "x"]), @"
    exit 2
    --- err
    error: unrecognized subcommand 'clasify'

      tip: some similar subcommands exist: 'ls', 'classify'

    Usage: probity [OPTIONS] <COMMAND>

    For more information, try '--help'.
    ");
    assert_snapshot!(project.shown(&["check", "json", "--level", "kind"]), @"
    exit 2
    --- err
    error: invalid value 'kind' for '--level <LEVEL>'
      [possible values: strict, lenient, repair]

    For more information, try '--help'.
    ");
}

#[test]
fn without_a_suite_file_the_way_to_one_is_shown() {
    let project = Project::new();
    assert_snapshot!(project.shown(&["run"]), @r"
    exit 2
    --- err
    error: there is no suite file `probity.toml`, `probity.yaml` or `probity.yml`
    hint: `probity init` writes one to start from; `probity run FILE` names another
    ");
    assert!(project.run(&["init"]).status.success());
    let again = project.shown(&["run", "--dry-run"]);
    assert!(!again.contains("there is no suite file"), "{again}");
}

#[test]
fn completions_and_manual_come_from_the_same_definition() {
    let project = Project::new();
    for shell in ["bash", "zsh", "fish"] {
        let output = project.run(&["completions", shell]);
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(script.contains("classify") && script.contains("dataset"), "{shell}");
    }
    let page = String::from_utf8(project.run(&["man"]).stdout).unwrap();
    assert!(page.starts_with(".ie") && page.contains("probity"));
    assert!(project.run(&["man", "--all", "pages"]).status.success());
    assert!(project.read("pages/probity-import.1").contains("promptfoo"));
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let line = "{\"case_id\":\"a\",\"raw_response\":\"x\"}\n";
    let project = Project::new().file("many.jsonl", line.repeat(100_000));
    let mut child = project
        .command(&["classify", "many.jsonl", "--quiet"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn colour_is_for_terminals_and_for_those_who_ask() {
    let project = Project::new();
    let plain = project.run(&["check", "json", "--text", "{"]);
    assert!(!plain.stdout.contains(&0x1b));
    let forced = project.run(&["--color", "always", "check", "json", "--text", "{"]);
    assert!(forced.stdout.contains(&0x1b));
}
