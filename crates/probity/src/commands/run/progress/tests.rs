use probity_core::{
    classification::{Class, Verdict},
    crew::{Crew, CrewMember},
    event::{CaseKey, Event},
    failure::ErrorKind,
    kind::RunnerKind,
    metrics::Verdicts,
    record::{CallError, Lane, LaneStatus},
};

use super::{
    board::{Board, LaneBoard},
    *,
};
use crate::terminal::columns;

fn key(lane: usize, case_id: &str) -> CaseKey {
    CaseKey { lane, case_id: case_id.to_owned(), repeat: 0 }
}

fn lane(backend: &str, planned: u64) -> Lane {
    Lane {
        runner: "r".to_owned(),
        variant: None,
        kind: RunnerKind::Respond,
        backend: backend.to_owned(),
        backend_kind: "openai".to_owned(),
        model: None,
        dataset_digest: String::new(),
        dataset: Vec::new(),
        planned,
        repeat: 1,
        replayed: false,
        imported: None,
        judge: None,
        judges: Vec::new(),
        skills: None,
        judging: probity_core::record::Judging::default(),
    }
}

/// A lane of which some cases were done before.
fn earlier(verdicts: Verdicts) -> LaneBoard {
    let mut lane = LaneBoard { verdicts, ..LaneBoard::default() };
    lane.classes.add_many(Class::Pass, verdicts.pass);
    lane.classes.add_many(Class::Fail, verdicts.fail);
    lane
}

struct Watched {
    board: Board,
    now: Instant,
}

impl Watched {
    fn new(lanes: Vec<LaneBoard>, planned: &[(&str, u64)]) -> Self {
        let now = Instant::now();
        let done_before = lanes.iter().map(|it| it.verdicts.total()).collect();
        let mut board = Board::new(lanes, 0.0, 0);
        let event = Event::RunStarted {
            version: 1,
            run_id: "x".to_owned(),
            resumed: true,
            lanes: planned.iter().map(|(backend, planned)| lane(backend, *planned)).collect(),
            done_before,
        };
        assert_eq!(board.take(&event, now), None);
        Self { board, now }
    }

    fn take(&mut self, event: &Event) -> Option<String> {
        self.board.take(event, self.now)
    }

    fn start(&mut self, lane: usize, case_id: &str) {
        self.take(&Event::CaseStarted(key(lane, case_id)));
    }

    fn fail(&mut self, lane: usize, case_id: &str, retry_in_ms: u64) {
        let error = CallError::new(ErrorKind::Overloaded, "HTTP 503: try later");
        let case = key(lane, case_id);
        self.take(&Event::AttemptFailed {
            case,
            attempt: 1,
            error,
            retry_in_ms: Some(retry_in_ms),
        });
    }

    fn pause(&mut self, backend: &str, for_ms: u64) -> Option<String> {
        let reason = "rate_limit: HTTP 429: slow down".to_owned();
        self.take(&Event::BackendPaused { backend: backend.to_owned(), for_ms, limit: 3, reason })
    }

    fn shown(&self, width: usize) -> Vec<String> {
        self.shown_in(width, 24)
    }

    fn shown_in(&self, width: usize, height: usize) -> Vec<String> {
        let lines = drawing::lines(&self.board, self.now, width, height);
        let shown: Vec<String> = lines.iter().map(|line| uncoloured(line)).collect();
        assert!(shown.iter().all(|it| columns(it) <= width), "{shown:#?}");
        assert!(shown.len() <= height, "{shown:#?}");
        shown
    }

    fn line(&self) -> String {
        uncoloured(&drawing::line(&self.board, self.now))
    }
}

fn started() -> Watched {
    let before = Verdicts { pass: 3, fail: 1, ..Verdicts::default() };
    Watched::new(vec![earlier(before)], &[("b", 10)])
}

