//! Words and their parts.

use shuck_ast::{self as ast, Span as AstSpan};
use shuck_parser::parser::Parser;

use super::{Base, Converter, Result, ansi, plain_span};
use crate::{
    parse::{ParseError, parse_body, precheck},
    tree::{
        Arithmetic, ArithmeticExpansion, ArithmeticUses, Parameter, ParameterOp, Part, Process,
        Quoting, Span, Stmt, Substitution, Text, Word,
    },
};

/// Where a piece of a word stands: between double quotes or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Context {
    Bare,
    Quoted(Quoting),
}

impl Context {
    fn is_quoted(self) -> bool {
        self != Self::Bare
    }
}

impl Converter<'_> {
    pub(super) fn word(&self, word: &ast::Word) -> Result<Word> {
        let mut parts = Vec::with_capacity(word.parts.len());
        self.tiled(&word.parts, plain_span(word.span), Context::Bare, &mut parts)?;
        let braces = word
            .brace_syntax
            .iter()
            .filter(|it| it.quote_context == ast::BraceQuoteContext::Unquoted)
            .filter(|it| matches!(it.kind, ast::BraceSyntaxKind::Expansion(_)))
            .map(|it| self.span(it.span))
            .collect();
        Ok(Word { parts, braces, span: self.span(word.span) })
    }

    /// The parts in order. Literal text is taken from the source, in runs as long as possible: the parser drops an
    /// escaped dollar sign at the end of a quoted string and cuts an escaped backslash in two, and text that is lost
    /// would make two different words equal.
    fn tiled(
        &self,
        nodes: &[ast::WordPartNode],
        whole: Span,
        context: Context,
        parts: &mut Vec<Part>,
    ) -> Result<()> {
        if whole.start == whole.end {
            return nodes.iter().try_for_each(|node| self.part(node, context, parts));
        }
        let mut run = Span { start: whole.start, end: whole.start };
        for node in nodes {
            let span = plain_span(node.span);
            if span.start == span.end {
                continue;
            }
            self.check_gap(run, span.start, context)?;
            if matches!(node.kind, ast::WordPart::Literal(_)) {
                run.end = span.end;
                continue;
            }
            run.end = span.start;
            self.literal(run, context, parts);
            self.part(node, context, parts)?;
            run = Span { start: span.end, end: span.end };
        }
        self.check_gap(run, whole.end, context)?;
        run.end = whole.end;
        self.literal(run, context, parts);
        Ok(())
    }

    /// What the parser left out between the literal text before and an end must be plain text.
    fn check_gap(&self, before: Span, end: usize, context: Context) -> Result<()> {
        let span = Span { start: before.end, end };
        if span.start >= span.end {
            return Ok(());
        }
        let literal = before.of(self.source);
        let backslashes = literal.len() - literal.trim_end_matches('\\').len();
        // An odd one protects the first character of the gap.
        let start = span.start - backslashes % 2;
        match has_expansion(Span { start, end }.of(self.source), context) {
            true => {
                let message = "this expansion could not be read".to_owned();
                Err(ParseError::Syntax { message, span: self.place(span) })
            }
            false => Ok(()),
        }
    }

    /// A stretch of the text read again as one word. The parser keeps some operands as patterns or, deep inside, as
    /// plain text; reading them again finds every substitution in them.
    pub(super) fn reparsed(&self, span: AstSpan) -> Result<Word> {
        let text = self.slice(span);
        let place = self.span(span);
        if !text.contains(['$', '`', '\'', '"', '\\', '<', '>', '{']) {
            let text = Text::new(text);
            let parts = vec![Part::Text { text, quoting: Quoting::None, span: place }];
            return Ok(Word { parts, braces: Vec::new(), span: place });
        }
        let word = Parser::parse_word_string(text);
        let base = match self.base {
            Base::Offset(shift) => Base::Offset(shift + span.start.offset()),
            Base::Within(whole) => Base::Within(whole),
        };
        Converter::new(text, self.depth.deeper()?, base).word(&word)
    }

    fn part(
        &self,
        part: &ast::WordPartNode,
        context: Context,
        parts: &mut Vec<Part>,
    ) -> Result<()> {
        let span = part.span;
        match &part.kind {
            // Only words that stand nowhere, such as the `1` in what `&>` means, come here with literal text.
            ast::WordPart::Literal(text) => {
                self.push(parts, text.as_str(self.source, span), Quoting::None, span);
            }
            ast::WordPart::ZshQualifiedGlob(_) => {
                self.push(parts, self.slice(span), Quoting::None, span);
            }
            ast::WordPart::SingleQuoted { value, dollar } => {
                let raw = self.slice(span);
                match dollar {
                    true => {
                        let inside = raw
                            .strip_prefix("$'")
                            .and_then(|it| it.strip_suffix('\''))
                            .unwrap_or(raw);
                        self.push(parts, &ansi::unescape(inside), Quoting::Ansi, span);
                    }
                    false => self.push(parts, value.slice(self.source), Quoting::Single, span),
                }
            }
            ast::WordPart::DoubleQuoted { parts: inner, dollar } => {
                let quoting = if *dollar { Quoting::Locale } else { Quoting::Double };
                let opening = if *dollar { 2 } else { 1 };
                let whole = plain_span(span);
                let inside =
                    Span { start: whole.start + opening, end: whole.end.saturating_sub(1) };
                if inside.start >= inside.end {
                    self.push(parts, "", quoting, span);
                }
                self.tiled(inner, inside, Context::Quoted(quoting), parts)?;
            }
            ast::WordPart::CommandSubstitution { body, syntax } => {
                parts.push(Part::Command(Box::new(
                    self.substitution(body, *syntax, span, context)?,
                )));
            }
            ast::WordPart::ProcessSubstitution { body, is_input } => {
                let body = self.statements(body)?;
                parts.push(Part::Process(Box::new(Process {
                    body,
                    output: !is_input,
                    span: self.span(span),
                })));
            }
            ast::WordPart::ArithmeticExpansion { expression, expression_ast, syntax, .. } => {
                parts.push(self.arithmetic_expansion(
                    expression,
                    expression_ast.as_deref(),
                    *syntax,
                    span,
                )?);
            }
            ast::WordPart::Variable(_)
            | ast::WordPart::Parameter(_)
            | ast::WordPart::ParameterExpansion { .. }
            | ast::WordPart::Length(_)
            | ast::WordPart::ArrayLength(_)
            | ast::WordPart::ArrayAccess(_)
            | ast::WordPart::ArrayIndices(_)
            | ast::WordPart::Substring { .. }
            | ast::WordPart::ArraySlice { .. }
            | ast::WordPart::IndirectExpansion { .. }
            | ast::WordPart::PrefixMatch { .. }
            | ast::WordPart::Transformation { .. } => {
                if let Some(expansion) = self.word_expansion(&part.kind) {
                    parts.push(self.parameter(expansion, span, context)?);
                }
            }
        }
        Ok(())
    }

    /// The parameter expansion that a part of a word is.
    fn word_expansion(&self, part: &ast::WordPart) -> Option<Expansion> {
        Some(match part {
            ast::WordPart::Variable(name) => Expansion::of(name.as_str(), ParameterOp::Value),
            ast::WordPart::Parameter(it) => self.expansion(it),
            ast::WordPart::ParameterExpansion {
                reference,
                operator,
                operand,
                colon_variant,
                ..
            } => self.operation(reference, operator, operand.as_deref(), *colon_variant),
            ast::WordPart::Length(it) | ast::WordPart::ArrayLength(it) => {
                self.plain(it, ParameterOp::Length)
            }
            ast::WordPart::ArrayAccess(it) => self.plain(it, ParameterOp::Value),
            ast::WordPart::ArrayIndices(it) => self.plain(it, ParameterOp::Keys),
            ast::WordPart::Substring { reference, offset, length, .. }
            | ast::WordPart::ArraySlice { reference, offset, length, .. } => {
                let operands = std::iter::once(&**offset).chain(length.as_deref());
                self.plain(reference, ParameterOp::Slice).with(operands)
            }
            ast::WordPart::IndirectExpansion { reference, operand, .. } => {
                self.plain(reference, ParameterOp::Indirect).with(operand.as_deref())
            }
            ast::WordPart::PrefixMatch { prefix, .. } => {
                Expansion::of(prefix.as_str(), ParameterOp::Names)
            }
            ast::WordPart::Transformation { reference, .. } => {
                self.plain(reference, ParameterOp::Transform)
            }
            ast::WordPart::Literal(_)
            | ast::WordPart::ZshQualifiedGlob(_)
            | ast::WordPart::SingleQuoted { .. }
            | ast::WordPart::DoubleQuoted { .. }
            | ast::WordPart::CommandSubstitution { .. }
            | ast::WordPart::ArithmeticExpansion { .. }
            | ast::WordPart::ProcessSubstitution { .. } => return None,
        })
    }

    fn push(&self, parts: &mut Vec<Part>, text: &str, quoting: Quoting, span: AstSpan) {
        parts.push(Part::Text { text: Text::new(text), quoting, span: self.span(span) });
    }

    fn literal(&self, span: Span, context: Context, parts: &mut Vec<Part>) {
        if span.start >= span.end {
            return;
        }
        let (raw, place) = (span.of(self.source), self.place(span));
        match context {
            Context::Quoted(quoting) => {
                parts.push(Part::Text { text: unescape_double(raw), quoting, span: place });
            }
            Context::Bare => bare_text(raw, place, parts),
        }
    }

    fn substitution(
        &self,
        body: &ast::StmtSeq,
        syntax: ast::CommandSubstitutionSyntax,
        span: AstSpan,
        context: Context,
    ) -> Result<Substitution> {
        let place = self.span(span);
        let backquotes = syntax == ast::CommandSubstitutionSyntax::Backtick;
        let body = match backquotes {
            true => self.backquoted(span, context)?,
            false => self.statements(body)?,
        };
        Ok(Substitution { body, quoted: context.is_quoted(), span: place })
    }

    /// Backquotes nest by escaping, which the parser does not undo: their content is parsed on its own.
    fn backquoted(&self, span: AstSpan, context: Context) -> Result<Vec<Stmt>> {
        let raw = self.slice(span);
        let inner = raw.strip_prefix('`').and_then(|it| it.strip_suffix('`')).unwrap_or(raw);
        let text = unescape_backquoted(inner, context.is_quoted());
        let place = self.span(span);
        let rewritten = text.len() != inner.len();
        let base = match (self.base, rewritten) {
            (Base::Offset(_), false) => Base::Offset(place.start + 1),
            (Base::Offset(_), true) => Base::Within(place),
            (Base::Within(whole), _) => Base::Within(whole),
        };
        parse_body(&text, self.depth.deeper()?, base)
    }

    fn arithmetic_expansion(
        &self,
        expression: &ast::SourceText,
        tree: Option<&ast::ArithmeticExprNode>,
        syntax: ast::ArithmeticExpansionSyntax,
        span: AstSpan,
    ) -> Result<Part> {
        let expression = Arithmetic {
            text: Text::new(expression.slice(self.source).trim()),
            word: self.reparsed(expression.span())?,
            uses: arithmetic_uses(&[tree]),
            span: self.span(span),
        };
        let legacy = syntax == ast::ArithmeticExpansionSyntax::LegacyBracket;
        Ok(Part::Arithmetic(Box::new(ArithmeticExpansion { expression, legacy })))
    }

    fn plain(&self, reference: &ast::VarRef, op: ParameterOp) -> Expansion {
        let subscript = self.subscript(reference);
        Expansion { subscript, ..Expansion::of(reference.name.as_str(), op) }
    }

    fn expansion(&self, it: &ast::ParameterExpansion) -> Expansion {
        use ast::BourneParameterExpansion as B;
        let bourne = match &it.syntax {
            ast::ParameterExpansionSyntax::Bourne(bourne) => bourne,
            ast::ParameterExpansionSyntax::Zsh(_) => {
                let body = Expansion::of(it.raw_body.slice(self.source), ParameterOp::Foreign);
                return body.with([&it.raw_body]);
            }
        };
        match bourne {
            B::Access { reference } => self.plain(reference, ParameterOp::Value),
            B::Length { reference } => self.plain(reference, ParameterOp::Length),
            B::Indices { reference } => self.plain(reference, ParameterOp::Keys),
            B::Indirect { reference, operand, .. } => {
                self.plain(reference, ParameterOp::Indirect).with(operand)
            }
            B::PrefixMatch { prefix, .. } => Expansion::of(prefix.as_str(), ParameterOp::Names),
            B::Slice { reference, offset, length, .. } => self
                .plain(reference, ParameterOp::Slice)
                .with(std::iter::once(offset).chain(length)),
            B::Operation { reference, operator, operand, colon_variant, .. } => {
                self.operation(reference, operator, operand.as_ref(), *colon_variant)
            }
            B::Transformation { reference, .. } => self.plain(reference, ParameterOp::Transform),
        }
    }

    fn operation(
        &self,
        reference: &ast::VarRef,
        operator: &ast::ParameterOp,
        operand: Option<&ast::SourceText>,
        colon: bool,
    ) -> Expansion {
        use ast::ParameterOp as P;
        let (op, spans) = match operator {
            P::UseDefault => (ParameterOp::Default(colon), Vec::new()),
            P::AssignDefault => (ParameterOp::Assign(colon), Vec::new()),
            P::UseReplacement => (ParameterOp::Alternative(colon), Vec::new()),
            P::Error => (ParameterOp::Error(colon), Vec::new()),
            P::RemovePrefixShort { pattern } => {
                (ParameterOp::RemovePrefix(false), vec![pattern.span])
            }
            P::RemovePrefixLong { pattern } => {
                (ParameterOp::RemovePrefix(true), vec![pattern.span])
            }
            P::RemoveSuffixShort { pattern } => {
                (ParameterOp::RemoveSuffix(false), vec![pattern.span])
            }
            P::RemoveSuffixLong { pattern } => {
                (ParameterOp::RemoveSuffix(true), vec![pattern.span])
            }
            P::ReplaceFirst { pattern, replacement, .. }
            | P::ReplaceAll { pattern, replacement, .. } => {
                (ParameterOp::Replace, vec![pattern.span, replacement.span()])
            }
            P::UpperFirst | P::UpperAll | P::LowerFirst | P::LowerAll => {
                (ParameterOp::Case, Vec::new())
            }
        };
        let mut expansion = self.plain(reference, op).with(operand);
        expansion.operands.extend(spans);
        expansion
    }

    fn parameter(&self, expansion: Expansion, span: AstSpan, context: Context) -> Result<Part> {
        if let Some(error) = precheck::unclosed(self.source, plain_span(span)) {
            return Err(error);
        }
        let Expansion { name, subscript, op, operands } = expansion;
        let operands = operands.iter().map(|it| self.reparsed(*it)).collect::<Result<_>>()?;
        let quoted = context.is_quoted();
        let span = self.span(span);
        Ok(Part::Parameter(Box::new(Parameter { name, subscript, op, operands, quoted, span })))
    }

    pub(super) fn heredoc_body(&self, body: &ast::HeredocBody) -> Result<Word> {
        let context = Context::Quoted(Quoting::Double);
        let mut parts = Vec::with_capacity(body.parts.len());
        for part in &body.parts {
            let span = part.span;
            match &part.kind {
                ast::HeredocBodyPart::Literal(text) => {
                    let raw = match (body.source_backed, body.mode) {
                        (true, ast::HeredocBodyMode::Literal) => {
                            Text::new(text.as_str(self.source, span))
                        }
                        (true, ast::HeredocBodyMode::Expanding) => {
                            unescape_heredoc(self.slice(span))
                        }
                        (false, _) => Text::new(text.as_str(self.source, span)),
                    };
                    self.push(&mut parts, &raw, Quoting::Double, span);
                }
                ast::HeredocBodyPart::Variable(name) => {
                    let expansion = Expansion::of(name.as_str(), ParameterOp::Value);
                    parts.push(self.parameter(expansion, span, context)?);
                }
                ast::HeredocBodyPart::CommandSubstitution { body, syntax } => {
                    parts.push(Part::Command(Box::new(
                        self.substitution(body, *syntax, span, context)?,
                    )));
                }
                ast::HeredocBodyPart::ArithmeticExpansion {
                    expression,
                    expression_ast,
                    syntax,
                    ..
                } => {
                    let tree = expression_ast.as_deref();
                    parts.push(self.arithmetic_expansion(expression, tree, *syntax, span)?);
                }
                ast::HeredocBodyPart::Parameter(it) => {
                    parts.push(self.parameter(self.expansion(it), span, context)?);
                }
            }
        }
        Ok(Word { parts, braces: Vec::new(), span: self.span(body.span) })
    }
}

