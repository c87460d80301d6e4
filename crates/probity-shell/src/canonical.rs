//! The canonical form of a command: two commands with the same form do the same.
//!
//! Every rewriting here is an equality that holds whatever the files are; where it would only usually hold, the form is
//! left as it was written. Expansions stay in the form as the shell text that makes them, so that a form can be shown
//! and read again: reading it gives the same form.

mod command;
mod dialect;
mod expand;
mod find;
mod mode;
mod pipe;
mod program;
mod redirect;
mod render;
mod xargs;

use std::fmt::Write as _;

use crate::{
    Script, field,
    tree::{AndOrOp, ArmEnd, Command, For, Span, Stage, Stmt},
};

pub(crate) use command::{CommandForm, Token, TokenKind};
use expand::Canonical;
use redirect::RedirectForm;

/// A command or a list of commands in canonical form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    /// A simple command.
    Command(Box<CommandForm>),
    /// Commands joined by something.
    Compound(Box<Compound>),
    /// Something compared only as it stands.
    Text(String),
}

/// Commands joined by an operator or a keyword.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compound {
    /// What joins them.
    pub join: Join,
    /// The commands.
    pub parts: Vec<Form>,
    /// Redirections of the whole.
    pub redirects: Vec<String>,
}

/// What joins commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Join {
    /// One after the other.
    List,
    /// `|`; `true` where a stage takes standard error too.
    Pipe(Vec<bool>),
    /// `&&` and `||` in order.
    AndOr(Vec<bool>),
    /// `!`
    Not,
    /// `&`
    Background,
    /// `( ... )`
    Subshell,
    /// A compound command: its words, with a gap for each part.
    Keyword(Vec<String>),
}

impl Form {
    /// The canonical form of a parsed text.
    pub fn of(script: &Script<'_>) -> Self {
        Builder { source: script.source, depth: 0, wrapped: 0, synonyms: true }.list(&script.body)
    }

    /// The form before whole commands are replaced by others, which is how the table of those is read.
    fn without_synonyms(script: &Script<'_>) -> Self {
        Builder { source: script.source, depth: 0, wrapped: 0, synonyms: false }.list(&script.body)
    }

    /// The form as text that reads back to the same form.
    pub(crate) fn shown(&self) -> String {
        render::form(self)
    }

    /// Whether there is no command in it.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Compound(it) if it.join == Join::List && it.parts.is_empty())
    }

    /// Whether every command in it is one whose table we have, with options the table knows.
    pub fn is_known(&self) -> bool {
        match self {
            Self::Command(it) => it.known,
            Self::Compound(it) => it.parts.iter().all(Self::is_known),
            Self::Text(_) => false,
        }
    }
}

impl std::fmt::Display for Form {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&render::form(self))
    }
}

/// Text inside text (`sh -c '...'`) is followed this deep.
const MAX_DEPTH: usize = 4;

/// Commands that run commands are followed this far; each level copies the words that are left.
const MAX_WRAPPED: usize = 12;

#[derive(Clone, Copy)]
struct Builder<'s> {
    source: &'s str,
    depth: usize,
    /// How many commands this one is an argument of: `sudo env ls`.
    wrapped: usize,
    synonyms: bool,
}

