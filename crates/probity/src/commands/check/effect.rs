//! `probity check command --execute`: what two commands do in prepared worlds.

use std::{fs, path::PathBuf, sync::OnceLock};

use probity_offline::check::command::Effects;
use probity_sandbox::{
    Keeper, Limits, Sandbox,
    compare::{Effect, Judge},
    world,
};
use probity_shell::Script;

use crate::{clock, environment::Environment};

/// Executes commands. The sandbox is opened when the first pair needs it.
pub(super) struct InSandbox {
    cache: PathBuf,
    sandbox: OnceLock<Result<Sandbox, String>>,
}

impl InSandbox {
    pub(super) fn new() -> Self {
        let cache = world::cache_folder(&Environment::default().all());
        Self { cache, sandbox: OnceLock::new() }
    }
}

impl Effects for InSandbox {
    fn judge(&self, left: &Script<'_>, right: &Script<'_>) -> Result<Effect, String> {
        let open = || {
            fs::create_dir_all(&self.cache)
                .map_err(|error| format!("failed to create `{}`: {error}", self.cache.display()))?;
            Sandbox::open(&Keeper::this_program()).map_err(|error| error.to_string())
        };
        let sandbox = self.sandbox.get_or_init(open).as_ref().map_err(String::clone)?;
        let (cache, limits) = (&self.cache, Limits::default());
        let judge = Judge { sandbox, cache, limits, now: clock::now() };
        judge.judge(left, right).map_err(|error| chain(&error))
    }
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", chain(source)),
        None => error.to_string(),
    }
}
