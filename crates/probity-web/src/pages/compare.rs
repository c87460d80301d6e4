//! Runs beside each other.

use maud::{Markup, html};
use probity_core::{case_outcome::Changes, record::CaseRecord};
use probity_report::{
    compare::{
        Pair, flips,
        page::{above, heading, overview, row},
    },
    plain::one_line,
};
use probity_store::{Reader, RunsQuery};

use super::{
    Part, page,
    parts::{count, empty},
    runs::before_the_first,
};
use crate::{
    address::{self, encoded},
    load::{self, Compared},
    problem::Problem,
    site::Site,
};

/// Cases of a pair whose answers are shown.
const MOST_CASES: usize = 30;
/// Runs to choose from.
const MOST_CHOICES: usize = 200;

pub(crate) fn make(site: &Site, reader: &Reader, names: &[String]) -> Result<Markup, Problem> {
    if names.is_empty() && reader.suites()?.is_empty() {
        return Ok(before_the_first(Part::Compare, &site.options.store));
    }
    let chosen = choice(reader, names)?;
    if names.len() < 2 {
        let content = html! {
            div.head { div.title { h1 { "Compare" } } }
            (chosen)
            (empty("Choose two runs", &html! {
                p { "The second is held against the first: cases that flipped, their answers on both sides, and how sure the difference is." }
                p { "More than two can be ticked in the " a href="/" { "list of runs" } "." }
            }))
        };
        return Ok(page(Part::Compare, "Compare", &content));
    }
    let compared = load::compared(site, reader, names)?;
    let comparison = &compared.comparison;
    let mut pairs = Vec::new();
    for pair in &comparison.pairs {
        pairs.push(html! {
            section.pair-section {
                (above(&comparison.sides, pair))
                (flipped(reader, &compared, pair)?)
            }
        });
    }
    let content = html! {
        link rel="stylesheet" href="/assets/compare.css";
        div.head { div.title { h1 { "Compare" } } }
        (chosen)
        (overview(&comparison.sides))
        @for pair in pairs { (pair) }
        @for note in &comparison.notes { p.note { (one_line(note, 400)) } }
    };
    Ok(page(Part::Compare, "Compare", &content))
}

/// A form that chooses two runs.
fn choice(reader: &Reader, names: &[String]) -> Result<Markup, Problem> {
    let runs = reader.runs_page(&RunsQuery { limit: MOST_CHOICES, ..RunsQuery::default() })?.runs;
    let name = |at: usize| names.get(at).map_or("", String::as_str);
    let run_of = |at: usize| name(at).split('@').next().unwrap_or_default();
    let part_of = |at: usize| name(at).split_once('@').map(|(_, part)| part);
    let select = |at: usize, label: &str| {
        html! {
            select name="run" aria-label=(label) {
                option value="" { (label) }
                @for run in &runs {
                    @let is_it = !run_of(at).is_empty() && (run.run_id == run_of(at) || run.short() == run_of(at));
                    @let value = match part_of(at).filter(|_| is_it) { Some(part) => format!("{}@{part}", run.run_id), None => run.run_id.clone() };
                    option value=(value) selected[is_it] {
                        (run.short()) " " (one_line(&run.suite, 40))
                        @if let Some(part) = part_of(at).filter(|_| is_it) { " @ " (one_line(part, 40)) }
                    }
                }
            }
        }
    };
    // Boxes come the latest first, so the later run stands first in the form, too.
    Ok(html! {
        form.filters method="get" action="/compare" {
            (select(names.len().saturating_sub(1).max(1), "This run")) span { "against" } (select(0, "the run before"))
            button type="submit" { "Compare" }
        }
    })
}

/// The cases that flipped, with what both sides answered.
fn flipped(reader: &Reader, compared: &Compared, pair: &Pair) -> Result<Markup, Problem> {
    let sides = &compared.comparison.sides;
    let all: Vec<(&str, &String)> = flips(&pair.changes)
        .into_iter()
        .flat_map(|(word, ids)| ids.iter().map(move |id| (word, id)))
        .collect();
    if all.is_empty() {
        return Ok(html! { p.note { "No case has flipped." } });
    }
    let (first, second) = (&compared.lanes[pair.first], &compared.lanes[pair.second]);
    let mut rows = Vec::new();
    for (word, id) in all.iter().take(MOST_CASES) {
        let answers: [Vec<CaseRecord>; 2] =
            [reader.case(&first.2, id)?, reader.case(&second.2, id)?];
        let links = html! {
            p.sub {
                a href=(address::case(&first.0.run_id, id, first.1, 0)) { "before" } " → "
                a href=(address::case(&second.0.run_id, id, second.1, 0)) { "now" }
            }
        };
        rows.push(row(word, id, &answers, &links));
    }
    let more = all.len().saturating_sub(MOST_CASES);
    // The table finds the same lane of another run and no other.
    let is_found = first.0.run_id != second.0.run_id && first.2.lane.key() == second.2.lane.key();
    let table = is_found.then(|| {
        let (cases, other) = (address::cases(&second.0.run_id), encoded(&first.0.run_id));
        format!("{cases}?lane={}&flipped={other}", second.1 + 1)
    });
    Ok(html! {
        (categories(&pair.changes))
        table.cases { (heading(sides, pair)) tbody { @for row in rows { (row) } } }
        @if more > 0 {
            p.note {
                "and " (count(more as u64, "more case", "more cases"))
                @if let Some(table) = table { ": " a href=(table) { "all that flipped" } }
            }
        }
    })
}

/// What has changed by category.
fn categories(changes: &Changes) -> Markup {
    html! {
        @if changes.categories.len() > 1 {
            ul.by-category {
                @for (category, (cases, before, now)) in changes.categories.iter().take(40) {
                    li { span dir="auto" { (one_line(category.as_str(), 60)) } " " b { (before) " → " (now) } " of " (cases) }
                }
            }
        }
    }
}
