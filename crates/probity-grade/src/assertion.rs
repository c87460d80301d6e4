//! Assertions of a case, compiled once and asked often.

mod judged;
mod markup;
mod selected;
mod tools;

use std::{borrow::Cow, sync::Arc};

use probity_core::{
    criteria::{Assertion, AssertionKind, AssertionTest, CriteriaProblem, ScorerErrors},
    located::Step,
    score::Score,
};
use probity_text::{chrf::Variant, list, rouge::Words};
use serde_json::Value;

use crate::{
    check::{
        AskedScorer, Check, Checked, Embedded, Ends, Letters, Markup, Metric, Need, Needles,
        Perplexity, Scripted, Similarity, Test, Told, finish_reason,
    },
    compile::{self, Compiler, Place},
    internal::{
        script::{self, Scorer, ScorerCall, Script},
        similar::{Similar, VectorMetric},
    },
    reading::Reader,
    reply::Reply,
    schema::Schema,
};

/// Edits that `levenshtein` allows where the assertion states no threshold.
const DEFAULT_EDITS: f64 = 5.0;
/// The threshold of `similar` where the assertion states none.
const DEFAULT_SIMILAR: f64 = 0.75;
/// Most edits that `levenshtein` counts; the work grows with them.
const MOST_EDITS: f64 = 200.0;

/// An assertion that can be asked about a reply.
#[derive(Clone, Debug)]
pub(crate) struct CompiledAssertion {
    kind: AssertionKind,
    weight: f64,
    metric: Option<String>,
    transform: Option<Arc<dyn Script>>,
    check: Check,
    scorer_errors: ScorerErrors,
}

impl CompiledAssertion {
    /// Whether the case asks for a refusal.
    pub(crate) fn wants_refusal(&self) -> bool {
        let asks = [
            AssertionKind { negated: false, test: AssertionTest::IsRefusal },
            AssertionKind { negated: true, test: AssertionTest::Guardrails },
        ];
        asks.contains(&self.kind) && self.weight > 0.0
    }

    /// Whether a long reply takes next to no time.
    pub(crate) fn is_quick(&self) -> bool {
        self.transform.is_none() && self.check.is_quick()
    }

    /// Whether it looks at nothing but a text.
    pub(crate) fn is_about_text(&self) -> bool {
        let test = &self.check.test;
        if let Test::Set { members, .. } = test {
            return members.iter().all(Self::is_about_text);
        }
        test.looks_at_text()
    }

    /// Whether it holds of a text if it holds of its beginning.
    pub(crate) fn holds_of_more(&self) -> bool {
        use AssertionTest as Is;
        let finds = [
            Is::Contains,
            Is::Icontains,
            Is::ContainsAny,
            Is::ContainsAll,
            Is::IcontainsAny,
            Is::IcontainsAll,
            Is::StartsWith,
        ];
        !self.kind.negated && self.transform.is_none() && finds.contains(&self.kind.test)
    }

    /// How much it counts.
    pub(crate) fn weight(&self) -> f64 {
        self.weight
    }

    /// Whether the case gives its score a name.
    pub(crate) fn is_named(&self) -> bool {
        self.metric.is_some()
    }

    /// Whether somebody was asked about the reply before.
    pub(crate) fn asks_others(&self) -> bool {
        self.check.test.asks_others()
    }

    /// Whether its score brings others whose names only a scorer knows.
    pub(crate) fn names_scores(&self) -> bool {
        self.check.test.names_scores()
    }

