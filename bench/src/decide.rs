//! Deciding gates early: how often that is wrong, and how many calls it saves.
//!
//! Runs are made up with known outcomes, their cases drawn in random order from a fixed seed, so that
//! the same program prints the same table everywhere.

use std::process::ExitCode;

use fastrand::Rng;
use probity_stats::{
    decide::{Counts, Decided, Observation, Sequential, Threshold, exact},
    proportion::{wilson, wilson_95},
    spread::Moments,
};

const ALPHA: f64 = 0.05;
/// Not the seed under which the prior of the bets was chosen.
const SEED: u64 = 1;
/// Among so many rows some would be over alpha by chance at 95 %.
const SURE: f64 = 0.9995;
const PLANNED: [u64; 3] = [100, 1000, 10_000];
const GATES: [(u64, u64); 3] = [(948, 1000), (9, 10), (1, 1)];

/// A run whose outcomes are known.
#[derive(Clone, Copy)]
struct Truth {
    name: &'static str,
    passed: u64,
    failed: u64,
    errors: u64,
}

/// What came of deciding many such runs early.
#[derive(Default)]
struct Tally {
    runs: u64,
    wrong: u64,
    saved_exactly: Moments,
    saved: Moments,
}

/// Prints a row for each kind of run. The exit code is 1 if a gate is decided wrongly more often than
/// alpha allows.
pub(crate) fn run(runs: usize) -> ExitCode {
    let mut rng = Rng::with_seed(SEED);
    let mut over = 0;
    println!("{runs} runs a row, alpha {ALPHA}, seed {SEED}");
    println!(
        "| planned | gate | the run | passed | errors | decided wrongly (95 %) | calls saved, exact | calls saved, alpha |"
    );
    println!("|--:|--:|---|--:|--:|--:|--:|--:|");
    for planned in PLANNED {
        for (numerator, denominator) in GATES {
            let Some(threshold) = Threshold::new(numerator, denominator) else { continue };
            for truth in truths(planned, threshold) {
                let tally = decide_many(truth, threshold, runs, &mut rng);
                let Tally { runs, wrong, saved_exactly, saved } = tally;
                let (Some(usual), Some(sure)) = (wilson_95(wrong, runs), wilson(wrong, runs, SURE))
                else {
                    continue;
                };
                over += usize::from(sure.low > ALPHA);
                let percent = |share: Option<f64>| share.unwrap_or_default() * 100.0;
                println!(
                    "| {planned} | {:.1} % | {} | {} | {} | {:.2} % ({:.2}–{:.2}) | {:.1} % | {:.1} % |",
                    percent(ratio(numerator, denominator)),
                    truth.name,
                    truth.passed,
                    truth.errors,
                    percent(ratio(wrong, runs)),
                    usual.low * 100.0,
                    usual.high * 100.0,
                    percent(saved_exactly.mean()),
                    percent(saved.mean()),
                );
            }
        }
    }
    println!("rows surely over alpha: {over}");
    if over == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs below, next to and above a gate, and the same with errors for one size.
fn truths(planned: u64, threshold: Threshold) -> Vec<Truth> {
    let of_graded = |graded: u64| {
        let needed = threshold.passes_needed(graded);
        let spare = graded - needed;
        [
            ("far below", Some(needed - graded / 10)),
            ("below", Some(needed - graded / 50)),
            ("just under", Some(needed - 1)),
            ("at", Some(needed)),
            ("above", (spare > 0).then_some(needed + spare / 2)),
            ("all pass", (spare > 0).then_some(graded)),
        ]
        .into_iter()
        .filter_map(move |(name, passed)| {
            passed.map(|passed| Truth {
                name,
                passed,
                failed: graded - passed,
                errors: planned - graded,
            })
        })
    };
    let with_errors = (planned == 1000).then(|| of_graded(planned - planned / 50));
    of_graded(planned).chain(with_errors.into_iter().flatten()).collect()
}

fn decide_many(truth: Truth, threshold: Threshold, runs: usize, rng: &mut Rng) -> Tally {
    let mut tally = Tally::default();
    for _ in 0..runs {
        decide_one(truth, threshold, rng, &mut tally);
    }
    tally
}

/// Draws the cases of one run until it is decided beyond doubt.
fn decide_one(truth: Truth, threshold: Threshold, rng: &mut Rng, tally: &mut Tally) {
    let Truth { name: _, passed, failed, errors } = truth;
    let planned = passed + failed + errors;
    let right = exact(Counts { passed, failed, errors, planned }, threshold);
    let Some(mut gate) = Sequential::new(planned, threshold, ALPHA) else { return };
    let mut counts = Counts { planned, ..Counts::default() };
    let mut calls = None;
    while exact(counts, threshold) == Decided::Open {
        let (passes_left, fails_left) = (passed - counts.passed, failed - counts.failed);
        let drawn = rng.u64(0..counts.rest());
        let outcome = if drawn < passes_left {
            counts.passed += 1;
            Observation::Passed
        } else if drawn < passes_left + fails_left {
            counts.failed += 1;
            Observation::Failed
        } else {
            counts.errors += 1;
            Observation::Error
        };
        if gate.observe(outcome) != Decided::Open && calls.is_none() {
            calls = Some(planned - counts.rest());
        }
    }
    let all_calls = planned - counts.rest();
    tally.runs += 1;
    tally.wrong += u64::from(gate.decision() != right);
    tally.saved_exactly.push(ratio(planned - all_calls, planned).unwrap_or_default());
    tally.saved.push(ratio(planned - calls.unwrap_or(all_calls), planned).unwrap_or_default());
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "counts of runs and cases are small")]
    (whole > 0).then(|| part as f64 / whole as f64)
}
