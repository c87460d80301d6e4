//! Text of unknown origin, cut to what people read.

use std::{borrow::Cow, fmt::Display};

use anstream::adapter::strip_str;
use probity_core::visible::safe;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// The first line of a text, cut to so many columns.
pub fn one_line(text: &str, width: usize) -> String {
    let mut lines = text.trim().lines();
    let first = lines.next().unwrap_or("");
    let kept = beginning(first, width);
    let cut = kept.len() < first.len() || lines.next().is_some();
    let shown = safe(kept).replace('\t', " ");
    if cut { format!("{shown}…") } else { shown }
}

/// The width of a column of names: at least so that short ones line up from table to table.
pub(crate) fn name_width<'a>(names: impl Iterator<Item = &'a str>) -> usize {
    names.map(columns).max().unwrap_or(0).clamp(12, 40)
}

/// The first line of a text in so many columns, with a sign that there is more as the last.
pub fn fitted(text: &str, width: usize) -> String {
    let shown = one_line(text, width);
    if columns(&shown) <= width {
        return shown;
    }
    format!("{}…", beginning(&shown, width.saturating_sub(1)))
}

/// As much of the beginning of a text as so many columns hold.
fn beginning(text: &str, width: usize) -> &str {
    // Any number of signs that take no column fit into one.
    let text = text.char_indices().nth(4 * width + 16).map_or(text, |(end, _)| &text[..end]);
    // Signs that are joined may take fewer columns than they would on their own.
    if columns(text) <= width {
        return text;
    }
    let mut used = 0;
    let too_far = text.char_indices().find(|(_, c)| {
        used += c.width().unwrap_or(1);
        used > width
    });
    too_far.map_or(text, |(end, _)| &text[..end])
}

/// A text with blanks behind it, up to so many columns.
pub fn flush_left(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(columns(text))))
}

/// A text with blanks before it, up to so many columns.
pub fn flush_right(text: &str, width: usize) -> String {
    format!("{}{text}", " ".repeat(width.saturating_sub(columns(text))))
}

/// A text in lines of so many columns, broken between words. Every line but the first begins
/// with `indent`.
pub fn folded(text: &str, width: usize, indent: &str) -> String {
    let (mut folded, mut used) = (String::new(), 0);
    let mut words = text.split(' ').peekable();
    while let Some(word) = words.next() {
        let length = columns(word);
        // A number and its sign stay together.
        let sign = words.peek().filter(|it| it.starts_with('%')).map_or(0, |it| 1 + columns(it));
        let is_sign = word.starts_with('%');
        if used > 0 && !is_sign && used + 1 + length + sign > width {
            folded.push('\n');
            folded.push_str(indent);
            used = columns(indent);
        } else if used > 0 {
            folded.push(' ');
            used += 1;
        }
        folded.push_str(word);
        used += length;
    }
    folded
}

/// Every line in so many columns: one that is longer goes on, further in, in the next.
pub fn wrapped(text: &str, width: usize) -> String {
    let mut wrapped = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let words = line.trim_start_matches(' ');
        let indent = line.len() - words.len();
        wrapped.push_str(&line[..indent]);
        match columns(line.trim_end()) <= width {
            true => wrapped.push_str(words),
            false => {
                let further = " ".repeat(indent + 2);
                wrapped.push_str(&folded(words, width.saturating_sub(indent), &further));
            }
        }
    }
    wrapped
}

/// The columns of a terminal that a text takes, without the codes for its colours.
pub fn columns(text: &str) -> usize {
    match text.contains('\x1b') {
        true => strip_str(text).to_string().width(),
        false => text.width(),
    }
}

/// The text up to so many characters, and a note of how many more there are.
pub fn capped(text: &str, most: usize) -> Cow<'_, str> {
    // A text of so few bytes cannot have more characters.
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    match text.char_indices().nth(most) {
        None => Cow::Borrowed(text),
        Some((end, _)) => {
            let more = text[end..].chars().count();
            Cow::Owned(format!("{}… ({more} more characters)", &text[..end]))
        }
    }
}

/// So many of a thing, whose plural ends in "s".
pub fn counted(count: impl Display, noun: &str) -> String {
    let count = count.to_string();
    let ending = if count == "1" { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

/// One word of a command that somebody is going to copy.
pub fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+:@,=".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_lines_the_first_is_shown() {
        assert_eq!(one_line("  first\nsecond", 10), "first…");
        assert_eq!(one_line("abcdef", 3), "abc…");
        for (text, shown) in
            [("abc", "abc"), ("abcdef", "ab…"), ("a\nb", "a…"), ("\u{1b}[2J", "\\u…")]
        {
            assert_eq!(fitted(text, 3), shown);
        }
    }

    #[test]
    fn wide_signs_take_two_columns_and_marks_none() {
        for (text, width) in [("abc", 3), ("模型", 4), ("e\u{301}", 1), ("👍🏽", 2), ("한글", 4)]
        {
            assert_eq!(columns(text), width, "{text}");
        }
        assert_eq!(
            (fitted("模型一", 5), fitted("模型一", 4)),
            ("模型…".to_owned(), "模…".to_owned())
        );
        assert_eq!(
            (flush_left("模", 4), flush_right("模", 4)),
            ("模  ".to_owned(), "  模".to_owned())
        );
        assert_eq!(folded("模型 模型", 5, ""), "模型\n模型");
    }

    #[test]
    fn signs_that_take_no_column_are_not_shown_without_end() {
        let text = "e\u{301}".to_owned() + &"\u{301}".repeat(1_000_000);
        assert_eq!(one_line(&text, 10).chars().count(), 57);
        assert!(one_line(&text, 10).ends_with('…'));
        assert_eq!(fitted(&text, 2).chars().count(), 25);
        assert_eq!(one_line("e\u{301}", 1), "e\u{301}");
    }

    #[test]
    fn long_lines_go_on_further_in() {
        assert_eq!(wrapped("ab cd\n  ef gh ij\nk", 7), "ab cd\n  ef gh\n    ij\nk");
        let coloured = "\u{1b}[38;5;30mab\u{1b}[0m cd";
        assert_eq!((wrapped(coloured, 5).as_str(), columns(coloured)), (coloured, 5));
    }

    #[test]
    fn a_cut_is_told_and_never_inside_a_character() {
        assert_eq!(capped("ééé", 3), "ééé");
        assert_eq!(capped("éééé", 3), "ééé… (1 more characters)");
        assert_eq!(capped("abc", 0), "… (3 more characters)");
    }
}
