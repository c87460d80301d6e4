//! CONTRIBUTING.md and ARCHITECTURE.md, held against the files that they name.
//!
//! A path in backticks starts at the root of the repository. Names in brackets after a path are
//! declared in that file: `` `path/file.rs` (`Type`, `Type::member`, `function`, `macro!`) ``.
//! `NAME` in a path stands for a new file, whose folder exists. A file without a folder is the
//! only one of its name. `probity-run::engine` is a module of a crate, or an item of a module.

mod threats;

use std::{
    fs,
    path::{Path, PathBuf},
};

use probity_core::kind::RunnerKind;
use probity_load::suite::{BackendKind, Way};
use regex::Regex;

const PAGES: [&str; 2] = ["CONTRIBUTING.md", "ARCHITECTURE.md"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A page without its blocks of code, which hold commands.
fn prose(page: &str) -> String {
    let text = read(page);
    let parts = text.split("```");
    parts.step_by(2).collect()
}

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap()
}

/// What stands in backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The path that a quotation names, if it names one: of a command the program.
fn path_of(quotation: &str) -> Option<&str> {
    let first = quotation.split_whitespace().next()?;
    let first = first.strip_prefix("./").unwrap_or(first);
    let is_file = regex(r"^[\w-]+\.(rs|md|toml|json|sh|snap)$").is_match(first);
    let is_path = first.contains('/') && regex(r"^\.?[\w][\w./-]*$").is_match(first);
    // What a build leaves is not there before it.
    let is_built = first.starts_with("target/");
    ((is_file || is_path) && !is_built).then_some(first)
}

/// Every file of the repository with this name, as far as people wrote it.
fn files_named(name: &str) -> Vec<PathBuf> {
    fn walk(folder: &Path, name: &str, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            let own = entry.file_name();
            if path.is_dir() {
                if own != "target" && !own.to_string_lossy().starts_with('.') {
                    walk(&path, name, found);
                }
            } else if own == name {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(&root(), name, &mut found);
    found
}

fn check_path(path: &str) -> Result<(), String> {
    let whole = root().join(path);
    if !path.contains('/') {
        return match files_named(path).len() {
            _ if whole.is_file() => Ok(()),
            1 => Ok(()),
            count => Err(format!("`{path}`: {count} files have this name")),
        };
    }
    let is_new = whole.file_stem().is_some_and(|it| it == "NAME");
    let there = if is_new { whole.parent().is_some_and(Path::is_dir) } else { whole.exists() };
    there.then_some(()).ok_or_else(|| format!("`{path}` does not exist"))
}

/// The lines of each block that begins with `head`. Our code is formatted, so that a block ends
/// with a bracket as far to the right as it began.
fn blocks<'t>(text: &'t str, head: &Regex) -> Vec<Vec<&'t str>> {
    let lines: Vec<&str> = text.lines().collect();
    let begins = lines.iter().enumerate().filter(|(_, line)| head.is_match(line));
    begins
        .map(|(at, line)| {
            let end = format!("{}}}", &line[..line.len() - line.trim_start().len()]);
            lines[at + 1..].iter().take_while(|it| **it != end).copied().collect()
        })
        .collect()
}

const VISIBLE: &str = r"^\s*(pub(\([a-z ]+\))? )?";

/// Whether a Rust file declares something; to mention it is not enough.
fn declares(text: &str, item: &str) -> bool {
    if let Some(name) = item.strip_suffix('!') {
        return regex(&format!(r"(?m)^\s*(macro_rules! {name} \{{|{name}! \{{)$")).is_match(text);
    }
    let Some((owner, member)) = item.split_once("::") else {
        let what = "((const |async )*fn|struct|enum|const|static|type|trait|mod)";
        return regex(&format!(r"(?m){VISIBLE}{what} {item}\b")).is_match(text);
    };
    let inside = |head: &str, member: &str| {
        let member = regex(member);
        let found = blocks(text, &regex(head));
        found.iter().flatten().any(|line| member.is_match(line))
    };
    let head = format!(r"{VISIBLE}(struct|enum|trait) {owner}\b.*\{{$");
    let method = format!(r"{VISIBLE}((const |async )*fn|const) {member}\b");
    inside(&head, &format!(r"{VISIBLE}{member}( =|,|:|\(| \{{)"))
        || inside(&format!(r"^impl(<.*>)? {owner}\b.*\{{$"), &method)
}

