//! Strings in quotes of any kind, with quotes in them or missing after them.

use std::ops::Range;

use probity_core::located::{Node, NodeValue};

use super::{Open, Repairer, Role, containers::node, cursor::Quote, verdict::Verdict};
use crate::json::{Step, blanks::is_blank};

/// How far ahead the second of two doubled quotes is looked for.
const DOUBLED_REACH: usize = 512;

/// Brackets that were taken for the end of a string.
pub(super) struct Closers {
    /// Where the first of them is.
    pub(super) start: usize,
    pub(super) count: usize,
}

/// A string that is being read.
pub(super) struct Body {
    /// The byte after the opening quote.
    pub(super) start: usize,
    pub(super) quote: Quote,
    pub(super) role: Role,
    /// The quotes are doubled, as in `""a""`.
    pub(super) doubled: bool,
    /// The quotes are escaped, as in `\"a\"`.
    pub(super) escaped: bool,
    /// How many quotes were taken as part of the string.
    pub(super) inner: usize,
    /// Where the first of them was, and how much of the string came before it.
    first_inner: Option<(usize, usize)>,
    /// Where the first colon is.
    pub(super) first_colon: Option<usize>,
    out: String,
}

impl Repairer<'_> {
    /// Reads a string that is a key; nothing if it was cut off.
    pub(super) fn quoted_key(&mut self) -> Option<String> {
        self.string(Role::Key)
    }

    /// Reads a string that is a value, and the strings that are added to it.
    pub(super) fn quoted_value(&mut self, role: Role) -> Node {
        let start = self.at;
        let mut value = self.string(role).unwrap_or_default();
        loop {
            let plus = self.look_past_blanks(self.at);
            if self.char_at(plus) != Some('+') || self.failed {
                break;
            }
            let next = self.look_past_blanks(plus + 1);
            match self.char_at(next) {
                Some(it) if Quote::of(it).is_some() => {
                    self.note(Step::Concatenation);
                    self.at = next;
                    value.push_str(&self.string(role).unwrap_or_default());
                }
                Some(_) => break,
                None => {
                    self.at = next;
                    break;
                }
            }
        }
        node(start..self.at, NodeValue::String(value))
    }

    fn string(&mut self, role: Role) -> Option<String> {
        let escaped = self.eat('\\');
        let open = self.peek()?;
        let quote = Quote::of(open)?;
        if escaped {
            self.note(Step::Unescaped);
        }
        if quote != Quote::Double {
            self.note(Step::OtherQuotes);
        }
        if let Some(block) = self.triple(open) {
            return Some(block);
        }
        self.advance();
        let doubled = self.doubled(open);
        if doubled {
            self.note(Step::OtherQuotes);
            self.advance();
        }
        let body = Body {
            start: self.at,
            quote,
            role,
            doubled,
            escaped,
            inner: 0,
            first_colon: None,
            first_inner: None,
            out: String::new(),
        };
        let is_value = role != Role::Key && quote == Quote::Double;
        if let Some(end) = is_value.then(|| self.nested_json()).flatten() {
            self.note(Step::InnerQuotes);
            let nested = self.reread(&body, end);
            self.at = end + 1;
            return Some(nested);
        }
        self.body(body)
    }

    /// Whether the opening quote is there twice, a word follows, and so is the next quote.
    fn doubled(&self, open: char) -> bool {
        let Some(inner) = self.rest().strip_prefix(open) else {
            return false;
        };
        let reach = inner.floor_char_boundary(DOUBLED_REACH.min(inner.len()));
        inner.starts_with(char::is_alphanumeric)
            && inner[..reach].split_once(open).is_some_and(|(_, after)| after.starts_with(open))
    }

    /// The end of a string that holds JSON whose quotes nobody escaped.
    fn nested_json(&mut self) -> Option<usize> {
        if !self.rest().starts_with(['{', '[']) {
            return None;
        }
        let quote = self.look_past_blanks(self.at + 1);
        if self.char_at(quote) != Some('"') {
            return None;
        }
        let mut depth = 0_usize;
        let rest = self.rest();
        let length = rest.bytes().position(|it| {
            match it {
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0
        });
        let Some(length) = length else {
            self.spend(self.text.len() - self.at);
            return None;
        };
        let end = self.at + length + 1;
        self.spend(length);
        let is_end = self.char_at(end) == Some('"') && {
            let next = self.look_past_blanks(end + 1);
            matches!(self.char_at(next), None | Some(',' | '}' | ']'))
        };
        is_end.then_some(end)
    }

    fn body(&mut self, mut body: Body) -> Option<String> {
        loop {
            if self.failed {
                return None;
            }
            let plain = self.plain_run(body.quote);
            body.out.push_str(&self.text[plain]);
            let Some(it) = self.peek() else {
                return self.unclosed(body);
            };
            if it == '\\' && body.escaped && self.rest()[1..].starts_with('"') {
                self.advance();
                continue;
            }
            if it == '\\' {
                self.escape(&mut body.out);
                continue;
            }
            if !body.quote.closes(it) {
                if it < ' ' {
                    self.note(Step::Escapes);
                }
                if it == ':' {
                    body.first_colon.get_or_insert(self.at);
                }
                body.out.push(it);
                self.advance();
                continue;
            }
            match self.verdict(&body) {
                Verdict::Close { quotes } => {
                    for _ in 0..quotes {
                        self.advance();
                    }
                    if body.inner > 0 {
                        self.note(Step::InnerQuotes);
                    }
                    return Some(body.out);
                }
                Verdict::Apostrophe => {
                    body.out.push(it);
                    self.note(Step::InnerQuotes);
                    self.advance();
                }
                Verdict::Inner => {
                    body.first_inner.get_or_insert((self.at, body.out.len()));
                    body.inner += 1;
                    body.out.push(it);
                    self.advance();
                }
                Verdict::Cut(at) => {
                    self.note(Step::MissingQuotes);
                    return Some(self.reread(&body, at));
                }
            }
        }
    }

    /// Skips characters that mean nothing in a string of this quote: a run of them is copied as one.
    fn plain_run(&mut self, quote: Quote) -> Range<usize> {
        let (close, others) = match quote {
            Quote::Double => (b'"', true),
            Quote::Single => (b'\'', true),
            Quote::CurlyDouble => (b'"', false),
            Quote::CurlySingle => (b'\'', false),
            Quote::Back => (b'`', false),
        };
        let is_plain = |it: u8| match it {
            ..b' ' | b'\\' | b':' => false,
            0x80.. => others,
            ascii => ascii != close,
        };
        let start = self.at;
        let rest = &self.text.as_bytes()[start..];
        self.at += rest.iter().position(|it| !is_plain(*it)).unwrap_or(rest.len());
        start..self.at
    }

    /// Ends a string earlier than where it was read to.
    fn reread(&mut self, body: &Body, end: usize) -> String {
        self.spend(self.at.saturating_sub(body.start));
        let mut out = String::new();
        self.at = body.start;
        while self.at < end && !self.failed {
            match self.peek() {
                Some('\\') => self.escape(&mut out),
                Some(it) => {
                    out.push(it);
                    self.advance();
                }
                None => break,
            }
        }
        out.truncate(out.trim_end_matches(is_blank).len());
        out
    }

    /// Decides about a string that has no closing quote at all.
    fn unclosed(&mut self, mut body: Body) -> Option<String> {
        if let (Some((at, length)), 1) = (body.first_inner, body.inner % 2) {
            // Quotes inside a string come in pairs: the odd one was its end.
            self.spend(self.at - at);
            body.out.truncate(length);
            self.at = at;
            self.advance();
            return Some(body.out);
        }
        let end = match body.role {
            Role::Key => body.first_colon,
            Role::Member | Role::Item => {
                self.closers(body.start, self.text.len()).map(|it| it.start)
            }
        };
        if let Some(end) = end {
            self.note(Step::MissingQuotes);
            return Some(self.reread(&body, end));
        }
        self.note(Step::ClosedTail);
        match body.role {
            Role::Key => None,
            Role::Member | Role::Item => Some(body.out),
        }
    }

    /// The brackets that close what is open, at the end of an unclosed string.
    pub(super) fn closers(&self, from: usize, to: usize) -> Option<Closers> {
        let noise = |it: char| is_blank(it) || it == '`' || it == ';';
        let mut rest = self.text[from..to].trim_end_matches(noise);
        let mut closers = Vec::new();
        while closers.len() < self.stack.len() && rest.ends_with(['}', ']']) {
            let at = rest.len() - 1;
            let kind = if rest.ends_with('}') { Open::Object } else { Open::Array };
            closers.push((from + at, kind));
            rest = rest[..at].trim_end_matches(is_blank);
        }
        let innermost: Vec<_> = self.stack.iter().rev().copied().collect();
        (1..=closers.len())
            .rev()
            .find(|&count| {
                let outward = closers[..count].iter().rev().map(|&(_, kind)| kind);
                outward.eq(innermost[..count].iter().copied())
            })
            .or_else(|| {
                let (_, kind) = closers.first()?;
                self.inside(*kind).then_some(1)
            })
            .map(|count| Closers { start: closers[count - 1].0, count })
    }

    /// Reads what a backslash starts.
    pub(super) fn escape(&mut self, out: &mut String) {
        let start = self.at;
        self.advance();
        let Some(letter) = self.peek() else {
            self.note(Step::ClosedTail);
            return;
        };
        self.advance();
        let plain = match letter {
            '"' | '\\' | '/' => Some(letter),
            'b' => Some('\u{8}'),
            'f' => Some('\u{c}'),
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            '\'' | '`' | '\n' => {
                self.note(Step::Escapes);
                Some(letter)
            }
            'u' => self.unicode(),
            'x' => self.hex(2).inspect(|_| self.note(Step::Escapes)),
            _ => None,
        };
        if let Some(plain) = plain {
            out.push(plain);
            return;
        }
        let is_cut = letter == 'u'
            && self.rest().len() < 4
            && self.rest().bytes().all(|it| it.is_ascii_hexdigit());
        if is_cut {
            self.note(Step::ClosedTail);
            self.at = self.text.len();
            return;
        }
        // It escapes nothing: it is a backslash.
        self.note(Step::Escapes);
        out.push('\\');
        self.at = start + 1;
    }

    fn unicode(&mut self) -> Option<char> {
        let unit = self.hex_digits(4)?;
        if !(0xd800..0xdc00).contains(&unit) {
            return Some(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        let after = self.at;
        if self.rest().starts_with("\\u") {
            self.at += 2;
            let low = self.hex_digits(4).filter(|low| (0xdc00..0xe000).contains(low));
            if let Some(low) = low {
                return char::from_u32(0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00));
            }
            self.at = after;
        }
        Some(char::REPLACEMENT_CHARACTER)
    }

    fn hex(&mut self, digits: usize) -> Option<char> {
        self.hex_digits(digits).and_then(char::from_u32)
    }

    fn hex_digits(&mut self, digits: usize) -> Option<u32> {
        let piece = self.rest().get(..digits)?;
        if !piece.bytes().all(|it| it.is_ascii_hexdigit()) {
            return None;
        }
        let code = u32::from_str_radix(piece, 16).ok()?;
        self.at += digits;
        Some(code)
    }

    /// Reads a string in triple quotes, or a fenced block that stands for a string.
    fn triple(&mut self, open: char) -> Option<String> {
        let mark = match open {
            '"' => "\"\"\"",
            '\'' => "'''",
            '`' => "```",
            _ => return None,
        };
        let inner = self.rest().strip_prefix(mark)?;
        let Some(length) = inner.find(mark) else {
            self.spend(self.rest().len());
            return None;
        };
        let content = &inner[..length];
        let content = if open == '`' {
            let tag = content
                .find(|it: char| !it.is_alphanumeric())
                .filter(|&tag| content[tag..].starts_with('\n'));
            &content[tag.unwrap_or(0)..]
        } else {
            content
        };
        let block = dedented(content);
        self.at += length + 2 * mark.len();
        self.note(Step::OtherQuotes);
        Some(block)
    }
}

/// Removes the line ends around a block and the blanks that all its lines start with.
fn dedented(content: &str) -> String {
    let Some(lines) = content.strip_prefix('\n') else {
        return content.to_owned();
    };
    let lines = lines.trim_end_matches([' ', '\t', '\n']);
    let indent = lines
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| line.len() - line.trim_start_matches([' ', '\t']).len())
        .min()
        .unwrap_or(0);
    let dedented: Vec<_> = lines.lines().map(|line| line.get(indent..).unwrap_or("")).collect();
    dedented.join("\n")
}
