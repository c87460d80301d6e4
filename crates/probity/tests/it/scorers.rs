//! Scorers of one's own: scripts, programs that stay up, programs that are run for one reply.

mod hostile;

use probity_testkit::{Answer, FakeServer, Script};
use serde_json::{Value, json};

use crate::{
    project::Project,
    rescore::check_export,
    run::{run, stored, suite},
};

fn server(reply: &str) -> FakeServer {
    FakeServer::start(Script::always(Answer::text(reply)))
}

fn cases(cases: &[(&str, Value)]) -> String {
    let line = |(id, fields): &(&str, Value)| {
        let mut case = json!({ "id": id, "prompt": "Say it", "prompt_vars": { "city": "Paris" } });
        case.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        format!("{case}\n")
    };
    cases.iter().map(line).collect()
}

fn asserting(assertion: &Value) -> Value {
    json!({ "assert": [assertion] })
}

fn javascript(value: &str) -> Value {
    asserting(&json!({ "type": "javascript", "value": value }))
}

fn project(server: &FakeServer, more: &str, dataset: &[(&str, Value)]) -> Project {
    Project::new().file("cases.jsonl", cases(dataset)).file(
        "probity.toml",
        format!("max_error_rate = 1.0\nallow_code = true\n{}", suite(&[("fake", server)], more)),
    )
}

fn of(stored: &[Value], id: &str) -> Value {
    stored.iter().find(|it| it["case_id"] == id).unwrap().clone()
}

#[track_caller]
fn verdicts(stored: &[Value], expected: &[(&str, &str)]) {
    for (id, verdict) in expected {
        let found = of(stored, id);
        assert_eq!(found["verdict"], *verdict, "{id}: {}", found["reason"]);
    }
    assert_eq!(stored.len(), expected.len());
}

#[test]
fn javascript_judges_replies() {
    let server = server("Paris is large");
    let dataset = [
        ("expression", javascript("output.includes(context.vars.city)")),
        ("body", javascript("const n = output.length;\nreturn n > 100;")),
        (
            "arrow",
            javascript(
                "(output, { prompt, test }) => prompt === 'Say it' && test.vars.city === 'Paris'",
            ),
        ),
        ("number", asserting(&json!({ "type": "javascript", "value": "0.4", "threshold": 0.5 }))),
        ("not", asserting(&json!({ "type": "not-javascript", "value": "output.length > 100" }))),
        (
            "config",
            asserting(
                &json!({ "type": "javascript", "value": "output.length > context.config.least", "config": { "least": 5 } }),
            ),
        ),
        (
            "table",
            asserting(&json!({ "type": "javascript", "metric": "tone",
            "value": "({ pass: false, score: 0.25, reason: 'too loud', namedScores: { calm: 0.1 } })" })),
        ),
        ("file", asserting(&json!({ "type": "javascript", "value": "file://lib/score.js" }))),
    ];
    let project = project(&server, "", &dataset)
        .file("lib/score.js", "const { has } = require('./words');\nmodule.exports = (output, context) => has(output, context.vars.city);")
        .file("lib/words.js", "exports.has = (text, word) => text.split(' ').includes(word);");
    run(&project, &[]);
    let found = stored(&project);
    let expected = [
        ("expression", "pass"),
        ("body", "fail"),
        ("arrow", "pass"),
        ("number", "fail"),
        ("not", "pass"),
        ("config", "pass"),
        ("table", "fail"),
        ("file", "pass"),
    ];
    verdicts(&found, &expected);
    assert_eq!(of(&found, "body")["reason"], "the score is 0");
    assert_eq!(of(&found, "number")["reason"], "`0.4` gives 0.4");
    let table = of(&found, "table");
    assert_eq!(table["reason"], "too loud");
    let scores = &table["classification"]["scores"];
    assert_eq!((&scores[0]["name"], &scores[0]["value"]), (&json!("tone"), &json!(0.25)));
    assert_eq!(
        (&scores[1]["name"], &scores[1]["value"], &scores[1]["weight"]),
        (&json!("calm"), &json!(0.1), &json!(0.0))
    );
    // The same rules judge what is stored.
    check_export(&project);
    verdicts(&stored(&project), &expected);
}

