//! The parts of the reference that are made from the program: its schemas, its help, its store.
//!
//! A page holds such a part between `<!-- generated: NAME -->` and `<!-- generated: end -->`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
};

use serde_json::{Map, Value};

use super::{is_updating, page::Page, root, session::Session, site};
use crate::project::Project;

const BEGIN: &str = "<!-- generated: ";
const END: &str = "<!-- generated: end -->";

fn made(name: &str) -> String {
    match name {
        "suite" => Tables::of("suite").written(),
        "case" => Tables::of("case").written(),
        "events" => Tables::of("event").events(),
        "schemas" => commands_of(&printed(&["schema"])),
        "metrics" => metrics(),
        "commands" => commands(),
        "settings" => format!("```toml\n{}```\n", printed(&["config", "default"])),
        "store" => store(),
        "safety" => safety(),
        name => panic!("nothing is made under the name `{name}`"),
    }
}

#[test]
fn what_is_generated_is_up_to_date() {
    let mut stale = Vec::new();
    let mut seen = 0;
    for name in site() {
        let text = fs::read_to_string(root().join(&name)).unwrap();
        let mut parts = text.split(BEGIN);
        let mut new = parts.next().unwrap().to_owned();
        for part in parts {
            let (what, rest) = part.split_once(" -->\n").unwrap();
            if what == "end" {
                let _ = write!(new, "{END}\n{rest}");
            } else {
                seen += 1;
                let _ = write!(new, "{BEGIN}{what} -->\n\n{}\n", made(what));
            }
        }
        if new != text {
            if is_updating() {
                fs::write(root().join(&name), new).unwrap();
            }
            stale.push(name);
        }
    }
    assert!(stale.is_empty() || is_updating(), "PROBITY_BOOK=update writes {stale:?} anew");
    assert!(seen > 8, "{seen} parts are generated");
}

