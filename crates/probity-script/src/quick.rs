//! Which scripts may run on the thread that waits for their value.
//!
//! The engine looks at its limits only every few thousand calls and jumps back, and one operation on
//! a large text may take long. A script that handles only what it is given, and does little with
//! it, needs no thread of its own. That is decided by what stands in the code, word by word: the
//! names of the engine's own functions that are cheap are listed here, and whatever is not known
//! to be cheap makes a script one that is not quick.

use std::{collections::BTreeSet, sync::LazyLock};

use crate::engine;

/// Bytes of code that are looked at.
const LONGEST: usize = 2 << 10;
/// Bytes of output and context for a script that does each thing once.
const SMALL: usize = 64 << 10;
/// The same for a script that goes through lists, and calls that it may have in doing so.
const SMALL_IN_LOOPS: usize = 4 << 10;
const CALLS_IN_LOOPS: usize = 6;

/// Methods that take time in proportion to a text or a list at most, and make nothing larger of it.
const METHODS: [&str; 43] = [
    "abs",
    "at",
    "ceil",
    "charAt",
    "charCodeAt",
    "endsWith",
    "entries",
    "every",
    "exec",
    "filter",
    "find",
    "findIndex",
    "floor",
    "hasOwn",
    "hasOwnProperty",
    "includes",
    "indexOf",
    "isFinite",
    "isInteger",
    "isNaN",
    "keys",
    "lastIndexOf",
    "map",
    "match",
    "max",
    "min",
    "parse",
    "parseFloat",
    "parseInt",
    "round",
    "search",
    "slice",
    "some",
    "split",
    "startsWith",
    "substring",
    "test",
    "toLowerCase",
    "toUpperCase",
    "trim",
    "trimEnd",
    "trimStart",
    "values",
];
/// Functions with a name of their own.
const FUNCTIONS: [&str; 6] = ["Boolean", "Number", "isFinite", "isNaN", "parseFloat", "parseInt"];
/// Other names of the engine that may be read.
const READ: [&str; 8] =
    ["JSON", "Math", "Object", "undefined", "NaN", "Infinity", "length", "name"];
/// Words of the language that make nothing happen again.
const KEYWORDS: [&str; 13] = [
    "const",
    "else",
    "false",
    "if",
    "in",
    "instanceof",
    "let",
    "null",
    "return",
    "true",
    "typeof",
    "var",
    "void",
];
/// Words of the language that do, or that make what code means depend on more than its words.
const OTHER_KEYWORDS: [&str; 29] = [
    "arguments",
    "async",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "continue",
    "debugger",
    "default",
    "delete",
    "do",
    "enum",
    "export",
    "extends",
    "finally",
    "for",
    "function",
    "import",
    "new",
    "static",
    "super",
    "switch",
    "this",
    "throw",
    "try",
    "while",
    "with",
    "yield",
];
/// What may stand before a regular expression, where a division cannot.
const BEFORE_A_PATTERN: [&str; 11] = ["(", ",", "=", ":", "!", "&&", "||", "??", "?", ";", "=>"];
const MARKS: [&str; 35] = [
    "===", "!==", "=>", "==", "!=", "<=", ">=", "&&", "||", "??", "?.", "(", ")", "[", "]", "{",
    "}", ",", ";", ":", "?", "!", "<", ">", "=", "+", "-", "*", "%", "&", "|", ".", " ", "\n",
    "\t",
];

/// The names of all that the engine brings along.
static OF_ENGINE: LazyLock<Option<BTreeSet<String>>> = LazyLock::new(engine::names);

