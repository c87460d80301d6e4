//! Names that schemas take from the code, so that no list is written down twice.
//!
//! In a file below `schemas`, `"@class"` among the values of an `enum` or of `required` stands
//! for all names of that list. The pattern `"@assertion(latency|cost)"` stands for these
//! assertions in all their spellings, and `"@assertion"` for every assertion.

use probity_core::{
    agent::{AgentTool, Protocol},
    case::CommandCheck,
    classification::{Class, Rule, Verdict},
    consistency::{DivergenceKind, Without},
    criteria::{
        AssertionKind, AssertionTest, ExpectedFormat, FactCategory, JsonLevel, Matcher,
        OTHER_NAMES, ScorerErrors,
    },
    details::{Criterion, Equivalence, JsonStep, RefusalSource, Risk, Trouble},
    evidence::{Choice, Condition, Pair, Tier, Win},
    execution::{EffectVerdict, ExecutionUse, PathState, SandboxNeed},
    failure::ErrorKind,
    gate::{GateStatus, Metric},
    judging::PolicySeverity,
    kind::{AgentEnd, RunnerKind},
    opinion::Combine,
    reading::{ExtractName, Take, Uncounted, Until},
    record::Source,
};
use probity_grade::{policy::BUILTIN_POLICIES, sql_dialects};
use probity_import::Origin;
use probity_load::suite::{BackendKind, Method, Transport, Way};
use serde_json::Value;

/// What stands before the name of a list.
const MARK: char = '@';

/// Tells the names.
type List = fn() -> Vec<String>;

/// The lists by the names that schemas know them by.
pub(super) const LISTS: [(&str, List); 55] = [
    ("agent_end", || of(AgentEnd::ALL.map(AgentEnd::as_str))),
    ("agent_protocol", || of(Protocol::ALL.map(Protocol::as_str))),
    ("agent_tool", || of(AgentTool::ALL.map(AgentTool::as_str))),
    ("assertion", assertions),
    ("backend_function", || backends(BackendKind::is_function)),
    ("backend_kind", || of(BackendKind::ALL.map(BackendKind::as_str))),
    ("backend_program", || backends(BackendKind::is_program)),
    ("backend_server", || backends(|it| it.way() == Way::Server)),
    ("backend_with_env", || backends(|it| it.is_program() || it.is_function())),
    ("backend_with_file", || backends(|it| it.needs() == Some("file"))),
    ("backend_with_model", || backends(|it| it.needs() == Some("model"))),
    ("builtin_policy", || of(BUILTIN_POLICIES.iter().copied())),
    ("choice", || of(Choice::ALL.map(Choice::as_str))),
    ("class", || of(Class::ALL.map(Class::as_str))),
    ("combine", || of(Combine::ALL.map(Combine::as_str))),
    ("command_check", || of(CommandCheck::ALL.map(CommandCheck::as_str))),
    ("condition", || of(Condition::ALL.map(Condition::as_str))),
    ("criterion", || of(Criterion::all().map(Criterion::as_str))),
    ("divergence_kind", || of(DivergenceKind::ALL.map(DivergenceKind::as_str))),
    ("effect_verdict", || of(EffectVerdict::ALL.map(EffectVerdict::as_str))),
    ("equivalence", || of(Equivalence::ALL.map(Equivalence::as_str))),
    ("error_kind", || of(ErrorKind::ALL.map(ErrorKind::as_str))),
    ("execution_use", || of(ExecutionUse::ALL.map(ExecutionUse::as_str))),
    ("expected_format", || of(ExpectedFormat::ALL.map(ExpectedFormat::as_str))),
    ("extraction", || of(ExtractName::ALL.map(ExtractName::as_str))),
    ("fact_category", || of(FactCategory::ALL.map(FactCategory::as_str))),
    ("gate_status", || of(GateStatus::ALL.map(GateStatus::as_str))),
    ("http_method", || of(Method::ALL.map(Method::as_str))),
    ("import_origin", || of(Origin::ALL.map(Origin::as_str))),
    ("json_level", || of(JsonLevel::ALL.map(JsonLevel::as_str))),
    ("json_step", || of(JsonStep::ALL.map(JsonStep::as_str))),
    ("matcher", || of(Matcher::ALL.map(Matcher::as_str))),
    ("matcher_spelling", || spellings(&Matcher::ALL)),
    ("metric", || Metric::all().map(|(_, name)| name).collect()),
    ("path_state", || of(PathState::ALL.map(PathState::as_str))),
    ("policy_severity", || of(PolicySeverity::ALL.map(PolicySeverity::as_str))),
    ("refusal_source", || of(RefusalSource::ALL.map(RefusalSource::as_str))),
    ("risk", || of(Risk::ALL.map(Risk::as_str))),
    ("rule", || of(Rule::ALL.map(Rule::as_str))),
    ("runner_kind", || of(RunnerKind::ALL.map(RunnerKind::as_str))),
    ("sandbox_need", || of(SandboxNeed::ALL.map(SandboxNeed::as_str))),
    ("scorer_errors", || of(ScorerErrors::ALL.map(ScorerErrors::as_str))),
    ("size_comparison", || Pair::SIZES.map(|it| it.to_string()).to_vec()),
    ("skill_tier", || of(Tier::ALL.map(Tier::as_str))),
    ("source", || of(Source::ALL.map(Source::as_str))),
    ("sql_dialect", || of(sql_dialects())),
    ("take", || of(Take::ALL.map(Take::as_str))),
    ("text_matcher_spelling", text_matchers),
    ("transport", || of(Transport::ALL.map(Transport::as_str))),
    ("trouble", || of(Trouble::all().map(Trouble::as_str))),
    ("uncounted", || of(Uncounted::ALL.map(Uncounted::as_str))),
    ("until", || of(Until::ALL.map(Until::as_str))),
    ("verdict", || of(Verdict::ALL.map(Verdict::as_str))),
    ("win", || of(Win::ALL.map(Win::as_str))),
    ("without_command", || of(Without::ALL.map(Without::as_str))),
];

