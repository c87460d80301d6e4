//! Keeps the keys in use out of everything that is kept or shown.
//!
//! A key is looked for as it is and as servers and programs echo it: in hexadecimal, in
//! base64 also within a longer text, and each of these escaped for JSON or an address.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fmt,
    ops::Range,
    sync::OnceLock,
};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use data_encoding::{BASE64, BASE64URL, HEXLOWER, HEXUPPER};
use probity_core::{
    reply::{Logprobs, Reply},
    request::ToolCall,
};
use serde_json::Value;

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
    /// Keys that are so short that they stand in many texts. They are kept out of errors,
    /// where they are words of their own, and not out of replies.
    short: Vec<String>,
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

    /// Keeps a key out that a suite names as one, however short it is.
    pub fn add_key(&mut self, key: &str) {
        let key = key.trim();
        match key.len() {
            0 => {}
            1..SHORTEST => self.short.push(key.to_owned()),
            _ => self.add(key),
        }
    }

    /// Keeps the value of a variable out if it is likely a secret: by its name, or because it
    /// is an address with a password.
    pub fn add_variable(&mut self, name: &str, value: &str) {
        if is_secret_name(name) && value.trim().len() >= SHORTEST {
            self.add(value);
        }
        if let Some(password) = password_in(value) {
            self.add(value);
            self.add(password);
        }
    }

    /// Keeps the value of a variable out that somebody means to hand over: as above, and also
    /// if it looks like a token, whatever its name.
    pub fn add_chosen_variable(&mut self, name: &str, value: &str) {
        self.add_variable(name, value);
        if is_token(value.trim()) {
            self.add(value);
        }
    }

    /// Keeps the values of variables out that a suite names to hand them over.
    pub(crate) fn add_chosen(
        &mut self,
        variables: &BTreeMap<OsString, OsString>,
        names: &[String],
    ) {
        for name in names {
            if let Some(value) = variables.get(OsStr::new(name)).and_then(|it| it.to_str()) {
                self.add_chosen_variable(name, value);
            }
        }
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

    /// Keeps the value of a header out that stands in a suite, if it is likely a secret or one of
    /// its words looks like a token. Other values, such as `application/json`, stand in many texts.
    pub fn add_chosen_header(&mut self, name: &str, value: &str) {
        if is_secret_name(name) {
            self.add_header(value);
        }
        value.split_whitespace().filter(|word| is_token(word)).for_each(|word| self.add(word));
    }

    /// The text without the secrets; it is only copied if there is one in it.
    pub fn clean<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.forms.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut spans = self.find(text.as_bytes());
        // What a server quotes may have been quoted before, each time with more escapes.
        let mut layer = Unescaped::of(text.as_bytes());
        for _ in 0..MOST_LAYERS {
            let Some(Unescaped { bytes, origins }) = &layer else { break };
            let found = self.find(bytes);
            spans.extend(found.into_iter().map(|span| origins[span.start]..origins[span.end]));
            layer = Unescaped::of(bytes).map(|deeper| deeper.within(origins));
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

    /// The same for all that a model says.
    pub(crate) fn clean_reply(&self, reply: Reply) -> Reply {
        let clean = |text: Option<String>| text.map(|text| self.cleaned(text));
        let (text, logprobs) = match self.clean(&reply.text) {
            Cow::Borrowed(_) => (reply.text, reply.logprobs),
            // A key in pieces is not known by any of them.
            Cow::Owned(clean) => (clean, reply.logprobs.map(Logprobs::without_tokens)),
        };
        Reply {
            text,
            logprobs,
            tool_calls: reply.tool_calls.into_iter().map(|it| self.clean_call(it)).collect(),
            reasoning: clean(reply.reasoning),
            stop_reason: clean(reply.stop_reason),
            model: clean(reply.model),
            ..reply
        }
    }

    /// The same for a call of a tool. What a vendor signed is of no use with a part missing.
    fn clean_call(&self, call: ToolCall) -> ToolCall {
        let ToolCall { id, name, arguments, opaque } = call;
        let written = arguments.to_string();
        let arguments = match self.clean(&written) {
            Cow::Borrowed(_) => arguments,
            Cow::Owned(clean) => serde_json::from_str(&clean).unwrap_or(Value::String(clean)),
        };
        let is_clean = |it: &Value| matches!(self.clean(&it.to_string()), Cow::Borrowed(_));
        ToolCall { id, name: self.cleaned(name), arguments, opaque: opaque.filter(is_clean) }
    }

    /// The same for every text in a value.
    pub(crate) fn clean_json(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.cleaned(text)),
            Value::Array(items) => items.into_iter().map(|it| self.clean_json(it)).collect(),
            Value::Object(map) => map
                .into_iter()
                .map(|(name, value)| (self.cleaned(name), self.clean_json(value)))
                .collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) => value,
        }
    }

    /// The end of what a program printed, where errors stand, without keys and in so many characters.
    pub(crate) fn error_end(&self, text: &str, most: usize) -> String {
        /// What is looked at for what looks like a key, in bytes.
        const SEEN: usize = 4000;
        // Cut last: a key that is cut in two is not recognised.
        let text = self.clean(text.trim());
        let from = text.ceil_char_boundary(text.len().saturating_sub(SEEN.max(most * 4)));
        let text = self.error_text(&text[from..]);
        let from = text.char_indices().nth_back(most.saturating_sub(1)).map_or(0, |it| it.0);
        text[from..].to_owned()
    }

    /// An error's text: without the keys in use, without what looks like one, of bounded size.
    pub fn error_text(&self, text: &str) -> String {
        let text = self.clean(text);
        let text = self.short.iter().fold(text.into_owned(), |text, key| without_word(text, key));
        probity_grade::redacted(&text)
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

/// How often a text may have been escaped.
const MOST_LAYERS: usize = 4;

/// A text with each word replaced that is a key.
fn without_word(text: String, key: &str) -> String {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let mut clean = String::new();
    let mut from = 0;
    for (at, _) in text.match_indices(key) {
        let end = at + key.len();
        let is_word = !text[..at].ends_with(is_part) && !text[end..].starts_with(is_part);
        if is_word && at >= from {
            clean.push_str(&text[from..at]);
            clean.push_str(MASK);
            from = end;
        }
    }
    match from {
        0 => text,
        _ => clean + &text[from..],
    }
}

/// Whether the value of a variable of this name is likely a secret.
fn is_secret_name(name: &str) -> bool {
    const PARTS: [&str; 5] = ["KEY", "TOKEN", "SECRET", "PASSW", "CREDENTIAL"];
    const WORDS: [&str; 10] =
        ["PAT", "PASS", "PWD", "AUTH", "CREDS", "COOKIE", "SESSION", "DSN", "JWT", "BEARER"];
    let name = name.to_ascii_uppercase();
    PARTS.iter().any(|part| name.contains(part))
        || name.split(['_', '-', '.']).any(|word| WORDS.contains(&word))
}

/// The password in an address.
fn password_in(value: &str) -> Option<&str> {
    let (_, rest) = value.split_once("://")?;
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    let (user, _) = authority.rsplit_once('@')?;
    let secret = user.split_once(':').map_or(user, |(_, password)| password);
    (secret.len() >= SHORTEST).then_some(secret)
}

/// Whether a value looks like a token: long, of letters and digits mixed, and neither a path,
/// an address nor a number.
fn is_token(value: &str) -> bool {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "-_.+=~:".contains(c);
    value.len() >= 16
        && value.chars().all(is_token)
        && value.contains(|c: char| c.is_ascii_digit())
        && value.contains(|c: char| c.is_ascii_alphabetic())
}

/// A text with the escapes of JSON and of addresses undone, and where each byte was.
struct Unescaped {
    bytes: Vec<u8>,
    /// One more than bytes: the last is the end of the text.
    origins: Vec<usize>,
}

impl Unescaped {
    /// None if there is nothing to undo.
    fn of(text: &[u8]) -> Option<Self> {
        if !text.iter().any(|byte| b"\\%".contains(byte)) {
            return None;
        }
        let (mut bytes, mut origins) = (Vec::with_capacity(text.len()), Vec::new());
        let mut at = 0;
        while let Some(&byte) = text.get(at) {
            let rest = &text[at..];
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
        (bytes != text).then_some(Self { bytes, origins })
    }

    /// The same, with places in the text that was unescaped before.
    fn within(mut self, outer: &[usize]) -> Self {
        self.origins.iter_mut().for_each(|at| *at = outer[*at]);
        self
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
    fn escapes_within_escapes_are_undone() {
        let once = KEY.replace('/', "\\/").replace('+', "\\u002b");
        let twice = once.replace('\\', "\\\\");
        let thrice = twice.replace('\\', "\\\\");
        for form in [once, twice, thrice, KEY.replace('/', "%252F")] {
            let text = format!("near \"{form}\", and more");
            assert_eq!(redactor().clean(&text), "near \"[redacted]\", and more", "{form}");
        }
    }

    #[test]
    fn a_short_key_is_kept_out_of_errors_and_not_out_of_replies() {
        let mut redactor = Redactor::default();
        redactor.add_key("tiny");
        assert_eq!(
            redactor.error_text("bad key `tiny` (tinyness)"),
            "bad key `[redacted]` (tinyness)"
        );
        assert_eq!(redactor.clean("a tiny house"), "a tiny house");
    }

    #[test]
    fn variables_with_secrets_are_known_by_name_or_value() {
        let seen = |name: &str, value: &str| {
            let mut redactor = Redactor::default();
            redactor.add_chosen_variable(name, value);
            redactor.clean(&format!("<{value}>")).into_owned()
        };
        for (name, value) in [
            ("GH_PAT", "hunter-two"),
            ("DATABASE_URL", "postgres://me:hunter2x@db/app"),
            ("MY_THING", "ghp_16C7e42F292c6912E7710c838347Ae178B4a"),
            ("DB_PASS", "correct horse"),
        ] {
            assert_eq!(seen(name, value), "<[redacted]>", "{name}");
        }
        for (name, value) in [
            ("MODE", "production"),
            ("PATH", "/usr/local/bin:/usr/bin"),
            ("SERVICE_URL", "https://service.example/v1"),
            ("COMPASS", "north-west"),
        ] {
            assert_eq!(seen(name, value), format!("<{value}>"), "{name}");
        }
        let mut redactor = Redactor::default();
        redactor.add_variable("DATABASE_URL", "postgres://me:hunter2x@db/app");
        assert_eq!(redactor.clean("password hunter2x"), "password [redacted]");
    }

    #[test]
    fn the_secret_within_a_header_is_one() {
        let mut redactor = Redactor::default();
        redactor.add_header("Bearer of-good-tidings");
        assert_eq!(redactor.clean("got of-good-tidings"), "got [redacted]");
    }

    #[test]
    fn a_header_of_a_suite_is_one_if_it_looks_like_one() {
        let mut redactor = Redactor::default();
        redactor.add_chosen_header("accept", "application/json; charset=utf-8");
        redactor.add_chosen_header("x-app", "Bearer 0123456789abcdef");
        redactor.add_chosen_header("x-session", "my-session");
        let text = "application/json, Bearer 0123456789abcdef, my-session";
        assert_eq!(redactor.clean(text), "application/json, Bearer [redacted], [redacted]");
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
