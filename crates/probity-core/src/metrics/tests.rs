use probity_stats::{
    USUAL_LEVEL,
    paired::{GroupSum, mean_clustered},
};

use super::*;
use crate::record::Judging;

fn outcome(case_id: &str, repeat: u32, verdict: Verdict) -> ResultFacts {
    ResultFacts {
        case_id: case_id.to_owned(),
        repeat,
        category: None,
        tags: Vec::new(),
        group: None,
        class: match verdict {
            Verdict::Pass | Verdict::Undecided => Class::Pass,
            Verdict::Fail => Class::Refusal,
            Verdict::Error => Class::Error,
        },
        verdict,
        breaks_policy: false,
        scores: Vec::new(),
        error: (verdict == Verdict::Error).then_some(ErrorKind::Server),
        source: Source::Backend,
        latency_ms: 10,
        ttft_ms: None,
        tokens_per_second: None,
        usage: Usage::default(),
        cost_usd: None,
        calls: 1,
        worker: None,
        started_ms: 1000,
        elapsed_ms: 10,
        evidence: None,
        judged: Vec::new(),
    }
}

fn fold(judging: &Judging, outcomes: Vec<ResultFacts>) -> Metrics {
    let mut fold = Fold::new(judging);
    outcomes.into_iter().for_each(|it| fold.add(it));
    fold.finish()
}

#[test]
fn what_was_cut_off_has_a_price_where_no_result_has_one() {
    let mut metrics = fold(&Judging::default(), vec![outcome("a", 0, Verdict::Pass)]);
    metrics.add_spent(Spent { calls: 1, usage: Usage::default(), cost_usd: 0.0 });
    assert_eq!((metrics.calls, metrics.priced), (2, 0));
    metrics.add_spent(Spent { calls: 1, usage: Usage::default(), cost_usd: 0.25 });
    assert_eq!((metrics.calls, metrics.priced, metrics.cost_usd), (3, 1, 0.25));
}

const PASS: Verdict = Verdict::Pass;
const FAIL: Verdict = Verdict::Fail;
const ERROR: Verdict = Verdict::Error;

fn rounds(cases: &[(&str, &[Verdict])]) -> Vec<ResultFacts> {
    let of_case = |(id, verdicts): &(&str, &[Verdict])| {
        let verdicts = verdicts.iter().zip(0..);
        verdicts.map(|(verdict, repeat)| outcome(id, repeat, *verdict)).collect::<Vec<_>>()
    };
    cases.iter().flat_map(of_case).collect()
}

#[test]
fn errors_leave_the_rate_unless_asked() {
    let cases: &[(&str, &[Verdict])] = &[("a", &[PASS]), ("b", &[FAIL]), ("c", &[ERROR])];
    let metrics = fold(&Judging::default(), rounds(cases));
    assert_eq!(metrics.all.verdicts, Verdicts { pass: 1, fail: 1, error: 1, undecided: 0 });
    assert_eq!(metrics.all.verdicts.rate(), Some(0.5));
    assert_eq!(metrics.errors[&ErrorKind::Server], 1);
    assert_eq!(metrics.latency.map(|it| it.count), Some(2));
    let strict = Judging { errors_as_failures: true, ..Judging::default() };
    assert_eq!(fold(&strict, rounds(cases)).all.verdicts.rate(), Some(1.0 / 3.0));
}

#[test]
fn repeats_say_how_steady_a_case_is() {
    let cases: &[(&str, &[Verdict])] =
        &[("a", &[PASS, PASS]), ("b", &[PASS, FAIL]), ("c", &[FAIL, FAIL])];
    let metrics = fold(&Judging::default(), rounds(cases));
    assert_eq!(metrics.all.verdicts, Verdicts { pass: 3, fail: 3, error: 0, undecided: 0 });
    assert!(metrics.is_clustered);
    let repeats = metrics.repeats.unwrap();
    assert_eq!(repeats.flaky.len(), 1);
    assert_eq!((repeats.flaky[0].passed, repeats.flaky[0].judged), (1, 2));
    // pass@1 is the rate; pass@2: a and b; pass^2: a alone.
    let tries: Vec<(u64, f64, f64)> =
        repeats.by_tries.iter().map(|it| (it.k, it.any, it.all)).collect();
    assert_eq!(tries, [(1, 0.5, 0.5), (2, 2.0 / 3.0, 1.0 / 3.0)]);
    // The rounds: 2 of 3 and 1 of 3.
    assert_eq!(repeats.mean, Some(0.5));
    assert!((repeats.deviation.unwrap() - (1.0_f64 / 18.0).sqrt()).abs() < 1e-12);
}

#[test]
fn m_of_n_counts_a_case_once() {
    let cases: &[(&str, &[Verdict])] = &[
        ("a", &[PASS, PASS, FAIL]),
        ("b", &[PASS, FAIL, FAIL]),
        ("c", &[PASS, ERROR, FAIL]),
        ("d", &[ERROR, FAIL, FAIL]),
    ];
    let judging = Judging { min_pass: Some(2), ..Judging::default() };
    let metrics = fold(&judging, rounds(cases));
    assert_eq!(metrics.all.verdicts, Verdicts { pass: 1, fail: 2, error: 1, undecided: 0 });
    assert_eq!(metrics.results(), 12);
    assert!(!metrics.is_clustered);
}

