//! A command on a line of its own, behind a prompt or a label, or inside a sentence.

use super::{
    Found, Step, begins_as_command, is_comment, is_heading, is_keyword, is_sentence, is_warned_of,
    trimmed,
};
use crate::{
    Script, Span,
    tree::{Command, Stmt},
    utility,
};

/// Words that introduce a command.
const LABELS: &[&str] = &[
    "command",
    "cmd",
    "shell command",
    "bash command",
    "terminal command",
    "bash",
    "shell",
    "run",
    "answer",
    "final answer",
    "solution",
    "the command is",
    "the command",
];

/// Lines with their places, blank ones left out.
fn lines(reply: &str, span: Span) -> impl Iterator<Item = Span> + '_ {
    let mut at = span.start;
    span.of(reply).split_inclusive('\n').filter_map(move |line| {
        let place = trimmed(reply, Span { start: at, end: at + line.len() });
        at += line.len();
        (place.start < place.end).then_some(place)
    })
}

/// The whole reply, if it is nothing but a command.
pub(super) fn bare(reply: &str, whole: Span) -> Option<Found<'_>> {
    let text = whole.of(reply);
    if empties_file(text) {
        return Some(Found::at(reply, whole, &[]));
    }
    let first = text.lines().next().unwrap_or_default();
    if is_introduced(text) || is_heading(first) {
        return None;
    }
    // The parser comes last: most replies are prose, which a glance tells.
    let comment = is_comment(text);
    if !comment && !is_plausible(reply, whole, first) || Script::parse(text).is_err() {
        return None;
    }
    if comment { session(reply, whole) } else { Some(Found::at(reply, whole, &[])) }
}

/// Whether a reply looks like a command from its first line to its last.
fn is_plausible(reply: &str, whole: Span, first: &str) -> bool {
    let text = whole.of(reply);
    if text.lines().any(is_sentence) {
        return false;
    }
    let opens = || first.split_whitespace().next().is_some_and(is_keyword);
    let one_line = !text.contains('\n') && !first.starts_with(char::is_uppercase);
    let wrapped =
        || text.starts_with('`') || has_code_in_prose(text) || emphasised(reply, whole).is_some();
    (one_line || opens() || begins_as_command(first) || text.starts_with('#')) && !wrapped()
}

/// `> notes.txt`, which makes the file empty. A quotation looks the same: of a program, of a sentence, of a name.
fn empties_file(text: &str) -> bool {
    let Some(file) = text.strip_prefix("> ").map(str::trim_start) else { return false };
    let Ok(script) = Script::parse(text) else { return false };
    let [Stmt { command: Command::Simple(simple), background: false, .. }] = &*script.body else {
        return false;
    };
    let redirects_only = simple.words.is_empty() && simple.assignments.is_empty();
    let word = file.split_whitespace().next().unwrap_or_default();
    let name = if word.starts_with('/') { word.rsplit('/').next() } else { Some(word) };
    // `file` without a file to look at says only how it is used.
    let is_program = word.starts_with("./")
        || word != "file" && name.is_some_and(utility::is_known)
        || word.contains('=');
    let is_prose = file.ends_with(['.', ',', ':', ';', '!', '?'])
        || word.starts_with(char::is_uppercase) && word.chars().all(char::is_alphabetic);
    redirects_only && !text.contains('\n') && !is_program && !is_prose
}

/// Whether a text begins with the mark of a quotation, a prompt or a label.
pub(super) fn is_introduced(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    first.starts_with("> ") || prompt(first).is_some() || label(first).is_some()
}

/// Whether a text begins with a prompt.
pub(super) fn is_prompted(text: &str) -> bool {
    prompt(text.lines().next().unwrap_or_default()).is_some()
}

