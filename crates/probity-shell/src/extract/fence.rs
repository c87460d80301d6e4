//! A command in a Markdown fence.

use std::cell::OnceCell;

use super::{
    Found, Step, begins_as_command, is_comment, is_sentence, is_warned_of, json, leading, line,
    trimmed,
};
use crate::{Span, utility};

/// A fenced block: its tag and what is inside.
struct Block<'t> {
    tag: &'t str,
    inside: Span,
    /// Whether the words before it tell not to use it.
    warned: bool,
    /// Its command, once somebody has asked for it.
    command: OnceCell<Option<Found<'t>>>,
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
    "fish",
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
    "conf",
    "csv",
    "diff",
    "html",
    "ini",
    "json",
    "jsonc",
    "log",
    "markdown",
    "md",
    "mermaid",
    "output",
    "patch",
    "properties",
    "stderr",
    "stdout",
    "toml",
    "tsv",
    "xml",
    "yaml",
    "yml",
];

/// Tags of languages that no shell reads.
const FOREIGN_TAGS: &[&str] = &[
    "awk",
    "c",
    "c#",
    "c++",
    "cc",
    "clojure",
    "cpp",
    "cs",
    "csharp",
    "css",
    "dart",
    "dockerfile",
    "elixir",
    "erlang",
    "go",
    "golang",
    "gradle",
    "graphql",
    "groovy",
    "haskell",
    "hcl",
    "java",
    "javascript",
    "js",
    "jsx",
    "julia",
    "kotlin",
    "lua",
    "make",
    "makefile",
    "matlab",
    "nginx",
    "nix",
    "node",
    "objc",
    "ocaml",
    "perl",
    "php",
    "proto",
    "protobuf",
    "py",
    "python",
    "python3",
    "r",
    "rb",
    "regex",
    "rs",
    "ruby",
    "rust",
    "sass",
    "scala",
    "scss",
    "sed",
    "sql",
    "swift",
    "terraform",
    "ts",
    "tsx",
    "typescript",
    "vim",
    "zig",
];

impl<'t> Blocks<'t> {
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// The text before all blocks, if the reply begins with it.
    pub(super) fn opening(&self, whole: Span) -> Option<Span> {
        self.prose.first().copied().filter(|it| it.start == whole.start)
    }

