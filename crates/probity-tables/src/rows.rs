//! Rows: what stands in the columns of `schema`, in the same order.

use probity_core::{
    case::Category,
    classification::Verdict,
    metrics::Verdicts,
    record::{Asked, CaseRecord, FailedAttempt, Lane, LaneStatus},
    request::Request,
    score::Score,
};

use crate::{
    RunHead,
    column::Value,
    schema::{CALLS, CASES, RUNS, SCORES},
};

/// What the results of a lane add up to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    verdicts: Verdicts,
    calls: u64,
    input_tokens: u64,
    output_tokens: u64,
    cost_usd: f64,
    priced: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, case: &CaseRecord) {
        self.verdicts.add(case.verdict);
        self.calls += u64::from(case.calls);
        self.input_tokens += case.usage.input_tokens.unwrap_or(0);
        self.output_tokens += case.usage.output_tokens.unwrap_or(0);
        self.cost_usd += case.cost_usd.unwrap_or(0.0);
        self.priced += u64::from(case.cost_usd.is_some());
    }

    fn merge(&mut self, other: &Self) {
        let Self { verdicts, calls, input_tokens, output_tokens, cost_usd, priced } = other;
        self.verdicts.merge(*verdicts);
        self.calls += calls;
        self.input_tokens += input_tokens;
        self.output_tokens += output_tokens;
        self.cost_usd += cost_usd;
        self.priced += priced;
    }
}

/// The row of a run, and what its lanes add up to.
pub(crate) fn run<'a>(run: &'a RunHead, tallies: &[Tally]) -> [Value<'a>; RUNS.len()] {
    let mut all = Tally::default();
    tallies.iter().for_each(|it| all.merge(it));
    let lanes = run.lanes.iter().zip(tallies);
    let lanes = lanes.map(|((it, status), tally)| lane(it, status.as_ref(), tally)).collect();
    let imported = run.imported.as_ref();
    [
        Value::text(&run.run_id),
        Value::text(&run.suite),
        Value::maybe_text(run.suite_path.as_deref()),
        Value::Integer(run.started_ms),
        Value::maybe_count(run.finished_ms),
        Value::text(run.status.as_str()),
        Value::text(&run.probity_version),
        Value::maybe_text(imported.map(|it| it.tool.as_str())),
        Value::maybe_text(imported.map(|it| it.file.as_str())),
        Value::maybe_text(run.rescored_from.as_deref()),
        Value::Texts(&run.merged),
        Value::count(all.verdicts.total()),
        Value::count(all.verdicts.pass),
        Value::count(all.verdicts.fail),
        Value::count(all.verdicts.error),
        Value::count(all.verdicts.undecided),
        Value::count(all.calls),
        Value::count(all.input_tokens),
        Value::count(all.output_tokens),
        Value::Number(all.cost_usd),
        Value::count(all.priced),
        Value::Structs(lanes),
    ]
}

fn lane<'a>(lane: &'a Lane, status: Option<&LaneStatus>, tally: &Tally) -> Vec<Value<'a>> {
    vec![
        Value::text(&lane.runner),
        Value::maybe_text(lane.variant.as_deref()),
        Value::text(lane.kind.as_str()),
        Value::text(&lane.backend),
        Value::text(&lane.backend_kind),
        Value::maybe_text(lane.model.as_deref()),
        Value::text(&lane.dataset_digest),
        Value::count(lane.repeat),
        Value::maybe_text(status.map(LaneStatus::as_str)),
        Value::count(lane.planned),
        Value::count(tally.verdicts.pass),
        Value::count(tally.verdicts.fail),
        Value::count(tally.verdicts.error),
        Value::count(tally.verdicts.undecided),
        Value::count(tally.calls),
        Value::count(tally.input_tokens),
        Value::count(tally.output_tokens),
        Value::Number(tally.cost_usd),
    ]
}

