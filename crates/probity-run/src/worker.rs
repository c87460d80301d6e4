//! Processes that stay up and answer one request after the other: functions of users in Python and
//! JavaScript, run by helpers of ours, and programs that read requests themselves.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fmt,
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
    process::{
        self, Command, NoProgram, Room, Stdin,
        service::{NoAnswer, Service},
    },
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
    /// The request cannot be written.
    Unwritten(serde_json::Error),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = |words: &str| match words.is_empty() {
            true => String::new(),
            false => format!("; it said: {}", shown(words)),
        };
        match self {
            Self::NoTime => f.write_str("no time was left for it"),
            Self::NoProgram(why) => write!(f, "{why}"),
            Self::Slow(limit, words) => {
                write!(f, "no answer within {}{}", Span(*limit), said(words))
            }
            Self::Lost(why, words) => write!(f, "{why} without an answer{}", said(words)),
            Self::Error(why) => f.write_str(why),
            Self::Unwritten(why) => write!(f, "the request cannot be written: {why}"),
        }
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
        let mut line = request(id).map_err(Trouble::Unwritten)?;
        line.push(b'\n');
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
                    return answer.map_err(Trouble::Error);
                }
                // It may have ended before it was asked: that is no answer to this request.
                Ok(Err(NoAnswer::Ended)) if !is_certain => {}
                Ok(Err(why)) => return Err(Trouble::Lost(why, service.last_words().await)),
                Err(_) => return Err(Trouble::Slow(limit, service.last_words().await)),
            }
        }
    }

    /// What keeps its processes from being started, as far as that is known beforehand.
    pub(crate) fn check(&self, place: &Place) -> Result<PathBuf, String> {
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

/// What of a line says whose answer it is.
#[derive(Deserialize)]
struct Answer {
    id: u64,
    /// Why there is none.
    #[serde(default)]
    error: Option<String>,
    /// What a function returned, from one of our helpers.
    #[serde(default, deserialize_with = "present")]
    returned: Option<Value>,
}

/// A value that is there, also if it is null.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// The answer to a request, if the line is one. Other lines are what a program prints.
fn answer_in(line: &[u8], id: u64) -> Option<Result<Value, String>> {
    let value: Value = serde_json::from_slice(line).ok()?;
    let answer = Answer::deserialize(&value).ok().filter(|it| it.id == id)?;
    Some(match answer {
        Answer { error: Some(error), .. } => Err(error),
        Answer { returned: Some(returned), .. } => Ok(returned),
        Answer { .. } => Ok(value),
    })
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path.join("."))
        .map_or_else(|_| path.to_owned(), |it| it.components().collect())
}

/// The end of what a program printed, where errors stand.
pub(crate) fn shown(text: &str) -> String {
    let text = text.trim();
    let from = text.char_indices().nth_back(SHOWN - 1).map_or(0, |it| it.0);
    safe(&text[from..]).into_owned()
}
