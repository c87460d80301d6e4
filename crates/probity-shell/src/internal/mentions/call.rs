//! What the arguments of a utility are, by its table and by the languages that some have.

use super::{Role, Syntax, find, walk::Walker};
use crate::{
    argv::Invocation,
    awk,
    field::{self, Field},
    sed, utility,
};

/// Utilities whose operands may be directories as well as files.
const EITHER: &[&str] = &[
    "ls", "du", "tree", "stat", "file", "rm", "chmod", "chown", "chgrp", "cp", "mv", "ln", "tar",
    "zip", "rsync", "scp", "df", "test", "realpath", "readlink", "basename", "dirname", "getfacl",
    "lsof",
];
/// Utilities that make what they are given.
const MAKERS: &[&str] =
    &["mkdir", "touch", "mkfifo", "mktemp", "tee", "truncate", "mknod", "install"];
/// Utilities that find processes by name.
const PROCESSES: &[&str] = &["pgrep", "pkill", "killall", "pidof", "pidwait"];

pub(super) fn read(walker: &mut Walker, name: &str, arguments: &[Field]) {
    match name {
        "test" | "[" | "[[" => return condition(walker, arguments),
        "cd" | "pushd" => {
            if let Some(it) = arguments.iter().find(|it| !it.text.starts_with('-')) {
                walker.operand(&it.text, Role::Directory);
            }
            return;
        }
        "echo" | "printf" | "read" | "export" | "local" | "declare" | "set" | "unset" | "alias" => {
            return;
        }
        _ => {}
    }
    let Some(table) = utility::lookup(name) else { return unknown_utility(walker, arguments) };
    let call = Invocation::read(table, arguments);
    for option in call.options.iter().chain(&call.global) {
        if let Some(value) = option.value {
            option_value(walker, name, &option.spec.spellings, &option.spec.placeholder, value);
        }
    }
    // What goes with all that is in it may be a directory.
    if name == "rm" && is_recursive(&call) {
        walker.found.kinds.insert('d');
    }
    let syntax = syntax(name, &call);
    let scripted = call.has("-e") || call.has("-f");
    let mut first = true;
    let mut command = Vec::new();
    for (operand, slot) in call.operands.iter().zip(call.slots()) {
        let kind = slot.map_or("FILE", |it| &*it.name);
        let is_first = std::mem::replace(&mut first, false);
        match (name, kind) {
            ("sed", _) if is_first && !scripted => sed_script(walker, &operand.text, syntax),
            ("awk" | "gawk" | "mawk" | "nawk", _) if is_first && !scripted => {
                awk_program(walker, &operand.text);
            }
            _ if PROCESSES.contains(&name) => literal(&operand.text, |it| {
                walker.found.processes.insert(it.to_owned());
            }),
            (_, "PATTERN") => text_pattern(walker, &operand.text, syntax),
            (_, "MODE") => walker.found.modes.extend(find::mode(&operand.text)),
            (_, "OWNER") => owner(walker, &operand.text),
            (_, "USER") => literal(&operand.text, |it| {
                walker.found.users.insert(it.to_owned());
            }),
            (_, "GROUP") => literal(&operand.text, |it| {
                walker.found.groups.insert(it.to_owned());
            }),
            (_, "FILE" | "DIR" | "SOURCE" | "TARGET") => {
                walker.operand(&operand.text, role(name, kind, &call));
            }
            (_, "NUM" | "LIST") => walker.found.numbers_in(&operand.text),
            (_, "COMMAND") => command.push((*operand).clone()),
            _ => {}
        }
    }
    if let Some(mark) = call.get("-I").and_then(|it| it.value).filter(|_| name == "xargs") {
        command.iter_mut().for_each(|it: &mut Field| it.text = it.text.replace(mark, "{}").into());
    }
    walker.run(&command);
}

fn is_recursive(call: &Invocation<'_>) -> bool {
    call.has("-r") || call.has("-R") || call.has("--recursive")
}

fn role(name: &str, kind: &str, call: &Invocation<'_>) -> Role {
    let recursive = is_recursive(call);
    match kind {
        "TARGET" => Role::Target,
        _ if MAKERS.contains(&name) => Role::Target,
        "DIR" => Role::Directory,
        _ if recursive || EITHER.contains(&name) => Role::Any,
        _ => Role::File,
    }
}

