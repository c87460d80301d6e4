//! `probity show`: one run, or all that is known of one of its cases.

use std::fmt::Write as _;

use probity_core::{classification::Verdict, record::StoredCase, settings::Span, visible::safe};
use probity_report::{json::case_value, text};
use probity_store::{LaneView, Reader, RunRow};
use std::time::Duration;

use super::{consistency, project::settings_alone, runs::open};
use crate::{
    cli::run::ShowArgs, clock, exit::Exit, failure::Failure, printer::Printer, terminal::one_line,
};

/// Cases that are listed of a run; `--json` has them all.
const LISTED: usize = 50;

pub(super) fn run(args: &ShowArgs, printer: &Printer) -> Result<Exit, Failure> {
    let reader = open(&args.place)?;
    let run = reader.find(&args.run)?;
    match (&args.case, args.json) {
        (None, false) => printer.show_styled(&show_run(&reader, &run, args)?)?,
        (None, true) => return stream_run(&reader, &run),
        (Some(case), false) => printer.show(&show_case(&reader, &run, case, false)?)?,
        (Some(case), true) => Printer::emit(&show_case(&reader, &run, case, true)?)?,
    }
    Ok(Exit::Success)
}

/// The summary, and the cases that did not pass.
fn show_run(reader: &Reader, run: &RunRow, args: &ShowArgs) -> Result<String, Failure> {
    let most = settings_alone(&args.place)?.max_error_rate;
    let mut view = reader.view(run, most)?;
    consistency::add(&mut view, reader, run)?;
    let mut text = text::render(&view);
    for lane in reader.lanes(run)? {
        let (mut listed, mut more) = (Vec::new(), 0);
        reader.cases(&lane, |case| {
            match case.verdict {
                Verdict::Pass => {}
                Verdict::Fail | Verdict::Error if listed.len() < LISTED => listed.push(case),
                Verdict::Fail | Verdict::Error => more += 1,
            }
            Ok(())
        })?;
        if listed.is_empty() {
            continue;
        }
        let title = format!("{} on {}", lane.lane.runner, lane.lane.backend);
        let _ = writeln!(text, "\nnot passed: {}", one_line(&title, 80));
        for case in &listed {
            let id = one_line(&case.case_id, 32);
            let _ = writeln!(
                text,
                "  {id:<32} {:<16} {}",
                case.primary.as_str(),
                one_line(&case.reason(), 90)
            );
        }
        if more > 0 {
            let _ = writeln!(text, "  and {more} more; --json has them all");
        }
    }
    Ok(text)
}

/// Every case as a JSON line.
fn stream_run(reader: &Reader, run: &RunRow) -> Result<Exit, Failure> {
    use std::io::Write as _;
    let mut out = Printer::data();
    for lane in reader.lanes(run)? {
        let mut written = Ok(());
        reader.cases(&lane, |case| {
            if written.is_ok() && !out.get_ref().is_deserted() {
                written = writeln!(out, "{}", case_value(&lane.lane, &case));
            }
            Ok(())
        })?;
        written.map_err(Failure::output)?;
    }
    out.flush().map_err(Failure::output)?;
    Ok(Exit::Success)
}

fn show_case(reader: &Reader, run: &RunRow, id: &str, json: bool) -> Result<String, Failure> {
    let mut text = String::new();
    for lane in reader.lanes(run)? {
        for case in reader.case(&lane, id)? {
            match json {
                true => {
                    let _ = writeln!(text, "{}", case_value(&lane.lane, &case));
                }
                false => write_case(&mut text, &lane, &case),
            }
        }
    }
    match text.is_empty() {
        false => Ok(text),
        true => Err(Failure::new(format!("run `{}` has no result of a case `{id}`", run.short()))
            .hint(format!("`probity show {} --json` lists all of them", run.short()))),
    }
}

/// All that is known of a result.
fn write_case(text: &mut String, lane: &LaneView, case: &StoredCase) {
    let info = &lane.lane;
    let repeat =
        if info.repeat > 1 { format!(", repeat {}", case.repeat + 1) } else { String::new() };
    let _ = writeln!(
        text,
        "{} on {}{repeat}: {} ({})",
        info.runner,
        info.backend,
        case.primary,
        case.verdict.as_str()
    );
    let mut field = |name: &str, value: &str| {
        let _ = writeln!(text, "  {name:<10} {value}");
    };
    field("case", &safe(&case.case_id));
    field("began", &clock::shown(case.started_ms));
    field("took", &Span(Duration::from_millis(case.elapsed_ms)).to_string());
    field(
        "answer by",
        &format!(
            "{}, model {}",
            case.source.as_str(),
            one_line(case.model.as_deref().unwrap_or("unknown"), 80)
        ),
    );
    if let Some(reason) = &case.stop_reason {
        field("stopped", &one_line(reason, 80));
    }
    let tokens = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), |it| it.to_string());
    let (input, output) = (tokens(case.usage.input_tokens), tokens(case.usage.output_tokens));
    let cost = case.cost_usd.map_or_else(String::new, |cost| format!(", ${cost:.6}"));
    field("tokens", &format!("{input} in, {output} out{cost}"));
    field("calls", &case.calls.to_string());
    for failed in &case.failures {
        let wait = failed.retry_in_ms.map_or_else(
            || "not tried again".to_owned(),
            |wait| format!("tried again after {}", Span(Duration::from_millis(wait))),
        );
        let error = &failed.error;
        let message = format!(
            "{} after {}: {}; {wait}",
            error.kind,
            Span(Duration::from_millis(failed.latency_ms)),
            one_line(&error.message, 300)
        );
        field(&format!("  try {}", failed.attempt), &message);
    }
    let mut block = |name: &str, value: &str| {
        let _ = writeln!(text, "\n  {name}");
        for line in safe(value).lines() {
            let _ = writeln!(text, "    {line}");
        }
    };
    if let Some(system) = &case.system {
        block("system", system);
    }
    block("prompt", &case.prompt);
    match (&case.reply, &case.error) {
        (Some(reply), _) => block("reply", reply),
        (None, Some(error)) => block("error", &error.to_string()),
        (None, None) => {}
    }
    for asked in &case.asked {
        let model = asked.model.as_deref().map(|it| format!(", {it}")).unwrap_or_default();
        let source = asked.source.as_str();
        let title = format!("asked: {} ({}{model}; {source})", asked.role, asked.backend);
        block(&one_line(&title, 120), "");
        // What the case shows above is not shown again.
        if asked.system.as_deref().is_some_and(|it| case.system.as_deref() != Some(it)) {
            block("  system", asked.system.as_deref().unwrap_or_default());
        }
        if asked.prompt != case.prompt {
            block("  prompt", &asked.prompt);
        }
        match (&asked.reply, &asked.error) {
            (Some(reply), _) => block("  reply", reply),
            (None, Some(error)) => block("  error", error),
            (None, None) => {}
        }
    }
    let classification: serde_json::Value =
        serde_json::from_str(&case.classification).unwrap_or_default();
    let evidence = serde_json::to_string_pretty(&classification).unwrap_or_default();
    block("classification", &evidence);
    text.push('\n');
}
