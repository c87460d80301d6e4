//! Examples that cases are asked with.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    project::Project,
    run::{run, stored},
};

const TRAIN: &str = r#"{"id": "t1", "prompt": "1 + 1?", "expected_response": "2"}
{"id": "t2", "prompt": "{{ a }} + {{ b }}?", "prompt_vars": {"a": 2, "b": 2}, "expected_response": ["4", "four"]}
{"id": "t3", "prompt": "3 + 3?", "expected_response": 6}
{"id": "t4", "prompt": "4 + 4?", "expected_response": "8"}
"#;
const TEST: &str = r#"{"id": "new", "prompt": "5 + 5?", "expected_response": "10"}
{"id": "t1", "prompt": "6 + 6?", "expected_response": "12"}
{"id": "same", "prompt": "2 + {{ n }}?", "prompt_vars": {"n": 2}, "expected_response": "4"}
"#;

fn project(runner: &str) -> Project {
    let suite = format!(
        "[backends.echo]\nkind = \"echo\"\n[[runners]]\nname = \"r\"\ndataset = \"test.jsonl\"\n{runner}\n"
    );
    Project::new().file("probity.toml", suite).file("train.jsonl", TRAIN).file("test.jsonl", TEST)
}

/// What each case is asked, as `role: text`, by case and variant.
fn asked(project: &Project, words: &[&str]) -> Vec<(String, Vec<String>)> {
    let dry = ["run", "--dry-run", "--requests", "requests.jsonl"];
    let shown = project.shown(&[&dry[..], words].concat());
    assert!(shown.starts_with("exit 0"), "{shown}");
    let lines = project.read("requests.jsonl");
    let line = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        let variant = line["variant"].as_str().unwrap_or_default();
        let said = |it: &Value| {
            format!("{}: {}", it["role"].as_str().unwrap(), it["content"].as_str().unwrap())
        };
        let said = match line["messages"].as_array() {
            Some(messages) => messages.iter().map(said).collect(),
            None => vec![format!("user: {}", line["prompt"].as_str().unwrap())],
        };
        (format!("{variant}{}", line["case_id"].as_str().unwrap()), said)
    };
    lines.lines().map(line).collect()
}

#[track_caller]
fn check(asked: &[(String, Vec<String>)], id: &str, expected: &[&str]) {
    let (_, said) = asked.iter().find(|it| it.0 == id).unwrap();
    assert_eq!(said, expected, "{id}");
}

#[test]
fn examples_are_not_judged_so_that_assertions_of_the_runner_ask_nothing_of_them() {
    let project = project(
        "examples = \"train.jsonl\"\nexamples_k = 1\nprompt = \"{{ hint }} {{ prompt }}\"\n\
         prompt_vars = { hint = \"Add:\" }\nassert = [{ type = \"contains\", value = \"{{ sum }}\" }]",
    );
    let case = r#"{"id": "a", "prompt": "5 + 5?", "prompt_vars": {"sum": "10"}}"#;
    let asked = asked(&project.file("test.jsonl", case), &[]);
    check(&asked, "a", &["user: Add: 1 + 1?", "assistant: 2", "user: Add: 5 + 5?"]);
}

