//! Commands of models, executed where they can do no harm.
//!
//! The sandbox is opened when the first command needs it. Worlds are prepared once. Whatever keeps a command from being
//! executed is said in words, and never a verdict on the model.

mod call;
mod left;
mod trust;
mod versions;
mod visit;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    thread::available_parallelism,
    time::{Duration, SystemTime},
};

use probity_core::execution::{EffectFound, EffectVerdict, Executed, ExecutionCall, Likeness};
use probity_sandbox::{
    Keeper, Limits, Sandbox, World,
    compare::{Effect, Judge, Verdict},
    world::{self, Prepared},
};
use probity_shell::{Script, equivalence, internal::likeness};
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout_at},
};

use crate::{clock, process::OwnFolder};
pub(crate) use call::world_of;
pub(crate) use left::Left;
use versions::Versions;
pub(crate) use visit::Visit;

/// Executes commands.
#[derive(Debug)]
pub struct Ground {
    /// Where prepared worlds are kept.
    cache: PathBuf,
    /// Where those are kept that only one case needs.
    of_cases: OnceLock<Result<OwnFolder, String>>,
    /// The time that ages of files in worlds are counted from.
    now: SystemTime,
    sandbox: OnceLock<Result<Sandbox, String>>,
    versions: Versions,
    /// Whether judgements of pairs of commands are used that earlier processes made, and kept for later ones.
    keeps: bool,
}

impl Ground {
    /// A ground that is opened when it is needed. The variables say where worlds are kept.
    pub fn new(variables: &BTreeMap<OsString, OsString>) -> Self {
        let cache = world::cache_folder(variables);
        let since = Duration::from_millis(u64::try_from(clock::now_ms()).unwrap_or_default());
        Self {
            cache,
            of_cases: OnceLock::new(),
            now: SystemTime::UNIX_EPOCH + since,
            sandbox: OnceLock::new(),
            versions: Versions::default(),
            keeps: true,
        }
    }

    /// The same, but what earlier processes found out about commands is not used, and nothing is kept for later ones.
    #[must_use]
    pub fn without_cache(self) -> Self {
        Self { keeps: false, ..self }
    }

    /// The sandbox, or why there is none on this machine.
    pub fn open(&self) -> Result<&Sandbox, String> {
        let open = || {
            fs::create_dir_all(&self.cache)
                .map_err(|error| format!("failed to create `{}`: {error}", self.cache.display()))?;
            Sandbox::open(&Keeper::this_program()).map_err(|error| error.to_string())
        };
        self.sandbox.get_or_init(open).as_ref().map_err(String::clone)
    }

    /// The tree of a world.
    pub(crate) fn tree(&self, world: &World) -> Result<Prepared, String> {
        self.open()?.prepare(world, &self.cache, self.now).map_err(|error| chain(&error))
    }

    /// What two commands do in worlds that are made for them, or why that cannot be found out.
    pub fn judge(&self, left: &Script<'_>, right: &Script<'_>) -> Result<Effect, String> {
        let sandbox = self.open()?;
        let Self { cache, now, keeps, .. } = self;
        let judge = Judge { sandbox, cache, limits: Limits::default(), now: *now, keeps: *keeps };
        judge.judge(left, right).map_err(|error| chain(&error))
    }

    /// The same of the texts of two commands, as it is recorded.
    fn effect(&self, command: &str, against: &str) -> Result<EffectFound, String> {
        let parse = |text| Script::parse(text).map_err(|error| error.to_string());
        let (left, right) = (parse(command)?, parse(against)?);
        let effect = self.judge(&left, &right)?;
        let Effect {
            verdict,
            reason,
            world,
            difference,
            caveat,
            agreed,
            silent,
            likeness,
            is_lasting: _,
        } = effect;
        let words = likeness::of_words(&equivalence::compare(&left, &right));
        let overall = match verdict {
            Verdict::SameEffect => 1.0,
            Verdict::Different | Verdict::Unknown => likeness::overall(words, likeness),
        };
        let likeness = Some(Likeness { overall, words, effects: likeness });
        let verdict = match verdict {
            Verdict::SameEffect => EffectVerdict::SameEffect,
            Verdict::Different => EffectVerdict::Different,
            Verdict::Unknown => EffectVerdict::Unknown,
        };
        let (command, against) = (command.to_owned(), against.to_owned());
        Ok(EffectFound {
            command,
            against,
            verdict,
            reason,
            world,
            difference,
            caveat,
            agreed,
            silent,
            likeness,
        })
    }

    /// The folder of worlds that only one case needs.
    fn folder_of_cases(&self) -> Result<&Path, String> {
        let folder =
            self.of_cases.get_or_init(|| OwnFolder::new().map_err(|error| error.to_string()));
        folder
            .as_ref()
            .map(OwnFolder::path)
            .map_err(|why| format!("failed to make a folder: {why}"))
    }
}

/// The ground as the tasks of a run share it: as many executions at a time as the machine is good for.
#[derive(Debug)]
pub(crate) struct Shared {
    ground: Arc<Ground>,
    slots: Arc<Semaphore>,
}

impl Shared {
    pub(crate) fn new(ground: Arc<Ground>) -> Self {
        let slots = available_parallelism().map_or(2, usize::from).saturating_mul(2);
        Self { ground, slots: Arc::new(Semaphore::new(slots)) }
    }

    /// Why there is no sandbox on this machine; nothing if there is one.
    pub(crate) async fn check(&self, deadline: Instant) -> Result<(), String> {
        match self.ground.sandbox.get() {
            Some(known) => known.as_ref().map(|_| ()).map_err(String::clone),
            None => self.carry_out(deadline, |ground| ground.open().map(|_| ())).await,
        }
    }

    /// Enters the world of a case for several commands.
    pub(crate) async fn visit(&self, call: ExecutionCall) -> Result<Visit, String> {
        Visit::begin(Arc::clone(&self.ground), call).await
    }

    /// Executes what a case asks for, before `deadline`.
    pub(crate) async fn execute(
        &self,
        call: ExecutionCall,
        deadline: Instant,
    ) -> Result<Executed, String> {
        self.carry_out(deadline, move |ground| ground.execute(&call)).await
    }

    /// Executes a command and an accepted one, before `deadline`.
    pub(crate) async fn effect(
        &self,
        command: String,
        against: String,
        deadline: Instant,
    ) -> Result<EffectFound, String> {
        self.carry_out(deadline, move |ground| ground.effect(&command, &against)).await
    }

    /// Does what takes a while in a thread that may wait.
    async fn carry_out<T: Send + 'static>(
        &self,
        deadline: Instant,
        work: impl FnOnce(&Ground) -> Result<T, String> + Send + 'static,
    ) -> Result<T, String> {
        let (ground, slots) = (Arc::clone(&self.ground), Arc::clone(&self.slots));
        let wait = async move {
            let slot = slots.acquire_owned().await.map_err(|error| error.to_string())?;
            // Who gives up waiting does not end the work, so the slot goes with it.
            let work = tokio::task::spawn_blocking(move || {
                let done = work(&ground);
                drop(slot);
                done
            });
            work.await.unwrap_or_else(|error| Err(error.to_string()))
        };
        match timeout_at(deadline, wait).await {
            Ok(done) => done,
            Err(_) => Err("no time is left for the case".to_owned()),
        }
    }
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", chain(source)),
        None => error.to_string(),
    }
}
