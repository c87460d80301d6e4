//! What is never the same twice: parts of outputs that are overlooked.

/// How names of temporary files begin.
const TEMPORARY: &str = "/tmp/tmp.";

/// Lines about what every system has of its own: processes and the kernel's view of them.
pub(super) fn is_volatile(line: &str) -> bool {
    let line = line.trim_start_matches("find: ");
    ["/proc/", "/sys/"].iter().any(|it| line.starts_with(it)) || line.starts_with("_=")
}

/// The line without names of temporary files.
pub(super) fn masked(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(TEMPORARY) {
        let (before, after) = rest.split_at(at + TEMPORARY.len());
        out.push_str(before);
        let end = after.find(|it: char| !it.is_ascii_alphanumeric()).unwrap_or(after.len());
        out.push_str(if end < 6 { &after[..end] } else { "…" });
        rest = &after[end..];
    }
    out + rest
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
