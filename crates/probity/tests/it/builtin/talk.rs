//! The suites about tools and conversations: right answers pass, and others do not.

use std::{collections::BTreeMap, fs};

use probity_core::{case::TestCase, request::Message};
use probity_testkit::{Answer, FakeServer, Rule, Script, When};
use serde_json::{Value, json};

use super::{REFUSAL, all, cases};
use crate::{project::Project, run::stored};

/// What a model says that answers each case as it should: texts, or lists of calls.
fn right() -> BTreeMap<String, Vec<Value>> {
    serde_json::from_str(include_str!("right.json")).unwrap()
}

fn answer(said: &Value) -> Answer {
    let call = |(at, it): (usize, &Value)| {
        let function = json!({ "name": it[0], "arguments": it[1].to_string() });
        json!({ "id": format!("call_{at}"), "type": "function", "function": function })
    };
    let (finish, message) = match said.as_array() {
        Some(calls) => {
            let calls: Vec<Value> = calls.iter().enumerate().map(call).collect();
            ("tool_calls", json!({ "role": "assistant", "content": null, "tool_calls": calls }))
        }
        None => ("stop", json!({ "role": "assistant", "content": said })),
    };
    let body =
        json!({ "model": "m", "choices": [{ "message": message, "finish_reason": finish }] });
    Answer::Raw { status: 200, headers: Vec::new(), body: body.to_string() }
}

/// What the user says in a case.
fn prompts(case: &TestCase) -> Vec<String> {
    let turns = case.conversation.turns.iter().map(|it| Message::user(it.user.clone()).joined());
    let turns: Vec<String> = turns.collect();
    let last =
        case.ask.messages.last().map_or_else(|| case.prompt.as_ref().to_owned(), Message::joined);
    if turns.is_empty() { vec![last] } else { turns }
}

/// Runs a suite on a server.
fn results(project: &Project, name: &str, server: &FakeServer) -> Vec<Value> {
    let file = format!("{name}/probity.toml");
    let suite = project.read(&file);
    let (before, rest) = suite.split_once("[backends.local]").unwrap();
    let (_, after) = rest.split_once("\n\n").unwrap();
    let backend = format!(
        "[backends.local]\nkind = \"openai\"\nbase_url = \"{}\"\nmodel = \"m\"",
        server.url()
    );
    fs::write(project.path(&file), format!("{before}{backend}\n\n{after}")).unwrap();
    project.run(&["run", &file, "-q", "--max-retries", "0"]);
    stored(project)
}

#[test]
fn right_answers_pass_every_case_about_tools_and_conversations() {
    let mut right = right();
    for name in ["tools", "chat"] {
        let (project, _) = all();
        let cases = cases(&project, name);
        assert!(cases.len() >= 30, "{name}: {}", cases.len());
        // The same question is asked again after each call of a tool.
        let rule = |(prompt, said): (String, Value)| {
            Rule::new(When::PromptContains(prompt), answer(&said)).times(1)
        };
        let rules = cases.iter().flat_map(|case| {
            let said = right.remove(&case.id).unwrap_or_default();
            prompts(case).into_iter().cycle().zip(said).map(rule)
        });
        let script = rules.fold(Script::always(Answer::text("too much")), Script::rule);
        let server = FakeServer::start(script);
        let results = results(&project, name, &server);
        assert_eq!(results.len(), cases.len(), "{name}");
        for result in &results {
            let (id, why) = (&result["case_id"], &result["reason"]);
            assert_eq!(result["verdict"], "pass", "{id}: {why} {}", result["asked"]);
        }
    }
    assert!(right.is_empty(), "no case has these: {:?}", right.keys());
}

#[test]
fn a_refusal_and_an_empty_promise_fail_every_case_about_tools_and_conversations() {
    for name in ["tools", "chat"] {
        for said in [REFUSAL, "I will get back to you about that in a while, my good friend"] {
            let (project, _) = all();
            let server = FakeServer::start(Script::always(Answer::text(said)));
            let results = results(&project, name, &server);
            assert_eq!(results.len(), cases(&project, name).len(), "{name}");
            for result in &results {
                assert_eq!(result["verdict"], "fail", "{}: {said}", result["case_id"]);
            }
        }
    }
}
