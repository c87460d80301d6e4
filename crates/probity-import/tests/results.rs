//! Whatever a file holds, it is read as results, refused with a reason, or left to others.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use probity_import::results::{Options, ResultsError, read};

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
