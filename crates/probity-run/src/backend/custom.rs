//! Servers that speak no dialect of ours: the suite says what is sent and where the reply stands.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use probity_core::{
    case::TestCase,
    failure::ErrorKind,
    record::{CallError, InputDigest, Usage},
    reply::Reply,
    request::{Need, Role, Sampling},
};
use probity_http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use probity_load::{
    suite::{CustomBody, CustomHttp, Method},
    template::{self, TemplateError},
};
use serde_json::{Value, json};

use super::{
    Ask,
    dialect::{Undecoded, chat_messages, chat_tools, count},
    language::Outgoing,
};

/// What stays as it is in an address.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
/// What is shown in the place of a value that is a secret, or another one each time.
const HIDDEN: &str = "[redacted]";

type Vars = BTreeMap<String, Value>;

/// A server, and what it is sent.
#[derive(Debug)]
pub(super) struct Custom {
    spec: CustomHttp,
    /// Where the server is.
    origin: String,
    /// The address of a request, before the case is filled in.
    address: String,
    headers: Vec<(HeaderName, String)>,
    /// The names that its templates use.
    names: BTreeSet<String>,
    model: Option<String>,
    sampling: Sampling,
    /// The variables of the environment that its templates use.
    env: Environment,
    /// What makes the sessions of two runs different ones.
    run: [u8; 16],
}

/// What is known when a server is made ready.
#[derive(Debug)]
pub(super) struct Parts {
    /// Scheme, host and port.
    pub(super) origin: String,
    /// Templates of headers.
    pub(super) headers: Vec<(HeaderName, String)>,
    pub(super) env: Environment,
    pub(super) model: Option<String>,
    pub(super) sampling: Sampling,
}

/// Variables of the environment. Their values are secrets.
pub(super) struct Environment(pub(super) BTreeMap<String, String>);

impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// For whom templates are filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reader {
    /// The server.
    Server,
    /// Somebody who wants to know what would be sent.
    Person,
}

impl Custom {
    /// A server at an origin that is sent this.
    pub(super) fn new(spec: CustomHttp, parts: Parts) -> Self {
        let Parts { origin, headers, env, model, sampling } = parts;
        let address = format!("{origin}{}", &spec.url[spec.origin().len()..]);
        let names = |text: &str| template::undefined_variables(text, |_| false);
        let names = spec.templates().into_iter().flat_map(|it| names(it).unwrap_or_default());
        let names = names.collect();
        let run = fastrand::u128(..).to_le_bytes();
        Self { spec, origin, address, headers, names, model, sampling, env, run }
    }

    /// Its address, before anything is filled in.
    pub(super) fn url(&self) -> &str {
        &self.address
    }

    /// What it cannot be told.
    pub(super) fn lacks(&self) -> Vec<Need> {
        let told = |need: &Need| match need {
            // A server that knows the session has heard what was said before.
            Need::Conversation => self.uses("messages") || self.has_sessions(),
            Need::ImageFile | Need::ImageUrl => self.uses("messages"),
            Need::Tools => self.uses("tools"),
            Need::ForcedCall | Need::ResponseFormat => false,
        };
        Need::ALL.into_iter().filter(|need| !told(need)).collect()
    }

