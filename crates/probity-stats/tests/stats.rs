//! Our statistics against those of scipy, statsmodels, numpy, krippendorff and exact arithmetic.
//!
//! `scripts/stats-fixtures` makes the fixture. Two numbers agree if they differ by no more than 1e-9 of
//! the expected one; in intervals and coefficients of agreement, which may well be 0, by no more than
//! 1e-9.

use std::fmt::Debug;

use probity_stats::{
    Interval,
    agreement::{Scale, Weights, cohen_kappa, fleiss_kappa, krippendorff_alpha},
    attempts::{pass_at_k, pass_hat_k},
    multiple::holm,
    paired::{Pairs, mcnemar_exact, mean_difference, mean_difference_clustered, tango},
    proportion::{Group, clustered, wilson, wilson_95},
    sample_size::{Independent, Paired, independent, paired},
    spread::{Moments, percentile},
};
use proptest::prelude::*;
use serde_json::Value;

const TOLERANCE: f64 = 1e-9;

/// The points of one function, at least a hundred.
fn points(function: &str) -> Vec<Value> {
    let mut all: Value =
        serde_json::from_str(include_str!("fixtures/stats.json")).expect("the fixture is JSON");
    let points: Vec<Value> =
        serde_json::from_value(all[function].take()).expect("a list of points");
    assert!(points.len() >= 100, "{function} has {} points", points.len());
    points
}

fn float(point: &Value, key: &str) -> f64 {
    point[key].as_f64().unwrap_or_else(|| panic!("no `{key}` in {point}"))
}

fn count(point: &Value, key: &str) -> u64 {
    point[key].as_u64().unwrap_or_else(|| panic!("no `{key}` in {point}"))
}

fn list<T: serde::de::DeserializeOwned>(point: &Value, key: &str) -> Vec<T> {
    serde_json::from_value(point[key].clone()).expect("a list of this kind")
}

fn relative(ours: Option<f64>, theirs: f64, at: &dyn Debug) {
    let ours = ours.unwrap_or_else(|| panic!("no answer, expected {theirs}: {at:?}"));
    assert!((ours - theirs).abs() <= TOLERANCE * theirs.abs(), "{ours} is not {theirs}: {at:?}");
}

fn absolute(ours: Option<f64>, theirs: f64, at: &dyn Debug) {
    let ours = ours.unwrap_or_else(|| panic!("no answer, expected {theirs}: {at:?}"));
    assert!((ours - theirs).abs() <= TOLERANCE, "{ours} is not {theirs}: {at:?}");
}

fn same_interval(ours: Interval, point: &Value) {
    absolute(Some(ours.low), float(point, "low"), point);
    absolute(Some(ours.high), float(point, "high"), point);
}

#[test]
fn wilson_agrees_with_statsmodels() {
    for point in points("wilson") {
        let (passed, total) = (count(&point, "passed"), count(&point, "total"));
        same_interval(wilson(passed, total, float(&point, "level")).unwrap(), &point);
    }
}

#[test]
fn clustered_agrees_with_statsmodels() {
    for point in points("clustered") {
        let groups: Vec<Group> = list::<(u64, u64)>(&point, "groups")
            .into_iter()
            .map(|(passed, total)| Group { passed, total })
            .collect();
        let found = clustered(&groups, float(&point, "level")).unwrap();
        relative(Some(found.share), float(&point, "share"), &point);
        relative(Some(found.standard_error), float(&point, "error"), &point);
        match point["effect"].as_f64() {
            Some(effect) => relative(found.design_effect, effect, &point),
            None => assert_eq!(found.design_effect, None, "{point}"),
        }
        same_interval(found.interval, &point);
    }
}

#[test]
fn attempts_agree_with_exact_fractions() {
    for point in points("attempts") {
        let (n, c, k) = (count(&point, "n"), count(&point, "c"), count(&point, "k"));
        relative(pass_at_k(n, c, k), float(&point, "at"), &point);
        let hat = float(&point, "hat");
        // Below the least normal number digits are lost, whoever computes it.
        if hat > 0.0 && hat < f64::MIN_POSITIVE {
            absolute(pass_hat_k(n, c, k), 0.0, &point);
        } else {
            relative(pass_hat_k(n, c, k), hat, &point);
        }
    }
}

