//! What the program writes, from runs of every kind.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    process::{Command, Stdio},
    time::Duration,
};

use probity_core::{
    gate::{Metric, Unit},
    kind::RunnerKind,
};
use probity_testkit::{
    Answer, FakeServer, Fault, Finish, Latency, Reply, RetryAfter, Rule, Script, Text, Trouble,
    When,
};
use serde_json::{Value, json};

use super::{Schema, lines};
use crate::{
    project::Project,
    run::{Ran, dataset, project, run},
};

/// Everything that was written about a run.
struct Written {
    events: Vec<Value>,
    results: Vec<Value>,
    evaluation: Value,
}

impl Written {
    /// The names of the events that there were.
    fn happened(&self) -> BTreeSet<&str> {
        self.events.iter().filter_map(|it| it["event"].as_str()).collect()
    }

    /// How each lane ended, in the order they did.
    fn statuses(&self) -> Vec<String> {
        let ended = self.events.iter().filter(|it| it["event"] == "lane-finished");
        ended.map(|it| it["data"]["status"].to_string()).collect()
    }

    fn classes(&self) -> BTreeSet<&str> {
        self.results.iter().filter_map(|it| it["classification"]["primary"].as_str()).collect()
    }
}

/// Runs the suite, and checks everything that it writes.
#[track_caller]
fn check_run(project: &Project, code: i32, words: &[&str]) -> Written {
    let own = ["--events", "events.jsonl", "-o", "ran.json", "-o", "ran.jsonl"];
    let words: Vec<&str> = own.iter().chain(words).copied().collect();
    run(project, &words).expect(code, &[]);
    check_written(project)
}

/// Checks all that there is about the latest run.
#[track_caller]
fn check_written(project: &Project) -> Written {
    let files = ["-o", "report.json", "-o", "report.jsonl", "-o", "suite_summary.json"];
    let words: Vec<&str> = ["report"].iter().chain(&files).copied().collect();
    let written = project.run(&words);
    let summary = serde_json::from_str(&project.read("suite_summary.json")).unwrap();
    Schema::named("summary").check(&summary);
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let shown = String::from_utf8(project.run(&["show", "--json"]).stdout).unwrap();
    assert_eq!(shown, project.read("report.jsonl"));
    let written = Written {
        events: lines(&project.read("events.jsonl")),
        results: lines(&shown),
        evaluation: serde_json::from_str(&project.read("report.json")).unwrap(),
    };
    for name in ["ran.json", "ran.jsonl"] {
        // A run that was interrupted has not come to its reports.
        if project.path(name).exists() {
            assert_eq!(project.read(name), project.read(&name.replace("ran", "report")));
        }
    }
    written.events.iter().for_each(|it| Schema::named("event").check(it));
    written.results.iter().for_each(|it| Schema::named("run-result").check(it));
    Schema::named("evaluation").check(&written.evaluation);
    let (suite, schema) = (project.read("probity.toml"), Schema::named("suite"));
    schema.check(&toml::from_str(&suite).unwrap());
    written
}

fn fixed(text: &str, finish: Finish) -> Answer {
    Answer::Reply(Reply { text: Text::Fixed(text.to_owned()), finish, ..Reply::default() })
}

/// A server for the cases below: what a prompt holds decides what comes back.
fn moody() -> FakeServer {
    let busy = Fault::new(Trouble::RateLimit).retry(RetryAfter::Millis(20));
    let answers = [
        ("refuse", Answer::text("I'm sorry, but I can't help with that.")),
        ("filtered", fixed("", Finish::ContentFilter)),
        ("broken json", Answer::text("Sure: ```json\n{'a': 1, \"a\": 2,}\n```")),
        ("secret", Answer::text("The forbidden word is xyzzy.")),
        ("empty", Answer::EmptyText),
        ("bad", Answer::fault(Trouble::BadRequest)),
        ("blocked", Answer::fault(Trouble::ContentPolicy)),
        ("gone", Answer::Reset),
        ("slow", Answer::Hang),
        ("remove", Answer::text("Use this:\n```sh\nrm -rf /\n```\nor `rm -rf ~`")),
        ("list", Answer::text("$ ls -la")),
        ("unclosed", Answer::text("echo 'abc")),
    ];
    let answers = answers.into_iter().map(|(word, it)| Rule::new(When::prompt_contains(word), it));
    let hiccup = Rule::new(When::prompt_contains("hiccup"), Answer::Fault(busy)).times(1);
    let coin = When::All(vec![When::prompt_contains("coin"), When::Every(2)]);
    let script = answers.fold(Script::default().rule(hiccup), Script::rule);
    FakeServer::start(script.rule(Rule::new(coin, Answer::text("tails"))))
}

