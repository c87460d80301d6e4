use super::extract;

#[track_caller]
fn check(reply: &str, command: &str, steps: &[&str]) {
    let found = extract(reply).unwrap_or_else(|| panic!("no command in {reply:?}"));
    let names: Vec<_> = found.steps.iter().map(|it| it.as_str()).collect();
    assert_eq!((&*found.command, &*names), (command, steps), "{reply:?}");
}

#[test]
fn a_bare_command_is_taken_whole() {
    check("ls -la", "ls -la", &[]);
    check("  find . -name '*.txt'\n", "find . -name '*.txt'", &[]);
    check("frobnicate --fast", "frobnicate --fast", &[]);
    check("echo `date`", "echo `date`", &[]);
    check("for f in *; do\n  echo \"$f\"\ndone", "for f in *; do\n  echo \"$f\"\ndone", &[]);
    check("# count lines\nwc -l f", "# count lines\nwc -l f", &[]);
    check("LC_ALL=C sort f", "LC_ALL=C sort f", &[]);
}

#[test]
fn fences_are_opened() {
    check("```bash\nls -la\n```", "ls -la", &["fence"]);
    check("```\nls\n```", "ls", &["fence"]);
    check("~~~ console\n$ ls -l\ntotal 0\n~~~", "ls -l", &["fence", "prompt", "output"]);
    check(
        "Here you go:\n\n```sh\ndu -sh .\n```\n\nThis shows sizes.",
        "du -sh .",
        &["prose", "fence"],
    );
    check("```python\nprint(1)\n```\nor\n```bash\nls\n```", "ls", &["prose", "fence"]);
    check("```bash\ntar xzf a.tgz", "tar xzf a.tgz", &["fence"]);
    check("```json\n{\"command\": \"ls -l\"}\n```", "ls -l", &["fence", "json_field"]);
    check("```sh\n# apt-get update\n```", "apt-get update", &["fence", "prompt"]);
    check("```sh\n# list all files\nls -a\n```", "# list all files\nls -a", &["fence"]);
    check("``` ls -l ```", "ls -l", &["fence"]);
}

#[test]
fn prompts_are_cut() {
    check("$ ls -la", "ls -la", &["prompt"]);
    check("user@host:~/src$ git status", "git status", &["prompt"]);
    check("root@box:/# reboot", "reboot", &["prompt"]);
    check("$ cd src\n$ make \\\n>   all\nok", "cd src\nmake \\\n  all", &["prompt", "output"]);
    check("Run this:\n$ ls", "ls", &["prose", "prompt"]);
}

#[test]
fn inline_code_labels_and_json() {
    check("`ls -la`", "ls -la", &["inline_code"]);
    check("You can use `ls -la` to list everything.", "ls -la", &["prose", "inline_code"]);
    check("Use the `find` utility: `find . -type f`.", "find . -type f", &["prose", "inline_code"]);
    check("Command: ls -la", "ls -la", &["label"]);
    check("**Command:** `ls -la`", "ls -la", &["label", "inline_code"]);
    check("Explanation first.\nCommand:\nls -la\nDone.", "ls -la", &["prose", "label"]);
    check("{\"command\": \"ls -la\", \"risk\": \"safe\"}", "ls -la", &["json_field"]);
    check("{\"cmd\": [\"grep\", \"a b\", \"f\"]}", "grep 'a b' f", &["json_field"]);
}

#[test]
fn prose_around_a_line_is_cut() {
    check(
        "To list the files you can run this command:\n\nls -la\n\nIt shows hidden files too.",
        "ls -la",
        &["prose"],
    );
    check("1. du -sh *\n2. du -h", "du -sh *", &["prose"]);
}

#[test]
fn thoughts_and_warnings_are_passed_over() {
    check("<think>maybe `rm -rf /`</think>\n`ls -la`", "ls -la", &["inline_code"]);
    check("Do NOT run `rm -rf /`. Use `ls -la` instead.", "ls -la", &["prose", "inline_code"]);
    check("```bash ls -la```", "ls -la", &["fence"]);
    check("Run it:\n\n    grep -r foo .\n", "grep -r foo .", &["prose"]);
    check("> ls -la", "ls -la", &["prose"]);
}

#[test]
fn the_first_of_several_is_taken_and_the_others_are_counted() {
    let found = extract("```sh\nls\n```\nor\n```sh\nfind .\n```").expect("there are two");
    assert_eq!((&*found.command, found.alternatives), ("ls", 1));
    let found = extract("Either `ls -a` or `ls -A .` will do.").expect("there are two");
    assert_eq!((&*found.command, found.alternatives), ("ls -a", 1));
}

#[test]
fn a_reply_without_a_command_gives_none() {
    for reply in [
        "",
        "  \n",
        "I'm sorry, but I can't help with that.",
        "That would delete all of your files, so I will not do it.",
        "Which folder do you mean?",
    ] {
        assert_eq!(extract(reply), None, "{reply:?}");
    }
}

#[test]
fn spans_point_at_the_command() {
    let reply = "Do this: `ls -la` now.";
    let found = extract(reply).expect("there is one");
    assert_eq!(found.span.of(reply), "ls -la");
}
