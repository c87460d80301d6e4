//! What is left after many executions: nothing.

use std::{fs, time::Duration};

use probity_sandbox::{Command, Failure, Limits, Sandbox, execution::End};

use crate::{
    common::{Playground, as_nobody, keeper},
    hostile::processes_with,
};

/// What executions could leave behind.
#[derive(Debug, PartialEq, Eq)]
struct Remains {
    descriptors: usize,
    descriptors_of_keeper: usize,
    mounts: usize,
    mounts_of_keeper: usize,
    directories: usize,
    marked: Vec<String>,
}

impl Remains {
    fn count(keeper: u32, mark: &str) -> Self {
        let entries = |path: &str| fs::read_dir(path).map_or(0, Iterator::count);
        let mounts = |process: &str| {
            fs::read_to_string(format!("/proc/{process}/mountinfo"))
                .map_or(0, |text| text.lines().count())
        };
        Self {
            descriptors: entries("/proc/self/fd"),
            descriptors_of_keeper: entries(&format!("/proc/{keeper}/fd")),
            mounts: mounts("self"),
            mounts_of_keeper: mounts(&keeper.to_string()),
            directories: entries(&format!("/proc/{keeper}/root/tmp/trees")),
            marked: processes_with(mark),
        }
    }
}

/// The only child of this process that is a keeper.
pub(crate) fn keeper_process() -> u32 {
    children_of(std::process::id()).into_iter().next().expect("a keeper")
}

/// The keepers and visitors that a process has started, and that have not ended.
fn children_of(parent: u32) -> Vec<u32> {
    let parent = parent.to_string();
    let is_child = |stat: &str| {
        let (name, rest) = stat.split_once(") ").expect("a name in parentheses");
        let mut fields = rest.split(' ');
        let (state, of) = (fields.next(), fields.next());
        name.contains("(probity-keeper") && state != Some("Z") && of == Some(&parent)
    };
    let found = fs::read_dir("/proc").expect("processes").flatten().filter_map(|entry| {
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        is_child(&stat).then(|| entry.file_name().to_string_lossy().parse().ok()).flatten()
    });
    found.collect()
}

#[test]
fn a_thousand_executions_leave_nothing_behind() {
    let sandbox = Sandbox::open(&keeper()).expect("these tests need namespaces");
    let world = Playground::new("thousand", |_| {});
    let run = |text: String| {
        let command = Command::Shell(text);
        sandbox.execute(&world.prepared, &command, &Limits::default()).expect("an execution")
    };
    run("true".to_owned());
    let keeper = keeper_process();
    let before = Remains::count(keeper, world.mark());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let run = &run;
            scope.spawn(move || {
                for turn in 0..250 {
                    let execution = run(format!("echo {thread}-{turn} > f; sleep 1000 & mkdir d"));
                    assert_eq!(execution.end, End::Exit(0));
                    assert_eq!(execution.changes.len(), 2);
                }
            });
        }
    });
    run("echo last".to_owned());
    assert_eq!(Remains::count(keeper, world.mark()), before);
    drop(sandbox);
    assert!(
        !fs::exists(format!("/proc/{keeper}")).expect("/proc"),
        "the keeper is gone with the sandbox"
    );
}

#[test]
fn a_thousand_executions_of_an_ordinary_user_leave_nothing_behind() {
    as_nobody("lasting::a_thousand_executions_leave_nothing_behind");
}

#[test]
fn a_keeper_that_dies_is_an_error_and_the_next_one_works() {
    let sandbox = Sandbox::open(&keeper()).expect("these tests need namespaces");
    let world = Playground::new("death", |_| {});
    let sleep = Command::Shell("sleep 1000".to_owned());
    let limits = Limits { time: Duration::from_secs(50), ..Limits::default() };
    let outcome = std::thread::scope(|scope| {
        let run = scope.spawn(|| sandbox.execute(&world.prepared, &sleep, &limits));
        while processes_with(world.mark()).is_empty() {
            std::thread::yield_now();
        }
        let killed =
            std::process::Command::new("kill").args(["-9", &keeper_process().to_string()]).status();
        assert!(killed.expect("kill").success());
        run.join().expect("a thread")
    });
    assert!(matches!(outcome, Err(Failure::Died(_))), "{outcome:?}");
    while !processes_with(world.mark()).is_empty() {
        std::thread::yield_now();
    }
    let again = sandbox.execute(&world.prepared, &Command::Shell("exit 7".to_owned()), &limits);
    assert_eq!(again.expect("an execution").end, End::Exit(7));
}

#[test]
fn an_execution_is_remembered_and_can_be_done_anew() {
    let sandbox = Sandbox::open(&keeper()).expect("these tests need namespaces");
    let world = Playground::new("memory", |_| {});
    let (command, limits) =
        (Command::Shell("cat /proc/sys/kernel/random/uuid".to_owned()), Limits::default());
    let first = sandbox.execute(&world.prepared, &command, &limits).expect("an execution");
    let again = sandbox.execute(&world.prepared, &command, &limits).expect("an execution");
    assert_eq!(first, again);
    let anew = sandbox.execute_anew(&world.prepared, &command, &limits).expect("an execution");
    assert_ne!(first.stdout, anew.stdout);
}

#[test]
fn a_visit_ends_with_its_keeper_also_before_its_first_command() {
    let sandbox = Sandbox::open(&keeper()).expect("these tests need namespaces");
    let world = Playground::new("early", |_| {});
    let session = sandbox.enter(&world.prepared).expect("a session");
    let keeper = keeper_process();
    let children = || children_of(keeper);
    while children().is_empty() {
        std::thread::yield_now();
    }
    let visitors = children();
    let killed = std::process::Command::new("kill").args(["-9", &keeper.to_string()]).status();
    assert!(killed.expect("kill").success());
    // The session holds its connection open, so nothing but the death of the keeper can end them.
    while visitors.iter().any(|it| fs::exists(format!("/proc/{it}")).expect("/proc")) {
        std::thread::yield_now();
    }
    drop(session);
}

#[test]
fn a_visit_whose_process_dies_leaves_the_keeper_to_others() {
    let sandbox = Sandbox::open(&keeper()).expect("these tests need namespaces");
    let world = Playground::new("accident", |_| {});
    let limits = Limits::default();
    let mut others = sandbox.enter(&world.prepared).expect("a session");
    let hello = Command::Shell("echo hello > f".to_owned());
    others.execute(&hello, None, &limits).expect("an execution");
    let before = children_of(keeper_process());
    let mut session = sandbox.enter(&world.prepared).expect("a session");
    session.execute(&hello, None, &limits).expect("an execution");
    let keeper = keeper_process();
    let visitor = children_of(keeper).into_iter().find(|it| !before.contains(it));
    let visitor = visitor.expect("a process").to_string();
    let killed = std::process::Command::new("kill").args(["-9", &visitor]).status();
    assert!(killed.expect("kill").success());
    for _ in 0..2 {
        let outcome = session.execute(&hello, None, &limits);
        assert!(matches!(outcome, Err(Failure::Died(_))), "{outcome:?}");
    }
    let more = others.execute(&Command::Shell("cat f".to_owned()), None, &limits);
    assert_eq!(more.expect("an execution").stdout.bytes, b"hello\n");
    sandbox.execute_anew(&world.prepared, &hello, &limits).expect("an execution");
    assert_eq!(keeper_process(), keeper);
}
