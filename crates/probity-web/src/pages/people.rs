//! What people say of results, and where they say it.

use std::collections::BTreeMap;

use maud::{Markup, html};
use probity_core::{
    classification::Verdict,
    people::{Agreement, Mark, POINTS, Remark, ReplyDigest, Said, current, marks},
    record::CaseRecord,
    visible::safe,
};
use probity_grade::internal::people::Criterion;
use probity_report::{
    html::shown_time,
    plain::{capped, one_line},
};

use super::parts::{command, count, grouped, pill};
use crate::{
    address,
    edit::{Editor, What, points_field, rubric},
    people::{OfRun, Wrong},
};

/// Remarks that are shown at once.
const MOST_SHOWN: usize = 60;
/// Verdicts that people call wrong and that are shown.
const MOST_WRONG: usize = 20;

/// A result, and what people said of it.
pub(crate) struct OfResult<'a> {
    pub(crate) run_id: &'a str,
    pub(crate) lane: usize,
    pub(crate) record: &'a CaseRecord,
    pub(crate) history: &'a [Said],
    /// Who may say something about it.
    pub(crate) editor: Option<&'a Editor>,
}

pub(crate) fn of_result(it: &OfResult<'_>) -> Markup {
    let holds = current(it.history);
    html! {
        @if it.editor.is_some() || !it.history.is_empty() {
            section #people .panel.people aria-labelledby="people-title" {
                h2 #people-title { "What people say" }
                @if holds.is_empty() { p.note { "Nothing yet." } } @else { (said(it, &holds)) }
                @if let Some(editor) = it.editor { (forms(it, &holds, editor)) }
                (history(it.history, holds.len()))
            }
        }
    }
}

/// What holds now, matter by matter.
fn said(it: &OfResult<'_>, holds: &[&Said]) -> Markup {
    let notes = holds.iter().filter_map(|said| match &said.remark {
        Remark::Note { note } => Some((said, note.as_ref()?)),
        Remark::Verdict { .. } | Remark::Points { .. } | Remark::Tag { .. } => None,
    });
    let mut tags: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for said in holds {
        if let Remark::Tag { tag, .. } = &said.remark {
            tags.entry(tag.as_str()).or_default().push(said.person.as_str());
        }
    }
    html! {
        ul.said {
            @for (person, mark) in marks(it.history).into_iter().take(MOST_SHOWN) {
                li { b dir="auto" { (person) } " " (pill(verdict_of(mark))) " " span.note { (against(it.record.verdict, mark)) } }
            }
        }
        (points_table(it.record, holds))
        @if !tags.is_empty() {
            p.d-tags { @for (tag, people) in tags.iter().take(MOST_SHOWN) {
                span { span.tag dir="auto" { (tag) } " by " span dir="auto" { (people.join(", ")) } }
            } }
        }
        @for (said, note) in notes.take(MOST_SHOWN) {
            figure.remark {
                blockquote dir="auto" { (safe(&capped(note.as_str(), 4000))) }
                figcaption { (who(said)) " " (when(said)) }
            }
        }
    }
}

fn who(said: &Said) -> Markup {
    html! { b dir="auto" { (said.person) } }
}

fn when(said: &Said) -> Markup {
    html! {
        span.note {
            (shown_time(said.at_ms))
            @if let Some(run) = &said.carried_from { ", of run " a href=(address::run(run)) { (one_line(run, 24)) } }
        }
    }
}

fn verdict_of(mark: Mark) -> Verdict {
    match mark {
        Mark::Pass => Verdict::Pass,
        Mark::Fail => Verdict::Fail,
    }
}

/// What a mark says of a verdict.
fn against(verdict: Verdict, mark: Mark) -> &'static str {
    match mark.confirms(verdict) {
        Some(true) => "the verdict is right",
        Some(false) => "the verdict is wrong",
        None => "where the run has no verdict",
    }
}

/// Points of people beside those of judges, a row for each criterion.
fn points_table(record: &CaseRecord, holds: &[&Said]) -> Markup {
    let given: Vec<(&Said, &str, u8)> = holds
        .iter()
        .filter_map(|said| match &said.remark {
            Remark::Points { about, points } => Some((*said, about.as_str(), (*points)?)),
            Remark::Verdict { .. } | Remark::Note { .. } | Remark::Tag { .. } => None,
        })
        .take(MOST_SHOWN)
        .collect();
    let mut names: Vec<&str> = given.iter().map(|it| it.1).collect();
    names.sort_unstable();
    names.dedup();
    let criteria = rubric(record);
    let judges = |name: &str| {
        let known = criteria.iter().find(|it| it.name == name);
        known.map(|it| it.judges.clone()).unwrap_or_default()
    };
    html! {
        @if !given.is_empty() {
            table.points-said {
                thead { tr { th scope="col" { "Criterion" } th scope="col" { "Points of 5" } } }
                tbody { @for name in names { tr {
                    th scope="row" dir="auto" { (one_line(name, 80)) }
                    td {
                        @for (said, _, points) in given.iter().filter(|it| it.1 == name) {
                            span.given { (who(said)) " " (points) } " "
                        }
                        @for (judge, points) in judges(name) {
                            span.given.note { "judge " span dir="auto" { (one_line(&judge, 40)) } " " (points) } " "
                        }
                    }
                } } }
            }
        }
    }
}

