//! What `base64 -d`, `xxd -r -p`, `printf` and `echo -e` make of literal text.

use std::sync::LazyLock;

use data_encoding::Encoding;

/// The longest set of `tr` that is read.
const MAX_SET: usize = 256;

/// Base64 as people paste it: either alphabet, with or without padding.
static BASE64: LazyLock<Encoding> = LazyLock::new(|| {
    let mut form = data_encoding::BASE64_NOPAD.specification();
    form.check_trailing_bits = false;
    form.translate.from.push_str("-_");
    form.translate.to.push_str("+/");
    form.encoding().expect("it is base64 with two more letters")
});

static BASE32: LazyLock<Encoding> = LazyLock::new(|| {
    let mut form = data_encoding::BASE32_NOPAD.specification();
    form.check_trailing_bits = false;
    form.encoding().expect("it is base32")
});

/// Decodes base64, blanks passed over; `None` if it is not base64 or not text.
pub(super) fn base64(text: &str) -> Option<String> {
    unpadded(text, &BASE64)
}

/// Decodes base32.
pub(super) fn base32(text: &str) -> Option<String> {
    unpadded(text, &BASE32)
}

/// Decodes pairs of hexadecimal digits.
pub(super) fn hex(text: &str) -> Option<String> {
    text_of(data_encoding::HEXLOWER_PERMISSIVE.decode(&without_blanks(text)).ok()?)
}

/// Decodes what stands before the padding. A last digit that makes no byte is passed over.
fn unpadded(text: &str, encoding: &Encoding) -> Option<String> {
    let mut digits = without_blanks(text.split('=').next().unwrap_or_default());
    let is_cut = encoding.decode_len(digits.len()).is_err();
    if is_cut {
        digits.push(b'A');
    }
    let mut bytes = encoding.decode(&digits).ok()?;
    if is_cut {
        bytes.pop();
    }
    text_of(bytes)
}

fn without_blanks(text: &str) -> Vec<u8> {
    text.bytes().filter(|it| !it.is_ascii_whitespace()).collect()
}

/// Undoes backslash escapes as `printf` and `echo -e` do.
pub(super) fn escapes(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'\\' {
            bytes.push(*byte);
            continue;
        }
        let Some((letter, after)) = rest.split_first() else {
            bytes.push(b'\\');
            break;
        };
        rest = after;
        let (radix, limit) = match letter {
            b'x' => (16, 2),
            b'0' => (8, 3),
            b'1'..=b'7' => {
                rest = &text.as_bytes()[text.len() - after.len() - 1..];
                (8, 3)
            }
            plain => {
                bytes.extend(simple_escape(*plain));
                continue;
            }
        };
        let digits =
            rest.iter().take(limit).take_while(|it| char::from(**it).is_digit(radix)).count();
        let number = rest[..digits]
            .iter()
            .filter_map(|it| char::from(*it).to_digit(radix))
            .fold(0_u32, |sum, it| sum * radix + it);
        bytes.push(u8::try_from(number & 0xff).expect("it is masked to a byte"));
        rest = &rest[digits..];
    }
    text_of(bytes)
}

fn simple_escape(letter: u8) -> Vec<u8> {
    match letter {
        b'n' => vec![b'\n'],
        b't' => vec![b'\t'],
        b'r' => vec![b'\r'],
        b'a' => vec![7],
        b'b' => vec![8],
        b'e' => vec![27],
        b'f' => vec![12],
        b'v' => vec![11],
        b'\\' => vec![b'\\'],
        b'"' => vec![b'"'],
        b'\'' => vec![b'\''],
        other => vec![b'\\', other],
    }
}

/// `printf FORMAT ARGUMENT...` for the plain conversions.
pub(super) fn printf(format: &str, arguments: &[&str]) -> Option<String> {
    let mut out = String::new();
    let mut arguments = arguments.iter();
    loop {
        let before = arguments.len();
        let mut pieces = format.split('%');
        out.push_str(&escapes(pieces.next().unwrap_or_default())?);
        let mut literal_percent = false;
        for piece in pieces {
            if literal_percent {
                out.push_str(&escapes(piece)?);
                literal_percent = false;
                continue;
            }
            if piece.is_empty() {
                out.push('%');
                literal_percent = true;
                continue;
            }
            let at = piece.find(|it: char| it.is_ascii_alphabetic())?;
            let value = arguments.next().copied().unwrap_or_default();
            match &piece[at..=at] {
                "b" => out.push_str(&escapes(value)?),
                "s" | "d" | "i" | "u" | "c" | "q" => out.push_str(value),
                _ => return None,
            }
            out.push_str(&escapes(&piece[at + 1..])?);
        }
        // The format is used again as long as arguments remain.
        if arguments.len() == 0 || arguments.len() == before || out.len() > 1 << 16 {
            return Some(out);
        }
    }
}

/// `tr SET1 SET2` for ranges of letters: what rot13 is written with.
pub(super) fn translate(text: &str, from: &str, to: &str) -> Option<String> {
    if from.len().max(to.len()) > MAX_SET {
        return None;
    }
    let (from, to) = (ranges(from)?, ranges(to)?);
    let last = to.last().copied();
    Some(
        text.chars()
            .map(|it| match from.iter().position(|other| *other == it) {
                Some(at) => to.get(at).copied().or(last).unwrap_or(it),
                None => it,
            })
            .collect(),
    )
}

fn ranges(set: &str) -> Option<Vec<char>> {
    let letters: Vec<char> = set.trim_matches(['[', ']']).chars().collect();
    let mut all = Vec::new();
    let mut at = 0;
    while at < letters.len() {
        if letters.get(at + 1) == Some(&'-') && at + 2 < letters.len() {
            let (first, last) = (letters[at], letters[at + 2]);
            if !first.is_ascii() || !last.is_ascii() {
                return None;
            }
            all.extend(first..=last);
            at += 3;
        } else {
            all.push(letters[at]);
            at += 1;
        }
    }
    Some(all)
}

fn text_of(bytes: Vec<u8>) -> Option<String> {
    String::from_utf8(bytes).ok().filter(|it| !it.contains(crate::field::is_marker))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_undone() {
        assert_eq!(base64("bHMgLWw=").as_deref(), Some("ls -l"));
        assert_eq!(base64("bHMg\nLWw").as_deref(), Some("ls -l"));
        assert_eq!(base64("bHMgL").as_deref(), Some("ls "));
        assert_eq!(base64("fn5-Pz8_").as_deref(), Some("~~~???"));
        assert_eq!(base64("#"), None);
        assert_eq!(base32("NRZSALLM").as_deref(), Some("ls -l"));
        assert_eq!(hex("6c73 2d6c").as_deref(), Some("ls-l"));
        assert_eq!(hex("6c7"), None);
        assert_eq!(escapes(r"\x6c\163\n").as_deref(), Some("ls\n"));
        assert_eq!(printf("%s %s\\n", &["a", "b", "c"]).as_deref(), Some("a b\nc \n"));
        assert_eq!(printf("100%%", &[]).as_deref(), Some("100%"));
        assert_eq!(translate("yf -y", "a-zA-Z", "n-za-mN-ZA-M").as_deref(), Some("ls -l"));
    }
}
