//! The suites that there are, and what their files hold.
//!
//! Reading a suite takes as long as its datasets are large, so that it is done once, for all who ask, one suite after the
//! other, and again when a file has changed. Who asks is told after a while that it is not known yet.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use probity_store::SuiteRow;
use tokio::{
    sync::{Semaphore, watch},
    task::spawn_blocking,
    time::{Instant, timeout_at},
};

use crate::{
    problem::Problem,
    site::Site,
    survey::{Examined, Survey},
};

/// Suites that are listed.
const MOST_SUITES: usize = 100;
/// How long a page waits for what is being read.
pub(crate) const PAGE_PATIENCE: Duration = Duration::from_millis(50);
/// How long a program waits for it.
pub(crate) const PROGRAM_PATIENCE: Duration = Duration::from_secs(30);

/// A suite that has runs, or that is where this was started.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    pub(crate) name: String,
    pub(crate) file: Option<PathBuf>,
    pub(crate) is_here: bool,
    /// How many runs there are, and the latest.
    pub(crate) runs: u64,
    pub(crate) latest: Option<Latest>,
}

/// The latest run of a suite.
#[derive(Clone, Debug)]
pub(crate) struct Latest {
    pub(crate) run_id: String,
    pub(crate) started_ms: i64,
}

/// What is known of a suite file.
#[derive(Clone, Debug)]
pub(crate) enum State {
    /// Its runs do not say which file it was.
    Unnamed,
    /// The file is not there any more.
    Gone,
    /// It is being read.
    Reading,
    /// This is what it holds.
    Read(Arc<Survey>),
}

/// What was found in a suite file, or will be.
type Found = watch::Receiver<Option<Arc<Survey>>>;

/// What was found in suite files.
#[derive(Debug)]
pub(crate) struct Surveys {
    known: Mutex<BTreeMap<PathBuf, Found>>,
    turn: Arc<Semaphore>,
}

impl Default for Surveys {
    fn default() -> Self {
        Self { known: Mutex::default(), turn: Arc::new(Semaphore::new(1)) }
    }
}

/// The suites that there are: the one of the folder first, then by their latest run.
pub(crate) async fn listed(site: &Arc<Site>) -> Result<Vec<Listed>, Problem> {
    let rows = match site.read(|_, reader| Ok(reader.suite_rows(MOST_SUITES)?)).await {
        // Before the first run there is no store.
        Err(problem) if problem.code == "no_store" => Vec::new(),
        rows => rows?,
    };
    let here = site.options.suite.as_ref();
    let mut all: Vec<Listed> = rows.into_iter().map(|it| of_row(it, here)).collect();
    if let Some(file) = here.filter(|_| !all.iter().any(|it| it.is_here)) {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let file = Some(file.clone());
        all.insert(0, Listed { name, file, is_here: true, runs: 0, latest: None });
    }
    all.sort_by_key(|it| !it.is_here);
    Ok(all)
}

fn of_row(row: SuiteRow, here: Option<&PathBuf>) -> Listed {
    let SuiteRow { name, path, runs, latest, started_ms } = row;
    let file = path.map(PathBuf::from);
    let is_here = file.is_some() && file.as_ref() == here;
    Listed { name, file, is_here, runs, latest: Some(Latest { run_id: latest, started_ms }) }
}

/// The suite of a file that is listed. No other file is read, whoever names it.
pub(crate) async fn find(site: &Arc<Site>, file: &str) -> Result<Listed, Problem> {
    let is_meant = |it: &Listed| it.file.as_deref() == Some(Path::new(file));
    listed(site).await?.into_iter().find(is_meant).ok_or_else(|| {
        Problem::not_found(format!("no run and no project here is of a suite `{file}`"))
            .hint("the list of suites is at /suites")
    })
}

/// What is known of suites, each asked for before any of them is waited for.
pub(crate) async fn states(
    site: &Arc<Site>,
    suites: &[Listed],
    patience: Duration,
) -> Result<Vec<State>, Problem> {
    let deadline = Instant::now() + patience;
    let mut begun = Vec::new();
    for it in suites {
        begun.push(begin(site, it).await?);
    }
    let mut states = Vec::new();
    for it in begun {
        states.push(match it {
            Begun::Known(state) => state,
            Begun::Wanted(receiver) => wait(receiver, deadline).await?,
        });
    }
    Ok(states)
}

/// What is known of one suite.
pub(crate) async fn state(
    site: &Arc<Site>,
    of: &Listed,
    patience: Duration,
) -> Result<State, Problem> {
    let states = states(site, std::slice::from_ref(of), patience).await?;
    Ok(states.into_iter().next().unwrap_or(State::Unnamed))
}

enum Begun {
    Known(State),
    Wanted(Found),
}

