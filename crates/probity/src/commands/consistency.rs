//! How far the backends of a run agree, from its records.

use probity_core::view::RunView;
use probity_grade::consistency::Fold;
use probity_store::{LaneView, Reader, RunRow};

use crate::failure::Failure;

/// Adds to a view what its runners whose answers are commands say about their backends. Where fewer than two of them have results,
/// there is nothing to say.
pub(super) fn add(view: &mut RunView, reader: &Reader, run: &RunRow) -> Result<(), Failure> {
    let lanes = reader.lanes(run)?;
    // The lanes of a view are those of its run, in the same order.
    let with_results = lanes
        .iter()
        .zip(&view.lanes)
        .filter(|(lane, report)| lane.lane.kind.spec().is_shell && report.metrics.results() > 0);
    let mut runners: Vec<(&str, Vec<&LaneView>)> = Vec::new();
    for (lane, _) in with_results {
        match runners.iter_mut().find(|(name, _)| *name == lane.lane.runner) {
            Some((_, of_runner)) => of_runner.push(lane),
            None => runners.push((&lane.lane.runner, vec![lane])),
        }
    }
    let mut found = Vec::new();
    for (runner, lanes) in runners.into_iter().filter(|(_, lanes)| lanes.len() > 1) {
        let backends = lanes.iter().map(|it| it.lane.backend.clone()).collect();
        let repeats = lanes.iter().map(|it| it.lane.repeat).max().unwrap_or(1);
        let mut fold = Fold::new(runner.to_owned(), backends, repeats);
        reader.side_by_side(&lanes, |asked| fold.add(asked))?;
        found.push(fold.finish());
    }
    view.consistency = found;
    Ok(())
}