    /// The settings that have no place in what is sent.
    pub(super) fn not_applied(&self) -> Vec<&'static str> {
        self.ignored(&self.sampling)
    }

    /// Those of some settings that have no place in what is sent.
    pub(super) fn ignored(&self, sampling: &Sampling) -> Vec<&'static str> {
        sampling.names().filter(|name| !self.uses(name)).collect()
    }

    /// Whether the server is told which conversation a request belongs to.
    pub(super) fn has_sessions(&self) -> bool {
        self.spec.session.is_some() || self.uses("session")
    }

    /// What a case brings into the request beside what it asks.
    pub(super) fn own_values(&self, case: &TestCase) -> Value {
        json!(self.case_vars(case))
    }

    /// The request for a question.
    pub(super) fn outgoing(&self, ask: &Ask<'_>) -> Result<Outgoing<'_>, CallError> {
        let conversation = self.has_sessions().then(|| self.conversation(ask));
        let known = conversation.as_deref().and_then(|it| ask.about?.session(it));
        self.check_session(ask, known.as_deref())?;
        let session = match self.spec.session {
            None => conversation,
            Some(_) => known,
        };
        let vars = self.vars(ask, session.as_deref(), Reader::Server);
        let body = self.body(&vars)?;
        let url = self.filled_url(&vars)?;
        let headers = self.filled_headers(&vars)?;
        let method = match self.spec.method {
            Method::Get => probity_http::Method::GET,
            Method::Post => probity_http::Method::POST,
            Method::Put => probity_http::Method::PUT,
            Method::Patch => probity_http::Method::PATCH,
        };
        Ok(Outgoing { method, url: Cow::Owned(url), headers, body })
    }

    fn filled_headers(&self, vars: &Vars) -> Result<HeaderMap, CallError> {
        let mut headers = HeaderMap::new();
        for (name, text) in &self.headers {
            let value = template::render(text, vars);
            let value = value.map_err(|error| unfilled(&format!("headers.{name}"), &error))?;
            let mut value = HeaderValue::try_from(value).map_err(|_| {
                let message = format!("the value of the header `{name}` cannot be sent");
                CallError::new(ErrorKind::BadRequest, message)
            })?;
            value.set_sensitive(true);
            headers.insert(name.clone(), value);
        }
        Ok(headers)
    }

    /// The body for a question, as a person may see it; null if there is none.
    pub(super) fn shown_body(&self, ask: &Ask<'_>) -> Result<Value, CallError> {
        // Before the first request, no conversation is known.
        self.check_session(ask, None)?;
        let session = self.spec.session.is_none().then_some(HIDDEN);
        let vars = self.vars(ask, session, Reader::Person);
        self.filled_url(&vars)?;
        self.filled_headers(&vars)?;
        let body = self.body(&vars)?.unwrap_or_default();
        let text = || Value::from(String::from_utf8_lossy(&body).into_owned());
        Ok(match body.is_empty() {
            true => Value::Null,
            false => serde_json::from_slice(&body).unwrap_or_else(|_| text()),
        })
    }

    fn filled_url(&self, vars: &Vars) -> Result<String, CallError> {
        let path = &self.spec.url[self.spec.origin().len()..];
        if !template::is_template(path) {
            return Ok(format!("{}{path}", self.origin));
        }
        let path = template::render(path, &encoded(vars));
        Ok(format!("{}{}", self.origin, path.map_err(|error| unfilled("url", &error))?))
    }

    fn body(&self, vars: &Vars) -> Result<Option<Vec<u8>>, CallError> {
        let refused = |error: TemplateError| unfilled("body", &error);
        let text = match &self.spec.body {
            None => return Ok(None),
            Some(CustomBody::Json(value)) => {
                let filled = template::fill_json(value, vars).map_err(refused)?;
                return Ok(Some(filled.to_string().into_bytes()));
            }
            Some(CustomBody::Text(text)) => template::render(text, vars).map_err(refused)?,
        };
        let is_json = !self.headers.iter().any(|(name, _)| name == CONTENT_TYPE);
        if is_json && let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(&text) {
            let message = format!(
                "the `body` is not JSON when its variables are filled in ({error}); write \
                 `{{{{ prompt | tojson }}}}` without quotes around it, or set the header \
                 `content-type` of what it is"
            );
            return Err(CallError::new(ErrorKind::BadRequest, message));
        }
        Ok(Some(text.into_bytes()))
    }

    /// What templates name, of all that they can. What there is not is null.
    fn vars(&self, ask: &Ask<'_>, session: Option<&str>, reader: Reader) -> Vars {
        let request = ask.request;
        let mut vars = ask.about.map(|it| self.case_vars(&it.case)).unwrap_or_default();
        let sampling = request.sampling.or(&self.sampling);
        let Sampling { temperature, top_p, max_tokens, seed, stop, logprobs, .. } = &sampling;
        let Sampling { presence_penalty, frequency_penalty, .. } = &sampling;
        let env = || {
            let seen = |value: &String| match reader {
                Reader::Person => Value::from(HIDDEN),
                Reader::Server => Value::from(value.as_str()),
            };
            self.env.0.iter().map(|(name, value)| (name.clone(), seen(value))).collect()
        };
        let own = |name: &String| {
            Some(match name.as_str() {
                "prompt" => json!(request.prompt()),
                "system" => json!(request.system()),
                "messages" => chat_messages(request),
                "tools" => chat_tools(request),
                "model" => json!(self.model),
                "temperature" => json!(temperature),
                "top_p" => json!(top_p),
                "max_tokens" => json!(max_tokens),
                "seed" => json!(seed),
                "stop" if stop.is_empty() => Value::Null,
                "stop" => json!(stop),
                "logprobs" => json!(logprobs),
                "presence_penalty" => json!(presence_penalty),
                "frequency_penalty" => json!(frequency_penalty),
                "session" => json!(session),
                "env" => Value::Object(env()),
                _ => return None,
            })
        };
        vars.extend(self.names.iter().filter_map(|it| Some((it.clone(), own(it)?))));
        vars
    }

    /// What templates name of a case.
    fn case_vars(&self, case: &TestCase) -> Vars {
        let given = case.vars();
        // Values that cannot be filled in are found when the dataset is read.
        let filled = template::fill_values(&given).unwrap_or_default();
        let used = filled.iter().filter(|(name, _)| self.uses(name));
        let mut vars: Vars = used.map(|(name, value)| (name.clone(), value.clone())).collect();
        case.add_labels(&mut vars);
        vars.retain(|name, _| self.uses(name));
        vars
    }

    fn uses(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// What tells a conversation from all others: the case, the repeat, how it begins, and the seed,
    /// since a judge that is asked the same again is not to know what it said before.
    fn conversation(&self, ask: &Ask<'_>) -> String {
        let case = ask.about.map_or("", |it| it.case.id.as_str());
        let messages = &ask.request.messages;
        let opening = messages.iter().position(|it| it.role == Role::Assistant);
        let opening = &messages[..opening.unwrap_or(messages.len())];
        let opening = serde_json::to_vec(opening).unwrap_or_default();
        let repeat = ask.repeat.to_le_bytes();
        let seed = format!("{:?}", ask.request.sampling.seed);
        let parts = [&self.run[..], case.as_bytes(), &repeat, &opening, seed.as_bytes()];
        InputDigest::of(parts).to_string()
    }

    /// A server that is not sent what was said before has to have heard it.
    fn check_session(&self, ask: &Ask<'_>, known: Option<&str>) -> Result<(), CallError> {
        let is_begun = ask.request.messages.iter().any(|it| it.role == Role::Assistant);
        if !is_begun || self.uses("messages") || known.is_some() {
            return Ok(());
        }
        let message = "the conversation began elsewhere, and nothing that is sent says how: its \
                       templates name no `messages`";
        Err(CallError::new(ErrorKind::BadRequest, message))
    }

    /// The reply in the body of an answer.
    pub(super) fn decode(&self, body: &[u8], ask: &Ask<'_>) -> Result<Reply, Undecoded> {
        let CustomHttp { reply, error, usage, session, .. } = &self.spec;
        let has_pointers = reply.is_some() || error.is_some() || session.is_some();
        let answer: Value = match serde_json::from_slice(body) {
            Ok(answer) => answer,
            Err(_) if has_pointers => return Err(Undecoded::Shape("it is not JSON")),
            Err(_) => Value::Null,
        };
        if at(&answer, error.as_deref()).is_some_and(is_error) {
            return Err(Undecoded::Error);
        }
        let text = match reply {
            None => String::from_utf8_lossy(body).into_owned(),
            Some(pointer) => match at(&answer, Some(pointer)) {
                Some(found) => text_of(found),
                None if answer.get("error").is_some_and(is_error) => return Err(Undecoded::Error),
                None => return Err(Undecoded::Nothing(pointer.clone())),
            },
        };
        let number = |pointer: &Option<String>| at(&answer, pointer.as_deref()).cloned();
        let cost_usd = number(&usage.cost_usd).and_then(|it| it.as_f64());
        let tokens = Usage {
            input_tokens: count(number(&usage.input_tokens)),
            output_tokens: count(number(&usage.output_tokens)),
            cached_tokens: count(number(&usage.cached_tokens)),
            estimated: false,
        };
        self.remember(&answer, ask)?;
        Ok(Reply {
            text,
            usage: tokens,
            cost_usd: cost_usd.filter(|it| it.is_finite() && *it >= 0.0),
            ..Reply::default()
        })
    }

    /// Keeps the id of the conversation for the next of its turns.
    fn remember(&self, answer: &Value, ask: &Ask<'_>) -> Result<(), Undecoded> {
        let Some(about) = ask.about.filter(|_| self.has_sessions()) else { return Ok(()) };
        let own = self.conversation(ask);
        let session = match (&self.spec.session, about.session(&own)) {
            (_, Some(_)) => return Ok(()),
            (None, None) => own.clone(),
            (Some(pointer), None) => match at(answer, Some(pointer)) {
                Some(id) => text_of(id),
                None => return Err(Undecoded::Nothing(pointer.clone())),
            },
        };
        about.keep_session(own, session);
        Ok(())
    }

    /// What the body of an answer says is wrong.
    pub(super) fn error_in(&self, body: &str) -> Option<String> {
        let pointer = self.spec.error.as_deref()?;
        let answer: Value = serde_json::from_str(body).ok()?;
        at(&answer, Some(pointer)).filter(|it| is_error(it)).map(text_of)
    }
}

/// What stands at a place.
fn at<'v>(answer: &'v Value, pointer: Option<&str>) -> Option<&'v Value> {
    answer.pointer(pointer?).filter(|it| !it.is_null())
}

/// A text, or anything else as JSON.
fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

/// Many servers send the field for errors with every answer.
fn is_error(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Bool(true) => true,
        Value::String(text) => !text.is_empty(),
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
    }
}

/// Values as they can stand in an address.
fn encoded(vars: &Vars) -> Vars {
    fn encode(value: &Value) -> Value {
        match value {
            Value::String(text) => utf8_percent_encode(text, UNRESERVED).to_string().into(),
            Value::Array(items) => items.iter().map(encode).collect(),
            Value::Object(map) => {
                map.iter().map(|(name, value)| (name.clone(), encode(value))).collect()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }
    vars.iter().map(|(name, value)| (name.clone(), encode(value))).collect()
}

fn unfilled(what: &str, error: &TemplateError) -> CallError {
    let message = format!("`{what}` of the backend cannot be filled in: {error}");
    CallError::new(ErrorKind::BadRequest, message)
}

#[cfg(test)]
mod tests;
