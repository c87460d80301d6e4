//! Records with a prompt and the answer to it, under the names that people give the two.

use crate::{
    ImportError,
    cases::{Imported, text},
    source::Source,
};
use probity_core::{
    case::TestCase,
    criteria::{Criteria, Matcher},
    located::Node,
};

const PROMPTS: &[&str] = &["prompt", "input", "question", "instruction"];
const ANSWERS: &[&str] = &["expected", "expected_response", "target", "answer", "ideal", "output"];

/// Whether a record has a prompt and an answer.
pub(crate) fn is_plain(record: &Node) -> bool {
    let has = |names: &[&str]| names.iter().any(|it| record.get(it).is_some());
    has(PROMPTS) && has(ANSWERS)
}

pub(crate) fn import(
    root: &Node,
    source: &Source,
    imported: &mut Imported<'_>,
) -> Result<(), ImportError> {
    let Some(first) = root.items().first() else {
        return Err(ImportError::shape("there is no record in the file"));
    };
    let named = |names: &[&'static str]| names.iter().copied().find(|it| first.get(it).is_some());
    let (Some(prompt_name), Some(answer_name)) = (named(PROMPTS), named(ANSWERS)) else {
        let what = "the columns `prompt` and `expected` are not there";
        return Err(ImportError::shape(what));
    };
    for (at, node) in root.items().iter().enumerate() {
        imported.now_at(source.at(&node.span));
        let id = text(node, "id").unwrap_or_else(|| format!("case-{}", at + 1));
        let Some(prompt) = text(node, prompt_name) else {
            imported.lose("a record without a prompt was left out");
            continue;
        };
        imported.note_unused(node, &["id", prompt_name, answer_name]);
        let criteria = match text(node, answer_name) {
            Some(expected) => Criteria {
                expected_response: Some(expected.into()),
                matcher: Some(Matcher::Trimmed),
                ..Criteria::default()
            },
            None => {
                imported.lose("no expected answer: the case has no criterion");
                Criteria::default()
            }
        };
        imported.add(TestCase { id, prompt, criteria, ..TestCase::default() });
    }
    Ok(())
}
