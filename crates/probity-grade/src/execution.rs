//! What was executed, held against what it had to do.

mod code;
mod paths;

use std::{borrow::Cow, sync::Arc};

use probity_core::{
    criteria::{Asks, Assertion, CriteriaProblem},
    execution::{
        ANSWER_FILE, AnswerFile, EffectCall, Ended, Executed, ExecutedIn, ExecutionCall,
        ExecutionCriteria, ExecutionUse, Stream, TextCriteria, USUAL_TIMEOUT, WorldRef,
    },
    located::Step,
    run_result::RunResult,
    score::Score,
};
use probity_shell::extract::extract;

use crate::{
    assertion::{self, CompiledAssertion},
    check::Told,
    compile::{Compiler, Expectation, Place},
    difference::text_difference,
    excerpt::excerpt,
    internal::script,
    reply::{Reply, blocked_stop},
};
use code::code_in;
use paths::ExpectedPath;

/// The names of the scores.
const EXIT_CODE: &str = "exit_code";
const STDOUT: &str = "stdout";
const STDERR: &str = "stderr";
const PATH: &str = "path";
const UNCHANGED: &str = "unchanged";
/// The score of a reply with nothing in it to execute.
pub(crate) const EXECUTION: &str = "execution";

/// What an execution has to come to, compiled.
#[derive(Clone, Debug)]
pub(crate) struct ExecutionExpectation {
    criteria: ExecutionCriteria,
    stdout: Option<ExpectedText>,
    stderr: Option<ExpectedText>,
    paths: Vec<ExpectedPath>,
    /// The usual world of agents, if one has worked on the case: what it left behind is judged, and not its reply.
    after_work: Option<WorldRef>,
}

/// What has to hold of an output or of the content of a file.
#[derive(Clone, Debug)]
enum ExpectedText {
    /// It is this text, line ends at its end aside.
    Is(String),
    All(Vec<CompiledAssertion>),
}

impl ExecutionExpectation {
    /// Compiles what a case says of its execution.
    pub(crate) fn compile(
        criteria: &ExecutionCriteria,
        place: Place<'_>,
        compiler: &mut Compiler<'_>,
        problems: &mut Vec<CriteriaProblem>,
    ) -> Self {
        let mut text = |written: Option<&TextCriteria>, path: &[Step<'static>]| {
            let path: Vec<_> = [Step::Key("execution")].iter().chain(path).copied().collect();
            written.map(|it| {
                ExpectedText::compile(it, Place { path: &path, ..place }, compiler, problems)
            })
        };
        let stdout = text(criteria.stdout.as_ref(), &[Step::Key(STDOUT)]);
        let stderr = text(criteria.stderr.as_ref(), &[Step::Key(STDERR)]);
        let paths = criteria.paths.iter().map(|(path, it)| ExpectedPath {
            path: path.clone(),
            state: it.state,
            content: text(it.content.as_ref(), &[Step::Key("paths")]),
            mode: it.mode,
        });
        Self {
            stdout,
            stderr,
            paths: paths.collect(),
            criteria: criteria.clone(),
            after_work: None,
        }
    }

