//! Any prompt, any expectation: one question, one answer.

use std::sync::Arc;

use probity_core::{
    case::TestCase,
    criteria::{Assertion, AssertionTest},
    details::Trouble,
    kind::{KindSpec, RunnerKind},
    record::{Aborted, CacheKind, InputDigest},
};
use serde_json::Value;

use super::{Asking, Calls, Kind, Running, Work, assess::assess};
use crate::{
    backend::Reply,
    engine::{Ended, Handle, Query, Target, failed, finish},
    grade::{self, Received},
    source::Prepared,
};

#[derive(Debug)]
pub(crate) struct Respond;

impl Kind for Respond {
    fn spec(&self) -> &'static KindSpec {
        RunnerKind::Respond.spec()
    }
}

/// One answer, and one judgement for each rubric.
pub(super) fn calls(case: &TestCase) -> Calls {
    Calls { answers: 1, judgements: rubrics_in(&case.criteria.assertions), fallbacks: 0 }
}

/// How many judgements the assertions of a case ask for.
fn rubrics_in(assertions: &[Assertion]) -> u64 {
    let of = |it: &Assertion| u64::from(it.kind.test.asks_judge()) + rubrics_in(&it.members);
    assertions.iter().map(of).sum()
}

/// Whether the assertions of a case ask anybody: a judge, or a scorer outside of the process.
fn asks_others(assertions: &[Assertion]) -> bool {
    assertions.iter().any(|it| {
        let scorers = [AssertionTest::Scorer, AssertionTest::Python, AssertionTest::Exec];
        let test = it.kind.test;
        test.asks_judge() || scorers.contains(&test) || asks_others(&it.members)
    })
}

/// Asks once; scorers and a judge about the answer where the case wants them.
#[derive(Debug)]
pub(super) struct Answer;

impl Work for Answer {
    fn input(&self, asking: &Asking<'_>) -> InputDigest {
        let plain = asking.plain();
        let assertions = &asking.case.criteria.assertions;
        if !asks_others(assertions) {
            return plain;
        }
        let asserted = serde_json::to_string(assertions).unwrap_or_default();
        InputDigest::of([&plain.0[..], asking.judge.as_bytes(), asserted.as_bytes()])
    }

    fn run(self: Arc<Self>, case: Prepared, handle: Handle) -> Running {
        Box::pin(answer(case, handle))
    }
}

async fn answer(case: Prepared, mut handle: Handle) -> Result<Ended, Aborted> {
    let rubrics = case.expectation.inquiries().len();
    let judged = rubrics > 0 || !case.expectation.scorers().is_empty();
    let query = Query {
        target: Target::Subject,
        role: "answer",
        kept: CacheKind::Answer,
        request: &case.request,
        repeat: case.repeat,
    };
    let answered = match judged {
        true => handle.query(query).await,
        false => handle.ask(&query).await,
    };
    let reply = match answered {
        Ok(reply) => reply,
        Err(unanswered) => return failed(case, None, handle, unanswered),
    };
    let scored = score(&case, &reply, &mut handle).await;
    let received = Received { reply: Some(&reply), scored: &scored, ..Received::default() };
    let classification =
        grade::classify_reply(&case, &handle.subject.backend, handle.spent(), received);
    // A reply that fails without the judge is not worth a call.
    if rubrics == 0 || classification.details.reason != Some(Trouble::Unjudged) {
        return Ok(finish(case, handle, Some(reply), classification));
    }
    let mut assessments = Vec::with_capacity(rubrics);
    for at in 0..rubrics {
        match assess(&case, at, &reply, &mut handle).await {
            Ok(assessed) => assessments.push(assessed),
            Err(unanswered) => return failed(case, Some(reply), handle, unanswered),
        }
    }
    let received = Received {
        reply: Some(&reply),
        assessments: &assessments,
        scored: &scored,
        ..Received::default()
    };
    let classification =
        grade::classify_reply(&case, &handle.subject.backend, handle.spent(), received);
    Ok(finish(case, handle, Some(reply), classification))
}

/// Asks the scorers of a case, one after the other.
async fn score(case: &Prepared, reply: &Reply, handle: &mut Handle) -> Vec<Result<Value, String>> {
    let calls = case.expectation.scorers();
    if calls.is_empty() {
        return Vec::new();
    }
    let inputs = grade::scorer_inputs(case, &handle.subject.backend, handle.spent(), reply);
    let mut scored = Vec::with_capacity(calls.len());
    for (number, (call, input)) in calls.iter().zip(inputs).enumerate() {
        scored.push(match input {
            Ok(input) => handle.score(number, call, &input).await,
            Err(why) => Err(why),
        });
    }
    scored
}
