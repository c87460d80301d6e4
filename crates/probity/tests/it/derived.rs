//! Figures that a suite derives from others: where they are shown, and that they stay the same.

use serde_json::Value;

use crate::{project::Project, run::run};

const CASES: &str = r#"
{"id": "a", "prompt": "apple", "assert": [{"type": "contains", "value": "apple", "metric": "tp"}, {"type": "javascript", "value": "output.length", "metric": "length", "weight": 0}]}
{"id": "b", "prompt": "bean", "assert": [{"type": "contains", "value": "apple", "metric": "tp", "weight": 0}, {"type": "javascript", "value": "output.length", "metric": "length"}]}
"#;

fn project(derived: &str, gates: &str) -> Project {
    let suite = format!(
        "[backends.echo]\nkind = \"echo\"\n[derived]\n{derived}\n\
         [[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\ngates = {gates}\n"
    );
    Project::new().file("cases.jsonl", CASES.trim()).file("probity.toml", suite)
}

fn result(project: &Project, file: &str) -> Value {
    let written: Value = serde_json::from_str(&project.read(file)).unwrap();
    written.get("runners").map_or(&written, |it| &it[0]).clone()
}

const DERIVED: &str = "share = \"sum.tp / results\"\nmean_length = \"sum.length / count.length\"\n\
                       both = \"derived.share * 2 + pass_rate\"\nnone = \"1 / (sum.tp - 1)\"";

#[test]
fn derived_figures_are_shown_and_can_be_gates() {
    let project =
        project(DERIVED, "{ \"derived.mean_length\" = { max = 4.5 }, \"derived.both\" = 2 }");
    let files = ["r.json", "r.md", "r.html", "suite_summary.json"];
    let ran = run(&project, &files.map(|file| ["-o", file]).concat());
    ran.expect(0, &[]);
    for line in ["derived share       0.5", "derived mean_length 4.5", "derived both        2"] {
        assert!(ran.err.contains(line), "{}", ran.err);
    }
    assert!(ran.err.contains("derived none        n/a: it divides by 0"), "{}", ran.err);
    let derived = &result(&project, "r.json")["derived"];
    assert_eq!((&derived["mean_length"], &derived["none"]), (&4.5.into(), &Value::Null));
    for file in files {
        assert!(project.read(file).contains("mean_length"), "{file}");
    }
    let stricter = project.read("probity.toml").replace("max = 4.5", "max = 4.4");
    let failing = project.file("probity.toml", stricter);
    let again = run(&failing, &[]);
    again.expect(1, &[]);
    assert!(again.err.contains("derived.mean_length at most 4.4: 4.5"), "{}", again.err);
}

#[test]
fn what_is_judged_again_or_compared_has_the_same_figures() {
    let project = project(DERIVED, "false");
    run(&project, &["-o", "first.json"]).expect(0, &[]);
    let rescored = project.run(&["rescore", "latest", "-o", "second.json"]);
    assert!(rescored.status.success(), "{}", String::from_utf8_lossy(&rescored.stderr));
    let of = |file| result(&project, file)["derived"].clone();
    assert_eq!(of("first.json"), of("second.json"));
    // Other criteria make other figures, of the same replies.
    let project = project
        .file("cases.jsonl", CASES.trim().replace("\"value\": \"apple\"", "\"value\": \"a\""));
    project.run(&["rescore", "latest", "-o", "third.json"]);
    assert_eq!(result(&project, "third.json")["derived"]["share"], 1.0);
    let runs = String::from_utf8(project.run(&["runs", "--json"]).stdout).unwrap();
    let ids: Vec<Value> = runs.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    let id = |at: usize| ids[at]["run_id"].as_str().unwrap();
    let compared = project.run(&["compare", id(1), id(0), "--force"]);
    let text = String::from_utf8(compared.stdout).unwrap();
    assert!(text.contains("derived share: 0.5 to 1 (+0.5)"), "{text}");
    let compared = project.run(&["compare", id(1), id(0), "--force", "--format", "json"]);
    let sides: Value = serde_json::from_slice(&compared.stdout).unwrap();
    assert_eq!(sides["sides"][1]["derived"]["share"], 1.0, "{sides:#}");
}

#[test]
fn what_cannot_be_derived_is_refused_with_its_place() {
    for (derived, message) in [
        ("x = \"sum.\"", "a name is missing behind `sum.`"),
        ("x = \"derived.y\"\ny = \"1\"", "`x` needs `derived.y`, which is not before it"),
        ("x = \"tp * 2\"", "there is no figure `tp`; a named score is `sum.tp` or `score.tp`"),
        ("x = [1]", "`x` must be an expression, not a list"),
    ] {
        let ran = run(&project(derived, "false"), &[]);
        ran.expect(2, &[]);
        assert!(ran.err.contains(message), "{}", ran.err);
    }
    let ran = run(&project("x = \"1\"", "{ \"derived.z\" = 1 }"), &[]);
    ran.expect(2, &[]);
    assert!(ran.err.contains("the runner has no derived figure `z`"), "{}", ran.err);
}

#[test]
fn derived_metrics_of_promptfoo_are_computed() {
    let config = r"
prompts: ['{{q}}']
providers: [echo]
derivedMetrics:
  - { name: average, value: err / __count }
  - { name: weighed, value: w / __count }
  - { name: later, value: average + 1 }
tests:
  - vars: { q: a b }
    assert:
      - { type: javascript, value: output.length, metric: err }
      - { type: contains, value: a, metric: w, weight: 3 }
      - { type: contains, value: zz, metric: w, weight: 1 }
  - vars: { q: c }
    assert:
      - { type: javascript, value: output.length, metric: err }
      - { type: contains, value: c, metric: w, weight: 2 }
";
    let project = Project::new().file("promptfooconfig.yaml", config);
    let ran = project.run(&["run", "promptfooconfig.yaml", "-o", "r.json"]);
    let derived = result(&project, "r.json")["derived"].clone();
    let expected = serde_json::json!({ "average": 2.0, "later": 3.0, "weighed": 2.5 });
    assert_eq!(derived, expected, "{}", String::from_utf8_lossy(&ran.stderr));
}
