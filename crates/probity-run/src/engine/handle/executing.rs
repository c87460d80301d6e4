//! How a case has commands executed. No permit of a backend is held meanwhile.

use std::time::Duration;

use probity_core::{
    execution::{
        EXECUTION_ROLE, EffectCall, EffectFound, Executed, ExecutionCall, LEFT_ROLE, effect_role,
    },
    record::{Asked, Source, Usage},
    request::Request,
};
use tokio::time::Instant;

use super::{Handle, Message};
use crate::{grade::millis, sandbox::Visit};

/// Who is asked, as it is recorded.
const SANDBOX: &str = "sandbox";
/// What is asked of a world in which nothing more is executed.
const LOOK: &str = "what is different now?";
/// Why there is no world to judge.
const NO_WORLD: &str = "the backend left no world behind: it is no program in the sandbox";

impl Handle {
    /// Executes what is in the reply, and records what came of it; an error says why nothing was executed.
    pub(crate) async fn execute(&mut self, call: ExecutionCall) -> Result<Executed, String> {
        self.give_up_permit();
        let (began, command) = (Instant::now(), call.command.clone());
        let executed = match self.carry_execution(&call).await {
            Some(executed) => executed,
            None => self.shared.sandbox.execute(call, self.deadline).await,
        };
        let stored = executed.as_ref().map(Executed::to_json);
        self.note_executed(EXECUTION_ROLE.to_owned(), command, stored, began.elapsed());
        executed
    }

    /// Why nothing can be executed on this machine; nothing if something can be.
    pub(crate) async fn check_sandbox(&mut self) -> Result<(), String> {
        self.shared.sandbox.check(self.deadline).await
    }

    /// Enters the world of the case for several commands.
    pub(crate) async fn visit(&mut self, call: &ExecutionCall) -> Result<Visit, String> {
        self.give_up_permit();
        self.shared.sandbox.visit(call.clone()).await
    }

    /// Executes what the case asks for in a world that was worked in, and records what came of it.
    pub(crate) async fn execute_after(
        &mut self,
        visit: &Visit,
        call: ExecutionCall,
    ) -> Result<Executed, String> {
        let (began, command) = (Instant::now(), call.command.clone());
        let executed = visit.judge(call).await;
        let stored = executed.as_ref().map(Executed::to_json);
        self.note_executed(EXECUTION_ROLE.to_owned(), command, stored, began.elapsed());
        executed
    }

    /// Records what a program left behind in its world. It is what the case asks for if there is a `call`.
    pub(crate) fn note_left(
        &mut self,
        call: Option<ExecutionCall>,
        left: Option<Result<Executed, String>>,
    ) -> Option<Result<Executed, String>> {
        if call.is_none() && left.is_none() {
            return None;
        }
        let left = left.unwrap_or_else(|| Err(NO_WORLD.to_owned()));
        let stored = left.as_ref().map(Executed::to_json);
        match call {
            Some(call) => {
                let worlds = left.as_ref().map_or(&[][..], |it| &it.worlds);
                let took = Duration::from_millis(worlds.iter().map(|it| it.took_ms).sum());
                self.note_executed(EXECUTION_ROLE.to_owned(), call.command, stored, took);
                Some(left)
            }
            None => {
                self.note_executed(LEFT_ROLE.to_owned(), LOOK.to_owned(), stored, Duration::ZERO);
                None
            }
        }
    }

    /// Executes the command of the reply and an accepted one, and records what that shows.
    pub(crate) async fn compare_effects(
        &mut self,
        number: usize,
        call: EffectCall,
    ) -> Result<EffectFound, String> {
        self.give_up_permit();
        let began = Instant::now();
        let shown = format!("{}\n{}", call.command, call.against);
        let found = match self.carry_comparison(&call).await {
            Some(found) => found,
            None => {
                let EffectCall { command, against } = call;
                self.shared.sandbox.effect(command, against, self.deadline).await
            }
        };
        let stored = found.as_ref().map(EffectFound::to_json);
        self.note_executed(effect_role(number), shown, stored, began.elapsed());
        found
    }

    /// Hands back the permit for a call that was not made, if there is one.
    fn give_up_permit(&mut self) {
        if std::mem::take(&mut self.permit) {
            // A loop that is gone has given this task up.
            let _ = self.shared.to_loop.send(Message::Idles { serial: self.serial });
        }
    }

    fn note_executed(
        &mut self,
        role: String,
        command: String,
        stored: Result<String, &String>,
        took: Duration,
    ) {
        self.asked.push(Asked {
            role,
            turn: None,
            backend: SANDBOX.to_owned(),
            request: Request::new(None, command),
            reply: stored.as_ref().ok().cloned(),
            tool_calls: Vec::new(),
            reasoning: None,
            stop_reason: None,
            logprobs: None,
            error: stored.err().cloned(),
            model: None,
            source: Source::Backend,
            latency_ms: millis(took),
            usage: Usage::default(),
            cost_usd: None,
            calls: 0,
        });
    }
}
