//! How the action and the pipelines get the program: from a release if there is one, else compiled.

use std::{
    fmt::Write as _,
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Output},
    thread,
};

use sha2::{Digest as _, Sha256};

use crate::{action::repository, project::Project};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The archive of a release with a program that says where it comes from, and its name.
fn archive() -> (String, Vec<u8>) {
    let system = match std::env::consts::OS {
        "macos" => "apple-darwin",
        _ => "unknown-linux-musl",
    };
    let name = format!("probity-{VERSION}-{}-{system}", std::env::consts::ARCH);
    let project = Project::new().file(&format!("{name}/bin/probity"), "#!/bin/sh\necho released\n");
    make_executable(&project, &format!("{name}/bin/probity"));
    let words = ["-czf", "archive.tar.gz", &name];
    assert!(
        Command::new("tar").args(words).current_dir(project.path("")).status().unwrap().success()
    );
    (format!("{name}.tar.gz"), fs::read(project.path("archive.tar.gz")).unwrap())
}

fn make_executable(project: &Project, name: &str) {
    fs::set_permissions(project.path(name), fs::Permissions::from_mode(0o755)).unwrap();
}

fn checksum(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A server that has these files, and nothing else.
fn server(files: Vec<(String, Vec<u8>)>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            let path = line.split(' ').nth(1).unwrap().to_owned();
            while !line.trim_end().is_empty() {
                line.clear();
                reader.read_line(&mut line).unwrap();
            }
            let found =
                files.iter().find(|(name, _)| *name == path).map(|(_, bytes)| bytes.as_slice());
            let status = if found.is_some() { "200 OK" } else { "404 Not Found" };
            let body = found.unwrap_or_default();
            let head = format!(
                "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            let mut stream = reader.into_inner();
            stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
        }
    });
    url
}

/// A server with a release, whose list of checksums may be of another archive.
fn releases(listed: impl Fn(&[u8]) -> String) -> String {
    let (name, bytes) = archive();
    let place = format!("/someone/probity/releases/download/v{VERSION}");
    let sums = format!("{}  other.tar.gz\n{}  {name}\n", checksum(b""), listed(&bytes));
    server(vec![
        (format!("{place}/SHA256SUMS"), sums.into_bytes()),
        (format!("{place}/{name}"), bytes),
    ])
}

/// A folder with a `cargo` that says what it was asked.
fn tools() -> Project {
    let project =
        Project::new().file("bin/cargo", "#!/bin/sh\necho \"$@\" > \"$RUNNER_TEMP/compiled\"\n");
    make_executable(&project, "bin/cargo");
    project
}

/// The programs of the system, after those of the project.
fn path_of(project: &Project) -> String {
    format!("{}:/usr/bin:/bin", project.path("bin").display())
}

fn install(project: &Project, server: &str, variables: &[(&str, &str)]) -> Output {
    Command::new("python3")
        .arg("-I")
        .arg(repository().join("scripts/ci-action"))
        .arg("install")
        .env_clear()
        .env("PATH", path_of(project))
        .env("GITHUB_ACTION_PATH", repository())
        .env("GITHUB_SERVER_URL", server)
        .env("GITHUB_PATH", project.path("paths"))
        .env("RUNNER_TEMP", project.path(""))
        .env("ACTION_REPOSITORY", "someone/probity")
        .env("NO_PROXY", "*")
        .envs(variables.iter().copied())
        .output()
        .unwrap()
}

/// What `cargo` was asked, if it was.
fn compiled(project: &Project) -> Option<String> {
    fs::read_to_string(project.path("compiled")).ok()
}

