//! A world that a seed makes: a suite, its cases, what servers answer and when they fail.

use std::{fmt::Write as _, time::Duration};

use fastrand::Rng;
use probity_core::record::InputDigest;

/// Everything that does not depend on when it is asked.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is drawn on its own")]
pub(crate) struct World {
    pub(crate) seed: u64,
    pub(crate) suite: String,
    /// The datasets, by the name of their file.
    pub(crate) datasets: Vec<(String, String)>,
    /// Options of `probity run`.
    pub(crate) options: Vec<String>,
    pub(crate) runners: Vec<Runner>,
    /// Backends, and the calls that each may have in flight.
    pub(crate) backends: Vec<(String, u64)>,
    pub(crate) max_concurrency: u64,
    pub(crate) max_calls: Option<u64>,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) max_retries: usize,
    pub(crate) max_error_rate: f64,
    pub(crate) has_cache: bool,
    pub(crate) is_decided_early: bool,
    /// Whether every answer depends on its question alone, so that no disturbance changes what the run comes to.
    pub(crate) is_calm: bool,
    /// Percent of calls that fail before one succeeds, and of cases that end in an error whatever is done.
    faults: u32,
    errors: u32,
    /// Servers that give no answers for a while: which, from when and for how long.
    pub(crate) outages: Vec<(usize, Duration, Duration)>,
    /// Whether some ask to be left alone for longer than anybody waits.
    has_long_pauses: bool,
    /// The longest that a call takes, unless it hangs.
    slowest_ms: u64,
    /// Events that may wait to be written.
    pub(crate) room: usize,
}

/// A runner of the suite.
#[derive(Clone, Debug)]
pub(crate) struct Runner {
    pub(crate) name: String,
    pub(crate) variants: Vec<String>,
    /// By their places.
    pub(crate) backends: Vec<usize>,
    pub(crate) cases: usize,
    pub(crate) repeat: u32,
    pub(crate) judging: Judging,
    /// The pass rate that is asked for, in percent.
    pub(crate) gate: Option<u32>,
    pub(crate) max_calls: Option<u64>,
}

/// How the answers of a runner are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judging {
    /// By what they contain.
    Text,
    /// By a judge as well.
    Rubric,
    /// By a judge who picks the best.
    Best,
}

/// What a case comes to on a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Truth {
    Right,
    Wrong,
    Refused,
    /// A filter of the service blocks it.
    Blocked,
    Error(Fault),
}

/// What a server does instead of answering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Too many requests, without a word about when to come back.
    Limit,
    /// The same, with a time in seconds, in milliseconds, as a date or in a sentence.
    LimitSeconds(u64),
    LimitMillis(u64),
    LimitDate(u64),
    LimitSentence(u64),
    Broken,
    BadGateway,
    Overloaded,
    Hangs,
    Refused,
    Reset,
    /// The answer breaks off.
    Cut,
    /// The answer is no JSON.
    Garbage,
    Nothing,
    /// The answer has no text.
    Silence,
    BadGzip,
    /// There are no file descriptors, so that nobody is asked.
    NoFiles,
    // What no retry mends.
    Key,
    BadRequest,
    NotFound,
}

