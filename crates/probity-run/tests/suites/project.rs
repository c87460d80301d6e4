//! A folder with a suite in it, and what comes of running that.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    ffi::OsString,
    fs,
    path::PathBuf,
    sync::{Arc, Mutex},
};

use probity_core::{
    case::TestCase,
    event::Event,
    problem::{Problem, Severity},
    record::{Asked, CacheKind, CaseRecord, InputDigest},
};
use probity_grade::Rules;
use probity_load::{
    settings::{Resolved, Settings},
    suite::Suite,
};
use probity_run::{
    backend::{
        Answers, Backend, CacheAccess,
        http::Client,
        open::{BackendError, BackendFactory},
    },
    callable::Callables,
    carrier::Executor,
    engine::{self, RunOutcome},
    events,
    plan::{
        Choice, Helpers, Plan, PlannedLane, ScannedRunner, Seat, Site, Used, count_comparisons,
        scan,
    },
    prices::Prices,
    redact::Redactor,
    sandbox::Ground,
    scorer::Scorers,
    scripts::JavaScript,
};
use probity_testkit::{FakeServer, Received};
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::watch;

/// A folder that goes away with the test.
pub(crate) struct Project {
    folder: Arc<TempDir>,
    variables: BTreeMap<OsString, OsString>,
}

/// A suite that has been read.
pub(crate) struct Read {
    pub(crate) suite: Suite,
    pub(crate) rules: &'static Rules,
    pub(crate) settings: Settings,
    variables: BTreeMap<OsString, OsString>,
    /// It is there as long as this is.
    _folder: Arc<TempDir>,
}

/// What a backend is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duty {
    Answers,
    Embeds,
    Ranks,
}

/// A backend by what it is there for, which is nothing where nobody is asked, and by its name.
type SeatKey = (Option<Duty>, String);

/// What a run came to.
pub(crate) struct Ran {
    pub(crate) outcome: RunOutcome,
    /// All events but the ends of cases.
    pub(crate) events: Vec<Event>,
    /// Lane and record of each case, in the order of their ids, lane after lane.
    pub(crate) records: Vec<(usize, CaseRecord)>,
}

/// Answers of earlier calls, in memory.
#[derive(Debug, Default)]
pub(crate) struct Kept(pub(crate) Mutex<BTreeMap<(String, [u8; 16]), String>>);

impl Answers for Kept {
    fn get(&self, kept: CacheKind, key: InputDigest) -> Option<String> {
        self.0.lock().unwrap().get(&(format!("{kept:?}"), key.0)).cloned()
    }

    fn put(&self, kept: CacheKind, key: InputDigest, answer: &str) {
        self.0.lock().unwrap().insert((format!("{kept:?}"), key.0), answer.to_owned());
    }
}

impl Project {
    pub(crate) fn new() -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let variables = BTreeMap::from([("PATH".into(), path)]);
        Self { folder: Arc::new(tempfile::tempdir().unwrap()), variables }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn file(self, name: &str, text: &str) -> Self {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// The dataset, a case in each line.
    pub(crate) fn cases(self, cases: &[Value]) -> Self {
        let lines: Vec<String> = cases.iter().map(Value::to_string).collect();
        self.file("cases.jsonl", &lines.join("\n"))
    }

    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    /// Reads a suite that has to be sound.
    pub(crate) fn read(&self, text: &str) -> Read {
        let compiled = RefCell::new(None);
        let check = |suite: &Suite| match Rules::compile(&suite.rules) {
            Ok(rules) => {
                let names = suite.scorers.iter().map(|it| it.name.clone());
                let rules = rules.with_scripts(JavaScript::of(&suite.folder)).with_scorers(names);
                compiled.replace(Some(rules));
                Vec::new()
            }
            Err(problems) => problems,
        };
        let file: Arc<str> = "probity.toml".into();
        let (suite, problems) = Suite::parse(text, &file, self.folder.path(), &check);
        let suite = suite.unwrap_or_else(|| panic!("{problems:#?}"));
        let rules = Box::leak(Box::new(compiled.into_inner().unwrap()));
        let settings = Resolved::of([suite.settings.clone()]).settings();
        let (variables, folder) = (self.variables.clone(), self.folder.clone());
        Read { suite, rules, settings, variables, _folder: folder }
    }

    /// Runs a suite to its end.
    pub(crate) fn run(&self, suite: &str) -> Ran {
        let read = self.read(suite);
        let plan = read.plan();
        ran(plan, read.rules)
    }

    /// What is wrong with the cases of a suite.
    pub(crate) fn problems(&self, suite: &str) -> Vec<Problem> {
        self.read(suite).scan(&Choice::default()).1
    }
}

impl Read {
    fn site(&self) -> Site<'_> {
        Site {
            folder: &self.suite.folder,
            rules: self.rules,
            env: self.variables.clone(),
            redactor: Redactor::default(),
            kill_grace: self.settings.timeouts.kill_grace,
            function_timeout: self.settings.timeouts.attempt,
        }
    }

