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
    case::{AskSpec, Category, TestCase},
    classification::{Class, Verdict},
    criteria::{Criteria, CriteriaProblem},
    evidence::JudgedBy,
    located::Step,
    problem::Problem,
    record::InputDigest,
    request::{Message, Request, Role},
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
    consent,
    decide::Seen,
    filter::{Chooser, Filter},
    gated::GatedScores,
    kind::{Asking, Kind, Questions, Respond, Site, Work},
    loading::{DatasetFiles, PromptFunction},
    scorer::UsedScorers,
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
    pub(crate) work: Arc<dyn Work>,
    pub(crate) case: Arc<TestCase>,
}

/// What a reading thread hands over.
#[derive(Debug)]
pub(crate) enum Fed {
    Case(Box<Prepared>),
    /// A case that came to an end in an earlier session, for those who count.
    Known(Seen),
    /// The dataset is not what it was when it was checked.
    Broken(String),
}

/// Cases of a lane that came to an end in an earlier session, and what they were asked.
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

    /// What each came to.
    pub fn verdicts(&self) -> impl Iterator<Item = Verdict> {
        self.0.values().map(|case| case.verdict)
    }

    /// A hash instead of the id: ids may be long, and there may be a million.
    fn key(case_id: &str) -> InputDigest {
        InputDigest::of([case_id.as_bytes()])
    }
}

/// Where the cases of a runner come from, and how they are asked.
#[derive(Clone, Debug)]
pub(crate) struct Cases {
    pub(crate) files: DatasetFiles,
    pub(crate) kind: Arc<dyn Kind>,
    pub(crate) system: Option<Arc<str>>,
    pub(crate) prompt: Option<Arc<str>>,
    /// What makes prompts, where `prompt` names a function.
    pub(crate) maker: Option<Arc<PromptFunction>>,
    /// The backend that prompts are made for.
    pub(crate) provider: String,
    /// Where both stand in the suite.
    pub(crate) system_at: Option<WrittenAt>,
    pub(crate) prompt_at: Option<WrittenAt>,
    /// What is checked of a reply, of cases that do not say so, and where that stands.
    pub(crate) transform: Option<String>,
    pub(crate) transform_at: Option<WrittenAt>,
    /// Whether they may bring code that is run.
    pub(crate) allow_code: bool,
    pub(crate) repeat: u32,
    pub(crate) filter: Filter,
    pub(crate) digest: String,
    /// Who judges.
    pub(crate) judge: Option<Judge>,
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
            files: DatasetFiles::default(),
            kind: Arc::new(Respond),
            system: None,
            prompt: None,
            maker: None,
            provider: String::new(),
            system_at: None,
            prompt_at: None,
            transform: None,
            transform_at: None,
            allow_code: false,
            repeat: 0,
            filter: Filter::default(),
            digest: String::new(),
            judge: None,
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

/// Values for the variables of templates.
type Vars = BTreeMap<String, Value>;

/// Why a case cannot be asked.
pub(crate) enum Unfilled {
    /// One of its own templates is wrong, which the dataset was refused for.
    Case,
    /// A template of the runner is wrong.
    Runner { key: &'static str, error: TemplateError },
    /// The function that makes prompts made none.
    Function(String),
}

impl Cases {
    /// The cases of a runner; the digest is not known before they are read.
    pub(crate) fn of(
        runner: &RunnerConfig,
        kind: Arc<dyn Kind>,
        site: &Site<'_>,
        filter: Filter,
    ) -> Result<Self, Box<Problem>> {
        let plain =
            |prompt: &&String| prompt.trim() != "{{ prompt }}" && prompt.trim() != "{{prompt}}";
        Ok(Self {
            files: DatasetFiles::of(runner, site)?,
            kind,
            maker: PromptFunction::of(runner, site)?.map(Arc::new),
            provider: runner.backends.first().cloned().unwrap_or_default(),
            system: runner.system.as_deref().map(Arc::from),
            prompt: runner.prompt.as_ref().filter(plain).map(|prompt| prompt.as_str().into()),
            system_at: runner.system_at.clone(),
            prompt_at: runner.prompt_at.clone(),
            transform: runner.transform.clone(),
            transform_at: runner.transform_at.clone(),
            allow_code: runner.allow_code,
            repeat: runner.repeat,
            filter,
            digest: String::new(),
            judge: None,
            shuffle: None,
            tells_known: false,
            has_undecided: false,
            #[cfg(test)]
            given: Vec::new(),
        })
    }

