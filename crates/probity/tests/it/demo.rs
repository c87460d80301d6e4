//! `probity demo`: every part of the tour is in the store, and can be repeated.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufRead as _, BufReader},
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::project::Project;

const STORE: &str = "probity-demo/.probity/probity.db";

/// The lines of JSON that a command prints.
fn lines(project: &Project, words: &[&str]) -> Vec<Value> {
    let output = project.run(words);
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn by_id<'a>(results: &'a [Value], field: &str) -> BTreeMap<&'a str, &'a str> {
    let of = |it: &'a Value, at: &str| it.pointer(at).and_then(Value::as_str).unwrap();
    results.iter().map(|it| (of(it, "/case_id"), of(it, field))).collect()
}

/// Ends with the test.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn every_part_of_the_tour_has_happened() {
    let project = Project::new();
    let began = Instant::now();
    let output = project.run(&["demo"]);
    let took = began.elapsed();
    let text = String::from_utf8(output.stdout).unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}{told}");
    assert!(took < Duration::from_secs(30), "{took:?} on a busy machine");
    assert!(!text.contains('\u{1b}') && !told.contains('\u{1b}'), "colours on a pipe");
    let commands: Vec<&str> = text.lines().filter(|it| it.starts_with("$ ")).collect();

    let mut runs = lines(&project, &["runs", "--json", "--store", STORE]);
    runs.reverse();
    let ids: Vec<&str> = runs.iter().map(|it| it["run_id"].as_str().unwrap()).collect();
    let &[classes, keys, before, after] = &ids[..] else { panic!("{runs:#?}") };
    let short = before.rsplit('-').next().unwrap();
    assert_eq!(
        commands,
        [
            "$ probity run classes.toml",
            "$ DEMO_KEY=wrong probity run keys.toml",
            "$ probity run sums.toml",
            "$ probity run sums.toml --resume",
            "$ probity run sums.toml --model adder-2",
            &format!("$ probity compare {short} latest"),
        ]
    );

    let results = |run: &str| lines(&project, &["show", run, "--json", "--store", STORE]);
    eight_classes_and_a_retry(&results(classes));
    the_healthy_backend_is_not_disturbed(&results(keys));
    the_killed_run_is_whole(&results(before), &told);
    the_regression_is_found(&project, before, after);
}

fn eight_classes_and_a_retry(results: &[Value]) {
    let classes: BTreeSet<&str> = by_id(results, "/classification/primary").into_values().collect();
    let all = [
        "crash",
        "error",
        "fail",
        "pass",
        "policy_violation",
        "refusal",
        "timeout",
        "wrong_format",
    ];
    assert_eq!(classes, BTreeSet::from(all));
    for (id, class) in by_id(results, "/classification/primary") {
        assert!(id == class.replace('_', "-") || id == "asked-to-wait", "{id}: {class}");
    }
    let waited = results.iter().find(|it| it["case_id"] == "asked-to-wait").unwrap();
    assert_eq!(waited["verdict"], "pass");
    let failed = &waited["failures"][0];
    assert_eq!(
        (&failed["error"]["kind"], &failed["error"]["retry_after"]),
        (&"rate_limit".into(), &1.0.into())
    );
    assert!(failed["retry_in_ms"].as_u64() >= Some(1000), "{failed}");
}

fn the_healthy_backend_is_not_disturbed(results: &[Value]) {
    let of =
        |backend: &str| results.iter().filter(|it| it["backend"] == backend).collect::<Vec<_>>();
    let healthy = of("healthy");
    assert_eq!(healthy.len(), 24);
    assert!(healthy.iter().all(|it| it["verdict"] == "pass"));
    let locked = of("locked");
    assert!(
        !locked.is_empty() && locked.iter().all(|it| it["error"]["kind"] == "auth"),
        "{locked:#?}"
    );
}

/// Every case once, and fewer asked after the kill than there are.
fn the_killed_run_is_whole(results: &[Value], told: &str) {
    assert_eq!(results.len(), 24);
    assert!(by_id(results, "/verdict").into_values().all(|verdict| verdict == "pass"));
    let resumed = told.lines().find_map(|line| {
        let (done, _) =
            line.strip_prefix("sums on adder: ")?.split_once(" of 24 cases are done")?;
        done.parse::<u64>().ok()
    });
    assert!((1..24).contains(&resumed.unwrap()), "{told}");
}

fn the_regression_is_found(project: &Project, before: &str, after: &str) {
    let compared = project.run(&["compare", before, after, "--format", "json", "--store", STORE]);
    let compared: Value = serde_json::from_slice(&compared.stdout).unwrap();
    let pair = &compared["pairs"][0];
    let regressions = pair["regressions"].as_array().unwrap();
    assert_eq!(regressions.len(), 11, "{compared:#}");
    assert!(pair["p_value"].as_f64() < Some(0.01), "{compared:#}");
}

#[test]
fn the_server_comes_back_where_it_was() {
    let project = Project::new();
    assert_eq!(project.run(&["demo", "tour"]).status.code(), Some(0));
    let mut serving = project.command(&["demo", "--serve", "tour"]);
    let served = serving.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut served = Served(served);
    let mut line = String::new();
    BufReader::new(served.0.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("the demo's server listens on http://127.0.0.1:"), "{line}");
    let again = project
        .command(&["run", "classes.toml", "--porcelain"])
        .current_dir(project.path("tour"))
        .output()
        .unwrap();
    assert_eq!(again.status.code(), Some(0), "{again:?}");
}

#[test]
fn nothing_is_overwritten() {
    let project = Project::new().file("tour/mine", "mine");
    insta::assert_snapshot!(project.shown(&["demo", "tour"]), @"
    exit 2
    --- err
    error: failed to create the folder `tour`
      caused by: File exists (os error 17)
    hint: name a new folder: probity demo DIR
    ");
    insta::assert_snapshot!(project.shown(&["demo", "--serve", "tour"]), @"
    exit 2
    --- err
    error: `tour/sums.toml` is not a suite of the demo
      caused by: No such file or directory (os error 2)
    hint: name the folder of an earlier demo: probity demo --serve DIR
    ");
}
