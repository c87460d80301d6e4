//! What pages show of suite files: read as the other commands read them, and quietly.

use std::{
    cell::RefCell,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, OnceLock},
};

use probity_core::{case::TestCase, criteria::CriteriaProblem, problem::UnknownKeys};
use probity_grade::{Rules, internal::lint::Lint};
use probity_load::{
    dataset::{self, Format, Item, Stats},
    function, inputs,
    settings::Layer,
    suite::{RunnerConfig, Suite},
};
use probity_run::backend::http::Client;
use probity_web::{BackendSurvey, Examined, Findings, Problems, RunnerSurvey, Survey, Surveyor};

use super::super::{
    dataset::{criteria_check, undecided},
    doctor::{Depth, Examination},
    project::{Project, read_quietly},
};
use crate::{cli::run::StoreArgs, environment::Environment, failure::Failure};

/// Bytes of datasets that are read a case at a time.
const LARGEST_STREAMED: u64 = 64 << 20;
/// Cases of a dataset that are looked into for what is probably wrong: to compare each with all others takes long.
const MOST_LINTED: usize = 5000;
/// Bytes of datasets that are read as a whole.
const LARGEST_WHOLE: u64 = 8 << 20;

pub(super) fn surveyor(place: &StoreArgs) -> Surveyor {
    let place = place.clone();
    let client: OnceLock<Client> = OnceLock::new();
    Surveyor {
        survey: Arc::new(survey),
        checkup: Arc::new(move |path| {
            examined(path, &place, client.get_or_init(|| Client::new(1)))
        }),
    }
}

fn survey(path: &Path) -> Survey {
    inputs::listen();
    let mut survey = Survey::default();
    let (suite, problems) = read_strictly(path);
    survey.problems = problems;
    if let Some((suite, rules)) = suite {
        survey.backends = suite
            .backends
            .iter()
            .map(|it| BackendSurvey {
                name: it.name.clone(),
                kind: it.kind.as_str(),
                model: it.model.clone(),
            })
            .collect();
        let runners = suite.runners.iter();
        survey.runners = runners.map(|it| runner(it, &suite.folder, &rules).bounded()).collect();
    }
    survey.inputs = inputs::take().unwrap_or_default();
    survey
}

/// Reads a suite as a run would, with what is wrong with it. A configuration of another tool is not converted for that.
fn read_strictly(path: &Path) -> (Option<(Suite, Rules)>, Problems) {
    let mut problems = Problems::default();
    inputs::note(path);
    if let Some(origin) = probity_import::foreign(path) {
        problems.add(foreign(path, origin.as_str()));
        return (None, problems);
    }
    let (suite, found) = read_quietly(path);
    for problem in found {
        problems.add(UnknownKeys::Refused.judge(problem));
    }
    (suite.filter(|_| problems.errors == 0), problems)
}

fn foreign(path: &Path, tool: &str) -> probity_core::problem::Problem {
    probity_core::problem::Problem {
        severity: probity_core::problem::Severity::Warning,
        code: "foreign",
        message: format!("this is a configuration of {tool}, which is only read by a run"),
        file: path.display().to_string().into(),
        place: None,
        case_id: None,
        help: Some("`probity import` makes a suite of it".to_owned()),
    }
}

fn runner(config: &RunnerConfig, folder: &Path, rules: &Rules) -> RunnerSurvey {
    let mut survey = RunnerSurvey {
        name: config.name.clone(),
        kind: config.kind.as_str(),
        backends: config.backends.clone(),
        dataset: config.dataset.clone(),
        ..RunnerSurvey::default()
    };
    if config.dataset.is_empty() {
        return survey;
    }
    let paths: Vec<PathBuf> = config.dataset.iter().map(|it| folder.join(it)).collect();
    survey.unread = unread(config, &paths);
    if survey.unread.is_none() {
        read(config, &paths, rules, &mut survey);
    }
    survey
}

/// Why a dataset is not read for a page.
fn unread(config: &RunnerConfig, paths: &[PathBuf]) -> Option<String> {
    if let Some(made) = config.dataset.iter().find(|it| function::in_file(it).is_some()) {
        return Some(format!(
            "`{made}` makes the cases. Only a run calls it; `probity run --dry-run` checks what it makes"
        ));
    }
    let files = paths.iter().filter_map(|it| dataset::files(it).ok()).flatten();
    let (mut streamed, mut whole) = (0, 0);
    for file in files {
        let Ok(about) = fs::metadata(&file) else { continue };
        if !about.is_file() {
            return Some(format!("`{}` is not an ordinary file", file.display()));
        }
        match Format::of_path(&file) {
            Some(Format::Jsonl | Format::Csv) => streamed += about.len(),
            Some(Format::Toml | Format::Json | Format::Yaml) | None => whole += about.len(),
        }
    }
    (streamed > LARGEST_STREAMED || whole > LARGEST_WHOLE).then(|| {
        "it is too large to be read for a page; `probity dataset validate` checks it".to_owned()
    })
}

fn read(config: &RunnerConfig, paths: &[PathBuf], rules: &Rules, survey: &mut RunnerSurvey) {
    let (mut stats, mut lint) = (Stats::default(), Lint::default());
    let of_suite: RefCell<Problems> = RefCell::default();
    let check = criteria_check(rules);
    let check = |case: &TestCase| -> Vec<CriteriaProblem> {
        let mut problems = check(case);
        // What the suite adds to each case is told of once.
        problems.retain(|it| match config.defaults.problem(case, it) {
            Some(problem) => {
                let mut told = of_suite.borrow_mut();
                if !told.first.iter().any(|it| it.place == problem.place) {
                    told.add(problem);
                }
                false
            }
            None => true,
        });
        problems
    };
    let complete = |case: &mut TestCase| config.defaults.apply(case);
    let named: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    dataset::read_completed(&named, &complete, &check, &mut |item| match item {
        Item::Problem(problem) => survey.problems.add(UnknownKeys::Refused.judge(problem)),
        Item::Case(at) => {
            stats.add(&at.case);
            if survey.linted < MOST_LINTED {
                survey.linted += 1;
                lint.add(&at.case);
            }
        }
    });
    for problem in of_suite.into_inner().first {
        survey.problems.add(problem);
    }
    if let Some(file) = paths.first()
        && stats.without_criteria_count > 0
    {
        survey.problems.add(undecided(file, stats.without_criteria_count, &stats.without_criteria));
    }
    // They have been told of together.
    let findings = lint.finish().into_iter().filter(|it| it.code != "no-criterion").collect();
    survey.findings = Findings::of(findings);
    survey.stats = stats;
}

fn examined(path: &Path, place: &StoreArgs, client: &Client) -> Examined {
    // Nobody is asked, so that no error is judged by them.
    static RULES: LazyLock<Rules> = LazyLock::new(Rules::default);
    let (suite, problems) = read_strictly(path);
    let Some((suite, _)) = suite else { return Examined::Unusable(problems) };
    let project = Environment::load(place.env_file.as_deref()).and_then(|environment| {
        let name = path.display().to_string();
        Project::of(suite, name, &RULES, (environment, place, Layer::default()))
    });
    let look = |project: Project| {
        let examination = Examination { project: &project, client, depth: Depth::Look };
        // Nothing in it waits.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .map_err(|error| Failure::new("failed to start").because(error))?;
        let backends = project.suite.backends.iter();
        Ok(backends.map(|it| runtime.block_on(examination.of(it))).collect())
    };
    match project.and_then(look) {
        Ok(backends) => Examined::Backends(backends),
        Err(failure) => Examined::Failed(failure.to_string()),
    }
}
