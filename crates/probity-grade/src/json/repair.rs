//! The repair level: read whatever was meant as JSON.
//!
//! [`evidence`] decides where broken JSON starts; from there a parser that
//! accepts anything reads one value. It never goes back except to read a string
//! again whose quotes turned out to be odd, and both that and looking ahead are
//! paid from a budget proportional to the text, so that no input takes more than
//! linear time. Input that exhausts the budget, or nests too deep, has no value.

mod bare;
mod containers;
mod cursor;
mod quoted;
mod verdict;

use std::collections::BTreeSet;

use probity_core::{json::Parsed, located::Node};

use super::{
    Found, Step, Wanted,
    blanks::{skip_blanks, skip_blanks_and_comments},
    evidence::{self, Place},
    fences::{Code, Fence, Tag},
    lenient::relocated,
    scan::scan,
};

/// How deep a repaired value may nest.
const MAX_DEPTH: usize = 256;

/// How many brackets in prose are asked whether they start a value.
const MAX_OPENERS: usize = 1000;

/// How many bytes may be looked at again for each byte of the text.
const BUDGET_PER_BYTE: usize = 16;

pub(super) fn find(text: &str, wanted: Wanted, fences: &[Fence]) -> Option<Found> {
    fences
        .iter()
        .take(MAX_OPENERS)
        .find_map(|fence| in_fence(text, fence, wanted))
        .or_else(|| in_prose(text, wanted, &Code::of(fences)))
}

/// Reads a fenced block that starts with a bracket.
fn in_fence(text: &str, fence: &Fence, wanted: Wanted) -> Option<Found> {
    let content = &text[..fence.content.end];
    let start = skip_blanks_and_comments(content, fence.content.start);
    let opener = *content.as_bytes().get(start)?;
    if !wanted.opens_with(opener) {
        return None;
    }
    let suggests = |place| {
        let scan = scan(&content[start..]);
        let end = scan.regions.first().filter(|it| it.start == 0).map(|it| start + it.end);
        evidence::suggests(content, start, end, place)
    };
    let is_meant = match fence.tag {
        Tag::Json => true,
        Tag::Plain => suggests(Place::Start),
        Tag::Code => suggests(Place::Inside),
    };
    if !is_meant {
        return None;
    }
    let mut found = read(content, start)?;
    if found.steps.contains(&Step::ClosedTail) && content.len() < text.len() {
        // The line that closed the block may have been part of a string.
        let longer = read(text, start).filter(|it| !it.steps.contains(&Step::ClosedTail));
        found = longer.unwrap_or(found);
    }
    found.steps.push(Step::Fence);
    Some(found)
}

/// Reads from the first bracket that was meant as JSON.
fn in_prose(text: &str, wanted: Wanted, code: &Code) -> Option<Found> {
    let scan = scan(text);
    let regions = scan.regions.iter().map(|it| (it.start, Some(it.end)));
    let unclosed = scan.unclosed.iter().map(|&it| (it, None));
    let mut openers: Vec<_> = regions.chain(unclosed).collect();
    openers.sort_unstable();
    let text_start = skip_blanks_and_comments(text, 0);
    let (start, place) = openers
        .into_iter()
        .take(MAX_OPENERS)
        .take_while(|(start, _)| {
            // Nothing is taken out of a value of another kind that was cut off.
            scan.cut.is_none_or(|cut| *start <= cut)
        })
        .filter(|&(start, _)| wanted.opens_with(text.as_bytes()[start]) && !code.holds(start))
        .find_map(|(start, end)| {
            let place = if start == text_start { Place::Start } else { Place::Inside };
            evidence::suggests(text, start, end, place).then_some((start, place))
        })?;
    let mut found = read(text, start)?;
    if place == Place::Inside {
        found.steps.push(Step::BalancedScan);
    }
    Some(found)
}

/// Reads the value that starts at a bracket.
fn read(text: &str, start: usize) -> Option<Found> {
    let inside = skip_blanks(text, start + 1);
    if text[inside..].starts_with("\\\"") || text[inside..].starts_with("\\n") {
        return read_unescaped(text, start);
    }
    let mut repairer = Repairer::new(text, start);
    let node = repairer.root()?;
    let span = start..repairer.at;
    Some(Found {
        parsed: Parsed::from_node(node),
        span,
        steps: repairer.steps.into_iter().collect(),
    })
}

/// Reads a value whose quotes are all escaped, as if it were the inside of a string.
fn read_unescaped(text: &str, start: usize) -> Option<Found> {
    let mut plain = String::with_capacity(text.len() - start);
    let mut rest = text[start..].chars();
    while let Some(it) = rest.next() {
        match it {
            '\\' => match rest.next() {
                Some('n') => plain.push('\n'),
                Some('t') => plain.push('\t'),
                Some('r') => plain.push('\r'),
                Some(other @ ('"' | '\\' | '/' | '\'')) => plain.push(other),
                Some(other) => plain.extend(['\\', other]),
                None => {}
            },
            other => plain.push(other),
        }
    }
    let mut repairer = Repairer::new(&plain, 0);
    let node = repairer.root()?;
    let mut steps = repairer.steps;
    steps.insert(Step::Unescaped);
    Some(Found {
        parsed: relocated(Parsed::from_node(node), start, false),
        span: start..text.len(),
        steps: steps.into_iter().collect(),
    })
}

/// A bracket that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Object,
    Array,
    Tuple,
}

/// What a string or a word is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Key,
    /// The value of a key.
    Member,
    /// An item of an array.
    Item,
}

/// A parser that accepts anything.
struct Repairer<'a> {
    text: &'a str,
    at: usize,
    steps: BTreeSet<Step>,
    stack: Vec<Open>,
    budget: usize,
    /// The budget or the depth is exhausted; the result is not used.
    failed: bool,
}

impl<'a> Repairer<'a> {
    fn new(text: &'a str, at: usize) -> Self {
        Self {
            text,
            at,
            steps: BTreeSet::new(),
            stack: Vec::new(),
            budget: BUDGET_PER_BYTE * text.len() + 4096,
            failed: false,
        }
    }

    fn root(&mut self) -> Option<Node> {
        let node = self.container();
        (!self.failed).then_some(node)
    }

    fn note(&mut self, step: Step) {
        self.steps.insert(step);
    }

    /// Pays for looking at bytes that will be looked at again.
    fn spend(&mut self, bytes: usize) -> bool {
        match self.budget.checked_sub(bytes) {
            Some(left) => self.budget = left,
            None => self.failed = true,
        }
        !self.failed
    }

    fn note_blanks(&mut self, skipped: &str) {
        // All of it is blank, so that only which blanks they are is left to tell.
        if !skipped.bytes().all(|it| matches!(it, b' ' | b'\t' | b'\n' | b'\r')) {
            self.note(Step::StrippedBlanks);
        }
    }
}

#[cfg(test)]
mod tests;
