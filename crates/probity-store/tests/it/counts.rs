//! What is counted of runs, and which runs there are.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
};

use probity_core::{
    classification::{Class, Rule, Verdict},
    crew::{Crew, CrewMember},
    event::{Event, Stamped},
    failure::ErrorKind,
    record::{
        CallError, CaseRecord, FailedAttempt, Lane, LaneStatus, RunInfo, RunStatus, Source, Usage,
    },
    request::Request,
    score::Score,
    view::{Cases as _, Wanted},
};
use probity_store::{
    MergeError, MergeSource, NewRun, Reader, StoreError, StoredCases, Tally, merge, record_whole,
};
use tempfile::TempDir;

use crate::common::{create, finished, lane, lane_on, lanes_of, record, started, whole, write};

fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    (folder, path)
}

/// The result of a call that failed like this.
fn failed(case_id: &str, kind: ErrorKind, message: &str) -> CaseRecord {
    let error = CallError::new(kind, message);
    CaseRecord { error: Some(error), ..record(case_id, Verdict::Error) }
}

#[test]
fn a_tally_adds_up_what_results_cost() {
    let (_folder, path) = place();
    let result = |lane, id, source, calls, cost_usd| {
        let usage = Usage { input_tokens: Some(3), output_tokens: Some(4), ..Usage::default() };
        (lane, CaseRecord { source, calls, cost_usd, usage, ..record(id, Verdict::Pass) })
    };
    let results = vec![
        result(0, "a", Source::Backend, 1, Some(0.5)),
        result(0, "b", Source::Cache, 2, None),
        result(0, "c", Source::Replay, 3, Some(0.25)),
        result(0, "d", Source::Replay, 4, Some(0.25)),
        result(1, "a", Source::Cache, 5, Some(1.0)),
        result(1, "b", Source::Cache, 6, Some(1.0)),
        result(1, "c", Source::Replay, 7, Some(1.0)),
    ];
    whole(&path, "first", "s", &[lane(), lane_on("other")], results);
    let reader = Reader::open(&path).unwrap();
    let run = reader.find("latest").unwrap();
    let lanes = reader.lanes(&run).unwrap();
    let said = |it: &Tally| {
        let tokens = (it.input_tokens, it.output_tokens);
        (
            it.total(),
            it.verdicts.pass,
            it.cached,
            it.replayed,
            it.calls,
            tokens,
            it.cost_usd,
            it.priced,
        )
    };
    assert_eq!(said(&reader.tally(&lanes[0]).unwrap()), (4, 4, 1, 2, 10, (12, 16), 1.0, 3));
    assert_eq!(said(&reader.tally(&lanes[1]).unwrap()), (3, 3, 2, 1, 18, (9, 12), 3.0, 3));
    assert_eq!(said(&reader.run_tally(&run).unwrap()), (7, 7, 3, 3, 28, (21, 28), 4.0, 6));
}

#[test]
fn the_list_of_runs_says_how_each_came_out() {
    let (_folder, path) = place();
    let result = |lane, id, verdict| (lane, record(id, verdict));
    let both = [lane(), lane_on("other")];
    let results = vec![
        result(0, "a", Verdict::Pass),
        result(0, "b", Verdict::Fail),
        result(1, "a", Verdict::Pass),
    ];
    whole(&path, "first", "s", &both, results);
    whole(&path, "second", "t", &both, vec![result(1, "a", Verdict::Error)]);
    let reader = Reader::open(&path).unwrap();
    let listed = |most| {
        let runs = reader.listed(most).unwrap();
        let shown = runs.iter().map(|it| {
            let counts = (it.verdicts.pass, it.verdicts.fail, it.verdicts.error);
            (it.short().to_owned(), it.suite.clone(), it.status, counts, it.cost_usd)
        });
        shown.collect::<Vec<_>>()
    };
    // Nobody works on them, and their end was not written.
    let (first, second) = (
        ("first".to_owned(), "s".to_owned(), RunStatus::Killed, (2, 1, 0), 0.75),
        ("second".to_owned(), "t".to_owned(), RunStatus::Killed, (0, 0, 1), 0.25),
    );
    assert_eq!(listed(None), [second.clone(), first]);
    assert_eq!(listed(Some(1)), [second]);
}

