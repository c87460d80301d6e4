//! `probity view`: pages and answers to programs, over a real socket.

mod api;
mod live;
mod metrics;
mod people;
mod safety;
mod suites;

use std::{
    fmt::Write as _,
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    process::{Child, ChildStdout, Stdio},
    time::Duration,
};

use serde_json::Value;

use crate::project::Project;

/// A server that ends with its test.
pub(crate) struct View {
    child: Child,
    /// The rest of its standard output.
    _out: BufReader<ChildStdout>,
    pub(crate) url: String,
    pub(crate) address: String,
}

impl Drop for View {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An answer.
pub(crate) struct Got {
    pub(crate) status: u16,
    /// In lower case.
    pub(crate) head: String,
    pub(crate) whole_head: String,
    pub(crate) body: String,
}

impl Got {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

impl View {
    pub(crate) fn start(project: &Project, options: &[&str]) -> Self {
        let mut command = project.command(&["view", "--port", "0"]);
        command.args(options).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut url = String::new();
        out.read_line(&mut url).unwrap();
        let url = url.trim_end().to_owned();
        let address = url.strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned();
        Self { child, _out: out, url, address }
    }

    pub(crate) fn get(&self, target: &str) -> Got {
        self.ask(&format!("GET {target} HTTP/1.1\r\nHost: {}", self.address))
    }

    /// Sends the head of a request as it is, and reads until the server closes.
    pub(crate) fn ask(&self, head: &str) -> Got {
        let mut stream = self.connect();
        write!(stream, "{head}\r\nConnection: close\r\n\r\n").unwrap();
        Self::answer(stream)
    }

    /// Reads an answer until the server closes.
    pub(crate) fn answer(mut stream: TcpStream) -> Got {
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|it| it.parse().ok()).unwrap_or(0);
        let (whole_head, body) = (head.to_owned(), body.to_owned());
        Got { status, head: head.to_ascii_lowercase(), whole_head, body }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let port = self.address.rsplit(':').next().unwrap();
        let stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream
    }

    fn page(&self, target: &str) -> String {
        let Got { status, head, body, .. } = self.get(target);
        assert_eq!(status, 200, "{target}: {body}");
        assert!(head.contains("content-type: text/html; charset=utf-8"), "{target}: {head}");
        body
    }
}

const SUITE: &str = r#"version = "1"
[backends.echo]
kind = "echo"
[backends.sed]
kind = "command"
command = ["sed", "s/one/two/"]
[[runners]]
name = "words"
dataset = "cases.jsonl"
[runners.gates]
pass_rate = 0.9
"#;

/// 30 cases, of which the echo gets every third wrong, and the other backend those with the word `one`.
pub(crate) fn project() -> Project {
    let mut cases = String::new();
    for at in 0..30 {
        let word = if at % 5 == 0 { "one" } else { "six" };
        let expected = if at % 3 == 0 { "never" } else { word };
        let case = serde_json::json!({
            "id": format!("case/{at:02}"),
            "prompt": format!("{word} {at}"),
            "tags": [if at % 2 == 0 { "even" } else { "odd" }],
            "category": if at < 10 { "correctness" } else { "other" },
            "assert": [{ "type": "contains", "value": expected, "metric": "found" }],
        });
        let _ = writeln!(cases, "{case}");
    }
    Project::new().file("cases.jsonl", cases).file("probity.toml", SUITE)
}

/// The same, and one run of it.
pub(crate) fn project_with_a_run() -> Project {
    let project = project();
    run(&project);
    project
}

pub(crate) fn run(project: &Project) {
    let output = project.run(&["run", "-q", "--informational"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn every_page_shows_what_is_in_the_store() {
    let project = project_with_a_run();
    run(&project);
    let view = View::start(&project, &[]);
    assert!(view.url.starts_with("http://127.0.0.1:"), "{}", view.url);
    let runs = view.page("/");
    let listed = view.get("/api/v1/runs").json();
    let [last, first] = [0, 1].map(|at| listed["runs"][at]["run_id"].as_str().unwrap().to_owned());
    assert!(runs.contains(&format!("href=\"/runs/{last}\"")), "{runs}");
    assert!(runs.contains("36 of 60 passed"), "{runs}");
    let overview = view.page("/runs/latest");
    for part in ["Failed", "words on echo", "words on sed", "Scores", "Compare with the run before"]
    {
        assert!(overview.contains(part), "{part}: {overview}");
    }
    // A figure leads to its cases.
    assert!(overview.contains(&format!("href=\"/runs/{last}/cases?lane=1&amp;verdict=fail\"")));
    let cases = view.page("/runs/latest/cases?lane=1&verdict=fail");
    assert_eq!(cases.matches("<tr>").count(), 11, "ten results and the head: {cases}");
    let case = view.page("/runs/latest/cases/case%2F05?lane=2");
    for part in ["case/05", "words on sed", "two 5", "probity run", "--case case/05"] {
        assert!(case.contains(part), "{part}: {case}");
    }
    let grid = view.page("/runs/latest/grid?differing=1");
    assert!(grid.contains("<mark>two </mark>5"), "{grid}");
    assert_eq!(grid.matches("<th scope=\"row\">").count(), 4, "{grid}");
    let compared = view.page(&format!("/compare?runs={first}@echo,{last}@sed"));
    assert!(compared.contains("4 worse, 0 fixed"), "{compared}");
    assert!(compared.contains("class=\"worse\""), "{compared}");
    let trends = view.page("/trends");
    assert_eq!(trends.matches("class=\"trend-dot\"").count(), 4, "{trends}");
    // What is chosen in the list of runs arrives the latest first.
    let chosen = view.page(&format!("/compare?run={last}@sed&run={first}@echo"));
    assert!(chosen.contains("4 worse, 0 fixed"), "{chosen}");
}

#[test]
fn a_store_may_come_after_the_page() {
    let project = project();
    let view = View::start(&project, &[]);
    assert!(view.page("/").contains("No runs yet"));
    assert_eq!(view.get("/api/v1/runs").status, 404);
    run(&project);
    assert!(view.page("/").contains("probity.toml"));
    assert_eq!(view.get("/api/v1/runs").json()["runs"].as_array().unwrap().len(), 1);
}

#[test]
fn a_port_that_is_taken_is_said_so() {
    let project = project_with_a_run();
    let view = View::start(&project, &[]);
    let port = view.address.rsplit(':').next().unwrap().to_owned();
    let shown = project.shown(&["view", "--port", &port]).replace(&port, "PORT");
    insta::assert_snapshot!(shown, @"
    exit 2
    --- err
    error: failed to listen on 127.0.0.1:PORT
      caused by: Address already in use (os error 98)
    hint: `--port 0` takes any port that is free
    ");
}

#[test]
fn a_store_that_nobody_may_write_to_is_shown() {
    let project = project_with_a_run();
    let folder = project.path(".probity");
    assert!(!folder.join("probity.db-wal").exists(), "the run brought its log in");
    // Where SQLite cannot make the files that readers share, as on a disk that is only read.
    fs::create_dir(folder.join("probity.db-shm")).unwrap();
    let view = View::start(&project, &[]);
    for target in
        ["/", "/runs/latest", "/runs/latest/cases", "/runs/latest/grid", "/trends", "/suites"]
    {
        view.page(target);
        view.page(target);
    }
    assert_eq!(view.get("/api/v1/runs").json()["runs"].as_array().unwrap().len(), 1);
}
