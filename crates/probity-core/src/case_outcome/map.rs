//! How cases came out, by id: a million of them in some twenty megabytes.
//!
//! The ids stand one after the other in one text, in order, and what most cases came to, one verdict, is a number.

use std::collections::BTreeMap;

use super::CaseOutcome;
use crate::{case::Category, classification::Verdict, metrics::Verdicts};

/// Outcomes by id, in the order of the ids.
#[derive(Clone, Debug, Default)]
pub struct Outcomes {
    ids: String,
    slots: Vec<Slot>,
    /// Of cases with several repeats.
    several: Vec<Verdicts>,
    categories: Vec<Category>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Where its id ends; it begins where the one before ends.
    end: usize,
    verdicts: Tallied,
    /// Its place in `categories`, from 1; 0 for none.
    category: u32,
}

/// One verdict, or from [`ONCE`] on a place in `several`: a number, so that it does not widen a slot.
#[derive(Clone, Copy, Debug)]
struct Tallied(u32);

/// What a case that was asked once can come to, by number.
const ONCE: [Verdict; 4] = [Verdict::Pass, Verdict::Fail, Verdict::Error, Verdict::Undecided];

impl Tallied {
    fn place(self) -> Option<usize> {
        (self.0 as usize).checked_sub(ONCE.len())
    }
}

impl Outcomes {
    /// How many cases there are.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Whether a case was asked more than once.
    pub fn has_repeats(&self) -> bool {
        !self.several.is_empty()
    }

    /// The cases in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, CaseOutcome)> {
        (0..self.slots.len()).map(|at| (self.id(at), self.outcome(at)))
    }

    /// The ids in order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        (0..self.slots.len()).map(|at| self.id(at))
    }

    /// What a case came to.
    pub fn get(&self, id: &str) -> Option<CaseOutcome> {
        self.find(id).map(|at| self.outcome(at))
    }

    /// Counts one more repeat of a case. Cases are expected in order; any other order takes longer.
    pub fn add(&mut self, id: &str, verdict: Verdict, category: Option<Category>) {
        let at = match self.keys_end() {
            Some(last) if last == id => Some(self.slots.len() - 1),
            Some(last) if last > id => self.find(id),
            Some(_) | None => None,
        };
        let mut outcome = at.map_or_else(CaseOutcome::default, |at| self.outcome(at));
        outcome.verdicts.add(verdict);
        outcome.category = category;
        match at {
            Some(at) => self.set(at, outcome),
            None => self.insert(id, outcome),
        }
    }

    /// Puts in a case that is not there.
    fn insert(&mut self, id: &str, outcome: CaseOutcome) {
        if self.keys_end().is_none_or(|last| last < id) {
            self.ids.push_str(id);
            let end = self.ids.len();
            self.slots.push(Slot { end, verdicts: Tallied(0), category: 0 });
            return self.set(self.slots.len() - 1, outcome);
        }
        let mut all: BTreeMap<String, CaseOutcome> =
            self.iter().map(|(id, outcome)| (id.to_owned(), outcome)).collect();
        all.insert(id.to_owned(), outcome);
        *self = all.into_iter().collect();
    }

    fn set(&mut self, at: usize, CaseOutcome { verdicts, category }: CaseOutcome) {
        let before = self.slots[at].verdicts.place();
        let number = match (ONCE.iter().position(|it| once(*it) == verdicts), before) {
            (Some(verdict), _) => verdict,
            (None, Some(place)) => {
                self.several[place] = verdicts;
                ONCE.len() + place
            }
            (None, None) => {
                self.several.push(verdicts);
                ONCE.len() + self.several.len() - 1
            }
        };
        let number = u32::try_from(number).expect("a lane has fewer than 2^32 cases");
        let category = category.map_or(0, |it| self.category(it));
        let slot = &mut self.slots[at];
        (slot.verdicts, slot.category) = (Tallied(number), category);
    }

    /// The place of a category, from 1. There are few, and cases beside each other are often alike.
    fn category(&mut self, category: Category) -> u32 {
        let at = self.categories.iter().position(|it| *it == category).unwrap_or_else(|| {
            self.categories.push(category);
            self.categories.len() - 1
        });
        u32::try_from(at + 1).expect("fewer than 2^32 categories")
    }

    fn id(&self, at: usize) -> &str {
        let start = at.checked_sub(1).map_or(0, |before| self.slots[before].end);
        &self.ids[start..self.slots[at].end]
    }

    fn outcome(&self, at: usize) -> CaseOutcome {
        let Slot { verdicts, category, .. } = self.slots[at];
        let verdicts = match verdicts.place() {
            Some(place) => self.several[place],
            None => once(ONCE[verdicts.0 as usize]),
        };
        let category = (category as usize).checked_sub(1).map(|at| self.categories[at].clone());
        CaseOutcome { verdicts, category }
    }

    fn find(&self, id: &str) -> Option<usize> {
        let (mut low, mut high) = (0, self.slots.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            match self.id(middle).cmp(id) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }
}

