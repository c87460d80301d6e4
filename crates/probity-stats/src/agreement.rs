//! How far two or more judges agree, beyond what chance would give.
//!
//! 1 is full agreement, 0 is that of chance, below 0 is worse than chance.

use super::number;

/// What a disagreement between two categories counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weights {
    /// All disagreements alike.
    Equal,
    /// By how many categories the two are apart.
    Linear,
    /// By the square of that.
    Quadratic,
}

/// What the values of judges mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Names: two are the same or they are not.
    Nominal,
    /// Places in an order, whose distances mean nothing.
    Ordinal,
    /// Numbers whose differences mean something.
    Interval,
}

/// Cohen's kappa of two judges (Cohen 1960, with weights 1968). `table[i][j]` counts what the first
/// judge put into category `i` and the second into `j`.
///
/// `None` if the table is not square, or if chance alone leaves no disagreement (as when both judges
/// used only one and the same category).
///
/// ```
/// use probity_stats::agreement::{Weights, cohen_kappa};
///
/// let kappa = cohen_kappa(&[vec![20, 5], vec![10, 15]], Weights::Equal).unwrap();
/// assert!((kappa - 0.4).abs() < 1e-12);
/// ```
pub fn cohen_kappa(table: &[Vec<u64>], weights: Weights) -> Option<f64> {
    if table.iter().any(|row| row.len() != table.len()) {
        return None;
    }
    let rows: Vec<f64> = table.iter().map(|row| sum(row.iter())).collect();
    let columns: Vec<f64> =
        (0..table.len()).map(|j| sum(table.iter().map(|row| &row[j]))).collect();
    let total: f64 = rows.iter().sum();
    let (mut observed, mut expected) = (0.0, 0.0);
    for (i, row) in table.iter().enumerate() {
        for (j, count) in row.iter().enumerate() {
            let weight = weights.of(i.abs_diff(j));
            observed += weight * number(*count);
            expected += weight * rows[i] * (columns[j] / total);
        }
    }
    (expected > 0.0).then(|| 1.0 - observed / expected)
}

/// Fleiss' kappa of three or more judges (Fleiss 1971). For each thing that was judged, how many
/// judges put it into each category; each thing has the same number of judges.
///
/// `None` if the rows differ in length or in the number of judges, if there are fewer than two judges,
/// or if all of them used only one and the same category.
///
/// ```
/// use probity_stats::agreement::fleiss_kappa;
///
/// let kappa = fleiss_kappa(&[vec![3, 0], vec![0, 3], vec![2, 1], vec![1, 2]]).unwrap();
/// assert!((kappa - 1.0 / 3.0).abs() < 1e-12);
/// ```
pub fn fleiss_kappa(counts: &[Vec<u64>]) -> Option<f64> {
    let first = counts.first()?;
    let judges = sum(first.iter());
    let is_like_first = |row: &Vec<u64>| {
        row.len() == first.len() && (sum(row.iter()) - judges).abs() < f64::EPSILON
    };
    if judges < 2.0 || !counts.iter().all(is_like_first) {
        return None;
    }
    let things = super::length(counts);
    let agreeing = |row: &Vec<u64>| {
        let pairs: f64 = row.iter().map(|it| number(*it) * (number(*it) - 1.0)).sum();
        pairs / (judges * (judges - 1.0))
    };
    let observed = counts.iter().map(agreeing).sum::<f64>() / things;
    let share = |at: usize| sum(counts.iter().map(|row| &row[at])) / (things * judges);
    let expected: f64 = (0..first.len()).map(|at| share(at) * share(at)).sum();
    (expected < 1.0).then(|| (observed - expected) / (1.0 - expected))
}

/// Krippendorff's alpha of any number of judges (Krippendorff 2019, chapter 12). For each thing that
/// was judged, the values that it was given, by whomever; a NaN is a value that is missing.
///
/// Things with fewer than two values do not count. `None` if none are left, if all values are the same,
/// or if a value is infinite or too large to reckon with.
///
/// ```
/// use probity_stats::agreement::{Scale, krippendorff_alpha};
///
/// let judged = [vec![1.0, 1.0], vec![2.0, 2.0, f64::NAN], vec![3.0, 4.0], vec![5.0]];
/// let alpha = krippendorff_alpha(&judged, Scale::Interval).unwrap();
/// assert!((alpha - 36.0 / 41.0).abs() < 1e-12);
/// ```
pub fn krippendorff_alpha(judged: &[Vec<f64>], scale: Scale) -> Option<f64> {
    let mut units: Vec<Vec<f64>> = judged
        .iter()
        // Adding 0 makes one zero of two.
        .map(|values| {
            values.iter().map(|value| value + 0.0).filter(|value| !value.is_nan()).collect()
        })
        .filter(|values: &Vec<f64>| values.len() > 1)
        .collect();
    if units.iter().flatten().any(|value| value.is_infinite()) {
        return None;
    }
    let mut all: Vec<f64> = units.iter().flatten().copied().collect();
    all.sort_by(f64::total_cmp);
    if scale == Scale::Ordinal {
        // The distance of two places is that of their middle ranks, so ranks make numbers of them.
        let rank = |value: f64| {
            let below = all.partition_point(|other| *other < value);
            let up_to = all.partition_point(|other| *other <= value);
            super::length(&all[..below]) + super::length(&all[..up_to])
        };
        units.iter_mut().flatten().for_each(|value| *value = rank(*value));
        all = units.iter().flatten().copied().collect();
        all.sort_by(f64::total_cmp);
    }
    let disagreement = match scale {
        Scale::Nominal => unlike_pairs,
        Scale::Ordinal | Scale::Interval => squared_differences,
    };
    let expected = disagreement(&mut all);
    let observed: f64 =
        units.iter_mut().map(|values| disagreement(values) / (super::length(values) - 1.0)).sum();
    let alpha = 1.0 - (super::length(&all) - 1.0) * (observed / expected);
    (expected > 0.0 && alpha.is_finite()).then_some(alpha)
}

impl Weights {
    fn of(self, apart: usize) -> f64 {
        let apart = number(u64::try_from(apart).unwrap_or(u64::MAX));
        match self {
            Self::Equal => apart.min(1.0),
            Self::Linear => apart,
            Self::Quadratic => apart * apart,
        }
    }
}

fn sum<'a>(counts: impl Iterator<Item = &'a u64>) -> f64 {
    number(counts.copied().map(u128::from).sum::<u128>())
}

/// How many ordered pairs of the values differ. Sorts them.
fn unlike_pairs(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = super::length(values);
    values
        .chunk_by(|one, next| one.total_cmp(next).is_eq())
        .map(super::length)
        .map(|same| same * (n - same))
        .sum()
}

/// The sum of the squared differences of all ordered pairs.
fn squared_differences(values: &mut [f64]) -> f64 {
    let n = super::length(values);
    let mean = values.iter().map(|value| value / n).sum::<f64>();
    2.0 * n * values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>()
}