    /// What its score is reported under.
    pub(crate) fn name(&self) -> Cow<'static, str> {
        self.metric.clone().map_or_else(|| self.kind.name(), Into::into)
    }

    /// What it comes to for a reply. What else there is to tell of it is told as well.
    pub(crate) fn score(&self, reply: &Reply<'_, '_>, told: &mut Told) -> Score {
        let Checked { value, said, passed, reason, span, told: own, .. } = self.checked(reply);
        let said = said.filter(|_| !self.kind.negated);
        let (value, passed, reason) = match (self.kind.negated, value) {
            (_, None) if self.scorer_errors == ScorerErrors::Fail && self.kind.test.runs_code() => {
                (Some(0.0), false, reason)
            }
            // What nobody has judged neither holds nor fails, `not-` or not.
            (false, _) | (true, None) => (value, passed, reason),
            (true, Some(_)) if passed => {
                let why = reason.map(|it| format!(": {it}")).unwrap_or_default();
                (Some(0.0), false, Some(format!("`{}` holds{why}", self.kind.test)))
            }
            (true, Some(_)) => (Some(1.0), true, None),
        };
        let (name, kind) = (self.name(), self.kind.name());
        // What the members of a set tell has their names.
        let is_set = matches!(self.check.test, Test::Set { .. });
        let Told { mut extracted, mut judged, mut selected, mut named } = own;
        if !is_set {
            extracted.iter_mut().for_each(|it| it.check.clone_from(&name));
            judged.iter_mut().for_each(|it| it.check.clone_from(&name));
            selected.iter_mut().for_each(|it| it.check.clone_from(&name));
            named.iter_mut().for_each(|it| it.kind.clone_from(&kind));
        }
        told.extracted.extend(extracted);
        told.judged.extend(judged);
        told.selected.extend(selected);
        told.named.extend(named);
        let weight = self.weight;
        Score { name, kind, named: false, value, said, passed, weight, reason, span }
    }

    fn checked(&self, reply: &Reply<'_, '_>) -> Checked {
        let (Some(script), Some(facts)) = (&self.transform, reply.facts) else {
            return self.check.check(reply, None);
        };
        // A scorer, a judge or a model that embeds was asked about what the transform made.
        if self.asks_others() {
            return self.check.check(reply, None);
        }
        match script::transform(&**script, facts, reply) {
            Ok(made) => {
                let text = script::text_of(&made);
                let checked = self.check.check(&reply.made_into(&made, &text), None);
                // Its places are in another text than the reply.
                Checked { span: None, ..checked }
            }
            Err(why) => Checked::unjudged(why),
        }
    }
}

/// Compiles an assertion, or says what is wrong with it.
pub(crate) fn compile(
    assertion: &Assertion,
    place: Place<'_>,
    compiler: &mut Compiler<'_>,
    problems: &mut Vec<CriteriaProblem>,
) -> Option<CompiledAssertion> {
    let mut context = Context { assertion, place, problems, transform: None };
    let transform = match &assertion.transform {
        None => None,
        Some(source) => match compiler.script(source) {
            Ok(script) => Some(script),
            Err(why) => return context.problem("transform", "bad-script", why),
        },
    };
    context.transform.clone_from(&transform);
    let test = context.test(compiler)?;
    let check = context.check(test, compiler)?;
    Some(CompiledAssertion {
        kind: assertion.kind,
        weight: assertion.weight.unwrap_or(1.0),
        metric: assertion.metric.clone(),
        transform,
        check,
        scorer_errors: compiler.scorer_errors(),
    })
}

struct Context<'c> {
    assertion: &'c Assertion,
    place: Place<'c>,
    problems: &'c mut Vec<CriteriaProblem>,
    transform: Option<Arc<dyn Script>>,
}

