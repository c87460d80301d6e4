//! The built-in policy against secrets.
//!
//! Three kinds of evidence: the format of a token ([`tokens`]), formats that take
//! more than a glance to tell ([`checks`]), and a name such as `password` that is
//! given a literal value ([`keyword`]). One pass over the text for literals decides
//! which of them look closer, and each looks at a bounded piece of text.

mod checks;
mod keyword;
mod placeholder;
mod shape;
#[cfg(test)]
mod tests;
mod tokens;

use std::{cmp::Reverse, ops::Range, sync::LazyLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use super::{Found, MOST_HITS};

/// What to do where a literal is found.
enum Lead {
    /// Compare with the format that starts with the literal.
    Shape(&'static str, shape::Shape),
    /// Look closer, from where the literal starts.
    Check(&'static str, checks::Check),
}

struct Formats {
    literals: AhoCorasick,
    /// By pattern of `literals`.
    leads: Vec<Lead>,
}

static FORMATS: LazyLock<Formats> = LazyLock::new(|| {
    let shapes = tokens::TOKENS.iter().flat_map(|(rule, shapes)| {
        shapes.iter().map(|it| {
            let (literal, shape) = shape::Shape::parse(it);
            (literal, Lead::Shape(rule, shape))
        })
    });
    let checks = checks::CHECKS.iter().map(|it| (it.literal, Lead::Check(it.rule, it.check)));
    let (literals, leads): (Vec<&str>, Vec<Lead>) = shapes.chain(checks).unzip();
    // The list is long enough for the slower kind to be the default.
    let kind = Some(AhoCorasickKind::DFA);
    let literals = AhoCorasick::builder().kind(kind).build(literals);
    let literals = literals.expect("a list of literals of some hundred states");
    Formats { literals, leads }
});

/// The places that hold a secret, in text order.
pub(super) fn scan(text: &str) -> Vec<Found<&'static str>> {
    let mut found: Vec<Found<&'static str>> = formats(text).take(MOST_HITS).collect();
    found.sort_by_key(|it| (it.span.start, Reverse(it.span.end)));
    found.dedup_by(|next, kept| next.span.start < kept.span.end);
    let known: Vec<Range<usize>> = found.iter().map(|it| it.span.clone()).collect();
    // A token whose format is known says more than the name it is assigned to.
    let assigned = keyword::scan(text).filter(|it| !known.iter().any(|known| overlap(known, it)));
    found.extend(assigned.take(MOST_HITS).map(|span| Found { rule: "keyword", span }));
    found.sort_by_key(|it| (it.span.start, it.span.end));
    found.dedup_by(|next, kept| next.span == kept.span);
    found
}

fn formats(text: &str) -> impl Iterator<Item = Found<&'static str>> {
    let Formats { literals, leads } = &*FORMATS;
    literals.find_overlapping_iter(text).filter_map(move |it| {
        let (rule, span) = match &leads[it.pattern().as_usize()] {
            Lead::Shape(rule, shape) => (rule, shape.at(text, it.start(), it.end())?),
            Lead::Check(rule, check) => (rule, check(text, it.range())?),
        };
        Some(Found { rule: *rule, span })
    })
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}
