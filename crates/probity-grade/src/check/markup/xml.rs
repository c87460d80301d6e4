//! Well-formed XML.

use std::collections::BTreeSet;

use quick_xml::{
    Reader,
    escape::{resolve_predefined_entity, unescape_with},
    events::Event,
};

/// Places at which an element may begin that are tried; each try reads on to its end.
const TRIES: usize = 100;

/// Whether a text is one well-formed element, with what may stand around it; else what it is not.
pub(super) fn document(text: &str) -> Result<(), String> {
    let text = text.trim();
    let mut rest = Reader::from_str(&text[element(text)?..]);
    loop {
        let event = rest.read_event().map_err(|error| error.to_string())?;
        if event == Event::Eof {
            return Ok(());
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

/// Whether a well-formed element is in a text.
pub(super) fn is_in(text: &str) -> bool {
    let begins = |at: &usize| {
        text[at + 1..].starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '?')
    };
    let starts = text.match_indices('<').map(|it| it.0).filter(begins);
    starts.take(TRIES).any(|start| element(&text[start..]).is_ok())
}

/// Where the first element ends that the text begins with, its prolog aside.
fn element(text: &str) -> Result<usize, String> {
    let mut reader = Reader::from_str(text);
    let mut depth = 0_usize;
    let mut has_doctype = false;
    loop {
        let event = reader.read_event().map_err(|error| error.to_string())?;
        if depth == 0 && is_text(&event) {
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
        if let Event::Start(tag) | Event::Empty(tag) = &event {
            let mut names = BTreeSet::new();
            for attribute in tag.attributes().with_checks(false) {
                let attribute = attribute.map_err(|error| error.to_string())?;
                if !names.insert(attribute.key) {
                    return Err("an element has the same attribute twice".to_owned());
                }
                resolved(&attribute.value)?;
            }
        }
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            Event::Empty(_) => {}
            Event::Eof if depth == 0 => return Err("there is no element".to_owned()),
            Event::Eof => return Err("an element has no end".to_owned()),
            Event::Text(_)
            | Event::CData(_)
            | Event::GeneralRef(_)
            | Event::Comment(_)
            | Event::Decl(_)
            | Event::PI(_)
            | Event::DocType(_) => continue,
        }
        if depth == 0 {
            return usize::try_from(reader.buffer_position()).map_err(|error| error.to_string());
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
            assert_eq!(document(text), Ok(()), "{text}");
        }
        for text in ["", "a", "<a>", "<a></b>", "<a/><b/>", "<a/> more", "x <a/>", "<a b=c/>"] {
            assert!(document(text).is_err(), "{text}");
        }
    }

    #[test]
    fn entities_have_to_be_known() {
        for text in [
            "<a b='&lt;&#65;'>&amp;&#x41;</a>",
            "<!DOCTYPE a [<!ENTITY nbsp '&#160;'>]><a b='&nbsp;'>&nbsp;</a>",
        ] {
            assert_eq!(document(text), Ok(()), "{text}");
        }
        for text in ["<a>&nbsp;</a>", "<a b='&nbsp;'/>", "<a>&#0;</a>", "<a b='1' b='2'/>"] {
            assert!(document(text).is_err(), "{text}");
        }
    }

    #[test]
    fn many_attributes_take_no_time() {
        let attributes: String = (0..100_000).flat_map(|it| [format!(" a{it}=''")]).collect();
        assert_eq!(document(&format!("<a{attributes}/>")), Ok(()));
    }

    #[test]
    fn an_element_may_stand_in_other_text() {
        assert!(is_in("Here: <p>a < b</p> no, <q>but this</q>."));
        assert!(!is_in("1 < 2, <br> and <p>"));
    }
}