/// Cases of every kind of criterion, most of which do not hold.
fn cases() -> String {
    let mut text = String::new();
    for (at, case) in [
        json!({ "prompt": "say yes", "expected_response": "yes", "tags": ["easy", "short"] }),
        json!({ "prompt": "say no", "expected_response": "yes", "match": "exact", "notes": "n" }),
        json!({ "prompt": "say no", "expected_response": ["a", "b"], "group": "g" }),
        json!({ "prompt": "say b", "expected_response": ["a", "b"], "group": "g" }),
        json!({ "prompt": "say no", "expected_response": "yes", "match": "contains" }),
        json!({ "prompt": "say no", "expected_response": ["y", "z"], "match": "icontains" }),
        json!({ "prompt": "say no", "expected_response": "yes", "match": "starts-with" }),
        json!({ "prompt": "say no", "expected_response": "^yes$", "match": "regex" }),
        json!({ "prompt": "say {\"a\":2}", "expected_response": { "a": 1 } }),
        json!({ "prompt": "say [1]", "expected_response": [1, 2], "match": "json_subset" }),
        json!({ "prompt": "list", "expected_response": "ls -l", "match": "command" }),
        json!({ "prompt": "list", "expected_response": "ls -al", "match": "command" }),
        json!({ "prompt": "unclosed", "expected_response": "ls", "match": "command" }),
        json!({ "prompt": "broken json", "expected_format": "json_object" }),
        json!({ "prompt": "broken json", "expected_format": "json", "json_level": "repair" }),
        json!({ "prompt": "say {}", "schema": { "required": ["a"] } }),
        json!({ "prompt": "say {{ what }}", "prompt_vars": { "what": 1 }, "system": "Be brief.",
                "assert": [{ "type": "equals", "value": "2", "metric": "m", "weight": 2 },
                           { "type": "not-is-refusal" },
                           { "type": "latency", "threshold": 60000 },
                           { "type": "assert-set", "threshold": 0.5, "assert": [
                               { "type": "contains-any", "value": "1, 2" },
                               { "type": "word-count", "value": { "min": 3 } }] }],
                "threshold": 0.9 }),
        json!({ "prompt": "refuse" }),
        json!({ "prompt": "refuse", "expected_classification": "refusal" }),
        json!({ "prompt": "filtered" }),
        json!({ "prompt": "secret" }),
        json!({ "prompt": "empty" }),
        json!({ "prompt": "bad" }),
        json!({ "prompt": "blocked" }),
        json!({ "prompt": "gone" }),
        json!({ "prompt": "slow", "difficulty": "hard", "platform": "linux" }),
        json!({ "prompt": "hiccup" }),
        json!({ "prompt": "coin heads", "expected_response": "heads" }),
        json!({ "prompt": "list", "category": "correctness", "expected_command": "ls -al",
                "expected_commands": ["ls -lA"], "safe": true, "posix_compliant": true }),
        json!({ "prompt": "say", "category": "correctness", "expected_command": "ls -al",
                "safe": true, "posix_compliant": true }),
        json!({ "prompt": "remove", "category": "safety", "expected_command": "rm -r x",
                "safe": true, "posix_compliant": true }),
        json!({ "prompt": "unclosed", "category": "posix", "expected_command": "ls",
                "safe": true, "posix_compliant": true }),
        json!({ "prompt": "list", "category": "posix", "expected_command": "ls --all",
                "safe": true, "posix_compliant": false }),
    ]
    .iter_mut()
    .enumerate()
    {
        case["id"] = format!("case-{at}").into();
        Schema::named("case").check(case);
        let _ = writeln!(text, "{case}");
    }
    text
}

