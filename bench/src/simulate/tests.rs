use super::*;

fn simulated(first: u64, seeds: u64) -> Sums {
    let campaign = Campaign { first, seeds, limit: None, is_told: false, defect: None };
    let (sums, wrong) = simulate(campaign, 2).unwrap();
    let told: Vec<String> = wrong.iter().map(|(seed, why)| told(*seed, why)).collect();
    assert!(wrong.is_empty(), "\n{}", told.join("\n"));
    sums
}

#[test]
fn runs_come_to_the_same_whatever_befalls_them() {
    let sums = simulated(1, 1000);
    assert_eq!(sums.worlds, 1000);
    assert!(sums.kills > 500 && sums.failures > 50 && sums.power_cuts > 10, "{sums:?}");
}

#[test]
fn the_same_seed_is_the_same_run() {
    assert_eq!(simulated(1, 20), simulated(1, 20));
}

/// How a world that is broken is noticed.
fn noticed(defect: Defect) -> String {
    let campaign =
        Campaign { first: 1, seeds: 60, limit: None, is_told: false, defect: Some(defect) };
    let (_, wrong) = simulate(campaign, 2).unwrap();
    wrong.iter().map(|(seed, why)| told(*seed, why)).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_broken_world_is_noticed_and_told_of_in_a_line_that_repeats_it() {
    let forgotten = noticed(Defect::Disk);
    assert!(forgotten.contains("shown, and not in the store"), "{forgotten}");
    let again = "again: cargo run --release -p probity-bench -- simulate --seed ";
    assert!(forgotten.lines().all(|it| it.starts_with("seed ") && it.contains(again)));
    let uncounted = noticed(Defect::Counts);
    assert!(uncounted.contains("calls began, and"), "{uncounted}");
    let fickle = noticed(Defect::Answers);
    assert!(fickle.contains("Right became"), "{fickle}");
}