#[test]
fn a_run_is_found_by_its_name_or_what_it_begins_with() {
    let (_folder, path) = place();
    for id in ["abcdef", "abcxyz"] {
        whole(&path, id, "s", &[lane()], Vec::new());
    }
    let reader = Reader::open(&path).unwrap();
    let found = |name: &str| reader.find(name).map(|it| it.short().to_owned());
    for (name, run) in [
        ("20261115-100000-abcdef", "abcdef"),
        ("abcd", "abcdef"),
        ("abcxyz", "abcxyz"),
        ("latest", "abcxyz"),
    ] {
        assert_eq!(found(name).unwrap(), run, "{name}");
    }
    for name in ["", "def", "abcdefg"] {
        let error = found(name).unwrap_err();
        assert!(matches!(&error, StoreError::UnknownRun(it) if it == name), "{error}");
    }
    for name in ["abc", "20261115"] {
        let StoreError::AmbiguousRun { candidates, .. } = found(name).unwrap_err() else {
            panic!("{name} may be either")
        };
        assert_eq!(candidates, ["20261115-100000-abcxyz", "20261115-100000-abcdef"]);
    }
}

#[test]
fn a_run_that_is_removed_leaves_no_texts() {
    let (_folder, path) = place();
    whole(&path, "first", "s", &[lane()], vec![(0, record("a", Verdict::Pass))]);
    let mut other = record("b", Verdict::Pass);
    other.request = Request::new(Some("be long".into()), "do it");
    whole(&path, "second", "s", &[lane()], vec![(0, other)]);
    let reader = Reader::open(&path).unwrap();
    assert_eq!(reader.compact().unwrap(), 0);
    reader.remove(&reader.full_name("second").unwrap()).unwrap();
    // The instructions, and the case.
    assert_eq!(reader.compact().unwrap(), 2);
    assert!(reader.find("second").is_err());
    let kept = reader.case(&lanes_of(&reader, "first")[0], "a").unwrap();
    assert_eq!(kept, [record("a", Verdict::Pass)]);
}

#[test]
fn what_did_not_pass_has_a_reason() {
    let (_folder, path) = place();
    let mut wrong = CaseRecord { class: Class::Fail, ..record("b", Verdict::Fail) };
    wrong.classification.rule = Rule::Mismatch;
    wrong.classification.scores = vec![Score::new("contains", Some("`x` is missing".to_owned()))];
    let results = vec![
        (0, record("a", Verdict::Pass)),
        (0, wrong.clone()),
        (0, CaseRecord { repeat: 1, ..record("b", Verdict::Pass) }),
    ];
    whole(&path, "first", "s", &[lane()], results);
    let reader = Reader::open(&path).unwrap();
    let ids = ["a".to_owned(), "b".to_owned(), "nobody".to_owned()];
    let reasons = reader.reasons(&lanes_of(&reader, "latest")[0], &ids).unwrap();
    let expected = format!("{}: {}", wrong.class, wrong.why());
    assert!(expected.contains("`x` is missing"), "{expected}");
    assert_eq!(reasons.into_iter().collect::<Vec<_>>(), [("b".to_owned(), expected)]);
}

#[test]
fn the_last_failures_come_first() {
    let (_folder, path) = place();
    let result = |lane, id, verdict| (lane, record(id, verdict));
    let results = vec![
        result(0, "a", Verdict::Fail),
        result(1, "b", Verdict::Error),
        result(0, "c", Verdict::Pass),
        result(1, "d", Verdict::Undecided),
        result(0, "e", Verdict::Error),
    ];
    whole(&path, "first", "s", &[lane(), lane_on("other")], results);
    let reader = Reader::open(&path).unwrap();
    let lanes = lanes_of(&reader, "latest");
    let failures = |most| {
        let found = reader.last_failures(&[&lanes[0], &lanes[1]], most).unwrap();
        found.into_iter().map(|it| (it.lane, it.record.case_id)).collect::<Vec<_>>()
    };
    let (e, b, a) = ((0, "e".to_owned()), (1, "b".to_owned()), (0, "a".to_owned()));
    assert_eq!(failures(9), [e.clone(), b.clone(), a]);
    assert_eq!(failures(2), [e, b]);
}

#[test]
fn waits_are_counted_by_lane_and_kind() {
    let (_folder, path) = place();
    let result = |lane, id, kind, waits: &[Option<u64>]| {
        let failures = waits.iter().enumerate().map(|(at, wait)| FailedAttempt {
            attempt: u32::try_from(at).unwrap() + 1,
            error: CallError::new(kind, "again"),
            latency_ms: 1,
            retry_in_ms: *wait,
            worker: None,
        });
        (lane, CaseRecord { failures: failures.collect(), ..record(id, Verdict::Pass) })
    };
    let results = vec![
        result(0, "a", ErrorKind::Overloaded, &[Some(10), Some(20)]),
        result(0, "b", ErrorKind::Overloaded, &[Some(30)]),
        result(0, "c", ErrorKind::RateLimit, &[Some(40), None]),
        result(1, "d", ErrorKind::Overloaded, &[Some(50)]),
        // It was not tried again.
        result(1, "e", ErrorKind::RateLimit, &[None]),
    ];
    whole(&path, "first", "s", &[lane(), lane_on("other")], results);
    let reader = Reader::open(&path).unwrap();
    let lanes = lanes_of(&reader, "latest");
    let waits = reader.waits(&[&lanes[0], &lanes[1]]).unwrap();
    let mut waits: Vec<_> = waits
        .into_iter()
        .map(|it| (it.lane, it.error.kind.as_str(), it.wait_ms, it.count))
        .collect();
    waits.sort_unstable();
    let (busy, limited) = (ErrorKind::Overloaded.as_str(), ErrorKind::RateLimit.as_str());
    assert_eq!(waits, [(0, busy, 30, 2), (0, limited, 40, 1), (1, busy, 50, 1)]);
}

