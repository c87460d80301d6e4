//! The phrase list, as it is written and as it is used.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{
    automaton::{Automaton, Vocabulary},
    grammar::{self, Lists},
    words::Folded,
};

/// What ships with the tool. It is checked by a test, so it cannot fail for a user.
const BUILTIN: &str = include_str!("../../data/refusal.toml");

/// `refusal.toml`, as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    /// A reply of this weight is a refusal.
    pub(super) threshold: i32,
    pub(super) layout: LayoutWeights,
    #[serde(rename = "family")]
    pub(super) families: Vec<Family>,
    lists: BTreeMap<String, Vec<String>>,
    contractions: BTreeMap<String, [String; 2]>,
}

/// What the shape of a reply adds to its weight.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
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
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of the data file")]
pub(super) struct Family {
    pub(super) name: String,
    /// Weight of each phrase in the first two sentences.
    pub(super) opening: i32,
    /// Weight of each phrase after them.
    #[serde(default)]
    pub(super) later: i32,
    /// Whether one phrase is enough when the whole reply is searched.
    #[serde(default)]
    pub(super) decisive: bool,
    /// Whether its phrases say that the reply does not do what was asked.
    #[serde(default)]
    pub(super) declines: bool,
    /// Whether its phrases are apologies.
    #[serde(default)]
    pub(super) apologizes: bool,
    /// Whether its phrases close a conversation, and so count only if the reply declines.
    #[serde(default)]
    pub(super) closes: bool,
    phrases: Vec<String>,
}

/// The list with its phrases compiled.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) list: List,
    pub(super) vocabulary: Vocabulary,
    /// Phrases that can speak for a refusal. Without any, nothing else matters.
    pub(super) grounds: Automaton,
    /// Phrases that never do.
    pub(super) rest: Automaton,
}

/// The list that ships with the tool, read and compiled.
pub(super) fn builtin() -> Compiled {
    let list: List = toml::from_str(BUILTIN).expect("refusal.toml is well-formed");
    compile(list)
}

fn compile(list: List) -> Compiled {
    let mut vocabulary = Vocabulary::default();
    for (short, words) in &list.contractions {
        let words = words.each_ref().map(|word| vocabulary.add(Folded::new(word.as_bytes())));
        vocabulary.contract(Folded::new(short.as_bytes()), words);
    }
    let mut lists = Lists::new();
    for (name, lines) in &list.lists {
        let choices = grammar::read_list(lines, &mut vocabulary)
            .unwrap_or_else(|error| panic!("refusal.toml: list `{name}`: {error}"));
        lists.insert(name.clone(), choices);
    }
    let mut grounds = Automaton::default();
    let mut rest = Automaton::default();
    for (index, family) in list.families.iter().enumerate() {
        let is_ground = family.opening > 0 || family.later > 0;
        let automaton = if is_ground { &mut grounds } else { &mut rest };
        for line in &family.phrases {
            let phrase = grammar::read(line, &lists, &mut vocabulary)
                .unwrap_or_else(|error| panic!("refusal.toml: `{line}`: {error}"));
            automaton.add(&phrase, index);
        }
    }
    Compiled { list, vocabulary, grounds, rest }
}
