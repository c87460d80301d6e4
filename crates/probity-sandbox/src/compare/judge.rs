//! The judge: which worlds two commands run in, and what that comes to.

use std::{
    path::Path,
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant, SystemTime},
};

use probity_shell::{Script, mentions::Mentions, output::Promise};

use super::{Effect, Leniency, Outcome, Verdict, compare, likeness};
use crate::{
    Command, Execution, Limits, Sandbox, World,
    world::{Prepared, builtin, plant, remove},
};

/// Programs whose output is full of numbers of processes.
const PROCESS_TOOLS: &[&str] = &["ps", "pgrep", "pidof", "pstree", "jobs", "top", "lsof", "kill"];

/// Once this is over, no further world is tried.
const PATIENCE: Duration = Duration::from_secs(8);

/// Judges commands by what they do.
pub struct Judge<'j> {
    /// Runs them.
    pub sandbox: &'j Sandbox,
    /// Where prepared worlds are kept.
    pub cache: &'j Path,
    /// What a command may use.
    pub limits: Limits,
    /// The time that ages in worlds are counted from.
    pub now: SystemTime,
}

/// Why nothing could be judged.
#[derive(Debug, thiserror::Error)]
pub enum JudgeError {
    /// A command could not be executed.
    #[error("a command could not be executed")]
    Sandbox(#[from] crate::Failure),
    /// A world could not be made.
    #[error("a world could not be made")]
    World(#[from] crate::world::PrepareError),
}

/// Two commands and what is known about both.
struct Pair<'p> {
    commands: [Command; 2],
    leniency: Leniency,
    mentions: &'p Mentions,
}

/// A world and what it is to the pair.
#[derive(Clone, Copy)]
struct Setting<'s> {
    prepared: &'s Prepared,
    odd: bool,
    /// It was made for the pair.
    made: bool,
}

/// What the worlds have shown so far.
#[derive(Default)]
struct Shown {
    agreed: Vec<String>,
    silent: Vec<String>,
    caveat: Option<String>,
    likeness: Vec<f64>,
}

