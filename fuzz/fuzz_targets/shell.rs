//! Any text as a command and as a reply: no panic, spans inside the text, and a command is equal to itself.
#![no_main]

use libfuzzer_sys::fuzz_target;
use probity_shell::{equivalence::{Verdict, self}, extract, posix, safety::{Level, Rules, self}};

fuzz_target!(|text: &str| {
    for found in extract::all(text) {
        assert!(text.get(found.span.start..found.span.end).is_some());
    }
    let judged = safety::judge(text, Rules::builtin(), Level::default());
    for finding in judged.assessment.iter().flat_map(|it| &it.findings) {
        assert!(text.get(finding.span.start..finding.span.end).is_some(), "{finding:?}");
    }
    let Ok(script) = judged.script else { return };
    for violation in posix::check(&script, posix::Edition::default()).violations {
        assert!(text.get(violation.span.start..violation.span.end).is_some(), "{violation:?}");
    }
    if !script.is_empty() {
        assert_eq!(equivalence::compare(&script, &script).verdict, Verdict::Equal);
    }
});
