//! How cases came out, in the order of their ids: a million of them in a few megabytes.
//!
//! Ids that follow each other mostly begin alike, so of each only the rest is kept. What a case came to is one byte, mostly.

use std::collections::BTreeMap;

use super::CaseOutcome;
use crate::{classification::Verdict, metrics::Verdicts};

/// Outcomes in the order of their ids. Categories are not kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcomes {
    /// What ids have more than they share with the one before, one after the other.
    rests: String,
    /// Of each case how many bytes it shares, how many the rest has, and what it came to.
    numbers: Vec<u8>,
    /// The last id.
    last: String,
    len: usize,
}

/// What a case that was asked once can come to, by number. Another number says that counts follow.
const ONCE: [Verdict; 4] = [Verdict::Pass, Verdict::Fail, Verdict::Error, Verdict::Undecided];

impl Outcomes {
    /// How many cases there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The cases in order.
    pub fn iter(&self) -> impl Iterator<Item = (String, CaseOutcome)> {
        let Self { rests, numbers, .. } = self;
        let (mut rests, mut numbers) = (rests.as_str(), numbers.as_slice());
        let mut id = String::new();
        (0..self.len).map(move |_| {
            id.truncate(length(&mut numbers));
            let (rest, others) = rests.split_at(length(&mut numbers));
            id.push_str(rest);
            rests = others;
            (id.clone(), CaseOutcome { verdicts: verdicts(&mut numbers), category: None })
        })
    }

    /// Puts a case behind the others.
    fn push(&mut self, id: &str, outcome: &CaseOutcome) {
        let shared = shared(&self.last, id);
        let rest = &id[shared..];
        put(&mut self.numbers, shared as u64);
        put(&mut self.numbers, rest.len() as u64);
        let counts = outcome.verdicts;
        match ONCE.iter().position(|it| once(*it) == counts) {
            Some(number) => put(&mut self.numbers, number as u64),
            None => {
                let Verdicts { pass, fail, error, undecided } = counts;
                let all = [ONCE.len() as u64, pass, fail, error, undecided];
                all.into_iter().for_each(|it| put(&mut self.numbers, it));
            }
        }
        self.rests.push_str(rest);
        self.last.truncate(shared);
        self.last.push_str(rest);
        self.len += 1;
    }
}

/// Of two of the same id, the later one counts. Cases are expected in order; any other order takes more memory meanwhile.
impl FromIterator<(String, CaseOutcome)> for Outcomes {
    fn from_iter<I: IntoIterator<Item = (String, CaseOutcome)>>(cases: I) -> Self {
        let mut outcomes = Self::default();
        let mut late: BTreeMap<String, CaseOutcome> = BTreeMap::new();
        for (id, outcome) in cases {
            match outcomes.is_empty() || outcomes.last < id {
                true => outcomes.push(&id, &outcome),
                false => {
                    late.insert(id, outcome);
                }
            }
        }
        if late.is_empty() {
            return outcomes;
        }
        let mut all: BTreeMap<String, CaseOutcome> = outcomes.iter().collect();
        all.extend(late);
        let mut outcomes = Self::default();
        all.iter().for_each(|(id, outcome)| outcomes.push(id, outcome));
        outcomes
    }
}

/// How many bytes two ids begin alike with, in whole characters.
fn shared(before: &str, id: &str) -> usize {
    let alike = before.bytes().zip(id.bytes()).take_while(|(one, other)| one == other).count();
    id.floor_char_boundary(alike)
}

/// Writes a number in as few bytes as it needs, seven bits in each.
fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
}

/// Reads what [`put`] wrote.
fn take(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..).step_by(7) {
        let Some((byte, rest)) = bytes.split_first() else { break };
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    number
}

fn length(numbers: &mut &[u8]) -> usize {
    usize::try_from(take(numbers)).expect("it was the length of a text")
}

fn verdicts(numbers: &mut &[u8]) -> Verdicts {
    match usize::try_from(take(numbers)).ok().and_then(|it| ONCE.get(it)) {
        Some(verdict) => once(*verdict),
        None => {
            let [pass, fail, error, undecided] = std::array::from_fn(|_| take(numbers));
            Verdicts { pass, fail, error, undecided }
        }
    }
}

fn once(verdict: Verdict) -> Verdicts {
    let mut once = Verdicts::default();
    once.add(verdict);
    once
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_order_comes_to_the_same(
            cases in prop::collection::vec(("[aé€x]{0,5}", prop_oneof![
                Just("pass".to_owned()), Just("undecided".to_owned()),
                "[0-9]{1,4}/99999", Just(format!("{0}/{0} and {0} errors", u64::MAX)),
            ]), 0..60),
        ) {
            let read = |(id, text): &(String, String)| Some((id.clone(), text.parse().ok()?));
            let plain: BTreeMap<String, CaseOutcome> = cases.iter().filter_map(read).collect();
            let outcomes: Outcomes = cases.iter().filter_map(read).collect();
            prop_assert_eq!(outcomes.len(), plain.len());
            prop_assert!(outcomes.iter().eq(plain.clone()));
            // However they came, they are the same.
            prop_assert_eq!(outcomes, plain.into_iter().collect());
        }
    }

    #[test]
    fn a_million_cases_would_take_a_few_megabytes() {
        let case = |at: u32| (format!("case-{at:06}"), "pass".parse().unwrap());
        let outcomes: Outcomes = (0..10_000).map(case).collect();
        assert!(outcomes.rests.len() + outcomes.numbers.len() < 10_000 * 5);
    }
}
