use super::{SIGNS, WARNINGS, all, extract};

#[track_caller]
fn check(reply: &str, command: &str, steps: &[&str]) {
    let found = extract(reply).unwrap_or_else(|| panic!("no command in {reply:?}"));
    let names: Vec<_> = found.steps.iter().map(|it| it.as_str()).collect();
    assert_eq!((&*found.command, &*names), (command, steps), "{reply:?}");
}

#[test]
fn a_redirection_alone_is_a_command() {
    for reply in [
        "> file",
        "> notes.txt",
        "> /var/log/app.log",
        "> ~/notes",
        "> \"my file\"",
        "> \"$LOG\"",
        "> app.log 2>&1",
        ">notes.txt",
        ">> notes.txt",
        "2> errors.txt",
    ] {
        check(reply, reply, &[]);
    }
    for reply in [
        "> Paris",
        "> done.",
        "> The file is empty now.",
        "> notes.txt is empty now",
        "> notes.txt\n> more.txt",
        "> notes.txt\n\nThat is the name.",
        ">",
    ] {
        assert_eq!(extract(reply), None, "{reply}");
    }
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
fn emphasis_is_taken_off() {
    check("**ls -la**", "ls -la", &["inline_code"]);
    check("This will do.\n\n**ls -la**\n\nIt lists files.", "ls -la", &["prose", "inline_code"]);
    check("Command: **ls -la**", "ls -la", &["label", "inline_code"]);
    check("**Command:** ls -la", "ls -la", &["label"]);
    check("ls **/*.rs **/*.toml", "ls **/*.rs **/*.toml", &[]);
    check("**Listing files**\n\nls -la", "ls -la", &["prose"]);
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
    check("> ls", "ls", &["prose"]);
    check("> /bin/ls", "/bin/ls", &["prose"]);
    check("> ./build.sh", "./build.sh", &["prose"]);
}

#[test]
fn blocks_that_the_reply_warns_of_are_passed_over() {
    let good = "```sh\nls -la\n```";
    let bad = "```sh\nrm -rf /srv\n```";
    for before in [
        "Don't run this:",
        "Do **not** run the following command:",
        "Never use:",
        "Avoid commands like this one:",
        "You should not execute this.",
        "Whatever you do, don’t paste this!",
        "Bad:",
        "❌ Like so:",
        "Some words. Please do not use this:",
        "Instead of:",
    ] {
        let reply = format!("{before}\n\n{bad}\n\nUse this:\n\n{good}");
        check(&reply, "ls -la", &["prose", "fence"]);
    }
    check(
        &format!("Never run this:\n{bad}\nRun `ls -la` instead."),
        "ls -la",
        &["prose", "inline_code"],
    );
    check(&format!("Never run this:\n{bad}"), "rm -rf /srv", &["prose", "fence"]);
    for before in [
        "Instead of deleting everything, run:",
        "To avoid losing files, use this:",
        "Don't use rm, use this instead:",
        "Never run this without a backup:",
        "Do not forget to run:",
        "You can avoid that. Run:",
    ] {
        check(&format!("{before}\n{good}\nor\n{bad}"), "ls -la", &["prose", "fence"]);
    }
    check("Instead of `rm -rf x`, use `trash x`.", "trash x", &["prose", "inline_code"]);
}

#[test]
fn blocks_of_other_kinds_give_way() {
    let shell = "```bash\nls -la\n```";
    for other in [
        "```diff\n-rm a\n+rm b\n```",
        "```output\ntotal 0\n```",
        "```powershell\nGet-ChildItem\n```",
        "```cmd\ndir\n```",
        "```json\n{\"files\": 3}\n```",
        "```yaml\na: 1\n```",
        "```\ntotal 0\n```",
    ] {
        check(&format!("{other}\n{shell}"), "ls -la", &["fence"]);
        check(&format!("{shell}\n{other}"), "ls -la", &["fence"]);
    }
    check("```\ntotal 0\n```\n```\nls -la\n```", "ls -la", &["fence"]);
    check("```output\ntotal 0\n```\nRun `ls -la` first.", "ls -la", &["prose", "inline_code"]);
}

#[test]
fn a_block_of_another_kind_alone() {
    check("```powershell\nGet-ChildItem\n```", "Get-ChildItem", &["fence"]);
    check("```cmd\ndir\n```", "dir", &["fence"]);
    check("```json\n{\"cmd\": \"ls\"}\n```", "ls", &["fence", "json_field"]);
    for reply in [
        "```diff\n-rm a\n+rm b\n```",
        "```json\n{\"files\": 3}\n```",
        "This is printed:\n```output\nrm: cannot remove\n```",
    ] {
        assert_eq!(extract(reply), None, "{reply:?}");
    }
}

#[test]
fn what_a_command_printed_is_cut() {
    check("```console\nls -l\ntotal 0\n-rw-r--r-- 1 ada\n```", "ls -l", &["fence", "output"]);
    check("```console\ncd src\nls -l\n```", "cd src\nls -l", &["fence"]);
    check("```sh\nls -l\ntotal 0\n```", "ls -l\ntotal 0", &["fence"]);
}

#[test]
fn a_first_line_that_is_a_command_beats_code_in_its_explanation() {
    check(
        "tar cf notes.tar notes\n\nIt packs `notes` into the file `notes.tar`.",
        "tar cf notes.tar notes",
        &["prose"],
    );
    check(
        "ls -l | wc -l\nThe `wc -l` part counts lines, and `ls` lists.",
        "ls -l | wc -l",
        &["prose"],
    );
    check("cd src\nmake\n\nThat runs `make all` there.", "cd src\nmake", &["prose"]);
    check("frobnicate --fast\n\nSee `ls -l` for more.", "frobnicate --fast", &["prose"]);
    check("scp a.txt box:\n\nThe file `a.txt` is sent.", "scp a.txt box:", &["prose"]);
    check("du -sh\n\nIt prints:\n```\n4.0K .\n```", "du -sh", &["prose"]);
    check(
        "#!/bin/sh\n\n# go\nfor f in *; do\n  rm \"$f\"\ndone\n\nThis uses `rm` on each.",
        "#!/bin/sh\n\n# go\nfor f in *; do\n  rm \"$f\"\ndone",
        &["prose"],
    );
}

#[test]
fn a_first_line_of_prose_does_not_beat_code() {
    for first in ["make sure that you use", "git commit:\n\nThe command is", "find it with this:"] {
        let reply = format!("{first} `ls -la` for that.");
        check(&reply, "ls -la", &["prose", "inline_code"]);
    }
    check("du -sh\n\nor rather:\n```sh\ndu -s\n```", "du -s", &["prose", "fence"]);
    assert_eq!(extract("git commit:\n\n- \"all\"\n- \"some\""), None);
}

#[test]
fn a_fence_that_is_only_closed() {
    check("ls -la\n```", "ls -la", &["fence"]);
    check("echo a\necho b\n```\n\nIt prints `a` and `b`.", "echo a\necho b", &["prose", "fence"]);
    check("bash\nls -la\n```\nDone.", "ls -la", &["prose", "fence"]);
    check("$ ls -la\n```\nThat lists all of the files.", "ls -la", &["prose", "fence", "prompt"]);
    check("Run it so:\n\nls -la\n```\nThat lists all of the files.", "ls -la", &["prose"]);
    check(
        "#!/bin/sh\necho hi\n```\n\nThis will print:\n\n```\nhi\n```",
        "#!/bin/sh\necho hi",
        &["prose", "fence"],
    );
    check(
        "wc -l f\n```\nThis script will count the lines.\n\n```\n3 f\n",
        "wc -l f",
        &["prose", "fence"],
    );
    check("Run this now:\n```\nls", "ls", &["prose", "fence"]);
}

#[test]
fn comments_are_no_command() {
    for reply in [
        "```sh\n# first\n\n# second\n```",
        "```\n\n```",
        "#!/bin/sh\n\n# This would count the lines.\n",
        "```bash\n# none\n```\nThis makes a file named `a.tar`.",
    ] {
        assert_eq!(extract(reply), None, "{reply:?}");
    }
    check("```sh\n# see\n# below\n```\n\n```\nmake\n```", "make", &["fence"]);
    check("```\n# a\n# b\n```\nUse `touch a`.", "touch a", &["prose", "inline_code"]);
    check("# apt-get update", "apt-get update", &["prompt"]);
}

#[test]
fn other_languages_are_no_shell() {
    for tag in ["python", "py", "JavaScript", "ruby", "sql", "c++", "dockerfile", "make", "yaml"] {
        let other = format!("```{tag}\nprint 1\n```");
        assert_eq!(extract(&other), None, "{tag}");
        assert_eq!(extract(&format!("{other}\nIt prints the `name` argument.")), None, "{tag}");
        check(&format!("{other}\n```\nls\n```"), "ls", &["fence"]);
        check(&format!("{other}\nRun `ls -l`."), "ls -l", &["prose", "inline_code"]);
    }
    for tag in ["console", "terminal", "shell-session", "sh", "bash", "zsh", "fish", "cmd", ""] {
        check(&format!("```{tag}\nls -l\n```"), "ls -l", &["fence"]);
    }
    assert_eq!(extract("```\npython\nimport os\nprint(os.name)\n```"), None);
    check("```\nmake\nmake install\n```", "make\nmake install", &["fence"]);
    check("```python a.py```", "python a.py", &["fence"]);
}

#[test]
fn a_lone_name_in_prose() {
    check("Try `htop` for that.", "htop", &["prose", "inline_code"]);
    for reply in ["It is in the file `notes`.", "See `notes.txt`.", "The `colors` array holds it."]
    {
        assert_eq!(extract(reply), None, "{reply:?}");
    }
}

#[test]
fn the_first_of_several_is_taken_and_the_others_are_counted() {
    let found = extract("```sh\nls\n```\nor\n```sh\nfind .\n```").expect("there are two");
    assert_eq!((&*found.command, found.alternatives), ("ls", 1));
    let found = extract("Either `ls -a` or `ls -A .` will do.").expect("there are two");
    assert_eq!((&*found.command, found.alternatives), ("ls -a", 1));
}

#[test]
fn all_commands_of_a_reply() {
    let found = |reply| all(reply).iter().map(|it| it.command.to_string()).collect::<Vec<_>>();
    assert_eq!(found("rm -r a\n\nSee `ls -l` and `a.txt`."), ["rm -r a", "ls -l"]);
    assert_eq!(found("```\nls\n```\nor `ls -a`"), ["ls", "ls -a"]);
    assert_eq!(found("```python\nls\n```\n"), [""; 0]);
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

#[test]
fn long_replies_are_read_in_no_time() {
    let start = std::time::Instant::now();
    for reply in [
        "never run `ls -l` ".repeat(4_000),
        "```".repeat(20_000),
        "Avoid:\n```sh\nls\n```\n".repeat(3_000),
        "❌".repeat(20_000) + " `ls`",
    ] {
        let _ = extract(&reply);
    }
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}

#[test]
fn every_warning_has_a_sign() {
    for warning in WARNINGS {
        assert!(SIGNS.iter().any(|it| warning.contains(it)), "{warning}");
    }
}
