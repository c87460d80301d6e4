//! What is said to a server, and how its answer is read: in a dialect, or as a suite describes it.

use std::borrow::Cow;

use probity_core::{
    record::CallError,
    reply::Reply,
    request::{Need, Request, ResponseFormat, Sampling},
};
use probity_http::{Method, header::HeaderMap};
use serde_json::{Map, Value};

use super::{
    Ask,
    custom::Custom,
    dialect::{DialectSpec, Fields, StreamSpec, Undecoded, Wanted, merge},
};

/// How a server is spoken to.
#[derive(Debug)]
pub(super) enum Language {
    /// In a dialect that we know.
    Dialect(Box<Spoken>),
    /// As the suite describes it.
    Custom(Box<Custom>),
}

/// A request on its way to a server.
#[derive(Debug)]
pub(super) struct Outgoing<'a> {
    pub(super) method: Method,
    pub(super) url: Cow<'a, str>,
    /// Headers of this request alone.
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Vec<u8>>,
}

/// A dialect, and what is said in it.
#[derive(Debug)]
pub(super) struct Spoken {
    pub(super) settings: BodySettings,
    /// The fields that are the same in every body.
    pub(super) fields: Map<String, Value>,
    /// The address of the endpoint.
    pub(super) url: String,
    /// The address of the list of models.
    pub(super) models_url: String,
}

/// What bodies say beside the conversation.
#[derive(Debug)]
pub(super) struct BodySettings {
    /// The server's language.
    pub(super) dialect: &'static DialectSpec,
    pub(super) model: Option<String>,
    pub(super) sampling: Sampling,
    pub(super) response_format: Option<ResponseFormat>,
    pub(super) extra_body: Option<Value>,
    /// The field for the longest reply.
    pub(super) limit: &'static str,
    /// The field for the seed.
    pub(super) seed: Option<&'static str>,
    /// How replies are read while they are written, if they are.
    pub(super) stream: Option<&'static StreamSpec>,
    /// Whether the service takes the wish for a count of tokens at the end of a stream.
    pub(super) stream_usage: bool,
    /// Whether the service keeps to a JSON Schema that is sent along.
    pub(super) keeps_schemas: bool,
}

impl BodySettings {
    /// The fields of a body, for a request with settings of its own.
    pub(super) fn fields(&self, request: Option<&Request>) -> Fields {
        let own = request.and_then(|it| it.response_format.as_ref());
        let wanted = Wanted {
            model: self.model.as_deref(),
            sampling: match request {
                Some(request) => Cow::Owned(request.sampling.or(&self.sampling)),
                None => Cow::Borrowed(&self.sampling),
            },
            response_format: own.or(self.response_format.as_ref()),
            limit: self.limit,
            seed: self.seed,
        };
        let (mut fields, not_applied) = (self.dialect.fields)(&wanted);
        if let Some(stream) = self.stream {
            (stream.ask)(&mut fields, self.stream_usage);
        }
        if let Some(Value::Object(extra)) = &self.extra_body {
            merge(&mut fields, extra);
        }
        (fields, not_applied)
    }
}

impl Spoken {
    fn body(&self, request: &Request) -> Value {
        let encode = self.settings.dialect.encode;
        match request.has_own_settings() {
            true => encode(&self.settings.fields(Some(request)).0, request),
            false => encode(&self.fields, request),
        }
    }
}

impl Language {
    /// The address that requests go to, before anything is filled in.
    pub(super) fn url(&self) -> &str {
        match self {
            Self::Dialect(spoken) => &spoken.url,
            Self::Custom(custom) => custom.url(),
        }
    }

    /// The request for a question.
    pub(super) fn outgoing(&self, ask: &Ask<'_>) -> Result<Outgoing<'_>, CallError> {
        match self {
            Self::Dialect(spoken) => Ok(Outgoing {
                method: Method::POST,
                url: Cow::Borrowed(&spoken.url),
                headers: HeaderMap::new(),
                body: Some(serde_json::to_vec(&spoken.body(ask.request)).unwrap_or_default()),
            }),
            Self::Custom(custom) => custom.outgoing(ask),
        }
    }

    /// The body for a question, without secrets.
    pub(super) fn shown_body(&self, ask: &Ask<'_>) -> Result<Value, CallError> {
        match self {
            Self::Dialect(spoken) => Ok(spoken.body(ask.request)),
            Self::Custom(custom) => custom.shown_body(ask),
        }
    }

    /// The reply in the body of an answer.
    pub(super) fn decode(&self, body: &[u8], ask: &Ask<'_>) -> Result<Reply, Undecoded> {
        match self {
            Self::Dialect(spoken) => (spoken.settings.dialect.decode)(body),
            Self::Custom(custom) => custom.decode(body, ask),
        }
    }

    /// What the body of an answer says is wrong, where the suite says where that stands.
    pub(super) fn error_in(&self, body: &str) -> Option<String> {
        match self {
            Self::Dialect(_) => None,
            Self::Custom(custom) => custom.error_in(body),
        }
    }

    /// What the headers of an answer call the error in its body.
    pub(super) fn error_kind<'h>(&self, headers: &'h HeaderMap) -> Option<&'h str> {
        let name = match self {
            Self::Dialect(spoken) => spoken.settings.dialect.error_header?,
            Self::Custom(_) => return None,
        };
        // An address may stand behind the name.
        headers.get(name)?.to_str().ok()?.split(':').next()
    }

    /// How replies are read while they are written, if they are.
    pub(super) fn stream(&self) -> Option<&'static StreamSpec> {
        match self {
            Self::Dialect(spoken) => spoken.settings.stream,
            Self::Custom(_) => None,
        }
    }

    /// Whether the server is known to keep to a JSON Schema that is sent along.
    pub(super) fn keeps_schemas(&self) -> bool {
        match self {
            Self::Dialect(spoken) => spoken.settings.keeps_schemas,
            Self::Custom(_) => false,
        }
    }

    /// What the server cannot be told.
    pub(super) fn lacks(&self) -> Cow<'static, [Need]> {
        match self {
            Self::Dialect(spoken) => Cow::Borrowed(spoken.settings.dialect.lacks),
            Self::Custom(custom) => Cow::Owned(custom.lacks()),
        }
    }

    /// The settings of a request that have no place in what is sent.
    pub(super) fn ignored(&self, sampling: &Sampling) -> Vec<&'static str> {
        match self {
            Self::Dialect(spoken) => {
                let request = Request { sampling: sampling.clone(), ..Request::default() };
                spoken.settings.fields(Some(&request)).1
            }
            Self::Custom(custom) => custom.ignored(sampling),
        }
    }

    /// The name of a model without what a server adds or leaves out.
    pub(super) fn bare_model<'n>(&self, name: &'n str) -> &'n str {
        match self {
            Self::Dialect(spoken) => (spoken.settings.dialect.bare_model)(name),
            Self::Custom(_) => name,
        }
    }
}
