//! `--version`, and the commit in it.

#[path = "../../build/commit.rs"]
mod commit;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use commit::Commit;

use crate::project::Project;

#[test]
fn the_version_says_which_build_it_is() {
    let output = Project::new().run(&["--version"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let number = env!("CARGO_PKG_VERSION");
    let build = text.strip_prefix(&format!("probity {number}")).unwrap().trim();
    if cfg!(debug_assertions) {
        assert_eq!(build, "(debug)", "a build for development is not built anew after each commit");
    } else if let Some(commit) = Commit::of(Path::new(env!("CARGO_MANIFEST_DIR"))) {
        assert_eq!(build, format!("({})", commit.name));
    }
}

/// A repository with this crate in it, and one commit.
fn repository(place: &str) -> (Project, PathBuf) {
    let project = Project::new().file(&format!("{place}/Cargo.toml"), "");
    git(&project.path(""), &["init", "--quiet", "--initial-branch=main"]);
    git(&project.path(""), &["add", "--all"]);
    commit(&project.path(""));
    let home = project.path(place);
    (project, home)
}

/// Git that asks neither the user's settings nor the clock.
fn git(folder: &Path, words: &[&str]) -> String {
    let output = Command::new("git")
        .args([
            "-C",
            folder.to_str().unwrap(),
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
            "-c",
            "gc.auto=0",
        ])
        .args(words)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_COMMITTER_DATE", "2026-03-04T12:00:00Z")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn commit(folder: &Path) {
    git(folder, &["commit", "--quiet", "--allow-empty", "--message=x"]);
}

/// The name that the checkout in a folder should have.
fn head(folder: &Path) -> String {
    format!("{} 2026-03-04", git(folder, &["rev-parse", "--short=12", "HEAD"]))
}

/// The contents of the files that tell of a change.
fn watched(commit: &Commit) -> Vec<Vec<u8>> {
    assert!(!commit.files.is_empty(), "nothing tells of the next commit");
    commit.files.iter().map(|it| fs::read(it).unwrap()).collect()
}

#[test]
fn a_new_commit_changes_a_file_that_is_watched() {
    for (settings, packed) in [(None, false), (Some("core.logAllRefUpdates"), false), (None, true)]
    {
        let (project, home) = repository("crates/probity");
        if let Some(setting) = settings {
            git(&home, &["config", setting, "false"]);
            fs::remove_dir_all(project.path(".git/logs")).unwrap();
        }
        if packed {
            git(&home, &["pack-refs", "--all"]);
        }
        let before = Commit::of(&home).unwrap();
        assert_eq!(before.name, head(&home));
        let seen = watched(&before);
        fs::write(home.join("new"), "x").unwrap();
        git(&home, &["add", "--all"]);
        commit(&home);
        assert_ne!(watched(&before), seen, "{settings:?} {packed}");
        assert_eq!(Commit::of(&home).unwrap().name, head(&home));
    }
}

#[test]
fn a_second_work_tree_has_a_commit_of_its_own() {
    let (project, home) = repository("crates/probity");
    let elsewhere = project.path("elsewhere");
    git(&home, &["worktree", "add", "--quiet", "-b", "other", elsewhere.to_str().unwrap()]);
    let other = elsewhere.join("crates/probity");
    fs::write(other.join("new"), "x").unwrap();
    git(&other, &["add", "--all"]);
    let seen = watched(&Commit::of(&other).unwrap());
    commit(&other);
    let found = Commit::of(&other).unwrap();
    assert_eq!(found.name, head(&other));
    assert_ne!(found.name, Commit::of(&home).unwrap().name);
    assert_ne!(watched(&found), seen);
}

#[test]
fn a_repository_of_somebody_else_does_not_lend_its_commit() {
    let (_project, home) = repository("vendor/probity");
    assert_eq!(Commit::of(&home), None);
    assert_eq!(Commit::of(&Project::new().path("")), None, "there is no repository at all");
}

#[test]
fn a_package_remembers_its_commit() {
    let (_project, home) = repository("vendor/probity");
    let info = r#"{ "git": { "sha1": "0123456789abcdef0123456789abcdef01234567" }, "path_in_vcs": "crates/probity" }"#;
    fs::write(home.join(".cargo_vcs_info.json"), info).unwrap();
    assert_eq!(Commit::of(&home).unwrap().name, "0123456789ab");
    for damaged in
        ["", "{}", r#"{"git":{"sha1":"zz"}}"#, r#"{"git":{"sha1":"not a hash, though long"}}"#]
    {
        fs::write(home.join(".cargo_vcs_info.json"), damaged).unwrap();
        assert_eq!(Commit::of(&home), None, "{damaged}");
    }
}
