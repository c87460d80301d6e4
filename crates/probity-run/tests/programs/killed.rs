//! What only another process can see: that we are killed, or were started strangely.
//!
//! The tests start this very file once more, with one test that does its work only then.

use std::{ffi::OsString, io::Read as _, process::Stdio, time::Duration};

use probity_run::process::{self, Command, Limits, Room, Stdin};

use crate::lab::{LONG, Lab, alive, eventually};

const SCRIPT: &str = "PROBITY_TEST_SCRIPT";

/// Not a test of its own: runs a script as a program, if it is told which.
#[tokio::test]
async fn helper() {
    let Some(script) = std::env::var_os(SCRIPT) else { return };
    let command = Command {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), script],
        env: std::env::vars_os().collect(),
        stdin: Stdin::Bytes(b"begin\n".into()),
        room: Room::new().unwrap(),
    };
    let finished = process::run(command, Limits::new(LONG, Duration::ZERO)).await.unwrap();
    println!("{}", String::from_utf8_lossy(&finished.stdout));
}

/// This file again, started by a shell that does something first.
fn again(lab: &Lab, before: &str, script: &str) -> std::process::Child {
    let shell = format!("{before}; exec \"$0\" --exact killed::helper --nocapture");
    let this: OsString = std::env::current_exe().unwrap().into();
    std::process::Command::new("/bin/sh")
        .args([OsString::from("-c"), shell.into(), this])
        .env(SCRIPT, script)
        // A room outlives a sudden death; the lab does not.
        .env("TMPDIR", lab.path(""))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[tokio::test]
async fn our_own_sudden_death_takes_the_programs_along() {
    let lab = Lab::new();
    let dir = lab.path("");
    // What it reads is sent when it is under guard.
    let script = format!("read -r word; sleep 1000 & echo $$ > {}/pid; wait", dir.display());
    let mut child = again(&lab, ":", &script);
    let group = lab.pid("pid").await;
    assert!(alive(group) >= 2);
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("the group is gone", || alive(group) == 0).await;
}

#[test]
fn signals_that_we_ignore_are_heard_by_programs() {
    let lab = Lab::new();
    let mut child = again(&lab, "trap '' HUP INT QUIT", "grep SigIgn /proc/self/status");
    let mut stdout = String::new();
    child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    assert!(child.wait().unwrap().success());
    let mask = stdout.split_whitespace().skip_while(|it| *it != "SigIgn:").nth(1).unwrap();
    let mask = u64::from_str_radix(mask, 16).unwrap();
    assert_eq!(mask & 0b111, 0, "{stdout}");
}
