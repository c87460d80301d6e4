//! Runners: what is evaluated.

use std::{collections::BTreeSet, path::Path, sync::Arc, time::Duration};

use super::{
    AgentConfig, CaseDefaults, PanelConfig, PromptConfig, WrittenAt, agent,
    backend::{BackendConfig, BackendKind, decode_timeout, is_plain},
    defaults, derived, panel, prompt, user,
};
use serde_json::Value;

use crate::{
    bounded,
    case::{Fields, Findings, did_you_mean},
    function, gates,
    settings::Budget,
    skill,
    template::{self, TemplateError},
};
use probity_core::{
    derived::Derivation,
    gate::{Decimal, Gate},
    kind::RunnerKind,
    located::{Node, NodeValue},
    record::{Judging, LaneKey},
};

/// A case is not asked more often.
const MOST_REPEATS: u64 = 10_000;

/// One runner as the file describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct RunnerConfig {
    /// Unique within the suite.
    pub name: String,
    /// What it does with a case.
    pub kind: RunnerKind,
    /// The files of its dataset, as written.
    pub dataset: Vec<String>,
    /// Where that stands in the suite.
    pub dataset_at: Option<WrittenAt>,
    /// What functions that make its cases are told.
    pub dataset_config: Option<Value>,
    /// Variables that functions see that make its prompts and cases, beside the usual ones.
    pub env: Vec<String>,
    /// The names of its backends.
    pub backends: Vec<String>,
    /// Instructions for cases that bring none.
    pub system: Option<String>,
    /// How its cases are asked: its variants, or one way without a name.
    pub prompts: Vec<Arc<PromptConfig>>,
    /// What its cases have in common.
    pub defaults: Arc<CaseDefaults>,
    /// Whether cases may bring code that runs outside of the sandbox of scripts.
    pub allow_code: bool,
    /// How often each case is asked.
    pub repeat: u32,
    /// What this runner may use.
    pub budget: Budget,
    /// Of the repeats of a case so many have to pass, and the case counts once.
    pub min_pass: Option<u32>,
    /// When it has passed.
    pub gates: Vec<Gate>,
    /// Figures that are derived from others.
    pub derived: Vec<Derivation>,
    /// Cases that are known to fail, and the variant or the backend with which they do; none: always.
    pub known_failures: Vec<(String, Option<String>)>,
    /// The version of the tool under test.
    pub tool_version: Option<String>,
    /// How long it may take in all.
    pub timeout: Option<Duration>,
    /// The folders of its skills, as written.
    pub skills: Vec<String>,
    /// Bytes of a skill's companions that a model is shown.
    pub companion_bytes: u64,
    /// Who judges answers.
    pub panel: PanelConfig,
    /// The backend that makes embeddings of texts.
    pub embeddings: Option<String>,
    /// The backend that says how relevant texts are.
    pub reranker: Option<String>,
    /// The backend that plays the user.
    pub user: Option<String>,
    /// Every backend of the suite: a case may name another one to play its user.
    pub known_backends: Vec<String>,
    /// The program that runs its cases, with its arguments.
    pub command: Vec<String>,
    /// How a model works on its cases, if it does so with tools of ours.
    pub agent: Option<AgentConfig>,
}

impl RunnerConfig {
    /// What one of its ways to ask is called: `RUNNER`, or `RUNNER/VARIANT`.
    fn task(&self, prompt: &PromptConfig) -> String {
        let variant = prompt.variant.as_deref();
        LaneKey { runner: &self.name, variant, backend: "" }.task()
    }

    /// The names of its variants.
    pub fn variants(&self) -> impl Iterator<Item = &str> {
        self.prompts.iter().filter_map(|it| it.variant.as_deref())
    }

    /// How the results of one of its lanes are judged.
    pub fn judging(&self, lane: LaneKey<'_>) -> Judging {
        let of_lane = |it: &&(String, Option<String>)| {
            it.1.as_deref().is_none_or(|name| lane.is_meant_by(name))
        };
        Judging {
            gates: self.gates.iter().filter(|it| it.concerns(lane)).cloned().collect(),
            min_pass: self.min_pass,
            errors_as_failures: false,
            max_undecided: Decimal::default(),
            known_failures: self
                .known_failures
                .iter()
                .filter(of_lane)
                .map(|(case_id, _)| case_id.clone())
                .collect(),
            tool_version: self.tool_version.clone(),
            derived: self.derived.clone(),
        }
    }
}

