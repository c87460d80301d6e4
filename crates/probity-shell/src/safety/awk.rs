//! What a program of `awk` runs and writes.

use super::{expand, later::Write, target::classify, walk::Walker};
use crate::{
    awk::{Token, tokens, unescaped},
    tree::Span,
};

/// How many tokens of a command's or a file's name are looked at.
const MAX_PIECES: usize = 32;
/// How many strings that a program keeps in variables are remembered.
const MAX_VALUES: usize = 16;

/// A name that is put together from strings and values.
struct Pieced {
    text: String,
    /// Whether it begins with a value that the program does not hold.
    open: bool,
}

impl Walker<'_> {
    /// Judges a program, which is `given` the values of `-v`.
    pub(super) fn awk(&mut self, program: &str, given: &[(&str, &str)], span: Span) {
        if expand::holds_download(program) {
            return self.report_check(self.download_rule(), span);
        }
        let tokens = tokens(program);
        let given = given.iter().take(MAX_VALUES / 2);
        let mut values: Vec<(&str, String)> =
            given.map(|(name, value)| (*name, (*value).to_owned())).collect();
        let (mut prints, mut depth, mut runs_value) = (false, 0_usize, false);
        for (at, token) in tokens.iter().enumerate() {
            let next = tokens.get(at + 1);
            match token {
                Token::Name("print" | "printf") => (prints, depth) = (true, 0),
                Token::Name("system") if next == Some(&Token::Mark("(")) => {
                    let command = pieced(&tokens[at + 2..], &values);
                    runs_value |= command.open;
                    self.awk_runs(&command, span);
                }
                Token::Name(name) if next == Some(&Token::Mark("=")) => {
                    let value = pieced(&tokens[at + 2..], &values);
                    if !value.open && values.len() < MAX_VALUES {
                        values.push((name, value.text));
                    }
                }
                Token::Mark("|" | "|&") => {
                    let command = match next {
                        Some(Token::Name("getline")) => pieced_before(&tokens[..at], &values),
                        _ => pieced(&tokens[at + 1..], &values),
                    };
                    runs_value |= command.open;
                    if !command.text.starts_with("/inet") {
                        self.awk_runs(&command, span);
                    }
                }
                Token::Mark(mark @ (">" | ">>")) if prints && depth == 0 => {
                    let file = pieced(&tokens[at + 1..], &values);
                    let write = if *mark == ">" { Write::Over } else { Write::Append };
                    if !file.open {
                        self.written_to(classify(&file.text, &self.cwd.clone()), write, span);
                    }
                }
                Token::Mark("(") => depth += 1,
                Token::Mark(")") => depth = depth.saturating_sub(1),
                Token::Mark(";" | "\n" | "}") => prints = false,
                Token::Name(_)
                | Token::Number(_)
                | Token::Text(_)
                | Token::Pattern(_)
                | Token::Mark(_) => {}
            }
        }
        let connects =
            tokens.iter().any(|it| matches!(it, Token::Text(text) if text.starts_with("/inet")));
        if connects && runs_value {
            self.report_check("socket-shell", span);
        }
    }

    fn awk_runs(&mut self, command: &Pieced, span: Span) {
        self.scoped(|walker| walker.text(&command.text, span));
    }
}

/// The value of an expression of strings side by side; what is not known of it is a variable.
fn pieced(tokens: &[Token<'_>], values: &[(&str, String)]) -> Pieced {
    let ends = |it: &&Token<'_>| !matches!(it, Token::Mark(";" | "\n" | "}" | "," | "|" | "|&"));
    let mut depth = 0_i32;
    let inside = |it: &&Token<'_>| {
        depth += match it {
            Token::Mark("(") => 1,
            Token::Mark(")") => -1,
            Token::Name(_)
            | Token::Number(_)
            | Token::Text(_)
            | Token::Pattern(_)
            | Token::Mark(_) => 0,
        };
        depth >= 0
    };
    let pieces = tokens.iter().take(MAX_PIECES).take_while(ends).take_while(inside);
    joined(&pieces.collect::<Vec<_>>(), values)
}

/// The same for the expression that ends here.
fn pieced_before(tokens: &[Token<'_>], values: &[(&str, String)]) -> Pieced {
    let belongs = |it: &&Token<'_>| {
        matches!(it, Token::Text(_) | Token::Number(_) | Token::Mark("$" | ")"))
            || matches!(it, Token::Name(name) if *name != "while" && *name != "if")
    };
    let mut pieces: Vec<_> = tokens.iter().rev().take(MAX_PIECES).take_while(belongs).collect();
    pieces.reverse();
    joined(&pieces, values)
}

fn joined(pieces: &[&Token<'_>], values: &[(&str, String)]) -> Pieced {
    let mut text = String::new();
    let mut open = false;
    for piece in pieces {
        let known = match piece {
            Token::Text(piece) => Some(unescaped(piece)),
            Token::Name(name) => {
                values.iter().rev().find(|it| it.0 == *name).map(|it| it.1.clone())
            }
            Token::Mark("(" | ")" | "$") => continue,
            Token::Number(_) | Token::Pattern(_) | Token::Mark(_) => None,
        };
        match known {
            Some(known) => text.push_str(&known),
            None => {
                open |= text.is_empty();
                text.push_str(&expand::unknown("_value"));
            }
        }
        if text.len() > 4096 {
            break;
        }
    }
    Pieced { text, open }
}
