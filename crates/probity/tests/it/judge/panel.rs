//! Several judges, judges that are asked several times, and answers that keep to a schema.

use std::fmt::Write as _;

use probity_testkit::{Answer, FakeServer, Received, Record, Rule, Script, Trouble, When};
use serde_json::{Value, json};

use super::{case, judged, of};
use crate::{
    project::Project,
    rescore::check_export,
    run::{run, stored},
};

/// A suite with a model and the judges `a`, `b` and `c`, whose models have the same names.
fn suite(server: &FakeServer, kind: &str, runner: &str) -> String {
    let mut text = String::from("[retry]\nbackoff_base = 0.01\n");
    for name in ["small", "a", "b", "c"] {
        let kind = if name == "small" { "openai" } else { kind };
        let url = if kind == "ollama" { server.url() } else { format!("{}/v1", server.url()) };
        let _ = writeln!(
            text,
            "[backends.{name}]\nkind = \"{kind}\"\nbase_url = \"{url}\"\nmodel = \"{name}\""
        );
    }
    let _ = writeln!(
        text,
        "[[runners]]\nname = \"r\"\nbackends = [\"small\"]\ndataset = \"cases.jsonl\"\n{runner}"
    );
    text
}

fn says(judge: &str, answer: Answer) -> Rule {
    Rule::new(When::ModelIs(judge.to_owned()), answer)
}

fn rubric() -> Value {
    json!([{ "type": "llm-rubric", "value": "It is polite." }])
}

fn project(server: &FakeServer, kind: &str, runner: &str, ids: &[&str]) -> Project {
    let cases: Vec<String> = ids.iter().map(|id| case(id, &rubric())).collect();
    Project::new()
        .file("cases.jsonl", cases.join("\n"))
        .file("probity.toml", suite(server, kind, runner))
}

#[test]
fn several_judges_make_one_verdict() {
    for (combine, verdict, value) in [
        ("majority", "pass", 0.75),
        ("all", "fail", 0.25),
        ("any", "pass", 1.0),
        ("mean", "fail", 2.0 / 3.0),
    ] {
        let script = Script::default()
            .rule(says("a", judged(5)))
            .rule(says("b", judged(4)))
            .rule(says("c", judged(2)));
        let server = FakeServer::start(script);
        let runner = format!("judges = [\"a\", \"b\", \"c\"]\ncombine = \"{combine}\"");
        let project = project(&server, "openai", &runner, &["fine"]);
        let dry = project.shown(&["run", "--dry-run"]);
        assert!(dry.contains("at most 3 judgements by a (a), b (b), c (c)"), "{dry}");
        run(&project, &[]).expect(0, &[("TOTAL_CALLS", "4")]);
        let found = stored(&project).remove(0);
        assert_eq!(found["verdict"], verdict, "{combine}");
        let score = &found["classification"]["scores"][0];
        assert!((score["value"].as_f64().unwrap() - value).abs() < 1e-9, "{combine}: {score}");
        let reason = score["reason"].as_str().unwrap();
        assert!(
            reason.starts_with("2 of 3 judges are content; a gave 1.00: so it is; b"),
            "{reason}"
        );
        let judged = &found["classification"]["details"]["judged"][0];
        assert_eq!(judged["opinions"][2]["judge"], "c");
        assert_eq!(judged["opinions"][2]["passed"], false);
        let shown = project.shown(&["show", "latest", "fine"]);
        assert!(shown.contains("c: fail 0.25  so it is"), "{shown}");
        assert!(shown.contains("33 % of pairs agree"), "{shown}");
        check_export(&project);
    }
}

#[test]
fn a_rescore_combines_as_the_suite_says_now() {
    let script = Script::default()
        .rule(says("a", judged(5)))
        .rule(says("b", judged(5)))
        .rule(says("c", judged(1)));
    let server = FakeServer::start(script);
    let runner = "judges = [\"a\", \"b\", \"c\"]";
    let project = project(&server, "openai", runner, &["fine"]);
    run(&project, &[]).expect(0, &[]);
    assert_eq!(stored(&project)[0]["verdict"], "pass");
    let strict = suite(&server, "openai", &format!("{runner}\ncombine = \"all\""));
    let project = project.file("probity.toml", strict);
    let shown = project.shown(&["rescore"]);
    assert!(shown.contains("1 flipped"), "{shown}");
    assert_eq!(server.seen().asked, 4);
}

