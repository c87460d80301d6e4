//! Kinds of runners that are about skills.

use std::fmt::Write as _;

use probity_core::{
    classification::Class,
    evidence::{Choice, Compared, Condition},
    kind::Evidence,
    record::CaseRecord,
};
use probity_testkit::{Answer, FakeServer, Rule, Script, When};
use serde_json::{Value, json};

use crate::project::{Project, Ran, bodies, errors, roles};

const SUBJECT: &str = "fake-small";
const JUDGE: &str = "fake-large";

fn suite(server: &FakeServer, runner: &str) -> String {
    let mut text = String::new();
    for (name, model) in [("small", SUBJECT), ("judge", JUDGE)] {
        let url = server.url();
        let _ = writeln!(
            text,
            "[backends.{name}]\nkind = \"openai\"\nbase_url = \"{url}/v1\"\nmodel = \"{model}\""
        );
    }
    let _ = writeln!(
        text,
        "[[runners]]\nname = \"r\"\nbackends = [\"small\"]\nskills = \"skills\"\n{runner}"
    );
    text
}

/// A project with three skills, of which `sql` has a companion.
fn project(cases: &[Value]) -> Project {
    let skill =
        |description: &str, body: &str| format!("---\ndescription: {description}\n---\n{body}\n");
    Project::new()
        .file("skills/git/SKILL.md", &skill("Branches and history.", "GIT-BODY"))
        .file("skills/sql/SKILL.md", &skill("Queries.", "SQL-BODY\n## Scope\nSQL-SCOPE"))
        .file("skills/sql/more.md", "SQL-COMPANION")
        .file("skills/tests/SKILL.md", &skill("Tests.", "TESTS-BODY"))
        .cases(cases)
}

fn says(prompt: &str, text: &str) -> Rule {
    Rule::new(When::prompt_contains(prompt), Answer::text(text))
}

fn choose(names: &[&str]) -> String {
    json!({ "skills": names }).to_string()
}

fn positive(id: &str, expected: &[&str]) -> Value {
    json!({ "id": id, "prompt": format!("request {id}."), "expected_skills": expected })
}

fn negative(id: &str) -> Value {
    json!({ "id": id, "prompt": format!("request {id}."), "should_activate": false })
}

const ACTIVATION: &str = "kind = \"activation\"\ndataset = \"cases.jsonl\"";
const CONFUSION: &str = "kind = \"confusion\"\ndataset = \"cases.jsonl\"";

#[test]
fn a_choice_that_cannot_be_read_is_asked_for_skill_by_skill() {
    let script = Script::default()
        .rule(says("Skill git", "Yes, it is."))
        .rule(says("Is the skill of use", "no"))
        .rule(says("request found.", &choose(&["git"])))
        .rule(says("request missed.", &choose(&["sql"])))
        .rule(says("request prose.", "I would take the one for Git."))
        .rule(says("request quiet.", &choose(&[])))
        .rule(says("request tempting.", &choose(&["sql"])))
        .rule(says("request chatty.", "None of these."));
    let server = FakeServer::start(script);
    let cases = [
        positive("found", &["git"]),
        positive("missed", &["git"]),
        positive("prose", &["git", "tests"]),
        negative("quiet"),
        negative("tempting"),
        negative("chatty"),
    ];
    let ran = project(&cases).run(&suite(&server, ACTIVATION));
    assert_eq!(
        ran.verdicts(),
        [
            ("chatty", "fail"),
            ("found", "pass"),
            ("missed", "fail"),
            ("prose", "pass"),
            ("quiet", "pass"),
            ("tempting", "fail"),
        ]
    );
    // Six choices, and two questions about the reply that could not be read.
    assert_eq!(ran.outcome.used.calls, 8);
    let prose = ran.of("prose");
    assert_eq!(roles(prose), ["choose", "fallback git", "fallback tests"]);
    let Some(Evidence::Activation(routed)) = prose.classification.details.evidence.as_deref()
    else {
        panic!("{:?}", prose.classification)
    };
    assert_ne!(routed.choice, Choice::Unreadable);
    // Who expects no skill is asked about none.
    assert_eq!((ran.of("chatty").calls, ran.of("chatty").class), (1, Class::WrongFormat));
    let asked =
        bodies(&server).into_iter().find(|it| it.to_string().contains("Skill git")).unwrap();
    let question = asked["messages"][1]["content"].as_str().unwrap();
    assert!(question.starts_with("Skill git: Branches and history."), "{question}");
    assert!(question.contains("Request:\nrequest prose."), "{question}");
}

