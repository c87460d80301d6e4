//! Embeddings, in the dialects of servers that make them.
//!
//! A text is asked about as the prompt of a request, and its vector comes back as the text of a reply,
//! so that limits, retries, keys and the cache are those of every other call.

use probity_core::{
    record::Usage,
    reply::Reply,
    request::{Need, Request},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    DialectSpec, Fields, Undecoded, Wanted, azure, count, gemini, ollama, openai, put, vertex,
    without_tail,
};

/// `POST /v1/embeddings`.
pub(super) const OPENAI: DialectSpec = DialectSpec {
    endpoint: |base, _| format!("{}{TAIL}", root(base)),
    models: |base| format!("{}/models", root(base)),
    fields,
    lacks: &Need::ALL,
    encode,
    decode: decode_openai,
    ..openai::SPEC
};

/// The same of a deployment at Azure.
pub(super) const AZURE: DialectSpec = DialectSpec {
    endpoint: |base, deployment| {
        format!("{}/openai/deployments/{deployment}{TAIL}", azure::resource(base))
    },
    fields,
    lacks: &Need::ALL,
    encode,
    decode: decode_openai,
    ..azure::SPEC
};

/// `POST /api/embed`.
pub(super) const OLLAMA: DialectSpec = DialectSpec {
    endpoint: |base, _| format!("{}{OLLAMA_TAIL}", ollama_root(base)),
    models: |base| format!("{}/api/tags", ollama_root(base)),
    fields,
    lacks: &Need::ALL,
    encode,
    decode: decode_ollama,
    ..ollama::SPEC
};

/// `embedContent` of Gemini.
pub(super) const GEMINI: DialectSpec = DialectSpec {
    endpoint: |base, model| {
        (gemini::SPEC.endpoint)(base, model).replace(":generateContent", ":embedContent")
    },
    fields: |_| (Map::new(), Vec::new()),
    lacks: &Need::ALL,
    encode: |fields, request| {
        let mut body = fields.clone();
        body.insert("content".to_owned(), json!({ "parts": [{ "text": request.prompt() }] }));
        Value::Object(body)
    },
    decode: decode_gemini,
    ..gemini::SPEC
};

/// `predict` of a model of embeddings at Vertex AI.
pub(super) const VERTEX: DialectSpec = DialectSpec {
    endpoint: |base, model| {
        (vertex::GEMINI.endpoint)(base, model).replace(":generateContent", ":predict")
    },
    fields: |_| (Map::new(), Vec::new()),
    lacks: &Need::ALL,
    encode: |fields, request| {
        let mut body = fields.clone();
        body.insert("instances".to_owned(), json!([{ "content": request.prompt() }]));
        Value::Object(body)
    },
    decode: decode_vertex,
    ..vertex::GEMINI
};

const TAIL: &str = "/embeddings";
const OLLAMA_TAIL: &str = "/api/embed";

fn root(base: &str) -> &str {
    without_tail(without_tail(base, TAIL), openai::TAIL)
}

fn ollama_root(base: &str) -> &str {
    without_tail(without_tail(base, OLLAMA_TAIL), ollama::TAIL)
}

/// The numbers in a text that a reply of one of these has.
pub(in crate::backend) fn vector_in(text: &str) -> Option<Vec<f32>> {
    serde_json::from_str(text).ok()
}

fn fields(wanted: &Wanted<'_>) -> Fields {
    let mut fields = Map::new();
    put(&mut fields, "model", wanted.model);
    (fields, Vec::new())
}

fn encode(fields: &Map<String, Value>, request: &Request) -> Value {
    let mut body = fields.clone();
    body.insert("input".to_owned(), request.prompt().into());
    Value::Object(body)
}

