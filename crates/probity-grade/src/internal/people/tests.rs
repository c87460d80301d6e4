//! Points of judges, from what is kept of their answers.

use std::sync::Arc;

use probity_core::{
    case::TestCase,
    classification::{Class, Classification, Rule},
    details::Details,
    opinion::{Combine, Judged, JudgedCheck, Opinion, Said as Answered},
    people::{Mark, Name},
    record::{Asked, InputDigest, Source, Usage},
    request::Request,
    score::Score,
};
use serde_json::{Value, json};

use super::*;
use crate::internal::again::rubric_role;

fn record(assertions: &Value, asked: Vec<Asked>, scores: Vec<Score>) -> CaseRecord {
    let case = json!({ "id": "c", "prompt": "p", "assert": assertions }).to_string();
    let classification = Classification { rule: Rule::Pass, scores, details: Details::default() };
    CaseRecord {
        case_id: "c".to_owned(),
        repeat: 0,
        input: InputDigest::of([]),
        case: Arc::new(TestCase::from_json(&case).unwrap()),
        request: Request::new(None, "p"),
        reply: Some("r".to_owned()),
        error: None,
        reasoning: None,
        stop_reason: None,
        model: None,
        source: Source::Backend,
        latency_ms: 0,
        ttft_ms: None,
        tokens_per_second: None,
        usage: Usage::default(),
        cost_usd: None,
        calls: 1,
        worker: None,
        failures: Vec::new(),
        started_ms: 0,
        elapsed_ms: 0,
        class: Class::Pass,
        verdict: Verdict::Pass,
        classification,
        asked,
    }
}

fn asked(judge: &str, number: usize, again: u32, reply: &Value) -> Asked {
    Asked {
        role: rubric_role(number, again),
        turn: None,
        backend: judge.to_owned(),
        request: Request::new(None, "judge"),
        reply: Some(reply.to_string()),
        tool_calls: Vec::new(),
        reasoning: None,
        stop_reason: None,
        logprobs: None,
        error: None,
        model: None,
        source: Source::Backend,
        latency_ms: 0,
        usage: Usage::default(),
        cost_usd: None,
        calls: 1,
    }
}

fn points(all: &[(&str, u8)]) -> Value {
    let criteria: Vec<Value> = all
        .iter()
        .map(|(name, score)| json!({ "name": name, "score": score, "reason": "" }))
        .collect();
    json!({ "criteria": criteria })
}

fn score(name: &'static str, value: f64) -> Score {
    Score { value: Some(value), ..Score::new(name, None) }
}

/// The criteria as `name: judge points, …`.
fn shown(record: &CaseRecord) -> Vec<String> {
    let judges = |it: &Criterion| {
        let all = it.judges.iter().map(|(judge, points)| format!("{judge} {points}"));
        all.collect::<Vec<_>>().join(", ")
    };
    criteria(record).iter().map(|it| format!("{}: {}", it.name, judges(it))).collect()
}

#[test]
fn each_criterion_of_a_rubric_has_the_points_of_each_judge() {
    let rubric = json!([
        { "type": "contains", "value": "x" },
        { "type": "assert-set", "assert": [{ "type": "llm-rubric", "metric": "m", "value": [
            { "name": "right", "description": "It is right." },
            { "name": "short", "description": "It is short." },
        ] }] },
        { "type": "not-llm-rubric", "value": "It is rude." },
        { "type": "not-llm-rubric", "value": "It is loud." },
    ]);
    let of = |right, short| points(&[("right", right), ("short", short)]);
    let asked = vec![
        asked("a", 0, 0, &of(5, 1)),
        asked("b", 0, 0, &of(2, 2)),
        // Asked again: the median counts, of two the lower.
        asked("b", 0, 1, &of(4, 3)),
        asked("c", 0, 0, &json!("no idea")),
        asked("a", 1, 0, &points(&[("rubric", 2)])),
    ];
    let expected =
        ["m: right: a 5, b 2", "m: short: a 1, b 2", "not-llm-rubric: a 2", "not-llm-rubric 2: "];
    let record = record(&rubric, asked, Vec::new());
    assert_eq!(shown(&record), expected);
    let each = explained(&record).into_iter();
    let each: Vec<String> =
        each.map(|it| format!("{} {} {}", it.criterion, it.judge, it.points)).collect();
    let expected = [
        "m: right a 5",
        "m: short a 1",
        "m: right b 2",
        "m: short b 2",
        "m: right b 4",
        "m: short b 3",
        "not-llm-rubric a 2",
    ];
    assert_eq!(each, expected);
}

