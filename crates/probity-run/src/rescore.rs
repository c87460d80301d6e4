//! Stored replies, judged again by the dataset and the rules of now. Nobody is asked.

use std::sync::Arc;

use probity_core::{
    case::TestCase,
    classification::{Classification, Verdict},
    conversation::exchanges,
    record::CaseRecord,
    run_result::{RunError, RunResult},
};
use probity_grade::{
    Compiler, Rules,
    internal::{
        again::{Known, classify_again},
        judge::{Inquiry, Shown, Talk},
    },
};

use crate::{
    kind::assess::in_words,
    plan::ScannedRunner,
    source::{Reread, Stopped},
};

/// A lane whose results are judged again.
#[derive(Clone, Copy, Debug)]
pub struct Judging<'a> {
    /// Its cases, as they are now.
    pub scanned: &'a ScannedRunner,
    /// The name of the backend that answered.
    pub backend: &'a str,
    /// By what is judged.
    pub rules: &'static Rules,
}

/// What became of the results of a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rescored {
    /// Results that were judged again.
    pub results: u64,
    /// Cases of the dataset that have no result.
    pub without_result: u64,
}

/// Why a lane could not be judged to its end.
#[derive(Debug, thiserror::Error)]
pub enum RescoreError<E> {
    /// Reading or writing results failed.
    #[error(transparent)]
    Results(E),
    /// The dataset changed while it was being read.
    #[error("the dataset changed while it was being read")]
    Changed,
    /// A case can no longer be judged, although it could when the dataset was checked.
    #[error("case `{case_id}` cannot be judged any more: {why}")]
    Uncompiled {
        /// The case.
        case_id: String,
        /// What is wrong with its criteria.
        why: String,
    },
}

/// Judges the results of a runner again, in the order of its dataset.
///
/// `find` gives the stored results of a case, and `each` takes them as they are judged now. No more
/// than the results of one case are in memory.
pub fn rescore<E>(
    judging: Judging<'_>,
    mut find: impl FnMut(&str) -> Result<Vec<CaseRecord>, E>,
    mut each: impl FnMut(CaseRecord) -> Result<(), E>,
) -> Result<Rescored, RescoreError<E>> {
    let Judging { scanned, backend, rules } = judging;
    let mut compiler = Compiler::new(rules);
    let mut rescored = Rescored::default();
    let mut failed = None;
    let read = scanned.cases().reread(|case| {
        let mut judge = || {
            let stored = find(&case.id).map_err(RescoreError::Results)?;
            rescored.without_result += u64::from(stored.is_empty());
            if stored.is_empty() {
                return Ok(());
            }
            let mut case = case.clone();
            // The reply names choices by the letters that they had.
            if let Some(record) = stored.first() {
                case.arrange_choices_as(&record.case.criteria.reading.choices);
            }
            let stated = compiler.compile(&case).map_err(|problems| RescoreError::Uncompiled {
                case_id: case.id.clone(),
                why: problems.first().map_or_else(String::new, |it| it.message.clone()),
            })?;
            let expectation = scanned.cases().expect(&case, stated);
            let case = Arc::new(case);
            let panel = &scanned.cases().panel;
            let words = |inquiry: &Inquiry, shown: &Shown, talk: &Talk<'_>| {
                in_words(&case, panel, inquiry, shown, talk)
            };
            for record in stored {
                rescored.results += 1;
                let judged = again(record, &case, backend, |result, known| {
                    let known = Known { words: Some(&words), ..known };
                    classify_again(&expectation, result, known)
                });
                each(judged).map_err(RescoreError::Results)?;
            }
            Ok(())
        };
        judge().map_err(|error| {
            failed = Some(error);
            Stopped
        })
    });
    match (failed, read) {
        (Some(error), _) => Err(error),
        (None, Err(Reread::Changed)) => Err(RescoreError::Changed),
        (None, Ok(()) | Err(Reread::Unwanted)) => Ok(rescored),
    }
}

/// A stored result that was to be judged by the criteria of its own case.
#[derive(Debug)]
pub struct ByOwnCase {
    /// The result.
    pub record: CaseRecord,
    /// Whether it was judged again. One whose case has no criteria, or none that can be checked
    /// without a suite, is as it was.
    pub is_judged: bool,
}

/// Judges a stored result by the criteria of its own case.
pub fn by_own_case(record: CaseRecord, backend: &str, compiler: &mut Compiler<'_>) -> ByOwnCase {
    let case = record.case.clone();
    if !case.has_criteria() || record.error.is_some() {
        return ByOwnCase { record, is_judged: false };
    }
    match compiler.compile(&case) {
        Ok(expectation) if expectation.inquiries().is_empty() => {
            let record = again(record, &case, backend, |result, known| {
                classify_again(&expectation, result, known)
            });
            ByOwnCase { record, is_judged: true }
        }
        Ok(_) | Err(_) => ByOwnCase { record, is_judged: false },
    }
}

/// The record as it is judged now. What calls brought and cost stays; no call was made for it.
fn again(
    record: CaseRecord,
    case: &Arc<TestCase>,
    backend: &str,
    classify: impl FnOnce(&RunResult<'_>, Known<'_>) -> (Classification, Verdict),
) -> CaseRecord {
    let exchanges = exchanges(&record.asked);
    let limit = record.classification.details.limit_seconds.as_ref().map(ToString::to_string);
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53 milliseconds")]
    let result = RunResult {
        prompt: Some(record.request.prompt()),
        backend: Some(backend),
        raw_response: record.reply.as_deref(),
        error: record.error.as_ref().map(|error| RunError {
            message: &error.message,
            kind: Some(error.kind),
            status: error.status,
            exit_code: error.exit_code,
            signal: error.signal.as_deref(),
            ..RunError::default()
        }),
        limit_seconds: limit.as_deref(),
        stop_reason: record.stop_reason.as_deref(),
        latency_ms: Some(record.latency_ms as f64),
        ttft_ms: record.ttft_ms.map(|it| it as f64),
        cost_usd: record.cost_usd,
        exchanges: &exchanges,
        ..RunResult::default()
    };
    let classified = Some(&record.classification);
    let known = Known { asked: &record.asked, classified, words: None };
    let (classification, verdict) = classify(&result, known);
    CaseRecord {
        case: case.clone(),
        class: classification.class(),
        verdict,
        classification,
        calls: 0,
        ..record
    }
}
