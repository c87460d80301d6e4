//! Cases whose answers are compared with those of the other lanes.
//!
//! Such a case waits, with its answer, until every lane of its runner has answered it or is not going
//! to. Then one of the tasks has the answers judged, and tells the others. The lanes of a runner have the
//! same cases and begin them in the same order, so that the one that is furthest behind never waits for
//! the others.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use probity_core::{record::CallError, selection::Selection};
use probity_grade::internal::contest::Entry;
use tokio::sync::oneshot;

/// The part of a task in each comparison of its case, or why it has none.
pub(crate) type Entries = Arc<Vec<Result<Entry, String>>>;

/// What the comparisons of a case came to, or why that is not known; an error if the judge could not
/// be asked.
pub(crate) type Decision = Result<Arc<Vec<Result<Selection, String>>>, JudgeFailed>;

/// A judge that could not be asked.
#[derive(Clone, Debug)]
pub(crate) struct JudgeFailed {
    pub(crate) error: CallError,
    /// Its place in the plan.
    pub(crate) backend: usize,
}

/// What a task does that has waited for the others.
#[derive(Debug)]
pub(crate) enum Duty {
    /// It has the answers compared, its own included, and tells the others.
    Lead { entries: Vec<Entries>, others: Vec<oneshot::Sender<Decision>> },
    /// It waits for another one. If that is gone, it joins the others again.
    Follow(oneshot::Receiver<Decision>),
}

/// A task that waits for the others.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) serial: u64,
    pub(super) entries: Entries,
    pub(super) duty: oneshot::Sender<Duty>,
}

/// A case of a runner, whatever lane asks it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GroupKey {
    pub(super) runner: usize,
    pub(super) case_id: String,
    pub(super) repeat: u32,
}

/// The tasks of a case.
#[derive(Debug, Default)]
struct Group {
    /// Lanes that have begun the case.
    begun: BTreeSet<usize>,
    /// Lanes for which it is over.
    ended: BTreeSet<usize>,
    /// By lane.
    waiting: BTreeMap<usize, Waiting>,
}

/// All cases that are compared and not over.
#[derive(Debug, Default)]
pub(super) struct Groups {
    all: BTreeMap<GroupKey, Group>,
    /// Those that something happened to.
    touched: BTreeSet<GroupKey>,
    /// The lanes that wanted cases when it was last asked.
    wanting: BTreeSet<usize>,
}

impl Groups {
    pub(super) fn begin(&mut self, key: GroupKey, lane: usize) {
        self.all.entry(key).or_default().begun.insert(lane);
    }

    pub(super) fn join(&mut self, key: GroupKey, lane: usize, waiting: Waiting) {
        self.all.entry(key.clone()).or_default().waiting.insert(lane, waiting);
        self.touched.insert(key);
    }

    /// Whether no case is compared now, as in most runs.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The case is over for a lane, however it ended.
    pub(super) fn end(&mut self, key: GroupKey, lane: usize) {
        let group = self.all.entry(key.clone()).or_default();
        group.waiting.remove(&lane);
        group.ended.insert(lane);
        self.touched.insert(key);
    }

    /// Takes those out for which nobody else is going to come. `lanes` are those of a runner, and
    /// `wanting` are those that still begin cases.
    pub(super) fn take_complete(
        &mut self,
        lanes: impl Fn(usize) -> Vec<usize>,
        wanting: BTreeSet<usize>,
    ) -> Vec<Vec<Waiting>> {
        if self.wanting != wanting {
            self.wanting = wanting;
            self.touched.extend(self.all.keys().cloned());
        }
        let mut complete = Vec::new();
        for key in std::mem::take(&mut self.touched) {
            let Some(group) = self.all.get_mut(&key) else { continue };
            let lanes = lanes(key.runner);
            let may_begin = |lane: &usize| self.wanting.contains(lane);
            let is_open = |lane: &usize| {
                !group.ended.contains(lane) && (group.begun.contains(lane) || may_begin(lane))
            };
            let awaited = |lane: &usize| is_open(lane) && !group.waiting.contains_key(lane);
            if !group.waiting.is_empty() && !lanes.iter().any(awaited) {
                complete.push(std::mem::take(&mut group.waiting).into_values().collect());
            } else if !lanes.iter().any(is_open) {
                self.all.remove(&key);
            }
        }
        complete
    }
}

impl Groups {
    /// How many tasks wait for others.
    pub(super) fn waiting(&self) -> usize {
        self.all.values().map(|it| it.waiting.len()).sum()
    }

    /// Takes the first of those out that wait, whoever else may come.
    pub(super) fn take_first(&mut self) -> Option<Vec<Waiting>> {
        let group = self.all.values_mut().find(|it| !it.waiting.is_empty())?;
        Some(std::mem::take(&mut group.waiting).into_values().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> GroupKey {
        GroupKey { runner: 0, case_id: "c".to_owned(), repeat: 0 }
    }

    fn waiting(serial: u64) -> Waiting {
        Waiting { serial, entries: Arc::default(), duty: oneshot::channel().0 }
    }

    fn complete(groups: &mut Groups, wanting: &[usize]) -> Vec<Vec<u64>> {
        let found = groups.take_complete(|_| vec![0, 1, 2], wanting.iter().copied().collect());
        found.iter().map(|it| it.iter().map(|it| it.serial).collect()).collect()
    }

    fn begun(lanes: &[usize]) -> Groups {
        let mut groups = Groups::default();
        lanes.iter().for_each(|lane| groups.begin(key(), *lane));
        groups
    }

    #[test]
    fn nobody_goes_on_before_all_are_there() {
        let mut groups = begun(&[0, 1]);
        groups.join(key(), 0, waiting(7));
        groups.join(key(), 1, waiting(8));
        assert!(complete(&mut groups, &[2]).is_empty());
        groups.begin(key(), 2);
        groups.join(key(), 2, waiting(9));
        assert_eq!(complete(&mut groups, &[2]), [[7, 8, 9]]);
    }

    #[test]
    fn lanes_that_failed_or_want_no_more_are_not_waited_for() {
        let mut groups = begun(&[0, 1]);
        groups.join(key(), 0, waiting(7));
        groups.end(key(), 1);
        assert!(complete(&mut groups, &[0, 1, 2]).is_empty());
        assert_eq!(complete(&mut groups, &[0, 1]), [[7]]);
        groups.end(key(), 0);
        assert!(complete(&mut groups, &[0, 1]).is_empty() && groups.all.is_empty());
    }

    #[test]
    fn those_who_lose_their_leader_come_together_again() {
        let mut groups = begun(&[0, 1, 2]);
        (0..3).for_each(|it| groups.join(key(), it, waiting(it as u64)));
        assert_eq!(complete(&mut groups, &[0, 1, 2]), [[0, 1, 2]]);
        groups.end(key(), 0);
        groups.join(key(), 1, waiting(1));
        assert!(complete(&mut groups, &[0, 1, 2]).is_empty());
        groups.join(key(), 2, waiting(2));
        assert_eq!(complete(&mut groups, &[0, 1, 2]), [[1, 2]]);
    }
}