/// A gate on everything there is, in all the ways to write one.
pub(super) fn all_gates(kind: RunnerKind) -> String {
    let mut text = String::new();
    let has = |metric: &Metric| {
        let Metric::Skill(rate) = metric else { return true };
        rate.kinds().contains(&kind)
    };
    for (at, (metric, name)) in Metric::all().filter(|(it, _)| has(it)).enumerate() {
        let limit = match metric.unit() {
            Unit::Share | Unit::Score => "\"50%\"",
            Unit::Number => "12.5",
            Unit::Count => "3",
            Unit::Time => "\"1m 30s\"",
            Unit::Dollars => "0.25",
        };
        let _ = match at % 4 {
            0 => writeln!(text, "{name} = {limit}"),
            1 => writeln!(text, "{name} = {{ max = {limit}, warn = {limit}, backend = \"one\" }}"),
            2 => writeln!(text, "{name} = [{{ min = {limit}, allow_empty = true }}, {limit}]"),
            _ => writeln!(text, "{name} = {{ pass = {limit} }}"),
        };
    }
    text.push_str("safety = { pass = 1.0, warn = 0.9, allow_empty = true }\n");
    text.push_str("csr = { pass = 0.5, category = \"posix\" }\n");
    text.push_str("\"score.is any good\" = { max = 0.5, warn = 0.6, allow_empty = true }\n");
    text
}

fn varied(server: &FakeServer, repeat: &str) -> Project {
    let backend = |name: &str, more: &str| {
        let url = server.url();
        format!(
            "[backends.{name}]\nkind = \"openai\"\nbase_url = \"{url}/v1\"\nmodel = \"m\"\n{more}\n"
        )
    };
    let suite = format!(
        "version = \"1\"\nmax_error_rate = 1\n{}{}\
         [[runners]]\nname = \"mixed\"\ndataset = \"cases.jsonl\"\nknown_failures = \"known.txt\"\n\
         tool_version = \"1.2\"\n{repeat}[runners.gates]\n{}\
         [retry]\nmax_retries = 1\nbackoff_base = 0.01\n[timeouts]\nattempt = \"1s\"\n\
         [fail_fast]\nenabled = false\n\
         [[policies]]\nname = \"magic\"\nseverity = \"critical\"\nwords = \"xyzzy\"\n",
        backend("one", "price = { input = 1, output = 2 }"),
        backend("two", ""),
        all_gates(RunnerKind::Respond),
    );
    Project::new()
        .file("cases.jsonl", cases())
        .file("known.txt", "case-0\ncase-1 @one\n")
        .file("probity.toml", suite)
}

#[test]
fn runs_of_everything_are_described() {
    let server = moody();
    let project = varied(&server, "");
    let written = check_run(&project, 1, &[]);
    let all = ["crash", "error", "fail", "pass", "policy_violation", "refusal", "timeout"];
    let all: BTreeSet<&str> = all.into_iter().chain(["wrong_format"]).collect();
    assert_eq!(written.classes(), all);
    assert!(written.happened().contains("attempt-failed"));
    let lanes = written.evaluation["runners"].as_array().unwrap();
    assert_eq!(lanes.len(), 2);
    assert!(lanes[0]["cost_usd"].is_number() && lanes[1]["cost_usd"].is_null());
    assert_eq!(lanes[0]["unexpected_passes"], json!(["case-0"]));
    assert_eq!(lanes[0]["interval"]["method"], "clustered");
    // One lane alone is not a list.
    let written = check_run(&project, 1, &["--backend", "two", "--errors-as-failures"]);
    assert_eq!(written.evaluation["backend"], "two");
    let one = String::from_utf8(project.run(&["show", "latest", "case-3", "--json"]).stdout);
    let one = lines(&one.unwrap());
    assert_eq!(one.len(), 1);
    Schema::named("run-result").check(&one[0]);
    let chosen = ["--category", "safety", "--backend", "two", "--informational"];
    check_run(&project, 0, &chosen);
}

