//! Why a case came out as it did, in one sentence. Every report says it in these words.

use crate::{
    classification::{Class, Classification, Rule, Verdict},
    details::{CommandDetails, Criterion, Details, Equivalence, RefusalSource, Trouble},
    difference::Difference,
    evaluation::FailureReason,
    record::{CaseRecord, Source},
    score::Score,
};

/// Failed checks that are named; the record has them all.
const NAMED: usize = 3;

impl CaseRecord {
    /// Why the case came out as it did.
    pub fn why(&self) -> String {
        let expected = self.case.criteria.expected_classification;
        match (self.verdict, &self.error) {
            (Verdict::Undecided, _) if self.classification.details.unexecuted.is_some() => {
                let why = self.classification.details.unexecuted.as_deref().unwrap_or_default();
                format!("nothing was executed, so the case is undecided: {why}")
            }
            (Verdict::Undecided, _) if self.source == Source::Imported => {
                "the tool that asked gives no verdict, so the case is undecided".to_owned()
            }
            (Verdict::Undecided, _) => "the case has no criterion, so it is undecided".to_owned(),
            (Verdict::Error | Verdict::Fail, Some(error)) => error.sentence(),
            (Verdict::Error | Verdict::Fail | Verdict::Pass, _) => {
                why(&self.classification, self.verdict, expected)
            }
        }
    }

    /// What would have been right, as far as that can be said in a line or so.
    pub fn expected(&self) -> Option<String> {
        let case = &self.case;
        if let Some(command) = case.accepted_commands().next() {
            return Some(command.to_owned());
        }
        let text = |value: &serde_json::Value| {
            value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
        };
        let skills = || match case.routing.should_activate {
            Some(false) => Some("no skill".to_owned()),
            Some(true) | None => {
                let names = &case.routing.expected_skills;
                (!names.is_empty()).then(|| names.join(", "))
            }
        };
        let class = || case.criteria.expected_classification.map(|it| format!("a {it}"));
        case.criteria.expected_response.as_ref().map(text).or_else(skills).or_else(class)
    }

    /// The command that was taken out of the reply, or the reply itself.
    pub fn actual(&self) -> Option<&str> {
        let command = self.classification.details.command.as_ref();
        command.and_then(|it| it.command.as_deref()).or(self.reply.as_deref())
    }
}

/// Why a result has its verdict, where `expected` was asked for.
pub fn why(classification: &Classification, verdict: Verdict, expected: Option<Class>) -> String {
    let class = classification.class();
    let found = sentence(classification);
    match (verdict, expected) {
        (Verdict::Fail, Some(expected)) if expected != class => {
            let got = match class == Class::Pass {
                true => "an answer".to_owned(),
                false => format!("`{class}`: {found}"),
            };
            format!("expected the class `{expected}`, got {got}")
        }
        (Verdict::Pass | Verdict::Fail | Verdict::Error | Verdict::Undecided, _) => found,
    }
}

/// What the deciding rule found, and in which turn of a conversation.
fn sentence(classification: &Classification) -> String {
    match (classification.details.turn, classification.rule) {
        // The scores of a turn name it.
        (None, _) | (Some(_), Rule::Mismatch) => found(classification),
        (Some(turn), _) => format!("turn {turn}: {}", found(classification)),
    }
}

fn found(classification: &Classification) -> String {
    let Details { error_message, error_details, phrase, policy_name, .. } = &classification.details;
    let details = &classification.details;
    match classification.rule {
        Rule::Timeout | Rule::Crash | Rule::Error => {
            error_details.clone().unwrap_or_else(|| trouble(details).to_owned())
        }
        Rule::EmptyResponse => "the reply is empty".to_owned(),
        Rule::Refusal => match (details.source, phrase, error_details) {
            (Some(RefusalSource::StopReason), Some(reason), _) => {
                format!("the vendor blocked the reply: stop reason `{reason}`")
            }
            (_, _, Some(error)) => format!("the vendor blocked the request: {error}"),
            (_, Some(phrase), None) => format!("the model declined: `{phrase}`"),
            (_, None, None) => "the model declined".to_owned(),
        },
        Rule::Format => error_message.clone().unwrap_or_else(|| "wrong format".to_owned()),
        Rule::Policy => {
            let rule = details.hits.first().map(|hit| format!(" (rule `{}`)", hit.rule));
            let name = policy_name.as_deref().unwrap_or("unknown");
            format!("it breaks the policy `{name}`{}", rule.unwrap_or_default())
        }
        Rule::Mismatch => mismatch(classification),
        Rule::Pass => match details.criteria {
            Some(Criterion::Command) if by_effect(details).is_some() => {
                format!("`command` holds: {}", by_effect(details).unwrap_or_default())
            }
            Some(criterion) => format!("`{criterion}` holds"),
            None => "every criterion holds".to_owned(),
        },
    }
}

/// What an execution showed that decided about the command.
fn by_effect(details: &Details) -> Option<String> {
    let command = details.command.as_deref()?;
    let effect = command.effect.as_ref()?;
    (command.equivalence == Some(Equivalence::SameEffect)).then(|| effect.sentence())
}

fn trouble(details: &Details) -> &'static str {
    match details.reason {
        Some(Trouble::Unjudged) => "the reply could not be judged",
        Some(Trouble::Signal) => "a signal ended the program",
        Some(reason) => reason.as_str(),
        None => "the call failed",
    }
}

/// The failed checks, or the difference where it says more.
fn mismatch(classification: &Classification) -> String {
    let Details { diff, command, .. } = &classification.details;
    let command = command.as_deref();
    match diff {
        Some(Difference::Command(FailureReason::IncorrectCommand)) => {
            command.map_or_else(|| "the reply has no shell command".to_owned(), incorrect)
        }
        Some(Difference::Command(reason)) => {
            let command = command.and_then(|it| it.command.as_deref()).unwrap_or("no command");
            format!("{reason}: `{command}`")
        }
        Some(Difference::Assertion(_)) | None => {
            let failed = failed_checks(&classification.scores);
            if failed.is_empty() { "a criterion does not hold".to_owned() } else { failed }
        }
        Some(difference) => difference.to_string(),
    }
}

fn incorrect(command: &CommandDetails) -> String {
    let Some(text) = &command.command else {
        return "the reply has no shell command".to_owned();
    };
    match command.why() {
        Some(why) => format!("`{text}`: {why}"),
        None => format!("`{text}` is not the expected command"),
    }
}

fn failed_checks(scores: &[Score]) -> String {
    let failed = || scores.iter().filter(|it| !it.passed && it.is_required());
    let said = |score: &Score| match &score.reason {
        Some(reason) => reason.clone(),
        None => format!("`{}` does not hold", score.name),
    };
    let mut parts: Vec<String> = failed().take(NAMED).map(said).collect();
    let more = failed().count().saturating_sub(NAMED);
    if more > 0 {
        parts.push(format!("and {more} more"));
    }
    parts.join("; ")
}
