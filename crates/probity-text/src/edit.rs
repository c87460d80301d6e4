//! Edit distance, with bit vectors, so that long texts are compared too.

use std::collections::BTreeMap;

use crate::count::share;

/// The most pairs of characters that are compared: two texts of 90,000 each.
const MOST_PAIRS: usize = 1 << 33;

/// One minus the edits that turn one text into the other, as a share of the longer one's characters.
///
/// Two empty texts are the same. None where the texts are too long to say.
pub fn similarity(a: &str, b: &str) -> Option<f64> {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let longer = a.len().max(b.len());
    if longer == 0 {
        return Some(1.0);
    }
    Some(1.0 - share(distance(&a, &b)?, longer))
}

/// How many insertions, deletions and replacements turn one list into the other; none where they
/// are too long to say.
fn distance(a: &[char], b: &[char]) -> Option<usize> {
    let start = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[start..], &b[start..]);
    let end = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[..a.len() - end], &b[..b.len() - end]);
    let (pattern, text) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    if pattern.is_empty() {
        return Some(text.len());
    }
    fits(pattern.len(), text.len()).then(|| columns(pattern, text))
}

/// Whether so many pairs can be compared.
pub(crate) fn fits(a: usize, b: usize) -> bool {
    a.checked_mul(b).is_some_and(|pairs| pairs <= MOST_PAIRS)
}

/// Where each item of a list occurs, as bits of words of 64. Words without a bit are not kept, so that
/// all of them together are no more than the items.
pub(crate) struct Positions<T> {
    words: BTreeMap<T, Vec<(usize, u64)>>,
    /// The item that was asked for last, with the words that have no bit.
    shown: Option<T>,
    row: Vec<u64>,
}

impl<T: Ord + Copy> Positions<T> {
    pub(crate) fn new(items: &[T]) -> Self {
        let mut words: BTreeMap<T, Vec<(usize, u64)>> = BTreeMap::new();
        for (at, item) in items.iter().enumerate() {
            let (word, bit) = (at / 64, 1 << (at % 64));
            let words = words.entry(*item).or_default();
            match words.last_mut() {
                Some((last, bits)) if *last == word => *bits |= bit,
                Some(_) | None => words.push((word, bit)),
            }
        }
        Self { words, shown: None, row: vec![0; items.len().div_ceil(64)] }
    }

    /// Where an item occurs, if it does.
    pub(crate) fn of(&mut self, item: T) -> Option<&[u64]> {
        let words = self.words.get(&item)?;
        if let Some(earlier) = self.shown.replace(item).and_then(|it| self.words.get(&it)) {
            earlier.iter().for_each(|(word, _)| self.row[*word] = 0);
        }
        words.iter().for_each(|(word, bits)| self.row[*word] = *bits);
        Some(&self.row)
    }
}

/// Myers' algorithm in blocks: a column of the usual table at a time, as the signs of its steps.
fn columns(pattern: &[char], text: &[char]) -> usize {
    let mut positions = Positions::new(pattern);
    let blocks = pattern.len().div_ceil(64);
    let nowhere = vec![0; blocks];
    let mut rises = vec![u64::MAX; blocks];
    let mut falls = vec![0_u64; blocks];
    let last = 1_u64 << ((pattern.len() - 1) % 64);
    let mut distance = pattern.len();
    for c in text {
        let matches = positions.of(*c).unwrap_or(&nowhere);
        // The first row of the table rises by one with each column.
        let (mut rise_in, mut fall_in) = (1_u64, 0_u64);
        for block in 0..blocks {
            let (rise, fall) = (rises[block], falls[block]);
            let vertical = matches[block] | fall;
            let equal = matches[block] | fall_in;
            let diagonal = ((equal & rise).wrapping_add(rise) ^ rise) | equal;
            let mut up = fall | !(diagonal | rise);
            let mut down = rise & diagonal;
            if block + 1 == blocks {
                distance += usize::from(up & last != 0);
                distance -= usize::from(down & last != 0);
            }
            let (rise_out, fall_out) = (up >> 63, down >> 63);
            up = (up << 1) | rise_in;
            down = (down << 1) | fall_in;
            rises[block] = down | !(vertical | up);
            falls[block] = up & vertical;
            (rise_in, fall_in) = (rise_out, fall_out);
        }
    }
    distance
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(a: &str, b: &str) -> Result<(), TestCaseError> {
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        prop_assert_eq!(distance(&chars(a), &chars(b)), Some(strsim::levenshtein(a, b)));
        prop_assert_eq!(similarity(a, b), similarity(b, a));
        prop_assert!((0.0..=1.0).contains(&similarity(a, b).unwrap()));
        Ok(())
    }

    proptest! {
        #[test]
        fn bits_agree_with_the_whole_table(a in "[abcä]{0,20}", b in "[abcä]{0,20}") {
            check(&a, &b)?;
        }

        #[test]
        fn blocks_agree_with_the_whole_table(a in "[ab]{60,200}", b in "[abc]{60,200}") {
            check(&a, &b)?;
        }
    }

    #[test]
    fn positions_take_no_more_words_than_there_are_items() {
        let items: Vec<usize> = (0..100_000).chain(0..100_000).collect();
        let mut positions = Positions::new(&items);
        assert_eq!(positions.words.values().map(Vec::len).sum::<usize>(), items.len());
        for item in [7, 70, 7] {
            let bits = positions.of(item).unwrap().iter().enumerate();
            let words: Vec<_> = bits.filter(|it| *it.1 != 0).map(|it| it.0).collect();
            assert_eq!(words, [item / 64, (100_000 + item) / 64]);
        }
    }

    #[test]
    fn what_is_too_long_is_not_compared() {
        let (a, b) = ("ab".repeat(100_000), "cd".repeat(100_000));
        assert_eq!(similarity(&a, &b), None);
        assert_eq!(similarity("", ""), Some(1.0));
    }
}
