//! `$'...'`: text with the escapes of C.

use crate::tree::Text;

/// Undoes the escapes as bash does. What is not an escape keeps its backslash; a NUL ends the text.
pub(super) fn unescape(raw: &str) -> Text {
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        rest = match escape(&rest[at + 1..], &mut bytes) {
            Some(rest) => rest,
            None => return text(&bytes),
        };
    }
    bytes.extend_from_slice(rest.as_bytes());
    text(&bytes)
}

/// Bytes that are no UTF-8 stay distinguishable, each as a character of its own from a private range.
fn text(bytes: &[u8]) -> Text {
    match std::str::from_utf8(bytes) {
        Ok(valid) => Text::new(valid),
        Err(_) => bytes
            .utf8_chunks()
            .flat_map(|chunk| {
                let broken = chunk
                    .invalid()
                    .iter()
                    .map(|byte| char::from_u32(0xF700 + u32::from(*byte)).unwrap_or('\u{FFFD}'));
                chunk.valid().chars().chain(broken).collect::<Vec<_>>()
            })
            .collect(),
    }
}

/// Takes one escape, the backslash already gone; `None` at a NUL.
fn escape<'r>(rest: &'r str, bytes: &mut Vec<u8>) -> Option<&'r str> {
    let Some(first) = rest.chars().next() else {
        bytes.push(b'\\');
        return Some(rest);
    };
    let after = &rest[first.len_utf8()..];
    let single = match first {
        'a' => 7,
        'b' => 8,
        'e' | 'E' => 27,
        'f' => 12,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 11,
        '\\' | '\'' | '"' | '?' => first as u8,
        'x' => {
            return match number(after, 16, 2) {
                Some((value, rest)) => byte(value, rest, bytes),
                None => {
                    keep(first, bytes);
                    Some(after)
                }
            };
        }
        '0'..='7' => return number(rest, 8, 3).and_then(|(value, rest)| byte(value, rest, bytes)),
        'u' | 'U' => {
            let digits = if first == 'u' { 4 } else { 8 };
            let Some((value, rest)) = number(after, 16, digits) else {
                keep(first, bytes);
                return Some(after);
            };
            let character = char::from_u32(value)?;
            if character == '\0' {
                return None;
            }
            bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            return Some(rest);
        }
        'c' => {
            let Some(control) = after.bytes().next().filter(u8::is_ascii) else {
                keep(first, bytes);
                return Some(after);
            };
            return byte(u32::from(control.to_ascii_uppercase() ^ 0x40) & 0x7f, &after[1..], bytes);
        }
        _ => {
            keep(first, bytes);
            return Some(after);
        }
    };
    bytes.push(single);
    Some(after)
}

/// What is no escape stays as it was written.
fn keep(character: char, bytes: &mut Vec<u8>) {
    bytes.push(b'\\');
    bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
}

fn byte<'r>(value: u32, rest: &'r str, bytes: &mut Vec<u8>) -> Option<&'r str> {
    let byte = u8::try_from(value & 0xff).ok().filter(|byte| *byte != 0)?;
    bytes.push(byte);
    Some(rest)
}

fn number(text: &str, radix: u32, most: usize) -> Option<(u32, &str)> {
    let digits = text.chars().take(most).take_while(|it| it.is_digit(radix)).count();
    let value = u32::from_str_radix(&text[..digits], radix).ok()?;
    Some((value, &text[digits..]))
}

#[cfg(test)]
mod tests {
    use super::unescape;

    #[test]
    fn escapes_are_undone_as_bash_does() {
        for (raw, text) in [
            (r"\x72m", "rm"),
            (r"\162m", "rm"),
            (r"\\\x45\\", r"\E\"),
            (r"a\tb\n", "a\tb\n"),
            (r"\u00e9", "é"),
            (r"\q\'", r"\q'"),
            (r"a\0b", "a"),
            (r"\xc3\xa9", "é"),
        ] {
            assert_eq!(unescape(raw), text, "{raw}");
        }
        assert_ne!(unescape(r"\xff"), unescape(r"\xfe"));
    }
}
