//! The best of the answers of several lanes: `select-best` and `max-score`.

use std::fmt::Write as _;

use probity_testkit::{Answer, FakeServer, Rule, Script, Trouble, When};
use serde_json::{Value, json};

use crate::{
    project::Project,
    rescore::check_export,
    run::{run, stored},
};

/// A suite with the backends `small`, `large` and `third`, and a judge that is none of them.
fn suite(server: &FakeServer, runner: &str) -> String {
    let mut text = String::from("[retry]\nbackoff_base = 0.01\nmax_retries = 1\n");
    for name in ["small", "large", "third", "judge"] {
        let url = server.url();
        let _ = writeln!(
            text,
            "[backends.{name}]\nkind = \"openai\"\nbase_url = \"{url}/v1\"\nmodel = \"{name}\""
        );
    }
    let _ = writeln!(text, "[[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\n{runner}");
    text
}

const ALL: &str = "backends = [\"small\", \"large\", \"third\"]\njudge = \"judge\"\n\
                   assert = [{ type = \"select-best\", value = \"The richest one.\" }]";

fn project(server: &FakeServer, runner: &str, ids: &[&str]) -> Project {
    let case = |id: &&str| json!({ "id": id, "prompt": format!("Say {id}") });
    let cases: Vec<Value> = ids.iter().map(case).collect();
    Project::new().lines("cases.jsonl", &cases).file("probity.toml", suite(server, runner))
}

fn by(model: &str, answer: Answer) -> Rule {
    Rule::new(When::ModelIs(model.to_owned()), answer)
}

fn best(number: u8) -> Answer {
    Answer::text(&json!({ "reason": "it is rich", "best": number }).to_string())
}

/// A judge who prefers an answer, wherever it is shown.
fn prefers(answer: &str) -> Vec<Rule> {
    let shown = |number: u8| {
        let is_judge = When::ModelIs("judge".to_owned());
        let mark = When::prompt_contains(&format!("\n{answer}\n<<<END ANSWER {number} "));
        Rule::new(When::All(vec![is_judge, mark]), best(number))
    };
    (1..=3).map(shown).collect()
}

/// Each backend says another thing, and the judge prefers that of `large`.
fn script() -> Script {
    let script = Script::default()
        .rule(by("small", Answer::text("plain")))
        .rule(by("large", Answer::text("rich")))
        .rule(by("third", Answer::text("odd")));
    prefers("rich").into_iter().fold(script, Script::rule)
}

fn verdicts(cases: &[Value]) -> Vec<(String, String, String)> {
    let text = |it: &Value, key: &str| it[key].as_str().unwrap().to_owned();
    let mut all: Vec<_> = cases
        .iter()
        .map(|it| (text(it, "case_id"), text(it, "backend"), text(it, "verdict")))
        .collect();
    all.sort();
    all
}

fn of<'a>(cases: &'a [Value], backend: &str) -> &'a Value {
    cases.iter().find(|it| it["backend"] == backend).unwrap()
}

fn score(case: &Value) -> (&str, f64) {
    let score = &case["classification"]["scores"][0];
    (score["reason"].as_str().unwrap(), score["value"].as_f64().unwrap())
}

#[test]
fn the_best_answer_passes_and_the_others_fail() {
    let server = FakeServer::start(script());
    let project = project(&server, ALL, &["a", "b"]);
    let dry = project.shown(&["run", "--dry-run"]);
    assert!(dry.contains("at most 2 comparisons of the answers of 3 lanes by judge"), "{dry}");
    assert!(dry.contains("\n8 calls,"), "{dry}");
    run(&project, &[]).expect(0, &[("TOTAL_CALLS", "8"), ("N_CASES", "6")]);
    let cases = stored(&project);
    let found = verdicts(&cases);
    let expected = ["a", "b"].iter().flat_map(|id| {
        [("large", "pass"), ("small", "fail"), ("third", "fail")]
            .map(|(backend, verdict)| ((*id).to_owned(), backend.to_owned(), verdict.to_owned()))
    });
    assert_eq!(found, expected.collect::<Vec<_>>());
    assert_eq!(score(of(&cases, "large")), ("judge finds it the best: it is rich", 1.0));
    assert_eq!(score(of(&cases, "small")), ("judge finds large the best: it is rich", 0.0));
    let selected = &of(&cases, "small")["classification"]["details"]["selected"][0];
    assert_eq!(
        (&selected["judge"], &selected["by"]),
        (&json!("judge"), &json!("The richest one."))
    );
    assert_eq!(selected["answers"].as_array().unwrap().len(), 3);
    // One question about all answers, in the record of one of the lanes.
    let asked = cases.iter().flat_map(|it| it["asked"].as_array().cloned().unwrap_or_default());
    let roles: Vec<Value> = asked.map(|it| it["role"].clone()).collect();
    assert_eq!(roles.iter().filter(|it| **it == "judge comparison 1").count(), 2);
    check_export(&project);
    let shown = project.shown(&["show", "latest", "a"]);
    assert!(shown.contains("judge finds large the best: it is rich"), "{shown}");
}

