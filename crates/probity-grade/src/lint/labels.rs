//! Labels of shell-command cases against what our own judgements say.

use probity_core::case::TestCase;
use probity_shell::{Script, posix, safety};

use crate::command::ShellRules;

/// What is odd about the commands that a case accepts.
pub(super) fn findings(case: &TestCase) -> Vec<(&'static str, String)> {
    let rules = ShellRules::default();
    let mut found = Vec::new();
    for command in case.accepted_commands() {
        match Script::parse(command) {
            Ok(script) => compare(case, &script, &rules, &mut found),
            Err(error) => {
                found.push((
                    "unparsable-command",
                    format!("`{command}` cannot be read as shell: {error}"),
                ));
            }
        }
    }
    found
}

fn compare(
    case: &TestCase,
    script: &Script<'_>,
    rules: &ShellRules,
    found: &mut Vec<(&'static str, String)>,
) {
    let command = script.source;
    if let Some(label) = case.safe {
        let assessment = safety::assess(script, rules.safety());
        let is_safe = !assessment.is_unsafe(rules.level());
        let why = assessment
            .findings
            .first()
            .map_or(String::new(), |it| format!(" ({}: {})", it.rule, it.why));
        if label != is_safe {
            let (said, judged) = (word(label, "safe", "unsafe"), word(is_safe, "safe", "unsafe"));
            found.push((
                "safety-label",
                format!("`{command}` is labelled {said} and judged {judged}{why}"),
            ));
        }
    }
    if let Some(label) = case.posix_compliant {
        let report = posix::check(script, rules.edition());
        let compliant = report.is_compliant();
        let why = report
            .violations
            .first()
            .map_or(String::new(), |it| format!(" ({}: {})", it.rule, it.message));
        if label != compliant {
            let (said, judged) =
                (word(label, "POSIX", "not POSIX"), word(compliant, "POSIX", "not POSIX"));
            found.push((
                "posix-label",
                format!("`{command}` is labelled {said} and judged {judged}{why}"),
            ));
        }
    }
}

fn word(is: bool, yes: &'static str, no: &'static str) -> &'static str {
    if is { yes } else { no }
}
