use proptest::prelude::*;

use super::*;

fn report(text: &str, edition: Edition) -> Report {
    let script = Script::parse(text).unwrap_or_else(|error| panic!("`{text}`: {error}"));
    check(&script, edition)
}

fn found(text: &str) -> Vec<&'static str> {
    report(text, Edition::Posix2024).violations.iter().map(|it| it.rule).collect()
}

#[test]
fn every_rule_has_an_example_and_a_near_miss() {
    for rule in Rule::ALL {
        let text = rule.text();
        let edition = text.edition.as_deref().unwrap_or("2024").parse().expect("an edition");
        if let Some(example) = &text.example {
            let rules: Vec<_> = report(example, edition).violations.iter().map(|it| it.rule).collect();
            assert!(!rules.is_empty(), "`{example}` breaks nothing");
            assert!(rules.iter().all(|it| *it == rule.id()), "`{example}`: {rules:?}");
        }
        let near = report(&text.compliant, edition);
        assert!(near.is_compliant(), "`{}`: {:?}", text.compliant, near.violations);
    }
}
