//! A model with tools works on a task in a world of its own.

mod work;

use std::{sync::Arc, time::Duration};

use probity_core::{
    agent::{AgentSpec, Protocol},
    case::TestCase,
    classification::{Classification, Rule},
    criteria::CriteriaProblem,
    details::{Criterion, Details, Trouble},
    evidence::JudgedBy,
    execution::{ExecutionCall, ExecutionCriteria, WorldRef},
    kind::{AgentEnd, AgentWork, Evidence, KindSpec, RunnerKind},
    located::Step,
    record::{Aborted, CacheKind, InputDigest, Usage},
    request::{Message, Part, Request, Role, ToolCall, ToolResult},
};
use probity_grade::{
    Expectation,
    internal::agent::{Action, Said, instructions, read},
};
use probity_load::suite::{AgentConfig, RunnerConfig};

use self::work::World;
use super::{
    Asking, Calls, Kind, Questions, Running, Work, respond,
    respond::{
        Worked,
        talk::{message_of, with_ids},
    },
};
use crate::{
    backend::Reply,
    engine::{Ended, Handle, Query, Target, Unanswered, failed_with, finish},
    sandbox::world_of,
    source::Prepared,
};

/// Makes a runner ready.
pub(super) fn open(runner: &RunnerConfig) -> Option<Arc<dyn Kind>> {
    // A suite that is read has one for each runner of this kind.
    let AgentConfig { spec, world } = runner.agent.clone()?;
    Some(Arc::new(Agent { spec, world }))
}

#[derive(Debug)]
struct Agent {
    spec: AgentSpec,
    /// The world of cases that name none.
    world: WorldRef,
}

impl Agent {
    /// Where a case is worked on, and what is executed there in the end.
    fn call(&self, case: &TestCase) -> ExecutionCall {
        match &case.execution {
            Some(execution) => execution.after_work(&self.world),
            None => ExecutionCriteria::default().after_work(&self.world),
        }
    }
}

impl Kind for Agent {
    fn spec(&self) -> &'static KindSpec {
        RunnerKind::Agent.spec()
    }

    fn check(&self, case: &TestCase) -> Vec<CriteriaProblem> {
        let talk = &case.conversation;
        let own_tools = case.ask.tools.as_ref().is_some_and(|it| *it != self.spec.definitions());
        let beyond = [
            ("tools", own_tools),
            ("tool_choice", case.ask.tool_choice.is_some()),
            ("response_format", case.ask.response_format.is_some()),
            ("tool_results", talk.tool_results.is_some()),
            ("turns", !talk.turns.is_empty()),
            ("user", talk.user.is_some()),
        ];
        let problem = |path: &[&'static str], message: String| CriteriaProblem {
            path: path.iter().copied().map(Step::Key).collect(),
            code: "bad-case",
            message,
            help: None,
        };
        let beyond = beyond.into_iter().filter(|it| it.1).map(|(key, _)| {
            let message =
                format!("an agent has the tools of its runner and one task, and no `{key}`");
            problem(&[key], message)
        });
        let execution = case.execution.as_deref();
        let worlds = execution
            .filter(|it| it.worlds.len() > 1)
            .map(|_| problem(&["execution", "worlds"], "an agent works in one world".to_owned()));
        let file = execution.filter(|it| it.file.is_some()).map(|_| {
            let message = "an agent writes its files itself: there is no `file` for its reply";
            problem(&["execution", "file"], message.to_owned())
        });
        let left = execution.filter(|it| it.left_behind).map(|_| {
            let message = "the world that an agent leaves behind is judged without `left_behind`";
            problem(&["execution", "left_behind"], message.to_owned())
        });
        beyond.chain(worlds).chain(file).chain(left).collect()
    }

    fn calls(&self, case: &TestCase) -> Calls {
        Calls { steps: u64::from(self.spec.max_steps - 1), ..respond::calls(case) }
    }

    fn complete(&self, case: &TestCase, filled: Request) -> Request {
        let call = self.call(case);
        // Worlds that cannot be read were refused with the suite or the case.
        let world = call.worlds.first().and_then(|it| world_of(it).ok());
        let directory = world.map_or_else(|| "/".to_owned(), |it| it.directory);
        let system = instructions(&self.spec, &directory, filled.system());
        let system = Message::text(Role::System, system);
        let said = filled.conversation().iter().cloned();
        let messages = std::iter::once(system).chain(said).collect();
        match self.spec.protocol {
            Protocol::Native => Request { messages, ..filled },
            Protocol::Text => Request { messages, tools: Arc::default(), ..filled },
        }
    }

    fn expect<'r>(&self, _case: &TestCase, stated: Expectation<'r>) -> Expectation<'r> {
        stated.after_work(self.world.clone())
    }

    fn questions(
        &self,
        case: &TestCase,
        filled: Request,
        _judge: Option<&JudgedBy>,
    ) -> Option<Questions> {
        let task = Task { spec: self.spec.clone(), call: self.call(case) };
        Some(Questions { request: filled, work: Arc::new(task) })
    }
}

