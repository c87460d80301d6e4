//! What this program wrote, and somebody may have changed since.

use std::{io, ops::ControlFlow, path::PathBuf, sync::LazyLock};

use probity_core::{baseline::Baseline, evaluation::WrittenResult, json::Limits, request::Request};
use probity_grade::Rules;
use probity_offline::classify::{Settings, classify_all};
use probity_run::{
    backend::Ask,
    recording::{Answer, RecordingWriter, Replay},
};
use probity_store::{Reader, Recorder};
use rusqlite::{Connection, types::Value};

use crate::input::{Folder, check, choice};

/// A baseline: what is understood is written so that it is read back the same.
pub fn baseline(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match Baseline::parse(&text) {
        Ok(baseline) => {
            let written = baseline.render();
            assert_eq!(Baseline::parse(&written), Ok(baseline), "{written}");
        }
        Err(why) => assert!(!why.is_empty()),
    }
}

/// Summaries of runs: what is understood fits together, also when it is written and read again.
pub fn summary(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match WrittenResult::read(&text) {
        Ok(results) => {
            assert!(!results.is_empty());
            for result in &results {
                let WrittenResult::Whole(whole) = result else { continue };
                let written = serde_json::to_string(whole).expect("its keys are texts");
                let again = WrittenResult::read(&written);
                assert!(again.is_ok(), "{again:?}: {written}");
            }
        }
        Err(problems) => assert!(!problems.is_empty() && problems.iter().all(|it| !it.is_empty())),
    }
}

/// A recording, and what was asked: problems name the file, and an answer that is recorded again is given again.
pub fn recording(bytes: &[u8]) {
    thread_local! {
        static FOLDER: Folder = Folder::new();
    }
    FOLDER.with(|folder| {
        let path = folder.write("rec.jsonl", bytes);
        let recorded = match Replay::load(&path, "b") {
            Ok(recorded) => recorded,
            Err(error) => return assert!(error.to_string().contains("rec.jsonl"), "{error}"),
        };
        let request = Request::new(None, "p");
        let ask = Ask { request: &request, repeat: 0, about: None };
        let Ok(reply) = recorded.ask(&ask) else { return };
        let mut writer = RecordingWriter::new(Vec::new(), "r", "now").expect("memory takes it");
        let answer = Answer {
            backend: "b",
            case_id: "c",
            repeat: 0,
            request: &request,
            reply: Some(&reply.text),
            tool_calls: &reply.tool_calls,
            reasoning: reply.reasoning.as_deref(),
            logprobs: reply.logprobs.as_ref(),
            error: None,
            stop_reason: reply.stop_reason.as_deref(),
            model: reply.model.as_deref(),
            latency_ms: reply.latency.map_or(0, |it| u64::try_from(it.as_millis()).unwrap_or(0)),
            ttft_ms: reply.first_token.map(|it| u64::try_from(it.as_millis()).unwrap_or(0)),
            usage: reply.usage,
        };
        writer.add(&answer).expect("memory takes it");
        let path = folder.write("again.jsonl", &writer.finish().expect("memory takes it"));
        let again = Replay::load(&path, "b").expect("what we write can be read").ask(&ask);
        assert_eq!(again, Ok(reply));
    });
}

/// Results, a line each: what is classified is written as a line of JSON, and what is broken has a problem with a place.
pub fn stored(bytes: &[u8]) {
    static RULES: LazyLock<Rules> = LazyLock::new(Rules::default);
    let settings = Settings { rules: &RULES, name: "lines".into(), require_criteria: false };
    let mut output = Vec::new();
    let (mut problems, mut total, mut broken) = (0, 0, 0);
    let mut take = |mut done: probity_offline::pipeline::Done<_>, _| -> io::Result<_> {
        output.append(&mut done.output);
        let found: probity_offline::classify::Found = done.found;
        found.problems.iter().for_each(check);
        problems += found.problems.len();
        total += found.tally.total();
        broken += found.tally.broken;
        Ok(ControlFlow::Continue(()))
    };
    classify_all(&settings, 1, &mut &*bytes, &mut take).expect("memory can be read and written");
    assert_eq!(broken == 0, problems == 0);
    let lines: Vec<&[u8]> = output.split(|it| *it == b'\n').filter(|it| !it.is_empty()).collect();
    assert_eq!(lines.len() as u64, total);
    for line in lines {
        let line = std::str::from_utf8(line).expect("what we write is text");
        assert!(probity_core::json::parse(line, &Limits::default()).is_ok(), "{line}");
    }
}

