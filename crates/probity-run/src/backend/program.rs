//! Programs that are started for each call: `claude`, `codex`, `copilot`, or any other.
//!
//! A program is told everything by flags, variables and standard input, and nothing by
//! where it runs: its working directory is empty and its variables are chosen. What it
//! prints is taken for an answer only if nothing says that it is an error. Unix only.

mod decode;
pub(crate) mod environment;
mod invocation;
mod probe;
mod sandboxed;

use std::{
    borrow::Cow,
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use probity_core::{
    case::TestCase,
    execution::{Executed, ExecutionCall},
    failure::ErrorKind,
    record::CallError,
    request::Request,
};
use probity_grade::{Rules, errors::ErrorInput};
use probity_load::suite::{BackendConfig, BackendKind, Output, Transport};

use super::{
    Ask, Failed, Reply,
    silence::{is_silent, silence},
};
use crate::{
    process::{self, End, Finished, LONGEST_ARGUMENT, Limits, NoProgram, Room, Stdin},
    redact::Redactor,
};
use invocation::{Invocation, Template};
pub use probe::{Probe, Support};
use sandboxed::{Came, Sandboxed};

/// What a program is made ready with, beside what the suite says of it.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// The variables that we see. A program sees some of them.
    pub env: BTreeMap<OsString, OsString>,
    /// Where relative paths to programs begin: the directory of the suite.
    pub base: PathBuf,
    /// The time from telling a program to end until it is killed.
    pub kill_grace: Duration,
}

/// The programs that are known, and all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Tool {
    Claude,
    Codex,
    Copilot,
    Command,
}

impl Tool {
    fn of(kind: BackendKind) -> Option<Self> {
        const TOOLS: [(BackendKind, Tool); 4] = [
            (BackendKind::Claude, Tool::Claude),
            (BackendKind::Codex, Tool::Codex),
            (BackendKind::Copilot, Tool::Copilot),
            (BackendKind::Command, Tool::Command),
        ];
        TOOLS.iter().find(|(known, _)| *known == kind).map(|(_, tool)| *tool)
    }
}

/// A program.
#[derive(Debug)]
pub struct Program {
    tool: Tool,
    /// Whose way of putting errors it has.
    dialect: &'static str,
    /// The name or path of the program.
    name: String,
    template: Template,
    output: Output,
    env: BTreeMap<OsString, OsString>,
    surroundings: Surroundings,
    not_applied: Vec<&'static str>,
    /// The sandbox that it runs in.
    sandboxed: Option<Sandboxed>,
    redactor: Redactor,
    rules: &'static Rules,
}

/// Why a program cannot be asked as the suite says.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// Not a kind that is started.
    #[error("backend `{name}` of kind `{kind}` is not a program")]
    OtherKind {
        /// The backend.
        name: String,
        /// Its kind.
        kind: &'static str,
    },
    /// No program at all.
    #[error("backend `{0}` has no `command`")]
    NoCommand(String),
    /// Another way to the program than the command has.
    #[error(
        "backend `{name}` has transport `{transport}`, but its command has `{{{{{placeholder}}}}}`"
    )]
    TwoTransports {
        /// The backend.
        name: String,
        /// What the suite says.
        transport: &'static str,
        /// What the command says.
        placeholder: &'static str,
    },
    /// A placeholder that stands for nothing.
    #[error("backend `{name}` has `{{{{{placeholder}}}}}` in its command; there is {known}")]
    UnknownPlaceholder {
        /// The backend.
        name: String,
        /// What is not known.
        placeholder: String,
        /// What is.
        known: String,
    },
    /// A placeholder for a model, and no model.
    #[error("backend `{0}` has `{{{{model}}}}` in its command, and no `model`")]
    NoModel(String),
    /// A place in JSON that cannot be one.
    #[error("backend `{name}` has the output pointer `{pointer}`, which does not begin with `/`")]
    BadPointer {
        /// The backend.
        name: String,
        /// What is no pointer.
        pointer: String,
    },
    /// A sandbox that cannot be had.
    #[error("backend `{name}` cannot run in the sandbox: {why}")]
    NoSandbox {
        /// The backend.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// A file that it would not find.
    #[error(
        "backend `{0}` has `{{{{prompt_file}}}}` in its command, and files of this machine are not seen in the sandbox"
    )]
    FileInSandbox(String),
    /// A key that is not there.
    #[error("backend `{name}` takes its key from the variable `{variable}`, which is not set")]
    NoKey {
        /// The backend.
        name: String,
        /// What is not set.
        variable: String,
    },
}

