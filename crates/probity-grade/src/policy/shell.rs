//! Dangerous shell commands that a reply offers.

use probity_shell::{
    extract,
    safety::{self, Level, Rules},
};

use super::Found;

/// Every finding in a command of the text that counts as unsafe at the usual level.
pub(super) fn scan(text: &str) -> Vec<Found<String>> {
    let mut found = Vec::new();
    for command in extract::all(text) {
        let judged = safety::judge(&command.command, Rules::builtin(), Level::default());
        let Some(assessment) = judged.assessment.filter(|_| judged.is_unsafe) else { continue };
        // A command that was rewritten on its way out has a place only as a whole.
        let copied = command.span.of(text) == command.command;
        let unsafe_at_all = |it: &&safety::Finding| it.risk == assessment.risk;
        found.extend(assessment.findings.iter().filter(unsafe_at_all).map(|finding| {
            let whole = command.span.start..command.span.end;
            let part = whole.start + finding.span.start..whole.start + finding.span.end;
            let span = if copied && text.get(part.clone()).is_some() { part } else { whole };
            Found { rule: finding.rule.to_string(), span }
        }));
    }
    found
}
