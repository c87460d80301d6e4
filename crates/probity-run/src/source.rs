//! Cases as they are asked: read from the dataset while the run goes on.
//!
//! A dataset is never in memory as a whole. It is read once to check it, and then once for each
//! repeat on each backend, by a thread that stays a few cases ahead of the calls.

mod ahead;
mod done;
mod feed;
mod fill;
mod shots;
mod users;

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use probity_core::{
    case::{Category, TestCase},
    criteria::CriteriaProblem,
    evidence::JudgedBy,
    located::Step,
    problem::{Problem, Severity},
    record::InputDigest,
    request::Request,
};
use probity_grade::{Compiler, Expectation, Rules, check_commands, check_thresholds};
use probity_load::{
    dataset::{self, CaseAt, Digest, Item},
    suite::{CaseDefaults, PanelConfig, PromptConfig, RunnerConfig},
};

use serde_json::json;

use ahead::Held;
pub(crate) use ahead::weight;
pub use done::{Done, DoneCase, Met, Stored};
pub(crate) use feed::feed;
use fill::Unfilled;
use users::Users;

use crate::{
    backend::{About, Ask, Backend},
    consent,
    decide::Seen,
    examples::ExampleSets,
    filter::{Chooser, Filter},
    gated::GatedScores,
    kind::{
        Asking, Kind, Questions, Respond, Site, Work,
        assess::{check_panel_prompt, check_prompts},
        unaided,
    },
    loading::{DatasetFiles, PromptFunctions},
    scorer::UsedScorers,
};

/// A case that is ready to be asked.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) case_id: String,
    pub(crate) repeat: u32,
    /// Its place in the order in which cases are asked.
    pub(crate) place: u64,
    pub(crate) category: Option<Category>,
    pub(crate) request: Request,
    pub(crate) input: InputDigest,
    pub(crate) expectation: Expectation<'static>,
    /// How answers are judged.
    pub(crate) panel: Arc<PanelConfig>,
    /// The backend that plays the user.
    pub(crate) user: Option<String>,
    pub(crate) work: Arc<dyn Work>,
    pub(crate) case: Arc<TestCase>,
}

/// What a reading thread hands over, with what a case takes of what may be ahead.
#[derive(Debug)]
pub(crate) enum Fed {
    Case(Box<Prepared>, Option<Held>),
    /// A case that came to an end in an earlier session, for those who count.
    Known(Seen),
    /// The dataset is not what it was when it was checked.
    Broken(String),
}

/// A backend that embeds or ranks texts.
#[derive(Clone, Debug)]
pub(crate) enum Helper {
    Nobody,
    /// The runner names a backend, which no case needs or which is not ready yet.
    Named,
    Ready(Arc<Backend>),
}

impl Helper {
    const fn named(name: Option<&String>) -> Self {
        match name {
            Some(_) => Self::Named,
            None => Self::Nobody,
        }
    }

    const fn is_nobody(&self) -> bool {
        matches!(self, Self::Nobody)
    }

    /// What decides about its answers; empty if it gives none.
    fn parameters(&self) -> &str {
        match self {
            Self::Nobody | Self::Named => "",
            Self::Ready(backend) => &backend.parameters,
        }
    }
}

