//! `probity import` of lm-eval's tasks, OpenAI's evals, DeepEval's goldens and records of questions. The suite
//! that comes out is run on the backend `echo`, which repeats what it is asked.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    project::Project,
    run::{run, stored},
};

/// What each case is asked in an imported suite, and whether it passes there.
fn outcomes(project: &Project) -> BTreeMap<String, (String, bool)> {
    run(project, &["out/probity.toml"]);
    let outcome = |it: &Value| {
        let id = it["case_id"].as_str().unwrap_or_default().to_owned();
        let asked = it["raw_response"].as_str().unwrap_or_default().to_owned();
        (id, (asked, it["verdict"] == "pass"))
    };
    stored(project).iter().map(outcome).collect()
}

#[track_caller]
fn check(outcomes: &BTreeMap<String, (String, bool)>, id: &str, asked: &str, passed: bool) {
    let (said, did_pass) = outcomes.get(id).unwrap_or_else(|| panic!("{id}: {outcomes:?}"));
    assert_eq!((said.as_str(), *did_pass), (asked, passed), "{id}");
}

const TASK: &str = r#"include: base_yaml
task: sums
num_fewshot: 1
fewshot_split: train
fewshot_config: { sampler: first_n }
description: "Add."
filter_list:
  - name: strict
    filter:
      - { function: regex, regex_pattern: "(?<=#### )(-?[0-9.,]+)" }
      - { function: take_first }
  - name: flexible
    filter:
      - { function: regex, regex_pattern: "(-?[0-9]+)", group_select: -1 }
metadata: { version: 1.0 }
"#;
const BASE: &str = r#"dataset_path: json
dataset_kwargs:
  data_files: { train: data/train.jsonl, test: data/test.jsonl }
output_type: generate_until
test_split: test
doc_to_text: "Q: {{question.strip()}}\nA:"
doc_to_target: "{{answer.split('#### ')[-1]}}"
generation_kwargs: { until: ["Q:"], do_sample: false, max_gen_toks: 64 }
metric_list:
  - { metric: exact_match, aggregation: mean, ignore_case: true, regexes_to_ignore: [",", "\\$"] }
"#;

#[test]
fn a_task_of_lm_eval_is_asked_and_scored_as_there() {
    let project = Project::new()
        .file("tasks/sums.yaml", TASK)
        .file("tasks/base_yaml", BASE)
        .file("tasks/data/train.jsonl", "{\"question\": \"1+1\", \"answer\": \"so #### 2\"}\n")
        .file(
            "tasks/data/test.jsonl",
            "{\"question\": \" {{x}} is #### 1,000 \", \"answer\": \"#### $1000\"}\n\
             {\"question\": \"#### 3\", \"answer\": \"#### 4\"}\n",
        );
    let shown = project.shown(&["import", "tasks/sums.yaml", "--force"]);
    assert!(shown.starts_with("exit 0"), "{shown}");
    assert_eq!(project.read("tasks/sums.yaml"), TASK);
    let shown = project.shown(&["import", "tasks/sums.yaml", "-o", "out"]);
    assert!(shown.starts_with("exit 0"), "{shown}");
    let suite = project.read("out/probity.toml");
    for line in [
        "examples = \"sums-examples.yaml\"",
        "examples_k = 1",
        "system = \"Add.\"",
        "match = \"exact\"",
        "normalize = [\"case\"]",
    ] {
        assert!(suite.contains(line), "{line}\n{suite}");
    }
    assert!(suite.contains("max_tokens = 64") && suite.contains("stop = [\"Q:\"]"), "{suite}");
    let outcomes = outcomes(&project);
    check(&outcomes, "0", "Q: 1+1\nA: 2\n\nQ: {{x}} is #### 1,000\nA:", true);
    check(&outcomes, "1", "Q: 1+1\nA: 2\n\nQ: #### 3\nA:", false);
}

const CHOICE: &str = r#"task: capitals
dataset_path: someone/capitals
output_type: multiple_choice
test_split: test
doc_to_text: "Question: {{question}}\nAnswer:"
doc_to_choice: "{{choices.text}}"
doc_to_target: "{{choices.label.index(key)}}"
metric_list:
  - metric: acc
"#;

