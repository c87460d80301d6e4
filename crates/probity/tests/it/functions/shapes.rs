//! What functions return, in every form that is in use, from real interpreters.

use serde_json::{Value, json};

use super::{of, project};
use crate::run::{run, stored};

/// Backends of both languages that return what a file has for the prompt.
fn answering(returns: &Value, cases: &[Value]) -> Vec<crate::project::Project> {
    let python = "import json\nRETURNS = json.load(open('returns.json'))\n\
                  def call_api(prompt, options, context):\n    return RETURNS[prompt]\n";
    let node = "const returns = require('./returns.json');\n\
                module.exports = class { async callApi(prompt) { return returns[prompt]; } };\n";
    let of = |kind: &str, file: &str, text: &str| {
        project(&format!("kind = \"{kind}\"\nfile = \"{file}\""), "", cases)
            .file("returns.json", returns.to_string())
            .file(file, text)
    };
    vec![of("python", "provider.py", python), of("node", "provider.cjs", node)]
}

#[test]
fn answers_have_many_forms() {
    let returns = json!({
        "whole": { "output": "whole", "tokenUsage": { "total": 9, "prompt": 7.0, "completion": 2 }, "cost": 0.5,
                   "cached": false, "logProbs": [-0.5, -0.25], "latencyMs": 1500, "metadata": { "a": 1 }, "raw": {} },
        "cached": { "output": "cached", "cached": true, "tokenUsage": { "cached": 9, "total": 9 } },
        "text": "text",
        "no error": { "output": "no error", "error": "" },
        "null error": { "output": "null error", "error": null, "tokenUsage": null, "cost": null },
        "number": { "output": 42 },
        "data": { "output": { "city": "Paris" } },
        "error": { "error": "401 Unauthorized: invalid api key" },
        "table": { "error": { "message": "invalid api key" } },
        "silent": { "output": "" },
        "nothing": { "metadata": {} },
        "usage": { "output": "x", "tokenUsage": { "prompt": -1 } },
    });
    let cases: Vec<Value> = returns
        .as_object()
        .unwrap()
        .keys()
        .map(|name| {
            json!({ "id": name.replace(' ', "-"), "prompt": name, "assert": [{ "type": "regex", "value": "." }] })
        })
        .collect();
    for project in answering(&returns, &cases) {
        run(&project, &["--no-fail-fast", "--max-retries", "0"]);
        let found = stored(&project);
        let said = |id: &str| of(&found, id)["raw_response"].as_str().unwrap_or("").to_owned();
        for id in ["whole", "cached", "text"] {
            assert_eq!(said(id), id);
        }
        assert_eq!(
            (said("no-error"), said("null-error")),
            ("no error".into(), "null error".into())
        );
        assert_eq!((said("number"), said("data")), ("42".into(), "{\"city\":\"Paris\"}".into()));
        let whole = of(&found, "whole");
        assert_eq!(whole["usage"]["input_tokens"], 7, "{whole}");
        assert_eq!((&whole["cost_usd"], &whole["latency_ms"]), (&json!(0.5), &json!(1500)));
        let cached = of(&found, "cached");
        assert_eq!(
            (&cached["usage"]["input_tokens"], &cached["cost_usd"]),
            (&json!(0), &json!(0.0))
        );
        assert_eq!(cached["usage"]["cached_tokens"], 9, "{cached}");
        for (id, kind, why) in [
            ("error", "auth", "invalid api key"),
            ("table", "auth", "invalid api key"),
            ("silent", "empty", "the reply is empty"),
            ("nothing", "bad_request", "it has neither `output` nor `error`"),
            ("usage", "bad_request", "its `tokenUsage.prompt` is -1"),
        ] {
            let error = &of(&found, id)["error"];
            assert_eq!(error["kind"], kind, "{id}: {error}");
            assert!(error["message"].as_str().unwrap().contains(why), "{id}: {error}");
        }
    }
}

