//! The arguments of a program and what it reads.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::PathBuf,
};

use probity_core::request::Request;
use probity_load::suite::{BackendConfig, Transport};

use super::{ProgramError, Surroundings, Tool};
use crate::process::{NoProgram, Room};

/// How a program is called, with places for what differs from call to call.
#[derive(Debug)]
pub(super) struct Template {
    args: Vec<Vec<Piece>>,
    /// How many of them the user put there.
    n_before: usize,
    route: Route,
    /// The flag for instructions; a text without a place goes before the prompt.
    system_flag: Option<&'static str>,
    /// What follows the instructions.
    last: Vec<&'static str>,
    model: String,
    suite_dir: String,
}

/// A part of an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Prompt,
    PromptFile,
    System,
    Model,
    SuiteDir,
}

impl Piece {
    const PLACES: [(&'static str, Self); 5] = [
        ("prompt", Self::Prompt),
        ("prompt_file", Self::PromptFile),
        ("system", Self::System),
        ("model", Self::Model),
        ("suite_dir", Self::SuiteDir),
    ];
}

/// How the prompt goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    Pipe,
    File,
    /// The command has a place for it.
    Placed,
    /// As the last argument.
    Last,
}

/// One call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Invocation {
    pub(super) args: Vec<String>,
    pub(super) stdin: Input,
}

/// What the program reads.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Input {
    Null,
    Pipe(String),
    File(PathBuf),
}

impl Template {
    pub(super) fn new(
        tool: Tool,
        config: &BackendConfig,
        env: &BTreeMap<OsString, OsString>,
        surroundings: &Surroundings,
    ) -> Result<Self, ProgramError> {
        // What the user put behind the program's name comes first: `npx codex exec …`.
        let mut args = Vec::new();
        for arg in config.command.iter().skip(1) {
            args.push(pieces(arg, &config.name)?);
        }
        let n_before = args.len();
        let has = |piece: &Piece| args.iter().flatten().any(|it| it == piece);
        if has(&Piece::Model) && config.model.is_none() {
            return Err(ProgramError::NoModel(config.name.clone()));
        }
        if config.sandbox.is_some() && has(&Piece::PromptFile) {
            return Err(ProgramError::FileInSandbox(config.name.clone()));
        }
        let two = |transport: Transport, placeholder| ProgramError::TwoTransports {
            name: config.name.clone(),
            transport: transport.as_str(),
            placeholder,
        };
        let route = match (config.transport, has(&Piece::Prompt), has(&Piece::PromptFile)) {
            (None | Some(Transport::Arg), true, false) | (None, _, true) => Route::Placed,
            (Some(transport), true, false) => return Err(two(transport, "prompt")),
            (Some(transport), _, true) => return Err(two(transport, "prompt_file")),
            (None | Some(Transport::Stdin), false, false) => Route::Pipe,
            (Some(Transport::FileStdin), false, false) => Route::File,
            (Some(Transport::Arg), false, false) => Route::Last,
        };
        let (own, last) = flags(tool, config, env, route);
        args.extend(own.into_iter().map(|arg| vec![Piece::Text(arg)]));
        let system_flag = (tool == Tool::Claude).then_some("--system-prompt");
        let model = config.model.clone().unwrap_or_default();
        let suite_dir = surroundings.base.display().to_string();
        Ok(Self { args, n_before, route, system_flag, last, model, suite_dir })
    }

    pub(super) fn transport(&self) -> Transport {
        match self.route {
            Route::Pipe => Transport::Stdin,
            Route::File => Transport::FileStdin,
            Route::Placed | Route::Last => Transport::Arg,
        }
    }

    /// The arguments that stand before ours and are the same in every call.
    pub(super) fn before(&self) -> Vec<String> {
        let texts = self.args[..self.n_before].iter().map(|arg| match arg.as_slice() {
            [Piece::Text(text)] => Some(text.clone()),
            [] => Some(String::new()),
            _ => None,
        });
        texts.map_while(|text| text).collect()
    }

    /// The flags that we call it with, without their values.
    pub(super) fn flags(&self) -> impl Iterator<Item = &str> {
        let own = self.args[self.n_before..].iter().flatten().filter_map(|piece| match piece {
            Piece::Text(text) => Some(text.split('=').next().unwrap_or(text)),
            Piece::Prompt | Piece::PromptFile | Piece::System | Piece::Model | Piece::SuiteDir => {
                None
            }
        });
        own.filter(|arg| arg.starts_with('-')).chain(self.system_flag)
    }

    /// The call for one question. Files that it needs are written into the room.
    pub(super) fn fill(&self, request: &Request, room: &Room) -> Result<Invocation, NoProgram> {
        let has = |piece: &Piece| self.args.iter().flatten().any(|it| it == piece);
        let (system, prompt) = (request.system(), request.prompt());
        let prompt = match system {
            Some(system) if self.system_flag.is_none() && !has(&Piece::System) => {
                format!("{system}\n\n{prompt}")
            }
            Some(_) | None => prompt.to_owned(),
        };
        let file = match has(&Piece::PromptFile) {
            true => room.write("prompt.txt", &prompt)?.display().to_string(),
            false => String::new(),
        };
        let filled = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Prompt => prompt.clone(),
            Piece::PromptFile => file.clone(),
            Piece::System => system.unwrap_or("").to_owned(),
            Piece::Model => self.model.clone(),
            Piece::SuiteDir => self.suite_dir.clone(),
        };
        let mut args: Vec<String> =
            self.args.iter().map(|arg| arg.iter().map(filled).collect()).collect();
        if let (Some(flag), Some(system)) = (self.system_flag, system) {
            args.extend([flag.to_owned(), system.to_owned()]);
        }
        args.extend(self.last.iter().map(|&arg| arg.to_owned()));
        let stdin = match self.route {
            Route::Pipe => Input::Pipe(prompt),
            Route::File => Input::File(room.write("stdin.txt", &prompt)?),
            Route::Placed => Input::Null,
            Route::Last => {
                args.push(prompt);
                Input::Null
            }
        };
        Ok(Invocation { args, stdin })
    }
}