#[test]
fn documents_that_are_elsewhere_are_named_and_can_be_given() {
    let row = "{\"question\": \"France?\", \"choices\": {\"text\": [\"Rome\", \"Paris's\"], \"label\": [\"A\", \
               \"B\"]}, \"key\": \"B\"}\n";
    let project = Project::new().file("t/capitals.yaml", CHOICE).file("elsewhere/some.jsonl", row);
    let shown = project.shown(&["import", "t/capitals.yaml", "-o", "out"]);
    assert!(shown.starts_with("exit 2"), "{shown}");
    assert!(
        shown.contains("capitals.yaml:2: not carried over: the documents of task `capitals`"),
        "{shown}"
    );
    assert!(shown.contains("load('someone/capitals', split='test')"), "{shown}");
    let shown = project.shown(&["import", "t", "--documents", "elsewhere/some.jsonl", "-o", "out"]);
    assert!(shown.starts_with("exit 0"), "{shown}");
    assert!(shown.contains("the numbers are others than lm-eval's"), "{shown}");
    let outcomes = outcomes(&project);
    let asked = "Question: France?\nAnswer:\n\nA. Rome\nB. Paris's\nAnswer with the letter of the right choice.";
    check(&outcomes, "0", asked, false);
}

#[test]
fn python_is_named_and_never_run() {
    let task = "task: t\ndataset_path: json\ntest_split: test\ndoc_to_text: !function utils.text\n\
                doc_to_target: answer\nprocess_results: !function utils.score\n\
                dataset_kwargs: {data_files: {test: d.jsonl}}\n";
    let project = Project::new().file("t.yaml", task).file("utils.py", "open('ran', 'w')\n").file(
        "d.jsonl",
        "{\"answer\": \"1\", \"doc_to_text\": \"made by Python\"}\n{\"answer\": \"2\"}\n",
    );
    let shown = project.shown(&["import", "t.yaml", "-o", "out"]);
    assert!(shown.starts_with("exit 1"), "{shown}");
    assert!(
        shown.contains(
            "t.yaml:6: not carried over: `process_results` is the Python function `utils.score`"
        ),
        "{shown}"
    );
    assert!(
        shown.contains(
            "d.jsonl:2: not carried over: a document of task `t`: `doc_to_text` is the function"
        ),
        "{shown}"
    );
    assert!(!project.path("ran").exists());
    assert!(project.read("out/t-cases.yaml").contains("made by Python"));
}

const EVALS: &str = r"starts:
  id: starts.v0
starts.v0:
  class: evals.elsuite.basic.match:Match
  args: { samples_jsonl: s/starts.jsonl, few_shot_jsonl: s/shots.jsonl, num_few_shot: 1 }
has.v0:
  class: evals.elsuite.basic.includes:Includes
  args: { samples_jsonl: s/has.jsonl, ignore_case: true }
fuzzy.v0:
  class: evals.elsuite.basic.fuzzy_match:FuzzyMatch
  args: { samples_jsonl: s/fuzzy.jsonl }
json.v0:
  class: evals.elsuite.basic.json_match:JsonMatch
  args: { samples_jsonl: s/json.jsonl }
funny.v0:
  class: evals.elsuite.modelgraded.classify:ModelBasedClassify
  args: { samples_jsonl: s/has.jsonl, eval_type: cot_classify, modelgraded_spec: funny }
game.v0:
  class: evals.elsuite.game.eval:Game
  args: { samples_jsonl: s/has.jsonl }
";
const GRADED: &str = "funny:\n  prompt: |-\n    Funny?\n    {completion}\n    Not {ideal}.\n  choice_strings: \
                      \"12345\"\n  choice_scores: from_strings\n  input_outputs: { input: completion }\n";

