//! Trees of worlds: how they get to a keeper, and how long they stay.

use std::{fs, os::unix::fs::PermissionsExt as _, os::unix::net::UnixListener, path::PathBuf};

use probity_sandbox::{
    Command, Failure, Limits, Sandbox,
    world::{World, builtin},
};

use crate::{
    common::{Playground, as_nobody, keeper, text},
    lasting::keeper_process,
};

/// Where the keeper of the only sandbox of this process has its trees.
fn trees() -> PathBuf {
    PathBuf::from(format!("/proc/{}/root/sys/trees", keeper_process()))
}

fn names() -> Vec<String> {
    let entries = fs::read_dir(trees()).expect("trees").flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn shell(text: &str) -> Command {
    Command::Shell(text.to_owned())
}

#[test]
fn worlds_take_turns_in_the_memory_of_a_keeper() {
    const MEGABYTES: usize = 40;
    let sandbox = Sandbox::open(&keeper()).expect("these tests need namespaces");
    let worlds: Vec<_> = (0..7)
        .map(|number| {
            Playground::new(&format!("large-{number}"), |home| {
                fs::write(home.join("large"), vec![b'x'; MEGABYTES << 20]).expect("a file");
            })
        })
        .collect();
    let run = |world: &Playground| {
        let execution =
            sandbox.execute_anew(&world.prepared, &shell("wc -c < large"), &Limits::default());
        assert_eq!(text(&execution.expect("an execution").stdout.bytes), "41943040\n");
    };
    worlds.iter().for_each(run);
    // Together they are 280 MiB.
    assert_eq!(names().len(), 6, "the oldest are gone");
    run(&worlds[0]);
    assert_eq!(names().len(), 6);
    let huge = Playground::new("huge", |home| {
        fs::write(home.join("huge"), vec![b'x'; 300 << 20]).expect("a file");
    });
    let execution = sandbox.execute(&huge.prepared, &shell("test -s huge"), &Limits::default());
    execution.expect("there is room for it once the others are gone");
    assert_eq!(names().len(), 1);
}

#[test]
fn a_tree_that_cannot_be_loaded_leaves_nothing_behind() {
    let sandbox = Sandbox::open(&keeper()).expect("these tests need namespaces");
    let before = names();
    let world = Playground::new("socket", |home| {
        fs::write(home.join("a"), "a").expect("a file");
        UnixListener::bind(home.join("b")).expect("a socket");
    });
    let outcome = sandbox.execute(&world.prepared, &shell("true"), &Limits::default());
    let Err(Failure::World { name, why }) = outcome else { panic!("{outcome:?}") };
    assert_eq!(name, "socket");
    assert!(why.ends_with("b: sockets and devices cannot be part of a world"), "{why}");
    assert_eq!(names(), before);
}

#[test]
fn nothing_is_remembered_of_a_world_that_is_being_made() {
    let sandbox = Sandbox::open(&keeper()).expect("these tests need namespaces");
    let before = names();
    let cache = tempfile::tempdir().expect("a directory");
    let setup = Some("cat /proc/sys/kernel/random/uuid > id".to_owned());
    let world = World { setup, ..builtin::named("empty").expect("a world").clone() };
    let make = |at: u64| {
        let now = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_hours(at * 24);
        let prepared = sandbox.prepare(&world, cache.path(), now).expect("a world");
        fs::read_to_string(
            prepared.tree.join(prepared.directory.trim_start_matches('/')).join("id"),
        )
        .expect("an id")
    };
    assert_ne!(make(20_000), make(20_001), "its setup runs each time");
    assert_eq!(names(), before);
}

#[test]
fn a_setup_may_make_a_directory_at_the_top() {
    let sandbox = Sandbox::open(&keeper()).expect("these tests need namespaces");
    let cache = tempfile::tempdir().expect("a directory");
    let setup = Some("mkdir '/two words' /data; echo x > /data/f; ln -s data /d".to_owned());
    let world = World { setup, ..builtin::named("empty").expect("a world").clone() };
    let now = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_hours(480_000);
    let prepared = sandbox.prepare(&world, cache.path(), now).expect("a world");
    let look = shell("cat /d/f && test -d '/two words' && test ! -e /data/usr && ls -d /usr");
    let execution = sandbox.execute(&prepared, &look, &Limits::default()).expect("an execution");
    assert_eq!(String::from_utf8_lossy(&execution.stdout.bytes), "x\n/usr\n");
}

/// Modes of a world are changed for a while to read what they forbid. Others that send the same tree must not see it.
#[test]
fn many_can_send_the_same_tree_at_once() {
    let world = Playground::new("shut", |home| {
        for number in 0..200 {
            let file = home.join(format!("{number:03}"));
            fs::write(&file, "x").expect("a file");
            fs::set_permissions(file, fs::Permissions::from_mode(0o0)).expect("a mode");
        }
        let shut = home.join("shut");
        fs::create_dir(&shut).expect("a directory");
        fs::write(shut.join("in"), "x").expect("a file");
        fs::set_permissions(shut, fs::Permissions::from_mode(0o0)).expect("a mode");
    });
    let list = shell("stat -c %a *");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..5 {
                    let sandbox = Sandbox::open(&keeper()).expect("these tests need namespaces");
                    let seen = sandbox.execute(&world.prepared, &list, &Limits::default());
                    assert_eq!(text(&seen.expect("an execution").stdout.bytes), "0\n".repeat(201));
                }
            });
        }
    });
    let shut = world.prepared.tree.join("home/user/shut");
    fs::set_permissions(shut, fs::Permissions::from_mode(0o700)).expect("a mode to remove it with");
}

#[test]
fn many_ordinary_users_can_send_the_same_tree_at_once() {
    as_nobody("trees::many_can_send_the_same_tree_at_once");
}