/// What runners are read with.
pub(super) struct Surroundings<'a> {
    pub(super) backends: &'a [BackendConfig],
    /// Those of them that are named to help, as judges for example, and nowhere else.
    pub(super) only_helpers: Vec<&'a str>,
    /// The gates of runners that have none of their own.
    pub(super) gates: Option<&'a Node>,
    /// The derived figures of runners that have none of their own.
    pub(super) derived: Option<&'a Node>,
    /// Who judges, for runners that do not say so.
    pub(super) judge: &'a PanelConfig,
    /// Whether cases may bring code, for runners that do not say so.
    pub(super) allow_code: bool,
    /// Who embeds texts, for runners that do not say so.
    pub(super) embeddings: Option<&'a String>,
    /// Who says how relevant texts are, for runners that do not say so.
    pub(super) reranker: Option<&'a String>,
    /// Who plays the user, for runners that do not say so.
    pub(super) user: Option<&'a String>,
    /// Where paths in the file start from.
    pub(super) folder: &'a Path,
    /// What problems call the file.
    pub(super) file: &'a Arc<str>,
    /// The whole of it.
    pub(super) source: &'a Arc<str>,
}

pub(super) fn decode(
    node: &Node,
    surroundings: &Surroundings<'_>,
    findings: &mut Findings,
) -> Vec<RunnerConfig> {
    let NodeValue::Array(items) = &node.value else {
        let message = format!("`runners` must be a list of tables, not {}", node.kind());
        let help = "begin each runner with [[runners]]".to_owned();
        findings.error_with_help("wrong-type", &node.span, message, help);
        return Vec::new();
    };
    let mut runners: Vec<RunnerConfig> = Vec::with_capacity(items.len());
    for item in items {
        let Some(runner) = decode_runner(item, surroundings, findings) else { continue };
        if runners.iter().any(|earlier| earlier.name == runner.name) {
            let message = format!("runner `{}` is there twice", runner.name);
            findings.error("duplicate-runner", &item.span, message);
        }
        // Lanes are called by both names, and must not be mistaken for each other.
        let is_called = |it: &RunnerConfig, other: &RunnerConfig| {
            let tasks = it.prompts.iter().filter(|it| it.variant.is_some());
            tasks.map(|prompt| it.task(prompt)).find(|task| *task == other.name)
        };
        let others = runners.iter().flat_map(|it| [(it, &runner), (&runner, it)]);
        for task in others.filter_map(|(it, other)| is_called(it, other)) {
            let message = format!("`{task}` is a runner, and a variant of another runner");
            findings.error("duplicate-runner", &item.span, message);
        }
        runners.push(runner);
    }
    runners
}

/// The keys of all runners.
const KNOWN: &[&str] = &[
    "name",
    "kind",
    "backends",
    "system",
    "repeat",
    "min_pass",
    "budget",
    "gates",
    "derived",
    "known_failures",
    "tool_version",
    "timeout",
    "allow_code",
];

/// The keys that only runners of some kinds have.
fn of_some() -> BTreeSet<&'static str> {
    let own = RunnerKind::ALL.into_iter().flat_map(|kind| kind.spec().keys);
    own.chain(defaults::KEYS).copied().collect()
}

