//! Redirections in canonical form.

use super::{expand::Canonical, render};
use crate::{
    field,
    tree::{Redirect, RedirectOp},
};

/// A redirection with its descriptor spelled out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedirectForm {
    /// The descriptor, or a name in braces.
    pub fd: String,
    /// The operator.
    pub op: &'static str,
    /// The encoded target, or text that stands for itself.
    pub target: Target,
}

/// Where a redirection leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A word.
    Word(String),
    /// The body of a here-document.
    Body {
        /// The body with expansions as shell text.
        text: String,
        /// Nothing in it is expanded.
        literal: bool,
    },
}

impl RedirectForm {
    /// Standard input from a file.
    pub(super) fn input(target: &str) -> Self {
        Self { fd: String::new(), op: "<", target: Target::Word(plain_path(target)) }
    }

    /// Standard input from a text.
    pub(super) fn text_input(text: &str) -> Self {
        Self { fd: String::new(), op: "<<<", target: Target::Word(text.to_owned()) }
    }

    /// `2>&1`
    pub(super) fn errors_to_output() -> Self {
        Self { fd: "2".to_owned(), op: ">&", target: Target::Word("1".to_owned()) }
    }

    pub(super) fn is_input(&self) -> bool {
        self.op.starts_with('<') && matches!(&*self.fd, "" | "0")
    }

    pub(super) fn text(&self) -> String {
        let Self { fd, op, target } = self;
        match target {
            Target::Word(word) => format!("{fd}{op} {}", render::word(word)),
            Target::Body { text, literal } => {
                let mut mark = String::from("EOF");
                while text.lines().any(|line| line == mark) {
                    mark.push('_');
                }
                let quote = if *literal { "'" } else { "" };
                format!("{fd}<< {quote}{mark}{quote}\n{text}{mark}\n")
            }
        }
    }
}

impl std::fmt::Display for RedirectForm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text())
    }
}

/// Redirections in the order that counts, with `last` behind all that are written.
pub(super) fn canonical(
    redirects: &[Redirect],
    last: Option<RedirectForm>,
    expand: &mut Canonical<'_>,
) -> Vec<RedirectForm> {
    let mut forms = Vec::with_capacity(redirects.len());
    for redirect in redirects {
        one(redirect, expand, &mut forms);
    }
    forms.extend(last);
    // Files on different descriptors can be opened in any order; copies of descriptors cannot.
    if forms.iter().all(|it| !it.op.contains('&')) {
        forms.sort_by(|a, b| a.fd.cmp(&b.fd));
    }
    forms
}

fn one(redirect: &Redirect, expand: &mut Canonical<'_>, forms: &mut Vec<RedirectForm>) {
    // A here-string is one text; the name of a file is split like any word.
    let mut target = if redirect.op == RedirectOp::HereString {
        expand.unsplit(&redirect.target)
    } else {
        field::encode_single(&redirect.target, expand)
    };
    let (op, usual) = match redirect.op {
        RedirectOp::Output | RedirectOp::OutputBoth => (">", 1),
        RedirectOp::Clobber => (">|", 1),
        RedirectOp::Append | RedirectOp::AppendBoth => (">>", 1),
        RedirectOp::Input => ("<", 0),
        RedirectOp::ReadWrite => ("<>", 0),
        RedirectOp::HereDoc => ("<<", 0),
        RedirectOp::HereString => ("<<<", 0),
        RedirectOp::DupOutput => (">&", 1),
        RedirectOp::DupInput => ("<&", 0),
    };
    let fd = match (&redirect.fd_name, redirect.fd) {
        (Some(name), _) => format!("{{{name}}}"),
        (None, Some(fd)) if fd != usual => fd.to_string(),
        (None, Some(_) | None) => String::new(),
    };
    if let Some(heredoc) = &redirect.heredoc {
        let text = expand.body(&heredoc.body, heredoc.literal);
        return forms.push(RedirectForm {
            fd,
            op,
            target: Target::Body { text, literal: heredoc.literal },
        });
    }
    // `>& file` is `> file 2>&1`; `>&2` copies a descriptor.
    let to_file = redirect.op == RedirectOp::DupOutput
        && redirect.fd.is_none()
        && !target.is_empty()
        && field::is_literal(&target)
        && !target.bytes().all(|it| it.is_ascii_digit() || it == b'-');
    let both = to_file || matches!(redirect.op, RedirectOp::OutputBoth | RedirectOp::AppendBoth);
    let op = if to_file { ">" } else { op };
    // Nobody prints the name of a redirection's file.
    if !op.contains('&') && op != "<<<" {
        target = plain_path(&target);
    }
    forms.push(RedirectForm { fd, op, target: Target::Word(std::mem::take(&mut target)) });
    if both {
        forms.push(RedirectForm::errors_to_output());
    }
}

/// The path without steps that lead nowhere: `./a//b` is `a/b`.
fn plain_path(path: &str) -> String {
    let mut plain = path.to_owned();
    if !field::is_literal(path) {
        return plain;
    }
    while plain.contains("//") {
        plain = plain.replace("//", "/");
    }
    while plain.contains("/./") {
        plain = plain.replace("/./", "/");
    }
    match plain.strip_prefix("./") {
        Some(rest) if !rest.is_empty() => rest.to_owned(),
        Some(_) | None => plain,
    }
}
