//! The suite file: what to run, against what, and how to judge it.
//!
//! This version reads what judging needs. The parts that say what to run are
//! known by name and left alone.

use std::{fs, path::Path};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    case::{Fields, Findings},
    criteria::{CriteriaProblem, JsonLevel},
    dataset,
    located::{Node, NodeValue},
    problem::{Problem, Severity as ProblemSeverity, Source},
};

/// How replies are judged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Suite {
    /// The policies a reply must not break, in file order.
    pub policies: Vec<PolicyConfig>,
    /// What counts as a refusal.
    pub refusal: RefusalConfig,
    /// How much is forgiven when JSON is read out of a reply.
    pub json_level: JsonLevel,
    /// Rules of the error classifier that go before its own, as TOML.
    pub error_rules: Option<String>,
    /// How shell commands are judged.
    pub shell: ShellConfig,
}

/// How shell commands are judged. What its parts mean is known to the crate that judges.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShellConfig {
    /// From which risk on a command counts as unsafe.
    pub level: Option<String>,
    /// The edition of the standard that commands are held against.
    pub posix_edition: Option<String>,
    /// Safety rules, each a table.
    pub rules: Vec<Value>,
    /// Commands that are allowed whatever the rules say, each a table.
    pub allow: Vec<Value>,
}

/// A named policy: a reply that contains any of these breaks it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PolicyConfig {
    /// What it is called in results.
    pub name: String,
    /// How grave a breach is.
    pub severity: PolicySeverity,
    /// Whole words, whatever the case of their letters.
    pub words: Vec<String>,
    /// Text, to the letter.
    pub substrings: Vec<String>,
    /// Regular expressions.
    pub regexes: Vec<String>,
    /// One of the policies that come with the program.
    pub builtin: Option<String>,
}

/// How grave a breach of a policy is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PolicySeverity {
    /// Worth knowing.
    Low,
    /// Worth a look.
    Medium,
    /// Not to be shipped.
    #[default]
    High,
    /// Not to be shown.
    Critical,
}

impl PolicySeverity {
    /// All of them, the least first.
    pub const ALL: [Self; 4] = [Self::Low, Self::Medium, Self::High, Self::Critical];

    /// The name used in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

/// What counts as a refusal beside, or instead of, the phrases that come with the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefusalConfig {
    /// Phrases that refuse.
    pub phrases: Vec<String>,
    /// Phrases that never refuse, even where they look like it.
    pub allow: Vec<String>,
    /// Whether `phrases` stand instead of the built-in ones.
    pub replace: bool,
    /// Whether to search the whole reply and not only its opening.
    pub anywhere: bool,
}

/// Says what is wrong with rules that have to be compiled; `probity-grade` does.
pub type SuiteCheck<'a> = &'a dyn Fn(&Suite) -> Vec<CriteriaProblem>;

impl Suite {
    /// Reads a suite file. Warnings come with it; with an error there is no suite.
    pub fn load(path: &Path, check: SuiteCheck<'_>) -> (Option<Self>, Vec<Problem>) {
        let file: std::sync::Arc<str> = path.display().to_string().into();
        let problem = |message: String| Problem {
            severity: ProblemSeverity::Error,
            code: "unreadable",
            message,
            file: file.clone(),
            place: None,
            case_id: None,
            help: None,
        };
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) => {
                return (None, vec![problem(format!("failed to read the suite: {error}"))]);
            }
        };
        let source = Source::file(&text);
        let mut findings = Findings::default();
        let suite = match dataset::parse_toml(&text) {
            Ok(root) => {
                let folder = path.parent().unwrap_or(Path::new(""));
                let suite = decode(&root, folder, &mut findings);
                for CriteriaProblem { path, code, message, help } in check(&suite) {
                    let span = root.nearest(&path).span.clone();
                    findings.error_with_help(code, &span, message, help.unwrap_or_default());
                }
                suite
            }
            Err(error) => {
                let span = error.span().unwrap_or_default();
                findings.error("toml", &span, error.message().replace('\n', "; "));
                Self::default()
            }
        };
        let usable = !findings.any_error();
        let problems = findings.0.into_iter().map(|finding| finding.at(&file, &source)).collect();
        (usable.then_some(suite), problems)
    }
}

fn decode(root: &Node, folder: &Path, findings: &mut Findings) -> Suite {
    const KNOWN: &[&str] = &[
        "version",
        "policies",
        "refusal",
        "json",
        "errors",
        "shell",
        "backends",
        "runners",
        "retry",
        "timeouts",
        "budget",
        "fail_fast",
        "gates",
    ];
    let Some(fields) = Fields::new(root, "a suite", KNOWN, findings) else {
        return Suite::default();
    };
    let (policies, refusal) = (fields.get("policies"), fields.get("refusal"));
    let (json, errors) = (fields.get("json"), fields.get("errors"));
    let shell = fields.get("shell");
    Suite {
        policies: policies.map(|node| decode_policies(node, findings)).unwrap_or_default(),
        refusal: refusal.map(|node| decode_refusal(node, findings)).unwrap_or_default(),
        json_level: json.and_then(|node| decode_json_level(node, findings)).unwrap_or_default(),
        error_rules: errors.and_then(|node| read_error_rules(node, folder, findings)),
        shell: shell.map(|node| decode_shell(node, findings)).unwrap_or_default(),
    }
}

