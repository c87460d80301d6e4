//! Small things that several pages show.

use maud::{Markup, html};
use probity_core::{
    classification::{Counts, Verdict},
    metrics::share,
    record::RunStatus,
    visible::safe,
};
use probity_report::plain::capped;

/// Characters of a text on a page of one case.
pub(crate) const MOST_TEXT: usize = 16_000;

/// How long something took.
pub(crate) fn took(ms: i64) -> String {
    let ms = u64::try_from(ms).unwrap_or(0);
    let seconds = ms / 1000;
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..60_000 => format!("{seconds}.{} s", ms % 1000 / 100),
        60_000..3_600_000 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// A time for people: milliseconds, or seconds from ten on.
pub(crate) fn millis(ms: u64) -> String {
    match ms {
        0..10_000 => format!("{} ms", grouped(ms)),
        _ => format!("{}.{} s", grouped(ms / 1000), ms % 1000 / 100),
    }
}

/// A number with commas.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut shown = String::with_capacity(digits.len() + 4);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// A number of things.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { many })
}

/// A share, as a length or a place.
pub(crate) fn percent(value: f64) -> String {
    format!("{:.3}%", value.clamp(0.0, 1.0) * 100.0)
}

pub(crate) fn pill(verdict: Verdict) -> Markup {
    html! { span class={ "pill " (verdict) } { (verdict) } }
}

pub(crate) fn status(status: RunStatus) -> Markup {
    let tone = match status {
        RunStatus::Running => "running",
        RunStatus::Complete | RunStatus::Decided => "ended",
        RunStatus::Incomplete | RunStatus::Killed => "cut",
    };
    html! { span class={ "state " (tone) } { (status) } }
}

/// The classes as parts of a bar; what is still to come is left open.
pub(crate) fn class_bar(classes: &Counts, whole: u64, height: u32) -> Markup {
    let whole = whole.max(classes.total());
    let mut before = 0;
    let mut described = Vec::new();
    let parts: Vec<(&'static str, u64, f64, f64)> = classes
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(class, count)| {
            let of_whole = |count| share(count, whole).unwrap_or(0.0);
            let from = of_whole(before);
            before += count;
            described.push(format!("{count} {class}"));
            (class.as_str(), count, from, of_whole(count))
        })
        .collect();
    html! {
        svg.bar-of-classes width="100%" height=(height) role="img" aria-label=(described.join(", ")) {
            rect.track x="0" y="0" width="100%" height=(height) {}
            @for (class, count, from, width) in parts {
                rect class={ "fill " (class) } x=(percent(from)) y="0" width=(percent(width)) height=(height) {
                    title { (class) ": " (count) }
                }
            }
        }
    }
}

/// The classes with their counts.
pub(crate) fn class_legend(classes: &Counts, links: &str) -> Markup {
    html! {
        ul.classes {
            @for (class, count) in classes.iter().filter(|(_, count)| *count > 0) {
                li { a href={ (links) "class=" (class) } { span class={ "dot " (class) } {} (class) " " b { (grouped(count)) } } }
            }
        }
    }
}

/// Rates from 0 to 1, the oldest first, as a small line.
pub(crate) fn sparkline(rates: &[f64]) -> Markup {
    const WIDTH: f64 = 88.0;
    const HEIGHT: f64 = 22.0;
    if rates.len() < 2 {
        return html! { span.none { "–" } };
    }
    #[expect(clippy::cast_precision_loss, reason = "a few runs")]
    let step = (WIDTH - 6.0) / (rates.len() - 1) as f64;
    #[expect(clippy::cast_precision_loss, reason = "a few runs")]
    let place =
        |(at, rate): (usize, &f64)| (3.0 + step * at as f64, 3.0 + (HEIGHT - 6.0) * (1.0 - rate));
    let places: Vec<(f64, f64)> = rates.iter().enumerate().map(place).collect();
    let line: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let (x, y) = places.last().copied().unwrap_or_default();
    let shown: Vec<String> = rates.iter().map(|it| format!("{:.0} %", it * 100.0)).collect();
    html! {
        svg.spark width=(WIDTH) height=(HEIGHT) role="img" aria-label={ "pass rates, the oldest first: " (shown.join(", ")) } {
            title { (shown.join(", ")) }
            polyline points=(line.join(" ")) {}
            circle cx=(format!("{x:.1}")) cy=(format!("{y:.1}")) r="2.5" {}
        }
    }
}

/// A text as it is, with what cannot be seen made visible.
pub(crate) fn text_block(text: &str) -> Markup {
    short_block(text, MOST_TEXT)
}

/// The first so many characters of a text.
pub(crate) fn short_block(text: &str, most: usize) -> Markup {
    html! { pre dir="auto" tabindex="0" { (safe(&capped(text, most))) } }
}

/// A command that people copy.
pub(crate) fn command(line: &str) -> Markup {
    html! { div.command { code { (safe(line)) } button type="button" data-copy=(line) hidden { "Copy" } } }
}

/// What is shown where there is nothing to show.
pub(crate) fn empty(title: &str, content: &Markup) -> Markup {
    html! { section.blank { h2 { (title) } (content) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_are_for_people() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(
            [500, 1550, 61_000, 7_260_000].map(took),
            ["500 ms", "1.5 s", "1 min 1 s", "2 h 1 min"]
        );
        assert_eq!([12, 9999, 12_345].map(millis), ["12 ms", "9,999 ms", "12.3 s"]);
        assert_eq!(took(-5), "0 ms");
    }
}
