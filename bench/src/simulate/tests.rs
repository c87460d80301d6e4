use super::*;

/// Simulates seeds, all of which have to be as they must be.
fn simulated(first: u64, seeds: u64) -> Sums {
    let campaign = Campaign { first, seeds, limit: None, is_told: false, defect: None };
    let (sums, wrong) = simulate(campaign, 1).unwrap();
    let told: Vec<String> = wrong.iter().map(|(seed, why)| told(*seed, why)).collect();
    assert!(wrong.is_empty(), "\n{}", told.join("\n"));
    assert_eq!(sums.worlds, seeds);
    // Otherwise nothing was tried.
    assert!(sums.kills > seeds / 2 && sums.failures > 0 && sums.stops > seeds / 4, "{sums:?}");
    sums
}

// Several tests, because these can run at the same time.

#[test]
fn runs_come_to_the_same_whatever_befalls_them_in_worlds_from_1() {
    simulated(1, 60);
}

#[test]
fn runs_come_to_the_same_whatever_befalls_them_in_worlds_from_1001() {
    simulated(1001, 60);
}

#[test]
fn runs_come_to_the_same_whatever_befalls_them_in_worlds_from_2001() {
    simulated(2001, 60);
}

#[test]
fn runs_come_to_the_same_whatever_befalls_them_in_worlds_from_3001() {
    simulated(3001, 60);
}

#[test]
fn the_same_seed_is_the_same_run() {
    assert_eq!(simulated(4001, 15), simulated(4001, 15));
}

/// How a world that is broken is noticed.
fn noticed(defect: Defect) -> String {
    let campaign =
        Campaign { first: 1, seeds: 40, limit: None, is_told: false, defect: Some(defect) };
    let (_, wrong) = simulate(campaign, 1).unwrap();
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
