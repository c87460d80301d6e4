use std::fmt::Write as _;

use probity_stats::Interval;

use super::*;

/// `+ command` passed, `- command` failed, `!` is an error, `?` a reply without a command, an empty text
/// no result.
fn answer(text: &str) -> Option<Answer> {
    let (verdict, command) = match text.split_at_checked(1)? {
        ("+", command) => (Verdict::Pass, Some(command)),
        ("-", command) => (Verdict::Fail, Some(command)),
        ("!", _) => (Verdict::Error, Some(" ls")),
        (_, _) => (Verdict::Fail, None),
    };
    Some(Answer { verdict, command: command.map(|it| it.trim_start().to_owned()) })
}

fn folded<const N: usize>(cases: &[[&str; N]]) -> Consistency {
    let backends = ["a", "b", "c"].map(str::to_owned)[..N].to_vec();
    let mut fold = Fold::new("commands", None, backends, 1);
    for (at, case) in cases.iter().enumerate() {
        let answers = case.map(answer);
        fold.add(&Asked { case_id: &format!("case-{at}"), repeat: 0, answers: &answers });
    }
    fold.finish()
}

/// A divergence in a line: kind, groups, and those without a command.
fn shown(divergence: &Divergence) -> String {
    let mut text = format!("{} {}:", divergence.case_id, divergence.kind.as_str());
    for group in &divergence.groups {
        let members: Vec<String> = group.members.iter().map(|(at, _)| at.to_string()).collect();
        let sign = if group.parsed { "=" } else { "?" };
        let (members, outcome) = (members.join(","), group.outcome());
        let _ = write!(text, " [{members} {outcome} {sign} {}]", group.command);
    }
    for (at, why) in &divergence.without {
        let _ = write!(text, " {at}:{}", why.as_str());
    }
    text
}

const CASES: [[&str; 3]; 9] = [
    // All three do the same.
    ["+ ls -a -l", "+ ls -la", "+ ls --all -l"],
    // One is unlike, and fails.
    ["+ ls -a -l", "+ ls -la", "- ls -l"],
    // Two right answers.
    ["+ rm a b", "+ rm b a", "+ unlink a"],
    // An error on one; the others agree, and that counts for them.
    ["+ ls -a -l", "+ ls -la", "!"],
    // An error on one; the others are unlike.
    ["!", "- ls", "- pwd"],
    // The same text that cannot be read, on all.
    ["- echo 'a", "- echo 'a", "- echo 'a"],
    // Two texts that cannot be read.
    ["- echo 'a", "- echo 'b", "- echo 'b"],
    // No command, and one that cannot be read.
    ["?", "+ ls", "- echo 'b"],
    // No result, and a divergence beside what cannot be read.
    ["", "- ls", "- pwd"],
];

#[test]
fn every_case_is_counted_once() {
    let found = folded(&CASES);
    assert_eq!(found.agree, 2);
    assert_eq!(found.diverge, Diverging { mixed: 1, failing: 2, passing: 1 });
    let uncompared = Uncompared { error: 1, no_command: 1, unparsable: 1, missing: 0 };
    assert_eq!(found.uncompared, uncompared);
    assert_eq!((found.cases(), found.unlisted()), (9, 0));
}

#[test]
fn pairs_are_compared_where_both_gave_a_command() {
    let found = folded(&CASES);
    let counts: Vec<_> =
        found.pairs.iter().map(|it| (it.backends, it.compared, it.equal, it.unknown)).collect();
    // a and b: cases 0, 1, 2, 3, 5 are equal, 6 is unknown.
    // a and c: 0 and 5 are equal, 1 and 2 unlike, 6 is unknown.
    // b and c: 0, 5 and 6 are equal, 1, 2, 4 and 8 unlike, 7 is unknown.
    assert_eq!(counts, [([0, 1], 5, 5, 1), ([0, 2], 4, 2, 1), ([1, 2], 7, 3, 1)]);
}

