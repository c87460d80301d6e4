use proptest::prelude::*;

use super::*;
use crate::pattern::Group;

fn found<'t>(extraction: &Extraction, text: &'t str) -> Result<&'t str, String> {
    extraction.find(text).map(|span| &text[span]).map_err(|it| it.to_string())
}

#[track_caller]
fn check(make: impl Fn(Take) -> Extraction, text: &str, expected: [&str; 2]) {
    for (take, expected) in [Take::First, Take::Last].into_iter().zip(expected) {
        assert_eq!(found(&make(take), text).as_deref(), Ok(expected), "{take:?} of {text}");
    }
}

fn after(marker: &str, until: Until) -> impl Fn(Take) -> Extraction {
    let marker = Marker::new(marker).unwrap();
    move |take| Extraction::After { marker: marker.clone(), take, until }
}

fn code(language: Option<&str>) -> impl Fn(Take) -> Extraction {
    move |take| Extraction::CodeBlock { language: language.map(ToOwned::to_owned), take }
}

fn tag(name: &str) -> impl Fn(Take) -> Extraction {
    move |take| Extraction::XmlTag { name: name.to_owned(), take }
}

#[test]
fn what_follows_a_marker_is_taken_to_the_end_of_its_line() {
    let text = "answer: A, maybe\nANSWER:\n\n  B  \nthat is all";
    check(after("ANSWER:", Until::Line), text, ["A, maybe", "B"]);
    check(after("ANSWER:", Until::End), "ANSWER: a\nb\n", ["a\nb", "a\nb"]);
    assert_eq!(
        found(&after("####", Until::Line)(Take::Last), "####  "),
        Err("no text after `####`".to_owned())
    );
}

#[test]
fn a_box_may_hold_braces() {
    let text = r"\boxed{\frac{1}{2}} then $\boxed {x^{2}\}}$ and \boxed{unfinished";
    check(Extraction::Boxed, text, [r"\frac{1}{2}", r"x^{2}\}"]);
    assert!(found(&Extraction::Boxed(Take::Last), "{4}").is_err());
}

#[test]
fn code_is_taken_by_its_language() {
    let text = "```py\na\n```\ntext\n~~~~ Rust title\nb\n```\n~~~~\n```\nc";
    check(code(None), text, ["a", "c"]);
    check(code(Some("python")), text, ["a", "a"]);
    check(code(Some("rust")), text, ["b\n```", "b\n```"]);
    check(
        code(Some("sql")),
        "Use ```sql SELECT 1``` or\n``` sql\nSELECT 2",
        ["SELECT 1", "SELECT 2"],
    );
    let none = found(&code(Some("go"))(Take::Last), text);
    assert_eq!(none, Err("no code block in `go`".to_owned()));
}

#[test]
fn elements_may_be_nested_and_have_attributes() {
    let text =
        "<answer id='1'> 4 </ANSWER><answers>no</answers><answer><answer>5</answer></answer>";
    check(tag("answer"), text, ["4", "5"]);
    assert!(found(&tag("answer")(Take::First), "<answer>cut off").is_err());
    assert!(found(&tag("answer")(Take::First), "<answer 4</answer>").is_err());
}

#[test]
fn numbers_are_the_first_and_the_last() {
    check(Extraction::Number, "3 + 4 = 7.", ["3", "7"]);
    assert_eq!(found(&Extraction::Number(Take::Last), "x2"), Err("no number".to_owned()));
}

fn all() -> Vec<Extraction> {
    let pattern = |pattern: &str, group: Option<&Group>| Pattern::new(pattern, group).unwrap();
    let mut all = Vec::new();
    for take in [Take::First, Take::Last] {
        all.extend([
            Extraction::Regex { pattern: pattern(r"(\w)|(\d+)", None), take },
            Extraction::Regex { pattern: pattern(r"(?<=\W)\w+", Some(&Group::Number(0))), take },
            after("a:", Until::Line)(take),
            after("a", Until::End)(take),
            Extraction::Number(take),
            Extraction::Boxed(take),
            code(None)(take),
            code(Some("py"))(take),
            tag("a")(take),
        ]);
    }
    all
}

fn check_spans(text: &str) -> Result<(), TestCaseError> {
    for extraction in all() {
        if let Ok(span) = extraction.find(text) {
            let taken = text.get(span);
            prop_assert!(taken.is_some(), "{extraction:?}");
            prop_assert_eq!(taken, taken.map(str::trim));
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn spans_are_of_the_text(text in any::<String>()) {
        check_spans(&text)?;
    }

    #[test]
    fn spans_of_text_full_of_marks_are_too(text in r"([-`~<>/{}\\a:py \n0-9.,$€ä]|```|\\boxed\{|</?a>){0,60}") {
        check_spans(&text)?;
    }
}

#[test]
fn hostile_text_takes_no_time() {
    for piece in ["\\boxed{", "<a ", "<a>", "```\n", "a:\n", "1,", "-", "1e", "{", "1/1"] {
        let text = piece.repeat(300_000 / piece.len());
        for extraction in all() {
            let _ = extraction.find(&text);
        }
    }
}
