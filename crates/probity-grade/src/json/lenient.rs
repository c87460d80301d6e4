//! The lenient level: unwrap the value, then mend what leaves no doubt.
//!
//! The order is fixed, and the first success ends it. A reply that was cut off
//! never gives a value here: whatever is complete in it is only a part of what
//! the model meant to say.

use std::ops::Range;

use probity_core::json::{Limits, Parsed, parse};
use serde_json::Value;

use super::{
    Found, Step, Wanted,
    blanks::is_blank,
    evidence,
    fences::{Code, Tag, fences},
    rewrite::{with_escapes, without_trailing_commas},
    scan::{Scan, scan},
};

pub(super) fn find(text: &str, wanted: Wanted) -> Option<Found> {
    if text.len() > Limits::default().max_bytes {
        return None;
    }
    let candidates = candidates(text, wanted);
    candidates
        .iter()
        .find_map(|it| it.read(text, wanted, &[]))
        .or_else(|| candidates.iter().find_map(|it| it.read(text, wanted, &[Step::TrailingCommas])))
        .or_else(|| candidates.iter().find_map(|it| it.read(text, wanted, &[Step::Escapes])))
        .or_else(|| {
            let both = [Step::TrailingCommas, Step::Escapes];
            candidates.iter().find_map(|it| it.read(text, wanted, &both))
        })
}

/// A piece of the text that may be the value.
struct Candidate {
    span: Range<usize>,
    /// How it was found; nothing for the whole text.
    step: Option<Step>,
    /// Whether a number or a word alone is a value here.
    scalars: bool,
}

/// The pieces in the order in which they are tried. Apart from the whole text,
/// the fences and the greedy piece they do not overlap, so that reading all of
/// them takes linear time.
fn candidates(text: &str, wanted: Wanted) -> Vec<Candidate> {
    let mut candidates =
        vec![Candidate { span: trimmed(text, 0..text.len()), step: None, scalars: true }];
    let fences = fences(text);
    let code = Code::of(&fences);
    candidates.extend(fences.into_iter().map(|fence| Candidate {
        span: trimmed(text, fence.content),
        step: Some(Step::Fence),
        scalars: fence.tag == Tag::Json,
    }));
    let scan = scan(text);
    let greedy = greedy(text, wanted, &scan);
    let cut = scan.cut.unwrap_or(text.len());
    candidates.extend(scan.regions.into_iter().map(|span| Candidate {
        span,
        step: Some(Step::BalancedScan),
        scalars: false,
    }));
    candidates.extend(greedy.into_iter().map(|span| Candidate {
        span,
        step: Some(Step::GreedyBrackets),
        scalars: false,
    }));
    candidates.retain(|it| match it.step {
        Some(Step::BalancedScan | Step::GreedyBrackets) => {
            it.span.start < cut && !code.holds(it.span.start)
        }
        Some(_) | None => !it.span.is_empty(),
    });
    candidates
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

impl Candidate {
    /// Reads the candidate after the given mends, each of which must change it.
    fn read(&self, text: &str, wanted: Wanted, mends: &[Step]) -> Option<Found> {
        let piece = &text[self.span.clone()];
        let opener = piece.bytes().next()?;
        let is_container = matches!(opener, b'{' | b'[');
        let is_wanted = if is_container {
            // The whole text is the answer whatever its kind is.
            self.step.is_none() || wanted.opens_with(opener)
        } else {
            self.scalars && (self.step.is_none() || wanted == Wanted::Any)
        };
        if !is_wanted || !mends.is_empty() && !is_container {
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
