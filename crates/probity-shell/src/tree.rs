//! Our own tree of a shell text: what the judgements read, whatever parser built it.
//!
//! Invariants: every [`Span`] is a byte range of the text that was parsed; text inside a [`Part::Text`] has had its
//! quotes and backslashes removed, and says by its [`Quoting`] how it was protected.

use compact_str::CompactString;
use serde::{Serialize, Serializer};

/// A short piece of text; most words of a command fit without an allocation.
pub(crate) type Text = CompactString;

/// A byte range of the parsed text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Span {
    /// The part of `source` that this span covers.
    pub fn of<'t>(&self, source: &'t str) -> &'t str {
        source.get(self.start..self.end).unwrap_or_default()
    }

    /// The smallest span that covers both.
    #[must_use]
    pub fn to(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// A pair: the first byte and one past the last.
impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        [self.start, self.end].serialize(serializer)
    }
}

/// One command with what surrounds it: negation, redirections, `&`.
#[derive(Debug, Clone)]
pub(crate) struct Stmt {
    /// The command itself.
    pub command: Command,
    /// Whether `!` stands before it.
    pub negated: bool,
    /// Redirections of the whole command, in order.
    pub redirects: Vec<Redirect>,
    /// Whether it ends in `&`.
    pub background: bool,
    /// Where it stands.
    pub span: Span,
}

/// A command of any kind.
#[derive(Debug, Clone)]
pub(crate) enum Command {
    /// Assignments and words, `a=1 ls -l`.
    Simple(Simple),
    /// `a | b`; always two stages or more.
    Pipeline(Vec<Stage>),
    /// `a && b || c`; always two entries or more.
    AndOr(Box<AndOr>),
    /// `{ ...; }`
    Group(Vec<Stmt>),
    /// `( ... )`
    Subshell(Vec<Stmt>),
    /// `if ... fi`
    If(Box<If>),
    /// `for x in ...; do ...; done`, also bash's `select`.
    For(Box<For>),
    /// `for ((a; b; c))`
    ArithmeticFor(Box<ArithmeticFor>),
    /// `while` and `until`.
    While(Box<While>),
    /// `case ... esac`
    Case(Box<Case>),
    /// `[[ ... ]]`
    Condition(Box<Condition>),
    /// `(( ... ))`
    Arithmetic(Box<Arithmetic>),
    /// `name() ...`
    Function(Box<Function>),
    /// `time ...`
    Time(Box<Time>),
    /// `coproc ...`
    Coproc(Box<Stmt>),
    /// Something only zsh or mksh has; its statements can still be walked.
    Foreign(Box<Foreign>),
}

/// A simple command.
#[derive(Debug, Clone, Default)]
pub(crate) struct Simple {
    /// `NAME=value` before the command word.
    pub assignments: Vec<Assignment>,
    /// The command word and its arguments; empty for assignments alone.
    pub words: Vec<Word>,
    /// From the first assignment or word to the last.
    pub span: Span,
}

/// One stage of a pipeline.
#[derive(Debug, Clone)]
pub(crate) struct Stage {
    /// What runs.
    pub stmt: Stmt,
    /// Joined to the stage before it by `|&`.
    pub with_stderr: bool,
}

/// `first && second || third`, evaluated from the left.
#[derive(Debug, Clone)]
pub(crate) struct AndOr {
    /// What runs in any case.
    pub first: Stmt,
    /// What runs depending on what came before.
    pub rest: Vec<(AndOrOp, Stmt)>,
}

/// How an entry of an [`AndOr`] depends on what came before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AndOrOp {
    /// `&&`
    And,
    /// `||`
    Or,
}

/// `if`, its `elif`s and `else`.
#[derive(Debug, Clone)]
pub(crate) struct If {
    /// Condition and body of `if` and of each `elif`.
    pub branches: Vec<(Vec<Stmt>, Vec<Stmt>)>,
    /// Body of `else`.
    pub otherwise: Option<Vec<Stmt>>,
}

/// A loop over words.
#[derive(Debug, Clone)]
pub(crate) struct For {
    /// `select` instead of `for`.
    pub select: bool,
    /// The variable.
    pub name: Text,
    /// The words; `None` without `in`, which means `"$@"`.
    pub words: Option<Vec<Word>>,
    /// What runs for each.
    pub body: Vec<Stmt>,
    /// A body in braces instead of `do ... done`.
    pub braces: bool,
    /// From the keyword up to the body.
    pub head: Span,
}

/// A loop in the manner of C.
#[derive(Debug, Clone)]
pub(crate) struct ArithmeticFor {
    /// Start, condition and step.
    pub head: Arithmetic,
    /// What runs each time.
    pub body: Vec<Stmt>,
}

/// `while` or `until`.
#[derive(Debug, Clone)]
pub(crate) struct While {
    /// `until` instead of `while`.
    pub until: bool,
    /// The condition.
    pub condition: Vec<Stmt>,
    /// What runs each time.
    pub body: Vec<Stmt>,
}

