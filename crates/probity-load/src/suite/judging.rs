//! How replies are judged: policies, refusals, JSON, errors, shell commands.

use std::path::Path;

use crate::{
    bounded,
    case::{Fields, Findings},
};
use probity_core::{
    criteria::JsonLevel,
    execution::{ExecutionUse, SandboxNeed},
    judging::{GradingConfig, PolicyConfig, PolicySeverity, RefusalConfig, ShellConfig},
    located::{Node, NodeValue},
};
use serde_json::Value;

pub(super) fn decode_policies(node: &Node, findings: &mut Findings) -> Vec<PolicyConfig> {
    const KNOWN: &[&str] = &["name", "severity", "words", "substrings", "regexes", "builtin"];
    let NodeValue::Array(items) = &node.value else {
        let message = format!("`policies` must be a list of tables, not {}", node.kind());
        findings.error("wrong-type", &node.span, message);
        return Vec::new();
    };
    let mut policies: Vec<PolicyConfig> = Vec::with_capacity(items.len());
    for item in items {
        let Some(mut fields) = Fields::new(item, "a policy", KNOWN, findings) else { continue };
        let severities = PolicySeverity::ALL.map(PolicySeverity::as_str);
        let policy = PolicyConfig {
            name: fields.required_text("name").unwrap_or_default(),
            severity: fields
                .one_of("severity", "severity", &severities, |name| {
                    PolicySeverity::ALL.into_iter().find(|it| it.as_str() == name)
                })
                .unwrap_or_default(),
            words: fields.texts("words"),
            substrings: fields.texts("substrings"),
            regexes: fields.texts("regexes"),
            builtin: fields.text("builtin"),
        };
        let empty = policy.words.is_empty()
            && policy.substrings.is_empty()
            && policy.regexes.is_empty()
            && policy.builtin.is_none();
        if empty {
            let message = format!("policy `{}` has no rules", policy.name);
            let help = "give it `words`, `substrings`, `regexes` or `builtin`".to_owned();
            findings.error_with_help("empty-policy", &item.span, message, help);
        } else if policies.iter().any(|earlier| earlier.name == policy.name) {
            let message = format!("policy `{}` is there twice", policy.name);
            findings.error("duplicate-policy", &item.span, message);
        }
        policies.push(policy);
    }
    policies
}

pub(super) fn decode_refusal(node: &Node, findings: &mut Findings) -> RefusalConfig {
    const KNOWN: &[&str] = &["phrases", "allow", "replace", "anywhere", "detect"];
    let Some(mut fields) = Fields::new(node, "`refusal`", KNOWN, findings) else {
        return RefusalConfig::default();
    };
    RefusalConfig {
        phrases: fields.texts("phrases"),
        allow: fields.texts("allow"),
        replace: fields.boolean("replace").unwrap_or_default(),
        anywhere: fields.boolean("anywhere").unwrap_or_default(),
        is_off: fields.boolean("detect") == Some(false),
    }
}

pub(super) fn decode_json_level(node: &Node, findings: &mut Findings) -> Option<JsonLevel> {
    let mut fields = Fields::new(node, "`json`", &["level"], findings)?;
    let names = JsonLevel::ALL.map(JsonLevel::as_str);
    fields.one_of("level", "JSON level", &names, |name| {
        JsonLevel::ALL.into_iter().find(|it| it.as_str() == name)
    })
}

pub(super) fn decode_shell(node: &Node, findings: &mut Findings) -> ShellConfig {
    const KNOWN: &[&str] = &["level", "posix_edition", "rule", "allow"];
    let Some(mut fields) = Fields::new(node, "`shell`", KNOWN, findings) else {
        return ShellConfig::default();
    };
    ShellConfig {
        level: fields.text("level"),
        posix_edition: fields.digits("posix_edition").map(ToOwned::to_owned),
        rules: tables(&mut fields, "rule"),
        allow: tables(&mut fields, "allow"),
    }
}

pub(super) fn decode_grading(node: &Node, findings: &mut Findings) -> GradingConfig {
    const KNOWN: &[&str] = &["execution", "sandbox"];
    let Some(mut fields) = Fields::new(node, "`grading`", KNOWN, findings) else {
        return GradingConfig::default();
    };
    let (uses, needs) =
        (ExecutionUse::ALL.map(ExecutionUse::as_str), SandboxNeed::ALL.map(SandboxNeed::as_str));
    let execution = fields.one_of("execution", "use of execution", &uses, |name| name.parse().ok());
    let sandbox = fields.one_of("sandbox", "need of a sandbox", &needs, |name| name.parse().ok());
    GradingConfig { execution: execution.unwrap_or_default(), sandbox: sandbox.unwrap_or_default() }
}

/// A list of tables as it stands.
fn tables(fields: &mut Fields<'_, '_>, key: &str) -> Vec<Value> {
    let Some(node) = fields.get(key) else { return Vec::new() };
    match &node.value {
        NodeValue::Array(items) => items.iter().map(Node::to_json).collect(),
        NodeValue::Null
        | NodeValue::Bool(_)
        | NodeValue::Number(_)
        | NodeValue::String(_)
        | NodeValue::Object(_) => {
            let message = format!("`{key}` must be a list of tables, not {}", node.kind());
            fields.findings().error("wrong-type", &node.span, message);
            Vec::new()
        }
    }
}

pub(super) fn read_error_rules(
    node: &Node,
    folder: &Path,
    findings: &mut Findings,
) -> Option<String> {
    let mut fields = Fields::new(node, "`errors`", &["rules"], findings)?;
    let name = fields.text("rules")?;
    let span = fields.span("rules");
    match bounded::read_text(&folder.join(&name), bounded::LARGEST_SUITE) {
        Ok(text) => Some(text),
        Err(error) => {
            findings.error("unreadable", &span, format!("failed to read `{name}`: {error}"));
            None
        }
    }
}