/// `use `ls` to list`: backquotes around something that begins as a command, in a line that does not.
pub(super) fn has_code_in_prose(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or_default();
    let codes: Vec<&str> = text.split('`').skip(1).step_by(2).collect();
    let any = codes.iter().any(|code| begins_as_command(code));
    let words_outside = text
        .split('`')
        .step_by(2)
        .flat_map(str::split_whitespace)
        .filter(|it| super::is_plain_english(it))
        .count();
    any && (!crate::utility::is_known(first) || words_outside > 3)
}

/// `Command: ls`
pub(super) fn labelled(reply: &str, whole: Span) -> Option<Found<'_>> {
    let mut lines = lines(reply, whole);
    while let Some(line) = lines.next() {
        let Some(after) = label(line.of(reply)) else { continue };
        let start = line.start + after;
        let here = trimmed(reply, Span { start, end: line.end });
        let place = match here.start < here.end {
            true => here,
            false => lines.next()?,
        };
        let mut found = unquoted(reply, place);
        found.steps.insert(0, Step::Label);
        if whole.start < line.start || place.end < whole.end {
            found.steps.insert(0, Step::Prose);
        }
        return Some(found);
    }
    None
}

/// Where the text after a label begins.
fn label(line: &str) -> Option<usize> {
    let decoration = ['*', '_', '#', '>', '-', ' '];
    let plain = line.trim_start_matches(decoration);
    let colon = plain.find(':')?;
    let name = plain[..colon].trim_end_matches(decoration).trim();
    if !LABELS.iter().any(|it| name.eq_ignore_ascii_case(it)) {
        return None;
    }
    let after = &plain[colon + 1..];
    // `**Command:** ls` ends an emphasis there, `Command: **ls**` begins one.
    let ends = after.strip_prefix("**").or_else(|| after.strip_prefix('*')).unwrap_or(after);
    let skipped = after.len() - ends.trim_start_matches(['_', ' ']).len();
    Some(line.len() - plain.len() + colon + 1 + skipped)
}

/// `**ls -la**` as a line of its own.
pub(super) fn emphasised(reply: &str, whole: Span) -> Option<Found<'_>> {
    let place = lines(reply, whole).find_map(|line| {
        let inner = line.of(reply).strip_prefix("**")?.strip_suffix("**")?;
        let start = line.start + 2;
        let is_command = begins_as_command(inner)
            && !inner.contains("**")
            && !is_sentence(inner)
            && !is_heading(inner)
            && Script::parse(inner).is_ok();
        is_command.then_some((line, Span { start, end: start + inner.len() }))
    });
    let (line, inner) = place?;
    let alone = line == whole;
    let steps: &[Step] = if alone { &[Step::InlineCode] } else { &[Step::Prose, Step::InlineCode] };
    Some(Found::at(reply, inner, steps))
}

/// A line taken out of backquotes, emphasis and prompts.
fn unquoted(reply: &str, place: Span) -> Found<'_> {
    if let Some(found) = emphasised(reply, place) {
        return found;
    }
    let text = place.of(reply);
    let inner = text.trim_matches('`');
    if inner.len() < text.len() && !inner.contains('`') && !inner.trim().is_empty() {
        let start = place.start + text.find(inner).unwrap_or_default();
        let place = trimmed(reply, Span { start, end: start + inner.len() });
        return Found::at(reply, place, &[Step::InlineCode]);
    }
    match prompt(text) {
        Some(skipped) => {
            Found::at(reply, Span { start: place.start + skipped, end: place.end }, &[Step::Prompt])
        }
        None => Found::at(reply, place, &[]),
    }
}

/// How much of a line is a prompt: `$ `, `% `, `user@host:~$ `. A `# ` alone begins a comment.
fn prompt(line: &str) -> Option<usize> {
    if let Some(rest) = line.strip_prefix("$ ").or_else(|| line.strip_prefix("% ")) {
        return Some(line.len() - rest.trim_start().len());
    }
    let end = memchr::memchr3(b'$', b'#', b'%', line.as_bytes())
        .filter(|at| line[at + 1..].starts_with(' '))?;
    let before = &line[..end];
    let host = before.contains('@') && !before.contains(' ')
        || before.starts_with('[') && before.ends_with(']');
    host.then(|| line.len() - line[end + 1..].trim_start().len())
}

