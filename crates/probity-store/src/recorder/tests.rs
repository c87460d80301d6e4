use probity_core::{kind::RunnerKind, record::Judging};

use super::*;
use crate::{Reader, browse};

fn lane() -> Lane {
    Lane {
        runner: "r".to_owned(),
        variant: None,
        kind: RunnerKind::Command,
        backend: "b".to_owned(),
        backend_kind: "echo".to_owned(),
        model: None,
        dataset_digest: "d".to_owned(),
        dataset: Vec::new(),
        planned: 4,
        repeat: 2,
        replayed: false,
        imported: None,
        judge: None,
        judges: Vec::new(),
        skills: None,
        judging: Judging::default(),
    }
}

/// A run with two results of each case.
fn recorder(path: &Path, cases: &[&str]) -> Recorder {
    let run = NewRun {
        run_id: "20261115-100000-abcdef".to_owned(),
        suite: "s".to_owned(),
        started_ms: 0,
        info: RunInfo::default(),
    };
    let mut recorder = Recorder::create(path, &run, []).unwrap();
    recorder.ledger([&lane()]).unwrap();
    let connection = &recorder.connection;
    connection.execute("INSERT INTO texts (id, hash, text) VALUES (1, x'00', '{}')", []).unwrap();
    for (case, repeat) in cases.iter().flat_map(|it| [(it, 0), (it, 1)]) {
        connection
            .execute(
                "INSERT INTO results (lane, case_id, repeat, input, definition, prompt, source, latency_ms, calls,
                    started_ms, elapsed_ms, class, verdict, classification, tags)
                 VALUES (1, ?1, ?2, x'00', 1, '', 'backend', 0, 1, 0, 0, 'pass', 'pass', '{}', json_array(?1))",
                params![case, repeat],
            )
            .unwrap();
    }
    browse::collect(connection, None).unwrap();
    recorder
}

#[test]
fn only_results_that_become_stale_or_current_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let mut recorder = recorder(&path, &["a", "b"]);
    let reader = Reader::open(&path).unwrap();
    let version = || reader.data_version().unwrap();
    let mut mark = |is_current: &dyn Fn(&str, u32) -> bool| {
        let before = version();
        let marked = recorder.mark_stale(&lane(), is_current).unwrap();
        (marked, version() != before, reader.tags(9).unwrap())
    };
    assert_eq!(mark(&|_, _| true), (0, false, vec!["a".to_owned(), "b".to_owned()]));
    // Each is counted once, although it moves in the index that is read.
    assert_eq!(mark(&|id, _| id == "b"), (2, true, vec!["b".to_owned()]));
    assert_eq!(mark(&|id, _| id == "b"), (2, false, vec!["b".to_owned()]));
    assert_eq!(
        mark(&|id, repeat| id == "a" || repeat == 0),
        (1, true, vec!["a".to_owned(), "b".to_owned()])
    );
}

#[test]
fn what_cannot_be_written_is_an_error_unless_somebody_else_writes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let mut recorder = recorder(&path, &[]);
    let finished = [Stamped { at_ms: 1, event: Event::RunFinished { complete: false } }];
    let mut other = Connection::open(&path).unwrap();
    let transaction = begin(&mut other).unwrap();
    assert!(!recorder.try_record(&finished, Duration::ZERO).unwrap());
    drop(transaction);
    let sabotage = "CREATE TRIGGER t BEFORE UPDATE ON runs BEGIN SELECT RAISE(ABORT, 'no'); END";
    other.execute_batch(sabotage).unwrap();
    assert!(recorder.try_record(&finished, Duration::ZERO).is_err());
    other.execute_batch("DROP TRIGGER t").unwrap();
    assert!(recorder.try_record(&finished, Duration::ZERO).unwrap());
}
