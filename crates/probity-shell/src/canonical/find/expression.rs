//! The expression of `find`.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use serde::Deserialize;

use crate::{
    canonical::{
        Builder,
        command::{Token, canonical_argv},
        mode,
    },
    field::Field,
    utility::{self, Many},
};

/// Parentheses nest this deep.
const MAX_DEPTH: usize = 32;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Words {
    tests: Kind,
    settings: Kind,
    positional: Kind,
    actions: Kind,
    synonyms: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kind {
    none: BTreeSet<String>,
    one: BTreeSet<String>,
    #[serde(default)]
    two: BTreeSet<String>,
    #[serde(default)]
    command: BTreeSet<String>,
}

static WORDS: LazyLock<Words> = LazyLock::new(|| table!("find"));

impl Kind {
    fn arity(&self, word: &str) -> Option<usize> {
        let counts = [(&self.none, 0), (&self.one, 1), (&self.two, 2)];
        counts.iter().find(|(words, _)| words.contains(word)).map(|(_, count)| *count)
    }
}

/// Whether a word of an expression does something with a file.
pub(super) fn is_action(word: &str) -> bool {
    WORDS.actions.arity(word).is_some() || WORDS.actions.command.contains(word)
}

/// An expression.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Expression {
    Test(Vec<String>),
    /// A test or setting that stays where it is.
    Fixed(Vec<String>),
    Action(Vec<Token>),
    Not(Box<Self>),
    And(Vec<Self>),
    Or(Vec<Self>),
    Comma(Vec<Self>),
}

pub(super) struct Parsed {
    pub(super) expression: Expression,
    /// Settings of the whole search, sorted.
    pub(super) settings: Vec<Vec<String>>,
    pub(super) known: bool,
}

/// Reads an expression; `None` if it is not one we know.
pub(super) fn parse(builder: Builder<'_>, fields: &[Field]) -> Option<Parsed> {
    let mut parser =
        Parser { builder, fields, at: 0, depth: 0, settings: BTreeMap::new(), known: true };
    let expression = match fields.is_empty() {
        true => Expression::And(Vec::new()),
        false => parser.comma()?,
    };
    if parser.at != fields.len() {
        return None;
    }
    let settings = parser
        .settings
        .into_iter()
        .map(|(name, value)| std::iter::once(name).chain(value).collect())
        .collect();
    Some(Parsed { expression, settings, known: parser.known })
}

/// What was read of an expression.
enum Read {
    Expression(Expression),
    /// A setting of the whole search or a test that all pass: true wherever it stands.
    Setting,
}

