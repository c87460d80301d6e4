//! Fenced blocks, as far as JSON may be in them.

use std::ops::Range;

use probity_text::fence;

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
    let blocks = fence::fences(text).into_iter();
    blocks.map(|it| Fence { content: it.content, tag: Tag::of(it.tag) }).collect()
}