#[test]
fn a_script_that_fails_says_nothing_of_the_model() {
    let server = server("Paris");
    let dataset = [
        ("throws", javascript("const a = 1;\nthrow new Error('no idea');")),
        ("text", javascript("'yes'")),
        ("endless", javascript("while (true) {}")),
        ("memory", javascript("const a = []; while (true) a.push('x'.repeat(1000) + a.length);")),
        ("deep", javascript("(function f() { return f() + 1 })()")),
        ("backtracking", javascript("/(a+)+$/.test('a'.repeat(50) + 'b')")),
        (
            "pollutes",
            javascript(
                "Object.prototype.pass = true; Array.prototype.includes = () => true; globalThis.x = 1; return true;",
            ),
        ),
        ("getter", javascript("({ get pass() { while (true); } })")),
        ("huge", javascript("({ pass: true, reason: 'x'.repeat(5e6) })")),
        (
            "after",
            javascript(
                "typeof x === 'undefined' && !['a'].includes('b') && ({}).pass === undefined",
            ),
        ),
        (
            "wrong-anyway",
            json!({ "expected_response": "Rome", "assert": [{ "type": "javascript", "value": "throw 1" }] }),
        ),
    ];
    let project = project(&server, "", &dataset);
    run(&project, &[]);
    let found = stored(&project);
    verdicts(
        &found,
        &[
            ("throws", "error"),
            ("text", "error"),
            ("endless", "error"),
            ("memory", "error"),
            ("deep", "error"),
            ("backtracking", "error"),
            ("pollutes", "pass"),
            ("getter", "error"),
            ("huge", "error"),
            ("after", "pass"),
            ("wrong-anyway", "fail"),
        ],
    );
    let reason = |id: &str| of(&found, id)["reason"].as_str().unwrap().to_owned();
    assert_eq!(reason("throws"), "the script failed: no idea (line 2)");
    assert!(reason("endless").contains("million steps"), "{}", reason("endless"));
    assert!(reason("text").contains("it returned a text"), "{}", reason("text"));
}

#[test]
fn a_suite_may_say_that_a_script_that_fails_is_a_failure() {
    let server = server("Paris");
    let parse = json!({ "type": "javascript", "value": "JSON.parse(output).city === 'Paris'" });
    let not = json!({ "type": "not-javascript", "value": "JSON.parse(output)" });
    let set = json!({ "type": "assert-set", "threshold": 0.5, "assert": [
        parse, { "type": "contains", "value": "Paris" }] });
    let dataset = [
        ("throws", asserting(&parse)),
        ("negated", asserting(&not)),
        ("set", asserting(&set)),
        ("own", json!({ "assert": [parse], "scorer_errors": "error" })),
        ("python", asserting(&json!({ "type": "python", "value": "1 / 0 > 1" }))),
        ("holds", javascript("output === 'Paris'")),
    ];
    let named = "dataset = \"cases.jsonl\"\n";
    let suite = suite(&[("fake", &server)], "")
        .replace(named, &format!("{named}scorer_errors = \"fail\"\nallow_code = true\n"));
    let project = Project::new()
        .file("cases.jsonl", cases(&dataset))
        .file("probity.toml", format!("max_error_rate = 1.0\n{suite}"));
    run(&project, &[]);
    let expected = [
        ("throws", "fail"),
        ("negated", "fail"),
        ("set", "pass"),
        ("own", "error"),
        ("python", "fail"),
        ("holds", "pass"),
    ];
    let found = stored(&project);
    verdicts(&found, &expected);
    let reason = of(&found, "throws")["reason"].to_string();
    assert!(reason.contains("the script failed"), "{reason}");
    check_export(&project);
    verdicts(&stored(&project), &expected);
}