fn printed(words: &[&str]) -> String {
    let output = Project::new().run(words);
    assert!(output.status.success(), "{words:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn schema(name: &str) -> Value {
    serde_json::from_str(&printed(&["schema", name])).unwrap()
}

/// A text for a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// What is written of a schema: a table for each object, in the order in which they are reached.
struct Tables {
    schema: Value,
}

/// An object of a schema, with the keys that lead to it.
struct Object {
    path: String,
    /// Its name among the definitions, if it has one.
    name: Option<String>,
    about: Option<String>,
    properties: Map<String, Value>,
    required: Vec<String>,
}

impl Tables {
    fn of(name: &str) -> Self {
        Self { schema: schema(name) }
    }

    /// What a reference leads to: a definition, or a part of one.
    fn definition(&self, reference: &str) -> (&str, &Value) {
        let path = reference.strip_prefix('#').unwrap();
        let found = self.schema.pointer(path);
        let found = found.unwrap_or_else(|| panic!("`{reference}` leads nowhere"));
        let names = self.schema["$defs"].as_object().unwrap();
        let name = path.strip_prefix("/$defs/").and_then(|it| names.get_key_value(it));
        (name.map_or("", |(name, _)| name), found)
    }

    /// The object that a schema is, leads to, or lists, with the way there.
    fn object(&self, schema: &Value, path: &str) -> Option<Object> {
        if let Some(reference) = schema["$ref"].as_str() {
            let (name, found) = self.definition(reference);
            let mut object = self.object(found, path)?;
            if !name.is_empty() {
                object.name.get_or_insert_with(|| name.to_owned());
            }
            return Some(object);
        }
        if let Some(properties) = schema["properties"].as_object() {
            let required = schema["required"].as_array().into_iter().flatten();
            return Some(Object {
                path: path.to_owned(),
                name: None,
                about: schema["description"].as_str().map(ToOwned::to_owned),
                properties: properties.clone(),
                required: required.filter_map(Value::as_str).map(ToOwned::to_owned).collect(),
            });
        }
        let inner = [&schema["items"], &schema["additionalProperties"], &schema["else"]];
        let either = schema["anyOf"].as_array().into_iter().flatten();
        let deeper = |it: &Value| {
            let named =
                schema["additionalProperties"].is_object() && schema["properties"].is_null();
            let path =
                if named && !path.is_empty() { format!("{path}.NAME") } else { path.to_owned() };
            self.object(it, &path)
        };
        inner.into_iter().filter(|it| it.is_object()).chain(either).find_map(deeper)
    }

    /// The objects that are reached from the top, each once.
    fn objects(&self) -> Vec<Object> {
        let top = self.object(&self.schema, "").unwrap();
        let mut all = vec![top];
        let mut at = 0;
        while at < all.len() {
            let path = all[at].path.clone();
            for (key, value) in all[at].properties.clone() {
                let path = if path.is_empty() { key } else { format!("{path}.{key}") };
                let Some(found) = self.object(&value, &path) else { continue };
                let known = found.name.is_some() && all.iter().any(|it| it.name == found.name);
                // The gates have a table of their own.
                let is_gate = found.name.as_ref().is_some_and(|it| it.contains("gate"));
                if !known && !is_gate && path.matches('.').count() < 4 {
                    all.push(found);
                }
            }
            at += 1;
        }
        all
    }

    fn written(&self) -> String {
        let mut text = String::new();
        for object in self.objects() {
            if !object.path.is_empty() {
                let _ = writeln!(text, "## {}\n", object.path);
            }
            if let (Some(about), false) = (&object.about, object.path.is_empty()) {
                let _ = writeln!(text, "{about}\n");
            }
            text += &self.table(&object);
            text.push('\n');
        }
        text.trim_end().to_owned() + "\n"
    }

    fn table(&self, object: &Object) -> String {
        let mut text = "| key | value | meaning |\n| --- | --- | --- |\n".to_owned();
        for (key, value) in &object.properties {
            let must = if object.required.contains(key) { " **Required.**" } else { "" };
            let about = self.about(value);
            let kind = self.kind(value);
            let _ = writeln!(text, "| `{key}` | {} | {}{must} |", cell(&kind), cell(&about));
        }
        text
    }

    fn about(&self, value: &Value) -> String {
        let own = value["description"].as_str().map(ToOwned::to_owned);
        let referred = || Some(self.about(self.definition(value["$ref"].as_str()?).1));
        own.or_else(referred).unwrap_or_default()
    }

    /// What a value may be, in words.
    fn kind(&self, value: &Value) -> String {
        if let Some(reference) = value["$ref"].as_str() {
            return self.kind(self.definition(reference).1);
        }
        if let Some(all) = value["enum"].as_array() {
            let names: Vec<String> =
                all.iter().filter(|it| !it.is_null()).map(|it| format!("`{}`", bare(it))).collect();
            return match names.len() {
                0..=40 => names.join(", "),
                count => format!("one of {count} names"),
            };
        }
        if !value["const"].is_null() {
            return format!("`{}`", bare(&value["const"]));
        }
        for several in ["anyOf", "oneOf"] {
            if let Some(all) = value[several].as_array()
                && value["properties"].is_null()
                && value["type"].is_null()
            {
                let mut kinds: Vec<String> = Vec::new();
                for kind in all.iter().map(|it| self.kind(it)) {
                    if kind != "null" && !kinds.contains(&kind) {
                        kinds.push(kind);
                    }
                }
                return kinds.join(" or ");
            }
        }
        let types: Vec<&str> = match &value["type"] {
            Value::String(one) => vec![one],
            Value::Array(all) => {
                all.iter().filter_map(Value::as_str).filter(|it| *it != "null").collect()
            }
            _ if value["properties"].is_object() => vec!["object"],
            _ if value["allOf"].is_array() => return self.kind(&value["allOf"][0]),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
                return "any".to_owned();
            }
        };
        let words = types.iter().map(|it| match *it {
            "string" => "text".to_owned(),
            "integer" => format!("whole number{}", range(value)),
            "number" => format!("number{}", range(value)),
            "boolean" => "`true`, `false`".to_owned(),
            "array" if value["items"].is_object() => {
                format!("list of: {}", self.kind(&value["items"]))
            }
            "array" => "list".to_owned(),
            "object" => "table".to_owned(),
            other => other.to_owned(),
        });
        words.collect::<Vec<_>>().join(" or ")
    }

    /// A section for each event.
    fn events(&self) -> String {
        let mut text = String::new();
        for event in self.schema["oneOf"].as_array().unwrap() {
            let name = event["properties"]["event"]["const"].as_str().unwrap();
            let object = self.object(&event["properties"]["data"], "").unwrap();
            let about = object.about.clone().unwrap_or_default();
            let _ = writeln!(text, "## {name}\n\n{about}\n\n{}", self.table(&object));
        }
        text.trim_end().to_owned() + "\n"
    }
}

