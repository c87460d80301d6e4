//! What is recorded is what is read back, or an error.

use std::{path::Path, sync::Arc};

use probity_core::{
    case::{Category, TestCase},
    classification::Verdict,
    details::CommandDetails,
    event::{CaseKey, Event, Stamped},
    metrics::Verdicts,
    record::{Aborted, CaseRecord, Imported, Lane, LaneStatus, RunInfo, RunStatus, Spent},
    request::Request,
};
use probity_store::{CaseQuery, NewRun, Reader, Recorder, record_whole};

use crate::common::{create, finished, lane, record, started, write};

#[test]
fn a_record_comes_back_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/er/x.db");
    let mut recorder = create(&path);
    write(&mut recorder, vec![started(), finished(record("a", Verdict::Pass))]);
    let reader = Reader::open(&path).unwrap();
    let run = reader.find("latest").unwrap();
    assert_eq!((run.status, run.short()), (RunStatus::Running, "abcdef"));
    assert_eq!(run.info.probity_version, "0.2");
    let lanes = reader.lanes(&run).unwrap();
    assert_eq!((&lanes[0].lane, &lanes[0].status), (&lane(), &None));
    let [case] = &reader.case(&lanes[0], "a").unwrap()[..] else { panic!("one result") };
    assert_eq!(*case, record("a", Verdict::Pass));
    let mut facts = Vec::new();
    reader.facts(&lanes[0], |it| facts.push(it)).unwrap();
    assert_eq!(facts[0].scores[0].value, Some(0.25));
    assert_eq!(facts[0].category, Some(Category::named("odds, ends")));
    assert!(facts[0].breaks_policy);
    assert!(facts[0].evidence.is_some());
}

#[test]
fn a_prompt_that_is_that_of_the_case_stands_in_the_store_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let prompt = "a prompt of zebras ".repeat(1000);
    let mut asked = record("a", Verdict::Pass);
    asked.case = Arc::new(TestCase { prompt: prompt.clone().into(), ..(*asked.case).clone() });
    asked.request = Request::new(Some("be brief".into()), prompt);
    let mut recorder = create(&path);
    write(&mut recorder, vec![started(), finished(asked.clone())]);
    recorder.close();
    let read = || {
        let reader = Reader::open(&path).unwrap();
        let lanes = reader.lanes(&reader.find("latest").unwrap()).unwrap();
        reader.case(&lanes[0], "a").map(|mut it| it.pop())
    };
    assert_eq!(read().unwrap(), Some(asked));
    let found = |word: &str| {
        let reader = Reader::open(&path).unwrap();
        let lanes = reader.lanes(&reader.find("latest").unwrap()).unwrap();
        let query = CaseQuery { words: vec![word.to_owned()], limit: 9, ..CaseQuery::default() };
        reader.cases_page(&[&lanes[0]], &query).unwrap().rows.len()
    };
    assert_eq!((found("ZEBRAS"), found("giraffes")), (1, 0));
    let connection = rusqlite::Connection::open(&path).unwrap();
    let stored =
        "SELECT (SELECT sum(length(prompt)) FROM results), (SELECT sum(length(text)) FROM texts)";
    let bytes = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
    let (prompts, texts) = connection.query_row(stored, [], bytes).unwrap();
    assert_eq!((prompts, texts / 19_000), (0, 1));
    connection.execute_batch("UPDATE results SET own_prompt = 1").unwrap();
    assert!(read().is_err(), "the prompt was lost");
}

#[test]
fn results_that_vanished_from_a_whole_run_are_missed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let mut recorder = create(&path);
    let all = ["a", "b", "c"].map(|id| finished(record(id, Verdict::Pass)));
    let status = LaneStatus::Complete;
    let ended =
        [Event::LaneFinished { lane: 0, status, calls: 3 }, Event::RunFinished { complete: true }];
    write(&mut recorder, [started()].into_iter().chain(all).chain(ended).collect());
    recorder.close();
    let view = || {
        let reader = Reader::open(&path).unwrap();
        reader.view(&reader.find("latest").unwrap(), 0.1)
    };
    assert!(view().is_ok());
    let sql = "DELETE FROM results WHERE case_id = 'b'";
    rusqlite::Connection::open(&path).unwrap().execute(sql, []).unwrap();
    assert_eq!(
        view().unwrap_err().to_string(),
        "r on b ended with 3 results, and 2 are left: the store is damaged"
    );
}

