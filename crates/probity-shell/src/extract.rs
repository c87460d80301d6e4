//! The command inside a model's reply.
//!
//! Replies wrap a command in fences, prompts, inline code, JSON or prose. The first command is taken; what had to be
//! cut away to get it is recorded, so that a grader can ask for a bare command where that matters.

mod fence;
mod json;
mod leading;
mod line;

use std::borrow::Cow;

use serde::Serialize;

use crate::{Script, Span, utility};

/// A command and how it was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Extracted<'t> {
    /// The command.
    pub command: Cow<'t, str>,
    /// Where in the reply it was found; its wrapping, if it was rewritten on the way.
    pub span: Span,
    /// What was cut away, from the outside in; empty for a bare command.
    pub steps: Vec<Step>,
    /// How many other commands the reply offers.
    pub alternatives: usize,
}

/// Something that was cut away to get at a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Text before or after it.
    Prose,
    /// A Markdown fence.
    Fence,
    /// Backquotes or asterisks around it.
    InlineCode,
    /// A field of a JSON object.
    JsonField,
    /// A label such as `Command:`.
    Label,
    /// A shell's prompt.
    Prompt,
    /// Lines that a prompt shows to be output.
    Output,
}

impl Step {
    /// The name in results.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Prose => "prose",
            Self::Fence => "fence",
            Self::InlineCode => "inline_code",
            Self::JsonField => "json_field",
            Self::Label => "label",
            Self::Prompt => "prompt",
            Self::Output => "output",
        }
    }
}

/// A part of the reply on the way to its command.
#[derive(Debug, Clone)]
struct Found<'t> {
    text: Cow<'t, str>,
    span: Span,
    steps: Vec<Step>,
    alternatives: usize,
}

impl<'t> Found<'t> {
    fn at(reply: &'t str, span: Span, steps: &[Step]) -> Self {
        Found { text: Cow::Borrowed(span.of(reply)), span, steps: steps.to_vec(), alternatives: 0 }
    }
}

/// The first command in a reply; `None` if there is none to be seen.
pub fn extract(reply: &str) -> Option<Extracted<'_>> {
    let whole = answer(reply);
    first(reply, whole, &fence::Blocks::read(reply, whole))
}

/// The first command in a part of a reply, whose blocks are known.
fn first<'t>(reply: &'t str, whole: Span, blocks: &fence::Blocks<'t>) -> Option<Extracted<'t>> {
    if whole.start == whole.end {
        return None;
    }
    // A block that is surely one of commands comes first; a first line that is a command comes before blocks that may
    // be sample output, and before code in the sentences that explain it.
    let found = json::command(reply, whole)
        .or_else(|| blocks.surest(reply))
        .or_else(|| blocks.is_empty().then(|| line::bare(reply, whole)).flatten())
        .or_else(|| blocks.opening(whole).and_then(|part| leading::command(reply, part)))
        .or_else(|| blocks.advised(reply))
        .or_else(|| blocks.prose.iter().find_map(|part| in_prose(reply, *part)))
        .or_else(|| blocks.any(reply))?;
    let Found { text, span, steps, alternatives } = found;
    Some(Extracted { command: text, span, steps, alternatives })
}

/// A command outside of all fences.
fn in_prose(reply: &str, part: Span) -> Option<Found<'_>> {
    line::labelled(reply, part)
        .or_else(|| line::prompted(reply, part))
        .or_else(|| line::inline_code(reply, part))
        .or_else(|| line::emphasised(reply, part))
        .or_else(|| line::among_prose(reply, part))
}

/// Every command that a reply offers: all of its fences and inline code, and the one that [`extract`] finds.
pub fn all(reply: &str) -> Vec<Extracted<'_>> {
    let whole = answer(reply);
    let blocks = fence::Blocks::read(reply, whole);
    let mut found = blocks.all(reply);
    found.extend(blocks.prose.iter().flat_map(|part| line::all_inline(reply, *part)));
    let mut all: Vec<Extracted<'_>> = found
        .into_iter()
        .map(|Found { text, span, steps, alternatives }| Extracted {
            command: text,
            span,
            steps,
            alternatives,
        })
        .collect();
    if let Some(first) = first(reply, whole, &blocks)
        && !all.iter().any(|it| it.span.start < first.span.end && first.span.start < it.span.end)
    {
        all.insert(0, first);
    }
    all
}

/// The part of a reply that is said to the user: what a model thinks aloud before it is not.
fn answer(reply: &str) -> Span {
    const ENDS: &[&str] = &["</think>", "</thinking>", "</thought>"];
    // Few replies have any of them, which is found out once.
    let ends = if reply.contains("</th") { ENDS } else { &[] };
    let thought = ends.iter().filter_map(|end| Some(reply.rfind(end)? + end.len())).max();
    let span = trimmed(reply, Span { start: thought.unwrap_or_default(), end: reply.len() });
    match span.start < span.end {
        true => span,
        false => trimmed(reply, Span { start: 0, end: reply.len() }),
    }
}

/// Words that tell not to use what follows.
const WARNINGS: &[&str] = &[
    "not run",
    "not use",
    "not execute",
    "not do ",
    "not try",
    "not type",
    "not paste",
    "not copy",
    "n't run",
    "n't use",
    "n't execute",
    "n't do ",
    "n't try",
    "n't type",
    "n't paste",
    "n't copy",
    "never run",
    "never use",
    "never execute",
    "never do ",
    "never try",
    "never type",
    "never paste",
    "never copy",
    "avoid",
    "instead of",
    "rather than",
    "not to use",
    "not to run",
    "stay away from",
    "dangerous example",
    "bad example",
    "wrong way",
];

