//! Which versions of programs were executed.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use probity_sandbox::{Command, Limits, Sandbox, execution::End, world::Prepared};
use probity_shell::{Script, internal::mentions::Mentions};

/// How long a program may take to say its version.
const PATIENCE: Duration = Duration::from_secs(2);
/// Programs of a command whose versions are asked for.
const MOST: usize = 12;
/// Characters that are kept of a version.
const LONGEST: usize = 100;

/// What programs said of their versions; nothing where they say none.
#[derive(Debug, Default)]
pub(super) struct Versions(Mutex<BTreeMap<String, Option<String>>>);

impl Versions {
    /// The versions of the programs that a command names. Each is asked once.
    pub(super) fn of(
        &self,
        command: &str,
        sandbox: &Sandbox,
        world: &Prepared,
    ) -> BTreeMap<String, String> {
        let Ok(script) = Script::parse(command) else { return BTreeMap::new() };
        let programs = Mentions::of(&script).programs.into_iter().take(MOST);
        programs.filter_map(|name| Some((name.clone(), self.one(&name, sandbox, world)?))).collect()
    }

    fn one(&self, name: &str, sandbox: &Sandbox, world: &Prepared) -> Option<String> {
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(version) = known().get(name) {
            return version.clone();
        }
        let version = ask(name, sandbox, world);
        known().insert(name.to_owned(), version.clone());
        version
    }
}

/// The first line of what `NAME --version` says.
fn ask(name: &str, sandbox: &Sandbox, world: &Prepared) -> Option<String> {
    let command = Command::Argv(vec![name.to_owned(), "--version".to_owned()]);
    let limits = Limits { time: PATIENCE, cpu: PATIENCE, ..Limits::default() };
    let said = sandbox.execute(world, &command, &limits).ok()?;
    if said.end != End::Exit(0) {
        return None;
    }
    let text = String::from_utf8_lossy(&said.stdout.bytes);
    let line = text.lines().next()?.trim();
    let has_number = line.bytes().any(|it| it.is_ascii_digit());
    has_number.then(|| line.chars().take(LONGEST).collect())
}
