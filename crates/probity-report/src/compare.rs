//! Two or more runs beside each other.

mod entrants;
pub mod page;
mod preference;

use std::{collections::BTreeMap, fmt::Write as _};

use probity_core::{
    case_outcome::{Changes, Difference},
    derived::shown,
    dollars::dollars,
    gate::percent,
    metrics::Metrics,
    preference::Preference,
    record::SkillChanges,
    view::LaneReport,
    visible::safe,
};
use serde_json::{Value, json};

use crate::{
    MOST_CATEGORIES,
    json::figures,
    markdown::escape::cell,
    plain::{fitted, flush_left, name_width, one_line},
    text::{millis, shown_interval},
};

pub use entrants::{Compare, CompareError, Entrant, Terms, build};
pub use page::{Find, html};

/// Flips of a kind that are listed; JSON has them all.
const LISTED: usize = 25;

/// Runs beside each other.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// What is compared, the one that the others are held against first.
    pub sides: Vec<Side>,
    /// Each of the others against the first, for each runner they share.
    pub pairs: Vec<Pair>,
    /// What to keep in mind.
    pub notes: Vec<String>,
}

/// One lane of a comparison.
#[derive(Clone, Debug)]
pub struct Side {
    /// How people call it.
    pub name: String,
    /// Its figures.
    pub report: LaneReport,
}

/// Two lanes, case by case.
#[derive(Clone, Debug)]
pub struct Pair {
    /// Places in the list of sides.
    pub first: usize,
    /// Places in the list of sides.
    pub second: usize,
    /// What has changed.
    pub changes: Changes,
    /// What has changed about the skills that both are about.
    pub skills: Option<SkillChanges>,
    /// The p-value, corrected for there being several (Holm).
    pub adjusted_p: Option<f64>,
    /// Why flipped cases did not pass, in the run where they did not.
    pub reasons: BTreeMap<String, String>,
    /// The cases that have not flipped, those that do not pass now first.
    pub unchanged: Vec<String>,
    /// A difference, and how many cases it takes to see it.
    pub needed: Option<(f64, u64)>,
    /// Which answers a judge prefers, if one was asked.
    pub preference: Option<Preference>,
}

/// For a terminal.
pub fn text(comparison: &Comparison) -> String {
    let Comparison { sides, pairs, notes } = comparison;
    let mut text = String::new();
    for (at, side) in sides.iter().enumerate() {
        let _ = writeln!(text, "{:<3} {}", letter(at), one_line(&side.name, 72));
    }
    let is_priced = sides.iter().any(|it| it.report.metrics.priced > 0);
    let cost = |it: &str| if is_priced { format!("  {it:>9}") } else { String::new() };
    text.push_str("\n     passed  95 %             pass   fail  error      p95");
    let _ = writeln!(text, "{}", cost("cost"));
    for (at, side) in sides.iter().enumerate() {
        let row = Row::of(&side.report.metrics);
        let _ = writeln!(
            text,
            "{:<3} {:>7}  {:<13} {:>7} {:>6} {:>6}  {:>7}{}",
            letter(at),
            row.rate,
            row.interval,
            row.pass,
            row.fail,
            row.error,
            row.p95,
            cost(&row.cost)
        );
    }
    for (at, side) in sides.iter().enumerate() {
        let undecided = side.report.metrics.all.verdicts.undecided;
        if undecided > 0 {
            let _ = writeln!(text, "{:<3} {undecided} undecided", letter(at));
        }
    }
    for pair in pairs {
        let _ = writeln!(text, "\n{} against {}", letter(pair.second), letter(pair.first));
        let _ = writeln!(text, "  {}", summary(&pair.changes));
        if let Some(skills) = &pair.skills {
            let _ = writeln!(text, "  {}", one_line(&skills.to_string(), 300));
        }
        if let Some(told) = difference(pair) {
            let _ = writeln!(text, "  {told}");
        }
        for line in derived(sides, pair) {
            let _ = writeln!(text, "  {line}");
        }
        for line in preference::lines(pair, [pair.first, pair.second].map(letter)) {
            let _ = writeln!(text, "  {line}");
        }
        write_categories(&mut text, &pair.changes);
        text.push_str(&listed(&pair.changes, &pair.reasons));
        if let Some((size, cases)) = pair.needed {
            let size = size * 100.0;
            let _ = writeln!(
                text,
                "  to see a difference of {size} points (80 % power, 5 % level): {cases} cases"
            );
        }
    }
    for note in notes {
        let _ = writeln!(text, "\nnote: {}", safe(note));
    }
    text
}