#[test]
fn gates_are_about_the_best_answers() {
    let server = FakeServer::start(script());
    let gated = format!("{ALL}\ngates = {{ pass_rate = 1.0 }}");
    let project = project(&server, &gated, &["a", "b"]);
    run(&project, &[]).expect(1, &[]);
    run(&project, &["--backend", "large"]).expect(0, &[("TOTAL_CALLS", "2")]);
}

#[test]
fn other_criteria_are_no_reason_to_believe_the_old_judgement() {
    let server = FakeServer::start(script());
    let site = project(&server, ALL, &["a"]);
    run(&site, &[]).expect(0, &[]);
    let other = suite(&server, &ALL.replace("richest", "plainest"));
    let site = site.file("probity.toml", other);
    site.run(&["rescore"]);
    let cases = stored(&site);
    assert!(cases.iter().all(|it| it["verdict"] == "error"), "{cases:#?}");
    let why = &cases[0]["classification"]["details"]["error_details"];
    assert_eq!(why, "the answers were compared by other criteria");
}

#[test]
fn equal_answers_need_no_judge_and_neither_does_one_alone() {
    let server = FakeServer::start(Script::always(Answer::text("same")));
    let same = project(&server, ALL, &["a"]);
    run(&same, &[]).expect(0, &[("TOTAL_CALLS", "3")]);
    let reason = score(&stored(&same)[0]).0.to_owned();
    assert_eq!(reason, "the answers are the same: small, large, third");
    let alone = project(&server, &ALL.replace("\"large\", \"third\"", ""), &["a"]);
    let dry = alone.shown(&["run", "--dry-run"]);
    assert!(dry.contains("\n1 calls,"), "{dry}");
    run(&alone, &[]).expect(0, &[("TOTAL_CALLS", "1")]);
    assert_eq!(score(&stored(&alone)[0]), ("there is no other answer to compare it with", 1.0));
}

#[test]
fn prompt_variants_are_compared_with_what_each_was_asked() {
    let tells =
        |text: &str, answer: &str| Rule::new(When::prompt_contains(text), Answer::text(answer));
    let script = prefers("short").into_iter().fold(Script::default(), Script::rule);
    let script = script.rule(tells("Briefly", "short")).rule(tells("At length", "long"));
    let server = FakeServer::start(script);
    let runner = format!(
        "{}\n[[runners.prompts]]\nname = \"terse\"\ntemplate = \"Briefly. {{{{ prompt }}}}\"\n\
         [[runners.prompts]]\nname = \"chatty\"\ntemplate = \"At length. {{{{ prompt }}}}\"\n",
        ALL.replace("\"large\", \"third\"", "")
    );
    let project = project(&server, &runner, &["a"]);
    run(&project, &[]).expect(0, &[("TOTAL_CALLS", "3")]);
    let cases = stored(&project);
    let lost = cases.iter().find(|it| it["verdict"] == "fail").unwrap();
    assert_eq!(score(lost).0, "judge finds terse@small the best: it is rich");
    let prompts = server.seen().prompts;
    let question = prompts.keys().find(|it| it.contains("<<<ANSWER 1 ")).unwrap();
    assert!(question.contains("<<<TASK 1 ") && question.contains("<<<TASK 2 "), "{question}");
}

