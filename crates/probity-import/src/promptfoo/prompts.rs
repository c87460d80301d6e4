//! Prompts: written out, in files, as conversations, or made by functions.

mod chat;

use std::collections::BTreeMap;

use probity_core::{
    located::{Node, NodeValue},
    request::{ResponseFormat, Sampling},
};
use probity_load::{dataset::Format, function, template};
use serde_json::Value;

use super::{
    Context, Table, adapters, files::with_files, list, options::Around, providers, templates,
};
use crate::{
    At,
    cases::text,
    draft::{Asks, VariantDraft},
    source::{Unreadable, glob::is_pattern},
};

/// A prompt as providers and tests name it.
#[derive(Clone, Debug)]
pub(super) struct Prompt {
    /// What it is called in filters: its label, its id, its file and its text.
    pub(super) names: Vec<String>,
    /// How cases are asked.
    pub(super) variant: VariantDraft,
    /// The form of answers, if the prompt says so.
    pub(super) response_format: Option<ResponseFormat>,
}

impl Prompt {
    /// The prompt with what stands around it in a test. Functions say all themselves.
    pub(super) fn within(&self, Around { prefix, suffix }: &Around) -> Self {
        let mut prompt = self.clone();
        if let Asks::Template(text) = &mut prompt.variant.asks {
            if !prefix.is_empty() || !suffix.is_empty() {
                prompt.variant.file = None;
            }
            *text = format!("{prefix}{text}{suffix}");
        }
        prompt
    }

    /// Whether a filter means it. A group is meant with all its members.
    pub(super) fn is_among(&self, filter: &[String]) -> bool {
        super::is_meant(&self.names, filter, |name, wanted| {
            name.strip_prefix(wanted).is_some_and(|it| it.is_empty() || it.starts_with(':'))
        })
    }
}

/// A prompt as it is written.
#[derive(Clone, Debug, Default)]
struct Written {
    raw: String,
    id: Option<String>,
    label: Option<String>,
    sampling: Sampling,
    response_format: Option<ResponseFormat>,
}

/// All prompts of a configuration. Without any, the variable `prompt` is asked.
pub(super) fn read(root: &Node, context: &mut Context<'_>) -> Vec<Prompt> {
    let mut reading = Reading { prompts: Vec::new() };
    let Some(node) = root.get("prompts") else {
        let at = context.at(root);
        reading.add(
            &Written::default(),
            "prompt",
            Asks::Template("{{ prompt }}".to_owned()),
            at,
            context,
        );
        return reading.prompts;
    };
    match &node.value {
        // The old form: files and their labels.
        NodeValue::Object(entries) if node.get("raw").is_none() && node.get("id").is_none() => {
            for entry in entries {
                let label = entry.node.as_str().map(ToOwned::to_owned);
                let written = Written { raw: entry.key.clone(), label, ..Written::default() };
                reading.resolve(&written, &entry.node, context);
            }
        }
        NodeValue::Null
        | NodeValue::Bool(_)
        | NodeValue::Number(_)
        | NodeValue::String(_)
        | NodeValue::Array(_)
        | NodeValue::Object(_) => {
            for item in list(node) {
                if let Some(written) = written(item, context) {
                    reading.resolve(&written, item, context);
                }
            }
        }
    }
    reading.prompts
}

/// Whether functions make some of the prompts.
pub(super) fn has_functions(root: &Node) -> bool {
    let named = |item: &Node| {
        let text = item.as_str().map(ToOwned::to_owned);
        text.or_else(|| text_of(item)).is_some_and(|it| function::is_code(it.trim()))
    };
    root.get("prompts").is_some_and(|node| list(node).iter().any(named))
}

fn text_of(item: &Node) -> Option<String> {
    // A prompt may be blank: what is asked is then in the variables of the tests.
    let blank = || item.get("raw").and_then(Node::as_str).filter(|it| !it.is_empty());
    text(item, "raw").or_else(|| text(item, "id")).or_else(|| blank().map(ToOwned::to_owned))
}