#[test]
fn agreement_of_judges_is_reported_over_the_run() {
    let about = |judge: &str, id: &str| {
        When::All(vec![
            When::ModelIs(judge.to_owned()),
            When::prompt_contains(&format!("\n{id}\n")),
        ])
    };
    let script = Script::default()
        .rule(Rule::new(about("a", "c1"), judged(5)))
        .rule(Rule::new(about("b", "c1"), judged(5)))
        .rule(Rule::new(about("a", "c2"), judged(1)))
        .rule(Rule::new(about("b", "c2"), judged(1)))
        .rule(Rule::new(about("a", "c3"), judged(5)))
        .rule(Rule::new(about("b", "c3"), judged(1)))
        .rule(Rule::new(about("a", "c4"), judged(5)))
        .rule(Rule::new(about("b", "c4"), judged(5)));
    let server = FakeServer::start(script);
    let project = project(&server, "openai", "judges = [\"a\", \"b\"]", &["c1", "c2", "c3", "c4"]);
    let ran = run(&project, &[]);
    // Chance would agree on 3/4 * 2/4 + 1/4 * 2/4 = 1/2; 3 of 4 are the same: 0.5.
    assert!(
        ran.err.contains("judges a, b: all agree on 3 of 4 (75.0 %), kappa 0.50"),
        "{}",
        ran.err
    );
    let html = project.run(&["report", "latest", "-o", "r.html"]);
    assert_eq!(html.status.code(), Some(0), "{html:?}");
    let html = project.read("r.html");
    assert!(html.contains("judges agree") && html.contains("\"opinions\""), "{html}");
    project.run(&["report", "latest", "-o", "r.json"]);
    let found: Value = serde_json::from_str(&project.read("r.json")).unwrap();
    let figures = &found["judges"];
    assert_eq!((&figures["unanimous"], &figures["kappa"]), (&json!(3), &json!(0.5)), "{found:#}");
}

#[test]
fn a_judge_that_fails_is_no_error_as_long_as_most_answer() {
    let script = Script::default()
        .rule(says("a", judged(5)))
        .rule(says("b", judged(5)))
        .rule(says("c", Answer::fault(Trouble::BadKey)));
    let server = FakeServer::start(script);
    let three = "judges = [\"a\", \"b\", \"c\"]";
    let found = |runner: &str| {
        let project = project(&server, "openai", runner, &["fine"]);
        let ran = run(&project, &["--no-cache"]);
        (stored(&project).remove(0), ran.err)
    };
    let (quorum, err) = found(three);
    assert_eq!(quorum["verdict"], "pass", "{quorum:#}");
    assert!(err.contains("1 answer of judges is missing"), "{err}");
    let (all, _) = found(&format!("{three}\ncombine = \"all\""));
    assert_eq!((&all["verdict"], &all["error"]["kind"]), (&json!("error"), &json!("auth")));
    let (two, _) = found("judges = [\"a\", \"c\"]");
    assert_eq!(two["verdict"], "error");
    assert!(two["error"]["message"].as_str().unwrap().starts_with("judge `c`: "), "{two:#}");
}

#[test]
fn a_judge_that_is_asked_again_may_flip() {
    let script = Script::default()
        .rule(says("a", judged(5)).times(1))
        .rule(says("a", judged(1)).times(1))
        .rule(says("a", judged(5)));
    let server =
        FakeServer::start(Script { record: Record { requests: 8, ..Record::default() }, ..script });
    let runner = "judge = \"a\"\njudge_repeats = 3";
    let project = project(&server, "openai", runner, &["fine"]);
    let ran = run(&project, &["--cache"]);
    ran.expect(0, &[("TOTAL_CALLS", "4")]);
    assert!(ran.err.contains("judge noise: 1 of 3 answers (33.3 %)"), "{}", ran.err);
    let found = stored(&project).remove(0);
    assert_eq!(found["verdict"], "pass");
    let roles: Vec<&str> =
        found["asked"].as_array().unwrap().iter().map(|it| it["role"].as_str().unwrap()).collect();
    assert_eq!(
        roles,
        ["answer", "judge rubric 1", "judge rubric 1, again 1", "judge rubric 1, again 2"]
    );
    let seeds: Vec<Value> =
        server.seen().last.iter().skip(1).map(|it| it.json()["seed"].clone()).collect();
    assert_eq!(seeds[0], Value::Null);
    assert_ne!(seeds[1], seeds[2]);
    // Each of the three is kept for itself.
    let asked = server.seen().asked;
    run(&project, &["--cache"]).expect(0, &[]);
    assert_eq!(stored(&project)[0]["verdict"], "pass");
    assert_eq!(server.seen().asked, asked);
    check_export(&project);
}

