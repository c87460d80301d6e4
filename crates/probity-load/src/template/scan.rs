//! A look at the tags of a template before the engine sees them.
//!
//! The engine's parser follows chains of operators by recursion, and its operators on texts know no
//! limit. Both are bounded here, where a template that goes too far is an ordinary error.

use std::{collections::BTreeSet, ops::Range};

use super::{LARGEST_FACTOR, MOST_BRANCHES, MOST_OPERATORS, TemplateError, engine};

/// What a scan found out.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Scanned {
    /// How many times larger than its parts a value can become by operators.
    pub(super) growth: u64,
    /// Every name in its tags.
    pub(super) names: BTreeSet<String>,
    pub(super) has_filters: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Token<'t> {
    Name(&'t str),
    Number(Option<u64>),
    Text,
    Operator(&'t str),
}

struct Tag<'t> {
    is_block: bool,
    start: usize,
    tokens: Vec<(Token<'t>, Range<usize>)>,
}

/// Checks every tag of a template.
pub(super) fn scan(text: &str) -> Result<Scanned, TemplateError> {
    let (mut kept, mut shown, mut branches) = (1_u64, 1_u64, 0_usize);
    let (mut names, mut has_filters) = (BTreeSet::new(), false);
    let mut at = 0;
    while let Some((tag, end)) = next_tag(text, at) {
        at = end;
        let name = tag.block_name();
        if name == Some("raw") {
            at = end_of_raw(text, end);
            continue;
        }
        for (token, _) in &tag.tokens {
            match token {
                Token::Name(name) => drop(names.insert((*name).to_owned())),
                Token::Operator(it) => has_filters |= *it == "|",
                Token::Number(_) | Token::Text => {}
            }
        }
        branches += usize::from(name == Some("elif"));
        if branches > MOST_BRANCHES {
            let reason = format!("there are more than {MOST_BRANCHES} `elif`");
            return Err(TemplateError::at(text, tag.start..end, reason));
        }
        tag.check(text, end)?;
        let growth = tag.growth(text)?;
        match name {
            // What these make is kept, and can be made larger again.
            Some("set" | "with" | "for") => kept = kept.saturating_mul(growth),
            Some(_) | None => shown = shown.max(growth),
        }
    }
    Ok(Scanned { growth: kept.saturating_mul(shown), names, has_filters })
}

impl Tag<'_> {
    /// The first word of a block: `if`, `for`.
    fn block_name(&self) -> Option<&str> {
        match self.tokens.first() {
            Some((Token::Name(name), _)) if self.is_block => Some(name),
            Some(_) | None => None,
        }
    }

    fn token(&self, at: Option<usize>) -> Option<Token<'_>> {
        self.tokens.get(at?).map(|(token, _)| *token)
    }

    fn check(&self, text: &str, end: usize) -> Result<(), TemplateError> {
        let nesting = self.tokens.iter().filter(|(token, _)| token.nests()).count();
        if nesting > MOST_OPERATORS {
            let reason = format!("a tag has more than {MOST_OPERATORS} operators and brackets");
            return Err(TemplateError::at(text, self.start..end, reason));
        }
        let has = |wanted| self.tokens.iter().any(|(token, _)| *token == wanted);
        let refused = match self.block_name() {
            Some("set") if !has(Token::Operator("=")) => {
                Some("a `set` without `=` is not available here; write `{% set name = value %}`")
            }
            Some("filter") => {
                Some("`{% filter %}` is not available here; write `{{ value | name }}`")
            }
            Some("for") if has(Token::Name("recursive")) => {
                Some("a `recursive` loop is not available here")
            }
            Some(_) | None => None,
        };
        if let Some(reason) = refused {
            return Err(TemplateError::at(text, self.start..end, reason.to_owned()));
        }
        for (at, (token, span)) in self.tokens.iter().enumerate() {
            let Token::Name(name) = token else { continue };
            let before = |back: usize| self.token(at.checked_sub(back));
            let is_first_of_test = |back| {
                before(back) == Some(Token::Name("is"))
                    && before(back + 1) != Some(Token::Operator("."))
            };
            let is_test = *name != "not" && is_first_of_test(1)
                || before(1) == Some(Token::Name("not")) && is_first_of_test(2);
            let unknown = if before(1) == Some(Token::Operator("|")) {
                engine::missing_filter(name)
            } else if is_test {
                engine::missing_test(name)
            } else {
                None
            };
            if let Some(reason) = unknown {
                return Err(TemplateError::at(text, span.clone(), reason));
            }
        }
        Ok(())
    }

    /// How many times larger than its parts a value can become in the tag.
    fn growth(&self, text: &str) -> Result<u64, TemplateError> {
        let (mut joined, mut factors) = (1_u64, 1_u64);
        for (at, (token, span)) in self.tokens.iter().enumerate() {
            let (before, after) = (self.token(at.checked_sub(1)), self.token(Some(at + 1)));
            match token {
                Token::Operator("~") => joined += 1,
                // A number is never joined to a text or a list.
                Token::Operator("+")
                    if !matches!(before, Some(Token::Number(_)))
                        && !matches!(after, Some(Token::Number(_))) =>
                {
                    joined += 1;
                }
                // The star before the arguments of a call.
                Token::Operator("*")
                    if matches!(before, None | Some(Token::Operator("(" | ","))) => {}
                Token::Operator("*") => {
                    let Some(factor) = self.factor(at) else {
                        let reason = format!(
                            "one side of `*` must be a number up to {LARGEST_FACTOR} that is \
                             written out"
                        );
                        return Err(TemplateError::at(text, span.clone(), reason));
                    };
                    factors = factors.saturating_mul(factor.max(1));
                }
                Token::Operator(_) | Token::Name(_) | Token::Number(_) | Token::Text => {}
            }
        }
        Ok(joined.saturating_mul(factors))
    }

    /// The number beside a `*`, unless something else is made of it first.
    fn factor(&self, at: usize) -> Option<u64> {
        let left = match (self.token(at.checked_sub(1)), self.token(at.checked_sub(2))) {
            (Some(Token::Number(_)), Some(Token::Operator("**" | "."))) => None,
            (Some(Token::Number(number)), _) => number,
            (_, _) => None,
        };
        let right = match (self.token(Some(at + 1)), self.token(Some(at + 2))) {
            (Some(Token::Number(_)), Some(Token::Operator("**" | "|" | "."))) => None,
            (Some(Token::Number(number)), _) => number,
            (_, _) => None,
        };
        left.or(right).filter(|it| *it <= LARGEST_FACTOR)
    }
}

