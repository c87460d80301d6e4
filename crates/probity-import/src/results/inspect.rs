//! Inspect's logs: a lane for the task on its model.

use std::{cell::Cell, path::Path};

use probity_core::{
    case::TestCase,
    record::{LaneStatus, Usage},
    request::Request,
};
use serde_json::Value;

use super::{
    ImportedLane, ImportedResult, ImportedRun, Options, Outcome, ResultsError, Tool,
    archive::{Archive, MOST_BYTES},
    carried,
    decided::{Deciding, Given, Graded},
    numbers::constants_as_null,
    place::Text,
    time,
};
use crate::names::{Names, usable};
use crate::wire::{
    chat::asked,
    inspect::{Log, Sample, SampleScore, Scorer},
    text_of,
};

/// What stands for a long text, before the name of it.
const ATTACHMENT: &str = "attachment://";

/// Bytes of long texts that are put back in all: a name of a few letters may stand for a megabyte, often.
const MOST_RESTORED: usize = 1 << 30;

/// A log in JSON.
pub(super) fn whole(text: Text<'_>, options: &Options) -> Result<ImportedRun, ResultsError> {
    let mut log: Log = text.decode()?;
    let samples = log.samples.take().unwrap_or_default();
    let mut reading = Reading::new(&log);
    for sample in samples {
        reading.add(sample, text)?;
    }
    reading.finish(log, options, text.path)
}

/// A log in an archive; none if it is an archive of something else.
pub(super) fn archive(
    path: &Path,
    bytes: &[u8],
    options: &Options,
) -> Result<Option<ImportedRun>, ResultsError> {
    let archive = Archive::open(path, bytes)?;
    // One that was cut off has only what was known when it began.
    let header = archive.find("header.json").or_else(|| archive.find("_journal/start.json"));
    let Some(header) = header else { return Ok(None) };
    let is_begun = header.name.starts_with("_journal");
    let text = archive.text(header, MOST_BYTES)?;
    let text = constants_as_null(&text);
    let text = Text { path, member: Some(&header.name), line: 1, content: &text };
    let log: Log = match is_begun {
        false => text.decode()?,
        true => begun(text)?,
    };
    let mut reading = Reading::new(&log);
    for member in &archive.members {
        let is_json = Path::new(&member.name).extension().is_some_and(|it| it == "json");
        if is_json && member.name.starts_with("samples/") {
            let text = archive.text(member, MOST_BYTES)?;
            let text = constants_as_null(&text);
            let text = Text { path, member: Some(&member.name), line: 1, content: &text };
            reading.add(text.decode()?, text)?;
        }
    }
    reading.finish(log, options, path).map(Some)
}

/// The log of which only the beginning was written.
fn begun(text: Text<'_>) -> Result<Log, ResultsError> {
    #[derive(serde::Deserialize)]
    struct Start {
        version: u32,
        eval: crate::wire::inspect::Spec,
    }
    let Start { version, eval } = text.decode()?;
    Ok(Log {
        version,
        status: "started".to_owned(),
        eval,
        plan: None,
        results: None,
        stats: crate::wire::inspect::Stats::default(),
        error: None,
        samples: None,
    })
}

/// Results that are being read.
struct Reading {
    /// The scorers in the order of the log.
    scorers: Vec<String>,
    deciding: Deciding,
    read: Vec<(ImportedResult, Vec<Given>)>,
    names: Names,
    repeat: u32,
    /// Bytes that may still be put back.
    left: Cell<usize>,
}

impl Reading {
    fn new(log: &Log) -> Self {
        let of_results = log.results.iter().flat_map(|it| &it.scores).map(|it| it.name.clone());
        let of_task = log.eval.scorers.iter().flatten().map(|it| it.name.clone());
        let scorers = of_results.chain(of_task).collect();
        let (deciding, names) = (Deciding::default(), Names::default());
        let left = Cell::new(MOST_RESTORED);
        Self { scorers, deciding, read: Vec::new(), names, repeat: 1, left }
    }

