//! What of a case of another tool can be said as one of ours.

use probity_core::{
    case::{AskSpec, TestCase},
    criteria::{Asks, Assertion, AssertionKind, AssertionTest, Criteria},
    request::{Request, Role},
};
use probity_load::template;
use serde_json::Value;

use crate::cases::literal;

/// The runner of results of tools that have no name for one; that of imported configurations.
pub(super) const RUNNER: &str = "tests";

/// A case that asks what was asked.
pub(super) fn case_of(request: &Request) -> TestCase {
    if request.is_plain() {
        let (system, prompt) = (request.system().map(literal), literal(request.prompt()));
        return TestCase { prompt: prompt.into(), system, ..TestCase::default() };
    }
    let mut messages = request.messages.clone();
    for message in messages.iter_mut().filter(|it| it.role != Role::Tool) {
        for part in &mut message.content {
            if let probity_core::request::Part::Text(text) = part {
                *text = literal(text).into();
            }
        }
    }
    let ask = AskSpec { messages, ..AskSpec::default() };
    TestCase { ask, ..TestCase::default() }
}

/// Assertions of promptfoo as ours; none unless all of them can be checked without asking anybody
/// and mean the same here.
pub(super) fn promptfoo(assertions: &[Value], threshold: Option<f64>) -> Option<Criteria> {
    let assertions: Option<Vec<Assertion>> = assertions.iter().map(assertion).collect();
    let assertions = assertions.filter(|it| !it.is_empty())?;
    Some(Criteria { assertions, threshold, ..Criteria::default() })
}

/// Fields of an assertion that mean the same in both.
const PLAIN: &[&str] = &["type", "value", "threshold", "weight", "metric", "assert"];

fn assertion(value: &Value) -> Option<Assertion> {
    let fields = value.as_object()?;
    let kind = AssertionKind::named(fields.get("type")?.as_str()?)?;
    // What looks at more than the text needs what other tools do not write down.
    let is_known =
        kind.test.asks() == Asks::Nobody && !kind.test.runs_code() && kind.test.takes_transform();
    // A value that is a template or a file was filled in when the tool checked it, and is not here.
    let is_filled = fields.get("value").is_none_or(is_filled);
    if !is_known || !is_filled || fields.keys().any(|it| !PLAIN.contains(&it.as_str())) {
        return None;
    }
    let members: Option<Vec<Assertion>> = match fields.get("assert") {
        Some(members) => members.as_array()?.iter().map(assertion).collect(),
        None => Some(Vec::new()),
    };
    Some(Assertion {
        value: fields.get("value").cloned(),
        weight: fields.get("weight").and_then(Value::as_f64),
        threshold: fields.get("threshold").and_then(Value::as_f64),
        metric: fields.get("metric").and_then(Value::as_str).map(ToOwned::to_owned),
        members: members?,
        ..Assertion::new(kind)
    })
}

/// Whether no text in a value is a template or names a file.
fn is_filled(value: &Value) -> bool {
    match value {
        Value::String(text) => !template::is_template(text) && !text.starts_with("file://"),
        Value::Array(items) => items.iter().all(is_filled),
        Value::Object(fields) => fields.values().all(is_filled),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

/// What a scorer of Inspect checks, where ours can check the same.
pub(super) fn inspect(
    scorer: &str,
    options: impl Fn(&str) -> Option<Value>,
    target: &Value,
) -> Option<Criteria> {
    let targets: Vec<&str> = match target {
        Value::String(text) => vec![text],
        Value::Array(texts) => texts.iter().map(Value::as_str).collect::<Option<_>>()?,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => return None,
    };
    let on = |name: &str, usual: bool| options(name).and_then(|it| it.as_bool()).unwrap_or(usual);
    let of = |test: AssertionTest| AssertionKind { negated: false, test };
    let value = |it: Vec<Value>| Some(Value::Array(it)).filter(|_| !targets.is_empty());
    let texts = || targets.iter().map(|it| Value::from(*it)).collect();
    let checked = match scorer {
        "includes" if on("ignore_case", true) => {
            Assertion { value: value(texts()), ..Assertion::new(of(AssertionTest::IcontainsAny)) }
        }
        "includes" => {
            Assertion { value: value(texts()), ..Assertion::new(of(AssertionTest::ContainsAny)) }
        }
        _ => return None,
    };
    checked.value.is_some().then(|| Criteria { assertions: vec![checked], ..Criteria::default() })
}
