//! The work on one case, in a task of its own.

use std::{sync::Arc, time::Duration};

use probity_core::{
    classification::Classification,
    failure::ErrorKind,
    kind::Evidence,
    record::{Aborted, CacheKind, CallError, CaseRecord, FailedAttempt, Usage},
};
use probity_grade::internal::judge::{Interview, Next};
use probity_load::settings::Settings;
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

use super::{
    groups::{Duty, Entries},
    handle::{Handle, Query, Target, Unanswered, Vectors},
};
use crate::{
    backend::{Answers, CacheAccess, Reply},
    carrier::Executor,
    grade::{self, Received},
    interview::Hearing,
    sandbox,
    scorer::Scorers,
    source::Prepared,
};

/// What a task tells the loop.
#[derive(Debug)]
pub(super) enum Message {
    /// It wants to make a call of a backend.
    Wants { serial: u64, backend: usize, deadline: Instant, grant: oneshot::Sender<Grant> },
    /// It makes no call for a while, and has no use for the permit that it has.
    Idles { serial: u64 },
    /// It has an answer and waits for those of other lanes.
    Meets { serial: u64, entries: Entries, duty: oneshot::Sender<Duty> },
    /// A call came back.
    Called(Box<Called>),
    /// A worker was lost with a call, which another one made.
    Lost { serial: u64, failure: FailedAttempt },
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
    /// It was not made, for want of file descriptors, and is tried again.
    NoFiles,
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
pub(crate) struct Ended {
    pub(crate) record: Box<CaseRecord>,
    /// The backend whose error it ended in, by its place in the plan.
    pub(super) at_fault: Option<usize>,
    /// How its lane ends with it, if it does.
    pub(crate) ends_lane: Option<probity_core::record::LaneStatus>,
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
    /// Where commands are executed.
    pub(super) sandbox: sandbox::Shared,
    /// Embeddings of expected texts.
    pub(super) vectors: Vectors,
    pub(super) run_id: Arc<str>,
    /// Where calls are carried out.
    pub(super) executor: Executor,
    /// Not bounded: each task waits for the answer to its message, or sends its last.
    pub(super) to_loop: mpsc::UnboundedSender<Message>,
}

/// Which judge is asked, and for what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JudgeCall<'a> {
    /// Its place among the judges.
    pub(crate) judge: usize,
    pub(crate) role: &'a str,
    pub(crate) repeat: u32,
    /// How often it was asked the same before.
    pub(crate) again: u32,
    /// Whether the form of the answer is sent along; none: where that is known to work.
    pub(crate) structured: Option<bool>,
}

/// Asks a judge until its answer can be read, but not for ever. With the answer comes how often
/// it was asked.
pub(crate) async fn ask_judge<I: Interview>(
    interview: &I,
    call: JudgeCall<'_>,
    handle: &mut Handle,
) -> Result<Result<(I::Answer, u32), String>, Unanswered> {
    let JudgeCall { judge, role, repeat, again, structured } = call;
    let target = Target::Judge(judge);
    let backend = handle.party(target).backend.clone();
    // An answer to the same question again is worth something only if it may be another one.
    let seed = (again > 0).then(|| handle.seed().wrapping_add(again.into()));
    let mut hearing = Hearing::new(interview, backend, structured, seed);
    loop {
        let request = hearing.request();
        let query = Query {
            target,
            role,
            turn: None,
            kept: CacheKind::Judgement,
            request: &request,
            repeat,
        };
        let reply = match handle.query(query).await {
            Ok(reply) => reply,
            // A judge that declines says nothing about the answer, nor about other answers.
            Err(Unanswered::Failed { error, .. }) if error.kind == ErrorKind::ContentFilter => {
                return Ok(Err(format!("the judge declined: {}", error.message)));
            }
            Err(Unanswered::Failed { error, .. }) if hearing.goes_on_after(&error) => continue,
            Err(unanswered) => return Err(unanswered),
        };
        match hearing.hear(&reply.answer()) {
            Next::Done(answer) => {
                handle.keep(&query, &reply);
                return Ok(Ok((answer, hearing.attempts())));
            }
            Next::Again => {}
            Next::GiveUp(why) => return Ok(Err(why)),
        }
    }
}

/// A case that ends because a backend failed, or because nobody wants it any more.
pub(crate) fn failed(
    case: Box<Prepared>,
    reply: Option<Reply>,
    handle: Box<Handle>,
    unanswered: Unanswered,
) -> Result<Ended, Aborted> {
    failed_with(case, reply, None, handle, unanswered)
}

/// The same, with what is known of the case all the same.
pub(crate) fn failed_with(
    case: Box<Prepared>,
    reply: Option<Reply>,
    evidence: Option<Evidence>,
    handle: Box<Handle>,
    unanswered: Unanswered,
) -> Result<Ended, Aborted> {
    let (error, backend) = match unanswered {
        Unanswered::Failed { error, backend } => (error, backend),
        Unanswered::Aborted(reason) => return Err(reason),
    };
    let received = Received { reply: reply.as_ref(), error: Some(&error), ..Received::default() };
    let mut classification = grade::classify_reply(&case, &handle, received);
    if let Some(evidence) = evidence {
        classification = classification.with_evidence(evidence);
    }
    let ended = finish_with(case, handle, reply, Some(error), classification);
    Ok(Ended { at_fault: Some(backend), ..ended })
}

pub(crate) fn finish(
    case: Box<Prepared>,
    handle: Box<Handle>,
    reply: Option<Reply>,
    classification: Classification,
) -> Ended {
    finish_with(case, handle, reply, None, classification)
}

fn finish_with(
    case: Box<Prepared>,
    handle: Box<Handle>,
    reply: Option<Reply>,
    error: Option<CallError>,
    classification: Classification,
) -> Ended {
    let mut account = handle.finish();
    // The one question of a case stands in its record, unless there is more to its answer.
    if let [only] = account.asked.as_slice()
        && only.request == case.request
        && (only.error.is_none() || only.turn.is_some())
        && only.tool_calls.is_empty()
        && only.logprobs.is_none()
    {
        account.asked.clear();
    }
    let record = Box::new(grade::record(case, reply, error, classification, account));
    Ended { record, at_fault: None, ends_lane: None }
}
