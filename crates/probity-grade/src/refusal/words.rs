//! Cuts a reply into folded words, and leaves out what the model only quotes.
//!
//! Folding is lower case, without accents and invisible characters, with plain
//! apostrophes and half-width letters, so that one phrase in the list meets every
//! way of typing it. A character of a script without spaces is a word of its own.
//! Every word knows the bytes of the original text that it stands for.

use std::{
    iter,
    ops::{ControlFlow, Range},
};

use super::quoted;

/// The longest folded word that is told apart, in eights of bytes; no phrase has a longer one.
const CHUNKS: usize = 4;

/// Begins what a terminal takes as an instruction.
const ESCAPE: u8 = 0x1b;

/// A word in folded form: its bytes, eight to a number and padded with zeros.
///
/// Words are short and there are many, so they are built, hashed and compared
/// as a few numbers and never as bytes in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Folded {
    pub(super) chunks: [u64; CHUNKS],
    pub(super) len: usize,
    pub(super) has_apostrophe: bool,
}

/// Where a word stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Bytes in the original text, on character boundaries.
    pub(super) span: Range<usize>,
    /// Sentences before this one.
    pub(super) sentence: usize,
}

impl Folded {
    /// Whether this is a place that no phrase matches: a quotation, or a word too long for any list.
    pub(super) fn is_unknown(&self) -> bool {
        self.len == 0 || self.len > CHUNKS * 8
    }

    /// A hash over the chunks in use; the padding is zero, so only the length is mixed in.
    #[inline]
    pub(super) fn hash(&self) -> u64 {
        let mut hash = self.len as u64;
        for chunk in self.chunks.iter().take(self.len.div_ceil(8)) {
            hash = (hash.rotate_left(23) ^ chunk).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        hash ^ (hash >> 32)
    }

    /// The parts around apostrophes, for words such as `l'article` and `friend's`.
    pub(super) fn parts(&self) -> impl Iterator<Item = Self> {
        let bytes = self.chunks.map(u64::to_le_bytes);
        let len = if self.is_unknown() { 0 } else { self.len };
        let mut rest = bytes.into_iter().flatten().take(len).peekable();
        iter::from_fn(move || {
            while rest.next_if_eq(&b'\'').is_some() {}
            rest.peek()?;
            let mut part = Self::default();
            while let Some(byte) = rest.next_if(|byte| *byte != b'\'') {
                part.push(byte);
            }
            Some(part)
        })
    }

    pub(super) fn has_apostrophe(&self) -> bool {
        self.has_apostrophe
    }

    #[inline]
    fn push(&mut self, byte: u8) {
        if let Some(chunk) = self.chunks.get_mut(self.len / 8) {
            *chunk |= u64::from(byte) << (self.len % 8 * 8);
        }
        self.len += 1;
        self.has_apostrophe |= byte == b'\'';
    }

    /// Takes the ASCII letters and digits that `text` begins with; says how many.
    #[inline]
    fn push_ascii(&mut self, text: &[u8]) -> usize {
        let mut taken = 0;
        if self.len == 0 {
            // The first eight letters stay in a register, which is most words.
            let mut chunk = 0;
            for &byte in text.iter().take(8) {
                let folded = FOLD[usize::from(byte)];
                if folded == 0 {
                    break;
                }
                chunk |= u64::from(folded) << (taken * 8);
                taken += 1;
            }
            self.chunks[0] = chunk;
            self.len = taken;
            if taken < 8 {
                return taken;
            }
        }
        while let Some(&byte) = text.get(taken) {
            let folded = FOLD[usize::from(byte)];
            if folded == 0 {
                break;
            }
            self.push(folded);
            taken += 1;
        }
        taken
    }

    fn push_char(&mut self, character: char) {
        for &byte in character.encode_utf8(&mut [0; 4]).as_bytes() {
            self.push(byte);
        }
    }
}

/// Visits the words of the prose in `text`, in order, until `visit` breaks.
pub(super) fn each(text: &str, mut visit: impl FnMut(&Folded, Place) -> ControlFlow<()>) {
    let mut scan = Scan {
        text,
        at: quoted::after_thinking(text),
        word: Folded::default(),
        sentence: 0,
        line_start: true,
        quotations: quoted::Quotations::new(text),
    };
    let bytes = text.as_bytes();
    while let Some(&byte) = bytes.get(scan.at) {
        // Blanks and plain words are nearly everything, so they are told apart first.
        let place = if byte == b' ' {
            scan.at += 1;
            continue;
        } else if FOLD[usize::from(byte)] != 0 && !scan.line_start {
            scan.read_word()
        } else if let Some(place) = scan.step(byte) {
            place
        } else {
            continue;
        };
        if visit(&scan.word, place).is_break() {
            return;
        }
    }
}

struct Scan<'t> {
    text: &'t str,
    at: usize,
    /// The word that was read last.
    word: Folded,
    sentence: usize,
    line_start: bool,
    quotations: quoted::Quotations<'t>,
}

