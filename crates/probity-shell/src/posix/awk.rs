//! Programs of `awk`: what is plainly outside the standard's language.

use super::{Checker, args::Arg, options::Parsed, rules::Rule};
use crate::{
    awk::{Token, tokens},
    sed::{self, Syntax},
    tree::Span,
};

/// Functions of other implementations, and what to write instead.
const FUNCTIONS: &[(&str, &str)] = &[
    ("and", "arithmetic with `%` and `int`"),
    ("asort", "`sort` behind a pipe"),
    ("asorti", "`sort` behind a pipe"),
    ("bindtextdomain", "leave it out"),
    ("compl", "arithmetic"),
    ("dcgettext", "leave it out"),
    ("dcngettext", "leave it out"),
    ("gensub", "`gsub` or `sub` on a copy"),
    ("isarray", "leave it out"),
    ("lshift", "`* 2^N`"),
    ("mktime", "`date`, given by `-v`"),
    ("or", "arithmetic"),
    ("patsplit", "a loop with `match` and `substr`"),
    ("rshift", "`int(X / 2^N)`"),
    ("strftime", "`date`, given by `-v`"),
    ("strtonum", "`X + 0`"),
    ("systime", "`date +%s`, given by `-v`"),
    ("typeof", "leave it out"),
    ("xor", "arithmetic"),
];

/// Variables that do something in other implementations.
const SETTINGS: &[(&str, &str)] = &[
    ("FIELDWIDTHS", "`substr`"),
    ("FPAT", "a loop with `match` and `substr`"),
    ("IGNORECASE", "`tolower` on both sides"),
];

/// Longer programs are not read: each call is looked up in all of them.
const MAX_TOKENS: usize = 4000;

impl Checker<'_> {
    /// The program of `awk`, where it is known.
    pub(super) fn awk(&mut self, parsed: &Parsed<'_>) {
        if parsed.has('f') || parsed.open {
            return;
        }
        let Some(first) = parsed.operands.first() else { return };
        let Some(program) = first.value() else { return };
        self.awk_program(program, first);
    }

    fn awk_program(&mut self, program: &str, arg: &Arg<'_>) {
        let tokens = tokens(program);
        if tokens.len() > MAX_TOKENS {
            return;
        }
        let span = arg.span();
        let mut said: Vec<&str> = Vec::new();
        for at in 0..tokens.len() {
            let Some((what, message, instead)) = self.foreign(&tokens, at) else { continue };
            if !said.contains(&what) {
                said.push(what);
                self.report_with(Rule::AwkProgram, span, message, Some(instead));
            }
        }
        for token in &tokens {
            if let Token::Pattern(pattern) = token {
                self.awk_pattern(pattern, span);
            }
        }
    }

    fn awk_pattern(&mut self, pattern: &str, span: Span) {
        if let Some(escaped) = sed::foreign_escape(pattern, '/', Syntax::Extended)
            && escaped != 'b'
            && escaped != 'B'
        {
            let message = format!("`\\{escaped}` in a pattern of `awk` is not in the standard");
            let instead = "classes such as `[[:space:]]` and `[[:alnum:]_]`";
            self.report_with(Rule::RegularExpression, span, message, Some(instead));
        }
    }

    /// What is foreign at a token: its name, what is wrong, and what to write instead.
    fn foreign<'p>(
        &self,
        tokens: &[Token<'p>],
        at: usize,
    ) -> Option<(&'p str, String, &'static str)> {
        let next = tokens.get(at + 1);
        let called = next == Some(&Token::Mark("("));
        let lacks = |what: &str| format!("`awk` of the standard has no {what}");
        let later = |what: &str| format!("{what} of `awk` came with POSIX.1-2024");
        match tokens[at] {
            Token::Mark(mark @ ("**" | "**=")) => {
                let instead = if mark == "**" { "`^`" } else { "`^=`" };
                Some((mark, lacks(&format!("`{mark}`")), instead))
            }
            Token::Mark("|&") => Some(("|&", lacks("`|&`"), "a temporary file")),
            Token::Mark("@") => Some(("@", lacks("`@`"), "`-f FILE` for each file")),
            Token::Name(name) if called && !is_defined(tokens, name) => {
                if let Ok(index) = FUNCTIONS.binary_search_by_key(&name, |it| it.0) {
                    let message = lacks(&format!("function `{name}`"));
                    return Some((name, message, FUNCTIONS[index].1));
                }
                match name {
                    "length" => {
                        let array = counts_array(tokens, at)?;
                        let message = lacks(&format!("`length` of the array `{array}`"));
                        Some((name, message, "count in a loop: `for (i in a) n++`"))
                    }
                    "match" if arguments(&tokens[at + 1..]) > 2 => {
                        Some((name, lacks("third argument of `match`"), "`RSTART` and `RLENGTH`"))
                    }
                    "split" if arguments(&tokens[at + 1..]) > 3 => {
                        Some((name, lacks("fourth argument of `split`"), "a loop with `match`"))
                    }
                    "switch" => Some((name, lacks("`switch`"), "`if` and `else`")),
                    "fflush" if self.is_2017() => {
                        Some((name, later("`fflush`"), "`close`, or `system(\"\")`"))
                    }
                    _ => None,
                }
            }
            Token::Name(name @ ("BEGINFILE" | "ENDFILE")) if next == Some(&Token::Mark("{")) => {
                Some((name, lacks(&format!("`{name}`")), "`FNR == 1`"))
            }
            Token::Name("func") if matches!(next, Some(Token::Name(_))) => {
                Some(("func", lacks("`func`"), "`function`"))
            }
            Token::Name("PROCINFO") if next == Some(&Token::Mark("[")) => {
                Some(("PROCINFO", lacks("`PROCINFO`"), "`sort` behind a pipe"))
            }
            Token::Name(name) if next == Some(&Token::Mark("=")) => {
                let index = SETTINGS.binary_search_by_key(&name, |it| it.0).ok()?;
                Some((name, lacks(&format!("`{name}`")), SETTINGS[index].1))
            }
            Token::Name("nextfile") if self.is_2017() && ends(next) => {
                Some(("nextfile", later("`nextfile`"), "a flag that is reset when `FNR == 1`"))
            }
            Token::Name("delete")
                if self.is_2017()
                    && matches!(next, Some(Token::Name(_)))
                    && tokens.get(at + 2) != Some(&Token::Mark("[")) =>
            {
                Some(("delete", later("`delete` of a whole array"), "`split(\"\", a)`"))
            }
            Token::Name(_)
            | Token::Number(_)
            | Token::Text(_)
            | Token::Pattern(_)
            | Token::Mark(_) => None,
        }
    }
}