#[test]
fn spread_agrees_with_numpy_and_exact_fractions() {
    for point in points("spread") {
        let values: Vec<f64> = list(&point, "values");
        let moments: Moments = values.iter().copied().collect();
        relative(moments.mean(), float(&point, "mean"), &point);
        match point["deviation"].as_f64() {
            Some(deviation) => relative(moments.deviation(), deviation, &point),
            None => assert_eq!(moments.deviation(), None),
        }
        for (percent, expected) in list::<(f64, f64)>(&point, "percents") {
            relative(percentile(&mut values.clone(), percent), expected, &(percent, &point));
        }
    }
}

#[test]
fn mcnemar_agrees_with_statsmodels() {
    for point in points("mcnemar") {
        let p = float(&point, "p");
        let ours = mcnemar_exact(count(&point, "b"), count(&point, "c"));
        if p < f64::MIN_POSITIVE {
            absolute(Some(ours), 0.0, &point);
        } else {
            relative(Some(ours), p, &point);
        }
    }
}

#[test]
fn tango_agrees_with_a_numeric_solution() {
    for point in points("tango") {
        let counts: Vec<u64> = list(&point, "pairs");
        let &[both, only_first, only_second, neither] = counts.as_slice() else { unreachable!() };
        let pairs = Pairs { both, only_first, only_second, neither };
        let found = tango(pairs, float(&point, "level")).unwrap();
        same_interval(found, &point);
        assert!(found.low < found.high, "{point}");
    }
}

#[test]
fn mean_differences_agree_with_statsmodels() {
    let of_cases = points("differences").into_iter().map(|point| {
        (mean_difference(&list::<f64>(&point, "values"), float(&point, "level")), point)
    });
    let of_groups = points("differences_clustered").into_iter().map(|point| {
        let groups = list::<Vec<f64>>(&point, "groups");
        (mean_difference_clustered(&groups, float(&point, "level")), point)
    });
    for (found, point) in of_cases.chain(of_groups) {
        let found = found.unwrap();
        absolute(Some(found.mean), float(&point, "mean"), &point);
        absolute(Some(found.standard_error), float(&point, "error"), &point);
        // With one degree of freedom a limit may be far away.
        let scale = float(&point, "high").abs().max(1.0);
        absolute(Some(found.interval.low / scale), float(&point, "low") / scale, &point);
        absolute(Some(found.interval.high / scale), float(&point, "high") / scale, &point);
    }
}

#[test]
fn holm_agrees_with_statsmodels() {
    for point in points("holm") {
        let ours = holm(&list::<f64>(&point, "raw"));
        let theirs: Vec<f64> = list(&point, "adjusted");
        assert_eq!(ours.len(), theirs.len());
        ours.iter().zip(theirs).for_each(|(ours, theirs)| relative(Some(*ours), theirs, &point));
    }
}

#[test]
fn sample_sizes_agree_with_root_finding_and_statsmodels() {
    for point in points("sample_paired") {
        let (alpha, power) = (float(&point, "alpha"), float(&point, "power"));
        let (difference, discordant) = (float(&point, "difference"), float(&point, "discordant"));
        let found = paired(Paired { difference, discordant, alpha, power });
        assert_eq!(found, Some(count(&point, "cases")), "{point}");
    }
    for point in points("sample_independent") {
        let (alpha, power) = (float(&point, "alpha"), float(&point, "power"));
        let (first, second) = (float(&point, "first"), float(&point, "second"));
        let found = independent(Independent { first, second, alpha, power });
        assert_eq!(found, Some(count(&point, "cases")), "{point}");
    }
}

#[test]
fn kappa_agrees_with_statsmodels() {
    for point in points("kappa") {
        let table: Vec<Vec<u64>> = list(&point, "table");
        absolute(cohen_kappa(&table, Weights::Equal), float(&point, "equal"), &point);
        absolute(cohen_kappa(&table, Weights::Linear), float(&point, "linear"), &point);
        absolute(cohen_kappa(&table, Weights::Quadratic), float(&point, "quadratic"), &point);
    }
}

