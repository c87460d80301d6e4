//! Runs of the real program against the fake server.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use probity_testkit::{
    Answer, FakeServer, Fault, Latency, RetryAfter, Rule, Script, Trouble, When,
};
use serde_json::Value;

use crate::project::Project;

/// `count` cases whose answer is the last word of the prompt, as the fake server gives it.
pub(crate) fn dataset(count: usize) -> String {
    let mut text = String::new();
    for at in 0..count {
        let _ = writeln!(
            text,
            r#"{{"id":"case-{at}","prompt":"Return the number {at}","expected_response":"{at}"}}"#
        );
    }
    text
}

/// A suite with one runner on backends of the OpenAI dialect.
pub(crate) fn suite(backends: &[(&str, &FakeServer)], more: &str) -> String {
    let mut text = String::from("version = \"1\"\n");
    for (name, server) in backends {
        let _ = writeln!(
            text,
            "[backends.{name}]\nkind = \"openai\"\nbase_url = \"{}/v1\"\nmodel = \"fake-small\"",
            server.url()
        );
    }
    text.push_str("[[runners]]\nname = \"numbers\"\ndataset = \"cases.jsonl\"\n");
    // Waits between tries are not what these tests are about.
    let _ = writeln!(text, "[retry]\nbackoff_base = 0.01\n{more}");
    text
}

pub(crate) fn project(cases: usize, backends: &[(&str, &FakeServer)], more: &str) -> Project {
    Project::new().file("cases.jsonl", dataset(cases)).file("probity.toml", suite(backends, more))
}

/// What a run printed for scripts, and its exit code.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) keys: BTreeMap<String, String>,
    pub(crate) err: String,
}

