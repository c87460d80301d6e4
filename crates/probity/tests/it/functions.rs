//! Functions of users in Python and JavaScript: those that answer, here.

mod loading;
mod shapes;

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::{
    project::Project,
    run::{of, run, stored},
};

fn project(backend: &str, runner: &str, cases: &[Value]) -> Project {
    let mut lines = String::new();
    for (at, case) in cases.iter().enumerate() {
        let mut case = case.clone();
        case.as_object_mut().unwrap().entry("id").or_insert_with(|| json!(format!("case-{at}")));
        writeln!(lines, "{case}").unwrap();
    }
    let suite = format!(
        "max_error_rate = 1.0\n[backends.mine]\n{backend}\n[[runners]]\nname = \"r\"\n\
         dataset = \"cases.jsonl\"\n{runner}\n[retry]\nbackoff_base = 0.01\n"
    );
    Project::new().file("cases.jsonl", lines).file("probity.toml", suite)
}

#[track_caller]
fn passed(project: &Project) -> usize {
    stored(project).iter().filter(|it| it["verdict"] == "pass").count()
}

const PROVIDER_PY: &str = r#"
import json, os, time

def call_api(prompt, options, context):
    print("noise")
    with open("calls", "a") as calls:
        calls.write(prompt + "\n")
    do = context["vars"].get("do")
    if do == "wait":
        time.sleep(1000)
    if do == "crash":
        os._exit(3)
    if do == "raise":
        raise ValueError("no idea, key is " + os.environ["SECRET_KEY"])
    if do == "quota":
        return {"error": "401 Unauthorized: invalid api key"}
    if do == "flaky" and open("calls").read().count(prompt) == 1:
        return {"error": "429 Too Many Requests"}
    if do == "nothing":
        return None
    if do == "data":
        return {"output": {"city": context["vars"]["city"], "model": options["config"]["model"]}}
    said = "%s %s" % (prompt, options["config"]["tone"])
    return {"output": said, "tokenUsage": {"total": 9, "prompt": 7, "completion": 2}, "cost": 0.25}

async def other(prompt, options, context):
    return "other " + json.loads(prompt)[1]["content"]
"#;

#[test]
fn a_mistake_in_code_is_not_tried_again() {
    let python = "def call_api(prompt, options, context):\n    open('calls', 'a').write('x')\n    \
                  return nothing()\n";
    let node = "require('fs');\nmodule.exports = () => { require('fs').appendFileSync('calls', 'x'); nothing(); };\n";
    for (kind, file, code) in [("python", "p.py", python), ("node", "p.js", node)] {
        let backend = format!("kind = \"{kind}\"\nfile = \"{file}\"\n");
        let cases =
            [json!({ "id": "a", "prompt": "a", "assert": [{ "type": "contains", "value": "x" }] })];
        let project = project(&backend, "", &cases).file(file, code);
        run(&project, &["--max-retries", "3"]);
        let found = stored(&project);
        assert_eq!(of(&found, "a")["verdict"], "error", "{found:?}");
        assert_eq!(project.read("calls"), "x", "{kind}");
    }
}

#[test]
fn a_function_in_python_answers() {
    let backend = "kind = \"python\"\nfile = \"lib/provider.py\"\nmodel = \"m\"\nenv = [\"SECRET_KEY\"]\n\
                   timeout = \"5s\"\nmax_concurrency = 2\nconfig = { tone = \"kindly\" }\n";
    let doing = |id: &str, do_: &str| json!({ "id": id, "prompt": id, "prompt_vars": { "do": do_ }, "assert": [{ "type": "contains", "value": "kindly" }] });
    let cases = [
        doing("plain", ""),
        doing("wait", "wait"),
        doing("crash", "crash"),
        doing("raise", "raise"),
        doing("quota", "quota"),
        doing("flaky", "flaky"),
        doing("nothing", "nothing"),
        json!({ "id": "data", "prompt": "p", "prompt_vars": { "do": "data", "city": "Paris" },
                "expected_response": { "city": "Paris", "model": "m" }, "expected_format": "json" }),
        doing("after", ""),
    ];
    let project = project(backend, "", &cases).file("lib/provider.py", PROVIDER_PY);
    let project = project.file(".env", "SECRET_KEY=abcdefgh12345678\n");
    run(&project, &["--no-fail-fast", "--max-retries", "1"]);
    let found = stored(&project);
    let expected = [
        ("plain", "pass", ""),
        ("wait", "error", "timeout"),
        ("crash", "error", "crash"),
        ("raise", "error", "unknown"),
        ("quota", "error", "auth"),
        ("flaky", "pass", ""),
        ("nothing", "error", "bad_request"),
        ("data", "pass", ""),
        ("after", "pass", ""),
    ];
    for (id, verdict, kind) in expected {
        let case = of(&found, id);
        assert_eq!(case["verdict"], verdict, "{case}");
        assert_eq!(case["error"]["kind"].as_str().unwrap_or(""), kind, "{case}");
    }
    let plain = of(&found, "plain");
    assert_eq!(plain["raw_response"], "plain kindly", "{plain}");
    assert_eq!(plain["usage"]["input_tokens"], 7, "{plain}");
    assert_eq!(plain["cost_usd"], 0.25, "{plain}");
    let raised = of(&found, "raise")["error"]["message"].to_string();
    assert!(
        raised.contains("ValueError: no idea") && raised.contains("provider.py, line"),
        "{raised}"
    );
    assert!(!raised.contains("abcdefgh12345678"), "{raised}");
    let calls = project.read("calls");
    let count = |id: &str| calls.lines().filter(|it| *it == id).count();
    assert_eq!((count("flaky"), count("quota"), count("crash")), (2, 1, 2), "{calls}");
}

