//! A suite with everything that a command needs of it: rules, settings, environment.

use std::{cell::RefCell, path::Path};

use probity_core::problem::{Problem, Severity, UnknownKeys};
use probity_grade::Rules;
use probity_load::{
    bounded,
    settings::{Layer, Origin, Resolved, Settings, Value, keys, parse_duration, variable},
    suite::{Given, RunnerConfig, Suite, SuiteCheck, USUAL_FILES, usual_file},
};
use probity_model::models;
use probity_run::{
    backend::{http::Client, open::BackendFactory},
    callable::Callables,
    plan::{Choice, ScannedRunner, Site, scan},
    prices::Prices,
    redact::Redactor,
    scripts::JavaScript,
};
use probity_sandbox::world;

use super::import;
use crate::{
    cli::run::{ForeignArgs, LimitArgs, StoreArgs},
    environment::Environment,
    failure::Failure,
    printer::Printer,
};

/// How a suite is read.
pub(super) struct Reading<'a> {
    /// Who shows its problems.
    pub(super) printer: &'a Printer,
    pub(super) unknown_keys: UnknownKeys,
    /// What becomes of a configuration of another tool.
    pub(super) foreign: ForeignArgs,
    /// Functions of the program that ours is a library of.
    pub(super) callables: Callables,
}

impl<'a> Reading<'a> {
    /// What nothing reads is refused.
    pub(super) fn strict(printer: &'a Printer, foreign: ForeignArgs) -> Self {
        Self {
            printer,
            unknown_keys: UnknownKeys::Refused,
            foreign,
            callables: Callables::default(),
        }
    }
}

/// A suite that is ready to be used.
pub(super) struct Project {
    pub(super) suite: Suite,
    /// What the suite is called: the name of its file.
    pub(super) name: String,
    /// Not freed before the program ends, because tasks refer to it.
    pub(super) rules: &'static Rules,
    pub(super) resolved: Resolved,
    pub(super) settings: Settings,
    pub(super) environment: Environment,
    pub(super) prices: Prices,
    /// Functions of the program that ours is a library of.
    pub(super) callables: Callables,
}

impl Project {
    /// What its runners are made ready with.
    pub(super) fn site(&self) -> Site<'_> {
        Site {
            folder: &self.suite.folder,
            rules: self.rules,
            env: self.environment.all(),
            redactor: self.redactor(),
            kill_grace: self.settings.timeouts.kill_grace,
            function_timeout: self.settings.timeouts.attempt,
        }
    }

    /// Hides the keys that a program of ours can see: those that the suite names, and whatever looks
    /// like one by its name.
    fn redactor(&self) -> Redactor {
        let mut redactor = Redactor::default();
        let backends = &self.suite.backends;
        let named: Vec<&str> = backends.iter().filter_map(|it| it.api_key_env.as_deref()).collect();
        for (name, value) in self.environment.all() {
            let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
            match named.contains(&&*name) {
                true => redactor.add_key(&value),
                false => redactor.add_variable(&name, &value),
            }
        }
        redactor
    }

    /// Reads a suite, and merges its settings with those of the environment and the
    /// command line.
    pub(super) fn load(
        path: &Path,
        place: &StoreArgs,
        flags: Layer,
        reading: &Reading<'_>,
    ) -> Result<Self, Failure> {
        let printer = reading.printer;
        if !path.exists() {
            return Err(missing(path));
        }
        let environment = Environment::load(place.env_file.as_deref())?;
        // A configuration of another tool does not say where the store is.
        let settings =
            resolve(&Suite::default(), &environment, place, Layer::default())?.settings();
        let (suite, rules) = read_with(path, reading, settings.store.as_ref())?;
        warn_of_unknown(&environment, printer)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let project =
            Self::of(suite, name, Box::leak(Box::new(rules)), (environment, place, flags))?;
        Ok(Self { callables: reading.callables.clone(), ..project })
    }

    /// A suite that has been read, with the settings that hold for it.
    pub(super) fn of(
        suite: Suite,
        name: String,
        rules: &'static Rules,
        (environment, place, flags): (Environment, &StoreArgs, Layer),
    ) -> Result<Self, Failure> {
        let resolved = resolve(&suite, &environment, place, flags)?;
        let prices = match &suite.prices {
            None => Prices::with(None),
            Some(path) => {
                let text = bounded::read_text(path, bounded::LARGEST_SUITE)
                    .map_err(|error| Failure::read(path, error))?;
                Prices::with(Some(&text))
            }
        };
        let prices =
            prices.map_err(|error| Failure::new("the price file cannot be used").because(error))?;
        let settings = resolved.settings();
        let callables = Callables::default();
        Ok(Self { suite, name, rules, resolved, settings, environment, prices, callables })
    }

    /// Reads the datasets of the runners that ask something, to look at their cases.
    pub(super) fn each_runner(
        &self,
        printer: &Printer,
        mut each: impl FnMut(&ScannedRunner),
    ) -> Result<(), Failure> {
        let mut problems = printer.problems();
        for runner in self.suite.runners.iter().filter(|it| !it.kind.spec().is_external) {
            // Nothing of a dataset is run, so it needs no consent.
            let runner = RunnerConfig { allow_code: true, ..runner.clone() };
            let choice = Choice { unknown_keys: UnknownKeys::Refused, ..Choice::default() };
            let mut show = |problem| problems.show(&problem);
            let scanned = scan(&runner, &self.site(), &choice, &mut show)
                .ok_or_else(|| Failure::new("a dataset has errors, so its cases are not known"))?;
            each(&scanned);
        }
        Ok(())
    }

    /// What all backends of the suite have in common. Hands out what it borrows.
    pub(super) fn with_factory<T>(
        &self,
        client: &Client,
        make: impl FnOnce(&BackendFactory<'_>) -> T,
    ) -> T {
        make(&BackendFactory {
            client,
            variables: &self.environment.all(),
            settings: &self.settings,
            rules: self.rules,
            prices: &self.prices,
            folder: &self.suite.folder,
            callables: &self.callables,
        })
    }
}

