//! What the figures of kinds of runners are made of: shares, notices, and sheets for people.

use probity_stats::{Interval, proportion::wilson_95};
use serde::Serialize;

use crate::{gate::percent, kind::RunnerKind};

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

    /// With its counts and its interval, for people.
    pub(crate) fn shown(self) -> String {
        let Self { count, of, interval, .. } = self;
        match interval {
            None => "n/a".to_owned(),
            Some(interval) => {
                let (rate, range) = (percent(count, of), shown_interval(interval));
                format!("{rate} ({count} of {of}; 95 % CI {range})")
            }
        }
    }

    /// Its interval, for a column.
    pub(crate) fn shown_range(self) -> String {
        self.interval.map(shown_interval).unwrap_or_default()
    }

    /// Whether it is more than a share of `part` in `whole`, in whole numbers.
    pub(crate) fn exceeds(self, part: u64, whole: u64) -> bool {
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
    pub(crate) fn new(
        code: &'static str,
        about: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self { code, about: about.into(), message: message.into() }
    }
}

pub(crate) fn times(count: u64) -> String {
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
    pub fn kinds(self) -> Vec<RunnerKind> {
        RunnerKind::ALL.into_iter().filter(|it| it.spec().rates.contains(&self)).collect()
    }

    /// Whether more of it is better.
    pub const fn is_good(self) -> bool {
        matches!(self, Self::Tpr | Self::Accuracy | Self::Win)
    }
}

/// Figures for people, which every report can show.
#[derive(Clone, Debug, Default)]
pub struct Sheet {
    /// Names and values.
    pub facts: Vec<(String, String)>,
    /// The most telling first.
    pub tables: Vec<Table>,
    /// What to look at: what it is about, and what is odd about it.
    pub notices: Vec<(String, String)>,
    /// Whether a summary can do without it.
    pub only_in_full: bool,
}

/// Rows under a head; the first column holds names, the others figures.
#[derive(Clone, Debug)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// The names of the columns.
    pub head: Vec<String>,
    /// Each as long as the head.
    pub rows: Vec<Vec<String>>,
    /// Whether rows and columns are the same things.
    pub is_grid: bool,
}

impl Table {
    pub(crate) fn new<const N: usize>(
        title: &str,
        head: [&str; N],
        rows: impl IntoIterator<Item = Vec<String>>,
    ) -> Self {
        Self {
            title: title.to_owned(),
            head: head.map(str::to_owned).into(),
            rows: rows.into_iter().collect(),
            is_grid: false,
        }
    }
}

impl Sheet {
    pub(crate) fn fact(&mut self, name: &str, value: impl Into<String>) {
        self.facts.push((name.to_owned(), value.into()));
    }
}

/// An interval in per cent.
pub fn shown_interval(interval: Interval) -> String {
    format!("{:.1} to {:.1}", interval.low * 100.0, interval.high * 100.0)
}
