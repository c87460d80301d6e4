//! What is known about utilities: their options, operands and habits, read from `data/utilities/`.
//!
//! A utility's table is parsed when it is first asked for, so that a program that judges one command pays for one.

mod spec;

use std::sync::{LazyLock, OnceLock};

pub(crate) use spec::{Many, OptionSpec, Repeat, Slot, Utility, Value};

macro_rules! families {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../data/utilities/", $name)))),*]
    };
}

const FILES: &[(&str, &str)] = families![
    "archives.toml",
    "cloud.toml",
    "containers.toml",
    "coreutils-files.toml",
    "coreutils-text.toml",
    "databases.toml",
    "find-grep-sed-awk.toml",
    "git.toml",
    "languages.toml",
    "network.toml",
    "packages.toml",
    "processes.toml",
    "shell.toml",
    "system.toml",
];

struct Entry {
    name: &'static str,
    file: &'static str,
    text: &'static str,
    utility: OnceLock<Utility>,
}

/// All entries sorted by first byte, then by length, then by name; and where each first byte's entries begin. Every
/// command asks several times, and most words are no utility at all.
struct Index {
    entries: Vec<Entry>,
    starts: [usize; 257],
}

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let mut entries: Vec<Entry> = FILES
        .iter()
        .flat_map(|(file, text)| sections(text).map(move |(name, text)| (*file, name, text)))
        .map(|(file, name, text)| Entry { name, file, text, utility: OnceLock::new() })
        .collect();
    entries.sort_by_key(|it| (first_byte(it.name), it.name.len(), it.name));
    let mut starts = [entries.len(); 257];
    for (at, entry) in entries.iter().enumerate().rev() {
        starts[usize::from(first_byte(entry.name))] = at;
    }
    for at in (0..256).rev() {
        starts[at] = starts[at].min(starts[at + 1]);
    }
    Index { entries, starts }
});

fn first_byte(name: &str) -> u8 {
    name.bytes().next().unwrap_or_default()
}

fn find(name: &str) -> Option<&'static Entry> {
    let first = usize::from(first_byte(name));
    let entries = &INDEX.entries[INDEX.starts[first]..INDEX.starts[first + 1]];
    entries.iter().find(|it| it.name.len() == name.len() && it.name == name)
}

/// The utility of that name, if we know it.
///
/// # Panics
///
/// Never: a test reads every table.
pub(crate) fn lookup(name: &str) -> Option<&'static Utility> {
    let entry = find(name)?;
    Some(entry.utility.get_or_init(|| {
        Utility::parse(entry.name, entry.text).unwrap_or_else(|error| {
            panic!("a test reads every table, and data/utilities/{}: {error}", entry.file)
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
    INDEX.entries.iter().map(|it| it.name)
}

/// The tables of a file: each utility's name with all lines up to the next utility's.
fn sections(text: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let mut starts: Vec<(usize, &'static str)> = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if let Some(name) = table_name(line)
            && starts.last().is_none_or(|(_, last)| *last != name)
        {
            starts.push((at, name));
        }
        at += line.len();
    }
    let ends: Vec<usize> =
        starts.iter().skip(1).map(|(start, _)| *start).chain([text.len()]).collect();
    starts.into_iter().zip(ends).map(move |((start, name), end)| (name, &text[start..end]))
}

/// The first segment of a table header, `git` for `[git.commands.add]`.
fn table_name(line: &'static str) -> Option<&'static str> {
    let path = line.strip_prefix('[')?;
    if path.starts_with('[') {
        return None;
    }
    match path.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => path.split(['.', ']']).next(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_can_be_read() {
        for entry in &INDEX.entries {
            if let Err(error) = Utility::parse(entry.name, entry.text) {
                panic!("data/utilities/{}: {error}", entry.file);
            }
        }
    }

    #[test]
    fn a_table_says_where_it_comes_from() {
        let parsed = |text: &str| Utility::parse("x", text).map(drop).map_err(|it| it.to_string());
        assert_eq!(parsed("[x]\nsource = \"x 1.2 --help\"\n[x.commands.y]"), Ok(()));
        let missing = Err("`x`: `source` is missing: say where it comes from".to_owned());
        assert_eq!(parsed("[x]\noptions = [\"-a\"]"), missing);
        assert_eq!(parsed("[x]\nsource = \" \""), missing);
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
    fn every_file_is_listed() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/data/utilities");
        let mut found: Vec<_> = std::fs::read_dir(folder)
            .expect("the crate ships it")
            .map(|entry| {
                entry.expect("it can be listed").file_name().into_string().expect("names are plain")
            })
            .filter(|name| std::path::Path::new(name).extension().is_some_and(|it| it == "toml"))
            .collect();
        found.sort();
        assert_eq!(found, FILES.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    }

    #[test]
    fn no_utility_is_described_twice() {
        for pair in INDEX.entries.windows(2) {
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
