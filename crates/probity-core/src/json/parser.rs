//! The parser behind every function of [`super`].
//!
//! It walks bytes, which is safe because all of JSON's syntax is ASCII: strings
//! are the only place where other characters may stand, and they are copied in
//! whole slices.

use std::ops::Range;

use super::{
    HIGHEST_DEPTH, Limits,
    error::{JsonErrorKind, Stop},
};
use crate::located::{Entry, Node, NodeValue};

pub(super) struct Parser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    max_depth: usize,
    max_bytes: usize,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str, start: usize, limits: &Limits) -> Self {
        Self {
            text,
            bytes: text.as_bytes(),
            at: start,
            max_depth: limits.max_depth.min(HIGHEST_DEPTH),
            max_bytes: limits.max_bytes,
        }
    }

    pub(super) fn document(&mut self) -> Result<Node, Stop> {
        if self.text.starts_with('\u{feff}') {
            return Err(self.stop(JsonErrorKind::ByteOrderMark));
        }
        let (node, _) = self.prefix()?;
        self.blanks();
        match self.peek() {
            None => Ok(node),
            Some(_) => Err(self.unexpected("the end of the text")),
        }
    }

    pub(super) fn prefix(&mut self) -> Result<(Node, usize), Stop> {
        if self.text.len() > self.max_bytes {
            let limit = self.max_bytes;
            return Err(self.stop(JsonErrorKind::TooLarge { limit }));
        }
        self.blanks();
        let node = self.value(0)?;
        let end = node.span.end;
        Ok((node, end))
    }

    fn value(&mut self, depth: usize) -> Result<Node, Stop> {
        let start = self.at;
        let value = match self.peek() {
            Some(b'{') => NodeValue::Object(self.object(depth)?),
            Some(b'[') => NodeValue::Array(self.array(depth)?),
            Some(b'"') => NodeValue::String(self.string()?),
            Some(b'-' | b'0'..=b'9') => NodeValue::Number(self.number()?.to_owned()),
            Some(_) if self.word("true") => NodeValue::Bool(true),
            Some(_) if self.word("false") => NodeValue::Bool(false),
            Some(_) if self.word("null") => NodeValue::Null,
            Some(_) | None => return Err(self.unexpected("a value")),
        };
        Ok(Node { span: start..self.at, value })
    }

    fn object(&mut self, depth: usize) -> Result<Vec<Entry>, Stop> {
        self.open(depth)?;
        if self.eat(b'}') {
            return Ok(Vec::new());
        }
        let mut entries = Vec::with_capacity(10);
        loop {
            let start = self.at;
            if self.peek() != Some(b'"') {
                let expected =
                    if entries.is_empty() { "a string key or `}`" } else { "a string key" };
                return Err(self.unexpected(expected));
            }
            let key = self.string()?;
            let key_span = start..self.at;
            self.blanks();
            if !self.eat(b':') {
                return Err(self.unexpected("`:`"));
            }
            self.blanks();
            let node = self.value(depth + 1)?;
            entries.push(Entry { key, key_span, node });
            self.blanks();
            if self.eat(b'}') {
                return Ok(entries);
            }
            if !self.eat(b',') {
                return Err(self.unexpected("`,` or `}`"));
            }
            self.blanks();
        }
    }

    fn array(&mut self, depth: usize) -> Result<Vec<Node>, Stop> {
        self.open(depth)?;
        let mut nodes = Vec::new();
        if self.eat(b']') {
            return Ok(nodes);
        }
        loop {
            nodes.push(self.value(depth + 1)?);
            self.blanks();
            if self.eat(b']') {
                return Ok(nodes);
            }
            if !self.eat(b',') {
                return Err(self.unexpected("`,` or `]`"));
            }
            self.blanks();
        }
    }

    /// Takes the opening bracket and the blanks after it.
    fn open(&mut self, depth: usize) -> Result<(), Stop> {
        if depth >= self.max_depth {
            let limit = self.max_depth;
            return Err(self.stop(JsonErrorKind::TooDeep { limit }));
        }
        self.at += 1;
        self.blanks();
        Ok(())
    }

    fn string(&mut self) -> Result<String, Stop> {
        self.at += 1;
        let plain = self.plain_run();
        let mut string = self.text[plain].to_owned();
        if self.eat(b'"') {
            return Ok(string);
        }
        loop {
            let plain = self.plain_run();
            string.push_str(&self.text[plain]);
            match self.peek() {
                None => return Err(self.stop(JsonErrorKind::UnclosedString)),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(string);
                }
                Some(b'\\') => string.push(self.escape()?),
                Some(control) => {
                    let control = char::from(control);
                    return Err(self.stop(JsonErrorKind::ControlCharacter(control)));
                }
            }
        }
    }

    /// Skips the characters of a string that stand for themselves.
    fn plain_run(&mut self) -> Range<usize> {
        let start = self.at;
        let rest = &self.bytes[start..];
        let length = memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
        // Two passes that the compiler makes vectors of beat one that looks at each byte.
        let run = &rest[..length];
        let length = match run.iter().fold(u8::MAX, |least, byte| least.min(*byte)) {
            0..=0x1f => run.iter().position(|byte| *byte < 0x20).unwrap_or(length),
            0x20.. => length,
        };
        self.at += length;
        start..self.at
    }

    fn escape(&mut self) -> Result<char, Stop> {
        let start = self.at;
        self.at += 1;
        let Some(letter) = self.text[self.at..].chars().next() else {
            return Err(self.stop(JsonErrorKind::UnclosedString));
        };
        self.at += letter.len_utf8();
        match letter {
            '"' | '\\' | '/' => Ok(letter),
            'b' => Ok('\u{8}'),
            'f' => Ok('\u{c}'),
            'n' => Ok('\n'),
            'r' => Ok('\r'),
            't' => Ok('\t'),
            'u' => self.unicode_escape(),
            other => {
                self.at = start;
                Err(self.stop(JsonErrorKind::InvalidEscape(other)))
            }
        }
    }

    /// Reads the digits after `\u`, and a second escape if the first is half of a pair.
    ///
    /// RFC 8259 allows half a pair and leaves its meaning open. A Rust string
    /// cannot hold it, so it becomes the replacement character.
    fn unicode_escape(&mut self) -> Result<char, Stop> {
        let unit = self.hex4()?;
        if !(0xd800..0xdc00).contains(&unit) {
            return Ok(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        let after_high = self.at;
        if self.word("\\u") {
            let low = self.hex4()?;
            if (0xdc00..0xe000).contains(&low) {
                let code = 0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.at = after_high;
        }
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn hex4(&mut self) -> Result<u32, Stop> {
        let mut unit = 0;
        for _ in 0..4 {
            let Some(byte) = self.peek() else {
                return Err(self.stop(JsonErrorKind::UnclosedString));
            };
            let Some(digit) = char::from(byte).to_digit(16) else {
                return Err(self.stop(JsonErrorKind::InvalidUnicodeEscape));
            };
            unit = unit * 16 + digit;
            self.at += 1;
        }
        Ok(unit)
    }

    fn number(&mut self) -> Result<&'a str, Stop> {
        let start = self.at;
        self.eat(b'-');
        if self.eat(b'0') {
            if matches!(self.peek(), Some(b'0'..=b'9')) {
                self.at -= 1;
                return Err(self.stop(JsonErrorKind::LeadingZero));
            }
        } else {
            self.digits()?;
        }
        if self.eat(b'.') {
            self.digits()?;
        }
        if self.eat(b'e') || self.eat(b'E') {
            if !self.eat(b'+') {
                self.eat(b'-');
            }
            self.digits()?;
        }
        Ok(&self.text[start..self.at])
    }

    fn digits(&mut self) -> Result<(), Stop> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start {
            return Err(self.unexpected("a digit"));
        }
        Ok(())
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn word(&mut self, word: &str) -> bool {
        let found = self.bytes.get(self.at..).is_some_and(|rest| rest.starts_with(word.as_bytes()));
        if found {
            self.at += word.len();
        }
        found
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.at += 1;
        }
        found
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn unexpected(&self, expected: &'static str) -> Stop {
        // A caller's offset may lie inside a character or past the end.
        let at = self.text.floor_char_boundary(self.at);
        let found = self.text[at..].chars().next();
        self.stop(JsonErrorKind::Unexpected { expected, found })
    }

    fn stop(&self, kind: JsonErrorKind) -> Stop {
        Stop { kind, offset: self.at }
    }
}
