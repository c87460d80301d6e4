//! Turns the criteria of a case into something that can be asked about a reply.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use probity_core::{
    case::TestCase,
    classification::{Class, Classification, Rule, Verdict},
    criteria::{Criteria, CriteriaProblem, ExpectedFormat, JsonLevel, Matcher},
    details::Criterion,
    json::Limits,
    located::Step,
    opinion::Combine,
    reading::{Reading, Tolerance},
    run_result::RunResult,
    score::ROUTING,
};
use probity_text::{choice, number, pattern};
use regex::Regex;
use serde_json::Value;

use crate::{
    assertion::{self, CompiledAssertion},
    check::{Check, Choices, Ends, Letters, Need, Numbers, Test},
    command::{Accepted, CommandExpectation},
    difference::Extra,
    json::Wanted,
    judge::{Context, Inquiry, Shown},
    reading::Reader,
    reply::Reply,
    routing::RoutingExpectation,
    rules::Rules,
    schema::Schema,
    script::{self, CaseFacts, Scorer, ScorerCall, ScorerInput, Script},
};

/// The score of a case that says what its result is to be classified as.
pub(crate) const EXPECTED_CLASSIFICATION: &str = "expected_classification";

/// How many regular expressions, and how many schemas, a compiler keeps.
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
    /// How the opinions of several judges make one; none: as they did when they were asked.
    pub(crate) combine: Option<Combine>,
    pub(crate) scorers: Vec<ScorerCall>,
    pub(crate) transform: Option<Arc<dyn Script>>,
    /// What scripts and scorers are told of the case, where it has some.
    pub(crate) facts: Option<Arc<CaseFacts>>,
    /// Whether only a sandbox could say if the reply is right.
    pub(crate) needs_sandbox: bool,
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

    /// What a judge is shown of a reply for one of these, or why it cannot be asked.
    pub fn shown(&self, inquiry: &Inquiry, result: &RunResult<'_>) -> Result<Shown, String> {
        let text = result.raw_response.ok_or("there is no reply")?;
        let facts = self.facts.as_deref();
        let reply = Reply::new(text, result, self.rules).of(facts);
        let transform = |script: &Option<Arc<dyn Script>>, reply: &Reply<'_, '_>| {
            let found = script.as_ref().zip(facts);
            found.map(|(script, facts)| script::transform(&**script, facts, reply)).transpose()
        };
        let of_case = transform(&self.transform, &reply)?;
        let of_case_text = of_case.as_ref().map(script::text_of);
        let reply = match (&of_case, &of_case_text) {
            (Some(made), Some(text)) => reply.made_into(made, text),
            (_, _) => reply,
        };
        let answer = match transform(&inquiry.transform, &reply)? {
            Some(made) => script::text_of(&made),
            None => reply.text.to_owned(),
        };
        let context = match (&inquiry.context, facts) {
            (Context::Given(passages), _) => passages.clone(),
            (Context::Made(script), Some(facts)) => {
                let made = script::transform(&**script, facts, &reply)?;
                texts_of(&made)
                    .ok_or("`context_transform` made neither a text nor a list of texts")?
            }
            (Context::Made(_), None) | (Context::None, _) => Vec::new(),
        };
        let passages = inquiry.form.passages(&context);
        if passages.is_empty() && inquiry.form.needs_context() {
            return Err("the context is empty".to_owned());
        }
        let question = inquiry.query.as_deref().or(result.prompt).unwrap_or_default().to_owned();
        Ok(Shown { question, answer, passages })
    }

    /// Those who have to be asked, one for each assertion that needs one.
    pub fn scorers(&self) -> &[ScorerCall] {
        &self.scorers
    }

    /// What each of these is given, or why it cannot be asked.
    pub fn scorer_inputs(&self, result: &RunResult<'_>) -> Vec<Result<ScorerInput, String>> {
        let (Some(facts), Some(text)) = (self.facts.as_deref(), result.raw_response) else {
            return Vec::new();
        };
        let reply = Reply::new(text, result, self.rules).of(Some(facts));
        let made = self.transform.as_ref().map(|it| script::transform(&**it, facts, &reply));
        let input = |call: &ScorerCall| {
            let made = made.clone().transpose()?;
            let made_text = made.as_ref().map(script::text_of);
            let reply = match (&made, &made_text) {
                (Some(made), Some(text)) => &reply.made_into(made, text),
                (_, _) => &reply,
            };
            let output = match &call.transform {
                Some(script) => script::transform(&**script, facts, reply)?,
                None => reply.output().into_owned(),
            };
            Ok(ScorerInput { output, context: facts.context(reply, call.config.as_ref()) })
        };
        self.scorers.iter().map(input).collect()
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
        plain.chain(commands).map(Cow::Borrowed).chain(assertions)
    }

    /// Whether a reply may get scores whose names only a scorer knows.
    pub fn names_scores(&self) -> bool {
        self.assertions.iter().any(CompiledAssertion::names_scores)
    }

    /// What decides whether the reply has the right form.
    pub(crate) fn format_criterion(&self) -> Criterion {
        if self.schema.is_some() { Criterion::Schema } else { Criterion::ExpectedFormat }
    }

    /// Whether anything is asked of a reply.
    pub fn has_criteria(&self) -> bool {
        self.comparison.is_some()
            || self.format.is_some()
            || self.schema.is_some()
            || !self.assertions.is_empty()
            || self.expected.is_some()
            || self.command.is_some()
            || self.routing.is_some()
    }
}