#[test]
fn evals_of_openai_become_runners() {
    let project = Project::new()
        .file("registry/evals/mine.yaml", EVALS)
        .file("registry/modelgraded/funny.yaml", GRADED)
        .file(
            "registry/data/s/starts.jsonl",
            "{\"input\": [{\"role\": \"user\", \"content\": \"x\"}], \"ideal\": [\"y\", \"[\"]}\n",
        )
        .file(
            "registry/data/s/shots.jsonl",
            "{\"sample\": [{\"role\": \"system\", \"name\": \"example_user\", \"content\": \"q\"}, \
             {\"role\": \"system\", \"name\": \"example_assistant\", \"content\": \"a\"}]}\n",
        )
        .file("registry/data/s/has.jsonl", "{\"input\": \"Say PARIS\", \"ideal\": \"paris\"}\n")
        .file(
            "registry/data/s/fuzzy.jsonl",
            "{\"input\": \"The  cat.\", \"ideal\": [\"a big cat sat\", \"dog\"]}\n\
             {\"input\": \"cow\", \"ideal\": \"dog\"}\n",
        )
        .file(
            "registry/data/s/json.jsonl",
            "{\"input\": \"{\\\"a\\\": 1}\", \"ideal\": [\"[2]\", \"{\\\"a\\\": 1.0}\"]}\n",
        );
    let shown = project.shown(&["import", "registry/evals/mine.yaml", "-o", "out"]);
    assert!(shown.starts_with("exit 1"), "{shown}");
    assert!(
        shown.contains("mine.yaml:18: not carried over: eval `game.v0` is the class"),
        "{shown}"
    );
    assert!(shown.contains("1 thing not carried over"), "{shown}");
    let suite = project.read("out/probity.toml");
    assert!(suite.contains("Funny?\n{{ output }}\nNot {{ ideal }}."), "{suite}");
    assert!(suite.contains("\"3\" is 0.5"), "{suite}");
    run(&project, &["out/probity.toml", "starts.v0", "has.v0", "fuzzy.v0", "json.v0"]);
    let passed: Vec<(String, bool)> = stored(&project)
        .iter()
        .map(|it| (it["raw_response"].to_string(), it["verdict"] == "pass"))
        .collect();
    let said = |text: &str| {
        passed
            .iter()
            .find(|it| it.0.contains(text))
            .unwrap_or_else(|| panic!("{text}: {passed:?}"))
            .1
    };
    assert!(said("PARIS") && said("cat") && said("1}"), "{passed:?}");
    assert!(!said("cow") && !said("\"x\""), "{passed:?}");
}

#[test]
fn goldens_and_records_are_found_by_what_is_in_them() {
    let golden = r#"[{"input": "Refund?", "expectedOutput": "30 days", "retrievalContext": ["a", "b"],
        "expected_tools": [{"name": "find", "input_parameters": {"id": 1}}], "actual_output": "x"},
        {"scenario": "A customer wants {{money}} back.", "expected_outcome": "It is refunded.",
         "turns": [{"role": "user", "content": "Hi"}]}]"#;
    let chat = "{\"messages\": [{\"role\": \"system\", \"content\": \"s\"}, {\"role\": \"user\", \"content\": \"q\"}, \
                {\"role\": \"assistant\", \"content\": \"a\"}]}\n";
    let sample = "[{\"input\": \"Which?\", \"choices\": [\"x\", \"y\"], \"target\": \"B\", \"id\": 7, \
                  \"metadata\": {\"level\": 2}, \"files\": {\"a\": \"b\"}}, \
                  {\"input\": [{\"role\": \"user\", \"content\": \"Hi\"}, {\"role\": \"assistant\", \"content\": \"?\"}, \
                  {\"role\": \"user\", \"content\": \"Who?\"}], \"choices\": [\"p\", \"q\"], \"target\": \"A\"}]";
    let project = Project::new()
        .file("goldens.json", golden)
        .file("chat.jsonl", chat)
        .file("inspect.json", sample);
    let imported = |name: &str, exit: i32, from: &str| {
        let shown = project.shown(&["import", name, "-o", name.split('.').next().unwrap()]);
        assert!(shown.starts_with(&format!("exit {exit}")), "{shown}");
        assert!(shown.contains(&format!("from {from}:")), "{shown}");
        project.read(&format!("{}/cases.yaml", name.split('.').next().unwrap()))
    };
    let goldens = imported("goldens.json", 0, "deepeval");
    for part in [
        "factuality",
        "30 days",
        "tool-called",
        "arguments",
        "You are the user in this scenario",
        "{% raw %}",
    ] {
        assert!(goldens.contains(part), "{part}\n{goldens}");
    }
    let chat = imported("chat.jsonl", 0, "plain");
    assert!(chat.contains("system: \"s\"") && chat.contains("expected_response: \"a\""), "{chat}");
    imported("inspect.json", 1, "plain");
    let sample = project.read("inspect/choices-cases.yaml");
    assert!(sample.contains("choices:") && sample.contains("level"), "{sample}");
    project.shown(&["run", "inspect/probity.toml", "--dry-run", "--requests", "requests.jsonl"]);
    let requests = project.read("requests.jsonl");
    for asked in ["Which?\\n\\nA. x\\nB. y\\nAnswer with", "Who?\\n\\nA. p\\nB. q\\nAnswer with"] {
        assert!(requests.contains(asked), "{asked}\n{requests}");
    }
}
