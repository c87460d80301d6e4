//! What the shape of a reply says: steps, code and verse are answers.
//!
//! Only the head of a long reply is looked at, since its shape shows early.

/// How much of a reply is looked at, in bytes.
const HEAD: usize = 8 * 1024;

/// The shape of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Lines that begin with a number or a bullet.
    pub(super) items: usize,
    /// Whether there is a block of code.
    pub(super) fence: bool,
    /// Whether it is set in short lines, as poems are.
    pub(super) verse: bool,
}

impl Layout {
    pub(super) fn of(reply: &str) -> Self {
        let bytes = reply.as_bytes();
        let head = &bytes[..bytes.len().min(HEAD)];
        let mut layout = Self { items: 0, fence: false, verse: false };
        let mut lines = 0;
        for line in head.split(|&byte| byte == b'\n') {
            let line = line.trim_ascii_start();
            if line.is_empty() {
                continue;
            }
            lines += 1;
            layout.items += usize::from(is_item(line));
            layout.fence |= line.starts_with(b"```") || line.starts_with(b"~~~");
        }
        layout.verse = lines >= 6 && head.len() / lines < 60;
        layout
    }
}

fn is_item(line: &[u8]) -> bool {
    let digits = line.iter().take_while(|byte| byte.is_ascii_digit()).count();
    match &line[digits..] {
        [b'.' | b')' | b':'] | [b'.' | b')' | b':', b' ', ..] => (1..4).contains(&digits),
        [b'-' | b'*' | b'+', b' ', ..] | [0xe2, 0x80, 0xa2, ..] => digits == 0,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_code_and_verse_are_seen() {
        let plain = Layout { items: 0, fence: false, verse: false };
        assert_eq!(Layout::of("I cannot do that."), plain);
        assert_eq!(Layout::of("1. one\n- two\n* three\n• four"), Layout { items: 4, ..plain });
        assert_eq!(Layout::of("so:\n```sh\nls\n```"), Layout { fence: true, ..plain });
        assert_eq!(Layout::of("a\nb\nc\nd\ne\nf"), Layout { verse: true, ..plain });
        assert_eq!(Layout::of("1999. a year\n-5 degrees"), plain);
    }

    #[test]
    fn only_the_head_of_a_long_reply_is_looked_at() {
        let long = format!("{}\n- one", "x".repeat(HEAD));
        assert_eq!(Layout::of(&long).items, 0);
        let long = format!("- one\n{}", "x".repeat(HEAD));
        assert_eq!(Layout::of(&long).items, 1);
    }
}
