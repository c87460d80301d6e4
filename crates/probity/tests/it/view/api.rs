//! What programs get.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::project::Project;

use super::{View, project_with_a_run, run};

/// The results of all pages, as lane, id and repeat.
fn walked(view: &View, filters: &str) -> Vec<(u64, String, u64)> {
    let mut all = Vec::new();
    let mut after = String::new();
    loop {
        let page = view.get(&format!("/api/v1/runs/latest/cases?limit=7{filters}{after}")).json();
        for case in page["cases"].as_array().unwrap() {
            let number = |name: &str| case[name].as_u64().unwrap();
            all.push((
                number("lane"),
                case["case_id"].as_str().unwrap().to_owned(),
                number("repeat"),
            ));
        }
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => return all,
        }
    }
}

#[test]
fn pages_of_any_order_hold_every_result_once() {
    let project = project_with_a_run();
    let view = View::start(&project, &[]);
    for sort in ["verdict", "case", "class", "category", "latency", "tokens", "cost", "score"] {
        for sign in ["", "-"] {
            let all = walked(&view, &format!("&sort={sign}{sort}"));
            let once: BTreeSet<_> = all.iter().collect();
            assert_eq!((all.len(), once.len()), (60, 60), "{sign}{sort}");
        }
    }
    let ids: Vec<String> = walked(&view, "&sort=-case&lane=1").into_iter().map(|it| it.1).collect();
    let mut sorted = ids.clone();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    assert_eq!(ids, sorted);
}

#[test]
fn filters_find_what_they_say() {
    let project = project_with_a_run();
    run(&project);
    let view = View::start(&project, &[]);
    let check = |filters: &str, expected: usize| {
        assert_eq!(walked(&view, filters).len(), expected, "{filters}");
    };
    check("", 60);
    check("&lane=1", 30);
    check("&backend=sed", 30);
    check("&variant=none", 0);
    check("&lane=1&verdict=fail", 10);
    check("&lane=2&verdict=fail", 14);
    check("&class=pass", 36);
    check("&category=correctness", 20);
    check("&tag=even&lane=1", 15);
    check("&q=case/0&lane=1", 10);
    check("&q=SIX+12&lane=1", 1);
    check("&q=100%25", 0);
    check("&score=found&min=0&max=0.5&lane=1", 10);
    check("&min=1", 36);
    check("&score=unknown", 0);
    check("&flaky=1", 0);
    check("&flipped=latest", 0);
    let page = view.get("/api/v1/runs/latest/cases?lane=1&verdict=fail&limit=3").json();
    assert_eq!((page["total"].clone(), page["cases"].as_array().unwrap().len()), (json!(10), 3));
}

#[test]
fn cases_that_flipped_since_another_run_are_found() {
    let project = project_with_a_run();
    let before = project.read("probity.toml");
    std::fs::write(project.path("probity.toml"), before.replace("s/one/two/", "s/six/two/"))
        .unwrap();
    run(&project);
    let view = View::start(&project, &[]);
    let runs = view.get("/api/v1/runs").json();
    let first = runs["runs"][1]["run_id"].as_str().unwrap().to_owned();
    // With `one` kept and `six` lost, those two thirds flip that are not wrong in any case.
    let flipped = walked(&view, &format!("&flipped={first}"));
    assert_eq!(flipped.len(), 20);
    assert!(flipped.iter().all(|it| it.0 == 2), "{flipped:?}");
    let compared = view.get(&format!("/api/v1/compare?runs={first}@sed,latest@sed")).json();
    let pair = &compared["pairs"][0];
    let count = |name: &str| pair[name].as_array().unwrap().len();
    assert_eq!((count("regressions"), count("fixes")), (16, 4));
    assert_eq!(pair["reasons"].as_object().unwrap().len(), 20);
    assert_eq!(compared["notes"], json!([]));
}

#[test]
fn runs_of_different_datasets_are_compared_with_a_note() {
    let project = project_with_a_run();
    let fewer: Vec<String> =
        project.read("cases.jsonl").lines().skip(1).map(ToOwned::to_owned).collect();
    std::fs::write(project.path("cases.jsonl"), fewer.join("\n")).unwrap();
    run(&project);
    let view = View::start(&project, &[]);
    let runs = view.get("/api/v1/runs").json();
    let first = runs["runs"][1]["run_id"].as_str().unwrap().to_owned();
    let note = "are of different datasets: the cases that both have are compared";
    let target = format!("/compare?runs={first}@sed,latest@sed");
    let notes = view.get(&format!("/api/v1{target}")).json()["notes"].clone();
    assert!(notes[0].as_str().unwrap().ends_with(note), "{notes}");
    let page = view.get(&target).body;
    assert!(page.contains(note), "{page}");
}

