use super::*;

fn simulated(first: u64, seeds: u64) -> Sums {
    let campaign = Campaign { first, seeds, limit: None, is_told: false };
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
