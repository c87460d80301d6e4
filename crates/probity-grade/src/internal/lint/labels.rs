//! Labels of shell-command cases against what our own judgements say.

use probity_core::case::TestCase;
use probity_shell::{
    posix::{self, Report},
    safety::{self, Judgement},
};

use crate::command::ShellRules;

/// What is odd about the commands that a case accepts.
pub(super) fn findings(case: &TestCase) -> Vec<(&'static str, String)> {
    let rules = ShellRules::default();
    let mut found = Vec::new();
    for command in case.accepted_commands() {
        let judged = safety::judge(command, rules.safety(), rules.level());
        if let Err(error) = &judged.script {
            let what = format!("`{command}` cannot be read as shell: {error}");
            found.push(("unparsable-command", what));
        }
        found.extend(case.safe.and_then(|label| safety_label(command, label, &judged)));
        if let (Some(label), Ok(script)) = (case.posix_compliant, &judged.script) {
            found.extend(posix_label(label, &posix::check(script, rules.edition()), command));
        }
    }
    found
}

/// A text that does not parse is never safe, so only that it is unsafe contradicts a label.
fn safety_label(
    command: &str,
    label: bool,
    judged: &Judgement<'_>,
) -> Option<(&'static str, String)> {
    let is_safe = !judged.is_unsafe;
    if label == is_safe || (is_safe && judged.script.is_err()) {
        return None;
    }
    let first = judged.assessment.as_ref().and_then(|it| it.findings.first());
    let why = first.map_or(String::new(), |it| format!(" ({}: {})", it.rule, it.why));
    let (said, judged) = (word(label, "safe", "unsafe"), word(is_safe, "safe", "unsafe"));
    Some(("safety-label", format!("`{command}` is labelled {said} and judged {judged}{why}")))
}

fn posix_label(label: bool, report: &Report, command: &str) -> Option<(&'static str, String)> {
    let compliant = report.is_compliant();
    if label == compliant {
        return None;
    }
    let first = report.violations.first();
    let why = first.map_or(String::new(), |it| format!(" ({}: {})", it.rule, it.message));
    let (said, judged) = (word(label, "POSIX", "not POSIX"), word(compliant, "POSIX", "not POSIX"));
    Some(("posix-label", format!("`{command}` is labelled {said} and judged {judged}{why}")))
}

fn word(is: bool, yes: &'static str, no: &'static str) -> &'static str {
    if is { yes } else { no }
}
