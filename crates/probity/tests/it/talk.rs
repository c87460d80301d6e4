//! Conversations: turns of the user, tools that answer, and what is judged of all that.

mod others;
mod user;

use probity_testkit::{Answer, FakeServer, Rule, Script, Trouble, When};
use serde_json::{Value, json};

use crate::{
    dialects::KEY,
    project::Project,
    rescore::check_export,
    run::{bodies, run, stored},
};

const SUITE: &str = r#"
[backends.b]
kind = "KIND"
base_url = "URL"
model = "m-1"
api_key_env = "A_KEY"
[[runners]]
name = "r"
dataset = "cases.jsonl"
[retry]
backoff_base = 0.01
"#;

/// Every dialect.
const KINDS: [&str; 7] =
    ["openai", "openai-responses", "azure", "anthropic", "gemini", "bedrock", "ollama"];

fn project(kind: &str, server: &FakeServer, cases: &[Value]) -> Project {
    Project::new()
        .lines("cases.jsonl", cases)
        .file(".env", format!("A_KEY={KEY}\n"))
        .file("probity.toml", suite(kind, server))
}

fn suite(kind: &str, server: &FakeServer) -> String {
    SUITE.replace("KIND", kind).replace("URL", &server.url())
}

fn tools() -> Value {
    json!([
        { "name": "weather", "description": "The weather of a city", "parameters": {
            "type": "object", "required": ["city"], "properties": { "city": { "type": "string" } },
        }},
        { "name": "clock", "parameters": { "type": "object", "properties": {} } },
    ])
}

/// The same for a kind of server; not every one can be told that it has to call a tool.
fn weather_for(kind: &str) -> Value {
    let mut case = weather();
    if kind == "ollama" {
        case["tool_choice"] = Value::Null;
    }
    case
}

fn weather() -> Value {
    json!({
        "id": "weather", "prompt": "How warm is it in {{ where }}?",
        "prompt_vars": { "where": "Oslo", "unit": "degrees" },
        "tools": tools(), "tool_choice": "required",
        "tool_results": [
            { "name": "weather", "arguments": { "city": "Rome" }, "content": "30" },
            { "name": "weather", "content": "{{ arguments.city }} has 7 {{ unit }}" },
        ],
        "assert": [
            { "type": "contains", "value": "7" },
            { "type": "tool-called", "value": { "name": "weather", "arguments": { "city": "Oslo" } } },
            { "type": "not-tool-called", "value": "clock" },
            { "type": "tools-in-order", "value": { "calls": ["weather"], "exact": true } },
            { "type": "tool-count", "value": { "min": 1, "max": 2 } },
            { "type": "is-valid-openai-tools-call" },
        ],
    })
}

/// A server that calls a tool first, and then says so many degrees.
fn caller() -> FakeServer {
    let call = Answer::call("weather", json!({ "city": "Oslo" }));
    let script = Script::always(Answer::text("It has 7 degrees."));
    FakeServer::start(script.rule(Rule::new(When::Requests(1..2), call)))
}

#[test]
fn a_tool_that_is_called_answers_in_every_dialect() {
    for kind in KINDS {
        let server = caller();
        let project = project(kind, &server, &[weather_for(kind)]);
        let ran = run(&project, &["--record", "answers.jsonl"]);
        let case = stored(&project).remove(0);
        assert_eq!(case["verdict"], "pass", "{kind}: {}\n{}", case["reason"], ran.err);
        ran.expect(0, &[("TOTAL_CALLS", "2")]);
        let bodies = bodies(&server);
        let said = bodies[1].to_string();
        assert!(said.contains("Oslo has 7 degrees"), "{kind}: {said}");
        assert_eq!((&case["calls"], &case["asked"][1]["turn"]), (&json!(2), &json!(1)), "{kind}");
        assert_eq!(case["asked"][0]["tool_calls"][0]["name"], "weather", "{kind}");
        // Nobody is asked again, neither for a replay nor to judge what is stored.
        run(&project, &["--replay", "answers.jsonl"]).expect(0, &[("TOTAL_CALLS", "0")]);
        assert_eq!(stored(&project)[0]["verdict"], "pass", "{kind}");
        run(&project, &["--resume", "latest"]).expect(0, &[("TOTAL_CALLS", "0")]);
        assert_eq!(server.seen().asked, 2, "{kind}");
    }
}

