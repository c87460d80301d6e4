//! One example of a dataset.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    conversation::ConversationSpec,
    criteria::Criteria,
    named_enum,
    request::{Message, ResponseFormat, Sampling, Tool, ToolChoice},
};

/// One example: what is asked, and how to tell whether the answer is right.
///
/// The first seven fields are those of a shell-command case. `None` and empty
/// collections mean that the file does not have the field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TestCase {
    /// Unique within its dataset.
    pub id: String,
    /// What is asked, a template over `prompt_vars`; empty where there are messages instead.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub prompt: String,
    /// The command that answers it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_command: Option<String>,
    /// Other commands that answer it as well.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub expected_commands: Vec<String>,
    /// Which check decides a shell-command case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<Category>,
    /// Whether the command is safe to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub safe: Option<bool>,
    /// Whether the command is portable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub posix_compliant: Option<bool>,
    /// For whoever reads the dataset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// Instructions that go before the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// What is asked beyond a prompt and instructions.
    #[serde(flatten)]
    pub ask: AskSpec,
    /// What it has beyond its first question.
    #[serde(flatten)]
    pub conversation: ConversationSpec,
    /// Values for the prompt's variables.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub prompt_vars: BTreeMap<String, Value>,
    /// How to tell whether a reply is right.
    #[serde(flatten)]
    pub criteria: Criteria,
    /// Free labels to filter and group by.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// How hard it is meant to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difficulty: Option<String>,
    /// The systems it makes sense on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub platform: Vec<String>,
    /// What a sandbox has to find after running the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution: Option<Value>,
    /// What a case of a skill-routing dataset expects.
    #[serde(flatten)]
    pub routing: Routing,
    /// What a judge looks at, in a case of a skill-effectiveness dataset.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rubric: Vec<RubricCriterion>,
    /// The terms it may be used under; those of its file where it says none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub license: Option<String>,
}

/// What is asked beyond a prompt and instructions, of a case, a runner or a prompt variant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AskSpec {
    /// The conversation that the model is to continue, instead of a prompt. Its texts are templates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<Message>,
    /// The tools that may be called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Arc<[Tool]>>,
    /// Whether one has to be called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// The form that the answer must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_format: Option<ResponseFormat>,
    /// How words are chosen.
    #[serde(rename = "settings", skip_serializing_if = "Sampling::is_empty")]
    pub sampling: Sampling,
}

/// The skills a routing case expects to be chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Routing {
    /// The skill that a case of a skill dataset is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    /// Any of these is right.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub expected_skills: Vec<String>,
    /// Any of these will do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub acceptable_skills: Vec<String>,
    /// False where no skill may be chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub should_activate: Option<bool>,
    /// The group of look-alikes it is chosen from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

/// One thing a judge scores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RubricCriterion {
    /// Unique within its rubric.
    pub name: String,
    /// Its share; the weights of a rubric add up to 1.
    pub weight: f64,
    /// What the judge is told.
    pub description: String,
}

impl Routing {
    /// Whether a skill is to be chosen.
    pub fn is_positive(&self) -> bool {
        self.should_activate.unwrap_or(!self.expected_skills.is_empty())
    }
}

impl TestCase {
    /// The case as JSON, as it is stored.
    pub fn to_json(&self) -> String {
        // Its keys are texts, so this cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads what [`TestCase::to_json`] wrote.
    pub fn from_json(text: &str) -> serde_json::Result<Self> {
        // By way of a tree: serde cannot hand numbers of any precision to flattened fields directly.
        serde_json::from_value(serde_json::from_str(text)?)
    }

    /// The variables of its templates: `prompt_vars`, and `choices` if it has some.
    pub fn vars(&self) -> Cow<'_, BTreeMap<String, Value>> {
        let choices = &self.criteria.reading.choices;
        if choices.is_empty() || self.prompt_vars.contains_key("choices") {
            return Cow::Borrowed(&self.prompt_vars);
        }
        let mut vars = self.prompt_vars.clone();
        vars.insert("choices".to_owned(), Value::from(choices.as_slice()));
        Cow::Owned(vars)
    }

    /// Whether it has a question of its own, and not only variables for the templates of others.
    pub fn asks(&self) -> bool {
        let Self { prompt, ask, conversation, .. } = self;
        !prompt.is_empty() || !ask.messages.is_empty() || !conversation.turns.is_empty()
    }

