//! `probity check`: one detector on one text, or on a stream of them.

mod command;
mod effect;
mod error;
mod evaluation;

use std::fmt::Write as _;

use probity_core::{criteria::JsonLevel, judging::PolicyConfig, visible::safe};
use probity_grade::{
    json::{Wanted, extract},
    policy::{BUILTIN_POLICIES, Policies},
    refusal::RefusalRules,
};
use probity_load::suite::Suite;
use probity_offline::check::Detector;

use super::rules;
use crate::{
    cli::{
        check::{CheckArgs, CheckCommand, LevelArg, WantedArg},
        run::RulesArgs,
    },
    diagnostic::underline,
    exit::Exit,
    failure::Failure,
    jsonl::{read_input, stream},
    printer::Printer,
};

pub(super) fn run(command: CheckCommand, printer: &Printer) -> Result<Exit, Failure> {
    match command {
        CheckCommand::Refusal(args) => refusal(&args, printer),
        CheckCommand::Json { args, level, want } => {
            let suite = rules::load_suite(&args.rules, printer)?;
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

fn refusal(args: &CheckArgs, printer: &Printer) -> Result<Exit, Failure> {
    let rules = rules::load(&args.rules, printer)?;
    let rules: &RefusalRules = rules.refusal();
    if args.jsonl {
        return stream(&Detector::Refusal(rules), printer);
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
        return stream(&Detector::Json(level, wanted), printer);
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
    let policies = load_policies(&args.rules, names, printer)?;
    if args.jsonl {
        return stream(&Detector::Policy(&policies), printer);
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

/// The policies that are asked for.
pub(super) fn load_policies(
    args: &RulesArgs,
    names: &[String],
    printer: &Printer,
) -> Result<Policies, Failure> {
    chosen_policies(&rules::load_suite(args, printer)?, names)
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