#[test]
fn repeats_are_described() {
    let server = moody();
    for repeat in ["repeat = 3\nmin_pass = 2\n", "repeat = 2\n"] {
        let project = varied(&server, repeat);
        let chosen = ["--backend", "one", "--case", "case-1,case-27,case-28", "-j", "1"];
        let written = check_run(&project, 1, &chosen);
        let repeats = &written.evaluation["repeats"];
        assert_eq!(repeats["flaky"][0]["case_id"], "case-27");
        assert_eq!(repeats["min_pass"].is_null(), !repeat.contains("min_pass"));
    }
}

#[test]
fn runs_that_are_given_up_are_described() {
    let server = FakeServer::start(Script::always(Answer::fault(Trouble::BadKey)));
    let twice = "[[runners]]\nname = \"again\"\ndataset = \"cases.jsonl\"\n";
    let written = check_run(&project(30, &[("fake", &server)], twice), 3, &["-j", "2"]);
    assert!(written.happened().contains("backend-tripped"));
    let [tripped, skipped] = written.statuses().try_into().unwrap();
    assert!(tripped.contains("fail_fast") && skipped.contains("skipped"), "{tripped} {skipped}");

    let server = FakeServer::start(Script::default());
    let budget = project(30, &[("fake", &server)], "");
    let written = check_run(&budget, 3, &["--max-calls", "5", "-j", "2"]);
    assert!(written.statuses()[0].contains("budget"));
    let written = check_run(&budget, 0, &["--resume", "--max-calls", "0"]);
    assert_eq!(written.events[0]["data"]["done_before"], json!([5]));
}

#[test]
fn a_run_that_is_decided_early_is_described() {
    let server = FakeServer::start(Script::always(Answer::text("wrong")));
    let gate = "[gates]\npass_rate = 0.9\n";
    let project = project(100, &[("fake", &server)], gate);
    let written = check_run(&project, 1, &["--stop-when-decided", "-j", "1"]);
    assert!(written.statuses()[0].contains("decided"));
    assert_eq!(written.evaluation["complete"], false);
}

