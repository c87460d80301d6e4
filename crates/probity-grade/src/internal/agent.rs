//! What agents are told, and what they say: pure texts, without a world.

use std::{borrow::Cow, fmt::Write as _, sync::LazyLock};

use probity_core::{
    agent::{AgentSpec, AgentTool, Protocol},
    request::ToolCall,
};
use probity_text::fence::{Fence, fences};
use serde::Deserialize;
use serde_json::{Value, json};

/// Bytes of each stream of a command that a model is shown.
pub const MOST_SHOWN: usize = 10_000;
/// Paths that a model is told of.
const MOST_PATHS: usize = 20;

static WORDS: LazyLock<Words> = LazyLock::new(|| table!("agent"));

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Words {
    system: String,
    system_text: String,
    form: String,
    bash: String,
    read_file: String,
    write_file: String,
    neither: String,
    open: String,
}

/// The instructions of an agent, where a runner has `own` ones with those. What the text protocol looks like is said in any case.
pub fn instructions(spec: &AgentSpec, directory: &str, own: Option<&str>) -> String {
    let usual = |text: &str| text.trim_start().replace("{directory}", directory);
    match spec.protocol {
        Protocol::Native => own.map_or_else(|| usual(&WORDS.system), ToOwned::to_owned),
        Protocol::Text => {
            let first = own.map_or_else(|| usual(&WORDS.system_text), ToOwned::to_owned);
            format!("{first}\n\n{}", form(spec))
        }
    }
}

fn form(spec: &AgentSpec) -> String {
    let of = |tool: &AgentTool| match tool {
        AgentTool::Bash => &*WORDS.bash,
        AgentTool::ReadFile => &*WORDS.read_file,
        AgentTool::WriteFile => &*WORDS.write_file,
    };
    let tools: Vec<&str> = spec.tools.iter().map(of).collect();
    WORDS.form.trim_start().replace("{tools}", &tools.join("\n"))
}

/// What an agent does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// It runs a command.
    Bash {
        /// What bash reads.
        command: String,
    },
    /// It reads a file.
    Read {
        /// The file.
        path: String,
    },
    /// It writes a file.
    Write {
        /// The file.
        path: String,
        /// All that it is to hold.
        content: String,
    },
}

impl Action {
    /// What a call asks for, or what is wrong with the call in the words that the model is told.
    pub fn of(call: &ToolCall, tools: &[AgentTool]) -> Result<Self, String> {
        let Some(tool) = tools.iter().find(|it| it.as_str() == call.name) else {
            let names: Vec<&str> = tools.iter().map(|it| it.as_str()).collect();
            return Err(format!(
                "error: there is no tool `{}`; there are {}",
                call.name,
                names.join(", ")
            ));
        };
        let argument = |name: &str| match call.arguments.get(name) {
            Some(Value::String(text)) if !text.contains('\0') => Ok(text.clone()),
            Some(Value::String(_)) => Err(format!("error: `{name}` has a NUL in it")),
            Some(other) => Err(format!("error: `{name}` must be a string, not {}", kind_of(other))),
            None if call.arguments.is_object() => {
                Err(format!("error: the argument `{name}` is missing"))
            }
            None => Err("error: the arguments are no JSON object".to_owned()),
        };
        let path = || match argument("path")? {
            path if path.trim().is_empty() => Err("error: `path` is blank".to_owned()),
            path => Ok(path),
        };
        Ok(match tool {
            AgentTool::Bash => Self::Bash { command: argument("command")? },
            AgentTool::ReadFile => Self::Read { path: path()? },
            AgentTool::WriteFile => Self::Write { path: path()?, content: argument("content")? },
        })
    }
}

const fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// What a reply in the text protocol comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// It wants this done, as calls of tools.
    Acts(Vec<ToolCall>),
    /// It is done, and says this.
    Answers(String),
    /// Neither; the model is told this.
    Malformed(&'static str),
}

/// Reads a reply in the text protocol. What is to be done comes before an answer.
pub fn read(text: &str, tools: &[AgentTool]) -> Said {
    let mut calls = Vec::new();
    let mut is_open = false;
    let mut prose = String::new();
    let mut from = 0;
    for fence in fences(text) {
        let end = fence.content.end;
        if let Some(call) = call_of(text, &fence, tools) {
            calls.push(call);
            is_open = end == text.len();
        }
        prose.push_str(&text[from..fence.content.start]);
        prose.push('\n');
        from = end;
    }
    prose.push_str(&text[from..]);
    match (calls.is_empty(), is_open) {
        (false, false) => Said::Acts(calls),
        (false, true) => Said::Malformed(&WORDS.open),
        (true, _) => match answer_in(&prose) {
            // What stands in blocks may belong to the answer.
            Some(_) => Said::Answers(answer_in(text).unwrap_or_default()),
            None => Said::Malformed(&WORDS.neither),
        },
    }
}

