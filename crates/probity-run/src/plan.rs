//! What is going to be run: every dataset read and checked, every backend made ready.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use probity_core::{
    case::Category,
    dataset::Item,
    problem::{Problem, Severity},
    record::{InputDigest, Lane},
    settings::{Budget, Settings},
    suite::RunnerConfig,
};
use probity_grade::Rules;

pub use crate::budget::Used;
use crate::{
    backend::{Answers, Backend},
    decide::{Certainty, Decider, Planned},
    filter::{Chooser, Filter, Sample, Unmet, number},
    source::{Cases, Done},
};

/// Everything that is run.
#[derive(Debug)]
pub struct Plan {
    /// The run's id.
    pub run_id: String,
    /// Whether the run had been begun before.
    pub resumed: bool,
    /// How it is run.
    pub settings: Settings,
    /// What is asked.
    pub backends: Vec<Arc<Backend>>,
    /// What is run on what.
    pub lanes: Vec<PlannedLane>,
    /// Lanes that run at the same time, one group after the other.
    pub stages: Vec<Vec<usize>>,
    /// What each runner may use.
    pub budgets: Vec<Budget>,
    /// What earlier sittings have used.
    pub carried: Used,
    /// Answers of earlier calls that may be used.
    pub cache: Option<Arc<dyn Answers>>,
}

/// One runner on one backend.
#[derive(Debug)]
pub struct PlannedLane {
    /// What is recorded of it.
    pub info: Lane,
    /// Its place in the list of backends.
    pub backend: usize,
    /// Its place in the list of budgets.
    pub runner: usize,
    pub(crate) cases: Cases,
    /// Cases that came to an end before.
    pub done: Done,
    /// How many results there are to be.
    pub(crate) planned: Planned,
    /// How sure one has to be of the gates to end the lane early; none: it is not ended.
    pub(crate) certainty: Option<Certainty>,
}

impl PlannedLane {
    /// Ends the lane as soon as its gates are decided. The seed draws the order of cases
    /// where certainty is a matter of chance. False if no gate can be decided early.
    pub fn decide_early(&mut self, certainty: Certainty, seed: u64) -> bool {
        self.cases.tells_known = true;
        self.cases.shuffle = match certainty {
            Certainty::Exact => None,
            Certainty::Alpha(_) => Some(seed),
        };
        self.certainty = Some(certainty);
        Decider::new(&self.info, &self.planned, certainty).is_some()
    }

    /// What each selected case is asked, in the order of the dataset.
    pub fn inputs(&self, backend: &Backend, each: impl FnMut(&str, u32, InputDigest)) {
        self.cases.inputs(backend, each);
    }
}

/// A runner whose dataset has been read through.
#[derive(Clone, Debug)]
pub struct Surveyed {
    /// As the suite describes it.
    pub runner: RunnerConfig,
    /// Cases that are asked.
    pub selected: u64,
    /// Those of them that have a category, by that.
    pub categories: BTreeMap<Category, u64>,
    /// Cases in the dataset.
    pub total: u64,
    /// Bytes of all prompts and instructions, once.
    pub prompt_bytes: u64,
    /// Names in the filter that the dataset knows nothing of.
    pub unmet: Unmet,
    cases: Cases,
}

/// How many cases of a dataset chance is to choose.
#[derive(Clone, Copy, Debug)]
pub struct SampleSize {
    /// How many.
    pub size: usize,
    /// The same seed chooses the same cases.
    pub seed: u64,
}

/// Reads the dataset of a runner through. Every problem goes to `report`; with an error
/// there is nothing to run.
pub fn survey(
    runner: &RunnerConfig,
    folder: &Path,
    rules: &Rules,
    filter: &Filter,
    sample: Option<SampleSize>,
    report: &mut dyn FnMut(Problem),
) -> Option<Surveyed> {
    let mut cases = Cases::of(runner, folder, filter.clone());
    // The cases with the smallest numbers are the sample, whatever order they are in.
    let mut smallest = std::collections::BinaryHeap::new();
    let mut errors = 0;
    let mut chooser = Chooser::new(filter);
    let mut unmet = Unmet::new(filter);
    let mut sizes: Vec<(u64, u64, Option<Category>)> = Vec::new();
    let (mut selected, mut prompt_bytes) = (0, 0);
    let mut categories: BTreeMap<Category, u64> = BTreeMap::new();
    let summary = cases.survey(rules, |item| match item {
        Item::Problem(problem) => {
            errors += usize::from(problem.severity == Severity::Error);
            report(problem);
        }
        Item::Case(at) => {
            let case = &at.case;
            unmet.see(case);
            let bytes = || {
                let system = case.system.as_deref().or(runner.system.as_deref()).unwrap_or("");
                case.prompt.len() as u64 + system.len() as u64
            };
            match sample {
                Some(SampleSize { size, seed }) if filter.matches(case) => {
                    let number = number(seed, &case.id);
                    smallest.push(number);
                    sizes.push((number, bytes(), case.category));
                    if smallest.len() > size {
                        smallest.pop();
                    }
                }
                None if chooser.takes(case) => {
                    selected += 1;
                    prompt_bytes += bytes();
                    if let Some(category) = case.category {
                        *categories.entry(category).or_default() += 1;
                    }
                }
                Some(_) | None => {}
            }
        }
    });
    if errors > 0 {
        return None;
    }
    if let Some(SampleSize { seed, .. }) = sample {
        let highest = smallest.peek().copied().unwrap_or(0);
        let limit = filter.limit.unwrap_or(u64::MAX);
        selected = (smallest.len() as u64).min(limit);
        for (_, bytes, category) in sizes.iter().filter(|(number, ..)| *number <= highest) {
            prompt_bytes += bytes;
            if let Some(category) = category {
                *categories.entry(*category).or_default() += 1;
            }
        }
        cases.filter.sample = Some(Sample { seed, highest });
    }
    cases.digest = summary.digest.to_string();
    Some(Surveyed {
        runner: runner.clone(),
        selected,
        categories,
        total: summary.cases as u64,
        prompt_bytes,
        unmet,
        cases,
    })
}

impl Surveyed {
    /// The runner on one of the backends of a plan.
    pub fn lane(&self, runner: usize, backend: usize, asked: &Backend) -> PlannedLane {
        PlannedLane {
            info: Lane {
                runner: self.runner.name.clone(),
                kind: self.runner.kind,
                backend: asked.name.clone(),
                backend_kind: asked.kind.to_owned(),
                model: asked.model.clone(),
                dataset_digest: self.cases.digest.clone(),
                dataset: self.runner.dataset.clone(),
                planned: self.selected * u64::from(self.runner.repeat),
                repeat: self.runner.repeat,
                replayed: asked.is_replay(),
                judging: self.runner.judging(&asked.name),
            },
            backend,
            runner,
            cases: self.cases.clone(),
            done: Done::default(),
            planned: {
                let times = |count: u64| count * u64::from(self.runner.repeat);
                let categories = self.categories.iter().map(|(it, count)| (*it, times(*count)));
                Planned { all: times(self.selected), categories: categories.collect() }
            },
            certainty: None,
        }
    }
}
