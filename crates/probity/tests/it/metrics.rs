//! Metrics of text in a dataset, from the file to the record and to `show`.

use serde_json::{Value, json};

use crate::{project::Project, run::stored};

/// What each case is asked, which is what the backend answers, and how it is judged.
const CASES: &str = r#"{"id":"number","prompt":"I paid $1,234.50 in all.","expected_response":1234.5,"match":"number"}
{"id":"near","prompt":"about 99","expected_response":"100","tolerance":"1%"}
{"id":"far","prompt":"about 90","expected_response":"100","tolerance":"1%"}
{"id":"last","prompt":"3 + 4 = 7.","expected_response":"7","match":"number","extract":"last-number"}
{"id":"nowhere","prompt":"no idea","expected_response":"7","match":"number","extract":"last-number"}
{"id":"several","prompt":"3 or 4","expected_response":"3","match":"number"}
{"id":"letter","prompt":"The answer is (B).","expected_response":"B","choices":["red","blue"]}
{"id":"text","prompt":"Surely it is Blue.","expected_response":"blue","choices":["red","blue"]}
{"id":"asked","prompt":"{% for it in choices %}{{ 'AB'[loop.index0] }}. {{ it }}\n{% endfor %}Answer: B","expected_response":"blue","choices":["red","blue"]}
{"id":"both","prompt":"(A) or (B)","expected_response":"B","choices":["red","blue"]}
{"id":"boxed","prompt":"so \\boxed{\\frac{1}{2}}","expected_response":"\\frac{1}{2}","extract":"boxed"}
{"id":"chain","prompt":"x\n```python\nprint(41)\n```\n","expected_response":"41","extract":[{"code_block":"py"},{"regex":"(?<=print\\()\\d+"}]}
{"id":"pointer","prompt":"Here: {\"a\": [1, \"two\"]}","expected_response":"two","extract":{"json_pointer":"/a/1"}}
{"id":"squad","prompt":"The  Eiffel tower.","expected_response":["eiffel Tower","x"],"normalize":"squad"}
{"id":"ignored","prompt":"=> $1,200","expected_response":"1200","match":"exact","ignore":["[$,]","^=> "]}
{"id":"texts","prompt":"the quick brown fox jumped over the dog","assert":[{"type":"token-f1","value":"a quick brown fox","threshold":0.6},{"type":"rouge-1","value":"the quick brown fox jumps over the lazy dog"},{"type":"rouge-l","value":"the quick brown foxes jumped over the dogs","stemmer":true,"threshold":1},{"type":"bleu","value":["the quick brown fox jumped over a dog"]},{"type":"gleu","value":["a","the quick brown fox jumped over a dog"]},{"type":"meteor","value":"the quick brown foxes jump over the dog","threshold":0.9},{"type":"chrf","value":"the quick brown fox","word_order":2},{"type":"edit-similarity","value":"The quick brown fox jumped over the dog","normalize":"case","threshold":1},{"type":"word-count","value":{"max":8}}]}
{"id":"poor","prompt":"something else","assert":[{"type":"rouge-2","value":"the quick brown fox","metric":"overlap"}]}
{"id":"markup","prompt":"<p>Hi <b>you</b></p>","assert":[{"type":"is-xml"},{"type":"is-html"},{"type":"contains-html"},{"type":"not-is-sql"}]}
{"id":"sql","prompt":"So:\n```sql\nSELECT a FROM t\n```","assert":[{"type":"is-sql","extract":"code-block"},{"type":"contains-sql","value":"sqlite"}]}
"#;

const SUITE: &str =
    "[backends.echo]\nkind = \"echo\"\n[[runners]]\nname = \"r\"\ndataset = \"c.jsonl\"\n";

fn project(cases: &str) -> Project {
    Project::new().file("c.jsonl", cases).file("probity.toml", SUITE)
}

