use std::collections::BTreeMap;

use proptest::prelude::*;
use quick_xml::{Reader, events::Event};

use super::*;
use crate::{
    Format,
    sample::{HOSTILE, Sample, hostile_run, lane, passed, saying, wrong},
};

/// Every element with its attributes, and all text, as another program reads them.
struct Read {
    elements: Vec<(String, BTreeMap<String, String>)>,
    texts: Vec<String>,
}

fn read(xml: &str) -> Read {
    for c in xml.chars() {
        assert!(matches!(c, '\t' | '\n' | ' '..='\u{fffd}' | '\u{10000}'..), "{c:?} is no XML");
    }
    let mut reader = Reader::from_str(xml);
    let (mut elements, mut texts, mut depth) = (Vec::new(), vec![String::new()], 0);
    loop {
        match reader.read_event().unwrap() {
            Event::Eof => break,
            event @ (Event::Start(_) | Event::Empty(_)) => {
                depth += i32::from(matches!(event, Event::Start(_)));
                let (Event::Start(tag) | Event::Empty(tag)) = &event else { unreachable!() };
                let attributes = tag.attributes().map(|it| {
                    let it = it.unwrap();
                    let name = it.key.as_ref().to_owned();
                    (name, quick_xml::escape::unescape(&it.value).unwrap().into_owned())
                });
                let name = tag.name().as_ref().to_owned();
                elements.push((name, attributes.collect()));
                texts.push(String::new());
            }
            Event::End(_) => depth -= 1,
            Event::Text(text) => {
                texts.last_mut().unwrap().push_str(&text);
            }
            Event::GeneralRef(name) => {
                let text =
                    quick_xml::escape::unescape(&format!("&{};", &*name)).unwrap().into_owned();
                texts.last_mut().unwrap().push_str(&text);
            }
            Event::Decl(_) => {}
            other @ (Event::CData(_) | Event::Comment(_) | Event::PI(_) | Event::DocType(_)) => {
                panic!("{other:?} has no place here")
            }
        }
    }
    assert_eq!(depth, 0);
    Read { elements, texts }
}

/// The counts in the opening tags are those of the elements.
#[track_caller]
fn check_counts(read: &Read) {
    let count = |name: &str| read.elements.iter().filter(|it| it.0 == name).count().to_string();
    let all = &read.elements[0].1;
    for (attribute, element) in [
        ("tests", "testcase"),
        ("failures", "failure"),
        ("errors", "error"),
        ("skipped", "skipped"),
    ] {
        assert_eq!(all[attribute], count(element), "{attribute}");
    }
}

#[test]
fn a_small_run() {
    let xml = Sample::usual().written(Format::Junit);
    check_counts(&read(&xml));
    insta::assert_snapshot!(xml);
}

#[test]
fn hostile_texts_are_text() {
    let xml = hostile_run().written(Format::Junit);
    let read = read(&xml);
    check_counts(&read);
    let testcases = read.elements.iter().filter(|it| it.0 == "testcase").count();
    assert_eq!(testcases, HOSTILE.len() + 4 + 3);
    assert!(
        read.elements
            .iter()
            .any(|it| it.1.get("name").is_some_and(|it| it == "<script>alert(1)</script>"))
    );
    assert!(read.texts.iter().any(|it| it.starts_with("prompt: ]]>")));
    assert!(xml.contains("\\u{1b}[31m") && xml.contains("\\u{202e}") && xml.contains("\\u{fffe}"));
    // The long lines are cut.
    assert!(xml.len() < 100_000, "{}", xml.len());
}

#[test]
fn repeats_of_which_some_have_to_pass_are_one_testcase() {
    let again = |case: CaseRecord| CaseRecord { repeat: 1, ..case };
    let cases = vec![passed("a"), again(passed("a")), passed("b"), again(wrong("b"))];
    let mut lane = lane("small", &cases);
    lane.judging.min_pass = Some(2);
    lane.judging.gates = Vec::new();
    let xml = Sample::new(vec![(lane, cases)]).written(Format::Junit);
    let read = read(&xml);
    check_counts(&read);
    assert!(xml.contains("tests=\"2\" failures=\"1\""), "{xml}");
    assert!(xml.contains("message=\"1 of 2 answers passed, 2 have to: "), "{xml}");
    assert!(!xml.contains("[repeat 1]"), "{xml}");
}

#[test]
fn errors_that_count_as_failures_are_failures() {
    let cases = vec![crate::sample::failed_call("a")];
    let mut lane = lane("small", &cases);
    lane.judging.errors_as_failures = true;
    let xml = Sample::new(vec![(lane, cases)]).written(Format::Junit);
    check_counts(&read(&xml));
    assert!(xml.contains("<failure type=\"overloaded\""));
}

#[test]
fn what_was_not_run_is_skipped() {
    let mut sample = Sample::usual();
    sample.view.lanes[0].lane.planned = 10;
    sample.view.lanes[0].status = Some(probity_core::record::LaneStatus::Interrupted);
    let xml = sample.written(Format::Junit);
    check_counts(&read(&xml));
    assert!(xml.contains("6 of 10 planned results are missing: interrupted"), "{xml}");
}

proptest! {
    #[test]
    fn any_text_is_well_formed_and_read_back(text in "(?s).{0,60}") {
        let xml = Sample::of(vec![saying(&text)]).written(Format::Junit);
        let read = read(&xml);
        let spelled = |c: char| match c {
            '\t' | '\n' | '\r' => c.to_string(),
            c if is_illegal(c) || is_hidden(c) => c.escape_unicode().to_string(),
            c => c.to_string(),
        };
        let expected: String = text.chars().map(spelled).collect();
        let case = read.elements.iter().find(|it| it.0 == "testcase").unwrap();
        prop_assert_eq!(&case.1["name"], &expected);
        let shown = format!("prompt: {expected}\nexpected: {expected}\nreply: {expected}\n");
        prop_assert!(read.texts.iter().any(|it| it.trim_end() == shown.trim_end()), "{:?}", read.texts);
    }
}
