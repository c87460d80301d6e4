use base64::{Engine as _, engine::general_purpose::STANDARD};
use proptest::prelude::*;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::*;
use crate::{
    Format,
    sample::{HOSTILE, Sample, hostile_run, of_three, passed, saying, side_by_side, wrong},
};

/// The island as the script reads it, and the page without it.
fn parts(page: &str) -> (Value, String) {
    let begin = "<script type=\"application/json\" id=\"data\">";
    let (before, rest) = page.split_once(begin).unwrap();
    let (island, after) = rest.split_once("</script>").unwrap();
    assert!(!island.contains(['<', '>', '&', '\u{2028}', '\u{2029}']));
    (serde_json::from_str(island).unwrap(), format!("{before}{after}"))
}

/// Nothing in the page comes from outside or runs that is not ours.
#[track_caller]
fn check_harmless(page: &str) {
    let (_, page) = parts(page);
    let ours = page.replace(STYLE, "").replace(SCRIPT, "");
    assert_eq!(ours.matches("<script").count(), 1);
    assert_eq!(ours.matches("</script").count(), 1);
    for harm in
        [" style=", "<!--", "<img", "\u{202e}", "\x1b", "\0", "src=", "http://x\"", " onclick"]
    {
        assert!(!ours.contains(harm), "{harm:?}");
    }
    for link in ours.split("href=\"").skip(1) {
        assert!(link.starts_with('#') || link.starts_with("data:,\""), "{}", &link[..40]);
    }
}

#[test]
fn the_policy_names_the_style_and_the_script() {
    let digest = |text: &str| STANDARD.encode(Sha256::digest(text));
    assert_eq!(STYLE_DIGEST, digest(STYLE), "put the digest of report.css into html.rs");
    assert_eq!(SCRIPT_DIGEST, digest(SCRIPT), "put the digest of report.js into html.rs");
    assert!(!STYLE.contains("url(") && !STYLE.contains("@import") && !STYLE.contains("</"));
    for sink in
        ["innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "</", "fetch("]
    {
        assert!(!SCRIPT.contains(sink), "{sink}");
    }
}

#[test]
fn an_answer_says_what_its_case_counts_as() {
    let page = of_three().written(Format::Html);
    let (island, rest) = parts(&page);
    let cases = island["cases"].as_array().unwrap();
    let counted =
        |at: usize| (cases[at]["verdict"].as_str().unwrap(), cases[at]["counted"].as_str());
    assert_eq!(counted(0), ("pass", Some("fail")));
    assert_eq!((counted(1), counted(2)), (("fail", None), ("fail", None)));
    assert_eq!((counted(3), counted(5)), (("pass", None), ("fail", Some("pass"))));
    // The page without a script begins with the case that failed.
    let first = |text: &str| rest.find(text).unwrap();
    assert!(first("dir=\"auto\">bad</td>") < first("dir=\"auto\">good</td>"));
    assert!(rest.contains("<span class=\"sub-mark\">case: pass</span>"));
}

#[test]
fn a_small_run_is_whole() {
    let page = Sample::usual().written(Format::Html);
    check_harmless(&page);
    let (island, rest) = parts(&page);
    assert_eq!(island["cases"].as_array().unwrap().len(), 8);
    assert_eq!(island["cases"][2]["failures"][0]["retry_in_ms"], 500);
    assert_eq!(island["systems"][0], "Answer with one command.");
    assert_eq!(island["cases"][0]["system"], 0);
    assert!(rest.contains("<strong>Failed</strong>"));
    assert!(rest.contains("<span class=\"pill fail\">fail</span><span>pass_rate at least 94.8 %"));
}

#[test]
fn hostile_texts_are_text() {
    let page = hostile_run().written(Format::Html);
    check_harmless(&page);
    let (island, _) = parts(&page);
    for (at, text) in HOSTILE.iter().enumerate() {
        assert_eq!(island["cases"][at]["id"], *text);
        assert_eq!(island["cases"][at]["reply"], *text);
    }
    let long = island["cases"][HOSTILE.len() + 2]["prompt"].as_str().unwrap();
    assert!(long.ends_with(" more characters)") && long.chars().count() < MOST_TEXT + 40);
    assert!(page.len() < 1 << 20, "{}", page.len());
}

#[test]
fn backends_that_diverge_have_a_section() {
    let page = side_by_side().written(Format::Html);
    check_harmless(&page);
    for part in [
        "<th scope=\"row\" dir=\"auto\">small and large</th><td><b>80.0 %</b></td><td>49.0 to 94.3</td>",
        "<summary>1506 divergences</summary>",
        "<span class=\"pill fail\">fail</span> <a dir=\"auto\" href=\"#case=3.0.list\">third</a>",
        "and 1500 more that are not listed",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!Sample::usual().written(Format::Html).contains("Agreement of backends"));
}

#[test]
fn many_results_leave_room_for_those_that_matter() {
    let mut cases: Vec<_> = (0..MOST_ROWS).map(|at| passed(&format!("c{at}"))).collect();
    cases.push(wrong("z"));
    let page = Sample::of(cases).written(Format::Html);
    let (island, rest) = parts(&page);
    assert_eq!(island["cases"].as_array().unwrap().len(), 1);
    assert!(rest.contains("30000 results are left out of the table"));
}

#[test]
fn the_more_results_the_less_of_each_text() {
    let mut sample = Sample::usual();
    assert_eq!(text_cap(&sample.view), MOST_TEXT);
    let add = |sample: &mut Sample, count| {
        sample.view.lanes[0]
            .metrics
            .all
            .classes
            .add_many(probity_core::classification::Class::Pass, count);
    };
    add(&mut sample, 9_992);
    assert_eq!(text_cap(&sample.view), 1_600);
    add(&mut sample, 1_000_000);
    assert_eq!(text_cap(&sample.view), 533);
}

proptest! {
    #[test]
    fn any_text_is_read_back(text in "(?s)[<&!/-]{0,3}.{0,60}") {
        let page = Sample::of(vec![saying(&text)]).written(Format::Html);
        let (island, _) = parts(&page);
        let case = &island["cases"][0];
        for name in ["id", "prompt", "expected", "reply", "reason", "model", "notes"] {
            prop_assert_eq!(case[name].as_str().unwrap_or_default(), &text, "{}", name);
        }
    }
}
