//! Datasets in YAML.
//!
//! The tree is built straight from the parser's events, because that is where
//! the places are. Scalars are read by YAML 1.2's core schema: `yes` and `on` are
//! text, as in JSON.

mod flat;

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, Span};

use super::Intake;
use flat::Padded;
use probity_core::{
    located::{Entry, Node, NodeValue},
    problem::Source,
};

/// How deep lists and tables may nest.
const DEEPEST: usize = 256;
/// How many values aliases may repeat, in all: a few lines can otherwise stand for terabytes.
const MOST_REPEATED: usize = 1_000_000;

/// Reads a list of cases, or a table with `version` and `test_cases`.
pub(super) fn read(text: &str, intake: &mut Intake<'_>) {
    let source = Source::file(text);
    match parse(text) {
        Ok(root) => intake.document(&source, &root),
        Err(YamlError { span, message, .. }) => intake.error_at(&source, &span, "yaml", message),
    }
}

/// Why a text is no YAML that we read.
#[derive(Debug, PartialEq, Eq)]
pub struct YamlError {
    /// Where.
    pub span: Range<usize>,
    /// One sentence, lower case, no final period.
    pub message: String,
    /// Whether it is a line of a quoted text that is not indented.
    is_flat_line: bool,
}

impl YamlError {
    const fn new(span: Range<usize>, message: String) -> Self {
        Self { span, message, is_flat_line: false }
    }
}

/// The one document of a YAML text as a located tree.
pub fn parse(text: &str) -> Result<Node, YamlError> {
    let mut found = parse_strictly(text);
    if !matches!(&found, Err(error) if error.is_flat_line) {
        return found;
    }
    let mut padded = Padded::new(text);
    loop {
        match &mut found {
            Ok(root) => padded.restore(root),
            Err(error) if error.is_flat_line && padded.indent(error.span.start) => {
                found = parse_strictly(&padded.text);
                continue;
            }
            Err(error) => error.span = padded.written(&error.span),
        }
        return found;
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the parser's events are not ours")]
fn parse_strictly(text: &str) -> Result<Node, YamlError> {
    let mut builder = Builder { text, anchors: BTreeMap::new(), repeated: 0 };
    let mut events = Parser::new_from_str(text);
    let mut root = None;
    while let Some((event, span)) = next(&mut events)? {
        match event {
            Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd => {}
            Event::StreamEnd => break,
            _ if root.is_some() => {
                return Err(builder.error(&span, "a second document in the file"));
            }
            event => root = Some(builder.node(event, &span, &mut events, 0)?),
        }
    }
    Ok(root.unwrap_or(Node { span: 0..0, value: NodeValue::Null }))
}

struct Builder<'t> {
    text: &'t str,
    anchors: BTreeMap<usize, (Node, usize)>,
    repeated: usize,
}

type Events<'t> = Parser<'t, granit_parser::StrInput<'t>>;

fn next<'t>(events: &mut Events<'t>) -> Result<Option<(Event<'t>, Span)>, YamlError> {
    events.next().transpose().map_err(|error| {
        let at = error.marker().byte_offset().unwrap_or(0);
        let is_flat_line = matches!(error.kind(), ErrorKind::InvalidQuotedScalarIndent);
        YamlError { span: at..at + 1, message: error.info(), is_flat_line }
    })
}

