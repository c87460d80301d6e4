//! The sandbox of this program and the worlds in it.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::OnceLock,
    time::{Duration, SystemTime},
};

use probity_sandbox::{
    Keeper, Sandbox, Session, World,
    world::{self, Prepared},
};

use crate::clock::now_ms;

/// Opened when it is first needed, and once: a session lasts as long as it wants to.
static SANDBOX: OnceLock<Result<Sandbox, String>> = OnceLock::new();

/// The sandbox, or why there is none on this machine. It blocks when it is asked for the first time.
pub(crate) fn sandbox() -> Result<&'static Sandbox, String> {
    let open = || Sandbox::open(&Keeper::this_program()).map_err(|error| error.to_string());
    SANDBOX.get_or_init(open).as_ref().map_err(String::clone)
}

/// Enters a world that nobody else sees. Trees of worlds are kept in `cache`. It blocks.
pub(crate) fn enter(world: &World, cache: &Path) -> Result<Session<'static>, String> {
    let prepared = prepare(world, cache)?;
    sandbox()?.enter(&prepared).map_err(|error| chain(&error))
}

/// The tree of a world. It blocks.
pub(crate) fn prepare(world: &World, cache: &Path) -> Result<Prepared, String> {
    let sandbox = sandbox()?;
    let made = fs::create_dir_all(cache);
    made.map_err(|error| format!("failed to create `{}`: {error}", cache.display()))?;
    let since = Duration::from_millis(u64::try_from(now_ms()).unwrap_or_default());
    let now = SystemTime::UNIX_EPOCH + since;
    sandbox.prepare(world, cache, now).map_err(|error| chain(&error))
}

/// The world of a name, or in a file of the suite.
pub(crate) fn find(name: &str, folder: &Path) -> Result<World, String> {
    if let Some(world) = world::builtin::named(name) {
        return Ok(world.clone());
    }
    if Path::new(name).extension().is_none_or(|ending| ending != "toml") {
        let names: Vec<&str> = world::builtin::all().iter().map(|it| &*it.name).collect();
        return Err(format!(
            "there is no world `{name}`; there are {}, or a file that ends with `.toml`",
            names.join(", ")
        ));
    }
    let path: PathBuf = folder.join(name);
    let text = fs::read_to_string(&path).map_err(|error| format!("`{name}`: {error}"))?;
    world::read(name, &text).map_err(|error| error.to_string())
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", chain(source)),
        None => error.to_string(),
    }
}
