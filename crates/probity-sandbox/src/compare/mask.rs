//! What is never the same twice: parts of outputs that are overlooked.

/// Lines about what every system has of its own: processes and the kernel's view of them.
pub(super) fn is_volatile(line: &str) -> bool {
    let line = line.trim_start_matches("find: ");
    ["/proc/", "/sys/"].iter().any(|it| line.starts_with(it)) || line.starts_with("_=")
}

/// The line without names of temporary files.
pub(super) fn masked(line: &str) -> String {
    let Some(at) = line.find("/tmp/tmp.") else { return line.to_owned() };
    let (before, rest) = line.split_at(at + "/tmp/tmp.".len());
    let end = rest.find(|it: char| !it.is_ascii_alphanumeric()).unwrap_or(rest.len());
    if end < 6 {
        return line.to_owned();
    }
    format!("{before}…{}", masked(&rest[end..]))
}

/// The line without numbers.
pub(super) fn without_numbers(line: &str) -> String {
    let mut out = String::new();
    for character in line.chars() {
        match character {
            '0'..='9' if out.ends_with('#') => {}
            '0'..='9' => out.push('#'),
            other => out.push(other),
        }
    }
    out
}
