//! Answers of earlier runs.

use std::{path::Path, sync::Arc};

use probity_core::record::{CacheKind, InputDigest};
use probity_run::backend::{Access, Answers, CacheAccess};
use probity_store::Cache;

use crate::{cli::run::RunArgs, clock, commands::project::Project, failure::Failure};

#[derive(Debug)]
struct StoredAnswers(Cache);

impl Answers for StoredAnswers {
    fn get(&self, kept: CacheKind, key: InputDigest) -> Option<String> {
        self.0.get(kept, key.0)
    }

    fn put(&self, kept: CacheKind, key: InputDigest, answer: &str) {
        self.0.put(kept, key.0, answer, clock::now_ms());
    }
}

/// What is used of earlier answers, and what is kept of new ones.
///
/// Answers that are going to be judged are kept without asking: to judge them again, by another
/// model or another rubric, must not mean to pay for them again.
pub(super) fn access(args: &RunArgs, project: &Project) -> CacheAccess {
    let settings = &project.settings;
    let of = |used: bool| match (used, args.regenerate) {
        (false, _) => Access::default(),
        (true, false) => Access::FULL,
        (true, true) => Access::ANEW,
    };
    let enabled = settings.cache.is_some();
    // A recording has all the answers, and those are not the model's.
    let generations = settings.cache_generations && !args.no_cache && args.replay.is_none();
    CacheAccess {
        answers: of(enabled),
        generations: of(enabled || generations),
        judgements: if enabled { Access::FULL } else { Access::default() },
    }
}

/// Opens the cache if it is there already, to look what is in it.
pub(super) fn open_if_there(
    project: &Project,
    access: CacheAccess,
    has_generations: bool,
) -> Result<Option<Arc<dyn Answers>>, Failure> {
    match Path::new(&project.settings.cache_path).exists() {
        true => open(project, access, has_generations),
        false => Ok(None),
    }
}

/// Opens the cache, if anything is going to be read from it or written to it.
pub(super) fn open(
    project: &Project,
    access: CacheAccess,
    has_generations: bool,
) -> Result<Option<Arc<dyn Answers>>, Failure> {
    let wanted = access.answers != Access::default()
        || (has_generations && access.generations != Access::default());
    if !wanted {
        return Ok(None);
    }
    let cache = Cache::open(Path::new(&project.settings.cache_path))?;
    Ok(Some(Arc::new(StoredAnswers(cache))))
}
