//! Google's Gemini: requests, answers and errors as its reference describes them.

use bytes::Bytes;
use hyper::{HeaderMap, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    answer::{Call, Fault, Finish, Reply, Trouble},
    question::{Complaint, Question, Wants, key},
    reply::{Said, json_response},
    route::Dialect,
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Request {
    #[serde(default)]
    contents: Vec<Content>,
    system_instruction: Option<Content>,
    #[serde(default, rename = "generationConfig")]
    _generation_config: Value,
    #[serde(default, rename = "tools")]
    _tools: Value,
    #[serde(default, rename = "toolConfig")]
    _tool_config: Value,
}

#[derive(Deserialize)]
struct Content {
    role: Option<String>,
    parts: Vec<Part>,
}

#[derive(Deserialize)]
struct Part {
    text: Option<String>,
}

impl Content {
    fn text(&self) -> String {
        self.parts.iter().filter_map(|part| part.text.as_deref()).collect()
    }
}

const STREAM: &str = ":streamGenerateContent";

/// Whether a path asks for content.
pub(crate) fn is_generate(path: &str) -> bool {
    path.contains("/models/") && (path.ends_with(":generateContent") || path.ends_with(STREAM))
}

/// Reads a request; the model stands in the path.
pub(crate) fn read(headers: &HeaderMap, path: &str, body: &[u8]) -> Result<Question, Complaint> {
    let request: Request = serde_json::from_slice(body).map_err(|error| {
        Complaint::plain(&format!("Invalid JSON payload received. Unknown name: {error}"))
    })?;
    let Some(last) = request.contents.last() else {
        return Err(Complaint::plain(
            "* GenerateContentRequest.contents: contents is not specified",
        ));
    };
    if let Some(role) = last.role.as_deref().filter(|it| !["user", "model"].contains(it)) {
        let message = format!("Please use a valid role: user, model. Got {role}.");
        return Err(Complaint::plain(&message));
    }
    let model = path.rsplit('/').next().and_then(|it| it.split(':').next());
    Ok(Question {
        dialect: Dialect::Gemini,
        model: model.unwrap_or_default().to_owned(),
        prompt: last.text(),
        key: key(headers).map(str::to_owned),
        system: request.system_instruction.map(|it| it.text()).unwrap_or_default(),
        stream: path.ends_with(STREAM),
        stream_usage: false,
        wants: Wants::Answer,
    })
}

pub(crate) fn answer(said: &Said<'_>, reply: &Reply) -> Vec<u8> {
    let text = json!([{ "text": said.text }]);
    let (parts, reason) = match &reply.finish {
        Finish::Stop => (text, "STOP"),
        Finish::Length => (text, "MAX_TOKENS"),
        Finish::ContentFilter => {
            let body = json!({
                "promptFeedback": { "blockReason": "SAFETY" },
                "usageMetadata": { "promptTokenCount": said.tokens_in },
                "modelVersion": said.model,
            });
            return body.to_string().into_bytes();
        }
        Finish::Refusal => (json!([]), "SAFETY"),
        Finish::Other(word) => (text, word.as_str()),
        Finish::ToolUse => {
            let Call { name, arguments } = &reply.call;
            let call = json!({ "functionCall": { "name": name, "args": arguments } });
            (json!([call]), "STOP")
        }
    };
    let body = json!({
        "candidates": [{
            "content": { "parts": parts, "role": "model" }, "finishReason": reason, "index": 0,
        }],
        "usageMetadata": {
            "promptTokenCount": said.tokens_in,
            "candidatesTokenCount": said.tokens_out,
            "totalTokenCount": said.tokens_in + said.tokens_out,
        },
        "modelVersion": said.model,
        "responseId": format!("{:012}", said.number),
    });
    body.to_string().into_bytes()
}

pub(crate) fn models(names: &[String]) -> Value {
    let each = |name: &String| {
        json!({
            "name": format!("models/{name}"), "version": "001", "displayName": name,
            "supportedGenerationMethods": ["generateContent", "countTokens"],
        })
    };
    json!({ "models": names.iter().map(each).collect::<Vec<_>>() })
}

/// The same as Vertex AI lists them.
pub(crate) fn publisher_models(names: &[String]) -> Value {
    let each = |name: &String| json!({ "name": format!("publishers/google/models/{name}"), "versionId": "001" });
    json!({ "publisherModels": names.iter().map(each).collect::<Vec<_>>() })
}

pub(crate) fn fault(fault: &Fault, model: &str) -> Response<Bytes> {
    match fault.trouble {
        Trouble::BadRequest | Trouble::ContentPolicy | Trouble::AzureContentFilter => error(
            400,
            "INVALID_ARGUMENT",
            "Invalid value at 'generation_config.temperature' (TYPE_FLOAT), \"x\"",
        ),
        Trouble::ContextLength => error(
            400,
            "INVALID_ARGUMENT",
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        ),
        Trouble::BadKey => {
            error(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.")
        }
        Trouble::Forbidden => {
            error(403, "PERMISSION_DENIED", "The caller does not have permission")
        }
        Trouble::NoSuchModel => {
            let message =
                format!("models/{model} is not found for API version v1beta, or is not supported");
            error(404, "NOT_FOUND", &message)
        }
        Trouble::RequestTimeout | Trouble::GatewayTimeout => {
            error(504, "DEADLINE_EXCEEDED", "Deadline expired before operation could complete.")
        }
        Trouble::TooLarge => {
            error(413, "INVALID_ARGUMENT", "Request payload size exceeds the limit")
        }
        Trouble::RateLimit => error(
            429,
            "RESOURCE_EXHAUSTED",
            "Resource has been exhausted (e.g. check your request rate).",
        ),
        Trouble::Quota => error(
            429,
            "RESOURCE_EXHAUSTED",
            "You exceeded your current quota, please check your plan and billing details.",
        ),
        Trouble::Internal | Trouble::BadGateway => {
            error(500, "INTERNAL", "An internal error has occurred. Please retry.")
        }
        Trouble::Unavailable | Trouble::Overloaded | Trouble::Loading => {
            error(503, "UNAVAILABLE", "The model is overloaded. Please try again later.")
        }
    }
}

pub(crate) fn error(status: u16, name: &str, message: &str) -> Response<Bytes> {
    let body = json!({ "error": { "code": status, "message": message, "status": name } });
    json_response(status, body.to_string().into_bytes())
}
