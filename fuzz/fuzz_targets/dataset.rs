//! Any bytes in any format: no panic, and every problem has a place that can be shown.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use probity_load::dataset::{Format, Item, read_bytes};

fuzz_target!(|bytes: &[u8]| {
    for format in [Format::Toml, Format::Jsonl, Format::Json, Format::Yaml, Format::Csv] {
        let mut errors = 0;
        let summary = read_bytes(Path::new("fuzz"), format, bytes, &|_| Vec::new(), &mut |item| {
            if let Item::Problem(problem) = item {
                errors += 1;
                if let Some(place) = problem.place {
                    assert!(place.source.get(place.highlight).is_some());
                }
            }
        });
        assert_eq!(errors, summary.errors + summary.warnings);
    }
});
