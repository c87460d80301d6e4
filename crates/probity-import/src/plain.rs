//! Records with a prompt and the answer to it, under the names that people give the two: tables of
//! questions, Inspect's samples, lines of OpenAI's evals and of chats for fine-tuning.

use crate::{
    ImportError,
    cases::{Imported, text},
    input,
    source::Source,
};
use probity_core::{
    case::TestCase,
    criteria::{Criteria, Matcher},
    located::{Node, NodeValue},
    request::Role,
};
use serde_json::Value;

const PROMPTS: &[&str] = &["prompt", "input", "question", "instruction", "query", "messages"];
const ANSWERS: &[&str] = &[
    "expected",
    "expected_response",
    "expected_output",
    "target",
    "answer",
    "ideal",
    "label",
    "output",
    "reference",
    "completion",
    "response",
];
const CHOICES: &[&str] = &["choices", "options"];
/// Names of lists that records stand in.
const LISTS: &[&str] = &["samples", "data", "examples", "records", "rows", "questions"];
/// What Inspect's samples have for a sandbox.
const SANDBOX: &[&str] = &["files", "sandbox", "setup"];
const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// Whether a record has a prompt and an answer.
pub(crate) fn is_plain(record: &Node) -> bool {
    let has = |names: &[&str]| names.iter().any(|it| record.get(it).is_some());
    has(PROMPTS) && (has(ANSWERS) || has(CHOICES)) || ends_with_an_answer(record)
}

/// The list of records that a table has.
pub(crate) fn records(root: &Node) -> Option<&Node> {
    let lists = LISTS.iter().filter_map(|it| root.get(it));
    lists.into_iter().find(|it| it.items().first().is_some_and(is_plain))
}

fn ends_with_an_answer(record: &Node) -> bool {
    let last = record.get("messages").and_then(|it| it.items().last());
    last.and_then(|it| it.get("role")).and_then(Node::as_str) == Some("assistant")
}

pub(crate) fn import(
    root: &Node,
    source: &Source,
    imported: &mut Imported<'_>,
) -> Result<(), ImportError> {
    let root = records(root).unwrap_or(root);
    let Some(first) = root.items().first() else {
        return Err(ImportError::shape("there is no record in the file"));
    };
    let found = |names: &[&'static str]| names.iter().copied().find(|it| first.get(it).is_some());
    let Some(prompt) = found(PROMPTS) else {
        return Err(ImportError::shape("the columns `prompt` and `expected` are not there"));
    };
    let names = Names { prompt, answer: found(ANSWERS), choices: found(CHOICES) };
    if names.answer.is_none() && names.choices.is_none() && !ends_with_an_answer(first) {
        return Err(ImportError::shape("the columns `prompt` and `expected` are not there"));
    }
    for (at, node) in root.items().iter().enumerate() {
        imported.now_at(source.at(&node.span));
        let id = text(node, "id").unwrap_or_else(|| format!("case-{}", at + 1));
        record(node, id, &names, imported);
    }
    Ok(())
}

/// What the fields of the first record are called.
struct Names {
    prompt: &'static str,
    answer: Option<&'static str>,
    choices: Option<&'static str>,
}

fn record(node: &Node, id: String, names: &Names, imported: &mut Imported<'_>) {
    let asked = node.get(names.prompt).ok_or_else(String::new).and_then(input::said);
    let mut said = match asked {
        Ok(said) => said,
        Err(why) if why.is_empty() => {
            return imported.lose("a record without a prompt was left out");
        }
        Err(why) => return imported.lose(format!("a record was left out: {why}")),
    };
    let own = (names.answer.is_none() && said.len() > 1)
        .then(|| said.pop_if(|it| it.0 == Role::Assistant))
        .flatten();
    let mut case = TestCase { id, ..TestCase::default() };
    input::ask(&mut case, said);
    if let Some(system) = text(node, "system").filter(|_| case.system.is_none()) {
        case.system = Some(crate::cases::literal(&system));
    }
    let choices = names.choices.map(|it| listed(node, it)).unwrap_or_default();
    let answer = names.answer.and_then(|it| node.get(it)).map(Node::to_json);
    let answer = answer.or(own.map(|it| Value::from(it.1))).filter(|it| !is_nothing(it));
    case.criteria = criteria(answer, choices);
    if case.criteria.is_empty() {
        imported.lose("no expected answer: the case has no criterion");
    }
    let used = ["id", "system", names.prompt];
    let used: Vec<&str> = used.into_iter().chain(names.answer).chain(names.choices).collect();
    for entry in node.entries().iter().filter(|it| !used.contains(&it.key.as_str())) {
        let value = entry.node.to_json();
        match entry.key.as_str() {
            _ if is_nothing(&value) => {}
            key if SANDBOX.contains(&key) => {
                imported.lose(format!("`{key}` is for a sandbox, which there is not"));
            }
            "tags" => case.tags = crate::cases::texts(node, "tags"),
            // Assertions can name them.
            key => drop(case.prompt_vars.insert(key.to_owned(), value)),
        }
    }
    imported.add_asked(case);
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The texts of a list, or of the JSON in a cell.
fn listed(node: &Node, key: &str) -> Vec<String> {
    let Some(value) = node.get(key) else { return Vec::new() };
    let value = match &value.value {
        NodeValue::String(cell) => {
            serde_json::from_str(cell).unwrap_or_else(|_| Value::from(cell.as_str()))
        }
        NodeValue::Null
        | NodeValue::Bool(_)
        | NodeValue::Number(_)
        | NodeValue::Array(_)
        | NodeValue::Object(_) => value.to_json(),
    };
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
    match value {
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::String(text) => text.split([';', '|']).map(|it| it.trim().to_owned()).collect(),
        Value::Object(map) => map.values().map(plain).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

fn criteria(answer: Option<Value>, choices: Vec<String>) -> Criteria {
    let Some(answer) = answer else { return Criteria::default() };
    let mut criteria = Criteria::default();
    if choices.len() > 1 {
        // A number is the place of a choice.
        let place = answer.as_u64().and_then(|it| usize::try_from(it).ok());
        let letter = place.and_then(|it| LETTERS.get(it..=it)).map(Value::from);
        criteria.expected_response = Some(letter.unwrap_or(answer));
        criteria.reading.choices = choices;
        return criteria;
    }
    let answer = match answer {
        Value::Number(number) => Value::from(number.to_string()),
        Value::Bool(value) => Value::from(value.to_string()),
        answer @ (Value::Null | Value::String(_) | Value::Array(_) | Value::Object(_)) => answer,
    };
    criteria.matcher = answer.is_string().then_some(Matcher::Trimmed);
    criteria.expected_response = Some(answer);
    criteria
}
