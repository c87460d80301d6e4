//! The parser behind every function of [`super`].
//!
//! What it makes of a text is up to a [`Builder`]: a tree with places, or a value without them.
//!
//! It walks bytes, which is safe because all of JSON's syntax is ASCII: strings
//! are the only place where other characters may stand, and they are copied in
//! whole slices.

use std::ops::Range;

use super::{
    HIGHEST_DEPTH, Limits,
    error::{JsonErrorKind, Stop},
};

/// Most bytes that are reserved for texts with escapes before there are any.
const MOST_RESERVED: usize = 16 << 10;

/// Makes something of the parts of a text, in the order in which they are read.
pub(super) trait Builder {
    /// What a value becomes.
    type Value;
    /// What an array becomes before it ends.
    type Array: Default;
    /// What an object becomes before it ends.
    type Object: Default;
    /// What a key is until its value is read.
    type Key;

    fn null(&mut self, span: Range<usize>) -> Self::Value;
    fn bool(&mut self, value: bool, span: Range<usize>) -> Self::Value;
    fn number(&mut self, literal: &str, span: Range<usize>) -> Self::Value;
    fn string(&mut self, text: String, span: Range<usize>) -> Self::Value;
    /// The next item of an array begins.
    fn begin_item(&mut self, array: &Self::Array);
    fn end_item(&mut self, array: &mut Self::Array, value: Self::Value);
    fn array(&mut self, array: Self::Array, span: Range<usize>) -> Self::Value;
    /// The next member of an object begins.
    fn begin_member(
        &mut self,
        object: &mut Self::Object,
        key: String,
        span: Range<usize>,
    ) -> Self::Key;
    fn end_member(&mut self, object: &mut Self::Object, key: Self::Key, value: Self::Value);
    fn object(&mut self, object: Self::Object, span: Range<usize>) -> Self::Value;
}

pub(super) struct Parser<'a, B> {
    pub(super) builder: B,
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    max_depth: usize,
    max_bytes: usize,
    /// Where texts with escapes are put together, so that each is as large in the end as it has to be.
    unescaped: String,
}

impl<'a, B: Builder> Parser<'a, B> {
    pub(super) fn new(text: &'a str, start: usize, limits: &Limits, builder: B) -> Self {
        Self {
            builder,
            text,
            bytes: text.as_bytes(),
            at: start,
            max_depth: limits.max_depth.min(HIGHEST_DEPTH),
            max_bytes: limits.max_bytes,
            unescaped: String::new(),
        }
    }

    pub(super) fn document(&mut self) -> Result<B::Value, Stop> {
        if self.text.starts_with('\u{feff}') {
            return Err(self.stop(JsonErrorKind::ByteOrderMark));
        }
        let (value, _) = self.prefix()?;
        self.blanks();
        match self.peek() {
            None => Ok(value),
            Some(_) => Err(self.unexpected("the end of the text")),
        }
    }

    pub(super) fn prefix(&mut self) -> Result<(B::Value, usize), Stop> {
        if self.text.len() > self.max_bytes {
            let limit = self.max_bytes;
            return Err(self.stop(JsonErrorKind::TooLarge { limit }));
        }
        self.blanks();
        let value = self.value(0)?;
        Ok((value, self.at))
    }

