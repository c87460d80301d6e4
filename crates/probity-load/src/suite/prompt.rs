//! How the cases of a runner are asked, and its prompt variants: the same cases, asked otherwise.

use std::{
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use probity_core::{
    criteria::CriteriaProblem,
    located::{Node, NodeValue},
    problem::{Problem, Severity, Source},
    request::{Message, Role, Sampling},
};

use super::{
    examples::{self, ExamplesConfig},
    runner::Surroundings,
};
use crate::{
    bounded,
    case::{Fields, Findings, messages_of, settings_of},
    function,
    template::{self, TemplateError},
};

/// How the cases of a runner are asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PromptConfig {
    /// The name of the variant; none for the prompt of a runner that has no variants.
    pub variant: Option<String>,
    /// What is around the case's own prompt; none for nothing.
    pub template: Option<Template>,
    /// Whether what the template makes is a list of messages, as JSON.
    pub makes_messages: bool,
    /// A function instead of a template, as `FILE` or `FILE:FUNCTION`.
    pub function: Option<Template>,
    /// A conversation instead of a template, and where each of its messages stands.
    pub messages: Vec<(Message, WrittenAt)>,
    /// Instructions for cases that bring none.
    pub system: Option<Template>,
    /// How words are chosen, where the case does not say so.
    pub sampling: Sampling,
    /// Examples that cases are asked with.
    pub examples: Option<ExamplesConfig>,
    /// The file that the template was read from.
    pub file: Option<PathBuf>,
}

/// A template of a suite.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    /// The text.
    pub text: Arc<str>,
    /// Where it stands.
    pub at: WrittenAt,
}

/// Where something stands, such as a template or a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenAt {
    /// What it is, such as "`prompt` of the runner".
    what: String,
    file: Arc<str>,
    source: Arc<str>,
    span: Range<usize>,
}

impl WrittenAt {
    /// A part of a file. `source` is the whole of it.
    pub(super) fn new(
        what: String,
        file: &Arc<str>,
        source: &Arc<str>,
        span: Range<usize>,
    ) -> Self {
        Self { what, file: file.clone(), source: source.clone(), span }
    }

    /// What is wrong with the criterion that stands there.
    pub(super) fn criteria_problem(&self, problem: CriteriaProblem) -> Problem {
        let CriteriaProblem { path: _, code, message, help } = problem;
        Problem { help, ..self.unusable(code, &message) }
    }

    /// Why what stands there cannot be used.
    pub fn unusable(&self, code: &'static str, why: &str) -> Problem {
        Problem {
            severity: Severity::Error,
            code,
            message: format!("{} cannot be used: {why}", self.what),
            file: self.file.clone(),
            place: Some(Source::file(&self.source).place(&self.span)),
            case_id: None,
            help: None,
        }
    }

    /// What is wrong with the template that stands there.
    pub fn problem(&self, template: &str, error: &TemplateError) -> Problem {
        let Self { what, file, source, span } = self;
        let span = error.place_in(template, source, span);
        let help = "a runner's template sees `prompt`, `id`, `tags`, `category`, `difficulty`, \
                    the case's `prompt_vars`, and `examples` if there are some";
        Problem {
            severity: Severity::Error,
            code: if error.is_undefined { "undefined-variable" } else { "bad-template" },
            message: format!("{what} cannot be filled in: {error}"),
            file: file.clone(),
            place: Some(Source::file(source).place(&span)),
            case_id: None,
            help: error.is_undefined.then(|| help.to_owned()),
        }
    }
}

impl PromptConfig {
    /// The messages of its conversation.
    pub fn conversation(&self) -> impl Iterator<Item = &Message> {
        self.messages.iter().map(|(message, _)| message)
    }

    /// Whether it asks anything beside the case's own prompt.
    pub fn has_outer(&self) -> bool {
        let Self { template, function, messages, .. } = self;
        template.is_some() || function.is_some() || !messages.is_empty()
    }

    /// Whether a function makes it, or one of its templates names `examples`.
    fn has_place_for_examples(&self) -> bool {
        let uses = |text: &Arc<str>| {
            let names = template::undefined_variables(text, |name| name != "examples");
            names.is_ok_and(|it| !it.is_empty())
        };
        let templates = self.template.iter().chain(&self.system).map(|it| &it.text);
        self.function.is_some()
            || templates.chain(self.conversation().flat_map(Message::texts)).any(uses)
    }

    /// Whether its conversation begins with instructions.
    pub fn begins_with_system(&self) -> bool {
        self.conversation().next().is_some_and(|it| it.role == Role::System)
    }
}

