//! Well-formed XML, and the elements in it.

use std::collections::BTreeSet;

use quick_xml::{
    Reader,
    escape::{resolve_predefined_entity, unescape_with},
    events::Event,
    name::QName,
};

/// Places at which an element may begin that are tried; each try reads on to its end.
const TRIES: usize = 100;

/// An element with what is in it.
struct Element {
    /// Where it ends in the text.
    end: usize,
    /// Itself, then all elements in it.
    nodes: Vec<Node>,
}

/// One element. Lists in place of a tree, since a text may nest deeper than a stack is.
#[derive(Default)]
struct Node {
    name: String,
    attributes: Vec<String>,
    children: Vec<usize>,
    has_text: bool,
}

/// Whether a text is one well-formed element, with what may stand around it, that has all that is required;
/// else what it is not.
pub(super) fn document(text: &str, required: &[String]) -> Result<(), String> {
    let text = text.trim();
    let element = element(text)?;
    let mut rest = Reader::from_str(&text[element.end..]);
    loop {
        let event = rest.read_event().map_err(|error| error.to_string())?;
        if event == Event::Eof {
            return complete(&[&element], required);
        }
        if is_text(&event) || !matches!(event, Event::Comment(_) | Event::PI(_) | Event::Text(_)) {
            return Err("there is more after the root element".to_owned());
        }
    }
}

/// Whether an event is text other than blanks.
fn is_text(event: &Event<'_>) -> bool {
    match event {
        Event::Text(text) => !text.trim_ascii().is_empty(),
        Event::CData(_) | Event::GeneralRef(_) => true,
        Event::Start(_)
        | Event::End(_)
        | Event::Empty(_)
        | Event::Comment(_)
        | Event::Decl(_)
        | Event::PI(_)
        | Event::DocType(_)
        | Event::Eof => false,
    }
}

/// Whether a well-formed element is in a text that has all that is required, or several that have it together.
/// An error says what is missing, if there is an element at all.
pub(super) fn is_in(text: &str, required: &[String]) -> Result<(), Option<String>> {
    let begins = |at: &usize| {
        text[at + 1..].starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '?')
    };
    let starts = text.match_indices('<').map(|it| it.0).filter(begins);
    let mut found: Vec<Element> = Vec::new();
    let mut end = 0;
    for start in starts.take(TRIES) {
        if start < end {
            continue;
        }
        if let Ok(element) = element(&text[start..]) {
            if required.is_empty() {
                return Ok(());
            }
            end = start + element.end;
            found.push(element);
        }
    }
    let all: Vec<&Element> = found.iter().collect();
    if all.is_empty() {
        return Err(None);
    }
    if all.iter().any(|it| complete(&[it], required).is_ok()) {
        return Ok(());
    }
    complete(&all, required).map_err(Some)
}

/// Whether all that is required is there; else what is missing.
fn complete(elements: &[&Element], required: &[String]) -> Result<(), String> {
    let missing: Vec<&str> =
        required.iter().map(String::as_str).filter(|it| !has_path(elements, it)).collect();
    match missing.as_slice() {
        [] => Ok(()),
        [one] => Err(format!("the element `{one}` is missing")),
        several => Err(format!("the elements `{}` are missing", several.join("`, `"))),
    }
}

/// Whether a path leads somewhere: names of elements with points between them. After the name of several that
/// stand side by side comes the number of one. `@_name` is an attribute, `#text` is text beside elements.
fn has_path(elements: &[&Element], path: &str) -> bool {
    let mut keys = path.split('.');
    let first = keys.next().unwrap_or_default();
    let mut found: Vec<(&Element, usize)> =
        elements.iter().filter(|it| it.nodes[0].name == first).map(|it| (*it, 0)).collect();
    let mut is_end = false;
    for key in keys {
        let (element, at) = match found.as_slice() {
            _ if is_end => return false,
            [] => return false,
            [one] => *one,
            several => {
                let number = key.parse::<usize>().ok().filter(|it| it.to_string() == key);
                match number.and_then(|it| several.get(it)) {
                    Some(one) => found = vec![*one],
                    None => return false,
                }
                continue;
            }
        };
        let node = &element.nodes[at];
        let is_table = !node.children.is_empty() || !node.attributes.is_empty();
        match key.strip_prefix("@_") {
            Some(name) => is_end = node.attributes.iter().any(|it| it == name),
            None if key == "#text" => is_end = is_table && node.has_text,
            None => {
                let is_named = |it: &&usize| element.nodes[**it].name == key;
                found = node.children.iter().filter(is_named).map(|it| (element, *it)).collect();
                continue;
            }
        }
        if !is_end {
            return false;
        }
    }
    !found.is_empty()
}