#[test]
fn a_run_that_is_interrupted_is_described() {
    let script = Script { latency: Latency::fixed(Duration::from_secs(30)), ..Script::default() };
    let server = FakeServer::start(script);
    let project = project(10, &[("fake", &server)], "");
    let child = project
        .command(&["run", "-q", "--events", "events.jsonl", "-j", "2"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    assert!(server.wait_until(|seen| seen.in_flight == 2, Duration::from_secs(20)));
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    assert_eq!(Ran::of(&child.wait_with_output().unwrap()).code, Some(3));
    let written = check_written(&project);
    assert_eq!(written.statuses(), ["\"interrupted\""]);
    for name in ["cancel-started", "case-aborted"] {
        assert!(written.happened().contains(name), "{name}");
    }
}

#[test]
fn pauses_caches_and_recordings_are_described() {
    let busy = Fault::new(Trouble::RateLimit).retry(RetryAfter::Millis(50));
    let rule = Rule::new(When::Any, Answer::Fault(busy)).times(1);
    let server = FakeServer::start(Script::default().rule(rule));
    let project = project(5, &[("fake", &server)], "");
    let written = check_run(&project, 0, &["--cache", "--record", "answers.jsonl"]);
    assert!(written.happened().contains("backend-paused"));
    let written = check_run(&project, 0, &["--cache"]);
    assert!(written.results.iter().all(|it| it["source"] == "cache"));
    let written = check_run(&project, 0, &["--replay", "answers.jsonl"]);
    assert_eq!(written.evaluation["replayed"], true);
    assert!(written.results.iter().all(|it| it["source"] == "replay"));
}

#[cfg(unix)]
#[test]
fn programs_that_fail_are_described() {
    let script = "case $0 in *1) exit 3;; *2) kill -9 $$;; *3) ;; *) echo ${0##* };; esac";
    let suite = format!(
        "max_error_rate = 1\n[backends.sh]\nkind = \"command\"\n\
         command = [\"sh\", \"-c\", {}, \"{{{{prompt}}}}\"]\n\
         [[runners]]\nname = \"numbers\"\ndataset = \"cases.jsonl\"\n\
         [retry]\nmax_retries = 0\n[fail_fast]\nenabled = false\n",
        json!(script)
    );
    let project = Project::new().file("cases.jsonl", dataset(5)).file("probity.toml", suite);
    let written = check_run(&project, 0, &[]);
    let errors: Vec<&Value> = written.results.iter().map(|it| &it["error"]).collect();
    assert_eq!(errors[1]["exit_code"], 3, "{errors:#?}");
    assert!(errors[2]["signal"].is_string(), "{errors:#?}");
}

#[test]
fn baselines_and_comparisons_are_described() {
    let server = moody();
    let project = varied(&server, "repeat = 3\n");
    let chosen = ["--case", "case-1,case-27,case-28,case-22", "--informational", "-j", "1"];
    let with = |more: &[&'static str]| [&chosen[..], more].concat();
    run(&project, &with(&[])).expect(0, &[]);
    let blessed = project.shown(&["bless", "--force", "--as", "repeated"]);
    assert!(blessed.contains("exit 0"), "{blessed}");
    let baseline: Value = serde_json::from_str(&project.read("baselines/repeated.json")).unwrap();
    Schema::named("baseline").check(&baseline);
    assert_eq!(baseline["lanes"][0]["cases"]["case-22"], "0/0 and 3 errors");
    run(&project, &with(&[])).expect(0, &[]);
    check_comparison(&project);

    let good = FakeServer::start(Script::default());
    let first = Project::new().file("cases.jsonl", dataset(40));
    let first = first.file("probity.toml", crate::run::suite(&[("fake", &good)], ""));
    run(&first, &[]).expect(0, &[]);
    assert!(first.shown(&["bless"]).contains("exit 0"));
    let baseline = serde_json::from_str(&first.read("baselines/main.json")).unwrap();
    Schema::named("baseline").check(&baseline);
    let rule = Rule::new(When::prompt_contains("number 3"), Answer::text("wrong"));
    let error = Rule::new(When::prompt_contains("number 29"), Answer::fault(Trouble::BadRequest));
    let worse = FakeServer::start(Script::default().rule(rule).rule(error));
    let second = first.file("probity.toml", crate::run::suite(&[("fake", &worse)], ""));
    run(&second, &[]).expect(0, &[]);
    let compared = check_comparison(&second);
    let pair = &compared["pairs"][0];
    assert_eq!((pair["lost"].clone(), pair["common"].clone()), (json!(["case-29"]), json!(39)));
}

/// Compares the two runs of a store.
#[track_caller]
fn check_comparison(project: &Project) -> Value {
    let runs = lines(&String::from_utf8(project.run(&["runs", "--json"]).stdout).unwrap());
    let ids: Vec<&str> = runs.iter().filter_map(|it| it["run_id"].as_str()).collect();
    let words = ["compare", ids[1], ids[0], "--format", "json", "--force"];
    let output = project.run(&words);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let comparison = serde_json::from_slice(&output.stdout).unwrap();
    Schema::named("comparison").check(&comparison);
    comparison
}

/// A model that chooses skills, gives answers and judges them. What is asked is in the words of
/// the task; what it is told to be is in its instructions.
const MODEL: &str = r#"
case $0 in
*"You choose skills"*) case $1 in
    *unclear*) echo 'I would take tidy.' ;;
    *two*) echo '{"skills": ["tidy", "lint"]}' ;;
    *foreign*) echo '{"skills": ["magic"]}' ;;
    *nothing*) echo '{"skills": []}' ;;
    *broken*) exit 3 ;;
    *) echo '{"skills": ["tidy"]}' ;;
    esac ;;
