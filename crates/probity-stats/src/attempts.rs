//! What several attempts at a case say of other numbers of attempts.

use super::number;

/// More factors than this are not multiplied one by one.
const MANY: u64 = 1 << 20;

/// The chance that at least one of `k` attempts passes, where `c` of `n` did: 1 - C(n-c,k)/C(n,k),
/// which is unbiased (Chen et al. 2021).
///
/// `None` if `c` or `k` is more than `n`, or if `k` is 0.
///
/// ```
/// use probity_stats::attempts::pass_at_k;
///
/// assert_eq!(pass_at_k(10, 3, 1), Some(0.3));
/// assert_eq!(pass_at_k(10, 3, 8), Some(1.0));
/// assert_eq!(pass_at_k(10, 0, 5), Some(0.0));
/// ```
pub fn pass_at_k(n: u64, c: u64, k: u64) -> Option<f64> {
    asked(n, c, k).then(|| Draw::new(n, c, k).some)
}

/// The chance that all of `k` attempts pass, where `c` of `n` did: C(c,k)/C(n,k), which is unbiased
/// (Yao et al. 2024).
///
/// `None` if `c` or `k` is more than `n`, or if `k` is 0.
///
/// ```
/// use probity_stats::attempts::pass_hat_k;
///
/// assert_eq!(pass_hat_k(10, 9, 1), Some(0.9));
/// assert_eq!(pass_hat_k(10, 9, 2), Some(0.8));
/// assert_eq!(pass_hat_k(10, 3, 4), Some(0.0));
/// ```
pub fn pass_hat_k(n: u64, c: u64, k: u64) -> Option<f64> {
    asked(n, c, k).then(|| Draw::new(n, n - c, k).none)
}

fn asked(n: u64, c: u64, k: u64) -> bool {
    c <= n && k <= n && k > 0
}

/// The chances that `drawn` of `n` things, taken at random, hold none or some of the `marked` ones.
struct Draw {
    none: f64,
    some: f64,
}

impl Draw {
    fn new(n: u64, marked: u64, drawn: u64) -> Self {
        if marked > n - drawn {
            return Self { none: 0.0, some: 1.0 };
        }
        // Which are marked and which are drawn can be exchanged, so the fewer make the factors.
        let (few, many) = (marked.min(drawn), marked.max(drawn));
        if few > MANY { Self::of_many(n, few, many) } else { Self::product(n, few, many) }
    }

    /// Both chances are carried along: taking one from 1 would lose the digits of a small other.
    fn product(n: u64, few: u64, many: u64) -> Self {
        let (mut none, mut some) = (1.0, 0.0);
        for left in (0..few).map(|i| n - i) {
            none *= number(left - many) / number(left);
            some += (1.0 - some) * (number(many) / number(left));
            // Products of subnormal numbers get stuck above 0.
            if none < f64::MIN_POSITIVE {
                return Self { none: 0.0, some: 1.0 };
            }
        }
        Self { none, some: some.min(1.0) }
    }

    /// The sum of the factors' logarithms as an integral, by Gauss and Legendre with three points.
    /// Either the factors are so many that nothing is left, or they hardly differ.
    fn of_many(n: u64, few: u64, many: u64) -> Self {
        let (n, few, many) = (number(n), number(few), number(many));
        if few * (many / n) > 800.0 {
            return Self { none: 0.0, some: 1.0 };
        }
        let (middle, half) = (n + 0.5 - few / 2.0, few / 2.0);
        let factor = |at: f64| libm::log1p(-many / (middle + half * at));
        let aside = 0.6_f64.sqrt();
        let log_none = half * (5.0 * (factor(-aside) + factor(aside)) + 8.0 * factor(0.0)) / 9.0;
        Self { none: libm::exp(log_none), some: -libm::expm1(log_none) }
    }
}
