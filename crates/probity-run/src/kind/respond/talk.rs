//! A conversation with the model: the turns of the user, and scripted answers of tools.

use std::{borrow::Cow, collections::BTreeMap};

use probity_core::{
    conversation::ConversationSpec,
    failure::ErrorKind,
    record::{Asked, CacheKind, CallError},
    request::{Message, Part, Request, Role, ToolCall, ToolChoice, ToolResult},
};
use probity_grade::{
    holds_all,
    internal::user::{self, Next},
};
use probity_load::template;
use serde_json::{Value, json};

use crate::{
    backend::Reply,
    engine::{Handle, Query, Target, Unanswered},
    source::Prepared,
};

/// What is said to the model.
pub(super) struct Talk<'a> {
    pub(super) case: &'a Prepared,
    /// What the user says after the first question.
    pub(super) further: &'a [Message],
    /// Values for what tools say.
    pub(super) vars: &'a BTreeMap<String, Value>,
    /// Who the user is that a model plays.
    pub(super) user: Option<&'a str>,
}

/// How a turn ended.
enum Turned {
    /// With an answer, after which the user may go on.
    Answered(Reply),
    /// With something that nobody can go on after: open calls, or nothing at all.
    Stuck(Reply),
}

impl Talk<'_> {
    /// Asks turn after turn, and returns the last reply.
    pub(super) async fn hold(&self, handle: &mut Handle) -> Result<Reply, Unanswered> {
        // Most cases ask once what they have.
        let mut request = Cow::Borrowed(&self.case.request);
        let mut further = self.further.iter();
        let mut turn = 1;
        let last = loop {
            let reply = match self.take_turn(&mut request, turn, handle).await? {
                Turned::Stuck(reply) => break reply,
                Turned::Answered(reply) => reply,
            };
            if further.len() == 0 && self.user.is_none() {
                break reply;
            }
            request.to_mut().messages.push(message_of(&reply));
            let user = match further.next() {
                Some(user) => Some(user.clone()),
                None => Box::pin(self.simulate(&request, turn, handle)).await?,
            };
            let Some(user) = user else { break reply };
            request.to_mut().messages.push(user);
            request.to_mut().tool_choice.clone_from(&self.case.request.tool_choice);
            turn += 1;
        };
        handle.sum_latencies();
        Ok(last)
    }

    /// What a simulated user says after a turn; nothing if there is none, or no more to say.
    async fn simulate(
        &self,
        said: &Request,
        turn: u32,
        handle: &mut Handle,
    ) -> Result<Option<Message>, Unanswered> {
        let (Some(instructions), Some(spec)) = (self.user, &self.spec().user) else {
            return Ok(None);
        };
        if turn as usize >= self.spec().turn_count() + self.spec().user_turns() {
            return Ok(None);
        }
        let part = user::Part { instructions, stop: spec.stop() };
        let request = part.request(&said.messages, handle.seed());
        let role = format!("user, turn {}", turn + 1);
        let query = Query {
            target: Target::User,
            role: &role,
            turn: None,
            kept: CacheKind::Answer,
            request: &request,
            repeat: self.case.repeat,
        };
        let reply = handle.query(query).await.map_err(of_user)?;
        match part.read(&reply.text) {
            Next::Says(text) => Ok(Some(Message::text(Role::User, text))),
            Next::Stops => Ok(None),
            Next::Silent => Err(handle.failed_user("it says nothing")),
        }
    }

    /// Asks until the model calls no more tools, or as often as it may be asked.
    async fn take_turn(
        &self,
        request: &mut Cow<'_, Request>,
        turn: u32,
        handle: &mut Handle,
    ) -> Result<Turned, Unanswered> {
        let spec = self.spec();
        let answers_calls = spec.answered_turns() >= turn as usize;
        let mut step = 1;
        loop {
            let role = self.role(turn, step);
            let query = Query {
                target: Target::Subject,
                role: &role,
                turn: Some(turn),
                kept: CacheKind::Answer,
                request,
                repeat: self.case.repeat,
            };
            let reply = with_ids(handle.query(query).await?, request);
            handle.amend(|asked: &mut Asked| asked.tool_calls.clone_from(&reply.tool_calls));
            if reply.tool_calls.is_empty() && !reply.is_empty() {
                return Ok(Turned::Answered(reply));
            }
            if reply.is_empty() || !answers_calls || step == spec.steps() {
                return Ok(Turned::Stuck(reply));
            }
            let results = reply.tool_calls.iter().map(|it| Part::ToolResult(self.result_of(it)));
            let results = Message { role: Role::Tool, content: results.collect() };
            let request = request.to_mut();
            request.messages.push(message_of(&reply));
            request.messages.push(results);
            // A call that is forced is forced once, or there would be no end of it.
            if let Some(ToolChoice::Required | ToolChoice::Tool(_)) = request.tool_choice {
                request.tool_choice = Some(ToolChoice::Auto);
            }
            step += 1;
        }
    }

    fn spec(&self) -> &ConversationSpec {
        &self.case.case.conversation
    }

    /// What a question is recorded as.
    fn role(&self, turn: u32, step: u32) -> String {
        match (self.spec().turn_count() + self.spec().user_turns(), step) {
            (1, _) if self.spec().is_one_question() => "answer".to_owned(),
            (1, _) => format!("step {step}"),
            (_, 1) => format!("turn {turn}"),
            (_, _) => format!("turn {turn}, step {step}"),
        }
    }

    /// What a tool says to a call: the first result of the script that fits, or an error.
    fn result_of(&self, call: &ToolCall) -> ToolResult {
        let fits = |name: &str, arguments: Option<&Value>| {
            name == call.name && arguments.is_none_or(|it| holds_all(it, &call.arguments))
        };
        let mut script = self.spec().tool_results.iter().flatten();
        let scripted = script.find(|it| fits(&it.name, it.arguments.as_ref()));
        let content = match scripted {
            Some(it) => template::fill_result(&it.content, &call.arguments, self.vars)
                .map_err(|error| error.to_string()),
            None => Err(format!("`{}` has no result for these arguments", call.name)),
        };
        let content = content.unwrap_or_else(|why| json!({ "error": why }).to_string());
        ToolResult { id: call.id.clone(), name: call.name.clone(), content: content.into() }
    }
}