fn decode_runner(
    node: &Node,
    surroundings: &Surroundings<'_>,
    findings: &mut Findings,
) -> Option<RunnerConfig> {
    let known: Vec<&str> = KNOWN.iter().copied().chain(of_some()).collect();
    let mut fields = Fields::new(node, "a runner", &known, findings)?;
    let kinds = RunnerKind::ALL.map(RunnerKind::as_str);
    let kind = match fields.get("kind") {
        None => Some(RunnerKind::default()),
        Some(_) => fields.one_of("kind", "kind of runner", &kinds, |name| {
            RunnerKind::ALL.into_iter().find(|it| it.as_str() == name)
        }),
    };
    let name = fields.required_text("name");
    if name.as_deref().is_some_and(|name| !is_plain(name)) {
        let span = fields.span("name");
        let message = "the name of a runner must not have control characters".to_owned();
        fields.findings().error("bad-name", &span, message);
    }
    if let Some(kind) = kind {
        check_keys(node, kind, &mut fields);
    }
    let backends = match kind {
        // A program need not be about any of them.
        Some(kind) if kind.spec().is_external && fields.get("backends").is_none() => Vec::new(),
        Some(_) | None => decode_backends(node, surroundings, &mut fields),
    };
    let (name, kind) = (name?, kind?);
    let known = surroundings.backends;
    let of_panel = panel::Context {
        keys: &panel::Keys::OF_RUNNER,
        backends: known,
        usual: surroundings.judge,
        file: surroundings.file,
        source: surroundings.source,
    };
    let panel = panel::decode(&of_panel, &mut fields);
    if kind.spec().compares && panel.judges.len() > 1 {
        let message = "pairs of answers have one judge: name it with `judge`".to_owned();
        fields.findings().error("bad-value", &node.span, message);
    }
    let user = user::decode(known, &mut fields);
    let agent = agent::decode(kind, &mut fields, surroundings.folder);
    // `true` asks for the usual ones, which are those of the suite where it has some.
    let is_usual = |node: &&Node| node.value == NodeValue::Bool(true);
    let own = fields.get("gates");
    let prompts = prompt::decode(&mut fields, surroundings);
    let variants: Vec<&str> = prompts.iter().filter_map(|it| it.variant.as_deref()).collect();
    let gates = own.filter(|it| !is_usual(it)).or(surroundings.gates).or(own);
    let derived = fields.get("derived").or(surroundings.derived);
    let derived = derived::decode(derived, fields.findings());
    let names = Names { variants: &variants, backends: &backends, derived: &derived };
    let gates = gates::decode(gates, kind, &names, fields.findings());
    let known_failures = decode_known_failures(surroundings.folder, &names, &mut fields);
    let runner = RunnerConfig {
        name,
        kind,
        dataset: fields.texts("dataset"),
        dataset_at: fields
            .get("dataset")
            .map(|node| surroundings.place(node, "`dataset` of the runner".to_owned())),
        dataset_config: decode_dataset_config(&mut fields),
        env: fields.texts("env"),
        system: fields.get("system").and_then(Node::as_str).map(ToOwned::to_owned),
        defaults: defaults::decode(&mut fields, user.part, agent.as_ref(), surroundings),
        allow_code: fields.boolean("allow_code").unwrap_or(surroundings.allow_code),
        repeat: fields
            .count("repeat", 1..=MOST_REPEATS)
            .and_then(|repeat| u32::try_from(repeat).ok())
            .unwrap_or(1),
        budget: decode_budget(&mut fields),
        min_pass: fields
            .count("min_pass", 1..=MOST_REPEATS)
            .and_then(|least| u32::try_from(least).ok()),
        gates,
        derived,
        known_failures,
        tool_version: fields.text("tool_version"),
        timeout: decode_timeout(&mut fields),
        skills: fields.texts("skills"),
        companion_bytes: fields
            .count("companion_bytes", 1..=1 << 30)
            .unwrap_or(skill::COMPANION_BYTES),
        panel,
        embeddings: decode_embeddings(known, &mut fields)
            .or_else(|| surroundings.embeddings.cloned()),
        reranker: decode_reranker(known, &mut fields).or_else(|| surroundings.reranker.cloned()),
        user: user.backend.or_else(|| surroundings.user.cloned()),
        known_backends: known.iter().map(|it| it.name.clone()).collect(),
        command: fields.texts("command"),
        agent,
        prompts,
        backends,
    };
    check_min_pass(&runner, &mut fields);
    check_templates(&runner, surroundings.source, &mut fields);
    Some(runner)
}