impl Token<'_> {
    /// Whether the parser goes one step deeper for it.
    fn nests(self) -> bool {
        match self {
            Self::Operator(it) => !matches!(it, "," | ":" | "=" | ")" | "]" | "}"),
            Self::Name(it) => matches!(it, "not" | "and" | "or" | "is" | "in" | "if" | "else"),
            Self::Number(_) | Self::Text => false,
        }
    }
}

/// The next tag, and where the text goes on. Comments are passed over.
fn next_tag(text: &str, from: usize) -> Option<(Tag<'_>, usize)> {
    let mut from = from;
    loop {
        let start = from + text[from..].find('{')?;
        match text.as_bytes().get(start + 1) {
            Some(b'#') => from = start + 2 + text[start + 2..].find("#}")? + 2,
            Some(mark @ (b'{' | b'%')) => {
                let closing = if *mark == b'%' { "%}" } else { "}}" };
                let (tokens, end) = tokens(text, start + 2, closing);
                return Some((Tag { is_block: *mark == b'%', start, tokens }, end));
            }
            Some(_) | None => from = start + 1,
        }
    }
}

fn end_of_raw(text: &str, from: usize) -> usize {
    let mut at = from;
    while let Some(found) = text[at..].find("{%") {
        let start = at + found + 2;
        let word = text[start..].trim_start_matches(['-', '+']).trim_start();
        if word.starts_with("endraw") {
            return text[start..].find("%}").map_or(text.len(), |it| start + it + 2);
        }
        at = start;
    }
    text.len()
}

/// The tokens of a tag up to its end. Broken ones are the parser's to report.
fn tokens<'t>(
    text: &'t str,
    from: usize,
    closing: &str,
) -> (Vec<(Token<'t>, Range<usize>)>, usize) {
    const LONG: &[&str] = &["**", "//", "==", "!=", ">=", "<="];
    let mut tokens = Vec::new();
    let mut open = 0_usize;
    let mut at = from;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let closes = |rest: &str| rest.starts_with(closing);
        if open == 0 && (closes(rest) || rest.starts_with(['-', '+']) && closes(&rest[1..])) {
            return (tokens, at + rest.len().min(if closes(rest) { 2 } else { 3 }));
        }
        let (token, length) = match first {
            _ if first.is_whitespace() => {
                at += first.len_utf8();
                continue;
            }
            '"' | '\'' => (Token::Text, string_length(rest, first)),
            _ if first.is_alphabetic() || first == '_' => {
                let is_part = |it: char| it.is_alphanumeric() || it == '_';
                let length = rest.find(|it| !is_part(it)).unwrap_or(rest.len());
                (Token::Name(&rest[..length]), length)
            }
            _ if first.is_ascii_digit() => {
                let is_part = |it: char| it.is_ascii_alphanumeric() || it == '_';
                let length = rest.find(|it| !is_part(it)).unwrap_or(rest.len());
                let digits = rest[..length].replace('_', "");
                (Token::Number(digits.parse().ok()), length)
            }
            _ => {
                let long = LONG.iter().find(|it| rest.starts_with(**it));
                let length = long.map_or(first.len_utf8(), |it| it.len());
                match first {
                    '(' | '[' | '{' => open += 1,
                    ')' | ']' | '}' => open = open.saturating_sub(1),
                    _ => {}
                }
                (Token::Operator(&rest[..length]), length)
            }
        };
        tokens.push((token, at..at + length));
        at += length;
    }
    (tokens, text.len())
}

/// Bytes of a quoted text, its quotes included.
fn string_length(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, it) in rest.char_indices().skip(1) {
        match it {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            it if it == quote => return at + it.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}
