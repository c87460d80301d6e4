//! The tables, and how older ones become today's.

use std::{path::Path, time::Duration};

use rusqlite::{Connection, config::DbConfig};

use crate::{StoreError, browse, upgrade};

/// How long to wait for another process that is writing.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// What a new store is made with.
const NEWEST: &str = include_str!("schema/newest.sql");

/// One step from each format to the next, for stores that are there. Steps that have been released never change.
const MIGRATIONS: &[&str] = &[
    "
    CREATE TABLE runs (
        id INTEGER PRIMARY KEY,
        run_id TEXT NOT NULL UNIQUE,
        suite TEXT NOT NULL,
        started_ms INTEGER NOT NULL,
        finished_ms INTEGER,
        status TEXT NOT NULL,
        info TEXT NOT NULL
    ) STRICT;

    CREATE TABLE lanes (
        id INTEGER PRIMARY KEY,
        run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
        runner TEXT NOT NULL,
        backend TEXT NOT NULL,
        info TEXT NOT NULL,
        status TEXT,
        calls INTEGER NOT NULL DEFAULT 0,
        UNIQUE (run, runner, backend)
    ) STRICT;

    -- Texts that many records share, by their hash: cases, instructions.
    CREATE TABLE texts (
        id INTEGER PRIMARY KEY,
        hash BLOB NOT NULL UNIQUE,
        text TEXT NOT NULL
    ) STRICT;

    CREATE TABLE results (
        id INTEGER PRIMARY KEY,
        lane INTEGER NOT NULL REFERENCES lanes(id) ON DELETE CASCADE,
        case_id TEXT NOT NULL,
        repeat INTEGER NOT NULL,
        input BLOB NOT NULL,
        definition INTEGER NOT NULL REFERENCES texts(id),
        system INTEGER REFERENCES texts(id),
        prompt TEXT NOT NULL,
        reply TEXT,
        error TEXT,
        stop_reason TEXT,
        model TEXT,
        source TEXT NOT NULL,
        latency_ms INTEGER NOT NULL,
        input_tokens INTEGER,
        output_tokens INTEGER,
        cached_tokens INTEGER,
        cost_usd REAL,
        calls INTEGER NOT NULL,
        failures TEXT,
        started_ms INTEGER NOT NULL,
        elapsed_ms INTEGER NOT NULL,
        class TEXT NOT NULL,
        verdict TEXT NOT NULL,
        classification TEXT NOT NULL,
        -- 1: the case is no longer in the dataset, so it does not count.
        stale INTEGER NOT NULL DEFAULT 0,
        UNIQUE (lane, case_id, repeat)
    ) STRICT;

    -- Cases that had begun and were given up.
    CREATE TABLE aborted (
        lane INTEGER NOT NULL REFERENCES lanes(id) ON DELETE CASCADE,
        case_id TEXT NOT NULL,
        repeat INTEGER NOT NULL,
        reason TEXT NOT NULL,
        at_ms INTEGER NOT NULL,
        PRIMARY KEY (lane, case_id, repeat)
    ) STRICT, WITHOUT ROWID;
    ",
    // A lane that a resumed run no longer has is kept, and does not count.
    "ALTER TABLE lanes ADD COLUMN retired INTEGER NOT NULL DEFAULT 0;",
    // The questions of cases that ask several.
    "
    CREATE TABLE asked (
        result INTEGER NOT NULL REFERENCES results(id) ON DELETE CASCADE,
        place INTEGER NOT NULL,
        role TEXT NOT NULL,
        backend TEXT NOT NULL,
        system INTEGER REFERENCES texts(id),
        prompt TEXT NOT NULL,
        reply TEXT,
        error TEXT,
        model TEXT,
        source TEXT NOT NULL,
        latency_ms INTEGER NOT NULL,
        input_tokens INTEGER,
        output_tokens INTEGER,
        cached_tokens INTEGER,
        cost_usd REAL,
        calls INTEGER NOT NULL,
        PRIMARY KEY (result, place)
    ) STRICT, WITHOUT ROWID;
    ",
    // What figures are made of stands in columns, scores in a table, and sums tell of damage. What
    // can be known of older results is filled in by `upgrade`.
    "
    ALTER TABLE results ADD COLUMN request TEXT;
    ALTER TABLE results ADD COLUMN reasoning TEXT;
    ALTER TABLE results ADD COLUMN error_kind TEXT;
    ALTER TABLE results ADD COLUMN usage_estimated INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE results ADD COLUMN policy_hits INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE results ADD COLUMN category TEXT;
    ALTER TABLE results ADD COLUMN tags TEXT;
    ALTER TABLE results ADD COLUMN case_group TEXT;
    ALTER TABLE results ADD COLUMN evidence TEXT;
    ALTER TABLE results ADD COLUMN facts_sum INTEGER;
    ALTER TABLE results ADD COLUMN texts_sum INTEGER;
    ALTER TABLE asked ADD COLUMN request TEXT;
    ALTER TABLE asked ADD COLUMN usage_estimated INTEGER NOT NULL DEFAULT 0;
    -- What the calls of a case that was cut off used.
    ALTER TABLE aborted ADD COLUMN calls INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE aborted ADD COLUMN input_tokens INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE aborted ADD COLUMN output_tokens INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE aborted ADD COLUMN cost_usd REAL NOT NULL DEFAULT 0.0;

    -- Every check of a result: which assertion fails most is a query.
    CREATE TABLE scores (
        result INTEGER NOT NULL REFERENCES results(id) ON DELETE CASCADE,
        place INTEGER NOT NULL,
        name TEXT NOT NULL,
        kind TEXT NOT NULL,
        value REAL,
        passed INTEGER NOT NULL,
        weight REAL NOT NULL,
        reason TEXT,
        span_start INTEGER,
        span_end INTEGER,
        PRIMARY KEY (result, place)
    ) STRICT, WITHOUT ROWID;
    ",
    // Sums are over every part of a result. Those of before are over less, so they go.
    "
    ALTER TABLE results ADD COLUMN asked_sum INTEGER;
    UPDATE results SET facts_sum = NULL, texts_sum = NULL;
    ",
    // Times of replies that are read while they are written.
    "
    ALTER TABLE results ADD COLUMN ttft_ms INTEGER;
    ALTER TABLE results ADD COLUMN tokens_per_second REAL;
    UPDATE results SET facts_sum = NULL;
    -- Lanes are told apart by their prompt variants, too. A constraint cannot be changed, so the
    -- table is made anew.
    CREATE TABLE lanes_of_6 (
        id INTEGER PRIMARY KEY,
        run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
        runner TEXT NOT NULL,
        -- Empty if the runner has no variants.
        variant TEXT NOT NULL DEFAULT '',
        backend TEXT NOT NULL,
        info TEXT NOT NULL,
        status TEXT,
        calls INTEGER NOT NULL DEFAULT 0,
        retired INTEGER NOT NULL DEFAULT 0,
        UNIQUE (run, runner, variant, backend)
    ) STRICT;
    INSERT INTO lanes_of_6 (id, run, runner, backend, info, status, calls, retired)
        SELECT id, run, runner, backend, info, status, calls, retired FROM lanes;
    DROP TABLE lanes;
    ALTER TABLE lanes_of_6 RENAME TO lanes;
    ",
    "
    -- What a conversation is made of.
    ALTER TABLE asked ADD COLUMN turn INTEGER;
    ALTER TABLE asked ADD COLUMN tool_calls TEXT;
    ALTER TABLE asked ADD COLUMN reasoning TEXT;
    ALTER TABLE asked ADD COLUMN stop_reason TEXT;
    ALTER TABLE asked ADD COLUMN logprobs TEXT;
    UPDATE results SET asked_sum = NULL;
    ",
    // How results came out can be counted, and pages of them found, without reading their texts.
    "
    CREATE INDEX results_by_outcome
        ON results (lane, verdict, class, stale, case_id, repeat, cost_usd);
    ",
    // What people say of results stands apart from what was measured. It is about a reply, not about a row: a case that is
    // asked again gets another row, and may get another reply.
    "
    CREATE TABLE remarks (
        id INTEGER PRIMARY KEY,
        lane INTEGER NOT NULL REFERENCES lanes(id) ON DELETE CASCADE,
        case_id TEXT NOT NULL,
        repeat INTEGER NOT NULL,
        reply BLOB NOT NULL,
        person TEXT NOT NULL,
        at_ms INTEGER NOT NULL,
        matter TEXT NOT NULL,
        -- The criterion or the tag; empty for other matters.
        about TEXT NOT NULL,
        -- Null if the person takes back what they said.
        value TEXT,
        -- The run that it was said of, where its result was judged again in this one.
        carried_from TEXT
    ) STRICT;
    CREATE INDEX remarks_by_result ON remarks (lane, case_id, repeat);
    ",
    // Scores that scorers name were told by the end of their kind.
    "
    ALTER TABLE scores ADD COLUMN named INTEGER NOT NULL DEFAULT 0;
    UPDATE scores SET named = 1, kind = substr(kind, 1, length(kind) - length(' figure'))
        WHERE kind LIKE '% figure';
    UPDATE results SET facts_sum = NULL;
    ",
    // Which runs have a tag is known without reading their results. `browse::collect` fills in what is there already.
    "
    CREATE TABLE lane_tags (
        lane INTEGER NOT NULL REFERENCES lanes(id) ON DELETE CASCADE,
        tag TEXT NOT NULL,
        PRIMARY KEY (lane, tag)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX lane_tags_by_tag ON lane_tags (tag, lane);
    CREATE TRIGGER tags_of_result AFTER INSERT ON results WHEN NEW.tags IS NOT NULL AND NEW.stale = 0 BEGIN
        INSERT INTO lane_tags (lane, tag) SELECT DISTINCT NEW.lane, value FROM json_each(NEW.tags)
        WHERE NOT EXISTS (SELECT 1 FROM lane_tags t WHERE t.lane = NEW.lane AND t.tag = value);
    END;
    ",
    // What scorers say on scales of their own.
    "
    ALTER TABLE scores ADD COLUMN said REAL;
    UPDATE results SET facts_sum = NULL;
    ",
    // Calls may be made by workers on other machines.
    "
    ALTER TABLE results ADD COLUMN worker TEXT;
    UPDATE results SET facts_sum = NULL;
    -- How the workers of a run stood when they were last looked at.
    CREATE TABLE crews (
        run INTEGER PRIMARY KEY REFERENCES runs(id) ON DELETE CASCADE,
        at_ms INTEGER NOT NULL,
        crew TEXT NOT NULL
    ) STRICT;
    ",
    // A prompt that is that of its case stands in the case only. Because of the trigger, SQLite kept a copy of every page that a
    // result was put into.
    "
    ALTER TABLE results ADD COLUMN own_prompt INTEGER NOT NULL DEFAULT 1;
    DROP TRIGGER tags_of_result;
    ",
    // Runs and lanes have sums, too, and a run knows how many lanes it has. Rows of before have neither.
    "
    ALTER TABLE runs ADD COLUMN lane_count INTEGER;
    ALTER TABLE runs ADD COLUMN sum INTEGER;
    ALTER TABLE lanes ADD COLUMN sum INTEGER;
    ",
];

/// The newest format that this program knows.
const KNOWN: i64 = 15;

/// What a database of ours holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Runs.
    Store,
    /// Answers.
    Cache,
}

