//! The vendors' errors: status, headers and body as they send them.
//!
//! Where no vendor's own text was found, it is made up in the vendor's shape: 408 of all
//! three, 403 and 529 of the dialects that have none, and of Ollama also 401, 413, the rate
//! limit and the content policy.

use std::time::Duration;

use bytes::Bytes;
use hyper::{
    Method, Response,
    header::{HeaderName, HeaderValue},
};
use jiff::{SignedDuration, Timestamp, fmt::rfc2822::DateTimePrinter};
use serde_json::{Value, json};

use crate::{
    answer::{Fault, RetryAfter, Trouble},
    bedrock, gemini,
    question::{Complaint, Question},
    reply::json_response,
    route::Dialect,
};

/// The error that a request gets.
pub(crate) fn respond(fault: &Fault, question: &Question) -> Response<Bytes> {
    let dialect = question.dialect;
    let Fault { trouble, retry, echo_key } = fault;
    let key = question.key.as_deref().unwrap_or_default();
    let shown = if *echo_key { key.to_owned() } else { masked(key) };
    let mut response = match dialect {
        Dialect::OpenAi | Dialect::Responses => openai(fault, &question.model, &shown),
        Dialect::Anthropic => anthropic(*trouble, &question.model),
        Dialect::Ollama => ollama(*trouble, &question.model),
        Dialect::Gemini => gemini::fault(fault, &question.model),
        Dialect::Bedrock => bedrock::fault(fault),
    };
    if *echo_key && !contains(response.body(), key) {
        append_to_message(&mut response, &format!(" (the key was {key})"));
    }
    if *trouble == Trouble::RateLimit {
        add_headers(&mut response, remaining(dialect));
    }
    for retry in retry {
        add_headers(&mut response, retry_headers(dialect, *retry));
    }
    if (dialect, *trouble) == (Dialect::Anthropic, Trouble::Overloaded) {
        add_headers(&mut response, vec![("x-should-retry", "true".to_owned())]);
    }
    let id = if dialect == Dialect::Anthropic { "request-id" } else { "x-request-id" };
    add_headers(&mut response, vec![(id, REQUEST_ID.to_owned())]);
    response
}

/// What a request gets that the vendor would not take.
pub(crate) fn refuse(dialect: Dialect, complaint: &Complaint) -> Response<Bytes> {
    let Complaint { message, param, code } = complaint;
    match dialect {
        Dialect::OpenAi | Dialect::Responses => {
            openai_error(400, "invalid_request_error", message, *param, *code)
        }
        Dialect::Anthropic => anthropic_error(400, "invalid_request_error", message),
        Dialect::Ollama => ollama_error(400, message),
        Dialect::Gemini => gemini::error(400, "INVALID_ARGUMENT", message),
        Dialect::Bedrock => bedrock::refuse(complaint),
    }
}

/// What a path gets that is not there.
pub(crate) fn unknown_path(dialect: Dialect, method: &Method, path: &str) -> Response<Bytes> {
    match dialect {
        Dialect::OpenAi | Dialect::Responses => {
            let message = format!("Invalid URL ({method} {path})");
            openai_error(404, "invalid_request_error", &message, None, None)
        }
        Dialect::Anthropic => anthropic_error(404, "not_found_error", "Not found"),
        Dialect::Ollama => text(404, "404 page not found"),
        Dialect::Gemini => gemini::error(404, "NOT_FOUND", "Requested entity was not found."),
        Dialect::Bedrock => bedrock::error(404, "UnknownOperationException", "Unknown operation."),
    }
}