    /// The command of the first block that is sure to hold one: a shell's, or one that begins as a command.
    pub(super) fn surest(&self, reply: &'t str) -> Option<Found<'t>> {
        let blocks = self.holding(reply, |it| !it.warned);
        self.found(&blocks, surest(reply, &blocks)?)
    }

    /// The command of the first block that is meant to be run: one of a shell, or else the likeliest of the others.
    pub(super) fn advised(&self, reply: &'t str) -> Option<Found<'t>> {
        let blocks = self.holding(reply, |it| !it.warned);
        self.found(&blocks, likeliest(reply, &blocks)?)
    }

    /// The command of a block that the reply warns of, if there is no other.
    pub(super) fn any(&self, reply: &'t str) -> Option<Found<'t>> {
        let blocks = self.holding(reply, |_| true);
        self.found(&blocks, likeliest(reply, &blocks)?)
    }

    /// Blocks that pass and are not all comments, with their commands.
    fn holding(
        &self,
        reply: &'t str,
        passes: impl Fn(&Block<'_>) -> bool,
    ) -> Vec<(&Block<'t>, &Found<'t>)> {
        let blocks = self.blocks.iter().filter(|it| passes(it));
        blocks.filter_map(|it| Some((it, it.command(reply)?))).collect()
    }

    fn found(&self, blocks: &[(&Block<'t>, &Found<'t>)], at: usize) -> Option<Found<'t>> {
        let mut found = (*blocks.get(at)?.1).clone();
        let outer = [(!self.prose.is_empty()).then_some(Step::Prose), Some(Step::Fence)];
        found.steps.splice(..0, outer.into_iter().flatten());
        // Blocks in other languages are no alternatives, and neither is sample output.
        let others = blocks.iter().filter(|(it, _)| it.may_be_shell()).count();
        found.alternatives += others.saturating_sub(1);
        Some(found)
    }

    /// The commands of all blocks that may hold one.
    pub(super) fn all(&self, reply: &'t str) -> Vec<Found<'t>> {
        let blocks = self.blocks.iter().filter(|it| it.may_be_shell());
        blocks.filter_map(|it| it.command(reply).cloned()).collect()
    }
}

/// Where the first block is that is sure to hold a command.
fn surest(reply: &str, blocks: &[(&Block<'_>, &Found<'_>)]) -> Option<usize> {
    let untagged = |it: &Block<'_>| it.tag.is_empty() && it.begins_as_command(reply);
    blocks
        .iter()
        .position(|(it, _)| it.is_shell())
        .or_else(|| blocks.iter().position(|(it, _)| untagged(it)))
}

/// Where the first block is that may hold a command.
fn likeliest(reply: &str, blocks: &[(&Block<'_>, &Found<'_>)]) -> Option<usize> {
    let runs = |it: &Block<'_>| !it.is_shown() || it.holds_field(reply);
    surest(reply, blocks)
        .or_else(|| blocks.iter().position(|(it, _)| it.tag.is_empty()))
        .or_else(|| blocks.iter().position(|(it, _)| runs(it)))
}

impl<'t> Block<'t> {
    fn new(tag: &'t str, inside: Span, warned: bool) -> Self {
        Self { tag, inside, warned, command: OnceCell::new() }
    }

    fn has_tag(&self, tags: &[&str]) -> bool {
        tags.iter().any(|it| self.tag.eq_ignore_ascii_case(it))
    }

    fn is_shell(&self) -> bool {
        self.has_tag(SHELL_TAGS)
    }

    /// Whether it is shown, or run by something other than a shell.
    fn is_shown(&self) -> bool {
        self.has_tag(DATA_TAGS) || self.has_tag(FOREIGN_TAGS)
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

    fn command(&self, reply: &'t str) -> Option<&Found<'t>> {
        self.command.get_or_init(|| self.read_command(reply)).as_ref()
    }

    fn read_command(&self, reply: &'t str) -> Option<Found<'t>> {
        let inside = trimmed(reply, self.inside);
        let shown = || self.has_tag(SESSION_TAGS).then(|| line::shown(reply, inside)).flatten();
        let inner =
            json::command(reply, inside).or_else(|| line::session(reply, inside)).or_else(shown);
        let text = inside.of(reply);
        let is_prose =
            || self.tag.is_empty() && text.lines().next().is_some_and(|it| is_sentence(it.trim()));
        inner.or_else(|| (!is_comment(text) && !is_prose()).then(|| Found::at(reply, inside, &[])))
    }
}

impl<'t> Blocks<'t> {
    /// Finds the blocks of a reply and the text between them.
    pub(super) fn read(reply: &'t str, whole: Span) -> Self {
        let mut read = Blocks { blocks: Vec::new(), prose: Vec::new() };
        if !MARKS.iter().any(|it| whole.of(reply).contains(it)) {
            read.add_prose(reply, whole);
            return read;
        }
        let mut open: Option<&str> = None;
        let (mut at, mut outside) = (whole.start, whole.start);
        for line in whole.of(reply).split_inclusive('\n') {
            let content = line.trim();
            let end = at + line.len();
            match open {
                None => {
                    let before = Span { start: whole.start, end: at };
                    if let Some((mark, rest)) = opening(content)
                        && !(rest.is_empty()
                            && outside == whole.start
                            && closes(reply, before, whole))
                    {
                        let prose = read.add_prose(reply, Span { start: outside, end: at });
                        let warned = prose.is_some_and(|it| is_warned_of(it.of(reply)));
                        outside = end;
                        match rest.find(mark) {
                            Some(close) => {
                                let start = at + line.find(rest).unwrap_or_default();
                                read.add_line(rest, Span { start, end: start + close }, warned);
                            }
                            None => {
                                open = Some(mark);
                                let inside = Span { start: end, end: whole.end };
                                read.blocks.push(Block::new(language(rest), inside, warned));
                            }
                        }
                    } else if opening(content).is_some() {
                        // The model went on from a fence that it took for opened.
                        read.blocks.push(Block::new("", before, false));
                        outside = end;
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
        read.blocks.iter_mut().for_each(|it| it.take_tag(reply));
        read
    }

    /// A block that opens and closes on one line.
    fn add_line(&mut self, rest: &'t str, line: Span, warned: bool) {
        // A tag may stand before the command; a shell's name with nothing behind it is the command.
        let tag = rest[..line.end - line.start].split_once(' ').map_or("", |(tag, _)| tag);
        let is_tag = SHELL_TAGS.contains(&tag)
            || (FOREIGN_TAGS.contains(&tag) || DATA_TAGS.contains(&tag)) && !utility::is_known(tag);
        let tag = if is_tag { tag } else { "" };
        let inside = Span { start: line.start + tag.len(), end: line.end };
        self.blocks.push(Block::new(tag, inside, warned));
    }

    /// Keeps a piece of prose, unless it is blank.
    fn add_prose(&mut self, reply: &str, part: Span) -> Option<Span> {
        let part = Some(trimmed(reply, part)).filter(|it| it.start < it.end);
        self.prose.extend(part);
        part
    }
}

impl<'t> Block<'t> {
    /// A tag on the line below the mark: `python` alone, and then the code.
    fn take_tag(&mut self, reply: &'t str) {
        let inside = trimmed(reply, self.inside);
        let Some((first, _)) = inside.of(reply).split_once('\n') else { return };
        let tag = first.trim_end();
        // `make` on a line of its own is a command as often.
        if self.tag.is_empty()
            && (SHELL_TAGS.contains(&tag) || FOREIGN_TAGS.contains(&tag))
            && tag != "make"
        {
            self.tag = tag;
            self.inside.start = inside.start + first.len();
        }
    }
}

/// Whether a mark without a tag closes a fence that was never opened: what stands before it is code.
fn closes(reply: &str, before: Span, whole: Span) -> bool {
    let before = trimmed(reply, before);
    let code = before.of(reply);
    let is_script = code.starts_with("#!");
    if !is_script && !leading::is_all(reply, before) && !line::is_prompted(code) {
        return false;
    }
    let rest = reply[before.end..whole.end].trim_start();
    let after = rest.trim_start_matches(['`', '~']).trim_start();
    let marks = rest.lines().filter(|it| opening(it.trim()).is_some()).count();
    let explained = after.lines().next().is_some_and(is_sentence);
    is_script || explained || marks % 2 == 1
}

/// What a line begins with that opens a block.
const MARKS: [&str; 2] = ["```", "~~~"];

/// The mark and the rest of a line that opens a block.
fn opening(line: &str) -> Option<(&'static str, &str)> {
    let line = line.trim_start_matches(['-', '*', '>', ' ', '1', '2', '3', '4', '.', ')']);
    MARKS.into_iter().find_map(|mark| {
        let rest = line.strip_prefix(mark)?.trim_start_matches(['`', '~']);
        Some((mark, rest.trim()))
    })
}

fn language(tag: &str) -> &str {
    tag.split([' ', ',', '{', ':']).next().unwrap_or_default().trim_start_matches('.')
}
