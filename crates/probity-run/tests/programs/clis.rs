//! The kinds `claude`, `codex` and `copilot`: scripts that print what the real ones print.

use probity_core::{failure::ErrorKind, record::CallError, request::Request};
use probity_load::suite::{BackendConfig, BackendKind};
use probity_run::backend::Reply;

use crate::lab::{LONG, Lab};

/// What a program prints, and how it ends.
#[derive(Clone, Copy, Default)]
struct Act<'a> {
    stdout: &'a str,
    stderr: &'a str,
    code: i32,
}

fn request() -> Request {
    Request::new(Some("be brief".into()), "2 + 2?")
}

async fn ask(lab: &Lab, config: &BackendConfig, act: Act<'_>) -> Result<Reply, CallError> {
    let Act { stdout, stderr, code } = act;
    lab.file("out", stdout, 0o644);
    lab.file("err", stderr, 0o644);
    let body = format!(
        "cat > @lab@/stdin; printf '%s\\n' \"$@\" > @lab@/args; env > @lab@/env\n\
         cat @lab@/out; cat @lab@/err >&2; exit {code}"
    );
    lab.script(config.kind.as_str(), &body);
    lab.program(config).ask(&request(), LONG).await
}

async fn fails(kind: BackendKind, act: Act<'_>) -> CallError {
    ask(&Lab::new(), &BackendConfig::new("b", kind), act).await.unwrap_err()
}

fn read(lab: &Lab, name: &str) -> String {
    std::fs::read_to_string(lab.path(name)).unwrap()
}

/// What claude prints for an error.
fn claude_error(fields: &str) -> String {
    format!(
        r#"{{"stop_reason":"stop_sequence","total_cost_usd":0,"usage":{{"input_tokens":0,"output_tokens":0}},"modelUsage":{{}},"is_error":true,"num_turns":1,"subtype":"success",{fields},"type":"result"}}"#
    )
}

#[tokio::test]
async fn claude_is_asked_and_understood() {
    let mut lab = Lab::new();
    lab.env.insert("ANTHROPIC_API_KEY".into(), "sk-ant-made-up-key".into());
    lab.env.insert("CLAUDECODE".into(), "1".into());
    lab.env.insert("CLAUDE_CODE_ENTRYPOINT".into(), "cli".into());
    let model = Some("haiku".to_owned());
    let config = BackendConfig { model, ..BackendConfig::new("b", BackendKind::Claude) };
    let stdout = r#"{"stop_reason":"end_turn","total_cost_usd":0.000208,"usage":{"input_tokens":12,"cache_creation_input_tokens":1,"cache_read_input_tokens":2,"output_tokens":8},"modelUsage":{"helper":{"outputTokens":1},"claude-opus-5-5":{"outputTokens":8}},"is_error":false,"subtype":"success","api_error_status":null,"result":"Four.","type":"result"}"#;
    let reply = ask(&lab, &config, Act { stdout, ..Act::default() }).await.unwrap();
    assert_eq!(reply.text, "Four.");
    assert_eq!(reply.stop_reason.as_deref(), Some("end_turn"));
    assert_eq!(reply.model.as_deref(), Some("claude-opus-5-5"));
    assert_eq!((reply.usage.input_tokens, reply.usage.output_tokens), (Some(15), Some(8)));
    assert_eq!((reply.usage.cached_tokens, reply.cost_usd), (Some(2), Some(0.000_208)));
    assert_eq!(read(&lab, "stdin"), "2 + 2?");
    let expected = "-p\n--output-format\njson\n--bare\n--strict-mcp-config\n\
                    --no-session-persistence\n--disable-slash-commands\n--model\nhaiku\n--tools\n\n\
                    --system-prompt\nbe brief\n";
    assert_eq!(read(&lab, "args"), expected);
    let env = read(&lab, "env");
    assert!(env.contains("CLAUDE_CODE_MAX_RETRIES=0\n") && !env.contains("CLAUDECODE"), "{env}");
    assert!(!env.contains("CLAUDE_CODE_ENTRYPOINT"), "{env}");
}