/// What has become of the derived figures that both have.
fn derived(sides: &[Side], pair: &Pair) -> Vec<String> {
    let of = |at: usize| sides[at].report.metrics.derived();
    let (before, now) = (of(pair.first), of(pair.second));
    let both = now.into_iter().filter_map(|now| {
        let before = before.iter().find(|it| it.name == now.name)?;
        let told = |value: &Result<f64, String>| {
            value.as_ref().map_or_else(|_| "n/a".to_owned(), |it| shown(*it))
        };
        let change = match (&before.value, &now.value) {
            (Ok(before), Ok(now)) => {
                let (by, sign) = (now - before, if now < before { "" } else { "+" });
                format!(" ({sign}{})", shown(by))
            }
            (_, _) => String::new(),
        };
        let name = one_line(&now.name, 60);
        Some(format!("derived {name}: {} to {}{change}", told(&before.value), told(&now.value)))
    });
    both.take(LISTED).collect()
}

/// What a side is called in a table.
fn letter(at: usize) -> String {
    match u8::try_from(at).ok().filter(|at| *at < 26) {
        Some(at) => char::from(b'A' + at).to_string(),
        None => format!("#{}", at + 1),
    }
}

/// For a pull request.
pub fn markdown(comparison: &Comparison) -> String {
    let Comparison { sides, pairs, notes } = comparison;
    let mut text = String::from(
        "| | passed | 95 % | pass | fail | error | p95 | cost |\n|---|--:|:-:|--:|--:|--:|--:|--:|\n",
    );
    for side in sides {
        let row = Row::of(&side.report.metrics);
        let (name, error) = (cell(&side.name), row.errors());
        let Row { rate, interval, pass, fail, p95, cost, .. } = row;
        let _ = writeln!(
            text,
            "| {name} | {rate} | {interval} | {pass} | {fail} | {error} | {p95} | {cost} |"
        );
    }
    for pair in pairs {
        let _ = writeln!(text, "\n{}: {}", cell(&title(sides, pair)), summary(&pair.changes));
        if let Some(told) = difference(pair) {
            let _ = writeln!(text, "\n{told}");
        }
        for line in derived(sides, pair) {
            let _ = writeln!(text, "\n{}", cell(&line));
        }
        let names = [pair.first, pair.second].map(|at| one_line(&sides[at].name, 72));
        for line in preference::lines(pair, names) {
            let _ = writeln!(text, "\n{}", cell(&line));
        }
        if let Some(skills) = &pair.skills {
            let _ = writeln!(text, "\n{}", cell(&one_line(&skills.to_string(), 300)));
        }
        let flips = flips(&pair.changes);
        if flips.iter().any(|(_, ids)| !ids.is_empty()) {
            text.push_str(
                "\n<details><summary>cases</summary>\n\n| | case | why |\n|---|---|---|\n",
            );
            for (word, ids) in flips {
                for id in ids.iter().take(LISTED) {
                    let reason =
                        pair.reasons.get(id).map_or(String::new(), |it| cell(&one_line(it, 120)));
                    let _ = writeln!(text, "| {word} | {} | {reason} |", cell(id));
                }
                if ids.len() > LISTED {
                    let _ = writeln!(text, "| {word} | and {} more | |", ids.len() - LISTED);
                }
            }
            text.push_str("\n</details>\n");
        }
    }
    for note in notes {
        let _ = writeln!(text, "\n> {}", cell(note));
    }
    text
}

/// For programs.
pub fn json(comparison: &Comparison) -> Value {
    let Comparison { sides, pairs, notes } = comparison;
    let side = |side: &Side| {
        let mut value = figures(&side.report.metrics);
        value.insert("name".to_owned(), json!(side.name));
        value.insert("runner".to_owned(), json!(side.report.lane.runner));
        value.insert("backend".to_owned(), json!(side.report.lane.backend));
        value.insert("variant".to_owned(), json!(side.report.lane.variant));
        value.insert("model".to_owned(), json!(side.report.lane.model));
        value
    };
    let pair = |pair: &Pair| {
        let Changes {
            regressions,
            fixes,
            lost,
            vanished,
            new,
            common,
            passed,
            categories,
            difference,
        } = &pair.changes;
        json!({
            "first": sides[pair.first].name,
            "second": sides[pair.second].name,
            "common": common,
            "passed_first": passed.0,
            "passed_second": passed.1,
            "difference": difference.map(|it| it.value),
            "interval": difference.map(|it| [it.interval.low, it.interval.high]),
            "p_value": difference.map(|it| it.p_value),
            "p_value_holm": pair.adjusted_p,
            "cases_needed": pair.needed.map(|(difference, cases)| {
                json!({ "difference": difference, "cases": cases })
            }),
            "categories": categories.iter().map(|(category, (cases, before, now))| {
                let counts = json!({ "cases": cases, "first": before, "second": now });
                (category.to_string(), counts)
            }).collect::<BTreeMap<_, _>>(),
            "regressions": regressions,
            "fixes": fixes,
            "lost": lost,
            "vanished": vanished,
            "new": new,
            "reasons": pair.reasons,
            "skills": pair.skills,
            "preference": pair.preference.as_ref().map(preference::json),
        })
    };
    json!({
        "sides": sides.iter().map(side).collect::<Vec<_>>(),
        "pairs": pairs.iter().map(pair).collect::<Vec<_>>(),
        "notes": notes,
    })
}

