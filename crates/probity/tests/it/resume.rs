//! Runs that are stopped, killed and taken up again.

use std::{
    collections::BTreeSet,
    fs,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use probity_testkit::{Answer, FakeServer, Latency, Rule, Script, Trouble, When};

use crate::{
    project::Project,
    run::{Ran, dataset, project, run, stored},
};

/// Nothing here takes longer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn start(project: &Project, words: &[&str]) -> Child {
    let words: Vec<&str> = ["run", "--porcelain"].iter().chain(words).copied().collect();
    let mut command = project.command(&words);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

pub(crate) fn signal(name: &str, pid: u32) {
    let sent = Command::new("kill").args([name, &pid.to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Waits for a fact.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "{what} did not come about");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The summary of the latest run without its name, and without the time that calls took.
fn summary(project: &Project) -> String {
    let shown = project.shown(&["show"]);
    let (name, rest) = shown.split_once(" of probity.toml").unwrap();
    let rest = rest.replace(name.rsplit_once('-').unwrap().1, "RUN");
    let lines: Vec<&str> = rest.lines().filter(|line| !line.contains("latency:")).collect();
    lines.join("\n")
}

#[test]
fn a_run_that_is_killed_again_and_again_loses_nothing_and_asks_nothing_twice() {
    const CASES: usize = 2000;
    let rule = Rule::new(When::prompt_contains("7"), Answer::text("wrong"));
    let latency = Latency { fixed: Duration::from_millis(3), jitter: Duration::from_millis(6) };
    let script = Script { latency, ..Script::default().rule(rule) };
    let server = FakeServer::start(script.clone());
    let killed = project(CASES, &[("fake", &server)], "");
    let mut durable: Vec<(String, u32)> = Vec::new();
    for kill in 1..=20_u64 {
        let words: &[&str] = if kill == 1 { &["-j", "16"] } else { &["-j", "16", "--resume"] };
        let mut child = start(&killed, words);
        // At an odd moment of each stretch, also a few calls after a beginning.
        let until = (kill - 1) * 90 + 3 + kill * 37 % 80;
        assert!(server.wait_until(|seen| seen.asked >= until, PATIENCE));
        child.kill().unwrap();
        child.wait().unwrap();
        let seen = server.seen();
        for (prompt, count) in &durable {
            assert_eq!(seen.prompt(prompt), *count, "{prompt} was asked again");
        }
        durable = stored(&killed)
            .iter()
            .map(|case| case["prompt"].as_str().unwrap().to_owned())
            .map(|prompt| (prompt.clone(), seen.prompt(&prompt)))
            .collect();
    }
    // More than what was under way at all kills together, however busy the machine is.
    assert!(durable.len() > 20 * 16, "{}", durable.len());
    let ran = run(&killed, &["--resume"]);
    ran.expect(0, &[("N_CASES", "2000"), ("N_PLANNED", "2000"), ("ABORTED", "0")]);
    let seen = server.seen();
    for (prompt, count) in &durable {
        assert_eq!(seen.prompt(prompt), *count, "{prompt} was asked again");
    }
    let ids: BTreeSet<String> =
        stored(&killed).iter().map(|case| case["case_id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids.len(), CASES);

    let other = FakeServer::start(script);
    let whole = project(CASES, &[("fake", &other)], "");
    run(&whole, &[]).expect(0, &[("N_CASES", "2000")]);
    assert_eq!(summary(&killed), summary(&whole));
}

#[test]
fn a_second_ctrl_c_ends_at_once_and_scripts_get_their_lines() {
    let server = FakeServer::start(Script::default());
    // A program that does not end when it is told to keeps the run busy.
    let stubborn = "[[runners]]\nname = \"stubborn\"\nkind = \"program\"\n\
                    command = [\"sh\", \"-c\", \"trap '' TERM INT; touch here; while :; do sleep 1; done\"]\n\
                    [timeouts]\nkill_grace = \"60s\"\n";
    let project = project(5, &[("fake", &server)], stubborn);
    let child = start(&project, &["--events", "events.jsonl"]);
    wait_until("the program has begun", || project.path("here").exists());
    signal("-INT", child.id());
    wait_until("the run is being stopped", || {
        let events = fs::read_to_string(project.path("events.jsonl")).unwrap_or_default();
        events.contains("cancel-started")
    });
    let begun = Instant::now();
    signal("-INT", child.id());
    let ran = Ran::of(&child.wait_with_output().unwrap());
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    ran.expect(
        130,
        &[("ABORTED", "1"), ("N_CASES", "5"), ("N_PLANNED", "6"), ("TOTAL_CALLS", "5")],
    );
    assert_eq!(ran.keys.len(), 9, "{:?}", ran.keys);
    assert!(project.read(".probity/suite_summary.json").contains("the run was stopped at once"));
}

#[test]
fn ctrl_c_cancels_saves_and_says_how_to_go_on() {
    for name in ["-INT", "-TERM"] {
        let rule = Rule::new(When::Requests(6..1000), Answer::Hang);
        let server = FakeServer::start(Script::default().rule(rule));
        let project = project(50, &[("fake", &server)], "");
        let child = start(&project, &["--events", "events.jsonl"]);
        // The server has sent five answers before the run has recorded five cases.
        wait_until("five recorded cases", || {
            let events = fs::read_to_string(project.path("events.jsonl")).unwrap_or_default();
            events.matches("\"case-finished\"").count() == 5
        });
        assert!(server.wait_until(|seen| seen.in_flight > 2, PATIENCE));
        let begun = Instant::now();
        signal(name, child.id());
        let ran = Ran::of(&child.wait_with_output().unwrap());
        assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
        ran.expect(3, &[("ABORTED", "1"), ("FAIL_FAST", "0"), ("N_CASES", "5")]);
        assert!(ran.err.contains("next: probity run probity.toml --resume"), "{}", ran.err);
        assert!(ran.err.contains("cases were cut off"), "{}", ran.err);
        let summary = project.read(".probity/suite_summary.json");
        assert!(summary.contains("\"reason\": \"interrupted\""), "{summary}");
    }
}

/// A program that writes its number into the project's folder, and will not end.
const STUBBORN: &str = "[backends.p]\nkind = \"command\"\n\
    command = [\"sh\", \"-c\", \"trap '' TERM; echo $$ >> {{suite_dir}}/pids; sleep 1000 & echo $! >> {{suite_dir}}/pids; while :; do sleep 1000; done\"]\n\
    [[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\n";

fn stubborn(more: &str) -> Project {
    Project::new().file("cases.jsonl", dataset(3)).file("probity.toml", format!("{STUBBORN}{more}"))
}

fn pids(project: &Project) -> Vec<u32> {
    let text = fs::read_to_string(project.path("pids")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

pub(crate) fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // A zombie has ended, whoever has not looked yet.
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(" Z"))
}

fn expect_no_orphans(project: &Project) {
    let pids = pids(project);
    assert!(!pids.is_empty());
    wait_until("the end of all programs", || !pids.iter().any(|pid| is_alive(*pid)));
}

#[test]
fn no_program_outlives_a_timeout() {
    let project = stubborn(
        "[timeouts]\nattempt = \"300ms\"\nkill_grace = \"100ms\"\n[retry]\nmax_retries = 0\n",
    );
    run(&project, &[]).expect(3, &[("FAIL_FAST", "1"), ("N_CASES", "3")]);
    expect_no_orphans(&project);
}

#[test]
fn no_program_outlives_ctrl_c() {
    let project = stubborn("[timeouts]\nkill_grace = \"100ms\"\n");
    let child = start(&project, &[]);
    wait_until("three programs", || pids(&project).len() >= 6);
    signal("-INT", child.id());
    Ran::of(&child.wait_with_output().unwrap()).expect(3, &[("ABORTED", "1")]);
    expect_no_orphans(&project);
}

#[test]
fn a_second_ctrl_c_leaves_at_once_and_no_program_stays() {
    let project = stubborn("[timeouts]\nkill_grace = \"10m\"\n");
    let child = start(&project, &[]);
    wait_until("three programs", || pids(&project).len() >= 6);
    signal("-INT", child.id());
    // The second one counts only after the first has been seen.
    wait_until("the cancel", || {
        let runs = project.run(&["show", "--json"]);
        runs.status.success() && {
            signal("-INT", child.id());
            !is_alive(child.id())
        }
    });
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
    expect_no_orphans(&project);
}

#[test]
fn no_program_outlives_kill_9() {
    let project = stubborn("");
    let mut child = start(&project, &[]);
    wait_until("three programs", || pids(&project).len() >= 6);
    child.kill().unwrap();
    child.wait().unwrap();
    expect_no_orphans(&project);
}

#[test]
fn a_reordered_dataset_resumes_and_a_changed_case_is_asked_again() {
    let server = FakeServer::start(Script::default());
    let mut project = project(10, &[("fake", &server)], "");
    run(&project, &["--max-calls", "6"]).expect(3, &[("N_CASES", "6")]);
    let mut lines: Vec<String> = dataset(10).lines().map(ToOwned::to_owned).collect();
    lines.reverse();
    lines[9] = lines[9].replace("Return the number 0", "Please return the number 0");
    project = project.file("cases.jsonl", lines.join("\n"));
    let ran = run(&project, &["--resume"]);
    ran.expect(0, &[("TOTAL_CALLS", "5"), ("N_CASES", "10")]);
    assert!(ran.err.contains("5 of 10 cases are done, 5 are left"), "{}", ran.err);
    assert!(ran.err.contains("1 changed since and are asked again"), "{}", ran.err);
    lines.truncate(4);
    project = project.file("cases.jsonl", lines.join("\n"));
    let ran = run(&project, &["--resume"]);
    ran.expect(0, &[("TOTAL_CALLS", "0"), ("N_CASES", "4")]);
    assert!(ran.err.contains("6 results belong to removed cases and do not count"), "{}", ran.err);
}

#[test]
fn errors_are_asked_again_when_asked_for() {
    let rule =
        Rule::new(When::prompt_contains("number 3"), Answer::fault(Trouble::Internal)).times(4);
    let server = FakeServer::start(Script::default().rule(rule));
    let project = project(20, &[("fake", &server)], "");
    run(&project, &[]).expect(0, &[("N_CASES", "20")]);
    run(&project, &["--resume"]).expect(0, &[("TOTAL_CALLS", "0")]);
    run(&project, &["--retry-errors"]).expect(0, &[("TOTAL_CALLS", "1"), ("N_CASES", "20")]);
    let case = stored(&project).into_iter().find(|case| case["case_id"] == "case-3").unwrap();
    assert_eq!(case["verdict"], "pass");
    assert_eq!(case["failures"].as_array().unwrap().len(), 4);
    let runs = String::from_utf8(project.run(&["runs", "--json"]).stdout).unwrap();
    assert_eq!(runs.lines().count(), 1, "{runs}");
}

#[test]
fn a_resumed_run_asks_the_cases_it_was_begun_with() {
    let server = FakeServer::start(Script::default());
    let project = project(20, &[("fake", &server)], "");
    run(&project, &["--limit", "8", "--max-calls", "3"]).expect(3, &[("N_PLANNED", "8")]);
    run(&project, &["--resume"]).expect(0, &[("N_PLANNED", "8"), ("N_CASES", "8")]);
    let ran = run(&project, &["--resume", "--limit", "9"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("omit the filters"), "{}", ran.err);
}

#[test]
fn two_processes_do_not_work_on_the_same_run() {
    let rule = Rule::new(When::Requests(3..1000), Answer::Hang);
    let server = FakeServer::start(Script::default().rule(rule));
    let project = project(20, &[("fake", &server)], "");
    let child = start(&project, &[]);
    assert!(server.wait_until(|seen| seen.in_flight > 1, PATIENCE));
    let ran = run(&project, &["--resume"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("is being worked on by another process"), "{}", ran.err);
    signal("-INT", child.id());
    child.wait_with_output().unwrap();
}

#[test]
fn ten_runs_at_once_share_a_store() {
    let server = FakeServer::start(Script::default());
    let project = project(50, &[("fake", &server)], "");
    let children: Vec<Child> = (0..10).map(|_| start(&project, &["-q"])).collect();
    for child in children {
        Ran::of(&child.wait_with_output().unwrap()).expect(0, &[("N_CASES", "50")]);
    }
    let runs = String::from_utf8(project.run(&["runs", "--json"]).stdout).unwrap();
    assert_eq!(runs.lines().count(), 10);
}

#[test]
fn a_store_from_the_future_is_refused_and_left_alone() {
    let server = FakeServer::start(Script::default());
    let project = project(3, &[("fake", &server)], "");
    run(&project, &[]).expect(0, &[]);
    let store = project.path(".probity/probity.db");
    let connection = rusqlite::Connection::open(&store).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    let before = fs::read(&store).unwrap();
    insta::assert_snapshot!(project.shown(&["run"]), @r"
    exit 2
    --- err
    error: the store cannot be used
      caused by: the store `.probity/probity.db` was written by a newer version of this program (format 99, this one knows up to 15)
    hint: update the program, or name another store with `--store PATH`
    ");
    assert_eq!(fs::read(&store).unwrap(), before);
}

#[test]
fn what_is_no_store_is_named() {
    let project = Project::new().file("x.db", "this is no database, whatever its name says");
    let shown = project.shown(&["runs", "--store", "x.db"]);
    insta::assert_snapshot!(shown, @r"
    exit 2
    --- err
    error: the store cannot be used
      caused by: failed to open the store `x.db`
      caused by: file is not a database
    hint: name another place with `--store PATH`
    ");
}

#[test]
fn a_resumed_run_remembers_its_backends_and_repeats() {
    let (one, two) = (FakeServer::start(Script::default()), FakeServer::start(Script::default()));
    let project = project(10, &[("one", &one), ("two", &two)], "");
    run(&project, &["--backend", "one", "--repeat", "2", "--limit", "5", "--max-calls", "4"])
        .expect(3, &[("N_PLANNED", "10"), ("N_CASES", "4")]);
    run(&project, &["--resume"]).expect(0, &[("N_PLANNED", "10"), ("N_CASES", "10")]);
    assert_eq!((one.seen().asked, two.seen().asked), (10, 0));
}

#[test]
fn what_is_read_is_not_written_over() {
    let server = FakeServer::start(Script::default());
    let project = project(3, &[("fake", &server)], "");
    run(&project, &[]).expect(0, &[]);
    for name in ["probity.toml", "cases.jsonl", ".probity/probity.db"] {
        let before = fs::read(project.path(name)).unwrap();
        for flag in ["--record", "--events"] {
            let ran = run(&project, &[flag, name]);
            assert_eq!(ran.code, Some(2), "{flag} {name}: {}", ran.err);
            assert!(ran.err.contains("are the same file"), "{}", ran.err);
        }
        assert!(fs::read(project.path(name)).unwrap() == before, "{name}");
    }
    assert_eq!(server.seen().asked, 3);
    let runs = String::from_utf8(project.run(&["runs", "--json"]).stdout).unwrap();
    assert_eq!(runs.lines().count(), 1, "{runs}");
}

#[test]
fn a_lane_that_was_renamed_does_not_count() {
    let server = FakeServer::start(Script::default());
    let project = project(20, &[("old", &server)], "");
    run(&project, &[]).expect(0, &[("N_CASES", "20")]);
    let project = project.file("probity.toml", super::run::suite(&[("new", &server)], ""));
    let ran = run(&project, &["--resume"]);
    ran.expect(0, &[("N_CASES", "20"), ("N_PLANNED", "20"), ("TOTAL_CALLS", "20")]);
    assert!(ran.err.contains("numbers on old: no longer in the suite"), "{}", ran.err);
    assert!(stored(&project).iter().all(|case| case["backend"] == "new"));
}