#[test]
fn fleiss_kappa_agrees_with_statsmodels() {
    for point in points("fleiss") {
        let table: Vec<Vec<u64>> = list(&point, "table");
        absolute(fleiss_kappa(&table), float(&point, "kappa"), &point);
    }
}

#[test]
fn fleiss_kappa_of_the_worked_example_is_the_published_one() {
    let example: Vec<Vec<u64>> = list(&points("fleiss")[0], "table");
    let kappa = fleiss_kappa(&example).expect("fourteen judges in five categories");
    assert_eq!(format!("{kappa:.3}"), "0.210");
}

#[test]
fn alpha_agrees_with_krippendorff() {
    for point in points("alpha") {
        let judged: Vec<Vec<f64>> = list::<Vec<Option<f64>>>(&point, "judged")
            .into_iter()
            .map(|values| values.into_iter().map(|value| value.unwrap_or(f64::NAN)).collect())
            .collect();
        absolute(krippendorff_alpha(&judged, Scale::Nominal), float(&point, "nominal"), &point);
        absolute(krippendorff_alpha(&judged, Scale::Ordinal), float(&point, "ordinal"), &point);
        absolute(krippendorff_alpha(&judged, Scale::Interval), float(&point, "interval"), &point);
    }
}

#[test]
fn questions_without_an_answer_have_none() {
    assert_eq!(wilson(3, 2, 0.95), None);
    assert_eq!(wilson(1, 2, 0.0), None);
    assert_eq!(wilson(1, 2, 1.0), None);
    assert_eq!(wilson(1, 2, f64::NAN), None);
    let one = Group { passed: 1, total: 2 };
    assert_eq!(clustered(&[one, Group { passed: 0, total: 0 }], 0.95), None);
    assert_eq!(clustered(&[one, Group { passed: 3, total: 2 }], 0.95), None);
    assert_eq!(pass_at_k(3, 4, 1), None);
    assert_eq!(pass_at_k(3, 1, 0), None);
    assert_eq!(pass_hat_k(3, 1, 4), None);
    assert_eq!(Moments::default().mean(), None);
    assert_eq!([1.0].into_iter().collect::<Moments>().deviation(), None);
    assert_eq!([1.0, f64::NAN].into_iter().collect::<Moments>().mean(), None);
    assert_eq!(percentile(&mut [1.0, f64::NAN], 50.0), None);
    assert_eq!(percentile(&mut [1.0], f64::NAN), None);
    assert_eq!(tango(Pairs::default(), 0.95), None);
    assert_eq!(mean_difference(&[1.0], 0.95), None);
    assert_eq!(mean_difference(&[1.0, f64::INFINITY], 0.95), None);
    assert_eq!(mean_difference_clustered(&[vec![1.0, 2.0], vec![]], 0.95), None);
    assert_eq!(paired(Paired { difference: 0.2, discordant: 0.1, alpha: 0.05, power: 0.8 }), None);
    assert_eq!(paired(Paired { difference: 0.0, discordant: 0.0, alpha: 0.05, power: 0.01 }), None);
    assert_eq!(independent(Independent { first: 0.5, second: 0.5, alpha: 0.05, power: 0.8 }), None);
    assert_eq!(cohen_kappa(&[], Weights::Equal), None);
    assert_eq!(cohen_kappa(&[vec![1, 2]], Weights::Equal), None);
    assert_eq!(cohen_kappa(&[vec![5, 0], vec![0, 0]], Weights::Linear), None);
    assert_eq!(fleiss_kappa(&[]), None);
    assert_eq!(fleiss_kappa(&[vec![1, 0], vec![0, 1]]), None);
    assert_eq!(fleiss_kappa(&[vec![3, 0], vec![3, 0]]), None);
    assert_eq!(fleiss_kappa(&[vec![2, 1], vec![1, 1]]), None);
    assert_eq!(fleiss_kappa(&[vec![2, 1], vec![1, 1, 1]]), None);
    assert_eq!(krippendorff_alpha(&[vec![1.0], vec![2.0]], Scale::Nominal), None);
    assert_eq!(krippendorff_alpha(&[vec![1.0, 1.0]], Scale::Ordinal), None);
    assert_eq!(krippendorff_alpha(&[vec![1.0, f64::INFINITY]], Scale::Interval), None);
}

