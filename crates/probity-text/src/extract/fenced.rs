//! Fenced blocks of code.

use std::ops::Range;

use super::Take;

/// Where the code of a block is.
pub(super) fn find(text: &str, language: Option<&str>, take: Take) -> Option<Range<usize>> {
    let wanted = |block: &Block<'_>| language.is_none_or(|it| is_called(block.tag, it));
    take.of(blocks(text).filter(wanted).map(|block| block.code))
}

struct Block<'t> {
    /// What stands beside the opening fence.
    tag: &'t str,
    code: Range<usize>,
}

/// Names of languages that are the same.
const SAME: [&[&str]; 8] = [
    &["python", "py", "python3"],
    &["javascript", "js", "node"],
    &["typescript", "ts"],
    &["bash", "sh", "shell", "zsh", "console"],
    &["rust", "rs"],
    &["c++", "cpp", "cxx"],
    &["yaml", "yml"],
    &["markdown", "md"],
];

fn is_called(tag: &str, language: &str) -> bool {
    let tag = tag.split(|c: char| c.is_whitespace() || c == '{').next().unwrap_or("");
    let named = |name: &&str| name.eq_ignore_ascii_case(tag);
    tag.eq_ignore_ascii_case(language)
        || SAME.iter().any(|names| {
            names.iter().any(named) && names.iter().any(|it| it.eq_ignore_ascii_case(language))
        })
}

/// The blocks in order. One that is never closed goes to the end of the text.
fn blocks(text: &str) -> impl Iterator<Item = Block<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < text.len() {
            let line = line_at(text, at);
            let start = (line.end + 1).min(text.len());
            let opening = fence(&text[line.clone()]);
            at = start;
            let Some((sign, length, tag)) = opening.filter(|it| !it.2.contains('`')) else {
                continue;
            };
            let mut end = text.len();
            while at < text.len() {
                let line = line_at(text, at);
                at = (line.end + 1).min(text.len());
                let closing = fence(&text[line.clone()]);
                if closing.is_some_and(|it| it.0 == sign && it.1 >= length && it.2.is_empty()) {
                    end = line.start;
                    break;
                }
            }
            return Some(Block { tag, code: start..end });
        }
        None
    })
}

/// The line that starts at a byte, without its end.
fn line_at(text: &str, at: usize) -> Range<usize> {
    at..text[at..].find('\n').map_or(text.len(), |length| at + length)
}

/// The sign of a fence, how often it is there, and what stands beside it.
fn fence(line: &str) -> Option<(u8, usize, &str)> {
    let line = line.trim();
    let sign = *line.as_bytes().first().filter(|it| matches!(it, b'`' | b'~'))?;
    let length = line.bytes().take_while(|it| *it == sign).count();
    (length >= 3).then(|| (sign, length, line[length..].trim()))
}
