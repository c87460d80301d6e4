//! Scorers outside of the process: programs that stay up, and programs that are run for one reply.
//!
//! Whatever goes wrong with one is an error of the scorer, never a verdict on the model.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use probity_core::{span::Span, visible::safe};
use probity_grade::script::{Scorer, ScorerCall, ScorerInput};
use probity_load::suite::{ScorerConfig, Start};
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout, timeout_at},
};

use crate::{
    backend::program::environment::plain as program_environment,
    kind::Site,
    process::{self, Command, End, Finished, Limits, Room, Stdin, service::Service},
    redact::Redactor,
    scripts::split_name,
};

const PYTHON_HELPER: &str = include_str!("scorer/helper.py");
const NODE_HELPER: &str = include_str!("scorer/helper.cjs");
/// How long a program that is run for one reply may take.
const EXEC_TIMEOUT: Duration = Duration::from_mins(1);
/// Programs that are run for one reply at the same time.
const EXEC_AT_ONCE: usize = 4;
/// Exit codes of shells for a program that could not be run.
const NOT_RUN: [i32; 2] = [126, 127];
/// Characters of what a program printed that are shown.
const SHOWN: usize = 500;

/// Where scorers find things.
#[derive(Debug, Default)]
struct Surroundings {
    /// The suite's folder: where they run, and where paths start from.
    folder: PathBuf,
    /// All variables that there are.
    variables: BTreeMap<OsString, OsString>,
    kill_grace: Duration,
    redactor: Redactor,
}

/// The scorers of a run.
#[derive(Debug)]
pub struct Scorers {
    surroundings: Surroundings,
    pools: BTreeMap<String, Pool>,
    python: Pool,
    exec: Semaphore,
}

impl Default for Scorers {
    fn default() -> Self {
        Self::within(&[], Surroundings::default())
    }
}

impl Scorers {
    /// Those of a suite. None is started before it is needed.
    pub fn new(configs: &[ScorerConfig], site: Site<'_>) -> Self {
        let Site { folder, rules: _, env: variables, redactor, kill_grace } = site;
        let folder = absolute(folder);
        Self::within(configs, Surroundings { folder, variables, kill_grace, redactor })
    }

    fn within(configs: &[ScorerConfig], surroundings: Surroundings) -> Self {
        Self {
            surroundings,
            pools: configs.iter().map(|it| (it.name.clone(), Pool::new(it.clone()))).collect(),
            python: Pool::new(ScorerConfig::python()),
            exec: Semaphore::new(EXEC_AT_ONCE),
        }
    }

    /// What a scorer returns for a reply, before `deadline`.
    pub(crate) async fn score(
        &self,
        call: &ScorerCall,
        input: &ScorerInput,
        deadline: Instant,
    ) -> Result<Value, String> {
        let scored = match &call.scorer {
            Scorer::Named(name) => match self.pools.get(name) {
                Some(pool) => pool.score(&self.surroundings, None, input, deadline).await,
                None => Err("the suite does not have it".to_owned()),
            },
            Scorer::Python(source) => {
                self.python.score(&self.surroundings, Some(source), input, deadline).await
            }
            Scorer::Exec(command) => self.exec(command, input, deadline).await,
            Scorer::Similar(_) => Err("no program says how near texts are".to_owned()),
        };
        let redactor = &self.surroundings.redactor;
        scored.map_err(|why| redactor.cleaned(format!("{}: {why}", call.scorer)))
    }

    /// Runs a program for one reply: the output on standard input, the context in a file.
    async fn exec(
        &self,
        command: &[String],
        input: &ScorerInput,
        deadline: Instant,
    ) -> Result<Value, String> {
        let Surroundings { folder, variables, kill_grace, .. } = &self.surroundings;
        let _permit = timeout_at(deadline, self.exec.acquire()).await.map_err(|_| no_time())?;
        let (name, args) = command.split_first().ok_or("there is no program to start")?;
        let mut env = program_environment(variables, &[]);
        let room = Room::new().map_err(|error| error.to_string())?;
        let context = room.write("context.json", &input.context).map_err(|it| it.to_string())?;
        env.insert("PROBITY_CONTEXT".into(), context.into());
        let output = &input.output;
        let output = output.as_str().map_or_else(|| output.to_string(), ToOwned::to_owned);
        let left = deadline.saturating_duration_since(Instant::now()).min(EXEC_TIMEOUT);
        let command = Command {
            program: find(name, &env, folder)?,
            args: args.iter().map(OsString::from).collect(),
            env,
            stdin: Stdin::Bytes(output.into_bytes()),
            room: room.but_working_in(folder.clone()),
        };
        let finished = process::run(command, Limits::new(left, *kill_grace)).await;
        read_exec(&finished.map_err(|error| error.to_string())?, left)
    }
}

/// What a program that was run for one reply says: with its exit code, and with the last line of
/// what it printed if that is a table.
fn read_exec(finished: &Finished, limit: Duration) -> Result<Value, String> {
    match finished.end {
        End::Itself => {}
        End::Time => return Err(format!("it took more than {}", Span(limit))),
        End::Output => return Err("it wrote too much".to_owned()),
    }
    let stdout = String::from_utf8_lossy(&finished.stdout);
    let stderr = String::from_utf8_lossy(&finished.stderr);
    let code = match (finished.code(), finished.signal()) {
        (Some(code), _) if !NOT_RUN.contains(&code) => code,
        (Some(code), _) => return Err(format!("exit code {code}: {}", shown(&stderr))),
        (None, signal) => {
            let signal = signal.unwrap_or_else(|| "a signal".to_owned());
            return Err(format!("{signal} ended it: {}", shown(&stderr)));
        }
    };
    let last = stdout.lines().rev().find(|it| !it.trim().is_empty());
    let table = last.and_then(|it| serde_json::from_str::<Value>(it).ok());
    let pass = Value::from(code == 0);
    Ok(match table {
        Some(Value::Object(mut table)) => {
            table.entry("pass").or_insert(pass);
            table.into()
        }
        Some(_) | None => serde_json::json!({ "pass": pass, "reason": shown(&stdout) }),
    })
}

