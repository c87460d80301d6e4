//! Blanks as the programs understand them that we have to agree with.

/// Whether Python's `str.split` parts words here: like Rust, and at the four separators of ASCII.
pub(crate) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// The words of a text.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(is_space).filter(|word| !word.is_empty())
}

/// Words as promptfoo parts them: at JavaScript's blanks, without full stops at their ends. A text whose
/// words are all empty has none.
pub(crate) fn script_words(text: &str) -> Vec<&str> {
    // JavaScript takes the mark of byte orders for a blank, and the next line of EBCDIC for none.
    let is_blank = |c: char| (c.is_whitespace() && c != '\u{85}') || c == '\u{feff}';
    let words = text.split(is_blank).filter(|it| !it.is_empty());
    let words: Vec<&str> = words.map(|it| it.trim_end_matches('.')).collect();
    if words.iter().all(|it| it.is_empty()) { Vec::new() } else { words }
}
