use super::*;

fn acts(text: &str) -> Vec<(String, Value)> {
    match read(text, &AgentTool::ALL) {
        Said::Acts(calls) => calls.into_iter().map(|it| (it.name, it.arguments)).collect(),
        other @ (Said::Answers(_) | Said::Malformed(_)) => panic!("{text}: {other:?}"),
    }
}

fn answers(text: &str) -> String {
    match read(text, &AgentTool::ALL) {
        Said::Answers(answer) => answer,
        other @ (Said::Acts(_) | Said::Malformed(_)) => panic!("{text}: {other:?}"),
    }
}

#[test]
fn blocks_are_calls() {
    let bash = |command: &str| vec![("bash".to_owned(), json!({ "command": command }))];
    assert_eq!(acts("I look first.\n```bash\nls -l\n```\nThen I see."), bash("ls -l"));
    assert_eq!(acts("```sh\ncat <<'X'\na\nX\n```"), bash("cat <<'X'\na\nX"));
    assert_eq!(acts("```bash ls```"), bash("ls"));
    let read = vec![("read_file".to_owned(), json!({ "path": "a b.txt" }))];
    assert_eq!(acts("```read_file a b.txt\n```"), read);
    assert_eq!(acts("```read_file\na b.txt\n```"), read);
    let content = "one\n```\ntwo\n```\n";
    let written = vec![("write_file".to_owned(), json!({ "path": "x.md", "content": content }))];
    assert_eq!(acts(&format!("````write_file x.md\n{content}````")), written);
    let both = acts("```bash\na\n```\nand\n```bash\nb\n```\nANSWER: done");
    assert_eq!(both, [bash("a"), bash("b")].concat());
}

#[test]
fn an_answer_is_marked_and_may_hold_blocks_of_something_else() {
    assert_eq!(answers("ANSWER: 42"), "42");
    assert_eq!(answers("I am done.\n**Answer:** it is\nin two lines\n"), "it is\nin two lines");
    assert_eq!(answers("answer: see\n```python\nx = 1\n```\n"), "see\n```python\nx = 1\n```");
    assert_eq!(answers("ANSWER:"), "");
}

#[test]
fn what_is_neither_is_told() {
    let told = |text: &str| match read(text, &AgentTool::ALL) {
        Said::Malformed(told) => told,
        other @ (Said::Acts(_) | Said::Answers(_)) => panic!("{text}: {other:?}"),
    };
    assert_eq!(told("I would run ls."), WORDS.neither);
    assert_eq!(told("```python\nANSWER: 1\n```"), WORDS.neither);
    assert_eq!(told(""), WORDS.neither);
    assert_eq!(told("```bash\nrm -rf "), WORDS.open);
}

#[test]
fn any_text_is_read_in_linear_time() {
    for part in ["```bash\n", "ANSWER", "```", "```write_file \n", "\u{fffd}`"] {
        let _ = read(&part.repeat(100_000), &AgentTool::ALL);
    }
}

#[test]
fn wrong_calls_are_told_what_is_wrong() {
    let wrong = |name: &str, arguments: Value| {
        let call = ToolCall::new(None, name.to_owned(), arguments);
        Action::of(&call, &[AgentTool::Bash, AgentTool::WriteFile]).expect_err("a wrong call")
    };
    let all = [
        wrong("read_file", json!({ "path": "a" })),
        wrong("bash", json!({})),
        wrong("bash", json!("ls")),
        wrong("bash", json!({ "command": ["ls"] })),
        wrong("bash", json!({ "command": "a\0b" })),
        wrong("write_file", json!({ "path": " ", "content": "x" })),
        wrong("write_file", json!({ "path": "x" })),
    ];
    insta::assert_snapshot!(all.join("\n"), @r"
    error: there is no tool `read_file`; there are bash, write_file
    error: the argument `command` is missing
    error: the arguments are no JSON object
    error: `command` must be a string, not a list
    error: `command` has a NUL in it
    error: `path` is blank
    error: the argument `content` is missing
    ");
}

#[test]
fn long_output_is_cut_and_says_so() {
    let long = "ä".repeat(MOST_SHOWN);
    let changed: Vec<String> = (0..23).map(|it| format!("+ f{it}")).collect();
    let told = Told {
        end: "exit code 1",
        stdout: (long.as_bytes(), 1 << 30),
        stderr: (b"oops\n", 5),
        changed: &changed,
        refused: &["mount".to_owned()],
    };
    let text = told.text();
    assert!(
        text.starts_with("exit code 1\nstdout (cut: the first 10000 of 1073741824 bytes):\nää")
    );
    assert!(text.contains("\nstderr:\noops\nchanged: + f0, "), "{text}");
    assert!(text.ends_with("+ f19 and 3 more\nnot allowed here: mount"), "{text}");
    let quiet = Told { stdout: (b"", 0), stderr: (b"", 0), changed: &[], refused: &[], ..told };
    assert_eq!(quiet.text(), "exit code 1");
}

#[test]
fn instructions_say_what_the_tools_are() {
    let spec = AgentSpec { protocol: Protocol::Text, ..AgentSpec::default() };
    let text = instructions(&spec, "/home/ada", None);
    for part in ["/home/ada", "```bash\n", "```read_file ", "```write_file ", "ANSWER:"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(instructions(&spec, "/", Some("Be kind.")).starts_with("Be kind.\n\nYou act by"));
    let native = instructions(&AgentSpec::default(), "/srv", None);
    assert!(native.contains("/srv") && !native.contains("```"), "{native}");
    assert_eq!(instructions(&AgentSpec::default(), "/srv", Some("Be kind.")), "Be kind.");
}
