//! Functions that make prompts and cases, called while a suite is loaded.

use probity_testkit::FakeServer;
use serde_json::{Value, json};

use super::{passed, project};
use crate::run::{run, stored};

const ECHO: &str = "kind = \"echo\"";

const PROMPT_PY: &str = r#"
import json, os

def text(context):
    print("noise")
    with open("made", "a") as made:
        made.write(context["vars"]["id"] + "\n")
    return "%s for %s" % (context["vars"]["city"], context["provider"]["id"])

def chat(context):
    said = context["vars"]["prompt"].upper()
    return [{"role": "system", "content": "Be brief"}, {"role": "user", "content": said}]

async def chat_as_text(context):
    return json.dumps(chat(context))

def fails(context):
    if context["vars"]["city"] == "Rome":
        raise KeyError("no such city")
    return "fine"

def nothing(context):
    return None

def hangs(context):
    import time
    time.sleep(1000)
"#;

fn cases() -> Vec<Value> {
    let case = |city: &str| json!({ "id": city, "prompt": "Say it", "prompt_vars": { "city": city }, "assert": [{ "type": "contains", "value": city }] });
    vec![case("Paris"), case("Rome")]
}

#[test]
fn a_function_makes_the_prompts_of_a_runner() {
    let project = project(ECHO, "prompt = \"file://lib/prompt.py:text\"", &cases())
        .file("lib/prompt.py", PROMPT_PY);
    run(&project, &[]).expect(0, &[]);
    assert_eq!(passed(&project), 2);
    assert_eq!(stored(&project)[0]["raw_response"], "Paris for mine");
    assert_eq!(project.read("made"), "Paris\nRome\n", "each is made once");
    project.shown(&["run", "--dry-run", "--requests", "requests.jsonl"]);
    let requests = project.read("requests.jsonl");
    assert!(requests.contains("\"prompt\":\"Rome for mine\""), "{requests}");
}

#[test]
fn a_function_makes_messages() {
    for name in ["chat", "chat_as_text"] {
        let server = FakeServer::start(probity_testkit::Script::default());
        let backend =
            format!("kind = \"openai\"\nbase_url = \"{}/v1\"\nmodel = \"m\"", server.url());
        let runner = format!("prompt = \"file://prompt.py:{name}\"\nsystem = \"Not this\"");
        let project = project(&backend, &runner, &cases()).file("prompt.py", PROMPT_PY);
        run(&project, &[]);
        let case = stored(&project).remove(0);
        assert_eq!((&case["system"], &case["prompt"]), (&json!("Be brief"), &json!("SAY IT")));
    }
}

#[test]
fn a_function_in_javascript_makes_prompts() {
    for (name, text) in [
        (
            "prompt.mjs",
            "export default async ({ vars, provider }) => [{ role: 'user', content: `${vars.city} ${provider.id}` }];\n",
        ),
        ("prompt.js:other", "exports.other = ({ vars }) => ({ prompt: vars.city });\n"),
    ] {
        let file = name.split(':').next().unwrap();
        let project = project(ECHO, &format!("prompt = \"file://{name}\""), &cases());
        let project = project.file(file, text);
        run(&project, &[]).expect(0, &[]);
        assert_eq!(passed(&project), 2, "{name}");
    }
}

#[test]
fn a_function_that_makes_no_prompt_is_told_before_the_first_call() {
    for (function, expected) in [
        ("fails", "KeyError: 'no such city' (prompt.py, line 19)"),
        ("nothing", "it made neither a text nor a list of messages"),
        ("none", "has no function `none`"),
        ("hangs", "no answer within 1s"),
    ] {
        // Only where nothing else can happen: Python may take longer to start.
        let limit = if function == "hangs" { "[timeouts]\nattempt = \"1s\"" } else { "" };
        let runner = format!("prompt = \"file://prompt.py:{function}\"\n{limit}");
        let shown = project(ECHO, &runner, &cases()).file("prompt.py", PROMPT_PY).shown(&["run"]);
        assert!(shown.starts_with("exit 2"), "{shown}");
        assert!(
            shown.contains(expected) && shown.contains("probity.toml:7"),
            "{function}: {shown}"
        );
    }
    let missing = project(ECHO, "prompt = \"file://none.py:text\"", &cases()).shown(&["run"]);
    assert!(
        missing.contains("there is no file") && missing.contains("probity.toml:7"),
        "{missing}"
    );
    let unnamed = project(ECHO, "prompt = \"file://prompt.py\"", &cases())
        .file("prompt.py", PROMPT_PY)
        .shown(&["run"]);
    assert!(unnamed.contains("name the function in it"), "{unnamed}");
}

