//! Whether two commands have the same effect: both run in the same worlds, and what came of them is compared.
//!
//! The same output and the same changes of files in every world, with something to be seen in one of them at least, is
//! the same effect. One difference is a difference. Silence proves nothing, and neither does what could not be run.

mod changes;
mod judge;
mod kept;
mod mask;
mod quiet;
mod stdout;

use std::collections::BTreeSet;

use probity_shell::internal::output::{One, Order, Promise};
use serde::{Deserialize, Serialize};

pub use judge::{Judge, JudgeError};

use crate::execution::{End, Execution};

/// What execution says about two commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// They did the same wherever they did anything.
    SameEffect,
    /// They did not.
    Different,
    /// It cannot be said.
    Unknown,
}

/// The verdict and what it rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// The verdict.
    pub verdict: Verdict,
    /// Why, in a sentence.
    pub reason: String,
    /// The world that shows it: the first difference, or the first equal effect.
    pub world: Option<String>,
    /// The first difference.
    pub difference: Option<String>,
    /// What differs where names have blanks, quotes or dashes in them.
    pub caveat: Option<String>,
    /// The worlds in which both ran and did the same, with something to be seen.
    pub agreed: Vec<String>,
    /// The worlds in which both ran and neither did anything.
    pub silent: Vec<String>,
    /// How alike the effects are, from 0 to 1, over the worlds in which one of them did anything. It is no verdict: of two
    /// commands that do one task in two ways (`ls` and `ls -l`) it says more than their difference does.
    #[serde(skip)]
    pub likeness: Option<f64>,
    /// Whether it would be the same another time: it is not for want of time, and nothing varied.
    #[serde(skip)]
    pub is_lasting: bool,
}

/// What can be overlooked in outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leniency {
    /// The order of lines means nothing.
    pub order: bool,
    /// The number of blanks means nothing.
    pub blanks: bool,
    /// Numbers mean nothing, since they may be those of processes.
    pub processes: bool,
    /// What exit code 1 of each says.
    pub one: [One; 2],
}

impl Leniency {
    /// What two promises have in common. Who asks for an order is not content without it.
    pub fn between(left: Promise, right: Promise) -> Self {
        let orders = [left.order, right.order];
        Self {
            order: orders.contains(&Order::None) && !orders.contains(&Order::Asked),
            blanks: left.padded || right.padded,
            processes: false,
            one: [left.one, right.one],
        }
    }

    /// The same for two runs of one command, the first or the second.
    fn of_one(self, index: usize) -> Self {
        Self { one: [self.one[index]; 2], ..self }
    }
}

/// What two executions in one world have in common.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Neither did anything.
    Silent,
    /// Both did the same.
    Same,
    /// The first difference.
    Different(String),
    /// Why nothing can be said.
    Undecided(String),
}

/// Compares what two commands did in one world.
pub fn compare(left: &Execution, right: &Execution, leniency: Leniency) -> Outcome {
    for execution in [left, right] {
        if let Some(reason) = unusable(execution) {
            return Outcome::Undecided(reason);
        }
    }
    let outputs = [left, right].map(|it| stdout::normal(&it.stdout.bytes, leniency));
    let effects = [left, right].map(|it| changes::normal(&it.changes, it.began));
    let difference = stdout::difference(&outputs[0], &outputs[1])
        .or_else(|| changes::difference(&effects[0], &effects[1]))
        .or_else(|| ended(&left.ended, &right.ended));
    if let Some(difference) = difference {
        // What was refused may have made the difference.
        let refused = left.refused.iter().chain(&right.refused).next();
        return match refused {
            Some(call) => Outcome::Undecided(format!("it needs what the sandbox refuses: {call}")),
            None => Outcome::Different(difference),
        };
    }
    if outputs[0].is_empty() && effects[0].is_empty() && left.ended.is_empty() {
        return Outcome::Silent;
    }
    let classes = [(left, leniency.one[0]), (right, leniency.one[1])];
    let [one, other] = classes.map(|(it, one)| class(it, one));
    match one == other || left.end == right.end {
        true => Outcome::Same,
        false => Outcome::Different(format!(
            "the same output, but {} instead of {}",
            left.end, right.end
        )),
    }
}

/// The first process of the world that only one of them has ended, told.
fn ended(left: &[String], right: &[String]) -> Option<String> {
    let only =
        |these: &[String], others: &[String]| these.iter().find(|it| !others.contains(it)).cloned();
    let told = |it: Option<String>| it.unwrap_or_else(|| "none that the other did not".to_owned());
    let (first, second) = (only(left, right), only(right, left));
    let differs = first.is_some() || second.is_some();
    differs.then(|| format!("processes that it ended: {} instead of {}", told(first), told(second)))
}

