//! The suites that come with the program: each is sound, and judges what it says it does.

mod talk;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use probity_core::{case::TestCase, kind::RunnerKind};
use probity_load::{
    dataset::{self, Item},
    suite::Suite,
};
use probity_testkit::{Answer, FakeServer, Rule, Script, When};
use serde_json::{Value, json};

use crate::{
    project::Project,
    run::{Ran, stored},
};

const REFUSAL: &str = "I'm sorry, but I can't help with that request.";

/// A folder with all suites in it, each asking an echo.
fn all() -> (Project, Vec<String>) {
    let project = Project::new();
    let list = project.run(&["init", "--list", "--json"]);
    let list: Vec<Value> = serde_json::from_slice(&list.stdout).unwrap();
    let names: Vec<String> =
        list.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect();
    let words = ["init", "--suite", &names.join(","), "--backend", "echo", "--size", "4k"];
    let shown = project.shown(&words);
    assert!(shown.starts_with("exit 0"), "{shown}");
    (project, names)
}

fn suite(project: &Project, name: &str) -> Suite {
    let (suite, problems) =
        Suite::load(&project.path(&format!("{name}/probity.toml")), &|_| Vec::new());
    assert!(problems.is_empty(), "{name}: {problems:?}");
    suite.unwrap()
}

fn datasets(project: &Project, name: &str) -> Vec<PathBuf> {
    let runners = suite(project, name).runners;
    runners.iter().flat_map(|it| &it.dataset).map(|it| project.path(name).join(it)).collect()
}

fn cases(project: &Project, name: &str) -> Vec<TestCase> {
    let datasets = datasets(project, name);
    let paths: Vec<&Path> = datasets.iter().map(PathBuf::as_path).collect();
    let mut cases = Vec::new();
    dataset::read(&paths, &|_| Vec::new(), &mut |item| match item {
        Item::Case(at) => cases.push(at.case),
        Item::Problem(problem) => panic!("{name}: {problem:?}"),
    });
    cases
}

/// Suites all of whose runners ask one question a case, and judge the answer without a judge.
fn answered(project: &Project, names: &[String]) -> Vec<String> {
    let is_answered = |name: &&String| {
        let runners = suite(project, name).runners;
        let is_talk = ["chat", "tools"].contains(&name.as_str());
        !is_talk
            && runners.iter().all(|it| matches!(it.kind, RunnerKind::Respond | RunnerKind::Command))
    };
    names.iter().filter(is_answered).cloned().collect()
}

/// Runs a suite on a recording in which the answers to each case are these.
fn replay(
    project: &Project,
    name: &str,
    repeat: usize,
    replies: impl Fn(&str) -> Vec<String>,
) -> Vec<Value> {
    let file = format!("{name}/probity.toml");
    let run = |words: &[&str]| {
        let ran =
            Ran::of(&project.run(&[&["run", &file, "--porcelain", "-q"][..], words].concat()));
        assert!(matches!(ran.code, Some(0 | 1)), "{name}: {}", ran.err);
    };
    // What is asked is best known to the program itself.
    run(&["--record", "echo.jsonl"]);
    let recorded = project.read("echo.jsonl");
    let (header, lines) = recorded.split_once('\n').unwrap();
    let mut recording = format!("{header}\n");
    for line in lines.lines() {
        let entry: Value = serde_json::from_str(line).unwrap();
        for (at, reply) in replies(entry["case_id"].as_str().unwrap()).into_iter().enumerate() {
            let mut entry = entry.clone();
            entry["repeat"] = json!(at);
            entry["reply"] = json!(reply);
            let _ = writeln!(recording, "{entry}");
        }
    }
    fs::write(project.path("answers.jsonl"), recording).unwrap();
    fs::remove_file(project.path("echo.jsonl")).unwrap();
    run(&["--replay", "answers.jsonl", "--repeat", &repeat.to_string()]);
    stored(project)
}

#[test]
fn every_suite_loads_without_a_warning() {
    let (project, names) = all();
    for name in &names {
        let file = format!("{name}/probity.toml");
        let shown = project.run(&["config", "show", &file]);
        assert!(shown.status.success() && shown.stderr.is_empty(), "{name}: {shown:?}");
        for dataset in datasets(&project, name) {
            let dataset = dataset.display().to_string();
            let words = ["dataset", "validate", "--strict", "--require-criteria", &dataset];
            let shown = project.shown(&words);
            assert!(shown.starts_with("exit 0") && !shown.contains("warning:"), "{shown}");
        }
    }
    for name in &names {
        let shown = project.shown(&["run", "--dry-run", &format!("{name}/probity.toml")]);
        assert!(shown.starts_with("exit 0") && !shown.contains("--- err"), "{name}: {shown}");
    }
}

