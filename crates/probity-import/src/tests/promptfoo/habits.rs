//! What people write in configurations, as far as promptfoo's own documents do not say it.

use super::*;
use crate::draft::DatasetRef;

/// A configuration with one provider, and one test with these options.
fn with_options(provider: &str, options: &str) -> (String, String) {
    let config = format!(
        "prompts: [\"{{{{q}}}}\"]\nproviders: [{provider}]\n\
         tests: [{{ vars: {{ q: hi }}, options: {options} }}]\n"
    );
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("promptfooconfig.yaml"), config).unwrap();
    let Outcome { draft, notes, .. } = import(folder.path(), &Options::default()).unwrap();
    let asked = draft.datasets[0].cases[0].case.ask.clone();
    (told(&notes), serde_json::to_string(&asked).unwrap())
}

#[test]
fn keys_that_promptfoo_ignores_are_noted() {
    let config = r#"
output: out.json
maxConcurrency: 2
prompts: [{ id: greeting, file: "file://p.txt" }]
providers: [{ id: echo, temperature: 0 }]
derivedMetrics: [{ name: x, value: y }]
tests:
  - vars: { q: a }
    asserts: [{ type: equals, value: a }]
    assert: [{ type: contains, value: a, description: one }, { type: equals, value: a, label: x }]
    options: { timeout: 5 }
  - assert:
      - { type: contains, value: b, description: two }
      - type: contains
        value: b
        description: three
"#;
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("promptfooconfig.yaml"), config).unwrap();
    let Outcome { notes, .. } = import(folder.path(), &Options::default()).unwrap();
    assert_eq!(notes.losses(), 0);
    let shown: Vec<String> = notes
        .iter()
        .map(|it| format!("{}: {} ({}){}", it.at.line, it.what, it.advice, it.elsewhere()))
        .collect();
    insta::assert_snapshot!(shown.join("\n"), @r"
    2: promptfoo ignores `output` of the configuration, too (did you mean `outputPath`?)
    3: promptfoo ignores `maxConcurrency` of the configuration, too (did you mean `evaluateOptions.maxConcurrency`?)
    5: promptfoo ignores `temperature` of a provider, too (did you mean `config.temperature`?)
    4: promptfoo ignores `file` of a prompt, too (the prompt is the text `greeting`: write `raw: file://p.txt` if the file is meant)
    9: promptfoo ignores `asserts` of a test, too (did you mean `assert`?)
    10: promptfoo ignores `description` of an assertion, too () (also in lines 13, 16)
    10: promptfoo ignores `label` of an assertion, too ()
    11: promptfoo ignores `timeout` of the options of a test, too ()
    ");
}

