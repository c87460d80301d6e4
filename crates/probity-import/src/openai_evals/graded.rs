//! `ModelBasedClassify`: a model picks one of several choices about an answer.

use std::collections::BTreeMap;

use probity_core::{
    criteria::{Assertion, AssertionKind, AssertionTest, PromptMessage, RubricPrompt},
    located::{Node, NodeValue},
    request::Role,
};
use probity_load::dataset::Format;
use serde_json::Value;

use super::Definition;
use crate::{cases::literal, draft::Setup, note::Notes, note_unreadable, source::Source};

/// All prompts of judges in the registry, by their names.
pub(super) struct Specs(BTreeMap<String, Node>);

impl Specs {
    /// Reads the folder `modelgraded`.
    pub(super) fn read(source: &mut Source, notes: &mut Notes) -> Self {
        let mut specs = BTreeMap::new();
        for file in source.glob("modelgraded/*.yaml").unwrap_or_default() {
            match source.tree_as(&file, Format::Yaml) {
                Ok((root, _)) => {
                    specs.extend(root.entries().iter().map(|it| (it.key.clone(), it.node.clone())));
                }
                Err(error) => {
                    let nowhere = Node { span: 0..0, value: NodeValue::Null };
                    note_unreadable(source, &nowhere, &error, notes);
                }
            }
        }
        Self(specs)
    }

    /// What a runner says for an eval; none if it cannot be judged that way.
    pub(super) fn setup(
        &self,
        eval: &Definition<'_>,
        source: &Source,
        notes: &mut Notes,
    ) -> Option<Setup> {
        let advice = "write it as docs/judging.md says";
        let name = eval.text("modelgraded_spec").unwrap_or_default();
        let Some(spec) = self.0.get(name) else {
            let what = format!("the prompt `{name}` of the judge is not in `modelgraded`");
            notes.lost(eval.at.clone(), what, advice);
            return None;
        };
        let answers = spec.get("input_outputs").map(Node::entries).unwrap_or_default();
        let several = answers.iter().any(|it| it.key != "input") || answers.is_empty();
        if several || spec.get("output_template").is_some() {
            let what = format!("the prompt `{name}` of the judge compares several answers");
            notes.lost(eval.at.clone(), what, advice);
            return None;
        }
        let args = eval.arg("modelgraded_spec_args").map(Node::entries).unwrap_or_default();
        let prompt_vars = args.iter().map(|it| (it.key.clone(), variable(&it.node.to_json())));
        let mut setup = Setup { prompt_vars: prompt_vars.collect(), ..Setup::default() };
        match name {
            "fact" => setup.assertions = vec![asserted(AssertionTest::Factuality, "{{ ideal }}")],
            "closedqa" => {
                setup.assertions = vec![asserted(AssertionTest::ClosedQa, "{{ criteria }}")];
            }
            _ => {
                let choices = Choices::of(spec);
                if choices.scores.is_none() {
                    let what = format!(
                        "`{name}` has no `choice_scores`: every answer passes, and the judge's reason \
                         names the choice"
                    );
                    notes.assumed(source.at(&spec.span), what, "say what each choice counts");
                }
                let Some(prompt) = prompt(spec, &choices) else {
                    let what = format!("the prompt `{name}` of the judge cannot be read");
                    notes.lost(source.at(&spec.span), what, advice);
                    return None;
                };
                setup.rubric_prompt = Some(prompt);
                setup.assertions = vec![asserted(AssertionTest::LlmRubric, name)];
            }
        }
        let what = "the judge is asked in our words and for JSON, so its verdicts may differ";
        notes.assumed(eval.at.clone(), what, "");
        Some(setup)
    }
}

fn asserted(test: AssertionTest, value: &str) -> Assertion {
    Assertion {
        value: Some(Value::from(value)),
        metric: Some("score".to_owned()),
        ..Assertion::new(AssertionKind { negated: false, test })
    }
}

/// A value that a prompt of a judge can name: a text.
pub(super) fn variable(value: &Value) -> Value {
    match value {
        Value::String(_) => value.clone(),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            let texts: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            Value::from(texts.join("\n"))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Value::from(value.to_string())
        }
    }
}

/// What a judge may say, and what it counts.
struct Choices {
    names: Vec<String>,
    /// From 0 to 1.
    scores: Option<Vec<f64>>,
}

