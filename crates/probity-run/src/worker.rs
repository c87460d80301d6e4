//! Processes that stay up and answer one request after the other: functions of users in Python and
//! JavaScript, run by helpers of ours, and programs that read requests themselves.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use probity_core::{span::Span, visible::safe};
use probity_load::{function::split_name, suite::Start};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout, timeout_at},
};

use crate::{
    backend::program::environment::plain as program_environment,
    callable::Callable,
    process::{
        self, Command, NoProgram, Room, Stdin,
        service::{NoAnswer, Service},
    },
    redact::Redactor,
};

const PYTHON_HELPER: &str = include_str!("worker/helper.py");
const NODE_HELPER: &str = include_str!("worker/helper.cjs");
/// Characters of what a program printed that are shown.
const SHOWN: usize = 500;

/// Where processes run, and what they see.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    /// The suite's folder, absolute: where they run, and where paths start from.
    pub(crate) folder: PathBuf,
    /// All variables that there are.
    pub(crate) variables: BTreeMap<OsString, OsString>,
}

impl Place {
    pub(crate) fn new(folder: &Path, variables: BTreeMap<OsString, OsString>) -> Self {
        Self { folder: absolute(folder), variables }
    }

    /// The program of that name, as a process that sees the usual variables would find it.
    pub(crate) fn find(&self, name: &str) -> Result<PathBuf, NoProgram> {
        let path = self.variables.get(OsStr::new("PATH")).map(OsString::as_os_str);
        process::find(name, path, &self.folder)
    }
}

/// What a pool is made of.
#[derive(Clone, Debug)]
pub(crate) struct PoolConfig {
    pub(crate) start: Start,
    /// What is called instead of starting anything.
    pub(crate) callable: Option<Callable>,
    /// How many processes there are at most.
    pub(crate) workers: usize,
    /// How long one answer may take.
    pub(crate) timeout: Duration,
    /// Variables that they see beside the usual ones.
    pub(crate) env: Vec<String>,
    /// Bytes that each may have.
    pub(crate) memory: Option<u64>,
    /// Whether a request may be made twice, if it is not certain that a process was there to get it.
    pub(crate) may_repeat: bool,
}

/// A function for a helper: code, or a file and maybe the name of the function in it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Function {
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<PathBuf>,
    #[serde(rename = "function", skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<Method>,
}

/// The method that is called where a file of JavaScript exports a class, or an object, instead of a
/// function.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Method {
    pub(crate) name: &'static str,
    /// What the constructor gets.
    pub(crate) options: Value,
}

impl Function {
    /// Code of an assertion.
    pub(crate) fn code(code: &str) -> Self {
        Self { code: Some(code.to_owned()), file: None, name: None, method: None }
    }

    /// One of a file, `file.py` or `file.py:name`. Without a name it is `usual`; without that, what
    /// the file exports by default.
    pub(crate) fn file(named: &str, usual: Option<&str>, folder: &Path) -> Self {
        let (path, name) = split_name(named);
        let file = Some(absolute(&folder.join(path)));
        let name = name.or(usual).map(ToOwned::to_owned);
        Self { code: None, file, name, method: None }
    }

    /// The same, where the file may export a class with a method.
    pub(crate) fn or_method(self, method: Method) -> Self {
        Self { method: Some(method), ..self }
    }
}

/// What a helper is asked to do.
#[derive(Debug, Serialize)]
pub(crate) struct Call<'a, A> {
    pub(crate) id: u64,
    pub(crate) run: &'a Function,
    /// What the function gets; without any, it is only looked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) args: Option<A>,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// Others took all the time.
    NoTime,
    /// No process could be started.
    NoProgram(NoProgram),
    /// It took too long, and what it said last.
    Slow(Duration, String),
    /// It ended or wrote too much, and what it said last.
    Lost(NoAnswer, String),
    /// What it was asked for failed.
    Error(String),
    /// The code is wrong, or cannot be loaded: it would fail again.
    Fault(String),
    /// The request cannot be written.
    Unwritten(serde_json::Error),
}

impl Trouble {
    /// What went wrong, without keys.
    pub(crate) fn text(&self, redactor: &Redactor) -> String {
        let said = |words: &str| match words.is_empty() {
            true => String::new(),
            false => format!("; it said: {}", shown(words, redactor)),
        };
        let text = match self {
            Self::NoTime => "no time was left for it".to_owned(),
            Self::NoProgram(why) => why.to_string(),
            Self::Slow(limit, words) => {
                format!("no answer within {}{}", Span(*limit), said(words))
            }
            Self::Lost(why, words) => format!("{why} without an answer{}", said(words)),
            Self::Error(why) | Self::Fault(why) => why.clone(),
            Self::Unwritten(why) => format!("the request cannot be written: {why}"),
        };
        redactor.error_text(&text)
    }
}

