//! One process of a simulated run: from its start to its exit code, or to its death.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use fastrand::Rng;
use probity::simulated::{Again, Prepared, Watcher};
use probity_core::{
    event::{Event, Stamped},
    record::LaneStatus,
    view::RunView,
};
use probity_grade::Rules;
use probity_run::{engine, events, plan::Ledger, simulated::own_time};
use probity_store::{BadDisk, Recorder};
use rusqlite::Connection;
use tokio::{
    runtime::Builder,
    sync::{Notify, watch},
    time::{Instant, timeout},
};

use super::{
    disk::Files,
    server::{Backend, Cache, Defect, Outside},
    stream::Stream,
    world::{Lane, Place, chance},
};

/// When simulations begin: the first day of 2027.
pub(crate) const NEW_YEAR_MS: i64 = 1_798_761_600_000;
/// A run that takes longer than this has stopped to do anything.
const FOREVER: Duration = Duration::from_hours(24 * 25);

/// What befalls a process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disturbance {
    /// The moment at which it is killed, counted from its start.
    pub(crate) dies_at: Option<u64>,
    /// Where in a write, if the moment is one.
    pub(super) within: Within,
    /// Whether the machine loses its power as well.
    pub(crate) loses_power: bool,
    /// The moment at which somebody stops it.
    pub(crate) stopped_at: Option<u64>,
    /// What befalls the disk, and with which transaction.
    pub(crate) disk: Option<(u64, Trouble)>,
    /// Whether what ended in an error is asked again.
    pub(crate) retries_errors: bool,
    seed: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Within {
    #[default]
    Before,
    Halfway,
    After,
}

/// What befalls a disk.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trouble {
    Bad(BadDisk),
    /// Another program writes to the store for so long.
    Locked(Duration),
    /// Calls cannot be counted.
    Uncounted,
}

impl Disturbance {
    /// What befalls a process that would take so many moments otherwise.
    pub(crate) fn draw(moments: u64, rng: &mut Rng) -> Self {
        let mut drawn = Self { seed: rng.u64(..), ..Self::default() };
        let moments = moments.max(1);
        let kind = rng.u8(..10);
        if matches!(kind, 0..=4 | 8 | 9) {
            drawn.dies_at = Some(rng.u64(1..=moments));
            drawn.within = [Within::Before, Within::Halfway, Within::After][rng.usize(..3)];
            drawn.loses_power = chance(rng, 10);
        }
        if matches!(kind, 5 | 8) {
            drawn.stopped_at = Some(rng.u64(1..=moments));
        }
        if matches!(kind, 6 | 7 | 9) {
            let trouble = match rng.u8(..6) {
                0 | 1 => Trouble::Bad(BadDisk::FullAfter { pages: rng.u32(..4) }),
                2 => Trouble::Bad(BadDisk::ReadOnly),
                3 | 4 => Trouble::Locked(Duration::from_millis(rng.u64(..10_000))),
                _ => Trouble::Uncounted,
            };
            drawn.disk = Some((rng.u64(..(moments / 4).max(1)), trouble));
            // Somebody who sees that nothing goes on may stop it.
            if chance(rng, 20) {
                drawn.stopped_at = Some(rng.u64(1..=moments));
            }
        }
        drawn.retries_errors = chance(rng, 15);
        drawn
    }
}

/// How the process that runs now ends, and how far it is.
#[derive(Debug, Default)]
pub(crate) struct Fate {
    state: Mutex<State>,
    dies: Notify,
}

#[derive(Debug, Default)]
struct State {
    plan: Disturbance,
    moments: u64,
    folder: PathBuf,
    /// The files when the process had just begun.
    opened: Files,
    /// The files before what is written now, if it dies halfway.
    before: Option<Files>,
    /// The files that it leaves, once it is dead.
    left: Option<Files>,
    stop: Option<watch::Sender<bool>>,
}

/// What is written.
#[derive(Clone, Copy, Debug)]
enum Writing {
    /// Transactions, and then the file with the counts.
    Opening,
    Transactions,
    Closing,
}

