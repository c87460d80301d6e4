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
use probity_store::{
    LaneView, LastRemark, Reader, RunRow, ScoreBars, Standing, StoreError, Trouble,
};
use tokio::{sync::Semaphore, task::spawn_blocking};

use crate::{
    Options,
    live::Live,
    metrics::{MOST_SUITES, RunFigures},
    people::OfRun,
    problem::Problem,
    suites::Surveys,
};

/// Requests that read the store at once; others wait for their turn.
const MOST_READERS: usize = 4;
/// How long a request may read.
pub(crate) const LONGEST: Duration = Duration::from_secs(30);
/// Runs whose figures are kept.
const MOST_KEPT: usize = 24;
/// Runs whose counts are kept.
const MOST_STANDINGS: usize = 20_000;
/// Different messages of errors that are read.
const MOST_MESSAGES: usize = 500;
/// How long the figures of a run that goes on, or was killed, are good for.
const FRESH: Duration = Duration::from_secs(1);

/// What is shown.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) options: Options,
    pub(crate) live: Live,
    pub(crate) surveys: Surveys,
    turns: Arc<Semaphore>,
    /// How long a request may read.
    longest: Duration,
    idle: Mutex<Vec<Opened>>,
    views: Recent<RunView>,
    /// Whoever scrapes asks for those of every suite again and again.
    figures: Recent<RunFigures, MOST_SUITES>,
    details: Recent<Details>,
    people: Recent<(LastRemark, OfRun)>,
    standings: Mutex<BTreeMap<String, (Ended, Standings)>>,
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

/// What was made of the runs that were looked at last.
#[derive(Debug)]
struct Recent<T, const MOST: usize = MOST_KEPT>(Mutex<VecDeque<Kept<T>>>);