/// Tells requests apart, over all pools.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// Processes of one kind. None is started before it is needed.
#[derive(Debug)]
pub(crate) struct Pool {
    config: PoolConfig,
    permits: Semaphore,
    /// Those that wait for work. Held for no longer than it takes to put one in or out.
    idle: Mutex<Vec<Service>>,
}

impl Pool {
    pub(crate) fn new(config: PoolConfig) -> Self {
        let permits = Semaphore::new(config.workers);
        Self { config, permits, idle: Mutex::default() }
    }

    pub(crate) fn start(&self) -> &Start {
        &self.config.start
    }

    /// Writes a request, which `request` makes for an id, and gives its answer before `deadline`.
    pub(crate) async fn ask(
        &self,
        place: &Place,
        request: impl FnOnce(u64) -> serde_json::Result<Vec<u8>>,
        deadline: Instant,
    ) -> Result<Value, Trouble> {
        let permit = timeout_at(deadline, self.permits.acquire()).await;
        let _permit = permit.map_err(|_| Trouble::NoTime)?;
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let request = request(id).map_err(Trouble::Unwritten)?;
        if let Some(callable) = &self.config.callable {
            return self.call(callable, &request, deadline).await;
        }
        let line = one_line(request);
        loop {
            let waiting = self.idle().pop();
            if waiting.as_ref().is_some_and(Service::has_ended) {
                continue;
            }
            let is_certain = waiting.is_none() || !self.config.may_repeat;
            let mut service = match waiting {
                Some(service) => service,
                None => self.begin(place).map_err(Trouble::NoProgram)?,
            };
            let left = deadline.saturating_duration_since(Instant::now());
            let limit = self.config.timeout.min(left);
            match timeout(limit, service.ask(&line, |it| answer_in(it, id))).await {
                Ok(Ok(answer)) => {
                    self.idle().push(service);
                    return answer;
                }
                // It may have ended before it was asked: that is no answer to this request.
                Ok(Err(NoAnswer::Ended)) if !is_certain => {}
                Ok(Err(why)) => return Err(Trouble::Lost(why, service.last_words().await)),
                Err(_) => return Err(Trouble::Slow(limit, service.last_words().await)),
            }
        }
    }

    /// Calls a function of this process. One that does not come to an end in time is left to itself.
    async fn call(
        &self,
        callable: &Callable,
        request: &[u8],
        deadline: Instant,
    ) -> Result<Value, Trouble> {
        let Arguments { args } = serde_json::from_slice(request).map_err(Trouble::Unwritten)?;
        let function = callable.call.clone();
        let limit = self.config.timeout.min(deadline.saturating_duration_since(Instant::now()));
        let called = tokio::task::spawn_blocking(move || function(args));
        match timeout(limit, called).await {
            Ok(Ok(returned)) => returned.map_err(Trouble::Error),
            Ok(Err(_)) => Err(Trouble::Error("the function was given up".to_owned())),
            Err(_) => Err(Trouble::Slow(limit, String::new())),
        }
    }

    /// What keeps its processes from being started, as far as that is known beforehand.
    pub(crate) fn check(&self, place: &Place) -> Result<PathBuf, String> {
        if self.config.callable.is_some() {
            return Ok(PathBuf::new());
        }
        let (program, file) = match &self.config.start {
            Start::Command(words) => (words.first().map_or("", String::as_str), None),
            Start::Python(file) => ("python3", Some(file)),
            Start::Node(file) => ("node", Some(file)),
        };
        if let Some(file) = file.filter(|it| !it.is_empty()) {
            let path = place.folder.join(split_name(file).0);
            if !path.is_file() {
                return Err(format!("there is no file `{}`", path.display()));
            }
        }
        place.find(program).map_err(|error| error.to_string())
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Service>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, place: &Place) -> Result<Service, NoProgram> {
        let env = program_environment(&place.variables, &self.config.env);
        let room = Room::new()?;
        let (program, args) = match &self.config.start {
            Start::Command(words) => {
                // An empty command is refused when the suite is read.
                let nothing = || NoProgram::Missing { name: String::new(), looked_in: Vec::new() };
                let (name, args) = words.split_first().ok_or_else(nothing)?;
                (place.find(name)?, args.iter().map(OsString::from).collect())
            }
            Start::Python(_) => {
                let helper = room.write("probity_helper.py", PYTHON_HELPER)?;
                (place.find("python3")?, vec!["-u".into(), helper.into()])
            }
            Start::Node(_) => {
                let helper = room.write("probity_helper.cjs", NODE_HELPER)?;
                (place.find("node")?, vec![helper.into()])
            }
        };
        let room = room.but_working_in(place.folder.clone());
        let command = Command { program, args, env, stdin: Stdin::Null, room };
        Service::start(command, self.config.memory)
    }
}

