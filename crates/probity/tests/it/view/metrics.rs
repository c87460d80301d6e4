//! What Prometheus gets.

use super::{View, project, project_with_a_run};

/// The samples of a family.
fn samples<'a>(text: &'a str, family: &str) -> Vec<&'a str> {
    let is_of =
        |line: &&str| line.strip_prefix(family).is_some_and(|it| it.starts_with(['{', ' ']));
    text.lines().filter(is_of).collect()
}

#[test]
fn figures_of_the_latest_run_are_at_metrics() {
    let project = project_with_a_run();
    let view = View::start(&project, &[]);
    let got = view.get("/metrics");
    assert_eq!(got.status, 200, "{}", got.body);
    assert!(got.head.contains("content-type: text/plain; version=0.0.4"), "{}", got.head);
    let has = |line: &str| assert!(got.body.lines().any(|it| it == line), "{line}:\n{}", got.body);
    let file = project.path("probity.toml").canonicalize().unwrap();
    let lane = format!(
        r#"suite="probity.toml",file="{}",runner="words",variant="",backend="echo""#,
        file.display()
    );
    has(r#"probity_runs{status="complete"} 1"#);
    has(&format!("probity_planned_results{{{lane}}} 30"));
    has(&format!(r#"probity_results{{{lane},verdict="pass"}} 20"#));
    has(&format!(r#"probity_gates{{{lane},status="fail"}} 1"#));
    assert_eq!(samples(&got.body, "probity_tokens").len(), 4);
    assert_eq!(samples(&got.body, "probity_latency_seconds").len(), 8);
    let head = view.ask(&format!("HEAD /metrics HTTP/1.1\r\nHost: {}", view.address));
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    assert_eq!(view.get("/metrics?suite=x").status, 400);
}

#[test]
fn suites_of_one_name_in_two_folders_are_two() {
    let project = project();
    let suite = project.read("probity.toml");
    let project = project.file("other/probity.toml", suite);
    let cases = project.read("cases.jsonl");
    let project = project.file("other/cases.jsonl", cases);
    for suite in ["probity.toml", "other/probity.toml"] {
        let ran = project.run(&["run", suite, "--store", "s.db", "-q", "--informational"]);
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    }
    let view = View::start(&project, &["--store", "s.db"]);
    let text = view.get("/metrics").body;
    let series = samples(&text, "probity_pass_ratio");
    assert_eq!(series.len(), 4, "{text}");
    let names: std::collections::BTreeSet<&str> =
        series.iter().filter_map(|it| it.split('}').next()).collect();
    assert_eq!(names.len(), 4, "{text}");
}

#[test]
fn the_dashboard_asks_for_figures_that_there_are() {
    let project = project_with_a_run();
    let view = View::start(&project, &[]);
    let text = view.get("/metrics").body;
    let dashboard = include_str!("../../../../../examples/grafana/probity.json");
    let dashboard: serde_json::Value = serde_json::from_str(dashboard).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|it| it["targets"].as_array().unwrap());
    let expressions: Vec<&str> = targets.map(|it| it["expr"].as_str().unwrap()).collect();
    assert!(expressions.len() >= 10);
    let name = regex::Regex::new("probity_[a-z_]+").unwrap();
    for found in expressions.iter().flat_map(|it| name.find_iter(it)) {
        assert!(text.contains(&format!("# TYPE {} gauge", found.as_str())), "{}", found.as_str());
    }
}