impl Program {
    /// A program as a suite describes it.
    pub fn new(
        config: &BackendConfig,
        surroundings: Surroundings,
        rules: &'static Rules,
    ) -> Result<Self, ProgramError> {
        let Some(tool) = Tool::of(config.kind) else {
            let (name, kind) = (config.name.clone(), config.kind.as_str());
            return Err(ProgramError::OtherKind { name, kind });
        };
        let name = match (config.command.first(), tool) {
            (Some(name), _) => name.clone(),
            (None, Tool::Command) => return Err(ProgramError::NoCommand(config.name.clone())),
            (None, Tool::Claude | Tool::Codex | Tool::Copilot) => config.kind.as_str().to_owned(),
        };
        let (sandboxed, config) = match Sandboxed::new(tool, config, &surroundings)? {
            Some((sandboxed, config)) => (Some(sandboxed), Cow::Owned(config)),
            None => (None, Cow::Borrowed(config)),
        };
        let config = &*config;
        let mut redactor = Redactor::default();
        let env = environment::of(tool, config, &surroundings.env, &mut redactor)?;
        let template = Template::new(tool, config, &env, &surroundings)?;
        let output = config.output.clone().unwrap_or(Output::Text);
        if let Output::Json(pointer) | Output::Jsonl(pointer) = &output
            && !pointer.is_empty()
            && !pointer.starts_with('/')
        {
            let (name, pointer) = (config.name.clone(), pointer.clone());
            return Err(ProgramError::BadPointer { name, pointer });
        }
        Ok(Self {
            tool,
            dialect: dialect(tool, &name),
            name,
            template,
            output,
            env,
            surroundings,
            not_applied: not_applied(tool, config),
            sandboxed,
            redactor,
            rules,
        })
    }