#[test]
fn a_judge_who_prefers_a_place_is_found_out_by_asking_in_both_orders() {
    let script = Script::default()
        .rule(by("small", Answer::text("plain")))
        .rule(by("large", Answer::text("rich")))
        .rule(by("judge", best(1)));
    let server = FakeServer::start(script);
    let two = ALL.replace(", \"third\"", "");
    let project = project(&server, &format!("{two}\nswap = true"), &["a"]);
    run(&project, &[]).expect(0, &[("TOTAL_CALLS", "4")]);
    let cases = stored(&project);
    let small = of(&cases, "small");
    let reason = score(small).0;
    assert!(reason.starts_with("judge finds it the best in one order and large"), "{reason}");
    assert_eq!(small["classification"]["scores"][0]["value"], 0.5);
    check_export(&project);
    // The command line can ask for it as well, and the same question has the same answer.
    let project = project.file("probity.toml", suite(&server, &two));
    run(&project, &["--swap", "--dry-run"]).expect(0, &[]);
    run(&project, &["--swap"]).expect(0, &[("TOTAL_CALLS", "4")]);
}

#[test]
fn a_judge_that_fails_is_no_failure_of_a_model() {
    let down = by("judge", Answer::fault(Trouble::Internal));
    let server = FakeServer::start(script_with(down));
    let site = project(&server, ALL, &["a"]);
    run(&site, &[]).expect(3, &[("TOTAL_CALLS", "5")]);
    let cases = stored(&site);
    assert!(cases.iter().all(|it| it["verdict"] == "error"), "{cases:#?}");
    assert!(cases.iter().all(|it| !it["raw_response"].is_null()), "{cases:#?}");
    let mumbles = script_with(by("judge", Answer::text("I like them all.")));
    let server = FakeServer::start(mumbles);
    let site = project(&server, ALL, &["a"]);
    run(&site, &[]).expect(3, &[("TOTAL_CALLS", "6")]);
    let cases = stored(&site);
    let why = cases[0]["classification"]["details"]["error_details"].as_str().unwrap();
    assert!(why.contains("the judge's answer cannot be used"), "{why}");
}

fn script_with(first: Rule) -> Script {
    let mut script = script();
    script.rules.insert(0, first);
    script
}

#[test]
fn a_lane_without_an_answer_does_not_keep_the_others_waiting() {
    let bad_key = by("large", Answer::fault(Trouble::BadKey)).times(1);
    let server = FakeServer::start(script_with(bad_key).rule(by("judge", best(1))));
    let project = project(&server, ALL, &["a"]);
    run(&project, &[]).expect(3, &[("TOTAL_CALLS", "4")]);
    let passed = |project: &Project| -> Vec<String> {
        let found = verdicts(&stored(project));
        found.into_iter().filter(|it| it.2 == "pass").map(|it| it.1).collect()
    };
    let cases = stored(&project);
    assert_eq!(of(&cases, "large")["verdict"], "error");
    assert_eq!(passed(&project).len(), 1);
    // With the third answer there, what the others came to is another matter: all are asked again.
    run(&project, &["--retry-errors"]).expect(0, &[]);
    assert_eq!(server.seen().asked, 8);
    assert_eq!(passed(&project), ["large"]);
}

#[test]
fn cached_answers_and_judgements_are_not_asked_for_again() {
    let server = FakeServer::start(script());
    let project = project(&server, ALL, &["a", "b"]);
    run(&project, &["--cache"]).expect(0, &[("TOTAL_CALLS", "8")]);
    run(&project, &["--cache"]).expect(0, &[("TOTAL_CALLS", "0")]);
    assert_eq!(server.seen().asked, 8);
    let passed = verdicts(&stored(&project)).iter().filter(|it| it.2 == "pass").count();
    assert_eq!(passed, 2);
}

#[test]
fn a_recording_has_the_comparisons_as_well() {
    let server = FakeServer::start(script());
    let project = project(&server, ALL, &["a", "b"]);
    run(&project, &["--record", "answers.jsonl"]).expect(0, &[("TOTAL_CALLS", "8")]);
    let before = verdicts(&stored(&project));
    run(&project, &["--replay", "answers.jsonl"]).expect(0, &[("TOTAL_CALLS", "0")]);
    assert_eq!((verdicts(&stored(&project)), server.seen().asked), (before, 8));
}

