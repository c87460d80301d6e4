//! What is refused before the parser runs, and what it lets pass although no shell would.

use super::{MAX_BYTES, ParseError};
use crate::tree::Span;

/// Most openings that may be pending at once. The parser has limits of its own; this one spares it the walk.
const MAX_OPEN: usize = 400;

pub(super) fn check(source: &str) -> Result<(), ParseError> {
    if source.len() > MAX_BYTES {
        return Err(ParseError::TooLong);
    }
    if let Some((at, character)) =
        source.char_indices().find(|(_, it)| *it == '\0' || ('\u{FDD0}'..='\u{FDEF}').contains(it))
    {
        return Err(ParseError::Character { character, at });
    }
    openings(source)
}

/// Counts brackets without regard to quotes: too many is too many even if some are text.
fn openings(source: &str) -> Result<(), ParseError> {
    let mut open: usize = 0;
    for byte in source.bytes() {
        match byte {
            b'(' | b'{' => open += 1,
            b')' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        if open > MAX_OPEN {
            return Err(ParseError::TooDeep);
        }
    }
    Ok(())
}

/// The parser takes `${x` without its brace for a whole expansion; a shell waits for the rest.
pub(super) fn unclosed(source: &str, span: Span) -> Option<ParseError> {
    let text = span.of(source);
    (text.starts_with("${") && !text.ends_with('}'))
        .then(|| ParseError::Syntax { message: "`${` without its `}`".to_owned(), span })
}
