//! `probity runs`: what is in the store.

use std::{fmt::Write as _, path::Path};

use probity_core::metrics::Verdicts;
use probity_store::{ListedRun, Reader};

use super::project::settings_alone;
use crate::{
    cli::run::{RunsArgs, RunsCommand, StoreArgs},
    clock,
    exit::Exit,
    failure::Failure,
    printer::Printer,
};

pub(super) fn run(args: &RunsArgs, printer: &Printer) -> Result<Exit, Failure> {
    match &args.command {
        None => list(args, printer),
        Some(RunsCommand::Rm { runs, place }) => remove(runs, place, printer),
        Some(RunsCommand::Gc { keep, place }) => collect(*keep, place, printer),
    }
}

pub(super) fn open(place: &StoreArgs) -> Result<Reader, Failure> {
    let settings = settings_alone(place)?;
    Reader::open(Path::new(&settings.store)).map_err(Failure::from)
}

fn list(args: &RunsArgs, printer: &Printer) -> Result<Exit, Failure> {
    let reader = open(&args.place)?;
    let runs = reader.listed(args.limit)?;
    let mut text = String::new();
    if !args.json && !runs.is_empty() {
        text.push_str(
            "run     began                 status      cases   pass   fail  error  suite\n",
        );
    }
    for run in &runs {
        match args.json {
            true => {
                let _ = writeln!(text, "{}", as_json(run));
            }
            false => {
                let (short, began) = (run.short(), clock::shown(run.started_ms));
                let Verdicts { pass, fail, error, .. } = run.verdicts;
                let imported = run.imported.as_ref();
                let imported = imported.map(|it| format!(" (imported from {})", it.tool));
                let _ = writeln!(
                    text,
                    "{short}  {began}  {:<10} {:>6} {pass:>6} {fail:>6} {error:>6}  {}{}",
                    run.status,
                    run.verdicts.total(),
                    run.suite,
                    imported.unwrap_or_default()
                );
            }
        }
    }
    if runs.is_empty() {
        printer.note("the store has no runs");
    }
    match args.json {
        true => Printer::emit(&text)?,
        false => printer.show(&text)?,
    }
    Ok(Exit::Success)
}

fn as_json(run: &ListedRun) -> serde_json::Value {
    serde_json::json!({
        "run_id": run.run_id,
        "suite": run.suite,
        "started": clock::shown(run.started_ms),
        "finished": run.finished_ms.map(clock::shown),
        "status": run.status,
        "imported": run.imported,
        "cases": run.verdicts.total(),
        "pass": run.verdicts.pass,
        "fail": run.verdicts.fail,
        "error": run.verdicts.error,
        "cost_usd": run.cost_usd,
    })
}

fn remove(names: &[String], place: &StoreArgs, printer: &Printer) -> Result<Exit, Failure> {
    let reader = open(place)?;
    // All of them are there before the first one goes.
    let runs = names.iter().map(|name| reader.full_name(name)).collect::<Result<Vec<_>, _>>()?;
    for run in &runs {
        reader.remove(run)?;
        printer.note(&format!("removed run {run}"));
    }
    Ok(Exit::Success)
}

fn collect(keep: usize, place: &StoreArgs, printer: &Printer) -> Result<Exit, Failure> {
    let reader = open(place)?;
    let runs = reader.full_names()?;
    let old = runs.iter().skip(keep).filter(|run| !reader.is_busy(run));
    let mut removed = 0;
    for run in old {
        reader.remove(run)?;
        removed += 1;
    }
    let texts = reader.compact()?;
    printer.note(&format!("removed {removed} runs and {texts} unused texts"));
    Ok(Exit::Success)
}
