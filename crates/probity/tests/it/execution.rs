//! Cases that say what the command or the script in a reply has to do.

mod effects;

use std::{fs, process::Command};

use probity_testkit::{Answer, FakeServer, Rule, Script, When};
use serde_json::{Value, json};

use crate::{
    project::Project,
    rescore::check_export,
    resume::{signal, start, wait_until},
    run::{Ran, of, run, stored, suite},
};

/// A case: its id, what the model answers, what that has to do.
type Case<'c> = (&'c str, &'c str, Value);

/// A server that answers each case as it says.
fn server(cases: &[Case<'_>]) -> FakeServer {
    let rule = |script: Script, (id, reply, _): &Case<'_>| {
        script.rule(Rule::new(When::prompt_contains(&format!("<{id}>")), Answer::text(reply)))
    };
    FakeServer::start(cases.iter().fold(Script::default(), rule))
}

fn lines(cases: &[Case<'_>]) -> String {
    let line = |(id, _, execution): &Case<'_>| {
        format!("{}\n", json!({ "id": id, "prompt": format!("Do <{id}>"), "execution": execution }))
    };
    cases.iter().map(line).collect()
}

fn project(server: &FakeServer, cases: &[Case<'_>], more: &str) -> Project {
    let suite = suite(&[("fake", server)], more);
    Project::new().file("cases.jsonl", lines(cases)).file("probity.toml", suite)
}

/// Runs cases, and holds what they come to against verdicts and reasons.
#[track_caller]
fn check(cases: &[Case<'_>], expected: &[(&str, &str, &str)]) -> Project {
    let server = server(cases);
    let project = project(&server, cases, "");
    let ran = run(&project, &[]);
    let found = stored(&project);
    assert_eq!(found.len(), expected.len(), "{}", ran.err);
    for (id, verdict, reason) in expected {
        let case = of(&found, id);
        assert_eq!((&case["verdict"], &case["reason"]), (&json!(verdict), &json!(reason)), "{id}");
    }
    project
}

fn fenced(command: &str) -> String {
    format!("Try this:\n```bash\n{command}\n```\n")
}

#[test]
#[expect(clippy::too_many_lines, reason = "a list")]
fn what_a_command_does_decides() {
    let cases = [
        (
            "right",
            &*fenced("sort -u words > sorted; chmod 600 sorted; wc -l < sorted"),
            json!({ "world": "texts", "stdout": { "type": "regex", "value": "^[0-9]+$" },
                    "paths": { "sorted": { "state": "created", "mode": "600" }, "words": "unchanged" },
                    "unchanged": true }),
        ),
        (
            "mode",
            &*fenced("sort -u words > sorted"),
            json!({ "world": "texts", "paths": { "sorted": { "mode": "600" } } }),
        ),
        ("missing", &*fenced("true"), json!({ "paths": { "out.txt": "present" } })),
        ("fails", &*fenced("sort nothing"), json!({ "world": "texts" })),
        ("any", &*fenced("sort nothing"), json!({ "exit_code": "any", "stdout": "" })),
        ("one", &*fenced("exit 3"), json!({ "exit_code": [2, 3] })),
        ("stdout", &*fenced("echo hello"), json!({ "stdout": "goodbye" })),
        ("stderr", &*fenced("echo oops >&2"), json!({ "stderr": "oops\n" })),
        (
            "content",
            &*fenced("echo two > f"),
            json!({ "paths": { "f": { "content": { "type": "contains", "value": "one" } } } }),
        ),
        ("absent", &*fenced("true"), json!({ "world": "texts", "paths": { "words": "absent" } })),
        (
            "created",
            &*fenced("echo x > words"),
            json!({ "world": "texts", "paths": { "words": "created" } }),
        ),
        (
            "changed",
            &*fenced("touch words"),
            json!({ "world": "texts", "paths": { "words": "changed" } }),
        ),
        (
            "deleted",
            &*fenced("rm words"),
            json!({ "world": "texts", "paths": { "words": "unchanged" } }),
        ),
        (
            "folder",
            &*fenced("echo x > d/e"),
            json!({ "files": { "d/f": "" }, "paths": { "d": "unchanged", "d/e": "created" } }),
        ),
        (
            "others",
            &*fenced("mkdir -p a/b; echo x > a/b/c; echo y > d"),
            json!({ "paths": { "a/b/c": "created" }, "unchanged": true }),
        ),
        (
            "kept",
            &*fenced("echo x >> words; echo y > new"),
            json!({ "world": "texts", "unchanged": ["words"] }),
        ),
        ("time", &*fenced("while :; do :; done"), json!({ "timeout": "300ms" })),
        ("prose", "```sh\n# first\n\n# second\n```", json!({})),
    ];
    let project = check(
        &cases,
        &[
            ("right", "pass", "`execution` holds"),
            ("mode", "fail", "`sorted` has mode 644, expected 600"),
            ("missing", "fail", "`out.txt` is missing"),
            (
                "fails",
                "fail",
                "exit code 2, expected 0: sort: cannot read: nothing: No such file or directory",
            ),
            ("any", "pass", "`execution` holds"),
            ("one", "pass", "`execution` holds"),
            ("stdout", "fail", "stdout: expected `goodbye`, got `hello`"),
            ("stderr", "pass", "`execution` holds"),
            ("content", "fail", "`f`: `one` is missing"),
            ("absent", "fail", "`words` is there, expected it to be absent"),
            ("created", "fail", "`words` was there before, expected it to be created"),
            ("changed", "fail", "`words` is unchanged, expected it to change"),
            ("deleted", "fail", "`words` is missing: it was deleted"),
            ("folder", "fail", "`/home/ada/nothing/d/e` was created, expected `d` to be unchanged"),
            (
                "others",
                "fail",
                "`/home/ada/nothing/d` was created, expected nothing to change there",
            ),
            (
                "kept",
                "fail",
                "`/home/ada/texts/words` was changed, expected nothing to change there",
            ),
            ("time", "fail", "killed at its time limit, expected exit code 0"),
            ("prose", "fail", "the reply has no shell command"),
        ],
    );
    let right = of(&stored(&project), "right");
    let scores = right["classification"]["scores"].as_array().unwrap();
    let names: Vec<&str> = scores.iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["exit_code", "stdout regex", "path sorted", "path words", "unchanged"]);
    // What was executed, where, and with which tools is in the record.
    let asked = right["asked"].as_array().unwrap().iter().find(|it| it["role"] == "execution");
    let came: Value = serde_json::from_str(asked.unwrap()["reply"].as_str().unwrap()).unwrap();
    assert_eq!(came["worlds"][0]["world"], "texts");
    assert_eq!(came["worlds"][0]["end"], json!({ "exit": 0 }));
    assert!(came["tools"]["sort"].as_str().unwrap().starts_with("sort "), "{came}");
    check_export(&project);
}

#[test]
fn it_has_to_do_right_in_every_world() {
    let world = "name = \"mine\"\nfiles = [{ path = \"words\", text = \"one\\n\" }]\n";
    let worlds = json!(["texts", "mine.toml"]);
    let cases = [
        ("both", "```sh\nwc -l < words\n```", json!({ "worlds": worlds.clone() })),
        (
            "one",
            "```sh\ncat words\n```",
            json!({ "worlds": worlds, "stdout": { "type": "word-count", "value": { "min": 2 } } }),
        ),
    ];
    let server = server(&cases);
    let project = project(&server, &cases, "").file("mine.toml", world);
    run(&project, &[]);
    let found = stored(&project);
    assert_eq!(of(&found, "both")["verdict"], "pass", "{}", of(&found, "both")["reason"]);
    assert_eq!(of(&found, "one")["reason"], "stdout: 1 words (in the world `mine`)");
    // The record has the world, so the file is not needed any more.
    fs::remove_file(project.path("mine.toml")).unwrap();
    let output = project.run(&["report", "latest", "-o", "cases.export.jsonl"]);
    assert!(output.status.success());
    let output = project.run(&["classify", "cases.export.jsonl", "-o", "again.jsonl"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(project.read("again.jsonl").matches("\"verdict\":\"pass\"").count(), 1);
}

#[test]
fn a_script_is_put_into_a_file_and_run() {
    let python =
        "Here you are.\n```python\nimport sys\nprint(sum(int(x) for x in sys.stdin))\n```\n";
    let execution = json!({ "file": "src/answer.py", "run": "python3 src/answer.py", "stdin": "1\n2\n3\n",
                            "stdout": "6", "unchanged": true });
    let wrong = "```python\nopen('log', 'w').write('x')\nprint(5)\n```";
    let files = json!({ "files": { "in/a.txt": "A\n" }, "setup": "git init -q; cp in/a.txt b.txt",
                        "stdout": "A\nA", "paths": { ".git": "unchanged" }, "unchanged": true });
    check(
        &[
            ("right", python, execution.clone()),
            ("wrong", wrong, execution),
            ("files", "`cat in/a.txt b.txt`", files),
        ],
        &[
            ("right", "pass", "`execution` holds"),
            (
                "wrong",
                "fail",
                "stdout: expected `6`, got `5`; `/home/ada/nothing/log` was created, expected nothing to change there",
            ),
            ("files", "pass", "`execution` holds"),
        ],
    );
}

#[test]
fn a_runner_says_it_for_cases_that_do_not() {
    let cases = [("own", "```sh\nfalse\n```", json!({ "exit_code": 1 }))];
    let server = server(&cases);
    let more = "[[runners]]\nname = \"other\"\ndataset = \"plain.jsonl\"\nexecution = { stdout = \"hi\" }\n";
    let project = project(&server, &cases, more)
        .file("plain.jsonl", "{\"id\":\"plain\",\"prompt\":\"Do <own>\"}\n");
    run(&project, &[]);
    let found = stored(&project);
    assert_eq!(of(&found, "own")["verdict"], "pass");
    assert_eq!(
        of(&found, "plain")["reason"],
        "exit code 1, expected 0; stdout: expected `hi`, got ``"
    );
}

/// The program where nobody may have a user namespace, so that there is no sandbox.
pub(crate) fn without_sandbox(project: &Project, words: &[&str]) -> Ran {
    let script = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$0\" \"$@\"";
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "sh", "-c", script, env!("CARGO_BIN_EXE_probity")])
        .args(words)
        .current_dir(project.path("."))
        .output()
        .unwrap();
    Ran::of(&output)
}

#[test]
fn without_a_sandbox_a_case_is_undecided_unless_the_suite_requires_one() {
    let cases = [("a", "```sh\ntouch x\n```", json!({ "paths": { "x": "created" } }))];
    let server = server(&cases);
    let project = project(&server, &cases, "");
    let ran = without_sandbox(&project, &["run", "--porcelain"]);
    ran.expect(3, &[("N_CASES", "1")]);
    for part in [
        "numbers: 1 case has an `execution` and will be undecided: a",
        "nothing can be executed: commands cannot be executed on this machine: namespaces:",
    ] {
        assert!(ran.err.contains(part), "{part}\n{}", ran.err);
    }
    let case = of(&stored(&project), "a");
    assert_eq!(case["verdict"], "undecided");
    let reason = case["reason"].as_str().unwrap();
    assert!(
        reason.starts_with(
            "nothing was executed, so the case is undecided: commands cannot be executed on this machine"
        ),
        "{reason}"
    );
    // Nothing is executed by judging again, with a sandbox at hand or not.
    project.run(&["rescore"]);
    assert_eq!(of(&stored(&project), "a")["verdict"], "undecided");
    let asked = server.seen().asked;
    let suite = format!("{}[grading]\nsandbox = \"required\"\n", project.read("probity.toml"));
    let project = project.file("probity.toml", suite);
    let ran = without_sandbox(&project, &["run", "--porcelain"]);
    assert!(ran.err.contains("the suite requires a sandbox, so nothing was run"), "{}", ran.err);
    assert!(ran.err.contains("probity sandbox doctor"), "{}", ran.err);
    assert_eq!(server.seen().asked, asked);
    run(&project, &[]).expect(0, &[("N_CASES", "1")]);
}

#[test]
fn judging_again_executes_nothing_and_says_what_was_not_executed() {
    let first =
        [("a", "```sh\necho 1 > x; echo 2 > y\n```", json!({ "paths": { "x": "created" } }))];
    let server = server(&first);
    let project = project(&server, &first, "");
    run(&project, &[]).expect(0, &[]);
    let again = |execution: Value| {
        let line = json!({ "id": "a", "prompt": "Do <a>", "execution": execution });
        fs::write(project.path("cases.jsonl"), format!("{line}\n")).unwrap();
        project.run(&["rescore"]);
        let case = of(&stored(&project), "a");
        (case["verdict"].as_str().unwrap().to_owned(), case["reason"].as_str().unwrap().to_owned())
    };
    let (verdict, reason) = again(json!({ "paths": { "x": { "content": "2" } } }));
    assert_eq!((&*verdict, &*reason), ("fail", "`x`: expected `2`, got `1`"));
    let undecided = "nothing was executed, so the case is undecided: ";
    let (verdict, reason) = again(json!({ "paths": { "y": "created" } }));
    assert_eq!(verdict, "undecided");
    assert_eq!(reason, format!("{undecided}`y` was not looked at when the command was executed"));
    let (verdict, reason) = again(json!({ "world": "texts", "paths": { "x": "created" } }));
    assert_eq!(verdict, "undecided");
    assert_eq!(reason, format!("{undecided}something else was executed when the reply came"));
    assert_eq!(server.seen().asked, 1);
}

/// Processes whose command line has a text in it.
fn processes(text: &str) -> usize {
    let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let lines = entries.filter_map(|it| fs::read(it.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(text)).count()
}

#[test]
fn a_run_that_is_killed_leaves_no_process_and_goes_on() {
    let slow = format!("sleep {}.25", 100_000 + std::process::id());
    let is_a = When::prompt_contains("<a>");
    let execution = json!({ "timeout": "60s" });
    let cases = [("b", "```sh\ntrue\n```", execution.clone()), ("a", "", execution)];
    for name in ["-KILL", "-INT"] {
        let script = Script::always(Answer::text("```sh\ntrue\n```"));
        let first = Rule::new(is_a.clone(), Answer::text(&fenced(&slow))).times(1);
        let server = FakeServer::start(script.rule(first));
        let project = project(&server, &cases, "");
        let mut child = start(&project, &[]);
        wait_until("the command", || processes(&slow.replace(' ', "\0")) > 0);
        let recorded = || project.run(&["show", "latest", "--json"]).stdout;
        wait_until("the other case", || {
            String::from_utf8_lossy(&recorded()).contains("\"case_id\":\"b\"")
        });
        signal(name, child.id());
        child.wait().unwrap();
        wait_until("the end of the command", || processes(&slow.replace(' ', "\0")) == 0);
        run(&project, &["--resume"]).expect(0, &[("N_CASES", "2")]);
        assert_eq!(server.seen().asked, 3);
    }
}

#[test]
fn what_is_wrong_with_a_case_has_its_place() {
    let cases = r#"{"id":"a","prompt":"p","execution":{"world":"txts"}}
{"id":"b","prompt":"p","execution":{"world":"bad.toml"}}
{"id":"c","prompt":"p","execution":{"paths":{"../x":"present","y":"new"}}}
{"id":"d","prompt":"p","execution":{"stdout":[{"type":"llm-rubric","value":"good"}]}}
{"id":"e","prompt":"p","execution":{"stdout":{"type":"regex","value":"("}}}
{"id":"f","prompt":"p","execution":{"exit_code":-1,"timeout":"soon","file":"x"}}
{"id":"g","prompt":"p","execution":{"stdin":"x","stdot":"y"}}
"#;
    let world = "name = \"bad\"\nfile = []\n";
    let project = Project::new().file("cases.jsonl", cases).file("bad.toml", world);
    insta::assert_snapshot!(project.shown(&["dataset", "validate", "cases.jsonl"]));
}

#[test]
fn a_plan_names_what_is_executed() {
    let cases = [("a", "", json!({})), ("b", "", json!({}))];
    let server = server(&cases);
    let project = project(&server, &cases, "");
    let output = project.run(&["run", "--dry-run"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("  2 executions in the sandbox\n"), "{text}");
    assert_eq!(server.seen().asked, 0);
}

#[test]
fn what_is_cut_off_or_killed_proves_nothing() {
    let flood = fenced("head -c 300000 /dev/zero | tr '\\0' a; echo SECRET");
    let asserted =
        |kind: &str, value: &str| json!({ "stdout": [{ "type": kind, "value": value }] });
    let cases = [
        ("not", &*flood, asserted("not-contains", "SECRET")),
        ("end", &*flood, asserted("regex", "a$")),
        ("later", &*flood, asserted("contains", "SECRET")),
        ("found", &*flood, asserted("contains", "aaa")),
        (
            "killed",
            &*fenced("while :; do :; done"),
            json!({ "exit_code": "any", "stdout": "", "timeout": "300ms" }),
        ),
        ("signal", &*fenced("kill -9 $$"), json!({ "exit_code": 137 })),
    ];
    let cut = "stdout has 300007 bytes, more than are looked at";
    check(
        &cases,
        &[
            ("not", "fail", cut),
            ("end", "fail", cut),
            ("later", "fail", cut),
            ("found", "pass", "`execution` holds"),
            ("killed", "fail", "killed at its time limit, expected it to end"),
            ("signal", "pass", "`execution` holds"),
        ],
    );
}

#[test]
fn a_file_of_the_case_that_is_taken_away_is_a_change() {
    let gone = "`/home/ada/nothing/answer` was deleted, expected nothing to change there";
    let run = |run: &str| json!({ "run": run, "unchanged": true });
    let cases = [("gone", "x", run("rm answer")), ("kept", "x", run("cat answer"))];
    check(&cases, &[("gone", "fail", gone), ("kept", "pass", "`execution` holds")]);
}

#[test]
fn looking_at_a_repository_does_not_change_it() {
    let looked = json!({ "world": "repository", "unchanged": true });
    let cases = [
        ("status", &*fenced("git status -s"), looked.clone()),
        ("diff", &*fenced("git diff --stat; touch a.txt; git status"), looked.clone()),
        ("staged", &*fenced("git reset -q staged.txt"), looked),
    ];
    let index = "`/home/ada/repo/.git/index` was changed, expected nothing to change there";
    check(
        &cases,
        &[
            ("status", "pass", "`execution` holds"),
            ("diff", "pass", "`execution` holds"),
            ("staged", "fail", index),
        ],
    );
}