/// Says that there is no suite, under any of the usual names if it is them that were looked for.
fn missing(path: &Path) -> Failure {
    let [first, second, third] = USUAL_FILES;
    let message = match path == Path::new(first) && !usual_file().exists() {
        true => format!("there is no suite file `{first}`, `{second}` or `{third}`"),
        false => format!("there is no suite file `{}`", path.display()),
    };
    Failure::new(message)
        .hint("`probity init` writes one to start from; `probity run FILE` names another")
}

/// The settings for commands that need no suite: those of the usual suite file count if it
/// is there and can be read.
pub(super) fn settings_alone(place: &StoreArgs) -> Result<Settings, Failure> {
    let environment = Environment::load(place.env_file.as_deref())?;
    let (suite, _) = Suite::load(usual_file(), &|_| Vec::new());
    Ok(resolve(&suite.unwrap_or_default(), &environment, place, Layer::default())?.settings())
}

fn resolve(
    suite: &Suite,
    environment: &Environment,
    place: &StoreArgs,
    mut flags: Layer,
) -> Result<Resolved, Failure> {
    let invalid = |error| Failure::new("a setting cannot be used").because(error);
    environment.names(OURS)?;
    let file = Layer::from_variables(|name| environment.of_file(name), Origin::DotEnv);
    let process = Layer::from_variables(Environment::of_process, Origin::Environment);
    if let Some(store) = &place.store {
        let store = Value::Text(store.display().to_string());
        flags.set("store", store, Origin::Flag("--store"));
    }
    let layers = [suite.settings.clone(), file.map_err(invalid)?, process.map_err(invalid)?, flags];
    Ok(Resolved::of(layers))
}

/// Warns of variables that look like settings and are none.
fn warn_of_unknown(environment: &Environment, printer: &Printer) -> Result<(), Failure> {
    let known: Vec<String> = keys().map(variable).collect();
    for name in environment.names(OURS)? {
        if known.contains(&name) || NO_SETTINGS.contains(&name.as_str()) {
            continue;
        }
        let nearest = known.iter().min_by_key(|it| strsim::levenshtein(it, &name));
        let meant = nearest.filter(|it| strsim::levenshtein(it, &name) <= MOST_TYPOS);
        let help = match meant {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => "`probity config show` lists the settings".to_owned(),
        };
        printer.note(&format!("warning: the variable `{name}` is not a setting; {help}"));
    }
    Ok(())
}

/// How the variables begin that are ours.
const OURS: &str = "PROBITY_";
/// Those that are ours and set nothing of a run: folders of this machine, and what programs that we start are given,
/// since one of them may have started us.
const NO_SETTINGS: [&str; 4] =
    [models::VARIABLE, world::VARIABLE, "PROBITY_MARK", "PROBITY_CONTEXT"];
/// How many letters may be wrong in a name for it to be meant for another.
const MOST_TYPOS: usize = 4;

