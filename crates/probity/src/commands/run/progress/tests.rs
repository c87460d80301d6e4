use probity_core::{
    failure::ErrorKind,
    kind::RunnerKind,
    record::{CallError, Lane},
};

use super::*;

fn key(case_id: &str) -> CaseKey {
    CaseKey { lane: 0, case_id: case_id.to_owned(), repeat: 0 }
}

fn started() -> Board {
    let mut board = Board::new();
    let lane = Lane {
        runner: "r".to_owned(),
        kind: RunnerKind::Respond,
        backend: "b".to_owned(),
        backend_kind: "openai".to_owned(),
        model: None,
        dataset_digest: String::new(),
        dataset: Vec::new(),
        planned: 10,
        repeat: 1,
        replayed: false,
        judge: None,
        skills: None,
        judging: probity_core::record::Judging::default(),
    };
    let event = Event::RunStarted {
        version: 1,
        run_id: "x".to_owned(),
        resumed: true,
        lanes: vec![lane],
        done_before: vec![4],
    };
    assert_eq!(board.take(&event), None);
    board
}

#[test]
fn what_is_in_flight_and_what_waits_are_told_apart() {
    let mut board = started();
    board.take(&Event::CaseStarted(key("a")));
    board.take(&Event::CaseStarted(key("b")));
    board.take(&Event::AttemptFailed {
        case: key("b"),
        attempt: 1,
        error: CallError::new(ErrorKind::Server, "oops"),
        retry_in_ms: Some(90_000),
    });
    let line = board.line();
    assert!(line.starts_with("4/10 done; 1 in flight, 1 backing off (next in "), "{line}");
    let paused = Event::BackendPaused {
        backend: "b".to_owned(),
        for_ms: 60_000,
        limit: 3,
        reason: "rate_limit: HTTP 429: slow down".to_owned(),
    };
    let note = board.take(&paused).unwrap();
    assert_eq!(note, "backend `b` is left alone for 60s: rate_limit: HTTP 429: slow down");
    let line = board.line();
    assert!(line.contains(", b paused for 59"), "{line}");
    assert_eq!(board.bar(17), "[####......]  40%");
}

#[test]
fn what_everybody_should_know_is_a_line_of_its_own() {
    let mut board = started();
    let tripped = Event::BackendTripped {
        lane: 0,
        backend: "b".to_owned(),
        reason: "auth: no\u{1b}[2J".to_owned(),
        permanent: true,
    };
    let note = board.take(&tripped).unwrap();
    assert_eq!(
        note,
        "backend `b` is given up: the same error again and again (permanent): auth: no\\u{1b}[2J"
    );
}
