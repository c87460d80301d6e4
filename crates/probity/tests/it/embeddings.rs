//! Assertions that compare embeddings: `similar` and its metrics.

use probity_testkit::{
    Answer, FakeServer, Fault, Reply, RetryAfter, Rule, Script, Text, Trouble, When,
};
use serde_json::{Value, json};

use crate::{
    project::Project,
    rescore::check_export,
    run::{of, run, stored, verdicts},
};

const EMBEDDER: &str = "embed-1";

fn is_embedder() -> When {
    When::ModelIs(EMBEDDER.to_owned())
}

/// Embeddings of texts that contain these words.
fn vectors(known: &[(&str, Value)]) -> Script {
    known.iter().fold(Script::default(), |script, (word, vector)| {
        let reply = Reply { text: Text::Json(vector.clone()), ..Reply::default() };
        let when = When::All(vec![is_embedder(), When::prompt_contains(word)]);
        script.rule(Rule::new(when, Answer::Reply(reply)))
    })
}

fn project(server: &FakeServer, kind: &str, cases: &[Value]) -> Project {
    let (url, path) = (server.url(), if kind == "ollama" { "" } else { "/v1" });
    Project::new().lines("cases.jsonl", cases).file(
        "probity.toml",
        format!(
            "max_error_rate = 1.0\nembeddings = \"vectors\"\n[retry]\nbackoff_base = 0.01\n\
             [backends.fake]\nkind = \"openai\"\nbase_url = \"{url}/v1\"\nmodel = \"fake-small\"\n\
             [backends.vectors]\nkind = \"{kind}\"\nbase_url = \"{url}{path}\"\n\
             model = \"{EMBEDDER}\"\ntemperature = 0.5\n\
             [[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\n"
        ),
    )
}

fn similar(id: &str, more: &Value) -> Value {
    let mut assertion = json!({ "type": "similar", "value": "east" });
    assertion.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({ "id": id, "prompt": format!("Say {id}"), "assert": [assertion] })
}

fn embedded(server: &FakeServer, path: &str) -> u32 {
    server.seen().paths.get(path).copied().unwrap_or(0)
}

/// East and north are at right angles, and the others between them.
fn compass() -> Script {
    vectors(&[
        ("northeast", json!([1, 1])),
        ("north", json!([0, 1])),
        ("far", json!([30, 40])),
        ("east", json!([1, 0])),
    ])
}

