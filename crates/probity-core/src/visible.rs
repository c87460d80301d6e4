//! Text of unknown origin, made fit for people: what cannot be seen is spelled out.
//!
//! Everything that is shown to people goes through here. No control character, no change of
//! direction and nothing invisible gets through, so that what is read is what is there.

use std::borrow::Cow;

/// The text with everything visible that could move a cursor, turn writing around or hide.
pub fn safe(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    text.chars().for_each(|c| push_safe(&mut shown, c));
    Cow::Owned(shown)
}

/// Adds a character, spelled out if it cannot be seen.
pub fn push_safe(shown: &mut String, c: char) {
    match c {
        '\r' => shown.push_str("\\r"),
        c if is_hidden(c) => shown.extend(c.escape_unicode()),
        c => shown.push(c),
    }
}

/// Whether a character has no business in text for people: controls but for line ends and
/// tabs, format characters, what is ignored by default, and what is no character at all.
///
/// The ranges are those of Unicode 17: the general categories Cc, Cf, Zl and Zp, the property
/// `Default_Ignorable_Code_Point`, and noncharacters. The two variation selectors that choose
/// between text and emoji stay, because they are everywhere and change no meaning.
pub const fn is_hidden(c: char) -> bool {
    if matches!(c, '\n' | '\t' | ' '..='~' | '\u{fe0e}' | '\u{fe0f}') {
        return false;
    }
    let is_last_of_plane = c as u32 & 0xfffe == 0xfffe;
    is_last_of_plane
        || matches!(c,
            '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}'
            | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}' | '\u{8e2}'
            // Fillers of Hangul and Khmer, and the separators of Mongolian.
            | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{fdd0}'..='\u{fdef}' | '\u{fe00}'..='\u{fe0d}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            // Tags and further variation selectors: a whole hidden alphabet.
            | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_could_do_harm_is_made_visible() {
        assert_eq!(safe("a\x1b[31mb\u{202e}c\0\r"), "a\\u{1b}[31mb\\u{202e}c\\u{0}\\r");
        assert!(matches!(safe("plain\n\ttext é ☺\u{fe0f} 漢字"), Cow::Borrowed(_)));
    }

    #[test]
    fn nothing_invisible_gets_through() {
        let hidden = [
            '\u{ad}',
            '\u{115f}',
            '\u{180e}',
            '\u{3164}',
            '\u{ffa0}',
            '\u{fff9}',
            '\u{e0041}',
            '\u{e0100}',
            '\u{9b}',
            '\u{2066}',
            '\u{200b}',
            '\u{feff}',
            '\u{fe00}',
            '\u{ffff}',
            '\u{10fffe}',
            '\u{34f}',
            '\u{206a}',
        ];
        for c in hidden {
            assert_eq!(safe(&c.to_string()), format!("\\u{{{:x}}}", u32::from(c)));
        }
    }

    proptest! {
        #[test]
        fn what_is_safe_has_nothing_hidden_and_stays_as_it_is(text in any::<String>()) {
            let shown = safe(&text).into_owned();
            prop_assert!(!shown.contains(is_hidden));
            prop_assert_eq!(safe(&shown), shown.as_str());
        }

        #[test]
        fn controls_never_get_through(c in any::<char>()) {
            let is_harmless = matches!(c, '\n' | '\t');
            prop_assert!(!c.is_control() || is_harmless || is_hidden(c));
        }
    }
}
