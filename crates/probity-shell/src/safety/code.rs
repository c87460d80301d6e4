//! Other languages' one-liners, read for the plain calls that destroy something or run a shell.
//!
//! This is no parser of Python or Perl: strings and names are told apart, and a call is a name followed by its strings.

mod calls;
mod server;
mod token;

use calls::{
    DECODES, FILE_MODULES, LISTS, MOVES, READS, REMOVES_FILES, REMOVES_TREES, RUNS, WRITES,
};
use token::{Token, tokens};

use super::target::{self, Classes};
use crate::{
    awk::unescaped,
    field::{STAR, TILDE},
};

/// What a program does.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Something a check is about.
    Rule(&'static str),
    /// It runs a shell with this text.
    Shell(String),
}

/// How many tokens of a call are looked at.
const MAX_ARGUMENTS: usize = 128;
/// How many tokens before a call are looked at for what it is called on.
const MAX_RECEIVER: usize = 8;
/// How many of Perl's and Ruby's quoted commands are read.
const MAX_QUOTED: usize = 8;
/// How many programs within programs are read.
const MAX_DEPTH: usize = 2;

/// Reads a program.
pub(super) fn read(text: &str) -> Vec<Found> {
    let mut found = Vec::new();
    program(text, 0, &mut found);
    found
}

fn program(text: &str, depth: usize, found: &mut Vec<Found>) {
    let tokens = tokens(text);
    let listed = listed(&tokens);
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Name(path) => {
                let place = Place { tokens: &tokens, at, listed, depth };
                call(path, &place, found);
            }
            Token::Backquoted(text) => found.push(Found::Shell((*text).to_owned())),
            // AppleScript: `do shell script "date"`.
            Token::Text(text)
                if tokens[..at].ends_with(&[Token::Name("shell"), Token::Name("script")]) =>
            {
                found.push(Found::Shell((*text).to_owned()));
            }
            // Groovy: `"date".execute()`.
            Token::Text(text)
                if matches!(
                    tokens.get(at + 1..at + 3),
                    Some([Token::Mark('.'), Token::Name("execute")])
                ) =>
            {
                found.push(Found::Shell((*text).to_owned()));
            }
            Token::Text(_) | Token::Mark(_) => {}
        }
    }
    found.extend(quoted_commands(text).take(MAX_QUOTED).map(|it| Found::Shell(it.to_owned())));
    whole(text, &tokens, found);
}

/// What only the program as a whole says.
fn whole(text: &str, tokens: &[Token<'_>], found: &mut Vec<Found>) {
    let names = |wanted: &[&str]| {
        tokens.iter().any(|it| {
            matches!(it, Token::Name(path) if segments(path).any(|name| wanted.contains(&name)))
        })
    };
    let connects = names(&[
        "socket",
        "create_connection",
        "fsockopen",
        "pfsockopen",
        "TCPSocket",
        "connect",
        "Socket",
        "INET",
    ]);
    let shell = text.contains("/bin/sh")
        || text.contains("/bin/bash")
        || text.contains("cmd.exe")
        || names(&["dup2", "pty"]);
    if connects && shell || server::hands_out_shell(tokens, found) {
        found.push(Found::Rule("socket-shell"));
    }
    let endless = names(&["while", "for", "loop", "True"]);
    if names(&["fork"]) && endless {
        found.push(Found::Rule("fork-bomb"));
    }
    let fetches = names(&[
        "urlopen",
        "urlretrieve",
        "LWP",
        "file_get_contents",
        "fetch",
        "get",
        "getstore",
        "HTTP",
        "URI",
    ]) || text.contains("open-uri");
    let address = text.contains("http://") || text.contains("https://");
    if fetches && address && names(&["exec", "eval", "execfile", "instance_eval", "system", "run"])
    {
        found.push(Found::Rule("download-run"));
    }
}

fn segments(path: &str) -> impl DoubleEndedIterator<Item = &str> {
    path.split(['.', ':', '>']).map(|it| it.trim_end_matches('-')).filter(|it| !it.is_empty())
}

fn last(path: &str) -> &str {
    path.rsplit(['.', ':', '>']).next().unwrap_or(path)
}

/// The directory that a program lists, with a pattern for what is in it.
fn listed<'t>(tokens: &[Token<'t>]) -> Option<&'t str> {
    let at = tokens
        .iter()
        .position(|it| matches!(it, Token::Name(path) if LISTS.contains(&last(path))))?;
    let after = tokens[at + 1..].iter().take(3);
    after.into_iter().find_map(|it| match it {
        Token::Text(text) => Some(*text),
        Token::Name(_) | Token::Backquoted(_) | Token::Mark(_) => None,
    })
}

/// Where a call stands.
struct Place<'p, 't> {
    tokens: &'p [Token<'t>],
    at: usize,
    listed: Option<&'t str>,
    depth: usize,
}

