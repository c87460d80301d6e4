//! What it costs a run that a hundred pages follow it.
//!
//! Runs with followers and runs without take turns, so that whatever else happens on the machine hits both. In both, a server
//! is there.

use std::{
    fmt::Write as _,
    fs,
    io::{self, Read as _},
    path::Path,
    thread::{self, JoinHandle},
    time::Duration,
};

use serde_json::Value;

use crate::{
    cost::{self, Ran},
    engine::server::Server as Model,
    view::Server,
};

/// Pages that follow the run.
const FOLLOWERS: usize = 100;
/// Cases of a run, so many at once, each answered after so many milliseconds: about eight seconds.
const CASES: usize = 2500;
const AT_ONCE: &str = "16";
const LATENCY_MS: u64 = 50;

/// Measures so many runs of each kind.
pub(crate) fn run(probity: &Path, times: usize) -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    let probity = fs::canonicalize(probity)?;
    let model = Model::start(&probity.with_file_name("probity-fake-model"), LATENCY_MS)?;
    make(folder.path(), &model.url)?;
    // The first run makes the store.
    measured(&probity, folder.path())?;
    let server = Server::start(&probity, folder.path())?;
    let (mut alone, mut followed) = (Vec::new(), Vec::new());
    for _ in 0..times {
        let without = measured(&probity, folder.path())?;
        let before = cpu_of(server.id())?;
        let (with, bytes) = thread::scope(|scope| {
            let following = scope.spawn(|| follow(&server));
            let ran = measured(&probity, folder.path());
            let bytes = following.join().map_err(|_| io::Error::other("nobody followed"))?;
            Ok::<_, io::Error>((ran?, bytes?))
        })?;
        let of_server = cpu_of(server.id())?.saturating_sub(before);
        println!(
            "alone: {}; followed by {FOLLOWERS} pages: {}; they got {} KiB, the server used {:.2} s of CPU time",
            shown(&without),
            shown(&with),
            bytes / 1024,
            of_server.as_secs_f64(),
        );
        alone.push(without);
        followed.push(with);
    }
    let pairs: Vec<(Ran, Ran)> = alone.into_iter().zip(followed).collect();
    println!(
        "more with followers, means of {times} pairs with 95 % intervals: {} CPU time, {} time; target: 2 %",
        more(&pairs, |it| it.cpu),
        more(&pairs, |it| it.wall)
    );
    Ok(())
}

/// How much more the second of each pair took, in percent, with an interval of two standard errors.
#[expect(clippy::cast_precision_loss, reason = "far below 2^53 pairs")]
fn more(pairs: &[(Ran, Ran)], of: fn(&Ran) -> Duration) -> String {
    let more = |(alone, followed): &(Ran, Ran)| {
        (of(followed).as_secs_f64() / of(alone).as_secs_f64() - 1.0) * 100.0
    };
    let all: Vec<f64> = pairs.iter().map(more).collect();
    let count = all.len() as f64;
    let mean = all.iter().sum::<f64>() / count;
    let squares: f64 = all.iter().map(|it| (it - mean).powi(2)).sum();
    let error = (squares / (count - 1.0).max(1.0) / count).sqrt();
    format!("{mean:+.1} % ({:+.1} to {:+.1})", mean - 2.0 * error, mean + 2.0 * error)
}

fn shown(ran: &Ran) -> String {
    format!("{:.2} s of CPU time in {:.2} s", ran.cpu.as_secs_f64(), ran.wall.as_secs_f64())
}

fn make(folder: &Path, url: &str) -> io::Result<()> {
    let suite = format!(
        "version = \"1\"\n[backends.fake]\nkind = \"openai\"\nbase_url = \"{url}/v1\"\nmodel = \"fake\"\n\
         [[runners]]\nname = \"numbers\"\ndataset = \"cases.jsonl\"\n"
    );
    fs::write(folder.join("probity.toml"), suite)?;
    let mut cases = String::new();
    for at in 0..CASES {
        let case = serde_json::json!({
            "id": format!("case-{at}"), "prompt": format!("Return the number {at}"), "expected_response": at.to_string(),
        });
        let _ = writeln!(cases, "{case}");
    }
    fs::write(folder.join("cases.jsonl"), cases)
}

fn measured(probity: &Path, folder: &Path) -> io::Result<Ran> {
    let words = ["run", "--quiet", "--informational", "--store", "v.db", "-j", AT_ONCE];
    cost::of(probity, folder, &words)
}

/// Follows the next run that begins, from so many connections, and says how many bytes came.
fn follow(server: &Server) -> io::Result<usize> {
    let run_id = loop {
        let listed: Value = serde_json::from_str(&server.get("/api/v1/runs?limit=1")?.body)?;
        let latest = &listed["runs"][0];
        match latest["run_id"].as_str().filter(|_| latest["status"] == "running") {
            Some(run_id) => break run_id.to_owned(),
            None => thread::sleep(Duration::from_millis(10)),
        }
    };
    let followers: Vec<JoinHandle<io::Result<usize>>> = (0..FOLLOWERS)
        .map(|_| {
            let mut stream = server.ask(&format!("/runs/{run_id}/live"))?;
            Ok(thread::spawn(move || {
                let mut sent = Vec::new();
                stream.read_to_end(&mut sent)?;
                match sent.ends_with(b"0\r\n\r\n") {
                    true => Ok(sent.len()),
                    false => Err(io::Error::other("a stream was cut off")),
                }
            }))
        })
        .collect::<io::Result<_>>()?;
    let mut bytes = 0;
    for follower in followers {
        bytes += follower.join().map_err(|_| io::Error::other("a follower panicked"))??;
    }
    Ok(bytes)
}

/// What a process has used of the CPU.
fn cpu_of(process: u32) -> io::Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name before may have spaces in it.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|it| it.parse::<u64>().ok()).sum();
    Ok(Duration::from_millis(ticks * 10))
}
