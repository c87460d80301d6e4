//! Answers of earlier runs.

use std::{path::Path, sync::Arc};

use probity_core::record::{CacheKind, InputDigest};
use probity_run::{
    backend::{Access, Answers, CacheAccess},
    plan::PlannedLane,
};
use probity_store::Cache;

use crate::{
    cli::run::RunArgs, clock, commands::project::Project, failure::Failure, printer::Printer,
};

/// A cache that answers are kept in.
#[derive(Debug)]
pub(in crate::commands) struct StoredAnswers(Cache);

impl StoredAnswers {
    /// Puts a cache aside that turned out to be damaged, and says so.
    pub(in crate::commands) fn tell_of_damage(&self, printer: &Printer) {
        self.0.flush();
        if self.0.is_damaged() {
            // Nothing was read from it after that, whatever becomes of the file.
            let _ = set_aside(self.0.path(), printer);
        }
    }
}

/// Whether it is out of the way now.
fn set_aside(path: &Path, printer: &Printer) -> bool {
    let shown = path.display();
    match Cache::set_aside(path) {
        Ok(Some(aside)) => {
            printer.note(&format!(
                "the cache `{shown}` is damaged and was put aside as `{}`: what it held is asked \
                 for again",
                aside.display()
            ));
            true
        }
        Ok(None) | Err(_) => {
            printer.note(&format!("the cache `{shown}` is damaged: nothing is read from it"));
            false
        }
    }
}

impl Answers for StoredAnswers {
    fn get(&self, kept: CacheKind, key: InputDigest) -> Option<String> {
        self.0.get(kept, key.0)
    }

    fn put(&self, kept: CacheKind, key: InputDigest, answer: &str) {
        self.0.put(kept, key.0, answer, clock::now_ms());
    }
}

/// What a run has that is kept without asking.
#[derive(Clone, Copy)]
pub(super) struct Kept {
    pub(super) generations: bool,
    pub(super) embeddings: bool,
}

impl Kept {
    /// What some lanes have.
    pub(super) fn of(lanes: &[PlannedLane]) -> Self {
        Self {
            generations: lanes.iter().any(|lane| lane.info.kind.spec().compares),
            embeddings: lanes.iter().any(|it| it.embedder.is_some() || it.reranker.is_some()),
        }
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
        // The same text has the same embedding in every run.
        embeddings: if args.no_cache { Access::default() } else { Access::FULL },
    }
}

/// Opens the cache if it is there already, to look what is in it.
pub(super) fn open_if_there(
    project: &Project,
    access: CacheAccess,
    kept: Kept,
) -> Result<Option<Arc<dyn Answers>>, Failure> {
    let path = Path::new(&project.settings.cache_path);
    match path.exists() && is_wanted(access, kept) {
        true => Ok(Some(Arc::new(StoredAnswers(Cache::open(path)?)))),
        false => Ok(None),
    }
}

/// Opens the cache, if anything is going to be read from it or written to it.
pub(super) fn open(
    project: &Project,
    access: CacheAccess,
    kept: Kept,
    printer: &Printer,
) -> Result<Option<Arc<StoredAnswers>>, Failure> {
    match is_wanted(access, kept) {
        true => open_cache(project, printer).map(Some),
        false => Ok(None),
    }
}

/// Opens the cache. One that is damaged is put aside.
pub(in crate::commands) fn open_cache(
    project: &Project,
    printer: &Printer,
) -> Result<Arc<StoredAnswers>, Failure> {
    let path = Path::new(&project.settings.cache_path);
    let cache = match Cache::open(path) {
        Err(error) if error.is_damage() && set_aside(path, printer) => Cache::open(path),
        outcome => outcome,
    };
    Ok(Arc::new(StoredAnswers(cache?)))
}

fn is_wanted(access: CacheAccess, kept: Kept) -> bool {
    access.answers != Access::default()
        || (kept.generations && access.generations != Access::default())
        || (kept.embeddings && access.embeddings != Access::default())
}