fn call(path: &str, place: &Place<'_, '_>, found: &mut Vec<Found>) {
    let name = last(path);
    let known = [RUNS, REMOVES_TREES, REMOVES_FILES, WRITES, MOVES, READS, DECODES];
    let passes_on = matches!(name, "eval" | "array_map" | "array_walk");
    if !passes_on && !known.iter().any(|it| it.contains(&name)) {
        return;
    }
    let after = &place.tokens[place.at + 1..];
    let after = &after[..after.len().min(MAX_ARGUMENTS)];
    // Perl: `unlink glob "*.log"`.
    let globs = matches!(after.first(), Some(Token::Name("glob")));
    let (mut strings, plain) = arguments(&after[usize::from(globs)..]);
    let lists = globs
        || after.iter().take(MAX_RECEIVER).any(
            |it| matches!(it, Token::Name(path) if segments(path).any(|it| LISTS.contains(&it))),
        );
    if strings.is_empty() {
        strings.extend(receiver(place));
    }
    if name == "array_map" || name == "array_walk" {
        if let [callback @ ("unlink" | "rmdir"), rest @ ..] = &*strings {
            let target = rest.first().copied().or(place.listed);
            found.push(Found::Rule(removed(callback, target, true, &[])));
        }
        return;
    }
    if DECODES.contains(&name) {
        let decoded = strings.first().and_then(|it| super::decode::base64(it));
        if let Some(decoded) = decoded.filter(|_| place.depth < MAX_DEPTH) {
            program(&decoded, place.depth + 1, found);
            found.push(Found::Shell(decoded));
        }
        return;
    }
    if matches!(name, "exec" | "eval") && place.depth < MAX_DEPTH {
        strings.iter().for_each(|text| program(&unescaped(text), place.depth + 1, found));
    }
    if RUNS.contains(&name) {
        let mut text = strings.join(" ");
        if !text.is_empty() {
            if is_pieced(after) {
                text.push_str(" $_value");
            }
            found.push(Found::Shell(text));
        }
        return;
    }
    let recursive = path == "fs.rm"
        || path.ends_with("promises.rm")
        || path == "Deno.remove" && after.contains(&Token::Name("recursive"));
    // Ruby and Perl: `rm_rf Dir.home`, `remove_tree $dir`.
    let bare =
        matches!(after.first(), Some(Token::Name(it)) if it.starts_with('$') || it.contains('.'));
    let trees = REMOVES_TREES.contains(&name) && (plain || bare) || recursive;
    // Ruby: `File.delete f`. Perl: `unlink for glob "*"`, `unlink $_`, `unlink <*.log>`.
    let follows = matches!(
        (after.first(), name),
        (Some(Token::Name("for" | "foreach") | Token::Mark('<')), "unlink")
    ) || matches!(after.first(), Some(Token::Name(_)))
        && (path.starts_with("File.") || path.starts_with("FileUtils."));
    let angled = angle_brackets(after).filter(|_| name == "unlink");
    // Lists and maps have a `remove` and a `delete` too.
    let of_files = match name {
        "delete" | "remove" | "rm" => segments(path).any(|it| FILE_MODULES.contains(&it)),
        _ => true,
    };
    let files = REMOVES_FILES.contains(&name)
        && of_files
        && (plain || globs || follows || bare && name == "unlink");
    if trees || files {
        let many =
            trees || lists || angled.is_some() || strings.is_empty() && place.listed.is_some();
        let listed = angled.as_deref().or(place.listed).filter(|_| !trees);
        let target = strings.first().copied().or(listed);
        found.push(Found::Rule(removed(name, target, many, after)));
        return;
    }
    touched(name, &strings, found);
}