/// The call that a block stands for; none if it is about something else.
fn call_of(text: &str, fence: &Fence<'_>, tools: &[AgentTool]) -> Option<ToolCall> {
    const SHELLS: [&str; 4] = ["bash", "sh", "shell", "console"];
    let tag = fence.tag.to_ascii_lowercase();
    let tool = match tag.as_str() {
        tag if SHELLS.contains(&tag) => AgentTool::Bash,
        tag => AgentTool::ALL.into_iter().find(|it| it.as_str() == tag)?,
    };
    let inside = &text[fence.content.clone()];
    let (first, rest) = inside.split_once('\n').unwrap_or((inside, ""));
    let path = first.trim();
    let arguments = match tool {
        AgentTool::Bash => json!({ "command": inside.trim_matches(['\n', '\r', ' ']) }),
        AgentTool::ReadFile if path.is_empty() => json!({ "path": rest.trim() }),
        AgentTool::ReadFile => json!({ "path": path }),
        AgentTool::WriteFile => json!({ "path": path, "content": rest }),
    };
    // A tool that this agent does not have is told of when it is called.
    let name = tools.iter().find(|it| **it == tool).map_or(tool.as_str(), |it| it.as_str());
    Some(ToolCall::new(None, name.to_owned(), arguments))
}

/// What stands behind the mark of an answer, to the end.
fn answer_in(text: &str) -> Option<String> {
    const MARK: &str = "answer:";
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let said = line.trim_start_matches(['*', '#', '>', ' ', '\t']);
        if said.get(..MARK.len()).is_some_and(|it| it.eq_ignore_ascii_case(MARK)) {
            let start = at + (line.len() - said.len()) + MARK.len();
            return Some(text[start..].trim_matches(['*', ' ', '\t', '\n', '\r']).to_owned());
        }
        at += line.len();
    }
    None
}

/// What came of a command, as far as it is told.
#[derive(Clone, Copy, Debug)]
pub struct Told<'a> {
    /// How it ended, such as `exit code 0`.
    pub end: &'a str,
    /// What it wrote, and how many bytes that were.
    pub stdout: (&'a [u8], u64),
    /// What it complained of, and how many bytes that were.
    pub stderr: (&'a [u8], u64),
    /// What is different in the world since the command before, each with a sign before it.
    pub changed: &'a [String],
    /// What it was not let do.
    pub refused: &'a [String],
}

impl Told<'_> {
    /// The words that the model is told.
    pub fn text(&self) -> String {
        let mut text = self.end.to_owned();
        for (name, (bytes, total)) in [("stdout", self.stdout), ("stderr", self.stderr)] {
            if total == 0 {
                continue;
            }
            let (shown, cut) = shown(bytes, total);
            let _ = write!(text, "\n{name}{cut}:\n{}", shown.trim_end_matches('\n'));
        }
        if !self.changed.is_empty() {
            let first = &self.changed[..self.changed.len().min(MOST_PATHS)];
            let _ = write!(text, "\nchanged: {}", first.join(", "));
            let more = self.changed.len() - first.len();
            if more > 0 {
                let _ = write!(text, " and {more} more");
            }
        }
        if !self.refused.is_empty() {
            let _ = write!(text, "\nnot allowed here: {}", self.refused.join(", "));
        }
        text
    }

    /// The words that the model is told of a file that it reads.
    pub fn content(&self) -> String {
        let (bytes, total) = self.stdout;
        let (shown, cut) = shown(bytes, total);
        match cut.is_empty() {
            true => shown.into_owned(),
            false => format!("content{cut}:\n{shown}"),
        }
    }
}

/// The beginning of a stream, and what of it is missing.
fn shown(bytes: &[u8], total: u64) -> (Cow<'_, str>, String) {
    let mut end = bytes.len().min(MOST_SHOWN);
    // Not in the middle of a character.
    while end > 0 && end < bytes.len() && (bytes[end] & 0xc0) == 0x80 {
        end -= 1;
    }
    let text = String::from_utf8_lossy(&bytes[..end]);
    let cut = match end as u64 == total {
        true => String::new(),
        false => format!(" (cut: the first {end} of {total} bytes)"),
    };
    (text, cut)
}

#[cfg(test)]
mod tests;
