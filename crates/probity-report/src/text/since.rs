//! What has flipped since an earlier run.

use std::fmt::Write as _;

use probity_core::evaluation::time;

use super::{BAD, GOOD, Page, TITLE};
use crate::plain::{fitted, one_line, wrapped};

/// Cases that are named of a kind.
const NAMED: usize = 6;

/// An earlier run that a run can be compared with, and what is different now.
#[derive(Clone, Debug)]
pub struct Since {
    /// The part of its name that is enough for people.
    pub short: String,
    /// When it began, in milliseconds since 1970.
    pub started_ms: i64,
    /// The lanes that both runs have.
    pub lanes: Vec<Flips>,
}

/// Cases of a lane whose verdict is another one now.
#[derive(Clone, Debug)]
pub struct Flips {
    /// The lane's place in the run.
    pub lane: usize,
    /// Passed then, fail now.
    pub failing: Vec<String>,
    /// Failed then, pass now.
    pub passing: Vec<String>,
}

pub(super) fn write(text: &mut String, page: &Page<'_>, since: &Since) {
    let Since { short, started_ms, lanes } = since;
    let count = |of: fn(&Flips) -> &Vec<String>| lanes.iter().map(|it| of(it).len()).sum::<usize>();
    let (failing, passing) = (count(|it| &it.failing), count(|it| &it.passing));
    let when = time(*started_ms);
    let found = match failing + passing {
        0 => "no case has flipped".to_owned(),
        _ => format!("{failing} newly failing, {passing} newly passing"),
    };
    let line = format!("\n{TITLE}since run {short}{TITLE:#} of {when}: {found}\n");
    text.push_str(&wrapped(&line, page.width));
    for flips in lanes {
        for (style, word, ids) in
            [(BAD, "failing", &flips.failing), (GOOD, "passing", &flips.passing)]
        {
            if !ids.is_empty() {
                let label = match page.has_several_lanes() {
                    true => format!("{}: ", one_line(&page.label(&page.run.lanes[flips.lane]), 30)),
                    false => String::new(),
                };
                let line = fitted(&format!("{label}{}", named(ids)), page.width.saturating_sub(17));
                let _ = writeln!(text, "  {style}newly {word}{style:#}  {line}");
            }
        }
    }
    if failing + passing > 0 {
        let _ = writeln!(text, "  side by side: probity compare {short} {}", page.run.short);
    }
}

/// The first few ids, after how many more there are.
fn named(ids: &[String]) -> String {
    let first: Vec<String> = ids.iter().take(NAMED).map(|id| one_line(id, 40)).collect();
    match ids.len().saturating_sub(NAMED) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}
