//! Names that commands and files can hold, each given once.

use std::collections::{BTreeMap, BTreeSet};

/// Characters of the longest name.
const LONGEST: usize = 100;

/// Gives names.
#[derive(Debug, Default)]
pub(crate) struct Names {
    given: BTreeMap<String, String>,
    taken: BTreeSet<String>,
}

impl Names {
    /// The name of a text; the same for the same text.
    pub(crate) fn of(&mut self, text: &str, otherwise: &str) -> String {
        if let Some(name) = self.given.get(text) {
            return name.clone();
        }
        let name = self.fresh(text, otherwise);
        self.given.insert(text.to_owned(), name.clone());
        name
    }

    /// A name made of a text that no other has.
    pub(crate) fn fresh(&mut self, text: &str, otherwise: &str) -> String {
        let name = numbered(&usable(text, otherwise), |it| !self.taken.contains(it));
        self.taken.insert(name.clone());
        name
    }
}

/// A name, with the first number behind it that makes it free if it is not.
pub(crate) fn numbered(base: &str, is_free: impl Fn(&str) -> bool) -> String {
    let mut name = base.to_owned();
    let mut count = 1;
    while !is_free(&name) {
        count += 1;
        name = format!("{base}-{count}");
    }
    name
}

/// A name made of a text: what it may not hold becomes a hyphen.
pub(crate) fn usable(text: &str, otherwise: &str) -> String {
    let mut name = String::new();
    for c in text.trim().chars().take(LONGEST) {
        match c {
            c if c.is_alphanumeric() || "._/:-#+".contains(c) => name.push(c),
            _ if name.ends_with('-') => {}
            _ => name.push('-'),
        }
    }
    match name.trim_matches('-') {
        "" => otherwise.to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_text_keeps_its_name_and_another_gets_its_own() {
        let mut names = Names::default();
        assert_eq!(names.of("a b!", "x"), "a-b");
        assert_eq!(names.of("a b?", "x"), "a-b-2");
        assert_eq!(names.of("a b!", "x"), "a-b");
        assert_eq!(names.of("{{}}", "prompt"), "prompt");
    }
}