/// Tells requests apart, over all scorers.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// The processes of one scorer.
#[derive(Debug)]
struct Pool {
    config: ScorerConfig,
    permits: Semaphore,
    /// Those that wait for work. Held for no longer than it takes to put one in or out.
    idle: Mutex<Vec<Service>>,
}

#[derive(Serialize)]
struct Request<'a> {
    id: u64,
    output: &'a Value,
    context: &'a RawValue,
    /// What one of our helpers is to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<Run>,
}

/// A function for a helper: code, or a file and maybe the name of the function in it.
#[derive(Serialize)]
struct Run {
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<String>,
}

impl Run {
    fn of(source: &str, folder: &Path) -> Self {
        match source.trim().strip_prefix("file://") {
            Some(named) => Self::file(named, folder),
            None => Self { code: Some(source.to_owned()), file: None, function: None },
        }
    }

    fn file(named: &str, folder: &Path) -> Self {
        let (path, function) = split_name(named);
        let file = Some(absolute(&folder.join(path)));
        Self { code: None, file, function: function.map(ToOwned::to_owned) }
    }
}

/// What of a line says whose answer it is.
#[derive(Deserialize)]
struct Answer {
    id: u64,
    /// Why there is no score.
    #[serde(default)]
    error: Option<String>,
    /// What a function returned, from one of our helpers.
    #[serde(default)]
    returned: Option<Value>,
}

impl Pool {
    fn new(config: ScorerConfig) -> Self {
        let permits = Semaphore::new(config.workers);
        Self { config, permits, idle: Mutex::default() }
    }

    async fn score(
        &self,
        surroundings: &Surroundings,
        source: Option<&str>,
        input: &ScorerInput,
        deadline: Instant,
    ) -> Result<Value, String> {
        let _permit = timeout_at(deadline, self.permits.acquire()).await.map_err(|_| no_time())?;
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let folder = &surroundings.folder;
        let run = match (&self.config.start, source) {
            (_, Some(source)) => Some(Run::of(source, folder)),
            (Start::Python(file) | Start::Node(file), None) => Some(Run::file(file, folder)),
            (Start::Command(_), None) => None,
        };
        let context = RawValue::from_string(input.context.clone()).map_err(|it| it.to_string())?;
        let request = Request { id, output: &input.output, context: &context, run };
        let mut line = serde_json::to_vec(&request).map_err(|it| it.to_string())?;
        line.push(b'\n');
        loop {
            let waiting = self.idle().pop();
            let is_fresh = waiting.is_none();
            let mut service = match waiting {
                Some(service) => service,
                None => self.start(surroundings)?,
            };
            let left = deadline.saturating_duration_since(Instant::now());
            let limit = self.config.timeout.min(left);
            match timeout(limit, service.ask(&line, |it| answer_in(it, id))).await {
                Ok(Ok(answer)) => {
                    self.idle().push(service);
                    return answer;
                }
                // It had ended before it was asked: that is no answer to this reply.
                Ok(Err(process::service::NoAnswer::Ended)) if !is_fresh => {}
                Ok(Err(why)) => {
                    let words = service.last_words().await;
                    return Err(format!("{why} without an answer{}", said(&words)));
                }
                Err(_) => {
                    let words = service.last_words().await;
                    return Err(format!("no answer within {}{}", Span(limit), said(&words)));
                }
            }
        }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Service>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&self, surroundings: &Surroundings) -> Result<Service, String> {
        let Surroundings { folder, variables, .. } = surroundings;
        let env = program_environment(variables, &self.config.env);
        let room = Room::new().map_err(|error| error.to_string())?;
        let helper = |name: &str, text: &str| room.write(name, text).map_err(|it| it.to_string());
        let (program, args) = match &self.config.start {
            Start::Command(words) => {
                let (name, args) = words.split_first().ok_or("there is no program to start")?;
                (find(name, &env, folder)?, args.iter().map(OsString::from).collect())
            }
            Start::Python(_) => {
                let helper = helper("probity_helper.py", PYTHON_HELPER)?;
                (find("python3", &env, folder)?, vec!["-u".into(), helper.into()])
            }
            Start::Node(_) => {
                let helper = helper("probity_helper.cjs", NODE_HELPER)?;
                (find("node", &env, folder)?, vec![helper.into()])
            }
        };
        let room = room.but_working_in(folder.clone());
        let command = Command { program, args, env, stdin: Stdin::Null, room };
        Service::start(command).map_err(|error| error.to_string())
    }
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

fn find(name: &str, env: &BTreeMap<OsString, OsString>, folder: &Path) -> Result<PathBuf, String> {
    let path = env.get(OsStr::new("PATH")).map(OsString::as_os_str);
    process::find(name, path, folder).map_err(|error| error.to_string())
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path.join("."))
        .map_or_else(|_| path.to_owned(), |it| it.components().collect())
}

fn no_time() -> String {
    "no time was left for it".to_owned()
}

fn said(words: &str) -> String {
    match words.is_empty() {
        true => String::new(),
        false => format!("; it said: {}", shown(words)),
    }
}

/// The end of what a program printed, where errors stand.
fn shown(text: &str) -> String {
    let text = text.trim();
    let from = text.char_indices().nth_back(SHOWN - 1).map_or(0, |it| it.0);
    safe(&text[from..]).into_owned()
}
