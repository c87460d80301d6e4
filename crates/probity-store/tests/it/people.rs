//! What people say stands beside what was measured, and goes where that goes.

use std::{path::Path, time::Duration};

use probity_core::{
    event::{Event, Stamped, VERSION},
    people::{Mark, Name, Remark, Said, current},
    record::{CaseRecord, LaneStatus, RunInfo},
};
use probity_store::{
    LaneView, MergeSource, NewRun, Rated, Reader, RunRow, StoreError, carry_remarks, merge,
    record_whole, say,
};

const PATIENCE: Duration = Duration::from_millis(50);

/// A store of the format before there were remarks: one lane with the cases `pass` and `fail`.
fn store(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("x.db");
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/format8.db");
    std::fs::copy(fixture, &path).unwrap();
    path
}

fn only_lane(reader: &Reader, run: &RunRow) -> LaneView {
    let [lane] = &reader.lanes(run).unwrap()[..] else { panic!("one lane") };
    lane.clone()
}

fn result(reader: &Reader, lane: &LaneView, id: &str) -> CaseRecord {
    reader.case(lane, id).unwrap().remove(0)
}

fn rated(reader: &Reader, lane: &LaneView) -> Vec<Rated> {
    let mut all = Vec::new();
    let each = |it| {
        all.push(it);
        Ok::<_, StoreError>(())
    };
    reader.rated(lane, each).unwrap();
    all
}

fn said(person: &str, remark: Remark, at_ms: i64) -> Said {
    Said { person: Name::of_person(person).unwrap(), at_ms, remark, carried_from: None }
}

fn mark(mark: Mark) -> Remark {
    Remark::Verdict { mark: Some(mark) }
}

fn everything() -> Vec<Said> {
    vec![
        said("Ada", mark(Mark::Fail), 1),
        said("Ada", Remark::Points { about: "right".to_owned(), points: Some(2) }, 2),
        said("Ada", Remark::Note { note: Some("not\nthat".parse().unwrap()) }, 3),
        said("Ada", Remark::Tag { tag: Name::of_tag("odd, <b>").unwrap(), is_set: true }, 4),
    ]
}

#[test]
fn a_store_of_the_format_before_takes_remarks_and_keeps_its_results() {
    let folder = tempfile::tempdir().unwrap();
    let path = store(folder.path());
    let reader = Reader::open(&path).unwrap();
    let run = reader.find("latest").unwrap();
    let lane = only_lane(&reader, &run);
    let before = reader.view(&run, 0.1).unwrap();
    assert_eq!(before.lanes[0].metrics.all.verdicts.pass, 1);
    let record = result(&reader, &lane, "pass");
    assert_eq!(reader.remarks(&lane, &record).unwrap(), []);
    let nothing = reader.last_remark(std::slice::from_ref(&lane)).unwrap();
    say(&path, &lane, &record, &everything(), PATIENCE).unwrap();
    assert_ne!(reader.last_remark(std::slice::from_ref(&lane)).unwrap(), nothing);
    assert_eq!(reader.remarks(&lane, &record).unwrap(), everything());
    assert_eq!(rated(&reader, &lane).len(), 1);
    let after = reader.view(&run, 0.1).unwrap();
    assert_eq!(format!("{before:?}"), format!("{after:?}"), "no figure has changed");
}

#[test]
fn what_was_said_before_is_not_kept_again_and_history_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = store(folder.path());
    let reader = Reader::open(&path).unwrap();
    let lane = only_lane(&reader, &reader.find("latest").unwrap());
    let record = result(&reader, &lane, "pass");
    let one = |it: Said| say(&path, &lane, &record, &[it], PATIENCE).unwrap();
    one(said("Ada", mark(Mark::Pass), 1));
    one(said("Ada", mark(Mark::Pass), 2));
    one(said("Bob", Remark::Verdict { mark: None }, 3));
    one(said("Ada", mark(Mark::Fail), 4));
    one(said("Ada", Remark::Verdict { mark: None }, 5));
    let history = reader.remarks(&lane, &record).unwrap();
    assert_eq!(history.iter().map(|it| it.at_ms).collect::<Vec<_>>(), [1, 4, 5]);
    assert_eq!(current(&history).len(), 0);
}

#[test]
fn remarks_are_about_a_reply_and_not_about_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = store(folder.path());
    let reader = Reader::open(&path).unwrap();
    let lane = only_lane(&reader, &reader.find("latest").unwrap());
    let record = result(&reader, &lane, "pass");
    say(&path, &lane, &record, &everything(), PATIENCE).unwrap();
    let other = CaseRecord { reply: Some("another".to_owned()), ..record.clone() };
    assert_eq!(reader.remarks(&lane, &other).unwrap(), []);
    let none = CaseRecord { reply: None, ..record };
    assert_eq!(reader.remarks(&lane, &none).unwrap(), []);
}

