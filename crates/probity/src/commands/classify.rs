//! `probity classify`: what each stored run result is, offline.

use std::{
    fs::File,
    io::{self, Read, Write},
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use probity_offline::{
    classify::{Found, Settings, classify_all},
    pipeline::{Broken, Done, all_cores},
    tally::Tally,
};

use super::rules;
use crate::{
    cli::ClassifyArgs,
    exit::Exit,
    failure::Failure,
    output::{OutputFile, refuse_same_file},
    printer::Printer,
};

pub(super) fn run(args: &ClassifyArgs, printer: &Printer) -> Result<Exit, Failure> {
    let named =
        [Some(&args.input), args.rules.suite.as_ref(), args.output.as_ref(), args.summary.as_ref()];
    let named: Vec<&Path> = named.into_iter().flatten().map(PathBuf::as_path).collect();
    refuse_same_file(&named)?;
    let rules = match &args.rules.suite {
        Some(_) => rules::load(&args.rules, printer)?,
        None => rules::without_suite(args.input.parent()),
    };
    let mut input = open_input(&args.input)?;
    let settings = Settings {
        rules: &rules,
        name: args.input.display().to_string().into(),
        require_criteria: args.require_criteria,
    };
    let threads = args.threads.map_or_else(all_cores, usize::from);
    let tally = match &args.output {
        Some(path) => {
            let mut file = OutputFile::create(path)?;
            let tally = classify(&settings, threads, &mut input, &mut file, printer)?;
            file.finish()?;
            tally
        }
        None => classify(&settings, threads, &mut input, &mut Printer::data(), printer)?,
    };
    report(args, &tally, printer)?;
    if tally.is_empty() {
        let message = format!("there is no run result in `{}`", args.input.display());
        return Err(Failure::new(message));
    }
    Ok(if tally.broken == 0 { Exit::Success } else { Exit::Usage })
}

/// Writes what comes of the input, and shows what is wrong with lines that are no results.
fn classify(
    settings: &Settings<'_>,
    threads: usize,
    input: &mut dyn Read,
    output: &mut (impl Write + Send),
    printer: &Printer,
) -> Result<Tally, Failure> {
    let mut tally = Tally::default();
    let mut progress = printer.progress();
    let mut shown = printer.problems();
    let mut take = |done: Done<Found>, caught_up| {
        output.write_all(&done.output)?;
        if caught_up {
            output.flush()?;
        }
        if !done.found.problems.is_empty() {
            progress.clear();
            done.found.problems.iter().for_each(|problem| shown.show(problem));
        }
        tally.merge(&done.found.tally);
        progress.update(|| format!("{} results classified", tally.total()));
        Ok(ControlFlow::Continue(()))
    };
    classify_all(settings, threads, input, &mut take).map_err(|broken| match broken {
        Broken::Output(error) => Failure::output(error),
        Broken::Input(error) => {
            Failure::new(format!("failed to read `{}`", settings.name)).because(error)
        }
    })?;
    output.flush().map_err(Failure::output)?;
    Ok(tally)
}

fn report(args: &ClassifyArgs, tally: &Tally, printer: &Printer) -> Result<(), Failure> {
    if let Some(path) = &args.summary {
        let text = format!("{:#}\n", tally.to_json(args.errors_as_failures));
        match path.as_os_str() == "-" {
            true => Printer::data().write_all(text.as_bytes()).map_err(Failure::output)?,
            false => {
                let mut file = OutputFile::create(path)?;
                file.write_all(text.as_bytes()).map_err(|error| Failure::write(path, error))?;
                file.finish()?;
            }
        }
    }
    if !args.quiet {
        printer.note(tally.to_text(args.errors_as_failures).trim_end());
    }
    Ok(())
}

fn open_input(path: &Path) -> Result<Box<dyn Read>, Failure> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(io::stdin().lock()));
    }
    let file = File::open(path).map_err(|error| Failure::read(path, error))?;
    let folder = file.metadata().is_ok_and(|metadata| metadata.is_dir());
    if folder {
        return Err(Failure::read(path, io::ErrorKind::IsADirectory.into()));
    }
    Ok(Box::new(file))
}