#[test]
fn troubles_are_errors_with_the_same_words() {
    let (_folder, path) = place();
    let results = vec![
        (0, failed("c", ErrorKind::Overloaded, "busy")),
        (0, failed("b", ErrorKind::Overloaded, "busy")),
        (0, failed("a", ErrorKind::Network, "gone")),
        (0, record("d", Verdict::Pass)),
    ];
    whole(&path, "first", "s", &[lane()], results);
    let reader = Reader::open(&path).unwrap();
    let lanes = lanes_of(&reader, "latest");
    let troubles = reader.troubles(&[&lanes[0]], 9).unwrap();
    let said: Vec<_> = troubles
        .iter()
        .map(|it| (it.kind, it.message.as_str(), it.count, it.case_id.as_str()))
        .collect();
    let expected = [(ErrorKind::Overloaded, "busy", 2, "b"), (ErrorKind::Network, "gone", 1, "a")];
    assert_eq!(said, expected);
    assert_eq!(reader.troubles(&[&lanes[0]], 1).unwrap(), troubles[..1]);
}

#[test]
fn the_workers_of_a_run_are_those_that_were_seen_last() {
    let (_folder, path) = place();
    let mut recorder = create(&path);
    let reader = || Reader::open(&path).unwrap();
    let crew = || reader().crew(&reader().find("latest").unwrap()).unwrap();
    write(&mut recorder, vec![started()]);
    assert_eq!(crew(), None);
    let seen = |done| {
        let name = "w".to_owned();
        let member = CrewMember { name, slots: 4, in_flight: 1, done, rate: 0.5 };
        Crew { backlog: 2, redelivered: 1, workers: vec![member] }
    };
    for (at_ms, done) in [(5, 7), (6, 8)] {
        recorder.record(&[Stamped { at_ms, event: Event::WorkersSeen(seen(done)) }]).unwrap();
    }
    assert_eq!(crew(), Some((6, seen(8))));
}

#[test]
fn verdicts_of_two_lanes_are_paired_by_case() {
    let (_folder, path) = place();
    let result = |lane, id, repeat, verdict| (lane, CaseRecord { repeat, ..record(id, verdict) });
    let (pass, fail) = (Verdict::Pass, Verdict::Fail);
    let results = vec![
        result(0, "a", 0, pass),
        result(0, "b", 0, pass),
        result(0, "b", 1, fail),
        result(0, "d", 0, pass),
        result(1, "b", 0, fail),
        result(1, "c", 0, fail),
        result(1, "d", 0, pass),
    ];
    whole(&path, "first", "s", &[lane(), lane_on("other")], results);
    let reader = Reader::open(&path).unwrap();
    let lanes = lanes_of(&reader, "latest");
    let mut seen = Vec::new();
    reader
        .paired_verdicts([&lanes[0], &lanes[1]], |id, [was, is]| {
            seen.push(format!("{id} {}/{} {}/{}", was.pass, was.fail, is.pass, is.fail));
        })
        .unwrap();
    assert_eq!(seen, ["b 1/1 0/1", "d 1/0 1/0"]);
}

#[test]
fn reports_get_each_case_once_and_may_end_the_reading() {
    let (_folder, path) = place();
    let results = ["a", "b", "c"].map(|id| (0, record(id, Verdict::Fail)));
    whole(&path, "first", "s", &[lane()], results.into());
    let reader = Reader::open(&path).unwrap();
    let cases = StoredCases::of(&reader, &reader.find("latest").unwrap()).unwrap();
    let mut seen = Vec::new();
    let mut take = |case: &CaseRecord| {
        seen.push(case.case_id.clone());
        Ok(())
    };
    cases.each(0, &mut take).unwrap();
    assert_eq!(seen, ["a", "b", "c"]);
    let refused = cases.each(0, &mut |_| Err(io::Error::other("the pipe is closed")));
    assert_eq!(refused.unwrap_err().to_string(), "the pipe is closed");
    let known = BTreeSet::from(["b".to_owned()]);
    let found = |verdict, most| {
        let found = cases.find(0, &Wanted { verdict, known: &known, most }).unwrap();
        let first: Vec<String> = found.first.into_iter().map(|it| it.case_id).collect();
        (first.join(" "), found.more, found.known)
    };
    assert_eq!(found(Verdict::Fail, 1), ("a".to_owned(), 1, 1));
    assert_eq!(found(Verdict::Fail, 9), ("a c".to_owned(), 0, 1));
    assert_eq!(found(Verdict::Pass, 9), (String::new(), 0, 0));
}

