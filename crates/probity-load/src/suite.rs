//! The suite file: what to run, against what, and how to judge it.

mod agent;
mod backend;
mod defaults;
mod derived;
mod examples;
mod given;
mod judging;
mod panel;
mod prompt;
mod runner;
mod scorer;
mod user;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};

pub use agent::AgentConfig;
pub use backend::{
    BackendConfig, BackendKind, CustomBody, CustomHttp, EmbeddedModel, HostPort, Method, Output,
    Price, SandboxedProgram, Transport, UsagePointers, Way,
};
pub(crate) use backend::{decode_response_format, decode_sampling};
pub use defaults::CaseDefaults;
pub use examples::ExamplesConfig;
pub use given::Given;
pub use panel::PanelConfig;
pub use prompt::{PromptConfig, Template, WrittenAt};
pub(crate) use runner::Names;
pub use runner::RunnerConfig;
pub use scorer::{ScorerConfig, Start};

use crate::{
    bounded,
    case::{Fields, Findings},
    dataset,
    settings::{self, Layer, Origin},
    template,
};
use probity_core::{
    criteria::CriteriaProblem,
    judging::RuleConfig,
    located::{Node, NodeValue},
    problem::{Problem, Severity as ProblemSeverity, Source},
};
use serde_json::Value;

/// Everything a suite file says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Suite {
    /// How replies are judged.
    pub rules: RuleConfig,
    /// What can be asked, in file order.
    pub backends: Vec<BackendConfig>,
    /// What is evaluated, in file order.
    pub runners: Vec<RunnerConfig>,
    /// Who judges answers, for runners that do not say so.
    pub judge: PanelConfig,
    /// Programs that score replies, in file order.
    pub scorers: Vec<ScorerConfig>,
    /// Whether runners run at the same time.
    pub parallel: bool,
    /// A file with prices of models, relative to `folder`.
    pub prices: Option<PathBuf>,
    /// The settings that the file makes.
    pub settings: Layer,
    /// The folder that paths in the file start from.
    pub folder: PathBuf,
    /// What the file says of whoever is asked, for those who ask without the file.
    pub parts: Value,
}

/// Says what is wrong with rules that have to be compiled; `probity-grade` does.
pub type SuiteCheck<'a> = &'a dyn Fn(&Suite) -> Vec<CriteriaProblem>;

impl Suite {
    /// Reads a suite file. Warnings come with it; with an error there is no suite.
    pub fn load(path: &Path, check: SuiteCheck<'_>) -> (Option<Self>, Vec<Problem>) {
        Self::load_with(path, (&Given::default(), check))
    }