#[test]
fn divergences_that_matter_come_first_with_their_groups() {
    let found = folded(&CASES);
    let lines: Vec<String> = found.divergences.iter().map(shown).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    case-1 mixed: [0,1 pass = ls -a -l] [2 fail = ls -l]
    case-4 failing: [1 fail = ls] [2 fail = pwd] 0:error
    case-8 failing: [1 fail = ls] [2 fail = pwd] 0:missing
    case-2 passing: [0,1 pass = rm a b] [2 pass = unlink a]
    ");
}

#[test]
fn agreement_is_wilsons() {
    let pair = Pair { backends: [0, 1], compared: 10, equal: 8, unknown: 3 };
    let Some(Interval { low, high }) = pair.interval() else { panic!("there is one") };
    assert_eq!(pair.agreement(), Some(0.8));
    assert!((low - 0.490_162).abs() < 1e-6 && (high - 0.943_318).abs() < 1e-6, "{low} {high}");
    let nothing = Pair { backends: [0, 1], compared: 0, equal: 0, unknown: 3 };
    assert_eq!((nothing.agreement(), nothing.interval()), (None, None));
}

#[test]
fn a_text_that_cannot_be_read_stands_beside_a_divergence() {
    let found = folded(&[["+ ls", "- pwd", "- echo 'a"]]);
    assert_eq!(
        shown(&found.divergences[0]),
        "case-0 mixed: [0 pass = ls] [1 fail = pwd] [2 fail ? echo 'a]"
    );
    // Beside commands that all pass it is no reason to call them anything else.
    let found = folded(&[["+ ls", "+ pwd", "- echo 'a"]]);
    assert_eq!(found.divergences[0].kind, DivergenceKind::Passing);
}

#[test]
fn a_text_that_cannot_be_read_is_never_unlike() {
    let found = folded(&[["+ ls", "- echo 'a"], ["- echo 'a", "- echo \"a"]]);
    assert_eq!(found.uncompared.unparsable, 2);
    assert_eq!((found.pairs[0].compared, found.pairs[0].unknown), (0, 2));
    assert!(found.divergences.is_empty());
}

#[test]
fn a_comment_is_no_command_however_often_it_is_given() {
    let found = folded(&[["- # list", "- # list"], ["-", "-"]]);
    assert_eq!((found.agree, found.uncompared.no_command), (0, 2));
    assert_eq!(found.pairs[0].compared + found.pairs[0].unknown, 0);
}

#[test]
fn the_same_command_may_pass_for_one_backend_only() {
    let found = folded(&[["+ ls -al", "- ls -la", "- pwd"]]);
    let groups = &found.divergences[0].groups;
    assert_eq!(groups.iter().map(Group::outcome).collect::<Vec<_>>(), ["part", "fail"]);
}

#[test]
fn only_so_many_divergences_are_kept_and_all_are_counted() {
    let mut cases = vec![["+ ls", "+ pwd"]; MOST_LISTED];
    cases.extend([["- ls", "- pwd"], ["+ ls", "- pwd"], ["+ ls", "+ pwd"]]);
    let found = folded(&cases);
    let last = MOST_LISTED;
    assert_eq!(found.diverge.total(), MOST_LISTED as u64 + 3);
    assert_eq!((found.divergences.len(), found.unlisted()), (MOST_LISTED, 3));
    let first: Vec<&str> = found.divergences.iter().take(3).map(|it| &*it.case_id).collect();
    assert_eq!(first, [&*format!("case-{}", last + 1), &*format!("case-{last}"), "case-0"]);
}

#[test]
fn a_long_command_is_cut_between_characters() {
    let long = format!("+ echo {}", "é".repeat(MOST_TEXT));
    let found = folded(&[[long.as_str(), "- ls"]]);
    let group = &found.divergences[0].groups[0];
    assert_eq!((group.command.chars().count(), group.cut), (MOST_TEXT, 5));
}
