use std::fmt::Write as _;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::project::Project;

const RESULTS: &str = r#"{"case_id":"1","suite_id":"a","raw_response":"Paris","expected_response":"Paris"}
{"case_id":"2","suite_id":"a","raw_response":"I'm sorry, but I can't help with that.","error":null,"tokens":12}
{"case_id":"3","suite_id":"b","raw_response":"nope","expected_format":"json"}
{"case_id":"4","suite_id":"b","raw_response":null,"error":"Request timed out","limit_seconds":30}
{"case_id":"5","suite_id":"b","raw_response":"a zebra","error":null}
"#;

#[test]
fn every_line_comes_back_with_its_classification_and_a_summary() {
    let project = Project::new()
        .file("results.jsonl", RESULTS)
        .file("probity.toml", "[[policies]]\nname = \"animals\"\nwords = [\"zebra\"]\n");
    assert_snapshot!(project.shown(&["classify", "results.jsonl", "--suite", "probity.toml"]), @r#"
    exit 0
    --- out
    {"case_id":"1","suite_id":"a","raw_response":"Paris","expected_response":"Paris","classification":{"primary":"pass","rule":"pass","trace":["timeout","crash","error","empty_response","refusal","format","policy","mismatch","pass"],"scores":[{"name":"trimmed","type":"trimmed","value":1.0,"passed":true,"weight":1.0}],"details":{"criteria":"trimmed"}},"verdict":"pass","scores":{"accuracy":1}}
    {"case_id":"2","suite_id":"a","raw_response":"I'm sorry, but I can't help with that.","error":null,"tokens":12,"classification":{"primary":"refusal","rule":"refusal","trace":["timeout","crash","error","empty_response","refusal"],"details":{"source":"reply","phrase":"sorry, but I can't help","span":[4,27]}},"verdict":"fail","scores":{"accuracy":0}}
    {"case_id":"3","suite_id":"b","raw_response":"nope","expected_format":"json","classification":{"primary":"wrong_format","rule":"format","trace":["timeout","crash","error","empty_response","refusal","format"],"scores":[{"name":"expected_format","type":"expected_format","value":0.0,"passed":false,"weight":1.0,"reason":"expected a value, found `n` at line 1, column 1 (byte 0)"}],"details":{"error_message":"expected a value, found `n` at line 1, column 1 (byte 0)"}},"verdict":"fail","scores":{"accuracy":0}}
    {"case_id":"4","suite_id":"b","raw_response":null,"error":"Request timed out","limit_seconds":30,"classification":{"primary":"timeout","rule":"timeout","trace":["timeout"],"details":{"limit_seconds":30,"error_details":"Request timed out"}},"verdict":"error","scores":{"accuracy":0}}
    {"case_id":"5","suite_id":"b","raw_response":"a zebra","error":null,"classification":{"primary":"policy_violation","rule":"policy","trace":["timeout","crash","error","empty_response","refusal","format","policy"],"details":{"policy_name":"animals","span":[2,7],"hits":[{"policy":"animals","rule":"word:zebra","span":[2,7],"severity":"high"}]}},"verdict":"fail","scores":{"accuracy":0}}
    --- err
    5 results
      pass                      1   20.0 %
      fail                      0    0.0 %
      error                     0    0.0 %
      refusal                   1   20.0 %
      wrong_format              1   20.0 %
      policy_violation          1   20.0 %
      crash                     0    0.0 %
      timeout                   1   20.0 %
    verdicts: 1 pass, 3 fail, 1 error
    replies that break a policy: 1
    suite means
      a                    0.500 of 2
      b                    0.000 of 3
    micro mean 0.250 (over cases)
    macro mean 0.250 (over suites)
    error rate 0.200; errors are left out of the means
    without a criterion: 3
    "#);
}

#[test]
fn broken_lines_are_reported_with_their_number_and_counted() {
    let lines = "{\"case_id\":\"1\",\"raw_response\":\"x\"}\n\n{\"case_id\":\n[]\n{\"id\":\"2\"}\n{\"case_id\":\"3\",\"raw_response\":5}\n";
    let project = Project::new().file("r.jsonl", lines);
    assert_snapshot!(project.shown(&["classify", "r.jsonl", "-o", "out.jsonl"]), @r#"
    exit 2
    --- err
    error[json]: expected a value, found the end of the text
     --> r.jsonl:3:12
      |
    3 | {"case_id":
      |            ^

    error[wrong-type]: a run result must be a table, not a list
     --> r.jsonl:4:1
      |
    4 | []
      | ^^

    error[missing-field]: neither `raw_response` nor `error` is there
     --> r.jsonl:5:1
      |
    5 | {"id":"2"}
      | ^^^^^^^^^^
      |
      = help: a call without a reply has `"raw_response": null`

    error[wrong-type]: field `raw_response` must be a string, not a number
     --> r.jsonl:6:31
      |
    6 | {"case_id":"3","raw_response":5}
      |                               ^

    1 results
      pass                      1  100.0 %
      fail                      0    0.0 %
      error                     0    0.0 %
      refusal                   0    0.0 %
      wrong_format              0    0.0 %
      policy_violation          0    0.0 %
      crash                     0    0.0 %
      timeout                   0    0.0 %
    verdicts: 0 pass, 0 fail, 0 error, 1 undecided
    micro mean n/a (over cases)
    macro mean n/a (over suites)
    without a criterion: 1
    4 lines were left out: see the errors above
    "#);
    assert_eq!(project.read("out.jsonl").lines().count(), 1);
}

#[test]
fn classifying_again_replaces_what_was_written_before() {
    let project = Project::new().file("r.jsonl", RESULTS);
    assert!(project.run(&["classify", "r.jsonl", "-o", "once.jsonl"]).status.success());
    assert!(project.run(&["classify", "once.jsonl", "-o", "twice.jsonl"]).status.success());
    assert_eq!(project.read("once.jsonl"), project.read("twice.jsonl"));
}

#[test]
fn the_output_is_the_same_for_any_number_of_threads() {
    let mut lines = String::new();
    for at in 0..20_000 {
        let reply = ["fine", "I cannot help with that.", "{\"a\":1,}", ""][at % 4];
        let line = json!({ "case_id": at.to_string(), "raw_response": reply, "expected_format": if at % 3 == 0 { "json" } else { "text" } });
        let _ = writeln!(lines, "{line}");
        if at % 1000 == 7 {
            lines.push_str("broken\n");
        }
    }
    let project = Project::new().file("r.jsonl", lines);
    let outputs: Vec<_> =
        ["1", "2", "7"].map(|threads| project.run(&["classify", "r.jsonl", "-j", threads])).into();
    for output in &outputs {
        assert_eq!(output.status.code(), Some(2));
        assert_eq!(output.stdout, outputs[0].stdout);
        assert_eq!(output.stderr, outputs[0].stderr);
    }
    assert_eq!(String::from_utf8_lossy(&outputs[0].stdout).lines().count(), 20_000);
}

#[test]
fn the_summary_is_also_json() {
    let project = Project::new().file("r.jsonl", RESULTS);
    let output =
        project.run(&["classify", "r.jsonl", "-o", "out.jsonl", "--summary", "-", "--quiet"]);
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["total"], 5);
    let classes = summary["classes"].as_object().unwrap();
    assert_eq!(classes.len(), 8);
    assert_eq!(classes.values().filter_map(Value::as_u64).sum::<u64>(), 5);
    assert!(output.stderr.is_empty());
}

#[test]
fn results_may_come_through_a_pipe_and_end_without_a_line_feed() {
    let project = Project::new();
    let output = project.run_with(&["classify", "-", "--quiet"], RESULTS.trim_end());
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 5);
}

#[test]
fn a_case_without_a_criterion_can_be_refused() {
    let project = Project::new().file("r.jsonl", "{\"case_id\":\"1\",\"raw_response\":\"x\"}\n");
    let output = project.run(&["classify", "r.jsonl", "--require-criteria"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn files_that_cannot_be_read_or_written_are_named() {
    let project = Project::new()
        .file("r.jsonl", RESULTS)
        .file("bad.toml", "[[policies]]\nname = \"x\"\nregexes = [\"(\"]\n");
    assert_snapshot!(project.shown(&["classify", "none.jsonl"]), @"
    exit 2
    --- err
    error: failed to read `none.jsonl`
      caused by: No such file or directory (os error 2)
    ");
    assert_snapshot!(project.shown(&["classify", "r.jsonl", "-o", "no/such/folder/out.jsonl"]), @"
    exit 2
    --- err
    error: failed to write `no/such/folder/out.jsonl`
      caused by: No such file or directory (os error 2)
    ");
    assert_snapshot!(project.shown(&["classify", "r.jsonl", "-o", "r.jsonl"]), @"
    exit 2
    --- err
    error: `r.jsonl` and `r.jsonl` are the same file
    ");
    assert_snapshot!(project.shown(&["classify", "."]), @"
    exit 2
    --- err
    error: failed to read `.`
      caused by: is a directory
    ");
    assert_snapshot!(project.shown(&["classify", "r.jsonl", "--suite", "bad.toml"]), @r#"
    exit 2
    --- err
    error[bad-regex]: the regular expression does not compile: unclosed group
     --> bad.toml:3:12
      |
    3 | regexes = ["("]
      |            ^^^

    error: the suite file `bad.toml` cannot be used
    "#);
    let summary = project.run(&["classify", "r.jsonl", "-o", "o", "--summary", "r.jsonl"]);
    assert_eq!(summary.status.code(), Some(2));
    assert_eq!(project.read("r.jsonl"), RESULTS);
}

#[test]
fn an_empty_file_has_no_results() {
    let project = Project::new().file("r.jsonl", "");
    assert_snapshot!(project.shown(&["classify", "r.jsonl"]), @"
    exit 2
    --- err
    0 results
      pass                      0      n/a
      fail                      0      n/a
      error                     0      n/a
      refusal                   0      n/a
      wrong_format              0      n/a
      policy_violation          0      n/a
      crash                     0      n/a
      timeout                   0      n/a
    verdicts: 0 pass, 0 fail, 0 error
    micro mean n/a (over cases)
    macro mean n/a (over suites)
    error: there is no run result in `r.jsonl`
    ");
}

#[test]
fn a_line_too_long_to_be_a_result_is_one_broken_line() {
    let good = "{\"case_id\":\"a\",\"raw_response\":\"x\"}\n";
    let mut text = good.to_owned();
    text.extend(std::iter::repeat_n('x', 140 << 20));
    text.push('\n');
    text.push_str(good);
    let project = Project::new().file("r.jsonl", text);
    let output = project.run(&["classify", "r.jsonl", "-q"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 2);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(errors.matches("error[").count(), 1, "{errors}");
    assert!(errors.contains("r.jsonl:2:1"), "{errors}");
}
