//! lm-eval's samples: a lane for each task, and its results file for what is said of all of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use probity_core::{case::TestCase, record::LaneStatus};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::names::{Names, usable};
use crate::wire::text_of;

use super::{
    ImportedLane, ImportedResult, ImportedRun, Options, ResultsError, Tool, carried,
    decided::{Deciding, Given, Graded},
    place::Text,
};

/// One document with one filter.
#[derive(Debug, Deserialize)]
struct Sample {
    doc_id: u64,
    #[serde(default)]
    doc: Value,
    #[serde(default)]
    target: Value,
    arguments: Value,
    resps: Value,
    #[serde(default)]
    filtered_resps: Value,
    #[serde(default)]
    filter: Option<String>,
    /// The names of the fields that are metrics; older versions do not say them.
    #[serde(default)]
    metrics: Option<Vec<String>>,
    /// All other fields: metrics stand among them under their names.
    #[serde(flatten)]
    others: Map<String, Value>,
}

/// What is said of a whole run.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Results {
    config: RunConfig,
    configs: BTreeMap<String, TaskConfig>,
    model_name: Option<String>,
    model_source: Option<String>,
    lm_eval_version: Option<String>,
    /// Seconds since 1970.
    date: Option<f64>,
    total_evaluation_time_seconds: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RunConfig {
    model: Option<String>,
    model_args: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TaskConfig {
    metric_list: Vec<MetricConfig>,
}

#[derive(Debug, Deserialize)]
struct MetricConfig {
    metric: Value,
}

/// Files of samples, with their texts.
pub(super) type Files = Vec<(PathBuf, String)>;

/// A file of samples, and what the file of results beside it says.
pub(super) fn samples(text: Text<'_>, options: &Options) -> Result<ImportedRun, ResultsError> {
    let beside = beside(text.path);
    let results: Results = match &beside {
        Some((path, beside)) => Text::of(path, beside).decode()?,
        None => Results::default(),
    };
    run(&results, &[text], options, text.stem())
}

/// A file of results, and the samples that were found beside it.
pub(super) fn results(
    text: Text<'_>,
    files: &Files,
    options: &Options,
) -> Result<ImportedRun, ResultsError> {
    if files.is_empty() {
        let said = "there are no samples_*.jsonl beside it: run lm-eval with --log_samples";
        return Err(text.wrong("results", said));
    }
    let results: Results = text.decode()?;
    let texts: Vec<Text<'_>> = files.iter().map(|(path, text)| Text::of(path, text)).collect();
    run(&results, &texts, options, text.stem())
}

/// The samples that belong to a file of results: those of the same time.
pub(super) fn sample_files(path: &Path) -> Result<Files, ResultsError> {
    let unreadable = |path: &Path| {
        let path = path.to_owned();
        move |source| ResultsError::Unreadable { path, source }
    };
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let time = stem.strip_prefix("results_").unwrap_or("");
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable(folder))? {
        let path = entry.map_err(unreadable(folder))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("samples_") && name.ends_with(&format!("{time}.jsonl")) {
            let text = fs::read_to_string(&path).map_err(unreadable(&path))?;
            files.push((path, text));
        }
    }
    files.sort();
    Ok(files)
}

/// The file of results of the same time as a file of samples.
fn beside(path: &Path) -> Option<(PathBuf, String)> {
    let time = time_of(path)?;
    let path = path.with_file_name(format!("results_{time}.json"));
    let text = fs::read_to_string(&path).ok()?;
    Some((path, text))
}

/// The time in the name of a file: `samples_TASK_2024-05-28T06-57-18.640144.jsonl`.
fn time_of(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?.strip_suffix(".jsonl")?;
    let (_, time) = name.rsplit_once('_')?;
    time.contains('T').then(|| time.to_owned())
}

/// The task in the name of a file.
fn task_of(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let name = stem.strip_prefix("samples_").unwrap_or(&stem);
    match name.rsplit_once('_') {
        Some((task, time))
            if time.contains('T') && time.starts_with(|c: char| c.is_ascii_digit()) =>
        {
            task.to_owned()
        }
        Some(_) | None => name.to_owned(),
    }
}

