use serde_json::json;

use super::*;

/// The rules of a schema, without those that all grammars have.
fn rules(schema: &Value) -> String {
    check(&of_schema(schema).unwrap()).unwrap();
    of_schema(schema).unwrap().strip_suffix(BASE).unwrap().to_owned()
}

fn refusal(schema: &Value) -> String {
    of_schema(schema).unwrap_err().to_string()
}

#[test]
fn types_lists_and_enumerations_become_rules() {
    assert_eq!(rules(&json!({"type": "integer", "description": "x"})), "root ::= integer\n");
    assert_eq!(rules(&json!(true)), "root ::= value\n");
    assert_eq!(rules(&json!({"const": "a\"b"})), "root ::= \"\\\"a\\\\\\\"b\\\"\"\n");
    assert_eq!(
        rules(&json!({"enum": ["a", 1, null]})),
        "root ::= rule-0\nrule-0 ::= (\"\\\"a\\\"\" | \"1\" | \"null\")\n"
    );
    assert_eq!(
        rules(&json!({"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 4})),
        "root ::= rule-0\nrule-0 ::= \"[\" ws number (ws \",\" ws number){1,3} ws \"]\"\n"
    );
    assert_eq!(
        rules(&json!({"type": ["string", "null"], "maxLength": 3})),
        "root ::= rule-1\nrule-0 ::= \"\\\"\" char{0,3} \"\\\"\"\nrule-1 ::= (rule-0 | null)\n"
    );
}

#[test]
fn properties_keep_their_order_and_optional_ones_may_be_absent() {
    let schema = json!({
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "integer"}, "c": {"type": "null"}},
        "required": ["b"],
        "additionalProperties": false,
    });
    assert_eq!(
        rules(&schema),
        r#"root ::= rule-3
rule-0 ::= (ws "," ws "\"c\"" ws ":" ws null)?
rule-1 ::= (ws "," ws "\"b\"" ws ":" ws integer) rule-0
rule-2 ::= (ws "," ws "\"a\"" ws ":" ws string)? rule-1
rule-3 ::= "{" ws ("\"a\"" ws ":" ws string rule-1 | "\"b\"" ws ":" ws integer rule-0) ws "}"
"#
    );
}

#[test]
fn a_reference_may_lead_to_itself() {
    let schema = json!({
        "$ref": "#/$defs/tree",
        "$defs": {"tree": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
    });
    assert_eq!(
        rules(&schema),
        "root ::= ref-0\nrule-0 ::= \"[\" ws (ref-0 (ws \",\" ws ref-0){0,})? ws \"]\"\nref-0 ::= rule-0\n"
    );
}

#[test]
fn what_cannot_be_kept_to_is_refused_with_its_place() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "x"}}});
    assert_eq!(
        refusal(&schema),
        "the schema cannot be kept to: `pattern` is not supported here (at `#/properties/a`)"
    );
    let schema = json!({"type": "integer", "minimum": 3});
    assert_eq!(
        refusal(&schema),
        "the schema cannot be kept to: `minimum` is not supported here (at `#`)"
    );
    assert_eq!(
        refusal(&json!({"type": "text"})),
        "the schema cannot be kept to: `text` is no type (at `#`)"
    );
    assert_eq!(
        refusal(&json!({"$ref": "#/x"})),
        "the schema cannot be kept to: `#/x` is not in it (at `#`)"
    );
    assert_eq!(
        refusal(&json!(false)),
        "the schema cannot be kept to: it allows nothing, or is no schema (at `#`)"
    );
    let schema = json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}});
    assert!(refusal(&schema).contains("nothing but itself"), "{}", refusal(&schema));
    let mut deep = json!({"type": "null"});
    for _ in 0..100 {
        deep = json!({"type": "array", "items": deep});
    }
    assert!(refusal(&deep).contains("nested too deep"));
}