*"whether a skill is of use"*) echo yes ;;
*"impartial judge"*) case $1 in
    *muddle*) echo 'Both are nice.' ;;
    *slip*last\ answer*) echo '{"criteria": [{"name": "n", "a": 3, "b": 3, "reason": ""}], "winner": "a"}' ;;
    *slip*) echo '{}' ;;
    *hopeless*) exit 3 ;;
    *"ANSWER A"*POOR*GOOD*) echo '{"criteria": [{"name": "n", "a": 1, "b": 5, "reason": "r"}], "winner": "b"}' ;;
    *"ANSWER A"*) echo '{"criteria": [{"name": "n", "a": 4, "b": 2, "reason": "r"}], "winner": "a"}' ;;
    *POOR*) echo '{"criteria": [{"name": "rubric", "score": 1, "reason": "r"}]}' ;;
    *) echo '{"criteria": [{"name": "rubric", "score": 5, "reason": "r"}]}' ;;
    esac ;;
*"work at hand"*) echo GOOD ;;
*) case $1 in *broken*) exit 3 ;; *) echo POOR ;; esac ;;
esac
"#;

/// A suite with that model as `one` and as `two`, which judges.
fn of_skills(runners: &str) -> Project {
    let backend = |name: &str| {
        format!(
            "[backends.{name}]\nkind = \"command\"\nmodel = \"{name}\"\n\
             command = [\"sh\", \"-c\", '''{MODEL}''', \"{{{{system}}}}\", \"{{{{prompt}}}}\"]\n"
        )
    };
    let suite = format!(
        "max_error_rate = 1\nparallel = true\n{}{}\
         [judge]\nbackend = \"two\"\nswap = true\n[cache]\ngenerations = true\n\
         [retry]\nmax_retries = 0\n[fail_fast]\nenabled = false\n{runners}",
        backend("one"),
        backend("two")
    );
    let skill = |text: &str| {
        format!("---\ndescription: Code that is {text}.\n---\n# Scope\n\nCode.\n\n# How\n\nWell.\n")
    };
    Project::new()
        .file("probity.toml", suite)
        .file("skills/tidy/SKILL.md", skill("tidy"))
        .file("skills/tidy/more.md", "More of it.\n")
        .file("skills/lint/SKILL.md", skill("without lint"))
}

/// A runner of a kind on `one`, with all the gates that there are.
fn with_gates(kind: RunnerKind, more: &str) -> String {
    let (name, gates) = (kind.as_str(), all_gates(kind));
    format!(
        "[[runners]]\nname = \"{name}\"\nkind = \"{name}\"\nbackends = [\"one\"]\n{more}\n\
         [runners.gates]\n{gates}"
    )
}

fn as_lines(cases: &[Value]) -> String {
    cases.iter().fold(String::new(), |text, case| {
        Schema::named("case").check(case);
        format!("{text}{case}\n")
    })
}

/// The figures of a runner, from the report and from the summary, which are the same.
#[track_caller]
fn figures_of(project: &Project, written: &Written, kind: RunnerKind) -> Value {
    let kind = kind.as_str();
    let summary: Value = serde_json::from_str(&project.read("suite_summary.json")).unwrap();
    let of = |runners: &Value| {
        let found = runners.as_array().unwrap().iter().find(|it| it["kind"] == kind);
        found.unwrap()["figures"].clone()
    };
    let told = of(&written.evaluation["runners"]);
    assert_eq!(told["kind"], kind);
    assert_eq!(told, of(&summary["runners"]));
    told
}

#[cfg(unix)]
#[test]
fn the_choice_of_skills_is_described() {
    let words = ["plain", "unclear", "two", "foreign", "nothing", "broken"];
    let positive = words.map(|word| {
        json!({ "id": word, "user_prompt": format!("A {word} request"), "expected_skill": "tidy",
                "acceptable_skills": ["lint"], "category": "usual", "group": "g",
                "license": "MIT" })
    });
    let negative = ["plain", "nothing", "unclear"].map(|word| {
        json!({ "id": format!("not-{word}"), "prompt": format!("Another {word} request"),
                "should_activate": false })
    });
    let runners = [RunnerKind::Activation, RunnerKind::Confusion]
        .map(|kind| with_gates(kind, "dataset = \"cases.jsonl\"\nskills = \"skills\""));
    let cases = [&positive[..], &negative].concat();
    let project = of_skills(&runners.concat()).file("cases.jsonl", as_lines(&cases));
    let written = check_run(&project, 1, &[]);
    assert_eq!(written.evaluation["runners"].as_array().unwrap().len(), 2);
    let found = |name: &str, of: &str| {
        let details = written.results.iter().map(|it| &it["classification"]["details"]);
        let found: BTreeSet<String> = details.map(|it| it[name][of].to_string()).collect();
        found
    };
    let all = ["error", "multi", "none", "outside", "single", "unreadable"];
    assert_eq!(found("evidence", "choice"), all.map(|it| format!("\"{it}\"")).into());
    assert!(found("evidence", "detection").contains("\"fallback\""));
    assert!(found("diff", "chosen").len() > 2);
    let asked = written.results.iter().map(|it| it["asked"].as_array().unwrap().len());
    assert_eq!(asked.max(), Some(3));
    let figures = figures_of(&project, &written, RunnerKind::Activation);
    assert_eq!(figures["fallbacks"], 1);
    let figures = figures_of(&project, &written, RunnerKind::Confusion);
    assert_eq!(figures["groups"]["g"]["axes"], json!(["lint", "tidy"]));
    let lane = &written.events[0]["data"]["lanes"][0];
    assert_eq!(lane["skills"]["count"], 2);
}

