//! Assertions about a reply, compiled once and asked often.

mod distance;

use std::sync::Arc;

use jsonschema::Validator;
use probity_core::{
    classification::AssertionOutcome,
    criteria::{Assertion, AssertionKind, AssertionTest, CriteriaProblem, JsonLevel},
    json::Limits,
    located::Step,
    run_result::Assessment,
};
use regex::Regex;
use serde_json::Value;

use crate::{
    compile::Compiler,
    excerpt::excerpt,
    json::{Wanted, extract},
    judge,
    matching::json_equal,
    reply::Reply,
    schema,
};

/// Edits that `levenshtein` allows where the assertion states no threshold.
const DEFAULT_EDITS: f64 = 5.0;
/// The score from which on a judge is content where the assertion states no threshold: 4 of 5 points.
const DEFAULT_JUDGED: f64 = 0.75;
/// Most edits that `levenshtein` counts; the work grows with them.
const MOST_EDITS: f64 = 200.0;

/// An assertion that can be asked about a reply.
#[derive(Clone, Debug)]
pub(crate) struct CompiledAssertion {
    kind: AssertionKind,
    name: String,
    weight: f64,
    metric: Option<String>,
    test: Test,
}

#[derive(Clone, Debug)]
enum Test {
    EqualsText(String),
    EqualsJson(Value),
    Contains { needles: Vec<String>, all: bool, fold: bool },
    StartsWith(String),
    Regex(Arc<Regex>),
    IsJson(Option<Arc<Validator>>),
    ContainsJson(Option<Arc<Validator>>),
    IsRefusal,
    Levenshtein { expected: String, edits: usize },
    WordCount { least: usize, most: usize },
    FinishReason(String),
    Latency(f64),
    Cost(f64),
    LlmRubric { number: usize, least: f64 },
    Set { members: Vec<CompiledAssertion>, threshold: Option<f64> },
}

/// What assertions came to, together.
pub(crate) struct SetOutcome {
    pub(crate) pass: bool,
    pub(crate) score: f64,
    pub(crate) outcomes: Vec<AssertionOutcome>,
    /// Why the judge's part is not known; it is then taken to hold.
    pub(crate) unjudged: Option<String>,
}

/// Asks all assertions. They must all hold, or reach `threshold` by weight.
pub(crate) fn evaluate(
    assertions: &[CompiledAssertion],
    threshold: Option<f64>,
    reply: &Reply<'_, '_>,
) -> SetOutcome {
    let mut unjudged = None;
    let mut outcomes: Vec<AssertionOutcome> =
        assertions.iter().map(|it| it.outcome(reply, &mut unjudged)).collect();
    let weight: f64 = outcomes.iter().map(|it| it.weight).sum();
    let weighted: f64 = outcomes.iter().map(|it| it.weight * it.score).sum();
    let score = if weight > 0.0 { weighted / weight } else { 1.0 };
    let pass = match threshold {
        Some(threshold) => score >= threshold,
        // An assertion without weight is there to be reported.
        None => outcomes.iter().all(|it| it.pass || it.weight == 0.0),
    };
    // What nobody has judged is taken to hold, and not recorded so.
    for (outcome, assertion) in outcomes.iter_mut().zip(assertions) {
        if assertion.is_unjudged(reply) {
            outcome.pass = false;
            outcome.score = 0.0;
        }
    }
    SetOutcome { pass, score, outcomes, unjudged }
}

impl CompiledAssertion {
    /// Whether the case asks for a refusal.
    pub(crate) fn wants_refusal(&self) -> bool {
        self.kind == AssertionKind { negated: false, test: AssertionTest::IsRefusal }
            && self.weight > 0.0
    }

    /// Whether a judge has to say, and has not.
    fn is_unjudged(&self, reply: &Reply<'_, '_>) -> bool {
        let Test::LlmRubric { number, .. } = self.test else { return false };
        !matches!(reply.result.assessments.get(number), Some(Ok(_)))
    }

    fn outcome(&self, reply: &Reply<'_, '_>, unjudged: &mut Option<String>) -> AssertionOutcome {
        let (score, reason) = match self.test.check(reply, unjudged) {
            // What nobody has judged neither holds nor fails, `not-` or not.
            Check::Unjudged(why) => {
                unjudged.get_or_insert(why.clone());
                return self.said(true, 1.0, Some(why));
            }
            Check::Holds => (1.0, None),
            Check::Fails(reason) => (0.0, Some(reason)),
            Check::Scored { pass, score, reason } => {
                (if pass { score.max(f64::MIN_POSITIVE) } else { 0.0 }, (!pass).then_some(reason))
            }
        };
        let holds = reason.is_none();
        let (pass, score, reason) = match self.kind.negated {
            false => (holds, score, reason),
            true if holds => (false, 0.0, Some(format!("`{}` holds", self.kind.test.as_str()))),
            true => (true, 1.0, None),
        };
        self.said(pass, score, reason)
    }