#[test]
fn prompts_have_many_forms() {
    let forms = json!({
        "text": "say text",
        "messages": [{ "role": "system", "content": "Be brief" }, { "role": "user", "content": "say messages" }],
        "json": "[{\"role\": \"user\", \"content\": \"say json\"}]",
        "table": { "prompt": "say table", "config": { "temperature": 0.25, "max_tokens": 9, "response_format": { "type": "object" } } },
        "chat": { "prompt": [{ "role": "user", "content": [{ "type": "text", "text": "say chat" }] }], "config": {} },
    });
    let python = "import json\nFORMS = json.load(open('forms.json'))\n\
                  def make(context):\n    return FORMS[context['vars']['id']]\n";
    let node = "const forms = require('./forms.json');\nmodule.exports = async ({ vars }) => forms[vars.id];\n";
    let cases: Vec<Value> =
        forms.as_object().unwrap().keys().map(|id| json!({ "id": id, "prompt": "p" })).collect();
    let of = |named: &str, forms: &Value| {
        project("kind = \"echo\"", &format!("prompt = \"file://{named}\""), &cases)
            .file("forms.json", forms.to_string())
            .file("prompt.py", python)
            .file("prompt.cjs", node)
    };
    for named in ["prompt.py:make", "prompt.cjs"] {
        let project = of(named, &forms);
        project.shown(&["run", "--dry-run", "--requests", "requests.jsonl"]);
        let lines = project.read("requests.jsonl");
        let line = |id: &str| -> Value {
            let all = lines.lines().map(|it| serde_json::from_str::<Value>(it).unwrap());
            all.into_iter().find(|it| it["case_id"] == id).unwrap()
        };
        for id in ["text", "messages", "json", "table", "chat"] {
            assert!(line(id).to_string().contains(&format!("say {id}")), "{lines}");
        }
        assert!(line("messages").to_string().contains("Be brief"), "{lines}");
        let table = line("table").to_string();
        for set in ["\"temperature\":0.25", "\"max_tokens\":9", "\"type\":\"object\""] {
            assert!(table.contains(set), "{table}");
        }
        let wrong = json!({ "text": { "prompt": "p", "config": { "temprature": 1 } } });
        let shown = of(named, &wrong).shown(&["run"]);
        assert!(shown.contains("temprature") && shown.contains("probity.toml:7"), "{shown}");
    }
}

#[test]
fn scores_have_many_forms() {
    let forms = json!({
        "true": [true, "pass"],
        "false": [false, "fail"],
        "number": [0.4, "pass"],
        "zero": [0, "fail"],
        "table": [{ "pass": true, "score": 0.5, "reason": "well" }, "pass"],
        "parts": [{ "pass": false, "score": 0.5, "namedScores": { "tone": 0.5 }, "componentResults": [
            { "pass": true, "score": 1, "reason": "fine", "namedScores": { "brief": 0.25 } },
            { "pass": false, "score": 0, "reason": "rude" },
        ] }, "fail"],
        "score": [{ "score": 1 }, "pass"],
        "nothing": [null, "error"],
        "list": [[true], "error"],
        "word": [{ "pass": "yes" }, "error"],
    });
    let python = "import json\nFORMS = json.load(open('forms.json'))\n\
                  def get_assert(output, context):\n    return FORMS[output][0]\n";
    let node = "const forms = require('./forms.json');\nmodule.exports = async (output) => forms[output][0];\n";
    let names = || forms.as_object().unwrap().iter();
    let cases: Vec<Value> = names()
        .map(|(id, _)| json!({ "id": id, "prompt": id, "assert": [{ "type": "scorer", "value": "own" }] }))
        .collect();
    for scorer in ["python = \"score.py\"", "node = \"score.cjs\""] {
        let project = project("kind = \"echo\"", &format!("[scorers.own]\n{scorer}\n"), &cases)
            .file("forms.json", forms.to_string())
            .file("score.py", python)
            .file("score.cjs", node);
        run(&project, &["--no-fail-fast"]);
        let found = stored(&project);
        for (id, form) in names() {
            let case = of(&found, id);
            assert_eq!(case["verdict"], form[1], "{scorer} {case}");
        }
        let parts = of(&found, "parts").to_string();
        for told in ["rude", "tone", "brief"] {
            assert!(parts.contains(told), "{told}: {parts}");
        }
    }
}

/// Imports as TypeScript writes them. Versions of Node that cannot be told where modules are say what they miss.
#[test]
fn modules_are_found_as_typescript_names_them() {
    let backend = "kind = \"node\"\nfile = \"evals/provider.mjs\"\n";
    let case = json!({ "id": "a", "prompt": "hi", "assert": [{ "type": "equals", "value": "hi one two three" }] });
    let provider = "import { one } from '../src/one';\nimport { two } from '@/two';\nimport { three } from '../src/three';\n\
                    export default async (prompt) => `${prompt} ${one} ${two} ${three}`;\n";
    let tsconfig = "{\n // where things are\n \"compilerOptions\": { \"paths\": { \"@/*\": [\"./src/*\"], }, },\n}\n";
    let project = project(backend, "", &[case])
        .file("evals/provider.mjs", provider)
        .file("src/one.mjs", "export const one = 'one';\n")
        .file("src/two.mjs", "export const two = 'two';\n")
        .file("src/three/index.js", "module.exports.three = 'three';\n")
        .file("tsconfig.json", tsconfig);
    let ran = run(&project, &[]);
    let can = std::process::Command::new("node")
        .args(["-e", "process.exit(require('node:module').registerHooks ? 0 : 1)"])
        .status()
        .unwrap();
    match can.success() {
        true => assert_eq!(of(&stored(&project), "a")["verdict"], "pass", "{}", ran.err),
        false => assert!(ran.err.contains("Cannot find"), "{}", ran.err),
    }
}
