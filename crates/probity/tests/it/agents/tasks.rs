//! The suite of tasks for agents: each can be solved, and none by doing nothing.

use std::collections::BTreeMap;

use probity_testkit::{Answer, FakeServer, Rule, Script, When};
use serde_json::Value;

use super::bash;
use crate::{
    project::Project,
    run::{run, stored, verdicts},
};

/// The suite in a folder, asking a server.
fn suite(server: &FakeServer) -> Project {
    let project = Project::new();
    let backend = format!("openai:m-1@{}/v1", server.url());
    let shown = project.shown(&["init", "--suite", "agent", "--backend", &backend, "."]);
    assert!(shown.starts_with("exit 0"), "{shown}");
    project
}

/// Whose verdict is not this one, and why.
fn others(cases: &[Value], verdict: &str) -> Vec<String> {
    let others = cases.iter().filter(|it| it["verdict"] != verdict);
    others.map(|it| format!("{}: {}", it["case_id"], it["reason"])).collect()
}

/// What the suite says of its tasks.
fn tasks(project: &Project) -> BTreeMap<String, String> {
    let tasks: toml::Table = toml::from_str(&project.read("tasks.toml")).unwrap();
    let text = |it: &toml::Value, key: &str| it[key].as_str().unwrap().to_owned();
    let cases = tasks["test_cases"].as_array().unwrap();
    cases.iter().map(|it| (text(it, "id"), text(it, "prompt"))).collect()
}

#[test]
fn the_reference_solution_of_each_task_passes() {
    let idle = FakeServer::start(Script::default());
    let project = suite(&idle);
    let tasks = tasks(&project);
    let solutions: BTreeMap<String, String> =
        toml::from_str(&project.read("solutions.toml")).unwrap();
    assert_eq!(tasks.len(), 30);
    assert!(tasks.keys().eq(solutions.keys()));
    let solve = |(id, prompt): (&String, &String)| {
        Rule::new(When::prompt_contains(prompt), bash(&solutions[id])).times(1)
    };
    let script = tasks.iter().map(solve);
    let script = script.fold(Script::always(Answer::text("It is done.")), Script::rule);
    let server = FakeServer::start(script);
    let project = suite(&server);
    run(&project, &[]).expect(0, &[("N_CASES", "30"), ("TOTAL_CALLS", "60")]);
    let cases = stored(&project);
    assert_eq!(others(&cases, "pass"), Vec::<String>::new());
    // What the worlds were like is stored: nothing has to be executed to judge it again.
    let again = project.shown(&["rescore"]);
    assert!(again.contains("0 flipped") && again.contains("0 calls"), "{again}");
    assert_eq!(verdicts(&stored(&project)), verdicts(&cases));
}

#[test]
fn nothing_is_solved_by_doing_nothing() {
    let server = FakeServer::start(Script::always(Answer::text("It is done.")));
    let project = suite(&server);
    run(&project, &[]).expect(1, &[("N_CASES", "30"), ("TOTAL_CALLS", "30")]);
    assert_eq!(others(&stored(&project), "fail"), Vec::<String>::new());
}
