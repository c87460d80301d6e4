//! Stores that others write to or that fail, signals, kills, memory and time.

use std::{
    fs::{self, File},
    io, thread,
    time::{Duration, Instant},
};

use probity_testkit::{Answer, Latency, Rule, Script, When};
use rusqlite::Connection;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{Check, GATE, Trial, case, outcome, said, wait_until};

/// The one that takes longest comes first.
pub(super) const CHECKS: &[(&str, Check)] = &[
    ("34: a lock of more than 30 s loses answers that were paid for", long_lock),
    ("33: nothing hears a signal while reports are written", deaf),
    ("33: the second Ctrl-C waits for a store that is locked", second_signal),
    ("34: no call is told after a failure of the store", failed_store),
    ("35: rows that were deleted are not missed", deleted_rows),
    ("38: what waits is counted and not weighed", weighed),
    ("38: 300,000 problems in a line take a minute", problems),
    ("38: files are read without a limit", limits),
    ("38: a JSON Schema takes as long as it likes", slow_schema),
    ("39: a limit of calls is forgotten by kill -9", calls_over_kills),
    ("39: a call that could not be made for want of descriptors counts", descriptors),
    ("39: a byte order mark is refused", byte_order_mark),
    ("39: proxies apply to loopback, and merge blames the target", proxies),
];

const STORE: &str = ".probity/probity.db";

fn numbers(count: u32) -> String {
    (0..count).map(|at| case(&format!("c{at}"), &format!("say {at}"), &at.to_string())).collect()
}

/// Another program that writes to the store, until this is dropped.
fn locked(trial: &Trial<'_>) -> io::Result<Connection> {
    let store = Connection::open(trial.room.path(STORE)).map_err(io::Error::other)?;
    store.busy_timeout(Duration::from_secs(20)).map_err(io::Error::other)?;
    store.execute_batch("BEGIN IMMEDIATE").map_err(io::Error::other)?;
    Ok(store)
}

/// While nothing can be recorded, only so much is asked as can be kept in memory.
fn long_lock(trial: &mut Trial<'_>) -> io::Result<()> {
    const CASES: u32 = 4000;
    const KEPT: u64 = 3200;
    trial.suite(&numbers(CASES), "")?;
    let running = trial.room.start(trial.room.command(&["run", "--porcelain", "-j", "8"]))?;
    wait_until(|| trial.model.seen().asked > 8);
    let store = locked(trial)?;
    let recorded = store.query_row("SELECT count(*) FROM results", [], |row| row.get::<_, u64>(0));
    thread::sleep(Duration::from_secs(33));
    let asked = trial.model.seen().asked;
    drop(store);
    let ran = running.end()?;
    trial.code(&ran, 0);
    let most = recorded.map_err(io::Error::other)? + KEPT;
    trial.expect(asked <= most, || format!("{asked} calls while nothing could be recorded"));
    let asked = trial.model.seen().asked;
    trial.expect(ran.key("N_CASES") == Some("4000") && asked == u64::from(CASES), || {
        format!("{:?} results of {asked} calls", ran.key("N_CASES"))
    });
    Ok(())
}

/// A report goes to a pipe that nobody reads, so that it never comes to its end.
fn deaf(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.answers(Script::always(Answer::text(&"long ".repeat(2000))))?;
    for signal in [Signal::TERM, Signal::INT] {
        trial.suite(&numbers(50), "")?;
        let mut pipe = trial.room.any("mkfifo".as_ref());
        pipe.arg(trial.room.path("slow.jsonl")).status()?;
        let words = ["run", "--porcelain", "-j", "8", "-o", "slow.jsonl"];
        let mut running = trial.room.start(trial.room.command(&words))?;
        let unread = File::open(trial.room.path("slow.jsonl"))?;
        wait_until(|| {
            trial.room.run(&["runs", "--json"]).is_ok_and(|it| it.out.contains("\"complete\""))
        });
        let begun = Instant::now();
        running.signal(signal);
        let ended = running.ends_within(Duration::from_secs(40))?.is_some();
        trial.expect(ended, || format!("{signal:?} is not heard for {:?}", begun.elapsed()));
        let ran = running.end()?;
        trial.expect(ran.key("N_CASES") == Some("50"), || ran.tail());
        drop(unread);
        fs::remove_file(trial.room.path("slow.jsonl"))?;
        fs::remove_dir_all(trial.room.path(".probity"))?;
    }
    Ok(())
}

