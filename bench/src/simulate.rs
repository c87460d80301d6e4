//! Whole runs in time that is simulated: the loop, the recorder and `--resume` as they are, in a world that a seed makes.
//!
//! A world has servers that fail in every way, disks that are full, people who stop the run, and kills at any moment. Each
//! is run once without what befalls the process, and once with it, again and again, until the run is over. What must be
//! true then stands in `check`.

mod check;
mod disk;
mod server;
mod session;
mod shown;
mod stream;
#[cfg(test)]
mod tests;
mod world;

use std::{
    fs, io,
    path::Path,
    sync::{
        Arc, LazyLock, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use check::{Found, Past};
use disk::{Files, STORE};
use fastrand::Rng;
use probity::simulated::Prepared;
use probity_grade::Rules;
use probity_store::Reader;
use server::{Defect, Outside};
use session::{Disturbance, End, Ended};
use world::World;

const USAGE: &str = "usage: probity-bench simulate [--seeds N] [--seed S] [--seconds T]";

static RULES: LazyLock<Rules> = LazyLock::new(Rules::default);

/// What is simulated.
#[derive(Clone, Copy, Debug)]
struct Campaign {
    first: u64,
    seeds: u64,
    limit: Option<Duration>,
    /// Whether each process is told of.
    is_told: bool,
    /// What is wrong with all worlds.
    defect: Option<Defect>,
}

/// What was simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sums {
    worlds: u64,
    calm: u64,
    processes: u64,
    kills: u64,
    power_cuts: u64,
    stops: u64,
    failures: u64,
    calls: u64,
    results: u64,
    moments: u64,
    seconds: u64,
}

impl Sums {
    fn add(&mut self, other: Self) {
        let Self {
            worlds,
            calm,
            processes,
            kills,
            power_cuts,
            stops,
            failures,
            calls,
            results,
            moments,
            seconds,
        } = other;
        self.worlds += worlds;
        self.calm += calm;
        self.processes += processes;
        self.kills += kills;
        self.power_cuts += power_cuts;
        self.stops += stops;
        self.failures += failures;
        self.calls += calls;
        self.results += results;
        self.moments += moments;
        self.seconds += seconds;
    }

    /// All of it in one line.
    fn line(&self, first: u64, took: Duration) -> String {
        format!(
            "simulation: {} seeds from {first} ({} calm), {} processes with {} kills, {} power cuts, {} stops and {} \
             failed disks; {} calls, {} results, {} moments, {} h simulated in {:.0} s",
            self.worlds,
            self.calm,
            self.processes,
            self.kills,
            self.power_cuts,
            self.stops,
            self.failures,
            self.calls,
            self.results,
            self.moments,
            self.seconds / 3600,
            took.as_secs_f64()
        )
    }
}

pub(crate) fn run(words: &[String]) -> io::Result<()> {
    let campaign = parse(words)?;
    let begun = Instant::now();
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let (sums, wrong) = simulate(campaign, threads)?;
    for (seed, why) in &wrong {
        println!("{}", told(*seed, why));
    }
    println!("{}; {} wrong", sums.line(campaign.first, begun.elapsed()), wrong.len());
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(io::Error::other("a simulated run is not what it must be")),
    }
}

/// The line that a seed comes to which is not as it must be.
fn told(seed: u64, why: &str) -> String {
    let why = why.replace('\n', " ");
    format!(
        "seed {seed}: {why}; again: cargo run --release -p probity-bench -- simulate --seed {seed}"
    )
}

fn parse(words: &[String]) -> io::Result<Campaign> {
    let refused = || io::Error::other(USAGE);
    let number = |word: Option<&String>| -> io::Result<u64> {
        word.and_then(|it| it.replace(['_', ','], "").parse().ok()).ok_or_else(refused)
    };
    let (mut first, mut seeds, mut limit) = (None, None, None);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--seed" => first = Some(number(words.next())?),
            "--seeds" => seeds = Some(number(words.next())?),
            "--seconds" => limit = Some(Duration::from_secs(number(words.next())?)),
            _ => return Err(refused()),
        }
    }
    // One seed that is named is told of; several begin with it.
    let is_told = first.is_some() && seeds.is_none();
    let usual = if is_told { 1 } else { 2000 };
    Ok(Campaign {
        first: first.unwrap_or(1),
        seeds: seeds.unwrap_or(usual),
        limit,
        is_told,
        defect: None,
    })
}

/// Simulates worlds on several threads. What is wrong comes by seed, the first few of them.
fn simulate(campaign: Campaign, threads: usize) -> io::Result<(Sums, Vec<(u64, String)>)> {
    const MOST_WRONG: usize = 20;
    let Campaign { first, seeds, limit, is_told, defect } = campaign;
    let begun = Instant::now();
    let empty = empty_store()?;
    let next = AtomicU64::new(0);
    let (sums, wrong) = (Mutex::new(Sums::default()), Mutex::new(Vec::new()));
    let work = || -> io::Result<()> {
        let folder = disk::folder()?;
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let is_late = limit.is_some_and(|limit| begun.elapsed() >= limit);
            if at >= seeds || is_late || lock(&wrong).len() >= MOST_WRONG {
                return Ok(());
            }
            let seed = first + at;
            let place = Ground { folder: folder.path(), empty: &empty, is_told, defect };
            match place.run(seed) {
                Ok(own) => lock(&sums).add(own),
                Err(why) => lock(&wrong).push((seed, why)),
            }
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|it| {
            it.join().unwrap_or_else(|_| Err(io::Error::other("a simulation panicked")))
        })
    })?;
    let mut wrong = wrong.into_inner().unwrap_or_else(PoisonError::into_inner);
    wrong.sort();
    Ok((sums.into_inner().unwrap_or_else(PoisonError::into_inner), wrong))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A store without runs, as each world begins with one.
