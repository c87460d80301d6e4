//! `action.yml` and its script: one comment on a pull request, kept up to date.

use std::{
    ffi::{OsStr, OsString},
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::{Arc, Mutex},
    thread,
};

use serde_json::{Value, json};

use crate::project::Project;

/// No further variables.
const NOTHING: &[(&str, &str)] = &[];
/// Who writes with the token of a job.
const BOT: &str = "github-actions[bot]";

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// As much of GitHub as the script asks for: the comments of one pull request.
struct GitHub {
    url: String,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    comments: Vec<Value>,
    /// Method, path and token of each request.
    seen: Vec<String>,
    forbids_writing: bool,
}

impl GitHub {
    fn start(state: State) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(state));
        let shared = state.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                answer(stream.unwrap(), &mut shared.lock().unwrap());
            }
        });
        Self { url, state }
    }

    fn bodies(&self) -> Vec<String> {
        let state = self.state.lock().unwrap();
        state.comments.iter().map(|it| it["body"].as_str().unwrap().to_owned()).collect()
    }
}

fn answer(stream: TcpStream, state: &mut State) {
    let mut reader = BufReader::new(stream);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        head.push(line.trim().to_owned());
    }
    let header = |name: &str| {
        let of =
            |line: &String| line.to_lowercase().strip_prefix(name).map(|it| it.trim().to_owned());
        head.iter().find_map(of)
    };
    let length = header("content-length:").map_or(0, |it| it.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let words: Vec<&str> = head[0].split(' ').collect();
    let (method, path) = (words[0], words[1]);
    state.seen.push(format!("{method} {path} {}", header("authorization:").unwrap()));
    let (status, reply) = respond(method, path, &body, state);
    let text = reply.to_string();
    let size = text.len();
    let mut stream = reader.into_inner();
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-length: {size}\r\nconnection: close\r\n\r\n{text}"
    )
    .unwrap();
}

fn respond(method: &str, path: &str, body: &[u8], state: &mut State) -> (&'static str, Value) {
    let body = || serde_json::from_slice::<Value>(body).unwrap()["body"].clone();
    match method {
        "GET" if path == "/user" => ("403 Forbidden", json!({ "message": "not for apps" })),
        "GET" => {
            let page: usize = path.rsplit('=').next().unwrap().parse().unwrap();
            let all = state.comments.iter().skip((page - 1) * 100).take(100);
            ("200 OK", all.cloned().collect())
        }
        _ if state.forbids_writing => ("403 Forbidden", json!({ "message": "read only" })),
        "POST" => {
            let id = 1000 + state.comments.len();
            let user = json!({ "login": BOT, "type": "Bot" });
            state.comments.push(json!({ "id": id, "user": user, "body": body() }));
            ("201 Created", json!({ "id": id }))
        }
        "PATCH" => {
            let id: u64 = path.rsplit('/').next().unwrap().parse().unwrap();
            let mine = state.comments.iter_mut().find(|it| it["id"] == id).unwrap();
            mine["body"] = body();
            ("200 OK", json!({ "id": id }))
        }
        other => panic!("{other} {path}"),
    }
}

/// A suite whose model says what stands in a file, and what GitHub tells a job about a pull request.
fn project(answer: &str) -> Project {
    let project = Project::new();
    let command = format!("[\"cat\", \"{}\"]", project.path("answer.txt").display());
    let suite = format!(
        "[backends.file]\nkind = \"command\"\ncommand = {command}\n\
         [[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\ngates = {{ pass_rate = {{ pass = 1.0 }} }}\n"
    );
    let case =
        json!({ "id": "a", "prompt": "hello?", "expected_response": "hello", "match": "contains" });
    project
        .file("event.json", r#"{"pull_request": {"number": 7, "title": "$(touch hacked) `id`"}}"#)
        .file("it's a suite.toml", suite)
        .lines("cases.jsonl", &[case])
        .file("answer.txt", answer)
}

/// Where programs are looked for: in this folder first.
fn path_from(folder: &Path) -> OsString {
    let usual = std::env::var_os("PATH").unwrap();
    let all = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&usual));
    std::env::join_paths(all).unwrap()
}

/// A step of `action.yml` that runs the script.
struct Step {
    /// Which of its parts.
    part: String,
    /// The variables that the step has beyond those of the job.
    variables: Vec<String>,
}

fn action() -> String {
    fs::read_to_string(repository().join("action.yml")).unwrap()
}

fn steps() -> Vec<Step> {
    let action = action();
    let steps = action.split("\n    - name: ").skip(1);
    let parts = steps.filter_map(|text| {
        let (_, rest) = text.split_once("scripts/ci-action\"")?;
        let part = rest.lines().next().unwrap().trim().to_owned();
        let set = rest.lines().filter_map(|it| it.strip_prefix("        ACTION_"));
        let names = set.map(|it| format!("ACTION_{}", it.split(':').next().unwrap()));
        Some(Step { part, variables: names.collect() })
    });
    parts.collect()
}

