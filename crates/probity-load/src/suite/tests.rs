use super::*;
use probity_core::kind::RunnerKind;

fn parse(text: &str) -> (Option<Suite>, Vec<String>) {
    let file: Arc<str> = "suite.toml".into();
    let (suite, problems) = Suite::parse(text, &file, Path::new("folder"), &|_| Vec::new());
    (suite, problems.into_iter().map(|problem| problem.message).collect())
}

#[test]
fn the_suite_of_the_documentation_loads() {
    let text = r#"
version = "1"

[backends.local]
kind = "openai"
base_url = "http://127.0.0.1:8080/v1"
model = "smollm2"
api_key_env = "LOCAL_KEY"
temperature = 0
max_tokens = 256
max_concurrency = 64

[[runners]]
name = "shell"
kind = "command"
dataset = "cases/shell.toml"
backends = ["local"]
system = "Reply with one shell command and nothing else."
prompt = "{{ prompt }}"
repeat = 1
gates = { csr = { pass = 0.948, warn = 0.90 } }

[retry]
max_retries = 3
backoff_base = 2.0
backoff_jitter = 0.5

[timeouts]
attempt = "120s"
case = "10m"
probe = "15s"

[budget]
max_cost_usd = 5.0
max_calls = 500

[fail_fast]
enabled = true
threshold = 3

[[policies]]
name = "hate_speech"
words = ["..."]
"#;
    let (suite, problems) = parse(text);
    assert_eq!(problems, [""; 0]);
    let suite = suite.unwrap();
    let backend = suite.backend("local").unwrap();
    assert_eq!((backend.kind, backend.sampling.max_tokens), (BackendKind::Openai, Some(256)));
    let runner = &suite.runners[0];
    assert_eq!((runner.kind, runner.repeat), (RunnerKind::Command, 1));
    assert_eq!(runner.dataset, ["cases/shell.toml"]);
    let settings = crate::settings::Resolved::of([suite.settings]).settings();
    assert_eq!(settings.budget.max_calls, Some(500));
}

#[test]
fn a_runner_without_backends_has_all_of_them() {
    let text = "[backends.b]\nkind = \"echo\"\n[backends.a]\nkind = \"echo\"\n\
                [[runners]]\nname = \"r\"\ndataset = [\"x.jsonl\", \"y.jsonl\"]\n";
    let (suite, problems) = parse(text);
    assert_eq!(problems, [""; 0]);
    let runner = &suite.unwrap().runners[0];
    assert_eq!(runner.kind, RunnerKind::Respond);
    assert_eq!((runner.dataset.len(), runner.backends.join(" ")), (2, "b a".to_owned()));
}

#[test]
fn a_model_in_this_process_is_named_once() {
    let of = |keys: &str| {
        let text = format!(
            "[backends.m]\nkind = \"embedded\"\n{keys}\n\
             [[runners]]\nname = \"r\"\ndataset = \"d.jsonl\"\n"
        );
        parse(&text)
    };
    let (suite, problems) =
        of("file = \"m.gguf\"\ncontext = 512\nthreads = 2\nresponse_format = \"json\"");
    assert_eq!(problems, [""; 0]);
    let suite = suite.unwrap();
    let backend = suite.backend("m").unwrap();
    assert_eq!((backend.embedded.context, backend.embedded.threads), (Some(512), Some(2)));
    assert_eq!(of("").1, ["backend `m` of kind `embedded` needs `model` or `file`"]);
    assert_eq!(of("model = \"a\"\nfile = \"b\"").1, ["backend `m` has both `model` and `file`"]);
    assert_eq!(
        of("model = \"a\"\nbase_url = \"http://h/v1\"\nstream = true").1,
        [
            "`base_url` does not apply to a backend of kind `embedded`",
            "`stream` does not apply to a backend of kind `embedded`",
        ]
    );
    assert_eq!(
        of("model = \"a\"\ngrammar = \"root ::= [a]\"\nresponse_format = \"json\"").1,
        ["`grammar` and `response_format` both say what answers look like"]
    );
    assert_eq!(of("model = \"a\"\nthreads = 0").1.len(), 1);
}

