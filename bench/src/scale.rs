//! A thousand workers and ten million cases: the loop as it is, in time that is simulated.
//!
//! What the loop costs is what the simulation costs with it, less what the model of the fleet costs alone.

mod fleet;

use std::{
    fs, io,
    path::Path,
    sync::Arc,
    time::{Duration, Instant as WallInstant},
};

use fleet::{Disaster, Fleet, Seen, Spec};
use nix::time::{ClockId, clock_gettime};
use probity_core::{
    case::TestCase,
    classification::Verdict,
    criteria::{Criteria, Matcher},
    event::{Event, Stamped},
    record::{LaneStatus, RunInfo},
};
use probity_grade::Rules;
use probity_load::settings::{Resolved, Retry, Settings};
use probity_run::{
    backend::{About, Ask},
    engine, events,
    simulated::{self, Asked, Made, Model as _},
};
use probity_store::{NewRun, Recorder};
use tokio::{
    runtime::Builder,
    sync::watch,
    task::JoinSet,
    time::{Instant, sleep},
};

const USAGE: &str = "usage: probity-bench scale [CASES] [--workers N] [--seed N] [--record]";

/// What is simulated.
#[derive(Clone, Copy, Debug)]
struct Scale {
    cases: u64,
    spec: Spec,
    /// Calls that the loop hands out at once.
    in_flight: u64,
    /// Whether events are recorded in a store.
    is_recorded: bool,
}

impl Scale {
    /// A fleet with faults, in a run long enough to see them.
    fn new(cases: u64, workers: usize, seed: u64) -> Self {
        let mut spec = Spec {
            seed,
            workers,
            places: 4,
            median: Duration::from_millis(1500),
            sigma: 0.6,
            network: (Duration::from_micros(500), Duration::from_millis(2)),
            ack_wait: Duration::from_secs(30),
            max_deliver: 5,
            mtbf: Duration::from_hours(4),
            restart: Duration::from_mins(1),
            lost: 0.001,
            twice: 0.001,
            disaster: None,
            outage: None,
        };
        let places = u64::try_from(workers * spec.places).unwrap_or(u64::MAX);
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53 cases")]
        let whole = spec.mean().mul_f64(cases as f64 / places as f64);
        let lasts = (whole / 20).clamp(Duration::from_secs(5), Duration::from_mins(2));
        spec.disaster = Some(Disaster { at: whole.mul_f64(0.4), share: 0.3, lasts });
        spec.outage = Some((whole.mul_f64(0.7), lasts / 2));
        // Half as many again as there are places, so that no worker waits for the loop.
        Self { cases, spec, in_flight: places + places / 2, is_recorded: false }
    }
}

/// What a simulation came to.
#[derive(Clone, Debug)]
struct Outcome {
    passed: u64,
    failed: u64,
    errors: u64,
    is_complete: bool,
    /// The sum of all that came to an end: which case and when. It depends on neither machine nor speed.
    digest: u64,
    simulated: Duration,
    cpu: Duration,
    wall: Duration,
    seen: Seen,
    /// Answers a second, before and in the first half minute of the disaster.
    rates: Option<(f64, f64)>,
    /// Memory after each tenth of the cases, in MiB.
    memory: Vec<u64>,
}

pub(crate) fn run(words: &[String]) -> io::Result<()> {
    let scale = parse(words)?;
    let Scale { cases, spec, in_flight, is_recorded } = scale;
    println!(
        "{cases} cases, {} workers with {} places each, {in_flight} calls handed out at once, seed {}",
        spec.workers, spec.places, spec.seed
    );
    let whole = simulate(scale)?;
    report(&scale, &whole);
    if !is_recorded {
        // A tenth is enough to know what the model costs a case.
        let model = model_alone(Scale { cases: (cases / 10).max(1), ..scale })?;
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53 cases")]
        let micros = |cpu: Duration, cases: u64| cpu.as_secs_f64() * 1e6 / cases.max(1) as f64;
        let (all, model) = (micros(whole.cpu, cases), micros(model, (cases / 10).max(1)));
        println!(
            "CPU time of a case: {all:.1} us with the loop, {model:.1} us of the model alone, {:.1} us of the loop",
            all - model
        );
    }
    Ok(())
}

fn parse(words: &[String]) -> io::Result<Scale> {
    let refused = || io::Error::other(USAGE);
    let number = |word: Option<&String>| -> io::Result<u64> {
        word.and_then(|it| it.replace(['_', ','], "").parse().ok()).ok_or_else(refused)
    };
    let (mut cases, mut workers, mut seed, mut is_recorded) = (10_000_000, 1000, 42, false);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--workers" => workers = number(words.next())?,
            "--seed" => seed = number(words.next())?,
            "--record" => is_recorded = true,
            _ => cases = number(Some(word))?,
        }
    }
    let workers = usize::try_from(workers).map_err(io::Error::other)?;
    if workers == 0 || cases == 0 {
        return Err(refused());
    }
    Ok(Scale { is_recorded, ..Scale::new(cases, workers, seed) })
}

