//! Words beside a number that say what it is.

/// How far before a number a word still speaks of it, in bytes.
const REACH: usize = 64;

/// Whether one of the words stands shortly before `at`. The words are in lower case.
pub(super) fn says(text: &str, at: usize, words: &[&str]) -> bool {
    let from = text.floor_char_boundary(at.saturating_sub(REACH));
    let before = text[from..at].to_lowercase();
    words.iter().any(|word| {
        before.match_indices(word).any(|(start, _)| {
            let cut = |it: Option<char>| it.is_none_or(|it| !it.is_alphanumeric());
            cut(before[..start].chars().next_back())
                && cut(before[start + word.len()..].chars().next())
        })
    })
}

/// Whether the text consists of numbers alone, so that nothing says what they are.
pub(super) fn is_absent(text: &str) -> bool {
    text.len() <= REACH && !text.contains(char::is_alphabetic)
}

/// Whether one of the words stands directly before `at`, with nothing but blanks and a colon between.
pub(super) fn says_directly(text: &str, at: usize, words: &[&str]) -> bool {
    let from = text.floor_char_boundary(at.saturating_sub(REACH));
    let before = text[from..at].trim_end_matches([' ', ':', '=']).to_lowercase();
    let word = before.rsplit(|it: char| !it.is_alphanumeric() && it != '§').next().unwrap_or("");
    words.contains(&word)
}
