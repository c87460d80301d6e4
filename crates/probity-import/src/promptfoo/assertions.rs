//! promptfoo's assertions. Ours have the same names where they mean the same.

pub(super) mod adapted;
mod values;

use probity_core::{
    criteria::{Assertion, AssertionKind, AssertionTest, JudgeOptions},
    located::{Node, NodeValue},
};

use probity_load::{case::promptfoo_threshold, template};

use super::{
    Context, Table, list, nunjucks,
    options::{self, Helpers, helpers},
    transform,
};
use crate::cases::text;

/// What to do about an assertion that is left out.
const ADVICE: &str = "docs/datasets.md lists the assertions that there are";
/// Fields that every assertion may have.
const CARRIED: &[&str] =
    &["type", "value", "threshold", "weight", "metric", "provider", "rubricPrompt", "reason"];
/// Assertions that have no counterpart, and why.
const FOREIGN: &[(&str, &str)] = &[
    ("agent-rubric", "no agent judges here"),
    ("answer-relevance", "ours of the same name counts statements instead of comparing embeddings"),
    ("conversation-relevance", "conversations are judged turn by turn"),
    ("human", "people grade in other places"),
    ("pi", "the service is not asked"),
    ("ruby", "Ruby is not run; a scorer with a `command` can"),
    ("skill-used", "runners of kind `activation` look at skills"),
];

/// `llm-rubric` by a judge who searches the web.
const SEARCH_RUBRIC: &str = "search-rubric";

/// What a list of assertions says.
#[derive(Clone, Debug, Default)]
pub(super) struct Read {
    /// The assertions that could be carried over.
    pub(super) assertions: Vec<Assertion>,
    /// Who is to judge them.
    pub(super) helpers: Helpers,
}

/// The assertion of that name, where both mean the same by it.
pub(super) fn known(name: &str) -> Option<AssertionKind> {
    let is_ours = |it: &AssertionKind| {
        matches!(
            it.test,
            AssertionTest::Scorer | AssertionTest::Exec | AssertionTest::AnswerRelevance
        )
    };
    let plain = name.strip_prefix("not-").unwrap_or(name);
    let called = match plain {
        "is-valid-function-call" | "is-valid-openai-function-call" => {
            name.replace(plain, "is-valid-openai-tools-call")
        }
        _ => name.to_owned(),
    };
    AssertionKind::named(&called).filter(|it| !is_ours(it))
}

/// Whether a name is one of promptfoo's that we do not have.
pub(super) fn is_foreign(name: &str) -> bool {
    let plain = name.strip_prefix("not-").unwrap_or(name);
    why_foreign(name).is_some() || adapted::is_adapted(name) || plain == SEARCH_RUBRIC
}

fn why_foreign(name: &str) -> Option<&'static str> {
    let plain = name.strip_prefix("not-").unwrap_or(name);
    let named = FOREIGN.iter().find(|(foreign, _)| *foreign == plain).map(|(_, why)| *why);
    let starts = |start: &str| plain.starts_with(start);
    match named {
        Some(why) => Some(why),
        None if starts("trajectory:") || starts("trace-") => Some("traces are not read"),
        None if starts("promptfoo:redteam:") => Some("its grader is promptfoo's own"),
        None => None,
    }
}

/// Reads a list of assertions, one alone, or a file with either; those we do not have are named and left out.
pub(super) fn read(written: &Node, context: &mut Context<'_>) -> Read {
    match written.as_str().and_then(|it| it.strip_prefix("file://")) {
        Some(name) => match context.tree(written, name) {
            Some(root) => all(&root, context),
            None => Read::default(),
        },
        None if matches!(written.value, NodeValue::Null) => Read::default(),
        None => all(written, context),
    }
}

fn all(written: &Node, context: &mut Context<'_>) -> Read {
    let mut all = Read::default();
    for node in list(written) {
        if let Some((assertion, helpers)) = one(node, context) {
            note_second_judge(node, &all.helpers, &helpers, context);
            all.helpers = std::mem::take(&mut all.helpers).or(&helpers);
            all.assertions.push(assertion);
        }
    }
    all
}

/// A runner has one judge, so all assertions of a test have the same.
fn note_second_judge(node: &Node, all: &Helpers, own: &Helpers, context: &mut Context<'_>) {
    let other = all.judge.as_ref().zip(own.judge.as_ref()).is_some_and(|(one, other)| one != other);
    if other {
        let what = "a second judge within a test: the first judges all its assertions";
        context.lost(node, what, "make two tests of it, each with one judge");
    }
}

