//! Words: what a shell would expand in them.

use super::{Checker, Unless, foreign, rules::Rule, syntax::is_name};
use crate::tree::{
    Arithmetic, Array, Command, Parameter, ParameterOp, Part, Quoting, RedirectOp, Span,
    Substitution, Text, Word,
};

/// What a word is used for, which decides what is expanded in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// A word of a command or a loop: braces, patterns and tildes.
    Argument,
    /// The value of an assignment: tildes.
    Value,
    /// A pattern of `case` or of a parameter expansion, a file of a redirection.
    Pattern,
    /// Parameters, substitutions and arithmetic only.
    Text,
}

impl Checker<'_> {
    pub(super) fn word(&mut self, word: &Word, role: Role) {
        if role == Role::Argument {
            for span in &word.braces {
                self.report(Rule::BraceExpansion, *span);
            }
        }
        match role {
            // Most words hold nothing that could be expanded.
            Role::Argument | Role::Value | Role::Pattern if !word.parts.iter().any(is_active) => {}
            Role::Argument => {
                self.tildes(word, role);
                self.patterns(word);
            }
            Role::Value => self.tildes(word, role),
            Role::Pattern => self.patterns(word),
            Role::Text => {}
        }
        for part in &word.parts {
            self.part(part);
        }
    }

    fn part(&mut self, part: &Part) {
        match part {
            Part::Text { quoting, span, .. } => self.quoting(*quoting, *span),
            Part::Parameter(it) => self.parameter(it),
            Part::Command(it) => self.substitution(it),
            Part::Arithmetic(it) => {
                if it.legacy {
                    self.report(Rule::LegacyArithmetic, it.expression.span);
                }
                self.arithmetic(&it.expression);
            }
            Part::Process(it) => {
                self.report(Rule::ProcessSubstitution, it.span);
                self.statements(&it.body);
            }
            Part::Array(it) => {
                let Array { elements, span } = &**it;
                self.report(Rule::Array, *span);
                for (_, word) in elements {
                    self.word(word, Role::Text);
                }
            }
        }
    }

    fn quoting(&mut self, quoting: Quoting, span: Span) {
        match quoting {
            Quoting::None | Quoting::Backslash | Quoting::Single | Quoting::Double => {}
            Quoting::Locale => self.report(Rule::LocaleQuote, span),
            Quoting::Ansi if self.is_2017() => self.report(Rule::DollarSingleQuote, span),
            Quoting::Ansi => {
                if has_unicode_escape(span.of(self.source)) {
                    self.report(Rule::AnsiEscape, span);
                }
            }
        }
    }

    fn parameter(&mut self, it: &Parameter) {
        let Parameter { name, subscript, op, operands, span, .. } = it;
        if name.is_empty() {
            return self.report(Rule::CommandExpansion, *span);
        }
        if subscript.is_some() && *op != ParameterOp::Keys {
            self.report(Rule::ArrayElement, *span);
        }
        let (broken, operand_role) = operation(*op, name);
        if let Some(rule) = broken {
            self.report(rule, *span);
        }
        match matches!(op, ParameterOp::Assign(_)) {
            true => self.note_assigned(name, *span),
            false => self.variable(name, *span),
        }
        for operand in operands {
            self.word(operand, operand_role);
        }
    }

    fn variable(&mut self, name: &str, span: Span) {
        let Some(instead) = foreign::variable(name) else { return };
        let message = format!("`{name}` is a variable that the standard does not set");
        self.report_with(Rule::Variable, span, message, Some(instead));
        if let Some((_, unless)) = self.violations.last_mut() {
            *unless = Unless::Assigned(Text::new(name));
        }
    }

    fn substitution(&mut self, it: &Substitution) {
        if let [stmt] = &*it.body
            && let Command::Simple(simple) = &stmt.command
            && simple.words.is_empty()
            && simple.assignments.is_empty()
            && let [redirect] = &*stmt.redirects
            && redirect.op == RedirectOp::Input
        {
            self.report(Rule::FileSubstitution, it.span);
        }
        self.statements(&it.body);
    }

    fn arithmetic(&mut self, it: &Arithmetic) {
        let Arithmetic { word, uses, span, .. } = it;
        let rules = [
            (uses.increment, Rule::ArithmeticIncrement),
            (uses.power, Rule::ArithmeticPower),
            (uses.comma, Rule::ArithmeticComma),
            (uses.index, Rule::ArrayElement),
            (uses.base || has_base(word), Rule::ArithmeticBase),
        ];
        for (used, rule) in rules {
            if used {
                self.report(rule, *span);
            }
        }
        for part in &word.parts {
            if let Part::Text { text, span, .. } = part {
                for name in text.split(|it: char| !it.is_ascii_alphanumeric() && it != '_') {
                    if is_name(name) && name != "_" {
                        self.variable(name, *span);
                    }
                }
            }
        }
        self.word(word, Role::Text);
    }

    /// `~+`, `~-` and `~1`, where a tilde is expanded: at the start, after `=`, and after `:` in a value.
    fn tildes(&mut self, word: &Word, role: Role) {
        let mut value = role == Role::Value;
        for (at, part) in word.parts.iter().enumerate() {
            let Part::Text { text, quoting: Quoting::None, .. } = part else { continue };
            let last = at + 1 == word.parts.len();
            let equals = text.find('=').unwrap_or(text.len());
            for (tilde, _) in text.match_indices('~') {
                let before = text[..tilde].chars().next_back();
                value |= equals < tilde;
                let active = match before {
                    None => at == 0,
                    Some('=') => true,
                    Some(':') => value,
                    Some(_) => false,
                };
                if active && is_directory_tilde(&text[tilde + 1..], last) {
                    return self.report(Rule::Tilde, word.span);
                }
            }
        }
    }

    /// Patterns that the standard lacks, in the unquoted text of a word.
    fn patterns(&mut self, word: &Word) {
        let last_close = word.parts.iter().rposition(closes_bracket);
        for (place, part) in word.parts.iter().enumerate() {
            let Part::Text { text, quoting: Quoting::None, span } = part else { continue };
            if has_extended_glob(text) {
                self.report(Rule::ExtendedGlob, *span);
            }
            let Some(at) = text.find("[^") else { continue };
            if text[at + 2..].contains(']') || last_close > Some(place) {
                self.report(Rule::GlobNegation, *span);
            }
        }
    }
}

