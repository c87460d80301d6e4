//! Who judges tests that name nobody.

use probity_core::criteria::{Assertion, AssertionTest, ScorerErrors};

use super::{Generator, Test, Tests};
use crate::promptfoo::{
    Context, assertions,
    options::{self, Helpers},
};

/// Names who judges where nobody is named, and lets tests that ask nobody go along with those that do.
pub(super) fn settle(tests: &mut Tests, context: &mut Context<'_>) {
    let asks_judge =
        |it: &Assertion| it.kind.test.asks_judge() || it.kind.test == AssertionTest::SelectBest;
    let embeds = |it: &Assertion| it.kind.test.is_similar();
    let is_rubric = |it: &Assertion| it.kind.test == AssertionTest::LlmRubric;
    let runs_code = |it: &Assertion| it.kind.test.runs_code();
    let says_refusal = |it: &Assertion| it.kind.test == AssertionTest::IsRefusal;
    let Tests { cases, functions, setup: shared, provider: _ } = tests;
    let inherited = shared.assertions.clone();
    let says = |test: &Test, is: &dyn Fn(&Assertion) -> bool| {
        assertions::any(&test.case.case.criteria.assertions, is)
            || test.inherits && assertions::any(&inherited, is)
    };
    let mut common = Helpers::default();
    for test in cases.iter_mut() {
        let (judged, embedded) = (says(test, &asks_judge), says(test, &embeds));
        let by_rubric = says(test, &is_rubric);
        let Test { setup, case, .. } = test;
        if judged {
            let judge =
                setup.judge.get_or_insert_with(|| options::default_judge(&case.at, context));
            common.judge.get_or_insert_with(|| judge.clone());
        }
        if embedded {
            let embeds = setup
                .embeddings
                .get_or_insert_with(|| options::default_embedder(&case.at, context));
            common.embeddings.get_or_insert_with(|| embeds.clone());
        }
        if by_rubric {
            let prompt = setup.rubric_prompt.get_or_insert_with(options::usual_rubric_prompt);
            common.rubric_prompt.get_or_insert_with(|| prompt.clone());
        }
    }
    let runs =
        assertions::any(&inherited, &runs_code) || cases.iter().any(|it| says(it, &runs_code));
    for test in cases.iter_mut() {
        if !says(test, &asks_judge) {
            test.setup.judge.clone_from(&common.judge);
        }
        if !says(test, &embeds) {
            test.setup.embeddings.clone_from(&common.embeddings);
        }
        if !says(test, &is_rubric) {
            test.setup.rubric_prompt.clone_from(&common.rubric_prompt);
        }
        test.setup.scorer_errors = runs.then_some(ScorerErrors::Fail);
    }
    let mut is_told = cases.iter().any(|it| says(it, &says_refusal));
    if let Some(Generator { at, .. }) = functions.first() {
        // What the tests of a function assert is not known before it is run.
        shared.judge.get_or_insert_with(|| options::default_judge(at, context));
        shared.embeddings.get_or_insert_with(|| options::default_embedder(at, context));
        shared.rubric_prompt.get_or_insert_with(options::usual_rubric_prompt);
        shared.scorer_errors = Some(ScorerErrors::Fail);
        is_told |= assertions::any(&inherited, &says_refusal);
    }
    let is_judged = common.judge.is_some() || common.embeddings.is_some() || !functions.is_empty();
    note_unnamed(is_judged, context);
    context.draft.settings.refusal.detect = (!is_told).then_some(false);
}

/// Notes settings of judges that nobody is named for. Where nothing is judged, promptfoo does not look at them.
fn note_unnamed(is_judged: bool, context: &mut Context<'_>) {
    let advice = "name who is meant with `id`, and put the settings under `config`";
    for (at, what) in std::mem::take(&mut context.unnamed) {
        match is_judged {
            true => context.notes.lost(at, what, advice),
            false => context.notes.assumed(at, format!("{what}, which nothing needs"), advice),
        }
    }
}
