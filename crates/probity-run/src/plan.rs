//! What is going to be run: every dataset read and checked, every backend made ready.

mod comparisons;
mod scan;

use std::{sync::Arc, time::Duration};

use probity_core::{
    case::TestCase,
    evidence::JudgedBy,
    record::{CacheKind, InputDigest, Judging, Lane, LaneKey, LaneStatus},
    request::{Need, Request},
};
use probity_load::{
    settings::{Budget, Settings},
    suite::PromptConfig,
};

pub use self::{
    comparisons::{Compared, count_comparisons},
    scan::{Choice, Named, SampleSize, ScannedRunner, Undecided, scan},
};
use crate::{
    backend::{Answers, Backend, CacheAccess},
    carrier::Executor,
    decide::{Certainty, Decider, Planned},
    sandbox::Ground,
    scorer::Scorers,
    source::{Cases, Done, Helper, Judge},
};
pub use crate::{
    budget::{Ledger, Used},
    kind::{Calls, Site},
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
    /// What earlier sessions have used.
    pub carried: Used,
    /// The same of each runner.
    pub carried_by_runner: Vec<Used>,
    /// Where calls are written down before they are made.
    pub ledger: Option<Box<dyn Ledger>>,
    /// Answers of earlier calls that may be used.
    pub cache: Option<Arc<dyn Answers>>,
    /// Which of them are, and which are kept.
    pub access: CacheAccess,
    /// Programs that score replies.
    pub scorers: Scorers,
    /// Where commands are executed.
    pub ground: Arc<Ground>,
    /// Where calls are carried out.
    pub executor: Executor,
}

/// One runner on one backend, with one of its variants.
#[derive(Debug)]
pub struct PlannedLane {
    /// What is recorded of it.
    pub info: Lane,
    /// Its place in the list of backends.
    pub backend: usize,
    /// The places of those who judge its answers.
    pub judges: Vec<usize>,
    /// The place of the one who embeds texts.
    pub embedder: Option<usize>,
    /// The place of the one who says how relevant texts are.
    pub reranker: Option<usize>,
    /// The places of those who play users.
    pub users: Vec<usize>,
    /// Its place in the list of budgets.
    pub runner: usize,
    /// Calls that it makes, if none has to be made again.
    pub calls: Calls,
    /// Bytes of all its prompts and instructions, once.
    pub prompt_bytes: u64,
    /// How long it may take in all.
    pub(crate) timeout: Option<Duration>,
    pub(crate) cases: Cases,
    /// Cases that came to an end before.
    pub done: Done,
    /// How it ended before, if there is nothing left to ask.
    pub ended: Option<LaneStatus>,
    /// How many results there are to be.
    pub(crate) planned: Planned,
    /// How sure one has to be of the gates to end the lane early; none: it is not ended.
    pub(crate) certainty: Option<Certainty>,
}

impl PlannedLane {
    /// Ends the lane as soon as its gates are decided. The seed draws the order of cases
    /// where certainty is a matter of chance. False if no gate can be decided early.
    pub fn decide_early(&mut self, certainty: Certainty, seed: u64) -> bool {
        // What stays undecided counts in no rate, so nobody knows how many results there will be.
        if self.cases.has_undecided {
            return false;
        }
        self.cases.tells_known = true;
        self.cases.shuffle = match certainty {
            Certainty::Exact => None,
            Certainty::Alpha(_) => Some(seed),
        };
        self.certainty = Some(certainty);
        Decider::new(&self.info, &self.planned, certainty).is_some()
    }

    /// Answers to be judged that are known from earlier calls.
    pub fn known_generations(&self, backend: &Backend, cache: &dyn Answers) -> u64 {
        let mut known = 0;
        self.cases.generations(backend, |key| {
            known += u64::from(cache.get(CacheKind::Generation, key).is_some());
        });
        known
    }

    /// The longest reply to most of its cases.
    pub fn max_tokens(&self, backend: &Backend) -> Option<u64> {
        self.cases.prompt.sampling.max_tokens.or(backend.max_tokens)
    }

    /// What would be sent for each selected case, in the order of the dataset.
    pub fn requests(&self, each: impl FnMut(&TestCase, Request)) {
        self.cases.requests(each);
    }

    /// What each selected case is asked, in the order of the dataset, however often it is asked.
    pub fn inputs(&self, backend: &Backend, each: impl FnMut(&TestCase, InputDigest)) {
        self.cases.inputs(backend, each);
    }
}

/// Who helps to judge the answers of a lane.
#[derive(Clone, Debug, Default)]
pub struct Helpers {
    /// Who judges them.
    pub judges: Vec<Seat>,
    /// Who embeds texts.
    pub embedder: Option<Seat>,
    /// Who says how relevant texts are.
    pub reranker: Option<Seat>,
    /// Who plays users.
    pub users: Vec<Seat>,
}

/// A backend of the plan, by its place.
#[derive(Clone, Debug)]
pub struct Seat {
    /// Its place in the list of backends.
    pub place: usize,
    /// The backend.
    pub backend: Arc<Backend>,
}

impl ScannedRunner {
    pub(crate) fn cases(&self) -> &Cases {
        &self.cases
    }