#[test]
fn an_interval_has_a_width_where_none_or_all_passed() {
    for interval in [wilson_95(0, 20), wilson_95(20, 20)] {
        let interval = interval.unwrap();
        assert!(interval.high - interval.low > 0.1);
    }
    let groups = [Group { passed: 10, total: 10 }; 2];
    let interval = clustered(&groups, 0.95).unwrap().interval;
    assert!(interval.low < 0.9 && interval.high > 1.0 - TOLERANCE);
}

#[test]
fn huge_counts_take_no_time() {
    let max = u64::MAX;
    assert!(mcnemar_exact(max / 2, max / 2 - 1) > 0.999);
    assert!(mcnemar_exact(max, 0) < 1e-300);
    let p = mcnemar_exact((1 << 40) - (1 << 20), (1 << 40) + (1 << 20));
    // 2²¹ - 1 of 2⁴¹ throws: 1.414213 standard deviations.
    assert!((p - 0.157_299).abs() < 1e-5, "{p}");
    assert!(pass_at_k(max, max / 2, max / 2).unwrap() > 0.999);
    assert!(pass_hat_k(max, max - 4_000_000_000, 4_000_000_000).is_some());
    assert!(wilson_95(max, max).unwrap().low > 0.999);
}

/// Any float, with those that hurt more often.
fn any_float() -> impl Strategy<Value = f64> {
    prop_oneof![any::<f64>(), -1.0..2.0, Just(f64::NAN), Just(f64::INFINITY), Just(0.0), Just(-0.0)]
}

fn any_count() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), 0..50_u64, Just(u64::MAX)]
}

