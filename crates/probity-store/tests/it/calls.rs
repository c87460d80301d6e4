//! Who works on a run, and which calls were made for it.

use probity_core::{
    classification::Verdict,
    event::Event,
    record::{LaneStatus, RunInfo, RunStatus},
};
use probity_store::{NewRun, Reader, Recorder, StoreError};

use crate::common::{create, finished, lane, record, started, write};

#[test]
fn a_result_that_is_asked_again_keeps_the_tries_of_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let mut recorder = create(&path);
    write(&mut recorder, vec![started(), finished(record("a", Verdict::Error))]);
    write(&mut recorder, vec![finished(record("a", Verdict::Pass))]);
    let marked = recorder.mark_stale(&lane(), |_, _| false).unwrap();
    assert_eq!(marked, 1);
    let reader = Reader::open(&path).unwrap();
    let lanes = reader.lanes(&reader.find("latest").unwrap()).unwrap();
    let cases = reader.case(&lanes[0], "a").unwrap();
    assert_eq!((cases.len(), cases[0].failures.len()), (1, 2));
    assert_eq!(reader.tally(&lanes[0]).unwrap().total(), 0);
}

#[test]
fn a_run_that_was_judged_again_counts_once_it_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let first = create(&path);
    first.close();
    let again = NewRun {
        run_id: "20261115-110000-fedcba".to_owned(),
        suite: "s".to_owned(),
        started_ms: 1,
        info: RunInfo { rescored_from: Some("abcdef".to_owned()), ..RunInfo::default() },
    };
    drop(Recorder::create(&path, &again, []).unwrap());
    let reader = Reader::open(&path).unwrap();
    let half = reader.find("fedcba").unwrap();
    assert_eq!((half.status, half.is_half_judged()), (RunStatus::Killed, true));
    let latest = reader.find("latest").unwrap();
    assert_eq!((latest.short(), latest.is_half_judged()), ("abcdef", false));
}

#[test]
fn one_process_at_a_time_works_on_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let recorder = create(&path);
    let second = Recorder::resume(&path, "20261115-100000-abcdef");
    assert!(matches!(second, Err(StoreError::Busy(_))));
    let reader = Reader::open(&path).unwrap();
    let run = reader.find("latest").unwrap();
    assert!(matches!(reader.remove(&run.run_id), Err(StoreError::Busy(_))));
    recorder.close();
    assert_eq!(reader.find("latest").unwrap().status, RunStatus::Killed);
    assert!(Recorder::resume(&path, "20261115-100000-abcdef").is_ok());
}

#[test]
fn calls_that_begin_before_the_first_event_is_recorded_are_not_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let mut recorder = create(&path);
    let mut ledger = recorder.ledger([&lane()]).unwrap();
    ledger.begun(0, 4).unwrap();
    drop((ledger, recorder));
    let mut recorder = Recorder::resume(&path, "20261115-100000-abcdef").unwrap();
    let reader = Reader::open(&path).unwrap();
    let lanes = reader.lanes(&reader.find("latest").unwrap()).unwrap();
    assert_eq!(lanes.iter().map(|it| &it.lane).collect::<Vec<_>>(), [&lane()]);
    assert_eq!(recorder.begun_before(&lane()), Some(4));
    recorder.set_calls([(&lane(), 4)]).unwrap();
    // A process that is killed once more, again before its first event.
    drop((recorder.ledger([&lane()]).unwrap(), recorder));
    let recorder = Recorder::resume(&path, "20261115-100000-abcdef").unwrap();
    assert_eq!(recorder.begun_before(&lane()), Some(4));
}

#[test]
fn calls_of_a_run_that_was_closed_before_its_end_are_not_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let started = || Event::RunStarted {
        version: 1,
        run_id: "20261115-100000-abcdef".to_owned(),
        resumed: false,
        lanes: vec![lane()],
        done_before: vec![0],
    };
    let resumed = || Recorder::resume(&path, "20261115-100000-abcdef").unwrap();
    let mut recorder = create(&path);
    recorder.ledger([&lane()]).unwrap().begun(0, 4).unwrap();
    write(&mut recorder, vec![started()]);
    recorder.close();
    assert_eq!(resumed().begun_before(&lane()), Some(4));
    // The end of a run says all that was counted.
    let mut recorder = resumed();
    let finished = LaneStatus::Interrupted;
    write(
        &mut recorder,
        vec![
            started(),
            Event::LaneFinished { lane: 0, status: finished, calls: 4 },
            Event::RunFinished { complete: false },
        ],
    );
    write(&mut recorder, Vec::new());
    recorder.close();
    assert_eq!(resumed().begun_before(&lane()), None);
}
