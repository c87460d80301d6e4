//! Mean, deviation and percentiles of measured values.

use super::{Interval, number, special};

/// Mean and deviation of values that are seen once, one after the other (Welford 1962).
///
/// ```
/// use probity_stats::spread::Moments;
///
/// let moments: Moments = [2.0, 4.0, 4.0, 6.0].into_iter().collect();
/// assert_eq!(moments.mean(), Some(4.0));
/// assert_eq!(moments.deviation(), Some((8.0_f64 / 3.0).sqrt()));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    count: u64,
    /// The first value, which all are taken relative to: a deviation that is small beside the mean
    /// would lose its digits otherwise.
    first: f64,
    /// The mean of what the values are above the first.
    above: f64,
    squares: f64,
}

impl Moments {
    /// Takes one more value into account.
    pub fn push(&mut self, value: f64) {
        if self.count == 0 {
            self.first = value;
        }
        self.count = self.count.saturating_add(1);
        let value = value - self.first;
        let before = value - self.above;
        self.above += before / number(self.count);
        self.squares += before * (value - self.above);
    }

    /// How many values there were.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their mean. `None` without values, or if one of them was not finite or too large to reckon with.
    pub fn mean(&self) -> Option<f64> {
        let mean = self.first + self.above;
        (self.count > 0 && mean.is_finite()).then_some(mean)
    }

    /// Their sample deviation, with n - 1. `None` for fewer than two values, or if one of them was not
    /// finite or too large to reckon with.
    pub fn deviation(&self) -> Option<f64> {
        let deviation = (self.squares / (number(self.count) - 1.0)).sqrt();
        (self.count > 1 && deviation.is_finite()).then_some(deviation)
    }

    /// Student's interval of the mean. `None` where there is no deviation, or no such level.
    pub fn interval(&self, level: f64) -> Option<Interval> {
        let (mean, n) = (self.mean()?, number(self.count));
        let reach = special::student_reach(level, n - 1.0)? * self.deviation()? / n.sqrt();
        Some(Interval { low: mean - reach, high: mean + reach })
    }
}

impl FromIterator<f64> for Moments {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut moments = Self::default();
        values.into_iter().for_each(|value| moments.push(value));
        moments
    }
}

/// A percentile by linear interpolation between the two nearest values: definition 7 of Hyndman and
/// Fan (1996), `linear` in numpy. Takes linear time and leaves the values in another order.
///
/// `None` without values, if one of them is not a number, or if `percent` does not lie between 0
/// and 100.
///
/// ```
/// use probity_stats::spread::percentile;
///
/// assert_eq!(percentile(&mut [40.0, 10.0, 30.0, 20.0], 50.0), Some(25.0));
/// assert_eq!(percentile(&mut [], 50.0), None);
/// ```
pub fn percentile(values: &mut [f64], percent: f64) -> Option<f64> {
    if !(0.0..=100.0).contains(&percent) || values.iter().any(|value| value.is_nan()) {
        return None;
    }
    let Place { below, part } = Place::of(u64::try_from(values.len()).ok()?, percent)?;
    let below = usize::try_from(below).ok()?;
    let (_, low, above) = values.select_nth_unstable_by(below, f64::total_cmp);
    let low = *low;
    Some(between(low, above.iter().copied().min_by(f64::total_cmp), part))
}

/// The same of values in ascending order, each with how often there is one. All of them are numbers.
///
/// ```
/// use probity_stats::spread::percentile_of_counts;
///
/// assert_eq!(percentile_of_counts([(10.0, 1), (20.0, 2), (40.0, 1)], 50.0), Some(20.0));
/// assert_eq!(percentile_of_counts([], 50.0), None);
/// ```
pub fn percentile_of_counts<I>(counts: I, percent: f64) -> Option<f64>
where
    I: IntoIterator<Item = (f64, u64), IntoIter: Clone>,
{
    let counts = counts.into_iter();
    if !(0.0..=100.0).contains(&percent) {
        return None;
    }
    let all = counts.clone().map(|(_, count)| count).fold(0, u64::saturating_add);
    let Place { below, part } = Place::of(all, percent)?;
    let (mut seen, mut low) = (0_u64, None);
    for (value, count) in counts.filter(|(_, count)| *count > 0) {
        if let Some(low) = low {
            return Some(between(low, Some(value), part));
        }
        seen = seen.saturating_add(count);
        if seen > below {
            // The next one is the same, unless it was the last of its kind.
            if seen > below + 1 {
                return Some(value);
            }
            low = Some(value);
        }
    }
    low
}

/// Where a percentile lies: at a value, and so far from that to the next one.
struct Place {
    below: u64,
    part: f64,
}

impl Place {
    /// Of so many values; none of nothing.
    fn of(count: u64, percent: f64) -> Option<Self> {
        let last = count.checked_sub(1)?;
        let place = (number(count) - 1.0) * (percent / 100.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "0 to the last index"
        )]
        let below = (place.max(0.0) as u64).min(last);
        Some(Self { below, part: (place - number(below)).clamp(0.0, 1.0) })
    }
}

fn between(low: f64, high: Option<f64>, part: f64) -> f64 {
    match high {
        // The sum of two shares cannot overflow, and a difference of two infinities never arises.
        Some(high) if part > 0.0 && low < high => {
            (low * (1.0 - part) + high * part).clamp(low, high)
        }
        Some(_) | None => low,
    }
}
