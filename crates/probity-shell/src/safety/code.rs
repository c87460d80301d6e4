//! Other languages' one-liners, read for the plain calls that destroy something or run a shell; and SQL.
//!
//! This is no parser of Python or Perl: strings and names are told apart, and a call is a name followed by its strings.

use super::target::{self, Classes};
use crate::field::TILDE;

/// What a program does.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Something a check is about.
    Rule(&'static str),
    /// It runs a shell with this text.
    Shell(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'t> {
    /// A name with its dots, `os.path.join`.
    Name(&'t str),
    Text(&'t str),
    /// Text between backquotes: Perl and Ruby run it.
    Backquoted(&'t str),
    Mark(char),
}

/// Calls that give a text to a shell or run a program.
const RUNS: &[&str] = &[
    "Popen",
    "call",
    "check_call",
    "check_output",
    "exec",
    "execFileSync",
    "execSync",
    "execl",
    "execlp",
    "execv",
    "execvp",
    "exec_command",
    "getoutput",
    "getstatusoutput",
    "passthru",
    "popen",
    "popen2",
    "proc_open",
    "run",
    "shell_exec",
    "spawn",
    "spawnSync",
    "system",
    "execFile",
    "do_shell_script",
    "execute",
];

const REMOVES_TREES: &[&str] = &[
    "rmtree",
    "rm_rf",
    "rm_r",
    "remove_dir",
    "remove_tree",
    "rmSync",
    "rmdirSync",
    "rimraf",
    "removeSync",
    "remove_entry_secure",
    "rmrf",
    "emptyDirSync",
    "delete_tree",
];

const REMOVES_FILES: &[&str] =
    &["remove", "unlink", "unlinkSync", "rmdir", "removedirs", "delete", "rm"];

const WRITES: &[&str] = &["open", "writeFileSync", "file_put_contents", "write", "truncate"];

/// How many tokens of a call are looked at.
const MAX_ARGUMENTS: usize = 128;

/// Reads a program.
pub(super) fn read(text: &str) -> Vec<Found> {
    let tokens = tokens(text);
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Name(path) => call(path, &tokens[at + 1..], &mut found),
            Token::Backquoted(text) => found.push(Found::Shell((*text).to_owned())),
            // awk: `print | "sh"`, `"date" | getline`.
            Token::Text(text) if at > 0 && tokens[at - 1] == Token::Mark('|') => {
                found.push(Found::Shell((*text).to_owned()));
            }
            Token::Text(_) | Token::Mark(_) => {}
        }
    }
    let names = |wanted: &[&str]| {
        tokens.iter().any(|it| matches!(it, Token::Name(path) if wanted.contains(&last(path))))
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
    ]) || text.contains("/inet/tcp");
    let shell = text.contains("/bin/sh")
        || text.contains("/bin/bash")
        || text.contains("cmd.exe")
        || names(&["dup2", "pty"]);
    if connects && shell {
        found.push(Found::Rule("socket-shell"));
    }
    let endless = names(&["while", "for", "loop", "True"]);
    if names(&["fork"]) && endless {
        found.push(Found::Rule("fork-bomb"));
    }
    if names(&[
        "urlopen",
        "urlretrieve",
        "LWP",
        "file_get_contents",
        "fetch",
        "requests.get",
        "open-uri",
    ]) && text.contains("http")
        && names(&["exec", "eval", "execfile", "instance_eval"])
    {
        found.push(Found::Rule("download-run"));
    }
    found
}

fn last(path: &str) -> &str {
    path.rsplit(['.', ':', '>']).next().unwrap_or(path)
}

fn call(path: &str, after: &[Token<'_>], found: &mut Vec<Found>) {
    let name = last(path);
    if ![RUNS, REMOVES_TREES, REMOVES_FILES, WRITES].iter().any(|it| it.contains(&name)) {
        return;
    }
    let after = &after[..after.len().min(MAX_ARGUMENTS)];
    let (strings, plain) = arguments(after);
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
    let classes = match strings.first() {
        Some(path) => target::classify(
            &path.replacen('~', &TILDE.to_string(), usize::from(path.starts_with('~'))),
            "",
        ),
        None => Classes::UNKNOWN,
    };
    let ruin = Classes::ROOT | Classes::HOME | Classes::SYSTEM | Classes::DEVICE | Classes::PARENT;
    let spared = Classes::TEMPORARY | Classes::BUILD;
    let recursive = path == "fs.rm" || path.ends_with("promises.rm");
    if REMOVES_TREES.contains(&name) && plain || recursive {
        let rule = match () {
            () if classes.meets(ruin) => "code-remove-system",
            () if classes.meets(spared) => "code-remove-file",
            () => "code-remove-tree",
        };
        found.push(Found::Rule(rule));
    } else if REMOVES_FILES.contains(&name)
        && (path.contains('.') || matches!(name, "unlink" | "rmdir"))
        && plain
    {
        found.push(Found::Rule(if classes.meets(ruin) {
            "code-remove-system"
        } else {
            "code-remove-file"
        }));
    } else if WRITES.contains(&name) {
        let writes = name != "open"
            || strings.get(1).is_some_and(|it| {
                it.starts_with(['w', 'a', '>', 'r']) && *it != "r" && *it != "rb"
            });
        if writes && classes.meets(Classes::DEVICE | Classes::CORE) && !strings.is_empty() {
            found.push(Found::Rule("code-write-system"));
        }
    }
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

fn tokens(text: &str) -> Vec<Token<'_>> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        let start = at;
        match byte {
            b'\'' | b'"' | b'`' => {
                let triple = text[at..].starts_with("\"\"\"") || text[at..].starts_with("'''");
                let quote = if triple { &text[at..at + 3] } else { &text[at..=at] };
                let from = at + quote.len();
                let end = closing(text, from, quote);
                let inner = &text[from..end];
                tokens.push(match byte {
                    b'`' => Token::Backquoted(inner),
                    _ => Token::Text(inner),
                });
                at = (end + quote.len()).min(bytes.len());
            }
            b'#' if start == 0 || bytes[start - 1].is_ascii_whitespace() => {
                at = text[at..].find('\n').map_or(bytes.len(), |it| at + it);
            }
            b'/' if text[at..].starts_with("//") => {
                at = text[at..].find('\n').map_or(bytes.len(), |it| at + it);
            }
            _ if byte.is_ascii_alphabetic() || byte == b'_' || byte == b'$' => {
                let is_name = |it: &u8| it.is_ascii_alphanumeric() || b"_.:$-".contains(it);
                let mut end = at + bytes[at..].iter().take_while(|it| is_name(it)).count();
                // `a-b` is a subtraction unless it is an arrow; `->` joins names.
                while text[end..].starts_with('>') && text[..end].ends_with('-') {
                    end += 1 + bytes[end + 1..].iter().take_while(|it| is_name(it)).count();
                }
                tokens.push(Token::Name(text[at..end].trim_end_matches([':', '.', '-'])));
                at = end;
            }
            _ if byte.is_ascii() => {
                at += 1;
                if byte == b'\n' || !byte.is_ascii_whitespace() {
                    tokens.push(Token::Mark(char::from(byte)));
                }
            }
            _ => at += text[at..].chars().next().map_or(1, char::len_utf8),
        }
    }
    tokens
}

fn closing(text: &str, from: usize, quote: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = from;
    while at < bytes.len() {
        if bytes[at] == b'\\' {
            at += 2;
        } else if text.is_char_boundary(at) && text[at..].starts_with(quote) {
            return at;
        } else {
            at += 1;
        }
    }
    text.len()
}

/// What a text of SQL statements destroys, the worst of it.
pub(super) fn sql(text: &str) -> Option<&'static str> {
    let statements = sql_statements(text);
    let judged = statements.iter().filter_map(|words| statement(words));
    judged.max_by_key(|it| *it != "sql-write")
}

