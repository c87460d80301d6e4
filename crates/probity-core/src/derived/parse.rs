//! Reads expressions. Their length and their depth have bounds.

use std::{fmt, iter::Peekable, str::CharIndices};

use super::{
    Expression, Function, Named, Part, Term,
    expression::Operator::{self, And, Or, Power},
};
use crate::gate::Metric;

/// The longest text of an expression that somebody writes, in bytes.
pub(super) const LONGEST: usize = 4096;
/// The longest text that we make of one: with blanks around operators, digits for exponents, and quotes.
pub(super) const LONGEST_WRITTEN: usize = 8 * LONGEST;
/// How deep parentheses, calls and signs may be.
const DEEPEST: u32 = 64;
/// What stands before the name of a derived figure.
pub(super) const DERIVED: &str = "derived";
/// How many results there are.
pub(super) const RESULTS: &str = "results";

/// Why a text is no expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionError {
    /// The byte where that shows.
    pub at: usize,
    /// Why.
    pub message: String,
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at byte {})", self.message, self.at)
    }
}

impl std::error::Error for ExpressionError {}

/// Why a name means nothing.
pub type NameError = String;

/// What a bare name means to somebody.
type Names<'a> = &'a dyn Fn(&str) -> Result<Term, NameError>;

impl Expression {
    /// Reads an expression whose bare names mean something else than ours, such as that of another tool.
    pub fn parse_with(
        text: &str,
        names: &dyn Fn(&str) -> Result<Term, NameError>,
    ) -> Result<Self, ExpressionError> {
        parse(text, LONGEST, names)
    }
}

/// What a bare name is in an expression of ours.
pub(super) fn own_name(name: &str) -> Result<Term, NameError> {
    if name == RESULTS {
        return Ok(Term::Named(Named::Results));
    }
    let known = Metric::all().find(|(_, known)| known == name);
    let metric = known.map(|(metric, _)| Term::Named(Named::Metric(metric)));
    metric.ok_or_else(|| {
        format!("there is no figure `{name}`; a named score is `sum.{name}` or `score.{name}`")
    })
}

/// Whether a name can be written without quotes.
pub(super) fn is_bare(name: &str) -> bool {
    name.starts_with(begins_name) && name.chars().all(continues_name)
}

fn begins_name(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

fn continues_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

pub(super) fn parse(
    text: &str,
    longest: usize,
    names: Names<'_>,
) -> Result<Expression, ExpressionError> {
    if text.len() > longest {
        let message = format!("an expression has no more than {longest} bytes");
        return Err(ExpressionError { at: 0, message });
    }
    let tokens = Lexer { text, chars: text.char_indices().peekable() }.tokens()?;
    let mut parser = Parser { tokens: &tokens, at: 0, end: text.len(), depth: 0, names };
    let term = parser.choice()?;
    match parser.next() {
        None => Ok(Expression(term)),
        Some((token, at)) => {
            let help = match token {
                Token::Name(_) | Token::Number(_) | Token::Open => "; write `*` to multiply",
                Token::Quoted(_)
                | Token::Sign(_)
                | Token::Close
                | Token::Comma
                | Token::Question
                | Token::Colon
                | Token::Point => "",
            };
            Err(ExpressionError { at, message: format!("{token} is not expected here{help}") })
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Number(f64),
    Name(String),
    Quoted(String),
    Sign(Operator),
    Open,
    Close,
    Comma,
    Question,
    Colon,
    Point,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(value) => write!(f, "`{value}`"),
            Self::Name(name) => write!(f, "`{name}`"),
            Self::Quoted(text) => write!(f, "`\"{text}\"`"),
            Self::Sign(operator) => write!(f, "`{}`", operator.as_str()),
            Self::Open => f.write_str("`(`"),
            Self::Close => f.write_str("`)`"),
            Self::Comma => f.write_str("`,`"),
            Self::Question => f.write_str("`?`"),
            Self::Colon => f.write_str("`:`"),
            Self::Point => f.write_str("`.`"),
        }
    }
}

struct Lexer<'a> {
    text: &'a str,
    chars: Peekable<CharIndices<'a>>,
}

