//! How relevant a text is to a question: `POST /v1/rerank`, as Cohere, Jina, llama.cpp and vLLM have it.
//!
//! The question is asked as the instructions of a request and the text as its prompt, and the relevance
//! comes back as the text of a reply, so that limits, retries, keys and the cache are those of every other
//! call.

use probity_core::{
    record::Usage,
    reply::Reply,
    request::{Need, Request},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{DialectSpec, Fields, Undecoded, Wanted, count, openai, put, without_tail};

pub(super) const SPEC: DialectSpec = DialectSpec {
    endpoint: |base, _| format!("{}{TAIL}", root(base)),
    models: |base| format!("{}/models", root(base)),
    fields,
    lacks: &Need::ALL,
    encode,
    decode,
    ..openai::SPEC
};

const TAIL: &str = "/rerank";

fn root(base: &str) -> &str {
    without_tail(without_tail(base, TAIL), openai::TAIL)
}

fn fields(wanted: &Wanted<'_>) -> Fields {
    let mut fields = Map::new();
    put(&mut fields, "model", wanted.model);
    (fields, Vec::new())
}

fn encode(fields: &Map<String, Value>, request: &Request) -> Value {
    let mut body = fields.clone();
    body.insert("query".to_owned(), request.system().unwrap_or_default().into());
    body.insert("documents".to_owned(), json!([request.prompt()]));
    Value::Object(body)
}

#[derive(Deserialize)]
struct Answer {
    results: Option<Vec<Ranked>>,
    model: Option<String>,
    usage: Option<Tokens>,
    meta: Option<Meta>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Ranked {
    index: Option<Value>,
    relevance_score: Option<Value>,
}

#[derive(Deserialize)]
struct Tokens {
    prompt_tokens: Option<Value>,
    total_tokens: Option<Value>,
}

/// Where Cohere counts.
#[derive(Deserialize)]
struct Meta {
    tokens: Option<MetaTokens>,
}

#[derive(Deserialize)]
struct MetaTokens {
    input_tokens: Option<Value>,
}

fn decode(body: &[u8]) -> Result<Reply, Undecoded> {
    let answer: Answer = serde_json::from_slice(body).map_err(|_| NO_RESULTS)?;
    if answer.error.is_some_and(|it| !it.is_null()) {
        return Err(Undecoded::Error);
    }
    let results = answer.results.ok_or(NO_RESULTS)?;
    let [Ranked { index, relevance_score }] = <[Ranked; 1]>::try_from(results)
        .map_err(|_| Undecoded::Shape("it does not have one result for one text"))?;
    if index.is_some_and(|it| it.as_u64() != Some(0)) {
        return Err(Undecoded::Shape("its result is about another text"));
    }
    let relevance = relevance_score.and_then(|it| it.as_f64());
    let relevance = relevance.ok_or(Undecoded::Shape("its result has no `relevance_score`"))?;
    let of_usage = answer.usage.and_then(|it| count(it.prompt_tokens).or(count(it.total_tokens)));
    let of_meta = || count(answer.meta?.tokens?.input_tokens);
    let input_tokens = of_usage.or_else(of_meta);
    let usage = Usage { input_tokens, output_tokens: Some(0), ..Usage::default() };
    let text = relevance.to_string();
    Ok(Reply { text, model: answer.model, usage, ..Reply::default() })
}

const NO_RESULTS: Undecoded = Undecoded::Shape("it has no results");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::dialect::addresses;

    #[test]
    fn addresses_are_made_of_what_people_copy() {
        for base in ["http://h/v1", "http://h/v1/chat/completions", "http://h/v1/rerank"] {
            let expected = ("http://h/v1/rerank".to_owned(), "http://h/v1/models".to_owned());
            assert_eq!(addresses(&SPEC, base, "m"), expected);
        }
    }

    #[test]
    fn the_bodies_of_several_servers_are_read() {
        let cohere = br#"{"results":[{"index":0,"relevance_score":0.98}],"id":"07734bd2",
            "meta":{"api_version":{"version":"2"},"billed_units":{"search_units":1},
            "tokens":{"input_tokens":12}}}"#;
        let jina = br#"{"model":"jina-reranker-v2","object":"list","usage":{"total_tokens":12},
            "results":[{"index":0,"relevance_score":0.98,"document":{"text":"a"}}]}"#;
        let llama = br#"{"model":"bge","object":"list","usage":{"prompt_tokens":12,
            "total_tokens":12},"results":[{"index":0,"relevance_score":0.98}]}"#;
        for body in [&cohere[..], jina, llama] {
            let Reply { text, usage, .. } = decode(body).unwrap();
            assert_eq!((text.as_str(), usage.input_tokens), ("0.98", Some(12)));
        }
    }

    #[test]
    fn what_is_no_relevance_is_refused() {
        let why = |body: &str| decode(body.as_bytes()).unwrap_err();
        assert_eq!(why("{}"), NO_RESULTS);
        assert_eq!(why("[]"), NO_RESULTS);
        let count = Undecoded::Shape("it does not have one result for one text");
        assert_eq!(why(r#"{"results":[]}"#), count);
        let score = Undecoded::Shape("its result has no `relevance_score`");
        assert_eq!(why(r#"{"results":[{"index":0,"score":1}]}"#), score);
        let other = Undecoded::Shape("its result is about another text");
        assert_eq!(why(r#"{"results":[{"index":1,"relevance_score":1}]}"#), other);
        assert_eq!(why(r#"{"error":{"message":"no"}}"#), Undecoded::Error);
    }
}
