//! CSV: one row for each result, for spreadsheets and scripts.
//!
//! RFC 4180 in UTF-8. A text that a spreadsheet could take for a formula gets an apostrophe
//! before it; our own numbers stay numbers.

use std::{borrow::Cow, io};

use probity_core::{
    classification::Verdict,
    record::{CaseRecord, Lane},
    view::{Cases, RunView},
};

use crate::answers;

/// The columns, in their order.
pub const COLUMNS: [&str; 24] = [
    "runner",
    "backend",
    "model",
    "case_id",
    "repeat",
    "category",
    "tags",
    "class",
    "verdict",
    "reason",
    "prompt",
    "expected",
    "actual",
    "latency_ms",
    "input_tokens",
    "output_tokens",
    "cost_usd",
    "calls",
    "error_kind",
    "source",
    "case_verdict",
    "ttft_ms",
    "tokens_per_second",
    "variant",
];

/// The header and a row for each result.
pub fn write(run: &RunView, cases: &dyn Cases, out: &mut dyn io::Write) -> io::Result<()> {
    write!(out, "{}\r\n", COLUMNS.join(","))?;
    for (at, lane) in run.lanes.iter().enumerate() {
        answers::each(cases, at, &lane.lane, &mut |counted| {
            let mut rows = counted.answers.iter();
            rows.try_for_each(|case| write_row(&lane.lane, case, counted.verdict, out))
        })?;
    }
    Ok(())
}

fn write_row(
    lane: &Lane,
    case: &CaseRecord,
    case_verdict: Verdict,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let reason = match case.verdict {
        Verdict::Pass => String::new(),
        Verdict::Fail | Verdict::Error | Verdict::Undecided => case.why(),
    };
    let asked = case.request.shown();
    let number = |value: Option<u64>| value.map(|it| it.to_string()).unwrap_or_default();
    let cells: [Cow<'_, str>; COLUMNS.len()] = [
        text(&lane.runner),
        text(&lane.backend),
        text(case.model.as_deref().or(lane.model.as_deref()).unwrap_or_default()),
        text(&case.case_id),
        case.repeat.to_string().into(),
        case.case.category.as_ref().map_or("", |it| it.as_str()).into(),
        text(&case.case.tags.join(";")).into_owned().into(),
        case.class.as_str().into(),
        case.verdict.as_str().into(),
        text(&reason),
        text(&asked),
        text(&case.expected().unwrap_or_default()).into_owned().into(),
        text(case.actual().unwrap_or_default()),
        case.latency_ms.to_string().into(),
        number(case.usage.input_tokens).into(),
        number(case.usage.output_tokens).into(),
        case.cost_usd.map(|it| it.to_string()).unwrap_or_default().into(),
        case.calls.to_string().into(),
        case.error.as_ref().map_or("", |it| it.kind.as_str()).into(),
        case.source.as_str().into(),
        case_verdict.as_str().into(),
        number(case.ttft_ms).into(),
        case.tokens_per_second.map(|it| format!("{it:.1}")).unwrap_or_default().into(),
        text(lane.variant.as_deref().unwrap_or_default()),
    ];
    for (at, cell) in cells.iter().enumerate() {
        if at > 0 {
            out.write_all(b",")?;
        }
        write_cell(cell, out)?;
    }
    out.write_all(b"\r\n")
}

fn write_cell(cell: &str, out: &mut dyn io::Write) -> io::Result<()> {
    if !cell.contains([',', '"', '\r', '\n']) && cell.trim() == cell {
        return out.write_all(cell.as_bytes());
    }
    write!(out, "\"{}\"", cell.replace('"', "\"\""))
}

/// A text as a cell: without NUL, which many readers take for the end, without what moves the
/// cursor of whoever looks at the file in a terminal, and never a formula.
fn text(text: &str) -> Cow<'_, str> {
    let shown = match text.contains(is_harmful) {
        true => Cow::Owned(text.chars().map(harmless).collect()),
        false => Cow::Borrowed(text),
    };
    match is_formula(&shown) {
        true => Cow::Owned(format!("'{shown}")),
        false => shown,
    }
}

/// Whether a terminal could do something else with it than show it.
fn is_harmful(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\r' | '\t')
}

/// The character, or a picture of one that is none.
fn harmless(c: char) -> char {
    match u32::from(c) {
        _ if !is_harmful(c) => c,
        code @ 0..0x20 => char::from_u32(0x2400 + code).unwrap_or('␀'),
        0x7f => '␡',
        _ => char::REPLACEMENT_CHARACTER,
    }
}

/// Whether a spreadsheet could see a formula in it, also behind blanks and quotes.
///
/// Since it looks behind apostrophes, the one that [`text`] adds can be told from one that was
/// there: a cell `'x` was guarded if and only if `x` alone looks like a formula.
fn is_formula(text: &str) -> bool {
    let starts = |text: &str| {
        let signs = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];
        text.starts_with(signs)
    };
    starts(text) || starts(text.trim_start_matches([' ', '\u{a0}', '\u{feff}', '\'', '"']))
}

#[cfg(test)]
mod tests;
