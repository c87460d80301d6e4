//! What is never the same twice: parts of outputs that are overlooked.

/// How names of temporary files begin.
const TEMPORARY: &str = "/tmp/tmp.";
/// How many letters of chance `mktemp` puts behind that.
const RANDOM: usize = 10;

/// Lines about processes, which are others in each run.
pub(super) fn is_volatile(line: &str) -> bool {
    let of_process = line.strip_prefix("/proc/").is_some_and(|rest| {
        let name = rest.split('/').next().unwrap_or_default();
        let is_number = !name.is_empty() && name.bytes().all(|it| it.is_ascii_digit());
        is_number || matches!(name, "self" | "thread-self")
    });
    of_process || line.starts_with("_=")
}

/// The line without names of temporary files.
pub(super) fn masked(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(TEMPORARY) {
        let (before, after) = rest.split_at(at + TEMPORARY.len());
        out.push_str(before);
        let end = after.find(|it: char| !it.is_ascii_alphanumeric()).unwrap_or(after.len());
        out.push_str(if end == RANDOM { "…" } else { &after[..end] });
        rest = &after[end..];
    }
    out + rest
}

/// The line without those numbers that are others in one of the other lines. If these are no lines like it, no number is
/// certain.
pub(super) fn without_changing_numbers(line: &str, again: &[&str]) -> String {
    if again.iter().any(|it| without_numbers(it) != without_numbers(line)) {
        return without_numbers(line);
    }
    let others: Vec<Vec<&str>> = again.iter().map(|it| numbers(it)).collect();
    let is_fixed = |at: usize, number: &str| others.iter().all(|it| it.get(at) == Some(&number));
    let fixed = numbers(line).into_iter().enumerate();
    let fixed = fixed.map(|(at, number)| if is_fixed(at, number) { number } else { "#" });
    filled(line, fixed)
}

/// Masks in each of two lines the numbers that are masked in the other one.
pub(super) fn share_masks(left: &mut String, right: &mut String) {
    let plain = |it: &str| without_numbers(&it.replace('#', "0"));
    if plain(left) != plain(right) {
        return;
    }
    let shown = |it: &str| it.replace('#', "0");
    let masked = |line: &str| -> Vec<bool> { parts(line).map(|it| it == "#").collect() };
    let both: Vec<bool> =
        masked(left).iter().zip(masked(right)).map(|(one, other)| *one || other).collect();
    for line in [left, right] {
        let own: Vec<String> = parts(line).map(str::to_owned).collect();
        let kept = own.iter().zip(&both).map(|(own, masked)| if *masked { "#" } else { own });
        *line = filled(&shown(line), kept);
    }
}

/// Numbers of a line, also those that are masked.
fn parts(line: &str) -> impl Iterator<Item = &str> {
    line.split(|it: char| !it.is_ascii_digit() && it != '#').filter(|it| !it.is_empty())
}

fn numbers(line: &str) -> Vec<&str> {
    parts(line).collect()
}

/// The line with other numbers.
fn filled<'n>(line: &str, mut numbers: impl Iterator<Item = &'n str>) -> String {
    let mut out = String::new();
    for character in without_numbers(line).chars() {
        match character {
            '#' => out.push_str(numbers.next().unwrap_or("#")),
            other => out.push(other),
        }
    }
    out
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