#[test]
fn questions_about_all_lanes_count_towards_the_budget() {
    let server = FakeServer::start(script());
    let site = project(&server, ALL, &["a"]);
    let ran = run(&site, &["--max-calls", "3"]);
    assert_eq!((ran.code, server.seen().asked), (Some(3), 3), "{}", ran.err);
    run(&site, &["--resume", "--max-calls", "20"]).expect(0, &[]);
    assert_eq!(server.seen().asked, 7);
    run(&site, &["--max-calls", "4"]).expect(0, &[("TOTAL_CALLS", "4")]);
}

#[test]
fn a_run_that_is_taken_up_asks_only_for_comparisons_that_are_not_complete() {
    let server = FakeServer::start(script());
    let site = project(&server, ALL, &["a", "b", "c"]);
    let first = run(&site, &["--max-calls", "9", "-j", "1"]);
    assert_eq!(first.code, Some(3), "{}", first.err);
    let done = stored(&site).len();
    assert!(done > 0 && done < 9, "{done}");
    let asked = server.seen().asked;
    run(&site, &["--resume", "--max-calls", "100"]).expect(0, &[]);
    // Each case is three answers and one comparison, kept together.
    let left = 3 - u64::try_from(done).unwrap() / 3;
    assert_eq!(server.seen().asked - asked, 4 * left, "{done} were done");
    let found = verdicts(&stored(&site));
    assert_eq!(found.iter().filter(|it| it.2 == "pass").count(), 3, "{found:?}");
    assert_eq!(found.len(), 9);
}

#[test]
fn without_a_judge_of_its_own_a_comparison_is_refused() {
    let server = FakeServer::start(script());
    let project = project(&server, &ALL.replace("judge = \"judge\"\n", ""), &["a"]);
    let ran = run(&project, &[]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains("`select-best` needs a judge that is named"), "{}", ran.err);
    assert!(ran.err.contains("probity.toml"), "{}", ran.err);
    assert_eq!(server.seen().asked, 0);
}

#[test]
fn the_highest_score_of_the_other_checks_passes() {
    let server = FakeServer::start(script());
    let runner = "backends = [\"small\", \"large\", \"third\"]\n\
                  assert = [\n\
                  { type = \"contains\", value = \"i\", weight = 0 },\n\
                  { type = \"edit-similarity\", value = \"rice\", weight = 0 },\n\
                  { type = \"max-score\", value = { weights = { \"edit-similarity\" = 2, \
                  contains = 1 } } },\n]";
    let project = project(&server, runner, &["a"]);
    run(&project, &[]).expect(0, &[("TOTAL_CALLS", "3")]);
    let cases = stored(&project);
    let passed: Vec<&Value> = cases.iter().filter(|it| it["verdict"] == "pass").collect();
    assert_eq!((passed.len(), &passed[0]["backend"]), (1, &json!("large")));
    let reason = |it: &Value| it["classification"]["scores"][2]["reason"].clone();
    let by = "(mean score, contains counts 1, edit-similarity counts 2)";
    // (1 + 2 * 3/4) / 3
    assert_eq!(reason(passed[0]), format!("its score of 0.833 is the highest {by}"));
    check_export(&project);
    let needs = project.file(
        "cases.jsonl",
        json!({ "id": "a", "prompt": "p", "assert": [{ "type": "max-score" }] }).to_string(),
    );
    let output = needs.run(&["dataset", "validate", "cases.jsonl"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("`max-score` needs another check"), "{text}");
}

/// What a scorer names beside its score is of the kind of its check, and is no check.
#[test]
fn scores_that_a_scorer_names_count_for_no_total() {
    let server = FakeServer::start(script());
    // `plain` has the lower score, and more with what is named.
    let code = "({ score: output === 'plain' ? 0.4 : 0.6, pass: true, \
                namedScores: { calm: output === 'plain' ? 1 : 0 } })";
    let runner = format!(
        "backends = [\"small\", \"large\"]\nallow_code = true\nassert = [\n\
         {{ type = \"javascript\", value = \"{code}\" }},\n\
         {{ type = \"max-score\", value = {{ method = \"sum\", weights = {{ javascript = 2 }} }} }},\n]"
    );
    let project = project(&server, &runner, &["a"]);
    run(&project, &[]).expect(0, &[("TOTAL_CALLS", "2")]);
    let cases = stored(&project);
    let scores = |backend: &str| of(&cases, backend)["classification"]["scores"].clone();
    let named = |backend: &str| {
        let scores = scores(backend);
        scores.as_array().unwrap().iter().find(|it| it["name"] == "calm").cloned().unwrap()
    };
    let expected = json!({
        "name": "calm", "type": "javascript", "named": true, "value": 1.0, "passed": true, "weight": 0.0,
    });
    assert_eq!(named("small"), expected);
    assert!(scores("small")[0].get("named").is_none(), "{:#}", scores("small"));
    assert_eq!((verdict(&cases, "small"), verdict(&cases, "large")), ("fail", "pass"));
    let judged_again = project.run(&["rescore", "-o", "again.jsonl"]);
    assert_eq!(judged_again.status.code(), Some(0), "{judged_again:?}");
    assert!(project.read("again.jsonl").contains("\"named\":true"));

    let exported = project.run(&["export", "--as", "promptfoo", "--lossy", "-o", "out.json"]);
    assert!(exported.status.success(), "{exported:?}");
    let written: Value = serde_json::from_str(&project.read("out.json")).unwrap();
    for row in written["results"]["results"].as_array().unwrap() {
        let grading = &row["gradingResult"];
        assert!(grading["namedScores"]["calm"].is_number(), "{row:#}");
        let parts = grading["componentResults"].as_array().unwrap().iter();
        let kinds: Vec<&Value> = parts.map(|it| &it["assertion"]["type"]).collect();
        assert_eq!(kinds, ["javascript", "max-score"]);
    }
}

fn verdict<'a>(cases: &'a [Value], backend: &str) -> &'a str {
    of(cases, backend)["verdict"].as_str().unwrap()
}