impl Ran {
    pub(crate) fn of(output: &std::process::Output) -> Self {
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        let pairs = out.lines().filter_map(|line| line.split_once('='));
        Self {
            code: output.status.code(),
            keys: pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    #[track_caller]
    pub(crate) fn expect(&self, code: i32, keys: &[(&str, &str)]) {
        assert_eq!(self.code, Some(code), "{}", self.err);
        for (key, value) in keys {
            assert_eq!(
                self.keys.get(*key).map(String::as_str),
                Some(*value),
                "{key}\n{}",
                self.err
            );
        }
    }
}

pub(crate) fn run(project: &Project, words: &[&str]) -> Ran {
    let words: Vec<&str> = ["run", "--porcelain"].iter().chain(words).copied().collect();
    Ran::of(&project.run(&words))
}

/// Every stored case of the latest run.
pub(crate) fn stored(project: &Project) -> Vec<Value> {
    let output = project.run(&["show", "latest", "--json"]);
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The stored case of an id.
pub(crate) fn of(stored: &[Value], id: &str) -> Value {
    stored.iter().find(|it| it["case_id"] == id).unwrap().clone()
}

/// The id and the verdict of each case.
pub(crate) fn verdicts(cases: &[Value]) -> Vec<(String, String)> {
    let text = |it: &Value| it.as_str().unwrap().to_owned();
    cases.iter().map(|it| (text(&it["case_id"]), text(&it["verdict"]))).collect()
}

/// What a server was sent last, the oldest first.
pub(crate) fn bodies(server: &FakeServer) -> Vec<Value> {
    server.seen().last.iter().map(|it| serde_json::from_slice(&it.body).expect("JSON")).collect()
}

fn fault(trouble: Trouble) -> FakeServer {
    FakeServer::start(Script::always(Answer::fault(trouble)))
}

#[test]
fn every_case_is_asked_once_and_judged() {
    let server = FakeServer::start(Script::default());
    let project = project(100, &[("fake", &server)], "");
    let ran = run(&project, &[]);
    ran.expect(
        0,
        &[("TOTAL_CALLS", "100"), ("N_CASES", "100"), ("N_PLANNED", "100"), ("ABORTED", "0")],
    );
    let seen = server.seen();
    assert_eq!((seen.asked, seen.prompts.len()), (100, 100));
    let cases = stored(&project);
    assert_eq!(cases.len(), 100);
    assert!(cases.iter().all(|case| case["verdict"] == "pass"));
}

#[test]
fn what_is_sent_is_what_the_suite_says() {
    let server = FakeServer::start(Script::default());
    let suite = format!(
        r#"
        [backends.fake]
        kind = "openai"
        base_url = "{}/v1"
        model = "fake-large"
        api_key_env = "SOME_KEY"
        temperature = 0
        top_p = 0.5
        max_tokens = 64
        seed = 7
        stop = ["END"]
        response_format = "json"
        extra_body = {{ cache_prompt = false }}
        [[runners]]
        name = "one"
        dataset = "cases.toml"
        system = "Be brief."
        prompt = "Case {{{{ id }}}}: {{{{ prompt }}}}"
        "#,
        server.url()
    );
    let cases = "version = \"1.0.0\"\n[[test_cases]]\nid = \"a\"\nprompt = \"Say {{ what }}\"\nprompt_vars = { what = \"hi\" }\nexpected_classification = \"pass\"\n";
    let project = Project::new().file("cases.toml", cases).file("s.toml", suite);
    let output =
        project.command(&["run", "s.toml", "-q"]).env("SOME_KEY", "key-of-mine").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let seen = server.seen();
    let request = seen.last.front().unwrap();
    assert_eq!(request.header("authorization"), Some("Bearer key-of-mine"));
    let body = serde_json::to_string_pretty(&request.json()).unwrap();
    insta::assert_snapshot!(body, @r#"
    {
      "model": "fake-large",
      "temperature": 0.0,
      "top_p": 0.5,
      "max_tokens": 64,
      "seed": 7,
      "stop": [
        "END"
      ],
      "response_format": {
        "type": "json_object"
      },
      "cache_prompt": false,
      "messages": [
        {
          "role": "system",
          "content": "Be brief."
        },
        {
          "role": "user",
          "content": "Case a: Say hi"
        }
      ]
    }
    "#);
}

#[test]
fn the_other_dialects_are_spoken_too() {
    let server = FakeServer::start(Script::default());
    for kind in ["anthropic", "ollama"] {
        let suite = format!(
            "[backends.b]\nkind = \"{kind}\"\nbase_url = \"{}\"\nmodel = \"m\"\n\
             [[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\nsystem = \"Be brief.\"\n",
            server.url()
        );
        let project = Project::new().file("cases.jsonl", dataset(5)).file("probity.toml", suite);
        run(&project, &[]).expect(0, &[("N_CASES", "5"), ("TOTAL_CALLS", "5")]);
        let case = stored(&project).remove(0);
        assert_eq!(case["verdict"], "pass", "{case}");
        assert!(case["usage"]["input_tokens"].as_u64() > Some(0), "{case}");
    }
    let seen = server.seen();
    assert_eq!((seen.paths["/v1/messages"], seen.paths["/api/chat"]), (5, 5));
}

#[test]
fn a_bad_key_stops_its_backend_and_no_other() {
    let (bad, good) = (fault(Trouble::BadKey), FakeServer::start(Script::default()));
    let project = project(100, &[("bad", &bad), ("good", &good)], "");
    let ran = run(&project, &[]);
    let keys =
        [("ABORTED", "1"), ("FAIL_FAST", "1"), ("FAIL_FAST_PERMANENT", "1"), ("N_CASES", "103")];
    ran.expect(3, &keys);
    assert!(ran.keys["FAIL_FAST_REASON"].starts_with("auth: http <n>"), "{:?}", ran.keys);
    assert_eq!((bad.seen().asked, good.seen().asked), (3, 100));
    let passed = stored(&project).iter().filter(|case| case["verdict"] == "pass").count();
    assert_eq!(passed, 100);
}

/// What each fault costs: calls, cases that ended, whether it is permanent.
#[test]
fn every_fault_stops_a_run_after_the_calls_it_takes_to_know() {
    let faults = [
        (Trouble::BadKey, 3, true),
        (Trouble::Forbidden, 3, true),
        (Trouble::NoSuchModel, 3, true),
        (Trouble::BadRequest, 3, true),
        (Trouble::TooLarge, 3, true),
        (Trouble::ContextLength, 3, true),
        (Trouble::Quota, 3, true),
        (Trouble::RateLimit, 12, false),
        (Trouble::Overloaded, 12, false),
        (Trouble::Internal, 12, false),
        (Trouble::BadGateway, 12, false),
        (Trouble::Loading, 12, false),
        (Trouble::Unavailable, 12, false),
        (Trouble::GatewayTimeout, 12, false),
    ];
    for (trouble, calls, permanent) in faults {
        let server = fault(trouble);
        let project = project(50, &[("fake", &server)], "");
        let ran = run(&project, &[]);
        let name = trouble.name();
        assert_eq!(ran.code, Some(3), "{name}: {}", ran.err);
        assert_eq!(server.seen().asked, calls, "{name}: {}", ran.err);
        let flag = if permanent { "1" } else { "0" };
        ran.expect(3, &[("FAIL_FAST", "1"), ("FAIL_FAST_PERMANENT", flag), ("N_CASES", "3")]);
    }
}

#[test]
fn broken_connections_and_bodies_are_errors_that_may_pass() {
    let answers = [
        Answer::Garbage,
        Answer::EmptyBody,
        Answer::EmptyText,
        Answer::Reset,
        Answer::Close,
        Answer::Truncated,
    ];
    for answer in answers {
        let name = answer.name();
        let server = FakeServer::start(Script::always(answer));
        let project = project(50, &[("fake", &server)], "");
        let ran = run(&project, &[]);
        ran.expect(3, &[("FAIL_FAST", "1"), ("FAIL_FAST_PERMANENT", "0"), ("N_CASES", "3")]);
        assert_eq!(server.seen().asked, 12, "{name}: {}", ran.err);
    }
}

#[test]
fn a_server_that_never_answers_is_a_timeout() {
    for answer in [Answer::Hang, Answer::HangAfterHeaders] {
        let server = FakeServer::start(Script::always(answer));
        let project = project(50, &[("fake", &server)], "[timeouts]\nattempt = \"100ms\"\n");
        let ran = run(&project, &[]);
        ran.expect(3, &[("FAIL_FAST", "1"), ("N_CASES", "3")]);
        let cases = stored(&project);
        assert!(cases.iter().all(|case| case["classification"]["primary"] == "timeout"));
    }
}

#[test]
fn nobody_listens() {
    let server = FakeServer::start(Script::default());
    let project = project(50, &[("gone", &server)], "");
    drop(server);
    let ran = run(&project, &[]);
    ran.expect(3, &[("FAIL_FAST", "1"), ("N_CASES", "3"), ("TOTAL_CALLS", "3")]);
    assert!(ran.keys["FAIL_FAST_REASON"].contains("nothing listens"), "{:?}", ran.keys);
}

#[test]
fn errors_that_pass_are_tried_again_and_kept() {
    let rule =
        Rule::new(When::prompt_contains("number 7"), Answer::fault(Trouble::Internal)).times(2);
    let server = FakeServer::start(Script::default().rule(rule));
    let project = project(10, &[("fake", &server)], "");
    run(&project, &[]).expect(0, &[("TOTAL_CALLS", "12"), ("N_CASES", "10")]);
    let case = stored(&project).into_iter().find(|case| case["case_id"] == "case-7").unwrap();
    assert_eq!((&case["verdict"], &case["calls"]), (&Value::from("pass"), &Value::from(3)));
    assert_eq!(case["failures"].as_array().unwrap().len(), 2);
    let shown = project.shown(&["show", "latest", "case-7"]);
    assert!(shown.contains("tried again after"), "{shown}");
}

#[test]
fn the_service_says_when_to_come_back() {
    let waits = [RetryAfter::Seconds(1), RetryAfter::Millis(700), RetryAfter::Date(2)];
    for wait in waits {
        let fault = Answer::Fault(Fault::new(Trouble::RateLimit).retry(wait));
        let server =
            FakeServer::start(Script::default().rule(Rule::new(When::Any, fault).times(1)));
        let project = project(3, &[("fake", &server)], "");
        let begun = std::time::Instant::now();
        run(&project, &[]).expect(0, &[("TOTAL_CALLS", "4")]);
        assert!(begun.elapsed() >= Duration::from_millis(600), "{wait:?}");
        let cases = stored(&project);
        let waited: Vec<u64> =
            cases.iter().filter_map(|case| case["failures"][0]["retry_in_ms"].as_u64()).collect();
        assert!(waited[0] >= 600, "{wait:?}: {waited:?}");
    }
}

#[test]
fn a_server_that_takes_few_at_a_time_is_not_overrun() {
    let limits = probity_testkit::Limits {
        max_concurrent: Some(4),
        retry: vec![RetryAfter::Millis(20)],
        ..Default::default()
    };
    let latency = Latency::fixed(Duration::from_millis(5));
    let server = FakeServer::start(Script { limits, latency, ..Script::default() });
    let project = project(300, &[("fake", &server)], "[fail_fast]\nenabled = false\n");
    let ran = run(&project, &["--max-retries", "20"]);
    ran.expect(0, &[("N_CASES", "300")]);
    let refused = server.seen().asked - 300;
    assert!(refused < 150, "{refused} calls were refused");
}

#[test]
fn a_content_filter_is_a_refusal_and_no_outage() {
    let rule = Rule::new(When::Requests(1..4), Answer::fault(Trouble::ContentPolicy));
    let server = FakeServer::start(Script::default().rule(rule));
    let project = project(20, &[("fake", &server)], "[fail_fast]\nenabled = false\n");
    run(&project, &[]).expect(0, &[("N_CASES", "20")]);
    let refused = stored(&project)
        .iter()
        .filter(|case| case["classification"]["primary"] == "refusal")
        .count();
    assert_eq!(refused, 3);
}

#[test]
fn budgets_stop_a_run_and_are_no_failure_of_a_case() {
    let server = FakeServer::start(Script::default());
    let project = project(100, &[("fake", &server)], "");
    run(&project, &["--max-calls", "10"]).expect(
        3,
        &[("TOTAL_CALLS", "10"), ("N_CASES", "10"), ("FAIL_FAST", "0"), ("ABORTED", "1")],
    );
    assert_eq!(server.seen().asked, 10);
    run(&project, &["--max-calls", "100"]).expect(0, &[("TOTAL_CALLS", "100")]);
}

#[test]
fn a_dry_run_asks_nothing() {
    let server = FakeServer::start(Script::default());
    let project = project(10, &[("fake", &server)], "");
    let ran = run(&project, &["--dry-run"]);
    ran.expect(0, &[("TOTAL_CALLS", "0"), ("N_PLANNED", "10"), ("N_CASES", "0"), ("ABORTED", "0")]);
    assert_eq!(server.seen().requests, 0);
    assert!(!project.path(".probity").exists());
    insta::assert_snapshot!(project.shown(&["run", "--dry-run", "--limit", "3", "--repeat", "2"]), @r"
    exit 0
    --- out
    dry run: nothing is asked
    numbers on fake (openai, fake-small)
      3 of 10 cases, 2 times each: 6 calls, at most 24 with retries
      about 28 tokens in, up to 1536 out: no price is known
    6 calls, no price is known
    ");
}

#[test]
fn cases_are_chosen_as_people_know_it() {
    let server = FakeServer::start(Script::default());
    let project = project(100, &[("fake", &server)], "");
    let count = |words: &[&str]| run(&project, words).keys["N_CASES"].clone();
    assert_eq!(count(&["--limit", "7"]), "7");
    assert_eq!(count(&["--case", "case-1,case-9*"]), "12");
    assert_eq!(count(&["--filter", "number 5$"]), "1");
    assert_eq!(count(&["--sample", "13"]), "13");
    assert_eq!(count(&["--repeat", "2", "--limit", "3"]), "6");
    let shards: usize = ["1/3", "2/3", "3/3"]
        .iter()
        .map(|it| count(&["--shard", it]).parse::<usize>().unwrap())
        .sum();
    assert_eq!(shards, 100);
    let ran = run(&project, &["--filter", "nothing like it"]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
}

#[test]
fn failing_cases_can_be_run_again() {
    let rule = Rule::new(When::prompt_contains("number 1"), Answer::text("no idea"));
    let server = FakeServer::start(Script::default().rule(rule));
    let project = project(20, &[("fake", &server)], "");
    run(&project, &[]).expect(0, &[]);
    run(&project, &["--failing", "latest"]).expect(0, &[("N_CASES", "11")]);
}

#[test]
fn nothing_of_a_key_is_kept_or_shown() {
    let key = "very-secret-key-of-mine-12345";
    let echoed = Answer::Fault(Fault::new(Trouble::BadKey).echo_key());
    let server = FakeServer::start(Script::always(echoed));
    let suite = format!(
        "[backends.b]\nkind = \"openai\"\nbase_url = \"{}/v1\"\nmodel = \"m\"\napi_key_env = \"MY_KEY\"\n\
         [[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\n",
        server.url()
    );
    let project = Project::new().file("cases.jsonl", dataset(9)).file("probity.toml", suite);
    let words = ["run", "--porcelain", "--events", "events.jsonl", "--record", "recording.jsonl"];
    let output = project.command(&words).env("MY_KEY", key).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(server.seen().keys.get(key), Some(&3));
    let mut everything = output.stdout.clone();
    everything.extend(&output.stderr);
    for name in
        ["events.jsonl", "recording.jsonl", ".probity/probity.db", ".probity/probity.db-wal"]
    {
        everything.extend(std::fs::read(project.path(name)).unwrap_or_default());
    }
    everything.extend(project.run(&["show", "latest", "case-0"]).stdout);
    everything.extend(project.run(&["show", "latest", "--json"]).stdout);
    assert!(everything.len() > 5_000);
    let found = everything.windows(key.len()).any(|window| window == key.as_bytes());
    assert!(!found, "the key is somewhere");
}

#[test]
fn answers_of_earlier_runs_are_used_when_asked_for() {
    let rule =
        Rule::new(When::prompt_contains("number 3"), Answer::fault(Trouble::Internal)).times(4);
    let server = FakeServer::start(Script::default().rule(rule));
    let project = project(10, &[("fake", &server)], "");
    // The error is not kept, so the second run asks that case again.
    run(&project, &["--cache"]).expect(0, &[("TOTAL_CALLS", "13")]);
    run(&project, &["--cache"]).expect(0, &[("TOTAL_CALLS", "1"), ("N_CASES", "10")]);
    run(&project, &["--cache"]).expect(0, &[("TOTAL_CALLS", "0"), ("N_CASES", "10")]);
    run(&project, &["--no-cache"]).expect(0, &[("TOTAL_CALLS", "10")]);
    let shown = project.shown(&["cache", "stats"]);
    assert!(shown.contains("10 answers"), "{shown}");
    project.run(&["cache", "clear"]);
    run(&project, &["--cache"]).expect(0, &[("TOTAL_CALLS", "10")]);
}

#[test]
fn a_recorded_run_is_replayed_without_a_backend_and_says_so() {
    let server = FakeServer::start(Script::default());
    let project = project(10, &[("fake", &server)], "");
    run(&project, &["--record", "answers.jsonl"]).expect(0, &[]);
    drop(server);
    run(&project, &["--replay", "answers.jsonl"])
        .expect(0, &[("N_CASES", "10"), ("TOTAL_CALLS", "0")]);
    let shown = project.shown(&["show"]);
    assert!(shown.contains("replayed from a recording"), "{shown}");
    assert!(stored(&project).iter().all(|case| case["source"] == "replay"));
}

#[test]
fn the_porcelain_keys_are_there_on_every_path() {
    let project = Project::new()
        .file("cases.jsonl", dataset(1))
        .file("broken.toml", "version = [")
        .file(
            "bad-data.toml",
            "[backends.e]\nkind = \"echo\"\n[[runners]]\nname = \"r\"\ndataset = \"none.jsonl\"\n",
        )
        .file(
            "ok.toml",
            "[backends.e]\nkind = \"echo\"\n[[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\n",
        );
    let paths: [(&[&str], i32); 6] = [
        (&["missing.toml"], 2),
        (&["broken.toml"], 2),
        (&["bad-data.toml"], 2),
        (&["ok.toml", "--no-such-flag"], 2),
        (&["ok.toml", "--store", "/proc/nowhere/x.db"], 2),
        (&["ok.toml"], 0),
    ];
    for (words, code) in paths {
        let ran = run(&project, words);
        let aborted = if code == 0 { "0" } else { "1" };
        ran.expect(code, &[("ABORTED", aborted), ("FAIL_FAST", "0")]);
        assert_eq!(ran.keys.len(), 9, "{words:?}: {:?}", ran.keys);
    }
}

#[test]
fn the_stream_of_events_begins_and_ends_as_it_should() {
    let server = FakeServer::start(Script::default());
    let project = project(5, &[("fake", &server)], "");
    run(&project, &["--events", "events.jsonl"]).expect(0, &[]);
    let events: Vec<Value> = project
        .read("events.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let names: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!((names[0], names[names.len() - 1]), ("run-started", "run-finished"));
    let count = |name: &str| names.iter().filter(|it| **it == name).count();
    assert_eq!((count("case-started"), count("case-finished"), count("lane-finished")), (5, 5, 1));
}

#[test]
fn a_run_is_told_apart_from_the_last_one_that_asked_the_same() {
    let (first, second) =
        (FakeServer::start(Script::default()), FakeServer::start(wrong_about("7")));
    let project = project(10, &[("fake", &first)], "");
    let earlier = run(&project, &[]).err;
    assert!(!earlier.contains("since run"), "{earlier}");
    let short = earlier.split_once(" of ").unwrap().0.rsplit_once('-').unwrap().1;
    let project = project.file("probity.toml", suite(&[("fake", &second)], ""));
    let ran = run(&project, &[]);
    for told in [
        &format!("since run {short} of "),
        "1 newly failing, 0 newly passing\n  newly failing  case-7\n",
        &format!("probity compare {short} "),
        "\n1 case failed\n  case-7  expected `7`, got `wrong`\n",
    ] {
        assert!(ran.err.contains(told), "{told}\n{}", ran.err);
    }
    // Other cases cannot be compared.
    let project = project.file("cases.jsonl", dataset(9));
    assert!(!run(&project, &[]).err.contains("since run"));
}

fn wrong_about(word: &str) -> Script {
    Script::default().rule(Rule::new(When::prompt_contains(word), Answer::text("wrong")))
}
