//! Which cases are asked, as the command line says it and as a run remembers it.

use std::path::Path;

use probity_core::{case::Category, classification::Verdict, record::Selection};
use probity_run::{
    filter::{Filter, Shard},
    plan::{Choice, SampleSize},
};
use probity_store::Reader;
use regex::RegexBuilder;

use crate::{
    cli::run::{RunArgs, SelectionArgs},
    failure::Failure,
};

/// The choice of cases that a command line makes.
pub(super) fn of(args: &RunArgs) -> Selection {
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
    Selection {
        limit,
        filter,
        category: category.iter().flat_map(|it| names(it)).collect(),
        tag,
        cases,
        failing,
        errors,
        sample,
        shard,
        repeat,
        runners: if args.touched.is_empty() { &args.runners } else { &args.touched }.clone(),
        backends: args.backends.clone(),
        variants: args.variants.clone(),
        skill,
        group,
        model: args.model.clone(),
        judge_model: args.judge_model.clone(),
        swap: args.swap,
    }
}

/// Names that are separated by commas; `\,` is a comma within a name.
fn names(text: &str) -> Vec<String> {
    let mut names = vec![String::new()];
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, names.last_mut()) {
            (',', _) => names.push(String::new()),
            ('\\', Some(last)) if chars.next_if_eq(&',').is_some() => last.push(','),
            (c, Some(last)) => last.push(c),
            (_, None) => {}
        }
    }
    names
}

/// The filter that a choice of cases comes to.
pub(super) fn resolve(selection: &Selection, store: &Path, seed: u64) -> Result<Choice, Failure> {
    let pattern = selection.filter.as_ref().map(|pattern| {
        RegexBuilder::new(pattern).build().map_err(|error| {
            Failure::new(format!("`--filter {pattern}` is not a regular expression")).because(error)
        })
    });
    let by_verdict = |name: &Option<String>, verdict| {
        name.as_ref().map(|name| ids(store, name, verdict)).transpose()
    };
    let failing = by_verdict(&selection.failing, Verdict::Fail)?;
    let errors = by_verdict(&selection.errors, Verdict::Error)?;
    let only = match (failing, errors) {
        (None, None) => None,
        (failing, errors) => Some(failing.into_iter().chain(errors).flatten().collect()),
    };
    let filter = Filter {
        pattern: pattern.transpose()?,
        categories: selection.category.iter().map(|it| Category::named(it)).collect(),
        tags: selection.tag.clone(),
        ids: selection.cases.clone(),
        skills: selection.skill.clone(),
        groups: selection.group.clone(),
        only,
        shard: selection.shard.as_deref().map(shard).transpose()?,
        limit: selection.limit,
        ..Filter::default()
    };
    let size = |sample: u64| usize::try_from(sample).unwrap_or(usize::MAX);
    let sample = selection.sample.map(|sample| SampleSize { size: size(sample), seed });
    Ok(Choice { filter, sample, seed, ..Choice::default() })
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
    parsed.ok_or_else(|| Failure::new(format!("`--shard {text}` is not a part such as 2/5")))
}
