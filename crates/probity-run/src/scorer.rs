//! Scorers outside of the process: programs that stay up, and programs that are run for one reply.
//!
//! Whatever goes wrong with one is an error of the scorer, never a verdict on the model.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use probity_core::{
    problem::{Problem, Severity},
    span::Span,
};
use probity_grade::internal::script::{Scorer, ScorerCall, ScorerInput};
use probity_load::{
    inputs,
    settings::Settings,
    suite::{ScorerConfig, Start},
};
use serde::Serialize;
use serde_json::{Value, value::RawValue};
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout_at},
};

use crate::{
    backend::program::environment::plain as program_environment,
    callable::Callables,
    kind::Site,
    process::{self, Command, End, Finished, Limits, Room, Stdin},
    redact::Redactor,
    worker::{Call, Function, Place, Pool, PoolConfig, Trouble, shown},
};

/// Processes that run the Python of assertions.
const PYTHON_WORKERS: usize = 2;
/// Programs that are run for one reply at the same time.
const EXEC_AT_ONCE: usize = 4;
/// Exit codes of shells for a program that could not be run.
const NOT_RUN: [i32; 2] = [126, 127];
/// The function that scores, in Python.
const PYTHON_FUNCTION: &str = "get_assert";

/// The problem of a program or file that is not there.
const NOT_THERE: &str = "missing-program";

/// The scorers of a run.
#[derive(Debug)]
pub struct Scorers {
    place: Place,
    redactor: Redactor,
    limits: Limits,
    named: BTreeMap<String, (ScorerConfig, Pool)>,
    python: Pool,
    exec: Semaphore,
}

/// Which scorers the cases of a runner ask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsedScorers {
    /// The suite's folder.
    folder: PathBuf,
    named: BTreeSet<String>,
    python: bool,
}

impl UsedScorers {
    /// None so far.
    pub(crate) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), ..Self::default() }
    }

    pub(crate) fn see(&mut self, calls: &[ScorerCall]) {
        for call in calls {
            match &call.scorer {
                Scorer::Named(name) if self.named.contains(name) => {}
                Scorer::Named(name) => {
                    self.named.insert(name.clone());
                }
                Scorer::Python(_) => self.python = true,
                Scorer::Exec(command) => inputs::note_files(&self.folder, command),
                // A backend is asked.
                Scorer::Similar(_) | Scorer::Rerank(_) => {}
            }
        }
    }
}

impl Scorers {
    /// Those of a suite, and functions of this process that stand for some. None is started before it is needed.
    pub fn new(
        configs: &[ScorerConfig],
        site: Site<'_>,
        settings: &Settings,
        callables: &Callables,
    ) -> Self {
        let Site {
            folder,
            rules: _,
            env: variables,
            mut redactor,
            kill_grace,
            function_timeout: _,
        } = site;
        configs.iter().for_each(|it| redactor.add_chosen(&variables, &it.env));
        let memory = settings.scorer_memory;
        let limits = Limits { memory, ..Limits::new(settings.timeouts.scorer, kill_grace) };
        let config = |start: Start| PoolConfig {
            start,
            callable: None,
            workers: PYTHON_WORKERS,
            timeout: limits.time,
            env: Vec::new(),
            memory,
            may_repeat: true,
        };
        let pool = |it: &ScorerConfig| PoolConfig {
            callable: callables.scorers.get(&it.name).cloned(),
            workers: it.workers,
            timeout: it.timeout.unwrap_or(limits.time),
            env: it.env.clone(),
            ..config(it.start.clone())
        };
        Self {
            place: Place::new(folder, variables),
            redactor,
            limits,
            named: configs
                .iter()
                .map(|it| (it.name.clone(), (it.clone(), Pool::new(pool(it)))))
                .collect(),
            python: Pool::new(config(Start::Python(String::new()))),
            exec: Semaphore::new(EXEC_AT_ONCE),
        }
    }

    /// What keeps scorers that are going to be asked from being started. `file` is the suite's.
    pub fn check(&self, used: &UsedScorers, file: &str) -> Vec<Problem> {
        let of_suite = used.named.iter().filter_map(|name| self.named.get(name));
        let mut problems: Vec<Problem> = of_suite
            .filter_map(|(config, pool)| {
                let why = pool.check(&self.place).err()?;
                Some(config.at.unusable(NOT_THERE, &why))
            })
            .collect();
        if used.python
            && let Err(why) = self.python.check(&self.place)
        {
            problems.push(Problem {
                severity: Severity::Error,
                code: NOT_THERE,
                message: format!("assertions of type `python` cannot be run: {why}"),
                file: file.into(),
                place: None,
                case_id: None,
                help: None,
            });
        }
        problems
    }