/// The ways in which a runner asks its cases: one without a name, or its variants.
pub(super) fn decode(
    fields: &mut Fields<'_, '_>,
    surroundings: &Surroundings<'_>,
) -> Vec<Arc<PromptConfig>> {
    let mut of_runner = |key: &str| {
        let (text, node) = (fields.text(key)?, fields.get(key)?);
        let at = surroundings.place(node, format!("`{key}` of the runner"));
        Some(Template { text: text.into(), at })
    };
    let (system, prompt) = (of_runner("system"), of_runner("prompt"));
    let examples =
        examples::Said::decode(&examples::Said::default(), "the runner", surroundings, fields);
    let Some(node) = fields.get("prompts") else {
        let asked = prompt.map(told_apart).unwrap_or_default();
        let asked = PromptConfig { system, ..asked };
        let examples = examples.config(asked.has_place_for_examples());
        return vec![Arc::new(PromptConfig { examples, ..asked })];
    };
    if prompt.is_some() {
        let span = fields.span("prompt");
        let message = "a runner has a `prompt` or `prompts`, not both".to_owned();
        let help = "make it the `template` of one of the variants".to_owned();
        fields.findings().error_with_help("contradiction", &span, message, help);
    }
    decode_variants(node, &Outer { system, examples }, surroundings, fields.findings())
}

/// What a runner says for variants that are silent.
struct Outer {
    system: Option<Template>,
    examples: examples::Said,
}

fn decode_variants(
    node: &Node,
    outer: &Outer,
    surroundings: &Surroundings<'_>,
    findings: &mut Findings,
) -> Vec<Arc<PromptConfig>> {
    let NodeValue::Array(items) = &node.value else {
        let message = format!("`prompts` must be a list of tables, not {}", node.kind());
        let help = "begin each variant with [[runners.prompts]]".to_owned();
        findings.error_with_help("wrong-type", &node.span, message, help);
        return Vec::new();
    };
    if items.is_empty() {
        findings.error("missing-field", &node.span, "`prompts` is empty".to_owned());
    }
    let mut variants: Vec<Arc<PromptConfig>> = Vec::with_capacity(items.len());
    for item in items {
        let Some(variant) = decode_variant(item, outer, surroundings, findings) else { continue };
        if variants.iter().any(|earlier| earlier.variant == variant.variant) {
            let name = variant.variant.as_deref().unwrap_or_default();
            let message = format!("variant `{name}` is there twice");
            let span = item.get("name").map_or(&item.span, |it| &it.span);
            findings.error("duplicate-variant", span, message);
        }
        variants.push(Arc::new(variant));
    }
    variants
}

fn decode_variant(
    node: &Node,
    outer: &Outer,
    surroundings: &Surroundings<'_>,
    findings: &mut Findings,
) -> Option<PromptConfig> {
    const KNOWN: &[&str] = &["name", "template", "file", "messages", "system", "settings"];
    let known: Vec<&str> = KNOWN.iter().chain(examples::KEYS).copied().collect();
    let mut fields = Fields::new(node, "a prompt variant", &known, findings)?;
    let name = fields.required_text("name")?;
    check_name(&name, surroundings, &mut fields);
    let at = |node: &Node, key: &str| {
        surroundings.place(node, format!("`{key}` of the variant `{name}`"))
    };
    let written = |key: &str, fields: &mut Fields<'_, '_>| {
        let (text, node) = (fields.text(key)?, fields.get(key)?);
        Some(Template { text: text.into(), at: at(node, key) })
    };
    let makes_messages = fields.get("messages").is_some_and(|it| it.as_str().is_some());
    let template = match makes_messages {
        true => written("messages", &mut fields),
        false => written("template", &mut fields),
    };
    let system = written("system", &mut fields);
    let (function, file) = match written("file", &mut fields) {
        Some(named) if function::is_code(&named.text) => (Some(named), None),
        named => (None, named.map(|it| surroundings.folder.join(&*it.text))),
    };
    let read = file.as_deref().and_then(|path| read_template(path, &name, &mut fields));
    let messages = fields.get("messages").filter(|_| !makes_messages).map(|list| {
        let said = messages_of(list, surroundings.folder, fields.findings());
        // A message that cannot be read is reported, and the suite is not used.
        said.into_iter().zip(list.items()).map(|(it, node)| (it, at(node, "messages"))).collect()
    });
    let asked = match makes_messages {
        true => PromptConfig { template, makes_messages, ..PromptConfig::default() },
        false => template.or(read).map(told_apart).unwrap_or_default(),
    };
    let whose = format!("the variant `{name}`");
    let examples = examples::Said::decode(&outer.examples, &whose, surroundings, &mut fields);
    let mut variant = PromptConfig {
        function: asked.function.or(function),
        messages: messages.unwrap_or_default(),
        system,
        sampling: settings_of(&mut fields),
        file,
        variant: Some(name),
        ..asked
    };
    check_parts(&variant, node, &mut fields);
    check_templates(&variant, surroundings.source, &mut fields);
    if variant.system.is_none() && !variant.begins_with_system() {
        variant.system.clone_from(&outer.system);
    }
    variant.examples = examples.config(variant.has_place_for_examples());
    if variant.makes_messages && variant.examples.as_ref().is_some_and(|it| !it.in_template) {
        let span = fields.span("messages");
        let message = "a template that makes messages has to name `examples` itself".to_owned();
        fields.findings().error("bad-value", &span, message);
    }
    Some(variant)
}

