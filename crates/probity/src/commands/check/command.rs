//! `probity check command`: what a shell command means.

use std::fmt::Write as _;

use probity_core::visible::safe;
use probity_offline::check::{
    Detector,
    command::{Against, Compared, Judged, Settings},
};
use probity_sandbox::compare::{self, Effect};
use probity_shell::{
    ParseError, Span,
    equivalence::Equivalence,
    extract::{self, Extracted},
    posix::{self, Edition},
    safety::{Assessment, Level},
};

use super::{effect::InSandbox, show};
use crate::{
    cli::check::{CheckCommandArgs, EditionArg, SafetyLevelArg},
    commands::rules,
    diagnostic::underline,
    exit::Exit,
    failure::Failure,
    jsonl::{read_input, stream},
    printer::Printer,
};

pub(super) fn run(args: &CheckCommandArgs, printer: &Printer) -> Result<Exit, Failure> {
    let shell = rules::load_shell(&args.rules, printer)?;
    let effects = InSandbox::new(args);
    let settings = Settings {
        level: args.level.map_or(shell.level(), level),
        edition: args.posix_edition.map_or(shell.edition(), edition),
        rules: &shell,
        is_reply: args.reply,
        against: args.against.as_deref(),
        effects: Some(&effects),
        execute: args.execute,
    };
    if args.jsonl {
        return stream(&Detector::Command(settings), printer);
    }
    let text = match &args.command {
        Some(text) => text.clone(),
        None => read_input(printer)?,
    };
    let extracted = if args.reply { extract::extract(&text) } else { None };
    let text = match &extracted {
        Some(found) => &*found.command,
        None if args.reply && !args.json => return show(printer, "no command in the reply"),
        None if args.reply => "",
        None => text.trim_end_matches('\n'),
    };
    let judged = Judged::new(&settings, text, args.against.as_deref());
    if args.json {
        let mut answer = judged.answer();
        answer.extracted = args.reply.then(|| extracted.as_ref().into());
        let mut line =
            serde_json::to_string_pretty(&answer).map_err(|error| Failure::output(error.into()))?;
        line.push('\n');
        Printer::emit(&line)?;
        return Ok(Exit::Success);
    }
    show(printer, Shown(&judged).for_people(extracted.as_ref()).trim_end())
}

fn level(level: SafetyLevelArg) -> Level {
    match level {
        SafetyLevelArg::Strict => Level::Strict,
        SafetyLevelArg::Moderate => Level::Moderate,
        SafetyLevelArg::Permissive => Level::Permissive,
    }
}

fn edition(edition: EditionArg) -> Edition {
    match edition {
        EditionArg::Posix2017 => Edition::Posix2017,
        EditionArg::Posix2024 => Edition::Posix2024,
    }
}

/// A judgement as people see it.
struct Shown<'j>(&'j Judged<'j>);

