//! Answers with more and less of a skill, compared by a judge.

use std::collections::BTreeMap;

use probity_core::{
    evidence::{Compared, Condition, CriterionScore, Duel, Evidence, NOT_JUDGED, Pair, Round, Win},
    failure::ErrorKind,
    record::{Aborted, CallError, InputDigest, Kept},
    runner::RunnerKind,
};
use probity_grade::judge::{Judgement, Question};

use super::{Ended, Handle, Prepared, Query, Target, Unanswered, ask_judge, failed_with, finish};
use crate::{backend::Reply, work::Comparison};

/// Generates an answer under each condition, and has them judged pair by pair.
pub(super) async fn run(
    case: Prepared,
    work: Comparison,
    mut handle: Handle,
) -> Result<Ended, Aborted> {
    let mut answers: BTreeMap<Condition, Reply> = BTreeMap::new();
    for (condition, request) in work.requests(&case.request) {
        let query = Query {
            target: Target::Subject,
            role: condition.as_str(),
            kept: Kept::Generation,
            request: &request,
            repeat: case.repeat,
        };
        let answer = handle.query(query).await.and_then(|reply| {
            // Nothing cannot be compared with anything.
            match reply.is_empty() {
                false => Ok(reply),
                true => Err(Unanswered::Failed {
                    error: CallError::new(ErrorKind::Empty, "the reply is empty"),
                    backend: handle.subject.at,
                }),
            }
        });
        match answer {
            Ok(reply) => {
                answers.insert(condition, reply);
            }
            // What a service will not answer is judged as what it is: no answer.
            Err(Unanswered::Failed { error, .. }) if error.kind == ErrorKind::ContentFilter => {
                let text = "(The service blocked its own answer.)".to_owned();
                answers.insert(condition, Reply { text, ..Reply::default() });
            }
            Err(unanswered) => return unjudged(case, &work, Vec::new(), None, handle, unanswered),
        }
    }
    let mut duels = Vec::with_capacity(work.pairs.len());
    for pair in &work.pairs {
        match duel(&case, &work, *pair, &answers, &mut handle).await {
            Ok(duel) => duels.push(duel),
            Err(unanswered) => {
                let reply = answers.remove(&Condition::Full);
                return unjudged(case, &work, duels, reply, handle, unanswered);
            }
        }
    }
    let evidence = work.evidence(duels);
    let reply = answers.remove(&Condition::Full);
    Ok(finish(case, handle, reply, probity_grade::compared(evidence)))
}

/// A case that ends in an error keeps what is known of it.
fn unjudged(
    case: Prepared,
    work: &Comparison,
    duels: Vec<Duel>,
    reply: Option<Reply>,
    handle: Handle,
    unanswered: Unanswered,
) -> Result<Ended, Aborted> {
    let mut duels = duels;
    for pair in &work.pairs[duels.len()..] {
        duels.push(Duel::new(*pair, Vec::new(), Some(NOT_JUDGED.to_owned())));
    }
    failed_with(case, reply, Some(work.evidence(duels)), handle, unanswered)
}

/// Has two answers judged, in an order that chance draws, or in both.
async fn duel(
    case: &Prepared,
    work: &Comparison,
    pair: Pair,
    answers: &BTreeMap<Condition, Reply>,
    handle: &mut Handle,
) -> Result<Duel, Unanswered> {
    let drawn = order(handle.seed(), work, case.request.prompt(), case.repeat, pair);
    let orders = match work.swap {
        true => vec![drawn, !drawn],
        false => vec![drawn],
    };
    let mut rounds = Vec::with_capacity(orders.len());
    for more_first in orders {
        let (first, second) = match more_first {
            true => (pair.more, pair.less),
            false => (pair.less, pair.more),
        };
        let text = |condition| answers.get(&condition).map(Reply::answer).unwrap_or_default();
        let (first_text, second_text) = (text(first), text(second));
        let shown = [&*first_text, &*second_text];
        let task = case.request.prompt();
        let question = Question { task, criteria: &work.rubric, answers: &shown };
        let role = format!("judge {pair}, {} first", first.as_str());
        match ask_judge(&question, &role, case.repeat, handle).await? {
            Ok((judgement, attempts)) => {
                rounds.push(round(work, judgement, more_first, first, attempts));
            }
            Err(why) => return Ok(Duel::new(pair, rounds, Some(why))),
        }
    }
    Ok(Duel::new(pair, rounds, None))
}

/// Whether the answer with more of the skill is shown first: a coin that the same case always
/// throws the same way.
fn order(seed: u64, work: &Comparison, prompt: &str, repeat: u32, pair: Pair) -> bool {
    let digest = InputDigest::of([
        b"order",
        &seed.to_le_bytes()[..],
        work.skill.as_bytes(),
        prompt.as_bytes(),
        &repeat.to_le_bytes(),
        pair.to_string().as_bytes(),
    ]);
    digest.0[0] & 1 == 0
}

fn round(
    work: &Comparison,
    judgement: Judgement,
    more_first: bool,
    shown_first: Condition,
    attempts: u32,
) -> Round {
    let (more, less) = if more_first { (0, 1) } else { (1, 0) };
    let criteria: Vec<CriterionScore> = work
        .rubric
        .iter()
        .zip(judgement.criteria)
        .map(|(criterion, points)| CriterionScore {
            name: criterion.name.clone(),
            weight: criterion.weight,
            more: points.points[more],
            less: points.points[less],
            reason: points.reason,
        })
        .collect();
    let said = judgement.said.map(|winner| match winner {
        None => Win::Tie,
        Some(place) if place == more => Win::Win,
        Some(_) => Win::Loss,
    });
    let result = Round::scores(&criteria).result();
    Round { shown_first, attempts, criteria, said, result }
}

impl Comparison {
    fn evidence(&self, duels: Vec<Duel>) -> Evidence {
        let compared = Compared {
            skill: self.skill.clone(),
            size: self.size,
            judge: self.judge.clone(),
            duels,
        };
        match self.kind {
            RunnerKind::SizeImpact => Evidence::SizeImpact(compared),
            RunnerKind::Effectiveness
            | RunnerKind::Respond
            | RunnerKind::Command
            | RunnerKind::Activation
            | RunnerKind::Confusion
            | RunnerKind::Program => Evidence::Effectiveness(compared),
        }
    }
}
