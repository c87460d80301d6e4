//! Utilities whose arguments are a small language of their own.

mod awk;
mod echo;
mod lines;
mod program_text;
mod signal;
mod size;
mod synonym;
mod text;
mod unzip;

use super::{
    Builder, MAX_DEPTH,
    command::{Argv, Parts, Token, TokenKind, canonical_argv},
    mode, render,
};
use crate::{
    Script,
    argv::Invocation,
    field::{self, Field},
    posix,
    tree::Text,
};

/// Utilities that are read without a table.
pub(super) fn special(builder: Builder<'_>, name: &str, arguments: &[Field]) -> Option<Argv> {
    // Inside `xargs` and `find -exec` more operands may follow than are seen here.
    let alone = builder.wrapped <= 1;
    match name {
        "test" => Some(test("test", arguments)),
        "[" => {
            let (last, inner) = arguments.split_last()?;
            (last.text == "]").then(|| test("test", inner))
        }
        // Where a shell stands does not depend on what it is told.
        "pwd"
            if arguments
                .iter()
                .all(|it| field::is_literal(&it.text) && !it.text.starts_with('-')) =>
        {
            let tokens = vec![Token::new(TokenKind::Program, "pwd")];
            Some(Argv { tokens, known: true, input: None })
        }
        "unlink" if alone && arguments.len() == 1 => instead(builder, "rm", Vec::new(), arguments),
        "dd" => size::dd(arguments),
        "echo" => Some(echo::canonical(arguments)),
        "sed" if alone => by_lines(builder, arguments),
        "awk" | "gawk" | "mawk" | "nawk" if alone => by_field(builder, arguments),
        "printf" if alone => text::printf(arguments),
        "sh" | "bash" | "dash" | "zsh" | "ksh" => shell(builder, name, arguments),
        _ => None,
    }
}

/// Arguments rewritten before their table reads them.
pub(super) fn arguments(
    builder: Builder<'_>,
    name: &str,
    arguments: &[Field],
) -> Option<Vec<Field>> {
    match name {
        "kill" => signal::rewritten(&["-s", "-n"], arguments),
        "killall" => signal::rewritten(&["-s", "--signal"], arguments),
        "pkill" => signal::rewritten(&["--signal"], arguments),
        "cd" if arguments.is_empty() => {
            Some(vec![Field { text: home().into(), span: crate::Span::default() }])
        }
        "ps" => bundle_sorted(arguments),
        "unzip" if builder.wrapped <= 1 => unzip::rewritten(arguments),
        _ => None,
    }
}

fn home() -> String {
    format!("{}${{HOME}}{}", crate::field::OPEN_QUOTED, crate::field::CLOSE)
}

/// `ps aux` and `ps axu`: a bundle without a dash, in one order.
fn bundle_sorted(arguments: &[Field]) -> Option<Vec<Field>> {
    let first = arguments.first()?;
    if first.text.is_empty() || !first.text.bytes().all(|it| it.is_ascii_lowercase()) {
        return None;
    }
    let mut letters: Vec<char> = first.text.chars().collect();
    // These take what follows as their value.
    if letters.iter().any(|it| matches!(it, 'k' | 'o' | 'p' | 'q' | 't')) {
        return None;
    }
    letters.sort_unstable();
    letters.dedup();
    let mut sorted = arguments.to_vec();
    sorted[0].text = letters.into_iter().collect();
    Some(sorted)
}

