//! Runs on a machine that does not cooperate: a store that others write to or that fails, kills,
//! too few open files.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _},
    os::unix::fs::PermissionsExt as _,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use probity_testkit::{Answer, FakeServer, Latency, Rule, Script, When};

use crate::{
    project::Project,
    resume::{PATIENCE, signal, start, wait_until},
    run::{Ran, dataset, project, run, stored},
};

const STORE: &str = ".probity/probity.db";

/// Writes to the store of a project, and goes on with it until it is dropped.
fn lock_store(project: &Project) -> rusqlite::Connection {
    let store = rusqlite::Connection::open(project.path(STORE)).unwrap();
    store.busy_timeout(PATIENCE).unwrap();
    store.execute_batch("BEGIN IMMEDIATE").unwrap();
    store
}

/// Reads what a program says until a line of it has a text. The rest is read as well, so that it
/// can go on.
fn hear(child: &mut Child, text: &str) -> String {
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains(text) {
        line.clear();
        assert_ne!(said.read_line(&mut line).unwrap(), 0, "{text} was never said");
    }
    std::thread::spawn(move || said.read_to_end(&mut Vec::new()));
    line
}

const LOCKED: &str = "another program is writing to `.probity/probity.db`";

#[test]
fn a_store_that_somebody_else_writes_to_is_waited_for_and_nothing_is_lost() {
    const CASES: u64 = 5000;
    // Each has two events, and 4,096 of them may wait.
    const WAITING: u64 = 2048;
    let server = FakeServer::start(Script::default());
    let project = project(5000, &[("fake", &server)], "");
    let mut child = start(&project, &["-j", "8", "--events", "events.jsonl"]);
    wait_until("the first results", || {
        project.path("events.jsonl").metadata().is_ok_and(|it| it.len() > 0)
    });
    let store = lock_store(&project);
    hear(&mut child, LOCKED);
    let recorded: u64 =
        store.query_row("SELECT count(*) FROM results", [], |row| row.get(0)).unwrap();
    let asked = server.seen().asked;
    // What waits, the batch that is held, which is taken when half as much waits, and what is in flight.
    assert!(asked <= recorded + WAITING + WAITING / 2 + 8, "{asked} asked, {recorded} recorded");
    assert!(asked < CASES, "nothing was held back");
    drop(store);
    let ran = Ran::of(&child.wait_with_output().unwrap());
    ran.expect(0, &[("N_CASES", "5000"), ("TOTAL_CALLS", "5000"), ("ABORTED", "0")]);
    assert_eq!(server.seen().asked, CASES);
}

#[test]
fn ctrl_c_ends_the_wait_for_a_store_and_calls_are_counted() {
    let rule = Rule::new(When::Requests(10..14), Answer::Hang);
    let server = FakeServer::start(Script::default().rule(rule));
    let project = project(40, &[("fake", &server)], "");
    let mut child = start(&project, &["-j", "4", "--events", "events.jsonl"]);
    let events = || fs::read_to_string(project.path("events.jsonl")).unwrap_or_default();
    wait_until("the first results", || events().contains("\"run-started\""));
    let store = lock_store(&project);
    assert!(server.wait_until(|seen| seen.asked >= 13, PATIENCE));
    signal("-INT", child.id());
    let begun = Instant::now();
    let said = hear(&mut child, "could not be recorded");
    assert!(said.contains("another program was writing to `.probity/probity.db`"), "{said}");
    let ran = Ran::of(&child.wait_with_output().unwrap());
    assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
    let asked = server.seen().asked;
    ran.expect(3, &[("ABORTED", "1"), ("TOTAL_CALLS", &asked.to_string())]);
    drop(store);
    // The calls whose results were lost count towards the budget.
    let most = (asked + 2).to_string();
    run(&project, &["--resume", "--max-calls", &most]);
    assert_eq!(server.seen().asked, asked + 2);
}

#[test]
fn a_store_that_fails_ends_the_run_and_every_call_is_told() {
    let server = FakeServer::start(Script::default());
    let project = project(50, &[("fake", &server)], "");
    run(&project, &["--limit", "1"]).expect(0, &[("TOTAL_CALLS", "1")]);
    let store = rusqlite::Connection::open(project.path(STORE)).unwrap();
    let full = "CREATE TRIGGER full BEFORE INSERT ON results BEGIN
                SELECT RAISE(ABORT, 'database or disk is full'); END";
    store.execute_batch(full).unwrap();
    let ran = run(&project, &["-j", "8", "--store", STORE]);
    let calls = server.seen().asked - 1;
    assert!(calls > 0);
    ran.expect(3, &[("ABORTED", "1"), ("N_CASES", "0")]);
    // A call that was cut off before the server saw it counts as well: it had begun.
    let told: u64 = ran.keys["TOTAL_CALLS"].parse().unwrap();
    assert!((calls..=calls + 8).contains(&told), "{told} told, {calls} made");
    for text in [
        "could not be recorded in `.probity/probity.db`",
        "database or disk is full",
        "resume with: probity run probity.toml --store .probity/probity.db --resume",
    ] {
        assert!(ran.err.contains(text), "{}", ran.err);
    }
}

