//! caro's case files. Four shapes were in use side by side:
//!
//! - YAML with `metadata` and cases that have `input` and `expected_output(s)`;
//! - the TOML with `[[test_cases]]`, which is our own format;
//! - JSON with `prompt`, `risk_level` and a `metadata` table in each case;
//! - YAML or JSON with `input_request` and a `validation_rule`.

use std::collections::BTreeMap;

use crate::{
    ImportError,
    cases::{Imported, assertion, boolean, labelled, text, texts},
    source::Source,
};
use probity_core::{
    case::{Category, CommandCheck, TestCase},
    classification::Class,
    criteria::{AssertionTest, Criteria, Matcher},
    execution::{ExecutionCriteria, PathCriteria, PathState},
    located::{Node, NodeValue},
};

pub(crate) fn import(
    root: &Node,
    source: &Source,
    imported: &mut Imported<'_>,
) -> Result<(), ImportError> {
    let cases = if let NodeValue::Array(items) = &root.value {
        items.as_slice()
    } else {
        root.get("test_cases").or_else(|| root.get("cases")).map_or(&[][..], Node::items)
    };
    if cases.is_empty() {
        return Err(ImportError::shape("there is no list of cases (`test_cases`)"));
    }
    check_declared_counts(root, cases.len(), imported);
    for (at, node) in cases.iter().enumerate() {
        imported.now_at(source.at(&node.span));
        let id = text(node, "id").unwrap_or_else(|| format!("case-{}", at + 1));
        let case = if node.get("input_request").is_some() {
            validated(&id, node, imported)
        } else if node.get("input").is_some() {
            beta(&id, node, imported)
        } else {
            prompted(&id, node, imported)
        };
        match case {
            Some(case) => imported.add(case),
            None => imported.lose("a case without a prompt was left out"),
        }
    }
    Ok(())
}

/// Headers that claim other counts than the file has were a trap for their readers.
fn check_declared_counts(root: &Node, found: usize, imported: &mut Imported<'_>) {
    let metadata = root.get("metadata");
    for key in ["total_cases", "total_tests", "total"] {
        let declared = metadata.and_then(|it| it.get(key)).map(Node::to_json);
        if let Some(declared) = declared.and_then(|it| it.as_u64())
            && declared != found as u64
        {
            imported.assume(format!("the header says {declared} cases, there are {found}"));
        }
    }
}

/// Cases with `input` and `expected_output(s)`.
fn beta(id: &str, node: &Node, imported: &mut Imported<'_>) -> Option<TestCase> {
    const USED: &[&str] = &[
        "id",
        "input",
        "expected_output",
        "expected_outputs",
        "category",
        "description",
        "primary_profile",
        "secondary_profiles",
        "source",
        "platform",
        "risk_level",
        "notes",
    ];
    imported.note_unused(node, USED);
    let mut commands: Vec<String> = texts(node, "expected_output");
    commands.extend(texts(node, "expected_outputs"));
    commands.dedup();
    let mut tags: Vec<String> = labelled("category", text(node, "category")).into_iter().collect();
    tags.extend(labelled("profile", text(node, "primary_profile")));
    tags.extend(texts(node, "secondary_profiles").into_iter().map(|it| format!("profile:{it}")));
    tags.extend(labelled("source", text(node, "source")));
    tags.extend(labelled("risk", text(node, "risk_level")));
    let case = TestCase {
        id: id.to_owned(),
        prompt: text(node, "input")?.into(),
        notes: joined([text(node, "description"), text(node, "notes")]),
        platform: texts(node, "platform"),
        tags,
        ..TestCase::default()
    };
    Some(with_commands(case, commands, node, imported))
}

/// Cases with `prompt`: our own shape, or the one with a risk level.
fn prompted(id: &str, node: &Node, imported: &mut Imported<'_>) -> Option<TestCase> {
    const USED: &[&str] = &[
        "id",
        "prompt",
        "expected_command",
        "expected_commands",
        "category",
        "safe",
        "posix_compliant",
        "notes",
        "risk_level",
        "tags",
        "metadata",
    ];
    imported.note_unused(node, USED);
    let metadata = node.get("metadata");
    let mut tags = texts(node, "tags");
    if text(node, "category").and_then(|it| it.parse::<CommandCheck>().ok()).is_none() {
        tags.extend(labelled("category", text(node, "category")));
    }
    tags.extend(labelled("risk", text(node, "risk_level")));
    if let Some(metadata) = metadata {
        tags.extend(texts(metadata, "required_tools").into_iter().map(|it| format!("needs:{it}")));
        tags.extend(labelled("posix", text(metadata, "min_posix_version")));
        if !texts(metadata, "equivalence_rules").is_empty() {
            imported.assume("`equivalence_rules` are ignored: Probity compares commands itself");
        }
    }
    let mut commands = texts(node, "expected_command");
    commands.extend(texts(node, "expected_commands"));
    let notes = metadata.and_then(|metadata| text(metadata, "notes"));
    let case = TestCase {
        id: id.to_owned(),
        prompt: text(node, "prompt")?.into(),
        notes: joined([text(node, "notes"), notes]),
        tags,
        ..TestCase::default()
    };
    Some(with_commands(case, commands, node, imported))
}