async fn begin(site: &Arc<Site>, of: &Listed) -> Result<Begun, Problem> {
    let Some(file) = of.file.clone() else { return Ok(Begun::Known(State::Unnamed)) };
    let known = lock(site).get(&file).cloned();
    let path = file.clone();
    let look = spawn_blocking(move || {
        let is_wanted = !known.as_ref().is_some_and(is_good);
        (path.is_file(), known, is_wanted)
    });
    let (is_there, known, is_wanted) = look.await.map_err(|_| unreadable())?;
    Ok(match known {
        _ if !is_there => Begun::Known(State::Gone),
        Some(known) if !is_wanted => Begun::Wanted(known),
        known => Begun::Wanted(start(site, file, known.as_ref())),
    })
}

/// Whether what is known, or is to be known soon, is of the files as they are.
fn is_good(known: &Found) -> bool {
    let survey = known.borrow().clone();
    match survey {
        // Who reads it may have failed.
        None => known.has_changed().is_ok(),
        Some(survey) => survey.inputs.changed().next().is_none(),
    }
}

/// Reads a suite file anew, of which something is known that is no longer good.
fn start(site: &Arc<Site>, file: PathBuf, outdated: Option<&Found>) -> Found {
    let (sender, receiver) = watch::channel(None);
    let mut known = lock(site);
    if let Some(now) = known.get(&file)
        && !outdated.is_some_and(|it| it.same_channel(now))
    {
        // Somebody else wanted the same, and was faster.
        return now.clone();
    }
    if known.len() >= 2 * MOST_SUITES {
        known.pop_first();
    }
    known.insert(file.clone(), receiver.clone());
    let (turn, survey) =
        (Arc::clone(&site.surveys.turn), Arc::clone(&site.options.surveyor.survey));
    tokio::spawn(async move {
        let Ok(_turn) = turn.acquire().await else { return };
        if let Ok(survey) = spawn_blocking(move || survey(&file)).await {
            // Nobody may be left who wants to know.
            let _ = sender.send(Some(Arc::new(survey)));
        }
    });
    receiver
}

async fn wait(mut receiver: Found, deadline: Instant) -> Result<State, Problem> {
    match timeout_at(deadline, receiver.wait_for(Option::is_some)).await {
        Err(_) => Ok(State::Reading),
        Ok(Err(_)) => Err(unreadable()),
        Ok(Ok(survey)) => Ok(survey.clone().map_or(State::Reading, State::Read)),
    }
}

/// The suite file that is asked for, or the first, among those that are there.
pub(crate) fn chosen<'l>(
    listed: &'l [Listed],
    asked: Option<&str>,
) -> Result<Option<(&'l Path, Vec<&'l Listed>)>, Problem> {
    let mut there: Vec<&Listed> = Vec::new();
    for it in listed.iter().filter(|it| it.file.as_ref().is_some_and(|file| file.is_file())) {
        if !there.iter().any(|known| known.file == it.file) {
            there.push(it);
        }
    }
    let files = || there.iter().filter_map(|it| it.file.as_deref());
    let file = match asked {
        None => files().next(),
        Some(name) => Some(files().find(|it| *it == Path::new(name)).ok_or_else(|| {
            Problem::not_found(format!("there is no suite `{name}` here"))
                .hint("the list of suites is at /suites")
        })?),
    };
    Ok(file.map(|it| (it, there)))
}

/// What can be said of the backends of a suite without asking them.
pub(crate) async fn examined(site: &Arc<Site>, file: PathBuf) -> Result<Examined, Problem> {
    let checkup = Arc::clone(&site.options.surveyor.checkup);
    spawn_blocking(move || checkup(&file)).await.map_err(|_| unreadable())
}

fn unreadable() -> Problem {
    Problem::internal("reading the suite failed").hint("`probity run --dry-run` may say why")
}

fn lock(site: &Site) -> MutexGuard<'_, BTreeMap<PathBuf, Found>> {
    site.surveys.known.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use super::*;

    #[test]
    fn a_suite_that_many_ask_for_at_once_is_read_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("probity.toml");
        fs::write(&file, "").unwrap();
        let mut site = crate::site::tests::site(&folder.path().join("x.db"));
        let read = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&read);
        Arc::get_mut(&mut site).unwrap().options.surveyor.survey = Arc::new(move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
            Survey::default()
        });
        let listed = Listed {
            name: "s".to_owned(),
            file: Some(file.clone()),
            is_here: false,
            runs: 0,
            latest: None,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            // Each looks before any of them has begun to read.
            let (one, other) = tokio::join!(begin(&site, &listed), begin(&site, &listed));
            for begun in [one, other] {
                let Ok(Begun::Wanted(found)) = begun else { panic!("it is read") };
                let deadline = Instant::now() + PROGRAM_PATIENCE;
                assert!(matches!(wait(found, deadline).await, Ok(State::Read(_))));
            }
            assert_eq!(read.load(Ordering::SeqCst), 1);
            // What is out of date is read again, once.
            let outdated = lock(&site).get(&file).cloned();
            for _ in 0..2 {
                let found = start(&site, file.clone(), outdated.as_ref());
                let deadline = Instant::now() + PROGRAM_PATIENCE;
                assert!(matches!(wait(found, deadline).await, Ok(State::Read(_))));
            }
            assert_eq!(read.load(Ordering::SeqCst), 2);
        });
    }
}
