//! Campaigns that scripts of the repository make: pages in a browser, workers and their server killed.

use std::{
    env, io,
    path::{Path, PathBuf},
    process::Command,
};

use super::{Campaign, Shot, room::Lab};

pub(super) const PAGES: Campaign = Campaign {
    name: "pages",
    about: "hostile texts in the HTML report and in `view`, in Chromium (`./test.sh` makes both as steps of its own)",
    kinds: &[FAILED],
    short: 0,
    long: 2,
    threads: 1,
    shoot: |_, shot| {
        let scripts = ["scripts/report-browser-test", "scripts/view-browser-test"];
        call(&mut Command::new(root()?.join(shot.in_turn(&scripts))), shot)
    },
};

pub(super) const WORKERS: Campaign = Campaign {
    name: "workers",
    about: "workers, runs and the NATS server killed at random, 100 kills a shot (a short one: 3)",
    kinds: &[FAILED],
    short: 1,
    long: 1,
    threads: 1,
    shoot: |lab: &Lab, shot| {
        if !has("nats-server") || !has("python3") {
            shot.skip("no nats-server");
            return Ok(());
        }
        let mut command = Command::new(root()?.join("bench/workers"));
        command
            .arg("--probity")
            .arg(&lab.probity)
            .arg("--fake")
            .arg(lab.beside("probity-fake-model"));
        let kills = if lab.is_short { "3" } else { "100" };
        call(
            command
                .args(["kills", kills])
                .env("WORKERS_SEED", (lab.seed + shot.number).to_string()),
            shot,
        )
    },
};

const FAILED: &str = "failed";

/// The repository: scripts are called from there.
fn root() -> io::Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    root.canonicalize()
}

fn has(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|it| it.join(program).is_file())
}

fn call(command: &mut Command, shot: &mut Shot) -> io::Result<()> {
    let output = command.current_dir(root()?).output()?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    let last = said.lines().rev().find(|it| !it.trim().is_empty()).unwrap_or_default().to_owned();
    shot.expect(output.status.success(), FAILED, || format!("{command:?}: {last}"));
    Ok(())
}
