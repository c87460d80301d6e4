//! Suites by the schema and by the loader.

use std::sync::Arc;

use probity_core::{figures::Rate, kind::RunnerKind};
use probity_grade::Rules;
use probity_load::suite::{BackendKind, Suite};

use super::Schema;

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
    "kind = \"claude\"\nsandbox = true",
    "kind = \"claude\"\nsandbox = false",
    "kind = \"claude\"\nsandbox = 1",
    "kind = \"claude\"\nsandbox = { world = \"texts\", paths = [\"/opt/x\"], reach = [\"h\", \"h:8080\"] }",
    "kind = \"claude\"\nsandbox = { paths = [\"x\"] }",
    "kind = \"claude\"\nsandbox = { reach = [\"https://h\"] }",
    "kind = \"claude\"\nsandbox = { world = \"\" }",
    "kind = \"claude\"\nsandbox = { door = 1 }",
    "kind = \"echo\"\nsandbox = true",
    "kind = \"codex\"\noutput = \"json\"",
    "kind = \"codex\"\noutput = \"jsonl\"\noutput_pointer = \"/a\"",
    "kind = \"codex\"\noutput = \"text\"\noutput_pointer = \"/a\"",
    "kind = \"codex\"\noutput = \"xml\"",
    "kind = \"anthropic\"\nmodel = \"m\"\nextra_body = { seed = 1 }",
    "kind = \"http\"",
    "kind = \"http\"\nurl = \"http://h\"",
    "kind = \"http\"\nurl = \"http://h\"\naws_service = \"sagemaker\"",
    "kind = \"http\"\nurl = \"http://h\"\naws_service = \"sagemaker\"\napi_key_env = \"KEY\"",
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
    "kind = \"agent\"",
    "kind = \"agent\"\nworld = \"texts\"\nmax_steps = 1\nmax_seconds = 86400\nmax_tokens = 1",
    "kind = \"agent\"\nworld = \" \"",
    "kind = \"agent\"\nmax_steps = 0",
    "kind = \"agent\"\nmax_steps = 1001",
    "kind = \"agent\"\nmax_seconds = 0",
    "kind = \"agent\"\nmax_tokens = 0",
    "kind = \"agent\"\ntools = \"bash\"",
    "kind = \"agent\"\ntools = [\"bash\", \"write_file\"]",
    "kind = \"agent\"\ntools = [\"bash\", \"bash\"]",
    "kind = \"agent\"\ntools = [\"python\"]",
    "kind = \"agent\"\ntools = []",
    "kind = \"agent\"\ntools = [{ name = \"t\" }]",
    "kind = \"agent\"\nprotocol = \"text\"",
    "kind = \"agent\"\nprotocol = \"json\"",
    "kind = \"agent\"\ntool_choice = \"auto\"",
    "kind = \"agent\"\nresponse_format = \"json\"",
    "kind = \"agent\"\nexamples = \"d\"",
    "kind = \"agent\"\nuser = \"b\"",
    "max_steps = 3",
    "world = \"empty\"",
    "protocol = \"text\"",
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
