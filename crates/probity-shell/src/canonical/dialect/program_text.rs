//! Programs of `sed` and `awk`: spellings that cannot matter.

use crate::field;

/// `s|a|b|` is `s/a/b/` where no part holds either sign.
pub(super) fn sed(script: &mut String) {
    if !field::is_literal(script) {
        return;
    }
    let Some(rest) = script.strip_prefix('s') else { return };
    let Some(sign) =
        rest.chars().next().filter(|it| it.is_ascii_punctuation() && !matches!(it, '/' | '\\'))
    else {
        return;
    };
    let parts: Vec<&str> = rest[1..].split(sign).collect();
    let [pattern, replacement, flags] = &*parts else { return };
    // A sign that means something in a pattern may have been taken away from it, or be given to it.
    let plain = |it: &str| !it.contains(['/', '\\', '\n']);
    let flagged = flags.bytes().all(|it| it.is_ascii_alphanumeric()) && !flags.contains(['w', 'e']);
    if plain(pattern) && plain(replacement) && flagged {
        *script = format!("s/{pattern}/{replacement}/{flags}");
    }
}

/// Blanks next to braces, semicolons and commas. Programs with patterns are left alone: a blank there is text.
pub(super) fn awk(program: &mut String) {
    if !field::is_literal(program) || program.contains(['/', '\n', '\\', '#', '~']) {
        return;
    }
    let mut tidy = String::with_capacity(program.len());
    let mut quoted = false;
    let mut pending = false;
    for character in program.chars() {
        if character == '"' {
            quoted = !quoted;
        }
        if !quoted && character.is_ascii_whitespace() {
            pending = true;
            continue;
        }
        if pending {
            let joins = |it: char| matches!(it, '{' | '}' | ';' | ',');
            let needless = tidy.is_empty() || tidy.ends_with(joins) || joins(character);
            if !needless {
                tidy.push(' ');
            }
            pending = false;
        }
        tidy.push(character);
    }
    *program = tidy;
}
