//! What was asked and answered.

use std::ops::Range;

use maud::{Markup, html};
use probity_core::{
    conversation::Utterance,
    record::{Asked, CaseRecord},
    request::Role,
    visible::safe,
};
use probity_report::plain::{capped, one_line};

use super::super::parts::{MOST_TEXT, count, short_block, text_block};

/// Utterances of a conversation, and questions beside it, that are shown.
const MOST_PARTS: usize = 100;
/// Characters of all of a conversation, and of all questions beside it.
const MOST_TALK: usize = 64_000;

/// Characters of each text of so many.
fn room(texts: usize) -> usize {
    (MOST_TALK / texts.clamp(1, MOST_PARTS)).min(MOST_TEXT)
}

/// What is said where not everything is shown.
fn left_out(all: usize) -> Markup {
    let more = all.saturating_sub(MOST_PARTS) as u64;
    html! { @if more > 0 { p.note { "and " (count(more, "more, which is in the JSON", "more, which are in the JSON")) } } }
}

pub(super) fn render(record: &CaseRecord) -> Markup {
    let is_conversation = record.is_conversation();
    html! {
        @if let Some(system) = record.request.system() {
            details { summary { "System prompt" } (text_block(system)) }
        }
        @if is_conversation {
            h3 { "Conversation" }
            @let talk = record.utterances();
            div.talk { @for said in talk.iter().take(MOST_PARTS) { (spoken(said, room(talk.len()))) } }
            (left_out(talk.len()))
        } @else {
            h3 { "Prompt" }
            (text_block(&record.request.shown()))
        }
        @if let Some(reasoning) = record.reasoning.as_ref().filter(|_| !is_conversation) {
            details { summary { "Reasoning" } (text_block(reasoning)) }
        }
        @if let Some(reply) = &record.reply {
            h3 { "Reply" }
            pre.reply dir="auto" tabindex="0" { (marked(reply, &spans(record))) }
        }
        @if let Some(error) = &record.error {
            h3 { "Error" }
            pre.bad dir="auto" tabindex="0" { (safe(&capped(&error.to_string(), MOST_TEXT))) }
            @if let Some(advice) = error.advice() { p.note { (advice) } }
        }
        @if let Some(made) = &record.classification.details.transformed {
            h3 { "Transformed reply, which was checked" }
            (text_block(made))
        }
    }
}

fn spoken(said: &Utterance<'_>, room: usize) -> Markup {
    let role = said.message.role;
    html! {
        @if role != Role::System {
            div class=(role.as_str()) {
                b { (role.as_str()) }
                @if let Some(reasoning) = said.reasoning { details { summary { "thinking" } (short_block(reasoning, room / 2)) } }
                (short_block(&said.message.said(), room))
            }
        }
    }
}

/// Questions beside the conversation: those of judges, and of skills.
pub(super) fn beside(record: &CaseRecord) -> Markup {
    let asked: Vec<&Asked> = record.asked.iter().filter(|it| it.turn.is_none()).collect();
    // Each has a prompt and a reply.
    let room = room(asked.len() * 2);
    html! {
        @for it in asked.iter().take(MOST_PARTS) { (question(it, room)) }
        (left_out(asked.len()))
    }
}

fn question(asked: &Asked, room: usize) -> Markup {
    let model = asked.model.as_deref().map(|it| format!(", {}", one_line(it, 60)));
    html! {
        details {
            summary dir="auto" {
                "Asked: " (one_line(&asked.role, 120)) " (" (one_line(&asked.backend, 60)) (model.unwrap_or_default()) ")"
            }
            @if let Some(system) = asked.request.system() { h3 { "System prompt" } (short_block(system, room / 2)) }
            h3 { "Prompt" } (short_block(&asked.request.shown(), room))
            @if let Some(reply) = asked.shown_reply() { h3 { "Reply" } (short_block(&reply, room)) }
            @if let Some(error) = &asked.error { h3 { "Error" } (short_block(error, room)) }
        }
    }
}

/// Where in the reply the evidence is.
fn spans(record: &CaseRecord) -> Vec<Range<usize>> {
    let details = &record.classification.details;
    let hits = details.hits.iter().map(|it| it.span.clone());
    let scores = record.classification.scores.iter().filter_map(|it| it.span.clone());
    details.span.iter().cloned().chain(hits).chain(scores).collect()
}

/// A text with some of its bytes marked. Spans may overlap, and may lie beyond the text.
fn marked(text: &str, spans: &[Range<usize>]) -> Markup {
    let shown = capped(text, MOST_TEXT);
    // What is said of a cut stands behind the text itself.
    let end = shown.len().min(text.len());
    let at = |place: usize| boundary(&shown, place.min(end));
    let spans: Vec<Range<usize>> = spans.iter().map(|it| at(it.start)..at(it.end)).collect();
    let mut edges: Vec<usize> =
        spans.iter().flat_map(|it| [it.start, it.end]).chain([0, shown.len()]).collect();
    edges.sort_unstable();
    edges.dedup();
    html! {
        @for edge in edges.windows(2) {
            @let piece = safe(&shown[edge[0]..edge[1]]);
            @if spans.iter().any(|it| it.contains(&edge[0])) { mark { (piece) } } @else { (piece) }
        }
    }
}

fn boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_is_marked_wherever_it_lies() {
        let check = |text: &str, spans: &[(usize, usize)], expected: &str| {
            let spans: Vec<Range<usize>> = spans.iter().map(|(from, to)| *from..*to).collect();
            assert_eq!(marked(text, &spans).into_string(), expected);
        };
        check("abcdef", &[(1, 3)], "a<mark>bc</mark>def");
        check("abcdef", &[(1, 3), (2, 4)], "a<mark>b</mark><mark>c</mark><mark>d</mark>ef");
        check("abc", &[(2, 900), (900, 901)], "ab<mark>c</mark>");
        check("é<b>", &[(1, 4)], "<mark>é&lt;b</mark>&gt;");
        check("", &[(0, 1)], "");
    }
}
