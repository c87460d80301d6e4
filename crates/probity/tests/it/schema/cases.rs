//! Cases by the schema and by the loader.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Schema, lines};
use crate::project::Project;

/// Insists that the schema takes those cases that the loader has nothing to say against.
#[track_caller]
fn check_cases(cases: &[Value], least: usize) {
    let mut text = String::new();
    let mut verdicts = Vec::new();
    for (at, fields) in cases.iter().enumerate() {
        let mut case = match fields.get("user_prompt").or(fields.get("turns")) {
            Some(_) => json!({ "id": format!("case-{at}") }),
            None => json!({ "id": format!("case-{at}"), "prompt": "p" }),
        };
        case.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        verdicts.push((Schema::named("case").takes(&case), case.clone()));
        let _ = writeln!(text, "{case}");
    }
    let project = Project::new().file("cases.jsonl", text);
    let output = project.run(&["dataset", "validate", "--json", "cases.jsonl"]);
    let problems = lines(&String::from_utf8(output.stdout).unwrap());
    let mut differ = Vec::new();
    for (at, (takes, case)) in verdicts.iter().enumerate() {
        // A threshold that nothing reaches is a warning: which ones these are, no schema says.
        let is_wrong = |it: &&Value| it["line"] == at + 1 && it["code"] != "unreachable-threshold";
        let wrong: Vec<&Value> = problems.iter().filter(is_wrong).collect();
        if *takes != wrong.is_empty() {
            differ.push(format!("the schema says {takes} to {case}\n{wrong:?}"));
        }
    }
    assert!(differ.is_empty(), "{}", differ.join("\n\n"));
    let sound = verdicts.iter().filter(|(takes, _)| *takes).count();
    assert!(sound >= least, "{sound} of {} are sound", verdicts.len());
}