#[test]
fn calls_are_counted_over_kills() {
    let latency = Latency { fixed: Duration::from_millis(5), jitter: Duration::from_millis(10) };
    let server = FakeServer::start(Script { latency, ..Script::default() });
    let project = project(500, &[("fake", &server)], "[budget]\nmax_calls = 100\n");
    let words = |resumed: bool| match resumed {
        true => vec!["-j", "16", "--resume"],
        false => vec!["-j", "16"],
    };
    for kill in 0..12 {
        let before = server.seen().asked;
        let mut child = start(&project, &words(kill > 0));
        let mut has_ended = || child.try_wait().unwrap().is_some();
        wait_until("some calls", || server.seen().asked >= before + 1 + kill % 5 || has_ended());
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let killed = server.seen().asked;
    assert!(killed > 12, "{killed}");
    let ran = run(&project, &words(true));
    ran.expect(3, &[("ABORTED", "1")]);
    let asked = server.seen().asked;
    assert!(asked <= 100, "{asked} calls");
    // A permit whose call was not made before the kill is lost.
    assert!(asked >= 60, "{asked} calls");
    let again = run(&project, &words(true));
    again.expect(3, &[("TOTAL_CALLS", "0")]);
    assert!(again.keys["N_CASES"].parse::<usize>().unwrap() <= stored(&project).len());
    assert_eq!(server.seen().asked, asked);
}

#[test]
fn a_source_of_a_merge_that_is_not_there_is_named() {
    let shown = Project::new().shown(&["merge", "missing.db", "--store", "all.db"]);
    assert!(shown.contains("`missing.db` cannot be merged: there is no such store"), "{shown}");
    let shown = Project::new().shown(&["merge", "missing.db#latest", "--store", "all.db"]);
    assert!(shown.contains("there is no store at `missing.db`"), "{shown}");
}

#[test]
fn nobody_else_may_read_what_is_kept() {
    let server = FakeServer::start(Script::always(Answer::Hang));
    let project = project(2, &[("fake", &server)], "");
    let program = env!("CARGO_BIN_EXE_probity");
    let script = format!("umask 000; exec {program} run --porcelain --cache");
    let mut command = Command::new("sh");
    command.args(["-c", &script]).current_dir(project.path("."));
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    assert!(server.wait_until(|seen| seen.in_flight > 0, PATIENCE));
    let mode = |path: &str| fs::metadata(project.path(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(".probity"), 0o700);
    let entries = fs::read_dir(project.path(".probity")).unwrap();
    let names = entries.map(|it| it.unwrap().file_name().into_string().unwrap());
    let mut kept: Vec<String> = names.filter(|it| it != ".gitignore").collect();
    kept.sort();
    assert!(kept.len() >= 5, "{kept:?}");
    for name in kept {
        assert_eq!(mode(&format!(".probity/{name}")), 0o600, "{name}");
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_folder_that_is_there_keeps_its_rights() {
    let server = FakeServer::start(Script::default());
    let project = project(1, &[("fake", &server)], "").file(".probity/mine", "");
    let folder = project.path(".probity");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    run(&project, &[]).expect(0, &[]);
    let mode = |path: &str| fs::metadata(project.path(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(".probity"), mode(STORE)), (0o755, 0o600));
}

/// Runs the program with so few open files that not all calls can be made at once.
fn run_cramped(project: &Project) -> Ran {
    let program = env!("CARGO_BIN_EXE_probity");
    let script = format!("ulimit -n 40; exec {program} run --porcelain -j 200");
    let mut command = Command::new("bash");
    command.args(["-c", &script]).current_dir(project.path(".")).stdin(Stdio::null());
    Ran::of(&command.output().unwrap())
}

#[test]
fn too_few_open_files_for_sockets_are_nobody_elses_failure() {
    let latency = Latency::fixed(Duration::from_millis(20));
    let server = FakeServer::start(Script { latency, ..Script::default() });
    let project = project(300, &[("fake", &server)], "");
    let ran = run_cramped(&project);
    ran.expect(0, &[("N_CASES", "300"), ("TOTAL_CALLS", "300")]);
    assert_eq!(server.seen().asked, 300);
    assert!(stored(&project).iter().all(|case| case["failures"] == serde_json::json!([])));
}

#[test]
fn too_few_open_files_for_programs_are_nobody_elses_failure() {
    let suite = "[backends.c]\nkind = \"command\"\nmax_concurrency = 100\n\
                 command = [\"sh\", \"-c\", \"read line; sleep 0.05; echo ${line##* }\"]\n\
                 [[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\n";
    let project = Project::new().file("cases.jsonl", dataset(60)).file("probity.toml", suite);
    let ran = run_cramped(&project);
    ran.expect(0, &[("N_CASES", "60"), ("TOTAL_CALLS", "60")]);
    assert!(stored(&project).iter().all(|case| case["failures"] == serde_json::json!([])));
}