#[test]
fn a_removed_run_takes_its_remarks_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = store(folder.path());
    let reader = Reader::open(&path).unwrap();
    let run = reader.find("latest").unwrap();
    let lane = only_lane(&reader, &run);
    let record = result(&reader, &lane, "pass");
    say(&path, &lane, &record, &everything(), PATIENCE).unwrap();
    reader.remove(&run.run_id).unwrap();
    let count = "SELECT count(*) FROM remarks";
    let connection = rusqlite::Connection::open(&path).unwrap();
    assert_eq!(connection.query_row(count, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
    // Who still looks at it is told, and nothing is left behind.
    assert!(say(&path, &lane, &record, &everything(), PATIENCE).is_err());
}

#[test]
fn merged_runs_keep_what_people_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = store(folder.path());
    let reader = Reader::open(&path).unwrap();
    let run = reader.find("latest").unwrap();
    let lane = only_lane(&reader, &run);
    say(&path, &lane, &result(&reader, &lane, "fail"), &everything(), PATIENCE).unwrap();
    let target = folder.path().join("all.db");
    let new = NewRun {
        run_id: "20261116-100000-merged".to_owned(),
        suite: run.suite.clone(),
        started_ms: 0,
        info: RunInfo::default(),
    };
    merge(&target, &new, &[MergeSource { store: path, run }], None).unwrap();
    let reader = Reader::open(&target).unwrap();
    let lane = only_lane(&reader, &reader.find("latest").unwrap());
    let all = rated(&reader, &lane);
    let [Rated { record, history }] = &all[..] else { panic!("{all:?}") };
    assert_eq!((record.case_id.as_str(), history), ("fail", &everything()));
}

#[test]
fn remarks_are_carried_to_results_with_the_same_reply() {
    let folder = tempfile::tempdir().unwrap();
    let path = store(folder.path());
    let reader = Reader::open(&path).unwrap();
    let run = reader.find("latest").unwrap();
    let lane = only_lane(&reader, &run);
    let [pass, fail] = ["pass", "fail"].map(|id| result(&reader, &lane, id));
    for record in [&pass, &fail] {
        say(&path, &lane, record, &everything(), PATIENCE).unwrap();
    }
    let new = NewRun {
        run_id: "20261116-100000-second".to_owned(),
        suite: run.suite.clone(),
        started_ms: 0,
        info: RunInfo::default(),
    };
    let other = CaseRecord { reply: Some("another".to_owned()), ..fail };
    let events = [
        Event::RunStarted {
            version: VERSION,
            run_id: new.run_id.clone(),
            resumed: false,
            lanes: vec![lane.lane.clone()],
            done_before: vec![0],
        },
        Event::CaseFinished { lane: 0, record: Box::new(pass) },
        Event::CaseFinished { lane: 0, record: Box::new(other) },
        Event::LaneFinished { lane: 0, status: LaneStatus::Complete, calls: 0 },
        Event::RunFinished { complete: true },
    ];
    let events = events.map(|event| Stamped { at_ms: 0, event });
    record_whole(&path, &new, &events).unwrap();
    let later = reader.find("second").unwrap();
    assert_eq!(carry_remarks(&path, &run, &later).unwrap(), 1);
    let all = rated(&reader, &only_lane(&reader, &later));
    let [Rated { record, history }] = &all[..] else { panic!("{all:?}") };
    assert_eq!((record.case_id.as_str(), history.len()), ("pass", 4));
    assert!(history.iter().all(|it| it.carried_from.as_deref() == Some(&run.run_id)));
    assert_eq!(rated(&reader, &lane).len(), 2, "the first run keeps its own");
}

#[test]
fn somebody_else_who_writes_is_waited_for_and_not_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let path = store(folder.path());
    let reader = Reader::open(&path).unwrap();
    let lane = only_lane(&reader, &reader.find("latest").unwrap());
    let record = result(&reader, &lane, "pass");
    let writer = rusqlite::Connection::open(&path).unwrap();
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = say(&path, &lane, &record, &everything(), PATIENCE).unwrap_err();
    assert!(matches!(error, StoreError::Write(_)) && error.is_locked(), "{error:?}");
    writer.execute_batch("COMMIT").unwrap();
    say(&path, &lane, &record, &everything(), PATIENCE).unwrap();
}
