//! How a case has its calls made by workers.

use std::{sync::Arc, time::Duration};

use probity_core::{
    event::CaseKey,
    execution::{EffectCall, EffectFound, Executed, ExecutionCall},
    failure::ErrorKind,
    record::{CallError, FailedAttempt, InputDigest},
};
use probity_grade::internal::script::{ScorerCall, ScorerInput};
use serde_json::Value;
use tokio::time::Instant;

use super::{BackendRef, Handle, Message};
use crate::{
    backend::{Ask, Failed, Reply},
    carrier::{
        Answered, Call, CallId, CallResult, Carried, Carrier, Execution, Lost, Order, Program,
        Question, Scoring, Who,
    },
    grade::millis,
};

/// What calls of a case are named after.
#[derive(Debug)]
pub(super) struct CaseName {
    key: CaseKey,
    lane: Arc<str>,
    /// Calls that have been made.
    calls: u32,
}

impl CaseName {
    pub(super) fn new(key: CaseKey, lane: Arc<str>) -> Self {
        Self { key, lane, calls: 0 }
    }

    /// The name of the next call: the same whenever the run comes to it with the same answers before. No two calls of a
    /// session have the same, also not two tries of the same question.
    fn next(&mut self, run: &str, what: &[u8]) -> CallId {
        self.calls += 1;
        let (repeat, calls) = (self.key.repeat.to_le_bytes(), self.calls.to_le_bytes());
        let case = self.key.case_id.as_bytes();
        let parts = [run.as_bytes(), self.lane.as_bytes(), case, &repeat, &calls, what];
        CallId(InputDigest::of(parts))
    }
}

/// How a call was made.
#[derive(Debug, Default)]
pub(super) struct Made {
    pub(super) worker: Option<String>,
    /// How long the call took, where a worker made it.
    pub(super) took: Option<Duration>,
    /// Whether an earlier session of the run made it.
    pub(super) taken_over: bool,
    /// How many workers were lost with it before.
    pub(super) lost: u64,
}

impl Handle {
    /// Who carries calls of a backend to workers; none if they are made here.
    pub(super) fn carrier(&self, party: &BackendRef) -> Option<Arc<dyn Carrier>> {
        // It says what was recorded, and asks nobody.
        if party.backend.is_replay() {
            return None;
        }
        self.shared.executor.carrier(Who::Backend(party.at)).cloned()
    }

    /// Gives the time back to the case for which workers could not be reached; false if there is none.
    pub(super) fn forgive_pause(&mut self) -> bool {
        let paused = self.shared.executor.paused();
        let more = paused.saturating_sub(self.paused);
        self.paused = paused;
        self.began += more;
        self.deadline += more;
        !more.is_zero()
    }

    /// Has a worker ask.
    pub(super) async fn carry(
        &mut self,
        carrier: &Arc<dyn Carrier>,
        party: &BackendRef,
        ask: &Ask<'_>,
        limit: Duration,
    ) -> (Result<Reply, Failed>, Made) {
        let key = party.backend.cache_key(ask).0;
        let what = InputDigest::of([party.backend.name.as_bytes(), &key]).0;
        let call = Call::Ask(Box::new(Question::of(&party.backend, ask)));
        let (result, made) =
            self.hand_over(carrier, Who::Backend(party.at), &what, call, limit).await;
        let result = match result {
            Ok(CallResult::Answered(answered)) => {
                let Answered { reply, exhausted_for, sessions } = *answered;
                if let Some(about) = ask.about.filter(|_| !sessions.is_empty()) {
                    about.set_sessions(sessions);
                }
                Ok(Reply { exhausted_for, ..reply })
            }
            Ok(CallResult::Failed(failed)) => Err(*failed),
            Ok(_) => Err(undone("a worker answered something else than it was asked")),
            Err(why) => Err(undone(&why)),
        };
        (result, made)
    }

    /// Has a worker score, where one does; none where that is done here.
    pub(super) async fn carry_score(
        &mut self,
        call: &ScorerCall,
        input: &ScorerInput,
    ) -> Option<Result<Value, String>> {
        let carrier = self.shared.executor.carrier(Who::Scorers)?.clone();
        let ScorerInput { output, context, question } = input.clone();
        let scoring = Scoring { scorer: Program::of(&call.scorer)?, output, context, question };
        let call = Call::Score(Box::new(scoring));
        let result = self.carry_beside(&carrier, Who::Scorers, call).await;
        let scored = result.and_then(|result| {
            if let CallResult::Scored(value) = result { Ok(value) } else { Err(not_done(result)) }
        });
        Some(scored)
    }

