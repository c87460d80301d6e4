//! Scorers of one's own: programs that stay up while a run goes on.

use std::time::Duration;

use super::{WrittenAt, backend::decode_timeout, runner::Surroundings};
use crate::case::{Fields, Findings};
use probity_core::located::Node;

/// Most processes of one scorer.
const MOST_WORKERS: u64 = 256;

/// A scorer as the file describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScorerConfig {
    /// What assertions call it.
    pub name: String,
    /// What is started.
    pub start: Start,
    /// How many of it run at the same time.
    pub workers: usize,
    /// How long it may take for one reply, if not as long as any scorer.
    pub timeout: Option<Duration>,
    /// Variables that it sees beside the usual ones.
    pub env: Vec<String>,
    /// Where it stands in the suite.
    pub at: WrittenAt,
}

/// What a scorer is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// A program that speaks the protocol, with its arguments.
    Command(Vec<String>),
    /// A file with a Python function.
    Python(String),
    /// A file that exports a JavaScript function, for Node.
    Node(String),
}

pub(super) fn decode(
    node: &Node,
    surroundings: &Surroundings<'_>,
    findings: &mut Findings,
) -> Vec<ScorerConfig> {
    let Some(_) = Fields::open(node, "`scorers`", findings) else { return Vec::new() };
    let one = |entry: &probity_core::located::Entry, findings: &mut Findings| {
        let at = surroundings.place(&entry.node, format!("scorer `{}`", entry.key));
        decode_scorer(&entry.key, &entry.node, at, findings)
    };
    node.entries().iter().filter_map(|entry| one(entry, findings)).collect()
}

fn decode_scorer(
    name: &str,
    node: &Node,
    at: WrittenAt,
    findings: &mut Findings,
) -> Option<ScorerConfig> {
    const KNOWN: &[&str] = &["command", "python", "node", "workers", "timeout", "env"];
    let mut fields = Fields::new(node, "a scorer", KNOWN, findings)?;
    let command = Some(fields.texts("command")).filter(|it| !it.is_empty()).map(Start::Command);
    let python = fields.text("python").map(Start::Python);
    let node_file = fields.text("node").map(Start::Node);
    let mut starts = [command, python, node_file].into_iter().flatten();
    let (start, second) = (starts.next(), starts.next());
    if start.is_none() || second.is_some() {
        let message = format!("scorer `{name}` needs one of `command`, `python` and `node`");
        let help = "`command` is a program that speaks the protocol of docs/scorers.md; `python` \
                    and `node` are files with a function"
            .to_owned();
        fields.findings().error_with_help("missing-field", &node.span, message, help);
    }
    Some(ScorerConfig {
        name: name.to_owned(),
        start: start?,
        workers: usize::try_from(fields.count("workers", 1..=MOST_WORKERS).unwrap_or(1)).ok()?,
        timeout: decode_timeout(&mut fields),
        env: fields.texts("env"),
        at,
    })
}
