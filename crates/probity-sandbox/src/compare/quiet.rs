//! Commands that write nothing and change no file: what they do with what they are given to read, and to the shell.

use std::path::Path;

use super::{
    Effect, Outcome, compare,
    judge::{Judge, JudgeError, Pair, Shown},
};
use crate::{
    Command,
    execution::{EntryKind, Execution},
    world::{Content, File, World, plant},
};

/// What a command reads that is given something.
const INPUT: &str = "/var/input";
const READ_INPUT: &str = "exec < /var/input\n";

/// What is left in the end: where the shell is, its settings, and variables that have a value.
const STATE: &str = "/var/state";
const WRITE_STATE: &str = r#"trap '{
  pwd; umask; ulimit -a; shopt; set -o; alias; declare -f
  while read -r __name; do
    case $__name in
      BASH* | COMP_* | EPOCH* | *RANDOM | SECONDS | LINENO | PIPESTATUS | OLDPWD | PPID | FUNCNAME | DIRSTACK | _ | __name) ;;
      *) test -z "${!__name}" || declare -p "$__name" ;;
    esac
  done < <(compgen -v)
} > /var/state 2> /dev/null' EXIT
"#;
/// What these do to the shell is not in its state.
const UNSEEN: &[&str] = &[
    "bind", "complete", "compopt", "disown", "enable", "exec", "fc", "hash", "history", "stty",
    "trap",
];

/// Runs both again: with a text to read, and with a look at the state that they leave behind.
pub(super) fn ask(
    judge: &Judge<'_>,
    place: &Path,
    commands: &dyn Fn(&str) -> [Command; 2],
    pair: &Pair<'_>,
    shown: &mut Shown,
) -> Result<Option<Effect>, JudgeError> {
    let mut worlds = plant::worlds(pair.mentions);
    worlds.retain(|it| !it.odd);
    let fed = Pair { commands: commands(READ_INPUT), ..*pair };
    for (seed, world) in worlds.iter().enumerate() {
        let text = plant::input(pair.mentions, seed);
        let mut world = World { name: format!("{}-fed", world.name), ..world.clone() };
        world.files.push(File::new(INPUT, Content::text(text)));
        if let Some(effect) = judge.made(&fed, &world, place, shown)? {
            return Ok(Some(effect));
        }
    }
    if !shown.agreed.is_empty() {
        return Ok(None);
    }
    let is_seen = !UNSEEN.iter().any(|it| pair.mentions.programs.contains(*it));
    if is_seen {
        let nothing = Command::Shell(WRITE_STATE.to_owned());
        let commands = commands(WRITE_STATE);
        shown.agreed = agreed(judge, place, &worlds, |run| {
            let [left, right] = [run(&commands[0])?, run(&commands[1])?];
            Ok(state(&left) != state(&run(&nothing)?)
                && state(&left).is_some()
                && compare(&left, &right, pair.leniency) == Outcome::Same)
        })?;
    }
    Ok(None)
}

/// Executes a command in a world.
type Run<'r> = dyn Fn(&Command) -> Result<Execution, JudgeError> + 'r;

/// The names of the worlds, if both do the same in all of them. What differs here is no difference: one command may need a
/// variable that the other does not.
fn agreed(
    judge: &Judge<'_>,
    place: &Path,
    worlds: &[World],
    agree: impl Fn(&Run<'_>) -> Result<bool, JudgeError>,
) -> Result<Vec<String>, JudgeError> {
    let mut names = Vec::new();
    for world in worlds {
        let prepared = judge.prepare(world, place)?;
        let run =
            |command: &Command| Ok(judge.sandbox.execute(&prepared, command, &judge.limits)?);
        if !agree(&run)? {
            return Ok(Vec::new());
        }
        names.push(world.name.clone());
    }
    Ok(names)
}

fn state(execution: &Execution) -> Option<&EntryKind> {
    let change = execution.changes.iter().find(|it| it.path == STATE)?;
    change.after.as_ref().map(|it| &it.kind)
}