#[test]
fn the_model_sees_an_index_of_all_skills() {
    let server = FakeServer::start(Script::always(Answer::text(&choose(&["git"]))));
    let project = project(&[positive("found", &["git"])]);
    project.run(&suite(&server, ACTIVATION));
    let own = format!("{ACTIVATION}\nsystem = \"Pick from:\\n{{{{ index }}}}Now.\"");
    project.run(&suite(&server, &own));
    let systems: Vec<String> = bodies(&server)
        .iter()
        .map(|it| it["messages"][0]["content"].as_str().unwrap().to_owned())
        .collect();
    let index = "- git: Branches and history.\n- sql: Queries.\n- tests: Tests.";
    assert!(systems[0].starts_with("You choose skills for a request."), "{}", systems[0]);
    assert!(systems[0].contains(&format!("Index:\n{index}")), "{}", systems[0]);
    assert_eq!(systems[1].trim(), format!("Pick from:\n{index}\nNow."));
}

#[test]
fn each_group_of_a_confusion_has_its_own_index_and_nobody_is_asked_again() {
    let case = |id: &str, group: &str, expected: &str| {
        let prompt = format!("request {id}.");
        json!({ "id": id, "group": group, "prompt": prompt, "expected_skills": [expected] })
    };
    let script = Script::default()
        .rule(says("request a.", &choose(&["git"])))
        .rule(says("request b.", "the first one"))
        .rule(says("request f.", &choose(&["tests"])));
    let server = FakeServer::start(script);
    let mut two = case("f", "two", "tests");
    two["acceptable_skills"] = json!(["sql"]);
    let cases = [case("a", "one", "git"), case("b", "one", "git"), two];
    let project = project(&cases);
    let text = suite(&server, CONFUSION);
    let ran = project.run(&text);
    assert_eq!(ran.verdicts(), [("a", "pass"), ("b", "fail"), ("f", "pass")]);
    assert_eq!((ran.outcome.used.calls, ran.of("b").class), (3, Class::WrongFormat));
    let index = |prompt: &str| {
        let all = bodies(&server);
        let found = all.iter().find(|it| it.to_string().contains(prompt)).unwrap();
        let system = found["messages"][0]["content"].as_str().unwrap().to_owned();
        ["git", "sql", "tests"].map(|it| system.contains(&format!("- {it}: ")))
    };
    assert_eq!(
        (index("request a."), index("request f.")),
        ([true, false, false], [false, true, true])
    );
}

#[test]
fn cases_that_say_nothing_sensible_about_skills_are_refused() {
    let server = FakeServer::start(Script::default());
    let check = |kind: &str, case: Value, expected: &[(&str, &str)]| {
        let problems = project(std::slice::from_ref(&case)).problems(&suite(&server, kind));
        assert_eq!(errors(&problems), expected, "{case}");
    };
    let unsaid = "the case does not say which skill it expects";
    check(ACTIVATION, json!({ "id": "a", "prompt": "p" }), &[("missing-field", unsaid)]);
    let none = json!({ "id": "a", "prompt": "p", "should_activate": true });
    check(ACTIVATION, none, &[("missing-field", "field `expected_skills` is missing")]);
    let both =
        json!({ "id": "a", "prompt": "p", "should_activate": false, "expected_skills": ["git"] });
    let message = "a case that expects no skill must not name one";
    check(ACTIVATION, both, &[("bad-case", message)]);
    let group = json!({ "id": "a", "prompt": "p", "expected_skills": ["git"] });
    check(ACTIVATION, group.clone(), &[]);
    check(CONFUSION, group, &[("missing-field", "field `group` is missing")]);
    let empty = json!({ "id": "a", "prompt": "p", "should_activate": false, "group": "g" });
    let message = "no case of the group `g` names a skill to choose from";
    check(CONFUSION, empty, &[("empty-group", message)]);
}

#[test]
fn calls_and_bytes_of_choices_are_foreseen() {
    let server = FakeServer::start(Script::default());
    let cases = [positive("a", &["git", "tests"]), negative("b")];
    let project = project(&cases);
    let plan = |kind: &str| project.read(&suite(&server, kind)).plan();
    let activation = plan(ACTIVATION);
    let calls = activation.lanes[0].calls;
    assert_eq!((calls.answers, calls.fallbacks, calls.judgements), (2, 2, 0));
    // Each prompt goes after the index.
    let mut systems = 0;
    activation.lanes[0].requests(|_, request| systems += request.system().unwrap().len() as u64);
    let prompts = "request a.request b.".len() as u64;
    assert_eq!(activation.lanes[0].prompt_bytes, prompts + systems);
    let skills = activation.lanes[0].info.skills.as_ref().unwrap();
    assert!(format!("{skills:?}").contains("sql"), "{skills:?}");
}

