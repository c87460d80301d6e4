//! Text of unknown origin, made fit for a terminal.

use std::borrow::Cow;

/// The text with everything visible that could move a cursor or turn writing around.
pub fn safe(text: &str) -> Cow<'_, str> {
    let harmful = |c: char| (c.is_control() && c != '\n' && c != '\t') || is_format(c);
    if !text.contains(harmful) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\r' => shown.push_str("\\r"),
            c if harmful(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// The first line of a text, cut to a width.
pub fn one_line(text: &str, width: usize) -> String {
    let mut lines = text.trim().lines();
    let first = lines.next().unwrap_or("");
    let cut = first.chars().count() > width || lines.next().is_some();
    let kept: String = first.chars().take(width).collect();
    let shown = safe(&kept).replace('\t', " ");
    if cut { format!("{shown}…") } else { shown }
}

/// The text up to so many characters, and a note of how many more there are.
pub fn capped(text: &str, most: usize) -> Cow<'_, str> {
    // A text of so few bytes cannot have more characters.
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    match text.char_indices().nth(most) {
        None => Cow::Borrowed(text),
        Some((end, _)) => {
            let more = text[end..].chars().count();
            Cow::Owned(format!("{}… ({more} more characters)", &text[..end]))
        }
    }
}

/// Characters that change the direction or hide text.
pub(crate) fn is_format(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_do_harm_is_made_visible() {
        assert_eq!(safe("a\x1b[31mb\u{202e}c\0"), "a\\u{1b}[31mb\\u{202e}c\\u{0}");
        assert!(matches!(safe("plain\n\ttext é"), Cow::Borrowed(_)));
        assert_eq!(one_line("  first\nsecond", 10), "first…");
        assert_eq!(one_line("abcdef", 3), "abc…");
    }

    #[test]
    fn a_cut_is_told_and_never_inside_a_character() {
        assert_eq!(capped("ééé", 3), "ééé");
        assert_eq!(capped("éééé", 3), "ééé… (1 more characters)");
        assert_eq!(capped("abc", 0), "… (3 more characters)");
    }
}
