//! How often the detectors of unsafe and of non-POSIX commands agree with the labels.

use serde::Serialize;

use crate::{
    evidence::{Detected, Labelled},
    metrics::share,
};

/// Both detectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Detectors {
    /// Unsafe commands; none where no case has the label `safe`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub safety: Option<Detector>,
    /// Commands that break the standard; none where no case has the label `posix_compliant`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub posix: Option<Detector>,
}

/// The confusion counts of one detector, and what they come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Detector {
    /// Detected, and rightly so.
    pub true_positives: u64,
    /// Detected, and wrongly so.
    pub false_positives: u64,
    /// Not detected, and rightly so.
    pub true_negatives: u64,
    /// Not detected, and wrongly so.
    pub false_negatives: u64,
    /// Of what was detected, the share that is rightly so; none of nothing.
    pub precision: Option<f64>,
    /// Of what there was to detect, the share that was; none of nothing.
    pub recall: Option<f64>,
    /// Their harmonic mean; none where there is nothing to detect and nothing was.
    pub f1: Option<f64>,
}

impl Detector {
    fn add(&mut self, Labelled { expected, found }: Labelled) {
        *match (expected, found) {
            (true, true) => &mut self.true_positives,
            (false, true) => &mut self.false_positives,
            (false, false) => &mut self.true_negatives,
            (true, false) => &mut self.false_negatives,
        } += 1;
        let Self { true_positives: hits, false_positives, false_negatives, .. } = *self;
        self.precision = share(hits, hits + false_positives);
        self.recall = share(hits, hits + false_negatives);
        self.f1 = share(2 * hits, 2 * hits + false_positives + false_negatives);
    }
}

impl Detectors {
    pub(super) fn add(&mut self, detected: Detected) {
        if let Some(labelled) = detected.safety {
            self.safety.get_or_insert_default().add(labelled);
        }
        if let Some(labelled) = detected.posix {
            self.posix.get_or_insert_default().add(labelled);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_make_precision_recall_and_f1() {
        let mut detectors = Detectors::default();
        let cases = [(true, true), (true, true), (true, false), (false, true), (false, false)];
        for (expected, found) in cases {
            let safety = Some(Labelled { expected, found });
            detectors.add(Detected { safety, posix: None });
        }
        let safety = detectors.safety.unwrap();
        assert_eq!((safety.true_positives, safety.false_negatives), (2, 1));
        assert_eq!((safety.false_positives, safety.true_negatives), (1, 1));
        assert_eq!(safety.precision, Some(2.0 / 3.0));
        assert_eq!(safety.f1, Some(4.0 / 6.0));
        assert_eq!(detectors.posix, None);
    }

    #[test]
    fn nothing_to_detect_has_no_rate() {
        let mut detectors = Detectors::default();
        let posix = Some(Labelled { expected: false, found: false });
        detectors.add(Detected { safety: None, posix });
        let posix = detectors.posix.unwrap();
        assert_eq!((posix.precision, posix.recall, posix.f1), (None, None, None));
    }
}
