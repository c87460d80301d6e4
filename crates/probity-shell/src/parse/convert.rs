//! From the parser's tree to ours.

mod ansi;
mod parts;

use std::cell::Cell;

use shuck_ast::{self as ast, Span as AstSpan};

use super::{Depth, ParseError};
use crate::tree::{
    AndOr, AndOrOp, Arithmetic, ArithmeticFor, Arm, ArmEnd, Array, Assignment, Case, Command,
    Condition, For, Foreign, Function, Heredoc, If, Part, Quoting, Redirect, RedirectOp, Simple,
    Span, Stage, Stmt, Text, Time, While, Word,
};

type Result<T> = std::result::Result<T, ParseError>;

pub(super) fn plain_span(span: AstSpan) -> Span {
    Span { start: span.start.offset(), end: span.end.offset() }
}

/// Where the spans of a converted text lie in the text the caller knows.
#[derive(Debug, Clone, Copy)]
pub(super) enum Base {
    /// Shifted: the text is a piece of the caller's.
    Offset(usize),
    /// The text was rewritten on the way, so that only the whole has a place.
    Within(Span),
}

impl Base {
    /// The base for a rewriting of the text.
    pub(super) fn within(self, length: usize) -> Self {
        match self {
            Self::Offset(start) => Self::Within(Span { start, end: start + length }),
            Self::Within(whole) => Self::Within(whole),
        }
    }
}

pub(super) struct Converter<'s> {
    source: &'s str,
    depth: Depth,
    base: Base,
    /// Where a word stands that the parser misread, and would read with `""` before it.
    misread: Cell<Option<usize>>,
}

impl<'s> Converter<'s> {
    pub(super) fn new(source: &'s str, depth: Depth, base: Base) -> Self {
        Converter { source, depth, base, misread: Cell::new(None) }
    }

    pub(super) fn misread(&self) -> Option<usize> {
        self.misread.get()
    }

    fn span(&self, span: AstSpan) -> Span {
        self.place(plain_span(span))
    }

    fn place(&self, span: Span) -> Span {
        // The parser can be off by one at the end of a text.
        let end = self.source.floor_char_boundary(span.end);
        let span = Span { start: self.source.floor_char_boundary(span.start.min(end)), end };
        match self.base {
            Base::Offset(shift) => Span { start: span.start + shift, end: span.end + shift },
            Base::Within(whole) => whole,
        }
    }