/// Compiles criteria, and keeps what is costly to compile for the next case.
#[derive(Debug)]
pub struct Compiler<'r> {
    rules: &'r Rules,
    regexes: BTreeMap<String, Arc<Regex>>,
    schemas: BTreeMap<String, Arc<Schema>>,
    scripts: BTreeMap<String, Arc<dyn Script>>,
    /// Those of the case that is being compiled, and so are the rest.
    inquiries: Vec<Inquiry>,
    /// The variables `context` and `query` of the case.
    vars: (Option<Value>, Option<String>),
    choices: Vec<String>,
    scorers: Vec<ScorerCall>,
    has_scripts: bool,
}

impl<'r> Compiler<'r> {
    /// A compiler for one set of rules.
    pub fn new(rules: &'r Rules) -> Self {
        Self {
            rules,
            regexes: BTreeMap::new(),
            schemas: BTreeMap::new(),
            scripts: BTreeMap::new(),
            inquiries: Vec::new(),
            vars: (None, None),
            choices: Vec::new(),
            scorers: Vec::new(),
            has_scripts: false,
        }
    }

    /// Compiles the criteria of a case, or says everything that is wrong with them.
    pub fn compile(&mut self, case: &TestCase) -> Result<Expectation<'r>, Vec<CriteriaProblem>> {
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
        } = &case.criteria;
        let mut problems = Vec::new();
        self.choices.clone_from(&case.criteria.reading.choices);
        let comparison = self.comparison(expected_response.as_ref(), &case.criteria);
        let comparison = comparison.unwrap_or_else(|problem| {
            problems.push(problem);
            None
        });
        let schema = schema.as_ref().and_then(|schema| match self.schema(schema) {
            Ok(schema) => Some(schema),
            Err(message) => {
                problems.push(problem("schema", "bad-schema", message));
                None
            }
        });
        self.inquiries.clear();
        let query = case.prompt_vars.get("query").and_then(Value::as_str);
        self.vars = (case.prompt_vars.get("context").cloned(), query.map(ToOwned::to_owned));
        self.scorers.clear();
        self.has_scripts = false;
        let transform = transform.as_ref().and_then(|source| match self.script(source) {
            Ok(script) => Some(script),
            Err(why) => {
                problems.push(problem("transform", "bad-script", why));
                None
            }
        });
        let mut compiled = Vec::with_capacity(assertions.len());
        for (index, assertion) in assertions.iter().enumerate() {
            let path = [Step::Key("assert"), Step::Index(index)];
            compiled.extend(assertion::compile(assertion, &path, self, &mut problems));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let needs_json =
            schema.is_some() || comparison.as_ref().is_some_and(CompiledMatch::needs_json);
        let format = match expected_format {
            Some(ExpectedFormat::Json) => Some(Wanted::Any),
            Some(ExpectedFormat::JsonObject) => Some(Wanted::Object),
            Some(ExpectedFormat::JsonArray) => Some(Wanted::Array),
            Some(ExpectedFormat::Text) | None => needs_json.then_some(Wanted::Any),
        };
        Ok(Expectation {
            rules: self.rules,
            comparison,
            format,
            level: json_level.unwrap_or(self.rules.json_level),
            schema,
            assertions: compiled,
            threshold: *threshold,
            expected: *expected_classification,
            command: CommandExpectation::of(case),
            routing: None,
            inquiries: std::mem::take(&mut self.inquiries),
            combine: None,
            facts: (self.has_scripts || !self.scorers.is_empty())
                .then(|| Arc::new(CaseFacts::new(case))),
            scorers: std::mem::take(&mut self.scorers),
            transform,
            needs_sandbox: case.execution.is_some(),
        })
    }

    fn comparison(
        &mut self,
        expected: Option<&Value>,
        criteria: &Criteria,
    ) -> Result<Option<CompiledMatch>, CriteriaProblem> {
        let Criteria { matcher, reading, expected_format: format, .. } = criteria;
        let Some(expected) = expected else {
            return match (matcher, unread(reading)) {
                (None, None) => Ok(None),
                (Some(matcher), _) => {
                    let message = format!("`{}` needs an `expected_response`", matcher.as_str());
                    Err(problem("match", "missing-field", message))
                }
                (None, Some(field)) => {
                    let message = format!(
                        "`{field}` of a case is for its `expected_response`, and there is none; an \
                         assertion has its own"
                    );
                    Err(problem(field, "missing-field", message))
                }
            };
        };
        let matcher = matcher.unwrap_or_else(|| default_matcher(expected, *format, reading));
        if reading.tolerance.is_some() && matcher != Matcher::Number {
            let message = format!("`tolerance` goes with `number`, not with `{matcher}`");
            return Err(problem("tolerance", "bad-criterion", message));
        }
        let texts = || texts(expected, matcher);
        let (alternatives, test) = match matcher {
            Matcher::Exact | Matcher::Trimmed | Matcher::AnyOf => {
                if matcher == Matcher::AnyOf && !expected.is_array() {
                    let message = "`any_of` needs a list".to_owned();
                    return Err(problem("expected_response", "bad-criterion", message));
                }
                let any = texts()?;
                let ends = if matcher == Matcher::Exact { Ends::Kept } else { Ends::Trimmed };
                (any.len(), Test::Equals { any, ends })
            }
            Matcher::Contains => {
                let needles = texts()?;
                let letters = Letters::AsTheyAre;
                (needles.len(), Test::Contains { needles, need: Need::Any, letters })
            }
            Matcher::Icontains => {
                let needles: Vec<String> = texts()?.iter().map(|it| it.to_lowercase()).collect();
                let letters = Letters::Folded;
                (needles.len(), Test::Contains { needles, need: Need::Any, letters })
            }
            Matcher::StartsWith => {
                let starts = texts()?;
                (starts.len(), Test::StartsWith(starts))
            }
            Matcher::Regex => {
                let compiled: Result<Vec<_>, _> =
                    texts()?.iter().map(|pattern| self.regex(pattern)).collect();
                let all = compiled.map_err(|why| problem("expected_response", "bad-regex", why))?;
                (all.len(), Test::Regex(all))
            }
            Matcher::JsonEqual => {
                (1, Test::Json { expected: json_of(expected)?, extra: Extra::Differs })
            }
            Matcher::JsonSubset => {
                (1, Test::Json { expected: json_of(expected)?, extra: Extra::Allowed })
            }
            Matcher::Command => {
                let read = |text: &String| {
                    Accepted::new(text).map_err(|why| {
                        let message = format!("`{text}` is not a shell command: {why}");
                        problem("expected_response", "bad-criterion", message)
                    })
                };
                let accepted: Vec<Accepted> =
                    texts()?.iter().map(read).collect::<Result<_, _>>()?;
                (accepted.len(), Test::Command(accepted))
            }
            Matcher::Number => {
                let numbers = numbers(&texts()?, reading.tolerance);
                let bad = |why| problem("expected_response", "bad-criterion", why);
                let numbers = numbers.map_err(bad)?;
                (numbers.expected.len(), Test::Numbers(numbers))
            }
            Matcher::Choice => {
                let choices = choices(&texts()?, reading.choices.clone());
                let bad = |why| problem("expected_response", "bad-criterion", why);
                let choices = choices.map_err(bad)?;
                (choices.expected.len(), Test::Choices(choices))
            }
        };
        let check = Reader::new(reading, self).and_then(|reader| Check::new(test, reader));
        let check = check.map_err(|bad| problem(bad.field, bad.code, bad.message))?;
        Ok(Some(CompiledMatch { matcher, check, alternatives }))
    }

    /// The choices of the case that is being compiled.
    pub(crate) fn choices(&self) -> &[String] {
        &self.choices
    }

    /// The variable `context` of the case that is being compiled.
    pub(crate) fn context(&self) -> Option<&Value> {
        self.vars.0.as_ref()
    }

    /// Its variable `query`.
    pub(crate) fn query(&self) -> Option<&str> {
        self.vars.1.as_deref()
    }

    /// Remembers what judges have to be asked, and says under which number.
    pub(crate) fn inquiry(&mut self, inquiry: Inquiry) -> usize {
        self.inquiries.push(inquiry);
        self.inquiries.len() - 1
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
            Scorer::Exec(_) | Scorer::Similar(_) => Ok(()),
        }
    }

    /// A script, compiled once.
    pub(crate) fn script(&mut self, source: &str) -> Result<Arc<dyn Script>, String> {
        self.has_scripts = true;
        if let Some(script) = self.scripts.get(source) {
            return Ok(script.clone());
        }
        let scripts = self.rules.scripts.as_ref().ok_or("scripts cannot be used here")?;
        let script = scripts.compile(source)?;
        if self.scripts.len() >= KEPT {
            self.scripts.clear();
        }
        self.scripts.insert(source.to_owned(), script.clone());
        Ok(script)
    }

    /// A regular expression, compiled once.
    pub(crate) fn regex(&mut self, pattern: &str) -> Result<Arc<Regex>, String> {
        if let Some(regex) = self.regexes.get(pattern) {
            return Ok(regex.clone());
        }
        let regex = Arc::new(pattern::compile(pattern)?);
        if self.regexes.len() >= KEPT {
            self.regexes.clear();
        }
        self.regexes.insert(pattern.to_owned(), regex.clone());
        Ok(regex)
    }

    /// A schema, compiled once.
    pub(crate) fn schema(&mut self, schema: &Value) -> Result<Arc<Schema>, String> {
        let key = schema.to_string();
        if let Some(validator) = self.schemas.get(&key) {
            return Ok(validator.clone());
        }
        let validator = Arc::new(Schema::compile(schema)?);
        if self.schemas.len() >= KEPT {
            self.schemas.clear();
        }
        self.schemas.insert(key, validator.clone());
        Ok(validator)
    }
}

