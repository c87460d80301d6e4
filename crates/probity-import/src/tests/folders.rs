//! Imports of several files: which are read, and what the suite says.

use std::fs;

use tempfile::TempDir;

use super::*;
use crate::draft::Setup;

fn project(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn imported(folder: &TempDir, entry: &str) -> Result<Outcome, ImportError> {
    import(&folder.path().join(entry), &Options::default())
}

const EVALS: &str =
    "m.v0:\n  class: evals.elsuite.basic.match:Match\n  args: {samples_jsonl: s.jsonl}\n";

#[test]
fn a_folder_named_evals_is_a_registry_to_evals_alone() {
    let folder = project(&[
        ("evals/promptfooconfig.yaml", "prompts: [file://p.txt]\nproviders: [echo]\ntests: [{}]\n"),
        ("evals/p.txt", "the right one"),
        ("p.txt", "the wrong one"),
        ("evals/qa.csv", "prompt,expected\nq,a\n"),
        ("evals/m.yaml", EVALS),
        ("data/s.jsonl", "{\"input\": \"q\", \"ideal\": \"a\"}\n"),
    ]);
    let root = folder.path().canonicalize().unwrap();
    let config = "evals/promptfooconfig.yaml";
    for name in [config, "evals/qa.csv"] {
        let outcome = imported(&folder, name).unwrap();
        assert_eq!(outcome.suite_folder, root.join("evals"), "{name}");
        assert!(outcome.files.iter().all(|it| it.starts_with(root.join("evals"))), "{outcome:?}");
    }
    let suite = write::render(&imported(&folder, config).unwrap().draft, "").suite;
    assert!(suite.contains("the right one"), "{suite}");
    assert_eq!(foreign(&root.join(config)), Some(Origin::Promptfoo));
    assert_eq!(imported(&folder, "evals/m.yaml").unwrap().suite_folder, root);
}

#[test]
fn files_that_are_included_again_and_again_are_read_once() {
    let mut files: Vec<(String, String)> = (0..12)
        .map(|at| {
            let includes = format!("l{}, ", at + 1).repeat(20);
            (format!("l{at}"), format!("include: [{includes}]\nmetadata: {at}\n"))
        })
        .collect();
    let base = "dataset_path: json\ndataset_kwargs: {data_files: d.jsonl}\ndoc_to_text: q\ndoc_to_target: a\n";
    files.push(("l12".to_owned(), base.to_owned()));
    files.push(("t.yaml".to_owned(), "task: t\ninclude: l0\n".to_owned()));
    files.push(("d.jsonl".to_owned(), "{\"q\": \"1+1\", \"a\": \"2\"}\n".to_owned()));
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (&**name, &**text)).collect();
    let outcome = imported(&project(&files), "t.yaml").unwrap();
    assert_eq!(&*outcome.draft.datasets[0].cases[0].case.prompt, "1+1");
    assert_eq!(outcome.notes.losses(), 0, "{:?}", outcome.notes);
}

/// A task with these filters. The first line of what comes out is how often each question is asked.
fn filtered(filters: &str) -> String {
    let task = format!(
        "task: t\ndataset_path: json\ndataset_kwargs: {{data_files: d.jsonl}}\ndoc_to_text: q\ndoc_to_target: a\n\
         metric_list: [{{metric: exact_match}}]\nrepeats: 64\nfilter_list:\n{filters}"
    );
    let folder = project(&[("t.yaml", &task), ("d.jsonl", "{\"q\": \"1+1\", \"a\": \"2\"}\n")]);
    let Outcome { draft, notes, .. } = imported(&folder, "t.yaml").unwrap();
    let Setup { repeat, min_pass, assertions, .. } = &draft.runners[0].setup;
    let mut shown = format!("{repeat:?} {min_pass:?}\n");
    assertions.iter().for_each(|it| _ = writeln!(shown, "reported: {:?}", it.metric));
    for Note { at, what, lost, .. } in notes.iter().filter(|it| &*it.at.file == "t.yaml") {
        let _ = writeln!(shown, "{}{}: {what}", at.line, if *lost { " lost" } else { "" });
    }
    shown
}

