//! Short pieces of model output that are safe to show.

use probity_core::visible::push_safe;

/// Characters of text that an excerpt shows.
const SHOWN: usize = 80;

/// The part of a text around a byte, on one line and without control characters.
pub(crate) fn excerpt(text: &str, at: usize) -> String {
    let from = text.floor_char_boundary(at.saturating_sub(SHOWN / 2));
    let mut shown = String::with_capacity(SHOWN);
    if from > 0 {
        shown.push('…');
    }
    let mut rest = text[from..].chars();
    for c in rest.by_ref().take(SHOWN) {
        match c {
            // An excerpt stands on one line.
            '\n' | '\t' => shown.extend(c.escape_default()),
            // Nearly all of them, which need no closer look.
            ' '..='~' => shown.push(c),
            c => push_safe(&mut shown, c),
        }
    }
    if rest.next().is_some() {
        shown.push('…');
    }
    shown
}

/// The beginning of a text, as it is.
pub(crate) fn beginning(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_sequences_are_shown_not_sent() {
        assert_eq!(excerpt("a\u{1b}[31mred\u{202e}b\n", 0), "a\\u{1b}[31mred\\u{202e}b\\n");
    }

    #[test]
    fn long_text_is_cut_at_both_ends() {
        let text = "ä".repeat(500);
        let shown = excerpt(&text, 500);
        assert!(shown.starts_with('…') && shown.ends_with('…'));
        assert_eq!(shown.chars().count(), SHOWN + 2);
    }
}
