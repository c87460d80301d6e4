//! Fenced blocks of code.

use std::ops::Range;

use super::Take;
use crate::fence::{Fence, fences};

/// Where the code of a block is.
pub(super) fn find(text: &str, language: Option<&str>, take: Take) -> Option<Range<usize>> {
    let blocks = fences(text).into_iter().map(|it| block(text, it));
    let wanted = |block: &Block<'_>| language.is_none_or(|it| is_called(block.tag, it));
    take.of(blocks.filter(wanted).map(|block| block.code))
}

struct Block<'t> {
    /// What stands beside the opening fence.
    tag: &'t str,
    code: Range<usize>,
}

/// The code of a block: it begins on the line after the opening fence, unless there is only one.
fn block<'t>(text: &'t str, fence: Fence<'t>) -> Block<'t> {
    let Fence { tag, content } = fence;
    let Some((beside, _)) = text[content.clone()].split_once('\n') else {
        return Block { tag, code: content };
    };
    let tag = if tag.is_empty() { beside.trim_start() } else { tag };
    Block { tag, code: content.start + beside.len() + 1..content.end }
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
