//! What is known about utilities: their options, operands and habits, read from `data/utilities/`.
//!
//! A utility's table is parsed when it is first asked for, so that a program that judges one command pays for one.

mod spec;

use std::sync::{LazyLock, OnceLock};

pub(crate) use spec::{Many, OptionSpec, Repeat, Slot, Utility, Value};

/// A table of `data/utilities/`, not yet read.
struct Source {
    name: &'static str,
    /// Where it stands.
    file: &'static str,
    /// Its fields, as JSON.
    text: &'static str,
}

/// Sorted by first byte, then by length, then by name.
const SOURCES: &[Source] = include!(concat!(env!("OUT_DIR"), "/utilities.rs"));

/// What was read so far, and where each first byte's tables begin. Every command asks several times, and most words are no
/// utility at all.
struct Index {
    read: Vec<OnceLock<Utility>>,
    starts: [usize; 257],
}

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let mut starts = [SOURCES.len(); 257];
    for (at, source) in SOURCES.iter().enumerate().rev() {
        starts[usize::from(first_byte(source.name))] = at;
    }
    for at in (0..256).rev() {
        starts[at] = starts[at].min(starts[at + 1]);
    }
    Index { read: SOURCES.iter().map(|_| OnceLock::new()).collect(), starts }
});

fn first_byte(name: &str) -> u8 {
    name.bytes().next().unwrap_or_default()
}

fn find(name: &str) -> Option<usize> {
    let first = usize::from(first_byte(name));
    let (start, end) = (INDEX.starts[first], INDEX.starts[first + 1]);
    let same = |it: &Source| it.name.len() == name.len() && it.name == name;
    SOURCES[start..end].iter().position(same).map(|at| start + at)
}

/// The utility of that name, if we know it.
///
/// # Panics
///
/// Never: a test reads every table.
pub(crate) fn lookup(name: &str) -> Option<&'static Utility> {
    let at = find(name)?;
    Some(INDEX.read[at].get_or_init(|| {
        let Source { name, file, text } = &SOURCES[at];
        Utility::parse(name, text).unwrap_or_else(|error| {
            panic!("a test reads every table, and data/utilities/{file}: {error}")
        })
    }))
}

/// Whether there is a table for that name.
pub(crate) fn is_known(name: &str) -> bool {
    find(name).is_some()
}

/// The names of all utilities we know.
#[cfg(test)]
fn names() -> impl Iterator<Item = &'static str> {
    SOURCES.iter().map(|it| it.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_can_be_read() {
        for Source { name, file, text } in SOURCES {
            if let Err(error) = Utility::parse(name, text) {
                panic!("data/utilities/{file}: {error}");
            }
        }
    }

    #[test]
    fn a_table_says_where_it_comes_from() {
        let parsed = |text: &str| Utility::parse("x", text).map(drop).map_err(|it| it.to_string());
        assert_eq!(parsed(r#"{"source":"x 1.2 --help","commands":{"y":{}}}"#), Ok(()));
        let missing = Err("`x`: `source` is missing: say where it comes from".to_owned());
        assert_eq!(parsed(r#"{"options":["-a"]}"#), missing);
        assert_eq!(parsed(r#"{"source":" "}"#), missing);
    }

    #[test]
    fn spellings_are_those_of_the_tools() {
        let has = |name: &str, spelling: &str| {
            lookup(name).is_some_and(|it| it.option(spelling).is_some())
        };
        assert!(has("diff", "--paginate"));
        assert!(!has("sqlite3", "-headers"));
        let git = lookup("git").expect("it is known");
        assert!(git.commands["log"].option("-q").is_some());
    }

    #[test]
    fn no_utility_is_described_twice() {
        for pair in SOURCES.windows(2) {
            assert_ne!(pair[0].name, pair[1].name);
        }
    }

    #[test]
    fn options_that_stand_for_others_end_somewhere() {
        fn check(table: &Utility, path: &str) {
            for spec in &table.options {
                let mut pending: Vec<(&str, usize)> = vec![(spec.name(), 0)];
                while let Some((spelling, depth)) = pending.pop() {
                    assert!(depth < 5, "`{path} {}` stands for itself", spec.name());
                    let next =
                        &table.options[table.option(spelling).expect("a table names only its own")];
                    pending.extend(next.expands.iter().map(|(other, _)| (&**other, depth + 1)));
                }
            }
            table.commands.values().for_each(|it| check(it, &format!("{path} {}", it.name)));
        }
        names().for_each(|name| check(lookup(name).expect("it is listed"), name));
    }

    #[test]
    fn other_names_lead_to_utilities_that_exist() {
        for name in names() {
            let Some(words) = &lookup(name).expect("it is listed").same_as else { continue };
            assert!(lookup(&words[0]).is_some(), "`{name}` is said to be `{}`", words.join(" "));
        }
    }
}
