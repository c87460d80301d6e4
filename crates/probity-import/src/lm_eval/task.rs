//! A task, with all that its keys say.

use probity_core::{
    located::{Node, NodeValue},
    request::Sampling,
};
use serde_json::Value;

use super::{
    config::{Field, count_of, function, one_or_many, text_of},
    scoring::{self, Scoring},
};
use crate::{
    note::{At, Notes},
    source::Source,
};

/// What a task asks of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A text.
    Generate,
    /// One of several choices.
    Choose,
}

/// A task.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) name: String,
    pub(super) at: At,
    pub(super) kind: Kind,
    pub(super) data: Data,
    pub(super) text: Field,
    pub(super) target: Option<Field>,
    pub(super) choices: Option<Field>,
    pub(super) description: Option<Field>,
    pub(super) prefix: Option<Field>,
    pub(super) shots: Shots,
    pub(super) sampling: Sampling,
    pub(super) scoring: Scoring,
}

/// Where documents come from.
#[derive(Clone, Debug)]
pub(super) struct Data {
    pub(super) at: At,
    /// The name of the dataset, or the format of files.
    pub(super) path: String,
    pub(super) config: Option<String>,
    /// Files of the documents, by their splits; one without a split holds the documents that are asked.
    pub(super) files: Vec<(Option<String>, String)>,
    /// The split that is asked.
    pub(super) split: String,
    /// Whether a function of Python makes or changes the documents.
    pub(super) is_made: bool,
}

/// Examples that go before a question.
#[derive(Clone, Debug)]
pub(super) struct Shots {
    pub(super) at: At,
    pub(super) count: usize,
    pub(super) from: ShotsFrom,
    /// Whether the first ones are taken; they are drawn otherwise.
    pub(super) is_first: bool,
    pub(super) text: Option<Field>,
    pub(super) target: Option<Field>,
    pub(super) choices: Option<Field>,
    /// What stands between a question and its answer.
    pub(super) answer_delimiter: String,
    /// What stands between examples.
    pub(super) delimiter: String,
}

#[derive(Clone, Debug)]
pub(super) enum ShotsFrom {
    Split(String),
    Listed(Vec<Node>),
}

/// Keys that change nothing of what is asked and scored.
const QUIET: &[&str] = &[
    "task",
    "task_alias",
    "tag",
    "group",
    "group_alias",
    "metadata",
    "dataset_path",
    "dataset_name",
    "dataset_kwargs",
    "training_split",
    "validation_split",
    "test_split",
    "fewshot_split",
    "output_type",
    "doc_to_text",
    "doc_to_target",
    "doc_to_choice",
    "description",
    "gen_prefix",
    "num_fewshot",
    "fewshot_config",
    "fewshot_delimiter",
    "target_delimiter",
    "generation_kwargs",
    "filter_list",
    "metric_list",
    "repeats",
    "process_results",
    "process_docs",
    "custom_dataset",
    "should_decontaminate",
    "doc_to_decontamination_query",
    "unsafe_code",
    "aggregate_metric_list",
    "task_list",
];

impl Task {
    /// Reads a task; none if it cannot be asked.
    pub(super) fn read(node: &Node, source: &Source, notes: &mut Notes) -> Option<Self> {
        let at = source.at(&node.span);
        let name = text_of(node, "task").unwrap_or("task").to_owned();
        if let Some(class) = node.get("class") {
            let what = format!("task `{name}` is a class of Python");
            notes.lost(source.at(&class.span), what, "write its cases as a dataset");
            return None;
        }
        for entry in node.entries() {
            if !QUIET.contains(&entry.key.as_str()) && !matches!(entry.node.value, NodeValue::Null)
            {
                let what = format!("`{}` of task `{name}` has no counterpart", entry.key);
                notes.lost(source.at(&entry.key_span), what, "leave it out, or write it by hand");
            }
        }
        let kind = kind(node, &name, source, notes)?;
        let Some(text) = Field::of(node, "doc_to_text", source) else {
            notes.lost(at, format!("task `{name}` has no `doc_to_text`"), "add it");
            return None;
        };
        let shots = Shots::read(node, source, notes);
        Some(Self {
            kind,
            data: Data::read(node, source, notes),
            text,
            target: Field::of(node, "doc_to_target", source),
            choices: Field::of(node, "doc_to_choice", source),
            description: Field::of(node, "description", source),
            prefix: Field::of(node, "gen_prefix", source),
            sampling: sampling(node, kind, &shots, source, notes),
            scoring: scoring::read(node, kind, source, notes),
            shots,
            name,
            at,
        })
    }
}

fn kind(node: &Node, name: &str, source: &Source, notes: &mut Notes) -> Option<Kind> {
    match text_of(node, "output_type").unwrap_or("generate_until") {
        "generate_until" => Some(Kind::Generate),
        "multiple_choice" => Some(Kind::Choose),
        other => {
            let at = node.get("output_type").unwrap_or(node);
            let what = format!("task `{name}` is of type `{other}`, which needs log probabilities");
            notes.lost(source.at(&at.span), what, "run it with lm-eval");
            None
        }
    }
}

