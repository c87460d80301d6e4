//! Whatever a file holds, it is read as results, refused with a reason, or left to others.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use probity_core::request::Request;
use probity_import::results::{ImportedRun, KnownCases, Options, Outcome, ResultsError, read};

fn fixtures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let in_folder = |path: &Path| {
        let entries = fs::read_dir(path).unwrap().map(|it| it.unwrap().path());
        entries.filter(|it| it.is_file()).collect::<Vec<_>>()
    };
    let mut all = in_folder(&folder);
    all.extend(in_folder(&folder.join("lm-eval")));
    all.sort();
    all
}

fn read_bytes(folder: &Path, like: &Path, bytes: &[u8]) -> Result<bool, ResultsError> {
    let path = folder.join(like.file_name().unwrap());
    fs::write(&path, bytes).unwrap();
    read(&path, &Options::default()).map(|it| it.is_some())
}

#[test]
fn every_fixture_is_known_by_what_is_in_it() {
    for path in fixtures() {
        let found = read(&path, &Options::default()).unwrap();
        assert!(found.is_some(), "{}", path.display());
        let renamed = tempfile::tempdir().unwrap();
        let other = renamed.path().join("x");
        fs::write(&other, fs::read(&path).unwrap()).unwrap();
        // Results of lm-eval are told by the files beside them.
        if !path.to_string_lossy().contains("results_") {
            assert!(read(&other, &Options::default()).unwrap().is_some(), "{}", path.display());
        }
    }
}

#[test]
fn configurations_and_datasets_are_no_results() {
    let folder = tempfile::tempdir().unwrap();
    for text in [
        "",
        "prompts: [a]\n",
        r#"{"prompts": ["a"], "tests": [], "results": "x"}"#,
        r#"{"id": "a", "prompt": "b", "status": "c"}"#,
        "{\"results\": {\"results\": []}}",
        "a,b\n1,2\n",
        "[1, 2]",
        "{",
    ] {
        let path = folder.path().join("file");
        fs::write(&path, text).unwrap();
        assert!(read(&path, &Options::default()).unwrap().is_none(), "{text}");
    }
}

/// Numbers that are the same in each run.
fn next(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    usize::try_from(*state >> 33).unwrap()
}

#[test]
fn broken_files_are_refused_or_left_to_others_and_never_panic() {
    let folder = tempfile::tempdir().unwrap();
    let mut state = 20_261_116;
    for path in fixtures() {
        let whole = fs::read(&path).unwrap();
        for _ in 0..200 {
            let mut bytes = whole.clone();
            match next(&mut state) % 3 {
                0 => bytes.truncate(next(&mut state) % whole.len()),
                1 => {
                    let at = next(&mut state) % whole.len();
                    bytes[at] = u8::try_from(next(&mut state) % 256).unwrap();
                }
                _ => {
                    let (a, b) = (next(&mut state) % whole.len(), next(&mut state) % whole.len());
                    bytes.drain(a.min(b)..a.max(b));
                }
            }
            // Whether it is read or refused, it comes to an end.
            if let Err(error) = read_bytes(folder.path(), &path, &bytes) {
                assert!(!error.to_string().is_empty());
            }
        }
    }
}

#[test]
fn a_field_that_does_not_fit_is_named_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let check = |name: &str, from: &str, to: &str, expected: &str| {
        let path = fixtures().into_iter().find(|it| it.ends_with(name)).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{name} has no `{from}`");
        let error = read_bytes(folder.path(), &path, text.replacen(from, to, 1).as_bytes());
        let error = error.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    check("inspect.json", "\"epoch\": 1", "\"epoch\": 0", "`epoch`: epochs are counted from 1");
    check(
        "inspect.json",
        "\"epoch\": 1",
        "\"epoch\": \"a\"",
        "`samples[0].epoch`: invalid type: string",
    );
    check(
        "openai-evals.jsonl",
        "\"eval_name\"",
        "\"name\"",
        ":1: `spec`: missing field `eval_name`",
    );
    let name = "lm-eval/samples_sums_2026-11-16T12-00-00.000000.jsonl";
    check(
        name,
        "\"arguments\": {",
        "\"arguments\": 1, \"x\": {",
        ":1: `arguments`: there is no request",
    );
}

/// A file of promptfoo's results with a row for each provider, prompt column and question.
fn promptfoo_rows(rows: &[(&str, usize, &str)]) -> String {
    let row = |&(provider, column, asked): &(&str, usize, &str)| {
        serde_json::json!({
            "promptIdx": column, "testIdx": 0, "success": true, "score": 1.0, "latencyMs": 1,
            "provider": { "id": provider }, "prompt": { "raw": asked, "label": "p" },
            "vars": {}, "response": { "output": "x" }, "testCase": { "vars": {} },
        })
    };
    let lines: Vec<String> = rows.iter().map(|it| row(it).to_string()).collect();
    lines.join("\n")
}

fn read_text(name: &str, text: &str) -> ImportedRun {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    read(&path, &Options::default()).unwrap().unwrap().run
}

fn lanes(run: &ImportedRun) -> Vec<(&str, &str, usize)> {
    run.lanes.iter().map(|it| (it.runner.as_str(), it.backend.as_str(), it.results.len())).collect()
}

