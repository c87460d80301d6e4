//! `probity sandbox`.

use serde_json::Value;

use crate::project::Project;

/// What the program writes to standard output.
fn said(project: &Project, words: &[&str]) -> String {
    String::from_utf8(project.run(words).stdout).unwrap()
}

#[test]
fn what_a_command_does_is_shown() {
    let project = Project::new();
    let command =
        "wc -l < words; rm short.txt; echo x > new; chmod 600 words; mount -t tmpfs x /tmp; exit 4";
    let shown = said(&project, &["sandbox", "--world", "texts", command]);
    // How long it took differs.
    let (first, rest) = shown.split_once('\n').unwrap();
    assert!(first.starts_with("exit code 4 after "), "{shown}");
    assert!(first.ends_with("in the world texts (namespaces)"), "{shown}");
    for line in
        ["standard output:", "changes:", "  + /home/ada/texts/new  file, 2 bytes", "refused: mount"]
    {
        assert!(rest.lines().any(|it| it == line), "{line} is not in {shown}");
    }
    assert!(rest.contains("/short.txt  file, 17 bytes"), "{shown}");
    assert!(rest.contains("/words  mode 644 -> 600"), "{shown}");
}

#[test]
fn scripts_get_an_object() {
    let project = Project::new();
    let output =
        project.run(&["sandbox", "--json", "--world", "empty", "--", "printf", "%s", "$HOME"]);
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["end"]["exit"], 0);
    assert_eq!(value["stdout"], "$HOME");
    assert_eq!(value["stdout_bytes"], 5);
    assert_eq!(value["world"], "empty");
    assert_eq!(value["changes"], Value::Array(Vec::new()));
}

#[test]
fn a_command_that_does_not_end_is_ended() {
    let project = Project::new();
    let shown = said(&project, &["sandbox", "--timeout", "300ms", "while :; do :; done"]);
    assert!(shown.starts_with("killed at its time limit after "), "{shown}");
}

#[test]
fn a_world_may_be_a_file() {
    let world = "name = \"mine\"\nabout = \"One file\"\nfiles = [{ path = \"a.txt\", text = \"hello\\n\" }]\n";
    let project = Project::new().file("mine.toml", world);
    let shown = said(&project, &["sandbox", "--world", "mine.toml", "cat a.txt"]);
    assert!(shown.ends_with("standard output:\n  hello\nno file is different\n"), "{shown}");
}

#[test]
fn wrong_words_are_explained() {
    let project = Project::new();
    let none = project.shown(&["sandbox"]);
    assert!(
        none.starts_with("exit 2\n") && none.contains("there is no command to execute"),
        "{none}"
    );
    let world = project.shown(&["sandbox", "--world", "nowhere", "true"]);
    assert!(
        world.contains("there is no world `nowhere`") && world.contains("sandbox worlds"),
        "{world}"
    );
    let time = project.shown(&["sandbox", "--timeout", "soon", "true"]);
    assert!(time.contains("--timeout has to be a time above 0"), "{time}");
}

#[test]
fn the_doctor_says_what_is_there() {
    let project = Project::new();
    let shown = said(&project, &["sandbox", "doctor"]);
    assert_eq!(shown, "namespaces   works\ncommands are executed with namespaces\n");
    assert!(project.shown(&["sandbox", "worlds"]).contains("\nrepository "));
}

#[test]
fn worlds_are_kept_where_the_environment_says() {
    let project = Project::new();
    let worlds = project.path("worlds");
    let kept = || {
        let output = project
            .command(&["sandbox", "--world", "empty", "true"])
            .env("PROBITY_WORLDS", &worlds)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        std::fs::read_dir(&worlds).unwrap().map(|it| it.unwrap().file_name()).collect::<Vec<_>>()
    };
    let first = kept();
    assert_eq!(first.len(), 1);
    assert_eq!(kept(), first);
}