#[derive(Deserialize)]
struct OpenaiAnswer {
    data: Option<Vec<Entry>>,
    model: Option<String>,
    usage: Option<OpenaiUsage>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Entry {
    embedding: Value,
}

#[derive(Deserialize)]
struct OpenaiUsage {
    prompt_tokens: Option<Value>,
}

fn decode_openai(body: &[u8]) -> Result<Reply, Undecoded> {
    let answer: OpenaiAnswer = serde_json::from_slice(body).map_err(|_| NOT_VECTORS)?;
    if answer.error.is_some_and(|it| !it.is_null()) {
        return Err(Undecoded::Error);
    }
    let vectors = answer.data.ok_or(NOT_VECTORS)?.into_iter().map(|it| it.embedding).collect();
    let tokens = answer.usage.and_then(|it| count(it.prompt_tokens));
    reply(vectors, answer.model, tokens)
}

#[derive(Deserialize)]
struct OllamaAnswer {
    embeddings: Option<Vec<Value>>,
    model: Option<String>,
    prompt_eval_count: Option<Value>,
    error: Option<Value>,
}

fn decode_ollama(body: &[u8]) -> Result<Reply, Undecoded> {
    let answer: OllamaAnswer = serde_json::from_slice(body).map_err(|_| NOT_VECTORS)?;
    if answer.error.is_some_and(|it| !it.is_null()) {
        return Err(Undecoded::Error);
    }
    let vectors = answer.embeddings.ok_or(NOT_VECTORS)?;
    reply(vectors, answer.model, count(answer.prompt_eval_count))
}

#[derive(Deserialize)]
struct GeminiAnswer {
    embedding: Option<Values>,
}

#[derive(Deserialize)]
struct Values {
    values: Value,
    statistics: Option<Statistics>,
}

#[derive(Deserialize)]
struct Statistics {
    token_count: Option<Value>,
}

fn decode_gemini(body: &[u8]) -> Result<Reply, Undecoded> {
    let answer: GeminiAnswer = serde_json::from_slice(body).map_err(|_| NOT_VECTORS)?;
    let vector = answer.embedding.ok_or(NOT_VECTORS)?;
    reply(vec![vector.values], None, None)
}

#[derive(Deserialize)]
struct VertexAnswer {
    predictions: Option<Vec<Prediction>>,
}

#[derive(Deserialize)]
struct Prediction {
    embeddings: Values,
}

fn decode_vertex(body: &[u8]) -> Result<Reply, Undecoded> {
    let answer: VertexAnswer = serde_json::from_slice(body).map_err(|_| NOT_VECTORS)?;
    let predictions = answer.predictions.ok_or(NOT_VECTORS)?;
    let statistics = predictions.first().and_then(|it| it.embeddings.statistics.as_ref());
    let tokens = statistics.and_then(|it| count(it.token_count.clone()));
    reply(predictions.into_iter().map(|it| it.embeddings.values).collect(), None, tokens)
}

const NOT_VECTORS: Undecoded = Undecoded::Shape("it has no embeddings");

/// The reply with the one vector that was asked for.
fn reply(
    vectors: Vec<Value>,
    model: Option<String>,
    input_tokens: Option<u64>,
) -> Result<Reply, Undecoded> {
    let [vector] = <[Value; 1]>::try_from(vectors)
        .map_err(|_| Undecoded::Shape("it does not have one embedding for one text"))?;
    let Value::Array(numbers) = &vector else {
        return Err(Undecoded::Shape("its embedding is not a list of numbers"));
    };
    if numbers.is_empty() {
        return Err(Undecoded::Shape("its embedding is empty"));
    }
    #[expect(clippy::cast_possible_truncation, reason = "what is too large is not finite then")]
    let vector: Option<Vec<f32>> = numbers
        .iter()
        .map(|it| it.as_f64().map(|it| it as f32).filter(|it| it.is_finite()))
        .collect();
    let vector =
        vector.ok_or(Undecoded::Shape("its embedding has something that is no finite number"))?;
    let usage = Usage { input_tokens, output_tokens: Some(0), ..Usage::default() };
    // Finite numbers can always be written down.
    let text = serde_json::to_string(&vector).unwrap_or_default();
    Ok(Reply { text, model, usage, ..Reply::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::dialect::addresses;

    #[test]
    fn addresses_are_made_of_what_people_copy() {
        let at = |spec, base: &str| addresses(spec, base, "m");
        for base in ["http://h/v1", "http://h/v1/chat/completions", "http://h/v1/embeddings"] {
            let expected = ("http://h/v1/embeddings".to_owned(), "http://h/v1/models".to_owned());
            assert_eq!(at(&OPENAI, base), expected);
        }
        for base in ["http://h", "http://h/api/chat", "http://h/api/embed"] {
            let expected = ("http://h/api/embed".to_owned(), "http://h/api/tags".to_owned());
            assert_eq!(at(&OLLAMA, base), expected);
        }
        let azure = at(&AZURE, "https://me.openai.azure.com").0;
        let expected =
            "https://me.openai.azure.com/openai/deployments/m/embeddings?api-version=2024-10-21";
        assert_eq!(azure, expected);
        let gemini = at(&GEMINI, "https://generativelanguage.googleapis.com/v1beta").0;
        let home = "https://generativelanguage.googleapis.com";
        assert_eq!(gemini, format!("{home}/v1beta/models/m:embedContent"));
        let vertex = at(&VERTEX, "https://h/v1/projects/p/locations/l").0;
        assert_eq!(
            vertex,
            "https://h/v1/projects/p/locations/l/publishers/google/models/m:predict"
        );
    }

    #[test]
    fn texts_are_sent_as_each_server_wants_them() {
        let request = Request::new(None, "hi");
        let body = |spec: &DialectSpec| (spec.encode)(&Map::new(), &request);
        assert_eq!(body(&GEMINI), json!({ "content": { "parts": [{ "text": "hi" }] } }));
        assert_eq!(body(&VERTEX), json!({ "instances": [{ "content": "hi" }] }));
    }

    #[test]
    fn documented_answers_are_read() {
        let openai = br#"{"object":"list","data":[{"object":"embedding","index":0,
            "embedding":[0.0023064255,-0.009327292]}],"model":"text-embedding-3-small",
            "usage":{"prompt_tokens":8,"total_tokens":8}}"#;
        let ollama = br#"{"model":"all-minilm","embeddings":[[0.0023064255,-0.009327292]],
            "total_duration":14143917,"load_duration":1019500,"prompt_eval_count":8}"#;
        let vertex = br#"{"predictions":[{"embeddings":{"values":[0.0023064255,-0.009327292],
            "statistics":{"token_count":8,"truncated":false}}}]}"#;
        for read in [decode_openai(openai), decode_ollama(ollama), decode_vertex(vertex)] {
            let Reply { text, usage, .. } = read.unwrap();
            assert_eq!(vector_in(&text), Some(vec![0.002_306_425_5, -0.009_327_292]));
            assert_eq!((usage.input_tokens, usage.output_tokens), (Some(8), Some(0)));
        }
        let gemini = br#"{"embedding":{"values":[0.5,-0.25]}}"#;
        let Reply { text, usage, .. } = decode_gemini(gemini).unwrap();
        assert_eq!((vector_in(&text), usage.input_tokens), (Some(vec![0.5, -0.25]), None));
    }

    #[test]
    fn what_is_no_vector_is_refused() {
        let why = |embedding: &str| {
            let body = format!(r#"{{"data":[{{"embedding":{embedding}}}]}}"#);
            decode_openai(body.as_bytes()).unwrap_err()
        };
        assert_eq!(why("[]"), Undecoded::Shape("its embedding is empty"));
        assert_eq!(why("\"AAAA\""), Undecoded::Shape("its embedding is not a list of numbers"));
        let no_number = Undecoded::Shape("its embedding has something that is no finite number");
        assert_eq!(why("[1, null]"), no_number);
        assert_eq!(why("[1, 1e300]"), no_number);
        assert_eq!(why("[NaN]"), NOT_VECTORS);
        let count = Undecoded::Shape("it does not have one embedding for one text");
        assert_eq!(decode_openai(br#"{"data":[]}"#).unwrap_err(), count);
        assert_eq!(decode_ollama(br#"{"embeddings":[[1],[2]]}"#).unwrap_err(), count);
        assert_eq!(decode_ollama(br#"{"error":"no such model"}"#).unwrap_err(), Undecoded::Error);
    }
}
