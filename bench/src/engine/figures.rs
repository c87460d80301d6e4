//! Every figure that the documentation has a target for, in one table.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{
    IN_FLIGHT, cpu_ms, float, oha_with,
    project::Project,
    seconds,
    server::Server,
    table::{Figure, Target, head, line},
};
use crate::{cost, offline, view};

const CASES: usize = 10_000;
const FAST: usize = 20_000;
const LONG: usize = 100 << 10;
const LINES: usize = 100_000;
/// Runs of one store.
const RUNS: usize = 10_000;
/// Processes that are started for one figure: they take milliseconds.
const STARTS: usize = 15;

/// Measures everything, and prints a line as soon as it is known.
pub(crate) fn run(probity: &Path, repeats: usize, cases: usize) -> io::Result<()> {
    let probity = fs::canonicalize(probity)?;
    let fake_model = super::fake_model()?;
    println!("{}, median of {repeats} (least–most)\n", super::machine());
    head();
    let figures = Figures { probity, fake_model, repeats };
    figures.short_cases()?;
    figures.many_at_once()?;
    figures.long_texts()?;
    figures.starts()?;
    offline::rows(&figures.probity, LINES)?;
    figures.many_cases(cases)?;
    figures.many_runs()
}

struct Figures {
    probity: PathBuf,
    fake_model: PathBuf,
    repeats: usize,
}

impl Figures {
    fn server(&self, latency_ms: u64) -> io::Result<Server> {
        Server::start(&self.fake_model, latency_ms)
    }

    /// What a short case costs, with and without waiting, and what the cache adds.
    fn short_cases(&self) -> io::Result<()> {
        let slow = self.server(50)?;
        let ideal = float(CASES) / float(IN_FLIGHT) * 0.05;
        let [mut cpu, mut time, mut peak] = super::figures();
        for _ in 0..self.repeats {
            let ran = Project::new(CASES, &[("fake", &slow)])?.run(&self.probity, &[], CASES)?;
            cpu.push(cpu_ms(&ran, CASES));
            time.push(seconds(&ran) / ideal);
            peak.push(ran.peak_mib);
        }
        line("10,000 cases, 50 ms, 64 in flight: CPU ms a case", &Target::AtMost(0.1), 3, &cpu);
        line("the same: time / (cases / 64 × 50 ms)", &Target::AtMost(1.05), 3, &time);
        line("the same: peak memory, MiB", &Target::None, 0, &peak);
        let fast = self.server(0)?;
        let [mut cpu, mut rate, mut cache] = super::figures();
        for _ in 0..self.repeats {
            let ran = Project::new(FAST, &[("fake", &fast)])?.run(&self.probity, &[], FAST)?;
            let kept =
                Project::new(FAST, &[("fake", &fast)])?.run(&self.probity, &["--cache"], FAST)?;
            if let Ok(bare) = oha_with(&fast, FAST, IN_FLIGHT) {
                rate.push(seconds(&bare) / seconds(&ran));
            }
            cpu.push(cpu_ms(&ran, FAST));
            cache.push(cpu_ms(&kept, FAST) - cpu_ms(&ran, FAST));
        }
        line("20,000 cases, 0 ms: CPU ms a case", &Target::AtMost(0.05), 3, &cpu);
        line("the same: requests a second / those of oha", &Target::AtLeast(0.33), 2, &rate);
        line("`--cache`, empty: CPU ms a case more", &Target::AtMost(0.02), 3, &cache);
        Ok(())
    }

    /// Many calls in flight, and many runners.
    fn many_at_once(&self) -> io::Result<()> {
        let server = self.server(50)?;
        for (most, name) in [(1000, "1,000"), (4000, "4,000")] {
            let cases = CASES * 2;
            let [mut cpu, mut time] = super::figures();
            for _ in 0..self.repeats {
                let ran =
                    Project::in_flight(cases, most, &server)?.run(&self.probity, &[], cases)?;
                if let Ok(bare) = oha_with(&server, cases, most) {
                    time.push(seconds(&ran) / seconds(&bare));
                }
                cpu.push(cpu_ms(&ran, cases));
            }
            let what = format!("20,000 cases, 50 ms, {name} in flight: time / that of oha");
            line(&what, &Target::AtMost(1.25), 2, &time);
            line("the same: CPU ms a case", &Target::None, 3, &cpu);
        }
        let server = self.server(0)?;
        for (runners, name) in [(100, "100"), (1000, "1,000"), (3000, "3,000")] {
            let cases = runners * 10;
            let mut cpu = Figure::default();
            for _ in 0..self.repeats {
                let project = Project::runners(runners, 10, &server)?;
                cpu.push(cpu_ms(&project.run(&self.probity, &["--parallel"], cases)?, cases));
            }
            let what = format!("{name} runners of 10 cases, `--parallel`, 0 ms: CPU ms a case");
            line(&what, &Target::None, 3, &cpu);
        }
        Ok(())
    }

