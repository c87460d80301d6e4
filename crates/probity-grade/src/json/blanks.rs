//! Blanks and comments, as generously as models write them.

/// How long the line of a `#` comment may be.
const LINE_REACH: usize = 1024;

/// Whether a character is blank, be it one that JSON does not know or one that nobody sees.
pub(super) fn is_blank(it: char) -> bool {
    it.is_whitespace()
        || matches!(it, '\u{feff}' | '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{180e}')
}

/// The first byte from `at` on that is not blank.
pub(super) fn skip_blanks(text: &str, at: usize) -> usize {
    let rest = &text.as_bytes()[at..];
    let usual = |it: &u8| matches!(it, b' ' | b'\t' | b'\n' | b'\r');
    let at = at + rest.iter().position(|it| !usual(it)).unwrap_or(rest.len());
    // Nearly always something else than a blank is here.
    match text.as_bytes().get(at) {
        Some(0x21..0x80) | None => at,
        Some(_) => text[at..].find(|it| !is_blank(it)).map_or(text.len(), |length| at + length),
    }
}

/// The byte after the comment that starts at `at`, if one does.
///
/// A `#` comment without a line end stops before a closing bracket, because a
/// model that writes everything on one line did not mean to comment that out.
pub(super) fn skip_comment(text: &str, at: usize) -> Option<usize> {
    if !matches!(text.as_bytes().get(at), Some(b'/' | b'<' | b'#')) {
        return None;
    }
    let rest = &text[at..];
    if rest.starts_with("/*") {
        return Some(rest.find("*/").map_or(text.len(), |length| at + length + 2));
    }
    if rest.starts_with("<!--") {
        return Some(rest.find("-->").map_or(text.len(), |length| at + length + 3));
    }
    if rest.starts_with("//") {
        return Some(at + rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with('#') {
        let reach = rest.floor_char_boundary(LINE_REACH.min(rest.len()));
        let line = rest[..reach].find('\n');
        let length = line.or_else(|| rest.find(['}', ']'])).unwrap_or(rest.len());
        return Some(at + length);
    }
    None
}

/// The first byte from `at` on that is neither blank nor part of a comment.
pub(super) fn skip_blanks_and_comments(text: &str, at: usize) -> usize {
    let mut at = skip_blanks(text, at);
    while let Some(end) = skip_comment(text, at) {
        at = skip_blanks(text, end);
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_comment_is_skipped() {
        let check = |text: &str, rest: &str| {
            assert_eq!(&text[skip_blanks_and_comments(text, 0)..], rest, "{text}");
        };
        check(" \u{feff}\u{200b}x", "x");
        check("// a\n# b\n/* c\n */ <!-- d -->x", "x");
        check("# one line }", "}");
        check("/* open", "");
        check("/ x", "/ x");
    }
}