/// What a path gets that is there for another method.
pub(crate) fn wrong_method(dialect: Dialect, method: &Method, path: &str) -> Response<Bytes> {
    match dialect {
        Dialect::OpenAi | Dialect::Responses => {
            let message = format!(
                "Not allowed to {method} on {path}. (HINT: Perhaps you meant to use a different \
                 HTTP method?)"
            );
            openai_error(405, "invalid_request_error", &message, None, None)
        }
        Dialect::Anthropic => anthropic_error(405, "invalid_request_error", "Method Not Allowed"),
        Dialect::Ollama => text(405, "405 method not allowed"),
        Dialect::Gemini => gemini::error(405, "UNIMPLEMENTED", "Method not allowed"),
        Dialect::Bedrock => bedrock::error(405, "UnknownOperationException", "Unknown operation."),
    }
}

const REQUEST_ID: &str = "req_011CTestRequestId000000";

fn openai(fault: &Fault, model: &str, key: &str) -> Response<Bytes> {
    let invalid = "invalid_request_error";
    match fault.trouble {
        Trouble::BadRequest => openai_error(
            400,
            invalid,
            "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 5 \
             instead.",
            Some("temperature"),
            Some("decimal_above_max_value"),
        ),
        Trouble::ContextLength => openai_error(
            400,
            invalid,
            "This model's maximum context length is 8192 tokens. However, your messages resulted \
             in 9015 tokens. Please reduce the length of the messages.",
            Some("messages"),
            Some("context_length_exceeded"),
        ),
        Trouble::ContentPolicy => openai_error(
            400,
            invalid,
            "Invalid prompt: your prompt was flagged as potentially violating our usage policy. \
             Please try again with a different prompt: \
             https://platform.openai.com/docs/guides/reasoning#advice-on-prompting",
            None,
            Some("invalid_prompt"),
        ),
        Trouble::BadKey => {
            let message = format!(
                "Incorrect API key provided: {key}. You can find your API key at \
                 https://platform.openai.com/account/api-keys."
            );
            openai_error(401, invalid, &message, None, Some("invalid_api_key"))
        }
        Trouble::Forbidden => openai_error(
            403,
            "request_forbidden",
            "Country, region, or territory not supported",
            None,
            Some("unsupported_country_region_territory"),
        ),
        Trouble::NoSuchModel => {
            let message =
                format!("The model `{model}` does not exist or you do not have access to it.");
            openai_error(404, invalid, &message, None, Some("model_not_found"))
        }
        Trouble::RequestTimeout => {
            openai_error(408, "timeout", "Request timed out.", None, Some("request_timeout"))
        }
        Trouble::TooLarge => openai_error(413, invalid, "Request too large", None, None),
        Trouble::RateLimit => {
            let wait = fault
                .retry
                .first()
                .map(|retry| format!("Please try again in {}. ", go_duration(retry.wait())));
            let message = format!(
                "Rate limit reached for {model} in organization org-test on requests per min \
                 (RPM): Limit 500, Used 500, Requested 1. {}Visit \
                 https://platform.openai.com/account/rate-limits to learn more.",
                wait.unwrap_or_default()
            );
            openai_error(429, "requests", &message, None, Some("rate_limit_exceeded"))
        }
        Trouble::Quota => openai_error(
            429,
            "insufficient_quota",
            "You exceeded your current quota, please check your plan and billing details. For \
             more information on this error, read the docs: \
             https://platform.openai.com/docs/guides/error-codes/api-errors.",
            None,
            Some("insufficient_quota"),
        ),
        Trouble::Internal => openai_error(
            500,
            "server_error",
            "The server had an error while processing your request. Sorry about that!",
            None,
            None,
        ),
        Trouble::Unavailable => openai_error(
            503,
            "server_error",
            "That model is currently overloaded with other requests. You can retry your request, \
             or contact us through our help center at help.openai.com if the error persists.",
            None,
            None,
        ),
        Trouble::Overloaded => openai_error(529, "overloaded_error", "Overloaded", None, None),
        Trouble::GatewayTimeout => html(504, "504 Gateway Time-out"),
        Trouble::AzureContentFilter => azure_content_filter(),
        Trouble::BadGateway => html(502, "502 Bad Gateway"),
        Trouble::Loading => loading(),
    }
}

