//! Whether a quote inside a string closes it.
//!
//! Models forget to escape quotes, and forget to write them. What follows a
//! quote tells most of it; the rest is told by counting: quotes inside a string
//! come in pairs, so a quote after an odd number of them is more likely to
//! belong to the string, and needs a better reason to close it.

use super::{Repairer, Role, cursor::Quote, quoted::Body};

/// How far ahead the next quote is looked for.
const QUOTE_REACH: usize = 512;

/// What a quote inside a string is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It ends the string, together with the quotes right after it.
    Close {
        /// How many quotes there are.
        quotes: usize,
    },
    /// It is part of the string.
    Inner,
    /// It is part of a word, and needs no partner.
    Apostrophe,
    /// It opens the next string: this one ended before, at this byte.
    Cut(usize),
}

const CLOSE: Verdict = Verdict::Close { quotes: 1 };

impl Repairer<'_> {
    /// Judges the quote at the cursor.
    pub(super) fn verdict(&mut self, body: &Body) -> Verdict {
        let after_quote = self.at + self.peek().map_or(0, char::len_utf8);
        if self.is_apostrophe(body, after_quote) {
            return Verdict::Apostrophe;
        }
        if body.doubled {
            let twice = self.char_at(after_quote).is_some_and(|it| body.quote.closes(it));
            return if twice { Verdict::Close { quotes: 2 } } else { Verdict::Inner };
        }
        let mut after = self.look_past_blanks(after_quote);
        if body.escaped && self.text[after..].starts_with("\\\"") {
            after += 1;
        }
        let Some(next) = self.char_at(after) else {
            return CLOSE;
        };
        match body.role {
            Role::Key => self.key_verdict(body, after, next),
            Role::Member | Role::Item => self.value_verdict(body, after_quote, after, next),
        }
    }

    fn is_apostrophe(&self, body: &Body, after_quote: usize) -> bool {
        let letter_before =
            self.text[body.start..self.at].chars().next_back().is_some_and(char::is_alphabetic);
        let letter_after = self.char_at(after_quote).is_some_and(char::is_alphabetic);
        matches!(body.quote, Quote::Single | Quote::CurlySingle) && letter_before && letter_after
    }

    fn key_verdict(&mut self, body: &Body, after: usize, next: char) -> Verdict {
        if matches!(next, ':' | '=') {
            return CLOSE;
        }
        if let Some(colon) = self.key_end(body) {
            return Verdict::Cut(colon);
        }
        let starts_value = Quote::of(next).is_some() || next.is_ascii_digit();
        if starts_value || matches!(next, ',' | '}' | ']' | '{' | '[' | '-' | '+') {
            return CLOSE;
        }
        if self.literal_at(after) { CLOSE } else { Verdict::Inner }
    }

    /// Where a key ended whose closing quote is missing: before the colon of a
    /// value that starts, or has just ended, at the cursor.
    fn key_end(&self, body: &Body) -> Option<usize> {
        let (at, before) = self.before(self.at, body.start)?;
        if !matches!(before, ':' | ',' | '{' | '[') {
            return None;
        }
        let end = body.first_colon.or((before == ',').then_some(at))?;
        (end > body.start).then_some(end)
    }

    fn value_verdict(
        &mut self,
        body: &Body,
        after_quote: usize,
        after: usize,
        next: char,
    ) -> Verdict {
        let is_odd = body.inner % 2 == 1;
        match next {
            '}' | ']' if is_odd => self.closer_verdict(after),
            ',' if is_odd => self.comma_verdict(body, after),
            ':' if is_odd && body.role == Role::Member => Verdict::Inner,
            '}' | ']' | ',' | ':' => CLOSE,
            '+' => self.plus_verdict(after),
            ')' | ';' => self.end_verdict(after),
            _ if is_odd => Verdict::Inner,
            '{' | '[' | '0'..='9' => CLOSE,
            '.' if self.text[after..].starts_with("...") => CLOSE,
            _ if Quote::of(next).is_some() => {
                let twice = after == after_quote && body.quote.closes(next);
                let beyond = self.look_past_blanks(after + next.len_utf8());
                let ends = matches!(self.char_at(beyond), None | Some(',' | '}' | ']'));
                Verdict::Close { quotes: if twice && ends && self.at > body.start { 2 } else { 1 } }
            }
            _ => self.word_verdict(body),
        }
    }

    /// A bracket follows: it counts if what follows it could follow a value.
    fn closer_verdict(&mut self, closer: usize) -> Verdict {
        let next = self.look_past_blanks(closer + 1);
        match self.char_at(next) {
            None | Some(',' | '}' | ']' | '`') => CLOSE,
            Some(_) => Verdict::Inner,
        }
    }

    /// A comma follows: it counts if the next member follows it.
    fn comma_verdict(&mut self, body: &Body, comma: usize) -> Verdict {
        let next = self.look_past_blanks(comma + 1);
        let is_member = match self.char_at(next) {
            None | Some('}' | ']') => true,
            Some(it) if body.role == Role::Item => {
                Quote::of(it).is_some() || it.is_ascii_digit() || matches!(it, '{' | '[' | '-')
            }
            Some(_) => self.key_ahead(next),
        };
        if is_member { CLOSE } else { Verdict::Inner }
    }

    fn plus_verdict(&mut self, plus: usize) -> Verdict {
        let next = self.look_past_blanks(plus + 1);
        match self.char_at(next) {
            None => CLOSE,
            Some(it) if Quote::of(it).is_some() => CLOSE,
            Some(_) => Verdict::Inner,
        }
    }

    /// The end of a statement or of a function call follows.
    fn end_verdict(&mut self, at: usize) -> Verdict {
        let next = self.look_past_blanks(at + 1);
        match self.char_at(next) {
            None | Some(',' | '}' | ']' | ')' | ';') => CLOSE,
            Some(_) => Verdict::Inner,
        }
    }

    /// A word follows: the quote is part of the string, unless it opens the next one.
    fn word_verdict(&mut self, body: &Body) -> Verdict {
        let Some((at, before)) = self.before(self.at, body.start) else {
            return Verdict::Inner;
        };
        let before_end = at + before.len_utf8();
        let new_line = self.text[before_end..self.at].contains('\n');
        let opens_next = match body.role {
            Role::Key => false,
            Role::Member => {
                let after_delimiter = new_line || matches!(before, ',' | '{' | '[');
                self.key_ahead(self.at) && (after_delimiter || self.pair_ahead())
            }
            Role::Item if before == '{' => self.key_ahead(self.at),
            Role::Item if !new_line && before != ',' => false,
            Role::Item if self.item_ahead(body.quote) => true,
            // The key of the object that holds this array, if the array was closed.
            Role::Item => self.key_ahead(self.at) && self.closers(body.start, at).is_some(),
        };
        match before {
            _ if !opens_next => Verdict::Inner,
            ',' => {
                let depth = self.stack.len();
                let closers = self.closers(body.start, at);
                let inner = closers.filter(|it| it.count < depth).map(|it| it.start);
                Verdict::Cut(inner.unwrap_or(at))
            }
            '{' | '[' => {
                let raw = &self.text[body.start..at];
                let end = raw.find(['}', ']', ',']).unwrap_or(raw.len());
                Verdict::Cut(body.start + end)
            }
            _ => Verdict::Cut(before_end),
        }
    }

    /// Whether a key with a plain value follows: more than a word in quotes and a colon.
    fn pair_ahead(&mut self) -> bool {
        let rest = self.rest();
        let end = rest.floor_char_boundary(QUOTE_REACH.min(rest.len()));
        let Some((_, value)) = rest[..end].split_once(':') else {
            return false;
        };
        let value = value.trim_start();
        let at = self.text.len() - rest.len() + end - value.len();
        value.starts_with(|it: char| {
            Quote::of(it).is_some() || it.is_ascii_digit() || matches!(it, '{' | '[' | '-')
        }) || self.literal_at(at)
    }

    /// Whether the quote at the cursor opens a string that is closed like an item.
    fn item_ahead(&mut self, quote: Quote) -> bool {
        let start = self.at + self.peek().map_or(0, char::len_utf8);
        let end = self.text.floor_char_boundary((start + QUOTE_REACH).min(self.text.len()));
        let Some(length) = self.text[start..end].find(|it| quote.closes(it)) else {
            return false;
        };
        let close = start + length;
        let after = close + self.char_at(close).map_or(0, char::len_utf8);
        let next = self.look_past_blanks(after);
        matches!(self.char_at(next), None | Some(',' | ']'))
    }

    /// Whether a literal of JSON, Python or JavaScript stands here.
    pub(super) fn literal_at(&self, at: usize) -> bool {
        let rest = &self.text[at..];
        let length = rest.find(|it: char| !it.is_alphanumeric()).unwrap_or(rest.len());
        matches!(
            &rest[..length],
            "true" | "false" | "null" | "True" | "False" | "None" | "undefined" | "NaN"
        )
    }
}