    /// What a scorer returns for a reply, before `deadline`.
    pub(crate) async fn score(
        &self,
        call: &ScorerCall,
        input: &ScorerInput,
        deadline: Instant,
    ) -> Result<Value, String> {
        let scored = match &call.scorer {
            Scorer::Named(name) => match self.named.get(name) {
                Some((_, pool)) => self.ask(pool, None, input, deadline).await,
                None => Err("the suite does not have it".to_owned()),
            },
            Scorer::Python(source) => self.ask(&self.python, Some(source), input, deadline).await,
            Scorer::Exec(command) => self.exec(command, input, deadline).await,
            Scorer::Similar(_) | Scorer::Rerank(_) => {
                Err("no program says how near texts are".to_owned())
            }
        };
        match scored {
            Ok(returned) => Ok(self.redactor.clean_json(returned)),
            Err(why) => Err(self.redactor.error_text(&format!("{}: {why}", call.scorer))),
        }
    }

    /// Asks a process that stays up. `source` is what it is to run, where that is not fixed.
    async fn ask(
        &self,
        pool: &Pool,
        source: Option<&str>,
        input: &ScorerInput,
        deadline: Instant,
    ) -> Result<Value, String> {
        let folder = &self.place.folder;
        let context: &RawValue =
            serde_json::from_str(&input.context).map_err(|it| it.to_string())?;
        let output = &input.output;
        let in_python = |named: &str| Function::file(named, Some(PYTHON_FUNCTION), folder);
        let run = match (pool.start(), source) {
            (_, Some(source)) => Some(match source.trim().strip_prefix("file://") {
                Some(named) => in_python(named),
                None => Function::code(source),
            }),
            (Start::Python(file), None) => Some(in_python(file)),
            (Start::Node(file), None) => Some(Function::file(file, None, folder)),
            (Start::Command(_), None) => None,
        };
        let request = |id| match &run {
            Some(run) => serde_json::to_vec(&Call { id, run, args: Some((output, context)) }),
            None => serde_json::to_vec(&Request { id, output, context }),
        };
        let returned = pool.ask(&self.place, request, deadline).await;
        let returned = returned.map_err(|trouble| trouble.text(&self.redactor))?;
        Ok(match (pool.start(), returned) {
            (Start::Python(_), Value::String(text)) => read_text(text),
            (_, returned) => returned,
        })
    }

    /// Runs a program for one reply: the output on standard input, the context in a file.
    async fn exec(
        &self,
        command: &[String],
        input: &ScorerInput,
        deadline: Instant,
    ) -> Result<Value, String> {
        let permit = timeout_at(deadline, self.exec.acquire()).await;
        let _permit = permit.map_err(|_| Trouble::NoTime.text(&self.redactor))?;
        let (name, args) = command.split_first().ok_or("there is no program to start")?;
        let mut env = program_environment(&self.place.variables, &[]);
        let room = Room::new().map_err(|error| error.to_string())?;
        let context = room.write("context.json", &input.context).map_err(|it| it.to_string())?;
        env.insert("PROBITY_CONTEXT".into(), context.into());
        let output = &input.output;
        let output = output.as_str().map_or_else(|| output.to_string(), ToOwned::to_owned);
        let time = deadline.saturating_duration_since(Instant::now()).min(self.limits.time);
        let command = Command {
            program: self.place.find(name).map_err(|error| error.to_string())?,
            args: args.iter().map(OsString::from).collect(),
            env,
            stdin: Stdin::Bytes(output.into_bytes()),
            room: room.but_working_in(self.place.folder.clone()),
        };
        let finished = process::run(command, Limits { time, ..self.limits }).await;
        read_exec(&finished.map_err(|error| error.to_string())?, time, &self.redactor)
    }
}

/// A request to a program that speaks the protocol itself.
#[derive(Serialize)]
struct Request<'a> {
    id: u64,
    output: &'a Value,
    context: &'a RawValue,
}

/// Answers as text are in use in Python: `True`, `0.5`, or a table as JSON.
fn read_text(text: String) -> Value {
    match text.trim() {
        "True" => Value::Bool(true),
        "False" => Value::Bool(false),
        other => serde_json::from_str(other).unwrap_or(Value::String(text)),
    }
}

/// What a program that was run for one reply says: with its exit code, and with the last line of
/// what it printed if that is a table.
fn read_exec(finished: &Finished, limit: Duration, redactor: &Redactor) -> Result<Value, String> {
    let shown = |text: &str| shown(text, redactor);
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
