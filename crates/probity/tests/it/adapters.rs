//! What an import writes beside a suite for whom no backend, dataset or assertion asks: each against a server.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
};

use serde_json::Value;

use crate::{project::Project, run::stored};

/// The services that adapters ask, in a folder of their own.
struct Services {
    child: Child,
    url: String,
}

impl Services {
    fn start(project: &Project) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/adapters/server.mjs");
        let mut child = Command::new("node")
            .arg(script)
            .current_dir(project.path(""))
            .stdout(Stdio::piped())
            .spawn()
            .expect("node starts");
        let mut url = String::new();
        let said = child.stdout.take().expect("it is piped");
        BufReader::new(said).read_line(&mut url).expect("it says where it is");
        Self { child, url: url.trim().to_owned() }
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A configuration in which `URL` stands for the address of the services, imported whole and run.
#[track_caller]
fn ran(config: &str, others: &[(&str, &str)]) -> (Project, Vec<Value>) {
    ran_with(config, others, |suite| suite)
}

#[track_caller]
fn ran_with(
    config: &str,
    others: &[(&str, &str)],
    change: impl FnOnce(String) -> String,
) -> (Project, Vec<Value>) {
    const KEYS: &str = "AZURE_API_KEY=azure-key\nSLACK_BOT_TOKEN=slack-token\nWATSONX_AI_APIKEY=ibm-key\n\
                        WATSONX_AI_PROJECT_ID=project\nOPENAI_API_KEY=openai-key\nLANGFUSE_PUBLIC_KEY=open\n\
                        LANGFUSE_SECRET_KEY=secret\n";
    let mut project = Project::new();
    let services = Services::start(&project);
    let at = |text: &str| {
        text.replace("WS_URL", &services.url.replace("http", "ws")).replace("URL", &services.url)
    };
    for (name, text) in others {
        project = project.file(name, at(text));
    }
    let env = format!("{KEYS}LANGFUSE_HOST={}\n", services.url);
    project = project.file("promptfooconfig.yaml", at(config)).file(".env", env);
    let imported = project.shown(&["import", "promptfooconfig.yaml"]);
    assert!(imported.contains("everything was carried over"), "{imported}");
    let suite = change(project.read("probity.toml").replace("URL", &services.url));
    let project = project.file("probity.toml", suite.replace("URL", &services.url));
    let shown = project.shown(&["run", "--no-cache"]);
    assert!(!shown.contains("error:"), "{shown}\n{suite}");
    let results = stored(&project);
    (project, results)
}

#[track_caller]
fn replies(results: &[Value]) -> Vec<&str> {
    results.iter().map(|it| it["raw_response"].as_str().unwrap_or("none")).collect()
}

#[track_caller]
fn verdicts(results: &[Value]) -> Vec<&str> {
    results.iter().map(|it| it["verdict"].as_str().unwrap_or("none")).collect()
}

#[test]
fn assistants_are_asked_in_threads_and_their_functions_answered() {
    let config = r"
prompts: ['{{q}}']
providers:
  - id: azure:assistant:asst_1
    config:
      apiBaseUrl: URL
      tools: file://tools.json
      pollMs: 1
      functionToolCallbacks:
        double: file://callbacks.js:double
tests: [{ vars: { q: 'What is 21 twice?' } }]
";
    let callbacks = "module.exports = { double: (args) => String(JSON.parse(args).n * 2) };";
    let others = [("tools.json", r#"[{"type": "function"}]"#), ("callbacks.js", callbacks)];
    let (project, results) = ran(config, &others);
    assert_eq!(replies(&results), ["[User] What is 21 twice?\n\n[Assistant] It is 42 by 1 tool"]);
    assert!(project.read("probity.toml").contains("file = \"adapters/azure-assistant.mjs\""));
}

#[test]
fn web_sockets_answer_at_once_or_in_a_stream() {
    let config = r#"
prompts: ['{{q}}']
providers:
  - id: 'WS_URL/once'
    config: { messageTemplate: '{"prompt": {{prompt | dump}}}', transformResponse: data.output }
  - id: 'WS_URL/stream'
    config:
      messageTemplate: '{"prompt": {{prompt | dump}}}'
      streamResponse: |
        (accumulator, event, context) => {
          const { message, type } = JSON.parse(event.data);
          return [{ output: message }, type === 'message'];
        }
tests: [{ vars: { q: 'a "quoted" question' } }]
"#;
    let (_, results) = ran(config, &[]);
    assert_eq!(replies(&results), ["a \"quoted\" question?", "a \"quoted\" question!"]);
}

#[test]
fn people_and_watsonx_are_asked_with_keys_from_the_environment() {
    let config = r"
prompts: ['Say {{q}}']
providers:
  - id: slack:C1
    config: { apiBaseUrl: URL }
  - id: watsonx:ibm/granite
    config: { serviceUrl: URL, iamUrl: URL, maxNewTokens: 7 }
tests: [{ vars: { q: hi } }]
";
    let (project, results) = ran(config, &[]);
    assert_eq!(replies(&results), ["you said: Say hi", "ibm/granite/project/7: Say hi"]);
    assert!(!project.read("probity.toml").contains("ibm-key"));
}

#[test]
fn requests_are_signed_with_a_key_in_a_file() {
    let config = r#"
prompts: ['{{q}}']
providers:
  - id: http
    config:
      url: URL/signed
      method: POST
      headers: { timestamp: '{{signatureTimestamp}}', signature: '{{signature}}', content-type: application/json }
      body: { message: '{{prompt}}' }
      signatureAuth:
        privateKeyPath: ./private_key.pem
        signatureDataTemplate: 'app{{signatureTimestamp}}'
        signatureAlgorithm: SHA256
      transformResponse: json.reply
tests: [{ vars: { q: 'a "quoted" question' } }]
"#;
    let (_, results) = ran(config, &[]);
    assert_eq!(replies(&results), ["signed: a \"quoted\" question"]);
}

#[test]
fn tools_of_a_server_are_called() {
    const SERVER: &str = r"
import readline from 'node:readline';
readline.createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const result = {
    initialize: () => ({ protocolVersion: params.protocolVersion, capabilities: {} }),
    'tools/list': () => ({ tools: [{ name: 'add' }] }),
    'tools/call': () => ({ content: [{ type: 'text', text: String(params.arguments.a + params.arguments.b) }] }),
  }[method]();
  console.log(JSON.stringify({ jsonrpc: '2.0', id, result }));
});
";
    let config = r#"
prompts: ['{{prompt}}']
providers:
  - id: mcp
    config: { enabled: true, servers: [{ name: s, path: ./tools/server.mjs }] }
tests:
  - vars: { prompt: '{"tool": "add", "args": {"a": 40, "b": 2}}' }
    assert: [{ type: equals, value: '42' }]
"#;
    let (_, results) = ran(config, &[("tools/server.mjs", SERVER)]);
    assert_eq!(verdicts(&results), ["pass"]);
}

#[test]
fn providers_of_packages_are_loaded_from_the_folder_of_the_suite() {
    let package = "module.exports = { Provider: class { constructor(o) { this.o = o; } async callApi(p) { return { output: `${p} ${this.o.config.tone}` }; } } };";
    let config = r"
prompts: ['{{q}}']
providers:
  - id: package:mine:Provider
    config: { tone: kindly }
tests: [{ vars: { q: hi } }]
";
    let others = [
        ("node_modules/mine/index.js", package),
        ("node_modules/mine/package.json", r#"{"name": "mine", "main": "index.js"}"#),
    ];
    let (_, results) = ran(config, &others);
    assert_eq!(replies(&results), ["hi kindly"]);
}

#[test]
fn rows_of_hugging_face_are_fetched_page_by_page() {
    let config = r"
prompts: ['{{word}} {{split}}']
providers: [echo]
tests: [huggingface://datasets/owner/name?split=train&limit=70]
defaultTest: { assert: [{ type: contains, value: '{{word}} train' }] }
";
    let server = |suite: String| {
        suite.replace("dataset = \"owner/name\"", "dataset = \"owner/name\", server = \"URL\"")
    };
    let (_, results) = ran_with(config, &[], server);
    assert_eq!(results.len(), 70);
    assert!(verdicts(&results).iter().all(|it| *it == "pass"));
    assert!(replies(&results).contains(&"w69 train"));
}

#[test]
fn tables_that_have_an_address_are_read_like_files() {
    let config = "prompts: ['{{text}}']\nproviders: [echo]\ntests: URL/table.csv\n";
    let (_, results) = ran(config, &[]);
    assert_eq!(replies(&results), ["hello", "two, \"quoted\"", "bad"]);
    assert_eq!(verdicts(&results), ["pass", "pass", "fail"]);
}

#[test]
fn variables_are_made_by_code_when_the_suite_is_run() {
    let python = "def get_var(name, prompt, others):\n    print('noise')\n    return {'output': others['role'] + ' of ' + name}\n";
    let script = "module.exports = (name, prompt, others) => ({ output: prompt.includes('role') ? 'seen' : 'no' });";
    let config = r"
prompts: ['{{made}} {{also}} {{more}} {{role}}']
providers: [echo]
defaultTest: { vars: { shared: s } }
tests:
  - vars: { role: sales, made: file://made.py, also: file://also.js }
  - vars: { role: desk, made: m, also: a }
    options: { transformVars: 'return { ...vars, more: vars.shared + vars.role.toUpperCase() }' }
";
    let (_, results) = ran(config, &[("made.py", python), ("also.js", script)]);
    assert_eq!(replies(&results), ["sales of made seen  sales", "m a sDESK desk"]);
}

#[test]
fn programs_and_langfuse_make_prompts() {
    let config = r"
prompts:
  - exec:sh make.sh 'a b'
  - langfuse://greet all@live:chat
  - langfuse://greet all:3
providers: [echo]
tests: [{ vars: { word: you } }]
";
    let script = "#!/bin/sh\necho \"$1 $2\" | cut -c 1-30\n";
    let (project, results) = ran(config, &[("make.sh", script)]);
    let all = replies(&results);
    assert!(all.iter().any(|it| it.starts_with("a b {\"vars\":")), "{all:?}");
    assert!(all.iter().any(|it| it.contains("Hi you")), "{all:?}");
    assert!(all.contains(&"version 3: you"), "{all:?}");
    assert!(project.read("probity.toml").contains("env = [\"LANGFUSE_HOST\""));
}

#[test]
fn graders_that_are_services_are_asked() {
    let config = r"
prompts: ['{{word}}']
providers: [echo]
defaultTest:
  options: { provider: { classification: { id: 'huggingface:text-classification:m', config: { apiEndpoint: URL/classify } } } }
tests:
  - vars: { word: good }
    assert:
      - { type: moderation, provider: &mod { id: 'openai:moderation:m', config: { apiBaseUrl: URL } } }
      - { type: classifier, value: nice, threshold: 0.5 }
      - { type: not-classifier, value: mean, threshold: 0.5 }
      - { type: webhook, value: URL/hook }
      - type: similar
        value: '{{word}}'
        threshold: 0.9
        provider: { id: 'huggingface:sentence-similarity:m', config: { apiEndpoint: URL/similar } }
  - vars: { word: bad }
    assert: [{ type: moderation, provider: *mod }]
  - vars: { word: bad }
    assert: [{ type: moderation, value: [violence], provider: *mod }]
  - vars: { word: bad }
    assert: [{ type: classifier, value: nice, threshold: 0.5 }]
  - vars: { word: bad }
    assert: [{ type: webhook, value: URL/hook }]
  - vars: { word: good }
    assert: [{ type: similar, value: other, threshold: 0.9, provider: ./embeds.js }]
  - vars: { word: good }
    assert: [{ type: similar, value: goof, threshold: 0.9, provider: ./embeds.js }]
";
    let embeds = "module.exports = class { async callEmbeddingApi(text) { return { embedding: [text.length, text.charCodeAt(0)] }; } };";
    let (_, results) = ran(config, &[("embeds.js", embeds)]);
    let why: Vec<&Value> = results.iter().map(|it| &it["reason"]).collect();
    let expected = ["pass", "fail", "pass", "fail", "fail", "pass", "pass"];
    assert_eq!(verdicts(&results), expected, "{why:?}");
}

#[test]
fn pages_are_used_as_a_person_would() {
    const PLAYWRIGHT: &str = r"
const page = () => {
  const fields = {};
  return {
    goto: async (url) => { fields.url = url; },
    waitForSelector: async (selector) => { if (selector === '#none') throw new Error('timeout'); },
    fill: async (selector, text) => { fields[selector] = text; },
    press: async (selector, key) => { fields.pressed = key; },
    click: async (selector) => { fields.clicked = selector; },
    $eval: async (selector, read) => read({ textContent: ` ${fields.url} ${fields['#in']} ${fields.pressed} ${fields.clicked} ` }),
    content: async () => '<html>',
  };
};
const chromium = { launch: async () => ({ newContext: async () => ({ newPage: async () => page() }), close: async () => {} }) };
module.exports = { chromium };
";
    let config = r"
prompts: ['{{q}}']
providers:
  - id: browser
    config:
      steps:
        - { action: navigate, args: { url: 'http://app/{{q}}' } }
        - { action: type, args: { selector: '#in', text: '{{prompt}}<enter>' } }
        - { action: click, args: { selector: '#none', optional: true } }
        - { action: click, args: { selector: '#go' } }
        - { action: extract, name: said, args: { selector: '.out' } }
      transformResponse: extracted.said
tests: [{ vars: { q: hello } }]
";
    let others = [
        ("node_modules/playwright/index.js", PLAYWRIGHT),
        ("node_modules/playwright/package.json", r#"{"name": "playwright", "main": "index.js"}"#),
    ];
    let (_, results) = ran(config, &others);
    assert_eq!(replies(&results), ["http://app/hello hello Enter #go"]);
}

#[test]
fn filters_of_prompts_and_functions_of_settings_are_called() {
    let provider = "def call_api(prompt, options, context):\n    return {'output': prompt + ' ' + options['config']['a']['b'] + options['config']['c']}\n";
    let config = r"
prompts: ['Say {{ word | loud | twice }}']
nunjucksFilters: { loud: ./loud.js, twice: file://twice.js }
providers:
  - id: file://provider.py
    config: { a: { b: 'file://made.js:b' }, c: 'file://made.py:c' }
tests: [{ vars: { word: hey } }]
";
    let others = [
        ("loud.js", "module.exports = (text) => text.toUpperCase();"),
        ("twice.js", "module.exports = (text) => text + text;"),
        ("made.js", "module.exports = { b: () => 'B' };"),
        ("made.py", "def c():\n    return 'C'\n"),
        ("provider.py", provider),
    ];
    let (_, results) = ran(config, &others);
    assert_eq!(replies(&results), ["Say HEYHEY BC"]);
}

#[test]
fn replies_that_tests_bring_are_judged_and_nobody_is_asked() {
    let config = r"
prompts: ['Ask {{q}}']
providers: ['openai:gpt-4o']
tests:
  - vars: { q: one }
    providerOutput: It is {curly} and {{ plain }}.
    assert: [{ type: contains, value: '{curly}' }, { type: not-contains, value: Ask }]
";
    let (_, results) = ran(config, &[]);
    assert_eq!(verdicts(&results), ["pass"], "{:?}", replies(&results));
}

#[test]
fn tests_that_go_on_from_each_other_are_turns() {
    let config = r#"
prompts: [file://chat.json]
providers: [echo]
defaultTest: { vars: { system: Be brief }, assert: [{ type: contains, value: '{{q}}' }] }
tests:
  - { vars: { q: Who? }, metadata: { conversationId: a } }
  - { vars: { q: 'Where "is" it?' }, metadata: { conversationId: a }, assert: [{ type: contains, value: '{{q}}' }] }
  - { vars: { q: When? }, metadata: { conversationId: b } }
"#;
    let chat = r#"[{"role": "system", "content": {{ system | dump }}},
{% for it in _conversation %}{"role": "user", "content": {{ it.prompt[it.prompt.length - 1].content | dump }}},
{"role": "assistant", "content": {{ it.output | dump }}},{% endfor %}
{"role": "user", "content": {{ q | dump }}}]"#;
    let (project, results) = ran(config, &[("chat.json", chat)]);
    assert_eq!(verdicts(&results), ["pass", "pass"]);
    let cases = project.read("conversations.yaml");
    assert!(cases.contains("Where \\\"is\\\" it?") && cases.contains("Be brief"), "{cases}");
    assert!(results[0]["asked"].to_string().contains("Who?"), "{}", results[0]);
}

#[test]
fn a_template_may_make_the_messages() {
    let config = r#"
prompts: [file://chat.json]
providers: [echo]
tests: [{ vars: { earlier: [{ who: user, said: hi }, { who: assistant, said: 'a "b"' }], q: now } }]
"#;
    let chat = r#"[{% for it in earlier %}{"role": "{{ it.who }}", "content": {{ it.said | dump }}},{% endfor %}
{"role": "user", "content": {{ q | dump }}}]"#;
    let (project, results) = ran(config, &[("chat.json", chat)]);
    assert!(replies(&results)[0].contains("now"), "{results:?}");
    let shown = project.shown(&["run", "--dry-run", "--requests", "requests.jsonl"]);
    let sent = project.read("requests.jsonl");
    assert!(sent.contains(r#"a \"b\""#) && sent.contains("assistant"), "{shown} {sent}");
}

#[test]
fn a_sheet_of_a_workbook_is_read_like_csv() {
    let workbook = include_bytes!("adapters/tests.xlsx");
    let config = "prompts: ['{{word}}']\nproviders: [echo]\ntests: file://tests.xlsx#Tests\n";
    let project = Project::new().file("tests.xlsx", workbook).file("promptfooconfig.yaml", config);
    let imported = project.shown(&["import", "promptfooconfig.yaml"]);
    assert!(imported.contains("2 cases from promptfoo: everything was carried over"), "{imported}");
    project.shown(&["run"]);
    let results = stored(&project);
    assert_eq!(replies(&results), ["a & b", "12"]);
    assert_eq!(verdicts(&results), ["pass", "fail"]);
    let missing = project.file("promptfooconfig.yaml", config.replace("#Tests", "#None")).shown(&[
        "import",
        "promptfooconfig.yaml",
        "--force",
    ]);
    assert!(missing.contains("there is no sheet `None` in it"), "{missing}");
}
