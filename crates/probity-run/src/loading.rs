//! Functions of users that are called while a suite is loaded: they make prompts, and lists of cases.
//!
//! Loading is synchronous, so each function has a runtime of its own while it is in use.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use probity_core::{case::AskSpec, problem::Problem, record::InputDigest};
use probity_load::{
    case::{made_cases, made_prompt},
    function::{self, Language, split_name},
    inputs,
    suite::{RunnerConfig, Start, Template},
};
use serde::Serialize;
use serde_json::Value;
use tokio::{runtime::Runtime, time::Instant};

use crate::{
    kind::Site,
    process::OwnFolder,
    redact::Redactor,
    worker::{Call, Function, Place, Pool, PoolConfig},
};

/// Values for the variables of prompts.
type Vars = BTreeMap<String, Value>;

/// Prompts that are kept, so that one is not made again for each time a dataset is read.
const KEPT: usize = 4096;
/// The problem of a function that cannot be used.
pub(crate) const BAD: &str = "bad-script";

/// A function that is called and waited for, by threads that have no runtime.
#[derive(Debug)]
struct Blocking {
    place: Place,
    start: Start,
    run: Function,
    limit: Duration,
    /// Variables that it sees beside the usual ones.
    env: Vec<String>,
    redactor: Redactor,
    held: Mutex<Option<Held>>,
}

/// What there is while the function is in use. The pool goes first.
#[derive(Debug)]
struct Held {
    pool: Pool,
    runtime: Runtime,
}

impl Blocking {
    fn new(named: &str, env: &[String], site: &Site<'_>) -> Result<Self, String> {
        let (path, function) = split_name(named);
        let start = match Language::of(path) {
            Some(Language::JavaScript) => Start::Node(named.to_owned()),
            Some(Language::Python) if function.is_none() => {
                return Err(format!("name the function in it: `file://{path}:FUNCTION`"));
            }
            Some(Language::Python) | None => Start::Python(named.to_owned()),
        };
        let place = Place::new(site.folder, site.env.clone());
        let run = Function::file(named, None, &place.folder);
        inputs::note(&site.folder.join(path));
        let (limit, mut redactor) = (site.function_timeout, site.redactor.clone());
        redactor.add_chosen(&site.env, env);
        let env = env.to_vec();
        let made = Self { place, start, run, limit, env, redactor, held: Mutex::default() };
        made.pool().check(&made.place)?;
        Ok(made)
    }

    fn pool(&self) -> Pool {
        Pool::new(PoolConfig {
            callable: None,
            start: self.start.clone(),
            workers: 1,
            timeout: self.limit,
            env: self.env.clone(),
            memory: None,
            may_repeat: true,
        })
    }

    fn call(&self, args: impl Serialize) -> Result<Value, String> {
        let mut held = self.held();
        if held.is_none() {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|error| error.to_string())?;
            *held = Some(Held { pool: self.pool(), runtime });
        }
        let Some(Held { pool, runtime }) = &*held else { return Err("it was given up".to_owned()) };
        let run = &self.run;
        let request = |id| serde_json::to_vec(&Call { id, run, args: Some(args) });
        // Nobody else asks, so it is the limit of the pool that counts.
        let asked = runtime.block_on(async {
            pool.ask(&self.place, request, Instant::now() + self.limit * 2).await
        });
        asked.map_err(|trouble| trouble.text(&self.redactor))
    }

    /// Ends its process, until it is called again.
    fn rest(&self) {
        let held = self.held().take();
        if let Some(Held { pool, runtime }) = held {
            runtime.block_on(async move { drop(pool) });
        }
    }

    fn held(&self) -> MutexGuard<'_, Option<Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The functions that make the prompts of a runner and of its variants, by their names.
#[derive(Debug, Default)]
pub(crate) struct PromptFunctions(BTreeMap<Arc<str>, PromptFunction>);

impl PromptFunctions {
    pub(crate) fn of(runner: &RunnerConfig, site: &Site<'_>) -> Result<Self, Box<Problem>> {
        let mut functions = BTreeMap::new();
        for Template { text, at } in runner.prompts.iter().filter_map(|it| it.function.as_ref()) {
            let function = Blocking::new(text, &runner.env, site);
            let function = function.map_err(|why| Box::new(at.unusable(BAD, &why)))?;
            functions.insert(text.clone(), PromptFunction { function, made: Mutex::default() });
        }
        Ok(Self(functions))
    }

    pub(crate) fn get(&self, named: &str) -> Option<&PromptFunction> {
        self.0.get(named)
    }

