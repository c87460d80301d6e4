//! Examples that cases are asked with, each with its answer: few-shot.

use std::path::PathBuf;

use probity_core::located::Node;

use super::{WrittenAt, runner::Surroundings};
use crate::case::Fields;

/// The most examples that a case is asked with.
const MOST: u64 = 10_000;

/// The keys of a runner and of a variant that are about examples.
pub(super) const KEYS: &[&str] = &["examples", "examples_k", "examples_seed"];

/// The examples of a runner, or of one of its variants.
#[derive(Clone, Debug, PartialEq)]
pub struct ExamplesConfig {
    /// The dataset that they are taken from.
    pub file: PathBuf,
    /// Where it is named.
    pub at: WrittenAt,
    /// How many a case is asked with; none for all.
    pub count: Option<usize>,
    /// Draws them for each case; none takes the first ones.
    pub seed: Option<u64>,
    /// Whether templates or a function have a place for them. Else they are a conversation before the
    /// prompt.
    pub in_template: bool,
}

/// What a runner or a variant says of examples.
#[derive(Clone, Debug, Default)]
pub(super) struct Said {
    file: Option<(PathBuf, WrittenAt)>,
    count: Option<usize>,
    seed: Option<u64>,
}

impl Said {
    /// Reads the keys. `outer` counts where this is silent, and `what` is whose keys they are.
    pub(super) fn decode(
        outer: &Self,
        what: &str,
        surroundings: &Surroundings<'_>,
        fields: &mut Fields<'_, '_>,
    ) -> Self {
        let place = |node: &Node| surroundings.place(node, format!("`examples` of {what}"));
        let file = fields.text("examples").zip(fields.get("examples"));
        let file = file.map(|(name, node)| (surroundings.folder.join(name), place(node)));
        let count = fields.count("examples_k", 0..=MOST).and_then(|it| usize::try_from(it).ok());
        let seed = fields.count("examples_seed", 0..=u64::MAX);
        let said = Self {
            file: file.or_else(|| outer.file.clone()),
            count: count.or(outer.count),
            seed: seed.or(outer.seed),
        };
        let stated = KEYS.iter().find(|key| fields.get(key).is_some());
        // An `examples` that is no text was reported.
        if let Some(key) = stated.filter(|key| said.file.is_none() && **key != "examples") {
            let (span, message) = (fields.span(key), format!("`{key}` needs `examples`"));
            fields.findings().error("missing-field", &span, message);
        }
        said
    }

    /// The examples, unless there are to be none.
    pub(super) fn config(self, in_template: bool) -> Option<ExamplesConfig> {
        let Self { file, count, seed } = self;
        let (file, at) = file.filter(|_| count != Some(0))?;
        Some(ExamplesConfig { file, at, count, seed, in_template })
    }
}
