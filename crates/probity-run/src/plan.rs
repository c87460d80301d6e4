//! What is going to be run: every dataset read and checked, every backend made ready.

mod comparisons;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use probity_core::{
    case::{Category, TestCase},
    criteria::CriteriaProblem,
    evidence::JudgedBy,
    problem::{Problem, Severity, UnknownKeys},
    record::{CacheKind, InputDigest, Judging, Lane, LaneKey, LaneStatus, SkillsInfo},
    request::{Need, Request},
};
use probity_load::{
    dataset::{DigestBuilder, Item},
    settings::{Budget, Settings},
    suite::{PanelConfig, PromptConfig, RunnerConfig},
};

pub use self::comparisons::{Compared, count_comparisons};
use crate::{
    backend::{Answers, Backend, CacheAccess},
    decide::{Certainty, Decider, Planned},
    examples::ExampleSets,
    filter::{Chooser, Filter, Sample, Unmet, number, stratified},
    gated::GatedScores,
    kind::{self, Groups, Kind},
    scorer::{Scorers, UsedScorers},
    source::{Cases, Done, Helper, Judge, Notes},
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

/// A runner whose dataset has been read through.
#[derive(Clone, Debug)]
pub struct ScannedRunner {
    /// As the suite describes it.
    pub runner: RunnerConfig,
    /// Cases that are asked.
    pub selected: u64,
    /// Those of them that have a category, by that.
    pub categories: BTreeMap<Category, u64>,
    /// Cases in the dataset.
    pub total: u64,
    /// Bytes of all prompts and instructions, once, as each variant asks.
    prompt_bytes: Vec<u64>,
    /// Calls that all of them make, once.
    pub calls: Calls,
    /// Names in the filter that the dataset knows nothing of.
    pub unmet: Unmet,
    /// Cases that are asked and that nothing decides.
    pub undecided: Undecided,
    /// What those that are asked need of a backend.
    pub needs: BTreeSet<Need>,
    /// The backends that play users of the cases that are asked.
    pub users: BTreeSet<String>,
    /// The scorers that cases of the dataset ask.
    pub scorers: UsedScorers,
    /// Cases that would be asked if the run were not a part of several.
    pub of_all_shards: u64,
    /// Ids among the known failures that no case of the dataset has.
    pub unknown_failures: Vec<String>,
    /// Why it will probably come to nothing.
    pub warning: Option<String>,
    skills: Option<SkillsInfo>,
    cases: Cases,
}

/// Cases that nothing decides, by why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Undecided {
    /// Those that have no criterion.
    pub without_criterion: Named,
    /// Those whose `execution` only a sandbox could look at.
    pub without_sandbox: Named,
}

/// How many cases, and the ids of the first of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// How many.
    pub count: u64,
    /// The first few ids.
    pub first: Vec<String>,
}

impl Named {
    /// So many ids are kept.
    const SHOWN: usize = 5;

    fn add(&mut self, other: &Self) {
        self.count += other.count;
        let room = Self::SHOWN.saturating_sub(self.first.len());
        self.first.extend(other.first.iter().take(room).cloned());
    }
}

impl Undecided {
    fn of(case: &TestCase, kind: &dyn Kind) -> Self {
        let one = || Named { count: 1, first: vec![case.id.clone()] };
        let mut undecided = Self::default();
        if case.execution.is_some() {
            undecided.without_sandbox = one();
        } else if !kind.decides(case) {
            undecided.without_criterion = one();
        }
        undecided
    }

    fn add(&mut self, other: &Self) {
        let Self { without_criterion, without_sandbox } = other;
        self.without_criterion.add(without_criterion);
        self.without_sandbox.add(without_sandbox);
    }

    /// Whether there is no such case.
    pub fn is_empty(&self) -> bool {
        self.without_criterion.count == 0 && self.without_sandbox.count == 0
    }
}

/// How many cases of a dataset chance is to choose.
#[derive(Clone, Copy, Debug)]
pub struct SampleSize {
    /// How many.
    pub size: usize,
    /// The same seed chooses the same cases.
    pub seed: u64,
}

/// Which cases of a dataset are asked.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// What they have to be.
    pub filter: Filter,
    /// How many chance is to choose of those.
    pub sample: Option<SampleSize>,
    /// Chooses some of each group, where a limit is to leave none out.
    pub seed: u64,
    /// What becomes of fields of a case that nothing reads.
    pub unknown_keys: UnknownKeys,
}

