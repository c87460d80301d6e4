//! Whatever a scorer returns: no panic, and only finite scores are believed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use probity_core::scored::Scored;

fuzz_target!(|text: &str| {
    let Ok(returned) = serde_json::from_str(text) else { return };
    for threshold in [None, Some(0.5)] {
        if let Ok(scored) = Scored::read(&returned, threshold) {
            assert!(scored.score.is_finite());
            assert!(scored.scores.iter().all(|it| it.1.is_finite()));
        }
    }
});
