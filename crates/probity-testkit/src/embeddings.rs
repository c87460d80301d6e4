//! Embeddings: `POST /v1/embeddings` and Ollama's `POST /api/embed`.
//!
//! The vector of a text is how often it has each letter, so texts that share letters are near each
//! other. A reply whose text is JSON is the vector itself.

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
    model: Value,
    #[serde(default)]
    input: Value,
}

/// Reads a request for the embedding of one text.
pub(crate) fn read(
    dialect: Dialect,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Question, Complaint> {
    let request: Request =
        serde_json::from_slice(body).map_err(|error| Complaint::plain(&error.to_string()))?;
    let model = request.model.as_str().filter(|it| !it.is_empty());
    let model = model.ok_or_else(|| {
        Complaint::plain(match dialect {
            Dialect::Ollama => "model is required",
            Dialect::OpenAi
            | Dialect::Responses
            | Dialect::Anthropic
            | Dialect::Gemini
            | Dialect::Bedrock => "you must provide a model parameter",
        })
    })?;
    let text = match request.input.as_array().map(Vec::as_slice) {
        Some([text]) => text.as_str(),
        Some(_) | None => request.input.as_str(),
    };
    let text = text.filter(|it| !it.is_empty()).ok_or_else(|| Complaint {
        message: "'$.input' is invalid. Please check the API reference.".to_owned(),
        param: Some("input"),
        code: None,
    })?;
    Ok(Question {
        dialect,
        model: model.to_owned(),
        prompt: text.to_owned(),
        key: question::key(headers).map(str::to_owned),
        system: String::new(),
        stream: false,
        stream_usage: false,
        wants: Wants::Embedding,
    })
}

/// The body of a proper answer.
pub(crate) fn answer(question: &Question, reply: &Reply) -> Vec<u8> {
    let vector = match &reply.text {
        Text::Json(vector) => vector.clone(),
        Text::LastWord | Text::Fixed(_) | Text::Prompt | Text::Map(_) => letters(&question.prompt),
    };
    let model = reply.model.as_deref().unwrap_or(&question.model);
    let tokens = question.prompt.len().div_ceil(4);
    let body = match question.dialect {
        Dialect::Ollama => json!({
            "model": model, "embeddings": [vector], "total_duration": 14_143_917,
            "load_duration": 1_019_500, "prompt_eval_count": tokens,
        }),
        Dialect::OpenAi
        | Dialect::Responses
        | Dialect::Anthropic
        | Dialect::Gemini
        | Dialect::Bedrock => json!({
            "object": "list",
            "data": [{ "object": "embedding", "index": 0, "embedding": vector }],
            "model": model,
            "usage": { "prompt_tokens": tokens, "total_tokens": tokens },
        }),
    };
    body.to_string().into_bytes()
}

fn letters(text: &str) -> Value {
    let text = text.to_ascii_lowercase();
    let counts = (b'a'..=b'z').map(|letter| text.bytes().filter(|it| *it == letter).count());
    counts.collect()
}
