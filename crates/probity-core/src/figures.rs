//! What only some kinds of runners have, folded from the evidence of their cases.

mod cases;
mod compared;
mod confusion;
mod detectors;
mod program;
mod routing;

use serde::Serialize;

pub use compared::{
    CompareStats, Effectiveness, JudgeStats, SizeImpact, SkillCompared, SkillSizes,
};
pub use confusion::{Confusion, Grid, Negatives};
pub use detectors::{Detector, Detectors};
pub use program::Program;
pub use routing::{Activation, SetFigures, SkillRouted};

use crate::{classification::Verdict, evidence::Evidence, runner::RunnerKind};
use probity_stats::{Interval, proportion::wilson_95};

/// The figures of a kind of runner.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Figures {
    /// Is the right skill chosen from an index?
    Activation(Activation),
    /// Are look-alike skills told apart?
    Confusion(Confusion),
    /// Is the answer better with the skill than without?
    Effectiveness(Effectiveness),
    /// Does the size of a skill pay off?
    SizeImpact(SizeImpact),
    /// What a foreign runner said of itself.
    Program(Program),
    /// How often the detectors agree with the labels of shell commands.
    Command(Detectors),
}

/// A share with its interval at 95 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Share {
    /// So many.
    pub count: u64,
    /// Of so many.
    pub of: u64,
    /// The quotient; none of nothing.
    pub rate: Option<f64>,
    /// Wilson's interval; of repeated cases, for as many answers as would say the same if each were
    /// to a case of its own.
    pub interval: Option<Interval>,
}

impl Share {
    /// A part of a whole.
    pub fn new(count: u64, of: u64) -> Self {
        let rate = crate::metrics::share(count, of);
        Self { count, of, rate, interval: wilson_95(count, of) }
    }

    /// Whether it is more than a share of `part` in `whole`, in whole numbers.
    fn exceeds(self, part: u64, whole: u64) -> bool {
        u128::from(self.count) * u128::from(whole) > u128::from(self.of) * u128::from(part)
    }
}

/// Something that people should look at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Notice {
    /// A stable name for this kind of finding.
    pub code: &'static str,
    /// What it is about: a skill, a group, a case.
    pub about: String,
    /// One sentence, lower case, no final period.
    pub message: String,
}

impl Notice {
    fn new(code: &'static str, about: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code, about: about.into(), message: message.into() }
    }
}

fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        count => format!("{count} times"),
    }
}

/// Shares that gates can look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rate {
    /// Positives that were found.
    Tpr,
    /// Negatives where something was chosen all the same.
    Fpr,
    /// Both right.
    Accuracy,
    /// Single choices that were of another skill.
    Cross,
    /// Replies that name several skills.
    Multi,
    /// Replies that name none though one is expected.
    None,
    /// Names that are not in the index.
    Outside,
    /// Answers that are better with the skill.
    Win,
}

impl Rate {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Tpr,
        Self::Fpr,
        Self::Accuracy,
        Self::Cross,
        Self::Multi,
        Self::None,
        Self::Outside,
        Self::Win,
    ];

    /// The name used in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tpr => "tpr",
            Self::Fpr => "fpr",
            Self::Accuracy => "accuracy",
            Self::Cross => "cross_rate",
            Self::Multi => "multi_rate",
            Self::None => "none_rate",
            Self::Outside => "outside_rate",
            Self::Win => "win_rate",
        }
    }

    /// The kinds of runners that have it.
    pub const fn kinds(self) -> &'static [RunnerKind] {
        match self {
            Self::Tpr => &[RunnerKind::Activation],
            Self::Fpr | Self::Accuracy => &[RunnerKind::Activation, RunnerKind::Confusion],
            Self::Cross | Self::Multi | Self::None | Self::Outside => &[RunnerKind::Confusion],
            Self::Win => &[RunnerKind::Effectiveness, RunnerKind::SizeImpact],
        }
    }

    /// Whether more of it is better.
    pub const fn is_good(self) -> bool {
        matches!(self, Self::Tpr | Self::Accuracy | Self::Win)
    }
}