fn written(item: &Node, context: &mut Context<'_>) -> Option<Written> {
    if let Some(raw) = item.as_str() {
        return Some(Written { raw: raw.to_owned(), ..Written::default() });
    }
    let Some(raw) = text_of(item) else {
        let what = format!("a prompt that is {} without `raw` or `id`", item.kind());
        context.lost(item, what, "write it as a text, or name its file");
        return None;
    };
    note_keys(item, &raw, context);
    let sampling = item.get("config").map(|it| settings(it, context)).unwrap_or_default();
    let format = item.get("config").and_then(|it| it.get("response_format"));
    let response_format = format.and_then(|it| response_format(it, context));
    let (id, label) = (text(item, "id"), text(item, "label").or_else(|| text(item, "display")));
    Some(Written { raw, id, label, sampling, response_format })
}

/// Notes the keys of a prompt that nothing reads. A file that one names is not what is asked.
fn note_keys(item: &Node, raw: &str, context: &mut Context<'_>) {
    const KEYS: &[&str] = &["id", "label", "raw", "config", "display"];
    const FILE: &str = "file";
    context.unused_keys(item, Table::Prompt, &[KEYS, &[FILE]].concat());
    if let Some(entry) = item.entries().iter().find(|it| it.key == FILE) {
        let named = entry.node.as_str().unwrap_or_default();
        let path = named.strip_prefix("file://").unwrap_or(named);
        let advice = format!(
            "the prompt is the text `{}`: write `raw: file://{path}` if the file is meant",
            shortened(raw)
        );
        let at = context.source.at(&entry.key_span);
        context.ignored_key(at, FILE, Table::Prompt, advice);
    }
}

/// The form of answers that a prompt asks for.
pub(super) fn response_format(node: &Node, context: &mut Context<'_>) -> Option<ResponseFormat> {
    let value = with_files(node, context);
    match value.get("type").and_then(Value::as_str) {
        Some("json_object") => Some(ResponseFormat::Json),
        Some("text") => None,
        Some(_) | None => ResponseFormat::from_value(value),
    }
}

/// Settings of a prompt, which override those of the provider.
fn settings(config: &Node, context: &mut Context<'_>) -> Sampling {
    context.unused_keys(
        config,
        Table::PromptConfig,
        &[
            "temperature",
            "top_p",
            "max_tokens",
            "seed",
            "stop",
            "presence_penalty",
            "frequency_penalty",
            "response_format",
        ],
    );
    Sampling {
        temperature: context.number(config, "temperature"),
        top_p: context.number(config, "top_p"),
        max_tokens: context.number(config, "max_tokens"),
        seed: context.number(config, "seed"),
        stop: crate::cases::texts(config, "stop"),
        logprobs: None,
        presence_penalty: context.number(config, "presence_penalty"),
        frequency_penalty: context.number(config, "frequency_penalty"),
    }
}

struct Reading {
    prompts: Vec<Prompt>,
}

impl Reading {
    /// Finds out what a prompt is: a text, a file, or several files.
    fn resolve(&mut self, written: &Written, node: &Node, context: &mut Context<'_>) {
        let raw = written.raw.trim();
        if let Some(command) = raw.strip_prefix("exec:") {
            return self.program(command, written, node, context);
        }
        if let Some(named) = raw.strip_prefix("langfuse://") {
            return self.langfuse(named, written, node, context);
        }
        for scheme in ["portkey://", "helicone://", "package:"] {
            if raw.starts_with(scheme) {
                let what = format!("prompt `{raw}` comes from elsewhere");
                return context.lost(node, what, "write the prompt into a file, and name that");
            }
        }
        let is_file = raw.starts_with("file://");
        let path = raw.strip_prefix("file://").unwrap_or(raw);
        let (file, _) = function::split_name(path);
        if !is_file && !may_be_path(raw) {
            return self.text(&written.raw, written, node, None, context);
        }
        if context.source.has_file(file) {
            return self.file(path, written, node, context);
        }
        if is_pattern(path) || path.contains('[') {
            match context.source.glob(file) {
                Ok(files) if !files.is_empty() => {
                    let function = function::split_name(path).1;
                    for name in files {
                        let named =
                            function.map_or_else(|| name.clone(), |it| format!("{name}:{it}"));
                        self.file(&named, written, node, context);
                    }
                    return;
                }
                Err(error) if is_file => return context.unreadable(node, &error),
                Ok(_) | Err(_) => {}
            }
        }
        match context.source.reference(file) {
            Err(error @ Unreadable::Outside { .. }) => context.unreadable(node, &error),
            Err(error) if is_file || names_file(file) => context.unreadable(node, &error),
            Ok(_) | Err(_) => self.text(&written.raw, written, node, None, context),
        }
    }

