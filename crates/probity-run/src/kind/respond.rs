//! Any prompt, any expectation: one question, or a conversation.

pub(super) mod talk;

use std::{collections::BTreeMap, sync::Arc};

use probity_core::{
    case::TestCase,
    criteria::{Asks, Assertion, CriteriaProblem},
    details::Trouble,
    execution::{EffectCall, EffectFound, EffectVerdict, Executed},
    kind::{KindSpec, RunnerKind},
    located::Step,
    record::{Aborted, InputDigest},
    request::{Message, Request},
};
use probity_load::template;
use serde_json::Value;

use super::{Asking, Calls, Kind, Questions, Running, Work, assess::assess, contest, similar};
use crate::{
    backend::Reply,
    engine::{Ended, Handle, Unanswered, failed, finish},
    grade::{self, Received},
    source::Prepared,
};

#[derive(Debug)]
pub(crate) struct Respond;

impl Kind for Respond {
    fn spec(&self) -> &'static KindSpec {
        RunnerKind::Respond.spec()
    }

    fn check(&self, case: &TestCase) -> Vec<CriteriaProblem> {
        one_world(case)
    }

    /// Each turn sends what was said before once more. Answers are not known beforehand.
    fn sent_bytes(&self, case: &TestCase, filled: Option<&Request>) -> u64 {
        let first = filled.map_or(0, Request::bytes);
        let later = case.conversation.turns.iter().skip(1);
        let sizes = later.map(|turn| turn.user.iter().map(|it| it.bytes() as u64).sum::<u64>());
        let sent = sizes.scan(first, |said, size| {
            *said += size;
            Some(*said)
        });
        first + sent.sum::<u64>()
    }
}

/// What is wrong with a case about a world that is left behind: each call of a program has one world of its own.
pub(super) fn one_world(case: &TestCase) -> Vec<CriteriaProblem> {
    let Some(execution) = case.execution.as_ref().filter(|it| it.left_behind) else {
        return Vec::new();
    };
    let wrong = [
        ("file", execution.file.is_some(), "the program writes its files itself"),
        ("worlds", execution.worlds.len() > 1, "the program works in one world"),
        (
            "left_behind",
            !case.conversation.is_one_question(),
            "each call has a world of its own, and a conversation has several",
        ),
    ];
    let wrong = wrong.into_iter().filter(|(_, is_wrong, _)| *is_wrong);
    let problem = |(key, _, why): (&'static str, bool, &str)| CriteriaProblem {
        path: vec![Step::Key("execution"), Step::Key(key)],
        code: "bad-case",
        message: match key {
            "left_behind" => format!("`left_behind` goes with one question: {why}"),
            _ => format!("`{key}` does not go with `left_behind`: {why}"),
        },
        help: None,
    };
    wrong.map(problem).collect()
}

/// One answer for each turn, one judgement for each rubric, and the texts that are compared.
pub(super) fn calls(case: &TestCase) -> Calls {
    let spec = &case.conversation;
    let in_all = |count: fn(&[Assertion]) -> u64| case.asserted().map(|it| count(it.1)).sum();
    Calls {
        answers: spec.turn_count() as u64,
        judgements: in_all(rubrics_in),
        comparisons: in_all(contest::questions_in),
        embeddings: in_all(similar::texts_in),
        rerankings: in_all(ranked_in),
        steps: match case.ask.tools {
            Some(_) => spec.answered_turns() as u64 * u64::from(spec.steps() - 1),
            None => 0,
        },
        user_turns: spec.user_turns() as u64,
        ..Calls::default()
    }
}

/// How many judgements the assertions of a case ask for.
fn rubrics_in(assertions: &[Assertion]) -> u64 {
    let of = |it: &Assertion| u64::from(it.kind.test.asks_judge()) + rubrics_in(&it.members);
    assertions.iter().map(of).sum()
}

/// How often the assertions of a case ask how relevant a reply is.
fn ranked_in(assertions: &[Assertion]) -> u64 {
    let of = |it: &Assertion| u64::from(it.kind.test.asks() == Asks::Reranker);
    assertions.iter().map(|it| of(it) + ranked_in(&it.members)).sum()
}

/// Whether the assertions of a case ask anybody: a judge, a scorer outside of the process, or a model
/// that embeds texts.
fn asks_others(assertions: &[Assertion]) -> bool {
    assertions.iter().any(|it| it.kind.test.asks() != Asks::Nobody || asks_others(&it.members))
}

