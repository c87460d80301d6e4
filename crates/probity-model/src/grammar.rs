//! From a JSON Schema to a grammar that an engine keeps a model to, in llama.cpp's notation (GBNF).
//!
//! What a grammar can express is kept to: types, properties in the order of the schema, required and optional
//! ones, enumerations, alternatives, references, lengths of lists and texts. What it cannot express is refused
//! if an answer that breaks it would be wrong; annotations are passed over.

mod check;

use std::fmt::Write as _;

pub use self::check::{GrammarError, check};
use serde_json::{Map, Value};

/// How deep schemas may be nested.
const DEPTH: usize = 64;
/// Rules that a grammar may have.
const MOST_RULES: usize = 2000;
/// The largest bound of a length that is written out.
const MOST_REPEATS: u64 = 2000;

/// Why there is no grammar for a schema.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("the schema cannot be kept to: {why} (at `{at}`)")]
pub struct SchemaError {
    /// What it is.
    pub why: String,
    /// Where in the schema.
    pub at: String,
}

/// Values of any kind, which other rules are made of. No more than one blank stands anywhere, since a
/// model that may write blanks can do so without end.
const BASE: &str = r#"ws ::= " "?
value ::= object | array | string | number | boolean | null
object ::= "{" ws (string ws ":" ws value (ws "," ws string ws ":" ws value)*)? ws "}"
array ::= "[" ws (value (ws "," ws value)*)? ws "]"
char ::= [^"\\\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4})
string ::= "\"" char* "\""
integer ::= "-"? ("0" | [1-9] [0-9]{0,15})
number ::= integer ("." [0-9]{1,16})? ([eE] [-+]? [0-9]{1,3})?
boolean ::= "true" | "false"
null ::= "null"
"#;

/// A grammar of any JSON object.
pub fn any_object() -> String {
    format!("root ::= object\n{BASE}")
}

/// A grammar of the values that a schema allows.
pub fn of_schema(schema: &Value) -> Result<String, SchemaError> {
    let mut writer = Writer { root: schema, rules: Vec::new(), references: Vec::new() };
    let root = writer.expression(schema, "#", 0)?;
    let mut text = format!("root ::= {root}\n");
    for (name, body) in &writer.rules {
        // Writing to a text cannot fail.
        let _ = writeln!(text, "{name} ::= {body}");
    }
    Ok(text + BASE)
}

struct Writer<'a> {
    root: &'a Value,
    rules: Vec<(String, String)>,
    /// References that have a rule, which may use itself.
    references: Vec<(String, String)>,
}

/// What restricts nothing.
const ANNOTATIONS: &[&str] = &[
    "$schema",
    "$id",
    "$comment",
    "$defs",
    "$anchor",
    "definitions",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "strict",
    "name",
];

