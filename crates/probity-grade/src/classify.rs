//! Says what a run result is: one of eight, by the first rule that fires.

pub(crate) mod turns;

use probity_core::{
    classification::{Classification, Rule},
    details::{
        Also, CommandDetails, Criterion, Details, Extracted, JsonStep, PolicyHit, RefusalSource,
        Trouble,
    },
    difference::{AssertionDifference, ChoiceDifference, Difference},
    failure::ErrorKind,
    kind::Evidence,
    opinion::JudgedCheck,
    run_result::{RunError, RunResult},
    score::{ROUTING, Score},
    selection::Selection,
};

use crate::{
    check::{Checked, Together, evaluate},
    command::{Effects, Judged},
    compile::{EXPECTED_CLASSIFICATION, Expectation},
    errors::{ErrorInput, signal_named},
    excerpt::{beginning, excerpt},
    execution::EXECUTION,
    internal::{routing::Chosen, script},
    json::extract,
    redact::redacted,
    reply::{Reply, blocked_stop},
    schema::Held,
};

/// Characters that are kept of what a transform made.
const LONGEST_TRANSFORMED: usize = 10_000;

/// Says what a result is.
///
/// It is total and deterministic. Every rule is consulted: the first that fires
/// decides, and the others that would have fired are listed in `details.also`.
pub fn classify(expectation: &Expectation<'_>, result: &RunResult<'_>) -> Classification {
    let mut fired = Vec::new();
    let text = expectation.said(result);
    let blocked = blocked_stop(result);
    match &result.error {
        Some(error) => fired.push(judge_error(expectation, result, error)),
        None if text.is_none() && blocked.is_none() => fired.push(empty_response()),
        None => {}
    }
    let mut facts = Facts::default();
    if let Some(routing) = &expectation.routing {
        let is_filter = |error: &RunError<'_>| error.kind == Some(ErrorKind::ContentFilter);
        let declined = blocked.is_some() || result.error.as_ref().is_some_and(is_filter);
        facts.evidence = Some(Box::new(routing.without_reply(declined)));
    }
    // What is asked of turns alone is asked of the last reply as the answer to its turn.
    let judges_last = expectation.turns.is_empty() || expectation.has_own_criteria();
    if let Some(reason) = blocked.filter(|_| judges_last) {
        fired.push(Fired {
            rule: Rule::Refusal,
            evidence: format!("stop reason `{}`", excerpt(reason, 0)),
            details: Details {
                source: Some(RefusalSource::StopReason),
                reason: Some(Trouble::Blocked),
                phrase: Some(excerpt(reason, 0)),
                ..Details::default()
            },
        });
    }
    if let Some(text) = text {
        facts.has_reply = true;
        if judges_last {
            let reply =
                Reply::new(text, result, expectation.rules).of(expectation.facts.as_deref());
            judge_reply(expectation, &reply, &mut fired, &mut facts);
        }
        judge_execution(expectation, result, text, &mut fired, &mut facts);
    }
    if result.error.is_none() {
        turns::judge(expectation, result, &mut fired, &mut facts);
    }
    if let Some(why) = facts.unjudged.take_if(|_| fired.is_empty()) {
        fired.push(unjudged(why));
    }
    // Stable, so that of two refusals the vendor's own word comes first.
    fired.sort_by_key(|it| it.rule);
    decide(expectation, fired, facts)
}

/// A rule that fired, with what to show for it.
struct Fired {
    rule: Rule,
    /// A few words, for when another rule decides.
    evidence: String,
    /// The details, for when this one does.
    details: Details,
}

/// What is reported whichever rule decides.
#[derive(Default)]
struct Facts {
    hits: Vec<PolicyHit>,
    steps: Vec<JsonStep>,
    duplicate_keys: Vec<String>,
    scores: Vec<Score>,
    criteria: Option<Criterion>,
    matched_index: Option<usize>,
    extracted: Vec<Extracted>,
    judged: Vec<JudgedCheck>,
    selected: Vec<Selection>,
    command: Option<Box<CommandDetails>>,
    evidence: Option<Box<Evidence>>,
    has_reply: bool,
    unjudged: Option<String>,
    transformed: Option<String>,
    unexecuted: Option<String>,
}

