//! `probity show`: one run, or all that is known of one of its cases.

use std::fmt::Write as _;

use probity_core::classification::Verdict;
use probity_report::{explain, json::case_value, text};
use probity_store::{Reader, RunRow};

use super::{consistency, project::settings_alone, runs::open};
use crate::{
    cli::run::ShowArgs, exit::Exit, failure::Failure, printer::Printer, terminal::one_line,
};

/// Cases that are listed of a run; `--json` has them all.
const LISTED: usize = 50;

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
    let mut text = text::render(&view);
    for lane in reader.lanes(run)? {
        let (mut listed, mut more) = (Vec::new(), 0);
        reader.cases(&lane, |case| {
            match case.verdict {
                Verdict::Pass => {}
                Verdict::Fail | Verdict::Error | Verdict::Undecided if listed.len() < LISTED => {
                    listed.push(case);
                }
                Verdict::Fail | Verdict::Error | Verdict::Undecided => more += 1,
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
                case.class.as_str(),
                one_line(&case.why(), 90)
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
                false => text.push_str(&explain::render(&lane.lane, &case)),
            }
        }
    }
    match text.is_empty() {
        false => Ok(text),
        true => Err(Failure::new(format!("run `{}` has no result of a case `{id}`", run.short()))
            .hint(format!("`probity show {} --json` lists all of them", run.short()))),
    }
}
