//! How many words two answers share, as the `SQuAD` script counts.

use std::collections::BTreeMap;

use crate::{
    count::{f_measure, share},
    normalize,
    space::words,
};

/// The F1 of the words that a text shares with an answer. Both are normalised as for `SQuAD`.
///
/// Two texts without words are the same, as in version 2 of the script.
pub fn token_f1(text: &str, answer: &str) -> f64 {
    let (text, answer) = (normalize::squad(text), normalize::squad(answer));
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    words(&answer).for_each(|word| *counts.entry(word).or_default() += 1);
    let (all, wanted) = (words(&text).count(), words(&answer).count());
    if all == 0 || wanted == 0 {
        return f64::from(u8::from(all == wanted));
    }
    let mut same = 0;
    for word in words(&text) {
        if let Some(left @ 1..) = counts.get_mut(word) {
            *left -= 1;
            same += 1;
        }
    }
    f_measure(share(same, all), share(same, wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_counted_once_each() {
        assert!((token_f1("The cat, the cat!", "a cat") - 2.0 / 3.0).abs() < 1e-12);
        assert!((token_f1("", "the") - 1.0).abs() < 1e-12);
        assert!(token_f1("dog", "cat").abs() < 1e-12);
    }
}