/// A parameter expansion before its operands are read.
struct Expansion {
    name: Text,
    subscript: Option<Text>,
    op: ParameterOp,
    operands: Vec<AstSpan>,
}

impl Expansion {
    fn of(name: &str, op: ParameterOp) -> Self {
        Self { name: Text::new(name), subscript: None, op, operands: Vec::new() }
    }

    fn with<'a>(mut self, operands: impl IntoIterator<Item = &'a ast::SourceText>) -> Self {
        self.operands.extend(operands.into_iter().map(ast::SourceText::span));
        self
    }
}

/// Whether text holds something that would be expanded, or a quote that means something.
fn has_expansion(raw: &str, context: Context) -> bool {
    let mut chars = raw.chars().peekable();
    while let Some(character) = chars.next() {
        match (character, chars.peek()) {
            ('\\', _) => {
                chars.next();
            }
            ('`' | '"', _) => return true,
            ('\'', _) if context == Context::Bare => return true,
            ('$', Some(next)) if next.is_alphanumeric() || "_{([@*#?!$-".contains(*next) => {
                return true;
            }
            _ => {}
        }
    }
    false
}

/// Splits unquoted text where a backslash protects a character.
fn bare_text(raw: &str, place: Span, parts: &mut Vec<Part>) {
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        if at > 0 {
            parts.push(Part::Text {
                text: Text::new(&rest[..at]),
                quoting: Quoting::None,
                span: place,
            });
        }
        let after = &rest[at + 1..];
        let Some(next) = after.chars().next() else {
            parts.push(Part::Text {
                text: Text::new("\\"),
                quoting: Quoting::Backslash,
                span: place,
            });
            return;
        };
        // A backslash before a newline is a line continued, not a character.
        if next != '\n' {
            let text = Text::new(&after[..next.len_utf8()]);
            parts.push(Part::Text { text, quoting: Quoting::Backslash, span: place });
        }
        rest = &after[next.len_utf8()..];
    }
    if !rest.is_empty() {
        parts.push(Part::Text { text: Text::new(rest), quoting: Quoting::None, span: place });
    }
}

