//! What the server can answer. Plain data: the sending is elsewhere.

use std::{collections::BTreeMap, time::Duration};

use serde_json::Value;

/// What happens to a request.
#[derive(Debug, Clone)]
pub enum Answer {
    /// A proper answer.
    Reply(Reply),
    /// An error as the vendor sends it.
    Fault(Fault),
    /// Exactly this.
    Raw {
        /// The HTTP status.
        status: u16,
        /// The headers; `content-length` comes by itself.
        headers: Vec<(String, String)>,
        /// The body.
        body: String,
    },
    /// No answer, ever.
    Hang,
    /// Status and headers of a proper answer, and then nothing.
    HangAfterHeaders,
    /// A proper answer in pieces.
    SlowBody {
        /// How many bytes a piece has.
        chunk: usize,
        /// The pause before each piece.
        every: Duration,
    },
    /// The first half of a proper answer, then the connection is closed.
    Truncated,
    /// Status 200, and a body that claims to be JSON and is not.
    Garbage,
    /// Status 200 and no body.
    EmptyBody,
    /// A proper answer in which the model said nothing.
    EmptyText,
    /// The connection is reset (RST) without a byte.
    Reset,
    /// The connection is closed (FIN) without a byte.
    Close,
    /// A redirection.
    Redirect {
        /// The HTTP status, 301 to 308.
        status: u16,
        /// The `location` header.
        location: String,
    },
    /// A proper answer after so much white space. It is valid JSON: only a limit stops it.
    HugeBody {
        /// How many bytes the body has at least. Its length is not announced.
        bytes: u64,
    },
}

impl Answer {
    /// A proper answer with this text.
    pub fn text(text: &str) -> Self {
        Self::Reply(Reply { text: Text::Fixed(text.to_owned()), ..Reply::default() })
    }

    /// A proper answer that calls a tool.
    pub fn call(name: &str, arguments: Value) -> Self {
        let call = Call { name: name.to_owned(), arguments };
        Self::Reply(Reply { finish: Finish::ToolUse, call, ..Reply::default() })
    }

    /// Exactly this, as JSON.
    pub fn json(body: &str) -> Self {
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        Self::Raw { status: 200, headers, body: body.to_owned() }
    }

    /// A vendor's error without any advice when to come back.
    pub fn fault(trouble: Trouble) -> Self {
        Self::Fault(Fault::new(trouble))
    }

    /// The name under which [`Seen::outcomes`](crate::Seen::outcomes) counts it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Reply(_) => "reply",
            Self::Fault(fault) => fault.trouble.name(),
            Self::Raw { .. } => "raw",
            Self::Hang => "hang",
            Self::HangAfterHeaders => "hang_after_headers",
            Self::SlowBody { .. } => "slow_body",
            Self::Truncated => "truncated",
            Self::Garbage => "garbage",
            Self::EmptyBody => "empty_body",
            Self::EmptyText => "empty_text",
            Self::Reset => "reset",
            Self::Close => "close",
            Self::Redirect { .. } => "redirect",
            Self::HugeBody { .. } => "huge_body",
        }
    }
}

/// A proper answer. Token counts are a quarter of the bytes of prompt and text.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    /// What the model says.
    pub text: Text,
    /// Why it stopped.
    pub finish: Finish,
    /// What it calls, if it stops for that.
    pub call: Call,
    /// The model that claims to have answered; the one that was asked, if not set.
    pub model: Option<String>,
    /// `system_fingerprint`, which only `OpenAI`'s dialect has.
    pub fingerprint: Option<String>,
}

/// A call of a tool.
#[derive(Debug, Clone)]
pub struct Call {
    /// The tool.
    pub name: String,
    /// What it is called with.
    pub arguments: Value,
}

impl Default for Call {
    fn default() -> Self {
        Self { name: "lookup".to_owned(), arguments: serde_json::json!({}) }
    }
}

/// What the model says.
#[derive(Debug, Clone, Default)]
pub enum Text {
    /// The last word of the prompt.
    #[default]
    LastWord,
    /// This.
    Fixed(String),
    /// The whole prompt.
    Prompt,
    /// The text that belongs to the prompt; the prompt's last word for any other prompt.
    Map(BTreeMap<String, String>),
    /// This, as JSON text.
    Json(Value),
}

impl Text {
    /// The text for a prompt.
    pub fn of(&self, prompt: &str) -> String {
        let last_word = || prompt.split_whitespace().next_back().unwrap_or_default().to_owned();
        match self {
            Self::LastWord => last_word(),
            Self::Fixed(text) => text.clone(),
            Self::Prompt => prompt.to_owned(),
            Self::Map(texts) => texts.get(prompt).cloned().unwrap_or_else(last_word),
            Self::Json(value) => value.to_string(),
        }
    }
}

