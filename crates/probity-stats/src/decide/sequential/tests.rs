use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// How many cases of a run end in each way.
#[derive(Clone, Copy, Debug)]
struct Truth {
    passed: u64,
    failed: u64,
    errors: u64,
}

/// The chance of a wrong decision over all orders of the cases, without drawing any.
fn chance_of_error(truth: Truth, threshold: Threshold, alpha: f64) -> f64 {
    let Truth { passed, failed, errors } = truth;
    let planned = passed + failed + errors;
    let right = exact(Counts { passed, failed, errors, planned }, threshold);
    let start = Sequential::new(planned, threshold, alpha).unwrap();
    // All orders of the same counts lead to the same state, so counts are enough.
    let mut states = BTreeMap::from([((0, 0, 0), (1.0, start))]);
    let mut wrong = 0.0;
    for seen in 0..planned {
        let mut next = BTreeMap::new();
        for ((p, f, e), (chance, gate)) in states {
            match gate.decision() {
                Decided::Open => {}
                decided if decided == right => continue,
                Decided::Pass | Decided::Fail => {
                    wrong += chance;
                    continue;
                }
            }
            for (outcome, left, counts) in [
                (Observation::Passed, passed - p, (p + 1, f, e)),
                (Observation::Failed, failed - f, (p, f + 1, e)),
                (Observation::Error, errors - e, (p, f, e + 1)),
            ] {
                if left == 0 {
                    continue;
                }
                let mut after = gate.clone();
                after.observe(outcome);
                let chance = chance * number(left) / number(planned - seen);
                next.entry(counts).or_insert((0.0, after)).0 += chance;
            }
        }
        states = next;
    }
    // What is left has seen all cases, so it is decided exactly.
    assert!(states.values().all(|(_, gate)| gate.decision() == right), "{truth:?} {threshold:?}");
    wrong
}

fn thresholds() -> impl Iterator<Item = Threshold> {
    [(0, 1), (1, 3), (1, 2), (9, 10), (948, 1000), (1, 1)]
        .into_iter()
        .map(|(numerator, denominator)| Threshold::new(numerator, denominator).unwrap())
}

#[test]
fn the_chance_of_error_is_at_most_alpha_over_all_orders() {
    let mut worst = 0.0_f64;
    for planned in [1, 2, 5, 20, 60] {
        for threshold in thresholds() {
            for passed in 0..=planned {
                for alpha in [0.05, 0.3] {
                    let truth = Truth { passed, failed: planned - passed, errors: 0 };
                    let chance = chance_of_error(truth, threshold, alpha);
                    assert!(chance <= alpha + 1e-12, "{chance} {truth:?} {threshold:?} {alpha}");
                    worst = worst.max(chance / alpha);
                }
            }
        }
    }
    // The bound is not kept by never deciding.
    assert!(worst > 0.5, "{worst}");
}

#[test]
fn errors_do_not_raise_the_chance_of_error() {
    for planned in [3, 8, 16] {
        for threshold in thresholds() {
            for passed in 0..=planned {
                for errors in 0..=planned - passed {
                    let truth = Truth { passed, failed: planned - passed - errors, errors };
                    let chance = chance_of_error(truth, threshold, 0.2);
                    assert!(chance <= 0.2 + 1e-12, "{chance} {truth:?} {threshold:?}");
                }
            }
        }
    }
}

#[test]
fn next_to_the_threshold_of_a_thousand_cases_the_chance_of_error_is_below_alpha() {
    let check = |passed: u64, numerator: u64, denominator: u64, expected: f64| {
        let truth = Truth { passed, failed: 1000 - passed, errors: 0 };
        let threshold = Threshold::new(numerator, denominator).unwrap();
        let chance = chance_of_error(truth, threshold, 0.05);
        assert!((chance - expected).abs() < 5e-5 && chance < 0.05, "{chance} {truth:?}");
    };
    check(899, 9, 10, 0.0463);
    check(900, 9, 10, 0.0288);
    check(947, 948, 1000, 0.0474);
    check(948, 948, 1000, 0.0271);
    check(999, 1, 1, 0.0370);
}

/// The logarithm of the rising factorial from `from`, with so many factors.
fn rising(from: f64, factors: u64) -> f64 {
    (0..factors).map(|i| libm::log(from + number(i))).sum()
}

/// The logarithm of the chance of `hits` under a beta-binomial distribution.
fn beta_binomial(hits: u64, throws: u64, a: f64, b: f64) -> f64 {
    let misses = throws - hits;
    rising(number(misses) + 1.0, hits) - rising(1.0, hits) + rising(a, hits) + rising(b, misses)
        - rising(a + b, throws)
}

#[test]
fn a_bet_is_the_ratio_of_prior_to_posterior() {
    let mut bet = Bet::that_more_than(17, 30);
    let (a, b) = bet.prior;
    for (i, passed) in [true, true, false, true, false, true, true, false].into_iter().enumerate() {
        bet.observe(passed);
        let left = 30 - u64::try_from(i + 1).unwrap();
        let (s, f) = (bet.successes, bet.failures);
        let posterior = beta_binomial(17 - s, left, a + number(s), b + number(f));
        let ratio = beta_binomial(17, 30, a, b) - posterior;
        assert!((bet.log_ratio - ratio).abs() < 1e-12, "{} is not {ratio}", bet.log_ratio);
    }
}

#[test]
fn the_next_number_is_the_hardest_to_rule_out() {
    let of = |supposed, outcomes: &[bool]| {
        let mut bet = Bet::that_more_than(supposed, 20);
        bet.prior = (1.0, 1.0);
        outcomes.iter().for_each(|passed| bet.observe(*passed));
        bet
    };
    for pattern in 0..1_u32 << 9 {
        let outcomes: Vec<bool> = (0..9).map(|bit| pattern >> bit & 1 == 1).collect();
        for supposed in 1..20 {
            let bet = of(supposed, &outcomes);
            let smaller = of(supposed - 1, &outcomes);
            if bet.is_least_against() && bet.log_ratio.is_finite() {
                assert!(smaller.log_ratio >= bet.log_ratio - 1e-12, "{supposed} {outcomes:?}");
            }
        }
    }
}

#[test]
fn a_decision_stays() {
    let mut gate = Sequential::new(1000, Threshold::new(1, 2).unwrap(), 0.05).unwrap();
    while gate.observe(Observation::Passed) == Decided::Open {}
    let counts = gate.counts();
    for _ in 0..2000 {
        assert_eq!(gate.observe(Observation::Failed), Decided::Pass);
    }
    assert_eq!(gate.counts(), counts);
}

#[test]
fn alpha_has_to_be_a_chance() {
    let threshold = Threshold::new(1, 2).unwrap();
    for alpha in [0.0, 1.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(Sequential::new(10, threshold, alpha), None);
    }
}

proptest! {
    #[test]
    fn no_run_makes_it_panic_and_every_end_is_decided(
        planned in prop_oneof![0..60_u64, any::<u64>(), Just(u64::MAX)],
        numerator: u64,
        denominator: u64,
        alpha in any::<f64>(),
        outcomes in prop::collection::vec(0..3_u8, 80),
    ) {
        let fraction = Threshold::new(numerator.min(denominator), denominator);
        let gate = fraction.and_then(|threshold| Sequential::new(planned, threshold, alpha.abs().fract()));
        if let Some(mut gate) = gate {
            for outcome in outcomes {
                gate.observe(match outcome {
                    0 => Observation::Passed,
                    1 => Observation::Failed,
                    _ => Observation::Error,
                });
            }
            prop_assert!(planned > 80 || gate.decision() != Decided::Open);
        }
    }
}