    /// Puts its choices into an order that a seed and its id decide. Keys that are letters follow.
    pub fn shuffle_choices(&mut self, seed: u64) {
        let number = |at: &usize| {
            let text = format!("{seed}\n{at}\n{}", self.id);
            *blake3::hash(text.as_bytes()).as_bytes()
        };
        let mut order: Vec<usize> = (0..self.criteria.reading.choices.len()).collect();
        order.sort_by_cached_key(number);
        self.criteria.arrange_choices(&order);
    }

    /// Puts its choices into the order in which they were asked before, if they are the same ones.
    pub fn arrange_choices_as(&mut self, before: &[String]) {
        let now = &self.criteria.reading.choices;
        let place = |choice: &String| now.iter().position(|it| it == choice);
        let order: Option<Vec<usize>> = before.iter().map(place).collect();
        let is_whole = |order: &Vec<usize>| {
            order.iter().collect::<BTreeSet<_>>().len() == now.len() && order.len() == now.len()
        };
        if let Some(order) = order.filter(is_whole) {
            self.criteria.arrange_choices(&order);
        }
    }

    /// Every command that answers the case, the first one first.
    pub fn accepted_commands(&self) -> impl Iterator<Item = &str> {
        self.expected_command.iter().chain(&self.expected_commands).map(String::as_str)
    }

    /// Whether anything in the case says when a reply is right. What a sandbox would have to find
    /// does not, as long as there is no sandbox.
    pub fn has_criteria(&self) -> bool {
        self.category.is_some()
            || self.accepted_commands().next().is_some()
            || !self.criteria.is_empty()
            || self.has_turn_criteria()
            || self.routing != Routing::default()
            || !self.rubric.is_empty()
    }
}

named_enum! {
    /// Which check decides a shell-command case.
    pub enum Category ("a category") {
        /// Does the command do what the expected one does?
        Correctness = "correctness",
        /// Is the command as safe as the label says?
        Safety = "safety",
        /// Is the command as portable as the label says?
        Posix = "posix",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::criteria::{Assertion, AssertionKind, AssertionTest};

    #[test]
    fn a_case_is_read_back_as_it_was_written() {
        let case = TestCase {
            id: "a".to_owned(),
            prompt: "p".to_owned(),
            category: Some(Category::Safety),
            safe: Some(false),
            prompt_vars: BTreeMap::from([("n".to_owned(), serde_json::json!([1, 2.5, "x"]))]),
            criteria: Criteria { threshold: Some(0.75), ..Criteria::default() },
            rubric: vec![RubricCriterion {
                name: "tone".to_owned(),
                weight: 1.0,
                description: "d".to_owned(),
            }],
            routing: Routing { group: Some("g".to_owned()), ..Routing::default() },
            ..TestCase::default()
        };
        let written = case.to_json();
        assert_eq!(TestCase::from_json(&written).unwrap(), case);
        assert_eq!(TestCase::from_json(&written).unwrap().to_json(), written);
    }

    #[test]
    fn the_key_follows_its_choice() {
        let texts = ["red", "green", "blue", "white", "black"].map(ToOwned::to_owned);
        for (at, text) in texts.iter().enumerate() {
            let letter = ["A", "B", "C", "D", "E"][at];
            let mut case = TestCase { id: "sky".to_owned(), ..TestCase::default() };
            case.criteria.reading.choices = texts.to_vec();
            case.criteria.expected_response = Some(letter.into());
            let of_case = AssertionKind { negated: false, test: AssertionTest::Choice };
            let value = Some(letter.into());
            case.criteria.assertions = vec![Assertion { value, ..Assertion::new(of_case) }];
            let written = case.clone();
            case.shuffle_choices(7);
            let criteria = &case.criteria;
            assert_ne!(criteria.reading.choices, texts);
            let key = criteria.expected_response.as_ref().unwrap().as_str().unwrap();
            let place = usize::from(key.as_bytes()[0] - b'A');
            assert_eq!(criteria.reading.choices[place], *text);
            assert_eq!(criteria.assertions[0].value, criteria.expected_response);

            let mut again = written.clone();
            again.shuffle_choices(7);
            assert_eq!(again, case);
            again.shuffle_choices(8);
            again.arrange_choices_as(&case.criteria.reading.choices);
            assert_eq!(again, case);
            again.arrange_choices_as(&["other".to_owned()]);
            assert_eq!(again, case);
            again.arrange_choices_as(&texts);
            assert_eq!(again, written);
        }
    }
}