    fn said(&self, pass: bool, score: f64, reason: Option<String>) -> AssertionOutcome {
        AssertionOutcome {
            kind: self.name.clone(),
            pass,
            score,
            weight: self.weight,
            metric: self.metric.clone(),
            reason,
        }
    }
}

enum Check {
    Holds,
    Fails(String),
    Scored {
        pass: bool,
        score: f64,
        reason: String,
    },
    /// A judge has to say, and has not.
    Unjudged(String),
}

impl Check {
    fn of(holds: bool, reason: impl FnOnce() -> String) -> Self {
        if holds { Self::Holds } else { Self::Fails(reason()) }
    }
}

impl Test {
    fn check(&self, reply: &Reply<'_, '_>, unjudged: &mut Option<String>) -> Check {
        let text = reply.text;
        match self {
            Self::EqualsText(expected) => {
                Check::of(text == expected, || format!("the reply is `{}`", excerpt(text, 0)))
            }
            Self::EqualsJson(expected) => {
                let parsed = probity_core::json::parse(text.trim(), &Limits::default());
                let equal = parsed.is_ok_and(|it| json_equal(expected, &it.value));
                Check::of(equal, || format!("the reply is `{}`", excerpt(text, 0)))
            }
            Self::Contains { needles, all, fold } => contains(text, needles, *all, *fold),
            Self::StartsWith(start) => Check::of(text.starts_with(start.as_str()), || {
                format!("the reply starts with `{}`", excerpt(text, 0))
            }),
            Self::Regex(regex) => Check::of(regex.is_match(text), || {
                format!("no match for `{}`", excerpt(regex.as_str(), 0))
            }),
            Self::IsJson(schema) => {
                match probity_core::json::parse(text.trim(), &Limits::default()) {
                    Ok(parsed) => satisfies(schema.as_deref(), &parsed.value),
                    Err(error) => Check::Fails(error.to_string()),
                }
            }
            Self::ContainsJson(schema) => {
                match extract(text, JsonLevel::Lenient, Wanted::Any).value {
                    Some(value) => satisfies(schema.as_deref(), &value),
                    None => Check::Fails("there is no JSON in the reply".to_owned()),
                }
            }
            Self::IsRefusal => {
                Check::of(reply.is_refusal(), || "the reply is no refusal".to_owned())
            }
            Self::Levenshtein { expected, edits } => {
                Check::of(distance::within(text, expected, *edits), || {
                    format!("it takes more than {edits} edits to `{}`", excerpt(expected, 0))
                })
            }
            Self::WordCount { least, most } => {
                let words = text.split_whitespace().count();
                Check::of((least..=most).contains(&&words), || format!("{words} words"))
            }
            Self::FinishReason(expected) => {
                let found = reply.result.stop_reason.map(finish_reason);
                Check::of(found.as_ref() == Some(expected), || match found {
                    Some(found) => format!("it is `{}`", excerpt(&found, 0)),
                    None => "no stop reason was recorded".to_owned(),
                })
            }
            Self::Latency(most) => at_most(reply.result.latency_ms, *most, "latency"),
            Self::Cost(most) => at_most(reply.result.cost_usd, *most, "cost"),
            Self::LlmRubric { number, least } => match reply.result.assessments.get(*number) {
                Some(Ok(Assessment { score, reason })) => Check::Scored {
                    // Sums of weights are off in their last digits, which nobody meant.
                    pass: score + 1e-9 >= *least,
                    score: *score,
                    reason: format!("the judge gave {score:.2}: {}", excerpt(reason, 0)),
                },
                Some(Err(why)) => Check::Unjudged(why.clone()),
                None => Check::Unjudged("no judge was asked".to_owned()),
            },
            Self::Set { members, threshold } => {
                let SetOutcome { pass, score, outcomes, unjudged: inner } =
                    evaluate(members, *threshold, reply);
                if let Some(why) = inner {
                    unjudged.get_or_insert(why);
                }
                let failing = outcomes.iter().find(|it| !it.pass);
                let reason = failing.map_or_else(String::new, |it| {
                    format!("`{}`: {}", it.kind, it.reason.as_deref().unwrap_or("does not hold"))
                });
                Check::Scored { pass, score, reason }
            }
        }
    }
}