    /// Reads the dataset through, with every check.
    pub(crate) fn scan(
        &self,
        rules: &Rules,
        scores: &mut GatedScores,
        asked: &mut UsedScorers,
        mut each: impl FnMut(Item),
    ) -> dataset::Summary {
        let scores = RefCell::new(scores);
        let asked = RefCell::new(asked);
        let compiler = RefCell::new(Compiler::new(rules));
        let templates = RefCell::new(BTreeMap::new());
        let unmade = RefCell::new(None);
        let check = |case: &TestCase| -> Vec<CriteriaProblem> {
            let mut problems = match compiler.borrow_mut().compile(case) {
                Ok(expectation) => {
                    scores.borrow_mut().see(case, &expectation);
                    asked.borrow_mut().see(expectation.scorers());
                    Vec::new()
                }
                Err(problems) => problems,
            };
            problems.extend(check_commands(case));
            problems.extend(self.kind.check(case));
            problems.extend(self.check_ask(case));
            if !self.allow_code {
                consent::refuse(&case.criteria.assertions, &mut problems);
            }
            match self.fill_in(case) {
                Ok(_) | Err(Unfilled::Case) => {}
                Err(Unfilled::Runner { key, error }) => {
                    templates.borrow_mut().entry(key).or_insert_with(|| (case.id.clone(), error));
                }
                Err(Unfilled::Function(why)) => {
                    unmade.borrow_mut().get_or_insert_with(|| (case.id.clone(), why));
                }
            }
            problems
        };
        let paths: Vec<&Path> = self.files.paths.iter().map(PathBuf::as_path).collect();
        let mut each = |item| {
            each(match item {
                Item::Problem(problem) => Item::Problem(self.files.named(problem)),
                Item::Case(case) => Item::Case(case),
            });
        };
        let mut summary = dataset::read(&paths, &check, &mut each);
        if let (Some(transform), Some(at)) = (&self.transform, &self.transform_at) {
            let criteria = Criteria { transform: Some(transform.clone()), ..Criteria::default() };
            let alone = TestCase { criteria, ..TestCase::default() };
            for problem in compiler.into_inner().compile(&alone).err().unwrap_or_default() {
                summary.errors += 1;
                each(Item::Problem(at.script_problem("transform", &problem.message)));
            }
        }
        if let (Some((case_id, why)), Some(at)) = (unmade.into_inner(), &self.prompt_at) {
            summary.errors += 1;
            let problem = at.script_problem("prompt", &why);
            each(Item::Problem(Problem { case_id: Some(case_id), ..problem }));
        }
        self.rest();
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

    /// What a case asks, with its templates filled in.
    pub(crate) fn fill_in(&self, case: &TestCase) -> Result<Request, Unfilled> {
        // The braces in the arguments of a program are filled in for each backend.
        if self.kind.spec().is_external {
            let system = case.system.as_deref().map(Arc::from).or_else(|| self.system.clone());
            return Ok(Request::new(system, case.prompt.as_str()));
        }
        let given = case.vars();
        let vars = template::fill_values(&given).map_err(|_| Unfilled::Case)?;
        let AskSpec { messages, tools, tool_choice, response_format, sampling } = &case.ask;
        let said = match messages.is_empty() {
            true => self.fill_prompt(case, &vars)?,
            false => self.fill_conversation(case, &vars)?,
        };
        Ok(Request {
            tools: tools.clone().unwrap_or_default(),
            tool_choice: tool_choice.clone(),
            response_format: response_format.clone(),
            sampling: sampling.clone(),
            ..said
        })
    }

    /// The conversation of a case.
    fn fill_conversation(&self, case: &TestCase, vars: &Vars) -> Result<Request, Unfilled> {
        let messages = template::fill_messages(&case.ask.messages, vars);
        self.with_instructions(messages.map_err(|_| Unfilled::Case)?, case, vars, "")
    }

    fn fill_prompt(&self, case: &TestCase, vars: &Vars) -> Result<Request, Unfilled> {
        let own = template::render(&case.prompt, vars).map_err(|_| Unfilled::Case)?;
        if let Some(maker) = &self.maker {
            let seen = vars_of_runner(case, vars, &own);
            let made = maker.make(&seen, &self.provider).map_err(Unfilled::Function)?;
            return self.with_instructions(made, case, vars, &own);
        }
        let prompt = match &self.prompt {
            Some(outer) => Some(of_runner("prompt", outer, case, vars, &own)?),
            None => None,
        };
        let system = self.fill_system(case, vars, &own)?;
        Ok(Request::new(system, prompt.unwrap_or(own)))
    }

    /// Messages with instructions before them, if they do not begin with some.
    fn with_instructions(
        &self,
        mut messages: Vec<Message>,
        case: &TestCase,
        vars: &Vars,
        prompt: &str,
    ) -> Result<Request, Unfilled> {
        if messages.first().is_some_and(|it| it.role != Role::System)
            && let Some(system) = self.fill_system(case, vars, prompt)?
        {
            messages.insert(0, Message::text(Role::System, system));
        }
        Ok(Request::of(messages))
    }

    /// Ends the process of the function that makes prompts, until it is needed again.
    fn rest(&self) {
        if let Some(maker) = &self.maker {
            maker.rest();
        }
    }

    /// The instructions of the case, else those of the runner.
    fn fill_system(
        &self,
        case: &TestCase,
        vars: &Vars,
        prompt: &str,
    ) -> Result<Option<Arc<str>>, Unfilled> {
        if let Some(system) = &case.system {
            let filled = template::render(system, vars).map_err(|_| Unfilled::Case)?;
            return Ok(Some(filled.into()));
        }
        // Instructions with an index in them are filled in with that.
        let has_index = self.kind.spec().choice.is_some();
        match &self.system {
            Some(system) if !has_index && template::is_template(system) => {
                Ok(Some(of_runner("system", system, case, vars, prompt)?.into()))
            }
            system => Ok(system.clone()),
        }
    }

    /// What keeps this runner from asking a case, whatever the case is about.
    fn check_ask(&self, case: &TestCase) -> Option<CriteriaProblem> {
        if case.ask.messages.is_empty() {
            return None;
        }
        let message = if self.prompt.is_some() {
            "the runner has a `prompt`, which a case with `messages` has no place for"
        } else if self.kind.spec().keys.contains(&"skills") {
            "a case about skills has a `prompt`, and no `messages`"
        } else {
            return None;
        };
        Some(CriteriaProblem {
            path: vec![Step::Key("messages")],
            code: "bad-case",
            message: message.to_owned(),
            help: None,
        })
    }

    /// Makes a case ready; none if it cannot be, which the scan would have noticed.
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
        let expectation = self.kind.expect(case, compiler.compile(case).ok()?);
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
        let filled = self.fill_in(case).ok()?;
        self.kind.questions(case, filled, self.judge.as_ref().map(|it| &it.by))
    }