fn decide(expectation: &Expectation<'_>, fired: Vec<Fired>, facts: Facts) -> Classification {
    let mut fired = fired.into_iter();
    let Facts {
        hits,
        steps,
        duplicate_keys,
        mut scores,
        criteria,
        matched_index,
        extracted,
        judged,
        selected,
        command,
        evidence,
        has_reply,
        unjudged: _,
        transformed,
        unexecuted,
    } = facts;
    let (rule, details) = match fired.next() {
        Some(first) => (first.rule, first.details),
        None => {
            let decided = expectation.expected.is_some() || scores.iter().any(Score::is_required);
            let criteria = match decided && unexecuted.is_none() {
                true => criteria,
                false => Some(Criterion::None),
            };
            (Rule::Pass, Details { criteria, matched_index, ..Details::default() })
        }
    };
    let infrastructure = matches!(rule, Rule::Timeout | Rule::Crash | Rule::Error);
    let also = fired.map(|it| Also { rule: it.rule, evidence: it.evidence }).collect();
    let details = Details {
        hits,
        steps,
        duplicate_keys,
        extracted,
        judged,
        selected,
        command,
        evidence,
        transformed,
        unexecuted,
        partial_reply: infrastructure && has_reply,
        also,
        ..details
    };
    scores.extend(expectation.expected.map(|expected| {
        let class = rule.class();
        let wrong = (class != expected).then(|| format!("expected `{expected}`, got `{class}`"));
        Score::new(EXPECTED_CLASSIFICATION, wrong)
    }));
    Classification { rule, scores, details }
}

/// The kind of an error decides between timeout, crash, refusal and error.
fn judge_error(
    expectation: &Expectation<'_>,
    result: &RunResult<'_>,
    error: &RunError<'_>,
) -> Fired {
    let kind = error.kind.unwrap_or_else(|| {
        let input = ErrorInput {
            backend: error.backend,
            status: error.status,
            exit_code: error.exit_code,
            signal: error.signal,
            text: error.message,
            stdout: error.stdout,
            stderr: error.stderr,
            ..ErrorInput::default()
        };
        expectation.rules.errors.classify(&input).kind
    });
    let message = redacted(error.message);
    let evidence = excerpt(&message, 0);
    let rule = rule_of(kind);
    let details = match rule {
        Rule::Timeout => Details {
            limit_seconds: result.limit_seconds.and_then(|it| it.parse().ok()),
            ..Details::default()
        },
        Rule::Crash => {
            // Where a text decided that it is a crash, the text tells the signal too.
            let told = || error.kind.is_none().then(|| signal_named(error.message)).flatten();
            let signal = error.signal.map(ToOwned::to_owned).or_else(told);
            let reason = if signal.is_some() { Trouble::Signal } else { Trouble::Crash };
            Details { reason: Some(reason), signal, ..Details::default() }
        }
        Rule::EmptyResponse => {
            Details { reason: Some(Trouble::EmptyResponse), ..Details::default() }
        }
        Rule::Refusal => {
            let reason = Some(Trouble::Blocked);
            Details { source: Some(RefusalSource::ApiError), reason, ..Details::default() }
        }
        Rule::Error | Rule::Format | Rule::Policy | Rule::Mismatch | Rule::Pass => {
            Details { reason: Some(Trouble::Call(kind)), ..Details::default() }
        }
    };
    let details = Details { error_details: Some(message), ..details };
    Fired { rule, evidence, details }
}

/// Which rule an error of a kind comes under.
fn rule_of(kind: ErrorKind) -> Rule {
    match kind {
        ErrorKind::Timeout => Rule::Timeout,
        ErrorKind::Crash => Rule::Crash,
        ErrorKind::Empty => Rule::EmptyResponse,
        ErrorKind::ContentFilter => Rule::Refusal,
        ErrorKind::Auth
        | ErrorKind::Quota
        | ErrorKind::RateLimit
        | ErrorKind::Overloaded
        | ErrorKind::Server
        | ErrorKind::Network
        | ErrorKind::BadRequest
        | ErrorKind::NotFound
        | ErrorKind::TooLarge
        | ErrorKind::BadFlag
        | ErrorKind::NotInstalled
        | ErrorKind::Unknown => Rule::Error,
    }
}

fn empty_response() -> Fired {
    Fired {
        rule: Rule::EmptyResponse,
        evidence: "no reply and no error".to_owned(),
        details: Details { reason: Some(Trouble::EmptyResponse), ..Details::default() },
    }
}

