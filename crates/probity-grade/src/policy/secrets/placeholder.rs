//! Telling a secret from what stands for one.

/// Words that say that a value is not meant to be used.
const STAND_INS: &[&str] = &[
    "changeme",
    "change_me",
    "change-me",
    "dummy",
    "example",
    "fake",
    "placeholder",
    "redacted",
    "replace",
    "todo",
    "your",
    "my_password",
    "mypassword",
    "my_secret",
    "my-secret",
    "insert",
    "_here",
    "-here",
    "xxxx",
    "****",
    "....",
    "dotenv",
    "process.env",
    "os.environ",
    "getenv",
    "hidden",
    "masked",
    "omitted",
];

/// Values that are no literals, or say that there is none.
const NOT_VALUES: &[&str] = &[
    "null",
    "none",
    "nil",
    "undefined",
    "true",
    "false",
    "yes",
    "no",
    "empty",
    "string",
    "str",
    "text",
    "bytes",
    "password",
    "passwd",
    "pass",
    "secret",
    "token",
    "apikey",
    "api_key",
    "key",
    "value",
    "optional",
    "required",
    "disabled",
    "enabled",
    "unset",
    "default",
    "n/a",
    "unknown",
    "varchar",
    "char",
    "input",
    "hash",
    "hashed",
    "encrypted",
    "plaintext",
    "base64",
];

/// Words of sentences about passwords; a pass phrase does without them.
const PROSE: &[&str] = &[
    "a",
    "an",
    "the",
    "is",
    "are",
    "be",
    "must",
    "should",
    "can",
    "cannot",
    "your",
    "you",
    "please",
    "enter",
    "password",
    "passwords",
    "secret",
    "secrets",
    "key",
    "keys",
    "token",
    "required",
    "invalid",
    "incorrect",
    "wrong",
    "forgot",
    "reset",
    "at",
    "least",
    "to",
    "of",
    "for",
    "this",
    "that",
    "it",
    "not",
    "optional",
    "string",
];

/// Whether a token says itself that it is none.
pub(super) fn says_so(token: &str) -> bool {
    let token = token.to_ascii_lowercase();
    ["example", "placeholder", "xxxxxx", "abcdefghijklmnop", "0123456789abcdef"]
        .iter()
        .any(|it| token.contains(it))
}

/// Whether a value refers to something else: `${VAR}`, `<your key>`, `{{ x }}`, `%s`.
pub(super) fn is_reference(value: &str) -> bool {
    let value = value.trim();
    let enclosed = [
        ("${", "}"),
        ("$(", ")"),
        ("{", "}"),
        ("<", ">"),
        ("[", "]"),
        ("%", "%"),
        ("#{", "}"),
        ("(", ")"),
    ]
    .iter()
    .any(|(open, close)| {
        value.len() > open.len() && value.starts_with(open) && value.ends_with(close)
    });
    let variable = value.strip_prefix('$').is_some_and(is_identifier);
    let format = matches!(value, "%s" | "%d" | "%v" | "?" | "%@")
        || (value.starts_with("%(") && value.ends_with(")s"));
    enclosed || variable || format || holds_variable(value)
}

/// Whether a value consists of one or two characters, over and over.
pub(super) fn is_filler(value: &str) -> bool {
    let mut different: Vec<char> = Vec::with_capacity(3);
    for letter in value.chars() {
        if !different.contains(&letter) {
            different.push(letter);
        }
        if different.len() > 2 {
            return false;
        }
    }
    true
}

/// Whether a value stands for a secret, or for none.
pub(super) fn is_stand_in(value: &str) -> bool {
    let lower = value.trim().to_lowercase();
    is_filler(&lower)
        || NOT_VALUES.contains(&lower.as_str())
        || STAND_INS.iter().any(|it| lower.contains(it))
        || (lower.contains("://") && !lower.contains('@'))
}

/// Whether a value reads like a sentence about secrets.
pub(super) fn is_prose(value: &str) -> bool {
    let words = || value.split(|it: char| !it.is_alphanumeric()).filter(|it| !it.is_empty());
    value.trim().contains(char::is_whitespace)
        && words().any(|word| PROSE.contains(&word.to_lowercase().as_str()))
}

/// Whether a text could be the name of a variable.
pub(super) fn is_identifier(text: &str) -> bool {
    text.starts_with(|it: char| it.is_alphabetic() || it == '_')
        && text.chars().all(|it| it.is_alphanumeric() || it == '_')
}

/// Whether `${name}` or `{{name}}` stands anywhere in the value.
fn holds_variable(value: &str) -> bool {
    [("${", "}"), ("{{", "}}"), ("<%", "%>")].iter().any(|(open, close)| {
        value.split_once(open).and_then(|(_, rest)| rest.split_once(close)).is_some_and(
            |(name, _)| {
                let name = name.trim().trim_start_matches('=').trim();
                !name.is_empty()
                    && name.chars().all(|it| it.is_alphanumeric() || "_.- :".contains(it))
            },
        )
    })
}
