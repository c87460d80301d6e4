//! Patterns of file names: `*`, `?`, `[…]`, `{a,b}` and `**` for any number of folders.

use std::{fs, path::Path};

/// Entries of folders that are looked at.
const MOST_ENTRIES: usize = 100_000;
/// Files that one pattern may mean.
const MOST_FOUND: usize = 10_000;
/// Patterns that braces may stand for.
const MOST_BRANCHES: usize = 64;
/// How deep folders are looked into.
const DEEPEST: usize = 32;
/// Bytes of a pattern; no path is longer.
const LONGEST: usize = 4096;

/// Whether a name is a pattern.
pub(crate) fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?']) || (name.contains('{') && !name.contains("{{") && name.contains('}'))
}

/// The files below a folder that a pattern means, sorted.
pub(super) fn find(root: &Path, pattern: &str) -> Result<Vec<String>, String> {
    if pattern.len() > LONGEST {
        return Err("the pattern is too long".to_owned());
    }
    let mut found = Vec::new();
    let mut left = MOST_ENTRIES;
    for branch in branches(pattern)? {
        let mut parts: Vec<&str> =
            branch.split('/').filter(|it| !it.is_empty() && *it != ".").collect();
        // Any number of folders twice is any number of folders.
        parts.dedup_by(|next, before| *next == "**" && *before == "**");
        if parts.len() > DEEPEST {
            return Err("the pattern is too deep".to_owned());
        }
        let start = if branch.starts_with('/') { "/" } else { "" };
        walk(root, start, &parts, 0, &mut left, &mut found)?;
    }
    found.sort();
    found.dedup();
    Ok(found)
}

fn walk(
    root: &Path,
    prefix: &str,
    parts: &[&str],
    depth: usize,
    left: &mut usize,
    found: &mut Vec<String>,
) -> Result<(), String> {
    let Some((part, rest)) = parts.split_first() else { return Ok(()) };
    if depth > DEEPEST {
        return Ok(());
    }
    if *part == "**" {
        walk(root, prefix, rest, depth, left, found)?;
    } else if !is_pattern(part) && !part.contains('[') {
        return step(root, &joined(prefix, part), rest, depth, left, found);
    }
    let Ok(folder) = fs::read_dir(root.join(prefix)) else { return Ok(()) };
    let mut names = Vec::new();
    for entry in folder.flatten() {
        *left = left.checked_sub(1).ok_or("the pattern looks at too many files")?;
        names.extend(entry.file_name().into_string().ok());
    }
    names.sort();
    for name in names.iter().filter(|it| !it.starts_with('.') || part.starts_with('.')) {
        let path = joined(prefix, name);
        if *part == "**" {
            // Links to folders are not followed: they may lead back.
            let is_folder = fs::symlink_metadata(root.join(&path)).is_ok_and(|it| it.is_dir());
            if is_folder && name != "node_modules" {
                walk(root, &path, parts, depth + 1, left, found)?;
            }
        } else if matches(part, name) {
            step(root, &path, rest, depth, left, found)?;
        }
    }
    Ok(())
}

fn step(
    root: &Path,
    path: &str,
    rest: &[&str],
    depth: usize,
    left: &mut usize,
    found: &mut Vec<String>,
) -> Result<(), String> {
    if !rest.is_empty() {
        return walk(root, path, rest, depth + 1, left, found);
    }
    if root.join(path).is_file() {
        if found.len() >= MOST_FOUND {
            return Err("the pattern means too many files".to_owned());
        }
        found.push(path.to_owned());
    }
    Ok(())
}

fn joined(prefix: &str, name: &str) -> String {
    match prefix {
        "" => name.to_owned(),
        "/" => format!("/{name}"),
        prefix => format!("{prefix}/{name}"),
    }
}