impl Scan<'_> {
    /// Takes one word, or passes over one piece that is none. Always moves on.
    fn step(&mut self, byte: u8) -> Option<Place> {
        let start = self.at;
        if self.line_start
            && let Some(end) = quoted::block(self.text, start)
        {
            self.at = end;
            self.sentence += 1;
            return None;
        }
        if FOLD[usize::from(byte)] != 0 {
            self.line_start = false;
            return Some(self.read_word());
        }
        if let Some(end) = self.quotations.end(start) {
            self.line_start = false;
            self.at = end;
            self.word = Folded::default();
            return Some(self.place(start));
        }
        if byte == ESCAPE {
            self.at = after_escape_sequence(self.text.as_bytes(), start);
            return None;
        }
        if byte.is_ascii() {
            self.at += 1;
            self.ascii_break(byte);
            return None;
        }
        let character = self.text.get(start..)?.chars().next()?;
        match fold(character) {
            Fold::Letter(_) => {
                self.line_start = false;
                Some(self.read_word())
            }
            Fold::Alone => {
                self.line_start = false;
                self.at += character.len_utf8();
                self.word = Folded::default();
                self.word.push_char(character);
                Some(self.place(start))
            }
            Fold::Nothing | Fold::Apostrophe | Fold::Break => {
                self.at += character.len_utf8();
                None
            }
            Fold::Stop => {
                self.at += character.len_utf8();
                self.sentence += 1;
                None
            }
        }
    }

    fn place(&self, start: usize) -> Place {
        Place { span: start..self.at, sentence: self.sentence }
    }

    /// Notes what a separator means for sentences and lines.
    fn ascii_break(&mut self, byte: u8) {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        match byte {
            b'\n' => {
                self.line_start = true;
                if ends_paragraph(rest) {
                    self.sentence += 1;
                }
            }
            b'.' | b'!' | b'?' => {
                self.line_start = false;
                if rest.first().is_none_or(|next| !next.is_ascii_alphanumeric()) {
                    self.sentence += 1;
                }
            }
            b'\t' | b'\r' => {}
            _ => self.line_start = false,
        }
    }

    /// Reads the word that begins here; letters, digits, and apostrophes between letters.
    #[inline]
    fn read_word(&mut self) -> Place {
        let bytes = self.text.as_bytes();
        let start = self.at;
        self.word = Folded::default();
        self.at += self.word.push_ascii(&bytes[start..]);
        let plain = bytes
            .get(self.at)
            .is_none_or(|byte| byte.is_ascii() && *byte != b'\'' && *byte != b'`');
        if !plain {
            self.read_rest();
        }
        self.place(start)
    }

    /// Goes on with a word that has more than ASCII letters and digits.
    fn read_rest(&mut self) {
        let mut end = self.at;
        while let Some(character) = self.text.get(self.at..).and_then(|it| it.chars().next()) {
            let after = self.at + character.len_utf8();
            match fold(character) {
                Fold::Letter(letter) => {
                    self.word.push_char(letter);
                    end = after;
                }
                Fold::Nothing => {}
                Fold::Apostrophe if joins(self.text, after) => self.word.push(b'\''),
                Fold::Apostrophe | Fold::Alone | Fold::Break | Fold::Stop => break,
            }
            self.at = after;
        }
        self.at = end;
    }
}