    fn file(&mut self, path: &str, written: &Written, node: &Node, context: &mut Context<'_>) {
        let (file, name) = function::split_name(path);
        if function::is_code(file) {
            return self.function(file, name, written, node, context);
        }
        let suffix = file.rsplit_once('.').map_or("", |it| it.1).to_ascii_lowercase();
        let read = match context.source.text(file) {
            Ok(read) => read,
            Err(error) => return context.unreadable(node, &error),
        };
        match suffix.as_str() {
            "txt" => {
                let lines = read.text.split('\n').map(|it| it.strip_suffix('\r').unwrap_or(it));
                let lines: Vec<&str> = lines.collect();
                let parts = lines.split(|it| it.trim() == "---").map(|it| it.join("\n"));
                let parts: Vec<String> =
                    parts.map(|it| it.trim().to_owned()).filter(|it| !it.is_empty()).collect();
                for part in parts {
                    self.text(&part, written, node, Some(file), context);
                }
            }
            "jsonl" => {
                for line in read.text.lines().filter(|it| !it.is_empty()) {
                    self.text(line, written, node, Some(file), context);
                }
            }
            "csv" => self.table(&read.text, written, node, file, context),
            "json" | "yaml" | "yml" => {
                let format = if suffix == "json" { Format::Json } else { Format::Yaml };
                match context.source.parse(&read, format) {
                    // What is not what its name says is text.
                    Err(_) => self.text(&read.text, written, node, Some(file), context),
                    Ok((root, _)) => {
                        let value = with_files(&root, context).to_string();
                        self.text(&value, written, node, Some(file), context);
                    }
                }
            }
            "sh" | "bash" | "exe" | "bat" | "cmd" | "ps1" | "rb" | "pl" => {
                self.program(file, written, node, context);
            }
            _ => self.text(&read.text, written, node, Some(file), context),
        }
    }

    /// A program that prints the prompt.
    fn program(
        &mut self,
        command: &str,
        written: &Written,
        node: &Node,
        context: &mut Context<'_>,
    ) {
        let mut words = providers::words(command);
        if words.is_empty() {
            return context.lost(node, "`exec:` without a program", "name the program");
        }
        for word in &mut words {
            if context.source.has_file(word)
                && let Ok(path) = context.source.reference(word)
            {
                *word = if path.contains('/') { path } else { format!("./{path}") };
            }
        }
        let name = context.adapter_with("exec.mjs", "COMMAND", &Value::from(words.clone()));
        let stem = words[0].rsplit('/').next().and_then(|it| it.split('.').next());
        let wanted = stem.unwrap_or("program").to_owned();
        let at = context.at(node);
        self.add(written, &wanted, Asks::Adapter { name, env: Vec::new() }, at, context);
        if let Some(prompt) = self.prompts.last_mut() {
            prompt.names.push(written.raw.clone());
        }
    }

    /// A prompt that is kept at Langfuse: `NAME@LABEL:KIND`, or with a version or a label after a colon.
    fn langfuse(&mut self, named: &str, written: &Written, node: &Node, context: &mut Context<'_>) {
        const ENV: &[&str] = &["LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY", "LANGFUSE_HOST"];
        let named =
            named.strip_suffix(":chat").or_else(|| named.strip_suffix(":text")).unwrap_or(named);
        let (name, which) = match named.rsplit_once('@').or_else(|| named.rsplit_once(':')) {
            Some((name, which)) => (name, Some(which)),
            None => (named, None),
        };
        let mut prompt = serde_json::json!({ "name": name });
        if let Some(which) = which {
            let is_version = !named.contains('@') && which.chars().all(|c| c.is_ascii_digit());
            prompt[if is_version { "version" } else { "label" }] = Value::from(which);
        }
        let name = context.adapter_with("langfuse.mjs", "PROMPT", &prompt);
        let env = ENV.iter().map(|it| (*it).to_owned()).collect();
        let at = context.at(node);
        self.add(written, named, Asks::Adapter { name, env }, at, context);
        if let Some(prompt) = self.prompts.last_mut() {
            prompt.names.push(written.raw.clone());
        }
    }