#[test]
fn runs_are_listed_by_pages_and_filters() {
    let project = project_with_a_run();
    run(&project);
    run(&project);
    let view = View::start(&project, &[]);
    let ids = |target: &str| -> Vec<String> {
        let page = view.get(target).json();
        let ids = page["runs"].as_array().unwrap().iter();
        ids.map(|it| it["run_id"].as_str().unwrap().to_owned()).collect()
    };
    let all = ids("/api/v1/runs");
    assert_eq!(all.len(), 3);
    let first = view.get("/api/v1/runs?limit=2").json();
    let rest = ids(&format!("/api/v1/runs?limit=2&after={}", first["next"].as_str().unwrap()));
    assert_eq!(rest, all[2..]);
    assert_eq!(ids("/api/v1/runs?suite=probity.toml&backend=sed"), all);
    assert_eq!(ids("/api/v1/runs?backend=other"), Vec::<String>::new());
    assert_eq!(ids("/api/v1/runs?until=2001-01-01"), Vec::<String>::new());
    assert_eq!(ids("/api/v1/runs?since=2001-01-01"), all);
    assert_eq!(ids(&format!("/api/v1/runs?q={}", all[1])), all[1..2]);
    assert_eq!(ids("/api/v1/runs?q=%25"), Vec::<String>::new());
    // The first case alone has another tag than the second.
    let odd = project.run(&["run", "-q", "--informational", "--case", "case/01"]);
    assert!(odd.status.success());
    let alone = ids("/api/v1/runs?limit=1");
    assert_eq!(ids("/api/v1/runs?tag=even"), all);
    assert_eq!(ids("/api/v1/runs?tag=odd"), [alone, all].concat());
    assert_eq!(ids("/api/v1/runs?tag=prime"), Vec::<String>::new());
    let page = view.page("/?tag=prime");
    assert!(page.contains("No run matches") && page.contains("value=\"odd\""), "{page}");
}

#[test]
fn the_list_of_runs_counts_as_the_run_itself_does() {
    let suite = "version = \"1\"\n[backends.flip]\nkind = \"command\"\n\
        command = [\"sh\", \"-c\", \"cat >>seen; echo $(wc -l <seen)\"]\n\
        [[runners]]\nname = \"r\"\ndataset = \"c.jsonl\"\nrepeat = 2\nmin_pass = 1\n";
    let case =
        json!({ "id": "a", "prompt": "x\n", "assert": [{ "type": "contains", "value": "1" }] });
    let project = Project::new().file("probity.toml", suite).lines("c.jsonl", &[case]);
    project.run(&["run", "-q", "-j", "1", "--informational"]);
    let view = View::start(&project, &[]);
    let listed = view.get("/api/v1/runs").json()["runs"][0].clone();
    let run = view.get("/api/v1/runs/latest").json();
    assert_eq!(listed["verdicts"], run["verdicts"], "{listed} {run}");
    assert_eq!(
        listed["verdicts"]["pass"].as_u64().unwrap() + listed["verdicts"]["fail"].as_u64().unwrap(),
        1
    );
}

/// The addresses of the description, with real names in them.
fn real(path: &str) -> String {
    path.replace("{run}", "latest").replace("{case}", "case%2F05")
}

#[test]
fn answers_are_as_they_are_described() {
    let project = project_with_a_run();
    run(&project);
    let view = View::start(&project, &[]);
    let document = view.get("/api/v1/openapi.json").json();
    let paths = document["paths"].as_object().unwrap();
    let mut checked = 0;
    for (path, item) in paths {
        let good = &item["get"]["responses"]["200"]["content"];
        let Some(schema) = good["application/json"]["schema"].as_object() else { continue };
        let query = match path.as_str() {
            "/api/v1/compare" => "?runs=latest@echo,latest@sed",
            "/api/v1/trends" => "?suite=probity.toml",
            _ => "",
        };
        let suite = super::suites::encoded(&project.path("probity.toml"));
        let path = &path.replace("{file}", &suite);
        let target = format!("{}{query}", real(path));
        let got = view.get(&target);
        assert_eq!(got.status, 200, "{target}: {}", got.body);
        let mut whole = document.clone();
        whole.as_object_mut().unwrap().extend(schema.clone());
        check_schema(&whole, &got.json(), &target);
        let refused = view.get(&format!("{}?no-such=1", real(path)));
        assert_eq!(refused.status, 400, "{path}");
        let mut envelope = document.clone();
        let of_problem = json!({ "$ref": "#/components/schemas/Problem" });
        envelope.as_object_mut().unwrap().extend(of_problem.as_object().unwrap().clone());
        check_schema(&envelope, &refused.json(), path);
        checked += 1;
    }
    assert_eq!(checked, 10);
}

fn check_schema(schema: &Value, value: &Value, what: &str) {
    let validator = jsonschema::draft202012::new(schema).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(value).map(|it| format!("{it} at {}", it.instance_path())).collect();
    assert!(errors.is_empty(), "{what}: {errors:?}");
}

#[test]
fn every_parameter_that_is_described_is_known() {
    let project = project_with_a_run();
    let view = View::start(&project, &[]);
    let document = view.get("/api/v1/openapi.json").json();
    for (path, item) in document["paths"].as_object().unwrap() {
        if path.ends_with("events") {
            continue;
        }
        for parameter in item["get"]["parameters"].as_array().into_iter().flatten() {
            let (name, place) =
                (parameter["name"].as_str().unwrap(), parameter["in"].as_str().unwrap());
            if place != "query" {
                continue;
            }
            let got = view.get(&format!("{}?{name}=", real(path)));
            let message = got.json()["error"]["message"].as_str().unwrap_or_default().to_owned();
            let is_known = got.status == 200
                || message.contains("missing")
                || message.contains("at least two");
            assert!(is_known, "{path} {name}: {message}");
        }
    }
}
