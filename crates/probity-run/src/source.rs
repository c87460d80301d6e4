//! Cases as they are asked: read from the dataset while the run goes on.
//!
//! A dataset is never in memory as a whole. It is read once to check it, and then once
//! for each lane and repeat, by a thread that stays a few cases ahead of the calls.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
};

use probity_core::{
    case::{Category, TestCase},
    classification::{Class, Verdict},
    criteria::{Criteria, CriteriaProblem},
    evidence::JudgedBy,
    problem::Problem,
    record::InputDigest,
    request::Request,
    runner::RunnerKind,
};
use probity_grade::{Compiler, Expectation, Rules, check_commands};
use probity_load::{
    dataset::{self, Item},
    suite::{RunnerConfig, WrittenAt},
    template::{self, TemplateError},
};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::{
    backend::{Ask, Backend},
    decide::Seen,
    filter::{Chooser, Filter},
    foreign,
    work::{Skills, Work, rubrics_in},
};

/// Cases that are read ahead of the calls.
const AHEAD: usize = 256;

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
    pub(crate) work: Work,
    pub(crate) case: Arc<TestCase>,
}

/// What a reading thread hands over.
#[derive(Debug)]
pub(crate) enum Fed {
    Case(Box<Prepared>),
    /// A case that came to an end in an earlier sitting, for those who count.
    Known(Seen),
    /// The dataset is not what it was when it was checked.
    Broken(String),
}

/// Cases of a lane that came to an end in an earlier sitting, and what they were asked.
#[derive(Clone, Debug, Default)]
pub struct Done(BTreeMap<(InputDigest, u32), DoneCase>);

/// A case that came to an end.
#[derive(Clone, Copy, Debug)]
pub struct DoneCase {
    /// What it was asked.
    pub input: InputDigest,
    /// One of the eight.
    pub class: Class,
    /// What gates count.
    pub verdict: Verdict,
}

impl Done {
    /// Remembers a case.
    pub fn insert(&mut self, case_id: &str, repeat: u32, case: DoneCase) {
        self.0.insert((Self::key(case_id), repeat), case);
    }

