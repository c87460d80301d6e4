//! Keeps the keys in use out of everything that is kept or shown.
//!
//! A key is looked for as it is and as servers and programs echo it: in hexadecimal, in
//! base64 also within a longer text, and each of these escaped for JSON or an address.

use std::{borrow::Cow, fmt, ops::Range, sync::OnceLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use data_encoding::{BASE64, BASE64URL, HEXLOWER, HEXUPPER};
use probity_core::request::ToolCall;

/// Shorter values are words that stand in many texts.
const SHORTEST: usize = 6;
/// Other forms of shorter values are too.
const SHORTEST_ENCODED: usize = 8;
/// What stands in the place of a key.
const MASK: &str = "[redacted]";

/// The values that must appear nowhere.
#[derive(Clone, Default)]
pub struct Redactor {
    forms: Vec<Form>,
    /// Made when it is first needed, from all forms.
    automaton: OnceLock<AhoCorasick>,
}

/// One way in which a secret may appear.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Form {
    text: String,
    /// Whether what stands around it in base64 belongs to it.
    is_base64: bool,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({} forms of secrets)", self.forms.len())
    }
}

impl Redactor {
    /// Keeps another value out.
    pub fn add(&mut self, secret: &str) {
        let secret = secret.trim();
        if secret.len() < SHORTEST {
            return;
        }
        let plain = |text: String| Form { text, is_base64: false };
        self.forms.push(plain(secret.to_owned()));
        if secret.len() >= SHORTEST_ENCODED {
            let hex = [HEXUPPER, HEXLOWER].map(|it| plain(it.encode(secret.as_bytes())));
            self.forms.extend(hex);
            let encoded = base64_forms(secret.as_bytes()).into_iter();
            self.forms.extend(encoded.map(|text| Form { text, is_base64: true }));
        }
        self.forms.sort();
        self.forms.dedup_by(|next, kept| next.text == kept.text);
        self.automaton = OnceLock::new();
    }

    /// Keeps the value of a header out, and the part of it that is the secret.
    pub fn add_header(&mut self, value: &str) {
        self.add(value);
        let scheme = value.trim().split_once(' ');
        let is_scheme = |word: &str| {
            ["basic", "bearer", "token"].iter().any(|known| word.eq_ignore_ascii_case(known))
        };
        if let Some((_, secret)) = scheme.filter(|(word, _)| is_scheme(word)) {
            self.add(secret);
        }
    }

    /// The text without the secrets; it is only copied if there is one in it.
    pub fn clean<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.forms.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut spans = self.find(text.as_bytes());
        if text.contains(['\\', '%']) {
            let Unescaped { bytes, origins } = Unescaped::of(text);
            let found = self.find(&bytes);
            spans.extend(found.into_iter().map(|span| origins[span.start]..origins[span.end]));
        }
        if spans.is_empty() {
            return Cow::Borrowed(text);
        }
        spans.sort_by_key(|span| (span.start, span.end));
        let mut clean = String::with_capacity(text.len());
        let mut at = 0;
        for span in spans {
            // Hits may overlap.
            if span.start >= at {
                clean.push_str(&text[at..span.start]);
                clean.push_str(MASK);
            }
            at = at.max(span.end);
        }
        clean.push_str(&text[at..]);
        Cow::Owned(clean)
    }

    /// Where secrets are. What base64 there is around one belongs to it.
    fn find(&self, text: &[u8]) -> Vec<Range<usize>> {
        let automaton = self.automaton.get_or_init(|| automaton(&self.forms));
        let mut spans = Vec::new();
        let mut reached = 0;
        for hit in automaton.find_iter(text) {
            // What another took along is not looked at twice, so that this stays linear.
            if hit.end() <= reached {
                continue;
            }
            let span = match self.forms[hit.pattern().as_usize()].is_base64 {
                true => {
                    let before = base64_before(&text[reached.min(hit.start())..hit.start()]);
                    hit.start() - before..hit.end() + base64_after(&text[hit.end()..])
                }
                false => hit.range(),
            };
            reached = span.end;
            spans.push(span);
        }
        spans
    }

    /// The same for a text that is owned already.
    pub fn cleaned(&self, text: String) -> String {
        match self.clean(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(clean) => clean,
        }
    }

    /// The same for a call of a tool.
    pub(crate) fn clean_call(&self, call: ToolCall) -> ToolCall {
        let ToolCall { id, name, arguments } = call;
        let written = arguments.to_string();
        let arguments = match self.clean(&written) {
            Cow::Borrowed(_) => arguments,
            Cow::Owned(clean) => {
                serde_json::from_str(&clean).unwrap_or(serde_json::Value::String(clean))
            }
        };
        ToolCall { id, name: self.cleaned(name), arguments }
    }

    /// An error's text: without the keys in use, without what looks like one, of bounded size.
    pub fn error_text(&self, text: &str) -> String {
        probity_grade::redacted(&self.clean(text))
    }
}

