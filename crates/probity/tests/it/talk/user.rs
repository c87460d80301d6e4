//! Users whose part a model plays.

use insta::assert_snapshot;
use probity_testkit::{Answer, FakeServer, Rule, Script, Trouble, When};
use serde_json::{Value, json};

use super::{suite, tools};
use crate::{
    project::Project,
    run::{bodies, run, stored},
};

/// The suite with a user that another server plays.
fn project(model: &FakeServer, user: &FakeServer, runner: &str, cases: &[Value]) -> Project {
    let runner = format!("{runner}\n[retry]");
    let text = suite("openai", model).replace("[retry]", &runner);
    let player = format!(
        "[backends.sim]\nkind = \"openai\"\nbase_url = \"{}\"\nmodel = \"m-2\"\n",
        user.url()
    );
    super::project("openai", model, cases).file("probity.toml", text + &player)
}

/// A user who wants tea, and has it when the model says so.
fn drinker() -> FakeServer {
    let script = Script::always(Answer::text("User: I want tea"));
    let done = Answer::text("Thanks! [END]");
    FakeServer::start(script.rule(Rule::new(When::prompt_contains("assistant: tea"), done)))
}

fn tea() -> Value {
    json!({
        "id": "tea", "system": "You run a bar.", "prompt": "Hello there",
        "prompt_vars": { "drink": "tea" },
        "user": { "instructions": "You want {{ drink }}." },
        "assert": [{ "type": "equals", "value": "tea" }],
    })
}

fn roles(case: &Value) -> Vec<&str> {
    case["asked"].as_array().unwrap().iter().map(|it| it["role"].as_str().unwrap()).collect()
}

#[test]
fn a_simulated_user_speaks_until_it_stops() {
    // The fake server says the last word of what it is asked.
    let (model, user) = (FakeServer::start(Script::default()), drinker());
    let project = project(&model, &user, "user = \"sim\"", &[tea()]);
    run(&project, &["--record", "answers.jsonl"]).expect(0, &[("TOTAL_CALLS", "4")]);
    let case = stored(&project).remove(0);
    assert_eq!(case["verdict"], "pass", "{}", case["reason"]);
    assert_eq!(roles(&case), ["turn 1", "user, turn 2", "turn 2", "user, turn 3"]);
    assert_eq!((&case["calls"], &case["asked"][1]["backend"]), (&json!(4), &json!("sim")));
    // What the user costs is part of what the case costs.
    let tokens = case["asked"].as_array().unwrap().iter();
    let tokens: u64 = tokens.map(|it| it["usage"]["input_tokens"].as_u64().unwrap()).sum();
    assert_eq!(case["usage"]["input_tokens"], tokens);
    let sent = json!([
        { "role": "system", "content": "You run a bar." },
        { "role": "user", "content": "Hello there" },
        { "role": "assistant", "content": "there" },
        { "role": "user", "content": "I want tea" },
    ]);
    assert_eq!(bodies(&model)[1]["messages"], sent);
    let heard = bodies(&user).remove(1)["messages"].clone();
    let told = heard[0]["content"].as_str().unwrap();
    assert!(told.ends_with("The person:\nYou want tea."), "{told}");
    let heard = heard[1]["content"].as_str().unwrap();
    assert!(heard.contains("assistant: there\n\nperson: I want tea\n\nassistant: tea"), "{heard}");
    assert!(!heard.contains("You run a bar."), "{heard}");

    // Nobody is asked again, neither by a replay nor to judge what is stored.
    run(&project, &["--replay", "answers.jsonl"]).expect(0, &[("TOTAL_CALLS", "0")]);
    assert_eq!(stored(&project)[0]["verdict"], "pass");
    run(&project, &["--resume", "latest"]).expect(0, &[("TOTAL_CALLS", "0")]);
    assert!(project.shown(&["rescore"]).contains("0 flipped"));
    assert_eq!((model.seen().asked, user.seen().asked), (2, 2));
}

