//! What is seen of what a command does.

use std::{fs, os::unix::fs::symlink, path::Path};

use probity_sandbox::{
    Command, Limits,
    execution::{End, EntryKind},
};

use crate::common::{Playground, lines, sandbox, text};

fn files(home: &Path) {
    fs::write(home.join("a.txt"), "alpha\n").expect("a file");
    fs::write(home.join("b.txt"), "beta\n").expect("a file");
    fs::create_dir_all(home.join("dir/sub")).expect("directories");
    fs::write(home.join("dir/one"), "1\n").expect("a file");
    fs::write(home.join("dir/sub/two"), "2\n").expect("a file");
    symlink("a.txt", home.join("link")).expect("a link");
}

#[test]
fn output_and_exit_code_are_those_of_the_command() {
    let world = Playground::new("files", files);
    let execution = world.shell("cat a.txt; echo oops >&2; pwd; whoami; exit 3");
    assert_eq!(execution.end, End::Exit(3));
    assert_eq!(text(&execution.stdout.bytes), "alpha\n/home/user\nuser\n");
    assert_eq!(text(&execution.stderr.bytes), "oops\n");
    assert_eq!(execution.changes, []);
    assert_eq!(execution.refused, Vec::<String>::new());
}

#[test]
fn a_signal_is_not_an_exit_code() {
    let world = Playground::new("files", files);
    assert_eq!(world.shell("kill -TERM $$").end, End::Signal(15));
    assert_eq!(world.shell("ulimit -c; kill -SEGV $$").end, End::Signal(11));
}

#[test]
fn each_kind_of_change_is_listed() {
    let world = Playground::new("files", files);
    let text = "echo more >> a.txt; rm b.txt; echo new > c.txt; ln -s c.txt d; mkfifo pipe; \
                chmod 600 dir/one; mkdir -p x/y; ln -sf b.txt link";
    let execution = world.shell(text);
    assert_eq!(
        lines(&execution.changes),
        [
            "~ /home/user/a.txt",
            "- /home/user/b.txt",
            "+ /home/user/c.txt",
            "+ /home/user/d",
            "~ /home/user/dir/one",
            "~ /home/user/link",
            "+ /home/user/pipe",
            "+ /home/user/x",
            "+ /home/user/x/y",
        ]
    );
    let closed = &execution.changes[4];
    let (before, after) =
        (closed.before.as_ref().expect("before"), closed.after.as_ref().expect("after"));
    assert_eq!((before.mode, after.mode), (0o644, 0o600));
    assert_eq!(before.kind, after.kind, "its content is what it was");
    let made = execution.changes[2].after.as_ref().expect("a file");
    let digest = blake3::hash(b"new\n").to_hex().to_string();
    assert_eq!(made.kind, EntryKind::File { size: 4, digest });
    assert_eq!(made.owner, (1000, 1500));
}

#[test]
fn a_directory_that_was_removed_and_made_again_has_lost_its_files() {
    let world = Playground::new("files", files);
    let execution = world.shell("rm -rf dir; mkdir dir; echo 1 > dir/one; echo x > dir/three");
    let changes = lines(&execution.changes);
    assert!(changes.contains(&"- /home/user/dir/sub".to_owned()), "{changes:?}");
    assert!(changes.contains(&"- /home/user/dir/sub/two".to_owned()), "{changes:?}");
    assert!(changes.contains(&"+ /home/user/dir/three".to_owned()), "{changes:?}");
    let execution = world.shell("rm -rf dir; echo > dir");
    let changes = lines(&execution.changes);
    assert_eq!(
        changes,
        [
            "~ /home/user/dir",
            "- /home/user/dir/one",
            "- /home/user/dir/sub",
            "- /home/user/dir/sub/two"
        ]
    );
}

#[test]
fn what_only_reads_changes_nothing() {
    let world = Playground::new("files", files);
    let execution = world.shell("grep -r . . > /dev/null; find / -xdev > /dev/null; test -w a.txt");
    assert_eq!(lines(&execution.changes), Vec::<String>::new());
}

#[test]
fn a_changed_time_is_a_change_and_the_content_is_the_same() {
    let world = Playground::new("files", files);
    let execution = world.shell("touch -d 2001-02-03T04:05:06Z a.txt dir");
    assert_eq!(lines(&execution.changes), ["~ /home/user/a.txt", "~ /home/user/dir"]);
    let after = execution.changes[0].after.as_ref().expect("a file");
    assert_eq!(after.modified, 981_173_106);
    assert_eq!(Some(&after.kind), execution.changes[0].before.as_ref().map(|entry| &entry.kind));
}