/// Values in the canonical spelling of their kind.
pub(super) fn refine(
    builder: Builder<'_>,
    name: &str,
    invocation: &Invocation<'_>,
    parts: &mut Parts,
) {
    match name {
        // `ls .` is `ls`. Inside `xargs` more operands may follow. Where it names the directory (`-d`, `-R`), not every
        // ls writes the same for both.
        "ls" if builder.wrapped <= 1
            && matches!(&*parts.operands, [only] if only.text == ".")
            && !["-d", "-R"].iter().any(|it| invocation.has(it)) =>
        {
            parts.operands.clear();
        }
        "chmod" if !invocation.has("--reference") => {
            if let Some(first) = parts.operands.first_mut()
                && let Some(mode) = mode::canonical(&first.text)
            {
                first.text = mode.into();
            }
        }
        "tr" if text::are_classes(&parts.operands) => {
            parts.operands.iter_mut().for_each(|it| text::set(&mut it.text));
        }
        "date" => parts
            .operands
            .iter_mut()
            .filter(|it| it.text.starts_with('+'))
            .for_each(|it| date_format(&mut it.text)),
        "sed" => script_operand(invocation, parts, program_text::sed),
        "awk" | "gawk" | "mawk" | "nawk" => script_operand(invocation, parts, awk::tidied),
        _ => {}
    }
}

/// Arguments that a utility refuses although its table reads them.
pub(super) fn is_refused(name: &str, invocation: &Invocation<'_>) -> bool {
    let by_habit = |it: &crate::argv::Given<'_>| {
        it.field.text[1..].starts_with(|it: char| it.is_ascii_digit())
    };
    name == "tail" && invocation.operands.len() > 1 && invocation.options.iter().any(by_habit)
}

/// Whether it could make a difference to a program where its file comes from.
pub(super) fn minds_its_file(invocation: &Invocation<'_>, operands: &[Text]) -> bool {
    let name = &*invocation.utility.name;
    let values = invocation.options.iter().filter_map(|it| it.value);
    let texts = || operands.iter().map(Text::as_str).chain(values.clone());
    // Standard input is already spoken for, or opened by name.
    let (last, before) = match operands.split_last() {
        Some((last, before)) => (last.as_str(), before),
        None => return true,
    };
    if before.iter().any(|it| it == "-")
        || values.clone().any(|it| it == "-")
        || texts().any(|it| it.contains("/dev/"))
    {
        return true;
    }
    let program = operands.first().map_or("", Text::as_str);
    let asks =
        |words: &[&str]| !field::is_literal(program) || words.iter().any(|it| program.contains(it));
    match name {
        "awk" | "gawk" | "mawk" | "nawk" => {
            invocation.has("-f")
                || asks(&[
                    "FILENAME",
                    "ARGV",
                    "ARGC",
                    "getline",
                    "nextfile",
                    "ENDFILE",
                    "BEGINFILE",
                ])
                || last.contains('=')
        }
        "jq" => invocation.has("-f") || asks(&["input_filename", "$__loc__"]),
        "sed" => invocation.has("-f") || asks(&["F", "stdin"]),
        "grep" => invocation.has("-f"),
        _ => false,
    }
}

/// The program given as an operand; programs given by options are left as they are.
fn script_operand(invocation: &Invocation<'_>, parts: &mut Parts, normalize: fn(&mut Text)) {
    let elsewhere = ["-f", "-e"].iter().any(|it| invocation.has(it));
    let moved = parts.operands.len() > invocation.operands.len();
    if let Some(first) = parts.operands.first_mut().filter(|_| moved || !elsewhere) {
        normalize(&mut first.text);
    }
}

fn date_format(format: &mut Text) {
    for (short, long) in
        [("%F", "%Y-%m-%d"), ("%T", "%H:%M:%S"), ("%R", "%H:%M"), ("%D", "%m/%d/%y"), ("%h", "%b")]
    {
        // A doubled percent sign is text, so that what follows it is too.
        if format.contains(short) && !format.contains("%%") {
            *format = format.replace(short, long).into();
        }
    }
}

/// The command that another command runs.
pub(super) fn nested(builder: Builder<'_>, name: &str, command: &[Field]) -> (Vec<Token>, bool) {
    match name {
        // The other side's shell reads the words again, joined.
        "ssh" => remote(builder, command),
        _ => canonical_argv(builder, command).nested(),
    }
}

fn remote(builder: Builder<'_>, command: &[Field]) -> (Vec<Token>, bool) {
    let words: Option<Vec<&str>> = command.iter().map(Field::literal).collect();
    let text = words.map(|words| words.join(" "));
    let script = text.as_deref().and_then(|text| nested_script(builder, text));
    let read = script.map(|script| canonical_text(builder, &script));
    match read {
        Some((text, known)) => (vec![Token::operand(text)], known),
        None => (command.iter().map(|it| Token::operand(&*it.text)).collect(), false),
    }
}

