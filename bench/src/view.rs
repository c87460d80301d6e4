//! `probity view` on a large store: how soon each page begins to come, how large it is, and what the server needs.

use std::{
    fmt::Write as _,
    fs::{self, File},
    io::{self, BufRead as _, BufReader, BufWriter, Read as _, Write as _},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rusqlite::{Connection, params};
use serde_json::Value;

use crate::cost;

/// Results of a run: cases times backends.
const CASES: usize = 250;
const BACKENDS: usize = 4;
/// Suites that the runs are of.
const SUITES: usize = 20;
/// How often each page is asked for; the first time counts.
const TIMES: usize = 3;

/// Measures the pages of a store of `runs` runs with 1,000 results each.
pub(crate) fn run(probity: &Path, runs: usize) -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    let begun = Instant::now();
    make(probity, folder.path(), runs)?;
    let size = fs::metadata(folder.path().join("v.db"))?.len() / 1_000_000;
    println!(
        "{runs} runs, {} results, {size} MB, made in {:.0} s",
        runs * CASES * BACKENDS,
        begun.elapsed().as_secs_f64()
    );
    let server = Server::start(probity, folder.path())?;
    let listed: Value = serde_json::from_str(&server.get("/api/v1/runs?limit=3")?.body)?;
    let name = |at: usize| listed["runs"][at]["run_id"].as_str().unwrap_or_default().to_owned();
    let (last, before) = (name(1), name(2));
    let suite = encoded(&fs::canonicalize(folder.path().join("probity.toml"))?.to_string_lossy());
    let mut worst = Worst::default();
    for target in [
        "/".to_owned(),
        "/?suite=suite-3.toml&backend=b2".to_owned(),
        "/?limit=150".to_owned(),
        "/?tag=odd".to_owned(),
        "/?tag=nobody+has+it".to_owned(),
        format!("/runs/{last}"),
        format!("/runs/{last}/cases"),
        format!("/runs/{last}/cases?sort=-latency&verdict=pass"),
        format!("/runs/{last}/cases?limit=250"),
        format!("/runs/{last}/cases?q=number+17"),
        format!("/runs/{last}/cases?tag=odd"),
        format!("/runs/{last}/cases?category=b&flaky=1"),
        format!("/runs/{last}/cases?score=words&min=0.5"),
        format!("/runs/{last}/cases?flipped={before}"),
        format!("/runs/{last}/cases/case-0010"),
        format!("/runs/{last}/grid"),
        format!("/runs/{last}/grid?limit=100"),
        format!("/runs/{last}/grid?failing=1"),
        "/compare".to_owned(),
        format!("/compare?runs={before},{last}"),
        "/trends?suite=suite-4.toml".to_owned(),
        "/suites".to_owned(),
        format!("/suites/{suite}"),
        "/doctor".to_owned(),
        "/api/v1/openapi.json".to_owned(),
        "/api/v1/runs".to_owned(),
        "/api/v1/runs?tag=odd&limit=150".to_owned(),
        format!("/api/v1/runs/{before}"),
        format!("/api/v1/runs/{last}/cases"),
        format!("/api/v1/runs/{last}/cases/case-0010"),
        format!("/api/v1/runs/{last}/people"),
        format!("/api/v1/compare?runs={before},{last}"),
        "/api/v1/trends?suite=suite-7.toml".to_owned(),
        "/api/v1/suites".to_owned(),
        format!("/api/v1/suites/{suite}"),
        "/api/v1/doctor".to_owned(),
    ] {
        worst.see(&server, &target)?;
    }
    println!(
        "slowest first answer: {:.0} ms; largest page: {} KiB; peak memory: {} MiB",
        worst.first_byte.as_secs_f64() * 1e3,
        worst.bytes / 1024,
        server.peak_mib()?
    );
    println!("targets: 100 ms, 300 KiB, 150 MiB");
    Ok(())
}

/// The worst of all pages.
#[derive(Default)]
struct Worst {
    first_byte: Duration,
    bytes: usize,
}

impl Worst {
    fn see(&mut self, server: &Server, target: &str) -> io::Result<()> {
        let answers: Vec<Answer> =
            (0..TIMES).map(|_| server.get(target)).collect::<io::Result<_>>()?;
        let times: Vec<String> =
            answers.iter().map(|it| format!("{:.0}", it.first_byte.as_secs_f64() * 1e3)).collect();
        let bytes = answers[0].body.len();
        println!(
            "{:>22} ms to the first byte, {:>4} KiB  {target}",
            times.join(", "),
            bytes / 1024
        );
        self.first_byte = self.first_byte.max(answers[0].first_byte);
        self.bytes = self.bytes.max(bytes);
        Ok(())
    }
}

/// A path as one part of an address.
fn encoded(path: &str) -> String {
    path.replace('%', "%25").replace('/', "%2F")
}

