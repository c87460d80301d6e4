//! Pipelines: stages that can be written without a pipe.

use crate::field;

use super::{CommandForm, Form, Join, Token, TokenKind, compound, find, redirect::RedirectForm};

/// The pipeline with needless stages taken out.
pub(super) fn simplified(mut joints: Vec<bool>, mut parts: Vec<Form>) -> Form {
    let last = parts.len() - 1;
    parts[..last].iter_mut().for_each(one_per_line);
    let mut at = 0;
    while at + 1 < parts.len() {
        let merged = match (&parts[at], &parts[at + 1]) {
            (Form::Command(first), Form::Command(second)) if !joints[at + 1] => {
                merged(first, second, at == 0)
            }
            _ => None,
        };
        match merged {
            Some(merged) => {
                parts.splice(at..at + 2, [Form::Command(Box::new(merged))]);
                joints.remove(at + 1);
                // What was merged may merge again with what stands before it.
                at = at.saturating_sub(1);
            }
            None => at += 1,
        }
    }
    match parts.len() {
        1 => parts.remove(0),
        _ => compound(Join::Pipe(joints), parts),
    }
}

/// In a pipe these act on a shell of their own; with a redirection they act on this one.
const OWN_SHELL: &[&str] = &[
    ".",
    ":",
    "alias",
    "bg",
    "break",
    "builtin",
    "cd",
    "command",
    "continue",
    "declare",
    "disown",
    "enable",
    "eval",
    "exec",
    "exit",
    "export",
    "fg",
    "getopts",
    "hash",
    "jobs",
    "let",
    "local",
    "mapfile",
    "popd",
    "printf",
    "pushd",
    "read",
    "readarray",
    "readonly",
    "return",
    "set",
    "shift",
    "shopt",
    "source",
    "trap",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
    "wait",
];

fn merged(first: &CommandForm, second: &CommandForm, at_start: bool) -> Option<CommandForm> {
    let own_shell = second.program().is_none_or(|it| OWN_SHELL.contains(&it));
    if own_shell || !second.assignments.is_empty() {
        return None;
    }
    let from_file = || {
        from_cat(first, second)
            .or_else(|| from_echo(first, second))
            .or_else(|| find::with_xargs(first, second))
    };
    let anywhere = || sorted_once(first, second).or_else(|| bare_count(first, second));
    match at_start {
        true => from_file().or_else(anywhere),
        false => anywhere(),
    }
}

/// `cat f | cmd` is `cmd < f`.
fn from_cat(cat: &CommandForm, next: &CommandForm) -> Option<CommandForm> {
    let [input] = &*cat.redirects else { return None };
    let plain = cat.is("cat") && cat.tokens.len() == 1 && input.is_input() && input.op == "<";
    if !plain || next.redirects.iter().any(RedirectForm::is_input) || next.tokens.is_empty() {
        return None;
    }
    let mut merged = next.clone();
    merged.redirects.insert(0, input.clone());
    Some(merged)
}

/// `echo text | cmd` is `cmd <<< text`.
fn from_echo(echo: &CommandForm, next: &CommandForm) -> Option<CommandForm> {
    let [_, text] = &*echo.tokens else { return None };
    let plain = echo.is("echo") && echo.redirects.is_empty() && text.kind == TokenKind::Operand;
    // Some shells' `echo` reads escapes; a word that is split or globbed is not one text.
    let unsure =
        text.text.contains([field::STAR, field::ANY, field::BRACKET, field::TILDE, field::OPEN]);
    let escapes = text.text.contains('\\') || text.text.starts_with('-');
    if !plain
        || unsure
        || escapes
        || next.redirects.iter().any(RedirectForm::is_input)
        || next.tokens.is_empty()
    {
        return None;
    }
    let mut merged = next.clone();
    merged.redirects.insert(0, RedirectForm::text_input(&text.text));
    Some(merged)
}

/// `sort | uniq` is `sort -u`, as long as whole lines are compared.
fn sorted_once(sort: &CommandForm, uniq: &CommandForm) -> Option<CommandForm> {
    let plain = |it: &Token| it.kind != TokenKind::Option || it.text == "-r";
    let whole_lines = sort.is("sort") && sort.known && sort.tokens.iter().all(plain);
    let reads_pipe = uniq.is("uniq")
        && uniq.tokens.len() == 1
        && !uniq.redirects.iter().any(RedirectForm::is_input);
    if !whole_lines || !reads_pipe || sort.redirects.iter().any(|it| !it.is_input()) {
        return None;
    }
    let mut merged = sort.clone();
    let at = merged.tokens.iter().take_while(|it| it.kind != TokenKind::Operand).count();
    merged.tokens.insert(at, Token::new(TokenKind::Option, "-u"));
    merged.redirects.extend(uniq.redirects.iter().cloned());
    Some(merged)
}

/// `wc -l f | cut -d' ' -f1` is `wc -l < f`: a count without the name.
fn bare_count(wc: &CommandForm, field: &CommandForm) -> Option<CommandForm> {
    let texts: Vec<&str> = field.tokens.iter().map(|it| &*it.text).collect();
    let first = matches!(&*texts, ["cut", "-d", " ", "-f", "1"] | ["awk", "{print $1}"]);
    let [program, option, file] = &*wc.tokens else { return None };
    let counts = wc.is("wc")
        && option.kind == TokenKind::Option
        && matches!(&*option.text, "-l" | "-w" | "-c" | "-m");
    let one = file.kind == TokenKind::Operand
        && super::command::reads_one(&file.text)
        && file.text != "-";
    if !first
        || !counts
        || !one
        || !wc.redirects.is_empty()
        || field.redirects.iter().any(RedirectForm::is_input)
    {
        return None;
    }
    let mut redirects = vec![RedirectForm::input(&file.text)];
    redirects.extend(field.redirects.iter().cloned());
    let tokens = vec![program.clone(), option.clone()];
    Some(CommandForm { assignments: Vec::new(), tokens, redirects, known: true })
}

/// Into a pipe `ls` writes one name a line, said or not.
fn one_per_line(part: &mut Form) {
    let Form::Command(command) = part else { return };
    let to_pipe = command.is("ls") && command.known && command.redirects.is_empty();
    let format = |it: &Token| {
        it.kind == TokenKind::Option
            && matches!(&*it.text, "-l" | "-C" | "-x" | "-m" | "-g" | "-o" | "-n")
    };
    if to_pipe && !command.tokens.iter().any(|it| format(it) || it.text.starts_with("--format")) {
        command.tokens.retain(|it| it.kind != TokenKind::Option || it.text != "-1");
    }
}
