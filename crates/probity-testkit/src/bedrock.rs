//! Amazon Bedrock's `Converse`: requests, answers, streams and errors as its reference describes them.

use bytes::Bytes;
use hyper::{HeaderMap, Response, header::HeaderValue};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    answer::{Call, Fault, Finish, Reply, Trouble},
    question::{Complaint, Question, Wants, key},
    reply::{Said, json_response},
    route::Dialect,
    sigv4,
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Request {
    #[serde(default)]
    messages: Vec<Message>,
    #[serde(default)]
    system: Vec<Text>,
    #[serde(default, rename = "inferenceConfig")]
    _inference_config: InferenceConfig,
    #[serde(default, rename = "toolConfig")]
    _tool_config: Value,
    #[serde(default, rename = "outputConfig")]
    _output_config: Value,
    #[serde(default, rename = "additionalModelRequestFields")]
    _additional_model_request_fields: Value,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct InferenceConfig {
    #[serde(default, rename = "maxTokens")]
    _max_tokens: Option<u32>,
    #[serde(default, rename = "temperature")]
    _temperature: Option<f64>,
    #[serde(default, rename = "topP")]
    _top_p: Option<f64>,
    #[serde(default, rename = "stopSequences")]
    _stop_sequences: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Message {
    role: String,
    content: Vec<Text>,
}

#[derive(Deserialize)]
struct Text {
    text: Option<String>,
}

const TAIL: &str = "/converse";
const STREAM: &str = "/converse-stream";

/// Whether a path asks a model.
pub(crate) fn is_converse(path: &str) -> bool {
    path.starts_with("/model/") && (path.ends_with(TAIL) || path.ends_with(STREAM))
}

/// Reads a request; the model stands in the path.
pub(crate) fn read(headers: &HeaderMap, path: &str, body: &[u8]) -> Result<Question, Complaint> {
    authorize(headers, "POST", path, body)?;
    let request: Request = serde_json::from_slice(body)
        .map_err(|error| Complaint::plain(&format!("Malformed input request: {error}")))?;
    let Some(last) = request.messages.last() else {
        return Err(Complaint::plain("The messages field is missing or empty."));
    };
    if last.role != "user" {
        return Err(Complaint::plain("A conversation must end with a user message."));
    }
    if request.messages.windows(2).any(|it| it[0].role == it[1].role) {
        let message = "A conversation must alternate between user and assistant roles.";
        return Err(Complaint::plain(message));
    }
    let model = path.strip_prefix("/model/").and_then(|it| it.rsplit_once('/'));
    let text = |texts: &[Text]| texts.iter().filter_map(|it| it.text.as_deref()).collect();
    Ok(Question {
        dialect: Dialect::Bedrock,
        model: model.map_or("", |it| it.0).replace("%3A", ":").replace("%2F", "/"),
        prompt: text(&last.content),
        key: key(headers).map(str::to_owned),
        system: text(&request.system),
        stream: path.ends_with(STREAM),
        stream_usage: false,
        wants: Wants::Answer,
    })
}

/// Whether a request has a key, or a signature that is right.
pub(crate) fn authorize(
    headers: &HeaderMap,
    method: &str,
    path: &str,
    body: &[u8],
) -> Result<(), Complaint> {
    if key(headers).is_some() {
        return Ok(());
    }
    sigv4::verify(headers, method, path, body).map_err(|why| Complaint {
        message: format!(
            "The request signature we calculated does not match the signature you provided. {why}"
        ),
        param: None,
        code: Some("InvalidSignatureException"),
    })
}

pub(crate) fn answer(said: &Said<'_>, reply: &Reply) -> Vec<u8> {
    let text = json!([{ "text": said.text }]);
    let (content, reason) = match &reply.finish {
        Finish::Stop => (text, "end_turn"),
        Finish::Length => (text, "max_tokens"),
        Finish::ContentFilter => (text, "guardrail_intervened"),
        Finish::Refusal => (json!([]), "content_filtered"),
        Finish::Other(word) => (text, word.as_str()),
        Finish::ToolUse => {
            let id = format!("tooluse_{:012}", said.number);
            let Call { name, arguments } = &reply.call;
            (
                json!([{ "toolUse": { "toolUseId": id, "name": name, "input": arguments } }]),
                "tool_use",
            )
        }
    };
    let body = json!({
        "metrics": { "latencyMs": 5 },
        "output": { "message": { "content": content, "role": "assistant" } },
        "stopReason": reason,
        "usage": {
            "inputTokens": said.tokens_in,
            "outputTokens": said.tokens_out,
            "totalTokens": said.tokens_in + said.tokens_out,
        },
    });
    body.to_string().into_bytes()
}

/// A whole answer as a stream.
pub(crate) fn stream(whole: &Value, pieces: fn(&Value) -> Vec<String>) -> Vec<u8> {
    let mut stream = event("messageStart", &json!({ "role": "assistant" }));
    let content = whole.pointer("/output/message/content").and_then(Value::as_array);
    for (index, block) in content.into_iter().flatten().enumerate() {
        let mut add = |name: &str, key: &str, value: Value| {
            stream.extend(event(name, &json!({ "contentBlockIndex": index, key: value })));
        };
        if block["toolUse"].is_object() {
            let (id, name) = (&block["toolUse"]["toolUseId"], &block["toolUse"]["name"]);
            let started = json!({ "toolUse": { "toolUseId": id, "name": name } });
            add("contentBlockStart", "start", started);
            let input = block["toolUse"]["input"].to_string();
            add("contentBlockDelta", "delta", json!({ "toolUse": { "input": input } }));
        }
        for piece in pieces(&block["text"]) {
            add("contentBlockDelta", "delta", json!({ "text": piece }));
        }
        add("contentBlockStop", "p", json!("abcdefgh"));
    }
    stream.extend(event("messageStop", &json!({ "stopReason": whole["stopReason"] })));
    let metadata = json!({ "usage": whole["usage"], "metrics": whole["metrics"] });
    stream.extend(event("metadata", &metadata));
    stream
}

/// One event: lengths, their checksum, headers, payload, and the checksum of all.
fn event(name: &str, payload: &Value) -> Vec<u8> {
    let payload = payload.to_string();
    let headers =
        [(":event-type", name), (":content-type", "application/json"), (":message-type", "event")];
    let mut head = Vec::new();
    for (name, value) in headers {
        head.push(u8::try_from(name.len()).expect("names are short"));
        head.extend(name.as_bytes());
        head.push(7);
        head.extend(u16::try_from(value.len()).expect("values are short").to_be_bytes());
        head.extend(value.as_bytes());
    }
    let number = |it: usize| u32::try_from(it).expect("events are small").to_be_bytes();
    let mut event = [number(16 + head.len() + payload.len()), number(head.len())].concat();
    event.extend(checksum(&event).to_be_bytes());
    event.extend(head);
    event.extend(payload.as_bytes());
    event.extend(checksum(&event).to_be_bytes());
    event
}

/// The CRC-32 of gzip, bit by bit.
fn checksum(bytes: &[u8]) -> u32 {
    let mut sum = u32::MAX;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = if sum & 1 == 1 { (sum >> 1) ^ 0xedb8_8320 } else { sum >> 1 };
        }
    }
    !sum
}

