//! No field without its property, no property without its field, no name left out of an enum.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use probity_core::{
    criteria::{AssertionKind, AssertionTest, Matcher},
    figures::Rate,
    gate::Metric,
    kind::Figures,
    kind::RunnerKind,
};
use probity_load::settings;
use serde_json::{Value, json};

use super::{
    Schema, lines,
    output::all_gates,
    samples,
    suites::{is_sound, is_sound_in},
    validator,
};
use crate::project::Project;

/// The parts of a schema that are schemas themselves.
fn parts(schema: &Value) -> Vec<(String, &Value)> {
    let mut parts = Vec::new();
    for (key, value) in schema.as_object().into_iter().flatten() {
        match key.as_str() {
            "properties" | "$defs" | "dependentSchemas" => {
                let entries = value.as_object().unwrap().iter();
                parts.extend(entries.map(|(name, it)| (format!("/{key}/{name}"), it)));
            }
            "allOf" | "anyOf" | "oneOf" => {
                let items = value.as_array().unwrap().iter().enumerate();
                parts.extend(items.map(|(at, it)| (format!("/{key}/{at}"), it)));
            }
            "items" | "additionalProperties" | "propertyNames" => {
                parts.push((format!("/{key}"), value));
            }
            // `if`, `then` and `not` restrict what other parts describe.
            _ => {}
        }
    }
    parts
}

/// Calls for every part that describes an object.
pub(super) fn each_object(schema: &Value, call: &mut dyn FnMut(&str, &Value)) {
    fn walk(place: &str, schema: &Value, call: &mut dyn FnMut(&str, &Value)) {
        if schema["type"] == "object" && schema.get("properties").is_some() {
            call(place, schema);
        }
        for (step, part) in parts(schema) {
            walk(&format!("{place}{step}"), part, call);
        }
    }
    walk("", schema, call);
}

/// Every property that is declared, by its place.
pub(super) fn properties(schema: &Value) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    each_object(schema, &mut |place, object| {
        for (name, property) in object["properties"].as_object().unwrap() {
            all.insert(format!("{place}/properties/{name}"), property.clone());
        }
    });
    all
}

/// The pattern that a name has a schema by.
fn pattern_of(schema: &Value, name: &str) -> Option<String> {
    let mut patterns = schema["patternProperties"].as_object()?.keys();
    let found = patterns.find(|it| regex::Regex::new(it).is_ok_and(|it| it.is_match(name)))?;
    Some(found.replace('~', "~0").replace('/', "~1"))
}

/// The properties that a document has, by their place in the schema.
fn used(root: &Value, place: &str, document: &Value, seen: &mut BTreeSet<String>) {
    let schema = root.pointer(place).unwrap();
    if let Some(target) = schema["$ref"].as_str() {
        used(root, target.trim_start_matches('#'), document, seen);
    }
    let holds = |part: &Value| {
        let branch = json!({ "$defs": root["$defs"], "allOf": [part] });
        validator(&branch).is_valid(document)
    };
    if let Some(condition) = schema.get("if") {
        let then = if holds(condition) { "then" } else { "else" };
        if schema.get(then).is_some() {
            used(root, &format!("{place}/{then}"), document, seen);
        }
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        for at in 0..schema[key].as_array().map_or(0, Vec::len) {
            if holds(&schema[key][at]) {
                used(root, &format!("{place}/{key}/{at}"), document, seen);
            }
        }
    }
    for (name, value) in document.as_object().into_iter().flatten() {
        let property = format!("{place}/properties/{}", name.replace('/', "~1"));
        if root.pointer(&property).is_some() {
            used(root, &property, value, seen);
            seen.insert(property);
        } else if let Some(pattern) = pattern_of(schema, name) {
            used(root, &format!("{place}/patternProperties/{pattern}"), value, seen);
        } else if schema["additionalProperties"].is_object() {
            used(root, &format!("{place}/additionalProperties"), value, seen);
        }
    }
    if schema.get("items").is_some() {
        for item in document.as_array().into_iter().flatten() {
            used(root, &format!("{place}/items"), item, seen);
        }
    }
}

