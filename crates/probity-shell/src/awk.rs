//! Programs of `awk`, cut into tokens: for what they run and write, and for what is outside the standard.

use std::ops::Range;

/// A piece of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token<'p> {
    Name(&'p str),
    Number(&'p str),
    /// What stands between double quotes, escapes included.
    Text(&'p str),
    /// What stands between slashes.
    Pattern(&'p str),
    /// An operator, a bracket, or the end of a line.
    Mark(&'p str),
}

/// Operators of more than one character, the longest first.
const OPERATORS: &[&str] = &[
    "**=", "**", "|&", ">>", "&&", "||", "==", "!=", "!~", "<=", ">=", "++", "--", "+=", "-=",
    "*=", "/=", "%=", "^=",
];

/// A longer pattern is taken for a division, so that reading stays linear.
const MAX_PATTERN: usize = 2000;

/// Cuts a program into tokens. Comments are left out.
pub(crate) fn tokens(program: &str) -> Vec<Token<'_>> {
    placed(program).into_iter().map(|(token, _)| token).collect()
}

/// Cuts a program into tokens, each with the bytes it stands at. Blanks and comments are between them.
pub(crate) fn placed(program: &str) -> Vec<(Token<'_>, Range<usize>)> {
    let mut tokens: Vec<(Token<'_>, Range<usize>)> = Vec::new();
    let mut rest = program;
    while let Some(first) = rest.chars().next() {
        let (token, length) = match first {
            '#' => (None, rest.find('\n').unwrap_or(rest.len())),
            // A line goes on after a backslash.
            '\\' => (None, if rest.starts_with("\\\n") { 2 } else { 1 }),
            '"' => {
                let (text, length) = quoted(rest, '"');
                (Some(Token::Text(text)), length)
            }
            '/' if pattern_may_follow(tokens.last().map(|it| &it.0))
                && pattern_length(rest).is_some() =>
            {
                let length = pattern_length(rest).unwrap_or(1);
                (Some(Token::Pattern(&rest[1..length - 1])), length)
            }
            '\n' => (Some(Token::Mark("\n")), 1),
            _ if first.is_whitespace() => (None, first.len_utf8()),
            _ if first.is_ascii_digit() => {
                let length = run(rest, |it| it.is_ascii_alphanumeric() || it == '.');
                (Some(Token::Number(&rest[..length])), length)
            }
            _ if first.is_alphabetic() || first == '_' => {
                let length = run(rest, |it| it.is_alphanumeric() || it == '_' || it == ':');
                // `a ? b : c` without blanks, `ns::name` and `case 1:`
                let name = rest[..length].trim_end_matches(':');
                let name = match name.contains("::") {
                    true => name,
                    false => name.split(':').next().unwrap_or(name),
                };
                (Some(Token::Name(name)), name.len())
            }
            _ => {
                let operator = OPERATORS.iter().find(|it| rest.starts_with(**it));
                let length = operator.map_or(first.len_utf8(), |it| it.len());
                (Some(Token::Mark(&rest[..length])), length)
            }
        };
        let at = program.len() - rest.len();
        tokens.extend(token.map(|it| (it, at..at + length)));
        rest = &rest[length.max(1)..];
    }
    tokens
}

/// The value of a string: `\"` is `"`, `\n` a new line.
pub(crate) fn unescaped(text: &str) -> String {
    let mut value = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(next) = characters.next() {
        match next {
            '\\' => match characters.next() {
                Some('n') => value.push('\n'),
                Some('t') => value.push('\t'),
                Some(other) => value.push(other),
                None => {}
            },
            other => value.push(other),
        }
    }
    value
}

fn run(text: &str, passes: impl Fn(char) -> bool) -> usize {
    text.find(|it| !passes(it)).unwrap_or(text.len())
}

/// What stands up to the closing quote, and its length with both quotes.
fn quoted(text: &str, quote: char) -> (&str, usize) {
    let mut hidden = false;
    for (at, next) in text.char_indices().skip(1) {
        match next {
            _ if hidden => hidden = false,
            '\\' => hidden = true,
            _ if next == quote => return (&text[1..at], at + 1),
            _ => {}
        }
    }
    (&text[1..], text.len())
}

/// After a value, `/` divides.
fn pattern_may_follow(before: Option<&Token<'_>>) -> bool {
    match before {
        None => true,
        Some(Token::Name(name)) => {
            matches!(*name, "print" | "printf" | "return" | "case" | "in" | "BEGIN" | "END")
        }
        Some(Token::Number(_) | Token::Text(_) | Token::Pattern(_)) => false,
        Some(Token::Mark(mark)) => !matches!(*mark, ")" | "]" | "$" | "++" | "--"),
    }
}

/// The length of a pattern with both slashes; `None` if nothing closes it on its line.
fn pattern_length(text: &str) -> Option<usize> {
    let (mut hidden, mut bracket) = (false, None);
    for (at, next) in text.char_indices().skip(1).take(MAX_PATTERN) {
        match next {
            '\n' => return None,
            _ if hidden => hidden = false,
            '\\' => hidden = true,
            '[' if bracket.is_none() => bracket = Some(at),
            ']' if bracket.is_some_and(|from| !matches!(&text[from + 1..at], "" | "^")) => {
                bracket = None;
            }
            '/' if bracket.is_none() => return Some(at + 1),
            _ => {}
        }
    }
    // `/[/` is a pattern to those that do not look for brackets.
    None
}

#[cfg(test)]
mod tests {
    use super::{Token::*, *};

    #[test]
    fn patterns_are_no_divisions() {
        assert_eq!(tokens("/a\\/b/"), [Pattern("a\\/b")]);
        assert_eq!(tokens("/[/]x/"), [Pattern("[/]x")]);
        assert_eq!(tokens("a / b / c")[1], Mark("/"));
        assert_eq!(tokens("$1 / 2")[2], Mark("/"));
        assert_eq!(tokens("f(x) / 2 / 3")[4], Mark("/"));
        assert_eq!(tokens("$0 ~ /x/")[3], Pattern("x"));
        assert_eq!(tokens("print /x/")[1], Pattern("x"));
    }

    #[test]
    fn strings_comments_and_operators_are_told_apart() {
        assert_eq!(tokens("print \"a \\\" b\" # \"c\""), [Name("print"), Text("a \\\" b")]);
        assert_eq!(tokens("x**2"), [Name("x"), Mark("**"), Number("2")]);
        assert_eq!(tokens("c |& getline"), [Name("c"), Mark("|&"), Name("getline")]);
        assert_eq!(tokens("x?a:b")[2..], [Name("a"), Mark(":"), Name("b")]);
        assert_eq!(tokens("a \\\n b"), [Name("a"), Name("b")]);
        assert_eq!(unescaped("a\\\"b\\n"), "a\"b\n");
    }

    proptest::proptest! {
        #[test]
        fn no_program_makes_it_panic(program in "[-a-z0-9/\\\\;{}!,$~\\[\\]:^\"#|&>*\n é]{0,24}") {
            let _ = tokens(&program);
        }
    }
}
