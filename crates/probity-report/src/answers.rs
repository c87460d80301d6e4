//! What gates count as one: an answer, or all answers to a case where `min_pass` of them make it.

use std::io;

use probity_core::{
    classification::Verdict,
    evaluation::FailedCase,
    metrics::{Verdicts, of_case},
    record::{CaseRecord, Lane},
    view::Cases,
};

/// One answer, or all answers to a case.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted<'a> {
    /// What it counts as.
    pub(crate) verdict: Verdict,
    /// At least one.
    pub(crate) answers: &'a [CaseRecord],
    lane: &'a Lane,
}

/// Goes through what a lane counts, in the order of the ids.
pub(crate) fn each(
    cases: &dyn Cases,
    at: usize,
    lane: &Lane,
    take: &mut dyn FnMut(Counted<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let mut together: Vec<CaseRecord> = Vec::new();
    cases.each(at, &mut |record| {
        if lane.judging.min_pass.is_none() {
            return take(Counted::new(lane, std::slice::from_ref(record)));
        }
        if together.first().is_some_and(|it| it.case_id != record.case_id) {
            take(Counted::new(lane, &together))?;
            together.clear();
        }
        together.push(record.clone());
        Ok(())
    })?;
    if together.is_empty() { Ok(()) } else { take(Counted::new(lane, &together)) }
}

impl<'a> Counted<'a> {
    fn new(lane: &'a Lane, answers: &'a [CaseRecord]) -> Self {
        let mut verdicts = Verdicts::default();
        answers.iter().for_each(|it| verdicts.add(lane.judging.counted(it.verdict)));
        // A single answer that counts for itself is what it is.
        let verdict = of_case(&verdicts, lane.judging.min_pass);
        Self { verdict, answers, lane }
    }

    /// The answer that shows best what became of it.
    pub(crate) fn telling(&self) -> &'a CaseRecord {
        let alike =
            self.answers.iter().find(|it| self.lane.judging.counted(it.verdict) == self.verdict);
        alike.unwrap_or(&self.answers[0])
    }

    /// Why it did not pass.
    pub(crate) fn why(&self) -> String {
        let why = self.telling().why();
        let Some(least) = self.lane.judging.min_pass else { return why };
        let passed = self.answers.iter().filter(|it| it.verdict == Verdict::Pass).count();
        format!("{passed} of {} answers passed, {least} have to: {why}", self.answers.len())
    }

    /// Its entry among the failed cases; none if it passed, or if nothing decides it.
    pub(crate) fn failed_case(&self) -> Option<FailedCase> {
        match self.verdict {
            Verdict::Pass | Verdict::Undecided => None,
            Verdict::Fail | Verdict::Error => {
                Some(FailedCase { message: self.why(), ..FailedCase::of(self.telling())? })
            }
        }
    }
}