/// Every document satisfies the schema, and together they use every property of it.
#[track_caller]
pub(super) fn check_whole(name: &str, documents: &[Value]) {
    let schema = Schema::named(name);
    let mut seen = BTreeSet::new();
    for document in documents {
        schema.check(document);
        used(&schema.document, "", document, &mut seen);
    }
    let declared: BTreeSet<String> = properties(&schema.document).into_keys().collect();
    let dead: Vec<&String> = declared.difference(&seen).collect();
    assert!(dead.is_empty(), "{name} declares what nothing has: {dead:#?}");
}

#[test]
fn an_evaluation_has_every_field_of_its_schema_and_no_other() {
    let mut all = samples::evaluations();
    let found = probity_report::json::consistency::value(&samples::consistency());
    all.push(json!({ "runners": all, "consistency": [found], "micro_mean": 0.5,
                     "macro_mean": null }));
    check_whole("evaluation", &all);
}

#[test]
fn figures_have_every_notice_of_their_schema_and_no_other() {
    let notices: Vec<_> = samples::figures().iter().flat_map(Figures::notices).collect();
    let told: BTreeSet<&str> = notices.iter().map(|notice| notice.code).collect();
    let schema = &Schema::named("evaluation").document;
    let known = schema.pointer("/$defs/notice/properties/code/enum").unwrap().as_array().unwrap();
    let known: BTreeSet<&str> = known.iter().filter_map(Value::as_str).collect();
    assert_eq!(told, known);
}

#[test]
fn events_have_every_field_of_their_schema_and_no_other() {
    check_whole("event", &samples::stamped());
}

#[test]
fn a_result_has_every_field_of_its_schema_and_no_other() {
    check_whole("run-result", &samples::results());
}

/// A case that the loader has nothing to say against, with every field of cases and assertions that
/// can stand together.
fn sound_case() -> Value {
    let mut sound = serde_json::to_value(samples::case()).unwrap();
    sound["match"] = json!("number");
    sound["expected_response"] = json!("4");
    let mut forget = |place: &str, keys: &[&str]| {
        let object = sound.pointer_mut(place).unwrap().as_object_mut().unwrap();
        object.retain(|key, _| !keys.contains(&key.as_str()));
    };
    forget("", &["normalize", "ignore", "messages", "turns"]);
    let of_text =
        ["extract", "normalize", "ignore", "choices", "tolerance", "stemmer", "word_order"];
    forget("/assert/0", &of_text);
    let of_judge = ["context", "context_transform", "query", "steps", "scores", "rubric_prompt"];
    forget("/assert/0", &of_judge);
    forget("/assert/0", &["config", "transform"]);
    sound["assert"][0]["assert"] = json!([
        { "type": "equals", "value": 1, "weight": 1, "threshold": 1, "metric": "m" },
        { "type": "number", "value": 4, "tolerance": 0.5, "extract": "boxed" },
        { "type": "choice", "value": "A", "choices": ["red", "blue"] },
        { "type": "rouge-l", "value": "a", "stemmer": true },
        { "type": "chrf", "value": "a", "word_order": 2 },
        { "type": "javascript", "value": "true", "config": { "a": 1 }, "transform": "output" },
        { "type": "equals", "value": "a", "normalize": "squad", "ignore": "," },
        { "type": "factuality", "value": "a", "scores": { "subset": 0.5 }, "query": "q" },
        { "type": "g-eval", "value": "a", "steps": ["s"] },
        { "type": "context-relevance", "context": "c" },
        { "type": "context-recall", "value": "a", "context_transform": "output" },
        { "type": "llm-rubric", "value": "a",
          "rubric_prompt": [{ "role": "user", "content": "{{ output }}" }] }
    ]);
    sound
}

/// Assertions with values of their own forms.
fn rubric_assertion() -> Value {
    json!({ "type": "llm-rubric", "threshold": 0.5, "value": [
        { "name": "n", "weight": 2, "description": "d" }] })
}