impl Context<'_> {
    #[expect(clippy::too_many_lines, reason = "a flat list of all assertions")]
    fn test(&mut self, compiler: &mut Compiler<'_>) -> Option<Test> {
        let contains =
            |texts, need, letters| Test::Contains { needles: Needles::new(texts, letters), need };
        match self.assertion.kind.test {
            AssertionTest::Equals => self.equals(),
            AssertionTest::ExactMatch => {
                Some(Test::Equals { any: self.any_text()?, ends: Ends::Trimmed })
            }
            AssertionTest::Contains => {
                Some(contains(vec![self.text()?], Need::All, Letters::AsTheyAre))
            }
            AssertionTest::Icontains => {
                Some(contains(vec![self.text()?], Need::All, Letters::Folded))
            }
            AssertionTest::ContainsAny => {
                Some(contains(self.texts()?, Need::Any, Letters::AsTheyAre))
            }
            AssertionTest::ContainsAll => {
                Some(contains(self.texts()?, Need::All, Letters::AsTheyAre))
            }
            AssertionTest::IcontainsAny => {
                Some(contains(self.texts()?, Need::Any, Letters::Folded))
            }
            AssertionTest::IcontainsAll => {
                Some(contains(self.texts()?, Need::All, Letters::Folded))
            }
            AssertionTest::StartsWith => Some(Test::StartsWith(vec![self.text()?])),
            AssertionTest::Regex => {
                let pattern = self.text()?;
                match compiler.regex(&pattern) {
                    Ok(regex) => Some(Test::Regex(vec![regex])),
                    Err(why) => self.problem("value", "bad-regex", why),
                }
            }
            AssertionTest::IsJson => self.schema(compiler, Test::IsJson),
            AssertionTest::ContainsJson => self.schema(compiler, Test::ContainsJson),
            AssertionTest::IsXml => Some(Test::Markup(Markup::IsXml(self.elements()?))),
            AssertionTest::ContainsXml => Some(Test::Markup(Markup::ContainsXml(self.elements()?))),
            AssertionTest::IsHtml => self.markup(Markup::IsHtml),
            AssertionTest::ContainsHtml => self.markup(Markup::ContainsHtml),
            AssertionTest::IsSql => Some(Test::Markup(Markup::IsSql(self.sql()?))),
            AssertionTest::ContainsSql => Some(Test::Markup(Markup::ContainsSql(self.sql()?))),
            AssertionTest::Number => self.number(),
            AssertionTest::Choice => self.choice(compiler),
            AssertionTest::TokenF1 => self.similarity(Metric::TokenF1),
            AssertionTest::Rouge1 => self.similarity(Metric::RougeN(1, self.words())),
            AssertionTest::Rouge2 => self.similarity(Metric::RougeN(2, self.words())),
            AssertionTest::RougeL => self.similarity(Metric::RougeL(self.words())),
            AssertionTest::Bleu => self.similarity(Metric::Bleu),
            AssertionTest::Gleu => self.similarity(Metric::Gleu),
            AssertionTest::Meteor => self.similarity(Metric::Meteor),
            AssertionTest::Chrf => self.chrf(),
            AssertionTest::EditSimilarity => self.similarity(Metric::Edit),
            AssertionTest::IsRefusal => Some(Test::IsRefusal),
            AssertionTest::Levenshtein => self.levenshtein(),
            AssertionTest::WordCount => self.word_count(),
            AssertionTest::FinishReason => Some(Test::FinishReason(finish_reason(&self.text()?))),
            AssertionTest::Latency => Some(Test::Latency(self.threshold(" in milliseconds")?)),
            AssertionTest::TimeToFirstToken if self.is_before_last_turn(compiler) => {
                let message = "the time to the first token is measured for the last answer only";
                self.problem("type", "bad-assertion", message.to_owned())
            }
            AssertionTest::TimeToFirstToken => {
                Some(Test::Ttft(self.threshold(" in milliseconds")?))
            }
            AssertionTest::Cost => Some(Test::Cost(self.threshold(" in dollars")?)),
            AssertionTest::ToolCalled => self.called(compiler),
            AssertionTest::ToolsInOrder => self.in_order(compiler),
            AssertionTest::ToolCount => self.tool_count(),
            AssertionTest::ValidToolCalls => self.valid_calls(compiler),
            AssertionTest::ToolCallF1 => self.tool_f1(),
            AssertionTest::Guardrails => match &self.assertion.value {
                None => Some(Test::Guardrails),
                Some(_) => self.wrong("left out"),
            },
            AssertionTest::Perplexity => {
                let most = self.threshold(", the highest perplexity")?;
                Some(Test::Perplexity(Perplexity::AtMost(most)))
            }
            AssertionTest::PerplexityScore => {
                let least = self.threshold(", the lowest score")?;
                Some(Test::Perplexity(Perplexity::Score(least)))
            }
            AssertionTest::LlmRubric
            | AssertionTest::Factuality
            | AssertionTest::ClosedQa
            | AssertionTest::GEval
            | AssertionTest::ContextRecall
            | AssertionTest::ContextPrecision
            | AssertionTest::ContextRelevance
            | AssertionTest::ContextFaithfulness
            | AssertionTest::AnswerRelevance => self.judged(compiler),
            AssertionTest::SelectBest => self.select_best(compiler),
            AssertionTest::MaxScore => self.max_score(compiler),
            AssertionTest::Similar | AssertionTest::SimilarCosine => {
                self.similar(VectorMetric::Cosine, compiler)
            }
            AssertionTest::SimilarDot => self.similar(VectorMetric::Dot, compiler),
            AssertionTest::SimilarEuclidean => self.similar(VectorMetric::Euclidean, compiler),
            AssertionTest::Rerank => self.rerank(compiler),
            AssertionTest::Javascript => self.script(compiler),
            AssertionTest::Scorer => self.scorer(|site| site.text().map(Scorer::Named), compiler),
            AssertionTest::Python => self.scorer(|site| site.text().map(Scorer::Python), compiler),
            AssertionTest::Exec => self.scorer(|site| site.command().map(Scorer::Exec), compiler),
            AssertionTest::AssertSet => self.set(compiler),
        }
    }

    fn equals(&mut self) -> Option<Test> {
        match &self.assertion.value {
            Some(Value::String(text)) => {
                Some(Test::Equals { any: vec![text.clone()], ends: Ends::Kept })
            }
            Some(value) => Some(Test::EqualsJson(value.clone())),
            None => self.wrong("a value"),
        }
    }

    /// The test with what it looks at. Options that mean nothing to it are refused.
    fn check(&mut self, test: Test, compiler: &mut Compiler<'_>) -> Option<Check> {
        let Assertion { kind, reading, stemmer, word_order, config, transform, .. } =
            self.assertion;
        let is_rouge = matches!(
            kind.test,
            AssertionTest::Rouge1 | AssertionTest::Rouge2 | AssertionTest::RougeL
        );
        for (field, owner, is_stated, is_owned) in [
            ("choices", "choice", !reading.choices.is_empty(), kind.test == AssertionTest::Choice),
            (
                "tolerance",
                "number",
                reading.tolerance.is_some(),
                kind.test == AssertionTest::Number,
            ),
            ("stemmer", "rouge-…", stemmer.is_some(), is_rouge),
            ("word_order", "chrf", word_order.is_some(), kind.test == AssertionTest::Chrf),
            ("config", "scripts and scorers", config.is_some(), kind.test.runs_code()),
            (
                "transform",
                "checks of what the reply says",
                transform.is_some(),
                kind.test.takes_transform(),
            ),
        ]
        .into_iter()
        .chain(judged::owned(self.assertion))
        {
            if is_stated && !is_owned {
                let owner =
                    if owner.contains(' ') { owner.to_owned() } else { format!("`{owner}`") };
                let message = format!("`{field}` goes with {owner}, not with `{kind}`");
                return self.problem(field, "bad-assertion", message);
            }
        }
        let check = Reader::new(reading, compiler).and_then(|reader| Check::new(test, reader));
        check.map_or_else(|bad| self.problem(bad.field, bad.code, bad.message), Some)
    }

    fn words(&self) -> Words {
        match self.assertion.stemmer {
            Some(true) => Words::Stemmed,
            Some(false) | None => Words::AsWritten,
        }
    }

    fn number(&mut self) -> Option<Test> {
        let texts = self.any_text()?;
        let numbers = compile::numbers(&texts, self.assertion.reading.tolerance);
        match numbers {
            Ok(numbers) => Some(Test::Numbers(numbers)),
            Err(why) => self.problem("value", "bad-assertion", why),
        }
    }

    fn choice(&mut self, compiler: &Compiler<'_>) -> Option<Test> {
        let keys = self.any_text()?;
        let own = &self.assertion.reading.choices;
        let choices = if own.is_empty() { compiler.choices().to_vec() } else { own.clone() };
        match compile::choices(&keys, choices) {
            Ok(choices) => Some(Test::Choices(choices)),
            Err(why) => self.problem("value", "bad-assertion", why),
        }
    }

    fn levenshtein(&mut self) -> Option<Test> {
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

    fn chrf(&mut self) -> Option<Test> {
        match self.assertion.word_order {
            None | Some(0) => self.similarity(Metric::Chrf(Variant::Characters)),
            Some(2) => self.similarity(Metric::Chrf(Variant::WithWords)),
            Some(_) => {
                let message = "`word_order` is 0 for chrF and 2 for chrF++".to_owned();
                self.problem("word_order", "out-of-range", message)
            }
        }
    }

    fn similarity(&mut self, metric: Metric) -> Option<Test> {
        let least = self.share(metric.default_least())?;
        Some(Test::Similarity(Similarity { metric, references: self.any_text()?, least }))
    }

    /// The threshold of a score from 0 to 1. One above 1 is never reached: promptfoo's users have some, and
    /// `unreachable::check` warns of them.
    pub(super) fn share(&mut self, usual: f64) -> Option<f64> {
        let least = self.assertion.threshold.unwrap_or(usual);
        if least < 0.0 {
            let message = "the threshold must be 0 or more".to_owned();
            return self.problem("threshold", "out-of-range", message);
        }
        Some(least)
    }

    /// One text, or several of which any will do.
    fn any_text(&mut self) -> Option<Vec<String>> {
        let texts = self.assertion.value.as_ref().and_then(compile::any_text);
        texts.or_else(|| self.wrong("a string or a list of strings"))
    }

    fn script(&mut self, compiler: &mut Compiler<'_>) -> Option<Test> {
        let source = self.text()?;
        let Assertion { config, threshold, .. } = self.assertion;
        match compiler.script(&source) {
            Ok(script) => Some(Test::Script(Scripted {
                source,
                script,
                config: config.clone(),
                threshold: *threshold,
            })),
            Err(why) => self.problem("value", "bad-script", why),
        }
    }

    fn scorer(
        &mut self,
        written: impl FnOnce(&mut Self) -> Option<Scorer>,
        compiler: &mut Compiler<'_>,
    ) -> Option<Test> {
        let scorer = written(self)?;
        if let Err((code, why)) = compiler.check_scorer(&scorer) {
            return self.problem("value", code, why);
        }
        let number = self.asked(scorer, compiler)?;
        Some(Test::Scorer(AskedScorer { number, threshold: self.assertion.threshold }))
    }

    /// How near the reply is to the value, in the space of an embedding model.
    fn similar(&mut self, metric: VectorMetric, compiler: &mut Compiler<'_>) -> Option<Test> {
        let threshold = self.assertion.threshold.unwrap_or(DEFAULT_SIMILAR);
        let (range, message) = metric.thresholds();
        if !range.contains(&threshold) {
            return self.problem("threshold", "out-of-range", message.to_owned());
        }
        let texts = self.any_text()?;
        if texts.iter().any(|it| it.trim().is_empty()) {
            return self.wrong("a text, or a list of texts, none of them blank");
        }
        let similar = Similar { metric, texts };
        let number = self.asked(Scorer::Similar(similar.clone()), compiler)?;
        Some(Test::Embedded(Embedded { number, similar, threshold }))
    }

    /// How relevant the reply is to the value, or to the question.
    fn rerank(&mut self, compiler: &mut Compiler<'_>) -> Option<Test> {
        let threshold = self.threshold(", the lowest relevance")?;
        let query = match &self.assertion.value {
            None => None,
            Some(_) => Some(self.telling()?),
        };
        let number = self.asked(Scorer::Rerank(query), compiler)?;
        Some(Test::Reranked { number, threshold })
    }

    /// The number of one who has to be asked about the reply.
    fn asked(&mut self, scorer: Scorer, compiler: &mut Compiler<'_>) -> Option<usize> {
        if !self.assertion.reading.extract.is_empty() {
            let who = match scorer {
                Scorer::Similar(_) => "an embedding is made of the whole reply",
                Scorer::Rerank(_) => "the whole reply is ranked",
                Scorer::Named(_) | Scorer::Python(_) | Scorer::Exec(_) => {
                    "a scorer gets the whole reply"
                }
            };
            let message = format!("{who}: take the answer out with `transform`");
            return self.problem("extract", "bad-assertion", message);
        }
        let (config, transform) = (self.assertion.config.clone(), self.transform.clone());
        let turn = compiler.turn();
        Some(compiler.scorer(ScorerCall { scorer, config, turn, transform }))
    }

    /// A program and its arguments; a text is a program without any.
    fn command(&mut self) -> Option<Vec<String>> {
        let words = match &self.assertion.value {
            Some(Value::String(program)) => vec![program.clone()],
            Some(Value::Array(items)) => {
                let words: Option<_> =
                    items.iter().map(|it| it.as_str().map(ToOwned::to_owned)).collect();
                words.unwrap_or_default()
            }
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {
                Vec::new()
            }
        };
        match words.first().is_some_and(|it| !it.trim().is_empty()) {
            true => Some(words),
            false => self.wrong("a program, or a list of a program and its arguments"),
        }
    }

    fn set(&mut self, compiler: &mut Compiler<'_>) -> Option<Test> {
        let mut members = Vec::with_capacity(self.assertion.members.len());
        for (index, member) in self.assertion.members.iter().enumerate() {
            let mut path = self.place.path.to_vec();
            path.extend([Step::Key("assert"), Step::Index(index)]);
            let place = Place { path: &path, ..self.place };
            members.extend(compile(member, place, compiler, self.problems));
        }
        if self.transform.is_some() && members.iter().any(CompiledAssertion::asks_others) {
            let message = "members of this set ask a judge, a scorer or a model that embeds: each of \
                           these needs the `transform` itself";
            return self.problem("transform", "bad-assertion", message.to_owned());
        }
        Some(Test::Set { members, threshold: self.assertion.threshold })
    }

    fn text(&mut self) -> Option<String> {
        match &self.assertion.value {
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Number(number)) => Some(number.to_string()),
            Some(Value::Bool(value)) => Some(value.to_string()),
            Some(Value::Null | Value::Array(_) | Value::Object(_)) | None => self.wrong("a string"),
        }
    }

    /// A list of texts; one text is a list with commas between them, as promptfoo has it.
    fn texts(&mut self) -> Option<Vec<String>> {
        let texts = match &self.assertion.value {
            Some(Value::String(text)) => list::split(text),
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

    /// A test against the schema in the value, or against none where there is no value.
    fn schema(
        &mut self,
        compiler: &mut Compiler<'_>,
        test: fn(Option<Arc<Schema>>) -> Test,
    ) -> Option<Test> {
        let Some(value) = &self.assertion.value else { return Some(test(None)) };
        match compiler.schema(value) {
            Ok(schema) => Some(test(Some(schema))),
            Err(why) => self.problem("value", "bad-schema", why),
        }
    }

    fn is_before_last_turn(&self, compiler: &Compiler<'_>) -> bool {
        let turns = self.place.case.conversation.turns.len();
        compiler.turn().is_some_and(|turn| (turn as usize) < turns)
    }

    fn word_count(&mut self) -> Option<Test> {
        let (least, most) = self.range()?;
        Some(Test::WordCount { least, most })
    }

    /// A number, or the numbers from `min` to `max`.
    fn range(&mut self) -> Option<(usize, usize)> {
        let count = |value: &Value| value.as_u64().and_then(|count| usize::try_from(count).ok());
        let (least, most) = match &self.assertion.value {
            // Without either, everything would do.
            Some(Value::Object(range))
                if range.contains_key("min") || range.contains_key("max") =>
            {
                (
                    range.get("min").map_or(Some(0), count),
                    range.get("max").map_or(Some(usize::MAX), count),
                )
            }
            Some(Value::String(text)) => (text.trim().parse().ok(), text.trim().parse().ok()),
            Some(value) => (count(value), count(value)),
            None => (None, None),
        };
        match least.zip(most) {
            Some((least, most)) if least > most => {
                self.wrong("a table whose `min` is at most its `max`")
            }
            Some(range) => Some(range),
            None => self.wrong("a number, or a table with `min`, `max` or both"),
        }
    }

    fn threshold(&mut self, what: &str) -> Option<f64> {
        let stated = self.assertion.threshold;
        stated.or_else(|| {
            let message = format!("`{}` needs a `threshold`{what}", self.assertion.kind);
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
        let mut path = self.place.path.to_vec();
        path.push(Step::Key(field));
        self.problems.push(CriteriaProblem { path, code, message, help: None });
        None
    }
}

#[cfg(test)]
mod tests;