/// Statements as upper-case words; strings, comments and quotes are left out.
fn sql_statements(text: &str) -> Vec<Vec<String>> {
    let mut statements = vec![Vec::new()];
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let length = match character {
            '\'' => string_length(rest),
            '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |it| it + 2),
            ';' => {
                statements.push(Vec::new());
                1
            }
            _ if character.is_alphanumeric() || character == '_' => {
                let end = rest
                    .find(|it: char| !(it.is_alphanumeric() || it == '_' || it == '.'))
                    .unwrap_or(rest.len());
                if let Some(words) = statements.last_mut() {
                    words.push(rest[..end].to_ascii_uppercase());
                }
                end
            }
            '=' => {
                if let Some(words) = statements.last_mut() {
                    words.push("=".to_owned());
                }
                1
            }
            _ => character.len_utf8(),
        };
        rest = &rest[length.max(1).min(rest.len())..];
    }
    statements
}

fn string_length(text: &str) -> usize {
    text[1..].find('\'').map_or(text.len(), |it| it + 2)
}

fn statement(words: &[String]) -> Option<&'static str> {
    let at = |index: usize| words.get(index).map_or("", String::as_str);
    let has = |word: &str| words.iter().any(|it| it == word);
    let always_true = || {
        words.windows(4).any(|it| it[0] == "WHERE" && it[1] == it[3] && it[2] == "=")
            || (at(words.len().saturating_sub(2)) == "WHERE" && at(words.len() - 1) == "TRUE")
    };
    match (at(0), at(1)) {
        ("DROP", "DATABASE" | "SCHEMA" | "KEYSPACE" | "CATALOG") => Some("sql-drop-database"),
        ("DROP", "VIEW" | "INDEX" | "TRIGGER" | "FUNCTION" | "PROCEDURE" | "POLICY") => {
            Some("sql-drop")
        }
        ("DROP", kind) if !kind.is_empty() => Some("sql-drop"),
        ("TRUNCATE", _) if words.len() > 1 => Some("sql-truncate"),
        ("DELETE", _) if has("FROM") && (!has("WHERE") || always_true()) => Some("sql-delete-all"),
        ("UPDATE", _) if has("SET") && (!has("WHERE") || always_true()) => Some("sql-update-all"),
        ("DELETE" | "UPDATE" | "INSERT", _) if words.len() > 2 => Some("sql-write"),
        ("ALTER", "TABLE") if has("DROP") => Some("sql-drop-column"),
        ("GRANT", "ALL") | ("REVOKE", _) => Some("sql-grant"),
        ("SHUTDOWN" | "FLUSH", _) if words.len() == 1 => Some("sql-drop"),
        _ => None,
    }
}

