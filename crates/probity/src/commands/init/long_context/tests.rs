use proptest::prelude::*;

use super::*;

fn source() -> Source {
    toml::from_str(include_str!("../../../../suites/long-context/needles.toml")).unwrap()
}

fn longest(filler: &[Filler]) -> usize {
    filler.iter().map(|it| length(&it.text)).max().unwrap()
}

/// The text between lead and question.
fn haystack<'p>(prompt: &'p str, needle: &Needle) -> &'p str {
    let text = prompt.strip_prefix(LEAD).unwrap();
    text.strip_suffix(&format!("{BREAK}Question: {}", needle.question)).unwrap()
}

#[test]
fn sizes_are_read_and_written_the_short_way() {
    for (text, expected) in [
        ("32k", "32k"),
        ("32000", "32k"),
        ("32K", "32k"),
        ("1m", "1m"),
        ("1000k", "1m"),
        ("100000", "100k"),
        ("12345", "12345"),
        ("2k", "2k"),
        ("4M", "4m"),
    ] {
        assert_eq!(text.parse::<Size>().unwrap().to_string(), expected, "{text}");
    }
}

#[test]
fn what_is_no_sensible_size_is_refused() {
    for text in [
        "",
        "k",
        "0",
        "1999",
        "5m",
        "-3k",
        "+3k",
        "1.5m",
        "32 k",
        "32kb",
        "é",
        "99999999999999999999k",
    ] {
        assert!(text.parse::<Size>().is_err(), "{text}");
    }
    assert_eq!(
        InvalidSize.to_string(),
        "a size is a number of characters from 2k to 4m, such as 32k, 100000 or 1m"
    );
}

/// A change of these bytes makes results incomparable with those of earlier versions.
#[test]
fn the_prompts_are_the_same_for_ever() {
    let digest = |size: Size, seed| {
        let source = source();
        let prompts = source.needles.iter().map(|it| prompt(&source, it, size, seed));
        blake3::hash(prompts.collect::<String>().as_bytes()).to_hex()[..16].to_owned()
    };
    insta::assert_snapshot!(digest(Size::LEAST, 42), @"ed3d271ef9b4a183");
    insta::assert_snapshot!(digest(Size::USUAL, 42), @"dee801f4c3063387");
    insta::assert_snapshot!(digest(Size::USUAL, 43), @"abcca877b8677309");
}

#[test]
fn the_first_and_the_last_place_are_where_they_say() {
    let source = source();
    for needle in &source.needles {
        let prompt = prompt(&source, needle, Size::USUAL, 7);
        let text = haystack(&prompt, needle);
        assert_eq!(text.starts_with(&needle.sentence), needle.depth <= 0.0, "{}", needle.id);
        assert_eq!(text.ends_with(&needle.sentence), needle.depth >= 1.0, "{}", needle.id);
    }
}

#[test]
fn filler_comes_again_only_after_all_others_and_never_twice_in_a_row() {
    let filler = source().filler;
    for seed in 0..50 {
        let paragraphs = fill(&filler, 40_000, &mut Draws::new(seed, "x"));
        assert!(paragraphs.windows(2).all(|pair| pair[0] != pair[1]));
        let mut first = paragraphs[..filler.len()].to_vec();
        first.sort();
        first.dedup();
        assert_eq!(first.len(), filler.len());
    }
}

#[test]
fn answers_stand_only_where_they_are_hidden() {
    let Source { filler, needles, .. } = source();
    for needle in &needles {
        let other = filler.iter().map(|it| &it.text).chain(&needle.distractors);
        for text in other {
            assert!(!text.contains(&needle.answer), "{}: {text}", needle.id);
        }
        assert!(needle.sentence.contains(&needle.answer), "{}", needle.id);
        assert!((0.0..=1.0).contains(&needle.depth), "{}", needle.id);
        for wrong in &needle.wrong {
            assert!(needle.distractors.iter().any(|it| it.contains(wrong)), "{}", needle.id);
            assert!(!needle.sentence.contains(wrong), "{}: {wrong}", needle.id);
        }
    }
}

#[test]
fn answers_are_found_as_words_and_numbers_of_their_own() {
    let matches = |criterion: &Value, reply: &str| {
        regex::Regex::new(criterion["value"].as_str().unwrap()).unwrap().is_match(reply)
    };
    let number = right("218");
    for reply in ["218", "It costs 218 crowns.", "218cr"] {
        assert!(matches(&number, reply), "{reply}");
    }
    for reply in ["2180", "1218", "21 8"] {
        assert!(!matches(&number, reply), "{reply}");
    }
    assert_eq!(right("saffron"), json!({"type": "icontains", "value": "saffron"}));
    let word = wrong("slate");
    assert_eq!(word["type"], "not-regex");
    assert!(matches(&word, "Slate, I think.") && !matches(&word, "I translated it."));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn prompts_are_as_long_as_asked_and_hide_what_they_should(
        size in Size::LEAST.0..80_000, seed: u64, at in 0usize..24,
    ) {
        let source = source();
        let needle = &source.needles[at];
        let prompt = prompt(&source, needle, Size(size), seed);
        let paragraph = longest(&source.filler) + length(BREAK);
        prop_assert!(length(&prompt) <= size && length(&prompt) + paragraph > size);

        let text = haystack(&prompt, needle);
        prop_assert_eq!(text.matches(&needle.sentence).count(), 1);
        for distractor in &needle.distractors {
            prop_assert_eq!(text.matches(distractor).count(), 1);
            let together = format!("{distractor} {}", needle.sentence);
            prop_assert!(!text.contains(&together));
        }

        let before = length(&text[..text.find(&needle.sentence).unwrap()]);
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let off = before as f64 - needle.depth * (length(text) - length(&needle.sentence)) as f64;
        // A place may be taken by a distractor; then it is the next one.
        let hidden: usize = needle.distractors.iter().map(|it| length(it) + 1).sum();
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let tolerance = (paragraph + hidden) as f64;
        prop_assert!(off.abs() <= tolerance, "{} off by {}", needle.id, off);
    }

    #[test]
    fn the_same_seed_gives_the_same_bytes(size in Size::LEAST.0..10_000, seed: u64) {
        let (source, again) = (source(), source());
        prop_assert_eq!(
            dataset(&source, Size(size), seed),
            dataset(&again, Size(size), seed)
        );
        prop_assert_ne!(
            dataset(&source, Size(size), seed),
            dataset(&source, Size(size), seed.wrapping_add(1))
        );
    }
}