    /// A table with the columns `prompt` and `label`, or one prompt a line.
    fn table(
        &mut self,
        table: &str,
        written: &Written,
        node: &Node,
        file: &str,
        context: &mut Context<'_>,
    ) {
        if !table.contains(',') {
            let lines = table.lines().filter(|it| !it.trim().is_empty());
            for (at, line) in lines.enumerate() {
                if at > 0 || !line.trim().eq_ignore_ascii_case("prompt") {
                    self.text(line, written, node, Some(file), context);
                }
            }
            return;
        }
        let Some(root) = context.tree(node, file) else { return };
        for record in root.items() {
            let Some(raw) = text(record, "prompt") else { continue };
            let label = text(record, "label").or_else(|| written.label.clone());
            let own = Written { label, ..written.clone() };
            self.text(raw.trim(), &own, record, Some(file), context);
        }
    }

    fn function(
        &mut self,
        file: &str,
        name: Option<&str>,
        written: &Written,
        node: &Node,
        context: &mut Context<'_>,
    ) {
        let reference = match context.source.reference(file) {
            Ok(reference) => reference,
            Err(error) => return context.unreadable(node, &error),
        };
        providers::note_typescript(file, node, context);
        // A file in Python without a function is a script that prints the prompt.
        let is_python = function::Language::of(file) == Some(function::Language::Python);
        let called = name.or(is_python.then_some("__main__"));
        let named = called.map_or_else(|| reference.clone(), |it| format!("{reference}:{it}"));
        let stem = file.rsplit('/').next().and_then(|it| it.split('.').next()).unwrap_or(file);
        let wanted = name.map_or_else(|| stem.to_owned(), |it| format!("{stem}-{it}"));
        let at = context.at(node);
        context.see(&named, file, node);
        self.add(written, &wanted, Asks::Function(named), at, context);
        if let Some(prompt) = self.prompts.last_mut() {
            prompt.names.push(file.to_owned());
        }
    }

    /// A prompt that is a template or a conversation. `file` is where it was read from.
    fn text(
        &mut self,
        raw: &str,
        written: &Written,
        node: &Node,
        file: Option<&str>,
        context: &mut Context<'_>,
    ) {
        let stem = file.and_then(|it| it.rsplit('/').next()).and_then(|it| it.split('.').next());
        let wanted =
            stem.map_or_else(|| format!("prompt-{}", self.prompts.len() + 1), ToOwned::to_owned);
        // No text of a suite is blank, but what becomes of it may be.
        let shown = match raw.trim().is_empty() {
            true => format!("{{{{ {} }}}}", Value::from(raw)),
            false => raw.to_owned(),
        };
        let asks = match filtered(&shown, context).map_or_else(|| chat::read(&shown), Ok) {
            Ok(asks) => asks,
            Err(why) => {
                let what = format!("prompt `{}`: {why}", shortened(raw));
                let advice = "write it without what only promptfoo's templates have";
                return context.lost(node, what, advice);
            }
        };
        let at = context.at(node);
        self.add(written, &wanted, asks, at, context);
        let own = file.and_then(|it| whole_file(it, self.prompts.last()?, context));
        if let Some(prompt) = self.prompts.last_mut() {
            prompt.names.push(raw.to_owned());
            prompt.names.extend(file.map(ToOwned::to_owned));
            prompt.variant.file = own;
        }
    }

    fn add(
        &mut self,
        written: &Written,
        wanted: &str,
        asks: Asks,
        at: At,
        context: &mut Context<'_>,
    ) {
        let wanted = written.label.as_deref().filter(|it| it.len() <= 60).unwrap_or(wanted);
        let name = context.names.free(&usable_name(wanted));
        context.names.take(&name);
        let names = written.label.iter().chain(&written.id).cloned().chain([name.clone()]);
        self.prompts.push(Prompt {
            names: names.collect(),
            variant: VariantDraft {
                name,
                at,
                comments: Vec::new(),
                asks,
                file: None,
                sampling: written.sampling.clone(),
            },
            response_format: written.response_format.clone(),
        });
    }
}

