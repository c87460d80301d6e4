//! Compiles `data/refusal.toml`: the program has the automaton as data, and builds nothing before the first reply.

// What the program finds phrases with is what the list is compiled for.
#[expect(dead_code, reason = "finding is for the program")]
#[path = "../src/refusal/automaton.rs"]
mod automaton;
#[path = "refusal/draft.rs"]
mod draft;
#[path = "refusal/grammar.rs"]
mod grammar;
#[path = "../src/refusal/quoted.rs"]
mod quoted;
#[expect(dead_code, reason = "places are for the program")]
#[path = "../src/refusal/words.rs"]
mod words;

use std::{
    collections::BTreeMap,
    fmt::{self, Write as _},
    ops::ControlFlow,
};

use automaton::{Automaton, Entry, Node, Second, Start, Starts, Vocabulary};
use draft::Draft;
use grammar::Lists;
use serde::Deserialize;
use words::Folded;

/// `refusal.toml`, as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    threshold: i32,
    layout: LayoutWeights,
    #[serde(rename = "family")]
    families: Vec<Family>,
    lists: BTreeMap<String, Vec<String>>,
    contractions: BTreeMap<String, [String; 2]>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct LayoutWeights {
    short: i32,
    short_below: usize,
    item: i32,
    fence: i32,
    verse: i32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of the data file")]
struct Family {
    name: String,
    opening: i32,
    #[serde(default)]
    later: i32,
    #[serde(default)]
    decisive: bool,
    #[serde(default)]
    declines: bool,
    #[serde(default)]
    apologizes: bool,
    #[serde(default)]
    closes: bool,
    phrases: Vec<String>,
}

/// The list as an expression in Rust, or what is wrong with it.
pub(crate) fn compile(text: &str) -> Result<String, String> {
    let list: List = toml::from_str(text).map_err(|error| error.to_string())?;
    let mut vocabulary = Vocabulary::default();
    for (short, words) in &list.contractions {
        let words = words.each_ref().map(|word| vocabulary.add(folded(word)));
        vocabulary.insert(folded(short), words);
    }
    let mut lists = Lists::new();
    for (name, lines) in &list.lists {
        let choices = grammar::read_list(lines, &mut vocabulary)
            .map_err(|error| format!("list `{name}`: {error}"))?;
        lists.insert(name.clone(), choices);
    }
    let (mut grounds, mut rest) = (Draft::default(), Draft::default());
    for (index, family) in (0..).zip(&list.families) {
        let is_ground = family.opening > 0 || family.later > 0;
        let draft = if is_ground { &mut grounds } else { &mut rest };
        for line in &family.phrases {
            let phrase = grammar::read(line, &lists, &mut vocabulary)
                .map_err(|error| format!("`{line}`: {error}"))?;
            draft.add(&phrase, index);
        }
    }
    let mut out = String::new();
    write(&list, &vocabulary, [&grounds.finish(), &rest.finish()], &mut out)
        .map_err(|error| error.to_string())?;
    Ok(out)
}

/// A word of the list, as words of replies are folded.
fn folded(word: &str) -> Folded {
    let mut folded = Folded::default();
    words::each(word, |it, _| {
        folded = *it;
        ControlFlow::Break(())
    });
    folded
}

fn write(
    list: &List,
    vocabulary: &Vocabulary,
    automata: [&Automaton; 2],
    out: &mut String,
) -> fmt::Result {
    let List { threshold, layout, families, lists: _, contractions: _ } = list;
    let LayoutWeights { short, short_below, item, fence, verse } = layout;
    writeln!(out, "Compiled {{\nlist: List {{\nthreshold: {threshold},")?;
    writeln!(out, "layout: LayoutWeights {{ short: {short}, short_below: {short_below},")?;
    writeln!(out, "item: {item}, fence: {fence}, verse: {verse} }},\nfamilies: &[")?;
    for family in families {
        let Family { name, opening, later, decisive, declines, apologizes, closes, phrases: _ } =
            family;
        writeln!(out, "Family {{ name: {name:?}, opening: {opening}, later: {later},")?;
        writeln!(out, "decisive: {decisive}, declines: {declines},")?;
        writeln!(out, "apologizes: {apologizes}, closes: {closes} }},")?;
    }
    writeln!(out, "],\n}},\nvocabulary: Vocabulary {{")?;
    field("tags", &vocabulary.tags, out, |tag| format!("{tag}"))?;
    field("slots", &vocabulary.slots, out, |slot| format!("{slot}"))?;
    field("entries", &vocabulary.entries, out, |Entry { text, stands_for }| {
        let Folded { chunks, len, has_apostrophe } = text;
        format!(
            "Entry {{ text: Folded {{ chunks: {chunks:?}, len: {len}, has_apostrophe: {has_apostrophe} }}, \
             stands_for: {stands_for:?} }}"
        )
    })?;
    writeln!(out, "words: {},\n}},", vocabulary.words)?;
    for (name, automaton) in ["grounds", "rest"].into_iter().zip(automata) {
        let Automaton { nodes, edges, any, starts, firsts, seconds, across } = automaton;
        writeln!(out, "{name}: Automaton {{")?;
        field("nodes", nodes, out, |Node { edges, any, follow, family }| {
            let follow = follow.0;
            format!(
                "Node {{ edges: {edges:?}, any: {any:?}, follow: Follow({follow}), family: {family} }}"
            )
        })?;
        field("edges", edges, out, |edge| format!("{edge:?}"))?;
        field("any", any, out, |node| format!("{node}"))?;
        field("starts", starts, out, |Starts { nodes, seconds, follow }| {
            let follow = follow.0;
            format!("Starts {{ nodes: {nodes:?}, seconds: {seconds:?}, follow: Follow({follow}) }}")
        })?;
        field("firsts", firsts, out, |Start { node, anchored }| {
            format!("Start {{ node: {node}, anchored: {anchored} }}")
        })?;
        field("seconds", seconds, out, |Second { word, node, anchored }| {
            format!("Second {{ word: {word}, node: {node}, anchored: {anchored} }}")
        })?;
        writeln!(out, "across: {across},\n}},")?;
    }
    writeln!(out, "}}")
}

fn field<T>(name: &str, all: &[T], out: &mut String, one: impl Fn(&T) -> String) -> fmt::Result {
    writeln!(out, "{name}: Cow::Borrowed(&[")?;
    all.iter().try_for_each(|it| writeln!(out, "{},", one(it)))?;
    writeln!(out, "]),")
}
