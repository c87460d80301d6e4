//! A draft of an issue about what got worse.

use std::{collections::BTreeMap, fmt::Write as _};

use probity_core::{case_outcome::Changes, record::CaseRecord};

use crate::{
    compare::summary,
    markdown::escape::{fenced, span},
    plain::{one_line, shell_word},
};

/// Cases that are shown in full; the others by their ids.
const SHOWN: usize = 10;
/// Characters of a prompt or an answer that are shown.
const TEXT: usize = 2_000;

/// What the draft is about.
#[derive(Debug)]
pub struct Regression<'a> {
    /// The suite.
    pub suite: &'a str,
    /// What the lane is called.
    pub title: &'a str,
    /// The runner alone.
    pub runner: &'a str,
    /// The prompt variant, if the runner has several.
    pub variant: Option<&'a str>,
    /// The model that was asked.
    pub model: Option<&'a str>,
    /// What it is held against.
    pub before: &'a str,
    /// The run.
    pub run: &'a str,
    /// The dataset's digest.
    pub dataset_digest: &'a str,
    /// What has changed.
    pub changes: &'a Changes,
    /// A result of each case that got worse.
    pub cases: &'a BTreeMap<String, CaseRecord>,
}

/// The draft in Markdown: a title, what happened, how to see it again.
pub fn render(regression: &Regression<'_>) -> String {
    let Regression { suite, title, runner, variant, model, before, run, .. } = regression;
    let Regression { dataset_digest, changes, cases, .. } = regression;
    let worse = &changes.regressions;
    let count = match worse.len() {
        1 => "1 case".to_owned(),
        count => format!("{count} cases"),
    };
    let mut text = format!("# {count} of {} got worse\n\n", span(title));
    let _ = writeln!(text, "{}.\n", summary(changes));
    for (name, value) in [
        ("suite", *suite),
        ("before", *before),
        ("run", *run),
        ("model", model.unwrap_or("unknown")),
        ("dataset", *dataset_digest),
    ] {
        let _ = writeln!(text, "- {name}: {}", span(value));
    }
    text.push_str("\n## See it again\n\n");
    let ids: Vec<&str> = worse.iter().take(SHOWN).map(String::as_str).collect();
    let [suite, runner, ids] = [*suite, *runner, &ids.join(",")].map(shell_word);
    let variant = variant.map(|it| format!(" --variant {}", shell_word(it))).unwrap_or_default();
    let command = format!("probity run {suite} {runner}{variant} --case {ids}");
    text.push_str(&fenced(&command));
    text.push_str("\n## Cases\n");
    for id in worse.iter().take(SHOWN) {
        let _ = writeln!(text, "\n### {}\n", span(&one_line(id, 120)));
        let Some(case) = cases.get(id) else { continue };
        let _ = writeln!(text, "{}: {}\n", case.class, span(&one_line(&case.why(), 300)));
        let _ = writeln!(text, "Asked:\n\n{}", fenced(cut(&case.request.shown())));
        if let Some(expected) = case.expected() {
            let _ = writeln!(text, "Expected:\n\n{}", fenced(cut(&expected)));
        }
        if let Some(reply) = &case.reply {
            let _ = writeln!(text, "Answered:\n\n{}", fenced(cut(reply)));
        }
    }
    if worse.len() > SHOWN {
        let _ = writeln!(text, "\nAnd {} more:\n", worse.len() - SHOWN);
        for id in worse.iter().skip(SHOWN) {
            let _ = writeln!(text, "- {}", span(&one_line(id, 120)));
        }
    }
    text
}

/// The beginning of a text.
fn cut(text: &str) -> &str {
    text.char_indices().nth(TEXT).map_or(text, |(end, _)| &text[..end])
}