fn automaton(forms: &[Form]) -> AhoCorasick {
    AhoCorasick::builder()
        // What holds another secret goes first.
        .match_kind(MatchKind::LeftmostLongest)
        // Keys may be long and have many forms; the default would take much memory then.
        .kind(Some(AhoCorasickKind::ContiguousNFA))
        .build(forms.iter().map(|form| &form.text))
        .expect("variables are far below 2^31 bytes")
}

/// What base64 of any text with these bytes in it has in common, for each of the three
/// places where they can begin.
fn base64_forms(secret: &[u8]) -> Vec<String> {
    let mut forms = Vec::new();
    for encoding in [BASE64, BASE64URL] {
        for before in 0..3 {
            let bytes = [&[0; 2][..before], secret].concat();
            let text = encoding.encode(&bytes);
            // A character that holds bits of a neighbour may be any.
            let (start, end) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
            forms.push(text[start..end].to_owned());
        }
    }
    forms
}

/// How many bytes at the end of a text belong to base64 that goes on after it.
fn base64_before(text: &[u8]) -> usize {
    text.iter().rev().take_while(|byte| is_base64(**byte)).count()
}

/// How many bytes at the beginning of a text belong to base64 that began before it.
fn base64_after(text: &[u8]) -> usize {
    let own = text.iter().take_while(|byte| is_base64(**byte)).count();
    own + text[own..].iter().take(2).take_while(|byte| **byte == b'=').count()
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte)
}

/// A text with the escapes of JSON and of addresses undone, and where each byte was.
struct Unescaped {
    bytes: Vec<u8>,
    /// One more than bytes: the last is the end of the text.
    origins: Vec<usize>,
}

impl Unescaped {
    fn of(text: &str) -> Self {
        let (mut bytes, mut origins) = (Vec::with_capacity(text.len()), Vec::new());
        let mut at = 0;
        while let Some(&byte) = text.as_bytes().get(at) {
            let rest = &text.as_bytes()[at..];
            let length = match byte {
                b'%' => percent_escape(rest, &mut bytes),
                b'\\' => json_escape(rest, &mut bytes),
                _ => None,
            };
            if length.is_none() {
                bytes.push(byte);
            }
            origins.resize(bytes.len(), at);
            at += length.unwrap_or(1);
        }
        origins.push(text.len());
        Self { bytes, origins }
    }
}

/// Writes the byte that `%2F` stands for, and returns how long that is.
fn percent_escape(text: &[u8], meant: &mut Vec<u8>) -> Option<usize> {
    meant.push(u8::try_from(hex_number(text.get(1..3)?)?).ok()?);
    Some(3)
}

/// Writes what `\/` or `\u002f` stands for, and returns how long that is.
fn json_escape(text: &[u8], meant: &mut Vec<u8>) -> Option<usize> {
    let byte = match text.get(1)? {
        b'u' => {
            let c = char::from_u32(hex_number(text.get(2..6)?)?)?;
            meant.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            return Some(6);
        }
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        byte @ (b'/' | b'"' | b'\\') => *byte,
        _ => return None,
    };
    meant.push(byte);
    Some(2)
}