/// What a killed process left beside a store: whatever it says, the run can be taken up, and what is counted then is read back.
pub fn ledger(bytes: &[u8]) {
    thread_local! {
        static STORE: Damaged = Damaged::new();
    }
    STORE.with(|Damaged { path, .. }| {
        let reader = Reader::open(path).expect("it is a store");
        let run = reader.find("latest").expect("it has a run");
        let lane = reader.lanes(&run).expect("it has lanes").remove(0).lane;
        let text = String::from_utf8_lossy(bytes);
        let lock = format!("{}.{}.lock", path.display(), run.run_id);
        std::fs::write(&lock, &*text).expect("the folder is ours");
        let resume = || Recorder::resume(path, &run.run_id).expect("nobody else is at work on it");
        let mut recorder = resume();
        let begun = recorder.begun_before(&lane).unwrap_or(0);
        // More than the store can count is nothing that a run has done.
        let Ok(()) = recorder.set_calls([(&lane, begun)]) else {
            return assert!(i64::try_from(begun).is_err());
        };
        let mut ledger = recorder.ledger([&lane]).expect("there is room");
        ledger.begun(0, 3).expect("there is room");
        drop((recorder, ledger));
        let recorder = resume();
        assert_eq!(recorder.begun_before(&lane), Some(begun + 3));
        recorder.close();
    });
}

/// A store in which one value is another: whoever reads it gets an error or a run, and no panic. The first two bytes choose the
/// value and its type.
pub fn store(bytes: &[u8]) {
    thread_local! {
        static STORE: Damaged = Damaged::new();
    }
    STORE.with(|store| {
        let Some((column, bytes)) = choice(bytes, &store.columns()) else { return };
        let Some((kind, bytes)) = choice(bytes, &[0, 0, 1, 2, 3]) else { return };
        let text = || String::from_utf8_lossy(bytes).into_owned();
        let value = match kind {
            0 => Value::Text(text()),
            1 => text().trim().parse().map_or(Value::Null, Value::Integer),
            2 => text().trim().parse().map_or(Value::Null, Value::Real),
            _ => Value::Blob(bytes.to_vec()),
        };
        store.read_with(column, &value);
    });
}

/// A table as it was. It becomes that again when this goes, also by a panic: the next input finds the store whole.
struct Kept<'a> {
    connection: &'a Connection,
    table: &'a str,
}

impl<'a> Kept<'a> {
    fn new(connection: &'a Connection, table: &'a str) -> Self {
        let sql = format!("CREATE TEMP TABLE kept AS SELECT * FROM {table}");
        connection.execute_batch(&sql).expect("it is SQL");
        Self { connection, table }
    }
}

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        let table = self.table;
        let sql = format!(
            "DELETE FROM {table}; INSERT INTO {table} SELECT * FROM temp.kept; DROP TABLE temp.kept"
        );
        self.connection.execute_batch(&sql).expect("it is SQL");
    }
}

/// A store with a value that can be changed.
struct Damaged {
    /// It goes when this goes.
    _folder: Folder,
    path: PathBuf,
    connection: Connection,
    columns: Vec<(String, String)>,
}

impl Damaged {
    fn new() -> Self {
        let folder = Folder::new();
        let old = include_bytes!("../../probity-store/tests/fixtures/format8.db");
        let path = folder.write("x.db", old);
        // Brings it to the format of today. Its results have no sums, so that changes are not found out by these alone.
        drop(Reader::open(&path).expect("it is a store"));
        let connection = Connection::open(&path).expect("it is a store");
        let fast = "PRAGMA foreign_keys = OFF; PRAGMA synchronous = OFF; PRAGMA ignore_check_constraints = ON";
        connection.execute_batch(fast).expect("SQLite knows these");
        let mut columns = Vec::new();
        for table in ["runs", "lanes", "results", "scores", "asked", "texts", "aborted", "remarks"]
        {
            let sql = format!("SELECT name FROM pragma_table_info('{table}')");
            let mut names = connection.prepare(&sql).expect("it is SQL");
            let names = names.query_map([], |row| row.get::<_, String>(0)).expect("it is SQL");
            columns.extend(names.map(|it| (table.to_owned(), it.expect("names are texts"))));
        }
        Self { _folder: folder, path, connection, columns }
    }

    fn columns(&self) -> Vec<usize> {
        (0..self.columns.len()).collect()
    }

    fn read_with(&self, column: usize, value: &Value) {
        let (table, name) = &self.columns[column];
        let kept = Kept::new(&self.connection, table);
        // What the schema forbids cannot be in a store.
        let changed = self.connection.execute(&format!("UPDATE {table} SET {name} = ?"), [value]);
        if changed.is_ok_and(|it| it > 0) {
            self.read();
        }
        drop(kept);
    }

    fn read(&self) {
        let Ok(reader) = Reader::open(&self.path) else { return };
        let Ok(runs) = reader.runs() else { return };
        for run in &runs {
            let _ = (reader.view(run, 0.1), reader.run_tally(run));
            for lane in reader.lanes(run).iter().flatten() {
                let _ = (reader.tally(lane), reader.metrics(lane), reader.changes([lane, lane]));
                let _ = (reader.aborted(lane), reader.last_error(lane), reader.cut_off(lane));
                let _ = reader.cases(lane, |_| Ok(()));
                let mut facts = 0_u64;
                if reader.facts(lane, |_| facts += 1).is_ok() {
                    let tally = reader.tally(lane).map(|it| it.total());
                    assert_eq!(tally.ok(), Some(facts));
                }
            }
        }
    }
}