/// A variant is named on command lines: `--variant a,b`, `compare RUN@a RUN@b`.
fn check_name(name: &str, surroundings: &Surroundings<'_>, fields: &mut Fields<'_, '_>) {
    let span = fields.span("name");
    let allowed = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    if let Some(bad) = name.chars().find(|c| !allowed(*c)) {
        let message = format!("the name of a variant has the character {bad:?}");
        let help = "use letters, digits and `- _ .`".to_owned();
        fields.findings().error_with_help("bad-name", &span, message, help);
    }
    if surroundings.backends.iter().any(|it| it.name == name) {
        let message = format!("variant `{name}` has the name of a backend");
        let help = format!("`RUN@{name}` has to mean one of them; use another name");
        fields.findings().error_with_help("bad-name", &span, message, help);
    }
}

/// A variant says in one way what is asked.
fn check_parts(variant: &PromptConfig, node: &Node, fields: &mut Fields<'_, '_>) {
    let ways: Vec<&str> = ["template", "file", "messages"]
        .into_iter()
        .filter(|key| fields.get(key).is_some())
        .collect();
    let name = variant.variant.as_deref().unwrap_or_default();
    match ways.as_slice() {
        [_] => {}
        [] => {
            let message = format!("variant `{name}` needs a `template`, a `file` or `messages`");
            let help = "`template = \"{{ prompt }}\"` asks what the case asks".to_owned();
            fields.findings().error_with_help("missing-field", &node.span, message, help);
        }
        [first, second, ..] => {
            let span = fields.span(second);
            let message = format!("variant `{name}` has a `{first}` and `{second}`: one is enough");
            fields.findings().error("contradiction", &span, message);
        }
    }
    if variant.system.is_some() && variant.begins_with_system() {
        let span = fields.span("system");
        let message =
            format!("the messages of variant `{name}` already begin with a system message");
        fields.findings().error("contradiction", &span, message);
    }
}

/// Templates have to be such.
fn check_templates(variant: &PromptConfig, source: &str, fields: &mut Fields<'_, '_>) {
    let in_suite = |text: &str, whole: &Range<usize>, key: &str| {
        let error = template::check(text).err()?;
        let message = format!("`{key}` cannot be used as a template: {error}");
        Some((error.place_in(text, source, whole), message))
    };
    let mut wrong = Vec::new();
    if let Some(Template { text, at }) = &variant.system {
        wrong.extend(in_suite(text, &at.span, "system"));
    }
    match (&variant.template, &variant.file) {
        (Some(Template { text, .. }), Some(file)) => {
            let error = template::check(text).err();
            let told =
                |error| format!("`{}` cannot be used as a template: {error}", file.display());
            wrong.extend(error.map(|error| (fields.span("file"), told(error))));
        }
        (Some(Template { text, at }), None) => wrong.extend(in_suite(text, &at.span, "template")),
        (None, _) => {}
    }
    for (message, at) in &variant.messages {
        let texts = message.texts();
        wrong.extend(texts.filter_map(|text| in_suite(text, &at.span, "messages")));
    }
    for (span, message) in wrong {
        fields.findings().error("bad-template", &span, message);
    }
}

/// The template in a file, without the line end that editors put behind the last line.
fn read_template(path: &Path, variant: &str, fields: &mut Fields<'_, '_>) -> Option<Template> {
    let span = fields.span("file");
    let shown = path.display();
    let text = match bounded::read_text(path, bounded::LARGEST_SUITE) {
        Ok(text) => text,
        Err(error) => {
            let message = format!("cannot read the template `{shown}`: {error}");
            fields.findings().error("unreadable-file", &span, message);
            return None;
        }
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let text = text.strip_suffix('\n').unwrap_or(text);
    let text: Arc<str> = text.strip_suffix('\r').unwrap_or(text).into();
    if text.trim().is_empty() {
        let message = format!("the template `{shown}` is blank");
        fields.findings().error("blank-field", &span, message);
        return None;
    }
    let at = WrittenAt {
        what: format!("the template of the variant `{variant}`"),
        file: shown.to_string().into(),
        source: text.clone(),
        span: 0..text.len(),
    };
    Some(Template { text, at })
}

/// A template, or the function that it names. What asks as the case does is neither.
fn told_apart(Template { text, at }: Template) -> PromptConfig {
    let nothing = PromptConfig::default();
    match function::in_file(&text) {
        Some(named) => {
            PromptConfig { function: Some(Template { text: named.into(), at }), ..nothing }
        }
        None if is_plain_prompt(&text) => nothing,
        None => PromptConfig { template: Some(Template { text, at }), ..nothing },
    }
}

/// Whether a template is the case's own prompt and nothing else.
fn is_plain_prompt(template: &str) -> bool {
    ["{{ prompt }}", "{{prompt}}"].contains(&template.trim())
}

impl Surroundings<'_> {
    pub(super) fn place(&self, node: &Node, what: String) -> WrittenAt {
        let Self { file, source, .. } = *self;
        WrittenAt::new(what, file, source, node.span.clone())
    }
}
