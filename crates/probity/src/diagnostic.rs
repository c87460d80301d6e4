//! Problems as people read them: the message, the place, the line with the part underlined.

use std::ops::Range;

use annotate_snippets::{Annotation, AnnotationKind, Level, Origin, Renderer, Snippet};
use probity_core::{
    problem::{Place, Problem, Severity, Source},
    visible::safe,
};

/// The problem with its source line, in colour; the stream takes the colour off where it must.
pub(crate) fn render(problem: &Problem) -> String {
    let Problem { severity, code, message, file, place, case_id, help } = problem;
    let level = match severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let message = match case_id {
        Some(id) => format!("{message} (case `{id}`)"),
        None => message.clone(),
    };
    let (message, file) = (safe(&message), safe(file));
    let help = help.as_deref().map(safe);
    let shown = place.as_ref().map(visible);
    let title = level.primary_title(&*message).id(*code);
    let group = match (place, &shown) {
        (Some(place), Some(shown)) if counts_otherwise(place, shown) => {
            // The renderer would count the columns of what is shown of the line.
            let at = Origin::path(&*file).line(place.line).char_column(place.column);
            let title = title.element(at);
            // Of a line that must not be shown there is nothing.
            if shown.source.is_empty() { title } else { title.element(snippet(shown)) }
        }
        (Some(_), Some(shown)) => title.element(snippet(shown).path(&*file)),
        (None, _) | (_, None) => title.element(Origin::path(&*file)),
    };
    let group = match &help {
        Some(help) if !help.is_empty() => group.element(Level::HELP.message(&**help)),
        Some(_) | None => group,
    };
    Renderer::styled().render(&[group])
}

/// Longest text that is shown whole, in bytes.
const SHOWN_WHOLE: usize = 2000;
/// Most places that are shown of a longer one.
const MOST_PLACES: usize = 20;

/// A text with parts of it underlined and labelled; of a long text only the lines around them.
pub(crate) fn underline(title: &str, text: &str, marks: &[(Range<usize>, String)]) -> String {
    let title = safe(title);
    let title = Level::INFO.primary_title(&*title);
    if text.len() <= SHOWN_WHOLE {
        let whole = safe(text);
        let snippet = marks.iter().fold(Snippet::source(&*whole), |snippet, (span, label)| {
            let mark = AnnotationKind::Primary.span(moved(text, span));
            snippet.annotation(mark.label(safe(label)))
        });
        return Renderer::styled().render(&[title.element(snippet)]);
    }
    let source = Source::file(text);
    let places: Vec<(Place, _)> = marks
        .iter()
        .take(MOST_PLACES)
        .map(|(span, label)| (visible(&source.place(span)), safe(label)))
        .collect();
    let shown: Vec<_> = places
        .iter()
        .map(|(place, label)| {
            let mark = AnnotationKind::Primary.span(place.highlight.clone()).label(&**label);
            Snippet::source(place.source.as_str()).line_start(place.line).annotation(mark)
        })
        .collect();
    let more = marks.len().saturating_sub(MOST_PLACES);
    let mut group = title.elements(shown);
    if more > 0 {
        group = group.element(Level::NOTE.message(format!("and {more} more")));
    }
    Renderer::styled().render(&[group])
}

/// A place with everything of its line visible.
fn visible(place: &Place) -> Place {
    let Place { line, column, source, highlight } = place;
    let highlight = moved(source, highlight);
    Place { line: *line, column: *column, source: safe(source).into_owned(), highlight }
}

/// Where a part of a text is when everything of it is visible.
fn moved(text: &str, span: &Range<usize>) -> Range<usize> {
    let start = safe(&text[..span.start]).len();
    start..start + safe(&text[span.clone()]).len()
}

/// Whether the beginning of the line is missing, or longer than it was written.
fn counts_otherwise(place: &Place, shown: &Place) -> bool {
    shown.source[..shown.highlight.start].chars().count() + 1 != place.column
}

fn snippet(place: &Place) -> Snippet<'_, Annotation<'_>> {
    let Place { line, column: _, source, highlight } = place;
    Snippet::source(source.as_str())
        .line_start(*line)
        .annotation(AnnotationKind::Primary.span(highlight.clone()))
}