proptest! {
    #[test]
    fn wilson_lies_in_the_unit_and_holds_the_share(
        (passed, total) in (1..5000_u64).prop_flat_map(|total| (0..=total, Just(total))),
        level in 0.01..0.999_f64,
    ) {
        #[expect(clippy::cast_precision_loss, reason = "small")]
        let share = passed as f64 / total as f64;
        let interval = wilson(passed, total, level).unwrap();
        prop_assert!(0.0 <= interval.low && interval.low <= share);
        prop_assert!(share <= interval.high && interval.high <= 1.0);
        prop_assert!(interval.low < interval.high);

        let mirrored = wilson(total - passed, total, level).unwrap();
        prop_assert!((mirrored.low - (1.0 - interval.high)).abs() < 1e-12);
        prop_assert!((mirrored.high - (1.0 - interval.low)).abs() < 1e-12);

        let wider = wilson(passed, total, level + 0.0005).unwrap();
        prop_assert!(wider.low <= interval.low && interval.high <= wider.high);
        if passed < total {
            let more = wilson(passed + 1, total, level).unwrap();
            prop_assert!(interval.low <= more.low && interval.high <= more.high);
        }
    }

    #[test]
    fn clustered_is_never_narrower_than_wilson(
        groups in prop::collection::vec((0..20_u64).prop_flat_map(|t| (0..=t, Just(t))), 2..20),
        level in 0.5..0.999_f64,
    ) {
        let groups: Vec<_> =
            groups.into_iter().map(|(passed, total)| Group { passed, total }).collect();
        if let Some(found) = clustered(&groups, level) {
            let (passed, total) =
                groups.iter().fold((0, 0), |sum, group| (sum.0 + group.passed, sum.1 + group.total));
            let plain = wilson(passed, total, level).unwrap();
            prop_assert!(0.0 <= found.interval.low && found.interval.low <= found.share);
            prop_assert!(found.share <= found.interval.high && found.interval.high <= 1.0);
            prop_assert!(found.interval.low <= plain.low + 1e-12);
            prop_assert!(found.interval.high >= plain.high - 1e-12);
        }
    }

    #[test]
    fn more_attempts_pass_sooner_and_all_pass_later(n in 2..400_u64, c in 0..400_u64, k in 1..400_u64) {
        let (c, k) = (c.min(n), k.min(n - 1));
        prop_assert!(pass_at_k(n, c, k).unwrap() <= pass_at_k(n, c, k + 1).unwrap() + 1e-12);
        prop_assert!(pass_hat_k(n, c, k).unwrap() >= pass_hat_k(n, c, k + 1).unwrap() - 1e-12);
    }

    #[test]
    fn mcnemar_is_symmetric_and_falls_as_the_runs_part(b in 0..3000_u64, c in 0..3000_u64) {
        let (b, c) = (b.min(c), b.max(c));
        let p = mcnemar_exact(b, c);
        prop_assert!((0.0..=1.0).contains(&p));
        prop_assert_eq!(p.to_bits(), mcnemar_exact(c, b).to_bits());
        prop_assert!(mcnemar_exact(b, c + 1) <= p + 1e-12);
    }

    #[test]
    fn tango_holds_the_difference_and_is_mirrored(
        both in 0..500_u64, only_first in 0..500_u64, only_second in 0..500_u64, neither in 0..500_u64,
        level in 0.01..0.999_f64,
    ) {
        let pairs = Pairs { both, only_first, only_second, neither };
        prop_assume!(pairs != Pairs::default());
        let interval = tango(pairs, level).unwrap();
        let n = f64::from(u32::try_from(both + only_first + only_second + neither).unwrap());
        let difference = (f64::from(u32::try_from(only_first).unwrap())
            - f64::from(u32::try_from(only_second).unwrap())) / n;
        prop_assert!(-1.0 <= interval.low && interval.low <= difference);
        prop_assert!(difference <= interval.high && interval.high <= 1.0);
        prop_assert!(interval.low < interval.high);
        let exchanged =
            Pairs { only_first: only_second, only_second: only_first, ..pairs };
        let mirrored = tango(exchanged, level).unwrap();
        prop_assert_eq!((mirrored.low, mirrored.high), (-interval.high, -interval.low));
    }

    #[test]
    fn holm_never_falls_and_keeps_the_order(raw in prop::collection::vec(0.0..=1.0_f64, 0..40)) {
        let adjusted = holm(&raw);
        for (i, one) in adjusted.iter().enumerate() {
            prop_assert!(raw[i] <= *one && *one <= 1.0);
            for (j, other) in adjusted.iter().enumerate() {
                prop_assert!(raw[i] > raw[j] || one <= other);
            }
        }
    }

    #[test]
    fn a_percentile_lies_among_the_values(
        mut values in prop::collection::vec(-1e300..1e300_f64, 1..60), percent in 0.0..=100.0_f64,
    ) {
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let found = percentile(&mut values, percent).unwrap();
        prop_assert!(least <= found && found <= greatest);
    }

    #[test]
    fn nothing_panics_on_any_counts(
        a in any_count(), b in any_count(), c in any_count(), d in any_count(), level in any_float(),
    ) {
        wilson(a, b, level);
        clustered(&[Group { passed: a, total: b }, Group { passed: c, total: d }], level);
        pass_at_k(a, b, c);
        pass_hat_k(a, b, c);
        prop_assert!((0.0..=1.0).contains(&mcnemar_exact(a, b)));
        let pairs = Pairs { both: a, only_first: b, only_second: c, neither: d };
        if let Some(interval) = tango(pairs, level) {
            prop_assert!(-1.0 <= interval.low && interval.low <= interval.high && interval.high <= 1.0);
        }
        cohen_kappa(&[vec![a, b], vec![c, d]], Weights::Quadratic);
    }

    #[test]
    fn nothing_panics_on_any_numbers(
        mut values in prop::collection::vec(any_float(), 0..20),
        a in any_float(), b in any_float(), alpha in any_float(), power in any_float(),
    ) {
        values.iter().copied().collect::<Moments>().deviation();
        if let Some(found) = mean_difference(&values, alpha) {
            prop_assert!(found.interval.low <= found.mean && found.mean <= found.interval.high);
        }
        mean_difference_clustered(&values.chunks(3).map(<[f64]>::to_vec).collect::<Vec<_>>(), alpha);
        prop_assert!(holm(&values).iter().all(|p| (0.0..=1.0).contains(p)));
        paired(Paired { difference: a, discordant: b, alpha, power });
        independent(Independent { first: a, second: b, alpha, power });
        let judged: Vec<_> = values.chunks(2).map(<[f64]>::to_vec).collect();
        for scale in [Scale::Nominal, Scale::Ordinal, Scale::Interval] {
            krippendorff_alpha(&judged, scale);
        }
        percentile(&mut values, a);
    }
}
