//! Numbers to the digit.

use std::{cmp::Ordering, fmt};

use probity_stats::decide::Threshold;
use serde::{Deserialize, Serialize};

use crate::metrics::Mean;

/// A number as it was written: whole digits and how many of them are behind the point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Decimal {
    digits: u64,
    /// How many of the digits are behind the point.
    pub(super) scale: u32,
}

impl From<Decimal> for String {
    fn from(decimal: Decimal) -> Self {
        decimal.to_string()
    }
}

impl TryFrom<String> for Decimal {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("`{text}` is not a decimal number"))
    }
}

impl Decimal {
    /// Whether it is 0.
    pub fn is_zero(&self) -> bool {
        self.digits == 0
    }

    /// Whether it has no decimal places.
    pub const fn is_whole(self) -> bool {
        self.scale == 0
    }

    /// Reads a number such as `0.948`, `94.8%` or `12`.
    pub fn parse(text: &str) -> Option<Self> {
        let (number, percent) = match text.trim().strip_suffix('%') {
            Some(number) => (number.trim_end(), 2),
            None => (text.trim(), 0),
        };
        // TOML writes numbers with exponents too; the shortest form of a float has none.
        let plain;
        let number = match number.parse::<f64>() {
            Ok(value) if number.contains(['e', 'E']) => {
                plain = value.to_string();
                plain.as_str()
            }
            Ok(_) | Err(_) => number,
        };
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        let part = part.trim_end_matches('0');
        let is_number = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        if (whole.is_empty() && part.is_empty()) || !is_number(whole) || !is_number(part) {
            return None;
        }
        let scale = u32::try_from(part.len()).ok()? + percent;
        // Enough for every limit that makes sense, and products of it fit.
        let digits: u64 = format!("{whole}{part}").parse().ok()?;
        (scale <= 12).then(|| Self::new(digits, scale))
    }

    /// Without zeros at the end of its part, so that equal numbers are equal.
    pub(super) const fn new(mut digits: u64, mut scale: u32) -> Self {
        while scale > 0 && digits.is_multiple_of(10) {
            digits /= 10;
            scale -= 1;
        }
        Self { digits, scale }
    }

    /// A whole number.
    pub const fn whole(digits: u64) -> Self {
        Self { digits, scale: 0 }
    }

    /// The nearest float.
    pub fn to_f64(self) -> f64 {
        self.to_string().parse().unwrap_or(f64::MAX)
    }

    /// As a share, if it is one.
    pub fn threshold(self) -> Option<Threshold> {
        Threshold::new(self.digits, self.power())
    }

    /// The whole numbers next to so much of a whole: not above it, and not below it.
    pub fn of(self, whole: u64) -> (u64, u64) {
        let product = u128::from(self.digits) * u128::from(whole);
        let power = u128::from(self.power());
        let clamp = |it: u128| u64::try_from(it).unwrap_or(u64::MAX);
        (clamp(product / power), clamp(product.div_ceil(power)))
    }

    fn power(self) -> u64 {
        10_u64.pow(self.scale)
    }

    /// How a part of a whole stands to it.
    pub(super) fn compare_share(self, part: u64, whole: u64) -> Ordering {
        let observed = u128::from(part) * u128::from(self.power());
        observed.cmp(&(u128::from(self.digits) * u128::from(whole)))
    }

    /// How a count stands to it.
    pub(super) fn compare_count(self, count: u64) -> Ordering {
        self.compare_share(count, 1)
    }

    /// How a mean stands to it. The values of a mean are rounded to the twelfth decimal, so that
    /// what differs by less than that is the same.
    pub(super) fn compare_mean(self, mean: Mean) -> Ordering {
        let whole = u128::from(self.power()) * u128::from(mean.count);
        let observed = mean.trillionths * u128::from(self.power());
        let limit = u128::from(self.digits) * u128::from(mean.count) * u128::from(Mean::ONE);
        match observed.abs_diff(limit) * 2 <= whole {
            true => Ordering::Equal,
            false => observed.cmp(&limit),
        }
    }

    /// A hundred times as much.
    #[must_use]
    pub fn hundredfold(self) -> Self {
        match self.scale {
            0 => Self { digits: self.digits.saturating_mul(100), scale: 0 },
            1 => Self { digits: self.digits.saturating_mul(10), scale: 0 },
            scale => Self { digits: self.digits, scale: scale - 2 },
        }
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (power, width) = (self.power(), self.scale as usize);
        match self.scale {
            0 => write!(f, "{}", self.digits),
            _ => {
                let part = format!("{:0width$}", self.digits % power);
                let part = part.trim_end_matches('0');
                let point = if part.is_empty() { "" } else { "." };
                write!(f, "{}{point}{part}", self.digits / power)
            }
        }
    }
}
