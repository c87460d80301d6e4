//! What is recorded is what is read back.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::{path::Path, sync::Arc};

use probity_core::{
    case::{Category, TestCase},
    classification::{Class, Classification, Rule, Verdict},
    details::{CommandDetails, Details, PolicyHit},
    difference::{Difference, Missing},
    event::{CaseKey, Event, Stamped},
    failure::ErrorKind,
    kind::RunnerKind,
    kind::{Detected, Evidence, Labelled},
    metrics::Verdicts,
    record::{
        Aborted, Asked, CallError, CaseRecord, FailedAttempt, Imported, InputDigest, Lane,
        LaneStatus, RunInfo, RunStatus, Source, Spent, Usage,
    },
    reply::{Logprobs, TokenLogprob},
    request::{Request, ToolCall},
    score::Score,
};
use probity_store::{NewRun, Reader, Recorder, RunsQuery, StoreError, record_whole};

fn lane() -> Lane {
    Lane {
        runner: "r".to_owned(),
        variant: None,
        kind: RunnerKind::Command,
        backend: "b".to_owned(),
        backend_kind: "openai".to_owned(),
        model: Some("m".to_owned()),
        dataset_digest: "d".to_owned(),
        dataset: vec!["cases.toml".to_owned()],
        planned: 3,
        repeat: 1,
        replayed: false,
        imported: None,
        judge: None,
        judges: Vec::new(),
        skills: None,
        judging: probity_core::record::Judging::default(),
    }
}

fn record(case_id: &str, verdict: Verdict) -> CaseRecord {
    let error = CallError {
        status: Some(503),
        retry_after: Some(1.5),
        ..CallError::new(ErrorKind::Overloaded, "busy\0\u{202e}")
    };
    let failed = verdict == Verdict::Error;
    CaseRecord {
        case_id: case_id.to_owned(),
        repeat: 0,
        input: InputDigest::of([case_id.as_bytes()]),
        case: Arc::new(TestCase {
            id: case_id.to_owned(),
            category: Some(Category::named("odds, ends")),
            tags: vec!["t".to_owned()],
            ..TestCase::default()
        }),
        request: Request::new(Some("be brief".into()), "do it"),
        reply: (!failed).then(|| "done\0\u{1b}[0m\n".to_owned()),
        error: failed.then(|| error.clone()),
        reasoning: None,
        stop_reason: Some("stop".to_owned()),
        model: Some("m-1".to_owned()),
        source: Source::Cache,
        latency_ms: 12,
        ttft_ms: Some(3),
        tokens_per_second: Some(41.5),
        usage: Usage { input_tokens: Some(3), output_tokens: Some(4), ..Usage::default() },
        cost_usd: Some(0.25),
        calls: 2,
        worker: Some("w-1".to_owned()),
        failures: vec![FailedAttempt {
            attempt: 1,
            error,
            latency_ms: 5,
            retry_in_ms: Some(2000),
            worker: Some("w-2".to_owned()),
        }],
        started_ms: 1_794_736_800_000,
        elapsed_ms: 2017,
        class: if failed { Class::Error } else { Class::Pass },
        verdict,
        classification: classification(failed),
        asked: Vec::new(),
    }
}

/// With a score, evidence and a policy hit, which stand in places of their own.
fn classification(failed: bool) -> Classification {
    let rule = if failed { Rule::Error } else { Rule::Pass };
    let score =
        Score { named: true, value: Some(0.25), span: Some(1..3), ..Score::new("contains", None) };
    let safety = Some(Labelled { expected: true, found: false });
    let details = Details {
        hits: vec![PolicyHit {
            policy: "p".to_owned(),
            rule: "r".to_owned(),
            span: 0..1,
            severity: None,
        }],
        evidence: Some(Box::new(Evidence::Command(Detected { safety, posix: None }))),
        diff: Some(Difference::Missing(Missing {
            missing: ["x".to_owned()].into_iter().collect(),
        })),
        ..Details::default()
    };
    Classification { rule, scores: vec![score], details }
}

fn create(path: &Path) -> Recorder {
    let run = NewRun {
        run_id: "20261115-100000-abcdef".to_owned(),
        suite: "s.toml".to_owned(),
        started_ms: 1_794_736_800_000,
        info: RunInfo { probity_version: "0.2".to_owned(), ..RunInfo::default() },
    };
    Recorder::create(path, &run).unwrap()
}

