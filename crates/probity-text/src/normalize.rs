//! What does not count when two texts are compared.

use std::borrow::Cow;

use regex::Regex;
use unicode_normalization::{UnicodeNormalization as _, char::is_combining_mark};

use crate::space::words;

/// One thing that does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// How a character is composed: both texts are brought to NFC.
    Unicode,
    /// Which of several look-alike characters it is: both texts are brought to NFKC.
    Compatibility,
    /// Upper and lower case.
    Case,
    /// ASCII punctuation.
    Punctuation,
    /// The digits 0 to 9.
    Digits,
    /// The English words `a`, `an` and `the`.
    Articles,
    /// How many blanks there are between words, and blanks at both ends.
    Whitespace,
}

/// The steps of the `SQuAD` script.
pub const SQUAD: [Step; 4] = [Step::Case, Step::Punctuation, Step::Articles, Step::Whitespace];

/// Takes what does not count out of texts.
#[derive(Clone, Debug, Default)]
pub struct Normalizer {
    steps: Vec<Step>,
    ignored: Vec<Regex>,
}

impl Normalizer {
    /// What matches one of `ignored` goes first, then the steps are done in their order in [`Step`].
    pub fn new(mut steps: Vec<Step>, ignored: Vec<Regex>) -> Self {
        steps.sort_unstable();
        steps.dedup();
        Self { steps, ignored }
    }

    /// Whether everything counts.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.ignored.is_empty()
    }

    /// The text without what does not count.
    pub fn apply<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        for pattern in &self.ignored {
            if pattern.is_match(&text) {
                text = Cow::Owned(pattern.replace_all(&text, "").into_owned());
            }
        }
        for step in &self.steps {
            text = Cow::Owned(step.apply(&text));
        }
        text
    }
}

impl Step {
    fn apply(self, text: &str) -> String {
        match self {
            Self::Unicode => text.nfc().collect(),
            Self::Compatibility => text.nfkc().collect(),
            Self::Case => lowercase(text),
            Self::Punctuation => text.chars().filter(|c| !c.is_ascii_punctuation()).collect(),
            Self::Digits => text.chars().filter(|c| !c.is_ascii_digit()).collect(),
            Self::Articles => without_articles(text),
            Self::Whitespace => words(text).collect::<Vec<_>>().join(" "),
        }
    }
}

/// The text as the `SQuAD` script normalises answers.
pub fn squad(text: &str) -> String {
    Normalizer::new(SQUAD.to_vec(), Vec::new()).apply(text).into_owned()
}

/// Every article is replaced by a blank.
fn without_articles(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(is_word) {
        let (before, word) = rest.split_at(start);
        let (word, after) = word.split_at(word.find(|c| !is_word(c)).unwrap_or(word.len()));
        kept.push_str(before);
        let article = ["a", "an", "the"].iter().any(|it| word.eq_ignore_ascii_case(it));
        kept.push_str(if article { " " } else { word });
        rest = after;
    }
    kept.push_str(rest);
    kept
}

/// Whether the character belongs to a word for Python's regular expressions: unlike in Rust, no mark does.
fn is_word(c: char) -> bool {
    const CIRCLED: [std::ops::RangeInclusive<char>; 4] = [
        '\u{24b6}'..='\u{24e9}',
        '\u{1f130}'..='\u{1f149}',
        '\u{1f150}'..='\u{1f169}',
        '\u{1f170}'..='\u{1f189}',
    ];
    c == '_'
        || (c.is_alphanumeric()
            && !is_combining_mark(c)
            && !CIRCLED.iter().any(|range| range.contains(&c)))
}

/// A text in lower case, as [`str::to_lowercase`] has it. Nearly all of a text is ASCII, of which many letters are
/// done at once.
pub fn lowercase(text: &str) -> String {
    let mut lower = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        let (ascii, other) = rest.split_at(ascii_length(rest.as_bytes()));
        lower.push_str(ascii);
        if other.is_empty() {
            break;
        }
        let end = other.bytes().position(|it| it.is_ascii()).unwrap_or(other.len());
        let (other, later) = other.split_at(end);
        // It has another form at the end of a word.
        if other.contains('Σ') {
            return text.to_lowercase();
        }
        lower.extend(other.chars().flat_map(char::to_lowercase));
        rest = later;
    }
    lower.make_ascii_lowercase();
    lower
}

/// How many bytes of a text are ASCII before the first that is not.
fn ascii_length(text: &[u8]) -> usize {
    const AT_ONCE: usize = 32;
    let whole = text.chunks_exact(AT_ONCE).take_while(|it| it.is_ascii()).count() * AT_ONCE;
    let rest = &text[whole..];
    whole + rest.iter().position(|it| !it.is_ascii()).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_normalised_as_for_squad() {
        assert_eq!(squad("  The Cat's\tpaw, an  A-Z guide."), "cats paw az guide");
        assert_eq!(squad("a an the"), "");
        assert_eq!(squad("theatre"), "theatre");
    }

    #[test]
    fn composed_and_decomposed_are_the_same() {
        let composed = Normalizer::new(vec![Step::Unicode], Vec::new());
        assert_eq!(composed.apply("e\u{301}"), "é");
        assert_eq!(composed.apply("①"), "①");
        let compatible = Normalizer::new(vec![Step::Compatibility], Vec::new());
        assert_eq!(compatible.apply("①"), "1");
    }

    #[test]
    fn what_is_ignored_goes_first() {
        let ignored = vec![Regex::new("[,$]").unwrap(), Regex::new(r"(?s).*#### ").unwrap()];
        let normalizer = Normalizer::new(vec![Step::Punctuation], ignored);
        assert_eq!(normalizer.apply("so\n#### $1,200."), "1200");
    }

    #[test]
    fn lower_case_is_that_of_the_standard_library() {
        for text in [
            "",
            "Plain ASCII, “QUOTED” – and IT’S over.",
            "ÄÖÜ ẞ İstanbul \u{212a}elvin DŽ Ǆ",
            "ΟΔΥΣΣΕΥΣ, Σ",
            "日本語 ТЕКСТ",
        ] {
            assert_eq!(lowercase(text), text.to_lowercase());
        }
    }
}
