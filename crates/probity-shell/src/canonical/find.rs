//! `find` in canonical form: where it starts, what it tests, what it does.

mod expression;

use super::{
    Builder, CommandForm,
    command::{Argv, Token, TokenKind, options},
};
use crate::{argv::Invocation, field::Field, utility};
use expression::{Expression, Parsed};

pub(super) fn canonical(builder: Builder<'_>, arguments: &[Field]) -> Argv {
    read(builder, arguments).unwrap_or_else(|| Argv::as_written("find", arguments))
}

fn read(builder: Builder<'_>, arguments: &[Field]) -> Option<Argv> {
    let table = utility::lookup("find")?;
    let begins = |it: &Field| {
        it.text.starts_with('-') && it.text.len() > 1 || matches!(&*it.text, "(" | "!")
    };
    let is_leading =
        |it: &Field| matches!(&*it.text, "-H" | "-L" | "-P") || it.text.starts_with("-O");
    let leading = arguments.iter().take_while(|it| is_leading(it)).count();
    let paths = arguments[leading..].iter().take_while(|it| !begins(it)).count();
    let (start, rest) = arguments.split_at(leading + paths);
    let invocation = Invocation::read(table, &start[..leading]);
    let Parsed { mut expression, settings, known } = expression::parse(builder, rest)?;
    expression.print_if_idle();
    expression.simplify();
    expression.empty_files();
    let mut tokens = vec![Token::new(TokenKind::Program, "find")];
    tokens.extend(
        options(table, invocation.options.iter()).into_iter().flat_map(|(_, tokens)| tokens),
    );
    let folders = &start[leading..];
    match folders.is_empty() {
        true => tokens.push(Token::operand(".")),
        // A search for things that are no folder never names where it starts.
        false => tokens.extend(folders.iter().map(|it| match &*it.text {
            "./" if expression.never_folder() && !expression.tells_start() => Token::operand("."),
            text => Token::operand(text),
        })),
    }
    tokens.extend(settings.into_iter().flatten().map(Token::operand));
    expression.delete_files();
    expression.write(&mut tokens);
    Some(Argv { tokens, known, input: None })
}

/// `find ... -print0 | xargs -0 cmd` is `find ... -exec cmd {} +`.
pub(super) fn with_xargs(found: &CommandForm, next: &CommandForm) -> Option<CommandForm> {
    let ends = found.is("find") && found.known && found.redirects.is_empty();
    let (last, before) = found.tokens.split_last()?;
    let only_print0 =
        ends && last.text == "-print0" && !before.iter().any(|it| expression::is_action(&it.text));
    if !only_print0
        || !next.is("xargs")
        || !next.redirects.iter().all(|it| it.fd.is_empty() && it.op.starts_with('>'))
    {
        return None;
    }
    let mut tokens = before.to_vec();
    tokens.push(Token::operand("-exec"));
    let (mut nul, mut single, mut replaced) = (false, false, false);
    let mut rest = next.tokens[1..].iter();
    let mut command: Vec<Token> = Vec::new();
    while let Some(token) = rest.next() {
        match (token.kind, &*token.text) {
            (TokenKind::Option, "-0") => nul = true,
            (TokenKind::Option, "-r") => {}
            (TokenKind::Option, "-n") => single = rest.next().is_some_and(|it| it.text == "1"),
            (TokenKind::Option, "-I") => replaced = rest.next().is_some(),
            (TokenKind::Option, _) => return None,
            _ => {
                command.push(token.clone());
                command.extend(rest.by_ref().cloned());
            }
        }
    }
    let limited = next.tokens.iter().any(|it| it.kind == TokenKind::Option && it.text == "-n");
    if !nul || limited && !single || command.is_empty() {
        return None;
    }
    // Without anything found `xargs` still runs its command once, unless told not to: then it must do nothing.
    let idle =
        replaced || next.tokens.iter().any(|it| it.kind == TokenKind::Option && it.text == "-r");
    if !idle && !expression::silent_without_operands(&command) {
        return None;
    }
    let marked = command.iter().any(|it| it.text.contains("{}"));
    if marked != replaced {
        return None;
    }
    tokens.extend(command);
    if !replaced {
        tokens.push(Token::operand("{}"));
    }
    tokens.push(Token::operand(if replaced || single { ";" } else { "+" }));
    // Read again, so that what the whole now is gets its own canonical form.
    let fields: Vec<Field> = tokens[1..]
        .iter()
        .map(|it| Field { text: it.text.clone(), span: crate::Span::default() })
        .collect();
    let Argv { tokens, known, .. } = canonical(
        Builder { source: "", depth: super::MAX_DEPTH, wrapped: 0, synonyms: false },
        &fields,
    );
    Some(CommandForm {
        assignments: Vec::new(),
        tokens,
        redirects: next.redirects.clone(),
        known: known && next.known,
    })
}

