//! Ways to choose lines and fields that come to the same.

use crate::field::Field;

/// What a script of `sed` that only chooses lines does, as the arguments of `head` or `tail`, and how many words it took.
pub(super) fn chosen(arguments: &[Field]) -> Option<(&'static str, Vec<String>, usize)> {
    let texts: Vec<&str> = arguments.iter().map(|it| &*it.text).collect();
    let (choice, used) = match &texts[..] {
        ["-n", script, ..] => (printing(script)?, 2),
        [script, ..] if !script.starts_with('-') => (deleting(script)?, 1),
        _ => return None,
    };
    let (utility, count) = match choice {
        Choice::First(count) => ("head", count.to_string()),
        Choice::Last => ("tail", "1".to_owned()),
        Choice::From(line) => ("tail", format!("+{line}")),
    };
    Some((utility, vec!["-n".to_owned(), count], used))
}

enum Choice {
    First(u64),
    Last,
    From(u64),
}

fn number(text: &str) -> Option<u64> {
    // Short enough that a line more or less still fits.
    let short = (1..16).contains(&text.len());
    let plain = short && !text.starts_with('0') && text.bytes().all(|it| it.is_ascii_digit());
    plain.then(|| text.parse().ok())?
}

/// `sed -n SCRIPT`
fn printing(script: &str) -> Option<Choice> {
    let lines = script.strip_suffix('p')?;
    match lines.split_once(',') {
        Some(("1", last)) => number(last).map(Choice::First),
        Some(_) => None,
        None if lines == "$" => Some(Choice::Last),
        None => (lines == "1").then_some(Choice::First(1)),
    }
}

/// `sed SCRIPT`
fn deleting(script: &str) -> Option<Choice> {
    if let Some(last) = script.strip_suffix('q') {
        return match last {
            "" => Some(Choice::First(1)),
            last => number(last).map(Choice::First),
        };
    }
    let lines = script.strip_suffix('d')?;
    match lines.split_once(',') {
        Some(("1", last)) => number(last).map(|it| Choice::From(it + 1)),
        Some(_) => None,
        None => (lines == "1").then_some(Choice::From(2)),
    }
}

/// `awk -F: '{print $1}'` is `cut -d: -f1`. Of later fields it is not true: they part on lines without the sign.
pub(super) fn first_field(arguments: &[Field]) -> Option<(Vec<String>, usize)> {
    let texts: Vec<&str> = arguments.iter().map(|it| &*it.text).collect();
    let (sign, program, used) = match &texts[..] {
        ["-F", sign, program, ..] => (*sign, *program, 3),
        [joined, program, ..] if joined.starts_with("-F") && joined.len() > 2 => {
            (&joined[2..], *program, 2)
        }
        _ => return None,
    };
    let sign = if matches!(sign, "\\t" | "\t") { "\t" } else { sign };
    let compact: String = program.chars().filter(|it| !it.is_ascii_whitespace()).collect();
    let mut signs = sign.chars();
    let literal = signs.next().filter(|it| it.is_ascii() && !matches!(it, ' ' | '\\' | 't'))?;
    if compact != "{print$1}" || signs.next().is_some() || crate::field::is_marker(literal) {
        return None;
    }
    Some((vec!["-d".to_owned(), sign.to_owned(), "-f".to_owned(), "1".to_owned()], used))
}