impl Writer<'_> {
    fn expression(
        &mut self,
        schema: &Value,
        at: &str,
        depth: usize,
    ) -> Result<String, SchemaError> {
        let wrong = |why: String| SchemaError { why, at: at.to_owned() };
        if depth > DEPTH {
            return Err(wrong("it is nested too deep".to_owned()));
        }
        let schema = match schema {
            Value::Bool(true) => return Ok("value".to_owned()),
            Value::Object(schema) => schema,
            Value::Bool(false)
            | Value::Null
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => {
                return Err(wrong("it allows nothing, or is no schema".to_owned()));
            }
        };
        if let Some(reference) = schema.get("$ref") {
            only(schema, &["$ref"], at)?;
            return self.reference(reference.as_str().unwrap_or_default(), at, depth);
        }
        if let Some(value) = schema.get("const") {
            return Ok(literal(&value.to_string()));
        }
        if let Some(values) = schema.get("enum") {
            let values = values.as_array().filter(|it| !it.is_empty());
            let values = values.ok_or_else(|| wrong("`enum` is no list of values".to_owned()))?;
            let values: Vec<String> = values.iter().map(|it| literal(&it.to_string())).collect();
            return self.rule(format!("({})", values.join(" | ")), at);
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(choices) = schema.get(key) {
                only(schema, &[key, "type"], at)?;
                return self.choices(choices, &format!("{at}/{key}"), depth);
            }
        }
        self.typed(schema, at, depth)
    }

    fn typed(
        &mut self,
        schema: &Map<String, Value>,
        at: &str,
        depth: usize,
    ) -> Result<String, SchemaError> {
        let wrong = |why: String| SchemaError { why, at: at.to_owned() };
        match schema.get("type") {
            None if schema.contains_key("properties") => self.object(schema, at, depth),
            None if schema.contains_key("items") => self.array(schema, at, depth),
            None => {
                only(schema, &[], at)?;
                Ok("value".to_owned())
            }
            Some(Value::String(name)) => self.of_type(name, schema, at, depth),
            Some(Value::Array(names)) => {
                let mut choices = Vec::new();
                for name in names {
                    let name = name.as_str().unwrap_or_default();
                    // Each type has the keys that are about it.
                    let own = |key: &&String| {
                        let keys = keys_of(name);
                        keys.contains(&key.as_str()) || ANNOTATIONS.contains(&key.as_str())
                    };
                    let own: Map<String, Value> = schema
                        .iter()
                        .filter(|(key, _)| own(key))
                        .map(|(key, value)| (key.clone(), value.clone()))
                        .collect();
                    choices.push(self.of_type(name, &own, at, depth)?);
                }
                match choices.is_empty() {
                    true => Err(wrong("`type` is an empty list".to_owned())),
                    false => self.rule(format!("({})", choices.join(" | ")), at),
                }
            }
            Some(_) => Err(wrong("`type` is neither a name nor a list of names".to_owned())),
        }
    }

    fn of_type(
        &mut self,
        name: &str,
        schema: &Map<String, Value>,
        at: &str,
        depth: usize,
    ) -> Result<String, SchemaError> {
        match name {
            "object" => self.object(schema, at, depth),
            "array" => self.array(schema, at, depth),
            "string" => {
                only(schema, keys_of(name), at)?;
                match bounds(schema, "minLength", "maxLength", at)? {
                    None => Ok("string".to_owned()),
                    Some(count) => self.rule(format!("\"\\\"\" char{count} \"\\\"\""), at),
                }
            }
            "number" | "integer" | "boolean" | "null" => {
                only(schema, keys_of(name), at)?;
                Ok(name.to_owned())
            }
            other => Err(SchemaError { why: format!("`{other}` is no type"), at: at.to_owned() }),
        }
    }

    fn choices(&mut self, choices: &Value, at: &str, depth: usize) -> Result<String, SchemaError> {
        let choices = choices.as_array().filter(|it| !it.is_empty());
        let none = || SchemaError { why: "it is no list of schemas".to_owned(), at: at.to_owned() };
        let mut written = Vec::new();
        for (index, choice) in choices.ok_or_else(none)?.iter().enumerate() {
            written.push(self.expression(choice, &format!("{at}/{index}"), depth + 1)?);
        }
        self.rule(format!("({})", written.join(" | ")), at)
    }

    fn object(
        &mut self,
        schema: &Map<String, Value>,
        at: &str,
        depth: usize,
    ) -> Result<String, SchemaError> {
        let wrong = |why: &str| SchemaError { why: why.to_owned(), at: at.to_owned() };
        only(schema, keys_of("object"), at)?;
        let empty = Map::new();
        let properties = match schema.get("properties") {
            None => &empty,
            Some(it) => it.as_object().ok_or_else(|| wrong("`properties` is no table"))?,
        };
        let required: Vec<&str> = match schema.get("required") {
            None => Vec::new(),
            Some(it) => it
                .as_array()
                .ok_or_else(|| wrong("`required` is no list"))?
                .iter()
                .filter_map(Value::as_str)
                .collect(),
        };
        if let Some(name) = required.iter().find(|it| !properties.contains_key(**it)) {
            return Err(wrong(&format!("`{name}` is required and not among the properties")));
        }
        if properties.is_empty() {
            return match schema.get("additionalProperties") {
                None | Some(Value::Bool(true)) => Ok("object".to_owned()),
                Some(Value::Bool(false)) => Ok("\"{\" ws \"}\"".to_owned()),
                Some(values) => {
                    let value =
                        self.expression(values, &format!("{at}/additionalProperties"), depth + 1)?;
                    let pair = format!("string ws \":\" ws {value}");
                    self.rule(format!("\"{{\" ws ({pair} (ws \",\" ws {pair})*)? ws \"}}\""), at)
                }
            };
        }
        let mut pairs = Vec::new();
        for (name, property) in properties {
            let value = self.expression(property, &format!("{at}/properties/{name}"), depth + 1)?;
            let pair =
                format!("{} ws \":\" ws {value}", literal(&Value::from(name.as_str()).to_string()));
            pairs.push((pair, required.contains(&name.as_str())));
        }
        let body = self.sequence(&pairs, at)?;
        self.rule(format!("\"{{\" ws {body} ws \"}}\""), at)
    }

    /// Pairs in their order, of which some may be absent, with commas between those that are there.
    fn sequence(&mut self, pairs: &[(String, bool)], at: &str) -> Result<String, SchemaError> {
        // What may follow when something stands before it, from the last pair to the first.
        let mut following = String::new();
        let mut tails = vec![following.clone()];
        for (pair, is_required) in pairs.iter().rev() {
            let here = format!("(ws \",\" ws {pair})");
            let here = if *is_required { here } else { format!("{here}?") };
            following = match following.is_empty() {
                true => here,
                false => format!("{here} {following}"),
            };
            following = self.rule(following, at)?;
            tails.push(following.clone());
        }
        tails.reverse();
        // Whichever comes first has no comma before it.
        let mut starts = Vec::new();
        for (index, (pair, is_required)) in pairs.iter().enumerate() {
            starts.push(format!("{pair} {}", tails[index + 1]).trim_end().to_owned());
            if *is_required {
                return Ok(format!("({})", starts.join(" | ")));
            }
        }
        Ok(format!("({})?", starts.join(" | ")))
    }

    fn array(
        &mut self,
        schema: &Map<String, Value>,
        at: &str,
        depth: usize,
    ) -> Result<String, SchemaError> {
        only(schema, keys_of("array"), at)?;
        let item = match schema.get("items") {
            None => "value".to_owned(),
            Some(items) => self.expression(items, &format!("{at}/items"), depth + 1)?,
        };
        let (least, most) =
            (bound(schema, "minItems", at)?.unwrap_or(0), bound(schema, "maxItems", at)?);
        if most.is_some_and(|most| most < least) {
            return Err(SchemaError {
                why: "`maxItems` is less than `minItems`".to_owned(),
                at: at.to_owned(),
            });
        }
        let (few, many) = (least.saturating_sub(1), most.map(|it| it.saturating_sub(1)));
        let many = many.map_or_else(String::new, |it| it.to_string());
        let items = format!("{item} (ws \",\" ws {item}){{{few},{many}}}");
        let items = match (least, most) {
            (_, Some(0)) => String::new(),
            (0, _) => format!("({items})? "),
            (_, _) => format!("{items} "),
        };
        self.rule(format!("\"[\" ws {items}ws \"]\""), at)
    }

    fn reference(&mut self, name: &str, at: &str, depth: usize) -> Result<String, SchemaError> {
        if let Some((_, rule)) = self.references.iter().find(|(it, _)| it == name) {
            return Ok(rule.clone());
        }
        let target = name.strip_prefix('#').and_then(|it| self.root.pointer(it)).cloned();
        let why = || SchemaError { why: format!("`{name}` is not in it"), at: at.to_owned() };
        let target = target.ok_or_else(why)?;
        // Its rule has a name before it has a body, so that it may be in itself.
        let rule = format!("ref-{}", self.references.len());
        self.references.push((name.to_owned(), rule.clone()));
        let body = self.expression(&target, name, depth + 1)?;
        if body == rule {
            return Err(SchemaError {
                why: format!("`{name}` is nothing but itself"),
                at: at.to_owned(),
            });
        }
        self.rules.push((rule.clone(), body));
        Ok(rule)
    }

    fn rule(&mut self, body: String, at: &str) -> Result<String, SchemaError> {
        if self.rules.len() == MOST_RULES {
            return Err(SchemaError { why: "it is too large".to_owned(), at: at.to_owned() });
        }
        let name = format!("rule-{}", self.rules.len());
        self.rules.push((name.clone(), body));
        Ok(name)
    }
}