const FIRST: &str = "  - {name: score-first, filter: [{function: take_first}]}\n";
const ALL: &str =
    "  - {name: maj@64, filter: [{function: take_first_k, k: 64}, {function: majority_vote}]}\n";
const SOME: &str =
    "  - {name: maj@8, filter: [{function: take_first_k, k: 8}, {function: majority_vote}]}\n";

#[test]
fn answers_vote_in_the_first_filter_alone() {
    insta::assert_snapshot!(filtered(&format!("{FIRST}{ALL}{SOME}")), @r"
    None None
    10 lost: filter `maj@64`: `majority_vote` has a counterpart only in the first filter
    11 lost: filter `maj@8`: `take_first_k` takes 8 of 64 answers, which has no counterpart
    1: no model is named: the backend `echo` repeats what it is asked
    ");
    insta::assert_snapshot!(filtered(&format!("{ALL}{FIRST}")), @r#"
    Some(64) Some(33)
    reported: Some("exact_match,score-first")
    9: `majority_vote`: more than half of the answers have to be right
    9: there are several filters: the first one, `maj@64`, decides whether a case passes, the others are only reported
    1: no model is named: the backend `echo` repeats what it is asked
    "#);
    insta::assert_snapshot!(filtered(&format!("{SOME}{FIRST}")), @r"
    None None
    9 lost: filter `maj@8`: `take_first_k` takes 8 of 64 answers, which has no counterpart
    1: no model is named: the backend `echo` repeats what it is asked
    ");
    let (one, two) =
        (FIRST.replace("first}", "first_k, k: 1}"), FIRST.replace("first}", "first_k, k: 2}"));
    insta::assert_snapshot!(filtered(&format!("{one}{two}")), @r"
    None None
    10 lost: filter `score-first`: `take_first_k` takes 2 of 64 answers, which has no counterpart
    1: no model is named: the backend `echo` repeats what it is asked
    ");
}

/// The notes and the runners of a suite.
fn runners(folder: &TempDir, entry: &str) -> String {
    let Outcome { draft, notes, .. } = imported(folder, entry).unwrap();
    let mut shown = String::new();
    for Note { at, what, lost, advice, .. } in notes.iter() {
        let _ = writeln!(shown, "{at}{}: {what} ({advice})", if *lost { " lost" } else { "" });
    }
    let suite = write::render(&draft, "").suite;
    shown + &suite[suite.find("\n[[runners]]").unwrap()..]
}

#[test]
fn a_model_is_shown_the_choices() {
    let folder = project(&[(
        "q.jsonl",
        concat!(
            r#"{"input": "Which?", "choices": ["x", "y"], "target": "B"}"#,
            "\n",
            r#"{"input": "Whose?", "target": "mine"}"#,
            "\n",
            r#"{"input": "A: x or B: y?", "choices": ["A", "B"], "target": "B"}"#,
            "\n",
        ),
    )]);
    insta::assert_snapshot!(runners(&folder, "q.jsonl"), @r#"
    q.jsonl:1: choices are listed with letters after the question, and a letter is asked for ()
    q.jsonl:1: no model is named: the backend `echo` repeats what it is asked (describe the model to ask under [backends])

    [[runners]]
    name = "cases"
    dataset = "cases.yaml"
    backends = ["echo"]

    [[runners]]
    name = "choices"
    dataset = "choices-cases.yaml"
    backends = ["echo"]

    [[runners.prompts]]
    name = "choices"
    template = """
    {{ prompt }}
    {% for it in choices %}
    {{ "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[loop.index0] }}. {{ it }}{% endfor %}
    Answer with the letter of the right choice."""
    "#);
}

/// No template of a runner has a place for messages, so the last question has the choices.
#[test]
fn choices_follow_the_last_question_of_a_conversation() {
    let said = r#"{"input": [{"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Ready?"}, {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": "Which {is} it?"}], "choices": ["x", "y"], "target": "B"}"#;
    let folder = project(&[("q.jsonl", &said.replace('\n', " "))]);
    let Outcome { draft, .. } =
        import(&folder.path().join("q.jsonl"), &Options::default()).unwrap();
    let case = &draft.datasets[0].cases[0].case;
    let said: Vec<String> =
        case.ask.messages.iter().map(probity_core::request::Message::joined).collect();
    assert_eq!(said.last().unwrap(), &format!("Which {{is}} it?{}", crate::choices::asked()));
    assert!(said.iter().rev().skip(1).all(|it| !it.contains("choices")), "{said:?}");
}

const ROUTING: &str = concat!(
    r#"{"id":"a-1","user_prompt":"write a test","expected_skills":["tests"],"should_activate":true}"#,
    "\n",
    r#"{"id":"c-1","group":"g","user_prompt":"mock it","expected_skill":"mocks"}"#,
    "\n",
);
const RUBRIC: &str = "skill_name: tests\ntest_prompts: [Test this]\ncriteria: [{name: n, weight: 1, description: d}]\n";

#[test]
fn cases_about_skills_are_asked_with_the_skills() {
    let skill = "---\nname: NAME\ndescription: d\n---\nText.\n";
    let folder = project(&[
        ("routing.jsonl", ROUTING),
        ("rubric.yaml", RUBRIC),
        ("skills/tests/SKILL.md", &skill.replace("NAME", "tests")),
        ("skills/mocks/SKILL.md", &skill.replace("NAME", "mocks")),
    ]);
    insta::assert_snapshot!(runners(&folder, "routing.jsonl"), @r#"
    routing.jsonl:1: the skills are those in `skills` ()
    routing.jsonl:1: no model is named: the backend `echo` repeats what it is asked (describe the model to ask under [backends])

    [[runners]]
    name = "activation"
    dataset = "activation-cases.yaml"
    kind = "activation"
    backends = ["echo"]
    skills = "skills"

    [[runners]]
    name = "confusion"
    dataset = "confusion-cases.yaml"
    kind = "confusion"
    backends = ["echo"]
    skills = "skills"
    "#);
    insta::assert_snapshot!(runners(&folder, "rubric.yaml"), @r#"
    rubric.yaml:1: the skills are those in `skills` ()
    rubric.yaml:1: no model is named: the backend `echo` repeats what it is asked (describe the model to ask under [backends])

    [[runners]]
    name = "cases"
    dataset = "cases.yaml"
    kind = "effectiveness"
    backends = ["echo"]
    skills = "skills"
    "#);
}

#[test]
fn skills_that_cannot_be_used_are_named() {
    let folder = project(&[("rubric.yaml", RUBRIC), ("skills/tests/SKILL.md", "---\na: b\n---\n")]);
    let Err(ImportError::Shape { what, notes }) = imported(&folder, "rubric.yaml") else {
        panic!("the skill has no description")
    };
    assert_eq!(what, "nothing of it can be run");
    let lost: Vec<&str> = notes.iter().filter(|it| it.lost).map(|it| &*it.what).collect();
    insta::assert_snapshot!(lost.join("\n"), @"the tests: field `description` is missing");
}

#[test]
fn cases_about_skills_that_are_elsewhere_say_what_to_write() {
    let folder = project(&[("routing.jsonl", ROUTING), ("rubric.yaml", RUBRIC)]);
    insta::assert_snapshot!(runners(&folder, "routing.jsonl"), @r#"
    routing.jsonl:1 lost: the skills are not here: nothing decides the cases of `activation` (add kind = "activation" and skills = "FOLDER" to the runner)
    routing.jsonl:2 lost: the skills are not here: nothing decides the cases of `confusion` (add kind = "confusion" and skills = "FOLDER" to the runner)
    routing.jsonl:1: no model is named: the backend `echo` repeats what it is asked (describe the model to ask under [backends])

    [[runners]]
    name = "activation"
    dataset = "activation-cases.yaml"
    backends = ["echo"]

    [[runners]]
    name = "confusion"
    dataset = "confusion-cases.yaml"
    backends = ["echo"]
    "#);
    insta::assert_snapshot!(runners(&folder, "rubric.yaml"), @r#"
    rubric.yaml:1 lost: the skills are not here: nothing decides the cases of `cases` (add kind = "effectiveness" and skills = "FOLDER" to the runner)
    rubric.yaml:1: no model is named: the backend `echo` repeats what it is asked (describe the model to ask under [backends])

    [[runners]]
    name = "cases"
    dataset = "cases.yaml"
    backends = ["echo"]
    "#);
}

#[test]
fn any_number_of_examples_can_be_wanted() {
    let task = format!(
        "task: t\ndataset_path: json\ndataset_kwargs: {{data_files: d.jsonl}}\ndoc_to_text: q\ndoc_to_target: a\n\
         num_fewshot: {}\nfewshot_config: {{sampler: first_n, samples: [{{q: x, a: y}}]}}\n",
        u64::MAX
    );
    let folder = project(&[("t.yaml", &task), ("d.jsonl", "{\"q\": \"1+1\", \"a\": \"2\"}\n")]);
    let outcome = imported(&folder, "t.yaml").unwrap();
    let examples = outcome.draft.runners[0].setup.examples.clone().unwrap();
    assert_eq!(examples.count, Some(1));
}

#[test]
fn scripts_that_a_suite_elsewhere_could_not_reach_are_copied_beside_it() {
    let (config, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let text = "prompts: [hi]\nproviders: [echo]\ntests:\n- assert: [{ type: javascript, value: 'file://lib/a.js:f' }]\n";
    fs::write(config.path().join("promptfooconfig.yaml"), text).unwrap();
    fs::create_dir(config.path().join("lib")).unwrap();
    let script = "const { is } = require('./b');\nmodule.exports.f = (output) => is(output);\n";
    fs::write(config.path().join("lib/a.js"), script).unwrap();
    fs::write(config.path().join("lib/b.js"), "exports.is = (it) => it === 'hi';\n").unwrap();
    let options = Options { suite_folder: Some(elsewhere.path()), ..Options::default() };
    let Outcome { draft, notes, .. } = import(config.path(), &options).unwrap();
    assert_eq!(notes.losses(), 0);
    let copies: Vec<&String> = draft.adapters.keys().collect();
    assert_eq!(copies, ["scripts/lib/a.js", "scripts/lib/b.js"]);
    let assertion = &draft.datasets[0].cases[0].case.criteria.assertions[0];
    assert_eq!(assertion.value, Some("file://adapters/scripts/lib/a.js:f".into()));
}

#[test]
fn python_that_a_suite_elsewhere_could_not_reach_is_copied_with_its_modules() {
    let (config, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let text = "prompts: [hi]\nproviders: [echo]\ntests:\n- assert: [{ type: python, value: 'file://lib/a.py:f' }]\n";
    let write = |name: &str, text: &str| fs::write(config.path().join(name), text).unwrap();
    write("promptfooconfig.yaml", text);
    fs::create_dir_all(config.path().join("lib/deep")).unwrap();
    write(
        "lib/a.py",
        "import json, b\nfrom deep import c\n\ndef f(output, context):\n    return b.ok\n",
    );
    write("lib/b.py", "from . import a\nimport os\nok = True\n");
    write("lib/deep/c.py", "from .. import b\n");
    write("lib/unused.py", "");
    let options = Options { suite_folder: Some(elsewhere.path()), ..Options::default() };
    let Outcome { draft, notes, .. } = import(config.path(), &options).unwrap();
    assert_eq!(notes.losses(), 0);
    let copies: Vec<&String> = draft.adapters.keys().collect();
    assert_eq!(copies, ["scripts/lib/a.py", "scripts/lib/b.py", "scripts/lib/deep/c.py"]);
    let assertion = &draft.datasets[0].cases[0].case.criteria.assertions[0];
    assert_eq!(assertion.value, Some("file://adapters/scripts/lib/a.py:f".into()));
}
