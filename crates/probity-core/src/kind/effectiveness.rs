//! Is the answer better with the skill than without?

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    KindFigures, KindFold, KindSpec, Seen,
    compared::{CompareStats, Comparisons, ENOUGH, JudgeStats, Tally, points},
};
use crate::{
    evidence::{Compared, Pair},
    figures::{Notice, Rate, Share, Sheet, Table},
};

pub(super) const SPEC: KindSpec = KindSpec {
    keys: &["dataset", "skills", "judge", "swap"],
    rates: &[Rate::Win],
    compares: true,
    ..KindSpec::PLAIN
};

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

/// How one skill did.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SkillCompared {
    /// With and without it.
    #[serde(flatten)]
    pub stats: CompareStats,
    /// The mean difference by criterion.
    pub criteria: BTreeMap<String, f64>,
}

impl KindFigures for Effectiveness {
    fn rates(&self) -> Vec<(Rate, Share)> {
        vec![(Rate::Win, self.overall.wins)]
    }

    fn notices(&self) -> &[Notice] {
        &self.notices
    }

    fn sheet(&self) -> Sheet {
        let mut sheet = Sheet::default();
        sheet.fact("better with the skill", self.overall.wins.shown());
        if let Some(mean) = self.overall.improvement {
            let spread = self.overall.interval;
            let spread = spread.map(|it| format!(" (95 % CI {:+.2} to {:+.2})", it.low, it.high));
            let spread = spread.unwrap_or_default();
            sheet.fact("points gained", format!("{mean:+.2} of 4{spread}"));
        }
        self.judge.show(&mut sheet);
        let skills = self.skills.iter().map(|(skill, of)| of.stats.row(skill));
        sheet.tables.push(Table::new("by skill", CompareStats::head("skill"), skills));
        let criteria = self.skills.iter().flat_map(|(skill, of)| {
            of.criteria
                .iter()
                .map(move |(name, mean)| vec![format!("{skill}: {name}"), points(Some(*mean))])
        });
        sheet.tables.push(Table::new("by criterion", ["criterion", "points"], criteria));
        sheet
    }
}

#[derive(Debug, Default)]
pub(super) struct Fold(Comparisons);

impl KindFold for Fold {
    type Evidence = Compared;
    type Figures = Effectiveness;

    fn add(&mut self, seen: Seen<'_>, compared: &Compared) {
        self.0.add(seen, compared);
    }

    fn finish(self) -> Effectiveness {
        let Self(comparisons) = self;
        let judge = comparisons.judge();
        let mut notices = judge.notices();
        let mut skills = BTreeMap::new();
        for ((skill, _), tally) in &comparisons.skills {
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
            let own = comparisons.criteria.iter().filter(|((of, _), _)| of == skill);
            let criteria = own.filter_map(|((_, name), it)| Some((name.clone(), it.mean()?)));
            let compared = SkillCompared { stats, criteria: criteria.collect() };
            skills.insert(skill.clone(), compared);
        }
        let overall = comparisons.overall.get(&Pair::HELPS).map(Tally::stats).unwrap_or_default();
        Effectiveness { overall, skills, judge, notices }
    }
}
