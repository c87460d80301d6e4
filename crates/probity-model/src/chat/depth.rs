//! A look at a chat template before the engine sees it.
//!
//! The engine's parser follows signs, operators and `elif` by recursion, and knows no limit there. A file that anybody has made must not
//! end the program, so a template that goes too far is refused here.

/// Operators and opening brackets in one tag. The templates that models come with have some dozens.
const MOST_OPERATORS: usize = 400;
/// `elif` in a template.
const MOST_BRANCHES: usize = 200;

/// Why a template is not given to the engine.
pub(super) fn too_deep(template: &str) -> Option<String> {
    let mut branches = 0;
    let mut rest = template;
    while let Some(start) = rest.find('{') {
        rest = &rest[start + 1..];
        let closing = match rest.bytes().next() {
            Some(b'{') => "}}",
            Some(b'%') => "%}",
            Some(b'#') => {
                rest = rest.find("#}").map_or("", |end| &rest[end + 2..]);
                continue;
            }
            Some(_) | None => continue,
        };
        let tag = Tag::read(&rest[1..], closing);
        branches += usize::from(tag.is_branch);
        if tag.operators > MOST_OPERATORS {
            return Some(format!("a tag has more than {MOST_OPERATORS} operators and brackets"));
        }
        if branches > MOST_BRANCHES {
            return Some(format!("there are more than {MOST_BRANCHES} `elif`"));
        }
        rest = &rest[1 + tag.length..];
    }
    None
}

/// What is between the marks of a tag.
struct Tag {
    operators: usize,
    is_branch: bool,
    /// Bytes, with its end.
    length: usize,
}

impl Tag {
    /// Reads a tag to its end. In brackets the mark of the end is none, as for the engine.
    fn read(text: &str, closing: &str) -> Self {
        let is_part = |it: char| it.is_alphanumeric() || it == '_';
        let first = text.trim_start_matches(['-', '+']).trim_start();
        let is_branch = first.starts_with("elif");
        let (mut operators, mut open, mut at) = (0, 0_usize, 0);
        while let Some(c) = text[at..].chars().next() {
            let rest = &text[at..];
            if open == 0 && rest.starts_with(closing) {
                return Self { operators, is_branch, length: at + closing.len() };
            }
            at += match c {
                '"' | '\'' => quoted(rest, c),
                _ if is_part(c) => {
                    let word = &rest[..rest.find(|it| !is_part(it)).unwrap_or(rest.len())];
                    let nests = ["not", "and", "or", "is", "in", "if", "else"].contains(&word);
                    operators += usize::from(nests);
                    word.len()
                }
                _ => {
                    match c {
                        '(' | '[' | '{' => open += 1,
                        ')' | ']' | '}' => open = open.saturating_sub(1),
                        _ => {}
                    }
                    let nests = !c.is_whitespace() && !",:=)]}".contains(c);
                    operators += usize::from(nests);
                    c.len_utf8()
                }
            };
        }
        Self { operators, is_branch, length: text.len() }
    }
}

/// Bytes of a quoted text, its quotes included.
fn quoted(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}