/// What a case asks; none if it cannot be filled in, which the scan would have noticed.
pub(super) fn questions(case: &TestCase, filled: Request) -> Option<Questions> {
    let given = case.vars();
    let vars = template::fill_values(&given).ok()?;
    let further = case.conversation.turns.iter().skip(1);
    let further: Vec<Message> = further.map(|it| Message::user(it.user.clone())).collect();
    let further = template::fill_messages(&further, &vars).ok()?;
    let user = case.conversation.user.as_ref();
    let user = user.map(|it| template::render(&it.instructions, &vars)).transpose().ok()?;
    // Only what tools say is filled in later.
    let vars = match case.conversation.tool_results {
        Some(_) => vars.into_owned(),
        None => BTreeMap::new(),
    };
    Some(Questions { request: filled, work: Arc::new(Answer { further, vars, user }) })
}

/// Asks until the user and the tools have nothing more to say, and then scorers and a judge about
/// the answers where the case wants them.
#[derive(Debug)]
struct Answer {
    /// What the user says after the first question.
    further: Vec<Message>,
    /// Values for what tools say.
    vars: BTreeMap<String, Value>,
    /// Who the user is that a model plays.
    user: Option<String>,
}

impl Work for Answer {
    fn input(&self, asking: &Asking<'_>) -> InputDigest {
        let mut input = asking.plain();
        let spec = &asking.case.conversation;
        if !spec.is_one_question() {
            let said = (&self.further, &spec.tool_results, spec.steps(), &self.vars);
            let said = serde_json::to_string(&said).unwrap_or_default();
            input = InputDigest::of([&input.0[..], b"conversation", said.as_bytes()]);
        }
        if let (Some(part), Some(user)) = (&spec.user, &self.user) {
            let said = (user, part.stop(), part.turns());
            let said = serde_json::to_string(&said).unwrap_or_default();
            input = InputDigest::of([&input.0[..], asking.user.as_bytes(), said.as_bytes()]);
        }
        judged_input(input, asking)
    }

    fn run(self: Arc<Self>, case: Box<Prepared>, handle: Box<Handle>) -> Running {
        Box::pin(async move { answer(&self, case, handle).await })
    }
}

/// What decides about a reply beside the reply itself: what is executed, and those who are asked about it.
fn judged_input(mut input: InputDigest, asking: &Asking<'_>) -> InputDigest {
    if let Some(execution) = &asking.case.execution {
        let said = serde_json::to_string(execution).unwrap_or_default();
        input = InputDigest::of([&input.0[..], b"execution", said.as_bytes()]);
    }
    let asserted: Vec<&[Assertion]> = asking.case.asserted().map(|it| it.1).collect();
    if !asserted.iter().any(|it| asks_others(it)) {
        return input;
    }
    let asserted = match asserted.as_slice() {
        [only] => serde_json::to_string(only),
        several => serde_json::to_string(several),
    };
    let asserted = asserted.unwrap_or_default();
    let helpers = [asking.embedder, asking.reranker].into_iter();
    let helpers = helpers.map(str::as_bytes).filter(|it| !it.is_empty());
    let parts = [&input.0[..], asking.judge.as_bytes(), asserted.as_bytes()];
    let both_orders = asking.swap && contest::is_compared(asking.case);
    let orders = both_orders.then_some(&b"both"[..]);
    InputDigest::of(parts.into_iter().chain(helpers).chain(orders))
}

/// All that a result depends on, where nothing is said after the first question but what follows from it.
pub(super) fn input_of(asking: &Asking<'_>) -> InputDigest {
    judged_input(asking.plain(), asking)
}

async fn answer(
    work: &Answer,
    case: Box<Prepared>,
    mut handle: Box<Handle>,
) -> Result<Ended, Aborted> {
    let Answer { further, vars, user } = work;
    let talk = talk::Talk { case: &case, further, vars, user: user.as_deref() };
    let mut reply = match talk.hold(&mut handle).await {
        Ok(reply) => reply,
        Err(unanswered) => return failed(case, None, handle, unanswered),
    };
    let call = case.case.execution.as_ref().and_then(|it| it.after_program());
    let executed = handle.note_left(call, reply.left_behind.take().map(|it| *it));
    judge(case, handle, Worked { reply, unfinished: None, executed }).await
}