fn history(history: &[Said], holding: usize) -> Markup {
    html! {
        @if history.len() > holding {
            details.history {
                summary { "History (" (history.len()) ")" }
                ol { @for said in history.iter().rev().take(MOST_SHOWN) {
                    li dir="auto" { (when(said)) " " (who(said)) " " (told(&said.remark)) }
                } }
            }
        }
    }
}

fn told(remark: &Remark) -> String {
    match remark {
        Remark::Verdict { mark: Some(mark) } => format!("marked it {mark}"),
        Remark::Verdict { mark: None } => "took back the mark".to_owned(),
        Remark::Points { about, points: Some(points) } => {
            format!("gave {points} points for {}", one_line(about, 80))
        }
        Remark::Points { about, points: None } => {
            format!("took back the points for {}", one_line(about, 80))
        }
        Remark::Note { note: Some(note) } => format!("noted “{}”", one_line(note.as_str(), 120)),
        Remark::Note { note: None } => "took back the note".to_owned(),
        Remark::Tag { tag, is_set: true } => format!("added the tag {tag}"),
        Remark::Tag { tag, is_set: false } => format!("removed the tag {tag}"),
    }
}

/// Where somebody says what they think.
fn forms(it: &OfResult<'_>, holds: &[&Said], editor: &Editor) -> Markup {
    let here = address::case(it.run_id, &it.record.case_id, it.lane, it.record.repeat);
    let Some(person) = &editor.person else {
        return html! { div.forms { (name_form(&here, editor)) } };
    };
    let own: Vec<&Remark> =
        holds.iter().filter(|it| it.person == *person).map(|it| &it.remark).collect();
    let form = |what: What, content: Markup| {
        let (path, query) = here.split_once('?').unwrap_or((&here, ""));
        html! {
            form method="post" action={ (path) "/remarks?" (query) } class={ "say say-" (what) } {
                input type="hidden" name="token" value=(editor.token);
                input type="hidden" name="reply" value=(ReplyDigest::of(it.record));
                input type="hidden" name="what" value=(what);
                (content)
            }
        }
    };
    html! {
        div.forms {
            (form(What::Verdict, verdict_form(it.record.verdict, &own)))
            (form(What::Points, points_form(&rubric(it.record), &own)))
            (own_tags(&own, |content| form(What::Untag, content)))
            (form(What::Tag, html! {
                label for="new-tag" { "Tag" }
                div.line { input #new-tag name="tag" type="text" maxlength="60" required autocomplete="off"; button type="submit" { "Add" } }
            }))
            (form(What::Note, note_form(&own)))
            details.who {
                summary { "You are " b dir="auto" { (person) } }
                (name_form(&here, editor))
            }
        }
    }
}

fn name_form(here: &str, editor: &Editor) -> Markup {
    let name = editor.person.as_ref().map(|it| it.as_str().to_owned());
    html! {
        form.say method="post" action="/person" {
            input type="hidden" name="token" value=(editor.token);
            input type="hidden" name="back" value={ (here) "#people" };
            label for="your-name" { @if name.is_some() { "Another name" } @else { "Your name, to say something yourself" } }
            div.line {
                input #your-name name="name" type="text" value=[name] maxlength="60" required autocomplete="name";
                button type="submit" { "Save" }
            }
        }
    }
}

fn verdict_form(verdict: Verdict, own: &[&Remark]) -> Markup {
    let mark = own.iter().find_map(|it| match it {
        Remark::Verdict { mark } => *mark,
        Remark::Points { .. } | Remark::Note { .. } | Remark::Tag { .. } => None,
    });
    let choices = match verdict {
        Verdict::Pass => [(Mark::Pass, "Right"), (Mark::Fail, "Wrong")],
        Verdict::Fail => [(Mark::Fail, "Right"), (Mark::Pass, "Wrong")],
        Verdict::Error | Verdict::Undecided => [(Mark::Pass, "Pass"), (Mark::Fail, "Fail")],
    };
    let question = match verdict {
        Verdict::Pass | Verdict::Fail => html! { "The verdict " (pill(verdict)) " is" },
        Verdict::Error | Verdict::Undecided => html! { "The verdict ought to be" },
    };
    html! {
        fieldset {
            legend { (question) }
            div.line {
                @for (value, name) in choices {
                    button type="submit" name="mark" value=(value) aria-pressed=(mark == Some(value)) { (name) }
                }
                @if mark.is_some() { button.quiet type="submit" name="mark" value="" { "Take back" } }
            }
        }
    }
}

fn points_form(criteria: &[Criterion], own: &[&Remark]) -> Markup {
    let given = |name: &str| {
        own.iter().find_map(|it| match it {
            Remark::Points { about, points } if about == name => *points,
            Remark::Verdict { .. }
            | Remark::Points { .. }
            | Remark::Note { .. }
            | Remark::Tag { .. } => None,
        })
    };
    html! {
        @for criterion in criteria {
            @let (field, given) = (points_field(&criterion.name), given(&criterion.name));
            fieldset {
                legend dir="auto" { "Points: " (one_line(&criterion.name, 80)) }
                @if let Some(text) = &criterion.description { p.note dir="auto" { (one_line(text, 300)) } }
                div.scale {
                    @for points in POINTS {
                        label { input type="radio" name=(field) value=(points) checked[given == Some(points)]; (points) }
                    }
                    label { input type="radio" name=(field) value="" checked[given.is_none()]; "none" }
                }
            }
        }
        button type="submit" { "Save points" }
    }
}

fn own_tags(own: &[&Remark], form: impl Fn(Markup) -> Markup) -> Markup {
    let tags: Vec<&str> = own
        .iter()
        .filter_map(|it| match it {
            Remark::Tag { tag, .. } => Some(tag.as_str()),
            Remark::Verdict { .. } | Remark::Points { .. } | Remark::Note { .. } => None,
        })
        .collect();
    html! {
        @if !tags.is_empty() {
            (form(html! {
                fieldset {
                    legend { "Your tags" }
                    div.line { @for tag in tags.iter().take(MOST_SHOWN) {
                        button.tag type="submit" name="tag" value=(tag) aria-label={ "Remove the tag " (tag) } { span dir="auto" { (tag) } " ×" }
                    } }
                }
            }))
        }
    }
}

fn note_form(own: &[&Remark]) -> Markup {
    let note = own.iter().find_map(|it| match it {
        Remark::Note { note } => note.as_ref(),
        Remark::Verdict { .. } | Remark::Points { .. } | Remark::Tag { .. } => None,
    });
    html! {
        label for="your-note" { "Your note" }
        textarea #your-note name="note" rows="3" maxlength="4000" { @if let Some(note) = note { (note.as_str()) } }
        button type="submit" { "Save note" }
    }
}

/// What people say of a run as a whole, and how far they agree.
pub(crate) fn of_run(run_id: &str, short: &str, it: &OfRun) -> Markup {
    let OfRun { people, results, marked, confirmed, called_wrong, wrong, agreements } = it;
    html! {
        @if *results > 0 {
            section.panel.people-of-run aria-labelledby="people-title" {
                div.bar {
                    h2 #people-title { "What people say" }
                    p.note { (count(*results, "result", "results")) " looked at by " (count(people.len() as u64, "person", "people")) }
                }
                p.sum {
                    @if *marked == 0 { "Nobody said whether a verdict is right." } @else {
                        b { (grouped(*confirmed)) " of " (grouped(*marked)) } " marks confirm the verdict."
                    }
                }
                (agreement_table(agreements))
                @if !wrong.is_empty() { (wrong_list(run_id, wrong, *called_wrong)) }
                details {
                    summary { "Use it elsewhere" }
                    (command(&format!("probity judge agreement --from-store {short}")))
                    (command(&format!("probity export {short} --as labels -o labels.jsonl")))
                }
            }
        }
    }
}

fn agreement_table(all: &[Agreement]) -> Markup {
    html! {
        @if !all.is_empty() {
            div.scroll { table.agreements {
                thead { tr { @for name in ["About", "Who", "Rated by all", "Same", "Kappa"] { th scope="col" { (name) } } } }
                tbody { @for it in all.iter().take(MOST_SHOWN) { tr {
                    td dir="auto" { (one_line(it.about.as_deref().unwrap_or("verdict"), 80)) }
                    td dir="auto" { (it.people.join(", ")) }
                    td { (grouped(it.rated)) }
                    td { (format!("{:.0} %", it.share() * 100.0)) }
                    td {
                        @match it.kappa { Some(kappa) => (format!("{kappa:.2}")), None => "–" }
                        @if let Some(kappa) = it.kappa_quadratic { " " span.note { "(" (format!("{kappa:.2}")) " by distance)" } }
                    }
                } } }
            } }
        }
    }
}

fn wrong_list(run_id: &str, wrong: &[Wrong], all: u64) -> Markup {
    let more = all.saturating_sub(wrong.len().min(MOST_WRONG) as u64);
    html! {
        h3 { "Verdicts that people call wrong" }
        ul { @for it in wrong.iter().take(MOST_WRONG) {
            li {
                (pill(it.verdict)) " "
                a href=(address::case(run_id, &it.case_id, it.lane, it.repeat)) dir="auto" { (one_line(&it.case_id, 120)) }
                " " span.note dir="auto" { "by " (it.people.join(", ")) }
            }
        }
        @if more > 0 { li.note { "and " (grouped(more)) " more" } } }
    }
}
