//! Decides from the phrases that were found whether a reply refuses.
//!
//! The rule is a sum that a person can check: each phrase adds the weight of its
//! family, the shape of the reply adds its own, and the threshold decides.

use std::cmp::Reverse;

use super::{
    automaton::{Match, Token, UNKNOWN},
    layout::Layout,
    list::{Family, List},
};

/// Sentences that make up the opening of a reply.
const OPENING_SENTENCES: u32 = 2;

/// How often one family counts, in the opening and after it. A sermon is one refusal.
const MOST: usize = 3;

/// How many words may stand between an apology and a closing: `Sorry. Is there anything else`.
const MOST_BETWEEN: usize = 3;

/// A phrase that was counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted {
    pub(super) found: Match,
    pub(super) weight: i32,
    pub(super) opening: bool,
}

/// The phrase that says most for a refusal; the first one of equals.
pub(super) fn strongest(counted: &[Counted]) -> Option<Match> {
    let for_refusal = counted.iter().filter(|it| it.weight > 0);
    let strongest = for_refusal.max_by_key(|it| (it.weight, Reverse(it.found.first)));
    strongest.map(|it| it.found)
}

/// Of phrases that overlap, keeps the one that holds the other, and one of each family.
///
/// More phrases in `found` never make those that were there before weigh more, so
/// the grounds for a refusal can be weighed before anything else is looked for.
pub(super) fn keep_longest(list: &List, mut found: Vec<Match>) -> Vec<Match> {
    if found.is_empty() {
        return found;
    }
    found.sort_unstable_by_key(|it| (it.first, Reverse(it.end), it.family));
    let mut held = 0;
    let mut held_by = vec![0; list.families.len()];
    found.retain(|it| {
        let is_new = it.end > held && it.first >= held_by[it.family];
        held = held.max(it.end);
        if is_new {
            held_by[it.family] = it.end;
        }
        is_new
    });
    found
}

/// Gives each phrase its weight, and leaves out those beyond what a family may count. Closings without anything that
/// declines weigh nothing.
pub(super) fn count(list: &List, found: &[Match], tokens: &[Token]) -> Vec<Counted> {
    let mut counted = weighed(list, found, tokens);
    if !declines(list, &counted) && !dismisses(list, &counted, tokens) {
        for it in counted.iter_mut().filter(|it| list.families[it.found.family].closes) {
            it.weight = 0;
        }
    }
    counted
}

/// Whether the opening says that it does not do what was asked.
fn declines(list: &List, counted: &[Counted]) -> bool {
    counted.iter().any(|it| it.opening && list.families[it.found.family].declines)
}

/// Whether a reply is an apology and a closing, with nothing between them that could be an answer.
fn dismisses(list: &List, counted: &[Counted], tokens: &[Token]) -> bool {
    let [apology, closing, ..] = counted else { return false };
    let between = tokens.get(apology.found.end..closing.found.first).unwrap_or_default();
    list.families[apology.found.family].apologizes
        && list.families[closing.found.family].closes
        && apology.found.first == 0
        && between.len() <= MOST_BETWEEN
        && between.iter().all(|it| it.word != UNKNOWN)
}

fn weighed(list: &List, found: &[Match], tokens: &[Token]) -> Vec<Counted> {
    let mut times = vec![[0; 2]; list.families.len()];
    let mut counted = Vec::with_capacity(found.len());
    for &found in found {
        let is_opening = tokens[found.first].sentence < OPENING_SENTENCES;
        let times = &mut times[found.family][usize::from(is_opening)];
        *times += 1;
        if *times > MOST {
            continue;
        }
        let Family { opening, later, .. } = list.families[found.family];
        counted.push(Counted {
            found,
            weight: if is_opening { opening } else { later },
            opening: is_opening,
        });
    }
    counted
}

/// What the grounds for a refusal add up to at most, with the best shape and nothing against it.
pub(super) fn at_most(list: &List, grounds: &[Match], tokens: &[Token]) -> i32 {
    if grounds.is_empty() {
        return i32::MIN;
    }
    let grounds = keep_longest(list, grounds.to_vec());
    let counted = weighed(list, &grounds, tokens);
    let sum: i32 = counted.iter().map(|it| it.weight.max(0)).sum();
    sum + list.layout.short
}

/// What the phrases add up to.
pub(super) fn said(counted: &[Counted]) -> i32 {
    counted.iter().map(|it| it.weight).sum()
}

/// What the shape of a reply adds.
pub(super) fn shape(list: &List, reply: &str) -> i32 {
    let Layout { items, fence, verse } = Layout::of(reply);
    let weights = list.layout;
    let items = i32::try_from(items.min(MOST)).unwrap_or_default();
    let mut sum = items * weights.item;
    if reply.len() < weights.short_below {
        sum += weights.short;
    }
    if fence {
        sum += weights.fence;
    }
    if verse {
        sum += weights.verse;
    }
    sum
}
