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

use super::{Asking, Calls, Kind, Running, Work, assess::assess, similar};
use crate::{
    backend::Reply,
    engine::{Ended, Handle, Query, Target, Unanswered, failed, finish},
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

/// One answer, one judgement for each rubric, and the texts that are compared.
pub(super) fn calls(case: &TestCase) -> Calls {
    let assertions = &case.criteria.assertions;
    Calls {
        answers: 1,
        judgements: rubrics_in(assertions),
        embeddings: similar::texts_in(assertions),
        fallbacks: 0,
    }
}

/// How many judgements the assertions of a case ask for.
fn rubrics_in(assertions: &[Assertion]) -> u64 {
    let of = |it: &Assertion| u64::from(it.kind.test.asks_judge()) + rubrics_in(&it.members);
    assertions.iter().map(of).sum()
}

/// Whether the assertions of a case ask anybody: a judge, a scorer outside of the process, or a model
/// that embeds texts.
fn asks_others(assertions: &[Assertion]) -> bool {
    assertions.iter().any(|it| {
        let scorers = [AssertionTest::Scorer, AssertionTest::Python, AssertionTest::Exec];
        let test = it.kind.test;
        test.asks_judge()
            || test.is_similar()
            || scorers.contains(&test)
            || asks_others(&it.members)
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
        let embedder = Some(asking.embedder.as_bytes()).filter(|it| !it.is_empty());
        let parts = [&plain.0[..], asking.judge.as_bytes(), asserted.as_bytes()];
        InputDigest::of(parts.into_iter().chain(embedder))
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
    let scored = match score(&case, &reply, &mut handle).await {
        Ok(scored) => scored,
        Err(unanswered) => return failed(case, Some(reply), handle, unanswered),
    };
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
async fn score(
    case: &Prepared,
    reply: &Reply,
    handle: &mut Handle,
) -> Result<Vec<Result<Value, String>>, Unanswered> {
    let calls = case.expectation.scorers();
    if calls.is_empty() {
        return Ok(Vec::new());
    }
    let inputs = grade::scorer_inputs(case, &handle.subject.backend, handle.spent(), reply);
    let mut scored = Vec::with_capacity(calls.len());
    for (number, (call, input)) in calls.iter().zip(inputs).enumerate() {
        scored.push(match input {
            Ok(input) => handle.score(number, call, &input).await?,
            Err(why) => Err(why),
        });
    }
    Ok(scored)
}
