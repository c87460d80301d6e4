//! Functions of users that answer: files in Python or JavaScript, run by processes that stay up.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use probity_core::{
    failure::ErrorKind,
    record::{CallError, Usage},
    reply::{Logprobs, TokenLogprob},
    request::{Need, Part, Request, Role},
    span::Span,
};
use probity_grade::{Rules, errors::ErrorInput};
use probity_load::suite::{BackendConfig, BackendKind, Start};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::{
    Ask, Failed, Reply,
    silence::{is_silent, silence},
};
use crate::{
    callable::Callable,
    process::NoProgram,
    redact::Redactor,
    worker::{self, Call, Method, Place, Pool, PoolConfig, Trouble},
};

/// The function that answers, in Python.
const PYTHON_FUNCTION: &str = "call_api";
/// The method that answers, of a class in JavaScript.
const NODE_METHOD: &str = "callApi";

/// A function that answers.
#[derive(Debug)]
pub struct Function {
    pool: Pool,
    place: Place,
    run: worker::Function,
    options: Options,
    redactor: Redactor,
    rules: &'static Rules,
}

/// What a function is told of its backend.
#[derive(Debug, Serialize)]
struct Options {
    id: String,
    config: Map<String, Value>,
}

/// What a function is told of a call.
#[derive(Serialize)]
struct Context<'a> {
    vars: &'a BTreeMap<String, Value>,
    prompt: Prompt<'a>,
    #[serde(rename = "repeatIndex")]
    repeat: u32,
}

#[derive(Serialize)]
struct Prompt<'a> {
    raw: &'a str,
    label: &'a str,
}

/// What a function returns.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Returned {
    #[serde(default)]
    output: Option<Value>,
    #[serde(default)]
    error: Option<Value>,
    #[serde(default, alias = "token_usage")]
    token_usage: Option<TokenUsage>,
    #[serde(default)]
    cost: Option<f64>,
    #[serde(default, alias = "finish_reason")]
    finish_reason: Option<String>,
    #[serde(default)]
    model: Option<String>,
    /// Whether it had the answer already, so that this call cost nothing.
    #[serde(default)]
    cached: Option<bool>,
    #[serde(default, alias = "log_probs", alias = "logprobs")]
    log_probs: Option<Vec<f64>>,
    #[serde(default, alias = "latency_ms")]
    latency_ms: Option<f64>,
}

/// Numbers of tokens. Some languages have no whole numbers.
#[derive(Deserialize)]
struct TokenUsage {
    #[serde(default)]
    prompt: Option<f64>,
    #[serde(default)]
    completion: Option<f64>,
    #[serde(default)]
    cached: Option<f64>,
}

impl TokenUsage {
    fn usage(&self) -> Result<Usage, String> {
        let count = |value: Option<f64>, name: &str| match value {
            None => Ok(None),
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a whole number that fits"
            )]
            Some(it) if it >= 0.0 && it.fract() == 0.0 && it < 1e15 => Ok(Some(it as u64)),
            Some(it) => Err(format!("its `tokenUsage.{name}` is {it}")),
        };
        Ok(Usage {
            input_tokens: count(self.prompt, "prompt")?,
            output_tokens: count(self.completion, "completion")?,
            cached_tokens: count(self.cached, "cached")?,
            estimated: false,
        })
    }
}

impl Returned {
    /// What it used. An answer that it had already cost nothing but what it says.
    fn spent(&self) -> Result<(Usage, Option<f64>), String> {
        let usage = self.token_usage.as_ref().map_or(Ok(Usage::default()), TokenUsage::usage)?;
        if self.cached != Some(true) {
            return Ok((usage, self.cost));
        }
        let usage = Usage {
            input_tokens: usage.input_tokens.or(Some(0)),
            output_tokens: usage.output_tokens.or(Some(0)),
            ..usage
        };
        Ok((usage, self.cost.or(Some(0.0))))
    }
}

/// Whether something is said: nothing, `false` and an empty text say nothing.
fn is_said(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false)) && value.as_str() != Some("")
}