/// Programs that complained of what no sandbox lets them do: to act as root, to reach a network or a daemon. Whatever they
/// would have done elsewhere is not seen here.
pub(crate) fn hindered(execution: &Execution) -> BTreeSet<String> {
    let complaints = String::from_utf8_lossy(&execution.stderr.bytes);
    let lines = complaints.lines().filter(|it| {
        let line = it.to_ascii_lowercase();
        HINDRANCES.iter().any(|it| line.contains(it))
    });
    lines.map(complainer).collect()
}

const HINDRANCES: &[&str] = &[
    "operation not permitted",
    // A user or a group that the sandbox does not know.
    "changing ownership of",
    "changing group of",
    "read-only file system",
    "network is unreachable",
    "could not resolve",
    "couldn't resolve",
    "name resolution",
    "name or service not known",
    "cannot connect",
    "can't connect",
    "could not connect",
    "failed to connect",
    "connection refused",
    "has not been booted",
    "must be root",
    "must run as root",
    "are you root",
    "only root",
    "not superuser",
    "must be superuser",
    "need to be root",
    "you have to be root",
    "requires root",
    "root privilege",
    "permission denied on key",
    "cannot lock /etc",
    "cannot open /etc/shadow",
];

/// Who complains: of `bash: line 1: kill: (1) - Operation not permitted`, `kill`.
fn complainer(line: &str) -> String {
    let mut parts = line.split(": ");
    let first = parts.next().unwrap_or_default();
    let is_shell = |it: &str| matches!(it.rsplit('/').next(), Some("bash" | "sh" | "dash"));
    let name = if is_shell(first) {
        parts.find(|it| !it.starts_with("line ")).unwrap_or(first)
    } else {
        first
    };
    let word = name.split_ascii_whitespace().next().unwrap_or_default();
    word.rsplit('/').next().unwrap_or_default().to_owned()
}

/// How alike two effects are, from 0 to 1; nothing where neither did anything.
pub fn likeness(left: &Execution, right: &Execution) -> Option<f64> {
    let changed = [left, right].map(|it| changes::normal(&it.changes, it.began));
    if changed.iter().any(|it| !it.is_empty()) {
        // Where files change, output is talk.
        return Some(changes::likeness(&changed[0], &changed[1]));
    }
    stdout::likeness(&left.stdout.bytes, &right.stdout.bytes)
}

/// Why an execution says nothing about its command.
fn unusable(execution: &Execution) -> Option<String> {
    match execution.end {
        End::TimedOut => return Some("it did not end in time".to_owned()),
        End::OutOfMemory => return Some("it needs more memory than it may use".to_owned()),
        End::Exit(_) | End::Signal(_) => {}
    }
    if execution.stdout.total > execution.stdout.bytes.len() as u64 {
        return Some("it writes more than is kept".to_owned());
    }
    let complaints = String::from_utf8_lossy(&execution.stderr.bytes);
    match (complaints.lines().find_map(missing), execution.end) {
        (Some(program), _) => Some(format!("`{program}` is not installed")),
        (None, End::Exit(126 | 127)) => Some("a program is not installed".to_owned()),
        _ => None,
    }
}

/// The program that a complaint says is missing: of `bash: line 1: tree: command not found`, `tree`.
fn missing(complaint: &str) -> Option<&str> {
    let quotes = ['\'', '‘', '’', '`'];
    let before = ["command not found", "not found"]
        .iter()
        .find_map(|it| complaint.strip_suffix(it).and_then(|it| it.strip_suffix(": ")));
    let wrapper = || {
        let (_, rest) = complaint.split_once("failed to run command ")?;
        rest.strip_suffix(": No such file or directory")
    };
    let name = match before {
        Some(before) => before.rsplit(": ").next()?,
        None => wrapper()?,
    };
    Some(name.trim_matches(quotes))
}

/// What an exit code says: that it went well, that there was nothing to be found, or that it failed.
#[derive(PartialEq, Eq)]
enum Class {
    Answered,
    Failed,
    Killed,
}

/// `1` is an answer ("none") of some utilities, and `123` is what `xargs` makes of it. Others that write something and end
/// with 1 have left out a part, if they say so.
fn class(execution: &Execution, one: One) -> Class {
    let answers = match one {
        One::Failed => false,
        One::Partly => execution.stderr.total > 0,
        One::Nothing => true,
    };
    match execution.end {
        // Who writes into a pipe that nobody reads is ended by signal 13.
        End::Exit(0) | End::Signal(13) => Class::Answered,
        End::Exit(1 | 123) if answers => Class::Answered,
        End::Exit(_) => Class::Failed,
        End::Signal(_) | End::TimedOut | End::OutOfMemory => Class::Killed,
    }
}

#[cfg(test)]
mod tests;
