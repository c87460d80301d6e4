//! Requests to other people's services, and tools that no rule knows.

use super::{
    call::{Call, Kind},
    data,
    feed::Feed,
    target::{Classes, classify},
    unwrap::base_name,
    walk::Walker,
};

/// Judges a request made with curl, wget or httpie.
pub(super) fn check(walker: &mut Walker<'_>, call: &Call<'_>, stdin: &Feed) {
    let data: Vec<&str> = call
        .values(&[
            "-d",
            "--data",
            "--data-raw",
            "--data-binary",
            "--data-urlencode",
            "--json",
            "-F",
            "--form",
            "--post-data",
            "--body-data",
            "--post-file",
            "--body-file",
            "-T",
            "--upload-file",
        ])
        .flatten()
        .collect();
    let secret = |it: &&str| {
        let file = it.rsplit(['@', '=', '<']).next().unwrap_or(it);
        classify(file, call.cwd).meets(Classes::SECRET) || it.contains("/etc/passwd")
    };
    if data.iter().any(secret)
        || (*stdin == Feed::Secret && (!data.is_empty() || call.name != "curl"))
    {
        walker.report_check("send-secret", call.span);
    }
    let method = method(call, &data);
    if method == "DELETE" || method == "PURGE" {
        return walker.report_check("http-delete", call.span);
    }
    let url = call
        .args
        .iter()
        .find(|it| it.kind != Kind::Option && is_url(it.text))
        .map_or("", |it| it.text);
    let action = url.contains("Action=Delete") || url.contains("Action=Terminate");
    if action || method != "GET" && destroys(url) || data.iter().any(|it| mutation_destroys(it)) {
        walker.report_check("http-destroy", call.span);
    }
}

/// The file that a fetched text is saved as.
pub(super) fn saved_as<'a>(call: &Call<'a>) -> Option<&'a str> {
    let url = || {
        let url = call.operands(0).map(|it| it.text).find(|it| is_url(it))?;
        url.split(['?', '#']).next()?.rsplit('/').next().filter(|it| it.contains('.'))
    };
    let file = match call.name {
        "curl" => call
            .value(&["-o", "--output"])
            .or_else(|| call.has_any(&["-O", "--remote-name"]).then(url)?),
        "wget" => call.value(&["-O", "--output-document"]).or_else(url).filter(|it| *it != "-"),
        _ => None,
    };
    file.filter(|it| !base_name(it).is_empty())
}

fn method(call: &Call<'_>, data: &[&str]) -> String {
    let given = match call.name {
        "http" | "https" | "xh" => {
            let first = call.operands(0).next().map(|it| it.text);
            first.filter(|it| it.bytes().all(|byte| byte.is_ascii_uppercase()))
        }
        "wget" => call.value(&["--method"]),
        _ => call.value(&["-X", "--request"]),
    };
    match given {
        Some(method) => method.to_ascii_uppercase(),
        None if !data.is_empty() => "POST".to_owned(),
        None => "GET".to_owned(),
    }
}

fn is_url(text: &str) -> bool {
    text.contains("://") || text.contains('/') || text.starts_with(':')
}

/// Words in a path that mean destruction when something is posted to it.
const DESTROYING_WORDS: &[&str] = &[
    "archive",
    "cancel",
    "clear",
    "close",
    "deactivate",
    "delete",
    "deletebyquery",
    "destroy",
    "dodelete",
    "dowipeoutworkspace",
    "drop",
    "erase",
    "exit",
    "flush",
    "forcemerge",
    "kill",
    "purge",
    "quietdown",
    "quit",
    "reset",
    "revoke",
    "safeexit",
    "shutdown",
    "terminate",
    "truncate",
    "void",
    "wipe",
];

fn destroys(url: &str) -> bool {
    let path = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = path.split_once('/').map_or("", |(_, path)| path).to_ascii_lowercase();
    let mut words = path.split(|it: char| !it.is_ascii_alphanumeric());
    words.any(|word| DESTROYING_WORDS.contains(&word))
}

/// A GraphQL mutation or an API action that deletes.
fn mutation_destroys(data: &str) -> bool {
    let lower = data.to_ascii_lowercase();
    let mutation = lower.contains("mutation")
        && ["delete", "destroy", "remove", "purge", "drop"].iter().any(|it| lower.contains(it));
    mutation
        || data.contains("Action=Delete")
        || data.contains("Action=Terminate")
        || lower.contains("\"purge_everything\"")
}