/// `case WORD in ... esac`
#[derive(Debug, Clone)]
pub(crate) struct Case {
    /// What is compared.
    pub word: Word,
    /// The arms, in order.
    pub arms: Vec<Arm>,
}

/// One arm of a `case`.
#[derive(Debug, Clone)]
pub(crate) struct Arm {
    /// The patterns, as words whose glob characters are active.
    pub patterns: Vec<Word>,
    /// What runs.
    pub body: Vec<Stmt>,
    /// How it ends.
    pub end: ArmEnd,
    /// Where the terminator stands.
    pub end_span: Span,
}

/// How an arm of a `case` ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ArmEnd {
    /// `;;`, or nothing before `esac`.
    Break,
    /// `;&`
    FallThrough,
    /// `;;&` and what other shells have.
    Continue,
}

/// `[[ ... ]]`: its words, and its text for comparison.
#[derive(Debug, Clone)]
pub(crate) struct Condition {
    /// The words in it, in order, operators left out.
    pub words: Vec<Word>,
    /// Where it stands, with the brackets.
    pub span: Span,
}

/// An arithmetic expression.
#[derive(Debug, Clone, Default)]
pub(crate) struct Arithmetic {
    /// The expression as written.
    pub text: Text,
    /// Expansions inside it.
    pub word: Word,
    /// What it uses beyond the plain operators.
    pub uses: ArithmeticUses,
    /// Where it stands, with its parentheses.
    pub span: Span,
}

/// Features of an arithmetic expression that not every shell has.
#[expect(clippy::struct_excessive_bools, reason = "each says whether one thing is used")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ArithmeticUses {
    /// `++` or `--`
    pub increment: bool,
    /// `**`
    pub power: bool,
    /// `a, b`
    pub comma: bool,
    /// `a[1]`
    pub index: bool,
    /// `16#ff`
    pub base: bool,
}

/// A function definition.
#[derive(Debug, Clone)]
pub(crate) struct Function {
    /// Its name as written.
    pub name: Text,
    /// Where the name stands.
    pub name_span: Span,
    /// Written with the keyword `function`.
    pub keyword: bool,
    /// What it does.
    pub body: Stmt,
}

/// `time`, with what it measures.
#[derive(Debug, Clone)]
pub(crate) struct Time {
    /// `-p` was given.
    pub posix_format: bool,
    /// What is measured.
    pub stmt: Option<Stmt>,
    /// Where the keyword stands.
    pub span: Span,
}

/// Syntax of another shell.
#[derive(Debug, Clone)]
pub(crate) struct Foreign {
    /// What it is called.
    pub what: &'static str,
    /// The statements in it.
    pub bodies: Vec<Vec<Stmt>>,
    /// The words in it.
    pub words: Vec<Word>,
}

/// `NAME=value`, `NAME+=value`, `NAME[i]=value`, `NAME=(...)`.
#[derive(Debug, Clone)]
pub(crate) struct Assignment {
    /// The variable.
    pub name: Text,
    /// What stands in brackets after the name.
    pub subscript: Option<Text>,
    /// `+=`
    pub append: bool,
    /// The value; an array is a word with one [`Part::Array`].
    pub value: Word,
    /// Where it stands.
    pub span: Span,
}

/// A redirection.
#[derive(Debug, Clone)]
pub(crate) struct Redirect {
    /// The descriptor before the operator, if one is written.
    pub fd: Option<u32>,
    /// `{name}` before the operator.
    pub fd_name: Option<Text>,
    /// The operator.
    pub op: RedirectOp,
    /// The word after it; for a here-document its delimiter.
    pub target: Word,
    /// The body of a here-document.
    pub heredoc: Option<Heredoc>,
    /// Where operator and word stand.
    pub span: Span,
}

/// A redirection operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RedirectOp {
    /// `>`
    Output,
    /// `>|`
    Clobber,
    /// `>>`
    Append,
    /// `<`
    Input,
    /// `<>`
    ReadWrite,
    /// `<<` and `<<-`
    HereDoc,
    /// `<<<`
    HereString,
    /// `>&`
    DupOutput,
    /// `<&`
    DupInput,
    /// `&>`
    OutputBoth,
    /// `&>>`
    AppendBoth,
}

/// The body of a here-document.
#[derive(Debug, Clone)]
pub(crate) struct Heredoc {
    /// Whether the delimiter was quoted, so that nothing in the body is expanded.
    pub literal: bool,
    /// The body, as one word in double quotes.
    pub body: Word,
}

/// A word: what becomes none, one or several arguments.
#[derive(Debug, Clone, Default)]
pub(crate) struct Word {
    /// Its parts, in order.
    pub parts: Vec<Part>,
    /// Where brace expansions stand.
    pub braces: Vec<Span>,
    /// Where it stands.
    pub span: Span,
}

