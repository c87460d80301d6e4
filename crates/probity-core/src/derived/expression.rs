//! Expressions: what they consist of, and how they are written.

use std::{fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{ExpressionError, parse};
use crate::{gate::Metric, named_enum};

/// A formula over figures of a lane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Expression(pub(super) Term);

/// A part of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Term {
    /// A number.
    Number(f64),
    /// What something with a name is.
    Named(Named),
    /// `-a`.
    Minus(Box<Self>),
    /// `not a`.
    Not(Box<Self>),
    /// `a + b`.
    Binary(Operator, Box<Self>, Box<Self>),
    /// `a ? b : c`.
    Choice(Box<[Self; 3]>),
    /// `max(a, b)`.
    Call(Function, Vec<Self>),
}

// The numbers of a text are finite.
impl Eq for Term {}

/// What an expression can name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// Something of the scores of a name: `score.tone`, `sum.tone`.
    Score(Part, Arc<str>),
    /// A derived figure that comes before: `derived.f1`.
    Derived(Arc<str>),
    /// What a gate could be on: `pass_rate`.
    Metric(Metric),
    /// How many results there are: `results`.
    Results,
}

/// What of the scores of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Their mean, as in gates.
    Mean,
    /// Their sum.
    Sum,
    /// Their sum, each as often as it counts.
    Weighted,
    /// How many have a value.
    Count,
    /// How many were enough.
    Passed,
}

impl Part {
    pub(super) const ALL: [Self; 5] =
        [Self::Mean, Self::Sum, Self::Weighted, Self::Count, Self::Passed];

    /// What stands before the point.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mean => "score",
            Self::Sum => "sum",
            Self::Weighted => "weighted",
            Self::Count => "count",
            Self::Passed => "passed",
        }
    }
}

/// Between two terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Or,
    And,
    Equal,
    Unequal,
    Less,
    AtMost,
    More,
    AtLeast,
    Plus,
    Minus,
    Times,
    By,
    Modulo,
    Power,
}

impl Operator {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Or => "or",
            Self::And => "and",
            Self::Equal => "==",
            Self::Unequal => "!=",
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::More => ">",
            Self::AtLeast => ">=",
            Self::Plus => "+",
            Self::Minus => "-",
            Self::Times => "*",
            Self::By => "/",
            Self::Modulo => "%",
            Self::Power => "^",
        }
    }

    pub(super) const fn compares(self) -> bool {
        self.level() == Self::Equal.level()
    }

    /// How closely it binds.
    pub(super) const fn level(self) -> u8 {
        match self {
            Self::Or => 1,
            Self::And => 2,
            Self::Equal
            | Self::Unequal
            | Self::Less
            | Self::AtMost
            | Self::More
            | Self::AtLeast => 4,
            Self::Plus | Self::Minus => 5,
            Self::Times | Self::By | Self::Modulo => 6,
            Self::Power => 8,
        }
    }
}

/// How closely `? :` binds, and how closely `not` and a sign do.
const CHOICE_LEVEL: u8 = 0;
const SIGN_LEVEL: u8 = 7;

named_enum! {
    /// What can be called in an expression.
    pub enum Function ("a function") {
        /// Without its sign.
        Abs = "abs",
        /// The third root.
        Cbrt = "cbrt",
        /// The next whole number above.
        Ceil = "ceil",
        /// The third power.
        Cube = "cube",
        /// A power of e.
        Exp = "exp",
        /// The next whole number below.
        Floor = "floor",
        /// The root of the sum of squares.
        Hypot = "hypot",
        /// The logarithm; of a base if there is a second argument.
        Log = "log",
        /// The logarithm of base 10.
        Log10 = "log10",
        /// The logarithm of base 2.
        Log2 = "log2",
        /// The greatest.
        Max = "max",
        /// The mean.
        Mean = "mean",
        /// The one in the middle.
        Median = "median",
        /// The least.
        Min = "min",
        /// What a division leaves; its sign is that of the divisor.
        Mod = "mod",
        /// A power.
        Pow = "pow",
        /// The product.
        Prod = "prod",
        /// The nearest number with so many decimals as the second argument says, or none.
        Round = "round",
        /// -1, 0 or 1.
        Sign = "sign",
        /// The root.
        Sqrt = "sqrt",
        /// The second power.
        Square = "square",
        /// The sample deviation.
        Std = "std",
        /// The sum.
        Sum = "sum",
        /// The sample variance.
        Variance = "variance",
    }
}

