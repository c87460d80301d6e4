//! Does the size of a skill pay off?

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    KindFigures, KindFold, KindSpec, Seen,
    compared::{CompareStats, Comparisons, ENOUGH, JudgeStats},
};
use crate::{
    evidence::{Compared, Condition, Pair, Size, Tier},
    figures::{Notice, Rate, Share, Sheet, Table},
};

pub(super) const SPEC: KindSpec = KindSpec {
    keys: &["dataset", "skills", "judge", "swap", "companion_bytes"],
    rates: &[Rate::Win],
    compares: true,
    ..KindSpec::PLAIN
};

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

/// How one skill did, by how much of it there was.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SkillSizes {
    /// How large it is.
    pub size: Size,
    /// By comparison.
    pub comparisons: BTreeMap<String, CompareStats>,
}

impl KindFigures for SizeImpact {
    fn rates(&self) -> Vec<(Rate, Share)> {
        self.deciding().map(|it| (Rate::Win, it.wins)).into_iter().collect()
    }

    fn notices(&self) -> &[Notice] {
        &self.notices
    }

    fn sheet(&self) -> Sheet {
        let mut sheet = Sheet::default();
        self.judge.show(&mut sheet);
        let rows = |of: &BTreeMap<String, CompareStats>, prefix: &str| {
            let row =
                |(pair, stats): (&String, &CompareStats)| stats.row(&format!("{prefix}{pair}"));
            of.iter().map(row).collect::<Vec<_>>()
        };
        let table = |title: &str, first: &str, rows: Vec<Vec<String>>| {
            Table::new(title, CompareStats::head(first), rows)
        };
        let tiers = self.tiers.iter();
        let tiers = tiers.flat_map(|(tier, of)| rows(of, &format!("{}: ", tier.as_str())));
        let sizes = self.skills.iter().map(|(skill, of)| {
            let Size { tier, full, summary, companions } = of.size;
            let bytes = [full, summary, companions].map(|it| it.to_string());
            let names = [skill.clone(), tier.as_str().to_owned()];
            names.into_iter().chain(bytes).collect()
        });
        let skills = self.skills.iter();
        let skills = skills.flat_map(|(skill, of)| rows(&of.comparisons, &format!("{skill}: ")));
        sheet.tables = vec![
            table("by comparison", "comparison", rows(&self.comparisons, "")),
            table("by size", "size: comparison", tiers.collect()),
            Table::new("bytes", ["skill", "size", "whole", "summary", "companions"], sizes),
            table("by skill", "skill: comparison", skills.collect()),
        ];
        sheet
    }
}

#[derive(Debug, Default)]
pub(super) struct Fold(Comparisons);

impl KindFold for Fold {
    type Evidence = Compared;
    type Figures = SizeImpact;

    fn add(&mut self, seen: Seen<'_>, compared: &Compared) {
        self.0.add(seen, compared);
    }

    fn finish(self) -> SizeImpact {
        let Self(comparisons) = self;
        let judge = comparisons.judge();
        let mut notices = judge.notices();
        let mut figures = SizeImpact { judge, ..SizeImpact::default() };
        for (pair, tally) in &comparisons.overall {
            figures.comparisons.insert(pair.to_string(), tally.stats());
        }
        for ((tier, pair), tally) in &comparisons.tiers {
            figures.tiers.entry(*tier).or_default().insert(pair.to_string(), tally.stats());
        }
        for ((skill, pair), tally) in &comparisons.skills {
            let Some(size) = comparisons.sizes.get(skill) else { continue };
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
