//! The lenient level: unwrap the value, then mend what leaves no doubt.
//!
//! The order is fixed, and the first success ends it. A reply that was cut off
//! never gives a value here: whatever is complete in it is only a part of what
//! the model meant to say.

use std::{collections::BTreeMap, ops::Range};

use probity_core::json::{JsonErrorKind, Limits, Parsed, parse};
use serde_json::Value;

use super::{
    Found, Step, Wanted,
    blanks::is_blank,
    evidence,
    fences::{Code, Fence, Tag},
    rewrite::{with_escapes, without_trailing_commas},
    scan::{Scan, scan},
};

pub(super) fn find(text: &str, wanted: Wanted, fences: &[Fence]) -> Option<Found> {
    let mut attempt = Attempt { text, wanted, broken: Vec::new(), by_start: BTreeMap::new() };
    // Most replies that hold a value hold it here; brackets are looked for where that is not so.
    wrapped(text, fences)
        .find_map(|it| attempt.read(it))
        .or_else(|| bracketed(text, wanted, fences).find_map(|it| attempt.read(it)))
        .or_else(|| attempt.mend(&[Step::TrailingCommas]))
        .or_else(|| attempt.mend(&[Step::Escapes]))
        .or_else(|| attempt.mend(&[Step::TrailingCommas, Step::Escapes]))
}

/// A piece of the text that may be the value.
struct Candidate {
    span: Range<usize>,
    /// How it was found; nothing for the whole text.
    step: Option<Step>,
    /// Whether a number or a word alone is a value here.
    scalars: bool,
}

/// What has been tried.
struct Attempt<'t> {
    text: &'t str,
    wanted: Wanted,
    /// The candidates that are not JSON as they stand, in order.
    broken: Vec<(Candidate, Failure)>,
    /// Which of them starts at a byte, the last one of several.
    by_start: BTreeMap<usize, usize>,
}

/// Why a candidate is not JSON, and the byte of the text at which the parser stopped.
#[derive(Clone)]
struct Failure {
    kind: JsonErrorKind,
    at: usize,
}

/// The whole text and its fences.
fn wrapped(text: &str, fences: &[Fence]) -> impl Iterator<Item = Candidate> {
    let whole = Candidate { span: trimmed(text, 0..text.len()), step: None, scalars: true };
    let inside = fences.iter().map(|fence| Candidate {
        span: trimmed(text, fence.content.clone()),
        step: Some(Step::Fence),
        scalars: fence.tag == Tag::Json,
    });
    std::iter::once(whole).chain(inside).filter(|it| !it.span.is_empty())
}

/// The pieces between brackets in the order in which they are tried. Apart from the greedy one they do not overlap,
/// so that reading all of them takes linear time.
fn bracketed(text: &str, wanted: Wanted, fences: &[Fence]) -> impl Iterator<Item = Candidate> {
    let code = Code::of(fences);
    let scan = scan(text);
    let greedy = greedy(text, wanted, &scan);
    let cut = scan.cut.unwrap_or(text.len());
    let balanced = scan.regions.into_iter().map(|it| (it, Step::BalancedScan));
    let greedy = greedy.into_iter().map(|it| (it, Step::GreedyBrackets));
    balanced
        .chain(greedy)
        .filter(move |(span, _)| span.start < cut && !code.holds(span.start))
        .map(|(span, step)| Candidate { span, step: Some(step), scalars: false })
}

/// From the first wanted bracket to the last one that could close it, for each kind.
///
/// Quotes in prose can mislead the scan; this finds what it missed. It does not
/// look inside what the scan found, where a part would pass for the whole.
fn greedy(text: &str, wanted: Wanted, scan: &Scan) -> Vec<Range<usize>> {
    let between = |(open, close): (char, char)| {
        let start = text.find(open)?;
        let end = text.rfind(close)? + 1;
        let is_part = scan.regions.iter().any(|it| it.start < start && start < it.end);
        (start < end && !is_part).then_some(start..end)
    };
    let kinds = [(b'{', ('{', '}')), (b'[', ('[', ']'))];
    let wanted = kinds.into_iter().filter(|(open, _)| wanted.opens_with(*open));
    let mut spans: Vec<_> = wanted.filter_map(|(_, brackets)| between(brackets)).collect();
    spans.sort_by_key(|it| it.start);
    spans
}

