//! Conversations: turns, tools that answer, users whose part a model plays.

use probity_core::classification::Class;
use probity_testkit::{Answer, FakeServer, Rule, Script, When};
use serde_json::{Value, json};

use crate::project::{Project, bodies, errors, roles};

const KINDS: [&str; 6] = ["openai", "openai-responses", "anthropic", "gemini", "bedrock", "ollama"];

fn suite(kind: &str, server: &FakeServer, runner: &str) -> String {
    let url = server.url();
    format!(
        "[backends.b]\nkind = \"{kind}\"\nbase_url = \"{url}\"\nmodel = \"m-1\"\n\
         api_key_env = \"A_KEY\"\n[[runners]]\nname = \"r\"\nbackends = [\"b\"]\n\
         dataset = \"cases.jsonl\"\n{runner}\n"
    )
}

fn project(cases: &[Value]) -> Project {
    Project::new().cases(cases).variable("A_KEY", "sk-of-the-vendor-0123456789")
}

fn weather() -> Value {
    json!({
        "id": "weather", "prompt": "How warm is it in {{ where }}?",
        "prompt_vars": { "where": "Oslo", "unit": "degrees" },
        "tools": [
            { "name": "weather", "parameters": { "type": "object",
                "properties": { "city": { "type": "string" } } } },
            { "name": "clock", "parameters": { "type": "object", "properties": {} } },
        ],
        "tool_results": [
            { "name": "weather", "arguments": { "city": "Rome" }, "content": "30" },
            { "name": "weather", "content": "{{ arguments.city }} has 7 {{ unit }}" },
        ],
        "assert": [{ "type": "contains", "value": "7" }],
    })
}

fn caller() -> FakeServer {
    let call = Answer::call("weather", json!({ "city": "Oslo" }));
    let script = Script::always(Answer::text("It has 7 degrees."));
    FakeServer::start(script.rule(Rule::new(When::Requests(1..2), call)))
}

#[test]
fn the_result_of_a_tool_goes_back_to_the_model_that_called_it() {
    for kind in KINDS {
        let server = caller();
        let ran = project(&[weather()]).run(&suite(kind, &server, ""));
        let case = ran.of("weather");
        assert_eq!(ran.verdicts(), [("weather", "pass")], "{kind}");
        assert_eq!(roles(case), ["step 1", "step 2"], "{kind}");
        assert_eq!((case.calls, ran.outcome.used.calls), (2, 2), "{kind}");
        assert_eq!(case.asked[0].tool_calls[0].name, "weather", "{kind}");
        assert_eq!(case.asked[1].turn, Some(1), "{kind}");
        let said = bodies(&server)[1].to_string();
        assert!(said.contains("Oslo has 7 degrees"), "{kind}: {said}");
        let input: u64 = case.asked.iter().filter_map(|it| it.usage.input_tokens).sum();
        assert_eq!(case.usage.input_tokens, Some(input), "{kind}");
    }
}

#[test]
fn calls_without_an_id_get_one_that_their_results_refer_to() {
    let body = |calls: &Value| {
        let message = json!({ "role": "assistant", "content": null, "tool_calls": calls });
        let choice = json!({ "index": 0, "message": message, "finish_reason": "tool_calls" });
        Answer::json(&json!({ "model": "m", "choices": [choice] }).to_string())
    };
    let call = |id: Value| json!({ "id": id, "type": "function", "function": { "name": "clock", "arguments": "{}" } });
    let script = Script::default()
        .rule(Rule::new(When::Requests(1..2), body(&json!([call(json!("own")), call(json!(""))]))))
        .rule(Rule::new(When::Requests(2..3), body(&json!([call(Value::Null)]))));
    let server = FakeServer::start(script);
    let mut case = weather();
    case["assert"] = json!([{ "type": "tool-count", "value": 3 }]);
    let ran = project(&[case]).run(&suite("openai", &server, ""));
    let sent = bodies(&server).remove(2)["messages"].clone();
    let ids = |key: &str| -> Vec<Value> {
        let all = sent.as_array().unwrap().iter();
        match key {
            "tool_call_id" => all.filter_map(|it| it.get(key).cloned()).collect(),
            _ => all
                .filter_map(|it| it["tool_calls"].as_array())
                .flatten()
                .map(|it| it["id"].clone())
                .collect(),
        }
    };
    assert_eq!(ids("tool_call_id"), ["own", "call_2", "call_3"]);
    assert_eq!(ids("id"), ids("tool_call_id"));
    assert_eq!(ran.verdicts(), [("weather", "pass")]);
}

