//! Fills the columns and tables that older stores do not have.

use probity_core::{
    case::{Category, TestCase},
    failure::ErrorKind,
    record::CallError,
};
use rusqlite::{Connection, params};
use serde_json::Value;

/// Format 4: labels of the case, kind of error, policy hits, evidence and scores leave the JSON.
///
/// A classification is read as the plain tree that version 0.1 wrote. What cannot be read stays as
/// it is, and is an error when it is read.
pub(crate) fn fill_columns(connection: &Connection) -> rusqlite::Result<()> {
    let mut all = connection.prepare(
        "SELECT r.id, d.text, r.error, r.classification
         FROM results r JOIN texts d ON d.id = r.definition",
    )?;
    let mut update = connection.prepare(
        "UPDATE results SET category = ?2, tags = ?3, case_group = ?4, error_kind = ?5,
            policy_hits = ?6, evidence = ?7, classification = ?8 WHERE id = ?1",
    )?;
    let mut insert = connection.prepare(
        "INSERT INTO scores (result, place, name, kind, value, passed, weight, reason)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    )?;
    let mut rows = all.query([])?;
    while let Some(row) = rows.next()? {
        let id: i64 = row.get(0)?;
        let (definition, error, classification): (String, Option<String>, String) =
            (row.get(1)?, row.get(2)?, row.get(3)?);
        let case = TestCase::from_json(&definition).unwrap_or_default();
        let kind = error.and_then(|it| serde_json::from_str(&it).ok()).map(|it: CallError| it.kind);
        let Ok(tree) = serde_json::from_str::<Value>(&classification) else { continue };
        let Old { tree, evidence, hits, assertions } = Old::taken_apart(tree);
        update.execute(params![
            id,
            case.category.as_ref().map(Category::as_str),
            (!case.tags.is_empty()).then(|| Value::from(case.tags.clone()).to_string()),
            case.routing.group,
            kind.map(ErrorKind::as_str),
            hits,
            evidence.map(|it| it.to_string()),
            tree.to_string(),
        ])?;
        for (place, assertion) in assertions.iter().enumerate() {
            let text = |key: &str| assertion.get(key).and_then(Value::as_str);
            let number = |key: &str| assertion.get(key).and_then(Value::as_f64);
            let kind = text("type").unwrap_or("assert");
            insert.execute(params![
                id,
                place,
                text("metric").unwrap_or(kind),
                kind,
                number("score"),
                assertion.get("pass").and_then(Value::as_bool).unwrap_or(false),
                number("weight").unwrap_or(1.0),
                text("reason"),
            ])?;
        }
    }
    Ok(())
}

/// The parts of a classification of version 0.1.
struct Old {
    /// What stays.
    tree: Value,
    evidence: Option<Value>,
    hits: u64,
    assertions: Vec<Value>,
}

impl Old {
    fn taken_apart(mut tree: Value) -> Self {
        let details = tree.get_mut("details").and_then(Value::as_object_mut);
        let Some(details) = details else {
            return Self { tree, evidence: None, hits: 0, assertions: Vec::new() };
        };
        let evidence = details.shift_remove("evidence");
        let hits = details.get("hits").and_then(Value::as_array).map_or(0, |it| it.len() as u64);
        let assertions = match details.shift_remove("assertions") {
            Some(Value::Array(assertions)) => assertions,
            Some(_) | None => Vec::new(),
        };
        Self { tree, evidence, hits, assertions }
    }
}
