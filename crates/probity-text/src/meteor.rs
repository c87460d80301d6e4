//! METEOR, as NLTK reckons it: words that are the same, then words of the same stem, and a penalty for
//! every place where the order breaks.
//!
//! S. Banerjee and A. Lavie, "METEOR: An Automatic Metric for MT Evaluation" (2005). The third stage, synonyms
//! of `WordNet`, is left out: it needs a dictionary. Words are those that promptfoo compares: in lower case,
//! parted by blanks, without full stops at their ends.

use std::collections::{BTreeMap, BTreeSet};

use crate::{count::share, porter::stem, space::script_words};

/// How much more precision counts than recall.
const ALPHA: f64 = 0.9;
/// How fast the penalty grows with the share of breaks.
const BETA: f64 = 3.0;
/// The highest penalty.
const GAMMA: f64 = 0.5;

/// METEOR of a text and a reference, from 0 to 1.
pub fn meteor(text: &str, reference: &str) -> f64 {
    let lower = |text: &str| -> Vec<String> {
        script_words(text).into_iter().map(str::to_lowercase).collect()
    };
    let (text, reference) = (lower(text), lower(reference));
    let matches = alignment(&text, &reference);
    let (precision, recall) =
        (share(matches.len(), text.len()), share(matches.len(), reference.len()));
    let denominator = ALPHA * precision + (1.0 - ALPHA) * recall;
    if matches.is_empty() || denominator == 0.0 {
        return 0.0;
    }
    let mean = precision * recall / denominator;
    let penalty = GAMMA * libm::pow(share(chunks(&matches), matches.len()), BETA);
    (1.0 - penalty) * mean
}

/// Places in the text and in the reference that belong together, in the order of the text.
fn alignment(text: &[String], reference: &[String]) -> Vec<(usize, usize)> {
    let numbered =
        |words: &[String]| -> Vec<(usize, String)> { words.iter().cloned().enumerate().collect() };
    let stage = |text: Vec<(usize, String)>, reference: Vec<(usize, String)>| {
        let mut places: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (place, word) in &reference {
            places.entry(word.clone()).or_default().push(*place);
        }
        let mut found = Vec::new();
        let mut left = Vec::new();
        // From the end, each word takes the last of its kind.
        for (place, word) in text.into_iter().rev() {
            match places.get_mut(&word).and_then(Vec::pop) {
                Some(of_reference) => found.push((place, of_reference)),
                None => left.push((place, word)),
            }
        }
        left.reverse();
        let taken: BTreeSet<usize> = found.iter().map(|it| it.1).collect();
        let unused = reference.into_iter().filter(|it| !taken.contains(&it.0)).collect::<Vec<_>>();
        (found, left, unused)
    };
    let stemmed = |words: Vec<(usize, String)>| -> Vec<(usize, String)> {
        words.into_iter().map(|(place, word)| (place, stem(&word))).collect()
    };
    let (mut all, text, reference) = stage(numbered(text), numbered(reference));
    let (of_stems, ..) = stage(stemmed(text), stemmed(reference));
    all.extend(of_stems);
    all.sort_unstable();
    all
}

/// Runs of matches that stand in the same order in both.
fn chunks(matches: &[(usize, usize)]) -> usize {
    let breaks = matches.windows(2).filter(|pair| {
        let [before, after] = pair else { return false };
        (after.0, after.1) != (before.0 + 1, before.1 + 1)
    });
    breaks.count() + usize::from(!matches.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_of_all_words_is_nearly_one() {
        // One chunk of six matches: the penalty is half of (1/6)^3.
        let score = meteor("The cat sat on the mat.", "the cat sat on the mat");
        assert!((score - (1.0 - 0.5 / 216.0)).abs() < 1e-12, "{score}");
    }

    #[test]
    fn words_match_by_their_stems() {
        let score = meteor("cats running", "cat runs");
        assert!((score - (1.0 - 0.5 / 8.0)).abs() < 1e-12, "{score}");
        assert!(meteor("naïves", "naïve") > 0.0);
    }

    #[test]
    fn nothing_in_common_is_nothing() {
        assert!(meteor("", "a b").abs() < 1e-12);
        assert!(meteor("x y", "a b").abs() < 1e-12);
    }

    #[test]
    fn long_texts_take_no_time() {
        let text = "the same word again and again ".repeat(50_000);
        assert!(meteor(&text, &text) > 0.9);
    }
}