fn hex_number(digits: &[u8]) -> Option<u32> {
    let is_hex = digits.iter().all(u8::is_ascii_hexdigit);
    u32::from_str_radix(str::from_utf8(digits).ok()?, 16).ok().filter(|_| is_hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-ant-api03-Ab9/xY+z7Qw_Kd8-longsecretvalue123==";

    fn redactor() -> Redactor {
        let mut redactor = Redactor::default();
        redactor.add(KEY);
        redactor
    }

    #[test]
    fn keys_are_taken_out() {
        let mut redactor = Redactor::default();
        redactor.add("secret-of-mine");
        redactor.add("abc");
        assert_eq!(redactor.clean("key secret-of-mine, abc"), "key [redacted], abc");
        assert!(matches!(redactor.clean("nothing"), Cow::Borrowed("nothing")));
    }

    #[test]
    fn keys_are_taken_out_however_they_are_encoded() {
        let each = |write: fn(u8) -> String| KEY.bytes().map(write).collect::<Vec<_>>().concat();
        let hex = each(|byte| format!("{byte:02x}"));
        let unicode = each(|byte| format!("\\u{byte:04x}"));
        let percent = each(|byte| format!("%{byte:02x}"));
        let forms = [
            KEY.to_owned(),
            // Base64 of the key, safe for addresses, and without padding.
            "c2stYW50LWFwaTAzLUFiOS94WSt6N1F3X0tkOC1sb25nc2VjcmV0dmFsdWUxMjM9PQ==".to_owned(),
            "c2stYW50LWFwaTAzLUFiOS94WSt6N1F3X0tkOC1sb25nc2VjcmV0dmFsdWUxMjM9PQ".to_owned(),
            // Of `user:KEY`, and of `ab:KEY`, `abc:KEY` for the other two alignments.
            "dXNlcjpzay1hbnQtYXBpMDMtQWI5L3hZK3o3UXdfS2Q4LWxvbmdzZWNyZXR2YWx1ZTEyMz09".to_owned(),
            "YWI6c2stYW50LWFwaTAzLUFiOS94WSt6N1F3X0tkOC1sb25nc2VjcmV0dmFsdWUxMjM9PQ==".to_owned(),
            "YWJjOnNrLWFudC1hcGkwMy1BYjkveFkrejdRd19LZDgtbG9uZ3NlY3JldHZhbHVlMTIzPT0=".to_owned(),
            "sk-ant-api03-Ab9%2FxY%2Bz7Qw_Kd8-longsecretvalue123%3D%3D".to_owned(),
            "sk-ant-api03-Ab9%2fxY%2bz7Qw_Kd8-longsecretvalue123%3d%3d".to_owned(),
            "sk-ant-api03-Ab9/xY%2Bz7Qw_Kd8-longsecretvalue123%3D%3D".to_owned(),
            percent.to_uppercase(),
            percent,
            KEY.replace('/', "\\/"),
            KEY.replace('/', "\\u002f").replace('+', "\\u002b").replace('=', "\\u003d"),
            KEY.replace('+', "\\u002B"),
            unicode,
            hex.to_uppercase(),
            hex,
        ];
        for form in forms {
            let text = format!("near \"{form}\", and more");
            assert_eq!(redactor().clean(&text), "near \"[redacted]\", and more", "{form}");
        }
    }

    #[test]
    fn what_stands_around_a_key_stays() {
        let text = format!("{KEY}{KEY} and {KEY}.");
        assert_eq!(redactor().clean(&text), "[redacted][redacted] and [redacted].");
        let text = "sk-ant-api03-Ab9/xY+z7Qw_Kd8-longsecretvalue124 c2stYW50LWFwaTAz";
        assert_eq!(redactor().clean(text), text);
    }

    #[test]
    fn the_secret_within_a_header_is_one() {
        let mut redactor = Redactor::default();
        redactor.add_header("Bearer of-good-tidings");
        assert_eq!(redactor.clean("got of-good-tidings"), "got [redacted]");
    }

    proptest::proptest! {
        #[test]
        fn a_key_within_any_base64_is_taken_out(
            before in proptest::collection::vec(0_u8.., 0..9),
            after in proptest::collection::vec(0_u8.., 0..9),
        ) {
            let bytes = [&before[..], KEY.as_bytes(), &after].concat();
            let text = BASE64.encode(&bytes);
            proptest::prop_assert_eq!(redactor().clean(&text), MASK);
        }

        #[test]
        fn a_key_is_found_whichever_of_its_characters_are_escaped(
            ways in proptest::collection::vec(0_u8..5, KEY.len()),
        ) {
            let text: String = KEY.chars().zip(ways).map(|(c, way)| match way {
                0 => format!("%{:02x}", u32::from(c)),
                1 => format!("%{:02X}", u32::from(c)),
                2 => format!("\\u{:04x}", u32::from(c)),
                3 if c == '/' => "\\/".to_owned(),
                _ => c.to_string(),
            }).collect();
            proptest::prop_assert_eq!(redactor().clean(&text), MASK);
        }

        #[test]
        fn any_text_is_cleaned(text in ".{0,80}", secret in ".{6,20}") {
            let mut redactor = Redactor::default();
            redactor.add(&secret);
            let clean = redactor.clean(&format!("{text}{secret}{text}")).into_owned();
            proptest::prop_assert!(secret.trim().len() < SHORTEST || clean.contains(MASK));
        }
    }
}