fn decode_policies(node: &Node, findings: &mut Findings) -> Vec<PolicyConfig> {
    const KNOWN: &[&str] = &["name", "severity", "words", "substrings", "regexes", "builtin"];
    let NodeValue::Array(items) = &node.value else {
        let message = format!("`policies` must be a list of tables, not {}", node.kind());
        findings.error("wrong-type", &node.span, message);
        return Vec::new();
    };
    let mut policies: Vec<PolicyConfig> = Vec::with_capacity(items.len());
    for item in items {
        let Some(mut fields) = Fields::new(item, "a policy", KNOWN, findings) else { continue };
        let severities = PolicySeverity::ALL.map(PolicySeverity::as_str);
        let policy = PolicyConfig {
            name: fields.required_text("name").unwrap_or_default(),
            severity: fields
                .one_of("severity", "severity", &severities, |name| {
                    PolicySeverity::ALL.into_iter().find(|it| it.as_str() == name)
                })
                .unwrap_or_default(),
            words: fields.texts("words"),
            substrings: fields.texts("substrings"),
            regexes: fields.texts("regexes"),
            builtin: fields.text("builtin"),
        };
        let empty = policy.words.is_empty()
            && policy.substrings.is_empty()
            && policy.regexes.is_empty()
            && policy.builtin.is_none();
        if empty {
            let message = format!("policy `{}` says nothing", policy.name);
            let help = "give it `words`, `substrings`, `regexes` or `builtin`".to_owned();
            findings.error_with_help("empty-policy", &item.span, message, help);
        } else if policies.iter().any(|earlier| earlier.name == policy.name) {
            let message = format!("policy `{}` is there twice", policy.name);
            findings.error("duplicate-policy", &item.span, message);
        }
        policies.push(policy);
    }
    policies
}

fn decode_refusal(node: &Node, findings: &mut Findings) -> RefusalConfig {
    const KNOWN: &[&str] = &["phrases", "allow", "replace", "anywhere"];
    let Some(mut fields) = Fields::new(node, "`refusal`", KNOWN, findings) else {
        return RefusalConfig::default();
    };
    RefusalConfig {
        phrases: fields.texts("phrases"),
        allow: fields.texts("allow"),
        replace: fields.boolean("replace").unwrap_or_default(),
        anywhere: fields.boolean("anywhere").unwrap_or_default(),
    }
}

fn decode_json_level(node: &Node, findings: &mut Findings) -> Option<JsonLevel> {
    let mut fields = Fields::new(node, "`json`", &["level"], findings)?;
    let names = JsonLevel::ALL.map(JsonLevel::as_str);
    fields.one_of("level", "JSON level", &names, |name| {
        JsonLevel::ALL.into_iter().find(|it| it.as_str() == name)
    })
}

fn decode_shell(node: &Node, findings: &mut Findings) -> ShellConfig {
    const KNOWN: &[&str] = &["level", "posix_edition", "rule", "allow"];
    let Some(mut fields) = Fields::new(node, "`shell`", KNOWN, findings) else {
        return ShellConfig::default();
    };
    ShellConfig {
        level: fields.text("level"),
        posix_edition: fields.digits("posix_edition").map(ToOwned::to_owned),
        rules: tables(&mut fields, "rule"),
        allow: tables(&mut fields, "allow"),
    }
}

/// A list of tables as it stands.
fn tables(fields: &mut Fields<'_, '_>, key: &str) -> Vec<Value> {
    let Some(node) = fields.get(key) else { return Vec::new() };
    match &node.value {
        NodeValue::Array(items) => items.iter().map(Node::to_json).collect(),
        NodeValue::Null
        | NodeValue::Bool(_)
        | NodeValue::Number(_)
        | NodeValue::String(_)
        | NodeValue::Object(_) => {
            let message = format!("`{key}` must be a list of tables, not {}", node.kind());
            fields.findings().error("wrong-type", &node.span, message);
            Vec::new()
        }
    }
}

fn read_error_rules(node: &Node, folder: &Path, findings: &mut Findings) -> Option<String> {
    let mut fields = Fields::new(node, "`errors`", &["rules"], findings)?;
    let name = fields.text("rules")?;
    let span = fields.span("rules");
    match fs::read_to_string(folder.join(&name)) {
        Ok(text) => Some(text),
        Err(error) => {
            findings.error("unreadable", &span, format!("failed to read `{name}`: {error}"));
            None
        }
    }
}
