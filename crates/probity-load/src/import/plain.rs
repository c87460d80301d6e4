//! Records with a prompt and the answer to it, under the names that people give the two.

use std::path::Path;

use super::{ImportError, Imported, read, text};
use probity_core::{
    case::TestCase,
    criteria::{Criteria, Matcher},
};

const PROMPTS: &[&str] = &["prompt", "input", "question", "instruction"];
const ANSWERS: &[&str] = &["expected", "expected_response", "target", "answer", "ideal", "output"];

pub(super) fn import(path: &Path, imported: &mut Imported) -> Result<(), ImportError> {
    let root = read::file(path, imported)?;
    let Some(first) = root.items().first() else {
        return Err(ImportError::shape(path, "there is no record in the file"));
    };
    let named = |names: &[&'static str]| names.iter().copied().find(|it| first.get(it).is_some());
    let (Some(prompt_name), Some(answer_name)) = (named(PROMPTS), named(ANSWERS)) else {
        let what = "the columns `prompt` and `expected` are not there";
        return Err(ImportError::shape(path, what));
    };
    for (at, node) in root.items().iter().enumerate() {
        let id = text(node, "id").unwrap_or_else(|| format!("case-{}", at + 1));
        let Some(prompt) = text(node, prompt_name) else {
            imported.note(&id, "a record without a prompt was left out");
            continue;
        };
        imported.note_unused(&id, node, &["id", prompt_name, answer_name]);
        let criteria = match text(node, answer_name) {
            Some(expected) => Criteria {
                expected_response: Some(expected.into()),
                matcher: Some(Matcher::Trimmed),
                ..Criteria::default()
            },
            None => {
                imported.note(&id, "no expected answer: the case has no criterion");
                Criteria::default()
            }
        };
        imported.add(TestCase { id, prompt, criteria, ..TestCase::default() });
    }
    Ok(())
}
