//! Any reply of a judge or a router: no panic, and only whole points from 1 to 5 are believed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use probity_core::case::RubricCriterion;
use probity_grade::internal::{judge::Question, routing::says_yes};

fuzz_target!(|text: &str| {
    let criterion = |name: &str| RubricCriterion {
        name: name.to_owned(),
        weight: 0.5,
        description: "x".to_owned(),
    };
    let criteria = [criterion("right"), criterion("short")];
    for answers in [&["one"][..], &["one", "two"]] {
        let question = Question { task: text, criteria: &criteria, answers };
        if let Ok(judgement) = question.read(text) {
            assert_eq!(judgement.criteria.len(), criteria.len());
            let points = judgement.criteria.iter().flat_map(|it| &it.points);
            assert!(points.into_iter().all(|it| (1..=5).contains(it)));
        }
        let marker = question.marker(0);
        assert!(!text.contains(&marker));
    }
    let _ = says_yes(text);
});
