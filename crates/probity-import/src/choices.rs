//! Questions with choices: the letters of choices, and how they are shown to a model.

const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
/// The most choices of a question.
pub(crate) const MOST: usize = LETTERS.len();

/// The letter of a choice, by its place.
pub(crate) fn letter(place: usize) -> Option<&'static str> {
    LETTERS.get(place..=place)
}

/// Whether all choices are the letters that they have: the question itself says what they stand for.
pub(crate) fn are_letters(choices: &[String]) -> bool {
    choices.iter().enumerate().all(|(at, text)| {
        let text = text.trim().trim_matches(['(', ')', '.']);
        letter(at) == Some(text)
    })
}

/// A template of the choices of a case: each on a new line, with its letter and a mark after that.
pub(crate) fn lines(mark: &str) -> String {
    format!(
        "{{% for it in choices %}}\n{{{{ \"{LETTERS}\"[loop.index0] }}}}{mark} {{{{ it }}}}{{% endfor %}}"
    )
}

/// A template that goes behind a question: the choices, and that one is asked for.
pub(crate) fn asked() -> String {
    format!("\n{}\nAnswer with the letter of the right choice.", lines("."))
}
