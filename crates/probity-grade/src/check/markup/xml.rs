//! Well-formed XML.

use quick_xml::{Reader, events::Event};

/// Places at which an element may begin that are tried; each try reads on to its end.
const TRIES: usize = 100;

/// Whether a text is one well-formed element, with what may stand around it; else what it is not.
pub(super) fn document(text: &str) -> Result<(), String> {
    let text = text.trim();
    match element(text)? {
        length if text[length..].trim().is_empty() => Ok(()),
        length => {
            let mut rest = Reader::from_str(&text[length..]);
            loop {
                match rest.read_event().map_err(|error| error.to_string())? {
                    Event::Eof => return Ok(()),
                    Event::Comment(_) | Event::PI(_) => {}
                    Event::Text(blank) if blank.trim_ascii().is_empty() => {}
                    _ => return Err("there is more after the root element".to_owned()),
                }
            }
        }
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
        match &event {
            Event::Start(tag) | Event::Empty(tag) => {
                for attribute in tag.attributes() {
                    attribute.map_err(|error| error.to_string())?;
                }
            }
            Event::Text(text) if depth == 0 && !text.trim_ascii().is_empty() => {
                return Err("there is text before the root element".to_owned());
            }
            Event::CData(_) | Event::GeneralRef(_) if depth == 0 => {
                return Err("there is text before the root element".to_owned());
            }
            Event::Eof => {
                let what = if depth == 0 { "there is no element" } else { "an element has no end" };
                return Err(what.to_owned());
            }
            _ => {}
        }
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            Event::Empty(_) => {}
            _ => continue,
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
