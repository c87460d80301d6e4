//! Objects, arrays, and what models write in their place.

use std::ops::Range;

use probity_core::located::{Entry, Node, NodeValue};

use super::{MAX_DEPTH, Open, Repairer, Role, cursor::Quote};
use crate::json::Step;

/// How an entry of an object ended up with its value.
enum Pairing {
    /// By a colon, or by what stands for one.
    Pair,
    /// Not at all: the key stands alone.
    Alone,
}

impl Repairer<'_> {
    /// Reads the object, array or tuple that starts here.
    pub(super) fn container(&mut self) -> Node {
        let start = self.at;
        let open = match self.peek() {
            Some('{') => Open::Object,
            Some('(') => Open::Tuple,
            Some(_) | None => Open::Array,
        };
        if self.stack.len() >= MAX_DEPTH {
            self.failed = true;
        }
        if self.failed {
            return node(start..start, NodeValue::Null);
        }
        self.advance();
        self.stack.push(open);
        let value = match open {
            Open::Object => self.object(),
            Open::Array => self.array(']'),
            Open::Tuple => {
                self.note(Step::ForeignContainers);
                self.array(')')
            }
        };
        self.stack.pop();
        node(start..self.at, value)
    }

    fn object(&mut self) -> NodeValue {
        let mut entries: Vec<Entry> = Vec::new();
        let mut pairs = 0;
        while !self.failed {
            let separated = self.separators(!entries.is_empty());
            match self.peek() {
                None => {
                    self.note(Step::ClosedTail);
                    break;
                }
                Some('}') => {
                    self.advance();
                    break;
                }
                Some(']') => {
                    self.note(Step::Brackets);
                    if self.inside(Open::Array) {
                        break;
                    }
                    self.advance();
                    let next = self.look_past_blanks(self.at);
                    if !matches!(self.char_at(next), Some(',' | '}')) {
                        break;
                    }
                }
                Some('{') => {
                    self.note(Step::Brackets);
                    let parent = self.stack.len().checked_sub(2).map(|at| self.stack[at]);
                    if parent == Some(Open::Array) && !entries.is_empty() {
                        break;
                    }
                    self.advance();
                }
                Some('[') => self.stray_array(&mut entries),
                Some(':' | ')' | ';') => self.advance(),
                Some(_) => {
                    if !separated && !entries.is_empty() {
                        self.note(Step::MissingCommas);
                    }
                    if let Some((entry, pairing)) = self.entry() {
                        entries.push(entry);
                        pairs += usize::from(matches!(pairing, Pairing::Pair));
                    }
                }
            }
        }
        if pairs == 0 && entries.len() > 1 {
            return self.set(entries);
        }
        NodeValue::Object(entries)
    }

    /// Turns `{'a', 'b'}` into the list that it is.
    fn set(&mut self, entries: Vec<Entry>) -> NodeValue {
        self.note(Step::ForeignContainers);
        self.steps.remove(&Step::MissingValues);
        let items =
            entries.into_iter().map(|entry| node(entry.key_span, NodeValue::String(entry.key)));
        NodeValue::Array(items.collect())
    }

    /// Reads an array where a key should be: the array before it was closed too early.
    fn stray_array(&mut self, entries: &mut [Entry]) {
        self.note(Step::Brackets);
        let more = self.container();
        let Some(Entry { node: Node { value: NodeValue::Array(items), .. }, .. }) =
            entries.last_mut()
        else {
            self.note(Step::DroppedWords);
            return;
        };
        if let NodeValue::Array(more) = more.value {
            items.extend(more);
        }
    }

    fn entry(&mut self) -> Option<(Entry, Pairing)> {
        let start = self.at;
        self.string_prefix();
        let is_quoted = self.peek().is_some_and(|it| Quote::of(it).is_some())
            || self.rest().starts_with("\\\"");
        let key = if is_quoted { self.quoted_key()? } else { self.bare_key()? };
        let key_span = start..self.at;
        self.blanks();
        let has_colon = self.colon();
        self.blanks();
        let is_missing = matches!(self.peek(), None | Some(',' | '}' | ']'));
        if !has_colon && !is_quoted && (is_missing || self.key_ahead(self.at)) {
            // A word between members is not a key.
            self.note(Step::DroppedWords);
            return None;
        }
        if is_missing {
            self.note(Step::MissingValues);
        } else if !has_colon {
            self.note(Step::MissingColons);
        }
        let value = if is_missing { None } else { self.value(Role::Member) };
        let pairing = if is_missing && !has_colon { Pairing::Alone } else { Pairing::Pair };
        let node = value.unwrap_or_else(|| node(self.at..self.at, NodeValue::Null));
        let entry = Entry { key, key_span, node };
        Some((entry, pairing))
    }

    /// Takes a colon or one of the signs that are written for it.
    fn colon(&mut self) -> bool {
        if self.eat(':') {
            if self.eat('=') {
                self.note(Step::MissingColons);
            }
            return true;
        }
        if self.eat('=') {
            self.eat('>');
            self.note(Step::MissingColons);
            return true;
        }
        if self.rest().starts_with("->") {
            self.at += 2;
            self.note(Step::MissingColons);
            return true;
        }
        false
    }

    fn array(&mut self, close: char) -> NodeValue {
        let mut items: Vec<Node> = Vec::new();
        while !self.failed {
            let separated = self.separators(!items.is_empty());
            match self.peek() {
                None => {
                    self.note(Step::ClosedTail);
                    break;
                }
                Some(it) if it == close => {
                    self.advance();
                    break;
                }
                Some('}') if self.inside(Open::Object) => {
                    self.note(Step::Brackets);
                    break;
                }
                Some(']') if self.inside(Open::Array) => {
                    self.note(Step::Brackets);
                    break;
                }
                Some('}' | ']' | ')' | ';') => {
                    self.note(Step::Brackets);
                    self.advance();
                }
                Some(':' | '=') if self.belongs_to_object(&items) => {
                    // The key of the next member: the array was never closed.
                    self.note(Step::Brackets);
                    let key = items.pop().map_or(self.at, |it| it.span.start);
                    self.spend(self.at - key);
                    self.at = key;
                    break;
                }
                Some(':' | '=') => self.pairs(&mut items),
                Some(_) => {
                    if !separated && !items.is_empty() {
                        self.note(Step::MissingCommas);
                    }
                    items.extend(self.value(Role::Item));
                }
            }
        }
        NodeValue::Array(items)
    }

    /// Whether the last item of an array is a key of the object that holds the array.
    fn belongs_to_object(&self, items: &[Node]) -> bool {
        let parent = self.stack.len().checked_sub(2).map(|at| self.stack[at]);
        let is_string = |it: &Node| matches!(it.value, NodeValue::String(_));
        parent == Some(Open::Object) && items.len() > 1 && items.last().is_some_and(is_string)
    }

    /// Turns the pairs of `["a": 1, "b": 2]` into an object.
    fn pairs(&mut self, items: &mut Vec<Node>) {
        self.colon();
        self.blanks();
        let is_string = matches!(items.last(), Some(Node { value: NodeValue::String(_), .. }));
        if !is_string {
            return;
        }
        let Some(Node { span: key_span, value: NodeValue::String(key) }) = items.pop() else {
            return;
        };
        self.note(Step::ForeignContainers);
        let start = key_span.start;
        let value = self.value(Role::Member);
        let mut entries = vec![Entry {
            key,
            key_span,
            node: value.unwrap_or_else(|| node(self.at..self.at, NodeValue::Null)),
        }];
        while self.peek_past_comma() {
            self.separators(true);
            entries.extend(self.entry().map(|(entry, _)| entry));
        }
        items.push(node(start..self.at, NodeValue::Object(entries)));
    }

    /// Whether a comma and another pair follow.
    fn peek_past_comma(&mut self) -> bool {
        let at = self.look_past_blanks(self.at);
        self.char_at(at) == Some(',') && self.key_ahead(at + 1) && !self.failed
    }

    /// Skips commas, ellipses, blanks and comments; says whether a comma was there.
    fn separators(&mut self, after_member: bool) -> bool {
        let mut commas = 0;
        loop {
            self.blanks();
            if self.eat(',') {
                commas += 1;
            } else if self.rest().starts_with("...") {
                self.note(Step::Ellipses);
                self.at = self.text.len() - self.rest().trim_start_matches('.').len();
            } else if self.eat('…') {
                self.note(Step::Ellipses);
            } else {
                break;
            }
        }
        let at_end = matches!(self.peek(), Some('}' | ']' | ')'));
        if commas > usize::from(after_member) || commas > 0 && at_end {
            self.note(Step::TrailingCommas);
        }
        commas > 0
    }

    /// Reads whatever is here; nothing if it is nothing.
    pub(super) fn value(&mut self, role: Role) -> Option<Node> {
        let start = self.at;
        self.string_prefix();
        match self.peek()? {
            '{' | '[' => Some(self.container()),
            '(' if self.tuple_ahead() => Some(self.container()),
            it if Quote::of(it).is_some() => Some(self.quoted_value(role)),
            '\\' if self.rest().starts_with("\\\"") => Some(self.quoted_value(role)),
            _ => {
                let value = self.bare_value(role);
                if self.at == start {
                    // Nothing was taken: step over it, so that every loop ends.
                    self.note(Step::DroppedWords);
                    self.advance();
                }
                value.map(|it| node(start..self.at, it))
            }
        }
    }

    fn tuple_ahead(&mut self) -> bool {
        let at = self.look_past_blanks(self.at + 1);
        self.char_at(at).is_some_and(|it| {
            Quote::of(it).is_some() || it.is_ascii_digit() || matches!(it, '{' | '[' | '-')
        })
    }
}

pub(super) fn node(span: Range<usize>, value: NodeValue) -> Node {
    Node { span, value }
}
