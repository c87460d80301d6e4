//! The four skill runners against scripted models: every figure is worked out by hand.

use std::fmt::Write as _;

use probity_testkit::{Answer, FakeServer, Rule, Script, Trouble, When};
use serde_json::{Value, json};

use crate::{
    project::Project,
    run::{run, stored},
};

/// The model that is evaluated, and the one that judges.
const SUBJECT: &str = "fake-small";
const JUDGE: &str = "fake-large";

/// A suite with one runner, a model and a judge on one server.
pub(crate) fn suite(server: &FakeServer, runner: &str) -> String {
    let mut text = String::from("[retry]\nbackoff_base = 0.01\n");
    for (name, model) in [("small", SUBJECT), ("judge", JUDGE)] {
        let url = server.url();
        let _ = writeln!(
            text,
            "[backends.{name}]\nkind = \"openai\"\nbase_url = \"{url}/v1\"\nmodel = \"{model}\""
        );
    }
    let _ = writeln!(text, "[[runners]]\nname = \"r\"\nbackends = [\"small\"]\n{runner}");
    text
}

fn skill(description: &str, body: &str) -> String {
    format!("---\ndescription: {description}\n---\n{body}\n")
}

/// A project with three skills, of which `sql` has a companion.
pub(crate) fn project(server: &FakeServer, runner: &str, cases: &[Value]) -> Project {
    let lines: Vec<String> = cases.iter().map(ToString::to_string).collect();
    Project::new()
        .file("skills/git/SKILL.md", skill("Branches and history.", "GIT-BODY"))
        .file("skills/sql/SKILL.md", skill("Queries.", "SQL-BODY\n## Scope\nSQL-SCOPE"))
        .file("skills/sql/more.md", "SQL-COMPANION")
        .file("skills/tests/SKILL.md", skill("Tests.", "TESTS-BODY"))
        .file("cases.jsonl", lines.join("\n"))
        .file("probity.toml", suite(server, runner))
}

/// The model answers a prompt with this text.
fn says(prompt: &str, text: &str) -> Rule {
    Rule::new(When::prompt_contains(prompt), Answer::text(text))
}

fn choose(names: &[&str]) -> String {
    json!({ "skills": names }).to_string()
}

