//! Pages about suite files, their datasets and their backends.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use probity_testkit::{FakeServer, Script};
use serde_json::Value;

use super::{View, project, project_with_a_run};
use crate::{project::Project, resume::wait_until};

/// The file of a project, as it stands in an address.
pub(super) fn encoded(path: &Path) -> String {
    fs::canonicalize(path).unwrap().display().to_string().replace('/', "%2F")
}

/// What programs are told of the suite of a project.
fn survey(view: &View, project: &Project) -> Value {
    let got = view.get(&format!("/api/v1/suites/{}", encoded(&project.path("probity.toml"))));
    assert_eq!(got.status, 200, "{}", got.body);
    got.json()["survey"].clone()
}

#[test]
fn a_suite_shows_its_datasets_and_leads_to_its_runs() {
    let project = project_with_a_run();
    let view = View::start(&project, &[]);
    let list = view.page("/suites");
    for part in ["this folder", "href=\"/?suite=probity.toml\"", "/suites/%2F"] {
        assert!(list.contains(part), "{part}: {list}");
    }
    // Programs wait until it is read.
    let survey = survey(&view, &project);
    let page = view.page(&format!("/suites/{}", encoded(&project.path("probity.toml"))));
    for part in
        ["words", "cases.jsonl", "By category", "correctness", "By tag", "even", "Decided by"]
    {
        assert!(page.contains(part), "{part}: {page}");
    }
    let stats = &survey["runners"][0]["stats"];
    let told = project.run(&["dataset", "stats", "--json", "cases.jsonl"]);
    let told: Value = serde_json::from_slice(&told.stdout).unwrap();
    for key in ["cases", "categories", "tags", "criteria", "longest_prompt"] {
        assert_eq!(stats[key], told[key], "{key}");
    }
    assert_eq!(survey["problems"]["errors"], 0, "{survey}");
}