#[test]
fn variables_that_nobody_has_are_empty_in_requests() {
    let config = r#"
prompts: ["Hello {{ user.name }}{% if user.vip %}!{% endif %}"]
providers:
  - id: https://app.example/ask
    config:
      headers: { x-session: "{{ session_key }}" }
      body: { q: "{{ prompt }}", id: "eval-{{ context.uuid }}", note: "{{ note }}", of: "{{ user.id }}" }
tests:
  - vars: { note: "see {{ topic }} and {{ nothing }}", topic: tea, user: { name: Ann } }
  - vars: { note: plain }
"#;
    let all = suite(config, &[]);
    assert!(!all.contains("lost"), "{all}");
    let vars = all.lines().find(|it| it.starts_with("prompt_vars")).unwrap_or_default();
    insta::assert_snapshot!(vars, @r#"prompt_vars = { context = { uuid = "" }, nothing = "", session_key = "", topic = "", user = { name = "", vip = "", id = "" } }"#);
}

#[test]
fn a_function_sees_what_its_modules_read() {
    let files = [
        ("src/p.js", "const { ask } = require('./client');\nprocess.env.OWN_NAME;\n"),
        ("src/client.js", "import k from '../keys/index.mjs';\nconst { ITS_KEY } = process.env;\n"),
        ("keys/index.mjs", "export default process.env.DEEP_KEY;\n"),
        ("other.js", "process.env.OTHER_KEY\n"),
    ];
    let config = "prompts: [hi]\nproviders: [\"file://src/p.js\"]\n";
    let all = suite(config, &files);
    assert!(all.contains("env = [\"DEEP_KEY\", \"ITS_KEY\", \"OWN_NAME\"]"), "{all}");
    assert!(all.contains("sees these variables of the environment: DEEP_KEY, ITS_KEY, OWN_NAME"));
}

#[test]
fn models_that_reason_have_limits_of_their_own() {
    let all = backends(
        r"  - { id: openai:gpt-5, config: { max_tokens: 9, reasoning_effort: low } }
  - { id: openrouter:openai/o3, config: { max_completion_tokens: 8 } }
  - { id: openrouter:anthropic/claude-x, config: { max_tokens: 7, reasoning_effort: low } }
  - { id: openai:responses:gpt-5, config: { max_output_tokens: 6, reasoning_effort: high } }
  - { id: azure:chat:o4, config: { apiHost: a.openai.azure.com } }
",
    );
    let starts = ["[backends", "max_tokens", "temperature", "extra_body"];
    let chosen = all.lines().filter(|line| starts.iter().any(|it| line.starts_with(it)));
    insta::assert_snapshot!(chosen.collect::<Vec<_>>().join("\n"), @r#"
    [backends.gpt-5]
    extra_body = { reasoning_effort = "low" }
    [backends."openai/o3"]
    max_tokens = 8
    [backends."anthropic/claude-x"]
    temperature = 0.0
    max_tokens = 7
    [backends.gpt-5-2]
    max_tokens = 6
    extra_body = { reasoning = { effort = "high" } }
    [backends.o4]
    max_tokens = 1024
    extra_body = { reasoning_effort = "medium" }
    "#);
}

#[test]
fn settings_of_tests_go_to_the_providers_that_read_them() {
    let settings = "{ temperature: 0.4, max_tokens: 5, response_format: { type: json_object } }";
    let (notes, asked) = with_options("openai:gpt-4o", settings);
    assert_eq!(notes, "");
    assert_eq!(
        asked,
        r#"{"response_format":"json","settings":{"temperature":0.4,"max_tokens":5}}"#
    );
    let (notes, asked) = with_options("\"ollama:chat:m\"", "{ temperature: 0.4 }");
    assert_eq!(asked, "{}");
    assert!(notes.contains("promptfoo ignores `temperature` of the options of a test, too"));
    let (notes, asked) = with_options("openai:gpt-4o, openai:gpt-5", "{ temperature: 0.4 }");
    assert_eq!(asked, "{}");
    assert!(notes.contains("lost 3: `temperature`"), "{notes}");
}

#[test]
fn paths_may_have_variables_of_the_configuration() {
    let config = "env: { DATA: texts }\nprompts: [\"{{t}}\"]\nproviders: [echo]\n\
                  tests: [{ vars: { t: \"file://{{env.DATA}}/a.txt\" } }]\n";
    let all = suite(config, &[("texts/a.txt", "hello")]);
    assert!(!all.contains("lost"), "{all}");
    let unset = config.replace("{ DATA: texts }", "{}");
    let all = suite(&unset, &[("texts/a.txt", "hello")]);
    assert!(all.contains("the variable `DATA` in the path"), "{all}");
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("texts")).unwrap();
    fs::write(folder.path().join("texts/a.txt"), "hello").unwrap();
    fs::write(folder.path().join("promptfooconfig.yaml"), unset).unwrap();
    let variable = |name: &str| (name == "DATA").then(|| "texts".to_owned());
    let options = Options { variable: Some(variable), ..Options::default() };
    let Outcome { draft, notes, .. } = import(folder.path(), &options).unwrap();
    assert_eq!(told(&notes), "");
    assert_eq!(draft.datasets[0].cases[0].case.prompt_vars["t"], "hello");
}

#[test]
fn a_program_is_run_where_it_is_said() {
    let inside = "  - { id: \"exec:make it\", config: { basePath: work } }\n";
    let config = format!("prompts: [hi]\nproviders:\n{inside}");
    let all = suite(&config, &[("work/x", "")]);
    assert!(!all.contains("lost"), "{all}");
    let command = all.split_once("command = [").and_then(|it| it.1.split_once("\n]")).unwrap().0;
    let words: Vec<&str> = command.lines().map(str::trim).collect();
    assert!(
        words.join(" ").contains(r#""{{suite_dir}}/work", "make", "it", "{{prompt}}","#),
        "{all}"
    );
    let all = suite(&config.replace("work", ".."), &[]);
    assert!(all.contains("lost 3: `..` is outside the folder"), "{all}");
}

#[test]
fn one_key_is_one_variable_and_a_placeholder_is_none() {
    let all = backends(
        r"  - { id: openai:a, config: { apiBaseUrl: 'https://x.example/v1', apiKey: sk-0123456789abcdef01 } }
  - { id: openai:b, config: { apiBaseUrl: 'https://x.example/v1', apiKey: sk-0123456789abcdef01 } }
  - { id: openai:c, config: { apiBaseUrl: 'http://localhost:8080/v1', apiKey: llama.cpp } }
  - { id: openai:d, config: { apiBaseUrl: 'https://y.example/v1', apiKey: sk-0123456789abcdef01 } }
",
    );
    assert_eq!(all.matches("api_key_env = \"A_API_KEY\"").count(), 2, "{all}");
    assert_eq!(all.matches("api_key_env = \"D_API_KEY\"").count(), 1, "{all}");
    assert_eq!(all.matches("\napi_key_env").count(), 3, "{all}");
}

#[test]
fn files_that_are_not_utf_8_are_read_as_promptfoo_reads_them() {
    let folder = tempfile::tempdir().unwrap();
    let config =
        "prompts: [\"{{t}}\"]\nproviders: [echo]\ntests: [{ vars: { t: file://a.txt } }]\n";
    fs::write(folder.path().join("promptfooconfig.yaml"), config).unwrap();
    fs::write(folder.path().join("a.txt"), b"caf\xe9").unwrap();
    let Outcome { draft, notes, .. } = import(folder.path(), &Options::default()).unwrap();
    assert_eq!(notes.losses(), 0, "{}", told(&notes));
    assert!(told(&notes).contains("`a.txt` is not UTF-8"), "{}", told(&notes));
    assert_eq!(draft.datasets[0].cases[0].case.prompt_vars["t"], "caf\u{fffd}");
}

/// Who is asked what, and the notes.
fn asked(config: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("promptfooconfig.yaml"), config).unwrap();
    let Outcome { draft, notes, .. } = import(folder.path(), &Options::default()).unwrap();
    let mut shown = told(&notes);
    for runner in &draft.runners {
        let is_its = |name: &str| runner.dataset.contains(&DatasetRef::Draft(name.to_owned()));
        let dataset = draft.datasets.iter().find(|it| is_its(&it.name)).unwrap();
        let ids: Vec<&str> = dataset.cases.iter().map(|it| it.case.id.as_str()).collect();
        let variants: Vec<&str> = runner.prompts.iter().map(|it| it.name.as_str()).collect();
        let _ = writeln!(shown, "{ids:?} with {variants:?} of {:?}", runner.backends);
    }
    shown
}

#[test]
fn a_test_with_a_provider_of_its_own_is_asked_of_it_alone() {
    let config = r#"
prompts: ["{{q}}", { raw: "Please: {{q}}", label: kind }]
providers:
  - { id: openai:gpt-4o-mini, prompts: [kind] }
  - openai:gpt-4o
tests:
  - { description: usual, vars: { q: a } }
  - { description: other, vars: { q: b }, provider: anthropic:messages:claude-sonnet-4-5 }
  - description: warm
    vars: { q: c }
    provider: { id: openai:gpt-4.1, config: { temperature: 0.7 } }
  - { description: again, vars: { q: d }, provider: anthropic:messages:claude-sonnet-4-5 }
  - { description: known, vars: { q: e }, provider: openai:gpt-4o }
  - { description: ignored, vars: { q: f }, provider: { openai:gpt-4.1: { config: {} } } }
  - { description: gone, vars: { q: g }, provider: "openai:realtime:gpt-4o" }
"#;
    insta::assert_snapshot!(asked(config), @r#"
    14: promptfoo ignores `provider` of a test, too (name the provider with its `id`)
    lost 15: provider `openai:realtime:gpt-4o` is speech, which no backend is (describe another backend, see docs/backends.md)
    8: `anthropic:messages:claude-sonnet-4-5` is asked these tests once; promptfoo asks it 2 times, once for each provider (set `repeat` of the runner to ask it again)
    9: `openai:gpt-4.1` is asked these tests once; promptfoo asks it 2 times, once for each provider (set `repeat` of the runner to ask it again)
    13: `openai:gpt-4o` is asked these tests once; promptfoo asks it 2 times, once for each provider (set `repeat` of the runner to ask it again)
    ["usual", "ignored"] with ["kind"] of ["gpt-4o-mini"]
    ["usual", "ignored"] with ["prompt-1", "kind"] of ["gpt-4o"]
    ["other", "again"] with ["prompt-1", "kind"] of ["claude-sonnet-4-5"]
    ["warm"] with ["prompt-1", "kind"] of ["gpt-4.1"]
    ["known"] with ["prompt-1", "kind"] of ["gpt-4o"]
    "#);
}

#[test]
fn the_provider_of_all_tests_is_asked_unless_a_test_names_another() {
    let config = r#"
prompts: ["{{q}}"]
providers: [openai:gpt-4o-mini]
defaultTest: { provider: openai:gpt-4o, options: { temperature: 0.2 } }
tests:
  - { description: usual, vars: { q: a } }
  - { description: other, vars: { q: b }, provider: openai:gpt-4o-mini }
"#;
    insta::assert_snapshot!(asked(config), @r#"
    ["usual"] with ["prompt-1"] of ["gpt-4o"]
    ["other"] with ["prompt-1"] of ["gpt-4o-mini"]
    "#);
}

#[test]
fn tests_for_prompts_and_providers_that_there_are_not_are_listed() {
    let config = r#"
prompts: [{ raw: "{{q}}", label: plain }]
providers: [{ id: echo, label: one }]
tests:
  - { vars: { q: a } }
  - { vars: { q: b }, prompts: [classifier] }
  - { vars: { q: c }, providers: [two] }
"#;
    let all = suite(config, &[]);
    let lost = "lost 6: these tests are for the prompt `classifier`, which there is not";
    assert!(all.contains(lost), "{all}");
    let lost = "lost 7: these tests are for the provider `two`, which there is not";
    assert!(all.contains(lost), "{all}");
}

#[test]
fn functions_see_labels_where_ids_are_the_same() {
    let config = r#"
prompts: ["file://p.js"]
providers: [{ id: openai:gpt-4o, label: terse }, { id: openai:gpt-4o, label: kind }]
"#;
    let files = [("p.js", "module.exports = ({ provider }) => provider.label;\n")];
    let all = suite(config, &files);
    assert!(all.contains("[backends.terse]") && all.contains("[backends.kind]"), "{all}");
    let all = suite(&config.replacen("gpt-4o", "gpt-4.1", 1), &files);
    assert!(all.contains("[backends.\"openai:gpt-4.1\"]"), "{all}");
}

#[test]
fn data_is_never_taken_for_a_function() {
    let config = r#"
prompts: ["{{ call.function }}"]
providers: [echo]
tests: [{ vars: { call: { function: ../outside.py } } }]
"#;
    let all = suite(config, &[]);
    assert!(!all.contains("adapters/") && !all.contains("lost"), "{all}");
    let claimed = config.replace("{ function:", "{ \"probity:function\":");
    let all = suite(&claimed, &[]);
    assert!(all.contains("lost 4: a value with the key `probity:function`"), "{all}");
}

#[test]
fn a_key_in_the_address_of_tests_is_neither_copied_nor_shown() {
    let config = "prompts: [hi]\nproviders: [echo]\n\
                  tests: [https://h.example/t.csv?token=SECRET, https://h.example/t.csv]\n";
    let all = suite(config, &[]);
    assert!(!all.contains("SECRET"), "{all}");
    assert!(all.contains("lost 3: tests from `https://h.example/t.csv`"), "{all}");
    assert!(all.contains("url = \"https://h.example/t.csv\""), "{all}");
}

#[test]
fn conversations_keep_what_their_tests_ask_for_or_say_why_not() {
    let config = |tests: &str| {
        let prompt = r#"'[{% for it in _conversation %}{"role": "user", "content": {{ it.input | dump }}}, {"role": "assistant", "content": {{ it.output | dump }}}, {% endfor %}{"role": "user", "content": {{ q | dump }}}]'"#;
        format!("prompts: [{prompt}]\nproviders: [openai:gpt-4o]\ntests:\n{tests}")
    };
    let import_of = |tests: &str| {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("promptfooconfig.yaml"), config(tests)).unwrap();
        import(folder.path(), &Options::default())
    };
    let warm = "  - { vars: { q: a }, options: { temperature: 0.7 } }\n";
    let Outcome { draft, notes, .. } = import_of(&warm.repeat(2)).unwrap();
    let case = &draft.datasets[0].cases[0].case;
    assert_eq!((case.conversation.turns.len(), case.ask.sampling.temperature), (2, Some(0.7)));
    assert_eq!(notes.losses(), 0, "{}", told(&notes));
    for (other, why) in [
        ("  - { vars: { q: b } }\n", "its tests ask for different settings"),
        (
            "  - { vars: { q: b }, options: { repeat: 2, temperature: 0.7 } }\n",
            "tests of one conversation are judged or asked in different ways",
        ),
        (
            "  - { vars: { q: b }, providerOutput: x, metadata: { conversationId: y } }\n",
            "its tests bring their replies",
        ),
    ] {
        let said = match import_of(&format!("{warm}{other}")) {
            Ok(Outcome { notes, .. }) | Err(ImportError::Shape { notes, .. }) => told(&notes),
            Err(error) => error.to_string(),
        };
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn an_id_may_have_a_variable_of_the_environment_that_is_no_key() {
    let folder = tempfile::tempdir().unwrap();
    let config =
        "prompts: [hi]\nproviders: [\"openai:chat:{{env.MODEL}}\", \"openai:{{env.A_KEY}}\"]\n";
    fs::write(folder.path().join("promptfooconfig.yaml"), config).unwrap();
    let variable = |name: &str| Some(format!("{}-4o", name.to_lowercase()));
    let options = Options { variable: Some(variable), ..Options::default() };
    let Outcome { draft, notes, .. } = import(folder.path(), &options).unwrap();
    assert_eq!(draft.backends[0].model.as_deref(), Some("model-4o"));
    let said = told(&notes);
    assert!(
        said.contains("provider `openai:chat:{{env.MODEL}}` is `openai:chat:model-4o`"),
        "{said}"
    );
    assert!(said.contains("nobody knows what `A_KEY` is") && !said.contains("a_key-4o"), "{said}");
}

#[test]
fn all_functions_see_what_they_read() {
    let files = [("v.py", "import os\nos.environ['A_NAME']\n"), ("p.js", "process.env.B_NAME\n")];
    for (config, seen) in [
        ("prompts: [\"{{x}}\"]\ntests: [{ vars: { x: file://v.py } }]\n", "A_NAME"),
        ("prompts: [hi]\ntests: file://v.py\n", "A_NAME"),
        ("prompts: [file://p.js]\n", "B_NAME"),
        ("prompts: [hi]\ntests: [{ options: { transformVars: \"file://p.js\" } }]\n", "B_NAME"),
    ] {
        let all = suite(&format!("providers: [echo]\n{config}"), &files);
        let runner = all.split("[[runners]]").nth(1).unwrap_or_default();
        assert!(runner.contains(&format!("env = [\"{seen}\"]")), "{all}");
    }
}

#[test]
fn blank_prompts_are_asked_as_they_are() {
    let config = "\
prompts: [{ raw: ' ', label: nothing }, '{{prompt}}']
providers: [echo]
tests: [{ vars: { prompt: '  ' } }]
";
    let suite = suite(config, &[]);
    assert!(!suite.contains("lost"), "{suite}");
    assert!(suite.contains(r#"template = '{{ " " }}'"#), "{suite}");
}
