//! Campaigns: attacks on the program, each a row of shots. A shot follows from the seed and its number, so that one line repeats
//! it: `probity-bench campaign kills --seed 1 --shot 17`.
//!
//! A campaign ends with one line that counts its findings by kind, and the exit code is 1 if there is one, or if this machine
//! has not what any of its shots needs.

mod disk;
mod findings;
mod inputs;
mod kills;
mod programs;
mod room;
mod sandbox;
mod scripts;
mod secrets;
mod server;

use std::{
    collections::BTreeMap,
    env, io,
    path::PathBuf,
    process::ExitCode,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use fastrand::Rng;

use room::Lab;

/// A row of shots.
pub(crate) struct Campaign {
    name: &'static str,
    about: &'static str,
    /// What its findings are called in the line at the end.
    kinds: &'static [&'static str],
    /// How many shots the short version has: each scene once at least.
    short: u64,
    /// How many it has unless told otherwise.
    long: u64,
    /// How many are made at once.
    threads: usize,
    shoot: fn(&Lab, &mut Shot) -> io::Result<()>,
}

const CAMPAIGNS: &[Campaign] = &[
    kills::CAMPAIGN,
    server::CAMPAIGN,
    disk::CAMPAIGN,
    inputs::CAMPAIGN,
    programs::CAMPAIGN,
    secrets::CAMPAIGN,
    sandbox::CAMPAIGN,
    findings::CAMPAIGN,
    scripts::WORKERS,
    scripts::PAGES,
];

/// One shot: what it is made of, and what it found.
pub(crate) struct Shot {
    number: u64,
    /// Drawn from seed and number.
    random: Rng,
    findings: Vec<(&'static str, String)>,
    skipped: Option<String>,
}

impl Shot {
    fn new(seed: u64, number: u64) -> Self {
        // Numbers that are close give draws that are not.
        let random = Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number);
        Self { number, random, findings: Vec::new(), skipped: None }
    }

    /// One of a list, in turn, so that a short row has each.
    fn in_turn<'a, T>(&self, list: &'a [T]) -> &'a T {
        let count = u64::try_from(list.len()).unwrap_or(1);
        &list[usize::try_from(self.number % count).unwrap_or(0)]
    }

    /// One of a list, by chance.
    fn choose<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.random.usize(..list.len())]
    }

    /// Says what was found; `kind` is one of its campaign's.
    fn find(&mut self, kind: &'static str, what: impl Into<String>) {
        self.findings.push((kind, what.into()));
    }

    /// Finds something unless it holds.
    fn expect(&mut self, holds: bool, kind: &'static str, what: impl FnOnce() -> String) {
        if !holds {
            self.find(kind, what());
        }
    }

    /// Says why it could not be made here.
    fn skip(&mut self, why: impl Into<String>) {
        self.skipped = Some(why.into());
    }
}

/// What the command line says.
struct Options {
    seed: u64,
    shots: Option<u64>,
    shot: Option<u64>,
    seconds: Option<u64>,
    threads: Option<usize>,
    short: bool,
}

/// Runs what the words after `campaign` name.
pub(crate) fn run(words: &[String]) -> ExitCode {
    match start(words) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            println!("failed: {error}");
            ExitCode::from(2)
        }
    }
}

fn start(words: &[String]) -> io::Result<u64> {
    let [name, rest @ ..] = words else {
        return Err(io::Error::other("which campaign? `probity-bench campaign list` names them"));
    };
    let options = Options::read(rest)?;
    if name == "list" {
        for campaign in CAMPAIGNS {
            println!("{:<10} {:>9} shots  {}", campaign.name, campaign.long, campaign.about);
        }
        return Ok(0);
    }
    let lab = Lab::open(options.seed, options.short)?;
    let chosen: Vec<&Campaign> =
        CAMPAIGNS.iter().filter(|it| name == "all" || it.name == name).collect();
    if chosen.is_empty() {
        return Err(io::Error::other(format!("there is no campaign `{name}`")));
    }
    let mut findings = 0;
    for campaign in chosen {
        // One that may bring the process down has one of its own.
        let apart = match campaign.name == inputs::CAMPAIGN.name {
            true => inputs::apart(&[&[campaign.name.to_owned()], rest].concat())?,
            false => None,
        };
        findings += match apart {
            Some(findings) => findings,
            None => campaign.run(&lab, &options),
        };
    }
    Ok(findings)
}