/// A result, and where it belongs.
#[derive(Clone, Copy)]
pub(crate) struct CaseRow<'a> {
    pub(crate) run: &'a RunHead,
    pub(crate) lane: &'a Lane,
    pub(crate) case: &'a CaseRecord,
}

impl<'a> CaseRow<'a> {
    pub(crate) fn case(&self) -> [Value<'a>; CASES.len()] {
        let Self { run, lane, case } = *self;
        let error = case.error.as_ref();
        let reason = match case.verdict {
            Verdict::Pass => String::new(),
            Verdict::Fail | Verdict::Error | Verdict::Undecided => case.why(),
        };
        [
            Value::text(&run.run_id),
            Value::text(&lane.runner),
            Value::maybe_text(lane.variant.as_deref()),
            Value::text(lane.kind.as_str()),
            Value::text(&lane.backend),
            Value::maybe_text(case.model.as_deref().or(lane.model.as_deref())),
            Value::text(&case.case_id),
            Value::count(case.repeat),
            Value::maybe_text(case.case.category.as_ref().map(Category::as_str)),
            Value::Texts(&case.case.tags),
            Value::maybe_text(case.case.difficulty.as_deref()),
            Value::text(case.class.as_str()),
            Value::text(case.verdict.as_str()),
            Value::text(case.classification.rule.as_str()),
            Value::text(reason),
            Value::maybe_text(case.request.system()),
            Value::text(case.request.prompt()),
            messages(&case.request),
            Value::maybe_text(case.expected()),
            Value::maybe_text(case.reply.as_deref()),
            Value::maybe_text(case.reasoning.as_deref()),
            Value::maybe_text(case.stop_reason.as_deref()),
            Value::maybe_text(error.map(|it| it.kind.as_str())),
            Value::maybe_text(error.map(|it| it.message.as_str())),
            Value::text(case.source.as_str()),
            Value::maybe_text(case.worker.as_deref()),
            Value::Integer(case.started_ms),
            Value::count(case.elapsed_ms),
            Value::count(case.latency_ms),
            Value::maybe_count(case.ttft_ms),
            Value::maybe_number(case.tokens_per_second),
            Value::maybe_count(case.usage.input_tokens),
            Value::maybe_count(case.usage.output_tokens),
            Value::maybe_count(case.usage.cached_tokens),
            Value::Flag(case.usage.estimated),
            Value::maybe_number(case.cost_usd),
            Value::count(case.calls),
            Value::count(case.asked.len().max(1)),
            Value::Structs(case.failures.iter().map(failure).collect()),
            json(&case.classification.details),
            json(&*case.case),
            Value::text(case.input.to_string()),
        ]
    }

    /// What stands first in the rows that belong to a result.
    fn key(&self, place: usize) -> [Value<'a>; 7] {
        let Self { run, lane, case } = *self;
        [
            Value::text(&run.run_id),
            Value::text(&lane.runner),
            Value::maybe_text(lane.variant.as_deref()),
            Value::text(&lane.backend),
            Value::text(&case.case_id),
            Value::count(case.repeat),
            Value::count(place),
        ]
    }

    pub(crate) fn scores(self) -> impl Iterator<Item = [Value<'a>; SCORES.len()]> {
        let scores = self.case.classification.scores.iter().enumerate();
        scores.map(move |(at, score)| {
            let [run, runner, variant, backend, case_id, repeat, place] = self.key(at);
            let Score { name, kind, named, value, said, passed, weight, reason, span } = score;
            [
                run,
                runner,
                variant,
                backend,
                case_id,
                repeat,
                place,
                Value::text(&**name),
                Value::text(&**kind),
                Value::Flag(*named),
                Value::maybe_number(*value),
                Value::maybe_number(*said),
                Value::Flag(*passed),
                Value::Number(*weight),
                Value::maybe_text(reason.as_deref()),
                Value::maybe_count(span.as_ref().map(|it| it.start)),
                Value::maybe_count(span.as_ref().map(|it| it.end)),
            ]
        })
    }

