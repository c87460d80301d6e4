//! Which API a path belongs to.

use hyper::{HeaderMap, Method};

use crate::{bedrock, gemini};

/// An API's way to write requests, answers and errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// `POST /v1/chat/completions` and whatever is not another's.
    OpenAi,
    /// `POST /v1/responses`.
    Responses,
    /// `POST /v1/messages`.
    Anthropic,
    /// `POST /api/chat`.
    Ollama,
    /// `POST /v1beta/models/MODEL:generateContent`.
    Gemini,
    /// `POST /model/MODEL/converse`.
    Bedrock,
}

/// Where a request goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// It wants an answer from a model.
    Generate,
    /// It wants the embedding of a text.
    Embed,
    /// It wants the relevance of a text.
    Rerank,
    /// It wants the list of models.
    Models,
    /// It wants the list of a publisher's models, as Vertex AI writes it.
    PublisherModels,
    /// It wants Ollama's version.
    Version,
    /// The path is known, the method is not.
    WrongMethod,
    /// The path is not known.
    Unknown,
    /// Our own: what was seen.
    Seen,
    /// Our own: forget it.
    Reset,
}

pub(crate) fn route(method: &Method, path: &str, headers: &HeaderMap) -> (Dialect, Endpoint) {
    let (dialect, wanted, endpoint) = match path {
        "/v1/chat/completions" | "/chat/completions" => {
            (Dialect::OpenAi, Method::POST, Endpoint::Generate)
        }
        "/v1/responses" | "/responses" => (Dialect::Responses, Method::POST, Endpoint::Generate),
        "/v1/messages" => (Dialect::Anthropic, Method::POST, Endpoint::Generate),
        "/api/chat" => (Dialect::Ollama, Method::POST, Endpoint::Generate),
        "/v1/embeddings" | "/embeddings" => (Dialect::OpenAi, Method::POST, Endpoint::Embed),
        "/v1/rerank" | "/rerank" => (Dialect::OpenAi, Method::POST, Endpoint::Rerank),
        "/api/embed" => (Dialect::Ollama, Method::POST, Endpoint::Embed),
        "/v1/models" | "/models" => (by_header(headers), Method::GET, Endpoint::Models),
        "/v1beta/models" => (Dialect::Gemini, Method::GET, Endpoint::Models),
        "/foundation-models" => (Dialect::Bedrock, Method::GET, Endpoint::Models),
        "/v1beta1/publishers/google/models" | "/v1beta1/publishers/anthropic/models" => {
            (Dialect::Gemini, Method::GET, Endpoint::PublisherModels)
        }
        "/openai/models" => (Dialect::OpenAi, Method::GET, Endpoint::Models),
        _ if is_deployment(path, "/chat/completions") => {
            (Dialect::OpenAi, Method::POST, Endpoint::Generate)
        }
        _ if is_deployment(path, "/embeddings") => (Dialect::OpenAi, Method::POST, Endpoint::Embed),
        _ if gemini::is_generate(path) => (Dialect::Gemini, Method::POST, Endpoint::Generate),
        _ if is_raw_predict(path) => (Dialect::Anthropic, Method::POST, Endpoint::Generate),
        _ if bedrock::is_converse(path) => (Dialect::Bedrock, Method::POST, Endpoint::Generate),
        "/api/tags" => (Dialect::Ollama, Method::GET, Endpoint::Models),
        "/api/version" => (Dialect::Ollama, Method::GET, Endpoint::Version),
        "/__seen" => (Dialect::OpenAi, Method::GET, Endpoint::Seen),
        "/__reset" => (Dialect::OpenAi, Method::POST, Endpoint::Reset),
        _ if path.starts_with("/api/") => return (Dialect::Ollama, Endpoint::Unknown),
        _ => return (by_header(headers), Endpoint::Unknown),
    };
    if *method == wanted { (dialect, endpoint) } else { (dialect, Endpoint::WrongMethod) }
}

/// Whether a path is that of a deployment at Azure, and ends like this.
fn is_deployment(path: &str, tail: &str) -> bool {
    path.starts_with("/openai/deployments/") && path.ends_with(tail)
}

/// Whether a path is that of a model of Anthropic at Vertex AI.
pub(crate) fn is_raw_predict(path: &str) -> bool {
    path.contains("/publishers/anthropic/models/")
        && (path.ends_with(":rawPredict") || path.ends_with(":streamRawPredict"))
}

fn by_header(headers: &HeaderMap) -> Dialect {
    if headers.contains_key("anthropic-version") { Dialect::Anthropic } else { Dialect::OpenAi }
}