impl Builder<'_> {
    fn list(&self, body: &[Stmt]) -> Form {
        match body {
            [only] => self.stmt(only),
            _ => compound(Join::List, body.iter().map(|it| self.stmt(it)).collect()),
        }
    }

    fn stmt(&self, stmt: &Stmt) -> Form {
        self.stmt_with(stmt, None)
    }

    /// A statement with one more redirection, behind all of its own.
    fn stmt_with(&self, stmt: &Stmt, last: Option<RedirectForm>) -> Form {
        let mut form = self.command(stmt, last);
        if stmt.negated {
            form = compound(Join::Not, vec![form]);
        }
        if stmt.background {
            form = compound(Join::Background, vec![form]);
        }
        form
    }

    fn command(&self, stmt: &Stmt, last: Option<RedirectForm>) -> Form {
        let redirects = redirect::canonical(&stmt.redirects, last, &mut Canonical::new(*self));
        let mut form = match &stmt.command {
            Command::Simple(simple) => return command::simple(*self, simple, redirects),
            // Braces only group; redirections of the group stay with it.
            Command::Group(body) if redirects.is_empty() => return self.list(body),
            Command::Group(body) => {
                Compound { join: Join::List, parts: vec![self.list(body)], redirects: Vec::new() }
            }
            Command::Subshell(body) => plain(Join::Subshell, vec![self.list(body)]),
            Command::Pipeline(stages) => return self.pipeline(stages),
            Command::AndOr(it) => {
                let mut parts = vec![self.stmt(&it.first)];
                parts.extend(it.rest.iter().map(|(_, stmt)| self.stmt(stmt)));
                plain(
                    Join::AndOr(it.rest.iter().map(|(op, _)| *op == AndOrOp::And).collect()),
                    parts,
                )
            }
            Command::If(it) => self.if_form(it),
            Command::For(it) => self.for_form(it),
            Command::While(it) => {
                let keyword = if it.until { "until" } else { "while" };
                let parts = vec![self.list(&it.condition), self.list(&it.body)];
                plain(keyword_join(&[keyword, "do", "done"]), parts)
            }
            Command::Case(it) => self.case_form(it),
            Command::Function(it) => {
                let head = format!("{}() {{", it.name);
                plain(Join::Keyword(vec![head, "}".to_owned()]), vec![self.stmt(&it.body)])
            }
            Command::Time(it) => {
                let keyword = if it.posix_format { "time -p" } else { "time" };
                plain(keyword_join(&[keyword]), it.stmt.iter().map(|it| self.stmt(it)).collect())
            }
            Command::Coproc(it) => plain(keyword_join(&["coproc"]), vec![self.stmt(it)]),
            Command::ArithmeticFor(_)
            | Command::Arithmetic(_)
            | Command::Condition(_)
            | Command::Foreign(_) => return Form::Text(self.verbatim(stmt)),
        };
        form.redirects = redirects.into_iter().map(|it| it.text()).collect();
        Form::Compound(Box::new(form))
    }

    /// `a |& b` is `a 2>&1 | b`, unless `a` is compared as it is written.
    fn pipeline(&self, stages: &[Stage]) -> Form {
        let mut joints: Vec<bool> = stages.iter().map(|it| it.with_stderr).collect();
        let mut parts = Vec::with_capacity(stages.len());
        for (at, stage) in stages.iter().enumerate() {
            let joint = joints.get_mut(at + 1).filter(|it| **it && !is_verbatim(&stage.stmt));
            let last = joint.map(|it| {
                *it = false;
                RedirectForm::errors_to_output()
            });
            parts.push(self.stmt_with(&stage.stmt, last));
        }
        pipe::simplified(joints, parts)
    }

    fn if_form(&self, it: &crate::tree::If) -> Compound {
        let (mut words, mut parts) = (Vec::new(), Vec::new());
        for (at, (condition, body)) in it.branches.iter().enumerate() {
            words.extend([if at == 0 { "if" } else { "elif" }, "then"]);
            parts.extend([self.list(condition), self.list(body)]);
        }
        if let Some(body) = &it.otherwise {
            words.push("else");
            parts.push(self.list(body));
        }
        words.push("fi");
        plain(keyword_join(&words), parts)
    }

    fn for_form(&self, it: &For) -> Compound {
        let mut head = format!("{} {}", if it.select { "select" } else { "for" }, it.name);
        if let Some(words) = &it.words {
            let mut fields = Vec::new();
            for word in words {
                crate::field::push_fields(word, &mut Canonical::new(*self), &mut fields);
            }
            head.push_str(" in");
            for field in fields {
                head.push(' ');
                head.push_str(&render::word(&field.text));
            }
        }
        head.push_str("; do");
        plain(Join::Keyword(vec![head, "done".to_owned()]), vec![self.list(&it.body)])
    }

    fn case_form(&self, it: &crate::tree::Case) -> Compound {
        let mut canonical = Canonical::new(*self);
        let mut words = vec![format!("case {} in", render::word(&canonical.unsplit(&it.word)))];
        let mut parts = Vec::new();
        for (at, arm) in it.arms.iter().enumerate() {
            let patterns: Vec<_> = arm
                .patterns
                .iter()
                .map(|it| render::word(&field::encode_single(it, &mut canonical)))
                .collect();
            let last = words.len() - 1;
            let _ = write!(words[last], " {})", patterns.join(" | "));
            parts.push(self.list(&arm.body));
            let end = match arm.end {
                ArmEnd::Break => ";;",
                ArmEnd::FallThrough => ";&",
                ArmEnd::Continue => ";;&",
            };
            words.push(match at + 1 == it.arms.len() {
                true => format!("{end} esac"),
                false => end.to_owned(),
            });
        }
        if it.arms.is_empty() {
            words.push("esac".to_owned());
        }
        plain(Join::Keyword(words), parts)
    }

    /// What has no canonical form is compared as it was written. A here-document's body stands behind the command, so
    /// with one the whole text counts.
    fn verbatim(&self, stmt: &Stmt) -> String {
        let last = stmt.redirects.iter().map(|it| it.span.end).max().unwrap_or_default();
        let span = Span { start: stmt.span.start, end: last.max(stmt.span.end) };
        let text = span.of(self.source).trim();
        match text.contains("<<") {
            true => self.source.trim().to_owned(),
            false => text.to_owned(),
        }
    }
}

/// Whether a statement has no canonical form.
fn is_verbatim(stmt: &Stmt) -> bool {
    matches!(
        stmt.command,
        Command::ArithmeticFor(_)
            | Command::Arithmetic(_)
            | Command::Condition(_)
            | Command::Foreign(_)
    )
}

fn keyword_join(words: &[&str]) -> Join {
    Join::Keyword(words.iter().map(|it| (*it).to_owned()).collect())
}

fn plain(join: Join, parts: Vec<Form>) -> Compound {
    Compound { join, parts, redirects: Vec::new() }
}

fn compound(join: Join, parts: Vec<Form>) -> Form {
    Form::Compound(Box::new(plain(join, parts)))
}

#[cfg(test)]
mod tests;
