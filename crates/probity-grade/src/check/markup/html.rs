//! HTML, as far as its tags say: known elements, each closed that has to be.

use std::{collections::BTreeSet, ops::Range};

/// Elements without content.
const VOID: [&str; 14] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
    "track", "wbr",
];
/// Elements whose end may be left out.
const OPEN: [&str; 20] = [
    "body", "caption", "colgroup", "dd", "dt", "head", "html", "li", "optgroup", "option", "p",
    "rp", "rt", "tbody", "td", "tfoot", "th", "thead", "tr", "rtc",
];
/// All others.
const CLOSED: [&str; 76] = [
    "a",
    "abbr",
    "address",
    "article",
    "aside",
    "audio",
    "b",
    "bdi",
    "bdo",
    "blockquote",
    "button",
    "canvas",
    "center",
    "cite",
    "code",
    "data",
    "datalist",
    "del",
    "details",
    "dfn",
    "dialog",
    "div",
    "dl",
    "em",
    "fieldset",
    "figcaption",
    "figure",
    "font",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hgroup",
    "i",
    "iframe",
    "ins",
    "kbd",
    "label",
    "legend",
    "main",
    "map",
    "mark",
    "menu",
    "meter",
    "nav",
    "noscript",
    "object",
    "ol",
    "output",
    "picture",
    "pre",
    "progress",
    "q",
    "ruby",
    "s",
    "samp",
    "script",
    "section",
    "select",
    "small",
    "span",
    "strong",
    "style",
    "sub",
    "summary",
    "sup",
    "table",
    "template",
    "textarea",
    "title",
    "ul",
];
/// Elements whose content is not looked at.
const RAW: [&str; 4] = ["script", "style", "textarea", "title"];

/// What a tag is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Start,
    End,
    /// A start tag that ends in `/>`.
    Empty,
    /// A comment or a declaration.
    Other,
}

struct Tag {
    kind: Kind,
    name: String,
    span: Range<usize>,
}

/// Whether a text is HTML and nothing else; else what it is not.
pub(super) fn document(text: &str) -> Result<(), String> {
    let text = text.trim();
    let mut open: Vec<String> = Vec::new();
    let mut last = 0;
    let mut known = false;
    for tag in tags(text) {
        let Tag { kind, name, span } = tag;
        if open.is_empty() && !text[last..span.start].trim().is_empty() {
            return Err("there is text outside of every element".to_owned());
        }
        last = span.end;
        known |= kind != Kind::Other && is_known(&name);
        match kind {
            Kind::Start if !VOID.contains(&name.as_str()) => open.push(name),
            Kind::End => close(&mut open, &name)?,
            Kind::Start | Kind::Empty | Kind::Other => {}
        }
    }
    if open.is_empty() && !text[last..].trim().is_empty() {
        return Err("there is text outside of every element".to_owned());
    }
    let unclosed = open.iter().find(|it| !OPEN.contains(&it.as_str()));
    match unclosed {
        Some(name) => Err(format!("`<{name}>` has no end")),
        None if !known => Err("it has no element of HTML".to_owned()),
        None => Ok(()),
    }
}

/// Whether an element of HTML is in a text: one without content, or one with its end.
pub(super) fn is_in(text: &str) -> bool {
    let mut open = BTreeSet::new();
    tags(text).filter(|it| is_known(&it.name)).any(|Tag { kind, name, .. }| match kind {
        Kind::Start | Kind::Empty if VOID.contains(&name.as_str()) => true,
        Kind::End => open.contains(&name),
        Kind::Start => {
            open.insert(name);
            false
        }
        Kind::Empty | Kind::Other => false,
    })
}

/// Takes an element off the open ones, with those in it whose end may be left out.
fn close(open: &mut Vec<String>, name: &str) -> Result<(), String> {
    while let Some(inner) = open.pop() {
        if inner == name {
            return Ok(());
        }
        if !OPEN.contains(&inner.as_str()) {
            return Err(format!("`</{name}>` ends `<{inner}>`"));
        }
    }
    Err(format!("`</{name}>` ends nothing"))
}

fn is_known(name: &str) -> bool {
    VOID.contains(&name) || OPEN.contains(&name) || CLOSED.contains(&name) || name.contains('-')
}

