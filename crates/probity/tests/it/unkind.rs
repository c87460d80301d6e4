//! Servers, proxies and programs that are not as one would wish.

use std::time::{Duration, Instant};

use probity_testkit::{Answer, FakeServer, Fault, RetryAfter, Script, Trouble};

use crate::{
    project::Project,
    run::{Ran, dataset, project, run, stored, suite},
};

#[test]
fn a_dead_local_server_costs_no_time_and_the_next_runner_is_spared() {
    let server = FakeServer::start(Script::default());
    let text = suite(&[("dead", &server)], "")
        + "[[runners]]\nname = \"second\"\ndataset = \"cases.jsonl\"\n";
    let text = text.replace("[retry]\nbackoff_base = 0.01\n", "");
    drop(server);
    let project = Project::new().file("cases.jsonl", dataset(20)).file("probity.toml", text);
    let began = Instant::now();
    let ran = run(&project, &[]);
    ran.expect(3, &[("TOTAL_CALLS", "3"), ("FAIL_FAST", "1")]);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert!(ran.err.contains("nothing listens at"), "{}", ran.err);
    let error = stored(&project)[0]["error"].clone();
    assert_eq!((&error["kind"], &error["permanent"]), (&"network".into(), &true.into()));
}

#[test]
fn a_byte_order_mark_before_json_is_no_harm() {
    let body =
        "\u{feff}{\"choices\":[{\"message\":{\"content\":\"0\"},\"finish_reason\":\"stop\"}]}";
    let raw = Answer::Raw { status: 200, headers: Vec::new(), body: body.into() };
    let server = FakeServer::start(Script::always(raw));
    let project = project(1, &[("b", &server)], "");
    run(&project, &[]).expect(0, &[("TOTAL_CALLS", "1")]);
    assert_eq!(stored(&project)[0]["verdict"], "pass");
}

#[test]
fn a_proxy_is_not_asked_about_this_machine() {
    let server = FakeServer::start(Script::default());
    let project = project(1, &[("b", &server)], "");
    let mut command = project.command(&["run", "--porcelain"]);
    // Nobody listens there.
    let proxies = ["http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"];
    let command = command.envs(proxies.map(|name| (name, "http://127.0.0.1:9")));
    let ran = Ran::of(&command.env_remove("no_proxy").env_remove("NO_PROXY").output().unwrap());
    ran.expect(0, &[("TOTAL_CALLS", "1")]);
}

#[test]
fn a_backend_that_is_only_a_judge_is_no_subject() {
    let server = FakeServer::start(Script::default());
    let text = suite(&[("one", &server), ("judge", &server)], "");
    let check = |more: &str, backends: &[&str]| {
        let text = format!("{text}{more}");
        let project = Project::new().file("cases.jsonl", dataset(1)).file("probity.toml", text);
        run(&project, &[]);
        let asked: Vec<String> = stored(&project)
            .iter()
            .map(|case| case["backend"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(asked, backends, "{more}");
    };
    check("", &["one", "judge"]);
    check("[judge]\nbackend = \"judge\"\n", &["one"]);
}

#[test]
fn numbers_that_no_model_takes_are_refused() {
    for (key, value) in [("temperature", "-1"), ("top_p", "1.5")] {
        let suite = format!("[backends.b]\nkind = \"vllm\"\n{key} = {value}\n");
        let shown = Project::new().file("probity.toml", suite).shown(&["run"]);
        assert!(shown.contains(&format!("`{key}` must be a number that is")), "{shown}");
    }
}

#[test]
fn an_answer_of_any_size_takes_no_more_memory_than_its_bound() {
    let huge = Answer::HugeBody { bytes: 1 << 40 };
    let server = FakeServer::start(Script::always(huge));
    let project = project(1, &[("b", &server)], "max_retries = 0\n");
    assert_eq!(run(&project, &[]).code, Some(3));
    let message = stored(&project)[0]["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("the answer is larger than 32 MiB"), "{message}");
}

#[test]
fn a_header_cannot_hold_up_a_run() {
    let year = Fault::new(Trouble::RateLimit).retry(RetryAfter::Seconds(31_000_000));
    let server = FakeServer::start(Script::always(Answer::Fault(year)));
    let project = project(3, &[("b", &server)], "");
    let began = Instant::now();
    let ran = run(&project, &[]);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    let message = stored(&project)[0]["error"]["message"].as_str().unwrap().to_owned();
    assert!(
        message.contains("it asks to wait 358 days, longer than `pace.max_pause`"),
        "{message}"
    );
}

#[test]
fn the_limit_of_a_case_counts_its_waits() {
    let later = Fault::new(Trouble::RateLimit).retry(RetryAfter::Seconds(2));
    let server = FakeServer::start(Script::always(Answer::Fault(later)));
    let project = project(4, &[("b", &server)], "");
    let began = Instant::now();
    run(&project, &["--timeout", "3s", "--no-fail-fast", "--max-retries", "9"]);
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    for case in stored(&project) {
        let elapsed = case["elapsed_ms"].as_u64().unwrap();
        assert!(elapsed <= 3_200, "{elapsed}");
    }
}

#[test]
fn the_limit_that_is_told_is_the_one_that_was_set() {
    let server = FakeServer::start(Script::always(Answer::Hang));
    let project = project(1, &[("b", &server)], "");
    run(&project, &["--timeout", "1s", "--max-retries", "0"]);
    let case = stored(&project).remove(0);
    assert_eq!(case["classification"]["primary"], "timeout", "{case}");
    assert_eq!(case["classification"]["details"]["limit_seconds"], 1, "{case}");
}

#[test]
#[cfg(unix)]
fn secrets_that_a_program_is_handed_do_not_come_back() {
    let suite = "[backends.c]\nkind = \"command\"\nenv = [\"DATABASE_URL\", \"GH_PAT\"]\n\
                 command = [\"sh\", \"-c\", \"cat > /dev/null; echo $DATABASE_URL $GH_PAT\"]\n\
                 [[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\n";
    let project = Project::new()
        .file("cases.jsonl", dataset(1))
        .file(".env", "DATABASE_URL=postgres://me:hunter2x@db/app\nGH_PAT=pat-of-mine\n")
        .file("probity.toml", suite);
    run(&project, &[]);
    assert_eq!(stored(&project)[0]["raw_response"], "[redacted] [redacted]");
}