fn contains(text: &str, needles: &[String], all: bool, fold: bool) -> Check {
    let folded = if fold { Some(text.to_lowercase()) } else { None };
    let text = folded.as_deref().unwrap_or(text);
    let mut missing = needles.iter().filter(|needle| !text.contains(needle.as_str()));
    match all {
        true => match missing.next() {
            Some(needle) => Check::Fails(format!("`{}` is missing", excerpt(needle, 0))),
            None => Check::Holds,
        },
        false => Check::of(missing.count() < needles.len(), || "none of them is there".to_owned()),
    }
}

fn satisfies(schema: Option<&Validator>, value: &Value) -> Check {
    match schema.and_then(|schema| schema::first_violation(schema, value)) {
        Some(violation) => Check::Fails(violation),
        None => Check::Holds,
    }
}

fn at_most(measured: Option<f64>, most: f64, what: &str) -> Check {
    match measured {
        Some(measured) => Check::of(measured <= most, || format!("{what} is {measured}")),
        None => Check::Fails(format!("no {what} was recorded")),
    }
}

/// The vendors' words for why a model stopped, in one vocabulary.
fn finish_reason(word: &str) -> String {
    let word = word.to_lowercase();
    match word.as_str() {
        "end_turn" | "stop_sequence" | "eos" | "complete" => "stop".to_owned(),
        "max_tokens" | "max_output_tokens" | "model_length" => "length".to_owned(),
        "tool_use" | "function_call" => "tool_calls".to_owned(),
        "safety" | "refusal" | "prohibited_content" | "blocklist" => "content_filter".to_owned(),
        _ => word,
    }
}

/// Compiles an assertion, or says what is wrong with it. `path` leads to it from the case.
pub(crate) fn compile(
    assertion: &Assertion,
    path: &[Step<'static>],
    compiler: &mut Compiler<'_>,
    problems: &mut Vec<CriteriaProblem>,
) -> Option<CompiledAssertion> {
    let mut context = Context { assertion, path, problems };
    let test = context.test(compiler)?;
    Some(CompiledAssertion {
        kind: assertion.kind,
        name: assertion.kind.to_string(),
        weight: assertion.weight.unwrap_or(1.0),
        metric: assertion.metric.clone(),
        test,
    })
}

struct Context<'c> {
    assertion: &'c Assertion,
    path: &'c [Step<'static>],
    problems: &'c mut Vec<CriteriaProblem>,
}