/// What of a request is for a function of this process.
#[derive(Deserialize)]
struct Arguments {
    #[serde(default)]
    args: Vec<Value>,
}

/// What of a line says whose answer it is.
#[derive(Deserialize)]
struct Answer {
    id: u64,
    /// Why there is none.
    #[serde(default)]
    error: Option<Value>,
    /// Whether it would be so again, as one of our helpers says.
    #[serde(default)]
    fault: bool,
    /// What a function returned, from one of our helpers.
    #[serde(default, deserialize_with = "present")]
    returned: Option<Value>,
}

/// A value that is there, also if it is null.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// The answer to a request, if the line is one. Other lines are what a program prints.
fn answer_in(line: &[u8], id: u64) -> Option<Result<Value, Trouble>> {
    let answer: Answer = serde_json::from_slice(line).ok().filter(|it: &Answer| it.id == id)?;
    Some(match answer {
        Answer { error: Some(Value::String(error)), fault: true, .. } => Err(Trouble::Fault(error)),
        Answer { error: Some(Value::String(error)), .. } => Err(Trouble::Error(error)),
        Answer { error: Some(error), .. } => Err(Trouble::Error(error.to_string())),
        Answer { returned: Some(returned), .. } => Ok(returned),
        // A program that reads requests itself: the whole line is its answer.
        Answer { .. } => Ok(serde_json::from_slice(line).ok()?),
    })
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path.join("."))
        .map_or_else(|_| path.to_owned(), |it| it.components().collect())
}

/// The end of what a program printed, where errors stand, without keys.
pub(crate) fn shown(text: &str, redactor: &Redactor) -> String {
    safe(&redactor.error_end(text, SHOWN)).into_owned()
}

/// JSON as one line, whatever the reader takes for the end of a line: some end it at U+2028 and U+2029
/// too, which may stand in a text.
fn one_line(json: Vec<u8>) -> Vec<u8> {
    let mut line = match String::from_utf8(json) {
        // One after the other: several characters at once are looked for far more slowly.
        Ok(text) if text.contains('\u{2028}') || text.contains('\u{2029}') => {
            let text = text.replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029");
            text.into_bytes()
        }
        Ok(text) => text.into_bytes(),
        Err(error) => error.into_bytes(),
    };
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_is_one_line_for_every_reader() {
        let text = "a\u{2028}b\u{2029}c\nd\u{2027}";
        let line = one_line(serde_json::to_vec(&json!([text])).unwrap());
        let line = String::from_utf8(line).unwrap();
        let ends = line.matches(['\n', '\r', '\u{2028}', '\u{2029}', '\u{85}', '\u{b}', '\u{c}']);
        assert_eq!(ends.count(), 1, "{line:?}");
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), json!([text]));
    }

    #[test]
    fn answers_are_told_from_what_is_printed() {
        let shown = |it: Trouble| {
            let again = if matches!(it, Trouble::Fault(_)) { "again: " } else { "" };
            format!("{again}{}", it.text(&Redactor::default()))
        };
        let answer = |line: &str| answer_in(line.as_bytes(), 7).map(|it| it.map_err(shown));
        assert_eq!(answer("noise"), None);
        let fault = r#"{"id":7,"error":"no","fault":true}"#;
        assert_eq!(answer(fault), Some(Err("again: no".to_owned())));
        assert_eq!(answer(r#"{"id":8,"pass":true}"#), None);
        assert_eq!(answer(r#"{"id":7,"returned":null}"#), Some(Ok(Value::Null)));
        assert_eq!(answer(r#"{"id":7,"error":"no"}"#), Some(Err("no".to_owned())));
        assert_eq!(answer(r#"{"id":7,"error":{"code":1}}"#), Some(Err(r#"{"code":1}"#.to_owned())));
        let plain = json!({ "id": 7, "pass": true, "error": null });
        assert_eq!(answer(&plain.to_string()), Some(Ok(plain)));
    }
}
