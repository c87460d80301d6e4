//! From what came back to the record that is kept.

use std::time::Duration;

use probity_core::{
    classification::Classification,
    conversation::exchanges,
    execution::{EffectCall, EffectFound, Executed, ExecutionCall},
    opinion::Assessment,
    record::{Asked, CallError, CaseRecord, FailedAttempt, Usage},
    run_result::{Made, RunError, RunResult},
    score::Score,
    selection::Selection,
};
use probity_grade::{
    Expectation, classify,
    internal::{
        contest::{Contest, Entry},
        judge::{Inquiry, Shown},
        script::ScorerInput,
    },
};
use serde_json::Value;

use crate::{
    apart::{apart_if_long, apart_unless_short},
    backend::Reply,
    engine::Handle,
    source::Prepared,
};

/// All that the calls of a case came to.
#[derive(Debug, Default)]
pub(crate) struct Spent {
    pub(crate) calls: u32,
    pub(crate) failures: Vec<FailedAttempt>,
    pub(crate) usage: Usage,
    pub(crate) cost_usd: Option<f64>,
    pub(crate) latency: Duration,
    pub(crate) limit: Duration,
    pub(crate) started_ms: i64,
    pub(crate) elapsed: Duration,
    /// The worker that asked last for the case itself.
    pub(crate) worker: Option<String>,
}

/// What a case used and asked, when it is at its end.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) spent: Spent,
    /// Every question, of a case that asked several.
    pub(crate) asked: Vec<Asked>,
}

/// What is known when a case is judged.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Received<'a> {
    pub(crate) reply: Option<&'a Reply>,
    /// What transforms made of it, where they were run before.
    pub(crate) made: &'a [Made],
    pub(crate) error: Option<&'a CallError>,
    /// Skills that were chosen when each was asked about.
    pub(crate) chosen: Option<&'a [String]>,
    /// What judges made of the reply.
    pub(crate) assessments: &'a [Assessment],
    /// What scorers returned.
    pub(crate) scored: &'a [Result<Value, String>],
    /// What comparisons with other lanes came to.
    pub(crate) selections: &'a [Result<Selection, String>],
    /// What came of executing what is in the reply; none where nothing was to be executed.
    pub(crate) executed: Option<&'a Result<Executed, String>>,
    /// What executing the command of the reply and accepted ones showed.
    pub(crate) effects: &'a [Result<EffectFound, String>],
    /// Why the work on the case did not come to its end.
    pub(crate) unfinished: Option<&'a str>,
}

/// Says what a case came to.
pub(crate) fn classify_reply(
    case: &Prepared,
    handle: &Handle,
    received: Received<'_>,
) -> Classification {
    with_result(case, handle, received, |expectation, result| {
        let told: usize = result.exchanges.iter().map(|it| it.reply.len()).sum();
        let length = result.raw_response.map_or(0, str::len) + told;
        match expectation.is_quick() {
            true => apart_if_long(length, || classify(expectation, result)),
            false => apart_unless_short(length, || classify(expectation, result)),
        }
    })
}

/// What transforms of the case and its turns make of a reply.
pub(crate) fn made(case: &Prepared, handle: &Handle, reply: &Reply) -> Vec<Made> {
    let received = Received { reply: Some(reply), ..Received::default() };
    with_result(case, handle, received, Expectation::made)
}

/// What each scorer of a case is given, or why it cannot be asked.
pub(crate) fn scorer_inputs(
    case: &Prepared,
    handle: &Handle,
    received: Received<'_>,
) -> Vec<Result<ScorerInput, String>> {
    with_result(case, handle, received, Expectation::scorer_inputs)
}

/// What of a reply has to be executed; none where nothing has to be.
pub(crate) fn execution_call(
    case: &Prepared,
    handle: &Handle,
    received: Received<'_>,
) -> Option<Result<ExecutionCall, String>> {
    with_result(case, handle, received, Expectation::execution_call)
}

