//! `probity trend`: how a suite has done over time.

use std::{collections::BTreeMap, path::Path};

use probity_report::trend::{self, Point, Trend};
use probity_store::RunRow;

use super::{
    project::settings_alone,
    run::{may_be_of, real_path},
    runs::open,
};
use crate::{cli::report::TrendArgs, exit::Exit, failure::Failure, printer::Printer};

pub(super) fn run(args: &TrendArgs, printer: &Printer) -> Result<Exit, Failure> {
    let most = settings_alone(&args.place)?.max_error_rate;
    let reader = open(&args.place)?;
    let runs = reader.runs()?;
    let path = real_path(Path::new(&args.suite));
    let mut chosen: Vec<&RunRow> = runs
        .iter()
        .filter(|run| is_of(run, &args.suite) && may_be_of(run, path.as_deref()))
        .take(args.limit)
        .collect();
    chosen.reverse();
    if chosen.is_empty() {
        let mut suites: Vec<&str> = runs.iter().map(|run| run.suite.as_str()).collect();
        suites.sort_unstable();
        suites.dedup();
        return Err(Failure::new(format!("no run of `{}` is in the store", args.suite))
            .hint(format!("it has runs of {}", suites.join(", "))));
    }
    let mut trends: BTreeMap<String, Vec<Point>> = BTreeMap::new();
    for run in chosen {
        let view = reader.view(run, most)?;
        for report in view.lanes {
            let is_wanted = args.backend.as_ref().is_none_or(|it| *it == report.lane.backend)
                && args.runner.as_ref().is_none_or(|it| *it == report.lane.runner)
                && args.variant.as_ref().is_none_or(|it| report.lane.variant.as_ref() == Some(it));
            if is_wanted {
                let (run, started_ms) = (view.short.clone(), view.started_ms);
                let points = trends.entry(report.title()).or_default();
                points.push(Point { run, started_ms, report });
            }
        }
    }
    let trends: Vec<Trend> =
        trends.into_iter().map(|(title, points)| Trend { title, points }).collect();
    match args.json {
        true => Printer::emit(&format!("{:#}\n", trend::json(&trends)))?,
        false => printer.show(&trend::text(&trends))?,
    }
    Ok(Exit::Success)
}

/// Whether a run is of a suite, which may be named as its file is.
fn is_of(run: &RunRow, suite: &str) -> bool {
    let file = Path::new(suite).file_name().and_then(|it| it.to_str());
    run.suite == suite || file == Some(run.suite.as_str())
}
