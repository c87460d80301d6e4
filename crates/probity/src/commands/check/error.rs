//! `probity check error`: what an error text means.

use probity_grade::errors::ErrorInput;
use probity_offline::check::{Detector, error::Settings};

use super::{show, text_of};
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

pub(super) fn run(args: &CheckArgs, given: &Given, printer: &Printer) -> Result<Exit, Failure> {
    let rules = rules::load(&args.rules, printer)?;
    let rules = rules.errors();
    if args.jsonl {
        let settings = Settings {
            rules,
            backend: given.backend.as_deref(),
            status: given.status,
            exit_code: given.exit_code,
            signal: given.signal.as_deref(),
        };
        return stream(&Detector::Error(settings), printer);
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
