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
    criteria::CriteriaProblem,
    evidence::JudgedBy,
    located::Step,
    problem::Problem,
    record::InputDigest,
    request::{Message, Request, Role},
};
use probity_grade::{Compiler, Expectation, Rules, check_commands};
use probity_load::{
    dataset::{self, Item},
    suite::{PromptConfig, RunnerConfig},
    template::{self, BadMessage, TemplateError},
};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::{
    backend::{Ask, Backend},
    decide::Seen,
    filter::{Chooser, Filter},
    gated::GatedScores,
    kind::{Asking, Kind, Questions, Respond, Work},
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
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) kind: Arc<dyn Kind>,
    /// How they are asked.
    pub(crate) prompt: Arc<PromptConfig>,
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
            paths: Vec::new(),
            kind: Arc::new(Respond),
            prompt: Arc::default(),
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
    Runner(Box<BadTemplate>),
}

/// A template of a runner that cannot be filled in.
pub(crate) struct BadTemplate {
    part: PromptPart,
    text: Arc<str>,
    error: TemplateError,
}

/// The templates of a runner, or of one of its variants.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum PromptPart {
    System,
    Template,
    /// One of the messages.
    Message(usize),
}

impl BadTemplate {
    /// What is wrong, at its place.
    fn problem(&self, prompt: &PromptConfig, case_id: &str) -> Option<Problem> {
        let at = match self.part {
            PromptPart::System => &prompt.system.as_ref()?.at,
            PromptPart::Template => &prompt.template.as_ref()?.at,
            PromptPart::Message(at) => &prompt.messages.get(at)?.1,
        };
        let problem = at.problem(&self.text, &self.error);
        Some(Problem { case_id: Some(case_id.to_owned()), ..problem })
    }
}

impl Cases {
    /// The cases of a runner as its first variant asks them; the digest is not known before they are
    /// read.
    pub(crate) fn of(
        runner: &RunnerConfig,
        kind: Arc<dyn Kind>,
        folder: &Path,
        filter: Filter,
    ) -> Self {
        Self {
            paths: runner.dataset.iter().map(|name| folder.join(name)).collect(),
            kind,
            prompt: runner.prompts.first().cloned().unwrap_or_default(),
            repeat: runner.repeat,
            filter,
            digest: String::new(),
            judge: None,
            shuffle: None,
            tells_known: false,
            has_undecided: false,
            #[cfg(test)]
            given: Vec::new(),
        }
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
        scores: &mut GatedScores,
        mut each: impl FnMut(Item),
    ) -> dataset::Summary {
        let ways = || std::iter::once(self).chain(others);
        let scores = RefCell::new(scores);
        let compiler = RefCell::new(Compiler::new(rules));
        let templates = RefCell::new(BTreeMap::new());
        let check = |case: &TestCase| -> Vec<CriteriaProblem> {
            let mut problems = match compiler.borrow_mut().compile(case) {
                Ok(expectation) => {
                    scores.borrow_mut().see(case, &expectation);
                    Vec::new()
                }
                Err(problems) => problems,
            };
            problems.extend(check_commands(case));
            problems.extend(self.kind.check(case));
            for (at, way) in ways().enumerate() {
                if let Some(problem) = way.check_ask(case) {
                    problems.push(problem);
                    break;
                }
                if let Err(Unfilled::Runner(bad)) = way.fill_in(case) {
                    let key = (at, bad.part);
                    templates.borrow_mut().entry(key).or_insert_with(|| (case.id.clone(), bad));
                }
            }
            problems
        };
        let paths: Vec<&Path> = self.paths.iter().map(PathBuf::as_path).collect();
        let mut summary = dataset::read(&paths, &check, &mut each);
        // A template of the runner is the same for every case, so it is told of once.
        let templates = templates.into_inner();
        let mut told = Vec::new();
        for ((at, _), (case_id, bad)) in templates {
            let Some(problem) = ways().nth(at).and_then(|way| bad.problem(&way.prompt, &case_id))
            else {
                continue;
            };
            // Instructions that several variants share are told of once, too.
            let place = (problem.file.clone(), problem.place.clone());
            if !told.contains(&place) {
                told.push(place);
                summary.errors += 1;
                each(Item::Problem(problem));
            }
        }
        summary
    }

    /// What a case asks, with its templates filled in.
    pub(crate) fn fill_in(&self, case: &TestCase) -> Result<Request, Unfilled> {
        // The braces in the arguments of a program are filled in for each backend.
        if self.kind.spec().is_external {
            let system = case.system.as_deref().map(Arc::from);
            let system = system.or_else(|| self.prompt.system.as_ref().map(|it| it.text.clone()));
            return Ok(Request::new(system, case.prompt.as_str()));
        }
        let given = case.vars();
        let vars = template::fill_values(&given).map_err(|_| Unfilled::Case)?;
        let AskSpec { messages, tools, tool_choice, response_format, sampling } = &case.ask;
        let said = if !self.prompt.messages.is_empty() {
            self.fill_messages(case, &vars)?
        } else if messages.is_empty() {
            self.fill_prompt(case, &vars)?
        } else {
            self.fill_conversation(case, &vars)?
        };
        Ok(Request {
            tools: tools.clone().unwrap_or_default(),
            tool_choice: tool_choice.clone(),
            response_format: response_format.clone(),
            sampling: sampling.or(&self.prompt.sampling),
            ..said
        })
    }

