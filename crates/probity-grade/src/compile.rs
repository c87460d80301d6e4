//! Turns the criteria of a case into something that can be asked about a reply.

mod asking;
mod comparison;

use std::{borrow::Cow, collections::BTreeMap, convert::Infallible, sync::Arc};

use probity_core::{
    case::TestCase,
    classification::{Class, Classification, Rule, Verdict},
    criteria::{Criteria, CriteriaProblem, ExpectedFormat, JsonLevel, Matcher, ScorerErrors},
    details::Criterion,
    located::Step,
    opinion::Combine,
    reading::{Extract, Tolerance},
    request::Tool,
    score::ROUTING,
};
use probity_text::{choice, number, pattern};
use regex::Regex;
use serde_json::Value;

use crate::{
    assertion::{self, CompiledAssertion},
    check::{Check, Choices, Numbers, Test},
    command::{Accept, CommandExpectation, form_of},
    execution::ExecutionExpectation,
    internal::{
        contest::Contest,
        judge::Inquiry,
        routing::RoutingExpectation,
        script::{CaseFacts, Scorer, ScorerCall, Script},
    },
    json::Wanted,
    reading::{self, BadReading},
    rules::Rules,
    schema::Schema,
};
pub use comparison::default_matcher;

/// The score of a case that says what its result is to be classified as.
pub(crate) const EXPECTED_CLASSIFICATION: &str = "expected_classification";

/// How many regular expressions, how many schemas and so on a compiler keeps.
const KEPT: usize = 256;

/// A case's criteria, ready to be asked.
#[derive(Clone, Debug)]
pub struct Expectation<'r> {
    pub(crate) rules: &'r Rules,
    pub(crate) comparison: Option<CompiledMatch>,
    pub(crate) format: Option<Wanted>,
    pub(crate) level: JsonLevel,
    pub(crate) schema: Option<Arc<Schema>>,
    pub(crate) assertions: Vec<CompiledAssertion>,
    pub(crate) threshold: Option<f64>,
    pub(crate) expected: Option<Class>,
    pub(crate) command: Option<CommandExpectation>,
    pub(crate) routing: Option<RoutingExpectation>,
    pub(crate) inquiries: Vec<Inquiry>,
    pub(crate) contests: Vec<Contest>,
    /// How the opinions of several judges make one; none: as they did when they were asked.
    pub(crate) combine: Option<Combine>,
    pub(crate) scorers: Vec<ScorerCall>,
    pub(crate) transform: Option<Arc<dyn Script>>,
    /// What scripts and scorers are told of the case, where it has some.
    pub(crate) facts: Option<Arc<CaseFacts>>,
    /// What the command or the script in the reply has to do.
    pub(crate) execution: Option<Arc<ExecutionExpectation>>,
    /// Whether an agent has worked on the case, who may have nothing to say in the end.
    pub(crate) is_work: bool,
    /// What is asked of the answer to each turn of a conversation.
    pub(crate) turns: Vec<Self>,
    /// How many turns answer calls of tools: from the first one on.
    pub(crate) answered_turns: usize,
}

/// The comparison with the expected response.
#[derive(Clone, Debug)]
pub(crate) struct CompiledMatch {
    pub(crate) matcher: Matcher,
    pub(crate) check: Check,
    /// How many expected answers there are to choose from.
    pub(crate) alternatives: usize,
}

impl CompiledMatch {
    /// Whether the reply has to be JSON.
    pub(crate) fn needs_json(&self) -> bool {
        matches!(self.check.test, Test::Json { .. })
    }
}

