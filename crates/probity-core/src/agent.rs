//! Agents: models that work on a task with tools of ours, in a world of their own.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{named_enum, request::Tool};

/// How often a model is asked where the runner does not say it.
pub const DEFAULT_STEPS: u32 = 20;
/// The most that a runner may allow.
pub const MOST_STEPS: u32 = 1000;

named_enum! {
    /// What a model may do in its world.
    pub enum AgentTool ("a tool of agents") {
        /// Run a shell command.
        Bash = "bash",
        /// Read a file.
        ReadFile = "read_file",
        /// Write a file.
        WriteFile = "write_file",
    }
}

named_enum! {
    /// How a model says what it wants to do.
    pub enum Protocol ("a protocol of agents") {
        /// By the tools of the vendor's API.
        Native = "native",
        /// By fenced blocks in its text.
        Text = "text",
    }
}

/// How a runner lets a model work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentSpec {
    /// How often the model is asked, at most.
    pub max_steps: u32,
    /// Seconds that its answers and its commands may take together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_seconds: Option<u64>,
    /// Tokens of all its questions and answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// What it may do.
    pub tools: Vec<AgentTool>,
    /// How it says so.
    pub protocol: Protocol,
}

impl Default for AgentSpec {
    fn default() -> Self {
        Self {
            max_steps: DEFAULT_STEPS,
            max_seconds: None,
            max_tokens: None,
            tools: AgentTool::ALL.to_vec(),
            protocol: Protocol::Native,
        }
    }
}

impl AgentSpec {
    /// Its tools as a model is told of them.
    pub fn definitions(&self) -> Arc<[Tool]> {
        self.tools.iter().map(|it| it.definition()).collect()
    }
}

impl AgentTool {
    /// The arguments that it takes, all of them texts: the name of each, and what it is.
    pub const fn arguments(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Bash => &[("command", "What bash reads")],
            Self::ReadFile => &[("path", "The file")],
            Self::WriteFile => &[("path", "The file"), ("content", "All that it is to hold")],
        }
    }

    /// What it is for.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Bash => {
                "Runs a shell command and returns its exit code and its output. Files stay as the \
                 command leaves them. Each command has a shell of its own, which starts in the same \
                 directory: `cd` and variables do not last. Nothing can be typed in, there is no \
                 network, and processes end with their command."
            }
            Self::ReadFile => "Returns the content of a text file.",
            Self::WriteFile => {
                "Writes a text file, and replaces it if it is there. Directories above it are made."
            }
        }
    }

    fn definition(self) -> Tool {
        let arguments = self.arguments();
        let property = |(name, about): &(&str, &str)| {
            ((*name).to_owned(), json!({ "type": "string", "description": about }))
        };
        let properties: serde_json::Map<_, _> = arguments.iter().map(property).collect();
        let required: Vec<&str> = arguments.iter().map(|it| it.0).collect();
        Tool {
            name: self.as_str().to_owned(),
            description: Some(self.description().to_owned()),
            parameters: json!({
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": false,
            }),
        }
    }
}