/// What the work on a case came to.
pub(super) struct Worked {
    /// The last reply.
    pub(super) reply: Reply,
    /// Why the work did not come to its end.
    pub(super) unfinished: Option<String>,
    /// What was executed already of what the case wants.
    pub(super) executed: Option<Result<Executed, String>>,
}

/// Judges the last reply to a case, and asks those about it whom the case names.
///
/// What few cases need is in boxes: without them, the work on every case would have room for all of it.
pub(super) async fn judge(
    case: Box<Prepared>,
    mut handle: Box<Handle>,
    worked: Worked,
) -> Result<Ended, Aborted> {
    let rubrics = case.expectation.inquiries().len();
    let Worked { reply, unfinished, executed } = worked;
    let made = grade::made(&case, &handle, &reply);
    let received = Received {
        reply: Some(&reply),
        made: &made,
        unfinished: unfinished.as_deref(),
        ..Received::default()
    };
    let executed = match executed {
        Some(known) => Some(known),
        // A reply with nothing to execute is judged as it is.
        None => match grade::execution_call(&case, &handle, received) {
            Some(Ok(call)) => Some(Box::pin(handle.execute(call)).await),
            Some(Err(_)) | None => None,
        },
    };
    let effects = match grade::effect_calls(&case, &handle, received) {
        calls if calls.is_empty() => Vec::new(),
        calls => Box::pin(compare_effects(calls, &mut handle)).await,
    };
    let received = Received { executed: executed.as_ref(), effects: &effects, ..received };
    let scored = match case.expectation.scorers().is_empty() {
        true => Ok(Vec::new()),
        false => Box::pin(score(&case, received, &mut handle)).await,
    };
    let scored = match scored {
        Ok(scored) => scored,
        Err(unanswered) => return failed(case, Some(reply), handle, unanswered),
    };
    let received = Received { scored: &scored, ..received };
    let mut classification = grade::classify_reply(&case, &handle, received);
    let mut assessments = Vec::with_capacity(rubrics);
    // A reply that fails without the judge is not worth a call, unless its scores are compared.
    let is_scored = case.expectation.contests().iter().any(|it| !it.asks_judge());
    let is_open = classification.details.reason == Some(Trouble::Unjudged);
    if rubrics > 0 && (is_open || (is_scored && !reply.is_empty())) {
        for at in 0..rubrics {
            match Box::pin(assess(&case, at, received, &mut handle)).await {
                Ok(assessed) => assessments.push(assessed),
                Err(unanswered) => return failed(case, Some(reply), handle, unanswered),
            }
        }
        let received = Received { assessments: &assessments, ..received };
        classification = grade::classify_reply(&case, &handle, received);
    }
    // One that fails may still be the best.
    if !case.expectation.contests().is_empty() && !reply.is_empty() {
        let received = Received { assessments: &assessments, ..received };
        let held = Box::pin(contest::hold(&case, received, &classification, &mut handle)).await;
        let selections = match held {
            Ok(selections) => selections,
            Err(unanswered) => return failed(case, Some(reply), handle, unanswered),
        };
        let received = Received { selections: &selections, ..received };
        classification = grade::classify_reply(&case, &handle, received);
    }
    Ok(finish(case, handle, Some(reply), classification))
}

/// Executes the command of the reply and accepted ones, until one of them has the same effect.
async fn compare_effects(
    calls: Vec<EffectCall>,
    handle: &mut Handle,
) -> Vec<Result<EffectFound, String>> {
    let mut effects = Vec::new();
    for (number, call) in calls.into_iter().enumerate() {
        let found = handle.compare_effects(number, call).await;
        let is_settled = found.as_ref().is_ok_and(|it| it.verdict == EffectVerdict::SameEffect);
        effects.push(found);
        if is_settled {
            break;
        }
    }
    effects
}

/// Asks the scorers of a case, one after the other.
async fn score(
    case: &Prepared,
    received: Received<'_>,
    handle: &mut Handle,
) -> Result<Vec<Result<Value, String>>, Unanswered> {
    let calls = case.expectation.scorers();
    let inputs = grade::scorer_inputs(case, handle, received);
    let mut scored = Vec::with_capacity(calls.len());
    for (number, (call, input)) in calls.iter().zip(inputs).enumerate() {
        scored.push(match input {
            Ok(input) => handle.score(number, call, &input).await?,
            Err(why) => Err(why),
        });
    }
    Ok(scored)
}