/// `sh -c 'text'`: the text is a script of its own.
fn shell(builder: Builder<'_>, name: &str, arguments: &[Field]) -> Option<Argv> {
    let [flag, text, rest @ ..] = arguments else { return None };
    if flag.text != "-c" {
        return None;
    }
    let text = text.literal()?;
    let script = nested_script(builder, text)?;
    // What other shells make of bash's own syntax is not known here. In ksh, `|&` starts a process to talk to.
    let plain = matches!(name, "bash" | "zsh")
        || name == "ksh" && !text.contains("|&")
        || posix::check(&script, posix::Edition::default()).is_compliant();
    let (text, known) = plain.then(|| canonical_text(builder, &script))?;
    let mut tokens = vec![
        Token::new(TokenKind::Program, name),
        Token::new(TokenKind::Option, "-c"),
        Token::new(TokenKind::Value, text),
    ];
    tokens.extend(rest.iter().map(|it| Token::operand(&*it.text)));
    Some(Argv { tokens, known, input: None })
}

/// A script inside a command, unless it is too deep inside.
fn nested_script<'t>(builder: Builder<'_>, text: &'t str) -> Option<Script<'t>> {
    (builder.depth < MAX_DEPTH).then(|| Script::parse(text).ok())?
}

/// The canonical text of a script inside a command, and whether all of it is known.
fn canonical_text(builder: Builder<'_>, script: &Script<'_>) -> (String, bool) {
    let form =
        Builder { source: script.source, depth: builder.depth + 1, ..builder }.list(&script.body);
    (render::form(&form), form.is_known())
}

fn test(name: &str, arguments: &[Field]) -> Argv {
    let mut tokens = vec![Token::new(TokenKind::Program, name)];
    tokens.extend(arguments.iter().map(|it| Token::operand(&*it.text)));
    let comparison = match &arguments.iter().map(|it| &*it.text).collect::<Vec<_>>()[..] {
        [_, "==", _] => Some(2),
        ["!", _, "==", _] => Some(3),
        _ => None,
    };
    if let Some(at) = comparison {
        tokens[at].text = "=".into();
    }
    Argv { tokens, known: true, input: None }
}

/// `sed -n 1,5p` and `sed 5q` write what `head -n 5` writes. `awk` does not: it ends the last line if it has no end.
fn by_lines(builder: Builder<'_>, arguments: &[Field]) -> Option<Argv> {
    let (utility, options, used) = lines::chosen(arguments)?;
    // Without a file it may read what never ends, which only some of them survive.
    let files = Some(&arguments[used..]).filter(|it| !it.is_empty())?;
    instead(builder, utility, options, files)
}

fn by_field(builder: Builder<'_>, arguments: &[Field]) -> Option<Argv> {
    let (options, used) = lines::first_field(arguments)?;
    instead(builder, "cut", options, &arguments[used..])
}

/// Another utility on the same file. Several files are one stream to some and several to others.
fn instead(
    builder: Builder<'_>,
    utility: &str,
    options: Vec<String>,
    files: &[Field],
) -> Option<Argv> {
    let dashed = |it: &Field| it.text.starts_with('-') && it.text.len() > 1;
    let odd = |it: &Field| dashed(it) || it.text.contains('=');
    if files.len() > 1 || files.iter().any(|it| odd(it) || !super::command::reads_one(&it.text)) {
        return None;
    }
    let field = |text: String| Field { text: text.into(), span: crate::Span::default() };
    let words = std::iter::once(utility.to_owned()).chain(options).map(field);
    let fields: Vec<Field> = words.chain(files.iter().cloned()).collect();
    Some(canonical_argv(builder, &fields))
}

/// The command that stands for this one and others that write the same.
pub(super) fn synonym(tokens: &[Token]) -> Option<Vec<Token>> {
    synonym::of(tokens)
}