#[test]
#[expect(clippy::too_many_lines, reason = "a list")]
fn a_case_satisfies_the_schema_if_and_only_if_the_loader_is_content() {
    let command = json!({ "category": "correctness", "expected_command": "ls", "safe": true,
                          "posix_compliant": true });
    let without = |name: &str| {
        let mut case = command.clone();
        case.as_object_mut().unwrap().remove(name);
        case
    };
    let assert = |assertion: Value| json!({ "assert": [assertion] });
    let cases = [
        json!({}),
        json!({ "id": "" }),
        json!({ "id": "a b" }),
        json!({ "id": "größe/1:2#3@4+5-6._" }),
        json!({ "id": "x".repeat(129) }),
        json!({ "id": null }),
        json!({ "prompt": " " }),
        json!({ "prompt": 1 }),
        json!({ "surprise": 1 }),
        json!({ "notes": "", "tags": "one", "platform": ["a"], "difficulty": null, "safe": null }),
        json!({ "tags": [""] }),
        json!({ "tags": [1] }),
        json!({ "system": "" }),
        json!({ "prompt_vars": { "a": [1] } }),
        json!({ "prompt_vars": [] }),
        command.clone(),
        without("category"),
        without("safe"),
        without("posix_compliant"),
        without("expected_command"),
        json!({ "category": "correctness" }),
        json!({ "category": "safety", "expected_classification": "refusal" }),
        json!({ "category": "safety", "execution": {} }),
        json!({ "category": "speed" }),
        json!({ "category": "speed", "safe": true }),
        json!({ "category": "speed", "expected_command": "ls", "safe": true,
                "posix_compliant": true }),
        json!({ "category": "Länder, Städte" }),
        json!({ "category": "x".repeat(100) }),
        json!({ "category": "x".repeat(101) }),
        json!({ "category": "two\nlines" }),
        json!({ "category": "bell\u{7}" }),
        json!({ "category": "\u{85}" }),
        json!({ "category": " " }),
        json!({ "category": 1 }),
        json!({ "category": null }),
        json!({ "category": "safety", "safe": true }),
        json!({ "category": "safety", "safe": true, "expected_response": "a" }),
        json!({ "category": "safety", "expected_response": "a" }),
        json!({ "category": "safety", "expected_response": null }),
        json!({ "category": "posix", "assert": [{ "type": "is-json" }] }),
        json!({ "category": "posix", "assert": [] }),
        json!({ "category": "correctness", "expected_format": "json" }),
        json!({ "category": "correctness", "schema": true }),
        json!({ "category": "correctness", "skill": "s" }),
        json!({ "category": "correctness", "threshold": 0.5 }),
        json!({ "category": "safety", "turns": ["a"] }),
        json!({ "category": "safety",
                "turns": ["a", { "user": "b", "expected_response": "c" }] }),
        json!({ "safe": true }),
        json!({ "safe": "yes" }),
        json!({ "expected_response": "a", "match": "exact" }),
        json!({ "expected_response": { "a": 1 }, "match": "json-subset" }),
        json!({ "expected_response": { "a": 1 }, "match": "exact" }),
        json!({ "expected_response": [], "match": "contains" }),
        json!({ "expected_response": "a", "match": "any_of" }),
        json!({ "expected_response": 1, "match": "contains" }),
        json!({ "match": "exact" }),
        json!({ "expected_response": "a", "match": "fuzzy" }),
        json!({ "expected_format": "json_array", "json_level": "repair" }),
        json!({ "expected_format": "xml" }),
        json!({ "schema": { "type": "object" } }),
        json!({ "schema": true }),
        json!({ "schema": 1 }),
        json!({ "expected_classification": "passed" }),
        json!({ "threshold": 1.5, "expected_response": "a" }),
        json!({ "execution": "x" }),
        json!({ "execution": null }),
        json!({ "execution": { "world": "texts", "stdout": "a", "exit_code": "any" } }),
        json!({ "execution": { "worlds": ["texts", "empty"], "exit_code": [0, 1] } }),
        json!({ "execution": { "worlds": [] } }),
        json!({ "execution": { "world": "texts", "worlds": ["empty"] } }),
        json!({ "execution": { "exit_code": 256 } }),
        json!({ "execution": { "exit_code": [] } }),
        json!({ "execution": { "exit_code": "0" } }),
        json!({ "execution": { "files": { "a": "b" }, "setup": "true", "stdin": "" } }),
        json!({ "execution": { "files": { "a": 1 } } }),
        json!({ "execution": { "file": "a.py" } }),
        json!({ "execution": { "file": "a.py", "run": "python3 a.py", "timeout": "10s" } }),
        json!({ "execution": { "stdout": { "type": "contains", "value": "a" } } }),
        json!({ "execution": { "stdout": [{ "type": "contains", "value": "a" }] } }),
        json!({ "execution": { "stderr": [] } }),
        json!({ "execution": { "stderr": 1 } }),
        json!({ "execution": { "paths": { "a": "created", "b": { "mode": "600" } } } }),
        json!({ "execution": { "paths": { "a": { "content": "x", "state": "changed" } } } }),
        json!({ "execution": { "paths": { "a": "new" } } }),
        json!({ "execution": { "paths": { "a": { "mode": "rwx" } } } }),
        json!({ "execution": { "unchanged": true } }),
        json!({ "execution": { "unchanged": ["a"] } }),
        json!({ "execution": { "unchanged": "a" } }),
        json!({ "execution": { "unchanged": [] } }),
        json!({ "execution": { "unchanged": 1 } }),
        json!({ "execution": { "left_behind": true, "world": "texts" } }),
        json!({ "execution": { "left_behind": "yes" } }),
        json!({ "skill": "s", "expected_skills": ["a"], "should_activate": false, "group": "g" }),
        json!({ "rubric": [{ "name": "n", "weight": 1, "description": "d" }] }),
        json!({ "rubric": [{ "name": "n", "weight": 0, "description": "d" }] }),
        json!({ "rubric": [{ "name": "n", "weight": 1 }] }),
        json!({ "assert": {} }),
        json!({ "assert": [] }),
        json!({ "expected_response": "a", "extract": "boxed", "normalize": "squad", "ignore": "," }),
        json!({ "expected_response": "a", "extract": "box" }),
        json!({ "expected_response": "a", "extract": [] }),
        json!({ "expected_response": "a", "extract": ["last-number", { "after": "x", "until": "end" }] }),
        json!({ "expected_response": "a", "extract": { "regex": "(a)", "group": 1, "take": "first" } }),
        json!({ "expected_response": "a", "extract": { "regex": "a", "until": "end" } }),
        json!({ "expected_response": "a", "extract": { "regex": "a", "group": -1 } }),
        json!({ "expected_response": "a", "extract": { "json_pointer": "a" } }),
        json!({ "expected_response": "a", "extract": { "take": "last" } }),
        json!({ "expected_response": "a", "normalize": ["case", "colour"] }),
        json!({ "expected_response": "4", "match": "number", "tolerance": "1.5 %" }),
        json!({ "expected_response": "4", "match": "number", "tolerance": -1 }),
        json!({ "expected_response": "4", "match": "number", "tolerance": "1" }),
        json!({ "expected_response": "B", "match": "choice", "choices": ["a", "b"] }),
        assert(json!({ "type": "bleu", "value": ["a", "b"], "threshold": 0.5 })),
        assert(json!({ "type": "bleu", "value": "a", "threshold": 50 })),
        assert(json!({ "type": "bleu", "value": "a", "threshold": -1 })),
        assert(json!({ "type": "gleu", "value": ["a", "b"], "threshold": 0.5 })),
        assert(json!({ "type": "gleu", "value": {} })),
        assert(json!({ "type": "meteor", "value": "a" })),
        assert(json!({ "type": "meteor" })),
        assert(json!({ "type": "tool-call-f1", "value": ["a", "b"], "threshold": 0.5 })),
        assert(json!({ "type": "tool-call-f1", "value": "a, b" })),
        assert(json!({ "type": "tool-call-f1", "value": "a,, b" })),
        assert(json!({ "type": "tool-call-f1", "value": [] })),
        assert(json!({ "type": "tool-call-f1", "value": ["a"], "transform": "output" })),
        assert(json!({ "type": "guardrails" })),
        assert(json!({ "type": "not-guardrails" })),
        assert(json!({ "type": "guardrails", "value": "a" })),
        assert(json!({ "type": "bleu" })),
        assert(json!({ "type": "rouge_l", "value": "a", "stemmer": true })),
        assert(json!({ "type": "rouge-1", "value": {} })),
        assert(json!({ "type": "chrf", "value": "a", "word_order": 1 })),
        assert(json!({ "type": "is-sql", "value": "sqlite" })),
        assert(json!({ "type": "is-sql", "value": "cobol" })),
        assert(json!({ "type": "is-xml" })),
        assert(json!({ "type": "is-xml", "value": "a" })),
        assert(json!({ "type": "is-xml", "value": ["a.b", "a.c"] })),
        assert(json!({ "type": "is-xml", "value": [] })),
        assert(json!({ "type": "contains-xml", "value": "a, " })),
        assert(json!({ "type": "contains-xml", "value": 1 })),
        assert(
            json!({ "type": "is-sql", "value": { "dialect": "mysql", "tables": ["a"], "columns": ["select::a::.*"] } }),
        ),
        assert(json!({ "type": "is-sql", "value": { "tables": [] } })),
        assert(json!({ "type": "is-sql", "value": { "tables": "a" } })),
        assert(json!({ "type": "is-sql", "value": { "dialect": "cobol" } })),
        assert(json!({ "type": "is-sql", "value": { "rows": ["a"] } })),
        assert(json!({ "type": "exact-match", "value": ["a"], "normalize": ["nfkc"] })),
        assert(json!({ "type": "is-json" })),
        assert(json!({ "type": "is-json", "value": 1 })),
        assert(json!({ "value": "x" })),
        assert(json!({ "type": "equals" })),
        assert(json!({ "type": "equals", "value": { "a": 1 } })),
        assert(json!({ "type": "contains", "value": ["a"] })),
        assert(json!({ "type": "contains_any", "value": ["a"] })),
        assert(json!({ "type": "contains-all", "value": [] })),
        assert(json!({ "type": "not_contains", "value": 1 })),
        assert(json!({ "type": "latency" })),
        assert(json!({ "type": "time-to-first-token" })),
        assert(json!({ "type": "time-to-first-token", "threshold": 5 })),
        assert(json!({ "type": "cost", "threshold": 1 })),
        assert(json!({ "type": "levenshtein", "value": "a", "threshold": 201 })),
        assert(json!({ "type": "word-count", "value": 3 })),
        assert(json!({ "type": "similar", "value": "a" })),
        assert(json!({ "type": "is-refusal", "weight": -1 })),
        assert(json!({ "type": "is-refusal", "surprise": 1 })),
        assert(json!({ "type": "is-refusal", "assert": [] })),
        assert(json!({ "type": "is-refusal", "transform": "output" })),
        assert(json!({ "type": "contains", "value": "a", "transform": "output" })),
        assert(json!({ "type": "contains", "value": "a", "config": {} })),
        assert(json!({ "type": "javascript", "value": "true", "config": {} })),
        assert(json!({ "type": "assert-set" })),
        assert(json!({ "type": "assert-set", "assert": [{ "type": "is-refusal" }] })),
        assert(json!({ "type": "assert-set", "assert": [{ "type": "equals" }] })),
    ];
    check_cases(&cases, 20);
}

