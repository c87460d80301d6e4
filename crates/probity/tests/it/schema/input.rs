//! What the program reads: suites, datasets and stored results.

use std::{fmt::Write as _, fs, path::PathBuf, sync::Arc};

use probity_core::{figures::Rate, kind::RunnerKind};
use probity_grade::Rules;
use probity_load::suite::{BackendKind, Suite};
use serde_json::{Value, json};

use super::{Schema, lines};
use crate::project::Project;

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files below a folder, by the ending of their names.
fn files(folder: &str, ending: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![repository().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == ending) {
                found.push((path.clone(), fs::read_to_string(path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn the_suites_and_datasets_that_come_with_the_program_satisfy_their_schemas() {
    let (mut suites, mut cases, mut rubrics) = (0, 0, 0);
    let case = Schema::named("case");
    for folder in ["examples", "crates/probity/starter", "crates/probity/suites"] {
        for (path, text) in files(folder, "toml") {
            let document: Value = toml::from_str(&text).unwrap();
            if let Some(items) = document["test_cases"].as_array() {
                cases += items.len();
                items.iter().for_each(|it| case.check(it));
            } else if document.get("test_prompts").is_some() {
                rubrics += 1;
                case.check(&document);
            } else if document.get("runners").is_some() {
                suites += 1;
                Schema::named("suite").check(&document);
            } else {
                // What the cases of long contexts are made of.
                assert!(path.ends_with("long-context/needles.toml"), "what is {}?", path.display());
            }
        }
    }
    for (_, text) in files("crates/probity/suites", "jsonl") {
        for line in text.lines().filter(|it| !it.starts_with('#') && !it.trim().is_empty()) {
            cases += 1;
            case.check(&serde_json::from_str(line).unwrap());
        }
    }
    assert!(
        suites >= 8 && cases >= 400 && rubrics >= 1,
        "{suites} suites, {cases} cases and {rubrics} rubrics"
    );
}

#[test]
fn the_suites_of_the_documentation_satisfy_the_schema() {
    let mut seen = 0;
    for (path, text) in files("docs", "md") {
        for block in text.split("```toml\n").skip(1) {
            let block = block.split("\n```").next().unwrap();
            let is_suite = ["[backends.", "[[runners]]", "[shell]", "[[shell.", "[[policies]]"];
            if !is_suite.iter().any(|it| block.contains(it)) {
                continue;
            }
            seen += 1;
            let document: Value = toml::from_str(block)
                .unwrap_or_else(|error| panic!("{}: {error}\n{block}", path.display()));
            Schema::named("suite").check(&document);
        }
    }
    assert!(seen > 3, "{seen} suites in the documentation");
}

#[test]
fn what_classify_reads_and_writes_satisfies_its_schemas() {
    let (_, text) = files("examples", "jsonl")
        .into_iter()
        .find(|(path, _)| path.ends_with("results.jsonl"))
        .unwrap();
    let more = [
        json!({ "id": "a", "raw_response": "x", "category": "my own", "extra": [1] }),
        json!({ "case_id": "a", "error": { "status": "429", "exit_code": 1, "signal": 9 } }),
        json!({ "case_id": "a", "raw_response": null, "error_kind": "network" }),
        json!({ "case_id": "a", "raw_response": "ls -l", "expected_command": "ls -l",
                "safe": true, "posix_compliant": true, "category": "safety" }),
        json!({ "case_id": "a", "raw_response": "b", "expected_response": "a", "verdict": "?" }),
        json!({ "case_id": "a", "raw_response": "b",
                "assert": [{ "type": "llm-rubric", "value": "It is polite." }] }),
        json!({ "case_id": "a", "raw_response": "b", "finish_reason": "stop",
                "assert": [{ "type": "finish_reason", "value": "stop" }] }),
    ];
    let text = more.iter().fold(text, |text, it| text + &it.to_string() + "\n");
    let project = Project::new().file("results.jsonl", text);
    lines(&project.read("results.jsonl"))
        .iter()
        .for_each(|it| Schema::named("classify-input").check(it));
    let output = project.run(&["classify", "results.jsonl", "-q"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let classified = lines(&String::from_utf8(output.stdout).unwrap());
    assert!(classified.len() > 12);
    classified.iter().for_each(|it| Schema::named("classified").check(it));
    let reasons = classified.iter().map(|it| &it["classification"]["details"]["reason"]);
    assert!(reasons.clone().any(|it| it == "unjudged"), "{:?}", reasons.collect::<Vec<_>>());
}

/// Whether the loader takes a suite without a word.
pub(super) fn is_sound(text: &str) -> bool {
    is_sound_in("suite.toml", text)
}

/// The same of a file whose name says its format.
pub(super) fn is_sound_in(file: &str, text: &str) -> bool {
    let file: Arc<str> = file.into();
    let folder = tempfile::tempdir().unwrap();
    let check = |suite: &Suite| Rules::compile(&suite.rules).err().unwrap_or_default();
    let (suite, problems) = Suite::parse(text, &file, folder.path(), &check);
    suite.is_some() && problems.is_empty()
}

/// Suites.
const SUITES: &[&str] = &[
    "",
    "version = 1",
    "version = \"1.5\"",
    "version = 2",
    "version = \"10\"",
    "version = true",
    "surprise = 1",
    "store = \" \"",
    "store = \"x\"",
    "max_concurrency = 0",
    "seed = -1",
    "max_concurrency = \"4\"",
    "max_error_rate = -0.1",
    "max_undecided = 0.25",
    "max_undecided = 1.5",
    "max_undecided = \"none\"",
    "[pace]\nmax_pause = \"1h\"",
    "[pace]\nmax_pause = 0",
    "[pace]\nspeed = 1",
    "errors_as_failures = 1",
    "[cache]\nenabled = true\npath = \"x\"",
    "[cache]\ngenerations = false",
    "[cache]\ngenerations = \"no\"",
    "[cache]\nsize = 1",
    "parallel = true",
    "parallel = \"yes\"",
    "[judge]\nswap = true",
    "[judge]\nswap = 1",
    "[judge]\nbackend = \"b\"\n[backends.b]\nkind = \"echo\"",
    "[judge]\nbackend = \" \"",
    "[judge]\nmodel = \"m\"",
    "judge = \"b\"",
    "[retry]\nbackoff_max = 0",
    "[retry]\nbackoff_max = \"1m 30s\"",
    "[retry]\nmax_retries = 1.5",
    "[budget]\nmax_calls = 0",
    "[timeouts]\nattempt = 0",
    "[timeouts]\nattempt = \"0s\"",
    "[timeouts]\nattempt = 1.5",
    "[timeouts]\nattempt = \"soon\"",
    "[fail_fast]\nconsecutive_threshold = 2",
    "[fail_fast]\nthreshold = 0",
    "[fail_fast]\npermanent_threshold = 0",
    "[baseline]\nmax_drop = 0.1\nmax_regressions = 1\nfolder = \"f\"",
    "[baseline]\nmax_drop = \"x\"",
    "prices = \"p.toml\"",
    "prices = 1",
    "[json]\nlevel = \"repair\"",
    "[json]\nlevel = \"kind\"",
    "[refusal]\nphrases = \"no\"\nallow = [\"x\"]\nreplace = true\nanywhere = false",
    "[refusal]\nphrases = [\"\"]",
    "[refusal]\nreplace = \"yes\"",
    "[errors]\nrules = 1",
    "[shell]\nposix_edition = 2017\nlevel = \"strict\"",
    "[shell]\nedition = 1",
    "[[policies]]\nname = \"p\"\nwords = [\"w\"]\nseverity = \"low\"",
    "[[policies]]\nname = \"p\"",
    "[[policies]]\nwords = \"w\"",
    "[[policies]]\nname = \"p\"\nwords = \"w\"\nseverity = \"bad\"",
    "runners = 1",
    "[runners]\nname = \"r\"",
    "[backends]\nb = 1",
    "[backends.\"a,b\"]\nkind = \"echo\"",
    "[backends.\" \"]\nkind = \"echo\"",
    "[backends.\"a\\u0007\"]\nkind = \"echo\"",
];

/// Safety rules of a suite.
const SHELL: &[&str] = &[
    "level = \"lax\"",
    "posix_edition = 2008",
    "posix_edition = \"2024\"",
    "rule = 1",
    "rule = [{ id = \"x\", category = \"disk\", risk = \"high\", programs = [\"x\"], why = \"w\" }]",
    "rule = [{ id = \"x\", category = \"disk\", risk = \"safe\", programs = [\"x\"], why = \"w\" }]",
    "rule = [{ id = \"x\", category = \"disk\", risk = \"high\", programs = [], why = \"w\" }]",
    "rule = [{ id = \"x\", category = \"luck\", risk = \"high\", programs = [\"x\"], why = \"w\" }]",
    "rule = [{ id = \"X\", category = \"disk\", risk = \"high\", programs = [\"x\"], why = \"w\" }]",
    "rule = [{ id = \"x\", category = \"disk\", risk = \"high\", programs = [\"x\"] }]",
    "rule = [{ id = \"x\", category = \"disk\", programs = [\"x\"], why = \"w\" }]",
    "rule = [{ id = \"x\", category = \"disk\", risk = \"high\", programs = [\"x\"], why = \"w\", a = 1 }]",
    "rule = [{ id = \"x\", category = \"disk\", risk = \"critical\", programs = [\"x\"], why = \"w\", with = [\"-f|--force\"], without = [\"-n\"], commands = [\"a b\"], operands = [\"*.c\"], last = true, least = 1, always = true, safer = \"s\", example = [\"x a b -f c.c\"], counter = [\"x\"] }]",
    "allow = [{ programs = [\"x\"], reason = \"r\" }]",
    "allow = [{ programs = [\"x\"] }]",
    "allow = [{ reason = \"r\" }]",
    "allow = [{ programs = [\"x\"], reason = \" \" }]",
    "allow = [{ programs = [\"x\"], reason = \"r\", a = 1 }]",
];

/// Policies of a suite.
const POLICIES: &[&str] = &[
    "builtin = \"secrets\"",
    "builtin = \"pii\"",
    "builtin = \"manners\"",
    "regexes = [\"a+\"]",
    "substrings = \"a\"\nanywhere = true",
    "words = 1",
];

/// Fields of a backend.
const BACKENDS: &[&str] = &[
    "kind = \"echo\"",
    "model = \"m\"",
    "kind = \"telepathy\"",
    "kind = \"openai\"",
    "kind = \"vllm\"",
    "kind = \"command\"",
    "kind = \"command\"\ncommand = []",
    "kind = \"command\"\ncommand = \"x\"",
    "kind = \"replay\"",
    "kind = \"replay\"\nfile = \"f\"",
    "kind = \"echo\"\nfile = \"f\"",
    "kind = \"echo\"\ncommand = [\"x\"]",
    "kind = \"claude\"\ntransport = \"arg\"\nenv = [\"A\"]",
    "kind = \"claude\"\ntransport = \"air\"",
    "kind = \"codex\"\noutput = \"json\"",
    "kind = \"codex\"\noutput = \"jsonl\"\noutput_pointer = \"/a\"",
    "kind = \"codex\"\noutput = \"text\"\noutput_pointer = \"/a\"",
    "kind = \"codex\"\noutput = \"xml\"",
    "kind = \"anthropic\"\nmodel = \"m\"\nextra_body = { seed = 1 }",
    "kind = \"http\"",
    "kind = \"http\"\nurl = \"http://h\"",
    "kind = \"http\"\nurl = \"http://h\"\nmethod = \"DIG\"",
    "kind = \"http\"\nurl = \"http://h\"\nmethod = \"GET\"",
    "kind = \"http\"\nurl = \"http://h\"\nmethod = \"GET\"\nbody = {}",
    "kind = \"http\"\nurl = \"http://h\"\nbase_url = \"http://h\"",
    "kind = \"http\"\nurl = \"http://h\"\nextra_body = { a = 1 }",
    "kind = \"http\"\nurl = \"http://h\"\nstream = true",
    "kind = \"http\"\nurl = \"http://h\"\nreply = \"answer\"",
    "kind = \"http\"\nurl = \"http://h\"\nreply = \"\"",
    "kind = \"http\"\nurl = \"http://h\"\nbody = 1",
    "kind = \"http\"\nurl = \"http://h\"\nbody = \"q={{ prompt }}\"\nheaders = { content-type = \"text/plain\" }",
    "kind = \"http\"\nurl = \"http://h\"\nheaders = { a = 1 }",
    "kind = \"http\"\nurl = \"http://h\"\nusage = { input_tokens = \"/a\", tokens = \"/b\" }",
    "kind = \"http\"\nurl = \"http://h\"\nusage = { cost_usd = \"/a\" }\nsession = \"/s\"",
    "kind = \"echo\"\nstream = true",
];

/// Fields of a backend that has a kind and a model.
const SERVERS: &[&str] = &[
    "base_url = \"http://x/#y\"",
    "base_url = \"http://x\"",
    "api_key = \"k\"",
    "api_key_env = \"K_1\"",
    "api_key_env = \"sk-1\"",
    "temperature = 0",
    "temperature = \"hot\"",
    "temperature = -1",
    "top_p = 1",
    "top_p = 1.5",
    "extra_body = { contents = [] }",
    "extra_body = { topP = 1 }",
    "top_p = 1\nextra_body = { topP = 1 }",
    "seed = 1\nextra_body = { random_seed = 1 }",
    "stop = []\nextra_body = { stop_sequences = [] }",
    "stop = \"x\"\nextra_body = { stop_sequences = [] }",
    "max_tokens = 1\nextra_body = { maxOutputTokens = 1 }",
    "max_tokens = 0",
    "seed = 4294967296",
    "seed = 1",
    "stop = \"END\"",
    "stop = [1]",
    "response_format = \"json\"",
    "response_format = \"xml\"",
    "response_format = { type = \"object\" }",
    "timeout = 0",
    "timeout = \"30s\"",
    "price = { input = 1 }",
    "price = { input = 1, output = 0.5 }",
    "price = { input = 1, output = -1 }",
    "price = { input = 1, output = 1, cached = 1 }",
    "headers_env = { x = \"Y\" }",
    "headers_env = { x = 1 }",
    "extra_body = { a = 1 }",
    "extra_body = { seed = 1 }",
    "extra_body = { stream = true }",
    "extra_body = 1",
    "extra_body = { num_predict = 1 }",
    "max_tokens = 1\nextra_body = { num_predict = 1 }",
    "response_format = \"json\"\nextra_body = { format = 1 }",
    "max_concurrency = 0",
    "stream = true",
    "stream = 1",
    "url = \"http://h\"",
    "session = \"/s\"",
];

/// Fields of a runner that has a name and a dataset.
const RUNNERS: &[&str] = &[
    "",
    "assert = [{ type = \"contains\", value = \"a\" }]",
    "assert = [{ type = \"contians\", value = \"a\" }]",
    "assert = [{ value = \"a\" }]",
    "extract = \"boxed\"",
    "extract = \"box\"",
    "extract = { regex = \"a\", group = -1 }",
    "normalize = [\"case\", \"nfkc\"]",
    "normalize = [\"case\", \"colour\"]",
    "tools = [1]",
    "kind = \"command\"",
    "kind = \"dance\"",
    "backends = []",
    "backends = \"b\"",
    "repeat = 0",
    "repeat = 10001",
    "repeat = 3\nmin_pass = 2",
    "min_pass = 0",
    "prompt = \"{{ prompt }}\"",
    "system = \"\"",
    "prompts = []",
    "prompts = \"p\"",
    "prompts = [{ name = \"v\" }]",
    "prompts = [{ template = \"x\" }]",
    "prompts = [{ name = \"v\", template = \"x\" }, { name = \"w\", template = \"{{ prompt }}\" }]",
    "prompts = [{ name = \"v w\", template = \"x\" }]",
    "prompts = [{ name = \"v@w\", template = \"x\" }]",
    "prompts = [{ name = \"v\", template = \"\" }]",
    "prompts = [{ name = \"v\", template = \"x\", prompt = \"y\" }]",
    "prompts = [{ name = \"v\", template = \"x\", settings = { temperature = 0 } }]",
    "prompts = [{ name = \"v\", template = \"x\", settings = { temperature = -1 } }]",
    "prompts = [{ name = \"v\", messages = [] }]",
    "prompts = [{ name = \"v\", messages = [{ role = \"user\", content = \"x\" }] }]",
    "prompts = [{ name = \"v\", messages = [{ role = \"user\", content = \"x\" }], template = \"x\" }]",
    "prompt = \"x\"\nprompts = [{ name = \"v\", template = \"x\" }]",
    "kind = \"activation\"\nskills = \"s\"\nprompts = [{ name = \"v\", template = \"x\" }]",
    "prompts = [{ name = \"v\", template = \"x\" }]\ngates = { csr = { min = 1, variant = \"v\" } }",
    "tool_version = \"1\"",
    "tool_version = 1",
    "budget = { max_calls = 1 }",
    "budget = { max_cost_usd = -1 }",
    "budget = { max_time = 1 }",
    "gates = false",
    "gates = 1",
    "threads = 4",
    "known_failures = 1",
    "timeout = \"10m\"",
    "timeout = \"0s\"",
    "timeout = \"soon\"",
    "timeout = 600",
    "judge = 1",
    "kind = \"effectiveness\"\nskills = \"s\"\nswap = \"both\"",
    "kind = \"activation\"\nskills = 1",
    "kind = \"activation\"\nskills = [\"s\", \"t\"]",
    "kind = \"activation\"\nskills = [\" \"]",
    "kind = \"size_impact\"\nskills = \"s\"\ncompanion_bytes = 0",
    "kind = \"size_impact\"\nskills = \"s\"\ncompanion_bytes = 1073741824",
    "kind = \"size_impact\"\nskills = \"s\"\ncompanion_bytes = 1073741825",
    "kind = \"activation\"\nskills = \"s\"\ngates = { tpr = 0.9, fpr = \"10%\", accuracy = [] }",
    "kind = \"activation\"\nskills = \"s\"\ngates = { tpr = { min = 1, category = \"posix\" } }",
    "kind = \"activation\"\nskills = \"s\"\ngates = { tpr = { min = 1, backend = \"b\" } }",
    "kind = \"activation\"\nskills = \"s\"\ngates = { tpr = 1.5 }",
];

/// Gates of a runner.
const GATES: &[&str] = &[
    "pass_rate = 0.9",
    "pass_rate = 1.1",
    "pass_rate = \"94.8%\"",
    "pass_rate = \"101%\"",
    "pass_rate = \"0.5\"",
    "pass_rate = \"1.01\"",
    "pass_rate = \"100 %\"",
    "pass_rate = true",
    "pass_rate = -0.1",
    "csr = { pass = 0.9, warn = 0.8 }",
    "csr = { warn = 0.8 }",
    "csr = { min = 0.5, max = 0.9 }",
    "csr = { pass = 0.9, limit = 1 }",
    "csr = [0.5, { max = 0.9, category = \"posix\" }]",
    "csr = { pass = 0.9, category = \"speed\" }",
    "csr = { pass = 0.9, category = \" \" }",
    "csr = { pass = 0.9, category = \"two\\nlines\" }",
    "csr = { pass = 0.9, backend = \"b\" }",
    "csr = { pass = 0.9, allow_empty = 1 }",
    "failed = 3",
    "failed = 3.5",
    "failed = \"3\"",
    "failed = \"3%\"",
    "refusal_count = { max = 1, category = \"safety\" }",
    "refusal_rate = 0.1",
    "pass_count = 1",
    "error_count = 1",
    "happiness = 1",
    "flaky = { max = 1, category = \"safety\" }",
    "latency_p95 = \"2.5s\"",
    "latency_p95 = 2.5",
    "latency_p95 = \"soon\"",
    "latency_p90 = 1",
    "ttft_p95 = \"300ms\"",
    "ttft_p90 = 1",
    "cost_usd = 0.25",
    "cost_usd = \"0.25\"",
    "cost_usd = \"25%\"",
    "tokens = 1000",
    "tokens = -1",
];

/// Runners of every kind with every set of keys that only some kinds have.
fn keys_of_kinds() -> Vec<String> {
    let needed = ["dataset = \"d\"", "skills = \"s\"", "command = [\"x\"]"];
    let others =
        ["", "prompt = \"{{ prompt }}\"", "companion_bytes = 1", "judge = \"b\"", "swap = true"];
    let mut runners = Vec::new();
    for kind in RunnerKind::ALL.map(RunnerKind::as_str) {
        for set in 0..1 << needed.len() {
            let chosen = needed.iter().enumerate().filter(|(at, _)| set >> at & 1 == 1);
            let chosen: Vec<&str> = chosen.map(|(_, key)| *key).collect();
            let chosen = chosen.join("\n");
            let runner = |other| format!("kind = \"{kind}\"\n{chosen}\n{other}\n");
            runners.extend(others.map(runner));
        }
    }
    runners
}

/// Runners of every kind with gates on what only some kinds have, their own or the suite's.
fn gates_of_kinds() -> Vec<String> {
    let mut suites = Vec::new();
    for kind in RunnerKind::ALL {
        let needed = match (kind == RunnerKind::Program, kind.has_key("skills")) {
            (true, _) => "command = [\"x\"]",
            (false, true) => "dataset = \"d\"\nskills = \"s\"",
            (false, false) => "dataset = \"d\"",
        };
        let runner = format!("[[runners]]\nname = \"r\"\nkind = \"{}\"\n{needed}", kind.as_str());
        for rate in Rate::ALL.map(Rate::as_str) {
            suites.push(format!("{runner}\ngates = {{ {rate} = 0.5 }}\n"));
            let own = ["", "gates = true", "gates = false", "gates = { pass_rate = 1 }"];
            let of_suite = |own| format!("{runner}\n{own}\n[gates]\n{rate} = 0.5\n");
            suites.extend(own.map(of_suite));
        }
    }
    suites
}

#[test]
fn a_suite_satisfies_the_schema_if_and_only_if_the_loader_is_content() {
    let backend = |more: &str| format!("[backends.b]\n{more}\n");
    let server = |more: &str| backend(&format!("kind = \"openai\"\nmodel = \"m\"\n{more}"));
    let runner = |more: &str| {
        format!("[backends.b]\nkind = \"echo\"\n[[runners]]\nname = \"r\"\ndataset = \"d\"\n{more}")
    };
    let gate = |gate: &str| runner(&format!("gates = {{ {gate} }}"));
    let mut suites: Vec<String> = SUITES.iter().map(|it| (*it).to_owned()).collect();
    suites.extend(SHELL.iter().map(|it| format!("[shell]\n{it}\n")));
    suites.extend(POLICIES.iter().map(|it| format!("[[policies]]\nname = \"p\"\n{it}\n")));
    suites.extend(BACKENDS.iter().map(|it| backend(it)));
    let kinds = BackendKind::ALL.map(BackendKind::as_str);
    suites.extend(kinds.iter().map(|it| backend(&format!("kind = \"{it}\""))));
    suites.extend(kinds.iter().map(|it| backend(&format!("kind = \"{it}\"\nmodel = \"m\""))));
    suites.extend(SERVERS.iter().map(|it| server(it)));
    suites.extend(RUNNERS.iter().map(|it| runner(it)));
    suites.extend(GATES.iter().map(|it| gate(it)));
    let bare =
        |more: String| format!("[backends.b]\nkind = \"echo\"\n[[runners]]\nname = \"r\"\n{more}");
    suites.extend(keys_of_kinds().into_iter().map(bare));
    suites.extend(gates_of_kinds());
    let mut differ = Vec::new();
    let mut sound = 0;
    for text in &suites {
        let is_taken = Schema::named("suite").takes(&toml::from_str(text).unwrap());
        match (is_taken, is_sound(text)) {
            (true, true) => sound += 1,
            (false, false) => {}
            (is_taken, _) => differ.push(format!("the schema says {is_taken} to\n{text}")),
        }
    }
    assert!(differ.is_empty(), "{}", differ.join("\n\n"));
    let unsound = suites.len() - sound;
    assert!(sound > 40 && unsound > 60, "{sound} sound suites and {unsound} others");
}

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
        let wrong: Vec<&Value> = problems.iter().filter(|it| it["line"] == at + 1).collect();
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
        assert(json!({ "type": "bleu" })),
        assert(json!({ "type": "rouge_l", "value": "a", "stemmer": true })),
        assert(json!({ "type": "rouge-1", "value": {} })),
        assert(json!({ "type": "chrf", "value": "a", "word_order": 1 })),
        assert(json!({ "type": "is-sql", "value": "sqlite" })),
        assert(json!({ "type": "is-sql", "value": "cobol" })),
        assert(json!({ "type": "is-xml" })),
        assert(json!({ "type": "is-xml", "value": "a" })),
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
    let cases = [
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
