//! Providers and prompts of promptfoo, as a suite says them.

use std::fs;

use super::*;

mod derived;
mod habits;
mod kept;
mod scored;
mod sent;

/// The notes and the suite of a configuration.
fn suite(config: &str, files: &[(&str, &str)]) -> String {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files.iter().chain(&[("promptfooconfig.yaml", config)]) {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let (draft, notes) = match import(folder.path(), &Options::default()) {
        Ok(Outcome { draft, notes, .. }) => (draft, notes),
        Err(ImportError::Shape { what, notes }) => return format!("{what}\n{}", told(&notes)),
        Err(error) => return error.to_string(),
    };
    format!("{}{}", told(&notes), write::render(&draft, "").suite)
}

fn told(notes: &Notes) -> String {
    let mut shown = String::new();
    for Note { at, what, lost, advice, .. } in notes.iter() {
        let _ =
            writeln!(shown, "{}{}: {what} ({advice})", if *lost { "lost " } else { "" }, at.line);
    }
    shown
}

/// The part of a suite with its backends.
fn backends(providers: &str) -> String {
    let config = format!(
        "prompts: [\"{{{{q}}}}\"]\ntests: [{{ vars: {{ q: hi }} }}]\nproviders:\n{providers}"
    );
    let all = suite(
        &config,
        &[("run.sh", "echo $KEY"), ("p.py", "import os\nK = os.environ['MY_KEY']\n")],
    );
    all.split("\n[[runners]]").next().unwrap().to_owned()
}

#[test]
fn settings_of_providers_are_those_of_backends() {
    insta::assert_snapshot!(backends(
        r#"
  - id: openai:chat:gpt-4o
    label: main
    config:
      temperature: 0.3
      top_p: 0.9
      stop: ["END"]
      seed: 7
      presence_penalty: 0.5
      response_format: { type: json_schema, json_schema: { name: x, schema: { type: object } } }
      apiKey: "{{env.OTHER_KEY}}"
      passthrough: { custom: { a: 1 } }
      headers: { X-Team: "{{ env.TEAM }}" }
      nonsense: 1
  - id: openai:responses:gpt-5
    config: { max_output_tokens: 99, reasoning: { effort: low }, temperature: 1 }
  - anthropic:messages:claude-sonnet-4-5: { config: { thinking: { type: enabled, budget_tokens: 1024 }, max_tokens: 4096 } }
  - id: azure:chat:mine
    config: { apiHost: mine.openai.azure.com, apiVersion: 2024-10-21 }
  - id: google:gemini-2.5-flash
    config: { generationConfig: { maxOutputTokens: 5, thinkingConfig: { thinkingBudget: 0 } } }
  - id: vertex:gemini-2.5-pro
    config: { projectId: p, region: europe-west1 }
  - id: bedrock:us.amazon.nova-lite-v1:0
    config: { region: eu-west-1, inferenceConfig: { maxTokens: 3, temperature: 0 } }
  - id: ollama:chat:llama3.2
    config: { num_predict: 10, num_ctx: 100 }
  - deepseek:deepseek-chat
  - moonshot:kimi-k2
"#
    ));
}

#[test]
fn code_and_servers_of_ones_own_are_backends() {
    insta::assert_snapshot!(backends(r#"
  - id: file://p.py:ask
    config: { tone: kind, host: "{{env.HOST}}" }
  - python:p.py
  - "exec:bash run.sh --x 'a b'"
  - id: http
    config:
      request: |
        POST /chat?q={{q}} HTTP/1.1
        Host: app.example
        Content-Type: application/json

        {"text": "{{prompt}}"}
      transformResponse: "json.choices[0].text"
  - id: https://other.example/api
    config:
      method: POST
      headers: { X-Api-Key: "{{env.K}}" }
      body: { messages: "{{prompt}}", none: null }
      auth: { type: bearer, token: "{{env.TOKEN}}" }
      transformResponse: "json.a || text"
  - webhook:https://hook.example/x
  - elevenlabs:tts
  - file://none.py
"#), @r#"
5: `p.py` sees these variables of the environment: MY_KEY (add others that it needs to `env` of [backends.p.py])
7: `p.py` sees these variables of the environment: MY_KEY (add others that it needs to `env` of [backends.p.py-2])
8: the program is run in an empty folder, and is not told the variables of the test (name files from `{{suite_dir}}`)
8: `bash run.sh --x 'a b'` sees no variables of the environment: none is found in its code (add others that it needs to `env` of [backends.program])
lost 26: provider `elevenlabs:tts` is speech, which no backend is (describe another backend, see docs/backends.md)
lost 27: `none.py` cannot be read: No such file or directory (os error 2) (check the path; it starts from the folder of the configuration)
# From promptfooconfig.yaml, by `probity import`.
#
# Not carried over:
# - promptfooconfig.yaml:26: provider `elevenlabs:tts` is speech, which no backend is
# - promptfooconfig.yaml:27: `none.py` cannot be read: No such file or directory (os error 2)
version = "1"

# A reply that declines is a reply like any other.
[refusal]
detect = false

[backends."p.py"]
kind = "python"
file = "p.py:ask"
config = { tone = "kind", host = "{{ env.HOST }}" }
env = ["MY_KEY"]

[backends."p.py-2"]
kind = "python"
file = "p.py"
env = ["MY_KEY"]

[backends.program]
kind = "command"
command = ["bash", "{{suite_dir}}/run.sh", "--x", "a b", "{{prompt}}", "{}", "{}"]

[backends.http]
kind = "http"
url = "https://app.example/chat?q={{q}}"
method = "POST"
headers = { content-type = "application/json" }
body = '{"text": "{{prompt}}"}'
reply = "/choices/0/text"

[backends.http-2]
kind = "http"
api_key_env = "TOKEN"
url = "https://other.example/api"
method = "POST"
headers = { X-Api-Key = "{{env.K}}" }
body = '{"messages":"{{prompt}}","none":null}'

[backends.http-3]
kind = "http"
url = "https://hook.example/x"
body = { prompt = "{{ prompt }}" }
reply = "/output"
"#);
}

#[test]
fn prompts_are_variants() {
    let config = r#"
providers: [echo, { id: openai:o3, prompts: [named] }]
prompts:
  - "Is {{a}}/2 = 1? {{ list.length }}"
  - file://all/*.txt
  - { id: file://chat.yaml, label: named }
  - { raw: '{"ask": "{{a}}"}', label: as json, config: { temperature: 0.1, response_format: { type: json_object } } }
  - file://make.js:fn
  - file://table.csv
  - "{{ a | nosuchfilter }}"
  - missing.txt
  - "Broken {{ a"
tests:
  - vars: { a: 1, list: [{ x: 1 }], category: c }
  - vars: { a: 2 }
    prompts: [named]
"#;
    let files = [
        ("all/a.txt", "first {{a}}\n---\n\nsecond {{b}}\n"),
        ("all/b.txt", "third in {{category}}"),
        (
            "chat.yaml",
            "- role: system\n  content: be brief\n- role: user\n  content: 'Say {{a}}'\n",
        ),
        ("make.js", "module.exports = { fn: () => 'x' };"),
        ("table.csv", "prompt,label\n\"say {{a}}, please\",polite\n"),
    ];
    insta::assert_snapshot!(suite(config, &files));
}

#[test]
fn references_are_followed() {
    let config = r##"
prompts: ["{{q}}"]
providers: [{ $ref: "parts.yaml#/model" }]
definitions: { one: { vars: { q: hi }, assert: [{ $ref: "#/definitions/short" }] }, short: { type: contains, value: x } }
tests: [{ $ref: "#/definitions/one" }, { $ref: "#/nowhere" }]
"##;
    let files = [("parts.yaml", "model: { id: openai:gpt-4o, label: m }\n")];
    insta::assert_snapshot!(suite(config, &files), @r#"
    lost 5: `$ref: #/nowhere` leads nowhere (write out what it means)
    # From promptfooconfig.yaml, by `probity import`.
    #
    # Not carried over:
    # - promptfooconfig.yaml:5: `$ref: #/nowhere` leads nowhere
    version = "1"

    # A reply that declines is a reply like any other.
    [refusal]
    detect = false

    # openai:gpt-4o
    [backends.m]
    kind = "openai"
    model = "gpt-4o"
    temperature = 0.0
    max_tokens = 1024

    [[runners]]
    name = "tests"
    dataset = "cases.yaml"
    backends = ["m"]
    prompt_vars = { q = "" }

    [[runners.prompts]]
    name = "prompt-1"
    template = "{{q}}"
    "#);
}

#[test]
fn services_with_an_interface_of_their_own_are_described() {
    insta::assert_snapshot!(backends(
        r#"
  - id: replicate:meta/llama-4-scout-instruct
    config: { temperature: 0.1, apiKey: "{{env.MINE}}", prompt: { prefix: "Q: " } }
  - replicate:replicate/hello:5c7d5
  - id: huggingface:text-generation:gpt2
    config: { apiEndpoint: "https://mine.example/generate", max_new_tokens: 9 }
  - id: n8n:https://flow.example/webhook/1
    config: { headers: { Authorization: "Bearer {{env.N8N}}" } }
  - id: sagemaker:jumpstart:mine
    config: { region: us-west-2, maxTokens: 256, responseFormat: { path: json.generated_text } }
  - sagemaker:anthropic:mine
  - id: cloudflare-gateway:anthropic:claude-haiku-4-5
    config: { accountId: "{{env.MY_ACCOUNT}}", gatewayId: main }
  - cloudflare-ai:chat:@cf/meta/llama-3
  - id: litellm:gpt-4o
    config: { apiBaseUrl: "https://{{env.PROXY}}/v1" }
  - id: anthropic:messages:claude-sonnet-4-6
    config: { effort: low, output_format: { type: json_schema, schema: { type: object } } }
"#
    ));
}

/// What is sent by default must not take the place of what the configuration says.
#[test]
fn numbers_of_sagemaker_are_read_or_listed() {
    let shown = backends(
        r#"
  - id: sagemaker:mine
    config: { modelType: llama, maxTokens: "{{ env.MOST }}", temperature: "0.1", topP: half }
"#,
    );
    let lost: Vec<&str> = shown.lines().filter(|it| it.starts_with("lost")).collect();
    assert_eq!(
        lost,
        [
            "lost 6: `topP: half` is not a number that can be used (write the number)",
            "lost 6: `maxTokens: {{ env.MOST }}` is not a number that can be used (write the number)",
        ],
        "{shown}"
    );
    assert!(shown.contains("temperature = 0.1"), "{shown}");
}

#[test]
fn functions_are_told_what_they_are_told() {
    let config = "prompts: [file://p.py]\nproviders: [echo]\n\
                  tests: [{ path: file://t.py, config: { count: 2 } }]\n\
                  defaultTest: { options: { providers: [x], showOutput: true } }\n";
    let files = [("p.py", "print('hi')\n"), ("t.py", "def generate_tests(config): return []\n")];
    insta::assert_snapshot!(suite(config, &files));
}

#[test]
fn settings_may_stand_in_files_and_variables() {
    let config = r#"
prompts: ["{{q}}"]
tests: [{ vars: { q: hi } }]
providers:
  - id: https://app.example/chat
    config: { body: file://body.json, transformResponse: json.a }
  - id: file://p.py
    config: { key: "{{env.MY_KEY}}", url: "https://{{env.HOST}}/x", own: "{{ name }}", rules: file://rules.yaml, f: file://p.py:f }
"#;
    let files = [
        ("body.json", r#"{"text": "{{prompt}}"}"#),
        ("p.py", "def call_api(*all): pass\n"),
        ("rules.yaml", "- be kind\n"),
    ];
    let all = suite(config, &files);
    insta::assert_snapshot!(all.split("\n[[runners]]").next().unwrap());
}
