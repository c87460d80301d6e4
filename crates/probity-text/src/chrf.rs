//! chrF and chrF++, as sacrebleu reckons them: runs of up to six characters, recall counting twice.

use std::{iter::Sum, ops::AddAssign};

use crate::{
    count::{runs, share, shared},
    space::{is_space, words},
};

/// The longest run of characters that is counted.
const CHARACTERS: usize = 6;
/// The longest run of words that chrF++ counts.
const WORDS: usize = 2;
/// How much more recall counts than precision, squared.
const BETA_SQUARED: f64 = 4.0;

/// Whether runs of words count too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// chrF: characters alone.
    Characters,
    /// chrF++: runs of one and two words as well.
    WithWords,
}

/// What chrF is reckoned from. The statistics of a corpus are the sum of those of its texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    orders: [Order; CHARACTERS + WORDS],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Order {
    text: usize,
    reference: usize,
    matched: usize,
}

impl Statistics {
    /// Compares a text with the reference that it is nearest to.
    pub fn of<R: AsRef<str>>(text: &str, references: &[R], variant: Variant) -> Self {
        let mut best: Option<(f64, Self)> = None;
        for reference in references {
            let statistics = Self::of_one(text, reference.as_ref(), variant);
            let score = statistics.score();
            if best.is_none_or(|(highest, _)| score > highest) {
                best = Some((score, statistics));
            }
        }
        best.map(|it| it.1).unwrap_or_default()
    }

    fn of_one(text: &str, reference: &str, variant: Variant) -> Self {
        let characters = |text: &str| text.chars().filter(|c| !is_space(*c)).collect::<Vec<char>>();
        let mut orders = [Order::default(); CHARACTERS + WORDS];
        let (of_characters, of_words) = orders.split_at_mut(CHARACTERS);
        count(&characters(text), &characters(reference), of_characters);
        if variant == Variant::WithWords {
            count(&parted(text), &parted(reference), of_words);
        }
        Self { orders }
    }

    /// The score, from 0 to 1.
    pub fn score(&self) -> f64 {
        let counted = || self.orders.iter().filter(|it| it.text > 0 && it.reference > 0);
        let mean = |share_of: fn(&Order) -> f64| match counted().count() {
            0 => 0.0,
            count => counted().map(share_of).sum::<f64>() / share(count, 1),
        };
        let precision = mean(|it| share(it.matched, it.text));
        let recall = mean(|it| share(it.matched, it.reference));
        if precision + recall == 0.0 {
            return 0.0;
        }
        (1.0 + BETA_SQUARED) * precision * recall / (BETA_SQUARED * precision + recall)
    }
}

impl AddAssign for Statistics {
    fn add_assign(&mut self, other: Self) {
        for (sum, it) in self.orders.iter_mut().zip(other.orders) {
            sum.text += it.text;
            sum.reference += it.reference;
            sum.matched += it.matched;
        }
    }
}

impl Sum for Statistics {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |mut sum, it| {
            sum += it;
            sum
        })
    }
}

/// chrF of one text: what sacrebleu's `sentence_chrf` gives, from 0 to 1.
pub fn sentence<R: AsRef<str>>(text: &str, references: &[R], variant: Variant) -> f64 {
    Statistics::of(text, references, variant).score()
}

/// Counts runs of one item, of two, and so on.
fn count<T: Ord>(text: &[T], reference: &[T], orders: &mut [Order]) {
    for (at, order) in orders.iter_mut().enumerate() {
        let (of_text, of_reference) = (runs(text, at + 1), runs(reference, at + 1));
        order.reference = of_reference.values().sum();
        // Runs that no reference is long enough for are no mistakes.
        order.text = if of_reference.is_empty() { 0 } else { of_text.values().sum() };
        order.matched = shared(&of_text, &of_reference);
    }
}

/// The words, with a mark at the end or else at the start of one taken off.
fn parted(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    for word in words(text) {
        let first = word.chars().next().map_or(0, char::len_utf8);
        let last = word.chars().next_back().map_or(0, char::len_utf8);
        let is_mark = |c: Option<char>| c.is_some_and(|c| c.is_ascii_punctuation());
        if first == word.len() {
            parts.push(word);
        } else if is_mark(word.chars().next_back()) {
            parts.extend([&word[..word.len() - last], &word[word.len() - last..]]);
        } else if is_mark(word.chars().next()) {
            parts.extend([&word[..first], &word[first..]]);
        } else {
            parts.push(word);
        }
    }
    parts
}
