//! Stores of earlier formats are read as they were.

use std::path::Path;

use probity_core::{
    classification::Verdict,
    metrics::Verdicts,
    record::{CaseRecord, RunStatus},
};
use probity_store::{Reader, Recorder, StoreError};

use crate::common::{create, finished, full, record, started, write};

/// Makes an older format of a store that has one result, and reads it.
fn read_as(older: &str) -> CaseRecord {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let mut recorder = create(&path);
    write(&mut recorder, vec![started(), finished(full())]);
    recorder.close();
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection
        .execute_batch(
            "ALTER TABLE runs DROP COLUMN lane_count; ALTER TABLE runs DROP COLUMN sum; ALTER TABLE lanes DROP COLUMN sum;
             ALTER TABLE results DROP COLUMN own_prompt;
             DROP TABLE crews; ALTER TABLE results DROP COLUMN worker;
             DROP TABLE lane_tags;
             DROP TABLE remarks;
             UPDATE scores SET kind = kind || ' figure' WHERE named;
             ALTER TABLE scores DROP COLUMN named; ALTER TABLE scores DROP COLUMN said;
             DROP INDEX results_by_outcome;
             ALTER TABLE asked DROP COLUMN turn; ALTER TABLE asked DROP COLUMN tool_calls;
             ALTER TABLE asked DROP COLUMN reasoning; ALTER TABLE asked DROP COLUMN stop_reason;
             ALTER TABLE asked DROP COLUMN logprobs;",
        )
        .unwrap();
    connection.execute_batch(older).unwrap();
    drop(connection);
    let reader = Reader::open(&path).unwrap();
    let lanes = reader.lanes(&reader.find("latest").unwrap()).unwrap();
    assert!(reader.metrics(&lanes[0]).is_ok());
    reader.case(&lanes[0], "a").unwrap().remove(0)
}

/// A result without what a conversation is made of.
fn before_conversations() -> CaseRecord {
    let mut record = full();
    record.worker = None;
    let asked = &mut record.asked[0];
    (asked.turn, asked.tool_calls, asked.logprobs) = (None, Vec::new(), None);
    (asked.reasoning, asked.stop_reason) = (None, None);
    record
}

#[test]
fn a_store_of_format_6_gets_columns_for_conversations() {
    assert_eq!(read_as("PRAGMA user_version = 6;"), before_conversations());
}

/// Sums of format 4 were over less, and say nothing about what is read now.
#[test]
fn a_store_of_format_4_is_read_without_its_sums() {
    let read = read_as(
        "ALTER TABLE results DROP COLUMN asked_sum;
         ALTER TABLE results DROP COLUMN ttft_ms;
         ALTER TABLE results DROP COLUMN tokens_per_second;
         UPDATE results SET facts_sum = 1, texts_sum = 2; PRAGMA user_version = 4;",
    );
    let expected = CaseRecord { ttft_ms: None, tokens_per_second: None, ..before_conversations() };
    assert_eq!(read, expected);
}

/// The store was written by version 0.1: assertions, a policy hit in a refusal, errors, shell
/// commands, a choice of skills.
#[test]
fn a_store_of_version_0_1_is_read_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("old.db");
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/format3.db");
    std::fs::copy(fixture, &path).unwrap();
    let reader = Reader::open(&path).unwrap();
    let run = reader.find("latest").unwrap();
    assert_eq!((run.status, run.info.probity_version.as_str()), (RunStatus::Complete, "0.1.0"));
    let view = reader.view(&run, 0.1).unwrap();
    let shown: Vec<String> = view
        .lanes
        .iter()
        .map(|it| {
            let Verdicts { pass, fail, error, undecided } = it.metrics.all.verdicts;
            let hits = it.metrics.policy_hits;
            format!("{}: {pass} {fail} {error} {undecided}, {hits} hits", it.title())
        })
        .collect();
    assert_eq!(
        shown,
        [
            "words on echo: 3 3 0 0, 1 hits",
            "words on dead: 0 0 6 0, 0 hits",
            "shell on rm: 1 1 0 0, 0 hits",
            "choose on says: 1 1 0 0, 0 hits",
        ]
    );
    assert!(view.lanes[3].metrics.figures.is_some());
    let lanes = reader.lanes(&run).unwrap();
    let [missing] = &reader.case(&lanes[0], "missing").unwrap()[..] else { panic!("one result") };
    assert_eq!(missing.why(), "`refund` is missing");
    assert_eq!(missing.classification.scores[0].name, "tone");
    let [json] = &reader.case(&lanes[0], "json").unwrap()[..] else { panic!("one result") };
    assert_eq!(json.why(), "/b: expected 3, got 2");
    let [dead] = &reader.case(&lanes[1], "pass").unwrap()[..] else { panic!("one result") };
    assert_eq!(dead.why(), "exit code 3: boom");
    let [wrong] = &reader.case(&lanes[3], "wrong").unwrap()[..] else { panic!("one result") };
    assert_eq!(wrong.why(), "chosen: zip; expected: tar");
}

/// The store has the format before there were variants: two lanes, one of which ended in errors.
#[test]
fn a_store_without_variants_keeps_its_lanes_and_their_results() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("old.db");
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/format5.db");
    std::fs::copy(fixture, &path).unwrap();
    let reader = Reader::open(&path).unwrap();
    let run = reader.find("latest").unwrap();
    let view = reader.view(&run, 1.0).unwrap();
    let shown: Vec<String> = view
        .lanes
        .iter()
        .map(|it| {
            let Verdicts { pass, fail, error, .. } = it.metrics.all.verdicts;
            format!("{}: {pass} {fail} {error}, {} calls", it.title(), it.metrics.calls)
        })
        .collect();
    assert_eq!(shown, ["words on echo: 1 1 0, 2 calls", "words on dead: 0 0 2, 2 calls"]);
    let lanes = reader.lanes(&run).unwrap();
    assert!(lanes.iter().all(|it| it.lane.variant.is_none() && it.calls == 2));
    // The same lane is found again by whoever goes on with the run, and a removed run takes its
    // results with it.
    let mut recorder = Recorder::resume(&path, &run.run_id).unwrap();
    assert_eq!(recorder.mark_stale(&lanes[0].lane, |id, _| id == "pass").unwrap(), 1);
    recorder.close();
    assert_eq!(reader.tally(&lanes[0]).unwrap().total(), 1);
    let run = reader.find("latest").unwrap();
    reader.remove(&run.run_id).unwrap();
    assert_eq!(reader.tally(&lanes[1]).unwrap().total(), 0);
}

#[test]
fn a_store_that_is_looked_at_is_not_written_to() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    assert!(matches!(Reader::open_to_look(&path), Err(StoreError::Missing { .. })));
    let mut recorder = create(&path);
    write(&mut recorder, vec![started(), finished(record("a", Verdict::Pass))]);
    let reader = Reader::open_to_look(&path).unwrap();
    let run = reader.find("latest").unwrap();
    let lane = reader.lanes(&run).unwrap().remove(0);
    assert_eq!(reader.standing(&lane).unwrap().verdicts.pass, 1);
    let version = reader.data_version().unwrap();
    assert_eq!(reader.data_version().unwrap(), version);
    write(&mut recorder, vec![finished(record("b", Verdict::Fail))]);
    assert_ne!(reader.data_version().unwrap(), version);
    assert_eq!(reader.standing(&lane).unwrap().verdicts.fail, 1);
    recorder.close();
    assert!(matches!(reader.remove(&run.run_id), Err(StoreError::Write(_))));
}
