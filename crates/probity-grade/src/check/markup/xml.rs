//! Well-formed XML.

use quick_xml::{Reader, events::Event};

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
    loop {
        let event = reader.read_event().map_err(|error| error.to_string())?;
        if depth == 0 && is_text(&event) {
            return Err("there is text before the root element".to_owned());
        }
        if let Event::Start(tag) | Event::Empty(tag) = &event {
            for attribute in tag.attributes() {
                attribute.map_err(|error| error.to_string())?;
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
    fn an_element_may_stand_in_other_text() {
        assert!(is_in("Here: <p>a < b</p> no, <q>but this</q>."));
        assert!(!is_in("1 < 2, <br> and <p>"));
    }
}
