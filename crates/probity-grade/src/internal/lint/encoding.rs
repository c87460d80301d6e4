//! Finds text that was read in the wrong encoding and saved again.

/// A piece of text that was encoded twice.
pub(super) struct Piece {
    /// What stands in the text.
    pub(super) is: String,
    /// What it was before.
    pub(super) was: String,
}

/// The first run of characters whose Windows-1252 bytes are UTF-8 for something else.
pub(super) fn double_encoded(text: &str) -> Option<Piece> {
    let mut run = String::new();
    for c in text.chars().chain(std::iter::once(' ')) {
        if !c.is_ascii() && byte_of(c).is_some() {
            run.push(c);
            continue;
        }
        if run.chars().count() > 1 {
            let bytes: Vec<u8> = run.chars().filter_map(byte_of).collect();
            if let Ok(was) = String::from_utf8(bytes) {
                return Some(Piece { is: run, was });
            }
        }
        run.clear();
    }
    None
}

/// The byte of a character in Windows-1252; bytes it leaves open are taken as Latin-1.
fn byte_of(c: char) -> Option<u8> {
    const HIGH: [(char, u8); 27] = [
        ('€', 0x80),
        ('‚', 0x82),
        ('ƒ', 0x83),
        ('„', 0x84),
        ('…', 0x85),
        ('†', 0x86),
        ('‡', 0x87),
        ('ˆ', 0x88),
        ('‰', 0x89),
        ('Š', 0x8a),
        ('‹', 0x8b),
        ('Œ', 0x8c),
        ('Ž', 0x8e),
        ('‘', 0x91),
        ('’', 0x92),
        ('“', 0x93),
        ('”', 0x94),
        ('•', 0x95),
        ('–', 0x96),
        ('—', 0x97),
        ('˜', 0x98),
        ('™', 0x99),
        ('š', 0x9a),
        ('›', 0x9b),
        ('œ', 0x9c),
        ('ž', 0x9e),
        ('Ÿ', 0x9f),
    ];
    match u32::from(c) {
        code @ 0..=0xff => u8::try_from(code).ok(),
        _ => HIGH.iter().find(|(high, _)| *high == c).map(|(_, byte)| *byte),
    }
}