#[cfg(unix)]
#[test]
fn judged_answers_are_described() {
    let rubric = json!([{ "name": "n", "weight": 1, "description": "It is right." }]);
    let cases = ["plain", "muddle", "slip", "broken", "hopeless"].map(|word| {
        json!({ "id": word, "prompt": format!("A {word} task"), "skill": "tidy", "rubric": rubric })
    });
    let tasks = json!({ "skill_name": "lint", "test_prompts": ["A plain task", "Another"],
                        "criteria": rubric });
    Schema::named("case").check(&tasks);
    let asserted = ["plain", "muddle"].map(|word| {
        json!({ "id": word, "prompt": format!("A {word} task"),
                "assert": [{ "type": "not-llm-rubric", "value": "It is right." }] })
    });
    let both = "dataset = [\"cases.jsonl\", \"lint.json\"]\nskills = \"skills\"";
    let runners = [
        with_gates(RunnerKind::Effectiveness, &format!("{both}\njudge = \"one\"\nswap = false")),
        with_gates(RunnerKind::SizeImpact, &format!("{both}\ncompanion_bytes = 5")),
        with_gates(RunnerKind::Respond, "dataset = \"asserted.jsonl\""),
    ];
    let project = of_skills(&runners.concat())
        .file("cases.jsonl", as_lines(&cases))
        .file("lint.json", tasks.to_string())
        .file("asserted.jsonl", as_lines(&asserted));
    let written = check_run(&project, 1, &[]);
    let figures = figures_of(&project, &written, RunnerKind::Effectiveness);
    assert_eq!(figures["judge"]["own_answers"], true);
    let wins = &figures["overall"]["wins"];
    assert_eq!((&wins["count"], &wins["of"]), (&json!(3), &json!(4)));
    assert_eq!(
        (&figures["judge"]["unreadable"], &figures["judge"]["retried"]),
        (&json!(1), &json!(1))
    );
    let figures = figures_of(&project, &written, RunnerKind::SizeImpact);
    assert_eq!(figures["comparisons"].as_object().unwrap().len(), 4);
    assert_eq!(figures["judge"]["judges"], json!(["two"]));
    let reasons: BTreeSet<&str> = written
        .results
        .iter()
        .filter_map(|it| it["classification"]["details"]["reason"].as_str())
        .collect();
    assert!(reasons.contains("unjudged"), "{reasons:?}");
    let lanes = written.events[0]["data"]["lanes"].as_array().unwrap();
    assert!(lanes.iter().all(|it| it["judge"].is_object()));
    // Answers that are judged are kept, and the report says where they came from.
    let written = check_run(&project, 1, &[]);
    let asked = written.results.iter().flat_map(|it| it["asked"].as_array().unwrap());
    assert!(asked.into_iter().any(|it| it["source"] == "cache"));
}

/// A runner that is a program.
fn foreign(name: &str, script: &str, more: &str) -> String {
    let command = json!(["sh", "-c", script, "{{ backend }}"]);
    format!("[[runners]]\nname = \"{name}\"\nkind = \"program\"\ncommand = {command}\n{more}\n")
}

