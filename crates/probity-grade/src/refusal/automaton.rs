//! Finds every phrase of the list in one pass over the words of a reply.
//!
//! Phrases are compiled into one automaton over word numbers. A phrase never
//! crosses the end of a sentence and is a few words long, so the work per word
//! is bounded by the list and not by the reply.

use super::{
    grammar::{Grammar, Piece},
    words::Folded,
};

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
#[derive(Debug, Default)]
pub(super) struct Vocabulary {
    /// Open addressing over `entries`, a power of two long; zero is a free slot.
    slots: Vec<u32>,
    entries: Vec<Entry>,
    words: WordId,
}

#[derive(Debug)]
struct Entry {
    text: Folded,
    /// One word, or the two that a contraction stands for; kept inline for speed.
    stands_for: [WordId; 2],
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

    /// Lets `short` stand for two words, as `can't` does for `can not`.
    pub(super) fn contract(&mut self, short: Folded, stands_for: [WordId; 2]) {
        self.insert(short, stands_for);
    }

    /// The words that a folded word stands for.
    #[inline]
    pub(super) fn get(&self, word: &Folded) -> Option<&[WordId]> {
        if self.slots.is_empty() || word.is_unknown() {
            return None;
        }
        let mut slot = self.slot(word);
        loop {
            let number = self.slots[slot] as usize;
            let entry = self.entries.get(number.checked_sub(1)?)?;
            if entry.text == *word {
                let words = if entry.stands_for[1] == UNKNOWN { 1 } else { 2 };
                return Some(&entry.stands_for[..words]);
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "only the low bits are used")]
    fn slot(&self, word: &Folded) -> usize {
        word.hash() as usize & (self.slots.len() - 1)
    }

    fn insert(&mut self, text: Folded, stands_for: [WordId; 2]) {
        self.entries.push(Entry { text, stands_for });
        if self.entries.len() * 4 <= self.slots.len() {
            return self.settle(self.entries.len());
        }
        self.slots = vec![0; (self.entries.len() * 16).next_power_of_two()];
        for number in 1..=self.entries.len() {
            self.settle(number);
        }
    }

    /// Puts an entry into its slot; entries are numbered from one.
    fn settle(&mut self, number: usize) {
        let mut slot = self.slot(&self.entries[number - 1].text);
        while self.slots[slot] != 0 {
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        self.slots[slot] = u32::try_from(number).expect("a list has fewer than 2^32 words");
    }
}

/// The compiled phrases.
#[derive(Debug, Default)]
pub(super) struct Automaton {
    nodes: Vec<Node>,
    /// The phrases that begin with a word, per word number.
    starts: Vec<Starts>,
    /// Whether a phrase may go on after the end of a sentence.
    across: bool,
}

#[derive(Debug, Default)]
struct Starts {
    nodes: Vec<Start>,
    /// What can follow in any of the phrases, so that most words end here.
    follow: Follow,
}

#[derive(Clone, Copy, Debug)]
struct Start {
    node: u32,
    /// Only as the first word of a sentence.
    anchored: bool,
}

#[derive(Debug, Default)]
struct Node {
    /// Ordered by word.
    edges: Vec<(WordId, u32)>,
    /// Taken by any word, known or not.
    any: Vec<u32>,
    follow: Follow,
    family: Option<usize>,
}

/// A quick no: which words can follow a node, as one bit per class of words.
#[derive(Clone, Copy, Debug, Default)]
struct Follow(u128);

impl Follow {
    /// Any word can follow, or none needs to.
    const ALL: Self = Self(u128::MAX);

    fn of(word: WordId) -> Self {
        Self(1 << (word & 127))
    }

    fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }

    fn has(self, word: WordId) -> bool {
        self.0 & Self::of(word).0 != 0
    }
}

impl Automaton {
    /// For phrases that were given as they stand, full stops and all.
    pub(super) fn across_sentences() -> Self {
        Self { across: true, ..Self::default() }
    }

