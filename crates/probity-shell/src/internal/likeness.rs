//! How alike two commands are, as a figure from 0 to 1.
//!
//! It is no verdict. Two commands that do one task in two ways (`ls` and `ls -l`) are different and much alike; the figure is
//! for partial credit and for sorting by it.

use std::collections::BTreeMap;

use crate::equivalence::{Equivalence, Verdict};

/// From this likeness on two commands are more likely to do the same task than not.
pub const THRESHOLD: f64 = 0.5;

/// How alike the words of two commands are: the cosine of how often each occurs in their canonical forms. Programs, options,
/// operands and patterns are words.
pub fn of_words(compared: &Equivalence) -> f64 {
    if compared.verdict == Verdict::Equal {
        return 1.0;
    }
    let [left, right] = compared.canonical.each_ref().map(|it| counted(it));
    let product = |left: &Counts<'_>, right: &Counts<'_>| -> f64 {
        left.iter().map(|(word, count)| count * right.get(word).copied().unwrap_or(0.0)).sum()
    };
    let lengths = product(&left, &left) * product(&right, &right);
    if lengths == 0.0 { 0.0 } else { (product(&left, &right) / lengths.sqrt()).min(1.0) }
}

/// How alike two commands are whose words and effects are that much alike: as much as the one of both that is more so.
/// Effects are not known of commands that were not executed, or did nothing.
pub fn overall(words: f64, effects: Option<f64>) -> f64 {
    effects.map_or(words, |effects| effects.max(words))
}

type Counts<'t> = BTreeMap<&'t str, f64>;

/// How often each word occurs. A word is letters, digits, and what names, options and patterns are made of.
fn counted(text: &str) -> Counts<'_> {
    let is_between = |it: char| !it.is_alphanumeric() && !matches!(it, '_' | '.' | '/' | '*' | '-');
    let mut counts = Counts::new();
    for word in text.split(is_between).filter(|it| !it.is_empty()) {
        *counts.entry(word).or_default() += 1.0;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Script, equivalence::compare};

    fn words(left: &str, right: &str) -> f64 {
        let parse = |text| Script::parse(text).unwrap();
        of_words(&compare(&parse(left), &parse(right)))
    }

    #[test]
    fn words_are_alike_as_far_as_they_are_the_same() {
        assert!((words("cat f | grep -e x", "grep x f") - 1.0).abs() < 1e-9);
        assert!((words("ls", "pwd")).abs() < 1e-9);
        let near = words("ls /srv/data", "ls -l /srv/data");
        assert!(near > 0.7 && near < 1.0, "{near}");
        assert!(words("rm a", "ls -l /srv/data") < 0.1);
    }

    #[test]
    fn it_does_not_matter_which_is_first() {
        let pair = ["find . -name '*.c' | xargs wc -l", "wc -l *.c"];
        assert!((words(pair[0], pair[1]) - words(pair[1], pair[0])).abs() < 1e-9);
    }

    #[test]
    fn silence_says_nothing() {
        assert!((overall(0.4, None) - 0.4).abs() < 1e-9);
        assert!((overall(0.4, Some(0.9)) - 0.9).abs() < 1e-9);
        assert!((overall(0.4, Some(0.0)) - 0.4).abs() < 1e-9);
    }
}