#[test]
fn wrong_scripts_and_unknown_scorers_are_refused_before_the_first_call() {
    let server = server("Paris");
    let dataset = [
        ("syntax", javascript("const a = 1;\nreturn a +;")),
        ("no-file", javascript("file://none.js")),
        ("typescript", javascript("file://score.ts")),
        ("unknown", asserting(&json!({ "type": "scorer", "value": "tone" }))),
        ("no-python", asserting(&json!({ "type": "python", "value": "file://none.py:score" }))),
        ("outside", javascript("file:///etc/secret.js")),
        ("transform", json!({ "expected_response": "x", "transform": "output +" })),
    ];
    let project = project(&server, "[scorers.length]\ncommand = [\"true\"]\n", &dataset);
    let shown = project.shown(&["run"]);
    assert!(shown.starts_with("exit 2"), "{shown}");
    for expected in [
        "(line 2)",
        "none.js",
        "is not JavaScript",
        "the suite has no scorer `tone`",
        "`none.py` cannot be used",
        "/etc/secret.js",
        "unexpected token",
    ] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    assert_eq!(server.seen().asked, 0);
}

#[test]
fn a_scorer_that_is_not_there_is_told_before_the_first_call() {
    let server = server("Paris");
    let scorer = |name: &str| asserting(&json!({ "type": "scorer", "value": name }));
    let dataset = [("a", scorer("program")), ("b", scorer("file")), ("c", scorer("script"))];
    let suite = "[scorers.program]\ncommand = [\"./none.sh\"]\n\n[scorers.file]\npython = \"none.py:score\"\n\n\
                 [scorers.script]\nnode = \"none.mjs\"\n\n[scorers.unused]\ncommand = [\"no-such-program\"]\n";
    let shown = project(&server, suite, &dataset).shown(&["run"]);
    assert!(shown.starts_with("exit 2"), "{shown}");
    for expected in [
        "scorer `program` cannot be used: there is no program",
        "scorer `file` cannot be used: there is no file",
        "none.mjs`",
        "probity.toml:",
        "a scorer cannot be started, so nothing was run",
    ] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    assert!(!shown.contains("unused"), "nobody asks it: {shown}");
    assert_eq!(server.seen().asked, 0);
}

#[test]
fn a_transform_makes_what_is_checked() {
    let server = server("Answer: {\"city\": \"Paris\", \"n\": [1, 2]}");
    let parse = "JSON.parse(output.slice(output.indexOf('{')))";
    let dataset = [
        (
            "field",
            json!({ "transform": format!("{parse}.city"), "expected_response": "Paris", "match": "exact" }),
        ),
        (
            "object",
            json!({ "transform": parse, "assert": [{ "type": "javascript", "value": "output.n.length === 2" }, { "type": "is-json" }] }),
        ),
        (
            "assertion",
            json!({ "transform": "output", "assert": [
            { "type": "equals", "value": "PARIS", "transform": format!("{parse}.city.toUpperCase()") },
            { "type": "starts-with", "value": "Answer" }] }),
        ),
        ("fails", json!({ "transform": "JSON.parse(output)", "expected_response": "x" })),
        ("runner", json!({ "expected_response": "ANSWER", "match": "starts_with" })),
    ];
    let project = project(&server, "", &dataset);
    let text = project.read("probity.toml").replace(
        "dataset = \"cases.jsonl\"\n",
        "dataset = \"cases.jsonl\"\ntransform = \"output.toUpperCase()\"\n",
    );
    let project = project.file("probity.toml", text);
    run(&project, &[]);
    let found = stored(&project);
    verdicts(
        &found,
        &[
            ("field", "pass"),
            ("object", "pass"),
            ("assertion", "pass"),
            ("fails", "error"),
            ("runner", "pass"),
        ],
    );
    assert_eq!(of(&found, "field")["classification"]["details"]["transformed"], "Paris");
    let shown = project.shown(&["show", "latest", "object"]);
    assert!(shown.contains("transformed"), "{shown}");
    assert!(of(&found, "fails")["reason"].as_str().unwrap().starts_with("the transform failed"));
}

const LENGTH_PY: &str = r#"
import json, os, sys
print("a line that is no answer")
for line in sys.stdin:
    request = json.loads(line)
    output, config = request["output"], request["context"].get("config") or {}
    if output == "crash" or config.get("crash"):
        print("last words", file=sys.stderr)
        os._exit(3)
    if config.get("hang"):
        import time
        time.sleep(1000)
    if config.get("flood"):
        sys.stdout.write("x" * (20 << 20))
    print(json.dumps({"id": request["id"] - 1, "pass": False}))
    print("noise", {"id": request["id"]}, flush=True)
    score = min(1.0, len(output) / 10)
    print(json.dumps({"id": request["id"], "score": score, "reason": "pid %d" % os.getpid(), "scores": {"length": score}}), flush=True)
