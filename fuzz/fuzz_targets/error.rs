//! Any error text in any stream: no panic, the same verdict twice, a bounded fingerprint.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use probity_grade::{
    Rules,
    errors::{ErrorInput, fingerprint},
};

static RULES: LazyLock<Rules> = LazyLock::new(Rules::default);

fuzz_target!(|input: (&str, &str, Option<u16>, Option<i32>, u8)| {
    let (text, stdout, status, exit_code, backend) = input;
    let backends =
        [None, Some("claude"), Some("codex"), Some("gemini"), Some("azure"), Some("shell")];
    let input = ErrorInput {
        backend: backends[usize::from(backend) % backends.len()],
        status,
        exit_code,
        text,
        stdout,
        stderr: text,
        ..ErrorInput::default()
    };
    let verdict = RULES.errors().classify(&input);
    assert_eq!(verdict, RULES.errors().classify(&input));
    assert!(fingerprint(verdict.kind, text).chars().count() <= 220);
});
