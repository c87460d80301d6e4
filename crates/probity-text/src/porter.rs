//! The Porter stemmer with the extensions of NLTK, which rouge-score uses.
//!
//! M. F. Porter, "An algorithm for suffix stripping", Program 14 (1980). Words are in lower case; letters that are
//! not of ASCII are consonants.

/// Forms that no rule leads to.
const IRREGULAR: [(&str, &str); 16] = [
    ("sky", "sky"),
    ("skies", "sky"),
    ("dying", "die"),
    ("lying", "lie"),
    ("tying", "tie"),
    ("news", "news"),
    ("innings", "inning"),
    ("inning", "inning"),
    ("outings", "outing"),
    ("outing", "outing"),
    ("cannings", "canning"),
    ("canning", "canning"),
    ("howe", "howe"),
    ("proceed", "proceed"),
    ("exceed", "exceed"),
    ("succeed", "succeed"),
];

/// The Porter stem of a word in lower case, with the extensions of NLTK.
pub fn stem(word: &str) -> String {
    if let Some((_, stem)) = IRREGULAR.iter().find(|it| it.0 == word) {
        return (*stem).to_owned();
    }
    if word.chars().nth(2).is_none() {
        return word.to_owned();
    }
    let mut word = word.to_owned();
    for step in [plural, past, final_y, double_suffix, adjective, suffix, final_e, final_ll] {
        word = step(word);
    }
    word
}

/// An ending, and what takes its place.
type Ending = (&'static str, &'static str);

/// Replaces the first ending that fits, if what is left has a measure above `least`.
fn replace(word: String, endings: &[Ending], least: usize) -> String {
    for (ending, new) in endings {
        if let Some(left) = word.strip_suffix(ending) {
            return if measure(left) > least { left.to_owned() + new } else { word };
        }
    }
    word
}

fn plural(word: String) -> String {
    match word.strip_suffix('s') {
        Some(left) if left.ends_with('s') => word,
        Some(left) => match left.strip_suffix("ie") {
            Some(before) if is_one_letter(before) => left.to_owned(),
            Some(before) => before.to_owned() + "i",
            None => match left.strip_suffix("sse") {
                Some(before) => before.to_owned() + "ss",
                None => left.to_owned(),
            },
        },
        None => word,
    }
}

fn past(word: String) -> String {
    if let Some(left) = word.strip_suffix("ied") {
        return left.to_owned() + if is_one_letter(left) { "ie" } else { "i" };
    }
    if let Some(left) = word.strip_suffix("eed") {
        return if measure(left) > 0 { left.to_owned() + "ee" } else { word };
    }
    let left = word.strip_suffix("ed").or_else(|| word.strip_suffix("ing"));
    let Some(left) = left.filter(|it| consonants(it).any(|is_consonant| !is_consonant)) else {
        return word;
    };
    let restored = ["at", "bl", "iz"].iter().any(|it| left.ends_with(it));
    if restored {
        return left.to_owned() + "e";
    }
    if ends_in_double_consonant(left) {
        let mut left = left.to_owned();
        if !left.ends_with(['l', 's', 'z']) {
            left.pop();
        }
        return left;
    }
    let short = measure(left) == 1 && ends_short(left);
    left.to_owned() + if short { "e" } else { "" }
}

fn final_y(word: String) -> String {
    match word.strip_suffix('y') {
        Some(left) if !is_one_letter(left) && consonants(left).last() == Some(true) => {
            left.to_owned() + "i"
        }
        _ => word,
    }
}