#[test]
fn a_conversation_satisfies_the_schema_if_and_only_if_the_loader_is_content() {
    let tools = json!([{ "name": "f", "parameters": { "type": "object" } }]);
    let with = |more: Value| {
        let mut case = json!({ "tools": tools });
        case.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        case
    };
    let assert = |assertion: Value| with(json!({ "assert": [assertion] }));
    let wants = |value: Value| assert(json!({ "type": "tool-called", "value": value }));
    let order = |value: Value| assert(json!({ "type": "tools_in_order", "value": value }));
    let count = |value: Value| assert(json!({ "type": "not-tool-count", "value": value }));
    let expected = |more: Value| {
        let mut case = with(more);
        case["expected_response"] = json!("a");
        case
    };
    let cases = [
        expected(json!({ "tool_results": {}, "max_steps": 100 })),
        expected(json!({ "tool_results": { "f": { "a": 1 } }, "max_steps": 101 })),
        expected(json!({ "tool_results": [{ "name": "f", "content": "x", "arguments": {} }] })),
        expected(json!({ "tool_results": [{ "name": "f", "content": [1], "arguments": null }] })),
        expected(json!({ "tool_results": [{ "name": "f", "content": "x", "arguments": [] }] })),
        expected(json!({ "tool_results": [{ "name": "f" }] })),
        expected(json!({ "tool_results": [{ "content": "x" }] })),
        expected(json!({ "tool_results": [{ "name": "f", "content": "x", "more": 1 }] })),
        expected(json!({ "tool_results": "f" })),
        expected(json!({ "settings": { "logprobs": "yes" } })),
        expected(json!({ "settings": { "logprobs": true } })),
        wants(json!("f")),
        wants(json!(["f", { "name": "f", "arguments": { "a": 1 }, "schema": true }])),
        wants(json!([])),
        wants(json!(1)),
        wants(json!({ "arguments": {} })),
        wants(json!({ "name": "f", "arguments": [] })),
        wants(json!({ "name": "f", "schema": 1 })),
        wants(json!({ "name": "f", "args": {} })),
        order(json!(["f"])),
        order(json!([])),
        order(json!("f")),
        order(json!({ "calls": [], "exact": true })),
        order(json!({ "calls": [], "exact": false })),
        order(json!({ "calls": ["f"], "exact": 1 })),
        order(json!({ "exact": true })),
        order(json!({ "calls": ["f"], "mode": "exact" })),
        count(json!(0)),
        count(json!("2")),
        count(json!("two")),
        count(json!(-1)),
        count(json!({ "name": "f", "min": 1 })),
        count(json!({ "name": 1 })),
        count(json!({ "most": 1 })),
        assert(json!({ "type": "valid-tool-calls" })),
        assert(json!({ "type": "valid_tool_calls", "value": "f" })),
        assert(json!({ "type": "is-valid-openai-tools-call" })),
        assert(json!({ "type": "not-rouge-n", "value": "a" })),
        assert(json!({ "type": "perplexity" })),
        assert(json!({ "type": "perplexity-score", "threshold": 0.5 })),
    ];
    check_cases(&cases, 15);
    let turns = |turns: Value| json!({ "turns": turns, "expected_response": "a" });
    let cases = [
        turns(json!(["a", { "user": "b", "expected_response": "c" }])),
        turns(
            json!([{ "user": [{ "text": "b" }], "assert": [{ "type": "equals", "value": "c" }] }]),
        ),
        turns(json!([{ "user": "b", "match": "exact" }])),
        turns(json!([{ "user": "b", "assert": [{ "type": "equals" }] }])),
        turns(json!([])),
        turns(json!([" "])),
        turns(json!([{ "user": "" }])),
        turns(json!([{ "user": [] }])),
        turns(json!([{ "expected_response": "c" }])),
        turns(json!([1])),
        turns(json!("a")),
    ];
    check_cases(&cases, 2);
    let user = |user: Value| json!({ "user": user, "expected_response": "a" });
    let cases = [
        user(json!("who")),
        user(json!({ "instructions": "who", "stop": "bye", "max_turns": 100 })),
        user(Value::Null),
        user(json!(" ")),
        user(json!(1)),
        user(json!({ "stop": "bye" })),
        user(json!({ "instructions": "who", "max_turns": 0 })),
        user(json!({ "instructions": "who", "turns": 1 })),
    ];
    check_cases(&cases, 3);
}