#[test]
fn a_whole_run_is_there_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let run = |id: &str, digest: &str| NewRun {
        run_id: format!("20261115-100000-{id}"),
        suite: "s".to_owned(),
        started_ms: 1_794_736_800_000,
        info: RunInfo {
            imported: Some(Imported {
                tool: "promptfoo".to_owned(),
                version: None,
                file: "out.json".to_owned(),
                digest: digest.to_owned(),
            }),
            ..RunInfo::default()
        },
    };
    let complete = || Event::LaneFinished { lane: 0, status: LaneStatus::Complete, calls: 0 };
    let events = |ids: &[&str]| -> Vec<Stamped> {
        let cases = ids.iter().map(|id| finished(record(id, Verdict::Pass)));
        let all = [started()].into_iter().chain(cases).chain([complete()]);
        let all = all.chain([Event::RunFinished { complete: true }]);
        all.map(|event| Stamped { at_ms: 1_794_736_801_000, event }).collect()
    };
    record_whole(&path, &run("first", "1"), &events(&["a", "b", "c"])).unwrap();
    let sabotage = "CREATE TRIGGER t BEFORE INSERT ON results WHEN NEW.case_id = 'bad'
                    BEGIN SELECT RAISE(ABORT, 'no'); END";
    rusqlite::Connection::open(&path).unwrap().execute_batch(sabotage).unwrap();
    let failed = record_whole(&path, &run("second", "2"), &events(&["a", "bad"]));
    assert!(failed.is_err());
    let reader = Reader::open(&path).unwrap();
    let runs = reader.runs().unwrap();
    assert_eq!(runs.len(), 1);
    assert_eq!(runs[0].status, RunStatus::Complete);
    assert_eq!(reader.run_tally(&runs[0]).unwrap().total(), 3);
    let found = |digest| reader.find_imported(digest).unwrap().map(|it| it.run_id);
    assert_eq!((found("1"), found("2")), (Some("20261115-100000-first".to_owned()), None));
}

#[test]
fn counts_are_made_from_the_records() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let mut recorder = create(&path);
    let key = |case_id: &str| CaseKey { lane: 0, case_id: case_id.to_owned(), repeat: 0 };
    let used = Spent { calls: 2, cost_usd: 0.5, ..Spent::default() };
    let aborted =
        |case_id| Event::CaseAborted { case: key(case_id), reason: Aborted::Interrupted, used };
    write(&mut recorder, vec![started(), aborted("a"), aborted("c"), aborted("d")]);
    write(
        &mut recorder,
        vec![finished(record("a", Verdict::Pass)), finished(record("b", Verdict::Error))],
    );
    let status = LaneStatus::Interrupted;
    write(&mut recorder, vec![Event::LaneFinished { lane: 0, status: status.clone(), calls: 9 }]);
    write(&mut recorder, vec![Event::RunFinished { complete: false }]);
    recorder.close();
    let reader = Reader::open(&path).unwrap();
    let run = reader.find("abc").unwrap();
    assert_eq!((run.status, run.finished_ms), (RunStatus::Incomplete, Some(1_794_736_801_000)));
    let lanes = reader.lanes(&run).unwrap();
    assert_eq!((lanes[0].status.as_ref(), lanes[0].calls), (Some(&status), 9));
    let tally = reader.tally(&lanes[0]).unwrap();
    let Verdicts { pass, fail, error, undecided } = tally.verdicts;
    assert_eq!((pass, fail, error, undecided, tally.total()), (1, 0, 1, 0, 2));
    // A case that came to an end after all was not given up.
    assert_eq!(reader.aborted(&lanes[0]).unwrap(), 2);
    // What it had used before stays counted.
    let cut_off = reader.cut_off(&lanes[0]).unwrap();
    assert_eq!((cut_off.calls, cut_off.cost_usd), (6, 1.5));
    assert_eq!(reader.ids_by_verdict(&run, &[Verdict::Error]).unwrap(), ["b"]);
}

#[test]
fn a_new_store_has_nothing_of_the_log_of_a_deleted_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let log = folder.path().join("x.db-wal");
    let mut recorder = create(&path);
    write(&mut recorder, vec![started(), finished(record("a", Verdict::Pass))]);
    // What a killed process leaves.
    let left = std::fs::read(&log).unwrap();
    recorder.close();
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&log, left).unwrap();
    let new = NewRun {
        run_id: "20261115-110000-second".to_owned(),
        suite: "s.toml".to_owned(),
        started_ms: 1_794_740_400_000,
        info: RunInfo::default(),
    };
    Recorder::create(&path, &new, []).unwrap().close();
    let reader = Reader::open(&path).unwrap();
    let runs: Vec<String> = reader.runs().unwrap().into_iter().map(|it| it.run_id).collect();
    assert_eq!(runs, [new.run_id]);
}

#[test]
fn a_lane_is_complete_when_everything_came_to_an_end() {
    for (status, expected) in [(LaneStatus::Complete, true), (LaneStatus::Interrupted, false)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let mut recorder = create(&path);
        write(&mut recorder, vec![started()]);
        write(&mut recorder, vec![Event::LaneFinished { lane: 0, status, calls: 0 }]);
        recorder.close();
        let reader = Reader::open(&path).unwrap();
        let lanes = reader.lanes(&reader.find("abc").unwrap()).unwrap();
        assert_eq!(lanes[0].is_complete(), expected);
    }
}

