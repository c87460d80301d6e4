//! Values of worlds as they are written: modes, ages, sizes.

/// `0644`: octal digits.
pub(super) fn mode(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|it| matches!(it, b'0'..=b'7'));
    digits.then(|| u32::from_str_radix(text, 8).ok()).flatten().filter(|it| *it <= 0o7777)
}

/// `90s`, `5m`, `36h`, `3d`, `2w`, in seconds; behind a minus it lies ahead.
pub(super) fn age(text: &str) -> Option<i64> {
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text),
    };
    let digits = text.trim_end_matches(|it: char| it.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        "w" => 604_800,
        _ => return None,
    };
    digits.parse::<i64>().ok()?.checked_mul(unit * sign)
}

/// `10`, `10k`, `5M`, `1G`, in bytes.
pub(super) fn size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|it: char| it.is_ascii_alphabetic());
    let unit: u64 = match &text[digits.len()..] {
        "" => 1,
        "k" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}
