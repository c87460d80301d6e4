//! Scores of one name, over all results that have them.

use std::collections::BTreeMap;

use probity_stats::{
    Interval, USUAL_LEVEL,
    paired::{GroupSum, mean_clustered},
    proportion::{Group, clustered, wilson_95},
    spread::Moments,
};
use serde::{Deserialize, Serialize};

use super::{ResultFacts, is_zero};
use crate::{case::Category, classification::Verdict, score::Score};

/// One named score over all results that have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScoreSummary {
    /// Results that have a value.
    pub count: u64,
    /// Results that have none, because nobody could say.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unscored: u64,
    /// Results for which it was enough.
    pub passed: u64,
    /// The mean of the values.
    pub mean: Option<f64>,
    /// The mean's 95 % confidence interval.
    pub interval: Option<Interval>,
}

/// All that is known of one named score.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScoreFigures {
    /// For people and files.
    pub summary: ScoreSummary,
    /// For gates.
    pub all: ScoreSlice,
    /// The same by category.
    pub categories: BTreeMap<Category, ScoreSlice>,
    /// For derived figures.
    pub total: ScoreTotal,
}

/// Sums of scores, as their scorers said them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ScoreTotal {
    /// Of all of them.
    pub plain: f64,
    /// The same, each times its weight. One that is only reported counts once.
    pub weighted: f64,
}

impl ScoreTotal {
    fn add(&mut self, score: &Score) {
        let Some(amount) = score.amount() else { return };
        self.plain += amount;
        self.weighted += if score.is_required() { amount * score.weight } else { amount };
    }
}

/// What gates see of a score.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScoreSlice {
    /// Of those that have a value.
    pub mean: Mean,
    /// Those that have none, although the result is no error.
    pub undecided: u64,
}

impl ScoreSlice {
    fn add(&mut self, value: Option<f64>, verdict: Verdict) {
        match value {
            Some(value) => self.mean.push(value),
            None => self.undecided += u64::from(verdict != Verdict::Error),
        }
    }
}

/// The mean of values from 0 to 1. Each is taken to the twelfth decimal, so that the order of
/// the values makes no difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mean {
    /// How many values.
    pub count: u64,
    /// Their sum.
    pub trillionths: u128,
}

impl Mean {
    /// What a value of 1 adds to the sum.
    pub const ONE: u64 = 1_000_000_000_000;

    /// Takes one more value into account.
    pub fn push(&mut self, value: f64) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "0 to a trillion"
        )]
        let trillionths = (value.clamp(0.0, 1.0) * Self::ONE as f64).round() as u64;
        self.count += 1;
        self.trillionths += u128::from(trillionths);
    }

    /// The nearest float; none of nothing.
    pub fn value(self) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "the nearest float is meant")]
        let value = self.trillionths as f64 / Self::ONE as f64 / self.count as f64;
        (self.count > 0).then_some(value)
    }
}

/// Folds the scores of one name.
#[derive(Debug, Default)]
pub(super) struct ScoreFold {
    unscored: u64,
    passed: u64,
    values: Moments,
    all_or_nothing: bool,
    units: Units,
    all: ScoreSlice,
    categories: BTreeMap<Category, ScoreSlice>,
    total: ScoreTotal,
}

/// The values that belong together: those of a group of cases, or of a case.
#[derive(Debug, Default)]
struct Units {
    groups: BTreeMap<String, Unit>,
    /// The case of no group whose values are coming in. The results of a case come one after the other.
    open: Unit,
    last: String,
    /// Earlier ones with several values.
    several: Vec<Unit>,
    singles: Singles,
}

/// Cases of no group with a single value each. There may be a million, and of most scores none takes any memory.
#[derive(Debug, Default)]
struct Singles {
    zeros: u64,
    ones: u64,
    others: Vec<f64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Unit {
    sum: f64,
    held: u64,
    count: u64,
}

impl Unit {
    fn of(value: f64) -> Self {
        Self { sum: value, held: u64::from(value >= 1.0), count: 1 }
    }

