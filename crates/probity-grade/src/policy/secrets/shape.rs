//! The format of a token, written down: `ghp_<alnum:36>`.
//!
//! Literals and runs of an alphabet, each with its length. Nothing is tried twice,
//! so matching reads the token once.

use std::ops::Range;

use super::placeholder;

/// Fewest different characters in what is random about a token.
///
/// `ghp_xxxxxxxx…` stands for a token and is none.
const FEWEST_DIFFERENT: u32 = 4;

/// What follows a token's leading literal.
pub(super) struct Shape(Vec<Part>);

enum Part {
    Literal(&'static [u8]),
    Run { alphabet: Alphabet, least: usize, most: usize },
}

#[derive(Clone, Copy)]
enum Alphabet {
    Digit,
    /// Hexadecimal, lower case.
    Hex,
    /// Hexadecimal, either case.
    AnyHex,
    /// Upper-case letters and digits.
    Upper,
    /// Lower-case letters and digits.
    Lower,
    Alnum,
    /// Letters, digits, `_`.
    Word,
    /// Letters, digits, `_`, `-`: what URLs bear.
    Url,
    /// Letters, digits, `+`, `/`, `_`, `-`.
    Base64,
}

impl Shape {
    /// The leading literal of a written shape, and the rest of it.
    pub(super) fn parse(written: &'static str) -> (&'static str, Self) {
        let (literal, mut rest) = written.split_at(written.find('<').unwrap_or(written.len()));
        let mut parts = Vec::new();
        while !rest.is_empty() {
            let (part, tail) = if let Some(inner) = rest.strip_prefix('<') {
                let (run, tail) = inner.split_once('>').expect("every `<` is closed");
                (Part::run(run), tail)
            } else {
                let (literal, tail) = rest.split_at(rest.find('<').unwrap_or(rest.len()));
                (Part::Literal(literal.as_bytes()), tail)
            };
            parts.push(part);
            rest = tail;
        }
        (literal, Self(parts))
    }

    /// The token whose leading literal is `text[start..end]`, if it is one.
    pub(super) fn at(&self, text: &str, start: usize, end: usize) -> Option<Range<usize>> {
        let bytes = text.as_bytes();
        if start > 0 && is_word(bytes[start - 1]) {
            return None;
        }
        let mut at = end;
        for part in &self.0 {
            match part {
                Part::Literal(literal) => {
                    bytes[at..].starts_with(literal).then(|| at += literal.len())?;
                }
                Part::Run { alphabet, least, most } => {
                    let run = bytes[at..].iter().take(*most).take_while(|it| alphabet.has(**it));
                    let length = run.count();
                    (length >= *least).then(|| at += length)?;
                }
            }
        }
        let goes_on = bytes.get(at).is_some_and(|next| {
            is_word(*next)
                || matches!(self.0.last(), Some(Part::Run { alphabet, .. }) if alphabet.has(*next))
        });
        let token = &text[start..at];
        (!goes_on && is_random(&bytes[end..at]) && !placeholder::says_so(token))
            .then_some(start..at)
    }
}

impl Part {
    fn run(written: &str) -> Self {
        let (alphabet, length) = written.split_once(':').expect("a run says how long it is");
        let alphabet = match alphabet {
            "digit" => Alphabet::Digit,
            "hex" => Alphabet::Hex,
            "anyhex" => Alphabet::AnyHex,
            "upper" => Alphabet::Upper,
            "lower" => Alphabet::Lower,
            "alnum" => Alphabet::Alnum,
            "word" => Alphabet::Word,
            "url" => Alphabet::Url,
            "base64" => Alphabet::Base64,
            other => unreachable!("no alphabet is called {other}"),
        };
        let (least, most) = length.split_once('-').unwrap_or((length, length));
        let number = |it: &str| it.parse().expect("lengths are numbers");
        Self::Run { alphabet, least: number(least), most: number(most) }
    }
}

impl Alphabet {
    fn has(self, byte: u8) -> bool {
        match self {
            Self::Digit => byte.is_ascii_digit(),
            Self::Hex => byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'),
            Self::AnyHex => byte.is_ascii_hexdigit(),
            Self::Upper => byte.is_ascii_digit() || byte.is_ascii_uppercase(),
            Self::Lower => byte.is_ascii_digit() || byte.is_ascii_lowercase(),
            Self::Alnum => byte.is_ascii_alphanumeric(),
            Self::Word => is_word(byte),
            Self::Url => is_word(byte) || byte == b'-',
            Self::Base64 => is_word(byte) || matches!(byte, b'-' | b'+' | b'/'),
        }
    }
}

pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Whether enough characters differ. A short rest has nothing random to look at:
/// an access key of sixteen equal letters has the format, and that is what counts.
fn is_random(rest: &[u8]) -> bool {
    let seen = rest.iter().fold(0_u128, |seen, byte| seen | 1 << (byte & 127));
    rest.len() <= 17 || seen.count_ones() >= FEWEST_DIFFERENT
}