fn report(scale: &Scale, outcome: &Outcome) {
    let Outcome {
        passed,
        failed,
        errors,
        is_complete,
        digest,
        simulated,
        cpu,
        wall,
        seen,
        rates,
        memory,
    } = outcome;
    println!(
        "results: {passed} passed, {failed} failed, {errors} errors; complete: {is_complete}; digest {digest:016x}"
    );
    let places = scale.spec.workers * scale.spec.places;
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53 cases")]
    let ideal = scale.spec.mean().as_secs_f64() * scale.cases as f64 / places as f64;
    println!(
        "time: {:.0} s simulated, {:.2} times the {ideal:.0} s of workers that never rest or die; {:.0} s of CPU, {:.0} s on the wall",
        simulated.as_secs_f64(),
        simulated.as_secs_f64() / ideal,
        cpu.as_secs_f64(),
        wall.as_secs_f64()
    );
    println!("memory after each tenth: {memory:?} MiB; peak {} MiB", peak_mib());
    println!(
        "queue: {} calls at most, {:.0} ms of waiting at the median, {:.0} ms at 99 %",
        seen.deepest,
        seen.waits.quantile(0.5).as_secs_f64() * 1e3,
        seen.waits.quantile(0.99).as_secs_f64() * 1e3
    );
    println!(
        "faults: {} deaths, {} deliveries again, {} given up, {} results sent again, {} worked on twice",
        seen.deaths, seen.redelivered, seen.given_up, seen.sent_again, seen.doubled
    );
    if let (Some(disaster), Some(done)) = (scale.spec.disaster, seen.orphans_done) {
        println!(
            "{:.0} % of the workers lost at once for {:.0} s: {} calls lost, the last of them answered {:.0} s later",
            disaster.share * 100.0,
            disaster.lasts.as_secs_f64(),
            seen.orphans,
            done.saturating_sub(disaster.at).as_secs_f64()
        );
    }
    if let Some((before, within)) = rates {
        println!("answers a second: {before:.0} before, {within:.0} while they are gone");
    }
}

/// Runs the loop on a modelled fleet.
fn simulate(scale: Scale) -> io::Result<Outcome> {
    let (wall, cpu) = (WallInstant::now(), cpu_time());
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build()?;
    let mut outcome = runtime.block_on(loop_with(scale))?;
    outcome.cpu = cpu_time().saturating_sub(cpu);
    outcome.wall = wall.elapsed();
    Ok(outcome)
}

async fn loop_with(scale: Scale) -> io::Result<Outcome> {
    let begun = Instant::now();
    let fleet = Fleet::start(scale.spec);
    let asked = Asked {
        model: fleet.clone(),
        max_concurrency: scale.in_flight,
        timeout: Duration::from_hours(1),
    };
    let rules: &'static Rules = Box::leak(Box::default());
    let plan = simulated::plan(asked, made(scale.cases), settings(scale), rules);
    let (sender, receiver) = events::channel(1024, 64 << 20);
    let (_stop, stopped) = watch::channel(false);
    let folder = tempfile::tempdir()?;
    let collector = tokio::spawn(collect(receiver, Collected::new(scale, folder.path())?));
    let rates = tokio::spawn(watch_rates(fleet.clone(), scale.spec));
    let ran = engine::run(plan, rules, sender, stopped).await.map_err(io::Error::other)?;
    let simulated = begun.elapsed();
    let collected = collector.await.map_err(io::Error::other)??;
    rates.abort();
    let rates = rates.await.ok().flatten();
    Ok(Outcome {
        passed: collected.passed,
        failed: collected.failed,
        errors: collected.errors,
        is_complete: ran.lanes.iter().all(LaneStatus::is_complete),
        digest: collected.digest,
        simulated,
        cpu: Duration::ZERO,
        wall: Duration::ZERO,
        seen: fleet.seen(),
        rates,
        memory: collected.memory,
    })
}

/// Answers a second in the half minute before the disaster, and in the first half minute of it.
async fn watch_rates(fleet: Arc<Fleet>, spec: Spec) -> Option<(f64, f64)> {
    let disaster = spec.disaster?;
    let span = disaster.lasts.min(disaster.at).min(Duration::from_secs(30));
    let rate = |from: u64, to: u64| {
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53 calls")]
        let answers = to.saturating_sub(from) as f64;
        answers / span.as_secs_f64()
    };
    sleep(disaster.at.saturating_sub(span)).await;
    let before = fleet.seen().answered;
    sleep(span).await;
    let at = fleet.seen().answered;
    sleep(span).await;
    Some((rate(before, at), rate(at, fleet.seen().answered)))
}

/// What comes out of the loop.
struct Collected {
    begun: Instant,
    recorder: Option<Recorder>,
    every: u64,
    passed: u64,
    failed: u64,
    errors: u64,
    digest: u64,
    memory: Vec<u64>,
}

impl Collected {
    fn new(scale: Scale, folder: &Path) -> io::Result<Self> {
        let run = NewRun {
            run_id: "simulated".to_owned(),
            suite: "simulated".to_owned(),
            started_ms: 0,
            info: RunInfo::default(),
        };
        let create = || Recorder::create(&folder.join("s.db"), &run, []).map_err(io::Error::other);
        Ok(Self {
            begun: Instant::now(),
            recorder: scale.is_recorded.then(create).transpose()?,
            every: (scale.cases / 10).max(1),
            passed: 0,
            failed: 0,
            errors: 0,
            digest: 0,
            memory: Vec::new(),
        })
    }