fn run(
    results: &Results,
    texts: &[Text<'_>],
    options: &Options,
    stem: String,
) -> Result<ImportedRun, ResultsError> {
    let model = model(results);
    let (mut lanes, mut notes) = (Vec::new(), Vec::new());
    let mut tasks = BTreeSet::new();
    let mut names = Names::default();
    for text in texts {
        let task = task_of(text.path);
        if !tasks.insert(task.clone()) {
            let said = format!(
                "there are several of `{task}`: import one of them, or the results_TIME.json of its time"
            );
            return Err(text.wrong("samples", said));
        }
        let listed = results.configs.get(&task).map_or(&[][..], |it| &it.metric_list);
        let listed: Vec<&str> = listed.iter().filter_map(|it| it.metric.as_str()).collect();
        let (results, found) = lane(*text, &listed, options)?;
        let lane = ImportedLane {
            runner: names.of(&task, carried::RUNNER),
            variant: None,
            backend: usable(model.as_deref().unwrap_or("unknown"), "model"),
            model: model.clone(),
            status: LaneStatus::Complete,
            planned: results.len() as u64,
            repeat: 1,
            results,
            dataset: None,
        };
        notes.extend(found.into_iter().map(|it| format!("{task}: {it}")));
        lanes.push(lane);
    }
    #[expect(clippy::cast_possible_truncation, reason = "a time of our days")]
    let started_ms = results.date.map(|it| (it * 1000.0) as i64);
    let seconds = match &results.total_evaluation_time_seconds {
        Some(Value::String(text)) => text.parse::<f64>().ok(),
        Some(value) => value.as_f64(),
        None => None,
    };
    #[expect(clippy::cast_possible_truncation, reason = "a time of our days")]
    let finished_ms =
        started_ms.zip(seconds).map(|(from, took)| from.saturating_add((took * 1000.0) as i64));
    let suite = match lanes.as_slice() {
        [lane] => lane.runner.clone(),
        _ => stem,
    };
    let version = results.lm_eval_version.clone();
    Ok(ImportedRun { tool: Tool::LmEval, version, suite, started_ms, finished_ms, lanes, notes })
}

/// The model: its name, or the arguments that choose it.
fn model(results: &Results) -> Option<String> {
    let of_args = || match &results.config.model_args {
        Value::String(args) => {
            let named = |it: &str| {
                Some(it.strip_prefix("pretrained=").or(it.strip_prefix("model="))?.to_owned())
            };
            args.split(',').find_map(named)
        }
        Value::Object(args) => {
            let name = args.get("pretrained").or_else(|| args.get("model"))?;
            Some(name.as_str()?.to_owned())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => None,
    };
    let named = results.model_name.clone().filter(|it| !it.is_empty());
    named
        .or_else(of_args)
        .or_else(|| results.model_source.clone())
        .or_else(|| results.config.model.clone())
}

/// The results of a task, and what has to be said about them.
fn lane(
    text: Text<'_>,
    listed: &[&str],
    options: &Options,
) -> Result<(Vec<ImportedResult>, Vec<String>), ResultsError> {
    let mut documents: BTreeMap<u64, (ImportedResult, Vec<Given>)> = BTreeMap::new();
    let mut deciding = Deciding::default();
    for text in text.lines() {
        let sample: Sample = text.decode()?;
        let given = sample.scores(listed);
        deciding.see(&given);
        match documents.get_mut(&sample.doc_id) {
            // Each filter has a line of its own.
            Some((_, known)) => known.extend(given),
            None => {
                let id = sample.doc_id;
                documents.insert(id, (sample.result(text)?, given));
            }
        }
    }
    let by = deciding.by(options.decided_by.as_deref(), text.path)?.map(ToOwned::to_owned);
    let results = documents.into_values().map(|(result, given)| {
        let (outcome, scores) = deciding.judge(given, by.as_deref());
        ImportedResult { outcome, scores, ..result }
    });
    let results: Vec<ImportedResult> = results.collect();
    let notes = deciding.notes(by.as_deref(), &results);
    Ok((results, notes))
}

impl Sample {
    /// Its metrics: those that it names, those that the task lists, or all numbers.
    fn scores(&self, listed: &[&str]) -> Vec<Given> {
        let filter = self.filter.as_deref().filter(|it| *it != "none");
        let named: Option<Vec<&str>> =
            self.metrics.as_ref().map(|it| it.iter().map(String::as_str).collect());
        let is_metric = |name: &str, value: &Value| match (&named, listed) {
            (Some(named), _) => named.contains(&name),
            (None, []) => name != "doc_id" && (value.is_number() || value.is_boolean()),
            (None, listed) => listed.contains(&name),
        };
        let metrics = self.others.iter().filter(|(name, value)| is_metric(name, value));
        metrics
            .map(|(name, value)| Given {
                name: filter.map_or_else(|| name.clone(), |it| format!("{name},{it}")),
                value: Graded::of(value),
                reason: None,
            })
            .collect()
    }

    fn result(self, text: Text<'_>) -> Result<ImportedResult, ResultsError> {
        let asked = self.asked();
        let Some((prompt, _)) = asked.first() else {
            return Err(text.wrong("arguments", "there is no request"));
        };
        let request = crate::wire::chat::request_of(prompt);
        let reply = self.reply(&asked);
        let target = Some(("target".to_owned(), self.target)).filter(|it| !it.1.is_null());
        let case = TestCase {
            id: format!("doc-{}", self.doc_id),
            prompt_vars: target.into_iter().collect(),
            notes: Some(self.doc.to_string()).filter(|_| !self.doc.is_null()),
            ..carried::case_of(&request)
        };
        Ok(ImportedResult { reply, ..ImportedResult::new(case, request) })
    }

    /// The requests: what goes before, and the continuation that was looked at.
    fn asked(&self) -> Vec<(String, Option<String>)> {
        let pair = |first: Option<&Value>, second: Option<&Value>| {
            Some((text_of(first?), second.and_then(Value::as_str).map(ToOwned::to_owned)))
        };
        match &self.arguments {
            // Newer versions name them.
            Value::Object(all) => {
                all.values().filter_map(|it| pair(it.get("arg_0"), it.get("arg_1"))).collect()
            }
            Value::Array(all) => all.iter().filter_map(|it| pair(it.get(0), it.get(1))).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
        }
    }

    /// What the model wrote or, where continuations were compared, the likeliest of them.
    fn reply(&self, asked: &[(String, Option<String>)]) -> Option<String> {
        let generated = |it: &Value| {
            let mut it = it;
            while let Some(first) = it.as_array().and_then(|it| it.first()) {
                it = first;
            }
            it.as_str().map(ToOwned::to_owned)
        };
        if asked.iter().all(|(_, continuation)| continuation.is_none()) {
            return generated(&self.resps).or_else(|| generated(&self.filtered_resps));
        }
        let likelihood = |it: &Value| {
            let mut it = it;
            while let Some(first) = it.as_array().and_then(|it| it.first()) {
                it = first;
            }
            it.as_f64().or_else(|| it.as_str()?.parse().ok())
        };
        let all = self.resps.as_array()?.iter().map(likelihood);
        let best = all
            .enumerate()
            .filter_map(|(at, it)| Some((at, it?)))
            .max_by(|a, b| a.1.total_cmp(&b.1))?;
        asked.get(best.0)?.1.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_say_task_and_time() {
        let path = Path::new("x/samples_gsm8k_cot_2024-05-28T06-57-18.640144.jsonl");
        assert_eq!(task_of(path), "gsm8k_cot");
        assert_eq!(time_of(path).as_deref(), Some("2024-05-28T06-57-18.640144"));
        assert_eq!(task_of(Path::new("samples_arc_easy.jsonl")), "arc_easy");
    }
}