/// Where the cases of a runner come from, and how they are asked.
#[derive(Clone, Debug)]
pub(crate) struct Cases {
    pub(crate) files: DatasetFiles,
    pub(crate) kind: Arc<dyn Kind>,
    /// How they are asked.
    pub(crate) prompt: Arc<PromptConfig>,
    /// What makes prompts, where `prompt` names a function.
    pub(crate) functions: Arc<PromptFunctions>,
    /// What cases are asked with, where `prompt` has examples.
    pub(crate) examples: Arc<ExampleSets>,
    /// The backend that prompts are made for.
    pub(crate) provider: String,
    /// What they have in common.
    pub(crate) defaults: Arc<CaseDefaults>,
    /// Whether they may bring code that runs outside of the sandbox of scripts.
    pub(crate) allow_code: bool,
    pub(crate) repeat: u32,
    pub(crate) filter: Filter,
    pub(crate) digest: String,
    /// What the files of the dataset were when it was checked.
    pub(crate) contents: Digest,
    /// How answers are judged.
    pub(crate) panel: Arc<PanelConfig>,
    /// Who judges.
    pub(crate) judge: Option<Judge>,
    /// Who embeds texts.
    pub(crate) embedder: Helper,
    /// Who says how relevant texts are.
    pub(crate) reranker: Helper,
    /// Who plays the user.
    pub(crate) users: Users,
    /// Draws the order in which cases are asked; none for the order of the dataset.
    pub(crate) shuffle: Option<u64>,
    /// Whether cases that are done are told of.
    pub(crate) tells_known: bool,
    /// Whether nothing decides some of them.
    pub(crate) has_undecided: bool,
    /// Cases that are in no file, for tests that own the time.
    #[cfg(test)]
    pub(crate) given: Vec<TestCase>,
    /// Cases that are made when they are wanted, for simulations.
    #[cfg(all(feature = "simulated", not(test)))]
    pub(crate) made: Option<crate::simulated::Made>,
}

impl Default for Cases {
    /// No cases at all.
    fn default() -> Self {
        Self {
            files: DatasetFiles::default(),
            kind: Arc::new(Respond),
            prompt: Arc::default(),
            functions: Arc::default(),
            examples: Arc::default(),
            provider: String::new(),
            defaults: Arc::default(),
            allow_code: false,
            repeat: 0,
            filter: Filter::default(),
            digest: String::new(),
            contents: Digest::default(),
            panel: Arc::default(),
            judge: None,
            embedder: Helper::Nobody,
            reranker: Helper::Nobody,
            users: Users::default(),
            shuffle: None,
            tells_known: false,
            has_undecided: false,
            #[cfg(test)]
            given: Vec::new(),
            #[cfg(all(feature = "simulated", not(test)))]
            made: None,
        }
    }
}

/// Who judges the answers of a lane.
#[derive(Clone, Debug)]
pub(crate) struct Judge {
    /// All that an opinion depends on beside what is asked.
    parameters: String,
    /// The first of them.
    by: JudgedBy,
}

impl Judge {
    /// Those of a panel, by the parameters of each. One judge who is asked once has nothing but its
    /// parameters, as in version 0.1.
    pub(crate) fn new(all: &[&str], by: JudgedBy, panel: &PanelConfig) -> Self {
        let PanelConfig {
            judges: _,
            combine,
            repeats,
            structured,
            swap,
            rubric_prompt,
            rubric_prompt_at: _,
        } = panel;
        // What is judged in both orders says so itself.
        let (judges, swap) = (panel.judges.clone(), *swap);
        let usual = PanelConfig { judges, swap, ..PanelConfig::default() };
        let parameters = match (all, *panel == usual) {
            ([only], true) => (*only).to_owned(),
            (_, _) => json!({
                "judges": all,
                "combine": combine.to_string(),
                "repeats": repeats,
                "structured": structured,
                "rubric_prompt": rubric_prompt,
            })
            .to_string(),
        };
        Self { parameters, by }
    }
}

/// Adds a problem, unless one is told of at the same place.
fn tell_once(told: &mut Vec<Problem>, problem: Problem) {
    let is_told = |it: &Problem| it.place == problem.place && it.file == problem.file;
    if !told.iter().any(is_told) {
        told.push(problem);
    }
}

/// What is noted of the cases of a dataset while it is read.
pub(crate) struct Notes<'a> {
    /// The scores that gates may be about.
    pub(crate) scores: &'a mut GatedScores,
    /// The scorers that are asked.
    pub(crate) scorers: &'a mut UsedScorers,
}