    fn count(&mut self, event: &Event) {
        let Event::CaseFinished { record, .. } = event else { return };
        match record.verdict {
            Verdict::Pass => self.passed += 1,
            Verdict::Fail => self.failed += 1,
            Verdict::Error | Verdict::Undecided => self.errors += 1,
        }
        let mut mixed = u64::try_from(self.begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        for byte in record.case_id.bytes() {
            mixed = (mixed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        self.digest = self.digest.wrapping_add(mixed);
        if (self.passed + self.failed + self.errors).is_multiple_of(self.every) {
            self.memory.push(resident_mib());
        }
    }
}

async fn collect(
    mut receiver: events::Receiver,
    mut collected: Collected,
) -> io::Result<Collected> {
    /// What the recorder of a run takes at once, at most.
    const BATCH: usize = 256;
    let mut batch: Vec<Stamped> = Vec::with_capacity(BATCH);
    while let Some(stamped) = receiver.recv().await {
        collected.count(&stamped.event);
        if collected.recorder.is_some() {
            batch.push(stamped);
            if batch.len() == BATCH {
                record(&mut collected, &mut batch)?;
            }
        }
    }
    record(&mut collected, &mut batch)?;
    Ok(collected)
}

fn record(collected: &mut Collected, batch: &mut Vec<Stamped>) -> io::Result<()> {
    if let Some(recorder) = &mut collected.recorder {
        recorder.record(batch).map_err(io::Error::other)?;
    }
    batch.clear();
    Ok(())
}

/// What the model costs when cases are made and asked, and nothing else is done.
fn model_alone(scale: Scale) -> io::Result<Duration> {
    let before = cpu_time();
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build()?;
    runtime.block_on(async {
        let fleet = Fleet::start(scale.spec);
        let made = made(scale.cases);
        let mut tasks = JoinSet::new();
        for at in 0..scale.cases {
            if u64::try_from(tasks.len()).unwrap_or(u64::MAX) >= scale.in_flight {
                tasks.join_next().await;
            }
            let (fleet, case) = (fleet.clone(), Arc::new((made.case)(at)));
            tasks.spawn(async move {
                let about = About::new(case);
                let request = probity_core::request::Request::new(None, about.case.prompt.clone());
                let ask = Ask { request: &request, repeat: 0, about: Some(&about) };
                fleet.ask(&ask).await.is_ok()
            });
        }
        while tasks.join_next().await.is_some() {}
    });
    Ok(cpu_time().saturating_sub(before))
}

/// Cases of the length that prompts have; one in ten has another answer than the one it gets.
fn made(count: u64) -> Made {
    let case = |at: u64| TestCase {
        id: format!("case-{at}"),
        prompt: format!(
            "What is the last digit of {at}? {}",
            "Some words as prompts have them. ".repeat(8)
        )
        .into(),
        criteria: Criteria {
            expected_response: Some(
                format!("is {}.", if at % 10 == 3 { 4 } else { at % 10 }).into(),
            ),
            matcher: Some(Matcher::Contains),
            ..Criteria::default()
        },
        ..TestCase::default()
    };
    Made { count, case: Arc::new(case) }
}

fn settings(scale: Scale) -> Settings {
    let settings = Resolved::of([]).settings();
    // Waits are random, and not by our seed.
    let retry = Retry { backoff_jitter: 0.0, ..settings.retry };
    Settings { retry, max_concurrency: scale.in_flight, ..settings }
}

fn cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

fn resident_mib() -> u64 {
    status_mib("VmRSS:")
}

fn peak_mib() -> u64 {
    status_mib("VmHWM:")
}

fn status_mib(key: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status
        .lines()
        .find_map(|it| it.strip_prefix(key)?.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small(seed: u64) -> Outcome {
        simulate(Scale::new(4000, 20, seed)).expect("a simulation")
    }

    #[test]
    fn the_same_seed_gives_the_same_history() {
        let (first, again, other) = (small(1), small(1), small(2));
        assert_eq!((first.digest, first.simulated), (again.digest, again.simulated));
        assert_ne!(first.digest, other.digest);
    }

    #[test]
    fn nothing_is_lost_and_nothing_counted_twice() {
        let outcome = small(3);
        assert!(outcome.is_complete);
        assert_eq!((outcome.passed, outcome.failed, outcome.errors), (3600, 400, 0));
        let Seen { deaths, redelivered, orphans, orphans_left, doubled, .. } = outcome.seen;
        assert!(deaths > 0 && redelivered >= orphans && orphans > 0 && doubled > 0);
        assert_eq!(orphans_left, 0);
    }

    #[test]
    fn events_can_be_recorded_while_time_stands_still() {
        let scale = Scale { is_recorded: true, ..Scale::new(500, 5, 1) };
        let outcome = simulate(scale).expect("a simulation");
        assert_eq!(outcome.passed + outcome.failed, 500);
    }
}