#[test]
fn nothing_that_a_function_returns_brings_a_key_into_the_store() {
    let backend = "kind = \"python\"\nfile = \"leaky.py\"\nenv = [\"SECRET_KEY\"]\n";
    let leaky = "import os\n\ndef call_api(prompt, options, context):\n    key = os.environ['SECRET_KEY']\n    \
                 if prompt == 'bad':\n        return {'output': 'x', 'cost': key}\n    \
                 return {'output': f'<think>{key}</think>{key}', 'finishReason': key, 'model': key}\n";
    let cases = ["good", "bad"].map(|it| json!({ "id": it, "prompt": it }));
    let project = project(backend, "", &cases).file("leaky.py", leaky);
    let project = project.file(".env", "SECRET_KEY=abcdefgh12345678\n");
    run(&project, &["--no-fail-fast", "--max-retries", "0", "--record", "answers.jsonl"]);
    let found = stored(&project);
    assert_eq!(of(&found, "good")["reasoning"], "[redacted]", "{found:?}");
    assert_eq!(of(&found, "bad")["verdict"], "error", "{found:?}");
    let all = format!("{found:?}{}", project.read("answers.jsonl"));
    assert!(!all.contains("abcdefgh12345678"), "{all}");
}

#[test]
fn a_function_that_judges_is_told_of_its_question_alone() {
    let backend = "kind = \"echo\"\n[backends.judge]\nkind = \"python\"\nfile = \"judge.py\"\n";
    let judge = "import json\n\ndef call_api(prompt, options, context):\n    \
                 return json.dumps({'criteria': [{'name': 'rubric', 'score': 5, 'reason': str(context['vars'])}]})\n";
    let case = json!({ "id": "a", "prompt": "p", "prompt_vars": { "answer": "known" }, "assert": [{ "type": "llm-rubric", "value": "v" }] });
    let project = project(backend, "backends = [\"mine\"]\njudge = \"judge\"", &[case]);
    let project = project.file("judge.py", judge);
    run(&project, &[]).expect(0, &[]);
    let found = of(&stored(&project), "a");
    assert_eq!(
        found["classification"]["scores"][0]["reason"], "the judge gave 1.00: {}",
        "{found}"
    );
}

#[test]
fn a_function_gets_instructions_as_messages() {
    let backend = "kind = \"python\"\nfile = \"provider.py:other\"\n";
    let cases = [json!({ "prompt": "Hello", "expected_response": "other Hello" })];
    let project = project(backend, "system = \"Be kind\"", &cases).file("provider.py", PROVIDER_PY);
    run(&project, &[]).expect(0, &[]);
    assert_eq!(passed(&project), 1);
}

#[test]
fn answers_of_a_function_are_kept_until_it_changes() {
    let backend = "kind = \"python\"\nfile = \"provider.py\"\nconfig = { tone = \"kindly\" }\n";
    let case = |n: u32| json!({ "prompt": "Hello", "prompt_vars": { "n": n }, "expected_response": "Hello kindly" });
    let project = project(backend, "", &[case(1), case(2)]).file("provider.py", PROVIDER_PY);
    run(&project, &["--cache"]).expect(0, &[("TOTAL_CALLS", "2")]);
    assert_eq!(passed(&project), 2);
    run(&project, &["--cache"]).expect(0, &[("TOTAL_CALLS", "0")]);
    assert_eq!(passed(&project), 2);
    let project = project.file("provider.py", PROVIDER_PY.replace("\"%s %s\"", "\"%s, %s\""));
    run(&project, &["--cache"]).expect(0, &[("TOTAL_CALLS", "2")]);
    assert_eq!(passed(&project), 0);
}