impl Notes<'_> {
    fn see(&mut self, case: &TestCase, expectation: &Expectation<'_>) {
        self.scores.see(case, expectation);
        self.scorers.see(expectation.scorers());
    }
}

impl Cases {
    /// The cases of a runner as its first variant asks them; the digest is not known before they are
    /// read.
    pub(crate) fn of(
        runner: &RunnerConfig,
        kind: Arc<dyn Kind>,
        site: &Site<'_>,
        filter: Filter,
    ) -> Result<Self, Box<Problem>> {
        Ok(Self {
            files: DatasetFiles::of(runner, site)?,
            kind,
            prompt: runner.prompts.first().cloned().unwrap_or_default(),
            functions: Arc::new(PromptFunctions::of(runner, site)?),
            examples: Arc::default(),
            provider: runner.backends.first().cloned().unwrap_or_default(),
            defaults: runner.defaults.clone(),
            allow_code: runner.allow_code,
            repeat: runner.repeat,
            filter,
            digest: String::new(),
            contents: Digest::default(),
            panel: Arc::new(runner.panel.clone()),
            judge: None,
            embedder: Helper::named(runner.embeddings.as_ref()),
            reranker: Helper::named(runner.reranker.as_ref()),
            users: Users::of(runner),
            shuffle: None,
            tells_known: false,
            has_undecided: false,
            #[cfg(test)]
            given: Vec::new(),
            #[cfg(all(feature = "simulated", not(test)))]
            made: None,
        })
    }

    /// The same cases, asked in another way.
    pub(crate) fn asked_by(&self, prompt: &Arc<PromptConfig>) -> Self {
        Self { prompt: prompt.clone(), ..self.clone() }
    }

    /// Reads the dataset through, with every check. The others ask the same cases in other ways, so
    /// that one reading does for all.
    pub(crate) fn scan(
        &self,
        others: &[Self],
        rules: &Rules,
        notes: &mut Notes<'_>,
        mut each: impl FnMut(Scanned),
    ) -> dataset::Summary {
        let compiler = Compiler::new(rules);
        // What the suite is wrong about is told of once, and not for every case.
        let of_suite: RefCell<Vec<Problem>> = RefCell::default();
        let ways = || std::iter::once(self).chain(others);
        // What the case asks that was checked last: it is the next one to be passed on, if it is.
        let asked: RefCell<Vec<Option<Request>>> = RefCell::default();
        let mut each = |item| {
            each(match item {
                Item::Problem(problem) => Scanned::Problem(self.files.named(problem)),
                Item::Case(at) => Scanned::Case(at, asked.take()),
            });
        };
        let notes = RefCell::new(notes);
        let compiler = RefCell::new(compiler);
        let templates = RefCell::new(BTreeMap::new());
        let check = |case: &TestCase| -> Vec<CriteriaProblem> {
            let mut problems = match compiler.borrow_mut().compile(case) {
                Ok(expectation) => {
                    notes.borrow_mut().see(case, &expectation);
                    Vec::new()
                }
                Err(problems) => problems,
            };
            problems.extend(check_commands(case));
            problems.extend(check_thresholds(case));
            problems.extend(self.kind.check(case));
            problems.extend(check_prompts(case));
            if let Some(problem) = check_panel_prompt(case, &self.panel) {
                tell_once(&mut of_suite.borrow_mut(), problem);
            }
            if self.embedder.is_nobody() {
                problems.extend(unaided::without_embeddings(case));
            }
            if self.reranker.is_nobody() {
                problems.extend(unaided::without_reranker(case));
            }
            if self.panel.judges.is_empty() {
                problems.extend(unaided::without_judge(case));
            }
            problems.extend(without_tools(case));
            problems.extend(self.users.problem(case));
            if !self.allow_code {
                consent::refuse(case, self.defaults.assertions(), &mut problems);
            }
            let mut requests = Vec::new();
            for (at, way) in ways().enumerate() {
                if let Some(problem) = way.check_ask(case) {
                    problems.push(problem);
                    break;
                }
                let filled = way.fill_in(case).map_err(|unfilled| {
                    let Unfilled::Runner(bad) = unfilled else { return };
                    let key = (at, bad.part);
                    templates.borrow_mut().entry(key).or_insert_with(|| (case.id.clone(), bad));
                });
                requests.push(filled.ok());
            }
            asked.replace(requests);
            problems.retain(|it| match self.defaults.problem(case, it) {
                Some(problem) => {
                    tell_once(&mut of_suite.borrow_mut(), problem);
                    false
                }
                None => true,
            });
            problems
        };
        let paths: Vec<&Path> = self.files.paths.iter().map(PathBuf::as_path).collect();
        let complete = |case: &mut TestCase| self.defaults.apply(case);
        let mut summary = dataset::read_completed(&paths, &complete, &check, &mut each);
        self.functions.rest();
        // A template of the runner is the same for every case, so it is told of once.
        let mut of_suite = of_suite.into_inner();
        for ((at, _), (case_id, bad)) in templates.into_inner() {
            // Instructions that several variants share are told of once, too.
            let problem = ways().nth(at).and_then(|way| bad.problem(&way.prompt, &case_id));
            problem.into_iter().for_each(|it| tell_once(&mut of_suite, it));
        }
        for problem in of_suite {
            match problem.severity {
                Severity::Error => summary.errors += 1,
                Severity::Warning => summary.warnings += 1,
            }
            each(Item::Problem(problem));
        }
        summary
    }