/// What a simulated user declines to say is no refusal of the model, and its silence no empty answer.
fn of_user(unanswered: Unanswered) -> Unanswered {
    match unanswered {
        Unanswered::Failed { error, backend } => {
            let is_answer = matches!(error.kind, ErrorKind::ContentFilter | ErrorKind::Empty);
            let kind = if is_answer { ErrorKind::Unknown } else { error.kind };
            Unanswered::Failed { error: CallError { kind, ..error }, backend }
        }
        aborted @ Unanswered::Aborted(_) => aborted,
    }
}

/// The reply with an id for each call, since results refer to them. Not every server gives one.
pub(in crate::kind) fn with_ids(mut reply: Reply, request: &Request) -> Reply {
    let before = request.messages.iter().flat_map(Message::tool_calls).count();
    for (at, call) in reply.tool_calls.iter_mut().enumerate() {
        if call.id.as_ref().is_none_or(String::is_empty) {
            call.id = Some(format!("call_{}", before + at + 1));
        }
    }
    reply
}

/// A reply as a message that the conversation goes on from.
pub(in crate::kind) fn message_of(reply: &Reply) -> Message {
    let text = (!reply.is_blank()).then(|| Part::Text(reply.text.as_str().into()));
    let calls = reply.tool_calls.iter().cloned().map(Part::ToolCall);
    Message { role: Role::Assistant, content: text.into_iter().chain(calls).collect() }
}
