//! Who plays the users of conversations.

use std::sync::Arc;

use probity_core::{case::TestCase, criteria::CriteriaProblem, located::Step};
use probity_load::suite::RunnerConfig;

use crate::backend::Backend;

/// Those who play the users of conversations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Users {
    /// Who does where a case does not say so.
    usual: Option<String>,
    /// All that a case may name.
    known: Arc<[String]>,
    /// Those that cases need, when they are ready.
    ready: Vec<Arc<Backend>>,
}

impl Users {
    pub(super) fn of(runner: &RunnerConfig) -> Self {
        let known = runner.known_backends.clone().into();
        Self { usual: runner.user.clone(), known, ready: Vec::new() }
    }

    /// The backend that plays the user of a case; none if the case has no such user.
    pub(crate) fn name_for<'a>(&'a self, case: &'a TestCase) -> Option<&'a str> {
        let user = case.conversation.user.as_ref()?;
        user.backend.as_deref().or(self.usual.as_deref())
    }

    pub(crate) fn make_ready(&mut self, backend: Arc<Backend>) {
        self.ready.push(backend);
    }

    /// What decides about the answers of the one who plays the user; empty if nobody does.
    pub(super) fn parameters(&self, case: &TestCase) -> &str {
        let name = self.name_for(case);
        let found = self.ready.iter().find(|it| name == Some(it.name.as_str()));
        found.map_or("", |it| it.parameters.as_str())
    }

    /// What is wrong with a case whose user nobody plays.
    pub(super) fn problem(&self, case: &TestCase) -> Option<CriteriaProblem> {
        let user = case.conversation.user.as_ref()?;
        let problem = |path, code, message, help| CriteriaProblem { path, code, message, help };
        match self.name_for(case) {
            None => Some(problem(
                vec![Step::Key("user")],
                "no-user",
                "`user` needs a backend that plays the user".to_owned(),
                Some("name one with `user = \"BACKEND\"` in the suite".to_owned()),
            )),
            Some(name) if user.backend.is_some() && !self.known.iter().any(|it| it == name) => {
                Some(problem(
                    vec![Step::Key("user"), Step::Key("backend")],
                    "unknown-backend",
                    format!("the suite has no backend `{name}`"),
                    Some(format!("it has {}", self.known.join(", "))),
                ))
            }
            Some(_) => None,
        }
    }
}
