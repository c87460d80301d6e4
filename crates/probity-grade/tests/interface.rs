//! What others may build on: five documented modules, and results that can be written.

use probity_core::{classification::Classification, details::PolicyHit};
use probity_grade::{
    errors::ErrorVerdict,
    json::Extraction,
    refusal::{Explanation, Refusal},
    sql_dialects,
};
use serde::Serialize;

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
    is::<Classification>();
    is::<Extraction>();
    is::<Refusal>();
    is::<Explanation>();
    is::<ErrorVerdict>();
    is::<PolicyHit>();
}

#[test]
fn the_dialects_of_sql_are_named() {
    let names: Vec<&str> = sql_dialects().collect();
    assert!(names.contains(&"sqlite") && names.contains(&"postgresql"), "{names:?}");
}