    /// The names of the scores that it gives.
    pub(crate) fn score_names(&self) -> Vec<Cow<'static, str>> {
        let exit = self.criteria.exit_codes().map(|_| EXIT_CODE.into());
        let texts = [(STDOUT, &self.stdout), (STDERR, &self.stderr)];
        let texts = texts.iter().flat_map(|(what, text)| {
            text.iter().flat_map(|it| it.score_names(what)).collect::<Vec<_>>()
        });
        let paths = self.paths.iter().map(|it| it.score_name().into());
        let unchanged = self.criteria.unchanged.as_ref().map(|_| UNCHANGED.into());
        exit.into_iter().chain(texts).chain(paths).chain(unchanged).collect()
    }

    /// What has to be executed for a reply; an error if there is nothing in it.
    fn call(&self, reply: &str) -> Result<ExecutionCall, String> {
        let usual = self.after_work.as_ref();
        let after = usual.map(|it| self.criteria.after_work(it));
        if let Some(call) = after.or_else(|| self.criteria.after_program()) {
            return Ok(call);
        }
        let ExecutionCriteria { files, setup, file, run, stdin, timeout, .. } = &self.criteria;
        let (command, answer) = match run {
            Some(run) => {
                let path = file.clone().unwrap_or_else(|| ANSWER_FILE.to_owned());
                let text = code_in(reply, &path, run);
                (run.clone(), Some(AnswerFile { path, text }))
            }
            None => {
                let found = extract(reply).ok_or("the reply has no shell command")?;
                if found.command.contains('\0') {
                    return Err("the command in the reply has a NUL in it".to_owned());
                }
                (found.command.into_owned(), None)
            }
        };
        Ok(ExecutionCall {
            worlds: self.criteria.worlds(),
            files: files.clone(),
            setup: setup.clone(),
            answer,
            command,
            stdin: stdin.clone(),
            timeout: timeout.unwrap_or(USUAL_TIMEOUT),
            looks: self.criteria.looks(),
        })
    }

    /// What came of an execution, one score for each thing that is asked of it; an error if that is not known.
    pub(crate) fn judge(
        &self,
        executed: &Executed,
        reply: &Reply<'_, '_>,
    ) -> Result<Vec<Score>, String> {
        let unseen = self
            .criteria
            .looks()
            .into_iter()
            .find(|path| executed.worlds.iter().any(|it| !it.paths.contains_key(path)));
        if let Some(path) = unseen {
            return Err(format!("`{path}` was not looked at when the command was executed"));
        }
        if executed.worlds.is_empty() {
            return Err("it was executed in no world".to_owned());
        }
        let in_worlds = InWorlds { worlds: &executed.worlds };
        let mut scores = Vec::new();
        match self.criteria.exit_codes() {
            Some(codes) => {
                scores.push(in_worlds.score(EXIT_CODE, EXIT_CODE, |it| exit(it, &codes)));
            }
            None => {
                // Any code will do, but who is killed at a limit has none.
                let ended = in_worlds.score(EXIT_CODE, EXIT_CODE, has_ended);
                scores.extend(Some(ended).filter(|it| !it.passed));
            }
        }
        if let Some(stdout) = &self.stdout {
            scores.extend(in_worlds.texts(STDOUT, stdout, reply, |it| &it.stdout));
        }
        if let Some(stderr) = &self.stderr {
            scores.extend(in_worlds.texts(STDERR, stderr, reply, |it| &it.stderr));
        }
        for path in &self.paths {
            scores.push(in_worlds.score(PATH, path.score_name(), |it| path.judge(it, reply)));
        }
        if let Some(unchanged) = &self.criteria.unchanged {
            let named: Vec<&str> = self.paths.iter().map(|it| it.path.as_str()).collect();
            scores.push(
                in_worlds.score(UNCHANGED, UNCHANGED, |it| paths::unchanged(it, unchanged, &named)),
            );
        }
        Ok(scores)
    }
}

impl Expectation<'_> {
    /// The same, for a case that an agent works on; `usual` is the world of cases that name none.
    #[must_use]
    pub fn after_work(mut self, usual: WorldRef) -> Self {
        self.is_work = true;
        if let Some(execution) = &mut self.execution {
            Arc::make_mut(execution).after_work = Some(usual);
        }
        self
    }

    /// What has to be executed for a reply; none where nothing has to be, an error if there is nothing in the reply that
    /// could be.
    pub fn execution_call(&self, result: &RunResult<'_>) -> Option<Result<ExecutionCall, String>> {
        let execution = self.execution.as_ref()?;
        Some(self.checked_text(result)?.and_then(|it| execution.call(&it)))
    }

    /// The pairs of commands that have to be executed, because the suite wants it where reading does not tell.
    pub fn effect_calls(&self, result: &RunResult<'_>) -> Vec<EffectCall> {
        let wanted = self.command.as_ref().filter(|_| self.rules.execution != ExecutionUse::Off);
        let Some(command) = wanted else { return Vec::new() };
        let text = self.checked_text(result).and_then(Result::ok);
        text.map(|it| command.unsettled(&it)).unwrap_or_default()
    }

    /// What was said in reply. An agent that has worked and says nothing in the end has said that it is done.
    pub(crate) fn said<'a>(&self, result: &RunResult<'a>) -> Option<&'a str> {
        let text = result.raw_response.filter(|it| !it.trim().is_empty());
        let is_done = self.is_work && result.error.is_none() && blocked_stop(result).is_none();
        text.or(is_done.then_some(""))
    }

    /// What is checked: the reply, or what a transform made of it; none if there is no reply.
    fn checked_text<'a>(&self, result: &RunResult<'a>) -> Option<Result<Cow<'a, str>, String>> {
        let text = self.said(result)?;
        let reply = Reply::new(text, result, self.rules).of(self.facts.as_deref());
        Some(match self.made_of(&reply) {
            None => Ok(text.into()),
            Some(made) => made.map(|it| script::text_of(&it).into()),
        })
    }
}

