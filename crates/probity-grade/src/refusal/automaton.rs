//! Finds every phrase of the list in one pass over the words of a reply.
//!
//! Phrases are compiled into one automaton over word numbers, when this crate is
//! built. A phrase never crosses the end of a sentence and is a few words long, so
//! the work per word is bounded by the list and not by the reply.

use std::borrow::Cow;

use super::words::Folded;

/// The number of a word in the list; zero is a word that no phrase has.
pub(super) type WordId = u32;

pub(super) const UNKNOWN: WordId = 0;

/// One word of a reply, as the automaton sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) word: WordId,
    pub(super) sentence: u32,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// A phrase that was found: tokens `first..end`, and the family it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Match {
    pub(super) family: usize,
    pub(super) first: usize,
    pub(super) end: usize,
}

/// All words of all phrases, and the contractions that stand for some of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Vocabulary {
    /// Open addressing over `entries`, a power of two long: a byte of what stands in each slot, zero for a free one. They
    /// are few enough to stay at hand, and tell nearly always whether there is more to look at.
    pub(super) tags: Cow<'static, [u8]>,
    /// Which of `entries` stands in each slot.
    pub(super) slots: Cow<'static, [u32]>,
    pub(super) entries: Cow<'static, [Entry]>,
    pub(super) words: WordId,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) text: Folded,
    /// One word, or the two that a contraction stands for; kept inline for speed.
    pub(super) stands_for: [WordId; 2],
}

impl Vocabulary {
    /// The number of a word, which is added if it is new.
    pub(super) fn add(&mut self, word: Folded) -> WordId {
        if let Some(&[known]) = self.get(&word) {
            return known;
        }
        self.words += 1;
        let id = self.words;
        self.insert(word, [id, UNKNOWN]);
        id
    }

    /// The words that a folded word stands for.
    #[inline]
    pub(super) fn get(&self, word: &Folded) -> Option<&[WordId]> {
        let tags = &*self.tags;
        if tags.is_empty() || word.is_unknown() {
            return None;
        }
        let (mut slot, wanted) = place(word, tags.len());
        loop {
            let tag = tags[slot];
            if tag == 0 {
                return None;
            }
            if tag == wanted {
                let entry = self.entries.get(self.slots[slot] as usize)?;
                if entry.text == *word {
                    let words = if entry.stands_for[1] == UNKNOWN { 1 } else { 2 };
                    return Some(&entry.stands_for[..words]);
                }
            }
            slot = (slot + 1) & (tags.len() - 1);
        }
    }

    /// Lets a folded word stand for one word or, as `can't` does for `can not`, for two.
    pub(super) fn insert(&mut self, text: Folded, stands_for: [WordId; 2]) {
        self.entries.to_mut().push(Entry { text, stands_for });
        if self.entries.len() * 4 <= self.tags.len() {
            return self.settle(self.entries.len() - 1);
        }
        let slots = (self.entries.len() * 16).next_power_of_two();
        (self.tags, self.slots) = (vec![0; slots].into(), vec![0; slots].into());
        for number in 0..self.entries.len() {
            self.settle(number);
        }
    }

    /// Puts an entry into its slot.
    fn settle(&mut self, number: usize) {
        let (mut slot, tag) = place(&self.entries[number].text, self.tags.len());
        while self.tags[slot] != 0 {
            slot = (slot + 1) & (self.tags.len() - 1);
        }
        self.tags.to_mut()[slot] = tag;
        self.slots.to_mut()[slot] =
            u32::try_from(number).expect("a list has fewer than 2^32 words");
    }
}

/// The first of so many slots that a word may stand in, and its tag there, which is not zero.
#[expect(clippy::cast_possible_truncation, reason = "only some bits of a hash are used")]
fn place(word: &Folded, slots: usize) -> (usize, u8) {
    let hash = word.hash();
    (hash as usize & (slots - 1), (hash >> 48) as u8 | 1)
}

/// The family of a node at which no phrase ends.
pub(super) const NO_FAMILY: u16 = u16::MAX;

