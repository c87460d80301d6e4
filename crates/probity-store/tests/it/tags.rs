//! Runs are found by the tags of their results.

use std::{path::Path, sync::Arc};

use probity_core::{case::TestCase, classification::Verdict, event::Stamped, record::RunInfo};
use probity_store::{MergeSource, NewRun, Reader, Recorder, RunsQuery, merge, record_whole};

use crate::common::{finished, lane, record, started};

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
    reader.remove(&reader.full_name("third").unwrap()).unwrap();
    assert_eq!(with_tag(&reader, "y"), ["first"]);
    run_with_tags(&path, "fourth", &["w"]);
    assert_eq!(with_tag(&reader, "w"), ["fourth"]);
    assert_eq!(with_tag(&reader, "y"), ["first"]);
}

#[test]
fn a_merged_run_is_found_by_the_tags_of_its_parts() {
    let folder = tempfile::tempdir().unwrap();
    let (path, target) = (folder.path().join("x.db"), folder.path().join("merged.db"));
    run_with_tags(&path, "first", &["x", "y"]);
    let run = Reader::open(&path).unwrap().find("first").unwrap();
    let new = NewRun {
        run_id: "20261115-110000-merged".to_owned(),
        suite: "s.toml".to_owned(),
        started_ms: 0,
        info: RunInfo::default(),
    };
    merge(&target, &new, &[MergeSource { store: path, run }], None).unwrap();
    let reader = Reader::open(&target).unwrap();
    assert_eq!(
        (with_tag(&reader, "x"), with_tag(&reader, "z")),
        (vec!["merged".to_owned()], vec![])
    );
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
    let older = "ALTER TABLE runs DROP COLUMN lane_count; ALTER TABLE runs DROP COLUMN sum; ALTER TABLE lanes DROP COLUMN sum; ALTER TABLE results DROP COLUMN own_prompt; DROP TABLE crews; ALTER TABLE results DROP COLUMN worker; DROP TABLE lane_tags; ALTER TABLE scores DROP COLUMN said; PRAGMA user_version = 10;";
    rusqlite::Connection::open(&path).unwrap().execute_batch(older).unwrap();
    assert_eq!(with_tag(&Reader::open(&path).unwrap(), "x"), ["first"]);
    run_with_tags(&path, "second", &["y"]);
    assert_eq!(Reader::open(&path).unwrap().tags(10).unwrap(), ["all", "x", "y"]);
}
