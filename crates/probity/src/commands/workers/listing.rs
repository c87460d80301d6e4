//! `probity workers` and `probity doctor --workers`: who is there, and whether everything is as it should be.

use std::fmt::Write as _;

use probity_core::visible::safe;
use probity_queue::{Check, Finding, Setup, WorkerNote, check as look, workers};
use serde_json::json;

use super::{access, connect, names, runtime};
use crate::{
    cli::workers::{NatsArgs, WorkersArgs},
    environment::Environment,
    exit::Exit,
    failure::Failure,
    printer::Printer,
};

/// How long a worker may be silent before it is shown as silent.
const SILENT_MS: i64 = 8_000;

/// Lists the workers.
pub(in crate::commands) fn list(args: &WorkersArgs, printer: &Printer) -> Result<Exit, Failure> {
    let environment = Environment::load(args.env_file.as_deref())?;
    let access = access(&args.connect, &args.nats, &environment)?;
    let (names, runtime) = (names(&args.nats)?, runtime()?);
    let link = connect(&runtime, &access, "probity workers", &names.inbox_of_runs())?;
    let found = runtime
        .block_on(workers(&link, &names))
        .map_err(|error| Failure::new(error.to_string()).exit(Exit::Aborted))?;
    if args.json {
        let mut text = String::new();
        for (note, ago) in &found {
            let mut value = json!(note);
            value["last_seen_ms"] = json!(ago);
            let _ = writeln!(text, "{value}");
        }
        Printer::emit(&text)?;
    } else if found.is_empty() {
        printer.note("no worker was there within the last hour");
    } else {
        printer.show(&table(&found))?;
    }
    Ok(Exit::Success)
}

fn table(found: &[(WorkerNote, i64)]) -> String {
    let head =
        ["NAME", "VERSION", "HOST", "IN FLIGHT", "DONE", "FAILED", "RATE", "LAST SEEN", "DOES"];
    let mut rows = vec![head.map(ToOwned::to_owned)];
    for (note, ago) in found {
        let offers: Vec<String> = note.offers.iter().map(|it| it.kind.shown()).collect();
        let does = match (offers.is_empty(), note.leaving) {
            (_, true) => "leaving".to_owned(),
            (true, false) => "nothing".to_owned(),
            (false, false) => offers.join(", "),
        };
        let seen = match *ago {
            ..SILENT_MS => format!("{} s ago", ago / 1000),
            ago => format!("silent for {} s", ago / 1000),
        };
        rows.push([
            safe(&note.name).into_owned(),
            safe(&note.version).into_owned(),
            safe(&note.host).into_owned(),
            format!("{} of {}", note.in_flight, note.slots),
            note.done.to_string(),
            note.failed.to_string(),
            format!("{:.1}/s", note.rate),
            seen,
            safe(&does).into_owned(),
        ]);
    }
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        let _ = writeln!(text, "{}", cells.join("  ").trim_end());
    }
    for (note, _) in found {
        for refusal in &note.refused {
            let what = if refusal.what.is_empty() { "anything" } else { &refusal.what };
            let _ = writeln!(
                text,
                "{} does not do {} of {}: {}",
                safe(&note.name),
                safe(what),
                safe(&refusal.suite),
                safe(&refusal.reason)
            );
        }
    }
    text
}

/// Looks at a server as a run would use it. False if something does not work.
pub(in crate::commands) fn check(
    url: &str,
    nats: &NatsArgs,
    environment: &Environment,
    printer: &Printer,
) -> Result<bool, Failure> {
    let access = access(url, nats, environment)?;
    let (names, runtime) = (names(nats)?, runtime()?);
    let link = connect(&runtime, &access, "probity doctor", &names.inbox_of_runs())?;
    let found = runtime.block_on(look(&link, &names, &Setup::default()));
    let mut text = format!("{} (prefix {})\n", access.shown(), names.prefix());
    let mut sound = true;
    for Check { what, finding } in &found {
        let shown = match finding {
            Finding::Fine(shown) | Finding::Odd(shown) => shown.clone(),
            Finding::Wrong(shown) => {
                sound = false;
                format!("does not work: {shown}")
            }
        };
        let _ = writeln!(text, "  {what:<12} {}", safe(&shown));
    }
    printer.show(&text)?;
    Ok(sound)
}
