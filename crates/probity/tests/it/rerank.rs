//! Assertions about the relevance of a reply, as a reranking model finds it.

use probity_testkit::{Answer, FakeServer, Received, Reply, Rule, Script, Text, Trouble, When};
use serde_json::{Value, json};

use crate::{
    project::Project,
    rescore::check_export,
    run::{run, stored},
};

const RANKER: &str = "rank-1";

fn project(server: &FakeServer, cases: &[Value]) -> Project {
    let url = server.url();
    Project::new().lines("cases.jsonl", cases).file(
        "probity.toml",
        format!(
            "max_error_rate = 1.0\nreranker = \"ranks\"\n[retry]\nbackoff_base = 0.01\n\
             [backends.fake]\nkind = \"openai\"\nbase_url = \"{url}/v1\"\nmodel = \"fake-small\"\n\
             [backends.ranks]\nkind = \"openai\"\nbase_url = \"{url}/v1\"\nmodel = \"{RANKER}\"\n\
             temperature = 0.5\n[[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\n"
        ),
    )
}

/// The fake server finds a text as relevant as it has words of the question.
fn case(id: &str, prompt: &str, assertion: &Value) -> Value {
    json!({ "id": id, "prompt": prompt, "assert": [assertion] })
}

fn ranked(server: &FakeServer) -> u32 {
    server.seen().paths.get("/v1/rerank").copied().unwrap_or(0)
}

#[test]
fn a_reply_is_as_relevant_as_a_model_finds_it() {
    let server = FakeServer::start(Script::default());
    let at_least = |threshold: f64| json!({ "type": "rerank", "threshold": threshold });
    let cases = [
        case("half", "Say tea", &at_least(0.5)),
        case("more", "Say cup", &at_least(0.6)),
        case(
            "query",
            "Say tea",
            &json!({ "type": "rerank", "value": "tea {{ other }}", "threshold": 0.4 }),
        ),
        case("not", "Say tea", &json!({ "type": "not-rerank", "value": "milk", "threshold": 0.5 })),
    ];
    let cases: Vec<Value> = cases
        .into_iter()
        .map(|mut it| {
            it["prompt_vars"] = json!({ "other": "milk" });
            it
        })
        .collect();
    let project = project(&server, &cases);
    let dry = project.shown(&["run", "--dry-run"]);
    assert!(dry.contains("at most 4 texts ranked by ranks (rank-1)"), "{dry}");
    run(&project, &[]).expect(0, &[("TOTAL_CALLS", "8")]);
    let found: Vec<(Value, Value)> =
        stored(&project).iter().map(|it| (it["case_id"].clone(), it["verdict"].clone())).collect();
    let expected = [("half", "pass"), ("more", "fail"), ("not", "pass"), ("query", "pass")];
    let expected = expected.map(|(id, verdict)| (json!(id), json!(verdict)));
    assert_eq!(found, expected);
    let more = stored(&project).remove(1);
    let score = &more["classification"]["scores"][0];
    assert_eq!(score["reason"], "the relevance is 0.5000, below 0.6");
    assert_eq!((&score["value"], &more["asked"][1]["backend"]), (&json!(0.5), &json!("ranks")));
    let sent: Vec<Value> = server.seen().last.iter().map(Received::json).collect();
    let expected = json!({ "model": RANKER, "query": "Say cup", "documents": ["cup"] });
    assert!(sent.contains(&expected), "{sent:#?}");
    check_export(&project);
    // The same question about the same text has the same answer, and is not paid for again.
    let before = ranked(&server);
    run(&project, &[]).expect(0, &[("TOTAL_CALLS", "4")]);
    assert_eq!((before, ranked(&server)), (4, 4));
}

#[test]
fn scores_of_any_scale_are_held_against_the_threshold() {
    let logit = Reply { text: Text::Json(json!(-3.5)), ..Reply::default() };
    let ranker = When::ModelIs(RANKER.to_owned());
    let server = FakeServer::start(Script::default().rule(Rule::new(ranker, Answer::Reply(logit))));
    let project = project(
        &server,
        &[
            case("low", "Say a", &json!({ "type": "rerank", "threshold": -4 })),
            case("high", "Say b", &json!({ "type": "rerank", "threshold": 0 })),
        ],
    );
    run(&project, &[]).expect(0, &[]);
    let cases = stored(&project);
    let of = |id: &str| cases.iter().find(|it| it["case_id"] == id).unwrap();
    assert_eq!((&of("low")["verdict"], &of("high")["verdict"]), (&json!("pass"), &json!("fail")));
    assert_eq!(of("low")["classification"]["scores"][0]["value"], 0.0);
}

#[test]
fn a_reranker_that_fails_is_an_error_and_one_that_is_missing_is_refused() {
    let ranker = When::ModelIs(RANKER.to_owned());
    let down = Rule::new(ranker, Answer::fault(Trouble::BadKey));
    let server = FakeServer::start(Script::default().rule(down));
    let cases = [case("a", "Say tea", &json!({ "type": "rerank", "threshold": 0.5 }))];
    let site = project(&server, &cases);
    run(&site, &[]);
    let found = stored(&site).remove(0);
    assert_eq!(found["verdict"], "error");
    assert!(found["reason"].as_str().unwrap().contains("reranker `ranks`"), "{found:#}");
    let text = site.read("probity.toml");
    let nobody = site.file("probity.toml", text.replace("reranker = \"ranks\"\n", ""));
    let ran = run(&nobody, &[]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains("`rerank` needs a backend that ranks texts"), "{}", ran.err);
    assert!(ran.err.contains("cases.jsonl:1:"), "{}", ran.err);
    let wrong = nobody.file(
        "probity.toml",
        text.replace("kind = \"openai\"\nbase_url = \"", "kind = \"ollama\"\nbase_url = \""),
    );
    let ran = run(&wrong, &[]);
    assert!(ran.err.contains("backend `ranks` of kind `ollama` cannot rank texts"), "{}", ran.err);
}