/// Runs the steps one after the other, each with the variables that `action.yml` gives it. The exit code
/// is that of the first that fails.
fn act(project: &Project, github: &GitHub, variables: &[(&str, impl AsRef<OsStr>)]) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_probity")).parent().unwrap();
    let mut all: Option<Output> = None;
    for step in steps() {
        let outputs = fs::read_to_string(project.path("outputs")).unwrap_or_default();
        let code = outputs.lines().rev().find_map(|it| it.strip_prefix("code=")).unwrap_or("");
        let values = [
            ("ACTION_SUITE", "it's a suite.toml"),
            ("ACTION_TOKEN", "token-1"),
            ("ACTION_AUTHOR", BOT),
            ("ACTION_DEFAULT_BRANCH", "main"),
            ("ACTION_CODE", code),
        ];
        let given =
            |name: &str| !name.starts_with("ACTION_") || step.variables.iter().any(|it| it == name);
        let output = Command::new("python3")
            .arg("-I")
            .arg(repository().join("scripts/ci-action"))
            .args(step.part.split_whitespace())
            .current_dir(project.path(""))
            .env("PATH", path_from(program))
            .env("GITHUB_API_URL", &github.url)
            .env("GITHUB_REPOSITORY", "someone/something")
            .env("GITHUB_EVENT_NAME", "pull_request")
            .env("GITHUB_EVENT_PATH", project.path("event.json"))
            .env("GITHUB_OUTPUT", project.path("outputs"))
            .env("GITHUB_ENV", project.path("variables"))
            .envs(values.into_iter().filter(|(name, _)| given(name)))
            .env_remove("GITHUB_ACTIONS")
            .env_remove("GITHUB_STEP_SUMMARY")
            .envs(
                variables.iter().filter(|(name, _)| given(name)).map(|(name, value)| (name, value)),
            )
            .output()
            .unwrap();
        all = Some(match all {
            None => output,
            Some(before) => Output {
                status: if before.status.success() { output.status } else { before.status },
                stdout: [before.stdout, output.stdout].concat(),
                stderr: [before.stderr, output.stderr].concat(),
            },
        });
    }
    all.unwrap()
}

#[test]
fn one_comment_is_kept_up_to_date() {
    let others = (0..150).map(|id| json!({ "id": id, "body": "looks good" })).collect();
    let github = GitHub::start(State { comments: others, ..State::default() });
    let project = project("hello");
    let first = act(&project, &github, NOTHING);
    assert_eq!(first.status.code(), Some(0), "{first:?}");
    assert_eq!(github.bodies().len(), 151);
    let body = github.bodies().pop().unwrap();
    assert!(
        body.starts_with("<!-- probity \"it's a suite.toml\" -->\n") && body.contains("Passed"),
        "{body}"
    );

    let project = project.file("answer.txt", "goodbye");
    let second = act(&project, &github, NOTHING);
    assert_eq!(second.status.code(), Some(1), "the exit code is that of the run: {second:?}");
    assert_eq!(github.bodies().len(), 151, "the same comment");
    assert!(github.bodies()[150].contains("Failed"), "{:?}", github.bodies()[150]);
    assert!(!project.path("hacked").exists());
    let seen = github.state.lock().unwrap().seen.clone();
    assert_eq!(
        seen.last().unwrap(),
        "PATCH /repos/someone/something/issues/comments/1150 bearer token-1"
    );
}

#[test]
fn a_report_of_another_run_is_not_posted() {
    let github = GitHub::start(State::default());
    let project = project("hello")
        .file("it's a suite.toml", "[backends")
        .file("probity-report.md", "## Passed, long ago\n");
    let output = act(&project, &github, &summary(&project));
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let body = github.bodies().remove(0);
    assert!(body.contains("could not run the suite (exit code 2)"), "{body}");
    assert!(!body.contains("long ago"), "{body}");
    assert_eq!(project.read("summary.md").matches("could not run the suite").count(), 1);
}