/// Merges the runs of one store into a run of another.
fn merged(path: &Path, ids: &[&str], missing: Option<&str>) -> Result<Reader, MergeError> {
    let target = path.with_file_name("merged.db");
    let reader = Reader::open(path).unwrap();
    let source = |id: &&str| MergeSource { store: path.to_owned(), run: reader.find(id).unwrap() };
    let new = NewRun {
        run_id: "20261115-110000-merged".to_owned(),
        suite: "s".to_owned(),
        started_ms: 0,
        info: RunInfo::default(),
    };
    merge(&target, &new, &ids.iter().map(source).collect::<Vec<_>>(), missing)?;
    Ok(Reader::open(&target).unwrap())
}

/// A whole run of some cases.
fn part(path: &Path, id: &str, cases: [&str; 3]) {
    let run_id = format!("20261115-100000-{id}");
    let (suite, info) = ("s".to_owned(), RunInfo::default());
    let run = NewRun { run_id: run_id.clone(), suite, started_ms: 0, info };
    let begun = Event::RunStarted {
        version: 1,
        run_id,
        resumed: false,
        lanes: vec![lane()],
        done_before: vec![0],
    };
    let ended = Event::LaneFinished { lane: 0, status: LaneStatus::Complete, calls: 5 };
    let all = cases.map(|case| finished(record(case, Verdict::Pass)));
    let over = [ended, Event::RunFinished { complete: true }];
    let events = [begun].into_iter().chain(all).chain(over);
    let events: Vec<Stamped> = events.map(|event| Stamped { at_ms: 1, event }).collect();
    record_whole(path, &run, &events).unwrap();
}

#[test]
fn parts_of_a_dataset_make_one_run() {
    let (_folder, path) = place();
    part(&path, "first", ["a", "b", "c"]);
    part(&path, "second", ["d", "e", "f"]);
    let reader = merged(&path, &["first", "second"], None).unwrap();
    let run = reader.find("latest").unwrap();
    let lanes = reader.lanes(&run).unwrap();
    assert_eq!((run.status, lanes.len()), (RunStatus::Complete, 1));
    assert_eq!((lanes[0].lane.planned, lanes[0].calls), (6, 10));
    assert_eq!(reader.tally(&lanes[0]).unwrap().total(), 6);
    assert_eq!(reader.case(&lanes[0], "e").unwrap(), [record("e", Verdict::Pass)]);
}

#[test]
fn a_case_that_is_in_two_parts_is_named() {
    let (_folder, path) = place();
    part(&path, "first", ["a", "b", "c"]);
    part(&path, "second", ["c", "d", "e"]);
    let twice = merged(&path, &["first", "second"], None).unwrap_err();
    assert!(matches!(&twice, MergeError::Overlap { case_id, .. } if case_id == "c"), "{twice}");
}

#[test]
fn runs_of_other_suites_or_datasets_do_not_make_one() {
    let (_folder, path) = place();
    let changed = Lane { dataset_digest: "other".to_owned(), ..lane() };
    whole(&path, "first", "s", &[lane()], Vec::new());
    whole(&path, "second", "t", &[lane()], Vec::new());
    whole(&path, "third", "s", &[changed], Vec::new());
    for other in ["second", "third"] {
        let error = merged(&path, &["first", other], None).unwrap_err();
        assert!(matches!(&error, MergeError::Unlike(..)), "{error}");
    }
}

#[test]
fn a_run_of_parts_that_lacks_some_is_no_whole_one() {
    let (_folder, path) = place();
    let mut recorder = create(&path);
    let ended = Event::LaneFinished { lane: 0, status: LaneStatus::Complete, calls: 1 };
    write(&mut recorder, vec![started(), ended, Event::RunFinished { complete: true }]);
    recorder.close();
    let reader = merged(&path, &["latest"], Some("part 2 is missing")).unwrap();
    let run = reader.find("latest").unwrap();
    let reason = "part 2 is missing".to_owned();
    let lanes = reader.lanes(&run).unwrap();
    assert_eq!(run.status, RunStatus::Incomplete);
    assert_eq!(lanes[0].status, Some(LaneStatus::Broken { reason }));
}
