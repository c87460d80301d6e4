//! `probity check command --execute`: what two commands do in prepared worlds.

use probity_offline::check::command::Effects;
use probity_run::sandbox::Ground;
use probity_sandbox::compare::Effect;
use probity_shell::Script;

use crate::{cli::check::CheckCommandArgs, environment::Environment};

/// Executes commands. The sandbox is opened when the first pair needs it.
pub(super) struct InSandbox(Ground);

impl InSandbox {
    pub(super) fn new(args: &CheckCommandArgs) -> Self {
        let ground = Ground::new(&Environment::default().all());
        Self(if args.no_cache { ground.without_cache() } else { ground })
    }
}

impl Effects for InSandbox {
    fn judge(&self, left: &Script<'_>, right: &Script<'_>) -> Result<Effect, String> {
        self.0.judge(left, right)
    }
}
