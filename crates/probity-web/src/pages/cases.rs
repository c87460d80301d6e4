//! The results of a run as a table.

use std::collections::BTreeSet;

use maud::{Markup, html};
use probity_core::{
    case::Category,
    classification::{Class, Verdict},
    dollars::dollars,
    record::CaseRecord,
    view::RunView,
};
use probity_report::plain::one_line;
use probity_store::{Reader, Sort};

use super::{
    Part, Tab, page,
    parts::{count, empty, grouped, millis, pill},
    run_head,
};
use crate::{
    address::{self, with_query},
    filter::{CaseFilter, Pair, shown_cursor},
    load::{self, Cases},
    problem::Problem,
    site::Site,
};

/// Categories or tags to choose from.
const MOST_CHOICES: usize = 200;

pub(crate) fn make(
    site: &Site,
    reader: &Reader,
    name: &str,
    filter: &CaseFilter,
) -> Result<Markup, Problem> {
    let cases = load::cases(reader, name, filter)?;
    let view = site.view(reader, &cases.row)?;
    let content = html! {
        (run_head(&cases.row, cases.lanes.len(), Tab::Cases))
        section #cases .panel {
            div.bar {
                h2 { "Cases" }
                p #count role="status" { (told(&cases, filter)) }
            }
            (filters(&cases, &view, filter))
            @if cases.page.rows.is_empty() { (nothing(&cases, filter)) } @else {
                (table(&cases, filter))
                (pager(&cases, filter))
            }
        }
    };
    Ok(page(Part::Runs, &format!("Cases of {} {}", cases.row.suite, cases.row.short()), &content))
}

/// How many there are.
fn told(cases: &Cases, filter: &CaseFilter) -> String {
    let shown = cases.page.rows.len() as u64;
    let some = |which: &str| format!("the {which} {} that match", grouped(shown));
    match (cases.page.total, filter.after.is_some(), cases.page.next.is_some()) {
        (Some(total), _, _) => count(total, "result", "results"),
        (None, false, false) => count(shown, "result", "results"),
        (None, false, true) => some("first"),
        (None, true, true) => some("next"),
        (None, true, false) => some("last"),
    }
}

fn nothing(cases: &Cases, filter: &CaseFilter) -> Markup {
    let is_filtered = !filter.pairs().is_empty();
    let here = address::cases(&cases.row.run_id);
    match is_filtered {
        true => empty(
            "Nothing matches these filters",
            &html! { p { a href=(here) { "Show all results" } } },
        ),
        false => empty(
            "No results yet",
            &html! { p { "Results show up here as soon as cases come to an end." } },
        ),
    }
}

/// A list to choose one of.
struct Choice<'a> {
    name: &'static str,
    label: &'static str,
    chosen: Option<String>,
    /// Values, and what people read.
    values: Vec<(String, &'a str)>,
    /// How many there have to be for a choice.
    least: usize,
}

fn choices<'a>(
    cases: &Cases,
    view: &'a RunView,
    titles: &'a [String],
    filter: &CaseFilter,
) -> Vec<Choice<'a>> {
    let metrics = || view.lanes.iter().map(|it| &it.metrics);
    let categories: BTreeSet<&str> =
        metrics().flat_map(|it| it.categories.keys()).map(Category::as_str).collect();
    let tags: BTreeSet<&str> =
        metrics().flat_map(|it| it.tags.keys()).map(String::as_str).collect();
    let has = |class: &Class| metrics().any(|it| it.all.classes.get(*class) > 0);
    let named = |names: BTreeSet<&'a str>| {
        names.into_iter().take(MOST_CHOICES).map(|it| (it.to_owned(), it)).collect()
    };
    let verdicts = Verdict::ALL.map(|it| (it.as_str().to_owned(), it.as_str())).to_vec();
    let classes = Class::ALL.into_iter().filter(has);
    vec![
        Choice {
            name: "verdict",
            label: "Verdict",
            chosen: filter.verdict.map(|it| it.to_string()),
            values: verdicts,
            least: 1,
        },
        Choice {
            name: "class",
            label: "Class",
            chosen: filter.class.map(|it| it.to_string()),
            values: classes.map(|it| (it.as_str().to_owned(), it.as_str())).collect(),
            least: 2,
        },
        Choice {
            name: "lane",
            label: "Lane",
            chosen: filter.lane.map(|it| it.to_string()),
            values: (1..=cases.lanes.len())
                .map(|it| it.to_string())
                .zip(titles.iter().map(String::as_str))
                .collect(),
            least: 2,
        },
        Choice {
            name: "category",
            label: "Category",
            chosen: filter.category.clone(),
            values: named(categories),
            least: 2,
        },
        Choice {
            name: "tag",
            label: "Tag",
            chosen: filter.tag.clone(),
            values: named(tags),
            least: 1,
        },
    ]
}