fn empty_store() -> io::Result<Files> {
    let folder = disk::folder()?;
    let store = folder.path().join(STORE);
    fs::write(&store, "")?;
    drop(Reader::open(&store).map_err(io::Error::other)?);
    Files::of(folder.path())
}

/// Where a world is simulated.
struct Ground<'a> {
    folder: &'a Path,
    empty: &'a Files,
    is_told: bool,
    defect: Option<Defect>,
}

/// What became of a run.
struct Lived {
    found: Found,
    ended: Box<Ended>,
    moments: u64,
    sums: Sums,
}

impl Ground<'_> {
    /// One world, without disturbances and with them.
    fn run(&self, seed: u64) -> Result<Sums, String> {
        let world = World::draw(seed);
        if self.is_told {
            println!("{}\noptions: {}", world.suite, world.options.join(" "));
        }
        let written = world
            .datasets
            .iter()
            .try_for_each(|(name, text)| fs::write(self.folder.join(name), text));
        written.map_err(|it| it.to_string())?;
        let prepared = Prepared::load(&world.suite, self.folder, &RULES, &world.options)?;
        let rng = &mut Rng::with_seed(seed ^ 0x5eed_0002);
        let undisturbed = self.live(&prepared, &world, &mut |_| None)?;
        let mut left = rng.usize(1..=4);
        let moments = undisturbed.moments;
        let disturbed = self.live(&prepared, &world, &mut |_| {
            left = left.checked_sub(1)?;
            Some(Disturbance::draw(moments, rng))
        })?;
        check::same(
            &world,
            (&undisturbed.found, &undisturbed.ended),
            (&disturbed.found, &disturbed.ended),
        )?;
        let mut sums = undisturbed.sums;
        sums.add(disturbed.sums);
        Ok(Sums { worlds: 1, calm: u64::from(world.is_calm), ..sums })
    }

    /// One run from its beginning to its end, in as many processes as that takes.
    fn live(
        &self,
        prepared: &Prepared,
        world: &World,
        disturb: &mut dyn FnMut(u64) -> Option<Disturbance>,
    ) -> Result<Lived, String> {
        let shown = |error: io::Error| error.to_string();
        self.empty.restore(self.folder).map_err(shown)?;
        let outside = Arc::new(Outside::new(world.clone(), self.defect));
        let (mut past, mut sums) = (Past::default(), Sums::default());
        let mut run_id: Option<String> = None;
        let mut first_moments = None;
        loop {
            let disturbance = disturb(sums.processes);
            let is_last = disturbance.is_none();
            let disturbance = disturbance.unwrap_or_default();
            sums.processes += 1;
            sums.stops += u64::from(disturbance.stopped_at.is_some());
            let place = (self.folder, disturbance.clone());
            let session = session::run((prepared, &RULES), &outside, place, run_id.as_deref())?;
            if self.is_told {
                let (number, moments) = (sums.processes, session.moments);
                println!(
                    "process {number}: {disturbance}\n  after {moments} moments {}",
                    session.end
                );
            }
            sums.moments += session.moments;
            first_moments.get_or_insert(session.moments);
            match &session.end {
                End::Died => {
                    past.cut_off += 1;
                    past.power_cuts += u64::from(disturbance.loses_power);
                    sums.kills += 1;
                    sums.power_cuts += u64::from(disturbance.loses_power);
                }
                End::Failed(_) => {
                    past.cut_off += 1;
                    sums.failures += 1;
                }
                End::Ended(_) => {}
            }
            let found = self.look()?;
            check::always(world, &mut outside.known(), &found, past)?;
            run_id.clone_from(&found.run_id);
            let ended = match session.end {
                End::Ended(ended) => ended,
                End::Died | End::Failed(_) if is_last => {
                    return Err(format!("nothing befell it, and yet {}", session.end));
                }
                End::Died | End::Failed(_) => continue,
            };
            check::ended(world, &outside.known(), &found, (&ended, past))?;
            if is_last {
                let known = outside.known();
                sums.calls = known.calls.values().sum();
                sums.results = found.results.len() as u64;
                sums.seconds = known.before.as_secs();
                let moments = first_moments.unwrap_or(0);
                return Ok(Lived { found, ended, moments, sums });
            }
        }
    }

    /// What a store says, read from a copy: whoever opens it would mend what a kill left.
    fn look(&self) -> Result<Found, String> {
        let shown = |error: io::Error| error.to_string();
        let aside = self.folder.join("aside");
        fs::create_dir_all(&aside).map_err(shown)?;
        Files::of(self.folder).and_then(|it| it.restore(&aside)).map_err(shown)?;
        Found::read(&aside.join(STORE))
    }
}
