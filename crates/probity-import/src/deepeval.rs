//! Goldens and test cases of DeepEval, in JSON, JSONL and CSV. Names are in snake or in camel case.

use std::collections::BTreeSet;

use probity_core::{
    case::TestCase,
    conversation::SimulatedUser,
    criteria::{Assertion, AssertionKind, AssertionTest},
    json::{Limits, parse_located},
    located::{Node, NodeValue},
    request::{Message, Role},
};
use serde_json::{Value, json};

use crate::{
    ImportError,
    cases::{Imported, literal, text},
    input,
    source::Source,
};

/// Names that only DeepEval has.
const OWN: &[&str] = &[
    "actual_output",
    "retrieval_context",
    "tools_called",
    "expected_tools",
    "additional_metadata",
    "custom_column_key_values",
    "expected_outcome",
    "user_description",
    "source_file",
];
/// What an application answered, and what that took.
const RECORDED: &[&str] = &[
    "actual_output",
    "tools_called",
    "token_cost",
    "completion_time",
    "success",
    "run_duration",
    "evaluation_cost",
    "order",
];
/// Lists that records stand in.
const LISTS: &[&str] = &["goldens", "test_cases", "conversational_goldens"];

/// Whether a record is a golden or a test case.
pub(crate) fn is_golden(record: &Node) -> bool {
    let has = |name: &str| field(record, name).is_some();
    let is_asked = has("input") || has("scenario") || has("turns");
    is_asked && OWN.iter().any(|it| has(it))
}

/// The list of goldens that a table has.
pub(crate) fn records(root: &Node) -> Option<&Node> {
    let lists = LISTS.iter().filter_map(|it| field(root, it));
    lists.into_iter().find(|it| it.items().first().is_some_and(is_golden))
}

/// A field, in either spelling.
fn field<'n>(record: &'n Node, name: &str) -> Option<&'n Node> {
    let found = record.get(name).or_else(|| record.get(&camel(name)))?;
    let is_empty = match &found.value {
        NodeValue::Null => true,
        NodeValue::String(text) => text.trim().is_empty(),
        NodeValue::Array(items) => items.is_empty(),
        NodeValue::Object(entries) => entries.is_empty(),
        NodeValue::Bool(_) | NodeValue::Number(_) => false,
    };
    (!is_empty).then_some(found)
}

fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let mut camel = words.next().unwrap_or_default().to_owned();
    for word in words {
        camel.push_str(&word[..1].to_uppercase());
        camel.push_str(&word[1..]);
    }
    camel
}

pub(crate) fn import(
    root: &Node,
    source: &Source,
    imported: &mut Imported<'_>,
) -> Result<(), ImportError> {
    let items = records(root).unwrap_or(root).items();
    if items.is_empty() {
        return Err(ImportError::shape("there is no golden in the file"));
    }
    let mut told = Told::default();
    for (at, node) in items.iter().enumerate() {
        imported.now_at(source.at(&node.span));
        let id = text(node, "name").unwrap_or_else(|| format!("golden-{}", at + 1));
        let mut case = TestCase { id, ..TestCase::default() };
        let asked = match field(node, "scenario").is_some() || field(node, "turns").is_some() {
            true => conversation(node, &mut case, imported, &mut told),
            false => question(node, &mut case),
        };
        if let Err(why) = asked {
            imported.lose(format!("a golden was left out: {why}"));
            continue;
        }
        notes(node, &mut case, imported, &mut told);
        assertions(node, &mut case, imported, &mut told);
        imported.add_asked(case);
    }
    Ok(())
}

/// What was said of the first golden that it is true of.
#[derive(Default)]
struct Told(BTreeSet<String>);

impl Told {
    fn assume(&mut self, imported: &mut Imported<'_>, what: impl Into<String>) {
        let what = what.into();
        if self.0.insert(what.clone()) {
            imported.assume(what);
        }
    }
}

fn question(node: &Node, case: &mut TestCase) -> Result<(), String> {
    let asked = field(node, "input").ok_or("there is no `input`")?;
    input::ask(case, input::said(asked)?);
    Ok(())
}

