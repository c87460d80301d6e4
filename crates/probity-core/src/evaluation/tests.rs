use super::*;
use crate::{
    classification::{Class, Counts},
    record::{Judging, LaneStatus, RunStatus},
};
use probity_stats::proportion::wilson_95;

fn result(categories: &[(Category, u64, u64)]) -> EvaluationResult {
    let mut metrics = Metrics::default();
    for (category, total, passed) in categories {
        let verdicts = Verdicts { pass: *passed, fail: total - passed, ..Verdicts::default() };
        let mut classes = Counts::default();
        classes.add_many(Class::Pass, verdicts.pass);
        classes.add_many(Class::Fail, verdicts.fail);
        metrics.all.verdicts.pass += verdicts.pass;
        metrics.all.verdicts.fail += verdicts.fail;
        metrics.all.classes.merge(&classes);
        metrics.categories.insert(*category, Slice { verdicts, classes, unjudged: 0 });
    }
    metrics.interval = wilson_95(metrics.all.verdicts.pass, metrics.all.verdicts.judged());
    let lane = LaneReport {
        lane: Lane {
            runner: "shell".to_owned(),
            kind: RunnerKind::Command,
            backend: "mlx".to_owned(),
            backend_kind: "mlx".to_owned(),
            model: None,
            dataset_digest: "d".to_owned(),
            dataset: vec!["cases.toml".to_owned()],
            planned: metrics.results(),
            repeat: 1,
            replayed: false,
            judge: None,
            skills: None,
            judging: Judging {
                gates: Gate::defaults(RunnerKind::Command),
                tool_version: Some("1.1.0-beta.2".to_owned()),
                ..Judging::default()
            },
        },
        status: Some(LaneStatus::Complete),
        aborted: 0,
        error: None,
        gates: Gate::defaults(RunnerKind::Command).iter().map(|it| it.judge(&metrics)).collect(),
        metrics,
    };
    let run = RunView {
        run_id: "20260109-123456-abcdef".to_owned(),
        short: "abcdef".to_owned(),
        suite: "probity.toml".to_owned(),
        started_ms: 1_767_962_096_000,
        finished_ms: None,
        status: RunStatus::Complete,
        probity_version: "0.1.0".to_owned(),
        max_error_rate: 0.1,
        lanes: Vec::new(),
        against: None,
        consistency: Vec::new(),
    };
    let failed = FailedCase {
        test_id: "t".to_owned(),
        repeat: 0,
        prompt: "p".to_owned(),
        expected: "e".to_owned(),
        actual: String::new(),
        reason: FailureReason::IncorrectCommand,
        class: None,
        message: String::new(),
    };
    let failed = vec![failed; usize::try_from(lane.metrics.all.verdicts.fail).unwrap()];
    EvaluationResult::of(&run, &lane, failed)
}

#[test]
fn rates_come_from_counts() {
    let result = result(&[
        (Category::Correctness, 40, 38),
        (Category::Safety, 8, 8),
        (Category::Posix, 12, 11),
    ]);
    assert!((result.csr - 0.95).abs() < f64::EPSILON);
    assert!((result.posix_compliance_rate.unwrap() - 0.916_667).abs() < f64::EPSILON);
    assert_eq!(result.validate(), Vec::<String>::new());
    assert_eq!(result.timestamp, "2026-01-09T12:34:56Z");
    let gates: Vec<GateStatus> = result.gates.iter().map(|gate| gate.status).collect();
    assert_eq!(gates, [GateStatus::Pass, GateStatus::Pass, GateStatus::Warn]);
}

#[test]
fn an_empty_category_keeps_the_rate_of_one() {
    let result = result(&[(Category::Correctness, 2, 1)]);
    assert_eq!(result.safety_accuracy, Some(1.0));
    assert_eq!(result.validate(), Vec::<String>::new());
}

#[test]
fn what_does_not_add_up_is_named() {
    let mut bad = result(&[(Category::Safety, 10, 9)]);
    bad.csr = 1.2;
    bad.timestamp = "yesterday".to_owned();
    bad.failed = 3;
    bad.per_category.insert(
        "posix".to_owned(),
        CategoryResult { passed: 2, rate: 1.0, ..CategoryResult::new(1, 1) },
    );
    bad.classes.insert("refusal".to_owned(), 7);
    insta::assert_snapshot!(bad.validate().join("\n"));
}

#[test]
fn what_is_written_is_read() {
    let one = result(&[(Category::Safety, 10, 9)]);
    let text = serde_json::to_string(&one).unwrap();
    assert_eq!(EvaluationResult::read(&text).as_deref(), Ok([one.clone()].as_slice()));
    let several = serde_json::json!({ "runners": [one, one] }).to_string();
    assert_eq!(EvaluationResult::read(&several).map(|it| it.len()), Ok(2));
    let wrong = text.replace("\"passed\":9", "\"passed\":8");
    assert!(EvaluationResult::read(&wrong).unwrap_err()[0].starts_with("shell on mlx: "));
    assert!(EvaluationResult::read("{}").unwrap_err()[0].contains("missing field"));
}

#[test]
fn a_reason_is_a_tagged_object_and_reads_as_words() {
    let reason = FailureReason::SafetyMismatch { expected: false, actual: true };
    assert_eq!(
        serde_json::to_string(&reason).unwrap(),
        r#"{"type":"safety_mismatch","expected":false,"actual":true}"#
    );
    assert_eq!(reason.to_string(), "safety: expected unsafe, found safe");
}