    /// What calls itself is kept small: each level of a text takes its stack space.
    fn value(&mut self, depth: usize) -> Result<B::Value, Stop> {
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(_) | None => self.scalar(),
        }
    }

    fn scalar(&mut self) -> Result<B::Value, Stop> {
        let start = self.at;
        match self.peek() {
            Some(b'"') => {
                let text = self.string()?;
                Ok(self.builder.string(text, start..self.at))
            }
            Some(b'-' | b'0'..=b'9') => {
                let literal = self.number()?;
                Ok(self.builder.number(literal, start..self.at))
            }
            Some(_) if self.word("true") => Ok(self.builder.bool(true, start..self.at)),
            Some(_) if self.word("false") => Ok(self.builder.bool(false, start..self.at)),
            Some(_) if self.word("null") => Ok(self.builder.null(start..self.at)),
            Some(_) | None => Err(self.unexpected("a value")),
        }
    }

    fn object(&mut self, depth: usize) -> Result<B::Value, Stop> {
        let start = self.at;
        self.open(depth)?;
        let mut object = B::Object::default();
        let mut ended = self.eat(b'}');
        let mut expected = "a string key or `}`";
        while !ended {
            let key = self.key(&mut object, expected)?;
            let value = self.value(depth + 1)?;
            self.builder.end_member(&mut object, key, value);
            ended = self.ends(b'}', "`,` or `}`")?;
            expected = "a string key";
        }
        Ok(self.builder.object(object, start..self.at))
    }

    fn array(&mut self, depth: usize) -> Result<B::Value, Stop> {
        let start = self.at;
        self.open(depth)?;
        let mut array = B::Array::default();
        let mut ended = self.eat(b']');
        while !ended {
            self.builder.begin_item(&array);
            let value = self.value(depth + 1)?;
            self.builder.end_item(&mut array, value);
            ended = self.ends(b']', "`,` or `]`")?;
        }
        Ok(self.builder.array(array, start..self.at))
    }

    /// Takes a key, its colon and the blanks after it.
    fn key(&mut self, object: &mut B::Object, expected: &'static str) -> Result<B::Key, Stop> {
        let start = self.at;
        if self.peek() != Some(b'"') {
            return Err(self.unexpected(expected));
        }
        let key = self.string()?;
        let key = self.builder.begin_member(object, key, start..self.at);
        self.blanks();
        if !self.eat(b':') {
            return Err(self.unexpected("`:`"));
        }
        self.blanks();
        Ok(key)
    }

    /// Takes what follows an item or a member; says whether that is the closing bracket.
    fn ends(&mut self, close: u8, expected: &'static str) -> Result<bool, Stop> {
        self.blanks();
        if self.eat(close) {
            return Ok(true);
        }
        if !self.eat(b',') {
            return Err(self.unexpected(expected));
        }
        self.blanks();
        Ok(false)
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
        if self.eat(b'"') {
            return Ok(self.text[plain].to_owned());
        }
        if self.unescaped.capacity() == 0 {
            // It must not grow in small steps.
            self.unescaped.reserve(self.bytes.len().min(MOST_RESERVED));
        }
        self.unescaped.clear();
        self.unescaped.push_str(&self.text[plain]);
        loop {
            match self.peek() {
                None => return Err(self.stop(JsonErrorKind::UnclosedString)),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(self.unescaped.as_str().to_owned());
                }
                Some(b'\\') => {
                    let escaped = self.escape()?;
                    self.unescaped.push(escaped);
                }
                Some(control) => {
                    let control = char::from(control);
                    return Err(self.stop(JsonErrorKind::ControlCharacter(control)));
                }
            }
            let plain = self.plain_run();
            self.unescaped.push_str(&self.text[plain]);
        }
    }

    /// Skips the characters of a string that stand for themselves.
    fn plain_run(&mut self) -> Range<usize> {
        let start = self.at;
        self.at += plain_length(&self.bytes[start..]);
        start..self.at
    }

    fn escape(&mut self) -> Result<char, Stop> {
        let start = self.at;
        self.at += 1;
        let Some(letter) = self.peek() else {
            return Err(self.stop(JsonErrorKind::UnclosedString));
        };
        self.at += 1;
        match letter {
            b'"' | b'\\' | b'/' => Ok(char::from(letter)),
            b'b' => Ok('\u{8}'),
            b'f' => Ok('\u{c}'),
            b'n' => Ok('\n'),
            b'r' => Ok('\r'),
            b't' => Ok('\t'),
            b'u' => self.unicode_escape(),
            _ => {
                self.at = start;
                let other = self.text[start + 1..].chars().next().unwrap_or_default();
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

/// Bytes of a string that are looked at eight at a time. Most strings, and most runs between two escapes, end before a
/// search with vectors would have begun.
const SHORT: usize = 32;

/// How many bytes stand for themselves before the string ends, an escape begins or a control character is in the way.
fn plain_length(bytes: &[u8]) -> usize {
    let mut at = 0;
    while at < SHORT {
        let Some(eight) = bytes[at..].first_chunk() else { break };
        let special = special_bytes(u64::from_le_bytes(*eight));
        if special != 0 {
            return at + special.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let rest = &bytes[at..];
    let length = memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
    // Two passes that the compiler makes vectors of beat one that looks at each byte.
    let run = &rest[..length];
    let length = match run.iter().fold(u8::MAX, |least, byte| least.min(*byte)) {
        0..=0x1f => run.iter().position(|byte| *byte < 0x20).unwrap_or(length),
        0x20.. => length,
    };
    at + length
}

/// The lowest bit that is set is the highest of the first byte that is a quote, a backslash or a control character. Bits
/// above it may say nothing.
fn special_bytes(eight: u64) -> u64 {
    const EACH: u64 = u64::from_le_bytes([1; 8]);
    const HIGHEST: u64 = EACH << 7;
    // Below a byte that is less than this one, no subtraction borrows from it.
    let less_than = |bytes: u64, this: u8| bytes.wrapping_sub(EACH * u64::from(this)) & !bytes;
    let quote = less_than(eight ^ (EACH * u64::from(b'"')), 1);
    let backslash = less_than(eight ^ (EACH * u64::from(b'\\')), 1);
    (quote | backslash | less_than(eight, 0x20)) & HIGHEST
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_run_ends_where_looking_at_each_byte_says(text in "([ -~\u{0}-\u{1f}]|[a-zé€😀]{0,12}){0,12}") {
            let is_special = |it: &u8| *it < 0x20 || matches!(it, b'"' | b'\\');
            for start in 0..text.len() {
                let bytes = &text.as_bytes()[start..];
                let expected = bytes.iter().position(is_special).unwrap_or(bytes.len());
                prop_assert_eq!(plain_length(bytes), expected, "{:?}", &bytes);
            }
        }
    }
}