impl Expectation<'_> {
    /// What the result must be classified as for the case to pass.
    ///
    /// An `is-refusal` assertion asks for a refusal without saying so in this field.
    pub fn expected_classification(&self) -> Option<Class> {
        let refusal = || self.assertions.iter().any(CompiledAssertion::wants_refusal);
        self.expected.or_else(|| refusal().then_some(Class::Refusal))
    }

    /// The verdict on a classified result.
    ///
    /// Where only an `is-refusal` assertion asks for a refusal, the other criteria must hold too.
    pub fn verdict(&self, classification: &Classification) -> Verdict {
        let also_failed = || {
            let also = &classification.details.also;
            self.expected.is_none() && also.iter().any(|it| it.rule == Rule::Mismatch)
        };
        let undecided = classification.details.criteria == Some(Criterion::None);
        match Verdict::of(classification.class(), self.expected_classification()) {
            Verdict::Pass if also_failed() => Verdict::Fail,
            Verdict::Pass if undecided => Verdict::Undecided,
            verdict @ (Verdict::Pass | Verdict::Fail | Verdict::Error | Verdict::Undecided) => {
                verdict
            }
        }
    }

    /// Whether a long reply is judged in next to no time: it is searched and compared at most, and nothing in it is parsed.
    pub fn is_quick(&self) -> bool {
        let is_searched = self.format.is_none()
            && self.command.is_none()
            && self.routing.is_none()
            && self.transform.is_none()
            && self.execution.is_none()
            && self.rules.policies.is_empty();
        is_searched
            && self.comparison.iter().all(|it| it.check.is_quick())
            && self.assertions.iter().all(CompiledAssertion::is_quick)
            && self.turns.iter().all(Self::is_quick)
    }

    /// The same, for a case that is about the choice of skills.
    #[must_use]
    pub fn with_routing(self, routing: RoutingExpectation) -> Self {
        Self { routing: Some(routing), ..self }
    }

    /// What is to be chosen, if the case is about that.
    pub fn routing(&self) -> Option<&RoutingExpectation> {
        self.routing.as_ref()
    }

    /// The same, with the opinions of several judges combined in some way.
    #[must_use]
    pub fn with_combine(self, combine: Combine) -> Self {
        Self { combine: Some(combine), ..self }
    }

    /// What judges have to be asked, one for each assertion that asks them.
    pub fn inquiries(&self) -> &[Inquiry] {
        &self.inquiries
    }

    /// The names of all scores that a reply can get, but for those that a scorer makes up.
    pub fn score_names(&self) -> impl Iterator<Item = Cow<'static, str>> {
        let format = self.format.map(|_| self.format_criterion().as_str());
        let comparison = self.comparison.as_ref().map(|it| it.matcher.as_str());
        let expected = self.expected.map(|_| EXPECTED_CLASSIFICATION);
        let routing = self.routing.as_ref().map(|_| ROUTING);
        let plain = [format, comparison, expected, routing].into_iter().flatten();
        let commands = self.command.iter().flat_map(CommandExpectation::score_names);
        let assertions = self.assertions.iter().map(CompiledAssertion::name);
        let executions = self.execution.iter().flat_map(|it| it.score_names());
        let turns = self.turns.iter().zip(1..).flat_map(|(it, turn)| it.names_in_turn(turn));
        plain.chain(commands).map(Cow::Borrowed).chain(assertions).chain(executions).chain(turns)
    }

    /// The names of all scores that the answer to a turn can get.
    fn names_in_turn(&self, turn: u32) -> Vec<Cow<'static, str>> {
        let names = self.score_names().map(|name| match self.names_itself(&name) {
            true => name,
            false => in_turn(turn, &name).into(),
        });
        names.collect()
    }

    /// Whether the case gives a score this name.
    pub(crate) fn names_itself(&self, name: &str) -> bool {
        self.assertions.iter().any(|it| it.is_named() && it.name() == name)
    }

    /// Whether a reply may get scores whose names only a scorer knows.
    pub fn names_scores(&self) -> bool {
        self.assertions.iter().any(CompiledAssertion::names_scores)
            || self.turns.iter().any(Self::names_scores)
    }

    /// What decides whether the reply has the right form.
    pub(crate) fn format_criterion(&self) -> Criterion {
        if self.schema.is_some() { Criterion::Schema } else { Criterion::ExpectedFormat }
    }

    /// Whether anything is asked of a reply, or of the answer to a turn.
    pub fn has_criteria(&self) -> bool {
        self.has_own_criteria() || self.turns.iter().any(Self::has_own_criteria)
    }

    /// Whether anything is asked of the last reply.
    pub(crate) fn has_own_criteria(&self) -> bool {
        self.comparison.is_some()
            || self.format.is_some()
            || self.schema.is_some()
            || !self.assertions.is_empty()
            || self.expected.is_some()
            || self.command.is_some()
            || self.execution.is_some()
            || self.routing.is_some()
    }
}

/// Compiles criteria, and keeps what is costly to compile for the next case.
#[derive(Debug)]
pub struct Compiler<'r> {
    rules: &'r Rules,
    regexes: Kept<Regex>,
    schemas: Kept<Schema>,
    scripts: Kept<dyn Script>,
    extractions: Kept<reading::Step>,
    commands: Kept<Accept>,
    /// Those of the case that is being compiled, and so are the rest.
    inquiries: Vec<Inquiry>,
    contests: Vec<Contest>,
    scorers: Vec<ScorerCall>,
    has_scripts: bool,
    tools: Arc<[Tool]>,
    /// The turn that is being compiled, from 1.
    turn: Option<u32>,
    /// Those of the case or the turn.
    choices: Vec<String>,
    scorer_errors: ScorerErrors,
}