/// The figures of a side as people read them.
struct Row {
    rate: String,
    interval: String,
    pass: u64,
    fail: u64,
    error: u64,
    undecided: u64,
    p95: String,
    cost: String,
}

impl Row {
    fn of(metrics: &Metrics) -> Self {
        let verdicts = metrics.all.verdicts;
        let none = || "-".to_owned();
        Self {
            rate: percent(verdicts.pass, verdicts.judged()),
            interval: metrics.interval.map_or_else(none, shown_interval),
            pass: verdicts.pass,
            fail: verdicts.fail,
            error: verdicts.error,
            undecided: verdicts.undecided,
            p95: metrics.latency.map_or_else(none, |it| millis(it.p95)),
            cost: match metrics.priced {
                0 => none(),
                _ => dollars(metrics.cost_usd),
            },
        }
    }
}

impl Row {
    /// Errors, and behind them what nothing decides.
    fn errors(&self) -> String {
        match self.undecided {
            0 => self.error.to_string(),
            undecided => format!("{} ({undecided} undecided)", self.error),
        }
    }
}

fn title(sides: &[Side], pair: &Pair) -> String {
    format!("{} against {}", sides[pair.second].name, sides[pair.first].name)
}

/// What has changed, in a line.
pub fn summary(changes: &Changes) -> String {
    let Changes { common, passed: (before, now), regressions, fixes, .. } = changes;
    format!(
        "{common} judged in both: {before} passed, {now} pass now ({}), {} worse, {} fixed",
        points(*before, *now, *common),
        regressions.len(),
        fixes.len()
    )
}

/// How sure the difference is.
pub fn difference(pair: &Pair) -> Option<String> {
    let difference = pair.changes.difference?;
    let p_value = difference.p_value;
    let corrected = match pair.adjusted_p {
        Some(adjusted) if (adjusted - p_value).abs() > f64::EPSILON => {
            format!(", {} after Holm's correction", chance(adjusted))
        }
        Some(_) | None => String::new(),
    };
    Some(format!("difference {}{corrected}", in_points(difference)))
}

/// A difference with its interval and its p-value.
fn in_points(difference: Difference) -> String {
    let Difference { value, interval, p_value } = difference;
    let (value, low, high) = (value * 100.0, interval.low * 100.0, interval.high * 100.0);
    let chance = chance(p_value);
    format!("{value:+.1} points (95 % CI {low:+.1} to {high:+.1}), p = {chance}")
}

fn chance(p: f64) -> String {
    match p {
        p if p < 0.0001 => "below 0.0001".to_owned(),
        p => format!("{p:.4}"),
    }
}

/// The cases that changed, a line each, with why they did not pass.
pub fn listed(changes: &Changes, reasons: &BTreeMap<String, String>) -> String {
    let mut text = String::new();
    for (word, ids) in flips(changes) {
        for id in ids.iter().take(LISTED) {
            let reason = reasons.get(id).map_or(String::new(), |it| one_line(it, 44));
            let _ = writeln!(text, "    {word:<8} {} {reason}", flush_left(&one_line(id, 24), 24));
        }
        if ids.len() > LISTED {
            let _ = writeln!(text, "    {word:<8} and {} more", ids.len() - LISTED);
        }
    }
    text
}

/// The kinds of changes, the gravest first.
pub fn flips(changes: &Changes) -> [(&'static str, &[String]); 5] {
    [
        ("worse", &changes.regressions),
        ("gone", &changes.vanished),
        ("unjudged", &changes.lost),
        ("fixed", &changes.fixes),
        ("new", &changes.new),
    ]
}

fn write_categories(text: &mut String, changes: &Changes) {
    let listed = || changes.categories.iter().take(MOST_CATEGORIES);
    let width = name_width(listed().map(|(category, _)| category.as_str()));
    for (category, (cases, before, now)) in listed() {
        let (name, change) =
            (flush_left(&fitted(category.as_str(), width), width), points(*before, *now, *cases));
        let _ = writeln!(text, "    {name} {before} to {now} of {cases} ({change})");
    }
    let more = changes.categories.len().saturating_sub(MOST_CATEGORIES);
    if more > 0 {
        let _ = writeln!(text, "    and {more} more categories");
    }
}

fn points(before: u64, now: u64, whole: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
    let change = (now as f64 - before as f64) / (whole.max(1) as f64) * 100.0;
    format!("{change:+.1} points")
}
