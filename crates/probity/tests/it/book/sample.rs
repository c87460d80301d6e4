//! Blocks that are files, or parts of files: held to what the program reads.

use std::{collections::BTreeSet, fs};

use probity_load::dataset::parse_yaml;
use serde_json::{Value as Json, json};
use toml::{Table, Value};

use super::{page::Block, session::Session};

/// Under this name a block stands in the project of its page while it is looked at.
const NAME: &str = "block-of-this-page";

/// What is wrong with a block that is no command.
pub(super) fn problem(block: &Block, session: &Session<'_>) -> Option<String> {
    let text = block.text();
    match block.language.as_str() {
        "toml" => toml_problem(block, session),
        "yaml" if is_yaml_suite(&text) => suite_problem("yaml", &text, session),
        "yaml" if is_yaml_dataset(&text) => dataset_problem("yaml", &text, session),
        // Of workflows and configurations of other tools it is known that they can be read.
        "yaml" => parse_yaml(&text).err().map(|error| error.message),
        "json" => json_problem(&text),
        "jsonl" if block.says("as") == Some("lines") => json_problem(&text),
        "jsonl" => dataset_problem("jsonl", &text, session),
        "python" => python_problem(&text, session),
        "sql" => sql_problem(&text, session),
        _ => None,
    }
}

fn has_line(text: &str, beginning: &str) -> bool {
    text.lines().any(|it| it.starts_with(beginning))
}

fn is_yaml_suite(text: &str) -> bool {
    has_line(text, "runners:")
}

fn is_yaml_dataset(text: &str) -> bool {
    has_line(text, "- id:") || has_line(text, "test_cases:")
}

#[derive(PartialEq, Eq)]
enum Kind {
    Suite,
    /// The inside of a runner.
    Runner,
    Dataset,
    /// The inside of a case.
    Case,
    World,
    /// Rules for errors.
    Errors,
}

/// What a block of TOML is: what the page says, else what its keys say. What is nothing else is a
/// suite.
fn kind_of(block: &Block) -> Result<(Kind, Table), String> {
    let table: Table = block.text().parse().map_err(|it: toml::de::Error| it.to_string())?;
    let has = |key: &str| table.contains_key(key);
    let inside = ["assert", "tool_results", "expected_response", "turns"];
    let kind = match block.says("as") {
        Some("suite") => Kind::Suite,
        Some("runner") => Kind::Runner,
        Some("dataset") => Kind::Dataset,
        Some("case") => Kind::Case,
        Some("world") => Kind::World,
        Some("errors") => Kind::Errors,
        Some(other) => return Err(format!("`as: {other}` is unknown")),
        None if has("test_cases") => Kind::Dataset,
        None if inside.iter().any(|it| has(it)) => Kind::Case,
        None => Kind::Suite,
    };
    Ok((kind, table))
}

fn toml_problem(block: &Block, session: &Session<'_>) -> Option<String> {
    let (kind, table) = match kind_of(block) {
        Ok(it) => it,
        Err(error) => return Some(error),
    };
    match kind {
        Kind::Suite => match block.says("file") {
            Some(name) if table.contains_key("runners") => suite_file_problem(name, session),
            _ => completed_problem(table, session),
        },
        Kind::Runner => completed_problem(one("runners", table.into()), session),
        // `[[test_cases.assert]]` alone is about a case that stands before it.
        Kind::Dataset => match table["test_cases"].as_table() {
            Some(case) => case_problem(case.clone(), session),
            None => dataset_problem("toml", &block.text(), session),
        },
        Kind::Case => case_problem(table, session),
        Kind::World => with_file(session, &format!("{NAME}.toml"), &block.text(), |name| {
            let done = session.probity(&["sandbox", "--world", name, "true"]);
            (done.code != 0).then_some(done.output)
        }),
        Kind::Errors => with_file(session, &format!("{NAME}-rules.toml"), &block.text(), |name| {
            completed_problem(one("errors", one("rules", name.into()).into()), session)
        }),
    }
}

fn one(key: &str, value: Value) -> Table {
    let mut table = Table::new();
    table.insert(key.to_owned(), value);
    table
}

/// Looks at a file that is there for that time only.
fn with_file(
    session: &Session<'_>,
    name: &str,
    text: &str,
    look: impl FnOnce(&str) -> Option<String>,
) -> Option<String> {
    let path = session.project().join(name);
    fs::write(&path, text).unwrap();
    let found = look(name);
    fs::remove_file(path).unwrap();
    found
}

/// Reads a part of a case, with what it leaves out.
fn case_problem(mut case: Table, session: &Session<'_>) -> Option<String> {
    if !["prompt", "messages", "turns"].iter().any(|it| case.contains_key(*it)) {
        case.insert("prompt".to_owned(), "Hello.".into());
    }
    case.entry("id").or_insert("a".into());
    let cases = one("test_cases", Value::Array(vec![case.into()]));
    dataset_problem("toml", &cases.to_string(), session)
}