/// What a mongo script destroys.
pub(super) fn mongo(text: &str) -> Option<&'static str> {
    let calls = |name: &str| {
        text.match_indices(name)
            .any(|(at, _)| text[at + name.len()..].trim_start().starts_with('('))
    };
    match () {
        () if calls(".dropDatabase") => Some("mongo-drop-database"),
        () if [
            ".drop",
            ".dropCollection",
            ".dropIndexes",
            ".dropUser",
            ".dropAllUsers",
            ".dropIndex",
        ]
        .iter()
        .any(|it| calls(it)) =>
        {
            Some("mongo-drop")
        }
        () if [
            ".deleteMany",
            ".remove",
            ".findAndRemove",
            ".bulkWrite",
            ".shutdownServer",
            ".deleteOne",
        ]
        .iter()
        .any(|it| calls(it)) =>
        {
            Some("mongo-delete")
        }
        () => None,
    }
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

    #[test]
    fn sql_is_read_by_statement() {
        for (text, expected) in [
            ("DROP TABLE parcels", Some("sql-drop")),
            ("drop database depot;", Some("sql-drop-database")),
            ("SELECT 'DROP TABLE parcels'", None),
            ("-- DROP TABLE parcels\nSELECT 1", None),
            ("SELECT 1; TRUNCATE parcels", Some("sql-truncate")),
            ("DELETE FROM parcels", Some("sql-delete-all")),
            ("DELETE FROM parcels WHERE 1=1", Some("sql-delete-all")),
            ("DELETE FROM parcels WHERE id = 3", Some("sql-write")),
            ("SELECT * FROM drops", None),
        ] {
            assert_eq!(sql(text), expected, "{text}");
        }
    }
}
