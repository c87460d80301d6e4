//! Which lanes are fed now, and which wait for their turn.

use std::collections::BTreeMap;

use probity_core::{event::Event, record::LaneStatus};
use tokio::sync::mpsc;

use super::{Engine, Halt};
use crate::source::feed;

/// So many lanes of a backend are fed at the same time, or as many as there may be calls in flight. Each has a thread that
/// reads its cases, and each is looked at whenever something happens; more of them would not ask more.
const MOST_FED: usize = 64;

/// The lanes of a stage.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// The lanes of each runner whose turn has not come. Those of a runner begin together, since their cases may be
    /// compared with each other.
    waiting: Vec<Vec<usize>>,
    /// Those that have begun and are not over.
    active: Vec<usize>,
    /// Whether the turn of others may have come.
    may_open: bool,
}

impl Turns {
    /// The lanes of a stage, each of a runner.
    pub(super) fn of(stage: &[usize], runner: impl Fn(usize) -> usize) -> Self {
        let mut waiting: Vec<Vec<usize>> = Vec::new();
        let mut places: BTreeMap<usize, usize> = BTreeMap::new();
        for &at in stage {
            let place = *places.entry(runner(at)).or_insert(waiting.len());
            match waiting.get_mut(place) {
                Some(lanes) => lanes.push(at),
                None => waiting.push(vec![at]),
            }
        }
        Self { waiting, active: Vec::new(), may_open: true }
    }

    /// Those that have begun and are not over.
    pub(super) fn active(&self) -> &[usize] {
        &self.active
    }

    pub(super) fn are_over(&self) -> bool {
        self.active.is_empty() && self.waiting.is_empty()
    }

    /// The lanes whose turn has come: those of whole runners, as long as one of their backends has fewer than `most`
    /// that are fed. One whose backends are busy does not keep others from theirs.
    fn next(
        &mut self,
        mut fed: Vec<usize>,
        most: usize,
        backend: impl Fn(usize) -> usize,
    ) -> Vec<usize> {
        let mut opening = Vec::new();
        self.waiting.retain(|runner| {
            let has_place = runner.iter().any(|at| fed[backend(*at)] < most);
            if has_place {
                runner.iter().for_each(|at| fed[backend(*at)] += 1);
                opening.extend_from_slice(runner);
            }
            !has_place
        });
        opening
    }

    /// A lane wants no more cases: it has got its last one, or it was stopped.
    pub(super) fn one_wants_no_more(&mut self) {
        self.may_open = true;
    }
}

impl Engine {
    /// Begins lanes whose turn has come, and tells of those that have ended.
    pub(super) async fn take_turns(&mut self) -> Result<(), Halt> {
        loop {
            self.open_next();
            self.finish_lanes().await?;
            // What ended at once has made room for others.
            if !self.turns.may_open || self.turns.waiting.is_empty() {
                return Ok(());
            }
        }
    }

    fn open_next(&mut self) {
        if !std::mem::take(&mut self.turns.may_open) || self.turns.waiting.is_empty() {
            return;
        }
        let at_once = usize::try_from(self.shared.settings.max_concurrency).unwrap_or(usize::MAX);
        let most = at_once.max(MOST_FED);
        let mut fed = vec![0; self.backends.len()];
        for &at in self.turns.active.iter().filter(|at| self.lanes[**at].wants_cases()) {
            fed[self.lanes[at].backend] += 1;
        }
        let lanes = &self.lanes;
        let opening = self.turns.next(fed, most, |at| lanes[at].backend);
        self.open(&opening);
        self.turns.active.extend(opening);
    }

    /// Begins lanes, except those whose backend was given up before.
    ///
    /// The variants of a runner on a backend are fed together.
    fn open(&mut self, lanes: &[usize]) {
        let mut waiting = BTreeMap::new();
        for &at in lanes {
            let given_up = self.parties(at).find_map(|it| self.backends[it].given_up.clone());
            let lane = &mut self.lanes[at];
            match given_up {
                _ if self.interrupted => lane.stop(LaneStatus::Interrupted),
                Some(reason) => lane.stop(LaneStatus::Skipped { reason }),
                None => {
                    let Some((cases, done)) = lane.take_waiting() else { continue };
                    if lane.has_all(&cases, &done) {
                        // Nothing has to be read to know that none is left.
                        lane.open(mpsc::channel(1).1);
                        continue;
                    }
                    // One that was begun before ends with its own cases, not with those of others.
                    let alone = (!done.is_empty()).then_some(at);
                    let together = waiting.entry((lane.runner, lane.backend, alone));
                    together.or_insert_with(Vec::new).push((at, (cases, done)));
                }
            }
        }
        for ((_, backend, _), lanes) in waiting {
            let backend = self.backends[backend].backend.clone();
            let (lanes, cases): (Vec<usize>, Vec<_>) = lanes.into_iter().unzip();
            for (at, cases) in lanes.into_iter().zip(feed(cases, backend, self.rules)) {
                self.lanes[at].open(cases);
            }
        }
    }

    /// Tells of the lanes that have just ended.
    async fn finish_lanes(&mut self) -> Result<(), Halt> {
        let ended: Vec<(usize, LaneStatus)> = (self.turns.active.iter())
            .filter_map(|&at| Some((at, self.lanes[at].finish()?)))
            .collect();
        for (lane, status) in ended {
            let calls = self.lanes[lane].calls;
            self.turns.active.retain(|it| *it != lane);
            self.turns.may_open = true;
            self.emit(Event::LaneFinished { lane, status, calls }).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_of_a_runner_wait_together_in_the_order_of_the_stage() {
        let runners = [0, 0, 1, 2, 1];
        let turns = Turns::of(&[0, 1, 2, 3, 4], |at| runners[at]);
        assert_eq!(turns.waiting, [vec![0, 1], vec![2, 4], vec![3]]);
        assert!(!turns.are_over());
        assert!(Turns::of(&[], |_| 0).are_over());
    }

    #[test]
    fn a_backend_is_asked_for_a_few_lanes_at_a_time_and_holds_up_no_other() {
        // The lanes of each runner, on the busy backend and on another: the last runner has one on both.
        let lanes: Vec<usize> = (0..6).collect();
        let (runner, backend) = ([0, 1, 2, 3, 4, 4], [0, 0, 0, 1, 0, 1]);
        let mut turns = Turns::of(&lanes, |at| runner[at]);
        assert_eq!(turns.next(vec![1, 0], 2, |at| backend[at]), [0, 3, 4, 5]);
        assert_eq!(turns.next(vec![2, 2], 2, |at| backend[at]), [0; 0]);
        assert_eq!(turns.next(vec![1, 2], 2, |at| backend[at]), [1]);
        assert_eq!(turns.waiting, [[2]]);
    }
}
