//! Finds prompts that say nearly the same.
//!
//! Two prompts are near-duplicates when nine tenths of their words are common to
//! both. Such a pair must share one of its few rarest words, so only prompts that
//! do are compared: the work stays near linear where comparing all pairs would not.

use std::collections::{BTreeMap, BTreeSet};

/// Common words of all words, in tenths, from which on two prompts are near-duplicates.
const TENTHS: usize = 9;
/// Prompts with one of their rarest words in common that are compared, at most.
const MOST_CANDIDATES: usize = 1000;

/// The words of all prompts.
#[derive(Debug, Default)]
pub(super) struct Prompts {
    numbers: BTreeMap<String, u32>,
    uses: Vec<u32>,
    cases: Vec<(String, BTreeSet<u32>)>,
}

/// A case and an earlier one with nearly the same prompt.
pub(super) struct Pair {
    pub(super) earlier: String,
    pub(super) later: String,
}

impl Prompts {
    pub(super) fn add(&mut self, id: &str, prompt: &str) {
        let prompt = prompt.to_lowercase();
        let words: BTreeSet<u32> = prompt
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(|word| self.number(word))
            .collect();
        words.iter().for_each(|word| self.uses[*word as usize] += 1);
        self.cases.push((id.to_owned(), words));
    }

    fn number(&mut self, word: &str) -> u32 {
        if let Some(number) = self.numbers.get(word) {
            return *number;
        }
        let number = u32::try_from(self.uses.len()).unwrap_or(u32::MAX);
        self.numbers.insert(word.to_owned(), number);
        self.uses.push(0);
        number
    }

    /// Each prompt that is nearly an earlier one, with the first such.
    pub(super) fn near_duplicates(&self) -> Vec<Pair> {
        let mut pairs = Vec::new();
        let mut by_rare_word: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (at, (id, words)) in self.cases.iter().enumerate() {
            if words.is_empty() {
                continue;
            }
            let rare = self.rarest(words);
            let candidates: BTreeSet<usize> = rare
                .iter()
                .filter_map(|word| by_rare_word.get(word))
                .flat_map(|prompts| prompts.iter().copied().take(MOST_CANDIDATES))
                .collect();
            let earlier = candidates.into_iter().find(|it| alike(&self.cases[*it].1, words));
            if let Some(earlier) = earlier {
                let earlier = self.cases[earlier].0.clone();
                pairs.push(Pair { earlier, later: id.clone() });
            }
            for word in rare {
                by_rare_word.entry(word).or_default().push(at);
            }
        }
        pairs
    }

    /// As many of the rarest words as make sure that a near-duplicate has one of them.
    fn rarest(&self, words: &BTreeSet<u32>) -> Vec<u32> {
        let mut sorted: Vec<u32> = words.iter().copied().collect();
        sorted.sort_by_key(|word| (self.uses[*word as usize], *word));
        let needed = words.len() - (words.len() * TENTHS).div_ceil(10) + 1;
        sorted.truncate(needed);
        sorted
    }
}

fn alike(a: &BTreeSet<u32>, b: &BTreeSet<u32>) -> bool {
    let common = a.intersection(b).count();
    let all = a.len() + b.len() - common;
    common * 10 >= all * TENTHS
}