/// The most bytes of output and context on which a function body is quick; none if it never is.
pub(crate) fn largest(code: &str) -> Option<usize> {
    let of_engine = OF_ENGINE.as_ref()?;
    if code.len() > LONGEST {
        return None;
    }
    let reading = Reading { tokens: tokens(code)?, of_engine };
    reading.is_harmless().then_some(())?;
    let has = |mark| reading.tokens.contains(&Token::Mark(mark));
    let first_arrow = reading.tokens.iter().position(|it| *it == Token::Mark("=>"));
    // What is named or handed over can be added to itself.
    if has("+") && (has("=") || first_arrow.is_some()) {
        return None;
    }
    let Some(at) = first_arrow else { return Some(SMALL) };
    let calls = reading.tokens[at..].iter().filter(|it| **it == Token::Mark("(")).count();
    (calls <= CALLS_IN_LOOPS).then_some(SMALL_IN_LOOPS)
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Token<'a> {
    Word(&'a str),
    Number,
    /// A text or a regular expression.
    Literal,
    Mark(&'a str),
}

/// The parts of the code; none if it has something that is not looked at here.
fn tokens(code: &str) -> Option<Vec<Token<'_>>> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$');
    let mut tokens: Vec<Token<'_>> = Vec::new();
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        // `<!--` and `-->` hide the rest of a line, as in a page.
        if rest.starts_with("--") {
            return None;
        }
        let (token, length) = match first {
            '\'' | '"' => (Token::Literal, text_length(rest, first)?),
            '/' if may_be_pattern(tokens.last()) => (Token::Literal, pattern_length(rest)?),
            '/' if is_division(tokens.last(), rest) => (Token::Mark("/"), 1),
            '0'..='9' => {
                let is_number = |c: char| is_word(c) || c == '.';
                let length = rest.find(|c| !is_number(c)).unwrap_or(rest.len());
                let is_plain = |c: char| c.is_ascii_digit() || c == '.';
                (rest[..length].chars().all(is_plain).then_some(Token::Number)?, length)
            }
            c if is_word(c) => {
                let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                (Token::Word(&rest[..length]), length)
            }
            _ => {
                let mark = MARKS.iter().find(|it| rest.starts_with(**it))?;
                (Token::Mark(mark), mark.len())
            }
        };
        rest = &rest[length..];
        if !matches!(token, Token::Mark(" " | "\n" | "\t")) {
            tokens.push(token);
        }
    }
    Some(tokens)
}

fn may_be_pattern(before: Option<&Token<'_>>) -> bool {
    match before {
        None | Some(Token::Word("return")) => true,
        Some(Token::Mark(mark)) => BEFORE_A_PATTERN.contains(mark),
        Some(Token::Word(_) | Token::Number | Token::Literal) => false,
    }
}

/// Whether a slash divides. After a parenthesis it may begin a regular expression.
fn is_division(before: Option<&Token<'_>>, rest: &str) -> bool {
    let is_divided = match before {
        Some(Token::Word(word)) => !KEYWORDS.contains(word),
        Some(Token::Number | Token::Mark("]")) => true,
        Some(Token::Literal | Token::Mark(_)) | None => false,
    };
    is_divided && !rest.starts_with("//") && !rest.starts_with("/*")
}

/// The length of a text with its quotes.
fn text_length(rest: &str, quote: char) -> Option<usize> {
    let mut chars = rest.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '\n' | '\r' => return None,
            c if c == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// The length of a regular expression with its flags. `//` begins a comment.
fn pattern_length(rest: &str) -> Option<usize> {
    let mut in_class = false;
    let mut chars = rest.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '\n' | '\r' => return None,
            '/' | '*' if at == 1 => return None,
            '[' => in_class = true,
            ']' => in_class = false,
            '/' if !in_class => {
                let flags = &rest[at + 1..];
                let length = flags.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(flags.len());
                return Some(at + 1 + length);
            }
            _ => {}
        }
    }
    None
}

struct Reading<'a> {
    tokens: Vec<Token<'a>>,
    of_engine: &'a BTreeSet<String>,
}

impl<'a> Reading<'a> {
    fn token(&self, at: usize) -> Option<Token<'a>> {
        self.tokens.get(at).copied()
    }

    fn before(&self, at: usize) -> Option<Token<'a>> {
        at.checked_sub(1).and_then(|it| self.token(it))
    }

    fn is_harmless(&self) -> bool {
        // For each open parenthesis, whether it is that of an `if`.
        let mut open = Vec::new();
        let mut last_closed_is_if = false;
        for (at, token) in self.tokens.iter().enumerate() {
            let before = self.before(at);
            let fine = match token {
                Token::Word(word) => self.may_name(word, at),
                Token::Mark("(") => {
                    open.push(before == Some(Token::Word("if")));
                    !is_value_end(before)
                }
                Token::Mark(")") => {
                    last_closed_is_if = open.pop().unwrap_or(false);
                    true
                }
                // A method, a getter or a class would have a body here.
                Token::Mark("{") => match before {
                    Some(Token::Mark(")")) => last_closed_is_if,
                    Some(Token::Word(word)) => matches!(word, "else" | "return"),
                    _ => true,
                },
                Token::Mark("[") => self.may_open_list(at, before),
                // Three of them spread a list.
                Token::Mark(".") => before != Some(Token::Mark(".")),
                Token::Mark(_) | Token::Number | Token::Literal => true,
            };
            if !fine {
                return false;
            }
        }
        true
    }

    fn may_name(&self, word: &str, at: usize) -> bool {
        let is_called = self.token(at + 1) == Some(Token::Mark("("));
        let is_known = || self.of_engine.contains(word);
        if matches!(self.before(at), Some(Token::Mark("." | "?."))) {
            return match is_called {
                true => METHODS.contains(&word),
                false => METHODS.contains(&word) || READ.contains(&word) || !is_known(),
            };
        }
        if KEYWORDS.contains(&word) {
            return true;
        }
        if OTHER_KEYWORDS.contains(&word) {
            return false;
        }
        match is_called {
            true => FUNCTIONS.contains(&word),
            false => FUNCTIONS.contains(&word) || READ.contains(&word) || !is_known(),
        }
    }

    /// An element by its number, or a list. One of other values, under a name, could be put
    /// into itself again and again.
    fn may_open_list(&self, at: usize, before: Option<Token<'_>>) -> bool {
        let is_word = matches!(before, Some(Token::Word(word)) if !KEYWORDS.contains(&word));
        if is_word || is_value_end(before) {
            return self.token(at + 1) == Some(Token::Number)
                && self.token(at + 2) == Some(Token::Mark("]"));
        }
        let closes = |it: &Token<'_>| *it == Token::Mark("]");
        let Some(length) = self.tokens[at..].iter().position(closes) else { return false };
        let has_name = self.tokens[at..at + length].iter().any(|it| matches!(it, Token::Word(_)));
        !has_name || !self.tokens.contains(&Token::Mark("="))
    }
}