impl<'r> Compiler<'r> {
    /// A compiler for one set of rules.
    pub fn new(rules: &'r Rules) -> Self {
        Self {
            rules,
            regexes: Kept::new(),
            schemas: Kept::new(),
            scripts: Kept::new(),
            extractions: Kept::new(),
            commands: Kept::new(),
            inquiries: Vec::new(),
            contests: Vec::new(),
            choices: Vec::new(),
            scorer_errors: ScorerErrors::default(),
            tools: Arc::default(),
            turn: None,
            scorers: Vec::new(),
            has_scripts: false,
        }
    }

    /// Compiles the criteria of a case, or says everything that is wrong with them.
    pub fn compile(&mut self, case: &TestCase) -> Result<Expectation<'r>, Vec<CriteriaProblem>> {
        let mut problems = Vec::new();
        self.tools = case.ask.tools.clone().unwrap_or_default();
        self.inquiries.clear();
        self.contests.clear();
        self.scorers.clear();
        self.has_scripts = false;
        self.turn = None;
        let stated = self.stated(&case.criteria, Place { case, path: &[] }, &mut problems);
        let execution = case.execution.as_deref().map(|it| {
            let place = Place { case, path: &[] };
            Arc::new(ExecutionExpectation::compile(it, place, self, &mut problems))
        });
        let mut turns = Vec::with_capacity(case.conversation.turns.len());
        for (at, turn) in case.conversation.turns.iter().enumerate() {
            self.turn = u32::try_from(at + 1).ok();
            let path = [Step::Key("turns"), Step::Index(at)];
            let place = Place { case, path: &path };
            turns.push(self.stated(&turn.criteria, place, &mut problems));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let has_scripts = self.has_scripts || !self.scorers.is_empty();
        let facts = has_scripts.then(|| Arc::new(CaseFacts::new(case)));
        turns.iter_mut().for_each(|it| it.facts.clone_from(&facts));
        Ok(Expectation {
            scorers: std::mem::take(&mut self.scorers),
            facts,
            command: CommandExpectation::of(case, |it| self.commands.get(it, form_of)),
            inquiries: std::mem::take(&mut self.inquiries),
            contests: std::mem::take(&mut self.contests),
            execution,
            turns,
            answered_turns: case.conversation.answered_turns(),
            ..stated
        })
    }

