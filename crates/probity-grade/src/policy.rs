//! Named policies that a reply must not break.
//!
//! A policy fires at places in the text, never on the text as a whole: every hit
//! names its rule and its bytes. Scanning takes time linear in the text, whoever
//! wrote it, and a policy reports at most a hundred places.

mod own;
mod pii;
mod secrets;
mod shell;
#[cfg(test)]
mod tests;

use std::{ops::Range, sync::LazyLock};

use probity_core::{
    criteria::CriteriaProblem,
    details::PolicyHit,
    judging::{PolicyConfig, PolicySeverity},
    located::Step,
};

use crate::policy::own::Own;

/// The policies that come with the program.
pub const BUILTIN_POLICIES: &[&str] = &["secrets", "pii", "dangerous_shell"];

/// How many places one policy reports, the first ones in the text.
///
/// A text made of nothing but hits must not become a report many times its size.
const MOST_HITS: usize = 100;

/// Policies, compiled.
#[derive(Debug)]
pub struct Policies(Vec<Policy>);

/// One policy, compiled.
#[derive(Debug)]
struct Policy {
    name: String,
    severity: Option<PolicySeverity>,
    own: Own,
    builtin: Option<Builtin>,
}

/// What a built-in policy looks for.
#[derive(Clone, Copy, Debug)]
enum Builtin {
    Secrets,
    Pii,
    DangerousShell,
}

/// One place where a rule fires.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Found<R> {
    rule: R,
    span: Range<usize>,
}

impl Policies {
    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Compiles policies, or says everything that is wrong with them.
    pub fn compile(configs: &[PolicyConfig], problems: &mut Vec<CriteriaProblem>) -> Option<Self> {
        let before = problems.len();
        let policies =
            configs.iter().enumerate().map(|(at, it)| Policy::compile(it, at, problems)).collect();
        (problems.len() == before).then_some(Self(policies))
    }

    /// The built-in policy against secrets.
    pub fn secrets() -> &'static Self {
        static SECRETS: LazyLock<Policies> = LazyLock::new(|| {
            Policies(vec![Policy {
                name: "secrets".to_owned(),
                severity: None,
                own: Own::default(),
                builtin: Some(Builtin::Secrets),
            }])
        });
        &SECRETS
    }

    /// Every place where a policy fires, the policies in their order.
    pub fn scan(&self, text: &str) -> Vec<PolicyHit> {
        self.0.iter().flat_map(|policy| policy.scan(text)).collect()
    }
}

impl Policy {
    fn compile(config: &PolicyConfig, at: usize, problems: &mut Vec<CriteriaProblem>) -> Self {
        let PolicyConfig { name, severity, words, substrings, regexes, builtin } = config;
        let mut report = |steps: &[Step<'static>], code, message, help| {
            let path = [Step::Key("policies"), Step::Index(at)].into_iter();
            let path = path.chain(steps.iter().copied()).collect();
            problems.push(CriteriaProblem { path, code, message, help });
        };
        let builtin = builtin.as_deref().and_then(|wanted| {
            let found = Builtin::named(wanted);
            if found.is_none() {
                let message = format!("there is no built-in policy `{wanted}`");
                let help = Some(nearest_builtin(wanted));
                report(&[Step::Key("builtin")], "unknown-policy", message, help);
            }
            found
        });
        let own = Own::compile(words, substrings, regexes, &mut |wrong| {
            let own::Wrong { field, index, code, message } = wrong;
            report(&[Step::Key(field), Step::Index(index)], code, message, None);
        });
        Self { name: name.clone(), severity: Some(*severity), own, builtin }
    }

    fn scan(&self, text: &str) -> impl Iterator<Item = PolicyHit> {
        let mut found = self.own.scan(text);
        match self.builtin {
            Some(Builtin::Secrets) => found.extend(named(secrets::scan(text))),
            Some(Builtin::Pii) => found.extend(named(pii::scan(text))),
            Some(Builtin::DangerousShell) => found.extend(shell::scan(text)),
            None => {}
        }
        // Stable, so that what stands first in the suite comes first where two hits start together.
        found.sort_by_key(|it| (it.span.start, it.span.end));
        found.dedup();
        found.truncate(MOST_HITS);
        found.into_iter().map(|Found { rule, span }| PolicyHit {
            policy: self.name.clone(),
            rule,
            span,
            severity: self.severity.map(|it| it.as_str().to_owned()),
        })
    }
}

impl Builtin {
    fn named(name: &str) -> Option<Self> {
        match name {
            "secrets" => Some(Self::Secrets),
            "pii" => Some(Self::Pii),
            "dangerous_shell" => Some(Self::DangerousShell),
            _ => None,
        }
    }
}

fn named(found: Vec<Found<&'static str>>) -> impl Iterator<Item = Found<String>> {
    found.into_iter().map(|Found { rule, span }| Found { rule: rule.to_owned(), span })
}

fn nearest_builtin(wanted: &str) -> String {
    let wanted = wanted.to_lowercase();
    // With so few names to choose from, how a name begins tells them apart.
    let near = BUILTIN_POLICIES.iter().find(|it| wanted.starts_with(&it[..2]));
    let question = near.map_or(String::new(), |it| format!("did you mean `{it}`? "));
    format!("{question}built-in policies are `{}`", BUILTIN_POLICIES.join("`, `"))
}