/// What is meant by an expected response without a matcher.
fn default_matcher(expected: &Value, format: Option<ExpectedFormat>, reading: &Reading) -> Matcher {
    if !reading.choices.is_empty() {
        return Matcher::Choice;
    }
    if reading.tolerance.is_some() {
        return Matcher::Number;
    }
    let json = !matches!(format, None | Some(ExpectedFormat::Text));
    match expected {
        Value::String(_) if !json => Matcher::Trimmed,
        Value::Array(items) if !json && items.iter().all(Value::is_string) => Matcher::AnyOf,
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => Matcher::JsonEqual,
    }
}

/// The first field about what is compared, of a case that compares nothing.
fn unread(reading: &Reading) -> Option<&'static str> {
    let Reading { extract, normalize, ignore, choices: _, tolerance } = reading;
    let stated = [
        ("extract", !extract.is_empty()),
        ("normalize", !normalize.is_empty()),
        ("ignore", !ignore.is_empty()),
        ("tolerance", tolerance.is_some()),
    ];
    stated.iter().find(|it| it.1).map(|it| it.0)
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

/// The expected texts: one, or a list of which any will do.
fn texts(expected: &Value, matcher: Matcher) -> Result<Vec<String>, CriteriaProblem> {
    any_text(expected).ok_or_else(|| {
        let message = format!("`{}` needs a string or a list of strings", matcher.as_str());
        problem("expected_response", "bad-criterion", message)
    })
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

/// Expected JSON, written as data or as a string that holds JSON.
fn json_of(expected: &Value) -> Result<Value, CriteriaProblem> {
    let Value::String(text) = expected else { return Ok(expected.clone()) };
    match probity_core::json::parse(text, &Limits::default()) {
        Ok(parsed) => Ok(parsed.value),
        Err(error) => {
            let message = format!("the expected response is not JSON: {error}");
            Err(problem("expected_response", "bad-criterion", message))
        }
    }
}

fn problem(field: &'static str, code: &'static str, message: String) -> CriteriaProblem {
    CriteriaProblem { path: vec![Step::Key(field)], code, message, help: None }
}
