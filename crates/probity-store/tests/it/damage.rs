//! What a disk has changed is an error, and not a result.

use std::path::Path;

use probity_core::{
    classification::Verdict,
    event::Event,
    record::{CaseRecord, Lane, LaneStatus},
};
use probity_store::{Reader, Recorder, StoreError};
use rusqlite::{Connection, config::DbConfig};

use crate::common::{create, finished, full, lane, record, started, write};

#[test]
fn a_row_that_was_changed_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let mut recorder = create(&path);
    write(&mut recorder, vec![started(), finished(record("a", Verdict::Error))]);
    recorder.close();
    let reader = || Reader::open(&path).unwrap();
    let lanes = reader().lanes(&reader().find("latest").unwrap()).unwrap();
    let change = |sql: &str| {
        rusqlite::Connection::open(&path).unwrap().execute(sql, []).unwrap();
    };
    change("UPDATE results SET verdict = 'pass', class = 'pass'");
    let error = reader().metrics(&lanes[0]).unwrap_err();
    let cause = error.to_string();
    assert!(cause.contains("result `a` is damaged"), "{cause}");
    change("UPDATE results SET verdict = 'error', class = 'error'");
    assert!(reader().metrics(&lanes[0]).is_ok());
    change("UPDATE results SET prompt = 'another'");
    let error = reader().case(&lanes[0], "a").unwrap_err();
    let cause = error.to_string();
    assert!(cause.contains("its texts are not what was written"), "{cause}");
}

/// Changes every column of some tables but for those of `others`, one at a time: reading has to fail.
fn change_each(
    path: &Path,
    tables: &[&str],
    others: &[&str],
    is_error: impl Fn() -> bool,
) -> usize {
    let connection = Connection::open(path).unwrap();
    connection.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
    let mut columns = connection.prepare("SELECT name, type FROM pragma_table_info(?)").unwrap();
    let mut changed = 0;
    for table in tables {
        let names = columns.query_map([table], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        let names: Vec<(String, String)> = names.map(Result::unwrap).collect();
        for (name, kind) in names.iter().filter(|(name, _)| !others.contains(&name.as_str())) {
            let other = match kind.as_str() {
                "TEXT" => format!("coalesce({name}, '') || ' '"),
                "BLOB" => "randomblob(16)".to_owned(),
                _ => format!("coalesce({name}, 0) = 0"),
            };
            let sql = format!("UPDATE {table} SET {name} = {other}");
            let kept = path.with_extension("kept");
            let _ = std::fs::remove_file(&kept);
            connection.execute("VACUUM INTO ?", [kept.to_str().unwrap()]).unwrap();
            connection.execute_batch(&sql).unwrap();
            assert!(is_error(), "{table}.{name} was changed");
            let put_back = format!(
                "ATTACH '{}' AS kept; DELETE FROM {table}; \
                 INSERT INTO {table} SELECT * FROM kept.{table}; DETACH kept",
                kept.display()
            );
            connection.execute_batch(&put_back).unwrap();
            changed += 1;
        }
    }
    changed
}

#[test]
fn damage_to_any_part_of_a_result_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let mut recorder = create(&path);
    write(&mut recorder, vec![started(), finished(full())]);
    recorder.close();
    let read = || {
        let reader = Reader::open(&path).unwrap();
        let lanes = reader.lanes(&reader.find("latest").unwrap()).unwrap();
        reader.cases(&lanes[0], |_| Ok(()))?;
        reader.case(&lanes[0], "a").map(|mut it| it.pop())
    };
    assert_eq!(read().unwrap(), Some(full()));
    // What belongs to the place of a result, and whether it counts.
    let others = ["id", "lane", "result", "place", "stale", "hash", "definition", "system"];
    let tables = ["results", "scores", "asked", "texts"];
    let changed = change_each(&path, &tables, &others, || read().is_err());
    assert!(changed > 50, "{changed}");
    assert_eq!(read().unwrap(), Some(full()));
    Connection::open(&path).unwrap().execute_batch("DELETE FROM scores").unwrap();
    assert!(read().is_err());
}

/// A store with a run of two lanes, one of which no longer counts.
fn two_lanes(path: &Path) -> Recorder {
    let others = Lane { backend: "other".to_owned(), ..lane() };
    let begun = |lanes: Vec<Lane>| Event::RunStarted {
        version: 1,
        run_id: "20261115-100000-abcdef".to_owned(),
        resumed: false,
        done_before: vec![0; lanes.len()],
        lanes,
    };
    let mut recorder = create(path);
    recorder.ledger([&lane(), &others]).unwrap();
    write(&mut recorder, vec![begun(vec![lane(), others])]);
    write(&mut recorder, vec![begun(vec![lane()]), finished(record("a", Verdict::Pass))]);
    recorder
}

fn lanes(path: &Path) -> Result<usize, StoreError> {
    let reader = Reader::open(path)?;
    reader.runs()?;
    Ok(reader.lanes(&reader.find("latest")?)?.len())
}