/// A task of an agent.
#[derive(Debug)]
struct Task {
    spec: AgentSpec,
    /// Where it is worked on, and what is executed there in the end.
    call: ExecutionCall,
}

impl Work for Task {
    fn input(&self, asking: &Asking<'_>) -> InputDigest {
        let plain = respond::input_of(asking);
        let own = serde_json::to_vec(&(&self.spec, &self.call.worlds)).unwrap_or_default();
        InputDigest::of([&plain.0[..], b"agent", &own])
    }

    fn run(self: Arc<Self>, case: Box<Prepared>, handle: Box<Handle>) -> Running {
        Box::pin(async move { work(&self, case, handle).await })
    }
}

/// Why an agent's work cannot be judged.
enum Stuck {
    Unanswered(Unanswered),
    /// Why nothing can be executed here.
    Unexecuted(String),
    /// What went wrong with its world.
    World(String),
}

impl From<Unanswered> for Stuck {
    fn from(unanswered: Unanswered) -> Self {
        Self::Unanswered(unanswered)
    }
}

async fn work(task: &Task, case: Box<Prepared>, mut handle: Box<Handle>) -> Result<Ended, Aborted> {
    // A machine without a sandbox is found out before anybody is asked.
    let sandbox = handle.check_sandbox().await;
    let mut labour = Labour::new(task, &case);
    let worked = match sandbox {
        Ok(()) => labour.work(&mut handle).await,
        Err(why) => Err(Stuck::Unexecuted(why)),
    };
    let Labour { mut world, mut done, .. } = labour;
    if worked.is_err() {
        done.ended = AgentEnd::Broken;
    }
    let evidence = Evidence::Agent(done.clone());
    let worked = match worked {
        Ok(reply) if case.case.execution.is_some() => {
            let executed = world.judge(&mut handle).await;
            Ok((reply, Some(executed)))
        }
        Ok(reply) => Ok((reply, None)),
        Err(stuck) => Err(stuck),
    };
    // Nobody needs it any more, and judges may take their time.
    drop(world);
    match worked {
        Ok((reply, executed)) => {
            handle.sum_latencies();
            let worked = Worked { reply, unfinished: done.unfinished(), executed };
            let mut ended = respond::judge(case, handle, worked).await?;
            ended.record.classification.details.evidence = Some(Box::new(evidence));
            Ok(ended)
        }
        Err(Stuck::Unanswered(unanswered)) => {
            failed_with(case, None, Some(evidence), handle, unanswered)
        }
        Err(Stuck::Unexecuted(why)) => {
            let classification = undecided(why).with_evidence(evidence);
            Ok(finish(case, handle, None, classification))
        }
        Err(Stuck::World(why)) => {
            let details = Details {
                reason: Some(Trouble::Unjudged),
                error_details: Some(format!("the world of the agent failed: {why}")),
                ..Details::default()
            };
            let classification = Classification::new(Rule::Error, details);
            Ok(finish(case, handle, None, classification.with_evidence(evidence)))
        }
    }
}

/// Nothing is executed without protection, so nothing can be said of the case.
fn undecided(why: String) -> Classification {
    let details =
        Details { criteria: Some(Criterion::None), unexecuted: Some(why), ..Details::default() };
    Classification::new(Rule::Pass, details)
}

/// The work of an agent on a case.
struct Labour<'a> {
    spec: &'a AgentSpec,
    case: &'a Prepared,
    world: World,
    done: AgentWork,
}

impl<'a> Labour<'a> {
    fn new(task: &'a Task, case: &'a Prepared) -> Self {
        let done = AgentWork {
            world: task.call.worlds.first().map_or_else(String::new, |it| it.name().to_owned()),
            ended: AgentEnd::Answered,
            steps: 0,
            calls: 0,
            failed_calls: 0,
            malformed: 0,
            commands_ms: 0,
        };
        Self { spec: &task.spec, case, world: World::new(task.call.clone()), done }
    }

