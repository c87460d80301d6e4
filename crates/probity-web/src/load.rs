//! What pages and answers to programs are made of, read from the store.

use std::{collections::BTreeMap, sync::Arc};

use probity_core::{
    metrics::{Metrics, Slice},
    record::CaseRecord,
    view::{LaneReport, RunView},
};
use probity_report::{
    compare::{self, CompareError, Comparison, Entrant, Terms},
    trend::{Point, Trend},
};
use probity_stats::proportion::wilson_95;
use probity_store::{
    CasesPage, GridPage, LaneView, Reader, RunRow, RunsPage, Standing, StoreError,
};

use crate::{
    filter::{CaseFilter, GridFilter, RunFilter},
    problem::Problem,
    site::{LaneStanding, Site},
};

/// Runs that are compared at once.
pub(crate) const MOST_COMPARED: usize = 6;
/// Answers on a page of a grid.
const MOST_CELLS: usize = 400;
/// Runs that are counted ahead.
const MOST_COUNTED: usize = 400;
/// Runs of a trend at most.
pub(crate) const MOST_POINTS: usize = 200;

/// One run with its lanes and figures.
pub(crate) struct Run {
    pub(crate) row: RunRow,
    pub(crate) lanes: Vec<LaneView>,
    pub(crate) view: Arc<RunView>,
}

/// A page of runs, each with how it came out.
pub(crate) struct Runs {
    pub(crate) runs: Vec<(RunRow, Vec<LaneView>, Standing)>,
    pub(crate) next: Option<i64>,
}

/// A page of results, and the run that they are of.
pub(crate) struct Cases {
    pub(crate) row: RunRow,
    pub(crate) lanes: Vec<LaneView>,
    /// For each lane that was asked for its place among all.
    pub(crate) chosen: Vec<usize>,
    pub(crate) page: CasesPage,
}

/// One case: what each lane made of it, a repeat each.
pub(crate) struct Case {
    pub(crate) row: RunRow,
    pub(crate) id: String,
    /// How many lanes the run has.
    pub(crate) lanes: usize,
    pub(crate) results: Vec<(usize, LaneView, CaseRecord)>,
}

/// A page of a grid.
pub(crate) struct Grid {
    pub(crate) row: RunRow,
    pub(crate) runners: Vec<String>,
    pub(crate) runner: String,
    /// How many lanes the run has.
    pub(crate) count: usize,
    /// The columns, each with its place among all lanes of the run.
    pub(crate) lanes: Vec<(usize, LaneView)>,
    pub(crate) page: GridPage,
}

pub(crate) fn runs(site: &Site, reader: &Reader, filter: &RunFilter) -> Result<Runs, Problem> {
    let RunsPage { runs, next } = reader.runs_page(&filter.query()?)?;
    let runs = runs.into_iter().map(|row| {
        let lanes = reader.lanes(&row)?;
        let standing = site.standing(reader, &row)?;
        Ok((row, lanes, standing))
    });
    Ok(Runs { runs: runs.collect::<Result<_, StoreError>>()?, next })
}

/// Counts the latest runs before anybody asks for them, so that the first list comes as soon as later ones.
pub(crate) fn count_ahead(site: &Site, reader: &Reader) -> Result<(), Problem> {
    let latest = RunFilter { limit: MOST_COUNTED, ..RunFilter::default() };
    runs(site, reader, &latest).map(|_| ())
}

pub(crate) fn run(site: &Site, reader: &Reader, name: &str) -> Result<Run, Problem> {
    let row = reader.find(name)?;
    let (lanes, view) = (reader.lanes(&row)?, site.view(reader, &row)?);
    Ok(Run { row, lanes, view })
}

pub(crate) fn cases(reader: &Reader, name: &str, filter: &CaseFilter) -> Result<Cases, Problem> {
    let row = reader.find(name)?;
    let lanes = reader.lanes(&row)?;
    let meant = filter.lanes(&lanes)?;
    let page = reader.cases_page(&meant, &filter.query(reader)?)?;
    let is_meant = |lane: &LaneView| meant.iter().any(|it| std::ptr::eq(*it, lane));
    let chosen = (0..lanes.len()).filter(|at| is_meant(&lanes[*at])).collect();
    Ok(Cases { row, lanes, chosen, page })
}

pub(crate) fn case(reader: &Reader, name: &str, id: &str) -> Result<Case, Problem> {
    let row = reader.find(name)?;
    let mut results = Vec::new();
    let lanes = reader.lanes(&row)?;
    let count = lanes.len();
    for (at, lane) in lanes.into_iter().enumerate() {
        let records = reader.case(&lane, id)?;
        results.extend(records.into_iter().map(|record| (at, lane.clone(), record)));
    }
    if results.is_empty() {
        let message = format!("run `{}` has no result for a case `{id}`", row.short());
        return Err(Problem::not_found(message));
    }
    Ok(Case { row, id: id.to_owned(), lanes: count, results })
}

