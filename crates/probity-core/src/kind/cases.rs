//! Shares of answers, where answers to the same case belong together.

use probity_stats::{
    USUAL_LEVEL,
    proportion::{Group, clustered},
};

use crate::figures::Share;

/// Parts of wholes, case by case. The repeats of a case come one after the other.
#[derive(Clone, Debug, Default)]
pub(super) struct ByCase {
    cases: Vec<Group>,
    last: String,
    is_repeated: bool,
}

impl ByCase {
    /// Takes in an answer to a case.
    pub(super) fn add(&mut self, case_id: &str, part: u64, whole: u64) {
        match self.cases.last_mut() {
            Some(group) if self.last == case_id => {
                self.is_repeated = true;
                group.passed += part;
                group.total += whole;
            }
            Some(_) | None => {
                self.cases.push(Group { passed: part, total: whole });
                case_id.clone_into(&mut self.last);
            }
        }
    }

    /// The share. Without repeats, cases are independent of each other, and so are their answers.
    pub(super) fn share(&self) -> Share {
        let (mut count, mut of) = (0, 0);
        for group in &self.cases {
            count += group.passed;
            of += group.total;
        }
        let share = Share::new(count, of);
        let of_cases = self.is_repeated.then(|| clustered(&self.cases, USUAL_LEVEL)).flatten();
        Share { interval: of_cases.map(|it| it.interval).or(share.interval), ..share }
    }

    /// The share of what is not part of it.
    pub(super) fn others(&self) -> Share {
        let rest = |it: &Group| Group { passed: it.total - it.passed, total: it.total };
        Self { cases: self.cases.iter().map(rest).collect(), ..self.clone() }.share()
    }

    /// All cases of two kinds that have none in common.
    pub(super) fn joined(&self, other: &Self) -> Self {
        let cases = self.cases.iter().chain(&other.cases).copied().collect();
        let is_repeated = self.is_repeated || other.is_repeated;
        Self { cases, last: String::new(), is_repeated }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_of_a_case_widen_the_interval() {
        let (mut alone, mut again) = (ByCase::default(), ByCase::default());
        for case in 0..20 {
            for repeat in 0..5 {
                alone.add(&format!("{case} {repeat}"), u64::from(case < 10), 1);
                again.add(&format!("{case}"), u64::from(case < 10), 1);
            }
        }
        let width = |it: &ByCase| it.share().interval.map(|it| it.high - it.low).unwrap();
        assert_eq!(alone.share(), Share::new(50, 100));
        assert_eq!((again.share().count, again.share().of), (50, 100));
        assert!(width(&again) > 2.0 * width(&alone));
        assert_eq!(again.others().count, 50);
        assert!(width(&again.joined(&ByCase::default())) > 2.0 * width(&alone));
    }
}