#[test]
fn damage_to_any_part_of_a_run_or_a_lane_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    two_lanes(&path).close();
    assert_eq!(lanes(&path).unwrap(), 1);
    let listed = || Reader::open(&path).unwrap().listed(None);
    let runs =
        change_each(&path, &["runs"], &["id"], || lanes(&path).is_err() && listed().is_err());
    let changed = runs + change_each(&path, &["lanes"], &["id"], || lanes(&path).is_err());
    assert_eq!(changed, 17);
    assert_eq!(lanes(&path).unwrap(), 1);
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch("UPDATE runs SET suite = 't.toml'").unwrap();
    let error = listed().unwrap_err();
    assert!(error.hint().is_some_and(|it| it.contains("runs rm")));
    let cause = error.to_string();
    let expected =
        "run `20261115-100000-abcdef` is damaged: what is stored of it is not what was written";
    assert!(cause.contains(expected), "{cause}");
    connection
        .execute_batch("UPDATE runs SET suite = 's.toml'; DELETE FROM lanes WHERE retired = 0")
        .unwrap();
    let error = lanes(&path).unwrap_err();
    let cause = error.to_string();
    assert!(cause.contains("0 of its 1 lanes are there"), "{cause}");
    let reader = Reader::open(&path).unwrap();
    reader.remove(&reader.full_name("abcdef").unwrap()).unwrap();
    assert!(reader.listed(None).unwrap().is_empty());
}

/// Whatever the recorder writes, what is stored of runs and lanes has the sum of what is there.
#[test]
fn sums_are_renewed_with_every_change() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let mut recorder = create(&path);
    let check = |expected: usize| {
        let unsealed = "SELECT (SELECT count(*) FROM runs WHERE sum IS NULL) + (SELECT count(*) FROM lanes WHERE sum IS NULL)";
        let unsealed: i64 =
            Connection::open(&path).unwrap().query_row(unsealed, [], |row| row.get(0)).unwrap();
        assert_eq!((lanes(&path).unwrap(), unsealed), (expected, 0));
    };
    check(0);
    recorder.ledger([&lane()]).unwrap();
    check(1);
    write(&mut recorder, vec![started()]);
    check(1);
    recorder.set_calls([(&lane(), 4)]).unwrap();
    recorder.set_planned(0, 1).unwrap();
    check(1);
    let status = LaneStatus::Complete;
    write(&mut recorder, vec![Event::LaneFinished { lane: 0, status, calls: 1 }]);
    write(&mut recorder, vec![Event::RunFinished { complete: true }]);
    recorder.close();
    check(1);
    let mut recorder = Recorder::resume(&path, "20261115-100000-abcdef").unwrap();
    check(1);
    // A lane more, and its process is killed before the run has begun again.
    recorder.ledger([&lane(), &Lane { backend: "other".to_owned(), ..lane() }]).unwrap();
    check(2);
}

/// What was written before there were such sums is read, and protected once it is changed.
#[test]
fn sums_of_earlier_formats_hold() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("old.db");
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/format14.db");
    std::fs::copy(fixture, &path).unwrap();
    let read = || -> Result<Vec<CaseRecord>, StoreError> {
        let reader = Reader::open(&path).unwrap();
        let lanes = reader.lanes(&reader.find("latest")?)?;
        let mut all = Vec::new();
        for lane in &lanes {
            reader.cases(lane, |it| {
                all.push(it);
                Ok(())
            })?;
        }
        Ok(all)
    };
    let whole = read().unwrap();
    assert_eq!(whole.len(), 4);
    assert!(whole.iter().any(|it| !it.asked.is_empty()));
    // The results have sums, and these are looked at.
    let others = ["id", "lane", "result", "place", "stale", "hash", "definition", "system"];
    let changed = change_each(&path, &["results"], &others, || read().is_err());
    assert!(changed > 30, "{changed}");
    let run = Reader::open(&path).unwrap().find("latest").unwrap();
    Recorder::resume(&path, &run.run_id).unwrap().close();
    assert_eq!(read().unwrap(), whole);
    Connection::open(&path).unwrap().execute_batch("UPDATE runs SET suite = suite || '2'").unwrap();
    assert!(read().is_err());
}

/// Lists of cases are read from an index, so that it must not differ from the results.
#[test]
fn damage_to_the_index_of_outcomes_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let mut recorder = create(&path);
    let results = [("a", Verdict::Pass), ("b", Verdict::Fail), ("c", Verdict::Fail)];
    let results = results.map(|(id, verdict)| finished(record(id, verdict)));
    write(&mut recorder, [started()].into_iter().chain(results).collect());
    recorder.close();
    let view = || {
        let reader = Reader::open(&path).unwrap();
        reader.view(&reader.find("latest").unwrap(), 1.0).map(|it| it.lanes[0].metrics.results())
    };
    assert_eq!(view().unwrap(), 3);
    // SQLite takes the table for one that has no such index, so its entries stay as they are.
    let connection = Connection::open(&path).unwrap();
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, false).unwrap();
    let index = "type = 'index' AND name = 'results_by_outcome'";
    let sql: String = connection
        .query_row(&format!("SELECT sql FROM sqlite_schema WHERE {index}"), [], |row| row.get(0))
        .unwrap();
    let root: i64 = connection
        .query_row(&format!("SELECT rootpage FROM sqlite_schema WHERE {index}"), [], |row| {
            row.get(0)
        })
        .unwrap();
    connection
        .execute_batch(&format!(
            "PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE {index}"
        ))
        .unwrap();
    drop(connection);
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch("DELETE FROM results WHERE case_id = 'b'").unwrap();
    connection.execute_batch("PRAGMA writable_schema = ON").unwrap();
    connection
        .execute(
            "INSERT INTO sqlite_schema VALUES ('index', 'results_by_outcome', 'results', ?, ?)",
            (root, sql),
        )
        .unwrap();
    drop(connection);
    let error = view().unwrap_err().to_string();
    assert!(error.contains("lane `r on b` is damaged"), "{error}");
}