#[test]
fn providers_of_the_same_name_stay_apart() {
    let run = read_text("out.jsonl", &promptfoo_rows(&[("echo", 0, "hi"), ("echo", 1, "hi")]));
    assert_eq!(lanes(&run), [("tests", "echo", 1), ("tests", "echo-2", 1)]);
    assert!(run.lanes.iter().flat_map(|it| &it.results).all(|it| it.repeat == 0));
}

#[test]
fn models_that_look_like_one_backend_stay_apart() {
    let rows = [("openai:chat:gpt-4o", 0, "hi"), ("azure:chat:gpt-4o", 1, "hi")];
    let mut run = read_text("out.jsonl", &promptfoo_rows(&rows));
    let mut known = KnownCases::default();
    known.backend("small", Some("gpt-4o"));
    known.runner("words", "digest", &[], 1);
    known.case("words", None, "greeting", &Request::new(None, "hi"));
    let found = known.align(&mut run);
    assert_eq!(found.iter().map(|it| it.found).collect::<Vec<_>>(), [1, 1]);
    assert_eq!(lanes(&run), [("words", "small", 1), ("words", "azure:chat:gpt-4o", 1)]);
}

#[test]
fn a_result_that_was_not_found_is_not_taken_for_a_case_of_the_suite() {
    let row = |at: usize, asked: &str| {
        promptfoo_rows(&[("echo", 0, asked)]).replace("\"testIdx\":0", &format!("\"testIdx\":{at}"))
    };
    // The tool calls them test-1 to test-3; the suite has one that asks the same as the first two.
    let text = [row(0, "hi"), row(1, "hi"), row(2, "other")].join("\n");
    let mut run = read_text("out.jsonl", &text);
    let mut known = KnownCases::default();
    known.runner("words", "digest", &[], 2);
    known.case("words", None, "test-2", &Request::new(None, "hi"));
    known.case("words", None, "test-3", &Request::new(None, "something else"));
    let found = known.align(&mut run);
    let ids: Vec<&str> = run.lanes[0].results.iter().map(|it| it.case.id.as_str()).collect();
    assert_eq!(ids, ["test-2", "imported/test-2", "imported/test-3"]);
    assert_eq!((found[0].found, found[0].results), (1, 3));
    assert_eq!(run.lanes[0].dataset, None);
}

#[test]
fn two_files_of_one_task_are_not_mixed() {
    let lm_eval = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/lm-eval");
    let files: Vec<PathBuf> =
        fixtures().into_iter().filter(|it| it.starts_with(&lm_eval)).collect();
    let named = |start: &str| {
        let name = |it: &&PathBuf| it.file_name().unwrap().to_string_lossy().starts_with(start);
        files.iter().find(name).unwrap()
    };
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("mine.json");
    fs::copy(named("results_"), &results).unwrap();
    let samples = named("samples_");
    let task =
        samples.file_name().unwrap().to_string_lossy().rsplit_once('_').unwrap().0.to_owned();
    for time in ["2026-01-01T00-00-00.1", "2026-01-02T00-00-00.1"] {
        fs::copy(samples, folder.path().join(format!("{task}_{time}.jsonl"))).unwrap();
    }
    let error = read(&results, &Options::default()).unwrap_err().to_string();
    assert!(error.contains("there are several of `"), "{error}");
}

/// A log of Inspect with one sample.
fn inspect_log(sample: &serde_json::Value) -> String {
    serde_json::json!({
        "version": 2, "status": "success",
        "eval": {
            "task": "t", "model": "m", "created": "2026-01-01T00:00:00Z",
            "dataset": { "samples": u64::MAX }, "config": {},
        },
        "stats": {}, "samples": [sample],
    })
    .to_string()
}

fn inspect_sample(more: &serde_json::Value) -> serde_json::Value {
    let mut sample = serde_json::json!({
        "id": 1, "epoch": 1, "input": "hi", "target": "ho",
        "output": { "model": "m", "choices": [
            { "message": { "role": "assistant", "content": "ho" }, "stop_reason": "stop" }
        ] },
        "scores": { "list": { "value": [1, 2] }, "match": { "value": "C" } },
    });
    sample.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    sample
}

#[test]
fn a_score_that_cannot_be_read_decides_nothing() {
    let run = read_text("log.json", &inspect_log(&inspect_sample(&serde_json::json!({}))));
    assert_eq!(run.lanes[0].results[0].outcome, Outcome::Passed, "{:?}", run.notes);
}

#[test]
fn a_sample_that_was_invalidated_does_not_count() {
    let more = serde_json::json!({ "invalidation": { "reason": "wrong file" } });
    let run = read_text("log.json", &inspect_log(&inspect_sample(&more)));
    let outcome = &run.lanes[0].results[0].outcome;
    assert_eq!(*outcome, Outcome::Error("the sample was invalidated".to_owned()));
}

#[test]
fn attachments_cannot_fill_the_memory() {
    let more = serde_json::json!({
        "input": "attachment://a ".repeat(2000),
        "attachments": { "a": "x".repeat(1 << 20) },
    });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.json");
    fs::write(&path, inspect_log(&inspect_sample(&more))).unwrap();
    let error = read(&path, &Options::default()).unwrap_err().to_string();
    assert!(error.contains("`attachments`: the texts that they stand for are too long"), "{error}");
}
