//! Amazon Bedrock: signatures, bodies, streams and errors.

use probity_testkit::{
    AWS_ACCESS_KEY, AWS_SECRET_KEY, Answer, FakeServer, Received, Reply, Script, Text,
};
use serde_json::{Value, json};

use crate::{
    dialects::{KEY, Spoken, check_common, outcome, project as with_key, sent},
    project::Project,
    run::{dataset, run, stored},
};

const MODEL: &str = "us.anthropic.claude-3-5-haiku-20241022-v1:0";
const TOKEN: &str = "session-token-of-a-role+/==";

/// A suite whose requests are signed.
fn signed(server: &FakeServer, secret: &str, more: &str) -> Project {
    let suite = format!(
        "max_error_rate = 1.0\n[backends.b]\nkind = \"bedrock\"\nbase_url = \"{}\"\n\
         model = \"{MODEL}\"\napi_key_env = \"AWS_SECRET_ACCESS_KEY\"\n{more}\n\
         [[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\n",
        server.url()
    );
    let variables = format!(
        "AWS_ACCESS_KEY_ID={AWS_ACCESS_KEY}\nAWS_SECRET_ACCESS_KEY={secret}\n\
         AWS_SESSION_TOKEN={TOKEN}\nAWS_REGION=eu-west-1\n"
    );
    Project::new()
        .file("cases.jsonl", dataset(2))
        .file(".env", variables)
        .file("probity.toml", suite)
}

#[test]
fn what_is_sent_is_what_aws_documents() {
    let server = FakeServer::start(Script::default());
    let more = "top_p = 0.9\nstop = [\"END\"]\nseed = 7\n\
                extra_body = { additionalModelRequestFields = { top_k = 5 } }\n\
                response_format = { type = \"object\" }";
    let project = with_key(Spoken { kind: "bedrock", more }, &server);
    let ran = run(&project, &[]);
    ran.expect(0, &[("TOTAL_CALLS", "1")]);
    let (received, body) = sent(&server);
    assert_eq!(received.path, "/model/m-1/converse");
    assert_eq!(received.header("authorization"), Some(&*format!("Bearer {KEY}")));
    assert_eq!(received.header("x-amz-date"), None);
    let format = json!({
        "type": "json_schema",
        "structure": { "jsonSchema": { "name": "answer", "schema": "{\"type\":\"object\"}" } },
    });
    let expected = json!({
        "inferenceConfig": {
            "maxTokens": 9, "temperature": 0.5, "topP": 0.9, "stopSequences": ["END"],
        },
        "outputConfig": { "textFormat": format },
        "additionalModelRequestFields": { "top_k": 5 },
        "system": [{ "text": "be brief" }],
        "messages": [{ "role": "user", "content": [{ "text": "Return the number 0" }] }],
    });
    assert_eq!(body, expected);
}

#[test]
fn a_key_is_enough() {
    check_common(Spoken::plain("bedrock"));
}

#[test]
fn streams_of_bedrock_behave_as_a_whole() {
    check_common(Spoken { kind: "bedrock", more: "stream = true" });
}

#[test]
fn a_stream_that_breaks_off_before_its_first_event_is_a_network_error() {
    for body in ["", "\0\0\0Z\0"] {
        let headers =
            vec![("content-type".to_owned(), "application/vnd.amazon.eventstream".to_owned())];
        let answer = Answer::Raw { status: 200, headers, body: body.to_owned() };
        let server = FakeServer::start(Script::always(answer));
        let project = with_key(Spoken { kind: "bedrock", more: "stream = true" }, &server);
        run(&project, &["--max-retries", "0"]);
        let error = stored(&project)[0]["error"].clone();
        assert_eq!(error["kind"], "network", "{error}");
    }
}

fn of_model(server: &FakeServer) -> Vec<Received> {
    server.seen().last.into_iter().filter(|it| it.path.starts_with("/model/")).collect()
}

