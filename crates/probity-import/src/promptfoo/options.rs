//! `options` of tests: who judges, how outputs are made, how often a test is asked.

mod asked;

use probity_core::{
    case::AskSpec,
    criteria::{PromptMessage, RubricPrompt},
    located::{Node, NodeValue},
    request::Role,
};
use probity_load::{suite::BackendKind, template};

use serde_json::{Map, Value};

use super::{
    Context, Table,
    assertions::adapted,
    nunjucks,
    providers::{Help, helper, is_setting},
    transform, vars,
};
use crate::{
    cases::{boolean, text},
    draft::BackendDraft,
    note::At,
};

/// The judge of tests that name none.
const DEFAULT_JUDGE: (&str, &str) = ("judge", "gpt-5.5-2026-04-23");
/// What embeds the texts of tests that name nobody.
const DEFAULT_EMBEDDER: (&str, &str) = ("embeddings", "text-embedding-3-large");
/// The question to judges whose own verdict counts.
const RUBRIC_PROMPT: &str = "\
You grade an answer by a rubric. The answer passes if it does what the rubric says.

The answer:
{{ output }}

The rubric:
{{ rubric }}";

/// Options that change nothing about what is asked and judged.
const SILENT: &[&str] = &["disableConversationVar", "runSerially"];
/// Options that are read.
const USED: &[&str] = &[
    "provider",
    "rubricPrompt",
    "prefix",
    "suffix",
    "transform",
    "postprocess",
    "repeat",
    "disableVarExpansion",
    "disableDefaultAsserts",
    "transformVars",
];

/// The options of a test.
#[derive(Clone, Debug, Default)]
pub(super) struct Options {
    pub(super) helpers: Helpers,
    pub(super) around: Around,
    pub(super) transform: Option<String>,
    /// JavaScript that makes the variables.
    pub(super) transform_vars: Option<String>,
    pub(super) repeat: Option<u32>,
    pub(super) keeps_lists: Option<bool>,
    pub(super) without_defaults: bool,
    /// How words are chosen, and the form of answers.
    pub(super) asked: AskSpec,
}

/// Who helps to judge, and how judges are asked.
#[derive(Clone, Debug, Default)]
pub(super) struct Helpers {
    pub(super) judge: Option<String>,
    pub(super) embeddings: Option<String>,
    pub(super) rubric_prompt: Option<RubricPrompt>,
    /// What the adapter that embeds texts is told, if no backend does.
    pub(super) similar: Option<Map<String, Value>>,
    /// What the adapter that classifies is told.
    pub(super) classifier: Option<Map<String, Value>>,
}

impl Helpers {
    /// What is not said here is as said there.
    pub(super) fn or(self, other: &Self) -> Self {
        Self {
            judge: self.judge.or_else(|| other.judge.clone()),
            embeddings: self.embeddings.or_else(|| other.embeddings.clone()),
            rubric_prompt: self.rubric_prompt.or_else(|| other.rubric_prompt.clone()),
            similar: self.similar.or_else(|| other.similar.clone()),
            classifier: self.classifier.or_else(|| other.classifier.clone()),
        }
    }
}

/// What stands around every prompt of a test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Around {
    pub(super) prefix: String,
    pub(super) suffix: String,
}

impl Options {
    /// Reads the options of a test.
    pub(super) fn read(node: &Node, context: &mut Context<'_>) -> Self {
        let settings = node.entries().iter().map(|it| it.key.as_str()).filter(|it| is_setting(it));
        let read: Vec<&str> = SILENT.iter().chain(USED).copied().chain(settings).collect();
        context.unused_keys(node, Table::TestOptions, &read);
        let made = node.get("transform").or_else(|| node.get("postprocess"));
        let around = |key| node.get(key).and_then(Node::as_str).map(nunjucks::template);
        Self {
            helpers: helpers(node, context),
            around: Around {
                prefix: around("prefix").unwrap_or_default(),
                suffix: around("suffix").unwrap_or_default(),
            },
            transform: made.and_then(|it| transform::read(it, "a transform", context)),
            transform_vars: node.get("transformVars").and_then(|it| vars::transform(it, context)),
            repeat: context.number(node, "repeat"),
            keeps_lists: boolean(node, "disableVarExpansion"),
            without_defaults: boolean(node, "disableDefaultAsserts").unwrap_or_default(),
            asked: asked::read(node, context),
        }
    }

    /// What is not said here is as said there.
    pub(super) fn or(self, other: &Self) -> Self {
        let around = Around {
            prefix: Some(self.around.prefix)
                .filter(|it| !it.is_empty())
                .unwrap_or_else(|| other.around.prefix.clone()),
            suffix: Some(self.around.suffix)
                .filter(|it| !it.is_empty())
                .unwrap_or_else(|| other.around.suffix.clone()),
        };
        Self {
            helpers: self.helpers.or(&other.helpers),
            around,
            transform: self.transform.or_else(|| other.transform.clone()),
            transform_vars: self.transform_vars.or_else(|| other.transform_vars.clone()),
            repeat: self.repeat.or(other.repeat),
            keeps_lists: self.keeps_lists.or(other.keeps_lists),
            without_defaults: self.without_defaults,
            asked: asked::or(self.asked, &other.asked),
        }
    }
}