fn second_signal(trial: &mut Trial<'_>) -> io::Result<()> {
    let hangs = Rule::new(When::Requests(4..1000), Answer::Hang);
    trial.answers(Script::default().rule(hangs))?;
    trial.suite(&numbers(20), "")?;
    let words = ["run", "--porcelain", "--events", "events.jsonl"];
    let running = trial.room.start(trial.room.command(&words))?;
    let events = || trial.room.read("events.jsonl");
    wait_until(|| events().matches("\"case-finished\"").count() == 3);
    wait_until(|| trial.model.seen().in_flight > 1);
    let store = locked(trial)?;
    running.signal(Signal::INT);
    // The first one is under way when the second one comes.
    thread::sleep(Duration::from_millis(300));
    let begun = Instant::now();
    running.signal(Signal::INT);
    let ran = running.end()?;
    let took = begun.elapsed();
    drop(store);
    trial.expect(took < Duration::from_secs(12), || format!("{took:?} after the second Ctrl-C"));
    trial.code(&ran, 130);
    Ok(())
}

fn failed_store(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite(&numbers(50), "")?;
    trial.room.prepare(&["run", "-q", "--limit", "1"])?;
    let store = Connection::open(trial.room.path(STORE)).map_err(io::Error::other)?;
    let full = "CREATE TRIGGER full BEFORE INSERT ON results BEGIN
                SELECT RAISE(ABORT, 'database or disk is full'); END";
    store.execute_batch(full).map_err(io::Error::other)?;
    let ran = trial.run(&["-j", "8"])?;
    trial.code(&ran, 3);
    let made = trial.model.seen().asked - 1;
    let told = ran.key("TOTAL_CALLS").and_then(|it| it.parse::<u64>().ok()).unwrap_or(0);
    // One that was cut off before the server saw it had begun as well.
    trial.expect(made > 0 && (made..=made + 8).contains(&told), || {
        format!("{told} calls told of {made}")
    });
    Ok(())
}

fn deleted_rows(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite(&numbers(20), GATE)?;
    trial.room.prepare(&["run", "-q"])?;
    let store = Connection::open(trial.room.path(STORE)).map_err(io::Error::other)?;
    let gone = store.execute("DELETE FROM results WHERE rowid % 2 = 0", []);
    let gone = gone.map_err(io::Error::other)?;
    trial.expect(gone == 10, || format!("{gone} rows were deleted"));
    drop(store);
    for words in [&["gate"][..], &["bless"], &["gate", "-o", "r.md"]] {
        let ran = trial.room.run(words)?;
        trial.expect(ran.code != Some(0), || format!("{words:?}: {}", ran.tail()));
    }
    let told = said(&trial.room.run(&["show"])?);
    let is_told =
        ["missing", "damaged", "10 of 20", "incomplete"].iter().any(|it| told.contains(it));
    trial.expect(is_told, || format!("show: {told}"));
    Ok(())
}

/// 120 answers of 4 MiB; all of them at once would not fit.
fn weighed(trial: &mut Trial<'_>) -> io::Result<()> {
    let cases: String =
        (0..120).map(|at| case(&format!("c{at}"), &format!("huge {at}"), "1")).collect();
    trial.suite(&cases, "")?;
    let words = ["run", "--porcelain", "-j", "2"];
    let command = trial.room.limited("ulimit -d 350000", &words);
    let ran = trial.room.start(command)?.end()?;
    trial.expect(ran.key("N_CASES") == Some("120"), || ran.tail());
    let command = trial.room.limited("ulimit -d 350000", &["report", "-o", "r.json"]);
    let ran = trial.room.start(command)?.end()?;
    trial.expect(ran.code == Some(0), || format!("report: {}", ran.tail()));
    Ok(())
}

fn problems(trial: &mut Trial<'_>) -> io::Result<()> {
    let mut line = serde_json::Map::new();
    for (key, value) in [("id", "a"), ("prompt", "say 1"), ("expected_response", "1")] {
        line.insert(key.to_owned(), value.into());
    }
    line.extend((0..300_000).map(|at| (format!("k{at}"), 1.into())));
    trial.suite(&format!("{}\n", Value::Object(line)), "")?;
    let ran = trial.run(&[])?;
    trial.code(&ran, 2);
    trial.expect(ran.took < Duration::from_secs(45), || format!("{:?}", ran.took));
    trial.expect(ran.err.len() < 1 << 20, || format!("{} bytes are said", ran.err.len()));
    Ok(())
}

