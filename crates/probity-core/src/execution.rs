//! What the command or the script in a reply has to do in a sandbox, and what it did.

mod effect;
mod executed;
mod shown;

use std::{collections::BTreeMap, fmt, time::Duration};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

pub use effect::{EffectCall, EffectFound, EffectVerdict, ExecutionUse, Likeness, SandboxNeed};
pub use executed::{
    Ended, Entry, Executed, ExecutedIn, PathChange, PathFound, PathKind, PathState, Stream,
};
pub use shown::{EXECUTION_ROLE, LEFT_ROLE, effect_role};

use crate::{criteria::Assertion, named_enum};

/// The world of a case that names none.
pub const USUAL_WORLD: &str = "empty";
/// The file with the code of the reply where a case does not name it.
pub const ANSWER_FILE: &str = "answer";
/// How long a command may take where the case does not say it.
pub const USUAL_TIMEOUT: Timeout = Timeout(5_000);

/// What the command or the script in a reply has to do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExecutionCriteria {
    /// Where it is executed, each time anew; none: in the usual world.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub worlds: Vec<WorldRef>,
    /// Texts of files that are put into each world, by their paths.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// A shell text that runs in each world before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup: Option<String>,
    /// The file that the code of the reply is put into.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The shell text that is executed instead of the command in the reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// What it reads from standard input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// How long it may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Timeout>,
    /// How it has to end; none: with 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<ExitCode>,
    /// What it has to write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdout: Option<TextCriteria>,
    /// What it has to complain of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr: Option<TextCriteria>,
    /// What has to be there afterwards, by path.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub paths: BTreeMap<String, PathCriteria>,
    /// What may not be different afterwards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unchanged: Option<Unchanged>,
    /// Whether the world is judged that the program of the backend leaves behind, and not its reply.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub left_behind: bool,
}

impl ExecutionCriteria {
    /// The worlds that it is executed in.
    pub fn worlds(&self) -> Vec<WorldRef> {
        match self.worlds.is_empty() {
            true => vec![WorldRef::Named(USUAL_WORLD.to_owned())],
            false => self.worlds.clone(),
        }
    }

    /// The exit codes that are right; none: any.
    pub fn exit_codes(&self) -> Option<Vec<u8>> {
        match &self.exit_code {
            None => Some(vec![0]),
            Some(ExitCode::One(code)) => Some(vec![*code]),
            Some(ExitCode::OneOf(codes)) => Some(codes.clone()),
            Some(ExitCode::Named(AnyExit::Any)) => None,
        }
    }

    /// What is executed after an agent has worked, in the world that it leaves behind; `usual` is the world of a case that
    /// names none.
    pub fn after_work(&self, usual: &WorldRef) -> ExecutionCall {
        let world = self.worlds.first().unwrap_or(usual);
        self.afterwards(vec![world.clone()])
    }

    /// What is executed in the world that the program of a backend leaves behind, if that is judged. Without a world of the
    /// case it is that of the backend.
    pub fn after_program(&self) -> Option<ExecutionCall> {
        self.left_behind.then(|| self.afterwards(self.worlds.clone()))
    }

    fn afterwards(&self, worlds: Vec<WorldRef>) -> ExecutionCall {
        ExecutionCall {
            worlds,
            files: self.files.clone(),
            setup: self.setup.clone(),
            answer: None,
            command: self.run.clone().unwrap_or_else(|| "true".to_owned()),
            stdin: self.stdin.clone(),
            timeout: self.timeout.unwrap_or(USUAL_TIMEOUT),
            looks: self.looks(),
        }
    }

    /// The paths that have to be looked at.
    pub fn looks(&self) -> Vec<String> {
        let kept = match &self.unchanged {
            Some(Unchanged::These(paths)) => paths.as_slice(),
            Some(Unchanged::Others(_)) | None => &[],
        };
        let others = kept.iter().filter(|it| !self.paths.contains_key(*it));
        self.paths.keys().chain(others).cloned().collect()
    }
}

/// A world: one that ships, or a file of the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum WorldRef {
    /// One that ships.
    Named(String),
    /// A file as it was read.
    File {
        /// Its name, as the case writes it.
        file: String,
        /// What it holds.
        text: String,
    },
}

impl WorldRef {
    /// What the case calls it.
    pub fn name(&self) -> &str {
        match self {
            Self::Named(name) => name,
            Self::File { file, .. } => file,
        }
    }
}

/// How long a command may take, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeout(pub u64);

impl Timeout {
    /// As a duration.
    pub const fn duration(self) -> Duration {
        Duration::from_millis(self.0)
    }
}

