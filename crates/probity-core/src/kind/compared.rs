//! Are answers better with a skill, or with more of it? What both kinds that ask this share.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Judged, KindEvidence, Seen, cases::ByCase};
use crate::{
    classification::{Classification, Rule, Verdict},
    details::{Criterion, Details, Trouble},
    difference::{Difference, DuelDifference},
    evidence::{Compared, Duel, NOT_JUDGED, Pair, Scores, Size, Tier, Win},
    figures::{Notice, Share, Sheet},
    gate::percent,
    score::{JUDGE, Score},
};
use probity_stats::{Interval, USUAL_LEVEL, paired::mean_difference_clustered, spread::Moments};

/// Fewer results than this say nothing about a skill that never wins, or always does.
pub(super) const ENOUGH: u64 = 3;

impl KindEvidence for Compared {
    fn judged(&self) -> Judged {
        Judged::ByEvidence(Box::new(self.classify()))
    }

    fn duels(&self) -> &[Duel] {
        &self.duels
    }
}

impl Compared {
    /// What comparing answers came to: the case passes if its first comparison is won.
    pub fn classify(&self) -> Classification {
        let first = self.duels.first();
        match first.and_then(|duel| duel.scores) {
            Some(scores) => decided(scores),
            None => {
                let why = first.and_then(|duel| duel.error.clone());
                let why = why.unwrap_or_else(|| "nothing was compared".to_owned());
                let score = Score { value: None, ..Score::new(JUDGE, Some(why.clone())) };
                let details = Details {
                    reason: Some(Trouble::Unjudged),
                    error_details: Some(why),
                    ..Details::default()
                };
                Classification { rule: Rule::Error, scores: vec![score], details }
            }
        }
    }
}

fn decided(scores: Scores) -> Classification {
    let Scores { more, less } = scores;
    let result = scores.result();
    let (rule, value) = match result {
        Win::Win => (Rule::Pass, 1.0),
        Win::Tie => (Rule::Mismatch, 0.5),
        Win::Loss => (Rule::Mismatch, 0.0),
    };
    let difference = Difference::Duel(DuelDifference { result, more, less });
    let diff = (rule != Rule::Pass).then_some(difference);
    let criteria = (rule == Rule::Pass).then_some(Criterion::Judge);
    let score = Score::new(JUDGE, diff.as_ref().map(ToString::to_string));
    let score = Score { value: Some(value), ..score };
    let details = Details { diff, criteria, ..Details::default() };
    Classification { rule, scores: vec![score], details }
}

/// What comparisons of one kind came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CompareStats {
    /// Comparisons that were won, of those with a result; ties count against.
    pub wins: Share,
    /// Neither was better.
    pub ties: u64,
    /// The answer with less of the skill was better.
    pub losses: u64,
    /// Comparisons without a result.
    pub errors: u64,
    /// By how many points the answer was better, on the mean.
    pub improvement: Option<f64>,
    /// The sample deviation of that.
    pub deviation: Option<f64>,
    /// Student's interval of the mean at 95 %.
    pub interval: Option<Interval>,
}

impl CompareStats {
    /// A row of a table with this head.
    pub(super) const fn head(first: &str) -> [&str; 7] {
        [first, "won", "w/t/l", "errors", "points", "sd", "95 %"]
    }

    pub(super) fn row(&self, name: &str) -> Vec<String> {
        let Share { count, of, .. } = self.wins;
        let spread = self.interval.map(|it| format!("{:+.2} to {:+.2}", it.low, it.high));
        vec![
            name.to_owned(),
            percent(count, of),
            format!("{count}/{}/{}", self.ties, self.losses),
            self.errors.to_string(),
            points(self.improvement),
            self.deviation.map_or_else(String::new, |it| format!("{it:.2}")),
            spread.unwrap_or_default(),
        ]
    }
}

pub(super) fn points(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| format!("{value:+.2}"))
}

/// How the judge did.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct JudgeStats {
    /// Who judged.
    pub judges: Vec<String>,
    /// Whether any answers were judged by the model that gave them.
    pub own_answers: bool,
    /// Answers of the judge that could be read.
    pub rounds: u64,
    /// Those that took more than one try.
    pub retried: u64,
    /// Comparisons that the judge gave no readable answer to.
    pub unreadable: u64,
    /// Rounds that the answer shown first won, of those with a winner.
    pub first_wins: Share,
    /// Rounds in which the judge named another winner than its scores do.
    pub contradicts_itself: u64,
    /// Comparisons with the same result in both orders, of those that were tried in both.
    pub orders_agree: Share,
}

impl JudgeStats {
    pub(super) fn notices(&self) -> Vec<Notice> {
        let mut notices = Vec::new();
        let name = self.judges.join(", ");
        if self.own_answers {
            let message = "the judge is the model whose answers it judges";
            notices.push(Notice::new("self-judging", name.as_str(), message));
        }
        let Share { count, of, .. } = self.orders_agree;
        if of >= ENOUGH && self.orders_agree.count * 5 < of * 4 {
            let message =
                format!("the order of the answers changes the winner: {count} of {of} agree");
            notices.push(Notice::new("position-bias", name.as_str(), message));
        }
        notices
    }

