//! What all requests share: connections to the store, and figures that are costly to make.

use std::{
    collections::{BTreeMap, VecDeque},
    fs, io,
    os::unix::fs::MetadataExt as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use probity_core::{
    classification::Verdict,
    metrics::Verdicts,
    record::{Judging, RunStatus},
    view::RunView,
};
use probity_store::{LaneView, Reader, RunRow, Standing, StoreError};
use tokio::{sync::Semaphore, task::spawn_blocking};

use crate::{Options, live::Live, problem::Problem};

/// Requests that read the store at once; others wait for their turn.
const MOST_READERS: usize = 4;
/// How long a request may read.
const LONGEST: Duration = Duration::from_secs(30);
/// Runs whose figures are kept.
const MOST_VIEWS: usize = 24;
/// How long the figures of a run that goes on, or was killed, are good for.
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
        let is_fixed = has_ended(run) || self.made.elapsed() < FRESH;
        self.run_id == run.run_id && self.ended == ended(run) && is_fixed
    }
}

/// Whether a later end of a run can be told from this one. One that is killed leaves none.
fn has_ended(run: &RunRow) -> bool {
    match run.status {
        RunStatus::Complete | RunStatus::Decided | RunStatus::Incomplete => true,
        RunStatus::Running | RunStatus::Killed => false,
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
            site.keep(opened);
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

    /// Keeps a connection for the next request, unless it would not see what others write.
    fn keep(&self, opened: Opened) {
        if !opened.reader.is_immutable() {
            lock(&self.idle).push(opened);
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
            && has_ended(run)
        {
            return Ok(standings);
        }
        let standings: Vec<Standing> =
            lanes.iter().map(|lane| reader.standing(lane)).collect::<Result<_, _>>()?;
        lock(&self.standings).insert(run.run_id.clone(), (ended(run), standings.clone()));
        Ok(standings)
    }

    /// How the results of a run came out, over all its lanes, as gates count them.
    pub(crate) fn standing(
        &self,
        reader: &Reader,
        run: &RunRow,
        lanes: &[LaneView],
    ) -> Result<Standing, StoreError> {
        let mut sum = Standing::default();
        for (view, mut standing) in lanes.iter().zip(self.standings(reader, run, lanes)?) {
            standing.verdicts = as_counted(&view.lane.judging, standing.verdicts);
            sum.add(&standing);
        }
        Ok(sum)
    }
}

/// Verdicts of results as gates and figures count them.
pub(crate) fn as_counted(judging: &Judging, verdicts: Verdicts) -> Verdicts {
    let Verdicts { pass, fail, error, undecided } = verdicts;
    let mut counted = Verdicts::default();
    counted.add_many(Verdict::Pass, pass);
    counted.add_many(Verdict::Fail, fail);
    counted.add_many(judging.counted(Verdict::Error), error);
    counted.add_many(Verdict::Undecided, undecided);
    counted
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
        Arc::new(Site::new(Options {
            store: store.to_owned(),
            address,
            max_error_rate: 0.1,
            edits: None,
        }))
    }

    #[test]
    fn errors_are_counted_as_the_run_counts_them() {
        let raw = Verdicts { pass: 3, fail: 1, error: 2, undecided: 1 };
        let strict = Judging { errors_as_failures: true, ..Judging::default() };
        assert_eq!(as_counted(&Judging::default(), raw), raw);
        let counted = Verdicts { pass: 3, fail: 3, error: 0, undecided: 1 };
        assert_eq!(as_counted(&strict, raw), counted);
    }

    #[test]
    fn figures_of_a_killed_run_are_not_kept_for_good() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let site = site(&path);
        let reader = Reader::open_to_look(&path).unwrap();
        let run = reader.find("latest").unwrap();
        assert_eq!(run.status, RunStatus::Killed);
        let view = site.view(&reader, &run).unwrap();
        let kept = |made| Kept {
            run_id: run.run_id.clone(),
            ended: ended(&run),
            made,
            view: Arc::clone(&view),
        };
        let now = Instant::now();
        assert!(kept(now).is_good_for(&run));
        assert!(!kept(now.checked_sub(FRESH).unwrap()).is_good_for(&run));
        let mut complete = run.clone();
        complete.status = RunStatus::Complete;
        assert!(!kept(now).is_good_for(&complete));
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
