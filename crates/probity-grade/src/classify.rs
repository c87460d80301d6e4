//! Says what a run result is: one of eight, by the first rule that fires.

use probity_core::{
    classification::{Also, Classification, CommandDetails, Details, PolicyHit, Rule},
    evidence::{Evidence, Win},
    failure::ErrorKind,
    run_result::{RunError, RunResult},
};

use crate::{
    assertion::{SetOutcome, evaluate},
    command::Judged,
    compile::Expectation,
    errors::ErrorInput,
    excerpt::excerpt,
    json::extract,
    matching::Outcome,
    redact::redacted,
    reply::{Reply, blocked_stop},
    routing::Routing,
    schema,
};

/// Says what a result is.
///
/// It is total and deterministic. Every rule is consulted: the first that fires
/// decides, and the others that would have fired are listed in `details.also`.
pub fn classify(expectation: &Expectation<'_>, result: &RunResult<'_>) -> Classification {
    let mut fired = Vec::new();
    let text = result.raw_response.filter(|text| !text.trim().is_empty());
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
    if let Some(reason) = blocked {
        fired.push(Fired {
            rule: Rule::Refusal,
            evidence: format!("stop reason `{}`", excerpt(reason, 0)),
            details: Details {
                source: Some("stop_reason"),
                reason: Some("blocked"),
                phrase: Some(excerpt(reason, 0)),
                ..Details::default()
            },
        });
    }
    if let Some(text) = text {
        let reply = Reply::new(text, result, expectation.rules);
        judge_reply(expectation, &reply, &mut fired, &mut facts);
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
    steps: Vec<&'static str>,
    duplicate_keys: Vec<String>,
    assertions: Vec<probity_core::classification::AssertionOutcome>,
    criteria: Option<&'static str>,
    matched_index: Option<usize>,
    command: Option<Box<CommandDetails>>,
    evidence: Option<Box<Evidence>>,
    has_reply: bool,
    unjudged: Option<String>,
}

fn decide(expectation: &Expectation<'_>, fired: Vec<Fired>, facts: Facts) -> Classification {
    let mut fired = fired.into_iter();
    let Facts {
        hits,
        steps,
        duplicate_keys,
        assertions,
        criteria,
        matched_index,
        command,
        evidence,
        has_reply,
        unjudged: _,
    } = facts;
    let (rule, details) = match fired.next() {
        Some(first) => (first.rule, first.details),
        None => {
            let stated = expectation.has_criteria();
            let criteria = criteria.or_else(|| (!stated).then_some("none"));
            (Rule::Pass, Details { criteria, matched_index, ..Details::default() })
        }
    };
    let infrastructure = matches!(rule, Rule::Timeout | Rule::Crash | Rule::Error);
    let also = fired.map(|it| Also { rule: it.rule, evidence: it.evidence }).collect();
    let details = Details {
        hits,
        steps,
        duplicate_keys,
        assertions,
        command,
        evidence,
        partial_reply: infrastructure && has_reply,
        also,
        ..details
    };
    Classification { rule, details }
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
        Rule::Crash => Details {
            reason: Some(if error.signal.is_some() { "signal" } else { "crash" }),
            signal: error.signal.map(ToOwned::to_owned),
            ..Details::default()
        },
        Rule::EmptyResponse => Details { reason: Some("empty_response"), ..Details::default() },
        Rule::Refusal => {
            Details { source: Some("api_error"), reason: Some("blocked"), ..Details::default() }
        }
        Rule::Error | Rule::Format | Rule::Policy | Rule::Mismatch | Rule::Pass => {
            Details { reason: Some(kind.as_str()), ..Details::default() }
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
        details: Details { reason: Some("empty_response"), ..Details::default() },
    }
}

fn judge_reply(
    expectation: &Expectation<'_>,
    reply: &Reply<'_, '_>,
    fired: &mut Vec<Fired>,
    facts: &mut Facts,
) {
    facts.has_reply = true;
    if let Some(refusal) = reply.refusal() {
        fired.push(Fired {
            rule: Rule::Refusal,
            evidence: excerpt(&refusal.phrase, 0),
            details: Details {
                source: Some("reply"),
                phrase: Some(refusal.phrase.clone()),
                span: Some(refusal.span.clone()),
                ..Details::default()
            },
        });
    }
    let json = judge_format(expectation, reply.text, fired, facts);
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
    judge_content(expectation, reply, json.as_ref(), fired, facts);
    judge_command(expectation, reply, fired, facts);
    judge_routing(expectation, reply, fired, facts);
    if let Some(why) = facts.unjudged.take_if(|_| fired.is_empty()) {
        fired.push(unjudged(why));
    }
}

/// A judge has to say whether the reply is right, and has not.
fn unjudged(why: String) -> Fired {
    Fired {
        rule: Rule::Error,
        evidence: why.clone(),
        details: Details { reason: Some(UNJUDGED), error_details: Some(why), ..Details::default() },
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
    let (outcome, evidence) = routing.judge(reply.text, reply.result.chosen);
    match outcome {
        Routing::Right => facts.criteria = Some("routing"),
        Routing::Unreadable => {
            let message = "the reply does not name skills as JSON".to_owned();
            fired.push(Fired {
                rule: Rule::Format,
                evidence: message.clone(),
                details: Details { error_message: Some(message), ..Details::default() },
            });
        }
        Routing::Wrong => {
            let (Evidence::Activation(routed) | Evidence::Confusion(routed)) = &evidence else {
                return;
            };
            let chosen: Vec<&String> = routed.chosen.iter().chain(&routed.outside).collect();
            fired.push(Fired {
                rule: Rule::Mismatch,
                evidence: "another choice of skills was expected".to_owned(),
                details: Details {
                    diff: Some(serde_json::json!({
                        "expected": routing.expected,
                        "chosen": chosen,
                    })),
                    ..Details::default()
                },
            });
        }
    }
    facts.evidence = Some(Box::new(evidence));
}

/// What comparing answers came to: the case passes if its first comparison is won.
pub fn compared(evidence: Evidence) -> Classification {
    let duel = match &evidence {
        Evidence::Effectiveness(it) | Evidence::SizeImpact(it) => it.duels.first(),
        Evidence::Activation(_) | Evidence::Confusion(_) | Evidence::Program(_) => None,
    };
    let (rule, details) = match duel.map(|duel| (duel.scores, duel.error.as_ref())) {
        Some((Some(scores), _)) => match scores.result() {
            Win::Win => (Rule::Pass, Details { criteria: Some("judge"), ..Details::default() }),
            result @ (Win::Tie | Win::Loss) => {
                let diff = serde_json::json!({
                    "result": result.as_str(),
                    "more": scores.more,
                    "less": scores.less,
                });
                (Rule::Mismatch, Details { diff: Some(diff), ..Details::default() })
            }
        },
        other => {
            let why = other.and_then(|(_, error)| error.cloned());
            let why = why.unwrap_or_else(|| "nothing was compared".to_owned());
            (Rule::Error, unjudged(why).details)
        }
    };
    Classification { rule, details: Details { evidence: Some(Box::new(evidence)), ..details } }
}

/// The reason of an error that is nobody's but the judge's.
pub const UNJUDGED: &str = "unjudged";

/// Judges the shell command in the reply, if the case is about one.
fn judge_command(
    expectation: &Expectation<'_>,
    reply: &Reply<'_, '_>,
    fired: &mut Vec<Fired>,
    facts: &mut Facts,
) {
    let Some(command) = &expectation.command else { return };
    let Judged { details, failure } = command.judge(reply.text, &expectation.rules.shell);
    facts.command = Some(Box::new(details));
    match failure {
        None => facts.criteria = Some("command"),
        Some(reason) => fired.push(Fired {
            rule: Rule::Mismatch,
            evidence: reason.to_string(),
            details: Details { diff: serde_json::to_value(&reason).ok(), ..Details::default() },
        }),
    }
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
    facts.steps = extraction.steps.iter().map(|step| step.as_str()).collect();
    facts.duplicate_keys = extraction.duplicate_keys.into_iter().map(|it| it.pointer).collect();
    let wrong = match &extraction.value {
        None => extraction.error.map(|error| error.to_string()),
        Some(value) if !wanted.accepts(value) => {
            Some(format!("the reply is JSON, but not an {}", wanted.as_str()))
        }
        Some(value) => {
            let schema = expectation.schema.as_deref();
            schema.and_then(|schema| schema::first_violation(schema, value))
        }
    };
    match wrong {
        Some(message) => fired.push(Fired {
            rule: Rule::Format,
            evidence: message.clone(),
            details: Details { error_message: Some(message), ..Details::default() },
        }),
        None => {
            let by_schema = expectation.schema.is_some();
            facts.criteria = Some(if by_schema { "schema" } else { "expected_format" });
        }
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
    let outcome = expectation.comparison.as_ref().and_then(|(name, comparison)| {
        let outcome = match (comparison.needs_json(), json) {
            (false, _) => comparison.text(reply.text),
            (true, Some(json)) => comparison.json(json),
            // The format rule has said that there is no JSON.
            (true, None) => return None,
        };
        Some((*name, outcome))
    });
    match outcome {
        Some((name, Outcome::Match(index))) => {
            facts.criteria = Some(name);
            let several = expectation.alternatives() > 1;
            facts.matched_index = several.then_some(index);
        }
        Some((name, Outcome::Mismatch(diff))) => fired.push(Fired {
            rule: Rule::Mismatch,
            evidence: format!("`{name}` does not hold"),
            details: Details { diff: Some(diff), ..Details::default() },
        }),
        None => {}
    }
    if expectation.assertions.is_empty() {
        return;
    }
    let SetOutcome { pass, score, outcomes, unjudged } =
        evaluate(&expectation.assertions, expectation.threshold, reply);
    facts.unjudged = unjudged;
    if expectation.comparison.is_none() {
        facts.criteria = Some("assert");
    }
    if !pass {
        let failing = outcomes.iter().find(|it| !it.pass).map_or("", |it| it.kind.as_str());
        fired.push(Fired {
            rule: Rule::Mismatch,
            evidence: format!("assertion `{failing}` does not hold"),
            details: Details {
                diff: Some(serde_json::json!({ "assertion": failing, "score": score })),
                ..Details::default()
            },
        });
    }
    facts.assertions = outcomes;
}

#[cfg(test)]
mod tests;