    /// What a case was asked, and what it came to.
    pub fn get(&self, case_id: &str, repeat: u32) -> Option<DoneCase> {
        match self.0.is_empty() {
            true => None,
            false => self.0.get(&(Self::key(case_id), repeat)).copied(),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A hash instead of the id: ids may be long, and there may be a million.
    fn key(case_id: &str) -> InputDigest {
        InputDigest::of([case_id.as_bytes()])
    }
}

/// Where the cases of a runner come from, and how they are asked.
#[derive(Clone, Debug)]
pub(crate) struct Cases {
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) kind: RunnerKind,
    pub(crate) system: Option<Arc<str>>,
    pub(crate) prompt: Option<Arc<str>>,
    /// Where both stand in the suite.
    pub(crate) system_at: Option<WrittenAt>,
    pub(crate) prompt_at: Option<WrittenAt>,
    /// What is checked of a reply, of cases that do not say so, and where that stands.
    pub(crate) transform: Option<String>,
    pub(crate) transform_at: Option<WrittenAt>,
    pub(crate) repeat: u32,
    pub(crate) filter: Filter,
    pub(crate) digest: String,
    /// What the cases are about, of a skill runner.
    pub(crate) skills: Option<Arc<Skills>>,
    /// Who judges, and whether in both orders.
    pub(crate) judge: Option<Judge>,
    pub(crate) swap: bool,
    /// The program that runs cases of its own.
    pub(crate) program: Option<Arc<foreign::Program>>,
    /// Draws the order in which cases are asked; none for the order of the dataset.
    pub(crate) shuffle: Option<u64>,
    /// Whether cases that are done are told of.
    pub(crate) tells_known: bool,
    /// Whether nothing decides some of them.
    pub(crate) has_undecided: bool,
    /// Cases that are in no file, for tests that own the time.
    #[cfg(test)]
    pub(crate) given: Vec<TestCase>,
}

impl Default for Cases {
    /// No cases at all.
    fn default() -> Self {
        Self {
            paths: Vec::new(),
            kind: RunnerKind::Respond,
            system: None,
            prompt: None,
            system_at: None,
            prompt_at: None,
            transform: None,
            transform_at: None,
            repeat: 0,
            filter: Filter::default(),
            digest: String::new(),
            skills: None,
            judge: None,
            swap: false,
            program: None,
            shuffle: None,
            tells_known: false,
            has_undecided: false,
            #[cfg(test)]
            given: Vec::new(),
        }
    }
}

/// Who judges the answers of a lane.
#[derive(Clone, Debug)]
pub(crate) struct Judge {
    pub(crate) backend: Arc<Backend>,
    pub(crate) by: JudgedBy,
}

/// The templates of a case with their variables filled in.
pub(crate) struct Filled {
    pub(crate) prompt: String,
    pub(crate) system: Option<Arc<str>>,
}

/// Why a case cannot be asked.
pub(crate) enum Unfilled {
    /// One of its own templates is wrong, which the dataset was refused for.
    Case,
    /// A template of the runner is wrong.
    Runner { key: &'static str, error: TemplateError },
}

/// What a case asks, before anything is compiled.
struct Questions {
    request: Request,
    work: Work,
}

impl Cases {
    /// The cases of a runner; the digest is not known before they are read.
    pub(crate) fn of(runner: &RunnerConfig, folder: &Path, filter: Filter) -> Self {
        let plain =
            |prompt: &&String| prompt.trim() != "{{ prompt }}" && prompt.trim() != "{{prompt}}";
        Self {
            paths: runner.dataset.iter().map(|name| folder.join(name)).collect(),
            kind: runner.kind,
            system: runner.system.as_deref().map(Arc::from),
            prompt: runner.prompt.as_ref().filter(plain).map(|prompt| prompt.as_str().into()),
            system_at: runner.system_at.clone(),
            prompt_at: runner.prompt_at.clone(),
            transform: runner.transform.clone(),
            transform_at: runner.transform_at.clone(),
            repeat: runner.repeat,
            filter,
            digest: String::new(),
            skills: None,
            judge: None,
            swap: runner.swap,
            program: None,
            shuffle: None,
            tells_known: false,
            has_undecided: false,
            #[cfg(test)]
            given: Vec::new(),
        }
    }

    /// Reads the dataset through, with every check.
    pub(crate) fn survey(&self, rules: &Rules, mut each: impl FnMut(Item)) -> dataset::Summary {
        let compiler = RefCell::new(Compiler::new(rules));
        let templates = RefCell::new(BTreeMap::new());
        let check = |case: &TestCase| -> Vec<CriteriaProblem> {
            let mut problems = compiler.borrow_mut().compile(case).err().unwrap_or_default();
            problems.extend(check_commands(case));
            problems.extend(self.check_case(case));
            if let Err(Unfilled::Runner { key, error }) = self.fill_in(case) {
                templates.borrow_mut().entry(key).or_insert_with(|| (case.id.clone(), error));
            }
            problems
        };
        let paths: Vec<&Path> = self.paths.iter().map(PathBuf::as_path).collect();
        let mut summary = dataset::read(&paths, &check, &mut each);
        if let (Some(transform), Some(at)) = (&self.transform, &self.transform_at) {
            let criteria = Criteria { transform: Some(transform.clone()), ..Criteria::default() };
            let alone = TestCase { criteria, ..TestCase::default() };
            for problem in compiler.into_inner().compile(&alone).err().unwrap_or_default() {
                summary.errors += 1;
                each(Item::Problem(at.script_problem("transform", &problem.message)));
            }
        }
        // A template of the runner is the same for every case, so it is told of once.
        for (key, (case_id, error)) in templates.into_inner() {
            summary.errors += 1;
            let (at, text) = match key {
                "system" => (&self.system_at, &self.system),
                _ => (&self.prompt_at, &self.prompt),
            };
            if let (Some(at), Some(text)) = (at, text) {
                let problem = at.problem(key, text, &error);
                each(Item::Problem(Problem { case_id: Some(case_id), ..problem }));
            }
        }
        summary
    }

