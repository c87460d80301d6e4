//! Keys have no place in a suite file.

use probity_core::located::{Entry, Node};

use super::KNOWN;
use crate::{case::Findings, template};

/// Names under which people put keys, and words of such names.
const KEYS: &[&str] =
    &["apikey", "auth", "authorization", "cookie", "key", "password", "secret", "token"];
/// The problem of a key in a file. Of its line nothing is shown but the name of the key.
pub(in crate::suite) const KEY_IN_FILE: &str = "key-in-file";

/// Whether a field of this name is there for a key.
pub(super) fn is_key(field: &str) -> bool {
    let letters: String = field.chars().filter(|c| c.is_alphanumeric()).collect();
    KEYS.contains(&letters.to_ascii_lowercase().as_str())
}

/// Whether a word of a name says that it is about a key.
pub(super) fn names_key(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let mut words = name.split(|c: char| !c.is_alphanumeric());
    is_key(&name) || words.any(|word| KEYS.contains(&word.trim_end_matches('s')))
}

/// Whether there may be a key in a line of a suite.
pub(in crate::suite) fn may_hold_key(line: &str) -> bool {
    let words = line.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-');
    words.filter(|word| !KNOWN.contains(word)).any(names_key)
}

/// A key in a file is a key in a repository.
pub(super) fn refuse_keys(node: &Node, findings: &mut Findings) {
    let config = node.get("config").map_or(&[][..], Node::entries);
    for (entries, field) in [(node.entries(), "api_key_env"), (config, "env")] {
        // What a function is told may come from a variable.
        let is_named = |it: &Entry| field == "env" && it.node.as_str().is_some_and(is_of_variables);
        for entry in entries.iter().filter(|it| is_key(&it.key) && !is_named(it)) {
            let message = "a key has no place in a suite file".to_owned();
            let way = if field == "env" { "{{ env.NAME }}" } else { field };
            let help = format!("put it into a variable, and name that with `{way}`");
            findings.error_with_help(KEY_IN_FILE, &entry.key_span, message, help);
        }
    }
    let headers = node.get("headers_env").map_or(&[][..], Node::entries);
    let variables = node.entries().iter().filter(|it| it.key == "api_key_env").chain(headers);
    for entry in variables {
        if entry.node.as_str().is_some_and(|text| !is_variable(text)) {
            let message = format!("`{}` is not the name of a variable", entry.key);
            let help = "name the variable that holds the key, not the key".to_owned();
            findings.error_with_help(KEY_IN_FILE, &entry.key_span, message, help);
        }
    }
}

/// Whether a text is made of variables of the environment alone.
fn is_of_variables(text: &str) -> bool {
    text.trim().starts_with("{{") && template::names_only_env(text)
}

/// Whether a text can be the name of a variable of the environment.
fn is_variable(text: &str) -> bool {
    !text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
