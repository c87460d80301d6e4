use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::sample::Sample;

const TOLD: Options = Options { texts: Texts::Told, traces: Traces::Run };

fn batches(sample: &Sample, options: Options) -> Vec<Batch> {
    let mut all = Vec::new();
    let taken = write(&sample.view, sample, options, &mut |batch| {
        all.push(batch);
        Ok(())
    });
    taken.unwrap();
    all
}

fn spans(sample: &Sample, options: Options) -> Vec<Value> {
    let of_batch = |batch: &Batch| {
        let body: Value = serde_json::from_str(&batch.body).unwrap();
        let spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone();
        assert_eq!(spans.len(), batch.spans);
        spans
    };
    batches(sample, options).iter().flat_map(of_batch).collect()
}

fn attribute<'a>(span: &'a Value, key: &str) -> &'a Value {
    let attributes = span["attributes"].as_array().unwrap();
    attributes.iter().find(|it| it["key"] == key).map_or(&Value::Null, |it| &it["value"])
}

#[test]
fn a_run_is_a_trace_of_results_and_questions() {
    let sample = Sample::usual();
    let spans = spans(&sample, TOLD);
    let names: BTreeMap<&str, &str> = spans
        .iter()
        .map(|it| {
            (
                it["spanId"].as_str().unwrap(),
                it["name"].as_str().unwrap().split(' ').next().unwrap(),
            )
        })
        .collect();
    assert_eq!(names.len(), spans.len(), "two spans have the same id");
    let traces: BTreeSet<&str> = spans.iter().map(|it| it["traceId"].as_str().unwrap()).collect();
    assert_eq!(traces.len(), 1);
    for span in &spans {
        let parent = span["parentSpanId"].as_str().map(|it| names[it]);
        let wanted = match names[span["spanId"].as_str().unwrap()] {
            "run" => None,
            "case" => Some("run"),
            _ => Some("case"),
        };
        assert_eq!(parent, wanted, "{span}");
        assert_eq!(span["traceId"].as_str().unwrap().len(), 32);
        let time = |key: &str| span[key].as_str().unwrap().parse::<u128>().unwrap();
        assert!(time("startTimeUnixNano") <= time("endTimeUnixNano"), "{span}");
    }
    let of = |kind: &str| names.values().filter(|it| **it == kind).count();
    assert_eq!(of("run"), 1);
    assert!(of("case") > 1 && of("chat") >= of("case"));
}

#[test]
fn checks_are_evaluation_results() {
    let sample = Sample::usual();
    let spans = spans(&sample, TOLD);
    let cases = spans.iter().filter(|it| it["name"].as_str().unwrap().starts_with("case "));
    for case in cases {
        let events = case["events"].as_array().unwrap();
        let verdict = events.iter().find(|it| {
            it["name"] == "gen_ai.evaluation.result"
                && attribute(it, "gen_ai.evaluation.name")["stringValue"] == "verdict"
        });
        let label = &attribute(verdict.unwrap(), "gen_ai.evaluation.score.label")["stringValue"];
        assert_eq!(*label, attribute(case, "probity.verdict")["stringValue"]);
    }
}

#[test]
fn each_result_can_be_a_trace_with_a_link() {
    let sample = Sample::usual();
    let spans = spans(&sample, Options { traces: Traces::Case, ..TOLD });
    let traces: BTreeSet<&str> = spans.iter().map(|it| it["traceId"].as_str().unwrap()).collect();
    let cases: Vec<&Value> = spans.iter().filter(|it| it.get("links").is_some()).collect();
    assert_eq!(traces.len(), cases.len() + 1);
    let run = spans.iter().find(|it| it["name"].as_str().unwrap().starts_with("run ")).unwrap();
    assert!(cases.iter().all(|it| it["links"][0]["spanId"] == run["spanId"]));
    assert!(cases.iter().all(|it| it.get("parentSpanId").is_none()));
}

#[test]
fn texts_can_be_left_out() {
    let sample = Sample::usual();
    let all = |options: Options| {
        batches(&sample, options).into_iter().map(|it| it.body).collect::<String>()
    };
    let quiet = all(Options { texts: Texts::LeftOut, ..TOLD });
    for key in ["input.value", "output.value", "messages", "explanation", "probity.reason"] {
        assert!(!quiet.contains(key), "{key}");
    }
    assert!(all(TOLD).contains("gen_ai.input.messages"));
}

#[test]
fn the_same_run_is_told_in_the_same_bytes() {
    let sample = Sample::usual();
    let all = || batches(&sample, TOLD).into_iter().map(|it| it.body).collect::<Vec<_>>();
    assert_eq!(all(), all());
}
