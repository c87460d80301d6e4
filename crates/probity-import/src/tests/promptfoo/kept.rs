//! What an import must not lose, change or give away in silence.

use super::*;

const TEXT: &str = "\"Say {{q}}\"";
const CHAT: &str = r#"'[{"role": "user", "content": "{{q}}"}]'"#;
const HTTP: &str = "{ id: http, config: { url: 'https://a.example', body: { q: '{{ prompt }}' } } }";

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
    lost 3: `transform: file://x.js` after `transformResponse` (write both as one `transform`)
    transform = """
    "#);
}