/// What warnings are told by at a glance: each of them holds one of these.
const SIGNS: &[&str] = &[
    "not ",
    "n't ",
    "never ",
    "avoid",
    "instead of",
    "rather than",
    "stay away from",
    " example",
    "wrong way",
];

/// Words after a warning that turn to what is advised: `instead of rm, use ...`.
const TURNS: &[&str] = &[
    "use ",
    "use:",
    "run ",
    "run:",
    "try ",
    "try:",
    "can ",
    "should ",
    "do this instead",
    "do:",
    "prefer ",
    "go with",
    "this instead",
    "execute ",
    "execute:",
    "consider ",
    "following:",
];

/// Words that make a warning a condition: `never run this without a backup`.
const CONDITIONS: &[&str] = &[
    " without",
    " as root",
    " unless",
    " until",
    " before",
    " production",
    " if ",
    " when ",
    " twice",
    " outside",
    " inside",
];

/// How many characters before a command are looked at.
const MAX_SENTENCE: usize = 300;

/// Whether the words right before a command warn of it.
fn is_warned_of(before: &str) -> bool {
    let before = before.trim_end();
    // Only what is near can be about it, and a long line must not be read for each of its codes.
    let near = before.char_indices().rev().nth(MAX_SENTENCE).map_or(0, |(at, _)| at);
    let line = before[near..].rsplit('\n').next().unwrap_or_default();
    // A sentence may end with a mark right before the command.
    let body = line.trim_end_matches(['.', '!', '?', ':', ';', '*', '_', ' ', '`']);
    let start =
        ['.', '!', '?', ';'].iter().filter_map(|it| Some(body.rfind(&*format!("{it} "))? + 2));
    let sentence = body[start.max().unwrap_or_default()..]
        .replace(['*', '_'], "")
        .replace('’', "'")
        .to_lowercase()
        + ":";
    let plain = sentence.trim_start_matches(['#', '*', '_', '>', '-', ' ']);
    if plain.starts_with('❌')
        || matches!(plain.trim_matches(['*', ':', ' ']), "wrong" | "bad" | "unsafe")
    {
        return true;
    }
    if !SIGNS.iter().any(|it| plain.contains(it)) {
        return false;
    }
    let found = WARNINGS.iter().filter_map(|it| Some((plain.rfind(it)?, it.len())));
    let Some((at, length)) = found.max_by_key(|it| it.0) else { return false };
    let after = &plain[at + length..];
    // What is advised stands behind a comma or a dash: `to avoid trouble, run`.
    let turned = after
        .split_once([',', '—', '–'])
        .or_else(|| after.split_once(" but "))
        .is_some_and(|(_, it)| TURNS.iter().any(|turn| it.contains(turn)));
    !turned && !CONDITIONS.iter().any(|it| after.contains(it))
}

fn trimmed(reply: &str, span: Span) -> Span {
    let text = span.of(reply);
    let start = span.start + (text.len() - text.trim_start().len());
    Span { start, end: start + text.trim().len() }
}

/// Whether a line begins as a command does: with a utility we know, a path to a program, or an assignment.
fn begins_as_command(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let Some(first) = words.next() else { return false };
    let is_assignment = first.split_once('=').is_some_and(|(name, _)| {
        name.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_')
            && name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_')
    });
    let opens = is_keyword(first) && Script::parse(line).is_ok();
    let is_path = (first.starts_with('/') || first.starts_with("./") || first.starts_with("~/"))
        && first.len() > 2;
    utility::is_known(first) || is_assignment || is_path || opens
}

/// A word that opens a compound command.
fn is_keyword(word: &str) -> bool {
    matches!(word, "if" | "for" | "while" | "until" | "case" | "!" | "{" | "[[" | "((" | "(")
}

/// Whether a line reads as a sentence rather than as a command.
fn is_sentence(line: &str) -> bool {
    let ends =
        line.ends_with(['.', ':', '!', '?']) && !line.ends_with(" .") && !line.ends_with("..");
    let capital = line.starts_with(char::is_uppercase);
    if !ends && !capital {
        return false;
    }
    let (mut words, mut plain) = (0, 0);
    for word in line.split_whitespace() {
        words += 1;
        plain += usize::from(is_plain_english(word));
    }
    words > 3 && (ends && plain * 2 > words || capital && plain * 5 > words * 4)
}

/// `git commit:` names what follows; `scp a host:` does not.
fn is_heading(line: &str) -> bool {
    let copies = line.split_whitespace().next().is_some_and(|it| COPIERS.contains(&it));
    let last = line.split_whitespace().next_back().and_then(|it| it.strip_suffix(':'));
    !copies && last.is_some_and(|it| it.chars().all(char::is_alphabetic))
}

/// Programs that write a host with a colon behind it.
const COPIERS: &[&str] = &["scp", "rsync", "sudo", "rclone", "sshfs"];

/// Whether nothing of a text is run: all of its lines are blank or comments.
fn is_comment(text: &str) -> bool {
    text.lines().map(str::trim).all(|it| it.is_empty() || it.starts_with('#'))
}

/// A word of letters, with at most a mark of punctuation behind it.
fn is_plain_english(word: &str) -> bool {
    let word = word.trim_end_matches([',', '.', ':', ';', '!', '?', ')']).trim_start_matches('(');
    !word.is_empty() && word.chars().all(|it| it.is_alphabetic() || matches!(it, '\'' | '’'))
}

#[cfg(test)]
mod tests;
