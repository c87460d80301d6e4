//! Texts in which the patterns that commands search for are found, and nearly found.

use probity_shell::internal::mentions::{Mentions, Syntax, TextPattern};
use regex_syntax::hir::{Class, Hir, HirKind};

/// Lines that any text has: blanks, doubles, columns, numbers, capitals.
const FILLER: &[&str] = &[
    "harbor north 12 amber",
    "Willow river 7 basin delta",
    "",
    "  indented line with blanks  ",
    "name,city,amount,42",
    "key: value",
    "harbor north 12 amber",
    "tab\tseparated\tcolumns\t3",
    "HARBOR NORTH 12 AMBER",
    "path=/usr/local/bin:/opt/x",
    "zephyr 100 -5 3.14",
    "0",
    "Ünïcode straße 日本",
    "a.b|c;d e",
    "zephyr 100 -5 3.14",
];

/// Lines that tell orders apart: numbers of several widths, sizes with units, neighbours that differ only in case.
const TELLING: &[&str] =
    &["10 lamps", "9 lamps", "100 lamps", "2K rope", "1M rope", "Lantern", "lantern", "lantern"];

/// A line whose bytes are more than its characters, with capitals that not every program knows.
const WIDE: &str = "Größe ÄRGER 日本";

/// Lines of a long text, at least.
const LONG: usize = 130;

/// Lines of a text that a command counts, at most: in the world with long texts, and in the others.
const MAX_LONG: usize = 2000;
const MAX_LINES: usize = 300;

/// Patterns whose samples are in texts, at most.
const MAX_PATTERNS: usize = 12;

/// A sample of a pattern is not longer than this.
const MAX_SAMPLE: usize = 200;
const MAX_STEPS: usize = 2000;

/// What texts are made of.
pub(super) struct Texts<'m> {
    mentions: &'m Mentions,
    /// What each pattern finds.
    found: Vec<Vec<String>>,
}

impl<'m> Texts<'m> {
    pub(super) fn new(mentions: &'m Mentions) -> Self {
        let found = mentions.texts.iter().take(MAX_PATTERNS).map(samples).collect();
        Self { mentions, found }
    }

    /// What patterns find that could be names of files: lists of names are searched as texts are.
    pub(super) fn names(&self) -> Vec<String> {
        let fits = |it: char| it.is_alphanumeric() || matches!(it, '.' | '_' | '-');
        let samples = self.found.iter().filter_map(|it| it.first());
        let mut names: Vec<String> =
            samples.map(|it| it.trim_matches(['/', ' ']).to_owned()).collect();
        names.retain(|it| it.chars().all(fits) && !it.starts_with('-') && it.len() < 60);
        names
    }

    /// A text for a file; other seeds give other texts.
    pub(super) fn content(&self, seed: usize, sorted: bool) -> String {
        let Self { mentions, found } = self;
        content(mentions, found, seed, sorted)
    }
}

fn content(mentions: &Mentions, found: &[Vec<String>], seed: usize, sorted: bool) -> String {
    let mut lines: Vec<String> = FILLER.iter().map(|it| (*it).to_owned()).collect();
    let shift = seed * 4 % lines.len();
    lines.rotate_left(shift);
    lines.truncate(9 + seed % 6);
    // Every other text has them, so that there are also texts without.
    if seed.is_multiple_of(2) {
        lines.extend(TELLING.iter().map(|it| (*it).to_owned()));
    }
    if sorted {
        lines.push(WIDE.to_owned());
    }
    let columns = mentions.numbers.iter().copied().filter(|it| *it <= 20).max().unwrap_or(3).max(3);
    for sign in &mentions.separators {
        lines.extend((0..3).map(|row| {
            let cells: Vec<_> =
                (0..=columns).map(|it| format!("c{}{it}", row + seed % 3)).collect();
            cells.join(sign)
        }));
    }
    // Every fourth text has near misses only.
    for (at, samples) in found.iter().enumerate() {
        for found in samples {
            if seed % 4 != 3 {
                lines.push(format!("before {found} after {seed}"));
                lines.push(found.clone());
                lines.insert(at.min(lines.len()), format!("{found}{}", " again".repeat(seed % 3)));
            }
            lines.extend(near(found));
        }
    }
    // One world has long texts.
    let most = if sorted { MAX_LONG } else { MAX_LINES };
    let numbers = mentions.numbers.iter().filter_map(|it| usize::try_from(*it).ok());
    let wanted = numbers.filter(|it| *it <= most).max().unwrap_or(0) + 3;
    let wanted = if sorted { wanted.max(LONG) } else { wanted };
    let more = (lines.len()..wanted).map(|it| format!("line {it} of {seed}")).collect::<Vec<_>>();
    lines.extend(more);
    if sorted {
        lines.sort();
    }
    lines.join("\n") + "\n"
}