#[test]
fn replies_are_near_texts_or_not() {
    let server = FakeServer::start(compass());
    let cases = [
        similar("east", &json!({})),
        similar("north", &json!({})),
        similar("northeast", &json!({ "threshold": 0.7 })),
        similar("far", &json!({ "value": ["north", "east"], "threshold": 0.79 })),
        json!({ "id": "not", "prompt": "Say north", "assert": [{ "type": "not-similar", "value": "east" }] }),
        json!({ "id": "cosine", "prompt": "Say north", "assert": [{ "type": "similar:cosine", "value": "northeast", "threshold": 0.8 }] }),
        json!({ "id": "dot", "prompt": "Say far", "assert": [{ "type": "similar:dot", "value": "east", "threshold": 30 }] }),
        json!({ "id": "near", "prompt": "Say northeast", "assert": [{ "type": "similar:euclidean", "value": "east", "threshold": 1 }] }),
        json!({ "id": "distant", "prompt": "Say far", "assert": [{ "type": "similar:euclidean", "value": "east" }] }),
        json!({ "id": "transformed", "prompt": "Say x", "assert": [{ "type": "similar", "value": "east", "transform": "'east'" }] }),
        json!({ "id": "blank", "prompt": "Say x", "assert": [{ "type": "similar", "value": "east", "transform": "' '" }] }),
        json!({ "id": "set", "prompt": "Say east", "assert": [{ "type": "assert-set", "assert": [
            { "type": "similar", "value": "east" }, { "type": "similar", "value": "north" }] }] }),
    ];
    for kind in ["openai", "ollama"] {
        server.reset();
        let project = project(&server, kind, &cases);
        let ran = run(&project, &[]);
        ran.expect(0, &[("N_CASES", "12"), ("ABORTED", "0")]);
        let found = stored(&project);
        let expected = [
            ("blank", "fail"),
            ("cosine", "fail"),
            ("distant", "fail"),
            ("dot", "pass"),
            ("east", "pass"),
            ("far", "pass"),
            ("near", "pass"),
            ("north", "fail"),
            ("northeast", "pass"),
            ("not", "pass"),
            ("set", "fail"),
            ("transformed", "pass"),
        ];
        assert_eq!(verdicts(&found), expected.map(|(id, it)| (id.to_owned(), it.to_owned())));
        let reason = |id: &str| of(&found, id)["reason"].as_str().unwrap().to_owned();
        assert_eq!(reason("north"), "the cosine similarity to `east` is 0.0000, below 0.75");
        assert_eq!(reason("distant"), "the distance to `east` is 49.4065, above 0.75");
        assert_eq!(reason("blank"), "there is no text to compare");
        let far = &of(&found, "far")["classification"]["scores"][0];
        assert_eq!((&far["name"], &far["value"]), (&json!("similar"), &json!(0.8)));
        // What was found out is in the record, and no vector is.
        let asked = &of(&found, "far")["asked"][1];
        assert_eq!((&asked["role"], &asked["backend"]), (&json!("scorer 1"), &json!("vectors")));
        assert_eq!(asked["reply"], r#"{"value":0.8,"nearest":0}"#);
        assert_eq!(asked["model"], EMBEDDER);
        // Nobody is asked again.
        let calls = server.seen().asked;
        check_export(&project);
        assert_eq!(verdicts(&stored(&project)), verdicts(&found));
        assert_eq!(server.seen().asked, calls);
    }
}

#[test]
fn what_is_sent_is_what_servers_document() {
    let server = FakeServer::start(compass());
    for (kind, path) in [("openai", "/v1/embeddings"), ("ollama", "/api/embed")] {
        server.reset();
        let project = project(&server, kind, &[similar("east", &json!({}))]);
        run(&project, &[]).expect(0, &[("TOTAL_CALLS", "2")]);
        let seen = server.seen();
        let sent = seen.last.iter().find(|it| it.path == path).unwrap();
        assert_eq!(sent.json(), json!({ "model": EMBEDDER, "input": "east" }));
        assert_eq!(seen.outcome("invalid"), 0);
    }
}

#[test]
fn a_text_is_embedded_once_and_kept_for_later_runs() {
    let server = FakeServer::start(compass());
    let cases: Vec<Value> = (0..20).map(|at| similar(&format!("north-{at}"), &json!({}))).collect();
    let project = project(&server, "openai", &cases);
    // Concurrent cases wait for the text that they all expect.
    let ran = run(&project, &["--no-cache", "-j", "4"]);
    ran.expect(0, &[("N_CASES", "20")]);
    assert_eq!(server.seen().prompt("east"), 1);
    assert_eq!(embedded(&server, "/v1/embeddings"), 21);
    let first = &stored(&project)[0];
    assert_eq!(
        (&first["asked"][0]["calls"], &first["asked"][0]["role"]),
        (&json!(1), &json!("answer"))
    );
    server.reset();
    run(&project, &[]);
    assert_eq!(embedded(&server, "/v1/embeddings"), 21, "nothing was kept by --no-cache");
    server.reset();
    run(&project, &[]).expect(0, &[("TOTAL_CALLS", "20")]);
    assert_eq!(embedded(&server, "/v1/embeddings"), 0);
    let stats = project.shown(&["cache", "stats"]);
    assert!(stats.contains(": 21 embeddings,"), "{stats}");
    project.shown(&["cache", "clear", "--embeddings"]);
    let stats = project.shown(&["cache", "stats"]);
    assert!(stats.contains(": 0 embeddings,"), "{stats}");
}

#[test]
fn a_server_that_gives_no_vectors_is_an_error_and_never_a_fail() {
    let data = |embedding: &str| format!(r#"{{"data":[{{"embedding":{embedding}}}]}}"#);
    let bodies = [
        (data("[NaN, 1]"), "it has no embeddings"),
        (data("[null, 1]"), "something that is no finite number"),
        (data("[]"), "its embedding is empty"),
        (data("\"AACAPw==\""), "is not a list of numbers"),
        (r#"{"data":[]}"#.to_owned(), "does not have one embedding for one text"),
        (
            r#"{"data":[{"embedding":[1]},{"embedding":[2]}]}"#.to_owned(),
            "does not have one embedding",
        ),
        (r#"{"error":{"message":"no such pooling"}}"#.to_owned(), "no such pooling"),
        (data("[0, 0]"), "nothing but zeros"),
    ];
    for (body, expected) in bodies {
        let server = FakeServer::start(
            Script::default().rule(Rule::new(is_embedder(), Answer::json(&body))),
        );
        let project = project(&server, "openai", &[similar("east", &json!({}))]);
        run(&project, &["--max-retries", "1"]);
        let case = &stored(&project)[0];
        let error = case["error"]["message"].as_str().unwrap();
        assert_eq!(case["verdict"], "error", "{body}");
        assert!(error.starts_with("embeddings `vectors`: ") && error.contains(expected), "{error}");
        // The answer of the model is kept, and is not asked for again.
        assert_eq!((&case["raw_response"], server.seen().prompt("Say east")), (&json!("east"), 1));
    }
}

#[test]
fn vectors_of_different_lengths_are_an_error() {
    let script = vectors(&[("north", json!([1, 0, 0])), ("east", json!([1, 0]))]);
    let server = FakeServer::start(script);
    let project = project(&server, "ollama", &[similar("north", &json!({}))]);
    run(&project, &[]);
    let case = &stored(&project)[0];
    let error = case["error"]["message"].as_str().unwrap();
    assert_eq!(case["verdict"], "error");
    assert!(error.contains("the vectors of two texts have 3 and 2 numbers"), "{error}");
    let again = project.shown(&["rescore", "latest"]);
    assert!(again.contains(": 0 flipped"), "{again}");
    assert_eq!(stored(&project)[0]["verdict"], "error");
}

#[test]
fn a_busy_embedder_is_waited_for() {
    let busy = Answer::Fault(Fault::new(Trouble::RateLimit).retry(RetryAfter::Millis(10)));
    let server = FakeServer::start(Script {
        rules: std::iter::once(Rule::new(is_embedder(), busy).times(2))
            .chain(compass().rules)
            .collect(),
        ..Script::default()
    });
    let project = project(&server, "openai", &[similar("east", &json!({}))]);
    run(&project, &[]).expect(0, &[("TOTAL_CALLS", "4"), ("ABORTED", "0")]);
    let case = &stored(&project)[0];
    assert_eq!((&case["verdict"], &case["calls"]), (&json!("pass"), &json!(4)));
    assert_eq!(case["failures"].as_array().unwrap().len(), 2);
    assert_eq!((&case["asked"][0]["calls"], &case["asked"][1]["calls"]), (&json!(1), &json!(3)));
}

#[test]
fn an_outage_of_the_embedder_stops_what_needs_it_and_is_never_a_fail() {
    let script = Script::default().rule(Rule::new(is_embedder(), Answer::fault(Trouble::BadKey)));
    let server = FakeServer::start(script);
    let cases: Vec<Value> = (0..50).map(|at| similar(&format!("c{at}"), &json!({}))).collect();
    let ran = run(&project(&server, "openai", &cases), &["-j", "1"]);
    ran.expect(3, &[("FAIL_FAST", "1"), ("ABORTED", "1")]);
    assert!(server.seen().asked < 40, "{}", server.seen().asked);
}

#[test]
fn calls_of_the_embedder_count_for_the_budget() {
    let server = FakeServer::start(compass());
    let cases: Vec<Value> = (0..10).map(|at| similar(&format!("c{at}"), &json!({}))).collect();
    let project = project(&server, "openai", &cases);
    run(&project, &["--no-cache", "--max-calls", "7", "-j", "1"])
        .expect(3, &[("TOTAL_CALLS", "7")]);
    assert_eq!(server.seen().asked, 7);
}

#[test]
fn what_cannot_be_compared_is_refused_before_the_first_call() {
    let server = FakeServer::start(compass());
    let project = project(&server, "openai", &[similar("east", &json!({}))]);
    let suite = project.read("probity.toml");
    let refused = |suite: &str, expected: &[&str]| {
        std::fs::write(project.path("probity.toml"), suite).unwrap();
        let shown = project.shown(&["run"]);
        assert!(shown.starts_with("exit 2"), "{shown}");
        for part in expected {
            assert!(shown.contains(part), "{part}: {shown}");
        }
    };
    let named = "embeddings = \"vectors\"\n";
    refused(
        &suite.replace(named, "").replace("[[runners]]", "[[runners]]\nbackends = [\"fake\"]"),
        &[
            "cases.jsonl:1:",
            "`similar` needs a backend that embeds texts",
            "embeddings = \"BACKEND\"",
        ],
    );
    let of_runner = "backends = [\"fake\"]\nassert = [{ type = \"similar\", value = \"a\" }]\n";
    refused(
        &format!("{}{of_runner}", suite.replace(named, "")),
        &["probity.toml:17:", "`similar` needs a backend that embeds texts"],
    );
    refused(
        &suite.replace("kind = \"openai\"\nbase_url", "kind = \"anthropic\"\nbase_url"),
        &["probity.toml:2:", "backend `vectors` of kind `anthropic` cannot embed texts"],
    );
    refused(
        &suite.replace(named, "embeddings = \"vector\"\n"),
        &["probity.toml:2:", "there is no backend `vector`"],
    );
    std::fs::write(project.path("probity.toml"), &suite).unwrap();
    for (assertion, expected) in [
        (json!({ "type": "similar" }), "must be a string or a list of strings"),
        (json!({ "type": "similar", "value": ["a", " "] }), "none of them blank"),
        (json!({ "type": "similar", "value": "a", "threshold": 2 }), "from -1 to 1"),
        (json!({ "type": "similar:euclidean", "value": "a", "threshold": -1 }), "largest distance"),
        (json!({ "type": "similar", "value": "a", "extract": "last-number" }), "with `transform`"),
        (json!({ "type": "similar:manhattan", "value": "a" }), "similar:manhattan"),
    ] {
        let case = json!({ "id": "c", "prompt": "x", "assert": [assertion] });
        std::fs::write(project.path("cases.jsonl"), case.to_string()).unwrap();
        let shown = project.shown(&["run"]);
        assert!(shown.starts_with("exit 2") && shown.contains(expected), "{expected}: {shown}");
    }
    assert_eq!(server.seen().asked, 0);
}

#[test]
fn a_runner_may_name_another_embedder() {
    let server = FakeServer::start(compass());
    let project = project(&server, "openai", &[similar("east", &json!({}))]);
    let suite = project.read("probity.toml");
    let suite = suite.replace("embeddings = \"vectors\"\n", "")
        + "backends = [\"fake\"]\nembeddings = \"vectors\"\n";
    std::fs::write(project.path("probity.toml"), suite).unwrap();
    run(&project, &[]).expect(0, &[("TOTAL_CALLS", "2")]);
}

#[test]
fn the_embedder_is_shown_before_anything_is_asked() {
    let server = FakeServer::start(compass());
    let project = project(&server, "openai", &[similar("east", &json!({ "value": ["a", "b"] }))]);
    let dry = project.shown(&["run", "--dry-run"]);
    assert!(dry.contains("once each: 4 calls"), "{dry}");
    assert!(dry.contains("  at most 3 embeddings by vectors (embed-1)"), "{dry}");
    assert!(!dry.contains("r on vectors"), "it is not evaluated: {dry}");
    let doctor = project.shown(&["doctor", "--call"]);
    let part = doctor.split("vectors (openai)").nth(1).unwrap();
    assert!(part.contains("used for   embeddings"), "{doctor}");
    assert!(part.contains("/v1/embeddings") && part.contains("embedding  26 numbers"), "{doctor}");
    assert!(part.contains("`embed-1` is not among them"), "{doctor}");
    assert_eq!(server.seen().prompt("Reply with the word OK."), 1);
}

#[test]
fn answers_from_a_recording_are_compared_again() {
    let server = FakeServer::start(compass());
    let project = project(&server, "openai", &[similar("north", &json!({ "threshold": 0 }))]);
    run(&project, &["--record", "run.jsonl"]).expect(0, &[]);
    server.reset();
    run(&project, &["--replay", "run.jsonl"]).expect(0, &[]);
    assert_eq!(server.seen().asked, 0, "vectors are kept");
    assert_eq!(stored(&project)[0]["stop_reason"], "stop");
    run(&project, &["--replay", "run.jsonl", "--no-cache"]).expect(0, &[]);
    assert_eq!(server.seen().paths.keys().collect::<Vec<_>>(), ["/v1/embeddings"]);
}