fn once(verdict: Verdict) -> Verdicts {
    let mut once = Verdicts::default();
    once.add(verdict);
    once
}

/// Of two of the same id, the later one counts.
impl FromIterator<(String, CaseOutcome)> for Outcomes {
    fn from_iter<I: IntoIterator<Item = (String, CaseOutcome)>>(cases: I) -> Self {
        let mut outcomes = Self::default();
        let mut late: BTreeMap<String, CaseOutcome> = BTreeMap::new();
        for (id, outcome) in cases {
            match outcomes.keys_end() {
                Some(last) if last >= id.as_str() => {
                    late.insert(id, outcome);
                }
                Some(_) | None => outcomes.insert(&id, outcome),
            }
        }
        if late.is_empty() {
            return outcomes;
        }
        let mut all: BTreeMap<String, CaseOutcome> =
            outcomes.iter().map(|(id, outcome)| (id.to_owned(), outcome)).collect();
        all.extend(late);
        let mut outcomes = Self::default();
        all.into_iter().for_each(|(id, outcome)| outcomes.insert(&id, outcome));
        outcomes
    }
}

impl Outcomes {
    fn keys_end(&self) -> Option<&str> {
        self.slots.len().checked_sub(1).map(|at| self.id(at))
    }
}

/// By what they hold, however it is laid out.
impl PartialEq for Outcomes {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Eq for Outcomes {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_order_comes_to_the_same() {
        let cases = [("b", "pass"), ("a", "2/3"), ("d", "error"), ("c", "fail"), ("a", "1/2")];
        let pairs = || cases.iter().map(|(id, text)| ((*id).to_owned(), text.parse().unwrap()));
        let plain: BTreeMap<String, CaseOutcome> = pairs().collect();
        let outcomes: Outcomes = pairs().collect();
        assert!(outcomes.iter().eq(plain.iter().map(|(id, it)| (id.as_str(), it.clone()))));
        assert_eq!(outcomes.get("a").unwrap().to_string(), "1/2");
        assert_eq!((outcomes.len(), outcomes.get("e")), (4, None));
    }

    #[test]
    fn repeats_are_counted_wherever_they_come() {
        let mut outcomes = Outcomes::default();
        let category = Some(Category::SAFETY);
        for (id, verdict) in [
            ("a", Verdict::Pass),
            ("a", Verdict::Fail),
            ("c", Verdict::Pass),
            ("b", Verdict::Error),
            ("a", Verdict::Pass),
        ] {
            outcomes.add(id, verdict, category.clone());
        }
        let told: Vec<String> = outcomes.iter().map(|(id, it)| format!("{id} {it}")).collect();
        assert_eq!(told, ["a 2/3", "b error", "c pass"]);
        assert!(outcomes.iter().all(|(_, it)| it.category == category));
    }

    #[test]
    fn a_slot_is_small() {
        assert_eq!(size_of::<Slot>(), 16);
    }
}
