use probity_core::record::LaneStatus;
use proptest::prelude::*;

use super::*;
use crate::{
    Format,
    sample::{HOSTILE, Sample, hostile_run, lane, of_three, saying, side_by_side, wrong},
};

/// What is left when all code is taken away: the part that Markdown acts on.
fn live(text: &str) -> String {
    let mut rest = text;
    let mut live = String::new();
    while let Some(at) = rest.find('`') {
        live.push_str(&rest[..at]);
        let run = rest[at..].len() - rest[at..].trim_start_matches('`').len();
        let after = &rest[at + run..];
        let end = closing(after, run).expect("every fence is closed");
        rest = &after[end + run..];
    }
    live + rest
}

/// Where a run of exactly so many backticks begins.
fn closing(text: &str, run: usize) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = text[from..].find('`').map(|at| from + at) {
        let length = text[at..].len() - text[at..].trim_start_matches('`').len();
        if length == run {
            return Some(at);
        }
        from = at + length;
    }
    None
}

/// Everything outside code is ours: nothing pings, links, or opens what is not closed.
#[track_caller]
fn check_harmless(text: &str) {
    let live = live(text);
    let mut outside = String::new();
    let mut rest = live.as_str();
    while let Some((before, after)) = rest.split_once("<code>") {
        outside.push_str(before);
        let (code, after) = after.split_once("</code>").expect("code ends");
        assert!(!code.contains(['<', '>', '\n']), "{code:?}");
        rest = after;
    }
    outside.push_str(rest);
    for harm in ["@", "](", "http", "www.", "<script", "<!--", "- [", "\x1b", "\u{202e}", "\0"] {
        assert!(!outside.contains(harm), "{harm:?} in {outside}");
    }
    let count = |what: &str| outside.matches(what).count();
    assert_eq!(count("<details>"), count("</details>"));
    assert_eq!(count("<details>"), count("<summary>"));
    for row in outside.lines().filter(|line| line.starts_with('|')) {
        assert_eq!(row.matches('|').count(), 9, "{row}");
    }
    assert_eq!(outside.matches('<').count(), outside.matches('>').count());
}

#[test]
fn a_small_run() {
    let text = Sample::usual().written(Format::Markdown);
    check_harmless(&text);
    insta::assert_snapshot!(text);
}

#[test]
fn answers_of_a_case_that_passed_are_no_failures() {
    let text = of_three().written(Format::Markdown);
    check_harmless(&text);
    assert!(text.contains("<b>1 failed</b>"), "{text}");
    assert!(
        text.contains("<code>bad</code>: fail: <code>1 of 3 answers passed, 2 have to: "),
        "{text}"
    );
    assert!(!text.contains("<code>good</code>:"), "{text}");
}

#[test]
fn hostile_texts_are_code() {
    let text = hostile_run().written(Format::Markdown);
    check_harmless(&text);
    assert!(text.len() <= COMMENT_LIMIT);
    assert!(text.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
}

#[test]
fn a_comment_never_grows_beyond_what_github_takes() {
    let cases: Vec<_> = (0..3_000)
        .map(|at| {
            let mut case = saying(&HOSTILE.join(" ").repeat(3));
            case.case_id = format!("case-{at}");
            case
        })
        .collect();
    let strange = "\u{202e}".repeat(200);
    let lanes = (0..60).map(|at| {
        let cases = if at < 3 { cases.clone() } else { vec![wrong("a")] };
        (lane(&format!("{at}{strange}"), &cases), cases)
    });
    let mut sample = Sample::new(lanes.collect());
    for lane in &mut sample.view.lanes {
        lane.metrics.unexpected_passes = vec![strange.clone(); 100];
        lane.status = Some(LaneStatus::Broken { reason: strange.clone() });
    }
    sample.view.consistency = vec![hostile_run().view.consistency.remove(0); 60];
    let text = sample.written(Format::Markdown);
    check_harmless(&text);
    assert!(text.len() <= COMMENT_LIMIT, "{}", text.len());
    assert!(text.contains(" more divergences\n"));
    assert!(text.contains(" more cases\n"), "{text}");
    assert!(text.contains(" more lanes\n"));
    assert!(text.contains(" more gates\n"));
}

#[test]
fn backends_that_diverge_are_told_of() {
    let text = side_by_side().written(Format::Markdown);
    check_harmless(&text);
    let section = text.split_once("**Agreement of backends**").unwrap().1;
    insta::assert_snapshot!(section.split_once("</details>").unwrap().0);
}

#[test]
fn the_first_line_says_how_it_stands() {
    let mut sample = Sample::usual();
    let first = |sample: &Sample| {
        let text = sample.written(Format::Markdown);
        text.lines().next().unwrap_or_default().to_owned()
    };
    assert_eq!(first(&sample), "## ❌ Failed: `shell`");
    sample.view.lanes.iter_mut().for_each(|lane| lane.gates.clear());
    assert_eq!(first(&sample), "## ⚠️ Warning: `shell`");
    sample.view.max_error_rate = 0.01;
    assert_eq!(first(&sample), "## ❌ No result: `shell`");
    assert_eq!(first(&Sample::of(vec![crate::sample::passed("a")])), "## ✅ Passed: `shell`");
}

proptest! {
    #[test]
    fn any_text_is_harmless(text in "(?s)[`@<|\n]{0,6}.{0,40}[`~\n]{0,6}") {
        check_harmless(&Sample::of(vec![saying(&text)]).written(Format::Markdown));
    }
}