    /// The conversation of a case. Instructions go before it if it does not begin with some.
    fn fill_conversation(&self, case: &TestCase, vars: &Vars) -> Result<Request, Unfilled> {
        let messages = template::fill_messages(&case.ask.messages, vars);
        self.instructed(messages.map_err(|_| Unfilled::Case)?, case, vars, "")
    }

    /// The conversation of the variant, around the case's own prompt.
    fn fill_messages(&self, case: &TestCase, vars: &Vars) -> Result<Request, Unfilled> {
        let own = template::render(&case.prompt, vars).map_err(|_| Unfilled::Case)?;
        let seen = seen_by_runner(case, vars, &own);
        let messages = template::fill_messages(self.prompt.conversation(), &seen);
        let messages = messages.map_err(|BadMessage { message, text, error }| {
            Unfilled::Runner(Box::new(BadTemplate {
                part: PromptPart::Message(message),
                text,
                error,
            }))
        })?;
        self.instructed(messages, case, vars, &own)
    }

    /// A conversation, after instructions if it does not begin with some.
    fn instructed(
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

    fn fill_prompt(&self, case: &TestCase, vars: &Vars) -> Result<Request, Unfilled> {
        let own = template::render(&case.prompt, vars).map_err(|_| Unfilled::Case)?;
        let prompt = match &self.prompt.template {
            Some(outer) => Some(of_runner(PromptPart::Template, &outer.text, case, vars, &own)?),
            None => None,
        };
        let system = self.fill_system(case, vars, &own)?;
        Ok(Request::new(system, prompt.unwrap_or(own)))
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
        match self.prompt.system.as_ref().map(|it| &it.text) {
            Some(system) if !has_index && template::is_template(system) => {
                Ok(Some(of_runner(PromptPart::System, system, case, vars, prompt)?.into()))
            }
            system => Ok(system.cloned()),
        }
    }

    /// What keeps this runner from asking a case, whatever the case is about.
    fn check_ask(&self, case: &TestCase) -> Option<CriteriaProblem> {
        let PromptConfig { variant, template, messages, .. } = &*self.prompt;
        let has_messages = !case.ask.messages.is_empty();
        let (key, message) = match variant {
            None if has_messages && template.is_some() => {
                let message =
                    "the runner has a `prompt`, which a case with `messages` has no place for";
                ("messages", message.to_owned())
            }
            Some(name) if has_messages && (template.is_some() || !messages.is_empty()) => {
                ("messages", format!("variant `{name}` has no place for a case with `messages`"))
            }
            Some(name) if case.system.is_some() && self.prompt.begins_with_system() => {
                ("system", format!("variant `{name}` has no place for a case with `system`"))
            }
            None if has_messages && self.kind.spec().keys.contains(&"skills") => {
                ("messages", "a case about skills has a `prompt`, and no `messages`".to_owned())
            }
            None | Some(_) => return None,
        };
        let path = vec![Step::Key(key)];
        Some(CriteriaProblem { path, code: "bad-case", message, help: None })
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
                        each(backend.cache_key(&Ask { request: &request, repeat }));
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
        });
        receiver
    }
}

/// A template of the runner, which sees the fields of the case.
fn of_runner(
    part: PromptPart,
    text: &Arc<str>,
    case: &TestCase,
    vars: &Vars,
    prompt: &str,
) -> Result<String, Unfilled> {
    template::render(text, &seen_by_runner(case, vars, prompt)).map_err(|error| {
        Unfilled::Runner(Box::new(BadTemplate { part, text: text.clone(), error }))
    })
}

/// The variables of a case, and its fields.
fn seen_by_runner(case: &TestCase, vars: &Vars, prompt: &str) -> Vars {
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
        if let Some(case) = self.kind.own_case() {
            if !self.filter.matches(&case) {
                return Ok(());
            }
            return each(&case).map_err(|Stopped| Reread::Unwanted);
        }
        let mut chooser = Chooser::new(&self.filter);
        let unwanted = Cell::new(false);
        let paths: Vec<&Path> = self.paths.iter().map(PathBuf::as_path).collect();
        let summary = dataset::reread(&paths, &unwanted, &mut |item| {
            let Item::Case(at) = item else { return };
            if !unwanted.get() && chooser.takes(&at.case) {
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
