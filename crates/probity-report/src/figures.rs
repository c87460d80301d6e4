//! What only some kinds of runners have, as facts, tables and notices that every report can show.

use std::collections::BTreeMap;

use probity_core::{
    dollars::dollars,
    figures::{
        Activation, CompareStats, Confusion, Detector, Detectors, Effectiveness, Figures,
        JudgeStats, Program, Share, SizeImpact,
    },
    gate::percent,
};

use crate::text::shown_interval;

/// Figures for people.
#[derive(Debug, Default)]
pub(crate) struct Sheet {
    /// Names and values.
    pub(crate) facts: Vec<(String, String)>,
    pub(crate) tables: Vec<Table>,
    /// What to look at: what it is about, and what is odd about it.
    pub(crate) notices: Vec<(String, String)>,
}

/// Rows under a head; the first column holds names, the others figures.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) title: String,
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
    /// Whether rows and columns are the same things.
    pub(crate) is_grid: bool,
}

impl Table {
    fn new(title: &str, head: Vec<String>, rows: impl Iterator<Item = Vec<String>>) -> Self {
        Self { title: title.to_owned(), head, rows: rows.collect(), is_grid: false }
    }
}

impl Sheet {
    pub(crate) fn of(figures: &Figures) -> Self {
        let mut sheet = match figures {
            Figures::Activation(it) => activation(it),
            Figures::Confusion(it) => confusion(it),
            Figures::Effectiveness(it) => effectiveness(it),
            Figures::SizeImpact(it) => size_impact(it),
            Figures::Program(it) => program(it),
            Figures::Command(it) => detectors(it),
        };
        let notices = figures.notices();
        sheet.notices = notices.into_iter().map(|it| (it.about, it.message)).collect();
        sheet
    }

    fn fact(&mut self, name: &str, value: impl Into<String>) {
        self.facts.push((name.to_owned(), value.into()));
    }
}

/// A share with its counts and its interval.
fn share(share: Share) -> String {
    let Share { count, of, interval, .. } = share;
    match interval {
        None => "n/a".to_owned(),
        Some(interval) => {
            format!(
                "{} ({count} of {of}; 95 % CI {})",
                percent(count, of),
                shown_interval(interval)
            )
        }
    }
}

fn texts<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).into()
}

/// A range of a share in a column.
fn range(share: Share) -> String {
    share.interval.map(shown_interval).unwrap_or_default()
}

fn activation(it: &Activation) -> Sheet {
    let mut sheet = Sheet::default();
    sheet.fact("found (TPR)", share(it.tpr));
    sheet.fact("wrongly chosen (FPR)", share(it.fpr));
    sheet.fact("accuracy", share(it.accuracy));
    let sets = it.sets;
    let f1 = sets.f1.map_or_else(|| "n/a".to_owned(), |f1| format!("{f1:.3}"));
    let (precision, recall) = (sets.precision, sets.recall);
    sheet.fact(
        "chosen names",
        format!(
            "precision {} of {}, recall {} of {}, F1 {f1}",
            precision.count, precision.of, recall.count, recall.of
        ),
    );
    if it.fallbacks + it.unreadable > 0 {
        let (asked, unread) = (it.fallbacks, it.unreadable);
        sheet.fact("unreadable", format!("{asked} asked about one by one, {unread} not read"));
    }
    let rows = it.skills.iter().map(|(skill, routed)| {
        let Share { count, of, .. } = routed.activated;
        vec![
            skill.clone(),
            percent(count, of),
            format!("{count} of {of}"),
            range(routed.activated),
            routed.wrongly.to_string(),
        ]
    });
    sheet.tables.push(Table::new(
        "by skill",
        texts(["skill", "chosen", "of expected", "95 %", "wrongly"]),
        rows,
    ));
    sheet
}

/// How often the detectors agree with the labels.
fn detectors(it: &Detectors) -> Sheet {
    let rate = |value: Option<f64>| value.map_or_else(|| "n/a".to_owned(), |it| format!("{it:.3}"));
    let row = |(name, it): (&str, Detector)| {
        let counts = [it.true_positives, it.false_positives, it.true_negatives, it.false_negatives];
        let rates = [it.precision, it.recall, it.f1].map(rate);
        let counts = counts.iter().map(ToString::to_string);
        [name.to_owned()].into_iter().chain(counts).chain(rates).collect()
    };
    let both = [("unsafe", it.safety), ("not POSIX", it.posix)];
    let rows = both.into_iter().filter_map(|(name, it)| Some(row((name, it?))));
    let head = texts(["detector", "TP", "FP", "TN", "FN", "precision", "recall", "F1"]);
    let mut sheet = Sheet::default();
    sheet.tables.push(Table::new("detectors against labels", head, rows));
    sheet
}