#[test]
fn every_case_has_a_criterion_a_licence_and_an_id_of_its_own() {
    let (project, names) = all();
    let mut seen = BTreeMap::new();
    for name in &names {
        for case in cases(&project, name) {
            assert!(case.has_criteria(), "{name}: {}", case.id);
            if let Some(other) = seen.insert(case.id.clone(), name) {
                panic!("`{}` is in {other} and in {name}", case.id);
            }
        }
    }
    for name in &names {
        for file in files(&project.path(name)) {
            let text = fs::read_to_string(&file).unwrap();
            let head: Vec<&str> = text.lines().take(8).collect();
            let states = |line: &&str| {
                line.contains("SPDX-License-Identifier: MIT OR Apache-2.0")
                    || *line == "license: MIT OR Apache-2.0"
            };
            assert!(head.iter().any(states), "{} states no licence", file.display());
        }
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn the_list_counts_what_is_there() {
    let (project, names) = all();
    let list = project.run(&["init", "--list", "--json"]);
    let list: Vec<Value> = serde_json::from_slice(&list.stdout).unwrap();
    for (entry, name) in list.iter().zip(&names) {
        assert_eq!(entry["cases"], cases(&project, name).len(), "{name}");
        assert_eq!(entry["files"], files(&project.path(name)).len(), "{name}");
        assert!(entry["about"].as_str().unwrap().ends_with('?'), "{name}");
    }
}

#[test]
fn the_documentation_describes_every_suite_and_shows_the_list() {
    let page = include_str!("../../../../docs/suites-builtin.md");
    let list = String::from_utf8(Project::new().run(&["init", "--list"]).stdout).unwrap();
    let (list, _) = list.split_once("\n\n").unwrap();
    assert!(page.contains(list), "{list}");
    for name in list.lines().filter_map(|line| line.split_whitespace().next()) {
        assert!(page.contains(&format!("\n## {name}\n")), "{name}");
    }
}

#[test]
fn an_expected_shell_command_passes_its_own_case() {
    let (project, _) = all();
    let cases = cases(&project, "shell");
    assert!(cases.len() >= 120, "{}", cases.len());
    let accepted: BTreeMap<&str, Vec<String>> = cases
        .iter()
        .map(|case| (&*case.id, case.accepted_commands().map(ToOwned::to_owned).collect()))
        .collect();
    let most = accepted.values().map(Vec::len).max().unwrap();
    let results = replay(&project, "shell", most, |id| {
        accepted[id].iter().cycle().take(most).cloned().collect()
    });
    assert_eq!(results.len(), cases.len() * most);
    for result in &results {
        assert_eq!(result["verdict"], "pass", "{}: {}", result["case_id"], result["raw_response"]);
    }
}

#[test]
fn a_refusal_fails_every_case() {
    let (project, names) = all();
    for name in answered(&project, &names) {
        let results = replay(&project, &name, 1, |_| vec![REFUSAL.to_owned()]);
        assert_eq!(results.len(), cases(&project, &name).len(), "{name}");
        for result in &results {
            assert_ne!(result["verdict"], "pass", "{name}: {}", result["case_id"]);
        }
    }
}

#[test]
fn long_context_takes_the_answer_and_not_those_of_distractors() {
    let (project, _) = all();
    let needles: toml::Table = toml::from_str(&project.read("long-context/needles.toml")).unwrap();
    let needles = needles["needles"].as_array().unwrap();
    let text = |id: &str, key: &str| {
        let needle = needles.iter().find(|it| id == format!("{}-4k", it["id"].as_str().unwrap()));
        needle.unwrap()[key].as_str().unwrap().to_owned()
    };
    let results = replay(&project, "long-context", 2, |id| {
        vec![text(id, "answer"), format!("It says: {}", text(id, "needle"))]
    });
    assert!(results.iter().all(|it| it["verdict"] == "pass"));
    // An echo has everything in it.
    let echoed = project.run(&["run", "long-context/probity.toml", "--tag", "distractors", "-q"]);
    assert_eq!(echoed.status.code(), Some(1));
    assert!(stored(&project).iter().all(|it| it["verdict"] == "fail"));
}

#[test]
fn an_answer_in_the_form_that_was_asked_for_passes_its_question_and_no_other() {
    let (project, _) = all();
    let cases = cases(&project, "qa");
    let case = |id: &str| cases.iter().find(|it| it.id == id).unwrap();
    // Choices are shuffled, so their texts are given. The first is another than the last.
    let choice = |id: &str, wrong: bool| {
        let choices = &case(id).criteria.reading.choices;
        let letter = case(id).criteria.expected_response.as_ref()?.as_str()?.as_bytes()[0];
        let right = choices.get(usize::from(letter.checked_sub(b'A')?))?;
        choices.iter().find(|it| (*it != right) == wrong).cloned()
    };
    let key = |id: &str| {
        let expected = case(id).criteria.expected_response.as_ref().unwrap();
        let first = expected.get(0).unwrap_or(expected);
        let text = first.as_str().map_or_else(|| first.to_string(), ToOwned::to_owned);
        choice(id, false).unwrap_or(text)
    };
    let wrong = |id: &str| choice(id, true).unwrap_or_else(|| "1048576".to_owned());
    let said = |id: &str, answer: &str| match id.contains("-extract-") {
        true => format!("I read it twice, 7 lines.\n<answer>{answer}.</answer>"),
        false => format!("First 3, then 4: A or B or C.\n**ANSWER: {answer}**"),
    };
    let results = replay(&project, "qa", 2, |id| vec![said(id, &key(id)), said(id, &wrong(id))]);
    assert_eq!(results.len(), 2 * cases.len());
    for result in &results {
        let expected = if result["repeat"] == 0 { "pass" } else { "fail" };
        assert_eq!(
            result["verdict"], expected,
            "{}: {}",
            result["case_id"], result["raw_response"]
        );
    }
}

/// What answers a case of `rag`, without its citations.
fn fact(case: &TestCase) -> String {
    let expected = case.criteria.expected_response.as_ref().unwrap().as_str().unwrap();
    let plain = expected.replace("\\b", "").replace(",?", ",");
    plain.trim_matches(['(', ')']).split('|').next().unwrap().to_owned()
}

#[test]
fn an_answer_from_passages_passes_with_its_sources_and_nothing_made_up() {
    let (project, _) = all();
    let cases = cases(&project, "rag");
    assert!(cases.len() >= 30, "{}", cases.len());
    let replies = |id: &str| -> Vec<String> {
        let case = cases.iter().find(|it| it.id == id).unwrap();
        let sources: Vec<u64> =
            serde_json::from_value(case.prompt_vars["sources"].clone()).unwrap();
        if id.contains("-select-") {
            let chosen = |sources: &[u64]| json!(sources).to_string();
            let more: Vec<u64> = sources.iter().copied().chain([7]).collect();
            return vec![chosen(&sources), chosen(&more), chosen(&sources[1..]), "all".to_owned()];
        }
        let said = |text: &str| format!("<answer>{text}</answer>");
        if id.contains("-absent-") {
            let wrong = ["Theodor Brandt [1]", "unknown", "not in the passages [1]"].map(said);
            return [vec![said("Not in the passages.")], wrong.to_vec()].concat();
        }
        let cited: Vec<String> = sources.iter().map(|it| format!("[{it}]")).collect();
        let (fact, cited) = (fact(case), cited.concat());
        vec![
            said(&format!("It is {fact} {cited}.")),
            said(&fact),
            said(&format!("{fact} {cited}[7]")),
            said(&format!("{fact}, says Theodor Brandt {cited}")),
        ]
    };
    let results = replay(&project, "rag", 4, replies);
    assert_eq!(results.len(), 4 * cases.len());
    for result in &results {
        let expected = if result["repeat"] == 0 { "pass" } else { "fail" };
        let (id, reply) = (&result["case_id"], &result["raw_response"]);
        assert_eq!(result["verdict"], expected, "{id}: {reply}: {}", result["classification"]);
    }
}

#[test]
fn answers_from_passages_are_also_judged() {
    let statement = |verdict: &str| json!({ "statement": "s", "reason": "r", "verdict": verdict });
    let said =
        |name: &str, verdicts: &[Value]| Answer::text(&json!({ name: verdicts }).to_string());
    let passages: Vec<Value> =
        (1..=6).map(|at| json!({ "number": at, "reason": "r", "verdict": "yes" })).collect();
    for (second, recall, code) in [("yes", "rag-recall-whole", 0), ("no", "rag-recall-half", 1)] {
        let statements = [statement("yes"), statement(second)];
        let about_passages = When::prompt_contains("{\"passages\": [");
        let about_statements = When::prompt_contains("{\"statements\": [");
        let script = Script::always(Answer::text("<answer>It takes 25 minutes [1].</answer>"))
            .rule(Rule::new(about_passages, said("passages", &passages)))
            .rule(Rule::new(about_statements, said("statements", &statements)));
        let server = FakeServer::start(script);
        let backend = format!("openai:fake-small@{}/v1", server.url());
        let project = Project::new();
        let shown = project.shown(&["init", "--suite", "rag", "--backend", &backend]);
        assert!(shown.starts_with("exit 0"), "{shown}");
        let cases = format!("rag-ferry-crossing,{recall}");
        let words = ["run", "rag/judged.toml", "--case", &cases, "--porcelain", "-q"];
        let ran = Ran::of(&project.run(&words));
        assert_eq!(ran.code, Some(code), "{}", ran.err);
        for result in stored(&project) {
            assert_eq!(result["verdict"], "pass", "{}: {result}", result["case_id"]);
        }
        let value = if second == "yes" { 1.0 } else { 0.5 };
        let of = |name: &str| {
            let all = stored(&project);
            let scores =
                all.iter().flat_map(|it| it["classification"]["scores"].as_array().unwrap());
            let found = scores.filter(|it| it["name"] == name).map(|it| it["value"].clone());
            found.collect::<Vec<Value>>()
        };
        assert_eq!(of("context-faithfulness"), [json!(value)]);
        assert_eq!(of("answer-relevance"), [json!(value)]);
        assert_eq!(of("context-relevance"), [json!(1.0)]);
    }
}

/// The front matter of a skill.
fn front_matter(path: &Path) -> BTreeMap<String, String> {
    let text = fs::read_to_string(path).unwrap();
    let (head, body) = text.strip_prefix("---\n").unwrap().split_once("\n---\n").unwrap();
    assert!(!body.trim().is_empty(), "{}", path.display());
    let pairs = head.lines().map(|line| line.split_once(": ").unwrap());
    pairs.map(|(key, value)| (key.to_owned(), value.trim().to_owned())).collect()
}

/// The skills of a suite by name.
fn skills(project: &Project, suite: &str) -> BTreeSet<String> {
    let folders = fs::read_dir(project.path(suite).join("skills")).unwrap();
    let skill = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().unwrap();
        let matter = front_matter(&entry.path().join("SKILL.md"));
        assert_eq!(matter["name"], name);
        assert!(matter["description"].len() >= 40, "{name}");
        assert_eq!(matter["license"], "MIT OR Apache-2.0", "{name}");
        name
    };
    folders.map(|entry| skill(entry.unwrap())).collect()
}

#[test]
fn routing_cases_name_skills_that_are_there() {
    let (project, _) = all();
    let skills = skills(&project, "routing");
    assert!(skills.len() >= 30, "{}", skills.len());
    let mut groups: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for case in cases(&project, "routing") {
        let routing = &case.routing;
        for skill in routing.expected_skills.iter().chain(&routing.acceptable_skills) {
            assert!(skills.contains(skill), "{}: {skill}", case.id);
        }
        if let Some(group) = &routing.group {
            groups.entry(group.clone()).or_default().extend(routing.expected_skills.clone());
        } else {
            let decided = routing.is_positive() != routing.expected_skills.is_empty();
            assert!(decided, "{}", case.id);
        }
    }
    assert!(groups.len() >= 4, "{groups:?}");
    assert!(groups.values().all(|group| group.len() >= 2), "{groups:?}");
}

#[test]
fn the_expected_skill_passes_its_own_case_and_a_refusal_passes_no_request_that_has_one() {
    let (project, _) = all();
    let cases = cases(&project, "routing");
    let expected: BTreeMap<&str, Option<&String>> =
        cases.iter().map(|case| (&*case.id, case.routing.expected_skills.first())).collect();
    // The runner says after a slash what the call was for.
    let of_call = |id: &str| expected[id.split('/').next().unwrap()];
    let right = replay(&project, "routing", 1, |id| {
        vec![json!({ "skills": of_call(id).into_iter().collect::<Vec<_>>() }).to_string()]
    });
    assert_eq!(right.len(), cases.len());
    for result in &right {
        assert_eq!(result["verdict"], "pass", "{}", result["case_id"]);
    }
    let refused = replay(&project, "routing", 1, |_| vec![REFUSAL.to_owned()]);
    assert_eq!(refused.len(), cases.len());
    for result in &refused {
        let has_skill = expected[result["case_id"].as_str().unwrap()].is_some();
        assert!(!has_skill || result["verdict"] != "pass", "{}", result["case_id"]);
    }
}

#[test]
fn skill_cases_name_skills_that_are_there() {
    let (project, _) = all();
    let skills = skills(&project, "skills");
    let mut judged = BTreeSet::new();
    for case in cases(&project, "skills") {
        let skill = case.routing.skill.unwrap_or_else(|| panic!("{} is about no skill", case.id));
        assert!(skills.contains(&skill), "{}: {skill}", case.id);
        if !case.rubric.is_empty() {
            judged.insert(skill);
        }
    }
    assert_eq!(judged, skills);
}