/// The evaluation result of the latest run.
fn result(project: &Project) -> Value {
    let output = project.run(&["report", "latest", "-o", "result.json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&project.read("result.json")).unwrap()
}

fn counts(share: &Value) -> (u64, u64) {
    (share["count"].as_u64().unwrap(), share["of"].as_u64().unwrap())
}

const ACTIVATION: &str = "kind = \"activation\"\ndataset = \"cases.jsonl\"\nskills = \"skills\"";

fn positive(id: &str, expected: &[&str], acceptable: &[&str]) -> Value {
    json!({
        "id": id, "prompt": format!("request {id}."), "expected_skills": expected,
        "acceptable_skills": acceptable, "should_activate": true, "category": "free text",
    })
}

fn negative(id: &str) -> Value {
    json!({ "id": id, "prompt": format!("request {id}."), "should_activate": false })
}

/// Five positives and three negatives with known choices.
fn activation() -> (FakeServer, Vec<Value>) {
    let script = Script::default()
        .rule(says("Is the skill of use", "Yes, it is.").times(1))
        .rule(says("Is the skill of use", "no"))
        .rule(says("request found.", &choose(&["git"])))
        .rule(says("request other.", &choose(&["tests", "git"])))
        .rule(says("request missed.", &choose(&["sql"])))
        .rule(says("request prose.", "I would take the one for Git."))
        .rule(Rule::new(
            When::prompt_contains("request broken."),
            Answer::fault(Trouble::BadRequest),
        ))
        .rule(says("request quiet.", "```json\n{\"skills\": []}\n```"))
        .rule(says("request tempting.", &choose(&["sql", "nonsense"])))
        .rule(says("request chatty.", "None of these."));
    let cases = vec![
        positive("found", &["git"], &[]),
        positive("other", &["sql"], &["tests"]),
        positive("missed", &["git"], &[]),
        positive("prose", &["git", "tests"], &[]),
        positive("broken", &["git"], &[]),
        negative("quiet"),
        negative("tempting"),
        negative("chatty"),
    ];
    (FakeServer::start(script), cases)
}

#[test]
fn activation_finds_what_is_chosen() {
    let (server, cases) = activation();
    let gates = "gates = { tpr = 0.75, fpr = { pass = 0.5, warn = 0.7 } }";
    let project = project(&server, &format!("{ACTIVATION}\n{gates}"), &cases);
    let ran = run(&project, &["--max-retries", "0", "--no-fail-fast"]);
    // Eight choices, and two questions about the reply that could not be read.
    ran.expect(3, &[("TOTAL_CALLS", "10"), ("N_CASES", "8"), ("N_PLANNED", "8")]);
    let result = result(&project);
    let figures = &result["figures"];
    // found, other and prose of found, other, missed and prose; broken is an error.
    assert_eq!(counts(&figures["tpr"]), (3, 4));
    // tempting and chatty of three.
    assert_eq!(counts(&figures["fpr"]), (2, 3));
    assert_eq!(counts(&figures["accuracy"]), (4, 7));
    assert_eq!((&figures["errors"], &figures["fallbacks"]), (&json!(1), &json!(1)));
    assert_eq!(figures["unreadable"], 1);
    // git; tests, git; sql; git; none; sql, nonsense: 7 names, of which git, tests and git are good.
    assert_eq!(counts(&figures["sets"]["precision"]), (3, 7));
    // git; sql; git; git, tests: 5, of which git and git were chosen.
    assert_eq!(counts(&figures["sets"]["recall"]), (2, 5));
    assert_eq!(counts(&figures["skills"]["git"]["activated"]), (2, 3));
    assert_eq!(figures["skills"]["sql"]["wrongly"], 2);
    assert!(figures["skills"]["git"]["activated"]["interval"]["low"].as_f64().unwrap() > 0.2);
    let gates: Vec<&Value> = result["gates"].as_array().unwrap().iter().collect();
    assert_eq!((&gates[0]["status"], &gates[1]["status"]), (&json!("pass"), &json!("warn")));
    let cases = stored(&project);
    let prose = cases.iter().find(|it| it["case_id"] == "prose").unwrap();
    let roles: Vec<&str> =
        prose["asked"].as_array().unwrap().iter().map(|it| it["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["choose", "fallback git", "fallback tests"]);
    assert_eq!(prose["classification"]["details"]["evidence"]["detection"], "fallback");
    let chatty = cases.iter().find(|it| it["case_id"] == "chatty").unwrap();
    assert_eq!((&chatty["verdict"], &chatty["calls"]), (&json!("fail"), &json!(1)));
    assert_eq!(chatty["classification"]["primary"], "wrong_format");
}

#[test]
fn an_index_shows_each_skill_on_a_line() {
    let (server, cases) = activation();
    let long = "d".repeat(200);
    let project =
        project(&server, ACTIVATION, &cases[..1]).file("skills/zz/SKILL.md", skill(&long, ""));
    run(&project, &[]).expect(0, &[]);
    let request = server.seen().last.front().unwrap().clone();
    let body = request.json();
    let system = body["messages"][0]["content"].as_str().unwrap();
    let index = system.split_once("Index:\n").unwrap().1;
    let lines: Vec<&str> = index.lines().collect();
    assert_eq!(&lines[..3], ["- git: Branches and history.", "- sql: Queries.", "- tests: Tests."]);
    assert_eq!(lines[3].chars().count(), "- zz: ".len() + 120);
    let lane = server.seen();
    assert_eq!(lane.asked, 1);
}

#[test]
fn limits_take_some_of_each_and_a_skill_keeps_the_negatives() {
    let (server, cases) = activation();
    let project = project(&server, ACTIVATION, &cases);
    let ids = |words: &[&str]| {
        run(&project, words);
        let mut ids: Vec<String> =
            stored(&project).iter().map(|it| it["case_id"].as_str().unwrap().to_owned()).collect();
        ids.sort();
        ids
    };
    let limited = ids(&["--limit", "3", "--seed", "5"]);
    let negatives = ["quiet", "tempting", "chatty"];
    let count = limited.iter().filter(|it| negatives.contains(&it.as_str())).count();
    assert_eq!((limited.len(), count), (3, 1), "{limited:?}");
    assert_eq!(limited, ids(&["--limit", "3", "--seed", "5"]));
    assert_eq!(ids(&["--skill", "sql"]), ["chatty", "other", "quiet", "tempting"]);
    let wrong = run(&project, &["--skill", "nothing"]);
    wrong.expect(2, &[("N_PLANNED", "0")]);
    assert!(wrong.err.contains("`--skill nothing` matches no case"), "{}", wrong.err);
}

#[test]
fn confusion_has_an_index_and_a_grid_for_each_group() {
    let case = |id: &str, group: &str, expected: &str| {
        let prompt = format!("request {id}.");
        json!({ "id": id, "group": group, "user_prompt": prompt, "expected_skill": expected })
    };
    let script = Script::default()
        .rule(says("request a.", &choose(&["git"])))
        .rule(says("request b.", &choose(&["sql"])))
        .rule(says("request c.", &choose(&["sql", "git"])))
        .rule(says("request d.", &choose(&[])))
        .rule(says("request e.", &choose(&["tests"])))
        .rule(says("request f.", &choose(&["tests"])))
        .rule(says("request none.", &choose(&["git"])));
    let server = FakeServer::start(script);
    let mut cases = vec![
        case("a", "one", "git"),
        case("b", "one", "git"),
        case("c", "one", "sql"),
        case("d", "one", "sql"),
        case("e", "one", "sql"),
        case("f", "two", "tests"),
        case("g", "two", "git"),
    ];
    cases[6]["acceptable_skills"] = json!(["sql"]);
    cases[6]["user_prompt"] = json!("request b. again");
    let mut none = negative("none");
    none["group"] = json!("one");
    cases.push(none);
    let runner = "kind = \"confusion\"\ndataset = \"cases.jsonl\"\nskills = \"skills\"";
    let project = project(&server, runner, &cases);
    run(&project, &[]).expect(0, &[("TOTAL_CALLS", "8")]);
    let figures = &result(&project)["figures"];
    let one = &figures["groups"]["one"];
    assert_eq!(one["axes"], json!(["git", "sql"]));
    assert_eq!(one["counts"], json!([[1, 1], [0, 0]]));
    assert_eq!(counts(&one["accuracy"]), (1, 5));
    assert_eq!(counts(&one["cross"]), (1, 2));
    let shapes = ["single", "multi", "none", "outside", "unreadable"].map(|it| &one[it]);
    assert_eq!(shapes, [&json!(2), &json!(1), &json!(1), &json!(1), &json!(0)]);
    let two = &figures["groups"]["two"];
    assert_eq!(two["axes"], json!(["git", "sql", "tests"]));
    assert_eq!(counts(&two["accuracy"]), (2, 2));
    assert_eq!(counts(&figures["negatives"]["chosen"]), (1, 1));
    assert_eq!(counts(&figures["accuracy"]), (3, 8));
    let codes: Vec<&str> = figures["notices"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["code"].as_str().unwrap())
        .collect();
    assert_eq!(
        codes,
        ["confused", "never-chosen", "tempted", "not-in-index", "index-violations"],
        "{}",
        figures["notices"]
    );
    let seen = server.seen();
    let shown = |prompt: &str| {
        let request = seen.last.iter().find(|it| it.json().to_string().contains(prompt)).unwrap();
        request.json().to_string().contains("- tests: ")
    };
    assert!(!shown("request a.") && shown("request f."));
    run(&project, &["--group", "two"]).expect(0, &[("N_CASES", "2")]);
}

/// The judge gives 5 points to an answer with a mark in it and 2 to any other, wherever it is shown.
fn honest_judge(script: Script, marks: &[(&str, u8)]) -> Script {
    let mut script = script;
    for (a, first) in marks {
        for (b, second) in marks {
            let reply = json!({
                "criteria": [
                    { "name": "right", "a": first, "b": second, "reason": "because" },
                    { "name": "short", "a": 3, "b": 3, "reason": "" },
                ],
                "winner": "a",
            });
            let when = When::All(vec![
                When::ModelIs(JUDGE.to_owned()),
                When::PromptContains(format!("{a}\n<<<END ANSWER A")),
                When::PromptContains(format!("{b}\n<<<END ANSWER B")),
            ]);
            script = script.rule(Rule::new(when, Answer::text(&reply.to_string())));
        }
    }
    script
}

const RUBRIC: &str = r#"
skill_name = "sql"
test_prompts = ["Count the rows.", "Join two tables."]
[[criteria]]
name = "right"
weight = 0.75
description = "It is right."
[[criteria]]
name = "short"
weight = 0.25
description = "It is short."
"#;

const EFFECTIVENESS: &str =
    "kind = \"effectiveness\"\ndataset = \"rubrics\"\nskills = \"skills\"\njudge = \"judge\"";

fn skilled(script: Script) -> Script {
    script
        .rule(Rule::new(When::system_contains("SQL-BODY"), Answer::text("with SKILLED")))
        .rule(Rule::new(When::ModelIs(SUBJECT.to_owned()), Answer::text("plain BARE")))
}

#[test]
fn effectiveness_compares_with_and_without() {
    let script = honest_judge(Script::default(), &[("SKILLED", 5), ("BARE", 2)]);
    let server = FakeServer::start(skilled(script));
    let project = project(&server, EFFECTIVENESS, &[]).file("rubrics/sql.toml", RUBRIC);
    let dry = project.shown(&["run", "--dry-run", "--runs", "3"]);
    assert!(dry.contains("2 of 2 cases, 3 times each: 18 calls"), "{dry}");
    // Two answers and one judgement for each of two prompts, three times.
    let ran = run(&project, &["--runs", "3"]);
    ran.expect(0, &[("TOTAL_CALLS", "18"), ("N_CASES", "6")]);
    let figures = &result(&project)["figures"];
    let sql = &figures["skills"]["sql"];
    assert_eq!(counts(&sql["wins"]), (6, 6));
    assert_eq!((&sql["ties"], &sql["losses"], &sql["errors"]), (&json!(0), &json!(0), &json!(0)));
    // 0.75 * 5 + 0.25 * 3 = 4.5 against 0.75 * 2 + 0.25 * 3 = 2.25.
    assert_eq!(sql["improvement"], 2.25);
    assert_eq!(sql["criteria"], json!({ "right": 3.0, "short": 0.0 }));
    assert_eq!(figures["judge"]["judges"], json!([JUDGE]));
    assert_eq!(figures["judge"]["own_answers"], false);
    // The judge always says that the first is better, and its scores say otherwise where it is not.
    let cases = stored(&project);
    let rounds: Vec<&Value> = cases
        .iter()
        .map(|case| &case["classification"]["details"]["evidence"]["duels"][0]["rounds"][0])
        .collect();
    let second = rounds.iter().filter(|it| it["shown_first"] == "baseline").count();
    assert_eq!(figures["judge"]["contradicts_itself"], json!(second));
    assert!(second > 0 && second < 6, "chance shows each of them first now and then: {second}");
    let case = &cases[0];
    assert_eq!((&case["raw_response"], &case["calls"]), (&json!("with SKILLED"), &json!(3)));
    let asked = case["asked"].as_array().unwrap();
    let roles: Vec<&str> = asked.iter().map(|it| it["role"].as_str().unwrap()).collect();
    assert_eq!(roles[..2], ["full", "baseline"]);
    assert!(roles[2].starts_with("judge full vs baseline, "), "{roles:?}");
    assert!(
        asked[2]["reply"].as_str().unwrap().contains("because"),
        "the judge's own words are kept"
    );
    assert_eq!(asked[1].get("system"), None);
    // The same seed shows the same answers first; another one does not.
    let orders = |words: &[&str]| {
        run(&project, words).expect(0, &[]);
        let first = |it: &Value| {
            it["classification"]["details"]["evidence"]["duels"][0]["rounds"][0]["shown_first"]
                .clone()
        };
        stored(&project).iter().map(first).collect::<Vec<_>>()
    };
    let once = orders(&["--runs", "8"]);
    assert_eq!(once, orders(&["--runs", "8"]));
    assert_ne!(once, orders(&["--runs", "8", "--seed", "7"]));
}

#[test]
fn generations_are_kept_apart_from_judgements() {
    let script = honest_judge(Script::default(), &[("SKILLED", 5), ("BARE", 2)]);
    let server = FakeServer::start(skilled(script));
    let project = project(&server, EFFECTIVENESS, &[]).file("rubrics/sql.toml", RUBRIC);
    run(&project, &[]).expect(0, &[("TOTAL_CALLS", "6")]);
    // Judging again costs the judgements alone.
    assert!(project.shown(&["run", "--dry-run"]).contains("2 of 2 cases, once each: 2 calls"));
    run(&project, &[]).expect(0, &[("TOTAL_CALLS", "2")]);
    run(&project, &["--regenerate"]).expect(0, &[("TOTAL_CALLS", "6")]);
    run(&project, &["--no-cache"]).expect(0, &[("TOTAL_CALLS", "6")]);
    // With the whole cache nothing is asked any more.
    run(&project, &["--cache"]).expect(0, &[("TOTAL_CALLS", "2")]);
    run(&project, &["--cache"]).expect(0, &[("TOTAL_CALLS", "0"), ("N_CASES", "2")]);
    let output = project.run(&["cache", "clear", "--judgements"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("removed 2 answers"));
    run(&project, &["--cache"]).expect(0, &[("TOTAL_CALLS", "2")]);
    // Another skill is another question.
    let project = project.file("skills/sql/SKILL.md", skill("Queries.", "SQL-BODY, new"));
    run(&project, &[]).expect(0, &[("TOTAL_CALLS", "4")]);
}

#[test]
fn an_option_that_would_do_nothing_is_refused() {
    let (server, cases) = activation();
    let project = project(&server, ACTIVATION, &cases);
    let options: [&[&str]; 3] = [&["--swap"], &["--regenerate"], &["--judge-model", "x"]];
    for words in options {
        let ran = run(&project, words);
        ran.expect(2, &[("TOTAL_CALLS", "0")]);
        assert!(ran.err.contains("does nothing here"), "{words:?}: {}", ran.err);
    }
    assert_eq!(server.seen().asked, 0);
}

#[test]
fn a_judge_that_likes_the_first_answer_is_found_out() {
    let reply = json!({
        "criteria": [
            { "name": "right", "a": 5, "b": 4, "reason": "" },
            { "name": "short", "a": 4, "b": 4, "reason": "" },
        ],
        "winner": "a",
    });
    let first = Rule::new(When::ModelIs(JUDGE.to_owned()), Answer::text(&reply.to_string()));
    let server = FakeServer::start(skilled(Script::default().rule(first)));
    let project = project(&server, EFFECTIVENESS, &[]).file("rubrics/sql.toml", RUBRIC);
    // Two answers and two judgements for each of two prompts, twice.
    let ran = run(&project, &["--swap", "--runs", "2"]);
    ran.expect(0, &[("TOTAL_CALLS", "16")]);
    let figures = &result(&project)["figures"];
    assert_eq!(counts(&figures["judge"]["orders_agree"]), (0, 4));
    assert_eq!(counts(&figures["judge"]["first_wins"]), (8, 8));
    // Both orders together say that neither is better, which is no win.
    assert_eq!(
        (&figures["overall"]["ties"], &figures["overall"]["improvement"]),
        (&json!(4), &json!(0.0))
    );
    let codes: Vec<&str> = figures["notices"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["code"].as_str().unwrap())
        .collect();
    assert_eq!(codes, ["position-bias", "never-wins"]);
}

#[test]
fn size_impact_compares_all_sizes() {
    let script = honest_judge(
        Script::default(),
        &[("COMPANION", 5), ("WHOLE", 4), ("SHORT", 4), ("BARE", 1)],
    )
    .rule(Rule::new(When::system_contains("SQL-COMPANION"), Answer::text("COMPANION")))
    .rule(Rule::new(When::system_contains("SQL-BODY"), Answer::text("WHOLE")))
    .rule(Rule::new(When::system_contains("SQL-SCOPE"), Answer::text("SHORT")))
    .rule(Rule::new(When::system_contains("GIT-BODY"), Answer::text("WHOLE")))
    .rule(Rule::new(When::system_contains("# git"), Answer::text("SHORT")))
    .rule(Rule::new(When::ModelIs(SUBJECT.to_owned()), Answer::text("BARE")));
    let server = FakeServer::start(script);
    let rubric = json!([
        { "name": "right", "weight": 0.5, "description": "x" },
        { "name": "short", "weight": 0.5, "description": "y" },
    ]);
    let case = |id: &str, skill: &str| json!({ "id": id, "skill": skill, "prompt": format!("request {id}"), "rubric": rubric });
    let cases = [case("one", "sql"), case("two", "git"), case("three", "git"), case("four", "git")];
    let runner =
        "kind = \"size_impact\"\ndataset = \"cases.jsonl\"\nskills = \"skills\"\njudge = \"judge\"";
    let project = project(&server, runner, &cases);
    // With companions 4 answers and 4 judgements, without 3 and 3.
    assert!(project.shown(&["run", "--dry-run"]).contains("4 of 4 cases, once each: 26 calls"));
    run(&project, &[]).expect(0, &[("TOTAL_CALLS", "26"), ("N_CASES", "4")]);
    let figures = &result(&project)["figures"];
    let all = &figures["comparisons"];
    assert_eq!(counts(&all["full vs baseline"]["wins"]), (4, 4));
    assert_eq!(all["full vs baseline"]["improvement"], 1.5);
    assert_eq!(all["full vs summary"]["ties"], 4);
    assert_eq!(counts(&all["summary vs baseline"]["wins"]), (4, 4));
    assert_eq!(counts(&all["companions vs full"]["wins"]), (1, 1));
    let sql = &figures["skills"]["sql"];
    assert_eq!(sql["size"]["tier"], "small");
    assert_eq!(sql["size"]["companions"], 13);
    assert_eq!(figures["tiers"]["small"]["companions vs full"]["improvement"], 0.5);
    let notices = figures["notices"].as_array().unwrap();
    assert!(notices.iter().any(|it| it["code"] == "size-without-gain" && it["about"] == "git"));
}

#[test]
fn what_is_wrong_with_skills_and_their_cases_is_said_before_anything_is_asked() {
    let server = FakeServer::start(Script::default());
    let cases = [positive("a", &["git", "nothing"], &[]), positive("b", &[], &[])];
    let mut bad = cases.to_vec();
    bad.push(
        json!({ "id": "c", "prompt": "x", "should_activate": false, "expected_skills": ["git"] }),
    );
    let project = project(&server, ACTIVATION, &bad)
        .file("skills/broken/SKILL.md", "---\nname: broken\n---\n");
    let shown = project.shown(&["run"]);
    assert!(shown.contains("field `description` is missing"), "{shown}");
    std::fs::remove_dir_all(project.path("skills/broken")).unwrap();
    let shown = project.shown(&["run"]);
    insta::assert_snapshot!(shown);
    assert_eq!(server.seen().asked, 0);
    let suite =
        suite(&server, "kind = \"effectiveness\"\ndataset = \"cases.jsonl\"\nprompt = \"x\"");
    let project = project.file("probity.toml", suite);
    insta::assert_snapshot!(project.shown(&["run"]));
}

#[test]
fn a_case_of_several_questions_is_resumed_and_replayed() {
    let script = honest_judge(Script::default(), &[("SKILLED", 5), ("BARE", 2)]);
    let server = FakeServer::start(skilled(script));
    let project = project(&server, EFFECTIVENESS, &[]).file("rubrics/sql.toml", RUBRIC);
    // Four calls are one case and a bit of the next.
    let ran = run(&project, &["--max-calls", "4", "--no-cache", "-j", "1"]);
    ran.expect(
        3,
        &[("TOTAL_CALLS", "4"), ("N_CASES", "1"), ("N_PLANNED", "2"), ("FAIL_FAST", "0")],
    );
    let ran = run(&project, &["--resume", "--no-cache", "--record", "all.jsonl"]);
    ran.expect(0, &[("TOTAL_CALLS", "3"), ("N_CASES", "2")]);
    let before = result(&project)["figures"].clone();
    let asked = server.seen().asked;
    run(&project, &["--replay", "all.jsonl"]).expect(0, &[("TOTAL_CALLS", "0"), ("N_CASES", "2")]);
    assert_eq!(server.seen().asked, asked);
    assert_eq!(result(&project)["figures"], before);
    // A skill that changed is asked about again.
    let project = project.file("skills/sql/SKILL.md", skill("Queries.", "SQL-BODY, new"));
    run(&project, &["--resume", "--no-cache"]).expect(0, &[("TOTAL_CALLS", "6")]);
}
