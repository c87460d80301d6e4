//! `probity check error`: what an error text means.

use probity_grade::errors::{ErrorInput, ErrorRules, ErrorVerdict};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{object, show, text_of};
use crate::{
    cli::check::CheckArgs, commands::rules, exit::Exit, failure::Failure, jsonl::stream,
    printer::Printer,
};

/// What the command line says about the error.
pub(super) struct Given {
    pub(super) backend: Option<String>,
    pub(super) status: Option<u16>,
    pub(super) exit_code: Option<i32>,
    pub(super) signal: Option<String>,
}

#[derive(Deserialize)]
struct Request {
    backend: Option<String>,
    status: Option<u16>,
    exit_code: Option<i32>,
    signal: Option<String>,
    text: Option<String>,
    stdout: Option<String>,
    stderr: Option<String>,
    headers: Option<Map<String, Value>>,
}

pub(super) fn run(args: &CheckArgs, given: &Given, printer: &Printer) -> Result<Exit, Failure> {
    let rules = rules::load(&args.rules, printer)?;
    let rules = rules.errors();
    if args.jsonl {
        return stream(printer, |request: Request| answer(rules, given, &request));
    }
    let text = text_of(args, printer)?;
    let input = ErrorInput {
        backend: given.backend.as_deref(),
        status: given.status,
        exit_code: given.exit_code,
        signal: given.signal.as_deref(),
        text: &text,
        ..ErrorInput::default()
    };
    let verdict = rules.classify(&input);
    let retry = match (verdict.permanent, verdict.retry_after) {
        (true, _) => "permanent: trying again will not help".to_owned(),
        (false, Some(seconds)) => format!("transient: try again in {seconds} s"),
        (false, None) => "transient: trying again may help".to_owned(),
    };
    show(printer, &format!("{}\n{retry}\nevidence: {}", verdict.kind, verdict.evidence))
}

/// Answers a request; what it does not say is as the command line says.
fn answer(rules: &ErrorRules, given: &Given, request: &Request) -> Map<String, Value> {
    let headers: Vec<(&str, &str)> = request
        .headers
        .iter()
        .flatten()
        .filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
        .collect();
    let ErrorVerdict { kind, permanent, retry_after, evidence } = rules.classify(&ErrorInput {
        backend: request.backend.as_deref().or(given.backend.as_deref()),
        status: request.status.or(given.status),
        exit_code: request.exit_code.or(given.exit_code),
        signal: request.signal.as_deref().or(given.signal.as_deref()),
        text: request.text.as_deref().unwrap_or(""),
        stdout: request.stdout.as_deref().unwrap_or(""),
        stderr: request.stderr.as_deref().unwrap_or(""),
        headers: &headers,
    });
    object(json!({
        "kind": kind,
        "permanent": permanent,
        "retry_after": retry_after,
        "evidence": evidence,
    }))
}