/// Whether a file says something under this name.
fn holds(path: &str, text: &str, item: &str) -> bool {
    let item = regex::escape(item);
    match Path::new(path).extension().and_then(|it| it.to_str()) {
        Some("rs") => declares(text, &item),
        Some("json") => regex(&format!(r#"(?m)^\s*"{item}": "#)).is_match(text),
        Some("toml") => regex(&format!(r"(?m)^(\[\[?{item}\]\]?|{item} = .*)$")).is_match(text),
        _ => false,
    }
}

/// Whether a module of one of our crates exists, or its last part is declared in the one before.
/// None if the name begins with no crate of ours.
fn module(name: &str) -> Option<bool> {
    let (first, rest) = name.split_once("::")?;
    let short = format!("probity-{first}");
    let home =
        [first, &short].iter().map(|it| root().join("crates").join(it)).find(|it| it.is_dir());
    let home = home?.join("src");
    let parts: Vec<&str> = rest.split("::").collect();
    let file = |parts: &[&str]| match parts {
        [] => home.join("lib.rs"),
        parts => home.join(parts.join("/")).with_extension("rs"),
    };
    // A type and its member are one name.
    let declared = (0..parts.len()).rev().take(2).any(|at| {
        fs::read_to_string(file(&parts[..at]))
            .is_ok_and(|text| declares(&text, &parts[at..].join("::")))
    });
    Some(file(&parts).is_file() || declared)
}

#[test]
fn every_path_and_module_that_the_pages_name_is_there() {
    for page in PAGES {
        let text = prose(page);
        let paths: Vec<&str> = quoted(&text).filter_map(path_of).collect();
        let mut wrong: Vec<String> = paths.iter().filter_map(|it| check_path(it).err()).collect();
        let missing = quoted(&text).filter(|it| module(it) == Some(false));
        wrong.extend(missing.map(|it| format!("there is no `{it}`")));
        assert!(wrong.is_empty(), "{page}:\n{}", wrong.join("\n"));
        assert!(paths.len() > 10, "{page} names {} paths", paths.len());
    }
}

#[test]
fn every_item_that_a_recipe_names_is_declared_in_its_file() {
    let text = prose("CONTRIBUTING.md");
    let named = regex(r"`([\w./-]+/[\w.-]+)`\s+\((`[^)]*`)\)");
    let mut seen = 0;
    let mut wrong = Vec::new();
    for found in named.captures_iter(&text) {
        let (path, items) = (&found[1], &found[2]);
        for item in quoted(items) {
            seen += 1;
            if !holds(path, &read(path), item) {
                wrong.push(format!("`{path}` does not declare `{item}`"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 60, "only {seen} items were found");
    // A bracket that is not read as such would let anything pass.
    let brackets = regex(r"`\s+\(`").find_iter(&text).count();
    assert_eq!(named.find_iter(&text).count(), brackets);
}

#[test]
fn every_step_of_a_recipe_names_a_file() {
    let text = read("CONTRIBUTING.md");
    let (_, recipes) = text.split_once("\n## Recipes\n").unwrap();
    let recipes: Vec<&str> = recipes.split("\n### ").skip(1).collect();
    let about: Vec<&str> = recipes.iter().map(|it| it.lines().next().unwrap()).collect();
    assert_eq!(
        about,
        [
            "A preset: a service that speaks a known dialect",
            "A dialect: the API of a server",
            "A model with a name",
            "An assertion",
            "A report format",
            "Results of another tool",
            "A kind of runner",
            "A safety rule",
            "A shell utility",
            "A field of the case record",
            "A setting",
            "A definition of a schema",
        ]
    );
    let number = regex(r"(?m)^(\d+)\. ");
    for recipe in recipes {
        let name = recipe.lines().next().unwrap();
        let steps: Vec<&str> = recipe.split("\n\n").filter(|it| number.is_match(it)).collect();
        let [steps] = steps[..] else { panic!("{name}: {} lists of steps", steps.len()) };
        let numbers: Vec<&str> =
            number.captures_iter(steps).map(|it| it.extract::<1>().1[0]).collect();
        let expected: Vec<String> = (1..=numbers.len()).map(|it| it.to_string()).collect();
        assert_eq!(numbers, expected, "{name}");
        for step in number.split(steps).skip(1) {
            assert!(quoted(step).any(|it| path_of(it).is_some()), "{name}: {step}");
        }
    }
}

/// The Rust files in a folder, by their paths from the root.
fn sources(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|it| it == "rs") {
            found.push(path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned());
        }
    }
}

/// The kinds of runners that code which is no test names, in any of the enums that have a variant
/// for each.
fn kinds_in(text: &str) -> Vec<RunnerKind> {
    let code = text.split("\n#[cfg(test)]\nmod ").next().unwrap();
    let named = regex(r"\b(?:RunnerKind|Evidence|Figures)::(\w+)");
    let named = named.captures_iter(code).filter_map(|it| {
        RunnerKind::ALL.into_iter().find(|kind| format!("{kind:?}") == it.extract::<1>().1[0])
    });
    named.collect()
}

#[test]
fn a_kind_of_runner_is_named_in_its_modules_alone() {
    let (core, run) = ("crates/probity-core/src/kind", "crates/probity-run/src/kind");
    let mut files = Vec::new();
    for folder in fs::read_dir(root().join("crates")).unwrap().map(Result::unwrap) {
        sources(&folder.path().join("src"), &mut files);
    }
    let is_test = |it: &&String| it.ends_with("tests.rs") || it.contains("/tests/");
    let others = files.iter().filter(|it| !it.starts_with(core) && !it.starts_with(run));
    // What others are shown and measured with has a kind.
    let is_sample =
        |it: &&String| it.ends_with("report/src/sample.rs") || it.ends_with("run/src/simulated.rs");
    for file in others.filter(|it| !is_test(it) && !is_sample(it)) {
        let named = kinds_in(&read(file));
        assert!(named.is_empty(), "{file} names {named:?}: let it ask `KindSpec`, or a trait");
    }
    assert_eq!(kinds_in(&read(&format!("{run}.rs"))), RunnerKind::ALL, "the arms of `open`");
    let docs = read("docs/suites.md") + &read("docs/skills.md");
    for kind in RunnerKind::ALL {
        for folder in [core, run] {
            assert!(files.contains(&format!("{folder}/{kind}.rs")), "{kind} in {folder}");
        }
        assert!(docs.contains(&format!("`{kind}`")), "{kind} is in no document");
    }
}

#[test]
fn a_kind_is_found_wherever_it_stands() {
    let found = kinds_in("if kind == RunnerKind::Program { Evidence::Activation(x) }");
    assert_eq!(found, [RunnerKind::Program, RunnerKind::Activation]);
    let not =
        "RunnerKind::ALL; Evidence::parse; Kind::Program\n#[cfg(test)]\nmod t { Figures::Program }";
    assert_eq!(kinds_in(not), []);
}

#[test]
fn every_crate_has_a_row_in_the_table_of_crates() {
    let text = read("ARCHITECTURE.md");
    for folder in fs::read_dir(root().join("crates")).unwrap().map(Result::unwrap) {
        let row = format!("\n| `{}` | ", folder.file_name().to_string_lossy());
        assert!(text.contains(&row), "{row:?}");
    }
}

#[test]
fn the_oldest_compiler_is_the_same_everywhere() {
    let manifest: toml::Table = toml::from_str(&read("Cargo.toml")).unwrap();
    let oldest = manifest["workspace"]["package"]["rust-version"].as_str().unwrap();
    let workflow = read(".github/workflows/ci.yml");
    assert!(workflow.contains(&format!("rust: [stable, \"{oldest}\"]\n")), "ci.yml");
    assert!(read("CONTRIBUTING.md").contains(&format!(", {oldest} or later,")), "CONTRIBUTING.md");
    let release = read(".github/workflows/release.yml");
    let chosen: Vec<&str> =
        release.lines().filter_map(|it| it.trim().strip_prefix("toolchain: ")).collect();
    let expected = format!("\"{oldest}\"");
    assert!(!chosen.is_empty() && chosen.iter().all(|it| *it == expected), "{chosen:?}");
}

#[test]
fn crates_refer_to_each_other_by_the_version_that_is_released() {
    let manifest: toml::Table = toml::from_str(&read("Cargo.toml")).unwrap();
    let workspace = &manifest["workspace"];
    let version = &workspace["package"]["version"];
    for (name, it) in workspace["dependencies"].as_table().unwrap() {
        let Some(folder) = it.get("path").and_then(|it| it.as_str()) else { continue };
        let own: toml::Table = toml::from_str(&read(&format!("{folder}/Cargo.toml"))).unwrap();
        let is_private = own["package"]["publish"].as_bool() == Some(false);
        // Cargo refuses to pack a crate that refers to another without a version, unless it is for tests.
        let wanted = if is_private { None } else { Some(version) };
        assert_eq!(it.get("version"), wanted, "{name}");
    }
}

#[test]
fn releases_are_for_the_same_targets_everywhere() {
    let named = |text: &str| {
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-'));
        let is_target = |it: &&str| it.ends_with("-linux-musl") || it.ends_with("-apple-darwin");
        words
            .filter(is_target)
            .map(ToOwned::to_owned)
            .collect::<std::collections::BTreeSet<String>>()
    };
    let script = read("scripts/package");
    let (_, rest) = script.split_once("\nTARGETS = {").unwrap();
    let packaged = named(rest.split_once("\n}").unwrap().0);
    assert_eq!(packaged.len(), 4, "{packaged:?}");
    for file in [".github/workflows/release.yml", "scripts/ci-action", "docs/installing.md"] {
        assert_eq!(named(&read(file)), packaged, "{file}");
    }
}

#[test]
fn the_readme_knows_how_many_kinds_of_servers_there_are() {
    let servers = BackendKind::ALL.iter().filter(|it| it.way() == Way::Server).count();
    assert!(read("README.md").contains(&format!("| {servers} kinds of servers,")), "{servers}");
}

#[test]
fn a_mention_is_no_declaration() {
    let text = "
// fn told() and struct Told
use x::used;
pub(crate) const LISTS: [u8; 2] = [1, 2];
rows! {
    /// A side.
    pub enum Side (\"a side\") {
        /// Port.
        Left = \"left\",
    }
}
impl<'a> Whole<'a> {
    pub const fn turn(self) {
        left(Self::Top);
    }
}
struct Plain {
    pub(super) place: u8,
}
fn turned() { other!(); }
";
    for item in ["LISTS", "rows!", "Side", "Side::Left", "Whole::turn", "Plain::place", "turned"] {
        assert!(declares(text, item), "{item}");
    }
    for item in [
        "told",
        "Told",
        "used",
        "LIST",
        "other!",
        "Side::Right",
        "Side::left",
        "Whole::left",
        "Whole::Top",
        "Plain::turn",
        "Whole",
        "turn_",
        "Sid",
        "Plain::plac",
    ] {
        assert!(!declares(text, item), "{item}");
    }
    assert!(holds("a.json", "{\n  \"words\": {}\n}", "words"));
    assert!(!holds("a.json", "{\n  \"x\": \"words\"\n}", "words"));
    assert!(holds("a.toml", "[[rule]]\nid = \"x\"", "rule") && holds("a.toml", "id = \"x\"", "id"));
    assert!(!holds("a.toml", "# rule\nx = \"id = 1\"", "id"));
    assert!(!holds("a.md", "# rule", "rule"));
}

#[test]
fn what_is_not_there_is_noticed() {
    let missing = ["crates/probity/src/nothing.rs", "nothing.rs", "nowhere/NAME.rs", "lib.rs"];
    for path in missing {
        assert!(check_path(path_of(path).unwrap()).is_err(), "{path}");
    }
    for path in ["./test.sh quick", "crates/probity/src/NAME.rs", "printer.rs", "fuzz/", ".ci/run"]
    {
        assert_eq!(check_path(path_of(path).unwrap()), Ok(()), "{path}");
    }
    for words in ["cargo test", "https://a.example/b", "RunnerKind", "*/x"] {
        assert_eq!(path_of(words), None, "{words}");
    }
    let is_there = ["probity-run::engine", "core::record::CaseRecord", "grade::classify"];
    for (names, expected) in [
        (&is_there[..], Some(true)),
        (&["probity-run::nothing", "core::suite"], Some(false)),
        (&["std::env", "Gate::defaults"], None),
    ] {
        for name in names {
            assert_eq!(module(name), expected, "{name}");
        }
    }
}
