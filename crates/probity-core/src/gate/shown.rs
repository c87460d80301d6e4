//! What a gate saw, told apart from a limit that it misses.

use super::{Decimal, Observed, percent, time};
use crate::metrics::share;

impl Observed {
    /// In words, with as many digits as tell it from a limit that it misses.
    pub(super) fn beside(self, limit: Option<Decimal>) -> String {
        let plain = self.to_string();
        let Some(limit) = limit.map(Decimal::to_f64) else { return plain };
        match self {
            Self::Share { part, whole } => {
                format!("{} ({part} of {whole})", percent_beside(part, whole, limit))
            }
            Self::Dollars(amount) if reads_as(&plain, limit) => {
                format!("${}", apart(amount, limit, 4))
            }
            Self::Time(millis) if time(millis) == time(limit) => {
                format!("{}ms", apart(millis, limit, 0))
            }
            Self::Mean(mean) if reads_as(&format!("{:.4}", self.value()), limit) => {
                format!("{} (mean of {})", apart(self.value(), limit, 4), mean.count)
            }
            Self::Number(value) if reads_as(&plain, limit) => apart(value, limit, 4),
            Self::Count(_) | Self::Time(_) | Self::Dollars(_) | Self::Mean(_) | Self::Number(_) => {
                plain
            }
        }
    }
}

/// A share for people, with as many digits as tell it from a limit that it misses.
pub fn percent_beside(part: u64, whole: u64, limit: f64) -> String {
    let plain = percent(part, whole);
    let limit = limit * 100.0;
    match share(part, whole) {
        Some(found) if reads_as(&plain, limit) => format!("{} %", apart(found * 100.0, limit, 1)),
        Some(_) | None => plain,
    }
}

/// Whether a number with its unit reads like a limit.
fn reads_as(text: &str, limit: f64) -> bool {
    let number = text.trim_matches(|c: char| !c.is_ascii_digit());
    number.parse::<f64>().is_ok_and(|number| is_near(number, limit))
}

/// A number with so many decimals, or as many as tell it from a limit.
fn apart(value: f64, limit: f64, decimals: usize) -> String {
    let texts = (decimals..16).map(|decimals| format!("{value:.decimals$}"));
    let mut told = texts.skip_while(|text| reads_as(text, limit));
    told.next().unwrap_or_else(|| value.to_string())
}

/// Whether two numbers differ by no more than a product of them can be off.
fn is_near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-12 * b.abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missed_limit_reads_unlike_what_was_found() {
        assert_eq!(percent_beside(1, 10, 0.2), "10.0 %");
        assert_eq!(percent_beside(10_001, 100_000, 0.1), "10.001 %");
        assert_eq!(percent_beside(947_999, 1_000_000, 0.948), "94.7999 %");
        let beside = |it: Observed, digits, power| it.beside(Some(Decimal::new(digits, power)));
        assert_eq!(
            beside(Observed::Share { part: 947, whole: 999 }, 948, 3),
            "94.79 % (947 of 999)"
        );
        assert_eq!(beside(Observed::Dollars(0.300_01), 3, 1), "$0.30001");
        assert_eq!(beside(Observed::Dollars(0.5), 3, 1), "$0.5000");
        assert_eq!(beside(Observed::Time(250.4), 250, 0), "250.4ms");
        assert_eq!(Observed::Time(250.4).beside(None), "250ms");
    }
}
