//! Results of another tool, as a stored run.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use probity_import::results::{Aligned, KnownCases, Read, Recorded, Tool};
use probity_load::settings::Layer;
use probity_report::text::Extent;
use probity_store::{NewRun, Reader, StoreError, new_run_id, record_whole};
use serde::Serialize;

use crate::{
    cli::{import::ImportArgs, run::ForeignArgs},
    clock,
    commands::{
        dataset::counted,
        page::About,
        project::{Project, Reading, settings_alone},
    },
    exit::Exit,
    failure::Failure,
    printer::Printer,
};

/// What was stored, for scripts.
#[derive(Serialize)]
struct Report<'a> {
    from: &'a str,
    file: &'a Path,
    /// The run; that of an earlier import if the same file was imported before.
    run_id: &'a str,
    /// Whether the run was there before.
    known: bool,
    results: u64,
    passed: u64,
    failed: u64,
    errors: u64,
    undecided: u64,
    notes: &'a [String],
}

/// Stores a run, or says that it is there already.
pub(super) fn run(args: &ImportArgs, mut read: Read, printer: &Printer) -> Result<Exit, Failure> {
    let settings = settings_alone(&args.place)?;
    let store = PathBuf::from(&settings.store);
    let known = known(&store, &read.digest)?.filter(|_| !args.force);
    if let Some(run_id) = known {
        if !args.json {
            let short = run_id.rsplit('-').next().unwrap_or(&run_id);
            printer.note(&format!(
                "these results are stored already, as run {run_id}; --force stores them again"
            ));
            printer.show(&format!("show it with: probity show {short}\n"))?;
            return Ok(Exit::Success);
        }
        return report(args, &store, &run_id, true, &[], read.run.tool);
    }
    let mut notes = read.run.notes.clone();
    if let Some(suite) = &args.suite {
        let cases = known_cases(suite, args, printer)?;
        notes.extend(cases.align(&mut read.run).iter().map(told));
    }
    let now_ms = clock::now_ms();
    let run_id = new_run_id(now_ms, fastrand::u64(..));
    let (suite, tool) = (read.run.suite.clone(), read.run.tool);
    let file = args.path.display().to_string();
    let Recorded { started_ms, info, events } =
        read.record(&run_id, &file, env!("CARGO_PKG_VERSION"), now_ms);
    let new = NewRun { run_id: run_id.clone(), suite, started_ms, info };
    record_whole(&store, &new, &events)?;
    match args.json {
        true => report(args, &store, &run_id, false, &notes, tool),
        false => {
            notes.iter().for_each(|it| printer.note(&format!("note: {it}")));
            let reader = Reader::open(&store)?;
            let run = reader.find(&run_id)?;
            let view = reader.view(&run, settings.max_error_rate)?;
            let (extent, width) = (Extent::Brief, Printer::width());
            let about =
                About { reader: &reader, run: &run, view: &view, exit: None, extent, width };
            printer.show_styled(&about.render()?)?;
            Ok(Exit::Success)
        }
    }
}

/// The run that was made of the same results before.
fn known(store: &Path, digest: &str) -> Result<Option<String>, Failure> {
    match Reader::open(store) {
        Ok(reader) => Ok(reader.find_imported(digest)?.map(|it| it.run_id)),
        Err(StoreError::Missing { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn report(
    args: &ImportArgs,
    store: &Path,
    run_id: &str,
    known: bool,
    notes: &[String],
    tool: Tool,
) -> Result<Exit, Failure> {
    let reader = Reader::open(store)?;
    let tally = reader.run_tally(&reader.find(run_id)?)?;
    let report = Report {
        from: tool.as_str(),
        file: &args.path,
        run_id,
        known,
        results: tally.total(),
        passed: tally.verdicts.pass,
        failed: tally.verdicts.fail,
        errors: tally.verdicts.error,
        undecided: tally.verdicts.undecided,
        notes,
    };
    let text = serde_json::to_string_pretty(&report)
        .map_err(|error| Failure::new("failed to write the report").because(error))?;
    Printer::emit(&format!("{text}\n"))?;
    Ok(Exit::Success)
}

/// What the cases of a suite ask.
fn known_cases(suite: &Path, args: &ImportArgs, printer: &Printer) -> Result<KnownCases, Failure> {
    let foreign = ForeignArgs { lossy: args.lossy, allow_outside: args.allow_outside };
    let reading = Reading::strict(printer, foreign);
    let project = Project::load(suite, &args.place, Layer::default(), &reading)?;
    let mut known = KnownCases::default();
    for backend in &project.suite.backends {
        known.backend(&backend.name, backend.model.as_deref());
    }
    project.each_runner(printer, |scanned| {
        let runner = &scanned.runner;
        known.runner(&runner.name, scanned.dataset_digest(), &runner.dataset, scanned.selected);
        scanned.requests(|variant, case, request| {
            known.case(&runner.name, variant, &case.id, &request);
        });
    })?;
    Ok(known)
}

fn told(aligned: &Aligned) -> String {
    let Aligned { lane, by, found, results } = aligned;
    let Some((runner, variant)) = by else {
        return format!("{lane}: no case of the suite asks the same; it keeps its names");
    };
    let mut text =
        format!("{lane}: {found} of {} are of cases of `{runner}", counted(*results, "result"));
    if let Some(variant) = variant {
        let _ = write!(text, "/{variant}");
    }
    text.push('`');
    text
}
