//! Finds what a reply shows and does not say itself: code, quotations, thoughts.
//!
//! A refusal inside any of these is a character's, a document's or a draft's.
//! Each search is bounded or remembers how far it looked, so the whole is linear.

use memchr::{memchr, memchr_iter, memmem};

/// The longest quotation, in bytes. A mark without its partner in reach is no quotation.
const LONGEST_QUOTATION: usize = 600;

/// Where the reply begins after the thoughts of a reasoning model.
pub(crate) fn after_thinking(text: &str) -> usize {
    if memchr(b'<', text.as_bytes()).is_none() {
        return 0;
    }
    let start = text.len() - text.trim_start().len();
    let opened =
        ["<think>", "<thinking>", "<reasoning>"].iter().any(|tag| text[start..].starts_with(tag));
    let mut closed = None;
    for tag in ["</think>", "</thinking>", "</reasoning>"] {
        // Some servers strip the opening tag, so the closing one alone counts as well.
        let end = memmem::find(text.as_bytes(), tag.as_bytes()).map(|at| at + tag.len());
        closed = closed.max(end);
    }
    closed.unwrap_or(if opened { text.len() } else { 0 })
}

/// The end of a code fence or of a quoted line that begins at `at`, a line start.
pub(super) fn block(text: &str, at: usize) -> Option<usize> {
    let rest = text.as_bytes().get(at..)?;
    match rest {
        [b'>', ..] => Some(at + line_length(rest)),
        [b'`', b'`', b'`', ..] | [b'~', b'~', b'~', ..] => Some(at + fence_length(rest)),
        _ => None,
    }
}

fn line_length(rest: &[u8]) -> usize {
    memchr(b'\n', rest).map_or(rest.len(), |end| end + 1)
}

/// The length of a fence with its closing line; an open one goes to the end.
fn fence_length(rest: &[u8]) -> usize {
    let marker = &rest[..3];
    let mut at = line_length(rest);
    while at < rest.len() {
        let line = &rest[at..];
        let end = at + line_length(line);
        if line.trim_ascii_start().starts_with(marker) {
            return end;
        }
        at = end;
    }
    rest.len()
}

/// Finds quotations and inline code from left to right.
pub(super) struct Quotations<'t> {
    text: &'t str,
    /// A reply that is one quotation as a whole is the reply, not a quotation.
    whole: bool,
    /// Per kind of mark: no partner ends before this offset.
    searched: [usize; KINDS.len()],
}

struct Kind {
    open: &'static str,
    close: &'static str,
    /// The same mark opens and closes, so the characters around it must tell.
    straight: bool,
}

const KINDS: [Kind; 8] = [
    Kind::new("\"", "\""),
    Kind::new("'", "'"),
    Kind::new("`", "`"),
    Kind::new("“", "”"),
    Kind::new("„", "“"),
    Kind::new("«", "»"),
    Kind::new("「", "」"),
    Kind::new("『", "』"),
];

impl Kind {
    const fn new(open: &'static str, close: &'static str) -> Self {
        Self { open, close, straight: open.len() == 1 }
    }
}

impl<'t> Quotations<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let trimmed = text.trim();
        let whole = KINDS.iter().any(|kind| {
            trimmed
                .strip_prefix(kind.open)
                .and_then(|inside| inside.strip_suffix(kind.close))
                .is_some_and(|inside| !inside.contains(kind.close))
        });
        Self { text, whole, searched: [0; KINDS.len()] }
    }

    /// The end of the quotation that opens at `at`, if one does.
    pub(super) fn end(&mut self, at: usize) -> Option<usize> {
        let rest = self.text.get(at..)?;
        let first = *rest.as_bytes().first()?;
        if !matches!(first, b'"' | b'\'' | b'`' | 0xc2 | 0xe2 | 0xe3) || self.whole {
            return None;
        }
        let (index, kind) =
            KINDS.iter().enumerate().find(|(_, kind)| rest.starts_with(kind.open))?;
        let inside = at + kind.open.len();
        if kind.straight && !(free_before(self.text, at) && tight_after(self.text, inside)) {
            return None;
        }
        let from = inside.max(self.searched[index]);
        let limit = inside.saturating_add(LONGEST_QUOTATION).min(self.text.len());
        let region = self.text.as_bytes().get(from..limit)?;
        let region = &region[..places(region, b"\n\n").next().unwrap_or(region.len())];
        let end = places(region, kind.close.as_bytes())
            .map(|offset| from + offset + kind.close.len())
            .find(|&end| !kind.straight || !word_at(self.text, end));
        if end.is_none() {
            self.searched[index] = from + region.len();
        }
        end
    }
}

/// Where a mark stands. It begins with a byte that little else has, so that nothing needs to be prepared for the search.
fn places<'r>(region: &'r [u8], mark: &'r [u8]) -> impl Iterator<Item = usize> + 'r {
    let first = mark.first().copied().unwrap_or_default();
    memchr_iter(first, region).filter(move |at| region[*at..].starts_with(mark))
}

fn free_before(text: &str, at: usize) -> bool {
    text.get(..at)
        .and_then(|before| before.chars().next_back())
        .is_none_or(|it| !it.is_alphanumeric())
}

fn tight_after(text: &str, at: usize) -> bool {
    text.as_bytes().get(at).is_some_and(|byte| !byte.is_ascii_whitespace())
}

fn word_at(text: &str, at: usize) -> bool {
    text.get(at..).and_then(|rest| rest.chars().next()).is_some_and(char::is_alphanumeric)
}
