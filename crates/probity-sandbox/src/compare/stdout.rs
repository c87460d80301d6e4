//! Outputs, compared.

use std::collections::BTreeMap;

use super::{Leniency, mask};

/// A line is shown up to here.
const SHOWN: usize = 120;

/// The lines of an output as they are compared.
pub(super) fn normal(bytes: &[u8], leniency: Leniency) -> Vec<String> {
    // Names that end in a zero byte stand for lines.
    let text = String::from_utf8_lossy(bytes).replace('\0', "\n");
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

/// Whether lines whose numbers are masked have nothing else in them.
pub(super) fn has_numbers_only(lines: &[String]) -> bool {
    let plain = |it: &String| it.chars().all(|it| it == '#' || it.is_whitespace());
    !lines.is_empty() && lines.iter().all(plain)
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
