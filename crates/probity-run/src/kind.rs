//! What a kind of runner does with its cases: one module for each kind.
//!
//! The facts about a kind that other crates may know are in the module of the same name in
//! `probity-core`. Modules here that are named after no kind are what several of them share.

mod activation;
mod agent;
pub(crate) mod assess;
mod choosing;
mod command;
mod comparing;
mod confusion;
pub(crate) mod contest;
mod effectiveness;
mod program;
mod respond;
mod similar;
mod size_impact;
mod skills;
pub(crate) mod unaided;

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fmt::Debug,
    path::Path,
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use probity_core::{
    case::TestCase,
    criteria::CriteriaProblem,
    evidence::JudgedBy,
    kind::{KindSpec, RunnerKind},
    problem::Problem,
    record::{Aborted, InputDigest, SkillsInfo},
    request::Request,
};
use probity_grade::{Expectation, Rules};
use probity_load::suite::RunnerConfig;

use crate::{
    backend::Backend,
    engine::{Ended, Handle},
    redact::Redactor,
    source::Prepared,
};
pub(crate) use respond::Respond;

/// What a runner is made ready with.
#[derive(Debug)]
pub struct Site<'a> {
    /// Where paths in the suite start from.
    pub folder: &'a Path,
    /// By what replies and errors are judged.
    pub rules: &'static Rules,
    /// All variables that programs see.
    pub env: BTreeMap<OsString, OsString>,
    /// Hides keys that programs may print.
    pub redactor: Redactor,
    /// How long a program has to end after it was asked to.
    pub kill_grace: Duration,
    /// How long a function that makes prompts or cases may take for one of its calls.
    pub function_timeout: Duration,
}

/// Makes a runner ready. Every problem goes to `report`; with an error there is none.
pub(crate) fn open(
    runner: &RunnerConfig,
    site: &Site<'_>,
    report: &mut dyn FnMut(Problem),
) -> Option<Arc<dyn Kind>> {
    Some(match runner.kind {
        RunnerKind::Respond => Arc::new(respond::Respond),
        RunnerKind::Command => Arc::new(command::Command),
        RunnerKind::Activation => choosing::open(activation::RULES, runner, site, report)?,
        RunnerKind::Confusion => choosing::open(confusion::RULES, runner, site, report)?,
        RunnerKind::Effectiveness => comparing::open(effectiveness::RULES, runner, site, report)?,
        RunnerKind::SizeImpact => comparing::open(size_impact::RULES, runner, site, report)?,
        RunnerKind::Agent => agent::open(runner)?,
        RunnerKind::Program => Arc::new(program::open(runner, site)),
    })
}

/// A runner of some kind. What a kind does not say otherwise, it does like `respond`.
pub(crate) trait Kind: Debug + Send + Sync {
    /// What is fixed about the kind.
    fn spec(&self) -> &'static KindSpec;

    /// What is wrong with a case, beside what would be wrong with it anywhere.
    fn check(&self, _case: &TestCase) -> Vec<CriteriaProblem> {
        Vec::new()
    }

    /// Whether something decides a case.
    fn decides(&self, case: &TestCase) -> bool {
        case.has_criteria()
    }

    /// How many calls a case makes.
    fn calls(&self, case: &TestCase) -> Calls {
        respond::calls(case)
    }

    /// Bytes of everything that is sent for the answers to a case; it may be one that cannot be
    /// filled in.
    fn sent_bytes(&self, _case: &TestCase, filled: Option<&Request>) -> u64 {
        filled.map_or(0, Request::bytes)
    }

    /// What a case asks, completed by what the kind says to a model.
    fn complete(&self, _case: &TestCase, filled: Request) -> Request {
        filled
    }

    /// The group of a case, if a limit takes some of each group.
    fn strata(&self) -> Option<fn(&TestCase) -> String> {
        None
    }

    /// Takes in which skills the cases of each group name, when the dataset has been read. Returns
    /// what is wrong with that.
    fn take_groups(&self, _groups: Groups) -> Vec<CriteriaProblem> {
        Vec::new()
    }

    /// What there is to choose from.
    fn skills(&self) -> Option<SkillsInfo> {
        None
    }

    /// The one case of a kind that has no dataset.
    fn own_case(&self) -> Option<TestCase> {
        None
    }

    /// Why it will probably come to nothing.
    fn warning(&self) -> Option<String> {
        None
    }

    /// What a case of this kind expects, beside what it states.
    fn expect<'r>(&self, _case: &TestCase, stated: Expectation<'r>) -> Expectation<'r> {
        stated
    }

    /// What a case asks; none if it cannot be asked.
    fn questions(
        &self,
        case: &TestCase,
        filled: Request,
        _judge: Option<&JudgedBy>,
    ) -> Option<Questions> {
        respond::questions(case, filled)
    }
}

