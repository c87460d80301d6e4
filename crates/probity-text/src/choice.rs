//! Which of several choices a reply names.

use std::{collections::BTreeSet, sync::LazyLock};

use regex::Regex;

use crate::space::words;

/// The most choices that have a letter.
pub const MOST: usize = 26;

/// What a reply answers to a question with choices, which count from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// One of them.
    One(usize),
    /// Several: that is no answer.
    Several(Vec<usize>),
    /// None of them.
    Nothing,
}

impl Answer {
    fn of(seen: BTreeSet<usize>) -> Option<Self> {
        let mut all: Vec<usize> = seen.into_iter().collect();
        match all.len() {
            0 => None,
            1 => all.pop().map(Self::One),
            _ => Some(Self::Several(all)),
        }
    }
}

/// The letter of a choice.
pub fn letter(index: usize) -> char {
    char::from(b'A' + u8::try_from(index % MOST).unwrap_or(0))
}

/// Which choice a reply names.
///
/// Looked at in this order: the reply as a whole, what stands after "answer", letters that are marked
/// as such (`B.` at the start of a line, `(B)`, `**B**`), and the texts of the choices. The first of
/// these that names a choice decides, and if it names several, there is no answer.
pub fn read<C: AsRef<str>>(reply: &str, choices: &[C]) -> Answer {
    let choices = Choices::new(choices);
    let levels: [fn(&Choices, &str) -> BTreeSet<usize>; 4] =
        [Choices::whole, Choices::declared, Choices::marked, Choices::quoted];
    let answer = levels.iter().find_map(|level| Answer::of(level(&choices, reply)));
    answer.unwrap_or(Answer::Nothing)
}

/// The choice that a key names: a letter, or the text of one choice alone.
pub fn named<C: AsRef<str>>(key: &str, choices: &[C]) -> Option<usize> {
    let key = key.trim();
    let is_text = |choice: &C| choice.as_ref().trim() == key;
    let mut texts = choices.iter().enumerate().filter(|it| is_text(it.1)).map(|it| it.0);
    match (texts.next(), texts.next(), single_letter(key, choices.len())) {
        (Some(text), None, None) => Some(text),
        (Some(text), None, Some(letter)) if text == letter => Some(text),
        (None, _, Some(letter)) => Some(letter),
        (Some(_), _, _) | (None, _, None) => None,
    }
}

/// The index of the letter that a text is.
fn single_letter(text: &str, count: usize) -> Option<usize> {
    let mut bytes = text.bytes();
    let index = usize::from(bytes.next()?.to_ascii_uppercase().checked_sub(b'A')?);
    (bytes.next().is_none() && index < count.min(MOST)).then_some(index)
}

/// The choices, ready to be looked for.
struct Choices {
    count: usize,
    folded: Vec<String>,
    /// Bytes after "answer" that are looked at.
    reach: usize,
}

impl Choices {
    fn new<C: AsRef<str>>(choices: &[C]) -> Self {
        let folded: Vec<String> = choices.iter().map(|it| fold(it.as_ref())).collect();
        let longest = choices.iter().map(|it| it.as_ref().len()).max().unwrap_or(0);
        Self { count: choices.len(), folded, reach: 2 * longest + 200 }
    }

    /// The choice that the reply is and nothing else.
    fn whole(&self, reply: &str) -> BTreeSet<usize> {
        let text = fold(reply);
        let is_text = |it: &&usize| !text.is_empty() && self.folded[**it] == text;
        let texts: BTreeSet<usize> = (0..self.count).filter(|it| is_text(&it)).collect();
        texts.into_iter().chain(single_letter(bare(reply), self.count)).collect()
    }

    /// The choices after "answer", "the answer is", "correct option:" and the like.
    fn declared(&self, reply: &str) -> BTreeSet<usize> {
        static DECLARED: LazyLock<Regex> = LazyLock::new(|| {
            let pattern = r"(?i)\b(?:answer|(?:correct|right|best|final)\s+(?:option|choice))\b(?:\s+is\b)?(?:\s+(?:option|choice|letter)\b)?";
            Regex::new(pattern).expect("the pattern is ours")
        });
        let after = |end: usize| {
            let rest = unwrapped(&reply[end..reply.floor_char_boundary(end + self.reach)]);
            self.leading_letter(rest).or_else(|| self.leading_text(rest))
        };
        DECLARED.find_iter(reply).filter_map(|it| after(it.end())).collect()
    }

    /// The letter that a text begins with, if it is no word.
    fn leading_letter(&self, text: &str) -> Option<usize> {
        let letter = text.get(..1)?;
        let index = single_letter(letter, self.count)?;
        let rest = &text[1..];
        if rest.starts_with(char::is_alphanumeric) || rest.starts_with(['\'', '’']) {
            return None;
        }
        let is_upper = letter.starts_with(|c: char| c.is_ascii_uppercase());
        let next_word = words(rest).next().unwrap_or("");
        let is_marked = rest.trim_end().is_empty()
            || rest
                .starts_with([')', ']', '}', '.', ':', ',', ';', '*', '_', '\n', '\r', '"', '`']);
        // "The answer is A dog": an article, or the pronoun.
        let may_be_word = matches!(letter, "A" | "I") && !GO_ON.contains(&next_word);
        (is_marked || (is_upper && !may_be_word)).then_some(index)
    }

    /// The longest choice whose text a text begins with.
    fn leading_text(&self, text: &str) -> Option<usize> {
        let text = fold(text);
        let begins = |choice: &str| {
            let rest = text.strip_prefix(choice);
            rest.is_some_and(|rest| !choice.is_empty() && !rest.starts_with(char::is_alphanumeric))
        };
        let fitting = self.folded.iter().enumerate().filter(|it| begins(it.1));
        fitting.max_by_key(|it| it.1.len()).map(|it| it.0)
    }

