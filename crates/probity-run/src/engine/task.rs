//! The work on one case, in a task of its own.

mod compare;
mod route;

use std::{sync::Arc, time::Duration};

use probity_core::{
    classification::{Classification, Verdict},
    details::Trouble,
    evidence::Evidence,
    failure::ErrorKind,
    record::{Aborted, CallError, CaseRecord, FailedAttempt, Kept, Usage},
    request::Request,
    run_result::Assessment,
};
use probity_grade::{again::rubric_role, judge};
use probity_load::settings::Settings;
use serde_json::Value;
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

use super::handle::{Handle, Query, Target, Unanswered};
use crate::{
    backend::{Answers, CacheAccess, Reply},
    foreign,
    grade::{self, Heard},
    scorer::Scorers,
    source::Prepared,
    work::Work,
};

/// What a task tells the loop.
#[derive(Debug)]
pub(super) enum Message {
    /// It wants to make a call of a backend.
    Wants { serial: u64, backend: usize, deadline: Instant, grant: oneshot::Sender<Grant> },
    /// A call came back.
    Called(Box<Called>),
}

/// The loop's answer to a task that wants to make a call.
#[derive(Debug)]
pub(super) enum Grant {
    Go,
    /// Nothing is left to spend.
    NoBudget,
    /// The backend is paused for longer than the case may take.
    Paused(Duration),
}

/// A call that came back.
#[derive(Debug)]
pub(super) struct Called {
    pub(super) serial: u64,
    pub(super) backend: usize,
    pub(super) began: Instant,
    /// How many calls it stands for.
    pub(super) calls: u64,
    pub(super) usage: Usage,
    pub(super) cost_usd: Option<f64>,
    pub(super) outcome: CallOutcome,
}

/// What a call came to.
#[derive(Debug)]
pub(super) enum CallOutcome {
    Answered {
        /// How long the backend says it has nothing left.
        exhausted_for: Option<Duration>,
    },
    Failed(FailedAttempt),
    /// Nobody waited for it.
    Abandoned,
}

/// How a task ended.
#[derive(Debug)]
pub(super) struct TaskEnd {
    pub(super) serial: u64,
    pub(super) result: Result<Ended, Aborted>,
}

/// A case that came to its end.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) record: Box<CaseRecord>,
    /// The backend whose error it ended in, by its place in the plan.
    pub(super) at_fault: Option<usize>,
    /// How its lane ends with it, if it does.
    pub(super) ends_lane: Option<probity_core::record::LaneStatus>,
}

/// What all tasks share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) settings: Settings,
    /// Answers of earlier calls that may be used.
    pub(super) cache: Option<Arc<dyn Answers>>,
    /// Which of them are, and which are kept.
    pub(super) access: CacheAccess,
    /// Programs that score replies.
    pub(super) scorers: Scorers,
    /// Not bounded: each task waits for the answer to its message, or sends its last.
    pub(super) to_loop: mpsc::UnboundedSender<Message>,
}

/// From a case to its record: what a kind of runner is.
pub(super) async fn run_case(mut case: Prepared, handle: Handle) -> Result<Ended, Aborted> {
    match std::mem::replace(&mut case.work, Work::Answer) {
        Work::Answer => one_answer(case, handle).await,
        Work::Route { skills } => route::run(case, &skills, handle).await,
        Work::Compare(work) => compare::run(case, *work, handle).await,
        Work::Program(program) => Ok(foreign_runner(case, &program, handle).await),
    }
}