/// A suite, and a schema that a case names.
fn limits(trial: &mut Trial<'_>) -> io::Result<()> {
    let is_refused = |trial: &mut Trial<'_>, what: &str| -> io::Result<()> {
        let command = trial.room.limited("ulimit -d 150000", &["run", "--porcelain"]);
        let ran = trial.room.start(command)?.end()?;
        let is_refused = ran.code == Some(2) && ran.err.contains("larger than");
        trial.expect(is_refused, || format!("{what}: {}", ran.tail()));
        Ok(())
    };
    let line = json!({ "id": "a", "prompt": "say 1", "schema": "schema.json" });
    trial.suite(&format!("{line}\n"), "")?;
    trial.room.write("schema.json", format!("{{}}{}", " ".repeat(200 << 20)))?;
    is_refused(trial, "a schema of 200 MiB")?;
    trial.suite(&case("a", "say 1", "1"), "")?;
    let suite = trial.room.read("probity.toml") + &format!("# {}\n", "x".repeat(200 << 20));
    trial.room.write("probity.toml", suite)?;
    is_refused(trial, "a suite of 200 MiB")
}

/// Alternatives that refer to alternatives: each doubles what there is to try.
fn slow_schema(trial: &mut Trial<'_>) -> io::Result<()> {
    const DEPTH: u32 = 34;
    let mut defs = serde_json::Map::new();
    for at in 0..DEPTH {
        let next = json!({ "$ref": format!("#/$defs/a{}", at + 1) });
        defs.insert(format!("a{at}"), json!({ "anyOf": [next, next] }));
    }
    defs.insert(format!("a{DEPTH}"), json!({ "type": "string" }));
    let schema = json!({ "$defs": defs, "$ref": "#/$defs/a0" });
    let line = json!({ "id": "a", "prompt": "say 1", "schema": schema });
    trial.suite(&format!("{line}\n"), "")?;
    let ran = trial.run(&[])?;
    trial.expect(!ran.is_late && ran.took < Duration::from_secs(45), || format!("{:?}", ran.took));
    trial.expect(ran.code.is_some() && !ran.is_crash(), || ran.tail());
    Ok(())
}

fn calls_over_kills(trial: &mut Trial<'_>) -> io::Result<()> {
    const MOST: u64 = 40;
    let latency = Latency { fixed: Duration::from_millis(5), jitter: Duration::from_millis(10) };
    trial.answers(Script { latency, ..Script::default() })?;
    trial.suite(&numbers(200), "[budget]\nmax_calls = 40\n")?;
    for kill in 0..6 {
        let before = trial.model.seen().asked;
        let words: &[&str] = match outcome::has_run(&trial.room) {
            true => &["run", "--porcelain", "-j", "16", "--resume"],
            false => &["run", "--porcelain", "-j", "16"],
        };
        let mut running = trial.room.start(trial.room.command(words))?;
        let model = &trial.model;
        let mut has_ended = || running.child.try_wait().is_ok_and(|it| it.is_some());
        wait_until(|| model.seen().asked > before + kill % 5 || has_ended());
        running.signal(Signal::KILL);
        running.end()?;
    }
    let ran = trial.run(&["-j", "16", "--resume"])?;
    trial.code(&ran, 3);
    let asked = trial.model.seen().asked;
    trial.expect(asked <= MOST, || format!("{asked} calls of {MOST}"));
    Ok(())
}

fn descriptors(trial: &mut Trial<'_>) -> io::Result<()> {
    let latency = Latency::fixed(Duration::from_millis(20));
    trial.answers(Script { latency, ..Script::default() })?;
    trial.suite(&numbers(200), "")?;
    let command = trial.room.limited("ulimit -n 40", &["run", "--porcelain", "-j", "200"]);
    let ran = trial.room.start(command)?.end()?;
    trial.code(&ran, 0);
    let asked = trial.model.seen().asked;
    trial.expect(ran.key("TOTAL_CALLS") == Some("200") && asked == 200, || {
        format!("{:?} calls told, {asked} made", ran.key("TOTAL_CALLS"))
    });
    let failures = trial.stored()?.iter().filter(|it| it["failures"] != json!([])).count();
    trial.expect(failures == 0, || format!("{failures} cases had to be tried again"));
    Ok(())
}

fn byte_order_mark(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite(&case("a", "with a mark", "marked"), "")?;
    let ran = trial.run(&["--max-retries", "0"])?;
    trial.code(&ran, 0);
    let stored = trial.stored()?;
    let verdict = stored.first().map(|it| it["verdict"].clone()).unwrap_or_default();
    trial.expect(verdict == "pass", || format!("its verdict is {verdict}"));
    Ok(())
}

fn proxies(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite(&case("a", "say 1", "1"), "")?;
    let mut command = trial.room.command(&["run", "--porcelain"]);
    command.env("HTTP_PROXY", "http://127.0.0.1:1").env("ALL_PROXY", "http://127.0.0.1:1");
    let ran = trial.room.start(command)?.end()?;
    trial.code(&ran, 0);
    let ran = trial.room.run(&["merge", "missing.db", "--store", "all.db"])?;
    trial.expect(ran.err.contains("`missing.db` cannot be merged"), || ran.tail());
    Ok(())
}