"#;

fn by(scorer: &str, config: &Value) -> Value {
    asserting(&json!({ "type": "scorer", "value": scorer, "config": config, "threshold": 0.5 }))
}

#[test]
fn a_program_stays_up_and_its_death_is_no_verdict() {
    let server = server("Paris");
    let mut dataset: Vec<(String, Value)> =
        (0..20).map(|at| (format!("case-{at}"), by("length", &json!({})))).collect();
    for (id, config) in [
        ("crash", json!({ "crash": true })),
        ("hang", json!({ "hang": true })),
        ("flood", json!({ "flood": true })),
    ] {
        dataset.push((id.to_owned(), by("length", &config)));
    }
    let dataset: Vec<(&str, Value)> =
        dataset.iter().map(|(id, it)| (id.as_str(), it.clone())).collect();
    let scorer = "[scorers.length]\ncommand = [\"python3\", \"length.py\"]\ntimeout = \"2s\"\n";
    let project = project(&server, scorer, &dataset).file("length.py", LENGTH_PY);
    run(&project, &[]);
    let found = stored(&project);
    let mut pids = std::collections::BTreeSet::new();
    for (id, _) in dataset.iter().take(20) {
        let case = of(&found, id);
        assert_eq!(case["verdict"], "pass", "{}", case["reason"]);
        pids.insert(case["classification"]["scores"][0]["reason"].to_string());
    }
    assert!(pids.len() <= 4, "it is restarted only when it died: {pids:?}");
    let reason = |id: &str| of(&found, id)["reason"].as_str().unwrap().to_owned();
    for id in ["crash", "hang", "flood"] {
        assert_eq!(of(&found, id)["verdict"], "error", "{}", reason(id));
    }
    assert!(reason("crash").contains("last words"), "{}", reason("crash"));
    assert!(reason("hang").contains("no answer within 2s"), "{}", reason("hang"));
    assert!(reason("flood").contains("MiB"), "{}", reason("flood"));
    // Nobody is asked again.
    let calls = server.seen().asked;
    check_export(&project);
    assert_eq!(of(&stored(&project), "case-3")["verdict"], "pass");
    assert_eq!(of(&stored(&project), "crash")["verdict"], "error");
    assert_eq!(server.seen().asked, calls);
}

#[test]
fn python_functions_are_run_as_promptfoo_runs_them() {
    let server = server("Paris is large");
    let python = |value: &str| {
        asserting(&json!({ "type": "python", "value": value, "config": { "least": 3 } }))
    };
    let dataset = [
        ("expression", python("len(output) > context['config']['least']")),
        (
            "body",
            python(
                "words = output.split()\nprint('noise')\nreturn {'pass': len(words) == 3, 'score': 1.0, 'reason': 'counted'}",
            ),
        ),
        ("file", python("file://score.py")),
        ("named", python("file://score.py:loud")),
        ("raises", python("1 / 0")),
        ("no-function", python("file://score.py:none")),
    ];
    let project = project(&server, "", &dataset).file(
        "score.py",
        "import helper\n\ndef get_assert(output, context):\n    print('hello')\n    return helper.score(output, context['vars']['city'])\n\ndef loud(output, context):\n    return output.isupper()\n",
    )
    .file("helper.py", "def score(output, city):\n    return {'pass_': city in output, 'score': 0.75, 'named_scores': {'city': 1}}\n");
    run(&project, &[]);
    let found = stored(&project);
    verdicts(
        &found,
        &[
            ("expression", "pass"),
            ("body", "pass"),
            ("file", "pass"),
            ("named", "fail"),
            ("raises", "error"),
            ("no-function", "error"),
        ],
    );
    let reason = |id: &str| of(&found, id)["reason"].as_str().unwrap().to_owned();
    assert!(reason("raises").contains("ZeroDivisionError"), "{}", reason("raises"));
    assert!(reason("no-function").contains("no function `none`"), "{}", reason("no-function"));
    assert_eq!(of(&found, "file")["classification"]["scores"][0]["value"], 0.75);
}

