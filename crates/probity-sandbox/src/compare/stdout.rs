//! Outputs, compared.

use std::{collections::BTreeMap, fmt::Write as _};

use super::{Leniency, mask};

/// A line is shown up to here.
const SHOWN: usize = 120;

/// The lines of an output as they are compared.
pub(super) fn normal(bytes: &[u8], leniency: Leniency) -> Vec<String> {
    // Names that end in a zero byte are lines of another kind.
    let text = text_of(bytes).replace('\0', "\\0\n");
    // A shell drops line ends at the end of an output wherever it uses it.
    let text = text.trim_end_matches('\n');
    if text.is_empty() {
        return Vec::new();
    }
    let mut lines: Vec<String> = text
        .split('\n')
        .filter(|it| !mask::is_volatile(it))
        .map(mask::masked)
        .map(|it| if leniency.processes { mask::without_numbers(&it) } else { it })
        .map(|it| if leniency.blanks { collapsed(&it) } else { it })
        .collect();
    if leniency.order {
        lines.sort();
    }
    lines
}

/// The lines of two commands that were run several times each, without numbers that were others each time in either. Runs
/// whose lines do not correspond have nothing steady in them.
pub(super) fn steady_numbers(runs: &[Vec<Vec<u8>>; 2], leniency: Leniency) -> [Vec<String>; 2] {
    let lines = |bytes: &Vec<u8>| normal(bytes, Leniency { order: false, ..leniency });
    let runs = runs.each_ref().map(|it| it.iter().map(lines).collect::<Vec<_>>());
    let mut steady = runs.each_ref().map(|runs| match runs.split_first() {
        Some((first, others)) => first
            .iter()
            .enumerate()
            .map(|(at, line)| {
                let again: Vec<&str> =
                    others.iter().map(|it| it.get(at).map_or("", String::as_str)).collect();
                mask::without_changing_numbers(line, &again)
            })
            .collect(),
        None => Vec::new(),
    });
    // What changes in one is no fixed number in the other.
    if !leniency.order {
        let [left, right] = &mut steady;
        for (left, right) in left.iter_mut().zip(right) {
            mask::share_masks(left, right);
        }
    }
    steady.each_mut().map(|it| {
        if leniency.order {
            it.sort();
        }
        std::mem::take(it)
    })
}

/// Whether lines whose numbers are masked have nothing else in them.
pub(super) fn has_numbers_only(lines: &[String]) -> bool {
    let plain = |it: &String| it.chars().all(|it| it == '#' || it.is_whitespace());
    !lines.is_empty() && lines.iter().all(plain)
}

/// A text as it is; bytes that are not UTF-8 as `\xNN`.
fn text_of(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

fn collapsed(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The first line that differs, told.
pub(super) fn difference(left: &[String], right: &[String]) -> Option<String> {
    let at = (0..left.len().max(right.len())).find(|at| left.get(*at) != right.get(*at))?;
    let side = |lines: &[String]| match lines.get(at) {
        Some(line) => format!("`{}`", shown(line)),
        None => "nothing".to_owned(),
    };
    Some(format!("line {} of the output: {} instead of {}", at + 1, side(left), side(right)))
}

fn shown(line: &str) -> String {
    let end = line.floor_char_boundary(SHOWN);
    if end < line.len() { format!("{}…", &line[..end]) } else { line.to_owned() }
}

/// Which part of the words of the shorter output is in the longer one. A word is letters, digits and what names are made
/// of.
pub(super) fn likeness(left: &[u8], right: &[u8]) -> Option<f64> {
    let counted = [left, right].map(|bytes| {
        let text = String::from_utf8_lossy(bytes).replace('\0', "\n");
        let mut words: BTreeMap<String, usize> = BTreeMap::new();
        let lines = text.lines().filter(|it| !mask::is_volatile(it));
        let is_between = |it: char| !it.is_alphanumeric() && !matches!(it, '/' | '.' | '_' | '-');
        for word in lines.flat_map(|it| it.split(is_between)).filter(|it| !it.is_empty()) {
            *words.entry(mask::masked(word)).or_default() += 1;
        }
        words
    });
    let total = |words: &BTreeMap<String, usize>| words.values().sum::<usize>();
    let (shorter, longer) =
        (total(&counted[0]).min(total(&counted[1])), total(&counted[0]).max(total(&counted[1])));
    if longer == 0 {
        return None;
    }
    if shorter == 0 {
        return Some(0.0);
    }
    let shared: usize = counted[0]
        .iter()
        .map(|(word, count)| (*count).min(counted[1].get(word).copied().unwrap_or(0)))
        .sum();
    Some(ratio(shared, shorter))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "outputs are far shorter than what a float can count"
)]
pub(super) fn ratio(part: usize, whole: usize) -> f64 {
    part as f64 / whole as f64
}
