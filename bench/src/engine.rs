//! `probity run` against fake servers: what a run costs besides the waiting.
//!
//! Each figure that depends on the machine is a ratio to what `oha`, which only makes the
//! requests, needs for as many of them on the same server a moment before.

pub(crate) mod figures;
pub(crate) mod project;
pub(crate) mod server;
pub(crate) mod table;
pub(crate) mod versus;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::cost::{self, Ran};
use project::{IN_FLIGHT, Project};
use server::Server;
use table::{Figure, Target, head, line};

const CASES: usize = 10_000;
const MANY: usize = 100_000;
/// Enough to see little of the start.
const FAST: usize = 50_000;
/// A slow server takes half a second for each 64 of them.
const BESIDE: usize = 2_000;

/// Measures everything, and prints a line as soon as it is known.
pub(crate) fn run(probity: &Path, repeats: usize) -> io::Result<()> {
    let probity = fs::canonicalize(probity)?;
    let bench = Bench { fake_model: fake_model()?, probity, repeats };
    println!("{}, median of {repeats} (least–most)\n", machine());
    head();
    let peak = bench.waiting()?;
    bench.memory(peak)?;
    bench.throughput()?;
    bench.resume()?;
    bench.two_backends()?;
    bench.replay()
}

struct Bench {
    probity: PathBuf,
    fake_model: PathBuf,
    repeats: usize,
}

impl Bench {
    /// 50 ms an answer, which is as good as nothing for a real model. Returns the peak.
    fn waiting(&self) -> io::Result<f64> {
        let server = self.server(50)?;
        let ideal = float(CASES) / float(IN_FLIGHT) * 0.05;
        let [mut to_ideal, mut to_oha, mut oha_to_ideal] = figures();
        let [mut cpu, mut oha_cpu, mut peak, mut bytes] = figures();
        for _ in 0..self.repeats {
            let bare = oha(&server, CASES)?;
            let project = Project::new(CASES, &[("fake", &server)])?;
            let ran = project.run(&self.probity, &[], CASES)?;
            to_ideal.push(seconds(&ran) / ideal);
            to_oha.push(seconds(&ran) / seconds(&bare));
            oha_to_ideal.push(seconds(&bare) / ideal);
            cpu.push(cpu_ms(&ran, CASES));
            oha_cpu.push(cpu_ms(&bare, CASES));
            peak.push(ran.peak_mib);
            bytes.push(project.stored_bytes()?);
        }
        line("10,000 cases, 50 ms: time / ideal", &Target::AtMost(1.05), 3, &to_ideal);
        line("the same: time / time of oha", &Target::AtMost(1.05), 3, &to_oha);
        line("oha's time / ideal", &Target::None, 3, &oha_to_ideal);
        line("the same: CPU ms a case", &Target::AtMost(0.25), 3, &cpu);
        line("oha's CPU ms a request", &Target::None, 3, &oha_cpu);
        line("the same: peak memory, MiB", &Target::AtMost(80.0), 1, &peak);
        line("the same: bytes on disk a case", &Target::None, 0, &bytes);
        Ok(peak.median())
    }

    /// Ten times the cases must not take more memory.
    fn memory(&self, before: f64) -> io::Result<()> {
        let server = self.server(0)?;
        let [mut to_before, mut peak, mut cpu] = figures();
        for _ in 0..self.repeats {
            let project = Project::new(MANY, &[("fake", &server)])?;
            let ran = project.run(&self.probity, &[], MANY)?;
            to_before.push(ran.peak_mib / before);
            peak.push(ran.peak_mib);
            cpu.push(cpu_ms(&ran, MANY));
        }
        let ten_times = "100,000 cases, 0 ms: peak memory / that of 10,000";
        line(ten_times, &Target::AtMost(1.3), 2, &to_before);
        line("the same: peak memory, MiB", &Target::None, 1, &peak);
        line("the same: CPU ms a case", &Target::None, 3, &cpu);
        Ok(())
    }

    /// A server that answers at once: what we do is all there is.
    fn throughput(&self) -> io::Result<()> {
        let server = self.server(0)?;
        let mut start = Figure::default();
        for _ in 0..self.repeats {
            let ran = Project::new(1, &[("fake", &server)])?.run(&self.probity, &[], 1)?;
            start.push(seconds(&ran) * 1e3);
        }
        line("1 case, 0 ms: time, ms", &Target::None, 0, &start);
        for (name, cases) in [("10,000", CASES), ("50,000", FAST)] {
            let [mut ratio, mut rate, mut oha_rate, mut cpu] = figures();
            for _ in 0..self.repeats {
                let bare = oha(&server, cases)?;
                let project = Project::new(cases, &[("fake", &server)])?;
                let ran = project.run(&self.probity, &[], cases)?;
                ratio.push(seconds(&bare) / seconds(&ran));
                rate.push(float(cases) / seconds(&ran));
                oha_rate.push(float(cases) / seconds(&bare));
                cpu.push(cpu_ms(&ran, cases));
            }
            let what = format!("{name} cases, 0 ms: requests a second / those of oha");
            line(&what, &Target::AtLeast(0.25), 2, &ratio);
            line("the same: requests a second", &Target::None, 0, &rate);
            line("oha's requests a second", &Target::None, 0, &oha_rate);
            line("the same: CPU ms a case", &Target::None, 3, &cpu);
        }
        Ok(())
    }

