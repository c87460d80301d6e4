//! Are answers better with a skill, or with more of it?

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Notice, Seen, Share, cases::ByCase};
use crate::{
    classification::Verdict,
    evidence::{Compared, Condition, Duel, NOT_JUDGED, Pair, Size, Tier, Win},
};
use probity_stats::{Interval, USUAL_LEVEL, paired::mean_difference_clustered, spread::Moments};

/// Fewer results than this say nothing about a skill that never wins, or always does.
const ENOUGH: u64 = 3;

/// Figures of an `effectiveness` runner.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Effectiveness {
    /// Over all skills.
    pub overall: CompareStats,
    /// By skill.
    pub skills: BTreeMap<String, SkillCompared>,
    /// How the judge did.
    pub judge: JudgeStats,
    /// What people should look at.
    pub notices: Vec<Notice>,
}

/// Figures of a `size_impact` runner.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SizeImpact {
    /// By comparison, over all skills.
    pub comparisons: BTreeMap<String, CompareStats>,
    /// By size of the skill and by comparison.
    pub tiers: BTreeMap<Tier, BTreeMap<String, CompareStats>>,
    /// By skill.
    pub skills: BTreeMap<String, SkillSizes>,
    /// How the judge did.
    pub judge: JudgeStats,
    /// What people should look at.
    pub notices: Vec<Notice>,
}

impl SizeImpact {
    /// The comparison that decides whether a case has passed.
    pub fn deciding(&self) -> Option<&CompareStats> {
        self.comparisons.get(&Pair::HELPS.to_string())
    }
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

/// How one skill did.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SkillCompared {
    /// With and without it.
    #[serde(flatten)]
    pub stats: CompareStats,
    /// The mean difference by criterion.
    pub criteria: BTreeMap<String, f64>,
}

/// How one skill did, by how much of it there was.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SkillSizes {
    /// How large it is.
    pub size: Size,
    /// By comparison.
    pub comparisons: BTreeMap<String, CompareStats>,
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

#[derive(Debug, Default)]
pub(super) struct Fold {
    overall: BTreeMap<Pair, Tally>,
    tiers: BTreeMap<(Tier, Pair), Tally>,
    skills: BTreeMap<(String, Pair), Tally>,
    sizes: BTreeMap<String, Size>,
    criteria: BTreeMap<(String, String), Moments>,
    judges: BTreeMap<String, bool>,
    judge: JudgeStats,
    first: (u64, u64),
    agree: (u64, u64),
}

/// Counts of one kind of comparison.
#[derive(Debug, Default)]
struct Tally {
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

    fn stats(&self) -> CompareStats {
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

impl Fold {
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

    fn judge_stats(&self) -> JudgeStats {
        JudgeStats {
            judges: self.judges.keys().cloned().collect(),
            own_answers: self.judges.values().any(|own| *own),
            first_wins: Share::new(self.first.0, self.first.1),
            orders_agree: Share::new(self.agree.0, self.agree.1),
            ..self.judge.clone()
        }
    }

    pub(super) fn effectiveness(self) -> Effectiveness {
        let judge = self.judge_stats();
        let mut notices = judge_notices(&judge);
        let mut skills = BTreeMap::new();
        for ((skill, _), tally) in &self.skills {
            let stats = tally.stats();
            let Share { count, of, .. } = stats.wins;
            if of >= ENOUGH && count == 0 {
                let message = format!("its answers never won, in {of} comparisons");
                notices.push(Notice::new("never-wins", skill.as_str(), message));
            } else if of >= ENOUGH && count * 2 < of {
                let message = format!("its answers won {count} of {of} comparisons");
                notices.push(Notice::new("rarely-wins", skill.as_str(), message));
            } else if of >= 2 * ENOUGH && count == of {
                let message =
                    format!("its answers won all {of} comparisons: the rubric may be too easy");
                notices.push(Notice::new("always-wins", skill.as_str(), message));
            }
            let own = self.criteria.iter().filter(|((of, _), _)| of == skill);
            let criteria = own.filter_map(|((_, name), it)| Some((name.clone(), it.mean()?)));
            let compared = SkillCompared { stats, criteria: criteria.collect() };
            skills.insert(skill.clone(), compared);
        }
        let overall = self.overall.get(&Pair::HELPS).map(Tally::stats).unwrap_or_default();
        Effectiveness { overall, skills, judge, notices }
    }

    pub(super) fn size_impact(self) -> SizeImpact {
        let judge = self.judge_stats();
        let mut notices = judge_notices(&judge);
        let mut figures = SizeImpact { judge, ..SizeImpact::default() };
        for (pair, tally) in &self.overall {
            figures.comparisons.insert(pair.to_string(), tally.stats());
        }
        for ((tier, pair), tally) in &self.tiers {
            figures.tiers.entry(*tier).or_default().insert(pair.to_string(), tally.stats());
        }
        for ((skill, pair), tally) in &self.skills {
            let Some(size) = self.sizes.get(skill) else { continue };
            let stats = tally.stats();
            notices.extend(size_notice(skill, *pair, &stats));
            figures
                .skills
                .entry(skill.clone())
                .or_insert_with(|| SkillSizes { size: *size, comparisons: BTreeMap::new() })
                .comparisons
                .insert(pair.to_string(), stats);
        }
        SizeImpact { notices, ..figures }
    }
}

/// What a comparison of sizes says about a skill.
fn size_notice(skill: &str, pair: Pair, stats: &CompareStats) -> Option<Notice> {
    let Share { count: wins, of, .. } = stats.wins;
    let CompareStats { losses, .. } = *stats;
    if of == 0 {
        return None;
    }
    let (code, message) = match (pair.more, pair.less) {
        (Condition::Full, Condition::Baseline) if losses == of => {
            ("baseline-wins", format!("answers without it are better each time, {of} of {of}"))
        }
        (Condition::Full, Condition::Summary) if of >= ENOUGH && wins * 2 <= of => {
            let message = format!("its summary does as well: the whole won {wins} of {of}");
            ("size-without-gain", message)
        }
        (Condition::Companions, Condition::Full) if of >= ENOUGH && wins * 2 <= of => {
            let message = format!("its companions add nothing: with them {wins} of {of} were won");
            ("companions-without-gain", message)
        }
        _ => return None,
    };
    Some(Notice::new(code, skill, message))
}

fn judge_notices(judge: &JudgeStats) -> Vec<Notice> {
    let mut notices = Vec::new();
    let name = judge.judges.join(", ");
    if judge.own_answers {
        let message = "the judge is the model whose answers it judges";
        notices.push(Notice::new("self-judging", name.as_str(), message));
    }
    let Share { count, of, .. } = judge.orders_agree;
    if of >= ENOUGH && judge.orders_agree.count * 5 < of * 4 {
        let message = format!("the order of the answers changes the winner: {count} of {of} agree");
        notices.push(Notice::new("position-bias", name.as_str(), message));
    }
    notices
}
