//! Tests of promptfoo's configurations: which cases they become, and how these come out.

use serde_json::Value;

use crate::{project::Project, run::stored};

fn imported(files: &[(&str, &str)]) -> Project {
    files.iter().fold(Project::new(), |project, (name, text)| project.file(name, *text))
}

/// Imports and runs `promptfooconfig.yaml`; what each case was asked, and how it came out.
#[track_caller]
fn outcomes(project: &Project) -> Vec<(String, String)> {
    let shown = project.shown(&["import", "promptfooconfig.yaml"]);
    assert!(shown.starts_with("exit 0"), "{shown}");
    let ran = project.shown(&["run"]);
    assert!(ran.contains(": complete"), "{ran}");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut all: Vec<_> =
        stored(project).iter().map(|it| (text(&it["prompt"]), text(&it["verdict"]))).collect();
    all.sort();
    all
}

#[track_caller]
fn check(files: &[(&str, &str)], expected: &[(&str, &str)]) {
    let found = outcomes(&imported(files));
    let found: Vec<_> = found.iter().map(|(asked, verdict)| (&**asked, &**verdict)).collect();
    assert_eq!(found, expected);
}

const HEAD: &str = "providers: [echo]\nprompts: ['Say {{a}}{{b}}']\n";

#[test]
fn lists_of_texts_make_several_cases_and_other_lists_do_not() {
    let tests = "tests:\n  - vars: {a: [x, y], b: [1, 2]}\n    assert: [{type: contains, value: 'Say {{a}}'}]\n\
                 \x20 - vars: {a: [p, q], b: [z]}\n    options: {disableVarExpansion: true}\n    assert: [{type: contains, value: z}]\n";
    let config = format!("{HEAD}{tests}").replace("{{a}}{{b}}", "{{a}} {{ b | join(\"-\") }}");
    check(
        &[("promptfooconfig.yaml", &config)],
        &[("Say p,q z", "pass"), ("Say x 1-2", "pass"), ("Say y 1-2", "pass")],
    );
}

#[test]
fn records_say_what_is_expected() {
    let csv = "a,b,__expected1,__expected2,__config:__expected2:threshold,__prefix,__metadata:kind\n\
               x,1,contains:Say x1,levenshtein(1):Say x,3,,easy\n\
               y,,\"contains-any: q, Say\",,3,Please: ,\n\
               z,,Say z,,3,,\n";
    let config = format!("{HEAD}tests: tests.csv\n");
    check(
        &[("promptfooconfig.yaml", &config), ("tests.csv", csv)],
        &[("Please: Say y", "pass"), ("Say x1", "pass"), ("Say z", "pass")],
    );
}

#[test]
fn defaults_scenarios_and_files_go_together() {
    let config = "providers: [echo]\nprompts: ['{{a}} {{b}} {{c}}{{absent}}']\n\
                  defaultTest: file://default.yaml\ntests: ['tests/*.yaml']\n\
                  scenarios:\n  - config: [{vars: {a: one}}, {vars: {a: two}}]\n    tests: [{vars: {c: of-scenario}}]\n";
    check(
        &[
            ("promptfooconfig.yaml", config),
            (
                "default.yaml",
                "vars: {b: 'from {{a}}'}\nassert: [{type: icontains, value: '{{ a }}'}]\n",
            ),
            (
                "tests/one.yaml",
                "- vars: file://../vars/*.yaml\n- vars: {a: q, b: own, c: file://text.txt}\n  assert: [{type: not-contains, value: line}]\n  options: {disableDefaultAsserts: true}\n",
            ),
            ("vars/one.yaml", "a: p\nc: 2.0\n"),
            ("text.txt", "\n a line \n"),
        ],
        &[
            ("one from one of-scenario", "pass"),
            ("p from p 2", "pass"),
            ("q own a line", "fail"),
            ("two from two of-scenario", "pass"),
        ],
    );
}

#[test]
fn code_that_fails_is_a_failure_as_in_promptfoo() {
    let config = "providers: [echo]\nprompts: ['{{text}}']\ntests:\n\
                  \x20 - vars: {text: no json}\n    assert: [{type: javascript, value: 'JSON.parse(output).a === 1'}]\n\
                  \x20 - vars: {text: '{\"a\": 1}'}\n    assert: [{type: javascript, value: 'JSON.parse(output).a === 1'}, {type: regex, value: 'a(?=\")'}]\n\
                  \x20 - vars: {text: I cannot help with that}\n    assert: [{type: contains, value: help}]\n\
                  \x20 - vars: {text: named}\n    assert: [{type: javascript, value: 'output === \"{{text}}\"', metric: 'of {{text}}'}]\n\
                  \x20 - vars: {text: a file}\n    assert: [{type: javascript, value: file://check.js}, {type: equals, value: file://expected.txt}]\n";
    check(
        &[
            ("promptfooconfig.yaml", config),
            (
                "check.js",
                "module.exports = (output, context) => ({ pass: output === context.vars.text, score: 1 });\n",
            ),
            ("expected.txt", "a file\n"),
        ],
        &[
            ("I cannot help with that", "pass"),
            ("a file", "pass"),
            ("named", "pass"),
            ("no json", "fail"),
            ("{\"a\": 1}", "pass"),
        ],
    );
}

#[test]
fn the_variable_prompt_is_what_is_asked() {
    let config = "providers: [echo]\nprompts: ['{{prompt}}', 'Please: {{ prompt }}']\ntests:\n\
                  \x20 - vars: {prompt: hi}\n    assert: [{type: javascript, value: 'output.endsWith(context.vars.prompt)'}]\n";
    check(&[("promptfooconfig.yaml", config)], &[("Please: hi", "pass"), ("hi", "pass")]);
}

#[test]
fn tests_that_cannot_be_asked_are_never_sent() {
    let config = "providers: [echo]\nprompts: ['{{a}}']\ntests:\n\
                  \x20 - vars: {a: file://none.txt}\n\
                  \x20 - vars: {a: file://doc.pdf}\n\
                  \x20 - vars: {a: first}\n    options: {storeOutputAs: said}\n\
                  \x20 - vars: {a: 'then {{said}}'}\n\
                  \x20 - file://sheet.xlsx\n\
                  \x20 - az://account/x/y.csv\n\
                  \x20 - vars: {a: kept}\n    assert: [{type: gleu, value: x}, {type: trajectory:step-count, value: 1}]\n";
    let project =
        imported(&[("promptfooconfig.yaml", config), ("doc.pdf", "%PDF"), ("sheet.xlsx", "PK")]);
    let shown = project.shown(&["import", "promptfooconfig.yaml", "--lossy"]);
    assert!(shown.starts_with("exit 0"), "{shown}");
    for line in [4, 5, 7, 8, 9, 10, 12] {
        let place = format!("promptfooconfig.yaml:{line}: not carried over:");
        assert!(shown.contains(&place), "{place} {shown}");
    }
    project.shown(&["run"]);
    let asked: Vec<_> = stored(&project).iter().map(|it| it["prompt"].clone()).collect();
    assert_eq!(asked, ["first", "kept"]);
}
