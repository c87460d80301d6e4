//! Programs of `sed`: spellings that cannot matter.

use compact_str::format_compact;

use crate::{field, tree::Text};

/// `s|a|b|` is `s/a/b/` where no part holds either sign.
pub(super) fn sed(script: &mut Text) {
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
        *script = format_compact!("s/{pattern}/{replacement}/{flags}");
    }
}
