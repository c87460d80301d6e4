//! Names such as `password` that are given a literal value.
//!
//! The syntax is that of many languages at once: a name, perhaps quoted or
//! subscripted, an operator or a call, and a value, quoted or up to the end of the
//! line. A comparison gives a secret away like an assignment does, from either side.

use std::{ops::Range, sync::LazyLock};

use aho_corasick::AhoCorasick;

use super::{placeholder, shape::is_word};

/// Pieces of names that hold secrets, whatever the case of their letters.
const KEYWORDS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "db_pass",
    "dbpass",
    "db-pass",
    "database_pass",
    "key_pass",
    "keypass",
    "contraseña",
    "contrasena",
    "secret",
    "api_key",
    "api-key",
    "api key",
    "apikey",
    "auth_key",
    "auth-key",
    "authkey",
    "service_key",
    "service-key",
    "servicekey",
    "account_key",
    "account-key",
    "accountkey",
    "access_key",
    "access-key",
    "accesskey",
    "db_key",
    "db-key",
    "dbkey",
    "database_key",
    "database-key",
    "databasekey",
    "private_key",
    "private-key",
    "privatekey",
    "priv_key",
    "priv-key",
    "privkey",
    "client_key",
    "client-key",
    "clientkey",
    "encryption_key",
    "signing_key",
    "token",
];

/// Endings of names that tell about a secret instead of holding it.
const ABOUT: &[&str] = &[
    "name",
    "names",
    "file",
    "path",
    "dir",
    "url",
    "uri",
    "endpoint",
    "id",
    "ids",
    "length",
    "len",
    "size",
    "min",
    "max",
    "count",
    "policy",
    "type",
    "label",
    "placeholder",
    "hint",
    "field",
    "env",
    "var",
    "version",
    "ttl",
    "expiry",
    "expires",
    "rotation",
    "manager",
    "store",
    "ref",
    "format",
    "prefix",
    "regex",
    "pattern",
    "algorithm",
    "strength",
    "error",
    "message",
    "prompt",
    "title",
    "description",
    "less",
    "provider",
    "public",
    "reset",
    "required",
    "help",
    "salt",
    "hash",
    "hasher",
    "confirmation",
];

/// Words that merely begin like a keyword.
const OTHER_WORDS: &[&str] = &[
    "secretary",
    "secretaries",
    "secretariat",
    "secretive",
    "secretly",
    "secretion",
    "secretions",
];

/// Longest name on either side of a keyword, in bytes.
const LONGEST_NAME: usize = 64;

/// Longest value, in bytes.
const LONGEST_VALUE: usize = 512;

/// Shortest value, in characters.
const SHORTEST_VALUE: usize = 4;

/// Shortest value that is told in a sentence, in bytes.
const SHORTEST_WORD: usize = 6;

/// Shortest value of something called a token: what parsers call a token is shorter.
const SHORTEST_TOKEN: usize = 16;

static LITERALS: LazyLock<AhoCorasick> = LazyLock::new(|| {
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .build(KEYWORDS)
        .expect("a short list of literals")
});

/// How a name and its value are joined.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Join {
    /// `=`, `:=`, `=>`, `==` and the like.
    Operator,
    /// `:`, which prose has too.
    Colon,
    /// `name("value")`, `name "value"`.
    Call,
    /// `<name>value</name>`
    Tag,
    /// `name is value`
    Is,
}

/// A name that holds a keyword.
struct Name<'t> {
    text: &'t str,
    span: Range<usize>,
}

/// Where literal values are given to names of secrets, in text order.
pub(super) fn scan(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut done = 0;
    LITERALS.find_iter(text).filter_map(move |keyword| {
        if keyword.start() < done {
            return None;
        }
        let name = name_around(text, keyword.range());
        done = name.span.end;
        if !is_secret_name(&name) {
            return None;
        }
        let value = value_after(text, &name).or_else(|| value_before(text, &name))?;
        done = done.max(value.end);
        Some(value)
    })
}

fn name_around(text: &str, keyword: Range<usize>) -> Name<'_> {
    let bytes = text.as_bytes();
    let in_name = |it: &&u8| is_word(**it) || **it == b'-' || **it == b'.';
    let before = bytes[..keyword.start].iter().rev().take(LONGEST_NAME).take_while(in_name).count();
    let after = bytes[keyword.end..]
        .iter()
        .take(LONGEST_NAME)
        .take_while(|it| is_word(**it) || **it == b'-')
        .count();
    let span = keyword.start - before..keyword.end + after;
    Name { text: &text[span.clone()], span }
}

fn is_secret_name(name: &Name<'_>) -> bool {
    let lower = name.text.to_ascii_lowercase();
    let last = lower.rsplit(['_', '-', '.']).next().unwrap_or("");
    let about = ABOUT.contains(&last)
        || ABOUT.iter().any(|it| {
            last.len() > 4
                && last.ends_with(it)
                && KEYWORDS.contains(&&last[..last.len() - it.len()])
        });
    !about
        && !OTHER_WORDS.contains(&last)
        && !lower.contains("tokeniz")
        && !last.ends_with("tokens")
}