/// Why the model stopped; each dialect has its own word for it.
#[derive(Debug, Clone, Default)]
pub enum Finish {
    /// It was done.
    #[default]
    Stop,
    /// It reached the token limit.
    Length,
    /// A filter cut it off.
    ContentFilter,
    /// It calls a tool instead of saying anything.
    ToolUse,
    /// It refuses. `OpenAI` then has the text in `refusal` and no content.
    Refusal,
    /// This word, whatever the dialect.
    Other(String),
}

/// A vendor's error.
#[derive(Debug, Clone)]
pub struct Fault {
    /// What is wrong.
    pub trouble: Trouble,
    /// When to come back; each adds its headers.
    pub retry: Vec<RetryAfter>,
    /// Repeat the caller's API key in the message, as some gateways do.
    pub echo_key: bool,
}

impl Fault {
    /// An error without advice when to come back.
    pub fn new(trouble: Trouble) -> Self {
        Self { trouble, retry: Vec::new(), echo_key: false }
    }

    /// Says also when to come back.
    #[must_use]
    pub fn retry(mut self, retry: RetryAfter) -> Self {
        self.retry.push(retry);
        self
    }

    /// Repeats the caller's API key in the message.
    #[must_use]
    pub fn echo_key(mut self) -> Self {
        self.echo_key = true;
        self
    }
}

/// What is wrong, in words that all vendors share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// 400: a parameter out of its range.
    BadRequest,
    /// 400: more tokens than the model takes.
    ContextLength,
    /// 400: the prompt was flagged.
    ContentPolicy,
    /// 400: the prompt was flagged by Azure, whatever the path.
    AzureContentFilter,
    /// 401: the key is wrong.
    BadKey,
    /// 403: the key may not do this.
    Forbidden,
    /// 404: there is no such model.
    NoSuchModel,
    /// 408: the server waited too long.
    RequestTimeout,
    /// 413: the request has too many bytes.
    TooLarge,
    /// 429: too fast.
    RateLimit,
    /// 429 (400 from Anthropic): nothing left to spend.
    Quota,
    /// 500.
    Internal,
    /// 502: a page of HTML from a proxy, whatever the path.
    BadGateway,
    /// 503: busy.
    Unavailable,
    /// 503: llama.cpp is not ready yet, whatever the path.
    Loading,
    /// 504.
    GatewayTimeout,
    /// 529: overloaded.
    Overloaded,
}

impl Trouble {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::BadRequest,
        Self::ContextLength,
        Self::ContentPolicy,
        Self::AzureContentFilter,
        Self::BadKey,
        Self::Forbidden,
        Self::NoSuchModel,
        Self::RequestTimeout,
        Self::TooLarge,
        Self::RateLimit,
        Self::Quota,
        Self::Internal,
        Self::BadGateway,
        Self::Unavailable,
        Self::Loading,
        Self::GatewayTimeout,
        Self::Overloaded,
    ];

    /// The name under which it is counted.
    pub fn name(self) -> &'static str {
        match self {
            Self::BadRequest => "bad_request",
            Self::ContextLength => "context_length",
            Self::ContentPolicy => "content_policy",
            Self::AzureContentFilter => "azure_content_filter",
            Self::BadKey => "bad_key",
            Self::Forbidden => "forbidden",
            Self::NoSuchModel => "no_such_model",
            Self::RequestTimeout => "request_timeout",
            Self::TooLarge => "too_large",
            Self::RateLimit => "rate_limit",
            Self::Quota => "quota",
            Self::Internal => "internal",
            Self::BadGateway => "bad_gateway",
            Self::Unavailable => "unavailable",
            Self::Loading => "loading",
            Self::GatewayTimeout => "gateway_timeout",
            Self::Overloaded => "overloaded",
        }
    }
}

/// One way to say when to come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryAfter {
    /// `retry-after` in seconds.
    Seconds(u64),
    /// `retry-after-ms`.
    Millis(u64),
    /// `retry-after` as an HTTP date so many seconds from now.
    Date(u64),
    /// The vendor's own headers: nothing remains, and when that changes.
    Reset(Duration),
}

impl RetryAfter {
    /// How long the client is asked to wait.
    pub fn wait(self) -> Duration {
        match self {
            Self::Seconds(seconds) | Self::Date(seconds) => Duration::from_secs(seconds),
            Self::Millis(millis) => Duration::from_millis(millis),
            Self::Reset(wait) => wait,
        }
    }
}
