//! The utilities of the standard, from `data/posix/utilities.toml`.

use std::{collections::BTreeMap, sync::LazyLock};

use serde::Deserialize;

use super::Edition;

/// A utility of the standard.
#[derive(Debug)]
pub(super) struct Utility {
    name: String,
    /// Who looks at its operands.
    pub(super) handler: Handler,
    /// The only edition that has it.
    edition: Option<Edition>,
    /// What follows the first operand is never an option.
    pub(super) strict: bool,
    /// It runs a command, after so many operands of its own.
    pub(super) wraps: Option<usize>,
    /// It takes `-5`.
    pub(super) numbers: bool,
    /// Its options are not checked.
    pub(super) unchecked: bool,
    /// Option letters of POSIX.1-2017.
    letters: Letters,
    /// What POSIX.1-2024 added to them.
    added: Letters,
}

/// Who looks at a utility's operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Handler {
    Alias,
    Awk,
    Chmod,
    Command,
    Date,
    Dd,
    Declare,
    Dot,
    Echo,
    Env,
    Eval,
    Expr,
    Find,
    Getopts,
    Grep,
    Head,
    Ignore,
    Kill,
    Od,
    Printf,
    Ps,
    Read,
    Sed,
    Set,
    Sh,
    Sleep,
    Sort,
    Split,
    Status,
    Stty,
    Tail,
    Test,
    Touch,
    Trap,
    Unset,
    /// Nobody.
    Plain,
}

impl Handler {
    /// Its words are not options and operands in the way of `getopts`.
    pub(super) fn reads_words_itself(self) -> bool {
        matches!(
            self,
            Self::Echo
                | Self::Expr
                | Self::Find
                | Self::Ignore
                | Self::Kill
                | Self::Status
                | Self::Test
        )
    }

    fn of(name: &str) -> Self {
        match name {
            "alias" => Self::Alias,
            "awk" => Self::Awk,
            "chmod" => Self::Chmod,
            "command" => Self::Command,
            "date" => Self::Date,
            "dd" => Self::Dd,
            "export" | "readonly" => Self::Declare,
            "." => Self::Dot,
            "echo" => Self::Echo,
            "env" => Self::Env,
            "eval" => Self::Eval,
            "expr" => Self::Expr,
            "find" => Self::Find,
            "getopts" => Self::Getopts,
            "grep" => Self::Grep,
            "head" => Self::Head,
            ":" | "true" | "false" => Self::Ignore,
            "kill" => Self::Kill,
            "od" => Self::Od,
            "printf" => Self::Printf,
            "ps" => Self::Ps,
            "read" => Self::Read,
            "sed" => Self::Sed,
            "set" => Self::Set,
            "sh" => Self::Sh,
            "sleep" => Self::Sleep,
            "sort" => Self::Sort,
            "split" => Self::Split,
            "exit" | "return" => Self::Status,
            "stty" => Self::Stty,
            "tail" => Self::Tail,
            "test" | "[" => Self::Test,
            "touch" => Self::Touch,
            "trap" => Self::Trap,
            "unset" => Self::Unset,
            _ => Self::Plain,
        }
    }
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

/// A set of option letters, a bit for each character.
#[derive(Debug, Clone, Copy, Default)]
struct Letters {
    all: u128,
    valued: u128,
    optional: u128,
}

impl Letters {
    /// Reads a string such as `ab:c::`.
    fn parse(text: &str) -> Self {
        let mut letters = Self::default();
        let mut bytes = text.bytes().peekable();
        while let Some(byte) = bytes.next() {
            let bit = bit(byte.into());
            letters.all |= bit;
            if bytes.next_if_eq(&b':').is_some() {
                match bytes.next_if_eq(&b':').is_some() {
                    true => letters.optional |= bit,
                    false => letters.valued |= bit,
                }
            }
        }
        letters
    }

    fn get(&self, letter: char) -> Option<Letter> {
        let bit = bit(letter);
        if self.all & bit == 0 {
            None
        } else if self.valued & bit != 0 {
            Some(Letter::Valued)
        } else if self.optional & bit != 0 {
            Some(Letter::Optional)
        } else {
            Some(Letter::Flag)
        }
    }
}

/// No bit for what cannot be an option letter.
fn bit(letter: char) -> u128 {
    match letter.is_ascii_graphic() && letter != ':' {
        true => 1 << u32::from(letter),
        false => 0,
    }
}

/// A utility as the data file has it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    #[serde(default)]
    options: String,
    #[serde(default)]
    added: String,
    edition: Option<String>,
    #[serde(default)]
    strict: bool,
    wraps: Option<usize>,
    #[serde(default)]
    numbers: bool,
    #[serde(default)]
    unchecked: bool,
}

/// The utilities by the first byte of their names: a command is looked up for every simple command there is.
static UTILITIES: LazyLock<Vec<Vec<Utility>>> = LazyLock::new(|| {
    let tables: BTreeMap<String, Table> = table!("posix-utilities");
    let mut utilities: Vec<Vec<Utility>> = (0..128).map(|_| Vec::new()).collect();
    for (name, table) in tables {
        let first = usize::from(name.as_bytes()[0]);
        utilities[first].push(Utility::new(name, table));
    }
    utilities
});

/// By utility and option; read only when there is something to say.
static INSTEAD: LazyLock<BTreeMap<String, BTreeMap<String, String>>> =
    LazyLock::new(|| table!("posix-instead"));

/// The utility of that name, if the edition has it.
pub(super) fn lookup(name: &str, edition: Edition) -> Option<&'static Utility> {
    let first = usize::from(*name.as_bytes().first()?);
    let utility = UTILITIES.get(first)?.iter().find(|it| it.name == name)?;
    utility.edition.is_none_or(|only| only == edition).then_some(utility)
}

impl Utility {
    fn new(name: String, table: Table) -> Self {
        let Table { options, added, edition, strict, wraps, numbers, unchecked } = table;
        Self {
            handler: Handler::of(&name),
            name,
            edition: edition.map(|it| it.parse().expect("the table names editions")),
            strict,
            wraps,
            numbers,
            unchecked,
            letters: Letters::parse(&options),
            added: Letters::parse(&added),
        }
    }

    /// What the letter is in that edition.
    pub(super) fn letter(&self, letter: char, edition: Edition) -> Letter {
        match (self.letters.get(letter), edition) {
            (Some(found), _) => found,
            (None, Edition::Posix2024) => self.added.get(letter).unwrap_or(Letter::Unknown),
            (None, Edition::Posix2017) => {
                self.added.get(letter).map_or(Letter::Unknown, |_| Letter::Later)
            }
        }
    }

    /// What to write instead of an option, written with its dashes.
    pub(super) fn instead(&self, option: &str) -> Option<&'static str> {
        INSTEAD.get(&self.name)?.get(option).map(String::as_str)
    }
}

/// Whether a letter takes a value, by a string such as `ab:c`.
pub(super) fn takes_value(letters: &str, letter: char) -> bool {
    letters.find(letter).is_some_and(|at| letters[at + letter.len_utf8()..].starts_with(':'))
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
        for (name, options) in &*INSTEAD {
            let found = |edition| lookup(name, edition);
            let utility = found(Edition::Posix2017).or(found(Edition::Posix2024));
            let utility = utility.unwrap_or_else(|| panic!("`{name}` is in no edition"));
            for option in options.keys() {
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
