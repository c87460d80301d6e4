//! Limits, ledgers, and answers that are kept.

use std::{
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use probity_core::{
    event::Event,
    record::{LaneStatus, Source},
};
use probity_run::{
    backend::{Access, Answers, CacheAccess},
    plan::{Ledger, Used},
};
use probity_testkit::{Answer, FakeServer, Latency, Rule, Script, Trouble, When};
use serde_json::{Value, json};

use crate::project::{Kept, Project, ran};

fn suite(server: &FakeServer, top: &str, runner: &str) -> String {
    format!(
        "max_concurrency = 1\n[backends.b]\nkind = \"openai\"\nbase_url = \"{}\"\nmodel = \"m\"\n\
         price = {{ input = 1000000.0, output = 0.0 }}\n\
         [[runners]]\nname = \"r\"\nbackends = [\"b\"]\ndataset = \"cases.jsonl\"\n{runner}\n\
         [retry]\nbackoff_base = 0.001\n{top}\n",
        server.url()
    )
}

fn cases(count: u32) -> Vec<Value> {
    (0..count)
        .map(|at| {
            json!({ "id": format!("c{at}"), "prompt": format!("Return the number {at}"), "expected_response": at.to_string() })
        })
        .collect()
}

fn why(status: &LaneStatus) -> &str {
    let LaneStatus::Budget { reason } = status else { panic!("{status:?}") };
    reason
}

#[test]
fn a_runner_has_a_budget_of_its_own() {
    let server = FakeServer::start(Script::default());
    let project = Project::new().cases(&cases(5));
    let ran = project.run(&suite(&server, "", "budget = { max_calls = 2 }"));
    assert_eq!(why(&ran.outcome.lanes[0]), "max_calls = 2 reached for runner `r`");
    assert_eq!((ran.records.len(), server.seen().asked, ran.outcome.used.calls), (2, 2, 2));
}

#[test]
fn costs_and_tokens_have_limits() {
    let server = FakeServer::start(Script::default());
    let project = Project::new().cases(&cases(5));
    // Each prompt has five tokens, and each reply one.
    let ran = project.run(&suite(&server, "[budget]\nmax_tokens = 12", ""));
    assert_eq!(why(&ran.outcome.lanes[0]), "max_tokens = 12 reached");
    assert_eq!((ran.outcome.used.tokens, ran.records.len()), (12, 2));
}

#[test]
fn what_earlier_sessions_used_counts() {
    let server = FakeServer::start(Script::default());
    let project = Project::new().cases(&cases(5));
    let read = project.read(&suite(&server, "", "budget = { max_calls = 4 }"));
    let mut plan = read.plan();
    let used = Used { calls: 3, tokens: 100, cost_usd: 1.0 };
    (plan.carried, plan.carried_by_runner) = (used, vec![used]);
    let ran = ran(plan, read.rules);
    assert_eq!((ran.outcome.used.calls, ran.outcome.used.tokens), (1, 6));
    assert!((ran.outcome.used.cost_usd - 5.0).abs() < 1e-9);
    assert_eq!(why(&ran.outcome.lanes[0]), "max_calls = 4 reached for runner `r`");
}

/// What is written down of calls.
#[derive(Debug, Default)]
struct Book(Arc<Mutex<Vec<u64>>>);

impl Ledger for Book {
    fn begun(&mut self, lane: usize, calls: u64) -> io::Result<()> {
        assert_eq!(lane, 0);
        self.0.lock().unwrap().push(calls);
        Ok(())
    }
}

#[test]
fn calls_are_written_down_before_they_are_made() {
    let script =
        Script::default().rule(Rule::new(When::Requests(2..3), Answer::fault(Trouble::Internal)));
    let server = FakeServer::start(script);
    let read = Project::new().cases(&cases(2)).read(&suite(&server, "", ""));
    let (mut plan, book) = (read.plan(), Book::default());
    let written = book.0.clone();
    plan.ledger = Some(Box::new(book));
    let ran = ran(plan, read.rules);
    assert_eq!(ran.outcome.used.calls, 3);
    let written = written.lock().unwrap().clone();
    assert_eq!((written.last(), written.is_sorted()), (Some(&3), true), "{written:?}");
    assert!([1, 2, 3].iter().all(|it| written.contains(it)), "{written:?}");
    let finished = ran.events.iter().find_map(|it| {
        let Event::LaneFinished { calls, status, .. } = it else { return None };
        Some((*calls, status.clone()))
    });
    assert_eq!(finished, Some((3, LaneStatus::Complete)));
}

#[test]
fn answers_that_are_kept_are_not_asked_for_again() {
    let slow = Latency::fixed(Duration::from_millis(20));
    let server = FakeServer::start(Script { latency: slow, ..Script::default() });
    let project = Project::new().cases(&cases(2));
    let read = project.read(&suite(&server, "", ""));
    let kept = Arc::new(Kept::default());
    let run_with = |access: Access| {
        let mut plan = read.plan();
        plan.cache = Some(kept.clone() as Arc<dyn Answers>);
        plan.access = CacheAccess { answers: access, ..CacheAccess::default() };
        ran(plan, read.rules)
    };
    // Nothing is kept that nobody wants to keep.
    run_with(Access { read: true, write: false });
    assert_eq!((server.seen().asked, kept.0.lock().unwrap().len()), (2, 0));
    let first = run_with(Access::FULL);
    assert_eq!((server.seen().asked, kept.0.lock().unwrap().len()), (4, 2));
    let again = run_with(Access::FULL);
    assert_eq!((server.seen().asked, again.outcome.used.calls), (4, 0));
    let record = again.of("c1");
    assert_eq!((record.source, record.calls, record.cost_usd), (Source::Cache, 0, None));
    assert_eq!((record.reply.as_deref(), record.usage.input_tokens), (Some("1"), Some(5)));
    // How long the model took is a fact about the model.
    assert_eq!(record.latency_ms, first.of("c1").latency_ms);
    assert!(record.latency_ms >= 20, "{}", record.latency_ms);
    // What is kept may be replaced.
    run_with(Access::ANEW);
    assert_eq!(server.seen().asked, 6);
    run_with(Access::default());
    assert_eq!((server.seen().asked, kept.0.lock().unwrap().len()), (8, 2));
}

#[test]
fn a_bad_key_ends_a_lane_and_says_so() {
    let server = FakeServer::start(Script::always(Answer::fault(Trouble::BadKey)));
    let ran = Project::new().cases(&cases(9)).run(&suite(&server, "", ""));
    let LaneStatus::FailFast { reason, permanent } = &ran.outcome.lanes[0] else {
        panic!("{:?}", ran.outcome)
    };
    assert!(*permanent && reason.starts_with("auth: "), "{reason}");
    assert_eq!((server.seen().asked, ran.records.len()), (3, 3));
    let tripped = ran.events.iter().find_map(|it| {
        let Event::BackendTripped { backend, permanent, .. } = it else { return None };
        Some((backend.as_str(), *permanent))
    });
    assert_eq!(tripped, Some(("b", true)));
}

#[test]
fn a_case_that_takes_too_long_is_a_timeout_that_names_the_limit() {
    let server = FakeServer::start(Script::always(Answer::Hang));
    let text = suite(&server, "max_retries = 0\n[timeouts]\ncase = \"30ms\"", "");
    let ran = Project::new().cases(&cases(1)).run(&text);
    let error = ran.of("c0").error.as_ref().unwrap();
    assert_eq!(error.kind.as_str(), "timeout");
    assert!(error.message.contains("the rest of the case's timeout of 30ms"), "{}", error.message);
}

#[test]
fn the_time_of_a_judge_that_is_not_asked_again_is_not_that_of_the_case() {
    let judged = json!({ "criteria": [{ "name": "rubric", "score": 5, "reason": "" }] });
    let slow = Latency::fixed(Duration::from_millis(60));
    let says = Rule::new(When::ModelIs("judge".to_owned()), Answer::text(&judged.to_string()));
    let server = FakeServer::start(Script::default().rule(says.after(slow)));
    let case =
        json!({ "id": "a", "prompt": "Say a", "assert": [{ "type": "llm-rubric", "value": "x" }] });
    let judge = format!(
        "[backends.j]\nkind = \"openai\"\nbase_url = \"{}\"\nmodel = \"judge\"",
        server.url()
    );
    let project = Project::new().cases(&[case]);
    let read = project.read(&suite(&server, &judge, "judge = \"j\""));
    let kept = Arc::new(Kept::default());
    let run = || {
        let mut plan = read.plan();
        plan.cache = Some(kept.clone() as Arc<dyn Answers>);
        plan.access = CacheAccess { judgements: Access::FULL, ..CacheAccess::default() };
        ran(plan, read.rules)
    };
    run();
    let again = run();
    let record = again.of("a");
    assert_eq!((record.calls, record.asked[1].source), (1, Source::Cache));
    assert!(record.asked[1].latency_ms >= 60, "{}", record.asked[1].latency_ms);
    assert_eq!(record.latency_ms, record.asked[0].latency_ms);
}