impl fmt::Display for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ms", self.0)
    }
}

impl Serialize for Timeout {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timeout {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let millis = text.strip_suffix("ms").and_then(|it| it.parse().ok());
        millis.map(Self).ok_or_else(|| D::Error::custom(format!("`{text}` is no time limit")))
    }
}

/// The exit codes that are right.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ExitCode {
    /// By a word.
    Named(AnyExit),
    /// This one.
    One(u8),
    /// Any of these.
    OneOf(Vec<u8>),
}

named_enum! {
    /// Exit codes that need no number.
    pub enum AnyExit ("an exit code") {
        /// Any: which one does not matter.
        Any = "any",
    }
}

/// What has to hold of an output or of the content of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TextCriteria {
    /// It is this text, line ends at its end aside.
    Text(String),
    /// All of these hold.
    Assert(Vec<Assertion>),
}

/// What has to be at a path afterwards.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PathCriteria {
    /// Whether there is something, and whether that is new.
    pub state: PathState,
    /// What a file there holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<TextCriteria>,
    /// Its permission bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<FileMode>,
}

/// Permission bits, which are written in octal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileMode(pub u32);

impl FileMode {
    /// Reads octal digits.
    pub fn parse(digits: &str) -> Option<Self> {
        let is_octal =
            (1..=4).contains(&digits.len()) && digits.bytes().all(|it| it.is_ascii_digit());
        u32::from_str_radix(digits, 8).ok().filter(|_| is_octal).map(Self)
    }
}

impl fmt::Display for FileMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:03o}", self.0)
    }
}

impl Serialize for FileMode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FileMode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom(format!("`{text}` is no mode")))
    }
}

/// What may not be different afterwards.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Unchanged {
    /// Everything but the paths that the case names, if it is true.
    Others(bool),
    /// These paths, and what is below them.
    These(Vec<String>),
}

/// An execution that a case asks for: all that its result depends on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExecutionCall {
    /// The worlds.
    pub worlds: Vec<WorldRef>,
    /// Texts of files that are put into each, by their paths.
    pub files: BTreeMap<String, String>,
    /// A shell text that runs in each before.
    pub setup: Option<String>,
    /// The file with the code of the reply.
    pub answer: Option<AnswerFile>,
    /// The shell text that is executed.
    pub command: String,
    /// What it reads.
    pub stdin: Option<String>,
    /// How long it may take.
    pub timeout: Timeout,
    /// The paths to look at afterwards.
    #[serde(skip)]
    pub looks: Vec<String>,
}

/// The code of a reply as a file of a world.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerFile {
    /// Where.
    pub path: String,
    /// What it holds.
    pub text: String,
}

impl ExecutionCall {
    /// What tells it from other executions, in hexadecimal digits.
    pub fn digest(&self) -> String {
        // Its keys are texts, so this cannot fail.
        let text = serde_json::to_string(self).unwrap_or_default();
        blake3::hash(text.as_bytes()).to_hex()[..32].to_owned()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::case::TestCase;

    #[test]
    fn what_is_asked_of_an_execution_is_read_back_as_it_was_written() {
        let written = json!({
            "id": "a",
            "prompt": "p",
            "execution": {
                "worlds": ["texts", { "file": "w.toml", "text": "name = \"w\"" }],
                "files": { "a": "b" },
                "timeout": "1500ms",
                "exit_code": [0, 1],
                "stdout": [{ "type": "number", "value": 1.5, "tolerance": 0.1 }],
                "stderr": "none",
                "paths": { "x": { "state": "created", "mode": "4755" }, "y": { "state": "absent" } },
                "unchanged": ["z"],
            },
        });
        let case = TestCase::from_json(&written.to_string()).unwrap();
        let again: serde_json::Value = serde_json::from_str(&case.to_json()).unwrap();
        assert_eq!(again, written);
        let execution = case.execution.unwrap();
        assert_eq!(execution.looks(), ["x", "y", "z"]);
        assert_eq!(execution.exit_codes(), Some(vec![0, 1]));
        assert_eq!(ExecutionCriteria::default().exit_codes(), Some(vec![0]));
    }

    #[test]
    fn modes_are_octal() {
        assert_eq!(FileMode::parse("0644"), Some(FileMode(0o644)));
        assert_eq!(FileMode(0o4755).to_string(), "4755");
        assert_eq!(FileMode::parse("0"), Some(FileMode(0)));
        for wrong in ["", "8", "rwx", "-644", "06440", "689"] {
            assert_eq!(FileMode::parse(wrong), None, "{wrong}");
        }
    }
}