impl Fate {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, plan: Disturbance, folder: &Path) {
        *self.state() = State { plan, folder: folder.to_owned(), ..State::default() };
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.state().left.is_some()
    }

    /// Waits until the process dies.
    async fn death(&self) {
        while !self.is_dead() {
            self.dies.notified().await;
        }
    }

    /// Whether the process is dead, or will have died before what happens now.
    fn is_dying(&self) -> bool {
        let state = self.state();
        state.left.is_some() || state.before.is_some()
    }

    /// How many moments there were.
    fn moments(&self) -> u64 {
        self.state().moments
    }

    /// Something happens, and nothing is being written.
    pub(crate) fn tick(&self) {
        let mut state = self.state();
        if state.step() {
            let files = state.files();
            self.die(&mut state, files);
        }
    }

    /// Something is about to be written.
    fn writes(&self) {
        let mut state = self.state();
        if !state.step() {
            return;
        }
        let files = state.files();
        match state.plan.within {
            Within::Before => self.die(&mut state, files),
            Within::Halfway | Within::After => state.before = Some(files),
        }
    }

    /// It was written.
    fn wrote(&self, what: Writing) {
        let mut state = self.state();
        let Some(before) = state.before.take() else { return };
        let after = state.files();
        let rng = &mut Rng::with_seed(state.plan.seed ^ 0xd15c);
        let files = match (state.plan.within, what) {
            (Within::After | Within::Before, _) => after,
            (Within::Halfway, Writing::Opening) => Files::while_opening(&before, &after, rng),
            (Within::Halfway, Writing::Transactions) => Files::while_writing(&before, &after, rng),
            (Within::Halfway, Writing::Closing) => Files::while_closing(&before, &after, rng),
        };
        self.die(&mut state, files);
    }

    fn die(&self, state: &mut State, files: Files) {
        let rng = &mut Rng::with_seed(state.plan.seed ^ 0xdead);
        let files = match state.plan.loses_power {
            true => files.without_power(&state.opened, rng),
            false => files,
        };
        state.left = Some(files);
        self.dies.notify_one();
    }
}

impl State {
    /// The next moment; whether it is the last.
    fn step(&mut self) -> bool {
        self.moments += 1;
        let now = Some(self.moments);
        if now == self.plan.stopped_at
            && let Some(stop) = &self.stop
        {
            // A run that is over cannot be stopped.
            let _ = stop.send(true);
        }
        now == self.plan.dies_at && self.left.is_none()
    }

    fn files(&self) -> Files {
        Files::of(&self.folder).unwrap_or_default()
    }
}

/// Calls that are counted before they are made.
#[derive(Debug)]
struct Counted {
    /// Nothing is, if the world is broken in that way.
    forgets: bool,
    ledger: probity_store::Ledger,
    outside: Arc<Outside>,
    fails_at: Option<u64>,
    written: u64,
}

impl Ledger for Counted {
    fn begun(&mut self, lane: usize, calls: u64) -> io::Result<()> {
        self.outside.fate.tick();
        self.written += 1;
        if self.fails_at == Some(self.written) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        if !self.forgets {
            self.ledger.begun(lane, calls)?;
        }
        self.outside.fate.tick();
        Ok(())
    }
}

/// Who looks at what is written.
struct Records {
    outside: Arc<Outside>,
    lanes: Vec<Lane>,
    disk: Option<(u64, Trouble)>,
    store: PathBuf,
    transactions: u64,
    /// Another program that writes, and until when.
    other: Option<(Connection, Instant)>,
    stream: Stream,
}

impl Watcher for Records {
    fn before(&mut self, recorder: &mut Recorder, _batch: &[Stamped]) {
        if self.other.as_ref().is_some_and(|(_, until)| Instant::now() >= *until) {
            self.other = None;
        }
        if let Some((at, trouble)) = self.disk
            && at == self.transactions
        {
            self.disk = None;
            match trouble {
                // One that cannot be made worse is bad enough.
                Trouble::Bad(disk) => drop(recorder.hinder(disk)),
                Trouble::Locked(length) => {
                    let other = Connection::open(&self.store)
                        .and_then(|it| it.execute_batch("BEGIN IMMEDIATE").map(|()| it));
                    self.other = other.ok().map(|it| (it, Instant::now() + length));
                }
                Trouble::Uncounted => {}
            }
        }
        self.outside.fate.writes();
    }

    fn after(&mut self, batch: &[Stamped], written: Option<bool>) {
        self.transactions += 1;
        if written == Some(true) && !self.outside.fate.is_dying() {
            let mut known = self.outside.known();
            for Stamped { event, .. } in batch {
                if let Err(wrong) = self.stream.hear(event) {
                    known.wrong.push(wrong);
                }
                if let Event::CaseFinished { lane, record } = event {
                    let (lane, case) = (self.lanes[*lane].clone(), record.case_id.clone());
                    let place = Place { lane, case, repeat: record.repeat };
                    known.durable.insert(place, record.error.is_some());
                }
            }
        }
        self.outside.fate.wrote(Writing::Transactions);
    }

    fn closing(&mut self) {
        self.outside.fate.writes();
    }

    fn closed(&mut self) {
        self.outside.fate.wrote(Writing::Closing);
    }
}

/// How a process ended.
#[derive(Debug)]
pub(crate) enum End {
    /// It was killed.
    Died,
    /// It could not record what happened, and ended with exit code 3.
    Failed(String),
    Ended(Box<Ended>),
}

/// A process that came to its end.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) exit: u8,
    pub(crate) view: RunView,
    pub(crate) lanes: Vec<LaneStatus>,
}

/// What one process did.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) end: End,
    pub(crate) moments: u64,
}