#[test]
fn node_runs_files_that_need_packages() {
    let server = server("Paris is large");
    let dataset = [("node", asserting(&json!({ "type": "scorer", "value": "words" })))];
    let project = project(&server, "[scorers.words]\nnode = \"score.mjs\"\n", &dataset)
        .file("score.mjs", "import { basename } from 'node:path';\nimport words from 'words';\nexport default async (output, context) => {\n  console.log('noise');\n  return { pass: words(output) === 3 && basename('/a/b') === 'b', score: 1, reason: context.vars.city };\n};\n")
        .file("node_modules/words/package.json", "{\"name\": \"words\", \"main\": \"index.js\"}")
        .file("node_modules/words/index.js", "module.exports = (text) => text.split(' ').length;");
    run(&project, &[]).expect(0, &[]);
    let found = stored(&project);
    assert_eq!(of(&found, "node")["classification"]["scores"][0]["reason"], "Paris");
}

/// Looks like a token, in a variable whose name says nothing of it.
const LOGIN: &str = "login-0123456789-abcdefgh";

const LEAKS_PY: &str = r#"
import json, os, sys
for line in sys.stdin:
    request = json.loads(line)
    key = os.environ["SCORER_LOGIN"]
    way = request["context"]["config"]["way"]
    if way == "dies":
        sys.stderr.write(key + "x" * 490)
        sys.exit(1)
    said = {"error": {"key": key}} if way == "error" else {"pass": False, "reason": "401 for " + key}
    print(json.dumps({"id": request["id"], **said}), flush=True)
"#;

#[test]
fn keys_are_taken_out_of_what_scorers_say() {
    let server = server("Paris");
    let exec = |script: &str| asserting(&json!({ "type": "exec", "value": ["sh", "-c", script] }));
    let by = |way: &str| by("leaks", &json!({ "way": way }));
    let dataset = [
        ("answer", by("answer")),
        ("error", by("error")),
        ("dies", by("dies")),
        ("exec", exec("cat login.txt; exit 1")),
        ("table", exec("printf '{\"reason\": \"%s\"}' \"$(cat login.txt)\"; exit 1")),
        // What is shown begins within it.
        ("cut", exec("cat login.txt; printf '%0490d' 0; exit 1")),
    ];
    let scorer =
        "[scorers.leaks]\ncommand = [\"python3\", \"leaks.py\"]\nenv = [\"SCORER_LOGIN\"]\n";
    let project = project(&server, scorer, &dataset)
        .file("leaks.py", LEAKS_PY)
        .file("login.txt", LOGIN)
        .file(".env", format!("SCORER_LOGIN={LOGIN}\n"));
    let ran = run(&project, &["--record", "answers.jsonl"]);
    let found = stored(&project);
    verdicts(
        &found,
        &[
            ("answer", "fail"),
            ("error", "error"),
            ("dies", "error"),
            ("exec", "fail"),
            ("table", "fail"),
            ("cut", "fail"),
        ],
    );
    assert_eq!(of(&found, "answer")["reason"], "401 for [redacted]");
    assert!(of(&found, "error")["reason"].to_string().contains("[redacted]"));
    let kept = [Value::from(found).to_string(), ran.err, project.read("answers.jsonl")];
    assert!(kept.iter().all(|it| !it.contains("abcdefgh")), "{kept:?}");
    let store = std::fs::read(project.path(".probity/probity.db")).unwrap();
    assert!(!store.windows(8).any(|it| it == b"abcdefgh"));
}