impl Lexer<'_> {
    fn tokens(mut self) -> Result<Vec<(Token, usize)>, ExpressionError> {
        let mut tokens = Vec::new();
        while let Some((at, c)) = self.chars.next() {
            let token = match c {
                _ if c.is_whitespace() => continue,
                '0'..='9' => Token::Number(self.number(at)?),
                '.' if self.is_next(|c| c.is_ascii_digit()) => Token::Number(self.number(at)?),
                '.' => Token::Point,
                '"' | '\'' => Token::Quoted(self.quoted(at, c)?),
                '(' => Token::Open,
                ')' => Token::Close,
                ',' => Token::Comma,
                '?' => Token::Question,
                ':' => Token::Colon,
                '+' => Token::Sign(Operator::Plus),
                '-' => Token::Sign(Operator::Minus),
                '*' if self.takes('*') => Token::Sign(Power),
                '*' => Token::Sign(Operator::Times),
                '/' => Token::Sign(Operator::By),
                '%' => Token::Sign(Operator::Modulo),
                '^' => Token::Sign(Power),
                '<' if self.takes('=') => Token::Sign(Operator::AtMost),
                '<' => Token::Sign(Operator::Less),
                '>' if self.takes('=') => Token::Sign(Operator::AtLeast),
                '>' => Token::Sign(Operator::More),
                '=' if self.takes('=') => Token::Sign(Operator::Equal),
                '!' if self.takes('=') => Token::Sign(Operator::Unequal),
                // Behind a point every word is a name, such as that of a score called `or`.
                _ if begins_name(c) => match self.name(at) {
                    name if matches!(tokens.last(), Some((Token::Point, _))) => {
                        Token::Name(name.to_owned())
                    }
                    "and" => Token::Sign(And),
                    "or" => Token::Sign(Or),
                    name => Token::Name(name.to_owned()),
                },
                _ => {
                    let message = format!("`{}` means nothing here", c.escape_debug());
                    return Err(ExpressionError { at, message });
                }
            };
            tokens.push((token, at));
        }
        Ok(tokens)
    }

    fn is_next(&mut self, wanted: impl Fn(char) -> bool) -> bool {
        self.chars.peek().is_some_and(|(_, c)| wanted(*c))
    }

    fn takes(&mut self, wanted: char) -> bool {
        self.chars.next_if(|(_, c)| *c == wanted).is_some()
    }

    /// Where the next character begins.
    fn place(&mut self) -> usize {
        self.chars.peek().map_or(self.text.len(), |(at, _)| *at)
    }

    fn name(&mut self, from: usize) -> &str {
        while self.chars.next_if(|(_, c)| continues_name(*c)).is_some() {}
        let end = self.place();
        &self.text[from..end]
    }

    fn number(&mut self, from: usize) -> Result<f64, ExpressionError> {
        while let Some((_, c)) =
            self.chars.next_if(|(_, c)| c.is_ascii_digit() || "eE.".contains(*c))
        {
            if matches!(c, 'e' | 'E') {
                let _ = self.takes('-') || self.takes('+');
            }
        }
        let end = self.place();
        let text = &self.text[from..end];
        let value = text.parse::<f64>().ok().filter(|it| it.is_finite());
        value.ok_or_else(|| ExpressionError { at: from, message: format!("`{text}` is no number") })
    }

    fn quoted(&mut self, from: usize, quote: char) -> Result<String, ExpressionError> {
        let mut text = String::new();
        while let Some((_, c)) = self.chars.next() {
            match c {
                '\\' => text.extend(self.chars.next().map(|(_, c)| c)),
                _ if c == quote => return Ok(text),
                _ => text.push(c),
            }
        }
        Err(ExpressionError { at: from, message: "this quote is not closed".to_owned() })
    }
}

