//! What judges, scorers and runners have to do with conversations.

use probity_testkit::{Answer, FakeServer, Rule, Script, When};
use serde_json::{Value, json};

use super::{project, suite, tools};
use crate::{
    project::Project,
    run::{run, stored},
};

fn rubric_judge() -> Rule {
    let judged = r#"{"criteria":[{"name":"rubric","score":5,"reason":"fine"}]}"#;
    Rule::new(When::system_contains("judge"), Answer::text(judged))
}

/// The suite with something at its top, and something in its runner.
fn with(server: &FakeServer, project: Project, top: &str, runner: &str) -> Project {
    let text = suite("openai", server).replace("[retry]", &format!("{runner}\n[retry]"));
    project.file("probity.toml", format!("{top}\n{text}"))
}

fn scores(case: &Value) -> Vec<(&str, bool)> {
    let scores = case["classification"]["scores"].as_array().unwrap().iter();
    scores.map(|it| (it["name"].as_str().unwrap(), it["passed"].as_bool().unwrap())).collect()
}

fn judge_prompts(case: &Value) -> Vec<&str> {
    let asked = case["asked"].as_array().unwrap().iter();
    let of_judge = asked.filter(|it| it["role"].as_str().unwrap().starts_with("judge"));
    of_judge.map(|it| it["prompt"].as_str().unwrap()).collect()
}

