//! How long calls took, by how many took how long: there may be a million, and most are alike.

use std::collections::BTreeMap;

use probity_stats::spread::{Moments, percentile_of_counts};

use super::{Latency, float};

/// Times in whole milliseconds.
#[derive(Debug, Default)]
pub(super) struct Times {
    moments: Moments,
    counts: BTreeMap<u64, u64>,
}

impl Times {
    /// Takes one more into account.
    pub(super) fn push(&mut self, millis: u64) {
        self.moments.push(float(millis));
        *self.counts.entry(millis).or_default() += 1;
    }

    /// What they come to; none of nothing.
    pub(super) fn finish(&self) -> Option<Latency> {
        let (max, _) = self.counts.last_key_value()?;
        let at = |percent| {
            let counts = self.counts.iter().map(|(millis, count)| (float(*millis), *count));
            percentile_of_counts(counts, percent)
        };
        Some(Latency {
            count: self.moments.count(),
            mean: self.moments.mean()?,
            p50: at(50.0)?,
            p95: at(95.0)?,
            p99: at(99.0)?,
            max: float(*max),
        })
    }
}

#[cfg(test)]
mod tests {
    use probity_stats::spread::percentile;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn counts_say_what_the_single_times_would(
            times in prop::collection::vec(prop_oneof![0_u64..20, 0_u64..100_000], 1..300),
        ) {
            let mut counted = Times::default();
            times.iter().for_each(|it| counted.push(*it));
            let mut values: Vec<f64> = times.iter().map(|it| float(*it)).collect();
            let moments: Moments = values.iter().copied().collect();
            let mut at = |percent| percentile(&mut values, percent).unwrap();
            let plain = Latency {
                count: times.len() as u64,
                mean: moments.mean().unwrap(),
                p50: at(50.0),
                p95: at(95.0),
                p99: at(99.0),
                max: at(100.0),
            };
            prop_assert_eq!(counted.finish(), Some(plain));
        }
    }

    #[test]
    fn nothing_takes_no_time() {
        assert_eq!(Times::default().finish(), None);
    }
}
