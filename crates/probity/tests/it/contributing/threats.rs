//! docs/security.md, held against the tests that it names, and where `unsafe` may stand.
//!
//! A row of a table whose last column is called `shown by` names tests there, as nextest prints
//! them, or scripts; or it says `not tested`.

use std::{collections::BTreeSet, sync::LazyLock};

use ::regex::Regex;

use super::{path_of, quoted, read, regex, root, sources};

/// The one file with `unsafe` code of ours.
const UNSAFE: &str = "crates/probity-sandbox/src/linux/sys.rs";

/// The module that a file is, as names of tests begin: `crates/a/src/b/c.rs` is `b::c`, and so is
/// `crates/a/tests/it/b/c.rs`.
fn module_of(file: &str) -> Vec<&str> {
    let mut parts: Vec<&str> = file.trim_end_matches(".rs").split('/').skip(2).collect();
    let within = if parts[0] == "tests" { 2 } else { 1 };
    parts.drain(..within.min(parts.len()));
    parts.retain(|it| !["lib", "main"].contains(it));
    parts
}

/// There are many files, and compiling a pattern takes longer than reading one.
static OPENED: LazyLock<Regex> =
    LazyLock::new(|| regex(r"^( *)(?:pub(?:\([a-z]+\))? )?mod (\w+) \{$"));
static MARKED: LazyLock<Regex> = LazyLock::new(|| regex(r"^ *#\[(?:tokio::)?test\b"));
static FUNCTION: LazyLock<Regex> = LazyLock::new(|| regex(r"^ *(?:async )?fn (\w+)"));
static CODE: LazyLock<Regex> =
    LazyLock::new(|| regex(r"\bunsafe(\(|\s+(\{|fn\b|impl\b|trait\b|extern\b))"));
static LEAVE: LazyLock<Regex> =
    LazyLock::new(|| regex(r"\b(allow|expect|warn)\([^)]*\bunsafe_code\b"));

/// The names of all tests in a file. Our code is formatted, so that a module ends with a bracket
/// as far to the right as it began.
fn tests_in(file: &str, text: &str) -> Vec<String> {
    let mut around: Vec<(String, &str)> = Vec::new();
    let mut is_test = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if let Some((_, [indent, name])) = OPENED.captures(line).map(|it| it.extract()) {
            around.push((format!("{indent}}}"), name));
        } else if around.last().is_some_and(|(end, _)| line == end) {
            around.pop();
        } else if MARKED.is_match(line) {
            is_test = true;
        } else if let Some((_, [name])) = FUNCTION.captures(line).map(|it| it.extract())
            && std::mem::take(&mut is_test)
        {
            let around = around.iter().map(|(_, name)| *name);
            let parts: Vec<&str> =
                module_of(file).into_iter().chain(around).chain([name]).collect();
            found.push(parts.join("::"));
        }
    }
    found
}

/// The Rust files of every crate, and of what is built beside them.
fn files() -> Vec<String> {
    let mut files = Vec::new();
    for folder in ["crates", "bench", "fuzz"] {
        sources(&root().join(folder), &mut files);
    }
    files.retain(|it| !it.contains("/target/"));
    files
}

fn all_tests() -> BTreeSet<String> {
    let files = files();
    let of_crates = files
        .iter()
        .filter(|it| it.starts_with("crates/") && (it.contains("/src/") || it.contains("/tests/")));
    of_crates.flat_map(|it| tests_in(it, &read(it))).collect()
}

/// What is wrong with the rows of a page, and how many there are.
fn check(page: &str, tests: &BTreeSet<String>) -> (usize, Vec<String>) {
    let mut rows = 0;
    let mut wrong = Vec::new();
    let mut is_shown = false;
    for line in page.lines() {
        let Some(cells) = line.strip_prefix("| ").and_then(|it| it.strip_suffix(" |")) else {
            is_shown = false;
            continue;
        };
        let last = cells.rsplit(" | ").next().unwrap_or_default();
        if last == "shown by" {
            is_shown = true;
        } else if is_shown && !last.starts_with("---") {
            rows += 1;
            let names: Vec<&str> = quoted(last).collect();
            if names.is_empty() && last != "not tested" {
                wrong.push(format!("a row names no test and does not say `not tested`: {line}"));
            }
            let is_script = |it: &str| path_of(it).is_some_and(|it| root().join(it).is_file());
            let missing = names.iter().filter(|it| !tests.contains(**it) && !is_script(it));
            wrong.extend(missing.map(|it| format!("there is no test `{it}`")));
        }
    }
    (rows, wrong)
}

