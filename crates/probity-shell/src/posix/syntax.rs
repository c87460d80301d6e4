//! Commands, redirections and assignments.

use super::{Checker, args::Arg, foreign, rules::Rule, words::Role};
use crate::tree::{
    AndOr, Arm, ArmEnd, Assignment, Case, Command, For, Function, Part, Quoting, Redirect,
    RedirectOp, Simple, Span, Stmt, Text, Time, Word, has_bracket,
};

/// Names that a function may not have.
const SPECIAL_BUILTINS: &[&str] = &[
    ".", ":", "break", "continue", "eval", "exec", "exit", "export", "readonly", "return", "set",
    "shift", "times", "trap", "unset",
];

impl Checker<'_> {
    pub(super) fn statements(&mut self, body: &[Stmt]) {
        for stmt in body {
            self.statement(stmt);
        }
    }

    fn statement(&mut self, stmt: &Stmt) {
        match &stmt.command {
            Command::Simple(it) => self.simple(it),
            Command::Pipeline(stages) => {
                for stage in stages {
                    if stage.with_stderr {
                        self.report(Rule::PipeBoth, self.operator_before(&stage.stmt, "|&"));
                    }
                    self.statement(&stage.stmt);
                }
            }
            Command::AndOr(it) => {
                let AndOr { first, rest } = &**it;
                self.statement(first);
                for (_, stmt) in rest {
                    self.statement(stmt);
                }
            }
            Command::Group(body) | Command::Subshell(body) => self.statements(body),
            Command::If(it) => {
                for (condition, body) in &it.branches {
                    self.statements(condition);
                    self.statements(body);
                }
                self.statements(it.otherwise.as_deref().unwrap_or_default());
            }
            Command::For(it) => self.for_loop(it, stmt.span),
            Command::ArithmeticFor(it) => {
                self.report(Rule::ArithmeticFor, it.head.span);
                self.word(&it.head.word, Role::Text);
                self.statements(&it.body);
            }
            Command::While(it) => {
                self.statements(&it.condition);
                self.statements(&it.body);
            }
            Command::Case(it) => self.case(it),
            Command::Condition(it) => {
                self.report(Rule::DoubleBracket, it.span);
                for word in &it.words {
                    self.word(word, Role::Text);
                }
            }
            Command::Arithmetic(it) => {
                self.report(Rule::ArithmeticCommand, it.span);
                self.word(&it.word, Role::Text);
            }
            Command::Function(it) => self.function(it),
            Command::Time(it) => self.time(it),
            Command::Coproc(it) => {
                self.report(Rule::Coproc, stmt.span);
                self.statement(it);
            }
            Command::Foreign(it) => {
                let message = format!("{} is the syntax of another shell", it.what);
                self.report_with(Rule::ForeignSyntax, stmt.span, message, None);
                for word in &it.words {
                    self.word(word, Role::Text);
                }
                for body in &it.bodies {
                    self.statements(body);
                }
            }
        }
        for redirect in &stmt.redirects {
            self.redirect(redirect);
        }
    }

    fn simple(&mut self, simple: &Simple) {
        for assignment in &simple.assignments {
            self.assignment(assignment);
        }
        for word in &simple.words {
            self.word(word, Role::Argument);
        }
        if simple.words.is_empty() {
            return;
        }
        let args: Vec<Arg<'_>> = simple.words.iter().map(Arg::read).collect();
        self.command(&args);
    }

    fn assignment(&mut self, it: &Assignment) {
        let Assignment { name, subscript, append, value, span } = it;
        if subscript.is_some() {
            self.report(Rule::ArrayElement, *span);
        }
        if *append {
            self.report(Rule::AppendAssignment, *span);
        }
        self.note_assigned(name, *span);
        self.word(value, Role::Value);
    }

    /// Remembers that the text gives a variable of another shell a value of its own.
    pub(super) fn note_assigned(&mut self, name: &str, span: Span) {
        if let Some(instead) = foreign::setting(name) {
            let message = format!("`{name}` changes nothing in a shell of the standard");
            self.report_with(Rule::Setting, span, message, Some(instead));
        }
        if foreign::variable(name).is_some() && !foreign::is_dynamic(name) {
            self.assigned.push(Text::new(name));
        }
    }

    fn for_loop(&mut self, it: &For, span: Span) {
        if it.select {
            let end = span.end.min(span.start + "select".len());
            self.report(Rule::Select, Span { end, ..span });
        }
        if it.braces {
            self.report(Rule::ForBraces, it.head);
        }
        self.note_assigned(&it.name, it.head);
        for word in it.words.iter().flatten() {
            self.word(word, Role::Argument);
        }
        self.statements(&it.body);
    }

    fn case(&mut self, it: &Case) {
        self.word(&it.word, Role::Value);
        for Arm { patterns, body, end, end_span } in &it.arms {
            for pattern in patterns {
                self.word(pattern, Role::Pattern);
            }
            self.statements(body);
            match end {
                ArmEnd::FallThrough if self.is_2017() => {
                    self.report(Rule::CaseFallThrough, *end_span);
                }
                ArmEnd::Break | ArmEnd::FallThrough => {}
                ArmEnd::Continue => self.report(Rule::CaseContinue, *end_span),
            }
        }
    }

    fn function(&mut self, it: &Function) {
        if it.keyword {
            self.report(Rule::FunctionKeyword, it.name_span);
        }
        if SPECIAL_BUILTINS.contains(&it.name.as_str()) {
            let message =
                format!("a function cannot be named like the special builtin `{}`", it.name);
            self.report_with(Rule::FunctionName, it.name_span, message, Some("another name"));
        } else if !is_name(&it.name) {
            self.report(Rule::FunctionName, it.name_span);
        }
        self.defined.push(it.name.clone());
        self.statement(&it.body);
    }

    fn time(&mut self, it: &Time) {
        let Some(stmt) = &it.stmt else { return };
        // A utility, as the standard sees it: what follows may be its options.
        if let Command::Simple(simple) = &stmt.command
            && simple.words.first().is_some_and(|it| Arg::read(it).text.starts_with('-'))
        {
            return self.time_utility(simple, stmt);
        }
        let mut first = stmt;
        if let Command::Pipeline(stages) = &stmt.command
            && let Some(stage) = stages.first()
        {
            first = &stage.stmt;
        }
        if stmt.negated || !is_simple(first) {
            self.report(Rule::TimeCompound, it.span);
        }
        self.statement(stmt);
    }

    /// `time -o FILE COMMAND`: the words are those of the utility `time`, whose name is not among them.
    fn time_utility(&mut self, simple: &Simple, stmt: &Stmt) {
        for word in &simple.words {
            self.word(word, Role::Argument);
        }
        let name = Word {
            parts: vec![Part::Text {
                text: Text::const_new("time"),
                quoting: Quoting::None,
                span: simple.span,
            }],
            braces: Vec::new(),
            span: simple.span,
        };
        let args: Vec<Arg<'_>> = [&name].into_iter().chain(&simple.words).map(Arg::read).collect();
        self.command(&args);
        for redirect in &stmt.redirects {
            self.redirect(redirect);
        }
    }

    fn redirect(&mut self, it: &Redirect) {
        let Redirect { fd, fd_name, op, target, heredoc, span } = it;
        if fd_name.is_some() {
            self.report(Rule::NamedDescriptor, *span);
        }
        if fd.is_some_and(|fd| fd > 9) {
            self.report(Rule::DescriptorRange, *span);
        }
        match op {
            RedirectOp::HereString => {
                self.report(Rule::HereString, *span);
                return self.word(target, Role::Text);
            }
            RedirectOp::HereDoc => {
                if let Some(heredoc) = heredoc {
                    self.word(&heredoc.body, Role::Text);
                }
                return;
            }
            RedirectOp::OutputBoth | RedirectOp::AppendBoth => {
                self.report(Rule::BothRedirect, *span);
            }
            RedirectOp::DupOutput | RedirectOp::DupInput => self.duplicate(it),
            RedirectOp::Output
            | RedirectOp::Clobber
            | RedirectOp::Append
            | RedirectOp::Input
            | RedirectOp::ReadWrite => {}
        }
        self.redirect_target(target);
        self.word(target, Role::Pattern);
    }

    /// `>&` and `<&`: a descriptor or a dash follows; what else it may be is other shells' business.
    fn duplicate(&mut self, it: &Redirect) {
        let Some(target) = it.target.literal() else { return };
        if target == "-" || !target.is_empty() && target.bytes().all(|it| it.is_ascii_digit()) {
            return;
        }
        let moved =
            target.strip_suffix('-').is_some_and(|it| it.bytes().all(|it| it.is_ascii_digit()));
        match moved || it.op == RedirectOp::DupInput || it.fd.is_some() {
            true => self.report(Rule::DescriptorMove, it.span),
            false => self.report(Rule::BothRedirect, it.span),
        }
    }

    fn redirect_target(&mut self, target: &Word) {
        for part in &target.parts {
            let Part::Text { text, quoting: Quoting::None, .. } = part else { continue };
            if text.contains(['*', '?']) || has_bracket(text) {
                self.report(Rule::RedirectGlob, target.span);
                break;
            }
        }
        let path = Arg::read(target).text;
        if path.starts_with("/dev/tcp/") || path.starts_with("/dev/udp/") {
            self.report(Rule::NetworkFile, target.span);
        }
    }

    /// Where an operator stands that joins a statement to the one before it.
    fn operator_before(&self, stmt: &Stmt, operator: &str) -> Span {
        let before = self.source.get(..stmt.span.start).unwrap_or_default();
        match before.rfind(operator) {
            Some(start) => Span { start, end: start + operator.len() },
            None => stmt.span,
        }
    }
}

fn is_simple(stmt: &Stmt) -> bool {
    matches!(stmt.command, Command::Simple(_)) && !stmt.negated
}

/// Whether it is a name in the sense of the standard.
pub(super) fn is_name(text: &str) -> bool {
    text.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_')
        && text.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_')
}
