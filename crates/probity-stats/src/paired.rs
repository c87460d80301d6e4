//! Two runs of the same cases, compared case by case.

use super::{Interval, length, number, special, spread::Moments};

/// How the cases of two runs came out, one answer to a case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pairs {
    /// Passed in both.
    pub both: u64,
    /// Passed in the first run only.
    pub only_first: u64,
    /// Passed in the second run only.
    pub only_second: u64,
    /// Passed in neither.
    pub neither: u64,
}

/// The values of a group that belong together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GroupSum {
    /// Their sum.
    pub sum: f64,
    /// How many they are.
    pub count: u64,
}

/// A mean of differences, and how well it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanDifference {
    /// The mean.
    pub mean: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// Student's interval around the mean. It has no width if all differences are the same.
    pub interval: Interval,
}

/// The exact two-sided p-value of `McNemar`'s test: `b` cases passed in the first run only, `c` in the
/// second run only, and a fair coin would part them at least as unevenly.
///
/// Exact up to b + c = 2⁴⁰, in time that grows with the square root; above by the normal distribution.
///
/// ```
/// use probity_stats::paired::mcnemar_exact;
///
/// assert_eq!(mcnemar_exact(0, 0), 1.0);
/// assert!((mcnemar_exact(1, 5) - 0.21875).abs() < 1e-12);
/// ```
pub fn mcnemar_exact(b: u64, c: u64) -> f64 {
    if b == c {
        return 1.0;
    }
    (2.0 * special::fair_lower_tail(b.min(c), b.max(c))).min(1.0)
}

/// Tango's score interval for the share of the first run minus that of the second (Tango 1998).
///
/// It holds the observed difference, lies in [-1, 1], and has a width even if no case differs.
/// `None` without cases, or if `level` does not lie strictly between 0 and 1.
///
/// ```
/// use probity_stats::paired::{Pairs, tango};
///
/// let same = Pairs { both: 90, only_first: 0, only_second: 0, neither: 10 };
/// let interval = tango(same, 0.95).unwrap();
/// assert!(interval.low < -0.03 && interval.high > 0.03);
/// ```
pub fn tango(pairs: Pairs, level: f64) -> Option<Interval> {
    let Pairs { both, only_first, only_second, neither } = pairs;
    let n: u128 = [both, only_first, only_second, neither].into_iter().map(u128::from).sum();
    if n == 0 {
        return None;
    }
    let z = special::normal_reach(level)?;
    let (n, b, c) = (number(n), number(only_first), number(only_second));
    // The lower limit is the upper one of the runs exchanged.
    Some(Interval { low: -tango_upper(n, c, b, z), high: tango_upper(n, b, c, z) })
}

/// Student's interval for the mean of the cases' differences, for cases that were asked several times
/// and have a mean each.
///
/// `None` for fewer than two differences, if one is not finite or too large to reckon with, or if
/// `level` does not lie strictly between 0 and 1.
///
/// ```
/// use probity_stats::paired::mean_difference;
///
/// let found = mean_difference(&[0.0, 0.2, 0.4], 0.95).unwrap();
/// assert!((found.mean - 0.2).abs() < 1e-12);
/// assert!(found.interval.low < 0.0);
/// ```
pub fn mean_difference(differences: &[f64], level: f64) -> Option<MeanDifference> {
    mean_difference_of(&differences.iter().copied().collect(), level)
}

/// The same of differences that were seen one after the other.
pub fn mean_difference_of(differences: &Moments, level: f64) -> Option<MeanDifference> {
    let n = number(differences.count());
    let standard_error = differences.deviation()? / n.sqrt();
    student(differences.mean()?, standard_error, special::student_reach(level, n - 1.0)?)
}

/// The same where cases of a group are not independent of each other: a list of differences a group.
///
/// The standard error is Liang and Zeger's with the factor G/(G-1), the interval Student's with G - 1
/// degrees of freedom. Groups without cases do not count; `None` if fewer than two are left, and as
/// for [`mean_difference`].
pub fn mean_difference_clustered(groups: &[Vec<f64>], level: f64) -> Option<MeanDifference> {
    let sums = groups.iter().map(|group| {
        let count = u64::try_from(group.len()).unwrap_or(u64::MAX);
        GroupSum { sum: group.iter().sum(), count }
    });
    mean_clustered(&sums.collect::<Vec<_>>(), level)
}

/// The same of any values, whose sums are enough.
///
/// ```
/// use probity_stats::paired::{GroupSum, mean_clustered};
///
/// let groups = [GroupSum { sum: 1.5, count: 3 }, GroupSum { sum: 1.0, count: 1 }];
/// assert!((mean_clustered(&groups, 0.95).unwrap().mean - 0.625).abs() < 1e-12);
/// ```
pub fn mean_clustered(groups: &[GroupSum], level: f64) -> Option<MeanDifference> {
    let groups: Vec<&GroupSum> = groups.iter().filter(|group| group.count > 0).collect();
    let n: f64 = groups.iter().map(|group| number(group.count)).sum();
    let mean = groups.iter().map(|group| group.sum / n).sum::<f64>();
    let residual = |group: &GroupSum| group.sum - number(group.count) * mean;
    let residuals: f64 = groups.iter().map(|group| residual(group) * residual(group)).sum();
    let count = length(&groups);
    let reach = special::student_reach(level, count - 1.0)?;
    student(mean, (count / (count - 1.0) * residuals).sqrt() / n, reach)
}

fn student(mean: f64, standard_error: f64, reach: f64) -> Option<MeanDifference> {
    let interval =
        Interval { low: mean - reach * standard_error, high: mean + reach * standard_error };
    let finite = interval.low.is_finite() && interval.high.is_finite();
    finite.then_some(MeanDifference { mean, standard_error, interval })
}

/// The greatest difference that the score test does not reject. The statistic falls as the supposed
/// difference grows, so halving finds it.
fn tango_upper(n: f64, b: f64, c: f64, z: f64) -> f64 {
    let observed = (b - c) / n;
    let accepted = |supposed: f64| {
        // The share that passes in the second run only, most likely under this difference, is the
        // positive root of a quadratic; the form without a difference is taken.
        let linear = (2.0 * n - b + c) * supposed - b - c;
        let constant = c * supposed * (1.0 - supposed);
        let root = (linear * linear + 8.0 * n * constant).max(0.0).sqrt();
        let share = if linear > 0.0 {
            2.0 * constant / (linear + root)
        } else {
            (root - linear) / (4.0 * n)
        };
        let variance = n * (2.0 * share + supposed * (1.0 - supposed)).max(0.0);
        b - c - n * supposed >= -z * variance.sqrt()
    };
    special::halve(observed, 1.0, accepted).clamp(observed, 1.0)
}
