//! Who judges answers.

use std::sync::Arc;

use probity_core::{criteria::RubricPrompt, opinion::Combine};

use super::{BackendConfig, WrittenAt, runner::check_backend};
use crate::case::{Fields, rubric_prompt};

/// How often a judge is asked the same, at most.
const MOST_REPEATS: u64 = 100;
/// The most judges.
const MOST_JUDGES: usize = 32;

/// Who judges answers, and how one judge is made of several.
#[derive(Clone, Debug, PartialEq)]
pub struct PanelConfig {
    /// The backends that are asked; none for the backend whose answers are judged.
    pub judges: Vec<String>,
    /// How their opinions make one.
    pub combine: Combine,
    /// How often each is asked the same.
    pub repeats: u32,
    /// Whether the form of the answer is sent along as a JSON Schema; none: where that is known to work.
    pub structured: Option<bool>,
    /// Whether answers that are compared are judged in both orders.
    pub swap: bool,
    /// The prompt of `llm-rubric`, where it is not ours.
    pub rubric_prompt: Option<RubricPrompt>,
    /// Where that prompt stands.
    pub rubric_prompt_at: Option<WrittenAt>,
}

impl Default for PanelConfig {
    fn default() -> Self {
        Self {
            judges: Vec::new(),
            combine: Combine::default(),
            repeats: 1,
            structured: None,
            swap: false,
            rubric_prompt: None,
            rubric_prompt_at: None,
        }
    }
}

/// What the keys of a panel are called in a table.
pub(super) struct Keys {
    pub(super) judge: &'static str,
    pub(super) judges: &'static str,
    pub(super) repeats: &'static str,
}

impl Keys {
    /// In the table `judge` of a suite.
    pub(super) const OF_SUITE: Self =
        Self { judge: "backend", judges: "backends", repeats: "repeats" };
    /// In a runner.
    pub(super) const OF_RUNNER: Self =
        Self { judge: "judge", judges: "judges", repeats: "judge_repeats" };
}

/// What is known where a panel is read.
pub(super) struct Context<'a> {
    pub(super) keys: &'a Keys,
    pub(super) backends: &'a [BackendConfig],
    /// What holds where the table is silent.
    pub(super) usual: &'a PanelConfig,
    /// What problems call the file.
    pub(super) file: &'a Arc<str>,
    /// The whole of it.
    pub(super) source: &'a Arc<str>,
}

/// Reads a panel.
pub(super) fn decode(context: &Context<'_>, fields: &mut Fields<'_, '_>) -> PanelConfig {
    let Context { keys, backends, usual, file, source } = *context;
    let ways = Combine::ALL.map(Combine::as_str);
    let combine = fields.one_of("combine", "way to combine judges", &ways, |name| {
        Combine::ALL.into_iter().find(|it| it.as_str() == name)
    });
    let repeats = fields.count(keys.repeats, 1..=MOST_REPEATS);
    let own = rubric_prompt(fields);
    let (rubric_prompt, rubric_prompt_at) = match own {
        Some(own) => {
            let (what, span) = ("`rubric_prompt`".to_owned(), fields.span("rubric_prompt"));
            (Some(own), Some(WrittenAt::new(what, file, source, span)))
        }
        None => (usual.rubric_prompt.clone(), usual.rubric_prompt_at.clone()),
    };
    PanelConfig {
        judges: judges(keys, backends, fields).unwrap_or_else(|| usual.judges.clone()),
        combine: combine.unwrap_or(usual.combine),
        repeats: repeats.and_then(|it| u32::try_from(it).ok()).unwrap_or(usual.repeats),
        structured: fields.boolean("structured").or(usual.structured),
        swap: fields.boolean("swap").unwrap_or(usual.swap),
        rubric_prompt,
        rubric_prompt_at,
    }
}

fn judges(
    keys: &Keys,
    backends: &[BackendConfig],
    fields: &mut Fields<'_, '_>,
) -> Option<Vec<String>> {
    let one = fields.text(keys.judge);
    check_backend(one.as_deref(), keys.judge, backends, fields);
    if fields.get(keys.judges).is_none() {
        return one.map(|it| vec![it]);
    }
    let several = fields.texts(keys.judges);
    let span = fields.span(keys.judges);
    let mut refuse = |code, message: String| fields.findings().error(code, &span, message);
    if one.is_some() {
        let message = format!("`{}` and `{}` exclude each other", keys.judge, keys.judges);
        refuse("bad-value", message);
    }
    if several.is_empty() || several.len() > MOST_JUDGES {
        refuse("bad-value", format!("`{}` must name 1 to {MOST_JUDGES} backends", keys.judges));
    }
    for (at, name) in several.iter().enumerate() {
        if several[..at].contains(name) {
            refuse("bad-value", format!("judge `{name}` is there twice"));
        }
    }
    for name in &several {
        check_backend(Some(name), keys.judges, backends, fields);
    }
    Some(several)
}
