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
    let mut board = Board::new(Verdicts { pass: 3, fail: 1, ..Verdicts::default() });
    let lane = Lane {
        runner: "r".to_owned(),
        variant: None,
        kind: RunnerKind::Respond,
        backend: "b".to_owned(),
        backend_kind: "openai".to_owned(),
        model: None,
        dataset_digest: String::new(),
        dataset: Vec::new(),
        planned: 10,
        repeat: 1,
        replayed: false,
        imported: None,
        judge: None,
        judges: Vec::new(),
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
    let line = uncoloured(&board.line());
    assert!(
        line.starts_with(
            "4/10 done (4 before), 3 passed, 1 failed; 1 in flight, 1 backing off (next in "
        ),
        "{line}"
    );
    let paused = Event::BackendPaused {
        backend: "b".to_owned(),
        for_ms: 60_000,
        limit: 3,
        reason: "rate_limit: HTTP 429: slow down".to_owned(),
    };
    let note = board.take(&paused).unwrap();
    assert_eq!(note, "backend `b` is paused for 60s: rate_limit: HTTP 429: slow down");
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
        "backend `b` is given up: the same permanent error repeatedly: auth: no\\u{1b}[2J"
    );
}

#[test]
fn the_lines_use_the_width_there_is_and_are_never_cut() {
    let mut board = started();
    for id in ["a", "b", "c"] {
        board.take(&Event::CaseStarted(key(id)));
    }
    for (backend, for_ms) in [("first-backend", 9000), ("second-backend", 8000)] {
        let reason = "rate_limit".to_owned();
        let backend = backend.to_owned();
        board.take(&Event::BackendPaused { backend, for_ms, limit: 3, reason });
    }
    for width in [40, 79, 139] {
        let lines = board.lines(width);
        let shown: Vec<String> = lines.iter().map(|line| uncoloured(line)).collect();
        assert_eq!(shown[0].chars().count(), width);
        assert!(shown.iter().all(|line| line.chars().count() <= width), "{shown:#?}");
        // Nothing is lost on the way, whatever the width.
        let told = shown[1..].join(" ");
        for part in ["4/10 done (4 before), 3 passed, 1 failed", "3 in flight", "second-backend"] {
            assert!(told.contains(part), "{shown:#?}");
        }
    }
    assert_eq!(board.lines(139).len(), 3);
    assert!(board.lines(40).len() > 3);
    assert!(board.lines(79)[1].contains("\x1b[31m1 failed"), "{:?}", board.lines(79));
}
