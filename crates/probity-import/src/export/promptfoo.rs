//! Runs as results of promptfoo, and suites as configurations for it.

mod assertions;
mod providers;
mod suite;

use std::{collections::BTreeMap, io};

use probity_core::{
    classification::Verdict,
    record::CaseRecord,
    request::Request,
    score::Score,
    view::{Cases, LaneReport, RunView},
};
use serde_json::{Map, Value, json};

pub use suite::SuiteExport;

use super::{Exported, model, pretty, records, result_id, scores, time};
use crate::wire::{
    chat::openai,
    promptfoo::{
        Assertion, CompletedPrompt, Config, File, Grading, GradingMetadata, Metadata, Prompt,
        PromptMetrics, Provider, Response, Row, Stats, Summary, TestCase, TokenUsage,
    },
};

/// The version of the results that are written.
const VERSION: u32 = 3;

/// The results of a run, for `promptfoo import`.
pub fn run(run: &RunView, cases: &dyn Cases) -> io::Result<Exported> {
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let (mut rows, mut prompts, mut stats) = (Vec::new(), Vec::new(), Stats::default());
    for (at, report) in run.lanes.iter().enumerate() {
        let mut metrics = PromptMetrics::default();
        for record in records(cases, at)? {
            let next = places.len();
            // The repeats of a case are tests of their own there.
            let test = format!("{}/{}#{}", report.lane.runner, record.case_id, record.repeat);
            let test = *places.entry(test).or_insert(next);
            let row = row(run, report, &record, (at, test));
            count(&mut metrics, &row);
            rows.push(row);
        }
        stats.successes += metrics.test_pass_count;
        stats.failures += metrics.test_fail_count;
        stats.errors += metrics.test_error_count;
        stats.token_usage = sum(stats.token_usage, metrics.token_usage);
        let label = label(run, report);
        prompts.push(CompletedPrompt {
            id: None,
            raw: label.clone(),
            label,
            provider: model(report).to_owned(),
            metrics: Some(metrics),
        });
    }
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53 milliseconds")]
    let duration_ms = run.elapsed_ms().map(|it| it as f64);
    let config = config(run, &rows);
    let file = File {
        eval_id: Some(format!("eval-probity-{}", run.run_id)),
        results: Summary {
            version: VERSION,
            timestamp: Some(time(run.started_ms)),
            prompts,
            results: rows,
            stats: Stats { duration_ms, ..stats },
        },
        config,
        shareable_url: None,
        metadata: Some(Metadata { promptfoo_version: None, exported_at: None }),
        created_at: Some(time(run.started_ms)),
        runtime_options: None,
    };
    let mut exported = Exported::one("promptfoo-results.json", pretty(&file)?);
    if run.undecided() > 0 {
        exported
            .lose("undecided results", "promptfoo has no such verdict and shows them as passed");
    }
    Ok(exported)
}

/// What a prompt is called: what tells the lane from those of other prompts.
fn label(run: &RunView, report: &LaneReport) -> String {
    let lane = &report.lane;
    let same_runner = run.lanes.iter().all(|it| it.lane.runner == lane.runner);
    match &lane.variant {
        Some(variant) if same_runner => variant.clone(),
        Some(_) | None => lane.key().task(),
    }
}

/// What a viewer shows beside the results.
fn config(run: &RunView, rows: &[Row]) -> Config {
    let labels = run.lanes.iter().map(|it| label(run, it));
    let mut labels: Vec<String> = labels.collect();
    labels.dedup();
    let mut tests: BTreeMap<usize, Value> = BTreeMap::new();
    for row in rows {
        let place = row.test_idx.unwrap_or_default();
        tests.entry(place).or_insert_with(|| json!(row.test_case));
    }
    Config {
        description: Some(run.suite.clone()),
        prompts: json!(labels),
        providers: run.lanes.iter().map(|it| Value::from(model(it))).collect(),
        tests: tests.into_values().collect(),
        evaluate_options: None,
    }
}