    /// Why one of them is not called any more.
    pub(crate) fn failure(&self, named: &str) -> Option<String> {
        let made = self.get(named)?.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.failed.clone()
    }

    /// Ends their processes, until they are called again.
    pub(crate) fn rest(&self) {
        self.0.values().for_each(|it| it.function.rest());
    }
}

/// A function that makes prompts.
#[derive(Debug)]
pub(crate) struct PromptFunction {
    function: Blocking,
    made: Mutex<Made>,
}

#[derive(Debug, Default)]
struct Made {
    prompts: BTreeMap<InputDigest, Arc<AskSpec>>,
    /// Why it is not called any more.
    failed: Option<String>,
}

#[derive(Serialize)]
struct Context<'a> {
    vars: &'a Vars,
    provider: Provider<'a>,
}

#[derive(Serialize)]
struct Provider<'a> {
    id: &'a str,
    label: &'a str,
}

impl PromptFunction {
    /// What it makes for a case on a backend. After it has failed once, it is not called again.
    pub(crate) fn make(&self, vars: &Vars, backend: &str) -> Result<Arc<AskSpec>, String> {
        let context = Context { vars, provider: Provider { id: backend, label: backend } };
        let text = serde_json::to_string(&context).map_err(|error| error.to_string())?;
        let key = InputDigest::of([text.as_bytes()]);
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(why) = &made.failed {
            return Err(why.clone());
        }
        if let Some(prompt) = made.prompts.get(&key) {
            return Ok(prompt.clone());
        }
        let returned = self.function.call([&context]);
        let prompt = returned.and_then(|it| made_prompt(&it, &self.function.place.folder));
        let prompt = prompt.map(Arc::new);
        match &prompt {
            Ok(prompt) => {
                if made.prompts.len() >= KEPT {
                    made.prompts.clear();
                }
                made.prompts.insert(key, prompt.clone());
            }
            Err(why) => made.failed = Some(why.clone()),
        }
        prompt
    }
}

/// The files of a dataset, some of which functions of the suite may have made.
#[derive(Clone, Debug, Default)]
pub(crate) struct DatasetFiles {
    pub(crate) paths: Vec<PathBuf>,
    /// Those that were made, by what the suite calls them.
    made: BTreeMap<String, String>,
    /// Where they are, as long as anybody reads them.
    folder: Option<Arc<OwnFolder>>,
}

impl DatasetFiles {
    /// Calls the functions among the datasets of a runner, once.
    pub(crate) fn of(runner: &RunnerConfig, site: &Site<'_>) -> Result<Self, Box<Problem>> {
        let mut files = Self::default();
        for name in &runner.dataset {
            match function::in_file(name).zip(runner.dataset_at.as_ref()) {
                None => files.paths.push(site.folder.join(name)),
                Some((named, at)) => {
                    let made = generate(named, runner, site)
                        .and_then(|cases| files.keep(name, &cases).map_err(|it| it.to_string()));
                    made.map_err(|why| {
                        Box::new(at.unusable(BAD, &format!("`{name}` made no cases: {why}")))
                    })?;
                }
            }
        }
        Ok(files)
    }

    fn keep(&mut self, name: &str, cases: &str) -> io::Result<()> {
        let folder = match &self.folder {
            Some(folder) => folder.clone(),
            None => Arc::new(OwnFolder::new()?),
        };
        let path = folder.path().join(format!("{}.jsonl", self.paths.len()));
        std::fs::write(&path, cases)?;
        self.made.insert(path.display().to_string(), name.to_owned());
        self.paths.push(path);
        self.folder = Some(folder);
        Ok(())
    }

    /// A problem with the name that the suite has for its file: line 3 is the third case.
    pub(crate) fn named(&self, problem: Problem) -> Problem {
        match self.made.get(&*problem.file) {
            Some(name) => Problem { file: name.as_str().into(), ..problem },
            None => problem,
        }
    }
}

/// The cases that a function makes, one a line.
fn generate(named: &str, runner: &RunnerConfig, site: &Site<'_>) -> Result<String, String> {
    let function = Blocking::new(named, &runner.env, site)?;
    let made = function.call(runner.dataset_config.iter().collect::<Vec<_>>());
    function.rest();
    let Value::Array(cases) = made? else {
        return Err("it returned no list".to_owned());
    };
    let mut lines = String::new();
    for case in made_cases(cases)? {
        // Writing to a text cannot fail.
        let _ = writeln!(lines, "{case}");
    }
    Ok(lines)
}
