//! Why a result is what it is.

use maud::{Markup, html};
use probity_core::{
    classification::Verdict,
    details::CommandDetails,
    difference::Difference,
    opinion::{JudgedCheck, Opinion, Said, Statement},
    people::POINTS,
    record::CaseRecord,
    score::Score,
    visible::safe,
};
use probity_grade::internal::people::{Explained, explained};
use probity_report::plain::{capped, one_line};

use super::super::parts::{MOST_TEXT, count, pill, text_block};

/// Points of judges that are shown.
const MOST_POINTS: usize = 60;

/// What would have been right beside what came.
pub(super) fn expected(record: &CaseRecord) -> Markup {
    let difference = record.classification.details.diff.as_ref();
    html! {
        @if let Some(expected) = record.expected() {
            div.pair {
                div { h3 { "Expected" } pre.good dir="auto" tabindex="0" { (safe(&capped(&expected, MOST_TEXT))) } }
                div {
                    h3 { "Actual" }
                    pre.bad[record.verdict == Verdict::Fail] dir="auto" tabindex="0" {
                        (safe(&capped(record.actual().unwrap_or("nothing"), MOST_TEXT)))
                    }
                }
            }
        }
        @if let Some(Difference::Json(difference)) = difference {
            h3 { "Where the JSON differs" }
            (tree_of(difference))
        }
        @for extracted in &record.classification.details.extracted {
            h3 dir="auto" { "Extracted for " (one_line(&extracted.check, 60)) }
            (text_block(&extracted.text))
        }
        @for also in &record.classification.details.also {
            p.note dir="auto" { "The rule " code { (also.rule) } " fired, too: " (one_line(&also.evidence, 300)) }
        }
    }
}

pub(super) fn scores(record: &CaseRecord) -> Markup {
    let scores = &record.classification.scores;
    html! {
        @if !scores.is_empty() {
            h3 { "Scores" }
            div.scroll tabindex="0" { table.scores-table {
                thead { tr { @for name in ["Verdict", "Check", "Score", "Reason"] { th scope="col" { (name) } } } }
                tbody { @for score in scores { (score_row(score)) } }
            } }
        }
    }
}

fn score_row(score: &Score) -> Markup {
    let verdict = match (score.value, score.passed) {
        (None, _) => Verdict::Undecided,
        (Some(_), true) => Verdict::Pass,
        (Some(_), false) => Verdict::Fail,
    };
    html! {
        tr {
            td.tight { (pill(verdict)) }
            td dir="auto" {
                (one_line(&score.name, 80))
                @if score.name != score.kind { " " span.note { (one_line(&score.kind, 40)) } }
                @if !score.is_required() { " " span.note { "only reported" } }
            }
            td.tight { @match score.value { Some(value) => (format!("{value:.2}")), None => "–" } }
            td dir="auto" { @if let Some(reason) = &score.reason { (one_line(reason, 1000)) } }
        }
    }
}

/// What judges said.
pub(super) fn opinions(record: &CaseRecord) -> Markup {
    html! {
        @for check in &record.classification.details.judged { (judged(check)) }
        (points(&explained(record)))
    }
}

/// What judges said about each criterion of a rubric.
fn points(all: &[Explained]) -> Markup {
    let more = all.len().saturating_sub(MOST_POINTS) as u64;
    html! {
        @if !all.is_empty() {
            h3 { "Points of judges" }
            div.scroll tabindex="0" { table.scores-table {
                thead { tr { @for name in ["Points", "Criterion", "Judge", "Reason"] { th scope="col" { (name) } } } }
                tbody { @for it in all.iter().take(MOST_POINTS) { tr {
                    td.tight { b { (it.points) } span.note { " of " (POINTS.end()) } }
                    td dir="auto" { (one_line(&it.criterion, 120)) }
                    td dir="auto" { (one_line(&it.judge, 60)) }
                    td dir="auto" { (one_line(&it.reason, 1000)) }
                } } }
            } }
            @if more > 0 { p.note { "and " (count(more, "more, which is in the JSON", "more, which are in the JSON")) } }
        }
    }
}

fn judged(check: &JudgedCheck) -> Markup {
    html! {
        h3 dir="auto" {
            "Judged: " (one_line(&check.check, 80))
            @if let Some(agreement) = check.agreement { span.note { " " (check.combine) ", " (format!("{:.0}", agreement * 100.0)) " % of pairs agree" } }
        }
        ul.opinions {
            @for Opinion { judge, said } in &check.opinions {
                li {
                    b dir="auto" { (one_line(judge, 60)) } " "
                    @match said {
                        Said::Judged(judged) => {
                            (pill(if judged.passed == Some(true) { Verdict::Pass } else { Verdict::Fail }))
                            " " (format!("{:.2}", judged.score)) " "
                            span dir="auto" { (one_line(&judged.reason, 1000)) }
                            @if !judged.statements.is_empty() {
                                ul { @for Statement { text, holds, reason } in &judged.statements {
                                    li dir="auto" {
                                        span class={ "pill " (if *holds { "pass" } else { "fail" }) } { (if *holds { "yes" } else { "no" }) }
                                        " " (one_line(text, 400))
                                        @if let Some(reason) = reason { " " span.note { (one_line(reason, 400)) } }
                                    }
                                } }
                            }
                        }
                        Said::Failed { error } => { span.pill.error { "no answer" } " " span dir="auto" { (one_line(error, 400)) } }
                    }
                }
            }
        }
    }
}

/// What was found out about a shell command.
pub(super) fn commands(record: &CaseRecord) -> Markup {
    html! { @if let Some(command) = &record.classification.details.command { (shell(command)) } }
}

fn shell(command: &CommandDetails) -> Markup {
    let canonical = command.canonical.as_ref().map(|[expected, actual]| (expected, actual));
    let why = command.difference.as_ref().or(command.reason.as_ref());
    html! {
        h3 { "Command" }
        dl.tree {
            @if let Some(error) = &command.parse_error { dt { "not shell" } dd dir="auto" { (one_line(error, 400)) } }
            @if let Some((expected, actual)) = canonical {
                dt { "expected, canonical" } dd dir="auto" { (safe(&capped(expected, 2000))) }
                dt { "actual, canonical" } dd dir="auto" { (safe(&capped(actual, 2000))) }
            }
            @if let Some(equivalence) = command.equivalence {
                dt { "compared" } dd { (equivalence) @if let Some(why) = why { ": " (one_line(why, 400)) } }
            }
            @if let Some(effect) = &command.effect {
                dt { "executed" } dd dir="auto" { (effect.verdict) ": " (one_line(&effect.sentence(), 400)) }
            }
            @if let Some(risk) = command.risk {
                dt { "risk" } dd { (risk) @if !command.findings.is_empty() { " (" (one_line(&command.findings.join(", "), 400)) ")" } @if command.opaque { ", in part not known" } }
            }
            @if let Some(posix) = command.posix {
                dt { "POSIX" } dd { @if posix { "yes" } @else { (one_line(&command.violations.join(", "), 400)) } }
            }
        }
    }
}

/// The classification as it is stored.
pub(super) fn details(record: &CaseRecord) -> Markup {
    html! {
        details {
            summary { "Classification, as it is stored" }
            (tree_of(&record.classification))
        }
    }
}

fn tree_of(value: &impl serde::Serialize) -> Markup {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    text_block(&text)
}