#[test]
fn the_released_binary_of_the_version_is_taken() {
    let project = tools();
    let output = install(&project, &releases(checksum), &[]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(compiled(&project), None);
    let folder = project.read("paths");
    let program = Path::new(folder.trim()).join("probity");
    let said = Command::new(program).output().unwrap();
    assert_eq!(said.stdout, b"released\n");
}

#[test]
fn without_a_release_it_is_compiled() {
    let nothing = server(Vec::new());
    let taken = releases(checksum);
    let nowhere = "http://127.0.0.1:1".to_owned();
    let cases = [
        (&nothing, [("ACTION_REPOSITORY", "someone/probity")]),
        (&taken, [("ACTION_REPOSITORY", "")]),
        (&taken, [("ACTION_INSTALL", "source")]),
        (&nowhere, [("ACTION_INSTALL", "release")]),
    ];
    for (server, variables) in cases {
        let project = tools();
        let output = install(&project, server, &variables);
        assert!(output.status.success(), "{output:?}");
        let words = compiled(&project).unwrap();
        assert!(
            words.starts_with("install --locked --path ")
                && words.trim_end().ends_with("/crates/probity"),
            "{words}"
        );
        assert!(!project.path("paths").exists());
    }
}

#[test]
fn an_archive_that_is_not_the_released_one_is_never_run() {
    let project = tools();
    let output = install(&project, &releases(|_| checksum(b"another")), &[]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("checksum"), "{text}");
    assert!(compiled(&project).is_none() && !project.path("paths").exists());
}

#[test]
fn a_program_that_is_there_already_is_used() {
    let project = tools().file("bin/probity", "#!/bin/sh\n");
    make_executable(&project, "bin/probity");
    let output = install(&project, &releases(checksum), &[]);
    assert!(output.status.success(), "{output:?}");
    assert!(compiled(&project).is_none() && !project.path("paths").exists());
}

/// The scripts of the pipeline for GitLab, one after the other as it runs them.
fn pipeline(project: &Project) -> String {
    assert!(project.run(&["init", "--no-detect", "--ci", "gitlab"]).status.success());
    let text = project.read(".gitlab-ci.yml");
    let (_, rest) = text.split_once("  script:\n").unwrap();
    let (scripts, _) = rest.split_once("  artifacts:\n").unwrap();
    scripts.replace("    - |\n", "")
}

/// Runs the pipeline with a `curl` that copies the archive, and a `cargo` that copies the program.
fn run_pipeline(archive: &[u8], variables: &[(&str, &str)]) -> (Project, Output) {
    let project = Project::new();
    let real = env!("CARGO_BIN_EXE_probity");
    let project = project
        .file("archive", archive)
        .file("bin/curl", "#!/bin/sh\necho \"$@\" > fetched\nfor it; do case $last in --output) cp archive \"$it\";; esac; last=$it; done\n")
        .file("bin/cargo", format!("#!/bin/sh\necho \"$@\" > compiled\nln -s '{real}' bin/probity\n"));
    make_executable(&project, "bin/curl");
    make_executable(&project, "bin/cargo");
    let script = pipeline(&project);
    let output = Command::new("bash")
        .args(["-eo", "pipefail", "-c", &script])
        .current_dir(project.path(""))
        .env("PATH", path_of(&project))
        .env("CI_COMMIT_BRANCH", "main")
        .env("CI_DEFAULT_BRANCH", "main")
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    (project, output)
}

#[test]
fn the_pipeline_for_gitlab_takes_an_archive() {
    let (_, bytes) = archive();
    let (right, wrong) = (checksum(&bytes), checksum(b"another"));
    let address = ("PROBITY_ARCHIVE", "https://example.test/probity.tar.gz");
    let (project, output) = run_pipeline(&bytes, &[address, ("PROBITY_SHA256", right.as_str())]);
    assert!(output.status.success(), "{output:?}");
    assert!(project.read("fetched").trim_end().ends_with("https://example.test/probity.tar.gz"));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.ends_with("released\nreleased\n"), "it runs, and sets the baseline: {said}");

    let (project, output) = run_pipeline(&bytes, &[address, ("PROBITY_SHA256", wrong.as_str())]);
    assert!(!output.status.success(), "{output:?}");
    assert!(!project.path(".probity-bin").exists(), "what is not the archive is not unpacked");
}

#[test]
fn the_pipeline_for_gitlab_compiles_without_one() {
    let (project, output) =
        run_pipeline(b"", &[("PROBITY_REPOSITORY", "https://example.test/probity.git")]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        project.read("compiled"),
        "install --locked --git https://example.test/probity.git probity\n"
    );
    assert!(project.path("baselines/main.json").is_file());
    assert!(project.read("probity-junit.xml").contains("<testsuite"));
}
