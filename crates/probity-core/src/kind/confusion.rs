//! Are look-alike skills told apart?

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{ChoiceRule, Evidence, KindFigures, KindFold, KindSpec, Seen, cases::ByCase};
use crate::{
    classification::Verdict,
    evidence::{Choice, Routed},
    figures::{Notice, Rate, Share, Sheet, Table, times},
    gate::percent,
};

pub(super) const SPEC: KindSpec = KindSpec {
    keys: &["dataset", "skills"],
    rates: &[Rate::Fpr, Rate::Accuracy, Rate::Cross, Rate::Multi, Rate::None, Rate::Outside],
    choice: Some(ChoiceRule { is_single: true, evidence: Evidence::Confusion }),
    ..KindSpec::PLAIN
};

/// A pair that is confused more often than one time in this many is worth a word, as is a group
/// where so many replies name several skills or none.
const ONE_IN: u64 = 5;
/// The same for names that are not in the index.
const ONE_OUTSIDE_IN: u64 = 10;

/// Figures of a `confusion` runner. What could not be judged is in none of them but `errors`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Confusion {
    /// Cases that are right, over all groups, negatives included.
    pub accuracy: Share,
    /// Single choices that were of a skill that is neither expected nor acceptable.
    pub cross: Share,
    /// Replies to positives that name several skills.
    pub multi: Share,
    /// Replies to positives that name none.
    pub none: Share,
    /// Replies that name something that is not in the index.
    pub outside: Share,
    /// Cases that should have chosen nothing.
    pub negatives: Negatives,
    /// Cases without a reply.
    pub errors: u64,
    /// By group.
    pub groups: BTreeMap<String, Grid>,
    /// What people should look at.
    pub notices: Vec<Notice>,
}

/// Cases that should have chosen nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Negatives {
    /// Where something was chosen all the same, or the reply could not be read.
    pub chosen: Share,
}

/// What was chosen in one group of look-alikes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Grid {
    /// The skills of the group, which are both axes.
    pub axes: Vec<String>,
    /// For each expected skill, how often each skill was chosen alone.
    pub counts: Vec<Vec<u64>>,
    /// Positives that are right.
    pub accuracy: Share,
    /// Single choices of a skill that is neither expected nor acceptable.
    pub cross: Share,
    /// Positives whose reply names one skill.
    pub single: u64,
    /// Several.
    pub multi: u64,
    /// None.
    pub none: u64,
    /// One that is not in the index.
    pub outside: u64,
    /// Positives whose reply cannot be read.
    pub unreadable: u64,
    /// Cases without a reply.
    pub errors: u64,
}

impl KindFigures for Confusion {
    fn rates(&self) -> Vec<(Rate, Share)> {
        vec![
            (Rate::Fpr, self.negatives.chosen),
            (Rate::Accuracy, self.accuracy),
            (Rate::Cross, self.cross),
            (Rate::Multi, self.multi),
            (Rate::None, self.none),
            (Rate::Outside, self.outside),
        ]
    }

    fn notices(&self) -> &[Notice] {
        &self.notices
    }

    fn sheet(&self) -> Sheet {
        let mut sheet = Sheet::default();
        sheet.fact("accuracy", self.accuracy.shown());
        sheet.fact("another skill chosen", self.cross.shown());
        sheet.fact("several chosen", self.multi.shown());
        sheet.fact("none chosen", self.none.shown());
        if self.outside.count > 0 {
            sheet.fact("not in the index", self.outside.shown());
        }
        if self.negatives.chosen.of > 0 {
            sheet.fact("chosen without need", self.negatives.chosen.shown());
        }
        let rows = self.groups.iter().map(|(name, grid)| grid.row(name));
        let head = ["group", "right", "", "95 %", "cross", "several", "none", "outside", "unread"];
        sheet.tables.push(Table::new("by group", head, rows));
        sheet.tables.extend(self.groups.iter().map(|(name, grid)| grid.table(name)));
        sheet
    }
}

