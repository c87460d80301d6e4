//! Assertions that an adapter scores: moderation, classifiers, embeddings that no backend makes, services of the
//! user's own.

use probity_core::{
    criteria::{Assertion, AssertionKind, AssertionTest},
    located::{Node, NodeValue},
};
use serde_json::{Map, Value, json};

use crate::{
    cases::text,
    draft::Draft,
    promptfoo::{Context, adapters::can_fill, env, options::Helpers, providers::Place, transform},
};

const CLASSIFIER: &str = "classifier";
const MODERATION: &str = "moderation";
const WEBHOOK: &str = "webhook";
/// Who moderates unless somebody is named.
const USUAL_MODERATOR: &str = "openai:moderation:omni-moderation-latest";

/// Whether an adapter scores an assertion of this name.
pub(in crate::promptfoo) fn is_adapted(name: &str) -> bool {
    let plain = name.strip_prefix("not-").unwrap_or(name);
    [CLASSIFIER, MODERATION, WEBHOOK].contains(&plain)
}

/// The assertion as one that a scorer decides. Who is asked may be said by the test.
pub(super) fn made(name: &str, node: &Node, context: &mut Context<'_>) -> Option<Assertion> {
    let plain = name.strip_prefix("not-").unwrap_or(name);
    let value = node.get("value").map(Node::to_json).filter(|it| !it.is_null());
    let mut config = match plain {
        CLASSIFIER => {
            let threshold: Option<f64> = context.number(node, "threshold");
            let mut config = json!({ "threshold": threshold.unwrap_or(1.0) });
            if let Some(label) = value {
                config["label"] = label;
            }
            config
        }
        MODERATION => json!({ "categories": value.unwrap_or_else(|| json!([])) }),
        _ => {
            let Some(Value::String(url)) = value else {
                context.lost(node, "assertion `webhook` without an address", "give it one");
                return None;
            };
            if !can_fill(&url) {
                let what = format!("the template `{url}` of an assertion `webhook`");
                context.lost(node, what, "write it with variables alone");
                return None;
            }
            let place = Place { backend: WEBHOOK, what: "the address under" };
            json!({ "url": place.url(&url, &node.span, context) })
        }
    };
    if let Some(asked) = node.get("provider").and_then(|it| asked(it, context)) {
        let id = asked.get("provider").and_then(Value::as_str).unwrap_or_default();
        if !can_ask(plain, id) {
            let what = format!("assertion `{name}` by `{id}`");
            context.lost(node, what, "write a scorer of your own, see docs/scorers.md");
            return None;
        }
        extend(&mut config, &asked);
    }
    let kind = AssertionKind { test: AssertionTest::Scorer, negated: name != plain };
    let adapter = match plain {
        CLASSIFIER => "classifier.mjs",
        MODERATION => "moderation.mjs",
        _ => "webhook.mjs",
    };
    context.adapter(adapter);
    let in_address =
        config.get("url").and_then(Value::as_str).map(env::names_in).unwrap_or_default();
    let seen: Vec<&str> =
        variables(adapter).iter().copied().chain(in_address.iter().map(String::as_str)).collect();
    let scorer = context.draft.adapted_scorer(adapter, &seen);
    Some(Assertion {
        value: Some(Value::from(scorer)),
        config: Some(config),
        ..Assertion::new(kind)
    })
}

/// Whether the adapter of an assertion can ask a provider.
fn can_ask(assertion: &str, id: &str) -> bool {
    let starts = |all: &[&str]| all.iter().any(|it| id.starts_with(it));
    let is_script = [".js", ".mjs", ".cjs"].iter().any(|it| id.ends_with(it));
    match assertion {
        CLASSIFIER => is_script || starts(CLASSIFIERS),
        MODERATION => starts(&["openai:moderation", "replicate:moderation:"]),
        _ => true,
    }
}

/// Providers that classify texts.
const CLASSIFIERS: &[&str] = &[
    "huggingface:text-classification:",
    "huggingface:token-classification:",
    "huggingface:token-extraction:",
];

/// Variables that an adapter looks at.
fn variables(adapter: &str) -> &'static [&'static str] {
    match adapter {
        "moderation.mjs" => {
            &["OPENAI_API_KEY", "OPENAI_BASE_URL", "REPLICATE_API_TOKEN", "REPLICATE_API_KEY"]
        }
        "classifier.mjs" => &["HF_TOKEN", "HF_API_TOKEN"],
        "similar.mjs" => &[
            "HF_TOKEN",
            "HF_API_TOKEN",
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "AWS_REGION",
            "OPENAI_API_KEY",
        ],
        _ => &[],
    }
}