    fn check_case(&self, case: &TestCase) -> Vec<CriteriaProblem> {
        let mut problems = self.skills.as_ref().map(|it| it.check(case)).unwrap_or_default();
        if self.kind == RunnerKind::Command && case.accepted_commands().next().is_none() {
            problems.push(CriteriaProblem {
                path: vec![],
                code: "missing-field",
                message: "a case of a `command` runner needs `expected_command`".to_owned(),
                help: None,
            });
        }
        problems
    }

    /// The prompt and the instructions as they are sent.
    pub(crate) fn fill_in(&self, case: &TestCase) -> Result<Filled, Unfilled> {
        // The braces in the arguments of a program are filled in for each backend.
        if self.program.is_some() {
            let system = case.system.as_deref().map(Arc::from).or_else(|| self.system.clone());
            return Ok(Filled { prompt: case.prompt.clone(), system });
        }
        let of_case =
            |text: &str| template::render(text, &case.prompt_vars).map_err(|_| Unfilled::Case);
        let own = of_case(&case.prompt)?;
        // The instructions of a skill runner that routes are filled in with its index.
        let routes = self.kind.has_skills() && !self.kind.compares();
        let outer_system = self.system.as_deref().filter(|_| case.system.is_none() && !routes);
        if self.prompt.is_none() && !outer_system.is_some_and(template::is_template) {
            let system = match &case.system {
                Some(system) => Some(of_case(system)?.into()),
                None => self.system.clone(),
            };
            return Ok(Filled { prompt: own, system });
        }
        let mut vars = case.prompt_vars.clone();
        vars.insert("id".to_owned(), Value::from(case.id.as_str()));
        vars.insert("prompt".to_owned(), Value::from(own.as_str()));
        vars.insert("tags".to_owned(), Value::from(case.tags.as_slice()));
        if let Some(category) = case.category {
            vars.insert("category".to_owned(), Value::from(category.as_str()));
        }
        if let Some(difficulty) = &case.difficulty {
            vars.insert("difficulty".to_owned(), Value::from(difficulty.as_str()));
        }
        let of_runner = |key: &'static str, text: &str| {
            template::render(text, &vars).map_err(|error| Unfilled::Runner { key, error })
        };
        let prompt = match &self.prompt {
            Some(outer) => of_runner("prompt", outer)?,
            None => own,
        };
        let system = match (&case.system, outer_system) {
            (Some(system), _) => Some(of_case(system)?.into()),
            (None, Some(system)) => Some(of_runner("system", system)?.into()),
            (None, None) => self.system.clone(),
        };
        Ok(Filled { prompt, system })
    }

    /// Makes a case ready; none if it cannot be, which the survey would have noticed.
    fn prepare(
        &self,
        case: &TestCase,
        repeat: u32,
        backend: &Backend,
        compiler: &mut Compiler<'static>,
    ) -> Option<Prepared> {
        let questions = self.questions(case)?;
        let input = self.input(case, &questions, backend);
        let Questions { request, work } = questions;
        let mut expectation = compiler.compile(case).ok()?;
        let routing = match work {
            Work::Route { .. } => self.skills.as_ref().and_then(|it| it.expectation(case)),
            Work::Answer | Work::Compare(_) | Work::Program(_) => None,
        };
        if let Some(routing) = routing {
            expectation = expectation.with_routing(routing);
        }
        Some(Prepared {
            case_id: case.id.clone(),
            repeat,
            place: 0,
            category: case.category,
            input,
            expectation,
            work,
            case: Arc::new(case.clone()),
            request,
        })
    }

    /// What a case asks.
    fn questions(&self, case: &TestCase) -> Option<Questions> {
        let Filled { prompt, system } = self.fill_in(case).ok()?;
        let Some(skills) = &self.skills else {
            let work = self.program.clone().map_or(Work::Answer, Work::Program);
            return Some(Questions { request: Request::new(system, prompt), work });
        };
        if self.kind.compares() {
            let by = &self.judge.as_ref()?.by;
            let comparison = skills.comparison(case, system.as_deref(), self.swap, by)?;
            // The answer with the whole skill is the case's own.
            let system = comparison.conditions.first().and_then(|(_, system)| system.clone());
            let work = Work::Compare(Box::new(comparison));
            return Some(Questions { request: Request::new(system, prompt), work });
        }
        let (system, _) = skills.index_of(case)?;
        let work = Work::Route { skills: skills.library.clone() };
        Some(Questions { request: Request::new(Some(system), prompt), work })
    }

