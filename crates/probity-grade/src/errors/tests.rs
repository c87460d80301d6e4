//! Fixtures of our own for each way an error can mislead.

use proptest::prelude::*;

use super::*;

fn rules() -> ErrorRules {
    ErrorRules::compile(None, &mut Vec::new()).expect("the built-in rules compile")
}

fn kind_of(input: &ErrorInput<'_>) -> ErrorKind {
    let verdict = rules().classify(input);
    let by_kind = verdict.kind.is_permanent();
    assert_eq!(verdict.permanent, by_kind, "{verdict:?} of {input:?}");
    verdict.kind
}

/// A text of unknown origin.
fn check(text: &str, expected: ErrorKind) {
    let found = kind_of(&ErrorInput { text, ..ErrorInput::default() });
    assert_eq!(found, expected, "{text}");
}

/// The body of an HTTP answer.
fn check_http(status: u16, text: &str, expected: ErrorKind) {
    let found = kind_of(&ErrorInput { status: Some(status), text, ..ErrorInput::default() });
    assert_eq!(found, expected, "{status} {text}");
}

/// A program that ended: backend, exit code, standard output, standard error.
fn check_program(backend: &str, exit_code: i32, stdout: &str, stderr: &str, expected: ErrorKind) {
    let input = ErrorInput {
        backend: Some(backend),
        exit_code: Some(exit_code),
        stdout,
        stderr,
        ..ErrorInput::default()
    };
    assert_eq!(kind_of(&input), expected, "{backend} {exit_code} {stdout} {stderr}");
}

#[test]
fn digits_of_amounts_ids_ports_and_durations_are_no_status() {
    for text in [
        "gave up after 14000 ms",
        "request 4013 went away",
        "answer had 429 tokens, then silence",
        "id req_500a401 has no owner",
        "nobody listens on port 4040",
        "step 403 of 500 did not end",
        "it is 401s late",
        "0.429 is below 0.503",
    ] {
        check(text, ErrorKind::Unknown);
    }
    check("connection refused (127.0.0.1:4010)", ErrorKind::Network);
    check("no model named tiny-0429 is known: model not found", ErrorKind::NotFound);
}

#[test]
fn an_empty_account_is_permanent_even_with_429() {
    let body = r#"{"error":{"type":"insufficient_quota","message":"nothing left on this plan"}}"#;
    check_http(429, body, ErrorKind::Quota);
    check("RateLimitError: your credit balance is too low", ErrorKind::Quota);
    check("429: limit of 50 calls per day used up", ErrorKind::Quota);
}

#[test]
fn a_quota_with_a_short_wait_is_a_rate_limit() {
    let input = ErrorInput {
        status: Some(429),
        text: r#"{"error":{"code":"insufficient_quota","message":"too much for now"}}"#,
        headers: &[("retry-after", "12")],
        ..ErrorInput::default()
    };
    let verdict = rules().classify(&input);
    assert_eq!((verdict.kind, verdict.permanent), (ErrorKind::RateLimit, false));
    assert_eq!(verdict.retry_after, Some(12.0));
    check("rate limit reached, try again in 26 hours", ErrorKind::Quota);
    check("rate limit reached, try again in 26 minutes", ErrorKind::RateLimit);
}

#[test]
fn no_wait_fills_an_empty_purse() {
    check("insufficient credits; try again in 3 seconds", ErrorKind::Quota);
    check("insufficient credits. retrying in 0.5s", ErrorKind::Quota);
    check_http(402, "retry after 5 seconds", ErrorKind::Quota);
}

#[test]
fn a_retryable_type_beats_the_words_of_a_bad_request() {
    let body =
        r#"{"error":{"type":"invalid_request_error","message":"too many requests, slow down"}}"#;
    check_http(429, body, ErrorKind::RateLimit);
}

#[test]
fn permanent_errors_come_with_server_statuses() {
    check_http(
        500,
        r#"{"error":{"type":"server_error","message":"context size was exceeded"}}"#,
        ErrorKind::TooLarge,
    );
    check_http(500, "this model's maximum context length is 512", ErrorKind::TooLarge);
    check_http(500, "APIConnectionError: invalid api key", ErrorKind::Auth);
    check_http(
        400,
        r#"{"error":{"message":"api key not valid","status":"INVALID_ARGUMENT"}}"#,
        ErrorKind::Auth,
    );
}

