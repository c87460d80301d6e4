use insta::assert_snapshot;

use crate::project::Project;

#[test]
fn help_teaches_every_command() {
    let project = Project::new();
    for words in [
        vec!["--help"],
        vec!["init", "--help"],
        vec!["classify", "--help"],
        vec!["check", "--help"],
        vec!["check", "refusal", "--help"],
        vec!["check", "json", "--help"],
        vec!["check", "policy", "--help"],
        vec!["check", "command", "--help"],
        vec!["check", "error", "--help"],
        vec!["dataset", "--help"],
        vec!["dataset", "validate", "--help"],
        vec!["dataset", "stats", "--help"],
        vec!["dataset", "lint", "--help"],
        vec!["dataset", "convert", "--help"],
        vec!["dataset", "import", "--help"],
        vec!["completions", "--help"],
        vec!["man", "--help"],
    ] {
        let text = project.shown(&words);
        assert!(text.contains("Example"), "{words:?} has no example");
        let name = words[..words.len() - 1].join("_");
        assert_snapshot!(format!("help_{name}"), text);
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
    assert!(project.read("pages/probity-dataset-import.1").contains("promptfoo"));
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
