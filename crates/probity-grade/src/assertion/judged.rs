//! Assertions that ask judges.

use probity_core::{
    criteria::{Assertion, AssertionTest, JudgeOptions},
    opinion::Threshold,
};
use serde_json::Value;

use super::Context as Site;
use crate::{
    check::Test,
    compile::{Compiler, texts_of},
    internal::judge::{self, Context, Form, Inquiry, Look},
};

/// The usual threshold: 4 of 5 points.
const DEFAULT_JUDGED: f64 = 0.75;
/// That of `g-eval`: 7 of 10.
const DEFAULT_GRADE: f64 = 0.7;
/// That of questions that are answered with yes or no.
const DEFAULT_YES: f64 = 0.5;

/// Options of judges: the field, whose it is, whether it is stated, whether that is right.
pub(super) fn owned(
    assertion: &Assertion,
) -> impl Iterator<Item = (&'static str, &'static str, bool, bool)> {
    let JudgeOptions { context, context_transform, query, steps, scores, rubric_prompt } =
        &assertion.judging;
    let test = assertion.kind.test;
    let has_context = matches!(
        test,
        AssertionTest::ContextRecall
            | AssertionTest::ContextPrecision
            | AssertionTest::ContextRelevance
            | AssertionTest::ContextFaithfulness
    );
    let is_judged = test.asks_judge() || test == AssertionTest::SelectBest;
    [
        ("context", "context-…", context.is_some(), has_context),
        ("context_transform", "context-…", context_transform.is_some(), has_context),
        ("query", "assertions that ask a judge", query.is_some(), is_judged),
        ("steps", "g-eval", !steps.is_empty(), test == AssertionTest::GEval),
        ("scores", "factuality", !scores.is_empty(), test == AssertionTest::Factuality),
        ("rubric_prompt", "llm-rubric", rubric_prompt.is_some(), test == AssertionTest::LlmRubric),
    ]
    .into_iter()
}

impl Site<'_> {
    /// What judges are asked.
    pub(super) fn judged(&mut self, compiler: &mut Compiler<'_>) -> Option<Test> {
        self.share(0.0)?;
        let stated = self.assertion.threshold;
        let form = self.form()?;
        let usual = match &form {
            Form::Factuality { .. } | Form::ClosedQa { .. } => DEFAULT_YES,
            Form::GEval { .. } => DEFAULT_GRADE,
            Form::Rubric(_)
            | Form::ContextRecall { .. }
            | Form::ContextPrecision { .. }
            | Form::ContextRelevance
            | Form::ContextFaithfulness
            | Form::AnswerRelevance => DEFAULT_JUDGED,
        };
        let context = match form.needs_context() {
            true => self.context(compiler)?,
            false => Context::None,
        };
        let inquiry = Inquiry {
            turn: compiler.turn(),
            form,
            look: self.look(),
            context,
            rubric_prompt: self.assertion.judging.rubric_prompt.clone(),
        };
        let number = compiler.inquiry(inquiry);
        Some(Test::Judged { number, threshold: Threshold { stated, usual } })
    }

    /// What of the case is looked at.
    pub(super) fn look(&self) -> Look {
        let query = self.assertion.judging.query.clone();
        let of_case = || self.variable("query")?.as_str().map(ToOwned::to_owned);
        Look { query: query.or_else(of_case), transform: self.transform.clone() }
    }

    fn form(&mut self) -> Option<Form> {
        let test = self.assertion.kind.test;
        for (without_value, form) in [
            (AssertionTest::ContextRelevance, Form::ContextRelevance),
            (AssertionTest::ContextFaithfulness, Form::ContextFaithfulness),
            (AssertionTest::AnswerRelevance, Form::AnswerRelevance),
        ] {
            if test == without_value {
                return self.without_value(form);
            }
        }
        if test == AssertionTest::Factuality {
            self.factuality()
        } else if test == AssertionTest::ClosedQa {
            Some(Form::ClosedQa { criterion: self.telling()? })
        } else if test == AssertionTest::GEval {
            self.g_eval()
        } else if test == AssertionTest::ContextRecall {
            Some(Form::ContextRecall { reference: self.telling()? })
        } else if test == AssertionTest::ContextPrecision {
            let is_stated = self.assertion.value.is_some();
            let reference = if is_stated { Some(self.telling()?) } else { None };
            Some(Form::ContextPrecision { reference })
        } else {
            self.rubric()
        }
    }

    fn rubric(&mut self) -> Option<Form> {
        match self.assertion.value.as_ref().and_then(judge::rubric_of) {
            Some(criteria) => Some(Form::Rubric(criteria)),
            None => self.wrong(
                "a text, or a list of criteria with `name`, `description` and maybe `weight`, each \
                 name once",
            ),
        }
    }

    fn factuality(&mut self) -> Option<Form> {
        let scores = self.assertion.judging.scores.clone();
        if scores.values().any(|it| !(0.0..=1.0).contains(it)) {
            let message = "a score must be from 0 to 1".to_owned();
            return self.problem("scores", "out-of-range", message);
        }
        Some(Form::Factuality { reference: self.telling()?, scores })
    }

    fn g_eval(&mut self) -> Option<Form> {
        let criteria = self.assertion.value.as_ref().and_then(texts_of);
        match criteria.filter(|it| !it.is_empty()) {
            Some(criteria) => {
                Some(Form::GEval { criteria, steps: self.assertion.judging.steps.clone() })
            }
            None => self.wrong("a text, or a list of texts"),
        }
    }

    /// A text that says something.
    pub(super) fn telling(&mut self) -> Option<String> {
        match &self.assertion.value {
            Some(Value::String(text)) if !text.trim().is_empty() => Some(text.clone()),
            Some(_) | None => self.wrong("a text"),
        }
    }

    fn without_value(&mut self, form: Form) -> Option<Form> {
        match &self.assertion.value {
            None => Some(form),
            Some(_) => self.wrong("left out"),
        }
    }

    /// A variable of the case.
    fn variable(&self, name: &str) -> Option<&Value> {
        self.place.case.prompt_vars.get(name)
    }

    /// What the answer was to be made from: of the assertion, else of the case's variables.
    fn context(&mut self, compiler: &mut Compiler<'_>) -> Option<Context> {
        let JudgeOptions { context, context_transform, .. } = &self.assertion.judging;
        if let Some(source) = context_transform {
            if context.is_some() {
                let message = "`context` and `context_transform` exclude each other".to_owned();
                return self.problem("context_transform", "bad-assertion", message);
            }
            return match compiler.script(source) {
                Ok(script) => Some(Context::Made(script)),
                Err(why) => self.problem("context_transform", "bad-script", why),
            };
        }
        let Some(value) = context.as_ref().or_else(|| self.variable("context")) else {
            let message = format!(
                "`{}` needs a context: `context`, `context_transform`, or `context` in `prompt_vars`",
                self.assertion.kind
            );
            return self.problem("context", "missing-field", message);
        };
        match texts_of(value).filter(|it| !it.is_empty()) {
            Some(passages) => Some(Context::Given(passages)),
            None => {
                let message = "the context must be a text or a list of texts".to_owned();
                self.problem("context", "bad-assertion", message)
            }
        }
    }
}