#[test]
fn examples_are_a_conversation_before_the_prompt_and_never_the_case_itself() {
    let project = project(
        "examples = \"train.jsonl\"\nexamples_k = 2\nprompt = \"Q: {{ prompt }}\"\nsystem = \"Add\"",
    );
    let asked = asked(&project, &[]);
    let first = ["user: Q: 1 + 1?", "assistant: 2"];
    let second = ["user: Q: 2 + 2?", "assistant: 4"];
    let third = ["user: Q: 3 + 3?", "assistant: 6"];
    let of = |pairs: [[&'static str; 2]; 2], last: &'static str| {
        [&["system: Add"][..], &pairs.concat(), &[last]].concat()
    };
    check(&asked, "new", &of([first, second], "user: Q: 5 + 5?"));
    check(&asked, "t1", &of([second, third], "user: Q: 6 + 6?"));
    check(&asked, "same", &of([first, third], "user: Q: 2 + 2?"));
    run(&project, &[]).expect(0, &[("N_CASES", "3")]);
    assert_eq!(stored(&project)[0]["raw_response"], "Q: 5 + 5?");
}

#[test]
fn templates_messages_and_functions_have_a_place_for_examples() {
    let runner = r#"
examples = "train.jsonl"
examples_k = 1
[[runners.prompts]]
name = "none-"
template = "{{ prompt }}"
examples_k = 0
[[runners.prompts]]
name = "text-"
template = "{% for it in examples %}{{ it.prompt }} {{ it.answer }} {{ it.id }}, {% endfor %}{{ prompt }}"
examples_k = 2
[[runners.prompts]]
name = "chat-"
messages = [
  { role = "user", content = "Hello" },
  { role = "assistant", content = "Hi" },
  { role = "user", content = "Now {{ prompt }}" },
]
[[runners.prompts]]
name = "code-"
file = "prompt.py:make"
examples = "other.jsonl"
"#;
    let project = project(runner)
        .file("other.jsonl", "{\"prompt\": \"x?\", \"prompt_vars\": {\"n\": 7}, \"expected_command\": \"ls\", \"category\": \"correctness\", \"safe\": true, \"posix_compliant\": true}\n")
        .file("prompt.py", "def make(context):\n    it = context['vars']['examples'][0]\n    return '%s %s %d' % (it['prompt'], it['answer'], it['vars']['n'])\n");
    let asked = asked(&project, &[]);
    check(&asked, "none-new", &["user: 5 + 5?"]);
    check(&asked, "text-new", &["user: 1 + 1? 2 t1, 2 + 2? 4 t2, 5 + 5?"]);
    let before = ["user: Hello", "assistant: Hi", "user: Now 1 + 1?", "assistant: 2"];
    check(&asked, "chat-new", &[&before[..], &["user: Now 5 + 5?"]].concat());
    check(&asked, "code-new", &["user: x? ls 7"]);
}

#[test]
fn a_seed_draws_the_same_examples_whatever_else_is_run() {
    let with = |seed: u32| {
        project(&format!("examples = \"train.jsonl\"\nexamples_k = 2\nexamples_seed = {seed}"))
    };
    let all: Vec<_> = (0..20).map(|seed| asked(&with(seed), &[])).collect();
    let draws: BTreeSet<_> = all.iter().map(|it| &it[0].1).collect();
    assert!(draws.len() > 3, "{draws:?}");
    for (id, said) in all.iter().flatten() {
        assert_eq!(said.len(), 5, "{id}: {said:?}");
        let own = if id == "same" { "user: 2 + 2?" } else { "user: 1 + 1?" };
        let others = &said[..4];
        assert!(id == "new" || !others.contains(&own.to_owned()), "{id}: {said:?}");
    }
    let same = all[1].iter().filter(|it| it.0 == "same").cloned().collect::<Vec<_>>();
    assert_eq!(asked(&with(1), &["--case", "same"]), same);
}

#[test]
fn answers_belong_to_the_examples_that_were_sent() {
    let project = project("examples = \"train.jsonl\"\nexamples_k = 1");
    run(&project, &["--cache"]).expect(0, &[("TOTAL_CALLS", "3")]);
    run(&project, &["--cache"]).expect(0, &[("TOTAL_CALLS", "0")]);
    // The second example stands in one of three requests.
    let project = project.file("train.jsonl", TRAIN.replace("[\"4\", \"four\"]", "\"vier\""));
    run(&project, &["--cache"]).expect(0, &[("TOTAL_CALLS", "1")]);
}

#[test]
fn what_is_wrong_with_examples_is_told_before_the_first_call() {
    let told = |runner: &str, train: &str| {
        let shown = project(runner).file("train.jsonl", train).shown(&["run"]);
        assert!(shown.starts_with("exit 2"), "{shown}");
        shown
    };
    let usual = "examples = \"train.jsonl\"";
    for (runner, train, expected) in [
        (usual, "{\"id\": \"a\", \"prompt\": \"p\"}\n", "train.jsonl:1"),
        (usual, "{\"id\": \"a\", \"prompt\": \"p\"}\n", "an example needs its answer"),
        (
            usual,
            "{\"id\": \"a\", \"messages\": [{\"role\": \"user\", \"content\": \"p\"}], \"expected_response\": \"x\"}\n",
            "and no conversation",
        ),
        (
            usual,
            "{\"id\": \"a\", \"prompt\": \"{{ x }}\", \"expected_response\": \"x\"}\n",
            "`x` has no value",
        ),
        ("examples = \"none.jsonl\"", TRAIN, "none.jsonl"),
        (
            "examples = \"train.jsonl\"\nexamples_k = 5",
            TRAIN,
            "`examples_k` is 5, and it has 4 cases",
        ),
        (
            usual,
            "{\"prompt_vars\": {\"n\": 1}, \"expected_response\": \"x\"}\n",
            "and no template asks",
        ),
        ("examples_k = 5", TRAIN, "`examples_k` needs `examples`"),
        (
            "examples = \"train.jsonl\"\nprompt = \"{{ prompt }} {{ n }}\"\nprompt_vars = { }",
            TRAIN,
            "`n` has no value",
        ),
        (
            "kind = \"activation\"\nskills = \"s\"\nexamples = \"train.jsonl\"",
            TRAIN,
            "a runner of kind `activation` has no `examples`",
        ),
    ] {
        let shown = told(runner, train);
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    let program = project(usual).file(
        "probity.toml",
        "[backends.p]\nkind = \"command\"\ncommand = [\"cat\"]\n[[runners]]\nname = \"r\"\ndataset = \"test.jsonl\"\nexamples = \"train.jsonl\"\n",
    );
    let shown = program.shown(&["run"]);
    assert!(shown.contains("a conversation"), "{shown}");
}