#[tokio::test]
async fn errors_of_claude_are_told_apart() {
    let cases = [
        (
            r#""api_error_status":401,"api_error_type":"authentication_error","result":"Failed to authenticate. API Error: 401 invalid x-api-key""#,
            (ErrorKind::Auth, true, Some(401)),
        ),
        (
            r#""api_error_status":429,"api_error_type":"rate_limit_error","result":"API Error: Request rejected (429) · This request would exceed your organization's rate limit of 50 requests per minute.""#,
            (ErrorKind::RateLimit, false, Some(429)),
        ),
        (
            r#""api_error_status":529,"api_error_type":"overloaded_error","result":"API Error: 529 Overloaded. This is a server-side issue.""#,
            (ErrorKind::Overloaded, false, Some(529)),
        ),
        (
            r#""api_error_status":400,"api_error_type":"invalid_request_error","result":"Credit balance is too low""#,
            (ErrorKind::Quota, true, Some(400)),
        ),
        (
            r#""api_error_status":null,"result":"API Error: Opus 5.5's safeguards flagged this message.""#,
            (ErrorKind::ContentFilter, true, None),
        ),
    ];
    for (fields, expected) in cases {
        let stdout = claude_error(fields);
        // Exit code 0 does not make an error an answer.
        for code in [1, 0] {
            let act = Act { stdout: &stdout, code, ..Act::default() };
            let error = fails(BackendKind::Claude, act).await;
            assert_eq!((error.kind, error.permanent, error.status), expected, "{error}");
            assert_eq!(error.exit_code, Some(code));
            assert!(!error.message.contains("num_turns"), "{error}");
        }
    }
}

#[tokio::test]
async fn what_claude_prints_in_place_of_an_answer_is_none() {
    let interrupted = Act { stdout: "Execution error", ..Act::default() };
    assert_eq!(fails(BackendKind::Claude, interrupted).await.kind, ErrorKind::Crash);
    assert_eq!(fails(BackendKind::Claude, Act::default()).await.kind, ErrorKind::Empty);
    let words = Act { stdout: "Four.", stderr: "a warning", code: 0 };
    let error = fails(BackendKind::Claude, words).await;
    assert!(
        error.message.contains("not the JSON that was asked for; it begins `Four.`"),
        "{error}"
    );
    let blank = r#"{"type":"result","is_error":false,"result":"","stop_reason":"end_turn"}"#;
    let blank = Act { stdout: blank, ..Act::default() };
    assert_eq!(fails(BackendKind::Claude, blank).await.kind, ErrorKind::Empty);
    let stderr = "error: unknown option '--bare'\n";
    let error = fails(BackendKind::Claude, Act { stderr, code: 1, ..Act::default() }).await;
    assert_eq!((error.kind, error.permanent), (ErrorKind::BadFlag, true), "{error}");
    assert_eq!(error.message, "exit code 1: error: unknown option '--bare'");
    let caught = fails(BackendKind::Claude, Act { code: 143, ..Act::default() }).await;
    assert_eq!(caught.kind, ErrorKind::Crash);
}

#[tokio::test]
async fn a_silent_refusal_of_claude_is_a_reply() {
    let stdout = r#"{"type":"result","is_error":false,"result":"","stop_reason":"refusal"}"#;
    let config = BackendConfig::new("b", BackendKind::Claude);
    let reply = ask(&Lab::new(), &config, Act { stdout, ..Act::default() }).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.stop_reason.as_deref()), ("", Some("refusal")));
}

const CODEX_BEGINNING: &str = r#"{"type":"thread.started","thread_id":"01a1dcce"}
{"type":"item.completed","item":{"id":"item_0","type":"error","message":"Model metadata for `gpt-test` not found. Defaulting to fallback metadata; this can degrade performance and cause issues."}}
{"type":"turn.started"}
"#;
const CODEX_STDERR: &str = "Reading prompt from stdin...\n";

fn codex(events: &str) -> String {
    format!("{CODEX_BEGINNING}{events}\n")
}

#[tokio::test]
async fn codex_is_asked_and_understood() {
    let lab = Lab::new();
    let mut config = BackendConfig::new("b", BackendKind::Codex);
    config.model = Some("gpt-test".to_owned());
    let stdout = codex(
        r#"{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"Let me see."}}
{"type":"item.completed","item":{"id":"item_2","type":"agent_message","text":"Four."}}
{"type":"turn.completed","usage":{"input_tokens":12,"cached_input_tokens":3,"output_tokens":8}}"#,
    );
    let act = Act { stdout: &stdout, stderr: CODEX_STDERR, code: 0 };
    let reply = ask(&lab, &config, act).await.unwrap();
    assert_eq!(reply.text, "Four.");
    assert_eq!((reply.usage.input_tokens, reply.usage.cached_tokens), (Some(12), Some(3)));
    assert_eq!((reply.usage.output_tokens, reply.cost_usd), (Some(8), None));
    assert_eq!(read(&lab, "stdin"), "be brief\n\n2 + 2?");
    assert!(read(&lab, "args").starts_with("exec\n--json\n"));
    assert!(read(&lab, "args").ends_with("-m\ngpt-test\n-\n"));
}