/// The pairs of commands that have to be executed.
pub(crate) fn effect_calls(
    case: &Prepared,
    handle: &Handle,
    received: Received<'_>,
) -> Vec<EffectCall> {
    with_result(case, handle, received, Expectation::effect_calls)
}

/// What a judge is shown of a reply, or why it cannot be asked.
pub(crate) fn shown(
    case: &Prepared,
    handle: &Handle,
    received: Received<'_>,
    inquiry: &Inquiry,
) -> Result<Shown, String> {
    with_result(case, handle, received, |expectation, result| expectation.shown(inquiry, result))
}

/// What a case brings into a comparison with other lanes, or why it has no part in it.
pub(crate) fn entry(
    case: &Prepared,
    handle: &Handle,
    received: Received<'_>,
    contest: &Contest,
    scores: &[Score],
) -> Result<Entry, String> {
    with_result(case, handle, received, |expectation, result| {
        expectation.entry(contest, result, &handle.lane, scores)
    })
}

/// Looks at all that is known of a case.
fn with_result<T>(
    case: &Prepared,
    handle: &Handle,
    received: Received<'_>,
    judge: impl FnOnce(&Expectation<'static>, &RunResult<'_>) -> T,
) -> T {
    let Received { reply, made, error, chosen, assessments, scored, selections, .. } = received;
    let Received { executed, effects, unfinished, .. } = received;
    let (backend, spent) = (&handle.subject.backend, handle.spent());
    let exchanges = exchanges(handle.asked());
    let answer = reply.map(Reply::answer);
    // It is only shown with an error.
    let limit_seconds = error.map(|_| spent.limit.as_secs_f64().to_string());
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53 milliseconds")]
    let result = RunResult {
        prompt: Some(case.request.prompt()),
        backend: Some(&backend.name),
        raw_response: answer.as_deref(),
        error: error.map(|error| RunError {
            message: &error.message,
            kind: Some(error.kind),
            backend: Some(backend.kind_name()),
            status: error.status,
            exit_code: error.exit_code,
            signal: error.signal.as_deref(),
            ..RunError::default()
        }),
        limit_seconds: limit_seconds.as_deref(),
        stop_reason: reply.and_then(|reply| reply.stop_reason.as_deref()),
        latency_ms: Some(millis(spent.latency) as f64),
        ttft_ms: reply.and_then(|it| it.first_token).map(|it| millis(it) as f64),
        cost_usd: spent.cost_usd,
        made,
        exchanges: &exchanges,
        chosen,
        assessments,
        scored,
        selections,
        executed,
        effects,
        unfinished,
    };
    judge(&case.expectation, &result)
}

/// Makes the record of a case.
pub(crate) fn record(
    case: Box<Prepared>,
    mut reply: Option<Reply>,
    error: Option<CallError>,
    classification: Classification,
    account: Account,
) -> CaseRecord {
    let verdict = case.expectation.verdict(&classification);
    let Account { spent, asked } = account;
    let tokens_per_second = reply.as_ref().and_then(Reply::tokens_per_second);
    let text = reply.as_mut().map(Reply::take_answer);
    let Reply { reasoning, stop_reason, model, source, first_token, .. } =
        reply.unwrap_or_default();
    CaseRecord {
        case_id: case.case_id,
        repeat: case.repeat,
        input: case.input,
        case: case.case,
        request: case.request,
        reply: text,
        error,
        reasoning,
        stop_reason,
        model,
        source,
        latency_ms: millis(spent.latency),
        ttft_ms: first_token.map(millis),
        tokens_per_second,
        usage: spent.usage,
        cost_usd: spent.cost_usd,
        calls: spent.calls,
        worker: spent.worker,
        failures: spent.failures,
        started_ms: spent.started_ms,
        elapsed_ms: millis(spent.elapsed),
        class: classification.class(),
        verdict,
        classification,
        asked,
    }
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
