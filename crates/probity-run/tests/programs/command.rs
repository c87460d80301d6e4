//! The kind `command`: any program.

use std::time::Duration;

use probity_core::{failure::ErrorKind, record::CallError, request::Request};
use probity_load::suite::{BackendConfig, BackendKind, Output, Transport};

use crate::lab::{LONG, Lab, command_config, question};

fn kind(error: &CallError) -> (ErrorKind, bool) {
    (error.kind, error.permanent)
}

async fn ask(lab: &Lab, config: &BackendConfig, prompt: &str) -> Result<String, CallError> {
    lab.program(config).ask(&question(prompt), LONG).await.map(|reply| reply.text)
}

#[tokio::test]
async fn the_prompt_takes_each_way() {
    let lab = Lab::new();
    let script = "echo \"args:$#:$*\"; printf 'stdin:'; cat; printf ':'; \
                  if [ -f /dev/stdin ]; then echo file; else echo other; fi";
    lab.script("show", script);
    let mut config = command_config(&["show", "-x"]);
    let reply = async |config: &BackendConfig| ask(&lab, config, "$(hi) 'there'").await.unwrap();
    assert_eq!(reply(&config).await, "args:1:-x\nstdin:$(hi) 'there':other");
    config.transport = Some(Transport::FileStdin);
    assert_eq!(reply(&config).await, "args:1:-x\nstdin:$(hi) 'there':file");
    config.transport = Some(Transport::Arg);
    assert_eq!(reply(&config).await, "args:2:-x $(hi) 'there'\nstdin::other");
    let placed = command_config(&["show", "<{{prompt}}>"]);
    assert_eq!(reply(&placed).await, "args:1:<$(hi) 'there'>\nstdin::other");
}

#[tokio::test]
async fn a_prompt_can_be_in_a_file() {
    let lab = Lab::new();
    lab.script("read", "cat \"$1\"; echo; ls; echo \"$1\"");
    let reply = lab.ask(&["read", "{{prompt_file}}"], "from a file").await.unwrap();
    let (said, path) = reply.text.split_once('\n').unwrap();
    assert_eq!(said, "from a file");
    assert!(path.starts_with('/') && !std::path::Path::new(path).exists(), "{path}");
}

#[tokio::test]
async fn instructions_go_where_there_is_a_place_or_before_the_prompt() {
    let lab = Lab::new();
    lab.script("show", "echo \"$*\"; cat");
    let request = Request::new(Some("be brief".into()), "hi");
    let placed = lab.program(&command_config(&["show", "{{system}}"])).ask(&request, LONG).await;
    assert_eq!(placed.unwrap().text, "be brief\nhi");
    let joined = lab.program(&command_config(&["show"])).ask(&request, LONG).await;
    assert_eq!(joined.unwrap().text, "\nbe brief\n\nhi");
}

#[tokio::test]
async fn the_longest_argument_is_taken_and_a_longer_one_refused_with_both_numbers() {
    let lab = Lab::new();
    lab.script("count", "printf %s \"$1\" | wc -c");
    let mut config = command_config(&["count"]);
    config.transport = Some(Transport::Arg);
    let longest = ask(&lab, &config, &"x".repeat(131_071)).await.unwrap();
    assert_eq!(longest.trim(), "131071");
    let error = ask(&lab, &config, &"x".repeat(131_072)).await.unwrap_err();
    assert_eq!(kind(&error), (ErrorKind::TooLarge, true));
    assert!(error.message.contains("131072 bytes") && error.message.contains("131071 bytes"));
    assert!(error.message.ends_with("use the transport `stdin`"), "{error}");
    let zero = ask(&lab, &config, "a\0b").await.unwrap_err();
    assert_eq!(kind(&zero), (ErrorKind::BadRequest, true));
}

#[tokio::test]
async fn too_many_arguments_are_told_as_that() {
    let lab = Lab::new();
    let long = "x".repeat(131_000);
    let command: Vec<&str> = ["echo"].into_iter().chain([long.as_str(); 100]).collect();
    let error = lab.ask(&command, "hi").await.unwrap_err();
    assert_eq!(kind(&error), (ErrorKind::TooLarge, true));
}