/// Three backends: one at work, one that is paused, one whose turn has not come.
fn three_lanes() -> Watched {
    let classes = [
        (Class::Pass, Verdict::Pass, 30),
        (Class::Fail, Verdict::Fail, 4),
        (Class::Refusal, Verdict::Fail, 2),
        (Class::Timeout, Verdict::Error, 1),
    ];
    let mut first = LaneBoard { done: 37, ..LaneBoard::default() };
    for (class, verdict, count) in classes {
        (0..count).for_each(|_| first.verdicts.add(verdict));
        first.classes.add_many(class, count);
    }
    let planned = [("small", 60), ("a-backend-with-a-long-name", 60), ("third", 60)];
    let mut watched = Watched::new(vec![], &planned);
    let LaneBoard { done, verdicts, classes, .. } = first;
    let lane = &mut watched.board.lanes[0];
    (lane.done, lane.verdicts, lane.classes) = (done, verdicts, classes);
    watched.board.cost_usd = 0.037;
    for id in ["a", "b", "c"] {
        watched.start(0, id);
    }
    watched.fail(0, "b", 61_500);
    watched.start(1, "a");
    watched.fail(1, "a", 90_000);
    watched.pause("a-backend-with-a-long-name", 67_500);
    watched.now += Duration::from_mins(1);
    watched
}

#[test]
fn what_is_in_flight_and_what_waits_are_told_apart() {
    let mut watched = started();
    watched.start(0, "a");
    watched.start(0, "b");
    watched.fail(0, "b", 90_000);
    insta::assert_snapshot!(watched.line(), @"4/10 done (4 before), 3 passed, 1 failed; 1 in flight, 1 backing off; b: 1 case backs off, next in 90s: overloaded: HTTP 503: try later");
    let note = watched.pause("b", 60_000).unwrap();
    assert_eq!(note, "backend `b` is paused for 60s: rate_limit: HTTP 429: slow down");
    let line = watched.line();
    assert!(line.ends_with("; b paused, 60s left: rate_limit: HTTP 429: slow down"), "{line}");
    watched.now += Duration::from_secs(91);
    assert_eq!(
        watched.line(),
        "4/10 done (4 before), 3 passed, 1 failed; 2 in flight, oldest a (91s)"
    );
}

#[test]
fn what_everybody_should_know_is_a_line_of_its_own() {
    let mut watched = started();
    let tripped = Event::BackendTripped {
        lane: 0,
        backend: "b".to_owned(),
        reason: "auth: no".to_owned(),
        error: "HTTP 401: no\u{1b}[2J".to_owned(),
        permanent: true,
    };
    let note = watched.take(&tripped).unwrap();
    assert_eq!(
        note,
        "backend `b` is given up: the same permanent error repeatedly: HTTP 401: no\\u{1b}[2J"
    );
    watched.start(0, "a");
    let note = watched.take(&Event::CancelStarted { reason: "interrupted".to_owned() }).unwrap();
    assert_eq!(note, "interrupted: cancelling 1 case");
}

#[test]
fn one_lane_is_one_bar() {
    let mut watched = started();
    for id in ["a", "b", "c"] {
        watched.start(0, id);
    }
    watched.fail(0, "b", 2500);
    for width in [59, 79, 139] {
        let shown = watched.shown(width);
        assert_eq!(shown[0].chars().count(), width);
        insta::assert_snapshot!(format!("one_lane_in_{width}_columns"), shown.join("\n"));
    }
}

#[test]
fn several_lanes_have_a_row_each() {
    for width in [59, 79, 139] {
        let shown = three_lanes().shown(width).join("\n");
        insta::assert_snapshot!(format!("three_lanes_in_{width}_columns"), shown);
    }
    let shown = three_lanes().shown(199);
    assert!(shown[0].chars().count() > 180, "{shown:#?}");
}

/// `shown` looks how wide the lines are.
#[test]
fn no_line_is_wider_than_the_terminal() {
    let mut watched = three_lanes();
    watched.start(0, &"a-long-id-".repeat(9));
    for lane in &mut watched.board.lanes {
        lane.planned = 123_456_789_012;
        lane.done = 12_345_678_901;
        for verdict in [Verdict::Pass, Verdict::Fail, Verdict::Error, Verdict::Undecided] {
            (0..100_000).for_each(|_| lane.verdicts.add(verdict));
        }
    }
    watched.now += Duration::from_mins(1);
    for width in [0, 1, 20, 39, 110, 139] {
        watched.shown(width);
    }
    assert!(!watched.shown(110)[0].contains("passed"), "there is a bar instead of the tally");
    assert!(watched.shown(110)[0].contains('━'));
    let mut alone = started();
    alone.start(0, &"a-long-id-".repeat(9));
    alone.now += Duration::from_mins(1);
    for width in [0, 4, 20, 39] {
        alone.shown(width);
    }
}

