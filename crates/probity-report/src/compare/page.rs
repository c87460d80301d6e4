//! A comparison as a page for a browser: both answers to each case beside each other.

use std::io;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use probity_core::{classification::Verdict, record::CaseRecord, visible::safe};

use super::{Comparison, Pair, Row, Side, derived, difference, flips, preference, summary, title};
use crate::{
    html as report,
    plain::{capped, one_line},
};

/// Cases of two lanes that are shown beside each other, those that differ first.
const MOST_CASES: usize = 5_000;
/// Characters of an answer or a prompt.
const MOST_TEXT: usize = 8_000;
/// Repeats of a case that are shown.
const MOST_REPEATS: usize = 10;

/// What comparisons add to the style of all pages.
pub const STYLE: &str = include_str!("page.css");
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; \
                      base-uri 'none'; form-action 'none'";

/// Gives the results of a case on one of the sides, a repeat each.
pub type Find<'a> = &'a dyn Fn(usize, &str) -> io::Result<Vec<CaseRecord>>;

/// One page that asks for nothing else. Cases are read one by one.
pub fn html(comparison: &Comparison, find: Find<'_>, out: &mut dyn io::Write) -> io::Result<()> {
    let Comparison { sides, pairs, notes } = comparison;
    let head = html! {
        meta charset="utf-8";
        meta http-equiv="Content-Security-Policy" content=(POLICY);
        meta name="viewport" content="width=device-width";
        link rel="icon" href="data:,";
        title { "Probity comparison" }
        style { (PreEscaped(report::STYLE)) (PreEscaped(STYLE)) }
    };
    let (doctype, head) = (DOCTYPE.into_string(), head.into_string());
    write!(out, "{doctype}<html lang=\"en\"><head>{head}</head><body><main>")?;
    put(out, &html! { h1 { "Comparison" } })?;
    put(out, &overview(sides))?;
    for pair in pairs {
        put(out, &above(sides, pair))?;
        cases(sides, pair, find, out)?;
    }
    put(out, &html! { @for note in notes { p.note { (safe(note)) } } })?;
    out.write_all(b"</main></body></html>\n")
}

fn put(out: &mut dyn io::Write, markup: &Markup) -> io::Result<()> {
    out.write_all(markup.0.as_bytes())
}

/// The figures of all sides, a row each.
pub fn overview(sides: &[Side]) -> Markup {
    html! {
        div.scroll tabindex="0" { table.sides {
            thead { tr {
                @for head in ["lane", "passed", "95 %", "pass", "fail", "error", "p95", "cost"] {
                    th scope="col" { (head) }
                }
            } }
            tbody {
                @for side in sides {
                    @let row = Row::of(&side.report.metrics);
                    @let error = row.errors();
                    tr {
                        th scope="row" dir="auto" { (safe(&side.name)) }
                        td { (row.rate) } td { (row.interval) } td { (row.pass) } td { (row.fail) }
                        td { (error) } td { (row.p95) } td { (row.cost) }
                    }
                }
            }
        } }
    }
}

/// What there is to say about a pair of lanes before its cases.
pub fn above(sides: &[Side], pair: &Pair) -> Markup {
    html! {
        h2 dir="auto" { (safe(&title(sides, pair))) }
        p { (summary(&pair.changes)) }
        @if let Some(told) = difference(pair) { p { (told) } }
        @for line in derived(sides, pair) { p { (line) } }
        @let names = [pair.first, pair.second].map(|at| one_line(&sides[at].name, 72));
        @for line in preference::lines(pair, names) { p { (safe(&line)) } }
        @if let Some(skills) = &pair.skills { p { (safe(&skills.to_string())) } }
    }
}

fn cases(sides: &[Side], pair: &Pair, find: Find<'_>, out: &mut dyn io::Write) -> io::Result<()> {
    let head = heading(sides, pair);
    write!(out, "<table class=\"cases\">{}<tbody>", head.into_string())?;
    let flipped = flips(&pair.changes).into_iter();
    let all = flipped.chain([("", pair.unchanged.as_slice())]);
    let all = all.flat_map(|(word, ids)| ids.iter().map(move |id| (word, id)));
    let mut left_out = 0;
    for (at, (word, id)) in all.enumerate() {
        if at >= MOST_CASES {
            left_out += 1;
            continue;
        }
        let answers = [find(pair.first, id)?, find(pair.second, id)?];
        put(out, &row(word, id, &answers, &preference::of_case(pair, id)))?;
    }
    out.write_all(b"</tbody></table>")?;
    match left_out {
        0 => Ok(()),
        count => put(out, &html! { p.note { "and " (count) " more cases" } }),
    }
}

/// The columns of a table of cases.
pub fn heading(sides: &[Side], pair: &Pair) -> Markup {
    html! {
        colgroup { col.case; col; col; }
        thead { tr {
            th scope="col" { "case" }
            @for at in [pair.first, pair.second] {
                th scope="col" dir="auto" { (safe(&sides[at].name)) }
            }
        } }
    }
}

/// One case: how it changed, and what both sides answered.
pub fn row(word: &str, id: &str, answers: &[Vec<CaseRecord>; 2], preferred: &Markup) -> Markup {
    let asked = |at: usize| answers[at].first().map(|it| &it.request);
    let same = asked(0).is_none() || asked(1).is_none() || asked(0) == asked(1);
    let either = answers.iter().flatten().next();
    html! {
        tr class=(word) {
            td {
                @if !word.is_empty() { span.change { (word) } " " }
                code { (one_line(id, 200)) }
                (preferred)
                @if let Some(case) = either.filter(|_| same) { (question(case)) }
            }
            @for of_side in answers {
                td {
                    @if of_side.is_empty() { span.none { "no result" } }
                    @if let Some(case) = of_side.first().filter(|_| !same) { (question(case)) }
                    @for case in of_side.iter().take(MOST_REPEATS) {
                        (answer(case, of_side.len() > 1))
                    }
                    @if of_side.len() > MOST_REPEATS {
                        p.note { "and " (of_side.len() - MOST_REPEATS) " more repeats" }
                    }
                }
            }
        }
    }
}

fn question(case: &CaseRecord) -> Markup {
    html! {
        details {
            summary { "asked" }
            @if let Some(system) = case.request.system() { (block(system)) }
            (block(&case.request.shown()))
        }
    }
}

fn answer(case: &CaseRecord, is_one_of_several: bool) -> Markup {
    html! {
        div {
            span class={ "pill " (case.verdict) } { (case.verdict) }
            @if is_one_of_several { span.repeat { " repeat " (case.repeat + 1) } }
            @if case.verdict != Verdict::Pass { " " span dir="auto" { (one_line(&case.why(), 300)) } }
            @if let Some(reply) = &case.reply { (block(reply)) }
        }
    }
}

fn block(text: &str) -> Markup {
    let block = html! { pre dir="auto" tabindex="0" { (safe(&capped(text, MOST_TEXT))) } };
    // GitHub obeys lines of a job's output that begin with two colons.
    PreEscaped(block.0.replace("::", "&#58;:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_of_an_answer_is_a_command_to_github() {
        let block = block("a::b\n  ::error::boo\n::set-output::<x>").into_string();
        assert!(!block.contains("::"), "{block}");
        assert!(block.contains("\n  &#58;:error&#58;:boo\n&#58;:set-output"), "{block}");
    }
}