impl ExpectedText {
    fn compile(
        written: &TextCriteria,
        place: Place<'_>,
        compiler: &mut Compiler<'_>,
        problems: &mut Vec<CriteriaProblem>,
    ) -> Self {
        let assertions = match written {
            TextCriteria::Text(text) => return Self::Is(text.clone()),
            TextCriteria::Assert(assertions) => assertions,
        };
        let mut all = Vec::with_capacity(assertions.len());
        for (at, assertion) in assertions.iter().enumerate() {
            let path: Vec<_> = place.path.iter().copied().chain([Step::Index(at)]).collect();
            let unfit = |path: &[Step<'static>]| CriteriaProblem {
                path: path.to_vec(),
                code: "bad-assertion",
                message: format!("`{}` is not about a text alone", assertion.kind),
                help: Some(
                    "outputs and files are held against texts, patterns and numbers".to_owned(),
                ),
            };
            if asks_others(assertion) {
                problems.push(unfit(&path));
                continue;
            }
            match assertion::compile(assertion, Place { path: &path, ..place }, compiler, problems)
            {
                Some(it) if !it.is_about_text() => problems.push(unfit(&path)),
                it => all.extend(it),
            }
        }
        Self::All(all)
    }

    fn score_names(&self, what: &str) -> Vec<Cow<'static, str>> {
        match self {
            Self::Is(_) => vec![what.to_owned().into()],
            Self::All(all) => all.iter().map(|it| score_name(what, it)).collect(),
        }
    }

    /// Why a text is not as it should be; `what` it is.
    fn differs(&self, what: &str, text: &Stream, reply: &Reply<'_, '_>) -> Result<(), String> {
        match self {
            Self::Is(expected) => is(expected, what, text),
            Self::All(all) => all.iter().try_for_each(|it| holds(it, what, text, reply)),
        }
    }
}

/// Whether an assertion asks anybody.
fn asks_others(assertion: &Assertion) -> bool {
    assertion.kind.test.asks() != Asks::Nobody || assertion.members.iter().any(asks_others)
}

/// What the score of an assertion about a text is reported under.
fn score_name(what: &str, assertion: &CompiledAssertion) -> Cow<'static, str> {
    match assertion.is_named() {
        true => assertion.name(),
        false => format!("{what} {}", assertion.name()).into(),
    }
}

/// What came of a command in each world.
#[derive(Clone, Copy)]
struct InWorlds<'e> {
    worlds: &'e [ExecutedIn],
}

