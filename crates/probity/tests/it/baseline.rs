//! Baselines and comparisons, through the program.

use std::{fs, path::Path};

use probity_testkit::{Answer, FakeServer, Rule, Script, When};

use crate::{
    project::Project,
    run::{dataset, run, suite},
};

/// A server that is wrong about cases whose prompt has one of these.
fn wrong_about(parts: &[&str]) -> FakeServer {
    let rules = parts.iter().map(|part| Rule::new(When::prompt_contains(part), Answer::text("no")));
    FakeServer::start(rules.fold(Script::default(), Script::rule))
}

fn begin(server: &FakeServer) -> Project {
    Project::new()
        .file("cases.jsonl", dataset(40))
        .file("probity.toml", suite(&[("fake", server)], ""))
}

/// The same project, with another server behind the same name.
fn again(project: Project, server: &FakeServer, more: &str) -> Project {
    project.file("probity.toml", suite(&[("fake", server)], more))
}

#[test]
fn a_regression_against_the_blessed_run_fails() {
    let good = wrong_about(&["number 7"]);
    let project = begin(&good);
    run(&project, &[]).expect(0, &[]);
    let shown = project.shown(&["bless"]);
    assert!(shown.contains("40 cases of run"), "{shown}");
    let kept = project.read("baselines/main.json");
    assert!(kept.contains("\n        \"case-7\": \"fail\""), "{kept}");
    run(&project, &["--baseline", "main"]).expect(0, &[]);

    let worse = wrong_about(&["number 3"]);
    let project = again(project, &worse, "");
    let ran = run(&project, &["--baseline", "main"]);
    ran.expect(1, &[("ABORTED", "0"), ("N_CASES", "40")]);
    for told in [
        "40 judged in both: 39 passed, 29 pass now (-25.0 points), 11 worse, 1 fixed",
        "worse    case-3 ",
        "fixed    case-7",
        "baseline FAIL 11 cases passed before and fail now, 0 allowed",
        "baseline FAIL the rate fell by 25.0 points, more than 5",
    ] {
        assert!(ran.err.contains(told), "{told}\n{}", ran.err);
    }
    run(&project, &["--baseline", "main", "--informational"]).expect(0, &[]);
    let shown = project.shown(&["gate", "--baseline", "main"]);
    assert!(shown.contains("exit 1"), "{shown}");

    let draft = project.shown(&["export", "--as", "issue"]);
    for told in [
        "# 11 cases of `numbers on fake` got worse",
        "probity run probity.toml numbers --case case-3,",
        "### `case-30`",
        "Answered:\n\n```text\nno\n```",
        "And 1 more:",
    ] {
        assert!(draft.contains(told), "{told}\n{draft}");
    }

    let tolerant = "[baseline]\nmax_regressions = 11\nmax_drop = 0.25\n";
    let project = again(project, &worse, tolerant);
    run(&project, &["--baseline", "main"]).expect(0, &[]);
}

#[test]
fn known_failures_are_excused_and_told_of_when_they_pass() {
    let good = wrong_about(&[]);
    let project = begin(&good);
    run(&project, &[]).expect(0, &[]);
    project.shown(&["bless", "--as", "all-good"]);
    let worse = wrong_about(&["number 39"]);
    let listed = suite(&[("fake", &worse)], "")
        .replace("dataset = ", "known_failures = \"known.txt\"\ndataset = ");
    let project = project
        .file("known.txt", "# flaky since May\ncase-39 @fake\ncase-1  # never mind\n")
        .file("probity.toml", listed);
    let ran = run(&project, &["--baseline", "all-good"]);
    ran.expect(0, &[]);
    assert!(ran.err.contains("known    case-39"), "{}", ran.err);
    assert!(ran.err.contains("known to fail, and passed: case-1"), "{}", ran.err);
}

#[test]
fn what_is_no_basis_is_neither_blessed_nor_compared() {
    let server = wrong_about(&[]);
    let project = begin(&server);
    run(&project, &["--max-calls", "5", "-j", "1"]).expect(3, &[]);
    let shown = project.shown(&["bless"]);
    assert!(shown.contains("is incomplete, so it cannot be a baseline"), "{shown}");
    run(&project, &["--limit", "5"]).expect(0, &[]);
    let shown = project.shown(&["bless"]);
    assert!(shown.contains("asked only some cases (--limit)"), "{shown}");
    run(&project, &[]).expect(0, &[]);
    project.shown(&["bless"]);
    let asked = server.seen().asked;
    let ran = run(&project, &["--baseline", "main", "--limit", "5"]);
    ran.expect(2, &[("TOTAL_CALLS", "0")]);
    assert!(ran.err.contains("5 results are planned, the baseline `main` has 40"), "{}", ran.err);
    let project = project.file("cases.jsonl", dataset(41));
    let ran = run(&project, &["--baseline", "main"]);
    assert!(ran.err.contains("the dataset differs from that of the baseline"), "{}", ran.err);
    assert_eq!(server.seen().asked, asked, "nothing was paid for");
    run(&project, &["--baseline", "main", "--force"]).expect(0, &[]);
    fs::write(project.path("baselines/odd.json"), "{\"probity_baseline\": 1}").unwrap();
    let ran = run(&project, &["--baseline", "odd"]);
    assert!(ran.err.contains("odd.json` is not a baseline: missing field"), "{}", ran.err);
    assert!(Path::new(&project.path("baselines/main.json")).exists());
}

