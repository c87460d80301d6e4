//! Runners: what is evaluated.

use std::{ops::Range, path::Path, sync::Arc, time::Duration};

use super::{
    JudgeConfig,
    backend::{BackendConfig, decode_timeout, is_plain},
};
use crate::{
    bounded,
    case::{Fields, Findings, did_you_mean},
    function, gates,
    settings::Budget,
    skill,
    template::{self, TemplateError},
};
use probity_core::{
    gate::{Decimal, Gate},
    kind::RunnerKind,
    located::{Node, NodeValue},
    problem::{Problem, Severity, Source},
    record::Judging,
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
    /// The names of its backends.
    pub backends: Vec<String>,
    /// Instructions for cases that bring none.
    pub system: Option<String>,
    /// The prompt, a template over the fields of the case.
    pub prompt: Option<String>,
    /// JavaScript that makes what is checked out of a reply, for cases that bring none.
    pub transform: Option<String>,
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
    /// Cases that are known to fail, and the backend where they do; none: everywhere.
    pub known_failures: Vec<(String, Option<String>)>,
    /// The version of the tool under test.
    pub tool_version: Option<String>,
    /// How long it may take in all.
    pub timeout: Option<Duration>,
    /// The folders of its skills, as written.
    pub skills: Vec<String>,
    /// Bytes of a skill's companions that a model is shown.
    pub companion_bytes: u64,
    /// The backend that judges answers; none for the backend whose answers they are.
    pub judge: Option<String>,
    /// Whether pairs of answers are judged in both orders.
    pub swap: bool,
    /// The program that runs its cases, with its arguments.
    pub command: Vec<String>,
    /// Where its `dataset` stands in the suite.
    pub dataset_at: Option<WrittenAt>,
    /// Where its `system` stands in the suite.
    pub system_at: Option<WrittenAt>,
    /// Where its `prompt` stands in the suite.
    pub prompt_at: Option<WrittenAt>,
    /// Where its `transform` stands in the suite.
    pub transform_at: Option<WrittenAt>,
}

/// Where something stands in the suite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenAt {
    file: Arc<str>,
    source: Arc<str>,
    span: Range<usize>,
}

impl WrittenAt {
    pub(super) fn new(file: &Arc<str>, source: &Arc<str>, span: &Range<usize>) -> Self {
        Self { file: file.clone(), source: source.clone(), span: span.clone() }
    }

    /// What is wrong with a script, at its place.
    pub fn script_problem(&self, key: &str, message: &str) -> Problem {
        self.error("bad-script", format!("`{key}` of the runner cannot be used: {message}"))
    }

    /// What is wrong at its place.
    pub fn error(&self, code: &'static str, message: String) -> Problem {
        Problem {
            severity: Severity::Error,
            code,
            message,
            file: self.file.clone(),
            place: Some(Source::file(&self.source).place(&self.span)),
            case_id: None,
            help: None,
        }
    }

    /// What is wrong with the template, at its place.
    pub fn problem(&self, key: &str, template: &str, error: &TemplateError) -> Problem {
        let Self { file, source, span } = self;
        let span = error.place_in(template, source, span);
        let help = "a runner's template sees `prompt`, `id`, `tags`, `category`, `difficulty` and \
                    the case's `prompt_vars`";
        Problem {
            severity: Severity::Error,
            code: if error.is_undefined { "undefined-variable" } else { "bad-template" },
            message: format!("`{key}` of the runner cannot be filled in: {error}"),
            file: file.clone(),
            place: Some(Source::file(source).place(&span)),
            case_id: None,
            help: error.is_undefined.then(|| help.to_owned()),
        }
    }
}

impl RunnerConfig {
    /// How its results on a backend are judged.
    pub fn judging(&self, backend: &str) -> Judging {
        let of_backend =
            |it: &&(String, Option<String>)| it.1.as_deref().is_none_or(|named| named == backend);
        Judging {
            gates: self.gates.iter().filter(|it| it.concerns(backend)).cloned().collect(),
            min_pass: self.min_pass,
            errors_as_failures: false,
            max_undecided: Decimal::default(),
            known_failures: self
                .known_failures
                .iter()
                .filter(of_backend)
                .map(|(case_id, _)| case_id.clone())
                .collect(),
            tool_version: self.tool_version.clone(),
        }
    }
}