/// The first two lines that are not empty, without a line end at the end.
pub(super) fn shortened(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|it| !it.is_empty()).take(2).collect();
    lines.join("\n")
}

/// Texts that a pattern finds.
pub(super) fn samples(pattern: &TextPattern) -> Vec<String> {
    let TextPattern { pattern, syntax } = pattern;
    let expression = match syntax {
        Syntax::Fixed => return vec![pattern.clone()],
        Syntax::Basic => modern(pattern, Style::Basic),
        Syntax::Extended => modern(pattern, Style::Extended),
        Syntax::Perl => pattern.clone(),
    };
    let parsed = regex_syntax::ParserBuilder::new().utf8(false).build().parse(&expression);
    let Ok(parsed) = parsed else { return vec![pattern.clone()] };
    let mut found: Vec<String> = (0..3).map(|it| Sample::of(&parsed, it)).collect();
    found.sort();
    found.dedup();
    found.retain(|it| !it.contains('\n'));
    found
}

fn near(found: &str) -> Vec<String> {
    let swapped: String = found
        .chars()
        .map(|it| if it.is_lowercase() { it.to_ascii_uppercase() } else { it.to_ascii_lowercase() })
        .collect();
    let shorter: String = found.chars().skip(1).collect();
    let half = found.floor_char_boundary(found.len() / 2);
    let split = format!("{}-{}", &found[..half], &found[half..]);
    let mut all = vec![swapped, shorter, split, format!("x{found}x")];
    all.retain(|it| it != found && !it.is_empty());
    all
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Basic,
    Extended,
}

/// A POSIX expression in the syntax of today.
fn modern(pattern: &str, style: Style) -> String {
    let mut out = String::new();
    let mut rest = pattern.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '\\' => match (rest.next(), style) {
                (Some('<'), _) => out.push_str("\\b{start}"),
                (Some('>'), _) => out.push_str("\\b{end}"),
                (Some(it @ ('(' | ')' | '{' | '}' | '+' | '?' | '|')), Style::Basic) => {
                    out.push(it);
                }
                (Some(it), _) if it.is_ascii_alphanumeric() && !"wWsSbB".contains(it) => {
                    out.push(it);
                }
                (Some(it), _) => out.extend(['\\', it]),
                (None, _) => out.push_str("\\\\"),
            },
            '(' | ')' | '{' | '}' | '+' | '?' | '|' if style == Style::Basic => {
                out.extend(['\\', character]);
            }
            '*' if out.is_empty() || out.ends_with('^') => out.push_str("\\*"),
            '[' => {
                out.push('[');
                bracket(&mut rest, &mut out);
            }
            plain => out.push(plain),
        }
    }
    out
}

/// A bracket expression, in which a backslash is a plain character.
fn bracket(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, out: &mut String) {
    let mut first = true;
    if rest.next_if_eq(&'^').is_some() {
        out.push('^');
    }
    while let Some(character) = rest.next() {
        match character {
            ']' if !first => return out.push(']'),
            '[' if matches!(rest.peek(), Some(':')) => {
                out.push('[');
                for inner in rest.by_ref() {
                    out.push(inner);
                    if inner == ']' {
                        break;
                    }
                }
            }
            '\\' | '[' | ']' | '&' | '~' => out.extend(['\\', character]),
            plain => out.push(plain),
        }
        first = false;
    }
}