pub(crate) fn models(names: &[String]) -> Value {
    let each = |name: &String| {
        json!({
            "modelArn": format!("arn:aws:bedrock:us-east-1::foundation-model/{name}"),
            "modelId": name, "modelName": name, "providerName": "Probity",
            "responseStreamingSupported": true,
        })
    };
    json!({ "modelSummaries": names.iter().map(each).collect::<Vec<_>>() })
}

pub(crate) fn fault(fault: &Fault) -> Response<Bytes> {
    match fault.trouble {
        Trouble::BadRequest | Trouble::ContentPolicy | Trouble::AzureContentFilter => error(
            400,
            "ValidationException",
            "The value at inferenceConfig.temperature must be less than or equal to 1.",
        ),
        Trouble::ContextLength | Trouble::TooLarge => {
            error(400, "ValidationException", "Input is too long for requested model.")
        }
        Trouble::BadKey => error(
            403,
            "UnrecognizedClientException",
            "The security token included in the request is invalid.",
        ),
        Trouble::Forbidden => error(
            403,
            "AccessDeniedException",
            "You don't have access to the model with the specified model ID.",
        ),
        Trouble::NoSuchModel => {
            error(400, "ValidationException", "The provided model identifier is invalid.")
        }
        Trouble::RequestTimeout | Trouble::GatewayTimeout => error(
            408,
            "ModelTimeoutException",
            "Model has timed out in processing the request. Try your request again.",
        ),
        Trouble::RateLimit => {
            error(429, "ThrottlingException", "Too many requests, please wait before trying again.")
        }
        Trouble::Quota => error(
            400,
            "ServiceQuotaExceededException",
            "Your request exceeds the service quota for your account.",
        ),
        Trouble::Internal | Trouble::BadGateway => error(
            500,
            "InternalServerException",
            "The system encountered an unexpected error during processing. Try your request again.",
        ),
        Trouble::Unavailable | Trouble::Overloaded => {
            error(503, "ServiceUnavailableException", "Bedrock is unable to process your request.")
        }
        Trouble::Loading => error(
            429,
            "ModelNotReadyException",
            "Model is not ready for inference. Wait and try your request again.",
        ),
    }
}

/// An error; its kind stands in a header.
pub(crate) fn error(status: u16, kind: &str, message: &str) -> Response<Bytes> {
    let body = json!({ "message": message }).to_string();
    let mut response = json_response(status, body.into_bytes());
    let kind = format!("{kind}:http://internal.amazon.com/coral/com.amazon.bedrock/");
    let kind = HeaderValue::try_from(kind).expect("kinds are ASCII");
    response.headers_mut().insert("x-amzn-errortype", kind);
    response
}

/// What a request gets that the vendor would not take.
pub(crate) fn refuse(complaint: &Complaint) -> Response<Bytes> {
    match complaint.code {
        Some(kind) => error(403, kind, &complaint.message),
        None => error(400, "ValidationException", &complaint.message),
    }
}
