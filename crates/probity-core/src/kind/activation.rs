//! Is the right skill chosen from an index?

use std::collections::BTreeMap;

use serde::Serialize;

use super::{ChoiceRule, Evidence, KindFigures, KindFold, KindSpec, Seen, cases::ByCase};
use crate::{
    classification::Verdict,
    evidence::{Choice, Detection, Routed},
    figures::{Notice, Rate, Share, Sheet, Table, times},
    gate::percent,
};

pub(super) const SPEC: KindSpec = KindSpec {
    keys: &["dataset", "skills"],
    rates: &[Rate::Tpr, Rate::Fpr, Rate::Accuracy],
    choice: Some(ChoiceRule { is_single: false, evidence: Evidence::Activation }),
    ..KindSpec::PLAIN
};

/// Figures of an `activation` runner. What could not be judged is in none of them but `errors`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Activation {
    /// Positives where an expected or acceptable skill was chosen.
    pub tpr: Share,
    /// Negatives where any skill was chosen, or the reply could not be read.
    pub fpr: Share,
    /// Cases that are right, of both kinds.
    pub accuracy: Share,
    /// Every name that was chosen, over all cases.
    pub sets: SetFigures,
    /// Cases without a reply.
    pub errors: u64,
    /// Replies that could not be read, and what was asked about each candidate instead.
    pub fallbacks: u64,
    /// Replies that could not be read at all.
    pub unreadable: u64,
    /// By skill.
    pub skills: BTreeMap<String, SkillRouted>,
    /// What people should look at.
    pub notices: Vec<Notice>,
}

/// How well the chosen sets are those that were expected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SetFigures {
    /// Names that were expected or acceptable, of all that were chosen.
    pub precision: Share,
    /// Names that were chosen, of all that were expected.
    pub recall: Share,
    /// The harmonic mean of both.
    pub f1: Option<f64>,
    /// The mean over positives of each one's own F1.
    pub mean_f1: Option<f64>,
}

/// How one skill did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SkillRouted {
    /// Chosen, of the cases that expect it.
    pub activated: Share,
    /// Chosen where it was neither expected nor acceptable.
    pub wrongly: u64,
}

impl KindFigures for Activation {
    fn rates(&self) -> Vec<(Rate, Share)> {
        vec![(Rate::Tpr, self.tpr), (Rate::Fpr, self.fpr), (Rate::Accuracy, self.accuracy)]
    }

    fn notices(&self) -> &[Notice] {
        &self.notices
    }

    fn sheet(&self) -> Sheet {
        let mut sheet = Sheet::default();
        sheet.fact("found (TPR)", self.tpr.shown());
        sheet.fact("wrongly chosen (FPR)", self.fpr.shown());
        sheet.fact("accuracy", self.accuracy.shown());
        let SetFigures { precision, recall, f1, .. } = self.sets;
        let f1 = f1.map_or_else(|| "n/a".to_owned(), |f1| format!("{f1:.3}"));
        sheet.fact(
            "chosen names",
            format!(
                "precision {} of {}, recall {} of {}, F1 {f1}",
                precision.count, precision.of, recall.count, recall.of
            ),
        );
        if self.fallbacks + self.unreadable > 0 {
            let (asked, unread) = (self.fallbacks, self.unreadable);
            sheet.fact("unreadable", format!("{asked} asked about one by one, {unread} not read"));
        }
        let rows = self.skills.iter().map(|(skill, routed)| {
            let Share { count, of, .. } = routed.activated;
            vec![
                skill.clone(),
                percent(count, of),
                format!("{count} of {of}"),
                routed.activated.shown_range(),
                routed.wrongly.to_string(),
            ]
        });
        let head = ["skill", "chosen", "of expected", "95 %", "wrongly"];
        sheet.tables.push(Table::new("by skill", head, rows));
        sheet
    }
}

#[derive(Debug, Default)]
pub(super) struct Fold {
    /// Right ones and all, of cases that expect a skill and of those that expect none.
    positives: ByCase,
    negatives: ByCase,
    errors: u64,
    fallbacks: u64,
    unreadable: u64,
    /// Good names and all names that were chosen.
    chosen: ByCase,
    /// Found names and all names that were expected.
    expected: ByCase,
    f1s: Vec<f64>,
    /// Chosen where expected, and how often it was wrongly chosen.
    skills: BTreeMap<String, (ByCase, u64)>,
    /// Cases that should have chosen nothing, and did.
    tempted: BTreeMap<String, Vec<String>>,
    outside: BTreeMap<String, u64>,
}

