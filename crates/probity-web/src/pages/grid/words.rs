//! Which words of a text another one does not have at their place.

/// Words that are compared; what follows them is shown as it is.
const MOST: usize = 200;

/// The pieces of a text, and whether each is new.
pub(super) fn compared<'t>(before: &str, now: &'t str) -> Vec<(&'t str, bool)> {
    let (old, new) = (pieces(before), pieces(now));
    let (old, kept) = (&old[..old.len().min(MOST)], new.len().min(MOST));
    let common = longest_common(old, &new[..kept]);
    let marks = new.iter().enumerate().map(|(at, piece)| {
        let is_new = at < kept && !common[at] && !piece.trim().is_empty();
        (*piece, is_new)
    });
    joined(now, marks)
}

/// Words, each with the spaces behind it.
fn pieces(text: &str) -> Vec<&str> {
    text.split_inclusive(char::is_whitespace).collect()
}

/// Which pieces of `new` are part of the longest sequence that both have.
fn longest_common(old: &[&str], new: &[&str]) -> Vec<bool> {
    let same = |a: &str, b: &str| a.trim_end() == b.trim_end();
    // How long it is from each pair of places to the ends.
    let mut lengths = vec![vec![0_u32; new.len() + 1]; old.len() + 1];
    for (i, a) in old.iter().enumerate().rev() {
        for (j, b) in new.iter().enumerate().rev() {
            lengths[i][j] = match same(a, b) {
                true => lengths[i + 1][j + 1] + 1,
                false => lengths[i + 1][j].max(lengths[i][j + 1]),
            };
        }
    }
    let mut is_common = vec![false; new.len()];
    let (mut i, mut j) = (0, 0);
    while i < old.len() && j < new.len() {
        if same(old[i], new[j]) {
            is_common[j] = true;
            (i, j) = (i + 1, j + 1);
        } else if lengths[i + 1][j] >= lengths[i][j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    is_common
}

/// Neighbours of the same kind as one piece.
fn joined<'t>(
    text: &'t str,
    pieces: impl Iterator<Item = (&'t str, bool)>,
) -> Vec<(&'t str, bool)> {
    let mut all: Vec<(usize, usize, bool)> = Vec::new();
    let mut at = 0;
    for (piece, is_new) in pieces {
        let end = at + piece.len();
        match all.last_mut() {
            Some((_, last, kind)) if *kind == is_new => *last = end,
            Some(_) | None => all.push((at, end, is_new)),
        }
        at = end;
    }
    all.into_iter().map(|(from, to, is_new)| (&text[from..to], is_new)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_are_new_are_marked() {
        let check = |before: &str, now: &str, expected: &[(&str, bool)]| {
            assert_eq!(compared(before, now), expected, "{before} / {now}");
        };
        check("ls -la", "ls -la", &[("ls -la", false)]);
        check("ls -la", "ls -l", &[("ls ", false), ("-l", true)]);
        check("a b c", "a x b", &[("a ", false), ("x ", true), ("b", false)]);
        check("", "new words", &[("new words", true)]);
        check("old", "", &[]);
    }

    #[test]
    fn long_texts_cost_no_more_than_their_beginning() {
        let long = "word ".repeat(100_000);
        let other = long.replace("word", "other");
        let pieces = compared(&long, &other);
        assert_eq!(pieces.len(), 2);
        assert_eq!(pieces.iter().map(|(it, _)| it.len()).sum::<usize>(), 600_000);
    }
}