#[test]
fn lanes_are_read_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let mut recorder = create(&path);
    let lanes = ["a", "b", "c"].map(|name| Lane { backend: name.to_owned(), ..lane() });
    let run_id = "20261115-100000-abcdef".to_owned();
    let (lanes, done_before) = (lanes.to_vec(), vec![0; 3]);
    let mut events =
        vec![Event::RunStarted { version: 1, run_id, resumed: false, lanes, done_before }];
    // Neither the order of the events nor that of the alphabet is the order of the bytes.
    for (lane, case_id, repeat, command) in [
        (1, "é", 0, Some("ls")),
        (0, "z", 1, Some("pwd")),
        (0, "z", 0, None),
        (2, "Z", 0, Some("id")),
        (1, "z", 1, Some("pwd")),
    ] {
        let mut record = CaseRecord { repeat, ..record(case_id, Verdict::Fail) };
        let command = command.map(ToOwned::to_owned);
        let found = CommandDetails { command, ..CommandDetails::default() };
        record.classification.details.command = Some(Box::new(found));
        events.push(Event::CaseFinished { lane, record: Box::new(record) });
    }
    write(&mut recorder, events);
    let reader = Reader::open(&path).unwrap();
    let lanes = reader.lanes(&reader.find("latest").unwrap()).unwrap();
    let mut seen = Vec::new();
    let all: Vec<_> = lanes.iter().collect();
    reader
        .side_by_side(&all, |asked| {
            let shown = asked.answers.iter().map(|answer| match answer {
                None => "-".to_owned(),
                Some(answer) => answer.command.clone().unwrap_or_else(|| "none".to_owned()),
            });
            let shown: Vec<String> = shown.collect();
            seen.push(format!("{} {}: {}", asked.case_id, asked.repeat, shown.join(" ")));
        })
        .unwrap();
    assert_eq!(seen, ["Z 0: - - id", "z 0: none - -", "z 1: pwd pwd -", "é 0: - ls -"]);
}

#[test]
fn variants_of_a_runner_are_lanes_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let lanes: Vec<Lane> = [None, Some("terse"), Some("chatty")]
        .map(|it| Lane { variant: it.map(ToOwned::to_owned), ..lane() })
        .into();
    let started = |resumed| Event::RunStarted {
        version: 1,
        run_id: "20261115-100000-abcdef".to_owned(),
        resumed,
        lanes: lanes.clone(),
        done_before: vec![0; 3],
    };
    let finished =
        |lane, id| Event::CaseFinished { lane, record: Box::new(record(id, Verdict::Pass)) };
    let mut recorder = create(&path);
    write(
        &mut recorder,
        vec![started(false), finished(0, "a"), finished(1, "a"), finished(1, "b")],
    );
    let mut ledger = recorder.ledger(&lanes).unwrap();
    ledger.begun(1, 7).unwrap();
    drop((ledger, recorder));
    let mut recorder = Recorder::resume(&path, "20261115-100000-abcdef").unwrap();
    let begun: Vec<Option<u64>> = lanes.iter().map(|it| recorder.begun_before(it)).collect();
    assert_eq!(begun, [Some(0), Some(7), Some(0)]);
    recorder.set_calls([(&lanes[1], 7)]).unwrap();
    assert_eq!(recorder.mark_stale(&lanes[1], |id, _| id == "a").unwrap(), 1);
    write(&mut recorder, vec![started(true), finished(2, "b")]);
    let reader = Reader::open(&path).unwrap();
    let seen: Vec<(String, u64, u64)> = reader
        .lanes(&reader.find("latest").unwrap())
        .unwrap()
        .iter()
        .map(|it| (it.lane.key().to_string(), it.calls, reader.tally(it).unwrap().total()))
        .collect();
    let expected = [("r on b", 0, 1), ("r/terse on b", 7, 1), ("r/chatty on b", 0, 1)];
    assert_eq!(seen, expected.map(|(name, calls, total)| (name.to_owned(), calls, total)));
}

#[test]
fn a_new_store_has_large_pages_and_an_old_one_keeps_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let pages = |path: &Path| -> u32 {
        let connection = rusqlite::Connection::open(path).unwrap();
        connection.query_row("PRAGMA page_size", [], |row| row.get(0)).unwrap()
    };
    let (new, old) = (folder.path().join("new.db"), folder.path().join("old.db"));
    drop(create(&new));
    assert_eq!(pages(&new), 16 << 10);
    let connection = rusqlite::Connection::open(&old).unwrap();
    connection
        .execute_batch("PRAGMA page_size = 4096; PRAGMA journal_mode = WAL; VACUUM;")
        .unwrap();
    drop(connection);
    drop(create(&old));
    assert_eq!(pages(&old), 4096);
}