/// One question, one answer; scorers and a judge are asked about it where the case wants them.
async fn one_answer(case: Prepared, mut handle: Handle) -> Result<Ended, Aborted> {
    let rubrics = case.expectation.rubrics().len();
    let judged = rubrics > 0 || !case.expectation.scorers().is_empty();
    let query = Query {
        target: Target::Subject,
        role: "answer",
        kept: Kept::Answer,
        request: &case.request,
        repeat: case.repeat,
    };
    let answer = match judged {
        true => handle.query(query).await,
        false => handle.ask(&query).await,
    };
    let reply = match answer {
        Ok(reply) => reply,
        Err(unanswered) => return failed(case, None, handle, unanswered),
    };
    let scored = score(&case, &reply, &mut handle).await;
    let heard = Heard { reply: Some(&reply), scored: &scored, ..Heard::default() };
    let classification =
        grade::classify_reply(&case, &handle.subject.backend, handle.spent(), heard);
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
    let heard = Heard {
        reply: Some(&reply),
        assessments: &assessments,
        scored: &scored,
        ..Heard::default()
    };
    let classification =
        grade::classify_reply(&case, &handle.subject.backend, handle.spent(), heard);
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

/// Asks the judge about one rubric of a case.
async fn assess(
    case: &Prepared,
    at: usize,
    reply: &Reply,
    handle: &mut Handle,
) -> Result<Result<Assessment, String>, Unanswered> {
    let criteria = &case.expectation.rubrics()[at];
    let answer = reply.answer();
    let answers = [&*answer];
    let task = case.request.prompt();
    let question = judge::Question { task, criteria, answers: &answers };
    let judged = ask_judge(&question, &rubric_role(at), case.repeat, handle).await?;
    Ok(judged.map(|(judgement, _)| judge::assessment(criteria, judgement)))
}

/// Asks the judge until its answer can be read, but not for ever. With the answer comes how often
/// it was asked.
async fn ask_judge(
    question: &judge::Question<'_>,
    role: &str,
    repeat: u32,
    handle: &mut Handle,
) -> Result<Result<(judge::Judgement, u32), String>, Unanswered> {
    let system: Arc<str> = question.system().into();
    let mut dialogue = judge::Dialogue::new(*question, handle.seed());
    loop {
        let request = Request::new(Some(system.clone()), dialogue.prompt());
        let query =
            Query { target: Target::Judge, role, kept: Kept::Judgement, request: &request, repeat };
        let reply = match handle.query(query).await {
            Ok(reply) => reply,
            // A judge that declines says nothing about the answer, nor about other answers.
            Err(Unanswered::Failed { error, .. }) if error.kind == ErrorKind::ContentFilter => {
                return Ok(Err(format!("the judge declined: {}", error.message)));
            }
            Err(unanswered) => return Err(unanswered),
        };
        match dialogue.hear(&reply.answer()) {
            judge::Next::Done(judgement) => {
                handle.keep(&query, &reply);
                return Ok(Ok((judgement, dialogue.attempts())));
            }
            judge::Next::Again => {}
            judge::Next::GiveUp(why) => return Ok(Err(why)),
        }
    }
}

/// A case that ends because a backend failed, or because nobody wants it any more.
fn failed(
    case: Prepared,
    reply: Option<Reply>,
    handle: Handle,
    unanswered: Unanswered,
) -> Result<Ended, Aborted> {
    failed_with(case, reply, None, handle, unanswered)
}

/// The same, with what is known of the case all the same.
fn failed_with(
    case: Prepared,
    reply: Option<Reply>,
    evidence: Option<Evidence>,
    handle: Handle,
    unanswered: Unanswered,
) -> Result<Ended, Aborted> {
    let (error, backend) = match unanswered {
        Unanswered::Failed { error, backend } => (error, backend),
        Unanswered::Aborted(reason) => return Err(reason),
    };
    let heard = Heard { reply: reply.as_ref(), error: Some(&error), ..Heard::default() };
    let mut classification =
        grade::classify_reply(&case, &handle.subject.backend, handle.spent(), heard);
    if let Some(evidence) = evidence {
        classification.details.evidence = Some(Box::new(evidence));
    }
    let ended = finish_with(case, handle, reply, Some(error), classification);
    Ok(Ended { at_fault: Some(backend), ..ended })
}

fn finish(
    case: Prepared,
    handle: Handle,
    reply: Option<Reply>,
    classification: Classification,
) -> Ended {
    finish_with(case, handle, reply, None, classification)
}

fn finish_with(
    case: Prepared,
    handle: Handle,
    reply: Option<Reply>,
    error: Option<CallError>,
    classification: Classification,
) -> Ended {
    let mut account = handle.finish();
    // The one question of a case stands in its record.
    if let [only] = account.asked.as_slice()
        && only.request == case.request
        && only.error.is_none()
    {
        account.asked.clear();
    }
    let record = Box::new(grade::record(case, reply, error, classification, account));
    Ended { record, at_fault: None, ends_lane: None }
}

/// Lets a program run cases of its own.
async fn foreign_runner(case: Prepared, program: &foreign::Program, mut handle: Handle) -> Ended {
    let began = Instant::now();
    let ran = program.run(&handle.subject.backend).await;
    handle.report_foreign(ran.evidence.calls, ran.evidence.cost_usd, began.elapsed());
    let foreign::Ran { evidence: _, status, classification, output } = ran;
    let reply = Reply { text: output, ..Reply::default() };
    let mut ended = finish(case, handle, Some(reply), classification);
    let passed = ended.record.verdict == Verdict::Pass;
    ended.ends_lane = status.filter(|_| !passed);
    ended
}
