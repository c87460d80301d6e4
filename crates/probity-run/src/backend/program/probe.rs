//! Finds out what a program is and can do, without a call to a model.
//!
//! Each capability is looked for on its own in what the program says of itself. A
//! program of the kind `command` is not started: it might take `--version` for a prompt.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, Mutex, PoisonError},
    time::Duration,
};

use probity_load::suite::{Output, Transport};
use tokio::sync::OnceCell;

use super::{Program, Tool};
use crate::process::{self, Command, End, Limits, NoProgram, Room, Stdin};

/// What is known of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Where it is.
    pub found: Option<PathBuf>,
    /// Whether it is there and cannot be run, or does not even tell its version.
    pub broken: bool,
    /// What it calls its version.
    pub version: Option<String>,
    /// How prompts reach it.
    pub transport: Transport,
    /// Whether it can answer in the JSON that it is asked for.
    pub json: Support,
    /// The flags that it is called with, and whether it knows them.
    pub flags: Vec<(String, Support)>,
    /// What it will likely log in with.
    pub auth_hint: Option<String>,
    /// Why something of this is not known, and what else to know.
    pub notes: Vec<String>,
}

/// Whether a program can do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// It says so.
    Yes,
    /// It does not mention it.
    No,
    /// It did not say.
    Unknown,
    /// It is not asked to.
    Unused,
}

/// What a program says of itself, or why it does not.
#[derive(Debug)]
struct Said {
    version: Result<String, String>,
    help: Result<String, String>,
}

/// What was said, by program, file, and the arguments before ours.
static KNOWN: LazyLock<Mutex<BTreeMap<Key, Arc<OnceCell<Said>>>>> = LazyLock::new(Mutex::default);

type Key = (Tool, PathBuf, Vec<String>);

impl Program {
    /// Looks for the program and does not start it.
    pub fn locate(&self) -> Probe {
        let path = self.env.get(OsStr::new("PATH")).map(OsString::as_os_str);
        let mut probe = Probe {
            found: None,
            broken: false,
            version: None,
            transport: self.transport(),
            json: Support::Unused,
            flags: Vec::new(),
            auth_hint: self.auth_hint(),
            notes: Vec::new(),
        };
        match process::find(&self.name, path, &self.surroundings.base) {
            Ok(program) => probe.found = Some(program),
            Err(error) => {
                probe.notes.push(error.to_string());
                if let NoProgram::NotExecutable { path, .. }
                | NoProgram::NoInterpreter { path, .. } = error
                {
                    probe.found = Some(path);
                    probe.broken = true;
                }
            }
        }
        probe
    }

    /// Whether the program is there. It is not started.
    pub fn is_installed(&self) -> bool {
        self.locate().found.is_some()
    }

    /// Looks at the program, a limit for each question to it. What it says, or that it
    /// does not, is kept for as long as we run, so that the same reason is given each time.
    pub async fn probe(&self, limit: Duration) -> Probe {
        let mut probe = self.locate();
        let Some(program) = probe.found.clone().filter(|_| !probe.broken) else { return probe };
        if self.tool == Tool::Command {
            if self.output != Output::Text {
                probe.json = Support::Unknown;
            }
            probe.notes.push("it is not started to look at it".to_owned());
            return probe;
        }
        if self.sandboxed.is_some() {
            probe.notes.push("it is not started outside of the sandbox".to_owned());
            return probe;
        }
        let before = self.template.before();
        let said = {
            let key = (self.tool, program.clone(), before.clone());
            let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(known.entry(key).or_default())
        };
        let said = said.get_or_init(|| self.listen(&program, &before, limit)).await;
        self.understand(said, &mut probe);
        probe
    }

    /// Asks the program for its version and its flags, one apart from the other.
    async fn listen(&self, program: &Path, before: &[String], limit: Duration) -> Said {
        let args = |flags: &[&str]| {
            let before = before.iter().map(OsString::from);
            before.chain(flags.iter().map(OsString::from)).collect()
        };
        let help: &[&str] = match self.tool {
            Tool::Codex => &["exec", "--help"],
            Tool::Claude | Tool::Copilot | Tool::Command => &["--help"],
        };
        Said {
            version: self.look(program, args(&["--version"]), limit).await,
            help: self.look(program, args(help), limit).await,
        }
    }

