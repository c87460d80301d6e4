//! `probity check command`: what a shell command means.

use std::fmt::Write as _;

use probity_core::{details, visible::safe};
use probity_grade::command::ShellRules;
use probity_sandbox::compare::{self, Effect};
use probity_shell::{
    ParseError, Script, Span,
    equivalence::{self, Equivalence, Verdict},
    extract::{self, Extracted, Step},
    posix::{self, Edition, Violation},
    safety::{self, Assessment, Finding, Judgement, Level, Opaque, Risk},
};
use serde::{Deserialize, Serialize};

use super::{effect::Effects, show};
use crate::{
    cli::check::{CheckCommandArgs, EditionArg, SafetyLevelArg},
    commands::rules,
    diagnostic::underline,
    exit::Exit,
    failure::Failure,
    jsonl::{read_input, stream},
    printer::Printer,
};

#[derive(Deserialize)]
struct Request {
    command: String,
    against: Option<String>,
    level: Option<Level>,
    execute: Option<bool>,
}

pub(super) fn run(args: &CheckCommandArgs, printer: &Printer) -> Result<Exit, Failure> {
    let shell = rules::load_shell(args.suite.as_deref(), printer)?;
    let effects = Effects::new();
    let settings = Settings {
        level: args.level.map_or(shell.level(), level),
        edition: args.posix_edition.map_or(shell.edition(), edition),
        rules: &shell,
        effects: args.execute.then_some(&effects),
    };
    if args.jsonl {
        return stream(printer, |request: Request| answer(&settings, &effects, args, &request));
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
    show(printer, judged.for_people(extracted.as_ref()).trim_end())
}

struct Settings<'r> {
    level: Level,
    edition: Edition,
    rules: &'r ShellRules,
    /// Set where commands are to be executed.
    effects: Option<&'r Effects>,
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

fn answer(
    settings: &Settings<'_>,
    effects: &Effects,
    args: &CheckCommandArgs,
    request: &Request,
) -> Answer {
    let settings = Settings {
        level: request.level.unwrap_or(settings.level),
        effects: request.execute.unwrap_or(args.execute).then_some(effects),
        ..*settings
    };
    let found = if args.reply { extract::extract(&request.command) } else { None };
    let text = match &found {
        Some(found) => &*found.command,
        None if args.reply => "",
        None => &*request.command,
    };
    let against = request.against.as_deref().or(args.against.as_deref());
    let mut answer = Judged::new(&settings, text, against).answer();
    answer.extracted = args.reply.then(|| found.as_ref().into());
    answer
}

/// A command with everything that was found out about it.
struct Judged<'t> {
    text: &'t str,
    level: Level,
    edition: Edition,
    is_unsafe: bool,
    /// What it would do; of a text that does not parse, what its readable part would do.
    safety: Option<Assessment>,
    posix: Result<posix::Report, ParseError>,
    against: Option<Against>,
}

/// The comparison, or which of the two does not parse.
type Against = Result<Compared, String>;

/// What reading two commands says about them, and what running them does if that was asked for.
struct Compared {
    read: Equivalence,
    run: Option<Result<Effect, String>>,
}

impl Compared {
    fn of(left: &Script<'_>, right: &Script<'_>, effects: Option<&Effects>) -> Self {
        let read = equivalence::compare(left, right);
        // What is proved needs no trial.
        let effects = effects.filter(|_| read.verdict != Verdict::Equal);
        Self { run: effects.map(|it| it.judge(left, right)), read }
    }

    /// The last word: an execution decides where reading does not.
    fn verdict(&self) -> details::Equivalence {
        match (self.read.verdict, &self.run) {
            (Verdict::Equal, _) => details::Equivalence::Equal,
            (Verdict::Different, _) => details::Equivalence::Different,
            (Verdict::Unknown, Some(Ok(effect))) => match effect.verdict {
                compare::Verdict::SameEffect => details::Equivalence::SameEffect,
                compare::Verdict::Different => details::Equivalence::Different,
                compare::Verdict::Unknown => details::Equivalence::Unknown,
            },
            (Verdict::Unknown, Some(Err(_)) | None) => details::Equivalence::Unknown,
        }
    }
}

impl<'t> Judged<'t> {
    fn new(settings: &Settings<'_>, text: &'t str, against: Option<&str>) -> Self {
        let Settings { level, edition, rules, effects } = *settings;
        let Judgement { script, assessment, is_unsafe } =
            safety::judge(text, rules.safety(), level);
        let against = against.map(|other| match (&script, Script::parse(other)) {
            (Ok(script), Ok(other)) => Ok(Compared::of(script, &other, effects)),
            (Err(error), _) => Err(format!("the command cannot be read: {error}")),
            (Ok(_), Err(error)) => Err(format!("the other command cannot be read: {error}")),
        });
        let posix = script.map(|script| posix::check(&script, edition));
        Judged { text, level, edition, is_unsafe, safety: assessment, posix, against }
    }

