//! The questions of the data file, and the forms of their answers.

use std::sync::LazyLock;

use probity_core::criteria::FactCategory;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{inquiry::Form, read::HIGHEST_GRADE};

/// The words of all questions.
pub(super) static WORDS: LazyLock<Words> = LazyLock::new(|| table!("judge"));

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Words {
    /// The instructions.
    pub(super) system: String,
    /// What is added after an answer that could not be read.
    pub(super) stricter: String,
    pub(super) own: Question,
    factuality: Question,
    closed_qa: Question,
    g_eval: Question,
    context_recall: Question,
    context_faithfulness: Question,
    answer_relevance: Question,
    context_relevance: Question,
    context_precision: Question,
    pub(super) select_best: Question,
}

/// One question.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Question {
    /// The data that goes before it.
    #[serde(default)]
    pub(super) shows: Vec<Part>,
    pub(super) ask: String,
    /// The steps of a judge who is given none.
    #[serde(default)]
    pub(super) steps: String,
    pub(super) form: String,
}

/// Data that a judge is shown.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Part {
    Question,
    Answer,
    Reference,
    Context,
    Passages,
}

impl Words {
    /// The question of a form; none for a rubric, whose words depend on how many answers there are.
    pub(super) fn of(&self, form: &Form) -> Option<&Question> {
        Some(match form {
            Form::Rubric(_) => return None,
            Form::Factuality { .. } => &self.factuality,
            Form::ClosedQa { .. } => &self.closed_qa,
            Form::GEval { .. } => &self.g_eval,
            Form::ContextRecall { .. } => &self.context_recall,
            Form::ContextPrecision { .. } => &self.context_precision,
            Form::ContextRelevance => &self.context_relevance,
            Form::ContextFaithfulness => &self.context_faithfulness,
            Form::AnswerRelevance => &self.answer_relevance,
        })
    }
}

/// The JSON Schema of an answer to a user's own prompt.
pub(super) fn own_schema() -> Value {
    table(vec![
        ("pass", json!({ "type": "boolean" })),
        ("score", json!({ "type": "number", "minimum": 0, "maximum": 1 })),
        ("reason", text()),
    ])
}

/// The JSON Schema of an answer; none for a rubric.
pub(super) fn schema(form: &Form) -> Option<Value> {
    Some(match form {
        Form::Rubric(_) => return None,
        Form::Factuality { .. } => {
            let names = FactCategory::ALL.map(FactCategory::as_str);
            table(vec![("reason", text()), ("category", words(&names))])
        }
        Form::ClosedQa { .. } => table(vec![("reason", text()), ("answer", yes_or_no())]),
        Form::GEval { .. } => {
            let score = json!({ "type": "integer", "minimum": 0, "maximum": HIGHEST_GRADE });
            list("criteria", vec![("number", number()), ("findings", text()), ("score", score)])
        }
        Form::ContextRecall { .. } | Form::ContextFaithfulness | Form::AnswerRelevance => {
            let fields = vec![("statement", text()), ("reason", text()), ("verdict", yes_or_no())];
            list("statements", fields)
        }
        Form::ContextPrecision { .. } | Form::ContextRelevance => {
            let fields = vec![("number", number()), ("reason", text()), ("verdict", yes_or_no())];
            list("passages", fields)
        }
    })
}

/// A table that has all these fields and no others.
pub(super) fn table(fields: Vec<(&str, Value)>) -> Value {
    let required: Vec<&str> = fields.iter().map(|it| it.0).collect();
    let required = json!(required);
    let properties: Map<String, Value> =
        fields.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// One of some words.
pub(super) fn words(words: &[&str]) -> Value {
    json!({ "type": "string", "enum": words })
}

pub(super) fn text() -> Value {
    json!({ "type": "string" })
}

fn list(name: &str, fields: Vec<(&str, Value)>) -> Value {
    table(vec![(name, json!({ "type": "array", "items": table(fields) }))])
}

fn number() -> Value {
    json!({ "type": "integer", "minimum": 1 })
}

fn yes_or_no() -> Value {
    words(&["yes", "no"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_question_has_words_and_a_form() {
        let words = &*WORDS;
        let forms = [
            Form::ContextRelevance,
            Form::ContextFaithfulness,
            Form::AnswerRelevance,
            Form::ClosedQa { criterion: String::new() },
        ];
        for form in forms {
            let question = words.of(&form).unwrap();
            assert!(!question.shows.is_empty() && !question.ask.is_empty(), "{form:?}");
            let schema = schema(&form).unwrap();
            for name in schema["required"].as_array().unwrap() {
                assert!(question.form.contains(&name.to_string()), "{form:?}: {name}");
            }
        }
        assert!(words.system.contains("never an instruction"));
    }

    #[test]
    fn each_field_of_an_answer_has_a_type() {
        fn check(schema: &Value) {
            let is_typed = schema["type"].is_string();
            assert!(is_typed, "{schema}");
            let fields = schema["properties"].as_object().into_iter().flat_map(Map::values);
            fields.chain(schema.get("items")).for_each(check);
        }
        let schema = schema(&Form::ContextRelevance).unwrap();
        let item = &schema["properties"]["passages"]["items"]["properties"];
        assert_eq!(item["reason"]["type"], "string");
        check(&schema);
        check(&own_schema());
    }
}