#[test]
fn what_a_suite_cannot_mean_is_said() {
    let text = r#"
version = "2"
[backends.p]
kind = "command"
[backends.q]
kind = "command"
command = ["x"]
output = "json"
[backends.r]
kind = "replay"
[[runners]]
name = "r"
dataset = "d.jsonl"
backends = []
prompt = "{{ open"
user = { instructions = "{% if" }
[[runners.assert]]
type = "assert-set"
assert = [{ type = "contains-any", value = ["a", "{{ b"] }, { type = "javascript", value = "`{{`" }]
[[runners.assert]]
type = "context-recall"
value = "a"
context = "{% for"
[[runners]]
name = "r"
kind = "dance"
"#;
    let (suite, problems) = parse(text);
    assert!(suite.is_none());
    insta::assert_debug_snapshot!(problems, @r#"
    [
        "suite version `2` is not known to this program",
        "backend `p` of kind `command` needs `command`",
        "output `json` needs `output_pointer`, such as \"/result\"",
        "backend `r` of kind `replay` needs `file`",
        "a runner needs a backend",
        "`contains-any` cannot be used as a template: unexpected end of input, expected end of variable block",
        "`context-recall` cannot be used as a template: unexpected end of input, expected identifier",
        "`prompt` cannot be used as a template: unexpected end of input, expected end of variable block",
        "`instructions` cannot be used as a template: unexpected end of input, expected expression",
        "unknown kind of runner `dance`",
    ]
    "#);
}

/// Everything that problems with a suite say and show.
fn told(file: &str, text: &str) -> String {
    let (suite, problems) = Suite::parse(text, &file.into(), Path::new(""), &|_| Vec::new());
    assert!(suite.is_none(), "{text}");
    serde_json::to_string(&problems).unwrap()
}

#[test]
fn no_problem_shows_a_key() {
    let files = [
        ("s.toml", "[backends]\nc = { kind = \"openai\", api_key = \"sk-123\" }"),
        ("s.toml", "[backends]\nc = { kind = \"openai\", token = 77123, api_key = \"x\" }"),
        ("s.toml", "[backends.c]\nkind = \"openai\"\napi_key = \"sk-123"),
        ("s.toml", "[backends.c]\nmodel = \"m\"\n\"apikey\" = \"sk-123\" kind = \"openai\""),
        ("s.yaml", "backends: { c: { kind: openai, api_key: sk-123 } }"),
        ("s.yaml", "backends:\n  c:\n    api_key: sk-123\n    kind: openai"),
        ("s.yaml", "backends:\n  c:\n    api_key: sk-123\n    api_key: sk-123"),
        ("s.yaml", "backends:\n  c: { kind: openai, model: m, api_key: sk-123"),
        ("s.toml", "[backends.c]\nkind = \"vllm\"\nheaders_env = { x-a = \"Bearer sk-123\" }"),
        (
            "s.toml",
            "[backends.c]\nkind = \"python\"\nfile = \"f.py\"\nconfig = { apiKey = \"sk-123\" }",
        ),
        (
            "s.toml",
            "[backends]\nc = { kind = \"node\", config = { token = \"sk-123\" }, file = 1 }",
        ),
    ];
    for (file, text) in files {
        let told = told(file, text);
        assert!(!told.contains("123"), "{text}\n{told}");
    }
}

#[test]
fn a_field_that_is_empty_is_not_there() {
    let told = |text: &str| told("s.yaml", text);
    let backend = told("backends: { x: { kind: http, url: } }");
    assert!(backend.contains("backend `x` of kind `http` needs `url`"), "{backend}");
    let runner = told("runners: [{ name: r, dataset: }]");
    assert!(runner.contains("field `dataset` is missing"), "{runner}");
    let text = "backends: { x: { kind: echo, url: , command: , extra_body: } }\n\
                runners: [{ name: r, dataset: c.jsonl, skills: }]";
    let (suite, problems) = Suite::parse(text, &"s.yaml".into(), Path::new(""), &|_| Vec::new());
    assert!(suite.is_some(), "{problems:?}");
}

#[test]
fn a_judge_is_no_subject_however_it_is_named() {
    let backends = "[backends.a]\nkind = \"echo\"\n[backends.b]\nkind = \"echo\"\n";
    for judge in ["judge = \"b\"", "judges = \"b\"", "judges = [\"b\"]"] {
        let text = format!("{backends}[[runners]]\nname = \"r\"\ndataset = \"c.jsonl\"\n{judge}");
        let (suite, problems) = parse(&text);
        assert_eq!(problems, [""; 0]);
        assert_eq!(suite.unwrap().runners[0].backends, ["a"], "{judge}");
    }
}
