//! Signals outside of a run: while reports are written, while the store is locked, and while other
//! commands write files.

use std::{
    fs::{self, File},
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use probity_testkit::{Answer, FakeServer, Rule, Script, When};

use crate::{
    project::Project,
    resume::{PATIENCE, signal, start, wait_until},
    run::{Ran, project, run},
};

/// As long as a user waits without thinking that something is wrong.
const PROMPTLY: Duration = Duration::from_secs(5);

fn make_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// What is left of files that were not completed.
fn partials(project: &Project) -> Vec<String> {
    let entries = fs::read_dir(project.path(".")).unwrap();
    let names = entries.map(|it| it.unwrap().file_name().to_string_lossy().into_owned());
    names.filter(|it| it.contains("partial")).collect()
}

#[test]
fn a_signal_is_heard_while_reports_are_written() {
    for name in ["-INT", "-TERM"] {
        let server = FakeServer::start(Script::always(Answer::text(&"long ".repeat(2000))));
        let project = project(50, &[("fake", &server)], "");
        make_pipe(&project.path("slow.jsonl"));
        let child = start(&project, &["-o", "slow.jsonl", "-o", "table.csv"]);
        // Whoever opens the pipe and does not read keeps the report from ever being complete.
        let unread = File::open(project.path("slow.jsonl")).unwrap();
        let recorded = || project.run(&["runs", "--json"]).stdout;
        wait_until("the run is over", || {
            String::from_utf8(recorded()).unwrap().contains("\"complete\"")
        });
        assert_eq!(partials(&project).len(), 1);
        let begun = Instant::now();
        signal(name, child.id());
        let ran = Ran::of(&child.wait_with_output().unwrap());
        assert!(begun.elapsed() < PROMPTLY, "{:?}", begun.elapsed());
        ran.expect(3, &[("ABORTED", "1"), ("N_CASES", "50"), ("TOTAL_CALLS", "50")]);
        drop(unread);
        assert_eq!(partials(&project), Vec::<String>::new());
        assert!(!project.path("table.csv").exists());
        let summary = project.read(".probity/suite_summary.json");
        assert!(summary.contains("stopped before all reports were written"), "{summary}");
        run(&project, &["--resume"]).expect(0, &[("N_CASES", "50")]);
        assert_eq!(server.seen().asked, 50);
    }
}

#[test]
fn a_second_signal_does_not_wait_for_a_store_that_is_locked() {
    let rule = Rule::new(When::Requests(4..1000), Answer::Hang);
    let server = FakeServer::start(Script::default().rule(rule));
    let project = project(20, &[("fake", &server)], "");
    let child = start(&project, &["--events", "events.jsonl"]);
    let events = || fs::read_to_string(project.path("events.jsonl")).unwrap_or_default();
    wait_until("three recorded cases", || events().matches("\"case-finished\"").count() == 3);
    assert!(server.wait_until(|seen| seen.in_flight > 1, PATIENCE));
    let store = rusqlite::Connection::open(project.path(".probity/probity.db")).unwrap();
    store.execute_batch("BEGIN IMMEDIATE").unwrap();
    signal("-INT", child.id());
    // The first one is under way when the second one comes.
    std::thread::sleep(Duration::from_millis(300));
    let begun = Instant::now();
    signal("-INT", child.id());
    let ran = Ran::of(&child.wait_with_output().unwrap());
    assert!(begun.elapsed() < PROMPTLY, "{:?}", begun.elapsed());
    ran.expect(
        130,
        &[("ABORTED", "1"), ("N_CASES", "3"), ("N_PLANNED", "20"), ("TOTAL_CALLS", "3")],
    );
    assert_eq!(ran.keys.len(), 9, "{:?}", ran.keys);
    drop(store);
}

#[test]
fn a_command_that_is_stopped_leaves_no_half_written_file() {
    for name in ["-INT", "-TERM"] {
        let project = Project::new();
        let mut command = project.command(&["classify", "-", "-o", "out.jsonl"]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        // Its input does not end.
        let _input = child.stdin.take();
        wait_until("the file is begun", || !partials(&project).is_empty());
        signal(name, child.id());
        assert_eq!(child.wait().unwrap().code(), Some(3));
        assert_eq!(partials(&project), Vec::<String>::new());
    }
}

const RESULT: &str = "{\"case_id\":\"a\",\"raw_response\":\"b\",\"expected_response\":\"b\"}\n";

/// A command that has begun a file and waits for the rest of its input, and that input.
fn begin_file(project: &Project) -> (std::process::Child, std::process::ChildStdin) {
    let mut command = project.command(&["classify", "-", "-o", "out.jsonl"]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let input = child.stdin.take().unwrap();
    (child, input)
}

#[test]
fn what_a_killed_command_left_is_taken_away_by_the_next() {
    let project = Project::new();
    let (mut killed, _input) = begin_file(&project);
    wait_until("the file is begun", || !partials(&project).is_empty());
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(partials(&project).len(), 1);
    // Of another file, and of no file of ours.
    let others = ["other.jsonl.1.partial", "out.jsonl.mine.partial"];
    let project = others.iter().fold(project, |project, it| project.file(it, ""));
    let written = project.run_with(&["classify", "-", "-o", "out.jsonl"], RESULT);
    assert_eq!(written.status.code(), Some(0));
    let mut left = partials(&project);
    left.sort();
    assert_eq!(left, others);
}

#[test]
fn what_another_command_is_writing_stays() {
    let project = Project::new();
    let (mut other, mut input) = begin_file(&project);
    input.write_all(RESULT.as_bytes()).unwrap();
    wait_until("the file is begun", || !partials(&project).is_empty());
    let written = project.run_with(&["classify", "-", "-o", "out.jsonl"], RESULT);
    assert_eq!((written.status.code(), partials(&project).len()), (Some(0), 1));
    drop(input);
    assert_eq!(other.wait().unwrap().code(), Some(0));
    assert_eq!(partials(&project), Vec::<String>::new());
}
