//! Which commit a source comes from, for `probity --version`.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Where this crate lies in its repository.
const PLACE: &str = "crates/probity/";
/// How many digits of a commit are shown.
const DIGITS: usize = 12;

/// A commit, and the files that change when another one takes its place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Commit {
    /// Its first digits and, if it is known, its day: `0a1b2c3d4e5f 2026-11-17`.
    pub(crate) name: String,
    pub(crate) files: Vec<PathBuf>,
}

impl Commit {
    /// The commit that the crate in this folder comes from: what `cargo package` wrote down of it, or what its checkout
    /// is at. There is none in an archive of the source, in a repository that is not ours, and where Git is missing.
    pub(crate) fn of(home: &Path) -> Option<Self> {
        packaged(home).or_else(|| checked_out(home))
    }
}

/// A package of a crate says where it comes from. Reading this one field takes no parser.
fn packaged(home: &Path) -> Option<Commit> {
    let file = home.join(".cargo_vcs_info.json");
    let text = fs::read_to_string(&file).ok()?;
    let (_, rest) = text.split_once("\"sha1\"")?;
    let name = rest.split('"').nth(1)?.get(..DIGITS)?.to_owned();
    let is_hash = name.bytes().all(|it| it.is_ascii_hexdigit());
    is_hash.then_some(Commit { name, files: vec![file] })
}

fn checked_out(home: &Path) -> Option<Commit> {
    // The crate may lie in a repository of somebody else, whose commit says nothing of it.
    if git(home, ["rev-parse", "--show-prefix"])? != PLACE {
        return None;
    }
    let name = git(
        home,
        ["log", "-1", "--no-show-signature", &format!("--abbrev={DIGITS}"), "--format=%h %cs"],
    )?;
    // Git writes a line there whenever the checkout moves. Where it keeps no such log, the files that could change
    // are watched. Cargo takes a file that is missing for one that has changed, so only those that are there.
    let path = |name: &str| Some(home.join(git(home, ["rev-parse", "--git-path", name])?));
    let watched = match path("logs/HEAD") {
        Some(log) if log.exists() => vec![log],
        _ => {
            let branch = git(home, ["symbolic-ref", "--quiet", "HEAD"]);
            let names = ["HEAD", "packed-refs"].into_iter().chain(branch.as_deref());
            names.filter_map(path).filter(|it| it.exists()).collect()
        }
    };
    Some(Commit { name, files: watched })
}

/// What Git answers; none if it fails, or is not there.
fn git<const N: usize>(folder: &Path, words: [impl AsRef<OsStr>; N]) -> Option<String> {
    let mut command = Command::new("git");
    // Hooks of Git set these for the repository that they run in.
    ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"].iter().for_each(|it| {
        command.env_remove(it);
    });
    let output = command.arg("-C").arg(folder).args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim_end().to_owned())
}