/// Verbs that destroy, whatever the tool.
const VERBS: &[&str] = &[
    "delete",
    "destroy",
    "purge",
    "terminate",
    "drop",
    "wipe",
    "nuke",
    "erase",
    "obliterate",
    "rm",
    "remove",
    "del",
];

/// Verbs after which another verb is only a word.
const READING_VERBS: &[&str] = &[
    "add", "create", "describe", "echo", "edit", "explain", "find", "get", "grep", "help",
    "install", "list", "log", "ls", "new", "open", "print", "query", "read", "run", "search",
    "send", "show", "test", "view",
];

/// How far from the program a verb may stand.
const VERB_DEPTH: usize = 4;

/// Judges a tool that no rule knows by its verb: `tool thing delete name`.
pub(super) fn guess(walker: &mut Walker<'_>, call: &Call<'_>) {
    if call.args.is_empty() || call.name.contains('.') {
        return;
    }
    if data::wrappers(call.name).next().is_some() || matches!(call.name, "xargs" | "parallel") {
        return;
    }
    if call.tool.is_some_and(|it| it.plain) {
        return;
    }
    let words: Vec<&str> = call.operands(0).map(|it| it.text).collect();
    let Some(at) = words.iter().take(VERB_DEPTH).position(|it| is_verb(it)) else { return };
    let weak = matches!(words[at], "rm" | "remove" | "del");
    if words[..at].iter().any(|it| READING_VERBS.contains(it)) {
        return;
    }
    // Everything before the verb must look like the name of a kind of thing.
    let path = words[..at].iter().all(|it| {
        it.bytes().all(|byte| byte.is_ascii_lowercase() || b"-_:0123456789".contains(&byte))
    });
    let object = words.len() > at + 1 || call.args.iter().any(|it| it.kind == Kind::Option);
    if !path || !object && at == 0 {
        return;
    }
    if is_misspelled(walker, call.name) {
        return;
    }
    walker.report_check(
        if weak && at == 0 { "unknown-remove" } else { "unknown-destroy" },
        call.span,
    );
}

/// Whether a name is a tool's name with a slip of the finger: it runs nothing, and says nothing about the tool.
fn is_misspelled(walker: &Walker<'_>, name: &str) -> bool {
    walker.rules.program_names().any(|it| is_slip(name, it))
}

/// Whether `typed` is `meant` with one letter too many, missing, or swapped with its neighbour. Short names are often real,
/// so that theirs must be doubled or swapped; a digit is a version.
fn is_slip(typed: &str, meant: &str) -> bool {
    let (typed, meant) = (typed.as_bytes(), meant.as_bytes());
    if meant.len() < 3 || typed.len().abs_diff(meant.len()) > 1 {
        return false;
    }
    let same = typed.iter().zip(meant).take_while(|(a, b)| a == b).count();
    let (left, wanted) = (&typed[same..], &meant[same..]);
    let long = meant.len() > 4;
    match (left, wanted) {
        ([extra, rest @ ..], wanted) if rest == wanted && left.len() > wanted.len() => {
            let doubled = same > 0 && typed[same - 1] == *extra;
            !extra.is_ascii_digit() && extra.is_ascii_alphabetic() && (doubled || long)
        }
        (left, [_, rest @ ..]) if left == rest => long,
        ([a, b, left @ ..], [c, d, wanted @ ..]) => a == d && b == c && left == wanted && a != b,
        _ => false,
    }
}

fn is_verb(word: &str) -> bool {
    let (_, verb) = word.rsplit_once(':').unwrap_or(("", word));
    VERBS.contains(&verb)
        || verb.split_once(['-', '_']).is_some_and(|(first, rest)| {
            !rest.is_empty()
                && matches!(first, "delete" | "destroy" | "purge" | "terminate" | "drop" | "wipe")
        })
}

#[cfg(test)]
mod tests {
    use super::is_slip;

    #[test]
    fn a_slip_of_the_finger_is_told_from_another_tool() {
        for (typed, meant) in [
            ("awss", "aws"),
            ("kubectll", "kubectl"),
            ("dokcer", "docker"),
            ("terrraform", "terraform"),
            ("kubctl", "kubectl"),
            ("gitt", "git"),
            ("flyy", "fly"),
        ] {
            assert!(is_slip(typed, meant), "{typed} for {meant}");
        }
        for (typed, meant) in [
            ("aws", "aws"),
            ("awsx", "aws"),
            ("hcloud", "gcloud"),
            ("terraform1", "terraform"),
            ("eksctl", "kubectl"),
            ("ghx", "gh"),
            ("acmecli", "aws"),
            ("", "aws"),
        ] {
            assert!(!is_slip(typed, meant), "{typed} for {meant}");
        }
    }
}
