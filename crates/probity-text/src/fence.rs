//! Fenced blocks in Markdown.
//!
//! Models fence carelessly: the block may be indented, on one line, or never
//! closed. A fence is three or more backticks or tildes; it is closed by a line
//! that holds nothing else, or, failing that, by the same sign anywhere.

use std::ops::Range;

/// A fenced block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fence<'t> {
    /// The word right after the opening fence.
    pub tag: &'t str,
    /// The bytes between the fences, without the tag.
    pub content: Range<usize>,
}

/// The fenced blocks of a text in order.
pub fn fences(text: &str) -> Vec<Fence<'_>> {
    let mut fences = Vec::new();
    let marks = marks(text);
    let mut next = 0;
    let mut line_end = 0;
    while let Some(open) = marks.get(next) {
        let (tag, start) = content_start(text, open);
        let close = closing(&marks, next);
        let end = close.map_or(text.len(), |index| marks[index].span.start);
        let content = start.min(end)..end;
        // A line may have many marks, and is searched for its end once.
        if start > line_end {
            let rest = &text.as_bytes()[start..];
            line_end = memchr::memchr(b'\n', rest).map_or(text.len(), |at| start + at);
        }
        let first = &text[content.start..line_end.clamp(content.start, end)];
        // Words after a mark within a line are prose that speaks of the mark.
        let is_prose = !open.leads && tag.is_empty() && first.chars().any(|it| !it.is_whitespace());
        if is_prose && first.len() < content.len() {
            next += 1;
            continue;
        }
        fences.push(Fence { tag, content });
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
    /// The next mark that is alone on its line, has the same sign and is at least as long.
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
    // Marks that are alone on their line, the nearest last; those behind a longer one are left out.
    let mut alone: [Vec<usize>; 2] = Default::default();
    for index in (0..marks.len()).rev() {
        let length = marks[index].span.len();
        let later = &mut alone[usize::from(marks[index].sign == b'~')];
        let shorter = later.partition_point(|it| marks[*it].span.len() >= length);
        marks[index].next_alone = later[..shorter].last().copied();
        if marks[index].alone {
            later.truncate(shorter);
            later.push(index);
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
    fn a_longer_fence_holds_shorter_ones() {
        check("````md\n```\na\n```\n````\nb\n```\nc\n```", &["```\na\n```", "c"]);
        check("````json\n{}\n```\nb", &["{}"]);
    }

    #[test]
    fn prose_about_fences_opens_none() {
        check("Use ``` to fence.\n```py\na\n```", &["a"]);
        check("Here: ```json\n{}\n```", &["{}"]);
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
        assert_eq!(fences(&format!("x{}\n.", " ``` ~~~".repeat(1 << 18))).len(), 1);
    }
}