/// A golden whose user is played by a model.
fn conversation(
    node: &Node,
    case: &mut TestCase,
    imported: &mut Imported<'_>,
    told: &mut Told,
) -> Result<(), String> {
    for turn in turns(node)? {
        let role = match turn.get("role").and_then(Node::as_str) {
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            Some(_) | None => return Err("a turn whose role is neither user nor assistant".into()),
        };
        let content = turn.get("content").and_then(Node::as_str).ok_or("a turn without content")?;
        case.ask.messages.push(Message::text(role, literal(content)));
    }
    let is_open = case.ask.messages.last().is_some_and(|it| it.role == Role::Assistant);
    if is_open {
        let what = "the last turn is the assistant's, which the model answers anew";
        told.assume(imported, what);
        case.ask.messages.pop();
    }
    if case.ask.messages.is_empty() {
        told.assume(imported, "the golden does not say how the user begins: with `Hello.`");
        case.prompt = "Hello.".into();
    }
    if let Some(scenario) = text(node, "scenario") {
        let persona = field(node, "persona").and_then(|it| it.get("characteristics"));
        let persona = persona.or_else(|| field(node, "user_description")).and_then(Node::as_str);
        let persona = persona.map(|it| format!("\nYou are: {it}")).unwrap_or_default();
        let instructions = format!("You are the user in this scenario: {scenario}{persona}");
        case.conversation.user = Some(SimulatedUser {
            instructions: literal(&instructions),
            ..SimulatedUser::default()
        });
    }
    Ok(())
}

/// What was said before. In a cell of a CSV file it is JSON.
fn turns(node: &Node) -> Result<Vec<Node>, String> {
    let Some(turns) = field(node, "turns") else { return Ok(Vec::new()) };
    let parsed = match &turns.value {
        NodeValue::String(cell) => parse_located(cell, &Limits::default())
            .map_err(|error| format!("`turns` is no JSON: {}", error.kind))?,
        NodeValue::Null
        | NodeValue::Bool(_)
        | NodeValue::Number(_)
        | NodeValue::Array(_)
        | NodeValue::Object(_) => turns.clone(),
    };
    match parsed.value {
        NodeValue::Array(items) => Ok(items),
        NodeValue::Null
        | NodeValue::Bool(_)
        | NodeValue::Number(_)
        | NodeValue::String(_)
        | NodeValue::Object(_) => Err("`turns` is no list".to_owned()),
    }
}

/// Fields that change nothing of what is asked.
fn notes(node: &Node, case: &mut TestCase, imported: &mut Imported<'_>, told: &mut Told) {
    case.notes = text(node, "comments");
    if let Some(file) = field(node, "source_file").and_then(Node::as_str) {
        case.tags.push(format!("source:{file}"));
    }
    for name in ["additional_metadata", "metadata", "custom_column_key_values"] {
        if let Some(value) = field(node, name) {
            case.prompt_vars.insert(name.to_owned(), value.to_json());
        }
    }
    for name in RECORDED {
        if field(node, name).is_some() {
            let what = format!("`{name}` is what an application did: the model is asked anew");
            told.assume(imported, what);
        }
    }
    let context = field(node, "retrieval_context").or_else(|| field(node, "context"));
    if let Some(context) = context {
        case.prompt_vars.insert("context".to_owned(), passages(context));
    }
}

/// A list of texts; in a cell of a CSV file they stand between bars.
fn passages(node: &Node) -> Value {
    match &node.value {
        NodeValue::String(cell) => match serde_json::from_str(cell) {
            Ok(list @ Value::Array(_)) => list,
            Ok(_) | Err(_) => cell.split('|').map(|it| Value::from(it.trim())).collect(),
        },
        NodeValue::Null
        | NodeValue::Bool(_)
        | NodeValue::Number(_)
        | NodeValue::Array(_)
        | NodeValue::Object(_) => node.to_json(),
    }
}

fn assertion(test: AssertionTest, value: Option<Value>) -> Assertion {
    Assertion { value, ..Assertion::new(AssertionKind { negated: false, test }) }
}

