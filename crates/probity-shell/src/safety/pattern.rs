//! The small patterns that rules are written in: words with `*`, alternatives with `|`, options with values.

use crate::field;

/// A word pattern: `*` stands for any text, `|` separates alternatives; upper and lower case are the same.
#[derive(Debug, Clone)]
pub(super) struct WordPattern(Vec<Box<str>>);

impl WordPattern {
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        if text.is_empty() || text.split('|').any(str::is_empty) {
            return Err("an alternative is empty");
        }
        Ok(Self(text.split('|').map(Into::into).collect()))
    }

    pub(super) fn matches(&self, word: &str) -> bool {
        self.0.iter().any(|pattern| glob(pattern.as_bytes(), word.as_bytes()))
    }
}

/// Whether `text` matches `pattern`, where `*` is any text and case does not count.
pub(super) fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut read) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while read < text.len() {
        if at < pattern.len() && pattern[at] == b'*' {
            star = Some((at, read));
            at += 1;
        } else if at < pattern.len() && pattern[at].eq_ignore_ascii_case(&text[read]) {
            at += 1;
            read += 1;
        } else if let Some((star_at, star_read)) = star {
            star = Some((star_at, star_read + 1));
            at = star_at + 1;
            read = star_read + 1;
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

/// One step of a command path.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// A word that must come next.
    Word(WordPattern),
    /// `...`: any number of words.
    Any,
}

/// A path of subcommands, `s3 rm|rb` or `... delete`.
#[derive(Debug, Clone)]
pub(super) struct Path(pub(super) Vec<Step>);

impl Path {
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        let step = |word: &str| match word {
            "..." => Ok(Step::Any),
            word => WordPattern::parse(word).map(Step::Word),
        };
        let steps = text.split_whitespace().map(step).collect::<Result<Vec<_>, _>>()?;
        match steps.last() {
            None => Err("a path of subcommands is empty"),
            Some(Step::Any) => Err("`...` cannot be last"),
            Some(Step::Word(_)) => Ok(Self(steps)),
        }
    }
}

/// Options of which one must be given: `-y|--yes or --stage = prod*`.
#[derive(Debug, Clone)]
pub(super) struct OptionPattern(pub(super) Vec<OneOption>);

/// An option in any of its spellings, with a value if one is asked for: `-X|--request = DELETE`.
#[derive(Debug, Clone)]
pub(super) struct OneOption {
    pub(super) spellings: Vec<Box<str>>,
    pub(super) value: Option<WordPattern>,
}

impl OptionPattern {
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        text.split(" or ").map(OneOption::parse).collect::<Result<_, _>>().map(Self)
    }
}

impl OneOption {
    fn parse(text: &str) -> Result<Self, &'static str> {
        let (names, value) = match text.split_once(" = ") {
            Some((names, value)) => (names, Some(WordPattern::parse(value)?)),
            None => (text, None),
        };
        let spellings: Vec<Box<str>> = names.split('|').map(Into::into).collect();
        let plain = |it: &str| it.starts_with(['-', '+', '/']) && it.len() > 1 && !it.contains(' ');
        match spellings.iter().all(|it| plain(it)) {
            true => Ok(Self { spellings, value }),
            false => Err("an option begins with `-` and holds no blank"),
        }
    }
}

/// How an argument gives an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gives<'a> {
    /// It does not.
    No,
    /// It does, without a value of its own.
    Bare,
    /// It does, with this value attached.
    Attached(&'a str),
}

/// Whether `argument` gives the option spelled `spelling`: whole, in a bundle of letters, or with a value attached.
pub(super) fn gives<'a>(argument: &'a str, spelling: &str, abbreviations: bool) -> Gives<'a> {
    if let Some(rest) = argument.strip_prefix(spelling) {
        return match rest.as_bytes().first() {
            None => Gives::Bare,
            Some(b'=') => Gives::Attached(&rest[1..]),
            Some(_) if spelling.len() == 2 && !argument.starts_with("--") => Gives::Attached(rest),
            Some(_) => Gives::No,
        };
    }
    if let Some(long) = spelling.strip_prefix("--") {
        // `-auto-approve` and `--auto-approve` are the same to tools in the manner of Go.
        let one_dash = argument.strip_prefix('-').filter(|it| it.len() > 2 && !it.starts_with('-'));
        if let Some(rest) = one_dash.and_then(|it| it.strip_prefix(long)) {
            return match rest.strip_prefix('=') {
                Some(value) => Gives::Attached(value),
                None if rest.is_empty() => Gives::Bare,
                None => Gives::No,
            };
        }
        let name = argument.split('=').next().unwrap_or_default();
        let shortened = abbreviations && name.len() >= 5 && spelling.starts_with(name);
        return match shortened {
            true if name.len() < argument.len() => Gives::Attached(&argument[name.len() + 1..]),
            true => Gives::Bare,
            false => Gives::No,
        };
    }
    let (Some(letters), Some(letter)) = (argument.strip_prefix('-'), spelling.strip_prefix('-'))
    else {
        return Gives::No;
    };
    if letter.len() != 1 || letters.starts_with('-') {
        return Gives::No;
    }
    match letters.find(letter) {
        Some(at) if letters[..at].bytes().all(|it| it.is_ascii_alphanumeric()) => {
            match &letters[at + 1..] {
                "" => Gives::Bare,
                rest => Gives::Attached(rest),
            }
        }
        Some(_) | None => Gives::No,
    }
}

/// Whether a value given to a flag switches it off again.
pub(super) fn switches_off(value: &str) -> bool {
    matches!(field::known_prefix(value), "false" | "no" | "0" | "none" | "off")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text, expected) in [
            ("delete-*", "delete-db", true),
            ("*:destroy", "apps:destroy", true),
            ("a*b*c", "a--b--c", true),
            ("a*b", "ac", false),
            ("", "", true),
            ("*", "", true),
            ("FLUSHALL", "flushall", true),
        ] {
            assert_eq!(glob(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} on {text}");
        }
    }

    #[test]
    fn options_are_found_whole_in_bundles_and_with_values() {
        for (argument, spelling, expected) in [
            ("-rf", "-f", Gives::Bare),
            ("-fr", "-f", Gives::Attached("r")),
            ("-XDELETE", "-X", Gives::Attached("DELETE")),
            ("-sXDELETE", "-X", Gives::Attached("DELETE")),
            ("--force", "--force", Gives::Bare),
            ("--force=true", "--force", Gives::Attached("true")),
            ("--force-with-lease", "--force", Gives::No),
            ("--forc", "--force", Gives::Bare),
            ("-force", "--force", Gives::Bare),
            ("-auto-approve", "-auto-approve", Gives::Bare),
            ("--hard", "-r", Gives::No),
        ] {
            assert_eq!(gives(argument, spelling, true), expected, "{argument} for {spelling}");
        }
    }
}
