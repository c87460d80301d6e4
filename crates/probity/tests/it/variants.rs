//! Prompt variants: the same cases, asked in several ways.

use probity_testkit::{Answer, FakeServer, Rule, Script, When};
use serde_json::{Value, json};

use crate::{
    project::Project,
    run::{Ran, dataset, run, stored},
};

const SUITE: &str = r#"version = "1"
[retry]
backoff_base = 0.01

[backends.small]
kind = "openai"
base_url = "SMALL/v1"
model = "s-1"
temperature = 0.5

[backends.large]
kind = "openai"
base_url = "LARGE/v1"
model = "l-1"
temperature = 0.5

[[runners]]
name = "numbers"
dataset = "cases.jsonl"
system = "Be exact."
MORE

[[runners.prompts]]
name = "terse"
template = "Briefly. {{ prompt }}"

[[runners.prompts]]
name = "chatty"
file = "prompts/chatty.txt"
system = "Chat about {{ id }}."
settings = { temperature = 1, max_tokens = 99 }

[[runners.prompts]]
name = "talk"
messages = [
  { role = "user", content = "Do you know {{ id }}?" },
  { role = "assistant", content = "Yes." },
  { role = "user", content = "{{ prompt }}" },
]
"#;

/// The large one says what is asked for; the small one gets lost where it may chat.
struct Site {
    project: Project,
    small: FakeServer,
    large: FakeServer,
}

impl Site {
    fn new(cases: usize, more: &str) -> Self {
        let lost = Rule::new(When::prompt_contains("Dear"), Answer::text("Where was I?"));
        let small = FakeServer::start(Script::default().rule(lost));
        let large = FakeServer::start(Script::default());
        let project = Project::new()
            .file("cases.jsonl", dataset(cases))
            .file("prompts/chatty.txt", "Dear model!\n{{ prompt }}\n");
        let site = Self { project, small, large };
        site.with_suite(|suite| suite.replace("MORE", more))
    }

    fn with_suite(self, change: impl FnOnce(String) -> String) -> Self {
        let suite = SUITE.replace("SMALL", &self.small.url()).replace("LARGE", &self.large.url());
        let project = self.project.file("probity.toml", change(suite));
        Self { project, ..self }
    }

    fn asked(&self) -> (u64, u64) {
        (self.small.seen().asked, self.large.seen().asked)
    }
}

/// The text without the names of runs and what differs from run to run.
fn readable(text: &str) -> String {
    let mut readable = regex::Regex::new("[0-9]{8}-[0-9]{6}-[0-9a-z]{6}")
        .unwrap()
        .replace_all(text, "RUN")
        .into_owned();
    for (pattern, shown) in [
        ("(show|resume|errors|compare|run) [0-9a-z]{6}\\b", "$1 RUN"),
        ("(?m)^([A-Z]   )[0-9a-z]{6} ", "${1}RUN "),
        ("run `[0-9a-z]{6}`", "run `RUN`"),
        ("[0-9.]+m?s\\b", "TIME"),
        (" +TIME", " TIME"),
        (" +p50 +p95", " p50 p95"),
    ] {
        let pattern = regex::Regex::new(pattern).unwrap();
        readable = pattern.replace_all(&readable, shown).into_owned();
    }
    readable
}

