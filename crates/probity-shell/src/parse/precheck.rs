//! What is refused before the parser runs, and what it lets pass although no shell would.

use super::{MAX_BYTES, ParseError};
use crate::{field, tree::Span};

/// Most openings that may be pending at once. The parser has limits of its own; this one spares it the walk.
const MAX_OPEN: usize = 400;

/// Most of those that may be parentheses. In a pattern, each one may double the work of the parser.
const MAX_PARENTHESES: usize = 30;

/// Most expansions and patterns with brackets that may be pending at once. The parser reads what is in one again and again.
const MAX_NESTED: usize = 40;

/// Most of those that are never closed: for each one, the parser may do twice the work.
const MAX_UNCLOSED: usize = 10;

/// The parser looks for the end of each `{` that is never closed, and again for each one before it. Most characters
/// that it may look at for that.
const MOST_SCANNED: usize = 10_000_000;

/// Most words of one pipeline that each open a level.
const MAX_KEYWORDS: usize = 10;

/// The shortest text that has more of them: each of four letters, with one sign between them.
const SHORTEST_OF_KEYWORDS: usize = (MAX_KEYWORDS + 1) * ("time".len() + 1) - 1;

/// Most of these words in a whole text, whatever stands between them.
const MAX_KEYWORDS_IN_ALL: usize = 100;

pub(super) fn check(source: &str) -> Result<(), ParseError> {
    if source.len() > MAX_BYTES {
        return Err(ParseError::TooLong);
    }
    // Most commands have nothing of what is looked for, which a glance tells.
    let bytes = source.as_bytes();
    if memchr::memchr2(0, field::FIRST_BYTE, bytes).is_some() {
        characters(source)?;
    }
    if memchr::memchr2(b'(', b'{', bytes).is_some() {
        openings(source)?;
        unclosed_braces(source)?;
    }
    if source.len() >= SHORTEST_OF_KEYWORDS {
        keywords(source)?;
    }
    Ok(())
}

fn characters(source: &str) -> Result<(), ParseError> {
    let refused = |it: char| it == '\0' || ('\u{FDD0}'..='\u{FDEF}').contains(&it);
    match source.char_indices().find(|(_, it)| refused(*it)) {
        Some((at, character)) => Err(ParseError::Character { character, at }),
        None => Ok(()),
    }
}

fn unclosed_braces(source: &str) -> Result<(), ParseError> {
    let left = source.bytes().fold(0_usize, |open, byte| match byte {
        b'{' => open + 1,
        b'}' => open.saturating_sub(1),
        _ => open,
    });
    match left.saturating_mul(left).saturating_mul(source.len()) > MOST_SCANNED {
        true => Err(ParseError::TooDeep),
        false => Ok(()),
    }
}

/// The parser goes one level deeper for each `time` and `coproc` of a pipeline, without a limit of its own. Names and
/// redirections may stand between them, and blank or continued lines. Where a pipeline ends is guessed here: the bound for
/// the whole text is what keeps the parser's stack.
fn keywords(source: &str) -> Result<(), ParseError> {
    let (mut count, mut in_all): (usize, usize) = (0, 0);
    for line in source.lines() {
        for word in line.split([' ', '\t', '\\', '<', '>', '|']) {
            match word {
                "time" | "coproc" => {
                    count += 1;
                    in_all += 1;
                }
                _ if word.contains([';', '&', '(', ')', '{', '}']) => count = 0,
                _ => {}
            }
            if count > MAX_KEYWORDS || in_all > MAX_KEYWORDS_IN_ALL {
                return Err(ParseError::TooDeep);
            }
        }
        let line = line.trim_end_matches([' ', '\t', '\r']);
        let last = line.rsplit([' ', '\t']).next().unwrap_or_default();
        let goes_on = matches!(last, "" | "time" | "coproc" | "-p" | "!" | "--")
            || last.ends_with(['\\', '|']);
        if !goes_on {
            count = 0;
        }
    }
    Ok(())
}

/// Counts brackets without regard to quotes: too many is too many even if some are text.
fn openings(source: &str) -> Result<(), ParseError> {
    let mut open: usize = 0;
    // The brackets that are open, and whether each begins an expansion or a pattern.
    let mut pending: Vec<(u8, bool)> = Vec::new();
    let (mut nested, mut parentheses, mut before) = (0, 0, 0);
    for byte in source.bytes() {
        match byte {
            b'(' | b'{' => {
                open += 1;
                let is_nested = b"$<>?*+@!".contains(&before);
                nested += usize::from(is_nested);
                parentheses += usize::from(byte == b'(');
                pending.push((byte, is_nested));
            }
            b')' | b'}' => {
                open = open.saturating_sub(1);
                let opening = if byte == b')' { b'(' } else { b'{' };
                if let Some((_, is_nested)) = pending.pop_if(|it| it.0 == opening) {
                    nested -= usize::from(is_nested);
                    parentheses -= usize::from(byte == b')');
                }
            }
            _ => {}
        }
        if open > MAX_OPEN || parentheses > MAX_PARENTHESES || nested > MAX_NESTED {
            return Err(ParseError::TooDeep);
        }
        before = byte;
    }
    match nested > MAX_UNCLOSED {
        true => Err(ParseError::TooDeep),
        false => Ok(()),
    }
}