#[test]
fn a_model_that_does_not_stop_calling_is_told_so_and_stopped() {
    let server = FakeServer::start(Script::always(Answer::call("clock", json!({}))));
    let mut case = weather();
    case["max_steps"] = json!(3);
    case["tool_choice"] = json!("required");
    let ran = project(&[case]).run(&suite("openai", &server, ""));
    assert_eq!((ran.of("weather").calls, ran.verdicts()[0].1), (3, "fail"));
    let bodies = bodies(&server);
    let said = bodies[2]["messages"].to_string();
    assert!(said.contains("`clock` has no result for these arguments"), "{said}");
    // It is forced once.
    let choices: Vec<&Value> = bodies.iter().map(|it| &it["tool_choice"]).collect();
    assert_eq!(choices, ["required", "auto", "auto"]);
}

#[test]
fn without_results_of_tools_a_call_is_the_answer() {
    let server = FakeServer::start(Script::always(Answer::call("clock", json!({}))));
    let mut case = weather();
    case.as_object_mut().unwrap().remove("tool_results");
    case["assert"] = json!([{ "type": "tool-called", "value": "clock" }]);
    let ran = project(&[case]).run(&suite("openai", &server, ""));
    assert_eq!(
        (ran.verdicts(), roles(ran.of("weather"))),
        (vec![("weather", "pass")], vec!["answer"])
    );
}

fn turns() -> Value {
    json!({
        "id": "talk", "system": "be brief", "prompt_vars": { "name": "Ada" },
        "turns": [
            { "user": "I am {{ name }}", "assert": [{ "type": "contains", "value": "Ada" }] },
            "Go on",
            { "user": "Say {{ name }}", "expected_response": "Ada" },
        ],
    })
}

#[test]
fn the_whole_conversation_is_sent_with_each_turn() {
    let server = FakeServer::start(Script::default());
    let ran = project(&[turns()]).run(&suite("openai", &server, ""));
    let expected = json!([
        { "role": "system", "content": "be brief" },
        { "role": "user", "content": "I am Ada" },
        { "role": "assistant", "content": "Ada" },
        { "role": "user", "content": "Go on" },
        { "role": "assistant", "content": "on" },
        { "role": "user", "content": "Say Ada" },
    ]);
    assert_eq!(bodies(&server)[2]["messages"], expected);
    let case = ran.of("talk");
    assert_eq!(
        (roles(case), case.reply.as_deref()),
        (vec!["turn 1", "turn 2", "turn 3"], Some("Ada"))
    );
    let turns: Vec<Option<u32>> = case.asked.iter().map(|it| it.turn).collect();
    assert_eq!((turns, case.class), (vec![Some(1), Some(2), Some(3)], Class::Pass));
    // The time of a conversation is that of all its answers.
    assert_eq!(case.latency_ms, case.asked.iter().map(|it| it.latency_ms).sum::<u64>());
}

#[test]
fn steps_of_a_turn_are_told_from_turns() {
    let call = Answer::call("clock", json!({}));
    let server = FakeServer::start(Script::default().rule(Rule::new(When::Requests(2..3), call)));
    let mut case = weather();
    case.as_object_mut().unwrap().remove("prompt");
    case["turns"] = json!(["Say 7", "Say 8 or 7"]);
    let ran = project(&[case]).run(&suite("openai", &server, ""));
    assert_eq!(roles(ran.of("weather")), ["turn 1", "turn 2", "turn 2, step 2"]);
}