/// The pattern of Perl's `<*.log>`.
fn angle_brackets(after: &[Token<'_>]) -> Option<String> {
    let [Token::Mark('<'), inside @ ..] = after else { return None };
    let end = inside.iter().take(MAX_ARGUMENTS).position(|it| *it == Token::Mark('>'))?;
    let mut pattern = String::new();
    for token in &inside[..end] {
        match token {
            Token::Name(text) | Token::Text(text) | Token::Backquoted(text) => pattern += text,
            Token::Mark(mark) => pattern.push(*mark),
        }
    }
    Some(pattern)
}

/// What a call is called on: the string in `Path('x').unlink()`.
fn receiver<'t>(place: &Place<'_, 't>) -> Option<&'t str> {
    let before = &place.tokens[..place.at];
    let [rest @ .., Token::Mark(')'), Token::Mark('.')] = before else { return None };
    let near = rest.iter().rev().take(MAX_RECEIVER).take_while(|it| **it != Token::Mark(';'));
    near.into_iter().find_map(|it| match it {
        Token::Text(text) => Some(*text),
        Token::Name(_) | Token::Backquoted(_) | Token::Mark(_) => None,
    })
}

/// How bad it is that a call removes a target: everything in it if there are `many`.
fn removed(name: &str, target: Option<&str>, many: bool, after: &[Token<'_>]) -> &'static str {
    let names_home = after.iter().take(MAX_RECEIVER).any(
        |it| matches!(it, Token::Name(path) if matches!(last(path), "home" | "homedir" | "HOME")),
    );
    let classes = match target {
        Some("HOME") => Classes::HOME,
        None if names_home => Classes::HOME,
        Some(path) if names_home && !path.starts_with('/') => Classes::PERSONAL,
        Some(path) => classes(path),
        None => Classes::UNKNOWN,
    };
    let ruin = Classes::ROOT | Classes::HOME | Classes::SYSTEM | Classes::DEVICE | Classes::PARENT;
    let several = Classes::CWD | Classes::PERSONAL | Classes::REPOSITORY;
    match () {
        () if classes.meets(ruin) => "code-remove-system",
        () if classes.meets(Classes::TEMPORARY | Classes::BUILD) => "code-remove-file",
        () if many && (!REMOVES_FILES.contains(&name) || classes.meets(several)) => {
            "code-remove-tree"
        }
        () => "code-remove-file",
    }
}

/// Where a path in a program points; `~` and `*` are what they are in a shell.
fn classes(path: &str) -> Classes {
    let path = match path.strip_prefix('~') {
        Some(rest) => format!("{TILDE}{rest}"),
        None => path.to_owned(),
    };
    target::classify(&path.replace('*', &STAR.to_string()), "")
}

/// Judges what is written, moved and read.
fn touched(name: &str, strings: &[&str], found: &mut Vec<Found>) {
    let Some(first) = strings.first().copied() else { return };
    let guarded = Classes::DEVICE | Classes::CORE | Classes::RAW;
    if MOVES.contains(&name) {
        let target = strings.last().copied().unwrap_or(first);
        let taken = matches!(name, "move" | "rename" | "renameSync") && strings.len() > 1;
        let ruin = guarded | Classes::ROOT | Classes::HOME;
        if strings.len() > 1 && classes(target).meets(guarded)
            || taken && classes(first).meets(ruin)
        {
            found.push(Found::Rule("code-write-system"));
        }
        return;
    }
    // Perl: `open(F, ">/etc/hosts")`, `open(F, ">", "/etc/hosts")`, `open(F, "date |")`.
    let opened =
        (name == "open").then(|| first.trim_start_matches(['+', '>'])).filter(|it| *it != first);
    if name == "open" && (first.starts_with('|') || first.trim_end().ends_with('|')) {
        return found.push(Found::Shell(first.trim_matches(['|', ' ']).to_owned()));
    }
    let file = match opened {
        Some("") => strings.get(1).copied().unwrap_or_default(),
        Some(file) => file.trim_start(),
        None => first,
    };
    let mode = strings.get(1).copied().unwrap_or("r");
    let writes = WRITES.contains(&name)
        && (name != "open"
            || opened.is_some()
            || mode.starts_with(['w', 'a', '>', 'r']) && !matches!(mode, "r" | "rb" | "rt"));
    let classes = classes(file);
    let secrets = Classes::HASHES | Classes::PRIVATE_KEY | Classes::CREDENTIALS;
    if writes && classes.meets(Classes::LOGIN_KEYS) {
        found.push(Found::Rule("authorized-keys"));
    } else if writes && classes.meets(guarded) {
        found.push(Found::Rule("code-write-system"));
    } else if READS.contains(&name) && !writes && classes.meets(secrets) {
        found.push(Found::Rule("code-read-secret"));
    }
}

/// Perl's `qx(date)` and Ruby's `%x(date)`.
fn quoted_commands(text: &str) -> impl Iterator<Item = &str> {
    let starts = ["qx", "%x"].into_iter().flat_map(|it| text.match_indices(it));
    starts.filter_map(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = &text[at + 2..];
        let close = match after.chars().next()? {
            '(' => ')',
            '{' => '}',
            '[' => ']',
            mark @ ('/' | '!' | '|') => mark,
            _ => return None,
        };
        let inner = &after[1..];
        let whole = before.is_none_or(|it| !it.is_alphanumeric() && it != '%' && it != '$');
        whole.then(|| &inner[..inner.find(close).unwrap_or(inner.len())])
    })
}

/// Calls of Emacs that run or remove something.
pub(super) fn lisp(text: &str) -> Vec<Found> {
    let tokens = tokens(text);
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let Token::Name(name) = token else { continue };
        let rest = tokens[at + 1..].iter().take(MAX_ARGUMENTS);
        let inside = rest.take_while(|it| **it != Token::Mark(')'));
        let strings: Vec<&str> = inside
            .filter_map(|it| match it {
                Token::Text(text) => Some(*text),
                Token::Name(_) | Token::Backquoted(_) | Token::Mark(_) => None,
            })
            .collect();
        match *name {
            "shell-command"
            | "shell-command-to-string"
            | "async-shell-command"
            | "call-process"
            | "start-process"
            | "process-lines"
            | "call-process-shell-command" => {
                found.push(Found::Shell(strings.join(" ")));
            }
            "delete-file" | "delete-directory" => {
                let many = *name == "delete-directory";
                let name = if many { "rmtree" } else { "unlink" };
                found.push(Found::Rule(removed(name, strings.first().copied(), many, &[])));
            }
            _ => {}
        }
    }
    found
}

/// Whether a call's text is put together with a value: `"rm " + name`.
fn is_pieced(after: &[Token<'_>]) -> bool {
    let end = after
        .iter()
        .position(|it| matches!(it, Token::Mark(')' | ';' | '\n')))
        .unwrap_or(after.len());
    after[..end].iter().any(|it| matches!(it, Token::Mark('+' | '%')))
}

/// Whether a text that is no shell is a call that deletes something through a library: `client.items.delete('3')`.
pub(super) fn is_destroying_call(text: &str) -> bool {
    let text = text.trim().trim_start_matches("await ").trim_end_matches(';');
    let Some((path, rest)) = text.split_once('(') else { return false };
    let is_path = path.bytes().all(|it| it.is_ascii_alphanumeric() || b"_.$:->".contains(&it));
    let name = last(path).to_ascii_lowercase();
    let verbs = [
        "delete",
        "destroy",
        "purge",
        "drop",
        "remove",
        "clear",
        "wipe",
        "terminate",
        "void",
        "refund",
        "cancel",
    ];
    is_path
        && path.contains(['.', ':', '>'])
        && rest.ends_with(')')
        && verbs.iter().any(|it| name.starts_with(it))
}

/// The strings of a call, up to its closing bracket or, without brackets, the end of the statement; and whether it is a call.
fn arguments<'t>(after: &[Token<'t>]) -> (Vec<&'t str>, bool) {
    let mut strings = Vec::new();
    let mut depth = 0_usize;
    let is_call = matches!(after.first(), Some(Token::Mark('(') | Token::Text(_)));
    for (at, token) in after.iter().enumerate() {
        match token {
            Token::Mark('(' | '[' | '{') => depth += 1,
            Token::Mark(')' | ']' | '}') => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    break;
                }
            }
            Token::Mark(';' | '\n') if depth == 0 => break,
            Token::Text(text) => strings.push(*text),
            Token::Name(_) if depth == 0 && at == 0 => break,
            Token::Name(_) | Token::Mark(_) | Token::Backquoted(_) => {}
        }
    }
    (
        if is_call || after.first() == Some(&Token::Mark('[')) { strings } else { Vec::new() },
        is_call,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_remove_are_found_in_code() {
        let rule = |text: &str| {
            read(text).into_iter().find_map(|it| match it {
                Found::Rule(rule) => Some(rule),
                Found::Shell(_) => None,
            })
        };
        assert_eq!(rule("import shutil; shutil.rmtree('/usr')"), Some("code-remove-system"));
        assert_eq!(rule("shutil.rmtree(path)"), Some("code-remove-tree"));
        assert_eq!(rule("shutil.rmtree('/tmp/x')"), Some("code-remove-file"));
        assert_eq!(rule("require 'fileutils'; FileUtils.rm_rf \"/\""), Some("code-remove-system"));
        assert_eq!(rule("unlink('/etc/passwd');"), Some("code-remove-system"));
        assert_eq!(rule("print('shutil.rmtree(x)')"), None);
        assert_eq!(rule("# shutil.rmtree(x)"), None);
        assert_eq!(rule("open('/etc/passwd').read()"), None);
        assert_eq!(rule("open('/etc/passwd', 'w')"), Some("code-write-system"));
    }

    #[test]
    fn shell_texts_are_taken_out_of_code() {
        let shell = |text: &str| {
            read(text).into_iter().find_map(|it| match it {
                Found::Shell(text) => Some(text),
                Found::Rule(_) => None,
            })
        };
        assert_eq!(shell("os.system('ls -l')").as_deref(), Some("ls -l"));
        assert_eq!(shell("subprocess.run(['ls', '-l'])").as_deref(), Some("ls -l"));
        assert_eq!(shell("BEGIN { system(\"ls\") }").as_deref(), Some("ls"));
        assert_eq!(shell("puts `ls`").as_deref(), Some("ls"));
        assert_eq!(shell("system 'ls'").as_deref(), Some("ls"));
        assert_eq!(shell("print('x')"), None);
    }
}