/// Replaces what stands for names by the names.
pub(super) fn fill_in(schema: &mut Value) {
    match schema {
        Value::Object(parts) => {
            for (key, part) in parts {
                match (key.as_str(), &mut *part) {
                    ("enum" | "required", Value::Array(values)) => splice(values),
                    ("pattern", Value::String(pattern)) => {
                        if let Some(filled) = assertion_pattern(pattern) {
                            *pattern = filled;
                        }
                    }
                    (_, part) => fill_in(part),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(fill_in),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn splice(values: &mut Vec<Value>) {
    let filled = values.drain(..).flat_map(|value| {
        match value.as_str().and_then(|text| text.strip_prefix(MARK)) {
            Some(name) => named(name).into_iter().map(Value::String).collect(),
            None => vec![value],
        }
    });
    let mut unique: Vec<Value> = Vec::new();
    // Lists may share names.
    filled.for_each(|value| {
        if !unique.contains(&value) {
            unique.push(value);
        }
    });
    *values = unique;
}

fn named(name: &str) -> Vec<String> {
    let (_, list) = LISTS.iter().find(|(it, _)| *it == name).expect("a test prints every schema");
    list()
}

/// A pattern of assertions: those in brackets, or all. `-` and `_` are the same in them.
fn assertion_pattern(text: &str) -> Option<String> {
    let chosen = text.strip_prefix(MARK)?.strip_prefix("assertion")?;
    let chosen = chosen.strip_prefix('(').and_then(|it| it.strip_suffix(')'));
    let all = AssertionTest::ALL.map(AssertionTest::as_str);
    let mut tests = match chosen {
        Some(chosen) => chosen.split('|').collect(),
        None => all.to_vec(),
    };
    assert!(tests.iter().all(|it| all.contains(it)), "`{text}` names an unknown assertion");
    let others = OTHER_NAMES.iter().filter(|(_, test)| tests.contains(&test.as_str()));
    let others: Vec<&str> = others.map(|(other, _)| *other).collect();
    tests.extend(others);
    Some(format!("^(not[-_])?({})$", tests.join("|").replace('-', "[-_]")))
}

fn of<'n>(names: impl IntoIterator<Item = &'n str>) -> Vec<String> {
    names.into_iter().map(ToOwned::to_owned).collect()
}

fn backends(chosen: fn(BackendKind) -> bool) -> Vec<String> {
    of(BackendKind::ALL.into_iter().filter(|it| chosen(*it)).map(BackendKind::as_str))
}

fn assertions() -> Vec<String> {
    let named = |negated| {
        AssertionTest::ALL.map(|test| AssertionKind { negated, test }.to_string()).into_iter()
    };
    named(false).chain(named(true)).collect()
}

/// The matchers that look at text. The others take any JSON as what is expected.
fn text_matchers() -> Vec<String> {
    let of_text = |it: &Matcher| !matches!(it, Matcher::JsonEqual | Matcher::JsonSubset);
    spellings(&Matcher::ALL.into_iter().filter(of_text).collect::<Vec<_>>())
}

/// Names as we write them, then those that may be written with hyphens as well.
fn spellings(matchers: &[Matcher]) -> Vec<String> {
    let names = matchers.iter().map(|it| it.as_str().to_owned());
    let others = matchers.iter().filter(|it| it.as_str().contains('_'));
    names.chain(others.map(|it| it.as_str().replace('_', "-"))).collect()
}