struct Parser<'f> {
    builder: Builder<'f>,
    fields: &'f [Field],
    at: usize,
    depth: usize,
    settings: BTreeMap<String, Option<String>>,
    known: bool,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&str> {
        self.fields.get(self.at).map(|it| it.text.as_str())
    }

    fn word(&mut self) -> Option<String> {
        let word = self.peek()?.to_owned();
        self.at += 1;
        Some(word)
    }

    fn take(&mut self, words: &[&str]) -> bool {
        let found = self.peek().is_some_and(|it| words.contains(&it));
        self.at += usize::from(found);
        found
    }

    fn comma(&mut self) -> Option<Expression> {
        let mut parts = vec![self.or()?];
        while self.take(&[","]) {
            parts.push(self.or()?);
        }
        Some(one_or(parts, Expression::Comma))
    }

    fn or(&mut self) -> Option<Expression> {
        let mut parts = vec![self.and()?];
        while self.take(&["-o", "-or"]) {
            parts.push(self.and()?);
        }
        Some(one_or(parts, Expression::Or))
    }

    fn and(&mut self) -> Option<Expression> {
        let mut parts = Vec::new();
        loop {
            if let Read::Expression(part) = self.not()? {
                parts.push(part);
            }
            let joined = self.take(&["-a", "-and"]);
            let ends = matches!(self.peek(), None | Some(")" | "," | "-o" | "-or"));
            match (joined, ends) {
                (true, true) => return None,
                (false, true) => return Some(Expression::And(parts)),
                (true | false, false) => {}
            }
        }
    }

    fn not(&mut self) -> Option<Read> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let parsed = if self.take(&["!", "-not"]) {
            match self.not()? {
                Read::Expression(Expression::Not(inner)) => Read::Expression(*inner),
                Read::Expression(other) => Read::Expression(Expression::Not(Box::new(other))),
                Read::Setting => return None,
            }
        } else if self.take(&["("]) {
            let inner = self.comma()?;
            if !self.take(&[")"]) {
                return None;
            }
            Read::Expression(inner)
        } else {
            self.primary()?
        };
        self.depth -= 1;
        Some(parsed)
    }

    fn primary(&mut self) -> Option<Read> {
        let written = self.word()?;
        let word = WORDS.synonyms.get(&written).cloned().unwrap_or(written);
        if let Some(arity) = WORDS.settings.arity(&word) {
            let value = (arity == 1).then(|| self.word());
            self.settings.insert(word, value.map_or(Some(None), |it| it.map(Some))?);
            return Some(Read::Setting);
        }
        if WORDS.actions.command.contains(&word) {
            return self.exec(word).map(Read::Expression);
        }
        let (arity, make): (_, fn(Vec<String>) -> Expression) =
            if let Some(arity) = WORDS.tests.arity(&word) {
                (arity, Expression::Test)
            } else if let Some(arity) = WORDS.positional.arity(&word) {
                (arity, Expression::Fixed)
            } else if let Some(arity) = WORDS.actions.arity(&word) {
                (arity, |words| Expression::Action(words.into_iter().map(Token::operand).collect()))
            } else if word.starts_with("-newer") && word.len() == 8 {
                (1, Expression::Test)
            } else {
                return None;
            };
        let mut words = vec![word];
        for _ in 0..arity {
            words.push(self.word()?);
        }
        match &*words[0] {
            "-perm" => permissions(&mut words[1]),
            "-size" => size(&mut words[1]),
            "-true" => return Some(Read::Setting),
            // Every name and every path matches it.
            "-name" | "-iname" | "-path" | "-ipath" if words[1] == "*" => {
                return Some(Read::Setting);
            }
            _ => {}
        }
        Some(Read::Expression(make(words)))
    }

    fn exec(&mut self, word: String) -> Option<Expression> {
        let start = self.at;
        let rest = &self.fields[start..];
        let ends = |at: usize| {
            rest[at].text == ";" || rest[at].text == "+" && at > 0 && rest[at - 1].text == "{}"
        };
        let end = (0..rest.len()).find(|at| ends(*at))?;
        self.at = start + end + 1;
        let (mut tokens, known) = canonical_argv(self.builder, &rest[..end]).nested();
        self.known &= known;
        let many = rest[end].text == "+";
        if many && tokens.last().is_none_or(|it| it.text != "{}") {
            tokens = rest[..end].iter().map(|it| Token::operand(&*it.text)).collect();
        }
        let texts: Vec<&str> = tokens.iter().map(|it| &*it.text).collect();
        if word == "-exec" && !many && texts == ["echo", "{}"] {
            return Some(Expression::Action(vec![Token::operand("-print")]));
        }
        let end = &*rest[end].text;
        tokens.insert(0, Token::operand(word));
        tokens.push(Token::operand(end));
        Some(Expression::Action(tokens))
    }
}

/// Whether a command that is given no files prints nothing and changes nothing.
pub(super) fn silent_without_operands(command: &[Token]) -> bool {
    let Some(name) = command.first().map(|it| &*it.text) else { return false };
    let handles_each =
        utility::lookup(name).and_then(|it| it.slots.as_deref()).and_then(<[_]>::last);
    name == "cat"
        || handles_each.is_some_and(|slot| slot.many == Many::Unordered && &*slot.name == "FILE")
}

fn permissions(value: &mut String) {
    let sign = if value.starts_with(['-', '/']) { &value[..1] } else { "" };
    if let Some(mode) = mode::canonical(&value[sign.len()..]) {
        *value = format!("{sign}{mode}");
    }
}

/// Blocks are the usual unit, and nothing is nothing in any unit.
fn size(value: &mut String) {
    if let Some(number) = value.strip_suffix('b') {
        *value = number.to_owned();
    }
    if matches!(&**value, "0c" | "0k" | "0M" | "0w" | "0G") {
        "0".clone_into(value);
    }
}

