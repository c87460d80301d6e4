//! When a reply is right: matchers, formats, assertions.
//!
//! These are the words of a dataset. `probity-grade` compiles them once into
//! something that can be asked about a reply.

mod asks;

use std::{borrow::Cow, collections::BTreeMap};

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use asks::Asks;

use crate::{
    classification::Class, located::Step, named_enum, names::UnknownName, problem::Severity,
    reading::Reading, request::Role,
};

/// How to tell whether a reply is right.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Criteria {
    /// What the reply is compared with; a list means any of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_response: Option<Value>,
    /// How it is compared.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub matcher: Option<Matcher>,
    /// How the answer is read that is compared.
    #[serde(flatten)]
    pub reading: Reading,
    /// What form the reply must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_format: Option<ExpectedFormat>,
    /// How much is forgiven when JSON is read out of the reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json_level: Option<JsonLevel>,
    /// A JSON Schema that the reply must satisfy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// What the result must be classified as; a refusal may be the right answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_classification: Option<Class>,
    /// Assertions that must hold, all of them unless there is a threshold.
    #[serde(rename = "assert", skip_serializing_if = "Vec::is_empty")]
    pub assertions: Vec<Assertion>,
    /// Weighted share of the assertions that must hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// JavaScript that makes what is checked out of the reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transform: Option<String>,
    /// What it means if a scorer fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scorer_errors: Option<ScorerErrors>,
}

impl Criteria {
    /// Puts the choices into an order. Keys that are letters follow; those that are texts stay.
    /// More choices than there are letters stay as they are: they are refused later.
    pub(crate) fn arrange_choices(&mut self, order: &[usize]) {
        if order.len() > LETTERS.len() {
            return;
        }
        let before = std::mem::take(&mut self.reading.choices);
        self.reading.choices = order.iter().map(|at| before[*at].clone()).collect();
        let moved = |key: &str| -> Option<String> {
            let key = key.trim();
            let [letter] = key.as_bytes() else { return None };
            let is_text = before.iter().any(|it| it.trim() == key);
            let at = usize::from(letter.to_ascii_uppercase().checked_sub(b'A')?);
            let place = order.iter().position(|it| *it == at).filter(|_| !is_text)?;
            Some(LETTERS[place..=place].to_owned())
        };
        if let Some(keys) = &mut self.expected_response {
            move_keys(keys, &moved);
        }
        move_assertions(&mut self.assertions, &moved);
    }

    /// Whether nothing is asked of a reply.
    pub fn is_empty(&self) -> bool {
        let Self {
            expected_response,
            matcher,
            reading: _,
            expected_format,
            json_level: _,
            schema,
            expected_classification,
            assertions,
            threshold: _,
            transform: _,
            scorer_errors: _,
        } = self;
        expected_response.is_none()
            && matcher.is_none()
            && expected_format.is_none()
            && schema.is_none()
            && expected_classification.is_none()
            && assertions.is_empty()
    }
}

