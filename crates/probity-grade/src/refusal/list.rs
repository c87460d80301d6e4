//! The phrase list of `data/refusal.toml`, as `build.rs` compiled it.

use std::borrow::Cow;

use super::{
    automaton::{Automaton, Entry, Follow, Node, Second, Start, Starts, Vocabulary},
    words::Folded,
};

/// What is weighed, without its phrases.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    /// A reply of this weight is a refusal.
    pub(super) threshold: i32,
    pub(super) layout: LayoutWeights,
    pub(super) families: &'static [Family],
}

/// What the shape of a reply adds to its weight.
#[derive(Clone, Copy, Debug)]
pub(super) struct LayoutWeights {
    /// For a reply of fewer bytes than `short-below`: refusals seldom go on for long.
    pub(super) short: i32,
    pub(super) short_below: usize,
    /// For each item of a list, up to `most`.
    pub(super) item: i32,
    pub(super) fence: i32,
    pub(super) verse: i32,
}

/// Phrases that mean the same for the question whether a reply refuses.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of the data file")]
pub(super) struct Family {
    pub(super) name: &'static str,
    /// Weight of each phrase in the first two sentences.
    pub(super) opening: i32,
    /// Weight of each phrase after them.
    pub(super) later: i32,
    /// Whether one phrase is enough when the whole reply is searched.
    pub(super) decisive: bool,
    /// Whether its phrases say that the reply does not do what was asked.
    pub(super) declines: bool,
    /// Whether its phrases are apologies.
    pub(super) apologizes: bool,
    /// Whether its phrases close a conversation, and so count only if the reply declines.
    pub(super) closes: bool,
}

/// The list with its phrases compiled.
#[derive(Clone, Debug)]
pub(super) struct Compiled {
    pub(super) list: List,
    pub(super) vocabulary: Vocabulary,
    /// Phrases that can speak for a refusal. Without any, nothing else matters.
    pub(super) grounds: Automaton,
    /// Phrases that never do.
    pub(super) rest: Automaton,
}

/// The list that ships with the tool. It is part of the binary as it is used: nothing is read or built.
#[expect(clippy::unreadable_literal, reason = "the build script writes it")]
#[expect(clippy::large_stack_arrays, reason = "they are constants, and borrowed from the binary")]
pub(super) fn builtin() -> Compiled {
    include!(concat!(env!("OUT_DIR"), "/refusal.rs"))
}