/// The judge gives 5 points to an answer with a mark in it and 2 to any other, wherever it is shown.
fn honest_judge(marks: &[(&str, u8)]) -> Script {
    let mut script = Script::default();
    for (a, first) in marks {
        for (b, second) in marks {
            let reply = json!({
                "criteria": [
                    { "name": "right", "a": first, "b": second, "reason": "because" },
                    { "name": "short", "a": 3, "b": 3, "reason": "" },
                ],
                "winner": if first >= second { "a" } else { "b" },
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
test_prompts = ["Count the rows."]
[[criteria]]
name = "right"
weight = 0.75
description = "It is right."
[[criteria]]
name = "short"
weight = 0.25
description = "It is short."
"#;

const EFFECTIVENESS: &str = "kind = \"effectiveness\"\ndataset = \"rubrics\"\njudge = \"judge\"";

fn compared(record: &CaseRecord) -> &Compared {
    match record.classification.details.evidence.as_deref() {
        Some(Evidence::Effectiveness(it) | Evidence::SizeImpact(it)) => it,
        other => panic!("{other:?}"),
    }
}

fn only(ran: &Ran) -> &CaseRecord {
    let [(0, record)] = ran.records.as_slice() else { panic!("{} records", ran.records.len()) };
    record
}

#[test]
fn answers_with_and_without_a_skill_are_compared() {
    let script = honest_judge(&[("SKILLED", 5), ("BARE", 2)])
        .rule(Rule::new(When::system_contains("SQL-BODY"), Answer::text("with SKILLED")))
        .rule(Rule::new(When::ModelIs(SUBJECT.to_owned()), Answer::text("plain BARE")));
    let server = FakeServer::start(script);
    let project = project(&[]).file("rubrics/sql.toml", RUBRIC);
    let runner = format!("{EFFECTIVENESS}\nsystem = \"Be brief.\"");
    let ran = project.run(&suite(&server, &runner));
    let record = only(&ran);
    assert_eq!((record.class, record.reply.as_deref()), (Class::Pass, Some("with SKILLED")));
    assert_eq!(roles(record)[..2], ["full", "baseline"]);
    assert_eq!((record.asked.len(), record.calls), (3, 3));
    let found = compared(record);
    assert_eq!((found.skill.as_str(), found.judge.backend.as_str()), ("sql", "judge"));
    let [round] = found.duels[0].rounds.as_slice() else { panic!("{found:?}") };
    let points: Vec<(&str, f64, f64, f64)> = round
        .criteria
        .iter()
        .map(|it| (it.name.as_str(), it.weight, f64::from(it.more), f64::from(it.less)))
        .collect();
    assert_eq!(points, [("right", 0.75, 5.0, 2.0), ("short", 0.25, 3.0, 3.0)]);
    assert_eq!(round.said.map(|it| format!("{it:?}")).as_deref(), Some("Win"));
    assert_eq!((round.attempts, round.criteria[0].reason.as_str()), (1, "because"));
    // The skill stands behind the runner's own instructions.
    let systems: Vec<Value> = bodies(&server)
        .iter()
        .filter(|it| it["model"] == SUBJECT)
        .map(|it| it["messages"][0]["content"].clone())
        .collect();
    assert_eq!(systems[1], "Be brief.");
    let full = systems[0].as_str().unwrap();
    assert!(full.starts_with("Be brief.\n\nThe following instructions"), "{full}");
    assert!(full.contains("# sql\n\nSQL-BODY"), "{full}");
}

#[test]
fn both_orders_are_judged_where_that_is_wanted() {
    let script = honest_judge(&[("SKILLED", 5), ("BARE", 2)])
        .rule(Rule::new(When::system_contains("SQL-BODY"), Answer::text("with SKILLED")))
        .rule(Rule::new(When::ModelIs(SUBJECT.to_owned()), Answer::text("plain BARE")));
    let server = FakeServer::start(script);
    let project = project(&[]).file("rubrics/sql.toml", RUBRIC);
    let text = suite(&server, &format!("{EFFECTIVENESS}\nswap = true\nrepeat = 2"));
    let plan = project.read(&text).plan();
    assert_eq!((plan.lanes[0].calls.answers, plan.lanes[0].calls.judgements), (4, 4));
    let ran = project.run(&text);
    assert_eq!(ran.outcome.used.calls, 8);
    for (_, record) in &ran.records {
        let rounds = &compared(record).duels[0].rounds;
        let shown: Vec<Condition> = rounds.iter().map(|it| it.shown_first).collect();
        assert!(
            shown == [Condition::Full, Condition::Baseline]
                || shown == [Condition::Baseline, Condition::Full],
            "{shown:?}"
        );
        // Wherever an answer is shown, its points are its own.
        assert!(rounds.iter().all(|it| (it.criteria[0].more, it.criteria[0].less) == (5, 2)));
        assert_eq!(record.class, Class::Pass);
    }
}

#[test]
fn all_sizes_of_a_skill_are_compared() {
    let marks = [("WHOLE", 5), ("SHORT", 3), ("BARE", 2), ("MORE", 4)];
    let script = honest_judge(&marks)
        .rule(Rule::new(When::system_contains("SQL-COMPANION"), Answer::text("a MORE")))
        .rule(Rule::new(When::system_contains("SQL-SCOPE"), Answer::text("a WHOLE")))
        .rule(Rule::new(When::system_contains("sql"), Answer::text("a SHORT")))
        .rule(Rule::new(When::ModelIs(SUBJECT.to_owned()), Answer::text("a BARE")));
    let server = FakeServer::start(script);
    let project = project(&[]).file("rubrics/sql.toml", RUBRIC);
    let text = suite(&server, &EFFECTIVENESS.replace("effectiveness", "size_impact"));
    let plan = project.read(&text).plan();
    let ran = project.run(&text);
    let record = only(&ran);
    let found = compared(record);
    let calls = plan.lanes[0].calls;
    assert_eq!(calls.answers + calls.judgements, ran.outcome.used.calls);
    assert_eq!(found.duels.len() as u64, calls.judgements);
    assert!(found.duels.iter().all(|it| it.rounds.len() == 1 && it.error.is_none()), "{found:?}");
    assert!(found.size.full > found.size.summary && found.size.companions > 0, "{found:?}");
    // What is sent is foreseen.
    let mut sent = 0;
    for body in bodies(&server).iter().filter(|it| it["model"] == SUBJECT) {
        let said = body["messages"].as_array().unwrap().iter();
        sent += said.map(|it| it["content"].as_str().unwrap().len() as u64).sum::<u64>();
    }
    assert_eq!(plan.lanes[0].prompt_bytes, sent);
}

#[test]
fn an_answer_that_is_blocked_is_judged_as_none_and_an_error_is_no_verdict() {
    let blocked = Answer::fault(probity_testkit::Trouble::ContentPolicy);
    let judged = json!({ "criteria": [
        { "name": "right", "a": 3, "b": 3, "reason": "" },
        { "name": "short", "a": 3, "b": 3, "reason": "" },
    ], "winner": "tie" });
    let script = Script::default()
        .rule(Rule::new(When::ModelIs(JUDGE.to_owned()), Answer::text(&judged.to_string())))
        .rule(Rule::new(When::system_contains("SQL-BODY"), blocked));
    let server = FakeServer::start(script);
    let project = project(&[]).file("rubrics/sql.toml", RUBRIC);
    let ran = project.run(&suite(&server, EFFECTIVENESS));
    let asked = bodies(&server).into_iter().find(|it| it["model"] == JUDGE).unwrap().to_string();
    assert!(asked.contains("(The service blocked its own answer.)"), "{asked}");
    assert_eq!(compared(only(&ran)).duels[0].rounds.len(), 1);

    let broken = Answer::fault(probity_testkit::Trouble::BadRequest);
    let script = Script::default().rule(Rule::new(When::ModelIs(JUDGE.to_owned()), broken));
    let server = FakeServer::start(script);
    let ran = project.run(&suite(&server, EFFECTIVENESS));
    let record = only(&ran);
    assert_eq!((record.class, record.reply.as_deref()), (Class::Error, Some("rows.")));
    let duel = &compared(record).duels[0];
    assert!(duel.rounds.is_empty() && duel.error.is_some(), "{duel:?}");
    assert!(record.error.as_ref().unwrap().message.starts_with("judge `judge`: "));
}
