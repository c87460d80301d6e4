//! Edit distance with a bound, so that the work is bounded too.

/// Whether at most `edits` insertions, deletions and replacements of characters
/// turn one text into the other.
///
/// Only a band of the usual table is filled, `2 * edits + 1` wide: the time is
/// linear in the texts.
pub(crate) fn within(a: &str, b: &str, edits: usize) -> bool {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > edits {
        return false;
    }
    let over = edits + 1;
    // `row[j]` is the distance of the first `i` characters of `a` to the first `j` of `b`.
    let mut row: Vec<usize> = (0..=b.len()).map(|j| j.min(over)).collect();
    for (i, ca) in a.iter().enumerate() {
        let from = i.saturating_sub(edits);
        let to = (i + edits + 1).min(b.len());
        let mut diagonal = row[from];
        row[from] = if from == 0 { (i + 1).min(over) } else { over };
        let mut best = row[from];
        for j in from..to {
            let above = if j + 1 > i + edits { over } else { row[j + 1] };
            let replaced = diagonal + usize::from(*ca != b[j]);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(above + 1).min(row[j] + 1).min(over);
            best = best.min(row[j + 1]);
        }
        if best > edits {
            return false;
        }
    }
    row[b.len()] <= edits
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn edits_are_counted() {
        assert!(within("kitten", "sitting", 3));
        assert!(!within("kitten", "sitting", 2));
        assert!(within("", "", 0));
        assert!(within("größe", "große", 1));
    }

    proptest! {
        #[test]
        fn the_band_agrees_with_the_whole_table(a in "[abc]{0,12}", b in "[abc]{0,12}", edits in 0usize..14) {
            prop_assert_eq!(within(&a, &b, edits), strsim::levenshtein(&a, &b) <= edits);
        }
    }
}
