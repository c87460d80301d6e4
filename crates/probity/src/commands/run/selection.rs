//! Which cases are asked, as the command line says it and as a run remembers it.

use std::path::Path;

use probity_core::{case::Category, classification::Verdict};
use probity_run::{
    filter::{Filter, Shard},
    plan::{Choice, SampleSize},
};
use probity_store::Reader;
use regex::RegexBuilder;
use serde::{Deserialize, Serialize};

use crate::{
    cli::run::{RunArgs, SelectionArgs},
    failure::Failure,
};

/// The choice of cases. It is kept with the run, so that a resumed run makes the same one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Selection {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    limit: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    filter: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    category: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tag: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    cases: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failing: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    errors: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sample: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shard: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) repeat: Option<u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) runners: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) backends: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    skill: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    group: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) judge_model: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) swap: bool,
}

impl Selection {
    pub(super) fn of(args: &RunArgs) -> Self {
        let SelectionArgs {
            limit,
            filter,
            category,
            tag,
            cases,
            failing,
            errors,
            sample,
            seed: _,
            repeat,
            shard,
            skill,
            group,
        } = args.selection.clone();
        Self {
            limit,
            filter,
            category,
            tag,
            cases,
            failing,
            errors,
            sample,
            shard,
            repeat,
            runners: args.runners.clone(),
            backends: args.backends.clone(),
            skill,
            group,
            model: args.model.clone(),
            judge_model: args.judge_model.clone(),
            swap: args.swap,
        }
    }

    /// Whether it chooses everything.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The filter that it comes to.
    pub(super) fn resolve(&self, store: &Path, seed: u64) -> Result<Choice, Failure> {
        let pattern = self.filter.as_ref().map(|pattern| {
            RegexBuilder::new(pattern).build().map_err(|error| {
                Failure::new(format!("`--filter {pattern}` is no regular expression"))
                    .because(error)
            })
        });
        let categories = self.category.iter().map(|name| {
            name.parse::<Category>().map_err(|error| {
                let known = Category::ALL.map(Category::as_str).join(", ");
                Failure::new(error.to_string()).hint(format!("categories are {known}"))
            })
        });
        let by_verdict = |name: &Option<String>, verdict| {
            name.as_ref().map(|name| ids(store, name, verdict)).transpose()
        };
        let failing = by_verdict(&self.failing, Verdict::Fail)?;
        let errors = by_verdict(&self.errors, Verdict::Error)?;
        let only = match (failing, errors) {
            (None, None) => None,
            (failing, errors) => Some(failing.into_iter().chain(errors).flatten().collect()),
        };
        let filter = Filter {
            pattern: pattern.transpose()?,
            categories: categories.collect::<Result<_, _>>()?,
            tags: self.tag.clone(),
            ids: self.cases.clone(),
            skills: self.skill.clone(),
            groups: self.group.clone(),
            only,
            shard: self.shard.as_deref().map(shard).transpose()?,
            limit: self.limit,
            ..Filter::default()
        };
        let size = |sample: u64| usize::try_from(sample).unwrap_or(usize::MAX);
        let sample = self.sample.map(|sample| SampleSize { size: size(sample), seed });
        Ok(Choice { filter, sample, seed })
    }
}

/// The ids of the cases of a run that came to a verdict.
fn ids(store: &Path, run: &str, verdict: Verdict) -> Result<Vec<String>, Failure> {
    let reader = Reader::open(store)?;
    let run = reader.find(run)?;
    reader.ids_by_verdict(&run, &[verdict]).map_err(Failure::from)
}

fn shard(text: &str) -> Result<Shard, Failure> {
    let parsed = text.split_once('/').and_then(|(index, count)| {
        let (index, count) = (index.parse().ok()?, count.parse().ok()?);
        (index >= 1 && index <= count).then_some(Shard { index, count })
    });
    parsed.ok_or_else(|| Failure::new(format!("`--shard {text}` is no part such as 2/5")))
}
