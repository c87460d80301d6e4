//! Text of unknown origin within Markdown: always code, in a form that it cannot end.

use std::borrow::Cow;

use probity_core::visible::safe;

/// A code span: no mention, link, picture or tag is seen in it. The text has to be one line.
pub(crate) fn span(text: &str) -> String {
    let text = safe(text).replace(['\n', '\t'], " ");
    if text.trim().is_empty() {
        return "(empty)".to_owned();
    }
    let fence = "`".repeat(longest_run(&text) + 1);
    // A blank at both ends is taken away again, so that a backtick may stand there.
    let pad = if text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// A code span in a table. Parsers differ in what ends a cell, so that no bar is left.
pub(crate) fn cell(text: &str) -> String {
    span(&text.replace('|', "¦"))
}

/// Text within HTML that Markdown leaves alone.
pub(crate) fn html(text: &str) -> String {
    let mut shown = String::with_capacity(text.len() + 16);
    for c in safe(text).chars() {
        match c {
            '&' => shown.push_str("&amp;"),
            '<' => shown.push_str("&lt;"),
            '>' => shown.push_str("&gt;"),
            '"' => shown.push_str("&quot;"),
            '\'' => shown.push_str("&#39;"),
            // Should a reader take this for Markdown after all, it still is no code.
            '`' => shown.push_str("&#96;"),
            // A blank line would end the HTML.
            '\n' | '\t' => shown.push(' '),
            c => shown.push(c),
        }
    }
    shown
}

/// A fenced block whose fence is longer than any run of backticks in it.
pub(crate) fn fenced(text: &str) -> String {
    let text: Cow<'_, str> = safe(text);
    let fence = "`".repeat((longest_run(&text) + 1).max(3));
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}text\n{text}{end}{fence}\n")
}

/// The most backticks in a row.
fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_fenced_by_more_backticks_than_it_has() {
        assert_eq!(span("a"), "`a`");
        assert_eq!(span("`a"), "`` `a ``");
        assert_eq!(span("a``b"), "```a``b```");
        assert_eq!(span(" \n"), "(empty)");
        assert_eq!(cell("a|b"), "`a¦b`");
        assert_eq!(fenced("a"), "```text\na\n```\n");
        assert_eq!(fenced("````\n"), "`````text\n````\n`````\n");
        assert_eq!(html("</code>\n\n@x\0"), "&lt;/code&gt;  @x\\u{0}");
    }
}