impl Attempt<'_> {
    /// Reads a candidate as it stands.
    fn read(&mut self, candidate: Candidate) -> Option<Found> {
        if !candidate.is_wanted(self.text, self.wanted) {
            return None;
        }
        let failure = match self.known_failure(&candidate.span) {
            Some(failure) => failure,
            None => match parse(&self.text[candidate.span.clone()], &Limits::default()) {
                // What is JSON needs no mends, credible or not.
                Ok(parsed) => return candidate.found(self.text, parsed, &[]),
                Err(error) => Failure { kind: error.kind, at: candidate.span.start + error.offset },
            },
        };
        self.by_start.insert(candidate.span.start, self.broken.len());
        self.broken.push((candidate, failure));
        None
    }

    /// Why a piece is no JSON, if another one that starts at the same byte was read far enough to tell.
    fn known_failure(&self, span: &Range<usize>) -> Option<Failure> {
        let (other, failure) = self.broken.get(*self.by_start.get(&span.start)?)?;
        // The parser looks one byte ahead of where it stops.
        let reached = failure.at + 2 <= other.span.end.min(span.end);
        reached.then(|| failure.clone())
    }

    /// Reads the first candidate that is JSON after these mends, each of which must change it.
    fn mend(&self, mends: &[Step]) -> Option<Found> {
        let mut broken = self.broken.iter();
        broken.find_map(|(candidate, failure)| {
            let piece = &self.text[candidate.span.clone()];
            let is_hopeful = mends.iter().any(|it| failure.may_yield_to(*it, self.text));
            if !is_hopeful || !piece.starts_with(['{', '[']) {
                return None;
            }
            let mut mended = None;
            for mend in mends {
                let piece = mended.as_deref().unwrap_or(piece);
                let next = if *mend == Step::Escapes {
                    with_escapes(piece)?
                } else {
                    without_trailing_commas(piece)?
                };
                mended = Some(next);
            }
            let parsed = parse(mended.as_deref().unwrap_or(piece), &Limits::default()).ok()?;
            candidate.found(self.text, parsed, mends)
        })
    }
}

impl Failure {
    /// Whether a mend changes anything at or before the place where the parser stopped. If it does not, the parser
    /// would stop there again.
    fn may_yield_to(&self, mend: Step, text: &str) -> bool {
        match &self.kind {
            JsonErrorKind::ControlCharacter(_)
            | JsonErrorKind::InvalidEscape(_)
            | JsonErrorKind::InvalidUnicodeEscape
            | JsonErrorKind::UnclosedString => mend == Step::Escapes,
            JsonErrorKind::Unexpected { found: Some(','), .. } => mend == Step::TrailingCommas,
            JsonErrorKind::Unexpected { found: Some(']' | '}'), .. } => {
                let blanks = [' ', '\t', '\n', '\r'];
                mend == Step::TrailingCommas
                    && text[..self.at].trim_end_matches(blanks).ends_with(',')
            }
            JsonErrorKind::Unexpected { .. }
            | JsonErrorKind::LeadingZero
            | JsonErrorKind::ByteOrderMark
            | JsonErrorKind::TooDeep { .. }
            | JsonErrorKind::TooLarge { .. } => false,
        }
    }
}

impl Candidate {
    fn is_wanted(&self, text: &str, wanted: Wanted) -> bool {
        let opener = text.as_bytes().get(self.span.start).filter(|_| !self.span.is_empty());
        match opener {
            // The whole text is the answer whatever its kind is.
            Some(b'{' | b'[') if self.step.is_none() => true,
            Some(opener @ (b'{' | b'[')) => wanted.opens_with(*opener),
            Some(_) => self.scalars && (self.step.is_none() || wanted == Wanted::Any),
            None => false,
        }
    }

