//! Which of two lanes gives the better answers, as a judge finds case by case.

use std::collections::BTreeMap;

use probity_stats::{
    USUAL_LEVEL,
    paired::{Pairs, mcnemar_exact, tango},
};

use crate::{case_outcome::Difference, evidence::Win};

/// Differences of points that nobody meant: sums are off in their last digits.
const ROUNDING: f64 = 1e-9;

/// Points of two answers, from 1 to 5.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Points {
    /// Of the first lane.
    pub first: f64,
    /// Of the second.
    pub second: f64,
}

impl Points {
    /// How the second one does.
    pub fn result(self) -> Win {
        match self.second - self.first {
            more if more > ROUNDING => Win::Win,
            less if less < -ROUNDING => Win::Loss,
            _ => Win::Tie,
        }
    }
}

/// What a judge said of two answers.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgedPair {
    /// In each order in which it was asked. Equal answers need no judge.
    pub orders: Vec<Points>,
    /// Why, in its words.
    pub reason: String,
}

/// What a case came to.
#[derive(Clone, Debug, PartialEq)]
pub struct PreferredCase {
    /// How the second lane does.
    pub result: Win,
    /// The means over all orders and repeats.
    pub points: Points,
    /// Why, in the judge's words.
    pub reason: String,
}

/// Which of two lanes a judge prefers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Preference {
    /// The backend that judged.
    pub judge: String,
    /// What it looked at.
    pub criteria: String,
    /// Cases where the second lane is better.
    pub wins: u64,
    /// Cases where neither is.
    pub ties: u64,
    /// Cases where the first is.
    pub losses: u64,
    /// Cases that have two answers and could not be judged.
    pub unjudged: u64,
    /// Pairs of answers that were judged in both orders.
    pub both_orders: u64,
    /// Those of them with the same winner in both.
    pub consistent: u64,
    /// By case.
    pub cases: BTreeMap<String, PreferredCase>,
}

impl Preference {
    /// Takes in a case: what was said of each of its repeats.
    pub fn add(&mut self, case_id: &str, repeats: &[JudgedPair]) {
        let orders = || repeats.iter().flat_map(|it| &it.orders);
        for orders in repeats.iter().map(|it| it.orders.as_slice()) {
            if let [one, other] = orders {
                self.both_orders += 1;
                self.consistent += u64::from(one.result() == other.result());
            }
        }
        let count = orders().count();
        #[expect(clippy::cast_precision_loss, reason = "a handful")]
        let mean = |of: fn(&Points) -> f64| orders().map(of).sum::<f64>() / count.max(1) as f64;
        let points = Points { first: mean(|it| it.first), second: mean(|it| it.second) };
        let result = points.result();
        match result {
            Win::Win => self.wins += 1,
            Win::Tie => self.ties += 1,
            Win::Loss => self.losses += 1,
        }
        let reason = repeats.first().map(|it| it.reason.clone()).unwrap_or_default();
        self.cases.insert(case_id.to_owned(), PreferredCase { result, points, reason });
    }

    /// Cases that were judged.
    pub fn judged(&self) -> u64 {
        self.wins + self.ties + self.losses
    }

    /// The share of wins less that of losses, with Tango's interval and the sign test.
    pub fn difference(&self) -> Option<Difference> {
        let Self { wins, ties, losses, .. } = *self;
        // The difference is that of the second, so the second stands first.
        let pairs = Pairs { both: ties, only_first: wins, only_second: losses, neither: 0 };
        let interval = tango(pairs, USUAL_LEVEL)?;
        #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
        let value = (wins as f64 - losses as f64) / self.judged() as f64;
        Some(Difference { value, interval, p_value: mcnemar_exact(losses, wins) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(orders: &[(f64, f64)]) -> JudgedPair {
        let points = |it: &(f64, f64)| Points { first: it.0, second: it.1 };
        JudgedPair { orders: orders.iter().map(points).collect(), reason: "r".to_owned() }
    }

    #[test]
    fn both_orders_and_all_repeats_make_one_case() {
        let mut found = Preference::default();
        found.add("win", &[pair(&[(2.0, 4.0), (2.0, 4.0)])]);
        found.add("biased", &[pair(&[(2.0, 4.0), (4.0, 2.0)])]);
        found.add("repeats", &[pair(&[(4.0, 2.0), (4.0, 2.0)]), pair(&[(3.0, 4.0), (3.0, 4.0)])]);
        found.add("same", &[pair(&[])]);
        assert_eq!((found.wins, found.ties, found.losses), (1, 2, 1));
        assert_eq!((found.both_orders, found.consistent), (4, 3));
        assert_eq!(found.cases["repeats"].result, Win::Loss);
    }

    #[test]
    fn the_difference_has_an_interval_and_a_sign_test() {
        let found = Preference { wins: 5, losses: 1, ties: 4, ..Preference::default() };
        let Difference { value, interval, p_value } = found.difference().unwrap();
        assert!((value - 0.4).abs() < 1e-12 && (p_value - 0.21875).abs() < 1e-12);
        assert!(interval.low < 0.0 && interval.high > 0.4, "{interval:?}");
        assert_eq!(Preference::default().difference(), None);
    }
}