#[tokio::test]
async fn what_cannot_be_started_is_told_apart() {
    let lab = Lab::new();
    lab.file("plain", "echo hi\n", 0o644);
    lab.file("no-shell", "#!/no/such/shell -x\n", 0o755);
    lab.file("windows", "#!/bin/sh\r\necho hi\r\n", 0o755);
    lab.file("binary", "\x7fELFnothing", 0o755);
    std::fs::create_dir(lab.path("dir")).unwrap();
    let dir = lab.path("dir").display().to_string();
    let cases = [
        (
            "nowhere-to-be-found",
            "the program `nowhere-to-be-found` is not installed: looked for in",
        ),
        ("/no/such/program", "there is no program `/no/such/program`"),
        ("./gone", "there is no program `"),
        ("plain", "is not executable"),
        ("no-shell", "needs the interpreter `/no/such/shell`, which is not there"),
        ("windows", "(its first line ends with a carriage return)"),
        ("binary", "is no program that this system can run"),
        (dir.as_str(), "is a directory, not a program"),
    ];
    for (program, expected) in cases {
        let error = lab.ask(&[program], "hi").await.unwrap_err();
        assert_eq!(kind(&error), (ErrorKind::NotInstalled, true), "{program}: {error}");
        assert!(error.message.contains(expected), "{program}: {error}");
    }
}

#[tokio::test]
async fn a_relative_path_begins_at_the_suite() {
    let lab = Lab::new();
    lab.script("mine", "echo \"$1\"");
    let reply = lab.ask(&["./mine", "{{suite_dir}}/x"], "hi").await.unwrap();
    assert_eq!(reply.text, lab.path("x").display().to_string());
}

#[tokio::test]
async fn exit_codes_signals_and_words_are_weighed() {
    let lab = Lab::new();
    let cases = [
        ("exit 127", ErrorKind::NotInstalled, true, "exit code 127: it said nothing"),
        ("kill -KILL $$", ErrorKind::Crash, false, "ended by SIGKILL: it said nothing"),
        (
            "echo 'HTTP 401 Unauthorized' >&2; exit 1",
            ErrorKind::Auth,
            true,
            "HTTP 401 Unauthorized",
        ),
        ("echo 'HTTP 429: slow down'; exit 1", ErrorKind::RateLimit, false, "HTTP 429: slow down"),
        ("exit 5", ErrorKind::Unknown, false, "exit code 5: it said nothing"),
        ("exit 0", ErrorKind::Empty, false, "exit code 0: it printed nothing"),
        ("echo; echo warning >&2", ErrorKind::Empty, false, "exit code 0: it printed nothing"),
    ];
    for (script, expected, permanent, message) in cases {
        lab.script("fail", script);
        let error = lab.ask(&["fail"], "hi").await.unwrap_err();
        assert_eq!(kind(&error), (expected, permanent), "{script}: {error}");
        assert!(error.message.contains(message), "{script}: {error}");
    }
}

#[tokio::test]
async fn a_time_to_wait_is_heard() {
    let lab = Lab::new();
    lab.script("busy", "echo 'HTTP 429: rate limit exceeded, retry after 7 seconds' >&2; exit 1");
    let error = lab.ask(&["busy"], "hi").await.unwrap_err();
    assert_eq!((error.kind, error.retry_after), (ErrorKind::RateLimit, Some(7.0)));
}

#[tokio::test]
async fn an_answer_that_speaks_of_errors_is_an_answer() {
    let lab = Lab::new();
    lab.script("say", "echo '{\"error\": \"HTTP 401\"}'");
    assert_eq!(lab.ask(&["say"], "hi").await.unwrap().text, "{\"error\": \"HTTP 401\"}");
}

