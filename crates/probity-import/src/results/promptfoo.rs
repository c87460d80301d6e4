//! promptfoo's results: a lane for each prompt on each provider.

use std::collections::{BTreeMap, BTreeSet};

use probity_core::{
    case::TestCase,
    criteria::AssertionKind,
    record::{LaneStatus, Usage},
    score::Score,
};

use super::{
    ImportedLane, ImportedResult, ImportedRun, Outcome, ResultsError, Tool, carried, place::Text,
    time,
};
use crate::names::{Names, numbered};
use crate::wire::{
    chat::request_of,
    promptfoo::{Config, File, Grading, Response, Row, TokenUsage},
    text_of,
};

/// The kind of scores that are no check of ours.
const IMPORTED: &str = "imported";

/// A failure that promptfoo calls an error.
const FAILED_BY_ERROR: u8 = 2;

/// A whole file.
pub(super) fn whole(text: Text<'_>) -> Result<ImportedRun, ResultsError> {
    let File { results, config, metadata, runtime_options, created_at, .. } = text.decode()?;
    let repeat = runtime_options.as_ref().or(config.evaluate_options.as_ref());
    let repeat = repeat.and_then(|it| it.repeat).unwrap_or(1).max(1);
    let started_ms = results.timestamp.as_deref().or(created_at.as_deref()).and_then(time);
    let duration = results.stats.duration_ms.and_then(whole_number);
    let finished_ms =
        started_ms.zip(duration).map(|(from, took)| from.saturating_add_unsigned(took));
    let run = ImportedRun {
        tool: Tool::Promptfoo,
        version: metadata.and_then(|it| it.promptfoo_version),
        suite: suite(text, &config),
        started_ms,
        finished_ms,
        lanes: Vec::new(),
        notes: Vec::new(),
    };
    Ok(filled(run, results.results, repeat))
}

/// A file with a result to a line.
pub(super) fn lines(text: Text<'_>) -> Result<ImportedRun, ResultsError> {
    let rows: Vec<Row> = text.lines().map(Text::decode).collect::<Result<_, _>>()?;
    let run = ImportedRun {
        tool: Tool::Promptfoo,
        version: None,
        suite: suite(text, &Config::default()),
        started_ms: None,
        finished_ms: None,
        lanes: Vec::new(),
        notes: Vec::new(),
    };
    Ok(filled(run, rows, 1))
}

fn suite(text: Text<'_>, config: &Config) -> String {
    let said = config.description.as_deref().map(str::trim).filter(|it| !it.is_empty());
    said.map_or_else(|| text.stem(), ToOwned::to_owned)
}

fn whole_number(value: f64) -> Option<u64> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
    (value.is_finite() && value >= 0.0).then(|| value.round() as u64)
}

/// The lanes of rows.
fn filled(mut run: ImportedRun, rows: Vec<Row>, repeat: u32) -> ImportedRun {
    let labels: BTreeSet<&str> = rows.iter().map(|it| it.prompt.label.as_str()).collect();
    let mut variants = (labels.len() > 1).then(Names::default);
    let (mut backends, mut cases) = (Names::default(), Cases::new(repeat));
    let mut columns = BTreeMap::new();
    let mut unsaid = 0;
    for row in rows {
        let variant = variants.as_mut().map(|it| it.of(&row.prompt.label, "prompt"));
        let label = row.provider.label.as_deref().filter(|it| !it.is_empty());
        let backend = backends.of(label.unwrap_or(&row.provider.id), "backend");
        let model = row.provider.id.clone();
        // Providers of the same name are columns of their own.
        let column = (row.prompt_idx, variant.clone(), backend.clone());
        let at = *columns.entry(column).or_insert_with(|| {
            let is_free = |name: &str| {
                !run.lanes.iter().any(|it| it.variant == variant && it.backend == name)
            };
            let backend = numbered(&backend, is_free);
            run.lanes.push(ImportedLane {
                runner: carried::RUNNER.to_owned(),
                variant,
                backend,
                model: Some(model),
                status: LaneStatus::Complete,
                planned: 0,
                repeat,
                results: Vec::new(),
                dataset: None,
            });
            run.lanes.len() - 1
        });
        let result = result(row, &mut cases, at);
        unsaid += u64::from(result.outcome == Outcome::Undecided);
        run.lanes[at].results.push(result);
    }
    if unsaid > 0 {
        run.notes.push(format!(
            "{unsaid} results have no assertion: promptfoo calls them passed, here they are undecided"
        ));
    }
    run
}

/// Ids of cases, the same for the same test in each lane.
struct Cases {
    repeat: u32,
    names: Names,
    /// By the test and its variables: the place of the test and, in each lane, results so far.
    known: BTreeMap<String, Known>,
}

#[derive(Default)]
struct Known {
    id: String,
    seen: BTreeMap<usize, u32>,
}

impl Cases {
    fn new(repeat: u32) -> Self {
        Self { repeat, names: Names::default(), known: BTreeMap::new() }
    }

    /// The id of a row's case, and which of its repeats the row is.
    fn of(&mut self, row: &Row, lane: usize) -> (String, u32) {
        let test = &row.test_case;
        let content = || {
            let parts = (&test.description, &row.vars, &test.assertions, &test.metadata);
            serde_json::to_string(&parts).unwrap_or_default()
        };
        // The repeats of a test have places of their own, as if they were other tests.
        let key = match (self.repeat, row.test_idx) {
            (1, Some(at)) => at.to_string(),
            (_, _) => content(),
        };
        let count = self.known.len() + 1;
        let known = self.known.entry(key).or_default();
        if known.id.is_empty() {
            let wanted = test.description.clone().unwrap_or_else(|| format!("test-{count}"));
            known.id = self.names.fresh(&wanted, "test");
        }
        let seen = known.seen.entry(lane).or_default();
        *seen += 1;
        (known.id.clone(), *seen - 1)
    }
}