/// `# apt update` as the only line of a block: root's prompt, not a comment.
fn root_prompt(line: &str) -> Option<usize> {
    let rest = line.strip_prefix("# ")?;
    let lower = rest.starts_with(|it: char| it.is_ascii_lowercase() || it == '/');
    (lower && begins_as_command(rest) && !is_sentence(rest)).then_some(2)
}

/// A session: lines after prompts are commands, the others are what they printed.
pub(super) fn session(reply: &str, inside: Span) -> Option<Found<'_>> {
    let all: Vec<Span> = lines(reply, inside).collect();
    if let [only] = &*all
        && let Some(skipped) = root_prompt(only.of(reply))
    {
        return Some(Found::at(
            reply,
            Span { start: only.start + skipped, end: only.end },
            &[Step::Prompt],
        ));
    }
    let mut commands: Vec<&str> = Vec::new();
    let mut place: Option<Span> = None;
    let (mut output, mut continued) = (false, false);
    for line in &all {
        let text = line.of(reply);
        let skipped =
            prompt(text).or_else(|| text.strip_prefix("> ").filter(|_| continued).map(|_| 2));
        match skipped.or_else(|| continued.then_some(0)) {
            Some(skipped) => {
                let command = Span { start: line.start + skipped, end: line.end };
                commands.push(command.of(reply));
                continued = text.ends_with('\\');
                place = Some(place.map_or(command, |it| it.to(command)));
            }
            None => output |= !text.starts_with('#'),
        }
    }
    let place = place?;
    let mut steps = vec![Step::Prompt];
    if output {
        steps.push(Step::Output);
    }
    let text = match &*commands {
        [only] => (*only).into(),
        _ => commands.join("\n").into(),
    };
    Some(Found { text, span: place, steps, alternatives: 0 })
}

/// What a terminal shows without its prompts: a command on the first line, and what it printed.
pub(super) fn shown(reply: &str, inside: Span) -> Option<Found<'_>> {
    let mut lines = lines(reply, inside);
    let first = lines.next()?;
    let text = first.of(reply);
    if !begins_as_command(text) || text.ends_with('\\') || Script::parse(text).is_err() {
        return None;
    }
    let (mut printed, mut commands) = (0, 0);
    for line in lines {
        let is_command = line.of(reply).starts_with('#') || begins_as_command(line.of(reply));
        if is_command { commands += 1 } else { printed += 1 }
    }
    (printed > 0 && commands == 0).then(|| Found::at(reply, first, &[Step::Output]))
}

/// A prompt somewhere in prose.
pub(super) fn prompted(reply: &str, whole: Span) -> Option<Found<'_>> {
    let first = lines(reply, whole).find(|line| prompt(line.of(reply)).is_some())?;
    let mut found = session(reply, Span { start: first.start, end: whole.end })?;
    if whole.start < first.start {
        found.steps.insert(0, Step::Prose);
    }
    Some(found)
}

/// Pieces of inline code that parse.
fn codes(reply: &str, whole: Span) -> Vec<Span> {
    let mut codes = Vec::new();
    let mut at = whole.start;
    for (index, piece) in whole.of(reply).split('`').enumerate() {
        let place = trimmed(reply, Span { start: at, end: at + piece.len() });
        at += piece.len() + 1;
        let is_code = index % 2 == 1 && at <= whole.end + 1 && place.start < place.end;
        if is_code && !is_comment(place.of(reply)) && Script::parse(place.of(reply)).is_ok() {
            codes.push(place);
        }
    }
    codes
}

/// All inline code that begins as a command does.
pub(super) fn all_inline(reply: &str, whole: Span) -> Vec<Found<'_>> {
    let commands = codes(reply, whole).into_iter().filter(|it| begins_as_command(it.of(reply)));
    commands.map(|place| Found::at(reply, place, &[Step::InlineCode])).collect()
}