impl KindFold for Fold {
    type Evidence = Routed;
    type Figures = Activation;

    fn add(&mut self, seen: Seen<'_>, routed: &Routed) {
        let passed = match seen.verdict {
            Verdict::Error | Verdict::Undecided => {
                self.errors += 1;
                return;
            }
            Verdict::Pass => 1,
            Verdict::Fail => 0,
        };
        let side = if routed.should_activate { &mut self.positives } else { &mut self.negatives };
        side.add(seen.case_id, passed, 1);
        self.fallbacks += u64::from(routed.detection == Detection::Fallback);
        self.unreadable += u64::from(routed.choice == Choice::Unreadable);
        for name in &routed.outside {
            *self.outside.entry(name.clone()).or_default() += 1;
        }
        let named = count(&routed.chosen) + count(&routed.outside);
        let good = count(routed.chosen.iter().filter(|it| routed.accepts(it)));
        let found = count(routed.expected.iter().filter(|it| routed.chosen.contains(it)));
        let expected = count(&routed.expected);
        self.chosen.add(seen.case_id, good, named);
        self.expected.add(seen.case_id, found, expected);
        if routed.should_activate {
            let of = |part, whole| Share::new(part, whole).rate.unwrap_or(0.0);
            self.f1s.push(harmonic(of(good, named), of(found, expected)));
        } else if passed == 0 && named > 0 {
            let all = routed.chosen.iter().chain(&routed.outside).cloned().collect();
            self.tempted.insert(seen.case_id.to_owned(), all);
        }
        for skill in &routed.expected {
            let (activated, _) = self.skills.entry(skill.clone()).or_default();
            activated.add(seen.case_id, u64::from(routed.chosen.contains(skill)), 1);
        }
        for skill in routed.chosen.iter().filter(|it| !routed.accepts(it)) {
            self.skills.entry(skill.clone()).or_default().1 += 1;
        }
    }

    fn finish(self) -> Activation {
        let Self { positives, negatives, chosen, expected, .. } = self;
        let (precision, recall) = (chosen.share(), expected.share());
        let both = precision.rate.zip(recall.rate);
        let sets = SetFigures {
            precision,
            recall,
            f1: both.map(|(precision, recall)| harmonic(precision, recall)),
            mean_f1: self.f1s.iter().copied().collect::<probity_stats::spread::Moments>().mean(),
        };
        let skills = self.skills.into_iter().map(|(skill, (activated, wrongly))| {
            (skill, SkillRouted { activated: activated.share(), wrongly })
        });
        let mut figures = Activation {
            tpr: positives.share(),
            fpr: negatives.others(),
            accuracy: positives.joined(&negatives).share(),
            sets,
            errors: self.errors,
            fallbacks: self.fallbacks,
            unreadable: self.unreadable,
            skills: skills.collect(),
            notices: Vec::new(),
        };
        let never = figures.skills.iter().filter(|(_, it)| it.activated.of > 0);
        for (skill, SkillRouted { activated, .. }) in
            never.filter(|(_, it)| it.activated.count == 0)
        {
            let message = format!("never chosen, though expected {}", times(activated.of));
            figures.notices.push(Notice::new("never-chosen", skill.as_str(), message));
        }
        for (case_id, chosen) in self.tempted {
            let message = format!("nothing should be chosen, and {} was", chosen.join(", "));
            figures.notices.push(Notice::new("tempted", case_id, message));
        }
        for (name, count) in self.outside {
            let message = format!("named {}, and not in the index", times(count));
            figures.notices.push(Notice::new("not-in-index", name, message));
        }
        figures
    }
}

fn count<T>(items: impl IntoIterator<Item = T>) -> u64 {
    items.into_iter().count() as u64
}

fn harmonic(a: f64, b: f64) -> f64 {
    if a + b > 0.0 { 2.0 * a * b / (a + b) } else { 0.0 }
}