/// What is wrong with a criterion, and which field says it.
#[derive(Clone, Debug, PartialEq)]
pub struct CriteriaProblem {
    /// The way from the case to the field.
    pub path: Vec<Step<'static>>,
    /// A stable name for this kind of problem.
    pub code: &'static str,
    /// One sentence, lower case, no final period.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

/// The letters that choices have.
const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// Moves a key, or each of a list of them.
fn move_keys(keys: &mut Value, moved: &impl Fn(&str) -> Option<String>) {
    match keys {
        Value::String(key) => {
            if let Some(letter) = moved(key) {
                *key = letter;
            }
        }
        Value::Array(keys) => keys.iter_mut().for_each(|key| move_keys(key, moved)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {}
    }
}

/// Moves the keys of assertions about the choices of their case.
fn move_assertions(assertions: &mut [Assertion], moved: &impl Fn(&str) -> Option<String>) {
    for assertion in assertions {
        let of_case =
            assertion.kind.test == AssertionTest::Choice && assertion.reading.choices.is_empty();
        if let Some(keys) = assertion.value.as_mut().filter(|_| of_case) {
            move_keys(keys, moved);
        }
        move_assertions(&mut assertion.members, moved);
    }
}

impl CriteriaProblem {
    /// The code of an accepted command that cannot be read, where others can.
    pub const UNREADABLE_COMMAND: &'static str = "unreadable-command";
    /// The code of a threshold that no score reaches.
    pub const UNREACHABLE_THRESHOLD: &'static str = "unreachable-threshold";

    /// Whether the case can be used all the same.
    pub fn severity(&self) -> Severity {
        match self.code {
            Self::UNREADABLE_COMMAND | Self::UNREACHABLE_THRESHOLD => Severity::Warning,
            _ => Severity::Error,
        }
    }
}

named_enum! {
    /// How a reply is compared with the expected one.
    pub enum Matcher ("a matcher") {
        /// The same text, to the byte.
        Exact = "exact",
        /// The same text, blanks at both ends aside.
        Trimmed = "trimmed",
        /// The reply contains it.
        Contains = "contains",
        /// The reply contains it, whatever the case of its letters.
        Icontains = "icontains",
        /// The reply starts with it, leading blanks aside.
        StartsWith = "starts_with",
        /// The reply matches it as a regular expression, anywhere.
        Regex = "regex",
        /// Both are JSON and equal.
        JsonEqual = "json_equal",
        /// Both are JSON and the reply holds all that is expected.
        JsonSubset = "json_subset",
        /// Blanks at both ends aside, the reply is one of a list.
        AnyOf = "any_of",
        /// Both are shell commands that do the same.
        Command = "command",
        /// Both are numbers that are near enough.
        Number = "number",
        /// The reply names the expected one of the choices.
        Choice = "choice",
    }
}

impl Matcher {
    /// The matcher of that name; `-` and `_` are the same.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| same_name(it.as_str(), name))
    }
}

named_enum! {
    /// What form a reply must have.
    pub enum ExpectedFormat ("a format") {
        /// Any text.
        Text = "text",
        /// Any JSON value.
        Json = "json",
        /// A JSON object.
        JsonObject = "json_object",
        /// A JSON array.
        JsonArray = "json_array",
    }
}

named_enum! {
    /// How much is forgiven when JSON is read out of a reply.
    #[derive(Default)]
    pub enum JsonLevel ("a level") {
        /// The whole reply is one JSON value.
        Strict = "strict",
        /// Fences, prose around it, trailing commas and bad escapes are forgiven.
        #[default]
        Lenient = "lenient",
        /// Whatever can be understood is mended.
        Repair = "repair",
    }
}

named_enum! {
    /// What it means if a scorer of a user fails: it throws, or returns what is no score.
    #[derive(Default)]
    pub enum ScorerErrors ("what errors of scorers mean") {
        /// The case cannot be judged.
        #[default]
        Error = "error",
        /// The assertion does not hold.
        Fail = "fail",
    }
}

/// One assertion about a reply, under the names that promptfoo's users know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assertion {
    /// What is asserted.
    #[serde(rename = "type")]
    pub kind: AssertionKind,
    /// What it is compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// How much it counts towards the case's threshold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
    /// From which score on it holds; what is scored depends on its type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// The name its score is reported under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// How the answer is read that it looks at.
    #[serde(flatten)]
    pub reading: Reading,
    /// `rouge-…`: whether words are compared by their stems.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stemmer: Option<bool>,
    /// `chrf`: the longest run of words that counts; 0 for chrF, 2 for chrF++.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub word_order: Option<u8>,
    /// What a script or a scorer is told beside the case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Value>,
    /// JavaScript that makes what this assertion checks out of the reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transform: Option<String>,
    /// What a judge is told beside the value.
    #[serde(flatten)]
    pub judging: JudgeOptions,
    /// The members of an `assert-set`.
    #[serde(rename = "assert", default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<Self>,
}