    fn add(&mut self, value: f64) {
        let Self { sum, held, count } = Self::of(value);
        self.sum += sum;
        self.held += held;
        self.count += count;
    }
}

impl Singles {
    #[expect(clippy::float_cmp, reason = "these two values alone are counted")]
    fn push(&mut self, value: f64) {
        match value {
            _ if value == 0.0 => self.zeros += 1,
            _ if value == 1.0 => self.ones += 1,
            _ => self.others.push(value),
        }
    }

    fn all(&self) -> impl Iterator<Item = f64> {
        let counted = [(0.0, self.zeros), (1.0, self.ones)].into_iter();
        let counted = counted.flat_map(|(value, times)| (0..times).map(move |_| value));
        counted.chain(self.others.iter().copied())
    }
}

impl Units {
    fn add(&mut self, value: f64, result: &ResultFacts) {
        if let Some(group) = &result.group {
            return self.groups.entry(group.clone()).or_default().add(value);
        }
        if self.open.count == 0 || self.last != result.case_id {
            self.last.clone_from(&result.case_id);
            self.close();
        }
        self.open.add(value);
    }

    /// Puts the case away whose values came in.
    fn close(&mut self) {
        let unit = std::mem::take(&mut self.open);
        match unit.count {
            0 => {}
            1 => self.singles.push(unit.sum),
            _ => self.several.push(unit),
        }
    }

    fn all(&self) -> impl Iterator<Item = Unit> {
        let open = Some(self.open).filter(|it| it.count > 0);
        let whole = self.groups.values().chain(&self.several).copied();
        whole.chain(self.singles.all().map(Unit::of)).chain(open)
    }

    /// The interval of a mean of zeros and ones, which is a share.
    fn of_share(&self) -> Option<Interval> {
        let of_units = || {
            let groups = self.all().map(|it| Group { passed: it.held, total: it.count });
            clustered(&groups.collect::<Vec<_>>(), USUAL_LEVEL).map(|it| it.interval)
        };
        let of_values = || wilson_95(self.all().map(|it| it.held).sum(), self.count());
        self.are_several().then(of_units).flatten().or_else(of_values)
    }

    fn of_mean(&self, values: &Moments) -> Option<Interval> {
        let of_units = || {
            let sums = self.all().map(|it| GroupSum { sum: it.sum, count: it.count });
            mean_clustered(&sums.collect::<Vec<_>>(), USUAL_LEVEL).map(|it| it.interval)
        };
        let of_values = || values.interval(USUAL_LEVEL);
        let interval = self.are_several().then(of_units).flatten().or_else(of_values)?;
        Some(Interval { low: interval.low.max(0.0), high: interval.high.min(1.0) })
    }

    fn count(&self) -> u64 {
        self.all().map(|it| it.count).sum()
    }

    /// Whether any of them has more than one value.
    fn are_several(&self) -> bool {
        let others = self.groups.values().chain([&self.open]);
        !self.several.is_empty() || others.into_iter().any(|it| it.count > 1)
    }
}

impl ScoreFold {
    /// Takes in a score of a result.
    pub(super) fn add(&mut self, score: &Score, result: &ResultFacts) {
        let verdict = result.verdict;
        self.passed += u64::from(score.passed);
        self.total.add(score);
        self.all.add(score.value, verdict);
        if let Some(category) = &result.category {
            self.categories.entry(category.clone()).or_default().add(score.value, verdict);
        }
        let Some(value) = score.value else {
            self.unscored += 1;
            return;
        };
        let is_first = self.values.count() == 0;
        self.values.push(value);
        let is_one = value >= 1.0;
        let is_bit = value <= 0.0 || is_one;
        self.all_or_nothing = is_bit && (self.all_or_nothing || is_first);
        self.units.add(value, result);
    }

    pub(super) fn finish(self) -> ScoreFigures {
        let count = self.values.count();
        let interval = match self.all_or_nothing {
            true => self.units.of_share(),
            false => self.units.of_mean(&self.values),
        };
        let (unscored, passed, mean) = (self.unscored, self.passed, self.values.mean());
        let summary = ScoreSummary { count, unscored, passed, mean, interval };
        ScoreFigures { summary, all: self.all, categories: self.categories, total: self.total }
    }
}