#[tokio::test]
async fn json_is_read_at_its_place() {
    let lab = Lab::new();
    let json = async |body: &str, output: Output| {
        lab.script("say", &format!("cat <<'END'\n{body}\nEND"));
        let config = BackendConfig { output: Some(output), ..command_config(&["say"]) };
        lab.program(&config).ask(&question("hi"), LONG).await
    };
    let at = |pointer: &str| Output::Json(pointer.to_owned());
    let body =
        r#"{"answer":[{"text":"42"}],"usage":{"input_tokens":3,"output_tokens":1},"model":"m"}"#;
    let reply = json(body, at("/answer/0/text")).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.model.as_deref()), ("42", Some("m")));
    assert_eq!(reply.usage.total(), 4);
    let object = json(r#"{"answer":{"b":1,"a":2.50}}"#, at("/answer")).await.unwrap();
    assert_eq!(object.text, r#"{"b":1,"a":2.50}"#);
    let missing = json(r#"{"answer":null}"#, at("/answer")).await.unwrap_err();
    assert!(missing.message.contains("nothing at the pointer"), "{missing}");
    let error = json(r#"{"error":{"type":"rate_limit_error","message":"slow"}}"#, at("/answer"));
    assert_eq!(error.await.unwrap_err().kind, ErrorKind::RateLimit);
    let flagged = json(r#"{"is_error":true,"answer":"HTTP 401: bad key"}"#, at("/answer"));
    assert!(flagged.await.is_err());
    let text = json("just words", at("/answer")).await.unwrap_err();
    assert!(text.message.contains("the output is not JSON; it begins `just words`"), "{text}");
    let lines = |pointer: &str| Output::Jsonl(pointer.to_owned());
    let body = "starting\n{\"text\":\"a\"}\n{\"text\":\"b\"}\n{\"done\":true}";
    assert_eq!(json(body, lines("/text")).await.unwrap().text, "b");
    assert!(json("{\"done\":true}", lines("/text")).await.is_err());
    assert_eq!(json("{\"text\":\"\"}", lines("/text")).await.unwrap_err().kind, ErrorKind::Empty);
}

#[tokio::test]
async fn only_chosen_variables_are_seen_and_the_place_is_neutral() {
    let mut lab = Lab::new();
    for (name, value) in [("SECRET_PLAN", "x"), ("LC_ALL", "C"), ("TERM", "xterm"), ("MINE", "1")] {
        lab.env.insert(name.into(), value.into());
    }
    lab.script("look", "env | sed 's/=.*//' | sort | tr '\\n' ' '; echo; ls -A | wc -l; pwd");
    let mut config = command_config(&["look"]);
    config.env = vec!["MINE".to_owned()];
    let text = ask(&lab, &config, "hi").await.unwrap();
    let lines: Vec<&str> = text.lines().collect();
    // The shell adds the last two itself.
    let seen: Vec<&str> = lines[0]
        .split(' ')
        .filter(|it| !["_", "PWD", "SHLVL", "OLDPWD", ""].contains(it))
        .collect();
    assert_eq!(seen, ["HOME", "LC_ALL", "MINE", "NO_COLOR", "PATH", "PROBITY_MARK", "TERM"]);
    assert_eq!(lines[1].trim(), "0");
    assert!(!std::path::Path::new(lines[2]).exists());
}

#[tokio::test]
async fn keys_do_not_come_back() {
    let mut lab = Lab::new();
    lab.env.insert("MY_TOKEN".into(), "tooth-and-nail".into());
    lab.script("leak", "echo \"key $MY_TOKEN\"; echo \"bad key $MY_TOKEN\" >&2; exit $(cat)");
    let mut config = command_config(&["leak"]);
    config.env = vec!["MY_TOKEN".to_owned()];
    assert_eq!(ask(&lab, &config, "0").await.unwrap(), "key [redacted]");
    let error = ask(&lab, &config, "1").await.unwrap_err();
    assert!(error.message.contains("bad key [redacted]"), "{error}");
}

#[tokio::test]
async fn a_slow_program_is_a_timeout_whatever_it_exits_with() {
    let lab = Lab::new();
    lab.script(
        "slow",
        "trap 'exit 0' TERM; echo half; echo waiting for a sign >&2; sleep 1000 & wait",
    );
    let program = lab.program(&command_config(&["slow"]));
    let error = program.ask(&question("hi"), Duration::from_secs(2)).await.unwrap_err();
    assert_eq!(kind(&error), (ErrorKind::Timeout, false));
    let expected = "no complete answer within 2 s; the program last said `waiting for a sign`";
    assert_eq!(error.message, expected);
}

#[tokio::test]
async fn an_endless_answer_is_an_error() {
    let lab = Lab::new();
    let error = lab.ask(&["yes"], "hi").await.unwrap_err();
    assert_eq!(error.message, "the program wrote more than 8 MiB and was ended");
}

#[tokio::test]
async fn settings_that_a_program_cannot_take_are_named() {
    let lab = Lab::new();
    let mut config = command_config(&["cat"]);
    config.sampling.temperature = Some(0.0);
    config.sampling.seed = Some(1);
    config.sampling.stop = vec!["x".to_owned()];
    config.model = Some("m".to_owned());
    assert_eq!(lab.program(&config).not_applied(), ["temperature", "seed", "stop", "model"]);
    config.command.push("{{model}}".to_owned());
    assert_eq!(lab.program(&config).not_applied(), ["temperature", "seed", "stop"]);
    let mut claude = BackendConfig::new("c", BackendKind::Claude);
    claude.sampling.max_tokens = Some(5);
    claude.model = Some("m".to_owned());
    assert_eq!(lab.program(&claude).not_applied(), ["max_tokens"]);
}
