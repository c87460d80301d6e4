//! Skills: folders of Markdown with instructions for a model.
//!
//! A skill is a folder with a `SKILL.md` whose front matter has a `description`; what lies beside it
//! are its companions. A Markdown file with front matter is a skill as well.

mod load;
mod text;

use std::{collections::BTreeMap, fmt::Write as _, path::PathBuf, sync::Arc};

use probity_core::record::InputDigest;

pub use load::load;

/// Characters of a description that an index shows.
pub const INDEX_CHARACTERS: usize = 120;
/// Bytes of companions that are shown to a model, unless a runner says otherwise.
pub const COMPANION_BYTES: u64 = 30_000;

/// One skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    /// What it is called.
    pub id: String,
    /// When it is of use.
    pub description: String,
    /// The instructions, without the front matter.
    pub body: Arc<str>,
    /// Bytes of the whole file.
    pub bytes: u64,
    /// Its file.
    pub path: PathBuf,
    /// What lies beside it, in the order of the names.
    pub companions: Vec<Companion>,
}

/// A file beside a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Companion {
    /// Its name, relative to the skill.
    pub name: String,
    /// What is in it.
    pub text: String,
}

/// Skills by their ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Library {
    /// The skills.
    pub skills: BTreeMap<String, Skill>,
}

impl Library {
    /// A line for each skill, sorted by id: the id and the beginning of the description.
    ///
    /// ```
    /// use probity_load::skill::Library;
    ///
    /// assert_eq!(Library::default().index(|_| true), "");
    /// ```
    pub fn index(&self, shown: impl Fn(&str) -> bool) -> String {
        let shown = self.skills.values().filter(|skill| shown(&skill.id));
        let lines = shown.map(|skill| format!("- {}: {}\n", skill.id, skill.short()));
        lines.collect()
    }
}

impl Library {
    /// What tells these skills from others.
    pub fn digest(&self) -> InputDigest {
        InputDigest::of(self.skills.values().flat_map(Skill::texts).map(str::as_bytes))
    }

    /// The same for each of them.
    pub fn digests(&self) -> BTreeMap<String, String> {
        let digest = |skill: &Skill| InputDigest::of(skill.texts().map(str::as_bytes)).to_string();
        self.skills.values().map(|skill| (skill.id.clone(), digest(skill))).collect()
    }
}

impl Skill {
    fn texts(&self) -> impl Iterator<Item = &str> {
        let beside = self.companions.iter().flat_map(|it| [it.name.as_str(), &it.text]);
        [self.id.as_str(), &self.description, &self.body].into_iter().chain(beside)
    }

    /// The description on one line, cut to what an index shows.
    pub fn short(&self) -> String {
        text::cut(&text::one_line(&self.description), INDEX_CHARACTERS)
    }

    /// The description and the section about scope, without code and references to other files;
    /// without such a section, what stands before the second heading.
    pub fn summary(&self) -> String {
        let description = text::one_line(&self.description);
        match text::scope(&self.body) {
            scope if scope.is_empty() => description,
            scope => format!("{description}\n\n{scope}"),
        }
    }

    /// The instructions and, up to `limit` bytes, the companions behind them.
    pub fn with_companions(&self, limit: u64) -> String {
        let mut left = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut all = self.body.trim_end().to_owned();
        for Companion { name, text } in &self.companions {
            let part = &text[..text.floor_char_boundary(left)];
            if part.trim().is_empty() {
                continue;
            }
            left -= part.len();
            let _ = write!(all, "\n\n## File `{name}`\n\n{}", part.trim_end());
        }
        all
    }

    /// Bytes of all companions.
    pub fn companion_bytes(&self) -> u64 {
        self.companions.iter().map(|it| it.text.len() as u64).sum()
    }
}

#[cfg(test)]
mod tests;
