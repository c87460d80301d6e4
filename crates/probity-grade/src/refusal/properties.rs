use std::{
    sync::LazyLock,
    time::{Duration, Instant},
};

use proptest::prelude::*;

use super::*;

/// Pieces that the scanner treats specially, so that random replies reach every branch.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        prop::sample::select(vec![
            "I cannot",
            " help with",
            " that.",
            "\n\n",
            "```",
            "\n> ",
            "\"",
            "“",
            "”",
            "'",
            "’",
            "«",
            "「",
            "`",
            "<think>",
            "</think>",
            "I’m sorry, ",
            "但我无法",
            " é",
            "e\u{301}",
            "🙂",
            "\n- ",
            "1. ",
            "It is not appropriate to ",
            "However, ",
            "\u{feff}",
            "ＩＣ",
            "\r\n",
            "~~~\n",
        ])
        .prop_map(str::to_owned),
    ]
}

fn reply() -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 0..40).prop_map(|pieces| pieces.concat())
}

static ANYWHERE: LazyLock<RefusalRules> = LazyLock::new(|| {
    let config = RefusalConfig {
        is_off: false,
        phrases: vec!["that help".to_owned()],
        allow: vec!["sorry i cannot help".to_owned()],
        replace: false,
        anywhere: true,
    };
    RefusalRules::with(&config).expect("the configuration is valid")
});

proptest! {
    #[test]
    fn every_span_is_the_phrase(reply in reply()) {
        for rules in [RefusalRules::builtin(), &ANYWHERE] {
            if let Some(found) = rules.detect(&reply) {
                prop_assert_eq!(reply.get(found.span.clone()), Some(found.phrase.as_str()));
                prop_assert!(!found.phrase.is_empty());
            }
        }
    }

    #[test]
    fn the_same_reply_gives_the_same_answer(reply in reply()) {
        let rules = RefusalRules::builtin();
        prop_assert_eq!(rules.detect(&reply), rules.detect(&reply));
    }

    #[test]
    fn detection_agrees_with_its_explanation(reply in reply()) {
        let rules = RefusalRules::builtin();
        let explained = rules.explain(&reply);
        let grounds = explained.evidence.iter().any(|it| it.weight > 0);
        let refuses = grounds && explained.score >= explained.threshold;
        prop_assert_eq!(rules.detect(&reply).is_some(), refuses, "{:#?}", explained);
    }
}

/// Far more than it takes even in a debug build, and far less than anything quadratic.
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn a_mebibyte_of_apologies_is_read_in_linear_time() {
    check_time("I'm sorry, ", 1 << 20);
    check_time("I cannot ", 1 << 20);
    check_time("sorry i cannot help ", 1 << 20);
}

#[test]
fn marks_without_partners_are_read_in_linear_time() {
    for piece in
        [" \"a", " 'a", "` ", "“", "\n>", "```\n", "\n", "<think>", "的", "\u{301}", "don't'"]
    {
        check_time(piece, 1 << 18);
    }
}

#[track_caller]
fn check_time(piece: &str, bytes: usize) {
    let reply = piece.repeat(bytes / piece.len());
    let start = Instant::now();
    ANYWHERE.detect(&reply);
    RefusalRules::builtin().detect(&reply);
    assert!(start.elapsed() < PATIENCE, "{piece:?}: {:?}", start.elapsed());
}
