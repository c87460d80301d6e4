//! Gates on scores, held against the cases before anything is asked.

use std::collections::BTreeSet;

use probity_core::{
    case::TestCase,
    gate::Gate,
    problem::{Problem, Severity},
    score::{JUDGE, ROUTING},
};
use probity_grade::Expectation;
use probity_load::{case::did_you_mean, suite::RunnerConfig};

/// The gates on scores that no case has, of those that have been looked at.
#[derive(Debug)]
pub(crate) struct GatedScores {
    unmet: Vec<Gate>,
    /// What every case of such a runner is scored by, whatever it says itself.
    of_kind: Option<&'static str>,
    /// Whether it is scored by nothing else.
    only: bool,
    /// Names that there are.
    names: BTreeSet<String>,
}

impl GatedScores {
    pub(crate) fn new(runner: &RunnerConfig) -> Self {
        let has_to_be = |gate: &&Gate| gate.metric.score().is_some() && !gate.allow_empty;
        let spec = runner.kind.spec();
        let only = spec.compares;
        let of_kind = if only { Some(JUDGE) } else { spec.choice.map(|_| ROUTING) };
        let unmet = runner.gates.iter().filter(has_to_be).cloned().collect();
        Self { unmet, of_kind, only, names: BTreeSet::new() }
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
                || gate.metric.score().is_some_and(|name| names.contains(name));
            !(is_met && concerns(gate))
        });
        self.names.extend(names);
    }

    /// Names every gate that nothing could be judged by. Returns how many there are.
    pub(crate) fn refuse(&self, runner: &RunnerConfig, report: &mut dyn FnMut(Problem)) -> usize {
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        for gate in &self.unmet {
            let name = gate.metric.score().unwrap_or_default();
            let whose = gate.category.map(|it| format!("{it} ")).unwrap_or_default();
            let help = did_you_mean(name, &names).unwrap_or_else(|| match names.is_empty() {
                true => "no case has a score".to_owned(),
                false => format!("the cases have {}", names.join(", ")),
            });
            report(Problem {
                severity: Severity::Error,
                code: "unknown-score",
                message: format!(
                    "runner `{}` has a gate on `{}`, but no {whose}case has a score of that name",
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
}
