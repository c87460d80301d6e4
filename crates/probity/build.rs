//! Puts files into the binary: the built-in suites, and the definitions of the schemas. And the commit it is built from.
//!
//! The tables are made from what is there, so that no file can be forgotten in them.

#[path = "build/commit.rs"]
mod commit;

use std::{
    env,
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
};

fn main() -> io::Result<()> {
    let [home, out] = ["CARGO_MANIFEST_DIR", "OUT_DIR"]
        .map(|name| PathBuf::from(env::var_os(name).expect("cargo sets it for build scripts")));
    // Cargo looks into all folders below.
    println!("cargo::rerun-if-changed=suites");
    println!("cargo::rerun-if-changed=schemas/defs");
    fs::write(out.join("suites.rs"), suites(&home.join("suites"))?)?;
    let mut definitions = String::from("&[\n");
    add_files(&home.join("schemas/defs"), "", &mut definitions)?;
    definitions.push_str("]\n");
    fs::write(out.join("definitions.rs"), definitions)?;
    println!("cargo::rustc-env=VERSION_OF_BUILD={}", version(&home));
    Ok(())
}

/// What `--version` says. A build for development names no commit: it would have to be built anew after each.
fn version(home: &Path) -> String {
    let [number, profile] = ["CARGO_PKG_VERSION", "PROFILE"]
        .map(|name| env::var_os(name).expect("cargo sets it for build scripts"));
    let number = number.to_string_lossy();
    if profile == "debug" {
        return format!("{number} (debug)");
    }
    match commit::Commit::of(home) {
        Some(commit) => {
            commit.files.iter().for_each(|it| println!("cargo::rerun-if-changed={}", it.display()));
            format!("{number} ({})", commit.name)
        }
        None => number.into_owned(),
    }
}

/// A table of the suites, each with its files.
fn suites(root: &Path) -> io::Result<String> {
    let mut table = String::from("&[\n");
    for folder in sorted(root)? {
        let name = name_of(&folder);
        let _ = writeln!(table, "    Builtin {{\n        name: {name:?},\n        files: &[");
        add_files(&folder, "", &mut table)?;
        table.push_str("        ],\n    },\n");
    }
    table.push_str("]\n");
    Ok(table)
}

/// Adds the files of a folder, and of the folders in it.
fn add_files(folder: &Path, prefix: &str, table: &mut String) -> io::Result<()> {
    for path in sorted(folder)? {
        let name = format!("{prefix}{}", name_of(&path));
        if path.is_dir() {
            add_files(&path, &format!("{name}/"), table)?;
        } else {
            let path = path.display().to_string();
            let _ = writeln!(table, "            ({name:?}, include_str!({path:?})),");
        }
    }
    Ok(())
}

fn sorted(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.map(|entry| entry.map(|it| it.path()));
    let mut paths = entries.collect::<io::Result<Vec<_>>>()?;
    // What editors and systems leave behind is no part of a suite.
    paths.retain(|path| !name_of(path).starts_with('.'));
    paths.sort();
    Ok(paths)
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