#[test]
fn every_threat_names_tests_that_there_are_or_says_that_it_has_none() {
    let (rows, wrong) = check(&read("docs/security.md"), &all_tests());
    assert!(wrong.is_empty(), "docs/security.md:\n{}", wrong.join("\n"));
    assert!(rows > 80, "only {rows} rows were found");
}

#[test]
fn a_row_without_a_test_is_noticed() {
    let tests = BTreeSet::from(["a::b".to_owned()]);
    let page =
        |last: &str| format!("| x | shown by |\n| --- | --- |\n| y | {last} |\n\n| z | w |\n");
    for good in ["`a::b`", "`a::b`, `scripts/python-test`", "not tested"] {
        assert_eq!(check(&page(good), &tests), (1, Vec::new()), "{good}");
    }
    for bad in ["`a::c`", "`b`", "", "perhaps", "`a::b`, `a::c`", "`scripts/nothing`"] {
        assert_eq!(check(&page(bad), &tests).1.len(), 1, "{bad}");
    }
}

#[test]
fn tests_have_the_names_that_nextest_prints() {
    let text = "
#[test]
fn first() {}

fn helper() {}

mod inner {
    #[tokio::test(start_paused = true)]
    #[ignore = \"x\"]
    async fn second() {}
}

proptest! {
    #[test]
    fn third(x in 0..1) {}
}
";
    for (file, module) in [
        ("crates/a/src/lib.rs", ""),
        ("crates/a/src/b.rs", "b::"),
        ("crates/a/src/b/c.rs", "b::c::"),
        ("crates/a/tests/d.rs", ""),
        ("crates/a/tests/it/main.rs", ""),
        ("crates/a/tests/it/b/c.rs", "b::c::"),
    ] {
        let expected = ["first", "inner::second", "third"].map(|it| format!("{module}{it}"));
        assert_eq!(tests_in(file, text), expected, "{file}");
    }
    // This very test, and one of each other kind of place.
    let all = all_tests();
    for name in [
        "contributing::threats::tests_have_the_names_that_nextest_prints",
        "security::what_no_worker_would_send_does_a_run_no_harm",
        "whatever_a_hostile_script_does_ends_and_is_told",
        "redact::tests::any_text_is_cleaned",
    ] {
        assert!(all.contains(name), "{name}");
    }
}

/// Whether code does what the compiler cannot check, or asks to be let do it.
fn has_unsafe(text: &str) -> bool {
    // Most files do not even have the word.
    if !text.contains("unsafe") {
        return false;
    }
    let code = text.lines().filter(|it| !it.trim_start().starts_with("//"));
    let code = code.collect::<Vec<_>>().join("\n");
    CODE.is_match(&code) || LEAVE.is_match(&code)
}

#[test]
fn unsafe_code_is_in_one_file() {
    let with: Vec<String> = files().into_iter().filter(|it| has_unsafe(&read(it))).collect();
    assert_eq!(with, [UNSAFE], "CONTRIBUTING.md says where `unsafe` may stand");
    assert!(read("CONTRIBUTING.md").contains(&format!("`{UNSAFE}`")));
    let word = "unsafe";
    for code in ["{ x }", "fn f() {}", "impl Send for X {}", "extern \"C\" {}"] {
        assert!(has_unsafe(&format!("let x = 1; {word} {code}")), "{code}");
    }
    assert!(has_unsafe(&format!("#[expect({word}_code, reason = \"x\")]")));
    assert!(has_unsafe(&format!("#[{word}(no_mangle)]")));
    for text in ["an WORD command", "is_WORD: true", "// WORD { }", "WORD_code = \"forbid\""] {
        assert!(!has_unsafe(&text.replace("WORD", word)), "{text}");
    }
}

#[test]
fn every_crate_takes_the_lint_against_unsafe_code() {
    let manifest = |path: &str| toml::from_str::<toml::Table>(&read(path)).unwrap();
    let workspace = manifest("Cargo.toml");
    let level = |it: &toml::Table| it["lints"]["rust"].get("unsafe_code").cloned();
    assert_eq!(level(workspace["workspace"].as_table().unwrap()), Some("forbid".into()));
    let mut others = Vec::new();
    for member in std::fs::read_dir(root().join("crates")).unwrap().map(Result::unwrap) {
        let name = member.file_name().into_string().unwrap();
        let own = manifest(&format!("crates/{name}/Cargo.toml"));
        if own["lints"].get("workspace").is_none() {
            others.push((name, level(&own)));
        }
    }
    others.sort_by(|one, other| one.0.cmp(&other.0));
    // What PyO3's macros expand to is unsafe, so the lint cannot be on there: the test above and
    // `scripts/python-test` look at what is written.
    let expected = [
        ("probity-python".to_owned(), None),
        ("probity-sandbox".to_owned(), Some(toml::Value::from("deny"))),
    ];
    assert_eq!(others, expected);
}
