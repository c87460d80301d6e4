//! ROUGE, as rouge-score reckons it: F-measures of runs of words and of the longest common subsequence.

use crate::{
    count::{f_measure, runs, share, shared},
    edit::{Positions, fits},
};

/// Whether words are compared by their stems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Words {
    /// As they are written, in lower case.
    AsWritten,
    /// By their Porter stems, those of more than three letters.
    Stemmed,
}

pub use crate::porter::stem;

/// ROUGE-N of a text and a reference, from 0 to 1.
pub fn rouge_n(text: &str, reference: &str, n: usize, words: Words) -> f64 {
    let (text, reference) = (tokens(text, words), tokens(reference, words));
    let (text, reference) = (runs(&text, n.max(1)), runs(&reference, n.max(1)));
    let same = shared(&text, &reference);
    f_measure(share(same, text.values().sum()), share(same, reference.values().sum()))
}

/// ROUGE-L of a text and a reference, from 0 to 1; none where they are too long to say.
pub fn rouge_l(text: &str, reference: &str, words: Words) -> Option<f64> {
    let (text, reference) = (tokens(text, words), tokens(reference, words));
    let text: Vec<&str> = text.iter().map(String::as_str).collect();
    let reference: Vec<&str> = reference.iter().map(String::as_str).collect();
    let same = longest_common(&text, &reference)?;
    Some(f_measure(share(same, text.len()), share(same, reference.len())))
}

/// The length of the longest common subsequence, a row of the usual table at a time, in bits.
fn longest_common(a: &[&str], b: &[&str]) -> Option<usize> {
    if !fits(a.len(), b.len()) {
        return None;
    }
    let mut positions = Positions::new(a);
    let mut row = vec![u64::MAX; a.len().div_ceil(64)];
    for item in b {
        let Some(matches) = positions.of(*item) else { continue };
        let mut carry = false;
        for (bits, matches) in row.iter_mut().zip(matches) {
            let found = *bits & matches;
            let (sum, over) = bits.overflowing_add(found);
            let (sum, over_again) = sum.overflowing_add(u64::from(carry));
            carry = over || over_again;
            *bits = sum | (*bits - found);
        }
    }
    // Bits beyond the last item never change: nothing matches there.
    Some(row.iter().map(|bits| bits.count_zeros() as usize).sum())
}

/// Runs of ASCII letters and digits, in lower case.
fn tokens(text: &str, words: Words) -> Vec<String> {
    let lower = text.to_lowercase();
    let tokens =
        lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|token| !token.is_empty());
    match words {
        Words::AsWritten => tokens.map(ToOwned::to_owned).collect(),
        Words::Stemmed => {
            let shortened =
                |token: &str| if token.len() > 3 { stem(token) } else { token.to_owned() };
            tokens.map(shortened).filter(|token| !token.is_empty()).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn slow(a: &[&str], b: &[&str]) -> usize {
        let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
        for i in 0..a.len() {
            for j in 0..b.len() {
                table[i + 1][j + 1] = match a[i] == b[j] {
                    true => table[i][j] + 1,
                    false => table[i][j + 1].max(table[i + 1][j]),
                };
            }
        }
        table[a.len()][b.len()]
    }

    proptest! {
        #[test]
        fn bits_agree_with_the_table(a in "[abc ]{0,300}", b in "[abc ]{0,300}") {
            let (a, b): (Vec<&str>, Vec<&str>) = (a.split(' ').collect(), b.split(' ').collect());
            prop_assert_eq!(longest_common(&a, &b), Some(slow(&a, &b)));
        }
    }

    #[test]
    fn a_long_text_of_words_that_all_differ_needs_little_memory() {
        let numbers: Vec<String> = (0..150_000).map(|it| it.to_string()).collect();
        let score = rouge_l(&numbers.join(" "), "7 to 9 and 11", Words::AsWritten).unwrap();
        assert!((score - 6.0 / 150_005.0).abs() < 1e-12, "{score}");
    }

    #[test]
    fn order_counts_for_the_longest_subsequence_alone() {
        let (text, reference) = ("on the mat sat the cat", "the cat sat on the mat");
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        close(rouge_n(text, reference, 1, Words::AsWritten), 1.0);
        close(rouge_l(text, reference, Words::AsWritten).unwrap(), 0.5);
    }

    #[test]
    fn stems_are_the_same_where_words_are_not() {
        assert!(rouge_n("running dogs", "run dog", 1, Words::AsWritten) < 0.1);
        assert!(rouge_n("running dogs", "running dog", 1, Words::Stemmed) > 0.9);
    }
}
