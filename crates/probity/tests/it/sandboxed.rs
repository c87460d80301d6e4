//! Backends that are programs and run in the sandbox.

use std::{fs, net::TcpListener, os::unix::fs::PermissionsExt as _, path::PathBuf};

use probity_testkit::{Answer, FakeServer, Rule, Script, When};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    project::Project,
    run::{Ran, stored},
};

/// A program of the host.
struct Tool {
    folder: TempDir,
}

impl Tool {
    fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let tool = Self { folder };
        for (path, text) in [(tool.folder.path().to_owned(), None), (tool.path(), Some(script))] {
            if let Some(text) = text {
                fs::write(&path, format!("#!/bin/bash\n{text}\n")).unwrap();
            }
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        tool
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("tool")
    }
}

fn project(backend: &str, prompt: &str) -> Project {
    let suite = format!(
        "[backends.b]\n{backend}\n[[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\n[retry]\nmax_retries = 0\n"
    );
    let case = json!({ "id": "case", "prompt": prompt, "expected_response": "x" });
    Project::new().lines("cases.jsonl", &[case]).file("probity.toml", suite)
}

fn run(project: &Project) -> (Ran, Value) {
    let mut command = project.command(&["run", "--porcelain"]);
    let output = command.env("STAND_IN_KEY", "not-a-key").output().unwrap();
    let ran = Ran::of(&output);
    let case = stored(project).into_iter().next().unwrap_or_else(|| panic!("{}", ran.err));
    (ran, case)
}

/// What a program said, or why it did not.
fn said(case: &Value) -> &str {
    case["raw_response"].as_str().unwrap_or_else(|| panic!("{case}"))
}