impl Function {
    /// A function as a suite describes it. `workers` processes run it, unless it is one of this process.
    pub(super) fn new(
        config: &BackendConfig,
        folder: &Path,
        variables: &BTreeMap<OsString, OsString>,
        rules: &'static Rules,
        (workers, callable): (u64, Option<Callable>),
    ) -> Self {
        let place = Place::new(folder, variables.clone());
        let named = config.file.as_deref().unwrap_or_default();
        let (start, usual) = match config.kind == BackendKind::Node {
            true => (Start::Node(named.to_owned()), None),
            false => (Start::Python(named.to_owned()), Some(PYTHON_FUNCTION)),
        };
        let env: Vec<String> = config.env.iter().chain(&config.api_key_env).cloned().collect();
        let mut told = config.config.clone().unwrap_or_default();
        if let Some(model) = &config.model {
            told.entry("model").or_insert_with(|| model.as_str().into());
        }
        let mut redactor = Redactor::default();
        redactor.add_chosen(variables, &env);
        let options = Options { id: config.name.clone(), config: told };
        // Its keys are texts, so this cannot fail.
        let told = serde_json::to_value(&options).unwrap_or_default();
        let run = worker::Function::file(named, usual, &place.folder);
        Self {
            run: match &start {
                Start::Node(_) => run.or_method(Method { name: NODE_METHOD, options: told }),
                Start::Python(_) | Start::Command(_) => run,
            },
            redactor,
            pool: Pool::new(PoolConfig {
                start,
                callable,
                workers: usize::try_from(workers).unwrap_or(usize::MAX),
                // Each call has a limit of its own.
                timeout: Duration::MAX,
                env,
                memory: None,
                // A call may cost money.
                may_repeat: false,
            }),
            place,
            options,
            rules,
        }
    }

    /// What such a function cannot be asked for: it gets messages, and gives a text.
    pub(super) const LACKS: &'static [Need] =
        &[Need::Tools, Need::ForcedCall, Need::ImageFile, Need::ImageUrl, Need::ResponseFormat];

    /// Asks, and waits no longer than `limit`.
    pub(super) async fn ask(&self, ask: &Ask<'_>, limit: Duration) -> Result<Reply, Failed> {
        let raw = prompt_of(ask.request);
        let prompt = Prompt { raw: &raw, label: &self.options.id };
        let none = BTreeMap::new();
        let case = ask.about.filter(|it| it.is_subject).map(|it| &*it.case);
        let vars = case.map_or(&none, |it| &it.prompt_vars);
        let context = Context { vars, prompt, repeat: ask.repeat };
        let (run, options) = (&self.run, &self.options);
        let request = |id| match self.pool.start() {
            Start::Node(_) => {
                serde_json::to_vec(&Call { id, run, args: Some((&raw, &context, options)) })
            }
            Start::Python(_) | Start::Command(_) => {
                serde_json::to_vec(&Call { id, run, args: Some((&raw, options, &context)) })
            }
        };
        let returned = self.pool.ask(&self.place, request, Instant::now() + limit).await;
        let returned = returned.map_err(|trouble| self.failed(&trouble, limit))?;
        self.read(returned)
    }

    /// The program that runs it, which is not started.
    pub fn locate(&self) -> Result<PathBuf, String> {
        self.pool.check(&self.place).map_err(|why| self.redactor.error_text(&why))
    }

    /// The program that runs it, if the file can be loaded and has the function.
    pub async fn probe(&self, limit: Duration) -> Result<PathBuf, String> {
        let program = self.locate()?;
        let request = |id| serde_json::to_vec(&Call::<()> { id, run: &self.run, args: None });
        let loaded = self.pool.ask(&self.place, request, Instant::now() + limit).await;
        loaded.map(|_| program).map_err(|trouble| trouble.text(&self.redactor))
    }

    fn read(&self, returned: Value) -> Result<Reply, Failed> {
        let bad = |why: String| {
            let message = format!("what the function returned is no answer: {why}");
            // It may quote what was returned.
            Failed::from(CallError::new(ErrorKind::BadRequest, self.redactor.error_text(&message)))
        };
        let returned = match returned {
            Value::String(text) => return self.said(Reply { text, ..Reply::default() }),
            Value::Object(_) => {
                serde_json::from_value::<Returned>(returned).map_err(|it| bad(it.to_string()))?
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
                return Err(bad("it is neither a text nor a table with `output`".to_owned()));
            }
        };
        let (usage, cost_usd) = returned.spent().map_err(bad)?;
        let Returned { output, error, finish_reason, model, log_probs, latency_ms, .. } = returned;
        if let Some(error) = error.filter(is_said) {
            return Err(Failed { usage, cost_usd, ..self.error(&text_of(error)).into() });
        }
        let token = |logprob: f64| TokenLogprob { token: String::new(), logprob };
        let latency = latency_ms.map(|it| Duration::try_from_secs_f64(it / 1000.0));
        let latency = latency.transpose().map_err(|it| bad(format!("its `latencyMs`: {it}")))?;
        let output = output.filter(|it| !it.is_null());
        let output = output.ok_or_else(|| bad("it has neither `output` nor `error`".to_owned()))?;
        self.said(Reply {
            text: text_of(output),
            stop_reason: finish_reason,
            model,
            usage,
            cost_usd,
            logprobs: log_probs.and_then(|it| Logprobs::of(it.into_iter().map(token))),
            latency,
            ..Reply::default()
        })
    }

