//! Makes error texts comparable.

use std::str::Chars;

use super::Text;

/// Longest text that is looked at, in bytes. Errors say what they are at one of their ends.
const LONGEST: usize = 64 << 10;
/// What stands for the name of an option.
const OPTION: &str = "--…";

/// Lower case, one blank between words, no colours, plain quotes, no names of options.
pub(super) fn normalized(text: &str) -> String {
    let text = both_ends(text);
    let mut output = String::with_capacity(text.len());
    let mut chars = text.chars();
    loop {
        take_plain(&mut chars, &mut output);
        let Some(c) = chars.next() else { break };
        match c {
            '\u{1b}' => skip_escape_sequence(&mut chars),
            '‘' | '’' | '‛' | '`' | '´' => output.push('\''),
            '“' | '”' | '„' => output.push('"'),
            '-' if begins_an_option(&output, &mut chars) => {
                while next_if(&mut chars, |c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')) {
                }
                output.push_str(OPTION);
            }
            c if c.is_whitespace() || c.is_control() => {
                if !output.ends_with(' ') && !output.is_empty() {
                    output.push(' ');
                }
            }
            c if c.is_ascii() => output.push(c.to_ascii_lowercase()),
            c => output.extend(c.to_lowercase()),
        }
    }
    output.truncate(output.trim_end().len());
    output
}

/// Takes what stays but for its capitals, which is nearly all of a text: words of ASCII with one blank between them.
fn take_plain(chars: &mut Chars<'_>, output: &mut String) {
    let rest = chars.as_str();
    let mut after_blank = output.is_empty() || output.ends_with(' ');
    let is_plain = |byte: &u8| match *byte {
        b' ' => !std::mem::replace(&mut after_blank, true),
        b'-' | b'`' => false,
        _ => {
            after_blank = false;
            byte.is_ascii_graphic()
        }
    };
    let length = rest.bytes().take_while(is_plain).count();
    let (plain, rest) = rest.split_at(length);
    let start = output.len();
    output.push_str(plain);
    output[start..].make_ascii_lowercase();
    *chars = rest.chars();
}

/// Takes the next character if it is as wanted.
fn next_if(chars: &mut Chars<'_>, wanted: impl FnOnce(char) -> bool) -> bool {
    let mut ahead = chars.clone();
    let found = ahead.next().is_some_and(wanted);
    if found {
        *chars = ahead;
    }
    found
}

/// Whether a dash begins `--timeout` or `-timeout`; takes its second dash if it does.
fn begins_an_option(before: &str, chars: &mut Chars<'_>) -> bool {
    let apart =
        before.is_empty() || before.ends_with([' ', '\'', '"', '(', '[', '<', '|', ',', '=']);
    let mut ahead = chars.clone();
    let long = next_if(&mut ahead, |c| c == '-');
    let named = ahead.next().is_some_and(|c| c.is_ascii_alphanumeric());
    // A single dash begins an option's name only if more than a letter follows.
    let spelled = long || ahead.next().is_some_and(|c| c.is_ascii_alphabetic());
    let numeric = !long && chars.clone().next().is_some_and(|c| c.is_ascii_digit());
    let begins = apart && named && spelled && !numeric;
    if begins && long {
        chars.next();
    }
    begins
}

/// The beginning and the end of a text that is too long.
fn both_ends(text: &str) -> Text<'_> {
    if text.len() <= LONGEST {
        return text.into();
    }
    let head = &text[..text.floor_char_boundary(LONGEST / 2)];
    let tail = &text[text.ceil_char_boundary(text.len() - LONGEST / 2)..];
    format!("{head}\n{tail}").into()
}

/// Takes the rest of a terminal's escape sequence: `[` parameters letter, or one character.
fn skip_escape_sequence(chars: &mut Chars<'_>) {
    if next_if(chars, |c| c == '[') {
        while next_if(chars, |c| !('@'..='~').contains(&c)) {}
    }
    chars.next();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_coloured_and_quoted_text_reads_the_same() {
        assert_eq!(
            normalized(" \u{1b}[31mError:\u{1b}[0m Rate\n     limit ‘reached’\r\n"),
            "error: rate limit 'reached'"
        );
    }

    #[test]
    fn blanks_are_one_wherever_they_stand() {
        assert_eq!(normalized("  a  b \t c-D\n \u{85}e  "), "a b c-d e");
    }

    #[test]
    fn names_of_options_are_no_evidence() {
        assert_eq!(normalized("bad --timeout=3 and --retry-on-429"), "bad --…=3 and --…");
        assert_eq!(normalized("not defined: -timeout, '-retry'"), "not defined: --…, '--…'");
        assert_eq!(
            normalized("option -- 'q' - x -1 -429 a-b well--known"),
            "option -- 'q' - x -1 -429 a-b well--known"
        );
    }

    #[test]
    fn only_the_ends_of_a_long_text_count() {
        let long = format!("first {} last", "x".repeat(1 << 20));
        let text = normalized(&long);
        assert!(text.len() < (65 << 10) && text.starts_with("first") && text.ends_with("last"));
    }
}
