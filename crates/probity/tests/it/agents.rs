//! Agents: models that work on tasks with tools, in a sandbox.

mod tasks;

use std::{
    fs,
    time::{Duration, Instant},
};

use probity_testkit::{Answer, FakeServer, Finish, Reply, Rule, Script, Text, When};
use serde_json::{Value, json};

use crate::{
    dialects::KEY,
    execution::without_sandbox,
    project::Project,
    run::{bodies, run, stored},
};

const SUITE: &str = r#"
[backends.b]
kind = "KIND"
base_url = "URL"
model = "m-1"
api_key_env = "A_KEY"
price = { input = 1, output = 2 }
[[runners]]
name = "r"
kind = "agent"
dataset = "cases.jsonl"
MORE
[retry]
backoff_base = 0.01
"#;

fn project(kind: &str, server: &FakeServer, case: &Value, more: &str) -> Project {
    let suite = SUITE.replace("KIND", kind).replace("URL", &server.url()).replace("MORE", more);
    Project::new()
        .lines("cases.jsonl", std::slice::from_ref(case))
        .file(".env", format!("A_KEY={KEY}\n"))
        .file("probity.toml", suite)
}

/// A task whose answer is the number that the agent finds.
fn task() -> Value {
    json!({
        "id": "task", "prompt": "How many lines has {{ file }}?", "prompt_vars": { "file": "words" },
        "assert": [
            { "type": "contains", "value": "there are 3" },
            { "type": "tool-called", "value": "bash" },
            { "type": "valid-tool-calls" },
        ],
    })
}

/// A server that gives these answers one after the other, and then the last one again.
fn server(answers: &[Answer]) -> FakeServer {
    let last = answers.last().cloned().unwrap_or(Answer::Hang);
    let rules = answers.iter().cloned().zip(1..);
    let rules = rules.map(|(answer, at)| Rule::new(When::Requests(at..at + 1), answer));
    FakeServer::start(rules.fold(Script::always(last), Script::rule))
}

fn bash(command: &str) -> Answer {
    Answer::call("bash", json!({ "command": command }))
}

/// What the case came to.
fn only(project: &Project) -> Value {
    stored(project).remove(0)
}

fn evidence(case: &Value) -> &Value {
    &case["classification"]["details"]["evidence"]
}

/// What the model was told last.
fn told(server: &FakeServer) -> String {
    bodies(server).last().expect("a request").to_string()
}

