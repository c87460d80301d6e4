//! Text of unknown origin, cut to what people read.

use std::{borrow::Cow, fmt::Display};

use anstream::adapter::strip_str;
use probity_core::visible::safe;

/// The first line of a text, cut to a width.
pub fn one_line(text: &str, width: usize) -> String {
    let mut lines = text.trim().lines();
    let first = lines.next().unwrap_or("");
    let cut = first.chars().count() > width || lines.next().is_some();
    let kept: String = first.chars().take(width).collect();
    let shown = safe(&kept).replace('\t', " ");
    if cut { format!("{shown}…") } else { shown }
}

/// The width of a column of names: at least so that short ones line up from table to table.
pub(crate) fn name_width<'a>(names: impl Iterator<Item = &'a str>) -> usize {
    names.map(|it| it.chars().count()).max().unwrap_or(0).clamp(12, 40)
}

/// The first line of a text in so many columns, with a sign that there is more as the last.
pub fn fitted(text: &str, width: usize) -> String {
    let shown = one_line(text, width);
    if shown.chars().count() <= width {
        return shown;
    }
    let kept: String = shown.chars().take(width.saturating_sub(1)).collect();
    format!("{kept}…")
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
            used = indent.chars().count();
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

/// The columns that a text takes, without the codes for its colours.
pub fn columns(text: &str) -> usize {
    strip_str(text).to_string().chars().count()
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
