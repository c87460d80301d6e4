//! Those who are asked about a reply: judges, embedders, rerankers, scorers, and judges alone.

use std::sync::Arc;

use probity_core::{case::RubricCriterion, classification::Class, failure::ErrorKind};
use probity_run::calibrate::{Judge, Labelled, ask_all};
use probity_testkit::{Answer, FakeServer, Reply, Rule, Script, Text, Trouble, When};
use serde_json::{Value, json};

use crate::project::{Kept, Project, bodies, errors, roles};

const SETTINGS: &str = "[retry]\nbackoff_base = 0.001\nbackoff_jitter = 0.0\n";

/// A suite with a model, the judges `a`, `b` and `c`, and whoever embeds or ranks.
fn suite(server: &FakeServer, runner: &str) -> String {
    let url = server.url();
    let backend = |name| {
        format!(
            "[backends.{name}]\nkind = \"openai\"\nbase_url = \"{url}/v1\"\nmodel = \"{name}\"\n"
        )
    };
    let backends: String =
        ["small", "a", "b", "c", "vectors", "ranks"].into_iter().map(backend).collect();
    format!(
        "{SETTINGS}{backends}[[runners]]\nname = \"r\"\nbackends = [\"small\"]\n\
         dataset = \"cases.jsonl\"\n{runner}\n"
    )
}

fn judged(score: u8) -> Answer {
    let reply = json!({ "criteria": [{ "name": "rubric", "score": score, "reason": "so it is" }] });
    Answer::text(&reply.to_string())
}

fn by(judge: &str, answer: Answer) -> Rule {
    Rule::new(When::ModelIs(judge.to_owned()), answer)
}

fn case(id: &str, assertions: &Value) -> Value {
    json!({ "id": id, "prompt": format!("Say {id}"), "assert": assertions })
}

fn polite() -> Value {
    json!([{ "type": "llm-rubric", "value": "It is polite." }])
}

#[test]
fn a_reply_that_fails_without_the_judge_is_not_worth_a_call() {
    let server = FakeServer::start(Script::default().rule(by("a", judged(5))));
    let wrong =
        json!([{ "type": "llm-rubric", "value": "x" }, { "type": "contains", "value": "no" }]);
    let cases = [case("fine", &polite()), case("wrong", &wrong)];
    let ran = Project::new().cases(&cases).run(&suite(&server, "judge = \"a\""));
    assert_eq!(ran.verdicts(), [("fine", "pass"), ("wrong", "fail")]);
    assert_eq!((ran.of("wrong").calls, ran.of("fine").calls), (1, 2));
    let fine = ran.of("fine");
    assert_eq!(roles(fine), ["answer", "judge rubric 1"]);
    assert_eq!((fine.asked[0].backend.as_str(), fine.asked[1].backend.as_str()), ("small", "a"));
    assert_eq!(
        fine.classification.scores[0].reason.as_deref(),
        Some("the judge gave 1.00: so it is")
    );
    // The time of the case is that of its own answer.
    assert_eq!(fine.latency_ms, fine.asked[0].latency_ms);
}

#[test]
fn a_judge_is_asked_more_strictly_until_it_can_be_read() {
    let stricter = When::All(vec![
        When::ModelIs("a".to_owned()),
        When::prompt_contains("could not be used: it is not a JSON object"),
    ]);
    let script = Script::default()
        .rule(by("a", Answer::text("I like it.")).times(1))
        .rule(Rule::new(stricter, judged(5)));
    let server = FakeServer::start(script);
    let project = Project::new().cases(&[case("fine", &polite())]);
    let ran = project.run(&suite(&server, "judge = \"a\""));
    assert_eq!((ran.verdicts(), ran.outcome.used.calls), (vec![("fine", "pass")], 3));
    assert_eq!(ran.of("fine").asked[1].reply.as_deref(), Some("I like it."));
    // One that is never understood is no failure of the case.
    let server = FakeServer::start(Script::default().rule(by("a", Answer::text("Eight."))));
    let ran = project.run(&suite(&server, "judge = \"a\""));
    assert_eq!((ran.of("fine").class, ran.outcome.used.calls), (Class::Error, 4));
}