impl World {
    pub(crate) fn draw(seed: u64) -> Self {
        let rng = &mut Rng::with_seed(seed ^ 0x5eed_0001);
        let is_calm = chance(rng, 60);
        let stormy = |rng: &mut Rng, percent| !is_calm && chance(rng, percent);
        let count = [1, 1, 2, 2, 3][rng.usize(..5)];
        let backends: Vec<(String, u64)> =
            (0..count).map(|at| (format!("b{at}"), rng.u64(1..=6))).collect();
        let errors = if chance(rng, 40) { rng.u32(1..40) } else { 0 };
        let runners: Vec<Runner> = (0..[1, 1, 1, 2, 2, 3][rng.usize(..6)])
            .map(|at| runner(at, count, is_calm, rng))
            .collect();
        let max_retries = rng.usize(..4);
        let planned: u64 = runners.iter().map(Runner::planned).sum();
        // What is decided early is judged by text alone, as all of a judge's answers would have to come first.
        let is_decided_early = chance(rng, 15)
            && runners.iter().any(|it| it.gate.is_some())
            && runners.iter().all(|it| it.judging == Judging::Text);
        // Which of them are asked before that is a matter of time.
        let errors = if is_decided_early { 0 } else { errors };
        let mut world = Self {
            seed,
            suite: String::new(),
            datasets: Vec::new(),
            options: Vec::new(),
            max_concurrency: rng.u64(1..=8),
            max_calls: stormy(rng, 40).then(|| rng.u64(1..=planned * 2)),
            max_tokens: stormy(rng, 15).then(|| rng.u64(1..=planned * 40)),
            max_retries,
            max_error_rate: if chance(rng, 50) { 0.1 } else { 1.0 },
            has_cache: chance(rng, 20),
            is_decided_early,
            is_calm,
            faults: if chance(rng, 70) { rng.u32(1..50) } else { 0 },
            errors,
            outages: Vec::new(),
            has_long_pauses: stormy(rng, 20),
            slowest_ms: [1, 30, 500, 5000][rng.usize(..4)],
            room: [1, 4, 64, 4096][rng.usize(..4)],
            runners,
            backends,
        };
        if stormy(rng, 30) {
            let (from, length) = (rng.u64(..20_000), rng.u64(..60_000));
            let at = rng.usize(..count);
            world.outages.push((at, Duration::from_millis(from), Duration::from_millis(length)));
        }
        world.write_suite(rng);
        world
    }

    fn write_suite(&mut self, rng: &mut Rng) {
        let Self { is_calm, .. } = *self;
        let mut suite = String::from("version = \"1\"\n");
        let mut line = |text: String| suite.extend([text.as_str(), "\n"]);
        line(format!("max_concurrency = {}", self.max_concurrency));
        line(format!("max_error_rate = {:?}", self.max_error_rate));
        if chance(rng, 40) {
            line("parallel = true".to_owned());
        }
        line(format!("[cache]\nenabled = {}\ngenerations = false", self.has_cache));
        let base = [0.0, 0.05, 1.0][rng.usize(..3)];
        line(format!(
            "[retry]\nmax_retries = {}\nbackoff_base = {base:?}\nbackoff_jitter = 0.5",
            self.max_retries
        ));
        let case_limit = match is_calm || chance(rng, 60) {
            true => 360_000,
            false => rng.u64(1..90),
        };
        line(format!("[timeouts]\nattempt = \"20s\"\ncase = \"{case_limit}s\""));
        if let Some(most) = self.max_calls {
            line(format!("[budget]\nmax_calls = {most}"));
        } else if let Some(most) = self.max_tokens {
            line(format!("[budget]\nmax_tokens = {most}"));
        }
        // Cases that fail whatever is done must not end a run whose end is to be known.
        let gives_up = self.errors == 0 || !is_calm && chance(rng, 70);
        let threshold = rng.u64(1..=4);
        line(format!("[fail_fast]\nenabled = {gives_up}\nthreshold = {threshold}"));
        for (name, most) in &self.backends {
            line(format!(
                "[backends.{name}]\nkind = \"openai\"\nbase_url = \"http://{name}.test/v1\"\n\
                 model = \"m\"\nmax_concurrency = {most}"
            ));
        }
        for runner in &self.runners {
            let Runner { name, variants, backends, repeat, judging, gate, max_calls, .. } = runner;
            let names: Vec<String> = backends.iter().map(|at| format!("\"b{at}\"")).collect();
            line(format!(
                "[[runners]]\nname = \"{name}\"\nkind = \"respond\"\ndataset = \"{name}.jsonl\"\n\
                 backends = [{}]\nrepeat = {repeat}",
                names.join(", ")
            ));
            if *judging != Judging::Text {
                // One of those who answer may be the judge of others.
                line(format!("judge = \"b{}\"", rng.usize(..self.backends.len())));
            }
            if !is_calm && chance(rng, 15) {
                line(format!("timeout = \"{}s\"", rng.u64(1..60)));
            }
            match gate {
                Some(percent) => line(format!("gates = {{ pass_rate = \"{percent}%\" }}")),
                None => line("gates = false".to_owned()),
            }
            if let Some(most) = max_calls {
                line(format!("budget = {{ max_calls = {most} }}"));
            }
            for variant in variants.iter().filter(|it| !it.is_empty()) {
                line(format!(
                    "[[runners.prompts]]\nname = \"{variant}\"\ntemplate = \"{variant} {{{{ prompt }}}}\""
                ));
            }
            self.datasets.push((format!("{name}.jsonl"), runner.dataset()));
        }
        self.suite = suite;
        if self.is_decided_early {
            self.options.push("--stop-when-decided".to_owned());
        }
    }