/// A prompt whose filters are code, if it is one.
fn filtered(raw: &str, context: &mut Context<'_>) -> Option<Asks> {
    let filters = adapters::filters_of(raw)?;
    let all = filters.iter().map(|name| Some((*name, context.filters.get(*name)?)));
    let all: BTreeMap<&str, &String> = all.collect::<Option<_>>()?;
    if all.is_empty() {
        return None;
    }
    let prompt = serde_json::json!({ "template": raw, "filters": all });
    let name = context.adapter_with("filters.mjs", "PROMPT", &prompt);
    Some(Asks::Adapter { name, env: Vec::new() })
}

/// The reference to a file that is the template of a prompt and nothing else.
fn whole_file(file: &str, prompt: &Prompt, context: &mut Context<'_>) -> Option<String> {
    let Asks::Template(template) = &prompt.variant.asks else { return None };
    // One with several prompts is longer, and need not be read again for each.
    let bytes = context.source.find(file).ok()?.metadata().ok()?.len();
    if bytes > template.len() as u64 + 5 {
        return None;
    }
    let text = context.source.text(file).ok()?.text;
    let text = text.strip_suffix('\n').unwrap_or(&text);
    let is_whole = text.strip_suffix('\r').unwrap_or(text) == template;
    context.source.reference(file).ok().filter(|_| is_whole)
}

/// A name that a variant may have.
fn usable_name(wanted: &str) -> String {
    let mut name = String::new();
    for c in wanted.trim().chars().take(60) {
        match c {
            c if c.is_alphanumeric() || "-_.".contains(c) => name.push(c),
            _ if name.ends_with('-') => {}
            _ => name.push('-'),
        }
    }
    let name = name.trim_matches(['-', '.']);
    if name.is_empty() { "prompt".to_owned() } else { name.to_owned() }
}

/// Whether promptfoo looks for a file of this name.
fn may_be_path(raw: &str) -> bool {
    if raw.contains('\n') || raw.len() > 500 {
        return false;
    }
    let (path, _) = function::split_name(raw);
    let suffix = path.rsplit_once('.').map_or("", |it| it.1);
    let is_suffix =
        !suffix.is_empty() && suffix.len() <= 5 && suffix.chars().all(char::is_alphanumeric);
    is_suffix || raw.contains(['*', '/', '\\'])
}

/// Whether a text can only be the name of a file.
fn names_file(text: &str) -> bool {
    const SUFFIXES: &[&str] =
        &["txt", "md", "j2", "json", "jsonl", "yaml", "yml", "csv", "py", "js", "mjs", "cjs", "ts"];
    let suffix = text.rsplit_once('.').map_or("", |it| it.1);
    SUFFIXES.contains(&suffix) && !text.contains(char::is_whitespace)
}

fn shortened(text: &str) -> String {
    let short: String =
        text.chars().take(40).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if short.len() < text.len() { format!("{short}…") } else { short }
}

/// Variables that a template of ours sees beside those of the case.
pub(super) const OURS: &[&str] = &["prompt", "id", "tags", "category", "difficulty", "examples"];

/// The texts of what is asked.
pub(super) fn texts_of(asks: &Asks) -> Vec<String> {
    match asks {
        Asks::Template(text) | Asks::MessagesTemplate(text) => vec![text.clone()],
        Asks::Messages(messages) => {
            template::texts_in(messages).into_iter().map(ToOwned::to_owned).collect()
        }
        Asks::Function(_) | Asks::Adapter { .. } => Vec::new(),
    }
}

/// What is asked, with a variable under another name.
pub(super) fn renamed(asks: &Asks, from: &str, to: &str) -> Asks {
    mapped(asks, &|text| templates::rename(text, from, to))
}

/// What is asked, with each of its texts changed.
pub(super) fn mapped(asks: &Asks, map: &dyn Fn(&str) -> String) -> Asks {
    fn within(value: &Value, map: &dyn Fn(&str) -> String) -> Value {
        match value {
            Value::String(text) => Value::from(map(text)),
            Value::Array(items) => items.iter().map(|it| within(it, map)).collect(),
            Value::Object(table) => Value::Object(
                table.iter().map(|(key, it)| (key.clone(), within(it, map))).collect(),
            ),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }
    match asks {
        Asks::Template(text) => Asks::Template(map(text)),
        Asks::Messages(messages) => Asks::Messages(within(messages, map)),
        Asks::MessagesTemplate(text) => Asks::MessagesTemplate(map(text)),
        Asks::Function(_) | Asks::Adapter { .. } => asks.clone(),
    }
}