/// What runners are read with.
pub(super) struct Surroundings<'a> {
    pub(super) backends: &'a [BackendConfig],
    /// Those of them that are named as judges, and nowhere else.
    pub(super) only_judges: Vec<&'a str>,
    /// The gates of runners that have none of their own.
    pub(super) gates: Option<&'a Node>,
    /// Who judges, for runners that do not say so.
    pub(super) judge: &'a JudgeConfig,
    /// Whether cases may bring code, for runners that do not say so.
    pub(super) allow_code: bool,
    /// Where paths in the file start from.
    pub(super) folder: &'a Path,
    /// What problems call the file.
    pub(super) file: &'a Arc<str>,
    /// The whole of it.
    pub(super) source: &'a Arc<str>,
}

impl Surroundings<'_> {
    fn place_of(&self, key: &str, fields: &Fields<'_, '_>) -> Option<WrittenAt> {
        Some(WrittenAt::new(self.file, self.source, &fields.get(key)?.span))
    }
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
        runners.push(runner);
    }
    runners
}

fn decode_runner(
    node: &Node,
    surroundings: &Surroundings<'_>,
    findings: &mut Findings,
) -> Option<RunnerConfig> {
    const KNOWN: &[&str] = &[
        "name",
        "kind",
        "dataset",
        "backends",
        "system",
        "prompt",
        "repeat",
        "min_pass",
        "budget",
        "gates",
        "known_failures",
        "tool_version",
        "timeout",
        "skills",
        "companion_bytes",
        "judge",
        "swap",
        "command",
        "transform",
        "allow_code",
    ];
    let mut fields = Fields::new(node, "a runner", KNOWN, findings)?;
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
    let judge = fields.text("judge");
    check_backend(judge.as_deref(), "judge", surroundings.backends, &mut fields);
    // `true` asks for the usual ones, which are those of the suite where it has some.
    let is_usual = |node: &&Node| node.value == NodeValue::Bool(true);
    let own = fields.get("gates");
    let gates = own.filter(|it| !is_usual(it)).or(surroundings.gates).or(own);
    let runner = RunnerConfig {
        name,
        kind,
        dataset: fields.texts("dataset"),
        system: fields.text("system"),
        prompt: fields.text("prompt"),
        transform: fields.text("transform"),
        allow_code: fields.boolean("allow_code").unwrap_or(surroundings.allow_code),
        repeat: fields
            .count("repeat", 1..=MOST_REPEATS)
            .and_then(|repeat| u32::try_from(repeat).ok())
            .unwrap_or(1),
        budget: decode_budget(&mut fields),
        min_pass: fields
            .count("min_pass", 1..=MOST_REPEATS)
            .and_then(|least| u32::try_from(least).ok()),
        gates: gates::decode(gates, kind, &backends, fields.findings()),
        known_failures: decode_known_failures(surroundings.folder, &backends, &mut fields),
        tool_version: fields.text("tool_version"),
        timeout: decode_timeout(&mut fields),
        skills: fields.texts("skills"),
        companion_bytes: fields
            .count("companion_bytes", 1..=1 << 30)
            .unwrap_or(skill::COMPANION_BYTES),
        judge: judge.or_else(|| surroundings.judge.backend.clone()),
        swap: fields.boolean("swap").unwrap_or(surroundings.judge.swap),
        command: fields.texts("command"),
        dataset_at: surroundings.place_of("dataset", &fields),
        system_at: surroundings.place_of("system", &fields),
        prompt_at: surroundings.place_of("prompt", &fields),
        transform_at: surroundings.place_of("transform", &fields),
        backends,
    };
    if runner.min_pass.is_some_and(|least| least > runner.repeat) {
        let span = fields.span("min_pass");
        let message = format!("`min_pass` is more than `repeat`, which is {}", runner.repeat);
        fields.findings().error("bad-value", &span, message);
    }
    check_templates(&runner, surroundings.source, &mut fields);
    Some(runner)
}