impl Choices {
    fn of(spec: &Node) -> Self {
        let names: Vec<String> = match spec.get("choice_strings").map(|it| &it.value) {
            Some(NodeValue::String(letters)) => letters.chars().map(String::from).collect(),
            Some(NodeValue::Array(items)) => {
                items.iter().filter_map(Node::as_str).map(Into::into).collect()
            }
            Some(NodeValue::Number(digits)) => digits.chars().map(String::from).collect(),
            Some(NodeValue::Null | NodeValue::Bool(_) | NodeValue::Object(_)) | None => Vec::new(),
        };
        let written = spec.get("choice_scores").map(Node::to_json);
        let score = |name: &String| match &written {
            Some(Value::Object(scores)) => scores.get(name).and_then(Value::as_f64),
            Some(Value::String(how)) if how == "from_strings" => name.parse().ok(),
            Some(_) | None => None,
        };
        let scores: Option<Vec<f64>> = names.iter().map(score).collect();
        Self { names, scores: scores.filter(|it| !it.is_empty()).map(scaled) }
    }

    /// What a judge is told about its choices.
    fn told(&self) -> String {
        let names: Vec<String> = self.names.iter().map(|it| format!("\"{it}\"")).collect();
        let mut told = format!(
            "Think step by step, then pick a single choice from {}. Name it in `reason`.",
            names.join(" or ")
        );
        match &self.scores {
            None => told.push_str(" `pass` is true and `score` is 1, whatever you pick."),
            Some(scores) => {
                let counts = names.iter().zip(scores).map(|(name, it)| format!("{name} is {it}"));
                let counts: Vec<String> = counts.collect();
                told.extend([
                    " `score` is what it counts: ",
                    &counts.join(", "),
                    ". `pass` is true if that is at least 0.5.",
                ]);
            }
        }
        told
    }
}

/// Scores brought to 0 to 1, unless they are there.
fn scaled(scores: Vec<f64>) -> Vec<f64> {
    let least = scores.iter().copied().fold(f64::INFINITY, f64::min);
    let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if least >= 0.0 && most <= 1.0 || most <= least {
        return scores.into_iter().map(|it| it.clamp(0.0, 1.0)).collect();
    }
    scores.into_iter().map(|it| ((it - least) / (most - least) * 1e4).round() / 1e4).collect()
}

fn prompt(spec: &Node, choices: &Choices) -> Option<RubricPrompt> {
    let told = choices.told();
    let written = spec.get("prompt")?;
    if let Some(text) = written.as_str() {
        return Some(RubricPrompt::Text(format!("{}\n\n{told}", template(text)?)));
    }
    let message = |node: &Node| {
        let role = match node.get("role").and_then(Node::as_str)? {
            "system" => Role::System,
            "assistant" => Role::Assistant,
            _ => Role::User,
        };
        let content = template(node.get("content").and_then(Node::as_str)?)?;
        Some(PromptMessage { role, content })
    };
    let mut messages = written.items().iter().map(message).collect::<Option<Vec<_>>>()?;
    messages.last_mut()?.content.extend(["\n\n", &told]);
    Some(RubricPrompt::Messages(messages))
}

/// A text with fields of Python's `str.format` as a template of ours; none if it is no such text.
fn template(text: &str) -> Option<String> {
    let mut template = String::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        plain.push_str(&rest[..at]);
        let (mark, after) = (&rest[at..=at], &rest[at + 1..]);
        if after.starts_with(mark) {
            plain.push_str(mark);
            rest = &after[1..];
            continue;
        }
        let end = after.find('}').filter(|_| mark == "{")?;
        let name = match after[..end].trim() {
            "input" => "prompt",
            "completion" => "output",
            name => name,
        };
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        if !is_name {
            return None;
        }
        template.push_str(&literal(&std::mem::take(&mut plain)));
        template.extend(["{{ ", name, " }}"]);
        rest = &after[end + 1..];
    }
    plain.push_str(rest);
    template.push_str(&literal(&plain));
    Some(template)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_become_variables() {
        let check = |text: &str| template(text).unwrap();
        assert_eq!(check("Q {input}\nA {completion}"), "Q {{ prompt }}\nA {{ output }}");
        assert_eq!(check("{{x}} {ideal}"), "{x} {{ ideal }}");
        assert_eq!(template("{a.b}"), None);
        assert_eq!(template("}"), None);
    }

    #[test]
    fn scores_are_from_0_to_1() {
        assert_eq!(scaled(vec![1.0, 3.0, 5.0]), [0.0, 0.5, 1.0]);
        assert_eq!(scaled(vec![1.0, 0.5]), [1.0, 0.5]);
        assert_eq!(scaled(vec![7.0, 7.0]), [1.0, 1.0]);
    }
}
