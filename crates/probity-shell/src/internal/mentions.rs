//! What a command talks about: paths, patterns, sizes, ages, names. From these a world can be made in which it has
//! something to do.
//!
//! A mention is a hint, not a proof: what is missed or misread makes a world poorer and no verdict wrong.

mod call;
mod find;
mod walk;

use std::collections::{BTreeMap, BTreeSet};

use crate::Script;

/// What commands talk about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mentions {
    /// The programs that run, by their names.
    pub programs: BTreeSet<String>,
    /// Paths as they are written, `~` for the home directory.
    pub paths: BTreeMap<String, Role>,
    /// Patterns for base names, and for whole paths if they have a slash.
    pub names: BTreeSet<String>,
    /// What is searched for in texts.
    pub texts: BTreeSet<TextPattern>,
    /// Sizes of files that matter, in bytes.
    pub sizes: BTreeSet<u64>,
    /// Ages of files that matter, in seconds.
    pub ages: BTreeSet<u64>,
    /// Permission bits that matter.
    pub modes: BTreeSet<u32>,
    /// Names of users.
    pub users: BTreeSet<String>,
    /// Names of groups.
    pub groups: BTreeSet<String>,
    /// Variables and positional parameters that are read and never set, with the value that the other mentions take
    /// them to have.
    pub variables: BTreeMap<String, String>,
    /// Counts of lines, columns, levels.
    pub numbers: BTreeSet<u64>,
    /// What separates columns.
    pub separators: BTreeSet<String>,
    /// What runs as a process, by name.
    pub processes: BTreeSet<String>,
    /// Types of files that are asked for, by their letters: `d`, `l`.
    pub kinds: BTreeSet<char>,
    /// Whether the directory where the command starts matters.
    pub here: bool,
    /// Whether it is asked if something is empty.
    pub emptiness: bool,
}

/// What a path is to a command. If it is several things, the greatest counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// It is created or replaced.
    Target,
    /// It is read or changed, and may be a file or a directory.
    Any,
    /// It is read as a file.
    File,
    /// It is a directory.
    Directory,
}

/// What is searched for in a text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TextPattern {
    /// As it is written.
    pub pattern: String,
    /// How it is read.
    pub syntax: Syntax,
}

/// How a pattern is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Syntax {
    /// Every character stands for itself.
    Fixed,
    /// A basic regular expression.
    Basic,
    /// An extended regular expression.
    Extended,
    /// A regular expression of Perl.
    Perl,
}

impl Mentions {
    /// What a script talks about.
    pub fn of(script: &Script<'_>) -> Self {
        let mut walker = walk::Walker::default();
        walker.statements(&script.body);
        walker.found
    }

    /// What both talk about.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        let Self {
            programs,
            paths,
            names,
            texts,
            sizes,
            ages,
            modes,
            users,
            groups,
            variables,
            numbers,
            separators,
            processes,
            kinds,
            here,
            emptiness,
        } = other;
        self.programs.extend(programs);
        paths.into_iter().for_each(|(path, role)| self.path(&path, role));
        self.names.extend(names);
        self.texts.extend(texts);
        self.sizes.extend(sizes);
        self.ages.extend(ages);
        self.modes.extend(modes);
        self.users.extend(users);
        self.groups.extend(groups);
        self.variables.extend(variables);
        self.numbers.extend(numbers);
        self.separators.extend(separators);
        self.processes.extend(processes);
        self.kinds.extend(kinds);
        self.here |= here;
        self.emptiness |= emptiness;
        self
    }

    fn path(&mut self, path: &str, role: Role) {
        let known = self.paths.entry(path.to_owned()).or_insert(role);
        *known = role.max(*known);
    }

    fn text(&mut self, pattern: &str, syntax: Syntax) {
        if !pattern.is_empty() {
            self.texts.insert(TextPattern { pattern: pattern.to_owned(), syntax });
        }
    }

    /// Every whole number in a text: `3,5p`, `1~2`, `-f2-4`.
    fn numbers_in(&mut self, text: &str) {
        let numbers = text.split(|it: char| !it.is_ascii_digit());
        self.numbers.extend(numbers.filter_map(|it| it.parse::<u64>().ok()));
    }
}

#[cfg(test)]
mod tests;
