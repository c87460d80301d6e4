//! Whether a command can be believed that is executed in a world where a model was at work.
//!
//! All files of a world belong to its user, so a model can put a `wc` of its own before that of the host, or have a
//! library loaded into every program. What a case executes afterwards must not be taken in by that.

use probity_sandbox::{execution::Change, world::Prepared};

/// What every program depends on. No task has to change it.
const SYSTEM: &[&str] = &[
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/usr",
    "/dev",
    "/proc",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.preload",
    "/etc/nsswitch.conf",
    "/etc/perl",
];
/// The same, where the version of the program is a part of the name.
const SYSTEM_VERSIONS: &[&str] = &["/etc/python"];

/// The first path that was changed and that every program depends on.
pub(super) fn forged(left: &[Change]) -> Option<String> {
    let is_system = |path: &str| {
        SYSTEM.iter().any(|it| is_below(path, it))
            || SYSTEM_VERSIONS.iter().any(|it| path.starts_with(it))
    };
    let found = left.iter().find(|it| is_changed(it) && is_system(&it.path));
    found.map(|it| it.path.clone())
}

/// What a command is started with: the variables of the world and no others. Directories of programs to which the model has
/// added come last, and Python does not look for modules in the home directory.
pub(super) fn surroundings(prepared: &Prepared, left: &[Change]) -> Vec<String> {
    let path = prepared.variables.get("PATH").map_or("/usr/bin:/bin", String::as_str);
    let is_touched = |directory: &&str| {
        left.iter().any(|it| is_changed(it) && is_below(&it.path, directory.trim_end_matches('/')))
    };
    let (touched, own): (Vec<&str>, Vec<&str>) = path.split(':').partition(is_touched);
    let path: Vec<&str> = own.into_iter().chain(touched).collect();
    let own = prepared.variables.iter().filter(|it| it.0 != "PATH");
    let own = own.map(|(name, value)| format!("{name}={value}"));
    let start = ["/usr/bin/env".to_owned(), "-i".to_owned(), format!("PATH={}", path.join(":"))];
    start.into_iter().chain(own).chain(["PYTHONNOUSERSITE=1".to_owned()]).collect()
}

fn is_below(path: &str, above: &str) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A new time alone is no change.
fn is_changed(change: &Change) -> bool {
    let facts = |it: &probity_sandbox::execution::Entry| (it.kind.clone(), it.mode);
    change.before.as_ref().map(facts) != change.after.as_ref().map(facts)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use probity_sandbox::execution::{Entry, EntryKind};

    use super::*;

    fn made(path: &str) -> Change {
        let kind = EntryKind::Directory;
        let entry = Entry { kind, mode: 0o755, owner: (1000, 1000), links: 0, modified: 0 };
        Change { path: path.to_owned(), before: None, after: Some(entry) }
    }

    #[test]
    fn what_every_program_depends_on_is_known() {
        for path in ["/lib64", "/etc/ld.so.preload", "/etc/python3.11/sitecustomize.py"] {
            assert_eq!(forged(&[made("/etc/motd"), made(path)]), Some(path.to_owned()));
        }
        for path in ["/etc", "/library", "/etc/hosts", "/opt/bin/wc", "/home/ada/bin"] {
            assert_eq!(forged(&[made(path)]), None, "{path}");
        }
        let touched = Change { before: made("/lib64").after, ..made("/lib64") };
        assert_eq!(forged(&[touched]), None);
    }

    #[test]
    fn programs_of_the_model_are_found_last() {
        let prepared = Prepared {
            name: "w".to_owned(),
            digest: String::new(),
            tree: "/".into(),
            directory: "/".to_owned(),
            variables: BTreeMap::from([("PATH".to_owned(), "/opt/bin:/usr/bin".to_owned())]),
            processes: Vec::new(),
        };
        let path = |left: &[Change]| surroundings(&prepared, left)[2].clone();
        assert_eq!(path(&[]), "PATH=/opt/bin:/usr/bin");
        assert_eq!(path(&[made("/opt/bin/wc")]), "PATH=/usr/bin:/opt/bin");
    }
}
