//! `probity trend`: how a suite has done over time.

use std::{collections::BTreeMap, ops::ControlFlow, path::Path};

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
    let path = real_path(Path::new(&args.suite));
    let mut chosen: Vec<RunRow> = Vec::new();
    // A suite may be named as its file is.
    let file = Path::new(&args.suite).file_name().and_then(|it| it.to_str());
    reader.runs_of([&args.suite, file.unwrap_or(&args.suite)], |run| {
        if chosen.len() == args.limit {
            return Ok(ControlFlow::Break(()));
        }
        if may_be_of(&run, path.as_deref()) {
            chosen.push(run);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    chosen.reverse();
    if chosen.is_empty() {
        let suites = reader.suites()?;
        return Err(Failure::new(format!("no run of `{}` is in the store", args.suite))
            .hint(format!("it has runs of {}", suites.join(", "))));
    }
    let mut trends: BTreeMap<String, Vec<Point>> = BTreeMap::new();
    for run in &chosen {
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