    /// A lane of an earlier run, with the dataset, the gates and the skills of now.
    pub fn again(&self, before: &Lane, judging: Judging) -> Lane {
        Lane {
            dataset_digest: self.cases.digest.clone(),
            dataset: self.runner.dataset.clone(),
            skills: self.skills.clone(),
            judging,
            ..before.clone()
        }
    }

    /// The digest of its dataset.
    pub fn dataset_digest(&self) -> &str {
        &self.cases.digest
    }

    /// What each of its cases asks first, with each of its variants.
    pub fn requests(&self, mut each: impl FnMut(Option<&str>, &TestCase, Request)) {
        for prompt in &self.runner.prompts {
            let variant = prompt.variant.as_deref();
            self.cases.asked_by(prompt).requests(|case, request| each(variant, case, request));
        }
    }

    /// What its cases need and a backend lacks.
    pub fn lacking(&self, backend: &Backend) -> Option<Need> {
        backend.lacks().iter().find(|need| self.needs.contains(need)).copied()
    }

    /// Whether anything is asked of a judge.
    pub fn needs_judge(&self) -> bool {
        self.calls.judgements > 0 || self.calls.comparisons > 0
    }

    /// Whether any text has to be embedded.
    pub fn needs_embeddings(&self) -> bool {
        self.calls.embeddings > 0
    }

    /// Whether the relevance of any text is asked for.
    pub fn needs_reranking(&self) -> bool {
        self.calls.rerankings > 0
    }

    /// The runner on one of the backends of a plan, with each of its variants.
    pub fn lanes(
        &self,
        runner: usize,
        backend: usize,
        asked: &Backend,
        helpers: &Helpers,
    ) -> Vec<PlannedLane> {
        let prompts = self.runner.prompts.iter();
        let bytes = self.prompt_bytes.iter().copied().chain(std::iter::repeat(0));
        let lane = |(prompt, prompt_bytes)| {
            let lane = self.lane(prompt, (runner, backend), asked, helpers);
            PlannedLane { prompt_bytes, ..lane }
        };
        prompts.zip(bytes).map(lane).collect()
    }

    fn lane(
        &self,
        prompt: &Arc<PromptConfig>,
        (runner, backend): (usize, usize),
        asked: &Backend,
        helpers: &Helpers,
    ) -> PlannedLane {
        let judges = if self.needs_judge() { helpers.judges.as_slice() } else { &[] };
        let embedder = helpers.embedder.as_ref().filter(|_| self.needs_embeddings());
        let reranker = helpers.reranker.as_ref().filter(|_| self.needs_reranking());
        let by = |seat: &Seat| JudgedBy {
            backend: seat.backend.name.clone(),
            model: seat.backend.model.clone(),
            own_answers: seat.place == backend || seat.backend.is_same_model(asked),
        };
        let panel: Vec<JudgedBy> = judges.iter().map(by).collect();
        let mut cases = self.cases.asked_by(prompt);
        cases.provider.clone_from(&asked.name);
        let all: Vec<&str> = judges.iter().map(|it| it.backend.parameters.as_str()).collect();
        cases.judge = panel.first().cloned().map(|by| Judge::new(&all, by, &self.runner.panel));
        if let Some(seat) = embedder {
            cases.embedder = Helper::Ready(seat.backend.clone());
        }
        if let Some(seat) = reranker {
            cases.reranker = Helper::Ready(seat.backend.clone());
        }
        helpers.users.iter().for_each(|seat| cases.users.make_ready(seat.backend.clone()));
        let key = LaneKey {
            runner: &self.runner.name,
            variant: prompt.variant.as_deref(),
            backend: &asked.name,
        };
        PlannedLane {
            info: Lane {
                judging: self.runner.judging(key),
                runner: self.runner.name.clone(),
                variant: prompt.variant.clone(),
                kind: self.runner.kind,
                backend: asked.name.clone(),
                backend_kind: asked.kind_name().to_owned(),
                model: asked.model.clone(),
                dataset_digest: self.cases.digest.clone(),
                dataset: self.runner.dataset.clone(),
                planned: self.selected * u64::from(self.runner.repeat),
                repeat: self.runner.repeat,
                replayed: asked.is_replay(),
                imported: None,
                judge: panel.first().cloned(),
                judges: if panel.len() > 1 { panel } else { Vec::new() },
                skills: self.skills.clone(),
            },
            backend,
            judges: judges.iter().map(|seat| seat.place).collect(),
            embedder: embedder.map(|seat| seat.place),
            reranker: reranker.map(|seat| seat.place),
            users: helpers.users.iter().map(|seat| seat.place).collect(),
            runner,
            calls: self.calls.times(u64::from(self.runner.repeat)),
            prompt_bytes: 0,
            // A program that runs once keeps to its limit itself, and says what it had done by then.
            timeout: self
                .runner
                .timeout
                .filter(|_| !self.runner.kind.spec().is_external || self.runner.repeat > 1),
            cases,
            done: Done::default(),
            ended: None,
            planned: {
                let times = |count: u64| count * u64::from(self.runner.repeat);
                let categories =
                    self.categories.iter().map(|(it, count)| (it.clone(), times(*count)));
                Planned { all: times(self.selected), categories: categories.collect() }
            },
            certainty: None,
        }
    }
}