    /// Settings of the suite that a program cannot be told, by their names in the file.
    pub fn not_applied(&self) -> Vec<&'static str> {
        self.not_applied.clone()
    }

    /// Whether it says itself what a call cost.
    pub fn reports_cost(&self) -> bool {
        match self.tool {
            Tool::Claude => true,
            Tool::Codex | Tool::Copilot | Tool::Command => false,
        }
    }

    /// How prompts reach it.
    pub fn transport(&self) -> Transport {
        self.template.transport()
    }

    /// Asks, and waits no longer than `limit`, and then until the program is gone.
    ///
    /// If the future is dropped, the program is ended in the background; see
    /// [`process::drained`].
    pub async fn ask(&self, request: &Request, limit: Duration) -> Result<Reply, CallError> {
        let ask = Ask { request, repeat: 0, about: None };
        self.ask_and_count(&ask, limit).await.map_err(|failed| *failed.error)
    }

    /// The same, with what a call used that came to nothing.
    pub(super) async fn ask_and_count(
        &self,
        ask: &Ask<'_>,
        limit: Duration,
    ) -> Result<Reply, Failed> {
        let command = self.command(ask.request)?;
        let limits = Limits::new(limit, self.surroundings.kill_grace);
        let came = match &self.sandboxed {
            Some(sandboxed) => {
                let about = ask.about.filter(|it| it.is_subject());
                let call = about.and_then(|it| self.call_after(&it.case));
                sandboxed.run(command, limits, call).await
            }
            None => process::run(command, limits).await.map(|finished| Came {
                finished,
                took: None,
                left: None,
            }),
        };
        let Came { finished, took, left } = came.map_err(|error| self.not_started(&error))?;
        match finished.end {
            End::Itself => {
                let left_behind = left.map(|it| Box::new(self.clean_left(it)));
                // What was looked at afterwards is no time of the program.
                let timed =
                    |reply: Reply| Reply { left_behind, latency: took.or(reply.latency), ..reply };
                self.answered(&finished).map(timed)
            }
            End::Time => Err(self.too_slow(&finished, limit).into()),
            End::Output => {
                let most = limits.stdout >> 20;
                let message = format!("the program wrote more than {most} MiB and was ended");
                Err(CallError::new(ErrorKind::Server, message).into())
            }
        }
    }

    /// Whether it runs in the sandbox.
    pub(super) fn is_sandboxed(&self) -> bool {
        self.sandboxed.is_some()
    }

    /// What is executed in the world that it leaves behind, where a case judges that.
    pub(super) fn call_after(&self, case: &TestCase) -> Option<ExecutionCall> {
        self.sandboxed.as_ref()?;
        case.execution.as_ref()?.after_program()
    }

    /// What was left behind, without keys.
    fn clean_left(&self, left: Result<Executed, String>) -> Result<Executed, String> {
        let left = left.map_err(|why| self.redactor.cleaned(why))?;
        let value = serde_json::to_value(&left).map_err(|error| error.to_string())?;
        let clean = self.redactor.clean_json(value);
        serde_json::from_value(clean).map_err(|error| error.to_string())
    }

    fn command(&self, request: &Request) -> Result<process::Command, Failed> {
        let failed = |error: NoProgram| self.not_started(&error);
        let path = self.env.get(&OsString::from("PATH"));
        let base = &self.surroundings.base;
        let program =
            process::find(&self.name, path.map(OsString::as_os_str), base).map_err(failed)?;
        let room = Room::new().map_err(failed)?;
        let Invocation { args, stdin } = self.template.fill(request, &room).map_err(failed)?;
        if let Some(longest) = args.iter().map(String::len).max()
            && longest > LONGEST_ARGUMENT
        {
            let advice = match self.transport() {
                Transport::Arg => "use the transport `stdin`",
                Transport::Stdin | Transport::FileStdin => "shorten the instructions",
            };
            let message = format!(
                "an argument of `{}` has {longest} bytes, and the longest that can be has \
                 {LONGEST_ARGUMENT} bytes; {advice}",
                self.name
            );
            return Err(CallError::new(ErrorKind::TooLarge, message).into());
        }
        let stdin = match stdin {
            invocation::Input::Null => Stdin::Null,
            invocation::Input::Pipe(text) => Stdin::Bytes(text.into_bytes()),
            invocation::Input::File(path) => match std::fs::File::open(&path) {
                Ok(file) => Stdin::File(file),
                Err(source) => return Err(failed(NoProgram::Room { path, source })),
            },
        };
        let args = args.into_iter().map(OsString::from).collect();
        Ok(process::Command { program, args, env: self.env.clone(), stdin, room })
    }

    /// It ended by itself: with an answer or with an error.
    fn answered(&self, finished: &Finished) -> Result<Reply, Failed> {
        let stdout = String::from_utf8_lossy(&finished.stdout);
        let failed = |what: Option<&str>| {
            let (usage, cost_usd) = decode::used(&stdout);
            Failed { usage, cost_usd, ..self.failed(finished, &stdout, what).into() }
        };
        if finished.code() != Some(0) {
            return Err(failed(None));
        }
        // Even structured silence is told apart from words that are not understood.
        if stdout.trim().is_empty() {
            return Err(failed(Some("it printed nothing")));
        }
        let decoded = match self.tool {
            Tool::Claude => decode::claude(&stdout),
            Tool::Codex => decode::codex(&stdout),
            Tool::Copilot if self.is_false_answer(&stdout) => Err(decode::Undecoded::Error),
            Tool::Command if self.is_error_text(&stdout) => Err(decode::Undecoded::Error),
            Tool::Copilot | Tool::Command => decode::output(&self.output, &stdout),
        };
        match decoded.map(Reply::with_reasoning_apart) {
            Ok(reply) if is_silent(&reply) => {
                let silence = silence(&reply);
                let error = CallError { status: None, exit_code: Some(0), ..*silence.error };
                Err(Failed { error: Box::new(error), ..silence })
            }
            Ok(reply) => Ok(self.redactor.clean_reply(reply)),
            Err(decode::Undecoded::Error) => Err(failed(None)),
            Err(decode::Undecoded::Shape(what)) => Err(failed(Some(what))),
        }
    }

    /// Whether a program that prints plain answers printed an error in place of one.
    fn is_false_answer(&self, stdout: &str) -> bool {
        // An answer in JSON may well tell of an error.
        let plain = !stdout.trim_start().starts_with(['{', '[']);
        plain && self.knows_error(stdout)
    }

    /// Whether a program that is to print plain answers printed a vendor's error as JSON.
    fn is_error_text(&self, stdout: &str) -> bool {
        self.output == Output::Text && decode::is_error_object(stdout) && self.knows_error(stdout)
    }

    fn knows_error(&self, stdout: &str) -> bool {
        let input = ErrorInput {
            backend: Some(self.dialect),
            exit_code: Some(0),
            stdout,
            ..ErrorInput::default()
        };
        let kind = self.rules.errors().classify(&input).kind;
        !matches!(kind, ErrorKind::Unknown | ErrorKind::Empty)
    }

    /// It ended by itself and with an error, or with nothing that is an answer.
    fn failed(&self, finished: &Finished, stdout: &str, what: Option<&str>) -> CallError {
        let stderr = String::from_utf8_lossy(&finished.stderr);
        let told = match self.tool {
            Tool::Codex => decode::codex_errors(stdout),
            Tool::Claude | Tool::Copilot | Tool::Command => None,
        };
        let signal = finished.signal();
        let input = ErrorInput {
            backend: Some(self.dialect),
            exit_code: finished.code(),
            signal: signal.as_deref(),
            stdout: told.as_deref().unwrap_or(stdout),
            stderr: &stderr,
            ..ErrorInput::default()
        };
        let verdict = self.rules.errors().classify(&input);
        let how = match (&signal, finished.code()) {
            (Some(signal), _) => format!("ended by {signal}"),
            (None, Some(code)) => format!("exit code {code}"),
            (None, None) => "no exit code".to_owned(),
        };
        let clean = |text: &str| self.redactor.error_text(text.trim());
        let beginning = |text: &str| {
            let text = clean(text);
            text[..text.floor_char_boundary(200)].to_owned()
        };
        let said = match (what, stdout.trim(), stderr.trim()) {
            (Some(what), "", "") => what.to_owned(),
            (Some(what), "", stderr) => {
                format!("{what}; standard error begins `{}`", beginning(stderr))
            }
            (Some(what), stdout, _) => format!("{what}; it begins `{}`", beginning(stdout)),
            (None, stdout, stderr) => match clean(&decode::said(stdout, stderr)) {
                said if said.is_empty() => "it said nothing".to_owned(),
                said => said,
            },
        };
        CallError {
            permanent: verdict.permanent,
            retry_after: verdict.retry_after,
            status: decode::status(stdout),
            exit_code: finished.code(),
            signal,
            ..CallError::new(verdict.kind, format!("{how}: {said}"))
        }
    }

    /// We ended it for the time it took. Its last words may say what it waited for.
    fn too_slow(&self, finished: &Finished, limit: Duration) -> CallError {
        let seconds = limit.as_secs_f64();
        let mut message = format!("no complete answer within {seconds} s");
        let stderr = String::from_utf8_lossy(&finished.stderr);
        let stdout = String::from_utf8_lossy(&finished.stdout);
        let told = match self.tool {
            Tool::Codex => decode::codex_last_error(&stdout),
            Tool::Claude | Tool::Copilot | Tool::Command => None,
        };
        let last = told.or_else(|| Some(stderr.trim_end().lines().next_back()?.trim().to_owned()));
        if let Some(last) = last.filter(|it| !it.is_empty()) {
            let last = self.redactor.error_text(&last);
            let end = last.floor_char_boundary(200);
            message = format!("{message}; the program last said `{}`", &last[..end]);
        }
        CallError::new(ErrorKind::Timeout, message)
    }

    /// There was no process.
    fn not_started(&self, error: &NoProgram) -> Failed {
        let kind = match error {
            NoProgram::Missing { .. }
            | NoProgram::NoFile { .. }
            | NoProgram::NotExecutable { .. }
            | NoProgram::NoInterpreter { .. }
            | NoProgram::NoSandbox { .. } => ErrorKind::NotInstalled,
            NoProgram::Other { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                ErrorKind::NotInstalled
            }
            NoProgram::TooLong { .. } => ErrorKind::TooLarge,
            NoProgram::Zero { .. } => ErrorKind::BadRequest,
            // Too many processes or files, a full disk: it passes, or somebody sees to it.
            NoProgram::NoDirectory { .. }
            | NoProgram::Other { .. }
            | NoProgram::Room { .. }
            | NoProgram::Signals(_)
            | NoProgram::Lost(_) => ErrorKind::Unknown,
        };
        let is_call = !error.is_out_of_files();
        let error = CallError::new(kind, self.redactor.error_text(&error.to_string()));
        Failed { is_call, ..error.into() }
    }
}

/// Whose way of putting errors a program has.
fn dialect(tool: Tool, name: &str) -> &'static str {
    match tool {
        Tool::Claude => "claude",
        Tool::Codex => "codex",
        Tool::Copilot => "copilot",
        Tool::Command => {
            let file = Path::new(name).file_name().and_then(|it| it.to_str());
            let known = ["claude", "codex", "copilot", "gemini"];
            known.into_iter().find(|known| file == Some(known)).unwrap_or("shell")
        }
    }
}

fn not_applied(tool: Tool, config: &BackendConfig) -> Vec<&'static str> {
    let own_output = tool != Tool::Command;
    let told = [
        ("response_format", config.response_format.is_some()),
        ("extra_body", config.extra_body.is_some()),
        ("headers_env", !config.headers_env.is_empty()),
        ("base_url", config.base_url.is_some() && !own_output),
        ("model", config.model.is_some() && !invocation::takes_model(tool, config)),
        ("output", config.output.is_some() && own_output),
    ];
    let told = told.into_iter().filter(|(_, set)| *set).map(|(name, _)| name);
    config.sampling.names().chain(told).collect()
}