#[test]
fn runs_are_compared_case_by_case() {
    let first = wrong_about(&["number 1"]);
    let project = begin(&first);
    run(&project, &[]).expect(0, &[]);
    let second = wrong_about(&["number 3"]);
    let project = again(project, &second, "");
    run(&project, &[]).expect(0, &[]);
    let runs = project.run(&["runs", "--json"]);
    let runs = String::from_utf8(runs.stdout).unwrap();
    let ids: Vec<String> = runs
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|run| run["run_id"].as_str().unwrap().to_owned())
        .collect();
    let (new, old) = (&ids[0], &ids[1]);
    let shown = project.run(&["compare", old, new, "--format", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    let pair = &json["pairs"][0];
    // Wrong before: 1 and 10 to 19. Wrong now: 3 and 30 to 39.
    assert_eq!(pair["regressions"].as_array().unwrap().len(), 11);
    assert_eq!(pair["fixes"].as_array().unwrap().len(), 11);
    assert_eq!((&pair["common"], &pair["p_value"]), (&40.into(), &1.0.into()));
    let text = project.shown(&["compare", old, new]);
    assert!(text.contains("worse    case-3 "), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let markdown = project.shown(&["compare", old, new, "--format", "md"]);
    assert!(markdown.contains("| worse | `case-3` |"), "{markdown}");
    let html = project.shown(&["compare", old, new, "--format", "html"]);
    assert!(html.contains("<code>case-3</code>") && html.contains("default-src 'none'"), "{html}");
    let readable = |text: &str| {
        let short = |id: &str| id.rsplit('-').next().unwrap().to_owned();
        let text = text.replace(&short(old), "OLDRUN").replace(&short(new), "NEWRUN");
        // How long calls took is different each time.
        regex::Regex::new(r" +[\d.]+m?s\b|\| [\d.]+m?s\b")
            .unwrap()
            .replace_all(&text, " TIME")
            .into_owned()
    };
    insta::assert_snapshot!("compare_text", readable(&text));
    insta::assert_snapshot!("compare_markdown", readable(&markdown));
    // One run against itself, by its backends.
    let same = project.shown(&["compare", "latest@fake", "latest@fake"]);
    assert!(same.contains("0 worse, 0 fixed"), "{same}");
    let unknown = project.shown(&["compare", "latest@fake", "latest@nobody"]);
    assert!(unknown.contains("has no backend `nobody`"), "{unknown}");
}

#[test]
fn a_lane_of_the_baseline_that_is_not_run_is_refused() {
    let server = wrong_about(&[]);
    let both = suite(&[("a", &server), ("b", &server)], "");
    let project = Project::new().file("cases.jsonl", dataset(10)).file("probity.toml", both);
    run(&project, &[]).expect(0, &[]);
    project.shown(&["bless"]);
    let ran = run(&project, &["--baseline", "main", "--backend", "a"]);
    ran.expect(2, &[("TOTAL_CALLS", "0")]);
    assert!(
        ran.err.contains("numbers on b is in the baseline `main`, but is not run"),
        "{}",
        ran.err
    );
    run(&project, &["--baseline", "main", "--backend", "a", "--force"]).expect(0, &[]);
    // Nothing in common is no good news.
    let project = project.file("probity.toml", suite(&[("c", &server)], ""));
    run(&project, &["--baseline", "main", "--force"]).expect(1, &[]);
}

#[test]
fn reports_say_what_the_baseline_says() {
    let good = wrong_about(&[]);
    let project = begin(&good);
    run(&project, &[]).expect(0, &[]);
    project.shown(&["bless"]);
    let worse = wrong_about(&["number 39"]);
    let project = again(project, &worse, "");
    let words = ["--baseline", "main", "-o", "x.md", "-o", "x.junit.xml", "-o", "x.summary.json"];
    run(&project, &words).expect(1, &[]);
    let markdown = project.read("x.md");
    assert!(markdown.starts_with("## \u{274c} Failed"), "{markdown}");
    assert!(markdown.contains("Worse than the baseline `main`"), "{markdown}");
    assert!(project.read("x.junit.xml").contains("<failure type=\"baseline\""));
    assert!(project.read("x.summary.json").contains("\"conclusion\": \"failed\""));
    // The baseline itself, the dataset and the suite are never written over.
    for name in ["baselines/main.json", "cases.jsonl"] {
        run(&project, &["--baseline", "main", "-o", name]).expect(2, &[("TOTAL_CALLS", "0")]);
    }
    for words in [
        ["report", "-o", "cases.jsonl"].as_slice(),
        &["gate", "-o", "cases.jsonl"],
        &["gate", "--baseline", "main", "-o", "baselines/main.json"],
        &["export", "--as", "chat", "-o", "cases.jsonl"],
    ] {
        let shown = project.shown(words);
        assert!(shown.contains("are the same file"), "{words:?}: {shown}");
    }
    let shown = project.shown(&["compare", "latest", "latest", "--difference", "2"]);
    assert!(shown.contains("exit 2"), "{shown}");
}

#[test]
fn suites_of_the_same_name_are_told_apart() {
    let server = wrong_about(&[]);
    let text = suite(&[("fake", &server)], "");
    let project = Project::new()
        .file("a/cases.jsonl", dataset(10))
        .file("a/probity.toml", &text)
        .file("b/cases.jsonl", dataset(12))
        .file("b/probity.toml", &text);
    run(&project, &["a/probity.toml", "--max-calls", "2", "-j", "1"]).expect(3, &[]);
    let ran = run(&project, &["b/probity.toml", "--resume"]);
    ran.expect(2, &[("TOTAL_CALLS", "0")]);
    run(&project, &["a/probity.toml", "--resume", "--max-calls", "0"])
        .expect(0, &[("N_CASES", "10")]);
}
