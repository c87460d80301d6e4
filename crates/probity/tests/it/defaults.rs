//! What a runner says for all its cases.

use probity_testkit::{FakeServer, Script};
use serde_json::{Value, json};

use crate::{
    project::Project,
    rescore::check_export,
    run::{run, stored, verdicts},
};

const SUITE: &str = r#"
[backends.b]
kind = "openai"
base_url = "URL"
model = "m-1"
[[runners]]
name = "r"
dataset = "cases.jsonl"
prompt = "{{ greeting }} {{ name }}: {{ prompt }}"
prompt_vars = { greeting = "Hello", name = "you" }
match = "icontains"
EXTRA
"#;

fn project(server: &FakeServer, extra: &str, cases: &[Value]) -> Project {
    let suite = SUITE.replace("URL", &server.url()).replace("EXTRA", extra);
    Project::new().lines("cases.jsonl", cases).file("probity.toml", suite)
}

#[test]
fn cases_take_what_they_do_not_say_and_assertions_are_added() {
    // The fake server answers with the number that it is asked for.
    let server = FakeServer::start(Script::default());
    let cases = [
        json!({ "id": "common", "prompt": "Return the number 7", "expected_response": "7" }),
        json!({ "id": "strict", "prompt": "Return the number 7", "expected_response": "7 or so", "match": "exact" }),
        json!({ "id": "own", "prompt": "Return the number 8", "prompt_vars": { "name": "me" },
                "assert": [{ "type": "contains", "value": "8" }] }),
        json!({ "id": "refused", "prompt": "Return the number 9", "assert": [{ "type": "contains", "value": "9" }] }),
    ];
    let extra = "assert = [{ type = \"not-contains\", value = \"9\" }]";
    let project = project(&server, extra, &cases);
    run(&project, &[]).expect(0, &[("N_CASES", "4")]);
    let expected = [("common", "pass"), ("own", "pass"), ("refused", "fail"), ("strict", "fail")];
    let expected = expected.map(|(id, verdict)| (id.to_owned(), verdict.to_owned()));
    assert_eq!(verdicts(&stored(&project)), expected);
    let asked = |prompt: &str| server.seen().prompt(prompt);
    assert_eq!(asked("Hello you: Return the number 7"), 2);
    assert_eq!(asked("Hello me: Return the number 8"), 1);

    // Whoever judges the same replies again comes to the same.
    check_export(&project);
    assert_eq!(verdicts(&stored(&project)), expected);
}

#[test]
fn what_is_wrong_for_all_cases_is_told_once_where_it_stands() {
    let server = FakeServer::start(Script::default());
    let case = |id: &str| json!({ "id": id, "prompt": "p" });
    let extra = "assert = [\n  { type = \"contains\", value = \"a\" },\n  { type = \"regex\", value = \"(\" },\n]\ntransform = \"(\"";
    let project = project(&server, extra, &[case("a"), case("b")]);
    let shown = project.shown(&["run"]);
    assert_eq!(shown.matches("an assertion of the runner cannot be used").count(), 1, "{shown}");
    assert!(shown.contains("probity.toml:14:3"), "{shown}");
    assert_eq!(shown.matches("`transform` of the runner cannot be used").count(), 1, "{shown}");
    assert_eq!(server.seen().requests, 0);
}

#[test]
fn a_runner_about_skills_has_no_assertions() {
    let suite = "[backends.b]\nkind = \"echo\"\n[[runners]]\nname = \"r\"\nkind = \"activation\"\n\
                 dataset = \"cases.jsonl\"\nskills = \"skills\"\nassert = []\nshuffle_choices = 1\n";
    let shown = Project::new().file("probity.toml", suite).shown(&["run"]);
    assert!(shown.contains("a runner of kind `activation` has no `assert`"), "{shown}");
    assert!(shown.contains("a runner of kind `activation` has no `shuffle_choices`"), "{shown}");
}

#[test]
fn shuffled_choices_are_asked_judged_and_judged_again() {
    let server = FakeServer::start(Script::default());
    // The prompt is the text of the choice whose letter the server answers with.
    let cases: Vec<Value> = (0..20)
        .map(|at| {
            let mut case = json!({ "id": format!("case-{at}"), "prompt": "right",
                    "choices": ["right", "wrong", "true", "untrue"] });
            match at % 3 {
                0 => case["expected_response"] = json!("A"),
                1 => {
                    case["prompt"] = json!("true");
                    case["expected_response"] = json!(["A", "C"]);
                }
                _ => {
                    case["prompt_vars"] = json!({ "key": "A" });
                    case["assert"] = json!([{ "type": "choice", "value": "{{ key }}" }]);
                }
            }
            case
        })
        .collect();
    let project = project(&server, "", &cases);
    let suite = project.read("probity.toml").replace(
        "\"{{ greeting }} {{ name }}: {{ prompt }}\"",
        "'{% for it in choices %}{% if it == prompt %}Return {{ \"ABCD\"[loop.index0] }}{% endif %}{% endfor %}'",
    );
    let seeded =
        |seed: u64| suite.replace("match = \"icontains\"", &format!("shuffle_choices = {seed}"));
    std::fs::write(project.path("probity.toml"), seeded(1)).unwrap();
    run(&project, &[]).expect(0, &[("N_CASES", "20")]);
    let letters: std::collections::BTreeSet<String> =
        stored(&project).iter().map(|it| it["case"]["expected_response"].to_string()).collect();
    assert!(letters.len() > 4, "{letters:?}");
    let before = verdicts(&stored(&project));
    assert!(before.iter().all(|(_, verdict)| verdict == "pass"), "{before:?}");
    // The order of before is that of the replies.
    std::fs::write(project.path("probity.toml"), seeded(2)).unwrap();
    assert!(project.shown(&["rescore"]).contains(": 0 flipped"));
    assert_eq!(verdicts(&stored(&project)), before);
}

#[test]
fn runs_that_differ_in_what_the_runner_adds_are_compared() {
    let server = FakeServer::start(Script::default());
    let case = json!({ "id": "a", "prompt": "Return the number 7", "expected_response": "7" });
    let project = project(&server, "", &[case]);
    let digest = |project: &Project| {
        project.run(&["report", "latest", "-o", "result.json"]);
        let result: Value = serde_json::from_str(&project.read("result.json")).unwrap();
        result["dataset_digest"].as_str().unwrap().to_owned()
    };
    run(&project, &[]).expect(0, &[("N_CASES", "1")]);
    let before = digest(&project);
    let suite = project.read("probity.toml");
    let more = "assert = [{ type = \"not-contains\", value = \"7\" }]\nshuffle_choices = 3\n";
    let project = project.file("probity.toml", suite + more);
    let ran = run(&project, &[]);
    assert!(ran.err.contains("1 newly failing"), "{}", ran.err);
    assert_eq!(digest(&project), before);
    // It is the dataset that was validated, too.
    let validated = project.shown(&["dataset", "validate", "cases.jsonl", "--json"]);
    assert!(validated.contains(&before), "{validated}");
}