    /// What a case expects.
    pub(crate) fn expect<'r>(&self, case: &TestCase, stated: Expectation<'r>) -> Expectation<'r> {
        self.kind.expect(case, stated.with_combine(self.panel.combine))
    }

    /// Makes a case ready; none if it cannot be, which the scan would have noticed.
    fn prepare(
        &self,
        case: &Arc<TestCase>,
        repeat: u32,
        backend: &Backend,
        stated: Expectation<'static>,
    ) -> Option<Prepared> {
        let questions = self.questions(case)?;
        let input = self.input(case, &questions, backend);
        let Questions { request, work } = questions;
        let expectation = self.expect(case, stated);
        Some(Prepared {
            case_id: case.id.clone(),
            repeat,
            place: 0,
            category: case.category.clone(),
            input,
            expectation,
            panel: self.panel.clone(),
            user: self.users.name_for(case).map(ToOwned::to_owned),
            work,
            case: case.clone(),
            request,
        })
    }

    /// What a case asks.
    fn questions(&self, case: &TestCase) -> Option<Questions> {
        let filled = self.fill_in(case).ok()?;
        self.kind.questions(case, filled, self.judge.as_ref().map(|it| &it.by))
    }

    /// What is asked with which parameters: answers to anything else are no answers.
    fn input(&self, case: &TestCase, questions: &Questions, backend: &Backend) -> InputDigest {
        let judge = self.judge.as_ref().map_or("", |it| it.parameters.as_str());
        let Questions { request, work } = questions;
        let (embedder, reranker) = (self.embedder.parameters(), self.reranker.parameters());
        let user = self.users.parameters(case);
        let swap = self.panel.swap;
        work.input(&Asking { case, request, backend, judge, swap, embedder, reranker, user })
    }

    /// The keys under which the answers of a case that are going to be judged are kept.
    pub(crate) fn generations(&self, backend: &Backend, mut each: impl FnMut(InputDigest)) {
        for repeat in 0..self.repeat {
            let read = self.reread(|case| {
                if let Some(Questions { request, work }) = self.questions(&case) {
                    let about = About::new(Arc::new(case));
                    for request in work.generations(&request) {
                        let about = Some(&about);
                        each(backend.cache_key(&Ask { request: &request, repeat, about }));
                    }
                }
                Ok(())
            });
            if read.is_err() {
                return;
            }
        }
    }

    /// What each selected case asks first.
    pub(crate) fn requests(&self, mut each: impl FnMut(&TestCase, Request)) {
        let _ = self.reread(|case| {
            if let Some(Questions { request, work: _ }) = self.questions(&case) {
                each(&case, request);
            }
            Ok(())
        });
    }

    /// What each selected case is asked on a backend, without anything that grading needs.
    pub(crate) fn inputs(&self, backend: &Backend, mut each: impl FnMut(&TestCase, InputDigest)) {
        // A dataset that has changed since is noticed when its cases are fed.
        let _ = self.reread(|case| {
            if let Some(questions) = self.questions(&case) {
                each(&case, self.input(&case, &questions, backend));
            }
            Ok(())
        });
    }
}