#[test]
fn several_judges_make_one_verdict() {
    for (combine, verdict) in
        [("majority", "pass"), ("all", "fail"), ("any", "pass"), ("mean", "fail")]
    {
        let script = Script::default()
            .rule(by("a", judged(5)))
            .rule(by("b", judged(4)))
            .rule(by("c", judged(2)));
        let server = FakeServer::start(script);
        let runner = format!("judges = [\"a\", \"b\", \"c\"]\ncombine = \"{combine}\"");
        let ran = Project::new().cases(&[case("fine", &polite())]).run(&suite(&server, &runner));
        assert_eq!(
            (ran.verdicts(), ran.outcome.used.calls),
            (vec![("fine", verdict)], 4),
            "{combine}"
        );
        let of: Vec<&str> = ran.of("fine").asked.iter().map(|it| it.backend.as_str()).collect();
        assert_eq!(of, ["small", "a", "b", "c"]);
    }
}

#[test]
fn a_panel_goes_on_without_a_judge_that_fails_as_long_as_most_answer() {
    let script = Script::default()
        .rule(by("a", Answer::fault(Trouble::BadRequest)))
        .rule(by("b", judged(5)))
        .rule(by("c", judged(5)));
    let server = FakeServer::start(script);
    let project = Project::new().cases(&[case("fine", &polite())]);
    let ran = project.run(&suite(&server, "judges = [\"a\", \"b\", \"c\"]"));
    assert_eq!((ran.verdicts(), ran.outcome.used.calls), (vec![("fine", "pass")], 4));
    // Who has failed once is not asked again; nobody is asked where too few are left.
    let twice = project.run(&suite(&server, "judges = [\"a\", \"b\", \"c\"]\njudge_repeats = 2"));
    assert_eq!((twice.verdicts(), twice.outcome.used.calls), (vec![("fine", "pass")], 6));
    let ran = project.run(&suite(&server, "judges = [\"a\", \"b\"]\ncombine = \"all\""));
    let error = ran.of("fine").error.as_ref().unwrap();
    assert_eq!((ran.outcome.used.calls, error.kind), (2, ErrorKind::BadRequest));
    assert!(error.message.starts_with("judge `a`: "), "{}", error.message);
}