#[test]
fn what_is_sent_to_each_vendor_is_what_it_documents() {
    let sent = |kind: &str| {
        let server = caller();
        run(&project(kind, &server, &[weather_for(kind)]), &[]);
        bodies(&server).remove(1)
    };
    let text = "Oslo has 7 degrees";
    let openai = sent("openai");
    let id = &openai["messages"][1]["tool_calls"][0]["id"];
    let call = json!({ "id": id, "type": "function", "function": {
        "name": "weather", "arguments": "{\"city\":\"Oslo\"}",
    }});
    assert_eq!(openai["messages"][1]["tool_calls"], json!([call]));
    let result = json!({ "role": "tool", "tool_call_id": id, "content": text });
    assert_eq!(openai["messages"][2], result);
    assert_eq!(openai["tool_choice"], "auto");
    let responses = sent("openai-responses");
    let id = &responses["input"][1]["call_id"];
    let result = json!({ "type": "function_call_output", "call_id": id, "output": text });
    assert_eq!(
        (&responses["input"][1]["type"], &responses["input"][2]),
        (&json!("function_call"), &result)
    );
    let anthropic = sent("anthropic");
    let id = &anthropic["messages"][1]["content"][0]["id"];
    let result = json!({ "role": "user", "content": [
        { "type": "tool_result", "tool_use_id": id, "content": text },
    ]});
    assert_eq!(anthropic["messages"][2], result);
    let gemini = sent("gemini");
    let result = json!({ "role": "user", "parts": [
        { "functionResponse": { "name": "weather", "response": { "result": text } } },
    ]});
    assert_eq!(gemini["contents"][2], result);
    let bedrock = sent("bedrock");
    let id = &bedrock["messages"][1]["content"][0]["toolUse"]["toolUseId"];
    let result = json!({ "role": "user", "content": [
        { "toolResult": { "toolUseId": id, "content": [{ "text": text }] } },
    ]});
    assert_eq!(bedrock["messages"][2], result);
    let ollama = sent("ollama");
    let result = json!({ "role": "tool", "tool_name": "weather", "content": text });
    assert_eq!(ollama["messages"][2], result);
}

#[test]
fn a_model_that_does_not_stop_calling_is_told_so_and_stopped() {
    let server = FakeServer::start(Script::always(Answer::call("clock", json!({}))));
    let mut case = weather();
    case["max_steps"] = json!(3);
    let project = project("openai", &server, &[case]);
    run(&project, &[]).expect(0, &[("TOTAL_CALLS", "3")]);
    let case = stored(&project).remove(0);
    let reason = case["reason"].as_str().unwrap();
    assert!(reason.contains("the model still calls tools after 3 steps"), "{reason}");
    // A call without a scripted result gets an error, which the model may make something of.
    let said = bodies(&server).remove(2)["messages"].to_string();
    assert!(said.contains("`clock` has no result for these arguments"), "{said}");
    let shown = project.shown(&["show", "latest", "weather"]);
    assert!(shown.contains("assistant: [calls clock({})]"), "{shown}");
}