    /// A run that has come to its end has nothing to ask.
    fn resume(&self) -> io::Result<()> {
        let server = self.server(0)?;
        let project = Project::new(CASES, &[("fake", &server)])?;
        project.run(&self.probity, &[], CASES)?;
        let mut time = Figure::default();
        for _ in 0..self.repeats {
            let ran = project.run(&self.probity, &["--resume"], 0)?;
            time.push(seconds(&ran) * 1e3);
        }
        line("resume of 10,000 finished cases, 0 calls: time, ms", &Target::None, 0, &time);
        Ok(())
    }

    /// A slow backend must not hold a fast one up.
    fn two_backends(&self) -> io::Result<()> {
        let (fast, slow) = (self.server(50)?, self.server(500)?);
        let mut ratio = Figure::default();
        for _ in 0..self.repeats {
            let alone = Project::new(BESIDE, &[("fast", &fast)])?;
            let both = Project::new(BESIDE, &[("fast", &fast), ("slow", &slow)])?;
            ratio.push(self.first_lane_ms(&both, 2)? / self.first_lane_ms(&alone, 1)?);
        }
        let what = "2,000 cases, 50 ms, beside a backend of 500 ms: time / time alone";
        line(what, &Target::AtMost(1.1), 3, &ratio);
        Ok(())
    }

    /// How long the first backend had to do, by what the run says of itself.
    fn first_lane_ms(&self, project: &Project, backends: usize) -> io::Result<f64> {
        project.run(&self.probity, &["--events", "events.jsonl"], BESIDE * backends)?;
        let events = fs::read_to_string(project.path().join("events.jsonl"))?;
        let at = |wanted: &dyn Fn(&serde_json::Value) -> bool| {
            let mut events =
                events.lines().filter_map(|it| serde_json::from_str::<serde_json::Value>(it).ok());
            events.find(wanted).and_then(|event| event["at_ms"].as_f64())
        };
        let began = at(&|it| it["event"] == "run-started");
        let ended = at(&|it| it["event"] == "lane-finished" && it["data"]["lane"] == 0);
        began.zip(ended).map(|(began, ended)| ended - began).ok_or_else(|| {
            io::Error::other("the events do not say when the first backend was done")
        })
    }

    /// Nothing to wait for at all: reading, judging and writing.
    fn replay(&self) -> io::Result<()> {
        let server = self.server(0)?;
        let recorded = Project::new(CASES, &[("fake", &server)])?;
        recorded.run(&self.probity, &["--record", "answers.jsonl"], CASES)?;
        let recording = fs::read(recorded.path().join("answers.jsonl"))?;
        let [mut rate, mut per_cpu] = figures();
        for _ in 0..self.repeats {
            let project = Project::replaying(CASES, &recording)?;
            // A replayed answer is no call.
            let ran = project.run(&self.probity, &[], 0)?;
            rate.push(float(CASES) / seconds(&ran));
            per_cpu.push(float(CASES) / ran.cpu.as_secs_f64());
        }
        line("10,000 replayed cases: cases a second", &Target::None, 0, &rate);
        line("the same: cases a CPU-second", &Target::None, 0, &per_cpu);
        Ok(())
    }

    fn server(&self, latency_ms: u64) -> io::Result<Server> {
        Server::start(&self.fake_model, latency_ms)
    }
}

/// The bare requests, as many at a time.
fn oha(server: &Server, requests: usize) -> io::Result<Ran> {
    oha_with(server, requests, IN_FLIGHT)
}

fn oha_with(server: &Server, requests: usize, in_flight: usize) -> io::Result<Ran> {
    let url = format!("{}/v1/chat/completions", server.url);
    let body =
        r#"{"model":"fake-small","messages":[{"role":"user","content":"Return the number 7"}]}"#;
    let (count, in_flight) = (requests.to_string(), in_flight.to_string());
    let mut words = vec!["--no-tui", "--output-format", "json", "-c", &in_flight, "-n", &count];
    words.extend(["-m", "POST", "-T", "application/json", "-d", body, &url]);
    let ran = cost::of(Path::new("oha"), Path::new("."), &words)?;
    let told: serde_json::Value = serde_json::from_str(&ran.output)?;
    match told["statusCodeDistribution"]["200"].as_u64() == u64::try_from(requests).ok() {
        true => Ok(ran),
        false => Err(io::Error::other(format!("oha: not {requests} answers: {}", ran.output))),
    }
}

/// The fake server that lies beside this program: it is the same whatever profile the program measured is of.
pub(crate) fn fake_model() -> io::Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name("probity-fake-model"))
}

/// What the figures were measured on.
pub(crate) fn machine() -> String {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let info = read("/proc/cpuinfo");
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let load = read("/proc/loadavg");
    let load = load.split(' ').next().unwrap_or_default();
    format!("{cores} cores ({}), load {load}", model.map_or("unknown", |it| it.1))
}

fn figures<const N: usize>() -> [Figure; N] {
    std::array::from_fn(|_| Figure::default())
}

fn seconds(ran: &Ran) -> f64 {
    ran.wall.as_secs_f64()
}

fn cpu_ms(ran: &Ran, cases: usize) -> f64 {
    ran.cpu.as_secs_f64() * 1e3 / float(cases)
}

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
fn float(count: usize) -> f64 {
    count as f64
}
