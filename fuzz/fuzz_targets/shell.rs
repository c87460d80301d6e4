//! Any text as a command and as a reply: no panic, spans inside the text, and a command is equal to itself.
#![no_main]

use libfuzzer_sys::fuzz_target;
use probity_shell::{
    Script,
    equivalence::{self, Verdict},
    extract, posix,
    safety::{self, Rules},
};

fuzz_target!(|text: &str| {
    for found in extract::all(text) {
        assert!(text.get(found.span.start..found.span.end).is_some());
    }
    let _ = safety::assess_broken(text, Rules::builtin());
    let Ok(script) = Script::parse(text) else { return };
    for finding in safety::assess(&script, Rules::builtin()).findings {
        assert!(text.get(finding.span.start..finding.span.end).is_some(), "{finding:?}");
    }
    for violation in posix::check(&script, posix::Edition::default()).violations {
        assert!(text.get(violation.span.start..violation.span.end).is_some(), "{violation:?}");
    }
    if !script.body.is_empty() {
        assert_eq!(equivalence::compare(&script, &script).verdict, Verdict::Equal);
    }
});