fn summary(project: &Project) -> [(&'static str, String); 2] {
    let path = project.path("summary.md").display().to_string();
    [("GITHUB_ACTIONS", "true".to_owned()), ("GITHUB_STEP_SUMMARY", path)]
}

#[test]
fn the_summary_has_the_report_once() {
    let github = GitHub::start(State::default());
    let project = project("hello");
    act(&project, &github, &summary(&project));
    let report = project.read("probity-report.md");
    let heading = report.lines().next().unwrap();
    assert_eq!(project.read("summary.md").matches(heading).count(), 1, "{heading}");
}

/// A program can read the variables of every process of its user, so none may have the token.
#[test]
fn nothing_has_the_token_while_the_suite_runs() {
    let github = GitHub::start(State::default());
    let looks = "#!/bin/sh\nenv > environment\ncat /proc/$PPID/environ > parent\n";
    let project = project("hello").file("bin/probity", looks);
    let program = project.path("bin/probity");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    act(&project, &github, &[("PATH", path_from(&project.path("bin")))]);
    let environment = project.read("environment");
    assert!(environment.contains("ACTION_SUITE="), "{environment}");
    assert!(!environment.contains("GITHUB_ENV="), "{environment}");
    let parent = project.read("parent");
    assert!(parent.contains("ACTION_SUITE="), "{parent}");
    for text in [environment, parent] {
        assert!(!text.contains("token-1"), "{text}");
    }
    let seen = github.state.lock().unwrap().seen.clone();
    assert!(!seen.is_empty() && seen.iter().all(|it| it.ends_with(" bearer token-1")), "{seen:?}");
}

/// What a suite leaves in the place of the report would be published.
#[test]
fn a_report_that_leads_elsewhere_is_not_posted() {
    let github = GitHub::start(State::default());
    let links = "#!/bin/sh\nln -s /proc/self/environ probity-report.md\n";
    let project = project("hello").file("bin/probity", links);
    let program = project.path("bin/probity");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let output = act(&project, &github, &[("PATH", path_from(&project.path("bin")))]);
    assert!(github.bodies().is_empty(), "{:?}", github.bodies());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("::warning::the comment could not be written"), "{text}");
}

/// Whoever writes the mark would have their comment replaced, and could change the report later.
#[test]
fn a_comment_of_somebody_else_is_left_alone() {
    let body = "<!-- probity \"it's a suite.toml\" -->\nall is well";
    for author in [BOT, ""] {
        let user = json!({ "login": "somebody", "type": "User" });
        let comments = vec![json!({ "id": 1, "user": user, "body": body })];
        let github = GitHub::start(State { comments, ..State::default() });
        let project = project("hello");
        for _ in 0..2 {
            act(&project, &github, &[("ACTION_AUTHOR", author)]);
            assert_eq!(github.bodies().len(), 2, "as `{author}`");
            assert_eq!(github.bodies()[0], body);
        }
    }
}

#[test]
fn the_run_that_passed_is_blessed_wherever_the_suite_keeps_its_runs() {
    let github = GitHub::start(State::default());
    let project = project("hello");
    let suite = format!("store = \"elsewhere.db\"\n{}", project.read("it's a suite.toml"));
    let project = project.file("it's a suite.toml", suite);
    let push = [("GITHUB_EVENT_NAME", "push"), ("GITHUB_REF", "refs/heads/main")];
    let pushed = act(&project, &github, &push);
    assert_eq!(pushed.status.code(), Some(0), "{pushed:?}");
    assert!(project.path("baselines/main.json").is_file());
}

#[test]
fn a_push_sets_the_baseline_that_a_pull_request_is_held_against() {
    let github = GitHub::start(State::default());
    let project = project("hello");
    let push = [
        ("GITHUB_EVENT_NAME", "push"),
        ("GITHUB_REF", "refs/heads/main"),
        ("GITHUB_EVENT_PATH", ""),
    ];
    let pushed = act(&project, &github, &push);
    assert_eq!(pushed.status.code(), Some(0), "{pushed:?}");
    assert_eq!(project.read("outputs"), "report=probity-report.md\nblessed=true\ncode=0\n");
    assert!(project.path("baselines/main.json").is_file());
    assert!(github.bodies().is_empty());

    let project = project.file("answer.txt", "goodbye");
    let compared = act(&project, &github, NOTHING);
    assert_eq!(compared.status.code(), Some(1), "{compared:?}");
    let body = github.bodies().remove(0);
    assert!(body.contains("orse than the baseline `main`"), "{body}");
    assert!(project.read("outputs").ends_with("blessed=false\ncode=1\n"));
}

#[test]
fn a_fork_that_may_not_write_still_has_its_exit_code() {
    let github = GitHub::start(State { forbids_writing: true, ..State::default() });
    let output = act(&project("goodbye"), &github, NOTHING);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("::warning::the comment could not be written: HTTP Error 403"), "{text}");
}

/// What a pull request says would become part of a script.
#[test]
fn no_script_has_an_expression_in_it() {
    let action = action();
    let lines = action.lines().map(|it| it.trim_start().trim_start_matches("- "));
    let scripts: Vec<&str> = lines.filter_map(|it| it.strip_prefix("run:")).collect();
    assert!(!scripts.is_empty(), "{action}");
    for script in scripts {
        assert!(!script.contains("${{"), "{script}");
        let script = script.trim_start();
        let is_one_line = !script.is_empty() && !script.starts_with(['|', '>']);
        assert!(is_one_line, "only the first line of a script is read here: {script}");
    }
}
