//! A run as the terminal shows it.

use std::{ops::ControlFlow, path::Path};

use probity_core::{case_outcome::Changes, view::RunView};
use probity_report::text::{self, Extent, Flips, Page, Since};
use probity_store::{LaneView, Reader, RunRow, StoredCases};

use super::report::suite_path;
use crate::{exit::Exit, failure::Failure};

/// What a command knows beside the run that it shows.
pub(super) struct About<'a> {
    /// The run.
    pub(super) reader: &'a Reader,
    pub(super) run: &'a RunRow,
    pub(super) view: &'a RunView,
    /// What the command ends with, if the run decides that.
    pub(super) exit: Option<Exit>,
    pub(super) extent: Extent,
    pub(super) width: usize,
}

impl About<'_> {
    /// The page of a run.
    pub(super) fn render(&self) -> Result<String, Failure> {
        self.render_since(None, None)
    }

    /// The page of a run that is over just now. `resume` is the command that goes on with it.
    pub(super) fn render_since(
        &self,
        since: Option<&Since>,
        resume: Option<&str>,
    ) -> Result<String, Failure> {
        let Self { reader, run, view, exit, extent, width } = *self;
        let cases = StoredCases::of(reader, run)?;
        let suite = suite_path(run).map(|path| from_here(&path));
        let page = Page {
            since,
            suite: suite.as_deref(),
            exit_code: exit.map(Exit::code),
            extent,
            width,
            resume,
            ..Page::full(view, &cases)
        };
        text::render(&page).map_err(|error| Failure::new("the cases cannot be read").because(error))
    }
}

/// A path as it would be written from here.
fn from_here(path: &Path) -> String {
    let here = std::env::current_dir().and_then(|it| it.canonicalize()).unwrap_or_default();
    path.strip_prefix(&here).unwrap_or(path).display().to_string()
}

/// What has flipped since the last run of the same suite that asked the same cases of the same
/// backends; none if there is no such run.
pub(super) fn flips(reader: &Reader, run: &RunRow) -> Result<Option<Since>, Failure> {
    let lanes = reader.lanes(run)?;
    let path = run.info.suite_path.as_deref();
    let is_earlier = |it: &RunRow| {
        it.run_id != run.run_id
            && it.started_ms <= run.started_ms
            && super::run::may_be_of(it, path)
    };
    let mut since = None;
    reader.runs_of([&run.suite, &run.suite], |earlier| {
        if !is_earlier(&earlier) {
            return Ok(ControlFlow::Continue(()));
        }
        let before = reader.lanes(&earlier)?;
        let mut found = Vec::new();
        for (lane, now) in lanes.iter().enumerate() {
            let Some(before) = before.iter().find(|it| is_comparable(it, now)) else { continue };
            let Changes { regressions: failing, fixes: passing, .. } =
                reader.changes([before, now])?;
            found.push(Flips { lane, failing, passing });
        }
        if found.is_empty() {
            return Ok(ControlFlow::Continue(()));
        }
        let (short, started_ms) = (earlier.short().to_owned(), earlier.started_ms);
        since = Some(Since { short, started_ms, lanes: found });
        Ok(ControlFlow::Break(()))
    })?;
    Ok(since)
}

/// Whether a lane came to its end, and is about the same cases as another.
fn is_comparable(before: &LaneView, now: &LaneView) -> bool {
    let (was, is) = (&before.lane, &now.lane);
    before.is_complete() && was.key() == is.key() && was.dataset_digest == is.dataset_digest
}