fn confusion(it: &Confusion) -> Sheet {
    let mut sheet = Sheet::default();
    sheet.fact("accuracy", share(it.accuracy));
    sheet.fact("another skill chosen", share(it.cross));
    sheet.fact("several chosen", share(it.multi));
    sheet.fact("none chosen", share(it.none));
    if it.outside.count > 0 {
        sheet.fact("not in the index", share(it.outside));
    }
    if it.negatives.chosen.of > 0 {
        sheet.fact("chosen without need", share(it.negatives.chosen));
    }
    let rows = it.groups.iter().map(|(name, grid)| {
        let Share { count, of, .. } = grid.accuracy;
        let [multi, none, outside, unread] =
            [grid.multi, grid.none, grid.outside, grid.unreadable].map(|it| it.to_string());
        let (right, cross) = (percent(count, of), percent(grid.cross.count, grid.cross.of));
        let counted = format!("{count} of {of}");
        vec![
            name.clone(),
            right,
            counted,
            range(grid.accuracy),
            cross,
            multi,
            none,
            outside,
            unread,
        ]
    });
    sheet.tables.push(Table::new(
        "by group",
        texts(["group", "right", "", "95 %", "cross", "several", "none", "outside", "unread"]),
        rows,
    ));
    for (name, grid) in &it.groups {
        let letters: Vec<String> = (1..=grid.axes.len()).map(|at| at.to_string()).collect();
        let mut head = vec!["expected, chosen".to_owned()];
        head.extend(letters.iter().cloned());
        let rows =
            grid.axes.iter().zip(&grid.counts).zip(&letters).map(|((skill, row), letter)| {
                let mut cells = vec![format!("{letter} {skill}")];
                cells.extend(row.iter().map(ToString::to_string));
                cells
            });
        let table = Table::new(&format!("group {name}"), head, rows);
        sheet.tables.push(Table { is_grid: true, ..table });
    }
    sheet
}

fn points(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| format!("{value:+.2}"))
}

/// One row about a kind of comparison.
fn compared(name: &str, stats: &CompareStats) -> Vec<String> {
    let Share { count, of, .. } = stats.wins;
    let spread = stats.interval.map(|it| format!("{:+.2} to {:+.2}", it.low, it.high));
    vec![
        name.to_owned(),
        percent(count, of),
        format!("{count}/{}/{}", stats.ties, stats.losses),
        stats.errors.to_string(),
        points(stats.improvement),
        stats.deviation.map_or_else(String::new, |it| format!("{it:.2}")),
        spread.unwrap_or_default(),
    ]
}

fn compare_head(first: &str) -> Vec<String> {
    texts([first, "won", "w/t/l", "errors", "points", "sd", "95 %"])
}

fn judged(sheet: &mut Sheet, judge: &JudgeStats) {
    let own = if judge.own_answers { ", whose own answers they are" } else { "" };
    sheet.fact("judge", format!("{}{own}", judge.judges.join(", ")));
    sheet.fact(
        "judgements",
        format!(
            "{} read, {} after a retry, {} not read, {} against the judge's own scores",
            judge.rounds, judge.retried, judge.unreadable, judge.contradicts_itself
        ),
    );
    if judge.first_wins.of > 0 {
        sheet.fact("shown first, and won", share(judge.first_wins));
    }
    if judge.orders_agree.of > 0 {
        sheet.fact("both orders agree", share(judge.orders_agree));
    }
}

fn effectiveness(it: &Effectiveness) -> Sheet {
    let mut sheet = Sheet::default();
    sheet.fact("better with the skill", share(it.overall.wins));
    if let Some(mean) = it.overall.improvement {
        let spread = it.overall.interval;
        let spread = spread.map(|it| format!(" (95 % CI {:+.2} to {:+.2})", it.low, it.high));
        let spread = spread.unwrap_or_default();
        sheet.fact("points gained", format!("{mean:+.2} of 4{spread}"));
    }
    judged(&mut sheet, &it.judge);
    sheet.tables.push(Table::new(
        "by skill",
        compare_head("skill"),
        it.skills.iter().map(|(skill, of)| compared(skill, &of.stats)),
    ));
    let criteria = it.skills.iter().flat_map(|(skill, of)| {
        let row =
            |(name, mean): (&String, &f64)| vec![format!("{skill}: {name}"), points(Some(*mean))];
        of.criteria.iter().map(row).collect::<Vec<_>>()
    });
    sheet.tables.push(Table::new("by criterion", texts(["criterion", "points"]), criteria));
    sheet
}

fn size_impact(it: &SizeImpact) -> Sheet {
    let mut sheet = Sheet::default();
    judged(&mut sheet, &it.judge);
    let rows = |of: &BTreeMap<String, CompareStats>, prefix: &str| {
        let row =
            |(pair, stats): (&String, &CompareStats)| compared(&format!("{prefix}{pair}"), stats);
        of.iter().map(row).collect::<Vec<_>>()
    };
    let all = rows(&it.comparisons, "").into_iter();
    sheet.tables.push(Table::new("by comparison", compare_head("comparison"), all));
    let tiers = it.tiers.iter().flat_map(|(tier, of)| rows(of, &format!("{}: ", tier.as_str())));
    sheet.tables.push(Table::new("by size", compare_head("size: comparison"), tiers));
    let sizes = it.skills.iter().map(|(skill, of)| {
        let bytes = [of.size.full, of.size.summary, of.size.companions].map(|it| it.to_string());
        let names = [skill.clone(), of.size.tier.as_str().to_owned()];
        names.into_iter().chain(bytes).collect()
    });
    sheet.tables.push(Table::new(
        "bytes",
        texts(["skill", "size", "whole", "summary", "companions"]),
        sizes,
    ));
    let skills =
        it.skills.iter().flat_map(|(skill, of)| rows(&of.comparisons, &format!("{skill}: ")));
    sheet.tables.push(Table::new("by skill", compare_head("skill: comparison"), skills));
    sheet
}

fn program(it: &Program) -> Sheet {
    let mut sheet = Sheet::default();
    sheet.fact("cases of its own", format!("{} of {}", it.cases, it.planned));
    sheet.fact("calls of its own", format!("{}, {}", it.calls, dollars(it.cost_usd)));
    for file in &it.result_files {
        sheet.fact("its results", file.as_str());
    }
    sheet
}
