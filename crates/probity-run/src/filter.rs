//! Which cases of a dataset are asked.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

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
    /// About one of these skills, or expecting none at all.
    pub skills: Vec<String>,
    /// In one of these groups of look-alikes.
    pub groups: Vec<String>,
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
        let Self {
            pattern,
            categories,
            tags,
            ids,
            skills,
            groups,
            only,
            shard,
            sample: _,
            limit: _,
        } = self;
        let routing = &case.routing;
        pattern.as_ref().is_none_or(|it| it.is_match(&case.id) || it.is_match(&case.prompt))
            && (categories.is_empty()
                || case.category.as_ref().is_some_and(|it| categories.contains(it)))
            && (tags.is_empty() || case.tags.iter().any(|tag| tags.contains(tag)))
            && (ids.is_empty() || ids.iter().any(|glob| glob_matches(glob, &case.id)))
            && (skills.is_empty()
                || routing.should_activate == Some(false)
                || skills.iter().any(|it| is_about(case, it)))
            && (groups.is_empty() || routing.group.as_ref().is_some_and(|it| groups.contains(it)))
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
        let Filter { ids, tags, categories, skills, groups, .. } = filter;
        let ids = ids.iter().map(|it| ("--case", it.clone()));
        let tags = tags.iter().map(|it| ("--tag", it.clone()));
        let categories = categories.iter().map(|it| ("--category", it.to_string()));
        let skills = skills.iter().map(|it| ("--skill", it.clone()));
        let groups = groups.iter().map(|it| ("--group", it.clone()));
        Self { names: ids.chain(tags).chain(categories).chain(skills).chain(groups).collect() }
    }

    /// Takes away what a case has.
    pub(crate) fn see(&mut self, case: &TestCase) {
        if !self.names.is_empty() {
            self.names.retain(|(flag, name)| match *flag {
                "--case" => !glob_matches(name, &case.id),
                "--tag" => !case.tags.contains(name),
                "--skill" => !is_about(case, name),
                "--group" => case.routing.group.as_ref() != Some(name),
                _ => case.category.as_ref().is_none_or(|it| it.as_str() != name),
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

/// Whether a skill is what a case is about, or one that it may choose.
fn is_about(case: &TestCase, skill: &str) -> bool {
    let routing = &case.routing;
    let named = routing.expected_skills.iter().chain(&routing.acceptable_skills);
    named.chain(&routing.skill).any(|it| it == skill)
}

/// So many of several groups that each has its share, and at least one as long as there are enough.
/// Within a group the numbers decide. The groups hold a number and an id for each case.
pub(crate) fn stratified(
    mut groups: BTreeMap<String, Vec<(u64, String)>>,
    most: u64,
) -> BTreeSet<String> {
    let total: u64 = groups.values().map(|it| it.len() as u64).sum();
    let most = most.min(total);
    let mut shares: Vec<(&String, u64, u64)> = groups
        .iter()
        .map(|(name, cases)| {
            let exact = u128::from(most) * cases.len() as u128;
            let whole = u64::try_from(exact / u128::from(total.max(1))).unwrap_or(0);
            let rest = u64::try_from(exact % u128::from(total.max(1))).unwrap_or(0);
            (name, whole, rest)
        })
        .collect();
    // What rounding down leaves over goes to those that would have none, then by the largest rest.
    shares.sort_by_key(|(name, whole, rest)| (*whole > 0, Reverse(*rest), *name));
    let mut left = most - shares.iter().map(|it| it.1).sum::<u64>();
    for share in &mut shares {
        let more = u64::from(left > 0);
        share.1 += more;
        left -= more;
    }
    // Whoever has none takes one from whoever has most.
    while let Some(none) = shares.iter().position(|it| it.1 == 0) {
        let Some(rich) = (0..shares.len()).max_by_key(|at| shares[*at].1) else { break };
        if shares[rich].1 < 2 {
            break;
        }
        shares[rich].1 -= 1;
        shares[none].1 += 1;
    }
    let shares: BTreeMap<String, u64> =
        shares.into_iter().map(|(name, count, _)| (name.clone(), count)).collect();
    let mut chosen = BTreeSet::new();
    for (name, cases) in &mut groups {
        cases.sort_unstable();
        let count = usize::try_from(shares.get(name).copied().unwrap_or(0)).unwrap_or(usize::MAX);
        chosen.extend(cases.drain(..).take(count).map(|(_, id)| id));
    }
    chosen
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
        TestCase { id: id.to_owned(), prompt: format!("say {id}").into(), ..TestCase::default() }
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
    fn a_part_of_each_group_is_chosen() {
        let group = |name: &str, count: u64| {
            let cases = (0..count).map(|at| (count - at, format!("{name}{at}")));
            (name.to_owned(), cases.collect::<Vec<_>>())
        };
        let groups = || BTreeMap::from([group("a", 8), group("b", 3), group("c", 1)]);
        let of = |most: u64| {
            let chosen = stratified(groups(), most);
            let count = |name: &str| chosen.iter().filter(|it| it.starts_with(name)).count();
            [count("a"), count("b"), count("c")]
        };
        assert_eq!(of(12), [8, 3, 1]);
        assert_eq!(of(100), [8, 3, 1]);
        assert_eq!(of(6), [4, 1, 1]);
        assert_eq!(of(4), [2, 1, 1]);
        assert_eq!(of(3), [1, 1, 1]);
        assert_eq!(of(2).iter().sum::<usize>(), 2);
        assert_eq!(of(0), [0, 0, 0]);
        assert_eq!(stratified(groups(), 3), ["a7", "b2", "c0"].map(str::to_owned).into());
    }

    #[test]
    fn a_skill_keeps_the_cases_that_expect_none() {
        use probity_core::case::Routing;
        let case = |id: &str, expected: &[&str], group: Option<&str>| TestCase {
            routing: Routing {
                expected_skills: expected.iter().map(|&it| it.to_owned()).collect(),
                should_activate: Some(!expected.is_empty()),
                group: group.map(ToOwned::to_owned),
                ..Routing::default()
            },
            ..case(id)
        };
        let filter = Filter { skills: vec!["x".to_owned()], ..Filter::default() };
        let taken = [case("a", &["x"], None), case("b", &["y"], None), case("c", &[], None)]
            .map(|it| filter.matches(&it));
        assert_eq!(taken, [true, false, true]);
        let filter = Filter { groups: vec!["g".to_owned()], ..Filter::default() };
        assert!(filter.matches(&case("a", &["x"], Some("g"))));
        assert!(!filter.matches(&case("a", &["x"], Some("h"))));
        assert!(!filter.matches(&case("a", &["x"], None)));
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

    #[test]
    fn names_that_no_case_has_are_left_over() {
        use probity_core::case::{Category, Routing};
        let names = |of: &str| vec![format!("{of}1"), format!("{of}2")];
        let filter = Filter {
            ids: vec!["i1*".to_owned(), "i2".to_owned()],
            tags: names("t"),
            categories: vec![Category::named("c1"), Category::named("c2")],
            skills: names("s"),
            groups: names("g"),
            ..Filter::default()
        };
        let mut unmet = Unmet::new(&filter);
        unmet.see(&TestCase {
            tags: vec!["t1".to_owned()],
            category: Some(Category::named("c1")),
            routing: Routing {
                expected_skills: vec!["s1".to_owned()],
                group: Some("g1".to_owned()),
                ..Routing::default()
            },
            ..case("i10")
        });
        let left: Vec<_> = unmet.iter().collect();
        let expected = [
            ("--case", "i2"),
            ("--category", "c2"),
            ("--group", "g2"),
            ("--skill", "s2"),
            ("--tag", "t2"),
        ];
        assert_eq!(left, expected);
        unmet.and(&Unmet::default());
        assert_eq!(unmet.iter().count(), 0);
    }
}