struct Parser<'a> {
    tokens: &'a [(Token, usize)],
    at: usize,
    end: usize,
    depth: u32,
    names: Names<'a>,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(token, _)| token)
    }

    fn next(&mut self) -> Option<(Token, usize)> {
        let next = self.tokens.get(self.at).cloned();
        self.at += usize::from(next.is_some());
        next
    }

    fn takes(&mut self, wanted: &Token) -> bool {
        let is_next = self.peek() == Some(wanted);
        self.at += usize::from(is_next);
        is_next
    }

    fn error<T>(&self, message: impl Into<String>) -> Result<T, ExpressionError> {
        let at = self.tokens.get(self.at).map_or(self.end, |(_, at)| *at);
        Err(ExpressionError { at, message: message.into() })
    }

    fn expect(&mut self, wanted: &Token) -> Result<(), ExpressionError> {
        match self.takes(wanted) {
            true => Ok(()),
            false => self.error(format!("{wanted} is missing")),
        }
    }

    /// One level deeper, as long as that is allowed.
    fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, ExpressionError>,
    ) -> Result<T, ExpressionError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return self.error(format!("an expression is no more than {DEEPEST} levels deep"));
        }
        let read = read(self);
        self.depth -= 1;
        read
    }

    fn choice(&mut self) -> Result<Term, ExpressionError> {
        let condition = self.binary(Or.level())?;
        if !self.takes(&Token::Question) {
            return Ok(condition);
        }
        let then = self.deeper(Self::choice)?;
        self.expect(&Token::Colon)?;
        let other = self.deeper(Self::choice)?;
        Ok(Term::Choice(Box::new([condition, then, other])))
    }

    /// Operators from a level on, from the left to the right.
    fn binary(&mut self, least: u8) -> Result<Term, ExpressionError> {
        let mut left = self.signed()?;
        while let Some(Token::Sign(operator)) = self.peek() {
            let operator = *operator;
            if operator.level() < least || operator == Power {
                break;
            }
            self.at += 1;
            let right = self.deeper(|it| it.binary(operator.level() + 1))?;
            left = Term::Binary(operator, Box::new(left), Box::new(right));
            if let (true, Some(Token::Sign(next))) = (operator.compares(), self.peek())
                && next.compares()
            {
                return self.error("comparisons do not follow each other; join them with `and`");
            }
        }
        Ok(left)
    }

    fn signed(&mut self) -> Result<Term, ExpressionError> {
        if self.takes(&Token::Sign(Operator::Minus)) {
            return Ok(Term::Minus(Box::new(self.deeper(Self::signed)?)));
        }
        if self.takes(&Token::Sign(Operator::Plus)) {
            return self.deeper(Self::signed);
        }
        if self.takes(&Token::Name("not".to_owned())) {
            return Ok(Term::Not(Box::new(self.deeper(Self::signed)?)));
        }
        let base = self.simple()?;
        if !self.takes(&Token::Sign(Power)) {
            return Ok(base);
        }
        let exponent = self.deeper(Self::signed)?;
        Ok(Term::Binary(Power, Box::new(base), Box::new(exponent)))
    }

    fn simple(&mut self) -> Result<Term, ExpressionError> {
        match self.peek() {
            Some(Token::Number(value)) => {
                let term = Term::Number(*value);
                self.at += 1;
                Ok(term)
            }
            Some(Token::Open) => {
                self.at += 1;
                let term = self.deeper(Self::choice)?;
                self.expect(&Token::Close)?;
                Ok(term)
            }
            Some(Token::Name(name)) => {
                let name = name.clone();
                self.at += 1;
                match self.peek() {
                    Some(Token::Open) => self.call(&name),
                    Some(Token::Point) => self.member(&name),
                    _ => self.name(&name),
                }
            }
            Some(other) => self.error(format!("{other} is not expected here")),
            None => self.error("something is missing at the end"),
        }
    }

    fn name(&mut self, name: &str) -> Result<Term, ExpressionError> {
        (self.names)(name).or_else(|message| {
            self.at -= 1;
            self.error(message)
        })
    }

    /// What stands behind `score.`, `sum.` and the like.
    fn member(&mut self, owner: &str) -> Result<Term, ExpressionError> {
        let part = Part::ALL.into_iter().find(|it| it.as_str() == owner);
        if part.is_none() && owner != DERIVED {
            self.at -= 1;
            let known: Vec<&str> = Part::ALL.iter().map(|it| it.as_str()).collect();
            let known = known.join("`, `");
            return self.error(format!("only `{known}` and `{DERIVED}` have a `.` behind them"));
        }
        self.at += 1;
        let name: std::sync::Arc<str> = match self.peek() {
            Some(Token::Name(name) | Token::Quoted(name)) if !name.trim().is_empty() => {
                name.as_str().into()
            }
            _ => return self.error(format!("a name is missing behind `{owner}.`")),
        };
        self.at += 1;
        Ok(Term::Named(match part {
            Some(part) => Named::Score(part, name),
            None => Named::Derived(name),
        }))
    }

    fn call(&mut self, name: &str) -> Result<Term, ExpressionError> {
        let Ok(function) = name.parse::<Function>() else {
            self.at -= 1;
            let known: Vec<&str> = Function::ALL.iter().map(|it| it.as_str()).collect();
            let known = known.join(", ");
            return self.error(format!("there is no function `{name}`; there are {known}"));
        };
        self.at += 1;
        let mut arguments = Vec::new();
        if !self.takes(&Token::Close) {
            loop {
                arguments.push(self.deeper(Self::choice)?);
                if !self.takes(&Token::Comma) {
                    break;
                }
            }
            self.expect(&Token::Close)?;
        }
        let (least, most) = function.arity();
        if arguments.len() < least || arguments.len() > most {
            let wanted = match (least, most) {
                (1, 1) => "one argument".to_owned(),
                (least, usize::MAX) => format!("{least} or more arguments"),
                (least, most) if least == most => format!("{least} arguments"),
                (least, most) => format!("{least} to {most} arguments"),
            };
            return self.error(format!("`{function}` takes {wanted}"));
        }
        Ok(Term::Call(function, arguments))
    }
}
