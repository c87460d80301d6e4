//! The judge: which worlds two commands run in, and what that comes to.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    path::Path,
    time::{Duration, Instant, SystemTime},
};

use probity_shell::{
    Script, equivalence,
    internal::{mentions::Mentions, output::Promise},
};

use super::{
    Effect, Leniency, Outcome, Verdict, compare, hindered,
    kept::{Grounds, Kept},
    likeness, quiet, stdout,
};
use crate::{
    Command, Execution, Limits, Sandbox, World,
    world::{Prepared, builtin, fresh_folder, plant, remove},
};

/// Programs that write numbers of processes.
const PROCESS_TOOLS: &[&str] = &["ps", "pgrep", "pidof", "pstree", "jobs", "top", "lsof"];

/// Before a command: processes come and go, so that those of the command get other numbers than they had. What is the same
/// all the same is none of these numbers.
const SHIFTS: &[&str] = &["(:)\n", "(:); (:); (:)\n"];

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
    /// Whether judgements of earlier processes are used, and new ones kept for later ones.
    pub keeps: bool,
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
    /// The same, with processes before them.
    pub(super) shifted: &'p [[Command; 2]],
    pub(super) scripts: [&'p Script<'p>; 2],
    pub(super) leniency: Leniency,
    pub(super) mentions: &'p Mentions,
}

impl Pair<'_> {
    /// What is overlooked where numbers may be those of processes.
    fn masked(&self) -> Leniency {
        Leniency { processes: !self.shifted.is_empty(), ..self.leniency }
    }

    /// Why two executions that did the same say nothing: a part of one command could not do its work here, and the other
    /// command has no such part, or another one.
    fn hindrance(&self, executions: [&Execution; 2]) -> Option<String> {
        let [left, right] = executions;
        let programs = || self.scripts.map(|it| Mentions::of(it).programs);
        if let Some(call) = left.refused.iter().chain(&right.refused).next()
            && (left.refused != right.refused || programs()[0] != programs()[1])
        {
            return Some(format!("it needs what the sandbox refuses: {call}"));
        }
        let programs: BTreeSet<String> = hindered(left).union(&hindered(right)).cloned().collect();
        let is_other = |program: &&String| {
            let [left, right] = self.scripts.map(|it| equivalence::uses(it, program));
            left != right || left.is_empty()
        };
        let program = programs.iter().find(is_other)?;
        Some(format!("`{program}` cannot do here what it does elsewhere"))
    }
}

/// A pair, the worlds made for it, and where these are put.
struct Running<'r> {
    pair: &'r Pair<'r>,
    worlds: &'r [World],
    place: &'r Path,
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
        let leniency = Leniency::between(promises[0], promises[1]);
        let arguments = plant::arguments(&mentions);
        let commands = |prologue: &str| {
            [left, right].map(|it| command(&format!("{prologue}{}", it.source), &arguments))
        };
        let shifts = SHIFTS.iter().filter(|_| tools);
        let shifted: Vec<[Command; 2]> = shifts.map(|it| commands(it)).collect();
        let pair = Pair {
            commands: commands(""),
            shifted: &shifted,
            scripts: [left, right],
            leniency,
            mentions: &mentions,
        };
        let worlds = plant::worlds(&mentions);
        let grounds = Grounds {
            texts: [left.source, right.source],
            commands: &pair.commands,
            programs: &mentions.programs,
            worlds: &worlds,
            limits: &self.limits,
            means: self.sandbox.means().to_string(),
        };
        let kept = Kept::new(self.cache, self.now);
        let name = if self.keeps { grounds.name() } else { None };
        if let Some(known) = name.as_deref().and_then(|it| kept.get(it)) {
            return Ok(known);
        }
        let effect = self.find_out(&pair, &worlds, &commands)?;
        if let Some(name) = name.filter(|_| effect.is_lasting) {
            kept.put(&name, &effect);
        }
        Ok(effect)
    }

    fn find_out(
        &self,
        pair: &Pair<'_>,
        worlds: &[World],
        commands: &dyn Fn(&str) -> [Command; 2],
    ) -> Result<Effect, JudgeError> {
        let place = fresh_folder(self.cache, "planted").map_err(|source| JudgeError::Folder {
            path: self.cache.display().to_string(),
            source,
        })?;
        let mut shown = Shown::default();
        let run = Running { pair, worlds, place: &place };
        let decided = self.run(&run, &mut shown).and_then(|decided| match decided {
            None if shown.agreed.is_empty() && shown.caveat.is_none() => {
                quiet::ask(self, &place, commands, pair, &mut shown)
            }
            decided => Ok(decided),
        });
        remove(&place);
        Ok(decided?.unwrap_or_else(|| conclusion(shown)))
    }

    fn run(
        &self,
        Running { pair, worlds, place }: &Running<'_>,
        shown: &mut Shown,
    ) -> Result<Option<Effect>, JudgeError> {
        let start = Instant::now();
        for world in *worlds {
            if let Some(effect) = self.made(pair, world, place, shown)? {
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
        let mut outcome = compare(&left, &right, pair.leniency);
        if matches!(outcome, Outcome::Different(_)) {
            outcome = self.without_pids(pair, prepared, [&left, &right], outcome)?;
        }
        if outcome == Outcome::Same
            && let Some(why) = pair.hindrance([&left, &right])
        {
            outcome = Outcome::Undecided(why);
        }
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
                    is_lasting: true,
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
        for (at, (command, first)) in pair.commands.iter().zip(first).enumerate() {
            let again = self.sandbox.execute_anew(prepared, command, &self.limits)?;
            match compare(first, &again, pair.masked().of_one(at)) {
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
            if compare(&left, &right, pair.masked()) != Outcome::Same {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What a difference comes to if it may be one between numbers of processes: it is none where these numbers are
    /// others each time, and stays one where they are not.
    fn without_pids(
        &self,
        pair: &Pair<'_>,
        prepared: &Prepared,
        first: [&Execution; 2],
        outcome: Outcome,
    ) -> Result<Outcome, JudgeError> {
        let masked = compare(first[0], first[1], pair.masked());
        if pair.shifted.is_empty() || masked != Outcome::Same {
            return Ok(outcome);
        }
        let mut runs = first.map(|it| vec![it.stdout.bytes.clone()]);
        for commands in pair.shifted {
            for (command, runs) in commands.iter().zip(&mut runs) {
                let again = self.sandbox.execute_anew(prepared, command, &self.limits)?;
                runs.push(again.stdout.bytes);
            }
        }
        Ok(match stdout::steady_numbers(&runs, pair.leniency) {
            [left, right] if left != right => outcome,
            [left, _] if stdout::has_numbers_only(&left) => {
                Outcome::Undecided("it writes nothing but numbers of processes".to_owned())
            }
            _ => masked,
        })
    }

    pub(super) fn prepare(&self, world: &World, cache: &Path) -> Result<Prepared, JudgeError> {
        Ok(self.sandbox.prepare(world, cache, self.now)?)
    }
}

const UNSTEADY: &str = "it does not do the same twice";

/// What it comes to that no world showed a difference.
fn conclusion(shown: Shown) -> Effect {
    let Some(world) = shown.agreed.first().cloned() else {
        let is_lasting = shown.untried == 0;
        return Effect { is_lasting, ..unknown("neither did anything in any world", shown) };
    };
    let is_lasting = shown.untried == 0;
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
        is_lasting,
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
        is_lasting: false,
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let sum: f64 = values.iter().sum();
    Some(sum / super::stdout::ratio(values.len(), 1))
}