impl Expression {
    /// Without an action, what is found is printed.
    fn print_if_idle(&mut self) {
        if self.acts() {
            return;
        }
        let print = Self::Action(vec![Token::operand("-print")]);
        if let Self::And(parts) = self {
            parts.push(print);
        } else {
            let asked = std::mem::replace(self, Self::And(Vec::new()));
            *self = Self::And(vec![asked, print]);
        }
    }

    /// Whether a plain chain of tests asks for something that is not a folder.
    fn never_folder(&self) -> bool {
        let Self::And(parts) = self else { return false };
        parts.iter().any(|part| match part {
            Self::Test(words) => {
                words[0] == "-type" && matches!(&*words[1], "f" | "l" | "p" | "s" | "b" | "c")
            }
            Self::And(_)
            | Self::Or(_)
            | Self::Comma(_)
            | Self::Not(_)
            | Self::Fixed(_)
            | Self::Action(_) => false,
        })
    }

    /// A file that is empty has no size, and the other way round; of folders that is not true.
    fn empty_files(&mut self) {
        let Self::And(parts) = self else { return };
        let is = |part: &Self, words: [&str; 2]| matches!(part, Self::Test(it) if it[..] == words);
        if !parts.iter().any(|part| is(part, ["-type", "f"])) {
            return;
        }
        for part in parts.iter_mut() {
            if matches!(part, Self::Test(words) if words[..] == ["-empty"]) {
                *part = Self::Test(vec!["-size".to_owned(), "0".to_owned()]);
            }
        }
        self.simplify();
    }

    /// Whether an action prints where the search started.
    fn tells_start(&self) -> bool {
        let Self::And(parts) = self else { return true };
        parts.iter().any(|part| match part {
            Self::Action(words) => {
                !matches!(&*words[0].text, "-print" | "-print0" | "-delete" | "-quit")
            }
            Self::Test(_) => false,
            Self::And(_) | Self::Or(_) | Self::Comma(_) | Self::Not(_) | Self::Fixed(_) => {
                !part.is_pure()
            }
        })
    }

    /// `-exec rm {} ;` on files only is `-delete`.
    fn delete_files(&mut self) {
        let removes = self.never_folder();
        let Self::And(parts) = self else { return };
        let Some((Self::Action(action), tests)) = parts.split_last() else { return };
        let tests_only = tests
            .iter()
            .all(|it| matches!(it, Self::Test(_) | Self::Not(_) | Self::Or(_)) && it.is_pure());
        // A file that is removed later than it is found can change what is found about others.
        let apart = !tests.iter().any(
            |it| matches!(it, Self::Test(words) if matches!(&*words[0], "-links" | "-samefile")),
        );
        let words: Vec<&str> = action.iter().map(|it| &*it.text).collect();
        let is_rm = matches!(&*words, ["-exec", "rm", options @ .., "{}", ";" | "+"]
            if options.iter().all(|it| matches!(*it, "-f" | "-r" | "-R")));
        if removes && tests_only && apart && is_rm {
            let last = parts.len() - 1;
            parts[last] = Self::Action(vec![Token::operand("-delete")]);
        }
    }
}