    /// What is in the datasets, and what is wrong with them.
    pub(crate) fn scan(&self, choice: &Choice) -> (Vec<Option<ScannedRunner>>, Vec<Problem>) {
        let mut problems = Vec::new();
        let site = self.site();
        let runners = self.suite.runners.iter();
        let scanned = runners.map(|it| scan(it, &site, choice, &mut |it| problems.push(it)));
        (scanned.collect(), problems)
    }

    /// The runners, whose datasets have to be sound.
    pub(crate) fn scanned(&self, choice: &Choice) -> Vec<ScannedRunner> {
        let (scanned, problems) = self.scan(choice);
        scanned.into_iter().map(|it| it.unwrap_or_else(|| panic!("{problems:#?}"))).collect()
    }

    /// A case of the first runner as it is read.
    pub(crate) fn plan_case(&self, case_id: &str) -> TestCase {
        let mut found = None;
        self.plan().lanes[0].requests(|case, _| {
            if case.id == case_id {
                found = Some(case.clone());
            }
        });
        found.unwrap_or_else(|| panic!("no case `{case_id}`"))
    }

    pub(crate) fn open(&self, name: &str, duty: Duty) -> Result<Backend, BackendError> {
        let factory = BackendFactory {
            client: &Client::new(8),
            variables: &self.variables,
            settings: &self.settings,
            rules: self.rules,
            prices: &Prices::with(None).unwrap(),
            folder: &self.suite.folder,
            callables: &Callables::default(),
        };
        let config = self.suite.backend(name).unwrap();
        match duty {
            Duty::Answers => factory.open(config),
            Duty::Embeds => factory.open_embedder(config),
            Duty::Ranks => factory.open_reranker(config),
        }
    }

    pub(crate) fn backend(&self, name: &str) -> Backend {
        self.open(name, Duty::Answers).unwrap()
    }

    pub(crate) fn plan(&self) -> Plan {
        self.plan_of(&Choice::default())
    }