    /// The same, with what the program brings along that reads it.
    pub fn load_with(
        path: &Path,
        (given, check): (&Given, SuiteCheck<'_>),
    ) -> (Option<Self>, Vec<Problem>) {
        let file: Arc<str> = path.display().to_string().into();
        let text = match bounded::read_text(path, bounded::LARGEST_SUITE) {
            Ok(text) => text,
            Err(error) => return (None, vec![unreadable(&file, &error.to_string())]),
        };
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::parse_with(&text, &file, folder, (given, check))
    }

    /// Reads the text of a suite file. `file` is what problems call it.
    pub fn parse(
        text: &str,
        file: &Arc<str>,
        folder: &Path,
        check: SuiteCheck<'_>,
    ) -> (Option<Self>, Vec<Problem>) {
        Self::parse_with(text, file, folder, (&Given::default(), check))
    }

    /// The same, with what the program brings along that reads it.
    pub fn parse_with(
        text: &str,
        file: &Arc<str>,
        folder: &Path,
        (given, check): (&Given, SuiteCheck<'_>),
    ) -> (Option<Self>, Vec<Problem>) {
        let source = Source::file(text);
        let mut findings = Findings::default();
        let root = tree(text, Path::new(&**file), &mut findings).map(|root| given.put_into(root));
        let unread = root.is_none().then_some(text);
        let suite = match root {
            Some(root) => {
                let origin = |at| Origin::File(file.to_string(), source.line(at));
                let suite =
                    decode(&root, &File { name: file, text, folder }, &origin, &mut findings);
                for CriteriaProblem { path, code, message, help } in check(&suite) {
                    let span = root.nearest(&path).span.clone();
                    findings.error_with_help(code, &span, message, help.unwrap_or_default());
                }
                suite
            }
            None => Self::default(),
        };
        let usable = !findings.any_error();
        let mut problems: Vec<Problem> =
            findings.0.into_iter().map(|finding| finding.at(file, &source)).collect();
        hide_keys(&mut problems, unread);
        (usable.then_some(suite), problems)
    }

    /// The backend of a name.
    pub fn backend(&self, name: &str) -> Option<&BackendConfig> {
        self.backends.iter().find(|backend| backend.name == name)
    }
}

/// The names that a suite file has where none is given, the first one first.
pub const USUAL_FILES: [&str; 3] = ["probity.toml", "probity.yaml", "probity.yml"];

/// The suite file of the working directory: the first that exists of [`USUAL_FILES`], or else
/// the first of them.
pub fn usual_file() -> &'static Path {
    let mut files = USUAL_FILES.iter().map(Path::new);
    files.find(|path| path.exists()).unwrap_or(Path::new(USUAL_FILES[0]))
}

/// The parts of a file that say how calls are made. Keys do not stand there: a suite names the variables that hold them.
fn parts(root: &Node) -> Value {
    const PARTS: [&str; 4] = ["backends", "scorers", "timeouts", "scorer_memory_mib"];
    let entries = root.entries().iter().filter(|it| PARTS.contains(&it.key.as_str()));
    Value::Object(entries.map(|it| (it.key.clone(), it.node.to_json())).collect())
}

/// What a suite file says, in TOML unless its name says YAML.
fn tree(text: &str, file: &Path, findings: &mut Findings) -> Option<Node> {
    if dataset::Format::of_path(file) != Some(dataset::Format::Yaml) {
        let error = match dataset::parse_toml(text) {
            Ok(root) => return Some(root),
            Err(error) => error,
        };
        let span = error.span().unwrap_or_default();
        findings.error("toml", &span, error.message().replace('\n', "; "));
        return None;
    }
    let root = match dataset::parse_yaml(text) {
        Ok(root) => root,
        Err(error) => {
            findings.error("yaml", &error.span, error.message);
            return None;
        }
    };
    refuse_repeated(&root, findings);
    (!findings.any_error()).then(|| without_empty(root))
}

/// Names of YAML tables that stand there twice; TOML's parser refuses them by itself.
fn refuse_repeated(node: &Node, findings: &mut Findings) {
    // Only for its errors.
    if let NodeValue::Object(entries) = &node.value {
        let _ = Fields::open(node, "a table", findings);
        entries.iter().for_each(|entry| refuse_repeated(&entry.node, findings));
    }
    node.items().iter().for_each(|item| refuse_repeated(item, findings));
}

/// The suite without the parts that are empty, such as `gates:` with nothing but comments below.
fn without_empty(mut root: Node) -> Node {
    match &mut root.value {
        NodeValue::Object(entries) => entries.retain(|it| it.node.value != NodeValue::Null),
        // A file without anything in it is an empty suite, as in TOML.
        NodeValue::Null => root.value = NodeValue::Object(Vec::new()),
        NodeValue::Bool(_) | NodeValue::Number(_) | NodeValue::String(_) | NodeValue::Array(_) => {}
    }
    root
}

/// Shows nothing of a line with a key in it but the name of the key. In a file that could not be
/// read, the words of a line tell whether there is one.
fn hide_keys(problems: &mut [Problem], unread: Option<&str>) {
    let line = |it: &Problem| it.place.as_ref().map(|place| place.line);
    let is_key = |it: &&Problem| it.code == backend::KEY_IN_FILE;
    let mut with_keys: BTreeSet<usize> = problems.iter().filter(is_key).filter_map(line).collect();
    let lines = unread.unwrap_or_default().lines().zip(1..);
    with_keys.extend(lines.filter(|(text, _)| backend::may_hold_key(text)).map(|(_, line)| line));
    for problem in problems {
        let Some(place) = problem.place.as_mut().filter(|it| with_keys.contains(&it.line)) else {
            continue;
        };
        let name = match problem.code {
            backend::KEY_IN_FILE => &place.source[place.highlight.clone()],
            // What it is about may hold the key.
            _ => "",
        };
        let before = match name {
            "" => String::new(),
            _ => " ".repeat(place.source[..place.highlight.start].chars().count()),
        };
        place.highlight = before.len()..before.len() + name.len();
        place.source = before + name;
    }
}

fn unreadable(file: &Arc<str>, why: &str) -> Problem {
    Problem {
        severity: ProblemSeverity::Error,
        code: "unreadable",
        message: format!("failed to read the suite: {why}"),
        file: file.clone(),
        place: None,
        case_id: None,
        help: None,
    }
}

/// The file that a suite is read from.
struct File<'a> {
    name: &'a Arc<str>,
    text: &'a str,
    folder: &'a Path,
}

/// The keys of a suite that are not settings.
const KNOWN: &[&str] = &[
    "version",
    "policies",
    "refusal",
    "json",
    "errors",
    "shell",
    "grading",
    "backends",
    "runners",
    "prices",
    "gates",
    "derived",
    "judge",
    "embeddings",
    "reranker",
    "user",
    "parallel",
    "scorers",
    "allow_code",
];