/// What a judge is told beside the value of an assertion.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct JudgeOptions {
    /// The text, or the list of texts, that the answer was to be made from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Value>,
    /// JavaScript that makes the context out of the reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_transform: Option<String>,
    /// What was asked, where that is not the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// `g-eval`: what the judge does, step by step.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<String>,
    /// `factuality`: what each category counts, where that is not the usual.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub scores: BTreeMap<FactCategory, f64>,
    /// `llm-rubric`: the judge's prompt, a template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rubric_prompt: Option<RubricPrompt>,
}

/// A judge's prompt of a user: a template that sees `output`, `rubric`, `prompt` and the case's
/// variables.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RubricPrompt {
    /// One message.
    Text(String),
    /// A conversation.
    Messages(Vec<PromptMessage>),
}

/// A message of a judge's prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptMessage {
    /// Who says it.
    pub role: Role,
    /// The template.
    pub content: String,
}

impl RubricPrompt {
    /// Its templates.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let (text, messages) = match self {
            Self::Text(text) => (Some(text.as_str()), &[][..]),
            Self::Messages(messages) => (None, messages.as_slice()),
        };
        text.into_iter().chain(messages.iter().map(|it| it.content.as_str()))
    }
}

named_enum! {
    /// How an answer stands to the reference that it is held against.
    pub enum FactCategory ("a category") {
        /// It states the same facts.
        Same = "same",
        /// It states a part of them, and nothing against the rest.
        Subset = "subset",
        /// It states them and more.
        Superset = "superset",
        /// It states something that cannot be true together with them.
        Contradiction = "contradiction",
        /// It differs in ways that do not matter for what is true.
        Immaterial = "immaterial",
    }
}

impl FactCategory {
    /// What it counts unless an assertion says otherwise.
    pub const fn usual_score(self) -> f64 {
        match self {
            Self::Same | Self::Subset | Self::Superset | Self::Immaterial => 1.0,
            Self::Contradiction => 0.0,
        }
    }
}

impl Assertion {
    /// An assertion that says nothing more.
    pub fn new(kind: AssertionKind) -> Self {
        Self {
            kind,
            value: None,
            weight: None,
            threshold: None,
            metric: None,
            reading: Reading::default(),
            stemmer: None,
            word_order: None,
            config: None,
            transform: None,
            judging: JudgeOptions::default(),
            members: Vec::new(),
        }
    }
}

/// promptfoo's names for what we call otherwise.
pub const OTHER_NAMES: [(&str, AssertionTest); 5] = [
    ("rouge-n", AssertionTest::Rouge1),
    ("is-valid-openai-tools-call", AssertionTest::ValidToolCalls),
    ("is-valid-openai-function-call", AssertionTest::ValidToolCalls),
    ("model-graded-closedqa", AssertionTest::ClosedQa),
    ("model-graded-factuality", AssertionTest::Factuality),
];

/// What an assertion asserts, possibly turned round by `not-`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AssertionKind {
    /// Whether it must not hold.
    pub negated: bool,
    /// What is looked at.
    pub test: AssertionTest,
}

impl AssertionKind {
    /// The name used in files, `not-` included.
    pub fn name(self) -> Cow<'static, str> {
        match self.negated {
            false => self.test.as_str().into(),
            true => format!("not-{}", self.test).into(),
        }
    }

    /// The assertion of that name.
    pub fn named(name: &str) -> Option<Self> {
        let (negated, rest) = match name.strip_prefix("not-").or_else(|| name.strip_prefix("not_"))
        {
            Some(rest) => (true, rest),
            None => (false, name),
        };
        let named = AssertionTest::ALL.into_iter().find(|it| same_name(it.as_str(), rest));
        let other = || OTHER_NAMES.iter().find(|(name, _)| same_name(name, rest)).map(|it| it.1);
        Some(Self { negated, test: named.or_else(other)? })
    }
}