fn anthropic(trouble: Trouble, model: &str) -> Response<Bytes> {
    let invalid = "invalid_request_error";
    match trouble {
        Trouble::BadRequest => anthropic_error(400, invalid, "temperature: range: 0..1"),
        Trouble::ContextLength => {
            anthropic_error(400, invalid, "prompt is too long: 214318 tokens > 200000 maximum")
        }
        Trouble::ContentPolicy => {
            anthropic_error(400, invalid, "Output blocked by content filtering policy")
        }
        Trouble::BadKey => anthropic_error(401, "authentication_error", "invalid x-api-key"),
        Trouble::Forbidden => anthropic_error(
            403,
            "permission_error",
            "Your API key does not have permission to use the specified resource.",
        ),
        Trouble::NoSuchModel => anthropic_error(404, "not_found_error", &format!("model: {model}")),
        Trouble::RequestTimeout => anthropic_error(408, "timeout_error", "Request timed out"),
        Trouble::TooLarge => {
            anthropic_error(413, "request_too_large", "Request exceeds the maximum size")
        }
        Trouble::RateLimit => anthropic_error(
            429,
            "rate_limit_error",
            "This request would exceed your organization's rate limit of 50 requests per minute. \
             For details, refer to the API documentation.",
        ),
        Trouble::Quota => anthropic_error(
            400,
            invalid,
            "Your credit balance is too low to access the Anthropic API. Please go to Plans & \
             Billing to upgrade or purchase credits.",
        ),
        Trouble::Internal => anthropic_error(500, "api_error", "Internal server error"),
        Trouble::Unavailable => text(
            503,
            "upstream connect error or disconnect/reset before headers. reset reason: overflow",
        ),
        Trouble::GatewayTimeout => anthropic_error(504, "timeout_error", "Request timed out"),
        Trouble::Overloaded => anthropic_error(529, "overloaded_error", "Overloaded"),
        Trouble::AzureContentFilter => azure_content_filter(),
        Trouble::BadGateway => html(502, "502 Bad Gateway"),
        Trouble::Loading => loading(),
    }
}

fn ollama(trouble: Trouble, model: &str) -> Response<Bytes> {
    match trouble {
        Trouble::BadRequest => ollama_error(
            400,
            "json: cannot unmarshal string into Go struct field ChatRequest.messages of type \
             []api.Message",
        ),
        Trouble::ContextLength => ollama_error(400, "the input length exceeds the context length"),
        Trouble::ContentPolicy => ollama_error(400, "the prompt was flagged by moderation"),
        Trouble::BadKey => ollama_error(401, "unauthorized"),
        Trouble::Forbidden => ollama_error(403, "forbidden"),
        Trouble::NoSuchModel => ollama_error(404, &format!("model '{model}' not found")),
        Trouble::RequestTimeout => ollama_error(408, "request timeout"),
        Trouble::TooLarge => ollama_error(413, "http: request body too large"),
        Trouble::RateLimit => ollama_error(429, "too many concurrent requests"),
        Trouble::Quota => ollama_error(
            429,
            "you (test) have reached your weekly usage limit, upgrade for higher limits: \
             https://ollama.com/upgrade",
        ),
        Trouble::Internal => {
            ollama_error(500, "llama runner process has terminated: exit status 2")
        }
        Trouble::Unavailable => {
            ollama_error(503, "server busy, please try again.  maximum pending requests exceeded")
        }
        Trouble::Overloaded => ollama_error(529, "overloaded"),
        Trouble::GatewayTimeout => html(504, "504 Gateway Time-out"),
        Trouble::AzureContentFilter => azure_content_filter(),
        Trouble::BadGateway => html(502, "502 Bad Gateway"),
        Trouble::Loading => loading(),
    }
}