#[test]
fn the_whole_conversation_is_shown() {
    let (model, user) = (FakeServer::start(Script::default()), drinker());
    let project = project(&model, &user, "user = \"sim\"", &[tea()]);
    run(&project, &[]);
    let shown = project.shown(&["show", "latest", "tea"]);
    let from = shown.find("  conversation").unwrap();
    let to = shown.find("  asked: user, turn 2 (sim, m-2; backend)").unwrap();
    assert_snapshot!(shown[from..to].trim_end(), @"
    conversation
      user:      Hello there
      assistant: there
      user:      I want tea

    reply
      tea
    ");
    // What ended it stands with the other questions, like those to judges.
    assert!(shown[to..].contains("Thanks! [END]"), "{shown}");
    project.run(&["report", "latest", "-o", "report.html"]);
    let page = project.read("report.html");
    assert!(page.contains("I want tea"), "the page has no conversation");
}

#[test]
fn a_user_who_does_not_stop_is_stopped_counted_and_cached() {
    let user = FakeServer::start(Script::always(Answer::text("Go on")));
    let model = FakeServer::start(Script::default());
    let mut case = tea();
    case["user"] = json!("You never stop.");
    case["assert"] = json!([{ "type": "equals", "value": "on" }]);
    let runner = "user = { backend = \"sim\", max_turns = 3 }";
    let project = project(&model, &user, runner, &[case]);
    let shown = project.shown(&["run", "--dry-run"]);
    assert!(shown.contains("up to 3 more turns with sim (m-2) as the user"), "{shown}");
    assert!(shown.contains("once each: 1 calls, at most 28 with retries"), "{shown}");
    run(&project, &["--max-calls", "4", "--cache"])
        .expect(3, &[("TOTAL_CALLS", "4"), ("N_CASES", "0")]);
    run(&project, &["--resume", "latest", "--cache"]).expect(0, &[("N_CASES", "1")]);
    assert_eq!((model.seen().asked, user.seen().asked), (4, 3));
    let case = stored(&project).remove(0);
    assert_eq!((&case["verdict"], &case["asked"][1]["source"]), (&json!("pass"), &json!("cache")));
    assert_eq!(roles(&case)[5..], ["user, turn 4", "turn 4"]);
}

#[test]
fn a_runner_says_who_the_user_is_for_cases_that_do_not() {
    let user = FakeServer::start(Script::always(Answer::text("Bye")));
    let model = FakeServer::start(Script::default());
    let call = Answer::call("clock", json!({}));
    let caller = Script::default().rule(Rule::new(When::Requests(1..2), call));
    let case = json!({ "id": "a", "prompt": "Hello", "prompt_vars": { "name": "Ada" },
                       "assert": [{ "type": "equals", "value": "Hello" }] });
    let runner =
        "user = { backend = \"sim\", instructions = \"You are {{ name }}.\", stop = \"bye\" }";
    let plain = project(&model, &user, runner, std::slice::from_ref(&case));
    run(&plain, &[]).expect(0, &[("TOTAL_CALLS", "2")]);
    let told = bodies(&user).remove(0)["messages"][0]["content"].to_string();
    assert!(told.contains("write bye and nothing else") && told.contains("You are Ada."), "{told}");
    // Tools are answered before the user speaks, as nobody can speak after an open call.
    let model = FakeServer::start(caller);
    let mut with_tools = case;
    with_tools["tools"] = tools();
    let tooled = project(&model, &user, runner, &[with_tools]);
    run(&tooled, &[]).expect(0, &[("TOTAL_CALLS", "3")]);
    assert_eq!(roles(&stored(&tooled)[0]), ["turn 1", "turn 1, step 2", "user, turn 2"]);
}

#[test]
fn a_user_that_fails_is_an_error_and_no_failure_of_the_model() {
    for (answer, why) in [
        (Answer::text("Person: "), "simulated user `sim`: it says nothing"),
        (Answer::text("  "), "simulated user `sim`: the reply is empty"),
        (Answer::fault(Trouble::BadRequest), "simulated user `sim`: "),
    ] {
        let (model, user) =
            (FakeServer::start(Script::default()), FakeServer::start(Script::always(answer)));
        let project = project(&model, &user, "user = \"sim\"", &[tea()]);
        run(&project, &[]);
        let case = stored(&project).remove(0);
        assert_eq!(case["verdict"], "error", "{case}");
        assert!(case["reason"].as_str().unwrap().contains(why), "{}", case["reason"]);
    }
}

#[test]
fn a_user_that_cannot_be_played_is_told_with_its_place() {
    let (model, user) = (FakeServer::start(Script::default()), drinker());
    let shown = project(&model, &user, "", &[tea()]).shown(&["run"]);
    assert!(shown.contains("`user` needs a backend that plays the user"), "{shown}");
    assert!(shown.contains("name one with `user = \"BACKEND\"` in the suite"), "{shown}");
    let shown = project(&model, &user, "user = \"smi\"", &[tea()]).shown(&["run"]);
    assert!(shown.contains("there is no backend `smi`"), "{shown}");
    let mut case = tea();
    case["prompt_vars"] = json!({});
    let shown = project(&model, &user, "user = \"sim\"", &[case]).shown(&["run"]);
    assert!(shown.contains("`drink`") && shown.contains("cases.jsonl:1:"), "{shown}");
    let bad = "user = { backend = \"sim\", max_turns = 0, until = 1 }";
    let shown = project(&model, &user, bad, &[tea()]).shown(&["run"]);
    assert!(shown.contains("max_turns") && shown.contains("until"), "{shown}");
}

#[test]
fn a_case_may_have_a_user_that_another_backend_plays() {
    let model = FakeServer::start(Script::default());
    let (usual, own) = (drinker(), FakeServer::start(Script::always(Answer::text("Bye [END]"))));
    let mut other = tea();
    other["id"] = json!("other");
    other["user"] = json!({ "backend": "own", "instructions": "You leave." });
    other["assert"] = json!([{ "type": "equals", "value": "there" }]);
    let runner = "user = \"sim\"\nbackends = [\"b\"]";
    let project = project(&model, &usual, runner, &[tea(), other]);
    let text = project.read("probity.toml")
        + &format!(
            "[backends.own]\nkind = \"openai\"\nbase_url = \"{}\"\nmodel = \"m-3\"\n",
            own.url()
        );
    let project = project.file("probity.toml", text);
    let dry = project.shown(&["run", "--dry-run"]);
    assert!(dry.contains("more turns with own (m-3), sim (m-2) as the user"), "{dry}");
    run(&project, &[]).expect(0, &[("TOTAL_CALLS", "6")]);
    assert_eq!((usual.seen().asked, own.seen().asked), (2, 1));
    let cases = stored(&project);
    let case = cases.iter().find(|it| it["case_id"] == "other").unwrap();
    assert_eq!(case["asked"][1]["backend"], "own");
    // Another one who plays the user is another question.
    run(&project, &["--resume", "latest"]).expect(0, &[("TOTAL_CALLS", "0")]);
    let renamed = project.read("probity.toml").replace("m-3", "m-4");
    let project = project.file("probity.toml", renamed);
    run(&project, &["--resume", "latest"]).expect(0, &[("TOTAL_CALLS", "2")]);
}

#[test]
fn a_user_that_no_backend_plays_is_refused_at_its_place() {
    let (model, user) = (FakeServer::start(Script::default()), drinker());
    let mut case = tea();
    case["user"] = json!({ "backend": "nobody", "instructions": "You leave." });
    let project = project(&model, &user, "", &[case]);
    let ran = run(&project, &[]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains("the suite has no backend `nobody`"), "{}", ran.err);
    assert!(ran.err.contains("cases.jsonl:1:"), "{}", ran.err);
    assert_eq!(model.seen().asked, 0);
}
