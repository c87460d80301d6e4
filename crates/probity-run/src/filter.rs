//! Which cases of a dataset are asked.

use std::collections::BTreeSet;

use probity_core::{
    case::{Category, TestCase},
    record::InputDigest,
};
use regex::Regex;

/// What a case has to be to be asked. Every part that is set has to hold.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Found in the id or in the prompt.
    pub pattern: Option<Regex>,
    /// One of these.
    pub categories: Vec<Category>,
    /// At least one of these.
    pub tags: Vec<String>,
    /// One of these ids, in which `*` stands for anything.
    pub ids: Vec<String>,
    /// One of these ids, to the letter.
    pub only: Option<BTreeSet<String>>,
    /// In this part of the dataset.
    pub shard: Option<Shard>,
    /// A sample: those whose number is not above this.
    pub sample: Option<Sample>,
    /// No more than this many.
    pub limit: Option<u64>,
}

/// One of several parts of a dataset that together are all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which one, from 1.
    pub index: u64,
    /// How many there are.
    pub count: u64,
}

/// Part of a dataset that chance chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The same seed chooses the same cases.
    pub seed: u64,
    /// The largest number that is chosen.
    pub highest: u64,
}

/// Goes through a dataset and chooses.
#[derive(Debug)]
pub(crate) struct Chooser<'f> {
    filter: &'f Filter,
    /// How many were chosen so far.
    chosen: u64,
}

impl<'f> Chooser<'f> {
    pub(crate) fn new(filter: &'f Filter) -> Self {
        Self { filter, chosen: 0 }
    }

    /// Whether the next case of the dataset is asked.
    pub(crate) fn takes(&mut self, case: &TestCase) -> bool {
        let Filter { sample, limit, .. } = self.filter;
        let chosen = self.filter.matches(case)
            && sample.is_none_or(|it| number(it.seed, &case.id) <= it.highest)
            && limit.is_none_or(|limit| self.chosen < limit);
        self.chosen += u64::from(chosen);
        chosen
    }
}

impl Filter {
    /// Whether a case may be chosen, by what it is alone.
    pub(crate) fn matches(&self, case: &TestCase) -> bool {
        let Self { pattern, categories, tags, ids, only, shard, sample: _, limit: _ } = self;
        pattern.as_ref().is_none_or(|it| it.is_match(&case.id) || it.is_match(&case.prompt))
            && (categories.is_empty() || case.category.is_some_and(|it| categories.contains(&it)))
            && (tags.is_empty() || case.tags.iter().any(|tag| tags.contains(tag)))
            && (ids.is_empty() || ids.iter().any(|glob| glob_matches(glob, &case.id)))
            && only.as_ref().is_none_or(|only| only.contains(&case.id))
            && shard.is_none_or(|it| number(0, &case.id) % it.count == it.index - 1)
    }
}

/// Names in a filter that no case has: most often a slip of the pen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unmet {
    names: BTreeSet<(&'static str, String)>,
}

impl Unmet {
    pub(crate) fn new(filter: &Filter) -> Self {
        let Filter { ids, tags, categories, .. } = filter;
        let ids = ids.iter().map(|it| ("--case", it.clone()));
        let tags = tags.iter().map(|it| ("--tag", it.clone()));
        let categories = categories.iter().map(|it| ("--category", it.to_string()));
        Self { names: ids.chain(tags).chain(categories).collect() }
    }

    /// Takes away what a case has.
    pub(crate) fn see(&mut self, case: &TestCase) {
        if !self.names.is_empty() {
            self.names.retain(|(flag, name)| match *flag {
                "--case" => !glob_matches(name, &case.id),
                "--tag" => !case.tags.contains(name),
                _ => case.category.is_none_or(|it| it.as_str() != name),
            });
        }
    }

    /// What two datasets both lack.
    pub fn and(&mut self, other: &Self) {
        self.names.retain(|name| other.names.contains(name));
    }

    /// Each as it was written on the command line.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.names.iter().map(|(flag, name)| (*flag, name.as_str()))
    }
}

/// A number for a case that depends on nothing but the seed and its id.
pub(crate) fn number(seed: u64, case_id: &str) -> u64 {
    let digest = InputDigest::of([&seed.to_le_bytes()[..], case_id.as_bytes()]);
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&digest.0[..8]);
    u64::from_le_bytes(bytes)
}

/// Whether a text is what a pattern with `*` says.
fn glob_matches(glob: &str, text: &str) -> bool {
    let mut parts = glob.split('*');
    let first = parts.next().unwrap_or("");
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(id: &str) -> TestCase {
        TestCase { id: id.to_owned(), prompt: format!("say {id}"), ..TestCase::default() }
    }

    fn selected(filter: &Filter, ids: &[&str]) -> Vec<String> {
        let mut chooser = Chooser::new(filter);
        ids.iter().filter(|id| chooser.takes(&case(id))).map(|&id| id.to_owned()).collect()
    }

    #[test]
    fn stars_stand_for_anything() {
        let cases = [
            ("a*", "abc", true),
            ("*c", "abc", true),
            ("a*c", "abc", true),
            ("a*b*c", "axbxc", true),
            ("a", "ab", false),
            ("*", "", true),
            ("a*a", "a", false),
            ("*b*", "abc", true),
            ("", "a", false),
        ];
        for (glob, text, expected) in cases {
            assert_eq!(glob_matches(glob, text), expected, "{glob} on {text}");
        }
    }

    #[test]
    fn every_part_has_to_hold() {
        let filter = Filter {
            ids: vec!["a*".to_owned()],
            pattern: Some(Regex::new("2$").unwrap()),
            ..Filter::default()
        };
        assert_eq!(selected(&filter, &["a1", "a2", "b2"]), ["a2"]);
        let filter = Filter { limit: Some(2), ..Filter::default() };
        assert_eq!(selected(&filter, &["a", "b", "c"]), ["a", "b"]);
    }

    #[test]
    fn shards_together_are_everything_once() {
        let ids: Vec<String> = (0..100).map(|it| format!("case-{it}")).collect();
        let mut all: Vec<String> = Vec::new();
        for index in 1..=3 {
            let filter = Filter { shard: Some(Shard { index, count: 3 }), ..Filter::default() };
            let mut chooser = Chooser::new(&filter);
            all.extend(ids.iter().filter(|id| chooser.takes(&case(id))).cloned());
        }
        all.sort_unstable();
        let mut expected = ids;
        expected.sort_unstable();
        assert_eq!(all, expected);
    }
}