#[test]
fn judges_are_asked_in_the_words_of_the_suite() {
    let content = json!({ "pass": true, "score": 1.0, "reason": "so it is" }).to_string();
    let server = FakeServer::start(Script::default().rule(by("a", Answer::text(&content))));
    let with_vars = |assertion: Value| {
        let mut case = case("fine", &json!([assertion]));
        case["prompt_vars"] = json!({ "tone": "warm" });
        case
    };
    let own = with_vars(json!({ "type": "llm-rubric", "value": "It is polite.",
        "rubric_prompt": "Is {{ output }} {{ tone }}? {{ rubric }} // {{ prompt }}" }));
    let ran = Project::new().cases(&[own]).run(&suite(&server, "judge = \"a\""));
    assert_eq!(ran.verdicts(), [("fine", "pass")]);
    let said = bodies(&server).remove(1)["messages"].to_string();
    for part in ["warm?", "It is polite.", "Say fine", "ANSWER", "TASK"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let bad = with_vars(
        json!({ "type": "llm-rubric", "value": "x", "rubric_prompt": "{{ output }} {{ nobody }}" }),
    );
    let problems = Project::new().cases(&[bad]).problems(&suite(&server, "judge = \"a\""));
    assert_eq!(
        errors(&problems),
        [("undefined-variable", "`nobody` in `rubric_prompt` has no value")]
    );
    // The same of a prompt for all judges of a runner, which is told of once.
    let runner = "judge = \"a\"\nrubric_prompt = \"{{ output }} {{ nobody }}\"";
    let two = [case("one", &polite()), case("two", &polite())];
    let problems = Project::new().cases(&two).problems(&suite(&server, runner));
    assert_eq!(problems.len(), 1, "{problems:#?}");
    let help = problems[0].help.as_deref();
    assert_eq!(help, Some("it sees `output`, `rubric`, `prompt` and the case's `prompt_vars`"));
    let without = [case("one", &json!([{ "type": "contains", "value": "one" }]))];
    assert_eq!(Project::new().cases(&without).problems(&suite(&server, runner)).len(), 0);
}

#[test]
fn a_judge_that_is_asked_for_and_not_named_is_the_backend_itself() {
    let judge = When::system_contains("judge");
    let server = FakeServer::start(Script::default().rule(Rule::new(judge, judged(5))));
    let project = Project::new().cases(&[case("fine", &polite())]);
    let read = project.read(&suite(&server, ""));
    let plan = read.plan();
    let judge = plan.lanes[0].info.judge.clone().unwrap();
    assert_eq!((judge.backend.as_str(), judge.own_answers), ("small", true));
    assert!(plan.lanes[0].info.judges.is_empty());
    let other = project.read(&suite(&server, "judges = [\"a\", \"b\"]")).plan();
    let info = &other.lanes[0].info;
    assert_eq!((info.judges.len(), info.judges[1].own_answers), (2, false));
    let none =
        Project::new().cases(&[case("fine", &json!([]))]).read(&suite(&server, "judge = \"a\""));
    let plan = none.plan();
    assert!(plan.lanes[0].info.judge.is_none() && plan.lanes[0].judges.is_empty());
}

/// Embeddings of texts with these words in them.
fn compass() -> Script {
    [("northeast", json!([1, 1])), ("north", json!([0, 1])), ("east", json!([1, 0]))].iter().fold(
        Script::default(),
        |script, (word, vector)| {
            let reply = Reply { text: Text::Json(vector.clone()), ..Reply::default() };
            let when =
                When::All(vec![When::ModelIs("vectors".to_owned()), When::prompt_contains(word)]);
            script.rule(Rule::new(when, Answer::Reply(reply)))
        },
    )
}

#[test]
fn embeddings_say_how_near_a_reply_is() {
    let near = |id: &str, threshold: f64| {
        case(id, &json!([{ "type": "similar", "value": "east", "threshold": threshold }]))
    };
    let server = FakeServer::start(compass());
    let cases = [near("northeast", 0.7), near("north", 0.1)];
    let project = Project::new().cases(&cases);
    let text = suite(&server, "embeddings = \"vectors\"");
    let plan = project.read(&text).plan();
    assert_eq!((plan.lanes[0].calls.embeddings, plan.lanes[0].embedder.is_some()), (4, true));
    let ran = project.run(&text);
    assert_eq!(ran.verdicts(), [("north", "fail"), ("northeast", "pass")]);
    let case = ran.of("northeast");
    assert_eq!(roles(case), ["answer", "scorer 1"]);
    assert_eq!(case.asked[1].backend, "vectors");
    // Two replies, and the expected text once for both of them.
    assert_eq!(server.seen().paths["/v1/embeddings"], 3);
    assert_eq!(ran.outcome.used.calls, 5);
    let value = case.classification.scores[0].value.unwrap();
    assert!((value - 0.5_f64.sqrt()).abs() < 1e-6, "{value}");
    // Without anybody to embed, such a case is refused; without such a case, nobody is asked.
    let problems = project.problems(&suite(&server, ""));
    assert_eq!(errors(&problems).len(), 2, "{problems:#?}");
    let without = Project::new().cases(&[json!({ "id": "p", "prompt": "p" })]);
    assert_eq!(without.read(&text).plan().lanes[0].embedder, None);
}

#[test]
fn a_reply_like_the_expected_one_is_embedded_once() {
    let server = FakeServer::start(compass());
    let cases = [case("east", &json!([{ "type": "similar", "value": "east", "threshold": 0.99 }]))];
    let ran = Project::new().cases(&cases).run(&suite(&server, "embeddings = \"vectors\""));
    assert_eq!(ran.verdicts(), [("east", "pass")]);
    assert_eq!(server.seen().paths["/v1/embeddings"], 1);
}

#[test]
fn an_embedder_that_fails_is_an_error_that_names_it() {
    let server = FakeServer::start(
        Script::default().rule(by("vectors", Answer::fault(Trouble::BadRequest))),
    );
    let cases = [case("east", &json!([{ "type": "similar", "value": "east" }]))];
    let ran = Project::new().cases(&cases).run(&suite(&server, "embeddings = \"vectors\""));
    let error = ran.of("east").error.as_ref().unwrap();
    assert_eq!(error.kind, ErrorKind::BadRequest);
    assert!(error.message.starts_with("embeddings `vectors`: "), "{}", error.message);
    assert_eq!(ran.of("east").reply.as_deref(), Some("east"));
    assert_eq!(ran.of("east").asked[1].error.as_ref().map(|it| it.contains("vectors")), Some(true));
}

#[test]
fn a_reranker_says_how_relevant_a_reply_is() {
    let server = FakeServer::start(Script::default());
    let at_least = |threshold: f64| json!([{ "type": "rerank", "threshold": threshold }]);
    let mut half = case("half", &at_least(0.5));
    half["prompt"] = json!("Say tea");
    let mut more = case("more", &at_least(0.6));
    more["prompt"] = json!("Say cup");
    let project = Project::new().cases(&[half, more]);
    let text = suite(&server, "reranker = \"ranks\"");
    assert_eq!(project.read(&text).plan().lanes[0].calls.rerankings, 2);
    let ran = project.run(&text);
    assert_eq!(ran.verdicts(), [("half", "pass"), ("more", "fail")]);
    assert_eq!((ran.of("half").asked[1].backend.as_str(), ran.outcome.used.calls), ("ranks", 4));
    assert_eq!(errors(&project.problems(&suite(&server, ""))).len(), 2);
}

#[test]
fn the_best_of_the_answers_of_all_lanes_passes() {
    let best =
        |number: u8| Answer::text(&json!({ "reason": "it is rich", "best": number }).to_string());
    let shown = |number: u8| {
        let mark = When::prompt_contains(&format!("\nrich\n<<<END ANSWER {number} "));
        Rule::new(When::All(vec![When::ModelIs("c".to_owned()), mark]), best(number))
    };
    let script = Script::default()
        .rule(by("small", Answer::text("plain")))
        .rule(by("a", Answer::text("rich")))
        .rule(by("b", Answer::text("odd")))
        .rule(shown(1))
        .rule(shown(2))
        .rule(shown(3));
    let server = FakeServer::start(script);
    let runner =
        "judge = \"c\"\nassert = [{ type = \"select-best\", value = \"The richest one.\" }]";
    let text = suite(&server, runner)
        .replace("backends = [\"small\"]", "backends = [\"small\", \"a\", \"b\"]");
    let project = Project::new().cases(&[json!({ "id": "x", "prompt": "Say x" })]);
    let plan = project.read(&text).plan();
    let planned: Vec<u64> = plan.lanes.iter().map(|it| it.calls.comparisons).collect();
    assert_eq!(planned, [1, 0, 0]);
    let ran = project.run(&text);
    let verdicts: Vec<(usize, &str)> =
        ran.records.iter().map(|(lane, it)| (*lane, it.verdict.as_str())).collect();
    assert_eq!(verdicts, [(0, "fail"), (1, "pass"), (2, "fail")]);
    assert_eq!((ran.outcome.used.calls, server.seen().models["c"]), (4, 1));
    // One lane alone has nobody to compare itself with.
    let alone = project.read(&suite(&server, runner)).plan();
    assert_eq!(alone.lanes[0].calls.comparisons, 0);
}

#[test]
fn scorers_of_the_suite_are_asked_and_recorded() {
    let server = FakeServer::start(Script::default());
    let exec = |word: &str| json!([{ "type": "exec", "value": ["grep", "-qx", word] }]);
    let cases = [case("one", &exec("one")), case("two", &exec("one"))];
    let ran = Project::new().cases(&cases).run(&suite(&server, "allow_code = true"));
    assert_eq!(ran.verdicts(), [("one", "pass"), ("two", "fail")]);
    assert_eq!((roles(ran.of("one")), ran.of("one").calls), (vec!["answer", "scorer 1"], 1));
    // Code of a dataset wants consent.
    let problems = Project::new().cases(&cases).problems(&suite(&server, ""));
    assert_eq!(errors(&problems).len(), 2, "{problems:#?}");
}

fn labelled(answer: &str) -> Labelled {
    let (name, description) = ("rubric".to_owned(), "It is good.".to_owned());
    let criteria = vec![RubricCriterion { name, weight: 1.0, description }];
    Labelled { task: "Be good.".to_owned(), criteria, answers: vec![answer.to_owned()] }
}

/// What a judge makes of answers, and how often the server was asked.
fn calibrated(
    server: &FakeServer,
    settings: &str,
    answers: &[&str],
    cache: Option<Arc<Kept>>,
) -> (Result<Vec<Option<u8>>, ErrorKind>, u64, Vec<usize>) {
    let read = Project::new().cases(&[]).read(&format!("{settings}{}", suite(server, "")));
    let backend = Arc::new(read.backend("a"));
    let cache = cache.map(|it| it as Arc<dyn probity_run::backend::Answers>);
    let judge = Judge { backend, structured: None, cache };
    let all = answers.iter().map(|it| labelled(it)).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut told = Vec::new();
    let each = |done| told.push(done);
    let asked = runtime.block_on(ask_all(&judge, &read.settings, all, each));
    let points = |all: Vec<Result<probity_grade::internal::judge::Judgement, String>>| {
        all.into_iter().map(|it| Some(it.ok()?.criteria[0].points[0])).collect()
    };
    (asked.map(points).map_err(|it| it.kind), server.seen().asked, told)
}

#[test]
fn a_judge_is_asked_about_labelled_answers_and_the_unreadable_are_told_apart() {
    let script = Script::default()
        .rule(Rule::new(When::prompt_contains("\ngood\n"), judged(5)))
        .rule(Rule::new(When::prompt_contains("\nbad\n"), judged(2)))
        .rule(Rule::new(When::prompt_contains("\nlong\n"), Answer::fault(Trouble::ContextLength)))
        .rule(by("a", Answer::text("no idea")));
    let server = FakeServer::start(script);
    let cache = Arc::new(Kept::default());
    let answers = ["good", "odd", "bad", "long"];
    let (found, asked, told) = calibrated(&server, "", &answers, Some(cache.clone()));
    // Each once, the unreadable one three times.
    assert_eq!((found, asked), (Ok(vec![Some(5), None, Some(2), None]), 6));
    assert_eq!(told, [1, 2, 3, 4]);
    // What it said that could be read is not asked again.
    assert_eq!(cache.0.lock().unwrap().len(), 2);
    let (again, asked, _) = calibrated(&server, "", &answers, Some(cache));
    assert_eq!((again, asked), (Ok(vec![Some(5), None, Some(2), None]), 10));
}

#[test]
fn a_judge_that_nobody_can_ask_ends_it_at_once() {
    let hopeless = [
        (Trouble::BadKey, ErrorKind::Auth),
        (Trouble::Quota, ErrorKind::Quota),
        (Trouble::NoSuchModel, ErrorKind::NotFound),
    ];
    for (trouble, kind) in hopeless {
        let server = FakeServer::start(Script::always(Answer::fault(trouble)));
        let (found, ..) = calibrated(&server, "", &["good"], None);
        assert_eq!(found, Err(kind));
    }
}

#[test]
fn a_judge_that_is_overloaded_is_asked_again_as_often_as_the_suite_says() {
    let failing = |times| {
        let busy = Rule::new(When::Any, Answer::fault(Trouble::Unavailable)).times(times);
        FakeServer::start(Script::default().rule(busy).rule(by("a", judged(4))))
    };
    assert_eq!(calibrated(&failing(3), "", &["good"], None).0, Ok(vec![Some(4)]));
    let server = failing(9);
    // It is tried three times again, and another question may still be answered.
    assert_eq!(calibrated(&server, "", &["good"], None).0, Ok(vec![None]));
    assert_eq!(server.seen().asked, 4);
}
