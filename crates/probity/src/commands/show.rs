//! `probity show`: one run, or all that is known of one of its cases.

use std::fmt::Write as _;

use probity_report::{explain, json::case_value, text::Extent};
use probity_store::{Reader, RunRow};

use super::{consistency, page::About, project::settings_alone, runs::open};
use crate::{cli::run::ShowArgs, exit::Exit, failure::Failure, printer::Printer};

pub(super) fn run(args: &ShowArgs, printer: &Printer) -> Result<Exit, Failure> {
    let reader = open(&args.place)?;
    let run = reader.find(&args.run)?;
    match (&args.case, args.json) {
        (None, false) => printer.show_styled(&show_run(&reader, &run, args)?)?,
        (None, true) => return stream_run(&reader, &run),
        (Some(case), false) => {
            printer.show_styled(&show_case(&reader, &run, case, false)?)?;
        }
        (Some(case), true) => Printer::emit(&show_case(&reader, &run, case, true)?)?,
    }
    Ok(Exit::Success)
}

/// The summary, and the cases that did not pass.
fn show_run(reader: &Reader, run: &RunRow, args: &ShowArgs) -> Result<String, Failure> {
    let most = settings_alone(&args.place)?.max_error_rate;
    let mut view = reader.view(run, most)?;
    consistency::add(&mut view, reader, run)?;
    let (extent, width) = (Extent::Full, Printer::width());
    About { reader, run, view: &view, exit: None, extent, width }.render()
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
                false => text.push_str(&explain::render(&lane.lane, &case)),
            }
        }
    }
    match text.is_empty() {
        false => Ok(text),
        true => Err(Failure::new(format!("run `{}` has no result for a case `{id}`", run.short()))
            .hint(format!("`probity show {} --json` lists all of them", run.short()))),
    }
}
