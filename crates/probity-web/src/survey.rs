//! What suite files and their datasets hold. The program reads them; pages show what it found.

use std::{collections::BTreeMap, fmt, path::Path, sync::Arc};

use probity_core::{
    checkup::Checkup,
    problem::{Problem, Severity},
};
use probity_grade::internal::lint::LintFinding;
use probity_load::{dataset::Stats, inputs::Inputs};
use serde::{Serialize, Serializer};

/// Problems of a file that are kept.
const MOST_PROBLEMS: usize = 100;
/// Findings of a dataset that are kept.
const MOST_FINDINGS: usize = 200;
/// Different names of a kind that are kept, such as tags.
const MOST_NAMES: usize = 1000;

/// How suite files are looked into. Neither asks a backend, starts a program or runs code of a suite.
#[derive(Clone)]
pub struct Surveyor {
    /// Reads a suite and its datasets. It may take as long as they are large.
    pub survey: Arc<dyn Fn(&Path) -> Survey + Send + Sync>,
    /// Looks at the backends of a suite.
    pub checkup: Arc<dyn Fn(&Path) -> Examined + Send + Sync>,
}

impl fmt::Debug for Surveyor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Surveyor")
    }
}

/// The backends of a suite, or why they are not known.
#[derive(Clone, Debug)]
pub enum Examined {
    /// What is known of each.
    Backends(Vec<Checkup>),
    /// What is wrong with the suite file.
    Unusable(Problems),
    /// Why nothing can be said.
    Failed(String),
}

/// What a suite and its datasets hold.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Survey {
    /// What is wrong with the suite file itself.
    pub problems: Problems,
    /// Its backends.
    pub backends: Vec<BackendSurvey>,
    /// Its runners.
    pub runners: Vec<RunnerSurvey>,
    /// The files that were read, so that a change of one is noticed.
    #[serde(skip)]
    pub inputs: Inputs,
}

/// A backend as the suite describes it.
#[derive(Clone, Debug, Serialize)]
pub struct BackendSurvey {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: &'static str,
    /// The model that it is asked for.
    pub model: Option<String>,
}

/// A runner and its dataset.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RunnerSurvey {
    /// Its name.
    pub name: String,
    /// What it does.
    pub kind: &'static str,
    /// The names of its backends.
    pub backends: Vec<String>,
    /// The files of its dataset, as written.
    pub dataset: Vec<String>,
    /// Why its dataset was not read.
    pub unread: Option<String>,
    /// What its cases are.
    pub stats: Stats,
    /// What is wrong with its dataset.
    pub problems: Problems,
    /// How many cases were looked into for what is probably wrong, from the first on.
    pub linted: usize,
    /// What is allowed there and probably wrong.
    pub findings: Findings,
}

/// What is wrong with a file: how much, and the first of it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Problems {
    /// Errors.
    pub errors: usize,
    /// Warnings.
    pub warnings: usize,
    /// The first of both.
    pub first: Vec<Problem>,
}

impl Problems {
    /// Adds one.
    pub fn add(&mut self, problem: Problem) {
        match problem.severity {
            Severity::Error => self.errors += 1,
            Severity::Warning => self.warnings += 1,
        }
        if self.first.len() < MOST_PROBLEMS {
            self.first.push(problem);
        }
    }

    /// How many there are.
    pub const fn count(&self) -> usize {
        self.errors + self.warnings
    }
}

/// What is probably wrong with cases: how often, and the first of it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Findings {
    /// How many of each kind.
    pub counts: BTreeMap<&'static str, usize>,
    /// The first.
    #[serde(serialize_with = "findings")]
    pub first: Vec<LintFinding>,
}

impl Findings {
    /// Those of a dataset.
    pub fn of(mut all: Vec<LintFinding>) -> Self {
        let mut counts = BTreeMap::new();
        for it in &all {
            *counts.entry(it.code).or_default() += 1;
        }
        all.truncate(MOST_FINDINGS);
        Self { counts, first: all }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.counts.values().sum()
    }
}

fn findings<S: Serializer>(all: &[LintFinding], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(all.iter().map(|LintFinding { code, case_id, message }| {
        serde_json::json!({ "code": code, "case_id": case_id, "message": message })
    }))
}

impl RunnerSurvey {
    /// The same with no more names than pages need: a dataset may have a tag for each of its cases.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        let Stats { categories, tags, difficulties, commands, .. } = &mut self.stats;
        for names in [categories, tags, difficulties, commands] {
            most_frequent(names);
        }
        self
    }
}

fn most_frequent(names: &mut BTreeMap<String, usize>) {
    if names.len() <= MOST_NAMES {
        return;
    }
    let mut sorted: Vec<(String, usize)> = std::mem::take(names).into_iter().collect();
    sorted.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    names.extend(sorted.into_iter().take(MOST_NAMES));
}

impl Survey {
    /// Everything that is wrong, in all files.
    pub fn errors(&self) -> usize {
        self.problems.errors + self.runners.iter().map(|it| it.problems.errors).sum::<usize>()
    }

    /// Everything that is probably wrong, in all files.
    pub fn warnings(&self) -> usize {
        let of = |it: &RunnerSurvey| it.problems.warnings + it.findings.count();
        self.problems.warnings + self.runners.iter().map(of).sum::<usize>()
    }

    /// The cases of all datasets that were read.
    pub fn cases(&self) -> usize {
        self.runners.iter().map(|it| it.stats.cases).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_very_many_names_the_most_frequent_are_kept() {
        let mut runner = RunnerSurvey::default();
        runner.stats.tags = (0..5000).map(|at| (format!("t{at}"), at)).collect();
        let tags = runner.bounded().stats.tags;
        assert_eq!(tags.len(), MOST_NAMES);
        assert_eq!(tags.values().min(), Some(&4000));
    }

    #[test]
    fn of_very_many_problems_the_first_are_kept_and_all_are_counted() {
        let findings = Findings::of(vec![
            LintFinding {
                code: "near-duplicate",
                case_id: "a".to_owned(),
                message: "x".to_owned()
            };
            1000
        ]);
        assert_eq!((findings.count(), findings.first.len()), (1000, MOST_FINDINGS));
    }
}