fn score_assertion() -> Value {
    let totals = json!({ "method": "sum", "weights": { "llm-rubric": 2 }, "threshold": 1 });
    json!({ "type": "max-score", "value": totals })
}

fn tool_assertions() -> [Value; 4] {
    [
        json!({ "type": "tool-called", "value": { "name": "f", "arguments": {}, "schema": {} } }),
        json!({ "type": "tools-in-order", "value": { "calls": ["f"], "exact": true } }),
        json!({ "type": "tool-count", "value": { "name": "f", "min": 1, "max": 2 } }),
        json!({ "type": "is-sql", "value": { "dialect": "mysql", "tables": ["t"], "columns": ["a"] } }),
    ]
}

#[test]
fn a_case_has_every_field_of_its_schema_and_the_loader_knows_them_all() {
    let sound = sound_case();
    let other = json!({ "id": "b", "expected_response": "r", "normalize": ["case"], "ignore": [","], "user_prompt": "p", "expected_skill": "s", "category": "c", "strict": true,
                        "assert": [rubric_assertion(), score_assertion()] });
    let rubric = json!({ "version": "1.0", "skill_name": "s", "license": "MIT",
                         "description": "d", "test_prompts": ["p"], "criteria": [
                             { "name": "n", "weight": 1, "description": "d" }] });
    let talk = json!({ "id": "c", "expected_response": "r", "messages": [
        { "role": "assistant", "content": "x", "tool_calls": [{ "name": "f" }] },
        { "role": "tool", "tool_call_id": "c", "name": "f", "content": "r" }],
        "turns": ["hi", { "user": "u", "expected_response": "4", "match": "number", "tolerance": 1,
            "extract": "boxed", "expected_format": "text", "strict": true, "json_level": "strict",
            "expected_classification": "pass", "threshold": 0.5,
            "assert": tool_assertions() },
            { "user": [{ "text": "v" }], "expected_response": "r", "normalize": ["case"], "ignore": [","] },
            { "user": "w", "schema": {}, "transform": "output", "scorer_errors": "fail" },
            { "user": "x", "expected_response": "A", "choices": ["a", "b"] }] });
    check_whole("case", &[sound.clone(), other.clone(), talk.clone(), rubric.clone()]);
    let project = Project::new()
        .file("all.jsonl", format!("{sound}\n{other}\n{talk}\n"))
        .file("s.json", rubric.to_string());
    let output = project.run(&["dataset", "validate", "--strict", "--json", "all.jsonl", "s.json"]);
    let problems = lines(&String::from_utf8(output.stdout).unwrap());
    assert!(problems.iter().all(|it| it.get("code").is_none()), "{problems:#?}");
}

#[test]
fn a_suite_has_a_property_for_every_setting() {
    let schema = Schema::named("suite");
    let declared = properties(&schema.document);
    for key in settings::keys() {
        // A table of settings has a definition of its own.
        let place = match key.split_once('.') {
            None => format!("/properties/{key}"),
            Some((table, name)) => {
                let place = format!("/properties/{table}/$ref");
                let target = schema.document.pointer(&place).unwrap().as_str().unwrap();
                format!("{}/properties/{name}", target.trim_start_matches('#'))
            }
        };
        assert!(declared.contains_key(&place), "{key}");
    }
    schema.check(&toml::from_str(settings::DEFAULTS).unwrap());
}