fn filters(cases: &Cases, view: &RunView, filter: &CaseFilter) -> Markup {
    let here = address::cases(&cases.row.run_id);
    let titles: Vec<String> =
        cases.lanes.iter().map(|it| one_line(&it.lane.key().to_string(), 60)).collect();
    let repeats = cases.lanes.iter().any(|it| it.lane.repeat > 1);
    // What the form has no field for is kept.
    let shown = ["verdict", "class", "lane", "category", "tag", "q", "flaky"];
    let kept = filter.pairs().into_iter().filter(|(name, _)| !shown.contains(name));
    let chips: Vec<Pair> =
        kept.clone().filter(|(name, _)| !["sort", "limit"].contains(name)).collect();
    html! {
        form #filters method="get" action=(here) role="search" data-auto {
            input #q name="q" type="search" value=[filter.text.as_ref()] placeholder="Words in id, prompt or reply  ( / )"
                autocomplete="off" spellcheck="false" aria-label="Words in id, prompt or reply";
            @for Choice { name, label, chosen, values, least } in choices(cases, view, &titles, filter) {
                @if values.len() >= least || chosen.is_some() {
                    select name=(name) aria-label=(label) class=[chosen.as_ref().map(|_| "set")] {
                        option value="" { (label) }
                        @for (value, text) in &values {
                            option value=(value) selected[chosen.as_ref() == Some(value)] { (one_line(text, 60)) }
                        }
                        @if let Some(other) = chosen.as_ref().filter(|it| !values.iter().any(|(value, _)| value == *it)) {
                            option value=(other) selected { (one_line(other, 60)) }
                        }
                    }
                }
            }
            @if repeats || filter.flaky {
                label.check { input type="checkbox" name="flaky" value="1" checked[filter.flaky]; " flaky" }
            }
            @for (name, value) in kept { input type="hidden" name=(name) value=(value); }
            button type="submit" { "Filter" }
            @if !filter.pairs().is_empty() { a.clear href=(here) { "Clear" } }
        }
        @if !chips.is_empty() {
            p.chips { @for (name, value) in &chips { span.tag dir="auto" { (name) ": " (one_line(value, 80)) } " " } }
        }
    }
}

/// The columns: what they are put in order by, the name of their style, and what people read.
const COLUMNS: [(Option<Sort>, &str, &str); 9] = [
    (Some(Sort::Verdict), "verdict", "Verdict"),
    (Some(Sort::Case), "id", "Case"),
    (None, "lane", "Lane"),
    (Some(Sort::Class), "class", "Class"),
    (Some(Sort::Category), "category", "Category"),
    (None, "reason", "Reason or prompt"),
    (Some(Sort::Latency), "ms", "Latency"),
    (Some(Sort::Tokens), "tokens", "Tokens"),
    (Some(Sort::Cost), "cost", "Cost"),
];

fn table(cases: &Cases, filter: &CaseFilter) -> Markup {
    let records = || cases.page.rows.iter().map(|it| &it.record);
    let mut classes = Vec::new();
    if cases.chosen.len() == 1 {
        classes.push("single");
    }
    if !records().any(|it| it.case.category.is_some()) {
        classes.push("no-category");
    }
    if !records().any(|it| it.usage.total() > 0) {
        classes.push("no-tokens");
    }
    if !records().any(|it| it.cost_usd.is_some()) {
        classes.push("no-cost");
    }
    html! {
        div.scroll {
            table #table class=(classes.join(" ")) {
                thead { tr { @for column in COLUMNS { (heading(cases, filter, column)) } } }
                tbody #rows data-rows {
                    @for row in &cases.page.rows { (case_row(cases, cases.chosen[row.lane], &row.record)) }
                }
            }
        }
    }
}

fn heading(
    cases: &Cases,
    filter: &CaseFilter,
    (sort, style, label): (Option<Sort>, &str, &str),
) -> Markup {
    let Some(sort) = sort else {
        return html! { th scope="col" class={ "c-" (style) } { (label) } };
    };
    let is_sorted = filter.sort == sort;
    let is_number = matches!(sort, Sort::Latency | Sort::Tokens | Sort::Cost);
    // The largest first, and turned round by the next click.
    let descending = if is_sorted { !filter.descending } else { is_number };
    let turned = CaseFilter { sort, descending, after: None, ..filter.clone() };
    let href = with_query(&address::cases(&cases.row.run_id), turned.pairs());
    let order = is_sorted.then_some(if filter.descending { "descending" } else { "ascending" });
    html! { th scope="col" class={ "c-" (style) } aria-sort=[order] { a href=(href) { (label) } } }
}

fn case_row(cases: &Cases, at: usize, record: &CaseRecord) -> Markup {
    let href = address::case(&cases.row.run_id, &record.case_id, at, record.repeat);
    let why = match record.verdict {
        Verdict::Pass => record.request.shown().into_owned(),
        Verdict::Fail | Verdict::Error | Verdict::Undecided => record.why(),
    };
    let tokens = record.usage.total();
    html! {
        tr {
            td.c-verdict { (pill(record.verdict)) }
            td.c-id dir="auto" title=(one_line(&record.case_id, 300)) {
                a href=(href) data-main { (one_line(&record.case_id, 120)) }
                @if record.repeat > 0 { span.sub-mark { "repeat " (record.repeat + 1) } }
            }
            td.c-lane dir="auto" { (one_line(&cases.lanes[at].lane.key().to_string(), 60)) }
            td.c-class { span class={ "dot " (record.class) } {} (record.class) }
            td.c-category dir="auto" { @if let Some(it) = &record.case.category { (one_line(it.as_str(), 40)) } }
            td.c-reason dir="auto" { (one_line(&why, 240)) }
            td.c-ms { (millis(record.latency_ms)) }
            td.c-tokens { @if tokens > 0 { (grouped(tokens)) } }
            td.c-cost { @if let Some(cost) = record.cost_usd { (dollars(cost)) } }
        }
    }
}

fn pager(cases: &Cases, filter: &CaseFilter) -> Markup {
    let here = address::cases(&cases.row.run_id);
    let next = cases.page.next.as_ref().map(|cursor| {
        let mut pairs = filter.pairs();
        pairs.push(("after", shown_cursor(cursor)));
        with_query(&here, pairs)
    });
    html! {
        nav.pages aria-label="Pages" {
            @if filter.after.is_some() { a href=(with_query(&here, filter.pairs())) { "« First page" } }
            @if let Some(next) = next { a rel="next" href=(next) { "Next page ›" } }
        }
    }
}