/// Whether a statement ends here.
fn ends(next: Option<&Token<'_>>) -> bool {
    matches!(next, None | Some(Token::Mark(";" | "}" | "\n")))
}

/// Whether the program defines a function of that name.
fn is_defined(tokens: &[Token<'_>], name: &str) -> bool {
    tokens
        .windows(2)
        .any(|it| matches!(it[0], Token::Name("function" | "func")) && it[1] == Token::Name(name))
}

/// The array whose elements `length` counts.
fn counts_array<'p>(tokens: &[Token<'p>], at: usize) -> Option<&'p str> {
    let [Token::Mark("("), Token::Name(name), Token::Mark(")")] = tokens.get(at + 1..at + 4)?
    else {
        return None;
    };
    let indexed = tokens.windows(2).any(|it| *it == [Token::Name(name), Token::Mark("[")]);
    let walked = tokens.windows(2).any(|it| *it == [Token::Name("in"), Token::Name(name)]);
    let filled = tokens
        .windows(4)
        .any(|it| it[0] == Token::Name("split") && it[3..].first() == Some(&Token::Mark(",")));
    let split = filled && tokens.windows(2).any(|it| *it == [Token::Mark(","), Token::Name(name)]);
    (indexed || walked || split).then_some(name)
}

/// How many arguments a call has; the first token is its bracket.
fn arguments(tokens: &[Token<'_>]) -> usize {
    let (mut depth, mut count) = (0_usize, 1);
    for token in tokens {
        match token {
            Token::Mark("(" | "[" | "{") => depth += 1,
            Token::Mark(")" | "]" | "}") => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return count;
                }
            }
            Token::Mark(",") if depth == 1 => count += 1,
            Token::Name(_)
            | Token::Number(_)
            | Token::Text(_)
            | Token::Pattern(_)
            | Token::Mark(_) => {}
        }
    }
    // What is not closed is not understood.
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_that_are_searched_are_sorted() {
        assert!(FUNCTIONS.is_sorted());
        assert!(SETTINGS.is_sorted());
    }
}