impl Grid {
    /// In one line.
    fn row(&self, name: &str) -> Vec<String> {
        let Share { count, of, .. } = self.accuracy;
        let [multi, none, outside, unread] =
            [self.multi, self.none, self.outside, self.unreadable].map(|it| it.to_string());
        let cross = percent(self.cross.count, self.cross.of);
        let (right, counted) = (percent(count, of), format!("{count} of {of}"));
        let range = self.accuracy.shown_range();
        vec![name.to_owned(), right, counted, range, cross, multi, none, outside, unread]
    }

    /// Expected skills to the left, chosen ones above.
    fn table(&self, name: &str) -> Table {
        let numbers: Vec<String> = (1..=self.axes.len()).map(|at| at.to_string()).collect();
        let rows = self.axes.iter().zip(&self.counts).zip(&numbers);
        let rows = rows.map(|((skill, row), number)| {
            let mut cells = vec![format!("{number} {skill}")];
            cells.extend(row.iter().map(ToString::to_string));
            cells
        });
        let mut table = Table::new(&format!("group {name}"), ["expected, chosen"], rows);
        table.head.extend(numbers.iter().cloned());
        Table { is_grid: true, ..table }
    }
}

#[derive(Debug, Default)]
pub(super) struct Fold {
    groups: BTreeMap<String, Group>,
    /// Negatives that are right, and all.
    negatives: ByCase,
    /// Positives of all groups that are right, and all.
    positives: ByCase,
    /// The same: those of another skill of the single choices, those that name several, and none.
    crossed: ByCase,
    several: ByCase,
    none: ByCase,
    failed_negatives: BTreeSet<String>,
    errors: u64,
    /// Replies that name something outside, and all that could be judged.
    outside: ByCase,
    /// Names that are not in the index, and how often they were named.
    foreign: BTreeMap<String, u64>,
}

#[derive(Debug, Default)]
struct Group {
    axes: BTreeSet<String>,
    /// By expected and chosen skill.
    cells: BTreeMap<(String, String), u64>,
    /// The same, of choices that are neither expected nor acceptable.
    wrong: BTreeMap<(String, String), u64>,
    expected: BTreeSet<String>,
    positives: ByCase,
    crossed: ByCase,
    choices: BTreeMap<Choice, u64>,
    errors: u64,
}

impl KindFold for Fold {
    type Evidence = Routed;
    type Figures = Confusion;

    fn add(&mut self, seen: Seen<'_>, routed: &Routed) {
        let passed = u64::from(seen.verdict == Verdict::Pass);
        let is_error = seen.verdict == Verdict::Error;
        self.errors += u64::from(is_error);
        if !is_error {
            self.outside.add(seen.case_id, u64::from(!routed.outside.is_empty()), 1);
        }
        for name in &routed.outside {
            *self.foreign.entry(name.clone()).or_default() += 1;
        }
        let name = routed.group.clone().unwrap_or_default();
        if !routed.should_activate {
            if !is_error {
                self.negatives.add(seen.case_id, passed, 1);
                if passed == 0 {
                    self.failed_negatives.insert(seen.case_id.to_owned());
                }
            }
            if let Some(group) = &routed.group {
                let group = self.groups.entry(group.clone()).or_default();
                group.axes.extend(routed.axes.iter().cloned());
                group.errors += u64::from(is_error);
            }
            return;
        }
        let group = self.groups.entry(name).or_default();
        group.axes.extend(routed.axes.iter().cloned());
        group.expected.extend(routed.expected.first().cloned());
        if is_error {
            group.errors += 1;
            return;
        }
        group.positives.add(seen.case_id, passed, 1);
        self.positives.add(seen.case_id, passed, 1);
        let is = |choice: Choice| u64::from(routed.choice == choice);
        self.several.add(seen.case_id, is(Choice::Multi), 1);
        self.none.add(seen.case_id, is(Choice::None), 1);
        *group.choices.entry(routed.choice).or_default() += 1;
        if let (Choice::Single, Some(expected), [chosen]) =
            (routed.choice, routed.expected.first(), routed.chosen.as_slice())
        {
            let cell = (expected.clone(), chosen.clone());
            let wrong = u64::from(!routed.accepts(chosen));
            *group.wrong.entry(cell.clone()).or_default() += wrong;
            *group.cells.entry(cell).or_default() += 1;
            group.crossed.add(seen.case_id, wrong, 1);
            self.crossed.add(seen.case_id, wrong, 1);
        }
    }

