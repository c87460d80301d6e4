//! How many cases it takes to see a difference.

use super::{is_share, special::normal_exceeded};

/// Two runs of the same cases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paired {
    /// The difference of the two shares that is to be seen.
    pub difference: f64,
    /// The share of cases that come out differently in the two runs; at least the difference.
    pub discordant: f64,
    /// The chance of seeing a difference where there is none, both sides together.
    pub alpha: f64,
    /// The chance of seeing it where it is.
    pub power: f64,
}

/// Two runs of different cases, as many in each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Independent {
    /// The share that passes in the first run.
    pub first: f64,
    /// The share that passes in the second run.
    pub second: f64,
    /// The chance of seeing a difference where there is none, both sides together.
    pub alpha: f64,
    /// The chance of seeing it where it is.
    pub power: f64,
}

/// The cases needed for `McNemar`'s test (Connor 1987).
///
/// `None` if the difference is 0 or larger than the discordant share, if that is above 1, if `alpha`
/// or `power` do not lie strictly between 0 and 1, or if the cases cannot be counted.
///
/// ```
/// use probity_stats::sample_size::{Paired, paired};
///
/// let design = Paired { difference: 0.05, discordant: 0.15, alpha: 0.05, power: 0.8 };
/// assert_eq!(paired(design), Some(469));
/// ```
pub fn paired(design: Paired) -> Option<u64> {
    let Paired { difference, discordant, alpha, power } = design;
    if !(difference.abs() <= discordant && discordant <= 1.0) {
        return None;
    }
    let square = difference * difference;
    needed(discordant, discordant - square, difference, Chances { alpha, power })
}

/// The cases needed in each of two runs whose cases differ (Fleiss, Levin and Paik 2003, without the
/// correction for continuity).
///
/// `None` if both shares are the same or one is not a share, if `alpha` or `power` do not lie strictly
/// between 0 and 1, or if the cases cannot be counted.
///
/// ```
/// use probity_stats::sample_size::{Independent, independent};
///
/// let design = Independent { first: 0.85, second: 0.9, alpha: 0.05, power: 0.8 };
/// assert_eq!(independent(design), Some(686));
/// ```
pub fn independent(design: Independent) -> Option<u64> {
    let Independent { first, second, alpha, power } = design;
    if !(0.0..=1.0).contains(&first) || !(0.0..=1.0).contains(&second) {
        return None;
    }
    let mean = f64::midpoint(first, second);
    let alike = 2.0 * mean * (1.0 - mean);
    let apart = first * (1.0 - first) + second * (1.0 - second);
    needed(alike, apart, first - second, Chances { alpha, power })
}

#[derive(Clone, Copy)]
struct Chances {
    alpha: f64,
    power: f64,
}

/// From the variances of one case without and with the difference.
fn needed(alike: f64, apart: f64, difference: f64, chances: Chances) -> Option<u64> {
    let Chances { alpha, power } = chances;
    if !is_share(alpha) || !is_share(power) || difference == 0.0 {
        return None;
    }
    let (z_alpha, z_power) = (normal_exceeded(alpha / 2.0)?, -normal_exceeded(power)?);
    // A power below what chance alone gives needs no cases, but a test needs one.
    let reach = (z_alpha * alike.sqrt() + z_power * apart.max(0.0).sqrt()).max(0.0);
    let root = reach / difference;
    let cases = (root * root).ceil().max(1.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
    (cases < 1.8e19).then_some(cases as u64)
}