/// A suite with everything but gates.
const EVERYTHING: &str = r#"
version = "1"
prices = "prices.toml"
parallel = true
embeddings = "server"
reranker = "server"
user = "server"
allow_code = true
[judge]
backend = "server"
swap = true
[backends.server]
kind = "openai"
base_url = "http://127.0.0.1/v1"
model = "m"
api_key_env = "KEY"
headers_env = { team = "TEAM" }
temperature = 0
top_p = 0.5
max_tokens = 1
seed = 1
stop = ["END"]
logprobs = true
presence_penalty = 0.5
frequency_penalty = -0.5
response_format = { type = "object" }
extra_body = { cache = false }
stream = true
max_concurrency = 1
timeout = "30s"
price = { input = 1, output = 2 }
[backends.custom]
kind = "http"
url = "http://127.0.0.1/{{ id }}"
method = "PUT"
headers = { x-session = "{{ session }}" }
body = { question = "{{ prompt }}" }
reply = "/answer"
error = "/error"
usage = { input_tokens = "/in", output_tokens = "/out", cached_tokens = "/cached", cost_usd = "/cost" }
session = "/session"
aws_service = "sagemaker"
[backends.program]
kind = "command"
command = ["x"]
transport = "stdin"
output = "json"
output_pointer = "/x"
env = ["X"]
sandbox = { world = "empty", paths = ["/opt"], reach = ["localhost:1"] }
[backends.recorded]
kind = "replay"
file = "f.jsonl"
[backends.function]
kind = "python"
file = "f.py"
config = { a = 1 }
env = ["X"]
[backends.inside]
kind = "embedded"
file = "m.gguf"
context = 2048
threads = 2
grammar = "root ::= [a-z]+"
[[runners]]
name = "r"
kind = "respond"
dataset = ["d.jsonl"]
backends = ["server"]
system = "s"
prompt = "{{ prompt }}"
repeat = 3
min_pass = 2
tool_version = "1"
budget = { max_cost_usd = 1, max_calls = 1, max_tokens = 1 }
gates = false
timeout = "10m"
judge = "recorded"
embeddings = "server"
reranker = "server"
user = { backend = "server", instructions = "i", stop = "s", max_turns = 2 }
transform = "output"
assert = [{ type = "contains", value = "a" }]
match = "exact"
threshold = 0.5
extract = "boxed"
normalize = "squad"
ignore = ["a"]
expected_format = "json_object"
json_level = "strict"
scorer_errors = "fail"
prompt_vars = { a = 1 }
tools = [{ name = "t" }]
tool_choice = "auto"
response_format = "json"
shuffle_choices = 1
examples = "d.jsonl"
examples_k = 2
examples_seed = 1
allow_code = true
[[runners]]
name = "variants"
dataset = ["file://d.py:f"]
dataset_config = { a = 1 }
env = ["A"]
[[runners.prompts]]
name = "terse"
template = "{{ prompt }}"
system = "s"
examples = "d.jsonl"
examples_k = 0
examples_seed = 1
settings = { temperature = 0, top_p = 1, max_tokens = 1, seed = 1, stop = ["x"], logprobs = true, presence_penalty = 1, frequency_penalty = 1 }
[[runners.prompts]]
name = "talk"
messages = [
  { role = "user", content = "hi" },
  { role = "assistant", tool_calls = [{ id = "c", name = "t", arguments = {} }] },
  { role = "tool", tool_call_id = "c", name = "t", content = "{{ prompt }}" },
]
[[runners]]
name = "sizes"
kind = "size_impact"
dataset = ["d.jsonl"]
skills = ["skills"]
companion_bytes = 1
judge = "server"
swap = false
[[runners]]
name = "agents"
kind = "agent"
dataset = ["d.jsonl"]
world = "empty"
max_steps = 3
max_seconds = 4
max_tokens = 5
tools = ["bash", "read_file"]
protocol = "text"
[[runners]]
name = "foreign"
kind = "program"
command = ["x"]
[scorers.one]
command = ["x"]
workers = 2
timeout = "10s"
env = ["X"]
[scorers.two]
python = "x.py"
[scorers.three]
node = "x.mjs"
[refusal]
phrases = ["no"]
allow = ["never mind"]
replace = true
anywhere = true
detect = true
[json]
level = "strict"
[shell]
level = "strict"
posix_edition = "2017"
[[shell.rule]]
id = "x"
category = "disk"
risk = "critical"
programs = ["x"]
commands = ["a b"]
with = ["-f|--force"]
without = ["-n"]
targets = []
operands = ["*.c"]
last = true
least = 1
always = true
why = "w"
safer = "s"
example = ["x a b -f c.c"]
counter = ["x"]
[[shell.allow]]
rules = ["x"]
programs = ["x"]
commands = ["a b"]
with = ["-f"]
without = ["-n"]
targets = []
operands = ["*.c"]
reason = "r"
[[policies]]
name = "p"
severity = "low"
words = ["w"]
substrings = ["s"]
regexes = ["r"]
builtin = "pii"
"#;