fn row(
    run: &RunView,
    report: &LaneReport,
    record: &CaseRecord,
    (prompt_idx, test_idx): (usize, usize),
) -> Row {
    let grading = grading(record);
    let failure_reason = match record.verdict {
        Verdict::Pass | Verdict::Undecided => 0,
        Verdict::Fail => 1,
        Verdict::Error => 2,
    };
    let error = (failure_reason > 0).then(|| record.why());
    let assertions = grading.iter().flat_map(|it| it.component_results.iter().flatten());
    let assertions = assertions.filter_map(|it| serde_json::to_value(it.assertion.as_ref()?).ok());
    let vars: Map<String, Value> = record.case.prompt_vars.clone().into_iter().collect();
    let usage = TokenUsage {
        total: Some(record.usage.total()),
        prompt: record.usage.input_tokens,
        completion: record.usage.output_tokens,
        cached: record.usage.cached_tokens,
        num_requests: Some(u64::from(record.calls)),
    };
    let named = scores(record).into_iter();
    let named = named.filter_map(|it| Some((it.name.to_string(), json!(it.amount()?))));
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53 milliseconds")]
    let latency = record.latency_ms as f64;
    Row {
        id: Some(result_id(run, report, record)),
        prompt_idx,
        test_idx: Some(test_idx),
        prompt_id: Some(format!("{prompt_idx}")),
        prompt: Prompt { raw: prompt(&record.request), label: label(run, report) },
        provider: Provider {
            id: model(report).to_owned(),
            label: Some(report.lane.backend.clone()),
        },
        vars: vars.clone(),
        response: record.reply.as_ref().map(|reply| Response {
            output: Some(Value::from(reply.as_str())),
            error: None,
            token_usage: Some(usage),
            cached: Some(false),
            cost: record.cost_usd,
            finish_reason: record.stop_reason.clone(),
        }),
        error,
        success: matches!(record.verdict, Verdict::Pass | Verdict::Undecided),
        score: grading.as_ref().and_then(|it| it.score).or(Some(0.0)),
        named_scores: named.collect(),
        latency_ms: Some(latency),
        cost: record.cost_usd,
        failure_reason: Some(failure_reason),
        test_case: TestCase {
            description: Some(record.case_id.clone()),
            vars,
            assertions: assertions.collect(),
            threshold: record.case.criteria.threshold,
            metadata: Map::new(),
            options: Map::new(),
        },
        grading_result: grading,
        metadata: Map::new(),
    }
}

/// What was checked, as promptfoo shows it; none for what was not judged.
fn grading(record: &CaseRecord) -> Option<Grading> {
    let pass = match record.verdict {
        Verdict::Pass => true,
        Verdict::Fail => false,
        Verdict::Error | Verdict::Undecided => return None,
    };
    let plain = |pass, score, reason| Grading {
        pass,
        score,
        reason,
        named_scores: Map::new(),
        component_results: None,
        assertion: None,
        metadata: None,
    };
    let component = |score: Score| Grading {
        assertion: Some(Assertion {
            kind: score.kind.to_string(),
            value: None,
            metric: (score.name != score.kind).then(|| score.name.to_string()),
            weight: Some(score.weight),
        }),
        metadata: score.value.is_none().then_some(GradingMetadata { grader_error: true }),
        ..plain(score.passed, score.amount().or(Some(0.0)), score.reason)
    };
    let (named, checks): (Vec<Score>, Vec<Score>) =
        scores(record).into_iter().partition(|it| it.named);
    let named = named.iter().filter_map(|it| Some((it.name.to_string(), json!(it.amount()?))));
    let components: Vec<Grading> = checks.into_iter().map(component).collect();
    let (sum, weight) = components.iter().fold((0.0, 0.0), |(sum, all), it| {
        let weight = it.assertion.as_ref().and_then(|it| it.weight).unwrap_or(1.0);
        (sum + it.score.unwrap_or(0.0) * weight, all + weight)
    });
    let score = if weight > 0.0 { sum / weight } else { f64::from(u8::from(pass)) };
    Some(Grading {
        named_scores: named.collect(),
        component_results: Some(components),
        ..plain(pass, Some(score), Some(record.why()))
    })
}

fn count(metrics: &mut PromptMetrics, row: &Row) {
    match row.failure_reason {
        Some(1) => metrics.test_fail_count += 1,
        Some(2) => metrics.test_error_count += 1,
        _ => metrics.test_pass_count += 1,
    }
    for part in row.grading_result.iter().flat_map(|it| it.component_results.iter().flatten()) {
        match part.pass {
            true => metrics.assert_pass_count += 1,
            false => metrics.assert_fail_count += 1,
        }
    }
    metrics.score += row.score.unwrap_or(0.0);
    metrics.total_latency_ms += row.latency_ms.unwrap_or(0.0);
    metrics.cost += row.cost.unwrap_or(0.0);
    let usage = row.response.as_ref().and_then(|it| it.token_usage);
    metrics.token_usage = sum(metrics.token_usage, usage.unwrap_or_default());
}

fn sum(a: TokenUsage, b: TokenUsage) -> TokenUsage {
    let add = |a: Option<u64>, b: Option<u64>| Some(a.unwrap_or(0) + b.unwrap_or(0));
    TokenUsage {
        total: add(a.total, b.total),
        prompt: add(a.prompt, b.prompt),
        completion: add(a.completion, b.completion),
        cached: add(a.cached, b.cached),
        num_requests: add(a.num_requests, b.num_requests),
    }
}

/// A request as promptfoo has it: a text, or a conversation in JSON.
fn prompt(request: &Request) -> String {
    match request.is_plain() && request.system().is_none() {
        true => request.prompt().to_owned(),
        false => {
            let messages: Vec<_> = request.messages.iter().flat_map(openai).collect();
            serde_json::to_string(&messages).unwrap_or_default()
        }
    }
}
