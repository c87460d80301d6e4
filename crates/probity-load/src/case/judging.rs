//! What assertions tell judges.

use std::collections::BTreeMap;

use probity_core::{
    criteria::{FactCategory, JudgeOptions, PromptMessage, RubricPrompt},
    located::NodeValue,
    request::Role,
};

use super::{Fields, Findings};
use crate::template;

pub(super) fn judge_options(fields: &mut Fields<'_, '_>) -> JudgeOptions {
    JudgeOptions {
        context: fields.json("context"),
        context_transform: fields.text("context_transform"),
        query: fields.text("query"),
        steps: fields.texts("steps"),
        scores: scores(fields),
        rubric_prompt: rubric_prompt(fields),
    }
}

fn scores(fields: &mut Fields<'_, '_>) -> BTreeMap<FactCategory, f64> {
    let names = FactCategory::NAMES;
    let Some(node) = fields.get("scores") else { return BTreeMap::new() };
    let Some(mut inner) = Fields::new(node, "`scores`", &names, fields.findings()) else {
        return BTreeMap::new();
    };
    let score = |it: FactCategory| Some((it, inner.number(it.as_str())?));
    FactCategory::ALL.into_iter().filter_map(score).collect()
}

/// A judge's prompt of a user: a text, or a list of messages with `role` and `content`.
pub(crate) fn rubric_prompt(fields: &mut Fields<'_, '_>) -> Option<RubricPrompt> {
    let node = fields.get("rubric_prompt")?;
    let prompt = match &node.value {
        NodeValue::Null => return None,
        NodeValue::Array(items) if !items.is_empty() => {
            let findings = fields.findings();
            let message = |item| {
                let mut inner = Fields::new(item, "a message", &["role", "content"], findings)?;
                message(&mut inner)
            };
            RubricPrompt::Messages(items.iter().filter_map(message).collect())
        }
        NodeValue::Bool(_)
        | NodeValue::Number(_)
        | NodeValue::String(_)
        | NodeValue::Array(_)
        | NodeValue::Object(_) => RubricPrompt::Text(fields.text("rubric_prompt")?),
    };
    let wrong = prompt.texts().find_map(|text| template::check(text).err());
    let uses_output = prompt.texts().any(|text| {
        let names = template::undefined_variables(text, |_| false);
        names.is_ok_and(|names| names.iter().any(|it| it == "output"))
    });
    if let Some(error) = wrong {
        refuse(fields.findings(), &node.span, &error.to_string());
    } else if !uses_output {
        refuse(fields.findings(), &node.span, "it does not show the judge `{{ output }}`");
    }
    Some(prompt)
}

fn refuse(findings: &mut Findings, span: &std::ops::Range<usize>, why: &str) {
    findings.error("bad-template", span, format!("`rubric_prompt` cannot be used: {why}"));
}

fn message(fields: &mut Fields<'_, '_>) -> Option<PromptMessage> {
    const ROLES: [Role; 3] = [Role::System, Role::User, Role::Assistant];
    let names = ROLES.map(Role::as_str);
    let role = fields
        .one_of("role", "role", &names, |name| ROLES.into_iter().find(|it| it.as_str() == name));
    let content = fields.required_text("content");
    Some(PromptMessage { role: role?, content: content? })
}