    fn add(&mut self, mut sample: Sample, text: Text<'_>) -> Result<(), ResultsError> {
        let Some(epoch) = sample.epoch.checked_sub(1) else {
            return Err(text.wrong("epoch", "epochs are counted from 1"));
        };
        self.repeat = self.repeat.max(sample.epoch);
        let given = self.scores(&sample);
        self.deciding.see(&given);
        if !restore(&mut sample, &self.left) {
            return Err(text.wrong("attachments", "the texts that they stand for are too long"));
        }
        let Some(request) = asked(&sample.input) else {
            return Err(text.wrong("input", "it is neither a text nor a conversation"));
        };
        let id = self.names.of(&text_of(&sample.id), "sample");
        let result = ImportedResult { repeat: epoch, ..result(id, sample, request) };
        self.read.push((result, given));
        Ok(())
    }

    /// The scores of a sample, in the order of the log's scorers.
    fn scores(&self, sample: &Sample) -> Vec<Given> {
        let mut given = Vec::new();
        let Some(scores) = &sample.scores else { return given };
        let known = self.scorers.iter().filter_map(|name| scores.get_key_value(name));
        let others = scores.iter().filter(|(name, _)| !self.scorers.contains(name));
        for (name, score) in known.chain(others) {
            if !given.iter().any(|it: &Given| it.name == *name) {
                add_score(name, score, &sample.target, &mut given);
            }
        }
        given
    }

    fn finish(self, log: Log, options: &Options, path: &Path) -> Result<ImportedRun, ResultsError> {
        let Self { deciding, read, repeat, .. } = self;
        let by = deciding.by(options.decided_by.as_deref(), path)?;
        let judge = by.and_then(|by| log.eval.scorers.as_ref()?.iter().find(|it| it.name == by));
        let results = read.into_iter().map(|(result, given)| {
            let (by_score, scores) = deciding.judge(given, by);
            let outcome = match result.outcome {
                Outcome::Undecided => by_score,
                known @ (Outcome::Passed | Outcome::Failed | Outcome::Error(_)) => known,
            };
            let target = result.case.prompt_vars.get("target");
            let criteria = judge.zip(target).and_then(|(it, target)| criteria(it, target));
            let case = TestCase { criteria: criteria.unwrap_or_default(), ..result.case };
            ImportedResult { case, outcome, scores, ..result }
        });
        let results: Vec<ImportedResult> = results.collect();
        let (eval, error) = (log.eval, log.error);
        let planned = eval.dataset.samples.unwrap_or(0).saturating_mul(u64::from(repeat));
        let status = match log.status.as_str() {
            "success" => LaneStatus::Complete,
            "error" => {
                LaneStatus::GaveUp { reason: error.map_or_else(String::new, |it| it.message) }
            }
            _ => LaneStatus::Interrupted,
        };
        // A sample that ended in an error may have been left out.
        let planned = match status.is_complete() {
            true => results.len() as u64,
            false => planned,
        };
        let task = usable(&eval.task, carried::RUNNER);
        let lanes = vec![ImportedLane {
            runner: task.clone(),
            variant: None,
            backend: usable(&eval.model, "model"),
            model: Some(eval.model),
            status,
            planned,
            repeat,
            results,
            dataset: None,
        }];
        let started = Some(log.stats.started_at).filter(|it| !it.is_empty());
        let notes = deciding.notes(by, &lanes[0].results);
        Ok(ImportedRun {
            tool: Tool::Inspect,
            version: eval.packages.get("inspect_ai").cloned(),
            suite: eval.task,
            started_ms: time(started.as_deref().unwrap_or(&eval.created)),
            finished_ms: time(&log.stats.completed_at),
            lanes,
            notes,
        })
    }
}

fn criteria(scorer: &Scorer, target: &Value) -> Option<probity_core::criteria::Criteria> {
    let name = scorer.name.rsplit('/').next().unwrap_or(&scorer.name);
    let option = |name: &str| scorer.options.as_ref()?.get(name).cloned();
    carried::inspect(name, option, target)
}

/// A score, or one for each name of a table of them.
fn add_score(name: &str, score: &SampleScore, target: &Value, given: &mut Vec<Given>) {
    let SampleScore { answer, explanation, .. } = score;
    // Scorers that compare texts explain themselves by the whole reply.
    let said =
        explanation.clone().filter(|it| !it.trim().is_empty() && Some(it) != answer.as_ref());
    let target = text_of(target);
    let compared = || Some(format!("answered `{}`, expected `{target}`", answer.as_ref()?));
    let reason = said.or_else(compared);
    let mut add = |name: String, value: &Value| {
        given.push(Given { name, value: Graded::of(value), reason: reason.clone() });
    };
    match score.value.as_object() {
        Some(parts) => parts.iter().for_each(|(part, it)| add(format!("{name}.{part}"), it)),
        None => add(name.to_owned(), &score.value),
    }
}

