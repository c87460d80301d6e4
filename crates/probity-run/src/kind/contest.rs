//! An answer is compared with those of the other lanes.

use std::sync::Arc;

use probity_core::{
    case::TestCase,
    classification::Classification,
    criteria::{Assertion, AssertionTest},
    selection::Selection,
};
use probity_grade::internal::{
    again::contest_role,
    contest::{Contest, Draw, Entry, Order},
};

use crate::{
    engine::{
        Decision, Duty, Entries, Handle, JudgeCall, JudgeFailed, Target, Unanswered, ask_judge,
    },
    grade::{self, Received},
    source::Prepared,
};

/// How many questions a case asks a judge about the answers of all lanes.
pub(super) fn questions_in(assertions: &[Assertion]) -> u64 {
    let of = |it: &Assertion| u64::from(it.kind.test == AssertionTest::SelectBest);
    assertions.iter().map(|it| of(it) + questions_in(&it.members)).sum()
}

/// Whether a case compares the answers of all lanes.
pub(crate) fn is_compared(case: &TestCase) -> bool {
    fn any(assertions: &[Assertion]) -> bool {
        assertions.iter().any(|it| it.kind.test.compares_lanes() || any(&it.members))
    }
    case.asserted().any(|(_, assertions)| any(assertions))
}

/// Waits for the answers of the other lanes, and has all of them compared.
pub(super) async fn hold(
    case: &Prepared,
    received: Received<'_>,
    classification: &Classification,
    handle: &mut Handle,
) -> Result<Vec<Result<Selection, String>>, Unanswered> {
    let contests = case.expectation.contests();
    let own =
        contests.iter().map(|it| grade::entry(case, handle, received, it, &classification.scores));
    let own: Entries = Arc::new(own.collect());
    loop {
        let decision = match handle.meet(own.clone()).await? {
            Duty::Lead { entries, others } => {
                let decision = lead(case, &entries, handle).await?;
                for other in others {
                    // One that is gone has been given up.
                    let _ = other.send(decision.clone());
                }
                decision
            }
            Duty::Follow(decision) => match handle.wait_for(decision).await {
                Some(decision) => decision,
                // Whoever was to decide has been given up.
                None => continue,
            },
        };
        let decided = decision
            .map_err(|JudgeFailed { error, backend }| Unanswered::Failed { error, backend })?;
        let seen = |(entry, selection): (&Result<Entry, String>, &Result<Selection, String>)| {
            let lane = &entry.as_ref().map_err(Clone::clone)?.lane;
            let selection = selection.as_ref().map_err(Clone::clone)?;
            selection.seen_by(lane).ok_or_else(|| "the answer was not compared".to_owned())
        };
        return Ok(own.iter().zip(decided.iter()).map(seen).collect());
    }
}

/// Has the answers compared in every way that the case wants. An error means that the case is given
/// up.
async fn lead(
    case: &Prepared,
    entries: &[Entries],
    handle: &mut Handle,
) -> Result<Decision, Unanswered> {
    let contests = case.expectation.contests();
    let mut decided = Vec::with_capacity(contests.len());
    for (number, contest) in contests.iter().enumerate() {
        let own: Vec<Entry> =
            entries.iter().filter_map(|it| it.get(number)?.as_ref().ok().cloned()).collect();
        match compare(case, (number, contest), &own, handle).await {
            Ok(selection) => decided.push(selection),
            Err(Unanswered::Failed { error, backend }) => {
                return Ok(Err(JudgeFailed { error, backend }));
            }
            Err(aborted @ Unanswered::Aborted(_)) => return Err(aborted),
        }
    }
    Ok(Ok(Arc::new(decided)))
}

/// Has answers compared, in an order that chance draws, or in both.
async fn compare(
    case: &Prepared,
    (number, contest): (usize, &Contest),
    entries: &[Entry],
    handle: &mut Handle,
) -> Result<Result<Selection, String>, Unanswered> {
    let draw = Draw { seed: handle.seed(), case_id: &case.case_id, repeat: case.repeat };
    let lineup = contest.line_up(entries, draw);
    let orders = match case.panel.swap {
        true => &[Order::Drawn, Order::Reversed][..],
        false => &[Order::Drawn],
    };
    let mut chosen = Vec::with_capacity(orders.len());
    for order in orders {
        let Some(question) = lineup.question(*order) else { break };
        let role = contest_role(number, *order);
        let (repeat, structured) = (case.repeat, case.panel.structured);
        let call = JudgeCall { judge: 0, role: &role, repeat, again: 0, structured };
        match ask_judge(&question, call, handle).await? {
            Ok((choice, _)) => chosen.push((*order, choice)),
            Err(why) => return Ok(Err(why)),
        }
    }
    let judge = handle.party(Target::Judge(0)).backend.name.clone();
    Ok(Ok(lineup.decide(Some(&judge), &chosen)))
}
