//! What other shells have and the standard does not, from `data/posix/foreign.toml`.

use std::{collections::BTreeMap, sync::LazyLock};

use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Foreign {
    builtins: BTreeMap<String, String>,
    variables: BTreeMap<String, String>,
    settings: BTreeMap<String, String>,
    wrappers: BTreeMap<String, (String, usize)>,
}

/// A command outside the standard that runs a command.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wrapper {
    /// Its option letters, as `getopts` writes them.
    pub(super) letters: &'static str,
    /// How many operands of its own come before the command.
    pub(super) skip: usize,
}

static FOREIGN: LazyLock<Foreign> = LazyLock::new(|| table!("posix-foreign"));

/// What to write instead of another shell's builtin.
pub(super) fn builtin(name: &str) -> Option<&'static str> {
    FOREIGN.builtins.get(name).map(String::as_str)
}

/// What to write instead of a variable that another shell sets.
pub(super) fn variable(name: &str) -> Option<&'static str> {
    // Nearly all variables are told apart by their first letter.
    if !name.starts_with(|it: char| it.is_ascii_uppercase() || it == '_') {
        return None;
    }
    match FOREIGN.variables.get(name) {
        Some(instead) => Some(instead),
        None if name.starts_with("BASH_") => Some("leave it out; only bash sets it"),
        None => None,
    }
}

/// Variables that change by themselves: assigning them does not make them ordinary.
pub(super) fn is_dynamic(name: &str) -> bool {
    matches!(name, "RANDOM" | "SECONDS" | "SRANDOM" | "EPOCHSECONDS" | "EPOCHREALTIME")
}

/// What to write instead of assigning a variable that only another shell heeds.
pub(super) fn setting(name: &str) -> Option<&'static str> {
    FOREIGN.settings.get(name).map(String::as_str)
}

/// The command that runs a command.
pub(super) fn wrapper(name: &str) -> Option<Wrapper> {
    let (letters, skip) = FOREIGN.wrappers.get(name)?;
    Some(Wrapper { letters, skip: *skip })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::posix::{Edition, standard};

    #[test]
    fn nothing_foreign_is_in_the_standard() {
        for edition in [Edition::Posix2017, Edition::Posix2024] {
            for name in FOREIGN.builtins.keys().chain(FOREIGN.wrappers.keys()) {
                assert!(standard::lookup(name, edition).is_none(), "`{name}` is in {edition}");
            }
        }
    }
}
