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
    assert_eq!((kind(3), content(3)), (Some(EntryKind::Special { what: "pipe".to_owned() }), None));
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
fn a_command_whose_directory_was_removed_starts_at_the_root() {
    let world = world();
    let limits = Limits::default();
    let mut session = sandbox().enter(&world.prepared).expect("a session");
    session.execute(&shell("rm -r /home/user"), None, &limits).expect("the first");
    let after = session.execute(&shell("pwd"), None, &limits).expect("the second");
    assert_eq!(text(&after.stdout.bytes), "/\n", "{after:?}");
}

#[test]
fn a_request_that_cannot_be_done_is_an_error_of_that_request_alone() {
    let world = world();
    let limits = Limits::default();
    let mut session = sandbox().enter(&world.prepared).expect("a session");
    let refused = |outcome: Result<_, Failure>, why: &str| match outcome {
        Err(Failure::Setup(said)) => assert!(said.contains(why), "{said}"),
        other => panic!("{other:?}"),
    };
    refused(session.execute(&Command::Argv(Vec::new()), None, &limits), "the command is empty");
    // Its first command makes the world, which is whole although the command is never started.
    refused(session.execute(&shell("true"), Some("/nowhere"), &limits), "/nowhere");
    session.execute(&shell("echo kept > kept"), None, &limits).expect("a good one");
    refused(session.execute(&shell("a\0b"), None, &limits), "a text for the command");
    refused(session.execute(&shell("true"), Some("/home/user/kept"), &limits), "kept");
    let after = session.execute(&shell("cat kept; ls /proc | grep -cx 1"), None, &limits);
    assert_eq!(text(&after.expect("a good one").stdout.bytes), "kept\n1\n");
}

#[test]
fn a_world_that_cannot_be_made_says_so_each_time() {
    let world = Playground::new("broken", |home| {
        fs::write(home.join("../../proc"), "a file where a directory has to be").expect("a file");
    });
    let limits = Limits::default();
    let mut session = sandbox().enter(&world.prepared).expect("a session");
    let mut why = || match session.execute(&shell("true"), None, &limits) {
        Err(Failure::Setup(why)) => why,
        other => panic!("{other:?}"),
    };
    let first = why();
    assert_eq!(why(), first);
    assert_eq!(session.look(&["/".to_owned()]), Err(Failure::Setup(first)));
}

#[test]
fn what_cannot_be_looked_at_does_not_hide_the_rest() {
    let world = world();
    let mut session = sandbox().enter(&world.prepared).expect("a session");
    let made = "mkdir dir; ln -s nowhere lost; ln -s loop loop; mkdir shut; chmod 0 shut";
    session.execute(&shell(made), None, &Limits::default()).expect("an execution");
    let long = format!("/{}", "x/".repeat(5000));
    let odd = ["/home/user/a.txt/below", "/home/user/a\0b", &long, "/home/user/loop/x"];
    for path in odd {
        let paths = [path, "/home/user/a.txt"].map(str::to_owned);
        let seen = session.look(&paths).expect("a look");
        assert_eq!((&seen[0].entry, &seen[0].content), (&None, &None), "{path}");
        assert_eq!(seen[1].content.as_ref().map(|it| text(&it.bytes)), Some("alpha\n".to_owned()));
    }
    let paths = ["/home/user/dir", "/home/user/lost", "/home/user/shut", "/", ""];
    let seen = session.look(&paths.map(str::to_owned)).expect("a look");
    let kinds: Vec<_> = seen.iter().map(|it| it.entry.as_ref().map(|it| it.kind.clone())).collect();
    let directory = Some(EntryKind::Directory);
    let lost = Some(EntryKind::Link { target: "nowhere".to_owned() });
    assert_eq!(kinds, [directory.clone(), lost, directory.clone(), directory.clone(), directory]);
    assert!(seen.iter().all(|it| it.content.is_none()));
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