/// Skills by the group of the cases that name them.
pub(crate) type Groups = BTreeMap<String, BTreeSet<String>>;

/// What a case asks, before anything is compiled.
#[derive(Debug)]
pub(crate) struct Questions {
    /// The request of its record.
    pub(crate) request: Request,
    pub(crate) work: Arc<dyn Work>,
}

/// The work on one case.
pub(crate) trait Work: Debug + Send + Sync {
    /// All that a result depends on: with anything else, it would be the result of another case.
    fn input(&self, asking: &Asking<'_>) -> InputDigest {
        asking.plain()
    }

    /// Requests whose answers are kept to be judged.
    fn generations(&self, _request: &Request) -> Vec<Request> {
        Vec::new()
    }

    /// From a case to its record.
    fn run(self: Arc<Self>, case: Box<Prepared>, handle: Box<Handle>) -> Running;
}

/// Work that is being done.
pub(crate) type Running = Pin<Box<dyn Future<Output = Result<Ended, Aborted>> + Send>>;

/// A case and who is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asking<'a> {
    pub(crate) case: &'a TestCase,
    pub(crate) request: &'a Request,
    pub(crate) backend: &'a Backend,
    /// The parameters of the judge; empty if there is none.
    pub(crate) judge: &'a str,
    /// Whether answers that are compared are judged in both orders.
    pub(crate) swap: bool,
    /// The parameters of the one who embeds texts; empty if there is none.
    pub(crate) embedder: &'a str,
    /// The parameters of the one who ranks texts; empty if there is none.
    pub(crate) reranker: &'a str,
    /// The parameters of the backend that plays the user; empty if there is none.
    pub(crate) user: &'a str,
}

impl Asking<'_> {
    /// The request and the parameters of the backend.
    fn plain(&self) -> InputDigest {
        self.digest(self.request)
    }

    /// A request and the parameters of the backend.
    fn digest(&self, request: &Request) -> InputDigest {
        self.backend.digest(Some(self.case), request)
    }
}

/// How many calls a case makes, if none has to be made again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Of the backend whose answers are evaluated.
    pub answers: u64,
    /// Of the judge.
    pub judgements: u64,
    /// Of the judge, about the answers of all lanes. The first lane of a runner makes them.
    pub comparisons: u64,
    /// Of the backend that embeds texts, at most: texts that are known are not asked about.
    pub embeddings: u64,
    /// Of the backend that says how relevant texts are.
    pub rerankings: u64,
    /// Further ones where a reply cannot be read, at most.
    pub fallbacks: u64,
    /// Further ones where the model calls tools, at most.
    pub steps: u64,
    /// Turns that a simulated user adds, at most: each is a call of the user and one of the model.
    pub user_turns: u64,
}

impl Calls {
    /// All that are certain.
    pub fn total(self) -> u64 {
        let asked = self.answers + self.judgements + self.comparisons;
        asked + self.embeddings + self.rerankings
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.answers += other.answers;
        self.judgements += other.judgements;
        self.comparisons += other.comparisons;
        self.embeddings += other.embeddings;
        self.rerankings += other.rerankings;
        self.fallbacks += other.fallbacks;
        self.steps += other.steps;
        self.user_turns += other.user_turns;
    }

    pub(crate) fn times(self, factor: u64) -> Self {
        let Self { answers, judgements, comparisons, embeddings, rerankings, .. } = self;
        let Self { fallbacks, steps, user_turns, .. } = self;
        Self {
            answers: answers * factor,
            judgements: judgements * factor,
            comparisons: comparisons * factor,
            embeddings: embeddings * factor,
            rerankings: rerankings * factor,
            fallbacks: fallbacks * factor,
            steps: steps * factor,
            user_turns: user_turns * factor,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_several_cases_and_repeats_are_added_up() {
        let one = Calls {
            answers: 2,
            judgements: 3,
            comparisons: 5,
            embeddings: 7,
            rerankings: 11,
            fallbacks: 13,
            steps: 17,
            user_turns: 19,
        };
        let mut both = one;
        both.add(one.times(3));
        let four = Calls {
            answers: 8,
            judgements: 12,
            comparisons: 20,
            embeddings: 28,
            rerankings: 44,
            fallbacks: 52,
            steps: 68,
            user_turns: 76,
        };
        assert_eq!(both, four);
        // What may come on top is not certain.
        assert_eq!(one.total(), 2 + 3 + 5 + 7 + 11);
    }
}
