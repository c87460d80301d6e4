//! GLEU, as NLTK reckons it: the lesser of precision and recall of runs of 1 to 4 words.
//!
//! Y. Wu et al., "Google's Neural Machine Translation System" (2016). Words are those that promptfoo
//! compares: in lower case, parted by blanks, without full stops at their ends.

use crate::{
    count::{runs, share, shared},
    space::script_words,
};

/// The longest run of words that is counted.
const ORDERS: usize = 4;

/// GLEU of a text and a reference, from 0 to 1. A text without words scores 0.
pub fn gleu(text: &str, reference: &str) -> f64 {
    let (text, reference) = (text.to_lowercase(), reference.to_lowercase());
    let (text, reference) = (script_words(&text), script_words(&reference));
    let (mut same, mut of_text, mut of_reference) = (0, 0, 0);
    for order in 1..=ORDERS {
        let (ours, theirs) = (runs(&text, order), runs(&reference, order));
        same += shared(&ours, &theirs);
        of_text += ours.values().sum::<usize>();
        of_reference += theirs.values().sum::<usize>();
    }
    share(same, of_text.max(of_reference))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longer_text_sets_the_measure() {
        assert!((gleu("The cat sat.", "the cat sat") - 1.0).abs() < 1e-12);
        // Three of three words, two of two pairs, one of one triple; the reference has ten runs.
        assert!((gleu("the cat sat", "the cat sat on") - 6.0 / 10.0).abs() < 1e-12);
        assert!((gleu("the cat sat on", "the cat sat") - 6.0 / 10.0).abs() < 1e-12);
    }

    #[test]
    fn a_text_without_words_scores_nothing() {
        for (text, reference) in [("", "a"), ("a", ""), ("", ""), ("...", "..."), (" \n", ".")] {
            assert!(gleu(text, reference).abs() < 1e-12, "{text:?} {reference:?}");
        }
    }
}
