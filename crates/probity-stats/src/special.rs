//! Quantiles of the normal and of Student's distribution, and the lower tail of a fair binomial.

use std::f64::consts::{FRAC_1_SQRT_2, LN_2, PI};

use super::{is_share, number};

/// The value that a standard normal variable exceeds with probability `tail`.
pub(super) fn normal_exceeded(tail: f64) -> Option<f64> {
    if !is_share(tail) {
        return None;
    }
    if tail > 0.5 {
        // 1 - tail is exact here.
        return normal_exceeded(1.0 - tail).map(|z| -z);
    }
    // Abramowitz and Stegun 26.2.23 is good to 4.5e-4; each of Halley's steps triples the digits.
    let t = (-2.0 * libm::log(tail)).sqrt();
    let mut z = t
        - (2.515_517 + t * (0.802_853 + t * 0.010_328))
            / (1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308)));
    for _ in 0..3 {
        let density = libm::exp(-0.5 * z * z) / (2.0 * PI).sqrt();
        let step = (0.5 * libm::erfc(z * FRAC_1_SQRT_2) - tail) / density;
        if step.is_finite() {
            z += step / (1.0 - 0.5 * z * step);
        }
    }
    Some(z.max(0.0))
}

/// How many standard errors an interval of this level reaches to either side.
pub(super) fn normal_reach(level: f64) -> Option<f64> {
    if is_share(level) { normal_exceeded((1.0 - level) / 2.0) } else { None }
}

/// The same for Student's distribution with so many degrees of freedom, at least one.
pub(super) fn student_reach(level: f64, degrees: f64) -> Option<f64> {
    if !is_share(level) || degrees < 1.0 {
        return None;
    }
    let tail = (1.0 - level) / 2.0;
    let z = normal_exceeded(tail)?;
    if degrees >= 1000.0 {
        return Some(student_from_normal(z, degrees));
    }
    // The reach of Student's distribution is never less than that of the normal one. From there to
    // a bound that is surely beyond, halve; the tail falls all the way.
    let mut low = z;
    let mut high = 2.0 * z + 1.0;
    while student_tail(high, degrees) > tail {
        if high > 1e300 {
            return None;
        }
        low = high;
        high *= 2.0;
    }
    Some(halve(low, high, |t| student_tail(t, degrees) > tail))
}

/// Hill's expansion (Abramowitz and Stegun 26.7.5): for 1000 degrees and more the first term left
/// out is below 1e-11 of the value for any level up to 1 - 1e-9.
fn student_from_normal(z: f64, degrees: f64) -> f64 {
    let z2 = z * z;
    let g1 = (z2 + 1.0) / 4.0;
    let g2 = ((5.0 * z2 + 16.0) * z2 + 3.0) / 96.0;
    let g3 = (((3.0 * z2 + 19.0) * z2 + 17.0) * z2 - 15.0) / 384.0;
    let g4 = ((((79.0 * z2 + 776.0) * z2 + 1482.0) * z2 - 1920.0) * z2 - 945.0) / 92_160.0;
    z * (1.0 + (g1 + (g2 + (g3 + g4 / degrees) / degrees) / degrees) / degrees)
}

/// The probability that Student's variable exceeds `t`, for `t` not below 0.
fn student_tail(t: f64, degrees: f64) -> f64 {
    let square = t * t;
    let x = degrees / (degrees + square);
    let (a, b) = (degrees / 2.0, 0.5);
    let log_front =
        libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b) - a * libm::log1p(square / degrees)
            + b * libm::log(square / (degrees + square));
    let front = libm::exp(log_front);
    // The fraction converges fast on this side of the mean only.
    if x < (a + 1.0) / (a + b + 2.0) {
        0.5 * front * beta_fraction(a, b, x) / a
    } else {
        0.5 - 0.5 * front * beta_fraction(b, a, square / (degrees + square)) / b
    }
}

/// The continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's method.
#[expect(clippy::many_single_char_names, reason = "these are the names in the literature")]
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away_from_zero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    for m in 1..10_000_u32 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / away_from_zero(1.0 + even * d);
        c = away_from_zero(1.0 + even / c);
        value *= c * d;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / away_from_zero(1.0 + odd * d);
        c = away_from_zero(1.0 + odd / c);
        value *= c * d;
        if (c * d - 1.0).abs() < 1e-16 {
            break;
        }
    }
    value
}

/// The place between two values where something that holds at `low` ceases to hold.
pub(super) fn halve(mut low: f64, mut high: f64, holds: impl Fn(f64) -> bool) -> f64 {
    // A double has 52 bits and 11 of exponent: neighbours are reached long before 2200 halvings,
    // and usually before 64.
    for _ in 0..2200 {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            break;
        }
        if holds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low + (high - low) / 2.0
}

/// The probability that a fair coin thrown `successes + failures` times shows heads at most
/// `successes` times, where `successes` are not the more frequent ones.
pub(super) fn fair_lower_tail(successes: u64, failures: u64) -> f64 {
    let throws = u128::from(successes) + u128::from(failures);
    if throws > 1 << 40 {
        // Summing takes the square root of the throws. A fair binomial has no skew, so that the
        // normal approximation with its correction is good to about z⁴/12n by now.
        let apart = number(failures.saturating_sub(successes)) - 1.0;
        return 0.5 * libm::erfc(apart / (2.0 * number(throws)).sqrt());
    }
    let (k, n) = (number(successes), number(throws));
    let mut term = fair_probability(k, n);
    let mut sum = 0.0;
    let mut i = k;
    while term > sum * 1e-18 {
        sum += term;
        term *= i / (n - i + 1.0);
        i -= 1.0;
    }
    sum.min(1.0)
}

/// The probability of exactly `k` heads in `n` throws, by the saddle point (Loader 2000): logarithms
/// of factorials would lose eight digits for a million throws.
fn fair_probability(k: f64, n: f64) -> f64 {
    if k == 0.0 || n - k == 0.0 {
        return libm::exp(-n * LN_2);
    }
    let rest = n - k;
    let stirling = stirling_error(n) - stirling_error(k) - stirling_error(rest);
    let deviance = deviance(k, n / 2.0) + deviance(rest, n / 2.0);
    (n / (2.0 * PI * k * rest)).sqrt() * libm::exp(stirling - deviance)
}

/// What Stirling's formula is short of the logarithm of `n!`.
fn stirling_error(n: f64) -> f64 {
    if n < 16.0 {
        return libm::lgamma(n + 1.0) - (n + 0.5) * libm::log(n) + n - 0.5 * libm::log(2.0 * PI);
    }
    let n2 = n * n;
    (1.0 / 12.0
        - (1.0 / 360.0 - (1.0 / 1260.0 - (1.0 / 1680.0 - 1.0 / (1188.0 * n2)) / n2) / n2) / n2)
        / n
}

/// `x ln(x/mean) + mean - x`, without the cancellation when both are near.
fn deviance(x: f64, mean: f64) -> f64 {
    if (x - mean).abs() >= 0.1 * (x + mean) {
        return x * libm::log(x / mean) + mean - x;
    }
    let v = (x - mean) / (x + mean);
    let mut sum = (x - mean) * v;
    let mut power = 2.0 * x * v;
    for j in 1..1000_u32 {
        power *= v * v;
        let next = sum + power / f64::from(2 * j + 1);
        if next.total_cmp(&sum).is_eq() {
            break;
        }
        sum = next;
    }
    sum
}
