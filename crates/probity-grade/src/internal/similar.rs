//! How near two texts are, by the vectors that an embedding model makes of them.
//!
//! Grading asks nobody: a run has the vectors made and keeps [`Nearness`], by which a reply is judged
//! then and later.

use probity_core::named_enum;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Sums over many components are off in their last digits, which nobody meant.
const SLACK: f64 = 1e-9;

named_enum! {
    /// How vectors are compared.
    pub enum VectorMetric ("a metric") {
        /// By the angle between them.
        Cosine = "cosine",
        /// By their dot product.
        Dot = "dot",
        /// By how far they are from each other.
        Euclidean = "euclidean",
    }
}

/// What a reply is compared with.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Similar {
    /// How.
    pub metric: VectorMetric,
    /// The expected texts; the nearest counts.
    pub texts: Vec<String>,
}

/// How near a reply is to the nearest of the expected texts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Nearness {
    /// What the metric says.
    pub value: f64,
    /// Which of the texts that is, from 0.
    pub nearest: usize,
}

impl Similar {
    /// What is asked, as it is recorded: the nearness to other texts is another fact.
    pub(crate) fn question(&self) -> String {
        json!({ "metric": self.metric.as_str(), "texts": self.texts }).to_string()
    }

    /// How near a vector is to the nearest of the others, or why that cannot be said.
    pub fn nearness(&self, reply: &[f32], expected: &[&[f32]]) -> Result<Nearness, String> {
        let mut best: Option<Nearness> = None;
        for (nearest, vector) in expected.iter().enumerate() {
            let value = self.metric.compare(reply, vector)?;
            if best.is_none_or(|it| self.metric.is_nearer(value, it.value)) {
                best = Some(Nearness { value, nearest });
            }
        }
        best.ok_or_else(|| "there is nothing to compare with".to_owned())
    }
}

impl VectorMetric {
    fn compare(self, one: &[f32], other: &[f32]) -> Result<f64, String> {
        if one.len() != other.len() {
            return Err(format!(
                "the vectors of two texts have {} and {} numbers",
                one.len(),
                other.len()
            ));
        }
        let value = match self {
            Self::Cosine => {
                let lengths = dot(one, one).sqrt() * dot(other, other).sqrt();
                if lengths == 0.0 {
                    return Err("a vector has nothing but zeros".to_owned());
                }
                (dot(one, other) / lengths).clamp(-1.0, 1.0)
            }
            Self::Dot => dot(one, other),
            Self::Euclidean => {
                let squares =
                    one.iter().zip(other).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2));
                squares.sum::<f64>().sqrt()
            }
        };
        Ok(value)
    }

    fn is_nearer(self, value: f64, than: f64) -> bool {
        match self {
            Self::Cosine | Self::Dot => value > than,
            Self::Euclidean => value < than,
        }
    }

    /// Whether that is near enough: at least the threshold, or at most so far away.
    pub(crate) fn is_enough(self, value: f64, threshold: f64) -> bool {
        match self {
            Self::Cosine | Self::Dot => value + SLACK >= threshold,
            Self::Euclidean => value <= threshold + SLACK,
        }
    }

    /// The score of a value, from 0 to 1.
    pub(crate) fn score(self, value: f64) -> f64 {
        match self {
            Self::Cosine | Self::Dot => value.clamp(0.0, 1.0),
            Self::Euclidean => 1.0 / (1.0 + value.max(0.0)),
        }
    }

    /// Thresholds that make sense, and how people are told.
    pub(crate) fn thresholds(self) -> (std::ops::RangeInclusive<f64>, &'static str) {
        match self {
            Self::Cosine => (-1.0..=1.0, "the threshold must be from -1 to 1"),
            Self::Dot => (f64::MIN..=f64::MAX, "the threshold must be a number"),
            Self::Euclidean => (0.0..=f64::MAX, "the threshold is the largest distance, from 0 on"),
        }
    }

    /// Where a value is that is not enough.
    pub(crate) const fn beyond(self) -> &'static str {
        match self {
            Self::Cosine | Self::Dot => "below",
            Self::Euclidean => "above",
        }
    }

    /// What its value is called.
    pub(crate) const fn noun(self) -> &'static str {
        match self {
            Self::Cosine => "cosine similarity",
            Self::Dot => "dot product",
            Self::Euclidean => "distance",
        }
    }
}

fn dot(one: &[f32], other: &[f32]) -> f64 {
    one.iter().zip(other).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(metric: VectorMetric, expected: &[&[f32]], value: f64, nearest: usize) {
        let similar = Similar { metric, texts: Vec::new() };
        let found = similar.nearness(&[3.0, 4.0], expected).unwrap();
        assert!((found.value - value).abs() < 1e-12, "{metric}: {found:?}");
        assert_eq!(found.nearest, nearest);
    }

    #[test]
    fn the_nearest_text_counts() {
        check(VectorMetric::Cosine, &[&[4.0, 3.0], &[6.0, 8.0], &[-3.0, -4.0]], 1.0, 1);
        check(VectorMetric::Dot, &[&[4.0, 3.0], &[6.0, 8.0]], 50.0, 1);
        check(VectorMetric::Euclidean, &[&[3.0, 5.0], &[6.0, 8.0]], 1.0, 0);
        check(VectorMetric::Cosine, &[&[-4.0, 3.0]], 0.0, 0);
    }

    #[test]
    fn vectors_that_cannot_be_compared_are_no_answer() {
        let similar = Similar { metric: VectorMetric::Cosine, texts: Vec::new() };
        let why = |expected: &[&[f32]]| similar.nearness(&[1.0, 0.0], expected).unwrap_err();
        assert_eq!(why(&[&[1.0]]), "the vectors of two texts have 2 and 1 numbers");
        assert_eq!(why(&[&[0.0, 0.0]]), "a vector has nothing but zeros");
        assert_eq!(why(&[]), "there is nothing to compare with");
    }

    #[test]
    fn a_distance_is_enough_from_below() {
        assert!(VectorMetric::Euclidean.is_enough(0.5, 0.75));
        assert!(!VectorMetric::Euclidean.is_enough(1.0, 0.75));
        assert!(VectorMetric::Cosine.is_enough(1.0 - 1e-12, 1.0));
        assert!(!VectorMetric::Dot.is_enough(0.5, 0.75));
    }
}