    fn understand(&self, said: &Said, probe: &mut Probe) {
        let Said { version: version_said, help } = said;
        match version_said {
            Ok(text) => probe.version = version(text),
            Err(reason) => {
                probe.broken = true;
                probe.notes.push(format!("`--version`: {reason}"));
            }
        }
        if let Err(reason) = help {
            probe.notes.push(format!("`--help`: {reason}"));
        }
        let support = |flag: &str| match help {
            Ok(text) if mentions(text, flag) => Support::Yes,
            Ok(_) => Support::No,
            Err(_) => Support::Unknown,
        };
        probe.flags = self.template.flags().map(|flag| (flag.to_owned(), support(flag))).collect();
        let missing: Vec<&str> =
            probe.flags.iter().filter(|it| it.1 == Support::No).map(|it| it.0.as_str()).collect();
        if !missing.is_empty() {
            let missing = missing.join(", ");
            probe.notes.push(format!("its help does not mention {missing}"));
        }
        probe.json = match self.tool {
            Tool::Claude => support("--output-format"),
            Tool::Codex => support("--json"),
            Tool::Copilot | Tool::Command => Support::Unused,
        };
    }

    /// Runs the program for what it says of itself.
    async fn look(
        &self,
        program: &Path,
        args: Vec<OsString>,
        limit: Duration,
    ) -> Result<String, String> {
        let room = Room::new().map_err(|error| error.to_string())?;
        let (program, env) = (program.to_owned(), self.env.clone());
        let command = Command { program, args, env, stdin: Stdin::Null, room };
        let limits = Limits::new(limit, self.surroundings.kill_grace);
        let finished = process::run(command, limits).await.map_err(|error| error.to_string())?;
        let stdout = String::from_utf8_lossy(&finished.stdout);
        let stderr = String::from_utf8_lossy(&finished.stderr);
        let said = match stdout.trim() {
            "" => stderr.trim(),
            stdout => stdout,
        };
        match (finished.end, finished.code()) {
            (End::Itself, Some(0)) => Ok(said.to_owned()),
            (End::Time, _) => Err(format!("no answer within {} s", limit.as_secs_f64())),
            (End::Output, _) => Err("it never stops writing".to_owned()),
            (End::Itself, code) => {
                let how = code.map(|it| format!("exit code {it}")).or(finished.signal());
                let said = said.lines().next().unwrap_or("");
                let how = how.unwrap_or_default();
                Err(format!("{how}: {}", self.redactor.error_text(said)))
            }
        }
    }

    /// What is there to log in with: names of variables and files, never what is in them.
    fn auth_hint(&self) -> Option<String> {
        let (variables, file): (&[&str], &str) = match self.tool {
            Tool::Claude => (
                &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"],
                ".claude/.credentials.json",
            ),
            Tool::Codex => (&["CODEX_API_KEY"], ".codex/auth.json"),
            Tool::Copilot => (
                &["COPILOT_PROVIDER_BASE_URL", "COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"],
                ".copilot/config.json",
            ),
            Tool::Command => return None,
        };
        let variable = variables.iter().find(|it| self.env.contains_key(OsStr::new(it)));
        if let Some(variable) = variable {
            return Some(format!("the variable `{variable}` is set"));
        }
        let home = self.env.get(OsStr::new("HOME"))?;
        let file = Path::new(home).join(file);
        Some(match file.exists() {
            true => format!("there is `{}`", file.display()),
            false => format!(
                "none of {} is set, and there is no `{}`",
                variables.join(", "),
                file.display()
            ),
        })
    }
}

/// The first line that has a digit in it.
fn version(text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.bytes().any(|byte| byte.is_ascii_digit()))?;
    let end = line.floor_char_boundary(100);
    Some(line[..end].trim().to_owned())
}

/// Whether a help text mentions a flag as a whole word.
fn mentions(help: &str, flag: &str) -> bool {
    let within = |c: char| c.is_ascii_alphanumeric() || c == '-';
    help.match_indices(flag).any(|(at, _)| {
        !help[..at].ends_with(within) && !help[at + flag.len()..].starts_with(within)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_is_a_whole_word() {
        let help = "  -p, --print   Print\n  --model <model>\n  --tools-all\n";
        let found =
            ["-p", "--print", "--model", "--tools", "--mod", "-m"].map(|it| mentions(help, it));
        assert_eq!(found, [true, true, true, false, false, false]);
    }

    #[test]
    fn a_version_is_a_line_with_a_number() {
        let text = "WARNING: proceeding\ncodex-cli 0.166.0\n";
        assert_eq!(version(text).as_deref(), Some("codex-cli 0.166.0"));
        assert_eq!(version("no idea"), None);
    }
}