    /// Long prompts with long answers.
    fn long_texts(&self) -> io::Result<()> {
        let server = self.server(0)?;
        let [mut cpu, mut peak, mut disk, mut huge] = super::figures();
        for _ in 0..self.repeats {
            let project = Project::long(1000, LONG, &server)?;
            let ran = project.run(&self.probity, &[], 1000)?;
            cpu.push(cpu_ms(&ran, 1000));
            peak.push(ran.peak_mib);
            disk.push(project.stored_bytes()? / 1024.0);
            let ran = Project::long(200, 1 << 20, &server)?.run(&self.probity, &[], 200)?;
            huge.push(ran.peak_mib);
        }
        line("1,000 cases, 100 KiB in and out: CPU ms a case", &Target::AtMost(0.6), 2, &cpu);
        line("the same: peak memory, MiB", &Target::AtMost(100.0), 0, &peak);
        line("the same: KiB on disk a case", &Target::None, 0, &disk);
        line("200 cases, 1 MiB in and out: peak memory, MiB", &Target::AtMost(100.0), 0, &huge);
        Ok(())
    }

    /// One thing each: nothing but the start.
    fn starts(&self) -> io::Result<()> {
        let server = self.server(0)?;
        let mut figure = Figure::default();
        for _ in 0..STARTS {
            let ran = Project::new(1, &[("fake", &server)])?.run(&self.probity, &[], 1)?;
            figure.push(cpu_ms(&ran, 1));
        }
        line("run of one case: CPU ms", &Target::AtMost(5.0), 1, &figure);
        for (words, target) in [
            (["check", "command", "--", "ls -la | grep x"].as_slice(), Target::AtMost(2.5)),
            (&["check", "error", "--status", "429", "--text", "slow down"], Target::AtMost(2.0)),
            (&["check", "refusal", "--text", "I can't help with that."], Target::None),
            (&["--version"], Target::None),
        ] {
            let mut figure = Figure::default();
            for _ in 0..STARTS {
                figure.push(cpu_ms(&cost::of(&self.probity, Path::new("."), words)?, 1));
            }
            let name = words.iter().take(2).copied().collect::<Vec<_>>().join(" ");
            line(&format!("`{name}`: CPU ms"), &target, 1, &figure);
        }
        Ok(())
    }

    /// A long run, and what is done with it afterwards. Once: it takes long enough.
    fn many_cases(&self, cases: usize) -> io::Result<()> {
        let server = self.server(0)?;
        let project = Project::new(cases, &[("fake", &server)])?;
        let most = &Target::AtMost(60.0);
        let once = |value: f64| Figure::from_iter([value]);
        let ran = project.run(&self.probity, &[], cases)?;
        line(
            &format!("{cases} cases, 0 ms: CPU ms a case"),
            &Target::None,
            3,
            &once(cpu_ms(&ran, cases)),
        );
        line("the same: peak memory, MiB", &Target::None, 0, &once(ran.peak_mib));
        let ran = project.run(&self.probity, &["--resume"], 0)?;
        let cpu = once(ran.cpu.as_secs_f64());
        line("`run --resume` of it: CPU s", &Target::AtMost(5.0), 1, &cpu);
        line("the same: peak memory, MiB", most, 0, &once(ran.peak_mib));
        for words in [
            ["report", "-o", "report.json"].as_slice(),
            &["bless"],
            &["gate", "--baseline", "main"],
            &["compare", "latest", "latest"],
        ] {
            let ran = cost::of(&self.probity, project.path(), words)?;
            line(&format!("`{}`: peak memory, MiB", words.join(" ")), most, 0, &once(ran.peak_mib));
            line("the same: CPU s", &Target::None, 1, &once(ran.cpu.as_secs_f64()));
        }
        Ok(())
    }

    /// A store with many small runs.
    fn many_runs(&self) -> io::Result<()> {
        let server = self.server(0)?;
        let project = Project::new(20, &[("fake", &server)])?;
        project.run(&self.probity, &[], 20)?;
        let store = project.path().join(".probity/probity.db");
        view::copy(&store, RUNS).map_err(io::Error::other)?;
        for words in [["runs"].as_slice(), &["runs", "-n", "20"], &["trend"], &["show"]] {
            let mut figure = Figure::default();
            for _ in 0..self.repeats {
                figure.push(cpu_ms(&cost::of(&self.probity, project.path(), words)?, 1));
            }
            let what = format!("`{}` with 10,000 runs in the store: CPU ms", words.join(" "));
            line(&what, &Target::AtMost(50.0), 0, &figure);
        }
        Ok(())
    }
}