fn one_or(mut parts: Vec<Expression>, make: fn(Vec<Expression>) -> Expression) -> Expression {
    match parts.len() {
        1 => parts.remove(0),
        _ => make(parts),
    }
}

impl Expression {
    /// Whether anything in it is done, rather than asked.
    pub(super) fn acts(&self) -> bool {
        match self {
            Self::Action(_) => true,
            Self::Test(_) | Self::Fixed(_) => false,
            Self::Not(inner) => inner.acts(),
            Self::And(parts) | Self::Or(parts) | Self::Comma(parts) => parts.iter().any(Self::acts),
        }
    }

    /// Whether asking it changes nothing, so that its place among other questions does not matter.
    pub(super) fn is_pure(&self) -> bool {
        match self {
            Self::Test(_) => true,
            Self::Fixed(_) | Self::Action(_) | Self::Comma(_) => false,
            Self::Not(inner) => inner.is_pure(),
            Self::And(parts) | Self::Or(parts) => parts.iter().all(Self::is_pure),
        }
    }

    /// Flattens nested chains and puts questions that commute in order.
    pub(super) fn simplify(&mut self) {
        match self {
            Self::Test(_) | Self::Fixed(_) | Self::Action(_) => {}
            Self::Not(inner) => inner.simplify(),
            Self::Comma(parts) => parts.iter_mut().for_each(Self::simplify),
            Self::And(parts) => {
                flatten(parts, |it| if let Self::And(inner) = it { Ok(inner) } else { Err(it) });
                for run in parts.chunk_by_mut(|a, b| a.is_pure() && b.is_pure()) {
                    run.sort();
                }
                parts.dedup_by(|a, b| a == b && a.is_pure());
                if parts.len() == 1 {
                    *self = parts.remove(0);
                }
            }
            Self::Or(parts) => {
                flatten(parts, |it| if let Self::Or(inner) = it { Ok(inner) } else { Err(it) });
                if parts.iter().all(Self::is_pure) {
                    parts.sort();
                    parts.dedup();
                }
                if parts.len() == 1 {
                    *self = parts.remove(0);
                }
            }
        }
    }

    /// Writes the expression with the fewest parentheses.
    pub(super) fn write(self, tokens: &mut Vec<Token>) {
        match self {
            Self::Test(words) | Self::Fixed(words) => {
                tokens.extend(words.into_iter().map(Token::operand));
            }
            Self::Action(action) => tokens.extend(action),
            Self::Not(inner) => {
                tokens.push(Token::operand("!"));
                inner.write_inside(tokens, |it| {
                    matches!(it, Self::And(_) | Self::Or(_) | Self::Comma(_))
                });
            }
            // Only settings of the whole search stood here.
            Self::And(parts) if parts.is_empty() => tokens.push(Token::operand("-true")),
            Self::And(parts) => {
                for part in parts {
                    part.write_inside(tokens, |it| matches!(it, Self::Or(_) | Self::Comma(_)));
                }
            }
            Self::Or(parts) => separated(parts, "-o", tokens),
            Self::Comma(parts) => separated(parts, ",", tokens),
        }
    }

    fn write_inside(self, tokens: &mut Vec<Token>, needs: fn(&Self) -> bool) {
        let wrapped = needs(&self);
        if wrapped {
            tokens.push(Token::operand("("));
        }
        self.write(tokens);
        if wrapped {
            tokens.push(Token::operand(")"));
        }
    }
}

fn flatten(
    parts: &mut Vec<Expression>,
    same: fn(Expression) -> Result<Vec<Expression>, Expression>,
) {
    let mut flat = Vec::with_capacity(parts.len());
    for mut part in parts.drain(..) {
        part.simplify();
        match same(part) {
            Ok(inner) => flat.extend(inner),
            Err(other) => flat.push(other),
        }
    }
    *parts = flat;
}

fn separated(parts: Vec<Expression>, sign: &str, tokens: &mut Vec<Token>) {
    for (at, part) in parts.into_iter().enumerate() {
        if at > 0 {
            tokens.push(Token::operand(sign));
        }
        part.write_inside(tokens, |it| matches!(it, Expression::Comma(_)));
    }
}
