//! Any text: no panic, and the phrase stands where the span says.
#![no_main]

use libfuzzer_sys::fuzz_target;
use probity_grade::{policy::Policies, refusal::RefusalRules};

fuzz_target!(|text: &str| {
    if let Some(found) = RefusalRules::builtin().detect(text) {
        assert_eq!(text.get(found.span), Some(found.phrase.as_str()));
    }
    for hit in Policies::secrets().scan(text) {
        assert!(text.get(hit.span).is_some());
    }
});