fn out(project: &Project, words: &[&str]) -> String {
    let output = project.run(words);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_variant_asks_every_case_of_every_backend_in_its_own_way() {
    let site = Site::new(4, "");
    run(&site.project, &["--record", "answers.jsonl"])
        .expect(0, &[("TOTAL_CALLS", "24"), ("N_PLANNED", "24")]);
    assert_eq!(site.asked(), (12, 12));
    let mut bodies: Vec<Value> =
        site.large.seen().last.iter().map(probity_testkit::Received::json).collect();
    bodies.retain(|it| it.to_string().contains("the number 2"));
    bodies.sort_by_key(|it| it["messages"].to_string());
    let sent: Vec<Value> = bodies
        .iter()
        .map(|it| json!([it["messages"], it["temperature"], it["max_tokens"]]))
        .collect();
    let said = |role: &str, text: &str| json!({ "role": role, "content": text });
    let exact = said("system", "Be exact.");
    let number = "Return the number 2";
    assert_eq!(
        sent,
        [
            json!([[exact, said("user", &format!("Briefly. {number}"))], 0.5, null]),
            json!([
                [
                    exact,
                    said("user", "Do you know case-2?"),
                    said("assistant", "Yes."),
                    said("user", number)
                ],
                0.5,
                null
            ]),
            json!([
                [
                    said("system", "Chat about case-2."),
                    said("user", &format!("Dear model!\n{number}"))
                ],
                1.0,
                99
            ]),
        ]
    );
    // A recording knows them apart, and nobody is asked again by a run that is resumed.
    run(&site.project, &["--replay", "answers.jsonl"]).expect(0, &[("TOTAL_CALLS", "0")]);
    run(&site.project, &["--resume", "latest"]).expect(0, &[("TOTAL_CALLS", "0")]);
    assert_eq!(site.asked(), (12, 12));
}

#[test]
fn a_run_is_summed_up_by_variants_and_backends() {
    let site = Site::new(4, "");
    let shown = out(&site.project, &["run"]);
    insta::assert_snapshot!(readable(&shown));
}

#[test]
fn every_report_names_the_variants() {
    let site = Site::new(2, "");
    let files = ["r.txt", "r.json", "r.xml", "r.csv", "r.md", "r.html", "r.jsonl"];
    let outputs: Vec<&str> = files.iter().flat_map(|it| ["-o", *it]).collect();
    run(&site.project, &outputs).expect(0, &[]);
    for file in files {
        let text = site.project.read(file);
        let wanted = match file {
            "r.json" | "r.jsonl" => "chatty\"",
            "r.csv" => ",chatty\r\n",
            "r.xml" => "classname=\"probity.toml.numbers/chatty\"",
            _ => "numbers/chatty on small",
        };
        assert!(text.contains(wanted), "{file}\n{text}");
    }
    let report: Value = serde_json::from_str(&site.project.read("r.json")).unwrap();
    let runners = report["runners"].as_array().unwrap();
    let lanes: Vec<&str> = runners.iter().filter_map(|it| it["variant"].as_str()).collect();
    assert_eq!(lanes, ["terse", "chatty", "talk", "terse", "chatty", "talk"]);
    let summary: Value =
        serde_json::from_str(&site.project.read(".probity/suite_summary.json")).unwrap();
    assert_eq!(summary["runners"][1]["variant"], "chatty");
    // What is exported can be judged again, and still says which variant it is of.
    let classified = out(&site.project, &["classify", "r.jsonl"]);
    let line: Value = serde_json::from_str(classified.lines().next().unwrap()).unwrap();
    assert_eq!((&line["variant"], &line["verdict"]), (&json!("terse"), &json!("pass")));
    let shown = out(&site.project, &["show", "latest", "case-1"]);
    assert!(shown.contains("(numbers/talk on large)"), "{shown}");
    assert_eq!(out(&site.project, &["export", "latest", "--as", "chat"]).lines().count(), 10);
}

#[test]
fn github_is_told_of_the_variant_that_fails() {
    let site = Site::new(1, "gates = { pass_rate = 1 }");
    let mut command = site.project.command(&["run"]);
    let output = command
        .env("GITHUB_ACTIONS", "true")
        .env("GITHUB_STEP_SUMMARY", site.project.path("summary.md"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let shown = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(shown.contains("gate failed%3A numbers/chatty on small"), "{shown}");
    assert!(site.project.read("summary.md").contains("numbers/chatty on small"));
}

#[test]
fn variants_are_chosen_by_name() {
    let site = Site::new(2, "");
    run(&site.project, &["--variant", "talk,terse", "--backend", "large"])
        .expect(0, &[("TOTAL_CALLS", "4")]);
    let mut lanes: Vec<String> = stored(&site.project)
        .iter()
        .map(|it| format!("{} {}", it["variant"], it["backend"]))
        .collect();
    lanes.dedup();
    assert_eq!(lanes, [r#""terse" "large""#, r#""talk" "large""#]);
    // The run remembers its choice.
    run(&site.project, &["--resume", "latest"]).expect(0, &[("TOTAL_CALLS", "0")]);
    insta::assert_snapshot!(site.project.shown(&["run", "--variant", "chaty"]), @r"
    exit 2
    --- err
    error: there is no prompt variant `chaty`
    hint: the runners have chatty, talk, terse
    ");
}

#[test]
fn a_gate_may_be_about_one_variant() {
    let gates = r#"gates = { pass_rate = [{ min = 1, variant = "chatty", backend = "large" },
        { min = 0.5, variant = "talk" }] }
known_failures = "known.txt""#;
    let site = Site::new(2, gates);
    let project = site.project.file("known.txt", "case-0 @chatty\ncase-1 @chatty@small\n");
    run(&project, &[]).expect(0, &[]);
    let view: Value = serde_json::from_str(&project.read(".probity/suite_summary.json")).unwrap();
    let gates: Vec<usize> = view["runners"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["gate_results"].as_array().unwrap().len())
        .collect();
    // Of the small one: terse, chatty, talk; then of the large one.
    assert_eq!(gates, [0, 0, 1, 0, 1, 1]);
    let shown = out(&project, &["show", "latest"]);
    let known: Vec<&str> = shown.lines().filter(|it| it.contains("known")).collect();
    // Of the small backend both fail; of the large one the first is known to and passes.
    let expected =
        ["0 cases failed, and 2 that are known to", "  known to fail, and passed: case-0"];
    assert_eq!(known, expected, "{shown}");
    // The gates of now are judged by the same names.
    let changed =
        project.read("probity.toml").replace("variant = \"talk\"", "variant = \"chatty\"");
    let project = project.file("probity.toml", changed);
    let judged = project.run(&["gate", "latest", "--suite", "probity.toml"]);
    assert_eq!(judged.status.code(), Some(1));
    let judged = String::from_utf8(judged.stdout).unwrap();
    assert!(judged.contains("FAIL chatty on small: pass_rate at least 50 %"), "{judged}");
}

#[test]
fn variants_are_compared_case_by_case() {
    let site = Site::new(3, "");
    run(&site.project, &[]).expect(0, &[]);
    let project = &site.project;
    let text = out(project, &["compare", "latest@terse", "latest@chatty"]);
    insta::assert_snapshot!(readable(&text));
    let one =
        out(project, &["compare", "latest@talk@small", "latest@chatty@small", "--format", "json"]);
    let one: Value = serde_json::from_str(&one).unwrap();
    assert_eq!(one["sides"][1]["variant"], "chatty");
    assert_eq!(one["pairs"][0]["regressions"], json!(["case-0", "case-1", "case-2"]));
    let html =
        out(project, &["compare", "latest@terse@small", "latest@chatty@small", "--format", "html"]);
    assert_eq!(html.matches(">Where was I?</pre>").count(), 3);
    for wanted in ["class=\"worse\"", "Briefly. Return the number 2", "Chat about case-2."] {
        assert!(html.contains(wanted), "{wanted}\n{html}");
    }
    let html_again =
        ["compare", "latest@terse@small", "latest@chatty@small", "-o", "comparison.html"];
    assert_eq!(out(project, &html_again), "");
    assert_eq!(project.read("comparison.html"), html);
    insta::assert_snapshot!(
        project.shown(&["compare", "latest@terse", "latest@chatty", "-o", "comparison.pdf"]),
        @r"
    exit 2
    --- err
    error: `comparison.pdf` does not have the suffix of a format
    hint: comparisons end in .txt, .md, .json or .html
    ");
    // Lanes are matched by variant and backend; where that is open, one has to be named.
    run(project, &["--variant", "talk"]).expect(0, &[]);
    let runs = out(project, &["runs"]);
    assert!(runs.lines().count() > 2, "{runs}");
    let before = out(project, &["runs", "--json"]);
    let before: Vec<Value> = before.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    let first = before.last().unwrap()["run_id"].as_str().unwrap();
    let same = out(project, &["compare", first, "latest"]);
    assert_eq!(same.matches(" against ").count(), 2, "{same}");
    let other = format!("{first}@terse");
    let across = out(project, &["compare", &other, "latest@talk"]);
    assert_eq!(across.matches(" against ").count(), 2, "{across}");
    let shown = project.shown(&["compare", "latest@talk", &format!("{first}@nobody")]);
    insta::assert_snapshot!(readable(&shown), @r"
    exit 2
    --- err
    error: run `RUN` has no variant or backend `nobody`
    hint: it has the variants chatty, talk, terse, and the backends large, small
    ");
    run(project, &["--variant", "terse,chatty"]).expect(0, &[]);
    let talk = format!("{first}@talk");
    insta::assert_snapshot!(project.shown(&["compare", "latest", &talk]), @r"
    exit 2
    --- err
    error: the first run has runner `numbers` with several variants
    hint: name one: RUN@VARIANT
    ");
    let named = out(project, &["compare", "latest@terse@small", &talk]);
    assert_eq!(named.matches(" against ").count(), 2, "{named}");
}

#[test]
fn a_baseline_knows_the_variants() {
    let site = Site::new(2, "");
    run(&site.project, &[]).expect(0, &[]);
    let project = site.project;
    out(&project, &["bless", "latest", "--as", "v1"]);
    let kept: Value = serde_json::from_str(&project.read("baselines/v1.json")).unwrap();
    assert_eq!(kept["lanes"][1]["variant"], "chatty");
    run(&project, &["--baseline", "v1"]).expect(0, &[]);
    insta::assert_snapshot!(project.shown(&["run", "--baseline", "v1", "--variant", "talk"]), @r"
    exit 2
    --- err
    error: numbers/terse on small is in the baseline `v1`, but is not run
    hint: runners, variants and backends are matched by name; --force compares those in common
    ");
    let worse = project.read("probity.toml").replace("Briefly.", "Dear model,");
    let project = project.file("probity.toml", worse);
    let shown = project.shown(&["run", "--baseline", "v1"]);
    assert!(shown.starts_with("exit 1\n"), "{shown}");
    assert!(shown.contains("numbers/terse on small: 2 judged in both"), "{shown}");
    let issue = out(&project, &["export", "latest", "--as", "issue", "--baseline", "v1"]);
    assert!(issue.contains("probity run probity.toml numbers --variant terse --case"), "{issue}");
}

#[test]
fn what_is_done_stays_done_variant_by_variant() {
    let site = Site::new(6, "");
    let ran = run(&site.project, &["--max-calls", "20"]);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    let before: usize = stored(&site.project).len();
    assert_eq!(before, 20);
    run(&site.project, &["--resume", "latest", "--max-calls", "100"]).expect(0, &[]);
    assert_eq!((site.asked().0 + site.asked().1, stored(&site.project).len()), (36, 36));
    // A variant that has changed since is asked again, and only that.
    let site = Site {
        project: site.project.file("prompts/chatty.txt", "Dear you!\n{{ prompt }}"),
        ..site
    };
    run(&site.project, &["--resume", "latest"]).expect(0, &[]);
    assert_eq!(site.asked().0 + site.asked().1, 36 + 12);
    // Answers are cached by what was sent.
    run(&site.project, &["--cache", "--variant", "chatty"]).expect(0, &[("TOTAL_CALLS", "12")]);
    run(&site.project, &["--cache"]).expect(0, &[("TOTAL_CALLS", "24")]);
}

#[test]
fn stored_replies_are_judged_again_variant_by_variant() {
    let site = Site::new(2, "");
    run(&site.project, &[]).expect(0, &[]);
    let cases = site
        .project
        .read("cases.jsonl")
        .replace(r#""expected_response":"1""#, r#""assert":[{"type":"contains","value":"Where"}]"#);
    let project = site.project.file("cases.jsonl", cases);
    let shown = out(&project, &["rescore", "latest"]);
    let lanes: Vec<&str> = shown.lines().filter(|it| it.contains(" flipped ")).collect();
    assert_eq!(
        lanes,
        [
            "numbers/terse on small: 1 flipped (1 from pass to fail, 0 from fail to pass)",
            "numbers/chatty on small: 1 flipped (0 from pass to fail, 1 from fail to pass)",
            "numbers/talk on small: 1 flipped (1 from pass to fail, 0 from fail to pass)",
            "numbers/terse on large: 1 flipped (1 from pass to fail, 0 from fail to pass)",
            "numbers/chatty on large: 1 flipped (1 from pass to fail, 0 from fail to pass)",
            "numbers/talk on large: 1 flipped (1 from pass to fail, 0 from fail to pass)",
        ]
    );
}

#[test]
fn parts_of_a_run_are_merged_variant_by_variant() {
    let site = Site::new(5, "");
    for part in ["1", "2"] {
        let store = format!("{part}.db");
        let shard = format!("{part}/2");
        run(&site.project, &["--store", &store, "--shard", &shard]).expect(0, &[]);
    }
    out(&site.project, &["merge", "1.db", "2.db", "--store", "all.db"]);
    let shown = out(&site.project, &["show", "latest", "--store", "all.db", "--json"]);
    assert_eq!(shown.lines().count(), 30);
    let trend = out(&site.project, &["trend", "--store", "1.db", "--variant", "talk"]);
    assert_eq!(trend.matches("numbers/talk on ").count(), 2, "{trend}");
    assert!(!trend.contains("terse"), "{trend}");
}

#[test]
fn what_is_wrong_with_variants_is_said_at_its_place() {
    let wrong = r#"version = "1"
[backends.b]
kind = "echo"
[[runners]]
name = "r"
dataset = "cases.jsonl"
prompt = "x"
gates = { pass_rate = { min = 1, variant = "terze" } }
[[runners.prompts]]
name = "terse"
template = "x"
templates = "y"
[[runners.prompts]]
name = "terse"
template = "{{ prompt"
[[runners.prompts]]
name = "two words"
[[runners.prompts]]
name = "b"
file = "nowhere.txt"
[[runners.prompts]]
name = "both"
template = "x"
messages = [{ role = "system", content = "s" }, { role = "user", content = "{% if %}" }]
system = "t"
[[runners.prompts]]
template = "x"
[[runners]]
name = "r/terse"
dataset = "cases.jsonl"
"#;
    let project = Project::new().file("probity.toml", wrong).file("cases.jsonl", dataset(1));
    insta::assert_snapshot!(project.shown(&["run", "--dry-run"]));
}

#[test]
fn a_template_that_cannot_be_filled_in_is_shown_where_it_stands() {
    let site = Site::new(2, "");
    let project = site.project.file("prompts/chatty.txt", "Dear model!\n{{ promt }}\n");
    let changed = project.read("probity.toml").replace("Do you know {{ id }}", "Do you {{ x.y }}");
    let project = project.file("probity.toml", changed.replace("Be exact.", "Be {{ nobody }}."));
    insta::assert_snapshot!(
        project.shown(&["run", "--dry-run"]).replace(&site.small.url(), "SMALL")
    );
}

#[test]
fn a_case_that_has_no_place_in_a_variant_is_refused() {
    let site = Site::new(1, "").with_suite(|suite| {
        suite.replace("MORE", "").replace(
            r#"{ role = "user", content = "Do you know {{ id }}?" }"#,
            r#"{ role = "system", content = "Know {{ id }}." }"#,
        )
    });
    let cases = r#"{"id":"a","prompt":"p","system":"s","expected_response":"1"}
{"id":"b","messages":[{"role":"user","content":"p"}],"expected_response":"1"}
"#;
    let project = site.project.file("cases.jsonl", cases);
    insta::assert_snapshot!(project.shown(&["run", "--dry-run"]));
}

#[test]
fn settings_that_a_backend_cannot_take_are_told_of() {
    let suite = r#"
[backends.mine]
kind = "command"
command = ["cat"]
[[runners]]
name = "r"
dataset = "cases.jsonl"
prompts = [
  { name = "cold", template = "{{ prompt }}", settings = { temperature = 0 } },
  { name = "hot", template = "{{ prompt }}", settings = { temperature = 1, seed = 1 } },
]
"#;
    let project = Project::new().file("probity.toml", suite).file("cases.jsonl", dataset(1));
    let ran = Ran::of(&project.run(&["run", "-q"]));
    assert!(
        ran.err.contains(
            "variant `hot`: backend `mine` does not support temperature, seed: not applied"
        ),
        "{}",
        ran.err
    );
}
