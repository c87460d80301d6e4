//! Finds which of many phrases are in a text, in one pass.
//!
//! A phrase is words in lower case; `*` in it stands for a few other characters, and at
//! its beginning or end it says that the word may go on there. One
//! automaton looks for how all phrases begin, and only there the rest is compared, so
//! the work is linear in the text however many phrases there are. (A set of regular
//! expressions with counted gaps took 130 ms to build and half a millisecond a text.)
//! Building the automaton takes longer than looking for all phrases in a few short
//! texts one by one, so that is what is done first.

use std::{
    ops::Range,
    sync::{
        OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use aho_corasick::AhoCorasick;
use memchr::memmem;

/// Bytes that `*` may stand for.
const GAP: usize = 80;

/// Bytes that are searched without the automaton, of all texts together.
const WITHOUT_AUTOMATON: usize = 8 << 10;

/// Phrases, each with the number of the rule it belongs to.
#[derive(Debug)]
pub(super) struct Phrases {
    all: Vec<Phrase>,
    /// How the phrases begin, in their order; built when enough was searched.
    beginnings: OnceLock<AhoCorasick>,
    /// Bytes that were searched so far, as long as there is no automaton.
    searched: AtomicUsize,
}

#[derive(Debug)]
struct Phrase {
    owner: usize,
    /// The part before the first `*`.
    beginning: String,
    /// The parts after it.
    rest: Vec<String>,
    /// Whether the phrase begins and ends with a letter or digit, which then must be
    /// the beginning and the end of a word of the text.
    whole: (bool, bool),
}

impl Phrases {
    /// Compiles phrases, given with the rule each belongs to.
    pub(super) fn compile(
        phrases: impl Iterator<Item = (usize, impl Into<String>)>,
    ) -> Result<Self, String> {
        let mut compiled = Vec::new();
        for (owner, written) in phrases {
            let written: String = written.into();
            let is_plain = |it: u8| it.is_ascii() && !it.is_ascii_uppercase() && it != b'*';
            if written.bytes().all(is_plain) && !written.is_empty() && written.trim() == written {
                let whole = (written.starts_with(is_word), written.ends_with(is_word));
                compiled.push(Phrase { owner, beginning: written, rest: Vec::new(), whole });
                continue;
            }
            let lower = written.to_lowercase();
            let mut parts = lower.split('*').map(str::trim).filter(|part| !part.is_empty());
            let Some(beginning) = parts.next() else {
                return Err(format!("the pattern `{written}` has no words"));
            };
            let rest: Vec<String> = parts.map(str::to_owned).collect();
            let end = rest.last().map_or(beginning, String::as_str);
            let whole = (
                beginning.starts_with(is_word) && !lower.starts_with('*'),
                end.ends_with(is_word) && !lower.ends_with('*'),
            );
            compiled.push(Phrase { owner, beginning: beginning.to_owned(), rest, whole });
        }
        let (beginnings, searched) = (OnceLock::new(), AtomicUsize::new(0));
        Ok(Self { all: compiled, beginnings, searched })
    }

    /// The lowest rule that has a phrase in the text and that `admits` lets match, and where.
    pub(super) fn first(
        &self,
        text: &str,
        admits: impl Fn(usize) -> bool,
    ) -> Option<(usize, Range<usize>)> {
        match self.automaton(text.len()) {
            Some(beginnings) => self.first_by_automaton(beginnings, text, admits),
            None => self.first_one_by_one(text, admits),
        }
    }

    /// The automaton, once it is worth building.
    fn automaton(&self, bytes: usize) -> Option<&AhoCorasick> {
        if let Some(built) = self.beginnings.get() {
            return Some(built);
        }
        let before = self.searched.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) <= WITHOUT_AUTOMATON {
            return None;
        }
        // A list that is too long for an automaton is searched slowly.
        let built = AhoCorasick::new(self.all.iter().map(|it| &it.beginning)).ok()?;
        Some(self.beginnings.get_or_init(|| built))
    }

    fn first_by_automaton(
        &self,
        beginnings: &AhoCorasick,
        text: &str,
        admits: impl Fn(usize) -> bool,
    ) -> Option<(usize, Range<usize>)> {
        let mut best: Option<(usize, Range<usize>)> = None;
        for found in beginnings.find_overlapping_iter(text) {
            let phrase = &self.all[found.pattern().as_usize()];
            if best.as_ref().is_some_and(|(owner, _)| *owner <= phrase.owner)
                || !admits(phrase.owner)
            {
                continue;
            }
            if let Some(end) = phrase.end_at(text, found.start()) {
                best = Some((phrase.owner, found.start()..end));
            }
        }
        best
    }

    /// The same, in the order that the automaton has: where a beginning ends first, and of those that end together the
    /// longest.
    fn first_one_by_one(
        &self,
        text: &str,
        admits: impl Fn(usize) -> bool,
    ) -> Option<(usize, Range<usize>)> {
        let mut best: Option<(usize, usize, Range<usize>)> = None;
        let pairs = Pairs::of(text);
        for phrase in &self.all {
            let beaten = |it: &(usize, usize, Range<usize>)| it.0 < phrase.owner;
            if !pairs.may_have(&phrase.beginning)
                || best.as_ref().is_some_and(beaten)
                || !admits(phrase.owner)
            {
                continue;
            }
            let found = starts_of(&phrase.beginning, text)
                .find_map(|start| Some(start..phrase.end_at(text, start)?));
            let Some(place) = found else { continue };
            let read_to = place.start + phrase.beginning.len();
            let is_better = best.as_ref().is_none_or(|(owner, end, best)| {
                phrase.owner < *owner || (read_to, place.start) < (*end, best.start)
            });
            if is_better {
                best = Some((phrase.owner, read_to, place));
            }
        }
        best.map(|(owner, _, place)| (owner, place))
    }
}

/// Which pairs of bytes follow each other in a text: most phrases have one that it lacks, and need not be looked for.
struct Pairs([u64; Self::WORDS]);

impl Pairs {
    const WORDS: usize = 64;

    fn of(text: &str) -> Self {
        let mut pairs = Self([0; Self::WORDS]);
        for (word, bit) in Self::places(text) {
            pairs.0[word] |= bit;
        }
        pairs
    }

    /// Whether a part of a text may be there.
    fn may_have(&self, part: &str) -> bool {
        Self::places(part).all(|(word, bit)| self.0[word] & bit != 0)
    }

    /// The word and the bit of each pair. The low six bits of two bytes tell letters apart.
    fn places(text: &str) -> impl Iterator<Item = (usize, u64)> {
        let pair = |it: &[u8; 2]| (usize::from(it[0]) % Self::WORDS, 1 << (it[1] % 64));
        text.as_bytes().array_windows().map(pair)
    }
}

/// Everywhere that `part` stands in a text, where one may begin inside another.
fn starts_of(part: &str, text: &str) -> impl Iterator<Item = usize> {
    let finder = memmem::Finder::new(part.as_bytes());
    let mut from = 0;
    std::iter::from_fn(move || {
        let at = from + finder.find(text.as_bytes().get(from..)?)?;
        from = at + 1;
        Some(at)
    })
}

impl Phrase {
    /// Where the phrase ends, if it stands at `start`, where its first part does.
    fn end_at(&self, text: &str, start: usize) -> Option<usize> {
        let begins_inside = self.whole.0 && text[..start].ends_with(is_word);
        if begins_inside {
            return None;
        }
        self.rest_after(text, start + self.beginning.len(), &self.rest)
    }

    fn rest_after(&self, text: &str, from: usize, rest: &[String]) -> Option<usize> {
        let Some((part, later)) = rest.split_first() else {
            let ends_inside = self.whole.1 && text[from..].starts_with(is_word);
            return (!ends_inside).then_some(from);
        };
        let window_end = text.floor_char_boundary(from + GAP + part.len());
        let window = &text[from..window_end];
        window
            .match_indices(part.as_str())
            .find_map(|(at, _)| self.rest_after(text, from + at + part.len(), later))
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found<'t>(phrases: &[&str], text: &'t str) -> Option<(usize, &'t str)> {
        let phrases =
            Phrases::compile(phrases.iter().copied().enumerate()).expect("phrases of a test");
        phrases.first(text, |_| true).map(|(owner, place)| (owner, &text[place]))
    }

    proptest::proptest! {
        #[test]
        fn both_ways_find_the_same(
            phrases in proptest::collection::vec((0..3_usize, "[ab]{1,3}( ?\\* ?[ab]{1,2})?"), 1..8),
            text in "[ab ]{0,24}",
        ) {
            let phrases = phrases.iter().map(|(owner, it)| (*owner, it.as_str()));
            let phrases = Phrases::compile(phrases).expect("phrases of a test");
            let automaton = AhoCorasick::new(phrases.all.iter().map(|it| &it.beginning));
            let automaton = automaton.expect("a short list");
            for barred in 0..4 {
                let admits = |owner: usize| owner != barred;
                let one_by_one = phrases.first_one_by_one(&text, admits);
                proptest::prop_assert_eq!(one_by_one, phrases.first_by_automaton(&automaton, &text, admits));
            }
        }
    }

    #[test]
    fn the_automaton_is_built_when_enough_was_searched() {
        let phrases = Phrases::compile([(0, "slow down")].into_iter()).expect("one phrase");
        let text = "please slow down ".repeat(100);
        assert_eq!(phrases.first(&text, |_| true), Some((0, 7..16)));
        assert!(phrases.beginnings.get().is_none());
        for _ in 0..=WITHOUT_AUTOMATON / text.len() {
            assert_eq!(phrases.first(&text, |_| true), Some((0, 7..16)));
        }
        assert!(phrases.beginnings.get().is_some());
    }

    #[test]
    fn a_phrase_stands_for_whole_words() {
        assert_eq!(found(&["too long"], "it is too long, sir"), Some((0, "too long")));
        assert_eq!(found(&["too long"], "tattoo long"), None);
        assert_eq!(found(&["too long"], "too longish"), None);
        assert_eq!(found(&["cannot get /"], "cannot get /v1"), Some((0, "cannot get /")));
    }

    #[test]
    fn a_star_stands_for_a_few_other_characters() {
        assert_eq!(
            found(&["model * not found"], "the model 'x' was not found"),
            Some((0, "model 'x' was not found"))
        );
        assert_eq!(found(&["model * not found"], "remodel x not found"), None);
        assert_eq!(
            found(&["model * not found"], "model x not founded, not found"),
            Some((0, "model x not founded, not found"))
        );
        let far = format!("model {} not found", "x ".repeat(60));
        assert_eq!(found(&["model * not found"], &far), None);
    }

    #[test]
    fn a_star_at_an_edge_lets_the_word_go_on() {
        assert_eq!(found(&["*timeouterror"], "readtimeouterror: x"), Some((0, "timeouterror")));
        assert_eq!(found(&["*perday*"], "requestsperdayperproject"), Some((0, "perday")));
        assert_eq!(found(&["timeouterror*"], "readtimeouterrors"), None);
    }

    #[test]
    fn the_first_rule_wins_wherever_its_words_stand() {
        assert_eq!(found(&["later", "sooner"], "sooner or later"), Some((0, "later")));
        let phrases =
            Phrases::compile([(0, "later"), (1, "sooner")].into_iter()).expect("two phrases");
        assert_eq!(phrases.first("sooner or later", |owner| owner == 1), Some((1, 0..6)));
    }

    #[test]
    fn a_phrase_without_words_is_refused() {
        assert!(Phrases::compile([(0, " * ")].into_iter()).is_err());
    }
}