/// What functions that make cases are told, where there are some.
fn decode_dataset_config(fields: &mut Fields<'_, '_>) -> Option<Value> {
    let config = fields.get("dataset_config")?.to_json();
    let is_told = fields.texts("dataset").iter().any(|it| function::in_file(it).is_some());
    if !config.is_object() || !is_told {
        let span = fields.span("dataset_config");
        let message = match config.is_object() {
            true => "`dataset_config` is for functions that make cases: `dataset` names none",
            false => "`dataset_config` must be a table",
        };
        fields.findings().error("bad-value", &span, message.to_owned());
        return None;
    }
    Some(config)
}

/// What the lanes of a runner are told apart by.
pub(crate) struct Names<'a> {
    pub(crate) variants: &'a [&'a str],
    pub(crate) backends: &'a [String],
    /// Its derived figures, which gates can be on.
    pub(crate) derived: &'a [Derivation],
}

impl Names<'_> {
    /// Whether a name means any of the lanes.
    fn has(&self, name: &str) -> bool {
        let variants = || self.variants.iter().copied().map(Some).chain([None]);
        let of_backend = |backend: &String| {
            variants().any(|variant| LaneKey { runner: "", variant, backend }.is_meant_by(name))
        };
        self.backends.iter().any(of_backend)
    }
}

fn check_min_pass(runner: &RunnerConfig, fields: &mut Fields<'_, '_>) {
    if runner.min_pass.is_some_and(|least| least > runner.repeat) {
        let span = fields.span("min_pass");
        let message = format!("`min_pass` is more than `repeat`, which is {}", runner.repeat);
        fields.findings().error("bad-value", &span, message);
    }
}

/// Templates have to be such, and an index has to have its place.
fn check_templates(runner: &RunnerConfig, source: &str, fields: &mut Fields<'_, '_>) {
    let has_index = runner.kind.spec().choice.is_some();
    let user = fields.get("user").and_then(|it| it.get("instructions"));
    let texts = [
        ("system", fields.get("system")),
        ("prompt", fields.get("prompt")),
        ("instructions", user),
    ];
    for (key, node) in texts {
        let Some((text, node)) = node.and_then(|it| it.as_str().zip(node)) else { continue };
        if key == "prompt" && function::in_file(text).is_some() {
            continue;
        }
        let whole = node.span.clone();
        if let Err(error) = template::check(text) {
            let span = error.place_in(text, source, &whole);
            let message = format!("`{key}` cannot be used as a template: {error}");
            fields.findings().error("bad-template", &span, message);
        } else if key == "system" && has_index {
            // One text for all cases, so it sees nothing of any of them.
            let unknown = template::undefined_variables(text, |name| name == "index");
            for name in unknown.unwrap_or_default() {
                let error = TemplateError::undefined(text, &name);
                let span = error.place_in(text, source, &whole);
                let message = format!("{} in `system`", error.reason);
                fields.findings().error("undefined-variable", &span, message);
            }
            // Without the index there would be nothing to choose from.
            if !uses_index(text) {
                let message = "`system` does not say where the index goes: `{{ index }}`";
                fields.findings().error("bad-template", &whole, message.to_owned());
            }
        }
    }
}

/// Whether a template has the index in it.
fn uses_index(system: &str) -> bool {
    let all = template::undefined_variables(system, |_| false);
    all.is_ok_and(|names| names.iter().any(|name| name == "index"))
}

/// Keys that a kind of runner needs, and those that would do nothing.
fn check_keys(node: &Node, kind: RunnerKind, fields: &mut Fields<'_, '_>) {
    const NEEDED: &[&str] = &["dataset", "skills", "command"];
    let own = kind.spec().keys;
    let is_empty = |it: &Node| matches!(&it.value, NodeValue::Array(items) if items.is_empty());
    for key in NEEDED.iter().filter(|key| own.contains(key)) {
        if !fields.get(key).is_none_or(is_empty) {
            continue;
        }
        let message = format!("field `{key}` is missing");
        let help = match *key {
            "skills" => "name the folder of the skills",
            "command" => "name the program and its arguments, as a list",
            _ => "name a file of cases, or a list of them",
        };
        fields.findings().error_with_help("missing-field", &node.span, message, help.to_owned());
    }
    // Cases whose answers are judged by what they say are completed.
    let completed = if own.contains(&"assert") { defaults::KEYS } else { &[] };
    let is_asked = |key: &str| kind.spec().acts && defaults::ASKING_KEYS.contains(&key);
    let has = |key: &str| own.contains(&key) || (completed.contains(&key) && !is_asked(key));
    for key in of_some().into_iter().filter(|key| !has(key)) {
        if fields.get(key).is_none() {
            continue;
        }
        let span = fields.span(key);
        let message = format!("a runner of kind `{}` has no `{key}`", kind.as_str());
        fields.findings().error("unknown-field", &span, message);
    }
}

