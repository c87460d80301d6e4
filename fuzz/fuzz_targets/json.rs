//! Any text at any level: no panic, and what was found is JSON that strict parsing accepts.
#![no_main]

use libfuzzer_sys::fuzz_target;
use probity_core::{criteria::JsonLevel, json::{Limits, parse}};
use probity_grade::json::{Wanted, extract};

fuzz_target!(|text: &str| {
    let strict = parse(text, &Limits::default());
    for level in JsonLevel::ALL {
        for wanted in [Wanted::Any, Wanted::Object, Wanted::Array] {
            let found = extract(text, level, wanted);
            assert_eq!(found.error.is_none(), strict.is_ok());
            if let (Some(value), Ok(parsed)) = (&found.value, &strict) {
                assert_eq!(value, &parsed.value);
                assert!(found.steps.is_empty());
            }
            if let Some(span) = found.span {
                assert!(text.get(span).is_some());
            }
            if let Some(value) = found.value {
                assert!(parse(&value.to_string(), &Limits::default()).is_ok());
            }
        }
    }
});
