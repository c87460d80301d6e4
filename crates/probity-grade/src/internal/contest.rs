//! Answers of several lanes to one case, compared with each other.

use std::{collections::BTreeMap, fmt::Write as _};

use probity_core::{
    criteria::AssertionKind,
    record::InputDigest,
    score::Score,
    selection::{Candidate, Selection},
};

use crate::internal::judge::{Answered, Choice, Choosing, Look};

/// One comparison that a case asks for.
#[derive(Clone, Debug)]
pub struct Contest {
    pub(crate) look: Look,
    pub(crate) by: By,
}

/// What answers are compared by.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum By {
    /// A judge, by these criteria.
    Judge(String),
    /// What their other checks come to.
    Scores(Totals),
}

/// How the scores of an answer make one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Totals {
    /// Whether they are added up, and not averaged.
    pub(crate) is_sum: bool,
    /// What scores count, by their kind, where that is not their own weight.
    pub(crate) weights: BTreeMap<String, f64>,
    /// What the highest has to reach.
    pub(crate) threshold: Option<f64>,
}

/// The part of one lane in a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The lane, as `BACKEND` or `VARIANT@BACKEND`.
    pub lane: String,
    /// What was asked.
    pub question: String,
    /// The answer.
    pub answer: String,
    /// What its other checks come to.
    pub score: f64,
}

/// What decides about the order in which answers are shown.
#[derive(Clone, Copy, Debug)]
pub struct Draw<'a> {
    /// The seed of the run.
    pub seed: u64,
    /// The case.
    pub case_id: &'a str,
    /// Which of its repeats.
    pub repeat: u32,
}

/// In which order a judge is shown the answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As chance draws it.
    Drawn,
    /// The other way round.
    Reversed,
}

/// Answers that are compared, as they are shown.
#[derive(Clone, Debug)]
pub struct Lineup<'a> {
    contest: &'a Contest,
    answers: Vec<Seat<'a>>,
    seed: u64,
}

#[derive(Clone, Debug)]
struct Seat<'a> {
    entry: &'a Entry,
    lanes: Vec<String>,
}

impl Contest {
    /// Whether a judge compares the answers.
    pub fn asks_judge(&self) -> bool {
        matches!(self.by, By::Judge(_))
    }

    /// What the answers are compared by.
    pub(crate) fn described(&self) -> String {
        match &self.by {
            By::Judge(criteria) => criteria.clone(),
            By::Scores(Totals { is_sum, weights, threshold }) => {
                let mut text = if *is_sum { "sum of scores" } else { "mean score" }.to_owned();
                for (kind, weight) in weights {
                    let _ = write!(text, ", {kind} counts {weight}");
                }
                if let Some(threshold) = threshold {
                    let _ = write!(text, ", at least {threshold}");
                }
                text
            }
        }
    }

    /// What the scores of an answer come to, those of comparisons and those that scorers named aside.
    pub fn total(&self, scores: &[Score]) -> f64 {
        let By::Scores(Totals { is_sum, weights, .. }) = &self.by else { return 0.0 };
        let (mut sum, mut whole) = (0.0, 0.0);
        for score in scores.iter().filter(|it| !it.named && !is_of_contest(it)) {
            let weight = weights.get(&*score.kind).copied().unwrap_or(score.weight);
            sum += weight * score.value.unwrap_or(0.0);
            whole += weight;
        }
        match *is_sum || whole <= 0.0 {
            true => sum,
            false => sum / whole,
        }
    }

    /// Puts answers side by side: for a judge, equal ones once and in an order that chance draws.
    pub fn line_up<'a>(&'a self, entries: &'a [Entry], draw: Draw<'_>) -> Lineup<'a> {
        let mut answers: Vec<Seat<'a>> = Vec::with_capacity(entries.len());
        for entry in entries {
            let known = answers.iter_mut().find(|it| it.entry.answer == entry.answer);
            match known.filter(|_| self.asks_judge()) {
                Some(known) => known.lanes.push(entry.lane.clone()),
                None => answers.push(Seat { entry, lanes: vec![entry.lane.clone()] }),
            }
        }
        let Draw { seed, case_id, repeat } = draw;
        if self.asks_judge() {
            answers.sort_by_cached_key(|it| {
                InputDigest::of([
                    b"select-best",
                    &seed.to_le_bytes()[..],
                    case_id.as_bytes(),
                    &repeat.to_le_bytes(),
                    it.entry.answer.as_bytes(),
                ])
            });
        }
        Lineup { contest: self, answers, seed }
    }
}