#[test]
fn a_schema_goes_along_where_the_server_keeps_to_it() {
    let recorded =
        |script: Script| Script { record: Record { requests: 8, ..Record::default() }, ..script };
    let formats = |server: &FakeServer| -> Vec<bool> {
        server
            .seen()
            .last
            .iter()
            .skip(1)
            .map(|it| it.json().get("response_format").is_some())
            .collect()
    };
    let sent = |kind: &str, more: &str| {
        let server = FakeServer::start(recorded(Script::default().rule(says("a", judged(5)))));
        let project = project(&server, kind, &format!("judge = \"a\"\n{more}"), &["fine"]);
        run(&project, &[]).expect(0, &[]);
        formats(&server)
    };
    assert_eq!(sent("openai", ""), [false]);
    assert_eq!(sent("openai", "structured = true"), [true]);
    assert_eq!(sent("vllm", ""), [true]);
    assert_eq!(sent("vllm", "structured = false"), [false]);
    // A server that refuses it is asked without.
    let script = Script::default()
        .rule(says("a", Answer::fault(Trouble::BadRequest)).times(1))
        .rule(says("a", judged(5)));
    let server = FakeServer::start(recorded(script));
    let project = project(&server, "openai", "judge = \"a\"\nstructured = true", &["fine"]);
    run(&project, &[]).expect(0, &[]);
    assert_eq!(formats(&server), [true, false]);
    assert_eq!(of(&stored(&project), "fine")["verdict"], "pass");
}

#[test]
fn a_server_that_refuses_the_schema_is_not_sent_it_again() {
    let is_structured = |it: &Received| it.json().get("response_format").is_some();
    let script = Script::default()
        .rule(says("a", Answer::fault(Trouble::BadRequest)).times(1))
        .rule(says("a", judged(5)));
    let server = FakeServer::start(Script {
        record: Record { requests: 16, ..Record::default() },
        ..script
    });
    let runner = "judge = \"a\"\nstructured = true";
    let project = project(&server, "openai", runner, &["fine", "good", "well"]);
    run(&project, &["--max-concurrency", "1"]).expect(0, &[]);
    let formats: Vec<bool> = server.seen().last.iter().map(is_structured).collect();
    assert_eq!(formats.iter().filter(|it| **it).count(), 1, "{formats:?}");
}

#[test]
fn labelled_answers_are_judged_in_the_same_form() {
    let server = FakeServer::start(Script::always(judged(5)));
    let label = json!({ "human": 5, "prompt": "p", "answer": "x", "rubric": "It is good." });
    let sent = |runner: &str| {
        let project = project(&server, "openai", runner, &["fine"])
            .file("labels.jsonl", format!("{label}\n"));
        let output = project.run(&["judge", "agreement", "labels.jsonl", "--json"]);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        server.seen().last.back().unwrap().json().get("response_format").is_some()
    };
    assert!(sent("judge = \"a\"\nstructured = true"));
    assert!(!sent("judge = \"a\""));
}

#[test]
fn a_wrong_prompt_of_the_suite_is_told_of_once_and_where_it_stands() {
    let server = FakeServer::start(Script::default());
    let runner = "judge = \"a\"\nrubric_prompt = \"{{ output }} for {{ whom }}\"";
    let project = project(&server, "openai", runner, &["fine", "good", "well"]);
    let ran = run(&project, &[]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert_eq!(ran.err.matches("`whom` has no value").count(), 1, "{}", ran.err);
    assert!(ran.err.contains("`rubric_prompt` cannot be filled in"), "{}", ran.err);
    assert!(ran.err.contains("probity.toml:") && !ran.err.contains("cases.jsonl:"), "{}", ran.err);
    assert_eq!(server.seen().asked, 0);
}

#[test]
fn a_panel_that_makes_no_sense_is_refused() {
    let server = FakeServer::start(Script::default());
    for (runner, message) in [
        ("judges = [\"a\", \"d\"]", "there is no backend `d`"),
        ("judges = [\"a\", \"a\"]", "judge `a` is there twice"),
        ("judges = []", "must name 1 to 32 backends"),
        ("judge = \"a\"\njudges = [\"b\"]", "`judge` and `judges` exclude each other"),
        ("combine = \"most\"", "majority"),
        ("judge_repeats = 0", "judge_repeats"),
        ("rubric_prompt = \"{{ output\"", "`rubric_prompt` cannot be used"),
    ] {
        let project = project(&server, "openai", runner, &["fine"]);
        let ran = run(&project, &[]);
        assert_eq!(ran.code, Some(2), "{runner}: {}", ran.err);
        assert!(ran.err.contains(message), "{runner}: {}", ran.err);
        assert!(ran.err.contains("probity.toml:"), "{}", ran.err);
    }
    assert_eq!(server.seen().asked, 0);
}