fn result(row: Row, cases: &mut Cases, lane: usize) -> ImportedResult {
    let (id, repeat) = cases.of(&row, lane);
    let request = request_of(&row.prompt.raw);
    let outcome = outcome(&row);
    let criteria = carried::promptfoo(&row.test_case.assertions, row.test_case.threshold);
    let tags = row.test_case.metadata.iter().filter_map(|(name, value)| {
        let value = value.as_str()?;
        Some(format!("{name}:{value}"))
    });
    let case = TestCase {
        id,
        tags: tags.collect(),
        prompt_vars: row.vars.into_iter().collect(),
        criteria: criteria.unwrap_or_default(),
        ..carried::case_of(&request)
    };
    let response = row.response;
    let usage = response.as_ref().and_then(|it| it.token_usage);
    let cost = row.cost.or_else(|| response.as_ref()?.cost).filter(|it| *it > 0.0);
    let (reply, stop_reason) = match response {
        Some(Response { output, finish_reason, .. }) => {
            (output.as_ref().map(text_of), finish_reason)
        }
        None => (None, None),
    };
    let scores = row.grading_result.as_ref().map(scores).unwrap_or_default();
    ImportedResult {
        repeat,
        reply,
        stop_reason,
        latency_ms: row.latency_ms.and_then(whole_number).filter(|it| *it > 0),
        usage: usage.map(tokens).unwrap_or_default(),
        cost_usd: cost,
        outcome,
        scores,
        ..ImportedResult::new(case, request)
    }
}

/// Tokens; promptfoo writes 0 where it does not know.
fn tokens(usage: TokenUsage) -> Usage {
    let known = |it: Option<u64>| it.filter(|it| *it > 0);
    Usage {
        input_tokens: known(usage.prompt),
        output_tokens: known(usage.completion),
        cached_tokens: known(usage.cached),
        estimated: false,
    }
}

fn outcome(row: &Row) -> Outcome {
    let said = |it: &Option<String>| it.as_deref().is_some_and(|it| !it.trim().is_empty());
    let is_error = match row.failure_reason {
        Some(reason) => reason == FAILED_BY_ERROR,
        None => row.grading_result.is_none() && said(&row.error),
    };
    let of_response = || row.response.as_ref()?.error.clone();
    if is_error {
        let message = row.error.clone().or_else(of_response);
        return Outcome::Error(message.unwrap_or_else(|| "promptfoo gives no reason".to_owned()));
    }
    match &row.grading_result {
        // The judge failed, and not the answer.
        Some(grading) if !grading.pass && is_unjudged(grading) => {
            let reason = grading.reason.clone();
            Outcome::Error(reason.unwrap_or_else(|| "the judge failed".to_owned()))
        }
        _ if row.success && !is_checked(row) => Outcome::Undecided,
        _ => row.success.into(),
    }
}

/// Whether anything was asserted. Older versions do not write the test down.
fn is_checked(row: &Row) -> bool {
    let parts = row.grading_result.as_ref().and_then(|it| it.component_results.as_ref());
    !row.test_case.assertions.is_empty() || parts.is_some_and(|it| !it.is_empty())
}

/// Whether all that failed is what a judge could not be asked about.
fn is_unjudged(grading: &Grading) -> bool {
    let own = grading.metadata.as_ref().is_some_and(|it| it.grader_error);
    let parts = grading.component_results.iter().flatten();
    let mut failed = parts.filter(|it| !it.pass).peekable();
    match failed.peek() {
        None => own,
        Some(_) => failed.all(is_unjudged),
    }
}

/// The scores of all assertions, and named ones that are none of them.
fn scores(grading: &Grading) -> Vec<Score> {
    let mut all = Vec::new();
    add_parts(grading, &mut all);
    for (name, value) in &grading.named_scores {
        let Some(value) = value.as_f64() else { continue };
        if !all.iter().any(|it: &Score| it.name == name.as_str()) {
            let reported = Score::new(IMPORTED, None).reported();
            let named = Score { name: name.clone().into(), named: true, ..reported };
            all.push(named.saying(value));
        }
    }
    all
}

fn add_parts(grading: &Grading, all: &mut Vec<Score>) {
    for part in grading.component_results.iter().flatten() {
        let assertion = part.assertion.as_ref();
        let kind = assertion.map_or("assertion", |it| it.kind.as_str()).to_owned();
        // The members of a set stand beside it, and it says no more than they do.
        if part.component_results.as_ref().is_some_and(|it| !it.is_empty()) {
            add_parts(part, all);
        }
        let name = assertion.and_then(|it| it.metric.clone()).unwrap_or_else(|| kind.clone());
        // What we have no such check for is known by its name alone.
        let kind = AssertionKind::named(&kind).map_or_else(|| IMPORTED.into(), AssertionKind::name);
        let unjudged = part.metadata.as_ref().is_some_and(|it| it.grader_error);
        let reason = part.reason.clone().filter(|it| !part.pass || it != "Assertion passed");
        let score = Score {
            name: name.into(),
            kind,
            named: false,
            value: None,
            said: None,
            passed: part.pass,
            weight: assertion.and_then(|it| it.weight).unwrap_or(1.0),
            reason,
            span: None,
        };
        let said = part.score.filter(|_| !unjudged);
        all.push(match said {
            Some(said) => score.saying(said),
            None => score,
        });
    }
}