#[test]
fn a_rubric_counts_towards_the_highest_score_also_where_another_check_fails() {
    let judged = |answer: &str, points: u8| {
        let is_judge = When::ModelIs("judge".to_owned());
        let said = json!({ "criteria": [{ "name": "rubric", "score": points, "reason": "so" }] });
        let when = When::All(vec![is_judge, When::prompt_contains(answer)]);
        Rule::new(when, Answer::text(&said.to_string()))
    };
    let script = script().rule(judged("rich", 5)).rule(judged("plain", 2));
    let server = FakeServer::start(script);
    let runner = "backends = [\"small\", \"large\"]\njudge = \"judge\"\nassert = [\n\
                  { type = \"contains\", value = \"plain\" },\n\
                  { type = \"llm-rubric\", value = \"It is good.\", threshold = 0.0 },\n\
                  { type = \"max-score\", value = { weights = { llm-rubric = 5, contains = 1 } } },\n]";
    let project = project(&server, runner, &["a"]);
    run(&project, &[]).expect(0, &[("TOTAL_CALLS", "4")]);
    let cases = stored(&project);
    let best = |backend: &str| of(&cases, backend)["classification"]["scores"][2]["passed"].clone();
    // (1 * 0 + 5 * 1) / 6 against (1 + 5 * 0.25) / 6
    assert_eq!((best("large"), best("small")), (json!(true), json!(false)), "{cases:#?}");
}

/// A judge who gives an answer 5 points wherever it is shown, and the other one 2.
fn points(answer: &str) -> [Rule; 2] {
    let shown = |place: &str, points: (u8, u8)| {
        let is_judge = When::ModelIs("judge".to_owned());
        let mark = When::prompt_contains(&format!("\n{answer}\n<<<END ANSWER {place} "));
        let criterion =
            json!({ "name": "rubric", "a": points.0, "b": points.1, "reason": "it is rich" });
        let reply = json!({ "criteria": [criterion], "winner": "tie" });
        Rule::new(When::All(vec![is_judge, mark]), Answer::text(&reply.to_string()))
    };
    [shown("A", (5, 2)), shown("B", (2, 5))]
}

