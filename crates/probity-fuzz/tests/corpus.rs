//! What the fuzzer has found interesting, given to every target again; and that the parts of `fuzz/` fit together.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::{
    collections::BTreeSet,
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

use probity_fuzz::TARGETS;

/// Files of a target that are kept, and bytes of all.
const MOST_FILES: usize = 200;
const MOST_BYTES: u64 = 2 << 20;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|it| panic!("{}: {it}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|it| it.unwrap().path()).collect();
    files.sort();
    files
}

/// Gives a target its corpus. Every input that breaks something is named.
fn check(name: &str) {
    let target = TARGETS.iter().find(|it| it.name == name).unwrap();
    let files = files(&fuzz().join("corpus").join(name));
    assert!(!files.is_empty() && files.len() <= MOST_FILES, "{} files", files.len());
    let breaks = |path: &&PathBuf| {
        let bytes = fs::read(path).unwrap();
        catch_unwind(AssertUnwindSafe(|| (target.read)(&bytes))).is_err()
    };
    let broken: Vec<&PathBuf> = files.iter().filter(breaks).collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

macro_rules! corpus {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                check(stringify!($name));
            }
        )*

        #[test]
        fn every_target_has_its_test() {
            let tested = [$(stringify!($name)),*];
            assert_eq!(TARGETS.iter().map(|it| it.name).collect::<Vec<_>>(), tested);
        }
    };
}

corpus! {
    baseline body dataset error expression gguf grade gzip import json judge ledger otlp recording refusal results rules schema scored
    script settings shell skill store stored stream suite summary template text wire world
}

#[test]
fn every_target_has_a_program_a_corpus_and_a_row_in_the_documentation() {
    let names: BTreeSet<String> = TARGETS.iter().map(|it| it.name.to_owned()).collect();
    let stem = |it: &PathBuf| it.file_stem().unwrap().to_str().unwrap().to_owned();
    let in_folder =
        |name: &str| -> BTreeSet<String> { files(&fuzz().join(name)).iter().map(stem).collect() };
    assert_eq!(in_folder("fuzz_targets"), names);
    assert_eq!(in_folder("corpus"), names);
    assert!(in_folder("dictionaries").is_subset(&names));
    let manifest = fs::read_to_string(fuzz().join("Cargo.toml")).unwrap();
    let page = fs::read_to_string(fuzz().join("../docs/reliability.md")).unwrap();
    for name in &names {
        assert!(manifest.contains(&format!("name = \"{name}\"\n")), "{name}");
        assert!(page.contains(&format!("\n| `{name}` |")), "{name}");
        let program = fs::read_to_string(fuzz().join(format!("fuzz_targets/{name}.rs"))).unwrap();
        assert!(program.contains(&format!("probity_fuzz::{name}(bytes)")), "{program}");
    }
    assert_eq!(manifest.matches("[[bin]]").count(), names.len());
}

#[test]
fn the_corpus_is_small() {
    let of_target =
        |it: &PathBuf| files(it).iter().map(|it| fs::metadata(it).unwrap().len()).sum::<u64>();
    let bytes: u64 = files(&fuzz().join("corpus")).iter().map(of_target).sum();
    assert!(bytes <= MOST_BYTES, "{bytes} bytes");
}
