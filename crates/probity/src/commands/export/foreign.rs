//! Runs and suites for other tools.

use std::{
    fs,
    path::{Path, PathBuf},
};

use probity_core::{case::TestCase, request::Request};
use probity_import::export::{Exported, inspect, langfuse, openai_evals, promptfoo};
use probity_load::settings::Layer;
use probity_store::StoredCases;

use crate::{
    cli::{export::ExportArgs, run::ForeignArgs},
    commands::{
        dataset::counted,
        project::{Project, Reading, settings_alone},
        report::refuse_inputs,
        runs::open,
    },
    exit::Exit,
    failure::Failure,
    output::OutputFile,
    printer::Printer,
};

/// What could not be said and is shown.
const MOST_SHOWN: usize = 50;

/// A tool that is written for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tool {
    Promptfoo,
    Inspect,
    OpenaiEvals,
    Langfuse,
}

pub(super) fn run(args: &ExportArgs, tool: Tool, printer: &Printer) -> Result<Exit, Failure> {
    let exported = match suite_file(args.run()?) {
        Some(suite) => of_suite(&suite, args, tool, printer)?,
        None => of_run(args, tool)?,
    };
    for lost in exported.lost.iter().take(MOST_SHOWN) {
        printer.note(&format!("not carried over: {lost}"));
    }
    let more = exported.lost.len().saturating_sub(MOST_SHOWN);
    if more > 0 {
        printer.note(&format!("… and {}", counted(more, "further thing")));
    }
    if exported.files.iter().all(|(_, text)| text.is_empty()) {
        return Err(Failure::new("nothing of it can be carried over"));
    }
    write(&exported, args, printer)?;
    Ok(match exported.lost.is_empty() || args.lossy {
        true => Exit::Success,
        false => Exit::Failed(1),
    })
}

/// The suite that is meant, if it is one and not a run.
fn suite_file(name: &str) -> Option<PathBuf> {
    let path = Path::new(name);
    path.is_file().then(|| path.to_owned())
}

fn of_run(args: &ExportArgs, tool: Tool) -> Result<Exported, Failure> {
    let settings = settings_alone(&args.place)?;
    let reader = open(&args.place)?;
    let run = reader.find(args.run()?)?;
    refuse_inputs(&reader, &run, None, args.output.as_slice())?;
    let view = reader.view(&run, settings.max_error_rate)?;
    let cases = StoredCases::of(&reader, &run)?;
    let exported = match tool {
        Tool::Promptfoo => promptfoo::run(&view, &cases),
        Tool::Inspect => inspect::run(&view, &cases),
        Tool::OpenaiEvals => openai_evals::run(&view, &cases),
        Tool::Langfuse => langfuse::run(&view, &cases),
    };
    exported.map_err(|error| Failure::new("the cases cannot be read").because(error))
}

/// What is done with a case: its runner, its prompt variant, the case and what it asks.
type EachCase<'a> = dyn FnMut(&str, Option<&str>, &TestCase, &Request) + 'a;

fn of_suite(
    path: &Path,
    args: &ExportArgs,
    tool: Tool,
    printer: &Printer,
) -> Result<Exported, Failure> {
    let foreign = ForeignArgs { lossy: args.lossy, allow_outside: args.allow_outside };
    let reading = Reading::strict(printer, foreign);
    let project = Project::load(path, &args.place, Layer::default(), &reading)?;
    let each_case = |each: &mut EachCase<'_>| {
        project.each_runner(printer, |scanned| {
            let runner = &scanned.runner.name;
            scanned.requests(|variant, case, request| each(runner, variant, case, &request));
        })
    };
    let mut exported = match tool {
        Tool::Promptfoo => {
            let mut export = promptfoo::SuiteExport::new(&project.name);
            project.each_runner(printer, |scanned| {
                export.runner(&scanned.runner, &project.suite);
                scanned.requests(|variant, case, request| export.case(variant, case, &request));
            })?;
            export.finish()
        }
        Tool::OpenaiEvals => {
            let mut export = openai_evals::SuiteExport::default();
            each_case(&mut |runner, variant, case, request| {
                export.case(runner, variant, case, request);
            })?;
            export.finish()
        }
        Tool::Langfuse => {
            let mut export = langfuse::SuiteExport::default();
            each_case(&mut |runner, variant, case, request| {
                export.case(runner, variant, case, request);
            })?;
            export.finish()
        }
        Tool::Inspect => {
            return Err(Failure::new("a log is made of a run, and this is a suite").hint(
                "Inspect's tasks are code; docs/coming-from/inspect.md has a table of equivalents",
            ));
        }
    };
    for runner in project.suite.runners.iter().filter(|it| it.kind.spec().is_external) {
        exported.lose(&format!("runner `{}`", runner.name), "it is a program of its own");
    }
    Ok(exported)
}

/// Writes one file where it is wanted, and several to a folder.
fn write(exported: &Exported, args: &ExportArgs, printer: &Printer) -> Result<(), Failure> {
    match (exported.files.as_slice(), &args.output) {
        ([(_, text)], None) => Printer::emit(text),
        ([(_, text)], Some(path)) if !path.is_dir() => OutputFile::write(path, text),
        (files, None) => {
            let count = counted(files.len(), "file");
            Err(Failure::new(format!("there are {count} to write")).hint("-o DIR says where to"))
        }
        (files, Some(folder)) => {
            for (name, text) in files {
                let path = folder.join(name);
                let parent = path.parent().unwrap_or(folder);
                fs::create_dir_all(parent).map_err(|error| Failure::write(parent, error))?;
                OutputFile::write(&path, text)?;
                printer.note(&path.display().to_string());
            }
            Ok(())
        }
    }
}
