//! Names of runs: they sort by time, and have a short form.

use jiff::Timestamp;

/// Letters that are not mistaken for one another.
const LETTERS: &[u8; 32] = b"23456789abcdefghijkmnpqrstuvwxyz";
/// Letters of the short form: a billion names, and each store checks its own.
const SHORT: usize = 6;

/// A new name from the time and a random number, such as `20261115-101502-k3f9x2`.
pub fn new_run_id(now_ms: i64, random: u64) -> String {
    let time = Timestamp::from_millisecond(now_ms).unwrap_or_default();
    let time = time.strftime("%Y%m%d-%H%M%S");
    let letter = |at: usize| char::from(LETTERS[usize::from(random.to_le_bytes()[at] & 31)]);
    let letters = (0..SHORT).map(letter);
    format!("{time}-{}", letters.collect::<String>())
}

/// The part of a name that is enough for people.
pub(crate) fn short(run_id: &str) -> &str {
    run_id.rsplit('-').next().unwrap_or(run_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_by_time() {
        let early = new_run_id(1_794_736_800_000, u64::MAX);
        let late = new_run_id(1_794_736_801_000, 0);
        assert_eq!(early, "20261115-100000-zzzzzz");
        assert_eq!(late, "20261115-100001-222222");
        assert!(early < late);
        assert_eq!(short(&late), "222222");
    }
}