fn unescape(raw: &str, escapable: &[char]) -> Text {
    if memchr::memchr(b'\\', raw.as_bytes()).is_none() {
        return Text::new(raw);
    }
    let mut text = Text::default();
    let mut chars = raw.chars().peekable();
    while let Some(char) = chars.next() {
        match chars.peek().copied() {
            Some('\n') if char == '\\' => {
                chars.next();
            }
            Some(next) if char == '\\' && escapable.contains(&next) => {
                text.push(next);
                chars.next();
            }
            _ => text.push(char),
        }
    }
    text
}

fn unescape_double(raw: &str) -> Text {
    unescape(raw, &['$', '`', '"', '\\'])
}

fn unescape_heredoc(raw: &str) -> Text {
    unescape(raw, &['$', '`', '\\'])
}

fn unescape_backquoted(raw: &str, quoted: bool) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut chars = raw.chars().peekable();
    while let Some(char) = chars.next() {
        match chars.peek().copied() {
            Some(next)
                if char == '\\' && (matches!(next, '$' | '`' | '\\') || quoted && next == '"') =>
            {
                text.push(next);
                chars.next();
            }
            _ => text.push(char),
        }
    }
    text
}

pub(super) fn arithmetic_uses(clauses: &[Option<&ast::ArithmeticExprNode>]) -> ArithmeticUses {
    let mut uses = ArithmeticUses::default();
    for clause in clauses.iter().flatten() {
        note_uses(clause, &mut uses);
    }
    uses
}

