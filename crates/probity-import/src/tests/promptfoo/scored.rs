//! Assertions whose values mean more than a text.

use serde_json::json;

use super::*;
use crate::Outcome;

/// The assertions of one test, with what is said of them.
fn assertions(list: &str) -> (serde_json::Value, String) {
    let config = format!(
        "prompts: [hi]\nproviders: [echo]\ntests:\n  - vars: {{ q: a }}\n    assert:\n{list}"
    );
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("promptfooconfig.yaml"), config).unwrap();
    let Outcome { draft, notes, .. } = import(folder.path(), &Options::default()).unwrap();
    let made = &draft.datasets[0].cases[0].case.criteria.assertions;
    (json!(made), told(&notes))
}

#[test]
fn values_of_markup_are_carried_over() {
    let (made, told) = assertions(
        r#"      - { type: is-xml, value: "a.b, c" }
      - { type: contains-xml, value: { requiredElements: [a, b.c] } }
      - { type: is-html, value: ignored }
      - { type: is-sql }
      - { type: contains-sql, value: { databaseType: Trino } }
      - type: is-sql
        value: { databaseType: PostgreSQL, allowedTables: ["select::null::t"], allowedColumns: ["select::t::a"] }
      - { type: is-sql, value: { databaseType: TransactSQL, allowedTables: [] } }
"#,
    );
    assert_eq!(
        made,
        json!([
            { "type": "is-xml", "value": "a.b, c" },
            { "type": "contains-xml", "value": ["a", "b.c"] },
            { "type": "is-html" },
            { "type": "is-sql", "value": "mysql" },
            { "type": "contains-sql", "value": "generic" },
            { "type": "is-sql", "value": { "dialect": "postgresql", "tables": ["select::null::t"], "columns": ["select::t::a"] } },
            { "type": "is-sql", "value": "mssql" },
        ])
    );
    assert!(told.contains("SQL of `trino` is read as `generic`"), "{told}");
    assert!(!told.contains("not carried over"), "{told}");
}

#[test]
fn scores_of_text_and_of_calls_are_carried_over() {
    let (made, told) = assertions(
        r"      - { type: gleu, value: [a, b], threshold: 0.4 }
      - { type: meteor, value: a, threshold: 5 }
      - { type: tool-call-f1, value: [x, y] }
      - { type: not-guardrails, config: { purpose: redteam } }
",
    );
    assert_eq!(
        made,
        json!([
            { "type": "gleu", "value": ["a", "b"], "threshold": 0.4 },
            { "type": "meteor", "value": "a", "threshold": 5.0 },
            { "type": "tool-call-f1", "value": ["x", "y"] },
            { "type": "not-guardrails" },
        ])
    );
    assert!(told.contains("without WordNet's synonyms"), "{told}");
    assert!(!told.contains("not carried over"), "{told}");
}

#[test]
fn values_that_promptfoo_refuses_are_lost() {
    let (made, told) = assertions(
        r"      - { type: is-xml, value: { elements: [a] } }
      - { type: is-sql, value: mysql }
      - { type: is-sql, value: { allowedTables: t } }
      - { type: meteor, value: a, alpha: 0.5 }
",
    );
    assert_eq!(made.as_array().unwrap().len(), 1);
    for what in
        ["`is-xml` with a value", "with the value \"mysql\"", "`allowedTables` of", "`alpha`"]
    {
        assert!(told.contains(what), "{what} is not in {told}");
    }
}

#[test]
fn code_that_needs_node_becomes_a_file_of_its_own() {
    let config = r#"
prompts: [hi]
providers: [echo]
tests:
  - assert:
      - { type: javascript, value: "output.length < Number(process.env.MOST_LETTERS)" }
      - type: not-javascript
        value: |
          const fs = require('node:fs');
          return fs.existsSync(output);
  - assert:
      - { type: javascript, value: "process.env.X === '{{q}}'" }
"#;
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("promptfooconfig.yaml"), config).unwrap();
    let Outcome { draft, notes, .. } = import(folder.path(), &Options::default()).unwrap();
    let made = &draft.datasets[0].cases[0].case.criteria.assertions;
    assert_eq!(
        json!(made),
        json!([
            { "type": "scorer", "value": "inline" },
            { "type": "not-scorer", "value": "inline-2" },
        ])
    );
    assert!(draft.adapters["inline.mjs"].contains("(output, context) => (\noutput.length"));
    assert!(draft.adapters["inline-2.mjs"].contains("return fs.existsSync(output)"));
    assert_eq!(draft.scorers[0].env, ["MOST_LETTERS"]);
    assert_eq!(notes.losses(), 1, "{}", told(&notes));
}