fn one(node: &Node, context: &mut Context<'_>) -> Option<(Assertion, Helpers)> {
    let Some(name) = text(node, "type") else {
        context.lost(node, "an assertion without a type", ADVICE);
        return None;
    };
    if adapted::is_adapted(&name) {
        let made = adapted::made(&name, node, context)?;
        return Some((with_weight(made, node, context), Helpers::default()));
    }
    let searches = name.strip_prefix("not-").unwrap_or(&name) == SEARCH_RUBRIC;
    let called = if searches { name.replace(SEARCH_RUBRIC, "llm-rubric") } else { name.clone() };
    let Some(kind) = known(&called) else {
        let what = format!("assertion `{name}`");
        context.lost(node, what, why_foreign(&name).unwrap_or(ADVICE));
        return None;
    };
    if kind.test == AssertionTest::AssertSet {
        return set(node, kind, context);
    }
    note_fields(node, kind, context);
    if kind.test == AssertionTest::Meteor {
        let what = "`meteor` is reckoned without WordNet's synonyms, so that scores may be lower";
        context.assumed(node, what, "lower the threshold if a case fails for a synonym");
    }
    let made = values::made(node, kind, context)?;
    let mut helpers = helpers(node, context);
    let mut made = with_weight(made, node, context);
    let threshold = context.number(node, "threshold");
    made.threshold = threshold.or_else(|| promptfoo_threshold(kind.test));
    if searches {
        helpers.judge.get_or_insert_with(|| options::search_judge(&context.at(node), context));
        made.judging.rubric_prompt = Some(options::search_prompt());
    }
    let is_carried = |key: &str| node.get(key).filter(|_| takes(kind, key));
    let config = is_carried("config").map(Node::to_json).filter(|it| !it.is_null());
    made.config = config;
    if let Some(written) = is_carried("transform") {
        made.transform = Some(transform::read(written, "a transform", context)?);
    }
    if let Some(written) = is_carried("contextTransform") {
        let code = transform::read(written, "a transform of a context", context)?;
        made.judging.context_transform = Some(code);
    }
    if kind.test == AssertionTest::LlmRubric && node.get("rubricPrompt").is_some() {
        made.judging =
            JudgeOptions { rubric_prompt: helpers.rubric_prompt.clone(), ..made.judging };
    }
    if let Some(similar) = helpers.similar.take() {
        made = adapted::as_similar(&made, &similar, context);
    }
    Some((made, Helpers { rubric_prompt: None, ..helpers }))
}

/// The assertion with how much it counts, and under which name.
fn with_weight(assertion: Assertion, node: &Node, context: &mut Context<'_>) -> Assertion {
    let weight = context.number(node, "weight");
    context.weights.see(node, weight);
    Assertion {
        weight,
        metric: text(node, "metric").map(|it| nunjucks::template(&it)),
        ..assertion
    }
}

/// Whether an assertion may have a field that not all have.
fn takes(kind: AssertionKind, key: &str) -> bool {
    match key {
        "config" => kind.test.runs_code(),
        "transform" => kind.test.takes_transform(),
        "contextTransform" => matches!(
            kind.test,
            AssertionTest::ContextRecall
                | AssertionTest::ContextRelevance
                | AssertionTest::ContextFaithfulness
        ),
        "rubricPrompt" => kind.test == AssertionTest::LlmRubric,
        key => CARRIED.contains(&key),
    }
}

fn note_fields(node: &Node, kind: AssertionKind, context: &mut Context<'_>) {
    for entry in node.entries().iter().filter(|it| !takes(kind, &it.key)) {
        let at = context.source.at(&entry.key_span);
        match entry.key.as_str() {
            // They are for other assertions.
            key @ ("config" | "contextTransform") => {
                context.ignored_key(at, key, Table::Assertion, String::new());
            }
            key => context.unused_key(at, key, Table::Assertion),
        }
    }
}

fn set(
    node: &Node,
    kind: AssertionKind,
    context: &mut Context<'_>,
) -> Option<(Assertion, Helpers)> {
    const KNOWN: &[&str] = &["type", "assert", "threshold", "weight", "metric"];
    context.unused_keys(node, Table::AssertSet, KNOWN);
    let Read { assertions, helpers } =
        node.get("assert").map(|it| read(it, context)).unwrap_or_default();
    if assertions.is_empty() {
        context.lost(node, "an `assert-set` with nothing in it", ADVICE);
        return None;
    }
    let weight = context.number(node, "weight");
    context.weights.see(node, weight);
    let made = Assertion {
        weight,
        threshold: context.number(node, "threshold"),
        metric: text(node, "metric").map(|it| nunjucks::template(&it)),
        members: assertions,
        ..Assertion::new(kind)
    };
    Some((made, helpers))
}

/// Whether an assertion, or one of its members, is like this.
pub(super) fn any(assertions: &[Assertion], is: &dyn Fn(&Assertion) -> bool) -> bool {
    assertions.iter().any(|it| is(it) || any(&it.members, is))
}

/// The templates in the values of an assertion and of its members.
pub(super) fn templates(assertion: &Assertion) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    if !assertion.kind.test.runs_code() {
        let value = assertion.value.iter();
        let items =
            value.flat_map(|it| it.as_array().map_or(std::slice::from_ref(it), Vec::as_slice));
        texts.extend(items.filter_map(|it| it.as_str().map(ToOwned::to_owned)));
    }
    texts.extend(assertion.members.iter().flat_map(templates));
    texts.retain(|it| template::is_template(it));
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assertions_of_adapters_are_known_by_their_names() {
        assert!(is_foreign("not-classifier") && is_foreign("search-rubric"));
        assert!(adapted::is_adapted("moderation") && !adapted::is_adapted("similar"));
    }

    #[test]
    fn no_foreign_name_is_known() {
        let known: Vec<_> = FOREIGN.iter().filter(|(name, _)| known(name).is_some()).collect();
        assert!(known.is_empty(), "{known:?}");
    }
}
