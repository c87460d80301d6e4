//! Everything that judging a reply goes by, compiled once for a whole run.

use probity_core::{
    criteria::{CriteriaProblem, JsonLevel},
    judging::RuleConfig,
};

use crate::{command::ShellRules, errors::ErrorRules, policy::Policies, refusal::RefusalRules};

/// The rules of a suite, compiled.
#[derive(Debug)]
pub struct Rules {
    pub(crate) refusal: RefusalRules,
    pub(crate) policies: Policies,
    pub(crate) errors: ErrorRules,
    pub(crate) json_level: JsonLevel,
    pub(crate) shell: ShellRules,
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
                Ok(Self { refusal, policies, errors, json_level: config.json_level, shell })
            }
            (_, _, _, _) => Err(problems),
        }
    }

    /// What counts as a refusal.
    pub fn refusal(&self) -> &RefusalRules {
        &self.refusal
    }

    /// How shell commands are judged, without the rest.
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