    fn finish(self) -> Confusion {
        let Self { groups, negatives, positives, failed_negatives, errors, foreign, .. } = self;
        let mut notices = Vec::new();
        let groups: BTreeMap<String, Grid> = groups
            .into_iter()
            .map(|(name, group)| {
                let grid = group.grid();
                group.notices(&name, &grid, &mut notices);
                (name, grid)
            })
            .collect();
        for case_id in failed_negatives {
            notices.push(Notice::new("tempted", case_id, "nothing should be chosen"));
        }
        for (name, count) in foreign {
            let message = format!("named {}, and not in the index it was shown", times(count));
            notices.push(Notice::new("not-in-index", name, message));
        }
        let outside = self.outside.share();
        if outside.exceeds(1, ONE_OUTSIDE_IN) {
            let message = format!(
                "{} of {} replies name what is not in the index",
                outside.count, outside.of
            );
            notices.push(Notice::new("index-violations", "index", message));
        }
        Confusion {
            accuracy: positives.joined(&negatives).share(),
            cross: self.crossed.share(),
            multi: self.several.share(),
            none: self.none.share(),
            outside,
            negatives: Negatives { chosen: negatives.others() },
            errors,
            groups,
            notices,
        }
    }
}

impl Group {
    fn grid(&self) -> Grid {
        let axes: Vec<String> = self.axes.iter().cloned().collect();
        let cell = |row: &String, column: &String| {
            self.cells.get(&(row.clone(), column.clone())).copied().unwrap_or(0)
        };
        let counts = axes.iter().map(|row| axes.iter().map(|it| cell(row, it)).collect()).collect();
        let of = |choice| self.choices.get(&choice).copied().unwrap_or(0);
        let single = of(Choice::Single);
        Grid {
            counts,
            accuracy: self.positives.share(),
            cross: self.crossed.share(),
            single,
            multi: of(Choice::Multi),
            none: of(Choice::None),
            outside: of(Choice::Outside),
            unreadable: of(Choice::Unreadable),
            errors: self.errors,
            axes,
        }
    }

    fn notices(&self, name: &str, grid: &Grid, notices: &mut Vec<Notice>) {
        let Grid { axes, counts, .. } = grid;
        for (row, expected) in axes.iter().enumerate() {
            let all: u64 = counts[row].iter().sum();
            for chosen in axes {
                let wrong = self.wrong.get(&(expected.clone(), chosen.clone()));
                let share = Share::new(wrong.copied().unwrap_or(0), all);
                if share.exceeds(1, ONE_IN) {
                    let message = format!(
                        "`{chosen}` was chosen {} of {} times where `{expected}` is expected",
                        share.count, share.of
                    );
                    notices.push(Notice::new("confused", name, message));
                }
            }
            let own = counts[row][row];
            let others = counts[row].iter().enumerate();
            let as_often = others.filter(|(it, count)| *it != row && **count > 0 && **count >= own);
            if as_often.count() >= 2 {
                let message =
                    format!("where `{expected}` is expected, two others are chosen as often");
                notices.push(Notice::new("low-discrimination", name, message));
            }
            let chosen: u64 = counts.iter().map(|it| it[row]).sum();
            if chosen == 0 && self.expected.contains(expected) {
                let message = format!("`{expected}` was never chosen");
                notices.push(Notice::new("never-chosen", name, message));
            }
        }
        for (what, count) in [("several skills", grid.multi), ("none", grid.none)] {
            let share = Share::new(count, grid.accuracy.of);
            if share.exceeds(1, ONE_IN) {
                let message = format!("{} of {} replies name {what}", share.count, share.of);
                let code = if what == "none" { "none-chosen" } else { "several-chosen" };
                notices.push(Notice::new(code, name, message));
            }
        }
    }
}