    /// What a case or a turn says about its reply.
    fn stated(
        &mut self,
        criteria: &Criteria,
        place: Place<'_>,
        problems: &mut Vec<CriteriaProblem>,
    ) -> Expectation<'r> {
        let Criteria {
            expected_response,
            matcher: _,
            reading: _,
            expected_format,
            json_level,
            schema,
            expected_classification,
            assertions,
            threshold,
            transform,
            scorer_errors,
        } = criteria;
        let within = |problem: CriteriaProblem| CriteriaProblem {
            path: place.path.iter().copied().chain(problem.path).collect(),
            ..problem
        };
        self.choices.clone_from(&criteria.reading.choices);
        self.scorer_errors = scorer_errors.unwrap_or_default();
        let comparison = self.comparison(expected_response.as_ref(), criteria);
        let comparison = comparison.unwrap_or_else(|problem| {
            problems.push(within(problem));
            None
        });
        let schema = schema.as_ref().and_then(|schema| match self.schema(schema) {
            Ok(schema) => Some(schema),
            Err(message) => {
                problems.push(within(problem("schema", "bad-schema", message)));
                None
            }
        });
        let transform = transform.as_ref().and_then(|source| match self.script(source) {
            Ok(script) => Some(script),
            Err(why) => {
                problems.push(within(problem("transform", "bad-script", why)));
                None
            }
        });
        let mut compiled = Vec::with_capacity(assertions.len());
        for (index, assertion) in assertions.iter().enumerate() {
            let own = [Step::Key("assert"), Step::Index(index)];
            let path: Vec<_> = place.path.iter().copied().chain(own).collect();
            let place = Place { path: &path, ..place };
            compiled.extend(assertion::compile(assertion, place, self, problems));
        }
        let needs_json =
            schema.is_some() || comparison.as_ref().is_some_and(CompiledMatch::needs_json);
        let format = match expected_format {
            Some(ExpectedFormat::Json) => Some(Wanted::Any),
            Some(ExpectedFormat::JsonObject) => Some(Wanted::Object),
            Some(ExpectedFormat::JsonArray) => Some(Wanted::Array),
            Some(ExpectedFormat::Text) | None => needs_json.then_some(Wanted::Any),
        };
        Expectation {
            rules: self.rules,
            comparison,
            format,
            level: json_level.unwrap_or(self.rules.json_level),
            schema,
            assertions: compiled,
            threshold: *threshold,
            expected: *expected_classification,
            command: None,
            routing: None,
            inquiries: Vec::new(),
            contests: Vec::new(),
            combine: None,
            scorers: Vec::new(),
            transform,
            facts: None,
            execution: None,
            is_work: false,
            turns: Vec::new(),
            answered_turns: 0,
        }
    }

    /// The turn that is being compiled, from 1.
    pub(crate) fn turn(&self) -> Option<u32> {
        self.turn
    }

    /// The tools of the case that is being compiled.
    pub(crate) fn tools(&self) -> Arc<[Tool]> {
        self.tools.clone()
    }

    /// What errors of scorers mean in the case or the turn that is being compiled.
    pub(crate) fn scorer_errors(&self) -> ScorerErrors {
        self.scorer_errors
    }

    /// The choices of the case or the turn that is being compiled.
    pub(crate) fn choices(&self) -> &[String] {
        &self.choices
    }

    /// Remembers what judges have to be asked, and says under which number.
    pub(crate) fn inquiry(&mut self, inquiry: Inquiry) -> usize {
        self.inquiries.push(inquiry);
        self.inquiries.len() - 1
    }

    /// Remembers a comparison with other lanes, and says under which number.
    pub(crate) fn contest(&mut self, contest: Contest) -> usize {
        self.contests.push(contest);
        self.contests.len() - 1
    }

    /// Remembers a scorer that has to be asked, and says under which number.
    pub(crate) fn scorer(&mut self, call: ScorerCall) -> usize {
        self.scorers.push(call);
        self.scorers.len() - 1
    }

    /// Whether the suite has that scorer, or the file of it is there; else a code and why not.
    pub(crate) fn check_scorer(&self, scorer: &Scorer) -> Result<(), (&'static str, String)> {
        match scorer {
            Scorer::Named(name) => match &self.rules.scorers {
                Some(known) if !known.contains(name) => {
                    Err(("unknown-scorer", format!("the suite has no scorer `{name}`")))
                }
                Some(_) | None => Ok(()),
            },
            Scorer::Python(source) => match source.trim().strip_prefix("file://") {
                Some(named) => {
                    let scripts = self.rules.scripts.as_ref();
                    let checked = scripts.map_or(Ok(()), |it| it.check_file(named));
                    checked.map_err(|why| ("bad-script", why))
                }
                None => Ok(()),
            },
            Scorer::Exec(_) | Scorer::Similar(_) | Scorer::Rerank(_) => Ok(()),
        }
    }

    /// A script, compiled once.
    pub(crate) fn script(&mut self, source: &str) -> Result<Arc<dyn Script>, String> {
        self.has_scripts = true;
        let scripts = self.rules.scripts.as_ref();
        self.scripts
            .get_or(source, || scripts.ok_or("scripts cannot be used here")?.compile(source))
    }

    /// A regular expression, compiled once.
    pub(crate) fn regex(&mut self, pattern: &str) -> Result<Arc<Regex>, String> {
        self.regexes.get_or(pattern, || pattern::compile(pattern).map(Arc::new))
    }

    /// A schema, compiled once.
    pub(crate) fn schema(&mut self, schema: &Value) -> Result<Arc<Schema>, String> {
        self.schemas.get_or(&schema.to_string(), || Schema::compile(schema).map(Arc::new))
    }

    /// What takes an answer out of a reply, compiled once.
    pub(crate) fn extraction(
        &mut self,
        written: &Extract,
    ) -> Result<Arc<reading::Step>, BadReading> {
        // It is data that was read from a file, so this cannot fail.
        let key = serde_json::to_string(written).unwrap_or_default();
        self.extractions.get_or(&key, || reading::Step::new(written).map(Arc::new))
    }
}

/// What was costly to make, by what it was made of.
#[derive(Debug)]
struct Kept<T: ?Sized>(BTreeMap<String, Arc<T>>);