/// A store with one real run, and copies of it.
fn make(probity: &Path, folder: &Path, runs: usize) -> io::Result<()> {
    let mut suite = String::from("version = \"1\"\n");
    for at in 0..BACKENDS {
        let _ = writeln!(suite, "[backends.b{at}]\nkind = \"echo\"");
    }
    suite.push_str("[[runners]]\nname = \"numbers\"\ndataset = \"cases.jsonl\"\n[runners.gates]\npass_rate = 0.5\n");
    fs::write(folder.join("probity.toml"), suite)?;
    let mut file = BufWriter::new(File::create(folder.join("cases.jsonl"))?);
    let words = "Some words that make it as long as prompts are. ".repeat(6);
    for at in 0..CASES {
        let expected = if at % 10 == 0 { at + 1 } else { at };
        let (tag, category) = (["even", "odd"][at % 2], ["a", "b", "c"][at % 3]);
        let case = serde_json::json!({
            "id": format!("case-{at:04}"),
            "prompt": format!("Return the number {at}. {words}"),
            "tags": [tag],
            "category": category,
            "assert": [
                { "type": "contains", "value": format!("number {expected}.") },
                { "type": "contains", "value": "words", "metric": "words" },
            ],
        });
        writeln!(file, "{case}")?;
    }
    file.flush()?;
    cost::of(probity, folder, &["run", "--quiet", "--store", "v.db"])?;
    copy(&folder.join("v.db"), runs).map_err(io::Error::other)
}

/// Copies the one run of a store, so that there are so many.
pub(crate) fn copy(store: &Path, runs: usize) -> rusqlite::Result<()> {
    let connection = Connection::open(store)?;
    connection.execute_batch("PRAGMA synchronous = OFF; BEGIN")?;
    let columns = |table: &str, but: &[&str]| -> rusqlite::Result<String> {
        let mut statement = connection.prepare("SELECT name FROM pragma_table_info(?)")?;
        let names = statement.query_map([table], |row| row.get::<_, String>(0))?;
        let names: Vec<String> = names.collect::<Result<_, _>>()?;
        let kept = names.into_iter().filter(|it| !but.contains(&it.as_str()));
        Ok(kept.collect::<Vec<_>>().join(", "))
    };
    let last = |table: &str| -> rusqlite::Result<i64> {
        connection.query_row(&format!("SELECT max(id) FROM {table}"), [], |row| row.get(0))
    };
    let (lanes, results) = (last("lanes")?, last("results")?);
    let of_lanes = columns("lanes", &["id", "run", "sum"])?;
    let of_results = columns("results", &["id", "lane"])?;
    let of_scores = columns("scores", &["result"])?;
    for at in 1..i64::try_from(runs).unwrap_or(i64::MAX) {
        let of_suite = at % i64::try_from(SUITES).unwrap_or(1);
        connection.execute(
            "INSERT INTO runs (id, run_id, suite, started_ms, finished_ms, status, info)
                SELECT id + ?1, substr(run_id, 1, 16) || printf('%06x', ?1), 'suite-' || ?2 || '.toml',
                started_ms + ?1 * 60000, finished_ms + ?1 * 60000, status, info FROM runs WHERE id = 1",
            params![at, of_suite],
        )?;
        connection.execute(
            &format!("INSERT INTO lanes (id, run, {of_lanes}) SELECT id + ?1 * ?2, run + ?1, {of_lanes} FROM lanes WHERE id <= ?2"),
            params![at, lanes],
        )?;
        connection.execute(
            &format!("INSERT INTO results (id, lane, {of_results}) SELECT id + ?1 * ?2, lane + ?1 * ?3, {of_results} FROM results WHERE id <= ?2"),
            params![at, results, lanes],
        )?;
        connection.execute(
            &format!("INSERT INTO scores (result, {of_scores}) SELECT result + ?1 * ?2, {of_scores} FROM scores WHERE result <= ?2"),
            params![at, results],
        )?;
    }
    connection.execute_batch("COMMIT")
}

/// A server that ends with the measurement.
pub(crate) struct Server {
    child: Child,
    address: String,
}

pub(crate) struct Answer {
    first_byte: Duration,
    pub(crate) body: String,
}

impl Server {
    pub(crate) fn start(probity: &Path, folder: &Path) -> io::Result<Self> {
        let mut child = Command::new(fs::canonicalize(probity)?)
            .args(["view", "--port", "0", "--store", "v.db"])
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            BufReader::new(out).read_line(&mut line)?;
        }
        let address = line.trim().trim_start_matches("http://").trim_end_matches('/').to_owned();
        Ok(Self { child, address })
    }

    pub(crate) fn get(&self, target: &str) -> io::Result<Answer> {
        let mut stream = TcpStream::connect(&self.address)?;
        let begun = Instant::now();
        write!(
            stream,
            "GET {target} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            self.address
        )?;
        let mut first = [0];
        stream.read_exact(&mut first)?;
        let first_byte = begun.elapsed();
        let mut rest = String::new();
        stream.read_to_string(&mut rest)?;
        // The first byte of an answer is an H.
        match rest.split_once("\r\n\r\n") {
            Some((head, body)) if head.starts_with("TTP/1.1 200") => {
                Ok(Answer { first_byte, body: body.to_owned() })
            }
            Some(_) | None => Err(io::Error::other(format!("{target}: {rest}"))),
        }
    }

    /// A connection on which something was asked and nothing read yet.
    pub(crate) fn ask(&self, target: &str) -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect(&self.address)?;
        write!(
            stream,
            "GET {target} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            self.address
        )?;
        Ok(stream)
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    fn peak_mib(&self) -> io::Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let peak = status.lines().find_map(|it| it.strip_prefix("VmHWM:"));
        let kib = peak.and_then(|it| it.trim().split(' ').next()?.parse::<u64>().ok());
        Ok(kib.unwrap_or(0) / 1024)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