#[test]
fn classes_objects_and_functions_in_javascript_answer() {
    let class = "class Provider {\n  constructor(options) { this.options = options; this.asked = 0; }\n  \
                 id() { return this.options.id; }\n  async callApi(prompt, context, options) {\n    \
                 console.log('noise');\n    this.asked += 1;\n    return { output: `${prompt} ${context.vars.city} ${this.options.config.tone} ${this.id()}`, tokenUsage: { prompt: 3, completion: 4 } };\n  }\n}\n";
    let files = [
        ("class.cjs", format!("{class}module.exports = Provider;\n")),
        ("class.mjs", format!("{class}export default Provider;\n")),
        ("object.mjs", format!("{class}export default new Provider({{ id: 'mine', config: {{ tone: 'kindly' }} }});\n")),
        ("function.mjs", "export default async (prompt, context, options) => `${prompt} ${context.vars.city} ${options.config.tone} ${options.id}`;\n".to_owned()),
    ];
    for (name, text) in files {
        let backend =
            format!("kind = \"node\"\nfile = \"{name}\"\nconfig = {{ tone = \"kindly\" }}\n");
        let case = json!({ "prompt": "Hello", "prompt_vars": { "city": "Paris" }, "expected_response": "Hello Paris kindly mine" });
        let project = project(&backend, "", &[case]).file(name, text);
        run(&project, &[]).expect(0, &[]);
        assert_eq!(passed(&project), 1, "{name}: {:?}", stored(&project));
    }
}

#[test]
fn a_function_that_is_not_there_is_told_before_the_first_call() {
    let case = json!({ "prompt": "Hello", "expected_response": "Hello" });
    let asked = |backend: &str| project(backend, "", std::slice::from_ref(&case));
    let shown = asked("kind = \"python\"\nfile = \"none.py\"\n").shown(&["run"]);
    assert!(
        shown.starts_with("exit 2") && shown.contains("none.py`, which is not there"),
        "{shown}"
    );
    let shown = asked("kind = \"node\"\n").shown(&["run"]);
    assert!(shown.contains("backend `mine` of kind `node` needs `file`"), "{shown}");
    let shown = asked("kind = \"python\"\nfile = \"a.py\"\ncommand = [\"x\"]\nconfig = 1\n")
        .shown(&["run"]);
    assert!(shown.contains("`command` does not apply to a backend of kind `python`"), "{shown}");
    assert!(shown.contains("`config` must be a table"), "{shown}");
    let doctor = |text: &str| {
        let project = asked("kind = \"python\"\nfile = \"provider.py\"\n");
        project.file("provider.py", text).shown(&["doctor"])
    };
    let shown = doctor(PROVIDER_PY);
    assert!(shown.starts_with("exit 0") && shown.contains("provider.py"), "{shown}");
    let shown = doctor("def other():\n    pass\n");
    assert!(shown.starts_with("exit 3") && shown.contains("has no function `call_api`"), "{shown}");
}

#[test]
fn a_function_is_not_asked_for_what_it_cannot_give() {
    let backend = "kind = \"python\"\nfile = \"provider.py\"\ntemperature = 0.5\n";
    let case = json!({ "prompt": "Hello", "response_format": "json", "expected_response": "x" });
    let project = project(backend, "", &[case]).file("provider.py", PROVIDER_PY);
    let shown = project.shown(&["run"]);
    assert!(shown.contains("needs a `response_format`"), "{shown}");
    assert!(shown.contains("does not support temperature"), "{shown}");
}

#[test]
fn what_a_function_cannot_be_told_is_an_error() {
    let backend =
        "kind = \"python\"\nfile = \"p.py\"\nconfig = { place = [\"{{ env.PLACE / 2 }}\"] }";
    let case = json!({ "prompt": "x", "expected_response": "x" });
    let python = "def call_api(prompt, options, context):\n    return {'output': 'x'}\n";
    let project = project(backend, "", &[case]).file("p.py", python).file(".env", "PLACE=here\n");
    let shown = project.shown(&["run"]);
    assert!(shown.starts_with("exit 2"), "{shown}");
    assert!(shown.contains("has `{{ env.PLACE / 2 }}`, which cannot be filled in"), "{shown}");
}

#[test]
fn a_function_is_told_values_of_variables_and_keys_are_kept_nowhere() {
    let python = "def call_api(prompt, options, context):\n    told = options['config']\n    \
                  return {'output': '%d %s %s %s' % (len(told['key']), told['key'], told['place']['url'], told['own'])}\n";
    let backend = "kind = \"python\"\nfile = \"p.py\"\n\
                   config = { key = \"{{ env.MY_KEY }}\", place = { url = \"http://{{ env.PLACE }}/x\" }, own = \"{{ name }}\" }";
    let case = json!({ "prompt": "x", "expected_response": "15 [redacted] http://place-of-somebody/x {{ name }}" });
    let project = project(backend, "", &[case]).file("p.py", python);
    let unset = project.shown(&["run"]);
    assert!(unset.contains("MY_KEY"), "{unset}");
    let set = project.file(".env", "MY_KEY=key-of-somebody\nPLACE=place-of-somebody\n");
    run(&set, &[]).expect(0, &[]);
    let reply = stored(&set)[0]["raw_response"].clone();
    assert_eq!(reply, "15 [redacted] http://place-of-somebody/x {{ name }}");
    let store = std::fs::read(set.path(".probity/probity.db")).unwrap();
    let has = |text: &str| store.windows(text.len()).any(|it| it == text.as_bytes());
    assert!(!has("key-of-somebody") && has("place-of-somebody"));
}
