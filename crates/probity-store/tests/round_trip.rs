//! What is recorded is what is read back.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::path::Path;

use probity_core::{
    classification::{Class, Verdict},
    event::{CaseKey, Event, Stamped},
    failure::ErrorKind,
    record::{
        Aborted, CallError, CaseRecord, FailedAttempt, InputDigest, Lane, LaneStatus, Source, Usage,
    },
    runner::RunnerKind,
};
use probity_store::{NewRun, Reader, Recorder, StoreError};
use serde_json::{json, value::to_raw_value};

fn lane() -> Lane {
    Lane {
        runner: "r".to_owned(),
        kind: RunnerKind::Command,
        backend: "b".to_owned(),
        backend_kind: "openai".to_owned(),
        model: Some("m".to_owned()),
        dataset_digest: "d".to_owned(),
        dataset: vec!["cases.toml".to_owned()],
        planned: 3,
        repeat: 1,
        replayed: false,
        judge: None,
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
        case: format!("{{\"id\":\"{case_id}\"}}").into(),
        prompt: "do it".to_owned(),
        system: Some("be brief".into()),
        reply: (!failed).then(|| "done\0\u{1b}[0m\n".to_owned()),
        error: failed.then(|| error.clone()),
        reasoning: None,
        stop_reason: Some("stop".to_owned()),
        model: Some("m-1".to_owned()),
        source: Source::Cache,
        latency_ms: 12,
        usage: Usage { input_tokens: Some(3), output_tokens: Some(4), ..Usage::default() },
        cost_usd: Some(0.25),
        calls: 2,
        failures: vec![FailedAttempt { attempt: 1, error, latency_ms: 5, retry_in_ms: Some(2000) }],
        started_ms: 1_794_736_800_000,
        elapsed_ms: 2017,
        class: if failed { Class::Error } else { Class::Pass },
        verdict,
        classification: to_raw_value(&serde_json::json!({ "primary": "pass" })).unwrap(),
        asked: Vec::new(),
    }
}

fn create(path: &Path) -> Recorder {
    let run = NewRun {
        run_id: "20261115-100000-abcdef".to_owned(),
        suite: "s.toml".to_owned(),
        started_ms: 1_794_736_800_000,
        info: serde_json::json!({ "x": 1 }),
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
    assert_eq!((run.status.as_str(), run.short()), ("running", "abcdef"));
    let lanes = reader.lanes(&run).unwrap();
    assert_eq!((&lanes[0].lane, &lanes[0].status), (&lane(), &None));
    let [case] = &reader.case(&lanes[0], "a").unwrap()[..] else { panic!("one result") };
    let wanted = record("a", Verdict::Pass);
    assert_eq!(case.reply, wanted.reply);
    assert_eq!((case.input, case.repeat), (wanted.input, 0));
    assert_eq!(
        (case.definition.as_str(), case.system.as_deref()),
        (&*wanted.case, Some("be brief"))
    );
    assert_eq!((case.source, case.usage, case.cost_usd), (wanted.source, wanted.usage, Some(0.25)));
    assert_eq!((&case.failures, case.calls), (&wanted.failures, 2));
    assert_eq!((case.class, case.verdict), (Class::Pass, Verdict::Pass));
    assert_eq!(case.classification, wanted.classification.get());
}

#[test]
fn counts_are_made_from_the_records() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let mut recorder = create(&path);
    let key = |case_id: &str| CaseKey { lane: 0, case_id: case_id.to_owned(), repeat: 0 };
    let aborted = |case_id| Event::CaseAborted { case: key(case_id), reason: Aborted::Interrupted };
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
    assert_eq!((run.status.as_str(), run.finished_ms), ("incomplete", Some(1_794_736_801_000)));
    let lanes = reader.lanes(&run).unwrap();
    assert_eq!((lanes[0].status.as_ref(), lanes[0].calls), (Some(&status), 9));
    let tally = reader.tally(&lanes[0]).unwrap();
    assert_eq!((tally.pass, tally.fail, tally.error, tally.total()), (1, 0, 1, 2));
    // A case that came to an end after all was not given up.
    assert_eq!(reader.aborted(&lanes[0]).unwrap(), 1);
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
    assert_eq!(reader.find("latest").unwrap().status, "killed");
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
        let found = json!({ "details": { "command": { "command": command } } });
        let classification = to_raw_value(&found).unwrap();
        let record = CaseRecord { repeat, classification, ..record(case_id, Verdict::Fail) };
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