/// Where a terminal's escape sequence ends; programs print replies in colour.
fn after_escape_sequence(bytes: &[u8], start: usize) -> usize {
    let parameters = start + 2;
    if bytes.get(start + 1) != Some(&b'[') {
        return start + 1;
    }
    let rest = bytes.get(parameters..).unwrap_or_default();
    let length = rest.iter().position(|byte| !(0x20..0x40).contains(byte)).unwrap_or(rest.len());
    let end = parameters + length;
    // The letter that ends it, if it is one.
    if bytes.get(end).is_some_and(|byte| (0x40..0x7f).contains(byte)) { end + 1 } else { end }
}

/// Whether a letter follows, so that an apostrophe before it is inside a word.
fn joins(text: &str, at: usize) -> bool {
    text.get(at..).and_then(|rest| rest.chars().next()).is_some_and(char::is_alphabetic)
}

/// Whether the line after a line break starts something new; wrapped lines go on.
fn ends_paragraph(rest: &[u8]) -> bool {
    rest.iter()
        .find(|&&byte| byte != b' ' && byte != b'\t' && byte != b'\r')
        .is_none_or(|byte| matches!(byte, b'\n' | b'-' | b'*' | b'#' | b'>' | b'0'..=b'9' | 0xe2))
}

enum Fold {
    /// Part of a word, as this character.
    Letter(char),
    /// A word of its own: scripts that do not put spaces between words.
    Alone,
    /// Invisible, or an accent of the letter before.
    Nothing,
    Apostrophe,
    /// Between words.
    Break,
    /// Between sentences.
    Stop,
}

/// ASCII letters in lower case and digits; zero for everything else.
const FOLD: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        if byte.is_ascii_alphanumeric() {
            table[byte as usize] = byte.to_ascii_lowercase();
        }
        byte += 1;
    }
    table
};

fn fold(character: char) -> Fold {
    match character {
        'a'..='z' | 'A'..='Z' | '0'..='9' => Fold::Letter(character.to_ascii_lowercase()),
        '\'' | '`' | '´' | '‘' | '’' | '‛' | 'ʼ' | '′' | '＇' => Fold::Apostrophe,
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{300}'..='\u{36f}' => {
            Fold::Nothing
        }
        '。' | '！' | '？' | '｡' => Fold::Stop,
        '\u{ff10}'..='\u{ff19}' | '\u{ff21}'..='\u{ff3a}' | '\u{ff41}'..='\u{ff5a}' => {
            let half = u32::from(character) - 0xfee0;
            char::from_u32(half).map_or(Fold::Break, |it| Fold::Letter(it.to_ascii_lowercase()))
        }
        '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' => Fold::Alone,
        _ if character.is_alphanumeric() => Fold::Letter(without_accent(character)),
        _ => Fold::Break,
    }
}

/// The lower-case base letter, so that composed and decomposed spellings are the same.
fn without_accent(character: char) -> char {
    let lower = character.to_lowercase().next().unwrap_or(character);
    match lower {
        'à'..='å' | 'ā' | 'ă' | 'ą' => 'a',
        'ç' | 'ć' | 'č' => 'c',
        'è'..='ë' | 'ē' | 'ė' | 'ę' | 'ě' => 'e',
        'ì'..='ï' | 'ī' | 'į' | 'ı' => 'i',
        'ñ' | 'ń' | 'ň' => 'n',
        'ò'..='ö' | 'ø' | 'ō' | 'ő' => 'o',
        'ù'..='ü' | 'ū' | 'ů' | 'ű' => 'u',
        'ý' | 'ÿ' => 'y',
        'ś' | 'š' => 's',
        'ź' | 'ż' | 'ž' => 'z',
        'й' => 'и',
        'ё' => 'е',
        other => other,
    }
}
