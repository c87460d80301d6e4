//! Regular expressions that users write.

use std::ops::Range;

use regex::{Regex, RegexBuilder};

use crate::extract::Take;

/// Largest compiled regular expression, in bytes.
const LARGEST: usize = 4 << 20;
/// Matches that are looked at for the last one: each may cost as much as the text is long.
const MOST_MATCHES: usize = 10_000;
/// The same, of an expression that looks around.
const MOST_COSTLY_MATCHES: usize = 1_000;
/// How often an expression that looks around may go back.
const MOST_STEPS: usize = 100_000;
/// The longest text that such an expression is asked about, in bytes.
const LONGEST: usize = 256 << 10;

/// Compiles an expression that takes linear time, or says why it is none.
pub fn compile(pattern: &str) -> Result<Regex, String> {
    RegexBuilder::new(pattern).size_limit(LARGEST).build().map_err(|error| message(&error))
}

/// The last line of an error; the others draw the pattern, which the diagnostic does itself.
fn message(error: &regex::Error) -> String {
    if let regex::Error::CompiledTooBig(limit) = error {
        return format!("the regular expression is larger than {} MiB", limit >> 20);
    }
    let text = error.to_string();
    let last = text.lines().last().unwrap_or("").trim();
    let what = last.strip_prefix("error: ").unwrap_or(last);
    format!("the regular expression does not compile: {what}")
}

/// Which part of a match is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Group {
    /// The group of that number; 0 is the whole match.
    Number(usize),
    /// The group of that name.
    Name(String),
}

/// An expression that something is taken out of texts with. It may look around: then its work is bounded.
#[derive(Clone, Debug)]
pub struct Pattern {
    engine: Engine,
    group: Option<usize>,
}

#[derive(Clone, Debug)]
enum Engine {
    Linear(Regex),
    Backtracking(Box<fancy_regex::Regex>),
}

impl Pattern {
    /// Compiles an expression, or says why it is none. Without a group, the first group of a match that
    /// holds something is taken, and the whole match if there is none.
    pub fn new(pattern: &str, group: Option<&Group>) -> Result<Self, String> {
        let engine = match compile(pattern) {
            Ok(regex) => Engine::Linear(regex),
            Err(why) => {
                let built = fancy_regex::RegexBuilder::new(pattern)
                    .backtrack_limit(MOST_STEPS)
                    .delegate_size_limit(LARGEST)
                    .build();
                Engine::Backtracking(Box::new(built.map_err(|_| why)?))
            }
        };
        let names: Vec<Option<&str>> = match &engine {
            Engine::Linear(regex) => regex.capture_names().collect(),
            Engine::Backtracking(regex) => regex.capture_names().collect(),
        };
        let group = match group {
            None => None,
            Some(Group::Number(number)) if *number < names.len() => Some(*number),
            Some(Group::Number(number)) => {
                let most = names.len() - 1;
                return Err(format!("there is no group {number}: the expression has {most}"));
            }
            Some(Group::Name(name)) => {
                let found = names.iter().position(|it| *it == Some(name));
                let number = found.ok_or_else(|| format!("there is no group named `{name}`"))?;
                Some(number)
            }
        };
        Ok(Self { engine, group })
    }

    /// The expression as it was written.
    pub fn as_str(&self) -> &str {
        match &self.engine {
            Engine::Linear(regex) => regex.as_str(),
            Engine::Backtracking(regex) => regex.as_str(),
        }
    }

    /// Where the first or the last match has what is to be taken; an error if that is too much work.
    pub fn find(&self, text: &str, take: Take) -> Result<Option<Range<usize>>, TooCostly> {
        match &self.engine {
            Engine::Linear(regex) => {
                let all = regex.captures_iter(text).map(|captures| {
                    Ok(self.taken(captures.len(), |at| Some(captures.get(at)?.range())))
                });
                chosen(all, take, MOST_MATCHES)
            }
            Engine::Backtracking(_) if text.len() > LONGEST => Err(TooCostly),
            Engine::Backtracking(regex) => {
                let all = regex.captures_iter(text).map(|captures| {
                    let captures = captures.map_err(|_| TooCostly)?;
                    Ok(self.taken(captures.len(), |at| {
                        captures.get(at).map(|it| it.start()..it.end())
                    }))
                });
                chosen(all, take, MOST_COSTLY_MATCHES)
            }
        }
    }