/// The providers and prompts that a table names for judging: `provider`, `rubricPrompt`.
pub(super) fn helpers(node: &Node, context: &mut Context<'_>) -> Helpers {
    let mut found = Helpers::default();
    if let Some(provider) = node.get("provider").filter(|it| !is_null(it)) {
        let of_kind = |kind: &str| provider.get(kind);
        let is_plain = of_kind("text").is_none() && of_kind("embedding").is_none();
        let judge = if is_plain { Some(provider) } else { of_kind("text") };
        let is_similar = text(node, "type").is_some_and(|it| it.contains("similar"));
        let embeds = if is_plain && is_similar { Some(provider) } else { of_kind("embedding") };
        if let Some(embeds) = embeds {
            found.similar = adapted::helper(embeds, true, context);
            if found.similar.is_none() {
                found.embeddings = helper(embeds, Help::Embed, context);
            }
        }
        let classifier = of_kind("classification").or(judge);
        found.classifier = classifier.and_then(|it| adapted::helper(it, false, context));
        let judges = !is_similar && (found.classifier.is_none() || !is_plain);
        if let Some(judge) = judge.filter(|_| judges) {
            found.judge = helper(judge, Help::Judge, context);
        }
    }
    found.rubric_prompt = node.get("rubricPrompt").and_then(|it| rubric_prompt(it, context));
    found
}

const fn is_null(node: &Node) -> bool {
    matches!(node.value, NodeValue::Null)
}

/// The judge's prompt: a text, messages, either as JSON, or a file with one of these.
fn rubric_prompt(node: &Node, context: &mut Context<'_>) -> Option<RubricPrompt> {
    if is_null(node) {
        return None;
    }
    let prompt = match &node.value {
        NodeValue::String(written) => match written.strip_prefix("file://") {
            None => text_or_messages(written),
            Some(name) => match context.source.text(&vars::within("", name)) {
                Ok(text) => text_or_messages(text.text.trim()),
                Err(error) => {
                    context.unreadable(node, &error);
                    return None;
                }
            },
        },
        NodeValue::Null
        | NodeValue::Bool(_)
        | NodeValue::Number(_)
        | NodeValue::Array(_)
        | NodeValue::Object(_) => messages(&node.to_json()),
    };
    let names_output = |text: &str| {
        let names = template::undefined_variables(text, |_| false);
        names.is_ok_and(|names| names.iter().any(|it| it == "output"))
    };
    match prompt.filter(|it| it.texts().any(names_output)) {
        Some(prompt) => Some(prompt),
        None => {
            let what = "a prompt for judges that does not show them `{{ output }}`";
            context.lost(node, what, "write `rubric_prompt` in the suite");
            None
        }
    }
}

fn text_or_messages(text: &str) -> Option<RubricPrompt> {
    let value = serde_json::from_str(text).ok();
    let value = value.or_else(|| {
        let root = text.starts_with("- role:").then(|| probity_load::dataset::parse_yaml(text));
        Some(root?.ok()?.to_json())
    });
    match value {
        Some(value @ Value::Array(_)) => messages(&value),
        Some(_) | None => Some(RubricPrompt::Text(nunjucks::template(text))),
    }
}

fn messages(value: &Value) -> Option<RubricPrompt> {
    let message = |it: &Value| {
        let role = match it.get("role")?.as_str()? {
            "system" | "developer" => Role::System,
            "assistant" => Role::Assistant,
            _ => Role::User,
        };
        let content = nunjucks::template(it.get("content")?.as_str()?);
        Some(PromptMessage { role, content })
    };
    let messages: Option<Vec<_>> = value.as_array()?.iter().map(message).collect();
    messages.filter(|it| !it.is_empty()).map(RubricPrompt::Messages)
}

/// The judge's prompt of `llm-rubric` where a configuration has none: the judge's own verdict counts.
pub(super) fn usual_rubric_prompt() -> RubricPrompt {
    RubricPrompt::Text(RUBRIC_PROMPT.to_owned())
}

/// The backend that judges if nobody is named.
pub(super) fn default_judge(at: &At, context: &mut Context<'_>) -> String {
    usual(DEFAULT_JUDGE, "judges", at, context)
}

/// The backend that judges by what it finds on the web if nobody is named.
pub(super) fn search_judge(at: &At, context: &mut Context<'_>) -> String {
    let name = usual(("search-judge", DEFAULT_JUDGE.1), "judges by searching the web", at, context);
    let search = serde_json::json!([{ "type": "web_search_preview" }]);
    for backend in context.draft.backends.iter_mut().filter(|it| it.name == name) {
        backend.kind = BackendKind::OpenaiResponses;
        backend.extra_body.insert("tools".to_owned(), search.clone());
    }
    name
}

/// The question to judges who search the web.
pub(super) fn search_prompt() -> RubricPrompt {
    let search = "Search the web for whatever has to be true or current, and say what you found.";
    RubricPrompt::Text(RUBRIC_PROMPT.replacen("\n\n", &format!(" {search}\n\n"), 1))
}

/// The backend that embeds texts if nobody is named.
pub(super) fn default_embedder(at: &At, context: &mut Context<'_>) -> String {
    usual(DEFAULT_EMBEDDER, "embeds texts", at, context)
}

fn usual((name, model): (&str, &str), does: &str, at: &At, context: &mut Context<'_>) -> String {
    let key = format!("who {does} if nobody is named");
    if let Some(Some(known)) = context.helpers.get(&key) {
        return known.clone();
    }
    let name = context.names.free(name);
    context.helpers.insert(key, Some(name.clone()));
    let what = format!("nobody is named who {does}: promptfoo's usual model does, `{model}`");
    context.notes.assumed(at.clone(), what, format!("name another under [backends.{name}]"));
    context.add_backend(BackendDraft {
        model: Some(model.to_owned()),
        comments: vec![format!("Who {does}: what promptfoo takes if none is named.")],
        ..BackendDraft::new(name.clone(), BackendKind::Openai, at.clone())
    });
    name
}
