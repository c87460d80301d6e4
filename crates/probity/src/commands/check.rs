//! `probity check`: one detector on one text, or on a stream of them.

mod command;
mod effect;
mod error;
mod evaluation;

use std::fmt::Write as _;

use probity_core::{criteria::JsonLevel, judging::PolicyConfig, visible::safe};
use probity_grade::{
    json::{Extraction, Wanted, extract},
    policy::{BUILTIN_POLICIES, Policies},
    refusal::RefusalRules,
};
use probity_load::suite::Suite;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::rules;
use crate::{
    cli::check::{CheckArgs, CheckCommand, LevelArg, WantedArg},
    diagnostic::underline,
    exit::Exit,
    failure::Failure,
    jsonl::{read_input, span_json, stream},
    printer::Printer,
};

pub(super) fn run(command: CheckCommand, printer: &Printer) -> Result<Exit, Failure> {
    match command {
        CheckCommand::Refusal(args) => refusal(&args, printer),
        CheckCommand::Json { args, level, want } => {
            let suite = rules::load_suite(args.suite.as_deref(), printer)?;
            let level = level.map_or(suite.rules.json_level, json_level);
            check_json(&args, level, wanted(want), printer)
        }
        CheckCommand::Policy { args, policy } => check_policy(&args, &policy, printer),
        CheckCommand::Command(args) => command::run(&args, printer),
        CheckCommand::Evaluation { files } => evaluation::run(&files, printer),
        CheckCommand::Error { args, backend, status, exit_code, signal } => {
            let given = error::Given { backend, status, exit_code, signal };
            error::run(&args, &given, printer)
        }
    }
}

/// A request of the detectors that look at one text.
#[derive(Deserialize)]
struct TextRequest {
    text: String,
}

fn refusal(args: &CheckArgs, printer: &Printer) -> Result<Exit, Failure> {
    let rules = rules::load(args.suite.as_deref(), printer)?;
    let rules: &RefusalRules = rules.refusal();
    if args.jsonl {
        return stream(printer, |TextRequest { text }| {
            let found = rules.detect(&text);
            object(json!({
                "refusal": found.is_some(),
                "phrase": found.as_ref().map(|it| &it.phrase),
                "span": found.as_ref().map(|it| span_json(&it.span)),
            }))
        });
    }
    let text = text_of(args, printer)?;
    match rules.detect(&text) {
        Some(found) => {
            let label = format!("declines ({})", found.rule);
            show(printer, &underline("a refusal", &text, &[(found.span, label)]))
        }
        None => show(printer, "no refusal"),
    }
}

fn check_json(
    args: &CheckArgs,
    level: JsonLevel,
    wanted: Wanted,
    printer: &Printer,
) -> Result<Exit, Failure> {
    if args.jsonl {
        return stream(printer, |TextRequest { text }| {
            let Extraction { value, steps, error, .. } = extract(&text, level, wanted);
            let value = value.filter(|value| wanted.accepts(value));
            let steps: Vec<&str> = steps.iter().map(|step| step.as_str()).collect();
            object(json!({
                "value": value,
                "steps": steps,
                "error_message": error.map(|error| error.to_string()),
            }))
        });
    }
    let text = text_of(args, printer)?;
    let found = extract(&text, level, wanted);
    let mut answer = String::new();
    if let Some(error) = &found.error {
        let end = text.ceil_char_boundary(error.offset + 1);
        let start = text.floor_char_boundary(error.offset);
        let mark = [(start..end.max(start), error.kind.to_string())];
        let _ = writeln!(answer, "{}", underline("not strict JSON", &text, &mark));
    }
    match &found.value {
        Some(value) if !wanted.accepts(value) => {
            let _ = write!(answer, "the text is JSON, but not an {}", wanted.as_str());
        }
        Some(value) => {
            let steps: Vec<&str> = found.steps.iter().map(|step| step.as_str()).collect();
            if !steps.is_empty() {
                let _ = writeln!(answer, "read with: {}", steps.join(", "));
            }
            let _ = write!(answer, "{}", safe(&format!("{value:#}")));
        }
        None => answer += "no JSON value",
    }
    for duplicate in &found.duplicate_keys {
        let _ = write!(answer, "\nrepeated: {}", safe(&duplicate.pointer));
    }
    show(printer, &answer)
}

fn check_policy(args: &CheckArgs, names: &[String], printer: &Printer) -> Result<Exit, Failure> {
    let suite = rules::load_suite(args.suite.as_deref(), printer)?;
    let policies = chosen_policies(&suite, names)?;
    if args.jsonl {
        return stream(printer, |TextRequest { text }| {
            let hits: Vec<Value> = policies
                .scan(&text)
                .iter()
                .map(|hit| {
                    json!({ "policy": hit.policy, "rule": hit.rule, "span": span_json(&hit.span) })
                })
                .collect();
            object(json!({ "hits": hits }))
        });
    }
    let text = text_of(args, printer)?;
    let hits = policies.scan(&text);
    if hits.is_empty() {
        return show(printer, "no policy is broken");
    }
    let marks: Vec<_> = hits
        .iter()
        .map(|hit| (hit.span.clone(), format!("{}: {}", hit.policy, hit.rule)))
        .collect();
    let count = marks.len();
    let title = format!("{count} {}", if count == 1 { "hit" } else { "hits" });
    show(printer, &underline(&title, &text, &marks))
}

/// The named policies, from the suite file first; without names all of the suite's, or all built-in.
fn chosen_policies(suite: &Suite, names: &[String]) -> Result<Policies, Failure> {
    let builtin = |name: &str| PolicyConfig {
        name: name.to_owned(),
        builtin: Some(name.to_owned()),
        ..PolicyConfig::default()
    };
    let configs: Vec<PolicyConfig> = match names {
        [] if suite.rules.policies.is_empty() => {
            BUILTIN_POLICIES.iter().map(|it| builtin(it)).collect()
        }
        [] => suite.rules.policies.clone(),
        names => names
            .iter()
            .map(|name| {
                let own = suite.rules.policies.iter().find(|it| it.name == *name).cloned();
                own.or_else(|| BUILTIN_POLICIES.contains(&name.as_str()).then(|| builtin(name)))
                    .ok_or_else(|| {
                        Failure::new(format!("unknown policy `{name}`"))
                            .hint(format!("built-in policies are {}", BUILTIN_POLICIES.join(", ")))
                    })
            })
            .collect::<Result<_, _>>()?,
    };
    let mut problems = Vec::new();
    Policies::compile(&configs, &mut problems).ok_or_else(|| {
        let message = problems.first().map_or("", |problem| problem.message.as_str());
        Failure::new(format!("the policies cannot be used: {message}"))
    })
}

fn json_level(level: LevelArg) -> JsonLevel {
    match level {
        LevelArg::Strict => JsonLevel::Strict,
        LevelArg::Lenient => JsonLevel::Lenient,
        LevelArg::Repair => JsonLevel::Repair,
    }
}

fn wanted(want: WantedArg) -> Wanted {
    match want {
        WantedArg::Any => Wanted::Any,
        WantedArg::Object => Wanted::Object,
        WantedArg::Array => Wanted::Array,
    }
}

fn text_of(args: &CheckArgs, printer: &Printer) -> Result<String, Failure> {
    match &args.text {
        Some(text) => Ok(text.clone()),
        None => read_input(printer),
    }
}

fn show(printer: &Printer, text: &str) -> Result<Exit, Failure> {
    printer.show_styled(&format!("{text}\n"))?;
    Ok(Exit::Success)
}

/// The fields of an object that `json!` made.
fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    }
}
