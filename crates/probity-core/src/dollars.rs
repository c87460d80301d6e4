//! Amounts of money. They never show an exponent, nor something as nothing.

/// Decimals that are always shown.
const LEAST: usize = 4;
/// Decimals beyond which nobody is paid.
const MOST: usize = 12;

/// For people: four decimals, or as many as it takes to show two digits.
pub fn dollars(amount: f64) -> String {
    let decimals = (LEAST..MOST).find(|decimals| {
        let power = i32::try_from(*decimals).unwrap_or(i32::MAX);
        amount == 0.0 || amount.abs() * 10_f64.powi(power) >= 10.0
    });
    format!("${}", trimmed(amount, decimals.unwrap_or(MOST)))
}

/// For scripts, which add amounts up: every decimal that counts.
pub fn plain(amount: f64) -> String {
    trimmed(amount, MOST)
}

/// So many decimals, without zeros at the end but for the first four.
fn trimmed(amount: f64, decimals: usize) -> String {
    let text = format!("{amount:.decimals$}");
    let least = text.find('.').map_or(text.len(), |point| point + 1 + LEAST);
    let kept = text.trim_end_matches('0').len().max(least);
    text[..kept.min(text.len())].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_amounts_are_not_nothing() {
        for (amount, shown, exact) in [
            (0.0, "$0.0000", "0.0000"),
            (0.000_03, "$0.00003", "0.00003"),
            (0.000_034_567, "$0.000035", "0.000034567"),
            (0.000_000_000_1, "$0.0000000001", "0.0000000001"),
            (0.001_25, "$0.0013", "0.00125"),
            (0.3, "$0.3000", "0.3000"),
            (1234.5, "$1234.5000", "1234.5000"),
        ] {
            assert_eq!(dollars(amount), shown);
            assert_eq!(plain(amount), exact);
        }
    }
}