#[test]
fn requests_are_signed_with_the_credentials_of_the_environment() {
    for more in ["", "stream = true"] {
        let server = FakeServer::start(Script::default());
        let project = signed(&server, AWS_SECRET_KEY, more);
        run(&project, &[]).expect(0, &[("TOTAL_CALLS", "2"), ("ABORTED", "0")]);
        assert_eq!(server.seen().outcome("invalid"), 0);
        for received in of_model(&server) {
            let path = "/model/us.anthropic.claude-3-5-haiku-20241022-v1%3A0/converse";
            assert!(received.path.starts_with(path), "{}", received.path);
            assert_eq!(received.header("x-amz-security-token"), Some(TOKEN));
            let authorization = received.header("authorization").unwrap();
            assert!(authorization.contains("/eu-west-1/bedrock/aws4_request, "), "{authorization}");
            let names = "SignedHeaders=content-type;host;x-amz-date;x-amz-security-token, ";
            assert!(authorization.contains(names), "{authorization}");
        }
        let case = stored(&project).remove(0);
        assert_eq!((&case["verdict"], &case["stop_reason"]), (&json!("pass"), &json!("end_turn")));
        assert_eq!(case["ttft_ms"].is_u64(), !more.is_empty(), "{case}");
    }
}

#[test]
fn a_wrong_secret_is_an_error_of_the_key_that_no_retry_mends() {
    let server = FakeServer::start(Script::default());
    let project = signed(&server, "another-secret-key-of-aws", "");
    run(&project, &["--limit", "1"]);
    let case = stored(&project).remove(0);
    assert_eq!((&case["error"]["kind"], &case["calls"]), (&json!("auth"), &json!(1)), "{case}");
    let message = case["error"]["message"].as_str().unwrap();
    assert!(message.contains("(InvalidSignatureException)"), "{message}");
}

#[test]
fn credentials_are_kept_out_of_everything() {
    let text = format!("{AWS_SECRET_KEY} and {TOKEN}");
    let reply = Reply { text: Text::Fixed(text), ..Reply::default() };
    let server = FakeServer::start(Script::always(Answer::Reply(reply)));
    let project = signed(&server, AWS_SECRET_KEY, "");
    run(&project, &[]);
    assert_eq!(stored(&project)[0]["raw_response"], "[redacted] and [redacted]");
}

#[test]
fn doctor_lists_models_with_a_signature() {
    let server = FakeServer::start(Script::default());
    let project = signed(&server, AWS_SECRET_KEY, "");
    let ran = project.run(&["doctor", "--call"]);
    let text = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert_eq!(ran.status.code(), Some(0), "{text}");
    assert_eq!(server.seen().paths.get("/foundation-models"), Some(&1));
    let ran = signed(&server, "another-secret-key-of-aws", "").run(&["doctor"]);
    let text = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert_eq!(ran.status.code(), Some(3), "{text}");
    assert!(text.contains("InvalidSignatureException"), "{text}");
}

#[test]
fn exceptions_are_known_by_their_names() {
    let exceptions = [
        (403, "AccessDeniedException", "no identity-based policy allows it", "auth", true),
        (403, "ExpiredTokenException", "The security token is expired", "auth", true),
        (500, "InternalServerException", "Try again", "server", false),
        (424, "ModelErrorException", "The request failed", "server", false),
        (424, "ModelStreamErrorException", "The stream failed", "server", false),
        (429, "ModelNotReadyException", "The model is not ready", "overloaded", false),
        (408, "ModelTimeoutException", "The model took long", "timeout", false),
        (404, "ResourceNotFoundException", "This model version has ended", "not_found", true),
        (503, "ServiceUnavailableException", "Wait", "overloaded", false),
        (429, "ThrottlingException", "Too many tokens, wait", "rate_limit", false),
        (
            400,
            "ValidationException",
            "The model returned the following errors",
            "bad_request",
            true,
        ),
        (400, "ServiceQuotaExceededException", "Over the quota", "quota", true),
    ];
    for (status, name, message, kind, is_permanent) in exceptions {
        let headers = vec![
            ("content-type".to_owned(), "application/json".to_owned()),
            ("x-amzn-errortype".to_owned(), format!("{name}:http://internal.amazon.com/")),
        ];
        let body = json!({ "message": message }).to_string();
        let server = FakeServer::start(Script::always(Answer::Raw { status, headers, body }));
        let project = with_key(Spoken::plain("bedrock"), &server);
        run(&project, &["--max-retries", "1"]);
        let case = stored(&project).remove(0);
        assert_eq!(case["error"]["kind"], kind, "{name}: {case}");
        let said = format!("HTTP {status}: {message} ({name})");
        assert_eq!(case["error"]["message"], said);
        assert_eq!(case["calls"], if is_permanent { 1 } else { 2 }, "{name}");
    }
}