#[test]
fn a_function_makes_the_cases_of_a_dataset() {
    let python = "def generate():\n    print('noise')\n    return [{'id': 'case-%d' % n, 'prompt': 'Say %d' % n, 'expected_response': 'Say %d' % n} for n in range(3)]\n\ndef wrong():\n    return [{'id': 'a', 'prompt': 'x'}, {'id': 'b'}]\n\ndef table():\n    return {}\n";
    let javascript =
        "export default async () => [{ id: 'x', prompt: 'Say', expected_response: 'Say' }];\n";
    let with = |dataset: &str| {
        let project = project(ECHO, "", &[]).file("tests.py", python).file("tests.mjs", javascript);
        let text = project.read("probity.toml").replace("\"cases.jsonl\"", dataset);
        project.file("probity.toml", text)
    };
    let both = with("[\"file://tests.py:generate\", \"file://tests.mjs\"]");
    run(&both, &["--repeat", "2"]).expect(0, &[("N_CASES", "8")]);
    assert_eq!(passed(&both), 8);
    let shown = both.shown(&["rescore", "latest"]);
    assert!(shown.starts_with("exit 0"), "{shown}");
    let wrong = with("\"file://tests.py:wrong\"").shown(&["run"]);
    assert!(wrong.contains("file://tests.py:wrong:2"), "{wrong}");
    let table = with("\"file://tests.py:table\"").shown(&["run"]);
    assert!(table.contains("it returned no list") && table.contains("probity.toml:6"), "{table}");
}

#[test]
fn a_function_may_make_tests_as_promptfoo_has_them() {
    let python = "def generate_tests():\n    return [{'vars': {'city': ['Rome', 'Oslo\\n']}, 'assert': [{'type': 'contains', 'value': 'Say {{ city }}'}]}]\n\ndef wrong():\n    return [{'vars': {}, 'provider': 'x'}]\n";
    let javascript = "module.exports = [{ vars: { city: 'Bern' }, description: 'd', assert: [\n\
                      { type: 'javascript', value: 'output === \"Say Bern\"' }] }];\n";
    let with = |dataset: &str| {
        let project = project(ECHO, "prompt = \"Say {{ city }}\"", &[])
            .file("tests.py", python)
            .file("tests.cjs", javascript);
        let text = project.read("probity.toml").replace("\"cases.jsonl\"", dataset);
        project.file("probity.toml", text)
    };
    let python = with("\"file://tests.py:generate_tests\"");
    run(&python, &[]).expect(0, &[("N_CASES", "2")]);
    assert_eq!(passed(&python), 2);
    let list = with("\"file://tests.cjs\"");
    run(&list, &[]).expect(0, &[("N_CASES", "1")]);
    assert_eq!(passed(&list), 1);
    let wrong = with("\"file://tests.py:wrong\"").shown(&["run"]);
    assert!(wrong.contains("test 1: unknown field `provider`"), "{wrong}");
}

#[test]
fn cases_of_variables_alone_are_asked_by_a_function() {
    let cases = [json!({ "prompt_vars": { "city": "Rome" }, "expected_response": "fine" })];
    let project = project(ECHO, "prompt = \"file://prompt.py:other\"", &cases)
        .file("prompt.py", "def other(context):\n    return 'fine'\n");
    run(&project, &[]).expect(0, &[]);
    assert_eq!(passed(&project), 1);
}

