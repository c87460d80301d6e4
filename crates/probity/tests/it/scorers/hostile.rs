//! Scorers that mean ill, or are broken: each costs its own case an error, and nothing else.

use std::{collections::BTreeMap, fmt::Write as _};

use serde_json::{Value, json};

use super::{asserting, by, cases, javascript, of, project, server};
use crate::{
    project::Project,
    resume::is_alive,
    run::{run, stored},
};

/// Does what the assertion's `config` tells it; for the rest it finds every reply good.
const SCORER: &str = r#"
import json, os, subprocess, sys, time
for line in sys.stdin:
    request = json.loads(line)
    do = (request["context"].get("config") or {}).get("do")
    answer = json.dumps({"id": request["id"], "pass": True})
    if do == "loop":
        while True:
            pass
    elif do == "gigabyte":
        for _ in range(1024):
            sys.stdout.write("x" * (1 << 20))
    elif do == "crash":
        os.abort()
    elif do == "no-json":
        answer = "yes"
    elif do == "no-verdict":
        answer = json.dumps({"id": request["id"], "verdict": "good"})
    elif do == "wrong-type":
        answer = json.dumps({"id": request["id"], "pass": "yes"})
    elif do == "not-finite":
        answer = json.dumps({"id": request["id"], "score": float("nan")})
    elif do == "no-newline":
        sys.stdout.write(answer)
        sys.stdout.flush()
        time.sleep(1000)
    elif do == "children":
        child = subprocess.Popen(["sleep", "1000"])
        with open("child.pid", "w") as file:
            file.write(str(child.pid))
        os._exit(3)
    elif do == "prints":
        for at in range(10000):
            print("noise", at, json.dumps({"id": request["id"] + 1 + at, "pass": False}))
            print("noise", at, file=sys.stderr)
    elif do == "ends":
        print(answer, flush=True)
        os._exit(0)
    print(answer, flush=True)
"#;

/// What is done, and how the error begins; none where the case passes all the same.
const DONE: [(&str, Option<&str>); 11] = [
    ("loop", Some("no answer within 5s")),
    ("gigabyte", Some("it wrote more than 8 MiB")),
    ("crash", Some("it ended without an answer")),
    ("no-json", Some("no answer within 5s")),
    ("no-verdict", Some("it says neither `pass` nor `score`")),
    ("wrong-type", Some("its `pass` is neither true nor false")),
    ("not-finite", Some("no answer within 5s")),
    ("no-newline", Some("no answer within 5s")),
    ("children", Some("it ended without an answer")),
    ("prints", None),
    ("ends", None),
];

#[track_caller]
fn check(project: &Project, expected: &BTreeMap<String, Option<&str>>) {
    run(project, &[]);
    let found = stored(project);
    assert_eq!(found.len(), expected.len());
    for (id, error) in expected {
        let case = of(&found, id);
        let reason = case["reason"].as_str().unwrap_or_default();
        match error {
            None => assert_eq!(case["verdict"], "pass", "{id}: {reason}"),
            Some(error) => {
                assert_eq!(case["verdict"], "error", "{id}: {reason}");
                assert!(reason.contains(error), "{id}: {reason}");
            }
        }
    }
}

#[track_caller]
fn is_gone(project: &Project, file: &str) {
    let pid = project.read(file).trim().parse().unwrap();
    assert!(!is_alive(pid), "process {pid} of {file} still runs");
}

#[test]
fn a_hostile_program_that_stays_up_costs_its_case_an_error() {
    let server = server("Paris");
    let mut suite = String::new();
    let mut expected = BTreeMap::new();
    let mut dataset: Vec<(String, Value)> = Vec::new();
    for (done, error) in DONE {
        let _ = writeln!(
            suite,
            "[scorers.{done}]\ncommand = [\"python3\", \"scorer.py\"]\ntimeout = \"5s\""
        );
        for (id, config, error) in [
            (format!("{done}-before"), json!({}), None),
            (done.to_owned(), json!({ "do": done }), error),
            (format!("{done}-after"), json!({}), None),
        ] {
            dataset.push((id.clone(), by(done, &config)));
            expected.insert(id, error);
        }
    }
    let dataset: Vec<(&str, Value)> =
        dataset.iter().map(|(id, it)| (id.as_str(), it.clone())).collect();
    let project = project(&server, &suite, &dataset).file("scorer.py", SCORER);
    check(&project, &expected);
    is_gone(&project, "child.pid");
    assert_eq!(server.seen().asked, dataset.len() as u64, "no model is asked again for a scorer");
}

