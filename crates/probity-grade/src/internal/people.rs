//! What people and judges said of the same reply, as labels that can be compared.

use std::collections::BTreeMap;

use probity_core::{
    calibration::Label,
    case::RubricCriterion,
    classification::Verdict,
    criteria::{Assertion, AssertionTest},
    opinion::Opinion,
    people::{Remark, Said, current},
    record::{Asked, CaseRecord},
};

use crate::internal::{
    again::rounds,
    judge::{Judgement, Question, rubric_of},
};

/// The matter of labels that say what the verdict ought to be.
pub const VERDICT: &str = "verdict";

/// Something that judges were asked about a reply, and that people can be asked as well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Criterion {
    /// The name of the score, with that of the criterion where a rubric has several.
    pub name: String,
    /// What the judge was told.
    pub description: Option<String>,
    /// Each judge with the points that it gave, from 1 to 5.
    pub judges: Vec<(String, u8)>,
}

/// What everybody said about one matter of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct Labelled {
    /// The matter: `verdict`, or a criterion.
    pub about: String,
    /// The judge; none for the verdict of the run.
    pub by: Option<String>,
    /// What the judge said; none if nothing is known of that.
    pub judge: Option<Label>,
    /// What people said, by their names.
    pub people: BTreeMap<String, Label>,
}

/// The points that a judge gave for a criterion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// The name of the score, with that of the criterion where a rubric has several.
    pub criterion: String,
    /// The judge.
    pub judge: String,
    /// From 1 to 5.
    pub points: u8,
    /// Why, in the judge's words.
    pub reason: String,
}

/// The points that judges gave by rubrics for the reply of a case, with their reasons, each time that they were asked.
pub fn explained(record: &CaseRecord) -> Vec<Explained> {
    let mut all = Vec::new();
    for (number, assertion) in judged(&record.case.criteria.assertions).into_iter().enumerate() {
        let Some(rubric) = rubric(assertion) else { continue };
        let base = name_of(assertion);
        for (judge, judgement) in judgements(record, number, &rubric) {
            for (criterion, given) in rubric.iter().zip(judgement.criteria) {
                let criterion = match rubric.len() {
                    1 => base.clone(),
                    _ => format!("{base}: {}", criterion.name),
                };
                if let Some(points) = given.points.first().copied() {
                    let judge = judge.to_owned();
                    all.push(Explained { criterion, judge, points, reason: given.reason });
                }
            }
        }
    }
    all
}

/// What judges were asked about the reply of a case.
///
/// Assertions of single turns are left out: they are not about the last reply.
pub fn criteria(record: &CaseRecord) -> Vec<Criterion> {
    let mut all: Vec<Criterion> = Vec::new();
    for (number, assertion) in judged(&record.case.criteria.assertions).into_iter().enumerate() {
        let base = unused(&all, &name_of(assertion));
        all.extend(of_assertion(record, number, assertion, &base));
    }
    all
}

/// What people said of a result, beside what the run and its judges said. The verdict comes first, even if nobody
/// said anything about it.
pub fn labels(record: &CaseRecord, history: &[Said]) -> Vec<Labelled> {
    let (mut marks, mut points) = (BTreeMap::new(), BTreeMap::<&str, BTreeMap<_, _>>::new());
    for said in current(history) {
        let person = said.person.as_str().to_owned();
        match &said.remark {
            Remark::Verdict { mark: Some(mark) } => {
                marks.insert(person, Label::Name(mark.as_str().to_owned()));
            }
            Remark::Points { about, points: Some(given) } => {
                points.entry(about).or_default().insert(person, Label::Points((*given).into()));
            }
            Remark::Verdict { mark: None }
            | Remark::Points { points: None, .. }
            | Remark::Note { .. }
            | Remark::Tag { .. } => {}
        }
    }
    let judge = match record.verdict {
        Verdict::Pass | Verdict::Fail => Some(Label::Name(record.verdict.as_str().to_owned())),
        Verdict::Error | Verdict::Undecided => None,
    };
    let verdict = Labelled { about: VERDICT.to_owned(), by: None, judge, people: marks };
    let criteria = criteria(record);
    let scored = points.into_iter().flat_map(|(about, people)| {
        let known = criteria.iter().find(|it| it.name == about);
        let judges = known.map_or(&[][..], |it| it.judges.as_slice());
        let labelled = |by: Option<&String>, judge: Option<u8>| Labelled {
            about: about.to_owned(),
            by: by.cloned(),
            judge: judge.map(|it| Label::Points(it.into())),
            people: people.clone(),
        };
        match judges {
            [] => vec![labelled(None, None)],
            judges => judges.iter().map(|(by, it)| labelled(Some(by), Some(*it))).collect(),
        }
    });
    std::iter::once(verdict).chain(scored).collect()
}

/// The assertions that ask judges, in the order in which these are numbered.
fn judged(assertions: &[Assertion]) -> Vec<&Assertion> {
    let mut all = Vec::new();
    for assertion in assertions {
        if assertion.kind.test.asks_judge() {
            all.push(assertion);
        }
        all.extend(judged(&assertion.members));
    }
    all
}

fn name_of(assertion: &Assertion) -> String {
    assertion.metric.clone().unwrap_or_else(|| assertion.kind.name().into_owned())
}