impl<'t> Builder<'t> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the parser's events are not ours")]
    fn node(
        &mut self,
        event: Event<'t>,
        span: &Span,
        events: &mut Events<'t>,
        depth: usize,
    ) -> Result<Node, YamlError> {
        if depth > DEEPEST {
            return Err(self.error(span, &format!("lists and tables nest deeper than {DEEPEST}")));
        }
        match event {
            Event::Scalar(text, style, anchor, _) => {
                let value = if style == ScalarStyle::Plain {
                    plain(&text)
                } else {
                    NodeValue::String(text.into_owned())
                };
                Ok(self.anchored(anchor, Node { span: self.range(span), value }))
            }
            Event::SequenceStart(_, anchor, _) => self.list(anchor, span, events, depth),
            Event::MappingStart(_, anchor, _) => self.table(anchor, span, events, depth),
            Event::Alias(anchor) => {
                let Some((node, size)) = self.anchors.get(&anchor) else {
                    return Err(self.error(span, "an alias for something that is not there yet"));
                };
                self.repeated += size;
                if self.repeated > MOST_REPEATED {
                    return Err(self.error(span, "aliases repeat too much"));
                }
                Ok(Node { span: self.range(span), value: node.value.clone() })
            }
            _ => Err(self.error(span, "a value is missing")),
        }
    }

    fn list(
        &mut self,
        anchor: usize,
        start: &Span,
        events: &mut Events<'t>,
        depth: usize,
    ) -> Result<Node, YamlError> {
        let mut items = Vec::new();
        loop {
            match next(events)? {
                Some((Event::SequenceEnd, end)) => {
                    let span = self.between(start, &end);
                    return Ok(self.anchored(anchor, Node { span, value: NodeValue::Array(items) }));
                }
                Some((event, span)) => items.push(self.node(event, &span, events, depth + 1)?),
                None => return Err(self.error(start, "a list without an end")),
            }
        }
    }

    fn table(
        &mut self,
        anchor: usize,
        start: &Span,
        events: &mut Events<'t>,
        depth: usize,
    ) -> Result<Node, YamlError> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut merged: Vec<Entry> = Vec::new();
        let mut merged_keys: BTreeSet<String> = BTreeSet::new();
        loop {
            let (event, key_span) = match next(events)? {
                Some((Event::MappingEnd, end)) => {
                    if !merged.is_empty() {
                        let own: BTreeSet<&str> =
                            entries.iter().map(|it| it.key.as_str()).collect();
                        merged.retain(|entry| !own.contains(entry.key.as_str()));
                        entries.append(&mut merged);
                    }
                    let span = self.between(start, &end);
                    let value = NodeValue::Object(entries);
                    return Ok(self.anchored(anchor, Node { span, value }));
                }
                Some(event) => event,
                None => return Err(self.error(start, "a table without an end")),
            };
            let plain_merge =
                matches!(&event, Event::Scalar(text, ScalarStyle::Plain, ..) if text == "<<");
            let key = self.node(event, &key_span, events, depth + 1)?;
            let key_span = key.span.clone();
            let Some((event, span)) = next(events)? else {
                return Err(self.error(start, "a table without an end"));
            };
            let node = self.node(event, &span, events, depth + 1)?;
            match key_text(key.value) {
                Some(_) if plain_merge => {
                    for entry in merge_source(node)? {
                        // Of several tables, the first counts.
                        if merged_keys.insert(entry.key.clone()) {
                            merged.push(entry);
                        }
                    }
                }
                Some(key) => entries.push(Entry { key, key_span, node }),
                None => {
                    let message = "a name in a table must be text".to_owned();
                    return Err(YamlError::new(key_span, message));
                }
            }
        }
    }

    /// Remembers a node that aliases may repeat.
    fn anchored(&mut self, anchor: usize, node: Node) -> Node {
        if anchor > 0 {
            let size = size(&node);
            self.anchors.insert(anchor, (node.clone(), size));
        }
        node
    }

    fn error(&self, span: &Span, message: &str) -> YamlError {
        YamlError::new(self.range(span), message.to_owned())
    }

    fn range(&self, span: &Span) -> Range<usize> {
        span.byte_range().unwrap_or(0..self.text.len().min(1))
    }

    /// From the start of one event to the end of another, without the blanks before the latter.
    fn between(&self, start: &Span, end: &Span) -> Range<usize> {
        let (start, end) = (self.range(start).start, self.range(end).end);
        let text = self.text.get(start..end).unwrap_or("");
        start..start + text.trim_end().len()
    }
}

/// The tables that `<<` asks to take names from.
fn merge_source(node: Node) -> Result<Vec<Entry>, YamlError> {
    match node.value {
        NodeValue::Object(entries) => Ok(entries),
        NodeValue::Array(items) => {
            let tables: Vec<_> = items.into_iter().map(merge_source).collect::<Result<_, _>>()?;
            Ok(tables.into_iter().flatten().collect())
        }
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) | NodeValue::String(_) => {
            let message = format!("`<<` takes a table or a list of tables, not {}", node.kind());
            Err(YamlError::new(node.span, message))
        }
    }
}

fn key_text(value: NodeValue) -> Option<String> {
    match value {
        NodeValue::String(text) | NodeValue::Number(text) => Some(text),
        NodeValue::Bool(value) => Some(value.to_string()),
        NodeValue::Null => Some("null".to_owned()),
        NodeValue::Array(_) | NodeValue::Object(_) => None,
    }
}

fn size(node: &Node) -> usize {
    1 + node.items().iter().map(size).sum::<usize>()
        + node.entries().iter().map(|entry| size(&entry.node)).sum::<usize>()
}

/// A scalar without quotes, by YAML 1.2's core schema.
fn plain(text: &str) -> NodeValue {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => NodeValue::Null,
        "true" | "True" | "TRUE" => NodeValue::Bool(true),
        "false" | "False" | "FALSE" => NodeValue::Bool(false),
        _ => number(text).map_or_else(|| NodeValue::String(text.to_owned()), NodeValue::Number),
    }
}

/// A number in JSON's spelling, if the text is one.
fn number(text: &str) -> Option<String> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        if let Some(rest) = digits.strip_prefix(prefix) {
            return u128::from_str_radix(rest, radix).ok().map(|number| format!("{sign}{number}"));
        }
    }
    let spelled = format!("{sign}{digits}");
    spelled.parse::<serde_json::Number>().ok().map(|_| spelled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_tables_are_merged_in_no_time() {
        let names = |prefix: &str| {
            let lines = (0..50_000).map(|at| format!("  {prefix}{at}: 1\n"));
            lines.collect::<Vec<_>>().concat()
        };
        let text = format!("a: &a\n{}b:\n  <<: *a\n  a7: 2\n{}", names("a"), names("b"));
        let root = parse(&text).unwrap();
        let merged = root.get("b").unwrap();
        assert_eq!(merged.entries().len(), 100_000);
        assert_eq!(merged.get("a7").unwrap().value, NodeValue::Number("2".to_owned()));
    }
}
