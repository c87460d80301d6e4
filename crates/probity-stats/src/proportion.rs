//! Intervals for a share of cases that passed.
//!
//! An interval lies in [0, 1], holds the observed share, and has a width even if none or all passed.

use super::{Interval, USUAL_LEVEL, number, special};

/// A group of cases that are alike: the variants of one template, the attempts at one question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// How many of its cases passed.
    pub passed: u64,
    /// How many cases it has.
    pub total: u64,
}

/// A share of cases of which some belong together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clustered {
    /// The share of all cases that passed.
    pub share: f64,
    /// Its standard error, with groups as the units that are independent (Liang and Zeger 1986, with
    /// the factor G/(G-1) for few groups).
    pub standard_error: f64,
    /// How many times larger the variance is than it would be for independent cases; not below 1.
    /// `None` if none or all passed: then nothing varies, and nothing can be said of likeness.
    pub design_effect: Option<f64>,
    /// Wilson's interval for as many independent cases as would say the same.
    pub interval: Interval,
}

/// Wilson's score interval for a share (Wilson 1927).
///
/// `None` if there are no cases, if more passed than there are, or if `level` does not lie strictly
/// between 0 and 1.
///
/// ```
/// use probity_stats::proportion::wilson;
///
/// let interval = wilson(8, 10, 0.95).unwrap();
/// assert!((interval.low - 0.490_162_471_536_642_6).abs() < 1e-9);
/// assert!((interval.high - 0.943_317_847_807_117_6).abs() < 1e-9);
/// assert_eq!(wilson(0, 0, 0.95), None);
/// ```
pub fn wilson(passed: u64, total: u64, level: f64) -> Option<Interval> {
    let failed = total.checked_sub(passed)?;
    if total == 0 {
        return None;
    }
    let z = special::normal_reach(level)?;
    Some(score(number(passed), number(failed), z))
}

/// Wilson's interval at the usual level of 95 %.
pub fn wilson_95(passed: u64, total: u64) -> Option<Interval> {
    wilson(passed, total, USUAL_LEVEL)
}

/// An interval for a share where cases of a group are not independent of each other.
///
/// Groups without cases do not count. `None` if fewer than two groups are left, if more cases of a
/// group passed than it has, or if `level` does not lie strictly between 0 and 1.
///
/// ```
/// use probity_stats::proportion::{Group, clustered};
///
/// // Ten templates with ten variants each, and a template passes as a whole or not at all.
/// let groups: Vec<_> = (0..10).map(|i| Group { passed: if i < 6 { 10 } else { 0 }, total: 10 }).collect();
/// let clustered = clustered(&groups, 0.95).unwrap();
/// assert!((clustered.design_effect.unwrap() - 100.0 / 9.0).abs() < 1e-9);
/// ```
pub fn clustered(groups: &[Group], level: f64) -> Option<Clustered> {
    let groups: Vec<_> = groups.iter().filter(|group| **group != EMPTY).copied().collect();
    if groups.len() < 2 || groups.iter().any(|group| group.passed > group.total) {
        return None;
    }
    let z = special::normal_reach(level)?;
    // The sums of 2⁶⁴ counts fit.
    let passed: u128 = groups.iter().map(|group| u128::from(group.passed)).sum();
    let total: u128 = groups.iter().map(|group| u128::from(group.total)).sum();
    let (passed, failed, total) = (number(passed), number(total - passed), number(total));
    let share = passed / total;
    let residuals: f64 = groups
        .iter()
        .map(|group| {
            let of_group = number(group.passed) - number(group.total) * share;
            of_group * of_group
        })
        .sum();
    let few = super::length(&groups) / (super::length(&groups) - 1.0);
    let variance = few * residuals / total / total;
    let design_effect = if passed == 0.0 || failed == 0.0 {
        None
    } else {
        Some((variance / (share * (failed / total) / total)).max(1.0))
    };
    let deflate = design_effect.unwrap_or(1.0);
    Some(Clustered {
        share,
        standard_error: if design_effect.is_some() { variance.sqrt() } else { 0.0 },
        design_effect,
        interval: score(passed / deflate, failed / deflate, z),
    })
}

const EMPTY: Group = Group { passed: 0, total: 0 };

/// Wilson's interval for counts that need not be whole.
fn score(passed: f64, failed: f64, z: f64) -> Interval {
    let total = passed + failed;
    let share = passed / total;
    // This form of the lower limit has no difference in it. The upper limit is the lower one of the
    // failures, so that exchanging both mirrors the interval.
    let root = z * (z * z + 4.0 * passed * (failed / total)).sqrt();
    let lower = |count: f64| 2.0 * count * (count / total) / (2.0 * count + z * z + root);
    let (low, high) = (lower(passed), 1.0 - lower(failed));
    Interval { low: low.clamp(0.0, share), high: high.clamp(share, 1.0) }
}