impl<'a> Lineup<'a> {
    /// What a judge is asked; none if there is nothing to choose from, or no judge decides.
    pub fn question(&self, order: Order) -> Option<Choosing<'a>> {
        let By::Judge(criteria) = &self.contest.by else { return None };
        if self.answers.len() < 2 {
            return None;
        }
        let answered =
            |it: &Seat<'a>| Answered { task: &it.entry.question, answer: &it.entry.answer };
        let mut answers: Vec<Answered<'a>> = self.answers.iter().map(answered).collect();
        if order == Order::Reversed {
            answers.reverse();
        }
        Some(Choosing::new(criteria, answers, self.seed))
    }

    /// What the comparison comes to. `chosen` is what a judge said in each order in which it was
    /// asked.
    pub fn decide(&self, judge: Option<&str>, chosen: &[(Order, Choice)]) -> Selection {
        let place = |(order, choice): &(Order, Choice)| match order {
            Order::Drawn => choice.place,
            Order::Reversed => self.answers.len() - 1 - choice.place,
        };
        let mut best: Vec<usize> = chosen.iter().map(place).collect();
        best.dedup();
        let mut reasons: Vec<&str> = chosen.iter().map(|it| it.1.reason.as_str()).collect();
        reasons.truncate(best.len());
        let best = match &self.contest.by {
            By::Judge(_) if chosen.is_empty() => vec![0],
            By::Judge(_) => best,
            By::Scores(totals) => self.highest(totals),
        };
        let is_scored = !self.contest.asks_judge();
        let candidate = |it: &Seat<'_>| Candidate {
            lanes: it.lanes.clone(),
            score: is_scored.then_some(it.entry.score),
        };
        Selection {
            check: "".into(),
            by: self.contest.described(),
            answers: self.answers.iter().map(candidate).collect(),
            own: 0,
            best,
            judge: judge.filter(|_| !chosen.is_empty()).map(ToOwned::to_owned),
            reason: (!reasons.is_empty()).then(|| reasons.join("; ")),
        }
    }

    /// The first of those with the highest score, if that is enough.
    fn highest(&self, totals: &Totals) -> Vec<usize> {
        let score = |at: &usize| self.answers[*at].entry.score;
        let first = (0..self.answers.len()).reduce(|best, next| {
            // Sums are off in their last digits, which nobody meant.
            if score(&next) > score(&best) + 1e-9 { next } else { best }
        });
        let is_enough = |at: &usize| totals.threshold.is_none_or(|it| score(at) + 1e-9 >= it);
        first.filter(is_enough).into_iter().collect()
    }
}

/// Whether a score is that of a comparison.
fn is_of_contest(score: &Score) -> bool {
    AssertionKind::named(&score.kind).is_some_and(|it| it.test.compares_lanes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(lane: &str, answer: &str, score: f64) -> Entry {
        let question = "q".to_owned();
        Entry { lane: lane.to_owned(), question, answer: answer.to_owned(), score }
    }

    fn contest(by: By) -> Contest {
        Contest { look: Look::default(), by }
    }

    const DRAW: Draw<'static> = Draw { seed: 3, case_id: "c", repeat: 0 };

    fn chosen(order: Order, place: usize) -> (Order, Choice) {
        (order, Choice { place, reason: "r".to_owned() })
    }

    #[test]
    fn equal_answers_are_shown_once_and_share_their_lot() {
        let contest = contest(By::Judge("short".to_owned()));
        let entries = [entry("a", "same", 0.0), entry("b", "other", 0.0), entry("c", "same", 0.0)];
        let lineup = contest.line_up(&entries, DRAW);
        assert_eq!(lineup.answers.len(), 2);
        let place = lineup.answers.iter().position(|it| it.lanes.len() == 2).unwrap();
        let found = lineup.decide(Some("j"), &[chosen(Order::Drawn, place)]);
        let own = |lane: &str| found.seen_by(lane).unwrap();
        assert_eq!(["a", "b", "c"].map(|it| own(it).is_best()), [true, false, true]);
        assert!(found.seen_by("d").is_none());
        let all_same = contest.line_up(&entries[..1], DRAW);
        assert!(all_same.question(Order::Drawn).is_none());
        assert!(all_same.decide(Some("j"), &[]).seen_by("a").unwrap().is_best());
    }

    #[test]
    fn the_order_depends_on_the_case_and_not_on_who_came_first() {
        let contest = contest(By::Judge("short".to_owned()));
        let entries = ["x", "y", "z", "u"].map(|it| entry(it, it, 0.0));
        let mut turned = entries.clone();
        turned.reverse();
        let order = |entries: &[Entry], case_id| {
            let lineup = contest.line_up(entries, Draw { case_id, ..DRAW });
            lineup.answers.iter().map(|it| it.entry.answer.clone()).collect::<Vec<_>>()
        };
        assert_eq!(order(&entries, "c"), order(&turned, "c"));
        assert!(["d", "e", "f"].iter().any(|it| order(&entries, it) != order(&entries, "c")));
    }

    #[test]
    fn orders_that_disagree_have_two_best_answers() {
        let contest = contest(By::Judge("short".to_owned()));
        let entries = ["x", "y"].map(|it| entry(it, it, 0.0));
        let lineup = contest.line_up(&entries, DRAW);
        let biased = [chosen(Order::Drawn, 0), chosen(Order::Reversed, 0)];
        assert_eq!(lineup.decide(None, &biased).best, [0, 1]);
        let steady = [chosen(Order::Drawn, 0), chosen(Order::Reversed, 1)];
        let found = lineup.decide(None, &steady);
        assert_eq!((found.best.as_slice(), found.reason.as_deref()), (&[0][..], Some("r")));
    }

    #[test]
    fn the_first_of_the_highest_scores_wins_if_it_is_enough() {
        let totals = Totals { is_sum: false, weights: BTreeMap::new(), threshold: None };
        let entries = [entry("a", "x", 0.5), entry("b", "x", 0.9), entry("c", "y", 0.9)];
        let best = |threshold| {
            let contest = contest(By::Scores(Totals { threshold, ..totals.clone() }));
            contest.line_up(&entries, DRAW).decide(None, &[]).best
        };
        assert_eq!((best(None), best(Some(0.9)), best(Some(0.95))), (vec![1], vec![1], vec![]));
    }

    #[test]
    fn totals_leave_comparisons_out() {
        let score = |kind: &'static str, value| Score { value, ..Score::new(kind, None) };
        let scores = [
            score("contains", Some(1.0)),
            score("regex", Some(0.0)),
            score("select-best", Some(0.0)),
        ];
        let total = |is_sum, weights| {
            contest(By::Scores(Totals { is_sum, weights, threshold: None })).total(&scores)
        };
        let heavy = BTreeMap::from([("contains".to_owned(), 3.0)]);
        let means = (total(false, BTreeMap::new()), total(false, heavy.clone()));
        assert_eq!((means, total(true, heavy)), ((0.5, 0.75), 3.0));
    }
}
