//! What a comparison with the answers of other lanes came to, as a check.

use probity_core::selection::{Candidate, Selection};

use super::{Checked, Told};
use crate::excerpt::beginning;

/// Characters of a judge's reason that are kept.
const LONGEST_REASON: usize = 1000;

pub(super) fn check(selection: Option<&Result<Selection, String>>) -> Checked {
    let selection = match selection {
        Some(Ok(selection)) => selection,
        Some(Err(why)) => return Checked::unjudged(why.clone()),
        None => return Checked::unjudged("the answer was not compared with others".to_owned()),
    };
    Checked {
        value: Some(selection.value()),
        passed: selection.is_best(),
        reason: Some(beginning(&reason(selection), LONGEST_REASON)),
        told: Told { selected: vec![selection.clone()], ..Told::default() },
        ..Checked::holds()
    }
}

/// Which answer is the best, and why.
fn reason(selection: &Selection) -> String {
    let Selection { answers, own, best, judge, reason, .. } = selection;
    if let [only] = answers.as_slice() {
        return match only.lanes.len() {
            1 => "there is no other answer to compare it with".to_owned(),
            _ => format!("the answers are the same: {}", only.named()),
        };
    }
    let named = |at: &usize| answers.get(*at).map(Candidate::named).unwrap_or_default();
    let others: Vec<String> = best.iter().filter(|at| *at != own).map(named).collect();
    let others = others.join(" or ");
    let Some(judge) = judge else { return by_score(selection, &others) };
    let why = reason.as_deref().unwrap_or_default();
    match (selection.is_best(), best.len()) {
        (true, 1) => format!("{judge} finds it the best: {why}"),
        (true, _) => {
            format!("{judge} finds it the best in one order and {others} in the other: {why}")
        }
        (false, 1) => format!("{judge} finds {others} the best: {why}"),
        (false, _) => format!("{judge} finds {others} the best, each in one order: {why}"),
    }
}

fn by_score(selection: &Selection, others: &str) -> String {
    let Selection { answers, own, best, by, .. } = selection;
    let score = |at: &usize| answers.get(*at).and_then(|it| it.score).unwrap_or_default();
    let own = score(own);
    match best.first() {
        Some(_) if selection.is_best() => format!("its score of {own:.3} is the highest ({by})"),
        Some(at) => format!("{others} has {:.3}, it has {own:.3} ({by})", score(at)),
        None => format!("no score is high enough: it has {own:.3} ({by})"),
    }
}