#[test]
fn scores_of_other_questions_become_points() {
    let assertions = json!([
        { "type": "closed-qa", "value": "It is short." },
        { "type": "not-factuality", "value": "It is blue." },
    ]);
    let answer = json!({ "reason": "", "answer": "yes" });
    let asked = vec![asked("a", 0, 0, &answer), asked("a", 1, 0, &answer)];
    let scores = vec![score("closed-qa", 1.0), score("not-factuality", 0.0)];
    let found = record(&assertions, asked, scores);
    // Of a check that is turned round only yes or no is known.
    assert_eq!(shown(&found), ["closed-qa: a 5", "not-factuality: "]);
    let judged = |score| {
        let (passed, reason, statements) = (None, String::new(), Vec::new());
        Answered::Judged(Judged { score, passed, reason, statements })
    };
    let opinion = |judge: &str, said| Opinion { judge: judge.to_owned(), said };
    let mut panel = record(&assertions, Vec::new(), Vec::new());
    panel.classification.details.judged = vec![JudgedCheck {
        check: "closed-qa".into(),
        combine: Combine::Majority,
        opinions: vec![
            opinion("a", judged(0.0)),
            opinion("b", judged(0.5)),
            opinion("c", Answered::Failed { error: "down".to_owned() }),
        ],
        agreement: None,
    }];
    assert_eq!(shown(&panel), ["closed-qa: a 1, b 3", "not-factuality: "]);
}

#[test]
fn labels_hold_the_last_word_of_people_beside_each_judge() {
    let rubric = json!([{ "type": "llm-rubric", "value": "It is right." }]);
    let asked = ["a", "b"].map(|judge| asked(judge, 0, 0, &points(&[("rubric", 3)]))).to_vec();
    let record = record(&rubric, asked, Vec::new());
    let said = |person: &str, remark| {
        let person = Name::of_person(person).unwrap();
        Said { person, at_ms: 0, remark, carried_from: None }
    };
    let given = |about: &str, points| Remark::Points { about: about.to_owned(), points };
    let history = [
        said("Ada", Remark::Verdict { mark: Some(Mark::Pass) }),
        said("Ada", Remark::Verdict { mark: Some(Mark::Fail) }),
        said("Ada", given("llm-rubric", Some(4))),
        said("Bob", given("llm-rubric", Some(1))),
        said("Bob", given("llm-rubric", None)),
        said("Bob", given("other", Some(2))),
    ];
    let name = |text: &str| Label::Name(text.to_owned());
    let labelled = |about: &str, by: Option<&str>, judge, person: &str, label| Labelled {
        about: about.to_owned(),
        by: by.map(ToOwned::to_owned),
        judge,
        people: BTreeMap::from([(person.to_owned(), label)]),
    };
    let three = Some(Label::Points(3.0));
    let expected = [
        labelled("verdict", None, Some(name("pass")), "Ada", name("fail")),
        labelled("llm-rubric", Some("a"), three.clone(), "Ada", Label::Points(4.0)),
        labelled("llm-rubric", Some("b"), three, "Ada", Label::Points(4.0)),
        labelled("other", None, None, "Bob", Label::Points(2.0)),
    ];
    assert_eq!(labels(&record, &history), expected);
}
