//! Long prompts, each with one sentence hidden in it.
//!
//! The same needles, size and seed give the same bytes on every machine.

use std::{fmt, fmt::Write as _, str::FromStr};

use serde::Deserialize;
use serde_json::{Value, json};

/// How many characters a prompt has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size(usize);

impl Size {
    /// Fewer leave no room to hide anything.
    pub(crate) const LEAST: Self = Self(2_000);
    pub(crate) const USUAL: Self = Self(32_000);
    /// About a million tokens, and about a hundred megabytes of prompts.
    pub(crate) const MOST: Self = Self(4_000_000);
}

/// Why a text is no size.
#[derive(Debug, thiserror::Error)]
#[error(
    "a size is a number of characters from {} to {}, such as 32k, 100000 or 1m",
    Size::LEAST,
    Size::MOST
)]
pub(crate) struct InvalidSize;

impl FromStr for Size {
    type Err = InvalidSize;

    fn from_str(text: &str) -> Result<Self, InvalidSize> {
        let text = text.to_ascii_lowercase();
        let (digits, unit) = match text.as_bytes().last() {
            Some(b'k') => (&text[..text.len() - 1], 1_000),
            Some(b'm') => (&text[..text.len() - 1], 1_000_000),
            Some(_) | None => (text.as_str(), 1),
        };
        let is_number = !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit());
        let size = digits.parse::<usize>().ok().filter(|_| is_number);
        let size = size.and_then(|size| size.checked_mul(unit)).ok_or(InvalidSize)?;
        match (Self::LEAST.0..=Self::MOST.0).contains(&size) {
            true => Ok(Self(size)),
            false => Err(InvalidSize),
        }
    }
}

/// The shortest way to write it, so that `32000` and `32k` give cases the same ids.
impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            size if size % 1_000_000 == 0 => write!(f, "{}m", size / 1_000_000),
            size if size % 1_000 == 0 => write!(f, "{}k", size / 1_000),
            size => write!(f, "{size}"),
        }
    }
}