#[test]
fn an_answer_that_was_kept_back_is_a_refusal() {
    let body = r#"{"output":{"message":{"role":"assistant","content":[]}},"stopReason":"content_filtered","usage":{"inputTokens":3,"outputTokens":0,"totalTokens":3}}"#;
    let (class, error, _) = outcome(Spoken::plain("bedrock"), Answer::json(body));
    assert_eq!((class.as_str(), error), ("refusal", None));
}

#[test]
fn what_is_missing_is_named_before_the_first_call() {
    let suite = |more: &str| {
        format!(
            "[backends.b]\nkind = \"bedrock\"\nmodel = \"m\"\n{more}\n\
             [[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\n"
        )
    };
    let shown = |more: &str, variables: &str| {
        Project::new()
            .file("cases.jsonl", dataset(1))
            .file(".env", variables)
            .file("probity.toml", suite(more))
            .shown(&["run"])
    };
    let region = "AWS_REGION=eu-west-1\n";
    for (more, variables, expected) in [
        ("", "", "needs a `base_url`, or the variable `AWS_REGION`"),
        ("", region, "needs a key in `AWS_BEARER_TOKEN_BEDROCK`, or credentials in"),
        ("api_key_env = \"AWS_SECRET_ACCESS_KEY\"", region, "variable `AWS_ACCESS_KEY_ID`"),
        (
            "api_key_env = \"AWS_SECRET_ACCESS_KEY\"\nbase_url = \"http://127.0.0.1:1\"",
            "AWS_SECRET_ACCESS_KEY=some-secret-key\n",
            "needs a region in the variable `AWS_REGION`",
        ),
    ] {
        let shown = shown(more, variables);
        assert!(shown.starts_with("exit 2") && shown.contains(expected), "{expected}: {shown}");
    }
}

#[test]
fn an_image_by_url_is_refused_and_tool_results_are_one_turn() {
    let server = FakeServer::start(Script::default());
    let project = with_key(Spoken::plain("bedrock"), &server);
    let image = json!([{ "image": "https://example.com/a.png" }]);
    let case = json!({
        "id": "a", "expected_response": "x", "messages": [{ "role": "user", "content": image }],
    });
    std::fs::write(project.path("cases.jsonl"), case.to_string()).unwrap();
    let shown = project.shown(&["run"]);
    assert!(shown.starts_with("exit 2") && shown.contains("an image by URL"), "{shown}");
    let function = json!({ "name": "add", "arguments": "{\"a\":1}" });
    let call = json!({ "id": "c1", "type": "function", "function": function });
    let case = json!({ "id": "a", "tools": [{ "name": "add" }], "messages": [
        { "role": "user", "content": "add" },
        { "role": "assistant", "tool_calls": [call] },
        { "role": "tool", "tool_call_id": "c1", "name": "add", "content": "2" },
        { "role": "user", "content": "so?" },
    ], "assert": [{ "type": "contains", "value": "so" }]});
    std::fs::write(project.path("cases.jsonl"), case.to_string()).unwrap();
    run(&project, &[]);
    let (_, body) = sent(&server);
    let roles: Vec<&Value> =
        body["messages"].as_array().unwrap().iter().map(|it| &it["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    let last = json!([
        { "toolResult": { "toolUseId": "c1", "content": [{ "text": "2" }] } },
        { "text": "so?" },
    ]);
    assert_eq!(body["messages"][2]["content"], last);
}