impl Content {
    /// What tells it from databases of other programs.
    pub(crate) const fn application_id(self) -> i32 {
        match self {
            Self::Store => i32::from_be_bytes(*b"Prbs"),
            Self::Cache => i32::from_be_bytes(*b"Prbc"),
        }
    }

    /// The columns by which one is known that was made before there was an id.
    const fn columns(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Store => &[("lanes", "backend"), ("results", "case_id"), ("runs", "run_id")],
            Self::Cache => &[("answers", "answer"), ("answers", "at_ms"), ("answers", "key")],
        }
    }
}

/// Whether a database is what it is taken for, or empty. It is only read.
pub(crate) fn is_ours(connection: &Connection, content: Content) -> rusqlite::Result<bool> {
    connection.busy_timeout(PATIENCE)?;
    let id: i32 = connection.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    if id != 0 {
        return Ok(id == content.application_id());
    }
    let count = "SELECT count(*) FROM sqlite_schema";
    if connection.query_row(count, [], |row| row.get::<_, i64>(0))? == 0 {
        return Ok(true);
    }
    let mut has = connection.prepare("SELECT 1 FROM pragma_table_info(?) WHERE name = ?")?;
    for column in content.columns() {
        if !has.exists(*column)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a store has the newest format.
pub(crate) fn is_current(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("PRAGMA user_version", [], |row| Ok(row.get::<_, i64>(0)? == KNOWN))
}

/// Readers do not wait for the writer, and what is committed survives a power cut.
pub(crate) fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(PATIENCE)?;
    // Without this a statement is planned anew for each value that it is asked with.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;",
    )
}