#[test]
fn a_judge_compares_the_stored_answers_of_two_lanes() {
    let script = Script::default()
        .rule(Rule::new(When::prompt_contains("Say same"), Answer::text("same")))
        .rule(by("small", Answer::text("plain")))
        .rule(by("large", Answer::text("rich")));
    let server = FakeServer::start(points("rich").into_iter().fold(script, Script::rule));
    let runner =
        "backends = [\"small\", \"large\"]\nassert = [{ type = \"regex\", value = \".\" }]";
    let project = project(&server, runner, &["a", "b", "c", "same"]);
    run(&project, &[]).expect(0, &[]);
    let before = server.seen().asked;
    let words = ["compare", "latest@small", "latest@large", "--judge", "judge"];
    let text = project.shown(&words);
    assert!(text.contains("judge prefers B in 3, A in 0, neither in 1 of 4 cases"), "{text}");
    assert!(text.contains("p = 0.2500; both orders agree on 3 of 3 pairs"), "{text}");
    assert_eq!(server.seen().asked - before, 6);
    // What is known is not asked for again, whatever the format.
    let with = |more: &[&str]| -> String {
        let all: Vec<&str> = words.iter().chain(more).copied().collect();
        let output = project.run(&all);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let found: Value = serde_json::from_str(&with(&["--format", "json"])).unwrap();
    crate::schema::check("comparison", &found);
    let preference = &found["pairs"][0]["preference"];
    assert_eq!((&preference["wins"], &preference["difference"]), (&json!(3), &json!(0.75)));
    let case = &preference["cases"]["a"];
    assert_eq!(*case, json!({ "result": "win", "points": [2.0, 5.0], "reason": "it is rich" }));
    let html = with(&["--format", "html"]);
    assert!(html.contains("The judge prefers the second answer. it is rich"), "{html}");
    assert!(with(&["--format", "md"]).contains("wins less losses: +75.0 points"));
    assert_eq!(server.seen().asked - before, 6);
    with(&["--no-cache", "--criteria", "It is short."]);
    assert_eq!(server.seen().asked - before, 12);
    // Options of the judge mean nothing without one.
    let output = project.run(&["compare", "latest@small", "latest@large", "--criteria", "x"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_judge_of_equal_answers_has_nothing_to_judge() {
    let server = FakeServer::start(Script::always(Answer::text("same")));
    let runner =
        "backends = [\"small\", \"large\"]\nassert = [{ type = \"regex\", value = \".\" }]";
    let project = project(&server, runner, &["a", "b"]);
    run(&project, &[]).expect(0, &[]);
    let text = project.shown(&["compare", "latest@small", "latest@large", "--judge", "judge"]);
    let told = "judge had nothing to judge: the answers to each of 2 cases are the same\n";
    assert!(text.contains(told) && !text.contains("both orders"), "{text}");
}

#[test]
fn a_judge_that_is_not_there_ends_a_comparison() {
    let script = script_with(by("judge", Answer::fault(Trouble::BadKey)));
    let server = FakeServer::start(script);
    let runner =
        "backends = [\"small\", \"large\"]\nassert = [{ type = \"regex\", value = \".\" }]";
    let project = project(&server, runner, &["a"]);
    run(&project, &[]).expect(0, &[]);
    let output = project.run(&["compare", "latest@small", "latest@large", "--judge", "judge"]);
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{err}");
    assert!(err.contains("the judge `judge` cannot be asked"), "{err}");
    let output = project.run(&["compare", "latest@small", "latest@large", "--judge", "nobody"]);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(err.contains("there is no backend `nobody`"), "{err}");
}

#[test]
fn a_judge_who_always_prefers_the_first_place_prefers_nobody() {
    let criterion = json!({ "name": "rubric", "a": 5, "b": 1, "reason": "first" });
    let biased = Answer::text(&json!({ "criteria": [criterion], "winner": "a" }).to_string());
    let server = FakeServer::start(script_with(by("judge", biased)));
    let runner =
        "backends = [\"small\", \"large\"]\nassert = [{ type = \"regex\", value = \".\" }]";
    let project = project(&server, runner, &["a"]);
    run(&project, &[]).expect(0, &[]);
    let text = project.shown(&["compare", "latest@small", "latest@large", "--judge", "judge"]);
    assert!(text.contains("judge prefers B in 0, A in 0, neither in 1 of 1 cases"), "{text}");
    assert!(text.contains("both orders agree on 0 of 1 pairs"), "{text}");
}