/// Reads the dataset of a runner through. Every problem goes to `report`; with an error
/// there is nothing to run.
pub fn scan(
    runner: &RunnerConfig,
    site: &Site<'_>,
    choice: &Choice,
    report: &mut dyn FnMut(Problem),
) -> Option<ScannedRunner> {
    let Choice { filter, sample, seed, unknown_keys } = choice;
    let of_all = Filter { shard: None, ..filter.clone() };
    let kind = kind::open(runner, site, report)?;
    let cases = Cases::of(runner, kind.clone(), site, filter.clone());
    let mut cases = cases.map_err(|problem| report(*problem)).ok()?;
    let mut told = |problem| report(unknown_keys.judge(problem));
    cases.examples = Arc::new(ExampleSets::of(runner, &mut told)?);
    let others: Vec<Cases> = runner.prompts.iter().skip(1).map(|it| cases.asked_by(it)).collect();
    if let Some(case) = kind.own_case() {
        return Some(scan_own(runner, cases, &case));
    }
    let strata = kind.strata().filter(|_| filter.limit.is_some() && sample.is_none());
    let mut errors = 0;
    let mut chooser = Chooser::new(filter);
    let mut unmet = Unmet::new(filter);
    let mut of_all_shards = 0;
    let mut unknown_failures: BTreeSet<&str> =
        runner.known_failures.iter().map(|(id, _)| id.as_str()).collect();
    let mut chosen = Sums::default();
    // What has to be chosen from when all is known.
    let mut candidates: Vec<Candidate> = Vec::new();
    let mut groups = Groups::new();
    let mut scores = GatedScores::new(runner);
    let mut asked = UsedScorers::new(site.folder);
    let mut notes = Notes { scores: &mut scores, scorers: &mut asked };
    let summary = cases.scan(&others, site.rules, &mut notes, |item| match item {
        Item::Problem(problem) => {
            let problem = unknown_keys.judge(problem);
            errors += usize::from(problem.severity == Severity::Error);
            report(problem);
        }
        Item::Case(at) => {
            let case = &at.case;
            unmet.see(case);
            unknown_failures.remove(case.id.as_str());
            of_all_shards += u64::from(of_all.matches(case));
            if let Some(group) = &case.routing.group {
                let named =
                    case.routing.expected_skills.iter().chain(&case.routing.acceptable_skills);
                groups.entry(group.clone()).or_default().extend(named.cloned());
            }
            let sums = || Sums::of(case, &cases, &others);
            if sample.is_some() || strata.is_some() {
                if filter.matches(case) {
                    candidates.push(Candidate {
                        number: number(sample.map_or(*seed, |it| it.seed), &case.id),
                        in_stratum: strata.map(|of| (of(case), case.id.clone())),
                        sums: sums(),
                    });
                }
            } else if chooser.takes(case) {
                chosen.add(&sums());
            }
        }
    });
    for CriteriaProblem { path: _, code, message, help } in kind.take_groups(groups) {
        errors += 1;
        let file = runner.dataset.join(", ").into();
        let severity = Severity::Error;
        report(Problem { severity, code, message, file, place: None, case_id: None, help });
    }
    if errors == 0 {
        errors += scores.refuse(runner, report);
    }
    if errors > 0 {
        return None;
    }
    choose(candidates, choice, strata.is_some(), &mut cases, &mut chosen);
    cases.digest = summary.digest.to_string();
    let unknown_failures = unknown_failures.into_iter().map(ToOwned::to_owned).collect();
    let Sums { cases: selected, categories, prompt_bytes, calls, undecided, needs, users } = chosen;
    cases.has_undecided = !undecided.is_empty();
    Some(ScannedRunner {
        runner: runner.clone(),
        selected,
        categories,
        total: summary.cases as u64,
        prompt_bytes,
        calls: with_panel(calls, runner),
        unmet,
        undecided,
        needs,
        users,
        scorers: asked,
        of_all_shards,
        unknown_failures,
        warning: kind.warning(),
        skills: kind.skills(),
        cases,
    })
}