    /// What is asked with which parameters: answers to anything else are no answers.
    fn input(&self, case: &TestCase, questions: &Questions, backend: &Backend) -> InputDigest {
        let Questions { request, work } = questions;
        let plain = backend.digest(request);
        let judge = self.judge.as_ref().map_or("", |it| it.backend.parameters.as_str());
        match work {
            Work::Answer if rubrics_in(&case.criteria.assertions) > 0 => {
                let asserted = serde_json::to_string(&case.criteria.assertions).unwrap_or_default();
                InputDigest::of([&plain.0[..], judge.as_bytes(), asserted.as_bytes()])
            }
            Work::Answer | Work::Route { .. } => plain,
            Work::Compare(it) => {
                let all: Vec<InputDigest> =
                    it.requests(request).iter().map(|(_, it)| backend.digest(it)).collect();
                let rubric = serde_json::to_string(&it.rubric).unwrap_or_default();
                let how =
                    [judge.as_bytes(), rubric.as_bytes(), if it.swap { b"both" } else { b"one" }];
                InputDigest::of(how.into_iter().chain(all.iter().map(|it| &it.0[..])))
            }
            Work::Program(program) => {
                let all = program.command.iter().map(String::as_bytes);
                InputDigest::of([&plain.0[..]].into_iter().chain(all))
            }
        }
    }

    /// The keys under which the answers of a case that are going to be judged are kept.
    pub(crate) fn generations(&self, backend: &Backend, mut each: impl FnMut(InputDigest)) {
        for repeat in 0..self.repeat {
            let read = self.reread(|case| {
                let questions = self.questions(case);
                let Some(Questions { request, work: Work::Compare(it) }) = questions else {
                    return Ok(());
                };
                for (_, request) in it.requests(&request) {
                    each(backend.cache_key(&Ask { request: &request, repeat }));
                }
                Ok(())
            });
            if read.is_err() {
                return;
            }
        }
    }

    /// The one case of a program.
    pub(crate) fn of_program(&self) -> Option<TestCase> {
        let program = self.program.as_ref()?;
        let prompt = program.command.join(" ");
        Some(TestCase { id: "program".to_owned(), prompt, ..TestCase::default() })
    }

    /// What each selected case is asked on a backend, without anything that grading needs.
    pub(crate) fn inputs(&self, backend: &Backend, mut each: impl FnMut(&str, u32, InputDigest)) {
        for repeat in 0..self.repeat {
            // A dataset that has changed since is noticed when its cases are fed.
            let _ = self.reread(|case| {
                if let Some(questions) = self.questions(case) {
                    each(&case.id, repeat, self.input(case, &questions, backend));
                }
                Ok(())
            });
        }
    }

    /// Reads the cases that are still to be asked, in a thread of its own.
    pub(crate) fn feed(
        self,
        backend: Arc<Backend>,
        done: Done,
        rules: &'static Rules,
    ) -> mpsc::Receiver<Fed> {
        let (sender, receiver) = mpsc::channel(AHEAD);
        #[cfg(test)]
        if !self.given.is_empty() {
            let mut compiler = Compiler::new(rules);
            for (repeat, case) in
                (0..self.repeat).flat_map(|it| self.given.iter().map(move |c| (it, c)))
            {
                let mut prepared = self.prepare(case, repeat, &backend, &mut compiler).unwrap();
                prepared.place = sender.max_capacity() as u64 - sender.capacity() as u64;
                sender.try_send(Fed::Case(Box::new(prepared))).unwrap();
            }
            return receiver;
        }
        thread::spawn(move || {
            let compiler = Compiler::new(rules);
            let feeder = Feeder { cases: &self, backend, done, compiler, sender, place: 0 };
            // Whoever stopped wanting cases knows why.
            let _ = match self.shuffle {
                None => feeder.in_order(),
                Some(seed) => feeder.in_random_order(seed),
            };
        });
        receiver
    }
}

/// Reads cases for one lane.
struct Feeder<'c> {
    cases: &'c Cases,
    backend: Arc<Backend>,
    done: Done,
    compiler: Compiler<'static>,
    sender: mpsc::Sender<Fed>,
    /// Of the next case.
    place: u64,
}

