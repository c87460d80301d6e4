//! How a runner lets a model work with tools.

use std::path::Path;

use probity_core::{
    agent::{AgentSpec, AgentTool, DEFAULT_STEPS, MOST_STEPS, Protocol},
    execution::{USUAL_WORLD, WorldRef},
    kind::RunnerKind,
};

use crate::case::{Fields, did_you_mean, world_of};

/// A day.
const MOST_SECONDS: u64 = 86_400;

/// How a runner lets a model work, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentConfig {
    /// What the model may do, and how much of it.
    pub spec: AgentSpec,
    /// The world of cases that name none.
    pub world: WorldRef,
}

/// None if a runner of this kind has no tools of ours.
pub(super) fn decode(
    kind: RunnerKind,
    fields: &mut Fields<'_, '_>,
    folder: &Path,
) -> Option<AgentConfig> {
    if !kind.spec().acts {
        return None;
    }
    let steps = fields.count("max_steps", 1..=u64::from(MOST_STEPS));
    let protocol = fields.get("protocol").and_then(|_| {
        fields.one_of("protocol", "protocol", &Protocol::ALL.map(Protocol::as_str), |name| {
            Protocol::ALL.into_iter().find(|it| it.as_str() == name)
        })
    });
    let spec = AgentSpec {
        max_steps: steps.and_then(|it| u32::try_from(it).ok()).unwrap_or(DEFAULT_STEPS),
        max_seconds: fields.count("max_seconds", 1..=MOST_SECONDS),
        max_tokens: fields.count("max_tokens", 1..=u64::MAX),
        tools: decode_tools(fields),
        protocol: protocol.unwrap_or(Protocol::Native),
    };
    let world = fields.get("world").and_then(|node| world_of(node, folder, fields.findings()));
    let world = world.unwrap_or_else(|| WorldRef::Named(USUAL_WORLD.to_owned()));
    Some(AgentConfig { spec, world })
}

/// All of them where none is named.
fn decode_tools(fields: &mut Fields<'_, '_>) -> Vec<AgentTool> {
    if fields.get("tools").is_none() {
        return AgentTool::ALL.to_vec();
    }
    let span = fields.span("tools");
    let mut tools = Vec::new();
    for name in fields.texts("tools") {
        match AgentTool::ALL.into_iter().find(|it| it.as_str() == name) {
            Some(tool) if tools.contains(&tool) => {
                let message = format!("`{name}` is there twice");
                fields.findings().error("bad-value", &span, message);
            }
            Some(tool) => tools.push(tool),
            None => {
                let names = AgentTool::ALL.map(AgentTool::as_str);
                let help = did_you_mean(&name, &names)
                    .unwrap_or_else(|| format!("it is one of {}", names.join(", ")));
                let message = format!("there is no tool `{name}`");
                fields.findings().error_with_help("unknown-value", &span, message, help);
            }
        }
    }
    if tools.is_empty() {
        let message = "an agent without `tools` can do nothing".to_owned();
        fields.findings().error("bad-value", &span, message);
    }
    tools
}
