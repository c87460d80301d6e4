//! Files of the other tools, damaged: nothing panics, hangs, or reads outside the folder.

use std::{
    fs,
    time::{Duration, Instant},
};

use proptest::prelude::*;

use super::{change, changed};
use crate::{ImportError, Options, Origin, import};

const TASK: &str = r#"include: base_yaml
task: sums
num_fewshot: 2
fewshot_config:
  sampler: first_n
  samples:
    - {q: "1 + 1", a: "2", choices: {text: [x, y], label: [A, B]}}
filter_list:
  - name: strict
    filter:
      - {function: regex, regex_pattern: "(?<=#### )(\\-?[0-9]+)", group_select: -1}
      - {function: take_first}
metric_list:
  - {metric: exact_match, ignore_case: true, regexes_to_ignore: [","]}
  - metric: !function utils.f
generation_kwargs: {until: ["\n\n"], max_gen_toks: 64, temperature: 0.0}
repeats: 1
"#;
const BASE: &str = r#"dataset_path: json
dataset_kwargs: {data_files: {test: documents.jsonl}}
output_type: multiple_choice
test_split: test
doc_to_text: "Q: {{q.strip()}} {% for c in choices.text %}{{ loop.index0 }}{{ c }}{% endfor %}"
doc_to_target: "{{choices.label.index(a)}}"
doc_to_choice: "{{choices.text}}"
"#;
const DOCUMENTS: &str = r#"{"q": " 1 + 1 ", "a": "A", "choices": {"text": ["it's", "no"], "label": ["A", "B"]}}
{"q": "{{ x }}", "a": "B", "choices": {"text": ["x", "y"], "label": ["A", "B"]}}
"#;
const EVALS: &str = r"m.v0:
  class: evals.elsuite.basic.match:Match
  args: {samples_jsonl: documents.jsonl, num_few_shot: 1, few_shot_jsonl: shots.jsonl}
g.v0:
  class: evals.elsuite.modelgraded.classify:ModelBasedClassify
  args: {samples_jsonl: documents.jsonl, modelgraded_spec: own, eval_type: cot_classify}
j.v0:
  class: evals.elsuite.basic.json_match:JsonMatch
  args: {samples_jsonl: documents.jsonl}
";
const SPEC: &str = "own:\n  prompt: \"{completion} {ideal} {{}}\"\n  choice_strings: [Yes, No]\n  choice_scores: \
                    {Yes: 1.0, No: 0.0}\n  input_outputs: {input: completion}\n";
const SHOTS: &str = r#"{"sample": [{"role": "system", "name": "example_user", "content": "q"}, {"role": "assistant", "content": "a"}]}
"#;
const SAMPLES: &str = r#"{"input": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}], "ideal": ["1", "[2]"]}
{"input": "q {{ x }}", "ideal": "3"}
"#;
const GOLDENS: &str = r#"[{"input": "q", "expected_output": "a", "retrieval_context": ["c"], "expected_tools": [{"name": "t"}],
 "metrics": [{"name": "Faithfulness", "threshold": 0.5}]},
 {"scenario": "s", "turns": [{"role": "user", "content": "hi"}], "expected_outcome": "o"}]"#;
const RECORDS: &str = r#"[{"input": [{"role": "user", "content": "q"}], "target": "B", "choices": ["x", "y"], "id": 1,
 "metadata": {"a": 1}}, {"input": "q", "target": ["a", "b"], "choices": null}]"#;

fn check(
    origin: Option<Origin>,
    entry: &str,
    files: &[(&str, String)],
) -> Result<(), TestCaseError> {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("in");
    fs::create_dir_all(folder.join("modelgraded")).unwrap();
    fs::write(place.path().join("outside.jsonl"), "{\"q\": \"secret\"}\n").unwrap();
    for (name, text) in files {
        fs::write(folder.join(name), text).unwrap();
    }
    let began = Instant::now();
    let options = Options { from: origin, ..Options::default() };
    let root = folder.canonicalize().unwrap();
    match import(&folder.join(entry), &options) {
        Ok(outcome) => {
            for file in &outcome.files {
                prop_assert!(file.starts_with(&root), "{}", file.display());
            }
            prop_assert!(!outcome.draft.runners.is_empty());
        }
        Err(ImportError::Unreadable(_) | ImportError::Shape { .. }) => {}
        Err(error @ ImportError::Io { .. }) => prop_assert!(false, "{error}"),
    }
    prop_assert!(began.elapsed() < Duration::from_secs(20));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn damaged_files_are_read_or_refused(
        changes in prop::collection::vec(change(), 1..4),
        which in 0_usize..8,
        is_told in any::<bool>(),
        is_written in any::<bool>(),
    ) {
        let base = match is_written {
            true => BASE.replace("multiple_choice", "generate_until"),
            false => BASE.to_owned(),
        };
        let damage = |wanted: usize, text: &str| match which == wanted {
            true => changed(text, &changes),
            false => text.to_owned(),
        };
        let from = |origin: Origin| is_told.then_some(origin);
        match which {
            0..3 => check(from(Origin::LmEval), "sums.yaml", &[
                ("sums.yaml", damage(0, TASK)),
                ("base_yaml", damage(1, &base)),
                ("documents.jsonl", damage(2, DOCUMENTS)),
            ])?,
            3..6 => check(from(Origin::OpenaiEvals), "evals.yaml", &[
                ("evals.yaml", damage(3, EVALS)),
                ("modelgraded/own.yaml", damage(4, SPEC)),
                ("documents.jsonl", damage(5, SAMPLES)),
                ("shots.jsonl", SHOTS.to_owned()),
            ])?,
            6 => check(from(Origin::DeepEval), "g.json", &[("g.json", damage(6, GOLDENS))])?,
            _ => check(from(Origin::Plain), "r.json", &[("r.json", damage(7, RECORDS))])?,
        }
    }
}