#[test]
fn a_hostile_program_for_one_reply_costs_its_case_an_error() {
    let server = server("Paris");
    let exec = |script: &str| asserting(&json!({ "type": "exec", "value": ["sh", "-c", script] }));
    let dataset = [
        ("loop", exec("while :; do :; done")),
        ("gigabyte", exec("head -c 1073741824 /dev/zero")),
        ("crash", exec("kill -ABRT $$")),
        ("wrong-type", exec("echo '{\"pass\": \"yes\"}'")),
        ("prints", exec("echo noise; echo noise >&2; echo '{\"pass\": true}'")),
        ("no-newline", exec("printf '{\"pass\": true}'")),
        ("children", exec("sleep 1000 & echo $! >child.pid; exit 0")),
        ("innocent", exec("true")),
    ];
    let expected = BTreeMap::from([
        ("loop".to_owned(), Some("it took more than")),
        ("gigabyte".to_owned(), Some("it wrote too much")),
        ("crash".to_owned(), Some("SIGABRT")),
        ("wrong-type".to_owned(), Some("its `pass` is neither true nor false")),
        ("prints".to_owned(), None),
        ("no-newline".to_owned(), None),
        ("children".to_owned(), None),
        ("innocent".to_owned(), None),
    ]);
    let project = project(&server, "[timeouts]\ncase = \"6s\"\n", &dataset);
    check(&project, &expected);
    is_gone(&project, "child.pid");
}

#[test]
fn a_hostile_python_function_costs_its_case_an_error() {
    let server = server("Paris");
    let python = |code: &str| asserting(&json!({ "type": "python", "value": code }));
    let dataset = [
        ("crash", python("import os\nos._exit(3)")),
        ("exits", python("import sys\nsys.exit(0)")),
        ("wrong-type", python("['yes']")),
        ("not-finite", python("float('nan')")),
        ("recursion", python("def f():\n    return f()\nreturn f()")),
        (
            "prints",
            python(
                "import os, sys\nprint('noise')\nos.write(1, b'{\"id\": 1, \"pass\": false}\\n')\nreturn True",
            ),
        ),
        ("closes", python("import os, sys\nsys.stdout.close()\nos.close(1)\nreturn True")),
        ("innocent", python("True")),
    ];
    let expected = BTreeMap::from([
        ("crash".to_owned(), Some("it ended without an answer")),
        ("exits".to_owned(), Some("SystemExit")),
        ("wrong-type".to_owned(), Some("it returned a list")),
        ("not-finite".to_owned(), Some("ValueError")),
        ("recursion".to_owned(), Some("RecursionError")),
        ("prints".to_owned(), None),
        ("closes".to_owned(), None),
        ("innocent".to_owned(), None),
    ]);
    check(&project(&server, "", &dataset), &expected);
}

#[test]
fn a_hostile_script_costs_its_case_an_error() {
    let server = server("Paris");
    let dataset = [
        ("loop", javascript("while (true) {}")),
        ("gigabyte", javascript("new ArrayBuffer(1 << 30).byteLength > 0")),
        (
            "gigabyte-in-parts",
            javascript("const all = [];\nfor (;;) all.push(new Array(1e6).fill(all.length));"),
        ),
        ("crash", javascript("throw new Error('no')")),
        ("wrong-type", javascript("({ pass: 'yes' })")),
        ("not-finite", javascript("0 / 0")),
        ("recursion", javascript("const f = () => f() + 1;\nreturn f();")),
        ("prints", javascript("console.log('noise'); console.error('noise'); return true;")),
        ("child", javascript("require('child_process').execSync('true')")),
        ("never-done", javascript("(async () => { await new Promise(() => {}); })()")),
        ("innocent", javascript("true")),
    ];
    let expected = BTreeMap::from([
        ("loop".to_owned(), Some("million steps")),
        ("gigabyte".to_owned(), Some("memory")),
        ("gigabyte-in-parts".to_owned(), Some("memory")),
        ("crash".to_owned(), Some("the script failed: no")),
        ("wrong-type".to_owned(), Some("its `pass` is neither true nor false")),
        ("not-finite".to_owned(), Some("the script failed")),
        ("recursion".to_owned(), Some("the script failed")),
        ("prints".to_owned(), None),
        ("child".to_owned(), Some("require is not defined")),
        ("never-done".to_owned(), Some("the script failed")),
        ("innocent".to_owned(), None),
    ]);
    check(&project(&server, "", &dataset), &expected);
}

