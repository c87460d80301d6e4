//! A command in a Markdown fence.

use super::{Found, Step, begins_as_command, is_warned_of, json, line, trimmed};
use crate::Span;

/// A fenced block: its tag and what is inside.
struct Block<'t> {
    tag: &'t str,
    inside: Span,
    /// Whether the words before it tell not to use it.
    warned: bool,
}

/// All blocks of a reply.
pub(super) struct Blocks<'t> {
    blocks: Vec<Block<'t>>,
    /// The text outside of them.
    pub(super) prose: Vec<Span>,
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
    "command",
    "commandline",
    "posix",
    "unix",
    "linux",
];

/// Tags of what a terminal shows: commands and what they print.
const SESSION_TAGS: &[&str] =
    &["console", "terminal", "shell-session", "shellsession", "sh-session", "bash-session"];

/// Tags of what is shown and not run.
const DATA_TAGS: &[&str] = &[
    "csv", "diff", "html", "ini", "json", "jsonc", "log", "markdown", "md", "mermaid", "output",
    "patch", "stderr", "stdout", "toml", "xml", "yaml", "yml",
];

impl<'t> Blocks<'t> {
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// The command of the first block that is meant to be run: one of a shell, or else the likeliest of the others.
    pub(super) fn advised(&self, reply: &'t str) -> Option<Found<'t>> {
        self.first(reply, |it| !it.warned)
    }

    /// The command of a block that the reply warns of, if there is no other.
    pub(super) fn any(&self, reply: &'t str) -> Option<Found<'t>> {
        self.first(reply, |_| true)
    }

    fn first(&self, reply: &'t str, passes: impl Fn(&Block<'_>) -> bool) -> Option<Found<'t>> {
        let blocks = || self.blocks.iter().filter(|it| passes(it));
        let block = blocks()
            .find(|it| it.is_shell())
            .or_else(|| blocks().find(|it| it.tag.is_empty() && it.begins_as_command(reply)))
            .or_else(|| blocks().find(|it| it.tag.is_empty()))
            .or_else(|| blocks().find(|it| !it.is_data() || it.holds_field(reply)))?;
        let mut found = block.command(reply)?;
        let outer = [(!self.prose.is_empty()).then_some(Step::Prose), Some(Step::Fence)];
        found.steps.splice(..0, outer.into_iter().flatten());
        // Blocks in other languages are no alternatives, and neither is sample output.
        let others = blocks().filter(|it| it.may_be_shell()).count();
        found.alternatives += others.saturating_sub(1);
        Some(found)
    }

    /// The commands of all blocks that may hold one.
    pub(super) fn all(&self, reply: &'t str) -> Vec<Found<'t>> {
        let blocks = self.blocks.iter().filter(|it| it.may_be_shell());
        blocks.filter_map(|it| it.command(reply)).collect()
    }

    /// Where the blocks are.
    pub(super) fn insides(&self) -> impl Iterator<Item = Span> {
        self.blocks.iter().map(|it| it.inside)
    }
}

impl Block<'_> {
    fn has_tag(&self, tags: &[&str]) -> bool {
        tags.iter().any(|it| self.tag.eq_ignore_ascii_case(it))
    }

    fn is_shell(&self) -> bool {
        self.has_tag(SHELL_TAGS)
    }

    fn is_data(&self) -> bool {
        self.has_tag(DATA_TAGS)
    }

    fn may_be_shell(&self) -> bool {
        self.tag.is_empty() || self.is_shell() || self.tag.eq_ignore_ascii_case("cmd")
    }

    fn holds_field(&self, reply: &str) -> bool {
        json::command(reply, trimmed(reply, self.inside)).is_some()
    }

    fn begins_as_command(&self, reply: &str) -> bool {
        let inside = trimmed(reply, self.inside);
        let mut lines = inside.of(reply).lines().map(str::trim);
        let first = lines.find(|it| !it.is_empty() && !it.starts_with('#')).unwrap_or_default();
        begins_as_command(first) || line::session(reply, inside).is_some()
    }

    fn command<'t>(&self, reply: &'t str) -> Option<Found<'t>> {
        let inside = trimmed(reply, self.inside);
        if inside.start == inside.end {
            return None;
        }
        let shown = || self.has_tag(SESSION_TAGS).then(|| line::shown(reply, inside)).flatten();
        let inner =
            json::command(reply, inside).or_else(|| line::session(reply, inside)).or_else(shown);
        Some(inner.unwrap_or_else(|| Found::at(reply, inside, &[])))
    }
}

impl<'t> Blocks<'t> {
    /// Finds the blocks of a reply and the text between them.
    pub(super) fn read(reply: &'t str, whole: Span) -> Self {
        let mut read = Blocks { blocks: Vec::new(), prose: Vec::new() };
        let mut open: Option<&str> = None;
        let (mut at, mut outside) = (whole.start, whole.start);
        for line in whole.of(reply).split_inclusive('\n') {
            let content = line.trim();
            let end = at + line.len();
            match open {
                None => {
                    if let Some((mark, rest)) = opening(content) {
                        let warned = read.add_prose(reply, Span { start: outside, end: at });
                        outside = end;
                        match rest.find(mark) {
                            Some(close) => {
                                let start = at + line.find(rest).unwrap_or_default();
                                read.add_line(rest, Span { start, end: start + close }, warned);
                            }
                            None => {
                                open = Some(mark);
                                let inside = Span { start: end, end: whole.end };
                                read.blocks.push(Block { tag: language(rest), inside, warned });
                            }
                        }
                    }
                }
                Some(mark)
                    if content.starts_with(mark)
                        && content.trim_start_matches(mark).trim_matches(['`', '~']).is_empty() =>
                {
                    if let Some(block) = read.blocks.last_mut() {
                        block.inside.end = at;
                    }
                    open = None;
                    outside = end;
                }
                Some(_) => outside = end,
            }
            at = end;
        }
        // A reply that was cut short does not close its fence.
        read.add_prose(reply, Span { start: outside.min(whole.end), end: whole.end });
        read
    }

    /// A block that opens and closes on one line.
    fn add_line(&mut self, rest: &'t str, line: Span, warned: bool) {
        // A tag may stand before the command; a shell's name with nothing behind it is the command.
        let tag = rest[..line.end - line.start].split_once(' ').map_or("", |(tag, _)| tag);
        let tag = if SHELL_TAGS.contains(&tag) { tag } else { "" };
        let inside = Span { start: line.start + tag.len(), end: line.end };
        self.blocks.push(Block { tag, inside, warned });
    }

    /// Keeps a piece of prose; says whether it warns of what follows.
    fn add_prose(&mut self, reply: &str, part: Span) -> bool {
        let part = trimmed(reply, part);
        if part.start == part.end {
            return false;
        }
        self.prose.push(part);
        is_warned_of(part.of(reply))
    }
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