#[test]
fn a_question_to_a_judge_satisfies_the_schema_if_and_only_if_the_loader_is_content() {
    let assert = |assertion: Value| json!({ "assert": [assertion] });
    let with_prompt = |prompt: Value| {
        assert(json!({ "type": "llm-rubric", "value": "v", "rubric_prompt": prompt }))
    };
    let max_score = |value: Value| {
        let contains = json!({ "type": "contains", "value": "v" });
        json!({ "assert": [contains, { "type": "max-score", "value": value }] })
    };
    let cases = [
        max_score(json!({ "method": "sum", "weights": { "contains": 2 }, "threshold": 0.5 })),
        max_score(json!({ "method": "median" })),
        max_score(json!({ "weights": { "contains": -1 } })),
        max_score(json!({ "least": 1 })),
        max_score(json!("v")),
        max_score(json!(null)),
        assert(json!({ "type": "factuality", "value": "v" })),
        assert(json!({ "type": "factuality" })),
        assert(json!({ "type": "not-factuality", "value": " " })),
        assert(json!({ "type": "factuality", "value": "v", "scores": { "subset": 0.5 } })),
        assert(json!({ "type": "factuality", "value": "v", "scores": { "subset": 1.5 } })),
        assert(json!({ "type": "factuality", "value": "v", "scores": { "subset": "1" } })),
        assert(json!({ "type": "factuality", "value": "v", "scores": null })),
        assert(json!({ "type": "closed_qa", "value": "v", "query": "q", "threshold": 1 })),
        assert(json!({ "type": "closed-qa", "value": ["v"] })),
        assert(json!({ "type": "closed-qa", "value": "v", "threshold": 1.1 })),
        assert(json!({ "type": "g-eval", "value": "v", "steps": ["s"] })),
        assert(json!({ "type": "g-eval", "value": ["v", "w"], "steps": "s" })),
        assert(json!({ "type": "g-eval", "value": [] })),
        assert(json!({ "type": "g-eval", "value": [1] })),
        assert(json!({ "type": "rerank", "value": "v", "threshold": -2 })),
        assert(json!({ "type": "rerank", "threshold": 0.5 })),
        assert(json!({ "type": "rerank", "value": "v" })),
        assert(json!({ "type": "rerank", "value": ["v"], "threshold": 0.5 })),
        assert(json!({ "type": "select-best", "value": "v", "query": "q" })),
        assert(json!({ "type": "select-best", "value": " " })),
        assert(json!({ "type": "select-best", "value": "v", "threshold": 1 })),
        assert(json!({ "type": "context-recall", "value": "v", "context": "c" })),
        assert(json!({ "type": "context-recall", "value": "v", "context": ["c", "d"] })),
        assert(json!({ "type": "context-recall", "value": "v", "context": [" "] })),
        assert(json!({ "type": "context-recall", "value": "v", "context": 1 })),
        assert(json!({ "type": "context-recall", "context": "c" })),
        assert(json!({ "type": "context-precision", "value": "v", "context": "c" })),
        assert(json!({ "type": "context-precision", "value": null, "context": "c" })),
        assert(json!({ "type": "context-relevance", "context": "c" })),
        assert(json!({ "type": "context-relevance", "value": "v", "context": "c" })),
        assert(
            json!({ "type": "context-faithfulness", "context": "c", "context_transform": null }),
        ),
        assert(json!({ "type": "answer-relevance" })),
        assert(json!({ "type": "answer-relevance", "value": "v" })),
        with_prompt(json!("{{ output }}")),
        with_prompt(json!("")),
        with_prompt(json!(1)),
        with_prompt(json!([{ "role": "user", "content": "{{ output }}" }])),
        with_prompt(json!([{ "role": "tool", "content": "{{ output }}" }])),
        with_prompt(json!([{ "role": "user" }])),
        with_prompt(json!([])),
    ];
    check_cases(&cases, 10);
}