fn assertions(node: &Node, case: &mut TestCase, imported: &mut Imported<'_>, told: &mut Told) {
    let expected = text(node, "expected_output").or_else(|| text(node, "expectedOutput"));
    let expected = expected.map(|it| Value::from(literal(&it)));
    let named = field(node, "metrics").or_else(|| field(node, "metrics_data"));
    for metric in named.map(Node::items).unwrap_or_default() {
        match of_metric(metric, expected.as_ref()) {
            Ok(made) => case.criteria.assertions.push(made),
            Err(name) => imported.lose(format!("metric `{name}` has no counterpart")),
        }
    }
    if let Some(tools) = field(node, "expected_tools") {
        let called = tools_of(tools);
        case.criteria.assertions.push(assertion(AssertionTest::ToolCalled, Some(called)));
        let what = "the tools themselves are not in the file: describe them under `tools`";
        told.assume(imported, what);
    }
    if let Some(outcome) = field(node, "expected_outcome").and_then(Node::as_str) {
        let rubric = Value::from(literal(outcome));
        case.criteria.assertions.push(assertion(AssertionTest::LlmRubric, Some(rubric)));
    }
    if named.is_none()
        && let Some(expected) = expected
    {
        let what = "DeepEval names metrics in Python: `expected_output` is judged by `factuality`";
        told.assume(imported, what);
        case.criteria.assertions.push(assertion(AssertionTest::Factuality, Some(expected)));
    }
    if case.criteria.is_empty() {
        imported.lose("no expected output: the case has no criterion");
    }
}

/// The assertion that a metric is; its name if there is none.
fn of_metric(metric: &Node, expected: Option<&Value>) -> Result<Assertion, String> {
    let name = metric.as_str().map(ToOwned::to_owned).or_else(|| text(metric, "name"));
    let name = name.unwrap_or_default();
    let key: String = name.chars().filter(|c| c.is_alphanumeric()).collect();
    let key = key.to_lowercase();
    let criteria = || text(metric, "criteria").map(|it| Value::from(literal(&it)));
    let (test, value) = match key.trim_end_matches("metric") {
        "answerrelevancy" => (AssertionTest::AnswerRelevance, None),
        "faithfulness" => (AssertionTest::ContextFaithfulness, None),
        "contextualrecall" => (AssertionTest::ContextRecall, expected.cloned()),
        "contextualprecision" => (AssertionTest::ContextPrecision, expected.cloned()),
        "contextualrelevancy" => (AssertionTest::ContextRelevance, None),
        "exactmatch" => (AssertionTest::ExactMatch, expected.cloned()),
        key if key.ends_with("geval") => {
            let value = criteria().ok_or_else(|| name.clone())?;
            (AssertionTest::GEval, Some(value))
        }
        _ => return Err(name),
    };
    let threshold = metric.get("threshold").and_then(|it| it.to_json().as_f64());
    Ok(Assertion { threshold, ..assertion(test, value) })
}

/// Calls that are expected: a list of tables or names, or a cell of a CSV file.
fn tools_of(node: &Node) -> Value {
    let listed = match &node.value {
        NodeValue::String(cell) => serde_json::from_str(cell)
            .unwrap_or_else(|_| cell.split(';').map(|it| Value::from(it.trim())).collect()),
        NodeValue::Null
        | NodeValue::Bool(_)
        | NodeValue::Number(_)
        | NodeValue::Array(_)
        | NodeValue::Object(_) => node.to_json(),
    };
    let tool = |value: &Value| match value {
        Value::Object(tool) => {
            let arguments = tool.get("input_parameters").or_else(|| tool.get("inputParameters"));
            let name = tool.get("name").cloned().unwrap_or_default();
            match arguments.filter(|it| it.as_object().is_some_and(|it| !it.is_empty())) {
                Some(arguments) => json!({ "name": name, "arguments": arguments }),
                None => name,
            }
        }
        other @ (Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)) => other.clone(),
    };
    match listed {
        Value::Array(items) => items.iter().map(tool).collect(),
        one @ (Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Object(_)) => Value::from(vec![tool(&one)]),
    }
}