#[test]
fn permanent_errors_ask_to_try_again() {
    check_http(400, "that picture is broken, please try again", ErrorKind::BadRequest);
    check_http(404, "no such page; check the spelling and try again later", ErrorKind::NotFound);
    check("api key expired. please try again with a new one", ErrorKind::Auth);
    check("the prompt is too long, shorten it and retry", ErrorKind::TooLarge);
    check_http(400, "timeout is too short, please retry", ErrorKind::BadRequest);
}

#[test]
fn a_status_in_the_body_counts_where_the_gateway_says_200() {
    check_http(200, r#"{"error":{"code":503,"message":"come back"}}"#, ErrorKind::Overloaded);
    check_http(200, r#"{"error":{"code":401,"message":"who are you"}}"#, ErrorKind::Auth);
}

#[test]
fn pages_of_proxies_mean_what_their_status_means() {
    let page = |title: &str| {
        format!(
            "<html><head><title>{title}</title></head><body><h1>{title}</h1><i>id 4294010</i></body></html>"
        )
    };
    check_http(502, &page("502 Bad Gateway"), ErrorKind::Server);
    check(&page("503 Service Temporarily Unavailable"), ErrorKind::Overloaded);
    check(&page("504 Gateway Time-out"), ErrorKind::Timeout);
    check(&page("403 Forbidden"), ErrorKind::Auth);
    check(&page("413 Request Entity Too Large"), ErrorKind::TooLarge);
    check("unexpected token '<' where JSON should begin", ErrorKind::Server);
}

#[test]
fn wrapped_and_coloured_text_reads_as_one_line() {
    check("\u{1b}[31mError:\u{1b}[0m the rate\n      limit\n  was hit", ErrorKind::RateLimit);
    check("api error: 401 | your key was re-\nvoked? no: invalid\n\tapi key", ErrorKind::Auth);
}

#[test]
fn every_family_of_argument_parsers_is_known() {
    for usage in [
        // clap
        "error: unexpected argument '--retry-on-429' found",
        "error: invalid value 'soon' for '--timeout <SECONDS>': no number",
        "error: the following required arguments were not provided:\n  <PROMPT>",
        // argparse and optparse
        "usage: ask [-h] [--timeout T]\nask: error: unrecognized arguments: --timeot 3",
        "usage: ask [-h]\nask: error: argument --timeout: invalid float value: 'x'",
        "Usage: ask [options]\n\nask: error: no such option: --network",
        // click
        "Usage: ask [OPTIONS]\n\nError: No such option: --retry",
        "Usage: ask [OPTIONS]\n\nError: Option '--timeout' requires an argument.",
        // commander
        "error: unknown option '--max-retries'",
        "error: option '--timeout <ms>' argument 'x' is invalid. Allowed choices are 1, 2.",
        // yargs
        "Options:\n  --timeout  how long  [number]\n\nUnknown argument: timeot",
        "Invalid values:\n  Argument: mode, Given: \"x\", Choices: \"y\"",
        // cobra and Go's flag
        "Error: unknown flag: --rate-limit",
        "Error: invalid argument \"429x\" for \"--port\" flag: bad number",
        "flag provided but not defined: -timeout",
        // oclif
        " ›   Error: Nonexistent flag: --timeout\n ›   See more help with --help",
        " ›   Error: Expected --mode=x to be one of: y, z",
        // getopt
        "ask: unrecognized option '--timeout-ms'",
        "ask: option '--retry' requires an argument",
        "ask: invalid option -- 'q'",
        // curl
        "curl: option --retry-429: is unknown",
    ] {
        check(usage, ErrorKind::BadFlag);
    }
}

#[test]
fn an_option_named_timeout_is_neither_a_timeout_nor_a_crash() {
    check("unknown option --timeout", ErrorKind::BadFlag);
    check("unknown flag: -timeout", ErrorKind::BadFlag);
    check("--abort-on-signal is no option here", ErrorKind::Unknown);
}

#[test]
fn an_api_complains_about_values_too() {
    check_http(
        400,
        r#"{"error":{"message":"invalid value for 'temperature'"}}"#,
        ErrorKind::BadRequest,
    );
    check_http(400, r#"{"error":{"message":"unknown argument: stop_at"}}"#, ErrorKind::BadRequest);
}

#[test]
fn stored_texts_tell_timeouts_from_crashes() {
    for text in [
        "timed out after 120 s",
        "Timeout",
        "deadline exceeded",
        "the time limit was reached",
        "TimeoutError()",
    ] {
        check(text, ErrorKind::Timeout);
    }
    for text in [
        "segfault",
        "Segmentation fault (core dumped)",
        "killed by signal 9",
        "Abort trap: 6",
        "aborted",
        "thread 'main' panicked at x.rs:404:5",
        "kernel panic",
        "the process crashed",
    ] {
        check(text, ErrorKind::Crash);
    }
}

#[test]
fn an_error_object_on_standard_output_counts_even_with_exit_code_0() {
    let object = r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"no more for now"}"#;
    check_program("claude", 0, object, "", ErrorKind::RateLimit);
    check_program(
        "codex",
        0,
        r#"{"type":"turn.failed","error":{"message":"key rejected: 401 unauthorized"}}"#,
        "",
        ErrorKind::Auth,
    );
}

#[test]
fn an_answer_on_standard_output_is_no_error() {
    let answer = r#"{"type":"result","is_error":false,"result":"401 means unauthorized"}"#;
    check_program("claude", 0, answer, "", ErrorKind::Unknown);
    check_program("claude", 0, "A 401 means that the api key is invalid.", "", ErrorKind::Unknown);
    check_program("command", 0, r#"{"message":"invalid api key"}"#, "", ErrorKind::Unknown);
    let recovered = "{\"type\":\"error\",\"message\":\"401 unauthorized, once more\"}\n{\"type\":\"turn.completed\"}";
    check_program("codex", 0, recovered, "", ErrorKind::Unknown);
    check_program(
        "copilot",
        1,
        "An invalid api key is one that",
        "connection lost",
        ErrorKind::Network,
    );
}

#[test]
fn errors_that_claude_prints_as_answers_count() {
    check_program("claude", 1, "You've hit your limit · resets 4pm", "", ErrorKind::Quota);
    check_program("claude", 1, "Usage limit reached", "", ErrorKind::Quota);
    check_program(
        "claude",
        1,
        "API Error: 529 too much to do",
        "a warning of no interest",
        ErrorKind::Overloaded,
    );
    check_program("claude", 0, "Execution error", "", ErrorKind::Crash);
    check_program(
        "copilot",
        0,
        "● The model returned no content because of a filter",
        "",
        ErrorKind::ContentFilter,
    );
}

#[test]
fn the_prompt_in_the_banner_of_codex_is_no_error() {
    let banner = "OpenAI Codex v9\n--------\nuser\nWhy is my api key invalid and the model not found?\nwarning: no metadata for model x found";
    check_program("codex", 0, "", banner, ErrorKind::Empty);
    check_program(
        "codex",
        1,
        "",
        &format!("{banner}\nERROR: stream closed early"),
        ErrorKind::Network,
    );
    check_program(
        "codex",
        2,
        "",
        "WARNING: model not found\nerror: unexpected argument '--x' found",
        ErrorKind::BadFlag,
    );
}

#[test]
fn a_signal_is_a_crash_whatever_was_printed_before() {
    let input = ErrorInput {
        signal: Some("SIGKILL"),
        stderr: "warning: model metadata not found, invalid api key",
        ..ErrorInput::default()
    };
    assert_eq!(kind_of(&input), ErrorKind::Crash);
    check_program("claude", 143, "", "", ErrorKind::Crash);
    check_program("command", 137, "", "", ErrorKind::Crash);
    check_program("command", 124, "", "", ErrorKind::Timeout);
}

#[test]
fn a_program_that_cannot_be_run_is_not_installed() {
    check_program("command", 127, "", "sh: 1: ask: not found", ErrorKind::NotInstalled);
    check_program("shell", 126, "", "bash: ./ask: Permission denied", ErrorKind::NotInstalled);
    check_program("shell", 126, "", "bash: /bin/ask: Argument list too long", ErrorKind::TooLarge);
    check("ask: command not found", ErrorKind::NotInstalled);
    check("failed to run `ask`: No such file or directory (os error 2)", ErrorKind::NotInstalled);
    check("Permission denied (os error 13)", ErrorKind::NotInstalled);
    check("Argument list too long (os error 7)", ErrorKind::TooLarge);
}

#[test]
fn the_exit_codes_of_gemini_are_statuses() {
    check_program("gemini", 145, "", "", ErrorKind::Auth);
    check_program("gemini-cli", 247, "", "", ErrorKind::Overloaded);
    check_program(
        "gemini",
        144,
        "",
        "the input token count is above the limit",
        ErrorKind::TooLarge,
    );
    check_program("gemini", 41, "", "", ErrorKind::Auth);
}

#[test]
fn silence_is_empty_only_where_all_seemed_well() {
    check_program("claude", 0, " \n", "", ErrorKind::Empty);
    check_program("claude", 1, "", "", ErrorKind::Unknown);
    check_http(200, "", ErrorKind::Empty);
    check("", ErrorKind::Unknown);
}

#[test]
fn what_nobody_knows_is_worth_another_try() {
    check("the moon was in the wrong house", ErrorKind::Unknown);
}

#[test]
fn rules_of_a_user_come_first() {
    let extra = "[[rules]]\nkind = \"overloaded\"\nany = [\"invalid api key\"]\n\n[[rules]]\nkind = \"server\"\npermanent = true\nexit = [7]\n";
    let rules =
        ErrorRules::compile(Some(extra), &mut Vec::new()).expect("the rules of this test compile");
    let verdict = rules.classify(&ErrorInput { text: "Invalid API key", ..ErrorInput::default() });
    assert_eq!((verdict.kind, verdict.permanent), (ErrorKind::Overloaded, false));
    let verdict = rules.classify(&ErrorInput {
        exit_code: Some(7),
        signal: Some("SIGTERM"),
        ..ErrorInput::default()
    });
    assert_eq!((verdict.kind, verdict.permanent), (ErrorKind::Server, true));
    let verdict = rules.classify(&ErrorInput { text: "unauthorized", ..ErrorInput::default() });
    assert_eq!(verdict.kind, ErrorKind::Auth);
}

#[test]
fn rules_of_a_user_that_make_no_sense_are_reported() {
    for bad in [
        "[[rules]]\nkind = \"lunar\"\nany = [\"x\"]",
        "[[rules]]\nkind = \"auth\"\nany = [\"*\"]",
        "rules = 3",
    ] {
        let mut problems = Vec::new();
        assert!(ErrorRules::compile(Some(bad), &mut problems).is_none());
        assert_eq!(problems.len(), 1, "{bad}");
        assert_eq!(problems[0].code, "bad-error-rules");
    }
}

#[test]
fn the_evidence_says_what_decided() {
    let evidence = |input: &ErrorInput<'_>| rules().classify(input).evidence;
    let text = "so the API key not valid thing again";
    insta::assert_snapshot!(evidence(&ErrorInput { text, ..ErrorInput::default() }), @r#""api key not valid""#);
    insta::assert_snapshot!(evidence(&ErrorInput { status: Some(503), ..ErrorInput::default() }), @"status 503");
    insta::assert_snapshot!(evidence(&ErrorInput { text: "http 503", ..ErrorInput::default() }), @"status in the text 503");
    insta::assert_snapshot!(evidence(&ErrorInput { exit_code: Some(127), ..ErrorInput::default() }), @"exit code 127");
    insta::assert_snapshot!(evidence(&ErrorInput { signal: Some("SIGHUP"), ..ErrorInput::default() }), @"signal SIGHUP");
}

#[test]
fn hostile_texts_take_no_longer_than_long_ones() {
    for piece in [
        "429 ",
        "error: ",
        "{",
        "[",
        "status ",
        "model ",
        "try again in ",
        "{\"error\":",
        "--a",
        "\u{1b}[",
    ] {
        let text = piece.repeat((1 << 20) / piece.len());
        let input =
            ErrorInput { text: &text, stdout: &text, stderr: &text, ..ErrorInput::default() };
        rules().classify(&input);
    }
}

proptest! {
    #[test]
    fn any_text_has_one_verdict(
        text in "\\PC{0,200}",
        words in proptest::collection::vec("(error|429|model|not found|--timeout|\\{\"error\":|\\}|try again in|5s|rate limit|\n)", 0..30),
        status in proptest::option::of(100..600_u16),
        exit_code in proptest::option::of(-1..256_i32),
    ) {
        let words = words.join(" ");
        let input = ErrorInput { status, exit_code, text: &text, stdout: &words, stderr: &text, ..ErrorInput::default() };
        let verdict = rules().classify(&input);
        prop_assert_eq!(&verdict, &rules().classify(&input));
        let input = ErrorInput { text: &words, stdout: &text, backend: Some("codex"), ..input };
        prop_assert_eq!(rules().classify(&input), rules().classify(&input));
    }
}

#[test]
fn habits_in_a_file_of_rules_are_refused_rather_than_ignored() {
    let mut problems = Vec::new();
    let text = "[habits]\nbanner = \"x\"\n[[rules]]\nkind = \"auth\"\nexit = [7]\n";
    assert!(ErrorRules::compile(Some(text), &mut problems).is_none());
    assert!(problems[0].message.contains("habits"), "{}", problems[0].message);
}