impl Shown<'_> {
    fn for_people(&self, extracted: Option<&Extracted<'_>>) -> String {
        let mut out = String::new();
        if let Some(found) = extracted {
            let _ = writeln!(out, "command: {}", safe(&found.command));
            let steps: Vec<&str> = found.steps.iter().map(|it| it.as_str()).collect();
            if !steps.is_empty() {
                let _ = writeln!(out, "extracted from: {}", steps.join(", "));
            }
            if found.alternatives > 0 {
                let _ =
                    writeln!(out, "the first of {} commands in the reply", found.alternatives + 1);
            }
            out.push('\n');
        }
        match &self.0.posix {
            Ok(report) => self.show_reports(report, &mut out),
            Err(error) => self.show_broken(error, &mut out),
        }
        if let Some(against) = &self.0.against {
            show_comparison(against, &mut out);
        }
        out
    }

    fn show_broken(&self, error: &ParseError, out: &mut String) {
        let marks: Vec<_> = error
            .span()
            .map(|it| (range(it, self.0.text), error.to_string()))
            .into_iter()
            .collect();
        let title = format!("unparsable: neither safe nor equal to anything ({error})");
        section(out, &title, self.0.text, &marks);
        if let Some(safety) = &self.0.safety {
            let word = if self.0.is_unsafe { "unsafe" } else { "safe" };
            let title = format!(
                "the readable part is {word} at level {} (risk: {})",
                self.0.level, safety.risk
            );
            section(out, &title, self.0.text, &self.marks(safety));
        }
    }

    fn marks(&self, safety: &Assessment) -> Vec<(std::ops::Range<usize>, String)> {
        let found = safety.findings.iter().map(|it| {
            (range(it.span, self.0.text), format!("{} [{}, {}]", it.why, it.rule, it.risk))
        });
        let opaque = safety
            .opaque
            .iter()
            .map(|it| (range(it.span, self.0.text), format!("opaque: {}", it.why)));
        found.chain(opaque).collect()
    }

    fn show_reports(&self, posix: &posix::Report, out: &mut String) {
        if let Some(safety) = &self.0.safety {
            self.show_safety(safety, out);
        }
        let word = if posix.is_compliant() { "POSIX" } else { "not POSIX" };
        let title = format!("{word} (edition {})", self.0.edition);
        let marks: Vec<_> = posix
            .violations
            .iter()
            .map(|it| (range(it.span, self.0.text), format!("{} [{}]", it.message, it.rule)))
            .collect();
        section(out, &title, self.0.text, &marks);
        for violation in &posix.violations {
            if let Some(instead) = &violation.instead {
                let _ = writeln!(out, "  instead: {}", safe(instead));
            }
        }
        if !posix.unknown_utilities.is_empty() {
            let mut names: Vec<&str> = posix.unknown_utilities.iter().map(|it| &*it.name).collect();
            names.dedup();
            let _ = writeln!(out, "  not in the standard: {}", safe(&names.join(", ")));
        }
    }

    fn show_safety(&self, safety: &Assessment, out: &mut String) {
        let title = match (self.0.is_unsafe, &safety.opaque) {
            (true, _) => format!("unsafe at level {} (risk: {})", self.0.level, safety.risk),
            (false, None) => format!("safe at level {} (risk: {})", self.0.level, safety.risk),
            (false, Some(_)) => format!(
                "opaque: part of it cannot be judged; the rest is safe at level {} (risk: {})",
                self.0.level, safety.risk
            ),
        };
        section(out, &title, self.0.text, &self.marks(safety));
        for finding in &safety.findings {
            if let Some(safer) = &finding.safer {
                let _ = writeln!(out, "  safer: {}", safe(safer));
            }
        }
    }
}

/// A title, with the marked text below it if anything is marked.
fn section(out: &mut String, title: &str, text: &str, marks: &[(std::ops::Range<usize>, String)]) {
    let _ = match marks {
        [] => writeln!(out, "{}", safe(title)),
        _ => writeln!(out, "{}", underline(title, text, marks)),
    };
}

fn show_comparison(against: &Against, out: &mut String) {
    let mut told = String::new();
    tell_comparison(against, &mut told);
    out.push_str(&safe(&told));
}

fn tell_comparison(against: &Against, out: &mut String) {
    match against {
        Err(reason) => {
            let _ = writeln!(out, "unknown: {reason}");
        }
        Ok(compared @ Compared { read, run }) => {
            let Equivalence { verdict, reason, canonical: [left, right], difference, .. } = read;
            let _ = writeln!(out, "{verdict}: {reason}");
            match left == right {
                true => {
                    let _ = writeln!(out, "  both: {left}");
                }
                false => {
                    let _ = writeln!(out, "  this: {left}\n  that: {right}");
                }
            }
            if let Some(difference) = difference {
                let _ = writeln!(out, "  {difference}");
            }
            if let Some(run) = run {
                tell_effect(run, out);
                let _ = writeln!(out, "{}", compared.likeness());
            }
        }
    }
}

fn tell_effect(run: &Result<Effect, String>, out: &mut String) {
    let _ = match run {
        Err(reason) => writeln!(out, "not executed: {reason}"),
        Ok(Effect { verdict, reason, difference, caveat, .. }) => {
            let word = match verdict {
                compare::Verdict::SameEffect => "the same effect",
                compare::Verdict::Different => "another effect",
                compare::Verdict::Unknown => "the effect is unknown",
            };
            let _ = writeln!(out, "executed: {word}: {reason}");
            if let Some(difference) = difference {
                let _ = writeln!(out, "  {difference}");
            }
            match caveat {
                Some(caveat) => writeln!(out, "  but in an odd world: {caveat}"),
                None => Ok(()),
            }
        }
    };
}

/// A span as a range that is sure to lie in the text.
fn range(span: Span, text: &str) -> std::ops::Range<usize> {
    let end = text.floor_char_boundary(span.end.min(text.len()));
    text.floor_char_boundary(span.start.min(end))..end
}
