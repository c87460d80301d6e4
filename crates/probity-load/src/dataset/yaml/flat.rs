//! Lines of quoted texts that are not indented.
//!
//! YAML wants them indented, `PyYAML` and js-yaml do not, and people write them. Blanks at the beginning of
//! such a line mean nothing, so they are added. All positions stay those of the text as it is written.

use std::ops::Range;

use probity_core::located::{Node, NodeValue};

/// Bytes that may be read again because of such lines, in all.
const MOST_READ_AGAIN: usize = 16 << 20;

/// A text with blanks that were added to it.
#[derive(Debug)]
pub(super) struct Padded<'t> {
    /// The text as it is written.
    plain: &'t str,
    pub(super) text: String,
    /// Where blanks were added, in this text, and how many bytes were added up to their end.
    added: Vec<(usize, usize)>,
    read_again: usize,
}

impl<'t> Padded<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { plain: text, text: text.to_owned(), added: Vec::new(), read_again: 0 }
    }

    /// Indents the line at a place, further than all lines before it. False if there have been too many
    /// such lines, or if that did not help.
    pub(super) fn indent(&mut self, at: usize) -> bool {
        let start = self.text[..at].rfind('\n').map_or(0, |it| it + 1);
        let (last, total) = self.added.last().copied().unwrap_or_default();
        let is_new = self.added.is_empty() || start > last;
        self.read_again += self.text.len();
        if !is_new || self.read_again > MOST_READ_AGAIN {
            return false;
        }
        let written = self.plain[..self.original(start)]
            .lines()
            .map(|line| line.len() - line.trim_start_matches([' ', '-', '?', ':', '\t']).len());
        let count = written.max().unwrap_or(0) + 1;
        self.text.insert_str(start, &" ".repeat(count));
        self.added.push((start, total + count));
        true
    }

    /// A range of this text, in the text as it is written.
    pub(super) fn written(&self, range: &Range<usize>) -> Range<usize> {
        self.original(range.start)..self.original(range.end)
    }

    fn original(&self, at: usize) -> usize {
        let before = self.added.partition_point(|(start, _)| *start < at);
        let Some((start, total)) = before.checked_sub(1).map(|it| self.added[it]) else {
            return at;
        };
        let earlier = before.checked_sub(2).map_or(0, |it| self.added[it].1);
        // Within the blanks, it is where they were added.
        (at - earlier).min(start - earlier).max(at.saturating_sub(total))
    }

    /// Puts all positions of a tree where they are in the text as it is written.
    pub(super) fn restore(&self, node: &mut Node) {
        node.span = self.written(&node.span);
        match &mut node.value {
            NodeValue::Array(items) => items.iter_mut().for_each(|it| self.restore(it)),
            NodeValue::Object(entries) => {
                for entry in entries {
                    entry.key_span = self.written(&entry.key_span);
                    self.restore(&mut entry.node);
                }
            }
            NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) | NodeValue::String(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    #[test]
    fn lines_of_quoted_texts_need_no_indentation() {
        let text = "a:\n  - b: \"one\ntwo\n\nthree\"\n    c: 'it''s\n  so'\n    d: [x]\nlast: 1\n";
        let root = parse(text).unwrap();
        let of = |pointer: &str| root.to_json().pointer(pointer).cloned().unwrap();
        assert_eq!(of("/a/0/b"), "one two\nthree");
        assert_eq!(of("/a/0/c"), "it's so");
        // Positions are those of the text itself.
        let inner = &root.get("a").unwrap().items()[0];
        let shown = |range: &std::ops::Range<usize>| &text[range.clone()];
        assert_eq!(shown(&inner.get("b").unwrap().span), "\"one\ntwo\n\nthree\"");
        assert_eq!(shown(&inner.get("d").unwrap().span), "[x]");
        assert_eq!(shown(&root.get("last").unwrap().span), "1");
        assert_eq!(shown(&root.entries()[1].key_span), "last");
        let broken = parse("a: \"one\ntwo\"\nb: [\n").unwrap_err();
        assert_eq!(broken.span.start, 16, "{broken:?}");
    }

    #[test]
    fn many_such_lines_are_read_or_refused_in_time() {
        let text = format!("a: \"{}\"\n", "x\n".repeat(20_000));
        let began = std::time::Instant::now();
        let _ = parse(&text);
        assert!(began.elapsed().as_secs() < 20);
        assert!(parse(&format!("a: \"{}\"\n", "x\n".repeat(500))).is_ok());
    }
}