#[test]
fn a_model_works_on_a_task_in_every_dialect() {
    for kind in ["openai", "openai-responses", "anthropic", "gemini", "ollama"] {
        let server = server(&[
            Answer::call(
                "write_file",
                json!({ "path": "sub/words", "content": "a\nb's\n\"c\"\n" }),
            ),
            bash("cp sub/words words; wc -l < words; ls nowhere"),
            Answer::call("read_file", json!({ "path": "words" })),
            Answer::text("I see, there are 3 of them."),
        ]);
        let project = project(kind, &server, &task(), "");
        let ran = run(&project, &[]);
        let case = only(&project);
        assert_eq!(case["verdict"], "pass", "{kind}: {}\n{}", case["reason"], ran.err);
        ran.expect(0, &[("TOTAL_CALLS", "4")]);
        let bodies: Vec<String> = bodies(&server).iter().map(ToString::to_string).collect();
        assert!(bodies[0].contains("write_file") && bodies[0].contains("/home/ada"), "{kind}");
        assert!(bodies[1].contains("+ /home/ada/nothing/sub/words"), "{kind}: {}", bodies[1]);
        assert!(
            bodies[2].contains("exit code 2\\nstdout:\\n3\\nstderr:\\nls:"),
            "{kind}: {}",
            bodies[2]
        );
        assert!(bodies[2].contains("changed: + /home/ada/nothing/words"), "{kind}: {}", bodies[2]);
        assert!(bodies[3].contains(r#"a\nb's\n\"c\"\n"#), "{kind}: {}", bodies[3]);
        let work = json!({
            "kind": "agent", "world": "empty", "ended": "answered", "steps": 4, "calls": 3,
            "failed_calls": 1, "malformed": 0, "commands_ms": evidence(&case)["commands_ms"],
        });
        assert_eq!(evidence(&case), &work, "{kind}");
        let roles: Vec<&Value> =
            case["asked"].as_array().unwrap().iter().map(|it| &it["role"]).collect();
        assert_eq!(roles, ["step 1", "step 2", "step 3", "step 4"], "{kind}");
    }
}

#[test]
fn tokens_and_dollars_are_those_of_all_steps() {
    let server = server(&[bash("echo 3"), Answer::text("there are 3")]);
    let project = project("openai", &server, &task(), "");
    run(&project, &[]);
    let case = only(&project);
    let steps = case["asked"].as_array().unwrap();
    let sum = |key: &str| -> u64 {
        steps.iter().map(|it| it["usage"][key].as_u64().expect("a count")).sum()
    };
    assert_eq!(case["usage"]["input_tokens"].as_u64(), Some(sum("input_tokens")));
    assert_eq!(case["usage"]["output_tokens"].as_u64(), Some(sum("output_tokens")));
    let dollars: f64 = steps.iter().map(|it| it["cost_usd"].as_f64().expect("a cost")).sum();
    assert!((case["cost_usd"].as_f64().unwrap() - dollars).abs() < 1e-12 && dollars > 0.0);
}

#[test]
fn a_conversation_with_its_calls_is_shown() {
    let server = server(&[bash("printf 'a\\nb\\nc\\n' | tee words"), Answer::text("there are 3")]);
    let project = project("openai", &server, &task(), "");
    run(&project, &["-o", "report.html"]);
    let shown = project.shown(&["show", "latest", "task"]);
    for part in [
        "user:      How many lines has words?",
        "[calls bash(",
        "exit code 0",
        "+ /home/ada/nothing/words",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let page = project.read("report.html");
    assert!(page.contains("/home/ada/nothing/words") && page.contains("steps a case"), "{page}");
    let summary = project.shown(&["report", "latest"]);
    assert!(summary.contains("steps a case") && summary.contains("2.0"), "{summary}");
}

#[test]
fn a_model_that_does_not_come_to_an_end_fails() {
    let check = |more: &str, steps: u64, reason: &str, ended: &str| {
        let server = server(&[bash("sleep 0.6; echo there are 3")]);
        let project = project("openai", &server, &task(), more);
        run(&project, &[]);
        let case = only(&project);
        assert_eq!(case["verdict"], "fail", "{more}");
        let said = case["reason"].as_str().unwrap();
        assert!(said.contains(reason), "{more}: {said}");
        assert_eq!(evidence(&case)["ended"], ended, "{more}");
        assert_eq!(server.seen().asked, steps, "{more}");
        // It is judged again in the same way, without a world and without a call.
        let again = project.shown(&["rescore"]);
        assert!(again.contains("0 flipped"), "{again}");
        let case = only(&project);
        assert_eq!((&case["verdict"], &evidence(&case)["ended"]), (&json!("fail"), &json!(ended)));
    };
    let steps = "the agent was not done after 3 steps";
    check("max_steps = 3", 3, steps, "max_steps");
    let time = "the agent was not done after 3 steps, when its time was used up";
    check("max_seconds = 1", 3, time, "max_seconds");
    let tokens = "the agent was not done after 1 step, when its tokens were used up";
    check("max_tokens = 2", 1, tokens, "max_tokens");
}

#[test]
fn wrong_calls_are_told_and_count_as_steps() {
    let server = server(&[
        Answer::call("python", json!({ "code": "1" })),
        Answer::call("bash", json!({ "cmd": "ls" })),
        Answer::call("read_file", json!({ "path": "nowhere" })),
        Answer::call("write_file", json!({ "path": "/usr/x", "content": "x" })),
        bash("echo 3"),
        Answer::text("there are 3"),
    ]);
    let project =
        project("anthropic", &server, &task(), r#"tools = ["bash", "read_file", "write_file"]"#);
    run(&project, &[]);
    let case = only(&project);
    let told = told(&server);
    for part in [
        "there is no tool `python`; there are bash, read_file, write_file",
        "the argument `command` is missing",
        "No such file or directory",
        "Read-only file system",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert_eq!((&evidence(&case)["malformed"], &evidence(&case)["calls"]), (&json!(2), &json!(3)));
    // Two of the calls are not what the tools take.
    assert_eq!(case["verdict"], "fail", "{}", case["reason"]);
}

#[test]
fn a_flood_is_cut_and_a_hostile_command_does_no_harm() {
    let server = server(&[
        bash("yes 0123456789 | head -c 5000000"),
        bash("(exec 3<>/dev/tcp/127.0.0.1/22) 2>/dev/null || echo unreachable"),
        bash("mount -t tmpfs x /tmp; rm -rf /home/ada; :(){ :|:& };:; kill -9 -1"),
        bash("echo still in $PWD"),
        Answer::text("there are 3"),
    ]);
    let project = project("openai", &server, &task(), "max_seconds = 20");
    let project = project.file("precious", "kept");
    run(&project, &[]);
    let told = told(&server);
    assert!(told.contains("(cut: the first 10000 of "), "{told}");
    for part in ["unreachable", "not allowed here: mount", "still in /\""] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(told.len() < 100_000, "{}", told.len());
    assert_eq!(project.read("precious"), "kept");
    assert_eq!(only(&project)["verdict"], "pass", "{}", only(&project)["reason"]);
}

/// A server that says these texts one after the other.
fn saying(texts: &[&str]) -> FakeServer {
    let answers: Vec<Answer> = texts.iter().map(|it| Answer::text(it)).collect();
    server(&answers)
}

#[test]
fn a_model_without_tools_writes_blocks() {
    let server = saying(&[
        "I look around.\n```bash\nls -A | wc -l\n```",
        "Let me write.\n```write_file words\none\ntwo\nthree\n```\nand count\n```sh\nwc -l < words\n```",
        "It must be 3.",
        "```read_file words\n```",
        "Good.\nANSWER: there are 3",
    ]);
    let project = project("openai", &server, &task(), "protocol = \"text\"");
    let ran = run(&project, &[]);
    let case = only(&project);
    assert_eq!(case["verdict"], "pass", "{}\n{}", case["reason"], ran.err);
    assert_eq!(case["raw_response"], "there are 3");
    let work = evidence(&case);
    assert_eq!(
        (&work["steps"], &work["calls"], &work["malformed"]),
        (&json!(5), &json!(4), &json!(1))
    );
    let bodies = bodies(&server);
    assert!(bodies.iter().all(|it| it.get("tools").is_none()), "{}", bodies[0]);
    let system = bodies[0]["messages"][0]["content"].as_str().unwrap();
    assert!(system.contains("```read_file") && system.contains("ANSWER:"), "{system}");
    let last = bodies[4]["messages"].to_string();
    for part in [
        "[bash] exit code 0\\nstdout:\\n0",
        "[write_file] exit code 0",
        "neither a block",
        "[read_file] one\\ntwo",
    ] {
        assert!(last.contains(part), "{part}: {last}");
    }
    // What was done is judged again as it was.
    assert!(project.shown(&["rescore"]).contains("0 flipped"));
    assert_eq!(only(&project)["verdict"], "pass");
}

#[test]
fn words_without_a_mark_are_no_answer() {
    let server = saying(&["there are 3, I would say"]);
    let project = project("openai", &server, &task(), "protocol = \"text\"\nmax_steps = 2");
    run(&project, &[]);
    let case = only(&project);
    assert_eq!(case["verdict"], "fail");
    assert!(
        case["reason"].as_str().unwrap().contains("not done after 2 steps"),
        "{}",
        case["reason"]
    );
}

#[test]
fn own_instructions_replace_ours_and_worlds_are_chosen() {
    let world = "name = \"mine\"\ndirectory = \"/srv/data\"\nfiles = [{ path = \"words\", text = \"a\\nb\\nc\\n\" }]\n";
    let server = server(&[bash("pwd; wc -l < words"), Answer::text("there are 3")]);
    let more = "world = \"mine.toml\"\nsystem = \"You are {{ id }}.\"\ntools = \"bash\"";
    let project = project("openai", &server, &task(), more).file("mine.toml", world);
    run(&project, &[]);
    let body = bodies(&server).remove(1);
    assert_eq!(body["messages"][0]["content"], "You are task.");
    assert_eq!(body["tools"].as_array().map(Vec::len), Some(1));
    assert!(body.to_string().contains("/srv/data\\n3"), "{body}");
    assert_eq!(evidence(&only(&project))["world"], "mine.toml");
}

#[test]
fn wrong_suites_and_cases_are_refused_with_their_place() {
    let server = saying(&["no"]);
    let check = |case: &Value, more: &str, message: &str| {
        let project = project("openai", &server, case, more);
        let shown = project.shown(&["run"]);
        assert!(shown.starts_with("exit 2\n") && shown.contains(message), "{message}: {shown}");
    };
    check(&task(), "world = \"nowhere\"", "there is no world `nowhere`");
    check(&task(), "world = \"gone.toml\"", "gone.toml");
    check(&task(), "tools = [\"bsh\"]", "there is no tool `bsh`");
    check(&task(), "tools = []", "an agent without `tools` can do nothing");
    check(&task(), "max_steps = 0", "max_steps");
    check(&task(), "protocol = \"json\"", "unknown protocol `json`");
    check(&task(), "tool_choice = \"required\"", "a runner of kind `agent` has no `tool_choice`");
    let mut case = task();
    case["tool_results"] = json!([]);
    check(&case, "", "an agent has the tools of its runner and one task, and no `tool_results`");
    let plain = project("openai", &server, &task(), "").read("probity.toml");
    let plain = plain.replace("kind = \"agent\"", "max_steps = 3");
    let shown = Project::new()
        .lines("cases.jsonl", &[task()])
        .file(".env", format!("A_KEY={KEY}\n"))
        .file("probity.toml", plain)
        .shown(&["run"]);
    assert!(shown.contains("a runner of kind `respond` has no `max_steps`"), "{shown}");
    assert_eq!(server.seen().asked, 0);
}

/// Processes of a world that sleep for so long.
fn sleepers(seconds: &str) -> usize {
    let entries = fs::read_dir("/proc").expect("a /proc");
    let lines = entries.flatten().filter_map(|it| fs::read(it.path().join("cmdline")).ok());
    lines.filter(|it| *it == format!("sleep\0{seconds}\0").into_bytes()).count()
}

fn wait_until(holds: impl Fn() -> bool) -> bool {
    let since = Instant::now();
    while since.elapsed() < Duration::from_secs(20) {
        if holds() {
            return true;
        }
        std::thread::yield_now();
    }
    false
}

#[test]
fn neither_a_kill_nor_an_interrupt_leaves_a_process() {
    for (signal, seconds) in [("KILL", "54321.25"), ("INT", "54321.5")] {
        let server = server(&[bash(&format!("sleep {seconds}")), Answer::text("there are 3")]);
        let project = project("openai", &server, &task(), "");
        let mut command = project.command(&["run", "-q"]);
        let mut running = command.spawn().expect("the program");
        assert!(wait_until(|| sleepers(seconds) == 1), "{signal}: it does not sleep");
        let pid = running.id().to_string();
        let sent = std::process::Command::new("kill").args(["-s", signal, &pid]).status();
        assert!(sent.expect("kill").success());
        running.wait().expect("an end");
        assert!(wait_until(|| sleepers(seconds) == 0), "{signal}: a process is left");
        // The case that was not finished starts anew.
        let asked = server.seen().asked;
        run(&project, &["--resume", "latest"]);
        assert_eq!(
            (only(&project)["asked"].as_array().map(Vec::len), asked),
            (Some(0), 1),
            "{signal}"
        );
    }
}

#[test]
fn an_answer_at_once_needs_no_tool() {
    let reply = Reply {
        text: Text::Fixed("there are 3".to_owned()),
        finish: Finish::Stop,
        ..Reply::default()
    };
    let server = server(&[Answer::Reply(reply)]);
    let project = project(
        "openai",
        &server,
        &json!({ "id": "a", "prompt": "3?", "expected_response": "there are 3" }),
        "",
    );
    run(&project, &[]).expect(0, &[("TOTAL_CALLS", "1")]);
    assert_eq!(only(&project)["verdict"], "pass");
}

/// A task that is judged by the files that are left.
fn list() -> Value {
    json!({
        "id": "list", "prompt": "Sort list into sorted.",
        "execution": {
            "world": "texts", "files": { "list": "b\na\n" }, "setup": "chmod 600 list",
            "run": "wc -l < sorted", "stdout": "2",
            "paths": { "sorted": { "state": "created", "content": "a\nb", "mode": "644" }, "list": "unchanged" },
            "unchanged": ["words"],
        },
    })
}

#[test]
fn the_world_that_is_left_behind_is_judged() {
    let check = |command: &str, verdict: &str, reason: &str| {
        let server = server(&[bash(command), Answer::text("It is sorted.")]);
        let project = project("anthropic", &server, &list(), "world = \"empty\"");
        run(&project, &[]);
        let case = only(&project);
        let said = case["reason"].as_str().unwrap();
        assert_eq!(case["verdict"], verdict, "{command}: {said}");
        assert!(said.contains(reason), "{command}: {said}");
        assert_eq!(evidence(&case)["world"], "texts", "{command}");
        assert!(project.shown(&["rescore"]).contains("0 flipped"), "{command}");
        assert_eq!(only(&project)["verdict"], verdict, "{command}");
    };
    check("sort list > sorted", "pass", "execution");
    check("sort -r list > sorted", "fail", "`sorted`");
    check("sort list > sorted; chmod 600 sorted", "fail", "mode");
    check("sort list > sorted; rm words", "fail", "words");
    check("sort -o list list; cp list sorted", "fail", "list");
    check("true", "fail", "exit code");
}

#[test]
fn criteria_that_changed_are_judged_by_what_was_seen() {
    let server = server(&[bash("sort list > sorted"), Answer::text("It is sorted.")]);
    let project = project("openai", &server, &list(), "");
    run(&project, &[]);
    let mut stricter = list();
    stricter["execution"]["paths"]["sorted"]["mode"] = json!("600");
    let project = project.lines("cases.jsonl", &[stricter]);
    let shown = project.shown(&["rescore"]);
    assert!(shown.contains("1 from pass to fail"), "{shown}");
    // What nobody looked at cannot be judged.
    let mut other = list();
    other["execution"]["paths"] = json!({ "elsewhere": "absent" });
    let project = project.lines("cases.jsonl", &[other]);
    project.run(&["rescore"]);
    assert_eq!(only(&project)["verdict"], "undecided");
    assert_eq!(server.seen().asked, 2);
}

#[test]
fn a_case_has_one_world() {
    let server = saying(&["no"]);
    let mut case = list();
    case["execution"]["world"] = Value::Null;
    case["execution"]["worlds"] = json!(["texts", "empty"]);
    let project = project("openai", &server, &case, "");
    let shown = project.shown(&["run"]);
    assert!(shown.contains("an agent works in one world"), "{shown}");
}

#[test]
fn without_a_sandbox_nobody_is_asked_and_the_case_is_undecided() {
    let server = saying(&["there are 3"]);
    let project = project("openai", &server, &task(), "");
    let ran = without_sandbox(&project, &["run", "--porcelain"]);
    assert!(
        ran.err.contains("r: 1 case is a task for an agent and will be undecided: task"),
        "{}",
        ran.err
    );
    ran.expect(3, &[("N_CASES", "1"), ("TOTAL_CALLS", "0")]);
    let check = || {
        let case = only(&project);
        assert_eq!(
            (&case["verdict"], &evidence(&case)["ended"]),
            (&json!("undecided"), &json!("broken"))
        );
        let reason = case["reason"].as_str().unwrap();
        assert!(reason.starts_with("nothing was executed, so the case is undecided: "), "{reason}");
    };
    check();
    assert!(project.shown(&["rescore"]).contains("0 flipped"));
    check();
    assert_eq!(server.seen().asked, 0);
}

#[test]
fn a_model_that_has_nothing_to_add_is_done() {
    for kind in ["openai", "anthropic", "gemini", "ollama"] {
        let server = server(&[bash("echo 3 > found"), Answer::text("")]);
        let case = json!({ "id": "task", "prompt": "Count.", "execution": {
            "paths": { "found": { "state": "created", "content": "3" } } } });
        let project = project(kind, &server, &case, "");
        let ran = run(&project, &[]);
        let case = only(&project);
        assert_eq!(case["verdict"], "pass", "{kind}: {}\n{}", case["reason"], ran.err);
        assert_eq!(evidence(&case)["ended"], "answered", "{kind}");
        ran.expect(0, &[("TOTAL_CALLS", "2")]);
    }
}

#[test]
fn a_model_cannot_speak_for_the_command_that_judges_it() {
    let judged = |command: &str| {
        let server = server(&[bash(command), Answer::text("done")]);
        let case = json!({ "id": "task", "prompt": "Count.", "execution": {
            "world": "texts", "run": "wc -l < words", "stdout": "5" } });
        let project = project("openai", &server, &case, "");
        run(&project, &[]);
        let case = only(&project);
        (case["verdict"].clone(), case["reason"].clone())
    };
    let own = "printf '#!/bin/sh\\necho 5\\n' > /opt/bin/wc; chmod +x /opt/bin/wc; wc";
    assert_eq!(judged(own), (json!("fail"), json!("stdout: expected `5`, got `7`")));
    let (verdict, reason) = judged("echo /home/ada/evil.so > /etc/ld.so.preload");
    assert_eq!(verdict, "fail");
    let why = "it proves nothing: `/etc/ld.so.preload` was changed, on which programs depend";
    assert!(reason.as_str().unwrap().starts_with(why), "{reason}");
    assert_eq!(judged("seq 5 > words").0, json!("pass"));
}