/// Who is asked, as an adapter is told: an id, or the path of a file, and settings without keys.
fn asked(node: &Node, context: &mut Context<'_>) -> Option<Map<String, Value>> {
    let id = node.as_str().map(ToOwned::to_owned).or_else(|| text(node, "id"))?;
    let mut told = Map::new();
    let path = id.strip_prefix("file://").unwrap_or(&id);
    let provider = match probity_load::function::is_code(path) {
        false => id,
        true => match transform::reference(path.trim_start_matches("./"), context) {
            Ok(path) => format!("file://{path}"),
            Err(error) => {
                context.unreadable(node, &error);
                return None;
            }
        },
    };
    told.insert("provider".to_owned(), Value::from(provider.as_str()));
    if let Some(config) = node.get("config").filter(|it| !matches!(it.value, NodeValue::Null)) {
        let config = crate::promptfoo::providers::without_keys(config, &provider, context);
        told.insert("options".to_owned(), config);
    }
    Some(told)
}

fn extend(config: &mut Value, with: &Map<String, Value>) {
    if let Value::Object(config) = config {
        config.extend(with.clone());
    }
}

/// Who classifies or embeds texts by an adapter, if a provider is such a one.
pub(in crate::promptfoo) fn helper(
    node: &Node,
    embeds: bool,
    context: &mut Context<'_>,
) -> Option<Map<String, Value>> {
    let id = node.as_str().map(ToOwned::to_owned).or_else(|| text(node, "id"))?;
    let starts = |all: &[&str]| all.iter().any(|it| id.starts_with(it));
    let is_adapted = match embeds {
        false => starts(CLASSIFIERS),
        true => {
            starts(&[
                "huggingface:sentence-similarity:",
                "sagemaker:embedding:",
                "transformers:feature-extraction:",
                "transformers:embeddings:",
            ]) || [".js", ".mjs", ".cjs"].iter().any(|it| id.ends_with(it))
        }
    };
    if !is_adapted {
        return None;
    }
    asked(node, context)
}

/// Completes assertions with whom a test names for them.
pub(in crate::promptfoo) fn completed(
    assertion: &Assertion,
    helpers: &Helpers,
    context: &mut Context<'_>,
) -> Assertion {
    let mut made = assertion.clone();
    made.members = made.members.iter().map(|it| completed(it, helpers, context)).collect();
    if let (true, Some(similar)) = (made.kind.test.is_similar(), &helpers.similar) {
        return as_similar(&made, similar, context);
    }
    if made.kind.test != AssertionTest::Scorer {
        return made;
    }
    let Some(config) = made.config.as_mut().filter(|it| it.get("provider").is_none()) else {
        return made;
    };
    match made.value.as_ref().and_then(Value::as_str) {
        Some(CLASSIFIER) => {
            if let Some(classifier) = &helpers.classifier {
                extend(config, classifier);
            }
        }
        Some(MODERATION) => config["provider"] = Value::from(USUAL_MODERATOR),
        Some(_) | None => {}
    }
    made
}

/// `similar` as an assertion that a scorer decides.
pub(super) fn as_similar(
    assertion: &Assertion,
    similar: &Map<String, Value>,
    context: &mut Context<'_>,
) -> Assertion {
    context.adapter("similar.mjs");
    let scorer = context.draft.adapted_scorer("similar.mjs", variables("similar.mjs"));
    let mut config = json!({
        "expected": assertion.value.clone().unwrap_or_default(),
        "threshold": assertion.threshold.unwrap_or(0.75),
    });
    extend(&mut config, similar);
    Assertion {
        kind: AssertionKind { test: AssertionTest::Scorer, ..assertion.kind },
        value: Some(Value::from(scorer)),
        threshold: None,
        config: Some(config),
        ..assertion.clone()
    }
}

/// Whether an assertion is one of a classifier that nobody is named for.
pub(in crate::promptfoo) fn lacks_classifier(assertion: &Assertion, draft: &Draft) -> bool {
    let is_ours = |name: &str| draft.scorers.iter().any(|it| it.is_adapter && it.name == name);
    assertion.kind.test == AssertionTest::Scorer
        && assertion.value.as_ref().and_then(Value::as_str) == Some(CLASSIFIER)
        && is_ours(CLASSIFIER)
        && assertion.config.as_ref().is_none_or(|it| it.get("provider").is_none())
}