#[test]
fn a_program_in_the_sandbox_finds_a_world_and_reaches_what_it_may() {
    let (open, shut) =
        (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    let port = |it: &TcpListener| it.local_addr().unwrap().port();
    let tool = Tool::new(&format!(
        r#"reach() {{ exec 3<>/dev/tcp/127.0.0.1/3128; printf 'CONNECT %s HTTP/1.1\r\n\r\n' "$1" >&3; head -n 1 <&3; }}
read -r prompt
echo "$prompt in $PWD of $HOME as $(id -u), $HTTPS_PROXY"
cat short.txt > copied; wc -l < copied
reach 127.0.0.1:{}; reach 127.0.0.1:{}
(exec 3<>/dev/tcp/127.0.0.1/{}) 2> /dev/null || echo cut off
ls "{}" "$MINE" 2>&1 | wc -l
echo evil 2> /dev/null >> "$0" || echo read-only"#,
        port(&open),
        port(&shut),
        port(&open),
        std::env::current_dir().unwrap().display(),
    ));
    let backend = format!(
        "kind = \"command\"\ncommand = [\"{}\"]\nenv = [\"MINE\"]\nsandbox = {{ world = \"texts\", reach = [\"127.0.0.1:{}\"] }}",
        tool.path().display(),
        port(&open)
    );
    let (_, case) = run(&project(&backend, "hello"));
    let lines: Vec<&str> = said(&case).lines().map(str::trim_end).collect();
    let expected = [
        "hello in /home/ada/texts of /home/ada as 1000, http://127.0.0.1:3128",
        "3",
        "HTTP/1.1 200 Connection established",
        "HTTP/1.1 403 Forbidden",
        "cut off",
        "2",
        "read-only",
    ];
    assert_eq!(lines, expected, "{case}");
    shut.set_nonblocking(true).unwrap();
    assert!(shut.accept().is_err(), "somebody came");
}

/// A suite with one case about the world that a program leaves behind.
fn left_behind(backend: &str, execution: &Value) -> Project {
    let suite = format!(
        "[backends.b]\n{backend}\n[[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\n[retry]\nmax_retries = 0\n"
    );
    let case = json!({ "id": "case", "prompt": "work", "execution": execution });
    Project::new().lines("cases.jsonl", &[case]).file("probity.toml", suite)
}

/// The execution that was recorded in a role.
fn recorded(case: &Value, role: &str) -> Value {
    let asked = case["asked"].as_array().unwrap().iter().find(|it| it["role"] == role);
    let asked = asked.unwrap_or_else(|| panic!("{case}"));
    serde_json::from_str(asked["reply"].as_str().unwrap_or_else(|| panic!("{asked}"))).unwrap()
}

fn scores(case: &Value) -> Vec<(String, bool)> {
    let scores = case["classification"]["scores"].as_array();
    let scores = scores.unwrap_or_else(|| panic!("{case}"));
    let one = |it: &Value| (it["name"].as_str().unwrap().to_owned(), it["passed"] == true);
    scores.iter().map(one).collect()
}

const WORK: &str = r"cat > asked; cat notes.txt >> asked; chmod 640 asked; rm old.txt
mkdir -p /opt/bin; printf '#!/bin/sh\necho 99\n' > /opt/bin/wc; chmod 755 /opt/bin/wc; echo done";

#[test]
fn what_a_program_leaves_behind_is_judged_and_judged_again() {
    let tool = Tool::new(WORK);
    let backend = format!(
        "kind = \"command\"\ncommand = [\"{}\"]\nenv = [\"STAND_IN_KEY\"]\nsandbox = {{ world = \"texts\" }}",
        tool.path().display()
    );
    let execution = |content: &str| {
        json!({
            "left_behind": true,
            "files": { "notes.txt": "known\n", "old.txt": "old\n" },
            // It sees the variables of the world, and its own programs before those of the program.
            "run": "wc -l < asked; echo \"key: $STAND_IN_KEY\"; pwd",
            "stdout": "1\nkey: \n/home/ada/texts",
            "paths": {
                "asked": { "state": "created", "mode": "640", "content": [{ "type": "contains", "value": content }] },
                "old.txt": "absent", "notes.txt": "unchanged", "short.txt": "unchanged",
            },
            "unchanged": ["words"],
        })
    };
    let project = left_behind(&backend, &execution("known"));
    let (ran, case) = run(&project);
    assert_eq!(case["verdict"], "pass", "{case} {}", ran.err);
    assert_eq!(scores(&case).len(), 7, "{case}");
    let executed = recorded(&case, "execution");
    let world = &executed["worlds"][0];
    assert_eq!(world["world"], "texts", "{executed}");
    assert_eq!(world["paths"]["asked"]["path"], "/home/ada/texts/asked", "{executed}");

    let wrong = left_behind(&backend, &execution("unknown"));
    let (_, case) = run(&wrong);
    assert_eq!(case["verdict"], "fail", "{case}");
    let failed: Vec<String> = scores(&case).into_iter().filter(|it| !it.1).map(|it| it.0).collect();
    assert_eq!(failed, ["path asked"], "{case}");

    // What was recorded is judged again, and nothing is executed for it.
    fs::remove_file(tool.path()).unwrap();
    let case = json!({ "id": "case", "prompt": "work", "execution": execution("work") });
    let wrong = wrong.lines("cases.jsonl", &[case]);
    let output = wrong.run(&["rescore"]);
    let again = stored(&wrong).into_iter().next().unwrap();
    assert_eq!(again["verdict"], "pass", "{again} {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn what_a_program_leaves_behind_is_recorded_where_no_case_asks_for_it() {
    let tool = Tool::new("cat > asked; echo done");
    let backend =
        format!("kind = \"command\"\ncommand = [\"{}\"]\nsandbox = true", tool.path().display());
    let (_, case) = run(&project(&backend, "work"));
    let left = recorded(&case, "left behind");
    let changes = left["worlds"][0]["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 1, "{left}");
    assert_eq!(changes[0]["path"], "/home/ada/nothing/asked", "{left}");
    assert!(changes[0].get("before").is_none_or(Value::is_null), "{left}");
}

#[test]
fn a_program_that_forges_what_others_depend_on_proves_nothing() {
    let tool = Tool::new("rm /lib64; mkdir /lib64 2> /dev/null; echo x > out; echo done");
    let backend =
        format!("kind = \"command\"\ncommand = [\"{}\"]\nsandbox = true", tool.path().display());
    let execution = json!({ "left_behind": true, "run": "true", "paths": { "out": "created" } });
    let (_, case) = run(&left_behind(&backend, &execution));
    assert_ne!(case["verdict"], "pass", "{case}");
}

#[test]
fn without_a_world_that_is_left_behind_nothing_is_judged() {
    let execution = json!({ "left_behind": true, "paths": { "out": "created" } });
    let (_, case) = run(&left_behind("kind = \"echo\"", &execution));
    assert_eq!(case["verdict"], "undecided", "{case}");
    assert!(case.to_string().contains("it is no program in the sandbox"), "{case}");
    for (more, why) in [
        (json!({ "file": "a", "run": "sh a" }), "`file` does not go with `left_behind`"),
        (json!({ "worlds": ["texts", "empty"] }), "`worlds` does not go with `left_behind`"),
    ] {
        let mut execution = execution.clone();
        execution.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let output = left_behind("kind = \"echo\"", &execution).run(&["run", "--porcelain"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn claude_in_the_sandbox_is_told_the_way_to_its_api() {
    let server = FakeServer::start(Script::default());
    let tool = Tool::new(
        r#"exec 3<>/dev/tcp/127.0.0.1/3128
printf 'GET /v1/models HTTP/1.1\r\nhost: x\r\nx-api-key: %s\r\nconnection: close\r\n\r\n' "$ANTHROPIC_API_KEY" >&3
status=$(head -n 1 <&3 | tr -d '\r')
printf '{"type":"result","is_error":false,"result":"%s, %s, %s"}' "$ANTHROPIC_BASE_URL" "$status" "$*""#,
    );
    let backend = format!(
        "kind = \"claude\"\ncommand = [\"{}\"]\nbase_url = \"{}\"\napi_key_env = \"STAND_IN_KEY\"\nsandbox = true",
        tool.path().display(),
        server.url()
    );
    let (_, case) = run(&project(&backend, "hello"));
    let said = said(&case);
    assert!(said.starts_with("http://127.0.0.1:3128, HTTP/1.1 200 OK, -p "), "{case}");
    assert!(said.ends_with("--dangerously-skip-permissions"), "{case}");
    assert_eq!(server.seen().keys["not-a-key"], 1);
}

#[test]
fn what_is_in_the_way_of_a_sandbox_is_said() {
    let tool = Tool::new("echo never");
    let command = format!("kind = \"command\"\ncommand = [\"{}\"]", tool.path().display());
    let failed = |more: &str| {
        let project = project(&format!("{command}\n{more}"), "hello");
        let output = project.run(&["run", "--porcelain"]);
        assert_ne!(output.status.code(), Some(0));
        String::from_utf8_lossy(&output.stderr).into_owned() + &project.shown(&["show", "--json"])
    };
    for (more, why) in [
        ("sandbox = { world = \"nowhere\" }", "there is no world `nowhere`"),
        (
            "sandbox = { paths = [\"/nowhere/at/all\"] }",
            "sharing /nowhere/at/all: No such file or directory",
        ),
        ("sandbox = 1", "`sandbox` is true, false or a table"),
        ("sandbox = { reach = [\"https://h\"] }", "`reach`: `https://h` is no address"),
    ] {
        let said = failed(more);
        assert!(said.contains(why), "{said}");
    }
    let file = "kind = \"command\"\ncommand = [\"cat\", \"{{prompt_file}}\"]\nsandbox = true";
    let output = project(file, "hello").run(&["run", "--porcelain"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("files of this machine are not seen in the sandbox"), "{said}");
}

/// The real program, asked by a server that has it change a file and look for a way out.
#[test]
#[ignore = "needs Claude Code: scripts/real-model-test --claude installs it and runs this"]
fn the_real_claude_works_in_the_sandbox() {
    let claude = std::env::var_os("PROBITY_CLAUDE").expect("PROBITY_CLAUDE says where it is");
    let claude = claude.display();
    let outside = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = outside.local_addr().unwrap().port();
    let try_out = format!(
        "cat short.txt; id -u; for at in 127.0.0.1/{port} 1.1.1.1/443; do (exec 3<>/dev/tcp/$at) 2> /dev/null || echo cut off; done"
    );
    let file = "/home/ada/texts/short.txt";
    let edit = json!({ "file_path": file, "old_string": "alpha", "new_string": "omega" });
    let calls = [
        Answer::call("Read", json!({ "file_path": file })),
        Answer::call("Edit", edit),
        Answer::call("Bash", json!({ "command": try_out })),
    ];
    let mut script = Script::default();
    for (number, call) in (1..).zip(calls) {
        script = script.rule(Rule::new(When::Requests(number..number + 1), call));
    }
    let script = script.rule(Rule::new(When::Any, Answer::text("all done")));
    let server = FakeServer::start(script);
    let backend = format!(
        "kind = \"claude\"\ncommand = [\"{claude}\"]\nmodel = \"fake-small\"\nbase_url = \"{}\"\napi_key_env = \"STAND_IN_KEY\"\ntimeout = \"50s\"\nsandbox = {{ world = \"texts\" }}",
        server.url()
    );
    let (_, case) = run(&project(&backend, "Change the text."));
    assert_eq!(said(&case), "all done", "{case}");
    let seen = server.seen();
    let last = seen.last.iter().rev().find(|it| it.path.starts_with("/v1/messages")).unwrap();
    let results: Vec<Value> = last.json()["messages"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|it| it["content"].as_array().cloned().unwrap_or_default())
        .filter(|it| it["type"] == "tool_result")
        .collect();
    assert_eq!(results.len(), 3, "{results:?}");
    assert!(results.iter().all(|it| it["is_error"] != true), "{results:?}");
    let told = results[2]["content"].as_str().unwrap();
    assert_eq!(told.trim_end(), "omega\nbeta\ngamma\n1000\ncut off\ncut off");
    assert!(!fs::exists(file).unwrap(), "it is on the host");
    outside.set_nonblocking(true).unwrap();
    assert!(outside.accept().is_err(), "somebody came");
}