    fn answer(self) -> Answer {
        let Judged { text: _, level, edition, is_unsafe, safety, posix, against } = self;
        let equivalence = against.as_ref().map(|it| match it {
            Ok(compared) => compared.verdict(),
            Err(_) => details::Equivalence::Unknown,
        });
        let (mut canonical, mut difference, mut executed, mut effect) = (None, None, None, None);
        let reason = match against {
            None => None,
            Some(Err(reason)) => Some(reason),
            Some(Ok(Compared { read, run })) => {
                canonical = Some(read.canonical);
                difference = read.difference.map(|it| it.to_string());
                executed = run.as_ref().map(Result::is_ok);
                match run {
                    None => Some(read.reason),
                    Some(Err(reason)) => Some(reason),
                    Some(Ok(found)) => {
                        let decided = read.verdict == Verdict::Unknown;
                        let reason = if decided { found.reason.clone() } else { read.reason };
                        effect = Some(found);
                        Some(reason)
                    }
                }
            }
        };
        let parse_error = posix
            .as_ref()
            .err()
            .map(|error| Place { span: error.span().unwrap_or_default(), why: error.to_string() });
        let is_posix = posix.as_ref().is_ok_and(posix::Report::is_compliant);
        let (violations, unknown) = match posix {
            Ok(report) => (report.violations, report.unknown_utilities),
            Err(_) => (Vec::new(), Vec::new()),
        };
        // Of a text that does not parse it is not said that a part is opaque: all of it is.
        let opaque = safety.as_ref().and_then(|it| it.opaque.clone());
        Answer {
            extracted: None,
            parsed: parse_error.is_none(),
            opaque: opaque.filter(|_| parse_error.is_none()),
            parse_error,
            level,
            risk: safety.as_ref().map(|it| it.risk),
            is_unsafe,
            findings: safety.map(|it| it.findings).unwrap_or_default(),
            edition,
            posix: is_posix,
            violations,
            unknown_utilities: unknown.into_iter().map(|it| it.name).collect(),
            equivalence,
            reason,
            canonical,
            difference,
            executed,
            effect,
        }
    }

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
        match &self.posix {
            Ok(report) => self.show_reports(report, &mut out),
            Err(error) => self.show_broken(error, &mut out),
        }
        if let Some(against) = &self.against {
            show_comparison(against, &mut out);
        }
        out
    }

    fn show_broken(&self, error: &ParseError, out: &mut String) {
        let marks: Vec<_> =
            error.span().map(|it| (range(it, self.text), error.to_string())).into_iter().collect();
        let title = format!("unparsable: neither safe nor equal to anything ({error})");
        section(out, &title, self.text, &marks);
        if let Some(safety) = &self.safety {
            let word = if self.is_unsafe { "unsafe" } else { "safe" };
            let title = format!(
                "the readable part is {word} at level {} (risk: {})",
                self.level, safety.risk
            );
            section(out, &title, self.text, &self.marks(safety));
        }
    }

    fn marks(&self, safety: &Assessment) -> Vec<(std::ops::Range<usize>, String)> {
        let found = safety.findings.iter().map(|it| {
            (range(it.span, self.text), format!("{} [{}, {}]", it.why, it.rule, it.risk))
        });
        let opaque = safety
            .opaque
            .iter()
            .map(|it| (range(it.span, self.text), format!("opaque: {}", it.why)));
        found.chain(opaque).collect()
    }

    fn show_reports(&self, posix: &posix::Report, out: &mut String) {
        if let Some(safety) = &self.safety {
            self.show_safety(safety, out);
        }
        let word = if posix.is_compliant() { "POSIX" } else { "not POSIX" };
        let title = format!("{word} (edition {})", self.edition);
        let marks: Vec<_> = posix
            .violations
            .iter()
            .map(|it| (range(it.span, self.text), format!("{} [{}]", it.message, it.rule)))
            .collect();
        section(out, &title, self.text, &marks);
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
        let title = match (self.is_unsafe, &safety.opaque) {
            (true, _) => format!("unsafe at level {} (risk: {})", self.level, safety.risk),
            (false, None) => format!("safe at level {} (risk: {})", self.level, safety.risk),
            (false, Some(_)) => format!(
                "opaque: part of it cannot be judged; the rest is safe at level {} (risk: {})",
                self.level, safety.risk
            ),
        };
        section(out, &title, self.text, &self.marks(safety));
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
        Ok(Compared { read, run }) => {
            let Equivalence { verdict, reason, canonical: [left, right], difference } = read;
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
                Some(caveat) => writeln!(out, "  but with odd names: {caveat}"),
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

/// What is answered, field by field.
#[derive(Serialize)]
struct Answer {
    #[serde(skip_serializing_if = "Option::is_none")]
    extracted: Option<ExtractedAnswer>,
    parsed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    parse_error: Option<Place>,
    level: Level,
    risk: Option<Risk>,
    #[serde(rename = "unsafe")]
    is_unsafe: bool,
    opaque: Option<Opaque>,
    findings: Vec<Finding>,
    edition: Edition,
    posix: bool,
    violations: Vec<Violation>,
    unknown_utilities: Vec<String>,
    equivalence: Option<details::Equivalence>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    canonical: Option<[String; 2]>,
    difference: Option<String>,
    /// Whether both were run; absent if that was not asked for, or is not needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    executed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    effect: Option<Effect>,
}

#[derive(Serialize)]
struct Place {
    span: Span,
    why: String,
}

/// What was found in a reply; without a command where there is none.
#[derive(Default, Serialize)]
struct ExtractedAnswer {
    command: Option<String>,
    steps: Vec<Step>,
    alternatives: usize,
}

impl From<Option<&Extracted<'_>>> for ExtractedAnswer {
    fn from(found: Option<&Extracted<'_>>) -> Self {
        found.map_or_else(Self::default, |it| Self {
            command: Some(it.command.clone().into_owned()),
            steps: it.steps.clone(),
            alternatives: it.alternatives,
        })
    }
}