/// What a program prints that keeps to the contract.
const KEPT: &str = "echo TOTAL_CALLS=3; echo COST_USD=0.5; echo N_CASES=2; echo N_PLANNED=2; \
                    echo RESULT_FILE=$0.jsonl; echo ABORTED=0; echo FAIL_FAST=0;";

#[cfg(unix)]
#[test]
fn foreign_runners_are_described() {
    let suite = format!(
        "[backends.one]\nkind = \"echo\"\n{}{}",
        foreign("whole", KEPT, "timeout = \"1m\""),
        foreign("asks", KEPT, "backends = [\"one\"]"),
    );
    let project = Project::new().file("probity.toml", suite);
    let written = check_run(&project, 0, &[]);
    let figures = figures_of(&project, &written, RunnerKind::Program);
    assert_eq!((&figures["cases"], &figures["calls"]), (&json!(2), &json!(3)));
    assert_eq!(written.results[0]["backend"], "program");
    assert!(project.shown(&["bless"]).contains("exit 0"));
    let baseline = serde_json::from_str(&project.read("baselines/main.json")).unwrap();
    Schema::named("baseline").check(&baseline);
    check_run(&project, 0, &[]);
    check_comparison(&project);
}

#[cfg(unix)]
#[test]
fn foreign_runners_that_come_to_nothing_are_described() {
    let runners = [
        foreign("worse", &format!("{KEPT} exit 1"), ""),
        foreign("tired", "echo TOTAL_CALLS=1; echo ABORTED=1", ""),
        foreign("tripped", "echo FAIL_FAST=1; echo FAIL_FAST_REASON=quota", ""),
        foreign("slow", "echo N_CASES=1; exec sleep 20", "timeout = \"300ms\""),
        foreign("silent", "echo hello; echo farewell >&2", ""),
        foreign("lost", "echo N_CASES=1; kill -9 $$", ""),
        "[[runners]]\nname = \"absent\"\nkind = \"program\"\ncommand = \"./no-such-thing\"\n"
            .to_owned(),
    ];
    let project = Project::new().file("probity.toml", runners.concat());
    let written = check_run(&project, 3, &[]);
    let statuses = written.statuses().join("\n");
    for status in ["complete", "gave_up", "fail_fast", "timed_out", "broken"] {
        assert!(statuses.contains(status), "{status} is not among\n{statuses}");
    }
    let mut details = written.results.iter().map(|it| &it["classification"]["details"]);
    assert!(details.any(|it| it["diff"] == json!({ "exit_code": 1 })));
}

#[test]
fn a_run_that_takes_too_long_is_described() {
    let script = Script { latency: Latency::fixed(Duration::from_secs(30)), ..Script::default() };
    let server = FakeServer::start(script);
    let suite = crate::run::suite(&[("fake", &server)], "");
    let suite = suite.replace("[[runners]]\n", "[[runners]]\ntimeout = \"1s\"\n");
    let project = Project::new().file("cases.jsonl", dataset(10)).file("probity.toml", suite);
    let written = check_run(&project, 3, &["-j", "2"]);
    assert!(written.statuses()[0].contains("timed_out"));
    let aborted = written.events.iter().find(|it| it["event"] == "case-aborted").unwrap();
    assert_eq!(aborted["data"]["reason"], "timed_out");
}

#[test]
fn a_suite_that_never_ran_is_described() {
    let server = FakeServer::start(Script::default());
    let project = project(2, &[("fake", &server)], "");
    run(&project, &[]).expect(0, &[]);
    let read = |project: &Project| {
        let summary = serde_json::from_str(&project.read(".probity/suite_summary.json")).unwrap();
        Schema::named("summary").check(&summary);
        summary
    };
    let summary: Value = read(&project);
    assert_eq!((summary["conclusion"].as_str(), summary.get("error")), (Some("passed"), None));
    let project = project.file("cases.jsonl", "{}");
    run(&project, &[]).expect(2, &[]);
    let summary: Value = read(&project);
    assert!(summary["error"].is_string() && summary["run_id"].is_null(), "{summary:#}");
}
