//! What a case has beyond its first question: turns of the user, and what tools say.

use std::path::Path;

use probity_core::{
    case::TestCase,
    conversation::{
        ConversationSpec, MOST_STEPS, MOST_USER_TURNS, ScriptedResult, SimulatedUser, Turn,
    },
    located::{Node, NodeValue},
    request::Part,
};

use super::{
    Fields, Findings,
    ask::parts_of,
    decode::{criteria, criteria_fields},
};

/// What may be said of a simulated user.
pub(crate) const USER_FIELDS: &[&str] = &["backend", "instructions", "stop", "max_turns"];
/// Most turns of a case.
const MOST_TURNS: usize = 200;

/// Reads what a case has beyond its first question. Files are looked for in `folder`.
pub(super) fn decode(fields: &mut Fields<'_, '_>, folder: &Path) -> ConversationSpec {
    let turns = fields.get("turns");
    let turns = turns.map(|node| turns_of(node, folder, fields.findings()));
    let results = fields.get("tool_results");
    let tool_results = results.map(|node| results_of(node, fields.findings()));
    let max_steps = fields.count("max_steps", 1..=u64::from(MOST_STEPS));
    let spec = ConversationSpec {
        turns: turns.unwrap_or_default(),
        tool_results,
        max_steps: max_steps.and_then(|it| u32::try_from(it).ok()),
        user: fields.get("user").and_then(|node| user_of(node, fields.findings())),
    };
    if max_steps.is_some() && spec.answered_turns() == 0 {
        let span = fields.span("max_steps");
        let message = "`max_steps` goes with `tool_results`, and there are none".to_owned();
        fields.findings().error("missing-field", &span, message);
    }
    spec
}

/// Who the user is, as a text, or as a table with when they stop.
fn user_of(node: &Node, findings: &mut Findings) -> Option<SimulatedUser> {
    if let Some(text) = node.as_str() {
        let said = said(text, node, findings).is_some();
        let user = SimulatedUser { instructions: text.to_owned(), ..SimulatedUser::default() };
        return said.then_some(user);
    }
    let mut fields = Fields::new(node, "`user`", USER_FIELDS, findings)?;
    let instructions = fields.required_text("instructions");
    let user = user_fields(&mut fields);
    let backend = fields.text("backend");
    Some(SimulatedUser { instructions: instructions?, backend, ..user })
}

/// What a table says of a simulated user, whoever plays it, beside its instructions.
pub(crate) fn user_fields(fields: &mut Fields<'_, '_>) -> SimulatedUser {
    let max_turns = fields.count("max_turns", 1..=u64::from(MOST_USER_TURNS));
    SimulatedUser {
        stop: fields.text("stop"),
        max_turns: max_turns.and_then(|it| u32::try_from(it).ok()),
        ..SimulatedUser::default()
    }
}

fn turns_of(node: &Node, folder: &Path, findings: &mut Findings) -> Vec<Turn> {
    let NodeValue::Array(items) = &node.value else {
        let message = format!("field `turns` must be a list of turns, not {}", node.kind());
        findings.error("wrong-type", &node.span, message);
        return Vec::new();
    };
    if items.is_empty() || items.len() > MOST_TURNS {
        let message = format!("field `turns` must have 1 to {MOST_TURNS} turns");
        findings.error("out-of-range", &node.span, message);
        return Vec::new();
    }
    // One that cannot be read leaves its place behind, so that those after it keep theirs.
    let turn = |it: &Node| turn_of(it, folder, findings).unwrap_or_default();
    items.iter().map(turn).collect()
}

/// What the user says, or a table with that and with what is asked of the answer.
fn turn_of(node: &Node, folder: &Path, findings: &mut Findings) -> Option<Turn> {
    if let Some(text) = node.as_str() {
        return Some(Turn { user: said(text, node, findings)?, ..Turn::default() });
    }
    let known: Vec<&str> = criteria_fields().chain(["user", "strict"]).collect();
    let mut fields = Fields::new(node, "a turn", &known, findings)?;
    let user = match fields.get("user") {
        None => {
            fields.required_text("user");
            return None;
        }
        Some(user) => match user.as_str() {
            Some(text) => said(text, user, fields.findings())?,
            None => {
                let parts = parts_of(user, "user", folder, fields.findings())?;
                match parts.len() == user.items().len() {
                    true => spoken(parts, user, fields.findings())?,
                    // One that cannot be read is reported.
                    false => parts,
                }
            }
        },
    };
    Some(Turn { user, criteria: criteria(&mut fields) })
}

fn said(text: &str, node: &Node, findings: &mut Findings) -> Option<Vec<Part>> {
    spoken(vec![Part::Text(text.into())], node, findings)
}

/// The parts of a message, if they say anything.
fn spoken(parts: Vec<Part>, node: &Node, findings: &mut Findings) -> Option<Vec<Part>> {
    let is_blank = |it: &Part| matches!(it, Part::Text(text) if text.trim().is_empty());
    if parts.iter().all(is_blank) {
        findings.error("blank-field", &node.span, "the user says nothing".to_owned());
        return None;
    }
    Some(parts)
}

/// A list of results, or a table of them by the names of tools.
fn results_of(node: &Node, findings: &mut Findings) -> Vec<ScriptedResult> {
    match &node.value {
        NodeValue::Object(entries) => entries
            .iter()
            .map(|entry| {
                let (name, content) = (entry.key.clone(), entry.node.to_json());
                ScriptedResult { name, arguments: None, content }
            })
            .collect(),
        NodeValue::Array(items) => {
            items.iter().filter_map(|item| result_of(item, findings)).collect()
        }
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) | NodeValue::String(_) => {
            let message = format!(
                "field `tool_results` must be a list of results, or a table by the names of tools, not {}",
                node.kind()
            );
            findings.error("wrong-type", &node.span, message);
            Vec::new()
        }
    }
}

/// Refuses results of tools that the case does not have. Where it has none, they may be those of a
/// runner.
pub(crate) fn check_results(case: &TestCase, node: &Node, findings: &mut Findings) {
    let (Some(results), Some(tools)) = (node.get("tool_results"), &case.ask.tools) else { return };
    let of_list = results.items().iter().filter_map(|it| Some((it.get("name")?.as_str()?, it)));
    let of_table = results.entries().iter().map(|it| (it.key.as_str(), &it.node));
    for (name, place) in of_list.chain(of_table) {
        if !tools.iter().any(|it| it.name == name) {
            let message = format!("there is no tool `{name}` in `tools`");
            findings.error("unknown-tool", &place.span, message);
        }
    }
}

fn result_of(node: &Node, findings: &mut Findings) -> Option<ScriptedResult> {
    const KNOWN: &[&str] = &["name", "arguments", "content"];
    let mut fields = Fields::new(node, "a result of a tool", KNOWN, findings)?;
    let name = fields.required_text("name");
    let arguments = fields.json("arguments");
    if arguments.as_ref().is_some_and(|it| !it.is_object()) {
        let span = fields.span("arguments");
        let message = "`arguments` of a result must be a table".to_owned();
        fields.findings().error("wrong-type", &span, message);
    }
    let content = fields.json("content");
    if content.is_none() {
        let message = "field `content` is missing".to_owned();
        fields.findings().error("missing-field", &node.span, message);
    }
    Some(ScriptedResult { name: name?, arguments, content: content? })
}
