//! BLEU, as sacrebleu reckons it: tokenizer 13a, four orders, exponential smoothing.

use std::{collections::BTreeMap, iter::Sum, ops::AddAssign, sync::LazyLock};

use regex::Regex;

use crate::{
    count::{runs, share},
    space::{is_space, words},
};

/// The longest run of tokens that is counted.
const ORDERS: usize = 4;

/// What BLEU is reckoned from. The statistics of a corpus are the sum of those of its texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    length: usize,
    reference_length: usize,
    matched: [usize; ORDERS],
    total: [usize; ORDERS],
}

/// Which orders count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Orders {
    /// All four: for a corpus.
    All,
    /// Those that the text is long enough for: for a sentence.
    Effective,
}

impl Statistics {
    /// Compares a text with its references.
    pub fn of<R: AsRef<str>>(text: &str, references: &[R]) -> Self {
        let mut ids = BTreeMap::new();
        let mut tokens = |text: &str| -> Vec<usize> {
            let id = |word: &str| {
                let next = ids.len();
                *ids.entry(word.to_owned()).or_insert(next)
            };
            words(&tokenized(text)).map(id).collect()
        };
        let references: Vec<Vec<usize>> = references.iter().map(|it| tokens(it.as_ref())).collect();
        let text = tokens(text);
        let mut statistics = Self {
            length: text.len(),
            reference_length: nearest(text.len(), references.iter().map(Vec::len)),
            ..Self::default()
        };
        for order in 0..ORDERS {
            let counted: Vec<_> = references.iter().map(|it| runs(it, order + 1)).collect();
            for (run, count) in runs(&text, order + 1) {
                let most = counted.iter().filter_map(|it| it.get(run)).max();
                statistics.total[order] += count;
                statistics.matched[order] += most.map_or(0, |most| count.min(*most));
            }
        }
        statistics
    }

    /// The score, from 0 to 1.
    pub fn score(&self, orders: Orders) -> f64 {
        if self.matched == [0; ORDERS] {
            return 0.0;
        }
        let mut smoothing = 1.0;
        let mut sum = 0.0;
        let mut reached = 0;
        for (matched, total) in self.matched.into_iter().zip(self.total) {
            if total == 0 {
                break;
            }
            reached += 1;
            sum += libm::log(if matched == 0 {
                smoothing *= 2.0;
                share(1, total) / smoothing
            } else {
                share(matched, total)
            });
        }
        // sacrebleu takes the logarithm of a precision of 0 to be -9999999999.
        if reached < ORDERS && orders == Orders::All {
            return 0.0;
        }
        (self.brevity() * libm::exp(sum / share(reached, 1))).min(1.0)
    }

    /// What a text loses that is shorter than its reference.
    fn brevity(&self) -> f64 {
        match self.length < self.reference_length {
            false => 1.0,
            true if self.length == 0 => 0.0,
            true => libm::exp(1.0 - share(self.reference_length, self.length)),
        }
    }
}

impl AddAssign for Statistics {
    fn add_assign(&mut self, other: Self) {
        self.length += other.length;
        self.reference_length += other.reference_length;
        for order in 0..ORDERS {
            self.matched[order] += other.matched[order];
            self.total[order] += other.total[order];
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

/// BLEU of one text: what sacrebleu's `sentence_bleu` gives, from 0 to 1.
pub fn sentence<R: AsRef<str>>(text: &str, references: &[R]) -> f64 {
    Statistics::of(text, references).score(Orders::Effective)
}

/// The length nearest to that of the text, the shorter of two.
fn nearest(length: usize, references: impl Iterator<Item = usize>) -> usize {
    references.min_by_key(|it| (it.abs_diff(length), *it)).unwrap_or(0)
}

/// The text with blanks around its tokens, as mteval-v13a makes them.
fn tokenized(text: &str) -> String {
    static RULES: LazyLock<[(Regex, &str); 4]> = LazyLock::new(|| {
        let rule = |pattern| Regex::new(pattern).expect("the pattern is ours");
        [
            (rule(r"([\{-~\[-` -&\(-\+:-@/])"), " $1 "),
            (rule(r"([^0-9])([.,])"), "$1 $2 "),
            (rule(r"([.,])([^0-9])"), " $1 $2"),
            (rule("([0-9])(-)"), "$1 $2 "),
        ]
    });
    let mut text = text.trim_end_matches(is_space).replace("<skipped>", "");
    text = text.replace("-\n", "").replace('\n', " ");
    if text.contains('&') {
        text = text.replace("&quot;", "\"").replace("&amp;", "&");
        text = text.replace("&lt;", "<").replace("&gt;", ">");
    }
    text = format!(" {text} ");
    for (pattern, replacement) in &*RULES {
        text = pattern.replace_all(&text, *replacement).into_owned();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn punctuation_is_parted_from_words_but_not_from_numbers() {
        let tokens = |text| words(&tokenized(text)).collect::<Vec<_>>().join(" ");
        assert_eq!(tokens("It's 3.14, no-one (1-2)."), "It's 3.14 , no-one ( 1 - 2 ) .");
        assert_eq!(tokens("&quot;a&quot; -\nb"), "\" a \" b");
    }

    #[test]
    fn the_text_itself_scores_one_and_another_zero() {
        assert!((sentence("the cat", &["the cat"]) - 1.0).abs() < 1e-12);
        assert!(sentence("dog", &["the cat"]).abs() < 1e-12);
        assert!(sentence("", &["the cat"]).abs() < 1e-12);
    }

    #[test]
    fn a_corpus_is_the_sum_of_its_texts() {
        let one = Statistics::of("the cat sat on", &["the cat sat on"]);
        let both: Statistics = [one, one].into_iter().sum();
        assert!((both.score(Orders::All) - 1.0).abs() < 1e-12);
        let short = Statistics::of("the cat", &["the cat"]);
        assert!(short.score(Orders::All).abs() < 1e-12);
    }
}
