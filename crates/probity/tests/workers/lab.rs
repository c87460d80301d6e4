//! NATS servers, workers and runs, each of which ends with the test, however that ends.

use std::{
    fmt::Write as _,
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use probity_testkit::FakeServer;
use serde_json::Value;

use crate::project::Project;

/// Nothing here takes longer.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// Waits for a fact.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "{what} did not come about");
        thread::sleep(Duration::from_millis(10));
    }
}

/// A NATS server with `JetStream`.
pub(crate) struct Nats {
    folder: tempfile::TempDir,
    child: Option<Child>,
    port: u16,
    config: String,
}

impl Nats {
    pub(crate) fn start() -> Self {
        Self::with("")
    }

    /// With more in its configuration.
    pub(crate) fn with(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut nats = Self { folder, child: None, port: 0, config: config.to_owned() };
        nats.up();
        nats
    }

    /// Where its streams are kept.
    pub(crate) fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts it, on the port that it had before if it had one.
    pub(crate) fn up(&mut self) {
        let port = if self.port == 0 { -1 } else { i32::from(self.port) };
        let config = format!(
            "listen: \"127.0.0.1:{port}\"\nports_file_dir: \"{0}\"\nlogfile: \"{0}/log\"\n\
             jetstream {{ store_dir: \"{1}\" }}\n{2}\n",
            self.folder.path().display(),
            self.store().display(),
            self.config,
        );
        fs::write(self.path("nats.conf"), config).unwrap();
        let child = Command::new("nats-server")
            .arg("-c")
            .arg(self.path("nats.conf"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("nats-server is installed");
        let ports = self.path(&format!("nats-server_{}.ports", child.id()));
        self.child = Some(child);
        let read = || {
            let text = fs::read_to_string(&ports).ok()?;
            let ports: Value = serde_json::from_str(&text).ok()?;
            ports["nats"][0].as_str()?.rsplit(':').next()?.parse().ok()
        };
        let mut port = None;
        wait_until("the server is up", || {
            port = read();
            port.is_some()
        });
        self.port = port.unwrap();
    }

    /// Ends it as a power cut would, but for what the system has not written.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// What the server answers to a request without a body.
    pub(crate) fn request(&self, subject: &str) -> String {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let asked = format!(
            "CONNECT {{\"verbose\":false}}\r\nSUB answer 1\r\nPUB {subject} answer 0\r\n\r\n"
        );
        (&stream).write_all(asked.as_bytes()).unwrap();
        let mut lines = BufReader::new(stream).lines();
        let mut line = || lines.next().unwrap().unwrap();
        while !line().starts_with("MSG ") {}
        line()
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A worker in a folder of its own.
pub(crate) struct Worker {
    child: Child,
    pub(crate) name: String,
    folder: tempfile::TempDir,
}

impl Worker {
    pub(crate) fn start(url: &str, name: &str, words: &[&str]) -> Self {
        Self::with_env(url, name, words, &[])
    }

    pub(crate) fn with_env(url: &str, name: &str, words: &[&str], env: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_probity"));
        command.args(["worker", "--connect", url, "--name", name]).args(words);
        command.envs(env.iter().copied()).current_dir(folder.path());
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        Self { child, name: name.to_owned(), folder }
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Tells it to leave, and waits until it has.
    pub(crate) fn leave(mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        let mut code = None;
        wait_until("the worker has left", || {
            code = self.child.try_wait().unwrap();
            code.is_some()
        });
        code.unwrap().code()
    }

    pub(crate) fn exit_code(&mut self) -> Option<i32> {
        let mut status = None;
        wait_until("the worker has ended", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap().code()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A run that goes on, and ends with the test.
pub(crate) struct Going(Option<Child>);

impl Going {
    pub(crate) fn start(project: &Project, words: &[&str]) -> Self {
        let words: Vec<&str> = ["run", "--porcelain"].iter().chain(words).copied().collect();
        let err = fs::File::create(project.path("err")).unwrap();
        let mut command = project.command(&words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(err);
        Self(Some(command.spawn().unwrap()))
    }

    pub(crate) fn kill(mut self) {
        let mut child = self.0.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// What it printed, when it has ended.
    #[track_caller]
    pub(crate) fn ended(mut self, project: &Project) -> String {
        let mut child = self.0.take().unwrap();
        let begun = Instant::now();
        while child.try_wait().unwrap().is_none() {
            if begun.elapsed() > PATIENCE {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("the run did not end: {}", project.read("err"));
            }
            thread::sleep(Duration::from_millis(10));
        }
        shown(&child.wait_with_output().unwrap())
    }
}

impl Drop for Going {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Runs to the end.
#[track_caller]
pub(crate) fn run(project: &Project, words: &[&str]) -> String {
    let going = Going::start(project, words);
    going.ended(project)
}

fn shown(output: &Output) -> String {
    let code = output.status.code();
    format!("EXIT={code:?}\n{}", String::from_utf8_lossy(&output.stdout))
}

/// Every stored case of the latest run, in the order of their ids.
pub(crate) fn stored(project: &Project) -> Vec<Value> {
    let output = project.run(&["show", "latest", "--json"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let mut all: Vec<Value> = text.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    all.sort_by_key(|it| (it["case_id"].to_string(), it["repeat"].as_u64()));
    all
}

/// The same without times and names of workers.
pub(crate) fn timeless(project: &Project) -> Vec<Value> {
    let mut all = stored(project);
    for case in &mut all {
        let case = case.as_object_mut().unwrap();
        for key in ["started", "latency_ms", "elapsed_ms", "ttft_ms", "tokens_per_second", "worker"]
        {
            case.shift_remove(key);
        }
        for asked in case["asked"].as_array_mut().unwrap() {
            asked.as_object_mut().unwrap().shift_remove("latency_ms");
        }
        for failed in case["failures"].as_array_mut().unwrap() {
            let failed = failed.as_object_mut().unwrap();
            for key in ["latency_ms", "retry_in_ms", "worker"] {
                failed.shift_remove(key);
            }
        }
    }
    all
}

/// `count` cases whose answer is the last word of the prompt, as the fake server gives it.
pub(crate) fn dataset(count: usize) -> String {
    let mut text = String::new();
    for at in 0..count {
        let _ = writeln!(
            text,
            r#"{{"id":"case-{at:05}","prompt":"Return the number {at}","expected_response":"{at}"}}"#
        );
    }
    text
}

/// A suite with one runner on a backend of the `OpenAI` dialect.
pub(crate) fn suite(server: &FakeServer, of_backend: &str, more: &str) -> String {
    format!(
        "version = \"1\"\n[backends.fake]\nkind = \"openai\"\nbase_url = \"{}/v1\"\n\
         model = \"fake-small\"\n{of_backend}\n[[runners]]\nname = \"numbers\"\n\
         dataset = \"cases.jsonl\"\n[retry]\nbackoff_base = 0.01\n{more}\n",
        server.url()
    )
}

pub(crate) fn project(cases: usize, server: &FakeServer, more: &str) -> Project {
    Project::new().file("cases.jsonl", dataset(cases)).file("probity.toml", suite(server, "", more))
}

/// Every byte under a folder.
pub(crate) fn all_bytes(folder: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => bytes.extend(all_bytes(&path)),
            false => bytes.extend(fs::read(path).unwrap_or_default()),
        }
    }
    bytes
}

/// `probity view` of a project, which ends with the test.
pub(crate) struct Viewed {
    child: Child,
    address: String,
}

impl Viewed {
    pub(crate) fn start(project: &Project) -> Self {
        let mut command = project.command(&["view", "--port", "0"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let address = url.trim_start_matches("http://").split('/').next().unwrap();
        Self { address: address.trim_end().to_owned(), child }
    }

    /// What the page of the latest run shows now; empty while there is no run.
    pub(crate) fn latest_run(&self) -> String {
        let runs = self.get("/");
        let link = runs.split_once("href=\"/runs/").map(|(_, rest)| rest);
        let id = link.and_then(|it| it.split(['"', '?', '/']).next());
        id.map_or_else(String::new, |id| self.get(&format!("/runs/{id}")))
    }

    fn get(&self, target: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let host = &self.address;
        write!(stream, "GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Viewed {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