pub(crate) fn grid(reader: &Reader, name: &str, filter: &GridFilter) -> Result<Grid, Problem> {
    let row = reader.find(name)?;
    let lanes = reader.lanes(&row)?;
    let mut runners: Vec<String> = Vec::new();
    for lane in &lanes {
        if !runners.contains(&lane.lane.runner) {
            runners.push(lane.lane.runner.clone());
        }
    }
    let runner = match &filter.runner {
        None => runners.first().cloned().unwrap_or_default(),
        Some(name) if runners.contains(name) => name.clone(),
        Some(name) => return Err(Problem::not_found(format!("the run has no runner `{name}`"))),
    };
    let count = lanes.len();
    let lanes: Vec<(usize, LaneView)> =
        lanes.into_iter().enumerate().filter(|(_, it)| it.lane.runner == runner).collect();
    let columns: Vec<&LaneView> = lanes.iter().map(|(_, it)| it).collect();
    let mut query = filter.query();
    query.limit = query.limit.min((MOST_CELLS / columns.len().max(1)).max(1));
    let page = reader.grid_page(&columns, &query)?;
    Ok(Grid { row, runners, runner, count, lanes, page })
}

/// Runs beside each other, the first of which the others are held against. A run may name a part of itself: `RUN@BACKEND`.
pub(crate) struct Compared {
    pub(crate) comparison: Comparison,
    /// For each side its run and its lane, with the lane's place.
    pub(crate) lanes: Vec<(RunRow, usize, LaneView)>,
}

pub(crate) fn compared(
    site: &Site,
    reader: &Reader,
    names: &[String],
) -> Result<Compared, Problem> {
    let (mut entrants, mut lanes) = (Vec::new(), Vec::new());
    for (at, name) in names.iter().enumerate() {
        let (name, part) = match name.split_once('@') {
            Some((name, part)) => (name, Some(part)),
            None => (name.as_str(), None),
        };
        let Run { row, lanes: views, view } = run(site, reader, name)?;
        let before = entrants.len();
        for (place, (lane, report)) in views.into_iter().zip(&view.lanes).enumerate() {
            if part.is_some_and(|it| !lane.lane.key().is_meant_by(it)) {
                continue;
            }
            let name = format!("{} {}", row.short(), report.title());
            entrants.push(Entrant { run: at, name, report: report.clone() });
            lanes.push((row.clone(), place, lane));
        }
        if let Some(part) = part.filter(|_| entrants.len() == before) {
            let message = format!("run `{}` has no variant or backend `{part}`", row.short());
            return Err(Problem::not_found(message));
        }
    }
    let terms = Terms { any_dataset: true, difference: 0.05, with_unchanged: false };
    let comparison = compare::build(entrants, &terms, &mut |pair, _| {
        reader.changes(pair.map(|at| &lanes[at].2)).map_err(Problem::from)
    })?;
    Ok(Compared { comparison, lanes })
}

impl Compared {
    /// Reads why flipped cases did not pass. Pages do without: they show both answers.
    pub(crate) fn with_reasons(mut self, reader: &Reader) -> Result<Self, Problem> {
        for pair in &mut self.comparison.pairs {
            let both = [pair.first, pair.second].map(|at| &self.lanes[at].2);
            pair.reasons = reader.reasons_of_flips(both, &pair.changes)?;
        }
        Ok(self)
    }
}

impl From<CompareError> for Problem {
    fn from(error: CompareError) -> Self {
        Self::bad_request(error.to_string()).hint(match error {
            CompareError::Several { .. } => "name one: RUN@BACKEND or RUN@VARIANT",
            CompareError::OtherDataset(_)
            | CompareError::NothingInCommon(_)
            | CompareError::NoRunner { .. } => error.hint(),
        })
    }
}

/// How the lanes of a suite did over its last runs.
pub(crate) fn trends(
    site: &Site,
    reader: &Reader,
    name: &str,
    most: usize,
) -> Result<Vec<Trend>, Problem> {
    let filter = RunFilter { suite: Some(name.to_owned()), limit: most, ..RunFilter::default() };
    let mut runs = reader.runs_page(&filter.query()?)?.runs;
    runs.reverse();
    let mut trends: BTreeMap<String, Vec<Point>> = BTreeMap::new();
    for row in &runs {
        for report in reports(site, reader, row)? {
            let (run, started_ms) = (row.short().to_owned(), row.started_ms);
            trends.entry(report.title()).or_default().push(Point { run, started_ms, report });
        }
    }
    Ok(trends.into_iter().map(|(title, points)| Trend { title, points }).collect())
}

/// The lanes of a run as trends need them: how many passed, and what that cost.
///
/// Where every result counts for itself, counts are all that this takes. Others have their figures made from all results.
fn reports(site: &Site, reader: &Reader, run: &RunRow) -> Result<Vec<LaneReport>, Problem> {
    let lanes = reader.lanes(run)?;
    let is_plain = |it: &LaneView| {
        it.lane.repeat <= 1 && it.lane.judging.min_pass.is_none() && it.lane.skills.is_none()
    };
    if !lanes.iter().all(is_plain) {
        return Ok(site.view(reader, run)?.lanes.clone());
    }
    let standings = site.standings(reader, run)?;
    Ok(lanes.into_iter().zip(&*standings).map(|(view, standing)| counted(view, standing)).collect())
}

fn counted(view: LaneView, standing: &LaneStanding) -> LaneReport {
    let LaneView { lane, status, .. } = view;
    let LaneStanding { results: standing, counted: verdicts } = standing;
    let verdicts = *verdicts;
    let metrics = Metrics {
        all: Slice { verdicts, classes: standing.classes, unjudged: standing.verdicts.error },
        interval: wilson_95(verdicts.pass, verdicts.judged()),
        cost_usd: standing.cost_usd,
        priced: standing.priced,
        ..Metrics::default()
    };
    LaneReport { lane, status, aborted: 0, error: None, metrics, gates: Vec::new() }
}
