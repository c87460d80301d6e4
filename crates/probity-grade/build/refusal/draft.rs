//! Makes one automaton of many phrases.

use super::{
    automaton::{Automaton, Follow, NO_FAMILY, Node, Second, Start, Starts, WordId},
    grammar::{Grammar, Piece},
};

/// An automaton to which phrases can be added.
#[derive(Default)]
pub(super) struct Draft {
    nodes: Vec<DraftNode>,
    /// The phrases that begin with a word, per word number.
    starts: Vec<DraftStarts>,
}

#[derive(Default)]
struct DraftStarts {
    nodes: Vec<Start>,
    seconds: Vec<Second>,
    follow: Follow,
}

#[derive(Default)]
struct DraftNode {
    /// Ordered by word.
    edges: Vec<(WordId, u32)>,
    /// Taken by any word, known or not.
    any: Vec<u32>,
    follow: Follow,
    family: Option<u16>,
}

impl Draft {
    /// Adds a phrase. It begins with a word, which the grammar has checked.
    pub(super) fn add(&mut self, grammar: &Grammar, family: u16) {
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
                self.starts.resize_with(index + 1, DraftStarts::default);
            }
            let DraftNode { edges, any, follow, family } = &self.nodes[node as usize];
            let starts = &mut self.starts[index];
            let open = family.is_some() || !any.is_empty();
            starts.follow.add(if open { Follow::ALL } else { *follow });
            let anchored = grammar.anchored;
            if open {
                starts.nodes.push(Start { node, anchored });
            }
            let seconds = edges.iter().map(|&(word, node)| Second { word, node, anchored });
            starts.seconds.extend(seconds);
        }
    }

    /// The automaton, laid out flat.
    pub(super) fn finish(self) -> Automaton {
        let mut flat = Flat::default();
        for DraftNode { edges, any, follow, family } in self.nodes {
            let edges = append(&mut flat.edges, edges);
            let any = append(&mut flat.any, any);
            flat.nodes.push(Node { edges, any, follow, family: family.unwrap_or(NO_FAMILY) });
        }
        for DraftStarts { nodes, mut seconds, follow } in self.starts {
            seconds.sort_by_key(|it| it.word);
            let nodes = append(&mut flat.firsts, nodes);
            let seconds = append(&mut flat.seconds, seconds);
            flat.starts.push(Starts { nodes, seconds, follow });
        }
        let Flat { nodes, edges, any, starts, firsts, seconds } = flat;
        Automaton {
            nodes: nodes.into(),
            edges: edges.into(),
            any: any.into(),
            starts: starts.into(),
            firsts: firsts.into(),
            seconds: seconds.into(),
            across: false,
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
        self.nodes.push(DraftNode::default());
        u32::try_from(self.nodes.len() - 1).expect("a list has fewer than 2^32 nodes")
    }

    fn edge(&mut self, from: u32, word: WordId, to: u32) {
        let node = &mut self.nodes[from as usize];
        node.edges.push((word, to));
        node.follow.add(Follow::of(word));
    }
}

#[derive(Default)]
struct Flat {
    nodes: Vec<Node>,
    edges: Vec<(WordId, u32)>,
    any: Vec<u32>,
    starts: Vec<Starts>,
    firsts: Vec<Start>,
    seconds: Vec<Second>,
}

/// Where what was appended begins and ends.
fn append<T>(all: &mut Vec<T>, more: Vec<T>) -> [u32; 2] {
    let place = |at: usize| u32::try_from(at).expect("a list has fewer than 2^32 edges");
    let start = place(all.len());
    all.extend(more);
    [start, place(all.len())]
}