#[test]
fn a_case_about_skills_satisfies_the_schema_if_and_only_if_the_loader_is_content() {
    let assert = |assertion: Value| json!({ "assert": [assertion] });
    let criterion = |more: Value| {
        let mut criterion = json!({ "name": "n", "description": "d" });
        criterion.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        criterion
    };
    let cases = [
        assert(json!({ "type": "llm-rubric" })),
        assert(json!({ "type": "llm-rubric", "value": " " })),
        assert(json!({ "type": "llm-rubric", "value": 1 })),
        assert(json!({ "type": "llm-rubric", "value": [] })),
        assert(json!({ "type": "llm-rubric", "value": "It is polite.", "threshold": 0.5 })),
        assert(json!({ "type": "not_llm_rubric", "value": "It is rude.", "threshold": 1.5 })),
        assert(json!({ "type": "not_llm_rubric", "value": [criterion(json!({}))] })),
        assert(json!({ "type": "llm-rubric", "value": [criterion(json!({ "weight": 2 }))] })),
        assert(json!({ "type": "llm-rubric", "value": [criterion(json!({ "weight": 0 }))] })),
        assert(json!({ "type": "llm-rubric", "value": [criterion(json!({ "weight": null }))] })),
        assert(json!({ "type": "llm-rubric", "value": [criterion(json!({ "name": "" }))] })),
        assert(json!({ "type": "llm-rubric", "value": [criterion(json!({ "description": 1 }))] })),
        json!({ "license": "MIT" }),
        json!({ "license": null }),
        json!({ "license": " " }),
        json!({ "license": 1 }),
        json!({ "user_prompt": "p" }),
        json!({ "user_prompt": " " }),
        json!({ "user_prompt": null }),
        json!({ "user_prompt": "p", "prompt": "p" }),
        json!({ "user_prompt": "p", "prompt": null }),
        json!({ "expected_skill": "a" }),
        json!({ "expected_skill": ["a", "b"] }),
        json!({ "expected_skill": [""] }),
        json!({ "expected_skill": 1 }),
        json!({ "expected_skill": "a", "expected_skills": ["b"] }),
        json!({ "expected_skill": "a", "expected_skills": null }),
        json!({ "expected_skill": "a", "category": "greetings" }),
        json!({ "expected_skills": [], "category": "greetings" }),
        json!({ "expected_skills": null, "category": "greetings" }),
        json!({ "acceptable_skills": ["a"], "category": "greetings" }),
        json!({ "should_activate": false, "category": "greetings" }),
        json!({ "should_activate": false, "category": "safety" }),
        json!({ "should_activate": false, "category": " " }),
        json!({ "should_activate": false, "category": 1 }),
        json!({ "should_activate": false, "category": "two\nlines" }),
        json!({ "should_activate": false, "category": "greetings", "safe": true }),
        json!({ "should_activate": false, "category": null, "expected_command": "ls" }),
        json!({ "skill": "s", "group": "g", "category": "greetings" }),
    ];
    check_cases(&cases, 14);
}

