//! What a shell command means.

use probity_core::{details, execution::Likeness};
use probity_grade::command::ShellRules;
use probity_sandbox::compare::{self, Effect};
use probity_shell::{
    ParseError, Script, Span,
    equivalence::{self, Equivalence, Verdict},
    extract::{self, Extracted, Step},
    internal::likeness,
    posix::{self, Edition, Violation},
    safety::{self, Assessment, Finding, Judgement, Level, Opaque, Risk},
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A command to be judged.
#[derive(Debug, Deserialize)]
pub struct Request<'t> {
    #[serde(borrow, default)]
    id: Option<&'t RawValue>,
    command: String,
    against: Option<String>,
    level: Option<Level>,
    execute: Option<bool>,
}

impl Request<'_> {
    /// A command, judged by the settings alone.
    pub fn of(command: &str) -> Self {
        Self { id: None, command: command.to_owned(), against: None, level: None, execute: None }
    }
}

impl<'t> super::Request<'t> for Request<'t> {
    fn id(&self) -> Option<&'t RawValue> {
        self.id
    }
}

/// Finds out what two commands do, by running them where they can do no harm.
pub trait Effects: Sync {
    /// What both do, or why that cannot be found out.
    fn judge(&self, left: &Script<'_>, right: &Script<'_>) -> Result<Effect, String>;
}

/// How commands are judged.
#[derive(Clone, Copy)]
pub struct Settings<'r> {
    /// What counts as unsafe.
    pub level: Level,
    /// The standard that is meant.
    pub edition: Edition,
    /// Rules for safety.
    pub rules: &'r ShellRules,
    /// Whether the text is a reply that the command is taken out of.
    pub is_reply: bool,
    /// What commands are compared with, unless a request says it.
    pub against: Option<&'r str>,
    /// Who can run commands; without anybody, none is run.
    pub effects: Option<&'r dyn Effects>,
    /// Whether commands are run that reading does not prove to be equal, unless a request says it.
    pub execute: bool,
}

impl Settings<'_> {
    /// Whether a request among these may ask for commands to be executed.
    pub fn may_execute(&self, requests: &[u8]) -> bool {
        self.effects.is_some()
            && (self.execute || memchr::memmem::find(requests, b"\"execute\"").is_some())
    }

    /// Judges the command of a request.
    pub fn answer(&self, request: &Request<'_>) -> Answer {
        let settings = Self {
            level: request.level.unwrap_or(self.level),
            execute: request.execute.unwrap_or(self.execute),
            ..*self
        };
        let found = if self.is_reply { extract::extract(&request.command) } else { None };
        let text = match &found {
            Some(found) => &*found.command,
            None if self.is_reply => "",
            None => &*request.command,
        };
        let against = request.against.as_deref().or(self.against);
        let mut answer = Judged::new(&settings, text, against).answer();
        answer.extracted = self.is_reply.then(|| found.as_ref().into());
        answer
    }
}

/// A command with everything that was found out about it.
#[derive(Debug)]
pub struct Judged<'t> {
    /// The command.
    pub text: &'t str,
    /// What counts as unsafe.
    pub level: Level,
    /// The standard that is meant.
    pub edition: Edition,
    /// Whether it is unsafe.
    pub is_unsafe: bool,
    /// What it would do; of a text that does not parse, what its readable part would do.
    pub safety: Option<Assessment>,
    /// Where it leaves the standard; or why it does not parse.
    pub posix: Result<posix::Report, ParseError>,
    /// What the comparison came to.
    pub against: Option<Against>,
}

/// The comparison, or which of the two does not parse.
pub type Against = Result<Compared, String>;

/// What reading two commands says about them, and what running them does if that was asked for.
#[derive(Debug)]
pub struct Compared {
    /// What reading says.
    pub read: Equivalence,
    /// What running says; or why it cannot say anything.
    pub run: Option<Result<Effect, String>>,
}

impl Compared {
    fn of(left: &Script<'_>, right: &Script<'_>, effects: Option<&dyn Effects>) -> Self {
        let read = equivalence::compare(left, right);
        // What is proved needs no trial.
        let effects = effects.filter(|_| read.verdict != Verdict::Equal);
        Self { run: effects.map(|it| it.judge(left, right)), read }
    }

    /// How alike they are.
    pub fn likeness(&self) -> Likeness {
        let words = likeness::of_words(&self.read);
        let effects = self.run.iter().flatten().find_map(|it| it.likeness);
        let overall = match self.verdict() {
            details::Equivalence::Equal | details::Equivalence::SameEffect => 1.0,
            details::Equivalence::Different | details::Equivalence::Unknown => {
                likeness::overall(words, effects)
            }
        };
        Likeness { overall, words, effects }
    }

    /// The last word: an execution decides where reading does not.
    pub fn verdict(&self) -> details::Equivalence {
        match (self.read.verdict, &self.run) {
            (Verdict::Equal, _) => details::Equivalence::Equal,
            (Verdict::Different, Some(Ok(effect)))
                if self.read.is_slight && effect.verdict == compare::Verdict::SameEffect =>
            {
                details::Equivalence::SameEffect
            }
            // What is read differs, and no world shows it: neither is certain.
            (Verdict::Different, Some(Ok(effect)))
                if effect.verdict == compare::Verdict::SameEffect =>
            {
                details::Equivalence::Unknown
            }
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
    /// Judges a command, and compares it with another one.
    pub fn new(settings: &Settings<'_>, text: &'t str, against: Option<&str>) -> Self {
        let Settings { level, edition, rules, effects, execute, .. } = *settings;
        let effects = effects.filter(|_| execute);
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

    /// What is answered.
    pub fn answer(self) -> Answer {
        let Judged { text: _, level, edition, is_unsafe, safety, posix, against } = self;
        let equivalence = against.as_ref().map(|it| match it {
            Ok(compared) => compared.verdict(),
            Err(_) => details::Equivalence::Unknown,
        });
        let likeness = against.iter().flatten().map(Compared::likeness).next();
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
                        let decided = read.verdict == Verdict::Unknown
                            || equivalence == Some(details::Equivalence::SameEffect);
                        let unsettled = equivalence == Some(details::Equivalence::Unknown);
                        let reason = match (decided, unsettled) {
                            (true, _) => found.reason.clone(),
                            (false, true) => format!("{}, and no world shows it", read.reason),
                            (false, false) => read.reason,
                        };
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
            likeness,
        }
    }
}

/// What is answered, field by field.
#[derive(Debug, Serialize)]
pub struct Answer {
    /// What was taken out of a reply, where the text is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extracted: Option<ExtractedAnswer>,
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
    /// How alike both are; absent if nothing is compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    likeness: Option<Likeness>,
}

#[derive(Debug, Serialize)]
struct Place {
    span: Span,
    why: String,
}

/// What was found in a reply; without a command where there is none.
#[derive(Debug, Default, Serialize)]
pub struct ExtractedAnswer {
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