/// Whether a program can be told the model.
pub(super) fn takes_model(tool: Tool, config: &BackendConfig) -> bool {
    tool != Tool::Command
        || config
            .command
            .iter()
            .any(|arg| pieces(arg, "").is_ok_and(|pieces| pieces.contains(&Piece::Model)))
}

/// Takes an argument apart at its places. What is put there later is never looked at again.
fn pieces(arg: &str, backend: &str) -> Result<Vec<Piece>, ProgramError> {
    let mut pieces = Vec::new();
    let (mut text, mut rest) = (String::new(), arg);
    while let Some((before, after)) = rest.split_once("{{") {
        text.push_str(before);
        let inside = after.split_once("}}").map(|(name, rest)| (name.trim(), rest));
        let is_name = |name: &str| {
            !name.is_empty() && name.bytes().all(|c| c.is_ascii_lowercase() || c == b'_')
        };
        match inside {
            Some((name, behind)) if is_name(name) => {
                let place = Piece::PLACES.into_iter().find(|(known, _)| *known == name);
                let Some((_, place)) = place else { return Err(unknown(name, backend)) };
                pieces.extend([Piece::Text(std::mem::take(&mut text)), place]);
                rest = behind;
            }
            // Braces of somebody else.
            Some(_) | None => {
                text.push_str("{{");
                rest = after;
            }
        }
    }
    text.push_str(rest);
    pieces.push(Piece::Text(text));
    pieces.retain(|piece| *piece != Piece::Text(String::new()));
    Ok(pieces)
}

fn unknown(placeholder: &str, backend: &str) -> ProgramError {
    ProgramError::UnknownPlaceholder {
        name: backend.to_owned(),
        placeholder: placeholder.to_owned(),
        known: Piece::PLACES.map(|(name, _)| format!("`{{{{{name}}}}}`")).join(", "),
    }
}

/// The flags of a kind, and what stands between the instructions and the prompt.
///
/// They are those of claude 2.1.325, codex 0.166.0 and copilot 1.0.102.
fn flags(
    tool: Tool,
    config: &BackendConfig,
    env: &BTreeMap<OsString, OsString>,
    route: Route,
) -> (Vec<String>, Vec<&'static str>) {
    let text = |args: &[&str]| args.iter().map(|&arg| arg.to_owned()).collect::<Vec<_>>();
    let model = |flag: &str| match &config.model {
        Some(model) => vec![flag.to_owned(), model.clone()],
        None => Vec::new(),
    };
    let as_argument = route == Route::Last;
    match tool {
        Tool::Claude => {
            let mut args = text(&["-p", "--output-format", "json"]);
            // It leaves out everything that a user has set up, and the login as well: only
            // a key is used then.
            if env.contains_key(OsStr::new("ANTHROPIC_API_KEY")) {
                args.push("--bare".to_owned());
            }
            let alone =
                ["--strict-mcp-config", "--no-session-persistence", "--disable-slash-commands"];
            args.extend(text(&alone));
            args.extend(model("--model"));
            match config.sandbox {
                // Whatever it does stays there.
                Some(_) => args.push("--dangerously-skip-permissions".to_owned()),
                None => args.extend(text(&["--tools", ""])),
            }
            // A prompt may begin with a dash, and `--tools` takes what follows it.
            (args, if as_argument { vec!["--"] } else { Vec::new() })
        }
        Tool::Codex => {
            let mut args = text(&["exec", "--json", "--skip-git-repo-check", "--ephemeral"]);
            args.extend(text(&["--color", "never"]));
            match config.sandbox {
                Some(_) => args.push("--dangerously-bypass-approvals-and-sandbox".to_owned()),
                None => args.extend(text(&["--sandbox", "read-only"])),
            }
            args.extend(codex_provider(config));
            args.extend(model("-m"));
            (args, if as_argument { vec!["--"] } else { vec!["-"] })
        }
        Tool::Copilot => {
            let mut args = text(&["-s", "--no-color", "--no-auto-update"]);
            args.extend(text(&["--disable-builtin-mcps", "--no-custom-instructions"]));
            args.push(match config.sandbox {
                Some(_) => "--allow-all-tools".to_owned(),
                None => "--available-tools=".to_owned(),
            });
            args.extend(model("--model"));
            (args, if as_argument { vec!["-p"] } else { Vec::new() })
        }
        Tool::Command => (Vec::new(), Vec::new()),
    }
}

/// Codex does not look at `OPENAI_BASE_URL`; a server has to be a provider of its own.
/// Only such a one can be told not to retry.
fn codex_provider(config: &BackendConfig) -> Vec<String> {
    let Some(url) = &config.base_url else { return Vec::new() };
    // A JSON string is a TOML string.
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let key = match &config.api_key_env {
        Some(variable) => format!("env_key={},", quoted(variable)),
        None => String::new(),
    };
    let table = format!(
        "model_providers.probity={{name=\"probity\",base_url={},{key}wire_api=\"responses\",\
         request_max_retries=0,stream_max_retries=0}}",
        quoted(url)
    );
    ["-c", "model_provider=\"probity\"", "-c", &table].map(ToOwned::to_owned).to_vec()
}

#[cfg(test)]
mod tests;