    /// Adds a phrase. It begins with a word, which the grammar has checked.
    pub(super) fn add(&mut self, grammar: &Grammar, family: usize) {
        let root = self.node();
        let ends = self.sequence(&[root], &grammar.pieces);
        for node in &mut self.nodes[root as usize..] {
            node.edges.sort_unstable();
        }
        for end in ends {
            if end != root {
                self.nodes[end as usize].family = Some(family);
            }
        }
        let firsts = std::mem::take(&mut self.nodes[root as usize].edges);
        for (word, node) in firsts {
            let index = word as usize;
            if self.starts.len() <= index {
                self.starts.resize_with(index + 1, Starts::default);
            }
            let Node { any, follow, family, .. } = &self.nodes[node as usize];
            let starts = &mut self.starts[index];
            let open = family.is_some() || !any.is_empty();
            starts.follow.add(if open { Follow::ALL } else { *follow });
            starts.nodes.push(Start { node, anchored: grammar.anchored });
        }
    }

    /// Every phrase in `tokens`, ordered by where it begins.
    pub(super) fn find(&self, tokens: &[Token], mut found: impl FnMut(Match)) {
        let mut now = Vec::new();
        let mut next = Vec::new();
        for (first, token) in tokens.iter().enumerate() {
            let Some(starts) = self.starts.get(token.word as usize) else {
                continue;
            };
            let follow = tokens.get(first + 1).map_or(UNKNOWN, |it| it.word);
            if !starts.follow.has(follow) {
                continue;
            }
            let opens = first == 0 || tokens[first - 1].sentence != token.sentence;
            let open = starts.nodes.iter().filter(|it| opens || !it.anchored);
            now.clear();
            now.extend(open.map(|start| start.node));
            let mut end = first + 1;
            while !now.is_empty() {
                for &node in &now {
                    if let Some(family) = self.nodes[node as usize].family {
                        found(Match { family, first, end });
                    }
                }
                let same = |it: &&Token| self.across || it.sentence == token.sentence;
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
            next.extend_from_slice(&node.any);
            if word == UNKNOWN || !node.follow.has(word) {
                continue;
            }
            let from = node.edges.partition_point(|(edge, _)| *edge < word);
            let targets = node.edges[from..].iter();
            let targets = targets.take_while(|(edge, _)| *edge == word);
            next.extend(targets.map(|(_, target)| *target));
        }
    }

    /// Adds `pieces` after every node of `from`; gives the nodes where they end.
    fn sequence(&mut self, from: &[u32], pieces: &[Piece]) -> Vec<u32> {
        let mut ends = from.to_vec();
        for piece in pieces {
            ends = self.piece(&ends, piece);
        }
        ends
    }

    fn piece(&mut self, from: &[u32], piece: &Piece) -> Vec<u32> {
        match piece {
            Piece::Word(word) => {
                let target = self.node();
                for &node in from {
                    self.edge(node, *word, target);
                }
                vec![target]
            }
            Piece::Gap(longest) => {
                let mut ends = from.to_vec();
                let mut last = from.to_vec();
                for _ in 0..*longest {
                    let target = self.node();
                    for &node in &last {
                        self.nodes[node as usize].any.push(target);
                    }
                    ends.push(target);
                    last = vec![target];
                }
                ends
            }
            Piece::Either(choices) => self.either(from, choices),
            Piece::Maybe(choices) => {
                let mut ends = self.either(from, choices);
                ends.extend_from_slice(from);
                ends
            }
        }
    }

    /// Choices that end in a word end in one node, or long lists of verbs would multiply.
    fn either(&mut self, from: &[u32], choices: &[Vec<Piece>]) -> Vec<u32> {
        let shared = self.node();
        let mut ends = vec![shared];
        for choice in choices {
            let Some((Piece::Word(last), before)) = choice.split_last() else {
                ends.extend(self.sequence(from, choice));
                continue;
            };
            for node in self.sequence(from, before) {
                self.edge(node, *last, shared);
            }
        }
        ends
    }

    fn node(&mut self) -> u32 {
        self.nodes.push(Node::default());
        u32::try_from(self.nodes.len() - 1).expect("a list has fewer than 2^32 nodes")
    }

    fn edge(&mut self, from: u32, word: WordId, to: u32) {
        let node = &mut self.nodes[from as usize];
        node.edges.push((word, to));
        node.follow.add(Follow::of(word));
    }
}
