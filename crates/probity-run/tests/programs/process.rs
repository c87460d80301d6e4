//! Running a program, whatever it does.

use std::{ffi::OsString, time::Duration};

use probity_run::process::{self, Command, End, Finished, Limits, Room, Stdin};

use crate::lab::{LONG, Lab, alive, eventually, zombies};

const SOON: Duration = Duration::from_millis(200);
/// Long enough for a script to have set its traps.
const READY: Duration = Duration::from_secs(3);

fn command(lab: &Lab, script: &str, stdin: Stdin) -> Command {
    let args = ["-c", &script.replace("@lab@", &lab.path("").display().to_string())];
    Command {
        program: "/bin/sh".into(),
        args: args.map(OsString::from).to_vec(),
        env: lab.env.clone(),
        stdin,
        room: Room::new().unwrap(),
    }
}

async fn run(lab: &Lab, script: &str, stdin: Stdin, limits: Limits) -> Finished {
    process::run(command(lab, script, stdin), limits).await.unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[tokio::test]
async fn a_program_that_ends_is_read_to_the_end() {
    let lab = Lab::new();
    let limits = Limits::new(LONG, LONG);
    let finished =
        run(&lab, "cat; echo oops >&2; exit 7", Stdin::Bytes(b"hi".into()), limits).await;
    assert_eq!((finished.end, finished.code(), finished.signal()), (End::Itself, Some(7), None));
    assert_eq!((text(&finished.stdout), text(&finished.stderr)), ("hi", "oops\n"));
}

#[tokio::test]
async fn a_program_is_told_to_end_and_may_say_goodbye() {
    let lab = Lab::new();
    let script = "trap 'echo bye; exit 3' TERM; echo $$ > @lab@/pid; sleep 1000 & wait";
    let finished = run(&lab, script, Stdin::Null, Limits::new(READY, LONG)).await;
    assert_eq!((finished.end, finished.code()), (End::Time, Some(3)));
    assert_eq!(text(&finished.stdout), "bye\n");
    let group = lab.pid("pid").await;
    eventually("the group is gone", || alive(group) == 0).await;
}

#[tokio::test]
async fn a_program_that_does_not_listen_is_killed_with_its_children() {
    let lab = Lab::new();
    let script = "trap '' TERM; echo $$ > @lab@/pid; sleep 1000 & while :; do sleep 1000; done";
    let finished = run(&lab, script, Stdin::Null, Limits::new(READY, SOON)).await;
    assert_eq!((finished.end, finished.signal().as_deref()), (End::Time, Some("SIGKILL")));
    let group = lab.pid("pid").await;
    eventually("the group is gone", || alive(group) == 0).await;
    assert_eq!(zombies(), 0);
}

#[tokio::test]
async fn a_stopped_program_is_ended() {
    let lab = Lab::new();
    let limits = Limits::new(READY, LONG);
    let finished = run(&lab, "kill -STOP $$; sleep 1000", Stdin::Null, limits).await;
    assert_eq!((finished.end, finished.signal().as_deref()), (End::Time, Some("SIGTERM")));
}

#[tokio::test]
async fn a_grandchild_that_keeps_the_pipes_holds_nobody_up() {
    let lab = Lab::new();
    let script = "echo $$ > @lab@/pid; sleep 1000 & echo done";
    let finished = run(&lab, script, Stdin::Null, Limits::new(LONG, LONG)).await;
    assert_eq!((finished.end, finished.code()), (End::Itself, Some(0)));
    assert_eq!(text(&finished.stdout), "done\n");
    let group = lab.pid("pid").await;
    eventually("the grandchild is gone", || alive(group) == 0).await;
}

#[tokio::test]
async fn a_grandchild_that_closed_the_pipes_does_not_stay_either() {
    let lab = Lab::new();
    let script = "echo $$ > @lab@/pid; sleep 1000 >/dev/null 2>&1 </dev/null & echo done";
    let finished = run(&lab, script, Stdin::Null, Limits::new(LONG, LONG)).await;
    assert_eq!(finished.code(), Some(0));
    let group = lab.pid("pid").await;
    eventually("the grandchild is gone", || alive(group) == 0).await;
}

#[tokio::test]
async fn whoever_writes_for_ever_is_ended() {
    let lab = Lab::new();
    let limits = Limits { stdout: 100_000, ..Limits::new(LONG, LONG) };
    let finished = run(&lab, "echo $$ > @lab@/pid; yes; sleep 1000", Stdin::Null, limits).await;
    assert_eq!((finished.end, finished.stdout.len()), (End::Output, 100_000));
    let group = lab.pid("pid").await;
    eventually("the group is gone", || alive(group) == 0).await;
}

#[tokio::test]
async fn of_many_errors_the_beginning_and_the_end_are_kept() {
    let lab = Lab::new();
    let limits = Limits { stderr: 4000, ..Limits::new(LONG, LONG) };
    let script = "{ echo first; yes | head -c 3000000; echo last; } >&2";
    let finished = run(&lab, script, Stdin::Null, limits).await;
    assert_eq!((finished.end, finished.code()), (End::Itself, Some(0)));
    let stderr = text(&finished.stderr);
    assert!(stderr.starts_with("first\n") && stderr.ends_with("last\n"));
    assert_eq!(stderr.len(), 4000);
}

#[tokio::test]
async fn a_large_prompt_is_read_or_not() {
    let lab = Lab::new();
    let bytes = || Stdin::Bytes(vec![b'x'; 5_000_000]);
    let limits = Limits::new(LONG, LONG);
    let read = run(&lab, "wc -c", bytes(), limits).await;
    assert_eq!(text(&read.stdout).trim(), "5000000");
    let unread = run(&lab, "echo fine", bytes(), limits).await;
    assert_eq!((text(&unread.stdout), unread.code()), ("fine\n", Some(0)));
    let stuck = run(&lab, "sleep 1000", bytes(), Limits::new(SOON, LONG)).await;
    assert_eq!(stuck.end, End::Time);
}

#[tokio::test]
async fn answers_and_questions_that_fill_both_pipes_do_not_lock() {
    let lab = Lab::new();
    let stdin = Stdin::Bytes(vec![b'x'; 3_000_000]);
    let finished = run(&lab, "tee /dev/stderr", stdin, Limits::new(LONG, LONG)).await;
    assert_eq!(finished.stdout.len(), 3_000_000);
    assert_eq!(finished.stderr.len(), 1 << 20);
}

#[tokio::test]
async fn a_signal_is_told_by_its_name() {
    let lab = Lab::new();
    let limits = Limits::new(LONG, LONG);
    let finished = run(&lab, "kill -SEGV $$", Stdin::Null, limits).await;
    assert_eq!((finished.end, finished.code()), (End::Itself, None));
    assert_eq!(finished.signal().as_deref(), Some("SIGSEGV"));
}

#[tokio::test]
async fn a_program_of_nobody_is_ended_in_the_background() {
    let lab = Lab::new();
    let script =
        "trap '' TERM; pwd > @lab@/pwd; sleep 1000 & echo $$ > @lab@/pid; wait; sleep 1000";
    let command = command(&lab, script, Stdin::Null);
    let call = tokio::spawn(process::run(command, Limits::new(LONG, SOON)));
    let group = lab.pid("pid").await;
    let work = std::fs::read_to_string(lab.path("pwd")).unwrap();
    assert!(alive(group) >= 2);
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    assert!(process::drained(LONG).await);
    eventually("the group is gone", || alive(group) == 0).await;
    assert_eq!(zombies(), 0);
    assert!(!std::path::Path::new(work.trim()).exists());
}

#[test]
fn a_runtime_that_ends_takes_its_programs_along() {
    let lab = Lab::new();
    let runtime = || tokio::runtime::Runtime::new().unwrap();
    let first = runtime();
    let script = "trap '' TERM; sleep 1000 & echo $$ > @lab@/pid; wait; sleep 1000";
    let command = command(&lab, script, Stdin::Null);
    let call = first.spawn(process::run(command, Limits::new(LONG, LONG)));
    let group = first.block_on(lab.pid("pid"));
    drop(first);
    drop(call);
    runtime().block_on(eventually("the group is gone", || alive(group) == 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_at_once_leave_nothing() {
    let lab = Lab::new();
    let calls: Vec<_> = (0..50)
        .map(|i| {
            let stdin = Stdin::Bytes(format!("{i}").into_bytes());
            let command = command(&lab, "pwd; cat; sleep 1000 &", stdin);
            tokio::spawn(process::run(command, Limits::new(LONG, LONG)))
        })
        .collect();
    for (i, call) in calls.into_iter().enumerate() {
        let finished = call.await.unwrap().unwrap();
        let (work, said) = text(&finished.stdout).split_once('\n').unwrap();
        assert_eq!((finished.code(), said), (Some(0), i.to_string().as_str()));
        assert!(!std::path::Path::new(work).exists());
    }
    assert!(process::drained(Duration::ZERO).await);
    assert_eq!(zombies(), 0);
}