fn decode(
    root: &Node,
    file: &File<'_>,
    origin: &dyn Fn(usize) -> Origin,
    findings: &mut Findings,
) -> Suite {
    let File { name, text, folder } = *file;
    let known: Vec<&str> =
        KNOWN.iter().chain(settings::TABLES).copied().chain(settings::plain_names()).collect();
    let Some(mut fields) = Fields::new(root, "a suite", &known, findings) else {
        return Suite::default();
    };
    let (policies, refusal) = (fields.get("policies"), fields.get("refusal"));
    let (json, errors) = (fields.get("json"), fields.get("errors"));
    let (backends, runners) = (fields.get("backends"), fields.get("runners"));
    let shell = fields.get("shell");
    let grading = fields.get("grading");
    let scorers = fields.get("scorers");
    check_version(&mut fields);
    let prices = fields.text("prices").map(|name| folder.join(name));
    let parallel = fields.boolean("parallel").unwrap_or(false);
    let allow_code = fields.boolean("allow_code").unwrap_or(false);
    for table in settings::TABLES {
        if let Some(node) = root.get(table) {
            // Only for its warnings about unknown names.
            let names = settings::names_in(table);
            let _ = Fields::new(node, &format!("`{table}`"), &names, fields.findings());
        }
    }
    let backends = backends.map(|node| backend::decode(node, folder, fields.findings()));
    let backends = backends.unwrap_or_default();
    let embeddings = runner::decode_embeddings(&backends, &mut fields);
    let reranker = runner::decode_reranker(&backends, &mut fields);
    let user = user::decode_name("user", &backends, &mut fields);
    let source: Arc<str> = Arc::from(text);
    let usual = PanelConfig::default();
    let keys = &panel::Keys::OF_SUITE;
    let panel =
        panel::Context { keys, backends: &backends, usual: &usual, file: name, source: &source };
    let judge = root.get("judge").map(|node| decode_judge(node, &panel, findings));
    let judge = judge.unwrap_or_default();
    let surroundings = runner::Surroundings {
        allow_code,
        only_helpers: runner::only_helpers(
            runners,
            judge.judges.iter().chain(&embeddings).chain(&reranker).chain(&user),
            &backends,
        ),
        backends: &backends,
        gates: root.get("gates"),
        derived: root.get("derived"),
        judge: &judge,
        embeddings: embeddings.as_ref(),
        reranker: reranker.as_ref(),
        user: user.as_ref(),
        folder,
        file: name,
        source: &source,
    };
    let runners = runners.map(|node| runner::decode(node, &surroundings, findings));
    let scorers = scorers.map(|node| scorer::decode(node, &surroundings, findings));
    Suite {
        rules: RuleConfig {
            policies: policies
                .map(|node| judging::decode_policies(node, findings))
                .unwrap_or_default(),
            refusal: refusal
                .map(|node| judging::decode_refusal(node, findings))
                .unwrap_or_default(),
            json_level: json
                .and_then(|node| judging::decode_json_level(node, findings))
                .unwrap_or_default(),
            error_rules: errors.and_then(|node| judging::read_error_rules(node, folder, findings)),
            shell: shell.map(|node| judging::decode_shell(node, findings)).unwrap_or_default(),
            grading: grading
                .map(|node| judging::decode_grading(node, findings))
                .unwrap_or_default(),
        },
        backends,
        runners: runners.unwrap_or_default(),
        judge,
        scorers: scorers.unwrap_or_default(),
        parallel,
        prices,
        settings: Layer::from_file(root, origin, findings),
        folder: folder.to_owned(),
        parts: parts(root),
    }
}

fn decode_judge(node: &Node, context: &panel::Context<'_>, findings: &mut Findings) -> PanelConfig {
    const KNOWN: &[&str] =
        &["backend", "backends", "swap", "combine", "repeats", "structured", "rubric_prompt"];
    match Fields::new(node, "`judge`", KNOWN, findings) {
        Some(mut fields) => panel::decode(context, &mut fields),
        None => PanelConfig::default(),
    }
}

/// The texts of a value have to be templates.
fn check_texts(what: &str, node: &Node, findings: &mut Findings) {
    match &node.value {
        NodeValue::String(text) => {
            if let Err(error) = template::check(text) {
                let message = format!("`{what}` cannot be used as a template: {error}");
                findings.error("bad-template", &node.span, message);
            }
        }
        NodeValue::Array(items) => items.iter().for_each(|it| check_texts(what, it, findings)),
        NodeValue::Object(entries) => {
            entries.iter().for_each(|it| check_texts(what, &it.node, findings));
        }
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) => {}
    }
}

/// A suite of a later kind is not guessed at.
fn check_version(fields: &mut Fields<'_, '_>) {
    let Some(version) = fields.digits("version") else { return };
    let major = version.split('.').next().unwrap_or("");
    if major != "1" {
        let span = fields.span("version");
        let message = format!("suite version `{version}` is not known to this program");
        let help = "this program reads version 1".to_owned();
        fields.findings().error_with_help("newer-version", &span, message, help);
    }
}

#[cfg(test)]
mod tests;