#[test]
#[cfg(target_os = "linux")]
fn a_scorer_that_takes_all_memory_costs_its_case_an_error() {
    let server = server("Paris");
    let hoard = "kept = []\nwhile True:\n    kept.append(bytearray(1 << 24))";
    let program = "import json, sys\nfor line in sys.stdin:\n    request = json.loads(line)\n    \
                   kept = []\n    while request['context'].get('config'):\n        \
                   kept.append(bytearray(1 << 24))\n    \
                   print(json.dumps({'id': request['id'], 'pass': True}), flush=True)\n";
    let dataset = [
        ("python", asserting(&json!({ "type": "python", "value": hoard }))),
        ("program", by("hoarder", &json!({ "hoard": true }))),
        ("exec", asserting(&json!({ "type": "exec", "value": ["python3", "exec.py"] }))),
        ("innocent-python", asserting(&json!({ "type": "python", "value": "True" }))),
        ("innocent-program", by("hoarder", &Value::Null)),
    ];
    let suite = "[scorers.hoarder]\ncommand = [\"python3\", \"hoarder.py\"]\n";
    let project = project(&server, suite, &dataset).file("hoarder.py", program).file(
        "exec.py",
        format!(
            "import os\ntry:\n    {}\nexcept MemoryError:\n    os._exit(127)\n",
            hoard.replace('\n', "\n    ")
        ),
    );
    let limited = format!("scorer_memory_mib = 256\n{}", project.read("probity.toml"));
    let expected = BTreeMap::from([
        ("python".to_owned(), Some("MemoryError")),
        ("program".to_owned(), Some("MemoryError")),
        ("exec".to_owned(), Some("exit code 127")),
        ("innocent-python".to_owned(), None),
        ("innocent-program".to_owned(), None),
    ]);
    check(&project.file("probity.toml", limited), &expected);
}

#[test]
fn a_scorer_that_takes_too_long_costs_its_case_an_error() {
    let server = server("Paris");
    let sleep = "import time\ntime.sleep(1000)";
    let dataset = [
        ("python", asserting(&json!({ "type": "python", "value": sleep }))),
        ("exec", asserting(&json!({ "type": "exec", "value": ["sleep", "1000"] }))),
        ("innocent", asserting(&json!({ "type": "python", "value": "True" }))),
    ];
    let expected = BTreeMap::from([
        ("python".to_owned(), Some("no answer within 5s")),
        ("exec".to_owned(), Some("it took more than 5s")),
        ("innocent".to_owned(), None),
    ]);
    check(&project(&server, "[timeouts]\nscorer = \"5s\"\n", &dataset), &expected);
}

#[test]
fn a_slow_scorer_holds_back_the_questions() {
    let scored = asserting(&json!({ "type": "scorer", "value": "own" }));
    let ids: Vec<String> = (0..60).map(|at| format!("case-{at}")).collect();
    let dataset: Vec<(&str, Value)> = ids.iter().map(|id| (id.as_str(), scored.clone())).collect();
    let suite = "allow_code = true\n[backends.echo]\nkind = \"echo\"\nmax_concurrency = 4\n\
                 [[runners]]\nname = \"all\"\ndataset = \"cases.jsonl\"\n\
                 [scorers.own]\npython = \"own.py\"\n";
    let project = Project::new()
        .file("probity.toml", suite)
        .file("cases.jsonl", cases(&dataset))
        .file("own.py", "def get_assert(output, context):\n    return True\n");
    run(&project, &["--events", "events.jsonl"]).expect(0, &[("N_CASES", "60")]);
    let (mut live, mut most) = (0, 0);
    for line in project.read("events.jsonl").lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        match event["event"].as_str() {
            Some("case-started") => live += 1,
            Some("case-finished") => live -= 1,
            Some(_) | None => {}
        }
        most = most.max(live);
    }
    // The process starts while all sixty could be asked.
    assert!(most <= 8, "{most} cases at the same time");
}