    /// Every runner on every backend that it names, all at the same time.
    pub(crate) fn plan_of(&self, choice: &Choice) -> Plan {
        let scanned = self.scanned(choice);
        let mut seats: Vec<(SeatKey, Arc<Backend>)> = Vec::new();
        let mut seat = |duty: Option<Duty>, name: &str| {
            let key = (duty, name.to_owned());
            let place = seats.iter().position(|it| it.0 == key).unwrap_or_else(|| {
                let backend = match duty {
                    Some(duty) => self.open(name, duty).unwrap(),
                    None => Backend::nobody(name),
                };
                seats.push((key, Arc::new(backend)));
                seats.len() - 1
            });
            Seat { place, backend: seats[place].1.clone() }
        };
        let mut lanes: Vec<PlannedLane> = Vec::new();
        for (at, scanned) in scanned.iter().enumerate() {
            let runner = &scanned.runner;
            if runner.backends.is_empty() {
                let nobody = seat(None, "program");
                lanes.extend(scanned.lanes(at, nobody.place, &nobody.backend, &Helpers::default()));
            }
            for name in &runner.backends {
                let asked = seat(Some(Duty::Answers), name);
                let judges = match runner.panel.judges.as_slice() {
                    [] => vec![asked.clone()],
                    named => named.iter().map(|it| seat(Some(Duty::Answers), it)).collect(),
                };
                let helpers = Helpers {
                    judges,
                    embedder: runner.embeddings.as_deref().map(|it| seat(Some(Duty::Embeds), it)),
                    reranker: runner.reranker.as_deref().map(|it| seat(Some(Duty::Ranks), it)),
                    users: scanned.users.iter().map(|it| seat(Some(Duty::Answers), it)).collect(),
                };
                lanes.extend(scanned.lanes(at, asked.place, &asked.backend, &helpers));
            }
        }
        count_comparisons(&mut lanes);
        let callables = Callables::default();
        Plan {
            run_id: "test".to_owned(),
            resumed: false,
            settings: self.settings.clone(),
            stages: vec![(0..lanes.len()).collect()],
            backends: seats.into_iter().map(|it| it.1).collect(),
            lanes,
            budgets: scanned.iter().map(|it| it.runner.budget).collect(),
            carried: Used::default(),
            carried_by_runner: Vec::new(),
            ledger: None,
            cache: None,
            access: CacheAccess::default(),
            scorers: Scorers::new(&self.suite.scorers, self.site(), &self.settings, &callables),
            ground: Arc::new(Ground::new(&self.variables).without_cache()),
            executor: Executor::Local,
        }
    }
}

/// Runs a plan to its end.
pub(crate) fn ran(plan: Plan, rules: &'static Rules) -> Ran {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        // With room for all that happens, nobody has to listen meanwhile.
        let (sender, receiver) = events::channel(1 << 12, 1 << 26);
        let (_stop, stopped) = watch::channel(false);
        let outcome = engine::run(plan, rules, sender, stopped).await.unwrap();
        let mut records = Vec::new();
        let mut events = Vec::new();
        for stamped in receiver.close() {
            if let Event::CaseFinished { lane, record } = stamped.event {
                records.push((lane, *record));
            } else {
                events.push(stamped.event);
            }
        }
        records.sort_by_key(|(lane, it)| (*lane, it.case_id.clone(), it.repeat));
        Ran { outcome, events, records }
    })
}

impl Ran {
    /// The record of a case of the first lane.
    pub(crate) fn of(&self, case_id: &str) -> &CaseRecord {
        let found = self.records.iter().find(|it| it.0 == 0 && it.1.case_id == case_id);
        &found.unwrap_or_else(|| panic!("no record of `{case_id}`")).1
    }

    /// What each case of the first lane came to.
    pub(crate) fn verdicts(&self) -> Vec<(&str, &str)> {
        let own = self.records.iter().filter(|it| it.0 == 0);
        own.map(|(_, it)| (it.case_id.as_str(), it.verdict.as_str())).collect()
    }
}

/// Who was asked what for, in order.
pub(crate) fn roles(record: &CaseRecord) -> Vec<&str> {
    record.asked.iter().map(|it: &Asked| it.role.as_str()).collect()
}

/// The bodies that a server got, in order.
pub(crate) fn bodies(server: &FakeServer) -> Vec<Value> {
    server.seen().last.iter().map(Received::json).collect()
}

/// The problems that are errors, by code and message.
pub(crate) fn errors(problems: &[Problem]) -> Vec<(&str, &str)> {
    let errors = problems.iter().filter(|it| it.severity == Severity::Error);
    errors.map(|it| (it.code, it.message.as_str())).collect()
}