/// Templates have to be such, and an index has to have its place.
fn check_templates(runner: &RunnerConfig, source: &str, fields: &mut Fields<'_, '_>) {
    let has_index = runner.kind.spec().choice.is_some();
    for (key, text) in [("system", &runner.system), ("prompt", &runner.prompt)] {
        let Some(text) = text else { continue };
        if key == "prompt" && function::in_file(text).is_some() {
            continue;
        }
        let whole = fields.span(key);
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
    const OF_SOME: &[&str] = &[
        "dataset",
        "prompt",
        "skills",
        "companion_bytes",
        "judge",
        "swap",
        "command",
        "transform",
    ];
    let own = kind.spec().keys;
    let is_missing = |key: &str| {
        let value = node.get(key).map(|it| &it.value);
        value.is_none_or(|it| matches!(it, NodeValue::Array(items) if items.is_empty()))
    };
    for key in NEEDED.iter().filter(|key| own.contains(key) && is_missing(key)) {
        let message = format!("field `{key}` is missing");
        let help = match *key {
            "skills" => "name the folder of the skills",
            "command" => "name the program and its arguments, as a list",
            _ => "name a file of cases, or a list of them",
        };
        fields.findings().error_with_help("missing-field", &node.span, message, help.to_owned());
    }
    for key in OF_SOME.iter().filter(|key| !own.contains(key) && node.get(key).is_some()) {
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

/// A list of cases that are known to fail: an id a line, and a backend behind `@` where
/// they only fail on one.
fn decode_known_failures(
    folder: &Path,
    backends: &[String],
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
        let (case_id, backend) = match line.rsplit_once(" @") {
            Some((case_id, backend)) => (case_id.trim_end(), Some(backend.trim())),
            None => (line, None),
        };
        if let Some(backend) = backend.filter(|it| !backends.iter().any(|known| known == it)) {
            let message =
                format!("`{name}` line {}: the runner has no backend `{backend}`", at + 1);
            fields.findings().error("unknown-backend", &span, message);
        }
        known.push((case_id.to_owned(), backend.map(ToOwned::to_owned)));
    }
    known
}

/// The backends that are named as judges and by no runner as one to evaluate. Where all of
/// them are, they have to judge each other.
pub(super) fn only_judges<'a>(
    runners: Option<&Node>,
    judge: Option<&str>,
    backends: &'a [BackendConfig],
) -> Vec<&'a str> {
    let items = match runners.map(|node| &node.value) {
        Some(NodeValue::Array(items)) => items.as_slice(),
        Some(_) | None => &[],
    };
    let judges = |name: &str| {
        let own = items.iter().filter_map(|it| it.get("judge")?.as_str());
        judge.into_iter().chain(own).any(|it| it == name)
    };
    let is_named = |name: &str| {
        let lists = items.iter().filter_map(|it| match &it.get("backends")?.value {
            NodeValue::Array(names) => Some(names.iter()),
            NodeValue::Null
            | NodeValue::Bool(_)
            | NodeValue::Number(_)
            | NodeValue::String(_)
            | NodeValue::Object(_) => None,
        });
        lists.flatten().any(|it| it.as_str() == Some(name))
    };
    let all = backends.iter().map(|backend| backend.name.as_str());
    let only: Vec<&str> = all.filter(|name| judges(name) && !is_named(name)).collect();
    if only.len() < backends.len() { only } else { Vec::new() }
}

/// The backends that a runner names; if it names none, all that are more than judges.
fn decode_backends(
    node: &Node,
    surroundings: &Surroundings<'_>,
    fields: &mut Fields<'_, '_>,
) -> Vec<String> {
    let Surroundings { backends, only_judges, .. } = surroundings;
    let all = || {
        let names = backends.iter().map(|backend| backend.name.clone());
        names.filter(|name| !only_judges.contains(&name.as_str())).collect::<Vec<_>>()
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