/// The value to the right of a name.
fn value_after(text: &str, name: &Name<'_>) -> Option<Range<usize>> {
    let start = name.span.end;
    let end = text.floor_char_boundary(start + LONGEST_VALUE);
    let line = &text[start..end];
    let line = &line[..line.find(['\n', '\r']).unwrap_or(line.len())];
    let (join, at) = join(name, text[..name.span.start].ends_with('<'), line)?;
    // `arn:aws:…:secret:prod/db` is the name of one.
    if join == Join::Colon && text[..name.span.start].ends_with(':') {
        return None;
    }
    let at = start + at;
    let rest = &text[at..start + line.len()];
    match literal(rest) {
        Some(value) => {
            let value = at + value.start..at + value.end;
            (!opens_inside_quotes(text, name, at)
                && is_quoted_secret(name, &text[value.clone()], join))
            .then_some(value)
        }
        None => bare(text, name, rest, join).map(|length| at..at + length),
    }
}

/// Where the value starts on the rest of a name's line, and what leads to it.
fn join(name: &Name<'_>, in_tag: bool, line: &str) -> Option<(Join, usize)> {
    const OPERATORS: &[&str] =
        &["===", "!==", "==", "!=", ":=", "=>", "||=", "?=", "+=", "->", "<-", "=", "string ="];
    let mut rest = line.strip_prefix(['"', '\'', '`']).unwrap_or(line);
    rest = rest.strip_prefix("**").unwrap_or(rest);
    // `secret[]`, `secret[32]`, `config["secret"]`.
    if let Some(inside) = rest.strip_prefix('[') {
        rest = inside
            .trim_start_matches(|it: char| it.is_ascii_digit() || it == '_')
            .strip_prefix(']')?;
    } else {
        rest = rest.strip_prefix(']').unwrap_or(rest);
    }
    let spaced = rest.trim_start();
    let at = |rest: &str| line.len() - rest.trim_start().len();
    if let Some(rest) = OPERATORS.iter().find_map(|it| spaced.strip_prefix(it)) {
        return Some((Join::Operator, at(rest)));
    }
    if let Some(rest) = spaced.strip_prefix(':').or_else(|| spaced.strip_prefix("?:")) {
        let rest = rest.strip_prefix("**").unwrap_or(rest);
        // `password: str = "…"`
        if let Some((kind, value)) = rest.split_once('=')
            && kind.len() < 40
            && kind.trim().starts_with(|it: char| it.is_alphabetic() || it == '&')
            && kind.trim().chars().all(|it| it.is_alphanumeric() || "_&<>[]' .:|".contains(it))
        {
            let value = value.trim_start_matches('=');
            return Some((Join::Operator, at(value)));
        }
        return Some((Join::Colon, at(rest)));
    }
    if in_tag && let Some(rest) = spaced.strip_prefix('>') {
        return Some((Join::Tag, at(rest)));
    }
    if let Some(rest) = spaced.strip_prefix("is:").or_else(|| spaced.strip_prefix("is ")) {
        return Some((Join::Is, at(rest)));
    }
    if name.text.starts_with("--") && rest.starts_with(' ') {
        return Some((Join::Is, at(rest)));
    }
    if let Some(rest) = spaced.strip_prefix('(') {
        return Some((Join::Call, at(rest)));
    }
    let apart = spaced.len() < rest.len() || rest.starts_with(',');
    let spaced = spaced.strip_prefix(',').unwrap_or(spaced).trim_start();
    (apart && spaced.starts_with(['"', '\'', '`'])).then_some((Join::Call, at(spaced)))
}

/// The inside of the quotes that a text starts with.
fn literal(text: &str) -> Option<Range<usize>> {
    const PREFIXES: &[&str] = &["@", "b", "r", "u8", "u", "L", "f", "S"];
    let start = PREFIXES
        .iter()
        .find(|it| text.strip_prefix(**it).is_some_and(|rest| rest.starts_with(['"', '\'', '`'])))
        .map_or(0, |it| it.len());
    let quote = text[start..].chars().next().filter(|it| matches!(it, '"' | '\'' | '`'))?;
    let length = text[start + 1..].find(quote)?;
    Some(start + 1..start + 1 + length)
}

/// Whether what looks like an opening quote closes the text that the name is part of:
/// `print("password: ", x, "…")`.
fn opens_inside_quotes(text: &str, name: &Name<'_>, at: usize) -> bool {
    let Some(quote) = text[at..].chars().find(|it| matches!(it, '"' | '\'' | '`')) else {
        return false;
    };
    let line_start = text.as_bytes()[..name.span.start]
        .iter()
        .rev()
        .take(LONGEST_VALUE)
        .take_while(|it| **it != b'\n')
        .count();
    let before = &text.as_bytes()[name.span.start - line_start..name.span.start];
    let key_is_quoted = text[name.span.end..].starts_with(quote);
    let open = memchr::memchr_iter(quote as u8, before).count() % 2 == 1;
    open && !key_is_quoted
}