fn write(recorder: &mut Recorder, events: Vec<Event>) {
    let stamped: Vec<Stamped> =
        events.into_iter().map(|event| Stamped { at_ms: 1_794_736_801_000, event }).collect();
    recorder.record(&stamped).unwrap();
}

fn started() -> Event {
    Event::RunStarted {
        version: 1,
        run_id: "20261115-100000-abcdef".to_owned(),
        resumed: false,
        lanes: vec![lane()],
        done_before: vec![0],
    }
}

fn finished(record: CaseRecord) -> Event {
    Event::CaseFinished { lane: 0, record: Box::new(record) }
}

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
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("result `a` is damaged"), "{cause}");
    change("UPDATE results SET verdict = 'error', class = 'error'");
    assert!(reader().metrics(&lanes[0]).is_ok());
    change("UPDATE results SET prompt = 'another'");
    let error = reader().case(&lanes[0], "a").unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("its texts are not what was written"), "{cause}");
}

/// A record of which nothing is absent.
fn full() -> CaseRecord {
    let asked = Asked {
        role: "judge".to_owned(),
        backend: "j".to_owned(),
        request: Request::new(Some("be fair".into()), "which?"),
        turn: Some(2),
        reply: Some("this".to_owned()),
        tool_calls: vec![ToolCall::new(Some("c".to_owned()), "f".to_owned(), 1.into())],
        reasoning: Some("hm".to_owned()),
        stop_reason: Some("stop".to_owned()),
        logprobs: Some(Logprobs(vec![TokenLogprob { token: "t".to_owned(), logprob: -0.5 }])),
        error: None,
        model: Some("j-1".to_owned()),
        source: Source::Backend,
        latency_ms: 3,
        usage: Usage::default(),
        cost_usd: Some(0.5),
        calls: 1,
    };
    let mut record = record("a", Verdict::Pass);
    record.reasoning = Some("hm".to_owned());
    record.classification.scores[0].reason = Some("so so".to_owned());
    CaseRecord { asked: vec![asked], ..record }
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
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
    let mut columns = connection.prepare("SELECT name, type FROM pragma_table_info(?)").unwrap();
    // What belongs to the place of a result, and whether it counts.
    let others = ["id", "lane", "result", "place", "stale", "hash", "definition", "system"];
    let mut changed = 0;
    for table in ["results", "scores", "asked", "texts"] {
        let names = columns.query_map([table], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        let names: Vec<(String, String)> = names.map(Result::unwrap).collect();
        for (name, kind) in names.iter().filter(|(name, _)| !others.contains(&name.as_str())) {
            let other = match kind.as_str() {
                "TEXT" => format!("coalesce({name}, '') || ' '"),
                "BLOB" => "randomblob(16)".to_owned(),
                _ => format!("coalesce({name}, 0) = 0"),
            };
            let sql = format!("UPDATE {table} SET {name} = {other}");
            let kept = folder.path().join("kept.db");
            let _ = std::fs::remove_file(&kept);
            connection.execute("VACUUM INTO ?", [kept.to_str().unwrap()]).unwrap();
            connection.execute_batch(&sql).unwrap();
            assert!(read().is_err(), "{table}.{name} was changed");
            let put_back = format!(
                "ATTACH '{}' AS kept; DELETE FROM {table}; \
                 INSERT INTO {table} SELECT * FROM kept.{table}; DETACH kept",
                kept.display()
            );
            connection.execute_batch(&put_back).unwrap();
            changed += 1;
        }
    }
    assert!(changed > 50, "{changed}");
    assert_eq!(read().unwrap(), Some(full()));
    connection.execute_batch("DELETE FROM scores").unwrap();
    assert!(read().is_err());
}

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
            "DROP TABLE crews; ALTER TABLE results DROP COLUMN worker;
             DROP TRIGGER tags_of_result; DROP TABLE lane_tags;
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

/// A run of the same dataset as all others, of which it asked the cases with some tags.
fn run_with_tags(path: &Path, id: &str, tags: &[&str]) {
    let run = NewRun {
        run_id: format!("20261115-100000-{id}"),
        suite: "s.toml".to_owned(),
        started_ms: 0,
        info: RunInfo::default(),
    };
    let tagged = |tag: &&str| {
        let mut case = record(tag, Verdict::Pass);
        let tags = vec![(*tag).to_owned(), "all".to_owned()];
        case.case = Arc::new(TestCase { id: (*tag).to_owned(), tags, ..TestCase::default() });
        finished(case)
    };
    let events = [started()].into_iter().chain(tags.iter().map(tagged));
    let events: Vec<Stamped> = events.map(|event| Stamped { at_ms: 0, event }).collect();
    record_whole(path, &run, &events).unwrap();
}

fn with_tag(reader: &Reader, tag: &str) -> Vec<String> {
    let query = RunsQuery { tag: Some(tag.to_owned()), limit: 10, ..RunsQuery::default() };
    let page = reader.runs_page(&query).unwrap();
    page.runs.iter().map(|it| it.short().to_owned()).collect()
}

#[test]
fn runs_are_found_by_the_tags_of_their_results_whatever_other_runs_have() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    for (id, tags) in [("first", &["x", "y"][..]), ("second", &["z"]), ("third", &["y"])] {
        run_with_tags(&path, id, tags);
    }
    let reader = Reader::open(&path).unwrap();
    assert_eq!(reader.tags(10).unwrap(), ["all", "x", "y", "z"]);
    assert_eq!(reader.tags(2).unwrap(), ["all", "x"]);
    assert_eq!(with_tag(&reader, "y"), ["third", "first"]);
    assert_eq!(with_tag(&reader, "z"), ["second"]);
    assert_eq!(with_tag(&reader, "all"), ["third", "second", "first"]);
    assert_eq!(with_tag(&reader, "nobody"), [""; 0]);
    // A run that is removed gives its place to the next.
    reader.remove(&reader.find("third").unwrap()).unwrap();
    assert_eq!(with_tag(&reader, "y"), ["first"]);
    run_with_tags(&path, "fourth", &["w"]);
    assert_eq!(with_tag(&reader, "w"), ["fourth"]);
    assert_eq!(with_tag(&reader, "y"), ["first"]);
}

