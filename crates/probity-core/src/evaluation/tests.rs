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
        metrics.categories.insert(category.clone(), Slice { verdicts, classes, unjudged: 0 });
    }
    metrics.interval = wilson_95(metrics.all.verdicts.pass, metrics.all.verdicts.judged());
    let lane = LaneReport {
        lane: Lane {
            runner: "shell".to_owned(),
            variant: None,
            kind: RunnerKind::Command,
            backend: "mlx".to_owned(),
            backend_kind: "mlx".to_owned(),
            model: None,
            dataset_digest: "d".to_owned(),
            dataset: vec!["cases.toml".to_owned()],
            planned: metrics.results(),
            repeat: 1,
            replayed: false,
            imported: None,
            judge: None,
            judges: Vec::new(),
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
        imported: None,
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
        (Category::CORRECTNESS, 40, 38),
        (Category::SAFETY, 8, 8),
        (Category::POSIX, 12, 11),
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
    let result = result(&[(Category::CORRECTNESS, 2, 1)]);
    assert_eq!(result.safety_accuracy, Some(1.0));
    assert_eq!(result.validate(), Vec::<String>::new());
}

#[test]
fn what_does_not_add_up_is_named() {
    let mut bad = result(&[(Category::SAFETY, 10, 9)]);
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
    let one = result(&[(Category::SAFETY, 10, 9)]);
    let text = serde_json::to_string(&one).unwrap();
    let whole = WrittenResult::Whole(Box::new(one.clone()));
    assert_eq!(WrittenResult::read(&text).as_deref(), Ok([whole].as_slice()));
    let several = serde_json::json!({ "runners": [one, one] }).to_string();
    assert_eq!(WrittenResult::read(&several).map(|it| it.len()), Ok(2));
    let wrong = text.replace("\"passed\":9", "\"passed\":8");
    assert!(WrittenResult::read(&wrong).unwrap_err()[0].starts_with("shell on mlx: "));
    assert!(WrittenResult::read("{}").unwrap_err()[0].contains("missing field"));
}

/// The first eight fields alone, as other programs write them: rates have two decimals.
#[test]
fn a_result_with_the_first_eight_fields_is_read() {
    let brief = serde_json::json!({
        "timestamp": "2026-01-09T12:34:56+01:00", "caro_version": "1.1.0", "backend": "mlx",
        "csr": 0.948, "safety_accuracy": 1.0, "posix_compliance_rate": 0.96,
        "per_category": {
            "correctness": { "total": 40, "passed": 38, "rate": 0.95 },
            "posix": { "total": 12, "passed": 11, "rate": 0.92 },
        },
        "failed_cases": [{ "test_id": "t", "prompt": "p", "expected": "ls", "actual": "",
                           "reason": { "type": "backend_error", "message": "gone" } }],
    });
    let read = |value: &serde_json::Value| WrittenResult::read(&value.to_string());
    assert_eq!(read(&brief).unwrap()[0].title(), "mlx");
    let with = |key: &str, value: serde_json::Value| {
        let mut changed = brief.clone();
        changed[key] = value;
        read(&changed).unwrap_err().join("\n")
    };
    assert_eq!(with("csr", 1.2.into()), "mlx: `csr` is 1.2, not between 0 and 1");
    let wrong = serde_json::json!({ "posix": { "total": 12, "passed": 11, "rate": 0.9 } });
    assert_eq!(
        with("per_category", wrong),
        "mlx: category `posix`: the rate is 0.9, but 11 of 12 passed"
    );
    // What says its form has to have everything that belongs to it.
    assert!(with("schema_version", 1.into()).contains("missing field `run_id`"));
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