impl<T, const MOST: usize> Default for Recent<T, MOST> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T, const MOST: usize> Recent<T, MOST> {
    /// What was made of a run, or is made now.
    fn of(
        &self,
        run: &RunRow,
        read: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<Arc<T>, StoreError> {
        if let Some(kept) = lock(&self.0).iter().find(|it| it.is_good_for(run)) {
            return Ok(Arc::clone(&kept.made));
        }
        self.anew(run, read)
    }

    /// What is made of a run now, whatever was made before.
    fn anew(
        &self,
        run: &RunRow,
        read: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<Arc<T>, StoreError> {
        let made = Arc::new(read()?);
        let mut all = lock(&self.0);
        all.retain(|it| it.run_id != run.run_id);
        all.truncate(MOST - 1);
        all.push_front(Kept {
            run_id: run.run_id.clone(),
            ended: ended(run),
            at: Instant::now(),
            made: Arc::clone(&made),
        });
        Ok(made)
    }
}

#[derive(Debug)]
struct Kept<T> {
    run_id: String,
    ended: Ended,
    at: Instant,
    made: Arc<T>,
}

impl<T> Kept<T> {
    fn is_good_for(&self, run: &RunRow) -> bool {
        let is_fixed = has_ended(run) || self.at.elapsed() < FRESH;
        self.run_id == run.run_id && self.ended == ended(run) && is_fixed
    }
}

/// What the page of a run shows beside its figures.
#[derive(Debug)]
pub(crate) struct Details {
    pub(crate) bars: Vec<ScoreBars>,
    pub(crate) troubles: Vec<Trouble>,
}

/// How the results of each lane of a run came out.
pub(crate) type Standings = Arc<Vec<LaneStanding>>;

/// How the results of a lane came out.
#[derive(Clone, Debug)]
pub(crate) struct LaneStanding {
    /// Each for itself.
    pub(crate) results: Standing,
    /// As gates count them.
    pub(crate) counted: Verdicts,
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
            surveys: Surveys::default(),
            turns: Arc::new(Semaphore::new(MOST_READERS)),
            longest: LONGEST,
            idle: Mutex::default(),
            views: Recent::default(),
            figures: Recent::default(),
            details: Recent::default(),
            people: Recent::default(),
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
            opened.reader.stop_at(Instant::now() + site.longest)?;
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
        self.views.of(run, || reader.view(run, self.options.max_error_rate))
    }

    /// What is told to Prometheus of a run.
    pub(crate) fn figures(
        &self,
        reader: &Reader,
        run: &RunRow,
    ) -> Result<Arc<RunFigures>, StoreError> {
        let read = || reader.view(run, self.options.max_error_rate);
        self.figures.of(run, || Ok(RunFigures::of(&read()?)))
    }

    /// What the page of a run shows beside its figures.
    pub(crate) fn details(
        &self,
        reader: &Reader,
        run: &RunRow,
        lanes: &[LaneView],
    ) -> Result<Arc<Details>, StoreError> {
        let lanes: Vec<&LaneView> = lanes.iter().collect();
        self.details.of(run, || match lanes.is_empty() {
            true => Ok(Details { bars: Vec::new(), troubles: Vec::new() }),
            false => Ok(Details {
                bars: reader.score_bars(&lanes)?,
                troubles: reader.troubles(&lanes, MOST_MESSAGES)?,
            }),
        })
    }

    /// What people said of a run. It is read again when somebody has said more.
    pub(crate) fn people(
        &self,
        reader: &Reader,
        run: &RunRow,
        lanes: &[LaneView],
    ) -> Result<Arc<(LastRemark, OfRun)>, StoreError> {
        let last = reader.last_remark(lanes)?;
        let read = || Ok((last, OfRun::read(reader, lanes)?));
        let known = self.people.of(run, read)?;
        match known.0 == last {
            true => Ok(known),
            false => self.people.anew(run, read),
        }
    }

    /// How the results of each lane of a run came out. That of runs that have ended is counted once.
    pub(crate) fn standings(&self, reader: &Reader, run: &RunRow) -> Result<Standings, StoreError> {
        let known = lock(&self.standings).get(&run.run_id).cloned();
        if let Some((at, standings)) = known
            && at == ended(run)
            && has_ended(run)
        {
            return Ok(standings);
        }
        let lanes = reader.lanes(run)?;
        let standings: Vec<LaneStanding> =
            lanes.iter().map(|lane| standing(reader, lane)).collect::<Result<_, _>>()?;
        let standings = Arc::new(standings);
        let mut all = lock(&self.standings);
        if all.len() >= MOST_STANDINGS {
            // Names begin with the time, so that this is the earliest run.
            all.pop_first();
        }
        all.insert(run.run_id.clone(), (ended(run), Arc::clone(&standings)));
        Ok(standings)
    }

    /// How the results of a run came out, over all its lanes, as gates count them.
    pub(crate) fn standing(&self, reader: &Reader, run: &RunRow) -> Result<Standing, StoreError> {
        let mut sum = Standing::default();
        for it in self.standings(reader, run)?.iter() {
            sum.add(&Standing { verdicts: it.counted, ..it.results.clone() });
        }
        Ok(sum)
    }
}

fn standing(reader: &Reader, lane: &LaneView) -> Result<LaneStanding, StoreError> {
    let results = reader.standing(lane)?;
    let judging = &lane.lane.judging;
    let counted = match judging.min_pass {
        None => as_counted(judging, results.verdicts),
        // The repeats of a case count together, which takes more than counts.
        Some(_) => reader.metrics(lane)?.all.verdicts,
    };
    Ok(LaneStanding { results, counted })
}

/// Verdicts of results as gates and figures count them, where each counts for itself.
fn as_counted(judging: &Judging, verdicts: Verdicts) -> Verdicts {
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
pub(crate) mod tests {
    use std::{path::Path, sync::mpsc};

    use probity_core::record::RunInfo;
    use probity_store::{NewRun, record_whole};
    use rusqlite::Connection;
    use tokio::sync::oneshot;

    use super::*;
    use crate::{Examined, Survey, Surveyor};

    pub(crate) fn site(store: &Path) -> Arc<Site> {
        let run = NewRun {
            run_id: "20261115-100000-first".to_owned(),
            suite: "s".to_owned(),
            started_ms: 0,
            info: RunInfo::default(),
        };
        record_whole(store, &run, &[]).unwrap();
        let address = "127.0.0.1:0".parse().unwrap();
        let surveyor = Surveyor {
            survey: Arc::new(|_| Survey::default()),
            checkup: Arc::new(|_| Examined::Backends(Vec::new())),
        };
        Arc::new(Site::new(Options {
            store: store.to_owned(),
            address,
            max_error_rate: 0.1,
            suite: None,
            surveyor,
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
        let made = site.view(&reader, &run).unwrap();
        let kept = |at| Kept {
            run_id: run.run_id.clone(),
            ended: ended(&run),
            at,
            made: Arc::clone(&made),
        };
        let now = Instant::now();
        assert!(kept(now).is_good_for(&run));
        assert!(!kept(now.checked_sub(FRESH).unwrap()).is_good_for(&run));
        let mut complete = run.clone();
        complete.status = RunStatus::Complete;
        assert!(!kept(now).is_good_for(&complete));
    }

    #[test]
    fn counts_of_a_killed_run_are_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let site = site(&path);
        let reader = Reader::open_to_look(&path).unwrap();
        let run = reader.find("latest").unwrap();
        let first = site.standings(&reader, &run).unwrap();
        assert!(!Arc::ptr_eq(&first, &site.standings(&reader, &run).unwrap()));
        let mut complete = run.clone();
        complete.status = RunStatus::Complete;
        let first = site.standings(&reader, &complete).unwrap();
        assert!(Arc::ptr_eq(&first, &site.standings(&reader, &complete).unwrap()));
    }

    #[test]
    fn what_takes_too_long_to_read_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let mut site = site(&path);
        Arc::get_mut(&mut site).unwrap().longest = Duration::ZERO;
        let sql = "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)
            INSERT INTO runs (id, run_id, suite, started_ms, status, info)
            SELECT i, 'run-' || i, suite, 0, 'complete', info FROM runs, n WHERE id = 1";
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let suites = site.read(|_, reader| Ok(reader.suite_rows(10)?));
        let problem = runtime.block_on(suites).unwrap_err();
        assert_eq!((problem.status.as_u16(), problem.code), (503, "too_slow"));
        // Whoever comes next is not held up by it.
        Arc::get_mut(&mut site).unwrap().longest = LONGEST;
        let suites = site.read(|_, reader| Ok(reader.suite_rows(10)?));
        assert_eq!(runtime.block_on(suites).unwrap()[0].runs, 30_000);
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