impl Cases {
    /// Goes through the chosen cases of a dataset that was checked before.
    pub(crate) fn reread(
        &self,
        mut each: impl FnMut(TestCase) -> Result<(), Stopped>,
    ) -> Result<(), Reread> {
        if let Some(case) = self.kind.own_case() {
            if !self.filter.matches(&case) {
                return Ok(());
            }
            return each(case).map_err(|Stopped| Reread::Unwanted);
        }
        let mut chooser = Chooser::new(&self.filter);
        let unwanted = Cell::new(false);
        let paths: Vec<&Path> = self.files.paths.iter().map(PathBuf::as_path).collect();
        let complete = |case: &mut TestCase| self.defaults.apply(case);
        let contents = dataset::reread(&paths, &complete, &unwanted, &mut |item| {
            let Item::Case(at) = item else { return };
            if !unwanted.get() && chooser.takes(&at.case) {
                unwanted.set(each(at.case).is_err());
            }
        });
        self.functions.rest();
        match unwanted.get() {
            true => Err(Reread::Unwanted),
            false if contents != self.contents => Err(Reread::Changed),
            false => Ok(()),
        }
    }
}

/// What is wrong with a case that has results of tools, and neither it nor its runner has tools.
fn without_tools(case: &TestCase) -> Option<CriteriaProblem> {
    let results = case.conversation.tool_results.as_deref().unwrap_or_default();
    let first = results.first().filter(|_| case.ask.tools.is_none())?;
    Some(CriteriaProblem {
        path: vec![Step::Key("tool_results")],
        code: "unknown-tool",
        message: format!(
            "there is no tool `{}`: neither the case nor its runner has `tools`",
            first.name
        ),
        help: None,
    })
}

/// What there is in a dataset that is read through before anything is asked.
pub(crate) enum Scanned {
    Problem(Problem),
    /// A case, and what it asks in each way. One that cannot be filled in is refused.
    Case(Box<CaseAt>, Vec<Option<Request>>),
}

/// Why a dataset was not read to its end.
#[derive(Clone, Copy)]
pub(crate) enum Reread {
    Unwanted,
    Changed,
}

/// Nobody wants further cases.
pub(crate) struct Stopped;

#[cfg(test)]
mod tests {
    use probity_core::criteria::RubricPrompt;

    use super::*;

    #[test]
    fn what_opinions_depend_on_is_written_as_json() {
        let by = JudgedBy { backend: "j".to_owned(), model: None, own_answers: false };
        let usual = PanelConfig::default();
        assert_eq!(Judge::new(&["p"], by.clone(), &usual).parameters, "p");
        let prompt = RubricPrompt::Text("{{ output }}".to_owned());
        let panel = PanelConfig { repeats: 2, rubric_prompt: Some(prompt), ..usual };
        let parameters = Judge::new(&["p", "q"], by, &panel).parameters;
        let expected = json!({
            "judges": ["p", "q"], "combine": "majority", "repeats": 2, "structured": null,
            "rubric_prompt": "{{ output }}",
        });
        assert_eq!(serde_json::from_str::<serde_json::Value>(&parameters).unwrap(), expected);
    }
}