impl Data {
    fn read(node: &Node, source: &Source, notes: &mut Notes) -> Self {
        let path = text_of(node, "dataset_path").unwrap_or_default().to_owned();
        let at = node.get("dataset_path").unwrap_or(node);
        let at = source.at(&at.span);
        let split = ["test_split", "validation_split", "training_split", "fewshot_split"];
        let split = split.iter().find_map(|key| text_of(node, key)).unwrap_or("test").to_owned();
        let makers = ["process_docs", "custom_dataset"];
        let changed =
            makers.iter().find_map(|key| node.get(key).filter(|it| function(it).is_some()));
        if let Some(changed) = changed {
            let named = function(changed).unwrap_or_default();
            let what = format!(
                "documents are taken as they are after the Python function `{named}`, which is not run"
            );
            let advice = "export them as docs/coming-from/lm-eval.md says";
            notes.assumed(source.at(&changed.span), what, advice);
        }
        let files = node.get("dataset_kwargs").and_then(|it| it.get("data_files"));
        Self {
            at,
            path,
            config: text_of(node, "dataset_name").map(ToOwned::to_owned),
            files: files.map(data_files).unwrap_or_default(),
            split,
            is_made: changed.is_some(),
        }
    }
}

/// The files that `data_files` names.
fn data_files(node: &Node) -> Vec<(Option<String>, String)> {
    let named = |split: Option<&str>, node: &Node| {
        let files = one_or_many(node).iter().filter_map(Node::as_str);
        files.map(|it| (split.map(ToOwned::to_owned), it.to_owned())).collect::<Vec<_>>()
    };
    match &node.value {
        NodeValue::Object(splits) => {
            splits.iter().flat_map(|it| named(Some(it.key.as_str()), &it.node)).collect()
        }
        NodeValue::Null
        | NodeValue::Bool(_)
        | NodeValue::Number(_)
        | NodeValue::String(_)
        | NodeValue::Array(_) => named(None, node),
    }
}

impl Shots {
    fn read(node: &Node, source: &Source, notes: &mut Notes) -> Self {
        let config = node.get("fewshot_config");
        let within = |key: &'static str| config.and_then(|it| Field::of(it, key, source));
        let delimiter = |key: &str, usual: &str| {
            let own = config.and_then(|it| text_of(it, key));
            own.or_else(|| text_of(node, key)).unwrap_or(usual).to_owned()
        };
        let count = count_of(node, "num_fewshot").unwrap_or(0);
        let way = config.and_then(|it| text_of(it, "sampler")).unwrap_or("default");
        let samples = config.and_then(|it| it.get("samples"));
        let at = source.at(&samples.or(config).or(node.get("num_fewshot")).unwrap_or(node).span);
        let usually = ["fewshot_split", "training_split", "validation_split", "test_split"];
        let own = config.and_then(|it| text_of(it, "split"));
        let split = own.or_else(|| text_of(node, "fewshot_split"));
        let usual = || usually.iter().find_map(|key| text_of(node, key)).unwrap_or("train");
        let from = match samples.filter(|_| split.is_none()) {
            Some(samples) => {
                if let Some(name) = function(samples).filter(|_| count > 0) {
                    let what = format!("the examples are made by the Python function `{name}`");
                    notes.lost(at.clone(), what, "write them in `samples`");
                }
                ShotsFrom::Listed(samples.items().to_vec())
            }
            None => ShotsFrom::Split(split.unwrap_or_else(usual).to_owned()),
        };
        if count > 0 && !matches!(way, "default" | "first_n") {
            let what = format!("the sampler `{way}` of examples has no counterpart");
            notes.lost(at.clone(), what, "the first ones are taken");
        }
        Self {
            at,
            count,
            from,
            is_first: way != "default",
            text: within("doc_to_text"),
            target: within("doc_to_target"),
            choices: within("doc_to_choice"),
            answer_delimiter: delimiter("target_delimiter", " "),
            delimiter: delimiter("fewshot_delimiter", "\n\n"),
        }
    }
}

/// The longest answer where a task does not say.
const USUAL_TOKENS: u64 = 256;

fn sampling(
    node: &Node,
    kind: Kind,
    shots: &Shots,
    source: &Source,
    notes: &mut Notes,
) -> Sampling {
    let mut sampling = Sampling { temperature: Some(0.0), ..Sampling::default() };
    if kind == Kind::Choose {
        return sampling;
    }
    sampling.max_tokens = Some(USUAL_TOKENS);
    sampling.stop = vec![shots.delimiter.clone()];
    let mut is_greedy = false;
    for entry in node.get("generation_kwargs").map(Node::entries).unwrap_or_default() {
        let value = entry.node.to_json();
        match (entry.key.as_str(), &value) {
            (_, Value::Null) => {}
            ("until", _) => {
                let texts = one_or_many(&entry.node).iter().filter_map(Node::as_str);
                sampling.stop = texts.filter(|it| !it.is_empty()).map(Into::into).collect();
            }
            ("temperature", _) if value.is_number() => sampling.temperature = value.as_f64(),
            ("top_p", _) if value.is_number() => sampling.top_p = value.as_f64(),
            ("do_sample", Value::Bool(samples)) => is_greedy = !samples,
            ("max_gen_toks" | "max_new_tokens" | "max_tokens", _) if value.is_u64() => {
                sampling.max_tokens = value.as_u64();
            }
            ("num_beams" | "top_k", Value::Number(one)) if one.as_u64() == Some(1) => {}
            (key, _) => {
                let what = format!("`{key}` of `generation_kwargs` has no counterpart");
                notes.lost(
                    source.at(&entry.key_span),
                    what,
                    "set it in `extra_body` of the backend",
                );
            }
        }
    }
    if is_greedy {
        sampling.temperature = Some(0.0);
        sampling.top_p = None;
    }
    sampling
}
