//! What is in a reply beside its text, and what it counts.

use probity_testkit::{Answer, FakeServer, Script};

use crate::{
    project::Project,
    run::{dataset, run, stored},
};

/// A suite of one case at a server that always sends one body.
fn with_body(kind: &str, body: &str, case: &str, more: &str) -> (FakeServer, Project) {
    let raw = Answer::Raw { status: 200, headers: Vec::new(), body: body.into() };
    let server = FakeServer::start(Script::always(raw));
    let suite = format!(
        "[backends.b]\nkind = \"{kind}\"\nbase_url = \"{}\"\nmodel = \"m\"\n{more}\n\
         [[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\n[retry]\nbackoff_base = 0\n",
        server.url()
    );
    let project = Project::new().file("cases.jsonl", case).file("probity.toml", suite);
    (server, project)
}

#[test]
fn a_tool_call_is_an_answer_that_can_be_graded() {
    let case = r#"{"id":"a","prompt":"add","expected_response":"[{\"name\":\"add\",\"arguments\":{\"a\":1}}]"}"#;
    let openai = r#"{"choices":[{"message":{"content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"add","arguments":"{\"a\":1}"}}]},"finish_reason":"tool_calls"}]}"#;
    let anthropic = r#"{"content":[{"type":"tool_use","id":"c","name":"add","input":{"a":1}}],"stop_reason":"tool_use"}"#;
    for (kind, body) in [("openai", openai), ("anthropic", anthropic)] {
        let (_server, project) = with_body(kind, body, case, "");
        run(&project, &[]).expect(0, &[("TOTAL_CALLS", "1")]);
        let case = stored(&project).remove(0);
        let expected = r#"[{"name":"add","arguments":{"a":1}}]"#;
        assert_eq!(
            (&case["verdict"], &case["raw_response"]),
            (&"pass".into(), &expected.into()),
            "{case}"
        );
    }
}

#[test]
fn reasoning_is_no_part_of_the_answer() {
    let message = |message: &str| format!(r#"{{"choices":[{{"message":{message}}}]}}"#);
    for body in [
        message(r#"{"content":"<think>7? no, 0</think>\n0"}"#),
        message(r#"{"content":"0","reasoning_content":"7? no, 0"}"#),
    ] {
        let (_server, project) = with_body("openai", &body, &dataset(1), "");
        run(&project, &[]).expect(0, &[("TOTAL_CALLS", "1")]);
        let case = stored(&project).remove(0);
        assert_eq!(
            (&case["verdict"], &case["raw_response"]),
            (&"pass".into(), &"0".into()),
            "{case}"
        );
    }
}

#[test]
fn a_reply_of_zero_width_characters_is_empty() {
    let body = "{\"choices\":[{\"message\":{\"content\":\"\u{200b}\u{2060}\"},\"finish_reason\":\"stop\"}]}";
    let (_server, project) = with_body("openai", body, &dataset(1), "");
    run(&project, &["--max-retries", "0"]);
    let case = stored(&project).remove(0);
    assert_eq!((&case["verdict"], &case["error"]["kind"]), (&"error".into(), &"empty".into()));
}

#[test]
#[cfg(unix)]
fn budgets_count_what_a_backend_does_not_report() {
    let suite = |price: &str| {
        format!(
            "[backends.c]\nkind = \"command\"\ncommand = [\"cat\"]\nmax_concurrency = 1\n{price}\n\
             [[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\n"
        )
    };
    let project =
        |price| Project::new().file("cases.jsonl", dataset(9)).file("probity.toml", suite(price));
    // "Return the number N" has 19 bytes, so 5 tokens go each way.
    let ran = run(&project(""), &["--max-tokens", "25"]);
    ran.expect(3, &[("TOTAL_CALLS", "3")]);
    let million = "price = { input = 100000, output = 100000 }";
    let ran = run(&project(million), &["--max-cost", "2.5"]);
    ran.expect(3, &[("TOTAL_CALLS", "3"), ("COST_USD", "3.0000")]);
}

#[test]
fn a_budget_in_dollars_without_a_price_is_refused() {
    let suite = "[backends.local]\nkind = \"vllm\"\nmodel = \"m-7b\"\n\
                 [[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\n";
    let project = Project::new().file("cases.jsonl", dataset(1)).file("probity.toml", suite);
    let ran = run(&project, &["--max-cost", "1"]);
    ran.expect(2, &[("TOTAL_CALLS", "0")]);
    for part in ["backend `local` with the model `m-7b`", "price = {", "`prices`"] {
        assert!(ran.err.contains(part), "{}", ran.err);
    }
    let free = suite.replace("model", "price = { input = 0, output = 0 }\nmodel");
    let project = project.file("probity.toml", free);
    let ran = run(&project, &["--max-cost", "1", "--dry-run"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
}
