//! What all requests share: connections to the store, and figures that are costly to make.

use std::{
    collections::{BTreeMap, VecDeque},
    fs, io,
    os::unix::fs::MetadataExt as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use probity_core::{record::RunStatus, view::RunView};
use probity_store::{LaneView, Reader, RunRow, Standing, StoreError};
use tokio::{
    sync::Semaphore,
    task::spawn_blocking,
};

use crate::{Options, live::Live, problem::Problem};

/// Requests that read the store at once; others wait for their turn.
const MOST_READERS: usize = 4;
/// How long a request may read.
const LONGEST: Duration = Duration::from_secs(30);
/// Runs whose figures are kept.
const MOST_VIEWS: usize = 24;
/// How long the figures of a run that goes on are good for.
const FRESH: Duration = Duration::from_secs(1);

/// What is shown.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) options: Options,
    pub(crate) live: Live,
    turns: Arc<Semaphore>,
    idle: Mutex<Vec<Opened>>,
    views: Mutex<VecDeque<Kept>>,
    standings: Mutex<BTreeMap<String, (Ended, Vec<Standing>)>>,
}

/// A connection, and the file that it is to.
#[derive(Debug)]
struct Opened {
    reader: Reader,
    file: FileId,
}

/// What tells a file from another that took its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileId {
    device: u64,
    inode: u64,
}

/// How and when a run ended: after that its results stay as they are, until somebody resumes it.
type Ended = (RunStatus, Option<i64>);

#[derive(Debug)]
struct Kept {
    run_id: String,
    ended: Ended,
    made: Instant,
    view: Arc<RunView>,
}

impl Kept {
    fn is_good_for(&self, run: &RunRow) -> bool {
        let is_fixed = run.status != RunStatus::Running || self.made.elapsed() < FRESH;
        self.run_id == run.run_id && self.ended == ended(run) && is_fixed
    }
}

fn ended(run: &RunRow) -> Ended {
    (run.status, run.finished_ms)
}

impl Site {
    pub(crate) fn new(options: Options) -> Self {
        Self {
            options,
            live: Live::default(),
            turns: Arc::new(Semaphore::new(MOST_READERS)),
            idle: Mutex::default(),
            views: Mutex::default(),
            standings: Mutex::default(),
        }
    }

    /// Reads the store on a thread that may wait for the disk.
    pub(crate) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self, &Reader) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let busy = |_| Problem::internal("the server is ending");
        let turn = Arc::clone(&self.turns).acquire_owned().await.map_err(busy)?;
        let site = Arc::clone(self);
        let read = spawn_blocking(move || {
            // Whoever asked may be gone: the turn lasts as long as the work.
            let _turn = turn;
            let mut opened = site.open()?;
            opened.reader.stop_at(Instant::now() + LONGEST)?;
            let outcome = work(&site, &opened.reader);
            lock(&site.idle).push(opened);
            outcome
        });
        read.await.map_err(|_| Problem::internal("making the answer failed"))?
    }

    fn open(&self) -> Result<Opened, StoreError> {
        let path = &self.options.store;
        let missing = |_: io::Error| StoreError::Missing { path: path.clone() };
        let about = fs::metadata(path).map_err(missing)?;
        let file = FileId { device: about.dev(), inode: about.ino() };
        let idle = {
            let mut idle = lock(&self.idle);
            idle.retain(|it| it.file == file);
            idle.pop()
        };
        match idle {
            Some(opened) => Ok(opened),
            None => Ok(Opened { reader: Reader::open_to_look(path)?, file }),
        }
    }

    /// The figures of a run.
    pub(crate) fn view(&self, reader: &Reader, run: &RunRow) -> Result<Arc<RunView>, StoreError> {
        if let Some(kept) = lock(&self.views).iter().find(|it| it.is_good_for(run)) {
            return Ok(Arc::clone(&kept.view));
        }
        let view = Arc::new(reader.view(run, self.options.max_error_rate)?);
        let mut views = lock(&self.views);
        views.retain(|it| it.run_id != run.run_id);
        views.truncate(MOST_VIEWS - 1);
        views.push_front(Kept {
            run_id: run.run_id.clone(),
            ended: ended(run),
            made: Instant::now(),
            view: Arc::clone(&view),
        });
        Ok(view)
    }

    /// How the results of each lane of a run came out. That of runs that have ended is counted once.
    pub(crate) fn standings(
        &self,
        reader: &Reader,
        run: &RunRow,
        lanes: &[LaneView],
    ) -> Result<Vec<Standing>, StoreError> {
        let known = lock(&self.standings).get(&run.run_id).cloned();
        if let Some((at, standings)) = known
            && at == ended(run)
            && run.status != RunStatus::Running
        {
            return Ok(standings);
        }
        let standings: Vec<Standing> =
            lanes.iter().map(|lane| reader.standing(lane)).collect::<Result<_, _>>()?;
        lock(&self.standings).insert(run.run_id.clone(), (ended(run), standings.clone()));
        Ok(standings)
    }

    /// How the results of a run came out, over all its lanes.
    pub(crate) fn standing(
        &self,
        reader: &Reader,
        run: &RunRow,
        lanes: &[LaneView],
    ) -> Result<Standing, StoreError> {
        let mut sum = Standing::default();
        self.standings(reader, run, lanes)?.iter().for_each(|it| sum.add(it));
        Ok(sum)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind it is a cache: whoever panicked left it as it was before or after.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::{path::Path, sync::mpsc};

    use probity_core::record::RunInfo;
    use probity_store::{NewRun, record_whole};
    use tokio::sync::oneshot;

    use super::*;

    fn site(store: &Path) -> Arc<Site> {
        let run = NewRun {
            run_id: "20261115-100000-first".to_owned(),
            suite: "s".to_owned(),
            started_ms: 0,
            info: RunInfo::default(),
        };
        record_whole(store, &run, &[]).unwrap();
        let address = "127.0.0.1:0".parse().unwrap();
        Arc::new(Site::new(Options { store: store.to_owned(), address, max_error_rate: 0.1 }))
    }

    #[test]
    fn a_turn_lasts_as_long_as_its_work() {
        let folder = tempfile::tempdir().unwrap();
        let site = site(&folder.path().join("x.db"));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (begin, has_begun) = oneshot::channel();
            let (end, may_end) = mpsc::channel::<()>();
            let asking = tokio::spawn({
                let site = Arc::clone(&site);
                async move {
                    let work = move |_: &Site, _: &Reader| {
                        begin.send(()).unwrap();
                        may_end.recv().unwrap();
                        Ok(())
                    };
                    site.read(work).await
                }
            });
            has_begun.await.unwrap();
            asking.abort();
            assert!(asking.await.unwrap_err().is_cancelled());
            assert_eq!(site.turns.available_permits(), MOST_READERS - 1);
            end.send(()).unwrap();
            let all = u32::try_from(MOST_READERS).unwrap();
            drop(site.turns.acquire_many(all).await.unwrap());
        });
    }
}