fn note_uses(node: &ast::ArithmeticExprNode, uses: &mut ArithmeticUses) {
    use ast::ArithmeticExpr as E;
    match &node.kind {
        E::Number(_) | E::Variable(_) | E::ShellWord(_) => {}
        E::Indexed { index, .. } => {
            uses.index = true;
            note_uses(index, uses);
        }
        E::Parenthesized { expression } => note_uses(expression, uses),
        E::Unary { op, expr } => {
            uses.increment |= matches!(
                op,
                ast::ArithmeticUnaryOp::PreIncrement | ast::ArithmeticUnaryOp::PreDecrement
            );
            note_uses(expr, uses);
        }
        E::Postfix { expr, .. } => {
            uses.increment = true;
            note_uses(expr, uses);
        }
        E::Binary { left, op, right } => {
            uses.power |= matches!(op, ast::ArithmeticBinaryOp::Power);
            uses.comma |= matches!(op, ast::ArithmeticBinaryOp::Comma);
            note_uses(left, uses);
            note_uses(right, uses);
        }
        E::Conditional { condition, then_expr, else_expr } => {
            note_uses(condition, uses);
            note_uses(then_expr, uses);
            note_uses(else_expr, uses);
        }
        E::Assignment { target, value, .. } => {
            uses.index |= matches!(target, ast::ArithmeticLvalue::Indexed { .. });
            note_uses(value, uses);
        }
    }
}
