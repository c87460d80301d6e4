//! Turns the tables of `data/` into what the program reads them from: the list of refusals into an automaton, the others
//! into JSON, which is read ten times as fast as TOML.

#[path = "build/refusal.rs"]
mod refusal;

use std::{
    env,
    error::Error,
    fs,
    path::{Path, PathBuf},
};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    // Cargo looks into all folders below.
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed=data");
    println!("cargo::rerun-if-changed=src/refusal");
    let [home, out] = ["CARGO_MANIFEST_DIR", "OUT_DIR"]
        .map(|name| PathBuf::from(env::var_os(name).expect("cargo sets it for build scripts")));
    let data = home.join("data");
    let list = fs::read_to_string(data.join("refusal.toml"))?;
    let list = refusal::compile(&list).map_err(|error| format!("data/refusal.toml: {error}"))?;
    fs::write(out.join("refusal.rs"), list)?;
    for entry in fs::read_dir(data.join("errors"))? {
        rewrite(&entry?.path(), &out)?;
    }
    for name in ["agent", "judge", "user"] {
        rewrite(&data.join(name).with_extension("toml"), &out)?;
    }
    Ok(())
}

/// Writes a table as JSON.
fn rewrite(path: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    let text = fs::read_to_string(path)?;
    let table: serde_json::Value =
        toml::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    let name = path.file_stem().ok_or("a table has a name")?;
    fs::write(out.join(name).with_extension("json"), table.to_string())?;
    Ok(())
}