#[test]
fn a_program_is_run_for_one_reply() {
    let server = server("Paris is large");
    let exec = |words: &[&str]| asserting(&json!({ "type": "exec", "value": words }));
    let dataset = [
        ("grep", exec(&["grep", "-q", "Paris"])),
        ("fails", exec(&["sh", "-c", "echo not enough; exit 1"])),
        ("table", exec(&["./check.sh", "x"])),
        ("context", exec(&["sh", "-c", "grep -q Paris \"$PROBITY_CONTEXT\""])),
        ("missing", exec(&["./none.sh"])),
        ("killed", exec(&["sh", "-c", "kill -9 $$"])),
        ("not-found", exec(&["sh", "-c", "no-such-program"])),
    ];
    let project = project(&server, "", &dataset).file(
        "check.sh",
        "#!/bin/sh\ncat >/dev/null\necho working\necho '{\"score\": 0.5, \"reason\": \"half\", \"scores\": {\"depth\": 0.2}}'\n",
    );
    let script = project.path("check.sh");
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    run(&project, &[]);
    let found = stored(&project);
    verdicts(
        &found,
        &[
            ("grep", "pass"),
            ("fails", "fail"),
            ("table", "pass"),
            ("context", "pass"),
            ("missing", "error"),
            ("killed", "error"),
            ("not-found", "error"),
        ],
    );
    assert_eq!(of(&found, "fails")["reason"], "not enough");
    assert_eq!(of(&found, "table")["classification"]["scores"][1]["name"], "depth");
}

#[test]
fn a_gate_may_name_a_score_that_only_a_scorer_knows() {
    let server = server("Paris");
    let dataset = [("case", javascript("({ pass: true, scores: { calm: 0.4 } })"))];
    let project = project(&server, "", &dataset);
    let text = project.read("probity.toml").replace(
        "dataset = \"cases.jsonl\"\n",
        "dataset = \"cases.jsonl\"\ngates = { \"score.calm\" = { min = 0.5 } }\n",
    );
    run(&project.file("probity.toml", text), &[]).expect(1, &[]);
}

#[test]
fn scripts_are_told_the_same_when_a_reply_is_judged_again() {
    let server = server("Paris");
    let asserting = javascript("context.provider.id === 'fake' && context.prompt === 'Say Paris'");
    let mut templated = asserting.clone();
    templated["prompt"] = json!("Say {{ city }}");
    let mut messages = asserting;
    messages["prompt"] = json!(null);
    messages["messages"] = json!([{ "role": "system", "content": "Be short." },
                                  { "role": "user", "content": "Say {{ city }}" }]);
    let project = project(&server, "", &[("messages", messages), ("prompt", templated)]);
    run(&project, &[]);
    verdicts(&stored(&project), &[("messages", "pass"), ("prompt", "pass")]);
    check_export(&project);
}

#[test]
fn why_a_scorer_was_not_asked_is_known_again() {
    let server = server("Paris");
    let throws = json!({ "type": "python", "value": "True", "transform": "null.length" });
    let project = project(&server, "", &[("case", asserting(&throws))]);
    run(&project, &[]);
    let reason = of(&stored(&project), "case")["reason"].clone();
    assert!(reason.as_str().unwrap().contains("the transform failed"), "{reason}");
    project.shown(&["rescore", "latest"]);
    assert_eq!(of(&stored(&project), "case")["reason"], reason);
}

#[test]
fn an_answer_to_another_question_is_not_taken_for_one_to_this() {
    let server = server("Paris");
    let asked = |config: &Value| {
        let assertion = json!({ "type": "python", "value": "len(output) > 3", "config": config });
        [("case", asserting(&assertion))]
    };
    let project = project(&server, "", &asked(&json!({ "least": 1 })));
    run(&project, &[]);
    verdicts(&stored(&project), &[("case", "pass")]);
    let project = project.file("cases.jsonl", cases(&asked(&json!({ "least": 2 }))));
    project.shown(&["rescore", "latest"]);
    let found = stored(&project);
    verdicts(&found, &[("case", "error")]);
    assert_eq!(of(&found, "case")["reason"], "another scorer was asked, or with another `config`");
}

#[test]
fn a_transform_without_effect_is_refused() {
    let server = server("Paris");
    let judged = json!({ "type": "assert-set", "transform": "output.trim()",
                         "assert": [{ "type": "assert-set", "assert": [{ "type": "python", "value": "True" }] }] });
    let measured = json!({ "type": "latency", "threshold": 9, "transform": "output.trim()" });
    let dataset = [("judged", asserting(&judged)), ("measured", asserting(&measured))];
    let shown = project(&server, "", &dataset).shown(&["run"]);
    assert!(shown.starts_with("exit 2"), "{shown}");
    assert!(shown.contains("each of these needs the `transform` itself"), "{shown}");
    let expected = "`transform` goes with checks of what the reply says, not with `latency`";
    assert!(shown.contains(expected), "{shown}");
}

