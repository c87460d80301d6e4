//! Which answers a judge prefers.

use std::collections::BTreeMap;

use maud::{Markup, html};
use probity_core::{evidence::Win, preference::Preference, visible::safe};
use serde_json::{Value, json};

use super::{Pair, in_points};
use crate::plain::one_line;

/// What a judge came to, for people who know the two by these names.
pub(super) fn lines(pair: &Pair, [first, second]: [String; 2]) -> Vec<String> {
    let Some(found) = &pair.preference else { return Vec::new() };
    let Preference { judge, wins, ties, losses, unjudged, both_orders, consistent, .. } = found;
    let judge = one_line(judge, 40);
    let unjudged = match unjudged {
        0 => String::new(),
        count => format!(", {count} could not be judged"),
    };
    if *both_orders == 0 && unjudged.is_empty() {
        let why = match found.judged() {
            0 => "no case has an answer in both".to_owned(),
            1 => "the answers to the one case are the same".to_owned(),
            cases => format!("the answers to each of {cases} cases are the same"),
        };
        return vec![format!("{judge} had nothing to judge: {why}")];
    }
    let mut lines = vec![format!(
        "{judge} prefers {second} in {wins}, {first} in {losses}, neither in {ties} of {} cases{unjudged}",
        found.judged()
    )];
    if let Some(difference) = found.difference() {
        lines.push(format!(
            "wins less losses: {}; both orders agree on {consistent} of {both_orders} pairs",
            in_points(difference)
        ));
    }
    lines
}

pub(super) fn json(found: &Preference) -> Value {
    let Preference {
        judge,
        criteria,
        wins,
        ties,
        losses,
        unjudged,
        both_orders,
        consistent,
        cases,
    } = found;
    let difference = found.difference();
    let cases: BTreeMap<&String, Value> = cases
        .iter()
        .map(|(id, case)| {
            let points = [case.points.first, case.points.second];
            let case = json!({ "result": case.result, "points": points, "reason": case.reason });
            (id, case)
        })
        .collect();
    json!({
        "judge": judge,
        "criteria": criteria,
        "wins": wins,
        "ties": ties,
        "losses": losses,
        "unjudged": unjudged,
        "both_orders": both_orders,
        "consistent": consistent,
        "difference": difference.map(|it| it.value),
        "interval": difference.map(|it| [it.interval.low, it.interval.high]),
        "p_value": difference.map(|it| it.p_value),
        "cases": cases,
    })
}

/// Which of the two answers to a case is better.
pub(super) fn of_case(pair: &Pair, case_id: &str) -> Markup {
    let found = pair.preference.as_ref().and_then(|it| it.cases.get(case_id));
    html! {
        @if let Some(case) = found {
            p.preferred dir="auto" {
                @match case.result {
                    Win::Win => { "The judge prefers the second answer." }
                    Win::Loss => { "The judge prefers the first answer." }
                    Win::Tie => { "The judge prefers neither answer." }
                }
                @if !case.reason.is_empty() { " " (safe(&one_line(&case.reason, 600))) }
            }
        }
    }
}
