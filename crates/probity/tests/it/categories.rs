//! Categories of any name, from the dataset to every report.

use serde_json::{Value, json};

use crate::{
    project::Project,
    run::{Ran, run, stored},
};

const MIXED: &str = "history, modern";
const MARKUP: &str = "<b>*math*</b> | `x`";

fn suite(gates: &str) -> String {
    format!(
        "[backends.echo]\nkind = \"echo\"\n\
         [[runners]]\nname = \"words\"\ndataset = \"cases.jsonl\"\ngates = {gates}\n"
    )
}

/// Two cases of a category with a comma, one of which fails, one with markup, one that is called
/// like a check of shell commands, and one of none.
fn project(gates: &str) -> Project {
    let case = |id: &str, category: Option<&str>, expected: &str| {
        json!({ "id": id, "prompt": id, "category": category, "expected_response": expected })
            .to_string()
    };
    let cases = [
        case("one", Some(MIXED), "one"),
        case("two", Some(MIXED), "other"),
        case("three", Some(MARKUP), "three"),
        case("four", Some("safety"), "four"),
        case("five", None, "five"),
    ];
    Project::new().file("cases.jsonl", cases.join("\n")).file("probity.toml", suite(gates))
}

fn asked(project: &Project) -> Vec<String> {
    let ids = stored(project).into_iter().map(|case| case["case_id"].as_str().unwrap().to_owned());
    ids.collect()
}

fn json_of(project: &Project, name: &str) -> Value {
    serde_json::from_str(&project.read(name)).unwrap()
}

#[test]
fn a_category_of_any_name_is_in_every_report() {
    let project = project("false");
    let words = ["-o", "r.json", "-o", "r.csv", "-o", "r.html", "-o", "r.junit.xml", "-o", "r.md"];
    let ran = run(&project, &words);
    ran.expect(0, &[("N_CASES", "5")]);
    let lines: Vec<&str> = ran.err.lines().filter(|it| it.starts_with("    ")).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    safety               100.0 %  1 of 1
    <b>*math*</b> | `x`  100.0 %  1 of 1
    history, modern       50.0 %  1 of 2
    ");
    let result = json_of(&project, "r.json");
    assert_eq!(result["per_category"][MIXED]["total"], 2);
    assert_eq!(result["per_category"][MIXED]["rate"], json!(0.5));
    assert_eq!(result["per_category"]["safety"]["passed"], 1);
    assert_eq!(result["safety_accuracy"], Value::Null);
    assert!(project.read("r.csv").contains(",\"history, modern\","));
    let page = project.read("r.html");
    assert!(page.contains("href=\"#category=history%2C%20modern\""));
    assert!(!page.contains("<b>*math*"));
    let report = project.run(&["check", "evaluation", "r.json"]);
    assert!(report.status.success(), "{}", String::from_utf8_lossy(&report.stderr));
}

#[test]
fn an_ordinary_case_may_be_called_like_a_check_of_commands() {
    let project = project("false");
    run(&project, &[]).expect(0, &[]);
    let four = stored(&project).into_iter().find(|case| case["case_id"] == "four").unwrap();
    assert_eq!((&four["verdict"], &four["case"]["category"]), (&json!("pass"), &json!("safety")));
    assert_eq!(four["classification"]["details"]["command"], Value::Null);
}

#[test]
fn cases_are_chosen_by_a_category_of_any_name() {
    let project = project("false");
    run(&project, &["--category", r"history\, modern"]).expect(0, &[("N_CASES", "2")]);
    assert_eq!(asked(&project), ["one", "two"]);
    let words = ["--category", "safety,<b>*math*</b> | `x`"];
    run(&project, &words).expect(0, &[("N_CASES", "2")]);
    assert_eq!(asked(&project), ["four", "three"]);
    let ran = run(&project, &["--category", "history, modern"]);
    ran.expect(2, &[("TOTAL_CALLS", "0")]);
    assert!(ran.err.contains("modern` matches no case"), "{}", ran.err);
}

#[test]
fn a_gate_looks_at_a_category_of_any_name() {
    let gate =
        |category: &str| format!("{{ pass_rate = {{ min = 0.6, category = {category:?} }} }}");
    let failing = run(&project(&gate(MIXED)), &[]);
    failing.expect(1, &[]);
    let told = "FAIL history, modern pass_rate at least 60 %: 50.0 % (1 of 2)";
    assert!(failing.err.contains(told), "{}", failing.err);
    run(&project(&gate(MARKUP)), &[]).expect(0, &[]);
    run(&project("{ safety = 1 }"), &[]).expect(0, &[]);
}

#[test]
fn a_gate_on_a_category_that_no_case_has_is_refused_before_anything_is_asked() {
    let gate = "{ pass_rate = { min = 0.6, category = \"history, modem\" } }";
    let project = project(gate);
    let Ran { code, err, .. } = run(&project, &[]);
    assert_eq!(code, Some(2), "{err}");
    insta::assert_snapshot!(err, @r"
    error[unknown-category]: runner `words` has a gate on `pass_rate`, but no case has the category `history, modem`
    --> cases.jsonl
     = help: did you mean `history, modern`?

    error: a dataset has errors, so nothing was run
    ");
    let project =
        project.file("probity.toml", suite(&gate.replace(" } }", ", allow_empty = true } }")));
    run(&project, &[]).expect(0, &[]);
}

#[test]
fn runs_are_compared_by_category() {
    let project = project("false");
    run(&project, &[]).expect(0, &[]);
    let runs = project.run(&["runs", "--json"]);
    let first: Value = serde_json::from_slice(&runs.stdout).unwrap();
    let first = first["run_id"].as_str().unwrap().to_owned();
    let better = project.read("cases.jsonl").replace("\"other\"", "\"two\"");
    let project = project.file("cases.jsonl", better);
    run(&project, &[]).expect(0, &[]);
    let shown = project.shown(&["compare", &first, "latest", "--force"]);
    assert!(shown.contains("    history, modern     1 to 2 of 2 (+50.0 points)\n"), "{shown}");
    assert!(shown.contains("    safety              1 to 1 of 1 (+0.0 points)\n"), "{shown}");
    assert!(shown.contains("different datasets: the cases that both have are compared"), "{shown}");
}
