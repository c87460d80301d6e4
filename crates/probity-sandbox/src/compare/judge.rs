//! The judge: which worlds two commands run in, and what that comes to.

use std::{
    fmt::Write as _,
    path::Path,
    time::{Duration, Instant, SystemTime},
};

use probity_shell::{Script, mentions::Mentions, output::Promise};

use super::{Effect, Leniency, Outcome, Verdict, compare, likeness, quiet};
use crate::{
    Command, Execution, Limits, Sandbox, World,
    world::{Prepared, builtin, fresh_folder, plant, remove},
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
    /// There is no place for worlds.
    #[error("failed to make a folder in `{path}`")]
    Folder {
        /// Where.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// Two commands and what is known about both.
pub(super) struct Pair<'p> {
    pub(super) commands: [Command; 2],
    pub(super) leniency: Leniency,
    pub(super) mentions: &'p Mentions,
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
pub(super) struct Shown {
    pub(super) agreed: Vec<String>,
    silent: Vec<String>,
    /// Worlds that were left out because time was up.
    untried: usize,
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
        let commands = |prologue: &str| {
            [left, right].map(|it| command(&format!("{prologue}{}", it.source), &arguments))
        };
        let pair = Pair { commands: commands(""), leniency, mentions: &mentions };
        let place = fresh_folder(self.cache, "planted").map_err(|source| JudgeError::Folder {
            path: self.cache.display().to_string(),
            source,
        })?;
        let mut shown = Shown::default();
        let decided = self.run(&pair, &place, &mut shown).and_then(|decided| match decided {
            None if shown.agreed.is_empty() && shown.caveat.is_none() => {
                quiet::ask(self, &place, &commands, &pair, &mut shown)
            }
            decided => Ok(decided),
        });
        remove(&place);
        Ok(decided?.unwrap_or_else(|| conclusion(shown)))
    }

    fn run(
        &self,
        pair: &Pair<'_>,
        place: &Path,
        shown: &mut Shown,
    ) -> Result<Option<Effect>, JudgeError> {
        let start = Instant::now();
        for world in plant::worlds(pair.mentions) {
            if let Some(effect) = self.made(pair, &world, place, shown)? {
                return Ok(Some(effect));
            }
        }
        let all = builtin::all();
        for (at, world) in all.iter().enumerate() {
            if start.elapsed() > PATIENCE {
                shown.untried = all.len() - at;
                break;
            }
            let mut prepared = self.prepare(world, self.cache)?;
            prepared.variables.extend(plant::variables(pair.mentions));
            let setting = Setting { prepared: &prepared, odd: world.odd, made: false };
            if let Some(effect) = self.world(pair, setting, shown)? {
                return Ok(Some(effect));
            }
        }
        Ok(None)
    }

    /// Runs both in a world made for them.
    pub(super) fn made(
        &self,
        pair: &Pair<'_>,
        world: &World,
        place: &Path,
        shown: &mut Shown,
    ) -> Result<Option<Effect>, JudgeError> {
        let prepared = self.prepare(world, place)?;
        let setting = Setting { prepared: &prepared, odd: world.odd, made: true };
        self.world(pair, setting, shown)
    }

    /// Runs both in one world; gives an effect once it is decided.
    fn world(
        &self,
        pair: &Pair<'_>,
        Setting { prepared, odd, made }: Setting<'_>,
        shown: &mut Shown,
    ) -> Result<Option<Effect>, JudgeError> {
        let [left, right] =
            at_once(pair, |command| self.sandbox.execute(prepared, command, &self.limits))?;
        let name = prepared.name.clone();
        if !made && [&left, &right].iter().any(|it| lacks(it)) {
            // It is about other files than this world has.
            return Ok(None);
        }
        shown.likeness.extend(likeness(&left, &right));
        let outcome = compare(&left, &right, pair.leniency);
        match outcome {
            Outcome::Silent => shown.silent.push(name),
            // Some worlds are too large for some commands. What is missing is missing in those made for the pair, too.
            Outcome::Undecided(_) if !made => {}
            Outcome::Undecided(reason) => {
                return Ok(Some(unknown(&reason, std::mem::take(shown))));
            }
            Outcome::Same if shown.agreed.is_empty() => {
                if !self.is_steady(pair, prepared, [&left, &right])?
                    && !self.varies_alike(pair, prepared)?
                {
                    return Ok(Some(unknown(UNSTEADY, std::mem::take(shown))));
                }
                shown.agreed.push(name);
            }
            Outcome::Same => shown.agreed.push(name),
            Outcome::Different(_) if !self.is_steady(pair, prepared, [&left, &right])? => {
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
    ) -> Result<bool, JudgeError> {
        for (command, first) in pair.commands.iter().zip(first) {
            let again = self.sandbox.execute_anew(prepared, command, &self.limits)?;
            match compare(first, &again, pair.leniency) {
                Outcome::Same | Outcome::Silent => {}
                Outcome::Different(_) | Outcome::Undecided(_) => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Whether both do the same at the same time, as what tells the time does.
    fn varies_alike(&self, pair: &Pair<'_>, prepared: &Prepared) -> Result<bool, JudgeError> {
        for _ in 0..2 {
            let [left, right] = at_once(pair, |command| {
                self.sandbox.execute_anew(prepared, command, &self.limits)
            })?;
            if compare(&left, &right, pair.leniency) != Outcome::Same {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(super) fn prepare(&self, world: &World, cache: &Path) -> Result<Prepared, JudgeError> {
        Ok(self.sandbox.prepare(world, cache, self.now)?)
    }
}

const UNSTEADY: &str = "it does not do the same twice";

/// What it comes to that no world showed a difference.
fn conclusion(shown: Shown) -> Effect {
    let Some(world) = shown.agreed.first().cloned() else {
        return unknown("neither did anything in any world", shown);
    };
    let mut reason = format!(
        "they did the same in {} worlds, and nothing in {}",
        shown.agreed.len(),
        shown.silent.len()
    );
    if shown.untried > 0 {
        let _ = write!(reason, "; for want of time {} were not tried", shown.untried);
    }
    Effect {
        verdict: Verdict::SameEffect,
        world: Some(world),
        likeness: Some(1.0),
        ..effect(reason, shown)
    }
}

/// Executes both at the same time.
fn at_once(
    pair: &Pair<'_>,
    run: impl Fn(&Command) -> Result<Execution, crate::Failure> + Sync,
) -> Result<[Execution; 2], JudgeError> {
    let [left, right] = &pair.commands;
    let (left, right) = std::thread::scope(|scope| {
        let left = scope.spawn(|| run(left));
        let right = run(right);
        (left.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), right)
    });
    Ok([left?, right?])
}

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
    let Shown { agreed, silent, untried: _, caveat, likeness } = shown;
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
