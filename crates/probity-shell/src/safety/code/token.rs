//! Programs of other languages, cut into names, strings and marks.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'t> {
    /// A name with its dots, `os.path.join`.
    Name(&'t str),
    Text(&'t str),
    /// Text between backquotes: Perl and Ruby run it.
    Backquoted(&'t str),
    Mark(char),
}

/// Cuts a program into tokens. Comments are left out.
pub(super) fn tokens(text: &str) -> Vec<Token<'_>> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        let start = at;
        match byte {
            b'\'' | b'"' | b'`' => {
                let triple = text[at..].starts_with("\"\"\"") || text[at..].starts_with("'''");
                let quote = if triple { &text[at..at + 3] } else { &text[at..=at] };
                let from = at + quote.len();
                let end = closing(text, from, quote);
                let inner = &text[from..end];
                tokens.push(match byte {
                    b'`' => Token::Backquoted(inner),
                    _ => Token::Text(inner),
                });
                at = (end + quote.len()).min(bytes.len());
            }
            b'#' if start == 0 || bytes[start - 1].is_ascii_whitespace() => {
                at = text[at..].find('\n').map_or(bytes.len(), |it| at + it);
            }
            b'/' if text[at..].starts_with("//") => {
                at = text[at..].find('\n').map_or(bytes.len(), |it| at + it);
            }
            _ if byte.is_ascii_alphabetic() || byte == b'_' || byte == b'$' => {
                let is_name = |it: &u8| it.is_ascii_alphanumeric() || b"_.:$-".contains(it);
                let mut end = at + bytes[at..].iter().take_while(|it| is_name(it)).count();
                // `a-b` is a subtraction unless it is an arrow; `->` joins names.
                while text[end..].starts_with('>') && text[..end].ends_with('-') {
                    end += 1 + bytes[end + 1..].iter().take_while(|it| is_name(it)).count();
                }
                tokens.push(Token::Name(text[at..end].trim_end_matches([':', '.', '-'])));
                at = end;
            }
            _ if byte.is_ascii() => {
                at += 1;
                if byte == b'\n' || !byte.is_ascii_whitespace() {
                    tokens.push(Token::Mark(char::from(byte)));
                }
            }
            _ => at += text[at..].chars().next().map_or(1, char::len_utf8),
        }
    }
    tokens
}

fn closing(text: &str, from: usize, quote: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = from;
    while at < bytes.len() {
        if bytes[at] == b'\\' {
            at += 2;
        } else if text.is_char_boundary(at) && text[at..].starts_with(quote) {
            return at;
        } else {
            at += 1;
        }
    }
    text.len()
}
