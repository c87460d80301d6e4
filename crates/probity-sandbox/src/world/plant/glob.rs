//! Names that a pattern of the shell matches, and names that it nearly matches.

/// What a star stands for.
const STARS: &[&str] = &["a", "report", "B2", "c.d"];
/// What a star stands for where careless commands stumble.
const ODD_STARS: &[&str] = &["old report", "it's", "-n", "ü  x"];
/// The same where a name looks like an option. Beside others it would keep many commands from getting to these.
const DASHED_STARS: &[&str] = &["-n", "x"];

/// Whether a text has a part that stands for others.
pub(super) fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?']) || text.split_once('[').is_some_and(|(_, rest)| rest.contains(']'))
}

/// The ending behind the last dot of a name.
pub(super) fn extension(path: &str) -> Option<&str> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let (stem, ending) = name.rsplit_once('.')?;
    let plain =
        (1..=6).contains(&ending.len()) && ending.bytes().all(|it| it.is_ascii_alphanumeric());
    (!stem.is_empty() && plain).then_some(ending)
}

/// Names that match.
pub(super) fn matching(pattern: &str) -> Vec<String> {
    instances(pattern, STARS)
}

/// Names that match and have blanks, quotes and dashes in them.
pub(super) fn odd(pattern: &str) -> Vec<String> {
    instances(pattern, ODD_STARS)
}

/// The same without those that look like an option.
pub(super) fn odd_operands(pattern: &str) -> Vec<String> {
    let mut names = odd(pattern);
    names.retain(|it| !it.starts_with('-'));
    names
}

/// Names that match, one of which looks like an option.
pub(super) fn dashed(pattern: &str) -> Vec<String> {
    instances(pattern, DASHED_STARS)
}

fn instances(pattern: &str, stars: &[&str]) -> Vec<String> {
    let count = if pattern.contains('*') { stars.len() } else { 1 };
    let mut names: Vec<String> = (0..count).map(|it| instance(pattern, it, stars)).collect();
    names.retain(|it| !it.is_empty());
    names.dedup();
    names
}

/// Names that differ from a match by their case, their end, their beginning.
pub(super) fn near(pattern: &str) -> Vec<String> {
    let name = instance(pattern, 0, STARS);
    let swapped: String = name
        .chars()
        .map(|it| if it.is_lowercase() { it.to_ascii_uppercase() } else { it.to_ascii_lowercase() })
        .collect();
    let shorter: String = name.chars().skip(1).collect();
    let literal: String =
        pattern.chars().filter(|it| !matches!(it, '*' | '?' | '[' | ']')).collect();
    let mut names = vec![
        swapped,
        format!("{name}x"),
        format!("x{name}"),
        shorter,
        format!("{name}.bak"),
        literal,
    ];
    names.iter_mut().for_each(|it| *it = it.trim_matches('/').to_owned());
    names.retain(|it| !it.trim_matches('.').is_empty() && *it != name);
    names
}

fn instance(pattern: &str, variant: usize, stars: &[&str]) -> String {
    let mut name = String::new();
    let mut rest = pattern.chars();
    while let Some(character) = rest.next() {
        match character {
            '*' => {
                let star = stars[variant % stars.len()];
                name.push_str(if name.ends_with(star) { "z" } else { star });
            }
            '?' => name.push(['a', '7', 'Z'][variant % 3]),
            '[' => match set(rest.as_str()) {
                Some((member, length)) => {
                    name.push(member);
                    rest = rest.as_str()[length..].chars();
                }
                None => name.push('['),
            },
            '\\' => name.extend(rest.next()),
            plain => name.push(plain),
        }
    }
    name
}

/// A member of the set that `rest` begins with, and how long the set is.
fn set(rest: &str) -> Option<(char, usize)> {
    let negated = rest.starts_with(['!', '^']);
    let body = if negated { &rest[1..] } else { rest };
    let end = body.char_indices().skip(1).find(|(_, it)| *it == ']')?.0;
    let members = &body[..end];
    let length = usize::from(negated) + end + 1;
    if let Some(class) = members.strip_prefix("[:") {
        // The class has a bracket of its own.
        let member = match class {
            _ if class.starts_with("digit") => '4',
            _ if class.starts_with("upper") => 'Q',
            _ if class.starts_with("space") => ' ',
            _ => 'q',
        };
        let outer = rest.find("]]").map(|it| it + 2)?;
        return Some((if negated { '#' } else { member }, outer));
    }
    if !negated {
        return Some((members.chars().next()?, length));
    }
    let free = "zq5_Z".chars().find(|it| !within(members, *it))?;
    Some((free, length))
}

fn within(members: &str, wanted: char) -> bool {
    let all: Vec<char> = members.chars().collect();
    all.contains(&wanted)
        || all.windows(3).any(|it| it[1] == '-' && (it[0]..=it[2]).contains(&wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_has_matches_and_near_misses() {
        assert_eq!(matching("*.txt"), ["a.txt", "report.txt", "B2.txt", "c.d.txt"]);
        assert_eq!(odd("*.txt")[..2], ["old report.txt", "it's.txt"]);
        assert_eq!(matching("f[0-9]?.log"), ["f0a.log"]);
        assert_eq!(matching("[!a-z]x"), ["5x"]);
        assert_eq!(matching("[[:digit:]]x"), ["4x"]);
        assert_eq!(near("*.txt"), ["A.TXT", "a.txtx", "xa.txt", ".txt", "a.txt.bak", ".txt"]);
        assert!(!is_pattern("a[b"));
    }
}