/// Refuses what would restrict values in a way that is not kept to.
fn only(schema: &Map<String, Value>, keys: &[&str], at: &str) -> Result<(), SchemaError> {
    let is_kept = |key: &&String| {
        let key = key.as_str();
        key == "type" || keys.contains(&key) || ANNOTATIONS.contains(&key)
    };
    match schema.keys().find(|key| !is_kept(key)) {
        None => Ok(()),
        Some(key) => {
            Err(SchemaError { why: format!("`{key}` is not supported here"), at: at.to_owned() })
        }
    }
}

/// What is kept to of a type, beside the type itself.
fn keys_of(name: &str) -> &'static [&'static str] {
    match name {
        "object" => &["properties", "required", "additionalProperties"],
        "array" => &["items", "minItems", "maxItems"],
        "string" => &["minLength", "maxLength"],
        _ => &[],
    }
}

fn bound(schema: &Map<String, Value>, key: &str, at: &str) -> Result<Option<u64>, SchemaError> {
    let Some(value) = schema.get(key) else { return Ok(None) };
    let value = value.as_u64().filter(|it| *it <= MOST_REPEATS);
    let why = || format!("`{key}` is not a whole number up to {MOST_REPEATS}");
    value.map(Some).ok_or_else(|| SchemaError { why: why(), at: at.to_owned() })
}

fn bounds(
    schema: &Map<String, Value>,
    least: &str,
    most: &str,
    at: &str,
) -> Result<Option<String>, SchemaError> {
    Ok(match (bound(schema, least, at)?, bound(schema, most, at)?) {
        (None, None) => None,
        (Some(least), Some(most)) if most < least => {
            return Err(SchemaError {
                why: "its bounds leave nothing".to_owned(),
                at: at.to_owned(),
            });
        }
        (least, Some(most)) => Some(format!("{{{},{most}}}", least.unwrap_or(0))),
        (Some(least), None) => Some(format!("{{{least},}}")),
    })
}

/// A text as it has to stand in an answer.
fn literal(text: &str) -> String {
    let mut written = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                written.push('\\');
                written.push(c);
            }
            '\n' => written.push_str("\\n"),
            '\r' => written.push_str("\\r"),
            '\t' => written.push_str("\\t"),
            other => written.push(other),
        }
    }
    written.push('"');
    written
}

#[cfg(test)]
mod tests;