/// The tags of a text in order. A `<` that begins none is text.
fn tags(text: &str) -> impl Iterator<Item = Tag> {
    let mut at = 0;
    let mut raw: Option<String> = None;
    std::iter::from_fn(move || {
        loop {
            let start = match &raw {
                None => at + text[at..].find('<')?,
                Some(name) => end_of(text, at, name)?,
            };
            let Some((kind, name, end)) = tag(text, start) else {
                at = start + 1;
                continue;
            };
            raw = (kind == Kind::Start && RAW.contains(&name.as_str())).then(|| name.clone());
            at = end;
            return Some(Tag { kind, name, span: start..end });
        }
    })
}

/// Where the end tag of an element begins, from a byte on. What else stands there is not looked at.
fn end_of(text: &str, from: usize, name: &str) -> Option<usize> {
    let is_named = |at: &usize| {
        let rest = &text.as_bytes()[at + 2..];
        let goes_on = |it: &u8| it.is_ascii_alphanumeric() || *it == b'-';
        rest.get(..name.len()).is_some_and(|it| it.eq_ignore_ascii_case(name.as_bytes()))
            && !rest.get(name.len()).is_some_and(goes_on)
    };
    text[from..].match_indices("</").map(|it| from + it.0).find(is_named)
}

/// The tag that begins at a byte: what it is, its name, and where it ends.
fn tag(text: &str, start: usize) -> Option<(Kind, String, usize)> {
    let rest = &text[start + 1..];
    if let Some(comment) = rest.strip_prefix("!--") {
        // One that is never closed goes to the end of the text.
        let end = comment.find("-->").map_or(text.len(), |length| start + 4 + length + 3);
        return Some((Kind::Other, String::new(), end));
    }
    if rest.starts_with('!') {
        return Some((Kind::Other, String::new(), tag_end(text, start + 2)?));
    }
    let is_end = rest.starts_with('/');
    let named = &rest[usize::from(is_end)..];
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let length = named.find(|c| !is_part(c)).unwrap_or(named.len());
    let name = named[..length].to_ascii_lowercase();
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return None;
    }
    let after = start + 1 + usize::from(is_end) + length;
    let end = tag_end(text, after)?;
    let kind = match (is_end, text[..end - 1].ends_with('/')) {
        (true, _) => Kind::End,
        (false, true) => Kind::Empty,
        (false, false) => Kind::Start,
    };
    Some((kind, name, end))
}

/// Where a tag ends: at the first `>` outside of quotes, before the next `<`.
fn tag_end(text: &str, after: usize) -> Option<usize> {
    let mut quote = None;
    for (at, byte) in text.as_bytes()[after..].iter().enumerate() {
        match (byte, quote) {
            (b'>', None) => return Some(after + at + 1),
            (b'<', None) => return None,
            (b'"' | b'\'', None) => quote = Some(byte),
            (byte, Some(open)) if byte == open => quote = None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_have_to_be_closed() {
        for text in [
            "<p>one<p>two",
            "<!DOCTYPE html>\n<html><head><title>a < b</title></head><body><br>x</body></html>",
            "<ul><li>a<li>b</ul>",
            "<div class=\"a>b\"><img src='x'/></div>",
            "<script>if (a < b) { '</p>' }</script>",
            "<script>'<!--'; '</scripts>' </SCRIPT >",
            "<my-tag>x</my-tag>",
        ] {
            assert_eq!(document(text), Ok(()), "{text}");
        }
        for text in
            ["", "x", "<p>a</p> b", "<div><b></div>", "<div>", "</p>", "<foo></foo>", "<p", "a<br>"]
        {
            assert!(document(text).is_err(), "{text}");
        }
    }

    #[test]
    fn hostile_text_takes_no_time() {
        for (start, piece) in
            [("<script>", "<!--"), ("<script>", "</script"), ("<title>", "</titles>"), ("", "<!--")]
        {
            let text = start.to_owned() + &piece.repeat((2 << 20) / piece.len());
            assert!(!is_in(&text), "{piece}");
            assert!(document(&text).is_err(), "{piece}");
        }
    }

    #[test]
    fn an_element_may_stand_in_other_text() {
        assert!(is_in("So <b>this</b>."));
        assert!(is_in("a<br>b"));
        assert!(!is_in("a < b and <T> and <foo></foo>, p > q"));
    }
}