#[test]
fn a_user_whose_part_a_model_plays_speaks_until_it_stops() {
    let script = Script::always(Answer::text("I want tea"));
    let done = Answer::text("Thanks! [END]");
    let user =
        FakeServer::start(script.rule(Rule::new(When::prompt_contains("assistant: tea"), done)));
    let model = FakeServer::start(Script::default());
    let tea = json!({
        "id": "tea", "system": "You run a bar.", "prompt": "Hello there",
        "prompt_vars": { "drink": "tea" }, "user": { "instructions": "You want {{ drink }}." },
        "assert": [{ "type": "equals", "value": "tea" }],
    });
    let player = format!(
        "[backends.sim]\nkind = \"openai\"\nbase_url = \"{}\"\nmodel = \"m-2\"\n",
        user.url()
    );
    let text = suite("openai", &model, "user = \"sim\"") + &player;
    let ran = project(std::slice::from_ref(&tea)).run(&text);
    let case = ran.of("tea");
    assert_eq!(ran.verdicts(), [("tea", "pass")]);
    assert_eq!(roles(case), ["turn 1", "user, turn 2", "turn 2", "user, turn 3"]);
    assert_eq!((case.calls, case.asked[1].backend.as_str()), (4, "sim"));
    let told = bodies(&user).remove(1)["messages"].to_string();
    assert!(told.contains("You want tea."), "{told}");
    // The user's time is not the model's.
    let own = case.asked.iter().filter(|it| it.turn.is_some());
    assert_eq!(case.latency_ms, own.map(|it| it.latency_ms).sum::<u64>());
    // One who never stops is stopped.
    let mut endless = tea;
    endless["user"]["max_turns"] = json!(3);
    let user = FakeServer::start(Script::always(Answer::text("Go on")));
    let player = format!(
        "[backends.sim]\nkind = \"openai\"\nbase_url = \"{}\"\nmodel = \"m-2\"\n",
        user.url()
    );
    let text = suite("openai", &model, "user = \"sim\"") + &player;
    let ran = project(&[endless]).run(&text);
    let answers = ran.of("tea").asked.iter().filter(|it| it.turn.is_some()).count();
    assert_eq!((user.seen().asked, answers), (3, 4));
}

#[test]
fn a_user_who_says_nothing_is_an_error_of_the_user() {
    let model = FakeServer::start(Script::default());
    let user = FakeServer::start(Script::always(Answer::EmptyText));
    let case = json!({ "id": "tea", "prompt": "Hello there", "user": { "instructions": "You want tea." } });
    let player = format!(
        "[retry]\nmax_retries = 0\n[backends.sim]\nkind = \"openai\"\nbase_url = \"{}\"\nmodel = \"m-2\"\n",
        user.url()
    );
    let ran = project(&[case]).run(&(suite("openai", &model, "user = \"sim\"") + &player));
    let error = ran.of("tea").error.as_ref().unwrap();
    assert_eq!((ran.of("tea").class, error.kind.as_str()), (Class::Error, "unknown"));
    assert!(error.message.starts_with("simulated user `sim`: "), "{}", error.message);
}

#[test]
fn a_conversation_that_differs_is_another_question() {
    let server = FakeServer::start(Script::default());
    let inputs = |cases: &[Value]| {
        let project = project(cases);
        let plan = project.read(&suite("openai", &server, "")).plan();
        let mut inputs = Vec::new();
        plan.lanes[0].inputs(&plan.backends[0], |_, input| inputs.push(input));
        inputs
    };
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut case = weather();
        change(&mut case);
        inputs(&[case]).remove(0)
    };
    let plain = inputs(&[weather()]).remove(0);
    assert_eq!(plain, changed(&|case| case["assert"] = json!([])));
    let others = [
        changed(&|case| case["prompt"] = json!("And in {{ where }}?")),
        changed(&|case| case["prompt_vars"]["unit"] = json!("K")),
        changed(&|case| case["tool_results"][0]["content"] = json!("31")),
        changed(&|case| case["max_steps"] = json!(4)),
        changed(&|case| case["tools"][1]["name"] = json!("watch")),
        changed(&|case| {
            case.as_object_mut().unwrap().remove("tool_results");
        }),
    ];
    for (at, other) in others.iter().enumerate() {
        assert_ne!(plain, *other, "{at}");
        assert_eq!(others.iter().filter(|it| *it == other).count(), 1, "{at}");
    }
    assert_ne!(inputs(&[turns()]), {
        let mut case = turns();
        case["turns"][1] = json!("Go on, please");
        inputs(&[case])
    });
}

#[test]
fn results_of_a_tool_that_is_not_there_are_refused() {
    let server = FakeServer::start(Script::default());
    let case = json!({ "id": "a", "prompt": "p", "tool_results": { "wether": "7 degrees" } });
    let problems = project(&[case]).problems(&suite("openai", &server, ""));
    let expected = "there is no tool `wether`: neither the case nor its runner has `tools`";
    assert_eq!(errors(&problems), [("unknown-tool", expected)]);
}