    /// Draws something for a question, the same whenever that is asked.
    fn rng(&self, what: &str, key: &str) -> Rng {
        let seed = self.seed.to_le_bytes();
        let InputDigest(digest) = InputDigest::of([what.as_bytes(), &seed, key.as_bytes()]);
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&digest[..8]);
        Rng::with_seed(u64::from_le_bytes(bytes))
    }

    /// What a case comes to on a lane.
    pub(crate) fn truth(&self, key: &str) -> Truth {
        let rng = &mut self.rng("truth", key);
        if rng.u32(..100) < self.errors {
            return Truth::Error(Fault::persistent(rng));
        }
        match rng.u32(..100) {
            ..70 => Truth::Right,
            70..90 => Truth::Wrong,
            90..95 => Truth::Refused,
            _ => Truth::Blocked,
        }
    }

    /// Whether a judge is content with an answer.
    pub(crate) fn is_content(&self, key: &str) -> bool {
        self.rng("judge", key).u32(..100) < 70
    }

    /// What a server does when it is asked something for the nth time; none: it answers.
    pub(crate) fn fault(&self, key: &str, nth: usize) -> Option<Fault> {
        let rng = &mut self.rng("faults", key);
        let is_faulty = rng.u32(..100) < self.faults;
        let count = if is_faulty { rng.usize(1..=3) } else { 0 };
        // One that nobody was asked is none of the tries.
        let faults = (0..count.min(self.max_retries)).map(|_| self.transient(rng));
        faults.collect::<Vec<_>>().get(nth).copied()
    }

    fn transient(&self, rng: &mut Rng) -> Fault {
        let soon = rng.u64(1..=20);
        let wait = if self.has_long_pauses && rng.bool() { 1000 } else { soon };
        match rng.u8(..16) {
            0 | 1 => Fault::Limit,
            2 => Fault::LimitSeconds(wait),
            3 => Fault::LimitMillis(wait * 300),
            4 => Fault::LimitDate(wait),
            5 => Fault::LimitSentence(wait),
            6 => Fault::Broken,
            7 => Fault::BadGateway,
            8 => Fault::Overloaded,
            9 => Fault::Hangs,
            10 => Fault::Refused,
            11 => Fault::Reset,
            12 => Fault::Cut,
            13 => Fault::Silence,
            14 => Fault::BadGzip,
            _ => Fault::NoFiles,
        }
    }

    /// How long a call takes.
    pub(crate) fn latency(&self, key: &str, nth: usize) -> Duration {
        let rng = &mut self.rng("latency", &format!("{key} {nth}"));
        Duration::from_micros(rng.u64(..=self.slowest_ms * 1000))
    }

    /// All results that there are to be, by lane, case and repeat.
    pub(crate) fn planned(&self) -> Vec<Place> {
        let mut places = Vec::new();
        for runner in &self.runners {
            for backend in &runner.backends {
                for variant in &runner.variants {
                    let lane = Lane {
                        runner: runner.name.clone(),
                        variant: variant.clone(),
                        backend: self.backends[*backend].0.clone(),
                    };
                    for case in 0..runner.cases {
                        places.extend((0..runner.repeat).map(|repeat| Place {
                            lane: lane.clone(),
                            case: format!("c{case}"),
                            repeat,
                        }));
                    }
                }
            }
        }
        places
    }

    pub(crate) fn runner(&self, name: &str) -> Option<&Runner> {
        self.runners.iter().find(|it| it.name == name)
    }
}