    /// What people see of it.
    pub(super) fn show(&self, sheet: &mut Sheet) {
        let own = if self.own_answers { ", whose own answers they are" } else { "" };
        sheet.fact("judge", format!("{}{own}", self.judges.join(", ")));
        sheet.fact(
            "judgements",
            format!(
                "{} read, {} after a retry, {} not read, {} against the judge's own scores",
                self.rounds, self.retried, self.unreadable, self.contradicts_itself
            ),
        );
        if self.first_wins.of > 0 {
            sheet.fact("shown first, and won", self.first_wins.shown());
        }
        if self.orders_agree.of > 0 {
            sheet.fact("both orders agree", self.orders_agree.shown());
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Comparisons {
    pub(super) overall: BTreeMap<Pair, Tally>,
    pub(super) tiers: BTreeMap<(Tier, Pair), Tally>,
    pub(super) skills: BTreeMap<(String, Pair), Tally>,
    pub(super) sizes: BTreeMap<String, Size>,
    pub(super) criteria: BTreeMap<(String, String), Moments>,
    judges: BTreeMap<String, bool>,
    judge: JudgeStats,
    first: (u64, u64),
    agree: (u64, u64),
}

/// Counts of one kind of comparison.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// By case, whose repeats belong together.
    differences: Vec<Vec<f64>>,
    last: String,
    wins: ByCase,
    ties: u64,
    losses: u64,
    errors: u64,
}

impl Tally {
    fn add(&mut self, case_id: &str, duel: Option<&Duel>) {
        let Some(scores) = duel.and_then(|duel| duel.scores) else {
            self.errors += 1;
            return;
        };
        match self.differences.last_mut() {
            Some(of_case) if self.last == case_id => of_case.push(scores.difference()),
            Some(_) | None => {
                self.differences.push(vec![scores.difference()]);
                case_id.clone_into(&mut self.last);
            }
        }
        let result = scores.result();
        self.wins.add(case_id, u64::from(result == Win::Win), 1);
        self.ties += u64::from(result == Win::Tie);
        self.losses += u64::from(result == Win::Loss);
    }

    pub(super) fn stats(&self) -> CompareStats {
        let Self { differences, wins, ties, losses, errors, last: _ } = self;
        let moments: Moments = differences.iter().flatten().copied().collect();
        CompareStats {
            wins: wins.share(),
            ties: *ties,
            losses: *losses,
            errors: *errors,
            improvement: moments.mean(),
            deviation: moments.deviation(),
            interval: mean_difference_clustered(differences, USUAL_LEVEL).map(|it| it.interval),
        }
    }
}

impl Comparisons {
    pub(super) fn add(&mut self, seen: Seen<'_>, compared: &Compared) {
        let Compared { skill, size, judge, duels } = compared;
        self.sizes.insert(skill.clone(), *size);
        let name = judge.model.as_ref().unwrap_or(&judge.backend);
        *self.judges.entry(name.clone()).or_default() |= judge.own_answers;
        if duels.is_empty() && seen.verdict == Verdict::Error {
            // It never came to a comparison.
            self.count(seen.case_id, Pair::HELPS, compared, None);
        }
        for duel in duels {
            self.count(seen.case_id, duel.pair, compared, Some(duel));
            let is_unreadable = |why: &String| why != NOT_JUDGED;
            self.judge.unreadable += u64::from(duel.error.as_ref().is_some_and(is_unreadable));
            if let Some(agree) = duel.orders_agree() {
                self.agree = (self.agree.0 + u64::from(agree), self.agree.1 + 1);
            }
            self.judge.rounds += duel.rounds.len() as u64;
            // One order of two says nothing.
            let rounds = if duel.scores.is_some() { duel.rounds.as_slice() } else { &[] };
            for round in rounds {
                self.judge.retried += u64::from(round.attempts > 1);
                self.judge.contradicts_itself +=
                    u64::from(round.said.is_some_and(|said| said != round.result));
                let winner = match round.result {
                    Win::Win => Some(duel.pair.more),
                    Win::Loss => Some(duel.pair.less),
                    Win::Tie => None,
                };
                if let Some(winner) = winner {
                    self.first.0 += u64::from(winner == round.shown_first);
                    self.first.1 += 1;
                }
                for score in &round.criteria {
                    let key = (skill.clone(), score.name.clone());
                    let difference = f64::from(score.more) - f64::from(score.less);
                    self.criteria.entry(key).or_default().push(difference);
                }
            }
        }
    }

    fn count(&mut self, case_id: &str, pair: Pair, compared: &Compared, duel: Option<&Duel>) {
        let Compared { skill, size, .. } = compared;
        self.overall.entry(pair).or_default().add(case_id, duel);
        self.tiers.entry((size.tier, pair)).or_default().add(case_id, duel);
        self.skills.entry((skill.clone(), pair)).or_default().add(case_id, duel);
    }

    pub(super) fn judge(&self) -> JudgeStats {
        JudgeStats {
            judges: self.judges.keys().cloned().collect(),
            own_answers: self.judges.values().any(|own| *own),
            first_wins: Share::new(self.first.0, self.first.1),
            orders_agree: Share::new(self.agree.0, self.agree.1),
            ..self.judge.clone()
        }
    }
}