/// The compiled phrases, each list of a node a part of one long list.
#[derive(Clone, Debug, Default)]
pub(super) struct Automaton {
    pub(super) nodes: Cow<'static, [Node]>,
    pub(super) edges: Cow<'static, [(WordId, u32)]>,
    pub(super) any: Cow<'static, [u32]>,
    /// The phrases that begin with a word, per word number.
    pub(super) starts: Cow<'static, [Starts]>,
    pub(super) firsts: Cow<'static, [Start]>,
    pub(super) seconds: Cow<'static, [Second]>,
    /// Whether a phrase may go on after the end of a sentence.
    pub(super) across: bool,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Starts {
    /// Part of `firsts`: where the word is a phrase, or any word can follow.
    pub(super) nodes: [u32; 2],
    /// Part of `seconds`, ordered by word: where the second word of a phrase leads. Many phrases begin with the same
    /// word, and few of them go on with the next one of a reply.
    pub(super) seconds: [u32; 2],
    /// What can follow in any of the phrases, so that most words end here.
    pub(super) follow: Follow,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    pub(super) node: u32,
    /// Only as the first word of a sentence.
    pub(super) anchored: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Second {
    pub(super) word: WordId,
    pub(super) node: u32,
    /// Only if the word before it is the first of a sentence.
    pub(super) anchored: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    /// Part of `edges`, ordered by word.
    pub(super) edges: [u32; 2],
    /// Part of `any`: taken by any word, known or not.
    pub(super) any: [u32; 2],
    pub(super) follow: Follow,
    pub(super) family: u16,
}

/// A quick no: which words can follow a node, as one bit per class of words.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Follow(pub(super) u128);

impl Follow {
    /// Any word can follow, or none needs to.
    pub(super) const ALL: Self = Self(u128::MAX);

    pub(super) fn of(word: WordId) -> Self {
        Self(1 << (word & 127))
    }

    pub(super) fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }

    fn has(self, word: WordId) -> bool {
        self.0 & Self::of(word).0 != 0
    }
}

fn part<T>(all: &[T], [start, end]: [u32; 2]) -> &[T] {
    &all[start as usize..end as usize]
}

impl Automaton {
    /// For phrases that were given as they stand, full stops and all: the words of each, of which there is at least one,
    /// and its family.
    pub(super) fn of_literals(phrases: &[(Vec<WordId>, u16)]) -> Self {
        let number = |at: usize| u32::try_from(at).expect("a list has fewer than 2^32 words");
        let (mut nodes, mut edges) = (Vec::new(), Vec::new());
        let most = phrases.iter().filter_map(|(words, _)| words.first()).max();
        let mut begun = vec![(Vec::new(), Vec::new()); most.map_or(0, |it| *it as usize + 1)];
        let mut starts = vec![Starts::default(); begun.len()];
        for (words, family) in phrases {
            let Some((first, rest)) = words.split_first() else { continue };
            let (firsts, seconds) = &mut begun[*first as usize];
            match rest {
                [] => firsts.push(Start { node: number(nodes.len()), anchored: false }),
                [second, ..] => {
                    let node = number(nodes.len() + 1);
                    seconds.push(Second { word: *second, node, anchored: false });
                }
            }
            let follow = rest.first().map_or(Follow::ALL, |it| Follow::of(*it));
            starts[*first as usize].follow.add(follow);
            for word in rest {
                let (from, next) = (number(edges.len()), number(nodes.len() + 1));
                edges.push((*word, next));
                let (edges, follow) = ([from, from + 1], Follow::of(*word));
                nodes.push(Node { edges, any: [0; 2], follow, family: NO_FAMILY });
            }
            let follow = Follow::default();
            nodes.push(Node { edges: [0; 2], any: [0; 2], follow, family: *family });
        }
        let (mut all_firsts, mut all_seconds) = (Vec::new(), Vec::new());
        for (starts, (firsts, mut seconds)) in starts.iter_mut().zip(begun) {
            let from = [number(all_firsts.len()), number(all_seconds.len())];
            // Stable: of phrases that are found together, the one that was given first comes first.
            seconds.sort_by_key(|it| it.word);
            all_firsts.extend(firsts);
            all_seconds.extend(seconds);
            starts.nodes = [from[0], number(all_firsts.len())];
            starts.seconds = [from[1], number(all_seconds.len())];
        }
        Self {
            nodes: nodes.into(),
            edges: edges.into(),
            any: Cow::Borrowed(&[]),
            starts: starts.into(),
            firsts: all_firsts.into(),
            seconds: all_seconds.into(),
            across: true,
        }
    }

    /// Every phrase in `tokens`, ordered by where it begins.
    pub(super) fn find(&self, tokens: &[Token], mut found: impl FnMut(Match)) {
        if self.starts.is_empty() {
            return;
        }
        // Room for as many phrases as are usually open.
        let (mut now, mut next) = (Vec::with_capacity(32), Vec::with_capacity(32));
        for (first, token) in tokens.iter().enumerate().filter(|it| it.1.word != UNKNOWN) {
            let Some(starts) = self.starts.get(token.word as usize) else {
                continue;
            };
            let follow = tokens.get(first + 1).map_or(UNKNOWN, |it| it.word);
            let goes_on = match follow {
                // It goes on with no known word, but may be in the same class as one.
                UNKNOWN => starts.nodes[0] < starts.nodes[1],
                _ => starts.follow.has(follow),
            };
            if !goes_on {
                continue;
            }
            let opens = first == 0 || tokens[first - 1].sentence != token.sentence;
            let same = |it: &&Token| self.across || it.sentence == token.sentence;
            let second = tokens.get(first + 1).filter(same);
            now.clear();
            for start in part(&self.firsts, starts.nodes).iter().filter(|it| opens || !it.anchored)
            {
                let node = &self.nodes[start.node as usize];
                if node.family != NO_FAMILY {
                    found(Match { family: node.family.into(), first, end: first + 1 });
                }
                if second.is_some() {
                    now.extend_from_slice(part(&self.any, node.any));
                }
            }
            if let Some(second) = second.filter(|it| it.word != UNKNOWN) {
                let seconds = part(&self.seconds, starts.seconds);
                let from = seconds.partition_point(|it| it.word < second.word);
                let seconds = seconds[from..].iter().take_while(|it| it.word == second.word);
                now.extend(seconds.filter(|it| opens || !it.anchored).map(|it| it.node));
            }
            let mut end = first + 2;
            while !now.is_empty() {
                for &node in &now {
                    let family = self.nodes[node as usize].family;
                    if family != NO_FAMILY {
                        found(Match { family: family.into(), first, end });
                    }
                }
                let Some(follow) = tokens.get(end).filter(same) else {
                    break;
                };
                self.advance(&now, follow.word, &mut next);
                std::mem::swap(&mut now, &mut next);
                end += 1;
            }
        }
    }

    fn advance(&self, now: &[u32], word: WordId, next: &mut Vec<u32>) {
        next.clear();
        for &node in now {
            let node = &self.nodes[node as usize];
            next.extend_from_slice(part(&self.any, node.any));
            if word == UNKNOWN || !node.follow.has(word) {
                continue;
            }
            let edges = part(&self.edges, node.edges);
            let from = edges.partition_point(|(edge, _)| *edge < word);
            let targets = edges[from..].iter().take_while(|(edge, _)| *edge == word);
            next.extend(targets.map(|(_, target)| *target));
        }
    }
}