impl Function {
    /// How many arguments it takes.
    pub(super) const fn arity(self) -> (usize, usize) {
        const MANY: usize = usize::MAX;
        match self {
            Self::Abs
            | Self::Cbrt
            | Self::Ceil
            | Self::Cube
            | Self::Exp
            | Self::Floor
            | Self::Log10
            | Self::Log2
            | Self::Sign
            | Self::Sqrt
            | Self::Square => (1, 1),
            Self::Log | Self::Round => (1, 2),
            Self::Mod | Self::Pow => (2, 2),
            Self::Hypot
            | Self::Max
            | Self::Mean
            | Self::Median
            | Self::Min
            | Self::Prod
            | Self::Std
            | Self::Sum
            | Self::Variance => (1, MANY),
        }
    }
}

impl Expression {
    /// What it consists of.
    pub const fn term(&self) -> &Term {
        &self.0
    }

    /// All that it names, in the order of its text.
    pub fn named(&self) -> Vec<&Named> {
        let mut found = Vec::new();
        collect(&self.0, &mut found);
        found
    }
}

fn collect<'a>(term: &'a Term, found: &mut Vec<&'a Named>) {
    match term {
        Term::Number(_) => {}
        Term::Named(named) => found.push(named),
        Term::Minus(inner) | Term::Not(inner) => collect(inner, found),
        Term::Binary(_, left, right) => {
            collect(left, found);
            collect(right, found);
        }
        Term::Choice(parts) => parts.iter().for_each(|it| collect(it, found)),
        Term::Call(_, arguments) => arguments.iter().for_each(|it| collect(it, found)),
    }
}

impl FromStr for Expression {
    type Err = ExpressionError;

    fn from_str(text: &str) -> Result<Self, ExpressionError> {
        parse::parse(text, parse::LONGEST, &parse::own_name)
    }
}

impl TryFrom<String> for Expression {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let read = parse::parse(&text, parse::LONGEST_WRITTEN, &parse::own_name);
        read.map_err(|error| error.to_string())
    }
}

impl From<Expression> for String {
    fn from(expression: Expression) -> Self {
        expression.to_string()
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(&self.0, CHOICE_LEVEL, f)
    }
}

/// Writes a term where nothing may stand bare that binds less closely.
fn write(term: &Term, least: u8, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let level = match term {
        Term::Number(value) if value.is_sign_negative() => SIGN_LEVEL,
        Term::Number(_) | Term::Named(_) | Term::Call(..) => u8::MAX,
        Term::Minus(_) | Term::Not(_) => SIGN_LEVEL,
        Term::Binary(operator, ..) => operator.level(),
        Term::Choice(_) => CHOICE_LEVEL,
    };
    if level < least {
        f.write_str("(")?;
        write(term, CHOICE_LEVEL, f)?;
        return f.write_str(")");
    }
    match term {
        Term::Number(value) => write_number(*value, f),
        Term::Named(named) => write!(f, "{named}"),
        Term::Minus(inner) => {
            // Brackets would be a level more each, and what was just not too deep could not be read back.
            f.write_str("-")?;
            write(inner, SIGN_LEVEL, f)
        }
        Term::Not(inner) => {
            f.write_str("not ")?;
            write(inner, SIGN_LEVEL, f)
        }
        Term::Binary(Operator::Power, left, right) => {
            write(left, Operator::Power.level() + 1, f)?;
            f.write_str(" ^ ")?;
            write(right, SIGN_LEVEL, f)
        }
        Term::Binary(operator, left, right) => {
            // Comparisons do not follow each other.
            let of_left = operator.level() + u8::from(operator.compares());
            write(left, of_left, f)?;
            write!(f, " {} ", operator.as_str())?;
            write(right, operator.level() + 1, f)
        }
        Term::Choice(parts) => {
            let [condition, then, other] = &**parts;
            write(condition, CHOICE_LEVEL + 1, f)?;
            f.write_str(" ? ")?;
            write(then, CHOICE_LEVEL, f)?;
            f.write_str(" : ")?;
            write(other, CHOICE_LEVEL, f)
        }
        Term::Call(function, arguments) => {
            write!(f, "{function}(")?;
            for (at, argument) in arguments.iter().enumerate() {
                if at > 0 {
                    f.write_str(", ")?;
                }
                write(argument, CHOICE_LEVEL, f)?;
            }
            f.write_str(")")
        }
    }
}

/// A number in the shorter of its two forms: some have three hundred digits.
fn write_number(value: f64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match value.abs() {
        0.0 | 1e-5..1e16 => write!(f, "{value}"),
        _ => write!(f, "{value:e}"),
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (owner, name) = match self {
            Self::Score(part, name) => (part.as_str(), name),
            Self::Derived(name) => (parse::DERIVED, name),
            Self::Metric(metric) => return write!(f, "{metric}"),
            Self::Results => return f.write_str(parse::RESULTS),
        };
        match parse::is_bare(name) {
            true => write!(f, "{owner}.{name}"),
            false => write!(f, "{owner}.\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\"")),
        }
    }
}
