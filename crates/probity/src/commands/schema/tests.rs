use std::collections::{BTreeMap, BTreeSet};

use super::*;

/// Every file of schemas, by its name.
fn files() -> Vec<(String, Map<String, Value>)> {
    let documents = SchemaName::value_variants().iter().map(|name| {
        let shown = name.to_possible_value().unwrap().get_name().to_owned();
        (shown, parse(document(*name)))
    });
    let definitions = DEFINITIONS.iter().map(|(name, text)| (format!("defs/{name}"), parse(text)));
    documents.chain(definitions).collect()
}

/// Calls for every list of values, with the part that it stands in.
fn each_enum(schema: &Value, call: &mut dyn FnMut(&[Value])) {
    match schema {
        Value::Object(parts) => {
            if let Some(Value::Array(values)) = parts.get("enum") {
                call(values);
            }
            parts.values().for_each(|part| each_enum(part, call));
        }
        Value::Array(items) => items.iter().for_each(|item| each_enum(item, call)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn a_definition_stands_in_one_place() {
    let mut names = BTreeMap::new();
    let mut bodies = BTreeMap::new();
    for (file, text) in DEFINITIONS {
        for (name, body) in parse(text) {
            // Of two of the same name in one file the parser keeps the last.
            let times = text.matches(&format!("\n  \"{name}\": {{")).count();
            assert_eq!(times, 1, "`{name}` in {file}");
            let earlier = names.insert(name.clone(), file);
            assert_eq!(earlier, None, "`{name}` is defined in {file} and before");
            let earlier = bodies.insert(body.to_string(), name.clone());
            assert_eq!(earlier, None, "`{name}` says the same as another definition");
        }
    }
}

#[test]
fn every_definition_is_referred_to_and_every_reference_is_defined() {
    let used: BTreeSet<String> = SchemaName::value_variants()
        .iter()
        .flat_map(|name| {
            let schema: Value = serde_json::from_str(&published(*name)).unwrap();
            schema["$defs"].as_object().unwrap().keys().cloned().collect::<Vec<_>>()
        })
        .collect();
    let defined: BTreeSet<String> = definitions().into_keys().collect();
    assert_eq!(used, defined);
}

#[test]
fn definitions_are_only_written_below_their_folder() {
    for (file, document) in files() {
        assert!(!document.contains_key("$defs"), "{file}");
    }
}

#[test]
fn no_list_is_typed_out_that_the_code_has() {
    let lists = names::LISTS.map(|(name, list)| (name, BTreeSet::from_iter(list())));
    for (file, document) in files() {
        each_enum(&Value::Object(document), &mut |values| {
            let typed: BTreeSet<String> =
                values.iter().filter_map(Value::as_str).map(ToOwned::to_owned).collect();
            let whole = lists.iter().find(|(_, list)| list.is_subset(&typed));
            let found = whole.map(|(name, _)| format!("use \"@{name}\" in {file}: {typed:?}"));
            assert_eq!(found, None);
        });
    }
}

#[test]
fn every_list_is_used() {
    let all: String = files().iter().map(|(_, it)| Value::from(it.clone()).to_string()).collect();
    for (name, _) in names::LISTS {
        assert!(all.contains(&format!("\"@{name}\"")), "{name}");
    }
}

#[test]
fn nothing_that_stands_for_names_is_published() {
    for name in SchemaName::value_variants() {
        assert!(!published(*name).contains("\"@"), "{name:?}");
    }
}