/// Chooses among candidates: a sample of a size, or some of each group.
fn choose(
    mut candidates: Vec<Candidate>,
    choice: &Choice,
    in_strata: bool,
    cases: &mut Cases,
    chosen: &mut Sums,
) {
    let Choice { filter, sample, .. } = choice;
    if let Some(SampleSize { size, seed }) = *sample {
        // The cases with the smallest numbers are the sample, whatever order they are in.
        candidates.sort_unstable_by_key(|it| it.number);
        candidates.truncate(size);
        let highest = candidates.last().map_or(0, |it| it.number);
        cases.filter.sample = Some(Sample { seed, highest });
        candidates.iter().for_each(|it| chosen.add(&it.sums));
        chosen.cases = chosen.cases.min(filter.limit.unwrap_or(u64::MAX));
    } else if let Some(limit) = filter.limit.filter(|_| in_strata) {
        let mut strata: BTreeMap<String, Vec<(u64, String)>> = BTreeMap::new();
        for Candidate { number, in_stratum, .. } in &candidates {
            let (stratum, id) = in_stratum.clone().unwrap_or_default();
            strata.entry(stratum).or_default().push((*number, id));
        }
        let only = stratified(strata, limit);
        let is_chosen =
            |it: &&Candidate| it.in_stratum.as_ref().is_some_and(|(_, id)| only.contains(id));
        candidates.iter().filter(is_chosen).for_each(|it| chosen.add(&it.sums));
        cases.filter = Filter { limit: None, only: Some(only), ..cases.filter.clone() };
    }
}

/// The calls, where every judge is asked as often as the suite wants. Pairs have one judge, asked once.
fn with_panel(calls: Calls, runner: &RunnerConfig) -> Calls {
    let PanelConfig { judges, repeats, .. } = &runner.panel;
    let times = match runner.kind.spec().compares {
        true => 1,
        false => judges.len().max(1) as u64 * u64::from(*repeats),
    };
    let orders = if runner.panel.swap { 2 } else { 1 };
    Calls { judgements: calls.judgements * times, comparisons: calls.comparisons * orders, ..calls }
}

/// The scan of a runner that has one case and no dataset: what it asks is its own affair.
fn scan_own(runner: &RunnerConfig, mut cases: Cases, case: &TestCase) -> ScannedRunner {
    let mut digest = DigestBuilder::default();
    digest.add(case);
    cases.digest = digest.finish().to_string();
    let of_all = Filter { shard: None, ..cases.filter.clone() };
    ScannedRunner {
        runner: runner.clone(),
        selected: cases.filter.matches(case).into(),
        categories: BTreeMap::new(),
        total: 1,
        prompt_bytes: vec![0],
        calls: cases.kind.calls(case),
        unmet: Unmet::default(),
        undecided: Undecided::default(),
        needs: BTreeSet::new(),
        users: BTreeSet::new(),
        scorers: UsedScorers::default(),
        of_all_shards: of_all.matches(case).into(),
        unknown_failures: Vec::new(),
        warning: cases.kind.warning(),
        skills: cases.kind.skills(),
        cases,
    }
}

/// A case that may be chosen.
struct Candidate {
    number: u64,
    /// The group that it is chosen within, and its id.
    in_stratum: Option<(String, String)>,
    sums: Sums,
}

/// What is added up over the cases that are asked.
#[derive(Default)]
struct Sums {
    cases: u64,
    categories: BTreeMap<Category, u64>,
    /// Of each way in which they are asked.
    prompt_bytes: Vec<u64>,
    calls: Calls,
    undecided: Undecided,
    needs: BTreeSet<Need>,
    users: BTreeSet<String>,
}

impl Sums {
    fn of(case: &TestCase, cases: &Cases, others: &[Cases]) -> Self {
        let kind = &*cases.kind;
        // One that cannot be filled in is refused before anything is asked.
        let ways = std::iter::once(cases).chain(others);
        let requests: Vec<Option<Request>> = ways.map(|it| it.fill_in(case).ok()).collect();
        Self {
            cases: 1,
            categories: case.category.iter().map(|it| (it.clone(), 1)).collect(),
            prompt_bytes: requests.iter().map(|it| kind.sent_bytes(case, it.as_ref())).collect(),
            needs: {
                let talk = (!case.conversation.is_one_question()).then_some(Need::Conversation);
                requests.iter().flatten().flat_map(Request::needs).chain(talk).collect()
            },
            calls: kind.calls(case),
            users: cases.users.name_for(case).into_iter().map(ToOwned::to_owned).collect(),
            undecided: Undecided::of(case, kind),
        }
    }

    fn add(&mut self, other: &Self) {
        self.cases += other.cases;
        self.prompt_bytes.resize(other.prompt_bytes.len().max(self.prompt_bytes.len()), 0);
        self.prompt_bytes.iter_mut().zip(&other.prompt_bytes).for_each(|(all, one)| *all += one);
        self.calls.add(other.calls);
        self.undecided.add(&other.undecided);
        self.needs.extend(&other.needs);
        self.users.extend(other.users.iter().cloned());
        for (category, count) in &other.categories {
            *self.categories.entry(category.clone()).or_default() += count;
        }
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