#[test]
fn failed_checks_of_tools_say_which_calls_there_were() {
    let server = caller();
    let mut case = weather();
    case["assert"] = json!([
        { "type": "tool-called", "value": { "name": "weather", "arguments": { "city": "Bergen" } } },
        { "type": "not-tool-called", "value": "weather" },
        { "type": "tools-in-order", "value": ["clock", "weather"] },
        { "type": "tool-count", "value": { "name": "weather", "min": 2 } },
        { "type": "tool-called", "value": { "name": "weather", "schema": { "required": ["unit"] } } },
    ]);
    let project = project("anthropic", &server, &[case]);
    run(&project, &[]);
    let case = stored(&project).remove(0);
    let scores = case["classification"]["scores"].as_array().unwrap();
    let reasons: Vec<&str> = scores.iter().map(|it| it["reason"].as_str().unwrap()).collect();
    insta::assert_snapshot!(reasons.join("\n"), @r#"
    no call of `weather` with {"city":"Bergen"} (/city: expected "Bergen", got "Oslo"); called: weather({"city":"Oslo"})
    `tool-called` holds: called: weather({"city":"Oslo"})
    call 1, of `clock`, is missing; called: weather({"city":"Oslo"})
    1 call of `weather`; called: weather({"city":"Oslo"})
    no call of `weather` (schema: "unit" is a required property, at the top); called: weather({"city":"Oslo"})
    "#);
}

fn turns() -> Value {
    json!({
        "id": "talk", "system": "be brief", "prompt_vars": { "name": "Ada" },
        "turns": [
            { "user": "I am {{ name }}", "assert": [{ "type": "contains", "value": "Ada", "metric": "polite" }] },
            "Go on",
            { "user": "Say {{ name }}", "expected_response": "Ada" },
        ],
    })
}

#[test]
fn every_turn_is_asked_and_judged() {
    for kind in KINDS {
        let server = FakeServer::start(Script::default());
        let project = project(kind, &server, &[turns()]);
        run(&project, &["--record", "answers.jsonl"]).expect(0, &[("TOTAL_CALLS", "3")]);
        let case = stored(&project).remove(0);
        assert_eq!((&case["verdict"], &case["raw_response"]), (&json!("pass"), &json!("Ada")));
        let names: Vec<&Value> = case["classification"]["scores"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| &it["name"])
            .collect();
        assert_eq!(names, ["polite", "turn 3: trimmed"]);
        let tokens: u64 = case["asked"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["usage"]["input_tokens"].as_u64().unwrap())
            .sum();
        assert_eq!((&case["calls"], &case["usage"]["input_tokens"]), (&json!(3), &json!(tokens)));
        run(&project, &["--replay", "answers.jsonl"]).expect(0, &[("TOTAL_CALLS", "0")]);
        assert_eq!(stored(&project)[0]["verdict"], "pass");
    }
}

#[test]
fn the_whole_conversation_is_sent_with_each_turn() {
    let server = FakeServer::start(Script::default());
    run(&project("openai", &server, &[turns()]), &[]);
    let expected = json!([
        { "role": "system", "content": "be brief" },
        { "role": "user", "content": "I am Ada" },
        { "role": "assistant", "content": "Ada" },
        { "role": "user", "content": "Go on" },
        { "role": "assistant", "content": "on" },
        { "role": "user", "content": "Say Ada" },
    ]);
    assert_eq!(bodies(&server)[2]["messages"], expected);
}

#[test]
fn a_turn_that_fails_fails_the_case_and_is_named() {
    let refusal = Answer::text("I'm sorry, but I can't help with that.");
    let server = FakeServer::start(
        Script::default().rule(Rule::new(When::prompt_contains("bomb"), refusal)),
    );
    let case = |id: &str, first: Value| json!({ "id": id, "turns": [first, { "user": "Say so", "expected_response": "so" }] });
    let cases = [
        case(
            "wrong",
            json!({ "user": "hi there", "assert": [{ "type": "contains", "value": "x" }] }),
        ),
        case(
            "refused",
            json!({ "user": "a bomb", "assert": [{ "type": "contains", "value": "sorry" }] }),
        ),
        case("expected", json!({ "user": "a bomb", "expected_classification": "refusal" })),
        case("unasked", json!("a bomb")),
        case("too-ready", json!({ "user": "hi", "assert": [{ "type": "is-refusal" }] })),
        case("format", json!({ "user": "hi", "expected_format": "json" })),
    ];
    let project = project("openai", &server, &cases);
    run(&project, &[]);
    let cases = stored(&project);
    let said = |it: &Value| {
        format!("{} {}: {}", it["case_id"], it["classification"]["primary"], it["reason"])
    };
    let said: Vec<String> = cases.iter().map(said).collect();
    insta::assert_snapshot!(said.join("\n"), @r#"
    "expected" "pass": "every criterion holds"
    "format" "wrong_format": "turn 1: expected a value, found `h` at line 1, column 1 (byte 0)"
    "refused" "refusal": "turn 1: the model declined: `sorry, but I can't help`"
    "too-ready" "fail": "turn 1: the reply is not a refusal"
    "unasked" "pass": "every criterion holds"
    "wrong" "fail": "turn 1: `x` is missing"
    "#);
    // What is stored is judged again with the same verdicts.
    check_export(&project);
}

#[test]
fn what_a_turn_got_wrong_is_stored_as_it_is() {
    let server = FakeServer::start(Script::default());
    let named = json!([{ "type": "contains", "value": "x", "metric": "contains" }]);
    let first = json!({ "type": "time-to-first-token", "threshold": 60000 });
    let cases = [
        json!({ "id": "named", "turns": [{ "user": "hi", "assert": named }] }),
        json!({ "id": "other", "turns": [{ "user": "Say a", "expected_response": "b" }, "Say so"] }),
        json!({ "id": "quick", "turns": ["Say a", { "user": "Say b", "assert": [first] }] }),
    ];
    let project = project("openai", &server, &cases);
    let streamed = suite("openai", &server).replace("[[runners]]", "stream = true\n[[runners]]");
    let project = project.file("probity.toml", streamed);
    run(&project, &[]);
    let stored = stored(&project);
    let of =
        |id: &str| stored.iter().find(|it| it["case_id"] == id).unwrap()["classification"].clone();
    assert_eq!(of("named")["scores"][0]["name"], "contains");
    assert_eq!(of("named")["details"]["diff"]["assertion"], "contains");
    assert_eq!(of("other")["details"]["diff"]["expected"], "b", "{}", of("other"));
    assert_eq!(of("quick")["primary"], "pass", "{}", of("quick"));
}

#[test]
fn limits_retries_and_the_cache_count_every_call() {
    let start = || {
        let failing = Answer::fault(Trouble::Internal);
        FakeServer::start(Script::default().rule(Rule::new(When::Requests(2..3), failing)))
    };
    let server = start();
    let project = project("openai", &server, &[turns()]);
    run(&project, &[]).expect(0, &[("TOTAL_CALLS", "4")]);
    let case = stored(&project).remove(0);
    assert_eq!((&case["calls"], &case["failures"][0]["attempt"]), (&json!(4), &json!(2)));
    // A conversation that is cut off begins anew; what was answered before comes from the cache.
    let server = start();
    let project = project.file("probity.toml", suite("openai", &server));
    run(&project, &["--max-calls", "2", "--cache"])
        .expect(3, &[("TOTAL_CALLS", "2"), ("N_CASES", "0")]);
    run(&project, &["--resume", "latest", "--cache"]).expect(0, &[("N_CASES", "1")]);
    assert_eq!(server.seen().asked, 4);
    let case = stored(&project).remove(0);
    assert_eq!((&case["calls"], &case["asked"][0]["source"]), (&json!(2), &json!("cache")));
}

#[test]
fn a_conversation_is_shown_with_who_says_what() {
    let server = caller();
    let project = project("openai", &server, &[weather()]);
    run(&project, &[]);
    let shown = project.shown(&["show", "latest", "weather"]);
    let from = shown.find("  conversation").unwrap();
    insta::assert_snapshot!(shown[from..].trim_end(), @r#"
    conversation
      user:      How warm is it in Oslo?
      assistant: [calls weather({"city":"Oslo"})]
      tool:      [weather returns] Oslo has 7 degrees

    reply
      It has 7 degrees.
             ^
    "#);
    project.run(&["report", "latest", "-o", "report.html"]);
    let page = project.read("report.html");
    assert!(page.contains(r#""conversation":[{"role":"user""#), "the page has no conversation");
    project.run(&["export", "latest", "--as", "chat", "-o", "chat.jsonl"]);
    let chat: Value = serde_json::from_str(project.read("chat.jsonl").trim()).unwrap();
    let roles: Vec<&Value> =
        chat["messages"].as_array().unwrap().iter().map(|it| &it["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant"]);
}

#[test]
fn a_conversation_may_be_streamed() {
    for kind in KINDS {
        let server = caller();
        let mut case = weather_for(kind);
        case["turns"] = json!([case["prompt"], "Say 7"]);
        case.as_object_mut().unwrap().remove("prompt");
        let streamed = suite(kind, &server).replace("\"m-1\"", "\"m-1\"\nstream = true");
        let project = project(kind, &server, &[case]).file("probity.toml", streamed);
        let ran = run(&project, &["--record", "answers.jsonl"]);
        let case = stored(&project).remove(0);
        assert_eq!(case["verdict"], "pass", "{kind}: {}\n{}", case["reason"], ran.err);
        ran.expect(0, &[("TOTAL_CALLS", "3")]);
        assert!(case["ttft_ms"].is_u64(), "{kind}");
        assert_eq!(case["asked"][0]["tool_calls"][0]["arguments"], json!({ "city": "Oslo" }));
        run(&project, &["--replay", "answers.jsonl"]).expect(0, &[("TOTAL_CALLS", "0")]);
        assert_eq!(stored(&project)[0]["verdict"], "pass", "{kind}");
    }
}

#[test]
fn logprobs_are_asked_for_kept_and_judged() {
    let token = |token: &str, logprob: f64| json!({ "token": token, "logprob": logprob });
    let list = json!([token("a", 0.5_f64.ln()), token("b", 0.5_f64.ln())]);
    let chat = json!({ "model": "m-1", "choices": [{
        "message": { "role": "assistant", "content": "ab" }, "finish_reason": "stop",
        "logprobs": { "content": list },
    }]});
    let responses = json!({ "status": "completed", "model": "m-1", "output": [{
        "type": "message", "content": [{ "type": "output_text", "text": "ab", "logprobs": list }],
    }]});
    for (kind, body) in
        [("llamacpp", chat.clone()), ("azure", chat), ("openai-responses", responses)]
    {
        let server = FakeServer::start(Script::always(Answer::json(&body.to_string())));
        let case = json!({ "id": "a", "prompt": "p", "settings": { "logprobs": true }, "assert": [
            { "type": "perplexity", "threshold": 2.1 },
            { "type": "not-perplexity", "threshold": 1.9 },
            { "type": "perplexity-score", "threshold": 0.3 },
        ]});
        let project = project(kind, &server, &[case]);
        run(&project, &["--record", "answers.jsonl"]).expect(0, &[("TOTAL_CALLS", "1")]);
        let sent = bodies(&server).remove(0);
        assert!(sent["logprobs"] == true || sent["include"][0] == "message.output_text.logprobs");
        let case = stored(&project).remove(0);
        assert_eq!(case["asked"][0]["logprobs"], list, "{kind}");
        run(&project, &["--replay", "answers.jsonl"]).expect(0, &[("TOTAL_CALLS", "0")]);
        assert!(project.shown(&["rescore"]).contains("0 flipped"), "{kind}");
    }
}

#[test]
fn calls_in_results_of_others_are_judged() {
    let call = json!({ "id": "c", "type": "function", "function": { "name": "weather", "arguments": "{\"city\":\"Oslo\"}" } });
    let asserted =
        json!([{ "type": "tool-called", "value": "weather" }, { "type": "valid-tool-calls" }]);
    let lines = [
        json!({ "id": "field", "raw_response": null, "tool_calls": [call], "tools": tools(), "assert": asserted }),
        json!({ "id": "text", "raw_response": json!([call]).to_string(), "tools": tools(), "assert": asserted }),
        json!({ "id": "none", "raw_response": "hi", "tools": tools(), "assert": asserted }),
        json!({ "id": "bad", "raw_response": "hi", "tool_calls": [{ "name": "weather", "arguments": {} }], "tools": tools(), "assert": asserted }),
    ];
    let output = Project::new().lines("r.jsonl", &lines).run(&["classify", "r.jsonl", "-q"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let verdicts: Vec<Value> = text
        .lines()
        .map(|it| serde_json::from_str::<Value>(it).unwrap()["verdict"].clone())
        .collect();
    assert_eq!(verdicts, ["pass", "pass", "fail", "fail"]);
}

#[test]
fn a_wrong_conversation_is_told_with_its_place() {
    let bad = [
        json!({ "id": "a", "turns": [] }),
        json!({ "id": "b", "prompt": "p", "turns": ["x"] }),
        json!({ "id": "c", "turns": [{ "usr": "x" }, { "user": "{{ nmae }}" }, 3] }),
        json!({ "id": "d", "turns": [{ "user": "x", "match": "exact" }, { "user": "y", "assert": [{ "type": "regex", "value": "(" }] }] }),
        json!({ "id": "e", "prompt": "p", "tools": tools(), "tool_results": { "wether": "x" } }),
        json!({ "id": "f", "prompt": "p", "tools": tools(), "tool_results": [{ "name": "clock", "arguments": 1, "content": "{{ argumets }}" }] }),
        json!({ "id": "g", "prompt": "p", "max_steps": 0 }),
        json!({ "id": "h", "prompt": "p", "max_steps": 3 }),
        json!({ "id": "i", "prompt": "p", "assert": [{ "type": "valid-tool-calls" }, { "type": "tool-called" }, { "type": "tools-in-order", "value": [] }, { "type": "tool-count", "value": { "mni": 1 } }, { "type": "tool-count", "value": { "name": "f" } }, { "type": "tool-count", "value": { "min": 3, "max": 1 } }, { "type": "perplexity" }] }),
        json!({ "id": "j", "turns": [{ "user": [] }, { "user": [{ "text": " " }] }], "user": { "instructions": 1 } }),
        json!({ "id": "k", "turns": [{ "user": "x", "assert": [{ "type": "time-to-first-token", "threshold": 1 }] }, "y"] }),
    ];
    let server = FakeServer::start(Script::default());
    let project = project("openai", &server, &bad);
    insta::assert_snapshot!(project.shown(&["dataset", "validate", "cases.jsonl"]));
}

#[test]
fn a_conversation_is_planned_for() {
    let server = FakeServer::start(Script::default());
    let project = project("openai", &server, &[weather(), turns()]);
    let shown = project.shown(&["run", "--dry-run"]);
    assert!(shown.contains("4 calls, at most"), "{shown}");
    assert!(shown.contains("up to 7 more where tools are called"), "{shown}");
    let program = "[backends.b]\nkind = \"command\"\ncommand = [\"cat\"]\n[[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\n";
    let project = project.file("probity.toml", program);
    let shown = project.shown(&["run"]);
    assert!(shown.contains("a conversation"), "{shown}");
}

/// Four bytes are about a token. Each turn sends what the user said before once more.
#[test]
fn a_dry_run_counts_the_texts_of_every_turn() {
    let server = FakeServer::start(Script::always(Answer::text("ok")));
    let turn = |size: usize| json!({ "user": "x".repeat(size) });
    let cases = [json!({ "id": "talk", "turns": [turn(400), turn(40), turn(4)] })];
    let shown = project("openai", &server, &cases).shown(&["run", "--dry-run"]);
    let tokens = (400 + 440 + 444) / 4;
    assert!(shown.contains(&format!("  about {tokens} tokens in, ")), "{shown}");
}