impl Runner {
    /// Whether answers of its lanes are compared with each other.
    pub(crate) fn is_compared(&self) -> bool {
        self.judging == Judging::Best
    }

    fn planned(&self) -> u64 {
        (self.variants.len() * self.backends.len() * self.cases) as u64 * u64::from(self.repeat)
    }

    fn dataset(&self) -> String {
        let mut text = String::new();
        for case in 0..self.cases {
            let name = &self.name;
            let more = match self.judging {
                Judging::Text => "",
                Judging::Rubric => r#", {"type": "llm-rubric", "value": "It is polite."}"#,
                Judging::Best => r#", {"type": "select-best", "value": "The best."}"#,
            };
            let _ = writeln!(
                text,
                r#"{{"id": "c{case}", "prompt": "question <<{name} c{case}>>", "assert": [{{"type": "contains", "value": "yes"}}{more}]}}"#
            );
        }
        text
    }
}

fn runner(at: usize, backends: usize, is_calm: bool, rng: &mut Rng) -> Runner {
    let judging = match rng.u8(..10) {
        ..7 => Judging::Text,
        7 | 8 => Judging::Rubric,
        _ => Judging::Best,
    };
    let mut asked: Vec<usize> = (0..backends).filter(|_| chance(rng, 70)).collect();
    if asked.is_empty() {
        asked.push(rng.usize(..backends));
    }
    let variants = match chance(rng, 20) {
        true => vec!["v0".to_owned(), "v1".to_owned()],
        false => vec![String::new()],
    };
    // Small worlds show as much as large ones, and there can be more of them.
    let cases = [1, 1, 2, 3, 4, 7][rng.usize(..6)];
    let repeat = if chance(rng, 25) { 2 } else { 1 };
    let gate = chance(rng, 60).then(|| rng.u32(20..95));
    let max_calls = (!is_calm && chance(rng, 15)).then(|| rng.u64(1..30));
    let name = format!("r{at}");
    Runner { name, variants, backends: asked, cases, repeat, judging, gate, max_calls }
}

impl Fault {
    /// What ends in an error, however often it is tried.
    fn persistent(rng: &mut Rng) -> Self {
        [
            Self::Key,
            Self::BadRequest,
            Self::NotFound,
            Self::Broken,
            Self::Hangs,
            Self::Garbage,
            Self::Nothing,
        ][rng.usize(..7)]
    }
}

/// A runner on a backend, with one of its variants; empty if it has none.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Lane {
    pub(crate) runner: String,
    pub(crate) variant: String,
    pub(crate) backend: String,
}

/// One result.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) lane: Lane,
    pub(crate) case: String,
    pub(crate) repeat: u32,
}

impl Place {
    /// What stands for it in questions and answers.
    pub(crate) fn key(&self) -> String {
        let Lane { runner, variant, backend } = &self.lane;
        let variant = if variant.is_empty() { "-" } else { variant };
        format!("{runner} {variant} {backend} {} {}", self.case, self.repeat)
    }

    /// The place that a key stands for.
    pub(crate) fn parse(key: &str) -> Option<Self> {
        let words: Vec<&str> = key.split(' ').collect();
        let [runner, variant, backend, case, repeat] = words.try_into().ok()?;
        let variant = if variant == "-" { "" } else { variant };
        let lane = Lane {
            runner: runner.to_owned(),
            variant: variant.to_owned(),
            backend: backend.to_owned(),
        };
        Some(Self { lane, case: case.to_owned(), repeat: repeat.parse().ok()? })
    }
}

/// True in so many of a hundred cases.
pub(crate) fn chance(rng: &mut Rng, percent: u32) -> bool {
    rng.u32(..100) < percent
}