/// A text that an expression finds, as it grows.
struct Sample {
    text: String,
    variant: usize,
    /// Parts of the expression that may still be visited. Nested repetitions multiply.
    steps: usize,
}

impl Sample {
    fn of(hir: &Hir, variant: usize) -> String {
        let mut sample = Self { text: String::new(), variant, steps: MAX_STEPS };
        sample.add(hir);
        sample.text
    }

    fn add(&mut self, hir: &Hir) {
        if self.steps == 0 || self.text.len() > MAX_SAMPLE {
            return;
        }
        self.steps -= 1;
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => {}
            HirKind::Literal(it) => self.text.push_str(&String::from_utf8_lossy(&it.0)),
            HirKind::Class(it) => self.text.extend(member(it, self.variant)),
            HirKind::Repetition(it) => {
                let most = it.max.unwrap_or(u32::MAX).min(it.min.saturating_add(2)).min(12);
                let more = u32::try_from(self.variant).unwrap_or(0);
                let times = it.min.max(1).saturating_add(more).min(most);
                (0..times).for_each(|_| self.add(&it.sub));
            }
            HirKind::Capture(it) => self.add(&it.sub),
            HirKind::Concat(parts) => parts.iter().for_each(|it| self.add(it)),
            HirKind::Alternation(parts) => self.add(&parts[self.variant % parts.len()]),
        }
    }
}

fn member(class: &Class, variant: usize) -> Option<char> {
    let fits = |wanted: char| match class {
        Class::Unicode(it) => {
            it.ranges().iter().any(|it| (it.start()..=it.end()).contains(&wanted))
        }
        Class::Bytes(it) => u8::try_from(wanted).is_ok_and(|wanted| {
            it.ranges().iter().any(|it| (it.start()..=it.end()).contains(&wanted))
        }),
    };
    let liked: Vec<char> = "k7Mb2 _".chars().filter(|it| fits(*it)).collect();
    let first = || match class {
        Class::Unicode(it) => it.ranges().first().map(regex_syntax::hir::ClassUnicodeRange::start),
        Class::Bytes(it) => it.ranges().first().map(|it| char::from(it.start())),
    };
    if liked.is_empty() { first() } else { Some(liked[variant % liked.len()]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_finds_its_samples() {
        for (pattern, syntax, wanted) in [
            ("foo.*bar", Syntax::Basic, "fookbar"),
            (r"\(ab\)\{2\}c+", Syntax::Basic, "ababc+"),
            ("([0-9]{1,3}\\.){3}[0-9]{1,3}", Syntax::Extended, "7.7.7.7"),
            ("^[[:upper:]][^a]$", Syntax::Extended, "Mk"),
            (r"[\]x", Syntax::Basic, r"\x"),
            ("a|b", Syntax::Basic, "a|b"),
            ("a|b", Syntax::Extended, "b"),
            ("(", Syntax::Fixed, "("),
        ] {
            let pattern = TextPattern { pattern: pattern.to_owned(), syntax };
            let found = samples(&pattern);
            assert!(found.iter().any(|it| it == wanted), "{pattern:?}: {found:?}");
        }
    }

    #[test]
    fn samples_stay_short_however_often_a_pattern_repeats() {
        for pattern in ["(((((((((a{12}){12}){12}){12}){12}){12}){12}){12}){12})", "a{4294967295}"]
        {
            let pattern = TextPattern { pattern: pattern.to_owned(), syntax: Syntax::Extended };
            let found = samples(&pattern);
            assert!(found.iter().all(|it| (1..=MAX_SAMPLE + 100).contains(&it.len())));
        }
    }
}