fn double_suffix(mut word: String) -> String {
    const ENDINGS: [Ending; 21] = [
        ("ational", "ate"),
        ("tional", "tion"),
        ("enci", "ence"),
        ("anci", "ance"),
        ("izer", "ize"),
        ("bli", "ble"),
        ("alli", "al"),
        ("entli", "ent"),
        ("eli", "e"),
        ("ousli", "ous"),
        ("ization", "ize"),
        ("ation", "ate"),
        ("ator", "ate"),
        ("alism", "al"),
        ("iveness", "ive"),
        ("fulness", "ful"),
        ("ousness", "ous"),
        ("aliti", "al"),
        ("iviti", "ive"),
        ("biliti", "ble"),
        ("fulli", "ful"),
    ];
    while word.strip_suffix("alli").is_some_and(|left| measure(left) > 0) {
        word.truncate(word.len() - "li".len());
    }
    // The `l` of `logi` belongs to what is left, so that short words like `geology` have a stem.
    if word.ends_with("logi") {
        let left = &word[..word.len() - "ogi".len()];
        let cut = usize::from(measure(left) > 0);
        word.truncate(word.len() - cut);
        return word;
    }
    replace(word, &ENDINGS, 0)
}

fn adjective(word: String) -> String {
    const ENDINGS: [Ending; 7] = [
        ("icate", "ic"),
        ("ative", ""),
        ("alize", "al"),
        ("iciti", "ic"),
        ("ical", "ic"),
        ("ful", ""),
        ("ness", ""),
    ];
    replace(word, &ENDINGS, 0)
}

fn suffix(word: String) -> String {
    const ENDINGS: [Ending; 18] = [
        ("al", ""),
        ("ance", ""),
        ("ence", ""),
        ("er", ""),
        ("ic", ""),
        ("able", ""),
        ("ible", ""),
        ("ant", ""),
        ("ement", ""),
        ("ment", ""),
        ("ent", ""),
        ("ou", ""),
        ("ism", ""),
        ("ate", ""),
        ("iti", ""),
        ("ous", ""),
        ("ive", ""),
        ("ize", ""),
    ];
    match word.strip_suffix("ion") {
        Some(left) if measure(left) > 1 && left.ends_with(['s', 't']) => left.to_owned(),
        Some(_) => word,
        None => replace(word, &ENDINGS, 1),
    }
}

fn final_e(word: String) -> String {
    match word.strip_suffix('e') {
        Some(left) if measure(left) > 1 || (measure(left) == 1 && !ends_short(left)) => {
            left.to_owned()
        }
        _ => word,
    }
}

fn final_ll(mut word: String) -> String {
    if word.ends_with("ll") && measure(&word[..word.len() - 1]) > 1 {
        word.pop();
    }
    word
}

fn is_one_letter(word: &str) -> bool {
    word.chars().nth(1).is_none() && !word.is_empty()
}

/// For each letter, whether it is a consonant: `y` is one at the start and after a vowel.
fn consonants(word: &str) -> impl Iterator<Item = bool> {
    word.chars().scan(false, |before, letter| {
        *before = match letter {
            'a' | 'e' | 'i' | 'o' | 'u' => false,
            'y' => !*before,
            _ => true,
        };
        Some(*before)
    })
}

/// How often vowels are followed by consonants.
fn measure(word: &str) -> usize {
    let after = consonants(word).skip(1);
    consonants(word).zip(after).filter(|pair| *pair == (false, true)).count()
}

fn ends_in_double_consonant(word: &str) -> bool {
    let mut from_end = word.chars().rev();
    match (from_end.next(), from_end.next()) {
        (Some(last), Some(before)) if last == before => consonants(word).last() == Some(true),
        (_, _) => false,
    }
}

/// Whether the word ends in consonant, vowel, consonant, the last of them not `w`, `x` or `y`.
fn ends_short(word: &str) -> bool {
    let kinds: Vec<bool> = consonants(word).collect();
    match kinds.as_slice() {
        [false, true] => true,
        [.., true, false, true] => !word.ends_with(['w', 'x', 'y']),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_go() {
        for (word, expected) in [
            ("caresses", "caress"),
            ("ponies", "poni"),
            ("dies", "die"),
            ("agreed", "agre"),
            ("plastered", "plaster"),
            ("hopping", "hop"),
            ("filing", "file"),
            ("happy", "happi"),
            ("enjoy", "enjoy"),
            ("relational", "relat"),
            ("geology", "geolog"),
            ("adoption", "adopt"),
            ("controlling", "control"),
            ("skies", "sky"),
            ("is", "is"),
        ] {
            assert_eq!(stem(word), expected, "{word}");
        }
    }
}