    /// The value of the candidate after these mends, if it is credible.
    fn found(&self, text: &str, parsed: Parsed, mends: &[Step]) -> Option<Found> {
        if !self.is_credible(text, &parsed.value) {
            return None;
        }
        let exact = !mends.contains(&Step::Escapes);
        let mut steps: Vec<_> = self.found_by(text).into_iter().collect();
        steps.extend(mends);
        Some(Found {
            parsed: relocated(parsed, self.span.start, exact),
            span: self.span.clone(),
            steps,
        })
    }

    fn is_credible(&self, text: &str, value: &Value) -> bool {
        match self.step {
            Some(Step::BalancedScan | Step::GreedyBrackets) => {
                evidence::convinces(text, &self.span, value)
            }
            Some(_) | None => true,
        }
    }

    fn found_by(&self, text: &str) -> Option<Step> {
        let special = |it: char| is_blank(it) && !matches!(it, ' ' | '\t' | '\n' | '\r');
        let stripped =
            || text[..self.span.start].contains(special) || text[self.span.end..].contains(special);
        self.step.or_else(|| stripped().then_some(Step::StrippedBlanks))
    }
}

fn trimmed(text: &str, span: Range<usize>) -> Range<usize> {
    let piece = &text[span.clone()];
    let start = span.start + (piece.len() - piece.trim_start_matches(is_blank).len());
    let end = span.start + piece.trim_end_matches(is_blank).len();
    start..end.max(start)
}

/// Moves the places of a piece to where they are in the text.
///
/// If the piece was rewritten with another length, they are only known to be in it.
pub(super) fn relocated(mut parsed: Parsed, start: usize, exact: bool) -> Parsed {
    for key in &mut parsed.duplicate_keys {
        key.offset = if exact { key.offset + start } else { start };
    }
    parsed
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A text after mends, each of which changes it.
    fn mended(text: &str, mends: &[Step]) -> Option<String> {
        mends.iter().try_fold(text.to_owned(), |text, mend| match *mend == Step::Escapes {
            true => with_escapes(&text),
            false => without_trailing_commas(&text),
        })
    }

    proptest! {
        #[test]
        fn a_mend_that_is_not_tried_would_not_have_helped(
            text in "[\\[{]([\\[\\]{},: \n\t0a-]|\"[\\\\\n\t\"'na/u0é]{0,4}\"|\\[1,|\\],|\"a\":){0,12}",
        ) {
            let Err(error) = parse(&text, &Limits::default()) else { return Ok(()) };
            let failure = Failure { kind: error.kind, at: error.offset };
            let (commas, escapes) = (Step::TrailingCommas, Step::Escapes);
            for mends in [&[commas][..], &[escapes], &[commas, escapes]] {
                let helps = mended(&text, mends)
                    .is_some_and(|it| parse(&it, &Limits::default()).is_ok());
                let is_tried = mends.iter().any(|it| failure.may_yield_to(*it, &text));
                prop_assert!(is_tried || !helps, "{} {:?}", text, mends);
            }
        }

        #[test]
        fn a_failure_that_is_known_is_the_one_that_reading_gives(
            text in "[\\[{][\\[\\]{}\",: \\\\\n01au-]{0,16}[\\]}]",
            cut in 0..20_usize,
        ) {
            let Err(error) = parse(&text, &Limits::default()) else { return Ok(()) };
            let shorter = &text[..cut.min(text.len())];
            if error.offset + 2 <= shorter.len() {
                let again = parse(shorter, &Limits::default()).expect_err("it stops before the cut");
                prop_assert_eq!((again.kind, again.offset), (error.kind, error.offset));
            }
        }
    }
}