/// The first element that the text begins with, its prolog aside.
fn element(text: &str) -> Result<Element, String> {
    let mut reader = Reader::from_str(text);
    let mut nodes: Vec<Node> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let mut has_doctype = false;
    loop {
        let event = reader.read_event().map_err(|error| error.to_string())?;
        if open.is_empty() && is_text(&event) {
            return Err("there is text before the root element".to_owned());
        }
        has_doctype |= matches!(event, Event::DocType(_));
        // A document type may declare entities; without one there are five.
        let entity = |name: &str| resolve_predefined_entity(name).or(has_doctype.then_some(""));
        let resolved =
            |text: &str| unescape_with(text, entity).map(drop).map_err(|error| error.to_string());
        if let Event::GeneralRef(reference) = &event {
            resolved(&format!("&{};", &**reference))?;
        }
        if let Some(at) = open.last().filter(|_| is_text(&event)) {
            nodes[*at].has_text = true;
        }
        if let Event::Start(tag) | Event::Empty(tag) = &event {
            let name = |name: QName<'_>| name.into_inner().to_owned();
            let mut node = Node { name: name(tag.name()), ..Node::default() };
            let mut names = BTreeSet::new();
            for attribute in tag.attributes().with_checks(false) {
                let attribute = attribute.map_err(|error| error.to_string())?;
                if !names.insert(attribute.key) {
                    return Err("an element has the same attribute twice".to_owned());
                }
                resolved(&attribute.value)?;
                node.attributes.push(name(attribute.key));
            }
            if let Some(parent) = open.last() {
                let at = nodes.len();
                nodes[*parent].children.push(at);
            }
            nodes.push(node);
        }
        match event {
            Event::Start(_) => open.push(nodes.len() - 1),
            Event::End(_) => drop(open.pop()),
            Event::Empty(_) => {}
            Event::Eof if open.is_empty() => return Err("there is no element".to_owned()),
            Event::Eof => return Err("an element has no end".to_owned()),
            Event::Text(_)
            | Event::CData(_)
            | Event::GeneralRef(_)
            | Event::Comment(_)
            | Event::Decl(_)
            | Event::PI(_)
            | Event::DocType(_) => continue,
        }
        if open.is_empty() && !nodes.is_empty() {
            let end =
                usize::try_from(reader.buffer_position()).map_err(|error| error.to_string())?;
            return Ok(Element { end, nodes });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_element_is_a_document() {
        for text in ["<a/>", " <?xml version='1.0'?><a b='c'>d<!-- e --><f/></a> ", "<ä>&amp;</ä>"]
        {
            assert_eq!(document(text, &[]), Ok(()), "{text}");
        }
        for text in ["", "a", "<a>", "<a></b>", "<a/><b/>", "<a/> more", "x <a/>", "<a b=c/>"] {
            assert!(document(text, &[]).is_err(), "{text}");
        }
    }

    #[test]
    fn entities_have_to_be_known() {
        for text in [
            "<a b='&lt;&#65;'>&amp;&#x41;</a>",
            "<!DOCTYPE a [<!ENTITY nbsp '&#160;'>]><a b='&nbsp;'>&nbsp;</a>",
        ] {
            assert_eq!(document(text, &[]), Ok(()), "{text}");
        }
        for text in ["<a>&nbsp;</a>", "<a b='&nbsp;'/>", "<a>&#0;</a>", "<a b='1' b='2'/>"] {
            assert!(document(text, &[]).is_err(), "{text}");
        }
    }

    #[test]
    fn many_attributes_take_no_time() {
        let attributes: String = (0..100_000).flat_map(|it| [format!(" a{it}=''")]).collect();
        assert_eq!(document(&format!("<a{attributes}/>"), &[]), Ok(()));
    }

    #[test]
    fn an_element_may_stand_in_other_text() {
        assert!(is_in("Here: <p>a < b</p> no, <q>but this</q>.", &[]).is_ok());
        assert_eq!(is_in("1 < 2, <br> and <p>", &[]), Err(None));
    }

    #[test]
    fn elements_are_required_by_their_paths() {
        let text = "<r a='1'>t<b><c/></b><d>1</d><d><e/></d></r>";
        let has = |path: &str| document(text, &[path.to_owned()]).is_ok();
        for path in ["r", "r.b", "r.b.c", "r.d", "r.d.0", "r.d.1.e", "r.@_a", "r.#text"] {
            assert!(has(path), "{path}");
        }
        for path in ["b", "r.c", "r.b.c.x", "r.d.e", "r.d.01", "r.d.2", "r.@_b", "r.b.#text", ""] {
            assert!(!has(path), "{path}");
        }
    }

    #[test]
    fn elements_side_by_side_are_complete_together() {
        let both = ["a".to_owned(), "b".to_owned()];
        assert_eq!(is_in("So: <a>1</a> and <b>2</b>.", &both), Ok(()));
        let missing = is_in("So: <a>1</a>.", &both);
        assert_eq!(missing, Err(Some("the element `b` is missing".to_owned())));
        assert_eq!(is_in("Nothing.", &both), Err(None));
    }

    #[test]
    fn deep_texts_need_little_stack() {
        let text = format!("{}{}", "<a>".repeat(200_000), "</a>".repeat(200_000));
        assert_eq!(document(&text, &["a.a.a".to_owned()]), Ok(()));
    }
}