/// A backend that is named has to be there.
pub(super) fn check_backend(
    name: Option<&str>,
    key: &'static str,
    backends: &[BackendConfig],
    fields: &mut Fields<'_, '_>,
) {
    let Some(name) = name else { return };
    let known: Vec<&str> = backends.iter().map(|backend| backend.name.as_str()).collect();
    if !known.contains(&name) {
        let span = fields.span(key);
        let message = format!("there is no backend `{name}`");
        let help = did_you_mean(name, &known)
            .unwrap_or_else(|| format!("describe it under [backends.{name}]"));
        fields.findings().error_with_help("unknown-backend", &span, message, help);
    }
}

/// The backend that a suite or a runner names to embed texts. It has to be one that can.
pub(super) fn decode_embeddings(
    backends: &[BackendConfig],
    fields: &mut Fields<'_, '_>,
) -> Option<String> {
    let help =
        "name one of kind `openai`, which any server with `/v1/embeddings` can be, or `ollama`";
    let helper = Helper { key: "embeddings", can: BackendKind::embeds, does: "embed texts", help };
    decode_helper(&helper, backends, fields)
}

/// The backend that a suite or a runner names to rank texts. It has to be one that can.
pub(super) fn decode_reranker(
    backends: &[BackendConfig],
    fields: &mut Fields<'_, '_>,
) -> Option<String> {
    let help = "name one of kind `openai`, which any server with `/v1/rerank` can be";
    let helper = Helper { key: "reranker", can: BackendKind::reranks, does: "rank texts", help };
    decode_helper(&helper, backends, fields)
}

/// What a backend has to be able to do to be named under a key.
struct Helper {
    key: &'static str,
    can: fn(BackendKind) -> bool,
    does: &'static str,
    help: &'static str,
}

fn decode_helper(
    helper: &Helper,
    backends: &[BackendConfig],
    fields: &mut Fields<'_, '_>,
) -> Option<String> {
    let Helper { key, can, does, help } = *helper;
    let name = fields.text(key)?;
    check_backend(Some(&name), key, backends, fields);
    if let Some(backend) = backends.iter().find(|it| it.name == name && !can(it.kind)) {
        let span = fields.span(key);
        let kind = backend.kind.as_str();
        let message = format!("backend `{name}` of kind `{kind}` cannot {does}");
        fields.findings().error_with_help("bad-value", &span, message, help.to_owned());
    }
    Some(name)
}

/// A list of cases that are known to fail: an id a line, and behind `@` a variant or a backend
/// where they only fail with that.
fn decode_known_failures(
    folder: &Path,
    names: &Names<'_>,
    fields: &mut Fields<'_, '_>,
) -> Vec<(String, Option<String>)> {
    let Some(name) = fields.text("known_failures") else { return Vec::new() };
    let span = fields.span("known_failures");
    let text = match bounded::read_text(&folder.join(&name), bounded::LARGEST_SUITE) {
        Ok(text) => text,
        Err(error) => {
            let message = format!("cannot read the known failures `{name}`: {error}");
            fields.findings().error("unreadable-file", &span, message);
            return Vec::new();
        }
    };
    let mut known = Vec::new();
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or("").trim());
    for (at, line) in lines.enumerate().filter(|(_, line)| !line.is_empty()) {
        let (case_id, lane) = match line.rsplit_once(" @") {
            Some((case_id, lane)) => (case_id.trim_end(), Some(lane.trim())),
            None => (line, None),
        };
        if let Some(lane) = lane.filter(|it| !names.has(it)) {
            let what = if names.variants.is_empty() { "backend" } else { "variant or backend" };
            let message = format!("`{name}` line {}: the runner has no {what} `{lane}`", at + 1);
            fields.findings().error("unknown-backend", &span, message);
        }
        known.push((case_id.to_owned(), lane.map(ToOwned::to_owned)));
    }
    known
}

