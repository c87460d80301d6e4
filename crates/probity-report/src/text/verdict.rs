//! The last lines: how it came out, what the exit code is, and what to do next.

use std::fmt::Write as _;

use anstyle::Style;
use probity_core::view::RunView;

use super::{BAD, GOOD, Page, SO_SO, TITLE, failing};
use crate::{
    conclusion::{self, Conclusion},
    plain::{columns, fitted, shell_word},
};

pub(super) fn write(text: &mut String, page: &Page<'_>) {
    let (style, word) = word(page);
    let code = match page.exit_code {
        Some(code) => format!(" (exit code {code})"),
        None => String::new(),
    };
    let left = page.width.saturating_sub(word.len() + code.len() + 2).max(24);
    let (reason, counts) = conclusion::parts(page.run);
    let whole = format!("{reason}; {counts}");
    let fits = |text: &str| columns(text) <= left;
    let why = match whole {
        whole if fits(&whole) => whole,
        // That nothing was asked for says less than how it came out.
        _ if !has_gates(page.run) && page.run.is_sound() && fits(&counts) => counts,
        _ => fitted(&reason, left),
    };
    let style = style.bold();
    let _ = writeln!(text, "\n{style}{word}{style:#}{code}: {why}");
    let _ = writeln!(text, "next: {TITLE}{}{TITLE:#}", next(page));
}

/// One word, by the same rules as the exit code. Without a gate nothing was asked for, so nothing passed.
fn word(page: &Page<'_>) -> (Style, &'static str) {
    let run = page.run;
    match Conclusion::of(run) {
        Conclusion::Passed | Conclusion::Warned if !has_gates(run) => (TITLE, "DONE"),
        Conclusion::Passed => (GOOD, "PASS"),
        Conclusion::Warned => (SO_SO, "PASS"),
        Conclusion::Failed => (BAD, "FAIL"),
        Conclusion::Unsound if !run.is_sound() || run.errors().1 == 0 => (BAD, "ABORTED"),
        Conclusion::Unsound => (BAD, "ERROR"),
    }
}

fn has_gates(run: &RunView) -> bool {
    run.against.is_some() || run.lanes.iter().any(|it| !it.gates.is_empty())
}

/// The command that helps most now.
fn next(page: &Page<'_>) -> String {
    let run = page.run;
    let (short, suite) = (&run.short, failing::suite(page));
    let (errors, _) = run.errors();
    let is_failed = Conclusion::of(run) == Conclusion::Failed;
    match failing::example(page) {
        // Another tool asked, and cannot be told to go on from here.
        _ if !run.is_sound() && run.imported.is_none() => match page.resume {
            Some(command) => command.to_owned(),
            None => format!("probity run{suite} --resume {short}"),
        },
        _ if errors > 0 && !is_failed && run.imported.is_none() => {
            format!("probity run{suite} --retry-errors {short}")
        }
        Some(case) => format!("probity show {short} {}", shell_word(&case)),
        None => format!("probity report {short} -o report.html"),
    }
}
