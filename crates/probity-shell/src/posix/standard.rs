//! The utilities of the standard, from `data/posix/utilities.toml`.

use std::{collections::BTreeMap, sync::LazyLock};

use serde::Deserialize;

use super::Edition;

/// A utility of the standard.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Utility {
    /// Option letters of POSIX.1-2017, as `getopts` writes them.
    #[serde(default)]
    options: String,
    /// What POSIX.1-2024 added to them.
    #[serde(default)]
    added: String,
    /// The only edition that has it.
    edition: Option<String>,
    /// What follows the first operand is never an option.
    #[serde(default)]
    pub(super) strict: bool,
    /// It runs a command, after so many operands of its own.
    pub(super) wraps: Option<usize>,
    /// It takes `-5`.
    #[serde(default)]
    pub(super) numbers: bool,
    /// Its options are not checked.
    #[serde(default)]
    pub(super) unchecked: bool,
    /// What to write instead of an option that the standard lacks.
    #[serde(default)]
    instead: BTreeMap<String, String>,
}

/// An option letter of a utility.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Letter {
    /// It takes no value.
    Flag,
    /// It takes a value, attached or as the next word.
    Valued,
    /// It may take a value, attached.
    Optional,
    /// It came with POSIX.1-2024.
    Later,
    /// The standard lacks it.
    Unknown,
}

static UTILITIES: LazyLock<BTreeMap<String, Utility>> = LazyLock::new(|| {
    toml::from_str(include_str!("../../data/posix/utilities.toml"))
        .expect("a test reads data/posix/utilities.toml")
});

/// The utility of that name, if the edition has it.
pub(super) fn lookup(name: &str, edition: Edition) -> Option<&'static Utility> {
    let utility = UTILITIES.get(name)?;
    utility.edition.as_deref().is_none_or(|only| only == edition.as_str()).then_some(utility)
}

impl Utility {
    /// What the letter is in that edition.
    pub(super) fn letter(&self, letter: char, edition: Edition) -> Letter {
        if let Some(found) = letter_of(&self.options, letter) {
            return found;
        }
        match (letter_of(&self.added, letter), edition) {
            (Some(found), Edition::Posix2024) => found,
            (Some(_), Edition::Posix2017) => Letter::Later,
            (None, _) => Letter::Unknown,
        }
    }

    /// What to write instead of an option, written with its dashes.
    pub(super) fn instead(&self, option: &str) -> Option<&str> {
        self.instead.get(option).map(String::as_str)
    }
}

/// Reads the letter's kind from a string such as `ab:c::`.
pub(super) fn letter_of(letters: &str, letter: char) -> Option<Letter> {
    if letter == ':' {
        return None;
    }
    let rest = &letters[letters.find(letter)? + letter.len_utf8()..];
    Some(match rest.as_bytes() {
        [b':', b':', ..] => Letter::Optional,
        [b':', ..] => Letter::Valued,
        _ => Letter::Flag,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn editions_differ_where_the_table_says_so() {
        let sed = lookup("sed", Edition::Posix2017).expect("both editions have it");
        assert_eq!(sed.letter('E', Edition::Posix2017), Letter::Later);
        assert_eq!(sed.letter('E', Edition::Posix2024), Letter::Flag);
        assert_eq!(sed.letter('e', Edition::Posix2017), Letter::Valued);
        assert_eq!(sed.letter('i', Edition::Posix2024), Letter::Unknown);
        assert!(lookup("realpath", Edition::Posix2017).is_none());
        assert!(lookup("qsub", Edition::Posix2024).is_none());
    }

    #[test]
    fn alternatives_are_for_options_that_an_edition_lacks() {
        for (name, utility) in &*UTILITIES {
            for option in utility.instead.keys() {
                let mut chars = option.trim_start_matches('-').chars();
                let (Some(letter), None) = (chars.next(), chars.next()) else { continue };
                // `find . -L`: right letter, wrong place.
                if name == "find" {
                    continue;
                }
                let found = utility.letter(letter, Edition::Posix2017);
                let lacking = matches!(found, Letter::Unknown | Letter::Later);
                assert!(lacking, "`{name} {option}` is in the standard");
            }
        }
    }
}