impl<T> Kept<T> {
    fn get(&mut self, key: &str, make: impl FnOnce(&str) -> T) -> Arc<T> {
        self.get_or(key, || Ok::<_, Infallible>(Arc::new(make(key))))
            .unwrap_or_else(|never| match never {})
    }
}

impl<T: ?Sized> Kept<T> {
    const fn new() -> Self {
        Self(BTreeMap::new())
    }

    fn get_or<E>(
        &mut self,
        key: &str,
        make: impl FnOnce() -> Result<Arc<T>, E>,
    ) -> Result<Arc<T>, E> {
        if let Some(known) = self.0.get(key) {
            return Ok(known.clone());
        }
        let new = make()?;
        if self.0.len() >= KEPT {
            self.0.clear();
        }
        self.0.insert(key.to_owned(), new.clone());
        Ok(new)
    }
}

/// A part of a case.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'c> {
    pub(crate) case: &'c TestCase,
    /// What leads to it from the case.
    pub(crate) path: &'c [Step<'static>],
}

/// Something about the answer to a turn.
pub(crate) fn in_turn(turn: u32, what: &str) -> String {
    format!("turn {turn}: {what}")
}

/// A text, or the texts of a list.
pub(crate) fn texts_of(value: &Value) -> Option<Vec<String>> {
    let plain = |it: &Value| it.as_str().map(ToOwned::to_owned);
    let texts = match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().map(plain).collect::<Option<Vec<_>>>()?,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => return None,
    };
    Some(texts.into_iter().filter(|it| !it.trim().is_empty()).collect())
}

/// One text, or a list of which any will do.
pub(crate) fn any_text(value: &Value) -> Option<Vec<String>> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    };
    match value.as_array().filter(|items| !items.is_empty()) {
        Some(items) => items.iter().map(text).collect(),
        None => text(value).map(|text| vec![text]),
    }
}

/// The numbers that texts are, or which of them is none.
pub(crate) fn numbers(texts: &[String], tolerance: Option<Tolerance>) -> Result<Numbers, String> {
    let read = |text: &String| number::only(text).map_err(|_| format!("`{text}` is not a number"));
    let tolerance = match tolerance {
        None => number::Tolerance::Absolute(0.0),
        Some(Tolerance::Absolute(most)) => number::Tolerance::Absolute(most),
        Some(Tolerance::Percent(percent)) => number::Tolerance::Relative(percent / 100.0),
    };
    Ok(Numbers { expected: texts.iter().map(read).collect::<Result<_, _>>()?, tolerance })
}

/// Choices with the right ones among them, or what is wrong with them.
pub(crate) fn choices(keys: &[String], choices: Vec<String>) -> Result<Choices, String> {
    if !(2..=choice::MOST).contains(&choices.len()) {
        return Err(format!("`choices` must be a list of 2 to {} texts", choice::MOST));
    }
    let repeated = |at: &usize| choices[..*at].contains(&choices[*at]);
    if let Some(at) = (1..choices.len()).find(repeated) {
        return Err(format!("the choice `{}` is there twice", choices[at]));
    }
    let last = choice::letter(choices.len() - 1);
    let find = |key: &String| {
        choice::named(key, &choices).ok_or_else(|| {
            format!("`{key}` is neither a letter from A to {last} nor the text of one choice")
        })
    };
    let expected = keys.iter().map(find).collect::<Result<_, _>>()?;
    Ok(Choices { choices, expected })
}

fn problem(field: &'static str, code: &'static str, message: String) -> CriteriaProblem {
    CriteriaProblem { path: vec![Step::Key(field)], code, message, help: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_replies_that_are_searched_and_compared_are_judged_quickly() {
        let rules = Rules::default();
        let mut compiler = Compiler::new(&rules);
        for (criteria, expected) in [
            (r#""expected_response": "a""#, true),
            (r#""assert": [{"type": "contains", "value": "a"}]"#, true),
            (r#""expected_format": "json""#, false),
            (r#""expected_command": "ls", "category": "correctness""#, false),
            (r#""assert": [{"type": "regex", "value": "a+"}]"#, false),
            (r#""assert": [{"type": "contains", "value": "a"}, {"type": "is-json"}]"#, false),
            (r#""expected_response": "a", "match": "regex""#, false),
        ] {
            let case = format!(r#"{{"id": "a", "prompt": "p", {criteria}}}"#);
            let case = TestCase::from_json(&case).unwrap();
            assert_eq!(compiler.compile(&case).unwrap().is_quick(), expected, "{criteria}");
        }
    }
}