/// A suite with several judges.
const PANEL: &str = r#"
[judge]
backends = ["a", "b"]
combine = "mean"
repeats = 2
structured = true
rubric_prompt = "{{ output }}"
[backends.a]
kind = "echo"
[backends.b]
kind = "echo"
[[runners]]
name = "r"
dataset = "d.jsonl"
backends = ["a"]
judges = ["a", "b"]
combine = "all"
judge_repeats = 3
structured = false
[[runners.rubric_prompt]]
role = "user"
content = "{{ output }} {{ rubric }}"
"#;

#[test]
fn a_suite_has_every_property_of_its_schema_and_the_loader_knows_them_all() {
    let of_skills = "pass = 1, warn = 1, backend = \"b\", allow_empty = true";
    let gate = format!("{of_skills}, variant = \"v\"");
    let gates = format!(
        "[backends.one]\nkind = \"echo\"\n[backends.b]\nkind = \"echo\"\n\
         [[runners]]\nname = \"one\"\ndataset = \"d\"\n[runners.gates]\n{}\
         [[runners]]\nname = \"two\"\ndataset = \"d\"\nprompts = [{{ name = \"v\", template = \"x\" }}]\n\
         derived = {{ half = \"results / 2\" }}\n\
         [runners.gates]\n\
         \"derived.half\" = [{{ {gate} }}, {{ min = 1 }}, {{ max = 1 }}]\n\
         csr = [{{ {gate}, category = \"posix\" }}, {{ min = 1 }}, {{ max = 1 }}]\n\
         correctness = 1\nsafety_accuracy = 1\nposix = 1\nposix_compliance_rate = 1\n\
         failed = [{{ {gate}, category = \"posix\" }}, {{ min = 1 }}, {{ max = 1 }}]\n\
         flaky = [{{ {gate} }}, {{ min = 1 }}, {{ max = 1 }}]\n\
         latency_p50 = [{{ {gate} }}, {{ min = 1 }}, {{ max = 1 }}]\n\
         cost_usd = [{{ {gate} }}, {{ min = 1 }}, {{ max = 1 }}]\n",
        all_gates(RunnerKind::Respond)
    );
    let skills = RunnerKind::ALL.into_iter().filter(|it| it.has_key("skills")).map(|kind| {
        let mut runner = format!(
            "[[runners]]\nname = \"{0} all\"\nkind = \"{0}\"\ndataset = \"d\"\nskills = \"s\"\n\
             [runners.gates]\n",
            kind.as_str()
        );
        for rate in Rate::ALL.into_iter().filter(|it| it.kinds().contains(&kind)) {
            let name = rate.as_str();
            let _ = writeln!(runner, "{name} = [{{ {of_skills} }}, {{ min = 1 }}, {{ max = 1 }}]");
        }
        runner
    });
    let gates = skills.fold(gates, |gates, runner| gates + &runner);
    let rest = "[derived]\nhalf = \"results / 2\"\n[gates]\npass_rate = 1\n[fail_fast]\nconsecutive_threshold = 1\n";
    let suites = [EVERYTHING, PANEL, settings::DEFAULTS, &gates, rest];
    for text in suites {
        assert!(is_sound(text), "the loader is not content with\n{text}");
    }
    // These name files, which the loader reads.
    let files = json!({ "errors": { "rules": "errors.toml" },
                        "runners": [{ "name": "r", "dataset": "d", "known_failures": "k.txt",
                                      "prompts": [{ "name": "v", "file": "v.txt" }] }] });
    let mut documents: Vec<Value> =
        suites.into_iter().map(|text| toml::from_str(text).unwrap()).collect();
    documents.push(files);
    // What a runner says for all its cases.
    let case = sound_case();
    let mut assertions = case["assert"].as_array().unwrap().clone();
    assertions.push(rubric_assertion());
    assertions.push(score_assertion());
    assertions.extend(tool_assertions());
    let grading = json!({ "execution": "assist", "sandbox": "required" });
    let executed = json!({
        "worlds": [{ "file": "w.toml", "text": "name = 'w'" }], "files": { "f": "x" }, "setup": "true",
        "file": "a", "run": "sh a", "stdin": "x", "timeout": "1s", "exit_code": 0, "stdout": "x", "stderr": "",
        "paths": { "p": { "state": "created", "content": "x", "mode": "600" } }, "unchanged": true, "left_behind": false });
    let common = json!({ "backends": { "b": { "kind": "echo" } }, "grading": grading, "runners": [
        { "name": "r", "dataset": "d", "extract": case["extract"], "assert": assertions, "execution": executed },
        { "name": "s", "dataset": "d", "execution": { "world": "empty" } }] });
    // JSON is YAML as well.
    let text = common.to_string();
    assert!(is_sound_in("suite.yaml", &text), "the loader is not content with\n{text}");
    documents.push(common);
    check_whole("suite", &documents);
}

