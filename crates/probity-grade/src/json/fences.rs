//! Fenced blocks in Markdown.
//!
//! Models fence carelessly: the block may be indented, on one line, or never
//! closed. A fence is three or more backticks or tildes; it is closed by a line
//! that holds nothing else, or, failing that, by the same sign anywhere.

use std::ops::Range;

/// A fenced block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fence {
    /// The bytes between the fences, without the tag.
    pub(super) content: Range<usize>,
    /// What the tag says that this is.
    pub(super) tag: Tag,
}

/// What a fenced block says that it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tag {
    /// JSON or one of its relatives.
    Json,
    /// Nothing, or text.
    Plain,
    /// A language. Its literals may look like JSON and are not the answer.
    Code,
}

impl Tag {
    fn of(tag: &str) -> Self {
        let tag = tag.to_ascii_lowercase();
        match tag.as_str() {
            _ if tag.starts_with("json") => Self::Json,
            "" | "text" | "txt" | "plain" | "plaintext" | "markdown" | "md" | "output" => {
                Self::Plain
            }
            _ => Self::Code,
        }
    }
}

/// Where code in other languages is: nothing is searched for in there.
pub(super) struct Code(Vec<Range<usize>>);

impl Code {
    pub(super) fn of(fences: &[Fence]) -> Self {
        let code = fences.iter().filter(|it| it.tag == Tag::Code);
        Self(code.map(|it| it.content.clone()).collect())
    }

    pub(super) fn holds(&self, at: usize) -> bool {
        let next = self.0.partition_point(|it| it.end <= at);
        self.0.get(next).is_some_and(|it| it.contains(&at))
    }
}

/// The fenced blocks of a text in order.
pub(super) fn fences(text: &str) -> Vec<Fence> {
    let mut fences = Vec::new();
    let marks = marks(text);
    let mut next = 0;
    while let Some(open) = marks.get(next) {
        let (tag, start) = content_start(text, open);
        let close = closing(&marks, next);
        let end = close.map_or(text.len(), |index| marks[index].span.start);
        fences.push(Fence { content: start.min(end)..end, tag: Tag::of(tag) });
        next = close.map_or(marks.len(), |index| index + 1);
    }
    fences
}

/// A run of three or more backticks or tildes.
struct Mark {
    span: Range<usize>,
    sign: u8,
    /// Nothing else is on its line.
    alone: bool,
    /// Nothing but blanks is before it on its line.
    leads: bool,
    /// The next mark that is alone on its line and has the same sign.
    next_alone: Option<usize>,
}

fn marks(text: &str) -> Vec<Mark> {
    let bytes = text.as_bytes();
    let mut marks: Vec<Mark> = Vec::new();
    let mut at = 0;
    while let Some(found) = memchr::memchr2(b'`', b'~', &bytes[at..]) {
        let start = at + found;
        let sign = bytes[start];
        let length = bytes[start..].iter().take_while(|&&it| it == sign).count();
        at = start + length;
        if length < 3 {
            continue;
        }
        let blank = |byte: &&u8| matches!(**byte, b' ' | b'\t' | b'\r');
        let before = bytes[..start].iter().rev().find(|byte| !blank(byte));
        let after = bytes[at..].iter().find(|byte| !blank(byte));
        let leads = matches!(before, None | Some(b'\n'));
        marks.push(Mark {
            span: start..at,
            sign,
            alone: leads && matches!(after, None | Some(b'\n')),
            leads,
            next_alone: None,
        });
    }
    let mut next_alone = [None, None];
    for index in (0..marks.len()).rev() {
        let mark = &mut marks[index];
        let slot = &mut next_alone[usize::from(mark.sign == b'~')];
        mark.next_alone = *slot;
        if mark.alone {
            *slot = Some(index);
        }
    }
    marks
}

/// The mark that closes a block: a line of its own if the opening mark leads its line.
fn closing(marks: &[Mark], open: usize) -> Option<usize> {
    let mark = &marks[open];
    let anywhere = || {
        let next = marks.get(open + 1)?;
        (next.sign == mark.sign).then_some(open + 1)
    };
    if mark.leads { mark.next_alone.or_else(anywhere) } else { anywhere() }
}

/// Splits the tag off: a word right after the fence.
fn content_start<'a>(text: &'a str, open: &Mark) -> (&'a str, usize) {
    let rest = &text[open.span.end..];
    let tag_end = rest
        .find(|it: char| !(it.is_alphanumeric() || matches!(it, '_' | '-' | '+' | '.' | '#')))
        .unwrap_or(rest.len());
    (&rest[..tag_end], open.span.end + tag_end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let found: Vec<_> =
            fences(text).into_iter().map(|fence| text[fence.content].trim()).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn blocks_are_found_with_any_sign_tag_and_indent() {
        check("```json\n1\n```", &["1"]);
        check("a\n  ~~~\n  1\n  ~~~\nb\n````js\n2\n````", &["1", "2"]);
    }

    #[test]
    fn a_block_on_one_line_is_found() {
        check("say ```{}``` or ```json []```", &["{}", "[]"]);
    }

    #[test]
    fn a_fence_inside_a_line_does_not_close_a_block() {
        check("```json\n{\"a\": \"```x```\"}\n```", &["{\"a\": \"```x```\"}"]);
    }

    #[test]
    fn an_open_block_runs_to_the_end() {
        check("```json\n[1]\n", &["[1]"]);
    }

    #[test]
    fn many_fences_are_found_in_one_pass() {
        assert!(!fences(&"```".repeat(1 << 18)).is_empty());
        assert!(!fences(&"```\n".repeat(1 << 18)).is_empty());
        assert!(!fences(&"``` ~~~ ".repeat(1 << 17)).is_empty());
    }
}