/// Whether a value other than a name ends here, so that `(` would call it and `[` look into it.
fn is_value_end(before: Option<Token<'_>>) -> bool {
    matches!(before, Some(Token::Mark(")" | "]" | "}" | "?.") | Token::Literal | Token::Number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write_is_quick() {
        for code in [
            "output.length > 10",
            "output.includes('a') && !output.includes(\"it's\")",
            "JSON.parse(output).city === context.vars.city",
            "JSON.parse(output).items[0].price < 5",
            "return /^\\s*[/'\"]yes/i.test(output);",
            "const text = output.toLowerCase();\nif (!text.trim()) {\n\treturn false;\n}\nreturn { pass: true, score: 1 };",
            "const words = output.split(/\\s+/);\nreturn words.length <= 50 ? 1 : 50 / words.length;",
        ] {
            assert_eq!(largest(code), Some(SMALL), "{code}");
        }
        for code in [
            "['a', 'b'].every(it => output.includes(it))",
            "Object.keys(JSON.parse(output)).every(key => context.vars.keys.includes(key))",
        ] {
            assert_eq!(largest(code), Some(SMALL_IN_LOOPS), "{code}");
        }
        assert_eq!(largest("output + output"), Some(SMALL));
    }

    #[test]
    fn whatever_may_take_long_is_not() {
        for code in [
            "'x'.repeat(9)",
            "output <!-- '\\\n; const x = 2n ** 5000000n; while (1) x * x; // '",
            "output\n--> '\\\n; while (1) output.length; // '",
            "'x'['repeat'](9)",
            "'x'['REPEAT'.toLowerCase()](9)",
            "output?.['repeat'](9)",
            "const f = output.repeat; f(9)",
            "const { repeat } = output; repeat(9)",
            "const a = []; while (a.length < 1000000) a.push('x')",
            "const o = { m(s) { return s.length > 9 ? s : o.m(s) } }; o.m(output)",
            "const o = { get m() { return o.m } }; o.m",
            "const o = { Number() { return 1 } }; Number(o)",
            "const f = s => f(s); f(output)",
            "(f => f(f))(f => f(f))",
            "(f => f(f))",
            "xs.every(f => f.call(f))",
            "let s = output; s = s + s; s = s + s",
            "output.split('').map(it => it + output)",
            "let a = [output]; a = [a, a]; a == ''",
            "output.split('').sort()",
            "output.split('').every(it => { 'a'.split(); 'a'.split(); 'a'.split(); 'a'.split(); 'a'.split(); 'a'.split(); 'a'.split() })",
            "2n ** 9n",
            "0xffn",
            "`${output}`",
            "[...output]",
            "Array(9)",
            "Array.from({ length: 9 })",
            "eval(output)",
            "new Function(output)",
            "output.constructor",
            "outp\\u0075t",
            "(a) / b",
            "if (a) /'/.test(b); 'x'.repeat(9); '/'",
            "a // output",
            "// output",
            "{ valueOf: output }",
            "class A {}",
            "for (;;) {}",
            "context.vars[output]",
            "JSON.stringify(context)",
            "'unended",
            "/unended",
            "é",
        ] {
            assert_eq!(largest(code), None, "{code}");
        }
        assert_eq!(largest(&"1;".repeat(LONGEST)), None);
    }

    #[test]
    fn the_lists_name_what_there_is() {
        let of_engine = OF_ENGINE.as_ref().unwrap();
        for name in METHODS.iter().chain(&FUNCTIONS).chain(&READ) {
            assert!(of_engine.contains(*name), "{name}");
        }
        for name in ["repeat", "constructor", "sort", "call", "toArray", "__proto__", "raw"] {
            assert!(of_engine.contains(name), "{name}");
        }
    }
}