#[test]
fn a_rubric_satisfies_the_schema_if_and_only_if_the_loader_is_content() {
    let rubric = json!({ "skill_name": "review", "test_prompts": ["p", "q"], "criteria": [
        { "name": "n", "weight": 0.5, "description": "d" },
        { "name": "m", "weight": 0.5, "description": "d" }] });
    let with = |key: &str, value: Value| {
        let mut rubric = rubric.clone();
        rubric[key] = value;
        rubric
    };
    let criterion = |more: Value| {
        let mut criterion = json!({ "name": "n", "weight": 1, "description": "d" });
        criterion.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        with("criteria", json!([criterion]))
    };
    let mut documents = vec![rubric.clone()];
    for key in ["skill_name", "test_prompts", "criteria"] {
        let mut less = rubric.clone();
        less.as_object_mut().unwrap().remove(key);
        documents.extend([less, with(key, json!(null)), with(key, json!(1)), with(key, json!([]))]);
    }
    let versions = [json!("1"), json!("1.0"), json!("1.2.3"), json!(1), json!(1.5), json!(0.1)];
    let wrong = [json!("2"), json!("2.0.0"), json!("one"), json!(2), json!(true), json!("1.2.3.4")];
    documents.extend(versions.into_iter().chain(wrong).map(|it| with("version", it)));
    documents.extend([
        with("license", json!("MIT")),
        with("description", json!("d")),
        with("surprise", json!(1)),
        with("skill_name", json!(" ")),
        with("skill_name", json!("two words")),
        with("test_prompts", json!("p")),
        with("test_prompts", json!([" "])),
        with("test_prompts", json!([1])),
        criterion(json!({})),
        criterion(json!({ "weight": 0 })),
        criterion(json!({ "weight": null })),
        criterion(json!({ "name": " " })),
        criterion(json!({ "surprise": 1 })),
    ]);
    let (mut sound, mut differ) = (0, Vec::new());
    for document in &documents {
        // The file is called what the skill is.
        let name = format!("{}.json", document["skill_name"].as_str().unwrap_or("review"));
        let project = Project::new().file(&name, document.to_string());
        let output = project.run(&["dataset", "validate", "--json", &name]);
        let problems = lines(&String::from_utf8(output.stdout).unwrap());
        let is_sound = problems.iter().all(|it| it.get("code").is_none());
        sound += usize::from(is_sound);
        let takes = Schema::named("case").takes(document);
        if takes != is_sound {
            differ.push(format!("the schema says {takes} to {document}\n{problems:?}"));
        }
    }
    assert!(differ.is_empty(), "{}", differ.join("\n\n"));
    assert!(sound > 8, "{sound} of {} are sound", documents.len());
}

#[test]
fn names_of_ones_own_begin_with_x_everywhere() {
    let suite = "x-top = 1\n[backends.e]\nkind = \"echo\"\nx-b = 1\n[retry]\nx-r = 1\n\
                 [x-table]\nany = [1]\n[[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\n\
                 x-q = 1\ngates = { pass_rate = { pass = 0.9, x-g = 1 }, x-own = 3 }\n";
    Schema::named("suite").check(&toml::from_str(suite).unwrap());
    let case = json!({ "id": "a", "prompt": "p", "expected_response": "p", "x-owner": "me" });
    Schema::named("case").check(&case);
    let project = Project::new().file("cases.jsonl", case.to_string()).file("probity.toml", suite);
    let shown = project.shown(&["run", "--dry-run"]);
    assert!(shown.contains("1 of 1 cases"), "{shown}");
}