/// The patterns without braces that a pattern stands for.
fn branches(pattern: &str) -> Result<Vec<String>, String> {
    let mut done = Vec::new();
    let mut open = vec![pattern.to_owned()];
    while let Some(next) = open.pop() {
        // The innermost braces: what is in them has none.
        let inner = next.find('}').and_then(|end| Some((next[..end].rfind('{')?, end)));
        match inner {
            None => done.push(next),
            Some((start, end)) => {
                for choice in next[start + 1..end].split(',') {
                    if done.len() + open.len() >= MOST_BRANCHES {
                        return Err("the pattern has too many braces".to_owned());
                    }
                    open.push(format!("{}{choice}{}", &next[..start], &next[end + 1..]));
                }
            }
        }
    }
    done.reverse();
    Ok(done)
}

/// Whether a name without slashes is one that a pattern means.
fn matches(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        let matched = match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
                continue;
            }
            Some('?') => Some(p + 1),
            Some('[') => class(&pattern, p, name[n]),
            Some(c) => (*c == name[n]).then_some(p + 1),
            None => None,
        };
        match (matched, star) {
            (Some(next), _) => {
                p = next;
                n += 1;
            }
            (None, Some((at, from))) => {
                star = Some((at, from + 1));
                p = at + 1;
                n = from + 1;
            }
            (None, None) => return false,
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// The place behind a class such as `[a-z]`, if a character is in it.
fn class(pattern: &[char], start: usize, c: char) -> Option<usize> {
    let end = start + 2 + pattern.get(start + 2..)?.iter().position(|it| *it == ']')?;
    let (negated, first) = match pattern.get(start + 1) {
        Some('!' | '^') => (true, start + 2),
        Some(_) | None => (false, start + 1),
    };
    let set = &pattern[first..end];
    let mut at = 0;
    let mut is_in = false;
    while at < set.len() {
        match set.get(at + 1..at + 3) {
            Some(['-', last]) => {
                is_in |= (set[at]..=*last).contains(&c);
                at += 3;
            }
            Some(_) | None => {
                is_in |= set[at] == c;
                at += 1;
            }
        }
    }
    (is_in != negated).then_some(end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_patterns() {
        let yes =
            [("*.txt", "a.txt"), ("a?c", "abc"), ("[a-c]*", "bz"), ("[!x]y", "ay"), ("*", "")];
        let no = [("*.txt", "a.md"), ("a?c", "ac"), ("[a-c]", "d"), ("[!x]y", "xy"), ("[", "a")];
        yes.into_iter().for_each(|(pattern, name)| assert!(matches(pattern, name), "{pattern}"));
        no.into_iter().for_each(|(pattern, name)| assert!(!matches(pattern, name), "{pattern}"));
    }

    #[test]
    fn braces_stand_for_several_patterns() {
        assert_eq!(branches("a.{x,y}").unwrap(), ["a.x", "a.y"]);
        assert_eq!(branches("a}b{").unwrap(), ["a}b{"]);
        assert!(branches(&"{a,b}".repeat(10)).is_err());
    }

    #[test]
    fn patterns_that_nobody_means_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("sub")).unwrap();
        fs::write(folder.path().join("sub/a.txt"), "").unwrap();
        let found = |pattern: &str| find(folder.path(), pattern);
        assert_eq!(found(&format!("{}a.txt", "**/".repeat(1_000))).unwrap(), ["sub/a.txt"]);
        for pattern in [
            format!("{}a.txt", "**/".repeat(100_000)),
            format!("{}a.txt", "**/*/".repeat(100)),
            format!("{{{}}}{}", ",".repeat(1_000), "x".repeat(3_000)),
            format!("{}{}", "{a}".repeat(100_000), "x".repeat(100_000)),
        ] {
            assert!(found(&pattern).is_err(), "{}", &pattern[..20]);
        }
        let many = format!("{{{}}}{}", ",".repeat(100_000), "x".repeat(100_000));
        assert!(branches(&many).is_err());
    }

    #[test]
    fn stars_do_not_take_exponential_time() {
        assert!(!matches(&"*a".repeat(200), &"a".repeat(150)));
    }
}