/// Loads a part of a suite, with what it leaves out: backends, a runner, datasets.
fn completed_problem(mut suite: Table, session: &Session<'_>) -> Option<String> {
    // `[runners.gates]` alone is about a runner that stands before it.
    if let Some(Value::Table(runner)) = suite.get("runners").cloned() {
        suite.insert("runners".to_owned(), Value::Array(vec![runner.into()]));
    }
    let runners = suite.entry("runners").or_insert_with(|| Value::Array(vec![Table::new().into()]));
    let mut named = BTreeSet::new();
    let mut files = Vec::new();
    for runner in runners.as_array_mut().into_iter().flatten().filter_map(Value::as_table_mut) {
        runner.entry("name").or_insert("a".into());
        let kind = runner.get("kind").and_then(Value::as_str).unwrap_or("respond").to_owned();
        if kind != "program" {
            runner.entry("dataset").or_insert("cases-of-this-page.jsonl".into());
        }
        for key in ["judge", "judges", "backends", "embeddings", "reranker", "user"] {
            named.extend(words(runner.get(key)));
        }
        for gate in runner.get("gates").and_then(Value::as_table).into_iter().flatten() {
            named.extend(words(gate.1.get("backend")));
        }
        for key in ["dataset", "examples"] {
            files.extend(words(runner.get(key)).into_iter().map(|it| (kind.clone(), it)));
        }
    }
    for key in ["embeddings", "reranker", "user"] {
        named.extend(words(suite.get(key)));
    }
    if let Some(judge) = suite.get("judge") {
        named.extend(words(judge.get("backend")));
        named.extend(words(judge.get("backends")));
    }
    let backends = suite.entry("backends").or_insert_with(|| Table::new().into());
    let backends = backends.as_table_mut()?;
    if backends.is_empty() {
        backends.insert("local".to_owned(), one("kind", "echo".into()).into());
    }
    for name in named {
        backends.entry(name).or_insert_with(|| {
            let mut server = one("kind", "openai".into());
            server.insert("base_url".to_owned(), "http://127.0.0.1:9/v1".into());
            server.insert("model".to_owned(), "m".into());
            server.into()
        });
    }
    let mut made = Vec::new();
    for (kind, file) in files.iter().filter(|(_, it)| !it.starts_with("file://")) {
        let path = session.project().join(file);
        if !path.exists() {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, cases(kind, file)).unwrap();
            made.push(path);
        }
    }
    let found = suite_problem("toml", &suite.to_string(), session);
    made.iter().for_each(|it| fs::remove_file(it).unwrap());
    found
}

/// The words of a value that is one or several.
fn words(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::String(word)) => vec![word.clone()],
        Some(Value::Array(all)) => {
            all.iter().filter_map(Value::as_str).map(ToOwned::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

/// A dataset for a kind of runner, in the form that its name says.
fn cases(kind: &str, file: &str) -> String {
    let case = |at: u8| match kind {
        "command" => json!({
            "id": format!("case-{at}"),
            "prompt": format!("show the first {at} lines"),
            "expected_command": format!("head -n {at}"),
            "category": "correctness",
            "safe": true,
            "posix_compliant": true,
        }),
        _ => json!({
            "id": format!("case-{at}"),
            "prompt": format!("What is {at} and one?"),
            "expected_response": format!("{}", at + 1),
        }),
    };
    let cases: Vec<Json> = (1..=8).map(case).collect();
    match file.rsplit('.').next() {
        Some("jsonl") => cases.iter().flat_map(|it| [it.to_string(), "\n".to_owned()]).collect(),
        Some("toml") => toml::to_string(&json!({ "test_cases": cases })).unwrap(),
        // YAML reads JSON.
        _ => format!("{}\n", Json::Array(cases)),
    }
}

fn suite_problem(ending: &str, text: &str, session: &Session<'_>) -> Option<String> {
    with_file(session, &format!("{NAME}.{ending}"), text, |name| suite_file_problem(name, session))
}

fn suite_file_problem(name: &str, session: &Session<'_>) -> Option<String> {
    let done = session.probity(&["run", "--dry-run", name]);
    (done.code != 0).then_some(done.output)
}

fn dataset_problem(ending: &str, text: &str, session: &Session<'_>) -> Option<String> {
    let name = format!("{NAME}.{ending}");
    with_file(session, &name, text, |name| dataset_file_problem(name, session))
}

/// A dataset may lack its version and what decides a case where a page is about something else.
fn dataset_file_problem(name: &str, session: &Session<'_>) -> Option<String> {
    let done = session.probity(&["dataset", "validate", "--json", name]);
    let lines = done.output.lines().filter_map(|it| serde_json::from_str::<Json>(it).ok());
    let problems = lines.filter(|it| {
        let code = it["code"].as_str();
        code.is_some_and(|it| it != "missing-version" && it != "no-criterion")
    });
    let problems: Vec<String> =
        problems.map(|it| format!("line {}: {}", it["line"], it["message"])).collect();
    match problems.is_empty() {
        true if done.code == 0 => None,
        true => Some(done.output),
        false => Some(problems.join("\n")),
    }
}

/// One value, or one in each line.
fn json_problem(text: &str) -> Option<String> {
    let whole = serde_json::from_str::<Json>(text);
    let mut lines = text.lines().filter(|it| !it.trim().is_empty());
    let wrong = lines.find_map(|it| serde_json::from_str::<Json>(it).err());
    whole.is_err().then_some(wrong?.to_string())
}

fn python_problem(text: &str, session: &Session<'_>) -> Option<String> {
    with_file(session, &format!("{NAME}.py"), text, |name| {
        let code = format!("compile(open(\"{name}\").read(), \"{name}\", \"exec\")");
        let done = session.run(&mut session.project(), &format!("python3 -c '{code}'"));
        (done.code != 0).then_some(done.output)
    })
}

/// A query has to fit the store of the page.
fn sql_problem(text: &str, session: &Session<'_>) -> Option<String> {
    let store = rusqlite::Connection::open(session.project().join(".probity/probity.db"));
    let store = match store {
        Ok(store) => store,
        Err(error) => return Some(format!("the page has no store: {error}")),
    };
    store.prepare(text).err().map(|it| it.to_string())
}
