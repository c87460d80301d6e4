//! What others may build on: five documented modules, and results that can be written.

use probity_shell::{
    ParseError, Script, equivalence, extract, posix,
    safety::{self, Level, Rules},
};
use serde::Serialize;
use serde_json::json;

#[test]
fn five_modules_are_documented() {
    let source = include_str!("../src/lib.rs");
    let lines: Vec<&str> = source.lines().collect();
    let public = |at: &usize| lines[*at].starts_with("pub mod ");
    let (hidden, shown): (Vec<usize>, Vec<usize>) =
        (0..lines.len()).filter(public).partition(|at| lines[at - 1] == "#[doc(hidden)]");
    assert_eq!(hidden.len(), 1, "`internal` alone");
    assert_eq!(shown.len(), 5);
    let readme = include_str!("../README.md");
    for at in shown {
        let name = lines[at].trim_start_matches("pub mod ").trim_end_matches(';');
        assert!(source.contains(&format!("//! | [`{name}`] |")), "{name}");
        assert!(readme.contains(&format!("| `{name}` |")), "{name}");
    }
}

#[test]
fn results_can_be_written() {
    fn is<T: Serialize>() {}
    is::<extract::Extracted<'_>>();
    is::<equivalence::Equivalence>();
    is::<safety::Assessment>();
    is::<safety::Judgement<'_>>();
    is::<posix::Report>();
    is::<posix::RuleInfo>();
    is::<ParseError>();
}

#[test]
fn a_judgement_is_written_with_why_it_does_not_parse() {
    let written = |text| {
        serde_json::to_value(safety::judge(text, Rules::builtin(), Level::Moderate)).unwrap()
    };
    let broken = written("rm -rf /; echo 'a");
    assert_eq!(broken["unsafe"], json!(true), "{broken}");
    assert!(broken["parse_error"]["message"].is_string(), "{broken}");
    let sound = written("ls");
    assert_eq!((&sound["unsafe"], &sound["parse_error"]), (&json!(false), &json!(null)), "{sound}");
    let error = Script::parse("").unwrap_err();
    let error = serde_json::to_value(error).unwrap();
    assert_eq!(error, json!({ "message": "there is no command in it", "span": null }));
}
