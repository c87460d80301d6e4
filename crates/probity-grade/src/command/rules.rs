//! What a suite file says about shell commands, compiled.

use probity_core::{criteria::CriteriaProblem, judging::ShellConfig, located::Step};
use probity_shell::{
    posix::Edition,
    safety::{Level, RuleError, Rules, UserRules},
};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// How shell commands are judged.
#[derive(Debug, Default)]
pub struct ShellRules {
    own: Option<Rules>,
    level: Level,
    edition: Edition,
}

impl ShellRules {
    /// Compiles what a suite says, or says what is wrong with it.
    pub fn compile(config: &ShellConfig, problems: &mut Vec<CriteriaProblem>) -> Option<Self> {
        let before = problems.len();
        let level = config.level.as_deref().map(|name| {
            let found = [Level::Strict, Level::Moderate, Level::Permissive]
                .into_iter()
                .find(|it| it.name() == name);
            found.unwrap_or_else(|| {
                let message =
                    format!("`{name}` is not a level; `strict`, `moderate` and `permissive` are");
                problems.push(problem(&[Step::Key("level")], message));
                Level::default()
            })
        });
        let edition = config.posix_edition.as_deref().map(|year| {
            year.parse().unwrap_or_else(|error: probity_shell::posix::UnknownEdition| {
                problems.push(problem(&[Step::Key("posix_edition")], error.to_string()));
                Edition::default()
            })
        });
        let user = UserRules {
            rule: tables("rule", &config.rules, problems),
            allow: tables("allow", &config.allow, problems),
        };
        let own = match user.rule.is_empty() && user.allow.is_empty() {
            true => None,
            false => match Rules::compile(&user) {
                Ok(rules) => Some(rules),
                Err(error) => {
                    problems.push(rule_problem(&error, &user));
                    None
                }
            },
        };
        let usable = problems.len() == before;
        usable.then(|| Self {
            own,
            level: level.unwrap_or_default(),
            edition: edition.unwrap_or_default(),
        })
    }

    /// The safety rules.
    pub fn safety(&self) -> &Rules {
        self.own.as_ref().unwrap_or_else(|| Rules::builtin())
    }

    /// From which risk on a command counts as unsafe.
    pub fn level(&self) -> Level {
        self.level
    }

    /// The edition of POSIX that commands are held against.
    pub fn edition(&self) -> Edition {
        self.edition
    }
}

fn tables<T: DeserializeOwned>(
    key: &'static str,
    values: &[Value],
    problems: &mut Vec<CriteriaProblem>,
) -> Vec<T> {
    let mut read = Vec::with_capacity(values.len());
    for (index, value) in values.iter().enumerate() {
        match serde_json::from_value(value.clone()) {
            Ok(table) => read.push(table),
            Err(error) => {
                problems.push(problem(&[Step::Key(key), Step::Index(index)], error.to_string()));
            }
        }
    }
    read
}

fn rule_problem(error: &RuleError, user: &UserRules) -> CriteriaProblem {
    let path = match error {
        RuleError::Rule { rule, field, .. } => {
            let at = user.rule.iter().position(|it| it.id == *rule).unwrap_or_default();
            [Step::Key("rule"), Step::Index(at), Step::Key(field)]
        }
        RuleError::Allow { entry, field, .. } => {
            [Step::Key("allow"), Step::Index(entry.saturating_sub(1)), Step::Key(field)]
        }
    };
    problem(&path, error.to_string())
}

fn problem(path: &[Step<'static>], message: String) -> CriteriaProblem {
    let path = std::iter::once(Step::Key("shell")).chain(path.iter().copied()).collect();
    CriteriaProblem { path, code: "bad-shell-rule", message, help: None }
}
