//! A run that has its calls made by workers.

use std::{collections::BTreeMap, sync::Arc};

use probity_queue::{
    Access, Coordinator, Link, Names, OfferKind, OfferNote, Opening, SeatUse, Setup, offer_digest,
};
use probity_report::plain::shell_word;
use probity_run::{
    carrier::{Carrier, Executor, Who},
    plan::Plan,
};
use tokio::runtime::Runtime;

use super::{access, connect, definition, files, names, setup};
use crate::{
    cli::{run::RunArgs, workers::HandOverArgs},
    commands::{
        project::Project,
        run::{self, SeatKey},
    },
    exit::Exit,
    failure::Failure,
};

/// The way to the workers, before anything is run.
pub(in crate::commands) struct Hands {
    runtime: Runtime,
    link: Link,
    names: Names,
    setup: Setup,
    retries_errors: bool,
}

/// A run that workers work for.
pub(in crate::commands) struct Work {
    runtime: Runtime,
    coordinator: Option<Arc<Coordinator>>,
}

impl Hands {
    /// Connects, if the command line asks for it. A server that is not there is found out before anything is begun.
    pub(in crate::commands) fn reach(
        args: &RunArgs,
        project: &Project,
    ) -> Result<Option<Self>, Failure> {
        let Some(url) = &args.hand_over.workers else { return Ok(None) };
        let access = access(url, &args.hand_over.nats, &project.environment)?;
        let (names, setup) = (names(&args.hand_over.nats)?, setup(&args.hand_over)?);
        let runtime = run::runtime()?;
        let link = connect(&runtime, &access, "probity run", &names.inbox_of_runs())?;
        let retries_errors = args.retry_errors.is_some();
        Ok(Some(Self { runtime, link, names, setup, retries_errors }))
    }

    /// Tells workers of the run, and has the plan's calls go to them.
    fn begin(
        self,
        plan: &mut Plan,
        seats: &[Option<SeatKey>],
        project: &Project,
    ) -> Result<Work, Failure> {
        let Self { runtime, link, names, setup, retries_errors } = self;
        let definition = definition(&project.suite);
        let note = |kind: OfferKind| {
            let files = files(&project.suite, &kind);
            OfferNote { digest: offer_digest(&definition, &kind, &files), kind }
        };
        let mut offers = BTreeMap::new();
        for (at, seat) in seats.iter().enumerate() {
            if let Some(seat) = seat.as_ref().filter(|_| !plan.backends[at].is_replay()) {
                offers.insert(Who::Backend(at), note(kind(seat)));
            }
        }
        // Also of a suite without scorers: assertions can be programs.
        offers.insert(Who::Scorers, note(OfferKind::Scorers));
        offers.insert(Who::Sandbox, note(OfferKind::Sandbox));
        let opening = Opening {
            run: plan.run_id.clone(),
            suite: project.name.clone(),
            offers,
            resumed: plan.resumed,
            retries_errors,
            definition,
        };
        let coordinator = runtime
            .block_on(Coordinator::open(link, names, setup, opening))
            .map_err(|error| Failure::new(error.to_string()).exit(Exit::Aborted))?;
        let coordinator = Arc::new(coordinator);
        plan.executor = Executor::Workers(coordinator.clone());
        Ok(Work { runtime, coordinator: Some(coordinator) })
    }
}

impl Work {
    /// Has workers make the plan's calls, if there is a way to them.
    pub(in crate::commands) fn begin(
        hands: Option<Hands>,
        plan: &mut Plan,
        seats: &[Option<SeatKey>],
        project: &Project,
    ) -> Result<Self, Failure> {
        match hands {
            Some(hands) => hands.begin(plan, seats, project),
            None => Ok(Self { runtime: run::runtime()?, coordinator: None }),
        }
    }

    pub(in crate::commands) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Who has to know what is on the disk.
    pub(in crate::commands) fn carrier(&self) -> Option<Arc<dyn Carrier>> {
        self.coordinator.clone().map(|it| it as Arc<dyn Carrier>)
    }

    /// Ends the work. What is left of it is taken away if the run is on the disk.
    pub(in crate::commands) fn end(self, is_recorded: bool) {
        let Self { runtime, coordinator } = self;
        if let Some(coordinator) = coordinator.filter(|_| is_recorded) {
            runtime.block_on(coordinator.close());
        }
        // Tasks that wait for a server that never answers are not waited for.
        runtime.shutdown_background();
    }
}

/// What a backend is to workers.
fn kind(seat: &SeatKey) -> OfferKind {
    let (name, model, seat) = match seat {
        SeatKey::Answers(name, model) => (name, model.clone(), SeatUse::Answers),
        SeatKey::Embeds(name) => (name, None, SeatUse::Embeds),
        SeatKey::Reranks(name) => (name, None, SeatUse::Reranks),
    };
    OfferKind::Backend { name: name.clone(), model, seat }
}

/// Whether calls are to be made by workers.
pub(in crate::commands) fn are_wanted(args: &RunArgs) -> bool {
    args.hand_over.workers.is_some()
}

/// The options without which a run would not find its workers again. Passwords are not shown.
pub(in crate::commands) fn again(args: &RunArgs) -> Vec<String> {
    let HandOverArgs { workers, nats, .. } = &args.hand_over;
    let Some(url) = workers else { return Vec::new() };
    let url = Access { url: url.clone(), ..Access::default() }.shown();
    let mut words = vec![format!("--workers {}", shell_word(&url))];
    words.extend(nats.prefix.as_ref().map(|it| format!("--nats-prefix {}", shell_word(it))));
    for (option, path) in [("--nats-creds", &nats.creds), ("--nats-ca", &nats.ca)] {
        let word = |it: &std::path::PathBuf| shell_word(&it.display().to_string());
        words.extend(path.as_ref().map(|it| format!("{option} {}", word(it))));
    }
    words
}
