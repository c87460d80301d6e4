//! Records with a prompt and the answer to it, under the names that people give the two: tables of
//! questions, Inspect's samples, lines of OpenAI's evals and of chats for fine-tuning.

use crate::{
    ImportError,
    cases::{Imported, text},
    choices, input,
    source::Source,
};
use probity_core::{
    case::TestCase,
    criteria::{Criteria, Matcher},
    located::{Node, NodeValue},
    request::{Message, Role},
};
use serde_json::{Map, Value};

const PROMPTS: &[&str] = &["prompt", "input", "question", "instruction", "query", "messages"];
const ANSWERS: &[&str] = &[
    "expected",
    "expected_response",
    "expected_output",
    "target",
    "answer",
    "answerKey",
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
    // A row of a table may be shorter than the others.
    let known = |name: &str| {
        first.get(name).is_some() || root.items().iter().any(|it| it.get(name).is_some())
    };
    let found = |names: &[&'static str]| {
        let of_first = names.iter().copied().find(|it| first.get(it).is_some());
        of_first.or_else(|| names.iter().copied().find(|it| known(it)))
    };
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
    let choices = match names.choices.and_then(|it| node.get(it)).map(Choices::read) {
        Some(Ok(choices)) => choices,
        Some(Err(why)) => return imported.lose(format!("a record was left out: {why}")),
        None => Choices::default(),
    };
    let answer = names.answer.and_then(|it| node.get(it)).map(Node::to_json);
    let answer = answer.or(own.map(|it| Value::from(it.1))).filter(|it| !is_nothing(it));
    case.criteria = criteria(answer, choices);
    // A template of the runner has no place for messages.
    if !choices::are_letters(&case.criteria.reading.choices)
        && let Some(last) = case.ask.messages.iter_mut().rfind(|it| it.role == Role::User)
    {
        *last = Message::text(Role::User, last.joined() + &choices::asked());
    }
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

/// The choices of a record, and what the record calls each of them.
#[derive(Debug, Default)]
struct Choices {
    texts: Vec<String>,
    labels: Vec<String>,
}

impl Choices {
    /// Reads a list, a table, or the JSON of one in a cell.
    fn read(node: &Node) -> Result<Self, String> {
        let value = match &node.value {
            NodeValue::String(cell) => {
                serde_json::from_str(cell).unwrap_or_else(|_| Value::from(cell.as_str()))
            }
            NodeValue::Null
            | NodeValue::Bool(_)
            | NodeValue::Number(_)
            | NodeValue::Array(_)
            | NodeValue::Object(_) => node.to_json(),
        };
        match &value {
            Value::Object(table) => Self::of_table(table),
            Value::String(text) => {
                let texts = text.split([';', '|']).map(|it| it.trim().to_owned()).collect();
                Ok(Self { texts, ..Self::default() })
            }
            Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {
                Ok(Self { texts: texts(&value), ..Self::default() })
            }
        }
    }

    /// Reads `{"text": […], "label": […]}`, as Hugging Face has it, or `{"A": …, "B": …}`.
    fn of_table(table: &Map<String, Value>) -> Result<Self, String> {
        if let Some(text) = table.get("text").filter(|it| it.is_array()) {
            let labels = table.get("label").map(texts).unwrap_or_default();
            return Ok(Self { texts: texts(text), labels });
        }
        let lettered = (0..table.len()).map(|at| table.get(choices::letter(at)?));
        match lettered.collect::<Option<Vec<&Value>>>() {
            Some(values) => {
                Ok(Self { texts: values.into_iter().map(plain).collect(), ..Self::default() })
            }
            None => Err("its choices are a table with neither `text` nor letters".to_owned()),
        }
    }
}

/// The texts of a list.
fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(plain).collect()
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

fn criteria(answer: Option<Value>, choices: Choices) -> Criteria {
    let Some(answer) = answer else { return Criteria::default() };
    let mut criteria = Criteria::default();
    let Choices { texts, labels } = choices;
    if texts.len() > 1 {
        // A label names its choice; a number that is none is the place of one.
        let labelled = labels.iter().position(|it| *it == plain(&answer));
        let place = labelled.or_else(|| answer.as_u64().and_then(|it| usize::try_from(it).ok()));
        let letter = place.and_then(choices::letter).map(Value::from);
        criteria.expected_response = Some(letter.unwrap_or(answer));
        criteria.reading.choices = texts;
        return criteria;
    }
    // One choice is none: it is what the answer means.
    if let [only] = texts.as_slice()
        && (answer == 0 || answer == "A" || labels.first().is_some_and(|it| answer == it.as_str()))
    {
        criteria.matcher = Some(Matcher::Trimmed);
        criteria.expected_response = Some(Value::from(only.as_str()));
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