#[test]
fn bars_begin_in_the_same_column_behind_wide_names() {
    let planned = [("模型一号", 60), ("small", 60), ("👍", 60)];
    let shown = Watched::new(vec![], &planned).shown(60);
    let before = |row: &String| columns(row.split('─').next().unwrap_or_default());
    let starts: Vec<usize> = shown.iter().take(3).map(before).collect();
    assert_eq!(starts, [10, 10, 10], "{shown:#?}");
    for width in 0..40 {
        Watched::new(vec![], &planned).shown(width);
    }
}

#[test]
fn a_wait_that_is_over_is_no_wait() {
    let mut watched = Watched::new(vec![], &[("one", 5), ("two", 5)]);
    for id in ["a", "b"] {
        watched.start(0, id);
    }
    watched.fail(0, "a", 1000);
    watched.fail(0, "b", 60_000);
    watched.now += Duration::from_secs(2);
    let row = watched.shown(79).remove(0);
    assert!(row.ends_with("asking"), "{row}");
}

#[test]
fn a_low_terminal_shows_the_lanes_that_are_at_work() {
    let planned: Vec<(String, u64)> = (0..40).map(|at| (format!("lane-{at}"), 5)).collect();
    let planned: Vec<(&str, u64)> = planned.iter().map(|(name, of)| (name.as_str(), *of)).collect();
    let mut watched = Watched::new(vec![], &planned);
    for lane in 0..20 {
        watched.start(lane, "a");
        let status = LaneStatus::Complete;
        watched.take(&Event::LaneFinished { lane, status, calls: 1 });
    }
    watched.start(20, "a");
    let shown = watched.shown_in(79, 10);
    assert!(shown.iter().any(|it| it.starts_with("lane-20 ") && it.ends_with("asking")));
    assert!(shown.iter().any(|it| it.starts_with("and 34 more lanes")), "{shown:#?}");
    assert!(!shown.iter().any(|it| it.starts_with("lane-0 ")), "{shown:#?}");
    assert_eq!(watched.shown_in(79, 1).len(), 1);
}

#[test]
fn every_class_has_its_colour_and_its_sign() {
    let watched = three_lanes();
    let row = &drawing::lines(&watched.board, watched.now, 79, 24)[0];
    for (class, sign) in [(Class::Pass, '━'), (Class::Refusal, '×'), (Class::Timeout, '!')] {
        let style = probity_report::palette::Tint::of_class(class).style();
        assert!(row.contains(&format!("{style}{sign}")), "{class}: {row:?}");
    }
}

#[test]
fn workers_are_shown_with_what_waits_for_them() {
    let mut watched = Watched::new(vec![LaneBoard::default()], &[("b", 10)]);
    let member = |name: &str, in_flight, rate| CrewMember {
        name: name.to_owned(),
        slots: 4,
        in_flight,
        done: 7,
        rate,
    };
    let workers = vec![member("box-1", 1, 0.25), member("box-2", 4, 3.0)];
    watched.take(&Event::WorkersSeen(Crew { backlog: 12, redelivered: 2, workers }));
    let shown = watched.shown(79);
    assert_eq!(
        shown[shown.len() - 2..],
        [
            "2 workers, 5 calls at work, 12 waiting, 2 delivered again",
            "box-2 4/4 3.0/s, box-1 1/4 0.2/s"
        ]
    );
    insta::assert_snapshot!(watched.line(), @"0/10 done; 0 in flight; 2 workers, 5 calls at work, 12 waiting, 2 delivered again");
    assert!(watched.shown(59).iter().any(|it| it.contains("box-2 4/4 3.0/s")));
}