/// Runs one process. What must not happen comes out as an error.
pub(crate) fn run(
    (prepared, rules): (&Prepared, &'static Rules),
    outside: &Arc<Outside>,
    (folder, disturbance): (&Path, Disturbance),
    run_id: Option<&str>,
) -> Result<Session, String> {
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(|it| it.to_string())?;
    outside.fate.begin(disturbance.clone(), folder);
    let again = run_id.map(|run_id| Again { run_id, retry_errors: disturbance.retries_errors });
    let end = runtime.block_on(async {
        let end = process((prepared, rules), outside, &disturbance, again).await;
        outside.stop_clock();
        end
    });
    let moments = outside.fate.moments();
    outside.known().retries_errors = false;
    drop(runtime);
    let end = end?;
    let was_killed = matches!(end, End::Died);
    outside.process_ended(was_killed);
    let left = outside.fate.state().left.take();
    if let Some(left) = left {
        let left = if outside.defect == Some(Defect::Disk) { left.without_log() } else { left };
        left.restore(folder).map_err(|it| it.to_string())?;
    }
    Ok(Session { end, moments })
}

async fn process(
    (prepared, rules): (&Prepared, &'static Rules),
    outside: &Arc<Outside>,
    disturbance: &Disturbance,
    again: Option<Again<'_>>,
) -> Result<End, String> {
    let before = {
        let mut known = outside.known();
        known.begun = Some(Instant::now());
        known.retries_errors = again.is_some_and(|it| it.retry_errors);
        known.before
    };
    let _time = own_time(NEW_YEAR_MS + i64::try_from(before.as_millis()).unwrap_or(0));
    fastrand::seed(outside.world.seed ^ disturbance.seed);
    let server = |name: &str| {
        let server = Backend { name: name.to_owned(), outside: outside.clone() };
        Arc::new(server) as Arc<dyn probity_run::simulated::Server>
    };
    let cache = outside.world.has_cache.then(|| Arc::new(Cache(outside.clone())) as Arc<_>);
    let mut plan = prepared.plan(&server, cache)?;
    outside.fate.writes();
    let opened = prepared.open(&mut plan, again);
    outside.fate.wrote(Writing::Opening);
    if outside.fate.is_dead() {
        return Ok(End::Died);
    }
    let (recorder, ledger) = opened?;
    let is_uncounted = |it: &&(u64, Trouble)| matches!(it.1, Trouble::Uncounted);
    let fails_at = disturbance.disk.as_ref().filter(is_uncounted).map(|it| it.0 + 1);
    let forgets = outside.defect == Some(Defect::Counts);
    plan.ledger =
        Some(Box::new(Counted { forgets, ledger, outside: outside.clone(), fails_at, written: 0 }));
    let (stop, stopped) = watch::channel(false);
    {
        let mut state = outside.fate.state();
        state.opened = state.files();
        state.stop = Some(stop);
    }
    let run_id = plan.run_id.clone();
    let lanes: Vec<Lane> = plan.lanes.iter().map(|it| lane_of(&it.info)).collect();
    let listener = {
        let (outside, lanes) = (outside.clone(), lanes.clone());
        Box::new(move |batch: &[Stamped]| show(&outside, &lanes, batch))
    };
    let (sender, receiver) = events::channel(outside.world.room, 1 << 20);
    let pump = prepared.pump(&plan, recorder, listener, stopped.clone());
    let mut records = Records {
        outside: outside.clone(),
        lanes,
        disk: disturbance.disk,
        store: prepared.store().to_owned(),
        transactions: 0,
        other: None,
        stream: Stream::default(),
    };
    let work = Box::pin(async {
        tokio::join!(engine::run(plan, rules, sender, stopped), pump.run(receiver, &mut records))
    });
    let (outcome, written) = tokio::select! {
        biased;
        () = outside.fate.death() => return Ok(End::Died),
        done = timeout(FOREVER, work) => done.map_err(|_| "the run stopped to do anything")?,
    };
    if outside.fate.is_dead() {
        return Ok(End::Died);
    }
    if let Err(why) = written {
        return Ok(End::Failed(why));
    }
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(error) => return Ok(End::Failed(error.to_string())),
    };
    records.stream.end()?;
    let (exit, view) = prepared.conclude(&run_id)?;
    Ok(End::Ended(Box::new(Ended { exit, view, lanes: outcome.lanes })))
}

/// Somebody is told of what is on the disk.
fn show(outside: &Outside, lanes: &[Lane], batch: &[Stamped]) {
    if outside.fate.is_dying() {
        return;
    }
    {
        let mut known = outside.known();
        for Stamped { event, .. } in batch {
            if let Event::CaseFinished { lane, record } = event {
                let (lane, case) = (lanes[*lane].clone(), record.case_id.clone());
                known.visible.insert(Place { lane, case, repeat: record.repeat });
            }
        }
    }
    outside.fate.tick();
}

/// A lane as the world knows it.
pub(crate) fn lane_of(lane: &probity_core::record::Lane) -> Lane {
    Lane {
        runner: lane.runner.clone(),
        variant: lane.variant.clone().unwrap_or_default(),
        backend: lane.backend.clone(),
    }
}
