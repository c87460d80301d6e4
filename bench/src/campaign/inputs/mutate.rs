//! Inputs that are almost right.

use fastrand::Rng;

/// No input is longer.
const LONGEST: usize = 32 << 10;

/// What formats are made of, and what breaks those who read them.
const TOKENS: &[&str] = &[
    "\"",
    "'",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    ":",
    ",",
    "\n",
    "\r",
    "\t",
    " ",
    "\0",
    "\\",
    "/",
    "#",
    "=",
    "|",
    "&",
    "*",
    "!",
    "%",
    "{{",
    "}}",
    "{%",
    "%}",
    "{#",
    "- ",
    "---\n",
    "...\n",
    "&a ",
    "*a",
    "<<: *a",
    "!!binary ",
    "? ",
    "```",
    "```json\n",
    "<think>",
    "</think>",
    "data: ",
    "event: ",
    "\n\n",
    "[DONE]",
    "null",
    "true",
    "NaN",
    "Infinity",
    "-0",
    "1e999",
    "1e-999",
    "99999999999999999999999999",
    "0x",
    "\\u0000",
    "\\ud800",
    "\\udc00\\ud800",
    "\u{feff}",
    "\u{202e}",
    "\u{200b}",
    "\u{e0041}",
    "\u{1b}[31m",
    "é",
    "\u{1f469}\u{200d}\u{1f4bb}",
    "[[",
    "]]",
    "[a.b]",
    "\"\"\"",
    "'''",
    "$ref",
    "$(",
    "`",
    "&&",
    "||",
    ";",
    "rm -rf /",
    ">",
    "<<EOF",
    "\nEOF\n",
    "id",
    "prompt",
    "assert",
    "expected_response",
    "range(9)",
    "|upper",
    "for x in y",
    "if x",
    "endif",
    "endfor",
    "I'm sorry, but",
    "error",
    "429",
    "AKIA0123456789ABCDEF",
    "choices",
    "delta",
    "content",
    "type",
    "candidates",
    "parts",
];

/// A seed with some changes.
pub(super) fn any(seeds: &[Vec<u8>], random: &mut Rng) -> Vec<u8> {
    let mut bytes = seeds[random.usize(..seeds.len())].clone();
    bytes.truncate(LONGEST);
    let count = 1 + random.usize(..6);
    for _ in 0..count {
        change(&mut bytes, seeds, random);
        bytes.truncate(LONGEST);
    }
    bytes
}

fn change(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Rng) {
    let size = bytes.len();
    let at = random.usize(..=size);
    let until = (at + 1 + random.usize(..40)).min(size);
    match random.u8(..11) {
        0 | 1 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << random.u8(..8);
            }
        }
        2 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = random.u8(..);
            }
        }
        3 => drop(bytes.drain(at..until)),
        4 | 5 => {
            let token = TOKENS[random.usize(..TOKENS.len())];
            bytes.splice(at..at, token.bytes());
        }
        6 => {
            let token = TOKENS[random.usize(..TOKENS.len())];
            bytes.splice(at..at, token.repeat(1 + random.usize(..300)).into_bytes());
        }
        7 => {
            let piece = bytes[at..until].repeat(1 + random.usize(..60));
            bytes.splice(at..at, piece);
        }
        8 => bytes.truncate(at),
        9 => {
            let other = &seeds[random.usize(..seeds.len())];
            let from = random.usize(..=other.len());
            let to = (from + random.usize(..200)).min(other.len());
            bytes.splice(at..until, other[from..to].iter().copied());
        }
        _ => bytes[at..until].reverse(),
    }
}
