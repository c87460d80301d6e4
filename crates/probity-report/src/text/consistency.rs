//! How far backends agree, for the terminal.

use std::fmt::Write as _;

use probity_core::{
    consistency::{Consistency, Divergence, Diverging, Pair},
    gate::percent,
};

use super::{BAD, GOOD, SO_SO, TITLE, shown_interval};
use crate::plain::one_line;

/// Divergences that are named; the JSON has all that are listed.
const NAMED: usize = 5;
/// Pairs of backends that are named.
const PAIRS: usize = 10;
/// Characters of a command.
const COMMAND: usize = 50;

pub(super) fn write(text: &mut String, run: &str, found: &Consistency) {
    let title =
        format!("{}: do {} backends agree?", one_line(&found.task(), 40), found.backends.len());
    let _ = writeln!(text, "\n{TITLE}{title}{TITLE:#}");
    let _ = writeln!(text, "  {}", counted(found));
    for pair in found.pairs.iter().take(PAIRS) {
        let [left, right] = pair.backends.map(|at| one_line(&found.backends[at], 24));
        let _ = writeln!(text, "  {left} and {right}: {}", agreed(pair));
    }
    if found.pairs.len() > PAIRS {
        let _ = writeln!(text, "  and {} more pairs", found.pairs.len() - PAIRS);
    }
    for line in reasons(found) {
        let _ = writeln!(text, "  {line}");
    }
    for divergence in found.divergences.iter().take(NAMED) {
        write_divergence(text, found, divergence);
    }
    let shown = found.divergences.len().min(NAMED) as u64;
    let more = found.diverge.total() - shown;
    if more > 0 {
        let most = match found.unlisted() {
            0 => String::new(),
            _ => format!(" (the first {})", found.divergences.len()),
        };
        let _ = writeln!(text, "    and {more} more: probity report {run} -o FILE.json{most}");
    }
}

fn write_divergence(text: &mut String, found: &Consistency, divergence: &Divergence) {
    let Divergence { case_id, repeat, kind: _, groups, without } = divergence;
    let _ = writeln!(text, "    {}{}", one_line(case_id, 60), of_repeat(found, *repeat));
    for group in groups {
        let style = match group.outcome() {
            "pass" => GOOD,
            "fail" => BAD,
            _ => SO_SO,
        };
        let names = names(found, group.members.iter().map(|(at, _)| *at), 40);
        let unread = if group.parsed { "" } else { " (cannot be read)" };
        let _ = writeln!(
            text,
            "      {style}{:<4}{style:#} {}{unread}: {}",
            group.outcome(),
            names,
            one_line(&group.command, COMMAND)
        );
    }
    for (at, why) in without {
        let why = why.as_str().replace('_', " ");
        let _ = writeln!(text, "      none {}: {why}", one_line(&found.backends[*at], 40));
    }
}

/// How many cases agree.
pub(crate) fn counted(found: &Consistency) -> String {
    let things = if found.repeats > 1 { "answers" } else { "cases" };
    let (agree, diverge) = (found.agree, found.diverge.total());
    let uncompared = found.uncompared.total();
    let cases = found.cases();
    format!("{cases} {things}: {agree} agree, {diverge} diverge, {uncompared} not comparable")
}

/// Which cases diverge, and which cannot be compared; a line each, if there are any.
pub(crate) fn reasons(found: &Consistency) -> Vec<String> {
    let Diverging { mixed, failing, passing } = found.diverge;
    let verdicts = [("pass against fail", mixed), ("none passes", failing), ("all pass", passing)];
    let lines = [
        ("not comparable", listed(&found.uncompared.reasons())),
        ("divergences", listed(&verdicts)),
    ];
    let some = lines.into_iter().filter(|(_, counts)| !counts.is_empty());
    some.map(|(name, counts)| format!("{name}: {counts}")).collect()
}

/// Counts that are not zero, with what they count.
fn listed(counts: &[(&str, u64)]) -> String {
    let some = counts.iter().filter(|(_, count)| *count > 0);
    let words = some.map(|(what, count)| format!("{count} {}", what.replace('_', " ")));
    words.collect::<Vec<_>>().join(", ")
}

/// How far two backends agree.
pub(crate) fn agreed(pair: &Pair) -> String {
    let Pair { compared, equal, unknown, .. } = pair;
    let mut text = match pair.interval() {
        None => "nothing to compare".to_owned(),
        Some(interval) => format!(
            "{} agree, {equal} of {compared} (95 % CI {})",
            percent(*equal, *compared),
            shown_interval(interval)
        ),
    };
    if *unknown > 0 {
        let _ = write!(text, ", {unknown} unknown");
    }
    text
}

/// The names of some backends.
pub(crate) fn names(
    found: &Consistency,
    backends: impl Iterator<Item = usize>,
    width: usize,
) -> String {
    backends.map(|at| one_line(&found.backends[at], width)).collect::<Vec<_>>().join(", ")
}

/// Which of several repeats it was.
pub(crate) fn of_repeat(found: &Consistency, repeat: u32) -> String {
    match found.repeats {
        0 | 1 => String::new(),
        _ => format!(", repeat {}", repeat + 1),
    }
}

#[cfg(test)]
mod tests {
    use crate::{Format, sample::side_by_side};

    #[test]
    fn the_section_has_pairs_and_the_first_divergences() {
        let text = side_by_side().written(Format::Text);
        let section = text.split_once("\n\ncommands: do").unwrap().1;
        let section = section.split_once("\n\ngates\n").unwrap().0;
        insta::assert_snapshot!(section);
    }
}
