//! Cases that take more than one question: turns of the user, and tools that answer.

mod shown;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use shown::Utterance;

use crate::{
    case::TestCase,
    criteria::{Assertion, Criteria},
    located::Step,
    record::Asked,
    reply::Logprobs,
    request::{Part, Request, ToolCall, content},
};

/// Questions that one turn may take where the case does not say it.
pub const DEFAULT_STEPS: u32 = 8;
/// The most that a case may allow.
pub const MOST_STEPS: u32 = 100;

/// How often a simulated user speaks where the case does not say it.
pub const DEFAULT_USER_TURNS: u32 = 8;
/// The most that a case may allow.
pub const MOST_USER_TURNS: u32 = 100;
/// What a simulated user ends a conversation with where the case does not say it.
pub const DEFAULT_STOP: &str = "[END]";

/// What a case has beyond its first question.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConversationSpec {
    /// What the user says, one turn after the other, instead of a prompt.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<Turn>,
    /// What tools say when they are called. With a list, even an empty one, the model is asked
    /// again until it calls no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_results: Option<Vec<ScriptedResult>>,
    /// How often the model is asked in one turn, at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u32>,
    /// Who speaks for the user when the turns are at their end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<SimulatedUser>,
}

impl ConversationSpec {
    /// How often the model is asked in one turn, at most.
    pub fn steps(&self) -> u32 {
        self.max_steps.unwrap_or(DEFAULT_STEPS)
    }

    /// How many turns are written; a prompt is one.
    pub fn turn_count(&self) -> usize {
        self.turns.len().max(1)
    }

    /// How many turns a simulated user adds, at most.
    pub fn user_turns(&self) -> usize {
        self.user.as_ref().map_or(0, |it| it.turns() as usize)
    }

    /// In how many turns calls of tools are answered: from the first one on.
    ///
    /// Before the last turn they always are: no vendor takes a message after an open call. Where
    /// somebody speaks for the user, any turn may have one after it.
    pub fn answered_turns(&self) -> usize {
        match (&self.tool_results, &self.user) {
            (None, None) => self.turn_count() - 1,
            (Some(_), _) | (None, Some(_)) => self.turn_count() + self.user_turns(),
        }
    }

    /// Whether it is no more than one question.
    pub fn is_one_question(&self) -> bool {
        self.turns.len() < 2 && self.tool_results.is_none() && self.user.is_none()
    }
}

/// A user whose part a model plays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SimulatedUser {
    /// The backend that plays it, where that is not the runner's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// Who the user is and what they want, as a template.
    pub instructions: String,
    /// What the user ends the conversation with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<String>,
    /// How often the user speaks, at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
}

impl SimulatedUser {
    /// What the user ends the conversation with.
    pub fn stop(&self) -> &str {
        self.stop.as_deref().unwrap_or(DEFAULT_STOP)
    }

    /// How often the user speaks, at most.
    pub fn turns(&self) -> u32 {
        self.max_turns.unwrap_or(DEFAULT_USER_TURNS)
    }
}

/// One turn of the user, and how to tell whether the answer to it is right.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// What the user says. Its texts are templates.
    #[serde(with = "content")]
    pub user: Vec<Part>,
    /// When the answer to it is right.
    #[serde(flatten)]
    pub criteria: Criteria,
}

/// What a tool says when it is called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScriptedResult {
    /// The tool.
    pub name: String,
    /// Only for calls with these arguments; a call may have more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// What it says: a text, which is a template over the arguments of the call, or JSON.
    pub content: Value,
}

/// One reply of the model within a conversation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exchange<'a> {
    /// The turn that it belongs to, from 1.
    pub turn: u32,
    /// What was said before it; none if that is the first question of the case.
    pub before: Option<&'a Request>,
    /// What it says; its calls as JSON where it does nothing else.
    pub reply: &'a str,
    /// The tools that it calls.
    pub tool_calls: &'a [ToolCall],
    /// Why the model stopped, in the vendor's word.
    pub stop_reason: Option<&'a str>,
    /// How likely its tokens were.
    pub logprobs: Option<&'a Logprobs>,
    /// How long it took.
    pub latency_ms: u64,
    /// What it cost, where that is known.
    pub cost_usd: Option<f64>,
}

/// The replies of a conversation among all that was asked for a case.
pub fn exchanges(asked: &[Asked]) -> Vec<Exchange<'_>> {
    let replies = asked.iter().filter(|it| it.turn.is_some());
    replies.enumerate().filter_map(|(at, it)| Exchange::of(it, at == 0)).collect()
}

impl<'a> Exchange<'a> {
    fn of(asked: &'a Asked, is_first: bool) -> Option<Self> {
        Some(Self {
            turn: asked.turn?,
            before: (!is_first).then_some(&asked.request),
            reply: asked.reply.as_deref()?,
            tool_calls: &asked.tool_calls,
            stop_reason: asked.stop_reason.as_deref(),
            logprobs: asked.logprobs.as_ref(),
            latency_ms: asked.latency_ms,
            cost_usd: asked.cost_usd,
        })
    }
}

impl TestCase {
    /// Its assertions and those of its turns, each list with where it stands in the case.
    pub fn asserted(&self) -> impl Iterator<Item = (Vec<Step<'static>>, &[Assertion])> {
        let own = (Vec::new(), self.criteria.assertions.as_slice());
        let turns = self.conversation.turns.iter().enumerate().map(|(at, turn)| {
            let path = vec![Step::Key("turns"), Step::Index(at)];
            (path, turn.criteria.assertions.as_slice())
        });
        std::iter::once(own).chain(turns)
    }

    /// Whether a turn has a criterion of its own.
    pub fn has_turn_criteria(&self) -> bool {
        self.conversation.turns.iter().any(|it| !it.criteria.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_answered_with_a_script_and_before_the_last_turn() {
        let mut spec = ConversationSpec::default();
        assert!(spec.answered_turns() == 0 && spec.is_one_question());
        spec.turns = vec![Turn::default(), Turn::default()];
        assert_eq!(spec.answered_turns(), 1);
        spec.tool_results = Some(Vec::new());
        assert!(spec.answered_turns() == 2 && !spec.is_one_question());
        let user = SimulatedUser { max_turns: Some(3), ..SimulatedUser::default() };
        let spec = ConversationSpec { user: Some(user), ..ConversationSpec::default() };
        assert!(spec.answered_turns() == 4 && !spec.is_one_question());
    }
}
