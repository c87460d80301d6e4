//! What flows through a pipe, as far as the text says.

use super::{decode, find::Found, target};
use crate::field::{self, Field};

/// What a command reads or writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Feed {
    /// Nothing is piped.
    Nothing,
    /// This text, markers included.
    Known(String),
    /// Paths, as `find` prints them.
    Found(Found),
    /// What was fetched from elsewhere.
    Download,
    /// A secret.
    Secret,
    /// Something that the text does not hold.
    Unknown,
}

/// Commands that pass on what they read, more or less.
const FILTERS: &[&str] = &[
    "cat", "tee", "head", "tail", "grep", "sed", "awk", "tr", "cut", "sort", "uniq", "base64",
    "base32", "xxd", "openssl", "gunzip", "gzip", "zcat", "xz", "bzip2", "zstd", "rev", "tac",
    "pv", "dos2unix", "iconv", "uudecode", "jq", "python", "perl", "ruby", "tar", "gpg", "strings",
    "od", "hexdump", "envsubst", "nl", "fold", "column", "bsdtar", "lz4",
];

/// Commands that fetch something.
const FETCHERS: &[&str] = &[
    "curl",
    "wget",
    "fetch",
    "aria2c",
    "lwp-request",
    "http",
    "https",
    "xh",
    "lynx",
    "w3m",
    "axel",
];

impl Feed {
    /// What a simple command writes.
    pub(super) fn written_by(name: &str, arguments: &[Field], stdin: &Self) -> Self {
        match name {
            "echo" => echo(arguments),
            "printf" => printf(arguments),
            "tr" if matches!(stdin, Self::Found(_)) && ends_with_null(arguments) => stdin.clone(),
            "base64" | "base32" | "xxd" | "rev" | "tr" | "openssl" => {
                decoded(name, arguments, stdin)
            }
            // What was scheduled before is not part of this text.
            "crontab" if arguments.iter().any(|it| it.text == "-l") => Self::Known(String::new()),
            "pwd" => Self::Known(".\n".to_owned()),
            "mktemp" => Self::Known("/tmp/mktemp.x\n".to_owned()),
            "which" => match arguments {
                [one] if !one.text.starts_with('-') => Self::Known(format!("{}\n", one.text)),
                _ => Self::Unknown,
            },
            "find" | "gfind" => Found::printed(arguments).map_or(Self::Unknown, Self::Found),
            "env" | "printenv" if arguments.is_empty() => Self::Secret,
            "cat" if reads_nothing(arguments) => stdin.clone(),
            _ if FETCHERS.contains(&name) && !arguments.is_empty() => fetched(name, arguments),
            _ if names_secret(name, arguments) || prints_secret(name, arguments) => Self::Secret,
            _ if FILTERS.contains(&name) => match stdin {
                Self::Download => Self::Download,
                Self::Secret => Self::Secret,
                Self::Known(_) | Self::Found(_)
                    if matches!(name, "cat" | "tee" | "sort" | "uniq" | "pv" | "tac") =>
                {
                    stdin.clone()
                }
                Self::Found(found) => chosen(found.clone(), name, arguments),
                Self::Known(_) | Self::Nothing | Self::Unknown => Self::Unknown,
            },
            _ => Self::Unknown,
        }
    }
}

/// Paths that a filter lets pass.
fn chosen(found: Found, name: &str, arguments: &[Field]) -> Feed {
    let options = || arguments.iter().map(|it| it.text.as_str()).filter(|it| it.starts_with('-'));
    let inverts =
        options().any(|it| it == "--invert-match" || !it.starts_with("--") && it.contains('v'));
    match name {
        "grep" if inverts => Feed::Found(found.chosen()),
        "grep" => Feed::Found(found.chosen_by_name()),
        "head" | "tail" => Feed::Found(found.chosen()),
        _ => Feed::Unknown,
    }
}

/// `tr '\n' '\0'` only ends each path in another way.
fn ends_with_null(arguments: &[Field]) -> bool {
    matches!(arguments, [from, to] if from.text == "\\n" && matches!(&*to.text, "\\0" | "\\000"))
}

fn reads_nothing(arguments: &[Field]) -> bool {
    arguments.iter().all(|it| it.text.starts_with('-'))
}

/// What is saved to a file is not written to the pipe.
fn fetched(name: &str, arguments: &[Field]) -> Feed {
    let is = |spelling: &str| arguments.iter().any(|it| it.text == spelling);
    let to_stdout = match name {
        "wget" => {
            arguments.windows(2).any(|pair| {
                (pair[0].text == "--output-document"
                    || pair[0].text.starts_with('-') && pair[0].text.ends_with('O'))
                    && pair[1].text == "-"
            }) || arguments.iter().any(|it| it.text.starts_with('-') && it.text.ends_with("O-"))
                || is("--output-document=-")
        }
        "curl" => !(is("-o") || is("-O") || is("--output") || is("-I") || is("--head")),
        _ => true,
    };
    if to_stdout { Feed::Download } else { Feed::Unknown }
}

