//! Words and numbers without quotes.

use std::ops::Range;

use probity_core::located::NodeValue;

use super::{Open, Repairer, Role, cursor::Quote};
use crate::json::{Step, blanks::is_blank};

/// How much of a word is looked at to tell whether it is a number or a literal.
const SCALAR_REACH: usize = 64;

/// How long a comment may be that starts right inside a word.
const COMMENT_REACH: usize = 256;

impl Repairer<'_> {
    /// Reads a key without quotes, or with only the last of them.
    pub(super) fn bare_key(&mut self) -> Option<String> {
        let start = self.at;
        while let Some(it) = self.peek() {
            let after_blank = self.text[start..self.at].ends_with(is_blank);
            let stop = match it {
                ':' | ',' | '{' | '}' | '[' | ']' | '\n' => true,
                '=' => !self.rest().starts_with("=="),
                _ if Quote::of(it).is_some() => after_blank || self.at == start,
                _ => false,
            };
            if stop {
                break;
            }
            self.advance();
        }
        let raw = self.text[start..self.at].trim_matches(is_blank);
        let key = raw.trim_end_matches(|it| Quote::of(it).is_some());
        if self.at == start {
            self.advance();
        }
        if key.is_empty() {
            self.note(Step::DroppedWords);
            return None;
        }
        self.note(if key.len() < raw.len() { Step::MissingQuotes } else { Step::UnquotedKeys });
        Some(key.to_owned())
    }

    /// Reads a value without quotes; nothing if no value can be made of it.
    pub(super) fn bare_value(&mut self, role: Role) -> Option<NodeValue> {
        if let Some(value) = self.call(role) {
            return Some(value);
        }
        let raw = self.bare_run(role);
        let is_cut = self.at == self.text.len();
        let word = self.text[raw].trim_matches(is_blank);
        let scalar = word.trim_end_matches(';');
        if matches!(scalar, "" | "-" | "+") {
            self.note(Step::DroppedWords);
            return None;
        }
        if let Some(value) = self.literal(scalar, is_cut) {
            return Some(value);
        }
        if let Some(number) = self.number(scalar) {
            return Some(NodeValue::Number(number));
        }
        self.note(Step::UnquotedValues);
        Some(NodeValue::String(word.to_owned()))
    }

    /// Takes everything up to what ends a bare value.
    fn bare_run(&mut self, role: Role) -> Range<usize> {
        let start = self.at;
        let mut nesting = 0_usize;
        while let Some(it) = self.peek() {
            if self.failed {
                break;
            }
            let stop = match it {
                '(' | '{' | '[' if self.is_scalar(start) => true,
                '(' | '{' | '[' => {
                    nesting += 1;
                    false
                }
                ')' | '}' | ']' if nesting > 0 => {
                    nesting -= 1;
                    false
                }
                ')' => self.inside(Open::Tuple),
                '}' | ']' => true,
                ',' => nesting == 0 && self.comma_ends(role, start),
                '\n' => nesting == 0 && self.line_ends(role, start),
                ';' => self.is_scalar(start),
                '/' | '#' => self.comment_starts(start),
                ' ' | '\t' => self.blank_ends(start),
                _ if Quote::of(it).is_some() => {
                    let end = self.at;
                    if self.closes_bare(it, start) {
                        return start..end;
                    }
                    self.quote_ends(role, start)
                }
                _ => false,
            };
            if stop {
                break;
            }
            self.advance();
        }
        start..self.at
    }

    /// Whether the text so far is a number or a literal, which needs no more text.
    fn is_scalar(&self, start: usize) -> bool {
        let raw = &self.text[start..self.at];
        if raw.len() > SCALAR_REACH {
            return false;
        }
        let word = raw.trim_matches(is_blank);
        is_json_number(word)
            || matches!(word, "true" | "false" | "null" | "True" | "False" | "None" | "undefined")
    }

    /// In an object a comma ends a bare value only if another member follows, because text has commas too.
    fn comma_ends(&mut self, role: Role, start: usize) -> bool {
        if role != Role::Member {
            return true;
        }
        let after = self.char_at(self.at + 1);
        if self.is_scalar(start) {
            // A comma inside a number, as in `1,234`.
            return !after.is_some_and(|it| it.is_ascii_digit()) || self.key_ahead(self.at + 1);
        }
        let next = self.look_past_blanks(self.at + 1);
        match self.char_at(next) {
            None | Some('}' | ']' | ',' | '{' | '.') => true,
            Some(_) => self.key_ahead(next),
        }
    }

    fn line_ends(&mut self, role: Role, start: usize) -> bool {
        if role != Role::Member || self.is_scalar(start) {
            return true;
        }
        let next = self.look_past_blanks(self.at);
        match self.char_at(next) {
            None | Some('}' | ']') => true,
            Some(_) => self.key_ahead(next),
        }
    }

    /// A number followed by a blank ends there if a new member follows without a comma.
    fn blank_ends(&mut self, start: usize) -> bool {
        self.is_scalar(start) && {
            let next = self.look_past_blanks(self.at);
            let is_quote = self.char_at(next).is_some_and(|it| Quote::of(it).is_some());
            let is_number = self.char_at(next).is_some_and(|it| it.is_ascii_digit());
            is_quote || is_number || self.key_ahead(next)
        }
    }

    fn comment_starts(&self, start: usize) -> bool {
        let after_blank = self.text[start..self.at].ends_with(is_blank) || self.is_scalar(start);
        let rest = self.rest();
        after_blank && (rest.starts_with("//") || rest.starts_with("/*") || rest.starts_with('#'))
            || rest.starts_with("/*") && {
                let reach = rest.floor_char_boundary(COMMENT_REACH.min(rest.len()));
                rest[..reach].contains("*/")
            }
    }

    /// A quote right after a word that ends it: only the opening quote was forgotten.
    fn closes_bare(&mut self, quote: char, start: usize) -> bool {
        let after = self.at + quote.len_utf8();
        let next = self.look_past_blanks(after);
        let ends = matches!(self.char_at(next), None | Some(',' | '}' | ']'));
        let quotes = self.text[start..self.at]
            .chars()
            .rev()
            .take(SCALAR_REACH)
            .filter(|&it| it == quote)
            .count();
        if !ends || self.at == start || quotes % 2 == 1 {
            return false;
        }
        self.note(Step::MissingQuotes);
        self.at = after;
        true
    }

    /// A quote after a blank that opens the next member.
    fn quote_ends(&mut self, role: Role, start: usize) -> bool {
        let after_blank = self.text[start..self.at].ends_with(is_blank);
        (after_blank || self.is_scalar(start)) && (role != Role::Member || self.key_ahead(self.at))
    }

    /// A literal of JSON or of another language.
    fn literal(&mut self, word: &str, is_cut: bool) -> Option<NodeValue> {
        let value = match word {
            "true" => return Some(NodeValue::Bool(true)),
            "false" => return Some(NodeValue::Bool(false)),
            "null" => return Some(NodeValue::Null),
            "undefined" | "nil" => NodeValue::Null,
            _ if word.eq_ignore_ascii_case("true") => NodeValue::Bool(true),
            _ if word.eq_ignore_ascii_case("false") => NodeValue::Bool(false),
            _ if ["null", "none"].iter().any(|it| word.eq_ignore_ascii_case(it)) => NodeValue::Null,
            "NaN" | "nan" | "+NaN" | "-NaN" | "Infinity" | "+Infinity" | "-Infinity" | "inf"
            | "-inf" | "+inf" => NodeValue::Null,
            _ if is_cut => return self.cut_literal(word),
            _ => return None,
        };
        self.note(Step::ForeignLiterals);
        Some(value)
    }

    /// The beginning of a literal at the end of the text.
    fn cut_literal(&mut self, word: &str) -> Option<NodeValue> {
        let lower = word.to_ascii_lowercase();
        let value = if "true".starts_with(&lower) {
            NodeValue::Bool(true)
        } else if "false".starts_with(&lower) {
            NodeValue::Bool(false)
        } else if "null".starts_with(&lower) || "none".starts_with(&lower) {
            NodeValue::Null
        } else {
            return None;
        };
        self.note(Step::ClosedTail);
        Some(value)
    }

    /// A number as JSON writes it, if the word is one in some spelling.
    fn number(&mut self, word: &str) -> Option<String> {
        if is_json_number(word) {
            return Some(word.to_owned());
        }
        let mut number = word.strip_prefix('+').unwrap_or(word).to_owned();
        let between_digits = |(at, it): (usize, char)| {
            let before = word[..at].ends_with(|it: char| it.is_ascii_digit());
            let after = word[at + it.len_utf8()..].starts_with(|it: char| it.is_ascii_digit());
            it != '_' || before && after
        };
        if !word.char_indices().all(between_digits) {
            return None;
        }
        number.retain(|it| it != '_');
        if let Some(digits) = number.strip_prefix("-.") {
            number = format!("-0.{digits}");
        } else if number.starts_with('.') {
            number.insert(0, '0');
        }
        let mantissa = number.trim_end_matches(['e', 'E', '+', '-']);
        if mantissa.len() < number.len() && number[mantissa.len()..].starts_with(['e', 'E']) {
            number.truncate(mantissa.len());
        }
        if number.ends_with('.') {
            number.push('0');
        } else if let Some((whole, exponent)) = number.split_once(".e") {
            number = format!("{whole}.0e{exponent}");
        }
        if !is_json_number(&number) {
            return None;
        }
        self.note(Step::Numbers);
        Some(number)
    }

    /// Steps over the letter of a Python string such as `u'a'`.
    pub(super) fn string_prefix(&mut self) {
        let mut rest = self.rest().chars();
        let letter = rest.next();
        let quote = rest.next();
        let is_prefix = matches!(letter, Some('u' | 'U' | 'b' | 'B' | 'r' | 'R' | 'f' | 'F'))
            && matches!(quote, Some('"' | '\''));
        // In `[a",b"]` the quotes close the words.
        let is_string = match rest.next() {
            None | Some(',' | ':' | ']' | '}' | '\n') => false,
            Some(_) => true,
        };
        if is_prefix && is_string {
            self.note(Step::OtherQuotes);
            self.at += 1;
        }
    }

    /// Reads the value in `Name("value")`.
    fn call(&mut self, role: Role) -> Option<NodeValue> {
        let rest = self.rest();
        let is_name = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '.' | '$');
        let length = rest.find(|it| !is_name(it))?;
        let name = &rest[..length];
        let after = rest[length..].chars().next()?;
        // Only constructors are unwrapped: `print("a")` is a piece of code.
        if after != '(' || !name.starts_with(|it: char| it.is_ascii_uppercase()) {
            return None;
        }
        let start = self.at;
        self.at = self.look_past_blanks(start + length + 1);
        let is_value = self.peek().is_some_and(|it| {
            Quote::of(it).is_some() || it.is_ascii_digit() || matches!(it, '{' | '[' | '-')
        });
        let value = if is_value { self.argument(role) } else { None };
        if value.is_none() {
            self.spend(self.at - start);
            self.at = start;
        }
        value
    }

    /// Reads the only argument of a call.
    fn argument(&mut self, role: Role) -> Option<NodeValue> {
        self.stack.push(Open::Tuple);
        let value = self.value(role);
        self.stack.pop();
        self.blanks();
        if !self.eat(')') {
            return None;
        }
        self.note(Step::FunctionCalls);
        value.map(|it| it.value)
    }
}

/// Whether a word is a number as JSON writes it.
fn is_json_number(word: &str) -> bool {
    let digits =
        |text: &str| text.len() - text.trim_start_matches(|it: char| it.is_ascii_digit()).len();
    let rest = word.strip_prefix('-').unwrap_or(word);
    let whole = digits(rest);
    if whole == 0 || whole > 1 && rest.starts_with('0') {
        return false;
    }
    let mut rest = &rest[whole..];
    if let Some(fraction) = rest.strip_prefix('.') {
        let length = digits(fraction);
        if length == 0 {
            return false;
        }
        rest = &fraction[length..];
    }
    if let Some(exponent) = rest.strip_prefix(['e', 'E']) {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        let length = digits(exponent);
        if length == 0 {
            return false;
        }
        rest = &exponent[length..];
    }
    rest.is_empty()
}