fn case<'c>(cases: &'c [Value], id: &str) -> &'c Value {
    cases.iter().find(|it| it["case_id"] == id).unwrap_or_else(|| panic!("no {id}"))
}

#[test]
fn each_metric_judges_and_says_why() {
    let project = project(CASES);
    project.run(&["run", "-q"]);
    let cases = stored(&project);
    let failed: Vec<(&str, &str)> = cases
        .iter()
        .filter(|it| it["verdict"] != "pass")
        .map(|it| (it["case_id"].as_str().unwrap(), it["reason"].as_str().unwrap()))
        .collect();
    assert_eq!(
        failed,
        [
            ("both", "the reply names several choices: A (red), B (blue)"),
            ("far", "expected `100 (within 1%)`, got `90`"),
            ("nowhere", "nothing to extract: no number"),
            ("poor", "ROUGE-2 of `something else` is 0.000, below 0.75"),
            ("several", "there are several numbers: 3, 4; `extract` says which"),
        ],
    );
    let texts = case(&cases, "texts");
    let values: Vec<f64> = texts["classification"]["scores"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["value"].as_f64().unwrap() * 1000.0).round() / 1000.0)
        .collect();
    assert_eq!(values, [0.667, 0.824, 1.0, 0.707, 0.731, 0.999, 0.809, 1.0, 1.0]);
    let last = &case(&cases, "last")["classification"];
    assert_eq!(last["details"]["extracted"], json!([{ "check": "number", "text": "7" }]));
    assert_eq!(last["scores"][0]["span"], json!([8, 9]));
}

#[test]
fn show_prints_what_was_extracted() {
    let project = project(CASES);
    project.run(&["run", "-q"]);
    let shown = String::from_utf8(project.run(&["show", "latest", "chain"]).stdout).unwrap();
    assert!(shown.contains("extracted  `41` (trimmed)"), "{shown}");
    // Judging the stored replies once more finds the same.
    let again = String::from_utf8(project.run(&["rescore"]).stdout).unwrap();
    assert!(again.contains("0 flipped"), "{again}");
}

#[test]
fn what_is_misspelt_is_refused_before_the_first_call() {
    let wrong = r#"{"id":"a","prompt":"p","expected_response":"1","extract":"last-numbr"}
{"id":"b","prompt":"p","expected_response":"1","extract":{"regx":"a"}}
{"id":"c","prompt":"p","expected_response":"1","normalize":["cse"]}
{"id":"d","prompt":"p","assert":[{"type":"rogue-1","value":"a"}]}
{"id":"e","prompt":"p","expected_response":"C","choices":["red","blue"]}
{"id":"f","prompt":"p","expected_response":"1","extract":{"regex":"("}}
{"id":"g","prompt":"p","expected_response":"1","tolerance":"lots"}
{"id":"h","prompt":"p","extract":"boxed"}
"#;
    let project = project(wrong);
    insta::assert_snapshot!(project.shown(&["run"]));
    assert!(!project.path(".probity/probity.db").exists());
}

#[test]
fn a_dataset_keeps_its_metrics_in_every_format() {
    // In CSV an expected number cannot be told from a text.
    let texts = CASES.replace(":1234.5,", ":\"1234.5\",");
    let project = project(CASES).file("text.jsonl", texts);
    for file in ["c.toml", "c.yaml", "c.json", "c.csv"] {
        let from = if file == "c.csv" { "text.jsonl" } else { "c.jsonl" };
        // In CSV an expected number cannot be told from a text.
        std::fs::write(project.path("text.jsonl"), CASES.replace(":1234.5,", ":\"1234.5\","))
            .unwrap();
        let written = project.run(&["dataset", "convert", from, file]);
        assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
        let digest = |file: &str| {
            let stats = project.run(&["dataset", "stats", "--json", file]);
            let stats: Value = serde_json::from_slice(&stats.stdout).unwrap();
            stats["digest"].as_str().unwrap().to_owned()
        };
        assert_eq!(digest(file), digest(from), "{file}");
    }
}