impl Feeder<'_> {
    /// In the order of the dataset, one repeat after the other, and never all in memory.
    fn in_order(mut self) -> Result<(), Stopped> {
        let cases = self.cases;
        for repeat in 0..cases.repeat {
            cases.reread(|case| self.feed(case, repeat)).map_err(|error| self.broken(error))?;
        }
        Ok(())
    }

    /// In an order that chance draws of all cases and repeats: they are in memory for that.
    fn in_random_order(mut self, seed: u64) -> Result<(), Stopped> {
        let cases = self.cases;
        let mut all: Vec<TestCase> = Vec::new();
        let read = cases.reread(|case| {
            all.push(case.clone());
            Ok(())
        });
        read.map_err(|error| self.broken(error))?;
        let mut order: Vec<(InputDigest, usize, u32)> = Vec::new();
        for (at, case) in all.iter().enumerate() {
            for repeat in 0..cases.repeat {
                let parts =
                    [b"order", &seed.to_le_bytes()[..], case.id.as_bytes(), &repeat.to_le_bytes()];
                order.push((InputDigest::of(parts), at, repeat));
            }
        }
        order.sort_unstable();
        for (_, at, repeat) in order {
            self.feed(&all[at], repeat)?;
        }
        Ok(())
    }

    /// Hands a case over, unless it is done.
    fn feed(&mut self, case: &TestCase, repeat: u32) -> Result<(), Stopped> {
        let Self { cases, backend, done, compiler, sender, place } = self;
        let Some(mut prepared) = cases.prepare(case, repeat, backend, compiler) else {
            return Ok(());
        };
        prepared.place = *place;
        *place += 1;
        let fed = match done.get(&prepared.case_id, repeat) {
            Some(DoneCase { input, class, verdict }) if input == prepared.input => {
                if !cases.tells_known {
                    return Ok(());
                }
                let Prepared { place, category, .. } = prepared;
                Fed::Known(Seen { place, category, class, verdict })
            }
            Some(_) | None => Fed::Case(Box::new(prepared)),
        };
        sender.blocking_send(fed).map_err(|_| Stopped)
    }

    /// Says that the dataset cannot be read on.
    fn broken(&self, error: Reread) -> Stopped {
        if let Reread::Changed = error {
            let message = "the dataset changed while it was being run".to_owned();
            let _ = self.sender.blocking_send(Fed::Broken(message));
        }
        Stopped
    }
}

impl Cases {
    /// Goes through the chosen cases of a dataset that was checked before.
    pub(crate) fn reread(
        &self,
        mut each: impl FnMut(&TestCase) -> Result<(), Stopped>,
    ) -> Result<(), Reread> {
        if let Some(case) = self.of_program() {
            if !self.filter.matches(&case) {
                return Ok(());
            }
            return each(&case).map_err(|Stopped| Reread::Unwanted);
        }
        let mut chooser = Chooser::new(&self.filter);
        let unwanted = Cell::new(false);
        let paths: Vec<&Path> = self.paths.iter().map(PathBuf::as_path).collect();
        let summary = dataset::reread(&paths, &unwanted, &mut |item| {
            let Item::Case(mut at) = item else { return };
            if !unwanted.get() && chooser.takes(&at.case) {
                if at.case.criteria.transform.is_none() {
                    at.case.criteria.transform.clone_from(&self.transform);
                }
                unwanted.set(each(&at.case).is_err());
            }
        });
        match unwanted.get() {
            true => Err(Reread::Unwanted),
            false if summary.digest.to_string() != self.digest => Err(Reread::Changed),
            false => Ok(()),
        }
    }
}

/// Why a dataset was not read to its end.
#[derive(Clone, Copy)]
pub(crate) enum Reread {
    Unwanted,
    Changed,
}

/// Nobody wants further cases.
pub(crate) struct Stopped;