#[test]
fn a_judge_sees_the_conversation_up_to_the_answer_that_it_judges() {
    let closed = Answer::text(r#"{"reason":"it does","answer":"yes"}"#);
    let script = Script::default()
        .rule(Rule::new(When::prompt_contains("mild criterion"), closed))
        .rule(rubric_judge());
    let server = FakeServer::start(script);
    let case = json!({ "id": "j", "turns": [
        { "user": "first alpha", "assert": [{ "type": "llm-rubric", "value": "It is polite." }] },
        { "user": "second beta", "assert": [{ "type": "closed-qa", "value": "a mild criterion" }] },
        "third gamma",
    ]});
    let runner = "assert = [{ type = \"llm-rubric\", value = \"It is brief.\" }]";
    let project = with(&server, project("openai", &server, &[case]), "", runner);
    run(&project, &[]).expect(0, &[("TOTAL_CALLS", "6")]);
    let case = stored(&project).remove(0);
    assert_eq!(case["verdict"], "pass", "{}", case["reason"]);
    let names = [("llm-rubric", true), ("turn 1: llm-rubric", true), ("turn 2: closed-qa", true)];
    assert_eq!(scores(&case), names);
    // In the order of the case, then of its turns.
    let [last, first, second] = judge_prompts(&case)[..] else { panic!("{case}") };
    let between = |prompt: &str, from: &str, to: &str| {
        let rest = &prompt[prompt.find(from).unwrap() + from.len()..];
        let rest = &rest[rest.find('\n').unwrap() + 1..];
        rest[..rest.find(to).unwrap()].trim_end().to_owned()
    };
    assert_eq!(between(first, "<<<TASK", "<<<END"), "first alpha");
    assert_eq!(between(first, "<<<ANSWER", "<<<END"), "alpha");
    let said = "user: first alpha\n\nassistant: alpha\n\nuser: second beta";
    assert_eq!(between(second, "<<<QUESTION", "<<<END"), said);
    assert_eq!(between(second, "<<<ANSWER", "<<<END"), "beta");
    let said = format!("{said}\n\nassistant: beta\n\nuser: third gamma");
    assert_eq!(between(last, "<<<TASK", "<<<END"), said);
    assert_eq!(between(last, "<<<ANSWER", "<<<END"), "gamma");
    assert!(project.shown(&["rescore"]).contains("0 flipped"));
    assert_eq!(scores(&stored(&project)[0]), names);
}

#[test]
fn opinions_of_several_judges_are_kept_with_their_turn() {
    let server = FakeServer::start(Script::default().rule(rubric_judge()));
    let rubric = json!([{ "type": "llm-rubric", "value": "It is polite." }]);
    let case = json!({ "id": "j", "turns": [{ "user": "hi there", "assert": rubric }, "go on"] });
    let judge = format!(
        "[backends.j]\nkind = \"openai\"\nbase_url = \"{}\"\nmodel = \"m-2\"",
        server.url()
    );
    let runner = "backends = [\"b\"]\njudges = [\"b\", \"j\"]";
    let project = with(&server, project("openai", &server, &[case]), &judge, runner);
    run(&project, &[]).expect(0, &[("TOTAL_CALLS", "4")]);
    let case = stored(&project).remove(0);
    let judged = &case["classification"]["details"]["judged"][0];
    assert_eq!(judged["check"], "turn 1: llm-rubric");
    assert_eq!(judged["opinions"][1]["judge"], "j");
}

#[test]
fn scripts_and_scorers_of_a_turn_see_the_answer_to_it() {
    let server = FakeServer::start(Script::default());
    let case = json!({ "id": "s", "turns": [
        { "user": "say one", "assert": [
            { "type": "javascript", "value": "output === 'one' && context.prompt === 'say one'" },
            { "type": "exec", "value": ["grep", "-qx", "one"] },
        ]},
        { "user": "say two", "assert": [
            { "type": "javascript", "value": "context.prompt === 'say two' && context.provider.id === 'b'" },
            { "type": "exec", "value": ["grep", "-qx", "one"] },
        ]},
    ]});
    let runner = "assert = [{ type = \"javascript\", value = \"output === 'two'\" }]";
    let project = with(&server, project("openai", &server, &[case]), "", runner);
    // A turn needs consent to run code like any case.
    let shown = project.shown(&["run"]);
    assert_eq!(shown.matches("`exec` runs code of the dataset").count(), 2, "{shown}");
    let project = with(&server, project, "allow_code = true", runner);
    run(&project, &[]);
    let case = stored(&project).remove(0);
    let expected = [
        ("javascript", true),
        ("turn 1: javascript", true),
        ("turn 1: exec", true),
        ("turn 2: javascript", true),
        ("turn 2: exec", false),
    ];
    assert_eq!(scores(&case), expected, "{}", case["classification"]);
    // What scorers said is kept, so that nobody is asked again.
    assert!(project.shown(&["rescore"]).contains("0 flipped"));
    assert_eq!(scores(&stored(&project)[0]), expected);
}

#[test]
fn a_runner_gives_tools_and_assertions_to_conversations() {
    let call = Answer::call("weather", json!({ "city": "Oslo" }));
    let script = Script::default().rule(Rule::new(When::Requests(1..2), call));
    let server = FakeServer::start(script);
    let case = json!({ "turns": ["How warm is it in Oslo?", "Say bye"],
                       "tool_results": { "weather": "7 degrees" } });
    let unknown = json!({ "id": "u", "prompt": "p", "tool_results": { "wether": "7 degrees" } });
    let runner = "tools = \"tools.json\"\nassert = [{ type = \"valid-tool-calls\" }, \
                  { type = \"not-contains\", value = \"Oslo\" }]";
    let files = |cases: &[Value]| {
        let project = with(&server, project("openai", &server, cases), "", runner);
        project.file("tools.json", tools().to_string())
    };
    let shown = files(&[case.clone(), unknown]).shown(&["run"]);
    assert!(shown.contains("there is no tool `wether` in `tools`"), "{shown}");
    assert_eq!(shown.matches("there is no tool").count(), 1, "{shown}");
    let alone = project("openai", &server, std::slice::from_ref(&case)).shown(&["run"]);
    assert!(alone.contains("neither the case nor its runner has `tools`"), "{alone}");
    let project = files(&[case]);
    run(&project, &[]).expect(0, &[("TOTAL_CALLS", "3")]);
    let case = stored(&project).remove(0);
    assert_eq!(scores(&case), [("valid-tool-calls", true), ("not-contains", true)]);
    // The first answer names the city, and the last one, which the runner asks about, does not.
    assert_eq!(
        (&case["asked"][1]["reply"], &case["raw_response"]),
        (&json!("Oslo?"), &json!("bye"))
    );
    let id = case["case_id"].as_str().unwrap();
    assert!(id.starts_with("how-warm-is-it-in-oslo-"), "{id}");
}