fn judge_reply(
    expectation: &Expectation<'_>,
    reply: &Reply<'_, '_>,
    fired: &mut Vec<Fired>,
    facts: &mut Facts,
) {
    if let Some(refusal) = reply.refusal() {
        fired.push(Fired {
            rule: Rule::Refusal,
            evidence: excerpt(&refusal.phrase, 0),
            details: Details {
                source: Some(RefusalSource::Reply),
                phrase: Some(refusal.phrase.clone()),
                span: Some(refusal.span.clone()),
                ..Details::default()
            },
        });
    }
    facts.hits = expectation.rules.policies.scan(reply.text);
    if let Some(first) = facts.hits.first() {
        fired.push(Fired {
            rule: Rule::Policy,
            evidence: first.policy.clone(),
            details: Details {
                policy_name: Some(first.policy.clone()),
                span: Some(first.span.clone()),
                ..Details::default()
            },
        });
    }
    match expectation.made_of(reply) {
        Some(Ok(made)) => {
            let text = script::text_of(&made);
            facts.transformed = Some(beginning(&text, LONGEST_TRANSFORMED));
            judge_checked(expectation, &reply.made_into(&made, &text), fired, facts);
            // Places in another text than the reply are of no use to anybody.
            facts.scores.iter_mut().for_each(|it| it.span = None);
        }
        Some(Err(why)) => facts.unjudged = Some(why),
        None => judge_checked(expectation, reply, fired, facts),
    }
}

/// Judges what is checked: the reply, or what a transform made of it.
fn judge_checked(
    expectation: &Expectation<'_>,
    reply: &Reply<'_, '_>,
    fired: &mut Vec<Fired>,
    facts: &mut Facts,
) {
    let json = judge_format(expectation, reply.text, fired, facts);
    judge_content(expectation, reply, json.as_ref(), fired, facts);
    judge_command(expectation, reply, fired, facts);
    judge_routing(expectation, reply, fired, facts);
}

/// Somebody has to say whether the reply is right, and has not.
fn unjudged(why: String) -> Fired {
    Fired {
        rule: Rule::Error,
        evidence: why.clone(),
        details: Details {
            reason: Some(Trouble::Unjudged),
            error_details: Some(why),
            ..Details::default()
        },
    }
}

/// Judges which skills the reply chooses, if the case is about that.
fn judge_routing(
    expectation: &Expectation<'_>,
    reply: &Reply<'_, '_>,
    fired: &mut Vec<Fired>,
    facts: &mut Facts,
) {
    let Some(routing) = &expectation.routing else { return };
    let (outcome, routed) = routing.judge(reply.text, reply.result.chosen);
    match outcome {
        Chosen::Right => {
            facts.criteria = Some(Criterion::Routing);
            facts.scores.push(Score::new(ROUTING, None));
        }
        Chosen::Unreadable => {
            let message = "the reply does not name skills as JSON".to_owned();
            facts.scores.push(Score::new(ROUTING, Some(message.clone())));
            fired.push(Fired {
                rule: Rule::Format,
                evidence: message.clone(),
                details: Details { error_message: Some(message), ..Details::default() },
            });
        }
        Chosen::Wrong => {
            let difference = Difference::Choice(ChoiceDifference {
                expected: routing.expected.clone(),
                chosen: routed.chosen.iter().chain(&routed.outside).cloned().collect(),
            });
            facts.scores.push(Score::new(ROUTING, Some(difference.to_string())));
            fired.push(Fired {
                rule: Rule::Mismatch,
                evidence: "another choice of skills was expected".to_owned(),
                details: Details { diff: Some(difference), ..Details::default() },
            });
        }
    }
    facts.evidence = Some(Box::new(routing.evidence(routed)));
}

/// Judges the shell command in the reply, if the case is about one.
fn judge_command(
    expectation: &Expectation<'_>,
    reply: &Reply<'_, '_>,
    fired: &mut Vec<Fired>,
    facts: &mut Facts,
) {
    let Some(command) = &expectation.command else { return };
    let effects = Effects { found: reply.result.effects, counts: expectation.rules.execution };
    let Judged { details, scores, evidence, failure, unexecuted } =
        command.judge(reply.text, &expectation.rules.shell, effects);
    facts.command = Some(Box::new(details));
    facts.evidence = evidence.map(Box::new);
    if let Some(why) = unexecuted {
        facts.unexecuted = Some(why);
        return;
    }
    facts.scores.extend(scores);
    match failure {
        None => facts.criteria = Some(Criterion::Command),
        Some(reason) => fired.push(Fired {
            rule: Rule::Mismatch,
            evidence: reason.to_string(),
            details: Details { diff: Some(Difference::Command(reason)), ..Details::default() },
        }),
    }
}

