//! How much work it is to hold a value against a schema.
//!
//! A few lines of a schema can ask for more steps than anybody can wait for: alternatives that
//! refer to alternatives double them with each level. They are counted before the validator
//! begins, by going the ways that it would go if it never stopped early. Each schema is counted
//! once for each part of the value, so that counting is quick where validating is not.

use std::{collections::BTreeMap, ptr};

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

/// Words whose schema is for the same value: one, a list of them, or a table of them.
const SAME: [&str; 4] = ["not", "if", "then", "else"];
const SAME_LIST: [&str; 3] = ["anyOf", "allOf", "oneOf"];
const SAME_TABLE: [&str; 2] = ["dependentSchemas", "dependencies"];
/// Words that name a schema for the same value.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
/// Words whose schema is for the items of an array, or for the fields of an object.
const ITEMS: [&str; 4] = ["items", "additionalItems", "contains", "unevaluatedItems"];
const FIELDS: [&str; 3] = ["additionalProperties", "unevaluatedProperties", "propertyNames"];

/// Whether it takes no more than so many steps.
pub(super) fn is_within(most: u64, schema: &Value, value: &Value) -> bool {
    Counter { root: schema, most, known: BTreeMap::new() }.steps(schema, value) <= most
}

struct Counter<'s> {
    root: &'s Value,
    most: u64,
    /// Steps of a schema and a part of the value; none while they are counted.
    known: BTreeMap<(usize, usize), Option<u64>>,
}

impl<'s> Counter<'s> {
    fn steps(&mut self, schema: &'s Value, value: &Value) -> u64 {
        let Value::Object(words) = schema else { return 1 };
        let key = (ptr::from_ref(schema).addr(), ptr::from_ref(value).addr());
        match self.known.get(&key) {
            // A schema that leads back to itself for the same value never ends.
            Some(steps) => return steps.unwrap_or(u64::MAX),
            None if self.known.len() as u64 > self.most => return u64::MAX,
            None => {}
        }
        self.known.insert(key, None);
        let mut steps = 1_u64;
        let mut add = |more: u64| steps = steps.saturating_add(more);
        self.in_place(words, value, &mut add);
        match value {
            Value::Array(items) => self.items(words, items, &mut add),
            Value::Object(fields) => self.fields(words, fields, &mut add),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        if let Some(Value::Array(list)) = words.get("enum") {
            add(list.len() as u64);
        }
        self.known.insert(key, Some(steps));
        steps
    }

    fn in_place(
        &mut self,
        words: &'s Map<String, Value>,
        value: &Value,
        add: &mut impl FnMut(u64),
    ) {
        let own = SAME.iter().filter_map(|word| words.get(*word));
        let listed = SAME_LIST.iter().filter_map(|word| words.get(*word)?.as_array()).flatten();
        let named = SAME_TABLE.iter().filter_map(|word| words.get(*word)?.as_object());
        let referred = REFERENCES.iter().filter_map(|word| self.referred(words.get(*word)?));
        let all: Vec<&'s Value> =
            own.chain(listed).chain(named.flat_map(Map::values)).chain(referred).collect();
        all.into_iter().for_each(|schema| add(self.steps(schema, value)));
    }

    fn items(&mut self, words: &'s Map<String, Value>, items: &[Value], add: &mut impl FnMut(u64)) {
        let lists = ["prefixItems", "items"].iter().filter_map(|it| words.get(*it)?.as_array());
        for (schema, item) in lists.flat_map(|list| list.iter().zip(items)) {
            add(self.steps(schema, item));
        }
        for schema in ITEMS.iter().filter_map(|word| words.get(*word)) {
            items.iter().for_each(|item| add(self.steps(schema, item)));
        }
    }

    fn fields(
        &mut self,
        words: &'s Map<String, Value>,
        fields: &Map<String, Value>,
        add: &mut impl FnMut(u64),
    ) {
        let of = |word: &str| words.get(word).and_then(Value::as_object);
        for (name, schema) in of("properties").into_iter().flatten() {
            if let Some(value) = fields.get(name) {
                add(self.steps(schema, value));
            }
        }
        // Which of them match is not looked at: each is tried on each name.
        let patterns = of("patternProperties").into_iter().flat_map(Map::values);
        let others = FIELDS.iter().filter_map(|word| words.get(*word));
        for schema in patterns.chain(others) {
            fields.values().for_each(|value| add(self.steps(schema, value)));
        }
    }

    /// The schema that a reference within this one names.
    fn referred(&self, reference: &Value) -> Option<&'s Value> {
        let reference = reference.as_str()?;
        let Some(fragment) = reference.strip_prefix('#') else {
            return named(self.root, "$id", reference);
        };
        match fragment.starts_with('/') {
            true => self.root.pointer(&percent_decode_str(fragment).decode_utf8_lossy()),
            false if fragment.is_empty() => Some(self.root),
            false => named(self.root, "$anchor", fragment)
                .or_else(|| named(self.root, "$dynamicAnchor", fragment)),
        }
    }
}

/// The schema with a name of its own.
fn named<'s>(schema: &'s Value, word: &str, name: &str) -> Option<&'s Value> {
    match schema {
        Value::Object(words) if words.get(word).and_then(Value::as_str) == Some(name) => {
            Some(schema)
        }
        Value::Object(words) => words.values().find_map(|it| named(it, word, name)),
        Value::Array(list) => list.iter().find_map(|it| named(it, word, name)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Alternatives that refer to alternatives, so many levels deep.
    fn doubling(levels: usize) -> Value {
        let level = |at: usize| {
            let next = json!({ "$ref": format!("#/$defs/{}", at + 1) });
            (at.to_string(), json!({ "anyOf": [next, next] }))
        };
        let mut defs: Map<String, Value> = (0..levels).map(level).collect();
        defs.insert(levels.to_string(), json!({ "type": "string" }));
        json!({ "$ref": "#/$defs/0", "$defs": defs })
    }

    #[test]
    fn what_doubles_with_each_level_is_counted_quickly() {
        assert!(is_within(1000, &doubling(5), &json!(1)));
        assert!(!is_within(1 << 40, &doubling(60), &json!(1)));
        assert!(!is_within(1 << 40, &doubling(100), &json!([1, 2])));
    }

    #[test]
    fn what_doubles_with_the_depth_of_the_value_is_counted() {
        let items = json!({ "items": { "$ref": "#" } });
        let schema = json!({ "anyOf": [items, items] });
        let nested = |depth: usize| (0..depth).fold(json!(1), |inner, _| json!([inner]));
        assert!(is_within(1000, &schema, &nested(5)));
        assert!(!is_within(1 << 30, &schema, &nested(40)));
    }

    #[test]
    fn a_schema_that_leads_to_itself_never_ends() {
        assert!(!is_within(1 << 40, &json!({ "allOf": [{ "$ref": "#" }] }), &json!(1)));
        let through_anchor = json!({ "$anchor": "a", "not": { "$ref": "#a" } });
        assert!(!is_within(1 << 40, &through_anchor, &json!(1)));
    }

    #[test]
    fn ordinary_schemas_of_large_answers_are_within_the_bound() {
        let item = json!({
            "type": "object",
            "required": ["id"],
            "properties": { "id": { "type": "integer" }, "tags": { "items": { "enum": ["a", "b"] } } },
            "additionalProperties": false,
        });
        let schema = json!({ "type": "array", "uniqueItems": true, "items": item });
        let items: Vec<Value> = (0..20_000).map(|at| json!({ "id": at, "tags": ["a"] })).collect();
        assert!(is_within(super::super::MOST_STEPS, &schema, &Value::Array(items)));
    }
}