/// The parser takes `${x` without its brace for a whole expansion; a shell waits for the rest.
pub(super) fn unclosed(source: &str, span: Span) -> Option<ParseError> {
    let text = span.of(source);
    (text.starts_with("${") && !text.ends_with('}'))
        .then(|| ParseError::Syntax { message: "`${` without its `}`".to_owned(), span })
}

/// The text without its backslash-newlines, if it has some that continue a line: in comments and single quotes they do
/// not.
pub(super) fn join_lines(source: &str) -> Option<String> {
    memchr::memmem::find(source.as_bytes(), b"\\\n")?;
    let mut joined = String::with_capacity(source.len());
    let (mut single, mut double, mut comment, mut word_start) = (false, false, false, true);
    let mut chars = source.chars();
    while let Some(char) = chars.next() {
        match char {
            '\n' => comment = false,
            '\\' if !single && !comment => {
                match chars.next() {
                    Some('\n') => {}
                    Some(next) => joined.extend([char, next]),
                    None => joined.push(char),
                }
                word_start = false;
                continue;
            }
            '\'' if !double && !comment => single = !single,
            '"' if !single && !comment => double = !double,
            '#' if word_start && !single && !double => comment = true,
            _ => {}
        }
        word_start = char.is_ascii_whitespace() || matches!(char, ';' | '&' | '|' | '(' | ')');
        joined.push(char);
    }
    (joined.len() < source.len()).then_some(joined)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Script;

    #[test]
    fn a_line_may_be_continued_inside_a_word_or_an_operator() {
        for text in ["un\\\ntil a; do b; done", "a &\\\n& b", "a |\\\n| b", "cat <\\\n<E\nx\nE\n"] {
            assert!(Script::parse(text).is_ok(), "{text:?}");
        }
    }

    #[test]
    fn many_braces_that_are_never_closed_are_not_parsed() {
        let open = |groups: usize| r#"x: {"error":{"message":"Rate "#.repeat(groups);
        assert!(matches!(Script::parse(&open(100)), Err(ParseError::TooDeep)));
        // Those that are closed are counted by their depth alone.
        let closed = format!("echo {}", "{a,b}".repeat(10_000));
        assert!(Script::parse(&closed).is_ok());
    }

    #[test]
    fn what_the_parser_would_read_again_and_again_is_not_parsed() {
        let refused = [
            format!("echo {}x{}", "\"${a:-$(echo ".repeat(80), ")}\"".repeat(80)),
            format!("${{a/{}", "?(".repeat(40)),
            format!("echo {}{}", "](case x in ".repeat(40), "a) ".repeat(40)),
            "${a%)||\"\n".repeat(80),
            format!("cat <<EOF > x\n{}", "$( <<EOF > x\n".repeat(320)),
            "time <<E coproc ".repeat(320),
            "time <x \\\n".repeat(320),
            "coproc X |".repeat(320),
            "time a |\n".repeat(320),
            "time\n".repeat(320),
            "time 2>&1 ".repeat(320),
            "time #\n".repeat(320),
            "time <'a;b' ".repeat(320),
            "coproc X |& ".repeat(320),
        ];
        for text in &refused {
            assert!(matches!(Script::parse(text), Err(ParseError::TooDeep)), "{text}");
        }
        // Nobody writes a tenth of it.
        for text in [
            format!("echo {}x{}", "\"$(echo ".repeat(10), ")\"".repeat(10)),
            format!("[[ a == {}b{} ]]", "@(".repeat(10), ")".repeat(10)),
            format!("{}a{}", "(".repeat(25), ")".repeat(25)),
            "time ls; ".repeat(100),
            "time 2>&1 ".repeat(10) + "ls",
        ] {
            assert!(Script::parse(&text).is_ok(), "{text}");
        }
    }

    #[test]
    fn the_shortest_text_of_too_many_keywords_is_not_parsed() {
        let text = |count: usize| ["time"; 11][..count].join("|");
        assert_eq!(text(11).len(), SHORTEST_OF_KEYWORDS);
        assert!(matches!(check(&text(11)), Err(ParseError::TooDeep)));
        assert!(check(&text(10)).is_ok());
    }

    #[test]
    fn characters_that_no_command_can_hold_are_told_with_their_place() {
        for (text, wanted) in [("é\0", '\0'), ("é\u{FDD0}", '\u{FDD0}'), ("é\u{FDEF}", '\u{FDEF}')]
        {
            assert_eq!(check(text), Err(ParseError::Character { character: wanted, at: 2 }));
        }
        assert_eq!(check("\u{FEFF}\u{FDF0}\u{FDCF}"), Ok(()));
    }

    #[test]
    fn single_quotes_and_comments_keep_their_backslashes() {
        assert_eq!(join_lines("echo 'a\\\nb'"), None);
        assert_eq!(join_lines("a # b\\\nc"), None);
        assert_eq!(join_lines("a'b'\\\nc").as_deref(), Some("a'b'c"));
    }
}
