//! Which brackets of a text belong together.
//!
//! One pass with a stack. Quotes are respected inside brackets only: in prose an
//! odd quote is common, and it must not hide the value that follows.

use std::ops::Range;

use super::evidence;

/// How many unclosed brackets are looked into. A text with more of them is no reply
/// with a value in it, and is treated as cut off.
const MAX_UNCLOSED: usize = 256;

/// The brackets of a text.
pub(super) struct Scan {
    /// Balanced pieces that no other balanced piece holds, in order.
    pub(super) regions: Vec<Range<usize>>,
    /// Brackets that are never closed, in order.
    pub(super) unclosed: Vec<usize>,
    /// The first unclosed bracket that starts a value. The reply was cut off in
    /// there, and nothing after it is a value of its own.
    pub(super) cut: Option<usize>,
}

pub(super) fn scan(text: &str) -> Scan {
    let mut matcher = Matcher { regions: Vec::new(), stack: Vec::new(), braces: 0, brackets: 0 };
    let bytes = text.as_bytes();
    let mut strings_end = bytes.len();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            open @ (b'{' | b'[') => matcher.open(at, open),
            close @ (b'}' | b']') => matcher.close(at, close),
            b'"' if !matcher.stack.is_empty() && at < strings_end => {
                match string_end(bytes, at) {
                    Some(end) => at = end,
                    // No quote closes this one or any later one.
                    None => strings_end = at,
                }
            }
            _ => {}
        }
        at += 1;
    }
    let unclosed: Vec<_> = matcher.stack.iter().map(|&(at, _)| at).collect();
    let mut first = unclosed.iter().copied().take(MAX_UNCLOSED);
    let cut = first
        .find(|&open| evidence::starts_value(text, open))
        .or_else(|| unclosed.get(MAX_UNCLOSED).copied());
    Scan { regions: matcher.regions, unclosed, cut }
}

/// The byte of the quote that closes the string that opens at `at`.
fn string_end(bytes: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

struct Matcher {
    regions: Vec<Range<usize>>,
    stack: Vec<(usize, u8)>,
    braces: usize,
    brackets: usize,
}

impl Matcher {
    fn open(&mut self, at: usize, bracket: u8) {
        self.stack.push((at, bracket));
        *self.count(bracket) += 1;
    }

    /// Closes the innermost bracket of the same kind, and forgets what is open inside it.
    fn close(&mut self, at: usize, bracket: u8) {
        let wanted = if bracket == b'}' { b'{' } else { b'[' };
        if *self.count(wanted) == 0 {
            return;
        }
        while let Some((start, kind)) = self.stack.pop() {
            *self.count(kind) -= 1;
            if kind != wanted {
                continue;
            }
            while self.regions.last().is_some_and(|it| it.start > start) {
                self.regions.pop();
            }
            self.regions.push(start..at + 1);
            return;
        }
    }

    fn count(&mut self, bracket: u8) -> &mut usize {
        if bracket == b'{' { &mut self.braces } else { &mut self.brackets }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let found: Vec<_> = scan(text).regions.into_iter().map(|it| &text[it]).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn only_outermost_pieces_are_listed() {
        check("a {b [c]} d [e]", &["{b [c]}", "[e]"]);
        check("{ {a} [b]", &["{a}", "[b]"]);
    }

    #[test]
    fn brackets_in_strings_do_not_count() {
        check(r#"{"a": "}\"]"} x"#, &[r#"{"a": "}\"]"}"#]);
    }

    #[test]
    fn an_odd_quote_hides_nothing() {
        check("a 5\" {b} {c \" d}", &["{b}", "{c \" d}"]);
    }

    #[test]
    fn wrong_brackets_are_passed_over() {
        check("} ] [a} b] {c]", &["[a} b]"]);
    }

    #[test]
    fn the_place_where_a_reply_was_cut_is_known() {
        assert_eq!(scan("open { then {\"a\": [1], ").cut, Some(12));
        assert_eq!(scan("open { then {\"a\": 1}").cut, None);
    }
}