/// The backends that are named to help, as judges for example, and by no runner as one to evaluate.
/// Where all of them are, they have to judge each other.
pub(super) fn only_helpers<'a>(
    runners: Option<&Node>,
    of_suite: impl Iterator<Item = &'a String>,
    backends: &'a [BackendConfig],
) -> Vec<&'a str> {
    let items = match runners.map(|node| &node.value) {
        Some(NodeValue::Array(items)) => items.as_slice(),
        Some(_) | None => &[],
    };
    let mut helpers: BTreeSet<&str> = of_suite.map(String::as_str).collect();
    for key in ["judge", "embeddings", "reranker", "user"] {
        helpers.extend(items.iter().filter_map(|it| it.get(key)?.as_str()));
    }
    helpers.extend(items.iter().filter_map(|it| it.get("user")?.get("backend")?.as_str()));
    helpers.extend(lists(items, "judges"));
    let is_named = |name: &str| lists(items, "backends").any(|it| it == name);
    let all = backends.iter().map(|backend| backend.name.as_str());
    let only: Vec<&str> = all.filter(|name| helpers.contains(name) && !is_named(name)).collect();
    if only.len() < backends.len() { only } else { Vec::new() }
}

/// The texts of all lists of a name. One text is a list of one.
fn lists<'n>(items: &'n [Node], key: &'static str) -> impl Iterator<Item = &'n str> {
    let lists = items.iter().filter_map(move |it| it.get(key));
    let texts = lists.flat_map(|list| match &list.value {
        NodeValue::Array(names) => names.as_slice(),
        NodeValue::Null
        | NodeValue::Bool(_)
        | NodeValue::Number(_)
        | NodeValue::String(_)
        | NodeValue::Object(_) => std::slice::from_ref(list),
    });
    texts.filter_map(Node::as_str)
}

/// The backends that a runner names; if it names none, all that are there for more than to help.
fn decode_backends(
    node: &Node,
    surroundings: &Surroundings<'_>,
    fields: &mut Fields<'_, '_>,
) -> Vec<String> {
    let Surroundings { backends, only_helpers, .. } = surroundings;
    let all = || {
        let names = backends.iter().map(|backend| backend.name.clone());
        names.filter(|name| !only_helpers.contains(&name.as_str())).collect::<Vec<_>>()
    };
    let named = fields.texts("backends");
    if fields.get("backends").is_none() {
        return all();
    }
    if named.is_empty() {
        let message = "a runner needs a backend".to_owned();
        fields.findings().error("missing-field", &node.span, message);
    }
    let known: Vec<&str> = backends.iter().map(|backend| backend.name.as_str()).collect();
    let span = fields.span("backends");
    for name in named.iter().filter(|name| !known.contains(&name.as_str())) {
        let message = format!("there is no backend `{name}`");
        let help = did_you_mean(name, &known)
            .unwrap_or_else(|| format!("describe it under [backends.{name}]"));
        fields.findings().error_with_help("unknown-backend", &span, message, help);
    }
    named
}

fn decode_budget(fields: &mut Fields<'_, '_>) -> Budget {
    const KNOWN: &[&str] = &["max_cost_usd", "max_calls", "max_tokens"];
    let Some(node) = fields.get("budget") else { return Budget::default() };
    let Some(mut inner) = Fields::new(node, "`budget`", KNOWN, fields.findings()) else {
        return Budget::default();
    };
    let max_cost_usd = inner.number("max_cost_usd").filter(|cost| *cost != 0.0);
    if max_cost_usd.is_some_and(|cost| cost < 0.0) {
        let span = inner.span("max_cost_usd");
        let message = "`max_cost_usd` must not be negative".to_owned();
        inner.findings().error("wrong-type", &span, message);
    }
    Budget {
        max_cost_usd,
        max_calls: inner.count("max_calls", 0..=u64::MAX).filter(|count| *count > 0),
        max_tokens: inner.count("max_tokens", 0..=u64::MAX).filter(|count| *count > 0),
    }
}