#[test]
fn gates_have_every_metric_that_there_is() {
    let metrics: BTreeSet<String> = Metric::all().map(|(_, name)| name).collect();
    let schema = &Schema::named("suite").document;
    let gates = schema.pointer("/$defs/gates/anyOf/1/properties").unwrap();
    let written: BTreeSet<String> = gates.as_object().unwrap().keys().cloned().collect();
    let others: Vec<&String> = written.difference(&metrics).collect();
    assert_eq!(
        others,
        ["correctness", "csr", "posix", "posix_compliance_rate", "safety", "safety_accuracy"]
    );
    assert!(metrics.is_subset(&written));
}

#[test]
fn matchers_and_assertions_are_taken_in_both_spellings() {
    let schema = Schema::named("case");
    let spellings = |name: &str| [name.to_owned(), name.replace('-', "_"), name.replace('_', "-")];
    for name in Matcher::ALL.iter().flat_map(|it| spellings(it.as_str())) {
        let case = json!({ "id": "a", "prompt": "p", "match": name, "expected_response": ["r"] });
        schema.check(&case);
    }
    for test in AssertionTest::ALL {
        for name in [false, true]
            .into_iter()
            .flat_map(|negated| spellings(&AssertionKind { negated, test }.to_string()))
        {
            assert_eq!(AssertionKind::named(&name).map(|it| it.test), Some(test));
            let is = |tests: &[AssertionTest]| tests.contains(&test);
            let value = if is(&[AssertionTest::IsJson, AssertionTest::ContainsJson]) {
                json!({})
            } else if is(&[AssertionTest::IsSql, AssertionTest::ContainsSql]) {
                json!("sqlite")
            } else if test.as_str().ends_with("ml")
                || is(&[
                    AssertionTest::ContextRelevance,
                    AssertionTest::ContextFaithfulness,
                    AssertionTest::AnswerRelevance,
                    AssertionTest::ValidToolCalls,
                    AssertionTest::Guardrails,
                    AssertionTest::MaxScore,
                ])
            {
                Value::Null
            } else if is(&[AssertionTest::ToolsInOrder]) {
                json!(["v"])
            } else if is(&[AssertionTest::ToolCount]) {
                json!(1)
            } else {
                json!("v")
            };
            let threshold = if is(&[AssertionTest::SelectBest]) { None } else { Some(1) };
            let mut assertion = json!({ "type": name, "value": value, "threshold": threshold });
            if test == AssertionTest::AssertSet {
                assertion["assert"] = json!([]);
            }
            schema.check(&json!({ "id": "a", "prompt": "p", "assert": [assertion] }));
        }
    }
}