/// The rule that an operation breaks, and how its operands are read.
fn operation(op: ParameterOp, name: &str) -> (Option<Rule>, Role) {
    let all = matches!(name, "@" | "*");
    match op {
        ParameterOp::Value
        | ParameterOp::Default(_)
        | ParameterOp::Assign(_)
        | ParameterOp::Alternative(_)
        | ParameterOp::Error(_) => (None, Role::Text),
        ParameterOp::Length => (all.then_some(Rule::PositionalOperation), Role::Text),
        ParameterOp::RemovePrefix(_) | ParameterOp::RemoveSuffix(_) => {
            (all.then_some(Rule::PositionalOperation), Role::Pattern)
        }
        ParameterOp::Replace => (Some(Rule::Replacement), Role::Text),
        ParameterOp::Slice => (Some(Rule::Substring), Role::Text),
        ParameterOp::Indirect => (Some(Rule::Indirection), Role::Text),
        ParameterOp::Keys => (Some(Rule::ArrayElement), Role::Text),
        ParameterOp::Names => (Some(Rule::VariableNames), Role::Text),
        ParameterOp::Case => (Some(Rule::CaseChange), Role::Text),
        ParameterOp::Transform => (Some(Rule::Transformation), Role::Text),
        ParameterOp::Foreign => (Some(Rule::ForeignSyntax), Role::Text),
    }
}

/// Whether the part is unquoted text with a tilde, a parenthesis or a bracket.
fn is_active(part: &Part) -> bool {
    matches!(part, Part::Text { text, quoting: Quoting::None, .. }
        if text.bytes().any(|it| matches!(it, b'~' | b'(' | b'[')))
}

fn closes_bracket(part: &Part) -> bool {
    matches!(part, Part::Text { text, quoting: Quoting::None, .. } if text.contains(']'))
}

fn has_extended_glob(text: &str) -> bool {
    text.match_indices('(').any(|(at, _)| text[..at].ends_with(['?', '*', '+', '@', '!']))
}

/// Whether `+`, `-` or a number stands after the tilde, and then a slash, a colon, or the end of the word.
fn is_directory_tilde(rest: &str, last: bool) -> bool {
    let unsigned = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    let after = unsigned.trim_start_matches(|it: char| it.is_ascii_digit());
    let closed = after.starts_with(['/', ':']) || after.is_empty() && last;
    closed && after.len() < rest.len()
}

fn has_base(word: &Word) -> bool {
    word.parts.iter().any(|part| match part {
        Part::Text { text, .. } => text
            .match_indices('#')
            .any(|(at, _)| text[..at].ends_with(|it: char| it.is_ascii_digit())),
        Part::Parameter(_)
        | Part::Command(_)
        | Part::Arithmetic(_)
        | Part::Process(_)
        | Part::Array(_) => false,
    })
}

fn has_unicode_escape(raw: &str) -> bool {
    let mut chars = raw.chars();
    while let Some(char) = chars.next() {
        if char == '\\' && matches!(chars.next(), Some('u' | 'U')) {
            return true;
        }
    }
    false
}