impl InWorlds<'_> {
    /// A score that passes if nothing is wrong in any world.
    fn score(
        self,
        kind: &'static str,
        name: impl Into<Cow<'static, str>>,
        judge: impl Fn(&ExecutedIn) -> Result<(), String>,
    ) -> Score {
        let wrong = self.worlds.iter().find_map(|it| Some((it, judge(it).err()?)));
        let reason = wrong.map(|(world, why)| match self.worlds {
            [_] => why,
            _ => format!("{why} (in the world `{}`)", world.world),
        });
        Score { name: name.into(), ..Score::new(kind, reason) }
    }

    /// The scores of a text: one, or one for each assertion about it.
    fn texts(
        self,
        what: &'static str,
        expected: &ExpectedText,
        reply: &Reply<'_, '_>,
        text: impl Fn(&ExecutedIn) -> &Stream,
    ) -> Vec<Score> {
        match expected {
            ExpectedText::Is(expected) => {
                let judge =
                    |it: &ExecutedIn| untouched(it).and_then(|()| is(expected, what, text(it)));
                vec![self.score(what, what, judge)]
            }
            ExpectedText::All(all) => {
                let score = |it: &CompiledAssertion| {
                    let name = score_name(what, it);
                    let judge = |world: &ExecutedIn| {
                        untouched(world).and_then(|()| holds(it, what, text(world), reply))
                    };
                    let score = self.score(what, name, judge);
                    Score { weight: it.weight(), ..score }
                };
                all.iter().map(score).collect()
            }
        }
    }
}

/// Whether a command ended as it should.
fn exit(world: &ExecutedIn, codes: &[u8]) -> Result<(), String> {
    untouched(world)?;
    let code = match world.end {
        Ended::Exit(code) => Some(code),
        // As shells tell it.
        Ended::Signal(signal) => Some(128 + signal),
        Ended::TimedOut | Ended::OutOfMemory => None,
    };
    if codes.iter().any(|it| Some(i32::from(*it)) == code) {
        return Ok(());
    }
    let codes: Vec<String> = codes.iter().map(ToString::to_string).collect();
    let expected = match world.end {
        Ended::Exit(_) => codes.join(" or "),
        Ended::Signal(_) | Ended::TimedOut | Ended::OutOfMemory => {
            format!("exit code {}", codes.join(" or "))
        }
    };
    let complaint = world.stderr.text.lines().find(|it| !it.trim().is_empty());
    let complaint = complaint.map(|it| format!(": {}", excerpt(it.trim(), 0)));
    Err(format!("{}, expected {expected}{}", world.end, complaint.unwrap_or_default()))
}

/// Whether a command ended by itself.
fn has_ended(world: &ExecutedIn) -> Result<(), String> {
    untouched(world)?;
    match world.end {
        Ended::Exit(_) | Ended::Signal(_) => Ok(()),
        Ended::TimedOut | Ended::OutOfMemory => Err(format!("{}, expected it to end", world.end)),
    }
}

/// Whether what a command says can be believed.
fn untouched(world: &ExecutedIn) -> Result<(), String> {
    match &world.forged {
        None => Ok(()),
        Some(path) => {
            Err(format!("it proves nothing: `{path}` was changed, on which programs depend"))
        }
    }
}

/// Whether a text is the expected one.
fn is(expected: &str, what: &str, text: &Stream) -> Result<(), String> {
    let (expected, found) = (without_line_ends(expected), without_line_ends(&text.text));
    if text.is_cut {
        return Err(format!("{what} has {} bytes, more than are compared", text.bytes));
    }
    match expected == found {
        true => Ok(()),
        false => Err(format!("{what}: {}", text_difference(&[expected], found))),
    }
}

/// A text without the line ends at its end.
fn without_line_ends(text: &str) -> &str {
    text.trim_end_matches(['\r', '\n'])
}

/// Whether an assertion holds of a text.
fn holds(
    assertion: &CompiledAssertion,
    what: &str,
    text: &Stream,
    reply: &Reply<'_, '_>,
) -> Result<(), String> {
    // What comes behind the cut could be what is asked for, or what may not be there.
    let cut = || format!("{what} has {} bytes, more than are looked at", text.bytes);
    if text.is_cut && !assertion.holds_of_more() {
        return Err(cut());
    }
    // What an assertion takes out of a text is of no use to anybody here.
    let score =
        assertion.score(&reply.with_text(without_line_ends(&text.text)), &mut Told::default());
    match score.passed {
        true => Ok(()),
        false if text.is_cut => Err(cut()),
        false => Err(match score.reason {
            Some(reason) => format!("{what}: {reason}"),
            None => format!("{what}: `{}` does not hold", score.name),
        }),
    }
}