    /// Asks the model and does what it says, until it is done or may do no more. Returns its last reply.
    async fn work(&mut self, handle: &mut Handle) -> Result<Reply, Stuck> {
        let mut request = self.case.request.clone();
        loop {
            let reply = self.ask(&request, handle).await?;
            let said = match self.spec.protocol {
                Protocol::Native if reply.tool_calls.is_empty() => return Ok(reply),
                Protocol::Native => Said::Acts(reply.tool_calls.clone()),
                Protocol::Text => read(&reply.text, &self.spec.tools),
            };
            let (calls, wrong) = match said {
                Said::Answers(text) => return Ok(Reply { text, ..reply }),
                Said::Acts(calls) => (calls, None),
                Said::Malformed(told) => (Vec::new(), Some(told)),
            };
            handle.amend(|asked| asked.tool_calls.clone_from(&calls));
            self.done.malformed += u32::from(wrong.is_some());
            if let Some(end) = self.used_up(handle) {
                self.done.ended = end;
                return Ok(reply);
            }
            let mut told = Vec::with_capacity(calls.len());
            for call in &calls {
                told.push(self.carry_out(call, handle).await?);
            }
            // No vendor takes a message that says nothing.
            if !reply.is_empty() {
                request.messages.push(message_of(&reply));
            }
            request.messages.push(match self.spec.protocol {
                Protocol::Native => of_tools(&calls, told),
                Protocol::Text => of_user(&calls, &told, wrong),
            });
        }
    }

    async fn ask(&mut self, request: &Request, handle: &mut Handle) -> Result<Reply, Unanswered> {
        self.done.steps += 1;
        let role = format!("step {}", self.done.steps);
        let query = Query {
            target: Target::Subject,
            role: &role,
            turn: Some(1),
            kept: CacheKind::Answer,
            request,
            repeat: self.case.repeat,
        };
        Ok(with_ids(handle.query(query).await?, request))
    }

    /// Which of its limits does not let the agent go on.
    fn used_up(&self, handle: &Handle) -> Option<AgentEnd> {
        let AgentSpec { max_steps, max_tokens, .. } = *self.spec;
        let Usage { input_tokens, output_tokens, .. } = handle.spent().usage;
        let tokens = input_tokens.unwrap_or(0) + output_tokens.unwrap_or(0);
        if self.done.steps >= max_steps {
            Some(AgentEnd::Steps)
        } else if max_tokens.is_some_and(|most| tokens >= most) {
            Some(AgentEnd::Tokens)
        } else if self.time_left(handle).is_zero() {
            Some(AgentEnd::Time)
        } else {
            None
        }
    }

    /// What is left of the agent's time, and of that of the case. Waiting for others takes nothing of the agent's.
    fn time_left(&self, handle: &Handle) -> Duration {
        let Some(most) = self.spec.max_seconds else { return handle.time_left() };
        let answers = handle.asked().iter().filter(|it| it.turn.is_some());
        let used = answers.map(|it| it.latency_ms).sum::<u64>() + self.done.commands_ms;
        let left = Duration::from_secs(most).saturating_sub(Duration::from_millis(used));
        left.min(handle.time_left())
    }

    /// Does what a call asks for, and says what the model is told of it.
    async fn carry_out(&mut self, call: &ToolCall, handle: &mut Handle) -> Result<String, Stuck> {
        let action = match Action::of(call, &self.spec.tools) {
            Ok(action) => action,
            Err(told) => {
                self.done.malformed += 1;
                return Ok(told);
            }
        };
        let left = self.time_left(handle);
        let acted = self.world.act(&action, left, handle).await.map_err(Stuck::World)?;
        self.done.calls += 1;
        self.done.failed_calls += u32::from(acted.failed);
        self.done.commands_ms += acted.took_ms;
        Ok(acted.told)
    }
}

/// What tools said, as a message of theirs.
fn of_tools(calls: &[ToolCall], told: Vec<String>) -> Message {
    let result = |(call, told): (&ToolCall, String)| {
        let (id, name) = (call.id.clone(), call.name.clone());
        Part::ToolResult(ToolResult { id, name, content: told.into() })
    };
    Message { role: Role::Tool, content: calls.iter().zip(told).map(result).collect() }
}

/// The same as a message of the user, for models that know no tools.
fn of_user(calls: &[ToolCall], told: &[String], wrong: Option<&str>) -> Message {
    let results = calls.iter().zip(told).map(|(call, told)| format!("[{}] {told}", call.name));
    let said: Vec<String> = results.chain(wrong.map(ToOwned::to_owned)).collect();
    Message::text(Role::User, said.join("\n\n"))
}