    /// Every question of the result; what is asked once is one question.
    pub(crate) fn calls<E>(
        &self,
        mut each: impl FnMut(&[Value<'a>; CALLS.len()]) -> Result<(), E>,
    ) -> Result<(), E> {
        let Self { lane, case, .. } = *self;
        for (at, asked) in case.asked.iter().enumerate() {
            each(&self.call(at, asked))?;
        }
        if !case.asked.is_empty() {
            return Ok(());
        }
        let [run, runner, variant, backend, case_id, repeat, place] = self.key(0);
        each(&[
            run,
            runner,
            variant,
            backend,
            case_id,
            repeat,
            place,
            Value::Null,
            Value::Null,
            Value::text(&lane.backend),
            Value::maybe_text(case.model.as_deref().or(lane.model.as_deref())),
            Value::maybe_text(case.request.system()),
            Value::text(case.request.prompt()),
            messages(&case.request),
            Value::maybe_text(case.reply.as_deref()),
            Value::Null,
            Value::maybe_text(case.reasoning.as_deref()),
            Value::maybe_text(case.stop_reason.as_deref()),
            Value::maybe_text(case.error.as_ref().map(|it| it.message.as_str())),
            Value::text(case.source.as_str()),
            Value::count(case.latency_ms),
            Value::maybe_count(case.usage.input_tokens),
            Value::maybe_count(case.usage.output_tokens),
            Value::maybe_count(case.usage.cached_tokens),
            Value::maybe_number(case.cost_usd),
            Value::count(case.calls),
        ])
    }

    fn call(&self, at: usize, asked: &'a Asked) -> [Value<'a>; CALLS.len()] {
        let [run, runner, variant, backend, case_id, repeat, place] = self.key(at);
        [
            run,
            runner,
            variant,
            backend,
            case_id,
            repeat,
            place,
            Value::text(&asked.role),
            Value::maybe_count(asked.turn),
            Value::text(&asked.backend),
            Value::maybe_text(asked.model.as_deref()),
            Value::maybe_text(asked.request.system()),
            Value::text(asked.request.prompt()),
            messages(&asked.request),
            Value::maybe_text(asked.reply.as_deref()),
            match asked.tool_calls.is_empty() {
                true => Value::Null,
                false => json(&asked.tool_calls),
            },
            Value::maybe_text(asked.reasoning.as_deref()),
            Value::maybe_text(asked.stop_reason.as_deref()),
            Value::maybe_text(asked.error.as_deref()),
            Value::text(asked.source.as_str()),
            Value::count(asked.latency_ms),
            Value::maybe_count(asked.usage.input_tokens),
            Value::maybe_count(asked.usage.output_tokens),
            Value::maybe_count(asked.usage.cached_tokens),
            Value::maybe_number(asked.cost_usd),
            Value::count(asked.calls),
        ]
    }
}

/// A request that is more than a prompt with or without instructions.
fn messages(request: &Request) -> Value<'static> {
    if request.is_plain() { Value::Null } else { json(&request.messages) }
}

fn failure(failed: &FailedAttempt) -> Vec<Value<'_>> {
    let FailedAttempt { attempt, error, latency_ms, retry_in_ms, worker } = failed;
    vec![
        Value::count(*attempt),
        Value::text(error.kind.as_str()),
        Value::Flag(error.permanent),
        Value::text(&error.message),
        Value::maybe_count(error.status),
        Value::maybe_count(error.exit_code),
        Value::count(*latency_ms),
        Value::maybe_count(*retry_in_ms),
        Value::maybe_text(worker.as_deref()),
    ]
}

/// Something as JSON; what cannot be written so is missing.
fn json(value: &impl serde::Serialize) -> Value<'static> {
    serde_json::to_string(value).map_or(Value::Null, Value::text)
}