impl std::fmt::Display for AssertionKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.name())
    }
}

impl<'de> Deserialize<'de> for AssertionKind {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::named(&name)
            .ok_or_else(|| serde::de::Error::custom(UnknownName { set: "an assertion", name }))
    }
}

impl Serialize for AssertionKind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

named_enum! {
    /// What an assertion looks at.
    pub enum AssertionTest ("an assertion") {
        /// The reply is the value: text to the byte, or JSON that is equal.
        Equals = "equals",
        /// The reply is one of the values, blanks at both ends aside.
        ExactMatch = "exact-match",
        /// The reply contains the value.
        Contains = "contains",
        /// The reply contains the value, whatever the case of its letters.
        Icontains = "icontains",
        /// The reply contains one of the values.
        ContainsAny = "contains-any",
        /// The reply contains every one of the values.
        ContainsAll = "contains-all",
        /// The reply contains one of the values, whatever the case of their letters.
        IcontainsAny = "icontains-any",
        /// The reply contains every one of the values, whatever the case of their letters.
        IcontainsAll = "icontains-all",
        /// The reply starts with the value.
        StartsWith = "starts-with",
        /// The reply matches the value as a regular expression, anywhere.
        Regex = "regex",
        /// The reply is JSON, and satisfies the value as a JSON Schema if there is one.
        IsJson = "is-json",
        /// JSON can be read out of the reply, and satisfies the value as a JSON Schema if there is one.
        ContainsJson = "contains-json",
        /// The reply is XML, and has the elements of the value.
        IsXml = "is-xml",
        /// There is XML in the reply that has the elements of the value.
        ContainsXml = "contains-xml",
        /// The reply is HTML.
        IsHtml = "is-html",
        /// There is HTML in the reply.
        ContainsHtml = "contains-html",
        /// The reply is SQL, and touches the tables and columns that the value allows.
        IsSql = "is-sql",
        /// There is SQL in the reply that touches the tables and columns that the value allows.
        ContainsSql = "contains-sql",
        /// The reply is a refusal.
        IsRefusal = "is-refusal",
        /// The reply is a number that is near enough to the value.
        Number = "number",
        /// The reply names the choice that the value is.
        Choice = "choice",
        /// The reply and a value share words: their F1, as for `SQuAD`, is at least `threshold`.
        TokenF1 = "token-f1",
        /// ROUGE-1 of the reply and a value is at least `threshold`.
        Rouge1 = "rouge-1",
        /// ROUGE-2 of the reply and a value is at least `threshold`.
        Rouge2 = "rouge-2",
        /// ROUGE-L of the reply and a value is at least `threshold`.
        RougeL = "rouge-l",
        /// BLEU of the reply and the values is at least `threshold`.
        Bleu = "bleu",
        /// GLEU of the reply and a value is at least `threshold`.
        Gleu = "gleu",
        /// METEOR of the reply and a value, without synonyms, is at least `threshold`.
        Meteor = "meteor",
        /// chrF of the reply and a value is at least `threshold`.
        Chrf = "chrf",
        /// One minus the share of characters to edit is at least `threshold`.
        EditSimilarity = "edit-similarity",
        /// At most `threshold` edits turn the reply into the value.
        Levenshtein = "levenshtein",
        /// The number of words: exactly the value, or between its `min` and `max`.
        WordCount = "word-count",
        /// The model stopped for the value's reason.
        FinishReason = "finish-reason",
        /// The call took at most `threshold` milliseconds.
        Latency = "latency",
        /// The first token took at most `threshold` milliseconds.
        TimeToFirstToken = "time-to-first-token",
        /// The call cost at most `threshold` dollars.
        Cost = "cost",
        /// A judge gives the reply at least `threshold` for the value: a rubric, or a list of criteria.
        LlmRubric = "llm-rubric",
        /// A judge finds nothing in the reply that contradicts the value.
        Factuality = "factuality",
        /// A judge says that the reply meets the value.
        ClosedQa = "closed-qa",
        /// A judge goes through the value step by step, and grades the reply on a scale from 0 to 10.
        GEval = "g-eval",
        /// The share of the value's statements that the context supports is at least `threshold`.
        ContextRecall = "context-recall",
        /// The passages of the context that help to answer come first.
        ContextPrecision = "context-precision",
        /// The share of the context's passages that help to answer is at least `threshold`.
        ContextRelevance = "context-relevance",
        /// The share of the reply's statements that the context supports is at least `threshold`.
        ContextFaithfulness = "context-faithfulness",
        /// The share of the reply's statements that are about the question is at least `threshold`.
        AnswerRelevance = "answer-relevance",
        /// Of the answers of all lanes to the case, a judge finds this one the best by the value.
        SelectBest = "select-best",
        /// Of the answers of all lanes to the case, this one has the highest score of the other checks.
        MaxScore = "max-score",
        /// The tools of the value are called, each with its arguments.
        ToolCalled = "tool-called",
        /// The tools of the value are called in this order.
        ToolsInOrder = "tools-in-order",
        /// The number of calls: exactly the value, or between its `min` and `max`.
        ToolCount = "tool-count",
        /// A tool is called, and every call names a tool of the case and has arguments that it takes.
        ValidToolCalls = "valid-tool-calls",
        /// F1 of the tools that are called and those of the value, by their names, is at least `threshold`.
        ToolCallF1 = "tool-call-f1",
        /// No filter or guardrail of the service stopped the reply.
        Guardrails = "guardrails",
        /// The perplexity of the reply is at most `threshold`.
        Perplexity = "perplexity",
        /// One divided by one more than the perplexity is at least `threshold`.
        PerplexityScore = "perplexity-score",
        /// The reply means the same as a value: the cosine of their embeddings is at least `threshold`.
        Similar = "similar",
        /// The same.
        SimilarCosine = "similar:cosine",
        /// The dot product of the embeddings of the reply and a value is at least `threshold`.
        SimilarDot = "similar:dot",
        /// The distance between the embeddings of the reply and a value is at most `threshold`.
        SimilarEuclidean = "similar:euclidean",
        /// A reranking model finds the reply relevant to the value, or to the question: at least `threshold`.
        Rerank = "rerank",
        /// JavaScript, in the value or in a file that it names, finds the reply good enough.
        Javascript = "javascript",
        /// The scorer of the suite that the value names finds the reply good enough.
        Scorer = "scorer",
        /// Python, in the value or in a file that it names, finds the reply good enough.
        Python = "python",
        /// The program in the value, run for this reply alone, finds it good enough.
        Exec = "exec",
        /// The members hold, all of them or a weighted share of `threshold`.
        AssertSet = "assert-set",
    }
}

/// Names are compared without regard to `-` and `_`: both spellings are in use.
fn same_name(a: &str, b: &str) -> bool {
    let fold = |byte: u8| if byte == b'_' { b'-' } else { byte };
    a.len() == b.len() && a.bytes().zip(b.bytes()).all(|(a, b)| fold(a) == fold(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assertion_names_round_trip() {
        for test in AssertionTest::ALL {
            for negated in [false, true] {
                let kind = AssertionKind { negated, test };
                assert_eq!(AssertionKind::named(&kind.to_string()), Some(kind));
            }
        }
        assert_eq!(AssertionKind::named("contains-some"), None);
    }

    #[test]
    fn a_hyphen_and_an_underscore_are_the_same() {
        assert_eq!(Matcher::named("starts-with"), Some(Matcher::StartsWith));
        assert_eq!(Matcher::named("json_subset"), Some(Matcher::JsonSubset));
        assert_eq!(Matcher::named("jsonsubset"), None);
    }
}