/// The name, with a number if it is taken.
fn unused(known: &[Criterion], name: &str) -> String {
    let is_taken = |name: &str| {
        let is_part = |it: &str| it.strip_prefix(name).is_some_and(|rest| rest.starts_with(": "));
        known.iter().any(|it| it.name == name || is_part(&it.name))
    };
    let numbered = (2..).map(|number| format!("{name} {number}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(|it| !is_taken(it)).unwrap_or_default()
}

fn of_assertion(
    record: &CaseRecord,
    number: usize,
    assertion: &Assertion,
    base: &str,
) -> Vec<Criterion> {
    let rubric = rubric(assertion);
    let by_points = rubric.as_ref().map(|it| points(record, number, it)).unwrap_or_default();
    match rubric {
        Some(rubric) if rubric.len() > 1 => rubric
            .into_iter()
            .enumerate()
            .map(|(at, it)| Criterion {
                name: format!("{base}: {}", it.name),
                description: Some(it.description),
                judges: at_place(&by_points, at),
            })
            .collect(),
        _ => {
            let description = assertion.value.as_ref().and_then(|it| it.as_str());
            let judges = match at_place(&by_points, 0) {
                // A judge who was asked in a user's words gives a score and no points.
                judges if judges.is_empty() => by_score(record, number, assertion),
                judges => judges,
            };
            let description = description.map(ToOwned::to_owned);
            vec![Criterion { name: base.to_owned(), description, judges }]
        }
    }
}

fn rubric(assertion: &Assertion) -> Option<Vec<RubricCriterion>> {
    let is_rubric = assertion.kind.test == AssertionTest::LlmRubric;
    assertion.value.as_ref().filter(|_| is_rubric).and_then(rubric_of)
}

fn at_place(judges: &[(String, Vec<u8>)], at: usize) -> Vec<(String, u8)> {
    judges.iter().filter_map(|(judge, points)| Some((judge.clone(), *points.get(at)?))).collect()
}

/// The points that each judge gave for each criterion of a rubric: of several times that it was asked, the median.
fn points(
    record: &CaseRecord,
    number: usize,
    rubric: &[RubricCriterion],
) -> Vec<(String, Vec<u8>)> {
    let mut judges: Vec<(String, Vec<Vec<u8>>)> = Vec::new();
    for (by, judgement) in judgements(record, number, rubric) {
        let points = judgement.criteria.iter().filter_map(|it| it.points.first().copied());
        let points: Vec<u8> = points.collect();
        match judges.iter_mut().find(|(judge, _)| judge == by) {
            Some((_, rounds)) => rounds.push(points),
            None => judges.push((by.to_owned(), vec![points])),
        }
    }
    let median = |rounds: &[Vec<u8>], at: usize| {
        let mut given: Vec<u8> = rounds.iter().filter_map(|it| it.get(at).copied()).collect();
        given.sort_unstable();
        given.get(given.len().saturating_sub(1) / 2).copied()
    };
    let of_judge = |(judge, rounds): &(String, Vec<Vec<u8>>)| {
        let points = (0..rubric.len()).filter_map(|at| median(rounds, at));
        (judge.clone(), points.collect())
    };
    judges.iter().map(of_judge).collect()
}

/// What judges answered to a question about a rubric, each time that it was asked.
fn judgements<'a>(
    record: &'a CaseRecord,
    number: usize,
    rubric: &[RubricCriterion],
) -> Vec<(&'a str, Judgement)> {
    let question = Question { task: "", criteria: rubric, answers: &[""] };
    let read = |asked: &&'a Asked| {
        let judgement = question.read(asked.reply.as_ref()?).ok()?;
        Some((asked.backend.as_str(), judgement))
    };
    rounds(&record.asked, number).iter().filter_map(read).collect()
}

/// Scores of judges as points.
fn by_score(record: &CaseRecord, number: usize, assertion: &Assertion) -> Vec<(String, u8)> {
    let name = name_of(assertion);
    let details = &record.classification.details.judged;
    let mut opinions = details.iter().filter(|it| it.check == name);
    if let (Some(check), None) = (opinions.next(), opinions.next()) {
        let mut judges: Vec<(String, u8)> = Vec::new();
        for Opinion { judge, .. } in &check.opinions {
            let scores = check.opinions.iter().filter(|it| it.judge == *judge);
            let mut scores: Vec<f64> = scores.filter_map(|it| Some(it.judged()?.score)).collect();
            scores.sort_by(f64::total_cmp);
            let median = scores.get(scores.len().saturating_sub(1) / 2);
            if let Some(score) = median.filter(|_| !judges.iter().any(|it| it.0 == *judge)) {
                judges.push((judge.clone(), as_points(*score)));
            }
        }
        return judges;
    }
    // Of one judge only the score is kept; `not-` makes yes or no of it, which says nothing about points.
    let mut scores = record.classification.scores.iter().filter(|it| it.name == name);
    match (rounds(&record.asked, number).as_slice(), scores.next(), scores.next()) {
        ([asked], Some(score), None) if !assertion.kind.negated => {
            score.value.map(|it| (asked.backend.clone(), as_points(it))).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// A score from 0 to 1 as points from 1 to 5.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 1 to 5")]
fn as_points(score: f64) -> u8 {
    (1.0 + 4.0 * score.clamp(0.0, 1.0)).round() as u8
}

#[cfg(test)]
mod tests;
