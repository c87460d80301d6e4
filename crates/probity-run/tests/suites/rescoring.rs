//! Stored replies that are judged again: nobody is asked.

use probity_core::{
    classification::{Class, Verdict},
    record::CaseRecord,
};
use probity_grade::{Compiler, Rules};
use probity_run::{
    plan::Choice,
    rescore::{ByOwnCase, Judging, RescoreError, Rescored, by_own_case, rescore},
};
use probity_testkit::{Answer, FakeServer, Rule, Script, Trouble, When};
use serde_json::{Value, json};

use crate::project::{Project, Read};

fn suite(server: &FakeServer) -> String {
    format!(
        "[retry]\nmax_retries = 0\n[backends.b]\nkind = \"openai\"\nbase_url = \"{}\"\nmodel = \"m\"\n\
         [backends.judge]\nkind = \"openai\"\nbase_url = \"{}\"\nmodel = \"judge\"\n\
         [[runners]]\nname = \"r\"\nbackends = [\"b\"]\njudge = \"judge\"\ndataset = \"cases.jsonl\"\n",
        server.url(),
        server.url()
    )
}

fn case(id: &str, expected: &str) -> Value {
    json!({ "id": id, "prompt": format!("Say {id}"), "expected_response": expected })
}

fn again(
    read: &Read,
    stored: &[CaseRecord],
) -> (Result<Rescored, RescoreError<()>>, Vec<CaseRecord>) {
    let scanned = read.scanned(&Choice::default()).remove(0);
    let judging = Judging { scanned: &scanned, backend: "b", rules: read.rules };
    let find = |id: &str| Ok(stored.iter().filter(|it| it.case_id == id).cloned().collect());
    let mut judged = Vec::new();
    let rescored = rescore(judging, find, |it| {
        judged.push(it);
        Ok(())
    });
    (rescored, judged)
}

#[test]
fn replies_are_judged_by_the_dataset_of_now() {
    let script = Script::default()
        .rule(Rule::new(When::prompt_contains("broken"), Answer::fault(Trouble::BadRequest)));
    let server = FakeServer::start(script);
    let cases = [case("one", "one"), case("two", "2"), case("broken", "x")];
    let project = Project::new().cases(&cases);
    let stored: Vec<CaseRecord> =
        project.run(&suite(&server)).records.into_iter().map(|it| it.1).collect();
    let asked = server.seen().asked;
    let now = [case("one", "1"), case("two", "two"), case("broken", "x"), case("new", "new")];
    let project = project.cases(&now);
    let read = project.read(&suite(&server));
    let (rescored, judged) = again(&read, &stored);
    assert_eq!(rescored.unwrap(), Rescored { results: 3, without_result: 1 });
    let found: Vec<(&str, Verdict, Class, u32)> =
        judged.iter().map(|it| (it.case_id.as_str(), it.verdict, it.class, it.calls)).collect();
    assert_eq!(
        found,
        [
            ("one", Verdict::Fail, Class::Fail, 0),
            ("two", Verdict::Pass, Class::Pass, 0),
            ("broken", Verdict::Error, Class::Error, 0),
        ]
    );
    assert_eq!(judged[1].reply.as_deref(), Some("two"));
    assert_eq!(judged[1].case.criteria, project.read(&suite(&server)).plan_case("two").criteria);
    assert_eq!(server.seen().asked, asked);
}

#[test]
fn what_judges_and_scorers_said_is_heard_again() {
    let judged = json!({ "criteria": [{ "name": "rubric", "score": 4, "reason": "so it is" }] });
    let says = Rule::new(When::ModelIs("judge".to_owned()), Answer::text(&judged.to_string()));
    let server = FakeServer::start(Script::default().rule(says));
    let with = |threshold: f64| {
        json!({ "id": "a", "prompt": "Say a", "assert": [
            { "type": "llm-rubric", "value": "It is polite.", "threshold": threshold },
            { "type": "latency", "threshold": 600_000 },
            { "type": "cost", "threshold": 1 },
        ] })
    };
    let priced = suite(&server)
        .replace("model = \"m\"\n", "model = \"m\"\nprice = { input = 1.0, output = 1.0 }\n");
    let project = Project::new().cases(&[with(0.5)]);
    let ran = project.run(&priced);
    assert_eq!(ran.verdicts(), [("a", "pass")], "{:?}", ran.of("a").classification);
    let stored: Vec<CaseRecord> = ran.records.into_iter().map(|it| it.1).collect();
    let (_, same) = again(&project.read(&priced), &stored);
    assert_eq!(same[0].classification, stored[0].classification);
    let project = project.cases(&[with(0.9)]);
    let (_, stricter) = again(&project.read(&priced), &stored);
    assert_eq!((stricter[0].verdict, stricter.len()), (Verdict::Fail, 1));
    assert_eq!(server.seen().asked, 2);
}

#[test]
fn a_store_that_fails_ends_it_and_a_dataset_that_changes_too() {
    let server = FakeServer::start(Script::default());
    let project = Project::new().cases(&[case("one", "one")]);
    let read = project.read(&suite(&server));
    let scanned = read.scanned(&Choice::default()).remove(0);
    let judging = Judging { scanned: &scanned, backend: "b", rules: read.rules };
    let failed = rescore(judging, |_| Err("gone"), |_| Ok(()));
    assert!(matches!(failed, Err(RescoreError::Results("gone"))));
    let _project = project.cases(&[case("one", "another")]);
    let changed: Result<_, RescoreError<()>> = rescore(judging, |_| Ok(Vec::new()), |_| Ok(()));
    assert!(matches!(changed, Err(RescoreError::Changed)));
}

#[test]
fn a_result_is_judged_by_its_own_case_where_that_can_be() {
    let server = FakeServer::start(Script::default());
    let rubric = json!([{ "type": "llm-rubric", "value": "x" }]);
    let cases = [
        case("one", "one"),
        json!({ "id": "judged", "prompt": "Say x", "assert": rubric }),
        json!({ "id": "plain", "prompt": "Say x" }),
    ];
    let project = Project::new().cases(&cases);
    let ran = project.run(&suite(&server));
    let rules = Rules::default();
    let mut compiler = Compiler::new(&rules);
    let mut own = |id: &str| {
        let record = CaseRecord { verdict: Verdict::Undecided, ..ran.of(id).clone() };
        let ByOwnCase { record, is_judged } = by_own_case(record, "b", &mut compiler);
        (record.verdict, is_judged)
    };
    assert_eq!(own("one"), (Verdict::Pass, true));
    // Nobody can say what a judge would have said, and of one without criteria there is nothing to say.
    assert_eq!(
        (own("judged"), own("plain")),
        ((Verdict::Undecided, false), (Verdict::Undecided, false))
    );
    let failed = FakeServer::start(Script::always(Answer::fault(Trouble::BadRequest)));
    let ran = project.run(&suite(&failed));
    let ByOwnCase { is_judged, .. } = by_own_case(ran.of("one").clone(), "b", &mut compiler);
    assert!(!is_judged);
}
