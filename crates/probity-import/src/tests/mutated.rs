//! Configurations that nobody wrote: no panic, no hang, nothing read outside their folder.

mod others;

use std::{fs, os::unix::fs::symlink, path::Path, time::Instant};

use proptest::prelude::*;

use super::*;

const CONFIG: &str = r##"
description: everything at once
env: { HOST: api.example, THE_API_KEY: abc }
x-shared: &shared { temperature: 0.5, max_tokens: 10 }
prompts:
  - "Say {{text}} in {{lang}}"
  - file://prompts/*.txt
  - file://chat.json
  - { raw: "- role: user\n  content: '{{ text }}'", label: yaml, config: { temperature: 1 } }
  - file://prompt.py:make
  - link.txt
  - ../secret.txt
providers:
  - echo
  - openai:gpt-4o: { config: *shared, prompts: [yaml], transform: output.trim() }
  - id: http
    config: { url: "https://{{env.HOST}}/x?{{text}}", body: { q: "{{prompt}}", n: null }, transformResponse: "json.a[0].b" }
  - { id: "exec:python run.py 'a b'", label: "a, b" }
  - file://providers.yaml
  - file://provider.py
  - bedrock:us.amazon.nova-lite-v1:0
defaultTest:
  vars: { lang: French, category: c }
  assert: [{ type: latency, threshold: 3000 }, { $ref: "#/assertionTemplates/short" }]
  options: { transform: "output.toUpperCase()", provider: openai:gpt-4o-mini }
assertionTemplates: { short: { type: javascript, value: "output.length < 5" } }
scenarios:
  - config: [{ vars: { lang: German } }, { vars: { lang: Dutch } }]
    tests: [{ vars: { text: hi } }]