#[test]
fn a_scorer_is_given_the_whole_reply() {
    let server = server("Paris");
    let assertion = json!({ "type": "python", "value": "True", "extract": "last_number" });
    let shown = project(&server, "", &[("case", asserting(&assertion))]).shown(&["run"]);
    assert!(shown.starts_with("exit 2"), "{shown}");
    assert!(shown.contains("take the answer out with `transform`"), "{shown}");
    assert_eq!(server.seen().asked, 0);
}

#[test]
fn code_of_a_dataset_is_run_only_where_the_suite_allows_it() {
    let server = server("Paris");
    let touch = json!({ "type": "exec", "value": ["touch", "ran"] });
    let python = json!({ "type": "not-python", "value": "open('ran', 'w')" });
    let dataset = [
        ("sandboxed", javascript("true")),
        ("exec", asserting(&touch)),
        ("set", asserting(&json!({ "type": "assert-set", "assert": [python] }))),
        ("named", asserting(&json!({ "type": "scorer", "value": "own" }))),
    ];
    let project = project(&server, "[scorers.own]\npython = \"own.py\"\n", &dataset)
        .file("own.py", "def get_assert(output, context):\n    return True\n");
    let trusting = project.read("probity.toml");
    let with = |top: &str, runner: &str| {
        trusting.replace("allow_code = true", top).replace(
            "dataset = \"cases.jsonl\"\n",
            &format!("dataset = \"cases.jsonl\"\n{runner}\n"),
        )
    };
    let project = project.file("probity.toml", with("", ""));
    insta::assert_snapshot!(project.shown(&["run"]));
    assert_eq!(server.seen().asked, 0);
    let project = project.file("probity.toml", with("allow_code = true", "allow_code = false"));
    let shown = project.shown(&["run"]);
    assert_eq!(shown.matches("error[code-not-allowed]").count(), 2, "{shown}");
    let shown = project.shown(&["dataset", "validate", "cases.jsonl"]);
    assert!(shown.starts_with("exit 0"), "{shown}");
    assert!(!project.path("ran").exists());
    let project = project.file("probity.toml", with("", "allow_code = true"));
    run(&project, &[]);
    assert!(project.path("ran").exists());
    // What is stored is judged again without running any of it.
    std::fs::remove_file(project.path("ran")).unwrap();
    let project = project.file("probity.toml", with("", ""));
    let shown = project.shown(&["rescore", "latest"]);
    assert!(shown.starts_with("exit 0") || shown.starts_with("exit 1"), "{shown}");
    assert!(!project.path("ran").exists());
}

#[test]
fn a_dataset_is_sound_wherever_the_program_is_started() {
    let server = FakeServer::start(Script::default());
    let case = json!({ "id": "a", "prompt": "p",
                       "assert": [{ "type": "javascript", "value": "file://lib/s.js" }] });
    let suite = format!(
        "[backends.b]\nkind = \"openai\"\nbase_url = \"{}\"\nmodel = \"m\"\n\
         [[runners]]\nname = \"r\"\ndataset = \"c.jsonl\"\n",
        server.url()
    );
    let project = Project::new()
        .file("sub/probity.toml", suite)
        .file("sub/c.jsonl", case.to_string())
        .file("sub/lib/s.js", "module.exports = () => true;");
    let code = |words: &[&str]| project.run(words).status.code();
    assert_eq!(code(&["run", "sub/probity.toml"]), Some(0));
    assert_eq!(code(&["dataset", "validate", "sub/c.jsonl"]), Some(0));
    project.run(&["report", "latest", "-o", "sub/all.jsonl"]);
    let again = project.run(&["classify", "sub/all.jsonl"]);
    let again = String::from_utf8(again.stdout).unwrap();
    assert!(again.contains("\"verdict\":\"pass\""), "{again}");
    std::fs::remove_file(project.path("sub/lib/s.js")).unwrap();
    assert_eq!(code(&["dataset", "validate", "sub/c.jsonl"]), Some(2));
}
