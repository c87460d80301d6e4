//! Several commands in one world.

use std::fs;

use probity_sandbox::{
    Command, Failure, Limits,
    execution::{End, EntryKind},
};

use crate::common::{Playground, lines, sandbox, text};

fn world() -> Playground {
    Playground::new("session", |home| fs::write(home.join("a.txt"), "alpha\n").expect("a file"))
}

fn shell(text: &str) -> Command {
    Command::Shell(text.to_owned())
}

#[test]
fn a_command_finds_what_the_ones_before_it_left() {
    let world = world();
    let limits = Limits::default();
    let mut session = sandbox().enter(&world.prepared).expect("a session");
    session.execute(&shell("mkdir sub; echo one > sub/one"), None, &limits).expect("the first");
    let second = shell("cat one; rm ../a.txt; ls -d /proc/self >/dev/null && echo $$");
    let second = session.execute(&second, Some("/home/user/sub"), &limits).expect("the second");
    assert_eq!(second.end, End::Exit(0));
    // The numbers of processes begin anew, and /proc shows those of now.
    assert!(text(&second.stdout.bytes).starts_with("one\n"), "{second:?}");
    let changed = ["- /home/user/a.txt", "+ /home/user/sub", "+ /home/user/sub/one"];
    assert_eq!(lines(&second.changes), changed);
    // Somebody else's world is as it was.
    assert_eq!(text(&world.shell("cat a.txt").stdout.bytes), "alpha\n");
}

#[test]
fn no_process_outlives_its_command() {
    let world = world();
    let limits = Limits::default();
    let mut session = sandbox().enter(&world.prepared).expect("a session");
    let started = shell("(setsid sleep 1000 >/dev/null 2>&1 &) ; sleep 0.05; pgrep -c sleep");
    let started = session.execute(&started, None, &limits).expect("the first");
    assert_eq!(text(&started.stdout.bytes), "1\n", "{started:?}");
    let after = session.execute(&shell("pgrep -c sleep"), None, &limits).expect("the second");
    assert_eq!(text(&after.stdout.bytes), "0\n");
}

#[test]
fn paths_are_looked_at_as_the_world_sees_them() {
    let world = world();
    let mut session = sandbox().enter(&world.prepared).expect("a session");
    let paths =
        ["/home/user/link", "/home/user/a.txt", "/nowhere", "/home/user/pipe", "/etc/shadow"]
            .map(str::to_owned);
    assert!(matches!(session.look(&paths), Err(Failure::Setup(_))), "nothing was executed");
    let made = "ln -s /home/user/a.txt link; mkfifo pipe; chmod 600 a.txt";
    session.execute(&shell(made), None, &Limits::default()).expect("an execution");
    let seen = session.look(&paths).expect("a look");
    let content = |at: usize| seen[at].content.as_ref().map(|it| text(&it.bytes));
    let kind = |at: usize| seen[at].entry.as_ref().map(|it| it.kind.clone());
    assert_eq!(kind(0), Some(EntryKind::Link { target: "/home/user/a.txt".to_owned() }));
    assert_eq!((content(0), content(1)), (Some("alpha\n".to_owned()), Some("alpha\n".to_owned())));
    assert_eq!(seen[1].entry.as_ref().map(|it| it.mode), Some(0o600));
    assert_eq!((kind(2), content(2)), (None, None));
    assert_eq!((kind(3), content(3)), (Some(EntryKind::Special), None));
    assert_eq!(kind(4), None, "a file of the host is seen");
}

#[test]
fn a_command_that_is_killed_leaves_the_session_usable() {
    let world = world();
    let mut session = sandbox().enter(&world.prepared).expect("a session");
    let brief = Limits { time: std::time::Duration::from_millis(200), ..Limits::default() };
    let stuck = session.execute(&shell("echo x > x; sleep 100"), None, &brief).expect("the first");
    assert_eq!(stuck.end, End::TimedOut);
    let after = session.execute(&shell("cat x"), None, &Limits::default()).expect("the second");
    assert_eq!(text(&after.stdout.bytes), "x\n");
}

#[test]
fn a_program_reads_the_input_that_it_is_given_and_cannot_change_it() {
    let world = world();
    let mut session = sandbox().enter(&world.prepared).expect("a session");
    let long = "a line with a ' and a \" in it\n".repeat(20_000);
    let argv = |text: &str| ["bash", "-c", text].map(str::to_owned).to_vec();
    let fed = Command::Fed { argv: argv("cat > copy; wc -c < copy"), stdin: long.clone() };
    let fed = session.execute(&fed, None, &Limits::default()).expect("the first");
    assert_eq!(text(&fed.stdout.bytes), format!("{}\n", long.len()));
    let seen = session.look(&["/home/user/copy".to_owned()]).expect("a look");
    assert_eq!(seen[0].content.as_ref().map(|it| &*it.bytes), Some(long.as_bytes()));
    let write = "echo more >> /proc/self/fd/0; head -c 100M /dev/zero >> /dev/stdin; cat";
    let write = Command::Fed { argv: argv(write), stdin: "kept".to_owned() };
    let write = session.execute(&write, None, &Limits::default()).expect("the second");
    assert_eq!(text(&write.stdout.bytes), "kept");
    let without = session.execute(&shell("cat"), None, &Limits::default()).expect("the third");
    assert_eq!((without.end, without.stdout.total), (End::Exit(0), 0));
}

#[test]
fn a_session_can_be_ended_from_another_thread() {
    let world = world();
    let mut session = sandbox().enter(&world.prepared).expect("a session");
    session.execute(&shell("true"), None, &Limits::default()).expect("a first command");
    let stopper = session.stopper();
    let limits = Limits { time: std::time::Duration::from_mins(5), ..Limits::default() };
    let ended = std::thread::scope(|scope| {
        let running = scope.spawn(|| session.execute(&shell("sleep 1000"), None, &limits));
        stopper.stop();
        running.join().expect("a thread")
    });
    assert!(matches!(ended, Err(Failure::Died(_))), "{ended:?}");
    // Those who visit another world have lost nothing.
    assert_eq!(text(&world.shell("cat a.txt").stdout.bytes), "alpha\n");
}