    /// Has a worker execute what is in the reply, where one does.
    pub(super) async fn carry_execution(
        &mut self,
        call: &ExecutionCall,
    ) -> Option<Result<Executed, String>> {
        let carrier = self.shared.executor.carrier(Who::Sandbox)?.clone();
        let call = Call::Execute(Box::new(Execution::of(call)));
        let result = self.carry_beside(&carrier, Who::Sandbox, call).await;
        let executed = result.and_then(|result| {
            if let CallResult::Executed(executed) = result {
                Ok(*executed)
            } else {
                Err(not_done(result))
            }
        });
        Some(executed)
    }

    /// Has a worker compare two commands, where one does.
    pub(super) async fn carry_comparison(
        &mut self,
        call: &EffectCall,
    ) -> Option<Result<EffectFound, String>> {
        let carrier = self.shared.executor.carrier(Who::Sandbox)?.clone();
        let call = Call::Compare(call.clone());
        let result = self.carry_beside(&carrier, Who::Sandbox, call).await;
        let found = result.and_then(|result| {
            if let CallResult::Compared(found) = result {
                Ok(*found)
            } else {
                Err(not_done(result))
            }
        });
        Some(found)
    }

    /// Hands over a call that asks no backend. It may take what is left for the case.
    async fn carry_beside(
        &mut self,
        carrier: &Arc<dyn Carrier>,
        who: Who,
        call: Call,
    ) -> Result<CallResult, String> {
        let what = serde_json::to_vec(&call).unwrap_or_default();
        let limit = self.time_left();
        self.hand_over(carrier, who, &what, call, limit).await.0
    }

    /// Hands a call over, and waits for what comes of it. Only the time of the call itself is the case's: not that of its
    /// way, nor of a wait for somebody to make it.
    async fn hand_over(
        &mut self,
        carrier: &Arc<dyn Carrier>,
        who: Who,
        what: &[u8],
        call: Call,
        limit: Duration,
    ) -> (Result<CallResult, String>, Made) {
        let id = self.name.next(&self.shared.run_id, what);
        let (since, case) = (Instant::now(), self.name.key.clone());
        let Carried { worker, took, taken_over, lost, result } =
            carrier.carry(Order { id, case, who, limit, call }).await;
        let waited = since.elapsed().saturating_sub(took);
        self.began += waited;
        self.deadline += waited;
        // It is among what was waited.
        self.paused = self.shared.executor.paused();
        lost.iter().for_each(|it| self.note_lost(it, who));
        let made = Made { worker, took: Some(took), taken_over, lost: lost.len() as u64 };
        (result, made)
    }

    /// Records that a worker was lost with a call that another one made. It may have made it as well.
    fn note_lost(&mut self, lost: &Lost, who: Who) {
        // Scorers and executions are no calls of a backend.
        self.spent.calls += u32::from(matches!(who, Who::Backend(_)));
        let failure = FailedAttempt {
            attempt: self.spent.calls,
            error: CallError::new(ErrorKind::Crash, lost.message()),
            latency_ms: millis(lost.held),
            retry_in_ms: Some(0),
            worker: lost.worker.clone(),
        };
        self.spent.failures.push(failure.clone());
        // A loop that is gone has given this task up.
        let _ = self.shared.to_loop.send(Message::Lost { serial: self.serial, failure });
    }
}

/// A call that nobody could make. Trying again would have the same end.
fn undone(why: &str) -> Failed {
    let error = CallError { permanent: true, ..CallError::new(ErrorKind::Crash, why) };
    error.into()
}

fn not_done(result: CallResult) -> String {
    match result {
        CallResult::NotDone(why) => why,
        CallResult::Failed(failed) => failed.error.message,
        CallResult::Answered(_)
        | CallResult::Scored(_)
        | CallResult::Executed(_)
        | CallResult::Compared(_) => {
            "a worker answered something else than it was asked".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_call_has_the_same_name_and_no_other_has() {
        let name = |lane: &str, case: &str, repeat| {
            let key = CaseKey { lane: 0, case_id: case.to_owned(), repeat };
            CaseName::new(key, lane.into())
        };
        let mut first = name("r × b", "a", 0);
        let ids: Vec<CallId> = [&b"x"[..], b"x", b"y"].map(|it| first.next("run", it)).into();
        let mut again = name("r × b", "a", 0);
        assert_eq!([again.next("run", b"x"), again.next("run", b"x")], ids[..2]);
        let mut all = ids;
        all.push(name("r × c", "a", 0).next("run", b"x"));
        all.push(name("r × b", "b", 0).next("run", b"x"));
        all.push(name("r × b", "a", 1).next("run", b"x"));
        all.push(name("r × b", "a", 0).next("other", b"x"));
        all.push(name("r × b", "a", 0).next("run", b"z"));
        let count = all.len();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
