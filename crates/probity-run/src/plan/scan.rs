//! Reading a dataset through before anything is asked: what is wrong with it, and what it comes to.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use probity_core::{
    case::{Category, CommandCheck, TestCase},
    criteria::CriteriaProblem,
    problem::{Problem, Severity, UnknownKeys},
    record::SkillsInfo,
    request::{Need, Request},
};
use probity_load::{
    dataset::DigestBuilder,
    suite::{PanelConfig, RunnerConfig},
};

use crate::{
    examples::ExampleSets,
    filter::{Chooser, Filter, Sample, Unmet, number, stratified},
    gated::GatedScores,
    kind::{self, Calls, Groups, Kind, Site},
    scorer::UsedScorers,
    source::{Cases, Notes, Scanned},
};

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
    pub(super) prompt_bytes: Vec<u64>,
    /// Calls that all of them make, once.
    pub calls: Calls,
    /// Names in the filter that the dataset knows nothing of.
    pub unmet: Unmet,
    /// Cases that are asked and that nothing decides.
    pub undecided: Undecided,
    /// What those that are asked need of a backend.
    pub needs: BTreeSet<Need>,
    /// Cases that are asked and whose command is compared with accepted ones.
    pub compared_commands: u64,
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
    pub(super) skills: Option<SkillsInfo>,
    pub(super) cases: Cases,
}

/// Cases that nothing decides, by why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Undecided {
    /// Those that have no criterion.
    pub without_criterion: Named,
    /// Those with an `execution` and those of agents, which nothing decides where nothing can be executed.
    pub executed: Named,
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
        if case.execution.is_some() || kind.spec().acts {
            undecided.executed = one();
        } else if !kind.decides(case) {
            undecided.without_criterion = one();
        }
        undecided
    }

    fn add(&mut self, other: &Self) {
        let Self { without_criterion, executed } = other;
        self.without_criterion.add(without_criterion);
        self.executed.add(executed);
    }

    /// Whether there is certainly no such case.
    pub fn is_empty(&self) -> bool {
        self.without_criterion.count == 0 && self.executed.count == 0
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
        Scanned::Problem(problem) => {
            let problem = unknown_keys.judge(problem);
            errors += usize::from(problem.severity == Severity::Error);
            report(problem);
        }
        Scanned::Case(at, requests) => {
            let case = &at.case;
            unmet.see(case);
            unknown_failures.remove(case.id.as_str());
            of_all_shards += u64::from(of_all.matches(case));
            if let Some(group) = &case.routing.group {
                let named =
                    case.routing.expected_skills.iter().chain(&case.routing.acceptable_skills);
                groups.entry(group.clone()).or_default().extend(named.cloned());
            }
            let sums = || Sums::of(case, &cases, &requests);
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
    cases.contents = summary.contents;
    let unknown_failures = unknown_failures.into_iter().map(ToOwned::to_owned).collect();
    let Sums { cases: selected, categories, prompt_bytes, calls, undecided, .. } = chosen;
    let Sums { needs, users, compared_commands, .. } = chosen;
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
        compared_commands,
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
        compared_commands: 0,
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
    compared_commands: u64,
}

impl Sums {
    fn of(case: &TestCase, cases: &Cases, requests: &[Option<Request>]) -> Self {
        let kind = &*cases.kind;
        Self {
            cases: 1,
            categories: case.category.iter().map(|it| (it.clone(), 1)).collect(),
            prompt_bytes: requests.iter().map(|it| kind.sent_bytes(case, it.as_ref())).collect(),
            needs: {
                let talks = !case.conversation.is_one_question() || kind.spec().acts;
                let talk = talks.then_some(Need::Conversation);
                requests.iter().flatten().flat_map(Request::needs).chain(talk).collect()
            },
            calls: kind.calls(case),
            users: cases.users.name_for(case).into_iter().map(ToOwned::to_owned).collect(),
            undecided: Undecided::of(case, kind),
            compared_commands: u64::from(case.command_check() == Some(CommandCheck::Correctness)),
        }
    }

    fn add(&mut self, other: &Self) {
        self.cases += other.cases;
        self.prompt_bytes.resize(other.prompt_bytes.len().max(self.prompt_bytes.len()), 0);
        self.prompt_bytes.iter_mut().zip(&other.prompt_bytes).for_each(|(all, one)| *all += one);
        self.calls.add(other.calls);
        self.undecided.add(&other.undecided);
        self.compared_commands += other.compared_commands;
        self.needs.extend(&other.needs);
        self.users.extend(other.users.iter().cloned());
        for (category, count) in &other.categories {
            *self.categories.entry(category.clone()).or_default() += count;
        }
    }
}