    /// Letters that stand apart: `B.` at the start of a line, `(B)`, `[B]`, `**B**`, `\boxed{B}`.
    fn marked(&self, reply: &str) -> BTreeSet<usize> {
        static MARKED: LazyLock<Regex> = LazyLock::new(|| {
            let pattern = r"(?m)^[ \t>*_#-]*([A-Za-z])[*_]*[.):][*_]*(?:\s|$)|\(([A-Z])\)|\[([A-Z])\]|\*\*\(?([A-Z])[.):]*\*\*|\\boxed\{(?:\\text\w*\{)?\(?([A-Z])\)?\}|^[ \t*_]*([A-Z])[ \t*_]*$";
            Regex::new(pattern).expect("the pattern is ours")
        });
        let letters = MARKED.captures_iter(reply).filter_map(|captures| {
            let letter = captures.iter().skip(1).flatten().next()?;
            single_letter(letter.as_str(), self.count)
        });
        letters.collect()
    }

    /// The choices whose texts are in the reply. A choice within a longer one is not seen.
    fn quoted(&self, reply: &str) -> BTreeSet<usize> {
        let text = fold(reply);
        let mut taken = vec![false; text.len()];
        let mut longest_first: Vec<usize> = (0..self.count).collect();
        longest_first.sort_by_key(|it| std::cmp::Reverse(self.folded[*it].len()));
        let mut seen = BTreeSet::new();
        for index in longest_first {
            let choice = self.folded[index].as_str();
            if choice.is_empty() {
                continue;
            }
            for (at, _) in text.match_indices(choice) {
                let end = at + choice.len();
                let within = text[..at].ends_with(char::is_alphanumeric)
                    || text[end..].starts_with(char::is_alphanumeric);
                if !within && !taken[at] {
                    taken[at..end].fill(true);
                    seen.insert(index);
                }
            }
        }
        seen
    }
}

/// Words that go on after a letter and not after an article.
const GO_ON: [&str; 9] = ["", "because", "since", "as", "and", "is", "for", "which", "with"];

/// A text in lower case, with single blanks, and without marks at both ends.
fn fold(text: &str) -> String {
    words(bare(text)).collect::<Vec<_>>().join(" ").to_lowercase()
}

/// A text without blanks, quotes, brackets, emphasis and full stops at both ends.
fn bare(text: &str) -> &str {
    let is_mark = |c: char| c.is_whitespace() || "*_`\"'“”‘’()[]{}.:,;!".contains(c);
    text.trim_matches(is_mark)
}

/// What stands behind the marks that a text begins with.
fn unwrapped(mut text: &str) -> &str {
    const COMMANDS: [&str; 6] =
        ["\\boxed{", "\\text{", "\\textbf{", "\\mathrm{", "\\mathbf{", "\\("];
    loop {
        let rest =
            text.trim_start_matches(|c: char| c.is_whitespace() || "*_`\"'“‘([{:=$-–—".contains(c));
        let rest = COMMANDS.iter().find_map(|it| rest.strip_prefix(it)).unwrap_or(rest);
        if rest.len() == text.len() {
            return text;
        }
        text = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CITIES: [&str; 4] = ["London", "Paris", "Paris, Texas", "Berlin"];

    #[track_caller]
    fn check(reply: &str, expected: &Answer) {
        assert_eq!(read(reply, &CITIES), *expected, "{reply:?}");
    }

    #[test]
    fn a_letter_is_read_in_every_usual_form() {
        for reply in [
            "B",
            "b",
            "(B)",
            "B.",
            "B)",
            " **B** ",
            "ANSWER: B",
            "Answer: (b)",
            "The answer is (B).",
            "The answer is **B**",
            "The correct answer is: B because it is.",
            "Answer:\nB",
            "Final answer: $\\boxed{\\text{B}}$",
            "B. Paris",
            "(B) Paris",
            "**B.** Paris is the one.",
            "I think so.\n\nB",
            "So it must be (B), I think.",
            "\\boxed{B}",
            "The correct option is B",
            "the answer is option B",
        ] {
            check(reply, &Answer::One(1));
        }
        check("The answer is A because of that.", &Answer::One(0));
    }

    #[test]
    fn the_text_of_a_choice_is_an_answer() {
        check("Paris", &Answer::One(1));
        check("\"paris\".", &Answer::One(1));
        check("It is Paris, of course.", &Answer::One(1));
        check("It is Paris, Texas.", &Answer::One(2));
        check("Not London. The answer is Paris.", &Answer::One(1));
        check("The answer is a city: Berlin", &Answer::One(3));
    }

    #[test]
    fn several_are_no_answer() {
        check("A or B? (A) or (B).", &Answer::Several(vec![0, 1]));
        check("Answer: A. No, answer: B.", &Answer::Several(vec![0, 1]));
        check("London or Berlin", &Answer::Several(vec![0, 3]));
        check("Rome", &Answer::Nothing);
        check("(E)", &Answer::Nothing);
        check("", &Answer::Nothing);
        check("I do not know the answer.", &Answer::Nothing);
        check("Parisian", &Answer::Nothing);
    }

    #[test]
    fn a_key_is_a_letter_or_a_text() {
        assert_eq!(named("B", &CITIES), Some(1));
        assert_eq!(named("Paris", &CITIES), Some(1));
        assert_eq!(named("2", &CITIES), None);
        assert_eq!(named("2", &["1", "2"]), Some(1));
        assert_eq!(named("E", &CITIES), None);
        assert_eq!(named("A", &["B", "A"]), None);
        assert_eq!(named("x", &["x", "x"]), None);
    }
}