#[test]
fn problems_of_a_dataset_stand_where_validate_finds_them() {
    let project = Project::new()
        .file("probity.toml", "[backends.e]\nkind = \"echo\"\n[[runners]]\nname = \"r\"\ndataset = \"c.jsonl\"\n")
        .file(
            "c.jsonl",
            "{\"id\": \"a\", \"prompt\": \"the quick brown fox jumps over the dog\", \"expected_response\": \"x\"}\n\
             {\"id\": \"a\", \"prompt\": \"another one entirely\", \"expected_response\": \"x\"}\n\
             {\"id\": \"b\", \"prompt\": \"the quick brown fox jumps over the dog\", \"expected_response\": \"x\"}\n\
             {\"id\": \"c\", \"promt\": \"typo\"}\n\
             {\"id\": \"d\", \"prompt\": \"nobody knows\"}\n\
             {\"id\": <b>\n",
        );
    let view = View::start(&project, &[]);
    let survey = survey(&view, &project);
    let runner = &survey["runners"][0];
    let told = project.run(&["dataset", "validate", "--json", "c.jsonl"]);
    let told = String::from_utf8(told.stdout).unwrap();
    let lines: Vec<Value> = told.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    let places = |all: &[Value], line: &dyn Fn(&Value) -> Value| -> Vec<(String, Value)> {
        all.iter()
            .filter(|it| it["code"].is_string())
            .map(|it| (it["code"].as_str().unwrap().to_owned(), line(it)))
            .collect()
    };
    let by_command = places(&lines, &|it| it["line"].clone());
    let by_page =
        places(runner["problems"]["first"].as_array().unwrap(), &|it| it["place"]["line"].clone());
    assert_eq!(by_page, by_command);
    assert!(by_page.iter().any(|it| it.0 == "duplicate-id" && it.1 == 2), "{by_page:?}");
    assert_eq!(runner["findings"]["counts"]["near-duplicate"], 1, "{runner}");
    let page = view.page(&format!("/suites/{}", encoded(&project.path("probity.toml"))));
    for part in [">c.jsonl:2:8<", "duplicate-id", "near-duplicate", "<mark>&lt;</mark>b&gt;"] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[test]
fn what_is_changed_in_a_file_is_seen() {
    let project = project();
    let view = View::start(&project, &[]);
    assert_eq!(survey(&view, &project)["runners"][0]["stats"]["cases"], 30);
    let case = "{\"id\": \"only\", \"prompt\": \"p\", \"expected_response\": \"p\"}\n";
    fs::write(project.path("cases.jsonl"), case).unwrap();
    assert_eq!(survey(&view, &project)["runners"][0]["stats"]["cases"], 1);
    fs::write(project.path("probity.toml"), "[[runners]\nname = <b>\n").unwrap();
    let broken = survey(&view, &project);
    assert_eq!(broken["problems"]["first"][0]["place"]["line"], 1, "{broken}");
    for target in
        ["/suites".to_owned(), format!("/suites/{}", encoded(&project.path("probity.toml")))]
    {
        let page = view.page(&target);
        assert!(page.contains("1 error"), "{page}");
    }
    assert!(view.page("/doctor").contains("The suite cannot be used"));
    assert_eq!(view.get("/api/v1/doctor").json()["is_sound"], false);
}

#[test]
fn suites_that_are_not_there_have_pages_of_their_own() {
    let project = Project::new();
    let view = View::start(&project, &[]);
    for (target, told) in [
        ("/suites", "No suites yet"),
        ("/doctor", "No suite to look at"),
        ("/trends", "No runs yet"),
        ("/compare", "No runs yet"),
    ] {
        assert!(view.page(target).contains(told), "{target}");
    }
    assert_eq!(view.get("/api/v1/suites").json()["suites"], serde_json::json!([]));
    drop(view);
    let project = project_with_a_run();
    let gone = encoded(&project.path("probity.toml"));
    fs::remove_file(project.path("probity.toml")).unwrap();
    let view = View::start(&project, &[]);
    assert!(view.page("/suites").contains("file is gone"));
    assert!(view.page(&format!("/suites/{gone}")).contains("The file is gone"));
    assert_eq!(view.get(&format!("/api/v1/suites/{gone}")).status, 404);
}

#[test]
fn no_other_file_is_read_whoever_names_it() {
    let project = project_with_a_run().file("secret.toml", "[[runners]\nsecret = 1\n");
    let view = View::start(&project, &[]);
    let secret = encoded(&project.path("secret.toml"));
    for target in [
        format!("/suites/{secret}"),
        format!("/api/v1/suites/{secret}"),
        format!("/doctor?suite={secret}"),
        format!("/api/v1/doctor?suite={secret}"),
        "/suites/%2Fetc%2Fpasswd".to_owned(),
        "/suites/".to_owned(),
    ] {
        let got = view.get(&target);
        assert_eq!(got.status, 404, "{target}: {}", got.body);
    }
}

#[test]
fn the_doctor_asks_nobody_and_starts_nothing() {
    let server = FakeServer::start(Script::default());
    let suite = format!(
        "[backends.server]\nkind = \"openai\"\nbase_url = \"{}/v1\"\nmodel = \"m\"\n\
         [backends.keyed]\nkind = \"openai\"\nmodel = \"m\"\napi_key_env = \"NO_SUCH_KEY_HERE\"\n\
         [backends.tool]\nkind = \"claude\"\ncommand = [\"./tool\"]\n\
         [backends.gone]\nkind = \"command\"\ncommand = [\"./gone\"]\n\
         [backends.code]\nkind = \"python\"\nfile = \"made.py\"\n",
        server.url()
    );
    let project = Project::new()
        .file("probity.toml", suite)
        .file("tool", "#!/bin/sh\ntouch started\n")
        .file("made.py", "open('started', 'w')\n\ndef call_api(prompt, options, context):\n    return {'output': prompt}\n");
    fs::set_permissions(project.path("tool"), fs::Permissions::from_mode(0o755)).unwrap();
    let view = View::start(&project, &[]);
    let page = view.page("/doctor");
    for part in ["Not ready", "NO_SUCH_KEY_HERE", "not found", "probity doctor", "--call"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let told = view.get("/api/v1/doctor").json();
    let trouble = |name: &str| {
        let of = told["backends"].as_array().unwrap().iter().find(|it| it["backend"] == name);
        let findings = of.unwrap()["findings"].as_array().unwrap();
        findings.iter().any(|it| it["is_trouble"] == true)
    };
    assert!(!trouble("server") && !trouble("tool") && !trouble("code"), "{told}");
    assert!(trouble("keyed") && trouble("gone"), "{told}");
    assert_eq!(server.seen().requests, 0);
    assert!(!project.path("started").exists());
}

#[test]
fn code_of_a_suite_is_not_run_and_what_never_ends_is_not_read() {
    let project = Project::new()
        .file(
            "probity.toml",
            "[backends.e]\nkind = \"echo\"\n\
             [[runners]]\nname = \"made\"\ndataset = \"file://made.py:cases\"\n\
             [[runners]]\nname = \"pipe\"\ndataset = \"pipe.jsonl\"\n",
        )
        .file("made.py", "open('started', 'w')\n\ndef cases():\n    return []\n");
    let made = Command::new("mkfifo").arg(project.path("pipe.jsonl")).status().unwrap();
    assert!(made.success());
    let view = View::start(&project, &[]);
    let survey = survey(&view, &project);
    let unread = |at: usize| survey["runners"][at]["unread"].as_str().unwrap().to_owned();
    assert!(unread(0).contains("Only a run calls it"), "{survey}");
    assert!(unread(1).contains("not an ordinary file"), "{survey}");
    assert!(!project.path("started").exists());
}

#[test]
fn a_large_dataset_does_not_hold_up_a_page() {
    let case = |at: usize| {
        let words = format!("a prompt of some length with the number {at} in it. ").repeat(4);
        format!("{{\"id\": \"c{at}\", \"prompt\": \"{words}\", \"expected_response\": \"{at}\"}}\n")
    };
    let cases: String = (0..20_000).map(case).collect();
    let project = Project::new()
        .file(
            "probity.toml",
            "[backends.e]\nkind = \"echo\"\n[[runners]]\nname = \"r\"\ndataset = \"c.jsonl\"\n",
        )
        .file("c.jsonl", cases);
    let view = View::start(&project, &[]);
    let target = format!("/suites/{}", encoded(&project.path("probity.toml")));
    let first = view.page(&target);
    assert!(first.contains("Being read"), "{first}");
    wait_until("it is read", || view.page(&target).contains("20,000"));
    let page = view.page(&target);
    assert!(page.contains("first 5,000"));
    // It can be copied into any terminal.
    let file = fs::canonicalize(project.path("c.jsonl")).unwrap();
    let command = format!("probity dataset lint {}", file.display());
    assert!(page.contains(&command), "{command}: {page}");
}
