//! `POST /v1/rerank`: how relevant texts are to a question.
//!
//! The relevance of a text is the share of the question's words that it has. A reply whose text is JSON
//! is the relevance itself.

use hyper::HeaderMap;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    answer::{Reply, Text},
    question::{self, Complaint, Question, Wants},
    route::Dialect,
};

#[derive(Deserialize)]
struct Request {
    #[serde(default)]
    model: String,
    #[serde(default)]
    query: String,
    #[serde(default)]
    documents: Vec<String>,
}

/// Reads a request about one text: that is the prompt, and the question are the instructions.
pub(crate) fn read(headers: &HeaderMap, body: &[u8]) -> Result<Question, Complaint> {
    let request: Request =
        serde_json::from_slice(body).map_err(|error| Complaint::plain(&error.to_string()))?;
    let Request { model, query, documents } = request;
    if query.is_empty() {
        return Err(Complaint::plain("\"query\" must be provided"));
    }
    let [document] = <[String; 1]>::try_from(documents)
        .map_err(|_| Complaint::plain("this server takes one document"))?;
    Ok(Question {
        dialect: Dialect::OpenAi,
        model,
        prompt: document,
        key: question::key(headers).map(str::to_owned),
        system: query,
        stream: false,
        stream_usage: false,
        wants: Wants::Relevance,
    })
}

/// The body of a proper answer.
pub(crate) fn answer(question: &Question, reply: &Reply) -> Vec<u8> {
    let relevance = match &reply.text {
        Text::Json(relevance) => relevance.clone(),
        Text::LastWord | Text::Fixed(_) | Text::Prompt | Text::Map(_) => {
            shared_words(&question.system, &question.prompt)
        }
    };
    let tokens = (question.prompt.len() + question.system.len()).div_ceil(4);
    let body = json!({
        "model": reply.model.as_deref().unwrap_or(&question.model),
        "object": "list",
        "usage": { "prompt_tokens": tokens, "total_tokens": tokens },
        "results": [{ "index": 0, "relevance_score": relevance }],
    });
    body.to_string().into_bytes()
}

#[expect(clippy::cast_precision_loss, reason = "a handful of words")]
fn shared_words(query: &str, document: &str) -> Value {
    let words: Vec<&str> = query.split_whitespace().collect();
    let there = words.iter().filter(|it| document.contains(**it)).count();
    json!(there as f64 / words.len().max(1) as f64)
}