impl Judge<'_> {
    /// Runs both in worlds made for them and in those that ship, until they differ.
    pub fn judge(&self, left: &Script<'_>, right: &Script<'_>) -> Result<Effect, JudgeError> {
        let promises = [left, right].map(Promise::of);
        if promises.iter().any(|it| it.network) {
            return Ok(unknown("a program in it needs a network", Shown::default()));
        }
        let mentions = Mentions::of(left).and(Mentions::of(right));
        let tools = mentions.programs.iter().any(|it| PROCESS_TOOLS.contains(&&**it));
        let leniency = Leniency { processes: tools, ..Leniency::between(promises[0], promises[1]) };
        let arguments = plant::arguments(&mentions);
        let commands = [left, right].map(|it| command(it.source, &arguments));
        let pair = Pair { commands, leniency, mentions: &mentions };
        self.run(&pair)
    }

    fn run(&self, pair: &Pair<'_>) -> Result<Effect, JudgeError> {
        let start = Instant::now();
        let mut shown = Shown::default();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let planted = self.cache.join(format!(".planted-{}-{number}", std::process::id()));
        let outcome = self.planted(pair, &planted, &mut shown);
        remove(&planted);
        if let Some(effect) = outcome? {
            return Ok(effect);
        }
        for world in builtin::all() {
            if start.elapsed() > PATIENCE {
                break;
            }
            let mut prepared = self.prepare(world, self.cache)?;
            prepared.variables.extend(plant::variables(pair.mentions));
            if let Some(effect) = self.world(
                pair,
                Setting { prepared: &prepared, odd: world.odd, made: false },
                &mut shown,
            )? {
                return Ok(effect);
            }
        }
        Ok(match shown.agreed.first().cloned() {
            None => unknown("neither did anything in any world", shown),
            Some(world) => {
                let reason = format!(
                    "they did the same in {} worlds, and nothing in {}",
                    shown.agreed.len(),
                    shown.silent.len()
                );
                Effect {
                    verdict: Verdict::SameEffect,
                    world: Some(world),
                    likeness: Some(1.0),
                    ..effect(reason, shown)
                }
            }
        })
    }

    /// The worlds made for them, which are not kept.
    fn planted(
        &self,
        pair: &Pair<'_>,
        place: &Path,
        shown: &mut Shown,
    ) -> Result<Option<Effect>, JudgeError> {
        for world in plant::worlds(pair.mentions) {
            let prepared = self.prepare(&world, place)?;
            if let Some(effect) = self.world(
                pair,
                Setting { prepared: &prepared, odd: world.odd, made: true },
                shown,
            )? {
                return Ok(Some(effect));
            }
        }
        Ok(None)
    }

    /// Runs both in one world; gives an effect once it is decided.
    fn world(
        &self,
        pair: &Pair<'_>,
        Setting { prepared, odd, made }: Setting<'_>,
        shown: &mut Shown,
    ) -> Result<Option<Effect>, JudgeError> {
        let since = self.seconds();
        let run = |command: &Command| self.sandbox.execute(prepared, command, &self.limits);
        let [left, right] = &pair.commands;
        let (left, right) = std::thread::scope(|scope| {
            let left = scope.spawn(|| run(left));
            let right = run(right);
            (left.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), right)
        });
        let (left, right) = (left?, right?);
        let name = prepared.name.clone();
        if !made && [&left, &right].iter().any(|it| lacks(it)) {
            // It is about other files than this world has.
            return Ok(None);
        }
        shown.likeness.extend(likeness(&left, &right, since));
        let outcome = compare(&left, &right, pair.leniency, since);
        match outcome {
            Outcome::Silent => shown.silent.push(name),
            // Some worlds are too large for some commands. What is missing is missing in those made for the pair, too.
            Outcome::Undecided(_) if !made => {}
            Outcome::Undecided(reason) => {
                return Ok(Some(unknown(&reason, std::mem::take(shown))));
            }
            Outcome::Same if shown.agreed.is_empty() => {
                if !self.is_steady(pair, prepared, [&left, &right], since)? {
                    return Ok(Some(unknown(UNSTEADY, std::mem::take(shown))));
                }
                shown.agreed.push(name);
            }
            Outcome::Same => shown.agreed.push(name),
            Outcome::Different(_) if !self.is_steady(pair, prepared, [&left, &right], since)? => {
                return Ok(Some(unknown(UNSTEADY, std::mem::take(shown))));
            }
            Outcome::Different(difference) if odd => {
                shown.caveat.get_or_insert(format!("{difference} (in the world `{name}`)"));
            }
            Outcome::Different(difference) => {
                let reason = format!("they do not do the same in the world `{name}`");
                return Ok(Some(Effect {
                    verdict: Verdict::Different,
                    world: Some(name),
                    difference: Some(difference),
                    ..effect(reason, std::mem::take(shown))
                }));
            }
        }
        Ok(None)
    }

    /// Whether each of them does the same again.
    fn is_steady(
        &self,
        pair: &Pair<'_>,
        prepared: &Prepared,
        first: [&Execution; 2],
        since: i64,
    ) -> Result<bool, JudgeError> {
        for (command, first) in pair.commands.iter().zip(first) {
            let again = self.sandbox.execute_anew(prepared, command, &self.limits)?;
            match compare(first, &again, pair.leniency, since) {
                Outcome::Same | Outcome::Silent => {}
                Outcome::Different(_) | Outcome::Undecided(_) => return Ok(false),
            }
        }
        Ok(true)
    }

    fn prepare(&self, world: &World, cache: &Path) -> Result<Prepared, JudgeError> {
        Ok(self.sandbox.prepare(world, cache, self.now)?)
    }

    fn seconds(&self) -> i64 {
        let since = self.now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    }
}

static NEXT: AtomicU32 = AtomicU32::new(0);

const UNSTEADY: &str = "it does not do the same twice";

/// Whether the command missed a file.
fn lacks(execution: &Execution) -> bool {
    let complaints = String::from_utf8_lossy(&execution.stderr.bytes);
    complaints.lines().any(|it| it.ends_with("No such file or directory"))
}

/// The text for `bash`, with positional parameters if it reads any.
fn command(source: &str, arguments: &[String]) -> Command {
    if arguments.is_empty() {
        return Command::Shell(source.to_owned());
    }
    let fixed = ["bash", "-c", source, "bash"].map(str::to_owned);
    Command::Argv(fixed.into_iter().chain(arguments.iter().cloned()).collect())
}

fn unknown(reason: &str, shown: Shown) -> Effect {
    effect(reason.to_owned(), shown)
}

/// What was shown, without a verdict.
fn effect(reason: String, shown: Shown) -> Effect {
    let Shown { agreed, silent, caveat, likeness } = shown;
    Effect {
        verdict: Verdict::Unknown,
        reason,
        world: None,
        difference: None,
        caveat,
        likeness: mean(&likeness),
        agreed,
        silent,
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let sum: f64 = values.iter().sum();
    Some(sum / super::stdout::ratio(values.len(), 1))
}