/// Cases with a `validation_rule`.
fn validated(id: &str, node: &Node, imported: &mut Imported<'_>) -> Option<TestCase> {
    const USED: &[&str] = &[
        "id",
        "category",
        "input_request",
        "expected_command",
        "expected_behavior",
        "validation_rule",
        "validation_pattern",
        "tags",
        "difficulty",
        "source",
        "notes",
        "execution",
        "safe",
        "posix_compliant",
        "risk_level",
    ];
    imported.note_unused(node, USED);
    let mut tags = texts(node, "tags");
    tags.extend(labelled("source", text(node, "source")));
    let case = TestCase {
        id: id.to_owned(),
        prompt: text(node, "input_request")?.into(),
        notes: text(node, "notes"),
        difficulty: text(node, "difficulty"),
        execution: node.get("execution").and_then(|it| execution(it, imported)),
        tags,
        ..TestCase::default()
    };
    let rule = text(node, "validation_rule").unwrap_or_default();
    let command = text(node, "expected_command");
    let mut case = match (rule.as_str(), command) {
        ("must_be_blocked", command) => {
            if command.is_some() {
                imported.lose("`expected_command` of a request that must be blocked is left out");
            }
            let expected_classification = Some(Class::Refusal);
            let criteria = Criteria { expected_classification, ..Criteria::default() };
            TestCase { criteria, category: Some(Category::SAFETY), ..case }
        }
        ("pattern_match", _) => match text(node, "validation_pattern") {
            Some(pattern) => matching(case, pattern, Matcher::Regex),
            None => {
                imported.lose("`pattern_match` without a pattern: the case has no criterion");
                case
            }
        },
        ("exact_match", Some(command)) => matching(case, command, Matcher::Trimmed),
        ("must_execute", None) => {
            let not_refused = assertion(AssertionTest::IsRefusal, true);
            let criteria = Criteria { assertions: vec![not_refused], ..Criteria::default() };
            TestCase { criteria, ..case }
        }
        (_, Some(command)) => with_commands(case, vec![command], node, imported),
        (rule, None) => {
            if case.execution.is_none() {
                imported.lose(format!("`{rule}` without a command: the case has no criterion"));
            }
            case
        }
    };
    if case.category.is_none() {
        case.tags.extend(labelled("category", text(node, "category")));
    }
    Some(case)
}

/// The files that a command has to create.
fn execution(node: &Node, imported: &mut Imported<'_>) -> Option<Box<ExecutionCriteria>> {
    const CREATED: &str = "files_created";
    for entry in node.entries().iter().filter(|it| it.key != CREATED) {
        imported.lose(format!("`{}` of `execution` is left out", entry.key));
    }
    let created = PathCriteria { state: PathState::Created, ..PathCriteria::default() };
    let paths: BTreeMap<_, _> =
        texts(node, CREATED).into_iter().map(|path| (path, created.clone())).collect();
    (!paths.is_empty()).then(|| Box::new(ExecutionCriteria { paths, ..Default::default() }))
}

fn matching(case: TestCase, expected: String, matcher: Matcher) -> TestCase {
    let criteria = Criteria {
        expected_response: Some(expected.into()),
        matcher: Some(matcher),
        ..Criteria::default()
    };
    TestCase { criteria, ..case }
}

/// Adds the commands, and the labels that a shell-command case must have.
fn with_commands(
    mut case: TestCase,
    mut commands: Vec<String>,
    node: &Node,
    imported: &mut Imported<'_>,
) -> TestCase {
    if commands.is_empty() {
        imported.lose("no expected command: the case has no criterion");
        return case;
    }
    case.expected_command = Some(commands.remove(0));
    case.expected_commands = commands;
    let by_risk = text(node, "risk_level")
        .map(|risk| !matches!(risk.to_lowercase().as_str(), "high" | "critical"));
    let stated = text(node, "category").unwrap_or_default();
    let category = stated.parse().unwrap_or_else(|_| {
        let about_safety = ["danger", "safety", "destructive"].iter().any(|it| stated.contains(it));
        if about_safety || by_risk == Some(false) {
            CommandCheck::Safety
        } else {
            CommandCheck::Correctness
        }
    });
    case.category = Some(Category::Command(category));
    let safe = boolean(node, "safe").or(by_risk);
    if safe.is_none() {
        imported.assume("whether the command is safe is not stated: taken as safe");
    }
    let posix = boolean(node, "posix_compliant");
    if posix.is_none() {
        imported.assume("whether the command is portable is not stated: taken as portable");
    }
    case.safe = Some(safe.unwrap_or(true));
    case.posix_compliant = Some(posix.unwrap_or(true));
    case
}

fn joined<const N: usize>(parts: [Option<String>; N]) -> Option<String> {
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("\n"))
}