/// Puts long texts back where something else stands for them; false if they are too long.
fn restore(sample: &mut Sample, left: &Cell<usize>) -> bool {
    let attachments = std::mem::take(&mut sample.attachments);
    if attachments.is_empty() {
        return true;
    }
    let is_within = Cell::new(true);
    let fits = |length: usize| {
        let rest = left.get().checked_sub(length);
        left.set(rest.unwrap_or(0));
        is_within.set(is_within.get() && rest.is_some());
        rest.is_some()
    };
    let restored = |text: &mut String| {
        let mut whole = String::new();
        let mut parts = text.split(ATTACHMENT);
        whole.push_str(parts.next().unwrap_or_default());
        for part in parts {
            let end = part.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(part.len());
            match attachments.get(&part[..end]) {
                Some(long) if fits(long.len()) => whole.push_str(long),
                Some(_) => {}
                None => {
                    whole.push_str(ATTACHMENT);
                    whole.push_str(&part[..end]);
                }
            }
            whole.push_str(&part[end..]);
        }
        *text = whole;
    };
    each_text(&mut sample.input, &restored);
    each_text(&mut sample.target, &restored);
    if let Some(completion) = &mut sample.output.completion {
        restored(completion);
    }
    for choice in &mut sample.output.choices {
        each_text(&mut choice.message.content, &restored);
    }
    is_within.get()
}

fn each_text(value: &mut Value, change: &impl Fn(&mut String)) {
    match value {
        Value::String(text) => change(text),
        Value::Array(items) => items.iter_mut().for_each(|it| each_text(it, change)),
        Value::Object(fields) => fields.values_mut().for_each(|it| each_text(it, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn result(id: String, sample: Sample, request: Request) -> ImportedResult {
    let target = Some(("target".to_owned(), sample.target)).filter(|it| !it.1.is_null());
    let choices = sample.choices.map(|it| ("choices".to_owned(), Value::from(it)));
    let tags = sample.metadata.iter();
    let tags = tags.filter_map(|(name, value)| Some(format!("{name}:{}", value.as_str()?)));
    let case = TestCase {
        id,
        prompt_vars: target.into_iter().chain(choices).collect(),
        tags: tags.collect(),
        ..carried::case_of(&request)
    };
    let output = sample.output;
    let first = output.choices.first();
    let answer = first.map(|it| it.message.answer()).or(output.completion);
    let error = sample.error.map(|it| it.message);
    let outcome = match (error, sample.limit, sample.invalidation) {
        (Some(message), _, _) => Outcome::Error(message),
        (None, _, Some(_)) => Outcome::Error("the sample was invalidated".to_owned()),
        // What was cut off and judged all the same has its scores.
        (None, Some(limit), None) if sample.scores.is_none() => {
            Outcome::Error(format!("stopped at the limit of its {}: {}", limit.kind, limit.limit))
        }
        (None, _, None) => Outcome::Undecided,
    };
    let cost = sample.model_usage.values().filter_map(|it| it.total_cost).sum::<f64>();
    let usage = output.usage.as_ref().or_else(|| sample.model_usage.values().next());
    let seconds = output.time.or(sample.total_time).filter(|it| it.is_finite() && *it >= 0.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
    let latency_ms = seconds.map(|it| (it * 1000.0).round() as u64).filter(|it| *it > 0);
    ImportedResult {
        reply: answer.filter(|it| !it.is_empty() || first.is_some()),
        reasoning: first.and_then(|it| it.message.said().reasoning),
        stop_reason: first.and_then(|it| it.stop_reason.clone()),
        model: Some(output.model.clone()).filter(|it| !it.is_empty()),
        latency_ms,
        started_ms: sample.started_at.as_deref().and_then(time),
        usage: usage.map_or_else(Usage::default, |it| Usage {
            input_tokens: Some(it.input_tokens),
            output_tokens: Some(it.output_tokens),
            cached_tokens: it.input_tokens_cache_read,
            estimated: false,
        }),
        cost_usd: Some(cost).filter(|it| *it > 0.0),
        outcome,
        ..ImportedResult::new(case, request)
    }
}