fn azure_content_filter() -> Response<Bytes> {
    let safe = json!({ "filtered": false, "severity": "safe" });
    let body = json!({ "error": {
        "message": "The response was filtered due to the prompt triggering Azure OpenAI's content \
                    management policy. Please modify your prompt and retry. To learn more about \
                    our content filtering policies please read our documentation: \
                    https://go.microsoft.com/fwlink/?linkid=2198766",
        "type": null,
        "param": "prompt",
        "code": "content_filter",
        "status": 400,
        "innererror": {
            "code": "ResponsibleAIPolicyViolation",
            "content_filter_result": {
                "hate": safe,
                "jailbreak": { "filtered": false, "detected": false },
                "self_harm": safe,
                "sexual": safe,
                "violence": { "filtered": true, "severity": "medium" },
            },
        },
    } });
    json_response(400, body.to_string().into_bytes())
}

fn loading() -> Response<Bytes> {
    let body =
        br#"{"error":{"message":"Loading model","type":"unavailable_error","code":503}}"#.to_vec();
    json_response(503, body)
}

fn openai_error(
    status: u16,
    kind: &str,
    message: &str,
    param: Option<&str>,
    code: Option<&str>,
) -> Response<Bytes> {
    let error = json!({ "message": message, "type": kind, "param": param, "code": code });
    json_response(status, json!({ "error": error }).to_string().into_bytes())
}

fn anthropic_error(status: u16, kind: &str, message: &str) -> Response<Bytes> {
    let error = json!({ "type": kind, "message": message });
    let body = json!({ "type": "error", "error": error, "request_id": REQUEST_ID });
    json_response(status, body.to_string().into_bytes())
}

fn ollama_error(status: u16, message: &str) -> Response<Bytes> {
    json_response(status, json!({ "error": message }).to_string().into_bytes())
}

fn html(status: u16, title: &str) -> Response<Bytes> {
    let page = format!(
        "<html>\r\n<head><title>{title}</title></head>\r\n<body>\r\n<center><h1>{title}</h1>\
         </center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n"
    );
    with_type(status, "text/html", page)
}

fn text(status: u16, text: &str) -> Response<Bytes> {
    with_type(status, "text/plain", text.to_owned())
}

fn with_type(status: u16, content_type: &'static str, body: String) -> Response<Bytes> {
    let mut response = json_response(status, body.into_bytes());
    let content_type = HeaderValue::from_static(content_type);
    response.headers_mut().insert("content-type", content_type);
    response
}

/// `sk-inval**********-key`, as `OpenAI` shows it.
fn masked(key: &str) -> String {
    match (key.get(..8), key.len().checked_sub(4).and_then(|at| key.get(at..))) {
        (Some(start), Some(end)) if key.len() > 12 => format!("{start}**********{end}"),
        _ => "*".repeat(key.len()),
    }
}

fn contains(body: &Bytes, key: &str) -> bool {
    key.is_empty() || String::from_utf8_lossy(body).contains(key)
}

/// Adds to the message of a JSON error, or to the text if it is none.
fn append_to_message(response: &mut Response<Bytes>, more: &str) {
    let body = match serde_json::from_slice::<Value>(response.body()) {
        Ok(mut body) => {
            let error = &mut body["error"];
            let message = if error.is_string() { error } else { &mut error["message"] };
            *message = format!("{}{more}", message.as_str().unwrap_or_default()).into();
            body.to_string()
        }
        Err(_) => format!("{}{more}", String::from_utf8_lossy(response.body())),
    };
    *response.body_mut() = Bytes::from(body);
}