/// How a piece of text was protected from expansion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quoting {
    /// Not at all: `*`, `~` and `{a,b}` are active.
    None,
    /// By a backslash.
    Backslash,
    /// `'...'`
    Single,
    /// `"..."`
    Double,
    /// `$'...'`
    Ansi,
    /// `$"..."`
    Locale,
}

/// A part of a word.
#[derive(Debug, Clone)]
pub(crate) enum Part {
    /// Text, quotes and backslashes removed.
    Text {
        /// The text.
        text: Text,
        /// How it was protected.
        quoting: Quoting,
        /// Where it stands, with its quotes.
        span: Span,
    },
    /// `$x`, `${x...}`
    Parameter(Box<Parameter>),
    /// `$(...)` or backquotes.
    Command(Box<Substitution>),
    /// `$((...))` or `$[...]`
    Arithmetic(Box<ArithmeticExpansion>),
    /// `<(...)` or `>(...)`
    Process(Box<Process>),
    /// `(...)` after `NAME=`
    Array(Box<Array>),
}

/// A parameter expansion.
#[derive(Debug, Clone)]
pub(crate) struct Parameter {
    /// The parameter's name, a digit, or one of `@*#?-$!`.
    pub name: Text,
    /// What stands in brackets after the name.
    pub subscript: Option<Text>,
    /// What is done with its value.
    pub op: ParameterOp,
    /// Words after the operator, with their expansions.
    pub operands: Vec<Word>,
    /// Inside double quotes.
    pub quoted: bool,
    /// Where it stands.
    pub span: Span,
}

/// What a parameter expansion does with the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParameterOp {
    /// `$x`
    Value,
    /// `${#x}`
    Length,
    /// `${x-w}`, with `:` if `true`
    Default(bool),
    /// `${x=w}`
    Assign(bool),
    /// `${x+w}`
    Alternative(bool),
    /// `${x?w}`
    Error(bool),
    /// `${x#w}`, longest if `true`
    RemovePrefix(bool),
    /// `${x%w}`
    RemoveSuffix(bool),
    /// `${x/a/b}` and `${x//a/b}`
    Replace,
    /// `${x:1:2}`
    Slice,
    /// `${!x}`
    Indirect,
    /// `${!x[@]}`
    Keys,
    /// `${!x@}` and `${!x*}`
    Names,
    /// `${x^^}`, `${x,,}`
    Case,
    /// `${x@Q}`
    Transform,
    /// What zsh has.
    Foreign,
}

/// A command substitution.
#[derive(Debug, Clone)]
pub(crate) struct Substitution {
    /// What runs.
    pub body: Vec<Stmt>,
    /// Inside double quotes.
    pub quoted: bool,
    /// Where it stands.
    pub span: Span,
}

/// An arithmetic expansion.
#[derive(Debug, Clone)]
pub(crate) struct ArithmeticExpansion {
    /// The expression.
    pub expression: Arithmetic,
    /// Written `$[...]`.
    pub legacy: bool,
}

/// A process substitution.
#[derive(Debug, Clone)]
pub(crate) struct Process {
    /// What runs.
    pub body: Vec<Stmt>,
    /// `>(...)`: the command reads what is written to it.
    pub output: bool,
    /// Where it stands.
    pub span: Span,
}

/// The value of an array assignment.
#[derive(Debug, Clone)]
pub(crate) struct Array {
    /// Keys, where given, and values.
    pub elements: Vec<(Option<Text>, Word)>,
    /// Where it stands.
    pub span: Span,
}

impl Word {
    /// The word's value if nothing in it is expanded: no parameter, no substitution, no glob, no brace, no tilde.
    pub(crate) fn literal(&self) -> Option<Text> {
        if !self.braces.is_empty() {
            return None;
        }
        let mut value = Text::default();
        for (at, part) in self.parts.iter().enumerate() {
            let Part::Text { text, quoting, .. } = part else { return None };
            if *quoting == Quoting::None {
                let tilde = at == 0 && text.starts_with('~');
                if tilde || text.contains(['*', '?']) || has_bracket(text) {
                    return None;
                }
            }
            value.push_str(text);
        }
        Some(value)
    }
}

/// Whether unquoted text holds a bracket expression; `[` alone is the command of that name.
pub(crate) fn has_bracket(text: &str) -> bool {
    // A closing bracket right after the opening one is a member of the set.
    let inside = text.split_once('[').map_or("", |(_, rest)| rest);
    inside.chars().skip(1).any(|it| it == ']')
}

#[cfg(test)]
mod tests {
    use super::has_bracket;

    #[test]
    fn a_bracket_alone_is_a_command() {
        for (text, is) in [
            ("[", false),
            ("[]", false),
            ("[]]", true),
            ("a[b]", true),
            ("[\u{5c1}", false),
            ("[é]", true),
        ] {
            assert_eq!(has_bracket(text), is, "{text}");
        }
    }
}