#[test]
fn functions_make_the_prompts_of_variants() {
    let runner = "system = \"Be kind\"\n[[runners.prompts]]\nname = \"plain\"\ntemplate = \"{{ city }}!\"\n\
                  [[runners.prompts]]\nname = \"text\"\ntemplate = \"file://prompt.py:text\"\n\
                  [[runners.prompts]]\nname = \"chat\"\nfile = \"prompt.py:chat\"\nsettings = { temperature = 0.5 }\n";
    let of = |runner: &str| project(ECHO, runner, &cases()).file("prompt.py", PROMPT_PY);
    let varied = of(runner);
    run(&varied, &[]);
    let answers: Vec<(Value, Value)> = stored(&varied)
        .iter()
        .filter(|it| it["case_id"] == "Rome")
        .map(|it| (it["variant"].clone(), it["raw_response"].clone()))
        .collect();
    let expected = [("plain", "Rome!"), ("text", "Rome for mine"), ("chat", "SAY IT")];
    assert_eq!(answers, expected.map(|(variant, said)| (json!(variant), json!(said))));
    assert_eq!(varied.read("made"), "Paris\nRome\n", "each is made once");
    let broken = of(&runner.replace("prompt.py:chat", "prompt.py:fails")).shown(&["run"]);
    let expected = "`file` of the variant `chat` cannot be used: KeyError: 'no such city'";
    assert!(broken.starts_with("exit 2") && broken.contains(expected), "{broken}");
    let missing = of(&runner.replace("prompt.py:chat", "none.py:chat")).shown(&["run"]);
    assert!(missing.contains("`file` of the variant `chat` cannot be used: there is no file"));
}

#[test]
fn what_a_runner_says_of_all_cases_holds_for_those_that_a_function_makes() {
    let python = "def generate():\n    return [{'prompt': 'Say {{ city }} {{ n }}', 'prompt_vars': {'n': n}} for n in range(3)]\n";
    let runner = "prompt_vars = { city = \"Rome\" }\nassert = [{ type = \"contains\", value = \"Say Rome\" }]\n";
    let project = project(ECHO, runner, &[]).file("tests.py", python);
    let suite = project.read("probity.toml").replace("cases.jsonl", "file://tests.py:generate");
    let project = project.file("probity.toml", suite);
    run(&project, &[]).expect(0, &[("N_CASES", "3")]);
    assert_eq!(passed(&project), 3);
    let said = stored(&project);
    assert!(said.iter().any(|it| it["raw_response"] == "Say Rome 2"), "{said:?}");
}

#[test]
fn a_function_that_makes_cases_is_told_what_the_runner_says() {
    let python = "def generate(config):\n    return [{'id': str(n), 'prompt': config['word'], 'expected_response': 'hi'} for n in range(config['count'])]\n";
    let with = |more: &str| {
        let project = project(ECHO, more, &[]).file("tests.py", python);
        let text = project.read("probity.toml");
        project.file("probity.toml", text.replace("cases.jsonl", "file://tests.py:generate"))
    };
    let told = with("dataset_config = { word = \"hi\", count = 2 }");
    run(&told, &[]).expect(0, &[("N_CASES", "2")]);
    assert_eq!(passed(&told), 2);
    let untold = with("").shown(&["run"]);
    assert!(untold.contains("missing 1 required positional argument"), "{untold}");
    let wrong = with("dataset_config = 3").shown(&["run"]);
    assert!(wrong.contains("`dataset_config` must be a table"), "{wrong}");
    let nobody = project(ECHO, "dataset_config = {}", &cases()).shown(&["run"]);
    assert!(nobody.contains("`dataset` names none"), "{nobody}");
}

#[test]
fn a_script_and_a_method_in_python_make_prompts() {
    let script = "import json, sys\n\nclass Maker:\n    def make(self, context):\n        return 'from ' + context['vars']['city']\n\n\
                  if __name__ == '__main__':\n    print('At ' + json.loads(sys.argv[1])['vars']['city'])\n    sys.exit(0)\n";
    for (name, expected) in [("__main__", "At Paris"), ("Maker.make", "from Paris")] {
        let runner = format!("prompt = \"file://prompt.py:{name}\"");
        let project = project(ECHO, &runner, &cases()).file("prompt.py", script);
        run(&project, &[]).expect(0, &[]);
        assert_eq!(stored(&project)[0]["raw_response"], expected);
    }
    let failing = project(ECHO, "prompt = \"file://prompt.py:__main__\"", &cases())
        .file("prompt.py", "import sys\nsys.exit('no prompt')\n")
        .shown(&["run"]);
    assert!(failing.contains("no prompt"), "{failing}");
}
