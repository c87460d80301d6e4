//! How far a judge agrees with people, for people.

use std::fmt::Write as _;

use probity_core::{calibration::Calibration, gate::percent};
use probity_report::plain::one_line;

use crate::terminal::{columns, flush_left, flush_right};

pub(super) fn render(it: &Calibration, names: &[String]) -> String {
    let mut text = String::new();
    let people = match it.people {
        1 => "one human".to_owned(),
        count => format!("{count} people"),
    };
    let _ = writeln!(text, "{} answers judged by the judge and by {people}", it.compared);
    if it.unjudged > 0 {
        let _ = writeln!(text, "  {} more without a usable answer of the judge", it.unjudged);
    }
    if it.unlabelled > 0 {
        let _ = writeln!(text, "  {} more without a label", it.unlabelled);
    }
    let share = it.agreement;
    let range = share.interval.map_or_else(String::new, |interval| {
        format!(" (95 % CI {:.1} to {:.1})", interval.low * 100.0, interval.high * 100.0)
    });
    let (count, of) = (share.count, share.of);
    let _ =
        writeln!(text, "  same label            {}, {count} of {of}{range}", percent(count, of));
    let mut figure = |name: &str, value: Option<f64>| {
        let _ = match value {
            Some(value) => writeln!(text, "  {name:<21} {value:.3}{}", words(value)),
            None => writeln!(text, "  {name:<21} n/a"),
        };
    };
    figure("Cohen's kappa", it.kappa);
    if it.kappa_linear.is_some() || it.kappa_quadratic.is_some() {
        figure("  linear weights", it.kappa_linear);
        figure("  quadratic weights", it.kappa_quadratic);
    }
    if it.people > 1 {
        for (at, kappa) in it.kappa_by_person.iter().enumerate() {
            let who =
                names.get(at).map_or_else(|| format!("human {}", at + 1), |it| one_line(it, 40));
            figure(&format!("  against {who}"), *kappa);
        }
    }
    figure("Krippendorff's alpha", it.alpha);
    if it.alpha_interval.is_some() {
        figure("  points as numbers", it.alpha_interval);
    }
    if it.people > 1 {
        figure("  people alone", it.alpha_of_people);
    }
    if let Some(bias) = it.bias {
        let range = it.bias_interval.map_or_else(String::new, |interval| {
            format!(" (95 % CI {:+.2} to {:+.2})", interval.low, interval.high)
        });
        let _ = writeln!(text, "  judge above people    {bias:+.2} points{range}");
    }
    let width = it.labels.iter().map(|it| columns(it)).max().unwrap_or(0).max(5);
    let _ = write!(text, "\n  {:<width$}  judge", "human");
    text.push('\n');
    let _ = write!(text, "  {:<width$}", "");
    for label in &it.labels {
        let _ = write!(text, "  {}", flush_right(label, width));
    }
    text.push('\n');
    for (label, row) in it.labels.iter().zip(&it.table) {
        let _ = write!(text, "  {}", flush_left(label, width));
        for count in row {
            let _ = write!(text, "  {count:>width$}");
        }
        text.push('\n');
    }
    text
}

/// What a coefficient is usually taken for (Landis and Koch 1977).
fn words(value: f64) -> &'static str {
    match value {
        value if value < 0.0 => "  worse than chance",
        value if value <= 0.20 => "  slight",
        value if value <= 0.40 => "  fair",
        value if value <= 0.60 => "  moderate",
        value if value <= 0.80 => "  substantial",
        _ => "  almost perfect",
    }
}