fn retry_headers(dialect: Dialect, retry: RetryAfter) -> Vec<(&'static str, String)> {
    match retry {
        RetryAfter::Seconds(seconds) => vec![("retry-after", seconds.to_string())],
        RetryAfter::Millis(millis) => vec![("retry-after-ms", millis.to_string())],
        RetryAfter::Date(seconds) => {
            let date = DateTimePrinter::new()
                .timestamp_to_rfc9110_string(&from_now(Duration::from_secs(seconds)))
                .expect("the year has four digits");
            vec![("retry-after", date)]
        }
        RetryAfter::Reset(after) => {
            let mut headers = remaining(dialect);
            headers.push(match dialect {
                Dialect::OpenAi | Dialect::Responses => {
                    ("x-ratelimit-reset-requests", go_duration(after))
                }
                Dialect::Anthropic => {
                    ("anthropic-ratelimit-requests-reset", from_now(after).to_string())
                }
                Dialect::Ollama | Dialect::Gemini | Dialect::Bedrock => {
                    ("ratelimit-reset", after.as_millis().div_ceil(1000).to_string())
                }
            });
            headers
        }
    }
}

fn remaining(dialect: Dialect) -> Vec<(&'static str, String)> {
    let (limit, remaining, most) = match dialect {
        Dialect::OpenAi | Dialect::Responses => {
            ("x-ratelimit-limit-requests", "x-ratelimit-remaining-requests", 500)
        }
        Dialect::Anthropic => {
            ("anthropic-ratelimit-requests-limit", "anthropic-ratelimit-requests-remaining", 50)
        }
        Dialect::Ollama | Dialect::Gemini | Dialect::Bedrock => {
            ("ratelimit-limit", "ratelimit-remaining", 50)
        }
    };
    vec![(limit, most.to_string()), (remaining, "0".to_owned())]
}

fn from_now(after: Duration) -> Timestamp {
    let after = SignedDuration::try_from(after).expect("no test waits for centuries");
    Timestamp::now().checked_add(after).expect("no test waits for centuries")
}

/// As Go writes durations, and so `OpenAI`: `120ms`, `1.5s`, `6m0s`.
fn go_duration(duration: Duration) -> String {
    let (minutes, seconds) = (duration.as_secs() / 60, duration.as_secs() % 60);
    let millis = duration.subsec_millis();
    let fraction = format!(".{millis:03}");
    let fraction = fraction.trim_end_matches('0').trim_end_matches('.');
    match (minutes, seconds) {
        (0, 0) => format!("{millis}ms"),
        (0, _) => format!("{seconds}{fraction}s"),
        _ => format!("{minutes}m{seconds}{fraction}s"),
    }
}

fn add_headers(response: &mut Response<Bytes>, headers: Vec<(&'static str, String)>) {
    for (name, value) in headers {
        let value = HeaderValue::try_from(value).expect("our headers are ASCII");
        response.headers_mut().insert(HeaderName::from_static(name), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_go_does() {
        assert_eq!(go_duration(Duration::from_millis(120)), "120ms");
        assert_eq!(go_duration(Duration::from_millis(1_500)), "1.5s");
        assert_eq!(go_duration(Duration::from_secs(2)), "2s");
        assert_eq!(go_duration(Duration::from_mins(6)), "6m0s");
    }

    #[test]
    fn a_key_is_echoed_only_on_request() {
        let key = "sk-invalid-0123456789-key";
        let question = |dialect| Question {
            dialect,
            model: "m".to_owned(),
            prompt: String::new(),
            key: Some(key.to_owned()),
            system: String::new(),
            stream: false,
            stream_usage: false,
            wants: crate::question::Wants::Answer,
        };
        for dialect in [Dialect::OpenAi, Dialect::Anthropic, Dialect::Ollama] {
            let question = question(dialect);
            for trouble in Trouble::ALL {
                let fault = Fault::new(trouble);
                let plain = respond(&fault, &question);
                assert!(!contains(plain.body(), key), "{dialect:?} {trouble:?}");
                let echo = respond(&fault.echo_key(), &question);
                assert!(contains(echo.body(), key), "{dialect:?} {trouble:?}");
                assert_eq!(plain.status(), echo.status());
            }
        }
        let masked = respond(&Fault::new(Trouble::BadKey), &question(Dialect::OpenAi));
        assert!(contains(masked.body(), "provided: sk-inval**********-key. You"));
    }
}