tests:
  - vars: { text: [a, b, c], id: 7, extra: "{{text}} and {{lang}}", file: file://prompts/one.txt }
    threshold: 0.5
    assert:
      - { type: icontains, value: "{{lang}}", weight: 2, metric: m }
      - { type: llm-rubric, value: polite }
      - { type: assert-set, assert: [{ type: not-contains-any, value: [x, y] }] }
  - file://tests.csv
  - file://tests/*.jsonl
  - ../secret.csv
derivedMetrics:
  - { name: half, value: "m / (2 * __count)" }
  - { name: grade, value: "half > 0.5 and m >= 1 ? max(half, 1) : -half ^ 2" }
evaluateOptions: { maxConcurrency: 3, repeat: 2 }
"##;

/// Whatever an adapter does.
const ADAPTED: &str = r#"
nunjucksFilters: { loud: ./loud.js, other: ../secret.js }
prompts:
  - "Say {{ text | loud }}"
  - exec:./prompt.sh
  - langfuse://greeting:2
  - file://prompt.py:make
providers:
  - { id: "wss://user:pw@h.example/x?token=abc", config: { messageTemplate: '{"q": {{ prompt | dump }}}', transformResponse: "file://loud.js" } }
  - { id: mcp, config: { server: { command: node, args: [server.js], path: ./server.js }, apiKey: abc } }
  - { id: browser, config: { steps: [{ action: navigate, args: { url: "https://h.example/{{ prompt }}" } }] } }
  - { id: slack:C01, config: { token: "{{env.SLACK_BOT_TOKEN}}" } }
  - azure:assistant:asst_1
  - watsonx:ibm/granite
  - "transformers:text-generation:m"
  - "package:@scope/p:exported.fn"
  - id: https://h.example/ask
    config:
      body: { q: "{{ prompt }}" }
      signatureAuth: { type: pem, privateKeyPath: ./key.pem, signatureDataTemplate: "{{signatureTimestamp}}" }
      tls: { caPath: key.pem, certPath: cert.pem }
  - { id: "file://provider.py", config: { url: "https://u:p@h.example", made: "file://loud.js:config" } }
defaultTest:
  options: { transformVars: "({ ...vars, n: 1 })", provider: { embedding: "huggingface:sentence-similarity:m" } }
tests:
  - vars: { text: file://prompt.py, call: { function: loud.js } }
    assert:
      - { type: moderation, value: [hate], provider: "replicate:moderation:m" }
      - { type: classifier, provider: "huggingface:text-classification:m", value: safe, threshold: 0.5 }
      - { type: webhook, value: "https://h.example/{{ text }}?key=abc" }
      - { type: similar, value: "{{ text }}" }
      - { type: javascript, value: "file://loud.js" }
  - { vars: { text: b }, providerOutput: given, options: { transformVars: "file://loud.js" } }
  - file://tests.py
  - huggingface://datasets/o/d?split=test&limit=3
  - https://docs.google.com/spreadsheets/d/abc/edit?gid=1
  - https://h.example/t.csv?token=abc
  - file://tests.xlsx#Sheet1
"#;

/// What is put where something else was.
const ODD: &[&str] = &[
    "null",
    "[]",
    "{}",
    "-1",
    "1e999",
    "true",
    "''",
    "{{",
    "{% for x in y %}",
    "{{ a.b.c | dump }}",
    "&a [*a]",
    "file://",
    "file:///etc/passwd",
    "../secret.txt",
    "file://**/*",
    "[[[[[[]]]]]]",
    "\u{0}",
    "é\u{202e}",
    "{ $ref: '#' }",
    "{ $ref: '#/prompts' }",
    "{ $ref: '../secret.yaml' }",
    "python:../secret.py",
    "\"unclosed",
    "(((((",
    "file://link.txt",
    "{a,{b,{c,d}}}*",
    "99999999999999999999",
    "- role:",
    "!!binary x",
    "exec:",
    "}}",
    "%}",
    "!function x.y",
    "../outside.jsonl",
    "task: [sums, sums]",
    "include: base_yaml",
    "(?",
    "{{ q.strip('x').split()[99] }}",
    "{{ range(99999999) }}",
    "group_select: 7",
];

/// Writes a project, and what lies outside of it.
fn project(root: &Path) {
    let write = |name: &str, text: &str| {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    for name in ["secret.txt", "secret.csv", "secret.yaml", "secret.py"] {
        write(name, "id: secret\n");
    }
    write("in/prompts/one.txt", "One {{text}}\n---\nTwo {{text}}");
    write("in/chat.json", r#"[{"role": "user", "content": "{{text}}"}]"#);
    write("in/prompt.py", "raise SystemExit('never run')\n");
    write("in/provider.py", "raise SystemExit('never run')\n");
    write("in/providers.yaml", "- { id: groq:x, label: g }\n- file://providers.yaml\n");
    write("in/tests.csv", "text,__expected\nhi,icontains: hi\n");
    write("in/loud.js", "export default (it) => `${it}!${process.env.LOUD_NAME}`;\n");
    for name in ["in/tests.py", "in/prompt.sh", "in/key.pem", "in/cert.pem", "in/server.js"] {
        write(name, "raise SystemExit('never run')\n");
    }
    write("secret.js", "id: secret\n");
    write("in/tests.xlsx", "PK\u{3}\u{4} no workbook");
    write("in/tests/a.jsonl", "{\"vars\": {\"text\": \"x\"}}\n{\n");
    symlink(root.join("secret.txt"), root.join("in/link.txt")).unwrap();
}

#[derive(Clone, Debug)]
enum Change {
    Remove(usize),
    Repeat(usize),
    Replace(usize, usize),
    Put(usize, String),
    Cut(usize),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        any::<usize>().prop_map(Change::Remove),
        any::<usize>().prop_map(Change::Repeat),
        (any::<usize>(), any::<usize>()).prop_map(|(line, odd)| Change::Replace(line, odd)),
        (any::<usize>(), "[ -~\n]{1,6}").prop_map(|(at, text)| Change::Put(at, text)),
        any::<usize>().prop_map(Change::Cut),
    ]
}

fn changed(text: &str, changes: &[Change]) -> String {
    let mut text = text.to_owned();
    for change in changes {
        let mut lines: Vec<String> = text.lines().map(ToOwned::to_owned).collect();
        let count = lines.len().max(1);
        let boundary = |at: usize| {
            let at = at % (text.len() + 1);
            (0..=at).rev().find(|it| text.is_char_boundary(*it)).unwrap_or(0)
        };
        match change {
            Change::Remove(at) if !lines.is_empty() => drop(lines.remove(at % count)),
            Change::Repeat(at) if !lines.is_empty() => {
                lines.insert(at % count, lines[at % count].clone());
            }
            Change::Replace(at, odd) if !lines.is_empty() => {
                let line = &mut lines[at % count];
                let start = line.rfind([':', '-', '[', '{', ',']).map_or(0, |it| it + 1);
                line.replace_range(start.., &format!(" {}", ODD[odd % ODD.len()]));
            }
            Change::Put(at, put) => {
                text.insert_str(boundary(*at), put);
                continue;
            }
            Change::Cut(at) if *at % 5 == 0 => {
                text.truncate(boundary(*at));
                continue;
            }
            Change::Remove(_) | Change::Repeat(_) | Change::Replace(..) | Change::Cut(_) => {}
        }
        text = lines.join("\n");
    }
    text
}

/// Imports a text that is changed in many ways. `PROPTEST_CASES` says how many.
fn check_changed(text: &str) {
    let folder = tempfile::tempdir().unwrap();
    project(folder.path());
    let inside = folder.path().join("in").canonicalize().unwrap();
    let config = inside.join("promptfooconfig.yaml");
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let checked = runner.run(&prop::collection::vec(change(), 0..12), |changes| {
        fs::write(&config, changed(text, &changes)).unwrap();
        let started = Instant::now();
        let outcome = import(&config, &Options::default());
        prop_assert!(started.elapsed().as_secs() < 60, "it takes too long");
        if let Ok(outcome) = outcome {
            for file in &outcome.files {
                prop_assert!(file.starts_with(&inside), "{} was read", file.display());
            }
            let suite = write::render(&outcome.draft, "").suite;
            prop_assert!(!suite.contains("id: secret"), "{suite}");
            let adapters: Vec<&String> = outcome.draft.adapters.values().collect();
            prop_assert!(!adapters.iter().any(|it| it.contains("id: secret")), "{adapters:?}");
        }
        Ok(())
    });
    checked.unwrap();
}

#[test]
fn mutated_configurations_do_no_harm() {
    check_changed(CONFIG);
}

#[test]
fn mutated_configurations_with_adapters_do_no_harm() {
    check_changed(ADAPTED);
}

#[test]
fn all_adapters_are_named() {
    let folder = tempfile::tempdir().unwrap();
    project(folder.path());
    let config = folder.path().join("in/promptfooconfig.yaml");
    fs::write(&config, ADAPTED).unwrap();
    let outcome = import(&config, &Options::default()).unwrap();
    let made: Vec<&str> = outcome.draft.adapters.keys().map(String::as_str).collect();
    insta::assert_snapshot!(made.join(" "), @"azure-assistant.mjs browser.mjs cases.mjs classifier.mjs configured.mjs exec.mjs filters.mjs given.mjs http.mjs huggingface.mjs langfuse.mjs mcp.mjs moderation.mjs package.mjs sheet.mjs similar.mjs slack.mjs support.mjs transformers.mjs watsonx.mjs webhook.mjs websocket.mjs");
}

#[test]
fn the_configuration_itself_is_whole_but_for_what_is_outside() {
    let folder = tempfile::tempdir().unwrap();
    project(folder.path());
    let config = folder.path().join("in/promptfooconfig.yaml");
    fs::write(&config, CONFIG).unwrap();
    let outcome = import(&config, &Options::default()).unwrap();
    let notes: Vec<String> = outcome
        .notes
        .iter()
        .map(|it| format!("{}{}: {}", it.at, if it.lost { " lost" } else { "" }, it.what))
        .collect();
    insta::assert_snapshot!(notes.join("\n"));
    insta::assert_snapshot!(write::render(&outcome.draft, "").suite);
}
