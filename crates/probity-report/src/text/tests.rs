use anstream::adapter::strip_str;
use probity_core::record::{LaneStatus, RunStatus};

use super::*;
use crate::sample::{Sample, failed_call, lane, passed, refused, wrong};

/// What a terminal of so many columns shows after a run.
fn after_run(sample: &Sample, width: usize, exit_code: u8, since: Option<&Since>) -> String {
    let page = Page {
        since,
        suite: Some("suites/shell.toml"),
        exit_code: Some(exit_code),
        width,
        extent: Extent::Brief,
        ..Page::full(&sample.view, sample)
    };
    let text = strip_str(&render(&page).unwrap()).to_string();
    // A command is not broken, so that it can be copied.
    let lines = text.lines().filter(|line| !line.contains("probity "));
    let longest = lines.map(|line| line.chars().count()).max();
    assert!(longest <= Some(width), "{longest:?} columns:\n{text}");
    text
}

/// Two runners on two backends, one of which was given up.
fn four_lanes() -> Sample {
    let mut lanes = Vec::new();
    for runner in ["commands", "commands-without-hints"] {
        for backend in ["small", "a-backend-with-a-long-name"] {
            let mut cases: Vec<_> = (0..8).map(|at| wrong(&format!("files-{at}"))).collect();
            cases.extend([passed("copy"), failed_call("move"), refused("wipe")]);
            let mut lane = lane(backend, &cases);
            lane.runner = runner.to_owned();
            lanes.push((lane, cases));
        }
    }
    let mut sample = Sample::new(lanes);
    let reason = "overloaded: http <n>: try later".to_owned();
    sample.view.lanes[3].status = Some(LaneStatus::FailFast { reason, permanent: false });
    sample.view.lanes[3].aborted = 2;
    sample.view.status = RunStatus::Incomplete;
    sample
}

#[test]
fn failures_come_first_and_the_verdict_last() {
    let cases = (0..47).map(|at| wrong(&format!("case-{at:02}"))).chain([passed("copy")]);
    let sample = Sample::of(cases.collect());
    let flips = Flips {
        lane: 0,
        failing: (0..9).map(|at| format!("case-{at:02}")).collect(),
        passing: vec!["copy".to_owned()],
    };
    let since = Since { short: "ab12cd".to_owned(), started_ms: 0, lanes: vec![flips] };
    insta::assert_snapshot!(after_run(&sample, 80, 1, Some(&since)));
    insta::assert_snapshot!("one_lane_in_60_columns", after_run(&sample, 60, 1, Some(&since)));
}

#[test]
fn several_lanes_are_a_table_that_fits() {
    for width in [60, 80, 140] {
        let name = format!("four_lanes_in_{width}_columns");
        insta::assert_snapshot!(name, after_run(&four_lanes(), width, 3, None));
    }
}

#[test]
fn errors_are_told_apart_from_failures() {
    let mut sample = Sample::of(vec![failed_call("list"), failed_call("move"), passed("copy")]);
    sample.view.max_error_rate = 0.1;
    insta::assert_snapshot!(after_run(&sample, 80, 3, None));
}

#[test]
fn a_run_that_passes_says_so_in_few_lines() {
    let mut sample = Sample::of(vec![passed("copy"), passed("it's \"quoted\"")]);
    sample.view.lanes[0].gates.truncate(1);
    insta::assert_snapshot!(after_run(&sample, 80, 0, None));
}

#[test]
fn a_run_that_was_stopped_says_how_to_go_on() {
    let mut sample = Sample::of(vec![passed("copy"), refused("wipe")]);
    sample.view.lanes[0].lane.planned = 10;
    sample.view.lanes[0].status = Some(LaneStatus::Interrupted);
    sample.view.lanes[0].aborted = 3;
    sample.view.status = RunStatus::Incomplete;
    insta::assert_snapshot!(after_run(&sample, 80, 3, None));
}

#[test]
fn known_failures_are_counted_and_not_listed() {
    let mut sample = Sample::of(vec![wrong("new"), wrong("old"), passed("copy")]);
    sample.view.lanes[0].lane.judging.known_failures = ["old".to_owned()].into();
    let text = after_run(&sample, 80, 1, None);
    assert!(text.contains("\n1 case failed, and 1 that is known to\n  new  "), "{text}");
    assert!(!text.contains("\n  old"), "{text}");
}

#[test]
fn a_value_never_reads_like_the_limit_that_it_exceeds() {
    let mut cases: Vec<_> = (0..9000).map(|at| passed(&at.to_string())).collect();
    cases.extend((0..1001).map(|at| failed_call(&format!("e{at}"))));
    let mut sample = Sample::of(cases);
    sample.view.max_error_rate = 0.1;
    let text = after_run(&sample, 80, 3, None);
    let told = "ERROR (exit code 3): 10.01 % of the cases ended in an error, more than 10 %\n";
    assert!(text.contains(told), "{text}");
}