fn names_secret(name: &str, arguments: &[Field]) -> bool {
    matches!(
        name,
        "cat"
            | "base64"
            | "xxd"
            | "head"
            | "tail"
            | "less"
            | "more"
            | "strings"
            | "tar"
            | "zip"
            | "gzip"
            | "gpg"
            | "sed"
            | "awk"
            | "grep"
            | "od"
            | "openssl"
    ) && arguments.iter().any(|it| {
        let packs = matches!(name, "tar" | "zip");
        let keys = if packs { target::Classes::KEYS } else { target::Classes::default() };
        target::classify(&it.text, "").meets(target::Classes::SECRET | keys)
    })
}

/// Commands that print a stored secret: the program and words that stand in this order.
const PRINT_SECRETS: &[(&str, &[&str])] = &[
    ("aws", &["secretsmanager", "get-secret-value"]),
    ("az", &["keyvault", "secret", "show"]),
    ("bw", &["get"]),
    ("gcloud", &["secrets", "versions", "access"]),
    ("gcloud", &["auth", "print-access-token"]),
    ("gh", &["auth", "token"]),
    ("gpg", &["--export-secret-keys"]),
    ("kubectl", &["get", "secret"]),
    ("kubectl", &["get", "secrets"]),
    ("op", &["read"]),
    ("pass", &["show"]),
    ("security", &["find-generic-password"]),
    ("vault", &["kv", "get"]),
    ("vault", &["read"]),
];

fn prints_secret(name: &str, arguments: &[Field]) -> bool {
    let follows = |words: &[&str]| {
        let mut given = arguments.iter().map(|it| it.text.as_str());
        words.iter().all(|word| given.any(|it| it == *word))
    };
    PRINT_SECRETS.iter().any(|(program, words)| *program == name && follows(words))
}

fn echo(arguments: &[Field]) -> Feed {
    let options = arguments.iter().take_while(|it| is_echo_option(&it.text)).count();
    let escapes = arguments[..options].iter().any(|it| it.text.contains('e'));
    let newline = !arguments[..options].iter().any(|it| it.text.contains('n'));
    let mut text = joined(&arguments[options..]);
    if escapes {
        let Some(undone) = decode::escapes(&text) else { return Feed::Unknown };
        text = undone;
    }
    if newline {
        text.push('\n');
    }
    Feed::Known(text)
}

fn is_echo_option(text: &str) -> bool {
    text.strip_prefix('-')
        .is_some_and(|it| !it.is_empty() && it.bytes().all(|byte| b"neE".contains(&byte)))
}

/// Arguments as one text, as `echo` and `eval` join them.
pub(super) fn joined(arguments: &[Field]) -> String {
    let mut text = String::new();
    for (at, argument) in arguments.iter().enumerate() {
        if at > 0 {
            text.push(' ');
        }
        text.push_str(&argument.text);
    }
    text
}

fn printf(arguments: &[Field]) -> Feed {
    let arguments = match arguments {
        [first, rest @ ..] if first.text == "--" => rest,
        all => all,
    };
    let Some((format, rest)) = arguments.split_first() else { return Feed::Nothing };
    let rest: Vec<&str> = rest.iter().map(|it| it.text.as_str()).collect();
    decode::printf(&format.text, &rest).map_or(Feed::Unknown, Feed::Known)
}

fn decoded(name: &str, arguments: &[Field], stdin: &Feed) -> Feed {
    let given = |spellings: &[&str]| {
        arguments
            .iter()
            .any(|it| spellings.contains(&&*it.text) || bundle_holds(&it.text, spellings))
    };
    let decodes = match name {
        "base64" | "base32" => given(&["-d", "-D", "--decode"]),
        "xxd" => given(&["-r"]),
        "openssl" => {
            given(&["-d"])
                && arguments.iter().any(|it| matches!(&*it.text, "base64" | "-base64" | "-a"))
        }
        _ => true,
    };
    let input = match stdin {
        Feed::Known(text) if field::is_literal(text) => text.trim_end_matches('\n'),
        Feed::Download if decodes => return Feed::Download,
        Feed::Secret => return Feed::Secret,
        _ if names_secret(name, arguments) => return Feed::Secret,
        Feed::Known(_) | Feed::Found(_) | Feed::Nothing | Feed::Download | Feed::Unknown => {
            return Feed::Unknown;
        }
    };
    let output = match (name, decodes) {
        ("base64" | "openssl", true) => decode::base64(input),
        ("base32", true) => decode::base32(input),
        ("xxd", true) => decode::hex(input),
        ("rev", true) => {
            Some(input.lines().map(|it| it.chars().rev().collect::<String>() + "\n").collect())
        }
        ("tr", true) => match arguments {
            [from, to] => decode::translate(input, &from.text, &to.text),
            _ => None,
        },
        _ => None,
    };
    output.map_or(Feed::Unknown, Feed::Known)
}

fn bundle_holds(text: &str, spellings: &[&str]) -> bool {
    !text.starts_with("--")
        && text.starts_with('-')
        && spellings.iter().filter(|it| it.len() == 2).any(|it| text.contains(&it[1..]))
}
