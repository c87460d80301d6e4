//! What an import must not lose, change or give away in silence.

use super::*;

const TEXT: &str = "\"Say {{q}}\"";
const CHAT: &str = r#"'[{"role": "user", "content": "{{q}}"}]'"#;
const HTTP: &str =
    "{ id: http, config: { url: 'https://a.example', body: { q: '{{ prompt }}' } } }";

/// Lines of a suite that begin in one of these ways.
fn lines(suite: &str, starts: &[&str]) -> String {
    let chosen = suite.lines().filter(|line| starts.iter().any(|it| line.starts_with(it)));
    chosen.collect::<Vec<_>>().join("\n")
}

#[test]
fn conversations_are_sent_to_a_server_that_takes_a_text_in_every_group() {
    let config = format!(
        "prompts: [{CHAT}]\nproviders: [{HTTP}]\ntests:\n\
         - {{ vars: {{ q: a }} }}\n- {{ vars: {{ q: b }}, options: {{ repeat: 2 }} }}\n"
    );
    insta::assert_snapshot!(lines(&suite(&config, &[]), &["lost", "[[", "body", "backends", "dataset"]), @r#"
    body = { q = "{{ messages }}" }
    [[runners]]
    dataset = "cases.yaml"
    backends = ["http"]
    [[runners.prompts]]
    [[runners]]
    dataset = "cases-2.yaml"
    backends = ["http"]
    [[runners.prompts]]
    "#);
}

#[test]
fn texts_and_conversations_have_a_backend_each() {
    let config = format!(
        "prompts: [{CHAT}, {TEXT}]\nproviders: [{HTTP}]\ntests:\n\
         - {{ vars: {{ q: a }}, prompts: [prompt-1] }}\n- {{ vars: {{ q: b }}, prompts: [prompt-2] }}\n"
    );
    insta::assert_snapshot!(lines(&suite(&config, &[]), &["lost", "[", "body", "backends", "dataset", "name"]), @r#"
    [refusal]
    [backends.http]
    body = { q = "{{ prompt }}" }
    [backends.http-chat]
    body = { q = "{{ messages }}" }
    [[runners]]
    name = "tests"
    dataset = "cases.yaml"
    backends = ["http-chat"]
    [[runners.prompts]]
    name = "prompt-1"
    [[runners]]
    name = "tests-2"
    dataset = "cases-2.yaml"
    backends = ["http"]
    [[runners.prompts]]
    name = "prompt-2"
    "#);
}

#[test]
fn of_two_transforms_that_cannot_be_one_the_other_is_noted() {
    let config = "\
prompts: ['{{q}}']
providers: [{ id: openai:gpt-4o, transform: 'file://x.js' }]
defaultTest: { options: { transform: output.trim() } }
tests: file://gen.py
";
    let files = [("x.js", "module.exports = (x) => x;"), ("gen.py", "")];
    insta::assert_snapshot!(lines(&suite(config, &files), &["lost", "transform"]), @r#"
    lost 4: the transform of the provider `openai:gpt-4o` before that of a test (write both as one `transform`)
    transform = "output.trim()"
    "#);
    let config = "\
prompts: ['{{q}}']
providers:
  - id: http
    transform: file://x.js
    config: { url: 'https://a.example', body: '{{prompt}}', transformResponse: 'json.a || text' }
tests: [{ vars: { q: hi } }]
";
    insta::assert_snapshot!(lines(&suite(config, &files), &["lost", "transform"]), @r#"
    lost 3: `transform: file://x.js` after that of the replies (write both as one `transform`)
    transform = """
    "#);
}

#[test]
fn keys_are_not_copied_nor_sent_elsewhere() {
    let shown = backends(
        r#"
  - { id: moonshot:kimi-k2, config: { apiKey: hidden-1 } }
  - { id: moonshot:kimi-k3, config: { apiKey: hidden-1, apiBaseUrl: "http://other.example/v1" } }
  - { id: openai:x, config: { apiKey: hidden-2, apiBaseUrl: "http://my-vllm/v1", headers: { Api-Token: hidden-0 } } }
  - id: http
    config:
      request: |
        POST /chat HTTP/1.1
        Host: app.example
        Authorization: Bearer hidden-3

        {"text": "{{prompt}}"}
  - id: https://other.example/api
    config:
      headers: { Authorization: "Bearer hidden-4" }
      queryParams: { api_key: hidden-5, keyword: shown-1 }
      body: { q: "{{prompt}}", max_tokens: 5, account: [{ secret: hidden-6 }] }
      auth: { type: bearer, token: hidden-7 }
  - { id: "webhook:https://hook.example/x", config: { apiToken: hidden-8, tone: shown-2 } }
  - { id: "file://p.py", config: { apiToken: hidden-9, nested: { password: hidden-9 }, tone: shown-3 } }
  - { id: "exec:bash run.sh", config: { password: hidden-10, tone: shown-4 } }
  - { id: "huggingface:text-generation:gpt2", config: { apiKey: hidden-11, apiEndpoint: "https://own.example" } }
  - { id: "replicate:a/b", config: { hf_token: hidden-12, top_k: 3, auth: { token: hidden-13 }, api_keys: [hidden-14] } }
"#,
    );
    assert!(!shown.contains("hidden"), "{shown}");
    insta::assert_snapshot!(shown);
}

#[test]
fn what_functions_make_is_judged_by_a_judge() {
    let config = "\
prompts: ['{{q}}']
providers: [openai:gpt-4o]
defaultTest: { assert: [{ type: is-refusal }] }
tests: file://gen.py
";
    let suite = suite(config, &[("gen.py", "")]);
    let starts = ["4:", "detect", "[[runners]]", "dataset", "judge", "embeddings", "rubric_prompt"];
    insta::assert_snapshot!(lines(&suite, &starts), @r#"
    4: nobody is named who judges: promptfoo's usual model does, `gpt-5.5-2026-04-23` (name another under [backends.judge])
    4: nobody is named who embeds texts: promptfoo's usual model does, `text-embedding-3-large` (name another under [backends.embeddings])
    [[runners]]
    dataset = "file://gen.py:generate_tests"
    judge = "judge"
    rubric_prompt = """
    embeddings = "embeddings"
    "#);
}

#[test]
fn what_all_tests_share_is_said_by_their_runners() {
    let config = "\
prompts: ['{{n}} {{document}}']
providers: [echo]
defaultTest: { vars: { document: long }, threshold: 0.5, assert: [{ type: contains, value: x }] }
tests: [{ vars: { n: 1 } }, { vars: { n: 2 }, options: { disableDefaultAsserts: true } }]
";
    let starts = ["[[runners]]", "dataset", "prompt_vars", "assert", "threshold"];
    insta::assert_snapshot!(lines(&suite(config, &[]), &starts), @r#"
    [[runners]]
    dataset = "cases.yaml"
    prompt_vars = { document = "long" }
    assert = [{ type = "contains", value = "x" }]
    threshold = 0.5
    [[runners]]
    dataset = "cases-2.yaml"
    prompt_vars = { document = "long" }
    threshold = 0.5
    "#);
}

#[test]
fn ids_of_conversations_are_found_in_the_body() {
    let session = |script: &str| {
        let shown = backends(&format!(
            "  - {{ id: 'https://a.example', config: {{ body: {{ q: '{{{{prompt}}}}', s: '{{{{sessionId}}}}' }}, \
             sessionParser: \"{script}\" }} }}\n"
        ));
        lines(&shown, &["lost", "session"])
    };
    assert_eq!(session("data.body.sessionId"), r#"session = "/sessionId""#);
    assert_eq!(session("(data) => data.body.chat.id"), r#"session = "/chat/id""#);
    for other in ["data.headers['x-session']", "data.bodyguard.id", "(data) => data.body.id.trim()"]
    {
        assert!(session(other).starts_with("lost 4: `sessionParser`"), "{other}");
    }
}

#[test]
fn an_assertion_may_stand_alone_and_anything_else_is_noted() {
    let config = "\
prompts: ['{{q}}']
providers: [echo]
tests:
  - { vars: { q: a }, assert: { type: contains, value: x } }
  - { vars: { q: b }, assert: contains }
  - { vars: { q: c }, assert: null }
  - { vars: { q: d }, assert: 'file://none.yaml' }
  - { vars: { q: e }, assert: 'file://some.yaml' }
";
    let files = [("some.yaml", "- { type: equals, value: y }\n")];
    insta::assert_snapshot!(cases(config, &files), @r#"
    lost 5: an assertion without a type (docs/datasets.md lists the assertions that there are)
    lost 7: `none.yaml` cannot be read: No such file or directory (os error 2) (check the path; it starts from the folder of the configuration)
    {"id":"test-1","prompt_vars":{"q":"a"},"assert":[{"type":"contains","value":"x"}]}
    {"id":"test-2","prompt_vars":{"q":"b"}}
    {"id":"test-3","prompt_vars":{"q":"c"}}
    {"id":"test-4","prompt_vars":{"q":"d"}}
    {"id":"test-5","prompt_vars":{"q":"e"},"assert":[{"type":"equals","value":"y"}]}
    "#);
}

/// The notes and the cases of a configuration.
fn cases(config: &str, files: &[(&str, &str)]) -> String {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files.iter().chain(&[("promptfooconfig.yaml", config)]) {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let Outcome { draft, notes, .. } = import(folder.path(), &Options::default()).unwrap();
    let cases = draft.datasets.iter().flat_map(|it| &it.cases).map(|it| it.case.to_json());
    format!("{}{}", told(&notes), cases.collect::<Vec<_>>().join("\n"))
}

#[test]
fn without_its_variables_the_default_test_still_asserts() {
    let config = "\
prompts: ['{{q}}']
providers: [echo]
defaultTest: { vars: 'file://none.yaml', threshold: 0.5, assert: [{ type: contains, value: x }] }
tests: [{ vars: { q: a } }]
";
    insta::assert_snapshot!(lines(&suite(config, &[]), &["lost", "assert", "threshold"]), @r#"
    lost 3: there is no file `none.yaml` with variables (check the path)
    assert = [{ type = "contains", value = "x" }]
    threshold = 0.5
    "#);
}

#[test]
fn what_stands_around_conversations_is_noted() {
    let config = format!(
        "prompts: [{CHAT}, {TEXT}]\nproviders: [echo]\n\
         tests: [{{ vars: {{ q: a }}, options: {{ prefix: 'Please: ' }} }}]\n"
    );
    insta::assert_snapshot!(lines(&suite(&config, &[]), &["lost", "template"]), @r#"
    lost 3: `prefix` and `suffix` around the messages of `prompt-1` (write them into the messages)
    template = "Please: Say {{q}}"
    "#);
}

#[test]
fn settings_that_cannot_be_used_are_noted() {
    let shown = backends(
        r#"
  - { id: openai:a, config: { temperature: "{{ env.T }}", seed: -1, organization: org-1, provider: x } }
  - { id: openai:b, config: { temperature: "{{ env.T | default('0.5') }}", max_tokens: many } }
  - { id: openrouter:c, config: { provider: { order: [z] } } }
"#,
    );
    insta::assert_snapshot!(shown.split("[refusal]").next().unwrap(), @r#"
    lost 5: `temperature: {{ env.T }}` is not a number that can be used (write the number)
    lost 5: `seed: -1` is not a number that can be used (write the number)
    5: the header `OpenAI-Organization` takes its value from a variable (set the variable `A_OPENAI_ORGANIZATION` with the value `org-1`)
    lost 6: `max_tokens: many` is not a number that can be used (write the number)
    # From promptfooconfig.yaml, by `probity import`.
    #
    # Not carried over:
    # - promptfooconfig.yaml:5: `temperature: {{ env.T }}` is not a number that can be used
    # - promptfooconfig.yaml:5: `seed: -1` is not a number that can be used
    # - promptfooconfig.yaml:6: `max_tokens: many` is not a number that can be used
    version = "1"

    # A reply that declines is a reply like any other.
    "#);
    let starts = ["[backends", "temperature", "seed", "extra", "headers", "provider"];
    insta::assert_snapshot!(lines(&shown, &starts), @r#"
    [backends.a]
    headers_env = { OpenAI-Organization = "A_OPENAI_ORGANIZATION" }
    temperature = 0.0
    [backends.b]
    temperature = 0.5
    [backends.c]
    temperature = 0.0
    extra_body = { provider = { order = ["z"] } }
    "#);
}

#[test]
fn files_outside_are_told_as_such() {
    let config = "\
prompts: ['{{q}}']
providers: [echo]
tests:
  - file://../tests.yaml
  - { vars: 'file://../vars.yaml' }
  - { vars: { q: a } }
";
    insta::assert_snapshot!(lines(&suite(config, &[]), &["lost"]), @r"
    lost 4: `../tests.yaml` is outside the folder of the configuration (import again with --allow-outside if it may be read)
    lost 5: `../vars.yaml` is outside the folder of the configuration (import again with --allow-outside if it may be read)
    ");
}

#[test]
fn columns_of_a_table_are_variables_whatever_their_names() {
    let config = "prompts: ['{{q}} {{description}}']\nproviders: [echo]\ntests: file://t.csv\n";
    let table = "q,description,options\nhi,a word,none\n";
    insta::assert_snapshot!(cases(config, &[("t.csv", table)]), @r#"{"id":"test-1","prompt_vars":{"description":"a word","options":"none","q":"hi"}}"#);
    insta::assert_snapshot!(imported(Origin::Promptfoo, "t.csv", "prompt,path,vars\nhi,x.yaml,none\n"), @r#"
    {"id":"test-1","prompt":"hi","prompt_vars":{"path":"x.yaml","vars":"none"}}
    t.csv:1: no model is named: the backend `echo` repeats what it is asked
    "#);
}

#[test]
fn files_that_name_each_other_are_not_followed_without_end() {
    let config = "\
prompts: ['{{q}}']
providers: [{ id: openai:a, config: { passthrough: { more: file://a.json } } }]
tests: [{ vars: { q: a } }]
";
    let names = vec!["\"file://a.json\""; 400].join(",");
    let shown = suite(config, &[("a.json", &format!("[{names}]"))]);
    let told = "lost 1: the files that values name mean too many values (name each file once)";
    assert_eq!(lines(&shown, &["lost"]), told);
}

/// Each value alone is within the bound.
#[test]
fn all_files_that_values_name_are_bounded_together() {
    let config = |names: usize| {
        let names = vec!["file://list.json"; names].join(", ");
        format!(
            "prompts: ['{{{{q}}}}']\nproviders: [{{ id: 'http://h', config: {{ body: [{names}] }} }}]\n\
             tests: [{{ vars: {{ q: a }} }}]\n"
        )
    };
    let list = format!("[{}]", vec!["1"; 9_999].join(","));
    let files = [("list.json", list.as_str())];
    let told = "lost 2: the files that values name mean too many values (name each file once)";
    assert_eq!(lines(&suite(&config(101), &files), &["lost"]), told);
    assert_eq!(lines(&suite(&config(9), &files), &["lost"]), "");
}

/// Reading it again each time would be reading too much.
#[test]
fn a_file_that_many_values_name_is_read_once() {
    let names = vec!["file://name.txt"; 140_000].join(", ");
    let config = format!(
        "prompts: ['{{{{q}}}}']\nproviders: [{{ id: 'http://h', config: {{ body: [{names}] }} }}]\n\
         tests: [{{ vars: {{ q: a }} }}]\n"
    );
    assert_eq!(lines(&suite(&config, &[("name.txt", "x")]), &["lost"]), "");
}

#[test]
fn scenarios_have_a_limited_number_of_tests() {
    let several = |of: &str| vec![format!("{{ vars: {{ {of}: x }} }}"); 101].join(", ");
    let config = format!(
        "prompts: ['{{{{q}}}}']\nproviders: [echo]\ntests: [{{ vars: {{ q: a }} }}]\n\
         scenarios: [{{ config: [{}], tests: [{}] }}]\n",
        several("a"),
        several("q")
    );
    let told = "lost 4: a scenario has more than 10000 tests (write fewer configurations, or several scenarios)";
    assert_eq!(lines(&suite(&config, &[]), &["lost"]), told);
}

#[test]
fn a_provider_called_judge_does_not_judge_itself() {
    let config = "\
prompts: ['{{q}}']
providers: [{ id: openai:a, label: judge }]
tests: [{ vars: { q: a }, assert: [{ type: llm-rubric, value: polite }] }]
";
    insta::assert_snapshot!(lines(&suite(config, &[]), &["[backends", "backends", "judge", "model"]), @r#"
    [backends.judge]
    model = "a"
    [backends.judge-2]
    model = "gpt-5.5-2026-04-23"
    backends = ["judge"]
    judge = "judge-2"
    "#);
}

#[test]
fn functions_that_make_tests_are_told_no_keys() {
    let config = "\
prompts: ['{{q}}']
providers: [echo]
tests: [{ path: 'file://gen.py', config: { count: 3, access: [{ apiToken: hidden }] } }]
";
    insta::assert_snapshot!(lines(&suite(config, &[("gen.py", "")]), &["lost", "dataset"]), @r#"
    lost 3: the key `apiToken` in the `config` of `gen.py:generate_tests` (have the code read it from a variable)
    dataset = "file://gen.py:generate_tests"
    dataset_config = { count = 3, access = [{}] }
    "#);
}