/// Brings a store to today's format. A newer one is refused, and left as it is.
pub(crate) fn migrate(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let failed = |source| StoreError::Open { path: path.to_owned(), source };
    let version = || connection.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0));
    let found = version().map_err(failed)?;
    if found > KNOWN {
        return Err(StoreError::Newer { path: path.to_owned(), found, known: KNOWN });
    }
    if found == KNOWN {
        return Ok(());
    }
    let upgrade = || {
        connection.execute_batch("BEGIN IMMEDIATE")?;
        // Another process may have been faster.
        let found = usize::try_from(version()?).unwrap_or(0);
        if found == 0 {
            connection.execute_batch(NEWEST)?;
            connection.pragma_update(None, "application_id", Content::Store.application_id())?;
        } else {
            step_by_step(connection, found)?;
        }
        connection.pragma_update(None, "user_version", KNOWN)?;
        connection.execute_batch("COMMIT")
    };
    // While they are enforced, a table that is made anew takes with it all that refers to it. They
    // can only be switched outside of a transaction.
    let enforce = |on: bool| connection.pragma_update(None, "foreign_keys", on);
    enforce(false).map_err(failed)?;
    upgrade().map_err(failed)?;
    enforce(true).map_err(failed)
}

/// Brings the tables of a store from a format to today's.
fn step_by_step(connection: &Connection, format: usize) -> rusqlite::Result<()> {
    for step in MIGRATIONS.iter().skip(format) {
        connection.execute_batch(step)?;
    }
    if format < 4 {
        upgrade::fill_columns(connection)?;
    }
    if format < 11 {
        browse::collect(connection, None)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything that SQLite knows of the tables, whatever words they were made with, and in whatever order their columns
    /// stand.
    fn shape(connection: &Connection) -> Vec<String> {
        let mut rows = connection
            .prepare(
                "SELECT l.name, l.type, l.ncol, l.wr, l.strict,
                     (SELECT json_group_array(json_array(name, type, \"notnull\", dflt_value, pk, hidden))
                      FROM (SELECT * FROM pragma_table_xinfo(l.name) ORDER BY name)) AS columns,
                     (SELECT json_group_array(json_array(\"table\", \"from\", \"to\", on_update, on_delete))
                      FROM pragma_foreign_key_list(l.name)) AS refers,
                     (SELECT json_group_array(json_array(i.name, i.\"unique\", i.origin, i.partial,
                          (SELECT json_group_array(json_array(name, \"desc\", coll, key)) FROM pragma_index_xinfo(i.name))))
                      FROM (SELECT * FROM pragma_index_list(l.name) ORDER BY name) i) AS indexes,
                     (SELECT group_concat(sql) FROM sqlite_schema s WHERE s.type = 'trigger' AND s.tbl_name = l.name) AS triggers
                 FROM pragma_table_list l WHERE l.schema = 'main' AND l.name NOT LIKE 'sqlite_%' ORDER BY l.name",
            )
            .unwrap();
        let columns = rows.column_count();
        let mut found = rows.query([]).unwrap();
        let mut shape = Vec::new();
        while let Some(row) = found.next().unwrap() {
            let values = (0..columns).map(|at| row.get::<_, rusqlite::types::Value>(at).unwrap());
            shape.push(format!("{:?}", values.collect::<Vec<_>>()));
        }
        shape
    }

    #[test]
    fn a_new_store_has_the_tables_of_one_that_grew_old() {
        let new = Connection::open_in_memory().unwrap();
        migrate(&new, Path::new("memory")).unwrap();
        let old = Connection::open_in_memory().unwrap();
        step_by_step(&old, 0).unwrap();
        let shape_of_new = shape(&new);
        assert_eq!(shape_of_new.len(), 10);
        assert_eq!(shape_of_new, shape(&old));
    }

    #[test]
    fn each_format_has_its_step() {
        assert_eq!(i64::try_from(MIGRATIONS.len()), Ok(KNOWN));
    }

    #[test]
    fn a_database_of_another_program_is_told_apart() {
        let check = |sql: &str, store: bool, cache: bool| {
            let connection = Connection::open_in_memory().unwrap();
            connection.execute_batch(sql).unwrap();
            assert_eq!(is_ours(&connection, Content::Store), Ok(store), "{sql}");
            assert_eq!(is_ours(&connection, Content::Cache), Ok(cache), "{sql}");
        };
        let id = |content: Content| format!("PRAGMA application_id = {}", content.application_id());
        check("", true, true);
        check("CREATE TABLE mydata (x)", false, false);
        check("CREATE TABLE answers (question, answer)", false, false);
        check("CREATE TABLE answers (key, answer, at_ms)", false, true);
        check(MIGRATIONS[0], true, false);
        check("PRAGMA application_id = 7", false, false);
        check(&id(Content::Store), true, false);
        check(&id(Content::Cache), false, true);
    }

    #[test]
    fn a_store_of_any_earlier_format_keeps_its_rows() {
        for format in 1..MIGRATIONS.len() {
            let connection = Connection::open_in_memory().unwrap();
            MIGRATIONS[..format].iter().for_each(|step| connection.execute_batch(step).unwrap());
            connection.pragma_update(None, "user_version", format).unwrap();
            let lane = "INSERT INTO runs (id, run_id, suite, started_ms, status, info) VALUES (1, 'r', 's', 0, 'complete', '{}');
                        INSERT INTO lanes (id, run, runner, backend, info) VALUES (1, 1, 'a', 'b', '{}');";
            connection.execute_batch(lane).unwrap();
            migrate(&connection, Path::new("memory")).unwrap();
            let lanes: i64 = connection
                .query_row("SELECT count(*) FROM lanes WHERE retired = 0", [], |row| row.get(0))
                .unwrap();
            assert_eq!(lanes, 1, "from format {format}");
        }
    }

    #[test]
    fn what_a_store_of_format_4_has_in_columns_is_not_looked_for_in_its_texts() {
        let connection = Connection::open_in_memory().unwrap();
        MIGRATIONS[..4].iter().for_each(|step| connection.execute_batch(step).unwrap());
        let result = "INSERT INTO runs VALUES (1, 'r', 's', 0, NULL, 'complete', '{}');
            INSERT INTO lanes (id, run, runner, backend, info) VALUES (1, 1, 'a', 'b', '{}');
            INSERT INTO texts VALUES (1, x'00', '{\"id\": \"a\"}');
            INSERT INTO results (lane, case_id, repeat, input, definition, prompt, source, latency_ms, calls,
                started_ms, elapsed_ms, class, verdict, classification, policy_hits, category)
            VALUES (1, 'a', 0, x'00', 1, '', 'backend', 0, 1, 0, 0, 'fail', 'fail', '{\"details\": {}}', 2, 'odds');
            PRAGMA user_version = 4;";
        connection.execute_batch(result).unwrap();
        migrate(&connection, Path::new("memory")).unwrap();
        let kept = "SELECT policy_hits, category FROM results";
        let kept = connection.query_row(kept, [], |row| Ok((row.get(0)?, row.get(1)?)));
        assert_eq!(kept, Ok((2_i64, Some("odds".to_owned()))));
    }
}
