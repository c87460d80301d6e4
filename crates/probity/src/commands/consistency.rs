//! How far the backends of a run agree, from its records.

use probity_core::{record::LaneKey, view::RunView};
use probity_grade::internal::consistency::Fold;
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
    // Backends are compared where they were asked the same.
    let mut tasks: Vec<Vec<&LaneView>> = Vec::new();
    for (lane, _) in with_results {
        let asked = |it: &LaneView| (it.lane.runner.clone(), it.lane.variant.clone());
        match tasks.iter_mut().find(|it| asked(it[0]) == asked(lane)) {
            Some(of_task) => of_task.push(lane),
            None => tasks.push(vec![lane]),
        }
    }
    let mut found = Vec::new();
    for lanes in tasks.into_iter().filter(|lanes| lanes.len() > 1) {
        let LaneKey { runner, variant, .. } = lanes[0].lane.key();
        let backends = lanes.iter().map(|it| it.lane.backend.clone()).collect();
        let repeats = lanes.iter().map(|it| it.lane.repeat).max().unwrap_or(1);
        let mut fold = Fold::new(runner, variant, backends, repeats);
        reader.side_by_side(&lanes, |asked| fold.add(asked))?;
        found.push(fold.finish());
    }
    view.consistency = found;
    Ok(())
}