impl Context<'_> {
    fn test(&mut self, compiler: &mut Compiler<'_>) -> Option<Test> {
        let contains = |needles, all, fold| Test::Contains { needles, all, fold };
        match self.assertion.kind.test {
            AssertionTest::Equals => match &self.assertion.value {
                Some(Value::String(text)) => Some(Test::EqualsText(text.clone())),
                Some(value) => Some(Test::EqualsJson(value.clone())),
                None => self.wrong("a value"),
            },
            AssertionTest::Contains => Some(contains(vec![self.text()?], true, false)),
            AssertionTest::Icontains => {
                Some(contains(vec![self.text()?.to_lowercase()], true, true))
            }
            AssertionTest::ContainsAny => Some(contains(self.texts()?, false, false)),
            AssertionTest::ContainsAll => Some(contains(self.texts()?, true, false)),
            AssertionTest::IcontainsAny => Some(contains(self.folded_texts()?, false, true)),
            AssertionTest::IcontainsAll => Some(contains(self.folded_texts()?, true, true)),
            AssertionTest::StartsWith => Some(Test::StartsWith(self.text()?)),
            AssertionTest::Regex => {
                let pattern = self.text()?;
                match compiler.regex(&pattern) {
                    Ok(regex) => Some(Test::Regex(regex)),
                    Err(why) => self.problem("value", "bad-regex", why),
                }
            }
            AssertionTest::IsJson => self.schema(compiler, Test::IsJson),
            AssertionTest::ContainsJson => self.schema(compiler, Test::ContainsJson),
            AssertionTest::IsRefusal => Some(Test::IsRefusal),
            AssertionTest::Levenshtein => {
                let edits = self.assertion.threshold.unwrap_or(DEFAULT_EDITS);
                if !(0.0..=MOST_EDITS).contains(&edits) {
                    let message = format!("the threshold must be from 0 to {MOST_EDITS} edits");
                    return self.problem("threshold", "out-of-range", message);
                }
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "it was just checked"
                )]
                Some(Test::Levenshtein { expected: self.text()?, edits: edits as usize })
            }
            AssertionTest::WordCount => self.word_count(),
            AssertionTest::FinishReason => Some(Test::FinishReason(finish_reason(&self.text()?))),
            AssertionTest::Latency => Some(Test::Latency(self.threshold("milliseconds")?)),
            AssertionTest::Cost => Some(Test::Cost(self.threshold("dollars")?)),
            AssertionTest::LlmRubric => self.rubric(compiler),
            AssertionTest::AssertSet => Some(self.set(compiler)),
        }
    }

    /// What a judge has to look at: one text, or criteria with weights.
    fn rubric(&mut self, compiler: &mut Compiler<'_>) -> Option<Test> {
        let least = self.assertion.threshold.unwrap_or(DEFAULT_JUDGED);
        if !(0.0..=1.0).contains(&least) {
            let message = "the threshold must be from 0 to 1".to_owned();
            return self.problem("threshold", "out-of-range", message);
        }
        let Some(criteria) = self.assertion.value.as_ref().and_then(judge::rubric_of) else {
            return self.wrong(
                "a text, or a list of criteria with `name`, `description` and maybe `weight`, each \
                 name once",
            );
        };
        Some(Test::LlmRubric { number: compiler.rubric(criteria), least })
    }

    fn set(&mut self, compiler: &mut Compiler<'_>) -> Test {
        let mut members = Vec::with_capacity(self.assertion.members.len());
        for (index, member) in self.assertion.members.iter().enumerate() {
            let mut path = self.path.to_vec();
            path.extend([Step::Key("assert"), Step::Index(index)]);
            members.extend(compile(member, &path, compiler, self.problems));
        }
        Test::Set { members, threshold: self.assertion.threshold }
    }

    fn text(&mut self) -> Option<String> {
        match &self.assertion.value {
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Number(number)) => Some(number.to_string()),
            Some(Value::Bool(value)) => Some(value.to_string()),
            Some(Value::Null | Value::Array(_) | Value::Object(_)) | None => self.wrong("a string"),
        }
    }

    /// A list of texts; one text is a list separated by commas, as promptfoo has it.
    fn texts(&mut self) -> Option<Vec<String>> {
        let texts = match &self.assertion.value {
            Some(Value::String(text)) => text.split(',').map(|it| it.trim().to_owned()).collect(),
            Some(Value::Array(items)) => items
                .iter()
                .map(|item| item.as_str().map_or_else(|| item.to_string(), ToOwned::to_owned))
                .collect(),
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {
                Vec::new()
            }
        };
        if texts.is_empty() { self.wrong("a list of strings") } else { Some(texts) }
    }

    fn folded_texts(&mut self) -> Option<Vec<String>> {
        Some(self.texts()?.iter().map(|it| it.to_lowercase()).collect())
    }

    /// A test against the schema in the value, or against none where there is no value.
    fn schema(
        &mut self,
        compiler: &mut Compiler<'_>,
        test: fn(Option<Arc<Validator>>) -> Test,
    ) -> Option<Test> {
        let Some(value) = &self.assertion.value else { return Some(test(None)) };
        match compiler.schema(value) {
            Ok(schema) => Some(test(Some(schema))),
            Err(why) => self.problem("value", "bad-schema", why),
        }
    }

    fn word_count(&mut self) -> Option<Test> {
        let count = |value: &Value| value.as_u64().and_then(|count| usize::try_from(count).ok());
        let (least, most) = match &self.assertion.value {
            Some(Value::Object(range)) => (
                range.get("min").map_or(Some(0), count),
                range.get("max").map_or(Some(usize::MAX), count),
            ),
            Some(Value::String(text)) => (text.trim().parse().ok(), text.trim().parse().ok()),
            Some(value) => (count(value), count(value)),
            None => (None, None),
        };
        match (least, most) {
            (Some(least), Some(most)) => Some(Test::WordCount { least, most }),
            (Some(_) | None, Some(_) | None) => {
                self.wrong("a number, or a table with `min` and `max`")
            }
        }
    }

    fn threshold(&mut self, unit: &str) -> Option<f64> {
        let stated = self.assertion.threshold;
        stated.or_else(|| {
            let message = format!("`{}` needs a `threshold` in {unit}", self.assertion.kind);
            self.problem("threshold", "missing-field", message)
        })
    }

    fn wrong<T>(&mut self, wanted: &str) -> Option<T> {
        let message = format!("the value of `{}` must be {wanted}", self.assertion.kind);
        self.problem("value", "bad-assertion", message)
    }

    fn problem<T>(
        &mut self,
        field: &'static str,
        code: &'static str,
        message: String,
    ) -> Option<T> {
        let mut path = self.path.to_vec();
        path.push(Step::Key(field));
        self.problems.push(CriteriaProblem { path, code, message, help: None });
        None
    }
}

#[cfg(test)]
mod tests;