#[test]
fn tags_of_results_that_no_longer_count_are_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    run_with_tags(&path, "first", &["x", "y"]);
    let mut recorder = Recorder::resume(&path, "20261115-100000-first").unwrap();
    assert_eq!(recorder.mark_stale(&lane(), |id, _| id == "y").unwrap(), 1);
    let reader = Reader::open(&path).unwrap();
    assert_eq!(reader.tags(10).unwrap(), ["all", "y"]);
    assert_eq!(with_tag(&reader, "x"), [""; 0]);
    assert_eq!(recorder.mark_stale(&lane(), |_, _| true).unwrap(), 0);
    assert_eq!(with_tag(&reader, "x"), ["first"]);
}

#[test]
fn a_store_without_a_table_of_tags_gets_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    run_with_tags(&path, "first", &["x"]);
    let older = "DROP TABLE crews; ALTER TABLE results DROP COLUMN worker; DROP TRIGGER tags_of_result; DROP TABLE lane_tags; ALTER TABLE scores DROP COLUMN said; PRAGMA user_version = 10;";
    rusqlite::Connection::open(&path).unwrap().execute_batch(older).unwrap();
    assert_eq!(with_tag(&Reader::open(&path).unwrap(), "x"), ["first"]);
    run_with_tags(&path, "second", &["y"]);
    assert_eq!(Reader::open(&path).unwrap().tags(10).unwrap(), ["all", "x", "y"]);
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
    write(&mut recorder, vec![started(), aborted("a"), aborted("c")]);
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
    assert_eq!(reader.aborted(&lanes[0]).unwrap(), 1);
    // What it had used before stays counted.
    let cut_off = reader.cut_off(&lanes[0]).unwrap();
    assert_eq!((cut_off.calls, cut_off.cost_usd), (4, 1.0));
    assert_eq!(reader.ids_by_verdict(&run, &[Verdict::Error]).unwrap(), ["b"]);
}

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
fn one_process_at_a_time_works_on_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let recorder = create(&path);
    let second = Recorder::resume(&path, "20261115-100000-abcdef");
    assert!(matches!(second, Err(StoreError::Busy(_))));
    let reader = Reader::open(&path).unwrap();
    let run = reader.find("latest").unwrap();
    assert!(matches!(reader.remove(&run), Err(StoreError::Busy(_))));
    recorder.close();
    assert_eq!(reader.find("latest").unwrap().status, RunStatus::Killed);
    assert!(Recorder::resume(&path, "20261115-100000-abcdef").is_ok());
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
    recorder.set_calls(&lanes[1], 7).unwrap();
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
    recorder.set_calls(&lane(), 4).unwrap();
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
    reader.remove(&run).unwrap();
    assert_eq!(reader.tally(&lanes[1]).unwrap().total(), 0);
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
    assert!(matches!(reader.remove(&run), Err(StoreError::Write(_))));
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