    fn slice(&self, span: AstSpan) -> &'s str {
        plain_span(span).of(self.source)
    }

    pub(super) fn statements(&self, body: &ast::StmtSeq) -> Result<Vec<Stmt>> {
        body.stmts.iter().map(|it| self.statement(it)).collect()
    }

    fn statement(&self, stmt: &ast::Stmt) -> Result<Stmt> {
        Ok(Stmt {
            command: self.command(&stmt.command)?,
            negated: stmt.negated,
            redirects: self.redirects(&stmt.redirects)?,
            background: matches!(stmt.terminator, Some(ast::StmtTerminator::Background(_))),
            span: self.trimmed(stmt.span),
        })
    }

    /// The parser counts the blank before an operator as part of a command.
    fn trimmed(&self, span: AstSpan) -> Span {
        let mut plain = plain_span(span);
        plain.end = plain.start
            + plain.of(self.source).trim_end_matches([' ', '\t', '\n', ';', '|', '&']).len();
        self.place(plain)
    }

    fn command(&self, command: &ast::Command) -> Result<Command> {
        match command {
            ast::Command::Simple(it) => Ok(Command::Simple(self.simple(it)?)),
            ast::Command::Builtin(it) => Ok(Command::Simple(self.builtin(it)?)),
            ast::Command::Decl(it) => Ok(Command::Simple(self.declaration(it)?)),
            ast::Command::Binary(it) => self.binary(it),
            ast::Command::Compound(it) => self.compound(it),
            ast::Command::Function(it) => self.function(it),
            ast::Command::AnonymousFunction(it) => Ok(Command::Foreign(Box::new(Foreign {
                what: "an anonymous function",
                bodies: vec![vec![self.statement(&it.body)?]],
                words: self.words(&it.args)?,
            }))),
        }
    }

    fn simple(&self, simple: &ast::SimpleCommand) -> Result<Simple> {
        let assignments = self.assignments(&simple.assignments)?;
        // Assignments alone come with an empty word that stands nowhere.
        let nameless = simple.name.span.start.offset() == simple.name.span.end.offset();
        let name = (!nameless).then_some(&simple.name);
        let words = self.joined(name.into_iter().chain(&simple.args))?;
        Ok(Simple { assignments, words, span: self.trimmed(simple.span) })
    }

    fn builtin(&self, builtin: &ast::BuiltinCommand) -> Result<Simple> {
        let (name, first, rest, assignments, span) = match builtin {
            ast::BuiltinCommand::Break(it) => {
                ("break", &it.depth, &it.extra_args, &it.assignments, it.span)
            }
            ast::BuiltinCommand::Continue(it) => {
                ("continue", &it.depth, &it.extra_args, &it.assignments, it.span)
            }
            ast::BuiltinCommand::Return(it) => {
                ("return", &it.code, &it.extra_args, &it.assignments, it.span)
            }
            ast::BuiltinCommand::Exit(it) => {
                ("exit", &it.code, &it.extra_args, &it.assignments, it.span)
            }
        };
        let start = self.slice(span).find(name).unwrap_or_default() + span.start.offset();
        let mut words = vec![self.keyword(name, Span { start, end: start + name.len() })];
        for word in first.iter().chain(rest) {
            words.push(self.word(word)?);
        }
        Ok(Simple { assignments: self.assignments(assignments)?, words, span: self.trimmed(span) })
    }

    fn declaration(&self, clause: &ast::DeclClause) -> Result<Simple> {
        let mut words =
            vec![self.keyword(clause.variant.as_str(), plain_span(clause.variant_span))];
        for operand in &clause.operands {
            words.push(match operand {
                ast::DeclOperand::Flag(word) | ast::DeclOperand::Dynamic(word) => {
                    self.word(word)?
                }
                ast::DeclOperand::Name(it) => {
                    self.keyword(self.slice(it.span), plain_span(it.span))
                }
                ast::DeclOperand::Assignment(it) => self.assignment_word(it)?,
            });
        }
        Ok(Simple {
            assignments: self.assignments(&clause.assignments)?,
            words,
            span: self.trimmed(clause.span),
        })
    }

    fn assignment_word(&self, assignment: &ast::Assignment) -> Result<Word> {
        let Assignment { name, subscript, append, value, span } = self.assignment(assignment)?;
        let mut text = name;
        if let Some(subscript) = subscript {
            text.push('[');
            text.push_str(&subscript);
            text.push(']');
        }
        text.push_str(if append { "+=" } else { "=" });
        let mut parts = vec![Part::Text { text, quoting: Quoting::None, span }];
        parts.extend(value.parts);
        Ok(Word { parts, braces: Vec::new(), span })
    }

    fn keyword(&self, text: &str, span: Span) -> Word {
        let span = self.place(span);
        Word {
            parts: vec![Part::Text { text: Text::new(text), quoting: Quoting::None, span }],
            braces: Vec::new(),
            span,
        }
    }

    fn binary(&self, binary: &ast::BinaryCommand) -> Result<Command> {
        match binary.op {
            ast::BinaryOp::Pipe | ast::BinaryOp::PipeAll => self.pipeline(binary),
            ast::BinaryOp::And | ast::BinaryOp::Or => self.and_or(binary),
        }
    }

    fn pipeline(&self, binary: &ast::BinaryCommand) -> Result<Command> {
        let is_pipe = |op| matches!(op, ast::BinaryOp::Pipe | ast::BinaryOp::PipeAll);
        let (first, rest) = flatten(binary, is_pipe);
        let mut stages = vec![Stage { stmt: self.statement(first)?, with_stderr: false }];
        for (op, stmt) in rest {
            stages.push(Stage {
                stmt: self.statement(stmt)?,
                with_stderr: op == ast::BinaryOp::PipeAll,
            });
        }
        Ok(Command::Pipeline(stages))
    }

    fn and_or(&self, binary: &ast::BinaryCommand) -> Result<Command> {
        let is_list = |op| matches!(op, ast::BinaryOp::And | ast::BinaryOp::Or);
        let (first, rest) = flatten(binary, is_list);
        let first = self.statement(first)?;
        let mut entries = Vec::with_capacity(rest.len());
        for (op, stmt) in rest {
            let op = if op == ast::BinaryOp::And { AndOrOp::And } else { AndOrOp::Or };
            entries.push((op, self.statement(stmt)?));
        }
        Ok(Command::AndOr(Box::new(AndOr { first, rest: entries })))
    }

    fn compound(&self, compound: &ast::CompoundCommand) -> Result<Command> {
        use ast::CompoundCommand as C;
        Ok(match compound {
            C::If(it) => self.if_command(it)?,
            C::For(it) => self.for_command(it)?,
            C::Select(it) => Command::For(Box::new(For {
                select: true,
                name: Text::new(it.variable.as_str()),
                words: Some(self.words(&it.words)?),
                body: self.statements(&it.body)?,
                braces: false,
                head: self.span(it.variable_span),
            })),
            C::ArithmeticFor(it) => self.arithmetic_for(it)?,
            C::While(it) => self.while_command(false, &it.condition, &it.body)?,
            C::Until(it) => self.while_command(true, &it.condition, &it.body)?,
            C::Case(it) => self.case_command(it)?,
            C::Subshell(it) => Command::Subshell(self.statements(it)?),
            C::BraceGroup(it) => Command::Group(self.statements(it)?),
            C::Arithmetic(it) => {
                let span =
                    AstSpan::from_positions(it.left_paren_span.start, it.right_paren_span.end);
                Command::Arithmetic(Box::new(self.arithmetic(
                    it.expr_span,
                    &[it.expr_ast.as_ref()],
                    span,
                )?))
            }
            C::Time(it) => Command::Time(Box::new(Time {
                posix_format: it.posix_format,
                stmt: it.command.as_deref().map(|stmt| self.statement(stmt)).transpose()?,
                span: self.trimmed(it.span),
            })),
            C::Conditional(it) => {
                let mut words = Vec::new();
                self.condition_words(&it.expression, &mut words)?;
                Command::Condition(Box::new(Condition { words, span: self.span(it.span) }))
            }
            C::Coproc(it) => Command::Coproc(Box::new(self.statement(&it.body)?)),
            C::Repeat(it) => {
                self.foreign("`repeat`", &[&it.body], std::slice::from_ref(&it.count))?
            }
            C::Foreach(it) => self.foreign("`foreach`", &[&it.body], &it.words)?,
            C::Always(it) => self.foreign("`always`", &[&it.body, &it.always_body], &[])?,
        })
    }

    fn foreign(
        &self,
        what: &'static str,
        bodies: &[&ast::StmtSeq],
        words: &[ast::Word],
    ) -> Result<Command> {
        let bodies = bodies.iter().map(|it| self.statements(it)).collect::<Result<_>>()?;
        Ok(Command::Foreign(Box::new(Foreign { what, bodies, words: self.words(words)? })))
    }

    fn if_command(&self, it: &ast::IfCommand) -> Result<Command> {
        let mut branches =
            vec![(self.statements(&it.condition)?, self.statements(&it.then_branch)?)];
        for (condition, body) in &it.elif_branches {
            branches.push((self.statements(condition)?, self.statements(body)?));
        }
        let otherwise = it.else_branch.as_ref().map(|body| self.statements(body)).transpose()?;
        Ok(Command::If(Box::new(If { branches, otherwise })))
    }

    fn for_command(&self, it: &ast::ForCommand) -> Result<Command> {
        let Some(target) = it.targets.first() else {
            return self.foreign(
                "a loop without a variable",
                &[&it.body],
                it.words.as_deref().unwrap_or_default(),
            );
        };
        let braces =
            matches!(it.syntax, ast::ForSyntax::InBrace { .. } | ast::ForSyntax::ParenBrace { .. });
        let head_end = it.words.iter().flatten().last().map_or(target.span, |word| word.span);
        Ok(Command::For(Box::new(For {
            select: false,
            name: target
                .name
                .as_ref()
                .map_or_else(|| Text::new(self.slice(target.span)), |it| Text::new(it.as_str())),
            words: it.words.as_deref().map(|words| self.words(words)).transpose()?,
            body: self.statements(&it.body)?,
            braces,
            head: self.span(AstSpan::from_positions(it.span.start, head_end.end)),
        })))
    }

    fn arithmetic_for(&self, it: &ast::ArithmeticForCommand) -> Result<Command> {
        let span = AstSpan::from_positions(it.left_paren_span.start, it.right_paren_span.end);
        let inner = AstSpan::from_positions(it.left_paren_span.end, it.right_paren_span.start);
        let clauses = [it.init_ast.as_ref(), it.condition_ast.as_ref(), it.step_ast.as_ref()];
        Ok(Command::ArithmeticFor(Box::new(ArithmeticFor {
            head: self.arithmetic(Some(inner), &clauses, span)?,
            body: self.statements(&it.body)?,
        })))
    }

    fn while_command(
        &self,
        until: bool,
        condition: &ast::StmtSeq,
        body: &ast::StmtSeq,
    ) -> Result<Command> {
        let (condition, body) = (self.statements(condition)?, self.statements(body)?);
        Ok(Command::While(Box::new(While { until, condition, body })))
    }

    fn case_command(&self, it: &ast::CaseCommand) -> Result<Command> {
        let mut arms = Vec::with_capacity(it.cases.len());
        for item in &it.cases {
            arms.push(Arm {
                patterns: item
                    .patterns
                    .iter()
                    .map(|pattern| self.reparsed(pattern.span))
                    .collect::<Result<_>>()?,
                body: self.statements(&item.body)?,
                end: match item.terminator {
                    ast::CaseTerminator::Break => ArmEnd::Break,
                    ast::CaseTerminator::FallThrough => ArmEnd::FallThrough,
                    ast::CaseTerminator::Continue | ast::CaseTerminator::ContinueMatching => {
                        ArmEnd::Continue
                    }
                },
                end_span: self.span(item.terminator_span.unwrap_or(it.esac_span)),
            });
        }
        Ok(Command::Case(Box::new(Case { word: self.word(&it.word)?, arms })))
    }

    fn condition_words(
        &self,
        expression: &ast::ConditionalExpr,
        words: &mut Vec<Word>,
    ) -> Result<()> {
        match expression {
            ast::ConditionalExpr::Binary(it) => {
                self.condition_words(&it.left, words)?;
                self.condition_words(&it.right, words)?;
            }
            ast::ConditionalExpr::Unary(it) => self.condition_words(&it.expr, words)?,
            ast::ConditionalExpr::Parenthesized(it) => self.condition_words(&it.expr, words)?,
            ast::ConditionalExpr::Word(it) | ast::ConditionalExpr::Regex(it) => {
                words.push(self.word(it)?);
            }
            ast::ConditionalExpr::Pattern(it) => words.push(self.reparsed(it.span)?),
            ast::ConditionalExpr::VarRef(it) => words.push(self.reparsed(it.span)?),
        }
        Ok(())
    }

    fn function(&self, it: &ast::FunctionDef) -> Result<Command> {
        let name = it.header.entries.first().map_or(it.span, |entry| entry.word.span);
        Ok(Command::Function(Box::new(Function {
            name: Text::new(self.slice(name)),
            name_span: self.span(name),
            keyword: it.header.function_keyword_span.is_some(),
            body: self.statement(&it.body)?,
        })))
    }

    fn assignments(&self, assignments: &[ast::Assignment]) -> Result<Vec<Assignment>> {
        assignments.iter().map(|it| self.assignment(it)).collect()
    }

    fn assignment(&self, it: &ast::Assignment) -> Result<Assignment> {
        let value = match &it.value {
            ast::AssignmentValue::Scalar(word) => self.word(word)?,
            ast::AssignmentValue::Compound(array) => self.array(array)?,
        };
        Ok(Assignment {
            name: Text::new(it.target.name.as_str()),
            subscript: self.subscript(&it.target),
            append: it.append,
            value,
            span: self.span(it.span),
        })
    }

    fn subscript(&self, reference: &ast::VarRef) -> Option<Text> {
        reference.subscript.as_deref().map(|it| Text::new(it.text.slice(self.source)))
    }

    fn array(&self, array: &ast::ArrayExpr) -> Result<Word> {
        let mut elements = Vec::with_capacity(array.elements.len());
        for element in &array.elements {
            elements.push(match element {
                ast::ArrayElem::Sequential(value) => (None, self.word(&value.word)?),
                ast::ArrayElem::Keyed { key, value }
                | ast::ArrayElem::KeyedAppend { key, value } => {
                    (Some(Text::new(key.text.slice(self.source))), self.word(&value.word)?)
                }
            });
        }
        let span = self.span(array.span);
        Ok(Word {
            parts: vec![Part::Array(Box::new(Array { elements, span }))],
            braces: Vec::new(),
            span,
        })
    }

    fn redirects(&self, redirects: &[ast::Redirect]) -> Result<Vec<Redirect>> {
        let mut converted = Vec::with_capacity(redirects.len());
        let mut rest = redirects.iter();
        while let Some(redirect) = rest.next() {
            // `&>>` comes as `>>` and a `2>&1` that nobody wrote.
            let both = self.slice(redirect.span).starts_with("&>>");
            if both {
                rest.next();
            }
            converted.push(self.redirect(redirect, both)?);
        }
        Ok(converted)
    }

    fn redirect(&self, redirect: &ast::Redirect, append_both: bool) -> Result<Redirect> {
        use ast::RedirectKind as K;
        let op = match redirect.kind {
            K::Append if append_both => RedirectOp::AppendBoth,
            K::Append => RedirectOp::Append,
            K::Output => RedirectOp::Output,
            K::Clobber => RedirectOp::Clobber,
            K::Input => RedirectOp::Input,
            K::ReadWrite => RedirectOp::ReadWrite,
            K::HereDoc | K::HereDocStrip => RedirectOp::HereDoc,
            K::HereString => RedirectOp::HereString,
            K::DupOutput => RedirectOp::DupOutput,
            K::DupInput => RedirectOp::DupInput,
            K::OutputBoth => RedirectOp::OutputBoth,
        };
        let span = self.span(redirect.span);
        let (mut target, heredoc) = match &redirect.target {
            ast::RedirectTarget::Word(word) => (self.word(word)?, None),
            ast::RedirectTarget::Heredoc(it) => {
                let body = self.heredoc_body(&it.body)?;
                let literal = !it.delimiter.expands_body;
                (self.word(&it.delimiter.raw)?, Some(Heredoc { literal, body }))
            }
        };
        if target.span.start == target.span.end {
            target.span = span;
        }
        // The parser fills in the descriptor of `>&2`; keep what was written.
        let written = self.slice(redirect.span).starts_with(|it: char| it.is_ascii_digit());
        let fd = redirect.fd.filter(|_| written).and_then(|fd| u32::try_from(fd).ok());
        let fd_name = redirect.fd_var.as_ref().map(|it| Text::new(it.as_str()));
        Ok(Redirect { fd, fd_name, op, target, heredoc, span })
    }

    fn arithmetic(
        &self,
        inner: Option<AstSpan>,
        clauses: &[Option<&ast::ArithmeticExprNode>],
        outer: AstSpan,
    ) -> Result<Arithmetic> {
        let uses = parts::arithmetic_uses(clauses);
        let (text, word) = match inner {
            Some(inner) => (Text::new(self.slice(inner).trim()), self.reparsed(inner)?),
            None => (Text::default(), Word::default()),
        };
        Ok(Arithmetic { text, word, uses, span: self.span(outer) })
    }

    fn words(&self, words: &[ast::Word]) -> Result<Vec<Word>> {
        self.joined(words.iter())
    }

    /// The words, unless the parser misread one: it looks for no quotes and escapes in a word that begins with a brace,
    /// so that `{a,b}'c'` becomes two words and `{}\;` ends too early.
    fn joined<'a>(&self, words: impl Iterator<Item = &'a ast::Word>) -> Result<Vec<Word>> {
        let mut converted = Vec::with_capacity(words.size_hint().0);
        let mut words = words.peekable();
        while let Some(word) = words.next() {
            let text = self.slice(word.span);
            let mut touched =
                || words.peek().is_some_and(|it| it.span.start.offset() == word.span.end.offset());
            if text.starts_with('{') && (text.contains(['\\', '\'', '"', '`', '$']) || touched()) {
                self.misread.set(Some(word.span.start.offset()));
                let message = "this word could not be read".to_owned();
                return Err(ParseError::Syntax { message, span: self.span(word.span) });
            }
            converted.push(self.word(word)?);
        }
        Ok(converted)
    }
}

/// The operands of a chain of one kind of operator; the parser nests them to the left.
fn flatten(
    binary: &ast::BinaryCommand,
    same: impl Fn(ast::BinaryOp) -> bool,
) -> (&ast::Stmt, Vec<(ast::BinaryOp, &ast::Stmt)>) {
    let mut rest = vec![(binary.op, &*binary.right)];
    let mut first = &*binary.left;
    while let ast::Command::Binary(inner) = &first.command {
        if !same(inner.op) || first.negated || !first.redirects.is_empty() {
            break;
        }
        rest.push((inner.op, &*inner.right));
        first = &*inner.left;
    }
    rest.reverse();
    (first, rest)
}
