//! FailProof LLM's JSONL suites.

use crate::{
    ImportError,
    cases::{Imported, labelled, text, texts},
    source::Source,
};
use probity_core::{
    case::TestCase,
    criteria::{Criteria, ExpectedFormat, Matcher},
    located::Node,
};

pub(crate) fn import(
    root: &Node,
    source: &Source,
    imported: &mut Imported<'_>,
) -> Result<(), ImportError> {
    const USED: &[&str] = &[
        "case_id",
        "suite_id",
        "prompt",
        "prompt_vars",
        "expected_response",
        "expected_classification",
        "tags",
    ];
    if root.items().is_empty() {
        return Err(ImportError::shape("there is no case in the file"));
    }
    for (at, node) in root.items().iter().enumerate() {
        imported.now_at(source.at(&node.span));
        let id = text(node, "case_id").unwrap_or_else(|| format!("case-{}", at + 1));
        let Some(prompt) = text(node, "prompt") else {
            imported.lose("a case without a prompt was left out");
            continue;
        };
        imported.note_unused(node, USED);
        let vars = node.get("prompt_vars").map(Node::entries).unwrap_or_default();
        let prompt_vars = vars.iter().map(|it| (it.key.clone(), it.node.to_json())).collect();
        let prompt = vars.iter().fold(prompt, |prompt, var| double_braces(&prompt, &var.key));
        let mut tags = texts(node, "tags");
        let criteria = criteria(node, &tags, imported);
        tags.extend(labelled("suite", text(node, "suite_id")));
        let case = TestCase {
            id,
            prompt: prompt.into(),
            prompt_vars,
            criteria,
            tags,
            ..TestCase::default()
        };
        // Without variables a prompt is sent as it is.
        if case.prompt_vars.is_empty() {
            imported.add(case);
        } else {
            imported.add_template(case);
        }
    }
    Ok(())
}

/// `{name}` as a variable in our templates, unless it is one already.
fn double_braces(prompt: &str, name: &str) -> String {
    let (single, double) = (format!("{{{name}}}"), format!("{{{{{name}}}}}"));
    if prompt.contains(&double) { prompt.to_owned() } else { prompt.replace(&single, &double) }
}

fn criteria(node: &Node, tags: &[String], imported: &mut Imported<'_>) -> Criteria {
    const JSON_TAGS: &[&str] = &["format-error", "schema-violation", "incomplete-json"];
    let mut criteria = Criteria::default();
    if let Some(expected) = text(node, "expected_response") {
        imported.assume("`expected_response` may be text, a pattern or prose: taken as text");
        criteria.expected_response = Some(expected.into());
        criteria.matcher = Some(Matcher::Contains);
    }
    match text(node, "expected_classification").as_deref() {
        Some("fail") => {
            let what = "expected `fail` does not say what a good model does: add a criterion";
            imported.lose(what);
        }
        Some("pass") if tags.iter().any(|tag| JSON_TAGS.contains(&tag.as_str())) => {
            criteria.expected_format = Some(ExpectedFormat::Json);
        }
        Some(_) if criteria.expected_response.is_none() => {
            imported.lose("expected `pass` without anything to check: add a criterion");
        }
        Some(_) | None => {}
    }
    criteria
}