#[test]
fn the_time_of_a_directory_is_no_change_if_something_in_it_is() {
    let world = Playground::new("old", |home| {
        files(home);
        let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
        fs::File::open(home).expect("a home").set_modified(old).expect("a time");
    });
    let execution = world.shell("echo x > new; rm b.txt; chmod 600 a.txt");
    assert_eq!(
        lines(&execution.changes),
        ["~ /home/user/a.txt", "- /home/user/b.txt", "+ /home/user/new"]
    );
    let execution = world.shell("touch -d '2 days' dir; touch -d '2 days ago' dir/sub");
    assert_eq!(lines(&execution.changes), ["~ /home/user/dir", "~ /home/user/dir/sub"]);
}

#[test]
fn files_that_their_owner_may_not_read_are_read() {
    let world = Playground::new("modes", |home| {
        use std::os::unix::fs::PermissionsExt as _;
        fs::write(home.join("closed"), "x").expect("a file");
        fs::set_permissions(home.join("closed"), fs::Permissions::from_mode(0o000))
            .expect("a mode");
    });
    let execution =
        world.shell("cat closed; echo hidden > new; chmod 0 new; stat -c %a closed new");
    assert_eq!(text(&execution.stdout.bytes), "0\n0\n");
    assert!(text(&execution.stderr.bytes).contains("Permission denied"));
    assert_eq!(lines(&execution.changes), ["+ /home/user/new"]);
}

#[test]
fn an_argv_is_not_read_by_a_shell() {
    let world = Playground::new("files", files);
    let run = |argv: &[&str]| {
        let command = Command::Argv(argv.iter().map(ToString::to_string).collect());
        sandbox().execute(&world.prepared, &command, &Limits::default()).expect("an execution")
    };
    assert_eq!(text(&run(&["printf", "%s|", "$HOME", "a  b"]).stdout.bytes), "$HOME|a  b|");
    let missing = run(&["no-such-program"]);
    assert_eq!(missing.end, End::Exit(127));
    assert_eq!(text(&missing.stderr.bytes), "no-such-program: command not found\n");
}

#[test]
fn a_limit_of_nothing_is_not_without_limit() {
    let world = Playground::new("full", |_| {});
    let limits = Limits { disk: 0, ..Limits::default() };
    let execution = world.shell_within("head -c 1M /dev/zero > f; stat -c %s f", &limits);
    let written: u64 = text(&execution.stdout.bytes).trim().parse().expect("a size");
    assert!(written <= 64 << 10, "{written}");
}

#[test]
fn processes_that_a_command_ends_are_seen() {
    let mut world = Playground::new("files", files);
    world.prepared.processes = vec![
        vec!["sleep".to_owned(), "301".to_owned()],
        vec!["sleep".to_owned(), "302".to_owned()],
    ];
    assert_eq!(world.shell("true").ended, Vec::<String>::new());
    assert_eq!(world.shell("pkill -f 'sleep 301'").ended, ["`sleep 301`: killed by signal 15"]);
    let both = world.shell("kill -9 2; kill -STOP 3");
    assert_eq!(both.ended, ["`sleep 301`: killed by signal 9", "`sleep 302`: stopped"]);
}

#[test]
fn the_names_of_a_file_are_counted() {
    let world = Playground::new("files", files);
    let links = |text: &str| {
        let changes = world.shell(text).changes;
        changes
            .iter()
            .find(|it| it.path.ends_with("/new"))
            .and_then(|it| Some(it.after.as_ref()?.links))
    };
    assert_eq!((links("ln a.txt new"), links("cp a.txt new")), (Some(2), Some(1)));
}

#[test]
fn a_program_may_reserve_more_than_it_uses() {
    let world = Playground::new("files", files);
    let reserve = "import mmap; print(len(mmap.mmap(-1, 8 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)))";
    let execution = world.shell(&format!("python3 -c '{reserve}'"));
    assert_eq!(text(&execution.stdout.bytes), format!("{}\n", 8_u64 << 30));
}

#[test]
fn root_of_a_namespace_with_one_user_can_execute() {
    crate::common::as_only_root("effects::output_and_exit_code_are_those_of_the_command");
}
