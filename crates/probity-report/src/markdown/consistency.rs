//! How far backends agree, for a pull request.

use std::fmt::Write as _;

use probity_core::{
    consistency::{Consistency, Divergence},
    view::RunView,
};

use super::{LIST_LIMIT, MOST_NAME, MOST_ROWS, escape::span, list, more, upper_first};
use crate::{
    plain::one_line,
    text::consistency::{agreed, counted, of_repeat, reasons},
};

/// Agreement and divergences of all runners. Each of its two lists is as long as any.
pub(super) fn render(run: &RunView) -> String {
    let mut text = String::new();
    if run.consistency.is_empty() {
        return text;
    }
    text.push_str("**Agreement of backends**\n\n");
    list(&mut text, run.consistency.iter().flat_map(lines), "lines");
    let total: u64 = run.consistency.iter().map(|it| it.diverge.total()).sum();
    if total == 0 {
        return text;
    }
    let _ = writeln!(text, "<details><summary><b>{total} divergences</b></summary>\n");
    let (begin, mut shown) = (text.len(), 0);
    let all = run.consistency.iter().flat_map(|it| it.divergences.iter().map(move |of| (it, of)));
    for line in all.take(MOST_ROWS).map(|(found, divergence)| line(found, divergence)) {
        if text.len() - begin + line.len() >= LIST_LIMIT {
            break;
        }
        text.push_str(&line);
        shown += 1;
    }
    text.push('\n');
    more(&mut text, usize::try_from(total).unwrap_or(usize::MAX) - shown, "divergences");
    text.push_str("</details>\n\n");
    text
}

/// The counts, and each pair of backends.
fn lines(found: &Consistency) -> impl Iterator<Item = String> {
    let runner = span(&one_line(&found.task(), 60));
    let counts: Vec<String> = std::iter::once(counted(found)).chain(reasons(found)).collect();
    let first = format!("- {runner}: {}\n", counts.join("; "));
    let pairs = found.pairs.iter().map(move |pair| {
        let [left, right] = pair.backends.map(|at| span(&one_line(&found.backends[at], 60)));
        format!("- {runner}: {left} and {right}: {}\n", agreed(pair))
    });
    std::iter::once(first).chain(pairs)
}

fn line(found: &Consistency, divergence: &Divergence) -> String {
    let Divergence { case_id, repeat, kind: _, groups, without } = divergence;
    let code = |text: &str| span(&one_line(text, MOST_NAME));
    let backend = |at: usize| code(&found.backends[at]);
    let mut text =
        format!("- {}{} in {}", code(case_id), of_repeat(found, *repeat), code(&found.task()));
    for group in groups {
        let names: Vec<String> = group.members.iter().map(|(at, _)| backend(*at)).collect();
        let unread = if group.parsed { "" } else { " (cannot be read)" };
        let outcome = upper_first(group.outcome());
        let _ =
            write!(text, "\n  - {outcome}: {}{unread}: {}", names.join(", "), code(&group.command));
    }
    for (at, why) in without {
        let _ = write!(text, "\n  - None: {}: {}", backend(*at), why.as_str().replace('_', " "));
    }
    text.push('\n');
    text
}