fn option_value(walker: &mut Walker, name: &str, spellings: &[Box<str>], kind: &str, value: &str) {
    let is = |spelling: &str| spellings.iter().any(|it| **it == *spelling);
    match (name, kind) {
        ("sed", _) if is("-e") => sed_script(walker, value, Syntax::Basic),
        ("awk" | "gawk" | "mawk", _) if is("-F") => separator(walker, value),
        ("cut", _) if is("-d") => separator(walker, value),
        ("sort" | "column" | "join", _) if is("-t") || is("-s") => separator(walker, value),
        ("tar", _) if is("-f") => walker.operand(value, Role::Any),
        ("find", _) => {}
        (_, "FILE") if is("-o") || is("--output") => walker.operand(value, Role::Target),
        (_, "FILE") => walker.operand(value, Role::File),
        (_, "DIR") => walker.operand(value, Role::Directory),
        (_, "PATTERN") if is("--include") || is("--exclude") => literal_pattern(walker, value),
        (_, "PATTERN") => text_pattern(walker, value, Syntax::Basic),
        (_, "USER") => literal(value, |it| {
            walker.found.users.insert(it.to_owned());
        }),
        (_, "GROUP") => literal(value, |it| {
            walker.found.groups.insert(it.to_owned());
        }),
        (_, "SIZE") => walker.found.sizes.extend(find::size(value)),
        (_, "NUM" | "LIST") => walker.found.numbers_in(value),
        _ => {}
    }
}

/// Without a table every word that looks like a path is one.
fn unknown_utility(walker: &mut Walker, arguments: &[Field]) {
    for argument in arguments.iter().filter(|it| !it.text.starts_with('-')) {
        if argument.text.contains('/') || has_extension(&argument.text) {
            walker.operand(&argument.text, Role::Any);
        }
    }
}

fn has_extension(text: &str) -> bool {
    text.rsplit_once('.').is_some_and(|(stem, end)| {
        !stem.is_empty()
            && (1..=5).contains(&end.len())
            && end.bytes().all(|it| it.is_ascii_alphanumeric())
    })
}

/// `-f x`, `x -nt y`: what stands beside an operator of `test`.
pub(super) fn condition(walker: &mut Walker, words: &[Field]) {
    for (at, word) in words.iter().enumerate() {
        walker.found.emptiness |= word.text == "-s";
        let role = match &*word.text {
            "-d" => Role::Directory,
            "-e" | "-L" | "-h" | "-O" | "-G" => Role::Any,
            "-f" | "-s" | "-r" | "-w" | "-x" | "-nt" | "-ot" | "-ef" => Role::File,
            _ => continue,
        };
        if let Some(operand) = words.get(at + 1) {
            walker.operand(&operand.text, role);
        }
    }
}

fn syntax(name: &str, call: &Invocation<'_>) -> Syntax {
    match name {
        "fgrep" => Syntax::Fixed,
        "egrep" | "rg" | "ag" | "pgrep" | "pkill" => Syntax::Extended,
        _ if call.has("-F") => Syntax::Fixed,
        _ if call.has("-P") => Syntax::Perl,
        _ if call.has("-E") => Syntax::Extended,
        _ => Syntax::Basic,
    }
}

fn literal(text: &str, mut keep: impl FnMut(&str)) {
    if field::is_literal(text) && !text.is_empty() {
        keep(text);
    }
}

fn literal_pattern(walker: &mut Walker, value: &str) {
    literal(&field::display(value), |it| {
        walker.found.names.insert(it.to_owned());
    });
}

fn text_pattern(walker: &mut Walker, text: &str, syntax: Syntax) {
    let text = field::display(text);
    for line in text.lines() {
        walker.found.text(line, syntax);
    }
}

fn separator(walker: &mut Walker, value: &str) {
    literal(value, |it| {
        let it = if it == "\\t" { "\t" } else { it };
        let plain = it.trim_matches(['[', ']']);
        walker.found.separators.extend(plain.chars().take(3).map(String::from));
    });
}

/// `user`, `user:group`, `:group`.
fn owner(walker: &mut Walker, text: &str) {
    let (user, group) = text.split_once(':').unwrap_or((text, ""));
    literal(user, |it| {
        walker.found.users.insert(it.to_owned());
    });
    literal(group, |it| {
        walker.found.groups.insert(it.to_owned());
    });
}

fn sed_script(walker: &mut Walker, text: &str, syntax: Syntax) {
    let text = field::display(text);
    let Some(commands) = sed::read(&text) else { return };
    for command in commands {
        walker.found.text(command.pattern, syntax);
        for address in command.first.iter().chain(&command.second) {
            match address {
                sed::Address::Pattern { text, .. } => walker.found.text(text, syntax),
                sed::Address::Line(text)
                | sed::Address::Step(text)
                | sed::Address::Relative(text) => walker.found.numbers_in(text),
                sed::Address::Last => {}
            }
        }
    }
}

fn awk_program(walker: &mut Walker, text: &str) {
    let text = field::display(text);
    let mut compared = false;
    for token in awk::tokens(&text) {
        match token {
            awk::Token::Pattern(it) => walker.found.text(it, Syntax::Extended),
            awk::Token::Text(it) if compared => walker.found.text(it, Syntax::Fixed),
            awk::Token::Number(it) => walker.found.numbers_in(it),
            awk::Token::Text(_) | awk::Token::Name(_) | awk::Token::Mark(_) => {}
        }
        compared = matches!(token, awk::Token::Mark("==" | "!=" | "~" | "!~" | ","));
    }
}
