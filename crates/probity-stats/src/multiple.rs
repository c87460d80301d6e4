//! Several comparisons at once.

use super::length;

/// Holm's step-down adjustment (Holm 1979): comparing each result with alpha keeps the chance of even
/// one false finding among all below alpha, however the comparisons depend on each other.
///
/// In the order of the input. What is not a number counts as 1, which never is a finding but is still
/// one more comparison; what is below 0 or above 1 counts as 0 or 1.
///
/// ```
/// use probity_stats::multiple::holm;
///
/// assert_eq!(holm(&[0.5, 0.0625, 0.125]), [0.5, 0.1875, 0.25]);
/// ```
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut adjusted: Vec<f64> =
        p_values.iter().map(|p| if p.is_nan() { 1.0 } else { p.clamp(0.0, 1.0) }).collect();
    let mut order: Vec<usize> = (0..adjusted.len()).collect();
    order.sort_by(|one, other| adjusted[*one].total_cmp(&adjusted[*other]));
    let mut left = length(p_values);
    let mut greatest = 0.0_f64;
    for i in order {
        greatest = greatest.max((adjusted[i] * left).min(1.0));
        adjusted[i] = greatest;
        left -= 1.0;
    }
    adjusted
}
