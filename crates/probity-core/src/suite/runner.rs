//! Runners: what is evaluated.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::backend::{BackendConfig, is_plain};
use crate::{
    case::{Fields, Findings, did_you_mean},
    located::{Node, NodeValue},
    settings::Budget,
    template,
};

/// The kinds of runners.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunnerKind {
    /// Any prompt, any expectation.
    Respond,
    /// A request in words, a shell command as the answer.
    Command,
    /// Is the right skill chosen from an index?
    Activation,
    /// Are look-alike skills told apart?
    Confusion,
    /// Is the answer better with the skill than without?
    Effectiveness,
    /// Does the size of a skill pay off?
    SizeImpact,
}

impl RunnerKind {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Respond,
        Self::Command,
        Self::Activation,
        Self::Confusion,
        Self::Effectiveness,
        Self::SizeImpact,
    ];

    /// The name used in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Respond => "respond",
            Self::Command => "command",
            Self::Activation => "activation",
            Self::Confusion => "confusion",
            Self::Effectiveness => "effectiveness",
            Self::SizeImpact => "size_impact",
        }
    }
}

/// A case is not asked more often.
const MOST_REPEATS: u64 = 10_000;

/// One runner as the file describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct RunnerConfig {
    /// Unique within the suite.
    pub name: String,
    /// What it does with a case.
    pub kind: RunnerKind,
    /// The files of its dataset, as written.
    pub dataset: Vec<String>,
    /// The names of its backends.
    pub backends: Vec<String>,
    /// Instructions for cases that bring none.
    pub system: Option<String>,
    /// The prompt, a template over the fields of the case.
    pub prompt: Option<String>,
    /// How often each case is asked.
    pub repeat: u32,
    /// What this runner may use.
    pub budget: Budget,
    /// When it has passed.
    pub gates: Option<Value>,
}

pub(super) fn decode(
    node: &Node,
    backends: &[BackendConfig],
    findings: &mut Findings,
) -> Vec<RunnerConfig> {
    let NodeValue::Array(items) = &node.value else {
        let message = format!("`runners` must be a list of tables, not {}", node.kind());
        let help = "begin each runner with [[runners]]".to_owned();
        findings.error_with_help("wrong-type", &node.span, message, help);
        return Vec::new();
    };
    let mut runners: Vec<RunnerConfig> = Vec::with_capacity(items.len());
    for item in items {
        let Some(runner) = decode_runner(item, backends, findings) else { continue };
        if runners.iter().any(|earlier| earlier.name == runner.name) {
            let message = format!("runner `{}` is there twice", runner.name);
            findings.error("duplicate-runner", &item.span, message);
        }
        runners.push(runner);
    }
    runners
}

fn decode_runner(
    node: &Node,
    backends: &[BackendConfig],
    findings: &mut Findings,
) -> Option<RunnerConfig> {
    const KNOWN: &[&str] =
        &["name", "kind", "dataset", "backends", "system", "prompt", "repeat", "budget", "gates"];
    let mut fields = Fields::new(node, "a runner", KNOWN, findings)?;
    let kinds = RunnerKind::ALL.map(RunnerKind::as_str);
    let kind = match fields.get("kind") {
        None => Some(RunnerKind::Respond),
        Some(_) => fields.one_of("kind", "kind of runner", &kinds, |name| {
            RunnerKind::ALL.into_iter().find(|it| it.as_str() == name)
        }),
    };
    let name = fields.required_text("name");
    if name.as_deref().is_some_and(|name| !is_plain(name)) {
        let span = fields.span("name");
        let message = "the name of a runner must not have control characters".to_owned();
        fields.findings().error("bad-name", &span, message);
    }
    if fields.get("dataset").is_none() {
        let message = "field `dataset` is missing".to_owned();
        fields.findings().error("missing-field", &node.span, message);
    }
    let runner = RunnerConfig {
        name: name?,
        kind: kind?,
        dataset: fields.texts("dataset"),
        backends: decode_backends(node, backends, &mut fields),
        system: fields.text("system"),
        prompt: fields.text("prompt"),
        repeat: fields
            .count("repeat", 1..=MOST_REPEATS)
            .and_then(|repeat| u32::try_from(repeat).ok())
            .unwrap_or(1),
        budget: decode_budget(&mut fields),
        gates: fields.json("gates"),
    };
    if let Some(prompt) = &runner.prompt
        && let Err(error) = template::undefined_variables(prompt, |_| true)
    {
        let span = fields.span("prompt");
        fields.findings().error("bad-template", &span, format!("`prompt`: {error}"));
    }
    Some(runner)
}

/// The backends that a runner names; all of them if it names none.
fn decode_backends(
    node: &Node,
    backends: &[BackendConfig],
    fields: &mut Fields<'_, '_>,
) -> Vec<String> {
    let all = || backends.iter().map(|backend| backend.name.clone()).collect::<Vec<_>>();
    let named = fields.texts("backends");
    if fields.get("backends").is_none() {
        return all();
    }
    if named.is_empty() {
        let message = "a runner needs a backend".to_owned();
        fields.findings().error("missing-field", &node.span, message);
    }
    let known: Vec<&str> = backends.iter().map(|backend| backend.name.as_str()).collect();
    let span = fields.span("backends");
    for name in named.iter().filter(|name| !known.contains(&name.as_str())) {
        let message = format!("there is no backend `{name}`");
        let help = did_you_mean(name, &known)
            .unwrap_or_else(|| format!("describe it under [backends.{name}]"));
        fields.findings().error_with_help("unknown-backend", &span, message, help);
    }
    named
}

fn decode_budget(fields: &mut Fields<'_, '_>) -> Budget {
    const KNOWN: &[&str] = &["max_cost_usd", "max_calls", "max_tokens"];
    let Some(node) = fields.get("budget") else { return Budget::default() };
    let Some(mut inner) = Fields::new(node, "`budget`", KNOWN, fields.findings()) else {
        return Budget::default();
    };
    let max_cost_usd = inner.number("max_cost_usd").filter(|cost| *cost != 0.0);
    if max_cost_usd.is_some_and(|cost| cost < 0.0) {
        let span = inner.span("max_cost_usd");
        let message = "`max_cost_usd` must not be negative".to_owned();
        inner.findings().error("wrong-type", &span, message);
    }
    Budget {
        max_cost_usd,
        max_calls: inner.count("max_calls", 0..=u64::MAX).filter(|count| *count > 0),
        max_tokens: inner.count("max_tokens", 0..=u64::MAX).filter(|count| *count > 0),
    }
}
