//! How far the backends of one runner agree, case by case.
//!
//! Only counts are kept; shares and intervals are made from them. What it takes to say that two
//! commands are the same is not known here: `probity-grade` folds answers into these values.

use crate::{classification::Verdict, metrics::share, record::LaneKey};
use probity_stats::{Interval, proportion::wilson_95};

/// One case, asked of every backend. Repeats of a case are asked one by one.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The case's id.
    pub case_id: &'a str,
    /// Which of the repeats, from 0.
    pub repeat: u32,
    /// What each backend came to, in their order; none where there is no result.
    pub answers: &'a [Option<Answer>],
}

/// What a backend made of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What gates count.
    pub verdict: Verdict,
    /// The command that was found in the reply.
    pub command: Option<String>,
}

/// How far the backends of a runner agree.
#[derive(Clone, Debug, PartialEq)]
pub struct Consistency {
    /// The runner.
    pub runner: String,
    /// The prompt variant, if the runner has several.
    pub variant: Option<String>,
    /// Its backends, in the order of the plan.
    pub backends: Vec<String>,
    /// How often each case was asked.
    pub repeats: u32,
    /// Cases where every backend gave a command, and all of them do the same.
    pub agree: u64,
    /// Cases where two commands are unlike.
    pub diverge: Diverging,
    /// The other cases.
    pub uncompared: Uncompared,
    /// Each backend with each other.
    pub pairs: Vec<Pair>,
    /// The cases that diverge, those that matter most first. Not all, if there are very many.
    pub divergences: Vec<Divergence>,
}

impl Consistency {
    /// The lane of one of the backends.
    pub fn lane(&self, backend: usize) -> LaneKey<'_> {
        let (variant, backend) = (self.variant.as_deref(), &self.backends[backend]);
        LaneKey { runner: &self.runner, variant, backend }
    }

    /// What all of them were asked: `RUNNER`, or `RUNNER/VARIANT`.
    pub fn task(&self) -> String {
        self.lane(0).task()
    }

    /// All cases, each repeat for itself.
    pub fn cases(&self) -> u64 {
        self.agree + self.diverge.total() + self.uncompared.total()
    }

    /// Divergences that are counted and not listed.
    pub fn unlisted(&self) -> u64 {
        self.diverge.total().saturating_sub(self.divergences.len() as u64)
    }
}

/// Cases that diverge, by what the verdicts are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Diverging {
    /// One passes and another fails.
    pub mixed: u64,
    /// None passes.
    pub failing: u64,
    /// All pass: there is more than one right answer.
    pub passing: u64,
}

impl Diverging {
    /// All of them.
    pub fn total(&self) -> u64 {
        let Self { mixed, failing, passing } = self;
        mixed + failing + passing
    }

    /// Counts one more.
    pub fn add(&mut self, kind: DivergenceKind) {
        let count = match kind {
            DivergenceKind::Mixed => &mut self.mixed,
            DivergenceKind::Failing => &mut self.failing,
            DivergenceKind::Passing => &mut self.passing,
        };
        *count += 1;
    }
}

/// Cases of which it cannot be said whether all backends agree, each under the first reason that
/// holds for one of its backends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uncompared {
    /// The call failed.
    pub error: u64,
    /// There is no command in the reply.
    pub no_command: u64,
    /// The command cannot be read as shell, and another one is not the same text.
    pub unparsable: u64,
    /// There is no result.
    pub missing: u64,
}

impl Uncompared {
    /// All of them.
    pub fn total(&self) -> u64 {
        let Self { error, no_command, unparsable, missing } = self;
        error + no_command + unparsable + missing
    }

    /// The counts with their reasons.
    pub fn reasons(&self) -> [(&'static str, u64); 4] {
        let Self { error, no_command, unparsable, missing } = *self;
        [
            (Without::Error.as_str(), error),
            (Without::NoCommand.as_str(), no_command),
            ("unparsable", unparsable),
            (Without::Missing.as_str(), missing),
        ]
    }
}

/// Two backends over the cases where both gave a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Where the two stand among the backends.
    pub backends: [usize; 2],
    /// Cases whose commands could be compared.
    pub compared: u64,
    /// Those where both do the same.
    pub equal: u64,
    /// Cases where both gave a command and nothing can be said of them.
    pub unknown: u64,
}

impl Pair {
    /// The share of compared cases where both do the same; none of nothing.
    pub fn agreement(&self) -> Option<f64> {
        share(self.equal, self.compared)
    }

    /// Wilson's interval for it at 95 %.
    pub fn interval(&self) -> Option<Interval> {
        wilson_95(self.equal, self.compared)
    }
}

/// A case that diverges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// The case's id.
    pub case_id: String,
    /// Which of the repeats, from 0.
    pub repeat: u32,
    /// What the verdicts are.
    pub kind: DivergenceKind,
    /// Backends that do the same, together.
    pub groups: Vec<Group>,
    /// Backends that gave no command, and why.
    pub without: Vec<(usize, Without)>,
}

/// What the verdicts of a case that diverges are, the most telling first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DivergenceKind {
    /// One passes and another fails.
    Mixed,
    /// None passes.
    Failing,
    /// All pass.
    Passing,
}

impl DivergenceKind {
    /// All three.
    pub const ALL: [Self; 3] = [Self::Mixed, Self::Failing, Self::Passing];

    /// The name used in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mixed => "mixed",
            Self::Failing => "failing",
            Self::Passing => "passing",
        }
    }
}

/// Backends whose commands do the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The command, as the first of them wrote it.
    pub command: String,
    /// Characters of the command that were cut off.
    pub cut: u64,
    /// Whether the command could be read; if not, the text of all is the same.
    pub parsed: bool,
    /// Where the backends stand, and whether each passed.
    pub members: Vec<(usize, bool)>,
}

impl Group {
    /// How many of its backends passed.
    pub fn passed(&self) -> usize {
        self.members.iter().filter(|(_, passed)| *passed).count()
    }

    /// `pass` or `fail`; `part` where the same command passed for one and not for another, which
    /// takes criteria that look at more than the command.
    pub fn outcome(&self) -> &'static str {
        match self.passed() {
            0 => "fail",
            all if all == self.members.len() => "pass",
            _ => "part",
        }
    }
}

/// Why a backend gave no command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Without {
    /// The call failed.
    Error,
    /// There is none in the reply.
    NoCommand,
    /// There is no result.
    Missing,
}

impl Without {
    /// All three.
    pub const ALL: [Self; 3] = [Self::Error, Self::NoCommand, Self::Missing];

    /// The name used in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::NoCommand => "no_command",
            Self::Missing => "missing",
        }
    }
}
