//! Our criteria as promptfoo's assertions.

use probity_core::{
    case::TestCase,
    criteria::{Assertion, AssertionTest, Criteria, ExpectedFormat, JsonLevel, Matcher},
    reading::Reading,
};
use probity_grade::default_matcher;
use serde::Serialize;
use serde_json::Value;

use crate::cases::literal;

/// An assertion.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Said {
    #[serde(rename = "type")]
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    threshold: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    weight: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metric: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transform: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    config: Option<Value>,
    #[serde(rename = "assert", skip_serializing_if = "Vec::is_empty")]
    members: Vec<Self>,
}

impl Said {
    fn new(kind: impl Into<String>, value: Option<Value>) -> Self {
        Self {
            kind: kind.into(),
            value,
            threshold: None,
            weight: None,
            metric: None,
            transform: None,
            config: None,
            members: Vec::new(),
        }
    }
}

/// What decides a case; `lose` is told what cannot be said.
pub(super) fn of_case(case: &TestCase, lose: &mut dyn FnMut(&str)) -> Vec<Said> {
    let Criteria {
        expected_response,
        matcher,
        reading,
        expected_format,
        json_level,
        schema,
        expected_classification,
        assertions,
        threshold: _,
        transform: _,
        scorer_errors: _,
    } = &case.criteria;
    let mut said = Vec::new();
    if case.command_check().is_some() {
        lose("what is expected of a shell command");
    }
    if !case.rubric.is_empty() || case.routing != probity_core::case::Routing::default() {
        lose("what is expected of skills");
    }
    let is_read = |it: &Reading| *it != Reading::default();
    if let Some(expected) = expected_response {
        let meant = || default_matcher(expected, *expected_format, reading);
        match matched(matcher.unwrap_or_else(meant), expected).filter(|_| !is_read(reading)) {
            Some(it) => said.push(Said { value: it.value.as_ref().map(as_is), ..it }),
            None => lose("how the expected response is read and compared"),
        }
    }
    let level = json_level.unwrap_or_default();
    let json = match level {
        JsonLevel::Strict => Some("is-json"),
        JsonLevel::Lenient | JsonLevel::Repair => Some("contains-json"),
    };
    if let Some(schema) = schema {
        said.extend(json.map(|it| Said::new(it, Some(schema.clone()))));
    } else if let Some(format) = expected_format {
        let of_type = |it: &str| Some(serde_json::json!({ "type": it }));
        match format {
            ExpectedFormat::Text => {}
            ExpectedFormat::Json => said.extend(json.map(|it| Said::new(it, None))),
            ExpectedFormat::JsonObject => {
                said.extend(json.map(|it| Said::new(it, of_type("object"))));
            }
            ExpectedFormat::JsonArray => {
                said.extend(json.map(|it| Said::new(it, of_type("array"))));
            }
        }
    }
    if let Some(class) = expected_classification {
        match class.as_str() {
            "refusal" => said.push(Said::new("is-refusal", None)),
            class => lose(&format!("the expected class `{class}`")),
        }
    }
    said.extend(assertions.iter().filter_map(|it| assertion(it, lose)));
    said
}

/// A comparison, as an assertion or as a line of JavaScript.
fn matched(matcher: Matcher, expected: &Value) -> Option<Said> {
    let list = expected.as_array();
    let script = |text: String| Some(Said::new("javascript", Some(Value::from(text))));
    let all = list.map_or_else(|| serde_json::json!([expected]), |it| Value::Array(it.clone()));
    match matcher {
        Matcher::Exact if list.is_none() => Some(Said::new("equals", Some(expected.clone()))),
        Matcher::Exact => script(format!("{all}.includes(output)")),
        Matcher::Trimmed | Matcher::AnyOf => {
            script(format!("{all}.some(it => String(it).trim() === output.trim())"))
        }
        Matcher::Contains if list.is_some() => Some(Said::new("contains-any", Some(all))),
        Matcher::Contains => Some(Said::new("contains", Some(expected.clone()))),
        Matcher::Icontains if list.is_some() => Some(Said::new("icontains-any", Some(all))),
        Matcher::Icontains => Some(Said::new("icontains", Some(expected.clone()))),
        Matcher::StartsWith => {
            script(format!("{all}.some(it => output.trimStart().startsWith(it))"))
        }
        Matcher::Regex if list.is_none() => Some(Said::new("regex", Some(expected.clone()))),
        Matcher::Regex
        | Matcher::JsonEqual
        | Matcher::JsonSubset
        | Matcher::Command
        | Matcher::Number
        | Matcher::Choice => None,
    }
}

fn assertion(of: &Assertion, lose: &mut dyn FnMut(&str)) -> Option<Said> {
    let name = foreign_name(of.kind.test)?.to_owned();
    let kind = if of.kind.negated { format!("not-{name}") } else { name };
    let mut unsaid = |what: &str| {
        lose(&format!("{what} of the assertion `{}`", of.kind));
        None
    };
    if of.reading != Reading::default() {
        return unsaid("`extract`, `normalize`, `ignore`, `choices` or `tolerance`");
    }
    if of.stemmer.is_some() || of.word_order.is_some() {
        return unsaid("the settings");
    }
    if of.judging != probity_core::criteria::JudgeOptions::default() {
        return unsaid("what the judge is told");
    }
    let members = of.members.iter().filter_map(|it| assertion(it, lose)).collect();
    Some(Said {
        threshold: of.threshold,
        weight: of.weight,
        metric: of.metric.clone(),
        transform: of.transform.clone(),
        config: of.config.clone(),
        members,
        ..Said::new(kind, of.value.as_ref().map(as_is))
    })
}

/// A value that promptfoo does not fill in: ours is filled in already, or is none to be filled in.
fn as_is(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::from(literal(text)),
        Value::Array(items) => items.iter().map(as_is).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.clone(),
    }
}

/// Checks that promptfoo does not have, or means something else by.
const OURS: [AssertionTest; 16] = [
    AssertionTest::ExactMatch,
    AssertionTest::Number,
    AssertionTest::Choice,
    AssertionTest::TokenF1,
    AssertionTest::Rouge2,
    AssertionTest::RougeL,
    AssertionTest::Chrf,
    AssertionTest::EditSimilarity,
    AssertionTest::TimeToFirstToken,
    AssertionTest::ContextPrecision,
    AssertionTest::AnswerRelevance,
    AssertionTest::ToolCalled,
    AssertionTest::ToolsInOrder,
    AssertionTest::ToolCount,
    AssertionTest::Scorer,
    AssertionTest::Exec,
];

/// Checks that promptfoo calls something else.
const RENAMED: [(AssertionTest, &str); 4] = [
    (AssertionTest::Rouge1, "rouge-n"),
    (AssertionTest::ClosedQa, "model-graded-closedqa"),
    (AssertionTest::Factuality, "model-graded-factuality"),
    (AssertionTest::ValidToolCalls, "is-valid-openai-tools-call"),
];

/// What promptfoo calls the same check; none if it has no such check.
fn foreign_name(test: AssertionTest) -> Option<&'static str> {
    let renamed = RENAMED.iter().find(|(it, _)| *it == test).map(|(_, name)| *name);
    renamed.or_else(|| Some(test.as_str()).filter(|_| !OURS.contains(&test)))
}

/// Whether promptfoo has a check of this kind.
pub(super) fn is_known(of: &Assertion) -> bool {
    foreign_name(of.kind.test).is_some() && of.members.iter().all(is_known)
}