/// Judges what came of executing what is in the reply, if the case asks for it.
fn judge_execution(
    expectation: &Expectation<'_>,
    result: &RunResult<'_>,
    text: &str,
    fired: &mut Vec<Fired>,
    facts: &mut Facts,
) {
    let (Some(execution), Some(call)) =
        (&expectation.execution, expectation.execution_call(result))
    else {
        return;
    };
    let scores = match (call, result.executed) {
        (Err(why), _) => vec![Score::new(EXECUTION, Some(why))],
        (Ok(_), None) => {
            facts.unexecuted = Some("this needs a run".to_owned());
            return;
        }
        (Ok(_), Some(Err(why))) => {
            facts.unexecuted = Some(why.clone());
            return;
        }
        (Ok(_), Some(Ok(executed))) => {
            let reply =
                Reply::new(text, result, expectation.rules).of(expectation.facts.as_deref());
            match execution.judge(executed, &reply) {
                Ok(scores) => scores,
                Err(why) => {
                    facts.unexecuted = Some(why);
                    return;
                }
            }
        }
    };
    let failing = scores.iter().find(|it| !it.passed && it.is_required());
    match failing {
        None => facts.criteria = Some(Criterion::Execution),
        Some(score) => fired.push(Fired {
            rule: Rule::Mismatch,
            evidence: score.reason.clone().unwrap_or_else(|| score.name.to_string()),
            details: Details::default(),
        }),
    }
    facts.scores.extend(scores);
}

/// Reads the reply as JSON where the case asks for it, and checks it against the schema.
fn judge_format(
    expectation: &Expectation<'_>,
    text: &str,
    fired: &mut Vec<Fired>,
    facts: &mut Facts,
) -> Option<serde_json::Value> {
    let wanted = expectation.format?;
    let extraction = extract(text, expectation.level, wanted);
    facts.steps = extraction.steps;
    facts.duplicate_keys = extraction.duplicate_keys.into_iter().map(|it| it.pointer).collect();
    let wrong = match &extraction.value {
        None => extraction.error.map(|error| error.to_string()),
        Some(value) if !wanted.accepts(value) => {
            Some(format!("the reply is JSON, but not an {}", wanted.as_str()))
        }
        Some(value) => match expectation.schema.as_deref().map(|schema| schema.hold(value)) {
            None | Some(Held::Valid) => None,
            Some(Held::Invalid(violations)) => Some(violations),
            Some(Held::Unknown(why)) => {
                facts.unjudged = Some(why);
                return extraction.value;
            }
        },
    };
    let criterion = expectation.format_criterion();
    facts.scores.push(Score::new(criterion.as_str(), wrong.clone()));
    match wrong {
        Some(message) => fired.push(Fired {
            rule: Rule::Format,
            evidence: message.clone(),
            details: Details { error_message: Some(message), ..Details::default() },
        }),
        None => facts.criteria = Some(criterion),
    }
    extraction.value
}

/// Compares the reply with the expected one, and asks the assertions.
fn judge_content(
    expectation: &Expectation<'_>,
    reply: &Reply<'_, '_>,
    json: Option<&serde_json::Value>,
    fired: &mut Vec<Fired>,
    facts: &mut Facts,
) {
    if let Some(comparison) = &expectation.comparison
        // Without JSON there is nothing to compare, as the format rule has said.
        && (json.is_some() || !comparison.needs_json())
    {
        let name = comparison.matcher.as_str();
        let Checked { value, said, passed, reason, difference, index, span, told } =
            comparison.check.check(reply, json);
        let extracted = told.extracted.into_iter();
        facts.extracted.extend(extracted.map(|it| Extracted { check: name.into(), ..it }));
        facts.scores.push(Score { value, said, span, ..Score::new(name, reason) });
        match passed {
            true => {
                facts.criteria = Some(Criterion::Match(comparison.matcher));
                facts.matched_index = index.filter(|_| comparison.alternatives > 1);
            }
            false => fired.push(Fired {
                rule: Rule::Mismatch,
                evidence: format!("`{name}` does not hold"),
                details: Details { diff: difference, ..Details::default() },
            }),
        }
    }
    if expectation.assertions.is_empty() {
        return;
    }
    let Together { passed, value, scores, told, unjudged } =
        evaluate(&expectation.assertions, expectation.threshold, reply);
    facts.extracted.extend(told.extracted);
    facts.judged.extend(told.judged);
    facts.selected.extend(told.selected);
    facts.unjudged = facts.unjudged.take().or(unjudged);
    if expectation.comparison.is_none() {
        facts.criteria = Some(Criterion::Assert);
    }
    if !passed {
        let failing = scores.iter().find(|it| !it.passed && it.is_required());
        let assertion = failing.map(|it| it.kind.to_string()).unwrap_or_default();
        fired.push(Fired {
            rule: Rule::Mismatch,
            evidence: format!("assertion `{assertion}` does not hold"),
            details: Details {
                diff: Some(Difference::Assertion(AssertionDifference { assertion, score: value })),
                ..Details::default()
            },
        });
    }
    facts.scores.extend(scores);
    facts.scores.extend(told.named);
}

#[cfg(test)]
mod tests;