fn is_quoted_secret(name: &Name<'_>, value: &str, join: Join) -> bool {
    let plain_word = value.chars().all(char::is_alphabetic);
    holds_secret(name, value)
        && !value.starts_with([',', ';', ')', ' '])
        && !placeholder::is_prose(value)
        && !(join == Join::Call && (plain_word || value.contains(char::is_whitespace)))
}

/// How long the secret is that a text without quotes starts with.
fn bare(text: &str, name: &Name<'_>, rest: &str, join: Join) -> Option<usize> {
    if join == Join::Call || !rest.starts_with(|it: char| it.is_ascii_alphanumeric()) {
        return None;
    }
    let rest = if join == Join::Tag { &rest[..rest.find("</")?] } else { rest };
    let line = rest.trim_end().trim_end_matches([',', ';', '"', '\'', '`']);
    let word = &line[..line.find(char::is_whitespace).unwrap_or(line.len())];
    let one = word.len() == line.len();
    if one && join != Join::Is {
        let telling = line.chars().any(|it| !it.is_alphabetic());
        let secret = telling && !is_code(line) && !is_variable(line) && holds_secret(name, line);
        return secret.then_some(line.len());
    }
    // A line of a configuration file, from its very start; anywhere else it is a sentence.
    let starts_line = name.span.start == 0 || text.as_bytes()[name.span.start - 1] == b'\n';
    let is_setting = starts_line && name.text.contains('_') && join != Join::Is;
    if is_setting && is_plain(line) && !placeholder::is_prose(line) && holds_secret(name, line) {
        return Some(line.len());
    }
    // In a sentence, one word that no language has.
    let word = word.trim_end_matches(['.', ',', ';', ':', '"', '\'', '`', ')', '*']);
    let odd = word.len() >= SHORTEST_WORD
        && word.contains(|it: char| it.is_ascii_digit())
        && word.contains(char::is_alphabetic)
        && !word.contains('(');
    (odd && !is_code(word) && !is_variable(word) && holds_secret(name, word)).then_some(word.len())
}

/// Whether a text has nothing in it that only code has.
fn is_plain(value: &str) -> bool {
    value.chars().all(|it| it.is_alphanumeric() || it == ' ')
}

/// Whether an unquoted value is an expression: `load(x)`, `env["X"]`, `Option<String>`, `self.key`.
fn is_code(value: &str) -> bool {
    let path = value.trim_start_matches(|it: char| it.is_alphanumeric() || "_.:->?".contains(it));
    let head = &value[..value.len() - path.len()];
    let opens = ["(", "[", "<", "!(", "!["].iter().any(|it| path.starts_with(it));
    let closes = path.len() == 1 || path.ends_with([')', ']', '>', '(', '[', '?']);
    let called = opens && closes && head.starts_with(|it: char| it.is_alphabetic() || it == '_');
    let dotted = path.is_empty()
        && value.contains(['.', ':'])
        && value.split(['.', ':']).all(|it| it.is_empty() || placeholder::is_identifier(it));
    called || dotted
}

/// Whether an unquoted value is a name: without digits, or all capitals.
fn is_variable(value: &str) -> bool {
    placeholder::is_identifier(value)
        && (!value.contains(|it: char| it.is_ascii_digit()) || value.contains('_'))
}

/// Whether a value may be a secret, however it was written down.
fn holds_secret(name: &Name<'_>, value: &str) -> bool {
    let length = value.chars().count();
    let lower = name.text.to_ascii_lowercase();
    let is_token = lower.contains("token");
    let strong = length >= SHORTEST_TOKEN
        && !value.contains(char::is_whitespace)
        && value.contains(|it: char| it.is_ascii_digit())
        && value.contains(char::is_alphabetic);
    length >= SHORTEST_VALUE
        && (!is_token || strong)
        && value.contains(char::is_alphanumeric)
        && !value.eq_ignore_ascii_case(name.text)
        && !placeholder::is_reference(value)
        && !placeholder::is_stand_in(value)
}

/// The literal that a name is compared with, to the left of it.
fn value_before(text: &str, name: &Name<'_>) -> Option<Range<usize>> {
    let from = text.ceil_char_boundary(name.span.start.saturating_sub(LONGEST_VALUE));
    let line = &text[from..name.span.start];
    let line = &line[line.rfind('\n').map_or(0, |it| it + 1)..];
    let left = line.trim_end_matches(['$', '@', '&', '*']).trim_end();
    let left = ["!==", "===", "!=", "=="].iter().find_map(|it| left.strip_suffix(it))?.trim_end();
    let quote = left.chars().next_back().filter(|it| matches!(it, '"' | '\'' | '`'))?;
    let inside = &left[..left.len() - 1];
    let value = &inside[inside.rfind(quote)? + 1..];
    let end = name.span.start - line.len() + inside.len();
    is_quoted_secret(name, value, Join::Operator).then_some(end - value.len()..end)
}
