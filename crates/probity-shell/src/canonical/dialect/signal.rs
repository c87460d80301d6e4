//! Signals by number and by name.

use crate::field::Field;

const NAMES: &[(&str, &str)] = &[
    ("1", "HUP"),
    ("2", "INT"),
    ("3", "QUIT"),
    ("6", "ABRT"),
    ("9", "KILL"),
    ("13", "PIPE"),
    ("14", "ALRM"),
    ("15", "TERM"),
    ("0", "0"),
];

/// Names whose number differs between systems; they are compared by name alone.
const OTHERS: &[&str] =
    &["USR1", "USR2", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "WINCH", "URG", "VTALRM"];

fn name(text: &str) -> Option<&'static str> {
    let upper = text.to_ascii_uppercase();
    let plain = upper.strip_prefix("SIG").unwrap_or(&upper);
    let named = NAMES
        .iter()
        .find(|(number, name)| *number == plain || *name == plain)
        .map(|(_, name)| *name);
    named.or_else(|| OTHERS.iter().find(|it| **it == plain).copied())
}

/// The arguments with the signal given by the first of its options and its name; the usual one is left out.
pub(super) fn rewritten(options: &[&str], arguments: &[Field]) -> Option<Vec<Field>> {
    let (first, rest) = arguments.split_first()?;
    let (signal, rest) = match &*first.text {
        option if options.contains(&option) => {
            let (value, rest) = rest.split_first()?;
            (name(&value.text)?, rest)
        }
        text => match text.strip_prefix("--signal=").or_else(|| text.strip_prefix('-')) {
            Some(signal) => (name(signal)?, rest),
            None => return None,
        },
    };
    let field = |text: &str| Field { text: text.into(), span: first.span };
    let said = match signal {
        "TERM" => Vec::new(),
        other => vec![field(options[0]), field(other)],
    };
    Some(said.into_iter().chain(rest.iter().cloned()).collect())
}