#[test]
fn known_failures_are_told_apart() {
    let cases: &[(&str, &[Verdict])] =
        &[("a", &[PASS, PASS]), ("b", &[PASS, FAIL]), ("c", &[FAIL, FAIL]), ("d", &[ERROR, PASS])];
    let known = ["a", "c", "d"].map(str::to_owned);
    let judging = Judging { known_failures: known.into(), ..Judging::default() };
    let metrics = fold(&judging, rounds(cases));
    assert_eq!(metrics.unexpected_failures, 1);
    assert_eq!(metrics.unexpected_passes, ["a"]);
}

#[test]
fn groups_widen_the_interval() {
    let grouped = |with_group: bool| {
        let outcomes = (0..40).map(|at| ResultFacts {
            group: with_group.then(|| format!("g{}", at / 10)),
            ..outcome(&format!("{at:02}"), 0, if at < 20 { PASS } else { FAIL })
        });
        fold(&Judging::default(), outcomes.collect())
    };
    let width = |it: &Metrics| it.interval.map(|it| it.high - it.low).unwrap();
    assert!(width(&grouped(true)) > 1.5 * width(&grouped(false)));
}

/// The interval of a score that every case gets in so many rounds.
fn score_interval(values: &[f64], rounds: u32, group: Option<&str>) -> Interval {
    let result = |at: usize, repeat: u32| ResultFacts {
        group: group.map(ToOwned::to_owned),
        scores: vec![Score { value: Some(values[at]), ..Score::new("tone", None) }],
        ..outcome(&format!("{at:02}"), repeat, PASS)
    };
    let results = (0..values.len()).flat_map(|at| (0..rounds).map(move |repeat| (at, repeat)));
    let results = results.map(|(at, repeat)| result(at, repeat)).collect();
    fold(&Judging::default(), results).scores["tone"].summary.interval.unwrap()
}

#[test]
fn asking_the_same_again_says_nothing_new_about_a_mean() {
    let values = [0.2, 0.35, 0.4, 0.55, 0.6, 0.7, 0.75, 0.9];
    let (once, often) = (score_interval(&values, 1, None), score_interval(&values, 6, None));
    assert!((once.low - often.low).abs() < 1e-12, "{once:?} and {often:?}");
    assert!((once.high - often.high).abs() < 1e-12, "{once:?} and {often:?}");
}

#[test]
fn asking_the_same_again_says_nothing_new_about_a_share_of_scores() {
    let values = [1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0];
    let (once, often) = (score_interval(&values, 1, None), score_interval(&values, 6, None));
    assert!(often.low <= once.low && often.high >= once.high, "{once:?} and {often:?}");
}

#[test]
fn cases_with_one_value_are_units_beside_those_with_several() {
    let values: [(&str, &[f64]); 5] =
        [("a", &[1.0]), ("b", &[0.5, 0.25]), ("c", &[0.0]), ("d", &[0.75]), ("e", &[1.0, 1.0])];
    let results = values.into_iter().flat_map(|(id, values)| {
        (0..).zip(values).map(move |(repeat, value)| ResultFacts {
            scores: vec![Score { value: Some(*value), ..Score::new("tone", None) }],
            ..outcome(id, repeat, PASS)
        })
    });
    let found = fold(&Judging::default(), results.collect()).scores["tone"].summary;
    let sums = values.map(|(_, values)| GroupSum {
        sum: values.iter().sum(),
        count: u64::try_from(values.len()).unwrap(),
    });
    let expected = mean_clustered(&sums, USUAL_LEVEL).unwrap();
    assert_eq!(found.count, 7);
    assert!((found.mean.unwrap() - expected.mean).abs() < 1e-12);
    let interval = found.interval.unwrap();
    assert!((interval.low - expected.interval.low.max(0.0)).abs() < 1e-12);
    assert!((interval.high - expected.interval.high.min(1.0)).abs() < 1e-12);
}

#[test]
fn a_single_case_or_group_has_the_interval_of_its_values() {
    let values = [0.2, 0.35, 0.4, 0.55];
    assert_eq!(score_interval(&values, 1, Some("g")), score_interval(&values, 1, None));
}

#[test]
fn a_slow_worker_is_seen() {
    let judging = Judging::default();
    let mut fold = Fold::new(&judging);
    for (at, (worker, latency_ms)) in
        [("a", 10), ("b", 900), ("a", 30), ("b", 700)].into_iter().enumerate()
    {
        let worker = Some(worker.to_owned());
        let plain = outcome(&format!("case-{at}"), 0, Verdict::Pass);
        fold.add(ResultFacts { latency_ms, worker, ..plain });
    }
    let failed = outcome("failed", 0, Verdict::Error);
    let (worker, error) = (Some("b".to_owned()), Some(ErrorKind::Timeout));
    fold.add(ResultFacts { error, worker, ..failed });
    let workers = fold.finish().workers;
    let shown: Vec<_> = workers
        .iter()
        .map(|(name, it)| (name.as_str(), it.results, it.errors, it.latency.map(|it| it.max)))
        .collect();
    assert_eq!(shown, [("a", 2, 0, Some(30.0)), ("b", 3, 1, Some(900.0))]);
}
