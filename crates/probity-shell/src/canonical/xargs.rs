//! `xargs`: its replacement string has many names.

use super::{
    Builder,
    command::{Argv, Token, TokenKind, canonical_argv, options},
};
use crate::{argv::Invocation, field::Field, utility};

pub(super) fn canonical(builder: Builder<'_>, arguments: &[Field]) -> Argv {
    let verbatim = || Argv::as_written("xargs", arguments);
    let Some(table) = utility::lookup("xargs") else { return verbatim() };
    let invocation = Invocation::read(table, arguments);
    if !invocation.unknown.is_empty() {
        return verbatim();
    }
    let is_replace = |it: &&crate::argv::Given<'_>| it.is("-I") || it.is("-i");
    let replace =
        invocation.options.iter().rev().find(is_replace).map(|it| it.value.unwrap_or("{}"));
    let given = invocation.options.iter().filter(|it| !is_replace(it));
    // Which of them wins is a matter of their order and of the version.
    if replace.is_some()
        && given.clone().any(|it| ["-n", "-L", "-l"].iter().any(|other| it.is(other)))
    {
        return verbatim();
    }
    let mut tokens = vec![Token::new(TokenKind::Program, "xargs")];
    tokens.extend(options(table, given).into_iter().flat_map(|(_, tokens)| tokens));
    let mut command: Vec<Field> = invocation.operands.iter().map(|it| (*it).clone()).collect();
    if command.is_empty() {
        command.push(Field { text: "echo".into(), span: crate::Span::default() });
    }
    if let Some(mark) = replace {
        if mark != "{}" && command.iter().any(|it| it.text.contains("{}")) || mark.is_empty() {
            return verbatim();
        }
        command.iter_mut().for_each(|it| it.text = it.text.replace(mark, "{}").into());
        tokens.extend([Token::new(TokenKind::Option, "-I"), Token::new(TokenKind::Value, "{}")]);
    }
    let (nested, known) = canonical_argv(builder, &command).nested();
    tokens.extend(nested);
    Argv { tokens, known, input: None }
}
