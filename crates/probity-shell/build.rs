//! Turns the tables of `data/` into what the program reads them from: JSON, which is read ten times as fast as TOML, and
//! lists of what is read only when it is asked for.

use std::{
    collections::BTreeMap,
    env,
    error::Error,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

/// Tables that are read whole.
const WHOLE: &[&str] = &[
    "find",
    "output",
    "posix/foreign",
    "posix/instead",
    "posix/rules",
    "posix/utilities",
    "safety/levels",
    "safety/tools",
    "safety/wrappers",
    "slight",
    "synonyms",
];

/// What only tests read.
const FOR_TESTS: &[&str] = &["counter", "example", "held"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    // Cargo looks into all folders below.
    println!("cargo::rerun-if-changed=data");
    let [home, out] = ["CARGO_MANIFEST_DIR", "OUT_DIR"]
        .map(|name| PathBuf::from(env::var_os(name).expect("cargo sets it for build scripts")));
    let data = home.join("data");
    for name in WHOLE {
        let mut table: Value = read(&data.join(format!("{name}.toml")))?;
        leave_out_tests(&mut table);
        fs::write(out.join(format!("{}.json", name.replace('/', "-"))), table.to_string())?;
    }
    fs::write(out.join("utilities.rs"), utilities(&data.join("utilities"))?)?;
    fs::write(out.join("rules.rs"), rules(&data.join("safety"))?)?;
    Ok(())
}

/// The list of all utilities, sorted by first byte, then by length, then by name.
fn utilities(folder: &Path) -> Result<String, Box<dyn Error>> {
    let mut all = Vec::new();
    for (file, path) in files(folder)? {
        let tables: BTreeMap<String, Value> = read(&path)?;
        all.extend(tables.into_iter().map(|(name, table)| (name, file.clone(), table)));
    }
    all.sort_by_key(|(name, _, _)| (name.bytes().next(), name.len(), name.clone()));
    list(&all, |(name, file, table)| {
        format!("Source {{ name: {name:?}, file: {file:?}, text: {:?} }}", table.to_string())
    })
}

/// The list of all rules, in the order of their files.
fn rules(folder: &Path) -> Result<String, Box<dyn Error>> {
    let mut all = Vec::new();
    for (file, path) in files(folder)? {
        let table: BTreeMap<String, Value> = read(&path)?;
        let rules = table.get("rule").and_then(Value::as_array).cloned().unwrap_or_default();
        all.extend(rules.into_iter().map(|rule| (file.clone(), rule)));
    }
    list(&all, |(file, rule)| {
        let words = |key: &str| {
            let words = rule.get(key).and_then(Value::as_array).into_iter().flatten();
            words.filter_map(Value::as_str).collect::<Vec<_>>()
        };
        let id = rule.get("id").and_then(Value::as_str).unwrap_or_default();
        let (programs, subcommands) = (words("programs"), !words("commands").is_empty());
        let mut rule = rule.clone();
        leave_out_tests(&mut rule);
        format!(
            "Source {{ id: {id:?}, file: {file:?}, programs: &{programs:?}, subcommands: {subcommands}, text: {:?} }}",
            rule.to_string()
        )
    })
}

/// A list in Rust.
fn list<T>(all: &[T], entry: impl Fn(&T) -> String) -> Result<String, Box<dyn Error>> {
    let mut text = String::from("&[\n");
    for it in all {
        writeln!(text, "    {},", entry(it))?;
    }
    text.push_str("]\n");
    Ok(text)
}

/// The tables of a folder by name.
fn files(folder: &Path) -> Result<BTreeMap<String, PathBuf>, Box<dyn Error>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|it| it == "toml")
            && let Some(name) = path.file_name().and_then(|it| it.to_str())
        {
            files.insert(name.to_owned(), path);
        }
    }
    Ok(files)
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, Box<dyn Error>> {
    let text = fs::read_to_string(path)?;
    toml::from_str(&text).map_err(|error| format!("{}: {error}", path.display()).into())
}

fn leave_out_tests(table: &mut Value) {
    if let Some(fields) = table.as_object_mut() {
        fields.retain(|key, _| !FOR_TESTS.contains(&key.as_str()));
    }
}
