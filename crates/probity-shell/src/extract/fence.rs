//! A command in a Markdown fence.

use super::{Found, Step, json, line, trimmed};
use crate::Span;

/// A fenced block: its tag and what is inside.
struct Block<'t> {
    tag: &'t str,
    inside: Span,
}

/// All blocks of a reply.
struct Blocks<'t> {
    blocks: Vec<Block<'t>>,
    /// Whether there is text outside of them.
    prose: bool,
}

const SHELL_TAGS: &[&str] = &[
    "bash",
    "sh",
    "shell",
    "zsh",
    "console",
    "terminal",
    "shell-session",
    "shellsession",
    "sh-session",
    "bash-session",
    "dash",
    "ksh",
    "shellscript",
    "cmd",
    "command",
    "commandline",
    "posix",
    "unix",
    "linux",
];

pub(super) fn command(reply: &str, whole: Span) -> Option<Found<'_>> {
    let Blocks { blocks, prose } = blocks(reply, whole);
    let block = blocks
        .iter()
        .find(|it| it.is_shell())
        .or_else(|| blocks.iter().find(|it| it.tag.is_empty()))
        .or_else(|| blocks.first())?;
    let mut found = block.command(reply)?;
    let outer = [prose.then_some(Step::Prose), Some(Step::Fence)];
    found.steps.splice(..0, outer.into_iter().flatten());
    // Blocks in other languages are no alternatives, and neither is sample output.
    let others = blocks.iter().filter(|it| it.may_be_shell()).count();
    found.alternatives += others.saturating_sub(1);
    Some(found)
}

/// The commands of all blocks that may hold one.
pub(super) fn all(reply: &str, whole: Span) -> Vec<Found<'_>> {
    let Blocks { blocks, .. } = blocks(reply, whole);
    blocks.iter().filter(|it| it.may_be_shell()).filter_map(|it| it.command(reply)).collect()
}

/// Where the blocks are.
pub(super) fn spans(reply: &str, whole: Span) -> Vec<Span> {
    blocks(reply, whole).blocks.iter().map(|it| it.inside).collect()
}

impl Block<'_> {
    fn is_shell(&self) -> bool {
        SHELL_TAGS.contains(&self.tag.to_ascii_lowercase().as_str())
    }

    fn may_be_shell(&self) -> bool {
        self.tag.is_empty() || self.is_shell()
    }

    fn command<'t>(&self, reply: &'t str) -> Option<Found<'t>> {
        let inside = trimmed(reply, self.inside);
        if inside.start == inside.end {
            return None;
        }
        let inner = json::command(reply, inside).or_else(|| line::session(reply, inside));
        Some(inner.unwrap_or_else(|| Found::at(reply, inside, &[])))
    }
}

fn blocks(reply: &str, whole: Span) -> Blocks<'_> {
    let (mut blocks, mut prose) = (Vec::new(), false);
    let mut open: Option<(&str, &str, usize)> = None;
    let mut at = whole.start;
    for line in whole.of(reply).split_inclusive('\n') {
        let content = line.trim();
        let end = at + line.len();
        match open {
            None => match opening(content) {
                // A block can open and close on one line.
                Some((mark, rest)) => match rest.find(mark) {
                    Some(close) => {
                        let start = at + line.find(rest).unwrap_or_default();
                        // A tag may stand before the command; a shell's name with nothing behind it is the command.
                        let tag = rest[..close].split_once(' ').map_or("", |(tag, _)| tag);
                        let tag = if SHELL_TAGS.contains(&tag) { tag } else { "" };
                        let inside = Span { start: start + tag.len(), end: start + close };
                        blocks.push(Block { tag, inside });
                    }
                    None => open = Some((mark, rest, end)),
                },
                None => prose |= !content.is_empty(),
            },
            Some((mark, tag, start))
                if content.starts_with(mark)
                    && content.trim_start_matches(mark).trim_matches(['`', '~']).is_empty() =>
            {
                blocks.push(Block { tag: language(tag), inside: Span { start, end: at } });
                open = None;
            }
            Some(_) => {}
        }
        at = end;
    }
    // A reply that was cut short does not close its fence.
    if let Some((_, tag, start)) = open {
        blocks.push(Block { tag: language(tag), inside: Span { start, end: whole.end } });
    }
    Blocks { blocks, prose }
}

/// The mark and the rest of a line that opens a block.
fn opening(line: &str) -> Option<(&'static str, &str)> {
    let line = line.trim_start_matches(['-', '*', '>', ' ', '1', '2', '3', '4', '.', ')']);
    ["```", "~~~"].into_iter().find_map(|mark| {
        let rest = line.strip_prefix(mark)?.trim_start_matches(['`', '~']);
        Some((mark, rest.trim()))
    })
}

fn language(tag: &str) -> &str {
    tag.split([' ', ',', '{', ':']).next().unwrap_or_default().trim_start_matches('.')
}