#[tokio::test]
async fn errors_of_codex_are_told_apart() {
    let failed = |message: &str| {
        let again = "{\"type\":\"error\",\"message\":\"Reconnecting... 1/1\"}\n";
        let line = |kind: &str| format!("{{\"type\":\"{kind}\",\"message\":\"{message}\"}}\n");
        let last = format!("{{\"type\":\"turn.failed\",\"error\":{{\"message\":\"{message}\"}}}}");
        codex(&format!("{again}{}{last}", line("error")))
    };
    let cases = [
        (
            "unexpected status 401 Unauthorized: Incorrect API key provided, url: http://127.0.0.1/v1/responses",
            (ErrorKind::Auth, true),
        ),
        (
            "exceeded retry limit, last status: 429 Too Many Requests, request id: req_test",
            (ErrorKind::RateLimit, false),
        ),
        (
            "unexpected status 529 <unknown status code>: Overloaded, url: http://127.0.0.1/v1/responses",
            (ErrorKind::Overloaded, false),
        ),
        ("Quota exceeded. Check your plan and billing details.", (ErrorKind::Quota, true)),
        (
            "The model `gpt-x` does not exist or you do not have access to it.",
            (ErrorKind::NotFound, true),
        ),
    ];
    for (message, expected) in cases {
        let stdout = failed(message);
        for code in [1, 0] {
            let act = Act { stdout: &stdout, stderr: CODEX_STDERR, code };
            let error = fails(BackendKind::Codex, act).await;
            assert_eq!((error.kind, error.permanent), expected, "{error}");
            assert_eq!(error.message, format!("exit code {code}: {message}"));
        }
    }
}

#[tokio::test]
async fn codex_may_say_nothing_or_not_know_a_flag() {
    let done = r#"{"type":"turn.completed","usage":{"input_tokens":12,"output_tokens":0}}"#;
    let stdout = codex(done);
    let silent = Act { stdout: &stdout, stderr: CODEX_STDERR, code: 0 };
    assert_eq!(fails(BackendKind::Codex, silent).await.kind, ErrorKind::Empty);
    let stderr = "WARNING: proceeding\nerror: unexpected argument '--ephemeral' found\n\nUsage: codex exec [OPTIONS]\n";
    let error = fails(BackendKind::Codex, Act { stderr, code: 2, ..Act::default() }).await;
    assert_eq!((error.kind, error.permanent), (ErrorKind::BadFlag, true));
    assert!(error.message.starts_with("exit code 2: error: unexpected argument"), "{error}");
}

#[tokio::test]
async fn copilot_is_asked_and_understood() {
    let mut lab = Lab::new();
    lab.env.insert("GH_TOKEN".into(), "made-up-token".into());
    let config = BackendConfig::new("b", BackendKind::Copilot);
    let act = Act { stdout: "Four.\n\n", ..Act::default() };
    let reply = ask(&lab, &config, act).await.unwrap();
    assert_eq!(reply.text, "Four.");
    assert_eq!(read(&lab, "stdin"), "be brief\n\n2 + 2?");
    let env = read(&lab, "env");
    assert!(env.contains("COPILOT_AUTO_UPDATE=false") && env.contains("GH_TOKEN="), "{env}");
    let json = Act { stdout: "{\"error\": \"401\"}\n", ..Act::default() };
    assert_eq!(ask(&lab, &config, json).await.unwrap().text, "{\"error\": \"401\"}");
}

#[tokio::test]
async fn errors_of_copilot_are_told_apart() {
    let end = "\n\nChanges    +0 -0\nDuration   2s\n";
    let cases = [
        (
            "\nAuthentication failed with provider at http://127.0.0.1/v1 (HTTP 401).\n  Check your COPILOT_PROVIDER_API_KEY.\n",
            (ErrorKind::Auth, true),
        ),
        (
            "\nFailed to get response from the AI model; retried 5 times (total retry wait time: 52.78 seconds) Last error: 429 You exceeded your current quota, please check your plan and billing details.\n",
            (ErrorKind::Quota, true),
        ),
        ("Error: No authentication information found.\n", (ErrorKind::Auth, true)),
        (
            "error: Invalid command format.\n\nIt looks like your prompt was not quoted, so the extra words were treated as separate arguments.\n",
            (ErrorKind::BadFlag, true),
        ),
    ];
    for (stderr, expected) in cases {
        let stderr = format!("{stderr}{end}");
        let act = Act { stderr: &stderr, code: 1, ..Act::default() };
        let error = fails(BackendKind::Copilot, act).await;
        assert_eq!((error.kind, error.permanent), expected, "{error}");
    }
    let stdout =
        "The model returned no content because the response was blocked by a content filter.\n";
    let blocked = fails(BackendKind::Copilot, Act { stdout, ..Act::default() }).await;
    assert_eq!(blocked.kind, ErrorKind::ContentFilter, "{blocked}");
    assert_eq!(fails(BackendKind::Copilot, Act::default()).await.kind, ErrorKind::Empty);
}