    fn taken(
        &self,
        groups: usize,
        group: impl Fn(usize) -> Option<Range<usize>>,
    ) -> Option<Range<usize>> {
        match self.group {
            Some(number) => group(number),
            None => (1..groups).filter_map(&group).find(|it| !it.is_empty()).or_else(|| group(0)),
        }
    }
}

/// The first or the last match that has what is to be taken, of at most so many.
fn chosen<T>(
    all: impl Iterator<Item = Result<Option<T>, TooCostly>>,
    take: Take,
    most: usize,
) -> Result<Option<T>, TooCostly> {
    let mut found = None;
    for (seen, taken) in all.enumerate() {
        if seen == most {
            return Err(TooCostly);
        }
        found = taken?.or(found);
        if found.is_some() && take == Take::First {
            break;
        }
    }
    Ok(found)
}

/// There are too many matches; or an expression that looks around went back too often, or the text
/// is too long for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooCostly;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, group: Option<&Group>, text: &str, expected: [&str; 2]) {
        let pattern = Pattern::new(pattern, group).unwrap();
        for (take, expected) in [Take::First, Take::Last].into_iter().zip(expected) {
            let found = pattern.find(text, take).unwrap().map(|span| &text[span]);
            assert_eq!(found, Some(expected), "{pattern:?} {take:?}");
        }
    }

    #[test]
    fn the_first_group_that_holds_something_is_taken() {
        check(r"(-?[$0-9.,]{2,})|(-?[0-9]+)", None, "1 apple for $2.50 and 3", ["1", "3"]);
        check(r"\d+", None, "1 2 3", ["1", "3"]);
        check(r"(\w)=(?<value>\d)", Some(&Group::Name("value".into())), "a=1 b=2", ["1", "2"]);
        check(r"(\w)=(\d)", Some(&Group::Number(0)), "a=1 b=2", ["a=1", "b=2"]);
    }

    #[test]
    fn an_expression_may_look_around() {
        check(r"(?<=answer is )\w+(?=\.)", None, "the answer is 4. no, answer is 5.", ["4", "5"]);
        check(r"(a|b)\1", Some(&Group::Number(1)), "ab aa bb", ["a", "b"]);
    }

    #[test]
    fn looking_around_is_bounded() {
        let pattern = Pattern::new(r"(?=(a+)+$)(a+)+b\1", None).unwrap();
        let hostile = "a".repeat(10_000);
        assert_eq!(pattern.find(&hostile, Take::Last), Err(TooCostly));
    }

    #[test]
    fn the_last_match_is_the_last_or_none() {
        for (pattern, most) in [(r"\d", MOST_MATCHES), (r"\d(?= )", MOST_COSTLY_MATCHES)] {
            let pattern = Pattern::new(pattern, None).unwrap();
            let few = "1 ".repeat(most - 1) + "2 ";
            assert_eq!(pattern.find(&few, Take::Last), Ok(Some(few.len() - 2..few.len() - 1)));
            let many = "1 ".repeat(most) + "2 ";
            assert_eq!(pattern.find(&many, Take::Last), Err(TooCostly));
            assert_eq!(pattern.find(&many, Take::First), Ok(Some(0..1)));
        }
    }

    #[test]
    fn what_is_wrong_with_an_expression_is_said() {
        let why =
            |pattern, group: Option<Group>| Pattern::new(pattern, group.as_ref()).unwrap_err();
        assert!(why("(", None).contains("unclosed group"));
        let none = why("(a)", Some(Group::Number(2)));
        assert_eq!(none, "there is no group 2: the expression has 1");
        let named = why("(a)", Some(Group::Name("b".into())));
        assert_eq!(named, "there is no group named `b`");
    }
}
