//! Everything that judging a reply goes by, compiled once for a whole run.

use std::{collections::BTreeSet, sync::Arc};

use probity_core::{
    criteria::{CriteriaProblem, JsonLevel},
    execution::ExecutionUse,
    judging::RuleConfig,
};

use crate::{
    command::ShellRules, errors::ErrorRules, internal::script::Scripts, policy::Policies,
    refusal::RefusalRules,
};

/// The rules of a suite, compiled.
#[derive(Debug)]
pub struct Rules {
    pub(crate) refusal: RefusalRules,
    pub(crate) policies: Policies,
    pub(crate) errors: ErrorRules,
    pub(crate) json_level: JsonLevel,
    pub(crate) shell: ShellRules,
    /// What becomes of commands that reading does not decide.
    pub(crate) execution: ExecutionUse,
    /// Who compiles scripts; without it, none can be used.
    pub(crate) scripts: Option<Arc<dyn Scripts>>,
    /// The scorers that the suite has; none where there is no suite to look at.
    pub(crate) scorers: Option<BTreeSet<String>>,
}

impl Rules {
    /// Compiles the rules of a suite, or says everything that is wrong with them.
    pub fn compile(config: &RuleConfig) -> Result<Self, Vec<CriteriaProblem>> {
        let mut problems = Vec::new();
        let refusal = RefusalRules::compile(&config.refusal, &mut problems);
        let policies = Policies::compile(&config.policies, &mut problems);
        let errors = ErrorRules::compile(config.error_rules.as_deref(), &mut problems);
        let shell = ShellRules::compile(&config.shell, &mut problems);
        match (refusal, policies, errors, shell) {
            (Some(refusal), Some(policies), Some(errors), Some(shell)) if problems.is_empty() => {
                Ok(Self {
                    refusal,
                    policies,
                    errors,
                    json_level: config.json_level,
                    shell,
                    execution: config.grading.execution,
                    scripts: None,
                    scorers: None,
                })
            }
            (_, _, _, _) => Err(problems),
        }
    }

    /// The same, with scripts.
    #[must_use]
    pub fn with_scripts(self, scripts: Arc<dyn Scripts>) -> Self {
        Self { scripts: Some(scripts), ..self }
    }

    /// The same, where these scorers are all there are.
    #[must_use]
    pub fn with_scorers(self, names: impl IntoIterator<Item = String>) -> Self {
        Self { scorers: Some(names.into_iter().collect()), ..self }
    }

    /// What counts as a refusal.
    pub fn refusal(&self) -> &RefusalRules {
        &self.refusal
    }

    /// How shell commands are judged.
    pub fn shell(&self) -> &ShellRules {
        &self.shell
    }

    /// The same, without the other rules.
    pub fn into_shell(self) -> ShellRules {
        self.shell
    }

    /// What errors mean.
    pub fn errors(&self) -> &ErrorRules {
        &self.errors
    }
}

impl Default for Rules {
    /// The rules that hold without a suite file.
    fn default() -> Self {
        Self::compile(&RuleConfig::default()).expect("nothing is wrong with no rules at all")
    }
}
