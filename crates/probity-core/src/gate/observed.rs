//! What a gate saw, for comparing and for people.

use std::{fmt, time::Duration};

use crate::{
    derived,
    dollars::dollars,
    metrics::{Mean, share},
    span::Span,
};

/// What a gate saw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Observed {
    /// A part of a whole.
    Share {
        /// The part.
        part: u64,
        /// The whole.
        whole: u64,
    },
    /// A number of things.
    Count(u64),
    /// Milliseconds.
    Time(f64),
    /// Dollars.
    Dollars(f64),
    /// The mean of a score.
    Mean(Mean),
    /// A derived figure.
    Number(f64),
}

impl Observed {
    /// As a plain number.
    pub fn value(self) -> f64 {
        match self {
            Self::Share { part, whole } => share(part, whole).unwrap_or(0.0),
            #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
            Self::Count(count) => count as f64,
            Self::Time(value) | Self::Dollars(value) | Self::Number(value) => value,
            Self::Mean(mean) => mean.value().unwrap_or(0.0),
        }
    }
}

impl fmt::Display for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Share { part, whole } => {
                write!(f, "{} ({part} of {whole})", percent(part, whole))
            }
            Self::Count(count) => write!(f, "{count}"),
            Self::Time(millis) => write!(f, "{}", time(millis)),
            Self::Dollars(amount) => f.write_str(&dollars(amount)),
            Self::Mean(mean) => write!(f, "{:.4} (mean of {})", self.value(), mean.count),
            Self::Number(value) => f.write_str(&derived::shown(value)),
        }
    }
}

/// A share for people. What is not all is never shown as all, and what is something never
/// as nothing.
pub fn percent(part: u64, whole: u64) -> String {
    let Some(share) = share(part, whole) else { return "n/a".to_owned() };
    let shown = (share * 1000.0).round() / 10.0;
    let shown = match shown {
        100.0 if part < whole => 99.9,
        0.0 if part > 0 => 0.1,
        shown => shown,
    };
    format!("{shown:.1} %")
}

pub(super) fn time(millis: f64) -> String {
    let millis = if millis.is_finite() { millis.max(0.0) } else { 0.0 };
    // Fractions of milliseconds are an artefact of averages.
    Span(Duration::try_from_secs_f64(millis.round() / 1000.0).unwrap_or(Duration::MAX)).to_string()
}