/// The settings that the command line makes.
pub(super) fn flags(limits: &LimitArgs) -> Result<Layer, Failure> {
    let LimitArgs {
        max_concurrency,
        max_calls,
        max_cost,
        max_tokens,
        max_retries,
        attempt_timeout,
        timeout,
        no_fail_fast,
    } = limits;
    let mut layer = Layer::default();
    let mut set = |key, value: Option<Value>, flag| {
        if let Some(value) = value {
            layer.set(key, value, Origin::Flag(flag));
        }
    };
    set("max_concurrency", max_concurrency.map(Value::Count), "--max-concurrency");
    set("budget.max_calls", max_calls.map(Value::Count), "--max-calls");
    set("budget.max_tokens", max_tokens.map(Value::Count), "--max-tokens");
    set("retry.max_retries", max_retries.map(Value::Count), "--max-retries");
    let cost = max_cost.map(|cost| match cost >= 0.0 && cost.is_finite() {
        true => Ok(Value::Amount(cost)),
        false => Err(Failure::new("`--max-cost` must be a non-negative amount of dollars")),
    });
    set("budget.max_cost_usd", cost.transpose()?, "--max-cost");
    let duration = |text: &Option<String>, flag: &str| {
        let parse = |text: &String| {
            let limit = parse_duration(text).filter(|limit| !limit.is_zero());
            limit.map(Value::Duration).ok_or_else(|| {
                Failure::new(format!("`{flag}` must be a duration such as 30s, not `{text}`"))
            })
        };
        text.as_ref().map(parse).transpose()
    };
    set("timeouts.attempt", duration(attempt_timeout, "--attempt-timeout")?, "--attempt-timeout");
    set("timeouts.case", duration(timeout, "--timeout")?, "--timeout");
    set("fail_fast.enabled", no_fail_fast.then_some(Value::Flag(false)), "--no-fail-fast");
    Ok(layer)
}

/// Reads a suite with its rules compiled: compiling is how they are checked.
pub(super) fn read(path: &Path, reading: &Reading<'_>) -> Result<(Suite, Rules), Failure> {
    read_with(path, reading, Resolved::of([]).settings().store.as_ref())
}

/// The same. What a configuration of another tool becomes is kept beside the store.
fn read_with(path: &Path, reading: &Reading<'_>, store: &Path) -> Result<(Suite, Rules), Failure> {
    let given = Given {
        backends: reading.callables.backends.keys().cloned().collect(),
        scorers: reading.callables.scorers.keys().cloned().collect(),
    };
    let (suite, problems) = match probity_import::foreign(path) {
        None => with_rules(|check| Suite::load_with(path, (&given, check))),
        Some(_) => {
            let made = import::as_suite(path, reading, store)?;
            with_rules(|check| {
                Suite::parse_with(&made.text, &made.name, &made.folder, (&given, check))
            })
        }
    };
    let mut is_refused = false;
    for problem in problems {
        let problem = reading.unknown_keys.judge(problem);
        is_refused |= problem.severity == Severity::Error;
        reading.printer.problem(&problem);
    }
    suite
        .filter(|_| !is_refused)
        .ok_or_else(|| Failure::new(format!("the suite file `{}` cannot be used", path.display())))
}

/// A suite with its rules, if both can be used, and what is wrong with it.
type Checked = (Option<(Suite, Rules)>, Vec<Problem>);

/// Reads a suite file with its rules compiled. Nothing is shown.
pub(super) fn read_quietly(path: &Path) -> Checked {
    with_rules(|check| Suite::load(path, check))
}

/// The suite of a run elsewhere, of which only the parts are known that say how calls are made.
#[cfg(feature = "workers")]
pub(super) fn read_parts(
    text: &str,
    file: &std::sync::Arc<str>,
    folder: &Path,
    error_rules: Option<&str>,
) -> Result<(Suite, Rules), Vec<Problem>> {
    let (suite, problems) = Suite::parse(text, file, folder, &|_| Vec::new());
    let mut suite = suite.ok_or(problems)?;
    suite.rules.error_rules = error_rules.map(ToOwned::to_owned);
    match Rules::compile(&suite.rules) {
        Ok(rules) => Ok((suite, rules)),
        // They were compiled where the run is, by the same version.
        Err(_) => Err(Vec::new()),
    }
}

fn with_rules(read: impl FnOnce(SuiteCheck<'_>) -> (Option<Suite>, Vec<Problem>)) -> Checked {
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
    let (suite, problems) = read(&check);
    (suite.zip(compiled.into_inner()), problems)
}