impl Figures {
    /// A share that gates look at; none if this kind of runner has none such.
    pub fn rate(&self, rate: Rate) -> Option<Share> {
        match (self, rate) {
            (Self::Activation(it), Rate::Tpr) => Some(it.tpr),
            (Self::Activation(it), Rate::Fpr) => Some(it.fpr),
            (Self::Activation(it), Rate::Accuracy) => Some(it.accuracy),
            (Self::Confusion(it), Rate::Accuracy) => Some(it.accuracy),
            (Self::Confusion(it), Rate::Cross) => Some(it.cross),
            (Self::Confusion(it), Rate::Multi) => Some(it.multi),
            (Self::Confusion(it), Rate::None) => Some(it.none),
            (Self::Confusion(it), Rate::Outside) => Some(it.outside),
            (Self::Confusion(it), Rate::Fpr) => Some(it.negatives.chosen),
            (Self::Effectiveness(it), Rate::Win) => Some(it.overall.wins),
            (Self::SizeImpact(it), Rate::Win) => Some(it.deciding()?.wins),
            (
                Self::Activation(_)
                | Self::Confusion(_)
                | Self::Effectiveness(_)
                | Self::SizeImpact(_)
                | Self::Program(_)
                | Self::Command(_),
                _,
            ) => None,
        }
    }

    /// What people should look at.
    pub fn notices(&self) -> Vec<Notice> {
        match self {
            Self::Activation(it) => it.notices.clone(),
            Self::Confusion(it) => it.notices.clone(),
            Self::Effectiveness(it) => it.notices.clone(),
            Self::SizeImpact(it) => it.notices.clone(),
            Self::Program(_) | Self::Command(_) => Vec::new(),
        }
    }
}

/// One case of a skill runner, as figures see it.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// The case's id.
    pub case_id: &'a str,
    /// What it came to.
    pub verdict: Verdict,
    /// Why.
    pub evidence: &'a Evidence,
}

/// Folds evidence into figures.
#[derive(Debug, Default)]
pub struct Fold(Option<State>);

#[derive(Debug)]
enum State {
    Activation(routing::Fold),
    Confusion(confusion::Fold),
    Effectiveness(compared::Fold),
    SizeImpact(compared::Fold),
    Program(Program),
    Command(Detectors),
}

impl Fold {
    /// Takes in the next case. A case of another kind than the first is passed over: a lane is of
    /// one kind.
    pub fn add(&mut self, seen: Seen<'_>) {
        let state = self.0.get_or_insert_with(|| match seen.evidence {
            Evidence::Activation(_) => State::Activation(routing::Fold::default()),
            Evidence::Confusion(_) => State::Confusion(confusion::Fold::default()),
            Evidence::Effectiveness(_) => State::Effectiveness(compared::Fold::default()),
            Evidence::SizeImpact(_) => State::SizeImpact(compared::Fold::default()),
            Evidence::Program(_) => State::Program(Program::default()),
            Evidence::Command(_) => State::Command(Detectors::default()),
        });
        match (state, seen.evidence) {
            (State::Activation(fold), Evidence::Activation(routed)) => fold.add(seen, routed),
            (State::Confusion(fold), Evidence::Confusion(routed)) => fold.add(seen, routed),
            (State::Effectiveness(fold), Evidence::Effectiveness(compared))
            | (State::SizeImpact(fold), Evidence::SizeImpact(compared)) => fold.add(seen, compared),
            (State::Program(sum), Evidence::Program(foreign)) => sum.add(foreign),
            (State::Command(sum), Evidence::Command(detected)) => sum.add(*detected),
            (
                State::Activation(_)
                | State::Confusion(_)
                | State::Effectiveness(_)
                | State::SizeImpact(_)
                | State::Program(_)
                | State::Command(_),
                _,
            ) => {}
        }
    }

    /// The figures; none without evidence.
    pub fn finish(self) -> Option<Figures> {
        Some(match self.0? {
            State::Activation(fold) => Figures::Activation(fold.finish()),
            State::Confusion(fold) => Figures::Confusion(fold.finish()),
            State::Effectiveness(fold) => Figures::Effectiveness(fold.effectiveness()),
            State::SizeImpact(fold) => Figures::SizeImpact(fold.size_impact()),
            State::Program(sum) => Figures::Program(sum),
            State::Command(sum) => Figures::Command(sum),
        })
    }
}

#[cfg(test)]
mod tests;