/// The first piece of inline code that can be a command.
pub(super) fn inline_code(reply: &str, whole: Span) -> Option<Found<'_>> {
    let codes = codes(reply, whole);
    let advised: Vec<Span> =
        codes.iter().copied().filter(|it| !is_warned_of(&reply[whole.start..it.start])).collect();
    let codes = if advised.is_empty() { codes } else { advised };
    let likely =
        |place: &&Span| begins_as_command(place.of(reply)) && place.of(reply).contains(' ');
    let first = codes
        .iter()
        .find(likely)
        .or_else(|| codes.iter().find(|it| begins_as_command(it.of(reply))))
        .or_else(|| codes.iter().find(|it| it.of(reply).contains(' ')))
        .or_else(|| codes.first().filter(|it| codes.len() == 1 && !is_thing(reply, **it)))?;
    let alone = first.start <= whole.start + 2 && first.end + 2 >= whole.end;
    let outer = [(!alone).then_some(Step::Prose), Some(Step::InlineCode)];
    let steps: Vec<Step> = outer.into_iter().flatten().collect();
    let mut found = Found::at(reply, *first, &steps);
    found.alternatives =
        codes.iter().filter(|it| likely(it) && it.of(reply) != first.of(reply)).count();
    Some(found)
}

/// What a sentence calls a piece of code that is no command.
const THINGS: &[&str] = &[
    "argument",
    "array",
    "branch",
    "called",
    "class",
    "column",
    "directory",
    "field",
    "file",
    "files",
    "flag",
    "folder",
    "function",
    "key",
    "method",
    "module",
    "named",
    "option",
    "package",
    "parameter",
    "path",
    "string",
    "user",
    "value",
    "variable",
    "word",
];

/// Whether a piece of code without arguments names a file or another thing: the file `notes.txt`, the `name` argument.
fn is_thing(reply: &str, place: Span) -> bool {
    let code = place.of(reply);
    let bare = |it: &str| {
        THINGS.contains(&&*it.trim_matches(|it: char| !it.is_alphabetic()).to_lowercase())
    };
    let line = reply[..place.start].rsplit('\n').next().unwrap_or_default();
    let before =
        line.split_whitespace().rev().map(|it| it.trim_matches('`')).find(|it| !it.is_empty());
    let after = reply[place.end..].trim_start_matches('`').split_whitespace().next();
    let has_ending = code.rsplit_once('.').is_some_and(|(stem, ending)| {
        !stem.is_empty() && !stem.contains('/') && ending.chars().all(char::is_alphabetic)
    });
    !code.contains(' ') && (has_ending || [before, after].into_iter().flatten().any(bare))
}

/// The first line of prose that begins as a command.
pub(super) fn among_prose(reply: &str, whole: Span) -> Option<Found<'_>> {
    let is_command = |line: &Span| {
        let text = line.of(reply);
        begins_as_command(text)
            && !is_sentence(text)
            && !is_heading(text)
            && Script::parse(text).is_ok()
    };
    let candidates: Vec<Span> =
        lines(reply, whole).map(|line| unlisted(reply, line)).filter(is_command).collect();
    let first = candidates.first()?;
    let mut found = Found::at(reply, *first, &[Step::Prose]);
    found.alternatives = candidates.len() - 1;
    Some(found)
}

/// A line without the mark of a list.
fn unlisted(reply: &str, line: Span) -> Span {
    let text = line.of(reply);
    let text = text.strip_prefix("> ").unwrap_or(text);
    let rest = text.trim_start_matches(|it: char| it.is_ascii_digit());
    let rest = match rest.len() < text.len() {
        true => rest.strip_prefix(". ").or_else(|| rest.strip_prefix(") ")).unwrap_or(text),
        false => text.strip_prefix("- ").or_else(|| text.strip_prefix("* ")).unwrap_or(text),
    };
    Span { start: line.end - rest.len(), end: line.end }
}
