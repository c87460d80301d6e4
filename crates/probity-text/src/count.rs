//! How often runs of items occur.

use std::collections::BTreeMap;

/// Every run of `n` items, and how often it is there.
pub(crate) fn runs<T: Ord>(items: &[T], n: usize) -> BTreeMap<&[T], usize> {
    let mut counts = BTreeMap::new();
    for run in items.windows(n) {
        *counts.entry(run).or_insert(0) += 1;
    }
    counts
}

/// How many runs two lists share, each as often as both have it.
pub(crate) fn shared<T: Ord>(a: &BTreeMap<&[T], usize>, b: &BTreeMap<&[T], usize>) -> usize {
    a.iter().map(|(run, count)| b.get(run).map_or(0, |other| *count.min(other))).sum()
}

/// A share of a whole, 0 where there is none.
#[expect(clippy::cast_precision_loss, reason = "texts have fewer than 2^52 parts")]
pub(crate) fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// The harmonic mean of precision and recall.
pub(crate) fn f_measure(precision: f64, recall: f64) -> f64 {
    match precision + recall {
        sum if sum > 0.0 => 2.0 * precision * recall / sum,
        _ => 0.0,
    }
}