    /// What is asked with which parameters: answers to anything else are no answers.
    fn input(&self, case: &TestCase, questions: &Questions, backend: &Backend) -> InputDigest {
        let judge = self.judge.as_ref().map_or("", |it| it.backend.parameters.as_str());
        let Questions { request, work } = questions;
        work.input(&Asking { case, request, backend, judge })
    }

    /// The keys under which the answers of a case that are going to be judged are kept.
    pub(crate) fn generations(&self, backend: &Backend, mut each: impl FnMut(InputDigest)) {
        for repeat in 0..self.repeat {
            let read = self.reread(|case| {
                if let Some(Questions { request, work }) = self.questions(case) {
                    for request in work.generations(&request) {
                        each(backend.cache_key(&Ask {
                            request: &request,
                            repeat,
                            vars: &case.prompt_vars,
                        }));
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
    pub(crate) fn requests(&self, mut each: impl FnMut(&str, Request)) {
        let _ = self.reread(|case| {
            if let Some(Questions { request, work: _ }) = self.questions(case) {
                each(&case.id, request);
            }
            Ok(())
        });
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
            self.rest();
        });
        receiver
    }
}

/// A template of the runner, which sees the fields of the case.
fn of_runner(
    key: &'static str,
    text: &str,
    case: &TestCase,
    vars: &Vars,
    prompt: &str,
) -> Result<String, Unfilled> {
    let vars = vars_of_runner(case, vars, prompt);
    template::render(text, &vars).map_err(|error| Unfilled::Runner { key, error })
}

/// What a template or function of the runner sees: the variables of the case, and its fields.
fn vars_of_runner(case: &TestCase, vars: &Vars, prompt: &str) -> Vars {
    let mut vars = vars.clone();
    vars.insert("id".to_owned(), Value::from(case.id.as_str()));
    vars.insert("prompt".to_owned(), Value::from(prompt));
    vars.insert("tags".to_owned(), Value::from(case.tags.as_slice()));
    if let Some(category) = case.category {
        vars.insert("category".to_owned(), Value::from(category.as_str()));
    }
    if let Some(difficulty) = &case.difficulty {
        vars.insert("difficulty".to_owned(), Value::from(difficulty.as_str()));
    }
    vars
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
            return match &cases.maker {
                Some(_) => Err(self.stop("the function that makes prompts has failed")),
                None => Ok(()),
            };
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
        match error {
            Reread::Unwanted => Stopped,
            Reread::Changed => self.stop("the dataset changed while it was being run"),
        }
    }

    /// Says why no further cases come.
    fn stop(&self, why: &str) -> Stopped {
        let _ = self.sender.blocking_send(Fed::Broken(why.to_owned()));
        Stopped
    }
}

impl Cases {
    /// Goes through the chosen cases of a dataset that was checked before.
    pub(crate) fn reread(
        &self,
        mut each: impl FnMut(&TestCase) -> Result<(), Stopped>,
    ) -> Result<(), Reread> {
        if let Some(case) = self.kind.own_case() {
            if !self.filter.matches(&case) {
                return Ok(());
            }
            return each(&case).map_err(|Stopped| Reread::Unwanted);
        }
        let mut chooser = Chooser::new(&self.filter);
        let unwanted = Cell::new(false);
        let paths: Vec<&Path> = self.files.paths.iter().map(PathBuf::as_path).collect();
        let summary = dataset::reread(&paths, &unwanted, &mut |item| {
            let Item::Case(mut at) = item else { return };
            if !unwanted.get() && chooser.takes(&at.case) {
                if at.case.criteria.transform.is_none() {
                    at.case.criteria.transform.clone_from(&self.transform);
                }
                unwanted.set(each(&at.case).is_err());
            }
        });
        self.rest();
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