/// What is hidden, and what it is hidden in.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Source {
    license: String,
    filler: Vec<Filler>,
    needles: Vec<Needle>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Filler {
    text: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Needle {
    id: String,
    #[serde(rename = "needle")]
    sentence: String,
    question: String,
    /// The reply has to contain it.
    answer: String,
    /// 0 for the beginning of the text, 1 for its end.
    depth: f64,
    /// Sentences that look like the needle and answer other questions.
    #[serde(default)]
    distractors: Vec<String>,
    /// What the distractors say instead; the reply must not contain it.
    #[serde(default)]
    wrong: Vec<String>,
}

/// A dataset in JSON lines with a case for each needle.
pub(super) fn dataset(source: &Source, size: Size, seed: u64) -> String {
    let mut text = format!(
        "# SPDX-License-Identifier: {}\n\
         # Made from needles.toml: probity init --suite long-context --size {size} --seed {seed}\n\
         {{\"version\":\"1.0.0\"}}\n",
        source.license
    );
    for needle in &source.needles {
        let _ = writeln!(text, "{}", case(source, needle, size, seed));
    }
    text
}

fn case(source: &Source, needle: &Needle, size: Size, seed: u64) -> Value {
    let criteria = std::iter::once(right(&needle.answer));
    let criteria = criteria.chain(needle.wrong.iter().map(|answer| wrong(answer)));
    let third = match needle.depth {
        depth if depth < 1.0 / 3.0 => "early",
        depth if depth < 2.0 / 3.0 => "middle",
        _ => "late",
    };
    let kind = if needle.distractors.is_empty() { "plain" } else { "distractors" };
    json!({
        "id": format!("{}-{size}", needle.id),
        "prompt": prompt(source, needle, size, seed),
        "assert": criteria.collect::<Vec<_>>(),
        "tags": [third, kind, format!("size-{size}")],
        "notes": format!("depth {}, {size} characters, seed {seed}", needle.depth),
        "license": source.license,
    })
}

/// The answer is in the reply. A number is not found in a longer number.
fn right(answer: &str) -> Value {
    match has_digit(answer) {
        true => json!({ "type": "regex", "value": alone(answer) }),
        false => json!({ "type": "icontains", "value": answer }),
    }
}

/// What a distractor says is not in the reply. A word is not found in a longer word.
fn wrong(answer: &str) -> Value {
    let pattern = match has_digit(answer) {
        true => alone(answer),
        false => format!(r"(?i)\b{}\b", regex::escape(answer)),
    };
    json!({ "type": "not-regex", "value": pattern })
}

fn has_digit(answer: &str) -> bool {
    answer.contains(|c: char| c.is_ascii_digit())
}

/// Finds an answer with no digit before it and none after it.
fn alone(answer: &str) -> String {
    format!(r"(?i)(^|\D){}(\D|$)", regex::escape(answer))
}

/// Stands before the text.
const LEAD: &str = "Read the following text. Below it there is a question about it.\n\n";
/// Stands between paragraphs.
const BREAK: &str = "\n\n";

/// The text with the needle in it, and the question at its end.
fn prompt(source: &Source, needle: &Needle, size: Size, seed: u64) -> String {
    let Needle { id, sentence, question, depth, distractors, answer: _, wrong: _ } = needle;
    let tail = format!("{BREAK}Question: {question}");
    // Each hidden sentence is joined to a paragraph by a space.
    let hidden: usize = distractors.iter().chain([sentence]).map(|it| length(it) + 1).sum();
    let room = size.0.saturating_sub(length(LEAD) + length(&tail) + hidden);
    let mut draws = Draws::new(seed, id);
    let mut paragraphs = fill(&source.filler, room, &mut draws);

    // A place is the end of a paragraph; place 0 is before the first.
    let taken = spread(distractors.len(), paragraphs.len(), &mut draws);
    for (place, distractor) in taken.iter().zip(distractors) {
        hide(distractor, *place, &mut paragraphs);
    }
    hide(sentence, place_at(*depth, &paragraphs, &taken), &mut paragraphs);
    format!("{LEAD}{}{tail}", paragraphs.join(BREAK))
}

/// Paragraphs in a drawn order until no more fit. Each comes again only after all others,
/// and never twice in a row.
fn fill(filler: &[Filler], room: usize, draws: &mut Draws) -> Vec<String> {
    let (mut paragraphs, mut used) = (Vec::new(), 0);
    let (mut round, mut last) = (Vec::new(), None);
    loop {
        if round.is_empty() {
            round = draws.order(filler.len());
            if round.last() == last.as_ref() {
                round.reverse();
            }
        }
        let Some(next) = round.pop() else { return paragraphs };
        let separator = if paragraphs.is_empty() { 0 } else { length(BREAK) };
        used += separator + length(&filler[next].text);
        if used > room {
            return paragraphs;
        }
        paragraphs.push(filler[next].text.clone());
        last = Some(next);
    }
}

/// Places for distractors: one drawn from each of equal parts, neither the first nor the last
/// of all, which are for needles.
fn spread(count: usize, paragraphs: usize, draws: &mut Draws) -> Vec<usize> {
    let inner = paragraphs.saturating_sub(1);
    let part = |at: usize| 1 + at * inner / count.max(1);
    (0..count).map(|at| part(at) + draws.below((part(at + 1) - part(at)).max(1))).collect()
}

/// The free place whose share of the text before it is nearest to the depth.
fn place_at(depth: f64, paragraphs: &[String], taken: &[usize]) -> usize {
    let ends = paragraphs.iter().scan(0, |end, paragraph| {
        *end += length(paragraph) + length(BREAK);
        Some(*end)
    });
    let ends: Vec<usize> = std::iter::once(0).chain(ends).collect();
    let all = ends.last().copied().unwrap_or_default();
    #[expect(clippy::cast_precision_loss, reason = "a text is shorter than 2^52 characters")]
    let distance = |place: &usize| (ends[*place] as f64 - depth * all as f64).abs();
    let free = (0..ends.len()).filter(|place| !taken.contains(place));
    free.min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap_or_default()
}

fn hide(sentence: &str, place: usize, paragraphs: &mut [String]) {
    match place {
        0 => {
            if let Some(first) = paragraphs.first_mut() {
                *first = format!("{sentence} {first}");
            }
        }
        place => {
            if let Some(paragraph) = paragraphs.get_mut(place - 1) {
                paragraph.push(' ');
                paragraph.push_str(sentence);
            }
        }
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// Numbers that look drawn: a stream of BLAKE3 over the seed and a name. Generators of
/// libraries may give other numbers in their next version, and ids promise the same prompts.
struct Draws(blake3::OutputReader);

impl Draws {
    fn new(seed: u64, name: &str) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("probity long-context 1");
        hasher.update(&seed.to_le_bytes()).update(name.as_bytes());
        Self(hasher.finalize_xof())
    }

    /// A number below `limit`, which is not 0.
    fn below(&mut self, limit: usize) -> usize {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes);
        let scaled = (u128::from(u64::from_le_bytes(bytes)) * limit as u128) >> 64;
        usize::try_from(scaled).expect("it is below `limit`")
    }

    /// The numbers below `count`, shuffled.
    fn order(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        for at in (1..count).rev() {
            order.swap(at, self.below(at + 1));
        }
        order
    }
}

#[cfg(test)]
mod tests;
