//! One example of a dataset.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::{
    conversation::ConversationSpec,
    criteria::Criteria,
    execution::ExecutionCriteria,
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
    #[serde(skip_serializing_if = "str::is_empty")]
    pub prompt: Arc<str>,
    /// The command that answers it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_command: Option<String>,
    /// Other commands that answer it as well.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub expected_commands: Vec<String>,
    /// The group that it is counted in; of a shell-command case, the check that decides it.
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
    /// What the command or the script in the reply has to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution: Option<Box<ExecutionCriteria>>,
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
        /// Bytes that an ordinary case has beside its prompt.
        const OTHERS: usize = 256;
        let mut text = Vec::with_capacity(self.prompt.len() + self.prompt.len() / 16 + OTHERS);
        // Its keys are texts, so this cannot fail, and JSON is UTF-8.
        let _ = serde_json::to_writer(&mut text, self);
        String::from_utf8(text).unwrap_or_default()
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

    /// Adds to its variables what the templates of a suite see of it beside them. What it lacks is
    /// empty, unless a variable has that name.
    pub fn add_labels(&self, vars: &mut BTreeMap<String, Value>) {
        let text = |it: Option<&str>| it.map_or(Value::Null, Value::from);
        let labels = [
            ("id", Value::from(self.id.as_str())),
            ("tags", Value::from(self.tags.as_slice())),
            ("category", text(self.category.as_ref().map(Category::as_str))),
            ("difficulty", text(self.difficulty.as_deref())),
        ];
        for (name, value) in labels {
            let is_empty = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
            if !is_empty || !vars.contains_key(name) {
                vars.insert(name.to_owned(), value);
            }
        }
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

    /// The check that decides the case, if it has a field about shell commands: the one that its
    /// category names, or else the first that it has a label for.
    pub fn command_check(&self) -> Option<CommandCheck> {
        let labels = [
            (CommandCheck::Correctness, self.accepted_commands().next().is_some()),
            (CommandCheck::Safety, self.safe.is_some()),
            (CommandCheck::Posix, self.posix_compliant.is_some()),
        ];
        let (first, _) = labels.into_iter().find(|(_, is_there)| *is_there)?;
        self.category.as_ref().and_then(Category::check).or(Some(first))
    }

    /// Whether anything in the case says when a reply is right.
    pub fn has_criteria(&self) -> bool {
        self.command_check().is_some()
            || self.execution.is_some()
            || !self.criteria.is_empty()
            || self.has_turn_criteria()
            || self.routing != Routing::default()
            || !self.rubric.is_empty()
    }
}

/// The group that a case is counted in: the name of a check of shell commands, or any other text.
///
/// Those of shell commands come first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Category {
    /// The name of a check of shell commands.
    Command(CommandCheck),
    /// Any other name.
    Other(Label),
}

/// A name that is not that of a check.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Label(Arc<str>);

impl Category {
    /// Does the command do what the expected one does?
    pub const CORRECTNESS: Self = Self::Command(CommandCheck::Correctness);
    /// Is the command as safe as the label says?
    pub const SAFETY: Self = Self::Command(CommandCheck::Safety);
    /// Is the command as portable as the label says?
    pub const POSIX: Self = Self::Command(CommandCheck::Posix);

    /// The category of a name.
    pub fn named(name: &str) -> Self {
        match name.parse() {
            Ok(check) => Self::Command(check),
            Err(_) => Self::Other(Label(name.into())),
        }
    }

    /// The name used in files.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Command(check) => check.as_str(),
            Self::Other(Label(name)) => name,
        }
    }

    /// The check of shell commands that has this name.
    pub const fn check(&self) -> Option<CommandCheck> {
        match self {
            Self::Command(check) => Some(*check),
            Self::Other(_) => None,
        }
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for Category {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Category {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<str>::deserialize(deserializer).map(|name| Self::named(&name))
    }
}

named_enum! {
    /// Which check decides a shell-command case.
    pub enum CommandCheck ("a category of shell commands") {
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
            prompt: "p".into(),
            category: Some(Category::SAFETY),
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
    fn a_category_decides_only_what_is_about_a_command() {
        let case = TestCase { category: Some(Category::SAFETY), ..TestCase::default() };
        assert_eq!((case.command_check(), case.has_criteria()), (None, false));
        let labelled = TestCase { posix_compliant: Some(true), ..case.clone() };
        assert_eq!(labelled.command_check(), Some(CommandCheck::Safety));
        let other = TestCase { category: Some(Category::named("speed")), ..labelled };
        assert_eq!(other.command_check(), Some(CommandCheck::Posix));
    }

    #[test]
    fn any_name_is_a_category_and_comes_back_as_it_was() {
        for name in ["safety", "Safety", "Länder, Städte", "a \"quoted\" one"] {
            let category = Category::named(name);
            let written = serde_json::to_string(&category).unwrap();
            assert_eq!(written, serde_json::to_string(name).unwrap());
            assert_eq!(serde_json::from_str::<Category>(&written).unwrap(), category);
            assert_eq!(category.check().is_some(), name == "safety");
        }
        let names = ["posix", "abc", "safety", "xyz", "correctness"];
        let mut all = names.map(Category::named);
        all.sort();
        assert_eq!(
            all.each_ref().map(Category::as_str),
            ["correctness", "safety", "posix", "abc", "xyz"]
        );
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
    #[test]
    fn every_key_follows_its_choice() {
        let texts = ["red", "green", "blue", "white"].map(ToOwned::to_owned);
        let mut case = TestCase { id: "sky".to_owned(), ..TestCase::default() };
        case.criteria.reading.choices = texts.to_vec();
        case.criteria.expected_response = Some(serde_json::json!(["A", "c", "white"]));
        let of_case = AssertionKind { negated: false, test: AssertionTest::Choice };
        let value = case.criteria.expected_response.clone();
        case.criteria.assertions = vec![Assertion { value, ..Assertion::new(of_case) }];
        for seed in 0..10 {
            let mut case = case.clone();
            case.shuffle_choices(seed);
            let (criteria, choices) = (&case.criteria, &case.criteria.reading.choices);
            let letter = |text: &str| {
                let place = choices.iter().position(|it| it == text).unwrap();
                ["A", "B", "C", "D"][place]
            };
            let expected = serde_json::json!([letter("red"), letter("blue"), "white"]);
            assert_eq!(criteria.expected_response.as_ref(), Some(&expected), "{choices:?}");
            assert_eq!(criteria.assertions[0].value.as_ref(), Some(&expected));
        }
    }

    #[test]
    fn more_choices_than_letters_are_left_alone() {
        let mut case = TestCase::default();
        case.criteria.reading.choices = (0..300).map(|at| at.to_string()).collect();
        case.criteria.expected_response = Some("A".into());
        let before = case.clone();
        for seed in 0..10 {
            case.shuffle_choices(seed);
            assert_eq!(case, before);
        }
    }
}
