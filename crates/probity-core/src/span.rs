//! Durations as people write them.

use std::{fmt, time::Duration};

/// A duration as people write it.
#[derive(Clone, Copy, Debug)]
pub struct Span(pub Duration);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        match millis {
            _ if !millis.is_multiple_of(1000) && millis < 10_000 => write!(f, "{millis}ms"),
            _ if !millis.is_multiple_of(1000) => write!(f, "{:.1}s", self.0.as_secs_f64()),
            0..120_000 => write!(f, "{}s", millis / 1000),
            _ if millis.is_multiple_of(60_000) => write!(f, "{}m", millis / 60_000),
            _ => write!(f, "{}m{}s", millis / 60_000, millis % 60_000 / 1000),
        }
    }
}