    fn said(&self, reply: Reply) -> Result<Reply, Failed> {
        let reply = reply.with_reasoning_apart();
        if is_silent(&reply) {
            let silence = silence(&reply);
            let error = CallError { status: None, ..*silence.error };
            return Err(Failed { error: Box::new(error), ..silence });
        }
        Ok(self.redactor.clean_reply(reply))
    }

    /// An error in the function's own words.
    fn error(&self, text: &str) -> CallError {
        let verdict = self.rules.errors().classify(&ErrorInput { text, ..ErrorInput::default() });
        CallError {
            permanent: verdict.permanent,
            retry_after: verdict.retry_after,
            ..CallError::new(verdict.kind, self.redactor.error_text(text))
        }
    }

    fn failed(&self, trouble: &Trouble, limit: Duration) -> Failed {
        let clean = || trouble.text(&self.redactor);
        let error = match trouble {
            Trouble::Error(text) => self.error(text),
            Trouble::Fault(text) => CallError { permanent: true, ..self.error(text) },
            Trouble::NoTime => {
                CallError::new(ErrorKind::Timeout, format!("no answer within {}", Span(limit)))
            }
            Trouble::Slow(..) => CallError::new(ErrorKind::Timeout, clean()),
            Trouble::Lost(..) => CallError::new(ErrorKind::Crash, clean()),
            Trouble::Unwritten(_) => CallError::new(ErrorKind::BadRequest, clean()),
            Trouble::NoProgram(why) => {
                let kind = match why {
                    NoProgram::Missing { .. }
                    | NoProgram::NoFile { .. }
                    | NoProgram::NotExecutable { .. }
                    | NoProgram::NoInterpreter { .. }
                    | NoProgram::NoSandbox { .. } => ErrorKind::NotInstalled,
                    NoProgram::NoDirectory { .. }
                    | NoProgram::TooLong { .. }
                    | NoProgram::Zero { .. }
                    | NoProgram::Other { .. }
                    | NoProgram::Room { .. }
                    | NoProgram::Signals(_)
                    | NoProgram::Lost(_) => ErrorKind::Unknown,
                };
                let is_call = !why.is_out_of_files();
                return Failed { is_call, ..CallError::new(kind, clean()).into() };
            }
        };
        error.into()
    }
}

/// Settings that a function is not told, by their names in the suite.
pub(super) fn not_applied(config: &BackendConfig) -> Vec<&'static str> {
    let others = [
        ("response_format", config.response_format.is_some()),
        ("extra_body", config.extra_body.is_some()),
        ("headers_env", !config.headers_env.is_empty()),
        ("base_url", config.base_url.is_some()),
    ];
    let others = others.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name);
    config.sampling.names().chain(others).collect()
}

/// The prompt as a text: that of the only message, or all messages as JSON.
fn prompt_of(request: &Request) -> String {
    match request.messages.as_slice() {
        [only] if only.role == Role::User && only.content.iter().all(is_text) => only.joined(),
        // Its keys are texts, so this cannot fail.
        messages => serde_json::to_string(messages).unwrap_or_default(),
    }
}

fn is_text(part: &Part) -> bool {
    part.as_text().is_some()
}

fn text_of(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Tokens in and out, and dollars.
    type Used = (Option<u64>, Option<u64>, Option<f64>);

    /// What a function that returned this has used.
    fn spent(returned: Value) -> Result<Used, String> {
        let returned: Returned = serde_json::from_value(returned).unwrap();
        returned.spent().map(|(usage, cost)| (usage.input_tokens, usage.output_tokens, cost))
    }

    #[test]
    fn an_answer_that_a_function_had_already_cost_nothing_but_what_it_says() {
        let usage = json!({ "prompt": 3.0 });
        let new = json!({ "output": "x", "tokenUsage": usage, "cost": 0.5 });
        assert_eq!(spent(new), Ok((Some(3), None, Some(0.5))));
        assert_eq!(spent(json!({ "output": "x", "cached": false })), Ok((None, None, None)));
        let known = json!({ "output": "x", "tokenUsage": usage, "cached": true });
        assert_eq!(spent(known), Ok((Some(3), Some(0), Some(0.0))));
        let known = json!({ "output": "x", "cost": 0.5, "cached": true });
        assert_eq!(spent(known), Ok((Some(0), Some(0), Some(0.5))));
    }

    #[test]
    fn tokens_are_whole_numbers() {
        for wrong in [-1.0, 0.5, 1e15] {
            let returned = json!({ "output": "x", "tokenUsage": { "completion": wrong } });
            assert_eq!(spent(returned), Err(format!("its `tokenUsage.completion` is {wrong}")));
        }
    }
}
