//! Blanks as the programs understand them that we have to agree with.

/// Whether Python's `str.split` parts words here: like Rust, and at the four separators of ASCII.
pub(crate) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// The words of a text.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(is_space).filter(|word| !word.is_empty())
}