/// A value as it is written in a suite.
fn bare(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

fn range(value: &Value) -> String {
    let (least, most) = (&value["minimum"], &value["maximum"]);
    match (least.is_number(), most.is_number()) {
        (true, true) => format!(", {least} to {most}"),
        (true, false) => format!(", at least {least}"),
        (false, true) => format!(", at most {most}"),
        (false, false) => String::new(),
    }
}

#[test]
fn every_assertion_has_one_row() {
    let schema = schema("suite");
    let kinds = &schema["$defs"]["assertion"]["properties"]["type"]["anyOf"][0]["enum"];
    let names = kinds.as_array().unwrap().iter().filter_map(Value::as_str);
    let names: BTreeSet<&str> = names.filter(|it| !it.starts_with("not-")).collect();
    let page = fs::read_to_string(root().join("docs/reference/assertions.md")).unwrap();
    let rows: Vec<&str> =
        page.lines().filter_map(|it| it.strip_prefix("| `")?.split('`').next()).collect();
    assert_eq!(rows.iter().copied().collect::<BTreeSet<_>>(), names);
    assert_eq!(rows.len(), names.len(), "a type has two rows");
}

/// Each metric that a gate can be on.
fn metrics() -> String {
    let schema = schema("suite");
    let gates = &schema["$defs"]["gates"]["anyOf"][1];
    let mut text = "| metric | threshold | meaning |\n| --- | --- | --- |\n".to_owned();
    let named = gates["properties"].as_object().unwrap().iter();
    let patterns = gates["patternProperties"].as_object().into_iter().flatten();
    for (name, value) in named.chain(patterns.filter(|(it, _)| !it.starts_with("^x"))) {
        let of = value["$ref"].as_str().unwrap_or_default();
        let unit = [
            ("share", "a share, `0.9` or `\"90%\"`"),
            ("count", "a number"),
            ("time", "a duration, `\"3s\"`"),
            ("dollar", "dollars"),
            ("number", "a number that is not negative"),
        ];
        let unit = unit.iter().find(|(it, _)| of.contains(it)).map_or("a score, 0 to 1", |it| it.1);
        let name = match name.strip_prefix('^') {
            Some(pattern) => format!("{}.NAME", pattern.split('\\').next().unwrap()),
            None => name.clone(),
        };
        let about = value["description"].as_str().unwrap_or_default();
        let _ = writeln!(text, "| `{name}` | {unit} | {} |", cell(about));
    }
    text
}

/// The commands that a help lists, with what it says of them.
fn listed(help: &str) -> Vec<(String, String)> {
    let rows = help.split_once("\nCommands:\n").map_or("", |(_, rest)| rest);
    let mut found: Vec<(String, String)> = Vec::new();
    for line in rows.lines().take_while(|it| !it.is_empty()) {
        let line = line.strip_prefix("  ").unwrap();
        match line.split_once("  ") {
            Some((name, about)) if !name.is_empty() => {
                found.push((name.to_owned(), about.trim().to_owned()));
            }
            _ => {
                let last = found.last_mut().unwrap();
                last.1 = format!("{} {}", last.1, line.trim());
            }
        }
    }
    found.retain(|(name, _)| name != "help");
    found
}

fn commands() -> String {
    let mut text = "| command | what it does |\n| --- | --- |\n".to_owned();
    for (name, about) in listed(&printed(&["--help"])) {
        let _ = writeln!(text, "| `probity {name}` | {} |", cell(&about));
        for (inner, about) in listed(&printed(&[&name, "--help"])) {
            let _ = writeln!(text, "| `probity {name} {inner}` | {} |", cell(&about));
        }
    }
    text
}

/// A list of names with a text behind each, as a table.
fn commands_of(list: &str) -> String {
    let rows = list.lines().filter_map(|it| it.split_once(' '));
    let rows = rows.map(|(name, about)| format!("| `{name}` | {} |\n", cell(about.trim())));
    format!("| name | what it describes |\n| --- | --- |\n{}", rows.collect::<String>())
}

/// The tables of a store that a run has just made.
fn store() -> String {
    let page = Page::parse("store.md", "# Store\n");
    let session = Session::new(&page);
    let done = session.run(&mut session.project(), "probity init && probity run --quiet");
    assert_eq!(done.code, 0, "{}", done.output);
    let store = rusqlite::Connection::open(session.project().join(".probity/probity.db")).unwrap();
    let query = "SELECT t.name, c.name, c.type, c.\"notnull\" FROM pragma_table_list t, pragma_table_info(t.name) c \
                 WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%' ORDER BY t.name, c.cid";
    let mut query = store.prepare(query).unwrap();
    let mut tables: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut rows = query.query([]).unwrap();
    while let Some(row) = rows.next().unwrap() {
        let (table, column): (String, String) = (row.get(0).unwrap(), row.get(1).unwrap());
        let (kind, always): (String, bool) = (row.get(2).unwrap(), row.get(3).unwrap());
        let kind = kind.to_lowercase();
        let may = if always || column == "id" { "" } else { "?" };
        tables.entry(table).or_default().push(format!("`{column}` {kind}{may}"));
    }
    let version: i64 = store.query_row("PRAGMA user_version", [], |it| it.get(0)).unwrap();
    let rows =
        tables.iter().map(|(name, columns)| format!("| `{name}` | {} |\n", columns.join(", ")));
    format!(
        "The format is version {version} (`PRAGMA user_version`).\n\n| table | columns |\n| --- | --- |\n{}",
        rows.collect::<String>()
    )
}

/// Every safety rule with what it finds and what it leaves alone.
fn safety() -> String {
    let mut rules: BTreeMap<String, String> = BTreeMap::new();
    let folder = root().join("crates/probity-shell/data/safety");
    for file in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let table: toml::Table = fs::read_to_string(file.path()).unwrap().parse().unwrap();
        for rule in table.get("rule").and_then(toml::Value::as_array).into_iter().flatten() {
            let word = |key: &str| rule.get(key).and_then(toml::Value::as_str).unwrap_or_default();
            let first = |key: &str| {
                let list = rule.get(key).and_then(toml::Value::as_array);
                let first = list.and_then(|it| it.first()).and_then(toml::Value::as_str);
                first.map_or(String::new(), |it| {
                    let ticks = if it.contains('`') { "``" } else { "`" };
                    let pad = if it.contains('`') { " " } else { "" };
                    cell(&format!("{ticks}{pad}{it}{pad}{ticks}"))
                })
            };
            let row = format!(
                "| `{}` | {} | {} | {} | {} |\n",
                word("id"),
                word("risk"),
                cell(word("why")),
                first("example"),
                first("counter")
            );
            rules.insert(word("id").to_owned(), row);
        }
    }
    let rows: String = rules.into_values().collect();
    format!("| rule | risk | why | finds | leaves alone |\n| --- | --- | --- | --- | --- |\n{rows}")
}
