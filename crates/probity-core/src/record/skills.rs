//! The skills that a lane is about, and what has changed about them.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

/// The skills that a lane is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillsInfo {
    /// How many there are.
    pub count: u64,
    /// Characters of their index.
    pub index_characters: u64,
    /// Of their texts.
    pub digest: String,
    /// Of the text of each, by its name. Version 0.1 did not keep them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub digests: BTreeMap<String, String>,
}

impl SkillsInfo {
    /// What has changed since; none if nothing has.
    pub fn changes_since(&self, before: &Self) -> Option<SkillChanges> {
        let changed = self.digest != before.digest;
        let is_known = !self.digests.is_empty() && !before.digests.is_empty();
        changed.then(|| match is_known {
            true => SkillChanges::between(&before.digests, &self.digests).unwrap_or_default(),
            false => SkillChanges::default(),
        })
    }
}

/// Skills whose texts are not what they were. Empty lists: some are, and nobody knows which.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SkillChanges {
    /// Those with another text.
    pub changed: Vec<String>,
    /// Those that were not there before.
    pub new: Vec<String>,
    /// Those that are not there any more.
    pub gone: Vec<String>,
}

impl SkillChanges {
    /// What has changed from digests to others; none if nothing has.
    pub fn between(
        before: &BTreeMap<String, String>,
        now: &BTreeMap<String, String>,
    ) -> Option<Self> {
        let missing = |from: &BTreeMap<String, String>, of: &BTreeMap<String, String>| {
            of.keys().filter(|it| !from.contains_key(*it)).cloned().collect::<Vec<_>>()
        };
        let is_other =
            |(name, digest): &(&String, &String)| before.get(*name).is_some_and(|it| it != *digest);
        let changed = now.iter().filter(is_other).map(|(name, _)| name.clone()).collect();
        let found = Self { changed, new: missing(before, now), gone: missing(now, before) };
        (found != Self::default()).then_some(found)
    }
}

impl fmt::Display for SkillChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { changed, new, gone } = self;
        f.write_str("the skills differ")?;
        let lists = [("changed", changed), ("new", new), ("gone", gone)];
        for (at, (word, names)) in
            lists.into_iter().filter(|(_, names)| !names.is_empty()).enumerate()
        {
            write!(f, "{} {word} {}", if at == 0 { ":" } else { ";" }, names.join(", "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(skills: &[(&str, &str)]) -> SkillsInfo {
        let digests = skills.iter().map(|(name, it)| ((*name).to_owned(), (*it).to_owned()));
        SkillsInfo {
            count: 0,
            index_characters: 0,
            digest: format!("{skills:?}"),
            digests: digests.collect(),
        }
    }

    #[test]
    fn what_changed_is_named() {
        let before = info(&[("a", "1"), ("b", "1"), ("c", "1")]);
        let now = info(&[("a", "1"), ("b", "2"), ("d", "1")]);
        assert_eq!(before.changes_since(&before), None);
        assert_eq!(
            now.changes_since(&before).unwrap().to_string(),
            "the skills differ: changed b; new d; gone c"
        );
        let unknown = SkillsInfo { digests: BTreeMap::new(), ..before };
        let told = now.changes_since(&unknown).unwrap().to_string();
        assert_eq!(told, "the skills differ");
    }
}