impl Options {
    fn read(words: &[String]) -> io::Result<Self> {
        let mut options =
            Self { seed: 1, shots: None, shot: None, seconds: None, threads: None, short: false };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if word == "--short" {
                options.short = true;
                continue;
            }
            let value = words.next().map(|it| it.replace(['_', ','], ""));
            let number = value.and_then(|it| it.parse::<u64>().ok());
            let number = number.ok_or_else(|| io::Error::other(format!("`{word}` needs a number")));
            match word.as_str() {
                "--seed" => options.seed = number?,
                "--shots" => options.shots = Some(number?),
                "--shot" => options.shot = Some(number?),
                "--seconds" => options.seconds = Some(number?),
                "--threads" => options.threads = usize::try_from(number?).ok(),
                _ => return Err(io::Error::other(format!("`{word}` is no option"))),
            }
        }
        Ok(options)
    }
}

/// What a campaign has come to.
#[derive(Default)]
struct Tally {
    shots: u64,
    found: BTreeMap<&'static str, u64>,
    skipped: BTreeMap<String, u64>,
}

impl Campaign {
    /// Makes its shots, tells what each finds, and sums up. The number of findings is returned.
    fn run(&self, lab: &Lab, options: &Options) -> u64 {
        let begun = Instant::now();
        let (first, count) = match (options.shot, options.shots) {
            (Some(shot), _) => (shot, 1),
            (None, Some(shots)) => (0, shots),
            (None, None) if options.short => (0, self.short),
            // As long as the time lasts.
            (None, None) if options.seconds.is_some() => (0, u64::MAX),
            (None, None) => (0, self.long),
        };
        let until = options.seconds.map(|it| begun + Duration::from_secs(it));
        let (next, tally) = (AtomicU64::new(first), Mutex::new(Tally::default()));
        let work = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number - first >= count || until.is_some_and(|it| Instant::now() >= it) {
                    break;
                }
                let mut shot = Shot::new(options.seed, number);
                if let Err(error) = (self.shoot)(lab, &mut shot) {
                    shot.find(NOT_MADE, error.to_string());
                }
                tally.lock().unwrap_or_else(PoisonError::into_inner).add(self, options.seed, shot);
            }
        };
        thread::scope(|scope| {
            for _ in 0..options.threads.unwrap_or(self.threads).max(1) {
                scope.spawn(work);
            }
        });
        let tally = tally.into_inner().unwrap_or_else(PoisonError::into_inner);
        println!("{}", self.summary(&tally, options.seed, begun.elapsed()));
        let skipped: u64 = tally.skipped.values().sum();
        // The short version is for any machine; who starts the long one wants to know.
        let tried_nothing = skipped == tally.shots && !options.short;
        if tried_nothing {
            println!("  nothing could be tried, which counts as a failure of a long campaign");
        }
        tally.found.values().sum::<u64>() + u64::from(tried_nothing)
    }

    /// `kills: 2000 shots, 0 lost, 0 counted twice, 0 differing, seed 1, 312 s`
    fn summary(&self, tally: &Tally, seed: u64, took: Duration) -> String {
        let mut parts = vec![format!("{} shots", tally.shots)];
        let others = tally.found.keys().filter(|it| !self.kinds.contains(it));
        for kind in self.kinds.iter().chain(others) {
            parts.push(format!("{} {kind}", tally.found.get(kind).unwrap_or(&0)));
        }
        for (why, count) in &tally.skipped {
            parts.push(format!("{count} SKIPPED ({why})"));
        }
        format!("{}: {}, seed {seed}, {} s", self.name, parts.join(", "), took.as_secs())
    }
}

/// What a shot finds that could not be made at all.
const NOT_MADE: &str = "not made";

impl Tally {
    fn add(&mut self, campaign: &Campaign, seed: u64, shot: Shot) {
        self.shots += 1;
        let Shot { number, random: _, findings, skipped } = shot;
        if let Some(why) = skipped {
            *self.skipped.entry(why).or_default() += 1;
        }
        for (kind, what) in findings {
            *self.found.entry(kind).or_default() += 1;
            let name = campaign.name;
            println!("{name}: {kind}: {what}");
            println!("  repeat: probity-bench campaign {name} --seed {seed} --shot {number}");
        }
    }
}

/// The program that is shot at: what `PROBITY` names, else what lies beside this one.
fn program() -> io::Result<PathBuf> {
    let path = match env::var_os("PROBITY") {
        Some(path) => PathBuf::from(path),
        None => env::current_exe()?.with_file_name("probity"),
    };
    let found = path.canonicalize();
    found.map_err(|error| io::Error::other(format!("`{}` is not there: {error}", path.display())))
}
