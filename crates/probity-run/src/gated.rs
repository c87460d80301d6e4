//! Gates on scores and categories, held against the cases before anything is asked.

use std::collections::BTreeSet;

use probity_core::{
    case::{Category, TestCase},
    gate::Gate,
    problem::{Problem, Severity},
    score::{JUDGE, ROUTING},
};
use probity_grade::Expectation;
use probity_load::{case::did_you_mean, suite::RunnerConfig};

/// The gates on scores and categories that no case has, of those that have been looked at.
#[derive(Debug)]
pub(crate) struct GatedScores {
    unmet: Vec<Gate>,
    /// What every case of such a runner is scored by, whatever it says itself.
    of_kind: Option<&'static str>,
    /// Whether it is scored by nothing else.
    only: bool,
    /// Names of scores that there are.
    names: BTreeSet<String>,
    /// Categories that there are.
    categories: BTreeSet<Category>,
}

impl GatedScores {
    pub(crate) fn new(runner: &RunnerConfig) -> Self {
        // The names of checks cannot be misspelt, so that such a gate is judged at the end.
        let is_named = |gate: &Gate| matches!(gate.category, Some(Category::Other(_)));
        let has_to_be =
            |gate: &&Gate| !gate.allow_empty && (gate.metric.score().is_some() || is_named(gate));
        let spec = runner.kind.spec();
        let only = spec.compares;
        let of_kind = if only { Some(JUDGE) } else { spec.choice.map(|_| ROUTING) };
        let unmet = runner.gates.iter().filter(has_to_be).cloned().collect();
        Self { unmet, of_kind, only, names: BTreeSet::new(), categories: BTreeSet::new() }
    }

    /// Takes a case into account.
    pub(crate) fn see(&mut self, case: &TestCase, expectation: &Expectation<'_>) {
        if self.unmet.is_empty() {
            return;
        }
        let own = expectation.score_names().filter(|_| !self.only).map(Into::into);
        let names: BTreeSet<String> = own.chain(self.of_kind.map(ToOwned::to_owned)).collect();
        let concerns = |gate: &Gate| gate.category.is_none() || gate.category == case.category;
        self.unmet.retain(|gate| {
            let is_met = expectation.names_scores()
                || gate.metric.score().is_none_or(|name| names.contains(name));
            !(is_met && concerns(gate))
        });
        self.names.extend(names);
        self.categories.extend(case.category.clone());
    }

    /// Names every gate that nothing could be judged by. Returns how many there are.
    pub(crate) fn refuse(&self, runner: &RunnerConfig, report: &mut dyn FnMut(Problem)) -> usize {
        for gate in &self.unmet {
            let (code, lacks, help) = match (gate.metric.score(), &gate.category) {
                (Some(name), category) => self.without_score(name, category.as_ref()),
                (None, category) => self.without_category(category.as_ref()),
            };
            report(Problem {
                severity: Severity::Error,
                code,
                message: format!(
                    "runner `{}` has a gate on `{}`, but {lacks}",
                    runner.name, gate.metric
                ),
                file: runner.dataset.join(", ").into(),
                place: None,
                case_id: None,
                help: Some(help),
            });
        }
        self.unmet.len()
    }

    fn without_score(&self, name: &str, category: Option<&Category>) -> Lack {
        let whose = category.map(|it| format!("{it} ")).unwrap_or_default();
        let lacks = format!("no {whose}case has a score of that name");
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        ("unknown-score", lacks, hint(name, &names, "no case has a score"))
    }

    fn without_category(&self, category: Option<&Category>) -> Lack {
        let category = category.map_or("", Category::as_str);
        let lacks = format!("no case has the category `{category}`");
        let names: Vec<&str> = self.categories.iter().map(Category::as_str).collect();
        ("unknown-category", lacks, hint(category, &names, "no case has a category"))
    }
}

/// The code of a problem, what is lacking, and what to do about it.
type Lack = (&'static str, String, String);

fn hint(name: &str, names: &[&str], none: &str) -> String {
    did_you_mean(name, names).unwrap_or_else(|| match names.is_empty() {
        true => none.to_owned(),
        false => format!("the cases have {}", names.join(", ")),
    })
}
