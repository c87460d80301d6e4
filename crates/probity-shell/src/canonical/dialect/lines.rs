//! Ways to choose lines that come to the same: `sed`, `awk`, `head`, `tail`.

use crate::field::Field;

/// What a script of `sed` or `awk` that only chooses lines does, as the arguments of `head`, `tail` or `sed`.
pub(super) fn chosen(
    name: &str,
    arguments: &[Field],
) -> Option<(&'static str, Vec<String>, usize)> {
    let texts: Vec<&str> = arguments.iter().map(|it| &*it.text).collect();
    let (choice, used) = match (name, &texts[..]) {
        ("sed", ["-n", script, ..]) => (printing(script)?, 2),
        ("sed", [script, ..]) if !script.starts_with('-') => (deleting(script)?, 1),
        ("awk", [program, ..]) if !program.starts_with('-') => (by_number(program)?, 1),
        _ => return None,
    };
    let (utility, options) = match choice {
        Choice::First(count) => ("head", vec!["-n".to_owned(), count]),
        Choice::Last => ("tail", vec!["-n".to_owned(), "1".to_owned()]),
        Choice::From(line) => ("tail", vec!["-n".to_owned(), format!("+{line}")]),
        // Only what other tools say in another way: this is how `sed` says it.
        Choice::Only(lines) if name != "sed" => ("sed", vec!["-n".to_owned(), format!("{lines}p")]),
        Choice::Only(_) => return None,
    };
    Some((utility, options, used))
}

enum Choice {
    First(String),
    Last,
    From(u64),
    /// What `sed -n` would print, in its words.
    Only(String),
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
        Some(("1", last)) => number(last).map(|it| Choice::First(it.to_string())),
        Some(_) => None,
        None if lines == "$" => Some(Choice::Last),
        None => match number(lines)? {
            1 => Some(Choice::First("1".to_owned())),
            line => Some(Choice::Only(line.to_string())),
        },
    }
}

/// `sed SCRIPT`
fn deleting(script: &str) -> Option<Choice> {
    if let Some(last) = script.strip_suffix('q') {
        return match last {
            "" => Some(Choice::First("1".to_owned())),
            last => number(last).map(|it| Choice::First(it.to_string())),
        };
    }
    let lines = script.strip_suffix('d')?;
    match lines.split_once(',') {
        Some(("1", last)) => number(last).map(|it| Choice::From(it + 1)),
        Some(_) => None,
        None => (lines == "1").then_some(Choice::From(2)),
    }
}

/// `awk 'NR==5'`, with or without `{print}`.
fn by_number(program: &str) -> Option<Choice> {
    let compact: String = program.chars().filter(|it| !it.is_ascii_whitespace()).collect();
    let printed = ["{print}", "{print$0}"].iter().find_map(|it| compact.strip_suffix(it));
    let condition = printed.unwrap_or(&compact);
    if let Some((from, to)) = condition.split_once("&&") {
        let (from, to) = (first_line(from)?, last_line(to)?);
        return match from {
            1 => Some(Choice::First(to.to_string())),
            from if from < to => Some(Choice::Only(format!("{from},{to}"))),
            _ => None,
        };
    }
    if let Some(to) = last_line(condition) {
        return Some(Choice::First(to.to_string()));
    }
    if let Some(from) = first_line(condition) {
        return (from > 1).then_some(Choice::From(from));
    }
    let rest = condition.strip_prefix("NR")?;
    match rest.strip_prefix('%') {
        Some(rest) => {
            let (step, remainder) = rest.split_once("==").unwrap_or((rest, "1"));
            let step = number(step).filter(|it| *it > 1)?;
            let remainder = if remainder == "0" { 0 } else { number(remainder)? };
            // Without a comparison any remainder counts; of two there is only one.
            let exact = rest.contains("==") || step == 2;
            (exact && remainder < step).then(|| Choice::Only(format!("{remainder}~{step}")))
        }
        None => match number(rest.strip_prefix("==")?)? {
            1 => Some(Choice::First("1".to_owned())),
            line => Some(Choice::Only(line.to_string())),
        },
    }
}

/// The first line that a condition lets through to the end.
fn first_line(condition: &str) -> Option<u64> {
    let rest = condition.strip_prefix("NR>")?;
    match rest.strip_prefix('=') {
        Some(line) => number(line),
        None => number(rest).map(|it| it + 1),
    }
}

/// The last line that a condition lets through from the start.
fn last_line(condition: &str) -> Option<u64> {
    let rest = condition.strip_prefix("NR<")?;
    match rest.strip_prefix('=') {
        Some(line) => number(line),
        None => number(rest).map(|it| it - 1).filter(|it| *it > 0),
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
    let literal = signs.next().filter(|it| !matches!(it, ' ' | '\\' | 't'))?;
    if compact != "{print$1}" || signs.next().is_some() || crate::field::is_marker(literal) {
        return None;
    }
    Some((vec!["-d".to_owned(), sign.to_owned(), "-f".to_owned(), "1".to_owned()], used))
}
