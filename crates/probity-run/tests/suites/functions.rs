//! Functions of users that stand for backends, prompts and scorers.

use std::{fmt::Write as _, time::Duration};

use probity_core::{
    case::TestCase,
    failure::ErrorKind,
    request::{Message, Need, Request, Role},
};
use probity_run::backend::{About, Ask, Failed, Reply};
use serde_json::json;

use crate::project::{Project, errors};

const LONG: Duration = Duration::from_mins(1);

/// What functions in Python with these bodies make of a request. One process does for all of them.
fn each_called(bodies: &[&str], request: &Request) -> Vec<Result<Reply, Failed>> {
    let mut code = String::from(
        "def call_api(prompt, options, context):\n    which = context['vars']['which']\n",
    );
    for (at, body) in bodies.iter().enumerate() {
        let body = body.replace('\n', "\n        ");
        let _ = write!(code, "    if which == {at}:\n        {body}\n");
    }
    let project = Project::new().file("f.py", &code);
    let suite = "[backends.f]\nkind = \"python\"\nfile = \"f.py\"\nconfig = { tone = \"warm\" }\ntemperature = 0.5\n";
    let read = project.read(suite);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let backend = read.backend("f");
        let mut all = Vec::new();
        for which in 0..bodies.len() {
            let vars = [("team".to_owned(), json!("a")), ("which".to_owned(), json!(which))];
            let id = "c".to_owned();
            let case = TestCase { id, prompt_vars: vars.into(), ..TestCase::default() };
            let about = About::new(case.into());
            let ask = Ask { request, repeat: 1, about: Some(&about) };
            all.push(backend.ask(&ask, LONG).await);
        }
        all
    })
}

fn called(body: &str, request: &Request) -> Result<Reply, Failed> {
    each_called(&[body], request).remove(0)
}

fn hello() -> Request {
    Request::new(None, "hello")
}

#[test]
fn a_function_is_given_the_prompt_its_config_and_the_case() {
    let reply = called(
        "return f\"{prompt} {options['config']['tone']} {context['vars']['team']} {options['id']}\"",
        &hello(),
    )
    .unwrap();
    assert_eq!(reply.text, "hello warm a f");
    let mut talk = Request::new(Some("be brief".into()), "hello");
    talk.messages.push(Message::text(Role::Assistant, "hi"));
    let reply = called("import json\nreturn str([it['role'] for it in json.loads(prompt)])", &talk);
    assert_eq!(reply.unwrap().text, "['system', 'user', 'assistant']");
}

#[test]
fn all_that_a_function_says_of_its_answer_is_kept() {
    let reply = called(
        "return {'output': {'a': 1}, 'tokenUsage': {'prompt': 3, 'completion': 2}, 'cost': 0.5, \
         'finishReason': 'stop', 'model': 'm-1', 'latencyMs': 250, 'logProbs': [-0.5]}",
        &hello(),
    )
    .unwrap();
    assert_eq!((reply.text.as_str(), reply.cost_usd), (r#"{"a":1}"#, Some(0.5)));
    assert_eq!((reply.usage.input_tokens, reply.usage.output_tokens), (Some(3), Some(2)));
    assert_eq!((reply.stop_reason.as_deref(), reply.model.as_deref()), (Some("stop"), Some("m-1")));
    assert_eq!(reply.latency, Some(Duration::from_millis(250)));
    assert!((reply.logprobs.unwrap().0[0].logprob + 0.5).abs() < 1e-12);
}

#[test]
fn what_is_no_answer_of_a_function_is_an_error_in_its_words() {
    let bad = [
        ("return 7", "it is neither a text nor a table with `output`"),
        ("return {}", "it has neither `output` nor `error`"),
        ("return {'output': 'x', 'latencyMs': -1}", "its `latencyMs`"),
        ("return {'output': 'x', 'tokenUsage': {'prompt': -1}}", "its `tokenUsage.prompt` is -1"),
    ];
    let mut bodies = vec![
        "return {'error': '429 rate limit', 'cost': 0.25}",
        "return {'output': ''}",
        "raise ValueError('401 invalid api key')",
        "return {'output': 'x', 'error': False}",
    ];
    bodies.extend(bad.iter().map(|it| it.0));
    let mut came = each_called(&bodies, &hello()).into_iter();
    let mut next = || came.next().unwrap();
    let paid = next().unwrap_err();
    assert_eq!((paid.error.kind, paid.cost_usd), (ErrorKind::RateLimit, Some(0.25)));
    let silent = next().unwrap_err();
    assert_eq!((silent.error.kind, silent.error.status), (ErrorKind::Empty, None));
    let raised = next().unwrap_err();
    assert_eq!((raised.error.kind, raised.is_call), (ErrorKind::Auth, true), "{:?}", raised.error);
    // `False` says that nothing is wrong.
    assert_eq!(next().unwrap().text, "x");
    for (body, why) in bad {
        let error = *next().unwrap_err().error;
        assert_eq!(error.kind, ErrorKind::BadRequest, "{body}");
        assert!(error.message.contains(why), "{body}: {}", error.message);
    }
}

#[test]
fn a_function_has_no_words_for_tools_and_settings() {
    let suite = "[backends.f]\nkind = \"python\"\nfile = \"f.py\"\ntemperature = 0.5\n\
                 response_format = \"json\"\n";
    let project = Project::new().file("f.py", "def call_api(*args): return 'x'\n");
    let backend = project.read(suite).backend("f");
    assert!(
        backend.lacks().contains(&Need::Tools) && !backend.lacks().contains(&Need::Conversation)
    );
    assert_eq!(backend.not_applied, ["temperature", "response_format"]);
    assert_eq!(backend.max_concurrency, 4);
    // Another file is another function.
    let other = Project::new().file("f.py", "def call_api(*args): return 'y'\n");
    assert_ne!(backend.parameters, other.read(suite).backend("f").parameters);
}

#[test]
fn functions_make_prompts_and_score_replies() {
    let suite = "allow_code = true\n[backends.e]\nkind = \"echo\"\n[[runners]]\nname = \"r\"\nbackends = [\"e\"]\n\
                 dataset = \"cases.jsonl\"\nprompt = \"file://prompt.py:make\"\n";
    let score = |code: &str| json!([{ "type": "python", "value": code }]);
    let case = |id: &str, code: &str| json!({ "id": id, "prompt": "Say x", "assert": score(code) });
    let project = Project::new()
        .cases(&[
            case("fine", "len(output) > 3"),
            case("short", "len(output) < 3"),
            case("broken", "1 / 0"),
        ])
        .file(
            "prompt.py",
            "def make(context):\n    return context['vars']['prompt'] + ', please'\n",
        );
    let ran = project.run(suite);
    assert_eq!(ran.of("fine").request.prompt(), "Say x, please");
    let verdicts: Vec<&str> = ran.verdicts().iter().map(|it| it.1).collect();
    assert_eq!(verdicts, ["error", "pass", "fail"]);
    // A prompt that is none is told of at its place, once.
    let wrong = project.file("prompt.py", "def make(context):\n    return 7\n");
    let problems = wrong.problems(suite);
    assert_eq!(errors(&problems).len(), 1, "{problems:#?}");
}
